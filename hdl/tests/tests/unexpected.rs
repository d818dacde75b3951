//! The unexpected messages, Verilated, against the lists of the model of the card: every answer, and how long it took.

use std::collections::{BTreeMap, BTreeSet};

use abi::limits::{MAX_CREDITS, UNIT_PLACES};
use abi::monitor::place_unit;
use abi::request::{pair_and_slot, slot_number};
use card_model::matching::{Command, Lists, Operation, Outcome, Reply, Sizes};
use hdl::config::{self, Config};
use hdl_tests::broken::{breaks, mutants};
use hdl_tests::{Bench, for_seeds};
use rand::Rng;
use rand::seq::{IndexedMutRandom, IndexedRandom, IteratorRandom, SliceRandom};
use rand_chacha::ChaCha8Rng;

/// Numbers of slots of a pair; see `slot_number`.
const SLOTS: u64 = MAX_CREDITS as u64;
/// Places of a unit.
const UNIT: u64 = UNIT_PLACES as u64;

/// A block that is tested.
#[derive(Clone, Copy)]
struct Size {
    name: &'static str,
    endpoints: u64,
    pairs: u64,
    /// Units of places.
    units: u64,
    /// Places of a row.
    comparators: u64,
}

const TINY: Size = Size::of(&config::TINY);
const ECP5: Size = Size::of(&config::ECP5);
/// Neither endpoints nor pairs nor units are a power of two, and a unit has two rows.
const ODD: Size = Size {
    name: "odd",
    endpoints: 3,
    pairs: 5,
    units: 9,
    comparators: 4,
};

impl Size {
    const fn of(config: &Config) -> Self {
        Size {
            name: config.name,
            endpoints: config.endpoints as u64,
            pairs: config.pairs as u64,
            units: config.unexpected as u64 / UNIT,
            comparators: config.comparators as u64,
        }
    }

    /// Empty lists of this size.
    fn lists(&self) -> Lists {
        let [endpoints, pairs] = [self.endpoints, self.pairs].map(|count| count as usize);
        Lists::new(Sizes {
            comparators: self.comparators as usize,
            ..Sizes::new(endpoints, pairs, 0, 0, (self.units * UNIT) as usize)
        })
    }
}

/// What a search looks for.
#[derive(Clone, Copy, Debug, Default)]
struct Key {
    endpoint: u8,
    pair: u16,
    any_source: bool,
    by_pair: bool,
    by_place: bool,
    slot: u64,
    context: u16,
    match_bits: u64,
    ignore_bits: u64,
    remove: bool,
}

impl Key {
    /// What the model is asked. A pair's messages are of one endpoint, `owner`.
    fn command(&self, owner: u8) -> Command {
        let operation = match (self.by_pair, self.by_place, self.remove) {
            (true, true, _) => Operation::Remove,
            (true, false, _) => Operation::TakeUnexpectedOfPair,
            (false, _, true) => Operation::Claim,
            (false, _, false) => Operation::Probe,
        };
        Command {
            endpoint: if self.by_pair { owner } else { self.endpoint },
            pair: self.pair,
            any_source: self.any_source,
            context: self.context,
            match_bits: self.match_bits,
            ignore_bits: self.ignore_bits,
            slot: self.slot as u8,
            ..Command::new(operation)
        }
    }
}

/// The reply to a message that no receive matches.
const NOTHING: Reply = Reply {
    found: false,
    full: false,
    index: 0,
    more: false,
};

/// Which slot a message waits in.
fn slot_of(message: &Command) -> u64 {
    slot_number(message.pair, message.slot).into()
}

/// What has happened in a test: one that hasn't seen everything has proved nothing about the rest.
#[derive(Default, Debug)]
struct Seen {
    inserted: usize,
    found: BTreeMap<&'static str, usize>,
    missing: BTreeMap<&'static str, usize>,
    removed: usize,
    full_pairs: usize,
    deepest: usize,
    most_rows: u64,
    /// Searches whose hits were in several rows.
    across_rows: usize,
}

