//! Work completions: polling for them, waiting for them, being notified of them.
//!
//! ```text
//!  poll        look at memory, never at the card
//!  req_notify  count the interrupts ► arm at the index polled up to
//!  wait        poll ► req_notify ► poll ► pause ► poll …
//! ```
//!
//! The second poll sees what came before the arming, and a completion after it interrupts.

use crate::claimed::Claimed;
use crate::endpoint::Shared;
use crate::error::WaitError;
#[cfg(target_os = "linux")]
use crate::event_fd::{EventFd, EventFdError};
use crate::pair::Pair;
use crate::region::Buffer;
use crate::shared::SharedBuffer;
use crate::table::Request;
use crate::transport::{PauseResult, TransportError, Watch};
use abi::completion::CompletionKind;
use abi::request::MAX_SEGMENTS;
use abi::status::Status;
use std::sync::Arc;

/// What a completion is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WcKind {
    /// A send.
    Send,
    /// A put.
    Put,
    /// A get.
    Get,
    /// A receive.
    Receive,
    /// A cancel that came too late.
    Cancel,
    /// A probe.
    Probe,
    /// A claim.
    Claim,
    /// A discard of a claimed message.
    Discard,
}

impl WcKind {
    /// What the card's kind says.
    pub(crate) const fn of(kind: CompletionKind) -> Option<Self> {
        match kind {
            CompletionKind::Send => Some(Self::Send),
            CompletionKind::Receive => Some(Self::Receive),
            CompletionKind::Cancel => Some(Self::Cancel),
            CompletionKind::Probe => Some(Self::Probe),
            CompletionKind::Claim => Some(Self::Claim),
            CompletionKind::Discard => Some(Self::Discard),
            CompletionKind::Unknown => None,
        }
    }
}

/// What became of a request.
#[derive(Debug)]
pub struct WorkCompletion {
    /// The application's number, as posted.
    pub wr_id: u64,
    /// The request.
    pub request: Request,
    /// Number of the endpoint that it was posted on, [`Endpoint::index`](crate::Endpoint::index). The card may give the number of a closed endpoint to the
    /// next: what that one has left is to be polled before, if the two are to be told apart.
    pub endpoint: u8,
    /// What it was.
    pub kind: WcKind,
    /// What happened to it.
    pub status: Status,
    /// Source of the message, or the pair of the send, put or get; none if the message has no source or the pair was closed since.
    pub pair: Option<Pair>,
    /// Context of the message.
    pub context: u16,
    /// Match bits of the message (receives, probes and claims); 0 otherwise.
    pub match_bits: u64,
    /// Immediate data of the message (receives, probes and claims); 0 otherwise.
    pub immediate: u64,
    /// Bytes of the message as sent, which is more than the buffer holds if the status is `Truncated`. Of a send, a put or a get, as posted: the library
    /// knows that, and the card doesn't write it.
    pub length: u64,
    /// The buffer that was posted. Of a multi-receive, the part that the message fills, or was to fill; with its last completion, all that is left.
    pub buffer: Option<Buffer>,
    /// Where the first byte of `buffer` is in the buffer that was posted, if this is of a multi-receive; 0 otherwise.
    pub offset: u64,
    /// Of the last completion of a multi-receive, how many there were, this one included; 0 otherwise.
    pub completions: u64,
    /// The shared buffer that was sent, instead.
    pub shared: Option<SharedBuffer>,
    /// Of a gather, its segments behind the first, which is in `shared`.
    pub segments: [Option<SharedBuffer>; MAX_SEGMENTS - 1],
    /// A multi-receive that stays posted: more completions of the request follow.
    pub more: bool,
    /// The message that a claim found, unless its pair has been closed since.
    pub claimed: Option<Claimed>,
}

impl WorkCompletion {
    /// The bytes that were received: as much of the buffer as the message filled.
    pub fn received(&self) -> &[u8] {
        match (&self.buffer, self.kind, self.status) {
            (Some(buffer), WcKind::Receive, Status::Success | Status::Truncated) => {
                let length =
                    usize::try_from(self.length).map_or(buffer.len(), |n| n.min(buffer.len()));
                &buffer[..length]
            }
            _ => &[],
        }
    }
}

