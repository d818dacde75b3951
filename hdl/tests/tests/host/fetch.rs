//! `host::Fetch`: every entry posted comes out once, in order, as what it is; a completion is
//! reserved before each read and given up for each entry that can't be read. A gather's two entries come out as one request, with one
//! completion.

use super::bench::{
    Bench, Outcome, Packed, chance, claim, control, doorbell, for_sizes, pace, wrong,
};
use super::memory::{Memory, ReadPort};
use abi::completion::Completion;
use abi::control::{Operation, RING_COMPLETION, RING_EVENT, RING_LIST, RING_SEND, ring_index};
use abi::event::{Cause, INFO_LIST_RING_BIT, NO_PAIR};
use abi::limits::EAGER_MAX;
use abi::opcode::{
    BufferUse, OPCODES, OpcodeRow, TargetUse, WorkRing, decode_list, decode_send, is_second_of,
};
use abi::register::{LIST_TAIL, SEND_TAIL};
use abi::request::{
    INLINE_BYTES, ListRequest, MAX_SEGMENTS, Opcode, Segment, SendRequest, SendSegments,
};
use abi::status::Status;
use hdl::config::{Config, ECP5};
use hdl::host::Fetch;
use hdl_tests::broken::{breaks_by, mutants};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;

/// Capabilities of the cards whose rings these are.
const CAPABILITIES: u32 = ECP5.capabilities;

/// An entry of a ring and what it should become, by itself or with the one behind it.
#[derive(Clone, Debug, PartialEq)]
enum Entry {
    Request([u64; 8]),
    /// A request of two entries.
    Gather([u64; 8], [u64; 8]),
    /// It completes with the status, and so many entries with it.
    Refusal([u64; 8], Status, u16),
    Unreadable,
}

impl Entry {
    /// Whether it leaves as a completion.
    fn is_refusal(&self) -> bool {
        matches!(self, Entry::Refusal(..))
    }

    /// Entries of the ring that it is.
    fn count(&self) -> u16 {
        match self {
            Entry::Gather(..) => 2,
            Entry::Refusal(_, _, count) => *count,
            _ => 1,
        }
    }
}

/// Whether an entry of a send ring takes the one behind it along.
fn takes_second(words: &[u64; 8]) -> bool {
    let request = SendRequest::from_words(words);
    let row = OpcodeRow::find(WorkRing::Send, request.opcode);
    let flags = |row: &OpcodeRow| row.second_flag & row.flags_with(CAPABILITIES);
    row.is_some_and(|row| request.flags & flags(row) != 0)
}

/// What becomes of the first entry of a gather that has no second.
fn alone(first: [u64; 8], status: Status) -> Entry {
    let malformed = decode_send(&SendRequest::from_words(&first), CAPABILITIES).is_err();
    let status = if malformed {
        Status::InvalidRequest
    } else {
        status
    };
    Entry::Refusal(first, status, 1)
}

#[derive(Debug, Default)]
struct Ring {
    base: u64,
    log2: u32,
    /// Entries of the ring from the one to be asked for next to the tail.
    posted: VecDeque<Entry>,
    /// Entries asked for whose last word has not been delivered.
    under_way: VecDeque<Entry>,
    /// Entries that could be read and have not come out, each gather as one.
    inside: Vec<Entry>,
    /// The first entry of a gather, which has been read, and whose second hasn't.
    first: Option<[u64; 8]>,
    /// It has been posted alone: the host waits until it has come out.
    waits: bool,
    tail: u16,
    asked: u16,
    /// Entries that could be read, and those that have come out.
    delivered: u16,
    out: u16,
    /// Cycle in which an entry came that can't be read.
    stopped: Option<u64>,
    /// Cycle of its last doorbell.
    rung: u64,
    /// Bad tails that no event has told of.
    overruns: Vec<u32>,
    /// An event is due.
    error_at: Option<u16>,
}

impl Ring {
    fn address(&self, index: u16) -> u64 {
        self.base + 64 * (u64::from(index) & ((1 << self.log2) - 1))
    }

    /// Entries that the host may still post: the card shows the head, and the model is not ahead of it.
    fn room(&self) -> u16 {
        if self.waits {
            return 0;
        }
        (1u16 << self.log2) - self.tail.wrapping_sub(self.out)
    }
}

struct Run {
    bench: Bench,
    rng: ChaCha8Rng,
    memory: Memory,
    read: ReadPort,
    rings: Vec<Ring>,
    domains: Vec<u64>,
    running: Vec<bool>,
    capacity: u32,
    outstanding: Vec<u32>,
    paces: [u32; 4],
    /// Percent of entries that can't be read, and of those that are malformed.
    unreadable: u32,
    malformed: u32,
    handle: u64,
    /// Endpoints for which something will be read, and the cycles of their reservations.
    reserved: VecDeque<(usize, u64)>,
    /// Reservations of each endpoint that are to be given up.
    released: Vec<u32>,
    /// Percent of sends that are gathers, and how many of those came out well.
    gathers: u32,
    gathered: u64,
    /// Seconds that were read without a reservation, and those of them that went back.
    bare: u64,
    put_back: u64,
    /// Most reads that were under way at once.
    deepest: usize,
    refused: u64,
    counted_refused: u64,
    ignored: u64,
    counted_ignored: u64,
    requests: u64,
    /// Rings of the reads under way, and whether the read has a reservation.
    last_asked: VecDeque<(usize, bool)>,
    /// Of each endpoint, whether its list ring has entries that haven't come out, and for how many cycles that has been so.
    pending: Vec<(bool, u32)>,
    /// The endpoint whose heads come out next, unless its rings have been set since.
    read_endpoint: Option<usize>,
}

