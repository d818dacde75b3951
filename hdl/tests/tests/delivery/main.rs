//! Delivery, the matching lists and the regions, Verilated together, against Delivery of the model of a card.
//!
//! The test is everything around them: peers that send within their credits, hosts that post,
//! cancel and probe, firmware that connects and closes, memory that is slow or answers with errors.
//! Whatever is taken is told to the model, and every access and every output has to be the one
//! that the model comes to next.

mod memory;
mod reference;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

use abi::capability::CAPABILITY_RULES;
use abi::completion::CompletionKind;
use abi::request::Opcode;
use abi::status::Status;
use card_model::Break;
use hdl::config::{ECP5, SCARCE};
use hdl_tests::broken::{breaks_from, mutants};
use hdl_tests::{Bench, Size, for_size};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use world::{Control, HELD_CYCLES, Mood, World};

/// Delivery with the blocks that it asks.
const BENCH: &str = "delivery_bench";

/// The size with little room, and choices by a seed.
fn scarce(seed: u64) -> (Size, ChaCha8Rng) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (Size::new(&SCARCE, BENCH, &mut rng), rng)
}

/// Everything at random, for a while; then all is taken down, and nothing may be left.
fn life(size: &Size, rng: &mut ChaCha8Rng, cycles: u32) -> World {
    live(World::new(size, rng), rng, cycles)
}

fn live(mut world: World, rng: &mut ChaCha8Rng, cycles: u32) -> World {
    world.set_up();
    for cycle in 0..cycles {
        if cycle % 8192 == 0 {
            world.mood = [Mood::Mixed, Mood::Hoard][rng.random_range(0..2)];
            world.put_or_not(rng.random_ratio(1, 3));
        }
        world.cycle();
    }
    world.settle();
    world.receive_all();
    world.close_a_pair_with_a_claim();
    world.fill_all_slots();
    world.receive_all();
    world.take_down();
    world
}

#[test]
fn every_message_and_every_request_ends_as_it_should() {
    let counts = std::cell::RefCell::new(std::collections::HashMap::new());
    let kinds = std::cell::RefCell::new(std::collections::HashMap::new());
    let test = |size: &Size, rng: &mut ChaCha8Rng| {
        let world = life(size, rng, 140_000);
        let seen = &world.reference.wanted.seen;
        println!("{seen:?}");
        let mut counts = counts.borrow_mut();
        for (key, count) in &seen.statuses {
            *counts.entry(*key).or_insert(0) += count;
        }
        for (name, count) in [
            ("dropped", seen.dropped),
            ("expected", seen.expected),
            ("unexpected", seen.unexpected),
            ("cleared", seen.cleared_unexpected),
            ("from a failed pair", seen.from_failed),
            ("empty", seen.empty),
            ("one of several", seen.stayed),
            ("last for want of a completion", seen.ended_early),
            ("not written, and one of several", seen.survived),
            ("the last of several", seen.counted),
            ("followed by the end of its receive", seen.counted_unfilled),
            ("refused and the count read", seen.refusals_read),
            ("ready", seen.ready),
            ("refused, for it found no receive", seen.not_ready),
            ("kept for the ring", seen.ready_for_ring),
            ("claimed and cleared", seen.cleared_claimed),
            ("claimed of a failed pair", seen.claimed_from_failed),
            ("revoked", seen.revoked.values().sum()),
            ("put", seen.put),
            ("refused, being a put", seen.put_refused),
            ("put where memory answers with an error", seen.put_failed),
            ("a get", seen.got),
            ("a get that came again", seen.got_again),
            ("an answer", seen.answered(Status::Success)),
            ("a refusal of a get", seen.answered(Status::RemoteAccess)),
            (
                "an answer to nobody's buffer",
                seen.answered(Status::AccessDenied),
            ),
            (
                "an answer that memory refused",
                seen.answered(Status::MemoryError),
            ),
        ] {
            *kinds.borrow_mut().entry(name).or_insert(0) += count;
        }
    };
    for_size(&SCARCE, BENCH, 3, test);
    for_size(&ECP5, BENCH, 3, test);
    if std::env::var_os("POSTHORN_SEED").is_some() {
        return;
    }
    for (name, count) in kinds.into_inner() {
        assert!(count > 0, "no message was {name}");
    }
    let counts = counts.into_inner();
    let wanted = [
        (CompletionKind::Receive, Status::Success),
        (CompletionKind::Receive, Status::Truncated),
        (CompletionKind::Receive, Status::Cancelled),
        (CompletionKind::Receive, Status::InvalidPair),
        (CompletionKind::Receive, Status::LocalProtection),
        (CompletionKind::Receive, Status::MemoryError),
        (CompletionKind::Receive, Status::LinkError),
        (CompletionKind::Receive, Status::Flushed),
        (CompletionKind::Receive, Status::ListFull),
        (CompletionKind::Receive, Status::Behind),
        (CompletionKind::Probe, Status::Behind),
        (CompletionKind::Receive, Status::AccessDenied),
        (CompletionKind::Cancel, Status::TooLate),
        (CompletionKind::Probe, Status::Success),
        (CompletionKind::Probe, Status::NoMessage),
        (CompletionKind::Probe, Status::InvalidPair),
        (CompletionKind::Claim, Status::Success),
        (CompletionKind::Claim, Status::NoMessage),
        (CompletionKind::Claim, Status::Behind),
        (CompletionKind::Claim, Status::InvalidPair),
        (CompletionKind::Claim, Status::LinkError),
        (CompletionKind::Receive, Status::Revoked),
        (CompletionKind::Probe, Status::Revoked),
        (CompletionKind::Claim, Status::Revoked),
        (CompletionKind::Receive, Status::InvalidClaim),
        (CompletionKind::Discard, Status::Success),
        (CompletionKind::Discard, Status::InvalidClaim),
    ];
    for (kind, status) in wanted {
        let count = counts.get(&(kind.code(), status.code()));
        assert!(count.is_some_and(|n| *n > 3), "{kind} {status}: {counts:?}");
    }
}

