//! The reservations of one completion queue: how many entries are promised to requests under way.
//!
//! ```text
//!                  ┌──────────────────────────┐
//!   reserve ×2 ───►│ + 1                      ├──► free: reserved + used < size
//!   use ──────────►│ − 1  an entry is written ├──► any: reserved > 0
//!   release ×3 ───►│ − 1  none will be        │
//!                  └──────────────────────────┘
//! ```
//!
//! Reserving needs `free`, so `reserved + used ≤ size` at all times; writing needs a reservation and
//! moves one from `reserved` to `used`, so no entry that the host hasn't consumed is overwritten.

use crate::prelude::*;

/// Counter of reservations, with the two claims that make it worth having.
#[block]
pub(super) struct Reservations {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Pulse: forget all.
    pub clear: Signal<In, Bit>,
    /// Entries of the queue, and those that the host hasn't consumed.
    pub size: Signal<In, Bits<16>>,
    pub used: Signal<In, Bits<16>>,
    /// Pulse: one more.
    pub reserve: Signal<In, Bit>,
    /// Pulse: one more, for somebody else; not in the same cycle.
    pub reserve_again: Signal<In, Bit>,
    /// Pulse: one becomes an entry.
    pub write: Signal<In, Bit>,
    /// Pulses: one ends without an entry.
    pub release_a: Signal<In, Bit>,
    pub release_b: Signal<In, Bit>,
    pub release_c: Signal<In, Bit>,
    /// There is room for a reservation.
    pub free: Signal<Out, Bit>,
    /// There is a reservation.
    pub any: Signal<Out, Bit>,
    reserved: Reg<Bits<16>>,
    promised: Signal<Local, Bits<16>>,
    ended: Signal<Local, Bits<16>>,
    increment: Signal<Local, Bits<16>>,
    #[is(Check::new("reserved_and_used_fit_the_completion_queue"))]
    never_more_than_there_are: Check,
    #[is(Check::new("a_reservation_ends_once"))]
    never_ends_what_never_began: Check,
}

#[block]
impl Logic for Reservations {
    fn update(&mut self) {
        self.promised.next = self.reserved.q.val() + self.used.val();
        self.free.next = self.promised.val() < self.size.val();
        self.any.next = self.reserved.q.val().any();
        self.increment.next = 0.into();
        if self.reserve.val() | self.reserve_again.val() {
            self.increment.next = 1.into();
        }
        self.ended.next = 0.into();
        if self.write.val() {
            self.ended.next = self.ended.val() + 1;
        }
        if self.release_a.val() {
            self.ended.next = self.ended.val() + 1;
        }
        if self.release_b.val() {
            self.ended.next = self.ended.val() + 1;
        }
        if self.release_c.val() {
            self.ended.next = self.ended.val() + 1;
        }
        self.reserved.d.next = self.reserved.q.val() + self.increment.val() - self.ended.val();
        if self.clear.val() {
            self.reserved.d.next = 0.into();
        }

        self.never_more_than_there_are.ok.next = (self.promised.val() <= self.size.val())
            & !(self.reserve.val() & self.reserve_again.val());
        self.never_ends_what_never_began.ok.next = self.ended.val() <= self.reserved.q.val();
    }
}