/// The block and its reference: lists in which nothing is posted.
struct Pair {
    bench: Bench,
    size: Size,
    lists: Lists,
    /// The units of each pair.
    units: Vec<Vec<u64>>,
}

impl Pair {
    /// One whose units belong to whichever pairs.
    fn new(size: &Size, rng: &mut ChaCha8Rng) -> Self {
        let mut units = vec![vec![]; size.pairs as usize];
        let mut all: Vec<u64> = (0..size.units).collect();
        all.shuffle(rng);
        for unit in all {
            // Few pairs have several, and some have none.
            let few = rng.random_range(1..=size.pairs as usize);
            let of = units[..few].choose_mut(rng).expect("there is one");
            if of.len() < (SLOTS / UNIT) as usize {
                of.push(unit);
            }
        }
        Self::given(size, units)
    }

    /// One whose pairs have these units.
    fn given(size: &Size, units: Vec<Vec<u64>>) -> Self {
        let bench = Bench::open(&format!("unexpected_{}", size.name));
        let mut pair = Pair {
            bench,
            size: *size,
            lists: size.lists(),
            units,
        };
        pair.until_initialized();
        pair
    }

    /// A pair none of whose messages wait gives its units to another, or to nobody that is left.
    fn regroup(&mut self, rng: &mut ChaCha8Rng) {
        let pairs = 0..self.size.pairs as u16;
        let idle = pairs.filter(|&pair| self.slots_of(pair) == 0);
        let two = idle.choose_multiple(rng, 2);
        let &[from, to] = two.as_slice() else { return };
        let units = std::mem::take(&mut self.units[usize::from(from)]);
        give_unit(&mut self.bench, from.into(), 0, rng.random_range(0..8));
        for unit in units {
            let of = &mut self.units[usize::from(to)];
            if of.len() < (SLOTS / UNIT) as usize {
                of.push(unit);
                let count = of.len() as u64;
                give_unit(&mut self.bench, to.into(), count, unit);
            }
        }
    }

    /// Slots of a pair.
    fn slots(&self, pair: u16) -> u64 {
        let units = self.units.get(usize::from(pair));
        units.map_or(0, |units| units.len() as u64 * UNIT)
    }

    /// Numbers of all slots.
    fn all_slots(&self) -> Vec<u64> {
        let of_pair = |pair: u16| {
            let first = u64::from(slot_number(pair, 0));
            first..first + self.slots(pair)
        };
        (0..self.size.pairs as u16).flat_map(of_pair).collect()
    }

    /// Place of a slot.
    fn place(&self, slot: u64) -> u64 {
        let (pair, slot) = pair_and_slot(slot as u16);
        let slot = u64::from(slot);
        self.units[usize::from(pair)][(slot / UNIT) as usize] * UNIT + slot % UNIT
    }

    fn until_initialized(&mut self) {
        let mut cycles = 0;
        while !self.bench.is("initialized") {
            assert!(!self.bench.is("ready"), "nothing begins before");
            self.bench.step();
            cycles += 1;
            assert!(cycles < 1 << 12, "clears its memory");
        }
        for (pair, units) in (0..).zip(&self.units) {
            for (count, unit) in (1..).zip(units) {
                give_unit(&mut self.bench, pair, count, *unit);
            }
        }
    }

    /// Inputs of an operation, as random as it leaves them.
    fn drive(&mut self, rng: &mut ChaCha8Rng, key: &Key) {
        let bench = &mut self.bench;
        bench.set("endpoint", key.endpoint);
        bench.set("pair", key.pair);
        bench.set("any_source", key.any_source);
        bench.set("by_pair", key.by_pair);
        bench.set("by_place", key.by_place);
        bench.set("context_id", key.context);
        bench.set("match_bits", key.match_bits);
        bench.set("ignore_bits", key.ignore_bits);
        bench.set("remove", key.remove);
        let slot = match key.by_place {
            true => key.slot,
            false => rng.random_range(0..SLOTS),
        };
        bench.set("slot", slot);
    }

