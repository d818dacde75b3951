//! What Delivery promises, in plain Rust: each thing that it takes becomes the accesses and the
//! outputs that have to follow.

use std::collections::{HashMap, HashSet, VecDeque};

use abi::completion::{COMPLETION_MORE, Completion, CompletionKind};
use abi::control::{KEY_INDEX_BITS, RIGHT_LOCAL_WRITE, RegionSetup};
use abi::event::Cause;
use abi::limits::EAGER_MAX;
use abi::limits::MAX_CREDITS;
use abi::request::{
    CLAIM_PLACE_BITS, FLAG_ANY_SOURCE, FLAG_MULTI, FLAG_NOTHING_KEPT, FLAG_RESUME, ListRequest,
    Opcode,
};
use abi::status::Status;
use hdl::config::Config;
use hdl::matching::CLASSES;
use match_reference::{Class, has_class, has_room};

use crate::memory::Access;

pub const ENDPOINTS: u8 = 2;
/// Pairs that are used.
pub const PAIRS: usize = 8;

/// A message of a peer.
#[derive(Clone, Debug)]
pub struct Message {
    pub pair: u16,
    pub endpoint: u8,
    pub context: u16,
    pub match_bits: u64,
    pub immediate: u64,
    /// It is refused unless it finds a receive.
    pub ready: bool,
    pub payload: Vec<u8>,
}

/// A connected pair.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    pub endpoint: u8,
    pub credits: u16,
    pub slots: u64,
    pub failed: Option<u8>,
    /// Which connection this is, over all pairs.
    pub incarnation: u32,
    /// Accesses of the peer that a region refused.
    pub refused: u32,
}

#[derive(Clone, Debug)]
struct Posted {
    endpoint: u8,
    domain: u8,
    /// Of a multi-receive, the buffer is what is left of it.
    request: ListRequest,
    /// Where its buffer began.
    start: u64,
    side: Side,
}

/// Where the lists keep a receive, or would.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Exact,
    Associative,
}

impl Posted {
    /// What the receives of a class have in common.
    fn class(&self) -> Class {
        (self.request.ignore_bits, self.any_source())
    }

    fn any_source(&self) -> bool {
        self.request.flags & FLAG_ANY_SOURCE != 0
    }

    fn matches(&self, message: &Message) -> bool {
        self.endpoint == message.endpoint
            && (self.any_source() || self.request.pair == message.pair)
            && self.request.context == message.context
            && (self.request.match_bits ^ message.match_bits) & !self.request.ignore_bits == 0
    }
}

/// What a full list does to an endpoint.
#[derive(Clone, Debug, Default)]
struct Stall {
    /// What is posted isn't posted.
    stalled: bool,
    /// The host may keep receives back.
    kept: bool,
    /// The receive that waits for room.
    waiting: Option<Posted>,
    /// Its handle, or that of the last that did.
    last: u32,
    /// Something has come that those in front have to look at first.
    news: bool,
    /// A batch of receives has gone.
    room: bool,
}

#[derive(Clone, Debug)]
struct Unexpected {
    id: u32,
    message: Message,
}

/// A message that an endpoint has claimed.
#[derive(Clone, Debug)]
struct Claimed {
    unexpected: Unexpected,
    /// What names it, from the completion of the claim on.
    handle: Option<u32>,
}

/// An access that has to be asked for, in this order.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// All of the message to a vacant slot of its pair.
    ToSlot { id: u32, pair: u16, length: usize },
    /// The start of the message from its slot.
    FromSlot { id: u32, length: usize },
    /// To a buffer.
    ToBuffer { address: u64, length: usize },
}

/// An output, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    Complete {
        endpoint: u8,
        entry: Completion,
    },
    Update {
        pair: u16,
        accepted: bool,
        freed: bool,
        refused: bool,
    },
}

/// What has to hold when an output comes.
#[derive(Clone, Debug, Default)]
pub struct Duty {
    /// These bytes are at this address.
    pub bytes: Option<(u64, Vec<u8>)>,
    /// From now on the slot of this message is vacant.
    pub vacates: Option<u32>,
    /// The handle is that of a new claim of this message.
    pub claims: Option<u32>,
    /// From now on this buffer is the host's again.
    pub returns: Option<u64>,
    /// So many accesses have been asked for, since the beginning.
    pub accesses: u64,
}

