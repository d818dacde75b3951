//! `host::Completions`: every completion is written once, in order, into room that was reserved; the
//! host is told when it asked to be, and nothing that it hasn't consumed is overwritten.
//!
//! What is free, what is written where, which index is believed and what is counted says the room of the model of the card
//! (`card_model::Endpoints`), which takes each completion in the cycle in which the block does. The model knows no time, so what comes later is said here: words
//! that come one after the other, the tail and the interrupt once memory has answered, events that fold.

use super::bench::{
    Bench, Outcome, Packed, chance, claim, control, doorbell, for_sizes, pace, wrong,
};
use super::memory::{Memory, WritePort};
use abi::completion::{Completion, LONG_KINDS, words_written};
use abi::control::{
    Counter, EndpointSetup, Operation, RING_COMPLETION, RING_EVENT, RING_LIST, RING_SEND,
    RingSetup, ring_index,
};
use abi::event::{Cause, NO_PAIR};
use abi::register::{COMPLETION_ARM, COMPLETION_HEAD, COMPLETION_TAIL};
use abi::ring::is_written;
use card_model::memory::{BusError, HostMemory};
use card_model::{Counters, Endpoints};
use hdl::config::{Config, ECP5};
use hdl_tests::broken::{breaks_by, mutants};
use rand::seq::IteratorRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Range;

const SOURCES: [&str; 3] = ["queues", "sends", "delivery"];
/// Cycles within which an interrupt follows its cause.
const PROMPT: u64 = 3;

#[derive(Default)]
struct Queue {
    base: u64,
    log2: u32,
    /// Entries in memory, answered by memory, consumed.
    stored: u16,
    tail: u16,
    head: u16,
    /// What the interrupt was armed with, and the cycle from which it is due.
    armed: Option<u16>,
    due: Option<u64>,
    bad_indices: Vec<u32>,
    /// Failed writes, events that told of one, and whether the last has been told.
    failed: u32,
    told: u32,
    untold: bool,
}

impl Queue {
    fn size(&self) -> u16 {
        if self.base == 0 { 0 } else { 1 << self.log2 }
    }

    fn address(&self, index: u16) -> u64 {
        self.base + 64 * u64::from(index & (self.size() - 1))
    }
}

/// Of an entry of a kind, byte at which the words that are written begin.
fn first_byte(kind: u8) -> u64 {
    8 * (Completion::WORDS - words_written(kind)) as u64
}

/// Host memory of the model: what it writes, the oldest first.
#[derive(Default)]
struct Written {
    accesses: VecDeque<(u64, Vec<u64>)>,
    broken: HashSet<u64>,
}

impl HostMemory for Written {
    fn read(&mut self, _: u64, _: &mut [u8]) -> Result<(), BusError> {
        unreachable!("completions are only written")
    }

    fn write(&mut self, _: u64, _: &[u8]) -> Result<(), BusError> {
        unreachable!("by whole entries")
    }

    fn write_entry(&mut self, address: u64, words: &[u64]) -> Result<(), BusError> {
        self.accesses.push_back((address, words.to_vec()));
        match self.broken.contains(&address) {
            true => Err(BusError),
            false => Ok(()),
        }
    }
}

/// A completion that the block has taken.
struct Accepted {
    endpoint: usize,
    /// On whose queue it goes, and the place there.
    owner: usize,
    index: u16,
    /// Where the model begins to write it, and the words.
    address: u64,
    words: Vec<u64>,
}

struct Run {
    bench: Bench,
    rng: ChaCha8Rng,
    memory: Memory,
    /// The reference.
    model: Endpoints,
    counters: Counters,
    written_by_model: Written,
    /// What memory holds if only the words of the entries have been written.
    expected: HashMap<u64, u64>,
    /// How many completions in a hundred speak of a message.
    long: u32,
    /// In how many cycles of a hundred the work queues reserve, and each source releases.
    reserves: u32,
    releases: u32,
    write: WritePort,
    queues: Vec<Queue>,
    /// The endpoint on whose queue each completes.
    owners: Vec<usize>,
    /// Reservations of each endpoint that nobody has answered, and its entries that memory hasn't.
    unanswered: Vec<u16>,
    unwritten: Vec<u16>,
    /// What each source offers.
    offers: [Option<(usize, Completion)>; 3],
    source_pace: u32,
    raise_pace: u32,
    /// In order.
    accepted: VecDeque<Accepted>,
    written: VecDeque<(usize, usize)>,
    handle: u32,
    rings: u32,
    breaks: u32,
    completions: u64,
    counted: u64,
    counted_ignored: u64,
    interrupts: u64,
    read_before: Option<(usize, u16)>,
    stopped: bool,
    /// An endpoint that reserves no more.
    held: Option<usize>,
}

