//! One rank of a soak: it exchanges numbered messages with all others, puts into their windows and gets from them, sends them signals, checks every byte and every
//! order, and survives peers that fail.
//!
//! ```text
//!  message k of a pair: length, tag and bytes follow from source, destination and k
//!  posts ──► outstanding ──► completion: once for each, with a status that its pair allows
//!               receives in the order posted ──► numbers of each pair: 0, 1, 2, … and none is missing
//! ```

mod remote;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use host_driver::transport::{PauseResult, Transport, TransportError};
use host_driver::{
    Access, Buffer, Cause, Causes, CommandError, CompletionQueue, Device, Endpoint, OpenError,
    Pair, PairAddress, PostError, ProtectionDomain, Refused, Request, Source, TaggedReceive,
    TaggedSend, WaitError, WatchOptions, WcKind, WcStatus, Window, WorkCompletion,
};

use super::mix;
use crate::payload::MessageId;
use crate::replay::{PlayError, Wireup};
use remote::Remote;

/// Cycles without a completion after which the rank is stuck: several times what a card takes to give a silent peer up.
pub const PATIENCE: u64 = 2_000_000;
/// Cycles after which a rank that waits looks whether it is stuck.
const LOOK_AFTER: u64 = 500_000;
/// Sends of a rank that may be outstanding to each peer.
const SENDS: usize = 6;
/// Receives of a rank that may be posted for each peer.
const RECEIVES: usize = 6;
/// Entries of the completion queue.
const ENTRIES: usize = 512;
/// Cycles after which a rank looks again that has nothing outstanding, and not all done.
const IDLE: u64 = 2_000;
/// Cycles to wait for room in a ring.
const RING_PAUSE: u64 = 200;

/// Why a rank stopped.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The simulation is over, or the card has lost its power.
    #[error("stopped")]
    Stopped,
    /// Something happened that must not.
    #[error("{0}")]
    Wrong(String),
}

impl From<CommandError> for Failure {
    fn from(error: CommandError) -> Self {
        match error {
            CommandError::Transport(TransportError::Closed) => Self::Stopped,
            other => Self::Wrong(other.to_string()),
        }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Command(error) => error.into(),
            other => Self::Wrong(other.to_string()),
        }
    }
}

impl From<PlayError> for Failure {
    fn from(error: PlayError) -> Self {
        match error {
            PlayError::Stopped => Self::Stopped,
            other => Self::Wrong(other.to_string()),
        }
    }
}

fn wrong<T>(what: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Wrong(what.into()))
}

/// How a rank of a soak behaves.
#[derive(Clone, Debug)]
pub struct Habits {
    /// Seed of lengths and pauses.
    pub seed: u64,
    /// Longest message in bytes.
    pub longest: usize,
    /// Credits that it grants each peer.
    pub credits: u16,
    /// It takes messages from anybody, and otherwise posts receives for each peer.
    pub any_source: bool,
    /// Now and then it does nothing for up to so many cycles.
    pub dawdle: u64,
    /// How its card watches its peers: by that alone a rank that only receives learns that one has failed.
    pub watch: WatchOptions,
    /// Peers that may fail. Others must not.
    pub may_fail: Vec<bool>,
}

/// What a rank has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Messages received and checked.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Puts that succeeded,
    pub puts: u64,
    /// their bytes,
    pub put_bytes: u64,
    /// gets that succeeded and were checked,
    pub gets: u64,
    /// their bytes,
    pub get_bytes: u64,
    /// and signals that came and were checked.
    pub signals: u64,
    /// Completions by kind and status.
    pub completions: BTreeMap<(&'static str, &'static str), u64>,
    /// Peers that were found to have failed.
    pub failed: Vec<usize>,
    /// Cycle of the last completion of an operation that depended on a peer that failed.
    pub last_failure: Option<u64>,
}

impl Tally {
    /// Adds what another has done.
    pub fn add(&mut self, other: &Self) {
        self.messages += other.messages;
        self.bytes += other.bytes;
        self.puts += other.puts;
        self.put_bytes += other.put_bytes;
        self.gets += other.gets;
        self.get_bytes += other.get_bytes;
        self.signals += other.signals;
        for (&key, count) in &other.completions {
            *self.completions.entry(key).or_default() += count;
        }
        self.failed.extend(&other.failed);
        self.last_failure = self.last_failure.max(other.last_failure);
    }
}

