//! The registers by which the gates call the processor: what is pending, the reset of the gates, frames and events.
//!
//! ```text
//!                 ┌──────────────────────────────┐
//!   offset ──────►│ INTERRUPT_PENDING, _ENABLE   ├──► external_interrupt
//!   poke, data ──►│ GATES_RESET                  ├──► gates_reset_request
//!   value ◄───────┤ FRAME_SEND, _TAKE, S_LOST    ├──► frame_send, frame_take
//!                 │ EVENT, _TAKE, S_LOST         │◄── told, by the EventQueue
//!                 └──────────────────────────────┘◄── levels of all that can be pending
//! ```
//!
//! A bit of `INTERRUPT_PENDING` is the level of its cause and of nothing else: there is no bit to clear.

#![allow(
    missing_docs,
    reason = "the LogicStruct derive makes methods without documentation"
)]

use super::event_queue::EventQueue;
use crate::construct::construct;
use crate::prelude::*;
use crate::types::RaiseEvent;
use abi::mgmt;

/// Interrupts, one bit each.
const INTERRUPTS: usize = 6;

const _: () = assert!(
    mgmt::INTERRUPT_MAILBOX == 1 << 0
        && mgmt::INTERRUPT_CONTROL == 1 << 1
        && mgmt::INTERRUPT_FRAME_IN == 1 << 2
        && mgmt::INTERRUPT_FRAME_OUT == 1 << 3
        && mgmt::INTERRUPT_EVENT == 1 << 4
        && mgmt::INTERRUPT_GATES_READY == 1 << 5
        && INTERRUPTS == 6,
    "the kernel puts the bits there"
);

/// Offsets of the registers, of `abi::mgmt`.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct GateOffsets {
    gates_reset: Bits<12>,
    pending: Bits<12>,
    enable: Bits<12>,
    frame_send: Bits<12>,
    frame_take: Bits<12>,
    frames_lost: Bits<12>,
    event_take: Bits<12>,
    event: Bits<12>,
    event_low: Bits<12>,
    event_high: Bits<12>,
    events_lost: Bits<12>,
}

impl GateOffsets {
    fn of_abi() -> Self {
        let offset = |offset: u32| u64::from(offset).into();
        GateOffsets {
            gates_reset: offset(mgmt::GATES_RESET),
            pending: offset(mgmt::INTERRUPT_PENDING),
            enable: offset(mgmt::INTERRUPT_ENABLE),
            frame_send: offset(mgmt::FRAME_SEND),
            frame_take: offset(mgmt::FRAME_TAKE),
            frames_lost: offset(mgmt::FRAMES_LOST),
            event_take: offset(mgmt::EVENT_TAKE),
            event: offset(mgmt::EVENT),
            event_low: offset(mgmt::EVENT + 4),
            event_high: offset(mgmt::EVENT + 8),
            events_lost: offset(mgmt::EVENTS_LOST),
        }
    }
}

/// The registers.
#[derive(LogicBlock)]
pub struct GateRegisters {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Clears the counts and the events; the mailbox alone may interrupt.
    pub reset: Signal<In, Bit>,
    /// The processor runs. While it doesn't, the enabled interrupts are those after reset.
    pub running: Signal<In, Bit>,
    /// Offset of the register concerned.
    pub offset: Signal<In, Bits<12>>,
    /// The processor writes it.
    pub poke: Signal<In, Bit>,
    /// What.
    pub data: Signal<In, Bits<32>>,
    /// What it reads; zero for a register that isn't here.
    pub value: Signal<Out, Bits<32>>,
    /// Something that is enabled is pending.
    pub external_interrupt: Signal<Out, Bit>,
    /// The host's last command isn't the one answered last.
    pub mailbox_pending: Signal<In, Bit>,
    /// A control request is under way.
    pub control_busy: Signal<In, Bit>,
    /// Pulse: the gates are to be reset. `gates_ready` is low from the next cycle on.
    pub gates_reset_request: Signal<Out, Bit>,
    /// No reset of the gates is under way, and every table is cleared.
    pub gates_ready: Signal<In, Bit>,
    /// Pulse: sends the frame.
    pub frame_send: Signal<Out, Bit>,
    /// No frame of the firmware is being sent.
    pub frame_out_ready: Signal<In, Bit>,
    /// A frame for the firmware waits.
    pub frame_in_valid: Signal<In, Bit>,
    /// Pulse: it is done with.
    pub frame_take: Signal<Out, Bit>,
    /// Pulse: a frame for the firmware found no room.
    pub frame_dropped: Signal<In, Bit>,
    /// Pulse: something has happened in the gates.
    pub told_valid: Signal<In, Bit>,
    /// What.
    pub told: Signal<In, RaiseEvent>,

