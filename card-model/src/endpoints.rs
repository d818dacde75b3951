//! The endpoints' doorbell pages: rings that the host fills, queues that the card fills, reservations, events, interrupts.
//!
//! ```text
//!              ┌──────────── Endpoint ────────────┐
//!  doorbell ──►│ send, list   Ring   tail, head   │──► fetch: an entry is wanted, and a completion for it is free
//!              │ completions  Queue  tail, head   │◄── complete: a reservation becomes an entry
//!              │ events       Queue  + sticky bits│◄── raise
//!              └────────────────┬─────────────────┘
//!                               └──► interrupt line: armed, and the tail is past the index armed with
//! ```
//!
//! `reserved + used ≤ size` always: nothing is written over an entry that the host hasn't consumed.

use abi::capability::CAPABILITY_SHARED_COMPLETIONS;
use abi::completion::{Completion, words_written};
use abi::control::{
    Counter, EndpointSetup, RING_COMPLETION, RING_EVENT, RING_LIST, RING_SEND, RingSetup,
    ring_of_index,
};
use abi::event::{Cause, Event, NO_PAIR, ring_info};
use abi::opcode::WorkRing;
use abi::register::{
    COMPLETION_ARM, COMPLETION_HEAD, COMPLETION_TAIL, EVENT_ARM, EVENT_HEAD, EVENT_TAIL,
    EVENTS_LOST, LIST_HEAD, LIST_TAIL, SEND_HEAD, SEND_TAIL, STICKY,
};
use abi::request::REQUEST_BYTES;
use abi::ring::{entry_address, phase};

use crate::breaks::Break;
use crate::counters::Counters;
use crate::memory::{BusError, HostMemory};

/// An event of the gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raised {
    /// Endpoint.
    pub endpoint: u8,
    /// Cause.
    pub cause: Cause,
    /// Pair concerned, or `NO_PAIR`.
    pub pair: u16,
    /// Depends on the cause.
    pub info: u64,
}

/// A ring that the host fills.
#[derive(Clone, Debug, Default)]
struct Ring {
    setup: Option<RingSetup>,
    tail: u16,
    head: u16,
    /// An entry couldn't be read.
    stopped: bool,
}

impl Ring {
    fn pending(&self) -> bool {
        self.tail != self.head && !self.stopped
    }

    /// Takes a tail; false if it is further ahead than the ring is long.
    fn ring(&mut self, value: u32) -> bool {
        let size = self.setup.map_or(0, |setup| 1_u32 << setup.log2);
        let tail = value as u16;
        let fits = value >> 16 == 0 && u32::from(tail.wrapping_sub(self.head)) <= size;
        if fits {
            self.tail = tail;
        }
        fits
    }
}

/// A queue that the card fills.
#[derive(Clone, Debug, Default)]
struct Queue {
    setup: Option<RingSetup>,
    tail: u16,
    head: u16,
    armed: Option<u16>,
    interrupts: bool,
}

impl Queue {
    fn size(&self) -> u32 {
        self.setup.map_or(0, |setup| 1 << setup.log2)
    }

    fn used(&self) -> u32 {
        u32::from(self.tail.wrapping_sub(self.head))
    }

    /// Takes a consumer index; false if the queue never was there.
    fn consume(&mut self, value: u32) -> bool {
        let head = value as u16;
        let valid = value >> 16 == 0 && u32::from(head.wrapping_sub(self.head)) <= self.used();
        if valid {
            self.head = head;
        }
        valid
    }

    fn arm(&mut self, value: u32) {
        self.armed = self.setup.map(|_| value as u16);
        self.interrupts = false;
        self.look();
    }

    /// Raises the interrupt if the tail is past the index armed with.
    fn look(&mut self) {
        let past = |armed: u16| (self.tail.wrapping_sub(armed) as i16) > 0;
        if self.armed.is_some_and(past) {
            self.armed = None;
            self.interrupts = true;
        }
    }

    /// Address and phase of the next entry, which is taken.
    fn next(&mut self, bytes: usize) -> Option<(u64, u8)> {
        let RingSetup { base, log2, .. } = self.setup?;
        let index = self.tail;
        self.tail = index.wrapping_add(1);
        Some((entry_address(base, index, log2, bytes), phase(index, log2)))
    }
}

#[derive(Clone, Debug, Default)]
struct Endpoint {
    /// It has been set, and not cleared.
    open: bool,
    domain: u8,
    /// The other endpoint on whose queue its requests complete.
    completion_owner: Option<u8>,
    /// It fetches.
    runs: bool,
    send: Ring,
    list: Ring,
    completions: Queue,
    events: Queue,
    /// Completions promised to requests under way.
    reserved: u32,
    sticky: u32,
    lost: u32,
}

