//! What the gates of a card do, without their time: one request or one frame at a time, each to its end.
//! Also what else the firmware has of a card: its persistent memory, and the frames and events that wait for it.

use crate::fabric::Flaw;
use crate::memory::Memory;
use crate::pairs::{Body, Frame, Injected, Message, Pair};
use crate::rings::Endpoint;
use abi::completion::{COMPLETION_MORE, Completion, CompletionKind};
use abi::control::{
    CardSetup, Counter, DATA_WORDS, EndpointSetup, EventSetup, KEY_INDEX_BITS, Operation,
    PairReport, PairSetup, RIGHT_LOCAL_READ, RIGHT_LOCAL_WRITE, RING_BITS, RING_COMPLETION,
    RING_EVENT, RING_LIST, RING_SEND, RegionSetup, RingSetup,
};
use abi::event::{Cause, INFO_LIST_RING_BIT, NO_PAIR};
use abi::limits::{EAGER_MAX, MAX_CREDITS, SEND_QUEUE_DEPTH};
use abi::mailbox::PairState;
use abi::mgmt::{EVENTS_IN, FRAMES_IN, PERSISTENT_BYTES};
use abi::register::{
    COMPLETION_ARM, COMPLETION_HEAD, COMPLETION_TAIL, EVENT_ARM, EVENT_HEAD, EVENT_TAIL,
    EVENTS_LOST, LIST_HEAD, LIST_TAIL, SEND_HEAD, SEND_TAIL, STICKY,
};
use abi::request::{
    CLAIM_PLACE_BITS, FLAG_ANY_SOURCE, FLAG_MULTI, FLAG_NOTHING_KEPT, FLAG_READY, FLAG_RESUME,
    ListRequest, Opcode, REQUEST_BYTES, SendRequest,
};
use abi::status::Status;
use firmware_core::{Card, FrameWords, GateEvent, Sizes};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;

/// What an event of a ring says: an index, and which ring of the endpoint it is.
fn ring_info(list: bool, index: u32) -> u64 {
    u64::from(list) << INFO_LIST_RING_BIT | u64::from(index)
}

/// A posted receive.
struct Posted {
    endpoint: usize,
    request: ListRequest,
}

/// What a full list does to an endpoint.
#[derive(Clone, Default)]
struct Stall {
    /// Receives may look for a message, and aren't posted.
    stalled: bool,
    /// The host may keep receives back.
    kept: bool,
    /// The receive that waits for room.
    waiting: Option<ListRequest>,
    /// Its handle, or that of the last that did.
    last: u32,
    /// Something has come since that those in front have to look at first.
    news: bool,
    /// There may be room.
    room: bool,
}

/// A message without a receive; its payload rests in a slot of its pair.
struct Unexpected {
    endpoint: usize,
    pair: u16,
    slot: u8,
    message: Message,
}

/// A message that its endpoint has claimed.
struct Claimed {
    handle: u32,
    unexpected: Unexpected,
}

/// The gates of one card.
pub(crate) struct Gates {
    pub(crate) memory: Memory,
    pub(crate) endpoints: Vec<Endpoint>,
    /// Frames that have left.
    pub(crate) outbox: Vec<Frame>,
    /// Cycle of the fabric, set before each call.
    pub(crate) now: u64,
    pub(crate) setup: CardSetup,
    pairs: Vec<Option<Pair>>,
    regions: Vec<Option<RegionSetup>>,
    posted: Vec<Posted>,
    unexpected: Vec<Unexpected>,
    claimed: Vec<Claimed>,
    /// Number of the next claim, never 0.
    claims: u16,
    stalls: Vec<Stall>,
    counters: Vec<u32>,
    sizes: Sizes,
    mac: u64,
    rng: ChaCha8Rng,
    /// Control requests are not answered, nor carried out.
    pub(crate) silent: bool,
    /// The control request that is not answered, and the result of the last one that was.
    control: Option<(Operation, u16, [u64; DATA_WORDS])>,
    result: u64,
    /// Frames and events for the firmware, and how many of each found no room.
    inbox: VecDeque<FrameWords>,
    frames_lost: u32,
    events: VecDeque<GateEvent>,
    events_lost: u32,
    persistent: Vec<u32>,
    flaw: Flaw,
    /// Writes that a card with that flaw does once more.
    late: Vec<(u64, Vec<u8>)>,
}

impl Gates {
    pub(crate) fn new(sizes: Sizes, mac: u64, seed: u64, flaw: Flaw) -> Self {
        let none = |count: u32| 0..count;
        Self {
            memory: Memory::new(),
            endpoints: vec![Endpoint::default(); sizes.endpoints as usize],
            outbox: Vec::new(),
            now: 0,
            setup: CardSetup::default(),
            pairs: none(sizes.pairs).map(|_| None).collect(),
            regions: vec![None; sizes.regions as usize],
            posted: Vec::new(),
            unexpected: Vec::new(),
            claimed: Vec::new(),
            claims: 1,
            stalls: vec![Stall::default(); sizes.endpoints as usize],
            counters: vec![0; Counter::ALL.len()],
            sizes,
            mac,
            rng: ChaCha8Rng::seed_from_u64(seed),
            silent: false,
            control: None,
            result: 0,
            inbox: VecDeque::new(),
            frames_lost: 0,
            events: VecDeque::new(),
            events_lost: 0,
            persistent: vec![0; PERSISTENT_BYTES as usize / 4],
            flaw,
            late: Vec::new(),
        }
    }

