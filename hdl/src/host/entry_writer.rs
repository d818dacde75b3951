//! Writes entries of `N` bits to host memory, whole or their last words only, many at a time, and says when each is there.
//!
//! ```text
//!                      ┌─────────┐
//!  offer, address ────►│ request ├───────────────────────► DmaWrite
//!  entry, short ──────►│ words   ├─► 64 bits at a time ──►
//!      endpoint ──────►└────┬────┘                            │
//!             begins, takes ▼                                 │
//!                    endpoints of what is under way, in order ▼
//!                              └──► finished ◄───────── done ─┘
//! ```
//!
//! `DmaWrite` answers a client in the order of its requests, so a queue of endpoints says whose entry an answer is of. The request of an entry
//! goes while the words of the one before it are still on their way (`begins`); its words follow when those have gone (`takes`). So an entry costs
//! the cycles of the words that are written, however long memory takes, until `depth` are under way. The word with the phase is the last of the one
//! access that an entry is, so a host that sees it sees the entry.

#![allow(
    missing_docs,
    reason = "the LogicStruct derive makes methods without documentation"
)]

use crate::prelude::*;
use crate::prim::Fifo;
use crate::types::DmaRequest;

/// An entry whose write has been answered.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Finished {
    pub endpoint: Bits<8>,
    /// By an error.
    pub failed: Bit,
}

/// Writer of queue entries.
#[block(depth: usize, short_words: usize)]
pub(super) struct EntryWriter<const N: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// There is an entry to write. Until `takes`, it stays offered and `entry`, whose highest bit is 0, stays the same.
    pub offer: Signal<In, Bit>,
    pub entry: Signal<In, Bits<N>>,
    /// As `entry`: only the last `short_words` words of it are written, where they lie in it.
    pub short: Signal<In, Bit>,
    /// Looked at with `begins`: its phase, which becomes the highest bit of the entry, where it goes, and whose it is.
    pub phase: Signal<In, Bit>,
    pub address: Signal<In, Bits<64>>,
    pub endpoint: Signal<In, Bits<8>>,
    /// Pulse: the write of the entry that is offered is asked for in the next cycle.
    pub begins: Signal<Out, Bit>,
    /// The write has been asked for before, and the entry isn't taken yet.
    pub begun: Signal<Out, Bit>,
    /// Pulse, with `begins` or later: the entry is taken.
    pub takes: Signal<Out, Bit>,
    pub request: Stream<Out, DmaRequest>,
    pub data: Stream<Out, Bits<64>>,
    /// The oldest access has been answered: whether by an error.
    pub done: Pulse<In, Bit>,
    /// The oldest entry under way is in host memory, or failed to get there.
    pub finished: Pulse<Out, Finished>,
    asked: Reg<Bit>,
    asked_phase: Reg<Bit>,
    phase_now: Signal<Local, Bit>,
    highest_bit: Signal<Local, Bits<N>>,
    /// The entry with its phase.
    image: Signal<Local, Bits<N>>,
    asking: Reg<Bit>,
    wanted: Reg<DmaRequest>,
    words: Reg<Bits<N>>,
    words_left: Reg<Bits<4>>,
    last_goes: Signal<Local, Bit>,
    #[is(Fifo::new(depth))]
    endpoints: Fifo<Bits<8>>,
    /// Phase of the entry whose words go.
    taken_phase: Reg<Bit>,
    the_last_word_of_an_entry_has_its_phase: Check,
    #[is(Check::new("entry_writer_answers_belong_to_entries"))]
    answers_what_was_asked: Check,
    #[is(Check::new("short_entries_are_aligned"))]
    is_aligned: Check,
    /// Bits, bytes and words that the short form leaves out, and bytes and words that it has.
    #[is(constant((N - 64 * short_words) as u64))]
    bits_left_out: Constant<Bits<16>>,
    #[is(constant((N / 8 - 8 * short_words) as u64))]
    bytes_left_out: Constant<Bits<64>>,
    #[is(constant(8 * short_words as u64))]
    short_bytes: Constant<Bits<16>>,
    #[is(constant(short_words as u64))]
    words_of_short: Constant<Bits<4>>,
    #[is(depth)]
    _depth: usize,
    #[is(short_words)]
    _short_words: usize,
}