impl Endpoint {
    fn ring_mut(&mut self, ring: WorkRing) -> &mut Ring {
        match ring {
            WorkRing::Send => &mut self.send,
            WorkRing::List => &mut self.list,
        }
    }

    fn completion_free(&self) -> bool {
        self.reserved + self.completions.used() < self.completions.size()
    }
}

/// All endpoints of a card.
#[derive(Clone, Debug)]
pub struct Endpoints {
    all: Vec<Endpoint>,
    /// What the gates have raised, for the firmware.
    pub raised: Vec<Raised>,
    /// Endpoints may complete on the queues of others, and completions tell their endpoint.
    shares: bool,
    pub(crate) broken: Break,
}

/// Words of a ring's entry.
pub type Entry = [u64; REQUEST_BYTES / 8];

fn words_of(bytes: &[u8; REQUEST_BYTES]) -> Entry {
    let mut words = Entry::default();
    for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_le_bytes(chunk.try_into().expect("eight bytes"));
    }
    words
}

impl Endpoints {
    /// `count` endpoints of a card with these capabilities, none of which is there yet.
    pub fn new(count: usize, capabilities: u32) -> Self {
        Self {
            all: vec![Endpoint::default(); count],
            raised: Vec::new(),
            shares: capabilities & CAPABILITY_SHARED_COMPLETIONS != 0,
            broken: Break::None,
        }
    }

    /// Endpoints of the card.
    pub fn count(&self) -> u8 {
        self.all.len() as u8
    }

    /// Those that have been set and not cleared.
    pub fn open(&self) -> usize {
        self.all.iter().filter(|endpoint| endpoint.open).count()
    }

    /// Whether one has been.
    pub fn is_open(&self, endpoint: u8) -> bool {
        self.get(endpoint).is_some_and(|endpoint| endpoint.open)
    }

    /// Protection domain of an endpoint.
    pub fn domain(&self, endpoint: u8) -> u8 {
        self.get(endpoint).map_or(0, |endpoint| endpoint.domain)
    }

    /// The endpoint on whose queue an endpoint's requests complete.
    fn owner(&self, endpoint: u8) -> u8 {
        let owner = self.get(endpoint).and_then(|e| e.completion_owner);
        owner.unwrap_or(endpoint)
    }

    fn get(&self, endpoint: u8) -> Option<&Endpoint> {
        self.all.get(usize::from(endpoint))
    }

    fn get_mut(&mut self, endpoint: u8) -> Option<&mut Endpoint> {
        self.all.get_mut(usize::from(endpoint))
    }

    /// Interrupt lines, a bit for each endpoint.
    pub fn interrupts(&self) -> u32 {
        let raised = |e: &Endpoint| u32::from(e.completions.interrupts || e.events.interrupts);
        let lines = self.all.iter().enumerate();
        lines.fold(0, |all, (at, endpoint)| all | raised(endpoint) << at)
    }

    /// Reads a register of a doorbell page.
    pub fn read(&self, endpoint: u8, offset: u32) -> u32 {
        let Some(endpoint) = self.get(endpoint) else {
            return 0;
        };
        match offset {
            SEND_HEAD => endpoint.send.head.into(),
            LIST_HEAD => endpoint.list.head.into(),
            COMPLETION_TAIL => endpoint.completions.tail.into(),
            EVENT_TAIL => endpoint.events.tail.into(),
            STICKY => endpoint.sticky,
            EVENTS_LOST => endpoint.lost,
            _ => 0,
        }
    }

    /// Writes a register of a doorbell page.
    pub fn write(
        &mut self,
        memory: &mut impl HostMemory,
        counters: &mut Counters,
        number: u8,
        offset: u32,
        value: u32,
    ) {
        let Some(endpoint) = self.get_mut(number) else {
            return;
        };
        // A ring or a queue that isn't there belongs to nobody who could be told.
        let (believed, told) = match offset {
            SEND_TAIL | LIST_TAIL => {
                let list = offset == LIST_TAIL;
                let ring = match list {
                    true => &mut endpoint.list,
                    false => &mut endpoint.send,
                };
                let told = (Cause::RingOverrun, ring_info(list, value));
                (ring.ring(value), ring.setup.map(|_| told))
            }
            COMPLETION_HEAD | EVENT_HEAD => {
                let queue = match offset {
                    COMPLETION_HEAD => &mut endpoint.completions,
                    _ => &mut endpoint.events,
                };
                let told = (Cause::IndexError, u64::from(value));
                (queue.consume(value), queue.setup.map(|_| told))
            }
            COMPLETION_ARM => return endpoint.completions.arm(value),
            EVENT_ARM => return endpoint.events.arm(value),
            STICKY => {
                endpoint.sticky &= !value;
                return;
            }
            _ => return,
        };
        if believed {
            return;
        }
        counters.count(Counter::DoorbellErrors);
        if let Some((cause, info)) = told {
            self.raise(memory, number, cause, NO_PAIR, info);
        }
    }

