//! The model does what the gates did, in their order.

use std::collections::{BTreeMap, VecDeque};

use abi::completion::{COMPLETION_MORE, Completion, CompletionKind};
use abi::control::{
    CardSetup, Counter, EndpointSetup, Operation, PairSetup, RING_COMPLETION, RING_EVENT,
    RING_LIST, RING_SEND, RegionSetup, RingSetup, ring_index,
};
use abi::opcode::{WorkRing, decode_list};
use abi::register::{COMPLETION_HEAD, COMPLETION_TAIL, LIST_HEAD, LIST_TAIL, SEND_HEAD, SEND_TAIL};
use abi::request::{ListRequest, Opcode, REQUEST_BYTES, SendRequest};
use abi::ring::entry_address;
use abi::status::Status;
use abi::wire::{FrameHeader, FrameType};
use card_model::matching::{Command, Lists, Operation as Match, Reply};
use card_model::memory::{HostMemory, Pieces};
use card_model::{Action, Break, Card, CardSizes, Output, Timing};

use super::Event;

/// Cycles from the look-up of a frame's numbers until the frame shows on the pins, at most.
const LOOK_UP_CYCLES: u64 = 6;
/// Cycles after which a doorbell is known to whoever asks whether the ring has an entry.
const DOORBELL_CYCLES: u64 = 16;

/// An endpoint as its host has opened it.
#[derive(Clone, Debug)]
pub struct Opened {
    /// Number.
    pub endpoint: u8,
    /// Epoch.
    pub epoch: u16,
    /// Addresses of its rings: sends, lists, completions, events.
    pub rings: [u64; 4],
    /// log2 of the entries of each.
    pub log2: u8,
    /// Its region: index and tag of its key, address, length.
    pub region: (u16, u32, u64, u64),
}

/// A request that the host has posted, and what it wrote to its buffers before.
#[derive(Clone, Debug)]
pub struct Post {
    /// Endpoint.
    pub endpoint: u8,
    /// Ring.
    pub ring: WorkRing,
    /// The entry.
    pub words: [u64; REQUEST_BYTES / 8],
    /// Address and bytes of what it sends.
    pub fill: Option<(u64, Vec<u8>)>,
}

/// All that a host did and saw of its card.
#[derive(Clone, Debug)]
pub struct Story {
    /// Sizes of the card.
    pub sizes: CardSizes,
    /// Its Ethernet address.
    pub mac: u64,
    /// Its endpoints.
    pub endpoints: Vec<Opened>,
    /// Its pairs, by number.
    pub pairs: Vec<(u16, PairSetup)>,
    /// Mapped memory: address and what was there in the end.
    pub memory: Vec<(u64, Vec<u8>)>,
    /// What it posted, in order.
    pub posts: Vec<Post>,
    /// Completions, by endpoint, in order.
    pub completions: Vec<Vec<Completion>>,
    /// Cycles between which everything happened.
    pub cycles: (u64, u64),
    /// How far the counters went.
    pub counters: Vec<(Counter, u64)>,
}

/// What was held to the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// Commands to the lists.
    pub commands: usize,
    /// Completions.
    pub completions: usize,
    /// Frames out, each byte of each.
    pub frames: usize,
    /// Moves of envelopes.
    pub updates: usize,
    /// Bytes of memory.
    pub bytes: usize,
}

/// What the gates decided by their time.
#[derive(Debug)]
struct Gates {
    /// Commands that the model has not given yet.
    commands: VecDeque<(u64, Command, Reply)>,
    /// Commands that it has given.
    given: usize,
    /// Delivery's completions of each endpoint that the model has not made yet.
    delivered: Vec<VecDeque<Completion>>,
    /// What else completes, by endpoint and request.
    others: BTreeMap<(usize, u32), Vec<Completion>>,
    /// Completions of sends that the peers acknowledged, in order.
    acknowledged: Vec<VecDeque<Completion>>,
    /// Cycle of the doorbell of each list request, by endpoint and handle.
    rung: BTreeMap<(u8, u32), u64>,
    /// Cycles of the doorbells of each list ring.
    doorbells: Vec<Vec<u64>>,
    /// Cycle of the last command, and of the last message of each endpoint that was refused.
    last: u64,
    refused: Vec<u64>,
    /// Whether requests of an endpoint that are refused without a look were taken since its last that looked: the gates may have them before them still.
    quiet: Vec<bool>,
    completions: usize,
}