    /// Something else at the inputs, which are taken with the pulse only.
    fn scramble(&mut self, rng: &mut ChaCha8Rng) {
        let key = Key {
            endpoint: rng.random_range(0..2),
            pair: rng.random_range(0..8),
            any_source: rng.random(),
            by_pair: rng.random(),
            by_place: rng.random(),
            slot: rng.random_range(0..SLOTS),
            context: rng.random(),
            match_bits: rng.random(),
            ignore_bits: rng.random(),
            remove: rng.random(),
        };
        self.drive(rng, &key);
    }

    /// What can be seen between operations.
    fn look(&self) {
        assert_eq!(self.bench.get("depth"), self.depth(), "depth");
        assert_eq!(self.bench.get("waiting"), self.waiting(), "waiting");
    }

    fn depth(&self) -> u64 {
        self.lists.unexpected_depth() as u64
    }

    fn waiting(&self) -> u64 {
        let some = |&endpoint: &u64| !self.lists.waiting(endpoint as usize).is_empty();
        let endpoints = (0..self.size.endpoints).filter(some);
        endpoints.fold(0, |bits, endpoint| bits | 1 << endpoint)
    }

    /// Messages of all endpoints.
    fn messages(&self) -> impl Iterator<Item = &Command> {
        let endpoints = 0..self.size.endpoints as usize;
        endpoints.flat_map(|endpoint| self.lists.waiting(endpoint))
    }

    /// A bit for each slot of a pair in which a message waits.
    fn slots_of(&self, pair: u16) -> u64 {
        let of_pair = self.messages().filter(|message| message.pair == pair);
        of_pair.fold(0, |bits, message| bits | 1 << message.slot)
    }

    /// What the model is asked by this key.
    fn asks(&self, key: &Key) -> Command {
        let of_pair = |message: &&Command| key.by_pair && message.pair == key.pair;
        let owner = self.messages().find(of_pair);
        key.command(owner.map_or(0, |message| message.endpoint))
    }

    fn idle(&mut self, cycles: u32) {
        for _ in 0..cycles {
            self.bench.step();
            assert!(self.bench.is("ready") && !self.bench.is("done"));
            self.look();
        }
    }

    /// A message for the slot of this number, which is vacant.
    fn insert(&mut self, rng: &mut ChaCha8Rng, slot: u64, key: &Key) {
        assert!(self.bench.is("ready"));
        self.look();
        let key = Key {
            pair: (slot / SLOTS) as u16,
            ..*key
        };
        self.drive(rng, &key);
        self.bench.set("slot", slot % SLOTS);
        self.bench.set("insert", true);
        self.bench.step();
        self.bench.set("insert", false);
        let message = Command {
            endpoint: key.endpoint,
            pair: key.pair,
            slot: (slot % SLOTS) as u8,
            context: key.context,
            match_bits: key.match_bits,
            append: true,
            ..Command::new(Operation::Arrive)
        };
        assert_eq!(self.lists.act(&message, NOTHING), Ok(Outcome::Inserted));
        self.scramble(rng);
        self.bench.eval();
        self.look();
        let mut cycles = 1;
        while !self.bench.is("ready") {
            assert!(!self.bench.is("done"), "there was no search");
            self.bench.step();
            cycles += 1;
            assert!(cycles <= 5, "an insertion takes at most 5 cycles");
        }
    }

