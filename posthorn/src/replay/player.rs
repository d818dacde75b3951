//! One rank of a replay: posts what the application posted, in its order, and waits for the
//! completions that it waited for.
//!
//! ```text
//!  trace of the rank ──► post ──► host library ──► card
//!                          ▲                         │
//!        wait, check bytes, remember who matched ◄───┘
//! ```
//!
//! A post that the library refuses for want of room is repeated after the next completion, as an MPI library
//! would; what completes meanwhile is kept for the event that asks for it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use host_driver::transport::{PauseResult, Transport, TransportError};
use host_driver::{
    Access, Buffer, Cause, Causes, CommandError, CompletionQueue, Device, Endpoint, OpenError,
    Pair, PairAddress, PostError, ProtectionDomain, Refused, Source, TaggedReceive, TaggedSend,
    WaitError, WcKind, WcStatus, WorkCompletion,
};

use super::Wireup;
use crate::checker::{Criteria, Outcome, Receive};
use crate::payload::MessageId;
use crate::stats::{Asked, PairStats, Traffic};
use crate::summary::{Clipped, Ended};
use crate::trace::{Call, Event, FI_ECANCELED, FI_ENOMSG};

/// Longest wait for one completion of a rank that goes on when another is killed: several times what a card takes to give a silent peer up.
const PATIENCE_WITH_DEAD: u64 = 1_000_000;
/// Longest wait for one completion, in cycles: longer than any rank computes between two calls.
const PATIENCE: u64 = 50_000_000;
/// Requests that one rank may have outstanding.
const COMPLETION_ENTRIES: usize = 1024;
/// Injected sends in flight of one rank.
const INJECTS: usize = 64;

/// Why a rank stopped before the end of its trace.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// The simulation was stopped.
    #[error("stopped")]
    Stopped,
    /// The card couldn't be opened.
    #[error(transparent)]
    Open(OpenError),
    /// The firmware refused a command.
    #[error(transparent)]
    Command(CommandError),
    /// A request was refused in a way that waiting doesn't cure.
    #[error("line {line}: {error}")]
    Post {
        /// Line of the trace.
        line: u64,
        /// Why.
        error: PostError,
    },
    /// A request completed with a status that the recorded one did not have.
    #[error("line {line}: operation completed with {status}")]
    Status {
        /// Line of the trace that waits for it.
        line: u64,
        /// The status.
        status: WcStatus,
    },
    /// The payload, the length or the tag of a message is wrong.
    #[error("line {line}: {reason}")]
    Wrong {
        /// Line of the trace that posted the receive.
        line: u64,
        /// What is wrong.
        reason: String,
    },
    /// A completion didn't come.
    #[error("line {line}: no completion within {PATIENCE} cycles")]
    Silence {
        /// Line of the trace that waits for it.
        line: u64,
    },
    /// The card raised an event.
    #[error("line {line}: the card raised {cause}")]
    Event {
        /// Line of the trace that was waited for.
        line: u64,
        /// Cause of the event.
        cause: Cause,
    },
    /// Setting up went wrong.
    #[error("{0}")]
    Wireup(String),
}

impl From<CommandError> for PlayError {
    fn from(error: CommandError) -> Self {
        match error {
            CommandError::Transport(TransportError::Closed) => Self::Stopped,
            other => Self::Command(other),
        }
    }
}

impl From<OpenError> for PlayError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Command(error) => error.into(),
            other => Self::Open(other),
        }
    }
}

/// What one rank did, to its end or to where it stopped.
#[derive(Debug, Default)]
pub struct Played {
    /// Its receives in the order posted, with what became of them.
    pub receives: Vec<Receive>,
    /// Messages received and checked.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What was clipped.
    pub clipped: Clipped,
    /// Multi-receive buffers posted.
    pub multi_receives: u64,
    /// Completions of each status. The library shows none of an inject, unless it fails.
    pub completions: BTreeMap<&'static str, u64>,
    /// Cycle of the first post.
    pub begin: u64,
    /// Cycle of the last completion.
    pub end: u64,
    /// What ended otherwise because a rank was killed.
    pub ended: Vec<Ended>,
    /// The rank was killed itself.
    pub killed: bool,
    /// What the card says at the end, if it was to be asked.
    pub asked: Option<Asked>,
    /// Why it stopped, unless it ran to the end.
    pub error: Option<PlayError>,
}

