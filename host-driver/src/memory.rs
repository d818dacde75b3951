//! Memory that the card can reach: one allocation that host and card share, the transport's or the program's.
//!
//! All of the library's `unsafe` is here, in [`crate::link`], [`crate::ring`] and [`crate::region`], which say who
//! may look at which byte when; this file says how long the bytes exist.

use crate::link::Link;
use crate::transport::{SharedMemory, TransportError};
use std::ptr::NonNull;
use std::sync::Arc;

/// What owns memory that the program has brought: it is kept, untouched, until the card can't reach the memory any more. A description, like
/// [`SharedMemory`]: dropping it ends nothing.
pub(crate) struct Owner(NonNull<dyn Send>);

// SAFETY: what it stands for is `Send`, and is only ever dropped.
unsafe impl Send for Owner {}

impl Owner {
    /// Takes the owner, and its bytes from it.
    pub(crate) fn new<O: AsMut<[u8]> + Send + 'static>(owner: O) -> (Self, NonNull<[u8]>) {
        let owner = NonNull::from(Box::leak(Box::new(owner)));
        // SAFETY: leaked just now, so that it stays where it is and is borrowed by nobody else until `end`. That ends the borrow.
        let bytes = NonNull::from(unsafe { (*owner.as_ptr()).as_mut() });
        (Self(owner), bytes)
    }

    /// Drops the owner.
    ///
    /// # Safety
    /// Nobody reaches the bytes any more.
    pub(crate) unsafe fn end(self) {
        // SAFETY: made of a box in `new`, and `self` is consumed. The borrow of the bytes is over, as the caller promises.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// An allocation that the card can reach as long as it lives.
pub(crate) struct HostMemory {
    memory: SharedMemory,
    /// Of memory that the program has brought.
    owner: Option<Owner>,
    link: Arc<Link>,
}

// SAFETY: the memory is plain bytes that nothing ties to a thread, and the owner is `Send`.
unsafe impl Send for HostMemory {}
// SAFETY: a shared `HostMemory` only gives out its addresses; who uses them answers for the accesses.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    /// Gets `length` zeroed bytes. They are aligned so far that rings, to their size, and slots in them are at
    /// the card's address as well.
    pub(crate) fn new(link: &Arc<Link>, length: usize) -> Result<Self, TransportError> {
        Ok(Self {
            memory: link.alloc(length)?,
            owner: None,
            link: Arc::clone(link),
        })
    }

    /// Takes the program's bytes, aligned as they are. If the card can't reach them, their owner is dropped.
    pub(crate) fn of_program(
        link: &Arc<Link>,
        owner: Owner,
        bytes: NonNull<[u8]>,
    ) -> Result<Self, TransportError> {
        match link.map(bytes.cast(), bytes.len()) {
            Ok(memory) => Ok(Self {
                memory,
                owner: Some(owner),
                link: Arc::clone(link),
            }),
            Err(error) => {
                // SAFETY: the card never had the bytes' address, and `bytes` isn't used any more.
                unsafe { owner.end() };
                Err(error)
            }
        }
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
        // SAFETY: it is of this transport's `alloc`, or mapped with this owner, and whoever had a reference to it had borrowed this.
        unsafe { self.link.free(self.memory, self.owner.take()) };
    }
}
