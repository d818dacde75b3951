//! Memory that the card can reach: one allocation that host and card share, the transport's or the program's.
//!
//! All of the library's `unsafe` is here, in [`crate::link`], [`crate::ring`] and [`crate::region`], which say who
//! may look at which byte when; this file says how long the bytes exist.

use crate::link::Link;
use crate::transport::{SharedMemory, TransportError};
use std::ptr::NonNull;
use std::sync::Arc;

/// A zeroed allocation that the card can reach as long as it lives.
pub(crate) struct HostMemory {
    memory: SharedMemory,
    link: Arc<Link>,
}

// SAFETY: the memory is plain bytes that nothing ties to a thread.
unsafe impl Send for HostMemory {}
// SAFETY: a shared `HostMemory` only gives out its addresses; who uses them answers for the accesses.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    /// Gets `length` zeroed bytes. They are aligned so far that rings and slots in them are at
    /// the card's address as well.
    pub(crate) fn new(link: &Arc<Link>, length: usize) -> Result<Self, TransportError> {
        Ok(Self {
            memory: link.alloc(length)?,
            link: Arc::clone(link),
        })
    }

    /// First byte.
    pub(crate) const fn start(&self) -> NonNull<u8> {
        self.memory.start
    }

    /// Length in bytes.
    pub(crate) const fn length(&self) -> usize {
        self.memory.length
    }

    /// The card's address of the first byte.
    pub(crate) const fn address(&self) -> u64 {
        self.memory.address
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        // SAFETY: it is of this transport's `alloc`, and whoever had a reference to it had borrowed this.
        unsafe { self.link.free(self.memory) };
    }
}