impl Run {
    fn new(config: &Config, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let bench = Bench::new(&format!("completions_{}", config.name));
        Run {
            bench,
            memory: Memory::default(),
            model: Endpoints::new(config.endpoints, config.capabilities),
            counters: Counters::default(),
            written_by_model: Written::default(),
            expected: HashMap::new(),
            long: 50,
            reserves: 30,
            releases: 5,
            write: WritePort::new(rng.random_range(0..60), 70),
            queues: (0..config.endpoints).map(|_| Queue::default()).collect(),
            owners: (0..config.endpoints).collect(),
            unanswered: vec![0; config.endpoints],
            unwritten: vec![0; config.endpoints],
            offers: [None; 3],
            source_pace: 70,
            raise_pace: 70,
            accepted: VecDeque::new(),
            written: VecDeque::new(),
            handle: 0,
            rings: 10,
            breaks: 0,
            completions: 0,
            counted: 0,
            counted_ignored: 0,
            interrupts: 0,
            read_before: None,
            stopped: false,
            held: None,
            rng,
        }
    }

    fn set_queue(&mut self, endpoint: usize, log2: u32) -> Outcome {
        let base =
            0x2_0000_0000 * (endpoint as u64 + 1) + (self.rng.random_range(0..1000) << (6 + log2));
        let index = ring_index(endpoint as u8, RING_COMPLETION);
        // The host clears its memory before.
        let queue = base..base + (64 << log2);
        for words in [&mut self.memory.words, &mut self.expected] {
            words.retain(|at, _| !queue.contains(at));
        }
        self.control(Operation::RingSet, index, &[base, u64::from(log2)])?;
        let setup = RingSetup {
            base,
            log2: log2 as u8,
            ..RingSetup::default()
        };
        self.model.set_ring(index, setup);
        self.queues[endpoint] = Queue {
            base,
            log2,
            ..Queue::default()
        };
        self.read_before = None;
        // The other rings of the endpoint are other blocks'.
        for part in [RING_SEND, RING_LIST, RING_EVENT] {
            let index = ring_index(endpoint as u8, part);
            self.control(Operation::RingSet, index, &[0x1000, 1])?;
        }
        Ok(())
    }

    fn set_owner(&mut self, endpoint: usize, owner: usize) -> Outcome {
        let setup = EndpointSetup {
            completion_owner: owner as u8,
            epoch: self.rng.random(),
            domain: self.rng.random(),
            ..EndpointSetup::default()
        };
        let index = endpoint as u16;
        self.control(Operation::EndpointSet, index, &setup.to_words())?;
        self.model.set(endpoint as u8, setup);
        self.owners[endpoint] = owner;
        Ok(())
    }

    /// Gives each endpoint a queue, its own or that of one before it that has one.
    fn set_queues(&mut self, log2: Range<u32>, shared: u32) -> Outcome {
        for endpoint in 0..self.queues.len() {
            let before = (0..endpoint).filter(|&e| self.queues[e].size() > 0);
            let owner = before.choose(&mut self.rng);
            let owner = owner.filter(|_| chance(&mut self.rng, shared));
            match owner {
                Some(owner) => self.set_owner(endpoint, owner)?,
                None => {
                    let log2 = self.rng.random_range(log2.clone());
                    self.set_queue(endpoint, log2)?;
                    self.set_owner(endpoint, endpoint)?;
                }
            }
        }
        Ok(())
    }

    /// Index behind the last entry of a queue that the block was given.
    fn given(&self, owner: usize) -> u16 {
        self.model.read(owner as u8, COMPLETION_TAIL) as u16
    }