    /// A search, its answer, and what it does to the messages.
    fn search(&mut self, rng: &mut ChaCha8Rng, key: &Key) -> Option<u64> {
        assert!(self.bench.is("ready"));
        self.look();
        self.drive(rng, key);
        self.bench.set("search", true);
        self.bench.step();
        self.bench.set("search", false);
        self.scramble(rng);
        self.bench.eval();
        let rows = self.rows(key);
        let bound = match key.any_source && !key.by_pair {
            true => 6 + rows,
            false if key.by_place => 6,
            false => 5 + (self.slots(key.pair) / self.size.comparators).max(1),
        };
        let mut cycles = 1;
        while !self.bench.is("done") {
            assert!(cycles < bound, "{key:x?} takes at most {bound} cycles");
            assert!(!self.bench.is("ready"), "the search hasn't ended");
            self.bench.step();
            cycles += 1;
        }
        let command = self.asks(key);
        let reply = self.lists.decide(&command);
        let expected = reply.found.then(|| u64::from(reply.index));
        let found = self.bench.is("found").then(|| self.bench.get("index"));
        let place = expected.map(|slot| self.place(slot));
        assert_eq!(found, place, "{key:x?} finds the earliest");
        if key.remove {
            let done = self.lists.act(&command, reply);
            done.unwrap_or_else(|should| panic!("{command:x?} {should}"));
        }
        let mut cycles = 0;
        while !self.bench.is("ready") {
            self.bench.step();
            assert!(!self.bench.is("done"), "`done` is a pulse");
            cycles += 1;
            assert!(cycles <= 3, "a removal takes three cycles more");
        }
        self.look();
        expected
    }

    /// Rows that hold a message of the key's endpoint.
    fn rows(&self, key: &Key) -> u64 {
        match u64::from(key.endpoint) < self.size.endpoints {
            true => self.lists.live_rows(usize::from(key.endpoint)) as u64,
            false => 0,
        }
    }
}

/// A pair gets a unit, the last of so many.
fn give_unit(bench: &mut Bench, pair: u64, count: u64, unit: u64) {
    bench.set("unit", place_unit(pair as u16, count as u16, unit as u16));
    bench.set("unit_valid", true);
    bench.step();
    bench.set("unit_valid", false);
}

/// Each pair of `unexpected_tiny` gets the unit of its number, when the memory is cleared.
fn give_units(bench: &mut Bench) {
    while !bench.is("initialized") {
        bench.step();
    }
    for pair in 0..TINY.pairs {
        give_unit(bench, pair, 1, pair);
    }
}

/// What a test's traffic is drawn from.
struct World {
    /// Pairs and the endpoint of each; several share one.
    pairs: Vec<(u16, u8)>,
    contexts: Vec<u16>,
    match_bits: Vec<u64>,
    ignore_bits: Vec<u64>,
}

impl World {
    fn new(size: &Size, rng: &mut ChaCha8Rng) -> Self {
        let some = rng.random_range(2..=size.pairs.min(24) as usize);
        let mut pairs = (0..size.pairs as u16).choose_multiple(rng, some);
        pairs.push(size.pairs as u16 - 1);
        pairs.push(0);
        pairs.sort_unstable();
        pairs.dedup();
        let endpoint = |pair| (pair, rng.random_range(0..size.endpoints as u8));
        let pairs = pairs.into_iter().map(endpoint).collect();
        let tag = 1 << rng.random_range(0..64);
        World {
            pairs,
            contexts: vec![0, 0, 0xffff],
            match_bits: vec![0, tag, u64::MAX, !tag, 5, 6],
            ignore_bits: vec![0, 0, tag, u64::MAX, 3, 0xc0_0000_0000_0000, !tag],
        }
    }

    fn envelope(&self, rng: &mut ChaCha8Rng, endpoint: u8) -> Key {
        Key {
            endpoint,
            context: *self.contexts.choose(rng).expect("it isn't empty"),
            match_bits: *self.match_bits.choose(rng).expect("it isn't empty"),
            // A message has none; whatever is there must not matter.
            ignore_bits: rng.random(),
            any_source: rng.random(),
            by_pair: rng.random(),
            remove: rng.random(),
            ..Key::default()
        }
    }

