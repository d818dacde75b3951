//! Time-outs of requests: when one is over the request is cancelled, and tells the program `TimedOut` if the cancel is in time.
//!
//! ```text
//!  set_timeout ─► expires_at of the request, next_expiry of the queue
//!  poll, wait, post … ─► feed ─► next_expiry is over ─► a cancel that tells nobody ─► Cancelled ─► TimedOut
//!                                                                                 └─► too late: the request ends as it ends
//! ```
//!
//! Nothing counts the time while nobody calls the library; a wait ends its pause when the next time-out is over. `next_expiry` may be too early, never too late.

use super::{Core, Own, Phase};
use crate::error::PostError;
use crate::link::Link;
use crate::table::{Outstanding, Request};
use abi::status::Status;

/// Cycles until a cancel for which there was no room is tried again.
const TRY_AGAIN: u64 = 256;

/// Whether a cancel may still be posted for a request.
fn is_pending(request: &Outstanding) -> bool {
    request.told.is_none() && request.cancel.is_none() && !request.noticed
}

impl Core {
    /// No time-out is over before.
    pub(crate) const fn next_expiry(&self) -> u64 {
        self.queue.next_expiry
    }

    /// Cancels the requests whose time-outs are over.
    pub(super) fn expire(&mut self, link: &Link) {
        if self.queue.next_expiry == u64::MAX {
            return;
        }
        let now = link.now();
        if now < self.queue.next_expiry {
            return;
        }
        let expires = 0..if is_broken!(NeverExpires) {
            0
        } else {
            self.endpoints.len()
        };
        let next = expires.map(|at| self.of(at).expire(link, now)).min();
        self.queue.next_expiry = next.unwrap_or(u64::MAX);
    }
}

impl Own<'_> {
    /// Gives a request a time-out: the cycle in which it is over.
    ///
    /// # Errors
    /// [`PostError::NothingToCancel`] if it has been polled for, or nothing cancels it, or somebody has.
    pub(crate) fn set_expiry(&mut self, target: Request, expires_at: u64) -> Result<(), PostError> {
        let cancelled_by = self.work_of(target);
        let opcode = cancelled_by.and_then(|work| work.posting().cancelled_by);
        let found = self.queue.table.get_mut(target);
        let found = found.filter(|found| opcode.is_some() && found.cancel.is_none());
        let found = found.ok_or(PostError::NothingToCancel)?;
        found.expires_at = expires_at;
        self.queue.next_expiry = self.queue.next_expiry.min(expires_at);
        Ok(())
    }

    /// Cancels what is over, as far as there is room for cancels. Returns when to look again.
    fn expire(&mut self, link: &Link, now: u64) -> u64 {
        if self.rings.phase != Phase::Open {
            return u64::MAX;
        }
        let over = |found: &Outstanding| is_pending(found) && found.expires_at <= now;
        while let Some(target) = self.queue.table.find_of(self.rings.at, over) {
            if self.post_cancel(link, 0, target, true).is_err() {
                return now.saturating_add(TRY_AGAIN);
            }
            if let Some(found) = self.queue.table.get_mut(target) {
                found.told = Some(Status::TimedOut);
            }
        }
        let expires_at = |found: &Outstanding| is_pending(found).then_some(found.expires_at);
        let next = self
            .queue
            .table
            .each_of(self.rings.at)
            .filter_map(expires_at);
        next.min().unwrap_or(u64::MAX)
    }
}
