//! Which endpoints have multi-receives posted.
//!
//! ```text
//!             ┌────────┐
//!   posted ──►│ Multis │  a count an endpoint
//!   gone ────►│        ├──► any   one of the endpoint that is asked about is posted
//!             └────────┘
//! ```

use crate::prelude::*;

/// Counts of posted multi-receives.
#[block(endpoints: usize)]
pub(super) struct Multis {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// None is posted.
    pub reset: Signal<In, Bit>,
    /// One of this endpoint was posted.
    pub posted: Pulse<In, Bits<8>>,
    /// One of this endpoint isn't posted any more.
    pub gone: Pulse<In, Bits<8>>,
    /// The endpoint that is asked about.
    pub endpoint: Signal<In, Bits<8>>,
    /// It has one.
    pub any: Signal<Out, Bit>,
    #[each(endpoints)]
    count: Vec<Reg<Bits<12>>>,
    #[is(Check::new("a_multi_receive_that_goes_was_posted"))]
    was_posted: Check,
    #[is(endpoints)]
    _n: usize,
}

impl Multis {
    /// For so many endpoints.
    pub(super) fn new(endpoints: usize) -> Self {
        Self::build(endpoints)
    }
}

#[block(endpoints = self._n)]
impl Logic for Multis {
    fn update(&mut self) {
        self.was_posted.ok.next = true;
        self.any.next = false;
        for i in 0..self._n {
            if self.posted.valid.val() & (self.posted.data.val() == i.to_bits()) {
                self.count[i].d.next = self.count[i].q.val() + 1;
            }
            if self.gone.valid.val() & (self.gone.data.val() == i.to_bits()) {
                self.count[i].d.next = self.count[i].q.val() - 1;
                self.was_posted.ok.next = self.count[i].q.val().any();
            }
            if (self.endpoint.val() == i.to_bits()) & self.count[i].q.val().any() {
                self.any.next = true;
            }
        }
    }
}
