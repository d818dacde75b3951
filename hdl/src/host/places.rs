//! The free places of a class of requests in Fetch.
//!
//! ```text
//!   taken ───────────────►┌────────┐
//!   gone, left ──────────►│ Places ├──► some
//!                         └────────┘
//! ```
//!
//! Which ring is read is known late in the cycle. So that only chooses what is added to the count, and no sum waits for another.

use super::entry_queue::DEPTH;
use crate::prelude::*;

/// Entries of a class that may be under way or wait to be taken. At a memory latency of 125 cycles this keeps a read for every nine cycles under way.
pub(super) const QUEUE: usize = DEPTH;

/// In eight bits.
const MINUS_ONE: u64 = 0xff;

/// Counts the places of a class, all of which are free after reset.
#[block]
pub(super) struct Places {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// All are free.
    pub reset: Signal<In, Bit>,
    /// Pulse: one is taken. Needs `some`.
    pub taken: Signal<In, Bit>,
    /// Pulse: a request has left one.
    pub gone: Signal<In, Bit>,
    /// Pulse: one is free again, and no request has left it.
    pub left: Signal<In, Bit>,
    /// One is free.
    pub some: Signal<Out, Bit>,
    #[is(Reg::new((QUEUE as u64).into()))]
    free: Reg<Bits<8>>,
    change: Signal<Local, Bits<8>>,
}

#[block]
impl Logic for Places {
    fn update(&mut self) {
        self.some.next = self.free.q.val().any();
        self.change.next = 0.into();
        if self.gone.val() & self.left.val() {
            self.change.next = 2.into();
        } else if self.gone.val() | self.left.val() {
            self.change.next = 1.into();
        }
        if self.taken.val() {
            self.change.next = MINUS_ONE.into();
            if self.gone.val() & self.left.val() {
                self.change.next = 1.into();
            } else if self.gone.val() | self.left.val() {
                self.change.next = 0.into();
            }
        }
        self.free.d.next = self.free.q.val() + self.change.val();
    }
}
