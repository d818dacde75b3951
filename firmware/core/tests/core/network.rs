//! Cards together: their firmwares connect and disconnect over frames that are lost, repeated, overtaken and late, while hosts do what they like,
//! firmwares restart and gates fall silent. Afterwards all is calm, and what stands must be right.

use crate::breaks::{promise, promise_eq};
use crate::commands;
use crate::gates::{Gates, Held, Unit, Wire, answer, boot, call, give, sizes};
use abi::capability::CAPABILITY_RULES;
use abi::control::Operation;
use abi::event::Cause as EventCause;
use abi::limits::SLOTS_ALIGN;
use abi::mailbox::{
    Accept, CloseEndpoint, Command, Connect, ConnectReason, CounterId, Disconnect, DomainId,
    EndpointId, NO_ENDPOINT, Nothing, OpenEndpoint, OpenPair, Pair, PairId, PairState, PairStatus,
    PeerState, Reserve, id_index,
};
use abi::mgmt::FRAME_WORDS;
use abi::status::{MailboxStatus, Status};
use abi::wire::{FrameHeader, ManagementBody, ManagementKind};
use card_model::CardSizes;
use firmware_core::connection::{Cause, State, TRANSITIONS};
use firmware_core::watch::PeerCause;
use firmware_core::{ANSWER_TIMEOUT, CONNECT_TIMEOUT, CONTROL_TIMEOUT, FrameWords, TELL_TIMEOUT};
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, HashSet};

const CONNECTED: u32 = PairState::Connected.code() as u32;

pub fn mac(card: usize) -> u64 {
    0x0202 | (card as u64) << 16
}

/// How bad the wire is, in percent of the frames, and how late a frame may be.
#[derive(Clone, Copy)]
pub struct Weather {
    pub lost: u32,
    pub repeated: u32,
    pub hostile: u32,
    /// In percent, those that are later than others,
    pub late: u32,
    /// by up to so many cycles.
    pub latest: u32,
}

pub const CALM: Weather = Weather {
    lost: 0,
    repeated: 0,
    hostile: 0,
    late: 0,
    latest: 1,
};
pub const ROUGH: Weather = Weather {
    lost: 30,
    repeated: 20,
    hostile: 0,
    late: 30,
    latest: 400_000,
};

pub struct World {
    rng: ChaCha8Rng,
    pub now: u32,
    pub cards: Vec<Unit>,
    /// By arrival.
    flying: BTreeMap<(u32, u64), (usize, usize, Wire)>,
    order: u64,
    pub weather: Weather,
    /// Cards that nothing leaves or comes to any more.
    pub dead: Vec<usize>,
    /// Frames seen, to be repeated by somebody hostile.
    pub seen: Vec<(usize, usize, FrameWords)>,
    domains: Vec<u32>,
    /// Job that the next endpoint is opened for.
    pub job: u32,
    /// Open endpoints of each card, and pairs: id, and whether `Accept` made it.
    pub endpoints: Vec<Vec<u32>>,
    pub pairs: Vec<Vec<(u32, bool)>>,
    closed: Vec<Vec<u32>>,
    /// Commands under way: an id that is being closed.
    waiting: Vec<Option<Waiting>>,
    pub transitions: HashSet<(State, Cause, State)>,
    pub peer_transitions: HashSet<(PeerState, PeerCause, PeerState)>,
}

#[derive(Clone, Copy)]
pub enum Waiting {
    Endpoint,
    Pair(bool),
    ClosePair(u32),
    CloseEndpoint(u32),
    Stale,
    Other,
}

impl World {
    fn new(seed: u64, cards: usize, weather: Weather) -> Self {
        let card = |index: usize| {
            let sizes = CardSizes {
                capabilities: CAPABILITY_RULES,
                ..sizes(8, 64, 4)
            };
            let gates = Gates::of(sizes, seed ^ (index as u64) << 32, mac(index));
            boot(gates, 1)
        };
        let mut world = Self {
            rng: ChaCha8Rng::seed_from_u64(seed),
            now: 0,
            cards: (0..cards).map(card).collect(),
            flying: BTreeMap::new(),
            order: 0,
            weather,
            dead: Vec::new(),
            seen: Vec::new(),
            domains: vec![0; cards],
            job: 0,
            endpoints: vec![Vec::new(); cards],
            pairs: vec![Vec::new(); cards],
            closed: vec![Vec::new(); cards],
            waiting: vec![None; cards],
            transitions: HashSet::new(),
            peer_transitions: HashSet::new(),
        };
        for index in 0..cards {
            world.prepare(index);
        }
        world
    }

    /// A domain, after the start.
    fn prepare(&mut self, card: usize) {
        let opened: DomainId =
            call(&mut self.cards[card], Command::OpenDomain, Nothing {}).unwrap();
        self.domains[card] = opened.domain;
        self.catch_up();
    }

    /// A command took time at one card: it passes for the others too.
    pub fn catch_up(&mut self) {
        let nows = self.cards.iter_mut().map(|card| card.card().now);
        self.now = nows
            .max_by_key(|&now| now.wrapping_sub(self.now))
            .unwrap_or(0);
        for card in &mut self.cards {
            card.card().now = self.now;
        }
    }

    fn percent(&mut self, percent: u32) -> bool {
        self.rng.random_ratio(percent, 100)
    }

