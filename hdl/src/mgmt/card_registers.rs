//! The registers by which the firmware sees the card and the host, and the host's end of its mailbox: what of management runs on
//! the card's clock.
//!
//! ```text
//!                     ┌──────────────────┐──► control                ─► Fanout
//!   access (Pulse) ──►│ registers        │──► log
//!   answer ◄──────────┤ abi::mgmt        │◄── straps, sizes, random
//!                     │                  │──► mailbox answer, firmware_start
//!   timer_interrupt ◄─┤ time, compare    │
//!   external_… ◄──────┤ GateRegisters    │◄─► frames, events, reset of the gates
//!                     └──────────────────┘
//!                     ┌──────────────────┐
//!   mailbox_* ◄──────►│ command, result  │
//!   (host's port)     └──────────────────┘
//! ```
//!
//! A store has its effect, and a load is answered, in the cycle after the access. Time is counted here, so that it is in cycles of
//! the card whatever the processor's clock is.
//!
//! The external interrupt is pending while an enabled cause of [`GateRegisters`] is pending; the timer
//! interrupt while it is enabled and the time has reached `TIMER_COMPARE`.
//!
//! The firmware's frames are kept in the datapath, by `FirmwareOut` and `FirmwareIn`, so that a reset of the gates leaves no
//! half of a frame there.

#![allow(
    missing_docs,
    reason = "the LogicStruct derive makes methods without documentation"
)]

use super::gate_registers::GateRegisters;
use super::random::Random;
use crate::config::Config;
use crate::prelude::*;
use crate::prim::Ram;
use crate::types::{AccessReport, ControlRequest, RaiseEvent, RegisterAccess};
use abi::mgmt::{
    self, CONTROL_BUSY, CONTROL_DATA, CONTROL_RESULT, CONTROL_START, FIRMWARE_START, FRAME_IN,
    FRAME_OUT, LOG, MAC, MAILBOX_ANSWER, MAILBOX_COMMAND, MAILBOX_REQUEST, MAILBOX_RESULT, RANDOM,
    TIME, TIMER_COMPARE, TIMER_ENABLE,
};
use abi::register::MAILBOX_WORDS;

const _: () = assert!(
    mgmt::CONTROL_INDEX_SHIFT == 16,
    "the kernel cuts the index of a control request here"
);

/// First bytes behind what has several words.
const CONTROL_DATA_END: u32 = CONTROL_DATA + 8 * abi::control::DATA_WORDS as u32;
const COMMAND_END: u32 = MAILBOX_COMMAND + 4 * MAILBOX_WORDS as u32;
const RESULT_END: u32 = MAILBOX_RESULT + 4 * MAILBOX_WORDS as u32;
const FRAME_OUT_END: u32 = FRAME_OUT + 4 * mgmt::FRAME_WORDS as u32;
const FRAME_IN_END: u32 = FRAME_IN + 4 * mgmt::FRAME_WORDS as u32;

/// The data of a control request as the processor writes them.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct ControlWords {
    w0: Bits<32>,
    w1: Bits<32>,
    w2: Bits<32>,
    w3: Bits<32>,
    w4: Bits<32>,
    w5: Bits<32>,
    w6: Bits<32>,
    w7: Bits<32>,
    w8: Bits<32>,
    w9: Bits<32>,
}

/// The registers, and the mailbox.
#[block(sizes: &[usize; mgmt::SIZE_WORDS])]
pub struct CardRegisters {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Clears the registers.
    pub reset: Signal<In, Bit>,
    /// The processor runs. While it doesn't, the firmware isn't up, and interrupts are as after reset.
    pub running: Signal<In, Bit>,
    /// A load or a store of a register.
    pub access: Pulse<In, RegisterAccess>,
    /// What a load of the cycle before was for.
    pub answer: Pulse<Out, Bits<32>>,
    /// Timer interrupt, level.
    pub timer_interrupt: Signal<Out, Bit>,
    /// External interrupt, level.
    pub external_interrupt: Signal<Out, Bit>,
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

    #[is(Ram::new(MAILBOX_WORDS))]
    command: Ram<Bits<32>>,
    /// The command area again, for the host to read back.
    #[is(Ram::new(MAILBOX_WORDS))]
    command_copy: Ram<Bits<32>>,
    #[is(Ram::new(MAILBOX_WORDS))]
    result: Ram<Bits<32>>,
    random: Random,
    gates: GateRegisters,

    answered: Reg<Bit>,
    from_command: Reg<Bit>,
    from_frame: Reg<Bit>,
    register: Reg<Bits<32>>,
    host_looks_at_result: Reg<Bit>,

    /// Since reset.
    cycles: Reg<Bits<32>>,
    timer_compare: Reg<Bits<32>>,
    timer_enabled: Reg<Bit>,
    late: Signal<Local, Bits<32>>,
    last_answer: Reg<Bits<32>>,
    start: Reg<Bits<32>>,
    busy: Reg<Bit>,
    operation: Reg<Bits<8>>,
    index: Reg<Bits<16>>,
    words: Reg<ControlWords>,
    word_index: Signal<Local, Bits<12>>,
    outcome: Reg<Bits<64>>,
    log: Reg<Bits<8>>,
    logs: Reg<Bit>,