#[test]
fn a_receive_without_room_waits_and_nothing_overtakes_it() {
    let totals = std::cell::Cell::new([0; 6]);
    for_size(&SCARCE, BENCH, 6, |size, rng| {
        let mut world = World::new(size, rng);
        world.set_up();
        for cycle in 0..80_000 {
            // Now and then nothing is on its way from the rings when a message comes.
            world.mood = match cycle % 1024 {
                0..896 => Mood::Hoard,
                _ => Mood::Send,
            };
            world.cycle();
        }
        let seen = &world.reference.wanted.seen;
        println!("{seen:?}");
        let counts = [
            seen.from_behind,
            seen.woken_by_news,
            seen.woken_by_room,
            seen.ready_for_backlog,
            seen.waiting_cancelled,
            seen.waiting_flushed,
        ];
        let before = totals.get();
        totals.set(std::array::from_fn(|k| before[k] + counts[k]));
        world.receive_all();
        world.take_down();
    });
    if std::env::var_os("POSTHORN_SEED").is_none() {
        let totals = totals.get();
        assert!(totals.iter().all(|n| *n > 3), "{totals:?}");
    }
}

/// Peers that send more than they have slots for.
fn overrun(size: &Size, rng: &mut ChaCha8Rng, cycles: u32) -> World {
    let mut world = World::new(size, rng);
    world.credits = 2;
    world.overrun = true;
    world.set_up();
    world.mood = Mood::Flood;
    for _ in 0..cycles {
        world.cycle();
    }
    world.settle();
    world.receive_all();
    world.take_down();
    world
}

/// A claim behind a message by which its pair fails.
fn claim_of_the_failing(size: &Size, rng: &mut ChaCha8Rng) -> World {
    let mut world = World::new(size, rng);
    world.set_up();
    for cycles in 0..8 {
        world.claim_behind_a_message_without_a_slot(cycles);
    }
    world.receive_all();
    world.take_down();
    world
}

