//! The sends that wait for credit and for their turn: a queue for each pair, in one memory.
//!
//! ```text
//!   write, at pair and place ──► memory ──► read, of pair and place
//! ```
//!
//! Where a queue begins and how long it is, the pair's word says.

#![allow(
    missing_docs,
    reason = "the LogicStruct derive makes methods without documentation"
)]

use crate::config::Config;
use crate::prelude::*;
use crate::prim::BlockRam;
use crate::types::Segments;
use abi::limits::SEND_QUEUE_DEPTH;

const _: () = assert!(SEND_QUEUE_DEPTH == 8, "places have three bits");

/// A waiting send.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct WaitingSend {
    pub context: Bits<16>,
    /// At most `EAGER_MAX`.
    pub length: Bits<11>,
    /// It completes only on error.
    pub errors_only: Bit,
    /// It is to find a receive posted.
    pub ready: Bit,
    /// The payload is here: in `address`, `key` and `tail`.
    pub inline: Bit,
    pub request: Bits<32>,
    pub match_bits: Bits<64>,
    pub immediate: Bits<64>,
    pub address: Bits<64>,
    pub key: Bits<32>,
    pub tail: Bits<32>,
    /// `length` counts these too.
    pub segments: Segments,
}

/// The memory of all queues. A place is that of a ring: its low bits count.
#[block(config: &Config)]
pub(super) struct Waiting {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// A send comes to this place.
    pub write: Pulse<In, WaitingSend>,
    pub write_pair: Signal<In, Bits<16>>,
    pub write_place: Signal<In, Bits<8>>,
    /// The send at this place, one cycle later. Not one that is being written.
    pub read_pair: Signal<In, Bits<16>>,
    pub read_place: Signal<In, Bits<8>>,
    pub read: Signal<Out, WaitingSend>,
    #[is(BlockRam::new(config.pairs * usize::from(SEND_QUEUE_DEPTH)))]
    memory: BlockRam<WaitingSend>,
    #[is(config.pairs)]
    _pairs: usize,
}

impl Waiting {
    /// The queues of a card.
    pub(super) fn new(config: &Config) -> Self {
        Self::build(config)
    }
}

#[block(pairs = self._pairs)]
impl Logic for Waiting {
    fn update(&mut self) {
        set!(
            self.memory.write,
            enable = self.write.valid.val(),
            data = self.write.data.val(),
            address = (self.write_pair.val() << 3) | bit_cast::<16, 8>(self.write_place.val() & 7)
        );
        self.memory.read_address.next =
            (self.read_pair.val() << 3) | bit_cast::<16, 8>(self.read_place.val() & 7);
        self.read.next = self.memory.read_data.val();
    }
}
