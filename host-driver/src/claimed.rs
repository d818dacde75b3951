//! Claimed messages: found and taken by [`Endpoint::claim`](crate::Endpoint::claim), to be received or discarded once.
//!
//! ```text
//!  claim ► completion ► Claimed ─┬─ receive ► completion with the buffer
//!                                ├─ discard ► completion
//!                                └─ drop      discarded in silence
//! ```
//!
//! The message rests where it came to, with the peer's credit, until one of these. What is dropped is remembered by the
//! endpoint and discarded as soon as its rings have room.

use crate::endpoint::Handle;
use crate::error::PostError;
use crate::pair::Pair;
use crate::region::Buffer;
use std::fmt;

/// A message that nobody else can receive. Its envelope is in the completion that brought it.
///
/// It is good until its pair or its endpoint is closed, even if the pair fails. Dropping it discards the message.
#[must_use = "dropping it discards the message"]
pub struct Claimed {
    /// None once it is used.
    claim: Option<(Handle, Claim)>,
}

/// What names a claimed message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    /// The card's handle.
    pub(crate) handle: u32,
    /// The pair that the message came by.
    pub(crate) pair: Pair,
}

/// A receive of a claimed message that was refused.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct ClaimedRefused {
    /// Why.
    #[source]
    pub error: PostError,
    /// The message.
    pub claimed: Claimed,
    /// The buffer. The card has not seen it.
    pub buffer: Buffer,
}

/// A discard that was refused.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct DiscardRefused {
    /// Why.
    #[source]
    pub error: PostError,
    /// The message.
    pub claimed: Claimed,
}

impl Claimed {
    pub(crate) fn new(endpoint: Handle, claim: Claim) -> Self {
        Self {
            claim: Some((endpoint, claim)),
        }
    }

    /// What it is, for a request that uses it.
    pub(crate) fn into_parts(mut self) -> (Handle, Claim) {
        match self.claim.take() {
            Some(parts) => parts,
            None => unreachable!("it is consumed by its use"),
        }
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        if let Some((endpoint, claim)) = self.claim.take() {
            endpoint.drop_claim(claim);
        }
    }
}

impl fmt::Debug for Claimed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let claim = self.claim.as_ref().map(|(_, claim)| claim);
        f.debug_tuple("Claimed").field(&claim).finish()
    }
}
