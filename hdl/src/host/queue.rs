//! One queue that the card fills and the host empties: completions or events of an endpoint.
//!
//! ```text
//!                         ┌────────────────────────────────────────┐
//!   set, base, log2 ─────►│ base  size                             ├──► address, phase, room
//!   consume, value ──────►│ head ≤ issued, or the index is ignored ├──► ignored
//!   issue ───────────────►│ issued: entries given to the DMA       ├──► idle
//!   written ─────────────►│ tail: entries that are in host memory  ├──► tail
//!   failed ──────────────►│ issued goes back to tail               │
//!   arm, value ──────────►│ tail past the value armed with         ├──► wakes
//!                         └────────────────────────────────────────┘
//! ```
//!
//! Indices are 16 bits, free running, and wrap. The firmware sees to it that `base` is a multiple of the queue's size in bytes, so that the place
//! of an entry is joined to it. The host sees an entry by its phase, maybe before the card
//! sees the write answered, so an index is believed up to `issued` and not only up to `tail`. An interrupt
//! is raised when `tail` is past the value that the queue was armed with, however long ago that happened:
//! no entry can slip between looking and arming.
//!
//! An entry that couldn't be written leaves no hole, which the host could never pass: its place is the next entry's. The
//! user gives `failed` only while no other entry is on its way. The host is woken once for such an entry, to look at what
//! remains of it elsewhere.

use crate::prelude::*;

/// A queue of the card to the host.
#[block(bytes: usize)]
pub(super) struct Queue {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Pulse: the queue is at `base`, has `1 << log2` entries and is empty.
    pub set: Signal<In, Bit>,
    pub base: Signal<In, Bits<64>>,
    pub log2: Signal<In, Bits<8>>,
    /// Pulse: there is no queue.
    pub clear: Signal<In, Bit>,
    /// Value of the doorbell.
    pub value: Signal<In, Bits<32>>,
    /// Pulse: the host has consumed the entries before `value`.
    pub consume: Signal<In, Bit>,
    /// Pulse: the host waits for the entry with index `value`.
    pub arm: Signal<In, Bit>,
    /// Pulse: the entry at `address` is on its way.
    pub issue: Signal<In, Bit>,
    /// Pulse: the oldest entry on its way is in host memory.
    pub written: Signal<In, Bit>,
    /// Pulse: the only entry on its way isn't in host memory. If the host has consumed it nevertheless, it was written.
    pub failed: Signal<In, Bit>,
    /// Card address of the next entry.
    pub address: Signal<Out, Bits<64>>,
    /// Phase of the next entry.
    pub phase: Signal<Out, Bit>,
    /// Entries that the host hasn't consumed, those on their way included.
    pub used: Signal<Out, Bits<16>>,
    /// Entries that there are; 0 if there is no queue.
    pub size: Signal<Out, Bits<16>>,
    /// No entry is on its way.
    pub idle: Signal<Out, Bit>,
    /// Producer index: every entry before it is in host memory.
    pub tail: Signal<Out, Bits<16>>,
    /// The index in `value` is ignored.
    pub ignored: Signal<Out, Bit>,
    /// Interrupt, a level: armed, and `tail` is past the value armed with, or an entry has failed.
    pub wakes: Signal<Out, Bit>,
    base_of: Reg<Bits<64>>,
    log2_of: Reg<Bits<8>>,
    entries: Reg<Bits<16>>,
    head: Reg<Bits<16>>,
    issued: Reg<Bits<16>>,
    finished: Reg<Bits<16>>,
    armed: Reg<Bit>,
    armed_at: Reg<Bits<16>>,
    raised: Reg<Bit>,
    /// An entry has failed, and the host hasn't been woken for it yet.
    missed: Reg<Bit>,
    newest: Signal<Local, Bits<16>>,
    seen: Signal<Local, Bit>,
    one: Signal<Local, Bits<16>>,
    slot: Signal<Local, Bits<16>>,
    /// Bytes of the queue in front of the next entry.
    offset: Signal<Local, Bits<64>>,
    taken: Signal<Local, Bits<16>>,
    advance: Signal<Local, Bits<16>>,
    believed: Signal<Local, Bit>,
    past: Signal<Local, Bits<16>>,
    lap: Signal<Local, Bits<16>>,
    #[is(Check::new("a_queue_is_aligned_to_its_size"))]
    is_aligned: Check,
    #[is(constant(u64::from(bytes.trailing_zeros())))]
    entry_shift: Constant<Bits<8>>,
}

