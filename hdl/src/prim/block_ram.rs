//! A [`Ram`](super::Ram) whose user promises not to read a word in the cycle in which it is written.
//!
//! ```text
//!                   ┌──────────┐
//!   write_enable ──►│          │
//!   write_address ─►│ BlockRam │
//!   write_data ────►│          ├──► read_data     the word at read_address, one cycle later;
//!   read_address ──►│          │                  anything if it was being written
//!                   └──────────┘
//! ```
//!
//! The block RAM of an FPGA doesn't say what such a read gives. For a `Ram`, which does, synthesis
//! delays the writes and puts a comparison of the addresses and a multiplexer behind the memory: two
//! flip-flops and a look-up table a bit, on what is often the slowest path. A `BlockRam` has none of that. Tests find
//! a user that breaks the promise: in simulation each bit of the word is inverted.

use super::memory;
use crate::prelude::*;

/// A memory of words of type `T`: one write and one read, of another word, in each cycle. With more than 16 words it is made of
/// block RAM.
#[block(depth: usize, mutation: memory::Mutation)]
pub struct BlockRam<T: Synth> {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// What is written at this edge.
    pub write: Write<T>,
    /// The word to read.
    pub read_address: Signal<In, Bits<16>>,
    /// The word at the `read_address` of the last edge; invalid if that word was written at that edge.
    pub read_data: Signal<Out, T>,
    #[is(vec![T::default(); memory::capacity(depth)])]
    _words: Vec<T>,
    #[is(mutation)]
    _mutation: memory::Mutation,
}

impl<T: Synth> BlockRam<T> {
    /// A memory of at least `depth` words.
    ///
    /// # Panics
    /// If `depth` is below 2 or above 65536.
    pub fn new(depth: usize) -> Self {
        Self::mutated(depth, memory::Mutation::None)
    }

    /// A memory whose printed text breaks a contract, for tests.
    pub(super) fn mutated(depth: usize, mutation: memory::Mutation) -> Self {
        Self::build(depth, mutation)
    }
}

#[block(depth = self._words.len())]
impl<T: Synth> Logic for BlockRam<T> {
    fn update(&mut self) {
        if self.clock.pos_edge() {
            let mask = self._words.len() - 1;
            let from = self.read_address.val().index() & mask;
            let to = self.write.address.val().index() & mask;
            self.read_data.next = self._words[from];
            if self.write.enable.val() {
                self._words[to] = self.write.data.val();
                if from == to {
                    // A `T` can't be inverted, so this says nothing in a way of its own.
                    self.read_data.next = T::default();
                }
            }
        }
    }

    fn connect(&mut self) {
        self.read_data.connect();
    }

    fn hdl(&self) -> Verilog {
        let style = match self._words.len() {
            0..=memory::SLICE_WORDS => memory::Style::Any,
            _ => memory::Style::Block,
        };
        let memory = memory::Text::new(T::BITS, self._words.len(), self._mutation)
            .promised()
            .made_of(style);
        Verilog::Custom(memory.print(&format!(
            "  if (write_enable) words[{}] <= write_data;\n",
            memory.select("write_address")
        )))
    }
}