    /// Something leaves a card.
    fn launch(&mut self, from: usize, wire: Wire) {
        let target = wire.destination();
        let Some(to) = (0..self.cards.len()).find(|&card| mac(card) == target) else {
            return;
        };
        if self.dead.contains(&from) || self.dead.contains(&to) {
            return;
        }
        if let Wire::Firmware(words) = &wire {
            self.seen.push((from, to, *words));
        }
        let inside = from == to;
        let weather = if inside { CALM } else { self.weather };
        for copy in 0..2 {
            let leaves = match copy {
                0 => !self.percent(weather.lost),
                _ => self.percent(weather.repeated),
            };
            if leaves {
                let late = self.percent(weather.late);
                let most = if late { weather.latest } else { 500 };
                self.fly(from, to, wire.clone(), most);
            }
        }
        if self.percent(weather.hostile) {
            let Some(&(from, to, mut words)) = self.seen.choose(&mut self.rng) else {
                return;
            };
            // An old frame, or one in which something is changed: never the addresses, which the gates check.
            for _ in 0..self.rng.random_range(0..3) {
                let at = self.rng.random_range(3..FRAME_WORDS);
                words[at] ^= match self.rng.random_ratio(1, 2) {
                    true => 1 << self.rng.random_range(0..32),
                    false => self.rng.random(),
                };
            }
            self.fly(from, to, Wire::Firmware(words), 400_000);
        }
    }

    fn fly(&mut self, from: usize, to: usize, wire: Wire, most: u32) {
        self.order += 1;
        let arrival = self.now + 100 + self.rng.random_range(0..most);
        self.flying.insert((arrival, self.order), (from, to, wire));
    }

    /// All frames of firmwares that have left so far arrive once more.
    pub fn repeat_all(&mut self) {
        for (from, to, words) in self.seen.clone() {
            self.fly(from, to, Wire::Firmware(words), 20_000);
        }
    }

    /// Lets every card do what it can now, and what leaves them on its way.
    pub fn settle(&mut self) {
        for index in 0..self.cards.len() {
            self.cards[index].card().now = self.now;
            crate::gates::settle(&mut self.cards[index]);
            let gates = self.cards[index].card();
            let left = std::mem::take(&mut gates.outbox);
            self.transitions.extend(gates.transitions.iter());
            self.peer_transitions.extend(gates.peer_transitions.iter());
            for wire in left {
                self.launch(index, wire);
            }
            self.take_answer(index);
        }
    }

    /// Lets time pass.
    pub fn pass(&mut self, cycles: u32) {
        let end = self.now + cycles;
        self.settle();
        while self.now < end {
            let arrival = self.flying.first_key_value().map(|(&(at, _), _)| at);
            // Gates answer, and room for frames comes, at cycles that nobody announces.
            let busy = self.cards.iter().any(|card| {
                let waits = card.waits();
                waits.control || waits.frame_out || waits.reset
            });
            let deadlines = self.cards.iter().filter_map(|card| card.next_deadline());
            let next = deadlines
                .chain(arrival)
                .chain(busy.then_some(self.now + 64))
                .min();
            self.now = next.unwrap_or(end).clamp(self.now + 1, end);
            while let Some((&(at, order), _)) = self.flying.first_key_value()
                && at <= self.now
            {
                let (_, to, wire) = self.flying.remove(&(at, order)).unwrap();
                self.cards[to].card().take_in(&wire);
            }
            self.settle();
        }
    }

    fn take_answer(&mut self, card: usize) {
        let Some(waiting) = self.waiting[card] else {
            return;
        };
        let unit = &mut self.cards[card];
        match waiting {
            Waiting::Endpoint => {
                let Some(opened) = answer::<EndpointId>(unit) else {
                    return;
                };
                if let Ok(EndpointId { endpoint, .. }) = opened {
                    self.endpoints[card].push(endpoint);
                }
            }
            Waiting::Pair(accepts) => {
                let Some(opened) = answer::<PairId>(unit) else {
                    return;
                };
                if let Ok(PairId { pair, .. }) = opened {
                    self.pairs[card].push((pair, accepts));
                }
            }
            Waiting::ClosePair(id) => {
                let Some(closed) = answer::<Nothing>(unit) else {
                    return;
                };
                if closed != Err((MailboxStatus::HardwareTimeout, 0)) {
                    self.pairs[card].retain(|&(pair, _)| pair != id);
                    self.closed[card].push(id);
                }
            }
            Waiting::CloseEndpoint(id) => {
                let Some(closed) = answer::<Nothing>(unit) else {
                    return;
                };
                if closed != Err((MailboxStatus::HardwareTimeout, 0)) {
                    self.endpoints[card].retain(|&endpoint| endpoint != id);
                }
            }
            Waiting::Stale => {
                let Some(refused) = answer::<PairStatus>(unit) else {
                    return;
                };
                promise_eq!(refused, Err((MailboxStatus::NotFound, 0)), "a stale id");
            }
            Waiting::Other => {
                if unit.take_answer().is_none() {
                    return;
                }
            }
        }
        self.waiting[card] = None;
    }

    pub fn open_endpoint(&mut self, card: usize) {
        let domain = self.domains[card];
        let open = OpenEndpoint {
            domain,
            send_log2: 4,
            list_log2: 4,
            completion_log2: 4,
            event_log2: 4,
            completion_owner: NO_ENDPOINT,
            job: self.job,
            ..OpenEndpoint::default()
        };
        give(&mut self.cards[card], Command::OpenEndpoint, open);
        self.waiting[card] = Some(Waiting::Endpoint);
    }

    pub fn connect(&mut self, card: usize, at: usize, to: usize, place: u32, timeout: u32) {
        let connect = Connect {
            endpoint: self.endpoints[card][at],
            credits: self.rng.random_range(1..=4),
            slots: u64::from(self.rng.random::<u32>()) * SLOTS_ALIGN,
            remote_mac: mac(to),
            remote_endpoint: place,
            timeout,
        };
        give(&mut self.cards[card], Command::Connect, connect);
        self.waiting[card] = Some(Waiting::Pair(false));
        self.settle();
    }

    pub fn accept(&mut self, card: usize, at: usize) {
        let accept = Accept {
            endpoint: self.endpoints[card][at],
            credits: self.rng.random_range(1..=4),
            slots: u64::from(self.rng.random::<u32>()) * SLOTS_ALIGN,
        };
        give(&mut self.cards[card], Command::Accept, accept);
        self.waiting[card] = Some(Waiting::Pair(true));
        self.settle();
    }