/// What all ranks share: a count of messages for the progress bar, and what is asked of them.
#[derive(Debug, Default)]
pub struct Shared {
    /// Messages received so far by all ranks.
    pub messages: AtomicU64,
    /// Each rank reads its card's counters when all have finished.
    pub ask: bool,
    /// Some rank is killed: the others note which operations fail, and go on.
    pub goes_on: bool,
}

/// Replays the events of `rank` of `ranks` on the card behind `transport`.
pub fn play(
    transport: Arc<dyn Transport>,
    wireup: &dyn Wireup,
    rank: usize,
    ranks: usize,
    events: &[Event],
    shared: &Shared,
) -> Played {
    match Player::open(transport, wireup, rank, ranks, events, shared) {
        Err(error) => Played {
            error: Some(error),
            ..Played::default()
        },
        Ok(mut player) => {
            let result = player.run(wireup, events);
            player.played.error = result.err();
            player.played
        }
    }
}

struct Player<'a> {
    endpoint: Endpoint,
    queue: CompletionQueue,
    pool: Pool,
    rank: usize,
    limit: usize,
    pairs: Vec<Option<Pair>>,
    /// Messages so far to and from each rank.
    traffic: Vec<Traffic>,
    /// Receives outstanding: operation to position in `played.receives`, and handle.
    posted: HashMap<u64, (usize, host_driver::Request)>,
    /// Multi-receives outstanding: nothing is ever received into them.
    multi: Vec<host_driver::Request>,
    /// Completions that nobody has asked for yet.
    kept: HashMap<u64, WorkCompletion>,
    shared: &'a Shared,
    played: Played,
}

/// Ranks that a rank sends to, receives from, or may receive from.
fn peers(rank: usize, ranks: usize, events: &[Event]) -> Vec<usize> {
    let talks_to_itself = events.iter().any(|event| match event.call {
        Call::Send { peer, .. } => peer == rank,
        Call::Receive { source, .. } => source == Some(rank),
        _ => false,
    });
    (0..ranks)
        .filter(|&peer| peer != rank || talks_to_itself)
        .collect()
}

impl<'a> Player<'a> {
    fn open(
        transport: Arc<dyn Transport>,
        wireup: &dyn Wireup,
        rank: usize,
        ranks: usize,
        events: &[Event],
        shared: &'a Shared,
    ) -> Result<Self, PlayError> {
        let device = Device::open(transport)?;
        let identity = *device.identity();
        let limit = usize::try_from(identity.message_max).unwrap_or(usize::MAX);
        let pd = device.alloc_pd()?;
        let endpoint = pd
            .endpoint()
            .send_ring(64)
            .list_ring(64)
            .completion_queue(COMPLETION_ENTRIES)
            .inject_buffers(INJECTS)
            .open()?;
        endpoint.set_wait_interrupts(Causes::all());
        let peers = peers(rank, ranks, events);
        let credits = (identity.unexpected as usize / peers.len().max(1))
            .min(usize::from(abi::limits::DEFAULT_CREDITS)) as u16;
        let mut pairs = vec![None; ranks];
        let mut own = None;
        let mut addresses = Vec::new();
        for &peer in &peers {
            let (pair, address) = endpoint.open_pair(credits)?;
            pairs[peer] = Some(pair);
            if peer == rank {
                own = Some(address);
            } else {
                addresses.push((peer, address.to_bytes()));
            }
        }
        if let (Some(pair), Some(address)) = (pairs[rank], own) {
            endpoint.connect_pair(pair, &address)?;
        }
        for (peer, bytes) in wireup.exchange(&addresses)? {
            let address = PairAddress::from_bytes(&bytes)
                .ok_or_else(|| PlayError::Wireup(format!("rank {peer} sent no address")))?;
            let pair = pairs.get(peer).copied().flatten();
            let pair = pair.ok_or_else(|| PlayError::Wireup(format!("rank {peer} is no peer")))?;
            endpoint.connect_pair(pair, &address)?;
        }
        let queue = endpoint.completion_queue();
        Ok(Self {
            endpoint,
            queue,
            pool: Pool::new(pd),
            rank,
            limit,
            pairs,
            traffic: vec![Traffic::default(); ranks],
            posted: HashMap::new(),
            multi: Vec::new(),
            kept: HashMap::new(),
            shared,
            played: Played::default(),
        })
    }