impl Run {
    fn new(config: &Config, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let bench = Bench::new(&format!("fetch_{}", config.name));
        let read = ReadPort::new(rng.random_range(0..60), 70);
        Run {
            bench,
            memory: Memory::default(),
            read,
            rings: (0..2 * config.endpoints).map(|_| Ring::default()).collect(),
            domains: vec![0; config.endpoints],
            running: vec![false; config.endpoints],
            capacity: rng.random_range(1..4),
            outstanding: vec![0; config.endpoints],
            paces: [70; 4],
            unreadable: 0,
            malformed: 10,
            handle: 0,
            reserved: VecDeque::new(),
            released: vec![0; config.endpoints],
            gathers: 0,
            gathered: 0,
            bare: 0,
            put_back: 0,
            deepest: 0,
            refused: 0,
            counted_refused: 0,
            ignored: 0,
            counted_ignored: 0,
            requests: 0,
            last_asked: VecDeque::new(),
            pending: vec![(false, 0); config.endpoints],
            read_endpoint: None,
            rng,
        }
    }

    fn set_ring(&mut self, number: usize, log2: u32) -> Outcome {
        let base =
            0x1_0000_0000 * (number as u64 + 1) + (self.rng.random_range(0..1000) << (6 + log2));
        let part = [RING_SEND, RING_LIST][number % 2];
        let index = ring_index(number as u8 / 2, part);
        self.control(Operation::RingSet, index, &[base, u64::from(log2)])?;
        claim!(
            self.rings[number].is_empty(),
            "ring {number} is set with entries inside"
        );
        self.rings[number] = Ring {
            base,
            log2,
            ..Ring::default()
        };
        // The other rings of the endpoint are other blocks'.
        for part in [RING_COMPLETION, RING_EVENT] {
            let index = ring_index(number as u8 / 2, part);
            self.control(Operation::RingSet, index, &[0x1000, 1])?;
        }
        Ok(())
    }

    fn set_endpoint(&mut self, endpoint: usize) -> Outcome {
        self.domains[endpoint] = self.rng.random_range(0..256);
        let domain = self.domains[endpoint];
        self.running[endpoint] = true;
        self.control(Operation::EndpointSet, endpoint as u16, &[domain])
    }

    /// Holds a control request until it is done.
    fn control(&mut self, operation: Operation, index: u16, data: &[u64]) -> Outcome {
        self.bench
            .set_packed("control", &control(operation, index, data));
        self.bench.set("control_valid", 1);
        for _ in 0..100_000 {
            let done = self.tick()?;
            if done {
                self.read_endpoint = None;
                self.bench.set("control_valid", 0);
                return Ok(());
            }
        }
        wrong!("{operation} is never done")
    }

    /// A well-formed entry, or one with something wrong.
    fn entry(&mut self, list: bool) -> Entry {
        self.handle += 1;
        let rng = &mut self.rng;
        if chance(rng, self.unreadable) {
            return Entry::Unreadable;
        }
        let ring = if list { WorkRing::List } else { WorkRing::Send };
        let known =
            |row: &&OpcodeRow| row.ring == ring && row.is_known(CAPABILITIES) && !row.is_second;
        let rows: Vec<_> = OPCODES.iter().filter(known).collect();
        let row = rows[rng.random_range(0..rows.len())];
        let known = row.flags_with(CAPABILITIES);
        // Gathers are posted by `gather`.
        let flags = rng.random::<u8>() & known & !row.second_flag;
        let inline = flags & row.inline_flag != 0;
        let mut words = ListRequest {
            opcode: row.opcode.code(),
            flags,
            pair: rng.random(),
            context: rng.random(),
            request: self.handle as u32,
            key: rng.random(),
            match_bits: rng.random(),
            ignore_bits: rng.random(),
            address: rng.random(),
            length: match inline {
                true => rng.random_range(0..=INLINE_BYTES as u64),
                false => rng.random(),
            },
            target: rng.random(),
            min_free: match flags & (row.min_free_flag | row.inline_flag) {
                0 => 0,
                _ => rng.random(),
            },
            reserved2: if inline { rng.random() } else { 0 },
            ..Default::default()
        }
        .to_words();
        if !chance(rng, self.malformed) {
            return Entry::Request(words);
        }
        match rng.random_range(0..5) {
            0 => {
                let mut opcode = rng.random();
                while rows.iter().any(|row| row.opcode.code() == opcode) {
                    opcode = rng.random();
                }
                words[0] = words[0] & !0xff | u64::from(opcode);
            }
            1 => {
                let mut flag = 1;
                while flag & known != 0 || rng.random_bool(0.8) {
                    flag = u8::rotate_left(flag, 1);
                }
                words[0] |= u64::from(flag) << 8;
            }
            2 => words[0] |= 1 << (48 + rng.random_range(0..16)),
            // The payload is there, and must be short.
            _ if inline => words[5] = rng.random_range(INLINE_BYTES as u64 + 1..=u64::MAX),
            // The threshold of a multi-receive is there.
            3 if flags & row.min_free_flag == 0 => words[6] |= 1 << (32 + rng.random_range(0..32)),
            _ => words[7] |= 1 << rng.random_range(0..64),
        }
        Entry::Refusal(words, Status::InvalidRequest, 1)
    }