    /// Clears every table. What the host has mapped stays mapped, and is no longer accessed.
    pub(crate) fn reset(&mut self) {
        if self.flaw == Flaw::KeepsGates {
            return;
        }
        self.late.clear();
        self.endpoints
            .iter_mut()
            .for_each(|endpoint| *endpoint = endpoint.cleared());
        self.stalls
            .iter_mut()
            .for_each(|stall| *stall = Stall::default());
        self.pairs.iter_mut().for_each(|pair| *pair = None);
        self.regions.iter_mut().for_each(|region| *region = None);
        self.counters.iter_mut().for_each(|counter| *counter = 0);
        self.posted.clear();
        self.unexpected.clear();
        self.claimed.clear();
        self.outbox.clear();
        self.inbox.clear();
        self.events.clear();
        self.control = None;
        self.setup = CardSetup::default();
    }

    fn count(&mut self, counter: Counter) {
        let value = &mut self.counters[usize::from(counter.code())];
        *value = value.wrapping_add(1);
    }

    fn raise(&mut self, endpoint: usize, cause: Cause, pair: u16, info: u64) {
        self.endpoints[endpoint].raise(&self.memory, cause, pair, info);
        if self.events.len() == EVENTS_IN {
            self.events_lost = self.events_lost.wrapping_add(1);
            return;
        }
        self.events.push_back(GateEvent {
            cause: cause.code(),
            endpoint: endpoint as u8,
            pair,
            info,
        });
    }

    fn complete(&mut self, endpoint: usize, completion: Completion) {
        self.count(Counter::Completions);
        self.endpoints[endpoint].complete(&self.memory, completion);
    }

    /// A posted receive has gone.
    fn make_room(&mut self) {
        for stall in &mut self.stalls {
            stall.room = true;
        }
    }

    /// Refuses the receives that wait for room, if something has changed.
    fn wake(&mut self) {
        for endpoint in 0..self.stalls.len() {
            let stall = &mut self.stalls[endpoint];
            if (stall.news || stall.room)
                && let Some(request) = stall.waiting.take()
            {
                self.flush_receive(endpoint, &request, Status::ListFull);
            }
        }
    }

    fn release(&mut self, endpoint: usize) {
        self.endpoints[endpoint].completions.reserved -= 1;
    }

    // Doorbell pages

    pub(crate) fn read_doorbell_page(&self, endpoint: usize, offset: u32) -> u32 {
        let Some(endpoint) = self.endpoints.get(endpoint) else {
            return 0;
        };
        match offset {
            SEND_HEAD => u32::from(endpoint.send.head),
            LIST_HEAD => u32::from(endpoint.list.head),
            COMPLETION_TAIL => u32::from(endpoint.completions.tail),
            EVENT_TAIL => u32::from(endpoint.events.tail),
            STICKY => endpoint.sticky,
            EVENTS_LOST => endpoint.lost,
            _ => 0,
        }
    }

    pub(crate) fn write_doorbell_page(&mut self, index: usize, offset: u32, value: u32) {
        let Some(endpoint) = self.endpoints.get_mut(index) else {
            return;
        };
        if endpoint.setup.is_none() {
            return;
        }
        let short = value as u16;
        match offset {
            SEND_TAIL | LIST_TAIL => {
                let ring = match offset {
                    SEND_TAIL => &mut endpoint.send,
                    _ => &mut endpoint.list,
                };
                if short.wrapping_sub(ring.head) > 1 << ring.setup.log2 {
                    self.count(Counter::DoorbellErrors);
                    let info = ring_info(offset == LIST_TAIL, value);
                    self.raise(index, Cause::RingOverrun, NO_PAIR, info);
                } else {
                    ring.tail = short;
                }
            }
            COMPLETION_HEAD | EVENT_HEAD => {
                let queue = match offset {
                    COMPLETION_HEAD => &mut endpoint.completions,
                    _ => &mut endpoint.events,
                };
                if !queue.consume(short) {
                    self.count(Counter::DoorbellErrors);
                    self.raise(index, Cause::IndexError, NO_PAIR, value.into());
                }
            }
            COMPLETION_ARM => endpoint.completions.arm(short),
            EVENT_ARM => endpoint.events.arm(short),
            STICKY => endpoint.sticky &= !value,
            _ => {}
        }
        self.endpoints[index].update_line();
    }

    // Rings

    /// Takes one request of every ring that has one. True if there is more to do.
    pub(crate) fn work(&mut self) -> bool {
        for (address, bytes) in std::mem::take(&mut self.late) {
            // A region that is gone is none to write to.
            let _ = self.memory.write(address, &bytes);
        }
        for index in 0..self.endpoints.len() {
            if let Some(words) = self.fetch(index, RING_SEND) {
                self.send(index, SendRequest::from_words(&words));
            }
            if let Some(words) = self.fetch(index, RING_LIST) {
                self.list(index, ListRequest::from_words(&words));
                self.wake();
            }
        }
        self.endpoints.iter().any(|endpoint| {
            let waiting = endpoint.send.waiting() > 0 || endpoint.list.waiting() > 0;
            waiting && !endpoint.stopped && endpoint.completions.has_room()
        })
    }

