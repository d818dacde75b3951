//! Counts the cycles with `increment`, and wraps.
//!
//! ```text
//!   increment ──►│ Counter │──► count
//! ```

use crate::prelude::*;

/// A contract to break, so that a test can show that its breach is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, LogicState)]
pub enum CounterMutation {
    /// As designed.
    None,
    /// It stays at its last value in place of wrapping.
    Saturates,
    /// A cycle is counted in itself.
    CountsAhead,
}

/// A counter of `W` bits.
#[block(mutable: usize)]
pub struct Counter<const W: usize> {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Back to 0.
    pub reset: Signal<In, Bit>,
    /// Which contract to break; there in [`Self::mutable`] only.
    #[each(mutable)]
    pub mutation: Vec<Signal<In, CounterMutation>>,
    /// Counts this cycle.
    pub increment: Signal<In, Bit>,
    /// Cycles counted before this one, modulo 2^`W`.
    pub count: Signal<Out, Bits<W>>,
    value: Reg<Bits<W>>,
    #[is(mutable)]
    _mutable: usize,
}

impl<const W: usize> Default for Counter<W> {
    fn default() -> Self {
        Self::build(0)
    }
}

impl<const W: usize> Counter<W> {
    /// A counter with the input `mutation`, for tests.
    pub fn mutable() -> Self {
        Self::build(1)
    }
}

#[block]
impl<const W: usize> Logic for Counter<W> {
    fn update(&mut self) {
        if self.increment.val() {
            self.value.d.next = self.value.q.val() + 1;
        }
        self.count.next = self.value.q.val();
        for m in 0..self._mutable {
            if (self.mutation[m].val() == CounterMutation::Saturates) & self.value.q.val().all() {
                self.value.d.next = self.value.q.val();
            }
            if (self.mutation[m].val() == CounterMutation::CountsAhead) & self.increment.val() {
                self.count.next = self.value.q.val() + 1;
            }
        }
    }
}