    fn control(&mut self, operation: Operation, index: u16, data: &[u64]) -> Outcome {
        self.bench
            .set_packed("control", &control(operation, index, data));
        self.bench.set("control_valid", 1);
        for _ in 0..100_000 {
            if self.tick()? {
                self.bench.set("control_valid", 0);
                return Ok(());
            }
        }
        wrong!("{operation} is never done")
    }

    fn offer(&mut self) {
        for (source, offer) in self.offers.iter_mut().enumerate() {
            let name = SOURCES[source];
            if offer.is_none() && chance(&mut self.rng, self.source_pace) {
                let endpoint = self.rng.random_range(0..self.queues.len());
                if self.unanswered[endpoint] > 0 {
                    self.unanswered[endpoint] -= 1;
                    self.handle += 1;
                    let long = LONG_KINDS.iter().choose(&mut self.rng).expect("some");
                    let kind = match chance(&mut self.rng, self.long) {
                        true => long.code(),
                        false => self.rng.random(),
                    };
                    let entry = Completion {
                        reserved0: self.rng.random(),
                        reserved1: self.rng.random(),
                        match_bits: self.rng.random(),
                        immediate: self.rng.random(),
                        length: self.rng.random(),
                        handle: self.rng.random(),
                        request: self.handle,
                        pair: self.rng.random(),
                        context: self.rng.random(),
                        status: self.rng.random(),
                        kind,
                        // The source's endpoint and phase mean nothing.
                        endpoint: self.rng.random(),
                        phase: u8::from(self.rng.random::<bool>()),
                        ..Default::default()
                    };
                    *offer = Some((endpoint, entry));
                }
            }
            self.bench.offer(name, offer.is_some());
            if let Some((endpoint, entry)) = offer {
                let packed = Packed::default()
                    .with(8, *endpoint as u64)
                    .with_words(&entry.to_words());
                self.bench.set_packed(name, &packed);
            }
        }
    }

    /// Reservations, and some that end without an entry.
    fn promise(&mut self) {
        // Delivery goes first: the work queues see at once what it leaves.
        let free = self.bench.get("delivery_free");
        let endpoint = self.rng.random_range(0..self.queues.len());
        let may = |endpoint, free: u64| free >> endpoint & 1 == 1 && self.held != Some(endpoint);
        let reserve = !self.stopped && may(endpoint, free) && chance(&mut self.rng, 10);
        self.bench.set("delivery_reserve_valid", u64::from(reserve));
        self.bench.set("delivery_reserve", endpoint as u64);
        self.bench.settle();
        let free = self.bench.get("completion_free");
        let endpoint = self.rng.random_range(0..self.queues.len());
        let may = |endpoint, free: u64| free >> endpoint & 1 == 1 && self.held != Some(endpoint);
        let reserve = !self.stopped && may(endpoint, free) && chance(&mut self.rng, self.reserves);
        self.bench.set("reserve_valid", u64::from(reserve));
        self.bench.set("reserve", endpoint as u64);
        for port in SOURCES {
            let endpoint = self.rng.random_range(0..self.queues.len());
            let release = self.unanswered[endpoint] > 0 && chance(&mut self.rng, self.releases);
            if release {
                self.unanswered[endpoint] -= 1;
            }
            self.bench
                .set(&format!("{port}_release_valid"), u64::from(release));
            self.bench.set(&format!("{port}_release"), endpoint as u64);
        }
    }

