//! A control request of the firmware to every block, and one answer back.
//!
//! ```text
//!                     ┌────────┐──► block_valid[0] ◄── block_done[0], block_result[0]
//!   control_valid ───►│        │──► block_valid[1] ◄── block_done[1], block_result[1]
//!   control_done  ◄───┤ Fanout │──► …
//!   control_result ◄──┤        │
//!                     └────────┘
//! ```
//!
//! Each block has a line of its own, which is high from the request until the block says that it is
//! done and then drops, so that a slow block doesn't make a fast one act twice. The request is done
//! in the cycle in which the last block is. Results are or-ed, as blocks that have none give zero.
//!
//! While the blocks are about to be reset (`abandon`) no request is shown to them; one that is offered is done at once, without
//! effect and with result zero.

use crate::prelude::*;

/// The fan-out to `n` blocks.
#[block(n: usize)]
pub struct Fanout {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Forgets the request.
    pub reset: Signal<In, Bit>,
    /// The blocks are about to be reset.
    pub abandon: Signal<In, Bit>,
    /// A request is under way; drops in the cycle after `control_done`.
    pub control_valid: Signal<In, Bit>,
    /// All blocks are done.
    pub control_done: Signal<Out, Bit>,
    /// With `control_done`: the result.
    pub control_result: Signal<Out, Bits<64>>,
    /// Pulse: the request is shown to the blocks for the first time.
    pub begins: Signal<Out, Bit>,
    /// The request is for block `i`.
    #[each(n)]
    pub block_valid: Vec<Signal<Out, Bit>>,
    /// It is done.
    #[each(n)]
    pub block_done: Vec<Signal<In, Bit>>,
    /// With `block_done`: its result, or zero.
    #[each(n)]
    pub block_result: Vec<Signal<In, Bits<64>>>,
    /// Blocks that are done.
    #[each(n)]
    finished: Vec<Reg<Bit>>,
    result: Reg<Bits<64>>,
    /// The request has been shown before.
    begun: Reg<Bit>,
    shown: Signal<Local, Bit>,
    all: Signal<Local, Bit>,
    gathered: Signal<Local, Bits<64>>,
    #[is(n)]
    _n: usize,
}

impl Fanout {
    /// A fan-out to `n` blocks.
    pub fn new(n: usize) -> Self {
        Self::build(n)
    }
}

#[block(n = self._n)]
impl Logic for Fanout {
    fn update(&mut self) {
        self.shown.next = self.control_valid.val() & !self.abandon.val();
        self.begins.next = self.shown.val() & !self.begun.q.val();
        self.all.next = true;
        self.gathered.next = self.result.q.val();
        for i in 0..self._n {
            self.block_valid[i].next = self.shown.val() & !self.finished[i].q.val();
            if !self.finished[i].q.val() {
                if self.block_done[i].val() {
                    self.gathered.next = self.gathered.val() | self.block_result[i].val();
                } else {
                    self.all.next = false;
                }
            }
        }
        self.control_done.next = self.control_valid.val() & (self.all.val() | self.abandon.val());
        self.control_result.next = 0.into();
        if !self.abandon.val() {
            self.control_result.next = self.gathered.val();
        }
        self.begun.d.next = self.shown.val() & !self.all.val();
        if self.shown.val() {
            self.result.d.next = self.gathered.val();
            for i in 0..self._n {
                self.finished[i].d.next = self.finished[i].q.val() | self.block_done[i].val();
            }
        }
        if self.control_done.val() {
            self.result.d.next = 0.into();
            for i in 0..self._n {
                self.finished[i].d.next = false;
            }
        }
    }
}