/// How much a rank does for another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Goal {
    /// Messages that it sends.
    pub messages: u64,
    /// Puts and gets.
    pub accesses: u64,
    /// Signals.
    pub signals: u64,
}

/// What an outstanding request is.
enum Asked {
    Send {
        peer: usize,
    },
    Receive {
        /// Only from this peer.
        peer: Option<usize>,
        /// Its place in the order posted.
        at: u64,
        request: Request,
    },
    /// Of the receive with this name.
    Cancel(u64),
    /// A put or a get: which one of its connection.
    Access {
        peer: usize,
        number: u64,
    },
}

struct Peer {
    pair: Option<Pair>,
    /// Messages that will be sent to it and received from it.
    goal: u64,
    /// Those that have been sent, that have come, and that are known to have come in order.
    sent: u64,
    came: u64,
    received: u64,
    /// Receives posted for it alone.
    posted: u64,
    sends: usize,
    receives: usize,
    failed: bool,
    remote: Remote,
}

/// A rank.
pub struct Worker {
    rank: usize,
    habits: Habits,
    endpoint: Endpoint,
    queue: CompletionQueue,
    _pd: ProtectionDomain,
    /// What peers put into and get from, each its part.
    window: Window,
    peers: Vec<Peer>,
    slots: Vec<Buffer>,
    /// For puts and gets.
    long_slots: Vec<Buffer>,
    /// What an outstanding request doesn't need of its slot.
    rests: HashMap<u64, Buffer>,
    asked: HashMap<u64, Asked>,
    next: u64,
    /// Receives posted so far, and how many of them have been looked at.
    posted: u64,
    settled: u64,
    /// Receives from anybody that are outstanding.
    receives: u64,
    /// Those that have completed and not been looked at, by place: who sent which, or nothing.
    taken: BTreeMap<u64, Option<(usize, u64)>>,
    /// Cycle of the last completion or signal.
    last: u64,
    random: u64,
    messages: Arc<AtomicU64>,
    tally: Tally,
}

impl Worker {
    /// Opens the card and connects to all other ranks: all must call it. `messages` counts what is received.
    ///
    /// # Errors
    /// If the card can't be opened.
    pub fn open(
        transport: Arc<dyn Transport>,
        wireup: &dyn Wireup,
        rank: usize,
        ranks: usize,
        habits: Habits,
        messages: Arc<AtomicU64>,
    ) -> Result<Self, Failure> {
        let mut worker = Self::alone(transport, rank, ranks, habits, messages)?;
        let all: Vec<usize> = (0..ranks).collect();
        worker.connect(wireup, &all)?;
        Ok(worker)
    }

    /// Opens the card, and connects to nobody yet.
    ///
    /// # Errors
    /// If the card can't be opened.
    pub fn alone(
        transport: Arc<dyn Transport>,
        rank: usize,
        ranks: usize,
        habits: Habits,
        messages: Arc<AtomicU64>,
    ) -> Result<Self, Failure> {
        let device = Device::open(transport)?;
        let pd = device.alloc_pd()?;
        let endpoint = pd.endpoint().completion_queue(ENTRIES).open()?;
        // Every event is worked off as it comes.
        endpoint.set_wait_interrupts(Causes::all());
        endpoint.watch_peers(habits.watch)?;
        let slots = (SENDS + 1 + RECEIVES) * ranks;
        let (_, mut memory) = pd.reg_mr(slots * habits.longest.max(1), Access::ReadWrite)?;
        let longest = habits.longest.max(1);
        let window = remote::window(&pd, ranks)?;
        let long_slots = remote::slots(&pd, ranks)?;
        let peer = |_| Peer {
            pair: None,
            goal: 0,
            sent: 0,
            came: 0,
            received: 0,
            posted: 0,
            sends: 0,
            receives: 0,
            failed: false,
            remote: Remote::default(),
        };
        Ok(Self {
            queue: endpoint.completion_queue(),
            endpoint,
            _pd: pd,
            window,
            long_slots,
            peers: (0..ranks).map(peer).collect(),
            slots: (0..slots).map(|_| memory.split_to(longest)).collect(),
            rests: HashMap::new(),
            asked: HashMap::new(),
            next: 0,
            posted: 0,
            settled: 0,
            receives: 0,
            taken: BTreeMap::new(),
            last: 0,
            random: mix(habits.seed ^ mix(rank as u64)),
            rank,
            habits,
            messages,
            tally: Tally::default(),
        })
    }