    /// The first entry of a gather, well-formed or not.
    fn first(&mut self) -> [u64; 8] {
        loop {
            let (Entry::Request(words) | Entry::Refusal(words, ..)) = self.entry(false) else {
                continue;
            };
            let mut request = SendRequest::from_words(&words);
            if request.opcode != Opcode::TaggedSend.code() || request.is_inline() {
                continue;
            }
            request.flags |= Opcode::TaggedSend.row().second_flag;
            request.length = self.segment().length;
            return request.to_words();
        }
    }

    /// A segment of anything; its length is now and then more than any message's, and mostly less than a fourth of the longest.
    fn segment(&mut self) -> Segment {
        let rng = &mut self.rng;
        let length = match rng.random_range(0..12) {
            0 => 0,
            1 => u64::from(rng.random::<u32>()),
            2 => rng.random_range(0..=EAGER_MAX as u64 + 1),
            _ => rng.random_range(0..=EAGER_MAX as u64 / MAX_SEGMENTS as u64),
        };
        Segment {
            key: rng.random(),
            address: rng.random(),
            length,
        }
    }

    /// The second entry of a gather, well-formed or not.
    fn second(&mut self, first: &[u64; 8]) -> [u64; 8] {
        let request = SendRequest::from_words(first).request;
        let segments: [Segment; MAX_SEGMENTS - 1] = std::array::from_fn(|_| self.segment());
        let mut words = SendSegments::new(request, &segments).to_words();
        if chance(&mut self.rng, self.malformed) {
            match self.rng.random_range(0..3) {
                0 => words[0] |= 1 << self.rng.random_range(8..64),
                1 => words[1] |= 1 << self.rng.random_range(32..64),
                _ => words[1] ^= 1 << self.rng.random_range(0..32),
            }
        }
        words
    }

    /// What the host puts into a ring with one doorbell.
    fn entries(&mut self, list: bool, room: u16) -> Vec<Entry> {
        let mut entries = Vec::new();
        while entries.len() < usize::from(room) {
            if list || !chance(&mut self.rng, self.gathers) {
                entries.push(self.entry(list));
                continue;
            }
            let first = self.first();
            entries.push(Entry::Request(first));
            if entries.len() < usize::from(room) && chance(&mut self.rng, 80) {
                let second = self.second(&first);
                entries.push(match chance(&mut self.rng, self.unreadable) {
                    true => Entry::Unreadable,
                    false => Entry::Request(second),
                });
            }
        }
        entries
    }

    /// Posts up to `most` entries on a ring, as a host does.
    fn post(&mut self, number: usize, most: u16) {
        let count = self
            .rng
            .random_range(1..=most)
            .min(self.rings[number].room());
        for entry in self.entries(number % 2 == 1, count) {
            let ring = &mut self.rings[number];
            let address = ring.address(ring.tail);
            ring.waits = false;
            match &entry {
                Entry::Unreadable => {
                    self.memory.broken.insert(address);
                }
                Entry::Request(words) | Entry::Refusal(words, ..) | Entry::Gather(words, _) => {
                    ring.waits = number.is_multiple_of(2) && takes_second(words);
                    self.memory.broken.remove(&address);
                    self.memory.write(address, words);
                }
            }
            ring.posted.push_back(entry);
            ring.tail = ring.tail.wrapping_add(1);
        }
        let tail = self.rings[number].tail;
        self.ring(number, u32::from(tail));
    }

    fn ring(&mut self, number: usize, value: u32) {
        let offset = [SEND_TAIL, LIST_TAIL][number % 2];
        self.rings[number].rung = self.bench.cycle();
        let packed = doorbell(number as u8 / 2, offset, value);
        self.bench.set_packed("doorbell", &packed);
        self.bench.set("doorbell_valid", 1);
    }

    /// A tail that can't be.
    fn overrun(&mut self, number: usize) {
        let ring = &self.rings[number];
        let value = if ring.asked != ring.out && chance(&mut self.rng, 30) {
            // Back past what is being read, or has been.
            let back = self.rng.random_range(1..=ring.asked.wrapping_sub(ring.out));
            u32::from(ring.asked.wrapping_sub(back))
        } else if chance(&mut self.rng, 50) {
            // From what the card has freed at most to what it has freed at least.
            let first = u32::from(ring.asked.wrapping_add((1 << ring.log2) + 1));
            let last = 0xffff - (1u32 << ring.log2) - u32::from(ring.asked.wrapping_sub(ring.out));
            (first + self.rng.random_range(0..last - (1 << ring.log2))) & 0xffff
        } else {
            self.rng.random_range(0x1_0000..=u32::MAX)
        };
        self.rings[number].overruns.push(value);
        self.ignored += 1;
        self.ring(number, value);
    }

