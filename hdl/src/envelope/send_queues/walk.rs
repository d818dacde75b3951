//! The walk that completes sends of a pair, in order: those that the peer has acknowledged, or, when the pair ends, all that it has.
//!
//! ```text
//!   walk: a pair, from, how many ──► descriptors, one at a time ──► ended, or released ──► done
//! ```
//!
//! With the number of sends that are safe at the peer comes a window on the latest of them: which it has refused, since they were ready sends
//! and found no receive. At most `MAX_UNACKNOWLEDGED` sends are unacknowledged, and so many the window shows, so that it tells of each send that the
//! number acknowledges, however many frames before this one were lost.
//!
//! A send that is to complete only on error and ends with `Success` isn't handed over: the reservation of its completion is released.

#![allow(
    missing_docs,
    reason = "the LogicStruct derive makes methods without documentation"
)]

use super::credit::{ACCESS_DENIED, MEMORY_ERROR, REMOTE_ACCESS};
use super::descriptor::Descriptor;
use crate::prelude::*;
use abi::completion::CompletionKind;
use abi::limits::MAX_UNACKNOWLEDGED;
use abi::status::Status;

const _: () = assert!(MAX_UNACKNOWLEDGED == 16, "the window has a bit for each");

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

/// Sends of a pair that end together. Of numbers it has the low bits.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Walk {
    pub endpoint: Bits<8>,
    pub status: Bits<8>,
    /// The pair's run.
    pub first: Bits<16>,
    pub last: Bits<6>,
    /// Number of the first send that ends.
    pub from: Bits<8>,
    /// Sends from there on that end.
    pub sent: Bits<8>,
    /// Behind them, sends that don't, and then others that do.
    pub given: Bits<8>,
    pub waiting: Bits<8>,
    /// Sends behind those that are safe at the peer and don't end yet.
    pub behind: Bits<8>,
    /// Bit k: the one `sent` + `behind` − 1 − k behind the first was refused.
    pub window: Bits<16>,
    /// By the lowest bits of the number, what gets end with (`gets.rs`).
    pub ends_low: Bits<16>,
    pub ends_high: Bits<16>,
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Idle,
    /// The next descriptor is being read.
    Read,
    /// It is here.
    Take,
    /// It ends.
    Ends,
    /// All have ended.
    Done,
}

/// The walk.
#[block]
pub(super) struct Walker {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// These end. Only while no walk is under way.
    pub walk: Pulse<In, Walk>,
    pub walk_pair: Signal<In, Bits<16>>,
    /// A walk is under way, and of which pair. The pair's descriptors stay as they are meanwhile.
    pub busy: Signal<Out, Bit>,
    pub pair: Signal<Out, Bits<16>>,
    /// The descriptor that is wanted.
    pub place: Signal<Out, Bits<16>>,
    /// It is being read.
    pub reads: Signal<In, Bit>,
    /// What was read in the cycle before.
    pub read: Signal<In, Descriptor>,
    /// A send that ends.
    pub ended: Stream<Out, Ended>,
    /// Pulse: a send ends without a completion. Its endpoint.
    pub released: Pulse<Out, Bits<8>>,
    /// Pulse: all have been handed over or released; the last cycle of the walk.
    pub done: Signal<Out, Bit>,
    state: Reg<State>,
    of: Reg<Bits<16>>,
    walking: Reg<Walk>,
    /// The descriptor: it comes out of its memory late in the cycle.
    held: Reg<Descriptor>,
    later: Signal<Local, Bits<8>>,
    after: Signal<Local, Bits<4>>,
    was_refused: Signal<Local, Bit>,
    low: Signal<Local, Bits<1>>,
    high: Signal<Local, Bits<1>>,
    outcome: Signal<Local, Bits<2>>,
    answer: Signal<Local, Bits<8>>,
    ends: Signal<Local, Bit>,
    silent: Signal<Local, Bit>,
    ending: Signal<Local, Ended>,
}