    /// One write of the host to a doorbell page, now and then.
    fn ring(&mut self) {
        self.bench.set("doorbell_valid", 0);
        if !chance(&mut self.rng, self.rings) {
            return;
        }
        let endpoint = self.rng.random_range(0..self.queues.len());
        let given = self.given(endpoint);
        let queue = &mut self.queues[endpoint];
        if queue.size() == 0 {
            return;
        }
        let (offset, value) = match self.rng.random_range(0..10) {
            // What the host sees in memory, before or after the card knows that it is there.
            0..5 => {
                let seen = queue.stored.wrapping_sub(queue.head);
                let new = queue.head.wrapping_add(self.rng.random_range(0..=seen));
                (COMPLETION_HEAD, u32::from(new))
            }
            5..9 if chance(&mut self.rng, 10) => (COMPLETION_ARM, self.rng.random::<u16>().into()),
            5..9 => (COMPLETION_ARM, u32::from(queue.head)),
            _ if chance(&mut self.rng, self.breaks) => {
                let bad = match self.rng.random_range(0..3) {
                    0 => u32::from(given.wrapping_add(1 + self.rng.random_range(0..1000))),
                    1 => u32::from(queue.head.wrapping_sub(1 + self.rng.random_range(0..1000))),
                    _ => self.rng.random_range(0x1_0000..=u32::MAX),
                };
                (COMPLETION_HEAD, bad)
            }
            _ => return,
        };
        self.bench
            .set_packed("doorbell", &doorbell(endpoint as u8, offset, value));
        self.bench.set("doorbell_valid", 1);
        if offset == COMPLETION_ARM {
            queue.armed = Some(value as u16);
            queue.due = None;
            return;
        }
        // Entries that are consumed come free at the edge.
        let ignored = self.ignored();
        let (memory, counters) = (&mut self.written_by_model, &mut self.counters);
        self.model
            .write(memory, counters, endpoint as u8, offset, value);
        let believed = self.ignored() == ignored;
        let queue = &mut self.queues[endpoint];
        match believed {
            true => queue.head = value as u16,
            false => queue.bad_indices.push(value),
        }
    }

    /// Doorbells that weren't believed.
    fn ignored(&self) -> u32 {
        self.counters.read(Counter::DoorbellErrors)
    }

