//! One rank of a test: a host with the library, an endpoint, and a pair to every other rank.

use host_driver::transport::PauseResult;
use host_driver::{
    Access, AsyncEvent, Buffer, Causes, CompletionQueue, Counter, Device, DeviceOptions, Endpoint,
    Pair, PairAddress, PairCounter, PairStatus, PeerRefusal, PostError, ProtectionDomain, Request,
    Source, TaggedReceive, TaggedSend, WaitError, WcKind, WcStatus, WorkCompletion,
};
use posthorn::payload::MessageId;

use crate::cards::{Host, Told};

/// Cycles after which a test gives a completion up. A message between idle cards takes about a thousand.
pub const PATIENCE: u64 = 200_000;
/// Bytes of registered memory.
const MEMORY: usize = 1 << 18;

/// Sizes of a [`Side`].
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Envelopes granted to each peer.
    pub credits: u16,
    /// Also a pair with itself.
    pub to_self: bool,
    /// How patient the library is.
    pub device: DeviceOptions,
}

impl Setup {
    /// So many envelopes for each peer, and no pair with itself.
    pub const fn with_credits(credits: u16) -> Self {
        Self {
            credits,
            to_self: false,
            device: DeviceOptions::DEFAULT,
        }
    }
}

impl Default for Setup {
    fn default() -> Self {
        Self::with_credits(8)
    }
}

/// A rank.
pub struct Side {
    /// The thread that it runs in.
    pub host: Host,
    /// Its card.
    pub device: Device,
    /// Domain of its memory and endpoint.
    pub pd: ProtectionDomain,
    /// Its endpoint.
    pub endpoint: Endpoint,
    /// The endpoint's completion queue.
    pub cq: CompletionQueue,
    setup: Setup,
    pairs: Vec<Option<Pair>>,
    memory: Buffer,
    used: usize,
    events: Vec<AsyncEvent>,
    /// Those of refused accesses.
    refusals: Vec<AsyncEvent>,
    /// Receives posted since the last were discarded.
    receives: Vec<Request>,
}

/// Opens an endpoint for a [`Side`].
fn endpoint(pd: &ProtectionDomain) -> Endpoint {
    let endpoint = pd.endpoint().open().expect("an endpoint");
    endpoint.set_wait_interrupts(Causes::all());
    endpoint
}

impl Side {
    /// A rank that is connected to all others. All ranks must call it.
    pub fn open(host: &Host) -> Self {
        Self::with(host, Setup::default())
    }

    /// The same, with other sizes.
    pub fn with(host: &Host, setup: Setup) -> Self {
        let device = Device::open_with(host.transport(), setup.device).expect("a card");
        let pd = device.alloc_pd().expect("a domain");
        let endpoint = endpoint(&pd);
        let (_, memory) = pd.reg_mr(MEMORY, Access::ReadWrite).expect("a region");
        let mut side = Self {
            host: host.clone(),
            cq: endpoint.completion_queue(),
            device,
            pd,
            endpoint,
            setup,
            pairs: vec![None; host.cards()],
            memory,
            used: 0,
            events: Vec::new(),
            refusals: Vec::new(),
            receives: Vec::new(),
        };
        side.connect();
        side
    }

    /// Opens pairs with all ranks that there is no pair with and connects them. All ranks must call it.
    pub fn connect(&mut self) {
        const STRIDE: usize = PairAddress::BYTES + 1;
        let me = self.rank();
        let mut mine = vec![0; STRIDE * self.host.cards()];
        for rank in 0..self.host.cards() {
            if self.pairs[rank].is_some() || rank == me && !self.setup.to_self {
                continue;
            }
            let opened = self.endpoint.open_pair(self.setup.credits);
            let (pair, address) = opened.expect("a pair");
            self.pairs[rank] = Some(pair);
            mine[STRIDE * rank] = 1;
            mine[STRIDE * rank + 1..STRIDE * (rank + 1)].copy_from_slice(&address.to_bytes());
        }
        let all = self.host.all_gather(mine).expect("all ranks connect");
        for (rank, theirs) in all.iter().enumerate() {
            let entry = &theirs[STRIDE * me..STRIDE * (me + 1)];
            if entry[0] == 1 {
                let bytes = entry[1..].try_into().expect("an address's length");
                let address = PairAddress::from_bytes(bytes).expect("an address");
                let connected = self.endpoint.connect_pair(self.pair(rank), &address);
                connected.expect("connected");
            }
        }
        self.meet();
    }

    /// Forgets the pair with `rank` and closes it.
    pub fn disconnect(&mut self, rank: usize) {
        let pair = self.pairs[rank].take().expect("a pair with the rank");
        self.endpoint.close_pair(pair).expect("closed");
    }

