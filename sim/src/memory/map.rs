//! The card's view of host memory: which card addresses name which bytes of this process.
//!
//! A card address is never a host pointer. Each mapping gets pages of its own, followed by an unmapped gap,
//! and has the buffer's place in its first page; pages are handed out in ascending order and never
//! twice, and the first is a multiple of the buffer's length, rounded up to a power of two. So the addresses of
//! page-aligned buffers depend on the order of the calls and on their lengths alone, rings are aligned to their size, and an access that runs off a buffer, or comes after its buffer was unmapped, hits nothing.
//!
//! ```text
//!  card   ──┬────────┬┈┈┈┈┈┈┬──────────────┬┈┈┈┈┈┈┬────►
//!  address  │ map 0  │ gap  │    map 1     │ gap  │ next
//!           └───┬────┘      └──────┬───────┘
//!               ▼                  ▼
//!           a buffer            another            (process memory)
//! ```
//!
//! This is the only file in the crate that touches memory through pointers.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering, fence};

use host_driver::transport::MAP_BYTES;

use crate::pins::BEAT_BYTES;

/// A card address and the host address behind it are congruent modulo this.
pub const PAGE: u64 = MAP_BYTES as u64;
/// Least number of unmapped bytes between two mappings.
pub const GAP: u64 = 16 * PAGE;

/// Why a mapping couldn't be made or undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MapError {
    /// A mapping of no bytes.
    #[error("a mapping must have at least one byte")]
    Empty,
    /// No mapping starts at this card address.
    #[error("no mapping starts at card address {0:#x}")]
    NotMapped(u64),
    /// All card addresses have been used.
    #[error("no card addresses are left for {0} bytes")]
    Exhausted(usize),
}

struct Mapping {
    card: u64,
    host: NonNull<u8>,
    len: usize,
}

// SAFETY: the pointer is only used as `MapTable::map`'s contract allows, which does not depend on the
// thread.
unsafe impl Send for Mapping {}

/// The mappings of one card.
pub struct MapTable {
    /// In ascending order of card addresses.
    mappings: Vec<Mapping>,
    next: u64,
    last: usize,
}

impl MapTable {
    /// An empty table, whose addresses differ from those of every other card, so that an address that
    /// strays to another card hits nothing.
    pub fn new(card: usize) -> Self {
        Self {
            mappings: Vec::new(),
            next: (0x100 + card as u64) << 40,
            last: 0,
        }
    }

    /// Makes `len` bytes at `host` reachable for the card and returns their card address.
    ///
    /// # Errors
    /// [`MapError::Empty`], [`MapError::Exhausted`].
    ///
    /// # Safety
    /// The bytes must be valid for reads and writes until they are unmapped. While the card
    /// runs, whoever else accesses bytes that the card has been told to access does so atomically.
    pub unsafe fn map(&mut self, host: NonNull<u8>, len: usize) -> Result<u64, MapError> {
        if len == 0 {
            return Err(MapError::Empty);
        }
        let place = |len: u64| {
            let first = self
                .next
                .checked_next_multiple_of(len.checked_next_power_of_two()?.max(PAGE))?;
            let card = first.checked_add(host.addr().get() as u64 % PAGE)?;
            let end = card.checked_add(len)?.checked_add(GAP)?;
            Some((card, end.checked_next_multiple_of(PAGE)?))
        };
        let (card, next) = place(len as u64).ok_or(MapError::Exhausted(len))?;
        self.next = next;
        self.mappings.push(Mapping { card, host, len });
        Ok(card)
    }

    /// Undoes the mapping that starts at `card`.
    ///
    /// # Errors
    /// [`MapError::NotMapped`].
    pub fn unmap(&mut self, card: u64) -> Result<(), MapError> {
        let at = self
            .mappings
            .binary_search_by_key(&card, |mapping| mapping.card)
            .map_err(|_| MapError::NotMapped(card))?;
        self.mappings.remove(at);
        self.last = 0;
        Ok(())
    }

    /// Number of mappings.
    pub fn len(&self) -> usize {
        self.mappings.len()
    }

    /// Whether there is no mapping.
    pub fn is_empty(&self) -> bool {
        self.mappings.is_empty()
    }