impl Queue {
    /// A queue of entries of `bytes` bytes, a power of two.
    pub fn new(bytes: usize) -> Self {
        assert!(bytes.is_power_of_two());
        Self::build(bytes)
    }
}

#[block]
impl Logic for Queue {
    fn update(&mut self) {
        self.slot.next = self.issued.q.val() & (self.entries.q.val() - 1);
        self.offset.next = bit_cast::<64, 16>(self.slot.val()) << self.entry_shift.val();
        self.address.next = self.base_of.q.val() | self.offset.val();
        self.is_aligned.ok.next = !(self.base_of.q.val() & self.offset.val()).any();
        // A fresh queue waits for phase 1; each lap flips it.
        self.lap.next = self.issued.q.val() >> self.log2_of.q.val();
        self.phase.next = !self.lap.val().get_bit(0);
        self.taken.next = self.issued.q.val() - self.head.q.val();
        self.used.next = self.taken.val();
        self.size.next = self.entries.q.val();
        self.idle.next = self.issued.q.val() == self.finished.q.val();
        self.tail.next = self.finished.q.val();
        self.wakes.next = self.raised.q.val();

        // A head is believed if it frees no entry that was never issued.
        self.advance.next = self.value.val().get_bits::<16>(0) - self.head.q.val();
        self.believed.next =
            (self.value.val().get_bits::<16>(16) == 0) & (self.advance.val() <= self.taken.val());
        self.ignored.next = self.consume.val() & !self.believed.val();
        self.newest.next = self.head.q.val();
        if self.consume.val() & self.believed.val() {
            self.newest.next = self.value.val().get_bits::<16>(0);
        }
        self.head.d.next = self.newest.val();
        self.seen.next = self.newest.val() == self.issued.q.val();
        if self.issue.val() {
            self.issued.d.next = self.issued.q.val() + 1;
        }
        if self.failed.val() & !self.seen.val() {
            self.issued.d.next = self.finished.q.val();
        }
        if self.written.val() | (self.failed.val() & self.seen.val()) {
            self.finished.d.next = self.finished.q.val() + 1;
        }

        // Rings are at most half of the index space, so the top bit is the sign of a distance.
        self.past.next = self.finished.q.val() - self.armed_at.q.val();
        if self.armed.q.val()
            & ((self.past.val().any() & !self.past.val().get_bit(15)) | self.missed.q.val())
        {
            self.armed.d.next = false;
            self.raised.d.next = true;
            self.missed.d.next = false;
        }
        if self.failed.val() {
            self.missed.d.next = true;
        }
        if self.arm.val() {
            self.missed.d.next = self.missed.q.val() | self.failed.val();
            self.armed.d.next = self.entries.q.val().any();
            self.armed_at.d.next = self.value.val().get_bits::<16>(0);
            self.raised.d.next = false;
        }

        self.one.next = 1.into();
        if self.set.val() | self.clear.val() {
            self.base_of.d.next = self.base.val();
            self.log2_of.d.next = self.log2.val();
            self.entries.d.next = self.one.val() << self.log2.val();
            self.head.d.next = 0.into();
            self.issued.d.next = 0.into();
            self.finished.d.next = 0.into();
            self.armed.d.next = false;
            self.raised.d.next = false;
            self.missed.d.next = false;
        }
        if self.clear.val() {
            self.entries.d.next = 0.into();
        }
    }
}