    fn run(&mut self, wireup: &dyn Wireup, events: &[Event]) -> Result<(), PlayError> {
        wireup.barrier()?;
        self.played.begin = self.now();
        self.played.end = self.played.begin;
        events.iter().try_for_each(|event| self.take(event))?;
        self.finish(wireup)
    }

    fn now(&self) -> u64 {
        self.endpoint.device().now()
    }

    fn filter(&self, line: u64, criteria: Criteria) -> Result<TaggedReceive, PlayError> {
        Ok(TaggedReceive {
            source: match criteria.source {
                None => Source::Any,
                Some(peer) => Source::Pair(self.pair(line, peer)?),
            },
            context: 0,
            match_bits: criteria.tag,
            ignore_bits: criteria.ignore,
        })
    }

    fn pair(&self, line: u64, peer: usize) -> Result<Pair, PlayError> {
        self.pairs[peer].ok_or(PlayError::Post {
            line,
            error: PostError::InvalidPair,
        })
    }

    /// Length on this card of something that was `bytes` long.
    fn clip(&mut self, bytes: u64, is_message: bool) -> usize {
        let clipped = usize::try_from(bytes).map_or(self.limit, |bytes| bytes.min(self.limit));
        if is_message && clipped as u64 != bytes {
            self.played.clipped.messages += 1;
            self.played.clipped.bytes += bytes - clipped as u64;
        }
        clipped
    }

    fn take(&mut self, event: &Event) -> Result<(), PlayError> {
        let line = event.line;
        match event.call {
            Call::Send {
                peer,
                tag,
                bytes,
                inject,
            } => {
                let length = self.clip(bytes, true);
                let id = MessageId {
                    source: self.rank,
                    destination: peer,
                    number: self.traffic[peer].sent,
                };
                self.traffic[peer].sent += 1;
                self.traffic[peer].sent_bytes += length as u64;
                let send = TaggedSend {
                    pair: self.pair(line, peer)?,
                    context: 0,
                    match_bits: tag,
                    immediate: id.number,
                };
                self.send(event, &send, id, length, inject)
            }
            Call::Receive {
                source,
                tag,
                ignore,
                bytes,
            } => {
                let length = self.clip(bytes, false);
                let criteria = Criteria {
                    source,
                    tag,
                    ignore,
                };
                let filter = self.filter(line, criteria)?;
                let mut buffer = self.pool.take(length)?;
                let request = loop {
                    match self.endpoint.post_tagged_recv(event.op, &filter, buffer) {
                        Ok(request) => break request,
                        Err(refused) => buffer = self.after_refusal(line, refused)?,
                    }
                };
                self.posted
                    .insert(event.op, (self.played.receives.len(), request));
                self.played.receives.push(Receive {
                    line,
                    criteria,
                    outcome: Outcome::Pending,
                });
                Ok(())
            }
            Call::Probe {
                source,
                tag,
                ignore,
            } => {
                let filter = self.filter(
                    line,
                    Criteria {
                        source,
                        tag,
                        ignore,
                    },
                )?;
                self.post(line, |player| {
                    player.endpoint.probe(event.op, &filter).map(drop)
                })
            }
            Call::Cancel { target } => {
                // What has completed already can't be cancelled, which is what the recorded call says too.
                let Some(&(_, request)) = self.posted.get(&target) else {
                    return Ok(());
                };
                self.post(line, |player| {
                    match player.endpoint.cancel(event.op, request) {
                        Ok(_) | Err(PostError::NothingToCancel) => Ok(()),
                        Err(error) => Err(error),
                    }
                })
            }
            Call::MultiReceive { bytes } => {
                let length = usize::try_from(bytes).unwrap_or(usize::MAX);
                let mut buffer = self.pool.take(length)?;
                let filter = TaggedReceive {
                    source: Source::Any,
                    context: UNTAGGED,
                    match_bits: 0,
                    ignore_bits: u64::MAX,
                };
                let request = loop {
                    let least = abi::limits::EAGER_MAX as u32;
                    match self
                        .endpoint
                        .post_multi_recv(event.op, &filter, buffer, least)
                    {
                        Ok(request) => break request,
                        Err(refused) => buffer = self.after_refusal(line, refused)?,
                    }
                };
                self.played.multi_receives += 1;
                self.multi.push(request);
                Ok(())
            }
            Call::Complete { status, bytes, tag } => self.wait(event, status, bytes, tag),
        }
    }

