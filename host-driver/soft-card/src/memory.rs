//! Host memory as a card reaches it: by addresses that only a mapping makes valid, in this process or at the end of a cable.

use crate::cable::HostEnd;
use card_model::memory::{BusError, HostMemory};
use host_driver::transport::MAP_BYTES;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Distance between mappings, so that running over the end of one never reaches another.
const PAGE: u64 = MAP_BYTES as u64;
/// The first address handed out: far from any pointer, so that the two can't be confused unnoticed.
const FIRST: u64 = 0x00c0_ffee_0000_0000;

/// Where the bytes of a mapping are.
enum Place {
    /// In this process.
    Here(NonNull<u8>),
    /// With a host that is reached by messages only.
    There(Arc<HostEnd>),
}

/// What a card asks its host's memory for, as a [bus that a test has](crate::SoftFabric::bus) carries it.
pub enum BusAccess<'a> {
    /// These bytes have been read, and may be changed on their way.
    Read {
        /// The card's address.
        address: u64,
        /// What the card gets.
        bytes: &'a mut [u8],
    },
    /// These bytes are to be written.
    Write {
        /// The card's address.
        address: u64,
        /// What the card sends.
        bytes: &'a [u8],
    },
    /// A completion or an event is to be written.
    Entry {
        /// The card's address.
        address: u64,
        /// What the card sends.
        words: &'a [u64],
    },
}

