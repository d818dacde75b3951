//! The card's counters.
//!
//! ```text
//!   frames_sent ─────►┌──────────┐
//!   frames_received ─►│ Counters │◄── control (CounterRead)
//!   …                 │ 32 bits  │──► control_result
//!                     └──────────┘
//! ```
//!
//! One input a counter, named and ordered as `abi::control::Counter`: how many of these have
//! happened in this cycle, as several blocks may count the same. Counters wrap at 2^32 and are
//! cleared by reset only.

use crate::prelude::*;
use crate::types::ControlRequest;
use abi::control::{Counter, Operation};

/// Number of counters.
pub const COUNTERS: usize = Counter::ALL.len();

/// All counters.
#[block]
pub struct Counters {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Clears them.
    pub reset: Signal<In, Bit>,
    /// [`Counter::FramesSent`] in this cycle.
    pub frames_sent: Signal<In, Bits<3>>,
    /// [`Counter::FramesReceived`] in this cycle.
    pub frames_received: Signal<In, Bits<3>>,
    /// [`Counter::CrcErrors`] in this cycle.
    pub crc_errors: Signal<In, Bits<3>>,
    /// [`Counter::LengthErrors`] in this cycle.
    pub length_errors: Signal<In, Bits<3>>,
    /// [`Counter::TypeErrors`] in this cycle.
    pub type_errors: Signal<In, Bits<3>>,
    /// [`Counter::PairErrors`] in this cycle.
    pub pair_errors: Signal<In, Bits<3>>,
    /// [`Counter::Duplicates`] in this cycle.
    pub duplicates: Signal<In, Bits<3>>,
    /// [`Counter::Gaps`] in this cycle.
    pub gaps: Signal<In, Bits<3>>,
    /// [`Counter::Timeouts`] in this cycle.
    pub timeouts: Signal<In, Bits<3>>,
    /// [`Counter::InvalidRequests`] in this cycle.
    pub invalid_requests: Signal<In, Bits<3>>,
    /// [`Counter::DoorbellErrors`] in this cycle.
    pub doorbell_errors: Signal<In, Bits<3>>,
    /// [`Counter::Expected`] in this cycle.
    pub expected: Signal<In, Bits<3>>,
    /// [`Counter::Unexpected`] in this cycle.
    pub unexpected: Signal<In, Bits<3>>,
    /// [`Counter::Completions`] in this cycle.
    pub completions: Signal<In, Bits<3>>,
    /// [`Counter::MatchOverflows`] in this cycle.
    pub match_overflows: Signal<In, Bits<3>>,
    /// [`Counter::CreditAsks`] in this cycle.
    pub credit_asks: Signal<In, Bits<3>>,
    /// [`Counter::FirmwareFramesDropped`] in this cycle.
    pub firmware_frames_dropped: Signal<In, Bits<3>>,
    /// [`Counter::Repeats`] in this cycle.
    pub repeats: Signal<In, Bits<3>>,
    /// [`Counter::RuleDrops`] in this cycle.
    pub rule_drops: Signal<In, Bits<3>>,
    /// A control request; taken when it is done.
    pub control: Stream<In, ControlRequest>,
    /// The counter that was asked for; zero if there is no such one.
    pub control_result: Signal<Out, Bits<64>>,
    #[each(COUNTERS)]
    amount: Vec<Signal<Local, Bits<32>>>,
    #[each(COUNTERS)]
    count: Vec<Reg<Bits<32>>>,
    asked_for: Signal<Local, Bits<32>>,
    #[is(COUNTERS)]
    _n: usize,
}

impl Counters {
    /// The control requests that it takes.
    pub const REQUESTS: &[Operation] = &[Operation::CounterRead];
}

#[block]
impl Logic for Counters {
    fn update(&mut self) {
        self.amount[0].next = bit_cast::<32, 3>(self.frames_sent.val());
        self.amount[1].next = bit_cast::<32, 3>(self.frames_received.val());
        self.amount[2].next = bit_cast::<32, 3>(self.crc_errors.val());
        self.amount[3].next = bit_cast::<32, 3>(self.length_errors.val());
        self.amount[4].next = bit_cast::<32, 3>(self.type_errors.val());
        self.amount[5].next = bit_cast::<32, 3>(self.pair_errors.val());
        self.amount[6].next = bit_cast::<32, 3>(self.duplicates.val());
        self.amount[7].next = bit_cast::<32, 3>(self.gaps.val());
        self.amount[8].next = bit_cast::<32, 3>(self.timeouts.val());
        self.amount[9].next = bit_cast::<32, 3>(self.invalid_requests.val());
        self.amount[10].next = bit_cast::<32, 3>(self.doorbell_errors.val());
        self.amount[11].next = bit_cast::<32, 3>(self.expected.val());
        self.amount[12].next = bit_cast::<32, 3>(self.unexpected.val());
        self.amount[13].next = bit_cast::<32, 3>(self.completions.val());
        self.amount[14].next = bit_cast::<32, 3>(self.match_overflows.val());
        self.amount[15].next = bit_cast::<32, 3>(self.credit_asks.val());
        self.amount[16].next = bit_cast::<32, 3>(self.firmware_frames_dropped.val());
        self.amount[17].next = bit_cast::<32, 3>(self.repeats.val());
        self.amount[18].next = bit_cast::<32, 3>(self.rule_drops.val());
        self.control.ready.next = true;
        self.asked_for.next = 0.into();
        for i in 0..self._n {
            if self.amount[i].val().any() {
                self.count[i].d.next = self.count[i].q.val() + self.amount[i].val();
            }
            if self.control.data.val().index == i.to_bits() {
                self.asked_for.next = self.count[i].q.val();
            }
        }
        self.control_result.next = bit_cast::<64, 32>(self.asked_for.val());
    }
}