#[test]
fn a_pair_has_failed_for_whatever_enters_behind_a_message_without_a_slot() {
    for_size(&SCARCE, BENCH, 3, |size, rng| {
        let world = claim_of_the_failing(size, rng);
        let seen = &world.reference.wanted.seen;
        let failed = (CompletionKind::Claim.code(), Status::LinkError.code());
        assert_eq!(seen.statuses.get(&failed), Some(&8), "{seen:?}");
    });
}

#[test]
fn a_peer_that_overruns_its_credits_fails_its_pair() {
    for_size(&SCARCE, BENCH, 3, |size, rng| {
        let world = overrun(size, rng, 60_000);
        let seen = &world.reference.wanted.seen;
        assert!(seen.overflows > 3, "{seen:?}");
    });
}

#[test]
fn a_cancel_and_a_message_that_race_have_one_winner() {
    for_size(&SCARCE, BENCH, 4, |size, rng| {
        let mut world = World::new(size, rng);
        world.set_up();
        world.mood = Mood::Races;
        for _ in 0..150_000 {
            world.cycle();
        }
        world.settle();
        let statuses = &world.reference.wanted.seen.statuses;
        let of = |kind: CompletionKind, status: Status| {
            statuses.get(&(kind.code(), status.code())).copied()
        };
        let cancelled = of(CompletionKind::Receive, Status::Cancelled);
        let too_late = of(CompletionKind::Cancel, Status::TooLate);
        assert!(cancelled > Some(20) && too_late > Some(20), "{statuses:?}");
        world.take_down();
    });
}

#[test]
fn opcodes_are_those_of_the_list_ring() {
    // The block takes what isn't one of the others for a receive.
    let list = [
        Opcode::TaggedReceive,
        Opcode::Cancel,
        Opcode::Probe,
        Opcode::Claim,
        Opcode::ReceiveClaimed,
        Opcode::Discard,
    ];
    assert!(Opcode::ALL.iter().filter(|o| o.code() >= 0x10).eq(&list));
}

/// Ready messages without end, each refused, and requests between them.
fn flood(size: &Size, rng: &mut ChaCha8Rng) -> World {
    let mut world = World::new(size, rng);
    world.credits = 4;
    world.set_up();
    let (entered, longest) = world.refuse_for(8_000);
    assert!(
        entered > 10 && longest < 1_000,
        "{entered} requests enter, one after {longest} cycles"
    );
    world
}

/// As it broke: arrivals went before requests, and one was always there, so that no endpoint's receives and cancels were taken.
#[test]
fn a_flood_of_refused_ready_messages_starves_no_request() {
    for_size(&SCARCE, BENCH, 3, |size, rng| {
        let world = flood(size, rng);
        assert!(world.reference.wanted.seen.not_ready > 50);
    });
}

/// A pair that has failed is walked in the background.
fn background(size: &Size, rng: &mut ChaCha8Rng) {
    let mut world = World::new(size, rng);
    world.credits = 4;
    world.set_up();
    let entered = world.fail_beside_a_multi_receive();
    assert!(entered > 4, "{entered} messages enter beside a walk");
    world.flush_behind_a_message();
    world.queue_behind_a_full_list();
    world.end_behind_a_full_list();
    world.resume_beside_a_walk();
    for _ in 0..2 {
        world.probe_behind_a_message();
    }
    world.settle();
    let seen = &world.reference.wanted.seen;
    assert!(seen.ready_for_backlog > 0, "{seen:?}");
}

/// As it broke: the receives of a pair that ended were looked for in one go, for up to 2,052 cycles in which nothing of any endpoint entered.
#[test]
fn the_end_of_a_pair_or_an_endpoint_stops_nobody_else() {
    for_size(&SCARCE, BENCH, 3, background);
}

/// As it broke: a region was gone for its host while a write that had been allowed was still on its way to it.
#[test]
fn a_region_goes_when_its_writes_have_ended_and_waits_for_no_others() {
    for_size(&SCARCE, BENCH, 3, |size, rng| {
        let mut world = World::new(size, rng);
        world.set_up();
        world.clear_regions_beside_a_write();
        assert_eq!(world.waited, [1, 1]);
        world.take_down();
    });
}