    /// One cycle. Says whether a control request is done.
    fn tick(&mut self) -> Result<bool, String> {
        let bench = &mut self.bench;
        if bench.cycle().is_multiple_of(512) {
            self.paces = std::array::from_fn(|_| pace(&mut self.rng));
            self.read.pace = pace(&mut self.rng);
        }
        for (stream, percent) in ["sends", "lists", "complete", "raise"]
            .iter()
            .zip(self.paces)
        {
            bench.take(stream, chance(&mut self.rng, percent));
        }
        let free = (0..self.running.len()).filter(|&e| self.outstanding[e] < self.capacity);
        bench.set("completion_free", free.fold(0, |bits, e| bits | 1 << e));
        let read_before = self.read_endpoint;
        let read_now = self.rng.random_range(0..self.running.len());
        self.read_endpoint = Some(read_now);
        bench.set("read_endpoint", read_now as u64);
        self.read.drive(bench, &mut self.rng, &self.memory);
        bench.settle();

        for (k, name) in ["send_head", "list_head"].iter().enumerate() {
            let Some(read_before) = read_before else {
                break;
            };
            let ring = &self.rings[2 * read_before + k];
            let head = bench.get(name) as u16;
            claim!(
                head.wrapping_sub(ring.out) <= ring.delivered.wrapping_sub(ring.out),
                "{name} of endpoint {read_before} is {head}, with {} out and {} read",
                ring.out,
                ring.delivered
            );
        }
        claim!(bench.is("read_data_ready"), "words have to wait");
        if bench.moves("read_data") && bench.is("read_data_last") {
            let (number, reserved) = self.last_asked.pop_front().expect("data is asked for");
            let ring = &mut self.rings[number];
            let entry = ring.under_way.pop_front().expect("an entry is asked for");
            let came = match ring.stopped {
                None => ring.come(number, entry, reserved),
                Some(_) => Came::Discarded,
            };
            match came {
                Came::Kept => {}
                Came::Joined | Came::Discarded => {
                    self.released[number / 2] += u32::from(reserved);
                }
                Came::Stopped => {
                    self.released[number / 2] += u32::from(reserved);
                    ring.stopped = Some(bench.cycle());
                    ring.error_at = Some(ring.delivered);
                }
                Came::Back => self.put_back += 1,
            }
        }
        // An entry of a list ring is there from its doorbell until it has been handed over or its refusal taken: the bit says so one cycle later.
        let pending = bench.get("lists_pending");
        for (endpoint, seen) in self.pending.iter_mut().enumerate() {
            let ring = &self.rings[2 * endpoint + 1];
            let waits = ring.stopped.is_none() && !ring.posted.is_empty();
            let there = waits || !ring.inside.is_empty() || !ring.under_way.is_empty();
            // What a ring that has stopped had chosen before is still asked for.
            let chosen = self.reserved.iter().any(|(of, _)| *of == endpoint);
            let settled = !(ring.stopped.is_some() && chosen) && bench.cycle() > ring.rung + 3;
            *seen = if seen.0 == there && settled {
                (there, seen.1 + 1)
            } else {
                (there, 0)
            };
            claim!(
                seen.1 < 4 || (pending >> endpoint & 1 == 1) == there,
                "endpoint {endpoint} has {there} entries for {} cycles, and the bits are {pending:b}: {ring:?}",
                seen.1
            );
        }
        self.read.sample(bench, &mut self.rng)?;
        for address in self.read.asked.drain(..) {
            // Between its choice and its request no other is chosen. One without a reservation is the second of a first that is alone here.
            let reserved = self.reserved.pop_front();
            let waits = |r: &usize| {
                let ring = &self.rings[*r];
                ring.first.is_some() && ring.under_way.is_empty() && ring.inside.is_empty()
            };
            let mut rings = match reserved {
                Some((endpoint, _)) => vec![2 * endpoint, 2 * endpoint + 1],
                None => (0..self.rings.len()).filter(waits).collect(),
            }
            .into_iter();
            let number = rings.find(|&r| self.rings[r].address(self.rings[r].asked) == address);
            let Some(number) = number else {
                wrong!("{address:#x} is read for {reserved:?}, which has other entries next");
            };
            self.bare += u64::from(reserved.is_none());
            let since = reserved.map_or(bench.cycle(), |(_, since)| since);
            let ring = &mut self.rings[number];
            claim!(
                ring.stopped.is_none_or(|at| since <= at + 1),
                "ring {number} is read after it has stopped"
            );
            let Some(entry) = ring.posted.pop_front() else {
                wrong!("ring {number} is read beyond its tail");
            };
            ring.under_way.push_back(entry);
            ring.asked = ring.asked.wrapping_add(1);
            self.last_asked.push_back((number, reserved.is_some()));
            self.deepest = self.deepest.max(self.last_asked.len());
        }
        if bench.is("reserve_valid") {
            let endpoint = bench.get("reserve") as usize;
            claim!(
                self.running[endpoint],
                "endpoint {endpoint} is stopped and fetched"
            );
            claim!(
                self.outstanding[endpoint] < self.capacity,
                "endpoint {endpoint} reserves a completion and none is free"
            );
            self.outstanding[endpoint] += 1;
            self.reserved.push_back((endpoint, bench.cycle()));
        }
        for (stream, list) in [("sends", 0), ("lists", 1)] {
            if !bench.moves(stream) {
                continue;
            }
            let mut request = bench.packed(stream);
            let (endpoint, domain) = (request.take(8) as usize, request.take(8));
            claim!(
                domain == self.domains[endpoint],
                "domain {domain} of endpoint {endpoint}"
            );
            let said: [u64; 4] = match stream {
                "lists" => [8, 1, 1, 1].map(|width| request.take(width)),
                _ => [0; 4],
            };
            let words = request.take_words();
            if stream == "lists" {
                let row = OpcodeRow::find(WorkRing::List, words[0] as u8).expect("it has a row");
                let wanted = [
                    u64::from(row.kind.code()),
                    u64::from(row.buffer != BufferUse::None),
                    u64::from(row.pair),
                    u64::from(row.target == TargetUse::Claim),
                ];
                claim!(
                    said == wanted,
                    "{said:?} of {:?}, not {wanted:?}",
                    row.opcode
                );
            }
            let ring = &mut self.rings[2 * endpoint + list];
            let came = match stream == "sends" && takes_second(&words) {
                true => {
                    self.gathered += 1;
                    let widths = [64, 32, 11].repeat(MAX_SEGMENTS - 1);
                    let behind: Vec<u64> = widths.iter().map(|w| request.take(*w)).collect();
                    ring.gather(&words, &behind)?
                }
                false => Entry::Request(words),
            };
            ring.leave(&came)?;
            self.requests += 1;
            // The completion of it is consumed before long.
            self.outstanding[endpoint] -= 1;
        }
        if bench.moves("complete") {
            let mut packed = bench.packed("complete");
            let endpoint = packed.take(8) as usize;
            let entry = Completion::from_words(&packed.take_words());
            let of_handle = |ring: &Ring| {
                let first = ring.inside.iter().find(|entry| entry.is_refusal());
                first.cloned().filter(|refusal| match refusal {
                    Entry::Refusal(words, ..) => {
                        SendRequest::from_words(words).request == entry.request
                    }
                    _ => false,
                })
            };
            let (first, second) = (2 * endpoint, 2 * endpoint + 1);
            let found = [first, second]
                .into_iter()
                .find_map(|r| Some((r, of_handle(&self.rings[r])?)));
            let Some((number, refusal @ Entry::Refusal(words, status, count))) = found else {
                wrong!("{entry:?} is of no malformed request");
            };
            let request = SendRequest::from_words(&words);
            let decoded = match number % 2 {
                0 => decode_send(&request, CAPABILITIES),
                _ => decode_list(&ListRequest::from_words(&words), CAPABILITIES),
            };
            let kind = match decoded {
                Err(kind) => kind,
                // Something is wrong with its second entry.
                Ok(row) if number % 2 == 0 && takes_second(&words) => row.kind,
                Ok(_) => wrong!("{request:?} is refused, and is well formed"),
            };
            let unread = status == Status::MemoryError;
            let expected = Completion {
                status: status.code(),
                kind: kind.code(),
                request: request.request,
                pair: request.pair,
                context: if unread { request.context } else { 0 },
                ..Default::default()
            };
            claim!(
                entry == expected,
                "{entry:?} should be {expected:?}, with {count} entries"
            );
            self.rings[number].leave(&refusal)?;
            self.outstanding[endpoint] -= 1;
            self.refused += u64::from(!unread);
        }
        if bench.is("given_up_valid") {
            let endpoint = bench.get("given_up") as usize;
            claim!(
                self.released[endpoint] > 0,
                "a reservation of endpoint {endpoint} is given up, and none has to be"
            );
            self.released[endpoint] -= 1;
            self.outstanding[endpoint] -= 1;
        }
        if bench.moves("raise") {
            let mut event = bench.packed("raise");
            let (endpoint, cause) = (event.take(8) as usize, event.take(8));
            let (pair, info) = (event.take(16), event.take(64));
            claim!(
                pair == u64::from(NO_PAIR),
                "an event of a ring names pair {pair}"
            );
            let number = 2 * endpoint + (info >> INFO_LIST_RING_BIT) as usize;
            let ring = &mut self.rings[number];
            match Cause::from_code(cause as u8) {
                Some(Cause::RingError) => {
                    let Some(at) = ring.error_at.take() else {
                        wrong!("ring {number} tells twice that it can't be read");
                    };
                    claim!(
                        info as u32 == u32::from(at),
                        "error at {info:#x}, not at {at}"
                    );
                }
                Some(Cause::RingOverrun) => {
                    let told = ring.overruns.iter().position(|&v| v == info as u32);
                    let Some(told) = told else {
                        wrong!("ring {number} tells of tail {info:#x}, which nobody wrote");
                    };
                    ring.overruns.drain(..=told);
                }
                _ => wrong!("cause {cause}"),
            }
        }
        self.counted_refused += bench.get("count_invalid_requests");
        self.counted_ignored += bench.get("count_doorbell_errors");
        let done = bench.is("control_valid") && bench.is("control_ready");
        bench.step()?;
        bench.set("doorbell_valid", 0);
        Ok(done)
    }

