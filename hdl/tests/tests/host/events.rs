//! `host::Events`: each event is in the queue or counted as lost, its cause is readable either
//! way, and the firmware is told of it unless it has raised it itself.

use super::bench::{
    Bench, Outcome, Packed, chance, claim, control, doorbell, for_sizes, pace, wrong,
};
use super::memory::{Memory, WritePort};
use abi::control::{EventSetup, Operation, RING_EVENT, ring_index};
use abi::event::{Cause, Event, NO_PAIR};
use abi::register::{EVENT_ARM, EVENT_HEAD, STICKY};
use abi::ring::phase;
use hdl::config::{Config, ECP5};
use hdl_tests::broken::{breaks_by, mutants};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;

const SOURCES: [&str; 5] = ["queues", "completions", "delivery", "faults", "refusals"];
/// The source whose events have a detail.
const DETAILED: usize = 4;
/// Cycles within which an interrupt follows its cause.
const PROMPT: u64 = 3;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Raise {
    endpoint: usize,
    cause: u8,
    pair: u16,
    info: u64,
    /// Not told to the firmware.
    detail: u64,
}

impl Raise {
    fn random(rng: &mut ChaCha8Rng, endpoints: usize) -> Self {
        Raise {
            endpoint: rng.random_range(0..endpoints),
            cause: Cause::ALL[rng.random_range(0..Cause::ALL.len())].code(),
            pair: rng.random(),
            info: rng.random(),
            detail: 0,
        }
    }
}

#[derive(Default)]
struct Queue {
    base: u64,
    log2: u32,
    stored: u16,
    tail: u16,
    head: u16,
    armed: Option<u16>,
    due: Option<u64>,
    /// Events accepted and not seen in memory; some of them are lost.
    accepted: VecDeque<Raise>,
    raised: u32,
    skipped: u32,
    failed: u32,
    causes: u32,
    bad_indices: u32,
}

impl Queue {
    fn size(&self) -> u16 {
        if self.base == 0 { 0 } else { 1 << self.log2 }
    }
}

struct Run {
    bench: Bench,
    rng: ChaCha8Rng,
    memory: Memory,
    write: WritePort,
    queues: Vec<Queue>,
    offers: [Option<Raise>; SOURCES.len()],
    /// What the firmware raises.
    control_raise: Option<Raise>,
    /// Events taken that the firmware hasn't been told of.
    untold: VecDeque<Raise>,
    firmwares: u64,
    source_pace: u32,
    rings: u32,
    /// A doorbell that the test itself wants next.
    bell: Option<Packed>,
    consumes: bool,
    quiet: bool,
    written: VecDeque<usize>,
    ignored: u64,
    counted_ignored: u64,
    events: u64,
    interrupts: u64,
}

impl Run {
    fn new(config: &Config, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let bench = Bench::new(&format!("events_{}", config.name));
        Run {
            bench,
            memory: Memory::default(),
            write: WritePort::new(rng.random_range(0..60), 70),
            queues: (0..config.endpoints).map(|_| Queue::default()).collect(),
            offers: [None; SOURCES.len()],
            control_raise: None,
            untold: VecDeque::new(),
            firmwares: 0,
            source_pace: 30,
            rings: 10,
            bell: None,
            consumes: true,
            quiet: false,
            written: VecDeque::new(),
            ignored: 0,
            counted_ignored: 0,
            events: 0,
            interrupts: 0,
            rng,
        }
    }

    fn set_queue(&mut self, endpoint: usize, log2: u32) -> Outcome {
        let base =
            0x3_0000_0000 * (endpoint as u64 + 1) + (self.rng.random_range(0..1000) << (5 + log2));
        let index = ring_index(endpoint as u8, RING_EVENT);
        self.control(Operation::RingSet, index, &[base, u64::from(log2)])?;
        self.queues[endpoint] = Queue {
            base,
            log2,
            ..Queue::default()
        };
        Ok(())
    }

