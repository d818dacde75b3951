//! The sends that have left and aren't safe at the peer yet, and the walk that completes sends of a pair: those that the peer has
//! acknowledged, or, when the pair ends, all that it has.
//!
//! ```text
//!   record ──► memory (a ring a pair) ──┐
//!   walk: a pair, from, until ──────────┴─► sends in order ─┐
//!         its waiting sends ──► Waiting ──► sends in order ─┴─► ended, or released ──► done
//! ```
//!
//! With the number of sends that are safe at the peer comes a window on the latest of them: which it has refused, since they were ready sends
//! and found no receive. At most `MAX_CREDITS` sends are unacknowledged, and so many the window shows, so that it tells of each send that the
//! number acknowledges, however many frames before this one were lost.
//!
//! A send that is to complete only on error and ends with `Success` isn't handed over: the reservation of its completion is released.

#![allow(
    missing_docs,
    reason = "the LogicStruct derive makes methods without documentation"
)]

use super::waiting::WaitingSend;
use crate::config::Config;
use crate::prelude::*;
use crate::prim::BlockRam;
use abi::completion::CompletionKind;
use abi::limits::MAX_CREDITS;
use abi::status::Status;

const _: () = assert!(MAX_CREDITS == 16, "numbers of a ring have four bits");

/// What is left of a send that is on its way: enough to complete it.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Sent {
    pub request: Bits<32>,
    pub context: Bits<16>,
    pub length: Bits<11>,
    /// It completes only on error.
    pub errors_only: Bit,
}

/// A send or a cancel that completes.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Ended {
    pub endpoint: Bits<8>,
    pub pair: Bits<16>,
    /// `CompletionKind`.
    pub kind: Bits<8>,
    pub status: Bits<8>,
    pub request: Bits<32>,
    pub context: Bits<16>,
    pub length: Bits<64>,
}

/// Sends of a pair that end together.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Walk {
    pub endpoint: Bits<8>,
    pub status: Bits<8>,
    /// Number of the first unacknowledged send, and of the first that stays.
    pub from: Bits<32>,
    pub until: Bits<32>,
    /// Bit k: send `until` − 1 − k was refused.
    pub window: Bits<16>,
    /// Place of the oldest waiting send, and how many of them end.
    pub place: Bits<8>,
    pub waiting: Bits<8>,
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    /// The next unacknowledged send is being read.
    SentRead,
    /// It ends.
    SentEnds,
    /// The next waiting send is being read.
    WaitingRead,
    /// It ends.
    WaitingEnds,
    /// All have ended.
    Done,
}

/// Sends that have left, of all pairs.
#[block(config: &Config)]
pub(super) struct Unacknowledged {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// A send has left: `number` of `pair`.
    pub record: Pulse<In, Sent>,
    pub record_pair: Signal<In, Bits<16>>,
    pub record_number: Signal<In, Bits<32>>,
    /// These end. Only while no walk is under way.
    pub walk: Pulse<In, Walk>,
    pub walk_pair: Signal<In, Bits<16>>,
    /// A walk is under way, and of which pair. Nothing is recorded of it meanwhile.
    pub busy: Signal<Out, Bit>,
    pub pair: Signal<Out, Bits<16>>,
    /// Place of the waiting send that is wanted.
    pub place: Signal<Out, Bits<8>>,
    /// What was at the place of the cycle before.
    pub waiting: Signal<In, WaitingSend>,
    /// A send that ends.
    pub ended: Stream<Out, Ended>,
    /// Pulse: a send ends without a completion. Its endpoint.
    pub released: Pulse<Out, Bits<8>>,
    /// Pulse: all have been handed over or released; the last cycle of the walk.
    pub done: Signal<Out, Bit>,
    #[is(BlockRam::new(config.pairs * usize::from(MAX_CREDITS)))]
    memory: BlockRam<Sent>,
    state: Reg<State>,
    of: Reg<Bits<16>>,
    walking: Reg<Walk>,
    sent: Signal<Local, Sent>,
    later: Signal<Local, Bits<32>>,
    after: Signal<Local, Bits<4>>,
    was_refused: Signal<Local, Bit>,
    of_sent: Signal<Local, Bit>,
    of_waiting: Signal<Local, Bit>,
    silent: Signal<Local, Bit>,
    ends: Signal<Local, Ended>,
    #[is(config.pairs)]
    _pairs: usize,
}

