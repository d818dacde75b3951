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
use crate::error::{PostError, Refused};
use crate::pair::Pair;
use crate::region::Buffer;
use crate::table::Request;
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

    /// Receives the message into the buffer. It completes as a receive, in whatever order others do: `Success` or `Truncated`, with the envelope
    /// once more and the buffer; `Flushed` if the pair was closed meanwhile.
    ///
    /// # Errors
    /// [`ClaimedRefused`], with the message and the buffer: `InvalidPair` if the pair has been closed, else see [`PostError`] for what to do.
    pub fn receive(mut self, wr_id: u64, buffer: Buffer) -> Result<Request, ClaimedRefused> {
        let Some((endpoint, claim)) = self.claim.take() else {
            unreachable!("it is consumed by its use");
        };
        if !buffer.is_of(endpoint.domain()) {
            return Err(ClaimedRefused {
                error: PostError::WrongDomain,
                claimed: Self::new(endpoint, claim),
                buffer,
            });
        }
        let link = endpoint.link();
        let posted = endpoint
            .lock()
            .own()
            .receive_claimed(link, wr_id, claim, buffer);
        posted.map_err(|Refused { error, buffer }| ClaimedRefused {
            error,
            claimed: Self::new(endpoint, claim),
            buffer,
        })
    }

    /// Drops the message. The completion says that its place is free, or `Flushed` if the pair was closed meanwhile.
    ///
    /// # Errors
    /// [`DiscardRefused`], with the message: `InvalidPair` if the pair has been closed, else see [`PostError`] for what to do.
    pub fn discard(mut self, wr_id: u64) -> Result<Request, DiscardRefused> {
        let Some((endpoint, claim)) = self.claim.take() else {
            unreachable!("it is consumed by its use");
        };
        let link = endpoint.link();
        let posted = endpoint.lock().own().discard(link, wr_id, claim);
        posted.map_err(|error| DiscardRefused {
            error,
            claimed: Self::new(endpoint, claim),
        })
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
