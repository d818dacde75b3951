//! Random programs of two to four cards under random schedules: whatever the hosts post and the wires do, each request completes exactly once
//! and as its opcode's row says, each message is taken once, whole and in order, each put is written, and each get read, or refused as it is to be, and the credits
//! of every pair add up after every action.

mod gets;
mod puts;

use std::collections::{BTreeMap, HashMap, HashSet};

use abi::capability::{CAPABILITY_GET, CAPABILITY_PUT};
use abi::completion::{COMPLETION_MORE, Completion};
use abi::control::{Operation, PairReport, RuleSetup};
use abi::limits::EAGER_MAX;
use abi::mailbox::PairState;
use abi::opcode::{Completes, OPCODES, OpcodeRow, WorkRing};
use abi::register::{LIST_HEAD, SEND_HEAD};
use abi::request::{
    FLAG_ANY_SOURCE, FLAG_MULTI, FLAG_NOTHING_KEPT, FLAG_READY, FLAG_RESUME, ListRequest, Opcode,
    SendRequest,
};
use abi::status::Status;
use abi::wire::TRAILER_BYTES;
use card_model::memory::Pieces;
use card_model::{Break, Card, Schedule, Seeded};
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::host_side::{BUFFER_BYTES, HostSide, scarce, tiny};
use crate::net::{End, Net};

const LOG2: u8 = 6;
const ENDPOINTS: u8 = 2;
/// Requests of one endpoint that may be outstanding.
const OUTSTANDING: usize = 90;
const MULTI_BYTES: u64 = 4096;
/// List of their buffers.
const MULTI: usize = 2;
const TAGS: [u64; 3] = [0, 1, 1 << 63 | 1];

/// A message that was sent.
#[derive(Clone, Debug)]
struct Message {
    from: End,
    to: End,
    context: u16,
    match_bits: u64,
    length: u64,
}

impl Message {
    fn byte(id: u64, at: u64) -> u8 {
        (id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8 ^ (at as u8).wrapping_mul(7)
    }

    fn bytes(id: u64, length: u64) -> Vec<u8> {
        (0..length).map(|at| Self::byte(id, at)).collect()
    }
}

/// A context that a rule of each endpoint revokes, and of which nothing is sent.
const REVOKED: u16 = 7;

/// What is wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spoilt {
    Not,
    /// A bit that it may not have is set.
    Malformed,
    /// The key is nobody's.
    Key,
    /// The pair is another's, or nobody's.
    Pair,
    /// It is longer than the longest message.
    Length,
    /// Its buffer is in the region, and not in memory.
    Memory,
    /// Its context is revoked.
    Revoked,
}

/// A request that hasn't completed.
#[derive(Clone, Debug)]
struct Pending {
    row: &'static OpcodeRow,
    spoilt: Spoilt,
    target: u32,
    /// Its buffer and how much of it is left, and the list that it comes from.
    offset: u64,
    length: u64,
    buffer: Option<(usize, u64)>,
    /// Completions before.
    before: u32,
    /// Of a send: the message.
    message: Option<u64>,
}

#[derive(Default)]
struct Host {
    next: u32,
    pending: BTreeMap<u32, Pending>,
    /// Free buffers: of sends and puts, of receives, of multi-receives, of gets.
    free: [Vec<u64>; 4],
    /// Claims that are good.
    claims: Vec<(u32, u64)>,
    /// Requests that ended with `Cancelled`.
    cancelled: HashMap<u32, u32>,
}

/// What may go wrong.
#[derive(Clone, Copy, Debug)]
struct Weather {
    /// Frames of a thousand that are lost, that are repeated, that come late, and of which a bit is wrong.
    lost: u32,
    repeated: u32,
    late: u32,
    corrupted: u32,
    /// Pairs fail on purpose, and memory goes away.
    failures: bool,
}

const CALM: Weather = Weather {
    lost: 0,
    repeated: 0,
    late: 0,
    corrupted: 0,
    failures: false,
};
const BAD_WIRES: Weather = Weather {
    lost: 80,
    repeated: 50,
    late: 50,
    corrupted: 20,
    failures: false,
};
const STORM: Weather = Weather {
    lost: 20,
    repeated: 10,
    late: 10,
    corrupted: 5,
    failures: true,
};

struct World {
    net: Net,
    rng: ChaCha8Rng,
    hosts: Vec<Vec<Host>>,
    messages: HashMap<u64, Message>,
    taken: HashSet<u64>,
    /// Messages that their sends said are with the peer.
    delivered: HashSet<u64>,
    /// Latest message taken of those that the same receives match.
    latest: HashMap<(usize, u16, u16, u64), u64>,
    next_message: u64,
    /// Puts, numbered as messages are, and those of each pair in their order.
    puts: HashMap<u64, puts::Put>,
    put_order: BTreeMap<(usize, u16), Vec<u64>>,
    /// Key that the peer of each pair has, by card and pair.
    keys: HashMap<(usize, u16), u64>,
    /// The same, and the keys of what the peers may read.
    gets: HashMap<u64, gets::Get>,
    read_keys: HashMap<(usize, u16), u64>,
    /// Latest of a pair's sends, puts and gets that were told to have come to the peer.
    heard: HashMap<(usize, u16), u64>,
    weather: Weather,
    /// How often each opcode has ended with each status.
    seen: HashMap<(Opcode, Status), u32>,
}