impl Unacknowledged {
    /// The memory of a card.
    pub(super) fn new(config: &Config) -> Self {
        Self::build(config)
    }
}

#[block(pairs = self._pairs)]
impl Logic for Unacknowledged {
    fn update(&mut self) {
        self.busy.next = self.state.q.val() != State::Idle;
        self.pair.next = self.of.q.val();
        self.place.next = self.walking.q.val().place;
        self.done.next = self.state.q.val() == State::Done;
        set!(
            self.memory.write,
            enable = self.record.valid.val(),
            data = self.record.data.val(),
            address =
                (self.record_pair.val() << 4) | bit_cast::<16, 32>(self.record_number.val() & 15)
        );
        self.memory.read_address.next =
            (self.of.q.val() << 4) | bit_cast::<16, 32>(self.walking.q.val().from & 15);
        self.sent.next = self.memory.read_data.val();

        // The window belongs to the numbers that are being worked in; a failure is no answer to anything.
        self.later.next = self.walking.q.val().until - self.walking.q.val().from - 1;
        self.after.next = self.later.val().get_bits::<4>(0);
        self.was_refused.next = (self.walking.q.val().status == Status::Success)
            & (((self.walking.q.val().window >> self.after.val()) & 1) != 0);

        self.silent.next = self.sent.val().errors_only
            & (self.walking.q.val().status == Status::Success)
            & !self.was_refused.val();

        self.of_sent.next = self.state.q.val() == State::SentEnds;
        self.of_waiting.next = self.state.q.val() == State::WaitingEnds;
        self.released.valid.next = self.of_sent.val() & self.silent.val();
        self.released.data.next = self.walking.q.val().endpoint;
        self.ends.next = Ended::default();
        self.ends.next.endpoint = self.walking.q.val().endpoint;
        self.ends.next.pair = self.of.q.val();
        self.ends.next.kind = CompletionKind::Send;
        self.ends.next.status = self.walking.q.val().status;
        self.ends.next.request = self.sent.val().request;
        self.ends.next.context = self.sent.val().context;
        self.ends.next.length = bit_cast::<64, 11>(self.sent.val().length);
        if self.was_refused.val() {
            self.ends.next.status = Status::NotReady;
        }
        if self.of_waiting.val() {
            self.ends.next.status = self.walking.q.val().status;
            self.ends.next.request = self.waiting.val().request;
            self.ends.next.context = self.waiting.val().context;
            self.ends.next.length = bit_cast::<64, 11>(self.waiting.val().length);
        }
        send!(
            self.ended,
            self.of_waiting.val() | (self.of_sent.val() & !self.silent.val()),
            self.ends.val()
        );

        match self.state.q.val() {
            State::Idle => {
                if self.walk.valid.val() {
                    self.of.d.next = self.walk_pair.val();
                    self.walking.d.next = self.walk.data.val();
                    self.state.d.next = State::SentRead;
                }
            }
            State::SentRead => {
                self.state.d.next = State::SentEnds;
                if self.walking.q.val().from == self.walking.q.val().until {
                    self.state.d.next = State::WaitingRead;
                }
            }
            State::SentEnds => {
                if self.ended.ready.val() | self.silent.val() {
                    self.walking.d.next.from = self.walking.q.val().from + 1;
                    self.state.d.next = State::SentRead;
                }
            }
            State::WaitingRead => {
                self.state.d.next = State::WaitingEnds;
                if !self.walking.q.val().waiting.any() {
                    self.state.d.next = State::Done;
                }
            }
            State::WaitingEnds => {
                if self.ended.ready.val() {
                    self.walking.d.next.place = self.walking.q.val().place + 1;
                    self.walking.d.next.waiting = self.walking.q.val().waiting - 1;
                    self.state.d.next = State::WaitingRead;
                }
            }
            State::Done => {
                self.state.d.next = State::Idle;
            }
        }
    }
}
