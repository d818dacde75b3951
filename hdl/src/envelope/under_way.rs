//! Who is under way between two points that everything passes in order.
//!
//! ```text
//!             ┌──────────┐
//!   enters ──►│ UnderWay ├──► of_pair, of_endpoint   somebody of the pair, or endpoint, that is asked about
//!   leaves ──►│          ├──► room, empty
//!             └──────────┘
//! ```
//!
//! The oldest leaves first. Who enters is seen from the next cycle on, and who leaves until the cycle in which it leaves.

use crate::prelude::*;

/// A pair and its endpoint.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Member {
    /// Pair.
    pub pair: Bits<16>,
    /// Endpoint.
    pub endpoint: Bits<8>,
}

/// Up to `places` members.
#[block(places: usize)]
pub(super) struct UnderWay {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Nobody is under way.
    pub reset: Signal<In, Bit>,
    /// One more is under way; only while there is `room`.
    pub enters: Pulse<In, Member>,
    /// Pulse: the oldest isn't any more.
    pub leaves: Signal<In, Bit>,
    /// The pair that is asked about.
    pub pair: Signal<In, Bits<16>>,
    /// The endpoint that is asked about.
    pub endpoint: Signal<In, Bits<8>>,
    /// One of the pair is under way.
    pub of_pair: Signal<Out, Bit>,
    /// One of the endpoint is under way.
    pub of_endpoint: Signal<Out, Bit>,
    /// There is a place.
    pub room: Signal<Out, Bit>,
    /// Nobody is under way.
    pub empty: Signal<Out, Bit>,
    #[each(places)]
    member: Vec<Reg<Member>>,
    #[each(places)]
    here: Vec<Reg<Bit>>,
    /// The place of the next one, and of the oldest.
    next: Reg<Bits<8>>,
    oldest: Reg<Bits<8>>,
    following: Signal<Local, Bits<8>>,
    behind_oldest: Signal<Local, Bits<8>>,
    taken: Signal<Local, Bit>,
    #[is(constant(places as u64 - 1))]
    last: Constant<Bits<8>>,
    #[is(Check::new("who_enters_has_a_place"))]
    has_place: Check,
    #[is(Check::new("who_leaves_was_under_way"))]
    was_here: Check,
    #[is(places)]
    _n: usize,
}

impl UnderWay {
    /// For up to `places` members.
    pub(super) fn new(places: usize) -> Self {
        Self::build(places)
    }
}

#[block(places = self._n)]
impl Logic for UnderWay {
    fn update(&mut self) {
        self.following.next = self.next.q.val() + 1;
        if self.next.q.val() == self.last.val() {
            self.following.next = 0.into();
        }
        self.behind_oldest.next = self.oldest.q.val() + 1;
        if self.oldest.q.val() == self.last.val() {
            self.behind_oldest.next = 0.into();
        }
        if self.enters.valid.val() {
            self.next.d.next = self.following.val();
        }
        if self.leaves.val() {
            self.oldest.d.next = self.behind_oldest.val();
        }
        self.of_pair.next = false;
        self.of_endpoint.next = false;
        self.room.next = false;
        self.empty.next = true;
        self.taken.next = false;
        for i in 0..self._n {
            if self.here[i].q.val() {
                self.empty.next = false;
                if self.member[i].q.val().pair == self.pair.val() {
                    self.of_pair.next = true;
                }
                if self.member[i].q.val().endpoint == self.endpoint.val() {
                    self.of_endpoint.next = true;
                }
                if self.next.q.val() == i.to_bits() {
                    self.taken.next = true;
                }
            } else {
                self.room.next = true;
            }
            if self.leaves.val() & (self.oldest.q.val() == i.to_bits()) {
                self.here[i].d.next = false;
            }
            if self.enters.valid.val() & (self.next.q.val() == i.to_bits()) {
                self.here[i].d.next = true;
                self.member[i].d.next = self.enters.data.val();
            }
        }
        self.has_place.ok.next = !self.enters.valid.val() | !self.taken.val();
        self.was_here.ok.next = !self.leaves.val() | !self.empty.val();
    }
}