impl<const N: usize> EntryWriter<N> {
    /// A writer of `depth` entries at a time. The bytes that the short form leaves out are a power of two, or none, and entries with such
    /// a form have addresses with that bit clear.
    ///
    /// # Panics
    /// If an entry isn't a whole number of words, at most 15, or its short form doesn't leave out such a number of bytes.
    pub fn new(depth: usize, short_words: usize) -> Self {
        assert!(N.is_multiple_of(64) && N / 64 < 16);
        let left_out = N / 64 - short_words;
        assert!(short_words > 0 && (left_out == 0 || left_out.is_power_of_two()));
        Self::build(depth, short_words)
    }
}

#[block(depth = self._depth, short_words = self._short_words)]
impl<const N: usize> Logic for EntryWriter<N> {
    fn update(&mut self) {
        self.begins.next = self.offer.val()
            & !self.asked.q.val()
            & (!self.asking.q.val() | self.request.ready.val())
            & self.endpoints.input.ready.val();
        self.begun.next = self.asked.q.val();
        self.phase_now.next = self.phase.val();
        if self.asked.q.val() {
            self.phase_now.next = self.asked_phase.q.val();
        }
        self.asked_phase.d.next = self.phase_now.val();
        self.highest_bit.next = 0.into();
        if self.phase_now.val() {
            self.highest_bit.next = 1.into();
        }
        self.image.next = self.entry.val() | (self.highest_bit.val() << (N as u64 - 1));
        self.last_goes.next = (self.words_left.q.val() == 1) & self.data.ready.val();
        self.takes.next = self.offer.val()
            & (self.asked.q.val() | self.begins.val())
            & ((self.words_left.q.val() == 0) | self.last_goes.val());
        self.asked.d.next = (self.asked.q.val() | self.begins.val()) & !self.takes.val();

        send!(self.request, self.asking.q.val(), self.wanted.q.val());
        if self.request.ready.val() {
            self.asking.d.next = false;
        }
        if self.begins.val() {
            self.asking.d.next = true;
            self.wanted.d.next.address = self.address.val();
            self.wanted.d.next.length = (N as u64 / 8);
            if self.short.val() {
                self.wanted.d.next.address = self.address.val() | self.bytes_left_out.val();
                self.wanted.d.next.length = self.short_bytes.val();
            }
        }
        self.is_aligned.ok.next = !(self.begins.val() & self.short.val())
            | !(self.address.val() & self.bytes_left_out.val()).any();
        send!(
            self.data,
            self.words_left.q.val().any(),
            self.words.q.val().get_bits::<64>(0)
        );
        if self.data.valid.val() & self.data.ready.val() {
            self.words.d.next = self.words.q.val() >> 64;
            self.words_left.d.next = self.words_left.q.val() - 1;
        }
        self.the_last_word_of_an_entry_has_its_phase.ok.next = (self.words_left.q.val() != 1)
            | (self.data.data.val().get_bit(63) == self.taken_phase.q.val());
        if self.takes.val() {
            self.taken_phase.d.next = self.phase_now.val();
            self.words.d.next = self.image.val();
            self.words_left.d.next = (N as u64 / 64);
            if self.short.val() {
                self.words.d.next = self.image.val() >> self.bits_left_out.val();
                self.words_left.d.next = self.words_of_short.val();
            }
        }

        send!(self.endpoints.input, self.begins.val(), self.endpoint.val());
        self.endpoints.output.ready.next = self.done.valid.val();
        send!(
            self.finished,
            self.done.valid.val(),
            Finished {
                endpoint: self.endpoints.output.data.val(),
                failed: self.done.data.val(),
            }
        );
        self.answers_what_was_asked.ok.next =
            !self.done.valid.val() | self.endpoints.output.valid.val();
    }
}