/// What a completion is compared without: where in its queue it is.
fn bare(entry: Completion) -> Completion {
    Completion { phase: 0, ..entry }
}

/// Whether a completion is one of Delivery. Handles of list requests are odd.
fn is_delivered(entry: &Completion) -> bool {
    entry.request % 2 == 1 && entry.status != Status::InvalidRequest.code()
}

/// Cycles of the doorbells of each list ring.
fn doorbells(events: &[(u64, Event)], endpoints: usize) -> Vec<Vec<u64>> {
    let mut all = vec![Vec::new(); endpoints];
    for (cycle, event) in events {
        if let Event::Doorbell {
            endpoint,
            offset: LIST_TAIL,
            ..
        } = event
        {
            all[usize::from(*endpoint)].push(*cycle);
        }
    }
    all
}

fn is_acknowledged(entry: &Completion) -> bool {
    let ends = [Status::Success, Status::NotReady].map(Status::code);
    entry.kind == CompletionKind::Send.code() && ends.contains(&entry.status)
}

impl Timing for Gates {
    fn reply(&mut self, _: &Lists, command: &Command) -> Reply {
        let (cycle, given, reply) = self.commands.pop_front().unwrap_or_else(|| {
            panic!("the model gives the lists {command:x?}, and the gates gave no more")
        });
        assert_eq!(
            command.essence(),
            given.essence(),
            "cycle {cycle}, a command"
        );
        self.given += 1;
        self.last = cycle;
        let rung = self.rung.get(&(command.endpoint, command.request));
        if let (Match::Post, Some(rung)) = (command.operation, rung) {
            let refused = self.refused[usize::from(command.endpoint)];
            assert!(
                rung + DOORBELL_CYCLES >= refused,
                "cycle {refused}: a ready message is refused, and a receive rung in cycle {rung} was on its way"
            );
        }
        reply
    }

    /// The message was queued exactly if the next command inserts it.
    fn list_pending(&mut self, endpoint: u8, pending: bool) -> bool {
        let next = self.commands.front();
        let queued = next.is_some_and(|(_, command, _)| command.operation == Match::Insert);
        // The gates look when the lists have replied.
        let inserted = next.map_or(0, |(cycle, ..)| *cycle);
        let at = usize::from(endpoint);
        let meanwhile = |rung: &u64| (self.last..=inserted).contains(rung);
        let rung = self.doorbells[at].iter().any(meanwhile);
        assert!(
            pending || rung || self.quiet[at] || !queued,
            "a ready message is queued though nothing of endpoint {endpoint} is on its way"
        );
        if !queued {
            self.refused[at] = self.last;
        }
        queued
    }

    /// A multi-receive stayed exactly if its completion says so.
    fn completion_free(&mut self, endpoint: u8, _: bool) -> bool {
        let next = self.delivered[usize::from(endpoint)].front();
        next.is_some_and(|entry| entry.flags & COMPLETION_MORE != 0)
    }

    fn seen(&mut self, output: &Output) {
        let Output::Complete { endpoint, entry } = output else {
            return;
        };
        self.completions += 1;
        let at = usize::from(*endpoint);
        let seen = if is_delivered(entry) {
            self.delivered[at].pop_front()
        } else if is_acknowledged(entry) {
            self.acknowledged[at].pop_front()
        } else {
            let key = (at, entry.request);
            self.others.get_mut(&key).and_then(Vec::pop)
        };
        assert_eq!(
            seen,
            Some(*entry),
            "the completion of the gates, that of the model"
        );
    }
}

struct Follower {
    card: Card<Pieces, Gates>,
    posts: Vec<[VecDeque<Post>; 2]>,
    rings: Vec<Opened>,
    tails: Vec<[u16; 2]>,
    /// What has been rung of each endpoint's list ring, from its first entry on.
    listed: Vec<Vec<ListRequest>>,
    /// The same of its send ring.
    sent: Vec<Vec<SendRequest>>,
    endpoints: BTreeMap<u16, u8>,
    events: VecDeque<(u64, Event)>,
    matched: usize,
    /// First cycle of each pair's last frame, and the cycles of its last update.
    framed: BTreeMap<u16, u64>,
    updated: BTreeMap<u16, u64>,
    compared: Compared,
}