#[block]
impl Logic for Walker {
    fn update(&mut self) {
        self.busy.next = self.state.q.val() != State::Idle;
        self.pair.next = self.of.q.val();
        self.place.next = self.walking.q.val().first
            | bit_cast::<16, 8>(
                self.walking.q.val().from & bit_cast::<8, 6>(self.walking.q.val().last),
            );
        self.done.next = self.state.q.val() == State::Done;

        // The window belongs to the numbers that are being worked in; a failure is no answer to anything.
        self.later.next = self.walking.q.val().sent + self.walking.q.val().behind - 1;
        self.after.next = self.later.val().get_bits::<4>(0);
        self.was_refused.next = (self.walking.q.val().status == Status::Success)
            & (((self.walking.q.val().window >> self.after.val()) & 1) != 0);

        self.low.next = (self.walking.q.val().ends_low
            >> self.walking.q.val().from.get_bits::<4>(0))
        .get_bits::<1>(0);
        self.high.next = (self.walking.q.val().ends_high
            >> self.walking.q.val().from.get_bits::<4>(0))
        .get_bits::<1>(0);
        self.outcome.next =
            (bit_cast::<2, 1>(self.high.val()) << 1) | bit_cast::<2, 1>(self.low.val());
        self.answer.next = Status::Success;
        if self.outcome.val() == REMOTE_ACCESS {
            self.answer.next = Status::RemoteAccess;
        }
        if self.outcome.val() == ACCESS_DENIED {
            self.answer.next = Status::AccessDenied;
        }
        if self.outcome.val() == MEMORY_ERROR {
            self.answer.next = Status::MemoryError;
        }

        self.ends.next = self.state.q.val() == State::Ends;
        self.ending.next = Ended::default();
        self.ending.next.endpoint = self.walking.q.val().endpoint;
        self.ending.next.pair = self.of.q.val();
        self.ending.next.kind = CompletionKind::Send;
        self.ending.next.status = self.walking.q.val().status;
        self.ending.next.request = self.held.q.val().request;
        self.ending.next.context = self.held.q.val().context;
        self.ending.next.length = bit_cast::<64, 11>(self.held.q.val().length);
        if self.held.q.val().get & (self.walking.q.val().status == Status::Success) {
            self.ending.next.status = self.answer.val();
        }
        if self.was_refused.val() {
            self.ending.next.status = Status::NotReady;
            if self.held.q.val().put {
                self.ending.next.status = Status::RemoteAccess;
            }
        }
        self.silent.next =
            self.held.q.val().errors_only & (self.ending.val().status == Status::Success);
        self.released.valid.next = self.ends.val() & self.silent.val();
        self.released.data.next = self.walking.q.val().endpoint;
        send!(
            self.ended,
            self.ends.val() & !self.silent.val(),
            self.ending.val()
        );

        match self.state.q.val() {
            State::Idle => {
                if self.walk.valid.val() {
                    self.of.d.next = self.walk_pair.val();
                    self.walking.d.next = self.walk.data.val();
                    self.state.d.next = State::Read;
                }
            }
            State::Read => {
                if self.walking.q.val().sent.any() {
                    if self.reads.val() {
                        self.state.d.next = State::Take;
                    }
                } else if self.walking.q.val().waiting.any() {
                    self.walking.d.next.from =
                        self.walking.q.val().from + self.walking.q.val().given;
                    self.walking.d.next.sent = self.walking.q.val().waiting;
                    self.walking.d.next.waiting = 0.into();
                } else {
                    self.state.d.next = State::Done;
                }
            }
            State::Take => {
                self.held.d.next = self.read.val();
                self.state.d.next = State::Ends;
            }
            State::Ends => {
                if self.ended.ready.val() | self.silent.val() {
                    self.walking.d.next.from = self.walking.q.val().from + 1;
                    self.walking.d.next.sent = self.walking.q.val().sent - 1;
                    self.state.d.next = State::Read;
                }
            }
            State::Done => {
                self.state.d.next = State::Idle;
            }
        }
    }
}
