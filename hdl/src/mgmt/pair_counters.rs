//! The counters of each pair: what has happened to its frames, by cause.
//!
//! ```text
//!   of frames that come ─► Fifo ─┐
//!   of sends ────────────► Fifo ─┼─► oldest ─► Table: 16 counters a pair ─► + 1 ─┐
//!   of rules ────────────► Fifo ─┤               ▲    │                         │
//!   of refused accesses ─► Fifo ─┘               │    │                         │
//!                                                └────┼─────────────────────────┘
//!   control (PairCounterRead, PairSet) ───────────────┴─► control_result
//! ```
//!
//! What happens waits for nothing: it comes as a pulse with its pair, queues for a moment, and is added in two cycles. One kind of thing happens to a
//! pair in a cycle, of each of the four. `PairSet` clears the pair's counters; of a pair that isn't in the table nothing is counted.

#![allow(
    missing_docs,
    reason = "the LogicStruct derive makes methods without documentation"
)]

use crate::config::{Config, JOBS};
use crate::prelude::*;
use crate::prim::{Fifo, Table};
use crate::types::{ControlRequest, RemoteRefusal};
use abi::control::{Operation, PAIR_COUNTER_BITS, PairCounter, RefusalReason};

const _: () = assert!(
    PAIR_COUNTER_BITS == 4,
    "the kernel puts the counter's code there"
);

/// The counters of refusals are behind each other as their reasons are.
const FIRST_REFUSAL: u8 = 8;
const _: () = {
    let mut at = 0;
    while at < RefusalReason::ALL.len() {
        let reason = RefusalReason::ALL[at];
        let counter = PairCounter::of_refusals(reason).code();
        assert!(counter == FIRST_REFUSAL + reason.code() && reason.code() < FIRST_REFUSAL);
        at += 1;
    }
};

/// What frames and rules bring at most before the first of it is added: they are cycles apart.
const FEW: usize = 4;
/// What sends bring at most: as many may be repeated in a row as Gather has jobs, and others are behind them.
const MANY: usize = 2 * JOBS;

/// What refusals bring at most: puts whose payloads are in the card already may be refused every four cycles.
const SOME: usize = 16;

/// It has happened once more.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Counted {
    pair: Bits<16>,
    counter: Bits<8>,
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    /// Something is looked for that has happened, or the firmware asks.
    Idle,
    /// The counter of what has happened is there.
    Add,
    /// The counter that the firmware asks for is there.
    Answer,
    /// Those of a pair are cleared, one after the other.
    Clear,
}

/// The counters of all pairs.
#[block(config: &Config)]
pub struct PairCounters {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Clears them.
    pub reset: Signal<In, Bit>,
    /// They are cleared.
    pub initialized: Signal<Out, Bit>,
    /// Pair that a frame names.
    pub frame_pair: Signal<In, Bits<16>>,
    /// Pulse: [`PairCounter::FramesReceived`] of it; of the four that a frame may be it is one.
    pub frames_received: Signal<In, Bit>,
    /// Pulse: [`PairCounter::PairErrors`].
    pub pair_errors: Signal<In, Bit>,
    /// Pulse: [`PairCounter::Duplicates`].
    pub duplicates: Signal<In, Bit>,
    /// Pulse: [`PairCounter::Gaps`].
    pub gaps: Signal<In, Bit>,
    /// Pair whose sends are looked at.
    pub send_pair: Signal<In, Bits<16>>,
    /// Pulse: [`PairCounter::Timeouts`] of it; one of three.
    pub timeouts: Signal<In, Bit>,
    /// Pulse: [`PairCounter::Repeats`].
    pub repeats: Signal<In, Bit>,
    /// Pulse: [`PairCounter::CreditAsks`].
    pub credit_asks: Signal<In, Bit>,
    /// Pair of a message that falls under a rule.
    pub ruled_pair: Signal<In, Bits<16>>,
    /// Pulse: [`PairCounter::RuleDrops`] of it.
    pub rule_drops: Signal<In, Bit>,
    /// An access of a peer was refused: the counter of its reason.
    pub refused: Pulse<In, RemoteRefusal>,
    /// A control request; taken when it is done.
    pub control: Stream<In, ControlRequest>,
    /// With it, for `PairCounterRead`: the counter. Zero otherwise, and for a pair that isn't in the table.
    pub control_result: Signal<Out, Bits<64>>,

    #[is(Table::block(config.pairs << PAIR_COUNTER_BITS))]
    memory: Table<Bits<32>>,
    #[is(Fifo::new(FEW))]
    frames: Fifo<Counted>,
    #[is(Fifo::new(MANY))]
    sends: Fifo<Counted>,
    #[is(Fifo::new(FEW))]
    rules: Fifo<Counted>,
    #[is(Fifo::new(SOME))]
    refusals: Fifo<Counted>,
    state: Reg<State>,
    place: Reg<Bits<16>>,
    cleared: Reg<Bits<4>>,

    frame: Signal<Local, Counted>,
    send: Signal<Local, Counted>,
    frame_comes: Signal<Local, Bit>,
    send_comes: Signal<Local, Bit>,
    next: Signal<Local, Counted>,
    next_place: Signal<Local, Bits<16>>,
    has_next: Signal<Local, Bit>,
    is_set: Signal<Local, Bit>,
    asked_for: Signal<Local, Bits<16>>,
    of_pair: Signal<Local, Bits<16>>,
    #[is(constant(config.pairs as u64))]
    pairs: Constant<Bits<16>>,
    #[is(Check::new("nothing_that_is_counted_is_lost"))]
    nothing_is_lost: Check,
    #[is(Check::new("one_thing_happens_to_a_frame"))]
    one_happens: Check,
}