/// Lets the model do what the gates did.
///
/// # Panics
/// If it comes to anything else.
pub fn follow(story: &Story, seen: &[(u64, Event)], broken: Break) -> Compared {
    let mut follower = Follower::new(story, seen);
    follower.card.break_on_purpose(broken);
    while let Some((cycle, event)) = follower.events.pop_front() {
        follower.event(cycle, event);
    }
    follower.end(story)
}

impl Follower {
    fn new(story: &Story, seen: &[(u64, Event)]) -> Self {
        let mut events: Vec<_> = seen
            .iter()
            .filter(|(cycle, _)| (story.cycles.0..story.cycles.1).contains(cycle))
            .map(|(cycle, event)| {
                let early = match event {
                    Event::FrameOut(_) => LOOK_UP_CYCLES,
                    _ => 0,
                };
                (cycle - early, event.clone())
            })
            .collect();
        events.sort_by_key(|(cycle, _)| *cycle);
        let commands = events.iter().filter_map(|(cycle, event)| match event {
            Event::Matched(command, reply) => Some((*cycle, *command, *reply)),
            _ => None,
        });
        let of = |is: &dyn Fn(&Completion) -> bool| -> Vec<VecDeque<Completion>> {
            let all = story.completions.iter();
            all.map(|all| all.iter().filter(|e| is(e)).map(|e| bare(*e)).collect())
                .collect()
        };
        let mut others = BTreeMap::<_, Vec<_>>::new();
        for (endpoint, all) in story.completions.iter().enumerate() {
            for entry in all {
                if !is_delivered(entry) && !is_acknowledged(entry) {
                    let key = (endpoint, entry.request);
                    others.entry(key).or_default().push(bare(*entry));
                }
            }
        }
        let endpoints = story.sizes.lists.endpoints;
        let gates = Gates {
            commands: commands.collect(),
            given: 0,
            delivered: of(&is_delivered),
            others,
            acknowledged: of(&|entry| is_acknowledged(entry)),
            rung: BTreeMap::new(),
            doorbells: doorbells(&events, endpoints),
            last: 0,
            refused: vec![0; endpoints],
            quiet: vec![false; endpoints],
            completions: 0,
        };
        let mut memory = Pieces::default();
        for (address, bytes) in &story.memory {
            memory.map(*address, bytes.len());
        }
        let mut card = Card::with_timing(story.sizes, memory, gates);
        set_up(&mut card, story);
        let posts = |endpoint: usize| {
            [WorkRing::Send, WorkRing::List].map(|ring| {
                let all = story.posts.iter();
                let own = |p: &&Post| usize::from(p.endpoint) == endpoint && p.ring == ring;
                all.filter(own).cloned().collect()
            })
        };
        Self {
            card,
            posts: (0..endpoints).map(posts).collect(),
            rings: story.endpoints.clone(),
            tails: vec![[0; 2]; endpoints],
            listed: vec![Vec::new(); endpoints],
            sent: vec![Vec::new(); endpoints],
            endpoints: story
                .pairs
                .iter()
                .map(|(pair, setup)| (*pair, setup.endpoint))
                .collect(),
            events: events.into(),
            matched: 0,
            framed: BTreeMap::new(),
            updated: BTreeMap::new(),
            compared: Compared::default(),
        }
    }

    fn can(&self, action: Action) -> bool {
        self.card.actions().contains(&action)
    }

    /// Does what must be possible now.
    fn step(&mut self, action: Action, cycle: u64, why: &str) {
        assert!(
            self.can(action),
            "cycle {cycle}: {why}, and the model can't {action:?}"
        );
        self.card.step(action);
    }

    fn event(&mut self, cycle: u64, event: Event) {
        for opened in &self.rings {
            let tail = self.card.read_register(opened.endpoint, COMPLETION_TAIL);
            self.card
                .write_register(opened.endpoint, COMPLETION_HEAD, tail);
        }
        match event {
            Event::Doorbell {
                endpoint,
                offset,
                value,
            } => self.doorbell(cycle, endpoint, offset, value),
            Event::FrameIn(frame) => self.card.frame_in(frame),
            Event::Matched(command, _) => self.matched(cycle, &command),
            Event::Sink {
                pair,
                accepted,
                freed,
            } => self.sink(cycle, pair, accepted, freed),
            Event::Source { pair, returned } => {
                let behind = |card: &Card<_, _>| {
                    let known: u32 = card.credits(pair).source.returned;
                    returned.wrapping_sub(known) as i32 > 0
                };
                while behind(&self.card) {
                    self.step(Action::Receive, cycle, "a credit has come back");
                }
            }
            Event::FrameOut(frame) => self.frame_out(cycle, &frame),
        }
    }

