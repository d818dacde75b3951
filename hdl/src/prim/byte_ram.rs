//! A memory whose bytes can be written one by one: [`Ram`](super::Ram) with a write enable for each.
//!
//! ```text
//!                   ┌──────────┐
//!   write_enable ──►│          │     bit n enables byte n, least significant first
//!   write_address ─►│ ByteRam  │
//!   write_data ────►│          ├──► read_data     the word at read_address, one cycle later
//!   read_address ──►│          │
//!                   └──────────┘
//! ```
//!
//! Everything else is as for `Ram`: a word read in the cycle of its write is the old one, addresses
//! take their low bits, reset clears nothing.

use super::memory::{self, Mutation};
use crate::prelude::*;

/// A memory of words of `W` bits, which are `NB` bytes.
#[block(depth: usize, mutation: Mutation)]
pub struct ByteRam<const W: usize, const NB: usize> {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// What is written at this edge: the bytes that `enable` names, each in its place.
    pub write: Write<Bits<W>, Bits<NB>>,
    /// The word to read.
    pub read_address: Signal<In, Bits<16>>,
    /// The word at the `read_address` of the last edge, as it was before that edge.
    pub read_data: Signal<Out, Bits<W>>,
    #[is(vec![Bits::default(); memory::capacity(depth)])]
    _words: Vec<Bits<W>>,
    #[is(mutation)]
    _mutation: Mutation,
}

impl<const W: usize, const NB: usize> ByteRam<W, NB> {
    /// A memory of at least `depth` words.
    ///
    /// # Panics
    /// If `W` isn't `8 * NB`, or `depth` is below 2 or above 65536.
    pub fn new(depth: usize) -> Self {
        Self::mutated(depth, Mutation::None)
    }

    /// A memory whose printed text breaks a contract, for tests.
    pub(super) fn mutated(depth: usize, mutation: Mutation) -> Self {
        assert_eq!(W, 8 * NB, "a word of {W} bits isn't {NB} bytes");
        Self::build(depth, mutation)
    }
}

#[block(depth = self._words.len())]
impl<const W: usize, const NB: usize> Logic for ByteRam<W, NB> {
    fn update(&mut self) {
        if self.clock.pos_edge() {
            let mask = self._words.len() - 1;
            self.read_data.next = self._words[self.read_address.val().index() & mask];
            let word = &mut self._words[self.write.address.val().index() & mask];
            for byte in (0..NB).filter(|byte| self.write.enable.val().get_bit(*byte)) {
                word.set_bits::<8>(8 * byte, self.write.data.val().get_bits::<8>(8 * byte));
            }
        }
    }

    fn connect(&mut self) {
        self.read_data.connect();
    }

    fn hdl(&self) -> Verilog {
        let memory = memory::Text::new(W, self._words.len(), self._mutation);
        let word = memory.select("write_address");
        let enabled = match self._mutation {
            Mutation::WritesWholeWord => "|write_enable",
            _ => "write_enable[lane]",
        };
        Verilog::Custom(memory.print(&format!(
            "  for (int lane = 0; lane < {NB}; lane = lane + 1)\n    \
             if ({enabled}) words[{word}][8*lane +: 8] <= write_data[8*lane +: 8];\n"
        )))
    }
}