    /// The mapped lanes of the beat at `addr`, `from..to`, and a pointer to the first of them.
    ///
    /// No beat has lanes of two mappings, for there is a gap between them.
    #[inline]
    fn find(&mut self, addr: u64) -> Option<(NonNull<u8>, usize, usize)> {
        debug_assert!(addr.is_multiple_of(BEAT_BYTES as u64));
        let lanes = |mapping: &Mapping| {
            let from = mapping.card.saturating_sub(addr).min(BEAT_BYTES as u64) as usize;
            let to = (mapping.card + mapping.len as u64)
                .saturating_sub(addr)
                .min(BEAT_BYTES as u64) as usize;
            (from < to).then(|| {
                let offset = (addr + from as u64 - mapping.card) as usize;
                // SAFETY: byte `addr + from` is in the mapping, so `offset < len`.
                (unsafe { mapping.host.add(offset) }, from, to)
            })
        };
        if let Some(found) = self.mappings.get(self.last).and_then(lanes) {
            return Some(found);
        }
        let beyond = addr.saturating_add(BEAT_BYTES as u64);
        let at = self
            .mappings
            .partition_point(|mapping| mapping.card < beyond)
            .checked_sub(1)?;
        let found = lanes(&self.mappings[at]);
        if found.is_some() {
            self.last = at;
        }
        found
    }

    /// Reads the beat at `addr`, a multiple of its size. Bytes that aren't mapped read as zero; `None` if none is.
    #[inline]
    pub fn read(&mut self, addr: u64) -> Option<u64> {
        let (at, from, to) = self.find(addr)?;
        let word = if to - from == BEAT_BYTES {
            // SAFETY: eight mapped bytes, valid by the contract of `map`, and aligned because the host's and
            // the card's address are congruent.
            u64::from_le(unsafe { AtomicU64::from_ptr(at.cast().as_ptr()) }.load(Ordering::Relaxed))
        } else {
            let mut bytes = [0; BEAT_BYTES];
            for (k, byte) in bytes[from..to].iter_mut().enumerate() {
                // SAFETY: one of the `to - from` mapped bytes at `at`, valid by the contract of `map`.
                *byte = unsafe { AtomicU8::from_ptr(at.add(k).as_ptr()) }.load(Ordering::Relaxed);
            }
            u64::from_le_bytes(bytes)
        };
        // A doorbell is a release: what the host wrote before it is seen from here on.
        fence(Ordering::Acquire);
        Some(word)
    }

    /// Writes the strobed bytes of the beat at `addr`, a multiple of its size. Returns whether all of them
    /// were mapped; if not, none is written. With [`Ordering::Release`] all beats written before are seen by
    /// whoever sees this one.
    #[inline]
    pub fn write(&mut self, addr: u64, data: u64, strb: u8, order: Ordering) -> bool {
        if strb == 0 {
            return true;
        }
        let Some((at, from, to)) = self.find(addr) else {
            return false;
        };
        if (strb.trailing_zeros() as usize) < from
            || BEAT_BYTES - strb.leading_zeros() as usize > to
        {
            return false;
        }
        if strb == u8::MAX {
            // SAFETY: all eight bytes are mapped, or this line wouldn't be reached; valid and aligned as above.
            unsafe { AtomicU64::from_ptr(at.cast().as_ptr()) }.store(data.to_le(), order);
            return true;
        }
        for (k, byte) in data.to_le_bytes().into_iter().enumerate() {
            if strb & (1 << k) != 0 {
                // SAFETY: `from <= k < to`, so this is one of the mapped bytes; valid as above.
                unsafe { AtomicU8::from_ptr(at.add(k - from).as_ptr()) }.store(byte, order);
            }
        }
        true
    }

