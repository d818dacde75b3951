//! A random program of a host that obeys the rules of rings and buffers and no others, and keeps account of all that it does.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;

use abi::capability::{
    CAPABILITY_ERRORS_ONLY, CAPABILITY_GATHER, CAPABILITY_INLINE, CAPABILITY_RULES,
};
use abi::completion::{COMPLETION_MORE, Completion};
use abi::control::{Counter, PairSetup, RIGHT_LOCAL_READ, RIGHT_LOCAL_WRITE, RuleSetup};
use abi::event::Event;
use abi::limits::{EAGER_MAX, MIN_RING_LOG2};
use abi::mailbox::{Command, Nothing, PairId, RuleId, SetRule, Words};
use abi::opcode::WorkRing;
use abi::register;
use abi::request::{
    FLAG_ANY_SOURCE, FLAG_ERRORS_ONLY, FLAG_GATHER, FLAG_MULTI, FLAG_NOTHING_KEPT, FLAG_READY,
    FLAG_RESUME, INLINE_BYTES, ListRequest, MAX_SEGMENTS, Opcode, REQUEST_BYTES, Segment,
    SendRequest, SendSegments,
};
use abi::status::Status;
use card_model::CardSizes;
use hdl::config::Config;
use match_reference::sizes_of;
use rand::seq::{IndexedRandom, IteratorRandom};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Fragile, Opened, Post, Stops, Story};
use crate::cards::Host;
use crate::raw::{Mapped, RawEndpoint, RawHost, Ring};

/// log2 of the entries of each ring: so many that no completion is ever short, unless a [`Mix`] wants it.
const LOG2: u8 = 8;
/// Buffers of an endpoint: of sends, of receives, of multi-receives.
const BUFFERS: [(usize, u64); 3] = [(32, 1024), (110, 1024), (8, 4096)];
/// Bytes of the memory that isn't there.
const VOID_BYTES: u64 = 4096;
/// Sends of a pair that may be outstanding: no more than may wait.
const SENDS: usize = 8;
/// Requests of an endpoint that may be outstanding if completions are few: they fit its rings.
const OUTSTANDING: usize = 60;
const TAGS: [u64; 3] = [0, 1, 1 << 63 | 1];
const STRANGE: u64 = 1 << 40;
/// A pair that no endpoint of a program has.
const ABSENT_PAIR: u16 = 7;
/// What makes a key one of another region's past.
const WRONG_KEY: u32 = 1 << 21;
/// Where the model finds no memory.
const NOWHERE: u64 = 1 << 60;
/// Counters that the model has to come to as well.
const COUNTERS: [Counter; 13] = [
    Counter::FramesSent,
    Counter::FramesReceived,
    Counter::InvalidRequests,
    Counter::DoorbellErrors,
    Counter::PairErrors,
    Counter::Gaps,
    Counter::CrcErrors,
    Counter::Duplicates,
    Counter::Expected,
    Counter::Unexpected,
    Counter::Completions,
    Counter::RuleDrops,
    Counter::Repeats,
];

/// A request that has not completed.
#[derive(Clone, Copy, Debug)]
struct Pending {
    opcode: Opcode,
    pair: u16,
    context: u16,
    target: u32,
    /// Kind and address of its buffer.
    buffer: Option<(usize, u64)>,
    /// A send that completes only on error.
    errors_only: bool,
    /// A send without payload that nobody cancels: it ends when all before it have ended.
    ends_silence: bool,
}

/// What the payload of a send is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carries {
    Buffer,
    /// The last bytes of the request.
    Inline,
    /// Up to four pieces of a buffer.
    Segments,
}

/// The host's side of an endpoint: its memory, what it has posted and what has completed.
struct HostSide<'a> {
    endpoint: RawEndpoint<'a>,
    /// Place of the endpoint on whose queue it completes.
    completion_owner: u8,
    /// Entries of that queue that it may fill.
    completions_free: usize,
    memory: Mapped,
    key: u32,
    /// Address of memory that was registered and is gone, and its key.
    void: (u64, u32),
    /// Pairs, and whether one of their ends has no memory for its slots.
    pairs: Vec<(u16, bool)>,
    free: [Vec<u64>; 3],
    pending: BTreeMap<u32, Pending>,
    claims: Vec<u32>,
    /// With the cycle in which the host saw it.
    completions: Vec<(u64, Completion)>,
    events: Vec<Event>,
    /// Next handles: even for sends, odd for lists.
    next: [u32; 2],
}

struct Program<'a> {
    raw: &'a RawHost,
    host: &'a Host,
    rng: ChaCha8Rng,
    mix: Mix,
    host_sides: Vec<HostSide<'a>>,
    /// What the card can that others can't.
    capabilities: u32,
    posts: Vec<Post>,
}

/// What a program does.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    /// Random steps.
    pub steps: usize,
    /// Steps of a hundred in which it sends, and in which it posts a receive; 52 of a hundred are these.
    pub sends: u32,
    /// Match bits of a third of the messages are such as only probes and claims look for, until the end.
    pub strangers: bool,
    /// log2 of the entries of a completion queue for each endpoint. If they are few the host looks at them seldom, too.
    pub completions: u8,
    /// The second endpoint completes on the queue of the first.
    pub shared: bool,
    /// Pairs of the card with itself: one endpoint with itself, and one with the other.
    pub own: bool,
    /// A second pair of cards 0 and 1, whose slots have no memory: the first unexpected message with a payload fails it.
    pub doomed: bool,
    /// Frames are repeated, changed, and late.
    pub rough: bool,
    /// Rules revoke messages of a pair of each card.
    pub revoked: bool,
    /// The host's accesses of the card cost it no time, so that it does more in the same.
    pub busy: bool,
    /// Wires stop, in either direction.
    pub stops: Option<Stops>,
    /// Of how many bursts of buffers one fails. Of those of slots one in so many times [`SLOTS_FAIL`] fails: a slot that can't be written fails its
    /// pair.
    pub fails: Option<u32>,
}