/// Says of each access whether the bus answers it well.
pub(crate) type Bus = Box<dyn FnMut(BusAccess<'_>) -> bool + Send>;

struct Mapping {
    address: u64,
    length: u64,
    place: Place,
}

// SAFETY: the memory is plain bytes; who mapped it promised that the card may access them from any thread.
unsafe impl Send for Mapping {}

/// The mappings of a card. Addresses are never used twice.
pub(crate) struct Memory {
    mappings: Vec<Mapping>,
    next: u64,
    /// Bytes that the program says it has, at addresses of this process.
    owned: Vec<Range<usize>>,
    /// Accesses to such bytes.
    pub(crate) trespasses: u64,
    /// Writes that are done once more, if the card has that flaw.
    late: Option<Vec<(u64, Vec<u8>)>>,
    /// What accesses pass.
    pub(crate) bus: Option<Bus>,
}

impl Memory {
    /// Memory of which nothing is mapped; of a card that writes everything once more, if `writes_late`.
    pub(crate) fn new(writes_late: bool) -> Self {
        Self {
            mappings: Vec::new(),
            next: FIRST,
            owned: Vec::new(),
            trespasses: 0,
            late: writes_late.then(Vec::new),
            bus: None,
        }
    }

    /// Enters a mapping of this process's memory and returns its address.
    ///
    /// # Safety
    /// As for [`host_driver::transport::Transport::map`].
    pub(crate) unsafe fn map(&mut self, start: NonNull<u8>, length: usize) -> u64 {
        let misaligned = start.addr().get() as u64 % PAGE;
        self.enter(misaligned, length as u64, Place::Here(start))
    }

    /// Enters a mapping of a distant host's memory, `misaligned` bytes past a page, and returns its address.
    pub(crate) fn map_there(&mut self, misaligned: u64, length: u64, host: Arc<HostEnd>) -> u64 {
        self.enter(misaligned % PAGE, length, Place::There(host))
    }

    fn enter(&mut self, misaligned: u64, length: u64, place: Place) -> u64 {
        let alignment = length.next_power_of_two().max(PAGE);
        let address = self.next.next_multiple_of(alignment) + misaligned;
        self.next = (address + length).next_multiple_of(PAGE) + PAGE;
        self.mappings.push(Mapping {
            address,
            length,
            place,
        });
        address
    }

    /// Ends a mapping; false if there is none at this address.
    pub(crate) fn unmap(&mut self, address: u64) -> bool {
        let before = self.mappings.len();
        self.mappings.retain(|mapping| mapping.address != address);
        self.mappings.len() != before
    }

    /// Ends all mappings.
    pub(crate) fn unmap_all(&mut self) {
        self.mappings.clear();
    }

    pub(crate) fn mappings(&self) -> usize {
        self.mappings.len()
    }

    /// Whether a mapping of this process's memory has some of these bytes.
    pub(crate) fn reaches(&self, bytes: &Range<usize>) -> bool {
        self.mappings.iter().any(|mapping| match mapping.place {
            Place::Here(start) => {
                let first = start.addr().get();
                first < bytes.end && bytes.start < first + mapping.length as usize
            }
            Place::There(_) => false,
        })
    }

    /// The program says that it has these bytes, or hasn't any more.
    pub(crate) fn set_owned(&mut self, bytes: Range<usize>, owned: bool) {
        match owned {
            true => self.owned.push(bytes),
            false => self.owned.retain(|range| *range != bytes),
        }
    }

    fn pass(&mut self, access: BusAccess<'_>) -> Result<(), BusError> {
        let well = self.bus.as_mut().is_none_or(|bus| bus(access));
        well.then_some(()).ok_or(BusError)
    }

    fn find(&self, address: u64, length: usize) -> Result<&Mapping, BusError> {
        let inside = |mapping: &&Mapping| {
            address
                .checked_sub(mapping.address)
                .is_some_and(|offset| offset + length as u64 <= mapping.length)
        };
        self.mappings.iter().find(inside).ok_or(BusError)
    }

    /// Pointer to bytes of this process that were found.
    fn pointer(mapping: &Mapping, start: NonNull<u8>, address: u64) -> NonNull<u8> {
        // SAFETY: the offset is inside the mapping, which is one allocation.
        unsafe { start.add((address - mapping.address) as usize) }
    }

    /// Does the late writes.
    pub(crate) fn write_late(&mut self) {
        let late = self.late.as_mut().map(std::mem::take);
        for (address, bytes) in late.into_iter().flatten() {
            // A region that is gone is none to write to.
            let _ = self.write_now(address, &bytes);
        }
    }

    fn write_now(&mut self, address: u64, bytes: &[u8]) -> Result<(), BusError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let mapping = self.find(address, bytes.len())?;
        match &mapping.place {
            Place::Here(start) => {
                let to = Self::pointer(mapping, *start, address);
                let first = to.addr().get();
                let touches =
                    |owned: &Range<usize>| first < owned.end && owned.start < first + bytes.len();
                if self.owned.iter().any(touches) {
                    // It is found out, and not done: the program may be looking at these bytes.
                    self.trespasses += 1;
                    return Ok(());
                }
                // SAFETY: as for `read`.
                unsafe { to.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
            }
            Place::There(host) => host.write(address, bytes).ok_or(BusError)?,
        }
        Ok(())
    }
}

impl HostMemory for Memory {
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), BusError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let mapping = self.find(address, bytes.len())?;
        match &mapping.place {
            Place::Here(start) => {
                let from = Self::pointer(mapping, *start, address);
                let length = bytes.len();
                let to = NonNull::from(&mut *bytes).cast();
                // SAFETY: mapped for as many bytes. The host holds no reference to what it has given to the card.
                unsafe { from.copy_to_nonoverlapping(to, length) };
            }
            Place::There(host) => {
                bytes.copy_from_slice(&host.read(address, bytes.len()).ok_or(BusError)?);
            }
        }
        self.pass(BusAccess::Read { address, bytes })
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), BusError> {
        self.pass(BusAccess::Write { address, bytes })?;
        if let Some(late) = &mut self.late {
            late.push((address, bytes.to_vec()));
        }
        self.write_now(address, bytes)
    }

    fn write_entry(&mut self, address: u64, words: &[u64]) -> Result<(), BusError> {
        self.pass(BusAccess::Entry { address, words })?;
        let mapping = self.find(address, 8 * words.len())?;
        match &mapping.place {
            Place::Here(start) => {
                let to = Self::pointer(mapping, *start, address);
                // SAFETY: mapped for as many words, and aligned because rings are.
                unsafe { store_words(to, words) };
            }
            Place::There(host) => host.write_entry(address, words).ok_or(BusError)?,
        }
        Ok(())
    }
}

/// Stores words one by one, each whole, each visible not before those in front of it.
///
/// # Safety
/// `to` is valid for writes of as many words, and aligned for them; others access them atomically only, as long as the last is not stored.
pub(crate) unsafe fn store_words(to: NonNull<u8>, words: &[u64]) {
    let to = to.cast::<u64>();
    for (k, word) in words.iter().enumerate() {
        // SAFETY: the caller's promise.
        let cell = unsafe { AtomicU64::from_ptr(to.add(k).as_ptr()) };
        cell.store(word.to_le(), Ordering::Release);
    }
}
