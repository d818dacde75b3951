//! A queue in a memory.
//!
//! ```text
//!           ┌──────────────────────────┐
//!   input ─►│ ► Ram ► its read register├─► output
//!           │                          ├─► level
//!           └──────────────────────────┘
//! ```
//!
//! The memory is read ahead at the place that will be the head in the next cycle, so its read
//! register is the output and a transfer can happen in every cycle. A word that enters an empty
//! queue comes out two cycles later. `input.ready` and `level` come from registers, since a neighbour
//! may combine those of many queues in one cycle.

use super::ram::Ram;
use crate::prelude::*;

/// A queue of up to `depth` words of type `T`, in order.
#[block(depth: usize)]
pub struct Fifo<T: Synth> {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Empties the queue.
    pub reset: Signal<In, Bit>,
    /// Words that come; `ready` while there is room.
    pub input: Stream<In, T>,
    /// The word at the head.
    pub output: Stream<Out, T>,
    /// Words in the queue, the one at the head included.
    pub level: Signal<Out, Bits<16>>,
    #[is(constant(depth as u64))]
    depth: Constant<Bits<16>>,
    // Masks of the bits that an index has, and that a level has: the registers hold no others.
    #[is(constant(places(depth) - 1))]
    index_mask: Constant<Bits<16>>,
    #[is(constant(2 * places(depth) - 1))]
    level_mask: Constant<Bits<16>>,
    #[is(Ram::new(depth))]
    ram: Ram<T>,
    write_index: Reg<Bits<16>>,
    read_index: Reg<Bits<16>>,
    /// The place behind `read_index`: the memory's address waits for no sum.
    #[is(Reg::new(1u64.into()))]
    following: Reg<Bits<16>>,
    head_valid: Reg<Bit>,
    full: Reg<Bit>,
    held: Reg<Bits<16>>,
    push: Signal<Local, Bit>,
    pop: Signal<Local, Bit>,
    next_read: Signal<Local, Bits<16>>,
    one_more: Signal<Local, Bits<16>>,
}

/// Places of the memory of a queue for `depth` words.
fn places(depth: usize) -> u64 {
    depth.next_power_of_two() as u64
}

impl<T: Synth> Fifo<T> {
    /// An empty queue for `depth` words.
    ///
    /// # Panics
    /// If `depth` is below 2 or above 32768.
    pub fn new(depth: usize) -> Self {
        assert!(
            (2..=1 << 15).contains(&depth),
            "a queue has 2 to 32768 words, not {depth}"
        );
        Self::build(depth)
    }
}

#[block(depth = self.depth.val().index())]
impl<T: Synth> Logic for Fifo<T> {
    fn update(&mut self) {
        self.level.next = self.held.q.val();
        self.input.ready.next = !self.full.q.val();
        self.pop.next = self.head_valid.q.val() & self.output.ready.val();
        self.push.next = self.input.valid.val() & self.input.ready.val();

        store!(
            self.ram.write,
            self.push.val(),
            self.write_index.q.val(),
            self.input.data.val()
        );
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
        send!(
            self.output,
            self.head_valid.q.val(),
            self.ram.read_data.val()
        );

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
