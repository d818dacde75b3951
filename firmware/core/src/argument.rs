//! Refusals, and the checks that arguments of several commands share.

use crate::card::ControlTimeout;
use abi::limits::RING_ALIGN;
use abi::status::MailboxStatus;

/// A command that is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub status: MailboxStatus,
    /// First word of the answer; its meaning is the status's.
    pub detail: u32,
}

impl Refusal {
    /// A refusal whose status says it all.
    pub(crate) const fn new(status: MailboxStatus) -> Self {
        Self { status, detail: 0 }
    }

    /// The argument at this position, counted from 0 in the order of the command's structure, is out of range.
    pub(crate) const fn argument(position: u32) -> Self {
        Self {
            status: MailboxStatus::InvalidArgument,
            detail: position,
        }
    }
}

impl From<ControlTimeout> for Refusal {
    fn from(_: ControlTimeout) -> Self {
        Self::new(MailboxStatus::HardwareTimeout)
    }
}

/// An argument narrowed to what the gates keep of it.
pub(crate) fn narrow<T: TryFrom<u32>>(value: u32, position: u32) -> Result<T, Refusal> {
    T::try_from(value).map_err(|_| Refusal::argument(position))
}

/// Whether `length` bytes from `address` on are an aligned range that doesn't wrap.
pub(crate) const fn is_aligned_range(address: u64, length: u64) -> bool {
    address.is_multiple_of(RING_ALIGN) && address.checked_add(length).is_some()
}