/// How often what has happened.
#[derive(Default, Debug)]
pub struct Seen {
    pub statuses: HashMap<(u8, u8), u32>,
    pub dropped: u32,
    pub overflows: u32,
    pub expected: u32,
    pub unexpected: u32,
    pub invalid: u32,
    pub cleared_unexpected: u32,
    /// Claimed messages that went with their pair.
    pub cleared_claimed: u32,
    /// Claimed messages that were received or discarded after their pair had failed.
    pub claimed_from_failed: u32,
    pub from_failed: u32,
    pub empty: u32,
    /// Receives that took a message from behind one that waits for room.
    pub from_behind: u32,
    pub waiting_cancelled: u32,
    pub waiting_flushed: u32,
    pub woken_by_news: u32,
    pub woken_by_room: u32,
    /// Messages after which a multi-receive stayed, and after which it didn't for want of a completion.
    pub stayed: u32,
    pub ended_early: u32,
    /// Times that a count of refused accesses was read that wasn't zero.
    pub refusals_read: u32,
    /// Ready messages that found a receive; that were refused; that were not, since the ring had more, or only since the host kept receives back.
    pub ready: u32,
    pub not_ready: u32,
    pub ready_for_ring: u32,
    pub ready_for_backlog: u32,
}

pub struct Reference {
    pub pairs: Vec<Option<Pair>>,
    pub regions: HashMap<u16, RegionSetup>,
    posted: Vec<Posted>,
    unexpected: Vec<Unexpected>,
    claimed: Vec<Claimed>,
    stalls: [Stall; ENDPOINTS as usize],
    gone: u8,
    config: Config,
    /// Receives that a flush has completed already, as they came.
    pub flushed: Vec<u32>,
    fails: fn(Access) -> bool,
    next_id: u32,
    incarnations: u32,
    /// Messages of each pair that have a slot number.
    held: HashMap<u16, HashSet<u32>>,
    /// Addresses of slots that hold a payload.
    slots: HashMap<u32, u64>,
    pub accesses: VecDeque<Wanted>,
    /// Accesses that have been asked for.
    pub accessed: u64,
    pub outputs: VecDeque<(Output, Duty)>,
    pub releases: VecDeque<u8>,
    pub reserves: VecDeque<u8>,
    /// Whether a completion of each endpoint can be reserved by what is taken next.
    pub free: [bool; ENDPOINTS as usize],
    /// Whether the list ring of each endpoint has more, while what was taken last is dealt with.
    pub pending: [bool; ENDPOINTS as usize],
    pub events: VecDeque<(u8, u8, u16)>,
    pub faults: VecDeque<(u16, u8)>,
    pub seen: Seen,
}

fn completion(request: u32, kind: CompletionKind, status: u8) -> Completion {
    Completion {
        request,
        kind: kind.code(),
        status,
        ..Completion::default()
    }
}

fn of_message(entry: Completion, message: &Message) -> Completion {
    Completion {
        match_bits: message.match_bits,
        immediate: message.immediate,
        length: message.payload.len() as u64,
        pair: message.pair,
        context: message.context,
        ..entry
    }
}

impl Reference {
    pub fn new(config: &Config, fails: fn(Access) -> bool) -> Self {
        Reference {
            pairs: vec![None; config.pairs],
            regions: HashMap::new(),
            posted: vec![],
            unexpected: vec![],
            claimed: vec![],
            stalls: std::array::from_fn(|_| Stall::default()),
            gone: 0,
            config: *config,
            flushed: vec![],
            fails,
            next_id: 0,
            incarnations: 0,
            held: HashMap::new(),
            slots: HashMap::new(),
            accesses: VecDeque::new(),
            accessed: 0,
            outputs: VecDeque::new(),
            releases: VecDeque::new(),
            reserves: VecDeque::new(),
            free: [true; ENDPOINTS as usize],
            pending: [false; ENDPOINTS as usize],
            events: VecDeque::new(),
            faults: VecDeque::new(),
            seen: Seen::default(),
        }
    }

    pub fn depths(&self) -> (u64, u64) {
        (self.posted.len() as u64, self.unexpected.len() as u64)
    }

    /// Nothing has to follow any more.
    pub fn settled(&self) -> bool {
        self.accesses.is_empty()
            && self.outputs.is_empty()
            && self.releases.is_empty()
            && self.reserves.is_empty()
            && self.events.is_empty()
            && self.faults.is_empty()
    }