    fn ticks(&mut self, count: usize) -> Outcome {
        (0..count).try_for_each(|_| self.tick().map(drop))
    }

    /// Lets everything come out, and looks whether it has.
    fn settle(&mut self) -> Outcome {
        self.ticks(20_000)?;
        for (number, ring) in self.rings.iter().enumerate() {
            if self.running[number / 2] && ring.stopped.is_none() {
                claim!(
                    ring.posted.is_empty(),
                    "{} entries wait in ring {number}",
                    ring.posted.len()
                );
            }
            claim!(
                ring.is_empty(),
                "ring {number}: {:?} and {:?} never came out",
                ring.inside,
                ring.under_way
            );
            claim!(
                ring.overruns.is_empty(),
                "ring {number}: no event of {:?}",
                ring.overruns
            );
            claim!(
                ring.error_at.is_none(),
                "ring {number} tells nobody that it can't be read"
            );
        }
        claim!(
            self.counted_refused == self.refused,
            "{} requests refused, {} counted",
            self.refused,
            self.counted_refused
        );
        claim!(
            self.counted_ignored == self.ignored,
            "{} doorbells ignored, {} counted",
            self.ignored,
            self.counted_ignored
        );
        claim!(
            self.outstanding.iter().all(|n| *n == 0),
            "reservations are left: {:?}",
            self.outstanding
        );
        Ok(())
    }

