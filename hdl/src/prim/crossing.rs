//! A stream from one clock to another.
//!
//! ```text
//!              input_clock          ┊          output_clock
//!           ┌────────────────┐   words, stable   ┌───────────────┐
//!   input ─►│ CrossingEntry  ├─────────┊────────►│ CrossingExit  ├─► output
//!           │ count ─► Gray  ├── written ► ■ ■ ─►│ anything new? │
//!           │ room? ◄─ ■ ■ ◄─┼── taken ──┊───────┤ Gray ◄─ count │
//!           └────────────────┘         ┊         └───────────────┘      ■ a register of who reads
//! ```
//!
//! The clocks may have any ratio and any phase. Each side counts the words that it has moved, and hands its count to the other
//! side in Gray code: one bit changes at a time, so two registers on the other side, which may see that bit early or late, hold the
//! count of before or the one of after and nothing else (Cummings, *Simulation and Synthesis Techniques for Asynchronous FIFO Design*,
//! SNUG 2002). A word is written before its count leaves, and isn't overwritten before the reader's count comes back.
//!
//! Both resets are set together, and each for an edge of its clock while the other is set: a side that is reset alone loses words
//! or repeats them.

use crate::prelude::*;

/// The side that writes.
#[block(depth: usize)]
pub struct CrossingEntry<T: Synth> {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Empties the crossing.
    pub reset: Signal<In, Bit>,
    /// Words that come; `ready` while there is room as far as this side knows.
    pub input: Stream<In, T>,
    /// Words that the other side has taken, in Gray code, by the other clock.
    pub taken: Signal<In, Bits<8>>,
    /// Words that were written, in Gray code.
    pub written: Signal<Out, Bits<8>>,
    /// All words that were written have been taken.
    pub empty: Signal<Out, Bit>,
    /// The words. One that was written and not taken doesn't change.
    #[each(depth)]
    pub word: Vec<Signal<Out, T>>,
    #[each(depth)]
    words: Vec<Reg<T>>,
    count: Reg<Bits<8>>,
    gray: Reg<Bits<8>>,
    /// The other side's count, which may change at any time, and the same, settled.
    unsettled: Reg<Bits<8>>,
    settled: Reg<Bits<8>>,
    full: Signal<Local, Bit>,
    push: Signal<Local, Bit>,
    next_count: Signal<Local, Bits<8>>,
    next_gray: Signal<Local, Bits<8>>,
    changes: Signal<Local, Bits<8>>,
    /// A full crossing: the counts differ by `depth`, their Gray codes in the upper two bits.
    #[is(constant(3 * depth as u64 / 2))]
    upper_bits: Constant<Bits<8>>,
    #[is(constant(depth as u64 - 1))]
    index_mask: Constant<Bits<8>>,
    #[is(constant(2 * depth as u64 - 1))]
    count_mask: Constant<Bits<8>>,
    #[is(Check::new("one_bit_crosses_at_a_time"))]
    one_bit: Check,
    #[is(depth)]
    _depth: usize,
}

#[block(depth = self._depth)]
impl<T: Synth> Logic for CrossingEntry<T> {
    fn update(&mut self) {
        self.unsettled.d.next = self.taken.val();
        self.settled.d.next = self.unsettled.q.val();
        self.full.next = self.gray.q.val() == (self.settled.q.val() ^ self.upper_bits.val());
        self.input.ready.next = !self.full.val();
        self.empty.next = self.gray.q.val() == self.settled.q.val();
        self.push.next = self.input.valid.val() & self.input.ready.val();
        self.next_count.next = self.count.q.val();
        if self.push.val() {
            self.next_count.next = (self.count.q.val() + 1) & self.count_mask.val();
        }
        self.next_gray.next = self.next_count.val() ^ (self.next_count.val() >> 1);
        self.count.d.next = self.next_count.val();
        self.gray.d.next = self.next_gray.val();
        self.written.next = self.gray.q.val();
        for i in 0..self._depth {
            self.word[i].next = self.words[i].q.val();
            if self.push.val() & ((self.count.q.val() & self.index_mask.val()) == i.to_bits()) {
                self.words[i].d.next = self.input.data.val();
            }
        }

        self.changes.next = self.next_gray.val() ^ self.gray.q.val();
        self.one_bit.ok.next = (self.changes.val() & (self.changes.val() - 1)) == 0;
    }
}