    fn send(
        &mut self,
        event: &Event,
        send: &TaggedSend,
        id: MessageId,
        length: usize,
        inject: bool,
    ) -> Result<(), PlayError> {
        if inject {
            let mut bytes = vec![0; length];
            id.fill(&mut bytes);
            return self.post(event.line, |player| {
                player.endpoint.post_tagged_inject(event.op, send, &bytes)
            });
        }
        let mut buffer = self.pool.take(length)?;
        id.fill(&mut buffer);
        loop {
            match self.endpoint.post_tagged_send(event.op, send, buffer) {
                Ok(_) => return Ok(()),
                Err(refused) => buffer = self.after_refusal(event.line, refused)?,
            }
        }
    }

    /// Posts until there is room.
    fn post(
        &mut self,
        line: u64,
        mut post: impl FnMut(&Self) -> Result<(), PostError>,
    ) -> Result<(), PlayError> {
        while let Err(error) = post(self) {
            self.make_room(line, error)?;
        }
        Ok(())
    }

    fn after_refusal(&mut self, line: u64, refused: Refused) -> Result<Buffer, PlayError> {
        self.make_room(line, refused.error)?;
        Ok(refused.buffer)
    }

    /// Waits for what may cure a refusal, or says that nothing does.
    fn make_room(&mut self, line: u64, error: PostError) -> Result<(), PlayError> {
        match error {
            PostError::SendRingFull | PostError::ListRingFull => {
                let device = self.endpoint.device();
                match device.pause(&[], device.now() + RING_PAUSE) {
                    PauseResult::Closed | PauseResult::Unreachable => Err(PlayError::Stopped),
                    _ => Ok(()),
                }
            }
            PostError::CompletionQueueFull | PostError::InjectBusy => {
                self.keep_one(line, RING_PAUSE)
            }
            PostError::Transport(TransportError::Closed) => Err(PlayError::Stopped),
            error => Err(PlayError::Post { line, error }),
        }
    }

    /// Takes a completion, if one comes in time, and keeps it for the event that asks for it.
    ///
    /// Completions of injects are not shown by the library, so that room may come without one.
    fn keep_one(&mut self, line: u64, timeout: u64) -> Result<(), PlayError> {
        match self.queue.wait(timeout) {
            Ok(completion) => self.keep(line, completion),
            Err(WaitError::Timeout | WaitError::Interrupted) => self.check_events(line),
            Err(_) => Err(PlayError::Stopped),
        }
    }

    fn keep(&mut self, line: u64, completion: WorkCompletion) -> Result<(), PlayError> {
        // When the simulation is over, the library flushes what was outstanding.
        let device = self.endpoint.device();
        if completion.status == WcStatus::Flushed
            && device.pause(&[], device.now()) == PauseResult::Closed
        {
            return Err(PlayError::Stopped);
        }
        *self
            .played
            .completions
            .entry(completion.status.name())
            .or_default() += 1;
        self.played.end = self.now();
        match completion.kind {
            WcKind::Send if completion.status != WcStatus::Success && self.shared.goes_on => {
                self.ended(line, "send", Some(completion.status));
                self.kept.insert(completion.wr_id, completion);
                Ok(())
            }
            // Nothing waits for these: an inject that failed, and a cancel that came too late.
            WcKind::Send if completion.status != WcStatus::Success => Err(PlayError::Status {
                line,
                status: completion.status,
            }),
            WcKind::Cancel => Ok(()),
            _ => {
                self.kept.insert(completion.wr_id, completion);
                Ok(())
            }
        }
    }