/// The scenarios that find a wrong bench.
fn scenarios(size: &Size, rng: &mut ChaCha8Rng) {
    flood(size, rng);
    background(size, rng);
    lost(size, rng);
    lost_beside(size, rng);
    pass(size, rng);
    catch_up(size, rng);
    fill(size, rng);
    revoke(World::new(size, rng));
    gets_at_the_end(size, rng);
    claim_of_the_failing(size, rng);
}

#[test]
fn each_break_of_the_gates_is_noticed() {
    breaks_from("delivery_bench_scarce", &[2], 12, |rng| {
        let size = Size::new(&SCARCE, BENCH, rng);
        scenarios(&size, rng);
        life(&size, rng, 20_000);
    });
}

/// All that finds a wrong bench, in a short time.
fn in_short(block: &str, rng: &mut ChaCha8Rng) {
    let size = Size::new(&SCARCE, block, rng);
    scenarios(&size, rng);
    overrun(&size, rng, 5_000);
    life(&size, rng, 10_000);
}

#[test]
#[ignore = "mutants: `cargo xtask mutants`, `cargo xtask test --long`"]
fn most_mutants_of_the_rooms_that_decide_are_noticed() {
    mutants("delivery_bench_scarce", 1, |rng| in_short(BENCH, rng));
}

#[test]
#[ignore = "mutants: `cargo xtask mutants`, `cargo xtask test --long`"]
fn most_mutants_of_the_rooms_that_keep_are_noticed() {
    mutants("delivery_stores_scarce", 1, |rng| {
        in_short("delivery_stores", rng);
    });
}

#[test]
fn each_break_of_the_model_is_noticed() {
    // The rest is of other rooms.
    let elsewhere = [
        Break::RefusalUnheard,
        Break::FailureKeepsSends,
        Break::FailureUntold,
        Break::EventUnwritten,
        Break::TagIgnored,
        Break::DuplicateTaken,
        Break::CrcIgnored,
        Break::RepeatPassedOver,
        Break::GapUntold,
    ];
    let of_delivery = |broken: &Break| !elsewhere.contains(broken);
    let of_rules = Break::OPTIONAL.into_iter();
    let of_rules = of_rules.filter(|(_, needs)| *needs == CAPABILITY_RULES);
    let all = Break::ALL.into_iter().filter(of_delivery);
    let of_rules: Vec<Break> = of_rules.map(|(broken, _)| broken).collect();
    let of_puts = [Break::PutRefusalUntold, Break::PutOffsetIgnored];
    for broken in all.chain(of_rules.iter().copied()).chain(of_puts) {
        let fails = |seed: u64, test: fn(World, &mut ChaCha8Rng) -> World| {
            let (size, mut rng) = scarce(seed);
            let run = || {
                let mut world = World::new(&size, &mut rng);
                world.reference.break_on_purpose(broken);
                test(world, &mut rng)
            };
            catch_unwind(AssertUnwindSafe(run)).is_err()
        };
        let revokes = of_rules.contains(&broken) && fails(1, |world, _| revoke(world));
        let noticed = revokes || (1..40).any(|seed| fails(seed, |w, rng| live(w, rng, 20_000)));
        assert!(noticed, "{broken:?} goes unnoticed");
    }
}

#[test]
fn checks_in_the_gates_notice_a_breach_by_themselves() {
    for name in [
        "completes_early",
        "ignores_buffer_length",
        "reuses_slots",
        "frees_wrong_slot",
        "overcommits",
        "forgets_kept",
    ] {
        // A world that a breach has led astray may ask for what isn't there before a check speaks; that seed says
        // nothing.
        let speaks = |seed| {
            let (size, mut rng) = scarce(seed);
            let bench = Bench::broken("delivery_bench_scarce", name);
            let mut world = World::around(bench, &size, &mut rng);
            world.blind = true;
            world.set_up();
            (0..20_000).any(|_| {
                world.cycle();
                world.bench.model.got_error().is_err()
            })
        };
        let noticed =
            (1..17).any(|seed| catch_unwind(AssertUnwindSafe(|| speaks(seed))).unwrap_or(false));
        assert!(noticed, "{name} goes unnoticed");
    }
}

