//! Memory that the card can reach: one page-aligned allocation and its mapping.
//!
//! All of the library's `unsafe` is here and in [`crate::ring`] and [`crate::region`], which say who
//! may look at which byte when; this file says how long the bytes exist.

use crate::transport::{MAP_BYTES, Transport, TransportError};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::Arc;

/// A zeroed allocation that is mapped for the card as long as it lives.
pub(crate) struct HostMemory {
    start: NonNull<u8>,
    layout: Layout,
    address: u64,
    transport: Arc<dyn Transport>,
}

// SAFETY: the memory is plain bytes that nothing ties to a thread.
unsafe impl Send for HostMemory {}
// SAFETY: a shared `HostMemory` only gives out its addresses; who uses them answers for the accesses.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    /// Allocates `length` zeroed bytes and maps them. They are aligned so far that rings and slots in them are at
    /// the card's address as well.
    pub(crate) fn new(
        transport: &Arc<dyn Transport>,
        length: usize,
    ) -> Result<Self, TransportError> {
        let layout = Layout::from_size_align(length, MAP_BYTES)
            .ok()
            .filter(|layout| layout.size() > 0)
            .ok_or(TransportError::NoSpace(length))?;
        // SAFETY: the layout's size is not 0, as filtered above.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else {
            handle_alloc_error(layout)
        };
        // SAFETY: `start` is an allocation of `length` bytes that `Drop` frees after unmapping it; the
        // modules that access it keep to the rules of `Transport::map` (see the head of this file).
        match unsafe { transport.map(start, length) } {
            Ok(address) => Ok(Self {
                start,
                layout,
                address,
                transport: Arc::clone(transport),
            }),
            Err(error) => {
                // SAFETY: allocated above with this layout, and the card was never told of it.
                unsafe { dealloc(start.as_ptr(), layout) };
                Err(error)
            }
        }
    }

    /// First byte.
    pub(crate) const fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Length in bytes.
    pub(crate) const fn length(&self) -> usize {
        self.layout.size()
    }

    /// The card's address of the first byte.
    pub(crate) const fn address(&self) -> u64 {
        self.address
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        match self.transport.unmap(self.address) {
            // SAFETY: allocated by `new` with this layout. The mapping is over: either it was ended just now, or
            // the transport says that it has none, or that there is no card any more.
            Ok(()) | Err(TransportError::NotMapped(_) | TransportError::Closed) => unsafe {
                dealloc(self.start.as_ptr(), self.layout);
            },
            // The card may still reach the memory: it is left to it.
            Err(_) => {}
        }
    }
}
