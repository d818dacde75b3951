//! Shuts out for a while whose accesses are refused too often: they are denied without a look-up, and nobody else waits.
//!
//! ```text
//!   of a process ───────────────────────────────────────────┐
//!   query ─┤                                                ├──► Regions ──► answer, refusals ──► counted
//!   of a peer ──► Table: shut out? ─ no ────────────────────┘
//!                   ▲  ▲     └───── yes ───► denied
//!   get ────────────┤  └── each tick a round: one tick less
//!   control ────────┘
//! ```
//!
//! Each pair has a limit, a time, and the number of accesses that were refused to its peer. With the one that reaches the limit the count starts anew and the peer is
//! shut out for the time; what is denied meanwhile isn't counted here. Time is counted in ticks, by one round over the pairs in each.
//!
//! An access of a process of this host goes straight through. One of a peer comes two cycles later than it would. One question comes at a time.
//!
//! A get of a peer is asked about beside them, by whoever answers it: that it isn't shut out is all that is said here, and Regions is asked for the
//! memory by another way. So a refusal may be told at any time, also while a question is looked at; two may wait to be counted.

use crate::config::Config;
use crate::prelude::*;
use crate::prim::Table;
use crate::types::{
    Access, ControlRequest, Permission, RemoteGet, RemoteRefusal, ShutOutReport, ShutOutSetup,
};
use abi::control::{Operation, RefusalReason};
use abi::times::{SHUT_OUT_LIMIT, SHUT_OUT_TICK, SHUT_OUT_TICKS};

const _: () = assert!(SHUT_OUT_TICK <= 1 << 16, "the clock has 16 bits");

/// Of a pair.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Held {
    /// Its peer is shut out, and `left` isn't 0.
    out: Bit,
    limit: Bits<16>,
    ticks: Bits<16>,
    count: Bits<16>,
    left: Bits<16>,
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    /// Something to do is looked for.
    Idle,
    /// What is known of the peer that asks comes out of the table,
    Find,
    /// and its access goes on, or is denied.
    Decide,
    /// What is known of the peer to which something was refused comes out of the table,
    Refused,
    /// and it is counted.
    Count,
    /// What is known of the pair whose turn it is comes out of the table,
    Look,
    /// and it has a tick less.
    Less,
    /// What the firmware asks for comes out of the table,
    Read,
    /// and is answered.
    Answer,
    /// What is known of the peer that gets comes out of the table,
    FindGet,
    /// and its get goes on, or is denied.
    DecideGet,
}

/// What is known of all pairs.
#[block(config: &Config)]
pub struct ShutOut {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Forgets all.
    pub reset: Signal<In, Bit>,
    /// The table is cleared.
    pub initialized: Signal<Out, Bit>,
    /// What Delivery asks. The next question comes two cycles after the answer.
    pub query: Stream<In, Access>,
    /// The answer.
    pub allowed: Pulse<Out, Permission>,
    /// What Regions is asked,
    pub passed: Stream<Out, Access>,
    /// and its answer.
    pub answer: Pulse<In, Permission>,
    /// A get of a peer: is its peer shut out? It is taken within a few cycles.
    pub get: Stream<In, RemoteGet>,
    /// In the cycle in which `get` is taken: it is denied.
    pub get_denied: Signal<Out, Bit>,
    /// A peer's access was refused: why. In the cycle after its `answer`; or at any time, if it was a get's. Two of them may come in a short time.
    pub refused: Pulse<In, RemoteRefusal>,
    /// All that is refused to peers: this, and what is denied here.
    pub peer_refused: Pulse<Out, RemoteRefusal>,
    /// A control request; taken when it is done.
    pub control: Stream<In, ControlRequest>,
    /// With it, for `ShutOutRead`: a `ShutOutReport`. Zero otherwise, and for a pair that isn't in the table.
    pub control_result: Signal<Out, Bits<64>>,
    /// Pulse: `SHUT_OUT_TICK` cycles more have passed.
    pub tick: Signal<Out, Bit>,

    #[is(Table::block(config.pairs))]
    rows: Table<Held>,
    state: Reg<State>,
    held: Reg<Held>,
    /// An access was denied in the cycle before: it is answered.
    denied: Reg<Bit>,
    /// An access of this pair's peer was refused, and isn't counted yet.
    to_count: Reg<Bit>,
    pair: Reg<Bits<16>>,
    /// Behind it another one, of this pair's peer.
    next_to_count: Reg<Bit>,
    next_pair: Reg<Bits<16>>,
    /// A get was looked at since the round's last step, which goes before the next.
    got: Reg<Bit>,
    clock_left: Reg<Bits<16>>,
    /// A round is under way, or due.
    round: Reg<Bit>,
    turn: Reg<Bits<16>>,

