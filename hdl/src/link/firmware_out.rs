//! A frame of the firmware's own on its way to the wire.
//!
//! The processor writes the frame, header and payload, word by word; `send` then streams it with the CRC as its trailer. Until
//! the frame has ended `ready` is low, and neither a write nor another `send` has an effect: the frame that goes out is the one
//! written before. It is offered without a pause, which the wire needs.
//!
//! ```text
//!   write, write_address ─►┌────────────┐ word ┌─────┐
//!   write_data ───────────►│ 28 words   ├─┬───►│ Crc │
//!                          └────────────┘ │    └──┬──┘
//!   send ─►┌───────┐                      ▼       ▼ trailer
//!   ready ◄┤ index ├──────────────────► 14 words, then it ──► m_axis
//!          └───────┘
//! ```

use crate::prelude::*;
use crate::prim::Ram;
use crate::prim::axi::StreamSource;
use abi::mgmt::FRAME_WORDS;

use super::crc::Crc;

/// Words of 64 bits before the trailer.
pub(super) const WORDS: usize = FRAME_WORDS / 2;

/// The processor's frame buffer and its way out.
#[block]
pub struct FirmwareOut {
    /// The clock.
    pub clock: Signal<In, Clock>,
    /// Ends a frame that is being sent; the words stay.
    pub reset: Signal<In, Bit>,
    /// Writes a word of the frame.
    pub write: Signal<In, Bit>,
    /// Number of the word, below [`FRAME_WORDS`].
    pub write_address: Signal<In, Bits<5>>,
    /// The word.
    pub write_data: Signal<In, Bits<32>>,
    /// Pulse: sends the frame.
    pub send: Signal<In, Bit>,
    /// No frame is being sent.
    pub ready: Signal<Out, Bit>,
    /// The frame, trailer included.
    pub m_axis: StreamSource,
    /// Pulse: a frame has been sent.
    pub count_frames_sent: Signal<Out, Bit>,

    #[is(Ram::new(WORDS))]
    low: Ram<Bits<32>>,
    #[is(Ram::new(WORDS))]
    high: Ram<Bits<32>>,
    crc: Crc,
    sending: Reg<Bit>,
    /// Number of the word that is offered.
    index: Reg<Bits<16>>,
    #[is(Reg::new(u64::from(u32::MAX).into()))]
    register: Reg<Bits<32>>,

    writes: Signal<Local, Bit>,
    word: Signal<Local, Bits<64>>,
    fire: Signal<Local, Bit>,
    index_next: Signal<Local, Bits<16>>,
}

#[block]
impl Logic for FirmwareOut {
    fn update(&mut self) {
        self.writes.next = self.write.val() & !self.sending.q.val();
        self.ready.next = !self.sending.q.val();
        store!(
            self.low.write,
            self.writes.val() & !self.write_address.val().get_bit(0),
            bit_cast::<16, 5>(self.write_address.val() >> 1),
            self.write_data.val()
        );
        store!(
            self.high.write,
            self.writes.val() & self.write_address.val().get_bit(0),
            bit_cast::<16, 5>(self.write_address.val() >> 1),
            self.write_data.val()
        );

        // The memories are read at the word that is offered in the next cycle.
        self.fire.next = self.sending.q.val() & self.m_axis.tready.val();
        self.index_next.next = self.index.q.val();
        if self.fire.val() {
            self.index_next.next = self.index.q.val() + 1;
        }
        self.low.read_address.next = self.index_next.val();
        self.high.read_address.next = self.index_next.val();
        self.word.next = bit_cast::<64, 32>(self.low.read_data.val())
            | (bit_cast::<64, 32>(self.high.read_data.val()) << 32);
        self.crc.state.next = self.register.q.val();
        self.crc.data.next = self.word.val();

        self.m_axis.tvalid.next = self.sending.q.val();
        self.m_axis.tdata.next = self.word.val();
        self.m_axis.tkeep.next = 0xff.into();
        self.m_axis.tlast.next = false;
        self.count_frames_sent.next = false;
        self.index.d.next = self.index_next.val();
        if self.fire.val() {
            self.register.d.next = self.crc.result.val();
        }
        if self.index.q.val() == WORDS {
            self.m_axis.tdata.next = bit_cast::<64, 32>(!self.register.q.val());
            self.m_axis.tlast.next = true;
            if self.fire.val() {
                self.sending.d.next = false;
                self.index.d.next = 0.into();
                self.register.d.next = u32::MAX;
                self.count_frames_sent.next = true;
            }
        }
        if self.send.val() & !self.sending.q.val() {
            self.sending.d.next = true;
        }
    }
}
