//! Answers the gets of peers: keeps each until its pair's turn, and has Gather read it beside the sends.
//!
//! ```text
//!   asked ──► gets, 16 a pair ──► turns of pairs ──► offer ◄──► shut_query, shut_out
//!                  ▲                                   │
//!   control ───────┘ forgets                           ▼
//!   sends_job ───────────────────────────────────► one at a time ──► job ──► Gather
//!   job_room ◄──────── withheld for an answer ◄──── gather_room ◄─────────────┤
//!   refused ◄──────────────── queue ◄────────────── answer_decided ◄──────────┘
//! ```
//!
//! A get waits in a place of its pair by the low bits of its number. A peer that keeps to the rules has at most 16 gets without an answer, so each has a
//! place; one that comes again while it waits takes its own. The pairs that have gets waiting stand in the queue of turns, each once, and one get is answered
//! in a turn: a peer that floods delays only itself. So `asked` never waits for the wire.
//!
//! **Room.** SendQueues gives a send four cycles after it has seen `job_room`, and Gather's `room` knows of it two cycles later. So an answer's job comes
//! when `job_room` has been low for five cycles. It stays low until `gather_room` knows of the answer, and then the sends have the room for themselves for
//! some cycles.
//!
//! **Refusals.** A peer that is shut out is answered without a look at Regions. Each answer that is denied, for this reason or by Regions, is told by
//! `refused`. No more answers are under way than have a place in its queue.
//!
//! **The end of a pair.** `PairSet` and `PairClear` forget the gets of the pair that wait, and Gather drops its answers. The request is done when all that
//! Gather reads for peers is decided and told: that waits for memory, and not for the wire.

#![allow(
    missing_docs,
    reason = "the LogicStruct derive makes methods without documentation"
)]

use crate::config::{Config, JOBS};
use crate::prelude::*;
use crate::prim::{BlockRam, Fifo, Lowest, Table};
use crate::types::{ControlRequest, RemoteGet, SendJob};
use abi::control::Operation;
use abi::limits::MAX_UNACKNOWLEDGED;

/// Gets of a pair that may wait.
const PLACES: usize = 16;
/// Cycles from the first with `job_room` low until `gather_room` knows of every send.
const SETTLES: usize = 5;
/// Cycles with room that are the sends' after an answer.
const RESTS: usize = 8;

const _: () = assert!(
    MAX_UNACKNOWLEDGED as usize == PLACES && JOBS == 16,
    "widths below"
);

/// A get that waits.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Get {
    key: Bits<64>,
    offset: Bits<64>,
    length: Bits<16>,
    number: Bits<32>,
}

/// What waits of a pair.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Waiting {
    /// A bit for each place.
    waits: Bits<16>,
    /// The place behind that which was answered last.
    first: Bits<4>,
    /// The pair is in the queue of turns.
    queued: Bit,
}

/// What is done to the chosen pair.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Step {
    /// The next thing to do is chosen, and what waits of its pair read.
    Look,
    /// A get comes.
    Admit,
    /// It is its turn: its places are known,
    Turn,
    /// one of them is picked,
    Pick,
    /// and the get comes out of the memory.
    Read,
    /// What waits of it is forgotten.
    Forget,
}

/// Whose the room in Gather is.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Gate {
    /// The sends'.
    Open,
    /// An answer's, when what was given before is known of.
    Hold,
    /// An answer has been given in the cycle before.
    After,
}

/// What answers gets.
#[block(config: &Config)]
pub struct Responder {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Forgets everything.
    pub reset: Signal<In, Bit>,
    /// The table is cleared.
    pub initialized: Signal<Out, Bit>,
    /// A get of a peer: all that was before it has been written. Never waits for the wire. One of a pair beyond the table is dropped.
    pub asked: Stream<In, RemoteGet>,
    /// Is this get's peer shut out? One of length 0 isn't asked about.
    pub shut_query: Stream<Out, RemoteGet>,
    /// In the cycle in which the question is taken: it is.
    pub shut_out: Signal<In, Bit>,
    /// `room` of Gather.
    pub gather_room: Signal<In, Bit>,
    /// The same, for SendQueues.
    pub job_room: Signal<Out, Bit>,
    /// A send of SendQueues, four cycles after it has seen `job_room`.
    pub sends_job: Pulse<In, SendJob>,
    /// It, or an answer, for Gather.
    pub job: Pulse<Out, SendJob>,
    /// Gather has decided the oldest answer without a decision, which is of this pair.
    pub answer_decided: Pulse<In, Bits<16>>,
    /// With it: the peer may not read.
    pub answer_denied: Signal<In, Bit>,
    /// A get of this pair's peer was denied.
    pub refused: Stream<Out, Bits<16>>,
    /// This pair's answers that Gather has aren't to be sent, what is given in this cycle included.
    pub dropped: Pulse<Out, Bits<16>>,
    /// A control request; taken when it is done.
    pub control: Stream<In, ControlRequest>,

