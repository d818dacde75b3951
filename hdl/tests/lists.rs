//! The matching lists, Verilated, against two vectors.

#[path = "support/bits.rs"]
mod bits;
#[path = "support/matching.rs"]
mod matching;
mod support;

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use hdl::config::{self, Config};
use hdl::matching::{LATENCY, Mutation, Operation};
use matching::{Command, Lists, Outcome};
use rand::Rng;
use rand::distr::Distribution;
use rand::distr::weighted::WeightedIndex;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use support::{Bench, for_seeds};

/// The block and its reference, with the places that the block has given to entries.
struct Pair {
    bench: Bench,
    lists: Lists,
    posted: HashMap<u64, Command>,
    unexpected: HashMap<u64, Command>,
    posted_size: usize,
    unexpected_size: usize,
}

/// What has happened in a test: one that hasn't seen everything has proved nothing about the rest.
#[derive(Default, Debug)]
struct Seen {
    found: [usize; OPERATIONS],
    missing: [usize; OPERATIONS],
    appended: [usize; OPERATIONS],
    full: [usize; OPERATIONS],
}

impl Pair {
    fn new(config: &Config, mutation: Mutation) -> Self {
        let mut bench = Bench::open(&format!("lists_{}", config.name));
        bench.set("mutation", mutation as u64);
        Pair {
            bench,
            lists: Lists::new(config.posted, config.unexpected),
            posted: HashMap::new(),
            unexpected: HashMap::new(),
            posted_size: config.posted,
            unexpected_size: config.unexpected,
        }
    }

    /// Gives the command, waits for the reply, and compares.
    fn act(&mut self, command: Command, seen: &mut Seen) {
        let bench = &mut self.bench;
        assert_eq!(bench.get("posted_depth"), self.lists.posted.len() as u64);
        assert_eq!(
            bench.get("unexpected_depth"),
            self.lists.unexpected.len() as u64
        );
        bench.set("command_valid", true);
        bench.set_wide("command", &command.words());
        bench.eval();
        assert_eq!(bench.get("operation"), command.operation as u64);
        bench.step();
        bench.set("command_valid", false);
        for _ in 1..LATENCY {
            assert!(!bench.is("reply_valid"), "the reply takes {LATENCY} cycles");
            bench.step();
        }
        assert!(bench.is("reply_valid"), "the reply takes {LATENCY} cycles");
        let reply = bench.get("reply");
        let (found, full, index) = (reply & 1 == 1, reply >> 1 & 1 == 1, reply >> 2);
        let n = command.operation as usize;
        match self.lists.act(command) {
            Outcome::Found(entry) => {
                seen.found[n] += 1;
                assert!(found && !full, "{command:x?} finds {entry:x?}");
                let places = match command.operation {
                    Operation::Post
                    | Operation::Probe
                    | Operation::Claim
                    | Operation::TakeUnexpectedOfPair => &mut self.unexpected,
                    _ => &mut self.posted,
                };
                assert_eq!(
                    places.get(&index),
                    Some(&entry),
                    "{command:x?} finds the oldest"
                );
                if command.operation != Operation::Probe {
                    places.remove(&index);
                }
            }
            Outcome::Appended => {
                seen.appended[n] += 1;
                assert!(!found && !full, "{command:x?} is appended");
                let (places, size) = match command.operation {
                    Operation::Insert => (&mut self.unexpected, self.unexpected_size),
                    _ => (&mut self.posted, self.posted_size),
                };
                assert!((index as usize) < size, "place {index} of {size}");
                let before = places.insert(index, command);
                assert_eq!(before, None, "place {index} is given twice");
            }
            Outcome::Full => {
                seen.full[n] += 1;
                assert!(!found && full, "{command:x?} has no room");
            }
            Outcome::Missing => {
                seen.missing[n] += 1;
                assert!(!found && !full, "{command:x?} finds nothing");
            }
        }
    }

    fn idle(&mut self, cycles: u32) {
        for _ in 0..cycles {
            self.bench.step();
            assert!(!self.bench.is("reply_valid"), "there was no command");
        }
    }
}