    /// `slots` says how many a pair has.
    fn receive(&self, rng: &mut ChaCha8Rng, slots: impl Fn(u16) -> u64) -> (&'static str, Key) {
        let &(pair, owner) = self.pairs.choose(rng).expect("it isn't empty");
        let key = Key {
            endpoint: owner,
            pair,
            any_source: false,
            by_pair: false,
            by_place: false,
            ignore_bits: *self.ignore_bits.choose(rng).expect("it isn't empty"),
            remove: rng.random_bool(0.7),
            ..self.envelope(rng, owner)
        };
        match rng.random_range(0..11) {
            0..4 => ("of a source", key),
            4..8 => (
                "of any source",
                Key {
                    any_source: true,
                    pair: rng.random(),
                    ..key
                },
            ),
            8 => (
                "by pair",
                Key {
                    by_pair: true,
                    any_source: rng.random(),
                    endpoint: rng.random(),
                    ..key
                },
            ),
            9 if slots(pair) > 0 => (
                "at a place",
                Key {
                    by_pair: true,
                    by_place: true,
                    slot: rng.random_range(0..slots(pair)),
                    any_source: rng.random(),
                    endpoint: rng.random(),
                    ..key
                },
            ),
            _ => (
                "of another endpoint",
                Key {
                    endpoint: self.pairs.choose(rng).expect("it isn't empty").1,
                    ..key
                },
            ),
        }
    }
}

/// Insertions and searches; how many of which changes, so that the memory fills up and empties.
fn mixed(size: &Size, rng: &mut ChaCha8Rng, operations: u32) -> Seen {
    let mut pair = Pair::new(size, rng);
    let mut seen = Seen::default();
    let world = World::new(size, rng);
    let mut filling = 0.5;
    for _ in 0..operations {
        if rng.random_bool(0.01) {
            pair.regroup(rng);
        }
        if rng.random_bool(0.01) {
            filling = [0.2, 0.5, 0.6, 1.0][rng.random_range(0..4)];
        }
        if rng.random_bool(0.1) {
            let cycles = rng.random_range(1..4);
            pair.idle(cycles);
        }
        if rng.random_bool(filling) {
            let &(source, endpoint) = world.pairs.choose(rng).expect("it isn't empty");
            let first = u64::from(source) * SLOTS;
            let used = pair.slots_of(source);
            let vacant = |slot: &u64| used >> (slot % SLOTS) & 1 == 0;
            let mut all = first..first + pair.slots(source);
            // As a rule the lowest, as Delivery does.
            let slot = match rng.random_bool(0.8) {
                true => all.find(vacant),
                false => all.filter(vacant).choose(rng),
            };
            let Some(slot) = slot else {
                seen.full_pairs += 1;
                continue;
            };
            let key = world.envelope(rng, endpoint);
            pair.insert(rng, slot, &key);
            seen.inserted += 1;
        } else {
            let (kind, key) = world.receive(rng, |source| pair.slots(source));
            let command = pair.asks(&key);
            let hit = |m: &&Command| match key.by_pair {
                true => m.pair == key.pair && (!key.by_place || u64::from(m.slot) == key.slot),
                false => command.matches(m),
            };
            let rows = pair.messages().filter(hit).map(slot_of);
            let rows: BTreeSet<u64> = rows.map(|slot| slot / size.comparators).collect();
            seen.across_rows += usize::from(rows.len() > 1);
            if key.any_source && !key.by_pair {
                seen.most_rows = seen.most_rows.max(pair.rows(&key));
            }
            match pair.search(rng, &key) {
                Some(_) => *seen.found.entry(kind).or_default() += 1,
                None => *seen.missing.entry(kind).or_default() += 1,
            }
            seen.removed += usize::from(key.remove);
        }
        seen.deepest = seen.deepest.max(pair.lists.unexpected_depth());
    }
    // Whatever is left comes out one by one, the earliest first.
    for (source, _) in world.pairs {
        let key = Key {
            pair: source,
            by_pair: true,
            remove: true,
            ..Key::default()
        };
        while pair.search(rng, &key).is_some() {}
        *seen.missing.entry("by pair").or_default() += 1;
    }
    assert_eq!(pair.depth(), 0);
    pair.idle(2);
    seen
}

fn every_answer(size: &Size) {
    for_seeds(6, |rng| {
        let seen = mixed(size, rng, 6000);
        assert!(seen.inserted > 100 && seen.removed > 100, "{seen:?}");
        for kind in ["of a source", "of any source", "by pair"] {
            assert!(seen.found.get(kind) > Some(&20), "{kind}: {seen:?}");
            assert!(seen.missing.get(kind) > Some(&0), "{kind}: {seen:?}");
        }
        assert!(
            seen.missing.get("of another endpoint") > Some(&20),
            "{seen:?}"
        );
        assert!(seen.across_rows > 20 && seen.most_rows > 1, "{seen:?}");
    });
}

