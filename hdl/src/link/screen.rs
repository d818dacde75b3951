//! The first half of the receiver: it checks a whole frame before any other block sees a word of it.
//!
//! The header goes to a shift register and the payload to a ring, while the CRC is computed. The verdict
//! comes with the last word. A good frame's header enters a FIFO and its payload is committed; a bad frame
//! is counted, and its payload is overwritten by the next. So a frame of any length and content costs the
//! cycles that it takes on the wire and nothing else.
//!
//! ```text
//!              ┌─────────────┐
//!   s_axis ─┬─►│ header      ├──► FIFO ──► frame (FrameHeader)
//!           │  ├─────────────┤
//!           ├─►│ ring        ├───────────► word, the next word of payload
//!           │  ├─────────────┤                ◄── take, discard
//!           └─►│ Crc, checks ├──► count_*, firmware
//!              └─────────────┘
//! ```
//!
//! A good frame for the firmware goes neither to the FIFO nor to the ring: it is reported by `firmware`, and
//! [`FirmwareIn`](super::FirmwareIn) has taken its words as they passed (`passes`, `passes_index`).
//!
//! A bad frame is counted by the first cause that applies: the MAC found it bad (`count_crc_errors`); shorter than
//! a header and trailer (`length`); another EtherType (`type`); longer than the longest frame or not
//! whole words (`length`); trailer (`crc`); version, type or flag unknown (`type`); a length field that
//! disagrees, or a get that wants more than a frame carries (`length`). The version of a `Handshake` isn't looked at: the two firmwares find out by it that
//! they differ.

use crate::config::Config;
use crate::prelude::*;
use crate::prim::axi::StreamSink;
use crate::prim::{Fifo, Ram};
use crate::types::FrameHeader;
use abi::capability::CAPABILITY_GET;
use abi::limits::EAGER_MAX;
use abi::wire::{self, FrameType};

use super::crc::Crc;

/// Words of the header.
const HEADER_WORDS: usize = wire::HEADER_BYTES / 8;
/// Words of the longest payload.
const PAYLOAD_WORDS: usize = EAGER_MAX / 8;
/// Index of the longest frame's trailer, and of what is behind it.
const LAST_TRAILER: usize = HEADER_WORDS + PAYLOAD_WORDS;
const BEYOND: usize = LAST_TRAILER + 1;
/// Words of payload that the ring holds: two longest frames.
pub const RING_WORDS: usize = (2 * PAYLOAD_WORDS).next_power_of_two();
/// Frames that may wait with their payload in the ring.
pub const FRAMES: usize = 8;

/// Checks frames and stores the good ones.
#[block(config: &Config)]
pub struct Screen {
    /// The clock.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset.
    pub reset: Signal<In, Bit>,
    /// Frames from the wire, byte 0 in lane 0. `tkeep` is all ones but in a malformed frame.
    pub s_axis: StreamSink,
    /// Header of the oldest good frame. It is taken when the frame is done with: its payload must have been taken or
    /// discarded, or be so in that cycle.
    pub frame: Stream<Out, FrameHeader>,
    /// Next word of payload; stable until taken.
    pub word: Signal<Out, Bits<64>>,
    /// Moves on by one word of payload.
    pub take: Signal<In, Bit>,
    /// Moves on by `discard_words`.
    pub discard: Signal<In, Bit>,
    /// Words of payload to leave out.
    pub discard_words: Signal<In, Bits<16>>,
    /// A word is taken from `s_axis`.
    pub passes: Signal<Out, Bit>,
    /// Number of that word in its frame; it stops at a number that no frame is long enough for.
    pub passes_index: Signal<Out, Bits<16>>,
    /// With a frame's last word: it is a good one for the firmware.
    pub firmware: Signal<Out, Bit>,
    /// Pulse: a frame was dropped for its CRC, or by the MAC.
    pub count_crc_errors: Signal<Out, Bit>,
    /// Pulse: a frame was dropped for its length.
    pub count_length_errors: Signal<Out, Bit>,
    /// Pulse: a frame was dropped for its EtherType, version, type or flags.
    pub count_type_errors: Signal<Out, Bit>,