    pub fn pair(&self, pair: u16) -> Option<Pair> {
        *self.pairs.get(usize::from(pair))?
    }

    /// Envelopes of unexpected messages, with the endpoint they wait at.
    pub fn waiting(&self) -> Vec<Message> {
        self.unexpected.iter().map(|u| u.message.clone()).collect()
    }

    /// Handles of claimed messages, with the endpoint that has claimed them.
    pub fn claims(&self) -> Vec<(u8, u32)> {
        let named = |c: &Claimed| Some((c.unexpected.message.endpoint, c.handle?));
        self.claimed.iter().filter_map(named).collect()
    }

    /// A claim has completed, and says what names the message from now on.
    pub fn claim(&mut self, id: u32, handle: u32) {
        let place = handle & ((1 << CLAIM_PLACE_BITS) - 1);
        let (pair, slot) = (
            place / u32::from(MAX_CREDITS),
            place % u32::from(MAX_CREDITS),
        );
        let named = |c: &Claimed| c.handle == Some(handle);
        assert!(!self.claimed.iter().any(named), "{handle:x} names two");
        let same = |c: &Claimed| {
            c.handle
                .is_some_and(|other| other & ((1 << CLAIM_PLACE_BITS) - 1) == place)
        };
        assert!(!self.claimed.iter().any(same), "two messages at {place:x}");
        let address = self.slots.get(&id).copied();
        let claimed = self.claimed.iter_mut().find(|c| c.unexpected.id == id);
        let claimed = claimed.expect("it has been claimed");
        let message = &claimed.unexpected.message;
        assert_eq!(pair, message.pair.into(), "the pair in {handle:x}");
        if let Some(address) = address {
            let slots = self.pairs[usize::from(message.pair)]
                .expect("it is set")
                .slots;
            assert_eq!(address, slots + u64::from(slot) * EAGER_MAX as u64);
        }
        claimed.handle = Some(handle);
    }

    fn allowed(&self, domain: u8, request: &ListRequest, length: u64) -> bool {
        let index = request.key & ((1 << KEY_INDEX_BITS) - 1);
        let region = u16::try_from(index).ok().and_then(|i| self.regions.get(&i));
        region.is_some_and(|r| {
            r.tag == request.key >> KEY_INDEX_BITS
                && r.domain == domain
                && r.rights & RIGHT_LOCAL_WRITE != 0
                && request.address >= r.base
                && u128::from(request.address) + u128::from(length)
                    <= u128::from(r.base) + u128::from(r.length)
        })
    }

    fn complete(&mut self, endpoint: u8, entry: Completion, duty: Duty) {
        *self
            .seen
            .statuses
            .entry((entry.kind, entry.status))
            .or_default() += 1;
        self.output(Output::Complete { endpoint, entry }, duty);
    }

    fn update(&mut self, pair: u16, accepted: bool, freed: bool, duty: Duty) {
        let output = Output::Update {
            pair,
            accepted,
            freed,
            refused: false,
        };
        self.output(output, duty);
    }

    /// An output that has to come behind the accesses that have to come so far.
    fn output(&mut self, output: Output, duty: Duty) {
        let accesses = self.accessed + self.accesses.len() as u64;
        self.outputs.push_back((output, Duty { accesses, ..duty }));
    }

    /// The side that has room for a receive: the exact one if it has a class there.
    fn side_for(&self, receive: &Posted) -> Option<Side> {
        let used = |side| -> Vec<usize> {
            let on_side = |endpoint| move |p: &&Posted| p.endpoint == endpoint && p.side == side;
            let endpoints = 0..self.config.endpoints as u8;
            endpoints
                .map(|e| self.posted.iter().filter(on_side(e)).count())
                .collect()
        };
        let room = |side, capacity, reserved| {
            has_room(capacity, reserved, &used(side), receive.endpoint.into())
        };
        let of_endpoint = |p: &&Posted| p.endpoint == receive.endpoint && p.side == Side::Exact;
        let live = self.posted.iter().filter(of_endpoint).map(Posted::class);
        let config = &self.config;
        let exact = has_class(live, receive.class(), CLASSES);
        if exact && room(Side::Exact, config.exact, config.reserved_exact()) {
            Some(Side::Exact)
        } else if room(Side::Associative, config.posted, config.reserved_posted()) {
            Some(Side::Associative)
        } else {
            None
        }
    }

