//! Who is next: a fair choice among up to 32 requests.
//!
//! ```text
//!               ┌────────────┐
//!   request ───►│            ├──► valid      any request
//!   advance ───►│ RoundRobin ├──► index      the first one from `first` on, cyclically
//!               │   first    │
//!               └────────────┘
//! ```
//!
//! The choice stays until `advance`, whatever else is requested meanwhile, as long as its request
//! does. With `advance` the search begins behind it, so nobody waits for more than one turn of each
//! of the others.

use crate::prelude::*;

/// A contract to break, so that a test can show that its breach is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, LogicState)]
pub enum RoundRobinMutation {
    /// As designed.
    None,
    /// Who has had a turn comes first again.
    ForgetsTurns,
    /// A choice that has not had its turn gives way to an earlier request.
    ChangesItsMind,
    /// The last request isn't seen.
    LastNotSeen,
}

/// A round-robin arbiter of `n` requests.
#[block(n: usize, mutable: usize)]
pub struct RoundRobin {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Puts the first request first.
    pub reset: Signal<In, Bit>,
    /// Which contract to break; there in [`Self::mutable`] only.
    #[each(mutable)]
    pub mutation: Vec<Signal<In, RoundRobinMutation>>,
    /// Bit `i`: request `i`. Bits from `n` on are ignored.
    pub request: Signal<In, Bits<32>>,
    /// The choice has had its turn.
    pub advance: Signal<In, Bit>,
    /// There is a request.
    pub valid: Signal<Out, Bit>,
    /// The chosen one; 0 if there is none.
    pub index: Signal<Out, Bits<8>>,
    /// Where the search begins.
    first: Reg<Bits<8>>,
    #[is(constant(n as u64 - 1))]
    last: Constant<Bits<8>>,
    found: Signal<Local, Bit>,
    chosen: Signal<Local, Bits<8>>,
    #[is(n)]
    _n: usize,
    #[is(mutable)]
    _mutable: usize,
}

impl RoundRobin {
    /// An arbiter of `n` requests.
    ///
    /// # Panics
    /// If `n` is 0 or above 32.
    pub fn new(n: usize) -> Self {
        Self::checked(n, 0)
    }

    /// The same with the input `mutation`, for tests.
    pub fn mutable(n: usize) -> Self {
        Self::checked(n, 1)
    }

    fn checked(n: usize, mutable: usize) -> Self {
        assert!((1..=32).contains(&n), "1 to 32 requests, not {n}");
        Self::build(n, mutable)
    }
}

#[block(n = self._n)]
impl Logic for RoundRobin {
    fn update(&mut self) {
        self.found.next = false;
        self.chosen.next = 0.into();
        for i in 0..self._n {
            if self.request.val().get_bit(i)
                & (self.first.q.val() <= i.to_bits())
                & !self.found.val()
            {
                self.found.next = true;
                self.chosen.next = i.to_bits();
            }
        }
        for i in 0..self._n {
            if self.request.val().get_bit(i) & !self.found.val() {
                self.found.next = true;
                self.chosen.next = i.to_bits();
            }
        }
        self.valid.next = self.found.val();
        self.index.next = self.chosen.val();
        if self.found.val() {
            self.first.d.next = self.chosen.val();
            if self.advance.val() {
                self.first.d.next = self.chosen.val() + 1;
                if self.chosen.val() == self.last.val() {
                    self.first.d.next = 0.into();
                }
            }
        }
        for m in 0..self._mutable {
            if (self.mutation[m].val() == RoundRobinMutation::ForgetsTurns) & self.advance.val() {
                self.first.d.next = self.chosen.val();
            }
            if (self.mutation[m].val() == RoundRobinMutation::ChangesItsMind) & !self.advance.val()
            {
                self.first.d.next = 0.into();
            }
            if (self.mutation[m].val() == RoundRobinMutation::LastNotSeen)
                & (self.chosen.val() == self.last.val())
            {
                self.valid.next = false;
            }
        }
    }
}
