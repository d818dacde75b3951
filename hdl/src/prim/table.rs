//! A memory that clears itself.
//!
//! ```text
//!                    ┌───────────┐
//!   write_enable ───►│           ├──► initialized   every word was cleared
//!   write_address ──►│   Table   │
//!   write_data ─────►│           ├──► read_data     the word at read_address, one cycle later
//!   read_address ───►│           │
//!                    └───────────┘
//! ```
//!
//! After each reset it writes its default to one word in a cycle; until then it is not `initialized`, takes no write and says
//! nothing of what it reads. A write to a number from `depth` on has no effect. What is read of such a number is another word, for an address takes its low
//! bits: who reads compares the number. A word that is read in the cycle in which it is written is the old one, as of a [`Ram`].

use super::ram::Ram;
use crate::prelude::*;

/// `depth` words of type `T`, each `T::default()` until it is written.
#[block(depth: usize)]
pub struct Table<T: Synth> {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Clears it.
    pub reset: Signal<In, Bit>,
    /// The table is cleared.
    pub initialized: Signal<Out, Bit>,
    /// What is written at this edge; nothing at an address from `depth` on.
    pub write: Write<T>,
    /// The word to read.
    pub read_address: Signal<In, Bits<16>>,
    /// The word at the `read_address` of the last edge, as it was before that edge.
    pub read_data: Signal<Out, T>,
    #[is(Ram::new(depth))]
    memory: Ram<T>,
    clearing: Reg<Bits<16>>,
    cleared: Reg<Bit>,
    in_table: Signal<Local, Bit>,
    #[is(constant(depth as u64))]
    depth: Constant<Bits<17>>,
    #[is(constant(depth as u64 - 1))]
    last: Constant<Bits<16>>,
    #[is(Constant::new(T::default()))]
    empty: Constant<T>,
}

impl<T: Synth> Table<T> {
    /// A table of `depth` words.
    ///
    /// # Panics
    /// If `depth` is below 2 or above 65536.
    pub fn new(depth: usize) -> Self {
        Self::build(depth)
    }

    /// The same, made of block RAM if it has more than 16 words: its address may come late in the cycle.
    ///
    /// # Panics
    /// As [`Table::new`].
    pub fn block(depth: usize) -> Self {
        Table {
            memory: Ram::block(depth),
            ..Self::new(depth)
        }
    }
}

#[block(depth = self.depth.val().index())]
impl<T: Synth> Logic for Table<T> {
    fn update(&mut self) {
        self.initialized.next = self.cleared.q.val();
        self.in_table.next = bit_cast::<17, 16>(self.write.address.val()) < self.depth.val();
        store!(
            self.memory.write,
            self.write.enable.val() & self.in_table.val(),
            self.write.address.val(),
            self.write.data.val()
        );
        self.memory.read_address.next = self.read_address.val();
        self.read_data.next = self.memory.read_data.val();
        if !self.cleared.q.val() {
            store!(
                self.memory.write,
                true,
                self.clearing.q.val(),
                self.empty.val()
            );
            self.clearing.d.next = self.clearing.q.val() + 1;
            self.cleared.d.next = self.clearing.q.val() == self.last.val();
        }
    }
}
