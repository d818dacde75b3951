//! A check on a stream: what is offered stays offered, unchanged, until it is taken.
//!
//! ```text
//!   valid ──►┌────────┐
//!   ready ──►│ Stable │     valid and not ready in one cycle: valid and the same data in the next
//!   data ───►└────────┘
//! ```
//!
//! This is the rule of every stream of the card (and of AXI, IHI 0022 A3.2.1). There are no
//! outputs, so in synthesis nothing is left of it.

use crate::prelude::*;

/// Checks the stream of words of type `T` that it is connected to.
#[block(name: &'static str)]
pub struct Stable<T: Synth> {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// While this is set, nothing is claimed.
    pub reset: Signal<In, Bit>,
    /// A word is offered.
    pub valid: Signal<In, Bit>,
    /// The word is taken.
    pub ready: Signal<In, Bit>,
    /// The word.
    pub data: Signal<In, T>,
    waiting: Reg<Bit>,
    offered: Reg<T>,
    #[is(Check::new(name))]
    unchanged: Check,
}

impl<T: Synth> Stable<T> {
    /// A check that reports under `name`.
    ///
    /// # Panics
    /// As [`Check::new`].
    pub fn new(name: &'static str) -> Self {
        Self::build(name)
    }
}

#[block]
impl<T: Synth> Logic for Stable<T> {
    fn update(&mut self) {
        self.waiting.d.next = self.valid.val() & !self.ready.val();
        self.offered.d.next = self.data.val();
        self.unchanged.ok.next =
            !self.waiting.q.val() | (self.valid.val() & (self.data.val() == self.offered.q.val()));
    }
}