    /// A host does something.
    fn act(&mut self, card: usize) {
        if self.waiting[card].is_some() || !self.cards[card].is_free() {
            return;
        }
        let endpoints = self.endpoints[card].len();
        if endpoints == 0 || endpoints < 2 && self.percent(30) {
            return self.open_endpoint(card);
        }
        let at = self.rng.random_range(0..endpoints);
        let pair = self.pairs[card].choose(&mut self.rng).copied();
        let stale = self.closed[card].choose(&mut self.rng).copied();
        let unit = &mut self.cards[card];
        match (self.rng.random_range(0..14), pair) {
            (0..4, _) => {
                let to = self.rng.random_range(0..self.cards.len());
                let place = self.rng.random_range(0..2);
                let timeouts = [0, 100_000, 2_000_000];
                let timeout = timeouts[self.rng.random_range(0..3)];
                self.connect(card, at, to, place, timeout);
            }
            (4..8, _) => self.accept(card, at),
            (8..10, Some((pair, _))) => {
                let timeout = self.rng.random_range(0..2) * 50_000;
                give(unit, Command::Disconnect, Disconnect { pair, timeout });
                self.waiting[card] = Some(Waiting::Other);
            }
            (10..12, Some((pair, _))) => {
                give(unit, Command::ClosePair, Pair { pair });
                self.waiting[card] = Some(Waiting::ClosePair(pair));
            }
            (12, _) if stale.is_some() => {
                let pair = stale.unwrap_or_default();
                give(unit, Command::QueryPair, Pair { pair });
                self.waiting[card] = Some(Waiting::Stale);
            }
            (13, _) => {
                let endpoint = self.endpoints[card][at];
                if self.rng.random_ratio(1, 3) {
                    give(unit, Command::CloseEndpoint, CloseEndpoint { endpoint });
                    self.waiting[card] = Some(Waiting::CloseEndpoint(endpoint));
                } else {
                    let reserve = Reserve {
                        endpoint,
                        pairs: self.rng.random_range(0..4),
                        credits: self.rng.random_range(1..6),
                    };
                    give(unit, Command::Reserve, reserve);
                    self.waiting[card] = Some(Waiting::Other);
                }
            }
            _ => {}
        }
        self.settle();
    }

    /// The firmware of a card is started again.
    fn restart(&mut self, card: usize, forgets: bool) {
        let mut gates = std::mem::replace(self.cards[card].card(), Gates::new(0, 0));
        if forgets {
            self.rng.fill(&mut gates.model.persistent);
            gates.epochs.clear();
        }
        gates.delay = 0;
        gates.silent_until = self.now;
        self.cards[card] = boot(gates, 1);
        promise!(self.cards[card].is_up());
        self.endpoints[card].clear();
        self.pairs[card].clear();
        self.closed[card].clear();
        self.waiting[card] = None;
        self.prepare(card);
    }

    pub fn query(&mut self, card: usize, pair: u32) -> Option<PairStatus> {
        let status = call(&mut self.cards[card], Command::QueryPair, Pair { pair });
        self.catch_up();
        match status {
            Ok(status) => Some(status),
            Err(refusal) => {
                promise_eq!(refusal, (MailboxStatus::NotFound, 0));
                None
            }
        }
    }

    /// The wire is quiet, the gates answer, and hosts give no command: all that was begun must come to an end.
    pub fn calm_down(&mut self) {
        self.weather = CALM;
        for card in &mut self.cards {
            card.card().silent_until = card.card().now;
        }
        self.pass(CONNECT_TIMEOUT + 2 * ANSWER_TIMEOUT + 4 * CONTROL_TIMEOUT);
        let ended = [
            PairState::Open,
            PairState::Connected,
            PairState::Failed,
            PairState::Accepting,
            PairState::Refused,
            PairState::Disconnected,
        ];
        for card in 0..self.cards.len() {
            promise!(self.waiting[card].is_none(), "a command without answer");
            promise_eq!(self.cards[card].next_deadline(), None, "under way for ever");
            for (pair, _) in self.pairs[card].clone() {
                let Some(status) = self.query(card, pair) else {
                    continue;
                };
                let ended = ended
                    .iter()
                    .any(|one| u32::from(one.code()) == status.state);
                promise!(ended, "pair {pair:#x} stays in state {}", status.state);
            }
        }
    }

    /// Pairs that the gates of a card hold and have not failed.
    fn alive(&mut self, card: usize) -> Vec<(u16, Held)> {
        let gates = self.cards[card].card();
        let held = gates.pairs.iter();
        let alive = held.filter(|(index, _)| !gates.is_failed(**index));
        alive.map(|(&index, &held)| (index, held)).collect()
    }

    /// Both ends agree, and there is one pair between two endpoints. Where a firmware restarted or a pair was closed, an end may stand alone.
    fn check_agreement(&mut self, both: bool) {
        let alive: Vec<_> = (0..self.cards.len()).map(|card| self.alive(card)).collect();
        for (card, pairs) in alive.iter().enumerate() {
            let mut peers = HashSet::new();
            for (index, held) in pairs {
                let ours = held.setup;
                let peer = (ours.endpoint, ours.remote_mac, ours.remote_endpoint);
                let itself = ours.remote_mac == mac(card);
                promise!(itself || peers.insert(peer), "two pairs for one: {peer:?}");
                let to = (0..alive.len())
                    .find(|&to| mac(to) == ours.remote_mac)
                    .unwrap();
                let other = alive[to].iter().find(|(at, other)| {
                    *at == ours.remote_pair && other.setup.cookie == ours.cookie
                });
                let Some((_, other)) = other else {
                    promise!(!both, "pair {index} of card {card} has no other end");
                    continue;
                };
                let theirs = other.setup;
                promise_eq!(theirs.remote_pair, *index);
                promise_eq!(theirs.remote_mac, mac(card));
                promise_eq!(theirs.remote_endpoint, u16::from(ours.endpoint));
                promise_eq!(ours.remote_endpoint, u16::from(theirs.endpoint));
                promise_eq!(
                    (ours.epoch, ours.remote_epoch),
                    (theirs.remote_epoch, theirs.epoch)
                );
                promise_eq!(
                    (ours.local_credits, ours.remote_credits),
                    (theirs.remote_credits, theirs.local_credits)
                );
            }
        }
    }

