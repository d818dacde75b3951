//! How much each endpoint may have of a memory that all share.
//!
//! Each endpoint has a reserved part that no other can use up; the rest is common. So an endpoint that takes all it can
//! get leaves every other one its reserved part.
//!
//! ```text
//!   take, take_bit ──► Share 0   count ─► below its part? ─┐
//!   give, give_bit ──► Share 1   count                     ├─► room for `endpoint`?
//!                              ┆                                │
//!                           common    beyond their parts, all ──┘
//! ```
//!
//! What an endpoint takes counts against its reserved part first; what it gives back counts as common as long as it has
//! more than that part. A pulse shows in `room` and `holds` in the next cycle. Comparisons of a count are kept in bits
//! beside it, since no path has time for them.

use crate::prelude::*;
use abi::limits::MAX_ENDPOINTS;

/// What one endpoint has.
#[block(reserved: usize)]
pub struct Share {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset: nothing.
    pub reset: Signal<In, Bit>,
    /// One more.
    pub take: Signal<In, Bit>,
    /// One less. With `take`: no change.
    pub give: Signal<In, Bit>,
    /// Less than the reserved part.
    pub below: Signal<Out, Bit>,
    /// This pulse takes one that is common.
    pub take_common: Signal<Out, Bit>,
    /// This pulse gives back one that was common.
    pub give_common: Signal<Out, Bit>,
    /// Less by two or more.
    pub well_below: Signal<Out, Bit>,
    /// Anything at all.
    pub holds: Signal<Out, Bit>,
    /// How many.
    pub held: Signal<Out, Bits<16>>,
    /// How many beyond the reserved part.
    pub beyond: Signal<Out, Bits<16>>,
    count: Reg<Bits<16>>,
    /// The count is below the reserved part, below it by two, above it, and above zero.
    #[is(Reg::new(reserved > 0))]
    is_below: Reg<Bit>,
    #[is(Reg::new(reserved > 1))]
    is_well_below: Reg<Bit>,
    is_above: Reg<Bit>,
    is_held: Reg<Bit>,
    #[is(constant(reserved as u64))]
    reserved: Constant<Bits<16>>,
    // The reserved part less two, less one (never reached if nothing is reserved), and plus one.
    #[is(constant(reserved.wrapping_sub(2) as u64 & 0xffff))]
    two_short: Constant<Bits<16>>,
    #[is(constant(reserved.wrapping_sub(1) as u64 & 0xffff))]
    one_short: Constant<Bits<16>>,
    #[is(constant(reserved as u64 + 1))]
    one_beyond: Constant<Bits<16>>,
    gives_what_it_has: Check,
    knows_its_count: Check,
}

impl Share {
    /// A share with this much reserved.
    pub fn new(reserved: usize) -> Self {
        Self::build(reserved)
    }
}

#[block]
impl Logic for Share {
    fn update(&mut self) {
        self.below.next = self.is_below.q.val();
        self.well_below.next = self.is_well_below.q.val();
        self.holds.next = self.is_held.q.val();
        self.held.next = self.count.q.val();
        self.beyond.next = 0.into();
        if self.count.q.val() > self.reserved.val() {
            self.beyond.next = self.count.q.val() - self.reserved.val();
        }
        // If the last of the reserved part is taken and given in one cycle, both cancel out in the sum.
        self.take_common.next = self.take.val() & !self.is_below.q.val();
        self.give_common.next =
            self.give.val() & (self.is_above.q.val() | (self.take.val() & !self.is_below.q.val()));
        if self.take.val() & !self.give.val() {
            self.count.d.next = self.count.q.val() + 1;
            self.is_held.d.next = true;
            if self.count.q.val() == self.two_short.val() {
                self.is_well_below.d.next = false;
            }
            if self.count.q.val() == self.one_short.val() {
                self.is_below.d.next = false;
            }
            if self.count.q.val() == self.reserved.val() {
                self.is_above.d.next = true;
            }
        }
        if self.give.val() & !self.take.val() {
            self.count.d.next = self.count.q.val() - 1;
            if self.count.q.val() == 1 {
                self.is_held.d.next = false;
            }
            if self.count.q.val() == self.one_short.val() {
                self.is_well_below.d.next = true;
            }
            if self.count.q.val() == self.reserved.val() {
                self.is_below.d.next = true;
            }
            if self.count.q.val() == self.one_beyond.val() {
                self.is_above.d.next = false;
            }
        }
        self.gives_what_it_has.ok.next = !self.give.val() | (self.count.q.val() != 0);
        self.knows_its_count.ok.next = (self.is_below.q.val()
            == (self.count.q.val() < self.reserved.val()))
            & (self.is_well_below.q.val() == (self.count.q.val() + 1 < self.reserved.val()))
            & (self.is_above.q.val() == (self.count.q.val() > self.reserved.val()))
            & (self.is_held.q.val() == (self.count.q.val() != 0));
    }
}