    fn tick(&mut self) -> Result<bool, String> {
        if self.bench.cycle().is_multiple_of(512) {
            self.source_pace = pace(&mut self.rng);
            self.raise_pace = pace(&mut self.rng);
            self.write.pace = pace(&mut self.rng);
        }
        let has_room = |&e: &usize| self.model.completion_free(e as u8);
        let free = (0..self.owners.len()).filter(has_room);
        let free = free.fold(0, |bits, e| bits | 1 << e);
        claim!(
            self.bench.get("delivery_free") == free,
            "delivery_free is {:#b}, not {free:#b}",
            self.bench.get("delivery_free")
        );
        self.promise();
        let left = match self.bench.is("delivery_reserve_valid") {
            true => {
                let queue = self.owners[self.bench.get("delivery_reserve") as usize];
                let left = (0..self.owners.len()).filter(|&e| self.owners[e] != queue);
                left.fold(0, |bits, e| bits | (free & 1 << e))
            }
            false => free,
        };
        claim!(
            self.bench.get("completion_free") == left,
            "completion_free is {:#b}, not {left:#b}",
            self.bench.get("completion_free")
        );
        self.offer();
        self.ring();
        let bench = &mut self.bench;
        bench.set(
            "raise_ready",
            u64::from(chance(&mut self.rng, self.raise_pace)),
        );
        let read_now = self.rng.random_range(0..self.queues.len());
        bench.set("read_endpoint", read_now as u64);
        self.write.drive(bench, &mut self.rng);
        bench.settle();

        if let Some((endpoint, tail)) = self.read_before {
            let read = bench.get("completion_tail") as u16;
            claim!(
                read == tail,
                "tail of endpoint {endpoint} reads {read}, not {tail}"
            );
        }
        self.read_before = Some((read_now, self.queues[read_now].tail));
        let raised = bench.get("interrupts");
        for (endpoint, queue) in self.queues.iter_mut().enumerate() {
            let raised = raised >> endpoint & 1 == 1;
            let past = queue.armed.is_some_and(|at| {
                let past = queue.tail.wrapping_sub(at);
                past != 0 && past < 0x8000
            });
            // The doorbell of this cycle has not been seen by the gates.
            let rung = bench.is("doorbell_valid");
            claim!(
                !raised || past || rung,
                "endpoint {endpoint} is woken for nothing: {:?}, tail {}",
                queue.armed,
                queue.tail
            );
            if past && !rung {
                let due = *queue.due.get_or_insert(bench.cycle() + PROMPT);
                claim!(
                    raised || bench.cycle() < due,
                    "endpoint {endpoint} is not woken"
                );
                self.interrupts += u64::from(raised);
            }
        }
        for port in ["", "delivery_"] {
            if bench.is(&format!("{port}reserve_valid")) {
                let endpoint = bench.get(&format!("{port}reserve")) as usize;
                self.model.reserve(endpoint as u8);
                self.unanswered[endpoint] += 1;
            }
        }
        for port in SOURCES {
            if bench.is(&format!("{port}_release_valid")) {
                self.model
                    .release(bench.get(&format!("{port}_release")) as u8);
            }
        }
        for (source, name) in SOURCES.iter().enumerate() {
            if bench.moves(name) {
                let (endpoint, entry) = self.offers[source].take().expect("it was offered");
                let owner = self.owners[endpoint];
                let index = self.model.read(owner as u8, COMPLETION_TAIL) as u16;
                let (memory, counters) = (&mut self.written_by_model, &mut self.counters);
                self.model.complete(memory, counters, endpoint as u8, entry);
                let (address, words) = memory.accesses.pop_front().expect("it has a queue");
                self.accepted.push_back(Accepted {
                    endpoint,
                    owner,
                    index,
                    address,
                    words,
                });
                self.unwritten[endpoint] += 1;
            }
        }
        self.write.sample(bench, &mut self.rng, &mut self.memory)?;
        for address in self.write.stored.drain(..) {
            let Some(accepted) = self.accepted.pop_front() else {
                wrong!("{address:#x} is written and nothing is complete");
            };
            let Accepted { owner, index, .. } = accepted;
            let queue = &mut self.queues[owner];
            claim!(
                address == accepted.address,
                "entry {index} of queue {owner} is at {address:#x} and not {:#x}",
                accepted.address
            );
            claim!(
                index.wrapping_sub(queue.head) < queue.size(),
                "entry {index} of queue {owner} overwrites what is not consumed"
            );
            let words = (address..).step_by(8).zip(accepted.words);
            self.expected.extend(words);
            let entry_at = queue.address(index);
            for at in (entry_at..).step_by(8).take(Completion::WORDS) {
                let [found, expected] = [&self.memory.words, &self.expected].map(|m| m.get(&at));
                claim!(
                    found == expected,
                    "{at:#x} of entry {index} of queue {owner} is {found:x?} and not {expected:x?}"
                );
            }
            queue.stored = index.wrapping_add(1);
            self.written.push_back((accepted.endpoint, owner));
        }
        for (_, failed) in self.write.answered.drain(..) {
            let (endpoint, owner) = self.written.pop_front().expect("it was written");
            self.unwritten[endpoint] -= 1;
            let queue = &mut self.queues[owner];
            queue.tail = queue.tail.wrapping_add(1);
            self.completions += u64::from(!failed);
            if failed {
                queue.failed += 1;
                queue.untold = true;
            }
        }
        // The host may look at any time: what it takes for an entry is one.
        if let Some(Accepted { owner, index, .. }) = self.accepted.front() {
            let queue = &self.queues[*owner];
            let last = self.memory.read(queue.address(*index) + 56);
            claim!(
                !is_written(last, *index, queue.log2 as u8),
                "the host sees entry {index} of queue {owner} before all of it is there"
            );
        }
        self.counted += bench.get("count_completions");
        self.counted_ignored += bench.get("count_doorbell_errors");
        if bench.moves("raise") {
            let mut event = bench.packed("raise");
            let (endpoint, cause) = (event.take(8) as usize, event.take(8));
            let (pair, info) = (event.take(16), event.take(64));
            claim!(
                pair == u64::from(NO_PAIR),
                "an event of a queue names pair {pair}"
            );
            let queue = &mut self.queues[endpoint];
            match Cause::from_code(cause as u8) {
                Some(Cause::IndexError) => {
                    let told = queue.bad_indices.iter().position(|&v| u64::from(v) == info);
                    let Some(told) = told else {
                        wrong!("endpoint {endpoint} is told of {info:#x}, which it never wrote");
                    };
                    queue.bad_indices.drain(..=told);
                }
                Some(Cause::CompletionError) => {
                    // Several failures may fold into one event.
                    queue.told += 1;
                    queue.untold = false;
                    claim!(
                        queue.told <= queue.failed,
                        "endpoint {endpoint}: no write failed"
                    );
                }
                _ => wrong!("cause {cause}"),
            }
        }
        let done = bench.is("control_valid") && bench.is("control_ready");
        bench.step()?;
        Ok(done)
    }

