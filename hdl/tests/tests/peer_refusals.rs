//! What is refused to peers is told to their hosts: all of it, seldom, and each of them in its turn.

use std::collections::BTreeMap;

use abi::control::{Operation, PairSetup, RefusalReason};
use abi::event::{Cause, PeerRefusal};
use abi::times::REFUSAL_INTERVAL;
use hdl::config::TINY;
use hdl_tests::broken::{breaks, mutants};
use hdl_tests::fields::{pack, unpack};
use hdl_tests::{Bench, for_seeds};
use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;

/// Cycles after which a refusal is kept.
const SOON: u64 = 24;
/// Cycles in which every pair has its turn, beside refusals that are as close together as they may be.
const ROUND: u64 = 12 * TINY.pairs as u64;

/// What is kept for a connected pair: its endpoint, and all that was refused since its last event, with the cycle.
type Connected = BTreeMap<u16, (u8, Vec<(u64, PeerRefusal)>)>;

struct Run {
    bench: Bench,
    cycle: u64,
    connected: Connected,
    /// Cycle of the last event, and the last one's pair, which is offered until it is taken.
    last: Option<u64>,
    offered: Option<[u64; 3]>,
    /// Cycle in which it was taken.
    taken: u64,
    events: BTreeMap<u16, u32>,
    /// Cycle of each pair's last event.
    told: BTreeMap<u16, u64>,
    /// Most refusals that an event told of.
    most: u16,
}

impl Run {
    fn new() -> Self {
        let mut bench = Bench::open("peer_refusals");
        for _ in 0..TINY.pairs + 2 {
            bench.step();
        }
        assert!(bench.is("initialized"));
        Self {
            bench,
            cycle: 0,
            connected: BTreeMap::new(),
            last: None,
            offered: None,
            taken: 0,
            events: BTreeMap::new(),
            told: BTreeMap::new(),
            most: 0,
        }
    }

    /// One cycle, with a refusal perhaps.
    fn cycle(&mut self, refused: Option<(u16, PeerRefusal)>, ready: bool) {
        self.bench.set("refused_valid", refused.is_some());
        if let Some((pair, refusal)) = refused {
            let fields = [
                (pair.into(), 16),
                (refusal.reason.code().into(), 8),
                (refusal.region.into(), 32),
                (refusal.offset, 64),
            ];
            self.bench.set_wide("refused", &pack(&fields));
        }
        self.bench.set("raise_ready", ready);
        self.bench.eval();
        if self.bench.is("raise_valid") {
            let [low, high] = self.bench.get_wide("raise");
            let event = [low, high, self.bench.get("offset")];
            match self.offered {
                Some(before) => assert_eq!(event, before, "it stays as it was"),
                None => self.look_at(event),
            }
            self.offered = Some(event).filter(|_| !ready);
            self.taken = self.cycle;
        } else {
            assert!(self.offered.is_none(), "an event isn't withdrawn");
        }
        if let Some((pair, refusal)) = refused
            && let Some((_, all)) = self.connected.get_mut(&pair)
        {
            all.push((self.cycle, refusal));
        }
        // Who has something to tell does so in its turn.
        let rested = self
            .rested_for()
            .is_none_or(|rested| rested > ROUND * 2 + SOON);
        let mut old = self.connected.values().filter_map(|(_, all)| all.first());
        let waits = old.any(|(since, _)| since + ROUND * 2 + SOON < self.cycle);
        assert!(
            !waits || !rested || self.offered.is_some(),
            "cycle {}: something isn't told",
            self.cycle
        );
        self.bench.step();
        self.cycle += 1;
    }

    /// Cycles since the next event may come; none if there was none.
    fn rested_for(&self) -> Option<u64> {
        self.last.map(|last| {
            let from = self.taken.max(last + u64::from(REFUSAL_INTERVAL));
            self.cycle.saturating_sub(from)
        })
    }