/// The shares of all endpoints.
#[block(endpoints: usize, capacity: usize, reserved_each: usize, common_size: usize)]
pub struct Quota {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset: no endpoint has anything.
    pub reset: Signal<In, Bit>,
    /// Endpoint that is asked about.
    pub endpoint: Signal<In, Bits<8>>,
    /// `endpoint` may take one.
    pub room: Signal<Out, Bit>,
    /// A bit an endpoint: it may take one, and still may if another endpoint takes one first.
    pub roomy: Signal<Out, Bits<32>>,
    /// `endpoint` may take one, and still may if it or another one takes one first.
    pub ample: Signal<Out, Bit>,
    /// An endpoint takes one. Only if it has room, whatever is given in this cycle.
    pub take: Signal<In, Bit>,
    /// With `take`: which, one bit set.
    pub take_bit: Signal<In, Bits<32>>,
    /// An endpoint gives one back.
    pub give: Signal<In, Bit>,
    /// With `give`: which, one bit set.
    pub give_bit: Signal<In, Bits<32>>,
    /// Bit `e`: endpoint `e` has at least one.
    pub holds: Signal<Out, Bits<32>>,
    /// What all have together.
    pub used: Signal<Out, Bits<16>>,
    /// What each has.
    #[each(endpoints)]
    pub held: Vec<Signal<Out, Bits<16>>>,
    #[each(endpoints, Share::new(reserved_each))]
    share: Vec<Share>,
    /// What endpoints have beyond their reserved parts.
    common: Reg<Bits<16>>,
    total: Reg<Bits<16>>,
    /// Something common is left; and more than one.
    #[is(Reg::new(common_size > 0))]
    left: Reg<Bit>,
    #[is(Reg::new(common_size > 1))]
    several_left: Reg<Bit>,
    common_room: Signal<Local, Bit>,
    one_more: Signal<Local, Bits<16>>,
    take_common: Signal<Local, Bit>,
    give_common: Signal<Local, Bit>,
    room_to_take: Signal<Local, Bit>,
    held_by_all: Signal<Local, Bits<16>>,
    beyond_by_all: Signal<Local, Bits<16>>,
    within_total: Signal<Local, Bit>,
    #[is(constant(capacity as u64))]
    capacity: Constant<Bits<16>>,
    #[is(constant(common_size as u64))]
    common_size: Constant<Bits<16>>,
    /// Two less than that.
    #[is(constant(common_size.wrapping_sub(2) as u64 & 0xffff))]
    two_short: Constant<Bits<16>>,
    never_over_capacity: Check,
    sums_are_of_shares: Check,
    takes_with_room_only: Check,
    knows_what_is_left: Check,
    #[is(endpoints)]
    _n: usize,
}