    fn ticks(&mut self, count: usize) -> Outcome {
        (0..count).try_for_each(|_| self.tick().map(drop))
    }

    fn settle(&mut self) -> Outcome {
        let (rings, breaks) = (self.rings, self.breaks);
        self.stopped = true;
        self.breaks = 0;
        self.ticks(10_000)?;
        self.stopped = false;
        (self.rings, self.breaks) = (rings, breaks);
        claim!(
            self.write.idle() && self.accepted.is_empty(),
            "completions are left inside"
        );
        for (endpoint, queue) in self.queues.iter().enumerate() {
            claim!(
                queue.tail == self.given(endpoint),
                "endpoint {endpoint} lacks completions"
            );
            claim!(
                queue.bad_indices.is_empty(),
                "no event of {:?}",
                queue.bad_indices
            );
            claim!(!queue.untold, "no event of a failed write");
        }
        claim!(
            self.memory.words == self.expected,
            "memory beside the entries was written"
        );
        claim!(
            self.counted == self.completions,
            "{} counted of {}",
            self.counted,
            self.completions
        );
        let completions = u64::from(self.counters.read(Counter::Completions));
        claim!(
            self.completions == completions,
            "{} written, and {completions} by the model",
            self.completions
        );
        let ignored = u64::from(self.ignored());
        claim!(
            self.counted_ignored == ignored,
            "{ignored} doorbells ignored, {} counted",
            self.counted_ignored
        );
        Ok(())
    }
}

/// Completions of all sources for so many cycles, then a while with memory that fails.
fn life(config: &Config, seed: u64, cycles: usize) -> Result<Run, String> {
    let mut run = Run::new(config, seed);
    run.breaks = 30;
    // Each on its own, some on one queue, or all.
    run.set_queues(2..5, [0, 50, 100][seed as usize % 3])?;
    run.ticks(cycles)?;
    run.settle()?;
    for _ in 0..10 {
        let endpoint = run.owners[run.rng.random_range(0..run.owners.len())];
        let index = run.rng.random_range(0..run.queues[endpoint].size());
        let address = run.queues[endpoint].address(index);
        let written = [LONG_KINDS[0].code(), 0].map(|kind| address + first_byte(kind));
        run.memory.broken.extend(written);
        run.written_by_model.broken.extend(written);
    }
    run.ticks(5_000)?;
    run.settle()?;
    Ok(run)
}

fn everything(config: &Config, seed: u64) -> Outcome {
    let run = life(config, seed, 20_000)?;
    claim!(
        run.completions > 500,
        "only {} completions",
        run.completions
    );
    claim!(
        run.interrupts > 100,
        "only {} cycles with an interrupt",
        run.interrupts
    );
    Ok(())
}

#[test]
fn every_completion_is_written_once_into_room_that_was_reserved() {
    for_sizes(1..=4, everything);
}

#[test]
fn completion_queues_that_are_broken_are_noticed() {
    breaks_by("completions_ecp5", &|| {
        for seed in 1..=3 {
            everything(&ECP5, seed).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        }
        cleared(31).unwrap_or_else(|error| panic!("{error}"));
        let [spent, most] = rate(100, 125).unwrap_or_else(|error| panic!("{error}"));
        assert!(spent <= most, "{spent} cycles and not {most}");
    });
}

#[test]
#[ignore = "mutants: `cargo xtask mutants`, `cargo xtask test --long`"]
fn most_mutants_of_completion_queues_are_noticed() {
    mutants("completions_ecp5", 1, |_| {
        for seed in 1..=2 {
            life(&ECP5, seed, 5_000).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        }
        cleared(31).unwrap_or_else(|error| panic!("{error}"));
        let [spent, most] = rate(100, 125).unwrap_or_else(|error| panic!("{error}"));
        assert!(spent <= most, "{spent} cycles and not {most}");
    });
}