    /// The host has posted: its entries and buffers are in memory when it rings.
    fn doorbell(&mut self, cycle: u64, endpoint: u8, offset: u32, value: u32) {
        let at = usize::from(endpoint);
        let ring = match offset {
            SEND_TAIL => 0,
            LIST_TAIL => 1,
            // The model may make a completion later than the gates: it is consumed when it is made.
            _ => return,
        };
        while self.tails[at][ring] != value as u16 {
            let post = self.posts[at][ring].pop_front().expect("it was posted");
            let index = self.tails[at][ring];
            self.tails[at][ring] = index.wrapping_add(1);
            if ring == 1 {
                let request = ListRequest::from_words(&post.words);
                let key = (endpoint, request.request);
                self.card.timing.rung.insert(key, cycle);
                self.listed[at].push(request);
            } else {
                self.sent[at].push(SendRequest::from_words(&post.words));
            }
            let opened = &self.rings[at];
            let entry = entry_address(opened.rings[ring], index, opened.log2, REQUEST_BYTES);
            let bytes: Vec<u8> = post.words.iter().flat_map(|w| w.to_le_bytes()).collect();
            let memory = &mut self.card.memory;
            memory.write(entry, &bytes).expect("the ring is mapped");
            if let Some((address, bytes)) = &post.fill {
                memory.write(*address, bytes).expect("a buffer is mapped");
            }
        }
        self.card.write_register(endpoint, offset, value);
    }

    /// A command has entered the lists, unless the model has given it already, as part of what came before.
    fn matched(&mut self, cycle: u64, command: &Command) {
        self.matched += 1;
        let wanted = self.matched;
        if self.card.timing.given < wanted {
            if command.operation != Match::Arrive {
                self.card.timing.quiet[usize::from(command.endpoint)] = false;
            }
            for endpoint in 0..self.rings.len() as u8 {
                self.quiet_requests(endpoint, command);
            }
        }
        while self.card.timing.given < wanted {
            if command.operation == Match::Arrive {
                while self.card.arrivals().next().is_none() {
                    self.step(Action::Receive, cycle, "a message arrives");
                }
                self.card.step(Action::Arrive);
            } else {
                let list = Action::List(command.endpoint);
                self.step(list, cycle, "a list request is taken");
            }
        }
        self.compared.commands = wanted;
    }

    /// Requests that are refused without a look at the lists have no place in the order but that of their completions: those go that complete next.
    fn quiet_requests(&mut self, endpoint: u8, command: &Command) {
        // A request of its own list ring comes behind those in front anyway.
        if command.operation != Match::Arrive && command.endpoint == endpoint {
            return;
        }
        let at = usize::from(endpoint);
        loop {
            let head = self.card.read_register(endpoint, LIST_HEAD) as usize;
            let next = self.listed[at].get(head).copied();
            let completes = self.card.timing.delivered[at].front();
            let behind = self.card.delivery().looks_at_nothing(endpoint);
            let first =
                next.is_some_and(
                    |next| match decode_list(&next, self.card.sizes().capabilities) {
                        Err(_) => true,
                        Ok(row) => completes.is_some_and(|entry| {
                            let refused = Status::from_code(entry.status).is_some_and(|status| {
                                let quiet = [
                                    Status::LocalProtection,
                                    Status::InvalidPair,
                                    Status::InvalidClaim,
                                ];
                                quiet.contains(&status) || (status == Status::Behind && behind)
                            });
                            let ends = entry.request == next.request && refused;
                            // The receive that waits for room is in no list.
                            let waits = row.opcode == Opcode::Cancel
                                && (entry.request, entry.status)
                                    == (next.target, Status::Cancelled.code())
                                && self.card.delivery().waits(endpoint) == Some(next.target);
                            ends || waits
                        }),
                    },
                );
            if !first || !self.can(Action::List(endpoint)) {
                return;
            }
            self.card.timing.quiet[at] = true;
            self.card.step(Action::List(endpoint));
        }
    }