    /// Sets the ring of a `RingSet`'s index. Its indices start at 0.
    pub fn set_ring(&mut self, index: u16, setup: RingSetup) {
        let (endpoint, ring) = ring_of_index(index);
        let Some(endpoint) = self.get_mut(endpoint) else {
            return;
        };
        let requests = Ring {
            setup: Some(setup),
            ..Ring::default()
        };
        let queue = Queue {
            setup: Some(setup),
            ..Queue::default()
        };
        match ring {
            RING_SEND => endpoint.send = requests,
            RING_LIST => endpoint.list = requests,
            RING_COMPLETION => {
                endpoint.completions = queue;
                endpoint.reserved = 0;
            }
            RING_EVENT => {
                endpoint.events = queue;
                endpoint.sticky = 0;
                endpoint.lost = 0;
            }
            _ => {}
        }
    }

    /// Lets an endpoint fetch.
    pub fn set(&mut self, endpoint: u8, setup: EndpointSetup) {
        let owner = Some(setup.completion_owner);
        let owner = owner.filter(|&owner| self.shares && owner != endpoint);
        if let Some(endpoint) = self.get_mut(endpoint) {
            endpoint.open = true;
            endpoint.domain = setup.domain;
            endpoint.completion_owner = owner;
            endpoint.runs = true;
        }
    }

    /// An endpoint fetches no more.
    pub fn stop(&mut self, endpoint: u8) {
        if let Some(endpoint) = self.get_mut(endpoint) {
            endpoint.runs = false;
        }
    }

    /// Forgets an endpoint.
    pub fn clear(&mut self, endpoint: u8) {
        if let Some(endpoint) = self.get_mut(endpoint) {
            *endpoint = Endpoint::default();
        }
    }

    /// Whether a ring has an entry that the card hasn't read and can.
    pub fn pending(&self, endpoint: u8, ring: WorkRing) -> bool {
        let ring = self.get(endpoint).map(|endpoint| match ring {
            WorkRing::Send => &endpoint.send,
            WorkRing::List => &endpoint.list,
        });
        ring.is_some_and(Ring::pending)
    }

    /// Whether an entry of a ring can be fetched now.
    pub fn can_fetch(&self, endpoint: u8, ring: WorkRing) -> bool {
        let runs = self.get(endpoint).is_some_and(|endpoint| endpoint.runs);
        runs && self.pending(endpoint, ring) && self.completion_free(endpoint)
    }

    /// Reads the next entry of a ring, and reserves a completion for it. If it can't be read the ring stops.
    pub fn fetch(
        &mut self,
        memory: &mut impl HostMemory,
        number: u8,
        which: WorkRing,
    ) -> Option<Entry> {
        if !self.can_fetch(number, which) {
            return None;
        }
        let endpoint = self.get_mut(number)?;
        let ring = endpoint.ring_mut(which);
        let RingSetup { base, log2, .. } = ring.setup?;
        let address = entry_address(base, ring.head, log2, REQUEST_BYTES);
        let mut bytes = [0; REQUEST_BYTES];
        if memory.read(address, &mut bytes).is_err() {
            ring.stopped = true;
            let info = ring_info(which == WorkRing::List, ring.head.into());
            self.raise(memory, number, Cause::RingError, NO_PAIR, info);
            return None;
        }
        ring.head = ring.head.wrapping_add(1);
        self.reserve(number);
        Some(words_of(&bytes))
    }

