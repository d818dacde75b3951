//! Tables that grow to what the card has, and are filled no further than they are used.

use crate::argument::Refusal;
use abi::status::MailboxStatus;
use heapless::Vec;

/// The first free entry of a table of at most `limit`; a new one is `fresh`.
///
/// # Errors
/// `NoResource` if there is none.
pub(crate) fn free<T, const N: usize>(
    table: &mut Vec<T, N>,
    limit: u32,
    fresh: T,
    is_free: impl FnMut(&T) -> bool,
) -> Result<usize, Refusal> {
    if let Some(index) = table.iter().position(is_free) {
        return Ok(index);
    }
    let index = table.len();
    if index >= limit as usize || table.push(fresh).is_err() {
        return Err(Refusal::new(MailboxStatus::NoResource));
    }
    Ok(index)
}