/// By how much a burst of a slot fails more seldom than one of a buffer.
const SLOTS_FAIL: u32 = 8;

impl Mix {
    /// About as many sends as receives.
    pub const fn even(steps: usize) -> Self {
        Self {
            steps,
            sends: 24,
            strangers: false,
            completions: LOG2,
            shared: false,
            own: false,
            doomed: false,
            rough: false,
            revoked: false,
            busy: false,
            stops: None,
            fails: None,
        }
    }

    /// Mostly receives, more than a `tiny` card has room for, and messages that pass them by.
    pub const fn flood(steps: usize) -> Self {
        Self {
            steps,
            sends: 12,
            strangers: true,
            ..Self::even(steps)
        }
    }

    /// The same with completion queues as small as they may be.
    #[must_use]
    pub const fn tight(self) -> Self {
        Self {
            completions: MIN_RING_LOG2,
            ..self
        }
    }

    /// The same with one completion queue for both endpoints.
    #[must_use]
    pub const fn shared(self) -> Self {
        Self {
            shared: true,
            ..self
        }
    }

    /// The same with pairs of each card with itself.
    #[must_use]
    pub const fn own(self) -> Self {
        Self { own: true, ..self }
    }

    /// The same on bad wires.
    #[must_use]
    pub const fn rough(self) -> Self {
        Self {
            rough: true,
            ..self
        }
    }

    /// The same with rules, on cards that have them.
    #[must_use]
    pub const fn revoked(self) -> Self {
        Self {
            revoked: true,
            ..self
        }
    }

    /// The same by a host that loses no time.
    #[must_use]
    pub const fn busy(self) -> Self {
        Self { busy: true, ..self }
    }

    /// The same by a host that loses no time, with wires that stop.
    #[must_use]
    pub const fn stopped(self, stops: Stops) -> Self {
        Self {
            stops: Some(stops),
            ..self.busy()
        }
    }

    /// The same by a host that loses no time, with memory of which one burst in so many fails.
    #[must_use]
    pub const fn failing(self, one_in: u32) -> Self {
        Self {
            fails: Some(one_in),
            ..self.busy()
        }
    }

    /// The same with a pair that fails.
    #[must_use]
    pub const fn doomed(self) -> Self {
        Self {
            doomed: true,
            ..self
        }
    }
}

/// Plays random steps on the card of a host, then receives all that is left, and tells the story. All hosts must call it. The memory that may fail is put
/// among what is `fragile`.
///
/// # Panics
/// If the card doesn't come to rest.
pub fn play(host: &Host, config: &Config, seed: u64, mix: Mix, fragile: &Fragile) -> Story {
    let raw = RawHost::new(host);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(host.card() as u64);
    let domain = raw.domain();
    let first = host_side(&raw, mix, domain, None);
    let second = match mix.shared {
        true => host_side(&raw, mix, domain, Some(&first.endpoint)),
        false => host_side(&raw, mix, raw.domain(), None),
    };
    let mut program = Program {
        raw: &raw,
        host,
        rng,
        mix,
        host_sides: vec![first, second],
        capabilities: raw.identity().capabilities,
        posts: Vec::new(),
    };
    let (pairs, slots) = program.connect();
    let rules = program.revoke();
    let begin = program.counters();
    let weak: Vec<(Range<u64>, u32)> = mix.fails.map_or_else(Vec::new, |one_in| {
        let sides = program.host_sides.iter().map(|side| (&side.memory, one_in));
        let slots = slots.iter().map(|slots| (slots, one_in * SLOTS_FAIL));
        let all = sides.chain(slots);
        all.map(|(mapped, one_in)| {
            let address = mapped.address();
            (address..address + mapped.bytes().len() as u64, one_in)
        })
        .collect()
    });
    fragile.lock().expect("no panic").clone_from(&weak);
    program.meet();
    let start = raw.transport().now();
    for step in 0..mix.steps {
        if step == mix.steps / 2 {
            program.doom();
            program.look_at_what_is_revoked(&rules);
        }
        program.step();
    }
    program.come_to_rest();
    let end = raw.transport().now();
    program.meet();
    let counters = COUNTERS.iter().zip(begin.iter().zip(program.counters()));
    let counters = counters.map(|(&counter, (begin, end))| (counter, end - begin));
    let mut memory: Vec<_> = slots.iter().map(|m| (m.address(), m.bytes())).collect();
    for host_side in &program.host_sides {
        memory.push((host_side.memory.address(), host_side.memory.bytes()));
        let endpoint = &host_side.endpoint;
        let rings = [Ring::Send, Ring::List, Ring::Event].map(|ring| endpoint.ring(ring));
        for ring in rings.into_iter().chain(endpoint.queue()) {
            memory.push((ring.address(), ring.bytes()));
        }
    }
    Story {
        sizes: CardSizes {
            lists: sizes_of(config),
            regions: config.regions,
            capabilities: program.capabilities,
            descriptors: config.descriptors,
            rules: config.rules,
            grants: config.grants,
        },
        mac: raw.identity().mac,
        endpoints: program.host_sides.iter().map(HostSide::opened).collect(),
        pairs,
        rules,
        memory,
        fragile: weak.into_iter().map(|(range, _)| range).collect(),
        counters: counters.collect(),
        completions: program
            .host_sides
            .iter()
            .map(|host_side| host_side.completions.clone())
            .collect(),
        events: program
            .host_sides
            .iter()
            .map(|host_side| host_side.events.clone())
            .collect(),
        posts: program.posts,
        cycles: (start, end),
    }
}