    fn open(&mut self, log2: std::ops::Range<u32>) -> Outcome {
        for number in 0..2 * self.running.len() {
            let log2 = self.rng.random_range(log2.clone());
            self.set_ring(number, log2)?;
        }
        (0..self.running.len()).try_for_each(|e| self.set_endpoint(e))
    }

    fn traffic(&mut self, cycles: usize, overruns: u32) -> Outcome {
        for _ in 0..cycles {
            if chance(&mut self.rng, 10) {
                let number = self.rng.random_range(0..2 * self.running.len());
                if chance(&mut self.rng, overruns) {
                    self.overrun(number);
                } else if self.rings[number].room() > 0 {
                    self.post(number, 4);
                }
            }
            self.tick()?;
        }
        Ok(())
    }
}

/// What becomes of an entry that has come.
enum Came {
    /// It is here.
    Kept,
    /// It is part of the one before.
    Joined,
    /// Nothing.
    Discarded,
    /// It can't be read.
    Stopped,
    /// It is no second, and goes back to its ring.
    Back,
}

impl Ring {
    /// Nothing of it is in the card.
    fn is_empty(&self) -> bool {
        self.inside.is_empty() && self.under_way.is_empty() && self.first.is_none()
    }

    /// An entry of ring `number` has come.
    fn come(&mut self, number: usize, entry: Entry, reserved: bool) -> Came {
        let words = match &entry {
            Entry::Request(words) | Entry::Refusal(words, ..) => Some(*words),
            _ => None,
        };
        let is_second = |words: &[u64; 8]| words[0] as u8 == Opcode::Segments.code();
        let mut came = Came::Kept;
        match (self.first.take(), words) {
            (Some(first), None) => {
                self.inside.push(alone(first, Status::MemoryError));
                return Came::Stopped;
            }
            (None, None) => return Came::Stopped,
            (Some(first), Some(second)) if is_second(&second) => {
                let (send, segments) = (
                    SendRequest::from_words(&first),
                    SendSegments::from_words(&second),
                );
                let sound = decode_send(&send, CAPABILITIES).is_ok();
                self.inside
                    .push(match sound && is_second_of(&send, &segments) {
                        true => Entry::Gather(first, second),
                        false => Entry::Refusal(first, Status::InvalidRequest, 2),
                    });
                came = Came::Joined;
            }
            (before, Some(words)) => {
                if let Some(first) = before {
                    self.inside.push(alone(first, Status::InvalidRequest));
                    if !reserved {
                        self.posted.push_front(entry);
                        self.asked = self.asked.wrapping_sub(1);
                        return Came::Back;
                    }
                }
                if number.is_multiple_of(2) && takes_second(&words) {
                    let ends = self.posted.is_empty() && self.under_way.is_empty();
                    match ends {
                        true => self.inside.push(alone(words, Status::InvalidRequest)),
                        false => self.first = Some(words),
                    }
                } else if number.is_multiple_of(2) && is_second(&words) {
                    let refused = Entry::Refusal(words, Status::InvalidRequest, 1);
                    self.inside.push(refused);
                } else {
                    self.inside.push(entry);
                }
            }
        }
        self.delivered = self.delivered.wrapping_add(1);
        came
    }