    /// No acceptor took a pair for connected that its peer's gates never knew.
    fn check_confirmed(&mut self) {
        for card in 0..self.cards.len() {
            for (pair, accepts) in self.pairs[card].clone() {
                let Some(status) = self.query(card, pair) else {
                    continue;
                };
                if status.state != CONNECTED || !accepts {
                    continue;
                }
                let cookie = self.cards[card].card().pairs[&id_index(pair)].setup.cookie;
                let to = (0..self.cards.len()).find(|&to| mac(to) == status.remote_mac);
                let known = self.cards[to.unwrap()].card().cookies.contains(&cookie);
                promise!(known, "card {card} is connected to nobody");
            }
        }
    }
}

/// Opens an endpoint on each of two cards.
pub fn two(seed: u64, weather: Weather) -> World {
    several(2, seed, weather)
}

pub fn several(cards: usize, seed: u64, weather: Weather) -> World {
    let mut world = World::new(seed, cards, weather);
    for card in 0..cards {
        world.cards[card].card().delay = 100;
        world.open_endpoint(card);
    }
    world.pass(20_000);
    promise!(world.endpoints.iter().all(|endpoints| endpoints.len() == 1));
    world
}

pub fn connected(world: &mut World, card: usize) -> usize {
    let pairs = world.pairs[card].clone();
    let status = pairs.iter().map(|&(pair, _)| world.query(card, pair));
    let status: Vec<_> = status.collect();
    let state = |status: &&Option<PairStatus>| status.is_some_and(|one| one.state == CONNECTED);
    status.iter().filter(state).count()
}

/// A connects, B accepts.
fn they_connect(seed: u64) {
    let mut world = two(seed, ROUGH);
    if seed.is_multiple_of(2) {
        world.connect(0, 0, 1, 0, 0);
        let wait = world.rng.random_range(0..20_000);
        world.pass(wait);
    }
    world.accept(1, 0);
    world.accept(1, 0);
    if seed % 2 == 1 {
        world.connect(0, 0, 1, 0, 0);
    }
    world.calm_when_done();
    let refused = world.pairs[0].first().map(|&(pair, _)| pair);
    let status = refused.and_then(|pair| world.query(0, pair)).unwrap();
    let refused = u32::from(ConnectReason::NotAccepting.code());
    if status.reason != refused {
        promise_eq!((connected(&mut world, 0), connected(&mut world, 1)), (1, 1));
        world.check_agreement(true);
        let told = &world.cards[1].card().log;
        let set = told.iter().filter(|one| one.0 == Operation::PairSet);
        promise_eq!(set.count(), 1, "a repetition took an offer of its own");
    }
}

impl World {
    /// The weather stays until all exchanges have had most of their time.
    fn calm_when_done(&mut self) {
        self.pass(ANSWER_TIMEOUT - 500_000);
        self.calm_down();
    }
}

/// Both connect at once, and nobody accepts.
fn they_connect_at_once(seed: u64) {
    let mut world = two(seed, ROUGH);
    world.connect(0, 0, 1, 0, 0);
    world.connect(1, 0, 0, 0, 0);
    world.calm_when_done();
    // One of them may have been refused before the other had begun; never when the requests cross.
    promise_eq!((connected(&mut world, 0), connected(&mut world, 1)), (1, 1));
    world.check_agreement(true);
}

/// They connect, and one of them or both disconnect.
fn they_disconnect(seed: u64) {
    let mut world = two(seed, CALM);
    let busy = world.rng.random_range(0..200_000);
    world.cards[0].card().busy = busy;
    world.accept(1, 0);
    world.connect(0, 0, 1, 0, 0);
    world.pass(50_000);
    promise_eq!((connected(&mut world, 0), connected(&mut world, 1)), (1, 1));
    world.weather = ROUGH;
    for card in [0, 1] {
        if card == 1 && !seed.is_multiple_of(3) {
            continue;
        }
        let (pair, timeout) = (world.pairs[card][0].0, 0);
        give(
            &mut world.cards[card],
            Command::Disconnect,
            Disconnect { pair, timeout },
        );
        world.waiting[card] = Some(Waiting::Other);
        let wait = world.rng.random_range(0..3_000);
        world.pass(wait);
    }
    world.calm_when_done();
    for card in [0, 1] {
        let (pair, _) = world.pairs[card][0];
        let state = world.query(card, pair).unwrap().state;
        promise_eq!(state, u32::from(PairState::Disconnected.code()));
        let causes: Vec<_> = world.cards[card]
            .card()
            .raised
            .iter()
            .map(|event| event.1)
            .collect();
        let failed = causes.contains(&EventCause::LinkError.code());
        promise!(!failed, "a clean end looks like a crash");
        let [own, peer] = [EventCause::Disconnected, EventCause::PeerClosed].map(EventCause::code);
        let end = match (card, seed.is_multiple_of(3)) {
            (0, false) => own,
            (1, false) => peer,
            // Both began.
            _ => causes
                .get(1)
                .copied()
                .filter(|&end| end == own)
                .unwrap_or(peer),
        };
        promise_eq!(
            causes,
            [EventCause::PairConnected.code(), end],
            "one event tells of the end"
        );
    }
}