    fn fetch(&mut self, index: usize, which: u16) -> Option<[u64; REQUEST_BYTES / 8]> {
        let endpoint = &mut self.endpoints[index];
        if endpoint.setup.is_none() || endpoint.stopped || !endpoint.completions.has_room() {
            return None;
        }
        let ring = match which {
            RING_SEND => &mut endpoint.send,
            _ => &mut endpoint.list,
        };
        if ring.waiting() == 0 {
            return None;
        }
        let entry = u64::from(ring.head) & ((1 << ring.setup.log2) - 1);
        let address = ring.setup.base + entry * REQUEST_BYTES as u64;
        let Ok(bytes) = self.memory.read(address, REQUEST_BYTES) else {
            let head = ring.head;
            ring.tail = head;
            let info = ring_info(which == RING_LIST, head.into());
            self.raise(index, Cause::RingError, NO_PAIR, info);
            return None;
        };
        ring.head = ring.head.wrapping_add(1);
        endpoint.completions.reserved += 1;
        let mut words = [0; REQUEST_BYTES / 8];
        for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = chunk
                .iter()
                .rev()
                .fold(0, |word, &byte| word << 8 | u64::from(byte));
        }
        Some(words)
    }

    /// The memory of a buffer, if a key allows the access.
    fn check(&self, domain: u8, key: u32, rights: u8, address: u64, length: u64) -> bool {
        if length == 0 {
            return true;
        }
        let region = self
            .regions
            .get((key & ((1 << KEY_INDEX_BITS) - 1)) as usize);
        let Some(Some(region)) = region else {
            return false;
        };
        let end = address.checked_add(length);
        region.tag == key >> KEY_INDEX_BITS
            && region.domain == domain
            && region.rights & rights == rights
            && address >= region.base
            && end.is_some_and(|end| end <= region.base + region.length)
    }

    fn domain(&self, endpoint: usize) -> u8 {
        self.endpoints[endpoint]
            .setup
            .map_or(0, |setup| setup.domain)
    }

    /// The connected pair of this number, if it is the endpoint's.
    fn pair_of(&self, endpoint: usize, pair: u16) -> Option<&Pair> {
        let found = self.pairs.get(usize::from(pair))?.as_ref()?;
        (usize::from(found.setup.endpoint) == endpoint).then_some(found)
    }

    // Sends

    fn send(&mut self, endpoint: usize, request: SendRequest) {
        let refused = Completion {
            request: request.request,
            pair: request.pair,
            context: request.context,
            length: request.length,
            kind: CompletionKind::Send.code(),
            ..Completion::default()
        };
        let reserved =
            u64::from(request.reserved0) | u64::from(request.reserved1) | request.reserved2;
        let opcode = Opcode::from_code(request.opcode);
        let flags = match opcode {
            Some(Opcode::TaggedSend) => FLAG_READY,
            _ => 0,
        };
        let reserved = reserved | u64::from(request.flags & !flags);
        if opcode == Some(Opcode::CancelSend) && reserved == 0 {
            self.cancel_send(endpoint, &request);
            return;
        }
        let pair = self.pair_of(endpoint, request.pair);
        let status = match (opcode, pair) {
            (Some(Opcode::TaggedSend), _) if reserved != 0 => Some(Status::InvalidRequest),
            (Some(Opcode::TaggedSend), None) => Some(Status::InvalidPair),
            (Some(Opcode::TaggedSend), Some(_)) if request.length > EAGER_MAX as u64 => {
                Some(Status::TooLong)
            }
            (Some(Opcode::TaggedSend), Some(pair)) => pair.failed.or_else(|| {
                (pair.waiting.len() >= usize::from(SEND_QUEUE_DEPTH)).then_some(Status::QueueFull)
            }),
            _ => Some(Status::InvalidRequest),
        };
        if let Some(status) = status {
            let kind = match opcode {
                Some(Opcode::TaggedSend) => CompletionKind::Send,
                Some(Opcode::CancelSend) => CompletionKind::Cancel,
                _ => CompletionKind::Unknown,
            };
            let malformed = [Status::InvalidRequest, Status::InvalidPair, Status::TooLong];
            if malformed.contains(&status) {
                self.count(Counter::InvalidRequests);
            }
            let (status, kind) = (status.code(), kind.code());
            self.complete(
                endpoint,
                Completion {
                    status,
                    kind,
                    ..refused
                },
            );
            return;
        }
        if let Some(pair) = &mut self.pairs[usize::from(request.pair)] {
            pair.waiting.push_back(request);
        }
        self.inject(request.pair);
    }

    /// Takes a send out of the queue of its pair, if it still waits there.
    fn cancel_send(&mut self, endpoint: usize, request: &SendRequest) {
        let pair = self.pairs.get_mut(usize::from(request.pair));
        let found = pair.and_then(Option::as_mut).and_then(|pair| {
            let mine = usize::from(pair.setup.endpoint) == endpoint;
            let target = |send: &SendRequest| mine && send.request == request.target;
            let at = pair.waiting.iter().position(target)?;
            pair.waiting.remove(at)
        });
        match found {
            Some(send) => {
                self.complete_send(
                    endpoint,
                    request.pair,
                    send.request,
                    send.length,
                    Status::Cancelled,
                );
                self.release(endpoint);
            }
            None => self.complete(
                endpoint,
                Completion {
                    request: request.request,
                    pair: request.pair,
                    status: Status::TooLate.code(),
                    kind: CompletionKind::Cancel.code(),
                    ..Completion::default()
                },
            ),
        }
    }

    /// Injects the waiting sends of a pair for which it has credit.
    fn inject(&mut self, index: u16) {
        while let Some(pair) = &mut self.pairs[usize::from(index)] {
            if pair.available() == 0 {
                return;
            }
            let Some(request) = pair.waiting.pop_front() else {
                return;
            };
            let endpoint = usize::from(pair.setup.endpoint);
            let domain = self.domain(endpoint);
            let allowed = self.check(
                domain,
                request.key,
                RIGHT_LOCAL_READ,
                request.address,
                request.length,
            );
            let payload = match allowed {
                true => self
                    .memory
                    .read(request.address, request.length as usize)
                    .map_err(|_| Status::MemoryError),
                false => Err(Status::LocalProtection),
            };
            let payload = match payload {
                Ok(payload) => payload,
                Err(status) => {
                    if status == Status::LocalProtection {
                        self.count(Counter::InvalidRequests);
                    }
                    self.complete_send(endpoint, index, request.request, request.length, status);
                    continue;
                }
            };
            let Some(pair) = &mut self.pairs[usize::from(index)] else {
                return;
            };
            let sequence = pair.taken;
            pair.taken = pair.taken.wrapping_add(1);
            pair.unacknowledged.push_back(Injected {
                sequence,
                request: request.request,
                length: request.length,
                left_at: self.now,
            });
            let frame = pair.frame(Body::Eager(Message {
                sequence,
                context: request.context,
                match_bits: request.match_bits,
                immediate: request.immediate,
                ready: request.flags & FLAG_READY != 0,
                payload,
            }));
            self.count(Counter::FramesSent);
            self.outbox.push(frame);
        }
    }

    fn complete_send(
        &mut self,
        endpoint: usize,
        pair: u16,
        request: u32,
        length: u64,
        status: Status,
    ) {
        self.complete(
            endpoint,
            Completion {
                request,
                pair,
                length,
                status: status.code(),
                kind: CompletionKind::Send.code(),
                ..Completion::default()
            },
        );
    }

    // Frames

    /// Takes a frame from the fabric.
    pub(crate) fn receive(&mut self, frame: &Frame) {
        if let Body::Firmware(words) = &frame.body {
            if self.inbox.len() == FRAMES_IN {
                self.frames_lost = self.frames_lost.wrapping_add(1);
                self.count(Counter::FirmwareFramesDropped);
            } else {
                self.inbox.push_back(**words);
            }
            return;
        }
        let index = frame.destination_pair;
        let pair = self
            .pairs
            .get_mut(usize::from(index))
            .and_then(Option::as_mut);
        let Some(pair) = pair.filter(|pair| pair.is_addressed(frame)) else {
            self.count(Counter::PairErrors);
            return;
        };
        let failed = pair.failed.is_some();
        let endpoint = usize::from(pair.setup.endpoint);
        if !failed {
            pair.returned = frame.credit;
            let safe = |sent: &Injected| (frame.acknowledge.wrapping_sub(sent.sequence) as i32) > 0;
            let mut done = Vec::new();
            while let Some(sent) = pair.unacknowledged.pop_front_if(|sent| safe(sent)) {
                done.push(sent);
            }
            for sent in done {
                let later = frame.acknowledge.wrapping_sub(sent.sequence) - 1;
                let refused = frame.refused.checked_shr(later).unwrap_or(0) & 1 != 0;
                let status = match refused {
                    true => Status::NotReady,
                    false => Status::Success,
                };
                self.complete_send(endpoint, index, sent.request, sent.length, status);
            }
            self.inject(index);
        }
        self.count(Counter::FramesReceived);
        match &frame.body {
            Body::Acknowledge | Body::Firmware(_) => {}
            Body::PairFailed => self.fail(index, Status::LinkError),
            Body::Eager(_) if failed => {}
            Body::Eager(message) => {
                let expected = self.pairs[usize::from(index)]
                    .as_ref()
                    .map_or(0, |pair| pair.accepted);
                if message.sequence == expected {
                    self.arrive(endpoint, index, message.clone());
                } else {
                    self.count(Counter::Gaps);
                    self.fail(index, Status::LinkError);
                }
            }
        }
        self.wake();
    }

    /// Fails the pairs whose peer has been silent for too long; none ever if the time-out is 0.
    pub(crate) fn check_silence(&mut self) {
        let timeout = u64::from(self.setup.acknowledge_timeout);
        for index in 0..self.pairs.len() {
            let oldest = self.pairs[index]
                .as_ref()
                .and_then(|pair| pair.unacknowledged.front());
            if timeout > 0 && oldest.is_some_and(|sent| self.now >= sent.left_at + timeout) {
                self.count(Counter::Timeouts);
                self.fail(index as u16, Status::LinkError);
            }
        }
        self.wake();
    }

    fn arrive(&mut self, endpoint: usize, index: u16, message: Message) {
        let found = self.posted.iter().position(|posted| {
            posted.endpoint == endpoint && matches(&posted.request, index, &message)
        });
        // A receive for it may still be in the ring, or with the host.
        let held_back = self.stalls[endpoint].kept || self.endpoints[endpoint].list.waiting() > 0;
        let Some(pair) = &mut self.pairs[usize::from(index)] else {
            return;
        };
        match found {
            Some(at) => {
                pair.accept(false);
                pair.freed = pair.freed.wrapping_add(1);
                let mut posted = self.posted.remove(at);
                self.count(Counter::Expected);
                if self.deliver(endpoint, index, &mut posted.request, &message) {
                    self.posted.insert(at, posted);
                } else {
                    self.make_room();
                }
            }
            None if message.ready && !held_back => {
                pair.accept(true);
                pair.freed = pair.freed.wrapping_add(1);
            }
            None => {
                let slot = pair.take_slot();
                let held = self.unexpected.len() + self.claimed.len();
                let full = held >= self.sizes.unexpected as usize;
                let Some(slot) = slot.filter(|_| !full) else {
                    self.raise(endpoint, Cause::UnexpectedOverflow, index, 0);
                    self.fail(index, Status::LinkError);
                    return;
                };
                let address = pair.setup.slots + u64::from(slot) * EAGER_MAX as u64;
                if self.memory.write(address, &message.payload).is_err() {
                    self.raise(endpoint, Cause::SlotError, index, 0);
                    self.fail(index, Status::MemoryError);
                    return;
                }
                pair.accept(false);
                self.count(Counter::Unexpected);
                self.stalls[endpoint].news = true;
                self.unexpected.push(Unexpected {
                    endpoint,
                    pair: index,
                    slot,
                    message,
                });
            }
        }
        self.acknowledge(index);
    }

    fn acknowledge(&mut self, index: u16) {
        if let Some(pair) = &self.pairs[usize::from(index)] {
            let frame = pair.frame(Body::Acknowledge);
            self.count(Counter::FramesSent);
            self.outbox.push(frame);
        }
    }

    /// Writes a message to the buffer of a receive and completes it. A multi-receive that stays begins behind the message then.
    fn deliver(
        &mut self,
        endpoint: usize,
        pair: u16,
        request: &mut ListRequest,
        message: &Message,
    ) -> bool {
        let fits = (message.payload.len() as u64).min(request.length);
        let domain = self.domain(endpoint);
        let allowed = self.check(
            domain,
            request.key,
            RIGHT_LOCAL_WRITE,
            request.address,
            fits,
        );
        let status = if !allowed {
            if let Some(pair) = &mut self.pairs[usize::from(pair)] {
                pair.refused = pair.refused.wrapping_add(1);
            }
            Status::AccessDenied
        } else if self
            .memory
            .write(request.address, &message.payload[..fits as usize])
            .is_err()
        {
            Status::MemoryError
        } else if fits < message.payload.len() as u64 {
            Status::Truncated
        } else {
            Status::Success
        };
        let mut completion = found(request, CompletionKind::Receive, pair, message, status);
        let address = request.address;
        let left = request.length - fits;
        let stays = request.flags & FLAG_MULTI != 0
            && status == Status::Success
            && left >= u64::from(request.min_free).max(1)
            && self.endpoints[endpoint].completions.has_room();
        if stays {
            self.endpoints[endpoint].completions.reserved += 1;
            completion.flags = COMPLETION_MORE;
            request.address += fits;
            request.length = left;
        }
        self.complete(endpoint, completion);
        let room = self.endpoints[endpoint].completions.has_room();
        match self.flaw {
            Flaw::CompletesTwice if room => {
                self.endpoints[endpoint].completions.reserved += 1;
                self.complete(endpoint, completion);
            }
            Flaw::WritesLate if allowed => {
                let bytes = message.payload[..fits as usize].to_vec();
                self.late.push((address, bytes));
            }
            _ => {}
        }
        stays
    }

    // Receives, cancels, probes, claims

    fn list(&mut self, endpoint: usize, request: ListRequest) {
        let opcode = Opcode::from_code(request.opcode);
        let kind = match opcode {
            Some(Opcode::TaggedReceive) => CompletionKind::Receive,
            Some(Opcode::Cancel) => CompletionKind::Cancel,
            Some(Opcode::Probe) => CompletionKind::Probe,
            Some(Opcode::Claim) => CompletionKind::Claim,
            Some(Opcode::ReceiveClaimed) => CompletionKind::Receive,
            Some(Opcode::Discard) => CompletionKind::Discard,
            _ => CompletionKind::Unknown,
        };
        let any_source = request.flags & FLAG_ANY_SOURCE != 0;
        let min_free = match request.flags & FLAG_MULTI {
            0 => request.min_free,
            _ => 0,
        };
        let reserved = u64::from(request.reserved0) | u64::from(min_free) | request.reserved2;
        let flags = match opcode {
            Some(Opcode::TaggedReceive) => {
                FLAG_ANY_SOURCE | FLAG_RESUME | FLAG_MULTI | FLAG_NOTHING_KEPT
            }
            Some(Opcode::Probe | Opcode::Claim) => {
                FLAG_ANY_SOURCE | FLAG_RESUME | FLAG_NOTHING_KEPT
            }
            _ => 0,
        };
        let flags_valid = request.flags & !flags == 0;
        if kind == CompletionKind::Unknown || reserved != 0 || !flags_valid {
            self.refuse(endpoint, &request, kind, Status::InvalidRequest);
            self.count(Counter::InvalidRequests);
            return;
        }
        if opcode == Some(Opcode::Cancel) {
            let posted = |posted: &Posted| {
                posted.endpoint == endpoint && posted.request.request == request.target
            };
            let stall = &mut self.stalls[endpoint];
            let waiting = stall
                .waiting
                .take_if(|waiting| waiting.request == request.target);
            if let Some(waiting) = waiting {
                self.flush_receive(endpoint, &waiting, Status::Cancelled);
                self.release(endpoint);
                return;
            }
            match self.posted.iter().position(posted) {
                None => self.refuse(endpoint, &request, kind, Status::TooLate),
                Some(at) => {
                    let target = self.posted.remove(at).request;
                    self.make_room();
                    self.flush_receive(endpoint, &target, Status::Cancelled);
                    self.release(endpoint);
                }
            }
            return;
        }
        if matches!(opcode, Some(Opcode::ReceiveClaimed | Opcode::Discard)) {
            self.use_claim(endpoint, request, kind);
            return;
        }
        let stall = &mut self.stalls[endpoint];
        if request.flags & FLAG_RESUME != 0 && stall.waiting.is_none() {
            stall.stalled = false;
        }
        if request.flags & FLAG_NOTHING_KEPT != 0 && !stall.stalled {
            stall.kept = false;
        }
        let Stall { stalled, news, .. } = *stall;
        let source = match self.pair_of(endpoint, request.pair) {
            _ if any_source => Ok(()),
            None => Err(Status::InvalidPair),
            Some(Pair {
                failed: Some(status),
                ..
            }) if kind == CompletionKind::Receive => Err(*status),
            Some(_) => Ok(()),
        };
        let source = source.and_then(|()| {
            let checked = kind != CompletionKind::Receive
                || self.check(
                    self.domain(endpoint),
                    request.key,
                    RIGHT_LOCAL_WRITE,
                    request.address,
                    request.length,
                );
            checked.then_some(()).ok_or(Status::LocalProtection)
        });
        let waiting = self.unexpected.iter().position(|waiting| {
            waiting.endpoint == endpoint && matches(&request, waiting.pair, &waiting.message)
        });
        // What arrived before the pair failed may still be received.
        let source = match (source, waiting) {
            (Err(Status::LinkError | Status::MemoryError | Status::PeerClosed), Some(_)) => Ok(()),
            (source, _) => source,
        };
        let malformed =
            Err(Status::InvalidPair) == source || Err(Status::LocalProtection) == source;
        if malformed {
            self.count(Counter::InvalidRequests);
        }
        if stalled && news && !malformed {
            self.refuse(endpoint, &request, kind, Status::Behind);
            return;
        }
        match (source, opcode, waiting) {
            (Err(status), ..) => self.refuse(endpoint, &request, kind, status),
            (Ok(()), Some(Opcode::Probe | Opcode::Claim), None) => {
                self.refuse(endpoint, &request, kind, Status::NoMessage)
            }
            (Ok(()), Some(Opcode::Probe), Some(at)) => {
                let waiting = &self.unexpected[at];
                let (pair, message) = (waiting.pair, &waiting.message);
                let completion = found(&request, kind, pair, message, Status::Success);
                self.complete(endpoint, completion);
            }
            (Ok(()), Some(Opcode::Claim), Some(at)) => {
                let unexpected = self.unexpected.remove(at);
                let Unexpected { pair, slot, .. } = unexpected;
                let place = u32::from(pair) * u32::from(MAX_CREDITS) + u32::from(slot);
                let handle = u32::from(self.claims) << CLAIM_PLACE_BITS | place;
                self.claims = self.claims.checked_add(1).unwrap_or(1);
                let message = &unexpected.message;
                let completion = Completion {
                    handle,
                    ..found(&request, kind, pair, message, Status::Success)
                };
                self.claimed.push(Claimed { handle, unexpected });
                self.complete(endpoint, completion);
            }
            (Ok(()), _, Some(at)) => {
                let mut request = request;
                if self.take_unexpected(endpoint, &mut request, at) {
                    // The next one, or it is posted.
                    self.list(endpoint, request);
                }
            }
            (Ok(()), _, None) if stalled => {
                self.refuse(endpoint, &request, kind, Status::Behind);
            }
            (Ok(()), _, None) if self.posted.len() >= self.sizes.posted as usize => {
                self.stalls[endpoint] = Stall {
                    stalled: true,
                    kept: true,
                    waiting: Some(request),
                    last: request.request,
                    ..Stall::default()
                };
            }
            (Ok(()), _, None) => self.posted.push(Posted { endpoint, request }),
        }
    }

    /// Receives or discards a claimed message.
    fn use_claim(&mut self, endpoint: usize, mut request: ListRequest, kind: CompletionKind) {
        let own = |claimed: &Claimed| {
            claimed.handle == request.target && claimed.unexpected.endpoint == endpoint
        };
        let at = self.claimed.iter().position(own);
        let receives = kind == CompletionKind::Receive;
        let domain = self.domain(endpoint);
        let (key, address, length) = (request.key, request.address, request.length);
        let allowed = !receives || self.check(domain, key, RIGHT_LOCAL_WRITE, address, length);
        match at {
            Some(at) if allowed => {
                let unexpected = self.claimed.remove(at).unexpected;
                if receives {
                    self.copy_unexpected(unexpected, &mut request);
                } else {
                    self.refuse(endpoint, &request, kind, Status::Success);
                    self.vacate(&unexpected);
                    self.acknowledge(unexpected.pair);
                }
            }
            _ => {
                let status = match at {
                    None => Status::InvalidClaim,
                    Some(_) => Status::LocalProtection,
                };
                self.count(Counter::InvalidRequests);
                self.refuse(endpoint, &request, kind, status);
            }
        }
    }

    /// Gives back the slot and the credit of a message.
    fn vacate(&mut self, unexpected: &Unexpected) {
        if let Some(pair) = &mut self.pairs[usize::from(unexpected.pair)] {
            pair.slots &= !(1 << unexpected.slot);
            pair.freed = pair.freed.wrapping_add(1);
        }
    }

    /// Takes an unexpected message for a receive. Returns whether the receive stays.
    fn take_unexpected(&mut self, endpoint: usize, request: &mut ListRequest, at: usize) -> bool {
        let unexpected = self.unexpected.remove(at);
        debug_assert_eq!(unexpected.endpoint, endpoint);
        self.copy_unexpected(unexpected, request)
    }

    /// Copies a message from its slot to the buffer of a receive. Returns whether the receive stays.
    fn copy_unexpected(&mut self, unexpected: Unexpected, request: &mut ListRequest) -> bool {
        self.vacate(&unexpected);
        let Unexpected {
            endpoint,
            pair: index,
            slot,
            mut message,
        } = unexpected;
        let Some(pair) = &self.pairs[usize::from(index)] else {
            return false;
        };
        let address = pair.setup.slots + u64::from(slot) * EAGER_MAX as u64;
        let stays = match self.memory.read(address, message.payload.len()) {
            Ok(payload) => {
                message.payload = payload;
                self.deliver(endpoint, index, request, &message)
            }
            Err(_) => {
                self.flush_receive(endpoint, request, Status::MemoryError);
                false
            }
        };
        self.acknowledge(index);
        stays
    }

    fn flush_receive(&mut self, endpoint: usize, request: &ListRequest, status: Status) {
        self.refuse(endpoint, request, CompletionKind::Receive, status);
    }

    /// Completes a request of the list ring without an envelope.
    fn refuse(
        &mut self,
        endpoint: usize,
        request: &ListRequest,
        kind: CompletionKind,
        status: Status,
    ) {
        self.complete(
            endpoint,
            Completion {
                request: request.request,
                pair: request.pair,
                context: request.context,
                status: status.code(),
                kind: kind.code(),
                handle: match status {
                    Status::Behind => self.stalls[endpoint].last,
                    _ => 0,
                },
                ..Completion::default()
            },
        );
    }

    // Failure

    /// Fails a pair: what depends on it completes with `status`, and the peer is told, unless that is `PeerClosed`.
    fn fail(&mut self, index: u16, status: Status) {
        let Some(pair) = &mut self.pairs[usize::from(index)] else {
            return;
        };
        if pair.failed.is_some() {
            return;
        }
        pair.failed = Some(status);
        let endpoint = usize::from(pair.setup.endpoint);
        let sent = pair
            .unacknowledged
            .drain(..)
            .map(|sent| (sent.request, sent.length));
        let waiting = pair
            .waiting
            .drain(..)
            .map(|send| (send.request, send.length));
        let sends: Vec<_> = sent.chain(waiting).collect();
        let frame = pair.frame(Body::PairFailed);
        for (request, length) in sends {
            self.complete_send(endpoint, index, request, length, status);
        }
        let names = |posted: &Posted| {
            let any = posted.request.flags & FLAG_ANY_SOURCE != 0;
            posted.endpoint == endpoint && !any && posted.request.pair == index
        };
        self.flush_posted(endpoint, status, names);
        self.stalls[endpoint].news = true;
        // A pair that was closed in an orderly way is no failure: the firmware tells the peer's.
        if status != Status::PeerClosed {
            self.count(Counter::FramesSent);
            self.outbox.push(frame);
        }
        if status == Status::LinkError {
            self.raise(endpoint, Cause::LinkError, index, status.code().into());
        }
    }

    /// Completes the posted receives that `names` picks.
    fn flush_posted(&mut self, endpoint: usize, status: Status, names: impl Fn(&Posted) -> bool) {
        while let Some(at) = self.posted.iter().position(&names) {
            let request = self.posted.remove(at).request;
            self.make_room();
            self.flush_receive(endpoint, &request, status);
        }
        if let Some(request) = self.stalls[endpoint].waiting.take() {
            let posted = Posted { endpoint, request };
            match names(&posted) {
                true => self.flush_receive(endpoint, &posted.request, status),
                false => self.stalls[endpoint].waiting = Some(posted.request),
            }
        }
    }

    fn set_ring(&mut self, index: u16, setup: RingSetup) {
        let endpoint = &mut self.endpoints[usize::from(index >> RING_BITS)];
        match index & ((1 << RING_BITS) - 1) {
            RING_SEND => endpoint.send = Default::default(),
            RING_LIST => endpoint.list = Default::default(),
            RING_COMPLETION => endpoint.completions = Default::default(),
            RING_EVENT => endpoint.events = Default::default(),
            _ => {}
        }
        match index & ((1 << RING_BITS) - 1) {
            RING_SEND => endpoint.send.setup = setup,
            RING_LIST => endpoint.list.setup = setup,
            RING_COMPLETION => endpoint.completions.setup = setup,
            _ => endpoint.events.setup = setup,
        }
    }
}

