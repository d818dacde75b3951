//! The sweep: what is pending of some messages is cancelled, and what of them has come and waits is discarded.
//!
//! ```text
//!  Endpoint::sweep(&group, &messages, told, timeout) ──► Swept { receives, sends, messages }
//!
//!   lock ► take what the card has written: silent ► done with;  the program's ► aside, until it polls
//!        ► cancel every receive and send of `messages` that is pending            completes as `told`
//!        ► then of each pair of the group: claim ► discard ► claim … until none is found
//!   unlock ► pause until a completion comes ► again, until nothing is left that hasn't ended
//! ```
//!
//! It is for who has seen to it that nothing new comes in: `revoke` by a rule, `drain` by markers. A receive or a send that ends `Cancelled` by the sweep is told
//! to the program with the status `told`; one that matched, or left, first ends as it ends. The sweep's own cancels, claims and discards complete in silence. It
//! posts as a program does, behind what is kept of the list ring, so it works while lists and rings are full; and as a program it needs a free entry of the
//! completion queue. Its claims pass rules by.
//!
//! Completions of the program that are in front of the sweep's own are put aside, in memory that was allocated with the queue, and polled as if they
//! were still in it. One sweep of an endpoint is under way at a time. One that fails may be begun again: it goes on with what is left.

use crate::core::SweepTurn;
use crate::endpoint::Endpoint;
use crate::group::Group;
use crate::query::Capabilities;
use crate::transport::TransportError;
use abi::request::FLAG_PAST_RULES;
use abi::status::Status;

/// Messages of a context, by their match bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MessageSet {
    /// Context.
    pub context: u16,
    /// Match bits.
    pub match_bits: u64,
    /// Of these, those that have to agree. 0: all messages of the context.
    pub mask: u64,
}

impl MessageSet {
    /// All messages of a context.
    pub const fn of_context(context: u16) -> Self {
        Self {
            context,
            match_bits: 0,
            mask: 0,
        }
    }

    /// Whether a message is one of them; or a receive with these ignore bits is for no others.
    pub const fn covers(&self, context: u16, match_bits: u64, ignore_bits: u64) -> bool {
        let differs = (match_bits ^ self.match_bits | ignore_bits) & self.mask;
        self.context == context && differs == 0
    }
}

/// What a sweep has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Receives that were cancelled.
    pub receives: usize,
    /// Sends that were cancelled.
    pub sends: usize,
    /// Messages that had come, and were discarded.
    pub messages: usize,
}

/// Why a sweep ended before its work was done. What it has done stays done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SweepError {
    /// Another sweep of the endpoint is under way.
    #[error("another sweep of the endpoint is under way")]
    Busy,
    /// Every entry of the completion queue is reserved for a request of the program's. Poll, then call again.
    #[error("every completion entry is reserved")]
    CompletionQueueFull,
    /// The time is over. Call again.
    #[error("the sweep was not done in time")]
    TimedOut,
    /// The endpoint has been closed.
    #[error("the endpoint is closed")]
    Closed,
    /// The card couldn't be reached.
    #[error(transparent)]
    Transport(#[from] TransportError),
}

/// Cycles of the pause before another turn while a ring is full: the card interrupts nobody when it has fetched.
const FULL_PAUSE: u64 = 256;

impl Endpoint {
    /// Cancels what is pending of `messages` of the group, by a receive from any source too, and discards what waits of them. See the head of this file.
    ///
    /// # Errors
    /// [`SweepError`].
    pub(crate) fn sweep(
        &self,
        group: &Group,
        messages: &MessageSet,
        told: Status,
        timeout: u64,
    ) -> Result<Swept, SweepError> {
        let link = self.handle.link();
        let deadline = link.now().saturating_add(timeout);
        let flags = match self.device().capabilities().contains(Capabilities::RULES) {
            true => FLAG_PAST_RULES,
            false => 0,
        };
        if !self.handle.lock().own().begin_sweep(flags) {
            return Err(SweepError::Busy);
        }
        let ended = loop {
            // Armed before the turn: what ends meanwhile interrupts.
            let armed = match self.arm_for_completion() {
                Ok(armed) => armed,
                Err(error) => break Err(error.into()),
            };
            let mut locked = self.handle.lock();
            locked.core.set_aside(link);
            let turn = locked.own().sweep_turn(link, group, messages, told);
            drop(locked);
            let now = link.now();
            if let Ok(SweepTurn::Done(swept)) = turn {
                break Ok(swept);
            }
            let paused = match turn {
                Err(error) => break Err(error),
                Ok(_) if now >= deadline => break Err(SweepError::TimedOut),
                Ok(SweepTurn::Full) => {
                    let next = deadline.min(now.saturating_add(FULL_PAUSE));
                    link.pause_or_fail(&[], next)
                }
                Ok(SweepTurn::Waits) => self.pause_for_completion(armed, deadline),
                Ok(_) => Ok(()),
            };
            if let Err(error) = paused {
                break Err(error.into());
            }
        };
        self.handle.lock().own().end_sweep();
        ended
    }
}
