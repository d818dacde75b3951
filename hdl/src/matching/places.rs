//! Small combinational parts of the hashed tables: where a new word goes, and which look-ups must wait.

use crate::prelude::*;
use crate::prim::Lowest;

/// Rows of a look-up in the two tables, each in two places.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Rows {
    /// Of the key, ways 0 to 2.
    pub key0: Bits<16>,
    /// Of the key, ways 3 to 5.
    pub key1: Bits<16>,
    /// Of the handle, ways 0 to 2.
    pub handle0: Bits<16>,
    /// Of the handle, ways 3 to 5.
    pub handle1: Bits<16>,
}

/// The way to fill: the lowest free one in the row with more room, of two rows of three.
#[block]
pub struct Emptier {
    /// Ways that are taken; the first row's are the low three.
    pub occupied: Signal<In, Bits<8>>,
    /// The way to fill, one bit set; none if all are taken.
    pub place: Signal<Out, Bits<8>>,
    row0: Signal<Local, Bits<3>>,
    row1: Signal<Local, Bits<3>>,
    free0: Lowest<3>,
    free1: Lowest<3>,
    taken0: Signal<Local, Bits<2>>,
    taken1: Signal<Local, Bits<2>>,
}

#[block]
impl Logic for Emptier {
    fn update(&mut self) {
        self.row0.next = self.occupied.val().get_bits::<3>(0);
        self.row1.next = self.occupied.val().get_bits::<3>(3);
        self.free0.set.next = !self.row0.val();
        self.free1.set.next = !self.row1.val();
        self.taken0.next = 0.into();
        self.taken1.next = 0.into();
        for i in 0..3 {
            if self.row0.val().get_bit(i) {
                self.taken0.next = self.taken0.val() + 1;
            }
            if self.row1.val().get_bit(i) {
                self.taken1.next = self.taken1.val() + 1;
            }
        }
        self.place.next = bit_cast::<8, 3>(self.free0.lowest.val());
        if self.taken1.val() < self.taken0.val() {
            self.place.next = bit_cast::<8, 3>(self.free1.lowest.val()) << 3;
        }
    }
}

/// Whether a look-up has to wait for an older one, because that may write what this one reads.
#[block]
pub struct Clash {
    /// The older look-up is under way.
    pub valid: Signal<In, Bit>,
    /// Rows of the older look-up.
    pub older: Signal<In, Rows>,
    /// Operation of the older look-up.
    pub older_tag: Signal<In, Bits<4>>,
    /// The older look-up is for a post.
    pub older_post: Signal<In, Bit>,
    /// Rows of the younger look-up.
    pub younger: Signal<In, Rows>,
    /// Operation of the younger look-up.
    pub younger_tag: Signal<In, Bits<4>>,
    /// The younger look-up is for a post.
    pub younger_post: Signal<In, Bit>,
    /// The younger look-up has to wait.
    pub clash: Signal<Out, Bit>,
    /// They are of two operations; and both for posts.
    differ: Signal<Local, Bit>,
    both_post: Signal<Local, Bit>,
}

#[block]
impl Logic for Clash {
    fn update(&mut self) {
        self.differ.next = self.valid.val() & (self.older_tag.val() != self.younger_tag.val());
        self.both_post.next = self.differ.val() & self.older_post.val() & self.younger_post.val();
        self.clash.next = (self.differ.val() & (self.older.val().key0 == self.younger.val().key0))
            | (self.differ.val() & (self.older.val().key1 == self.younger.val().key1))
            | (self.both_post.val() & (self.older.val().handle0 == self.younger.val().handle0))
            | (self.both_post.val() & (self.older.val().handle1 == self.younger.val().handle1));
    }
}