    /// A posted receive has gone.
    fn goes(&mut self) {
        self.gone = (self.gone + 1) % 16;
        if self.gone == 0 {
            for stall in &mut self.stalls {
                stall.room = stall.waiting.is_some();
            }
        }
    }

    /// Receives that wait for room are told if they may try again.
    fn wake(&mut self) {
        for endpoint in 0..ENDPOINTS {
            let stall = &mut self.stalls[usize::from(endpoint)];
            if !stall.news && !stall.room {
                continue;
            }
            if let Some(waiting) = stall.waiting.take() {
                if stall.news {
                    self.seen.woken_by_news += 1;
                } else {
                    self.seen.woken_by_room += 1;
                }
                self.end(&waiting, Status::ListFull.code());
            }
        }
    }

    /// A receive ends without a message.
    fn end(&mut self, receive: &Posted, status: u8) {
        let entry = completion(receive.request.request, CompletionKind::Receive, status);
        let duty = Duty {
            returns: Some(receive.start),
            ..Duty::default()
        };
        self.complete(receive.endpoint, entry, duty);
    }

    /// The payload goes to the buffer, from the wire or from the slot of message `from`; then the
    /// receive completes. Returns whether it stays.
    fn deliver(&mut self, receive: &mut Posted, message: &Message, from: Option<u32>) -> bool {
        let request = receive.request;
        let room = usize::try_from(request.length).unwrap_or(usize::MAX);
        let length = message.payload.len().min(room);
        let mut status = match message.payload.len() > room {
            true => Status::Truncated,
            false => Status::Success,
        };
        let mut duty = Duty {
            returns: Some(receive.start),
            ..Duty::default()
        };
        if length == 0 {
            self.seen.empty += 1;
        } else if from.is_none() && !self.allowed(receive.domain, &request, length as u64) {
            status = Status::AccessDenied;
            if let Some(pair) = &mut self.pairs[usize::from(message.pair)] {
                pair.refused += 1;
            }
        } else {
            let mut written = true;
            if let Some(id) = from {
                self.accesses.push_back(Wanted::FromSlot { id, length });
                let read = Access {
                    write: false,
                    address: self.slots[&id],
                    length,
                };
                written = !(self.fails)(read);
            }
            let address = request.address;
            if written {
                self.accesses
                    .push_back(Wanted::ToBuffer { address, length });
                let write = Access {
                    write: true,
                    address,
                    length,
                };
                written = !(self.fails)(write);
            }
            if written {
                duty.bytes = Some((address, message.payload[..length].to_vec()));
            } else {
                status = Status::MemoryError;
            }
        }
        let mut entry = completion(request.request, CompletionKind::Receive, status.code());
        let left = request.length - length as u64;
        let goes_on = request.flags & FLAG_MULTI != 0
            && status == Status::Success
            && left >= u64::from(request.min_free).max(1);
        let stays = goes_on && self.free[usize::from(receive.endpoint)];
        if stays {
            entry.flags = COMPLETION_MORE;
            duty.returns = None;
            receive.request.address += length as u64;
            receive.request.length = left;
            self.reserves.push_back(receive.endpoint);
            self.seen.stayed += 1;
        }
        self.seen.ended_early += u32::from(goes_on && !stays);
        self.complete(receive.endpoint, of_message(entry, message), duty);
        stays
    }

