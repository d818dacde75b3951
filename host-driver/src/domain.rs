//! Protection domains: what an endpoint and a region must share for one to use the other.

use crate::commands::Release;
use crate::completion::CompletionQueue;
use crate::device::Device;
use crate::endpoint::{EndpointBuilder, Shared};
use crate::error::CommandError;
use crate::protection::Exposures;
use crate::region::{Access, Buffer, MemoryRegion};
use abi::mailbox::{Command, DomainId, Nothing};
use std::sync::Arc;

/// A protection domain on a card; given back when its last user is gone.
pub(crate) struct Domain {
    pub(crate) device: Device,
    pub(crate) id: DomainId,
    /// Its windows.
    pub(crate) exposed: Arc<Exposures>,
}

impl Drop for Domain {
    fn drop(&mut self) {
        self.device.card.release(Release::Object {
            close: Command::CloseDomain,
            id: self.id.domain,
            memory: Vec::new(),
        });
    }
}

/// A protection domain. Clones are the same domain.
#[derive(Clone)]
pub struct ProtectionDomain {
    pub(crate) inner: Arc<Domain>,
}

impl ProtectionDomain {
    pub(crate) fn open(device: &Device) -> Result<Self, CommandError> {
        let mut commands = device.commands()?;
        let id = commands.open(Command::OpenDomain, &Nothing {}, Command::CloseDomain, &[])?;
        drop(commands);
        Ok(Self {
            inner: Arc::new(Domain {
                device: device.clone(),
                id,
                exposed: Arc::default(),
            }),
        })
    }

    /// The card that the domain is on.
    pub fn device(&self) -> &Device {
        &self.inner.device
    }

    pub(crate) fn id(&self) -> u32 {
        self.inner.id.domain
    }

    /// Refuses what is of another domain.
    pub(crate) fn owns(&self, domain: &Arc<Domain>) -> Result<(), CommandError> {
        match Arc::ptr_eq(&self.inner, domain) {
            true => Ok(()),
            false => Err(CommandError::Argument("it is of another domain")),
        }
    }

    /// Allocates and registers `length` bytes of zeroed memory for the accesses in `access`. Returns
    /// the region and one buffer that covers it, to be split at will.
    ///
    /// # Errors
    /// [`CommandError`]: `Argument` if `length` is 0, `NoResource` if the card has no more regions.
    pub fn reg_mr(
        &self,
        length: usize,
        access: Access,
    ) -> Result<(MemoryRegion, Buffer), CommandError> {
        MemoryRegion::register(self, length, access)
    }

    /// Registers memory that the program has, for the accesses in `access`: `ibv_reg_mr` of verbs. `memory` is what owns it, a `Vec<u8>`, a
    /// `Box<[u8]>`, a `&'static mut [u8]` or a type of the program's, and is moved into the region. Its bytes are the region's, as they are, and are
    /// reached through the [`Buffer`] from now on. Any alignment and length will do.
    ///
    /// The owner is dropped once the card can't reach the bytes any more: after the last buffer and the region are gone and the card has said that it has
    /// forgotten them, or at once if the registration fails. If the card can be reached no more it is never dropped.
    ///
    /// # What this costs in safety
    /// For such types nothing: the borrow by which `as_mut` gives the bytes lasts until the owner is dropped, so that the compiler has seen that nobody
    /// else has them. Memory that no safe type owns (of another allocator, of a device, shared with a process) needs a type of the program's whose `as_mut` is
    /// `unsafe` inside; what it promises there is that until its `drop` nobody else reads what the card may write, or writes at all:
    ///
    /// ```
    /// struct Foreign {
    ///     start: std::ptr::NonNull<u8>,
    ///     length: usize,
    /// }
    /// // SAFETY: the memory is not bound to a thread.
    /// unsafe impl Send for Foreign {}
    ///
    /// impl AsMut<[u8]> for Foreign {
    ///     fn as_mut(&mut self) -> &mut [u8] {
    ///         // SAFETY: initialised, valid until `drop`, and this is the only way to it.
    ///         unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    ///     }
    /// }
    ///
    /// impl Drop for Foreign {
    ///     fn drop(&mut self) { /* the card is done with it: give it back */ }
    /// }
    /// ```
    ///
    /// Beyond the compiler's sight: a card behind an IOMMU is given whole pages, so that one gone wrong could reach what else is in the first and the last,
    /// where [`reg_mr`](Self::reg_mr) begins on a page of its own. And the owner's `drop` is called by whatever thread learns that the card is done, in
    /// the middle of a call: it must not call this library.
    ///
    /// # Errors
    /// [`CommandError`]: `Argument` if there are no bytes, `NoResource` if the card has no more regions; `Transport` if it can't reach the memory.
    pub fn reg_user_mr<O: AsMut<[u8]> + Send + 'static>(
        &self,
        memory: O,
        access: Access,
    ) -> Result<(MemoryRegion, Buffer), CommandError> {
        MemoryRegion::register_owned(self, memory, access)
    }

    /// Creates a completion queue of `entries`, a power of two from 4 to 16384, for endpoints to be opened [on it](EndpointBuilder::on): `ibv_create_cq`. That is
    /// as many requests as may be outstanding on all of them together.
    ///
    /// # Errors
    /// [`CommandError`]: `Argument` if a queue can't have so many entries, `Transport` if there is no memory for them.
    pub fn create_cq(&self, entries: usize) -> Result<CompletionQueue, CommandError> {
        let shared = Shared::new(self, entries)?;
        Ok(CompletionQueue { shared })
    }

    /// Starts to open an endpoint in this domain.
    pub fn endpoint(&self) -> EndpointBuilder {
        EndpointBuilder::new(self)
    }
}
