//! A memory with one write port and one read port, each word of any type.
//!
//! ```text
//!                   ┌──────────┐
//!   write_enable ──►│          │
//!   write_address ─►│   Ram    │
//!   write_data ────►│          ├──► read_data     the word at read_address, one cycle later
//!   read_address ──►│          │
//!                   └──────────┘
//! ```
//!
//! A word that is read in the cycle in which it is written is the old one. The memory has the next
//! power of two words from `depth` on, and an address takes its low bits. Reset doesn't clear it, since
//! it can't clear a block RAM. Contents are zero when simulation starts, and undefined on hardware;
//! `read_data` is invalid before the first rising edge.

use super::memory::{self, Mutation};
use crate::prelude::*;

/// A memory of words of type `T`: one write and one read in each cycle.
#[block(depth: usize, mutation: Mutation)]
pub struct Ram<T: Synth> {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// What is written at this edge.
    pub write: Write<T>,
    /// The word to read.
    pub read_address: Signal<In, Bits<16>>,
    /// The word at the `read_address` of the last edge, as it was before that edge.
    pub read_data: Signal<Out, T>,
    #[is(vec![T::default(); memory::capacity(depth)])]
    _words: Vec<T>,
    #[is(mutation)]
    _mutation: Mutation,
    #[is(memory::Style::Any)]
    _style: memory::Style,
}

impl<T: Synth> Ram<T> {
    /// A memory of at least `depth` words.
    ///
    /// # Panics
    /// If `depth` is below 2 or above 65536.
    pub fn new(depth: usize) -> Self {
        Self::mutated(depth, Mutation::None)
    }

    /// The same, made of look-up tables however large it is: its word is there early in the cycle, where a block RAM takes half
    /// of one.
    ///
    /// # Panics
    /// As [`Ram::new`].
    pub fn distributed(depth: usize) -> Self {
        Ram {
            _style: memory::Style::Distributed,
            ..Self::new(depth)
        }
    }

    /// The same, made of block RAM if it has more than 16 words: its address may come late in the cycle.
    ///
    /// # Panics
    /// As [`Ram::new`].
    pub fn block(depth: usize) -> Self {
        let style = match memory::capacity(depth) {
            0..=memory::SLICE_WORDS => memory::Style::Any,
            _ => memory::Style::Block,
        };
        Ram {
            _style: style,
            ..Self::new(depth)
        }
    }

    /// A memory whose printed text breaks a contract, for tests.
    pub(super) fn mutated(depth: usize, mutation: Mutation) -> Self {
        Self::build(depth, mutation)
    }
}

#[block(depth = self._words.len())]
impl<T: Synth> Logic for Ram<T> {
    fn update(&mut self) {
        if self.clock.pos_edge() {
            let mask = self._words.len() - 1;
            self.read_data.next = self._words[self.read_address.val().index() & mask];
            if self.write.enable.val() {
                self._words[self.write.address.val().index() & mask] = self.write.data.val();
            }
        }
    }

    fn connect(&mut self) {
        self.read_data.connect();
    }

    fn hdl(&self) -> Verilog {
        let memory =
            memory::Text::new(T::BITS, self._words.len(), self._mutation).made_of(self._style);
        Verilog::Custom(memory.print(&format!(
            "  if (write_enable) words[{}] <= write_data;\n",
            memory.select("write_address")
        )))
    }
}