    /// Notes an operation that ended otherwise than the application saw it end.
    fn ended(&mut self, line: u64, operation: &'static str, status: Option<WcStatus>) {
        self.played.ended.push(Ended {
            rank: self.rank,
            line,
            operation,
            status: status.map(WcStatus::name),
        });
    }

    /// How long the rank waits for a completion.
    const fn patience(&self) -> u64 {
        match self.shared.goes_on {
            true => PATIENCE_WITH_DEAD,
            false => PATIENCE,
        }
    }

    /// An event says that something can't go on.
    fn check_events(&mut self, line: u64) -> Result<(), PlayError> {
        match self.endpoint.poll_event() {
            Ok(None) => Ok(()),
            // What depends on the pair completes, and says so.
            Ok(Some(event))
                if self.shared.goes_on
                    && matches!(event.cause, Cause::LinkError | Cause::PeerFailed) =>
            {
                Ok(())
            }
            Ok(Some(event)) => Err(PlayError::Event {
                line,
                cause: event.cause,
            }),
            Err(_) => Err(PlayError::Stopped),
        }
    }

    fn wait(&mut self, event: &Event, status: i64, bytes: u64, tag: u64) -> Result<(), PlayError> {
        let deadline = self.now() + self.patience();
        let completion = loop {
            if let Some(completion) = self.kept.remove(&event.op) {
                break completion;
            }
            let now = self.now();
            if now >= deadline && self.shared.goes_on {
                self.ended(event.line, "operation", None);
                return Ok(());
            }
            if now >= deadline {
                return Err(PlayError::Silence { line: event.line });
            }
            self.keep_one(event.line, deadline - now)?;
        };
        match completion.kind {
            WcKind::Receive => self.received(event, status, bytes, tag, completion),
            // Whether a message has come yet depends on the schedule; both are answers.
            WcKind::Probe => match (completion.status, status) {
                (WcStatus::NoMessage | WcStatus::Success, FI_ENOMSG | 0) => Ok(()),
                (status, _) => Err(PlayError::Status {
                    line: event.line,
                    status,
                }),
            },
            WcKind::Send
            | WcKind::Put
            | WcKind::Get
            | WcKind::Cancel
            | WcKind::Claim
            | WcKind::Discard => {
                if let Some(buffer) = completion.buffer {
                    self.pool.give(buffer);
                }
                Ok(())
            }
        }
    }

    fn received(
        &mut self,
        event: &Event,
        status: i64,
        bytes: u64,
        tag: u64,
        completion: WorkCompletion,
    ) -> Result<(), PlayError> {
        let Some((position, _)) = self.posted.remove(&event.op) else {
            return Err(PlayError::Status {
                line: event.line,
                status: completion.status,
            });
        };
        let receive = &mut self.played.receives[position];
        let line = receive.line;
        match completion.status {
            WcStatus::Success | WcStatus::Truncated => {}
            // Whether a cancel is in time depends on the schedule.
            WcStatus::Cancelled => {
                receive.outcome = Outcome::Cancelled;
                if let Some(buffer) = completion.buffer {
                    self.pool.give(buffer);
                }
                return Ok(());
            }
            status if self.shared.goes_on => {
                self.ended(event.line, "receive", Some(status));
                return Ok(());
            }
            status => {
                return Err(PlayError::Status {
                    line: event.line,
                    status,
                });
            }
        }
        let wrong = |reason: String| PlayError::Wrong { line, reason };
        let source = self.pairs.iter().position(|pair| *pair == completion.pair);
        let source = source.filter(|_| completion.pair.is_some());
        let source = source.ok_or_else(|| wrong("the message has no source".into()))?;
        let id = MessageId {
            source,
            destination: self.rank,
            number: completion.immediate,
        };
        receive.outcome = Outcome::Took(id);
        let criteria = receive.criteria;
        if !criteria.accepts(source, completion.match_bits) {
            let tag = completion.match_bits;
            return Err(wrong(format!(
                "took a message of rank {source} with tag {tag:x}"
            )));
        }
        // An exact receive must take the recorded message, or one that is like it in tag and length; a
        // wildcard may take another one under another schedule.
        if criteria.source.is_some() && status != FI_ECANCELED {
            let expected = self.clip(bytes, false) as u64;
            if (completion.match_bits, completion.length) != (tag, expected) {
                return Err(wrong(format!(
                    "tag {:x} and length {} where tag {tag:x} and length {expected} were recorded",
                    completion.match_bits, completion.length
                )));
            }
        }
        if let Some((at, byte)) = id.first_wrong(completion.received()) {
            return Err(wrong(format!(
                "byte {at} of message {} from rank {source} is {byte:#04x}",
                id.number
            )));
        }
        self.played.messages += 1;
        let bytes = completion.received().len() as u64;
        self.played.bytes += bytes;
        self.traffic[source].received += 1;
        self.traffic[source].received_bytes += bytes;
        self.shared.messages.fetch_add(1, Ordering::Relaxed);
        if let Some(buffer) = completion.buffer {
            self.pool.give(buffer);
        }
        Ok(())
    }

