//! A round-robin arbiter: a fair choice among up to 32 requests.
//!
//! ```text
//!               ┌────────────┐
//!   request ───►│            ├──► valid      any request
//!   advance ───►│ RoundRobin ├──► index      the first one from `first` on, cyclically
//!               │   first    │
//!               └────────────┘
//! ```
//!
//! The choice stays until `advance`, whatever else is requested meanwhile, as long as its own request
//! stays. With `advance` the next search begins behind it, so a request waits for at most one turn of
//! each of the others.

use crate::prelude::*;

/// A round-robin arbiter of `n` requests.
#[block(n: usize)]
pub struct RoundRobin {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Puts the first request first.
    pub reset: Signal<In, Bit>,
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
}

impl RoundRobin {
    /// An arbiter of `n` requests.
    ///
    /// # Panics
    /// If `n` is 0 or above 32.
    pub fn new(n: usize) -> Self {
        assert!((1..=32).contains(&n), "1 to 32 requests, not {n}");
        Self::build(n)
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
    }
}
