//! What the failure of a peer was and what it has cost, in one value that says it in a sentence.
//!
//! ```text
//!  QueryPair ─► who, cause, times ──┐
//!  watch_peers ─► time-out ─────────┼─► PeerFailure, which the pair keeps from the first call on
//!  completions that are taken ──────┴─► how many of them were PeerFailed: counted on
//! ```

use crate::core::Own;
use crate::endpoint::Endpoint;
use crate::error::CommandError;
use crate::operation::Work;
use crate::pair::{EndpointAddress, Pair};
use crate::query::PairStatus;
use abi::mailbox::FailureCause;
use abi::status::Status;
use std::fmt;

/// Who has failed, how that was found, and what was lost with it: [`Endpoint::peer_failure`]. `Display` says it in a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerFailure {
    /// The pair that has failed with its peer.
    pub pair: Pair,
    /// The peer.
    pub peer: Option<EndpointAddress>,
    /// Why it is taken to have failed.
    pub cause: FailureCause,
    /// Cycles of the timer that has found it. Of [`FailureCause::Retries`]: the first wait for an acknowledgement, which doubled up to four times that. Of
    /// [`FailureCause::Silence`]: the time-out of [`watch_peers`](Endpoint::watch_peers), if the peer was watched. None if it was found by no timer.
    pub timeout: Option<u64>,
    /// Of [`FailureCause::Retries`]: times that a send, or a question for credit, went out and wasn't answered.
    pub tries: Option<u8>,
    /// Sends, puts and gets that have ended with [`PeerFailed`](Status::PeerFailed), of those whose completions have been taken. Each may have arrived or not.
    pub sends_failed: u32,
    /// Receives, probes, claims and discards that named the peer and have ended so.
    pub receives_failed: u32,
}

/// What of it doesn't change any more, and what is counted.
#[derive(Clone, Copy, Default)]
pub(crate) struct Lost {
    found: Option<Found>,
    sends: u32,
    receives: u32,
}

/// How a failure was found.
#[derive(Clone, Copy)]
struct Found {
    peer: Option<EndpointAddress>,
    cause: FailureCause,
    timeout: Option<u64>,
    tries: Option<u8>,
}

impl Found {
    /// As the card tells it, of an endpoint whose peers may be silent for `watch` cycles; 0: for ever. None if the peer hasn't failed.
    fn of(status: &PairStatus, watch: u32) -> Option<Self> {
        let cause = status.failure?;
        let (timeout, tries) = match cause {
            FailureCause::Retries => (Some(1 << status.timeout), Some(status.retry_cnt + 1)),
            FailureCause::Silence => ((watch > 0).then_some(watch.into()), None),
            _ => (None, None),
        };
        Some(Self {
            peer: status.peer,
            cause,
            timeout,
            tries,
        })
    }
}

impl Own<'_> {
    /// An operation has ended, and the program is told so.
    pub(crate) fn count_lost(&mut self, work: &Work, status: Status) {
        if status != Status::PeerFailed || is_broken!(CountsNoLoss) {
            return;
        }
        let pair = work.operation().pair();
        if let Some(lost) = pair.and_then(|pair| self.lost_mut(pair)) {
            match work.queued_on() {
                Some(_) => lost.sends += 1,
                None => lost.receives += 1,
            }
        }
    }
}

impl Endpoint {
    /// What the failure of a pair's peer was, and what has ended with it so far; none if the peer isn't taken to have failed. Cause, time-out and tries are those of the first
    /// call that finds the failure, whatever is set later. What hasn't been polled isn't counted: call it when the pair has nothing outstanding to have all of it, and before
    /// the pair is closed.
    ///
    /// # Errors
    /// [`CommandError`]: `NotFound` if the pair isn't open.
    pub fn peer_failure(&self, pair: Pair) -> Result<Option<PeerFailure>, CommandError> {
        let (known, watch) = {
            let mut locked = self.handle.lock();
            let mut own = locked.own();
            let watch = own.watch();
            let lost = own.lost_mut(pair).ok_or(CommandError::NotFound)?;
            (lost.found, watch)
        };
        let found = match known {
            Some(found) => Some(found),
            None => Found::of(&self.query_pair(pair)?, watch),
        };
        let mut locked = self.handle.lock();
        let mut own = locked.own();
        let lost = own.lost_mut(pair).ok_or(CommandError::NotFound)?;
        lost.found = found;
        Ok(found.map(|found| PeerFailure {
            pair,
            peer: found.peer,
            cause: found.cause,
            timeout: found.timeout,
            tries: found.tries,
            sends_failed: lost.sends,
            receives_failed: lost.receives,
        }))
    }
}

/// A number of things, in words.
fn count(number: u32, one: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {one}{plural}")
}

impl fmt::Display for PeerFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.peer {
            Some(peer) => write!(
                f,
                "{peer}, the peer of pair {}, has failed: ",
                self.pair.index
            )?,
            None => write!(f, "the peer of pair {} has failed: ", self.pair.index)?,
        }
        match (self.cause, self.timeout, self.tries) {
            (FailureCause::Retries, Some(timeout), Some(tries)) => {
                let tries = count(tries.into(), "try").replace("trys", "tries");
                write!(
                    f,
                    "{tries} without an acknowledgement, the first for {timeout} cycles"
                )
            }
            (FailureCause::Silence, Some(timeout), _) => {
                write!(f, "it gave no sign of life for {timeout} cycles")
            }
            (FailureCause::Silence, ..) => f.write_str("it gave no sign of life"),
            (FailureCause::Declared, ..) => f.write_str("the program declared it"),
            (FailureCause::Told, ..) => f.write_str("another peer told so"),
            (FailureCause::Restarted, ..) => {
                f.write_str("its endpoint connects anew, as a later incarnation")
            }
            (FailureCause::Closed, ..) => {
                f.write_str("it closed its side of the pair without a disconnect")
            }
            (cause, ..) => write!(f, "{cause}"),
        }?;
        let (sends, receives) = (
            count(self.sends_failed, "send"),
            count(self.receives_failed, "receive"),
        );
        write!(f, "; {sends} and {receives} ended with it")
    }
}
