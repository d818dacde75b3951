//! The card's counters.
//!
//! ```text
//!   frames_sent ─────► pending ─┐
//!   frames_received ─► pending ─┼─► the one whose turn it is ─► handed ─► + ─┬─► control_result   (CounterRead)
//!   …                           │                                         ▲  │
//!                                                               totals ───┘  │
//!                                                                 ▲          │
//!                                                                 └──────────┘
//! ```
//!
//! One input a counter, named and ordered as `abi::control::Counter`: how many of these have
//! happened in this cycle, as several blocks may count the same. Counters wrap at 2^32 and are
//! cleared by reset only.
//!
//! The totals are in a memory, and the counters take turns, one in a cycle. In its turn a counter hands over what it has counted since the last one, and its
//! total is read; in the cycle behind that the sum of both is written back. Then the counter can be read: the sum has in it all that was counted in
//! earlier cycles. So an answer comes within a round of [`COUNTERS`] cycles. A request leaves no trace and may be withdrawn at any time.
//!
//! Reset doesn't clear the memory. Instead, no total is looked at until each has been written.

use crate::prelude::*;
use crate::prim::Ram;
use crate::types::ControlRequest;
use abi::control::{Counter, Operation};

/// Number of counters.
pub const COUNTERS: usize = Counter::ALL.len();

/// The counter whose turn is the last of a round.
const LAST: u64 = COUNTERS as u64 - 1;

const _: () = assert!(
    COUNTERS <= 1 << 5,
    "the kernel numbers the counters in 5 bits"
);

/// What an input of 3 bits counts at most in a cycle.
const MOST: usize = (1 << 3) - 1;

const _: () = assert!(
    COUNTERS * MOST < 1 << 8,
    "8 bits hold what a counter counts from one turn to the next"
);

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
    /// A control request; taken when it is done: within [`COUNTERS`] cycles, and at once if there is no such counter.
    pub control: Stream<In, ControlRequest>,
    /// The counter that was asked for, with all that was counted in earlier cycles; zero if there is no such one.
    pub control_result: Signal<Out, Bits<64>>,
    /// What each has counted since its last turn.
    #[each(COUNTERS)]
    pending: Vec<Reg<Bits<8>>>,
    #[is(Ram::distributed(COUNTERS))]
    totals: Ram<Bits<32>>,
    /// The counter whose turn it is.
    turn: Reg<Bits<5>>,
    /// The one whose turn it was in the last cycle, and
    #[is(Reg::new(LAST.into()))]
    current: Reg<Bits<5>>,
    /// what it has handed over.
    handed: Reg<Bits<8>>,
    /// Each total has been written since reset.
    cleared: Reg<Bit>,

    #[each(COUNTERS)]
    amount: Vec<Signal<Local, Bits<3>>>,
    /// What is pending, with what is counted in this cycle.
    #[each(COUNTERS)]
    gathered: Vec<Signal<Local, Bits<8>>>,
    #[each(COUNTERS)]
    hands_over: Vec<Signal<Local, Bit>>,
    /// Of the current counter: its total of the last round, and
    total: Signal<Local, Bits<32>>,
    /// that of this one.
    sum: Signal<Local, Bits<32>>,
    /// The current counter is asked for.
    is_asked_for: Signal<Local, Bit>,
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
        self.gather();
        self.add();
        self.answer();
    }
}

#[block]
impl Counters {
    /// Each counts; the one whose turn it is hands over.
    fn gather(&mut self) {
        self.amount[0].next = self.frames_sent.val();
        self.amount[1].next = self.frames_received.val();
        self.amount[2].next = self.crc_errors.val();
        self.amount[3].next = self.length_errors.val();
        self.amount[4].next = self.type_errors.val();
        self.amount[5].next = self.pair_errors.val();
        self.amount[6].next = self.duplicates.val();
        self.amount[7].next = self.gaps.val();
        self.amount[8].next = self.timeouts.val();
        self.amount[9].next = self.invalid_requests.val();
        self.amount[10].next = self.doorbell_errors.val();
        self.amount[11].next = self.expected.val();
        self.amount[12].next = self.unexpected.val();
        self.amount[13].next = self.completions.val();
        self.amount[14].next = self.match_overflows.val();
        self.amount[15].next = self.credit_asks.val();
        self.amount[16].next = self.firmware_frames_dropped.val();
        self.amount[17].next = self.repeats.val();
        self.amount[18].next = self.rule_drops.val();
        self.turn.d.next = self.turn.q.val() + 1;
        if self.turn.q.val() == LAST {
            self.turn.d.next = 0.into();
            self.cleared.d.next = true;
        }
        self.current.d.next = self.turn.q.val();
        self.handed.d.next = 0.into();
        for i in 0..self._n {
            self.gathered[i].next =
                self.pending[i].q.val() + bit_cast::<8, 3>(self.amount[i].val());
            self.pending[i].d.next = self.gathered[i].val();
            self.hands_over[i].next = self.turn.q.val() == i.to_bits();
            if self.hands_over[i].val() {
                self.handed.d.next = self.gathered[i].val();
                self.pending[i].d.next = 0.into();
            }
        }
    }

    /// What was handed over in the last cycle goes into the total.
    fn add(&mut self) {
        self.totals.read_address.next = bit_cast::<16, 5>(self.turn.q.val());
        self.total.next = 0.into();
        if self.cleared.q.val() {
            self.total.next = self.totals.read_data.val();
        }
        self.sum.next = self.total.val() + bit_cast::<32, 8>(self.handed.q.val());
        store!(
            self.totals.write,
            true,
            bit_cast::<16, 5>(self.current.q.val()),
            self.sum.val()
        );
    }

    /// A counter is read when it is the current one.
    fn answer(&mut self) {
        self.is_asked_for.next =
            self.control.data.val().index == bit_cast::<16, 5>(self.current.q.val());
        self.control.ready.next = self.is_asked_for.val() | (self.control.data.val().index > LAST);
        self.control_result.next = 0.into();
        if self.is_asked_for.val() {
            self.control_result.next = bit_cast::<64, 32>(self.sum.val());
        }
    }
}
