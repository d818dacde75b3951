//! The crossing between the card's clock and the processor's, at any ratio, against a model of what both sides see of each other.

use std::cell::Cell;
use std::collections::VecDeque;

use hdl_tests::broken::{breaks, mutants};
use hdl_tests::clocks::Clocks;
use hdl_tests::fields::{pack, unpack};
use hdl_tests::{Bench, for_seeds, rate};
use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;

const TOP: &str = "mgmt_clock_bridge";
const CLOCKS: [&str; 2] = ["clock", "processor_clock"];
/// Edges of each clock within which whatever may happen has happened, the answer of a load included.
const SETTLED: u64 = 50;
/// Cycles that the card takes at most to answer a load.
const SLOWEST: u64 = 12;
/// Edges of who reads until a word or an access that was taken is late.
const LATE: u64 = 8;

/// A load or a store: offset, whether it is a store, data.
type Access = [u64; 3];

/// A value and since when it is that, in edges of both clocks.
struct Steady<T> {
    value: T,
    edges: [u64; 2],
}

impl<T: PartialEq> Steady<T> {
    fn new(value: T) -> Self {
        Steady {
            value,
            edges: [0; 2],
        }
    }

    fn set(&mut self, value: T) {
        if value != self.value {
            *self = Self::new(value);
        }
    }

    fn pass(&mut self, rising: [bool; 2]) {
        for (edges, rises) in self.edges.iter_mut().zip(rising) {
            *edges += u64::from(rises);
        }
    }

    fn is_old(&self) -> bool {
        self.edges.iter().all(|edges| *edges > SETTLED)
    }
}

/// What the processor has under way.
#[derive(Default)]
struct Load {
    /// A load waits for its answer.
    waits: bool,
    /// It has reached the card.
    reached: bool,
    /// What the card answered.
    answer: Option<u64>,
}

/// Both sides of the bridge, and what they know.
struct Sides {
    bench: Bench,
    clocks: Clocks,
    // The card's side.
    run: Steady<bool>,
    reset: Steady<bool>,
    interrupts: Steady<[bool; 2]>,
    /// Interrupts in each cycle since that of the last answer, with it.
    since_answer: Vec<[bool; 2]>,
    offered_word: Option<[u64; 2]>,
    /// Cycles until the load that the card has is answered.
    answers_in: Option<u64>,
    answers: Option<u64>,
    was_running: bool,
    /// The processor hasn't seen the last start yet.
    starting: bool,
    // Under way.
    words: VecDeque<[u64; 2]>,
    accesses: VecDeque<Access>,
    /// Edges of the card, and of the processor, since one of the accesses, and of the words, has arrived.
    idle: [u64; 2],
    load: Load,
    // The processor's side.
    offered_access: Option<Access>,
    /// Accesses that follow each other without a pause.
    burst: u64,
    was_started: bool,
    /// The processor's side was in reset since the last reset began, or the one before isn't over.
    was_reset: bool,
    /// The bridge is in reset as far as the card knows.
    shut: Steady<bool>,
    counts: Counts,
}

/// What has happened, so that a test sees that something has.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    words: u64,
    stores: u64,
    loads: u64,
    answers: u64,
    starts: u64,
    resets: u64,
}

impl Counts {
    fn all(self) -> [u64; 6] {
        [
            self.words,
            self.stores,
            self.loads,
            self.answers,
            self.starts,
            self.resets,
        ]
    }
}

impl Sides {
    fn new(clocks: Clocks) -> Self {
        Sides {
            bench: Bench::open_cold(TOP),
            clocks,
            run: Steady::new(false),
            reset: Steady::new(false),
            interrupts: Steady::new([false; 2]),
            since_answer: vec![],
            offered_word: None,
            answers_in: None,
            answers: None,
            was_running: false,
            starting: false,
            words: VecDeque::new(),
            accesses: VecDeque::new(),
            idle: [0; 2],
            load: Load::default(),
            offered_access: None,
            burst: 0,
            was_started: false,
            was_reset: true,
            shut: Steady::new(true),
            counts: Counts::default(),
        }
    }