    asks: Signal<Local, Bit>,
    /// Whoever asks is shut out. It is told when nothing else is.
    is_out: Signal<Local, Bit>,
    denies: Signal<Local, Bit>,
    get_is_out: Signal<Local, Bit>,
    denies_get: Signal<Local, Bit>,
    looks_at_get: Signal<Local, Bit>,
    /// The oldest refusal is counted in this cycle.
    counts: Signal<Local, Bit>,
    reads: Signal<Local, Bit>,
    sets: Signal<Local, Bit>,
    setup: Signal<Local, ShutOutSetup>,
    report: Signal<Local, ShutOutReport>,
    changed: Signal<Local, Held>,
    more: Signal<Local, Bits<16>>,
    less: Signal<Local, Bits<16>>,
    #[is(constant(config.pairs as u64))]
    pairs: Constant<Bits<16>>,
    #[is(constant(config.pairs as u64 - 1))]
    last: Constant<Bits<16>>,
    #[is(Check::new("no_refusal_is_uncounted"))]
    nothing_is_lost: Check,
}

impl ShutOut {
    /// The control requests that it takes.
    pub const REQUESTS: &[Operation] = &[
        Operation::PairSet,
        Operation::ShutOutSet,
        Operation::ShutOutRead,
    ];

    /// For the pairs of a card.
    pub fn new(config: &Config) -> Self {
        Self::build(config)
    }
}

