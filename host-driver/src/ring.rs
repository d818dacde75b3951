//! The rings in host memory: requests that the library produces, entries that the card produces.
//!
//! ```text
//!   RequestRing   write entry ► release ► tail doorbell        the card fetches up to tail and moves head
//!   EntryQueue    acquire last word, phase as expected? ► read what else was written ► … ► head doorbell
//! ```
//!
//! Indices are 16 bits and free running; the entry of index `i` is `i` modulo the number of entries,
//! and the phase of pass 0 is 1.

use crate::link::Link;
use crate::memory::HostMemory;
use crate::transport::TransportError;
use abi::limits::{MAX_RING_LOG2, MIN_RING_LOG2};
use abi::request::REQUEST_BYTES;
use abi::ring::{self, QueueEntry};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// log2 of a number of ring entries, if it is one that a card takes.
pub(crate) fn ring_log2(entries: usize) -> Option<u8> {
    let log2 = u8::try_from(entries.checked_ilog2()?).ok()?;
    let fits = entries.is_power_of_two() && (MIN_RING_LOG2..=MAX_RING_LOG2).contains(&log2);
    fits.then_some(log2)
}

/// Words of a work request.
pub(crate) const REQUEST_WORDS: usize = REQUEST_BYTES / 8;

/// A ring of work requests: the library produces, the card consumes.
pub(crate) struct RequestRing {
    memory: Arc<HostMemory>,
    log2: u8,
    tail: u16,
    /// The tail of the last doorbell.
    rung: u16,
    /// Up to where the card had fetched when last asked.
    head: u16,
    tail_register: u32,
    head_register: u32,
}

impl RequestRing {
    /// An empty ring of `1 << log2` entries. Its registers are set when the endpoint is known.
    pub(crate) fn new(link: &Arc<Link>, log2: u8) -> Result<Self, TransportError> {
        Ok(Self {
            memory: Arc::new(HostMemory::new(link, REQUEST_BYTES << log2)?),
            log2,
            tail: 0,
            rung: 0,
            head: 0,
            tail_register: 0,
            head_register: 0,
        })
    }

    /// Says where the ring's indices are in the register window.
    pub(crate) fn set_registers(&mut self, tail: u32, head: u32) {
        (self.tail_register, self.head_register) = (tail, head);
    }

    /// The memory that the card knows as the ring.
    pub(crate) fn memory(&self) -> &Arc<HostMemory> {
        &self.memory
    }

    /// The card's address of the ring.
    pub(crate) fn address(&self) -> u64 {
        self.memory.address()
    }

    /// log2 of the number of entries.
    pub(crate) fn log2(&self) -> u8 {
        self.log2
    }

    /// Number of entries.
    pub(crate) fn entries(&self) -> usize {
        1 << self.log2
    }

    /// Whether so many entries are free. Asks the card only if the ring looks full.
    pub(crate) fn has_room_for(&mut self, link: &Link, count: u16) -> Result<bool, TransportError> {
        let entries = 1_u16 << self.log2;
        let has_room = |ring: &Self| entries - ring.tail.wrapping_sub(ring.head) >= count;
        if has_room(self) {
            return Ok(true);
        }
        let head = link.read(self.head_register)? as u16;
        // An index that the ring has never had is a card gone wrong: nothing is freed by it.
        if self.tail.wrapping_sub(head) <= entries {
            self.head = head;
        }
        Ok(has_room(self))
    }

    /// Writes a request to the next entry, which the caller knows to be free. The card looks at it after the next [`ring`](Self::ring).
    pub(crate) fn post(&mut self, words: &[u64; REQUEST_WORDS]) {
        let entry = usize::from(self.tail) & ((1 << self.log2) - 1);
        let base = self.memory.start().cast::<u64>();
        for (k, word) in words.iter().enumerate() {
            // SAFETY: `entry` is inside the ring, which `memory` holds aligned to a page. The entry is free, so the
            // card doesn't read it before the doorbell, and no reference to it exists.
            unsafe {
                base.add(entry * REQUEST_WORDS + k)
                    .write_volatile(word.to_le())
            };
        }
        self.tail = self.tail.wrapping_add(1);
    }

    /// Rings for the requests behind the last doorbell: one for all of them. If that can't be done now, the next call does it.
    pub(crate) fn ring(&mut self, link: &Link) {
        if self.tail == self.rung {
            return;
        }
        fence(Ordering::Release);
        let tail = u32::from(self.tail);
        if link.doorbell(self.tail_register, tail).is_ok() {
            self.rung = self.tail;
        }
    }
}

