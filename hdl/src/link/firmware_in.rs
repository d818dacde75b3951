//! Frames for the firmware, beside the receiver.
//!
//! Each word that [`Screen`](super::Screen) takes is written here too, to the place behind the frames that wait. If the frame
//! turns out to be a good one for the firmware (`accept`, with its last word), the place is kept; otherwise the next frame
//! overwrites it. So a frame for the firmware costs the receiver the cycles that it takes on the wire and nothing else, whether
//! or not there is room here, and whether or not the firmware ever reads.
//!
//! ```text
//!   word_valid, word_index ─►┌──────────────────┐
//!   word ───────────────────►│ FRAMES_IN + 1    ├──► read_data    of the oldest frame
//!   accept ─────────────────►│ frames           │◄── read_address
//!                            └──────────────────┘──► valid
//!   count_frames_received, count_frames_dropped      ◄── take
//! ```
//!
//! A frame is dropped if [`FRAMES_IN`] wait when its last word comes, even if one of them is taken in the same cycle.

use crate::prelude::*;
use crate::prim::BlockRam;
use abi::mgmt::FRAMES_IN;

use super::firmware_out::WORDS;

/// Words of a place: a frame and its trailer.
const PLACE_WORDS: usize = 16;
/// Places, one of which takes the words of the frame that is coming in.
const PLACES: usize = 8;

const _: () = assert!(WORDS < PLACE_WORDS && PLACE_WORDS == 1 << 4 && PLACES == 1 << 3);
const _: () = assert!(
    FRAMES_IN < PLACES,
    "no frame that waits is written to: `BlockRam` wants it so"
);

/// Keeps frames for the firmware.
#[block]
pub struct FirmwareIn {
    /// The clock.
    pub clock: Signal<In, Clock>,
    /// Forgets all frames.
    pub reset: Signal<In, Bit>,
    /// Number of the word in its frame.
    pub word_index: Signal<In, Bits<16>>,
    /// The word.
    pub word: Pulse<In, Bits<64>>,
    /// With a frame's last word: it is good, of the right length, and for the firmware.
    pub accept: Signal<In, Bit>,
    /// A frame waits.
    pub valid: Signal<Out, Bit>,
    /// Pulse: the oldest frame leaves.
    pub take: Signal<In, Bit>,
    /// Word of the oldest frame to read, of 32 bits.
    pub read_address: Signal<In, Bits<5>>,
    /// The word that was asked for in the cycle before, if a frame waited.
    pub read_data: Signal<Out, Bits<32>>,
    /// Pulse: a frame was kept.
    pub count_frames_received: Signal<Out, Bit>,
    /// Pulse: a frame was dropped because it found no room.
    pub count_frames_dropped: Signal<Out, Bit>,

    #[is(BlockRam::new(PLACES * PLACE_WORDS))]
    kept: BlockRam<Bits<64>>,
    /// Place of the oldest frame, and of the one that is coming in.
    head: Reg<Bits<3>>,
    tail: Reg<Bits<3>>,
    waiting: Reg<Bits<3>>,
    odd: Reg<Bit>,

    full: Signal<Local, Bit>,
    keeps: Signal<Local, Bit>,
    frees: Signal<Local, Bit>,

    a_frame_that_is_kept_has_room: Check,
}

#[block]
impl Logic for FirmwareIn {
    fn update(&mut self) {
        store!(
            self.kept.write,
            self.word.valid.val() & (self.word_index.val() < PLACE_WORDS),
            (bit_cast::<16, 3>(self.tail.q.val()) << 4)
                | bit_cast::<16, 4>(self.word_index.val().get_bits::<4>(0)),
            self.word.data.val()
        );
        self.kept.read_address.next = (bit_cast::<16, 3>(self.head.q.val()) << 4)
            | bit_cast::<16, 5>(self.read_address.val() >> 1);
        self.odd.d.next = self.read_address.val().get_bit(0);
        self.read_data.next = self.kept.read_data.val().get_bits::<32>(0);
        if self.odd.q.val() {
            self.read_data.next = self.kept.read_data.val().get_bits::<32>(32);
        }

        self.full.next = self.waiting.q.val() == FRAMES_IN;
        self.valid.next = self.waiting.q.val().any();
        self.keeps.next = self.accept.val() & !self.full.val();
        self.frees.next = self.take.val() & self.valid.val();
        self.count_frames_dropped.next = self.accept.val() & self.full.val();
        self.count_frames_received.next = self.keeps.val();
        if self.keeps.val() {
            self.tail.d.next = self.tail.q.val() + 1;
        }
        if self.frees.val() {
            self.head.d.next = self.head.q.val() + 1;
        }
        if self.keeps.val() & !self.frees.val() {
            self.waiting.d.next = self.waiting.q.val() + 1;
        }
        if self.frees.val() & !self.keeps.val() {
            self.waiting.d.next = self.waiting.q.val() - 1;
        }
        self.a_frame_that_is_kept_has_room.ok.next = (self.waiting.q.val() < FRAMES_IN)
            | ((self.waiting.q.val() == FRAMES_IN) & !self.keeps.val());
    }
}
