//! Waiting for a completion that nobody polls for: the caller arms, looks under the lock at what the card has written, and pauses.
//!
//! ```text
//!  arm_for_completion ► look ── not yet ──► pause_for_completion ─► arm_for_completion ► look …
//!                                            until a completion, a close, a time-out of a request, or the deadline
//! ```
//!
//! What is written between arming and the look may be taken by the look. The queue is armed at an entry of before then, whose interrupt tells of nothing that comes
//! later: so a pause returns at once if the queue isn't armed at the entry that is written next.

use crate::connection::SELDOM_CYCLES;
use crate::endpoint::Endpoint;
use crate::transport::{TransportError, Watch};

/// What a pause ends with.
#[must_use]
pub(crate) struct Armed {
    /// The line of the completion queue.
    line: Watch,
    /// Closings when it was armed.
    closings: u64,
    /// The cycle in which a request's time is over.
    expiry: u64,
}

impl Endpoint {
    /// Asks for an interrupt at the next completion, and lets what is kept go out.
    ///
    /// # Errors
    /// If the card is out of reach.
    pub(crate) fn arm_for_completion(&self) -> Result<Armed, TransportError> {
        let link = self.handle.link();
        // Closing flushes without an interrupt of the card's.
        let closings = link.closings();
        let mut locked = self.handle.lock();
        let line = locked.core.arm_completions(link)?;
        Ok(Armed {
            line,
            closings,
            expiry: locked.core.next_expiry(),
        })
    }

    /// Waits until it is worth a look, and not beyond `deadline`.
    ///
    /// # Errors
    /// If the card is out of reach.
    pub(crate) fn pause_for_completion(
        &self,
        armed: Armed,
        deadline: u64,
    ) -> Result<(), TransportError> {
        let link = self.handle.link();
        if !self.handle.lock().core.is_armed() {
            return Ok(());
        }
        let Some(closing) = link.watch_closings(armed.closings) else {
            return Ok(());
        };
        let seldom = link.now().saturating_add(SELDOM_CYCLES);
        let next = deadline.min(armed.expiry).min(seldom);
        link.pause_or_fail(&[armed.line, closing], next)
    }
}
