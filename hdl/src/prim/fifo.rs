//! A queue in a memory.
//!
//! ```text
//!              ┌──────────────────────────┐
//!   in_valid ─►│                          ├─► out_valid
//!   in_data ──►│ ► Ram ► its read register├─► out_data
//!   in_ready ◄─┤                          │◄─ out_ready
//!              │                          ├─► level
//!              └──────────────────────────┘
//! ```
//!
//! The memory is read ahead at the place that will be the head in the next cycle, so its read
//! register is the output and a transfer can happen in every cycle. A word that enters an empty
//! queue comes out two cycles later. What its neighbours ask, whether there is room and how much is
//! in it, are registers: many such answers meet in one cycle of theirs.

use super::Ram;
use crate::prelude::*;

/// A contract to break, so that a test can show that its breach is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, LogicState)]
pub enum FifoMutation {
    /// As designed.
    None,
    /// A full queue takes a word.
    Overflows,
    /// A word is offered before the memory has it.
    OffersTooSoon,
    /// A word stays at the head after it was taken.
    RepeatsWords,
    /// The word at the head isn't counted.
    HeadNotCounted,
}

/// A queue of up to `depth` words of type `T`, in order.
#[derive(LogicBlock)]
pub struct Fifo<T: Synth> {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Empties the queue.
    pub reset: Signal<In, Bit>,
    /// Which contract to break; there in [`Self::mutable`] only.
    pub mutation: Vec<Signal<In, FifoMutation>>,
    /// A word is offered.
    pub in_valid: Signal<In, Bit>,
    /// There is room for it.
    pub in_ready: Signal<Out, Bit>,
    /// The word.
    pub in_data: Signal<In, T>,
    /// There is a word at the head.
    pub out_valid: Signal<Out, Bit>,
    /// It is taken.
    pub out_ready: Signal<In, Bit>,
    /// The word.
    pub out_data: Signal<Out, T>,
    /// Words in the queue, the one at the head included.
    pub level: Signal<Out, Bits<16>>,
    depth: Constant<Bits<16>>,
    /// A bit set for each that an index has, and that a level has: registers have no others.
    index_mask: Constant<Bits<16>>,
    level_mask: Constant<Bits<16>>,
    ram: Ram<T>,
    write_index: Reg<Bits<16>>,
    read_index: Reg<Bits<16>>,
    /// The place behind `read_index`: the memory's address waits for no sum.
    following: Reg<Bits<16>>,
    head_valid: Reg<Bit>,
    full: Reg<Bit>,
    held: Reg<Bits<16>>,
    push: Signal<Local, Bit>,
    pop: Signal<Local, Bit>,
    next_read: Signal<Local, Bits<16>>,
    one_more: Signal<Local, Bits<16>>,
    _mutable: usize,
}

impl<T: Synth> Fifo<T> {
    /// An empty queue for `depth` words.
    ///
    /// # Panics
    /// If `depth` is below 2 or above 32768.
    pub fn new(depth: usize) -> Self {
        Self::build(depth, 0)
    }

    /// The same with the input `mutation`, for tests.
    pub fn mutable(depth: usize) -> Self {
        Self::build(depth, 1)
    }

    fn build(depth: usize, mutable: usize) -> Self {
        assert!(
            (2..=1 << 15).contains(&depth),
            "a queue has 2 to 32768 words, not {depth}"
        );
        let places = depth.next_power_of_two() as u64;
        Fifo {
            clock: Signal::default(),
            reset: Signal::default(),
            mutation: (0..mutable).map(|_| Signal::default()).collect(),
            in_valid: Signal::default(),
            in_ready: Signal::default(),
            in_data: Signal::default(),
            out_valid: Signal::default(),
            out_ready: Signal::default(),
            out_data: Signal::default(),
            level: Signal::default(),
            depth: Constant::new((depth as u64).into()),
            index_mask: Constant::new((places - 1).into()),
            level_mask: Constant::new((2 * places - 1).into()),
            ram: Ram::new(depth),
            write_index: Reg::default(),
            read_index: Reg::default(),
            following: Reg::new(1u64.into()),
            head_valid: Reg::default(),
            full: Reg::default(),
            held: Reg::default(),
            push: Signal::default(),
            pop: Signal::default(),
            next_read: Signal::default(),
            one_more: Signal::default(),
            _mutable: mutable,
        }
    }
}

#[module(depth = self.depth.val().index())]
impl<T: Synth> Logic for Fifo<T> {
    #[hdl_gen]
    fn update(&mut self) {
        registers!(
            self,
            clock,
            reset,
            write_index,
            read_index,
            following,
            head_valid,
            full,
            held
        );
        clock!(self, clock, ram);

        self.level.next = self.held.q.val();
        self.in_ready.next = !self.full.q.val();
        self.pop.next = self.head_valid.q.val() & self.out_ready.val();
        for m in 0..self._mutable {
            if self.mutation[m].val() == FifoMutation::Overflows {
                self.in_ready.next = true;
            }
            if (self.mutation[m].val() == FifoMutation::HeadNotCounted) & self.head_valid.q.val() {
                self.level.next = self.held.q.val() - 1;
            }
            // One of as many words as the memory has places.
            if (self.mutation[m].val() == FifoMutation::RepeatsWords)
                & (self.read_index.q.val() == self.index_mask.val())
                & self.in_valid.val()
            {
                self.pop.next = false;
            }
        }
        self.push.next = self.in_valid.val() & self.in_ready.val();

        self.ram.write_enable.next = self.push.val();
        self.ram.write_address.next = self.write_index.q.val();
        self.ram.write_data.next = self.in_data.val();
        if self.push.val() {
            self.write_index.d.next = (self.write_index.q.val() + 1) & self.index_mask.val();
        }

        self.next_read.next = self.read_index.q.val();
        // Not the word that is written now: the memory would give its predecessor.
        self.head_valid.d.next = self.held.q.val() != 0;
        if self.pop.val() {
            self.next_read.next = self.following.q.val();
            self.head_valid.d.next = self.held.q.val() != 1;
        }
        self.read_index.d.next = self.next_read.val();
        self.following.d.next = (self.next_read.val() + 1) & self.index_mask.val();
        self.ram.read_address.next = self.next_read.val();
        for m in 0..self._mutable {
            if (self.mutation[m].val() == FifoMutation::OffersTooSoon) & self.push.val() {
                self.head_valid.d.next = true;
            }
        }
        self.out_valid.next = self.head_valid.q.val();
        self.out_data.next = self.ram.read_data.val();

        self.one_more.next = (self.held.q.val() + 1) & self.level_mask.val();
        if self.push.val() & !self.pop.val() {
            self.held.d.next = self.one_more.val();
            self.full.d.next = self.one_more.val() == self.depth.val();
        }
        if self.pop.val() & !self.push.val() {
            self.held.d.next = (self.held.q.val() - 1) & self.level_mask.val();
            self.full.d.next = false;
        }
    }
}