/// Cycles that 1000 completions take, of which `long` in a hundred speak of a message, when the sources always have one, the bus always takes a
/// word, and memory answers after `latency`; and cycles that they may take: those of their words and one, or of memory with 16 under way.
fn rate(long: u32, latency: u64) -> Result<[u64; 2], String> {
    let mut run = Run::new(&ECP5, 1);
    (run.long, run.reserves, run.releases) = (long, 100, 0);
    (run.write.latency, run.write.fixed) = (latency, true);
    run.rings = 50;
    for endpoint in 0..run.queues.len() {
        run.set_queue(endpoint, 8)?;
    }
    let mut begun = None;
    while run.completions < 1200 {
        (run.write.pace, run.source_pace) = (100, 100);
        run.tick()?;
        if run.completions == 200 {
            begun.get_or_insert(run.bench.cycle());
        }
    }
    let words = if long > 0 { 6 } else { 2 };
    let most = (1000 * (words + 1)).max(1000 * (latency + 10) / 16);
    Ok([run.bench.cycle() - begun.unwrap_or(0), most])
}

#[test]
fn completions_go_at_the_speed_of_their_words_however_long_memory_takes() {
    for (long, latency) in [(0, 0), (0, 32), (100, 0), (100, 32), (100, 125)] {
        let [spent, most] = rate(long, latency).unwrap_or_else(|error| panic!("{error}"));
        assert!(
            spent <= most,
            "{spent} cycles, {long} in a hundred long, at latency {latency}: {most}"
        );
    }
}

#[test]
fn indices_wrap_at_sixteen_bits() {
    let seed = 21;
    let test = || -> Outcome {
        let mut run = Run::new(&ECP5, seed);
        run.write.latency = 0;
        run.rings = 50;
        run.set_queue(0, 4)?;
        while run.completions < 66_000 {
            run.write.pace = 100;
            run.source_pace = 100;
            run.tick()?;
        }
        run.settle()
    };
    test().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
}

/// Endpoints that end and begin again while others go on, those that own no queue first.
fn cleared(seed: u64) -> Outcome {
    let mut run = Run::new(&ECP5, seed);
    run.set_queues(3..4, 50)?;
    for _ in 0..20 {
        run.ticks(300)?;
        let ends =
            |&e: &usize| (0..run.owners.len()).all(|other| run.owners[other] != e || other == e);
        let endpoint = (0..run.owners.len()).filter(ends).choose(&mut run.rng);
        let endpoint = endpoint.expect("not all own the queue of another");
        // As the firmware does: first everything posted has been answered.
        run.held = Some(endpoint);
        while run.unanswered[endpoint] > 0
            || run.offers.iter().flatten().any(|offer| offer.0 == endpoint)
        {
            run.tick()?;
        }
        run.control(Operation::EndpointClear, endpoint as u16, &[])?;
        claim!(
            run.unwritten[endpoint] == 0,
            "endpoint {endpoint} cleared too early"
        );
        run.model.clear(endpoint as u8);
        run.queues[endpoint] = Queue::default();
        run.owners[endpoint] = endpoint;
        run.read_before = None;
        run.ticks(50)?;
        let others = (0..run.owners.len()).filter(|&e| run.queues[e].size() > 0);
        match others.choose(&mut run.rng) {
            Some(owner) if chance(&mut run.rng, 50) => run.set_owner(endpoint, owner)?,
            _ => {
                run.set_queue(endpoint, 3)?;
                run.set_owner(endpoint, endpoint)?;
            }
        }
        run.held = None;
    }
    run.settle()?;
    // Nothing is under way, so nothing is waited for.
    run.stopped = true;
    for endpoint in 0..run.owners.len() {
        let begun = run.bench.cycle();
        run.control(Operation::EndpointClear, endpoint as u16, &[])?;
        run.model.clear(endpoint as u8);
        run.queues[endpoint] = Queue::default();
        run.owners[endpoint] = endpoint;
        run.read_before = None;
        let cycles = run.bench.cycle() - begun;
        claim!(
            cycles < 10,
            "endpoint {endpoint} is cleared in {cycles} cycles"
        );
    }
    Ok(())
}

#[test]
fn a_queue_is_cleared_only_when_nothing_of_it_is_under_way() {
    for seed in 31..35 {
        cleared(seed).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}
