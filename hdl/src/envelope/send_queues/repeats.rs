//! The sends that have left, whole, so that they can be sent again.
//!
//! ```text
//!   a job's answer ──► write, at pair and number ──► memory ──► read, of pair and number ──► the pair's turn
//! ```

#![allow(
    missing_docs,
    reason = "the LogicStruct derive makes methods without documentation"
)]

use super::waiting::WaitingSend;
use crate::config::Config;
use crate::prelude::*;
use crate::prim::BlockRam;
use abi::limits::MAX_CREDITS;

const _: () = assert!(MAX_CREDITS == 16, "numbers of a ring have four bits");

/// The memory of all pairs. Of a number the low bits count.
#[block(config: &Config)]
pub(super) struct Repeats {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// A send has left: this number of this pair.
    pub write: Pulse<In, WaitingSend>,
    pub write_pair: Signal<In, Bits<16>>,
    pub write_number: Signal<In, Bits<32>>,
    /// The send of this number, one cycle later.
    pub read_pair: Signal<In, Bits<16>>,
    pub read_number: Signal<In, Bits<32>>,
    pub read: Signal<Out, WaitingSend>,
    #[is(BlockRam::new(config.pairs * usize::from(MAX_CREDITS)))]
    memory: BlockRam<WaitingSend>,
    #[is(config.pairs)]
    _pairs: usize,
}

impl Repeats {
    /// The memory of a card.
    pub(super) fn new(config: &Config) -> Self {
        Self::build(config)
    }
}

#[block(pairs = self._pairs)]
impl Logic for Repeats {
    fn update(&mut self) {
        store!(
            self.memory.write,
            self.write.valid.val(),
            (self.write_pair.val() << 4) | bit_cast::<16, 32>(self.write_number.val() & 15),
            self.write.data.val()
        );
        self.memory.read_address.next =
            (self.read_pair.val() << 4) | bit_cast::<16, 32>(self.read_number.val() & 15);
        self.read.next = self.memory.read_data.val();
    }
}
