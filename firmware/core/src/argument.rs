//! Refusals, and the checks that arguments of several commands share.

use abi::limits::{EAGER_MAX, FLAT_SPACE, MAX_CREDITS, SLOTS_ALIGN};
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

pub(crate) const NOT_FOUND: Refusal = Refusal::new(MailboxStatus::NotFound);
pub(crate) const BUSY: Refusal = Refusal::new(MailboxStatus::Busy);
pub(crate) const NOT_CONNECTED: Refusal = Refusal::new(MailboxStatus::NotConnected);

/// An argument narrowed to what the gates keep of it.
pub(crate) fn narrow<T: TryFrom<u32>>(value: u32, position: u32) -> Result<T, Refusal> {
    T::try_from(value).map_err(|_| Refusal::argument(position))
}

/// Envelopes of a pair.
pub(crate) fn credits(value: u32, position: u32) -> Result<u8, Refusal> {
    match (1..=u32::from(MAX_CREDITS)).contains(&value) {
        true => Ok(value as u8),
        false => Err(Refusal::argument(position)),
    }
}

/// An Ethernet address of one card: 48 bits, no group.
pub(crate) fn mac(value: u64, position: u32) -> Result<u64, Refusal> {
    match value >> 48 == 0 && value & 1 == 0 {
        true => Ok(value),
        false => Err(Refusal::argument(position)),
    }
}

/// An address space that there is.
pub(crate) fn space(value: u32, position: u32) -> Result<u8, Refusal> {
    match value == u32::from(FLAT_SPACE) {
        true => Ok(FLAT_SPACE),
        false => Err(Refusal::argument(position)),
    }
}

/// Slots of a pair.
pub(crate) fn slots(address: u64, credits: u8, position: u32) -> Result<u64, Refusal> {
    match is_aligned_range(address, u64::from(credits) * EAGER_MAX as u64) {
        true => Ok(address),
        false => Err(Refusal::argument(position)),
    }
}

/// Whether `length` bytes from `address` on are an aligned range that doesn't wrap.
const fn is_aligned_range(address: u64, length: u64) -> bool {
    address.is_multiple_of(SLOTS_ALIGN) && address.checked_add(length).is_some()
}