    /// Looks at what the card sees in the cycle that ends.
    fn card_looks(&mut self, rng: &mut ChaCha8Rng) {
        let bench = &self.bench;
        let running = bench.is("running");
        assert!(!running || self.run.value, "it runs though it may not");
        assert!(!running || !self.reset.value, "it runs in reset");
        if running && !self.was_running {
            assert!(!self.starting && !self.was_started, "a stop is forgotten");
            assert!(
                self.words.is_empty(),
                "it starts before its program is there"
            );
            self.starting = true;
            // What the old program had under way is over.
            self.accesses.clear();
        }
        if self.run.value && self.run.is_old() && self.shut.is_old() && !self.shut.value {
            assert!(running, "it doesn't start");
        }
        self.was_running = running;

        // Which interrupts may come with the answer: those of its cycle, or later ones.
        if self.answers.is_some() {
            self.since_answer.clear();
        }
        self.since_answer.push(self.interrupts.value);

        let room = bench.is("loader_ready");
        if self.shut.value && room && !self.reset.value {
            assert!(self.was_reset, "the processor's side wasn't reset");
            self.shut.set(false);
            // Nothing of before is left.
            self.words.clear();
            self.accesses.clear();
            self.load = Load::default();
            self.starting = false;
        }
        assert!(!room || !self.shut.value, "a word is taken in reset");
        if self.shut.value {
            assert!(!running && !bench.is("access_valid"), "in reset");
        }
        assert!(!self.shut.value || !self.shut.is_old(), "reset for ever");
        if room && let Some(word) = self.offered_word.take() {
            self.words.push_back(word);
        }

        let stuck = running && !self.accesses.is_empty();
        self.idle[0] = if stuck { self.idle[0] + 1 } else { 0 };
        assert!(self.idle[0] < LATE, "accesses are stuck");

        // The registers: loads are answered after some cycles.
        self.answers_in = self.answers_in.map(|cycles| cycles.saturating_sub(1));
        if bench.is("access_valid") {
            assert!(running, "an access of a processor that is stopped");
            let access: [u64; 1] = bench.get_wide("access");
            let access = unpack(&access, [12, 1, 32]);
            assert_eq!(Some(access), self.accesses.pop_front());
            self.idle[0] = 0;
            if access[1] == 0 {
                self.answers_in = Some(rng.random_range(1..=SLOWEST));
                self.load.reached = true;
                self.counts.loads += 1;
            } else {
                self.counts.stores += 1;
            }
        }
    }

    /// Looks at what the processor sees in the cycle that ends.
    fn processor_looks(&mut self) {
        let bench = &self.bench;
        let started = bench.is("processor_run");
        if bench.is("processor_reset") {
            assert!(!started, "it runs in reset");
            self.was_reset = true;
            self.was_started = false;
            self.idle[1] = 0;
            return;
        }
        if started && !self.was_started {
            self.starting = false;
            self.counts.starts += 1;
            // An old load was answered, or never came to the card.
            let over = !self.load.reached || self.load.answer.is_some();
            assert!(over, "it starts while an old load waits");
            self.load = Load::default();
        }
        self.was_started = started;
        let open = !self.shut.value && self.shut.is_old();
        if self.run.is_old() && open {
            assert_eq!(started, self.run.value, "it follows `run`");
        }
        if self.interrupts.is_old() {
            let seen = self.seen_interrupts();
            assert_eq!(seen, self.interrupts.value, "interrupts");
        }

        if self.bench.is("processor_loader_valid") {
            assert!(!started, "a word is loaded while the processor runs");
            let word: [u64; 1] = self.bench.get_wide("processor_loader");
            let wanted = self.words.pop_front();
            assert_eq!(Some(unpack(&word, [32, 32])), wanted);
            self.counts.words += 1;
            self.idle[1] = 0;
        }
        let stuck = !started && !self.words.is_empty();
        self.idle[1] = if stuck { self.idle[1] + 1 } else { 0 };
        assert!(self.idle[1] < LATE, "words are stuck");
        if self.bench.is("processor_answer_valid") {
            assert!(started, "an answer for a processor that is held");
            assert!(self.load.waits, "an answer that nobody waits for");
            // A load that came when the processor was stopped is answered with 0.
            let wanted = self.load.answer.unwrap_or_else(|| {
                let turned_away = !self.load.reached && !self.was_running;
                assert!(turned_away, "the card hasn't answered");
                0
            });
            assert_eq!(self.bench.get("processor_answer"), wanted);
            if self.load.answer.is_some() {
                let seen = self.seen_interrupts();
                assert!(self.since_answer.contains(&seen), "older than the answer");
            }
            self.load = Load::default();
            self.counts.answers += 1;
        }
        let ready = self.bench.is("processor_access_ready");
        assert!(started || !ready, "it takes an access of a held processor");
        if ready && let Some(access) = self.offered_access.take() {
            assert!(!self.load.waits, "an access while a load waits");
            self.accesses.push_back(access);
            self.load.waits = access[1] == 0;
        }
    }