const OPERATIONS: usize = Operation::ALL.len();
const PAIRS: [u16; 4] = [0, 1, 2, 0x8000];

/// A command of a small world, so that many agree. `mood` decides which list grows.
fn command(rng: &mut ChaCha8Rng, mood: u32, request: u32) -> Command {
    let weights: [u32; OPERATIONS] = match mood {
        0 => [8, 4, 8, 2, 2, 1, 1, 1, 2],
        1 => [2, 1, 20, 2, 1, 1, 0, 0, 1],
        2 => [2, 20, 2, 1, 2, 0, 0, 1, 1],
        _ => [6, 1, 6, 6, 1, 3, 3, 6, 6],
    };
    let pick = WeightedIndex::new(weights).expect("some weight is positive");
    let operation = Operation::ALL[pick.sample(rng)];
    let wide = rng.random_bool(0.5);
    let some_bits = |rng: &mut ChaCha8Rng| match rng.random_range(0..4) {
        0 => 0,
        1 => u64::MAX,
        2 => 1 << rng.random_range(0..64),
        _ => 0xff << rng.random_range(0..57),
    };
    let envelope = matches!(operation, Operation::Arrive | Operation::Insert);
    Command {
        operation,
        endpoint: rng.random_range(0..2),
        pair: PAIRS[rng.random_range(0..4)],
        any_source: !envelope && rng.random_bool(0.3),
        context: [0, 0, 0xffff][rng.random_range(0..3)],
        match_bits: if wide {
            [0, 1, u64::MAX, 1 << 63][rng.random_range(0..4)]
        } else {
            1 << rng.random_range(0..64)
        },
        ignore_bits: if envelope { 0 } else { some_bits(rng) },
        request: match operation {
            // Cancels name something of the recent past.
            Operation::Cancel => request.saturating_sub(rng.random_range(0..40)),
            _ => request,
        },
    }
}

fn mixed(config: &Config, rng: &mut ChaCha8Rng, commands: u32, mutation: Mutation) -> Seen {
    let mut pair = Pair::new(config, mutation);
    let mut seen = Seen::default();
    let mut mood = 0;
    for request in 0..commands {
        if rng.random_bool(0.01) {
            mood = rng.random_range(0..4);
        }
        if rng.random_bool(0.2) {
            pair.idle(rng.random_range(1..6));
        }
        pair.act(command(rng, mood, request), &mut seen);
    }
    // Whatever is left comes out one by one, oldest first, until there is no more.
    for endpoint in 0..2 {
        let take = Command {
            endpoint,
            ..Command::new(Operation::TakePostedOfEndpoint)
        };
        while pair.lists.posted.iter().any(|e| e.endpoint == endpoint) {
            pair.act(take, &mut seen);
        }
        pair.act(take, &mut seen);
    }
    for source in PAIRS {
        let take = Command {
            pair: source,
            ..Command::new(Operation::TakeUnexpectedOfPair)
        };
        while pair.lists.unexpected.iter().any(|e| e.pair == source) {
            pair.act(take, &mut seen);
        }
        pair.act(take, &mut seen);
    }
    pair.idle(2);
    assert_eq!(pair.bench.get("posted_depth"), 0);
    assert_eq!(pair.bench.get("unexpected_depth"), 0);
    seen
}

fn every_operation(config: &Config) {
    for_seeds(3, |rng| {
        let seen = mixed(config, rng, 20_000, Mutation::None);
        let searching = [0, 2, 3, 4, 5, 6, 7];
        assert!(searching.iter().all(|n| seen.found[*n] > 3), "{seen:?}");
        let missing = [0, 3, 4, 5, 6, 7];
        assert!(missing.iter().all(|n| seen.missing[*n] > 1), "{seen:?}");
        for n in [Operation::Insert as usize, Operation::Post as usize] {
            assert!(seen.appended[n] > 3 && seen.full[n] > 3, "{seen:?}");
        }
    });
}

#[test]
fn every_operation_does_what_two_vectors_would_tiny() {
    every_operation(&config::TINY);
}

