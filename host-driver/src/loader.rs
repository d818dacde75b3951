//! Putting firmware into a card: the management processor is held, its memory written, then let run.

use crate::device::{DeviceOptions, is_used, reset};
use crate::error::OpenError;
use crate::link::Link;
use crate::transport::Transport;
use abi::mgmt::memory_word;
use abi::register::{CONTROL, CONTROL_RUN, LOADER_ADDRESS, LOADER_DATA};
use std::sync::Arc;

/// Loads `segments` (address as the processor sees it, contents) and starts the processor, on a card that nobody has open. If it has been used
/// before, its gates are reset.
///
/// An address must be a multiple of 4; a last word that is cut short is filled with zeros. The
/// device is opened afterwards.
///
/// # Errors
/// [`OpenError::AlreadyOpen`] if the card has an owner, [`OpenError::CardTimeout`] if its gates don't get ready,
/// [`OpenError::Command`] if it can't be reached.
///
/// # Safety
/// The segments are Posthorn's firmware of this version. Another program could say that an endpoint is closed while the card still
/// writes into its buffers, which the library then gives back.
pub unsafe fn load_firmware<'a>(
    transport: Arc<dyn Transport>,
    segments: impl IntoIterator<Item = (u32, &'a [u8])>,
) -> Result<(), OpenError> {
    let link = Link::claim(transport)?.ok_or(OpenError::AlreadyOpen)?;
    if is_used(&link)? {
        let timeout = DeviceOptions::default().ready_timeout;
        if !reset(&link, timeout)? {
            return Err(OpenError::CardTimeout(timeout));
        }
    } else {
        link.write(CONTROL, 0)?;
    }
    for (address, bytes) in segments {
        link.write(LOADER_ADDRESS, address)?;
        for chunk in bytes.chunks(4) {
            link.write(LOADER_DATA, memory_word(chunk))?;
        }
    }
    Ok(link.write(CONTROL, CONTROL_RUN)?)
}
