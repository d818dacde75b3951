//! The management subsystem: the processor on its clock, the registers on the card's, and the bridge between them.
//!
//! ```text
//!               clock                                    processor_clock
//!             ┌───────────────┐ access, answer ┌─────────────┐         ┌───────────┐
//!   card ◄───►│ CardRegisters │◄──────────────►│             │◄───────►│ Processor │
//!             │               ├─ interrupts ──►│             ├────────►│ (Ibex)    │
//!             └───────▲───────┘                │ ClockBridge │         │           │
//!                     └─ running ──────────────┤             │         │           │
//!   run, loader ──────────────────────────────►│             ├────────►│           │
//!                                              └─────────────┘         └───────────┘
//! ```

use super::card_registers::CardRegisters;
use super::clock_bridge::ClockBridge;
use super::processor::Processor;
use crate::config::Config;
use crate::prelude::*;
use crate::types::{AccessReport, ControlRequest, LoaderWord, RaiseEvent};

/// The management subsystem.
#[block(config: &Config)]
pub struct Subsystem {
    /// Rising edge counts: the card's clock, by which all ports are.
    pub clock: Signal<In, Clock>,
    /// Holds the processor and clears the registers; the memory keeps its contents.
    pub reset: Signal<In, Bit>,
    /// Rising edge counts for the processor. Any ratio to `clock`, and any phase.
    pub processor_clock: Signal<In, Clock>,
    /// Lets the processor run.
    pub run: Signal<In, Bit>,
    /// Words of the memory; only while `run` is low.
    pub loader: Stream<In, LoaderWord>,
    /// Word of the mailbox that the host looks at; bit 5 selects the result area.
    pub mailbox_address: Signal<In, Bits<6>>,
    /// The host writes it; in the command area only.
    pub mailbox_write: Signal<In, Bit>,
    /// What.
    pub mailbox_write_data: Signal<In, Bits<32>>,
    /// The word looked at in the cycle before.
    pub mailbox_read_data: Signal<Out, Bits<32>>,
    /// Number of the host's last command.
    pub mailbox_request: Signal<In, Bits<32>>,
    /// Number of the last command answered.
    pub mailbox_answer: Signal<Out, Bits<32>>,
    /// Number of the firmware's start once it says that it is up; 0 if it doesn't.
    pub firmware_start: Signal<Out, Bits<32>>,
    /// A control request; taken when it is done.
    pub control: Stream<Out, ControlRequest>,
    /// With `control.ready`: the result of the request.
    pub control_result: Signal<In, Bits<64>>,
    /// Before: what it waits for.
    pub control_report: Signal<In, AccessReport>,
    /// Pulse: the gates are to be reset.
    pub gates_reset_request: Signal<Out, Bit>,
    /// No reset of the gates is under way, and every table is cleared. Low from the cycle after `gates_reset_request` on.
    pub gates_ready: Signal<In, Bit>,
    /// Writes a word of the frame to send.
    pub frame_write: Signal<Out, Bit>,
    /// Number of the word that is written.
    pub frame_write_address: Signal<Out, Bits<5>>,
    /// The word that is written.
    pub frame_write_data: Signal<Out, Bits<32>>,
    /// Pulse: sends the frame.
    pub frame_send: Signal<Out, Bit>,
    /// No frame of the firmware is being sent.
    pub frame_out_ready: Signal<In, Bit>,
    /// A frame for the firmware waits.
    pub frame_in_valid: Signal<In, Bit>,
    /// Pulse: the firmware has done with the frame that waits.
    pub frame_take: Signal<Out, Bit>,
    /// Number of the word of that frame that is looked at.
    pub frame_read_address: Signal<Out, Bits<5>>,
    /// The word looked at in the cycle before.
    pub frame_read_data: Signal<In, Bits<32>>,
    /// Pulse: a frame for the firmware found no room.
    pub frame_dropped: Signal<In, Bit>,
    /// Pulse: something has happened in the gates.
    pub told_valid: Signal<In, Bit>,
    /// With `told_valid`: what has happened.
    pub told: Signal<In, RaiseEvent>,
    /// A byte of the log.
    pub log_data: Signal<Out, Bits<8>>,
    /// A byte of the log leaves in this cycle.
    pub log_valid: Signal<Out, Bit>,
    /// Own Ethernet address.
    pub strap_mac: Signal<In, Bits<48>>,
    /// Seed of the random words.
    pub strap_seed: Signal<In, Bits<32>>,

    #[is(CardRegisters::new(config))]
    registers: CardRegisters,
    bridge: ClockBridge,
    processor: Processor,
}

impl Subsystem {
    /// The subsystem of a card of these sizes.
    pub fn new(config: &Config) -> Self {
        Self::build(config)
    }
}

#[block]
impl Logic for Subsystem {
    fn update(&mut self) {
        self.bridge.processor_clock.next = self.processor_clock.val();
        self.processor.clock.next = self.processor_clock.val();
        self.processor.reset.next = self.bridge.processor_reset.val();

        self.bridge.run.next = self.run.val();
        join!(self.loader => self.bridge.loader);
        self.registers.running.next = self.bridge.running.val();
        join!(self.bridge.access => self.registers.access);
        join!(self.registers.answer => self.bridge.answer);
        self.bridge.timer_interrupt.next = self.registers.timer_interrupt.val();
        self.bridge.external_interrupt.next = self.registers.external_interrupt.val();

        self.processor.run.next = self.bridge.processor_run.val();
        join!(self.bridge.processor_loader => self.processor.loader);
        join!(self.processor.access => self.bridge.processor_access);
        join!(self.bridge.processor_answer => self.processor.answer);
        self.processor.timer_interrupt.next = self.bridge.processor_timer_interrupt.val();
        self.processor.external_interrupt.next = self.bridge.processor_external_interrupt.val();

        self.registers.mailbox_address.next = self.mailbox_address.val();
        self.registers.mailbox_write.next = self.mailbox_write.val();
        self.registers.mailbox_write_data.next = self.mailbox_write_data.val();
        self.mailbox_read_data.next = self.registers.mailbox_read_data.val();
        self.registers.mailbox_request.next = self.mailbox_request.val();
        self.mailbox_answer.next = self.registers.mailbox_answer.val();
        self.firmware_start.next = self.registers.firmware_start.val();
        join!(self.registers.control => self.control);
        self.registers.control_result.next = self.control_result.val();
        self.registers.control_report.next = self.control_report.val();
        self.gates_reset_request.next = self.registers.gates_reset_request.val();
        self.registers.gates_ready.next = self.gates_ready.val();
        self.frame_write.next = self.registers.frame_write.val();
        self.frame_write_address.next = self.registers.frame_write_address.val();
        self.frame_write_data.next = self.registers.frame_write_data.val();
        self.frame_send.next = self.registers.frame_send.val();
        self.registers.frame_out_ready.next = self.frame_out_ready.val();
        self.registers.frame_in_valid.next = self.frame_in_valid.val();
        self.frame_take.next = self.registers.frame_take.val();
        self.frame_read_address.next = self.registers.frame_read_address.val();
        self.registers.frame_read_data.next = self.frame_read_data.val();
        self.registers.frame_dropped.next = self.frame_dropped.val();
        self.registers.told_valid.next = self.told_valid.val();
        self.registers.told.next = self.told.val();
        self.log_data.next = self.registers.log_data.val();
        self.log_valid.next = self.registers.log_valid.val();
        self.registers.strap_mac.next = self.strap_mac.val();
        self.registers.strap_seed.next = self.strap_seed.val();
    }
}