    events: EventQueue,
    enabled: Reg<Bits<INTERRUPTS>>,
    reset_request: Reg<Bit>,
    frames_lost: Reg<Bits<32>>,
    pending: Signal<Local, Bits<INTERRUPTS>>,
    ready: Signal<Local, Bit>,
    oldest: Signal<Local, RaiseEvent>,
    offsets: Constant<GateOffsets>,
    mailbox_alone: Constant<Bits<INTERRUPTS>>,
}

impl Default for GateRegisters {
    fn default() -> Self {
        let mailbox_alone = u64::from(mgmt::INTERRUPT_MAILBOX);
        construct!({
            enabled: Reg::new(mailbox_alone.into()),
            offsets: Constant::new(GateOffsets::of_abi()),
            mailbox_alone: Constant::new(mailbox_alone.into()),
        } default {
            clock reset running offset poke data value external_interrupt mailbox_pending control_busy gates_reset_request gates_ready
            frame_send frame_out_ready frame_in_valid frame_take frame_dropped told_valid told events reset_request frames_lost pending ready oldest
        })
    }
}

#[module]
impl Logic for GateRegisters {
    #[hdl_gen]
    fn update(&mut self) {
        registers!(self, clock, reset, enabled, reset_request, frames_lost);
        clocked!(self, clock, reset, events);

        // The datapath hears of the request in the cycle after the write, and says in the one behind it that it isn't ready.
        self.gates_reset_request.next = self.reset_request.q.val();
        self.ready.next = self.gates_ready.val() & !self.reset_request.q.val();
        self.pending.next = bits::<INTERRUPTS>(0)
            .replace_bit(0, self.mailbox_pending.val())
            .replace_bit(1, !self.control_busy.val())
            .replace_bit(2, self.frame_in_valid.val())
            .replace_bit(3, self.frame_out_ready.val())
            .replace_bit(4, self.events.event_valid.val())
            .replace_bit(5, self.ready.val());
        self.external_interrupt.next = (self.pending.val() & self.enabled.q.val()).any();

        self.events.told_valid.next = self.told_valid.val();
        self.events.told.next = self.told.val();
        self.oldest.next = self.events.oldest.val();
        if self.frame_dropped.val() {
            self.frames_lost.d.next = self.frames_lost.q.val() + 1;
        }

        self.value.next = 0.into();
        if self.offset.val() == self.offsets.val().gates_reset {
            self.value.next = bits::<32>(0) + !self.ready.val();
        }
        if self.offset.val() == self.offsets.val().pending {
            self.value.next = bit_cast::<32, INTERRUPTS>(self.pending.val());
        }
        if self.offset.val() == self.offsets.val().enable {
            self.value.next = bit_cast::<32, INTERRUPTS>(self.enabled.q.val());
        }
        if self.offset.val() == self.offsets.val().frames_lost {
            self.value.next = self.frames_lost.q.val();
        }
        if self.offset.val() == self.offsets.val().event {
            self.value.next = bit_cast::<32, 8>(self.oldest.val().cause)
                | (bit_cast::<32, 8>(self.oldest.val().endpoint) << 8)
                | (bit_cast::<32, 16>(self.oldest.val().pair) << 16);
        }
        if self.offset.val() == self.offsets.val().event_low {
            self.value.next = self.oldest.val().info.get_bits::<32>(0);
        }
        if self.offset.val() == self.offsets.val().event_high {
            self.value.next = self.oldest.val().info.get_bits::<32>(32);
        }
        if self.offset.val() == self.offsets.val().events_lost {
            self.value.next = self.events.lost.val();
        }

        self.reset_request.d.next = false;
        self.frame_send.next = false;
        self.frame_take.next = false;
        self.events.take.next = false;
        if self.poke.val() {
            if self.offset.val() == self.offsets.val().gates_reset {
                self.reset_request.d.next = self.data.val().get_bit(0);
            }
            if self.offset.val() == self.offsets.val().enable {
                self.enabled.d.next = self.data.val().get_bits::<INTERRUPTS>(0);
            }
            if self.offset.val() == self.offsets.val().frame_send {
                self.frame_send.next = true;
            }
            if self.offset.val() == self.offsets.val().frame_take {
                self.frame_take.next = true;
            }
            if self.offset.val() == self.offsets.val().event_take {
                self.events.take.next = true;
            }
        }
        if !self.running.val() {
            self.enabled.d.next = self.mailbox_alone.val();
        }
    }
}