    in_command: Signal<Local, Bit>,
    in_result: Signal<Local, Bit>,
    in_frame_out: Signal<Local, Bit>,
    in_frame_in: Signal<Local, Bit>,
    poke: Signal<Local, Bit>,
    offset: Signal<Local, Bits<12>>,
    data: Signal<Local, Bits<32>>,

    #[is((0..sizes.len() as u32)
                .map(|k| constant(mgmt::SIZES + 4 * k))
                .collect())]
    size_offset: Vec<Constant<Bits<12>>>,
    #[is(sizes
                .iter()
                .map(|size| constant(*size as u64))
                .collect())]
    size: Vec<Constant<Bits<32>>>,
    #[is(Check::new("control_request_starts_when_none_is_under_way"))]
    one_request_at_a_time: Check,
    #[is(sizes.len())]
    _sizes: usize,
}

impl CardRegisters {
    /// The registers of a card of these sizes.
    pub fn new(config: &Config) -> Self {
        // Order of abi::mgmt::SIZES.
        let sizes: [usize; mgmt::SIZE_WORDS] = [
            config.endpoints,
            config.pairs,
            config.posted + config.exact,
            config.unexpected,
            config.regions,
            config.reserved_posted(),
            config.capabilities as usize,
            config.descriptors,
            config.rules,
            config.grants,
        ];
        Self::build(&sizes)
    }
}

