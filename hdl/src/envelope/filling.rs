//! Messages that are in Lists and not yet safe in their slots: their places are *filling*.
//!
//! ```text
//!   enters ──► ┌─────────┐
//!   written ──►│ Filling ├──► of_pair, of_endpoint   a place of the pair, or endpoint, that is asked about is filling
//!   removed ──►│         ├──► fills, is_lost         so is the place that is asked about; its slot couldn't be written
//!              └─────────┘
//! ```
//!
//! A place fills until the write of its slot is answered. If that is an error the place is *lost*: whoever finds its message must take it for
//! one that isn't there, until it has been removed from Lists. A pair fills one place at most.

use crate::prelude::*;
use crate::types::SlotWritten;
use abi::request::place;

const _: () = assert!(place(1, 0) == 1 << 4, "the kernel makes places so");

/// A place and its endpoint.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Filled {
    /// The place: the pair's number, and the slot's.
    pub place: Bits<16>,
    /// Endpoint.
    pub endpoint: Bits<8>,
}

/// Up to `places` that fill.
#[block(places: usize)]
pub(super) struct Filling {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// None fills.
    pub reset: Signal<In, Bit>,
    /// One more fills.
    pub enters: Pulse<In, Filled>,
    /// The write of a slot was answered.
    pub written: Pulse<In, SlotWritten>,
    /// The message of this lost place isn't in Lists any more.
    pub removed: Pulse<In, Bits<16>>,
    /// The pair that is asked about.
    pub pair: Signal<In, Bits<16>>,
    /// A place of it is filling or lost.
    pub of_pair: Signal<Out, Bit>,
    /// The endpoint that is asked about.
    pub endpoint: Signal<In, Bits<8>>,
    /// A place of it is filling or lost.
    pub of_endpoint: Signal<Out, Bit>,
    /// The place that is asked about.
    pub place: Signal<In, Bits<16>>,
    /// It is filling or lost.
    pub fills: Signal<Out, Bit>,
    /// It is lost.
    pub is_lost: Signal<Out, Bit>,
    #[each(places)]
    member: Vec<Reg<Filled>>,
    #[each(places)]
    here: Vec<Reg<Bit>>,
    #[each(places)]
    lost: Vec<Reg<Bit>>,
    /// There is a vacant member before this one, or it is one.
    found: Signal<Local, Bit>,
    #[is(Check::new("what_fills_has_a_place"))]
    has_place: Check,
    #[is(Check::new("what_is_written_was_filling"))]
    was_here: Check,
    #[is(places)]
    _n: usize,
}

impl Filling {
    /// For up to `places`.
    pub(super) fn new(places: usize) -> Self {
        Self::build(places)
    }
}

#[block(places = self._n)]
impl Logic for Filling {
    fn update(&mut self) {
        self.of_pair.next = false;
        self.of_endpoint.next = false;
        self.fills.next = false;
        self.is_lost.next = false;
        self.found.next = false;
        self.was_here.ok.next = !self.written.valid.val();
        for i in 0..self._n {
            if self.here[i].q.val() {
                if (self.member[i].q.val().place >> 4) == self.pair.val() {
                    self.of_pair.next = true;
                }
                if self.member[i].q.val().endpoint == self.endpoint.val() {
                    self.of_endpoint.next = true;
                }
                if self.member[i].q.val().place == self.place.val() {
                    self.fills.next = true;
                    self.is_lost.next = self.lost[i].q.val();
                }
                if self.written.valid.val()
                    & (self.member[i].q.val().place == self.written.data.val().place)
                {
                    self.here[i].d.next = self.written.data.val().failed;
                    self.lost[i].d.next = true;
                    self.was_here.ok.next = true;
                }
                if self.removed.valid.val()
                    & (self.member[i].q.val().place == self.removed.data.val())
                {
                    self.here[i].d.next = false;
                }
            } else if !self.found.val() {
                // The first vacant member takes what enters.
                self.found.next = true;
                self.here[i].d.next = self.enters.valid.val();
                self.lost[i].d.next = false;
                self.member[i].d.next = self.enters.data.val();
            }
        }
        self.has_place.ok.next = !self.enters.valid.val() | self.found.val();
    }
}
