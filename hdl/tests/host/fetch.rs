//! `host::Fetch`: every entry posted comes out once, in order, as what it is; a completion is
//! reserved before each read and given up for each entry that can't be read.

use super::bench::{
    Bench, Outcome, Packed, chance, claim, control, doorbell, for_sizes, pace, wrong,
};
use super::memory::{Memory, ReadPort};
use super::support::broken::breaks_by;
use abi::completion::Completion;
use abi::control::{Operation, RING_LIST, RING_SEND, ring_index};
use abi::event::{Cause, INFO_LIST_RING_BIT, NO_PAIR};
use abi::opcode::{BufferUse, OPCODES, OpcodeRow, TargetUse, WorkRing, decode_list, decode_send};
use abi::register::{LIST_TAIL, SEND_TAIL};
use abi::request::{INLINE_BYTES, ListRequest, SendRequest};
use abi::status::Status;
use hdl::config::{Config, ECP5};
use hdl::host::Fetch;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;

/// Capabilities of the cards whose rings these are.
const CAPABILITIES: u32 = ECP5.capabilities;

/// What a ring entry should become.
#[derive(Clone, Debug, PartialEq)]
enum Entry {
    Request([u64; 8]),
    Refusal([u64; 8]),
    Unreadable,
}

#[derive(Debug, Default)]
struct Ring {
    base: u64,
    log2: u32,
    /// Entries of the ring from the one to be asked for next to the tail.
    posted: VecDeque<Entry>,
    /// Entries asked for whose last word has not been delivered.
    under_way: VecDeque<Entry>,
    /// Entries that could be read and have not come out.
    inside: Vec<Entry>,
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
    /// Endpoints whose reservations are to be given up.
    released: VecDeque<usize>,
    /// Most reads that were under way at once.
    deepest: usize,
    refused: u64,
    counted_refused: u64,
    ignored: u64,
    counted_ignored: u64,
    requests: u64,
    last_asked: VecDeque<usize>,
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
            released: VecDeque::new(),
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
        let base = (0x1_0000_0000 * (number as u64 + 1)) + 64 * self.rng.random_range(0..1000);
        let part = [RING_SEND, RING_LIST][number % 2];
        let index = ring_index(number as u8 / 2, part);
        self.control(Operation::RingSet, index, &[base, u64::from(log2)])?;
        self.rings[number] = Ring {
            base,
            log2,
            ..Ring::default()
        };
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
        let known = |row: &&OpcodeRow| row.ring == ring && row.is_known(CAPABILITIES);
        let rows: Vec<_> = OPCODES.iter().filter(known).collect();
        let row = rows[rng.random_range(0..rows.len())];
        let known = row.flags_with(CAPABILITIES);
        let mut flags = rng.random::<u8>() & known;
        let inline = flags & row.inline_flag != 0;
        if inline {
            flags &= !row.second_flag;
        }
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
        Entry::Refusal(words)
    }

    /// Posts up to `most` entries on a ring, as a host does.
    fn post(&mut self, number: usize, most: u16) {
        let count = self
            .rng
            .random_range(1..=most)
            .min(self.rings[number].room());
        for _ in 0..count {
            let entry = self.entry(number % 2 == 1);
            let ring = &mut self.rings[number];
            let address = ring.address(ring.tail);
            match &entry {
                Entry::Request(words) | Entry::Refusal(words) => {
                    self.memory.broken.remove(&address);
                    self.memory.write(address, words);
                }
                Entry::Unreadable => {
                    self.memory.broken.insert(address);
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
            let number = self.last_asked.pop_front().expect("data is asked for");
            let ring = &mut self.rings[number];
            let entry = ring.under_way.pop_front().expect("an entry is asked for");
            let readable = entry != Entry::Unreadable;
            if ring.stopped.is_none() && readable {
                ring.inside.push(entry);
                ring.delivered = ring.delivered.wrapping_add(1);
            } else {
                self.released.push_back(number / 2);
                if ring.stopped.is_none() {
                    ring.stopped = Some(bench.cycle());
                    ring.error_at = Some(ring.delivered);
                }
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
            let Some((endpoint, since)) = self.reserved.pop_front() else {
                wrong!("{address:#x} is read without a reservation");
            };
            let mut rings = [2 * endpoint, 2 * endpoint + 1].into_iter();
            let number = rings.find(|&r| self.rings[r].address(self.rings[r].asked) == address);
            let Some(number) = number else {
                wrong!(
                    "{address:#x} is read for endpoint {endpoint}, which has other entries next"
                );
            };
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
            self.last_asked.push_back(number);
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
            let came = Entry::Request(words);
            self.rings[2 * endpoint + list].leave(&came, |e| matches!(e, Entry::Request(_)))?;
            self.requests += 1;
            // The completion of it is consumed before long.
            self.outstanding[endpoint] -= 1;
        }
        if bench.moves("complete") {
            let mut packed = bench.packed("complete");
            let endpoint = packed.take(8) as usize;
            let entry = Completion::from_words(&packed.take_words());
            let of_handle = |ring: &Ring| {
                let mut refusals = ring.inside.iter().filter_map(|e| match e {
                    Entry::Refusal(words) => Some(*words),
                    _ => None,
                });
                refusals
                    .next()
                    .filter(|w| SendRequest::from_words(w).request == entry.request)
            };
            let (first, second) = (2 * endpoint, 2 * endpoint + 1);
            let found = [first, second]
                .into_iter()
                .find_map(|r| Some((r, of_handle(&self.rings[r])?)));
            let Some((number, words)) = found else {
                wrong!("{entry:?} is of no malformed request");
            };
            let request = SendRequest::from_words(&words);
            let decoded = match number % 2 {
                0 => decode_send(&request, CAPABILITIES),
                _ => decode_list(&ListRequest::from_words(&words), CAPABILITIES),
            };
            let Err(kind) = decoded else {
                wrong!("{request:?} is refused, and is well formed");
            };
            let expected = Completion {
                status: Status::InvalidRequest.code(),
                kind: kind.code(),
                request: request.request,
                pair: request.pair,
                ..Default::default()
            };
            claim!(entry == expected, "{entry:?} should be {expected:?}");
            self.rings[number].leave(&Entry::Refusal(words), |e| matches!(e, Entry::Refusal(_)))?;
            self.outstanding[endpoint] -= 1;
            self.refused += 1;
        }
        if bench.is("given_up_valid") {
            let endpoint = bench.get("given_up") as usize;
            let expected = self.released.pop_front();
            claim!(
                expected == Some(endpoint),
                "a reservation of endpoint {endpoint} is given up, and one of {expected:?} has to be"
            );
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
                ring.inside.is_empty() && ring.under_way.is_empty(),
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

impl Ring {
    fn leave(&mut self, entry: &Entry, same_way: impl Fn(&Entry) -> bool) -> Outcome {
        let first = self.inside.iter().position(same_way);
        let Some(first) = first.filter(|&k| self.inside[k] == *entry) else {
            wrong!("{entry:x?} comes out, and {:x?} is inside", self.inside);
        };
        self.inside.remove(first);
        self.out = self.out.wrapping_add(1);
        Ok(())
    }
}

/// Traffic on all rings, with everything that can be wrong with it.
fn everything(config: &Config, seed: u64) -> Outcome {
    let mut run = Run::new(config, seed);
    run.open(2..5)?;
    run.traffic(15_000, 5)?;
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
    claim!(run.requests > 500, "only {} requests", run.requests);
    claim!(run.refused > 50, "only {} refusals", run.refused);
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
    });
}

#[test]
fn reads_are_under_way_while_others_come() {
    let test = || -> Outcome {
        let mut run = Run::new(&ECP5, 5);
        run.capacity = 64;
        run.malformed = 0;
        run.read.latency = 125;
        run.open(4..5)?;
        let (mut first, mut begin) = (0, 0);
        for cycle in 0..6_000 {
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
        let cycles = (run.bench.cycle() - begin) / (run.requests - first);
        claim!(run.deepest >= 12, "at most {} reads under way", run.deepest);
        claim!(cycles < 12, "{cycles} cycles a request");
        run.settle()
    };
    test().unwrap_or_else(|error| panic!("{error}"));
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

/// Nobody takes one class.
fn waits(stalled: usize) -> Outcome {
    let mut run = Run::new(&ECP5, 7 + stalled as u64);
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
    run.open(3..4)?;
    for _ in 0..20 {
        run.traffic(300, 0)?;
        let endpoint = run.rng.random_range(0..run.running.len());
        run.control(Operation::EndpointStop, endpoint as u16, &[])?;
        run.running[endpoint] = false;
        for ring in &run.rings[2 * endpoint..2 * endpoint + 2] {
            claim!(
                ring.inside.is_empty() && ring.under_way.is_empty(),
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
            run.ring(2 * endpoint, 5);
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