/// A rule for a context, and its end in each of the ways that there are.
fn revoke(mut world: World) -> World {
    world.credits = 4;
    world.set_up();
    world.revoke_a_context();
    world.receive_all();
    world
}

#[test]
fn a_rule_holds_until_it_is_cleared_or_its_pair_or_endpoint_is_closed() {
    for_size(&SCARCE, BENCH, 3, |size, rng| {
        let world = revoke(World::new(size, rng));
        let seen = &world.reference.wanted.seen;
        assert_eq!(seen.revoked.values().sum::<u32>(), 3, "{seen:?}");
        let of = |kind: CompletionKind| {
            let key = (kind.code(), Status::Revoked.code());
            seen.statuses.get(&key).copied()
        };
        // A probe of any source is refused beside another pair's messages too, and when the only pair of the group is closed.
        assert_eq!(of(CompletionKind::Probe), Some(7), "{seen:?}");
        assert_eq!(of(CompletionKind::Claim), Some(3), "{seen:?}");
        assert_eq!(of(CompletionKind::Receive), Some(3), "{seen:?}");
    });
}

/// Gets and answers of a pair that has failed, and of one that ends right behind them.
fn gets_at_the_end(size: &Size, rng: &mut ChaCha8Rng) -> World {
    let mut world = World::new(size, rng);
    world.set_up();
    world.get_when_a_pair_has_failed();
    world.end_behind_gets();
    world.receive_all();
    world
}

#[test]
fn a_pair_ends_when_its_gets_are_told_and_those_that_come_late_are_dropped() {
    for_size(&SCARCE, BENCH, 3, |size, rng| {
        let world = gets_at_the_end(size, rng);
        let seen = &world.reference.wanted.seen;
        assert!(
            seen.dropped >= 2 && seen.got + seen.got_again >= 8,
            "{seen:?}"
        );
    });
}

/// A receive, a probe and a claim find a message that will never be in its slot; and one is lost when nothing more may enter.
fn lost(size: &Size, rng: &mut ChaCha8Rng) -> World {
    let mut world = World::new(size, rng);
    world.set_up();
    for opcode in [Opcode::TaggedReceive, Opcode::Probe, Opcode::Claim] {
        world.find_a_lost_message(opcode);
        world.receive_all();
    }
    world.lose_a_message_with_all_places_taken();
    world.lose_a_message_in_front_of_others();
    for opcode in [Opcode::TaggedReceive, Opcode::Probe, Opcode::Claim] {
        for of_another_pair in [false, true] {
            world.find_a_message_behind_two_lost_ones(opcode, of_another_pair);
        }
    }
    world.receive_all();
    world
}

#[test]
fn a_request_that_finds_a_lost_message_looks_again() {
    for_size(&SCARCE, BENCH, 3, |size, rng| {
        let world = lost(size, rng);
        let seen = &world.reference.wanted.seen;
        assert!(seen.again > 0 && seen.behind >= 4, "{seen:?}");
        let of = |kind: CompletionKind, status: Status| {
            let key = (kind.code(), status.code());
            seen.statuses.get(&key).copied().unwrap_or(0)
        };
        let no_message = Status::NoMessage;
        // One that found it took the message of another pair, and all those of `receive_all` took theirs; one met a message behind it.
        assert_eq!(of(CompletionKind::Receive, Status::MemoryError), 1);
        // And a receive, a probe and a claim find the message of another pair that is behind two lost ones, or none if it is of their pair.
        assert_eq!(of(CompletionKind::Probe, Status::Success), 1);
        assert_eq!(of(CompletionKind::Claim, Status::Success), 1);
        assert_eq!(of(CompletionKind::Probe, no_message), 2);
        assert_eq!(of(CompletionKind::Claim, no_message), 2);
        // Six messages are received in all, or five if the claimed one is discarded.
        let received = of(CompletionKind::Receive, Status::Success);
        assert!((5..=6).contains(&received), "{received} received");
    });
}