    fn seen_interrupts(&self) -> [bool; 2] {
        ["timer", "external"].map(|name| self.bench.is(&format!("processor_{name}_interrupt")))
    }

    /// The next edges, of one clock or of both.
    fn edge(&mut self, rng: &mut ChaCha8Rng) -> [bool; 2] {
        self.bench.eval();
        let rising = self.clocks.rising(rng);
        if rising[0] {
            self.card_looks(rng);
        }
        if rising[1] {
            self.processor_looks();
        }
        self.run.pass(rising);
        self.reset.pass(rising);
        self.interrupts.pass(rising);
        self.shut.pass(rising);
        self.clocks.rise(&mut self.bench, rising);
        rising
    }

    /// What the card drives from an edge on.
    fn card_drives(&mut self, rng: &mut ChaCha8Rng) {
        let bench = &mut self.bench;
        bench.set("run", self.run.value);
        bench.set("reset", self.reset.value);
        bench.set("timer_interrupt", self.interrupts.value[0]);
        bench.set("external_interrupt", self.interrupts.value[1]);
        bench.set("loader_valid", self.offered_word.is_some());
        let word = self.offered_word.unwrap_or_else(|| [rng.random(), 0]);
        bench.set_wide("loader", &pack(&[(word[0], 32), (word[1], 32)]));
        self.answers = None;
        if self.answers_in == Some(0) {
            self.answers_in = None;
            self.answers = Some(rng.random_range(1..1 << 32));
            self.load.answer = self.answers;
        }
        bench.set("answer_valid", self.answers.is_some());
        bench.set("answer", self.answers.unwrap_or_else(|| rng.random()));
        if self.reset.value {
            // A reset forgets what the registers were about to answer.
            self.answers_in = None;
            self.was_reset &= self.shut.value && self.bench.is("processor_reset");
            self.shut = Steady::new(true);
        }
    }

    /// What the processor drives from an edge on.
    fn processor_drives(&mut self, busy: f64, stores: f64, rng: &mut ChaCha8Rng) {
        if !self.bench.is("processor_run") {
            self.offered_access = None;
            self.burst = 0;
        } else if self.burst == 0 && rng.random_bool(busy) {
            self.burst = rng.random_range(1..8);
        }
        if self.burst > 0 && self.offered_access.is_none() {
            self.burst -= 1;
            let store = u64::from(rng.random_bool(stores));
            self.offered_access = Some([
                rng.random_range(0..1 << 12),
                store,
                rng.random_range(0..1 << 32),
            ]);
        }
        let offered = self.offered_access;
        self.bench.set("processor_access_valid", offered.is_some());
        let [offset, store, data] = offered.unwrap_or_else(|| [0, rng.random_range(0..2), 0]);
        let fields = [(offset, 12), (store, 1), (data, 32)];
        self.bench.set_wide("processor_access", &pack(&fields));
    }
}