    /// An event: what was refused last to a peer, but for what has just come.
    fn look_at(&mut self, event: [u64; 3]) {
        let [low, high, offset] = event;
        let [endpoint, cause, pair, info] = unpack(&[low, high], [8, 8, 16, 64]);
        let cycle = self.cycle;
        if let Some(last) = self.last {
            assert!(cycle - last >= u64::from(REFUSAL_INTERVAL), "cycle {cycle}");
        }
        self.last = Some(cycle);
        assert_eq!(cause, u64::from(Cause::PeerRefused.code()));
        let pair = pair as u16;
        let told = PeerRefusal::from_words(info, offset).expect("a reason");
        let (own, all) = self.connected.get_mut(&pair).expect("a pair that is there");
        assert_eq!(u64::from(*own), endpoint);
        // As many of the oldest, and all but those that have just come.
        let count = match usize::from(told.count) {
            0xffff => all
                .partition_point(|(since, _)| since + SOON < cycle)
                .max(0xffff),
            count => count,
        };
        assert!((1..=all.len()).contains(&count), "{count} of {}", all.len());
        let (_, last) = all[count - 1];
        let wanted = PeerRefusal {
            count: told.count,
            ..last
        };
        let saturated = told.count == 0xffff;
        assert!(saturated || told == wanted, "{told:x?}, not {wanted:x?}");
        let rest = all.split_off(count);
        assert!(
            rest.iter().all(|(since, _)| since + SOON >= cycle),
            "all are counted"
        );
        *all = rest;
        // Between two events about a pair each other has its turn.
        if let Some(before) = self.told.insert(pair, cycle) {
            let mut others = self.connected.iter().filter(|(other, _)| **other != pair);
            let missed = others
                .find(|(_, (_, all))| all.first().is_some_and(|(since, _)| since + SOON < before));
            assert!(missed.is_none(), "pair {pair} has two turns");
        }
        *self.events.entry(pair).or_default() += 1;
        self.most = self.most.max(told.count);
    }

    /// A request, done at the end.
    fn control(&mut self, operation: Operation, pair: u16, endpoint: u8) {
        let setup = PairSetup {
            endpoint,
            ..PairSetup::default()
        };
        let mut fields = vec![(operation.code().into(), 8), (pair.into(), 16)];
        fields.extend(setup.to_words().map(|word| (word, 64)));
        self.bench.set_wide("control", &pack(&fields));
        self.bench.set("control_valid", true);
        for waited in 0.. {
            self.bench.set("refused_valid", false);
            self.bench.eval();
            let done = self.bench.is("control_ready");
            // An event of the pair has left by then.
            let takes = waited > 3;
            self.cycle(None, takes);
            if done {
                break;
            }
            assert!(waited < 20, "{operation} is done");
        }
        self.bench.set("control_valid", false);
        if usize::from(pair) < TINY.pairs {
            match operation {
                Operation::PairSet => {
                    self.told.remove(&pair);
                    self.connected.insert(pair, (endpoint, Vec::new()));
                }
                _ => {
                    self.connected.remove(&pair);
                    let [low, ..] = self.offered.unwrap_or([u64::MAX; 3]);
                    assert_ne!((low >> 16) as u16, pair, "it is told of no more");
                }
            }
        }
    }
}

fn refusal(rng: &mut ChaCha8Rng) -> PeerRefusal {
    PeerRefusal {
        region: rng.random(),
        offset: rng.random(),
        reason: *RefusalReason::ALL.choose(rng).expect("there is one"),
        count: 0,
    }
}