    /// Closes the endpoint and opens a new one, without pairs. Returns the queue of the old one.
    pub fn reopen(&mut self) -> CompletionQueue {
        self.endpoint.close().expect("closed");
        self.endpoint = endpoint(&self.pd);
        self.pairs.fill(None);
        std::mem::replace(&mut self.cq, self.endpoint.completion_queue())
    }

    /// Number of the rank: its card.
    pub fn rank(&self) -> usize {
        self.host.card()
    }

    /// The pair with a rank.
    ///
    /// # Panics
    /// If there is none.
    pub fn pair(&self, rank: usize) -> Pair {
        self.pairs[rank].expect("a pair with the rank")
    }

    /// The rank that a pair is with.
    pub fn peer(&self, pair: Option<Pair>) -> Option<usize> {
        pair?;
        self.pairs.iter().position(|mine| *mine == pair)
    }

    /// A counter of the pair with a peer.
    pub fn count_of(&self, peer: usize, counter: PairCounter) -> u32 {
        let counters = self.endpoint.pair_counters(self.pair(peer));
        counters.expect("an open pair").get(counter)
    }

    /// State of the pair with a rank.
    pub fn pair_status(&self, rank: usize) -> PairStatus {
        self.endpoint
            .query_pair(self.pair(rank))
            .expect("an open pair")
    }

    /// Waits until all ranks have come here.
    pub fn meet(&self) {
        self.host.all_gather(Vec::new()).expect("all ranks meet");
    }

    /// Lets the card run.
    pub fn pause(&self, cycles: u64) {
        let deadline = self.device.now() + cycles;
        assert_eq!(self.device.pause(&[], deadline), PauseResult::Deadline);
    }

    /// A buffer whose first byte is `phase` bytes past a multiple of 64.
    pub fn buffer_at(&mut self, phase: usize, length: usize) -> Buffer {
        let skip = (phase + 64 - self.used % 64) % 64;
        self.used += skip + length;
        let _ = self.memory.split_to(skip);
        self.memory.split_to(length)
    }

    /// A buffer, wherever it lies.
    pub fn buffer(&mut self, length: usize) -> Buffer {
        self.used += length;
        self.memory.split_to(length)
    }

    /// A message of this rank.
    pub fn message(&self, to: usize, number: u64) -> MessageId {
        MessageId {
            source: self.rank(),
            destination: to,
            number,
        }
    }

    /// Where message `number` goes; its immediate data is the number.
    pub fn address(&self, to: usize, tag: u64, number: u64) -> TaggedSend {
        TaggedSend {
            pair: self.pair(to),
            context: 0,
            match_bits: tag,
            immediate: number,
        }
    }

    fn filled(&mut self, to: usize, tag: u64, number: u64, length: usize) -> (TaggedSend, Buffer) {
        let mut buffer = self.buffer(length);
        self.message(to, number).fill(&mut buffer);
        (self.address(to, tag, number), buffer)
    }

    /// Sends message `number` in a buffer of its own; the number is also the application's name of the request.
    pub fn send(&mut self, to: usize, tag: u64, number: u64, length: usize) -> Request {
        let (send, buffer) = self.filled(to, tag, number, length);
        let posted = self.endpoint.post_tagged_send(number, &send, buffer);
        posted.expect("posted")
    }

    /// The same by a ready send: it finds its receive posted, or fails.
    pub fn send_ready(&mut self, to: usize, tag: u64, number: u64, length: usize) -> Request {
        let (send, buffer) = self.filled(to, tag, number, length);
        let posted = self.endpoint.post_ready_send(number, &send, buffer);
        posted.expect("posted")
    }

    /// What a receive is to match: any source if `from` is none.
    pub fn filter(&self, from: Option<usize>, tag: u64, ignore: u64) -> TaggedReceive {
        TaggedReceive {
            source: from.map_or(Source::Any, |rank| Source::Pair(self.pair(rank))),
            context: 0,
            match_bits: tag,
            ignore_bits: ignore,
        }
    }

    /// Posts a receive of exactly `tag` into a buffer of its own. The card runs while its ring is full.
    pub fn receive(&mut self, wr_id: u64, from: Option<usize>, tag: u64, length: usize) -> Request {
        let mut buffer = self.buffer(length);
        let filter = self.filter(from, tag, 0);
        loop {
            match self.endpoint.post_tagged_recv(wr_id, &filter, buffer) {
                Ok(request) => {
                    self.receives.push(request);
                    return request;
                }
                Err(refused) => {
                    assert_eq!(refused.error, PostError::ListRingFull);
                    buffer = refused.buffer;
                    self.pause(100);
                }
            }
        }
    }