    /// A message has been taken.
    pub fn arrive(&mut self, message: Message) {
        let Some(pair) = self.pair(message.pair).filter(|p| p.failed.is_none()) else {
            self.seen.dropped += 1;
            return;
        };
        if let Some(at) = self.posted.iter().position(|p| p.matches(&message)) {
            self.seen.expected += 1;
            self.seen.ready += u32::from(message.ready);
            let mut receive = self.posted.remove(at);
            if self.deliver(&mut receive, &message, None) {
                self.posted.insert(at, receive);
            } else {
                self.goes();
            }
            self.update(message.pair, true, true, Duty::default());
            self.wake();
            return;
        }
        if message.ready {
            let at = usize::from(message.endpoint);
            match (self.pending[at], self.stalls[at].kept) {
                (true, _) => self.seen.ready_for_ring += 1,
                (false, true) => self.seen.ready_for_backlog += 1,
                (false, false) => {
                    self.seen.not_ready += 1;
                    let output = Output::Update {
                        pair: message.pair,
                        accepted: true,
                        freed: true,
                        refused: true,
                    };
                    self.output(output, Duty::default());
                    return;
                }
            }
        }
        let id = self.next_id;
        self.next_id += 1;
        let held = self.held.entry(message.pair).or_default();
        if held.len() >= pair.credits.into() {
            self.overflow(&message);
            return;
        }
        held.insert(id);
        let length = message.payload.len();
        if length > 0 {
            let wanted = Wanted::ToSlot {
                id,
                pair: message.pair,
                length,
            };
            self.accesses.push_back(wanted);
            let write = Access {
                write: true,
                address: pair.slots,
                length,
            };
            if (self.fails)(write) {
                self.give_up(&message, Cause::SlotError, Status::MemoryError);
                return;
            }
        }
        self.seen.unexpected += 1;
        self.update(message.pair, true, false, Duty::default());
        self.stalls[usize::from(message.endpoint)].news = true;
        self.unexpected.push(Unexpected { id, message });
        self.wake();
    }

    fn overflow(&mut self, message: &Message) {
        self.seen.overflows += 1;
        self.give_up(message, Cause::UnexpectedOverflow, Status::LinkError);
    }

    /// Delivery itself asks for the failure of the pair that a message came by, and says why.
    fn give_up(&mut self, message: &Message, cause: Cause, status: Status) {
        let event = (message.endpoint, cause.code(), message.pair);
        self.events.push_back(event);
        self.faults.push_back((message.pair, status.code()));
        let pair = self.pairs[usize::from(message.pair)].as_mut();
        pair.expect("a message came by it").failed = Some(status.code());
    }

    /// A request of the list ring has been taken.
    pub fn list(&mut self, endpoint: u8, domain: u8, request: ListRequest) {
        let mut receive = Posted {
            endpoint,
            domain,
            side: Side::Exact,
            request,
            start: request.address,
        };
        let kind = match Opcode::from_code(request.opcode).expect("only known ones get here") {
            Opcode::Cancel => return self.cancel(endpoint, &request),
            Opcode::ReceiveClaimed | Opcode::Discard => return self.use_claim(receive),
            Opcode::Probe => CompletionKind::Probe,
            Opcode::Claim => CompletionKind::Claim,
            _ => CompletionKind::Receive,
        };
        let at = usize::from(endpoint);
        if request.flags & FLAG_RESUME != 0 && self.stalls[at].waiting.is_none() {
            self.stalls[at].stalled = false;
        }
        if request.flags & FLAG_NOTHING_KEPT != 0 && !self.stalls[at].stalled {
            self.stalls[at].kept = false;
        }
        let stall = self.stalls[at].clone();
        let refuse = |status: Status| completion(request.request, kind, status.code());
        let behind = Completion {
            handle: stall.last,
            ..refuse(Status::Behind)
        };
        let back = || Duty {
            returns: Some(request.address),
            ..Duty::default()
        };
        let source = self.pair(request.pair).filter(|p| p.endpoint == endpoint);
        if !receive.any_source() && source.is_none() {
            self.seen.invalid += 1;
            self.complete(endpoint, refuse(Status::InvalidPair), back());
            return;
        }
        let receives = kind == CompletionKind::Receive;
        if receives && request.length > 0 && !self.allowed(domain, &request, request.length) {
            self.seen.invalid += 1;
            self.complete(endpoint, refuse(Status::LocalProtection), back());
            return;
        }
        if stall.stalled && stall.news {
            self.complete(endpoint, behind, back());
            return;
        }
        let failed = source
            .and_then(|p| p.failed)
            .filter(|_| !receive.any_source());
        let look = |all: &[Unexpected], receive: &Posted| {
            all.iter().position(|u| receive.matches(&u.message))
        };
        let mut found = look(&self.unexpected, &receive);
        while let (Some(at), true) = (found, receives) {
            let Unexpected { id, message } = self.unexpected.remove(at);
            let stays = self.deliver(&mut receive, &message, Some(id));
            let duty = Duty {
                vacates: Some(id),
                ..Duty::default()
            };
            self.update(message.pair, false, true, duty);
            self.seen.from_failed += u32::from(failed.is_some());
            self.seen.from_behind += u32::from(stall.stalled);
            if !stays {
                return;
            }
            found = look(&self.unexpected, &receive);
        }
        match (found, failed) {
            (Some(at), _) => {
                let entry = refuse(Status::Success);
                let entry = of_message(entry, &self.unexpected[at].message);
                let mut duty = Duty::default();
                if kind == CompletionKind::Claim {
                    let unexpected = self.unexpected.remove(at);
                    duty.claims = Some(unexpected.id);
                    self.claimed.push(Claimed {
                        unexpected,
                        handle: None,
                    });
                }
                self.complete(endpoint, entry, duty);
            }
            (None, Some(status)) => {
                let entry = completion(request.request, kind, status);
                self.complete(endpoint, entry, back());
            }
            (None, None) if receives && stall.stalled => self.complete(endpoint, behind, back()),
            (None, None) if receives => {
                let side = self.side_for(&receive);
                if side.is_none() {
                    self.stalls[at] = Stall {
                        stalled: true,
                        kept: true,
                        last: request.request,
                        waiting: Some(receive),
                        ..Stall::default()
                    };
                } else {
                    let side = side.unwrap_or(Side::Exact);
                    self.posted.push(Posted { side, ..receive });
                }
            }
            (None, None) => self.complete(endpoint, refuse(Status::NoMessage), Duty::default()),
        }
    }

