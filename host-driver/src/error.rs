//! What can go wrong, and what the caller does next.

use crate::Buffer;
use crate::transport::TransportError;
use abi::mailbox::{Command, ConnectReason, UNDRAINED_READ, UNDRAINED_WRITE, Undrained};
use abi::status::MailboxStatus;
use std::fmt;

/// A mailbox command that did not do what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The firmware didn't answer: it hangs or isn't there. Commands fail at once with this error until it has
    /// answered; endpoints that are open go on without it. What the command would have opened is closed again when it has.
    /// Who can't wait for it resets the card: [`Device::reset`](crate::Device::reset).
    #[error("the card's firmware did not answer {command} within {cycles} cycles")]
    FirmwareTimeout {
        /// The command that was not answered; a later command names the one that is still outstanding.
        command: Command,
        /// Cycles that it was given.
        cycles: u64,
    },
    /// The firmware refused. What `detail` means is said with the status.
    #[error("the card refused {command}: {status} ({detail})")]
    Refused {
        /// The command.
        command: Command,
        /// Why.
        status: MailboxStatus,
        /// First word of the answer.
        detail: u32,
    },
    /// The gates didn't do in time what the command needs of them: they, or the request in front of it, wait for this access of host memory to end. The bus doesn't
    /// answer it, or an older one that is answered first. Otherwise as `Refused` with `HardwareTimeout`: the command may be given again.
    #[error("the card didn't do {command} in time: {access} hasn't ended")]
    Undrained {
        /// The command.
        command: Command,
        /// One of the accesses that are waited for.
        access: UndrainedAccess,
    },
    /// The firmware answered something that isn't in the ABI.
    #[error("the card's firmware answered {command} with {answer:#x}, which means nothing")]
    Malformed {
        /// The command.
        command: Command,
        /// The word that means nothing.
        answer: u32,
    },
    /// An argument is out of range; nothing was sent to the card.
    #[error("{0}")]
    Argument(&'static str),
    /// The library keeps sends of the pair that the card has no room for yet. Poll until they have gone, then call again.
    #[error("sends of the pair are kept until the card has room for them")]
    SendsKept,
    /// A peer has failed that may have a key of the window which is for any peer. Take its bytes for lost,
    /// [acknowledge](crate::Window::acknowledge_failures) that, which ends these keys, and grant it anew.
    #[error("a peer has failed that could write the window and isn't kept from it")]
    BufferUnusable,
    /// The object belongs to something else, or has been closed.
    #[error("not an open object of this endpoint")]
    NotFound,
    /// The program has [reset](crate::Device::reset) the card, or its firmware has started anew by itself: everything is closed. What was outstanding is
    /// flushed; open the device again.
    #[error("the card was reset, or its firmware has started anew: nothing is open on it any more")]
    Restarted,
    /// The gates didn't say in time that a reset of theirs is over: they may still access memory, and nothing is given back. Reset the card once more.
    #[error("the card's gates were not quiet within {0} cycles of their reset")]
    ResetTimeout(u64),
    /// The card couldn't be reached.
    #[error(transparent)]
    Transport(#[from] TransportError),
}

/// An access of host memory that the card has allowed and that hasn't ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UndrainedAccess {
    /// The card writes; else it reads.
    pub writes: bool,
    /// Key of its region: [`MemoryRegion::key`](crate::MemoryRegion::key), [`Window::region_key`](crate::Window::region_key).
    pub region: u32,
    /// Place of the pair on whose behalf it is: [`Pair::index`](crate::Pair::index).
    pub pair: u16,
    /// Context of the message whose payload it is; of a put or a get there is none.
    pub context: Option<u16>,
}

impl UndrainedAccess {
    pub(crate) fn from_answer(answer: Undrained) -> Option<Self> {
        let writes = match answer.access {
            UNDRAINED_READ => false,
            UNDRAINED_WRITE => true,
            _ => return None,
        };
        Some(Self {
            writes,
            region: answer.region,
            pair: answer.pair as u16,
            context: u16::try_from(answer.context).ok(),
        })
    }
}

impl fmt::Display for UndrainedAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, side) = match self.writes {
            true => ("a write to", "from"),
            false => ("a read of", "for"),
        };
        let Self { region, pair, .. } = self;
        write!(
            f,
            "{what} region {region:#x} {side} the peer of pair {pair}"
        )?;
        match self.context {
            Some(context) => write!(f, " in context {context}"),
            None => Ok(()),
        }
    }
}

impl CommandError {
    /// Whether the firmware has answered, and didn't do it.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused { .. } | Self::Undrained { .. })
    }

    /// Whether the card doesn't know what the command named.
    pub(crate) fn is_not_found(&self) -> bool {
        let not_found = MailboxStatus::NotFound;
        matches!(self, Self::Refused { status, .. } if *status == not_found)
    }
}

/// A connection that was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The cards didn't agree; what `detail` means is said with the reason.
    #[error("the connection was not made: {reason} ({detail})")]
    Refused {
        /// Why.
        reason: ConnectReason,
        /// More of it.
        detail: u16,
    },
    /// Nothing was decided in time.
    #[error("the connection was not made in time")]
    TimedOut,
    /// This side's card refused or didn't answer.
    #[error(transparent)]
    Command(#[from] CommandError),
}