/// Each frame of a handshake comes many times more at once.
fn repetitions_come_at_once(seed: u64) {
    let mut world = two(seed, CALM);
    world.accept(1, 0);
    world.connect(0, 0, 1, 0, 0);
    world.pass(50_000);
    promise_eq!((connected(&mut world, 0), connected(&mut world, 1)), (1, 1));
    for (from, to, words) in std::mem::take(&mut world.seen) {
        for _ in 0..20 {
            world.fly(from, to, Wire::Firmware(words), 5_000);
        }
    }
    world.pass(10_000);
    for card in [0, 1] {
        let answers = world.seen.iter().filter(|(from, ..)| *from == card);
        promise!(
            answers.count() <= 1,
            "card {card} has several frames under way"
        );
    }
    world.calm_down();
    world.check_agreement(true);
}

/// Somebody claims to remember epochs that never were, and the firmware restarts in between.
fn epochs_are_claimed(seed: u64) {
    let mut world = two(seed, CALM);
    world.connect(0, 0, 1, 0, 0);
    world.pass(20_000);
    let (_, _, request) = *world.seen.first().expect("a request");
    let epoch = |world: &mut World| -> u16 {
        let open = OpenPair {
            endpoint: world.endpoints[1][0],
            credits: 1,
            slots: 64,
        };
        let opened: PairId = call(&mut world.cards[1], Command::OpenPair, open).unwrap();
        let pair = Pair { pair: opened.pair };
        let _: Nothing = call(&mut world.cards[1], Command::ClosePair, pair).unwrap();
        world.catch_up();
        opened.epoch as u16
    };
    let mut raised = 0;
    for claim in 0..6 {
        if claim == 4 {
            world.restart(1, false);
            world.open_endpoint(1);
            world.pass(20_000);
        }
        world.accept(1, 0);
        let before = epoch(&mut world);
        let mut words = request;
        // Another card each time, which nobody answers to.
        words[2] = 0x5500 + claim;
        let claimed = ManagementBody {
            transaction: 1 + claim,
            remembered_epoch: before.wrapping_add(0x7000),
            ..body(&words)
        };
        let put = claimed.to_words();
        let into = words[FrameHeader::BYTES / 4..].chunks_exact_mut(2);
        for (into, word) in into.zip(put) {
            (into[0], into[1]) = (word as u32, (word >> 32) as u32);
        }
        world.fly(0, 1, Wire::Firmware(words), 10);
        world.pass(20_000);
        raised += u32::from(epoch(&mut world).wrapping_sub(before));
    }
    promise!((0x7000..=0x8000).contains(&raised), "raised by {raised:#x}");
}

/// A frame of an earlier incarnation comes late, when a later one has been connected and has gone.
fn an_old_request_comes_late(seed: u64) {
    let mut world = two(seed, CALM);
    for _ in 0..2 {
        world.accept(1, 0);
        world.connect(0, 0, 1, 0, 0);
        world.pass(50_000);
        promise_eq!(connected(&mut world, 0), 1);
        for (_, held) in world.alive(1) {
            let peer = (held.setup.remote_mac, held.setup.remote_endpoint);
            let epochs = &mut world.cards[1].card().connected_epochs;
            epochs.insert(peer, held.setup.remote_epoch);
        }
        for card in [1, 0] {
            for (pair, _) in std::mem::take(&mut world.pairs[card]) {
                let closed = call(&mut world.cards[card], Command::ClosePair, Pair { pair });
                promise_eq!(closed, Ok(Nothing {}));
            }
        }
        let endpoint = world.endpoints[0].remove(0);
        let close = CloseEndpoint { endpoint };
        let closed = call(&mut world.cards[0], Command::CloseEndpoint, close);
        promise_eq!(closed, Ok(Nothing {}));
        world.catch_up();
        world.open_endpoint(0);
        world.pass(20_000);
    }
    world.accept(1, 0);
    let first = world.seen.iter().find(|(from, _, words)| {
        let kind = ManagementKind::ConnectRequest.code();
        *from == 0 && words[FrameHeader::BYTES / 4] as u8 == kind
    });
    let (from, to, words) = *first.expect("a request");
    world.fly(from, to, Wire::Firmware(words), 10);
    world.pass(20_000);
    let refused = world.seen.last().expect("an answer").2;
    let body = body(&refused);
    promise_eq!(body.reason, ConnectReason::StaleEpoch.code());
    world.calm_down();
    world.check_agreement(true);
}

pub fn body(words: &FrameWords) -> ManagementBody {
    let words = &words[FrameHeader::BYTES / 4..];
    let word = |k: usize| u64::from(words[2 * k]) | u64::from(words[2 * k + 1]) << 32;
    ManagementBody::from_words(&std::array::from_fn(word))
}

/// What is reserved is there, however often it is used.
fn a_reservation_is_kept(seed: u64) {
    let mut world = two(seed, CALM);
    let endpoint = world.endpoints[0][0];
    let reserve = Reserve {
        endpoint,
        pairs: 2,
        credits: 4,
    };
    let reserved = call(&mut world.cards[0], Command::Reserve, reserve);
    promise_eq!(reserved, Ok(Nothing {}));
    let accept = Accept {
        endpoint,
        credits: 4,
        slots: 64,
    };
    for _ in 0..3 {
        let pair = || call::<_, PairId>(&mut world.cards[0], Command::Accept, accept);
        let pairs: Vec<_> = std::iter::repeat_with(pair).take(8).collect();
        promise!(pairs[..8].iter().all(Result::is_ok));
        for opened in pairs.into_iter().flatten() {
            let close = Pair { pair: opened.pair };
            let closed = call(&mut world.cards[0], Command::ClosePair, close);
            promise_eq!(closed, Ok(Nothing {}));
        }
        // All that isn't reserved is taken by somebody else.
        world.catch_up();
        let mut taken = Vec::new();
        if world.endpoints[0].len() < 2 {
            world.open_endpoint(0);
            world.pass(20_000);
        }
        let others = Accept {
            endpoint: world.endpoints[0][1],
            credits: 1,
            slots: 64,
        };
        while let Ok(other) = call::<_, PairId>(&mut world.cards[0], Command::Accept, others) {
            taken.push(other.pair);
        }
        promise_eq!(taken.len(), 6, "two of eight are set aside");
        for pair in taken {
            let closed = call(&mut world.cards[0], Command::ClosePair, Pair { pair });
            promise_eq!(closed, Ok(Nothing {}));
        }
    }
}

