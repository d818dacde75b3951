//! One ring of work requests: where it is, how far the host has filled it, how far the card has read and
//! emptied it, and what went wrong with it.
//!
//! ```text
//!                        ┌──────────────────────────────┐
//!   set, base, log2 ────►│ base  size                   ├──► pending, start, slot
//!   doorbell, value ────►│ head ≤ next ≤ tail ≤ head    ├──► ignored
//!   read ───────────────►│   + size, or the doorbell is │
//!   advance, stop ──────►│   ignored                    ├──► head, stopped
//!   put_back ───────────►│                              │
//!   discard, leaves, ───►│ reads under way, entries     ├──► empty, none_read, one_inside
//!     refused            │   inside                     │
//!   event_taken ────────►│ overrun  failed              ├──► event, cause, info
//!                        └──────────────────────────────┘
//! ```
//!
//! Indices are 16 bits, free running, and wrap; entry `i` is at `base + 64 * (i mod size)`. The firmware sees to it that `base` is a multiple of
//! `64 * size`, so that the user joins the two, once for all rings. The entries from `head` to `next` are being read. When
//! one of them can't be, the ring stops with its head there, and what comes of those behind it is discarded. Events
//! wait here until they are taken; a second overrun before that replaces the first.

use crate::prelude::*;
use abi::event::Cause;
use abi::limits::MAX_RING_LOG2;

const _: () = assert!(
    MAX_RING_LOG2 < 15,
    "a distance below zero is more than any ring has entries"
);

/// A ring of work requests.
#[block]
pub(super) struct Ring {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Pulse: the ring is at `base`, has `1 << log2` entries and is empty.
    pub set: Signal<In, Bit>,
    pub base: Signal<In, Bits<64>>,
    pub log2: Signal<In, Bits<8>>,
    /// Pulse: there is no ring.
    pub clear: Signal<In, Bit>,
    /// Pulse: the host has written `value` to the tail.
    pub doorbell: Signal<In, Bit>,
    pub value: Signal<In, Bits<32>>,
    /// Pulse, not with `doorbell`: the entry in `slot` is being read.
    pub read: Signal<In, Bit>,
    /// Pulse: the entry at the head has been read and is free.
    pub advance: Signal<In, Bit>,
    /// Pulse: the entry at the head can't be read. The ring stops until it is set again.
    pub stop: Signal<In, Bit>,
    /// Pulse: a read has ended, and nothing comes of it; with `stop`, and later for those behind.
    pub discard: Signal<In, Bit>,
    /// Pulse: the entry at the head has been read and stays the host's; nothing behind it is being read.
    pub put_back: Signal<In, Bit>,
    /// Pulse: an entry that was read has been handed over.
    pub leaves: Signal<In, Bit>,
    /// Pulse: one has been refused.
    pub refused: Signal<In, Bit>,
    /// There is an entry to read.
    pub pending: Signal<Out, Bit>,
    /// Card address of the ring, and place of the entry in it.
    pub start: Signal<Out, Bits<64>>,
    pub slot: Signal<Out, Bits<16>>,
    /// Index of the first entry that isn't the host's again.
    pub head: Signal<Out, Bits<16>>,
    /// An entry couldn't be read.
    pub stopped: Signal<Out, Bit>,
    /// No read is under way, and all that was read has been handed over or refused.
    pub empty: Signal<Out, Bit>,
    /// No read is under way.
    pub none_read: Signal<Out, Bit>,
    /// Of all that was read, one entry has been neither handed over nor refused.
    pub one_inside: Signal<Out, Bit>,
    /// The doorbell of this cycle is ignored because of its value.
    pub ignored: Signal<Out, Bit>,
    /// An event waits.
    pub raise: Signal<Out, Bit>,
    /// Its cause and what it says.
    pub cause: Signal<Out, Bits<8>>,
    pub info: Signal<Out, Bits<32>>,
    /// Pulse: the event has been taken.
    pub event_taken: Signal<In, Bit>,
    base_of: Reg<Bits<64>>,
    size: Reg<Bits<16>>,
    tail: Reg<Bits<16>>,
    position: Reg<Bits<16>>,
    next: Reg<Bits<16>>,
    stays: Reg<Bit>,
    /// Each at most the places of its class.
    reads: Reg<Bits<5>>,
    inside: Reg<Bits<5>>,
    overrun: Reg<Bit>,
    overrun_value: Reg<Bits<32>>,
    failed: Reg<Bit>,
    one: Signal<Local, Bits<16>>,
    ahead: Signal<Local, Bits<16>>,
    unread: Signal<Local, Bits<16>>,
    takes_back: Signal<Local, Bit>,
    reading: Signal<Local, Bits<5>>,
    held: Signal<Local, Bits<5>>,
    #[is(Check::new("a_ring_is_not_read_while_its_doorbell_is_looked_at"))]
    keeps_still: Check,
    fits: Signal<Local, Bit>,
}