    /// Nothing may be left over: every send safe at its destination, every event quiet.
    fn finish(&mut self, wireup: &dyn Wireup) -> Result<(), PlayError> {
        let line = 0;
        for request in std::mem::take(&mut self.multi) {
            self.post(line, |player| {
                player.endpoint.cancel(u64::MAX, request).map(drop)
            })?;
        }
        let deadline = self.now() + self.patience();
        while self.queue.outstanding() > self.posted.len() {
            if self.now() >= deadline {
                if self.shared.goes_on {
                    break;
                }
                return Err(PlayError::Silence { line });
            }
            self.keep_one(line, FINISH_PAUSE)?;
        }
        self.check_events(line)?;
        wireup.barrier()?;
        if self.shared.ask {
            self.played.asked = Some(self.ask()?);
        }
        Ok(())
    }

    /// Reads the card's counters and the state of every pair.
    fn ask(&self) -> Result<Asked, PlayError> {
        // The last acknowledgements are on their way.
        let device = self.endpoint.device();
        if device.pause(&[], device.now() + SETTLING) != PauseResult::Deadline {
            return Err(PlayError::Stopped);
        }
        let mut asked = Asked::counters(self.endpoint.device())?;
        for (peer, (pair, traffic)) in self.pairs.iter().zip(&self.traffic).enumerate() {
            if let Some(pair) = *pair {
                let status = self.endpoint.query_pair(pair)?;
                asked.pairs.push(PairStats::new(peer, &status, *traffic));
            }
        }
        Ok(asked)
    }
}

/// Context of untagged receives, which no tagged message has.
const UNTAGGED: u16 = 1;
/// Cycles to wait for the card to fetch on, or for an inject to be acknowledged.
const RING_PAUSE: u64 = 200;
/// Cycles in which what is under way at the end comes to rest.
const SETTLING: u64 = 10_000;
/// Cycles between two looks at the last sends.
const FINISH_PAUSE: u64 = 1000;

/// Registered memory, cut into buffers of just the lengths that are asked for, so that they lie at any
/// alignment.
struct Pool {
    pd: ProtectionDomain,
    free: HashMap<usize, Vec<Buffer>>,
    rest: Buffer,
}

/// Bytes registered at a time.
const POOL_BYTES: usize = 1 << 20;

impl Pool {
    fn new(pd: ProtectionDomain) -> Self {
        Self {
            pd,
            free: HashMap::new(),
            rest: Buffer::empty(),
        }
    }

    fn take(&mut self, length: usize) -> Result<Buffer, PlayError> {
        if length == 0 {
            return Ok(Buffer::empty());
        }
        if let Some(buffer) = self.free.get_mut(&length).and_then(Vec::pop) {
            return Ok(buffer);
        }
        if self.rest.len() < length {
            // Buffers keep their region registered.
            let (_, whole) = self.pd.reg_mr(POOL_BYTES.max(length), Access::ReadWrite)?;
            self.rest = whole;
        }
        Ok(self.rest.split_to(length))
    }

    fn give(&mut self, buffer: Buffer) {
        if !buffer.is_empty() {
            self.free.entry(buffer.len()).or_default().push(buffer);
        }
    }
}