#[test]
fn every_search_finds_what_a_vector_would_tiny() {
    every_answer(&TINY);
}

#[test]
fn every_search_finds_what_a_vector_would_ecp5() {
    every_answer(&ECP5);
}

#[test]
fn every_search_finds_what_a_vector_would_odd() {
    every_answer(&ODD);
}

/// Every slot of the card filled, in random order.
fn filled(size: &Size, rng: &mut ChaCha8Rng) -> Pair {
    let mut pair = Pair::new(size, rng);
    let mut all = pair.all_slots();
    all.shuffle(rng);
    for slot in all {
        let key = Key {
            endpoint: (slot / SLOTS % size.endpoints) as u8,
            match_bits: slot,
            ..Key::default()
        };
        pair.insert(rng, slot, &key);
    }
    pair
}

fn a_full_memory(size: &Size) {
    for_seeds(1, |rng| {
        let mut pair = filled(size, rng);
        let all = pair.all_slots();
        assert_eq!(pair.bench.get("depth"), all.len() as u64);
        for remove in [false, true] {
            for &slot in all.choose_multiple(rng, 200.min(all.len())) {
                let key = Key {
                    endpoint: (slot / SLOTS % size.endpoints) as u8,
                    any_source: true,
                    match_bits: slot,
                    remove,
                    ..Key::default()
                };
                assert_eq!(pair.search(rng, &key), Some(slot), "each is found alone");
            }
        }
        // What is left of each endpoint comes out in the order of arrival.
        for endpoint in 0..size.endpoints as u8 {
            let key = Key {
                endpoint,
                any_source: true,
                ignore_bits: u64::MAX,
                remove: true,
                ..Key::default()
            };
            while pair.search(rng, &key).is_some() {}
        }
        assert_eq!(pair.bench.get("depth"), 0);
    });
}

#[test]
fn a_full_memory_is_searched_and_emptied_tiny() {
    a_full_memory(&TINY);
}

#[test]
fn a_full_memory_is_searched_and_emptied_ecp5() {
    a_full_memory(&ECP5);
}

#[test]
fn a_full_memory_is_searched_and_emptied_odd() {
    a_full_memory(&ODD);
}

#[test]
fn reset_forgets_every_message() {
    for_seeds(1, |rng| {
        let mut pair = filled(&TINY, rng);
        pair.bench.set("reset", true);
        pair.bench.step();
        pair.bench.set("reset", false);
        pair.lists = TINY.lists();
        pair.bench.eval();
        pair.until_initialized();
        pair.look();
        for endpoint in 0..2 {
            let key = Key {
                endpoint,
                any_source: true,
                ignore_bits: u64::MAX,
                ..Key::default()
            };
            assert_eq!(pair.search(rng, &key), None);
        }
        let slot = pair.all_slots()[3];
        pair.insert(rng, slot, &Key::default());
        pair.search(
            rng,
            &Key {
                any_source: true,
                remove: true,
                ..Key::default()
            },
        );
    });
}

/// The arrival order of two rows and places decides, not their numbers.
#[test]
fn the_earliest_wins_wherever_it_is() {
    for_seeds(1, |rng| {
        // The first of two units isn't the lower one.
        let mut units = vec![vec![]; TINY.pairs as usize];
        units[0] = vec![5, 2];
        let mut pair = Pair::given(&TINY, units);
        for _ in 0..200 {
            let slots = (0..pair.slots(0)).choose_multiple(rng, 3);
            for &slot in &slots {
                pair.insert(rng, slot, &Key::default());
            }
            for &slot in &slots {
                let key = Key {
                    any_source: rng.random(),
                    remove: true,
                    ..Key::default()
                };
                assert_eq!(pair.search(rng, &key), Some(slot));
            }
        }
    });
}

