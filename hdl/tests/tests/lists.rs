//! The matching engine, Verilated, held to the reference of `match-reference`: random commands of all
//! kinds, one behind the other with random gaps, every reply compared, and the cycles that it took.

use std::cell::Cell;

use hdl::config::{self, Config};
use hdl::matching::table_rows;
use hdl_tests::broken::{breaks_by, mutants, picked};
use hdl_tests::{current, for_seeds};
use match_reference::{
    Block, Breach, Command, Harness, Operation, Outcome, Seen, Sizes, Tables, Traffic, Verilated,
    sizes_of,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Commands that each of the four sizes gets: 200,000 in all.
const COMMANDS: u64 = 50_000;
/// Commands that it gets with `--long`: 20 million in all.
const LONG: u64 = 5_000_000;
/// Random commands that the engine gets that no card has.
const WIDE: u64 = 80_000;
/// Receives of a full one that are replaced.
const REPLACED: u32 = 20_000;
/// Fresh engines among which the commands are shared.
const SEEDS: u64 = 4;

/// A seed by which every key and every handle has the same bins, so that they overflow.
const ONE_BIN: u128 = 0;

/// A seed like any that a card draws: bins hardly ever overflow.
const MANY_BINS: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;

type Engine = Harness<Verilated>;

fn open(config: &Config, seed: u128) -> Engine {
    let block = match picked(&format!("lists_{}", config.name)) {
        (name, None) => Verilated::open(&name, config.pairs, seed),
        (name, Some(broken)) => Verilated::open_broken(&name, broken, config.pairs, seed),
    };
    let block = block.unwrap_or_else(|error| panic!("{error}"));
    current::check(block.model());
    Harness::new(block, sizes_of(config))
}

fn random(
    config: &Config,
    seed: u128,
    rng: &mut ChaCha8Rng,
    commands: u64,
) -> Result<Seen, Breach> {
    let mut engine = open(config, seed);
    let mut traffic = Traffic::new(sizes_of(config), rng);
    engine.random(&mut traffic, rng, commands)?;
    Ok(*engine.seen())
}

/// Runs random commands on engines of one size, and sees to it that everything has happened.
fn keeps_its_promises(config: &Config, commands: u64) {
    let all = Cell::new(Seen::default());
    for_seeds(SEEDS, |rng| {
        let seed = rng.random();
        let seen = random(config, seed, rng, commands / SEEDS)
            .unwrap_or_else(|breach| panic!("{}: {breach}", config.name));
        all.set(all.get().and(&seen));
    });
    let seen = all.get();
    println!("{}: {seen:?}", config.name);
    everything_has_happened(&seen);
    assert!(seen.exact > 1000 && seen.associative > 500 && seen.full > 100);
    assert!(seen.overlapped > 1000);
    assert!(seen.appended > 500 && seen.matched > 500);
    let scarce = config.rows < table_rows(config.exact) / 2;
    assert!(!scarce || seen.overflows > 100);
    assert!(seen.deepest_posted * 2 > config.exact);
    assert!(seen.deepest_unexpected * 2 >= config.unexpected);
}

/// Each command that can has found something, and nothing.
fn everything_has_happened(seen: &Seen) {
    for operation in Operation::ALL {
        let n = usize::from(operation.code());
        let misses = *operation != Operation::Post;
        // Most steps of a walk find nothing yet.
        let often = if *operation == Operation::TakePostedOfPair {
            50
        } else {
            100
        };
        assert!(seen.found[n] > often, "{operation}");
        assert_eq!(seen.missing[n] > 100, misses, "{operation}");
    }
}

#[test]
fn tiny_keeps_its_promises() {
    keeps_its_promises(&config::TINY, COMMANDS);
}

#[test]
fn ecp5_keeps_its_promises() {
    keeps_its_promises(&config::ECP5, COMMANDS);
}

#[test]
fn three_endpoints_with_five_pairs_keep_their_promises() {
    keeps_its_promises(&config::ODD, COMMANDS);
}

#[test]
#[ignore = "its model is built with those of `cargo xtask test --long`"]
fn sixteen_endpoints_with_rows_of_four_keep_their_promises() {
    keeps_its_promises(&config::MANY, COMMANDS);
}

#[test]
#[ignore = "five million commands: `cargo xtask test --long`"]
fn tiny_keeps_its_promises_for_long() {
    keeps_its_promises(&config::TINY, LONG);
}

#[test]
#[ignore = "five million commands: `cargo xtask test --long`"]
fn ecp5_keeps_its_promises_for_long() {
    keeps_its_promises(&config::ECP5, LONG);
}

#[test]
#[ignore = "five million commands: `cargo xtask test --long`"]
fn three_endpoints_with_five_pairs_keep_their_promises_for_long() {
    keeps_its_promises(&config::ODD, LONG);
}

#[test]
#[ignore = "five million commands: `cargo xtask test --long`"]
fn sixteen_endpoints_with_rows_of_four_keep_their_promises_for_long() {
    keeps_its_promises(&config::MANY, LONG);
}

/// The engine that no card has: filled to the last receive, kept full while any of them go and others come, and
/// emptied. Then random commands, fewer than elsewhere: one in twenty walks over all its rows, which takes 16,384 cycles.
#[test]
#[ignore = "an engine that has to be asked for: `cargo xtask test --long`"]
fn wide_keeps_its_promises_for_long() {
    let config = &config::WIDE;
    for_seeds(1, |rng| {
        let mut engine = open(config, rng.random());
        let receive = |n: u32, rng: &mut ChaCha8Rng| Command {
            endpoint: (n % config.endpoints as u32) as u8,
            pair: (n % config.pairs as u32) as u16,
            ..post(0, false, rng.random(), n)
        };
        let mut live = vec![];
        for n in 0..config.exact as u32 {
            live.push(receive(n, rng));
            let outcome = act(&mut engine, &live[n as usize]);
            assert!(matches!(outcome, Outcome::Exact | Outcome::Associative));
        }
        for n in 0..REPLACED {
            let at = rng.random_range(0..live.len());
            let operation = [Operation::Arrive, Operation::Cancel][n as usize % 2];
            let gone = live[at];
            let takes = Command { operation, ..gone };
            assert_eq!(act(&mut engine, &takes), Outcome::Found(gone));
            // The same endpoint has its room.
            live[at] = Command {
                endpoint: gone.endpoint,
                ..receive(config.exact as u32 + n, rng)
            };
            assert_ne!(act(&mut engine, &live[at]), Outcome::Full);
        }
        assert_eq!(engine.lists().posted_depth(), config.exact);
        let emptied = engine.empty();
        emptied.unwrap_or_else(|breach| panic!("{breach}"));
    });
    let all = Cell::new(Seen::default());
    for_seeds(SEEDS, |rng| {
        let seen = random(config, rng.random(), rng, WIDE / SEEDS)
            .unwrap_or_else(|breach| panic!("{breach}"));
        all.set(all.get().and(&seen));
    });
    let seen = all.get();
    println!("{}: {seen:?}", config.name);
    everything_has_happened(&seen);
}

#[test]
fn a_bin_that_overflows_loses_and_misorders_nothing() {
    for config in [&config::TINY, &config::ECP5, &config::ODD] {
        for_seeds(2, |rng| {
            let seen = random(config, ONE_BIN, rng, 20_000)
                .unwrap_or_else(|breach| panic!("{}: {breach}", config.name));
            assert!(seen.overflows > 100, "{seen:?}");
        });
    }
}

/// Where the gates put receives and where `Tables` does: the same posts and cancels overflow, under seeds of which most
/// bits are zero, so that many keys share their rows.
#[test]
fn bins_overflow_where_the_tables_in_plain_rust_do() {
    let scarce =
        |rng: &mut ChaCha8Rng| (0..3).fold(0, |seed, _| seed | 1_u128 << rng.random_range(0..128));
    overflows_as_the_tables(&config::TINY, scarce);
}

/// The same where the rows are few, under any seed, and a part of the match bits counts.
#[test]
fn few_bins_overflow_where_the_tables_in_plain_rust_do() {
    overflows_as_the_tables(&config::ODD, |rng| rng.random());
}

fn overflows_as_the_tables(config: &Config, seed: impl Fn(&mut ChaCha8Rng) -> u128) {
    let sizes = sizes_of(config);
    let overflowed = Cell::new(0);
    for_seeds(24, |rng| {
        let seed = seed(rng);
        let mut engine = open(config, seed);
        let mut tables = Tables::new(sizes.rows, sizes.row_ways, seed);
        // On the exact side, and beside it.
        let mut live = [vec![], vec![]];
        for n in 0..300 {
            let [exact, beside] = [live[0].len(), live[1].len()];
            let full = exact == sizes.exact_of_one() || beside == sizes.posted_of_one();
            if full || exact + beside > 2 && rng.random_bool(0.3) {
                let side = usize::from(rng.random_range(0..exact + beside) >= exact);
                let at = rng.random_range(0..live[side].len());
                let receive: Command = live[side].swap_remove(at);
                assert_eq!(tables.remove(&receive), side == 0);
                let cancel = Command {
                    operation: Operation::Cancel,
                    ..receive
                };
                assert_eq!(act(&mut engine, &cancel), Outcome::Found(receive));
            } else {
                let posted = Command {
                    context: rng.random_range(0..4),
                    pair: rng.random_range(0..2),
                    ..post(0, false, rng.random::<u64>() >> rng.random_range(0..64), n)
                };
                let receive = sizes.kept(&posted);
                let (side, expected) = match tables.post(&receive, 0) {
                    true => (0, Outcome::Exact),
                    false => (1, Outcome::Associative),
                };
                assert_eq!(act(&mut engine, &posted), expected);
                live[side].push(receive);
            }
        }
        overflowed.set(overflowed.get() + engine.seen().overflows);
    });
    assert!(overflowed.get() > 20, "{}", overflowed.get());
}

/// Who expects all bits to be compared sees that they aren't.
#[test]
fn an_engine_of_fewer_match_bits_is_noticed() {
    let wider = Sizes {
        match_mask: u64::MAX,
        ..sizes_of(&config::ODD)
    };
    let block = Verilated::open("lists_odd", config::ODD.pairs, MANY_BINS);
    let block = block.unwrap_or_else(|error| panic!("{error}"));
    current::check(block.model());
    let mut engine = Harness::new(block, wider);
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut traffic = Traffic::new(sizes_of(&config::ODD), &mut rng);
    assert!(engine.random(&mut traffic, &mut rng, 20_000).is_err());
}

fn post(ignore_bits: u64, any_source: bool, match_bits: u64, request: u32) -> Command {
    Command {
        any_source,
        match_bits,
        ignore_bits,
        request,
        ..Command::new(Operation::Post)
    }
}

fn act(engine: &mut Engine, command: &Command) -> Outcome {
    let done = engine.act(command);
    done.unwrap_or_else(|breach| panic!("{breach}")).outcome
}

#[test]
fn a_class_learnt_while_messages_wait_changes_nothing_for_them() {
    let mut engine = open(&config::TINY, 1);
    let message = |match_bits, slot| Command {
        match_bits,
        slot,
        append: true,
        ..Command::new(Operation::Arrive)
    };
    for slot in 0..8 {
        act(&mut engine, &message(0x100 + u64::from(slot), slot));
    }
    let found = |outcome| match outcome {
        Outcome::Found(message) => message.match_bits,
        other => panic!("{other:?}"),
    };
    // Each is the first receive of its kind, and finds the earliest that it matches.
    assert_eq!(found(act(&mut engine, &post(0xf, false, 0x100, 1))), 0x100);
    assert_eq!(found(act(&mut engine, &post(0, true, 0x103, 2))), 0x103);
    assert_eq!(found(act(&mut engine, &post(0xff, true, 0x155, 3))), 0x101);
    // So does one of a kind that has a class, live receives and all.
    let other = post(0xf, false, 0x200, 4);
    assert_eq!(act(&mut engine, &other), Outcome::Exact);
    assert_eq!(found(act(&mut engine, &post(0xf, false, 0x100, 5))), 0x102);
    // And its receives are found by what comes from then on.
    let arrival = Command {
        append: false,
        ..message(0x20b, 0)
    };
    assert_eq!(act(&mut engine, &arrival), Outcome::Found(other));
    assert_eq!(act(&mut engine, &arrival), Outcome::Missing);
}

/// Cycles from the first reply to the last, if the commands follow each other as fast as they are taken.
fn cycles(engine: &mut Engine, commands: &[Command]) -> u64 {
    let mut replies = vec![];
    let mut open = commands.iter().peekable();
    while open.peek().is_some() || engine.under_way() > 0 {
        let step = engine.cycle(open.peek().copied());
        let step = step.unwrap_or_else(|breach| panic!("{breach}"));
        if step.taken {
            open.next();
        }
        if step.done.is_some() {
            replies.push(engine.now());
        }
    }
    assert_eq!(replies.len(), commands.len());
    replies[replies.len() - 1] - replies[0]
}

/// A receive behind an arrival whose message may wait goes as soon as it is known that it doesn't, or that it does.
#[test]
fn a_receive_waits_for_the_messages_before_it_and_no_longer() {
    const TURNS: u32 = 50;
    let arrival = |n: u32, append| Command {
        match_bits: n.into(),
        append,
        ..Command::new(Operation::Arrive)
    };
    let receive = |n: u32| post(0, false, n.into(), n);
    // A message that finds a receive, and a receive for another.
    for (append, limit) in [(false, 4), (true, 10)] {
        let mut engine = open(&config::TINY, MANY_BINS);
        for n in 0..8 {
            act(&mut engine, &receive(n));
        }
        let turns = (0..TURNS).flat_map(|n| [arrival(n, append), receive(n + 8)]);
        let cycles = cycles(&mut engine, &turns.collect::<Vec<_>>());
        println!(
            "{:.2} cycles a turn, append {append}",
            cycles as f64 / f64::from(TURNS)
        );
        assert!(cycles <= limit * u64::from(TURNS), "{cycles}");
        assert_eq!(engine.seen().matched, u64::from(append) * u64::from(TURNS));
    }
    // A message that finds none, and a receive that takes it.
    let mut engine = open(&config::TINY, MANY_BINS);
    let turns = (0..TURNS).flat_map(|n| [arrival(n, true), receive(n)]);
    let all = cycles(&mut engine, &turns.collect::<Vec<_>>());
    println!(
        "{:.2} cycles a turn of which the message waits",
        all as f64 / f64::from(TURNS)
    );
    assert!(all <= 21 * u64::from(TURNS), "{all}");
    assert_eq!(engine.seen().appended, u64::from(TURNS));
    // Messages one behind the other, more than the queue holds.
    let burst = (0..64).map(|n| Command {
        pair: n / 8,
        slot: (n % 8) as u8,
        ..arrival(n.into(), true)
    });
    let all = cycles(&mut engine, &burst.collect::<Vec<_>>());
    println!("{:.2} cycles a message that waits", all as f64 / 64.0);
    assert!(all <= 4 * 64, "{all}");
    engine.settle().unwrap_or_else(|breach| panic!("{breach}"));
}

#[test]
fn a_fifth_kind_waits_on_the_associative_side_until_a_class_is_free() {
    let mut engine = open(&config::TINY, 1);
    for kind in 0..4 {
        let outcome = act(&mut engine, &post(1 << kind, false, 0, kind));
        assert_eq!(outcome, Outcome::Exact);
    }
    let fifth = |request| post(1 << 10, true, 0, request);
    assert_eq!(act(&mut engine, &fifth(10)), Outcome::Associative);
    let cancel = Command {
        request: 2,
        ..Command::new(Operation::Cancel)
    };
    assert!(matches!(act(&mut engine, &cancel), Outcome::Found(_)));
    assert_eq!(act(&mut engine, &fifth(11)), Outcome::Exact);
    // The oldest first, wherever it is: three of the classes, then the two of the fifth kind.
    let arrival = Command::new(Operation::Arrive);
    for request in [0, 1, 3, 10, 11] {
        match act(&mut engine, &arrival) {
            Outcome::Found(receive) => assert_eq!(receive.request, request),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(act(&mut engine, &arrival), Outcome::Missing);
}

#[test]
fn reset_empties_both_lists() {
    let mut engine = open(&config::TINY, 1);
    act(&mut engine, &post(0, false, 1, 1));
    act(&mut engine, &post(1, false, 1, 2));
    let message = Command {
        match_bits: 7,
        append: true,
        ..Command::new(Operation::Arrive)
    };
    act(&mut engine, &message);
    engine.block().reset(2).expect("it has these pins");
    // A reference that knows of nothing agrees.
    let mut engine = engine.restarted();
    engine.settle().unwrap_or_else(|breach| panic!("{breach}"));
    assert_eq!(
        act(&mut engine, &Command::new(Operation::Arrive)),
        Outcome::Missing
    );
    let probe = Command {
        operation: Operation::Probe,
        ..post(u64::MAX, true, 0, 3)
    };
    assert_eq!(act(&mut engine, &probe), Outcome::Missing);
}

/// Twenty cycles in which a command is offered, or none.
fn offers(engine: &mut Engine, command: Option<&Command>) -> Result<(), String> {
    (0..20).try_for_each(|_| engine.block().cycle(command).map(drop))
}

#[test]
fn a_seed_that_comes_while_a_receive_is_posted_is_noticed() {
    let mut engine = open(&config::TINY, 1);
    engine.block().seed(2).expect("it has this pin");
    assert_eq!(offers(&mut engine, None), Ok(()), "it is empty");
    act(&mut engine, &post(0, false, 1, 1));
    let arrival = Command {
        match_bits: 1,
        ..Command::new(Operation::Arrive)
    };
    assert!(matches!(act(&mut engine, &arrival), Outcome::Found(_)));
    assert_eq!(offers(&mut engine, None), Ok(()));
    engine.block().seed(3).expect("it has this pin");
    assert_eq!(offers(&mut engine, None), Ok(()), "it is empty again");
    act(&mut engine, &post(0, false, 1, 2));
    assert_eq!(offers(&mut engine, None), Ok(()));
    engine.block().seed(4).expect("it has this pin");
    assert!(offers(&mut engine, None).is_err());
}

#[test]
fn a_command_for_an_endpoint_that_there_is_not_is_noticed() {
    let mut engine = open(&config::TINY, 1);
    let mut command = Command::new(Operation::Arrive);
    act(&mut engine, &command);
    command.endpoint = config::TINY.endpoints as u8;
    assert!(offers(&mut engine, Some(&command)).is_err());
}

/// Of the engine and all its parts.
#[test]
#[ignore = "mutants: `cargo xtask mutants`, `cargo xtask test --long`"]
fn the_comparison_notices_most_mutants() {
    mutants("lists_tiny", 1, |rng| {
        for seed in [MANY_BINS, ONE_BIN] {
            let done = random(&config::TINY, seed, rng, 2000);
            done.unwrap_or_else(|breach| panic!("{breach}"));
        }
    });
}

/// A comparison notices each, or a check in the gates. Twelve seeds, since of a wrong predecessor (`forget_prev`) only a receive tells that
/// is cancelled between two others of its key, and then the last of them. Four contracts of parts can't be broken in an
/// engine, and are broken in the tests of their blocks: no search is in the cycle of an insertion (`keep_hits`), no
/// receive names a pair of another endpoint (`forget_endpoint`), and each pair has one unit of places for ever (`first_unit_only`, `keeps_units`).
#[test]
fn each_broken_contract_is_noticed() {
    // As many as the block's page says.
    assert_eq!(hdl::matching::breaks::lists().len(), 48);
    breaks_by("lists_tiny", &|| {
        let seeds = [MANY_BINS, ONE_BIN].into_iter().chain(2..12);
        for (n, seed) in seeds.enumerate() {
            let mut rng = ChaCha8Rng::seed_from_u64(n as u64);
            let done = random(&config::TINY, seed, &mut rng, 20_000);
            done.unwrap_or_else(|breach| panic!("{breach}"));
        }
    });
}