    /// The gather that has come out with this request and these fields of its other segments.
    fn gather(&self, words: &[u64; 8], behind: &[u64]) -> Result<Entry, String> {
        let next = self.inside.iter().find(|entry| !entry.is_refusal());
        let Some(entry @ Entry::Gather(first, second)) = next else {
            wrong!("{words:x?} comes out, and {:x?} is inside", self.inside);
        };
        let came = SendRequest::from_words(words);
        let request = SendRequest::from_words(first);
        let segments = SendSegments::from_words(second).segments();
        let add = |sum: u64, segment: &Segment| sum.saturating_add(segment.length);
        let sum = segments.iter().fold(request.length, add);
        let long = sum > EAGER_MAX as u64;
        let expected = SendRequest {
            length: if long { came.length } else { sum },
            target: 0,
            inline1: 0,
            inline2: 0,
            ..request
        };
        claim!(came == expected, "{came:x?} should be {expected:x?}");
        claim!(
            (came.length > EAGER_MAX as u64) == long,
            "{came:x?} of {sum}"
        );
        let fields = segments.map(|s| [s.address, s.key.into(), s.length]);
        claim!(
            long || behind == fields.as_flattened(),
            "{behind:x?} should be {segments:x?}"
        );
        Ok(entry.clone())
    }

    fn leave(&mut self, entry: &Entry) -> Outcome {
        let same_way = |other: &Entry| other.is_refusal() == entry.is_refusal();
        let first = self.inside.iter().position(same_way);
        let Some(first) = first.filter(|&k| self.inside[k] == *entry) else {
            wrong!("{entry:x?} comes out, and {:x?} is inside", self.inside);
        };
        self.inside.remove(first);
        self.out = self.out.wrapping_add(entry.count());
        if self.is_empty() && self.posted.is_empty() {
            self.waits = false;
        }
        Ok(())
    }
}

/// Traffic on all rings for so many cycles and somewhat more, with everything that can be wrong with it.
fn life(config: &Config, seed: u64, cycles: usize) -> Result<Run, String> {
    let mut run = Run::new(config, seed);
    run.gathers = 30;
    run.open(2..5)?;
    run.traffic(cycles, 5)?;
    run.settle()?;
    run.unreadable = 10;
    run.traffic(5_000, 5)?;
    run.settle()?;
    // A ring that has stopped goes on when it is set again.
    run.unreadable = 0;
    for number in 0..2 * run.running.len() {
        if run.rings[number].stopped.is_some() {
            run.set_ring(number, 3)?;
        }
    }
    run.traffic(5_000, 5)?;
    run.settle()?;
    Ok(run)
}

fn everything(config: &Config, seed: u64) -> Outcome {
    let run = life(config, seed, 15_000)?;
    claim!(run.requests > 500, "only {} requests", run.requests);
    claim!(run.refused > 50, "only {} refusals", run.refused);
    claim!(run.gathered > 20, "only {} gathers", run.gathered);
    Ok(())
}

#[test]
fn everything_posted_comes_out_once_in_order() {
    for_sizes(1..=4, everything);
}

#[test]
fn each_broken_contract_is_noticed() {
    breaks_by("fetch_ecp5", &|| {
        for seed in 1..=3 {
            everything(&ECP5, seed).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        }
        stops(10).unwrap_or_else(|error| panic!("seed 10: {error}"));
        waits(1).unwrap_or_else(|error| panic!("class 1: {error}"));
        short_of_completions(1).unwrap_or_else(|error| panic!("seed 1: {error}"));
    });
}

#[test]
#[ignore = "mutants: `cargo xtask mutants`, `cargo xtask test --long`"]
fn most_mutants_of_fetching_are_noticed() {
    mutants("fetch_ecp5", 1, |_| {
        reads().unwrap_or_else(|error| panic!("{error}"));
        for seed in 1..=2 {
            life(&ECP5, seed, 3_000).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        }
        stops(10).unwrap_or_else(|error| panic!("seed 10: {error}"));
        waits(1).unwrap_or_else(|error| panic!("class 1: {error}"));
        short_of_completions(1).unwrap_or_else(|error| panic!("seed 1: {error}"));
    });
}

/// All send rings are full, and nobody waits but for memory. Returns the requests that were handed over behind the first thousand cycles, and in how many.
fn full_rings(seed: u64, latency: u64, cycles: usize) -> Result<(Run, u64, u64), String> {
    let mut run = Run::new(&ECP5, seed);
    run.capacity = 64;
    run.malformed = 0;
    run.read.latency = latency;
    run.open(4..5)?;
    let (mut first, mut begin) = (0, 0);
    for cycle in 0..cycles {
        run.paces = [100; 4];
        run.read.pace = 100;
        let number = 2 * (cycle % run.running.len());
        if run.rings[number].room() > 0 {
            run.post(number, 4);
        }
        run.tick()?;
        if cycle == 1_000 {
            (first, begin) = (run.requests, run.bench.cycle());
        }
    }
    let (requests, cycles) = (run.requests - first, run.bench.cycle() - begin);
    Ok((run, requests, cycles))
}

