//! The host's side of a model card's endpoint: rings, a region, a counter of handles.
//!
//! ```text
//!  BASE·(endpoint + 1)   send ring │ list ring │ completions │ events │ buffers │ slots of the pairs │ window
//! ```

use std::collections::HashMap;
use std::ops::Range;

use abi::completion::{COMPLETION_BYTES, Completion, words_written};
use abi::control::{
    EndpointSetup, GrantSetup, Operation, RIGHT_LOCAL_READ, RIGHT_LOCAL_WRITE, RIGHT_REMOTE_READ,
    RIGHT_REMOTE_WRITE, RING_COMPLETION, RING_EVENT, RING_LIST, RING_SEND, RegionSetup, RingSetup,
    region_key, ring_index,
};
use abi::event::{EVENT_BYTES, Event};
use abi::key::remote_key;
use abi::register::{COMPLETION_HEAD, EVENT_HEAD, LIST_TAIL, SEND_TAIL};
use abi::request::{ListRequest, Opcode, REQUEST_BYTES, SendRequest, SendSegments};
use abi::ring::{QueueEntry, entry_address, phase};
use card_model::memory::{HostMemory, Pieces};
use card_model::{Card, CardSizes, Timing};

/// Distance of the endpoints' memories.
const BASE: u64 = 0x1000_0000;
/// Bytes of buffers.
pub const BUFFER_BYTES: u64 = 0x8_0000;
/// Bytes that can be granted to peers.
pub const WINDOW_BYTES: u64 = 0x1_0000;
/// Regions that can be granted are behind those of the endpoints.
const WINDOWS: u16 = 16;
/// Tag of the endpoint's key.
const TAG: u32 = 0x5a5;

fn memory(endpoint: u8) -> u64 {
    BASE * (u64::from(endpoint) + 1)
}

fn buffers(endpoint: u8) -> u64 {
    memory(endpoint) + 0x50_0000
}

fn window(endpoint: u8) -> u64 {
    memory(endpoint) + 0x70_0000
}

/// Sizes of `tiny`.
pub fn tiny() -> CardSizes {
    CardSizes {
        lists: card_model::matching::Sizes::new(2, 8, 64, 16, 64),
        regions: 32,
        capabilities: 0,
        descriptors: 128,
        rules: 4,
        grants: 64,
    }
}

/// A card that has all that a card may have.
pub fn able() -> CardSizes {
    CardSizes {
        capabilities: abi::capability::ALL,
        ..tiny()
    }
}

/// Sizes with room for few receives.
pub fn scarce() -> CardSizes {
    CardSizes {
        lists: card_model::matching::Sizes::new(2, 8, 12, 4, 64),
        regions: 32,
        capabilities: 0,
        descriptors: 128,
        rules: 4,
        grants: 64,
    }
}

/// The host's side of an endpoint.
#[derive(Clone, Debug)]
pub struct HostSide {
    pub endpoint: u8,
    pub key: u32,
    pub log2: u8,
    /// First buffer.
    pub buffers: u64,
    /// Slots of the pairs, 16 each.
    pub slots: u64,
    rings: [u64; 4],
    send_tail: u16,
    list_tail: u16,
    completion_head: u16,
    /// Words of the entries of the completion queue that were taken, by their place.
    completions: HashMap<usize, [u64; Completion::WORDS]>,
    event_head: u16,
}

impl HostSide {
    /// Sets the endpoint up: maps its memory, sets rings, region and endpoint.
    pub fn open<T: Timing>(card: &mut Card<Pieces, T>, endpoint: u8, log2: u8) -> Self {
        let base = memory(endpoint);
        let rings = std::array::from_fn(|ring| base + 0x10_0000 * ring as u64);
        let (buffers, slots) = (buffers(endpoint), base + 0x60_0000);
        let entries = 1 << log2;
        let bytes = [REQUEST_BYTES, REQUEST_BYTES, COMPLETION_BYTES, EVENT_BYTES];
        for (&address, bytes) in rings.iter().zip(bytes) {
            card.memory.map(address, entries * bytes);
        }
        card.memory.map(buffers, BUFFER_BYTES as usize);
        card.memory.map(slots, 16 * 16 * 1024);
        card.memory.map(window(endpoint), WINDOW_BYTES as usize);
        let names = [RING_SEND, RING_LIST, RING_COMPLETION, RING_EVENT];
        for (ring, base) in names.into_iter().zip(rings) {
            let setup = RingSetup {
                base,
                log2,
                ..RingSetup::default()
            };
            let index = ring_index(endpoint, ring);
            card.control(Operation::RingSet, index, &setup.to_words());
        }
        let setup = EndpointSetup {
            domain: endpoint + 1,
            epoch: 1,
            ..EndpointSetup::default()
        };
        card.control(Operation::EndpointSet, endpoint.into(), &setup.to_words());
        Self::set_region(card, endpoint);
        Self::set_window(card, endpoint);
        Self {
            endpoint,
            key: region_key(endpoint.into(), TAG),
            log2,
            buffers,
            slots,
            rings,
            send_tail: 0,
            list_tail: 0,
            completion_head: 0,
            completions: HashMap::new(),
            event_head: 0,
        }
    }