/// Hosts do what they like, firmwares restart, gates fall silent, and frames are hostile.
fn anything_happens(seed: u64) -> HashSet<(State, Cause, State)> {
    let cards = 2 + (seed % 2) as usize;
    let weather = Weather {
        lost: [ROUGH.lost, 70][usize::from(seed % 5 == 4)],
        hostile: 10 * u32::from(seed % 4 == 3),
        ..ROUGH
    };
    let mut world = World::new(seed, cards, weather);
    let violent = seed % 3 == 2;
    for card in &mut world.cards {
        card.card().delay = 200;
        card.card().forgets_late = violent;
        card.card().busy = [30_000, 600_000][usize::from(seed % 7 == 6)];
    }
    for _ in 0..150 {
        let card = world.rng.random_range(0..cards);
        world.act(card);
        let most = [100, 5_000, 200_000][world.rng.random_range(0..3)];
        let wait = world.rng.random_range(0..most);
        world.pass(wait);
        if violent && world.percent(4) {
            let forgets = world.percent(30);
            world.restart(card, forgets);
            world.cards[card].card().delay = 200;
        }
        if violent && world.percent(3) {
            let silent = world.rng.random_range(0..2 * CONTROL_TIMEOUT);
            let now = world.now;
            world.cards[card].card().silent_until = now + silent;
        }
        if world.percent(3) {
            let alive = world.alive(card);
            if let Some(&(index, _)) = alive.choose(&mut world.rng) {
                let failed = u64::from(Status::LinkError.code());
                world.cards[card].card().fail(index, failed);
            }
        }
    }
    world.calm_down();
    world.check_agreement(false);
    if !violent && weather.hostile == 0 {
        world.check_confirmed();
    }
    world.transitions
}

/// Both connect at once, and the gates don't answer before both have given up.
fn they_give_up_while_gates_are_silent() -> HashSet<(State, Cause, State)> {
    let mut world = two(1, CALM);
    let timeout = CONTROL_TIMEOUT / 2;
    for card in [0, 1] {
        world.cards[card].card().silent_until = world.now + 2 * timeout;
        world.connect(card, 0, 1 - card, 0, timeout);
    }
    world.calm_when_done();
    world.transitions
}

/// The initiator's gates are silent when the peer accepts.
fn the_initiators_gates_are_silent() -> HashSet<(State, Cause, State)> {
    let mut world = two(1, CALM);
    world.accept(1, 0);
    let silent_until = world.now + 2 * CONTROL_TIMEOUT;
    world.cards[0].card().silent_until = silent_until;
    world.connect(0, 0, 1, 0, 0);
    world.pass(3 * CONTROL_TIMEOUT);
    let reason = ConnectReason::HardwareTimeout.code().into();
    promise_eq!(last(&mut world, 0), (PairState::Refused, reason));
    world.calm_down();
    world.transitions
}

/// Gates are silent when the peer disconnects: it gives up, and the host closes the pair.
fn the_peers_gates_are_silent(seed: u64) -> HashSet<(State, Cause, State)> {
    let mut world = two(seed, CALM);
    world.accept(1, 0);
    world.connect(0, 0, 1, 0, 0);
    world.pass(50_000);
    let silent_until = world.now + 2 * TELL_TIMEOUT;
    world.cards[1].card().silent_until = silent_until;
    let (pair, _) = world.pairs[0][0];
    let timeout = 0;
    give(
        &mut world.cards[0],
        Command::Disconnect,
        Disconnect { pair, timeout },
    );
    world.waiting[0] = Some(Waiting::Other);
    world.pass(TELL_TIMEOUT + 50_000);
    let (pair, _) = world.pairs[1][0];
    give(&mut world.cards[1], Command::ClosePair, Pair { pair });
    world.waiting[1] = Some(Waiting::ClosePair(pair));
    world.pass(3 * TELL_TIMEOUT);
    promise_eq!(last(&mut world, 0).0, PairState::Disconnected);
    promise!(world.cards[1].card().pairs.is_empty());
    world.calm_down();
    world.transitions
}

/// The initiator has gone when the acceptor answers: the acceptor must not take that for a connection.
fn the_initiator_goes(seed: u64) {
    let mut world = two(seed, CALM);
    world.accept(1, 0);
    world.connect(0, 0, 1, 0, 0);
    let wait = world.rng.random_range(0..1_500);
    world.pass(wait);
    let (pair, _) = world.pairs[0][0];
    let closed = call(&mut world.cards[0], Command::ClosePair, Pair { pair });
    promise_eq!(closed, Ok(Nothing {}));
    world.catch_up();
    world.pass(50_000);
    world.check_confirmed();
    world.calm_down();
    world.check_confirmed();
}

/// State of the last pair of a card, and why it was refused.
fn last(world: &mut World, card: usize) -> (PairState, u32) {
    let (pair, _) = *world.pairs[card].last().expect("a pair");
    let status = world.query(card, pair).expect("an open pair");
    let state = PairState::from_code(status.state as u8).expect("a state");
    (state, status.reason)
}

const DONE: (PairState, u32) = (PairState::Connected, 0);