/// Opens an endpoint of a domain, which completes on the queue of `owner` or on its own.
fn host_side<'a>(
    raw: &'a RawHost,
    mix: Mix,
    domain: u32,
    owner: Option<&RawEndpoint<'a>>,
) -> HostSide<'a> {
    let log2 = [LOG2, LOG2, mix.completions + u8::from(mix.shared), LOG2];
    let endpoint = RawEndpoint::with_rings(raw, domain, log2, owner);
    let bytes: u64 = BUFFERS
        .iter()
        .map(|(count, size)| *count as u64 * size)
        .sum();
    let memory = Mapped::new(raw.transport(), bytes as usize);
    let rights = RIGHT_LOCAL_READ | RIGHT_LOCAL_WRITE;
    let key = raw.region(domain, rights, memory.address(), bytes);
    let void = Mapped::new(raw.transport(), VOID_BYTES as usize);
    let void_key = raw.region(domain, rights, void.address(), VOID_BYTES);
    void.unmap();
    let mut at = memory.address();
    let free = BUFFERS.map(|(count, size)| {
        let begin = at;
        at += count as u64 * size;
        (0..count as u64).map(|k| begin + k * size).collect()
    });
    HostSide {
        completion_owner: owner.unwrap_or(&endpoint).place(),
        completions_free: 1 << mix.completions,
        endpoint,
        memory,
        key,
        void: (void.address(), void_key),
        pairs: Vec::new(),
        free,
        pending: BTreeMap::new(),
        claims: Vec::new(),
        completions: Vec::new(),
        events: Vec::new(),
        next: [2, 1],
    }
}

impl HostSide<'_> {
    fn opened(&self) -> Opened {
        let length = self.memory.bytes().len() as u64;
        let ring = |ring| self.endpoint.ring(ring).address();
        let queue = self.endpoint.queue().map_or(NOWHERE, Mapped::address);
        Opened {
            endpoint: self.endpoint.place(),
            completion_owner: self.completion_owner,
            epoch: self.endpoint.epoch,
            rings: [ring(Ring::Send), ring(Ring::List), queue, ring(Ring::Event)],
            log2: self.endpoint.log2,
            regions: [
                (self.key, self.memory.address(), length),
                (self.void.1, self.void.0, VOID_BYTES),
            ],
        }
    }

    /// How many sends and receives may be outstanding: so many that one completion is left for what looks or cancels.
    fn limits(&self) -> (usize, usize) {
        let room = self.completions_free - 1;
        (room / 3, room - room / 3)
    }

    /// Whether one more request may be posted that ends by itself.
    fn may_ask(&self) -> bool {
        self.completions_free == 1 << LOG2 || self.pending.len() < OUTSTANDING
    }

    fn pend(&mut self, ring: usize, pending: Pending) -> u32 {
        let request = self.next[ring];
        self.next[ring] += 2;
        self.pending.insert(request, pending);
        request
    }

    fn count(&self, which: impl Fn(&Pending) -> bool) -> usize {
        self.pending
            .values()
            .filter(|pending| which(pending))
            .count()
    }
}