/// A completion queue: of one endpoint, or of several that were opened [on it](crate::EndpointBuilder::on). Clones are the same queue; it outlives its
/// endpoints, so that what the closing flushed can be polled.
///
/// The queue's registers are in the page of the endpoint that was opened on it first, which therefore is closed last: until then
/// its close is refused with `Busy`. If it is dropped before, the command after the last of the others has been closed closes it.
#[derive(Clone)]
pub struct CompletionQueue {
    pub(crate) shared: Arc<Shared>,
}

impl CompletionQueue {
    /// Takes the next completion, if there is one.
    pub fn poll(&self) -> Option<WorkCompletion> {
        let mut core = self.shared.core();
        let completion = core.poll(self.shared.link());
        let retired = core.take_retired();
        drop(core);
        self.shared.free(retired);
        completion
    }

    /// Takes up to `limit` completions in one call, adds them to `completions` and returns how many it took. (`ibv_poll_cq` with more than one entry.)
    /// Nothing is allocated if `completions` has room for them.
    pub fn poll_many(&self, completions: &mut Vec<WorkCompletion>, limit: usize) -> usize {
        let link = self.shared.link();
        let mut core = self.shared.core();
        let before = completions.len();
        let limit = if is_broken!(PollsPastLimit) {
            limit.saturating_add(1)
        } else {
            limit
        };
        completions.extend(std::iter::from_fn(|| core.poll(link)).take(limit));
        let retired = core.take_retired();
        drop(core);
        self.shared.free(retired);
        completions.len() - before
    }

    /// Whether [`poll`](Self::poll) would return a completion.
    pub fn is_ready(&self) -> bool {
        self.shared.core().is_ready(self.shared.link())
    }

    /// Number of requests that have not been polled for: entries of the queue that are reserved.
    pub fn outstanding(&self) -> usize {
        usize::from(self.shared.core().outstanding())
    }

    /// Completions that named no outstanding request. The card never writes one.
    pub fn strays(&self) -> u64 {
        self.shared.core().strays()
    }

    /// Asks for an interrupt at the next completion after those polled. Poll once more, as with
    /// `ibv_req_notify_cq`, before pausing with what is returned: a completion that has come meanwhile needn't interrupt.
    ///
    /// # Errors
    /// [`TransportError`].
    pub fn req_notify(&self) -> Result<Watch, TransportError> {
        self.shared.core().arm_completions(self.shared.link())
    }