/// A queue of entries that the card produces, phase bit on top of the last word.
pub(crate) struct EntryQueue<E> {
    memory: Arc<HostMemory>,
    log2: u8,
    head: u16,
    /// The head that the card knows of.
    rung: u16,
    head_register: u32,
    entry: PhantomData<E>,
}

impl<E: QueueEntry> EntryQueue<E> {
    /// An empty queue of `1 << log2` entries. Its register is set when the endpoint is known.
    pub(crate) fn new(link: &Arc<Link>, log2: u8) -> Result<Self, TransportError> {
        Ok(Self {
            memory: Arc::new(HostMemory::new(link, (8 * E::ENTRY_WORDS) << log2)?),
            log2,
            head: 0,
            rung: 0,
            head_register: 0,
            entry: PhantomData,
        })
    }

    /// Says where the queue's consumer index is in the register window.
    pub(crate) fn set_register(&mut self, head: u32) {
        self.head_register = head;
    }

    /// The memory that the card knows as the queue.
    pub(crate) fn memory(&self) -> &Arc<HostMemory> {
        &self.memory
    }

    /// The card's address of the queue.
    pub(crate) fn address(&self) -> u64 {
        self.memory.address()
    }

    /// log2 of the number of entries.
    pub(crate) fn log2(&self) -> u8 {
        self.log2
    }

    /// Number of entries.
    pub(crate) fn entries(&self) -> u16 {
        1 << self.log2
    }

    /// Index of the next entry to take.
    pub(crate) fn head(&self) -> u16 {
        self.head
    }

    /// Entries taken that the card doesn't know to be free.
    pub(crate) fn unrung(&self) -> u16 {
        self.head.wrapping_sub(self.rung)
    }

    fn word(&self, index: u16, k: usize) -> NonNull<u64> {
        let entry = usize::from(index) & ((1 << self.log2) - 1);
        let word = entry * E::ENTRY_WORDS + k;
        // SAFETY: inside the queue, which `memory` holds aligned to a page; `k` is less than `E::ENTRY_WORDS`.
        unsafe { self.memory.start().cast::<u64>().add(word) }
    }

    /// Whether the card has written the entry of `index`, which is at most one pass ahead.
    pub(crate) fn is_written(&self, index: u16) -> bool {
        // SAFETY: the word is aligned, lives as long as `memory`, and is only accessed atomically while the card may
        // write it: here, and by the transport (`Transport`, "each aligned word becomes visible whole").
        let last = unsafe { AtomicU64::from_ptr(self.word(index, E::ENTRY_WORDS - 1).as_ptr()) };
        ring::is_written(u64::from_le(last.load(Ordering::Acquire)), index, self.log2)
    }

    /// Index of the next entry that the card will write.
    pub(crate) fn next_unwritten(&self) -> u16 {
        let written =
            (0..self.entries()).take_while(|&k| self.is_written(self.head.wrapping_add(k)));
        self.head.wrapping_add(written.count() as u16)
    }

    /// The next entry, if the card has written it. It stays next until [`advance`](Self::advance).
    pub(crate) fn peek(&self) -> Option<E> {
        self.look(self.head)
    }

    /// Every entry that the card has written and nobody has taken.
    pub(crate) fn written(&self) -> impl Iterator<Item = E> {
        (0..self.entries()).map_while(|k| self.look(self.head.wrapping_add(k)))
    }

    /// The entry of `index`, which is at most one pass ahead, if the card has written it.
    pub(crate) fn look(&self, index: u16) -> Option<E> {
        self.is_written(index).then(|| {
            E::read(|k| {
                // SAFETY: as in `is_written`. The phase, acquired, says that the entry is complete, and the card
                // doesn't write it again before the head doorbell says that it is free.
                u64::from_le(unsafe { self.word(index, k).read_volatile() })
            })
        })
    }

    /// Takes the entry last peeked.
    pub(crate) fn advance(&mut self) {
        self.head = self.head.wrapping_add(1);
    }

    /// Tells the card which entries are free.
    pub(crate) fn ring(&mut self, link: &Link) -> Result<(), TransportError> {
        fence(Ordering::Release);
        link.doorbell(self.head_register, u32::from(self.head))?;
        self.rung = self.head;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::ring_log2;

    #[test]
    fn only_powers_of_two_that_a_card_takes_are_ring_sizes() {
        assert_eq!(ring_log2(4), Some(2));
        assert_eq!(ring_log2(1 << 14), Some(14));
        for entries in [0, 1, 2, 5, 100, 1 << 15] {
            assert_eq!(ring_log2(entries), None, "{entries}");
        }
    }
}
