//! Host memory as a card reaches it: by addresses that only a mapping makes valid.

use host_driver::transport::MAP_BYTES;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Distance between mappings, so that running over the end of one never reaches another.
const PAGE: u64 = MAP_BYTES as u64;
/// The first address handed out: far from any pointer, so that the two can't be confused unnoticed.
const FIRST: u64 = 0x00c0_ffee_0000_0000;

/// An access outside every mapping.
#[derive(Debug)]
pub(crate) struct BusError;

struct Mapping {
    address: u64,
    length: u64,
    start: NonNull<u8>,
}

// SAFETY: the memory is plain bytes; who mapped it promised that the card may access them from any thread.
unsafe impl Send for Mapping {}

/// The mappings of a card. Addresses are never used twice.
pub(crate) struct Memory {
    mappings: Vec<Mapping>,
    next: u64,
}

impl Memory {
    pub(crate) fn new() -> Self {
        Self {
            mappings: Vec::new(),
            next: FIRST,
        }
    }

    /// Enters a mapping and returns its address.
    ///
    /// # Safety
    /// As for [`host_driver::transport::Transport::map`].
    pub(crate) unsafe fn map(&mut self, start: NonNull<u8>, length: usize) -> u64 {
        let address = self.next + start.addr().get() as u64 % PAGE;
        self.next = (address + length as u64).next_multiple_of(PAGE) + PAGE;
        self.mappings.push(Mapping {
            address,
            length: length as u64,
            start,
        });
        address
    }

    /// Ends a mapping; false if there is none at this address.
    pub(crate) fn unmap(&mut self, address: u64) -> bool {
        let before = self.mappings.len();
        self.mappings.retain(|mapping| mapping.address != address);
        self.mappings.len() != before
    }

    fn find(&self, address: u64, length: usize) -> Result<NonNull<u8>, BusError> {
        let inside = |mapping: &&Mapping| {
            address
                .checked_sub(mapping.address)
                .is_some_and(|offset| offset + length as u64 <= mapping.length)
        };
        let mapping = self.mappings.iter().find(inside).ok_or(BusError)?;
        // SAFETY: the offset is inside the mapping, which is one allocation.
        Ok(unsafe { mapping.start.add((address - mapping.address) as usize) })
    }

    pub(crate) fn read(&self, address: u64, length: usize) -> Result<Vec<u8>, BusError> {
        let mut bytes = vec![0; length];
        if length > 0 {
            let from = self.find(address, length)?;
            // SAFETY: mapped for as many bytes. The host is blocked in the transport, and holds no reference to
            // what it has given to the card.
            unsafe { from.copy_to_nonoverlapping(NonNull::from(&mut bytes[..]).cast(), length) };
        }
        Ok(bytes)
    }

    pub(crate) fn write(&self, address: u64, bytes: &[u8]) -> Result<(), BusError> {
        if !bytes.is_empty() {
            let to = self.find(address, bytes.len())?;
            // SAFETY: as for `read`.
            unsafe { to.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
        }
        Ok(())
    }

    /// Writes an entry of a ring, whose last word tells the host that it is there.
    pub(crate) fn write_entry(&self, address: u64, words: &[u64]) -> Result<(), BusError> {
        let to = self.find(address, 8 * words.len())?.cast::<u64>();
        for (k, word) in words.iter().enumerate() {
            // SAFETY: mapped for as many words, and aligned because rings are.
            let cell = unsafe { AtomicU64::from_ptr(to.add(k).as_ptr()) };
            cell.store(word.to_le(), Ordering::Release);
        }
        Ok(())
    }
}