    fn sink(&mut self, cycle: u64, pair: u16, accepted: u32, freed: u32) {
        while self.card.updates().next().is_none() {
            let list = Action::List(self.endpoints[&pair]);
            self.step(list, cycle, "an envelope moves on");
        }
        let next = self.card.updates().next().map(|update| update.pair);
        assert_eq!(
            next,
            Some(pair),
            "cycle {cycle}: the pair whose envelope moves on"
        );
        self.card.step(Action::Update);
        let numbers = self.card.credits(pair).sink;
        let numbers = (numbers.accepted, numbers.freed);
        assert_eq!(numbers, (accepted, freed), "cycle {cycle}: pair {pair}");
        self.updated.insert(pair, cycle);
        self.compared.updates += 1;
    }

    /// A frame has gone out. The numbers that it carries were looked up in one of the cycles before.
    fn frame_out(&mut self, cycle: u64, frame: &[u8]) {
        let header = FrameHeader::parse(frame).expect("a header");
        let pair = header.source_pair;
        let carried = (header.acknowledge, header.credit, header.refused);
        let control = header.frame_type != FrameType::Eager.code();
        let shown = cycle + LOOK_UP_CYCLES;
        loop {
            let sink = self.card.credits(pair).sink;
            let numbers = (sink.accepted, sink.freed, sink.refused);
            let due = !control || self.card.control_due(pair).is_some();
            if numbers == carried && due {
                break;
            }
            match self.events.front() {
                Some((next, _)) if *next <= shown => {
                    let (next, event) = self.events.pop_front().expect("there is one");
                    self.event(next, event);
                }
                _ if numbers == carried => {
                    // The update came when the pair's last frame had been taken, and had not begun.
                    let updated = self.updated.get(&pair).copied().unwrap_or(0);
                    let framed = self.framed.get(&pair).copied().unwrap_or(0);
                    let between = (framed..=framed + 2 * LOOK_UP_CYCLES).contains(&updated);
                    assert!(between, "cycle {shown}: pair {pair} owes no control frame");
                    self.card.mark(pair);
                }
                _ => panic!("cycle {shown}: pair {pair} tells {carried:?}, and has {numbers:?}"),
            }
        }
        if control {
            self.card.step(Action::Control(pair));
        } else {
            self.transmit(shown, pair);
        }
        let same = self.card.frame_out();
        assert_eq!(
            same.as_deref(),
            Some(frame),
            "cycle {shown}: a frame of pair {pair}"
        );
        self.framed.insert(pair, cycle);
        self.compared.frames += 1;
    }

    /// The next message of a pair goes out. Of those in front some were cancelled, as the send ring says, and some couldn't be read.
    fn transmit(&mut self, cycle: u64, pair: u16) {
        let endpoint = self.endpoints[&pair];
        let taken = self.card.credits(pair).source.taken;
        while self.card.credits(pair).source.taken == taken {
            let head = self.card.sends().waiting(pair).next();
            let cancelled =
                head.is_some_and(|head| self.ends(endpoint, head.request, &[Status::Cancelled]));
            let wanted = [
                Action::Transmit(pair),
                Action::Send(endpoint),
                Action::Receive,
            ];
            let wanted = wanted.into_iter().skip(usize::from(cancelled));
            let can = wanted.into_iter().find(|&action| self.can(action));
            let action = can.unwrap_or_else(|| {
                panic!("cycle {cycle}: a message of pair {pair} goes out, and the model has none")
            });
            self.quietly(action);
        }
    }

    /// Whether the gates ended a request with one of these.
    fn ends(&self, endpoint: u8, request: u32, statuses: &[Status]) -> bool {
        let key = (usize::from(endpoint), request);
        let ends = self.card.timing.others.get(&key).into_iter().flatten();
        let codes = statuses.iter().map(|status| status.code());
        let codes: Vec<u8> = codes.collect();
        ends.into_iter().any(|entry| codes.contains(&entry.status))
    }

