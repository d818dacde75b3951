//! What a room of the card tells its neighbours.

use abi::completion::Completion;
use abi::control::{Counter, PairCounter};
use abi::event::Cause;
use abi::status::Status;

use crate::link::Asked;

/// One thing that follows, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A completion is written.
    Complete {
        /// Endpoint.
        endpoint: u8,
        /// The entry, without its phase.
        entry: Completion,
    },
    /// One more completion is reserved, for a multi-receive that stays.
    Reserve {
        /// Endpoint.
        endpoint: u8,
    },
    /// A reservation ends without a completion: that of a cancel which was in time, or of a send that completes only on error.
    Release {
        /// Endpoint.
        endpoint: u8,
    },
    /// Envelopes of a pair have moved on.
    Update(Update),
    /// An event is raised.
    Raise {
        /// Endpoint.
        endpoint: u8,
        /// Cause.
        cause: Cause,
        /// Pair.
        pair: u16,
        /// Depends on the cause.
        info: u64,
    },
    /// A pair is to be failed.
    Fail {
        /// Pair.
        pair: u16,
        /// What its operations complete with: the code of a `Status`.
        status: u8,
    },
    /// A pair is to send a control frame.
    Mark {
        /// Pair.
        pair: u16,
        /// What for.
        reason: Reason,
    },
    /// A get of a peer is to be answered.
    Asked(Asked),
    /// The answer of a get is in its buffer, or won't be.
    Answered(Answered),
    /// A counter of the card counts.
    Count(Counter),
    /// A counter of a pair counts, and with it that of the card.
    CountOfPair {
        /// Pair.
        pair: u16,
        /// Which.
        counter: PairCounter,
    },
}

/// Why a pair is to send a control frame although its numbers haven't moved on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The peer has asked, or has sent a request that had come before.
    Answer,
    /// The peer is asked for its numbers.
    Ask,
    /// A request of the peer is missing.
    Gap,
}

/// How the envelopes of a pair that its peer owns have moved on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update {
    /// Pair.
    pub pair: u16,
    /// One more message is safe here.
    pub accepted: bool,
    /// One more envelope needs no storage any more.
    pub freed: bool,
    /// What was accepted was refused: a ready message, or a put.
    pub refused: bool,
}

/// What has become of the answer of a get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Pair.
    pub pair: u16,
    /// Number of the get.
    pub number: u32,
    /// What the get ends with: `Success`, `RemoteAccess`, `AccessDenied` or `MemoryError`.
    pub status: Status,
}
