//! A control request of the firmware to the blocks that it concerns, and one answer back.
//!
//! ```text
//!              ┌────────┐──► block[0] ◄── block_result[0]
//!   control ──►│        │──► block[1] ◄── block_result[1]
//!              │ Fanout │──► …
//!   result  ◄──┤        │
//!              └────────┘
//! ```
//!
//! The fan-out decodes the operation: a block sees a request only if the operation is one that the block has named. Each
//! block has a stream of its own, which offers the request until the block takes it, so that a slow block doesn't make a
//! fast one act twice. The request is done in the cycle in which the last of them takes it; one that concerns no block is
//! done at once. Results are or-ed, as blocks that have none give zero.
//!
//! While the blocks are about to be reset (`abandon`) no request is shown to them; one that is offered is done at once, without
//! effect and with result zero.

use crate::prelude::*;
use crate::types::ControlRequest;
use abi::control::Operation;

/// A bit for each operation of a block, at its code.
fn concern(operations: &[Operation]) -> Constant<Bits<32>> {
    constant(
        operations
            .iter()
            .fold(0_u64, |bits, o| bits | 1 << o.code()),
    )
}

/// The fan-out to blocks, from the operations of each.
#[block(requests: &[&[Operation]])]
pub struct Fanout {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Forgets the request.
    pub reset: Signal<In, Bit>,
    /// The blocks are about to be reset.
    pub abandon: Signal<In, Bit>,
    /// The request of the firmware; taken when all blocks have taken it.
    pub control: Stream<In, ControlRequest>,
    /// With `control.ready`: the result.
    pub control_result: Signal<Out, Bits<64>>,
    /// Pulse: the request is shown to the blocks for the first time.
    pub begins: Signal<Out, Bit>,
    /// The request, for block `i`.
    #[each(requests.len())]
    pub block: Vec<Stream<Out, ControlRequest>>,
    /// When block `i` takes it: its result, or zero.
    #[each(requests.len())]
    pub block_result: Vec<Signal<In, Bits<64>>>,
    /// Operations of each block.
    #[is(requests.iter().map(|operations| concern(operations)).collect())]
    concerns: Vec<Constant<Bits<32>>>,
    /// Blocks that have taken it.
    #[each(requests.len())]
    finished: Vec<Reg<Bit>>,
    result: Reg<Bits<64>>,
    /// The request has been shown before.
    begun: Reg<Bit>,
    shown: Signal<Local, Bit>,
    /// The operation's bit; none if there is no such operation.
    asked: Signal<Local, Bits<32>>,
    #[each(requests.len())]
    concerned: Vec<Signal<Local, Bit>>,
    all: Signal<Local, Bit>,
    gathered: Signal<Local, Bits<64>>,
    #[is(requests.len())]
    _n: usize,
}

impl Fanout {
    /// A fan-out to blocks with these operations.
    pub fn new(requests: &[&[Operation]]) -> Self {
        Self::build(requests)
    }
}

#[block(n = self._n)]
impl Logic for Fanout {
    fn update(&mut self) {
        self.shown.next = self.control.valid.val() & !self.abandon.val();
        self.begins.next = self.shown.val() & !self.begun.q.val();
        self.asked.next = bits::<32>(1) << self.control.data.val().operation;
        self.all.next = true;
        self.gathered.next = self.result.q.val();
        for i in 0..self._n {
            self.concerned[i].next = (self.asked.val() & self.concerns[i].val()).any();
            send!(
                self.block[i],
                self.shown.val() & self.concerned[i].val() & !self.finished[i].q.val(),
                self.control.data.val()
            );
            if self.concerned[i].val() & !self.finished[i].q.val() {
                if self.block[i].ready.val() {
                    self.gathered.next = self.gathered.val() | self.block_result[i].val();
                } else {
                    self.all.next = false;
                }
            }
        }
        self.control.ready.next = self.control.valid.val() & (self.all.val() | self.abandon.val());
        self.control_result.next = 0.into();
        if !self.abandon.val() {
            self.control_result.next = self.gathered.val();
        }
        self.begun.d.next = self.shown.val() & !self.all.val();
        if self.shown.val() {
            self.result.d.next = self.gathered.val();
            for i in 0..self._n {
                self.finished[i].d.next = self.finished[i].q.val() | self.block[i].ready.val();
            }
        }
        if self.control.ready.val() {
            self.result.d.next = 0.into();
            for i in 0..self._n {
                self.finished[i].d.next = false;
            }
        }
    }
}
