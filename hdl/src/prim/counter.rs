//! Counts the cycles with `increment`, and wraps.
//!
//! ```text
//!   increment ──►│ Counter │──► count
//! ```

use crate::prelude::*;

/// A counter of `W` bits.
#[block]
pub struct Counter<const W: usize> {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Back to 0.
    pub reset: Signal<In, Bit>,
    /// Counts this cycle.
    pub increment: Signal<In, Bit>,
    /// Cycles counted before this one, modulo 2^`W`.
    pub count: Signal<Out, Bits<W>>,
    value: Reg<Bits<W>>,
}

#[block]
impl<const W: usize> Logic for Counter<W> {
    fn update(&mut self) {
        if self.increment.val() {
            self.value.d.next = self.value.q.val() + 1;
        }
        self.count.next = self.value.q.val();
    }
}
