//! The reset of the gates by register: first the card's DMA and wire become quiet, then every block of the datapath but
//! [`Registers`](super::Registers) is reset at once.
//!
//! ```text
//!               request       memory_idle,          one cycle        initialized
//!                         wire_idle or too long
//!        ┌─────┐      ┌───────┐              ┌─────────┐      ┌───────┐
//!   ────►│ Run ├─────►│ Quiet ├─────────────►│ Restart ├─────►│ Clear ├──► Run
//!        └─────┘      └───▲───┘              └─────────┘      └───┬───┘
//!                         └──────────── request ──────────────────┘
//! ```
//!
//! In `Quiet` the DMA engines take no request and end the accesses on the bus without their clients, and no frame begins on the
//! wire. AXI has no way to take back what was offered, so `Quiet` lasts until memory has answered everything: for ever, if it
//! never does. It lasts no longer than [`WIRE_PATIENCE`] for the wire; [`FrameGate`](crate::link::FrameGate) holds the word that
//! the wire hasn't taken by then.

use crate::prelude::*;

/// Cycles that a frame has to end: 100 to each word of the longest, so that only a wire that has stopped is given up.
pub const WIRE_PATIENCE: u64 = 1 << 14;

const _: () = assert!(WIRE_PATIENCE >= 100 * (abi::wire::FRAME_MAX as u64 / 8));

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Phase {
    /// No reset is under way.
    Run,
    /// DMA and wire become quiet.
    Quiet,
    /// The blocks are reset.
    Restart,
    /// The blocks clear their memories.
    Clear,
}

/// The sequence of a reset of the gates.
#[block]
pub struct GateReset {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Reset of the card: passed on to the blocks; ends a reset of the gates.
    pub reset: Signal<In, Bit>,
    /// Pulse: the host asks for a reset.
    pub request: Signal<In, Bit>,
    /// Pulse: the firmware asks for a reset.
    pub firmware_request: Signal<In, Bit>,
    /// The DMA engines have no access under way.
    pub memory_idle: Signal<In, Bit>,
    /// No frame of the card is on the wire.
    pub wire_idle: Signal<In, Bit>,
    /// Every block has cleared its memories.
    pub initialized: Signal<In, Bit>,
    /// No access of memory and no frame may begin.
    pub quiet: Signal<Out, Bit>,
    /// Pulse: the blocks are reset by the request.
    pub restart: Signal<Out, Bit>,
    /// Reset of the blocks: the card's, and `restart`.
    pub block_reset: Signal<Out, Bit>,
    /// From the cycle after the request until every memory is cleared.
    pub resetting: Signal<Out, Bit>,
    /// No reset is under way and every memory is cleared.
    pub ready: Signal<Out, Bit>,
    phase: Reg<Phase>,
    elapsed: Reg<Bits<16>>,
    asked: Signal<Local, Bit>,
    wire_done: Signal<Local, Bit>,
}

#[block]
impl Logic for GateReset {
    fn update(&mut self) {
        self.asked.next = self.request.val() | self.firmware_request.val();
        self.wire_done.next = self.wire_idle.val() | (self.elapsed.q.val() == WIRE_PATIENCE);

        self.quiet.next = false;
        self.restart.next = false;
        self.block_reset.next = self.reset.val();
        self.resetting.next = true;
        self.ready.next = false;
        match self.phase.q.val() {
            Phase::Run => {
                self.resetting.next = false;
                self.ready.next = self.initialized.val();
                self.elapsed.d.next = 0.into();
                if self.asked.val() {
                    self.phase.d.next = Phase::Quiet;
                }
            }
            Phase::Quiet => {
                self.quiet.next = true;
                if self.elapsed.q.val() != WIRE_PATIENCE {
                    self.elapsed.d.next = self.elapsed.q.val() + 1;
                }
                if self.memory_idle.val() & self.wire_done.val() {
                    self.phase.d.next = Phase::Restart;
                }
            }
            Phase::Restart => {
                self.quiet.next = true;
                self.restart.next = true;
                self.block_reset.next = true;
                self.elapsed.d.next = 0.into();
                self.phase.d.next = Phase::Clear;
            }
            Phase::Clear => {
                // What was set up since the last request is reset too.
                if self.asked.val() {
                    self.phase.d.next = Phase::Quiet;
                } else if self.initialized.val() {
                    self.phase.d.next = Phase::Run;
                }
            }
            _ => {}
        }
    }
}