    /// Does something. A send that can't be read has had its turn without a frame: before a cancel of it, as the gates said that it was too late.
    fn quietly(&mut self, action: Action) {
        if let Action::Send(endpoint) = action {
            let head = self.card.read_register(endpoint, SEND_HEAD) as usize;
            let next = self.sent[usize::from(endpoint)].get(head).copied();
            let cancel = next.filter(|next| next.opcode == Opcode::CancelSend.code());
            while let Some(cancel) = cancel {
                let pair = cancel.pair;
                let waiting = self.card.sends().waiting(pair);
                let waiting: Vec<u32> = waiting.map(|send| send.request).collect();
                let unread = [Status::LocalProtection, Status::MemoryError];
                let had_turn = waiting.contains(&cancel.target)
                    && self.ends(endpoint, cancel.target, &unread)
                    && self.ends(endpoint, waiting[0], &unread);
                let turn = [Action::Transmit(pair), Action::Receive];
                let can = turn.into_iter().find(|&action| self.can(action));
                match can.filter(|_| had_turn) {
                    Some(action) => self.card.step(action),
                    None => break,
                }
            }
        }
        self.card.step(action);
    }

    /// The gates have come to rest, so the model must too, and both have to have the same.
    fn end(mut self, story: &Story) -> Compared {
        loop {
            let actions = self.card.actions();
            let Some(&action) = actions.iter().find(|a| !matches!(a, Action::Control(_))) else {
                assert_eq!(actions, [], "the gates owe no control frame");
                break;
            };
            self.quietly(action);
            assert_eq!(self.card.frame_out(), None, "the gates sent no such frame");
        }
        let gates = &self.card.timing;
        assert_eq!(
            gates.commands.front(),
            None,
            "a command of the gates is left"
        );
        for (at, left) in gates
            .delivered
            .iter()
            .chain(&gates.acknowledged)
            .enumerate()
        {
            assert_eq!(
                left.front(),
                None,
                "{at}: a completion of the gates is left"
            );
        }
        let left = gates.others.values().flatten().next();
        assert_eq!(left, None, "a completion of the gates is left");
        self.compared.completions = gates.completions;
        for &(counter, wanted) in &story.counters {
            let counted = u64::from(self.card.counter(counter));
            assert_eq!(counted, wanted, "{counter}: the model's, the gates'");
        }
        let entries = story
            .endpoints
            .iter()
            .flat_map(|opened| opened.rings[2..].to_vec());
        let entries: Vec<u64> = entries.collect();
        let pieces: BTreeMap<_, _> = self.card.memory.pieces().collect();
        for (address, bytes) in &story.memory {
            // Completions have been compared; those of different rooms have no order among each other.
            if !entries.contains(address) {
                let held = pieces[address];
                let differs = (0..bytes.len()).find(|&at| held[at] != bytes[at]);
                assert_eq!(differs, None, "byte of the memory at {address:#x}");
                self.compared.bytes += bytes.len();
            }
        }
        self.compared
    }
}

fn set_up(card: &mut Card<Pieces, Gates>, story: &Story) {
    let setup = CardSetup {
        mac: story.mac,
        ..CardSetup::default()
    };
    card.control(Operation::CardSet, 0, &setup.to_words());
    for opened in &story.endpoints {
        let endpoint = opened.endpoint;
        let names = [RING_SEND, RING_LIST, RING_COMPLETION, RING_EVENT];
        for (ring, base) in names.into_iter().zip(opened.rings) {
            let setup = RingSetup {
                base,
                log2: opened.log2,
                ..RingSetup::default()
            };
            let index = ring_index(endpoint, ring);
            card.control(Operation::RingSet, index, &setup.to_words());
        }
        let setup = EndpointSetup {
            domain: endpoint,
            epoch: opened.epoch,
            ..EndpointSetup::default()
        };
        card.control(Operation::EndpointSet, endpoint.into(), &setup.to_words());
        let (index, tag, base, length) = opened.region;
        let region = RegionSetup {
            base,
            length,
            tag,
            domain: endpoint,
            rights: abi::control::RIGHT_LOCAL_READ | abi::control::RIGHT_LOCAL_WRITE,
            ..RegionSetup::default()
        };
        card.control(Operation::RegionSet, index, &region.to_words());
    }
    for (pair, setup) in &story.pairs {
        card.control(Operation::PairSet, *pair, &setup.to_words());
    }
}