impl World {
    fn new(seed: u64, weather: Weather, broken: Break) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let cards = rng.random_range(2..=4);
        let sizes = puts::with_puts(if rng.random() { tiny() } else { scarce() });
        let mut net = Net::new(cards, sizes, ENDPOINTS, LOG2);
        for card in &mut net.cards {
            card.break_on_purpose(broken);
            for endpoint in 0..ENDPOINTS {
                let rule = RuleSetup {
                    endpoint,
                    context: REVOKED,
                    pairs_low: u64::MAX,
                    pairs_high: u64::MAX,
                    ..RuleSetup::default()
                };
                card.control(Operation::RuleSet, endpoint.into(), &rule.to_words());
            }
        }
        let mut next = vec![0; cards];
        let mut end = |card: usize, endpoint| {
            next[card] += 1;
            End {
                card,
                endpoint,
                pair: next[card] - 1,
            }
        };
        for a in 0..cards {
            for b in a + 1..cards {
                let (from, to) = (
                    end(a, rng.random_range(0..2)),
                    end(b, rng.random_range(0..2)),
                );
                net.connect(from, to, rng.random_range(1..=8));
            }
            let own = end(a, 0);
            net.connect(own, own, 3);
            let (from, to) = (end(a, 0), end(a, 1));
            net.connect(from, to, 2);
        }
        let host = || Host {
            next: 1,
            free: [
                (0..96).map(|at| at * 1024).collect(),
                (0..128).map(|at| 0x2_0000 + at * 1024).collect(),
                (0..64).map(|at| 0x4_0000 + at * MULTI_BYTES).collect(),
                (96..128).map(|at| at * 1024).collect(),
            ],
            ..Host::default()
        };
        let mut world = Self {
            hosts: (0..cards)
                .map(|_| (0..ENDPOINTS).map(|_| host()).collect())
                .collect(),
            net,
            rng,
            messages: HashMap::new(),
            taken: HashSet::new(),
            delivered: HashSet::new(),
            latest: HashMap::new(),
            next_message: 1,
            puts: HashMap::new(),
            put_order: BTreeMap::new(),
            keys: HashMap::new(),
            gets: HashMap::new(),
            read_keys: HashMap::new(),
            heard: HashMap::new(),
            weather,
            seen: HashMap::new(),
        };
        world.fill_sources();
        world.grant_all();
        world
    }

    fn host(&mut self, card: usize, endpoint: u8) -> &mut Host {
        &mut self.hosts[card][usize::from(endpoint)]
    }

    /// Pairs of an endpoint, with the other end.
    fn pairs(&self, card: usize, endpoint: u8) -> Vec<(u16, End)> {
        let ends = self
            .net
            .pairs
            .iter()
            .flat_map(|&(a, b, _)| [(a, b), (b, a)]);
        let own = ends.filter(|(end, _)| end.card == card && end.endpoint == endpoint);
        own.map(|(end, other)| (end.pair, other)).collect()
    }

    fn room(&self, card: usize, endpoint: u8, ring: WorkRing, tail: u16) -> bool {
        let head = match ring {
            WorkRing::Send => SEND_HEAD,
            WorkRing::List => LIST_HEAD,
        };
        let head = self.net.cards[card].read_register(endpoint, head) as u16;
        let host = &self.hosts[card][usize::from(endpoint)];
        tail.wrapping_sub(head) < 1 << LOG2 && host.pending.len() < OUTSTANDING
    }

    fn tails(&self, card: usize, endpoint: u8) -> (u16, u16) {
        self.net.host_sides[card][usize::from(endpoint)].tails()
    }

    fn pend(&mut self, card: usize, endpoint: u8, pending: Pending) -> u32 {
        let host = self.host(card, endpoint);
        let request = host.next;
        host.next += 1;
        host.pending.insert(request, pending);
        request
    }

    fn post_send(&mut self, card: usize, endpoint: u8, request: &SendRequest) {
        let host_side = &mut self.net.host_sides[card][usize::from(endpoint)];
        host_side.send(&mut self.net.cards[card], *request);
    }

    fn post_list(&mut self, card: usize, endpoint: u8, request: &ListRequest) {
        let host_side = &mut self.net.host_sides[card][usize::from(endpoint)];
        host_side.list(&mut self.net.cards[card], *request);
    }

    fn act(&mut self) {
        let card = self.rng.random_range(0..self.net.cards.len());
        let endpoint = self.rng.random_range(0..ENDPOINTS);
        match self.rng.random_range(0..100) {
            0..8 => self.send(card, endpoint),
            8 => self.cancel_send(card, endpoint),
            9..17 => self.receive(card, endpoint, false),
            17..19 => self.look(card, endpoint),
            19 => self.use_claim(card, endpoint),
            20..22 => self.cancel(card, endpoint),
            22..25 => self.put(card, endpoint),
            25..28 => self.get(card, endpoint),
            28 if self.rng.random_ratio(1, 8) => self.regrant(),
            29..40 => self.poll(card, endpoint),
            40..60 => self.pass_frame(card),
            61 if self.weather.lost > 0 && self.rng.random_ratio(1, 4) => _ = self.pass_time(),
            60 if self.weather.failures => match self.rng.random_range(0..30) {
                0 => self.fail(card),
                1 => self.revoke(card, endpoint, true),
                2..8 => self.revoke(card, endpoint, false),
                8 => self.revoke_window(card, endpoint, true),
                9..15 => self.revoke_window(card, endpoint, false),
                _ => {}
            },
            _ => self.step(card),
        }
        self.net.collect();
        self.net.check_credits();
    }

    fn step(&mut self, card: usize) {
        let actions = self.net.cards[card].actions();
        if !actions.is_empty() {
            let seed = self.rng.random();
            let pick = Seeded::new(seed).pick(&actions);
            self.net.cards[card].step(actions[pick]);
        }
    }

    fn pass_frame(&mut self, card: usize) {
        let Weather {
            lost,
            repeated,
            late,
            corrupted,
            ..
        } = self.weather;
        let Some(mut frame) = self.net.wires[card].pop_front() else {
            return;
        };
        if self.rng.random_ratio(late, 1000) {
            return self.net.wires[card].push_back(frame);
        }
        if self.rng.random_ratio(repeated, 1000) {
            self.net.wires[card].push_back(frame.clone());
        }
        if self.rng.random_ratio(corrupted, 1000) {
            let at = self.rng.random_range(0..frame.len() - TRAILER_BYTES);
            frame[at] ^= 1 << self.rng.random_range(0..8);
        }
        if !self.rng.random_ratio(lost, 1000) {
            self.net.cards[card].frame_in(frame);
        }
    }

    /// Lets as much time pass as it takes for something to happen by itself. Whether something will.
    fn pass_time(&mut self) -> bool {
        let next = self.net.cards.iter().filter_map(|card| card.next_time());
        let Some(next) = next.min() else {
            return false;
        };
        for card in &mut self.net.cards {
            card.advance_to(next);
        }
        true
    }

    fn fail(&mut self, card: usize) {
        let statuses = [
            Status::LinkError,
            Status::PeerFailed,
            Status::MemoryError,
            Status::PeerClosed,
            Status::Flushed,
        ];
        let status = *statuses.choose(&mut self.rng).expect("there are some");
        let pair = self.rng.random_range(0..8);
        let status = status.code().into();
        self.net.cards[card].control(Operation::PairFail, pair, &[status]);
    }

    /// An endpoint's region is forgotten, or there again.
    fn revoke(&mut self, card: usize, endpoint: u8, forget: bool) {
        let gates = &mut self.net.cards[card];
        match forget {
            true => _ = gates.control(Operation::RegionClear, endpoint.into(), &[]),
            false => HostSide::set_region(gates, endpoint),
        }
    }

    fn send(&mut self, card: usize, endpoint: u8) {
        let (tail, _) = self.tails(card, endpoint);
        let pairs = self.pairs(card, endpoint);
        let (Some(&(pair, to)), true) = (
            pairs.choose(&mut self.rng),
            self.room(card, endpoint, WorkRing::Send, tail),
        ) else {
            return;
        };
        let length = match self.rng.random_range(0..3) {
            0 => 0,
            1 => self.rng.random_range(1..40),
            _ => self.rng.random_range(0..=EAGER_MAX as u64),
        };
        let Some(offset) = self.host(card, endpoint).free[0].pop() else {
            return;
        };
        let id = self.next_message;
        self.next_message += 1;
        let spoilt = self.spoil(&[
            Spoilt::Malformed,
            Spoilt::Key,
            Spoilt::Pair,
            Spoilt::Length,
            Spoilt::Memory,
        ]);
        let ready = self.rng.random_ratio(1, 6);
        let message = Message {
            from: End {
                card,
                endpoint,
                pair,
            },
            to,
            context: self.rng.random_range(0..2),
            match_bits: TAGS[self.rng.random_range(0..TAGS.len())],
            length,
        };
        let request = self.pend(
            card,
            endpoint,
            Pending {
                row: Opcode::TaggedSend.row(),
                spoilt,
                target: 0,
                offset,
                length,
                buffer: Some((0, offset)),
                before: 0,
                message: Some(id),
            },
        );
        let host_side = &self.net.host_sides[card][usize::from(endpoint)];
        let mut send = SendRequest {
            flags: if ready { FLAG_READY } else { 0 },
            context: message.context,
            match_bits: message.match_bits,
            immediate: id,
            ..host_side.a_send(pair, request, offset, length)
        };
        match spoilt {
            Spoilt::Not | Spoilt::Revoked => {}
            Spoilt::Malformed => send.reserved0 = 1,
            Spoilt::Key => send.key ^= 1 << 20,
            Spoilt::Pair => send.pair = self.rng.random_range(7..10),
            Spoilt::Length => send.length = EAGER_MAX as u64 + 1,
            Spoilt::Memory => send.address = host_side.buffers + BUFFER_BYTES,
        }
        host_side.fill(
            &mut self.net.cards[card],
            offset,
            &Message::bytes(id, length),
        );
        self.messages.insert(id, message);
        self.post_send(card, endpoint, &send);
    }

    fn cancel_send(&mut self, card: usize, endpoint: u8) {
        let (tail, _) = self.tails(card, endpoint);
        if !self.room(card, endpoint, WorkRing::Send, tail) {
            return;
        }
        let opcodes = [Opcode::TaggedSend, Opcode::Put, Opcode::Get];
        let opcode = opcodes[self.rng.random_range(0..opcodes.len())];
        let target = self.target(card, endpoint, opcode);
        let pairs = self.pairs(card, endpoint);
        let message = self.host(card, endpoint).pending.get(&target);
        let message = message.and_then(|pending| pending.message);
        let pair = message.and_then(|id| match opcode {
            Opcode::Put => self.pair_of_put(card, id),
            Opcode::Get => Some(self.gets[&id].from.pair),
            _ => Some(self.messages[&id].from.pair),
        });
        let pair = pair.or(pairs.first().map(|&(pair, _)| pair)).unwrap_or(0);
        let spoilt = self.spoil(&[Spoilt::Malformed]);
        let pending = without_buffer(Opcode::CancelSend, target, spoilt);
        let request = self.pend(card, endpoint, pending);
        let cancel = SendRequest {
            opcode: Opcode::CancelSend.code(),
            flags: u8::from(spoilt == Spoilt::Malformed),
            pair,
            request,
            target,
            ..SendRequest::default()
        };
        self.post_send(card, endpoint, &cancel);
    }

    /// Some request of the opcode, or none.
    fn target(&mut self, card: usize, endpoint: u8, opcode: Opcode) -> u32 {
        let pending = &self.hosts[card][usize::from(endpoint)].pending;
        let all: Vec<u32> = pending
            .iter()
            .filter(|(_, pending)| pending.row.opcode == opcode)
            .map(|(&request, _)| request)
            .collect();
        all.choose(&mut self.rng).copied().unwrap_or(u32::MAX)
    }

    /// One of these things is wrong with a request now and then, when failures are asked for.
    fn spoil(&mut self, kinds: &[Spoilt]) -> Spoilt {
        match self.weather.failures && self.rng.random_ratio(1, 15) {
            true => *kinds.choose(&mut self.rng).expect("there are some"),
            false => Spoilt::Not,
        }
    }

    fn flags(&mut self) -> u8 {
        let mut flags = 0;
        for flag in [FLAG_ANY_SOURCE, FLAG_RESUME, FLAG_NOTHING_KEPT] {
            flags |= if self.rng.random_ratio(2, 5) { flag } else { 0 };
        }
        flags
    }

    /// A receive; with `all` one that takes whatever there is.
    fn receive(&mut self, card: usize, endpoint: u8, all: bool) {
        let (_, tail) = self.tails(card, endpoint);
        let pairs = self.pairs(card, endpoint);
        let (Some(&(pair, _)), true) = (
            pairs.choose(&mut self.rng),
            self.room(card, endpoint, WorkRing::List, tail),
        ) else {
            return;
        };
        let multi = !all && self.rng.random_ratio(1, 6);
        let list = if multi { MULTI } else { 1 };
        let Some(offset) = self.host(card, endpoint).free[list].pop() else {
            return;
        };
        let length = match self.rng.random_range(0..4) {
            _ if multi => MULTI_BYTES,
            0 if !all => self.rng.random_range(0..200),
            _ => EAGER_MAX as u64,
        };
        let spoilt = match all {
            true => Spoilt::Not,
            false => self.spoil(&[
                Spoilt::Malformed,
                Spoilt::Key,
                Spoilt::Pair,
                Spoilt::Memory,
                Spoilt::Revoked,
            ]),
        };
        let request = self.pend(
            card,
            endpoint,
            Pending {
                row: Opcode::TaggedReceive.row(),
                spoilt,
                target: 0,
                offset,
                length,
                buffer: Some((list, offset)),
                before: 0,
                message: None,
            },
        );
        let host_side = &self.net.host_sides[card][usize::from(endpoint)];
        let mut receive = host_side.a_receive(pair, request, offset, length);
        receive.context = self.rng.random_range(0..2);
        receive.match_bits = TAGS[self.rng.random_range(0..TAGS.len())];
        receive.ignore_bits = [0, 0, 1, 1 << 63, u64::MAX][self.rng.random_range(0..5)];
        receive.flags = self.flags();
        if all {
            receive.flags |= FLAG_ANY_SOURCE | FLAG_RESUME;
            receive.ignore_bits = u64::MAX;
        }
        if multi {
            receive.flags |= FLAG_MULTI;
            receive.min_free = self.rng.random_range(0..3000);
        }
        match spoilt {
            Spoilt::Not | Spoilt::Length => {}
            Spoilt::Malformed => receive.reserved2 = 1,
            Spoilt::Key => receive.key ^= 1 << 20,
            Spoilt::Pair => {
                receive.pair = self.rng.random_range(7..10);
                receive.flags &= !FLAG_ANY_SOURCE;
            }
            Spoilt::Memory => receive.address += BUFFER_BYTES - offset,
            Spoilt::Revoked => receive.context = REVOKED,
        }
        self.post_list(card, endpoint, &receive);
    }

    fn look(&mut self, card: usize, endpoint: u8) {
        let (_, tail) = self.tails(card, endpoint);
        if !self.room(card, endpoint, WorkRing::List, tail) {
            return;
        }
        let opcode = [Opcode::Probe, Opcode::Claim][self.rng.random_range(0..2)];
        let spoilt = self.spoil(&[Spoilt::Malformed, Spoilt::Pair, Spoilt::Revoked]);
        let request = self.pend(card, endpoint, without_buffer(opcode, 0, spoilt));
        let pairs = self.pairs(card, endpoint);
        let mut look = ListRequest {
            opcode: opcode.code(),
            flags: self.flags(),
            pair: pairs.choose(&mut self.rng).map_or(0, |&(pair, _)| pair),
            context: self.rng.random_range(0..2),
            request,
            ignore_bits: u64::MAX,
            ..ListRequest::default()
        };
        match spoilt {
            Spoilt::Malformed => look.min_free = 1,
            Spoilt::Pair => {
                look.flags &= !FLAG_ANY_SOURCE;
                look.pair = self.rng.random_range(7..10);
            }
            Spoilt::Revoked => look.context = REVOKED,
            _ => {}
        }
        self.post_list(card, endpoint, &look);
    }

    fn use_claim(&mut self, card: usize, endpoint: u8) {
        let (_, tail) = self.tails(card, endpoint);
        if !self.room(card, endpoint, WorkRing::List, tail) {
            return;
        }
        let host = self.host(card, endpoint);
        let (handle, id) = host.claims.pop().unwrap_or((0xffff_0000, u64::MAX));
        let spoilt = self.spoil(&[Spoilt::Malformed, Spoilt::Key, Spoilt::Pair, Spoilt::Memory]);
        let receives = self.rng.random();
        let opcode = match receives {
            true => Opcode::ReceiveClaimed,
            false => Opcode::Discard,
        };
        let offset = match receives {
            true => self.host(card, endpoint).free[1].pop(),
            false => None,
        };
        if receives && offset.is_none() {
            return;
        }
        let offset_or_zero = offset.unwrap_or(0);
        let length = [200, EAGER_MAX as u64][self.rng.random_range(0..2)];
        let request = self.pend(
            card,
            endpoint,
            Pending {
                row: opcode.row(),
                spoilt,
                target: handle,
                offset: offset_or_zero,
                length,
                buffer: offset.map(|offset| (1, offset)),
                // The claim has taken it already.
                before: 0,
                message: (id != u64::MAX).then_some(id),
            },
        );
        let host_side = &self.net.host_sides[card][usize::from(endpoint)];
        let mut claimed = ListRequest {
            opcode: opcode.code(),
            target: handle,
            ..host_side.a_receive(0, request, offset_or_zero, length)
        };
        match spoilt {
            Spoilt::Not | Spoilt::Length | Spoilt::Revoked => {}
            Spoilt::Malformed => claimed.flags = FLAG_ANY_SOURCE,
            Spoilt::Key => claimed.key ^= 1 << 20,
            Spoilt::Pair => claimed.target ^= 0x8000_0000,
            Spoilt::Memory => claimed.address = host_side.buffers + BUFFER_BYTES,
        }
        self.post_list(card, endpoint, &claimed);
    }

    fn cancel(&mut self, card: usize, endpoint: u8) {
        let (_, tail) = self.tails(card, endpoint);
        if !self.room(card, endpoint, WorkRing::List, tail) {
            return;
        }
        let target = self.target(card, endpoint, Opcode::TaggedReceive);
        self.cancel_one(card, endpoint, target);
    }

    fn cancel_one(&mut self, card: usize, endpoint: u8, target: u32) {
        let spoilt = self.spoil(&[Spoilt::Malformed]);
        let pending = without_buffer(Opcode::Cancel, target, spoilt);
        let request = self.pend(card, endpoint, pending);
        let cancel = ListRequest {
            opcode: Opcode::Cancel.code(),
            reserved0: u16::from(spoilt == Spoilt::Malformed),
            request,
            target,
            ..ListRequest::default()
        };
        self.post_list(card, endpoint, &cancel);
    }

    fn poll(&mut self, card: usize, endpoint: u8) {
        let host_side = &mut self.net.host_sides[card][usize::from(endpoint)];
        let completion = host_side.poll(&mut self.net.cards[card]);
        while host_side.poll_event(&mut self.net.cards[card]).is_some() {}
        if let Some(completion) = completion {
            self.completed(card, endpoint, &completion);
        }
    }

    fn completed(&mut self, card: usize, endpoint: u8, entry: &Completion) {
        let status = Status::from_code(entry.status).expect("a status of the ABI");
        let found = self.host(card, endpoint).pending.get(&entry.request);
        let pending = found.cloned();
        let pending = pending.unwrap_or_else(|| panic!("it has completed before: {entry:x?}"));
        let row = pending.row;
        *self.seen.entry((row.opcode, status)).or_default() += 1;
        assert_eq!(entry.kind, row.kind.code(), "{entry:x?}");
        assert!(row.may_end(status), "{entry:x?}");
        let malformed = pending.spoilt == Spoilt::Malformed;
        assert_eq!(status == Status::InvalidRequest, malformed, "{entry:x?}");
        let more = entry.flags & COMPLETION_MORE != 0;
        assert!(!more || row.completes == Completes::OnceOrMore);
        let multi = pending
            .buffer
            .filter(|&(list, _)| list == MULTI && !malformed);
        let told = multi.map_or((0, 0), |(_, start)| {
            let count = if more { 0 } else { pending.before + 1 };
            (pending.offset - start, count)
        });
        assert_eq!((entry.offset.into(), entry.count), told, "{entry:x?}");
        let good = matches!(status, Status::Success | Status::Truncated);
        match row.opcode {
            Opcode::TaggedSend => {
                let id = pending.message.expect("a send has one");
                self.heard_of(self.messages[&id].from, id, status);
                if status == Status::Success {
                    self.delivered.insert(id);
                }
            }
            Opcode::Put => {
                let id = pending.message.expect("a put has one");
                let pair = self.pair_of_put(card, id).expect("it is of one");
                let from = End {
                    card,
                    endpoint,
                    pair,
                };
                self.heard_of(from, id, status);
                self.put_ended(id, status);
            }
            Opcode::Get => {
                let id = pending.message.expect("a get has one");
                self.heard_of(self.gets[&id].from, id, status);
                self.get_ended(id, pending.offset, status);
            }
            Opcode::TaggedReceive if good => {
                self.took(card, endpoint, entry);
                self.look_at_bytes(card, endpoint, &pending, entry, status);
            }
            // The receive has matched; one that ends since its pair has failed with `MemoryError` tells of no message.
            Opcode::TaggedReceive
                if status == Status::AccessDenied
                    || (status == Status::MemoryError && entry.immediate != 0) =>
            {
                self.took(card, endpoint, entry);
            }
            Opcode::ReceiveClaimed if good => {
                assert_eq!(Some(entry.immediate), pending.message, "{entry:x?}");
                self.look_at_bytes(card, endpoint, &pending, entry, status);
            }
            Opcode::Claim if good => {
                self.took(card, endpoint, entry);
                let claim = (entry.handle, entry.immediate);
                self.host(card, endpoint).claims.push(claim);
            }
            _ => {}
        }
        let host = self.host(card, endpoint);
        if status == Status::Cancelled {
            *host.cancelled.entry(entry.request).or_default() += 1;
        }
        if more {
            let pending = host.pending.get_mut(&entry.request).expect("it is there");
            pending.offset += entry.length;
            pending.length -= entry.length;
            pending.before += 1;
            return;
        }
        host.pending.remove(&entry.request);
        if let Some((list, offset)) = pending.buffer {
            host.free[list].push(offset);
        }
    }

    /// A send, put or get has ended: those that come to the peer end in the order in which they were posted.
    fn heard_of(&mut self, from: End, id: u64, status: Status) {
        if matches!(
            status,
            Status::Success | Status::NotReady | Status::RemoteAccess
        ) {
            let before = self.heard.insert((from.card, from.pair), id);
            assert!(before < Some(id), "{id} has ended behind {before:?}");
        }
    }

    /// A message has been taken out of the card's lists.
    fn took(&mut self, card: usize, endpoint: u8, entry: &Completion) {
        let id = entry.immediate;
        let message = self.messages[&id].clone();
        let end = (message.to.card, message.to.endpoint, message.to.pair);
        assert_eq!(end, (card, endpoint, entry.pair), "{entry:x?}");
        let sent = (message.context, message.match_bits, message.length);
        assert_eq!(sent, (entry.context, entry.match_bits, entry.length));
        assert!(self.taken.insert(id), "message {id} is taken twice");
        let key = (card, entry.pair, message.context, message.match_bits);
        let before = self.latest.insert(key, id);
        assert!(before < Some(id), "message {id} is taken behind {before:?}");
    }

    fn look_at_bytes(
        &mut self,
        card: usize,
        endpoint: u8,
        pending: &Pending,
        entry: &Completion,
        status: Status,
    ) {
        let fits = entry.length.min(pending.length);
        assert_eq!(
            status == Status::Truncated,
            fits < entry.length,
            "{entry:x?}"
        );
        let host_side = &self.net.host_sides[card][usize::from(endpoint)];
        let bytes = host_side.bytes(&mut self.net.cards[card], pending.offset, fits as usize);
        assert_eq!(bytes, Message::bytes(entry.immediate, fits), "{entry:x?}");
    }

    /// Goes on until nothing moves and nothing is left to be polled, and nothing will that was sent and isn't acknowledged.
    fn settle(&mut self) {
        loop {
            let mut moved = false;
            for card in 0..self.net.cards.len() {
                while !self.net.wires[card].is_empty() {
                    moved = true;
                    self.pass_frame(card);
                }
                while !self.net.cards[card].actions().is_empty() {
                    moved = true;
                    self.step(card);
                    self.net.collect();
                    self.net.check_credits();
                }
                for endpoint in 0..ENDPOINTS {
                    let pending = |world: &Self| {
                        let host = &world.hosts[card][usize::from(endpoint)];
                        (host.pending.len(), host.claims.len(), world.taken.len())
                    };
                    loop {
                        let before = pending(self);
                        self.poll(card, endpoint);
                        if pending(self) == before {
                            break;
                        }
                        moved = true;
                    }
                }
            }
            let credits = |card: &Card<Pieces>, pair| card.credits(pair).source;
            let unheard = |card: &Card<Pieces>| {
                (0..8).any(|pair| credits(card, pair).taken != credits(card, pair).acknowledged)
            };
            let waits = self.net.cards.iter().any(unheard) && self.pass_time();
            if !moved && !waits {
                return;
            }
        }
    }

    fn sends_pending(&self) -> usize {
        let hosts = self.hosts.iter().flatten();
        let sends = hosts.flat_map(|host| host.pending.values());
        sends
            .filter(|pending| {
                let opcode = pending.row.opcode;
                matches!(opcode, Opcode::TaggedSend | Opcode::Put | Opcode::Get)
            })
            .count()
    }

    /// Receives whatever is still to come, and holds the ends against each other.
    fn end_well(&mut self) {
        self.settle();
        for round in 0.. {
            let missing = self.delivered.difference(&self.taken).count();
            if self.sends_pending() == 0 && missing == 0 {
                break;
            }
            assert!(
                round < 500,
                "{} sends never end, {missing} messages are nowhere",
                self.sends_pending()
            );
            self.use_claims();
            for card in 0..self.net.cards.len() {
                for endpoint in 0..ENDPOINTS {
                    self.receive(card, endpoint, true);
                }
            }
            self.settle();
            // A credit may have been lost: it is asked for.
            self.pass_time();
            self.settle();
        }
        self.use_claims();
        for id in &self.taken {
            assert!(
                self.delivered.contains(id),
                "message {id} was taken, and its send failed"
            );
        }
        for (card, gates) in self.net.cards.iter_mut().enumerate() {
            for pair in 0..8 {
                let source = gates.credits(pair).source;
                assert_eq!(source.acknowledged, source.taken, "pair {pair}");
                // The last credits may have been lost, and nobody waits for them.
                let lossy = self.weather.lost > 0;
                assert!(lossy || source.returned == source.taken, "pair {pair}");
                let report = gates.control(Operation::PairRead, pair, &[]);
                let report = PairReport::from_words(&[report]);
                let failed = report.state == PairState::Failed.code();
                assert!(!failed, "pair {pair} of card {card} has failed");
            }
        }
    }

    fn use_claims(&mut self) {
        for card in 0..self.net.cards.len() {
            for endpoint in 0..ENDPOINTS {
                while !self.hosts[card][usize::from(endpoint)].claims.is_empty() {
                    self.use_claim(card, endpoint);
                    self.settle();
                }
            }
        }
    }

    /// Ends everything, and sees that each request has completed.
    fn tear_down(&mut self) {
        self.settle();
        // The ends go one by one, and their credits add up no more.
        let ends = self.net.pairs.drain(..).flat_map(|(a, b, _)| [a, b]);
        let ends: Vec<End> = ends.collect();
        for card in 0..self.net.cards.len() {
            for endpoint in 0..ENDPOINTS {
                let gates = &mut self.net.cards[card];
                gates.control(Operation::EndpointStop, endpoint.into(), &[]);
                let mine = |end: &&End| end.card == card && end.endpoint == endpoint;
                for end in ends.iter().filter(mine) {
                    let flushed = Status::Flushed.code().into();
                    let gates = &mut self.net.cards[card];
                    gates.control(Operation::PairFail, end.pair, &[flushed]);
                    self.settle();
                    let gates = &mut self.net.cards[card];
                    gates.control(Operation::PairClear, end.pair, &[]);
                }
                let gates = &mut self.net.cards[card];
                gates.control(Operation::EndpointFlush, endpoint.into(), &[]);
                self.settle();
                self.assert_nothing_is_left(card, endpoint);
            }
            let (lists, sizes) = (self.net.cards[card].delivery().lists(), tiny().lists);
            assert_eq!((lists.posted_depth(), lists.unexpected_depth()), (0, 0));
            assert!(
                (0..sizes.pairs as u16).all(|p| self.net.cards[card].delivery().slots_used(p) == 0)
            );
        }
    }

    fn assert_nothing_is_left(&mut self, card: usize, endpoint: u8) {
        let (send, list) = self.tails(card, endpoint);
        let heads = [SEND_HEAD, LIST_HEAD]
            .map(|head| self.net.cards[card].read_register(endpoint, head) as u16);
        assert_eq!(heads, [send, list], "all was fetched before");
        let host = self.host(card, endpoint);
        for (request, pending) in std::mem::take(&mut host.pending) {
            // A cancel in time is told by its target.
            let told = host.cancelled.get_mut(&pending.target);
            let told = told.filter(|_| pending.row.completes == Completes::IfRefused);
            match told.filter(|left| **left > 0) {
                Some(left) => *left -= 1,
                None => panic!("{request} never completed: {pending:?}"),
            }
        }
        assert!(host.cancelled.values().all(|&left| left == 0));
        assert!(!self.net.cards[card].delivery().keeps(endpoint));
    }
}