    crc: Crc,
    #[is(Ram::new(RING_WORDS))]
    ring: Ram<Bits<64>>,
    #[is(Fifo::new(FRAMES))]
    frames: Fifo<FrameHeader>,
    header: Reg<Bits<576>>,
    /// Number of the word in its frame; stays at `beyond`.
    index: Reg<Bits<16>>,
    #[is(Reg::new(u64::from(u32::MAX).into()))]
    register: Reg<Bits<32>>,
    ragged: Reg<Bit>,
    /// Where the next word of payload goes, and where the frame's first went. Free running.
    write: Reg<Bits<16>>,
    committed: Reg<Bits<16>>,
    read: Reg<Bits<16>>,

    fire: Signal<Local, Bit>,
    head: Signal<Local, FrameHeader>,
    level: Signal<Local, Bits<16>>,
    read_next: Signal<Local, Bits<16>>,
    words: Signal<Local, Bits<16>>,
    wanted: Signal<Local, Bits<17>>,
    trailer: Signal<Local, Bits<64>>,
    short: Signal<Local, Bit>,
    handshake_now: Signal<Local, Bit>,
    for_firmware: Signal<Local, Bit>,
    is_get: Signal<Local, Bit>,
    is_answer: Signal<Local, Bit>,
    /// It may have a payload.
    carries: Signal<Local, Bit>,
    known: Signal<Local, Bit>,
    crc_good: Signal<Local, Bit>,
    length_good: Signal<Local, Bit>,
    good: Signal<Local, Bit>,

    /// The card has gets: it knows their frames.
    #[is(constant(u64::from(config.capabilities & CAPABILITY_GET != 0)))]
    has_gets: Constant<Bits<1>>,

    #[is(Check::new("payload_ring_never_overflows"))]
    room: Check,
}

impl Screen {
    /// The first half of the receiver of a card.
    pub fn new(config: &Config) -> Self {
        Self::build(config)
    }
}