impl Program<'_> {
    /// Opens the pairs of the card and connects them: some endpoint to some endpoint of each other card, and what the mix wants.
    fn connect(&mut self) -> (Vec<(u16, PairSetup)>, Vec<Mapped>) {
        let me = self.host.card();
        let mut links: Vec<_> = (0..self.host.cards())
            .flat_map(|b| (0..b).map(move |a| (a, b, false)))
            .collect();
        if self.mix.doomed {
            links.push((0, 1, true));
        }
        let mut given = Vec::new();
        let mut opened = Vec::new();
        for &(a, b, doomed) in &links {
            let mut words = [0; PairId::COUNT];
            if let Some(other) = [(a, b), (b, a)].iter().find(|ends| ends.0 == me) {
                let at = self.rng.random_range(0..2);
                let (id, slots) = self.open(at, doomed);
                id.to_words(&mut words);
                opened.push((given.len(), other.1, at, id, slots));
            }
            let mac = self.raw.identity().mac;
            let words = words.into_iter().map(u64::from).chain([mac]);
            given.extend(words.flat_map(u64::to_le_bytes));
        }
        let all = self.host.all_gather(given).expect("all are there");
        let mut pairs = Vec::new();
        let mut kept = Vec::new();
        for (place, other, at, local, slots) in opened {
            let bytes = &all[other][place..][..8 * (PairId::COUNT + 1)];
            let words: Vec<u64> = bytes
                .chunks_exact(8)
                .map(|word| u64::from_le_bytes(word.try_into().expect("eight")))
                .collect();
            let (ids, mac) = words.split_at(PairId::COUNT);
            let ids: Vec<u32> = ids.iter().map(|&word| word as u32).collect();
            let remote = PairId::from_words(&ids);
            pairs.push(self.connected(at, &local, &remote, mac[0], &slots));
            kept.extend(slots);
        }
        if self.mix.own {
            let mac = self.raw.identity().mac;
            let ends = [0, 0, 1].map(|at| (at, self.open(at, false)));
            for (local, remote) in [(0, 0), (1, 2), (2, 1)] {
                let (at, (id, slots)) = &ends[local];
                let remote = &ends[remote].1.0;
                pairs.push(self.connected(*at, id, remote, mac, slots));
            }
            kept.extend(ends.into_iter().filter_map(|(_, (_, slots))| slots));
        }
        self.meet();
        (pairs, kept)
    }

    /// Opens a pair, with the memory of its slots, if it is to have any.
    fn open(&mut self, at: usize, doomed: bool) -> (PairId, Option<Mapped>) {
        let host_side = &mut self.host_sides[at];
        let credits = self.rng.random_range(1..=8);
        let slots = Mapped::new(self.raw.transport(), 16 * EAGER_MAX);
        let id = self.raw.open_pair(host_side.endpoint.id, credits, &slots);
        host_side.pairs.push((id.pair as u16, doomed));
        if doomed {
            slots.unmap();
        }
        (id, Some(slots).filter(|_| !doomed))
    }

    fn connected(
        &self,
        at: usize,
        local: &PairId,
        remote: &PairId,
        remote_mac: u64,
        slots: &Option<Mapped>,
    ) -> (u16, PairSetup) {
        self.raw.connect_to(local, remote, remote_mac);
        let endpoint = &self.host_sides[at].endpoint;
        let setup = PairSetup {
            remote_mac,
            remote_endpoint: remote.endpoint as u16,
            remote_pair: remote.pair as u16,
            remote_epoch: remote.epoch as u16,
            cookie: local.nonce ^ remote.nonce,
            endpoint: endpoint.place(),
            domain: self.host_sides[at].completion_owner,
            epoch: endpoint.epoch,
            remote_credits: remote.credits as u8,
            local_credits: local.credits as u8,
            slots: slots.as_ref().map_or(NOWHERE, Mapped::address),
            sends_first: (local.pair as u16) << local.sends.trailing_zeros(),
            sends_log2: local.sends.trailing_zeros() as u8,
            ..PairSetup::default()
        };
        (local.pair as u16, setup)
    }

    /// Sets rules for the endpoint with most pairs: one for messages of its first pair that have the highest of the match bits, and one for all that
    /// it has of a context, which is cleared again. Rules, and whether they hold.
    fn revoke(&self) -> Vec<(RuleSetup, bool)> {
        if !self.mix.revoked || !self.has(CAPABILITY_RULES) {
            return Vec::new();
        }
        let sides = self.host_sides.iter();
        let side = sides.max_by_key(|side| side.pairs.len());
        let side = side.expect("a card has endpoints");
        let all: u128 = side.pairs.iter().map(|(pair, _)| 1 << pair).sum();
        let first = 1 << side.pairs[0].0;
        let rules = [(1, 1 << 63, first, true), (0, 0, all, false)];
        let set = rules.map(|(context, mask, pairs, holds)| {
            let rule = RuleSetup {
                endpoint: side.endpoint.place(),
                context,
                match_bits: 1 << 63,
                mask,
                pairs_low: pairs as u64,
                pairs_high: (pairs >> 64) as u64,
                ..RuleSetup::default()
            };
            let set = SetRule {
                endpoint: side.endpoint.id,
                context: context.into(),
                match_bits: rule.match_bits,
                mask,
                low: rule.pairs_low,
                high: rule.pairs_high,
            };
            let id: Result<RuleId, _> = self.raw.command(Command::SetRule, &set);
            let id = id.expect("a rule");
            if !holds {
                let gone: Result<Nothing, _> = self.raw.command(Command::ClearRule, &id);
                gone.expect("cleared");
            }
            (rule, holds)
        });
        set.to_vec()
    }

    fn meet(&self) {
        self.host.all_gather(Vec::new()).expect("all are there");
    }

    fn counters(&self) -> Vec<u64> {
        COUNTERS.iter().map(|&c| self.raw.count(c)).collect()
    }

    fn pause(&self, cycles: u64) {
        let transport = self.raw.transport();
        let _ = transport.pause(&[], transport.now() + cycles);
    }

    fn step(&mut self) {
        let sends = self.mix.sends;
        let at = self.rng.random_range(0..2);
        match self.rng.random_range(0..100) {
            step if step < sends => self.send(at),
            0..52 => self.receive(at, None),
            52..56 => self.cancel_send(at),
            56..66 => self.look(at),
            66..71 => self.use_claim(at),
            71..79 => {
                let target = self.some(at, Opcode::TaggedReceive);
                if self.host_sides[at].may_ask() {
                    self.cancel(at, target.unwrap_or(1));
                }
            }
            79..90 => {
                let cycles = self.rng.random_range(1..600);
                self.pause(cycles);
            }
            _ => {}
        }
        let few = self.mix.completions < LOG2;
        if !few || self.rng.random_ratio(1, 3) {
            self.poll();
        }
    }

    fn some(&mut self, at: usize, opcode: Opcode) -> Option<u32> {
        let all = self.host_sides[at].pending.iter();
        let all = all.filter(|(_, pending)| pending.opcode == opcode);
        all.map(|(&request, _)| request).choose(&mut self.rng)
    }

    /// One request of twelve is spoilt, in one of so many ways; 0 is none of them.
    fn spoil(&mut self, ways: u32) -> u32 {
        match self.rng.random_ratio(1, 12) {
            true => self.rng.random_range(1..=ways),
            false => 0,
        }
    }

    fn post_send(&mut self, at: usize, request: SendRequest) {
        self.post_sends(at, &[request.to_words()], None);
    }

    /// Posts entries of a send ring by one doorbell, behind what they send.
    fn post_sends(
        &mut self,
        at: usize,
        entries: &[[u64; REQUEST_BYTES / 8]],
        mut fill: Option<(u64, Vec<u8>)>,
    ) {
        let host_side = &mut self.host_sides[at];
        if let Some((address, bytes)) = &fill {
            let word = ((address - host_side.memory.address()) / 8) as usize;
            let words = bytes.chunks_exact(8);
            let words: Vec<u64> = words
                .map(|word| u64::from_le_bytes(word.try_into().expect("eight")))
                .collect();
            host_side.memory.write(word, &words);
        }
        let endpoint = host_side.endpoint.place();
        self.posts.extend(entries.iter().map(|&words| Post {
            endpoint,
            ring: WorkRing::Send,
            words,
            fill: fill.take(),
        }));
        host_side.endpoint.post_sends(entries);
    }

    /// Whether the list ring of an endpoint has no room: an entry more would be an overrun, which the card ignores.
    fn list_ring_is_full(&self, at: usize) -> bool {
        let host_side = &self.host_sides[at];
        // What stands in the ring hasn't ended.
        if host_side.pending.len() < 1 << LOG2 {
            return false;
        }
        let place = host_side.endpoint.place();
        let of_ring = |post: &&Post| post.endpoint == place && post.ring == WorkRing::List;
        let tail = self.posts.iter().filter(of_ring).count() as u16;
        let head = host_side.endpoint.read(register::LIST_HEAD) as u16;
        tail.wrapping_sub(head) >= 1 << LOG2
    }

    fn post_list(&mut self, at: usize, request: ListRequest) {
        while self.list_ring_is_full(at) {
            self.pause(100);
            self.poll();
        }
        let host_side = &mut self.host_sides[at];
        self.posts.push(Post {
            endpoint: host_side.endpoint.place(),
            ring: WorkRing::List,
            words: request.to_words(),
            fill: None,
        });
        host_side.endpoint.post_list(request.to_words());
    }

    fn send(&mut self, at: usize) {
        let Some(&(pair, doomed)) = self.host_sides[at].pairs.choose(&mut self.rng) else {
            return;
        };
        let sends = |p: &Pending| p.opcode == Opcode::TaggedSend;
        let waits = |p: &Pending| sends(p) && p.pair == pair;
        let host_side = &self.host_sides[at];
        let of_pair = host_side.count(waits);
        let all = host_side.count(sends);
        if of_pair >= SENDS || all >= host_side.limits().0 {
            return;
        }
        // One that completes leaves room for another, whose completion tells that it has ended.
        let errors_only = self.has(CAPABILITY_ERRORS_ONLY)
            && of_pair + 1 < SENDS
            && all + 1 < host_side.limits().0
            && self.rng.random_ratio(1, 3);
        let empty = doomed && self.rng.random_ratio(3, 4);
        let carries = match self.rng.random_range(0..4) {
            0 if !empty && self.has(CAPABILITY_INLINE) => Carries::Inline,
            1 if !empty && self.has(CAPABILITY_GATHER) => Carries::Segments,
            _ => Carries::Buffer,
        };
        let address = match carries {
            Carries::Inline => None,
            Carries::Buffer | Carries::Segments => match self.host_sides[at].free[0].pop() {
                Some(address) => Some(address),
                None => return,
            },
        };
        let request = self.host_sides[at].pend(
            0,
            Pending {
                pair,
                buffer: address.map(|address| (0, address)),
                errors_only,
                ..nothing(Opcode::TaggedSend, 0)
            },
        );
        let ready = self.rng.random_ratio(1, 4);
        let strange = self.mix.strangers && self.rng.random_ratio(1, 3);
        let send = SendRequest {
            opcode: Opcode::TaggedSend.code(),
            flags: if ready { FLAG_READY } else { 0 }
                | if errors_only { FLAG_ERRORS_ONLY } else { 0 },
            pair,
            context: self.rng.random_range(0..2),
            request,
            match_bits: match strange {
                true => STRANGE,
                false => TAGS[self.rng.random_range(0..TAGS.len())],
            },
            immediate: self.rng.random(),
            ..SendRequest::default()
        };
        match (carries, address) {
            (Carries::Inline, _) | (_, None) => self.send_inline(at, send),
            (Carries::Buffer, Some(address)) => self.send_buffer(at, send, address, empty),
            (Carries::Segments, Some(address)) => self.send_segments(at, send, address),
        }
    }

    /// Sends what finds no receive, if the queues have room, over each pair that has no memory for its slots: such a pair fails, whatever the program does.
    fn doom(&mut self) {
        for at in 0..self.host_sides.len() {
            let host_side = &mut self.host_sides[at];
            let doomed = host_side.pairs.iter().find(|(_, doomed)| *doomed);
            let Some((pair, _)) = doomed.copied() else {
                continue;
            };
            let waits = |p: &Pending| p.opcode == Opcode::TaggedSend && p.pair == pair;
            if host_side.count(waits) >= SENDS {
                continue;
            }
            let Some(address) = host_side.free[0].pop() else {
                continue;
            };
            let key = host_side.key;
            let pending = Pending {
                pair,
                buffer: Some((0, address)),
                ..nothing(Opcode::TaggedSend, 0)
            };
            let send = SendRequest {
                opcode: Opcode::TaggedSend.code(),
                pair,
                request: host_side.pend(0, pending),
                key,
                match_bits: STRANGE,
                address,
                length: 8,
                ..SendRequest::default()
            };
            let fill = self.bytes();
            self.post_sends(at, &[send.to_words()], Some((address, fill)));
        }
    }

    fn has(&self, capability: u32) -> bool {
        self.capabilities & capability != 0
    }

    /// A whole buffer's worth of random bytes.
    fn bytes(&mut self) -> Vec<u8> {
        let mut bytes = vec![0; EAGER_MAX];
        self.rng.fill(&mut bytes[..]);
        bytes
    }

    fn send_buffer(&mut self, at: usize, mut send: SendRequest, address: u64, empty: bool) {
        let fill = self.bytes();
        let offset = self.rng.random_range(0..16);
        let longest = EAGER_MAX as u64 - offset;
        let length = match self.rng.random_range(0..4) {
            0 => 0,
            1 => self.rng.random_range(1..40),
            _ => self.rng.random_range(0..=longest),
        };
        send.key = self.host_sides[at].key;
        send.address = address + offset;
        send.length = if empty { 0 } else { length };
        match self.spoil(6) {
            1 => send.key ^= WRONG_KEY,
            2 => send.pair = ABSENT_PAIR,
            3 => send.length = EAGER_MAX as u64 + 1,
            4 => send.reserved0 = 1,
            5 => (send.address, send.key) = self.host_sides[at].void,
            6 => send.inline2 = 1 << 63,
            _ => {}
        }
        self.post_sends(at, &[send.to_words()], Some((address, fill)));
    }

    /// The bytes beyond the length of an inline payload, its address and its key are anything.
    fn send_inline(&mut self, at: usize, send: SendRequest) {
        let mut send = send.with_inline(&self.rng.random::<[u8; INLINE_BYTES]>());
        send.length = self.rng.random_range(0..=INLINE_BYTES as u64);
        (send.address, send.key) = self.rng.random();
        match self.spoil(4) {
            1 => send.length = INLINE_BYTES as u64 + 1,
            2 => send.pair = ABSENT_PAIR,
            3 => send.flags |= FLAG_GATHER,
            4 => send.reserved0 = 1,
            _ => {}
        }
        self.post_send(at, send);
    }

    /// The segments are pieces of one buffer, in any order, and may overlap. Of those without a length address and key are anything.
    fn send_segments(&mut self, at: usize, mut send: SendRequest, buffer: u64) {
        let fill = self.bytes();
        let key = self.host_sides[at].key;
        let mut left = EAGER_MAX as u64;
        let mut segments = [Segment::default(); MAX_SEGMENTS];
        for segment in &mut segments {
            let length = match self.rng.random_range(0..4) {
                0 => 0,
                1 => self.rng.random_range(0..=left.min(16)),
                _ => self.rng.random_range(0..=left / 2),
            };
            left -= length;
            let offset = self.rng.random_range(0..=EAGER_MAX as u64 - length);
            *segment = match length {
                0 => Segment {
                    key: self.rng.random(),
                    address: self.rng.random(),
                    length,
                },
                _ => Segment {
                    key,
                    address: buffer + offset,
                    length,
                },
            };
        }
        let spoilt = self.rng.random_range(0..MAX_SEGMENTS);
        let way = self.spoil(6);
        match way {
            1 => segments[spoilt].key = key ^ WRONG_KEY,
            3 => segments[spoilt].length += left + 1,
            5 => (segments[spoilt].address, segments[spoilt].key) = self.host_sides[at].void,
            _ => {}
        }
        let [first, others @ ..] = segments;
        (send.key, send.address, send.length) = (first.key, first.address, first.length);
        send.flags |= FLAG_GATHER;
        let mut second = SendSegments::new(send.request, &others);
        match way {
            2 => send.pair = ABSENT_PAIR,
            4 => second.reserved1 = 1,
            6 => second.request ^= 2,
            _ => {}
        }
        self.post_sends(
            at,
            &[send.to_words(), second.to_words()],
            Some((buffer, fill)),
        );
    }

    /// Posts a send without payload on each pair whose last send completes only on error: its completion tells that those before have ended.
    fn end_silent_sends(&mut self, at: usize) {
        for (pair, _) in self.host_sides[at].pairs.clone() {
            let mut pending = self.host_sides[at].pending.values().rev();
            let last = pending.find(|p| p.opcode == Opcode::TaggedSend && p.pair == pair);
            if last.is_none_or(|last| !last.errors_only) {
                continue;
            }
            let request = self.host_sides[at].pend(
                0,
                Pending {
                    pair,
                    ends_silence: true,
                    ..nothing(Opcode::TaggedSend, 0)
                },
            );
            let send = SendRequest {
                opcode: Opcode::TaggedSend.code(),
                pair,
                request,
                ..SendRequest::default()
            };
            self.post_send(at, send);
        }
    }

    fn cancel_send(&mut self, at: usize) {
        if !self.host_sides[at].may_ask() {
            return;
        }
        let target = self.some(at, Opcode::TaggedSend).unwrap_or(0);
        let pair = self.host_sides[at]
            .pending
            .get(&target)
            .map_or(0, |p| p.pair);
        let request = self.host_sides[at].pend(0, nothing(Opcode::CancelSend, target));
        let cancel = SendRequest {
            opcode: Opcode::CancelSend.code(),
            pair,
            request,
            target,
            ..SendRequest::default()
        };
        self.post_send(at, cancel);
    }

    /// A receive; with a context one that takes whatever there is in it.
    fn receive(&mut self, at: usize, all: Option<u16>) {
        let multi = all.is_none() && self.rng.random_ratio(1, 6);
        let kind = if multi { 2 } else { 1 };
        let Some(&(pair, _)) = self.host_sides[at].pairs.choose(&mut self.rng) else {
            return;
        };
        let receives = |p: &Pending| p.opcode == Opcode::TaggedReceive;
        if self.host_sides[at].count(receives) >= self.host_sides[at].limits().1 {
            return;
        }
        let Some(address) = self.host_sides[at].free[kind].pop() else {
            return;
        };
        let context = self.rng.random_range(0..2);
        let request = self.host_sides[at].pend(
            1,
            Pending {
                pair,
                context: all.unwrap_or(context),
                buffer: Some((kind, address)),
                ..nothing(Opcode::TaggedReceive, 0)
            },
        );
        let offset = self.rng.random_range(0..16);
        let size = BUFFERS[kind].1 - offset;
        let length = match self.rng.random_range(0..4) {
            0 if !multi && all.is_none() => self.rng.random_range(0..200),
            _ => size,
        };
        let ignored = match self.mix.strangers {
            true => &[0, 0, 1, 1 << 63][..],
            false => &[0, 0, 1, 1 << 63, u64::MAX],
        };
        let mut receive = ListRequest {
            opcode: Opcode::TaggedReceive.code(),
            flags: self.flags(),
            pair,
            context: all.unwrap_or(context),
            request,
            key: self.host_sides[at].key,
            match_bits: TAGS[self.rng.random_range(0..TAGS.len())],
            ignore_bits: ignored[self.rng.random_range(0..ignored.len())],
            address: address + offset,
            length,
            ..ListRequest::default()
        };
        if multi {
            receive.flags |= FLAG_MULTI;
            receive.min_free = self.rng.random_range(0..3000);
        }
        match (all, self.spoil(4)) {
            (Some(_), _) => {
                receive.flags = FLAG_ANY_SOURCE | FLAG_RESUME;
                receive.ignore_bits = u64::MAX;
            }
            (None, 1) => receive.key ^= WRONG_KEY,
            (None, 2) => receive.reserved0 = 1,
            (None, 3) => receive.pair = ABSENT_PAIR,
            (None, 4) => {
                (receive.address, receive.key) = self.host_sides[at].void;
                receive.length = receive.length.min(VOID_BYTES);
            }
            _ => {}
        }
        self.post_list(at, receive);
    }

    fn flags(&mut self) -> u8 {
        let mut flags = 0;
        for flag in [FLAG_ANY_SOURCE, FLAG_RESUME, FLAG_NOTHING_KEPT] {
            flags |= if self.rng.random_ratio(2, 5) { flag } else { 0 };
        }
        flags
    }

    fn look(&mut self, at: usize) {
        if !self.host_sides[at].may_ask() {
            return;
        }
        let opcode = [Opcode::Probe, Opcode::Claim][self.rng.random_range(0..2)];
        let request = self.host_sides[at].pend(1, nothing(opcode, 0));
        let pair = self.host_sides[at].pairs.choose(&mut self.rng);
        let look = ListRequest {
            opcode: opcode.code(),
            pair: pair.map_or(0, |&(pair, _)| pair),
            flags: self.flags(),
            context: self.rng.random_range(0..2),
            request,
            match_bits: TAGS[self.rng.random_range(0..TAGS.len())],
            ignore_bits: [0, u64::MAX][self.rng.random_range(0..2)],
            ..ListRequest::default()
        };
        self.post_list(at, look);
    }

    /// A probe of messages that a rule revokes, for each rule: it ends as `Revoked`, whatever the program does.
    fn look_at_what_is_revoked(&mut self, rules: &[(RuleSetup, bool)]) {
        for (rule, _) in rules.iter().filter(|(_, holds)| *holds) {
            let mut sides = self.host_sides.iter();
            let at = sides.position(|side| side.endpoint.place() == rule.endpoint);
            let at = at.expect("an endpoint of this host");
            let request = self.host_sides[at].pend(1, nothing(Opcode::Probe, 0));
            let look = ListRequest {
                opcode: Opcode::Probe.code(),
                pair: rule.pairs_low.trailing_zeros() as u16,
                context: rule.context,
                request,
                match_bits: rule.match_bits,
                ..ListRequest::default()
            };
            self.post_list(at, look);
        }
    }

    fn use_claim(&mut self, at: usize) {
        if !self.host_sides[at].may_ask() {
            return;
        }
        let handle = match self.rng.random_ratio(1, 8) {
            true => self.rng.random(),
            false => match self.host_sides[at].claims.pop() {
                Some(handle) => handle,
                None => return,
            },
        };
        let address = match self.rng.random() {
            true => self.host_sides[at].free[1].pop(),
            false => None,
        };
        let opcode = match address {
            Some(_) => Opcode::ReceiveClaimed,
            None => Opcode::Discard,
        };
        let mut pending = nothing(opcode, handle);
        pending.buffer = address.map(|address| (1, address));
        let request = self.host_sides[at].pend(1, pending);
        let gone = self
            .rng
            .random_ratio(1, 8)
            .then(|| self.host_sides[at].void);
        let (address, key) = gone.unwrap_or((address.unwrap_or(0), self.host_sides[at].key));
        let claimed = ListRequest {
            opcode: opcode.code(),
            request,
            key,
            address,
            length: [100, 1024][self.rng.random_range(0..2)],
            target: handle,
            ..ListRequest::default()
        };
        self.post_list(at, claimed);
    }

    fn cancel(&mut self, at: usize, target: u32) {
        let request = self.host_sides[at].pend(1, nothing(Opcode::Cancel, target));
        let cancel = ListRequest {
            opcode: Opcode::Cancel.code(),
            request,
            target,
            ..ListRequest::default()
        };
        self.post_list(at, cancel);
    }

    fn poll(&mut self) {
        for at in 0..self.host_sides.len() {
            while let Some(entry) = self.host_sides[at].endpoint.poll() {
                let now = self.raw.transport().now();
                let mut sharing = self.host_sides.iter_mut();
                let of = match self.mix.shared {
                    true => sharing.find(|side| side.endpoint.place() == entry.endpoint),
                    false => sharing.nth(at),
                };
                of.expect("an endpoint of this queue").completed(now, entry);
            }
            let host_side = &mut self.host_sides[at];
            while let Some(event) = host_side.endpoint.poll_event() {
                host_side.events.push(Event { phase: 0, ..event });
            }
        }
    }

    /// Waits until of the requests that `which` picks none is left.
    fn wait(&mut self, what: &str, which: impl Fn(&Pending) -> bool) {
        for _ in 0..2000 {
            self.poll();
            if self
                .host_sides
                .iter()
                .all(|host_side| host_side.count(&which) == 0)
            {
                return;
            }
            self.pause(100);
        }
        let left: Vec<_> = self
            .host_sides
            .iter()
            .map(|host_side| &host_side.pending)
            .collect();
        panic!("card {}: {what} never end: {left:x?}", self.host.card());
    }

    /// Cancels what is posted, receives what still comes, and ends with nothing outstanding anywhere.
    fn come_to_rest(&mut self) {
        let receives = |p: &Pending| p.opcode == Opcode::TaggedReceive;
        self.cancel_all();
        self.wait("cancelled receives", receives);
        for round in 0.. {
            for at in 0..2 {
                self.end_silent_sends(at);
                while let Some(handle) = self.host_sides[at].claims.pop() {
                    let request = self.host_sides[at].pend(1, nothing(Opcode::Discard, handle));
                    let discard = ListRequest {
                        opcode: Opcode::Discard.code(),
                        request,
                        target: handle,
                        ..ListRequest::default()
                    };
                    self.post_list(at, discard);
                }
                // In turn; or that context of which fewer are posted, so that neither waits for the other.
                let host_side = &self.host_sides[at];
                let of = |context| host_side.count(|p| receives(p) && p.context == context);
                let next = match of(0).cmp(&of(1)) {
                    Ordering::Less => 0,
                    Ordering::Equal => round % 2,
                    Ordering::Greater => 1,
                };
                if of(0) + of(1) < 16 {
                    self.receive(at, Some(next));
                }
            }
            self.pause(300);
            self.poll();
            let sends = |p: &Pending| p.opcode == Opcode::TaggedSend;
            let left: usize = self
                .host_sides
                .iter()
                .map(|host_side| host_side.count(sends))
                .sum();
            let all = self.host.all_gather(vec![u8::from(left > 0)]);
            let all = all.expect("all are there");
            if all.iter().all(|left| left == &[0]) {
                break;
            }
            assert!(round < 2000, "sends never end");
        }
        self.cancel_all();
        self.wait("requests", |p| {
            !matches!(p.opcode, Opcode::Cancel | Opcode::CancelSend)
        });
        // The last control frames are on their way, past a wire that stops at either end.
        self.meet();
        let stops = self.mix.stops.map_or(0, |stops| stops.long);
        self.pause(4000 + 3 * stops);
        self.poll();
    }

    fn cancel_all(&mut self) {
        for at in 0..2 {
            let pending = &self.host_sides[at].pending;
            let receives = pending.iter();
            let receives = receives.filter(|(_, p)| p.opcode == Opcode::TaggedReceive);
            let receives: Vec<u32> = receives.map(|(&request, _)| request).collect();
            for target in receives {
                self.cancel(at, target);
                self.poll();
            }
        }
    }
}