    /// Looks at the entry of the send ring that is to be fetched next, if the host has posted one. If it can't be read the ring stops.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn look_behind(
        &mut self,
        memory: &mut impl HostMemory,
        number: u8,
    ) -> Result<Option<Entry>, BusError> {
        let ring = self.get_mut(number).map(|endpoint| &mut endpoint.send);
        let Some(ring) = ring.filter(|ring| ring.pending()) else {
            return Ok(None);
        };
        let Some(RingSetup { base, log2, .. }) = ring.setup else {
            return Ok(None);
        };
        let address = entry_address(base, ring.head, log2, REQUEST_BYTES);
        let mut bytes = [0; REQUEST_BYTES];
        if let Err(error) = memory.read(address, &mut bytes) {
            ring.stopped = true;
            let info = ring_info(false, ring.head.into());
            self.raise(memory, number, Cause::RingError, NO_PAIR, info);
            return Err(error);
        }
        Ok(Some(words_of(&bytes)))
    }

    /// Takes the entry that was looked at along with the request before it.
    pub fn skip(&mut self, endpoint: u8) {
        if let Some(endpoint) = self.get_mut(endpoint) {
            endpoint.send.head = endpoint.send.head.wrapping_add(1);
        }
    }

    /// Whether one more completion can be reserved.
    pub fn completion_free(&self, endpoint: u8) -> bool {
        let owner = self.get(self.owner(endpoint));
        owner.is_some_and(Endpoint::completion_free)
    }

    /// Reserves one more completion.
    ///
    /// # Panics
    /// If none is free.
    pub fn reserve(&mut self, number: u8) {
        assert!(self.completion_free(number), "a completion is free");
        if let Some(endpoint) = self.get_mut(self.owner(number)) {
            endpoint.reserved += 1;
        }
    }

    /// Ends a reservation without a completion.
    ///
    /// # Panics
    /// If there is none.
    pub fn release(&mut self, endpoint: u8) {
        if let Some(endpoint) = self.get_mut(self.owner(endpoint)) {
            let left = endpoint.reserved.checked_sub(1);
            endpoint.reserved = left.expect("a reservation ends once");
        }
    }

    /// Writes a completion into the place that was reserved for it: the words that its kind has.
    ///
    /// # Panics
    /// If none was.
    pub fn complete(
        &mut self,
        memory: &mut impl HostMemory,
        counters: &mut Counters,
        number: u8,
        entry: Completion,
    ) {
        self.release(number);
        let owner = self.owner(number);
        let tells = if self.broken == Break::OwnerTold {
            owner
        } else {
            number
        };
        let tells = if self.shares { tells } else { 0 };
        let first = match self.broken {
            Break::EntryWhole => 0,
            _ => Completion::WORDS - words_written(entry.kind),
        };
        let Some(endpoint) = self.get_mut(owner) else {
            return;
        };
        let Some((address, phase)) = endpoint.completions.next(Completion::BYTES) else {
            return;
        };
        let entry = Completion {
            endpoint: tells,
            phase,
            ..entry
        };
        let words = entry.to_words();
        let written = memory.write_entry(address + 8 * first as u64, &words[first..]);
        endpoint.completions.look();
        match written {
            Ok(()) => counters.count(Counter::Completions),
            Err(_) => self.raise(memory, owner, Cause::CompletionError, NO_PAIR, 0),
        }
    }

    /// Raises an event of the gates that has no detail, as [`raise_with`](Self::raise_with) does.
    pub fn raise(
        &mut self,
        memory: &mut impl HostMemory,
        endpoint: u8,
        cause: Cause,
        pair: u16,
        info: u64,
    ) {
        self.raise_with(memory, endpoint, cause, pair, info, 0);
    }

    /// Raises an event of the gates: the endpoint gets it, and the firmware, if it has to know.
    pub fn raise_with(
        &mut self,
        memory: &mut impl HostMemory,
        endpoint: u8,
        cause: Cause,
        pair: u16,
        info: u64,
        detail: u64,
    ) {
        if cause.is_told() {
            self.raised.push(Raised {
                endpoint,
                cause,
                pair,
                info,
            });
        }
        self.raise_to_host(memory, endpoint, cause.code(), pair, info, detail);
    }

    /// Raises an event to the host only. It sets the cause's bit, and is written if there is room, else counted.
    pub fn raise_to_host(
        &mut self,
        memory: &mut impl HostMemory,
        endpoint: u8,
        cause: u8,
        pair: u16,
        info: u64,
        detail: u64,
    ) {
        if self.broken == Break::EventUnwritten {
            return;
        }
        let Some(endpoint) = self.get_mut(endpoint) else {
            return;
        };
        let events = &mut endpoint.events;
        endpoint.sticky |= 1_u32.checked_shl(cause.into()).unwrap_or(0);
        let tail = events.tail;
        let room = events.used() < events.size();
        let Some((address, phase)) = room.then(|| events.next(Event::BYTES)).flatten() else {
            endpoint.lost = endpoint
                .lost
                .wrapping_add(u32::from(events.setup.is_some()));
            return;
        };
        let entry = Event {
            info,
            detail,
            cause,
            pair,
            phase,
            ..Event::default()
        };
        if memory.write_entry(address, &entry.to_words()).is_err() {
            // The place is used for the next one, so that the host meets no hole.
            events.tail = tail;
            endpoint.lost = endpoint.lost.wrapping_add(1);
        }
        events.look();
    }
}