impl Quota {
    /// Shares of `capacity` places among `endpoints`, with `reserved_each` for each of them.
    ///
    /// # Panics
    /// If there are no endpoints or more than [`MAX_ENDPOINTS`], or if more is reserved than there is.
    pub fn new(endpoints: usize, capacity: usize, reserved_each: usize) -> Self {
        assert!(
            (1..=MAX_ENDPOINTS).contains(&endpoints),
            "{endpoints} endpoints"
        );
        assert!(
            endpoints * reserved_each <= capacity && capacity < 1 << 16,
            "{endpoints} times {reserved_each} reserved of {capacity}"
        );
        let common_size = capacity - endpoints * reserved_each;
        Self::build(endpoints, capacity, reserved_each, common_size)
    }
}

#[block(endpoints = self._n)]
impl Logic for Quota {
    fn update(&mut self) {
        self.common_room.next = self.left.q.val();
        self.roomy.next = 0.into();
        self.room.next = false;
        self.ample.next = false;
        self.room_to_take.next = false;
        self.holds.next = 0.into();
        self.take_common.next = false;
        self.give_common.next = false;
        for i in 0..self._n {
            self.share[i].take.next = self.take.val() & self.take_bit.val().get_bit(i);
            self.share[i].give.next = self.give.val() & self.give_bit.val().get_bit(i);
            self.roomy.next = self
                .roomy
                .val()
                .replace_bit(i, self.share[i].below.val() | self.several_left.q.val());
            if self.endpoint.val() == i.to_bits() {
                self.room.next = self.share[i].below.val() | self.common_room.val();
                self.ample.next = self.share[i].well_below.val() | self.several_left.q.val();
            }
            if self.take_bit.val().get_bit(i) {
                self.room_to_take.next = self.share[i].below.val() | self.common_room.val();
            }
            self.held[i].next = self.share[i].held.val();
            self.holds.next = self.holds.val().replace_bit(i, self.share[i].holds.val());
            self.take_common.next = self.take_common.val() | self.share[i].take_common.val();
            self.give_common.next = self.give_common.val() | self.share[i].give_common.val();
        }
        if self.take_common.val() & !self.give_common.val() {
            self.common.d.next = self.common.q.val() + 1;
            self.left.d.next = self.several_left.q.val();
            if self.common.q.val() == self.two_short.val() {
                self.several_left.d.next = false;
            }
        }
        if self.give_common.val() & !self.take_common.val() {
            self.common.d.next = self.common.q.val() - 1;
            self.left.d.next = true;
            self.several_left.d.next = self.left.q.val();
        }
        if self.take.val() & !self.give.val() {
            self.total.d.next = self.total.q.val() + 1;
        }
        if self.give.val() & !self.take.val() {
            self.total.d.next = self.total.q.val() - 1;
        }
        self.used.next = self.total.q.val();

        self.never_over_capacity.ok.next = (self.total.q.val() <= self.capacity.val())
            & (self.common.q.val() <= self.common_size.val());
        self.held_by_all.next = 0.into();
        self.beyond_by_all.next = 0.into();
        self.within_total.next = true;
        for i in 0..self._n {
            self.held_by_all.next = self.held_by_all.val() + self.share[i].held.val();
            self.beyond_by_all.next = self.beyond_by_all.val() + self.share[i].beyond.val();
            if self.share[i].held.val() > self.total.q.val() {
                self.within_total.next = false;
            }
        }
        self.sums_are_of_shares.ok.next = self.within_total.val()
            & (self.total.q.val() == self.held_by_all.val())
            & (self.common.q.val() == self.beyond_by_all.val());
        self.takes_with_room_only.ok.next = !self.take.val() | self.room_to_take.val();
        self.one_more.next = self.common.q.val() + 1;
        self.knows_what_is_left.ok.next = (self.left.q.val()
            == (self.common.q.val() < self.common_size.val()))
            & (self.several_left.q.val() == (self.one_more.val() < self.common_size.val()));
    }
}
