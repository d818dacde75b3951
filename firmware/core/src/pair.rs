//! Pairs: what is kept of each, and the admission of envelopes.
//!
//! The list of unexpected messages is shared by all pairs of the card. An envelope that a pair grants
//! is a place in it, so the sum of what is granted may not be more than it holds: then no message
//! that a peer has credit for can find it full.

use crate::argument::Refusal;
use abi::limits::MAX_CREDITS;
use abi::status::MailboxStatus;

/// What a pair is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// Nothing.
    #[default]
    Closed,
    /// Its envelopes are reserved.
    Open,
    /// The gates know it, and may find it failed.
    Connected,
}

/// A pair.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pair {
    pub(crate) slots: u64,
    pub(crate) nonce: u32,
    pub(crate) state: State,
    pub(crate) endpoint: u8,
    pub(crate) credits: u8,
}

/// Refuses a pair whose `credits` envelopes don't fit in a list of `unexpected` entries beside those granted.
pub(crate) fn admit(pairs: &[Pair], unexpected: u32, credits: u32) -> Result<(), Refusal> {
    let granted: u32 = pairs.iter().map(|pair| u32::from(pair.credits)).sum();
    let left = unexpected.saturating_sub(granted);
    if credits > left {
        return Err(Refusal {
            status: MailboxStatus::NoEnvelopes,
            detail: left.min(u32::from(MAX_CREDITS)),
        });
    }
    Ok(())
}