    // What waits.
    #[is(BlockRam::new(PLACES * config.pairs))]
    gets: BlockRam<Get>,
    #[is(Table::new(config.pairs))]
    waiting: Table<Waiting>,
    #[is(Fifo::new(config.pairs + 1))]
    turns: Fifo<Bits<16>>,
    step: Reg<Step>,
    pair: Reg<Bits<16>>,
    /// The last step was that of a get that came: a turn comes first.
    admitted_last: Reg<Bit>,
    held: Signal<Local, Waiting>,
    changed: Signal<Local, Waiting>,
    write: Signal<Local, Bit>,
    push: Signal<Local, Bit>,
    known: Signal<Local, Bit>,
    control_begins: Signal<Local, Bit>,
    turn_comes: Signal<Local, Bit>,
    admits: Signal<Local, Bit>,
    address: Signal<Local, Bits<16>>,
    number: Signal<Local, Bits<32>>,
    asked_place: Signal<Local, Bits<4>>,
    asked_bit: Signal<Local, Bits<16>>,
    coming: Signal<Local, Get>,
    found: Signal<Local, Get>,
    // The places of the pair whose turn it is.
    waits: Reg<Bits<16>>,
    first: Reg<Bits<4>>,
    from_first: Signal<Local, Bits<16>>,
    later: Signal<Local, Bits<16>>,
    choose: Lowest<16>,
    picked: Signal<Local, Bits<4>>,
    left: Signal<Local, Bits<16>>,

    // The get that is to be given next.
    offered: Reg<Bit>,
    offer: Reg<RemoteGet>,
    /// It isn't known whether its peer is shut out,
    asks: Reg<Bit>,
    /// and it is.
    denied: Reg<Bit>,
    withdraws: Signal<Local, Bit>,

    // Room.
    gate: Reg<Gate>,
    rest: Reg<Bits<4>>,
    rested: Signal<Local, Bit>,
    settles: Reg<Bits<4>>,
    settled: Signal<Local, Bit>,
    may_give: Signal<Local, Bit>,
    gives: Signal<Local, Bit>,
    answer: Signal<Local, SendJob>,

    // Refusals.
    #[is(Fifo::new(JOBS))]
    refusals: Fifo<Bits<16>>,
    is_denied: Signal<Local, Bit>,
    /// Answers that are not decided, and refusals that are not told.
    open: Reg<Bits<8>>,
    open_next: Signal<Local, Bits<8>>,
    has_place: Signal<Local, Bit>,

    // Control.
    forgets: Signal<Local, Bit>,
    /// The pair is forgotten: the request is done when nothing is open.
    drains: Reg<Bit>,
    drained: Signal<Local, Bit>,

    #[is(constant(0xffff_u64))]
    ones: Constant<Bits<16>>,
    #[is(constant(config.pairs as u64))]
    pairs: Constant<Bits<16>>,
    sends_come_in_time: Check,
    each_pair_has_one_turn: Check,
    each_refusal_has_a_place: Check,
}

impl Responder {
    /// The control requests that it takes.
    pub const REQUESTS: &[Operation] = &[Operation::PairSet, Operation::PairClear];

    /// For the pairs of a card.
    ///
    /// # Panics
    /// If there are over 4096 pairs.
    pub fn new(config: &Config) -> Self {
        assert!(config.pairs * PLACES <= 1 << 16, "an address has 16 bits");
        Self::build(config)
    }
}