    /// Cancels every receive that is still posted, as the last thing under way.
    #[track_caller]
    pub fn discard_receives(&mut self) {
        for receive in std::mem::take(&mut self.receives) {
            match self.endpoint.cancel(u64::MAX, receive) {
                Ok(_) => assert_eq!(self.completion().status, WcStatus::Cancelled),
                Err(PostError::NothingToCancel) => {}
                Err(error) => panic!("rank {}: {error}", self.rank()),
            }
        }
        assert_eq!(self.cq.outstanding(), 0, "rank {}", self.rank());
    }

    /// The next completion. Events that come meanwhile are kept.
    #[track_caller]
    pub fn completion(&mut self) -> WorkCompletion {
        loop {
            match self.cq.wait(PATIENCE) {
                Ok(completion) => {
                    self.host
                        .note(Told::completion(&completion, self.peer(completion.pair)));
                    return completion;
                }
                Err(WaitError::Interrupted) => self.keep_events(),
                Err(error) => panic!("rank {}: no completion: {error}", self.rank()),
            }
        }
    }

    /// The next completion, which must be that a receive has been cancelled.
    #[track_caller]
    pub fn cancelled(&mut self, wr_id: u64) -> WorkCompletion {
        let cancelled = self.completion();
        assert_eq!(
            (cancelled.wr_id, cancelled.kind, cancelled.status),
            (wr_id, WcKind::Receive, WcStatus::Cancelled)
        );
        cancelled
    }

    /// The next completions, with the application's names and statuses.
    #[track_caller]
    pub fn statuses(&mut self, count: usize) -> Vec<(u64, WcStatus)> {
        (0..count)
            .map(|_| {
                let completion = self.completion();
                (completion.wr_id, completion.status)
            })
            .collect()
    }

    /// Nothing completes for so many cycles.
    #[track_caller]
    pub fn assert_silent(&mut self, cycles: u64) {
        match self.cq.wait(cycles) {
            Err(WaitError::Timeout) => {}
            other => panic!("rank {}: not silent: {other:?}", self.rank()),
        }
    }

    /// A receive that took message `number` of `from`, whole.
    #[track_caller]
    pub fn assert_received(
        &self,
        completion: &WorkCompletion,
        from: usize,
        number: u64,
        length: usize,
    ) {
        assert_eq!(completion.status, WcStatus::Success, "{completion:?}");
        assert_eq!(self.peer(completion.pair), Some(from), "{completion:?}");
        assert_eq!(completion.immediate, number, "{completion:?}");
        assert_eq!(completion.length, length as u64, "{completion:?}");
        let id = MessageId {
            source: from,
            destination: self.rank(),
            number,
        };
        assert_eq!(completion.received().len(), length);
        if let Some((at, byte)) = id.first_wrong(completion.received()) {
            panic!("byte {at} of message {number} of {length} bytes is {byte:#04x}");
        }
    }

    fn keep_events(&mut self) {
        while let Some(event) = self.endpoint.poll_event().expect("a card") {
            // How refusals fold into events is a matter of time.
            if event.refusal().is_some() {
                self.refusals.push(event);
                continue;
            }
            self.host.note(Told::event(&event, self.peer(event.pair)));
            self.events.push(event);
        }
    }

    /// What events have told, since the last call, of accesses that were refused to peers: the rank of each, and what.
    pub fn refusals(&mut self) -> Vec<(Option<usize>, PeerRefusal)> {
        self.keep_events();
        let events = std::mem::take(&mut self.refusals).into_iter();
        let told = events.filter_map(|event| Some((self.peer(event.pair), event.refusal()?)));
        told.collect()
    }

    /// The events since the last call, but for [`refusals`](Self::refusals).
    pub fn events(&mut self) -> Vec<AsyncEvent> {
        self.keep_events();
        std::mem::take(&mut self.events)
    }

    /// Reads a counter of the card.
    pub fn count(&self, counter: Counter) -> u64 {
        self.device.read_counter(counter).expect("a counter")
    }

    /// All's well that ends well: nothing is outstanding, no completion named a request that isn't, and no
    /// event was raised. All ranks must call it: who leaves closes its pairs, and the others are told.
    #[track_caller]
    pub fn finish(mut self) {
        // A look, too, takes what nobody is told of: injects that went well.
        assert!(!self.cq.is_ready(), "rank {}", self.rank());
        assert_eq!(self.cq.outstanding(), 0, "rank {}", self.rank());
        assert_eq!(self.cq.strays(), 0, "rank {}", self.rank());
        assert_eq!(self.events(), [], "rank {}", self.rank());
        self.meet();
    }
}
