//! Putting firmware into a card: the management processor is held, its memory written, then let run.

use crate::transport::{Transport, TransportError};
use abi::register::{CONTROL, CONTROL_RUN, LOADER_ADDRESS, LOADER_DATA};

/// Loads `segments` (address as the processor sees it, contents) and starts the processor.
///
/// An address must be a multiple of 4; a last word that is cut short is filled with zeros. The
/// device is opened afterwards. Reset a card first whose firmware has run: the new one takes the gates'
/// tables for empty.
///
/// # Errors
/// [`TransportError`] if the card can't be reached.
pub fn load_firmware<'a>(
    transport: &dyn Transport,
    segments: impl IntoIterator<Item = (u32, &'a [u8])>,
) -> Result<(), TransportError> {
    transport.write_register(CONTROL, 0)?;
    for (address, bytes) in segments {
        transport.write_register(LOADER_ADDRESS, address)?;
        for chunk in bytes.chunks(4) {
            let mut word = [0; 4];
            word[..chunk.len()].copy_from_slice(chunk);
            transport.write_register(LOADER_DATA, u32::from_le_bytes(word))?;
        }
    }
    transport.write_register(CONTROL, CONTROL_RUN)
}