#[test]
pub fn a_refusal_says_why() {
    let mut world = two(1, CALM);
    let refused = |reason: ConnectReason| (PairState::Refused, u32::from(reason.code()));
    world.connect(0, 0, 1, 0, 0);
    world.pass(20_000);
    promise_eq!(last(&mut world, 0), refused(ConnectReason::NotAccepting));
    world.connect(0, 0, 1, 1, 0);
    world.pass(20_000);
    promise_eq!(last(&mut world, 0), refused(ConnectReason::NoEndpoint));
    world.connect(0, 0, 7, 0, 0);
    world.pass(CONNECT_TIMEOUT + 1000);
    promise_eq!(last(&mut world, 0), refused(ConnectReason::TimedOut));
    world.accept(1, 0);
    world.accept(1, 0);
    world.connect(0, 0, 1, 0, 0);
    world.pass(20_000);
    promise_eq!(last(&mut world, 0), DONE);
    world.connect(0, 0, 1, 0, 0);
    world.pass(20_000);
    promise_eq!(
        last(&mut world, 0),
        refused(ConnectReason::AlreadyConnected)
    );
    promise_eq!(
        connected(&mut world, 1),
        1,
        "the other offer waits for somebody else"
    );
}

#[test]
pub fn endpoints_of_different_jobs_are_never_connected() {
    const JOB: u32 = 0xab_cdef;
    let mut world = two(1, CALM);
    let refused = u32::from(ConnectReason::WrongJob.code());
    world.job = JOB;
    for card in 0..2 {
        world.open_endpoint(card);
    }
    world.pass(20_000);
    world.accept(1, 1);
    world.connect(0, 0, 1, 1, 0);
    world.pass(20_000);
    promise_eq!(last(&mut world, 0), (PairState::Refused, refused));
    promise_eq!(
        connected(&mut world, 1),
        0,
        "the offer waits for its own job"
    );
    world.connect(0, 1, 1, 1, 0);
    world.pass(20_000);
    promise_eq!(last(&mut world, 0), DONE);

    // Somebody tells the acceptor what it wants to hear. Its answer tells the initiator.
    world.accept(1, 1);
    world.connect(0, 0, 1, 1, 0);
    let (_, _, wire) = world.flying.pop_first().expect("a request").1;
    let Wire::Firmware(mut words) = wire else {
        panic!("a request");
    };
    let mut told = body(&words);
    promise_eq!(told.job, 0);
    told.job = JOB;
    let at = FrameHeader::BYTES / 4;
    for (pair, word) in words[at..].chunks_exact_mut(2).zip(told.to_words()) {
        (pair[0], pair[1]) = (word as u32, (word >> 32) as u32);
    }
    world.fly(0, 1, Wire::Firmware(words), 1);
    world.pass(20_000);
    promise_eq!(last(&mut world, 0), (PairState::Refused, refused));
    world.pass(CONNECT_TIMEOUT);
    promise_eq!(connected(&mut world, 1), 1, "only that of its own job");
}

#[test]
pub fn versions_that_do_not_agree_are_named_on_both_sides() {
    let mut world = two(1, CALM);
    world.accept(1, 0);
    world.connect(0, 0, 1, 0, 0);
    let (_, _, wire) = world.flying.pop_first().expect("a request").1;
    let Wire::Firmware(mut words) = wire else {
        panic!("a request");
    };
    // The version is the byte behind the EtherType; both sides speak the same one really.
    let version = |words: &mut FrameWords, version: u32| {
        words[3] = words[3] & 0xff00_ffff | version << 16;
    };
    let [theirs, another] = [1, 2].map(|ahead| u32::from(abi::wire::VERSION) + ahead);
    version(&mut words, theirs);
    world.fly(0, 1, Wire::Firmware(words), 1);
    world.pass(150);
    let (_, _, wire) = world.flying.pop_first().expect("a refusal").1;
    let Wire::Firmware(mut words) = wire else {
        panic!("a refusal");
    };
    let refusal = body(&words);
    promise_eq!(refusal.reason, ConnectReason::WrongVersion.code());
    promise_eq!(refusal.detail, u16::from(abi::wire::VERSION));
    version(&mut words, another);
    world.fly(1, 0, Wire::Firmware(words), 1);
    world.pass(1000);
    let reason = u32::from(ConnectReason::WrongVersion.code()) | another << 16;
    promise_eq!(last(&mut world, 0), (PairState::Refused, reason));
    world.calm_down();
}

#[test]
pub fn a_frame_is_answered_while_the_gates_have_a_request() {
    let mut world = two(1, CALM);
    let silent_until = world.now + CONTROL_TIMEOUT / 2;
    world.cards[1].card().silent_until = silent_until;
    let counter = CounterId { counter: 0 };
    give(&mut world.cards[1], Command::ReadCounter, counter);
    world.waiting[1] = Some(Waiting::Other);
    world.connect(0, 0, 1, 1, 0);
    world.pass(20_000);
    promise!(world.waiting[1].is_some(), "the gates are silent");
    let reason = u32::from(ConnectReason::NoEndpoint.code());
    promise_eq!(last(&mut world, 0), (PairState::Refused, reason));
}

#[test]
pub fn an_end_that_was_left_alone_does_not_lock_its_peer_out() {
    let mut world = two(1, CALM);
    world.accept(1, 0);
    world.accept(1, 0);
    world.connect(0, 0, 1, 0, 0);
    world.pass(20_000);
    // It is closed, and the peer doesn't hear of it.
    let (pair, _) = world.pairs[0].pop().unwrap();
    let closed = call(&mut world.cards[0], Command::ClosePair, Pair { pair });
    promise_eq!(closed, Ok(Nothing {}));
    world.cards[0].card().outbox.clear();
    promise_eq!(connected(&mut world, 1), 1);
    world.catch_up();
    world.connect(0, 0, 1, 0, 0);
    world.pass(500_000);
    promise_eq!(last(&mut world, 0), DONE);
    world.calm_down();
    world.check_agreement(true);
}

