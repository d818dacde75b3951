//! One way of a hashed table: a memory with a word a row, read one row a cycle.
//!
//! ```text
//!   read_row ──► Ram ──┬─► word
//!   write ───────┴─────┘   as the write of this cycle and that of the last one leave it
//! ```
//!
//! `word` is the word of the row that was read at the last edge, with the writes up to and in this very cycle
//! done: who reads a row in the cycle of a write to it, or in the one before, misses nothing. Rows are
//! compared whole: their users cut them to the size of the table.

use crate::prelude::*;
use crate::prim::BlockRam;

/// A way of words of type `T`.
#[derive(LogicBlock)]
pub struct Way<T: Synth> {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset; the memory keeps what it holds.
    pub reset: Signal<In, Bit>,
    /// Row to read at this edge.
    pub read_row: Signal<In, Bits<16>>,
    /// The word of the row read at the last edge.
    pub word: Signal<Out, T>,
    /// Write in this cycle.
    pub write: Signal<In, Bit>,
    /// Where to.
    pub write_row: Signal<In, Bits<16>>,
    /// What.
    pub write_word: Signal<In, T>,
    memory: BlockRam<T>,
    _rows: usize,
    row: Reg<Bits<16>>,
    written: Reg<T>,
    was_written: Reg<Bit>,
}

impl<T: Synth> Way<T> {
    /// A way of `rows` rows, a power of two.
    pub fn new(rows: usize) -> Self {
        assert!(rows.is_power_of_two(), "{rows} rows");
        Way {
            clock: Signal::default(),
            reset: Signal::default(),
            read_row: Signal::default(),
            word: Signal::default(),
            write: Signal::default(),
            write_row: Signal::default(),
            write_word: Signal::default(),
            memory: BlockRam::new(rows),
            _rows: rows,
            row: Reg::default(),
            written: Reg::default(),
            was_written: Reg::default(),
        }
    }

    /// Rows of it.
    pub fn rows(&self) -> usize {
        self._rows
    }
}

#[module(rows = self._rows)]
impl<T: Synth> Logic for Way<T> {
    #[hdl_gen]
    fn update(&mut self) {
        registers!(self, clock, reset, row, written, was_written);
        clock!(self, clock, memory);
        self.memory.read_address.next = self.read_row.val();
        self.memory.write_enable.next = self.write.val();
        self.memory.write_address.next = self.write_row.val();
        self.memory.write_data.next = self.write_word.val();
        self.row.d.next = self.read_row.val();
        self.written.d.next = self.write_word.val();
        self.was_written.d.next = self.write.val() & (self.write_row.val() == self.read_row.val());
        self.word.next = self.memory.read_data.val();
        if self.was_written.q.val() {
            self.word.next = self.written.q.val();
        }
        if self.write.val() & (self.write_row.val() == self.row.q.val()) {
            self.word.next = self.write_word.val();
        }
    }
}