/// The side that reads.
#[block(depth: usize)]
pub struct CrossingExit<T: Synth> {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Empties the crossing.
    pub reset: Signal<In, Bit>,
    /// Words that the other side has written, in Gray code, by the other clock.
    pub written: Signal<In, Bits<8>>,
    /// The words, by the other clock.
    #[each(depth)]
    pub word: Vec<Signal<In, T>>,
    /// Words that were taken, in Gray code.
    pub taken: Signal<Out, Bits<8>>,
    /// The oldest word that was written and not taken.
    pub output: Stream<Out, T>,
    count: Reg<Bits<8>>,
    gray: Reg<Bits<8>>,
    /// The other side's count, which may change at any time, and the same, settled.
    unsettled: Reg<Bits<8>>,
    settled: Reg<Bits<8>>,
    waits: Signal<Local, Bit>,
    head: Signal<Local, T>,
    next_count: Signal<Local, Bits<8>>,
    next_gray: Signal<Local, Bits<8>>,
    changes: Signal<Local, Bits<8>>,
    #[is(constant(depth as u64 - 1))]
    index_mask: Constant<Bits<8>>,
    #[is(constant(2 * depth as u64 - 1))]
    count_mask: Constant<Bits<8>>,
    #[is(Check::new("one_bit_crosses_back_at_a_time"))]
    one_bit: Check,
    #[is(depth)]
    _depth: usize,
}

#[block(depth = self._depth)]
impl<T: Synth> Logic for CrossingExit<T> {
    fn update(&mut self) {
        self.unsettled.d.next = self.written.val();
        self.settled.d.next = self.unsettled.q.val();
        self.waits.next = self.gray.q.val() != self.settled.q.val();
        self.head.next = self.word[0].val();
        for i in 0..self._depth {
            if (self.count.q.val() & self.index_mask.val()) == i.to_bits() {
                self.head.next = self.word[i].val();
            }
        }
        send!(self.output, self.waits.val(), self.head.val());
        self.next_count.next = self.count.q.val();
        if self.waits.val() & self.output.ready.val() {
            self.next_count.next = (self.count.q.val() + 1) & self.count_mask.val();
        }
        self.next_gray.next = self.next_count.val() ^ (self.next_count.val() >> 1);
        self.count.d.next = self.next_count.val();
        self.gray.d.next = self.next_gray.val();
        self.taken.next = self.gray.q.val();

        self.changes.next = self.next_gray.val() ^ self.gray.q.val();
        self.one_bit.ok.next = (self.changes.val() & (self.changes.val() - 1)) == 0;
    }
}

/// A queue of `depth` words, written by one clock and read by another.
#[block(depth: usize)]
pub struct Crossing<T: Synth> {
    /// Rising edge counts for `input`.
    pub input_clock: Signal<In, Clock>,
    /// By `input_clock`: empties the crossing, with `output_reset`.
    pub input_reset: Signal<In, Bit>,
    /// Words that come, by `input_clock`.
    pub input: Stream<In, T>,
    /// By `input_clock`: all words that came have been taken. It rises some cycles after the last of them was.
    pub input_empty: Signal<Out, Bit>,
    /// Rising edge counts for `output`.
    pub output_clock: Signal<In, Clock>,
    /// By `output_clock`: empties the crossing, with `input_reset`.
    pub output_reset: Signal<In, Bit>,
    /// The words in the same order, by `output_clock`.
    pub output: Stream<Out, T>,
    #[is(CrossingEntry::build(depth))]
    entry: CrossingEntry<T>,
    #[is(CrossingExit::build(depth))]
    exit: CrossingExit<T>,
    #[is(depth)]
    _depth: usize,
}

impl<T: Synth> Crossing<T> {
    /// An empty crossing with room for `depth` words. Eight let a word pass in each cycle of the slower clock.
    ///
    /// # Panics
    /// If `depth` isn't a power of two from 2 to 64.
    pub fn new(depth: usize) -> Self {
        assert!(
            depth.is_power_of_two() && (2..=64).contains(&depth),
            "a crossing has 2, 4, … 64 words, not {depth}"
        );
        Self::build(depth)
    }
}

#[block(depth = self._depth)]
impl<T: Synth> Logic for Crossing<T> {
    fn update(&mut self) {
        self.entry.clock.next = self.input_clock.val();
        self.entry.reset.next = self.input_reset.val();
        self.exit.clock.next = self.output_clock.val();
        self.exit.reset.next = self.output_reset.val();
        join!(self.input => self.entry.input);
        join!(self.exit.output => self.output);
        self.input_empty.next = self.entry.empty.val();
        self.exit.written.next = self.entry.written.val();
        self.entry.taken.next = self.exit.taken.val();
        for i in 0..self._depth {
            self.exit.word[i].next = self.entry.word[i].val();
        }
    }
}
