//! The five kernels that rust-hdl's own printer is known to get wrong, on all inputs.

use crate::kernel::{Case, Inputs};
use hdl::prelude::*;

crate::kernel! {
    /// `==` binds tighter than `&` in Verilog: 30,581 inputs differ.
    Precedence, full_range, { a: Bits<8>, b: Bits<8> }, Bit, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = self.a.val() & self.b.val() == self.b.val();
    }
}

crate::kernel! {
    /// The carry stays: 32,640 inputs differ.
    Carry, full_range, { a: Bits<8>, b: Bits<8> }, Bits<16>, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = bit_cast::<16, 8>(self.a.val() + self.b.val());
    }
}

crate::kernel! {
    /// Eight bits are inverted, not four: 4,096 inputs differ.
    NarrowNot, full_range, { a: Bits<8>, b: Bits<8> }, Bit, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = !bit_cast::<4, 8>(self.a.val()) == bit_cast::<4, 8>(self.b.val());
    }
}

crate::kernel! {
    /// The difference is taken in 32 bits: a handful of inputs differ.
    WideDifference, full_range, { a: Bits<8>, b: Bits<8> }, Bits<8>, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = self.a.val() - 1;
        if self.a.val() - self.b.val() > 3 {
            self.o.next = self.a.val() << self.b.val();
        }
    }
}

crate::kernel! {
    /// The sum is widened: wrong at the wrap alone, the classic FIFO bug.
    Wrap, full_range, { a: Bits<8>, b: Bits<8> }, Bit, {},
    #[hdl_gen]
    fn update(&mut self) {
        self.o.next = (self.a.val() + 1) == self.b.val();
    }
}

/// All five, each over all 65,536 inputs.
pub fn all() -> Vec<Case> {
    [
        Case::of::<Precedence>(),
        Case::of::<Carry>(),
        Case::of::<NarrowNot>(),
        Case::of::<WideDifference>(),
        Case::of::<Wrap>(),
    ]
    .into_iter()
    .map(|case| case.tried(Inputs::All(16)))
    .collect()
}
