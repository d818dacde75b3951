//! The lowest of a set of up to 64.
//!
//! ```text
//!   set     0 1 1 0 1 0 0 0      place 7 … 0
//!   below   1 1 0 ┄ ┄ 0 0 0      a lower place is in the set
//!   lowest  0 0 0 0 1 0 0 0
//! ```
//!
//! `below` is the set spread upwards in six steps of double width each, of which no more are left in synthesis than the
//! set is wide. So the depth is that of a tree, and a set of four costs one look-up table a place.

use crate::prelude::*;

/// The lowest member of a set of `W` places, 1 to 64.
#[block]
pub struct Lowest<const W: usize> {
    /// A bit a place: it is in the set.
    pub set: Signal<In, Bits<W>>,
    /// The lowest place of them, one bit set; none if the set is empty.
    pub lowest: Signal<Out, Bits<W>>,
    below: Signal<Local, Bits<64>>,
}

#[block]
impl<const W: usize> Logic for Lowest<W> {
    fn update(&mut self) {
        self.below.next = bit_cast::<64, W>(self.set.val()) << 1;
        self.below.next = self.below.val() | (self.below.val() << 1);
        self.below.next = self.below.val() | (self.below.val() << 2);
        self.below.next = self.below.val() | (self.below.val() << 4);
        self.below.next = self.below.val() | (self.below.val() << 8);
        self.below.next = self.below.val() | (self.below.val() << 16);
        self.below.next = self.below.val() | (self.below.val() << 32);
        self.lowest.next = self.set.val() & !bit_cast::<W, 64>(self.below.val());
    }
}

/// A narrow set and the widest side by side, for the test.
#[block]
pub struct LowestOfTwo {
    /// The narrow set.
    pub narrow: Signal<In, Bits<6>>,
    /// Lowest place of the narrow set.
    pub lowest_narrow: Signal<Out, Bits<6>>,
    /// The widest set.
    pub wide: Signal<In, Bits<64>>,
    /// Lowest place of the widest set.
    pub lowest_wide: Signal<Out, Bits<64>>,
    of_narrow: Lowest<6>,
    of_wide: Lowest<64>,
}

#[block]
impl Logic for LowestOfTwo {
    fn update(&mut self) {
        self.of_narrow.set.next = self.narrow.val();
        self.of_wide.set.next = self.wide.val();
        self.lowest_narrow.next = self.of_narrow.lowest.val();
        self.lowest_wide.next = self.of_wide.lowest.val();
    }
}