#[test]
fn every_operation_does_what_two_vectors_would_ecp5() {
    every_operation(&config::ECP5);
}

#[test]
fn a_command_may_come_with_the_reply_of_the_one_before() {
    let mut pair = Pair::new(&config::TINY, Mutation::None);
    let mut seen = Seen::default();
    for request in 0..20 {
        pair.act(
            Command {
                request,
                ..Command::new(Operation::Post)
            },
            &mut seen,
        );
    }
    assert_eq!(
        pair.bench.model.cycle(),
        2 + 20 * LATENCY,
        "two cycles of reset"
    );
    assert_eq!((seen.appended[2], seen.full[2]), (16, 4));
}

#[test]
fn reset_empties_both_lists() {
    let mut pair = Pair::new(&config::TINY, Mutation::None);
    let mut seen = Seen::default();
    pair.act(Command::new(Operation::Post), &mut seen);
    pair.act(
        Command {
            pair: 1,
            ..Command::new(Operation::Insert)
        },
        &mut seen,
    );
    pair.bench.set("reset", true);
    pair.bench.step();
    pair.bench.set("reset", false);
    pair.bench.step();
    assert_eq!(pair.bench.get("posted_depth"), 0);
    assert_eq!(pair.bench.get("unexpected_depth"), 0);
}

/// What noticed the breach: a comparison of the random test, if `mutation` has one to offer.
fn breach(mutation: Mutation) -> Option<String> {
    let run = || {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        mixed(&config::TINY, &mut rng, 3000, mutation)
    };
    let panic = catch_unwind(AssertUnwindSafe(run)).err()?;
    let text = panic.downcast_ref::<String>().cloned();
    Some(text.unwrap_or_else(|| "a panic without words".into()))
}

const BREACHES: [Mutation; 6] = [
    Mutation::LoseCancels,
    Mutation::MatchTwice,
    Mutation::NarrowWildcards,
    Mutation::ForgetAges,
    Mutation::ReusePlaces,
    Mutation::FindRemoved,
];

#[test]
fn the_comparison_notices_each_broken_contract() {
    assert_eq!(breach(Mutation::None), None);
    for mutation in BREACHES {
        assert!(breach(mutation).is_some(), "{mutation:?} goes unnoticed");
    }
}

/// Gives commands whatever is answered, until a check in the gates fails.
fn check_fails(mutation: Mutation, commands: &[Operation]) -> bool {
    let mut bench = Bench::open("lists_tiny");
    bench.set("mutation", mutation as u64);
    for operation in commands {
        bench.set("command_valid", true);
        bench.set_wide("command", &Command::new(*operation).words());
        bench.model.step();
        bench.set("command_valid", false);
        bench.model.steps(LATENCY - 1);
    }
    bench.model.step();
    bench.model.got_error().is_err()
}

#[test]
fn checks_in_the_gates_notice_what_comparison_may_not() {
    use Operation::{Arrive, Cancel, Insert, Post, TakePostedOfEndpoint};
    for (mutation, commands) in [
        (Mutation::LoseCancels, [Post, Cancel, Arrive]),
        (Mutation::MatchTwice, [Post, Post, TakePostedOfEndpoint]),
        (Mutation::ForgetAges, [Post, Post, Arrive]),
        (Mutation::ReusePlaces, [Insert, Insert, Insert]),
        (Mutation::FindRemoved, [Post, Arrive, Arrive]),
    ] {
        // The last removal of all, so that the count says empty.
        let mut commands = commands.to_vec();
        commands.push(Arrive);
        assert!(
            !check_fails(Mutation::None, &commands),
            "{commands:?} is sound"
        );
        assert!(
            check_fails(mutation, &commands),
            "{mutation:?} goes unnoticed"
        );
    }
}

#[test]
fn a_command_too_early_is_noticed() {
    let mut bench = Bench::open("lists_tiny");
    bench.set("command_valid", true);
    bench.model.steps(2);
    bench
        .model
        .got_error()
        .expect_err("one operation at a time");
}