    /// A file descriptor that becomes readable when the interrupt that [`req_notify`](Self::req_notify) asks for has come. All calls give the same
    /// event, by descriptors of their own.
    ///
    /// ```no_run
    /// # use host_driver::*;
    /// # fn example(cq: CompletionQueue, wait: impl Fn(&EventFd)) -> Result<(), Box<dyn std::error::Error>> {
    /// let event = cq.event_fd()?;
    /// let mut completions = Vec::with_capacity(64);
    /// loop {
    ///     event.clear()?;
    ///     cq.req_notify()?;
    ///     if cq.poll_many(&mut completions, 64) == 0 {
    ///         wait(&event); // poll(2), or what the executor has
    ///     }
    ///     // … what is in `completions` is worked off …
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`EventFdError::Transport`] with [`TransportError::NoEventFd`] if the transport signals none; [`EventFdError::System`] if the system has none.
    #[cfg(target_os = "linux")]
    pub fn event_fd(&self) -> Result<EventFd, EventFdError> {
        self.shared.core().event_fd(self.shared.link())
    }

    /// Waits for a completion, `timeout` cycles at most, and takes it.
    ///
    /// # Errors
    /// [`WaitError::Timeout`]; [`WaitError::Interrupted`] once for each event that arrives of the causes that
    /// [the endpoint's waits are interrupted by](crate::Endpoint::set_wait_interrupts); [`WaitError::Transport`] if the card can't be reached, or is
    /// gone and everything that was outstanding has been taken.
    pub fn wait(&self, timeout: u64) -> Result<WorkCompletion, WaitError> {
        if let Some(completion) = self.poll() {
            return Ok(completion);
        }
        let mut watches = self.shared.core().take_watches();
        let waited = self.wait_watching(&mut watches, timeout);
        watches.clear();
        let mut core = self.shared.core();
        core.keep_watches(watches);
        let retired = core.take_retired();
        drop(core);
        self.shared.free(retired);
        waited
    }

    fn wait_watching(
        &self,
        watches: &mut Vec<Watch>,
        timeout: u64,
    ) -> Result<WorkCompletion, WaitError> {
        let link = self.shared.link();
        let deadline = link.now().saturating_add(timeout);
        loop {
            watches.clear();
            // Closing flushes without an interrupt of the card's.
            let closings = link.closings();
            let next = {
                let mut core = self.shared.core();
                if let Some(completion) = core.poll(link) {
                    return Ok(completion);
                }
                core.arm(link, watches)?;
                if let Some(completion) = core.poll(link) {
                    return Ok(completion);
                }
                core.next_expiry()
            };
            let Some(closing) = link.watch_closings(closings) else {
                continue;
            };
            watches.push(closing);
            match link.pause(watches, deadline.min(next)) {
                PauseResult::Interrupt(_) => {}
                PauseResult::Deadline if link.now() < deadline => {}
                PauseResult::Deadline => return self.poll().ok_or(WaitError::Timeout),
                PauseResult::Unreachable => return Err(TransportError::Unreachable.into()),
                PauseResult::Closed => return self.poll().ok_or(TransportError::Closed.into()),
            }
        }
    }
}

/// Several completion queues of one device, to wait for at once.
pub struct CompletionChannel {
    queues: Vec<CompletionQueue>,
    watches: Vec<Watch>,
}

impl CompletionChannel {
    /// A channel of these queues, which must be of one device.
    ///
    /// # Panics
    /// If there is no queue, or if they are of different devices.
    pub fn new(queues: &[CompletionQueue]) -> Self {
        assert!(
            queues
                .windows(2)
                .all(|two| two[0].shared.same_device(&two[1].shared)),
            "the queues of a channel are of one device"
        );
        assert!(!queues.is_empty(), "a channel has at least one queue");
        Self {
            queues: queues.to_vec(),
            watches: Vec::with_capacity(queues.len() + 1),
        }
    }

    /// Waits until a queue has a completion to poll, `timeout` cycles at most, and returns its position.
    ///
    /// # Errors
    /// As for [`CompletionQueue::wait`].
    pub fn wait(&mut self, timeout: u64) -> Result<usize, WaitError> {
        let link = self.queues[0].shared.link();
        let deadline = link.now().saturating_add(timeout);
        loop {
            self.watches.clear();
            let closings = link.closings();
            let mut next = deadline;
            for (position, queue) in self.queues.iter().enumerate() {
                let mut core = queue.shared.core();
                if core.is_ready(link) {
                    return Ok(position);
                }
                core.arm(link, &mut self.watches)?;
                if core.is_ready(link) {
                    return Ok(position);
                }
                next = next.min(core.next_expiry());
            }
            let Some(closing) = link.watch_closings(closings) else {
                continue;
            };
            self.watches.push(closing);
            match link.pause(&self.watches, next) {
                PauseResult::Interrupt(_) => {}
                PauseResult::Deadline if link.now() < deadline => {}
                PauseResult::Unreachable => return Err(TransportError::Unreachable.into()),
                ended @ (PauseResult::Deadline | PauseResult::Closed) => {
                    let ready = self.queues.iter().position(CompletionQueue::is_ready);
                    return ready.ok_or(match ended {
                        PauseResult::Deadline => WaitError::Timeout,
                        _ => TransportError::Closed.into(),
                    });
                }
            }
        }
    }
}
