//! A level from one clock to another.
//!
//! ```text
//!             input_clock  ┊  output_clock
//!   level ──────► sent ────┊────► unsettled ──► settled ──► seen
//! ```
//!
//! The level leaves from a register, so that nothing but a change of the level itself crosses, and goes through two registers of
//! the other clock: the first may be caught between two values, and has a cycle to decide. A level that stays for less
//! than a cycle of `output_clock` may not be seen. Two levels that change together may arrive a cycle apart. Nothing here is reset:
//! the level follows as soon as both clocks run.

use crate::prelude::*;

/// A level, synchronised.
#[block(initial: bool)]
pub struct Level {
    /// Rising edge counts for `level`.
    pub input_clock: Signal<In, Clock>,
    /// The level, by `input_clock`.
    pub level: Signal<In, Bit>,
    /// Rising edge counts for `seen`.
    pub output_clock: Signal<In, Clock>,
    /// The level, from a register of `output_clock`.
    pub seen: Signal<Out, Bit>,
    #[is(Reg::new(initial))]
    sent: Reg<Bit>,
    #[is(Reg::new(initial))]
    unsettled: Reg<Bit>,
    #[is(Reg::new(initial))]
    settled: Reg<Bit>,
    #[is(usize::from(initial))]
    _initial: usize,
}

impl Level {
    /// A level that is `initial` until another has crossed.
    pub fn new(initial: bool) -> Self {
        Self::build(initial)
    }
}

#[block(initial = self._initial)]
impl Logic for Level {
    fn update(&mut self) {
        self.sent.clock.next = self.input_clock.val();
        self.sent.reset.next = false;
        self.unsettled.clock.next = self.output_clock.val();
        self.unsettled.reset.next = false;
        self.settled.clock.next = self.output_clock.val();
        self.settled.reset.next = false;
        self.sent.d.next = self.level.val();
        self.unsettled.d.next = self.sent.q.val();
        self.settled.d.next = self.unsettled.q.val();
        self.seen.next = self.settled.q.val();
    }
}
