//! Writes entries of `N` bits to host memory, one after the other, and says when each is there.
//!
//! ```text
//!                                ┌──────────┐ request, data
//!  start, address, ────► words ──┤ 64 bits  ├──────────────────► DmaWrite
//!  endpoint, entry               │ at a time│ done, error
//!        │                       └──────────┘◄──────────────────────┐
//!        └──► endpoints of the entries under way ──► finished, endpoint, error
//! ```
//!
//! Several entries may be under way; `DmaWrite` answers a client in order. The word with the phase is
//! the last, so a host that sees it sees the entry.

use crate::prelude::*;
use crate::prim::Fifo;
use crate::types::DmaRequest;

/// Entries that may be under way.
const DEPTH: usize = 8;

/// Writer of queue entries.
#[block(depth: usize)]
pub(super) struct EntryWriter<const N: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Pulse, only while `ready`: write this entry.
    pub start: Signal<In, Bit>,
    pub ready: Signal<Out, Bit>,
    pub address: Signal<In, Bits<64>>,
    pub endpoint: Signal<In, Bits<8>>,
    pub entry: Signal<In, Bits<N>>,
    pub request: Stream<Out, DmaRequest>,
    pub data: Stream<Out, Bits<64>>,
    pub done: Signal<In, Bit>,
    pub done_error: Signal<In, Bit>,
    /// Pulse: the oldest entry under way is in host memory, or failed to get there.
    pub finished: Signal<Out, Bit>,
    pub finished_endpoint: Signal<Out, Bits<8>>,
    pub finished_error: Signal<Out, Bit>,
    asking: Reg<Bit>,
    wanted: Reg<DmaRequest>,
    words: Reg<Bits<N>>,
    left: Reg<Bits<8>>,
    #[is(Fifo::new(depth))]
    endpoints: Fifo<Bits<8>>,
    #[is(Check::new("entry_writer_answers_belong_to_entries"))]
    answers_what_was_asked: Check,
}

impl<const N: usize> Default for EntryWriter<N> {
    fn default() -> Self {
        assert!(N.is_multiple_of(64));
        Self::build(DEPTH)
    }
}

#[block]
impl<const N: usize> Logic for EntryWriter<N> {
    fn update(&mut self) {
        self.ready.next =
            !self.asking.q.val() & (self.left.q.val() == 0) & self.endpoints.input.ready.val();
        self.endpoints.input.valid.next = self.start.val();
        self.endpoints.input.data.next = self.endpoint.val();

        self.request.valid.next = self.asking.q.val();
        self.request.data.next = self.wanted.q.val();
        if self.request.ready.val() {
            self.asking.d.next = false;
        }
        self.data.valid.next = self.left.q.val().any();
        self.data.data.next = self.words.q.val().get_bits::<64>(0);
        if self.data.valid.val() & self.data.ready.val() {
            self.words.d.next = self.words.q.val() >> 64;
            self.left.d.next = self.left.q.val() - 1;
        }
        if self.start.val() {
            self.asking.d.next = true;
            self.wanted.d.next.address = self.address.val();
            self.wanted.d.next.length = (N as u64 / 8);
            self.words.d.next = self.entry.val();
            self.left.d.next = (N as u64 / 64);
        }

        self.endpoints.output.ready.next = self.done.val();
        self.finished.next = self.done.val();
        self.finished_endpoint.next = self.endpoints.output.data.val();
        self.finished_error.next = self.done_error.val();
        self.answers_what_was_asked.ok.next = !self.done.val() | self.endpoints.output.valid.val();
    }
}
