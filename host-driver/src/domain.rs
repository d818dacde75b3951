//! Protection domains: what an endpoint and a region must share for one to use the other.

use crate::desk::Release;
use crate::device::Device;
use crate::endpoint::EndpointBuilder;
use crate::error::CommandError;
use crate::region::{Access, Buffer, MemoryRegion};
use abi::mailbox::{Command, DomainId, Nothing};
use std::sync::Arc;

/// A protection domain on a card; given back when its last user is gone.
pub(crate) struct Domain {
    pub(crate) device: Device,
    pub(crate) id: DomainId,
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
        let mut desk = device.desk()?;
        let id = desk.open(Command::OpenDomain, &Nothing {}, Command::CloseDomain, &[])?;
        drop(desk);
        Ok(Self {
            inner: Arc::new(Domain {
                device: device.clone(),
                id,
            }),
        })
    }

    /// The card that the domain is on.
    pub fn device(&self) -> &Device {
        &self.inner.device
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

    /// Starts to open an endpoint in this domain.
    pub fn endpoint(&self) -> EndpointBuilder {
        EndpointBuilder::new(self)
    }
}