fn without_buffer(opcode: Opcode, target: u32, spoilt: Spoilt) -> Pending {
    Pending {
        row: opcode.row(),
        spoilt,
        target,
        offset: 0,
        length: 0,
        buffer: None,
        before: 0,
        message: None,
    }
}

type Seen = HashMap<(Opcode, Status), u32>;

fn play(seed: u64, steps: usize, weather: Weather, broken: Break) -> Seen {
    let mut world = World::new(seed, weather, broken);
    for _ in 0..steps {
        world.act();
    }
    if !weather.failures {
        world.end_well();
        world.look_at_windows();
    }
    world.tear_down();
    world.look_at_windows();
    world.look_at_read_buffers();
    world.seen
}

/// Plays the seeds, and returns what was seen in all of them.
fn play_all(seeds: std::ops::Range<u64>, weather: Weather) -> Seen {
    let mut all = Seen::new();
    for seed in seeds {
        let run = || play(seed, 4000, weather, Break::None);
        match std::panic::catch_unwind(run) {
            Ok(seen) => {
                for (key, count) in seen {
                    *all.entry(key).or_default() += count;
                }
            }
            Err(panic) => {
                eprintln!("seed {seed}");
                std::panic::resume_unwind(panic);
            }
        }
    }
    all
}

/// Everything that the rows say may happen has happened, but for these.
fn assert_all_seen(seen: &Seen, but: &[(Opcode, Status)]) {
    for row in OPCODES
        .iter()
        .filter(|row| row.is_known(CAPABILITY_PUT | CAPABILITY_GET))
    {
        for &status in row.refusals.iter().chain(row.ends) {
            let key = (row.opcode, status);
            assert!(seen.contains_key(&key) != but.contains(&key), "{key:?}");
        }
    }
}

#[test]
fn on_good_wires_every_message_is_taken_once_in_order_and_every_request_completes_once() {
    play_all(0..40, CALM);
}

#[test]
fn on_bad_wires_every_message_is_taken_once_in_order_and_no_pair_fails() {
    play_all(0..60, BAD_WIRES);
}

#[test]
fn when_pairs_and_memory_fail_every_request_completes_once_and_no_message_is_taken_twice() {
    let seen = play_all(0..200, STORM);
    assert_all_seen(&seen, &[]);
}

#[test]
fn what_a_program_can_see_of_a_break_is_noticed() {
    for broken in [
        Break::TruncationUntold,
        Break::DiscardKeepsEnvelope,
        Break::SlotStaysTaken,
        Break::RefusalUnheard,
        Break::MultiStartsAgain,
        Break::CompletesTwice,
        Break::CancelTold,
        Break::PutRefusalUntold,
        Break::PutOffsetIgnored,
        Break::GetEndsUnanswered,
        Break::GetRefusalUntold,
        Break::GetOffsetIgnored,
    ] {
        let noticed =
            (0..8).any(|seed| std::panic::catch_unwind(|| play(seed, 4000, CALM, broken)).is_err());
        assert!(noticed, "{broken:?}");
    }
}