/// Epochs started again with the firmware, and frames of the time before were the new endpoint's.
#[test]
pub fn cards_that_have_forgotten_their_epochs_go_on_after_what_their_peers_remember() {
    for forgetful in [0, 1] {
        let mut world = two(1, CALM);
        let mut highest = [0, 0];
        for round in 0..4 {
            world.accept(1, 0);
            world.connect(0, 0, 1, 0, 0);
            world.pass(500_000);
            promise_eq!(last(&mut world, 0), DONE, "round {round}");
            world.check_agreement(true);
            let (_, held) = world.alive(0)[0];
            let epochs = [held.setup.epoch, held.setup.remote_epoch];
            promise!(round == 0 || epochs[forgetful] == highest[forgetful] + 1);
            highest = epochs;
            world.restart(forgetful, true);
            world.open_endpoint(forgetful);
            world.pass(20_000);
        }
    }
}

#[test]
fn endpoints_of_one_card_connect_and_one_connects_to_itself() {
    let mut world = several(1, 1, ROUGH);
    world.open_endpoint(0);
    world.pass(20_000);
    world.accept(0, 1);
    world.connect(0, 0, 0, 1, 0);
    world.pass(20_000);
    promise_eq!(connected(&mut world, 0), 2);
    // Itself: by an offer, and by two that connect at once.
    world.accept(0, 0);
    world.connect(0, 0, 0, 0, 0);
    world.pass(20_000);
    promise_eq!(connected(&mut world, 0), 4);
    world.connect(0, 1, 0, 1, 0);
    world.connect(0, 1, 0, 1, 0);
    world.calm_down();
    let both = connected(&mut world, 0);
    promise!(
        both == 4 || both == 6,
        "one of them may have been refused before the other began"
    );
    world.check_agreement(true);
}

#[test]
pub fn offers_are_served_oldest_first() {
    let mut world = several(3, 1, CALM);
    for _ in 0..3 {
        world.accept(0, 0);
    }
    // The oldest is withdrawn and given again: it is the youngest now.
    let (pair, _) = world.pairs[0].remove(0);
    let closed = call(&mut world.cards[0], Command::ClosePair, Pair { pair });
    promise_eq!(closed, Ok(Nothing {}));
    world.catch_up();
    world.accept(0, 0);
    world.connect(1, 0, 0, 0, 0);
    world.pass(20_000);
    world.connect(2, 0, 0, 0, 0);
    world.pass(20_000);
    let peers: Vec<_> = world.pairs[0]
        .clone()
        .into_iter()
        .map(|(pair, _)| {
            let status = world.query(0, pair).unwrap();
            (status.state == CONNECTED).then_some(status.remote_mac)
        })
        .collect();
    promise_eq!(peers, [Some(mac(1)), Some(mac(2)), None]);
}

#[test]
pub fn more_handshakes_than_there_is_room_for_are_refused() {
    let mut fw = boot(Gates::of(sizes(32, 256, 4), 1, mac(0)), 1);
    let DomainId { domain } = call(&mut fw, Command::OpenDomain, Nothing {}).unwrap();
    let open = OpenEndpoint {
        domain,
        send_log2: 4,
        list_log2: 4,
        completion_log2: 4,
        event_log2: 4,
        completion_owner: NO_ENDPOINT,
        ..OpenEndpoint::default()
    };
    let opened: EndpointId = call(&mut fw, Command::OpenEndpoint, open).unwrap();
    let connect = Connect {
        endpoint: opened.endpoint,
        credits: 1,
        slots: 64,
        remote_mac: mac(1),
        remote_endpoint: 0,
        timeout: 0,
    };
    for k in 0..=firmware_core::MOST_HANDSHAKES {
        let begun = call::<_, PairId>(&mut fw, Command::Connect, connect);
        promise_eq!(begun.is_ok(), k < firmware_core::MOST_HANDSHAKES);
        promise!(begun.is_ok() || begun == Err((MailboxStatus::Busy, 0)));
    }
}

const SEEDS: u64 = 60;

pub fn for_seeds(mut scenario: impl FnMut(u64)) {
    for seed in 0..SEEDS {
        println!("seed {seed}");
        scenario(seed);
    }
}

#[test]
pub fn a_connect_and_an_accept_become_one_pair_whatever_happens_to_the_frames() {
    for_seeds(they_connect);
}

#[test]
pub fn two_that_connect_at_once_get_one_pair() {
    for_seeds(they_connect_at_once);
}

#[test]
pub fn a_disconnect_is_a_clean_end_for_both() {
    for_seeds(they_disconnect);
}

#[test]
pub fn a_request_of_an_earlier_incarnation_is_refused_however_late() {
    for_seeds(an_old_request_comes_late);
}

/// As it broke: a card answered each repetition, and the answers filled the places of others.
#[test]
pub fn one_frame_of_a_pair_is_under_way_however_often_its_peer_repeats() {
    for_seeds(repetitions_come_at_once);
}

/// As it broke: any frame raised an epoch by up to 32,767, and three made it go round.
#[test]
pub fn no_frames_together_make_an_epoch_go_round() {
    epochs_are_claimed(1);
}

#[test]
pub fn a_reservation_is_there_again_when_its_pairs_are_closed() {
    a_reservation_is_kept(1);
}

#[test]
pub fn an_offer_is_connected_only_when_the_initiator_has_confirmed() {
    for_seeds(the_initiator_goes);
}

#[test]
fn whatever_happens_all_comes_to_an_end_and_both_ends_agree() {
    let mut reached = the_peers_gates_are_silent(1);
    for seed in 0..400 {
        println!("seed {seed}");
        reached.extend(anything_happens(seed));
    }
    reached.extend(they_give_up_while_gates_are_silent());
    reached.extend(the_initiators_gates_are_silent());
    reached.extend(crate::peers::transitions());
    // Hosts that give both sides by hand.
    reached.extend(commands::pairs_are_joined_and_closed());
    reached.extend(commands::a_pair_is_unsettled(false));
    reached.extend(commands::a_pair_is_unsettled(true));
    let missing: Vec<_> = TRANSITIONS
        .iter()
        .filter(|row| !reached.contains(row))
        .collect();
    promise!(missing.is_empty(), "never seen: {missing:?}");
}