#[block(pairs = self.pairs.val().index())]
impl Logic for Responder {
    fn update(&mut self) {
        self.initialized.next = self.waiting.initialized.val();

        // Which pair something is done to: what waits of it is read in this cycle, and changed in the next.
        self.control_begins.next =
            self.control.valid.val() & !self.drains.q.val() & !self.asks.q.val();
        self.turn_comes.next =
            self.turns.output.valid.val() & !self.offered.q.val() & !self.control.valid.val();
        self.admits.next =
            self.asked.valid.val() & !(self.admitted_last.q.val() & self.turn_comes.val());
        self.address.next = self.pair.q.val();
        if self.step.q.val() == Step::Look {
            self.address.next = self.turns.output.data.val();
            if self.control_begins.val() {
                self.address.next = self.control.data.val().index;
            } else if self.admits.val() {
                self.address.next = self.asked.data.val().pair;
            }
        }
        self.waiting.read_address.next = self.address.val();
        self.held.next = self.waiting.read_data.val();
        self.known.next = self.pair.q.val() < self.pairs.val();

        // The place of a get that comes.
        self.number.next = self.asked.data.val().number;
        self.asked_place.next = self.number.val().get_bits::<4>(0);
        self.asked_bit.next = bits::<16>(1) << self.asked_place.val();
        self.coming.next = Get {
            key: self.asked.data.val().key,
            offset: self.asked.data.val().offset,
            length: self.asked.data.val().length,
            number: self.number.val(),
        };
        store!(
            self.gets.write,
            false,
            (self.pair.q.val() << 4) | bit_cast::<16, 4>(self.asked_place.val()),
            self.coming.val()
        );

        // The place whose turn it is: the first that waits from `first` on, or else the first.
        self.from_first.next = self.ones.val() << self.first.q.val();
        self.later.next = self.waits.q.val() & self.from_first.val();
        if !self.later.val().any() {
            self.later.next = self.waits.q.val();
        }
        self.choose.set.next = self.later.val();
        self.left.next = self.waits.q.val() & !self.choose.lowest.val();
        self.picked.next = 0.into();
        for i in 0..PLACES {
            if self.choose.lowest.val().get_bit(i) {
                self.picked.next = i.to_bits();
            }
        }
        self.gets.read_address.next =
            (self.pair.q.val() << 4) | bit_cast::<16, 4>(self.picked.val());
        self.found.next = self.gets.read_data.val();

        // The answer on offer, and whether its peer is shut out.
        send!(self.shut_query, self.asks.q.val(), self.offer.q.val());
        if self.asks.q.val() & self.shut_query.ready.val() {
            self.asks.d.next = false;
            self.denied.d.next = self.shut_out.val();
        }

        // It is given when no send can come, and `gather_room` knows of all that have.
        self.rested.next = !self.rest.q.val().any();
        self.settled.next = !self.settles.q.val().any();
        self.has_place.next = self.open.q.val() != JOBS;
        self.may_give.next =
            self.offered.q.val() & !self.asks.q.val() & !self.drains.q.val() & self.has_place.val();
        self.gives.next = (self.gate.q.val() == Gate::Hold)
            & self.settled.val()
            & self.may_give.val()
            & self.gather_room.val();
        self.job_room.next = self.gather_room.val() & (self.gate.q.val() == Gate::Open);
        match self.gate.q.val() {
            Gate::Open => {
                if !self.rested.val() {
                    if self.gather_room.val() {
                        self.rest.d.next = self.rest.q.val() - 1;
                    }
                } else if self.may_give.val() {
                    self.settles.d.next = SETTLES.into();
                    self.gate.d.next = Gate::Hold;
                }
            }
            Gate::Hold => {
                if !self.settled.val() {
                    self.settles.d.next = self.settles.q.val() - 1;
                } else if self.gives.val() {
                    self.gate.d.next = Gate::After;
                } else if !self.offered.q.val() | self.drains.q.val() {
                    // It is withdrawn, or waits for the end of a pair, which the sends don't wait for.
                    self.gate.d.next = Gate::Open;
                }
            }
            Gate::After => {
                self.rest.d.next = RESTS.into();
                self.gate.d.next = Gate::Open;
            }
        }
        self.answer.next = SendJob::default();
        self.answer.next.pair = self.offer.q.val().pair;
        self.answer.next.length = self.offer.q.val().length;
        self.answer.next.match_bits = self.offer.q.val().key;
        self.answer.next.immediate = self.offer.q.val().offset;
        self.answer.next.answer = true;
        self.answer.next.number = self.offer.q.val().number;
        self.answer.next.refused = self.denied.q.val();
        send!(
            self.job,
            self.sends_job.valid.val() | self.gives.val(),
            self.sends_job.data.val()
        );
        if self.gives.val() {
            self.job.data.next = self.answer.val();
            self.offered.d.next = false;
        }

        // What Gather denies is told.
        self.is_denied.next = self.answer_decided.valid.val() & self.answer_denied.val();
        send!(
            self.refusals.input,
            self.is_denied.val(),
            self.answer_decided.data.val()
        );
        join!(self.refusals.output => self.refused);
        self.open_next.next = self.open.q.val();
        if self.gives.val() {
            self.open_next.next = self.open_next.val() + 1;
        }
        if self.answer_decided.valid.val() & !self.answer_denied.val() {
            self.open_next.next = self.open_next.val() - 1;
        }
        if self.refused.valid.val() & self.refused.ready.val() {
            self.open_next.next = self.open_next.val() - 1;
        }
        self.open.d.next = self.open_next.val();

        // What is done.
        self.changed.next = self.held.val();
        self.write.next = false;
        self.push.next = false;
        self.withdraws.next = false;
        self.asked.ready.next = false;
        self.turns.output.ready.next = false;
        self.forgets.next = self.step.q.val() == Step::Forget;
        match self.step.q.val() {
            Step::Look => {
                if self.initialized.val() {
                    self.pair.d.next = self.address.val();
                    if self.control_begins.val() {
                        self.step.d.next = Step::Forget;
                    } else if self.admits.val() {
                        self.step.d.next = Step::Admit;
                    } else if self.turn_comes.val() {
                        self.step.d.next = Step::Turn;
                    }
                }
            }
            Step::Admit => {
                self.asked.ready.next = true;
                self.admitted_last.d.next = true;
                self.gets.write.enable.next = self.known.val();
                self.write.next = self.known.val();
                self.changed.next.waits = self.held.val().waits | self.asked_bit.val();
                self.push.next = self.known.val() & !self.held.val().queued;
                self.step.d.next = Step::Look;
            }
            Step::Turn => {
                self.turns.output.ready.next = true;
                self.admitted_last.d.next = false;
                self.waits.d.next = self.held.val().waits;
                self.first.d.next = self.held.val().first;
                self.write.next = true;
                self.changed.next.queued = false;
                self.step.d.next = Step::Look;
                if self.held.val().waits.any() {
                    self.step.d.next = Step::Pick;
                }
            }
            Step::Pick => {
                self.write.next = true;
                self.changed.next.waits = self.left.val();
                self.changed.next.first = self.picked.val() + 1;
                self.changed.next.queued = false;
                self.push.next = self.left.val().any();
                self.step.d.next = Step::Read;
            }
            Step::Read => {
                self.offered.d.next = true;
                self.offer.d.next = RemoteGet {
                    pair: self.pair.q.val(),
                    key: self.found.val().key,
                    offset: self.found.val().offset,
                    length: self.found.val().length,
                    number: self.found.val().number,
                };
                self.asks.d.next = self.found.val().length.any();
                self.denied.d.next = false;
                self.step.d.next = Step::Look;
            }
            Step::Forget => {
                self.write.next = self.known.val();
                // A stale turn stays in the queue and finds nothing to do.
                self.changed.next.waits = 0.into();
                self.withdraws.next = self.offer.q.val().pair == self.pair.q.val();
                self.drains.d.next = true;
                self.step.d.next = Step::Look;
            }
        }
        if self.push.val() {
            self.changed.next.queued = true;
        }
        if self.withdraws.val() {
            self.offered.d.next = false;
        }
        store!(
            self.waiting.write,
            self.write.val(),
            self.pair.q.val(),
            self.changed.val()
        );
        send!(self.turns.input, self.push.val(), self.pair.q.val());
        send!(self.dropped, self.forgets.val(), self.pair.q.val());

        // A control request is done when nothing is open, or is withdrawn.
        self.drained.next = !self.open.q.val().any();
        self.control.ready.next =
            self.control.valid.val() & self.drains.q.val() & self.drained.val();
        if !self.control.valid.val() | self.control.ready.val() {
            self.drains.d.next = false;
        }

        self.sends_come_in_time.ok.next = !self.sends_job.valid.val()
            | (self.gate.q.val() == Gate::Open)
            | (self.settles.q.val() >= 2);
        self.each_pair_has_one_turn.ok.next = !self.push.val() | self.turns.input.ready.val();
        self.each_refusal_has_a_place.ok.next =
            !self.is_denied.val() | self.refusals.input.ready.val();
    }
}