    /// Connects to these ranks, with which there is no pair or one that has failed, and grants each its part of the window. Returns when all ranks have their keys.
    /// All ranks must call it, each with those that name it.
    ///
    /// # Errors
    /// If the firmware refuses.
    pub fn connect(&mut self, wireup: &dyn Wireup, ranks: &[usize]) -> Result<(), Failure> {
        let mut addresses = Vec::new();
        let others = ranks.iter().copied();
        let others: Vec<usize> = others.filter(|&rank| rank != self.rank).collect();
        for &rank in &others {
            if let Some(pair) = self.peers[rank].pair.take() {
                self.endpoint.close_pair(pair)?;
            }
        }
        // What was raised of those that are closed now isn't taken for an event of the next.
        self.events()?;
        for &rank in &others {
            let (pair, address) = self.endpoint.open_pair(self.habits.credits)?;
            let peer = &mut self.peers[rank];
            peer.pair = Some(pair);
            (peer.goal, peer.sent, peer.posted) = (0, 0, 0);
            (peer.came, peer.received) = (0, 0);
            peer.failed = false;
            peer.remote = Remote::default();
            addresses.push((rank, address.to_bytes()));
        }
        for (rank, bytes) in wireup.exchange(&addresses)? {
            let address = PairAddress::from_bytes(&bytes);
            let (Some(address), Some(pair)) = (address, self.peers[rank].pair) else {
                return wrong(format!("rank {rank} sent an address that is of no use"));
            };
            self.endpoint.connect_pair(pair, &address)?;
        }
        self.exchange_keys(wireup, &others)?;
        wireup.barrier()?;
        Ok(())
    }

    /// From now on no peer may fail.
    pub fn nobody_fails(&mut self) {
        self.habits.may_fail.clear();
    }

    fn may_fail(&self, rank: usize) -> bool {
        self.habits.may_fail.get(rank).copied().unwrap_or(false)
    }