#[test]
fn each_broken_contract_is_noticed() {
    breaks("unexpected_tiny", 1, |rng| {
        mixed(&TINY, rng, 6000);
    });
}

#[test]
#[ignore = "mutants: `cargo xtask mutants`, `cargo xtask test --long`"]
fn the_comparison_notices_most_mutants() {
    mutants("unexpected_tiny", 1, |rng| {
        mixed(&TINY, rng, 3000);
    });
}

/// An operation on messages of endpoint 0 that are all alike.
#[derive(Clone, Copy, Debug)]
enum Do {
    /// A message for the slot of this number.
    Insert(u64),
    /// The earliest is removed.
    TakeAny,
    /// The earliest of this pair is removed.
    TakeOf(u64),
}
use Do::{Insert, TakeAny, TakeOf};

/// Whether a check in the gates fails, whatever is answered.
fn check_fails(mut bench: Bench, operations: &[Do]) -> bool {
    bench.set("remove", true);
    give_units(&mut bench);
    for operation in operations {
        let (pulse, slot) = match *operation {
            Insert(slot) => ("insert", slot),
            TakeAny => ("search", 0),
            TakeOf(pair) => ("search", pair * SLOTS),
        };
        bench.set("any_source", matches!(operation, TakeAny));
        bench.set("pair", slot / SLOTS);
        bench.set("slot", slot % SLOTS);
        bench.set(pulse, true);
        bench.model.step();
        bench.set(pulse, false);
        bench.model.steps(12);
    }
    bench.model.got_error().is_err()
}

#[test]
fn checks_in_the_gates_notice_what_is_theirs() {
    for (name, operations) in [
        (
            "stay_linked",
            vec![Insert(0), Insert(SLOTS), TakeAny, TakeAny],
        ),
        ("unlink_early", vec![Insert(0), Insert(1), TakeAny]),
        (
            "match_unexpected_twice",
            vec![Insert(0), Insert(1), TakeAny, TakeAny],
        ),
        (
            "keep_back_link",
            vec![
                Insert(0),
                Insert(SLOTS),
                Insert(2 * SLOTS),
                TakeOf(1),
                TakeAny,
            ],
        ),
        ("find_removed_messages", vec![Insert(0), TakeAny, TakeOf(0)]),
    ] {
        assert!(
            !check_fails(Bench::open("unexpected_tiny"), &operations),
            "{operations:?} is sound"
        );
        assert!(
            check_fails(Bench::broken("unexpected_tiny", name), &operations),
            "{name} goes unnoticed"
        );
    }
}

/// Whether some check fails if the user does this with a block that has a message in slot 0.
fn misuse(does: impl Fn(&mut Bench)) -> bool {
    let mut bench = Bench::open("unexpected_tiny");
    give_units(&mut bench);
    bench.set("insert", true);
    bench.step();
    bench.set("insert", false);
    bench.model.steps(4);
    does(&mut bench);
    bench.model.steps(8);
    bench.model.got_error().is_err()
}

#[test]
fn checks_in_the_gates_notice_misuse() {
    let insert = |bench: &mut Bench, slot: u64| {
        bench.set("pair", slot / SLOTS);
        bench.set("slot", slot % SLOTS);
        bench.set("insert", true);
        bench.model.step();
        bench.set("insert", false);
    };
    assert!(!misuse(|bench| insert(bench, 1)), "another slot is free");
    assert!(misuse(|bench| insert(bench, 0)), "the slot is taken");
    assert!(
        misuse(|bench| insert(bench, UNIT)),
        "the pair has no such slot"
    );
    assert!(misuse(|bench| insert(bench, 8 * SLOTS)), "no such pair");
    assert!(
        misuse(|bench| {
            bench.set("endpoint", 2u64);
            insert(bench, 1);
        }),
        "no such endpoint"
    );
    assert!(
        misuse(|bench| {
            insert(bench, 1);
            insert(bench, 2);
        }),
        "it isn't ready"
    );
    assert!(
        misuse(|bench| {
            bench.set("search", true);
            insert(bench, 1);
        }),
        "two operations at once"
    );
}