impl From<TransportError> for ConnectError {
    fn from(error: TransportError) -> Self {
        Self::Command(error.into())
    }
}

/// A device that couldn't be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The card has an owner: a device that is open in this or another process. Use a clone of that one, or drop it and all that was opened on it.
    #[error("the card is open already: share its device, or drop it first")]
    AlreadyOpen,
    /// What answers isn't a Posthorn card.
    #[error("no Posthorn card: its identification reads {0:#010x}")]
    NotACard(u32),
    /// The gates or the firmware speak another version of the ABI; use the matching library.
    #[error("the {part} speaks version {found} of the ABI, this library version {expected}")]
    WrongAbi {
        /// "card" or "firmware".
        part: &'static str,
        /// Its version.
        found: u32,
        /// Ours.
        expected: u32,
    },
    /// The gates never came out of their clearing after reset.
    #[error("the card was not ready within {0} cycles")]
    CardTimeout(u64),
    /// The firmware never said that it is up: it hangs, or none was loaded.
    #[error("the card's firmware was not up within {0} cycles: is it loaded and running?")]
    FirmwareTimeout(u64),
    /// The firmware came up and didn't tell what the card is.
    #[error(transparent)]
    Command(#[from] CommandError),
}

impl From<TransportError> for OpenError {
    fn from(error: TransportError) -> Self {
        Self::Command(error.into())
    }
}

/// Why a request was not posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PostError {
    /// The send ring is full and the card has not fetched on. Let the card run, then post again.
    #[error("the send ring is full")]
    SendRingFull,
    /// The list ring is full and the card has not fetched on. Let the card run, then post again.
    #[error("the list ring is full")]
    ListRingFull,
    /// Every entry of the completion queue is reserved for a request. Poll, then post again.
    #[error("every completion entry is reserved")]
    CompletionQueueFull,
    /// The pair has as many sends outstanding as [its limit](crate::SendLimits::outstanding) says. Poll until one completes, then post again.
    #[error("the pair has as many sends outstanding as it may")]
    PairBusy,
    /// Every buffer for injected sends is in flight. Poll, then post again, or send from a buffer.
    #[error("every inject buffer is in flight")]
    InjectBusy,
    /// The bytes are more than an inject, or a gather, takes. Send them from a buffer, or as several messages.
    #[error("too long to inject or to gather")]
    TooLong,
    /// The card lacks what the request needs: `capabilities` of its identity say so beforehand. Do without.
    #[error("the card can't do that")]
    Unsupported,
    /// The message has more segments than a request can name. Copy some of them together.
    #[error("too many segments")]
    TooManySegments,
    /// The pair isn't an open pair of this endpoint.
    #[error("not an open pair of this endpoint")]
    InvalidPair,
    /// A rule of the endpoint revokes the message: [`Endpoint::revoke`](crate::Endpoint::revoke). It isn't sent.
    #[error("the message has been revoked")]
    Revoked,
    /// The endpoint drains these messages: [`Endpoint::drain`](crate::Endpoint::drain). Post again when it has ended.
    #[error("the messages are being drained")]
    Draining,
    /// The buffer belongs to another protection domain or device.
    #[error("the buffer is of another protection domain")]
    WrongDomain,
    /// The request to cancel isn't an outstanding receive or send that no cancel is under way for.
    #[error("nothing to cancel")]
    NothingToCancel,
    /// The endpoint has been closed.
    #[error("the endpoint is closed")]
    Closed,
    /// The card couldn't be reached.
    #[error(transparent)]
    Transport(#[from] TransportError),
}

/// A post that was refused, with the buffer that was to be posted: a send's is of one of the kinds that [`SendBuffer`](crate::SendBuffer) has.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Refused<B = Buffer> {
    /// Why.
    #[source]
    pub error: PostError,
    /// The buffer. The card has not seen it.
    pub buffer: B,
}

/// A list of which only the front was posted: the requests that the card has not seen.
#[derive(thiserror::Error)]
#[error("request {posted} of the list: {error}")]
pub struct ListRefused<W, I> {
    /// Requests that were posted, which is the place in the list of the one that was refused.
    pub posted: usize,
    /// Why it was refused.
    #[source]
    pub error: PostError,
    /// The request that was refused.
    pub request: W,
    /// Those behind it, not looked at.
    pub rest: I,
}

impl<W: fmt::Debug, I> fmt::Debug for ListRefused<W, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListRefused")
            .field("posted", &self.posted)
            .field("error", &self.error)
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}

/// Why a wait ended without a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The time-out is over.
    #[error("timed out")]
    Timeout,
    /// An event arrived of a cause that [waits are interrupted by](crate::Endpoint::set_wait_interrupts): what is waited for may not come. Poll the events,
    /// then wait again.
    #[error("interrupted by an event")]
    Interrupted,
    /// The card couldn't be reached.
    #[error(transparent)]
    Transport(#[from] TransportError),
}