/// Whether a receive, a probe or a claim matches a message of `pair`.
fn matches(request: &ListRequest, pair: u16, message: &Message) -> bool {
    (request.flags & FLAG_ANY_SOURCE != 0 || request.pair == pair)
        && request.context == message.context
        && (request.match_bits ^ message.match_bits) & !request.ignore_bits == 0
}

/// The completion of a receive, probe or claim that found a message.
fn found(
    request: &ListRequest,
    kind: CompletionKind,
    pair: u16,
    message: &Message,
    status: Status,
) -> Completion {
    Completion {
        match_bits: message.match_bits,
        immediate: message.immediate,
        length: message.payload.len() as u64,
        request: request.request,
        pair,
        context: message.context,
        status: status.code(),
        kind: kind.code(),
        ..Completion::default()
    }
}

fn words<const N: usize>(data: &[u64]) -> [u64; N] {
    std::array::from_fn(|k| data.get(k).copied().unwrap_or(0))
}

impl Gates {
    fn carry_out(&mut self, operation: Operation, index: u16, data: &[u64]) -> u64 {
        let at = usize::from(index);
        match operation {
            Operation::CardSet => self.setup = CardSetup::from_words(&words(data)),
            // Nothing is hashed here.
            Operation::MatchSet => {}
            Operation::RingSet => self.set_ring(index, RingSetup::from_words(&words(data))),
            Operation::EndpointSet => {
                let endpoint = &mut self.endpoints[at];
                endpoint.setup = Some(EndpointSetup::from_words(&words(data)));
                endpoint.stopped = false;
            }
            Operation::EndpointStop => self.endpoints[at].stopped = true,
            Operation::EndpointFlush => {
                self.flush_posted(at, Status::Flushed, |posted| posted.endpoint == at);
                self.stalls[at] = Stall::default();
            }
            Operation::EndpointClear => {
                self.endpoints[at] = self.endpoints[at].cleared();
                self.unexpected.retain(|waiting| waiting.endpoint != at);
                self.claimed
                    .retain(|claimed| claimed.unexpected.endpoint != at);
            }
            Operation::PairSet => {
                self.pairs[at] = Some(Pair::new(PairSetup::from_words(&words(data))));
            }
            Operation::PairFail => {
                let status = data.first().map_or(0, |&word| word as u8);
                self.fail(index, Status::from_code(status).unwrap_or(Status::Flushed));
            }
            Operation::PairClear => {
                if let Some(pair) = self.pairs[at].take() {
                    self.stalls[usize::from(pair.setup.endpoint)].news = true;
                }
                self.unexpected.retain(|waiting| waiting.pair != index);
                self.claimed
                    .retain(|claimed| claimed.unexpected.pair != index);
            }
            Operation::PairRead => {
                let Some(pair) = &self.pairs[at] else {
                    return 0;
                };
                let state = match pair.failed {
                    Some(_) => PairState::Failed,
                    None => PairState::Connected,
                };
                let report = PairReport {
                    state: state.code(),
                    available: pair.available() as u8,
                    unacknowledged: pair.unacknowledged.len() as u8,
                    waiting: pair.waiting.len() as u8,
                    refused: pair.refused,
                };
                return report.to_words()[0];
            }
            Operation::RegionSet => {
                self.regions[at] = Some(RegionSetup::from_words(&words(data)));
            }
            Operation::RegionClear => self.regions[at] = None,
            Operation::CounterRead => return self.counters[at].into(),
            Operation::EventRaise => {
                let EventSetup {
                    cause, pair, info, ..
                } = EventSetup::from_words(&words(data));
                if let Some(cause) = Cause::from_code(cause) {
                    self.endpoints[at].raise(&self.memory, cause, pair, info);
                }
            }
        }
        self.wake();
        0
    }
}