impl PairCounters {
    /// The control requests that it takes.
    pub const REQUESTS: &[Operation] = &[Operation::PairCounterRead, Operation::PairSet];

    /// The counters of a card's pairs.
    pub fn new(config: &Config) -> Self {
        Self::build(config)
    }
}

#[block]
impl Logic for PairCounters {
    fn update(&mut self) {
        self.initialized.next = self.memory.initialized.val();

        // What has happened queues.
        self.frame_comes.next = (self.frames_received.val()
            | self.pair_errors.val()
            | self.duplicates.val()
            | self.gaps.val())
            & (self.frame_pair.val() < self.pairs.val());
        self.frame.next = Counted {
            pair: self.frame_pair.val(),
            counter: PairCounter::FramesReceived.into(),
        };
        if self.pair_errors.val() {
            self.frame.next.counter = PairCounter::PairErrors.into();
        }
        if self.duplicates.val() {
            self.frame.next.counter = PairCounter::Duplicates.into();
        }
        if self.gaps.val() {
            self.frame.next.counter = PairCounter::Gaps.into();
        }
        send!(self.frames.input, self.frame_comes.val(), self.frame.val());
        self.send_comes.next = self.timeouts.val() | self.repeats.val() | self.credit_asks.val();
        self.send.next = Counted {
            pair: self.send_pair.val(),
            counter: PairCounter::Timeouts.into(),
        };
        if self.repeats.val() {
            self.send.next.counter = PairCounter::Repeats.into();
        }
        if self.credit_asks.val() {
            self.send.next.counter = PairCounter::CreditAsks.into();
        }
        send!(self.sends.input, self.send_comes.val(), self.send.val());
        send!(
            self.rules.input,
            self.rule_drops.val(),
            Counted {
                pair: self.ruled_pair.val(),
                counter: PairCounter::RuleDrops.into(),
            }
        );
        send!(
            self.refusals.input,
            self.refused.valid.val(),
            Counted {
                pair: self.refused.data.val().pair,
                counter: self.refused.data.val().reason | FIRST_REFUSAL,
            }
        );
        self.nothing_is_lost.ok.next = (self.frames.input.ready.val() | !self.frame_comes.val())
            & (self.sends.input.ready.val() | !self.send_comes.val())
            & (self.rules.input.ready.val() | !self.rule_drops.val())
            & (self.refusals.input.ready.val() | !self.refused.valid.val());
        self.one_happens.ok.next = !(self.frames_received.val()
            & (self.pair_errors.val() | self.duplicates.val() | self.gaps.val()));

        // Frames come most often and have the least room, so they go first, and sends last.
        self.has_next.next = self.frames.output.valid.val()
            | self.rules.output.valid.val()
            | self.refusals.output.valid.val()
            | self.sends.output.valid.val();
        self.next.next = self.sends.output.data.val();
        if self.refusals.output.valid.val() {
            self.next.next = self.refusals.output.data.val();
        }
        if self.rules.output.valid.val() {
            self.next.next = self.rules.output.data.val();
        }
        if self.frames.output.valid.val() {
            self.next.next = self.frames.output.data.val();
        }
        self.frames.output.ready.next = false;
        self.rules.output.ready.next = false;
        self.refusals.output.ready.next = false;
        self.sends.output.ready.next = false;

        // A counter's place.
        self.is_set.next = self.control.data.val().operation == Operation::PairSet;
        self.asked_for.next = self.control.data.val().index;
        self.of_pair.next = self.control.data.val().index << 4;
        self.control.ready.next = false;
        self.control_result.next = 0.into();
        self.next_place.next =
            (self.next.val().pair << 4) | bit_cast::<16, 8>(self.next.val().counter);
        self.memory.read_address.next = self.next_place.val();
        store!(
            self.memory.write,
            false,
            self.place.q.val(),
            self.memory.read_data.val() + 1
        );

        match self.state.q.val() {
            State::Idle => {
                if self.memory.initialized.val() {
                    if self.control.valid.val() {
                        if self.is_set.val() {
                            self.cleared.d.next = 0.into();
                            self.state.d.next = State::Clear;
                        } else {
                            self.memory.read_address.next = self.asked_for.val();
                            self.state.d.next = State::Answer;
                        }
                    } else if self.has_next.val() {
                        self.place.d.next = self.next_place.val();
                        self.state.d.next = State::Add;
                        if self.frames.output.valid.val() {
                            self.frames.output.ready.next = true;
                        } else if self.rules.output.valid.val() {
                            self.rules.output.ready.next = true;
                        } else if self.refusals.output.valid.val() {
                            self.refusals.output.ready.next = true;
                        } else {
                            self.sends.output.ready.next = true;
                        }
                    }
                }
            }
            State::Add => {
                self.memory.write.enable.next = true;
                self.state.d.next = State::Idle;
            }
            State::Answer => {
                self.control.ready.next = true;
                if (self.asked_for.val() >> 4) < self.pairs.val() {
                    self.control_result.next = bit_cast::<64, 32>(self.memory.read_data.val());
                }
                self.state.d.next = State::Idle;
            }
            State::Clear => {
                store!(
                    self.memory.write,
                    self.control.data.val().index < self.pairs.val(),
                    self.of_pair.val() | bit_cast::<16, 4>(self.cleared.q.val()),
                    0.into()
                );
                self.cleared.d.next = self.cleared.q.val() + 1;
                if self.cleared.q.val() == 15 {
                    self.control.ready.next = true;
                    self.state.d.next = State::Idle;
                }
            }
            _ => {}
        }
    }
}