#[block]
impl Logic for ShutOut {
    fn update(&mut self) {
        self.initialized.next = self.rows.initialized.val();

        // A question: of a process it goes on at once, of a peer when it is known not to be shut out.
        self.asks.next = self.query.valid.val() & self.query.data.val().remote;
        self.is_out.next = (self.state.q.val() == State::Decide)
            & self.held.q.val().out
            & (self.query.data.val().pair < self.pairs.val());
        self.denies.next = self.is_out.val() & !self.refused.valid.val();
        send!(
            self.passed,
            self.query.valid.val()
                & (!self.query.data.val().remote
                    | ((self.state.q.val() == State::Decide) & !self.is_out.val())),
            self.query.data.val()
        );
        self.query.ready.next =
            (self.passed.ready.val() & self.passed.valid.val()) | self.denies.val();
        send!(
            self.allowed,
            self.answer.valid.val() | self.denied.q.val(),
            self.answer.data.val()
        );
        self.denied.d.next = self.denies.val();
        if self.denied.q.val() {
            self.allowed.data.next = Permission::default();
        }
        // A get: of a peer that isn't shut out it goes on.
        self.get_is_out.next = (self.state.q.val() == State::DecideGet)
            & self.held.q.val().out
            & (self.get.data.val().pair < self.pairs.val());
        self.denies_get.next = self.get_is_out.val() & !self.refused.valid.val();
        self.get.ready.next = (self.state.q.val() == State::DecideGet)
            & (!self.get_is_out.val() | self.denies_get.val());
        self.get_denied.next = self.denies_get.val();
        send!(
            self.peer_refused,
            self.refused.valid.val() | self.denies.val() | self.denies_get.val(),
            self.refused.data.val()
        );
        if self.denies.val() {
            self.peer_refused.data.next = RemoteRefusal {
                pair: self.query.data.val().pair,
                reason: RefusalReason::ShutOut,
                region: 0.into(),
                offset: self.query.data.val().buffer.address,
            };
        }
        if self.denies_get.val() {
            self.peer_refused.data.next = RemoteRefusal {
                pair: self.get.data.val().pair,
                reason: RefusalReason::ShutOut,
                region: 0.into(),
                offset: self.get.data.val().offset,
            };
        }

        // Refusals that aren't counted: a new one stands behind the one that is here.
        self.counts.next = self.state.q.val() == State::Count;
        self.nothing_is_lost.ok.next = !self.refused.valid.val()
            | ((!self.next_to_count.q.val() | self.counts.val())
                & !self.denies.val()
                & !self.denies_get.val());
        if self.counts.val() {
            self.to_count.d.next = self.next_to_count.q.val();
            self.pair.d.next = self.next_pair.q.val();
            self.next_to_count.d.next = false;
        }
        if self.refused.valid.val() {
            if self.to_count.q.val() & (!self.counts.val() | self.next_to_count.q.val()) {
                self.next_to_count.d.next = true;
                self.next_pair.d.next = self.refused.data.val().pair;
            } else {
                self.to_count.d.next = true;
                self.pair.d.next = self.refused.data.val().pair;
            }
        }

        // Ticks.
        self.tick.next = !self.clock_left.q.val().any();
        self.clock_left.d.next = self.clock_left.q.val() - 1;
        if self.tick.val() {
            self.clock_left.d.next = SHUT_OUT_TICK - 1;
            self.round.d.next = true;
        }

        self.reads.next = self.control.data.val().operation == Operation::ShutOutRead;
        self.sets.next = self.control.data.val().operation == Operation::ShutOutSet;
        self.setup.next = self.control.data.val().data.get_bits::<64>(0).into();
        self.control.ready.next = false;
        self.control_result.next = 0.into();
        self.report.next = ShutOutReport {
            limit: self.held.q.val().limit,
            ticks: self.held.q.val().ticks,
            count: self.held.q.val().count,
            left: self.held.q.val().left,
        };
        self.more.next = self.held.q.val().count + 1;
        self.less.next = self.held.q.val().left - 1;

        self.looks_at_get.next = self.get.valid.val() & !(self.got.q.val() & self.round.q.val());
        self.rows.read_address.next = self.query.data.val().pair;
        self.changed.next = self.held.q.val();
        self.rows.write.enable.next = false;
        self.rows.write.address.next = self.pair.q.val();
        match self.state.q.val() {
            State::Idle => {
                if self.rows.initialized.val() {
                    if self.to_count.q.val() {
                        self.rows.read_address.next = self.pair.q.val();
                        self.state.d.next = State::Refused;
                    } else if self.control.valid.val() {
                        self.rows.read_address.next = self.control.data.val().index;
                        if self.reads.val() {
                            self.state.d.next = State::Read;
                        } else {
                            self.control.ready.next = true;
                            self.changed.next = Held::default();
                            self.changed.next.limit = SHUT_OUT_LIMIT.into();
                            self.changed.next.ticks = SHUT_OUT_TICKS.into();
                            if self.sets.val() {
                                self.changed.next.limit = self.setup.val().limit;
                                self.changed.next.ticks = self.setup.val().ticks;
                            }
                            self.rows.write.enable.next = true;
                            self.rows.write.address.next = self.control.data.val().index;
                        }
                    } else if self.asks.val() {
                        self.state.d.next = State::Find;
                    } else if self.looks_at_get.val() {
                        self.got.d.next = true;
                        self.rows.read_address.next = self.get.data.val().pair;
                        self.state.d.next = State::FindGet;
                    } else if self.round.q.val() {
                        self.got.d.next = false;
                        self.rows.read_address.next = self.turn.q.val();
                        self.state.d.next = State::Look;
                    }
                }
            }
            State::Find => {
                self.held.d.next = self.rows.read_data.val();
                self.state.d.next = State::Decide;
            }
            State::Decide => {
                if self.query.ready.val() {
                    self.state.d.next = State::Idle;
                }
            }
            State::FindGet => {
                self.held.d.next = self.rows.read_data.val();
                self.state.d.next = State::DecideGet;
            }
            State::DecideGet => {
                if self.get.ready.val() {
                    self.state.d.next = State::Idle;
                }
            }
            State::Refused => {
                self.held.d.next = self.rows.read_data.val();
                self.state.d.next = State::Count;
            }
            State::Count => {
                self.changed.next.count = self.more.val();
                if self.more.val() == self.held.q.val().limit {
                    self.changed.next.count = 0.into();
                    self.changed.next.left = self.held.q.val().ticks;
                    self.changed.next.out = self.held.q.val().ticks.any();
                }
                self.rows.write.enable.next = self.held.q.val().limit.any();
                self.state.d.next = State::Idle;
            }
            State::Look => {
                self.held.d.next = self.rows.read_data.val();
                self.state.d.next = State::Less;
            }
            State::Less => {
                self.changed.next.left = self.less.val();
                self.changed.next.out = self.less.val().any();
                self.rows.write.enable.next = self.held.q.val().out;
                self.rows.write.address.next = self.turn.q.val();
                self.turn.d.next = self.turn.q.val() + 1;
                if self.turn.q.val() == self.last.val() {
                    self.turn.d.next = 0.into();
                    self.round.d.next = self.tick.val();
                }
                self.state.d.next = State::Idle;
            }
            State::Read => {
                self.held.d.next = self.rows.read_data.val();
                self.state.d.next = State::Answer;
            }
            State::Answer => {
                self.control.ready.next = true;
                if self.control.data.val().index < self.pairs.val() {
                    self.control_result.next = self.report.val().into();
                }
                self.state.d.next = State::Idle;
            }
            _ => {}
        }
        self.rows.write.data.next = self.changed.val();
    }
}