impl Card for Gates {
    fn control_start(&mut self, operation: Operation, index: u16, data: &[u64]) {
        debug_assert!(self.control.is_none(), "one request at a time");
        self.control = Some((operation, index, words(data)));
    }

    fn control_result(&mut self) -> Option<u64> {
        if self.silent && self.control.is_some() {
            return None;
        }
        if let Some((operation, index, data)) = self.control.take() {
            self.result = self.carry_out(operation, index, &data);
        }
        Some(self.result)
    }

    fn reset_start(&mut self) {
        self.reset();
    }

    fn reset_done(&mut self) -> bool {
        true
    }

    fn frame_out_is_free(&mut self) -> bool {
        true
    }

    fn frame_send(&mut self, frame: &FrameWords) {
        self.count(Counter::FramesSent);
        self.outbox.push(Frame::of_firmware(*frame));
    }

    fn frame_take(&mut self) -> Option<FrameWords> {
        self.inbox.pop_front()
    }

    fn frames_lost(&mut self) -> u32 {
        self.frames_lost
    }

    fn event_take(&mut self) -> Option<GateEvent> {
        self.events.pop_front()
    }

    fn events_lost(&mut self) -> u32 {
        self.events_lost
    }

    fn now(&self) -> u32 {
        self.now as u32
    }

    fn random(&mut self) -> u32 {
        self.rng.random()
    }

    fn mac(&self) -> u64 {
        self.mac
    }

    fn sizes(&self) -> Sizes {
        self.sizes
    }

    fn persistent(&self, word: usize) -> u32 {
        self.persistent[word]
    }

    fn set_persistent(&mut self, word: usize, value: u32) {
        self.persistent[word] = value;
    }
}
