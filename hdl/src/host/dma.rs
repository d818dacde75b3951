//! What the two DMA engines share: the arithmetic of an access that need not be aligned.
//!
//! ```text
//!   address …3, length 12        bytes of client word   0        1
//!   lane        0 1 2 3 4 5 6 7                         01234567 89ab
//!   beat 0      . . . 0 1 2 3 4    offset 3
//!   beat 1      5 6 7 8 9 a b .    end 7: lanes of the last beat, 0 for all
//! ```

#![allow(
    missing_docs,
    reason = "the LogicStruct derive makes methods without documentation"
)]

use crate::prelude::*;
use crate::prim::axi::BOUNDARY;
use crate::types::DmaRequest;

/// An access on its way: what follows from its address and length.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Access {
    /// Client that the access is for.
    pub client: Bits<8>,
    /// Lane of its first byte.
    pub offset: Bits<3>,
    /// Place of its first beat in the page of 4 KiB.
    pub first: Bits<9>,
    /// Bytes in the client's last word, 0 for 8.
    pub tail: Bits<3>,
    /// Lanes of the last beat, 0 for 8.
    pub end: Bits<3>,
    /// Words of the client: ⌈length/8⌉.
    pub words: Bits<14>,
    /// Beats on the bus: as many, or one more.
    pub beats: Bits<14>,
}

/// Works out an [`Access`].
#[block]
pub struct Measure {
    /// Client that the access is for.
    pub client: Signal<In, Bits<8>>,
    /// What the client asks for.
    pub request: Signal<In, DmaRequest>,
    /// The result, in the same cycle.
    pub access: Signal<Out, Access>,
    /// The access ends in the page of [`BOUNDARY`] bytes in which it begins.
    pub in_page: Signal<Out, Bit>,
    place: Signal<Local, Bits<12>>,
    room: Signal<Local, Bits<17>>,
    lanes: Signal<Local, Bits<17>>,
    bytes: Signal<Local, Bits<17>>,
}

#[block]
impl Logic for Measure {
    fn update(&mut self) {
        self.bytes.next = bit_cast::<17, 16>(self.request.val().length);
        self.lanes.next =
            self.bytes.val() + bit_cast::<17, 3>(self.request.val().address.get_bits::<3>(0));
        self.place.next = self.request.val().address.get_bits::<12>(0);
        self.room.next = BOUNDARY - bit_cast::<17, 12>(self.place.val());
        self.in_page.next = self.bytes.val() <= self.room.val();
        self.access.next = Access {
            client: self.client.val(),
            offset: self.request.val().address.get_bits::<3>(0),
            first: self.request.val().address.get_bits::<9>(3),
            tail: self.bytes.val().get_bits::<3>(0),
            end: self.lanes.val().get_bits::<3>(0),
            words: bit_cast::<14, 17>((self.bytes.val() + 7) >> 3),
            beats: bit_cast::<14, 17>((self.lanes.val() + 7) >> 3),
        };
    }
}
