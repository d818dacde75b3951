//! One way of a hashed table: a memory with a word a row, read one row a cycle.
//!
//! ```text
//!   cycle 0              1                        2
//!   read_row ──► Ram ──► read, capture ─────────► word
//!                        written in cycle 0? ───► in_old
//!   write ─────────────► written in cycle 1? ───► in_last
//!   next write ────────► written in cycle 2? ───► in_now
//! ```
//!
//! If a row is written in the cycle in which it is read, or in one of the next two, the word read is invalid: `in_old`,
//! `in_last` and `in_now` say which write it missed. The ways of a table write one word at a time, so their user keeps the
//! words written once for all ways (`Written`) instead of a multiplexer a way. A cycle's write is known in the cycle before,
//! so it comes from registers.

use crate::prelude::*;
use crate::prim::BlockRam;

/// Whether the row that is read is the row that is written; the same for all ways that share their rows.
#[block]
pub struct SameRow {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset.
    pub reset: Signal<In, Bit>,
    /// Row to read at this edge.
    pub read_row: Signal<In, Bits<16>>,
    /// Row to write at this edge.
    pub write_row: Signal<In, Bits<16>>,
    /// Row to write at the next edge.
    pub next_row: Signal<In, Bits<16>>,
    /// The row read at the last edge was that of the write at that edge.
    pub in_old: Signal<Out, Bit>,
    /// The row read at the last edge is that of the write at this edge.
    pub in_last: Signal<Out, Bit>,
    /// The row read at the last edge is that of the write at the next edge.
    pub in_now: Signal<Out, Bit>,
    row: Reg<Bits<16>>,
    written: Reg<Bits<16>>,
}

#[block]
impl Logic for SameRow {
    fn update(&mut self) {
        self.row.d.next = self.read_row.val();
        self.written.d.next = self.write_row.val();
        self.in_old.next = self.written.q.val() == self.row.q.val();
        self.in_last.next = self.write_row.val() == self.row.q.val();
        self.in_now.next = self.next_row.val() == self.row.q.val();
    }
}

/// A way of words of type `T`.
#[block(rows: usize)]
pub struct Way<T: Synth> {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset; the memory keeps what it holds.
    pub reset: Signal<In, Bit>,
    /// Row to read at this edge.
    pub read_row: Signal<In, Bits<16>>,
    /// Take the word of the row that was read at the last edge.
    pub capture: Signal<In, Bit>,
    /// From [`SameRow`]: the write of the last cycle would have been to that row.
    pub same_old: Signal<In, Bit>,
    /// From [`SameRow`]: the write of this cycle would be.
    pub same_last: Signal<In, Bit>,
    /// From [`SameRow`]: the write of the next cycle would be.
    pub same_now: Signal<In, Bit>,
    /// The word taken, unless one of these is set:
    pub word: Signal<Out, T>,
    /// The word of the row is what was written in the cycle before that of `capture`.
    pub in_old: Signal<Out, Bit>,
    /// The word of the row is what was written in the cycle of `capture`.
    pub in_last: Signal<Out, Bit>,
    /// The word of the row is what was written in the cycle after that of `capture`.
    pub in_now: Signal<Out, Bit>,
    /// Write in this cycle.
    pub write: Signal<In, Bit>,
    /// Where to.
    pub write_row: Signal<In, Bits<16>>,
    /// What.
    pub write_word: Signal<In, T>,
    /// Write in the next cycle.
    pub next_write: Signal<In, Bit>,
    #[is(BlockRam::new(rows))]
    memory: BlockRam<T>,
    #[is(rows)]
    _rows: usize,
    wrote: Reg<Bit>,
    captured: Reg<T>,
    old: Reg<Bit>,
    last: Reg<Bit>,
    now: Reg<Bit>,
}

impl<T: Synth> Way<T> {
    /// A way of `rows` rows, a power of two.
    pub fn new(rows: usize) -> Self {
        assert!(rows.is_power_of_two(), "{rows} rows");
        Self::build(rows)
    }

    /// Rows of it.
    pub fn rows(&self) -> usize {
        self._rows
    }
}

#[block(rows = self._rows)]
impl<T: Synth> Logic for Way<T> {
    fn update(&mut self) {
        self.memory.read_address.next = self.read_row.val();
        store!(
            self.memory.write,
            self.write.val(),
            self.write_row.val(),
            self.write_word.val()
        );
        self.wrote.d.next = self.write.val();
        if self.capture.val() {
            self.captured.d.next = self.memory.read_data.val();
            self.old.d.next = self.same_old.val() & self.wrote.q.val();
            self.last.d.next = self.same_last.val() & self.write.val();
            self.now.d.next = self.same_now.val() & self.next_write.val();
        }
        self.word.next = self.captured.q.val();
        self.in_old.next = self.old.q.val() & !self.last.q.val() & !self.now.q.val();
        self.in_last.next = self.last.q.val() & !self.now.q.val();
        self.in_now.next = self.now.q.val();
    }
}

/// The last words written to a table, as its ways refer to them.
#[block]
pub struct Written<T: Synth> {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset.
    pub reset: Signal<In, Bit>,
    /// The word that is written in this cycle, if any is.
    pub write_word: Signal<In, T>,
    /// The word that is written in the next cycle, if any is.
    pub next_word: Signal<In, T>,
    /// Keep both words, and that of the last cycle.
    pub capture: Signal<In, Bit>,
    /// The word of the cycle before the last `capture`.
    pub old: Signal<Out, T>,
    /// The word of the cycle of the last `capture`.
    pub last: Signal<Out, T>,
    /// The word of the cycle after the last `capture`.
    pub now: Signal<Out, T>,
    before: Reg<T>,
    captured_old: Reg<T>,
    captured_last: Reg<T>,
    captured_now: Reg<T>,
}

#[block]
impl<T: Synth> Logic for Written<T> {
    fn update(&mut self) {
        self.before.d.next = self.write_word.val();
        if self.capture.val() {
            self.captured_old.d.next = self.before.q.val();
            self.captured_last.d.next = self.write_word.val();
            self.captured_now.d.next = self.next_word.val();
        }
        self.old.next = self.captured_old.q.val();
        self.last.next = self.captured_last.q.val();
        self.now.next = self.captured_now.q.val();
    }
}
