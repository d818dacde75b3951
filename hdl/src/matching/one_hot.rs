//! Number of the bit that is set in a vector with one bit set.
//!
//! Each bit of the number is an OR over the half of the vector whose positions have that bit, so the
//! depth is that of an OR tree and nothing has to be scanned:
//!
//! ```text
//!   vector ─┬─ & positions with bit 0 ─ any? ─► index bit 0
//!           ├─ & positions with bit 1 ─ any? ─► index bit 1
//!           ┆
//!           └─ & positions with bit 5 ─ any? ─► index bit 5
//! ```
//!
//! With no bit set the number is 0; with several it is the OR of their numbers.

use crate::prelude::*;

/// Encoder from one of 64 to six bits.
#[block]
pub struct OneHot {
    /// At most one bit set.
    pub vector: Signal<In, Bits<64>>,
    /// Position of the bit that is set.
    pub index: Signal<Out, Bits<16>>,
    #[is(positions(0))]
    positions0: Constant<Bits<64>>,
    #[is(positions(1))]
    positions1: Constant<Bits<64>>,
    #[is(positions(2))]
    positions2: Constant<Bits<64>>,
    #[is(positions(3))]
    positions3: Constant<Bits<64>>,
    #[is(positions(4))]
    positions4: Constant<Bits<64>>,
    #[is(positions(5))]
    positions5: Constant<Bits<64>>,
}

/// The positions in a vector of 64 whose number has `bit` set.
fn positions(bit: u32) -> Constant<Bits<64>> {
    let set = (0..64u64).filter(|position| position >> bit & 1 == 1);
    let mask: u64 = set.map(|position| 1 << position).sum();
    Constant::new(mask.into())
}

#[block]
impl Logic for OneHot {
    fn update(&mut self) {
        self.index.next = 0.into();
        self.index.next = self
            .index
            .val()
            .replace_bit(0, (self.vector.val() & self.positions0.val()).any());
        self.index.next = self
            .index
            .val()
            .replace_bit(1, (self.vector.val() & self.positions1.val()).any());
        self.index.next = self
            .index
            .val()
            .replace_bit(2, (self.vector.val() & self.positions2.val()).any());
        self.index.next = self
            .index
            .val()
            .replace_bit(3, (self.vector.val() & self.positions3.val()).any());
        self.index.next = self
            .index
            .val()
            .replace_bit(4, (self.vector.val() & self.positions4.val()).any());
        self.index.next = self
            .index
            .val()
            .replace_bit(5, (self.vector.val() & self.positions5.val()).any());
    }
}