    /// What has been done.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    fn now(&self) -> u64 {
        self.endpoint.device().now()
    }

    /// Does nothing until a cycle.
    ///
    /// # Errors
    /// [`Failure::Stopped`].
    pub fn pause_until(&self, cycle: u64) -> Result<(), Failure> {
        match self.endpoint.device().pause(&[], cycle) {
            PauseResult::Closed | PauseResult::Unreachable => Err(Failure::Stopped),
            _ => Ok(()),
        }
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.random = mix(self.random);
        self.random % below.max(1)
    }

    fn message(&self, source: usize, destination: usize, number: u64) -> (MessageId, u64, usize) {
        let id = MessageId {
            source,
            destination,
            number,
        };
        let pair = (source as u64) << 32 | destination as u64;
        let bits = mix(self.habits.seed ^ mix(pair ^ mix(number)));
        // Few are long.
        let most = if bits.is_multiple_of(8) {
            self.habits.longest
        } else {
            self.habits.longest.min(96)
        };
        (id, bits >> 32, (bits >> 3) as usize % (most + 1))
    }

    /// Does so much more for each rank, which does as much for this one, unless it fails. Returns when all that was posted has completed.
    ///
    /// # Errors
    /// What must not happen and did.
    pub fn run(&mut self, goals: &[Goal]) -> Result<(), Failure> {
        for (peer, more) in self.peers.iter_mut().zip(goals) {
            peer.goal += more.messages;
            peer.remote.accesses += more.accesses;
            peer.remote.signals += more.signals;
        }
        self.last = self.now();
        loop {
            self.post()?;
            if self.asked.is_empty() && !self.has_more_of_remote() {
                return self.settle(true);
            }
            if self.only_waits_for_nothing() {
                self.cancel_receives()?;
            }
            let now = self.now();
            let look_after = match self.asked.is_empty() || self.has_signals_to_send() {
                true => IDLE,
                false => LOOK_AFTER,
            };
            match self.queue.wait(look_after) {
                Ok(completion) => {
                    self.last = self.now();
                    self.take(completion)?;
                    while let Some(completion) = self.queue.poll() {
                        self.take(completion)?;
                    }
                    self.settle(false)?;
                }
                Err(WaitError::Interrupted) => {}
                Err(WaitError::Timeout) => {
                    self.events()?;
                    if now > self.last + PATIENCE {
                        return wrong(self.waits(now - self.last));
                    }
                }
                Err(WaitError::Transport(TransportError::Closed)) => return Err(Failure::Stopped),
                Err(error) => return wrong(error.to_string()),
            }
            // Completions that keep coming let no event interrupt, and signals fill the event queue.
            self.events()?;
            if self.habits.dawdle > 0 && self.draw(64) == 0 {
                let cycles = self.draw(self.habits.dawdle);
                self.pause_until(self.now() + cycles)?;
            }
        }
    }

    fn waits(&self, cycles: u64) -> String {
        let mut what: Vec<String> = self
            .asked
            .values()
            .map(|asked| match asked {
                Asked::Send { peer } => format!("a send to {peer}"),
                Asked::Receive {
                    peer: Some(peer), ..
                } => format!("a receive from {peer}"),
                Asked::Receive { peer: None, .. } => "a receive from anybody".to_owned(),
                Asked::Cancel(_) => "a cancel".to_owned(),
                Asked::Access { peer, number } => format!("access {number} to {peer}"),
            })
            .collect();
        what.extend(self.waits_for_remote());
        what.sort_unstable();
        format!("nothing has completed for {cycles} cycles: {what:?}")
    }

    fn alive(&self) -> impl Iterator<Item = (usize, &Peer)> {
        let peers = self.peers.iter().enumerate();
        peers.filter(|(_, peer)| !peer.failed && peer.pair.is_some())
    }

    /// Messages that peers still owe, of those that are alive.
    fn owed(&self) -> u64 {
        self.alive().map(|(_, peer)| peer.goal - peer.came).sum()
    }

    /// Whether all that is outstanding is receives that take from anybody, and nobody owes a message.
    fn only_waits_for_nothing(&self) -> bool {
        let mut all = self.asked.values();
        self.owed() == 0 && all.all(|asked| matches!(asked, Asked::Receive { peer: None, .. }))
    }

    fn cancel_receives(&mut self) -> Result<(), Failure> {
        let mut receives: Vec<(u64, Request)> = self
            .asked
            .iter()
            .filter_map(|(name, asked)| match asked {
                Asked::Receive { request, .. } => Some((*name, *request)),
                _ => None,
            })
            .collect();
        receives.sort_unstable_by_key(|(name, _)| *name);
        for (receive, request) in receives {
            loop {
                let name = self.next;
                match self.endpoint.cancel(name, request) {
                    Ok(_) => {
                        self.next += 1;
                        self.asked.insert(name, Asked::Cancel(receive));
                        break;
                    }
                    Err(PostError::NothingToCancel) => break,
                    Err(error) => {
                        if !self.cures(&error)? {
                            return wrong(format!("a cancel: {error}"));
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Posts all that there is room for.
    fn post(&mut self) -> Result<(), Failure> {
        while self.habits.any_source
            && self.receives < self.owed().min((RECEIVES * self.peers.len()) as u64)
            && self.receive(None)?
        {}
        for at in 0..self.peers.len() {
            // Who begins differs from rank to rank.
            let rank = (at + self.rank) % self.peers.len();
            let is_alive = |peer: &Peer| !peer.failed && peer.pair.is_some();
            while !self.habits.any_source
                && is_alive(&self.peers[rank])
                && self.peers[rank].posted < self.peers[rank].goal
                && self.peers[rank].receives < RECEIVES
                && self.receive(Some(rank))?
            {}
            while is_alive(&self.peers[rank])
                && self.peers[rank].sent < self.peers[rank].goal
                && self.peers[rank].sends < SENDS
                && self.send(rank, self.peers[rank].sent)?
            {
                self.peers[rank].sent += 1;
            }
            if is_alive(&self.peers[rank]) {
                self.post_remote(rank)?;
            }
        }
        Ok(())
    }

    /// Posts the next receive for a rank, or one for anybody. False if there is no room.
    fn receive(&mut self, only: Option<usize>) -> Result<bool, Failure> {
        let mut filter = TaggedReceive {
            source: Source::Any,
            context: 0,
            match_bits: 0,
            ignore_bits: u64::MAX,
        };
        if let Some(rank) = only {
            let Some(pair) = self.peers[rank].pair else {
                return Ok(false);
            };
            let (_, tag, _) = self.message(rank, self.rank, self.peers[rank].posted);
            filter.source = Source::Pair(pair);
            (filter.match_bits, filter.ignore_bits) = (tag, 0);
        }
        let Some(slot) = self.slots.pop() else {
            return Ok(false);
        };
        let name = self.next;
        match self.endpoint.post_tagged_recv(name, &filter, slot) {
            Ok(request) => {
                self.next += 1;
                let at = self.posted;
                self.posted += 1;
                let asked = Asked::Receive {
                    peer: only,
                    at,
                    request,
                };
                self.asked.insert(name, asked);
                match only.map(|rank| &mut self.peers[rank]) {
                    None => self.receives += 1,
                    Some(peer) => {
                        peer.posted += 1;
                        peer.receives += 1;
                    }
                }
                Ok(true)
            }
            Err(Refused { error, buffer }) => {
                self.slots.push(buffer);
                self.refused(error)
            }
        }
    }

    /// Sends a rank a message. False if there is no room.
    fn send(&mut self, rank: usize, number: u64) -> Result<bool, Failure> {
        let (id, tag, length) = self.message(self.rank, rank, number);
        let (Some(pair), Some(mut rest)) = (self.peers[rank].pair, self.slots.pop()) else {
            return Ok(false);
        };
        let mut buffer = rest.split_to(length);
        id.fill(&mut buffer);
        let send = TaggedSend {
            pair,
            context: 0,
            match_bits: tag,
            immediate: number,
        };
        let name = self.next;
        match self.endpoint.post_tagged_send(name, &send, buffer) {
            Ok(_) => {
                self.next += 1;
                self.rests.insert(name, rest);
                self.asked.insert(name, Asked::Send { peer: rank });
                self.peers[rank].sends += 1;
                Ok(true)
            }
            Err(Refused { error, mut buffer }) => {
                self.join(&mut buffer, rest)?;
                self.slots.push(buffer);
                self.refused(error)
            }
        }
    }

    fn join(&self, buffer: &mut Buffer, rest: Buffer) -> Result<(), Failure> {
        match buffer.join(rest) {
            Ok(()) => Ok(()),
            Err(_) => wrong("a request's buffer isn't the one that it was posted with"),
        }
    }

    /// Nothing was posted: for want of room, or something is wrong.
    fn refused(&mut self, error: PostError) -> Result<bool, Failure> {
        match error {
            PostError::CompletionQueueFull | PostError::PairBusy => Ok(false),
            error if self.cures(&error)? => Ok(false),
            error => wrong(format!("a post: {error}")),
        }
    }

    /// Whether waiting cures a refusal; waits.
    fn cures(&self, error: &PostError) -> Result<bool, Failure> {
        match error {
            PostError::SendRingFull | PostError::ListRingFull => {
                self.pause_until(self.now() + RING_PAUSE).map(|()| true)
            }
            PostError::Transport(TransportError::Closed) => Err(Failure::Stopped),
            _ => Ok(false),
        }
    }

    fn events(&mut self) -> Result<(), Failure> {
        loop {
            match self.endpoint.poll_event() {
                Ok(None) => return Ok(()),
                Ok(Some(event)) => {
                    match self.peer(event.pair) {
                        Some(rank) if event.cause == Cause::Signal => {
                            self.signalled(rank, event.info)?;
                        }
                        Some(rank) => self.fails(rank, &event.cause)?,
                        // The pair of one that has failed is closed already.
                        None if is_end(event.cause) || event.cause == Cause::Signal => {}
                        None => {
                            return wrong(format!("the card raised {} of no pair", event.cause));
                        }
                    }
                }
                Err(TransportError::Closed) => return Err(Failure::Stopped),
                Err(error) => return wrong(error.to_string()),
            }
        }
    }

    fn peer(&self, pair: Option<Pair>) -> Option<usize> {
        pair?;
        self.peers.iter().position(|peer| peer.pair == pair)
    }

    /// A peer has failed.
    fn fails(&mut self, rank: usize, why: &dyn std::fmt::Display) -> Result<(), Failure> {
        if !self.may_fail(rank) {
            return wrong(format!(
                "rank {rank} is alive, and its pair ends with {why}"
            ));
        }
        self.tally.last_failure = Some(self.now());
        if !std::mem::replace(&mut self.peers[rank].failed, true) {
            self.tally.failed.push(rank);
            self.keep_part(rank);
        }
        Ok(())
    }

    fn take(&mut self, completion: WorkCompletion) -> Result<(), Failure> {
        let WorkCompletion {
            wr_id,
            kind,
            status,
            ..
        } = completion;
        // When the card is gone, the library flushes what was outstanding.
        let device = self.endpoint.device();
        let is_gone = || device.pause(&[], device.now()) == PauseResult::Closed;
        if status == WcStatus::Flushed && is_gone() {
            return Err(Failure::Stopped);
        }
        let Some(asked) = self.asked.remove(&wr_id) else {
            return wrong(format!("request {wr_id} completes twice, with {status}"));
        };
        let count = self
            .tally
            .completions
            .entry((kind_name(kind), status.name()));
        *count.or_default() += 1;
        match asked {
            Asked::Send { peer } => {
                self.peers[peer].sends -= 1;
                let rest = self.rests.remove(&wr_id);
                let (Some(mut buffer), Some(rest)) = (completion.buffer, rest) else {
                    return wrong("a send completes without its buffer");
                };
                self.join(&mut buffer, rest)?;
                self.slots.push(buffer);
                match status {
                    WcStatus::Success => Ok(()),
                    WcStatus::PeerFailed | WcStatus::LinkError | WcStatus::PeerClosed => {
                        self.fails(peer, &status)
                    }
                    other => wrong(format!("a send to {peer} ends with {other}")),
                }
            }
            Asked::Receive { peer, at, .. } => {
                match peer {
                    Some(peer) => self.peers[peer].receives -= 1,
                    None => self.receives -= 1,
                }
                let told = match (status, peer) {
                    (WcStatus::Success, _) => Some(self.received(&completion)?),
                    (WcStatus::Cancelled, None) => None,
                    (
                        WcStatus::PeerFailed | WcStatus::LinkError | WcStatus::PeerClosed,
                        Some(peer),
                    ) => {
                        self.fails(peer, &status)?;
                        None
                    }
                    (other, peer) => {
                        return wrong(format!("a receive from {peer:?} ends with {other}"));
                    }
                };
                let Some(buffer) = completion.buffer else {
                    return wrong("a receive completes without its buffer");
                };
                self.slots.push(buffer);
                self.taken.insert(at, told);
                if status == WcStatus::Cancelled {
                    // The cancel of a receive that was in time doesn't complete.
                    let of = |asked: &Asked| matches!(asked, Asked::Cancel(of) if *of == wr_id);
                    self.asked.retain(|_, asked| !of(asked));
                }
                Ok(())
            }
            Asked::Access { peer, number } => self.accessed(peer, number, completion),
            Asked::Cancel(_) if status == WcStatus::TooLate => Ok(()),
            Asked::Cancel(_) => wrong(format!("a cancel ends with {status}")),
        }
    }

    /// Checks a message.
    fn received(&mut self, completion: &WorkCompletion) -> Result<(usize, u64), Failure> {
        let Some(source) = self.peer(completion.pair) else {
            return wrong("a message has no source");
        };
        let number = completion.immediate;
        let (id, tag, length) = self.message(source, self.rank, number);
        let told = (completion.match_bits, completion.length);
        if told != (tag, length as u64) {
            return wrong(format!(
                "{id:?} has tag {:x} and length {} in place of {tag:x} and {length}",
                told.0, told.1
            ));
        }
        if completion.received().len() != length {
            return wrong(format!("{id:?} has {} bytes", completion.received().len()));
        }
        if let Some((at, byte)) = id.first_wrong(completion.received()) {
            return wrong(format!("byte {at} of {id:?} is {byte:#04x}"));
        }
        self.peers[source].came += 1;
        self.tally.messages += 1;
        self.tally.bytes += length as u64;
        self.messages.fetch_add(1, Ordering::Relaxed);
        Ok((source, number))
    }

    /// Looks at the receives in the order in which they were posted: those of each pair took its messages in the order sent, none twice and none left out.
    fn settle(&mut self, all: bool) -> Result<(), Failure> {
        while let Some(told) = self.taken.remove(&self.settled) {
            self.settled += 1;
            let Some((source, number)) = told else {
                continue;
            };
            let expected = self.peers[source].received;
            if number != expected {
                return wrong(format!(
                    "message {number} of rank {source} where message {expected} was due"
                ));
            }
            self.peers[source].received += 1;
        }
        if !all {
            return Ok(());
        }
        if self.settled != self.posted {
            return wrong("a receive never completed");
        }
        if self.queue.strays() > 0 || self.queue.outstanding() > 0 {
            return wrong("completions that nobody asked for, or none where one was asked for");
        }
        for (rank, peer) in self.alive() {
            if peer.received != peer.goal || peer.sent != peer.goal {
                return wrong(format!(
                    "{} of {} messages of rank {rank} came",
                    peer.received, peer.goal
                ));
            }
        }
        Ok(())
    }

    /// Waits until all peers that may fail are found to have failed: what they were putting when they died, this rank knows by nothing else.
    ///
    /// # Errors
    /// If one isn't in bounded time.
    pub fn await_failures(&mut self) -> Result<(), Failure> {
        let deadline = self.now() + PATIENCE;
        loop {
            self.events()?;
            let untold = |&rank: &usize| {
                rank != self.rank && self.may_fail(rank) && !self.peers[rank].failed
            };
            let Some(rank) = (0..self.peers.len()).find(untold) else {
                return Ok(());
            };
            if self.now() > deadline {
                return wrong(format!("rank {rank} has failed, and nobody tells so"));
            }
            self.pause_until(self.now() + IDLE)?;
        }
    }

    /// Waits until all credits of the pairs with peers that may not fail are back. Over links that lose nothing they are in bounded time.
    ///
    /// # Errors
    /// If they aren't.
    pub fn await_credits(&self, credits: u32) -> Result<(), Failure> {
        let deadline = self.now() + PATIENCE;
        for (rank, peer) in self.alive().filter(|&(rank, _)| !self.may_fail(rank)) {
            let Some(pair) = peer.pair else { continue };
            loop {
                let status = self.endpoint.query_pair(pair)?;
                let told = (status.available, status.unacknowledged, status.waiting);
                if told == (credits, 0, 0) {
                    break;
                }
                if self.now() > deadline {
                    return wrong(format!(
                        "rank {rank}: {told:?} credits, unacknowledged and waiting, in place of {credits}, 0 and 0"
                    ));
                }
                self.pause_until(self.now() + 1000)?;
            }
        }
        Ok(())
    }
}

/// Whether an event says that a pair has ended.
const fn is_end(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::LinkError | Cause::PeerFailed | Cause::PeerClosed
    )
}

fn kind_name(kind: WcKind) -> &'static str {
    match kind {
        WcKind::Send => "send",
        WcKind::Put => "put",
        WcKind::Get => "get",
        WcKind::Receive => "receive",
        WcKind::Cancel => "cancel",
        WcKind::Probe => "probe",
        WcKind::Claim => "claim",
        WcKind::Discard => "discard",
    }
}