    /// A claimed message is received or discarded.
    fn use_claim(&mut self, mut receive: Posted) {
        let Posted {
            endpoint,
            domain,
            request,
            ..
        } = receive;
        let receives = request.opcode == Opcode::ReceiveClaimed.code();
        let kind = match receives {
            true => CompletionKind::Receive,
            false => CompletionKind::Discard,
        };
        let back = Duty {
            returns: receives.then_some(request.address),
            ..Duty::default()
        };
        let own = |c: &Claimed| {
            c.unexpected.message.endpoint == endpoint && c.handle == Some(request.target)
        };
        let at = self.claimed.iter().position(own);
        let protected =
            !receives || request.length == 0 || self.allowed(domain, &request, request.length);
        let refused = match at {
            None => Some(Status::InvalidClaim),
            Some(_) if !protected => Some(Status::LocalProtection),
            Some(_) => None,
        };
        if let Some(status) = refused {
            self.seen.invalid += 1;
            let entry = completion(request.request, kind, status.code());
            self.complete(endpoint, entry, back);
            return;
        }
        let at = at.expect("else it is refused");
        let Unexpected { id, message } = self.claimed.remove(at).unexpected;
        let failed = self.pair(message.pair).is_some_and(|p| p.failed.is_some());
        self.seen.claimed_from_failed += u32::from(failed);
        if receives {
            self.deliver(&mut receive, &message, Some(id));
        } else {
            let entry = completion(request.request, kind, Status::Success.code());
            self.complete(endpoint, entry, back);
        }
        let duty = Duty {
            vacates: Some(id),
            ..Duty::default()
        };
        self.update(message.pair, false, true, duty);
    }

    fn cancel(&mut self, endpoint: u8, request: &ListRequest) {
        let wanted = |p: &Posted| p.endpoint == endpoint && p.request.request == request.target;
        let stall = &mut self.stalls[usize::from(endpoint)];
        if let Some(waiting) = stall.waiting.take_if(|w| wanted(w)) {
            self.seen.waiting_cancelled += 1;
            self.end(&waiting, Status::Cancelled.code());
            self.releases.push_back(endpoint);
            return;
        }
        match self.posted.iter().position(wanted) {
            Some(at) => {
                let posted = self.posted.remove(at);
                self.end(&posted, Status::Cancelled.code());
                self.releases.push_back(endpoint);
                self.goes();
                self.wake();
            }
            None => {
                let status = Status::TooLate.code();
                let entry = completion(request.request, CompletionKind::Cancel, status);
                self.complete(endpoint, entry, Duty::default());
            }
        }
    }