/// Starts, stops, resets, words, loads and stores at random.
fn bridges(clocks: Clocks, rng: &mut ChaCha8Rng) -> Counts {
    let mut sides = Sides::new(clocks);
    let (busy, stores) = (rate(rng) / 8.0, rate(rng));
    let (loads, interrupts) = (rate(rng), rate(rng) / 8.0);
    let resets = rng.random_bool(0.5);
    // Cycles until `run` changes, and until a reset begins or ends.
    let (mut until_run, mut until_reset) = (60, 3);
    sides.reset.set(true);
    let mut edges = [0; 2];
    while edges.iter().any(|count| *count < 800) {
        let rising = sides.edge(rng);
        edges = [0, 1].map(|side| edges[side] + u64::from(rising[side]));
        if rising[0] {
            until_run -= 1;
            if until_run <= 0 && sides.offered_word.is_none() {
                sides.run.set(!sides.run.value);
                until_run = *[1, 2, 3, 8, 20, 200].choose(rng).expect("some");
            }
            until_reset -= 1;
            if until_reset <= 0 {
                let begins = !sides.reset.value && resets;
                sides.reset.set(begins);
                sides.counts.resets += u64::from(begins);
                let lengths: &[i32] = match begins {
                    true => &[1, 2, 30],
                    false => &[1, 3, 6, 9, 12, 20, 300],
                };
                until_reset = *lengths.choose(rng).expect("some");
            }
            if !sides.run.value && sides.offered_word.is_none() && rng.random_bool(loads) {
                sides.offered_word = Some([0; 2].map(|_| rng.random_range(0..1 << 32)));
            }
            if rng.random_bool(interrupts) {
                let other = [rng.random(), rng.random()];
                sides.interrupts.set(other);
            }
            sides.card_drives(rng);
        }
        if rising[1] {
            sides.processor_drives(busy, stores, rng);
        }
        sides.clocks.fall(&mut sides.bench);
    }
    sides.counts
}

/// Clocks of the ratios that cards have and of others, in phase and not.
fn clocks(rng: &mut ChaCha8Rng) -> Clocks {
    let periods = [
        [8, 8],
        [8, 16],
        [8, 12],
        [8, 9],
        [9, 8],
        [8, 40],
        [40, 8],
        [32, 4],
        [100, 101],
    ];
    let periods = periods[rng.random_range(0..periods.len())];
    match rng.random_range(0..3) {
        0 => Clocks::aligned(CLOCKS, periods),
        1 => Clocks::steady(CLOCKS, periods, rng),
        _ => Clocks::wavering(CLOCKS, periods, rng),
    }
}

fn any_clocks(rng: &mut ChaCha8Rng) {
    let clocks = clocks(rng);
    bridges(clocks, rng);
}

#[test]
fn accesses_answers_words_and_stops_cross_whatever_the_clocks() {
    for_seeds(60, any_clocks);
}

#[test]
fn each_ratio_of_the_clocks_carries_everything() {
    for periods in [[8, 8], [8, 16], [8, 12]] {
        let total = Cell::new([0; 6]);
        for_seeds(8, |rng| {
            let counts = bridges(Clocks::aligned(CLOCKS, periods), rng).all();
            let before = total.get();
            total.set(std::array::from_fn(|k| before[k] + counts[k]));
        });
        let total = total.get();
        let enough = total.iter().all(|count| *count > 20);
        assert!(enough, "{periods:?}: {total:?}");
    }
}

#[test]
fn each_broken_contract_of_the_bridge_is_noticed() {
    breaks(TOP, 300, any_clocks);
}

#[test]
#[ignore = "mutants: `cargo xtask mutants`, `cargo xtask test --long`"]
fn most_mutants_of_the_bridge_are_noticed() {
    mutants(TOP, 12, any_clocks);
}
