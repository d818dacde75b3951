//! Messages that are in Lists and not yet safe in their slots: their slots are *filling*.
//!
//! ```text
//!   enters ──► ┌─────────┐
//!   written ──►│ Filling ├──► of_pair, of_endpoint   a slot of the pair, or endpoint, that is asked about is filling
//!   removed ──►│         ├──► fills, is_lost         so is the slot that is asked about; it couldn't be written
//!              └─────────┘
//! ```
//!
//! A slot fills until its write is answered. If that is an error the slot is *lost*: whoever finds its message must take it for
//! one that isn't there, until it has been removed from Lists. Several slots of a pair may fill at once.

use crate::prelude::*;
use crate::types::SlotWritten;
use abi::request::slot_number;

const _: () = assert!(slot_number(1, 0) == 1 << 6, "the kernel numbers slots so");

/// A slot and its endpoint.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Filled {
    /// `abi::request::slot_number`.
    pub slot: Bits<16>,
    /// Endpoint.
    pub endpoint: Bits<8>,
}

/// Up to `slots` that fill.
#[block(slots: usize)]
pub(super) struct Filling {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// None fills.
    pub reset: Signal<In, Bit>,
    /// One more fills.
    pub enters: Pulse<In, Filled>,
    /// The write of a slot was answered.
    pub written: Pulse<In, SlotWritten>,
    /// The message of this lost slot isn't in Lists any more.
    pub removed: Pulse<In, Bits<16>>,
    /// The pair that is asked about.
    pub pair: Signal<In, Bits<16>>,
    /// A slot of it is filling or lost.
    pub of_pair: Signal<Out, Bit>,
    /// The endpoint that is asked about.
    pub endpoint: Signal<In, Bits<8>>,
    /// A slot of it is filling or lost.
    pub of_endpoint: Signal<Out, Bit>,
    /// The slot that is asked about.
    pub slot: Signal<In, Bits<16>>,
    /// It is filling or lost.
    pub fills: Signal<Out, Bit>,
    /// It is lost.
    pub is_lost: Signal<Out, Bit>,
    #[each(slots)]
    member: Vec<Reg<Filled>>,
    #[each(slots)]
    here: Vec<Reg<Bit>>,
    #[each(slots)]
    lost: Vec<Reg<Bit>>,
    /// There is a vacant member before this one, or it is one.
    found: Signal<Local, Bit>,
    #[is(Check::new("what_fills_has_a_place"))]
    has_place: Check,
    #[is(Check::new("a_slot_is_filled_once"))]
    once: Check,
    #[is(Check::new("what_is_written_was_filling"))]
    was_here: Check,
    #[is(slots)]
    _n: usize,
}

impl Filling {
    /// For up to `slots`.
    pub(super) fn new(slots: usize) -> Self {
        Self::build(slots)
    }
}

#[block(slots = self._n)]
impl Logic for Filling {
    fn update(&mut self) {
        self.of_pair.next = false;
        self.of_endpoint.next = false;
        self.fills.next = false;
        self.is_lost.next = false;
        self.found.next = false;
        self.was_here.ok.next = !self.written.valid.val();
        self.once.ok.next = true;
        for i in 0..self._n {
            if self.here[i].q.val() {
                if self.enters.valid.val()
                    & (self.member[i].q.val().slot == self.enters.data.val().slot)
                {
                    self.once.ok.next = false;
                }
                if (self.member[i].q.val().slot >> 6) == self.pair.val() {
                    self.of_pair.next = true;
                }
                if self.member[i].q.val().endpoint == self.endpoint.val() {
                    self.of_endpoint.next = true;
                }
                if self.member[i].q.val().slot == self.slot.val() {
                    self.fills.next = true;
                    self.is_lost.next = self.lost[i].q.val();
                }
                if self.written.valid.val()
                    & (self.member[i].q.val().slot == self.written.data.val().slot)
                {
                    self.here[i].d.next = self.written.data.val().failed;
                    self.lost[i].d.next = true;
                    self.was_here.ok.next = true;
                }
                if self.removed.valid.val()
                    & (self.member[i].q.val().slot == self.removed.data.val())
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