    /// Makes the endpoint's buffers a region, and as much as one message behind them, which isn't mapped.
    pub fn set_region<T: Timing>(card: &mut Card<Pieces, T>, endpoint: u8) {
        let region = RegionSetup {
            base: buffers(endpoint),
            length: BUFFER_BYTES + 0x1000,
            tag: TAG,
            domain: endpoint + 1,
            rights: RIGHT_LOCAL_READ | RIGHT_LOCAL_WRITE,
            ..RegionSetup::default()
        };
        card.control(Operation::RegionSet, endpoint.into(), &region.to_words());
    }

    /// Makes the endpoint's window a region that can be granted, and as much as one put behind it, which isn't mapped.
    pub fn set_window<T: Timing>(card: &mut Card<Pieces, T>, endpoint: u8) {
        let region = RegionSetup {
            base: window(endpoint),
            length: WINDOW_BYTES + 0x1000,
            tag: TAG,
            domain: endpoint + 1,
            rights: RIGHT_REMOTE_READ | RIGHT_REMOTE_WRITE,
            ..RegionSetup::default()
        };
        let index = WINDOWS + u16::from(endpoint);
        card.control(Operation::RegionSet, index, &region.to_words());
    }

    /// Forgets the window's region.
    pub fn clear_window<T: Timing>(card: &mut Card<Pieces, T>, endpoint: u8) {
        let index = WINDOWS + u16::from(endpoint);
        card.control(Operation::RegionClear, index, &[]);
    }

    /// Lets the peer of a pair write a part of the window, by the grant of a row; or do what `change` makes of that. Its key.
    pub fn grant<T: Timing>(
        &self,
        card: &mut Card<Pieces, T>,
        row: u16,
        tag: u64,
        pair: u16,
        part: Range<u64>,
        change: impl FnOnce(&mut GrantSetup),
    ) -> u64 {
        let mut grant = GrantSetup {
            offset: part.start,
            length: part.end - part.start,
            tag,
            region: WINDOWS + u16::from(self.endpoint),
            region_tag: TAG,
            holder: pair,
            rights: RIGHT_REMOTE_WRITE,
            ..GrantSetup::default()
        };
        change(&mut grant);
        card.control(Operation::GrantSet, row, &grant.to_words());
        remote_key(row, tag)
    }

    /// Bytes of the window.
    pub fn window_bytes<T: Timing>(&self, card: &mut Card<Pieces, T>) -> Vec<u8> {
        let mut bytes = vec![0; WINDOW_BYTES as usize];
        let read = card.memory.read(window(self.endpoint), &mut bytes);
        read.expect("mapped");
        bytes
    }

    /// Fills the window from `at` on.
    pub fn fill_window<T: Timing>(&self, card: &mut Card<Pieces, T>, at: u64, bytes: &[u8]) {
        let written = card.memory.write(window(self.endpoint) + at, bytes);
        written.expect("mapped");
    }

    /// Producer indices of the send ring and of the list ring.
    pub fn tails(&self) -> (u16, u16) {
        (self.send_tail, self.list_tail)
    }

    /// Posts an entry of the list ring.
    pub fn list<T: Timing>(&mut self, card: &mut Card<Pieces, T>, request: ListRequest) {
        self.list_tail = post(card, self, 1, self.list_tail, request.to_words());
        card.write_register(self.endpoint, LIST_TAIL, self.list_tail.into());
    }

    /// Posts an entry of the send ring.
    pub fn send<T: Timing>(&mut self, card: &mut Card<Pieces, T>, request: SendRequest) {
        self.send_tail = post(card, self, 0, self.send_tail, request.to_words());
        card.write_register(self.endpoint, SEND_TAIL, self.send_tail.into());
    }

    /// Posts a send and its second entry by one doorbell.
    pub fn send_two<T: Timing>(
        &mut self,
        card: &mut Card<Pieces, T>,
        request: SendRequest,
        second: SendSegments,
    ) {
        self.send_tail = post(card, self, 0, self.send_tail, request.to_words());
        self.send_tail = post(card, self, 0, self.send_tail, second.to_words());
        card.write_register(self.endpoint, SEND_TAIL, self.send_tail.into());
    }