    /// Undoes all mappings.
    pub fn clear(&mut self) {
        self.mappings.clear();
        self.last = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page and a half of bytes that start on a page.
    #[repr(align(4096))]
    struct Page([u8; 8192]);

    fn map(table: &mut MapTable, bytes: &mut [u8]) -> u64 {
        let host = NonNull::new(bytes.as_mut_ptr()).unwrap();
        // SAFETY: every test keeps `bytes` until it is done with the table.
        unsafe { table.map(host, bytes.len()) }.unwrap()
    }

    #[test]
    fn addresses_depend_on_the_order_of_calls_and_the_place_in_the_page_alone() {
        let mut here = Box::new(Page([0; 8192]));
        let mut there = Box::new(Page([0; 8192]));
        let addresses = |table: &mut MapTable, page: &mut Page| {
            [
                map(table, &mut page.0),
                map(table, &mut page.0[13..14]),
                map(table, &mut page.0[4100..5000]),
            ]
        };
        let first = addresses(&mut MapTable::new(3), &mut here);
        assert_eq!(addresses(&mut MapTable::new(3), &mut there), first);
        assert_eq!(first.map(|address| address % PAGE), [0, 13, 4]);
        assert_ne!(addresses(&mut MapTable::new(4), &mut here), first);
    }

    #[test]
    fn what_begins_on_a_page_is_at_a_multiple_of_its_length_rounded_up() {
        let mut page = Box::new(Page([0; 8192]));
        let mut table = MapTable::new(0);
        for (length, multiple) in [(1, 4096), (4096, 4096), (4097, 8192), (8192, 8192)] {
            assert!(map(&mut table, &mut page.0[..length]).is_multiple_of(multiple));
            // Whatever comes before.
            map(&mut table, &mut page.0[..64]);
        }
    }

    #[test]
    fn only_strobed_bytes_are_written() {
        for start in 0..8 {
            let mut page = Box::new(Page([0xee; 8192]));
            let mut table = MapTable::new(0);
            let card = map(&mut table, &mut page.0[start..start + 32]) - start as u64;
            assert!(table.write(
                card + 8,
                0x8877_6655_4433_2211,
                0b0110_1001,
                Ordering::Relaxed
            ));
            assert!(table.write(card + 16, !0, 0xff, Ordering::Release));
            let mut expected = [0xee; 40];
            for (k, byte) in [(8, 0x11), (11, 0x44), (13, 0x66), (14, 0x77)] {
                expected[k] = byte;
            }
            expected[16..24].fill(0xff);
            assert_eq!(table.read(card + 8), Some(0xee77_66ee_44ee_ee11));
            assert_eq!(page.0[..40], expected);
        }
    }

    #[test]
    fn bytes_outside_are_neither_read_nor_written() {
        let mut page = Box::new(Page([0x55; 8192]));
        let mut table = MapTable::new(0);
        let card = map(&mut table, &mut page.0[3..19]) - 3;
        assert_eq!(table.read(card), Some(0x5555_5555_5500_0000));
        assert_eq!(table.read(card + 16), Some(0x55_5555));
        assert_eq!(table.read(card + 24), None);
        assert_eq!(table.read(card.wrapping_sub(8)), None);
        for (beat, strb, fits) in [
            (0, 0b0000_0100, false),
            (0, 0b1111_1000, true),
            (0, 0b1111_1111, false),
            (16, 0b0000_1000, false),
            (16, 0b0000_0111, true),
            (16, 0b1111_1111, false),
        ] {
            let written = table.write(card + beat, 0, strb, Ordering::Relaxed);
            assert_eq!(written, fits, "{beat} {strb:#b}");
        }
        let mut expected = [0x55; 24];
        expected[3..8].fill(0);
        expected[16..19].fill(0);
        assert_eq!(page.0[..24], expected);
    }

    #[test]
    fn after_unmap_nothing_is_there_and_the_address_is_not_used_again() {
        let mut page = Box::new(Page([7; 8192]));
        let mut table = MapTable::new(0);
        let first = map(&mut table, &mut page.0);
        assert_eq!(table.unmap(first + 8), Err(MapError::NotMapped(first + 8)));
        assert_eq!(table.unmap(first), Ok(()));
        assert_eq!(table.unmap(first), Err(MapError::NotMapped(first)));
        assert_eq!(table.read(first), None);
        assert!(!table.write(first, 0, 0xff, Ordering::Relaxed));
        assert_ne!(map(&mut table, &mut page.0), first);
        table.clear();
        assert!(table.is_empty());
        assert_eq!(page.0, [7; 8192]);
    }

    #[test]
    fn a_gap_follows_every_mapping() {
        let mut page = Box::new(Page([0; 8192]));
        let mut table = MapTable::new(0);
        let first = map(&mut table, &mut page.0[..5000]);
        let second = map(&mut table, &mut page.0[..5000]);
        assert!(second >= first + 5000 + GAP);
        assert_eq!(table.read(second - 8), None);
        assert_eq!(table.read(0), None);
        assert_eq!(table.read(u64::MAX - 7), None);
        assert!(table.read(first + 4992).is_some());
        assert!(table.read(second + 4992).is_some());
    }

    #[test]
    fn an_empty_mapping_is_refused() {
        // SAFETY: no byte is promised.
        let refused = unsafe { MapTable::new(0).map(NonNull::dangling(), 0) };
        assert_eq!(refused, Err(MapError::Empty));
    }
}