#[block(
    endpoints = self.size[0].val().index(),
    pairs = self.size[1].val().index()
)]
impl Logic for CardRegisters {
    fn update(&mut self) {
        self.late.next = self.cycles.q.val() - self.timer_compare.q.val();
        self.timer_interrupt.next = self.timer_enabled.q.val() & !self.late.val().get_bit(31);
        self.external_interrupt.next = self.gates.external_interrupt.val();

        // What a load or store is for.
        self.offset.next = self.access.data.val().offset;
        self.data.next = self.access.data.val().data;
        self.poke.next = self.access.valid.val() & self.access.data.val().store;
        self.in_command.next =
            (self.offset.val() >= MAILBOX_COMMAND) & (self.offset.val() < COMMAND_END);
        self.in_result.next =
            (self.offset.val() >= MAILBOX_RESULT) & (self.offset.val() < RESULT_END);
        self.in_frame_out.next =
            (self.offset.val() >= FRAME_OUT) & (self.offset.val() < FRAME_OUT_END);
        self.in_frame_in.next =
            (self.offset.val() >= FRAME_IN) & (self.offset.val() < FRAME_IN_END);

        // Answers, a cycle later.
        self.answered.d.next = self.access.valid.val() & !self.access.data.val().store;
        self.from_command.d.next = self.in_command.val();
        self.from_frame.d.next = self.in_frame_in.val();
        send!(self.answer, self.answered.q.val(), self.register.q.val());
        if self.from_command.q.val() {
            self.answer.data.next = self.command.read_data.val();
        }
        if self.from_frame.q.val() {
            self.answer.data.next = self.frame_read_data.val();
        }

        // Loads of registers.
        self.register.d.next = self.gates.value.val();
        if self.offset.val() == TIME {
            self.register.d.next = self.cycles.q.val();
        }
        if self.offset.val() == TIMER_COMPARE {
            self.register.d.next = self.timer_compare.q.val();
        }
        if self.offset.val() == MAILBOX_REQUEST {
            self.register.d.next = self.mailbox_request.val();
        }
        if self.offset.val() == CONTROL_BUSY {
            self.register.d.next = bits::<32>(0) + self.busy.q.val();
        }
        if self.offset.val() == CONTROL_RESULT {
            self.register.d.next = self.outcome.q.val().get_bits::<32>(0);
        }
        if self.offset.val() == CONTROL_RESULT + 4 {
            self.register.d.next = self.outcome.q.val().get_bits::<32>(32);
        }
        for i in 0..self._sizes {
            if self.offset.val() == self.size_offset[i].val() {
                self.register.d.next = self.size[i].val();
            }
        }
        if self.offset.val() == RANDOM {
            self.register.d.next = self.random.word.val();
        }
        if self.offset.val() == MAC {
            self.register.d.next = self.strap_mac.val().get_bits::<32>(0);
        }
        if self.offset.val() == MAC + 4 {
            self.register.d.next = bit_cast::<32, 16>(self.strap_mac.val().get_bits::<16>(32));
        }
        self.random.seed.next = self.strap_seed.val();

        // Stores to registers.
        self.cycles.d.next = self.cycles.q.val() + 1;
        self.logs.d.next = false;
        self.one_request_at_a_time.ok.next = true;
        self.word_index.next = (self.offset.val() - CONTROL_DATA) >> 2;
        if self.busy.q.val() {
            self.outcome.d.next = self.control_report.val().into();
        }
        if self.busy.q.val() & self.control.ready.val() {
            self.busy.d.next = false;
            self.outcome.d.next = self.control_result.val();
        }
        if self.poke.val() {
            if self.offset.val() == LOG {
                self.logs.d.next = true;
                self.log.d.next = self.data.val().get_bits::<8>(0);
            }
            if self.offset.val() == TIMER_COMPARE {
                self.timer_compare.d.next = self.data.val();
            }
            if self.offset.val() == TIMER_ENABLE {
                self.timer_enabled.d.next = self.data.val().get_bit(0);
            }
            if self.offset.val() == MAILBOX_ANSWER {
                self.last_answer.d.next = self.data.val();
            }
            if self.offset.val() == FIRMWARE_START {
                self.start.d.next = self.data.val();
            }
            if self.offset.val() == CONTROL_START {
                self.one_request_at_a_time.ok.next = !self.busy.q.val();
                if !self.busy.q.val() {
                    self.busy.d.next = true;
                    self.operation.d.next = self.data.val().get_bits::<8>(0);
                    self.index.d.next = self.data.val().get_bits::<16>(16);
                }
            }
            if (self.offset.val() >= CONTROL_DATA)
                & (self.offset.val() < CONTROL_DATA_END)
                & !self.busy.q.val()
            {
                match self.word_index.val().index() {
                    0 => self.words.d.next.w0 = self.data.val(),
                    1 => self.words.d.next.w1 = self.data.val(),
                    2 => self.words.d.next.w2 = self.data.val(),
                    3 => self.words.d.next.w3 = self.data.val(),
                    4 => self.words.d.next.w4 = self.data.val(),
                    5 => self.words.d.next.w5 = self.data.val(),
                    6 => self.words.d.next.w6 = self.data.val(),
                    7 => self.words.d.next.w7 = self.data.val(),
                    8 => self.words.d.next.w8 = self.data.val(),
                    _ => self.words.d.next.w9 = self.data.val(),
                }
            }
        }
        if !self.running.val() {
            self.start.d.next = 0.into();
            self.timer_enabled.d.next = false;
        }
        self.mailbox_answer.next = self.last_answer.q.val();
        self.firmware_start.next = self.start.q.val();
        self.log_data.next = self.log.q.val();
        self.log_valid.next = self.logs.q.val();
        self.control.valid.next = self.busy.q.val();
        self.control.data.next = ControlRequest {
            operation: self.operation.q.val(),
            index: self.index.q.val(),
            data: self.words.q.val().into(),
        };

        // The gates: frames, events, their reset.
        self.gates.running.next = self.running.val();
        self.gates.offset.next = self.offset.val();
        self.gates.poke.next = self.poke.val();
        self.gates.data.next = self.data.val();
        self.gates.mailbox_pending.next = self.mailbox_request.val() != self.last_answer.q.val();
        self.gates.control_busy.next = self.busy.q.val();
        self.gates_reset_request.next = self.gates.gates_reset_request.val();
        self.gates.gates_ready.next = self.gates_ready.val();
        self.frame_send.next = self.gates.frame_send.val();
        self.gates.frame_out_ready.next = self.frame_out_ready.val();
        self.gates.frame_in_valid.next = self.frame_in_valid.val();
        self.frame_take.next = self.gates.frame_take.val();
        self.gates.frame_dropped.next = self.frame_dropped.val();
        self.gates.told.valid.next = self.told_valid.val();
        self.gates.told.data.next = self.told.val();
        self.frame_write.next = self.poke.val() & self.in_frame_out.val();
        self.frame_write_address.next = self.offset.val().get_bits::<5>(2);
        self.frame_write_data.next = self.data.val();
        self.frame_read_address.next = self.offset.val().get_bits::<5>(2);

        // The mailbox.
        store!(
            self.command.write,
            self.mailbox_write.val() & !self.mailbox_address.val().get_bit(5),
            bit_cast::<16, 5>(self.mailbox_address.val().get_bits::<5>(0)),
            self.mailbox_write_data.val()
        );
        self.command.read_address.next = bit_cast::<16, 5>(self.offset.val().get_bits::<5>(2));
        store!(
            self.command_copy.write,
            self.mailbox_write.val() & !self.mailbox_address.val().get_bit(5),
            bit_cast::<16, 5>(self.mailbox_address.val().get_bits::<5>(0)),
            self.mailbox_write_data.val()
        );
        self.command_copy.read_address.next =
            bit_cast::<16, 5>(self.mailbox_address.val().get_bits::<5>(0));
        store!(
            self.result.write,
            self.poke.val() & self.in_result.val(),
            bit_cast::<16, 5>(self.offset.val().get_bits::<5>(2)),
            self.data.val()
        );
        self.result.read_address.next =
            bit_cast::<16, 5>(self.mailbox_address.val().get_bits::<5>(0));
        self.host_looks_at_result.d.next = self.mailbox_address.val().get_bit(5);
        self.mailbox_read_data.next = self.command_copy.read_data.val();
        if self.host_looks_at_result.q.val() {
            self.mailbox_read_data.next = self.result.read_data.val();
        }
    }
}