    fn control(&mut self, operation: Operation, index: u16, data: &[u64]) -> Outcome {
        for _ in 0..100_000 {
            if self.control_raise.is_some() {
                self.tick()?;
            }
        }
        claim!(self.control_raise.is_none(), "an event is never raised");
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
            if offer.is_none() && !self.quiet && chance(&mut self.rng, self.source_pace) {
                let mut raise = Raise::random(&mut self.rng, self.queues.len());
                if source == DETAILED {
                    raise.detail = self.rng.random();
                }
                *offer = Some(raise);
            }
            self.bench.offer(name, offer.is_some());
            if let Some(raise) = offer {
                let packed = Packed::default()
                    .with(8, raise.endpoint as u64)
                    .with(8, raise.cause.into())
                    .with(16, raise.pair.into())
                    .with(64, raise.info);
                self.bench.set_packed(name, &packed);
            }
        }
        // Beside no other source than its own it says anything.
        let detail = self.offers[DETAILED].map_or(u64::MAX, |raise| raise.detail);
        self.bench.set("refusals_detail", detail);
        if self.control_raise.is_none() && !self.quiet && chance(&mut self.rng, self.source_pace) {
            // At times of an endpoint that the card doesn't have.
            let raise = Raise::random(&mut self.rng, self.queues.len() + 1);
            let setup = EventSetup {
                cause: raise.cause,
                pair: raise.pair,
                info: raise.info,
                ..Default::default()
            };
            let index = raise.endpoint as u16;
            let packed = control(Operation::EventRaise, index, &setup.to_words());
            self.bench.set_packed("control", &packed);
            self.bench.set("control_valid", 1);
            self.control_raise = Some(raise);
        }
    }

    /// An event has been taken.
    fn accept(&mut self, raise: Raise) {
        let queue = &mut self.queues[raise.endpoint];
        if queue.size() > 0 {
            queue.accepted.push_back(raise);
            queue.raised += 1;
        }
    }

    /// What the firmware is told of is the oldest event that was taken, or an index error of the block's own.
    fn hear(&mut self) -> Outcome {
        if !self.bench.is("told_valid") {
            return Ok(());
        }
        let mut packed = self.bench.packed("told");
        let told = Raise {
            endpoint: packed.take(8) as usize,
            cause: packed.take(8) as u8,
            pair: packed.take(16) as u16,
            info: packed.take(64),
            detail: self.untold.front().map_or(0, |next| next.detail),
        };
        if self.untold.front() == Some(&told) {
            self.untold.pop_front();
            return Ok(());
        }
        wrong!(
            "the firmware is told of {told:?}, and {:?} is next",
            self.untold.front()
        );
    }

    fn ring(&mut self) {
        let bell = self.bell.take();
        self.bench.set("doorbell_valid", u64::from(bell.is_some()));
        if let Some(bell) = bell {
            self.bench.set_packed("doorbell", &bell);
            return;
        }
        if !chance(&mut self.rng, self.rings) {
            return;
        }
        let endpoint = self.rng.random_range(0..self.queues.len());
        let queue = &mut self.queues[endpoint];
        if queue.size() == 0 {
            return;
        }
        let (offset, value) = match self.rng.random_range(0..10) {
            0..5 if self.consumes => {
                let seen = queue.stored.wrapping_sub(queue.head);
                queue.head = queue.head.wrapping_add(self.rng.random_range(0..=seen));
                (EVENT_HEAD, u32::from(queue.head))
            }
            5..9 => {
                let at = match chance(&mut self.rng, 10) {
                    true => self.rng.random(),
                    false => queue.head,
                };
                queue.armed = Some(at);
                queue.due = None;
                (EVENT_ARM, u32::from(at))
            }
            9 if !self.quiet => {
                self.ignored += 1;
                queue.bad_indices += 1;
                (EVENT_HEAD, self.rng.random_range(0x1_0000..=u32::MAX))
            }
            _ => return,
        };
        self.bench
            .set_packed("doorbell", &doorbell(endpoint as u8, offset, value));
        self.bench.set("doorbell_valid", 1);
    }

    fn tick(&mut self) -> Result<bool, String> {
        if self.bench.cycle().is_multiple_of(512) {
            self.source_pace = [0, 1, 5, 50][self.rng.random_range(0..4)];
            self.write.pace = pace(&mut self.rng);
        }
        self.offer();
        self.ring();
        let bench = &mut self.bench;
        self.write.drive(bench, &mut self.rng);
        bench.settle();

        let raised = bench.get("interrupts");
        for (endpoint, queue) in self.queues.iter_mut().enumerate() {
            let raised = raised >> endpoint & 1 == 1;
            let past = queue.armed.is_some_and(|at| {
                let past = queue.tail.wrapping_sub(at);
                past != 0 && past < 0x8000
            });
            // The doorbell of this cycle has not been seen by the gates.
            let rung = bench.is("doorbell_valid");
            // A write that failed wakes as well, once it is armed.
            claim!(
                !raised || past || rung || queue.failed > 0,
                "endpoint {endpoint} is woken for nothing"
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
        self.hear()?;
        for (source, name) in SOURCES.iter().enumerate() {
            if self.bench.moves(name) {
                let raise = self.offers[source].take().expect("it was offered");
                self.accept(raise);
                if Cause::from_code(raise.cause).is_some_and(Cause::is_told) {
                    self.untold.push_back(raise);
                }
            }
        }
        let mut raised = false;
        if self.control_raise.is_some() && self.bench.is("control_ready") {
            let raise = self.control_raise.take().expect("it was asked for");
            if raise.endpoint < self.queues.len() {
                self.accept(raise);
                self.firmwares += 1;
            }
            raised = true;
        }
        let bench = &mut self.bench;
        self.write.sample(bench, &mut self.rng, &mut self.memory)?;
        for address in self.write.stored.drain(..) {
            let of = |q: &Queue| {
                q.size() > 0 && address == q.base + 32 * u64::from(q.stored & (q.size() - 1))
            };
            let Some(endpoint) = self.queues.iter().position(of) else {
                wrong!("{address:#x} is the next entry of no queue");
            };
            let queue = &mut self.queues[endpoint];
            claim!(
                queue.stored.wrapping_sub(queue.head) < queue.size(),
                "entry {} of endpoint {endpoint} overwrites what is not consumed",
                queue.stored
            );
            let words: [u64; 4] = std::array::from_fn(|k| self.memory.read(address + 8 * k as u64));
            let event = Event::from_words(&words);
            let phase = phase(queue.stored, queue.log2 as u8);
            let expected = Event {
                info: event.info,
                detail: event.detail,
                cause: event.cause,
                pair: event.pair,
                phase,
                ..Default::default()
            };
            claim!(
                event == expected,
                "{event:?} should have phase {phase} and no more"
            );
            queue.stored = queue.stored.wrapping_add(1);
            queue.causes |= 1 << event.cause;
            self.written.push_back(endpoint);
            self.events += 1;
            let found = queue.accepted.iter().position(|raise| {
                (raise.cause, raise.pair) == (event.cause, event.pair)
                    && (raise.info, raise.detail) == (event.info, event.detail)
            });
            if let Some(found) = found {
                // Those before it found no room.
                queue.skipped += found as u32;
                queue.accepted.drain(..=found);
            } else {
                claim!(
                    event.cause == Cause::IndexError.code()
                        && event.pair == NO_PAIR
                        && queue.bad_indices > 0,
                    "endpoint {endpoint}: nobody raised {event:?}"
                );
            }
        }
        for (_, failed) in self.write.answered.drain(..) {
            let endpoint = self.written.pop_front().expect("it was written");
            let queue = &mut self.queues[endpoint];
            queue.failed += u32::from(failed);
            // What failed is overwritten, unless the host has found it in memory nevertheless.
            if failed && queue.head != queue.stored {
                queue.stored = queue.stored.wrapping_sub(1);
            } else {
                queue.tail = queue.tail.wrapping_add(1);
            }
            claim!(
                queue.tail == queue.stored,
                "two events of a queue are on their way"
            );
        }
        self.counted_ignored += bench.get("count_doorbell_errors");
        let done = bench.is("control_valid") && bench.is("control_ready");
        bench.step()?;
        if raised {
            bench.set("control_valid", 0);
        }
        Ok(done)
    }

    fn ticks(&mut self, count: usize) -> Outcome {
        (0..count).try_for_each(|_| self.tick().map(drop))
    }

    /// Reads an endpoint's registers: tail, sticky causes, lost.
    fn registers(&mut self, endpoint: usize) -> Result<(u16, u32, u32), String> {
        self.bench.set("read_endpoint", endpoint as u64);
        self.ticks(2)?;
        let bench = &self.bench;
        Ok((
            bench.get("event_tail") as u16,
            bench.get("sticky") as u32,
            bench.get("events_lost") as u32,
        ))
    }

    /// Waits until nothing moves, and adds up.
    fn settle(&mut self) -> Outcome {
        self.quiet = true;
        self.ticks(5_000)?;
        claim!(
            self.write.idle() && self.written.is_empty(),
            "events are left inside"
        );
        claim!(
            self.offers == [None; SOURCES.len()] && self.control_raise.is_none(),
            "an event waits for the host"
        );
        claim!(
            self.untold.is_empty(),
            "the firmware isn't told of {:?}",
            self.untold
        );
        for endpoint in 0..self.queues.len() {
            let (tail, sticky, lost) = self.registers(endpoint)?;
            let queue = &mut self.queues[endpoint];
            claim!(
                tail == queue.stored,
                "tail {tail}, and {} events in memory",
                queue.stored
            );
            let unseen = queue.skipped + queue.accepted.len() as u32;
            // Index errors fold before they are raised, so at most all of them were lost as well.
            let most = unseen + queue.bad_indices + queue.failed;
            claim!(
                (unseen + queue.failed..=most).contains(&lost),
                "endpoint {endpoint}: {lost} events lost, not {unseen} to {most}"
            );
            for raise in &queue.accepted {
                queue.causes |= 1 << raise.cause;
            }
            claim!(
                sticky & queue.causes == queue.causes,
                "sticky is {sticky:#b} after {:#b}",
                queue.causes
            );
        }
        claim!(
            self.counted_ignored == self.ignored,
            "{} doorbells ignored, {} counted",
            self.ignored,
            self.counted_ignored
        );
        self.quiet = false;
        Ok(())
    }
}

/// Events of all sources for so many cycles, then a host that doesn't read, then memory that fails for a while.
fn life(config: &Config, seed: u64, cycles: usize) -> Result<Run, String> {
    let mut run = Run::new(config, seed);
    run.quiet = true;
    for endpoint in 0..run.queues.len() {
        let log2 = run.rng.random_range(2..5);
        run.set_queue(endpoint, log2)?;
    }
    run.quiet = false;
    run.ticks(cycles)?;
    run.settle()?;
    run.consumes = false;
    run.ticks(2_000)?;
    run.settle()?;
    run.consumes = true;
    let base = run.queues[0].base;
    run.memory.broken.insert(base);
    run.ticks(5_000)?;
    run.settle()?;
    run.memory.broken.clear();
    let before = run.queues[0].tail;
    run.ticks(5_000)?;
    claim!(
        run.queues[0].tail != before,
        "no event comes after one that failed"
    );
    run.settle()?;
    Ok(run)
}

fn everything(config: &Config, seed: u64) -> Outcome {
    let run = life(config, seed, 30_000)?;
    claim!(run.events > 500, "only {} events", run.events);
    claim!(
        run.firmwares > 50,
        "only {} are the firmware's",
        run.firmwares
    );
    claim!(
        run.interrupts > 100,
        "only {} cycles with an interrupt",
        run.interrupts
    );
    Ok(())
}

/// An event whose write fails, then two whose writes don't.
fn failed_write() -> Outcome {
    let endpoint = 1;
    let mut run = Run::new(&ECP5, 7);
    (run.rings, run.quiet) = (0, true);
    run.set_queue(endpoint, 2)?;
    let base = run.queues[endpoint].base;
    let arm = |run: &mut Run, index: u16| {
        let arm = doorbell(endpoint as u8, EVENT_ARM, index.into());
        run.bench.set_packed("doorbell", &arm);
        run.bench.set("doorbell_valid", 1);
        run.bench.settle();
        run.queues[endpoint].armed = Some(index);
        run.queues[endpoint].due = None;
        run.bench.step()?;
        run.ticks(10)
    };
    let raise = |run: &mut Run, info| {
        run.offers[0] = Some(Raise {
            endpoint,
            cause: Cause::RingError.code(),
            pair: 7,
            info,
            detail: 0,
        });
        run.ticks(500)
    };
    let woken = |run: &Run| run.bench.get("interrupts") >> endpoint & 1 == 1;
    let sticky = 1 << Cause::RingError.code();
    arm(&mut run, 0)?;
    run.memory.broken.insert(base);
    raise(&mut run, 10)?;
    let registers = run.registers(endpoint)?;
    claim!(
        registers == (0, sticky, 1),
        "{registers:?} after a failed write"
    );
    claim!(woken(&run), "nobody is told to look at the sticky bits");
    // Nobody waits now; the one who then does is woken once.
    raise(&mut run, 11)?;
    arm(&mut run, 0)?;
    claim!(
        woken(&run),
        "a failure between looking and arming is forgotten"
    );
    arm(&mut run, 0)?;
    claim!(!woken(&run), "woken twice for one failure");
    run.memory.broken.clear();
    for (place, info) in [(0, 12), (1, 13)] {
        raise(&mut run, info)?;
        let words: [u64; 4] =
            std::array::from_fn(|k| run.memory.read(base + 32 * place + 8 * k as u64));
        let event = Event::from_words(&words);
        claim!(
            (event.info, event.phase) == (info, 1),
            "{event:?} at place {place}"
        );
        claim!(woken(&run), "an event doesn't wake");
    }
    let registers = run.registers(endpoint)?;
    claim!(registers == (2, sticky, 2), "{registers:?} in the end");
    Ok(())
}

/// A pair is cleared when all that was raised about it is in memory, and no later for what is about others.
fn cleared_pair() -> Outcome {
    const PAIR: u16 = 7;
    const OTHER: u16 = 9;
    let mut run = Run::new(&ECP5, 1);
    run.rings = 0;
    run.quiet = true;
    run.set_queue(1, 6)?;
    let about = |pair, info| {
        Some(Raise {
            endpoint: 1,
            cause: Cause::LinkError.code(),
            pair,
            info,
            detail: 0,
        })
    };
    let mut raised = 0_u16;
    // Behind none, one and two that are about another pair: on its way, taken, and not even taken.
    for (source, ahead) in (2..5).flat_map(|source| (0..3).map(move |ahead| (source, ahead))) {
        run.ticks(300)?;
        run.write.holds = true;
        for info in 0..ahead {
            run.offers[0] = about(OTHER, info);
            run.ticks(100)?;
        }
        run.offers[source] = about(PAIR, 100);
        run.ticks(100)?;
        raised += ahead as u16 + 1;
        run.control(Operation::PairClear, OTHER + 1, &[])?;
        run.bench
            .set_packed("control", &control(Operation::PairClear, PAIR, &[]));
        run.bench.set("control_valid", 1);
        for _ in 0..200 {
            claim!(!run.tick()?, "cleared with {ahead} events ahead of its own");
        }
        run.write.holds = false;
        let cleared = (0..5_000).any(|_| run.tick() == Ok(true));
        claim!(cleared, "the pair is never cleared");
        run.bench.set("control_valid", 0);
        let (tail, _, lost) = run.registers(1)?;
        claim!(
            (tail, lost) == (raised, 0),
            "{tail} events in memory of {raised} when the pair is cleared"
        );
        // One about another pair behind it is not waited for, nor taken for it.
        run.write.holds = true;
        run.offers[source] = about(PAIR, 101);
        run.ticks(100)?;
        run.offers[0] = about(OTHER, 102);
        run.ticks(100)?;
        raised += 2;
        run.bench.set("control_valid", 1);
        for _ in 0..200 {
            claim!(!run.tick()?, "cleared with an event on its way");
        }
        run.write.holds = false;
        let cleared = (0..5_000).any(|_| run.tick() == Ok(true));
        claim!(cleared, "the pair is never cleared");
        run.bench.set("control_valid", 0);
    }
    Ok(())
}

#[test]
fn a_pair_is_cleared_when_its_events_are_in_memory() {
    cleared_pair().unwrap_or_else(|error| panic!("{error}"));
}

/// As it broke: `EVENT_TAIL` advanced past the place, the phase never came, and a host that polls by phase saw no later event.
#[test]
fn an_event_whose_write_fails_leaves_no_hole() {
    failed_write().unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn every_event_is_in_the_queue_or_counted() {
    for_sizes(1..=4, everything);
}

#[test]
fn each_broken_contract_is_noticed() {
    breaks_by("events_ecp5", &|| {
        failed_write().unwrap_or_else(|error| panic!("{error}"));
        cleared_pair().unwrap_or_else(|error| panic!("{error}"));
        for seed in 1..=6 {
            everything(&ECP5, seed).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        }
    });
}

#[test]
#[ignore = "mutants: `cargo xtask mutants`, `cargo xtask test --long`"]
fn most_mutants_of_event_queues_are_noticed() {
    mutants("events_ecp5", 1, |_| {
        failed_write().unwrap_or_else(|error| panic!("{error}"));
        cleared_pair().unwrap_or_else(|error| panic!("{error}"));
        index_errors().unwrap_or_else(|error| panic!("{error}"));
        sticky().unwrap_or_else(|error| panic!("{error}"));
        cleaned().unwrap_or_else(|error| panic!("{error}"));
        forgets(41).unwrap_or_else(|error| panic!("{error}"));
        life(&ECP5, 1, 5_000).unwrap_or_else(|error| panic!("{error}"));
    });
}

/// An index that isn't believed is told of, to its own endpoint and with its value.
fn index_errors() -> Outcome {
    let mut run = Run::new(&ECP5, 1);
    (run.rings, run.quiet) = (0, true);
    let bad = |endpoint| 5 + endpoint as u32;
    for endpoint in 0..run.queues.len() {
        run.set_queue(endpoint, 2)?;
    }
    for endpoint in 0..run.queues.len() {
        run.bell = Some(doorbell(endpoint as u8, EVENT_HEAD, bad(endpoint)));
        run.queues[endpoint].bad_indices += 1;
        run.ignored += 1;
        run.tick()?;
    }
    run.ticks(1_000)?;
    let cause = Cause::IndexError.code();
    for endpoint in 0..run.queues.len() {
        let base = run.queues[endpoint].base;
        let words: [u64; 4] = std::array::from_fn(|k| run.memory.read(base + 8 * k as u64));
        let event = Event::from_words(&words);
        let told = (event.cause, event.pair, event.info);
        let expected = (cause, NO_PAIR, u64::from(bad(endpoint)));
        claim!(told == expected, "{told:?} is told, not {expected:?}");
        let registers = run.registers(endpoint)?;
        claim!(registers == (1, 1 << cause, 0), "{registers:?}");
    }
    Ok(())
}

#[test]
fn an_index_that_is_not_believed_is_told_of() {
    index_errors().unwrap_or_else(|error| panic!("{error}"));
}

/// The bits of causes are cleared, of this endpoint or another, in each cycle around one in which another cause occurs.
fn cleaned() -> Outcome {
    let mut run = Run::new(&ECP5, 1);
    (run.rings, run.quiet) = (0, true);
    let endpoint = 1;
    run.set_queue(endpoint, 2)?;
    let (early, late) = (Cause::RingError.code(), Cause::LinkError.code());
    for (delay, cleaned) in (0..12).flat_map(|delay| [(delay, endpoint), (delay, 0)]) {
        let raise = |cause| {
            Some(Raise {
                endpoint,
                cause,
                pair: 7,
                info: 1,
                detail: 0,
            })
        };
        run.offers[0] = raise(early);
        run.ticks(300)?;
        run.offers[0] = raise(late);
        run.ticks(delay)?;
        run.bell = Some(doorbell(cleaned as u8, STICKY, 1 << early));
        run.ticks(300)?;
        let stays = u32::from(cleaned != endpoint) << early | 1 << late;
        let (_, sticky, _) = run.registers(endpoint)?;
        claim!(
            sticky == stays,
            "sticky is {sticky:#b}, not {stays:#b}, cleared after {delay} cycles"
        );
        run.bell = Some(doorbell(endpoint as u8, STICKY, stays));
        run.ticks(2)?;
    }
    Ok(())
}

#[test]
fn a_cause_that_occurs_while_another_is_cleared_stays() {
    cleaned().unwrap_or_else(|error| panic!("{error}"));
}

/// Each cause once, in a queue with less room; then each is cleared.
fn sticky() -> Outcome {
    let mut run = Run::new(&ECP5, 1);
    run.rings = 0;
    run.quiet = true;
    run.set_queue(1, 2)?;
    for &cause in Cause::ALL {
        let endpoint = 1;
        run.offers[0] = Some(Raise {
            endpoint,
            cause: cause.code(),
            pair: 7,
            info: 1,
            detail: 0,
        });
        run.ticks(300)?;
    }
    let all = Cause::ALL
        .iter()
        .fold(0, |bits, cause| bits | 1 << cause.code());
    let (tail, sticky, lost) = run.registers(1)?;
    // The queue has four entries.
    let beyond = Cause::ALL.len() as u32 - 4;
    claim!(
        (tail, sticky, lost) == (4, all, beyond),
        "{tail} {sticky:#b} {lost}"
    );
    let mut left = all;
    for &cause in Cause::ALL {
        let bit = 1 << cause.code();
        run.bench.set_packed("doorbell", &doorbell(1, STICKY, bit));
        // `ring` takes it back in the next cycle.
        run.bench.set("doorbell_valid", 1);
        run.bench.settle();
        run.bench.step()?;
        left &= !bit;
        let (_, sticky, _) = run.registers(1)?;
        claim!(sticky == left, "sticky is {sticky:#b}, not {left:#b}");
    }
    // The causes of one endpoint are nobody else's.
    let others = run.registers(0)?;
    claim!(others == (0, 0, 0), "endpoint 0 reads {others:?}");
    Ok(())
}

#[test]
fn a_sticky_bit_stays_until_it_is_cleared() {
    sticky().unwrap_or_else(|error| panic!("{error}"));
}

/// An endpoint is cleared under load, and has another queue.
fn forgets(seed: u64) -> Outcome {
    let mut run = Run::new(&ECP5, seed);
    run.quiet = true;
    run.set_queue(0, 3)?;
    run.quiet = false;
    run.ticks(1_000)?;
    run.quiet = true;
    run.ticks(10)?;
    run.control(Operation::EndpointClear, 0, &[])?;
    let queue = &run.queues[0];
    claim!(
        queue.tail == queue.stored,
        "cleared with an event under way"
    );
    run.queues[0] = Queue::default();
    run.rings = 0;
    run.ticks(200)?;
    let read = run.registers(0)?;
    claim!(read == (0, 0, 0), "a cleared queue reads {read:?}");
    // What is raised now is dropped.
    run.offers[0] = Some(Raise {
        endpoint: 0,
        ..Raise::random(&mut run.rng, 1)
    });
    run.ticks(200)?;
    let (tail, _, lost) = run.registers(0)?;
    claim!((tail, lost) == (0, 0), "{tail} written and {lost} lost");
    run.set_queue(0, 2)?;
    run.quiet = false;
    run.rings = 10;
    run.ticks(1_000)?;
    run.settle()
}

#[test]
fn a_cleared_queue_forgets() {
    for seed in 41..45 {
        forgets(seed).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}