#[block]
impl Logic for Ring {
    fn update(&mut self) {
        self.pending.next = (self.tail.q.val() != self.next.q.val()) & !self.stays.q.val();
        self.head.next = self.position.q.val();
        self.stopped.next = self.stays.q.val();
        self.none_read.next = self.reads.q.val() == 0;
        self.one_inside.next = self.inside.q.val() == 1;
        self.empty.next = self.none_read.val() & (self.inside.q.val() == 0);
        self.slot.next = self.next.q.val() & (self.size.q.val() - 1);
        self.start.next = self.base_of.q.val();

        // A tail is believed if it is at most a ring ahead of the head, and not behind what is being read.
        self.ahead.next = self.value.val().get_bits::<16>(0) - self.position.q.val();
        self.unread.next = self.value.val().get_bits::<16>(0) - self.next.q.val();
        self.takes_back.next = self.unread.val() > self.size.q.val();
        self.fits.next = (self.value.val().get_bits::<16>(16) == 0)
            & (self.ahead.val() <= self.size.q.val())
            & !self.takes_back.val();
        self.ignored.next = self.doorbell.val() & !self.fits.val();

        self.keeps_still.ok.next = !self.doorbell.val() | !self.read.val();
        self.raise.next = self.failed.q.val() | self.overrun.q.val();
        self.cause.next = Cause::RingOverrun;
        self.info.next = self.overrun_value.q.val();
        if self.failed.q.val() {
            self.cause.next = Cause::RingError;
            self.info.next = bit_cast::<32, 16>(self.position.q.val());
        }
        if self.event_taken.val() {
            if self.failed.q.val() {
                self.failed.d.next = false;
            } else {
                self.overrun.d.next = false;
            }
        }

        if self.doorbell.val() {
            if self.fits.val() {
                self.tail.d.next = self.value.val().get_bits::<16>(0);
            } else {
                // A ring that isn't there belongs to nobody who could be told.
                self.overrun.d.next = self.size.q.val().any();
                self.overrun_value.d.next = self.value.val();
            }
        }
        if self.read.val() {
            self.next.d.next = self.next.q.val() + 1;
        }
        if self.put_back.val() {
            self.next.d.next = self.next.q.val() - 1;
        }
        if self.advance.val() {
            self.position.d.next = self.position.q.val() + 1;
        }
        if self.stop.val() {
            self.stays.d.next = true;
            self.failed.d.next = true;
        }

        self.reading.next = self.reads.q.val();
        if self.read.val() {
            self.reading.next = self.reading.val() + 1;
        }
        if self.advance.val() | self.discard.val() | self.put_back.val() {
            self.reading.next = self.reading.val() - 1;
        }
        self.reads.d.next = self.reading.val();
        self.held.next = self.inside.q.val();
        if self.advance.val() {
            self.held.next = self.held.val() + 1;
        }
        if self.leaves.val() {
            self.held.next = self.held.val() - 1;
        }
        if self.refused.val() {
            self.held.next = self.held.val() - 1;
        }
        self.inside.d.next = self.held.val();

        self.one.next = 1.into();
        if self.set.val() | self.clear.val() {
            self.base_of.d.next = self.base.val();
            self.size.d.next = self.one.val() << self.log2.val();
            self.tail.d.next = 0.into();
            self.position.d.next = 0.into();
            self.next.d.next = 0.into();
            self.stays.d.next = false;
            self.overrun.d.next = false;
            self.failed.d.next = false;
        }
        if self.clear.val() {
            self.size.d.next = 0.into();
        }
    }
}