/// Memory takes its time.
fn reads() -> Outcome {
    let (mut run, requests, cycles) = full_rings(5, 125, 6_000)?;
    let cycles = cycles / requests;
    claim!(run.deepest >= 12, "at most {} reads under way", run.deepest);
    claim!(cycles < 12, "{cycles} cycles a request");
    run.settle()
}

#[test]
fn reads_are_under_way_while_others_come() {
    reads().unwrap_or_else(|error| panic!("{error}"));
}

/// One class is behind: memory answers at once.
fn behind() -> Outcome {
    let (mut run, requests, cycles) = full_rings(9, 0, 4_000)?;
    claim!(
        10 * cycles <= 91 * requests,
        "{cycles} cycles for {requests} requests"
    );
    run.settle()
}

#[test]
fn a_class_that_is_behind_hands_over_a_request_every_nine_cycles() {
    behind().unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn indices_wrap_at_sixteen_bits() {
    let seed = 1;
    let test = || -> Outcome {
        let mut run = Run::new(&ECP5, seed);
        run.malformed = 0;
        run.capacity = 64;
        run.read.latency = 0;
        run.open(4..5)?;
        while run.requests < 66_000 {
            run.paces = [100; 4];
            run.read.pace = 100;
            if run.rings[0].room() >= 8 {
                run.post(0, 8);
            }
            run.tick()?;
        }
        run.settle()
    };
    test().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
}

/// Gathers, of endpoints that have one completion each.
fn short_of_completions(seed: u64) -> Outcome {
    let mut run = Run::new(&ECP5, seed);
    (run.capacity, run.gathers) = (1, 60);
    run.open(2..5)?;
    run.traffic(10_000, 0)?;
    run.settle()?;
    run.unreadable = 5;
    run.traffic(3_000, 0)?;
    run.settle()?;
    let without = (run.bare, run.put_back);
    claim!(
        run.bare > 50 && run.put_back > 5,
        "{without:?} seconds without a reservation, and put back"
    );
    Ok(())
}

#[test]
fn a_gather_needs_one_completion() {
    for seed in 1..=2 {
        short_of_completions(seed).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

/// Nobody takes one class.
fn waits(stalled: usize) -> Outcome {
    let mut run = Run::new(&ECP5, 7 + stalled as u64);
    run.gathers = 20;
    run.capacity = 64;
    run.open(4..5)?;
    let before = run.requests;
    for _ in 0..20_000 {
        run.paces = [70; 4];
        run.paces[stalled] = 0;
        let number = run.rng.random_range(0..2 * run.running.len());
        if run.rings[number].room() > 0 {
            run.post(number, 2);
        }
        run.tick()?;
    }
    let requests = run.requests - before;
    claim!(requests > 200, "the other class got only {requests}");
    run.settle()
}

#[test]
fn a_class_that_nobody_takes_does_not_stop_the_other() {
    for stalled in [0, 1] {
        waits(stalled).unwrap_or_else(|error| panic!("class {stalled}: {error}"));
    }
}

/// Stops and clears endpoints under load.
fn stops(seed: u64) -> Outcome {
    let mut run = Run::new(&ECP5, seed);
    run.gathers = 40;
    run.open(3..4)?;
    for _ in 0..20 {
        run.traffic(300, 0)?;
        // A ring of an endpoint that runs is set anew.
        let number = run.rng.random_range(0..run.rings.len());
        run.set_ring(number, 3)?;
        run.traffic(300, 0)?;
        let endpoint = run.rng.random_range(0..run.running.len());
        run.control(Operation::EndpointStop, endpoint as u16, &[])?;
        run.running[endpoint] = false;
        for ring in &run.rings[2 * endpoint..2 * endpoint + 2] {
            claim!(
                ring.is_empty(),
                "{:?} and {:?} are inside a stopped endpoint",
                ring.inside,
                ring.under_way
            );
        }
        run.traffic(300, 0)?;
        if chance(&mut run.rng, 50) {
            run.control(Operation::EndpointClear, endpoint as u16, &[])?;
            // What is rung now is nobody's: counted, and no event.
            run.rings[2 * endpoint] = Ring::default();
            run.rings[2 * endpoint + 1] = Ring::default();
            run.ring(2 * endpoint, 1);
            run.ignored += 1;
            run.tick()?;
            run.set_ring(2 * endpoint, 3)?;
            run.set_ring(2 * endpoint + 1, 3)?;
        }
        run.set_endpoint(endpoint)?;
    }
    run.settle()
}

#[test]
fn a_stopped_endpoint_leaves_nothing_behind() {
    for seed in 10..16 {
        stops(seed).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

#[test]
fn control_of_an_endpoint_that_there_is_not_is_done_at_once() {
    let mut run = Run::new(&ECP5, 1);
    for &operation in Fetch::REQUESTS {
        run.bench.set_packed(
            "control",
            &Packed::default()
                .with(8, operation.code().into())
                .with(16, 0xfff0),
        );
        run.bench.set("control_valid", 1);
        assert!(run.tick().expect("nothing is under way"), "{operation}");
    }
}