    /// Completes the posted receives that `wanted` names, in the order of `flushed`: a flush may take any.
    fn flush(&mut self, status: u8, wanted: impl Fn(&Posted) -> bool) {
        let (mut gone, stay): (Vec<_>, Vec<_>) = self.posted.drain(..).partition(|p| wanted(p));
        self.posted = stay;
        gone.sort_by_key(|p| self.flushed.iter().position(|r| *r == p.request.request));
        for posted in gone {
            self.end(&posted, status);
            self.goes();
        }
        for endpoint in 0..self.stalls.len() {
            let waiting = &mut self.stalls[endpoint].waiting;
            if let Some(waiting) = waiting.take_if(|w| wanted(w)) {
                self.seen.waiting_flushed += 1;
                self.end(&waiting, status);
            }
        }
    }

    /// What names a pair that is gone, and has been refused, may end as the pair did.
    fn pair_goes(&mut self, pair: u16) {
        let endpoint = self.pair(pair).map_or(0, |p| p.endpoint);
        self.stalls[usize::from(endpoint)].news = true;
    }

    /// A fault has been dealt with.
    pub fn fault(&mut self, pair: u16, status: u8) {
        if let Some(pair) = &mut self.pairs[usize::from(pair)] {
            pair.failed = Some(status);
        }
        self.flush(status, |p| !p.any_source() && p.request.pair == pair);
        self.pair_goes(pair);
        self.wake();
    }

    pub fn pair_set(&mut self, pair: u16, endpoint: u8, credits: u16, slots: u64) {
        self.incarnations += 1;
        self.pairs[usize::from(pair)] = Some(Pair {
            endpoint,
            credits,
            slots,
            failed: None,
            incarnation: self.incarnations,
            refused: 0,
        });
    }

    pub fn pair_clear(&mut self, pair: u16) {
        self.pair_goes(pair);
        self.pairs[usize::from(pair)] = None;
        let before = self.unexpected.len();
        self.unexpected.retain(|u| u.message.pair != pair);
        self.seen.cleared_unexpected += (before - self.unexpected.len()) as u32;
        let before = self.claimed.len();
        self.claimed.retain(|c| c.unexpected.message.pair != pair);
        self.seen.cleared_claimed += (before - self.claimed.len()) as u32;
        for id in self.held.remove(&pair).unwrap_or_default() {
            self.slots.remove(&id);
        }
        let flushed = Status::Flushed.code();
        self.flush(flushed, |p| !p.any_source() && p.request.pair == pair);
        self.wake();
    }

    pub fn endpoint_flush(&mut self, endpoint: u8) {
        self.flush(Status::Flushed.code(), |p| p.endpoint == endpoint);
        let stall = &mut self.stalls[usize::from(endpoint)];
        stall.stalled = false;
        stall.kept = false;
        self.wake();
    }

    /// An access has been asked for: it has to be the one that is wanted next.
    pub fn access(&mut self, access: Access) {
        let wanted = self.accesses.pop_front();
        self.accessed += 1;
        let wanted = wanted.unwrap_or_else(|| panic!("nothing wants {access:x?}"));
        let length = match wanted {
            Wanted::ToSlot { id, pair, length } => {
                assert!(access.write, "{wanted:?} is not {access:x?}");
                let credits = self.pair(pair).expect("a message came by it").credits;
                let slots = self.pair(pair).expect("a message came by it").slots;
                let offset = access.address.wrapping_sub(slots);
                let slot = offset / EAGER_MAX as u64;
                assert!(
                    offset.is_multiple_of(EAGER_MAX as u64) && slot < u64::from(credits),
                    "{access:x?} is no slot of pair {pair} at {slots:x}"
                );
                let taken = self.slots.values().any(|a| *a == access.address);
                assert!(
                    !taken,
                    "the slot at {:x} is given out twice",
                    access.address
                );
                self.slots.insert(id, access.address);
                length
            }
            Wanted::FromSlot { id, length } => {
                assert!(!access.write, "{wanted:?} is not {access:x?}");
                assert_eq!(access.address, self.slots[&id], "the message's slot");
                length
            }
            Wanted::ToBuffer { address, length } => {
                assert!(access.write, "{wanted:x?} is not {access:x?}");
                assert_eq!(access.address, address, "the receive's buffer");
                length
            }
        };
        assert_eq!(access.length, length, "{wanted:x?}");
    }

    /// The slot of a message is vacant.
    pub fn vacate(&mut self, id: u32) {
        self.slots.remove(&id);
        self.held.values_mut().for_each(|held| {
            held.remove(&id);
        });
    }
}