    /// Address of the entry of the send ring that is to be posted next.
    pub fn next_send(&self) -> u64 {
        entry_address(self.rings[0], self.send_tail, self.log2, REQUEST_BYTES)
    }

    /// Takes the next completion.
    pub fn poll<T: Timing>(&mut self, card: &mut Card<Pieces, T>) -> Option<Completion> {
        let bytes = self.entry::<64, T>(card, 2, self.completion_head);
        let (words, _) = bytes.as_chunks();
        let words: Vec<u64> = words.iter().map(|&word| u64::from_le_bytes(word)).collect();
        let entry = Completion::read(|at| words[at]);
        if entry.phase != phase(self.completion_head, self.log2) {
            return None;
        }
        let slot = usize::from(self.completion_head) & ((1 << self.log2) - 1);
        let first = Completion::WORDS - words_written(entry.kind);
        let held = self.completions.entry(slot).or_default();
        assert_eq!(
            words[..first],
            held[..first],
            "words not of this {entry:x?}"
        );
        held.copy_from_slice(&words);
        self.completion_head = self.completion_head.wrapping_add(1);
        let head = self.completion_head.into();
        card.write_register(self.endpoint, COMPLETION_HEAD, head);
        Some(entry)
    }

    /// Takes the next event.
    pub fn poll_event<T: Timing>(&mut self, card: &mut Card<Pieces, T>) -> Option<Event> {
        let bytes = self.entry::<32, T>(card, 3, self.event_head);
        let entry = Event::parse(&bytes).expect("a whole entry");
        if entry.phase != phase(self.event_head, self.log2) {
            return None;
        }
        self.event_head = self.event_head.wrapping_add(1);
        card.write_register(self.endpoint, EVENT_HEAD, self.event_head.into());
        Some(entry)
    }

    fn entry<const N: usize, T: Timing>(
        &self,
        card: &mut Card<Pieces, T>,
        ring: usize,
        index: u16,
    ) -> [u8; N] {
        let address = entry_address(self.rings[ring], index, self.log2, N);
        let mut bytes = [0; N];
        card.memory.read(address, &mut bytes).expect("mapped");
        bytes
    }

    /// A good send of `length` bytes from the buffer at `offset`.
    pub fn a_send(&self, pair: u16, request: u32, offset: u64, length: u64) -> SendRequest {
        SendRequest {
            opcode: Opcode::TaggedSend.code(),
            pair,
            request,
            key: self.key,
            address: self.buffers + offset,
            length,
            ..SendRequest::default()
        }
    }

    /// A put of `length` bytes from the buffer at `offset`, to `at` in the region of the remote key.
    pub fn a_put(
        &self,
        pair: u16,
        request: u32,
        (offset, length): (u64, u64),
        (key, at): (u64, u64),
    ) -> SendRequest {
        SendRequest {
            opcode: Opcode::Put.code(),
            match_bits: key,
            immediate: at,
            ..self.a_send(pair, request, offset, length)
        }
    }

    /// A get of `length` bytes into the buffer at `offset`, from `at` in the region of the remote key.
    pub fn a_get(
        &self,
        pair: u16,
        request: u32,
        place: (u64, u64),
        remote: (u64, u64),
    ) -> SendRequest {
        SendRequest {
            opcode: Opcode::Get.code(),
            ..self.a_put(pair, request, place, remote)
        }
    }

    /// A good receive of up to `length` bytes at `offset`.
    pub fn a_receive(&self, pair: u16, request: u32, offset: u64, length: u64) -> ListRequest {
        ListRequest {
            opcode: Opcode::TaggedReceive.code(),
            pair,
            request,
            key: self.key,
            address: self.buffers + offset,
            length,
            ..ListRequest::default()
        }
    }

    /// Bytes of a buffer.
    pub fn bytes<T: Timing>(
        &self,
        card: &mut Card<Pieces, T>,
        offset: u64,
        length: usize,
    ) -> Vec<u8> {
        let mut bytes = vec![0; length];
        let read = card.memory.read(self.buffers + offset, &mut bytes);
        read.expect("mapped");
        bytes
    }

    /// Fills a buffer.
    pub fn fill<T: Timing>(&self, card: &mut Card<Pieces, T>, offset: u64, bytes: &[u8]) {
        let written = card.memory.write(self.buffers + offset, bytes);
        written.expect("mapped");
    }
}

fn post<T: Timing>(
    card: &mut Card<Pieces, T>,
    host_side: &HostSide,
    ring: usize,
    tail: u16,
    words: [u64; 8],
) -> u16 {
    let address = entry_address(host_side.rings[ring], tail, host_side.log2, REQUEST_BYTES);
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    card.memory.write(address, &bytes).expect("mapped");
    tail.wrapping_add(1)
}