fn nothing(opcode: Opcode, target: u32) -> Pending {
    Pending {
        opcode,
        pair: 0,
        context: 0,
        target,
        buffer: None,
        errors_only: false,
        ends_silence: false,
    }
}

impl HostSide<'_> {
    /// A request has ended: its buffer is free.
    fn end(&mut self, request: u32) {
        let pending = self.pending.remove(&request).expect("it is pending");
        if let Some((kind, address)) = pending.buffer {
            self.free[kind].push(address);
        }
    }

    /// Whether a completion says that the sends of its pair before it, too, have ended: it is of a send that the peer has acknowledged, or of one
    /// that was posted for this, which fails only with its pair, or finds no place: then it is told before those in front of it have ended.
    fn tells_of_those_before(&self, pending: &Pending, entry: &Completion) -> bool {
        let acknowledged = [Status::Success, Status::NotReady].map(Status::code);
        pending.opcode == Opcode::TaggedSend
            && (acknowledged.contains(&entry.status)
                || pending.ends_silence && entry.status != Status::QueueFull.code())
    }

    fn completed(&mut self, now: u64, entry: Completion) {
        self.completions.push((now, entry));
        let Some(pending) = self.pending.get(&entry.request).copied() else {
            panic!("{entry:x?} has completed before");
        };
        if entry.flags & COMPLETION_MORE != 0 {
            return;
        }
        self.end(entry.request);
        if self.tells_of_those_before(&pending, &entry) {
            let before = self.pending.range(..entry.request);
            let silent = before.filter(|(_, p)| p.errors_only && p.pair == pending.pair);
            let silent: Vec<u32> = silent.map(|(&request, _)| request).collect();
            silent.into_iter().for_each(|request| self.end(request));
        }
        if pending.opcode == Opcode::Claim && entry.status == Status::Success.code() {
            self.claims.push(entry.handle);
        }
        if entry.status == Status::Cancelled.code() {
            // The cancel itself completes not at all.
            let cancel = |p: &Pending| {
                matches!(p.opcode, Opcode::Cancel | Opcode::CancelSend) && p.target == entry.request
            };
            let found = self.pending.iter().find(|(_, p)| cancel(p));
            if let Some(request) = found.map(|(&request, _)| request) {
                self.pending.remove(&request);
            }
        }
    }
}