/// A message is lost beside a multi-receive, at any step of it.
fn lost_beside(size: &Size, rng: &mut ChaCha8Rng) -> World {
    let mut world = World::new(size, rng);
    world.set_up();
    for n in 0..12 {
        let cycles = rng.random_range(0..2 * HELD_CYCLES);
        world.lose_a_message_beside_a_multi_receive(n % 3 == 1, cycles);
    }
    world.receive_all();
    world.take_down();
    world
}

#[test]
fn a_multi_receive_goes_on_and_ends_whoever_loses_a_message() {
    for_size(&SCARCE, BENCH, 3, |size, rng| {
        let world = lost_beside(size, rng);
        let seen = &world.reference.wanted.seen;
        // Eight took two messages each, or only one for want of a completion.
        assert_eq!(seen.counted + seen.ended_early, 8, "{seen:?}");
    });
}

/// As it broke: while a request waited for a message to be in its slot, everybody behind it waited too. Receives that were posted as their messages came met each
/// one on its way to its slot, so that every message took a write of memory.
fn pass(size: &Size, rng: &mut ChaCha8Rng) {
    let mut world = World::new(size, rng);
    world.set_up();
    for another_waits in [false, true, false] {
        let entered = world.pass_a_receive_that_waits(another_waits);
        let longest = entered.iter().max().expect("messages came");
        assert!(*longest <= HELD_CYCLES, "{entered:?}");
        let expected = if another_waits { 4..=5 } else { 8..=8 };
        assert!(expected.contains(&entered.len()), "{entered:?}");
    }
    for n in 0..6 {
        let cycles = 8 * n + rng.random_range(0..8);
        let entered = world.walk_beside_a_receive_that_waits(cycles);
        assert_eq!(entered.len(), 6, "{entered:?}, {cycles} cycles behind");
    }
    world.take_down();
}

#[test]
fn messages_pass_a_request_whose_message_is_not_in_its_slot_yet() {
    for_size(&SCARCE, BENCH, 3, pass);
}

/// Receives that come later than their messages have two turns for one.
fn catch_up(size: &Size, rng: &mut ChaCha8Rng) {
    let mut world = World::new(size, rng);
    world.set_up();
    let messages = world.catch_up(13);
    assert!((4..=6).contains(&messages), "{messages} messages enter");
    world.take_down();
}

#[test]
fn receives_that_come_later_than_their_messages_catch_up() {
    for_size(&SCARCE, BENCH, 3, catch_up);
}

/// As it broke: each message for a multi-receive, and everything behind it on the wire, waited until the one before was written. A buffer for all that comes
/// held up every endpoint for a round trip of memory a message.
fn fill(size: &Size, rng: &mut ChaCha8Rng) {
    let mut world = World::new(size, rng);
    world.set_up();
    let entered = world.fill_a_multi_receive_while_memory_is_held();
    let longest = entered.iter().max().expect("messages came");
    assert!(*longest <= HELD_CYCLES, "{entered:?}");
    world.take_down();
}

#[test]
fn messages_for_a_multi_receive_wait_for_no_write() {
    for_size(&SCARCE, BENCH, 3, fill);
}

#[test]
fn a_slot_that_cant_be_written_fails_the_pair() {
    let (size, mut rng) = scarce(4);
    let mut world = World::new(&size, &mut rng);
    world.set_up();
    world.mood = Mood::Quiet;
    let bad = world.pair_with_bad_slots();
    world.offer_message_of(bad, vec![7; 9]);
    world.settle();
    let pair = world.reference.pair(bad);
    let memory_error = Status::MemoryError.code();
    assert_eq!(pair.and_then(|p| p.failed), Some(memory_error));
    world.control(Control::PairClear(bad));
    world.settle();
    world.take_down();
}