/// Random refusals to few and to many peers, as close together as they may be, while pairs come and go and the host's queue takes its time.
fn refuses(rng: &mut ChaCha8Rng) {
    let mut run = Run::new();
    let pairs = TINY.pairs as u16;
    for pair in 0..pairs {
        run.control(Operation::PairSet, pair, rng.random_range(0..2));
    }
    let (mut next, mut takes) = (0, 0);
    for _ in 0..4 {
        let rate = rng.random_range(0.0..0.25);
        let first = match rng.random() {
            true => 0,
            false => rng.random_range(0..pairs),
        };
        let busy = run.cycle + rng.random_range(0..4 * u64::from(REFUSAL_INTERVAL));
        let end = run.cycle + u64::from(REFUSAL_INTERVAL) * 4;
        while run.cycle < end {
            let changes = match run.offered {
                Some(_) => 0.002,
                None => 0.00005,
            };
            if rng.random_bool(changes) {
                // Often the one that the event on its way is about.
                let pair = match run.offered {
                    Some([low, ..]) if rng.random_bool(0.7) => (low >> 16) as u16,
                    _ => rng.random_range(0..pairs + 2),
                };
                let operation = match rng.random_bool(0.6) {
                    true => Operation::PairSet,
                    false => Operation::PairClear,
                };
                // A pair is cleared before its place has the next.
                run.control(Operation::PairClear, pair, 0);
                run.control(operation, pair, rng.random_range(0..2));
                next = run.cycle + 4;
            }
            let refused = run.cycle >= next && run.cycle < busy && rng.random_bool(rate);
            let refused = refused.then(|| {
                next = run.cycle + 4;
                let pair = match rng.random_bool(0.8) {
                    true => first,
                    false => rng.random_range(0..pairs),
                };
                (pair, refusal(rng))
            });
            takes = match rng.random_bool(0.01) {
                true => rng.random_range(0..3),
                false => takes,
            };
            let ready = takes > 0 && rng.random_bool(0.3);
            run.cycle(refused, ready);
        }
    }
    assert!(run.events.values().sum::<u32>() > 3, "{:?}", run.events);
}

#[test]
fn each_peer_has_its_turn_and_its_event_tells_of_all_that_was_refused_since_the_last() {
    for_seeds(6, refuses);
}

#[test]
fn a_peer_that_floods_holds_up_no_other() {
    let mut run = Run::new();
    (0..2).for_each(|pair| run.control(Operation::PairSet, pair, 0));
    let refusal = PeerRefusal {
        region: 3,
        offset: 8,
        reason: RefusalReason::WrongTag,
        count: 0,
    };
    let cycles = 20 * u64::from(REFUSAL_INTERVAL);
    while run.cycle < cycles {
        // One of the other peer in each interval.
        let other = run.cycle.is_multiple_of(u64::from(REFUSAL_INTERVAL));
        let pair = u16::from(other);
        let refused = run.cycle.is_multiple_of(4);
        run.cycle(refused.then_some((pair, refusal)), true);
    }
    assert!(
        run.events[&1] >= 9 && run.events[&0] >= 9,
        "{:?}",
        run.events
    );
    assert!(run.most > 4096);
}

#[test]
fn a_count_ends_at_its_largest_number() {
    let mut run = Run::new();
    (0..2).for_each(|pair| run.control(Operation::PairSet, pair, 0));
    let refusal = PeerRefusal {
        region: 3,
        offset: 8,
        reason: RefusalReason::WrongTag,
        count: 0,
    };
    // An event that nobody takes holds the next one back.
    run.cycle(Some((0, refusal)), false);
    for _ in 0..0x1_0004 * 4 {
        let refused = run.cycle.is_multiple_of(4);
        run.cycle(refused.then_some((1, refusal)), false);
    }
    for _ in 0..200 {
        run.cycle(None, true);
    }
    assert_eq!(run.most, 0xffff);
}

#[test]
fn each_broken_contract_is_noticed() {
    breaks("peer_refusals", 4, refuses);
}

#[test]
#[ignore = "mutants: `cargo xtask mutants`, `cargo xtask test --long`"]
fn most_mutants_are_noticed() {
    mutants("peer_refusals", 4, refuses);
}
