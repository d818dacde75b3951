//! The link of two cards back to back, Verilated, over wires that lose, damage, repeat and reorder frames.
//!
//! Whatever the wires do: a message arrives once, whole and in order; each send completes exactly once, and well
//! only if the message is safe, and its buffer isn't read after that; a frame of the same number is the same message;
//! credits are conserved at every cycle. A pair fails only if Delivery asks for it, or if a wire loses all of its frames: then
//! in time, on both sides, with one event each. It works again when it is connected anew.

mod transfer;

mod wire;
mod world;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use abi::status::Status;
use hdl::catalogue::picks_of;
use hdl::config;
use hdl::link::breaks;
use hdl_tests::{Size, for_sizes, is_caught};
use rand::Rng;
use world::World;

#[test]
fn a_sound_wire_fails_no_pair_and_every_send_succeeds() {
    for_sizes("link_bench", 3, |size, rng| {
        let mut world = World::new(size, rng, 0, None);
        world.run(20_000);
        println!("{}", world.report());
        assert_eq!(world.failures, 0);
        assert_eq!((world.repeats(), world.timeouts()), (0, 0));
        assert!(world.ended(Status::Success) > 20, "{}", world.report());
    });
}

#[test]
fn what_a_wire_does_to_frames_is_mended_and_fails_no_pair() {
    for trouble in [40, 6] {
        let again = Cell::new(0);
        for_sizes("link_bench", 4, |size, rng| {
            let mut world = World::new(size, rng, trouble, None).spared();
            world.run(20_000);
            println!("{}", world.report());
            assert_eq!(world.failures, 0);
            assert!(world.ended(Status::Success) > 20, "{}", world.report());
            again.set(again.get() + world.repeats());
        });
        assert!(again.get() > 100, "{} are sent again", again.get());
    }
}

#[test]
fn a_pair_that_is_cut_off_fails_in_time_and_no_other_does() {
    let seen = RefCell::new(BTreeMap::new());
    for_sizes("link_bench", 4, |size, rng| {
        let mut world = World::new(size, rng, 40, None).cutting();
        world.run(40_000);
        println!("{}", world.report());
        let mut seen = seen.borrow_mut();
        let mut add = |what: &'static str, count: u64| *seen.entry(what).or_insert(0) += count;
        add("failures", world.failures);
        add("given up", world.given_up);
        add("repeats", world.repeats());
        add("time-outs", world.timeouts());
        for what in ["crc_errors", "pair_errors", "duplicates", "gaps"] {
            add(what, world.counted(what));
        }
        for (what, status) in [
            ("Success", Status::Success),
            ("NotReady", Status::NotReady),
            ("LinkError", Status::LinkError),
            ("PeerFailed", Status::PeerFailed),
            ("LocalProtection", Status::LocalProtection),
            ("MemoryError", Status::MemoryError),
        ] {
            add(what, world.ended(status) as u64);
        }
    });
    let seen = seen.into_inner();
    println!("{seen:?}");
    assert!(seen.values().all(|count| *count > 3), "{seen:?}");
    assert!(seen["Success"] > 1000, "{seen:?}");
}

/// A break that the model doesn't have would fail each test, and so be noticed.
fn assert_there(broken: &str) {
    let picks = picks_of("link_bench_tiny_broken");
    assert!(picks.iter().any(|pick| pick == broken), "{broken}");
}

/// Whether a contract that one side breaks is noticed.
fn is_noticed(broken: &str) -> bool {
    assert_there(broken);
    is_caught("link_bench_tiny", 12, |rng| {
        let size = Size::new(&config::TINY, "link_bench", rng);
        match rng.random() {
            true => World::new(&size, rng, 6, Some(broken)).run(30_000),
            false => World::new(&size, rng, 40, Some(broken))
                .cutting()
                .run(30_000),
        }
    })
}

#[test]
fn each_broken_contract_is_noticed() {
    for broken in breaks::link_bench() {
        let noticed = is_noticed(broken.name);
        assert!(noticed, "{} goes unnoticed", broken.name);
    }
}

#[test]
fn a_send_whose_credit_was_lost_on_its_way_goes_out_all_the_same() {
    let asks = Cell::new(0);
    for_sizes("link_bench", 4, |size, rng| {
        let mut world = World::new(size, rng, 5, None).thirsty();
        world.run(15_000);
        println!("{}", world.report());
        asks.set(asks.get() + world.asks());
    });
    assert!(asks.get() > 5, "{} asks", asks.get());
}

#[test]
fn a_side_that_does_not_ask_or_answer_is_noticed() {
    for broken in breaks::thirsty_link_bench() {
        assert_there(broken.name);
        let noticed = is_caught("link_bench_tiny", 16, |rng| {
            let size = Size::new(&config::TINY, "link_bench", rng);
            let world = World::new(&size, rng, 5, Some(broken.name));
            world.thirsty().run(10_000);
        });
        assert!(noticed, "{} goes unnoticed", broken.name);
    }
}
