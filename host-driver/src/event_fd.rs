//! A file descriptor that tells of completions and events: for who waits by `poll` or `epoll`, or has an executor that does.
//!
//! ```text
//!  card ── interrupt ──► transport ──┐
//!  library ── closed ────────────────┴─► eventfd ──► poll(2) ► clear ► poll_many until empty ► req_notify ► poll_many ─┐
//!                                                      ▲───────────────────────────────────────────────────────────────┘
//! ```

use crate::transport::{TransportError, signal_event_fd};
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// A file descriptor that is readable when an endpoint has interrupted since it was last cleared: `ibv_comp_channel`'s. It doesn't block.
///
/// It tells of what [`req_notify`](crate::CompletionQueue::req_notify) and [`req_notify_event`](crate::Endpoint::req_notify_event) have asked for, of the end
/// of a close, and of the card's being gone. It may be readable when there is nothing to poll, as any such descriptor may.
#[derive(Debug)]
pub struct EventFd {
    fd: OwnedFd,
}

/// Why there is no event file descriptor.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EventFdError {
    /// The transport signals none ([`TransportError::NoEventFd`]), or the card couldn't be reached.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The system has none to give: the process or the system has too many open.
    #[error("no event file descriptor: {0}")]
    System(#[from] io::Error),
}

impl EventFd {
    pub(crate) fn new() -> io::Result<Self> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { fd })
    }

    /// Another descriptor of the same event.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        let fd = self.fd.try_clone()?;
        Ok(Self { fd })
    }

    pub(crate) fn signal(&self) {
        signal_event_fd(self.fd.as_fd());
    }

    /// Makes it unreadable until the next signal, and returns the signals since the last time.
    ///
    /// # Errors
    /// What reading gives, but that there is nothing to read.
    pub fn clear(&self) -> io::Result<u64> {
        let mut count = [0; 8];
        match rustix::io::read(&self.fd, &mut count) {
            Ok(_) => Ok(u64::from_ne_bytes(count)),
            Err(rustix::io::Errno::AGAIN) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for EventFd {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl From<EventFd> for OwnedFd {
    fn from(event: EventFd) -> Self {
        event.fd
    }
}
