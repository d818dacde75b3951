//! The entries of one class of rings that have been fetched and not taken: their words in a block RAM, the oldest entry whole in a register.
//!
//! ```text
//!   word ──┬────────────────────────────┐
//!          └─► BlockRam, 16 entries ──► shift ──► oldest entry ──► output
//!   keep, drop ─► entries kept, rings of them, in order ─────────► ring
//! ```
//!
//! An entry is eight words, and the last of them comes with `keep` or `drop`. Words of the oldest entry are read while later words of it are still
//! to come; when none has been missed, they go into the register as they come. So an idle queue offers an entry two cycles after its last
//! word. While the oldest entry waits, the first word of the one behind it stands at the memory's output, and goes into the register in the cycle in which
//! the oldest leaves: a queue that is behind offers an entry nine cycles after that.

use crate::prelude::*;
use crate::prim::{BlockRam, Fifo};

/// Entries that there is room for.
pub(super) const DEPTH: usize = 16;
/// Words of an entry.
const WORDS: u64 = 8;

/// A queue of entries that come word by word.
#[block]
pub(super) struct EntryQueue {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// The next word of the entry that is coming. The user has room for all of it.
    pub word: Pulse<In, Bits<64>>,
    /// With its last word: the entry is one of this ring.
    pub keep: Pulse<In, Bits<8>>,
    /// Pulse, with its last word: nothing comes of it.
    pub drop: Signal<In, Bit>,
    /// The oldest entry. It is the same in the cycle before it is offered.
    pub output: Stream<Out, Bits<512>>,
    /// Its ring.
    pub ring: Signal<Out, Bits<8>>,
    #[is(BlockRam::new(DEPTH * WORDS as usize))]
    memory: BlockRam<Bits<64>>,
    #[is(Fifo::new(DEPTH))]
    rings: Fifo<Bits<8>>,
    /// Where the next word that comes goes: place of its entry, and in it.
    entry: Reg<Bits<4>>,
    place: Reg<Bits<3>>,
    /// Entries that are there, the oldest included.
    kept: Reg<Bits<5>>,
    /// Place of the oldest, words of it asked for, and words of it in the register.
    oldest: Reg<Bits<4>>,
    asked: Reg<Bits<4>>,
    filled: Reg<Bits<4>>,
    /// A word of it leaves the memory.
    reading: Reg<Bit>,
    /// All of it has been read, and the first word of the entry behind it leaves the memory.
    ahead: Reg<Bit>,
    whole: Reg<Bits<512>>,
    settled: Reg<Bit>,
    none_kept: Signal<Local, Bit>,
    in_memory: Signal<Local, Bit>,
    passes: Signal<Local, Bit>,
    reads: Signal<Local, Bit>,
    leaves: Signal<Local, Bit>,
    starts_again: Signal<Local, Bit>,
    /// The oldest leaves, and the first word of the one behind it is there.
    goes_on: Signal<Local, Bit>,
    has_second: Signal<Local, Bit>,
    asked_all: Signal<Local, Bit>,
    read_entry: Signal<Local, Bits<4>>,
    read_place: Signal<Local, Bits<3>>,
    next_word: Signal<Local, Bits<64>>,
    #[is(Check::new("an_entry_that_comes_has_a_place"))]
    has_room: Check,
    #[is(Check::new("each_entry_that_is_kept_has_its_ring"))]
    has_its_ring: Check,
}

#[block]
impl Logic for EntryQueue {
    fn update(&mut self) {
        // In.
        store!(
            self.memory.write,
            self.word.valid.val(),
            (bit_cast::<16, 4>(self.entry.q.val()) << 3) | bit_cast::<16, 3>(self.place.q.val()),
            self.word.data.val()
        );
        if self.word.valid.val() {
            self.place.d.next = self.place.q.val() + 1;
        }
        if self.keep.valid.val() {
            self.entry.d.next = self.entry.q.val() + 1;
        }
        send!(
            self.rings.input,
            self.keep.valid.val(),
            self.keep.data.val()
        );
        self.none_kept.next = self.kept.q.val() == 0;
        self.has_room.ok.next = !self.word.valid.val() | (self.kept.q.val() != (DEPTH as u64));

        // Words of the oldest into the register: from memory, or as they come.
        self.in_memory.next =
            !self.none_kept.val() | (self.asked.q.val() < bit_cast::<4, 3>(self.place.q.val()));
        self.reads.next = self.in_memory.val() & (self.asked.q.val() != WORDS);
        self.passes.next = self.word.valid.val()
            & self.none_kept.val()
            & (self.asked.q.val() == bit_cast::<4, 3>(self.place.q.val()))
            & !self.reading.q.val();
        // Of the entry behind the oldest the first word, until the oldest leaves.
        self.leaves.next = self.settled.q.val() & self.output.ready.val();
        self.goes_on.next = self.leaves.val() & self.ahead.q.val();
        self.asked_all.next = self.asked.q.val() == WORDS;
        self.has_second.next = self.kept.q.val() > 1;
        self.ahead.d.next = self.asked_all.val() & self.has_second.val() & !self.leaves.val();
        self.read_entry.next = self.oldest.q.val();
        if self.asked_all.val() {
            self.read_entry.next = self.oldest.q.val() + 1;
        }
        self.read_place.next = self.asked.q.val().get_bits::<3>(0);
        if self.goes_on.val() {
            self.read_place.next = 1.into();
        }
        self.memory.read_address.next = (bit_cast::<16, 4>(self.read_entry.val()) << 3)
            | bit_cast::<16, 3>(self.read_place.val());
        self.reading.d.next = self.reads.val();
        if self.reads.val() | self.passes.val() {
            self.asked.d.next = self.asked.q.val() + 1;
        }
        self.next_word.next = self.memory.read_data.val();
        if self.passes.val() {
            self.next_word.next = self.word.data.val();
        }
        if self.reading.q.val() | self.passes.val() | self.goes_on.val() {
            self.filled.d.next = self.filled.q.val() + 1;
            self.whole.d.next =
                (self.whole.q.val() >> 64) | (bit_cast::<512, 64>(self.next_word.val()) << 448);
        }

        // Out.
        send!(self.output, self.settled.q.val(), self.whole.q.val());
        self.ring.next = self.rings.output.data.val();
        self.rings.output.ready.next = self.leaves.val();
        self.has_its_ring.ok.next = !self.settled.q.val() | self.rings.output.valid.val();
        self.settled.d.next =
            (self.filled.q.val() == WORDS) & !self.none_kept.val() & !self.leaves.val();
        if self.keep.valid.val() & !self.leaves.val() {
            self.kept.d.next = self.kept.q.val() + 1;
        }
        if !self.keep.valid.val() & self.leaves.val() {
            self.kept.d.next = self.kept.q.val() - 1;
        }
        if self.leaves.val() {
            self.oldest.d.next = self.oldest.q.val() + 1;
        }
        self.starts_again.next = self.leaves.val() | (self.drop.val() & self.none_kept.val());
        if self.starts_again.val() {
            self.asked.d.next = 0.into();
            self.filled.d.next = 0.into();
            self.reading.d.next = false;
        }
        if self.goes_on.val() {
            self.asked.d.next = 2.into();
            self.filled.d.next = 1.into();
            self.reading.d.next = true;
        }
    }
}