#[block]
impl Logic for Screen {
    fn update(&mut self) {
        // Words come in while there is room for one of payload and for a header.
        self.level.next = self.write.q.val() - self.read.q.val();
        self.s_axis.tready.next = self.frames.input.ready.val() & (self.level.val() < RING_WORDS);
        self.fire.next = self.s_axis.tvalid.val() & self.s_axis.tready.val();

        self.crc.state.next = self.register.q.val();
        self.crc.data.next = self.s_axis.tdata.val();
        self.head.next = self.header.q.val().into();

        // The ring.
        store!(
            self.ring.write,
            false,
            self.write.q.val(),
            self.s_axis.tdata.val()
        );
        self.read_next.next = self.read.q.val();
        if self.take.val() {
            self.read_next.next = self.read.q.val() + 1;
        }
        if self.discard.val() {
            self.read_next.next = self.read.q.val() + self.discard_words.val();
        }
        self.read.d.next = self.read_next.val();
        self.ring.read_address.next = self.read_next.val();
        self.word.next = self.ring.read_data.val();

        // What the verdict is made of.
        self.trailer.next = bit_cast::<64, 32>(!self.register.q.val());
        self.crc_good.next = self.s_axis.tdata.val() == self.trailer.val();
        self.short.next = self.index.q.val() < HEADER_WORDS;
        self.handshake_now.next = self.head.val().frame_type == FrameType::Handshake;
        self.for_firmware.next =
            self.handshake_now.val() | (self.head.val().frame_type == FrameType::Management);
        self.is_get.next =
            (self.head.val().frame_type == FrameType::Get) & self.has_gets.val().any();
        self.is_answer.next =
            (self.head.val().frame_type == FrameType::GetAnswer) & self.has_gets.val().any();
        self.carries.next = (self.head.val().frame_type == FrameType::Eager)
            | (self.head.val().frame_type == FrameType::Put)
            | (self.is_answer.val() & (self.head.val().flags == 0));
        self.known.next = ((self.head.val().version == wire::VERSION) | self.handshake_now.val())
            & (self.carries.val()
                | self.is_get.val()
                | self.is_answer.val()
                | (self.head.val().frame_type == FrameType::Acknowledge)
                | (self.head.val().frame_type == FrameType::PairFailed)
                | (self.head.val().frame_type == FrameType::Ask)
                | (self.head.val().frame_type == FrameType::PairClosed)
                | self.for_firmware.val())
            & ((self.head.val().flags == 0)
                | ((self.head.val().flags == wire::FRAME_READY)
                    & (self.head.val().frame_type == FrameType::Eager))
                | ((self.head.val().flags == wire::FRAME_REFUSED) & self.is_answer.val())
                | ((self.head.val().flags == wire::FRAME_GAP)
                    & ((self.head.val().frame_type == FrameType::Acknowledge)
                        | (self.head.val().frame_type == FrameType::Ask))));
        self.words.next = self.index.q.val() - HEADER_WORDS;
        self.wanted.next = (bit_cast::<17, 16>(self.head.val().payload_length) + 7) >> 3;
        self.length_good.next = (self.wanted.val() == bit_cast::<17, 16>(self.words.val()))
            & (self.head.val().message_length
                == bit_cast::<40, 16>(self.head.val().payload_length))
            & (!self.is_get.val() | (self.head.val().context <= EAGER_MAX))
            & (self.carries.val()
                | (self.for_firmware.val()
                    & (self.head.val().payload_length == wire::MANAGEMENT_BYTES))
                | (!self.for_firmware.val() & (self.head.val().payload_length == 0)));

        self.good.next = false;
        self.count_crc_errors.next = false;
        self.count_length_errors.next = false;
        self.count_type_errors.next = false;
        if self.fire.val() {
            self.register.d.next = self.crc.result.val();
            if self.index.q.val() != BEYOND {
                self.index.d.next = self.index.q.val() + 1;
            }
            if self.short.val() {
                self.header.d.next = (self.header.q.val() >> 64)
                    | (bit_cast::<576, 64>(self.s_axis.tdata.val()) << 512);
            }
            if self.s_axis.tkeep.val() != 0xff {
                self.ragged.d.next = true;
            }
            if !self.s_axis.tlast.val() {
                if !self.short.val() & (self.index.q.val() < LAST_TRAILER) {
                    self.ring.write.enable.next = true;
                    self.write.d.next = self.write.q.val() + 1;
                }
            } else {
                self.index.d.next = 0.into();
                self.register.d.next = u32::MAX;
                self.ragged.d.next = false;
                if self.s_axis.tuser.val() {
                    self.count_crc_errors.next = true;
                } else if self.short.val() {
                    self.count_length_errors.next = true;
                } else if self.head.val().ethertype != wire::ETHERTYPE_FIELD {
                    self.count_type_errors.next = true;
                } else if self.ragged.q.val()
                    | (self.s_axis.tkeep.val() != 0xff)
                    | (self.index.q.val() == BEYOND)
                {
                    self.count_length_errors.next = true;
                } else if !self.crc_good.val() {
                    self.count_crc_errors.next = true;
                } else if !self.known.val() {
                    self.count_type_errors.next = true;
                } else if !self.length_good.val() {
                    self.count_length_errors.next = true;
                } else {
                    self.good.next = true;
                }
                if self.good.val() & !self.for_firmware.val() {
                    self.committed.d.next = self.write.q.val();
                } else {
                    self.write.d.next = self.committed.q.val();
                }
            }
        }

        self.passes.next = self.fire.val();
        self.passes_index.next = self.index.q.val();
        self.firmware.next = self.good.val() & self.for_firmware.val();
        self.frames.input.valid.next = self.good.val() & !self.for_firmware.val();
        self.frames.input.data.next = self.head.val();
        join!(self.frames.output => self.frame);

        self.room.ok.next = self.level.val() <= RING_WORDS;
    }
}
