//! Processes and cards that are killed at a random moment of random traffic.
//!
//! The ranks are [`posthorn::soak`]'s. What they hold every run to: each request that was posted completes once, and in bounded time; one that depends on
//! nobody who was killed with `Success`, and `Cancelled` if it takes from anybody and is cancelled in the end; one that depends on the killed with
//!
//! | status | when |
//! |---|---|
//! | `Success` | it was done before, or before the pair was found to have failed |
//! | `PeerFailed` | the card of a process that was killed has told that the pair is closed; or the card is silent for good, or what it told was lost |
//!
//! and with no other. The messages of a pair arrive whole and in order, without a gap up to the last one; those among survivors all. Where links lose nothing all
//! credits of survivors come back. A new process on the card of one that was killed connects to all, and its messages arrive.

use std::collections::BTreeSet;
use std::sync::Mutex;

use posthorn::soak::worker::{Failure, Goal, Tally};
use posthorn::soak::{Run, WATCH};
use posthorn_tests::cards::{self, GatesOnly, cards, modelled_under, passes_with};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sim::fault::{CardPlan, FaultPlan, HostPlan, LinkFault};
use soft_card::{Break, Flaw};

/// Cycle in which all ranks are connected, on cards of the model and of gates with fast processors.
const CONNECTED: [u64; 2] = [60_000, cards::CONNECTED];
/// Cycles in which somebody is killed, behind that: those that the traffic takes, and some more.
const TRAFFIC: u64 = 20_000;
/// Cycles from the kill, or from the end of the survivors' work, to the last completion that depends on the killed: 27 time-outs of a card that goes on sending
/// in vain, or five looks of a card that watches a silent peer, each a quarter of its interval late at most; and some more until the host looks.
const BOUND: u64 = 300_000;

/// Two to four cards of which one, or its process, is killed; links are as they should be, or lose, repeat, change and delay.
fn deadly(seed: u64, connected: u64, messages: u64) -> Run {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let cards = rng.random_range(2..=4);
    let card = rng.random_range(0..cards);
    let kill = Some(connected + rng.random_range(0..TRAFFIC));
    let mut plan = FaultPlan::default();
    if rng.random_ratio(1, 3) {
        plan = FaultPlan::always(LinkFault {
            lose: 0.01,
            corrupt: 0.01,
            repeat: 0.01,
            late: 0.01,
            late_by: 2000,
            ..LinkFault::default()
        });
    }
    match rng.random() {
        true => plan.hosts.push(HostPlan {
            card,
            kill,
            freeze: None,
        }),
        false => plan.cards.push(CardPlan {
            card,
            kill,
            ..CardPlan::default()
        }),
    }
    Run {
        seed,
        cards,
        goal: Goal {
            messages,
            accesses: messages / 2,
            signals: 1 + messages / 60,
        },
        connected,
        watch: WATCH,
        plan,
    }
}

/// What became of a rank, which must not be anything wrong.
#[track_caller]
fn judged(run: &Run, rank: usize, ended: Result<Tally, Failure>) -> Tally {
    let (seed, kills) = (run.seed, run.plan.kills());
    match ended {
        Ok(tally) => {
            let bound = kills[0].1 + TRAFFIC + BOUND;
            if let Some(last) = tally.last_failure {
                assert!(
                    last < bound,
                    "seed {seed}, rank {rank}: cycle {last} of {bound}"
                );
            }
            let failed = |&peer: &usize| peer == kills[0].0;
            assert!(tally.failed.iter().all(failed), "seed {seed}, rank {rank}");
            tally
        }
        Err(failure) => panic!("seed {seed}, rank {rank}: {failure}; {:?}", run.plan),
    }
}

/// Runs seeds on cards of the model, and returns what all ranks together have done.
fn modelled(seeds: std::ops::Range<u64>) -> Tally {
    let sum = Mutex::new(Tally::default());
    for seed in seeds {
        let run = deadly(seed, CONNECTED[0], 60);
        modelled_under(&run.plan, "tiny", run.cards, seed, |host| {
            let tally = judged(&run, host.card(), host.soak(&run));
            sum.lock().unwrap().add(&tally);
        });
    }
    sum.into_inner().expect("no rank has failed")
}

/// Each kind of request met each status that is allowed, so that the runs say something.
#[track_caller]
fn assert_covered(tally: &Tally) {
    let seen: BTreeSet<_> = tally.completions.keys().copied().collect();
    for wanted in [
        ("send", "Success"),
        ("send", "PeerFailed"),
        ("put", "Success"),
        ("put", "PeerFailed"),
        ("get", "Success"),
        ("get", "PeerFailed"),
        ("receive", "Success"),
        ("receive", "PeerFailed"),
        ("receive", "Cancelled"),
    ] {
        assert!(
            seen.contains(&wanted),
            "{wanted:?} was never seen: {tally:?}"
        );
    }
}

#[test]
fn whoever_is_killed_at_whatever_moment_every_request_of_the_others_completes_once_and_they_go_on()
{
    let tally = modelled(0..300);
    println!("{tally:?}");
    assert_covered(&tally);
}

#[test]
#[ignore = "takes long"]
fn the_same_with_many_more_seeds() {
    let tally = modelled(300..20_300);
    println!("{tally:?}");
    assert_covered(&tally);
}

#[test]
fn on_gates_too_every_request_of_the_survivors_completes_once_and_they_go_on() {
    on_gates(0..4);
}

#[test]
#[ignore = "minutes of simulation: `cargo xtask test --long`"]
fn the_same_on_gates_with_more_seeds() {
    on_gates(4..24);
}

fn on_gates(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let run = deadly(seed, CONNECTED[1], 12);
        let cluster = cards("tiny", run.cards, seed)
            .faults(run.plan.clone())
            .quiet_limit(4_000_000);
        GatesOnly::Race.run(cluster, |host| {
            judged(&run, host.card(), host.soak(&run));
        });
    }
}

fn some_seeds() {
    modelled(0..12);
}

#[test]
fn cards_that_forget_a_request_of_a_pair_that_failed_or_complete_one_twice_are_noticed() {
    assert!(passes_with(Flaw::None, some_seeds));
    for broken in [
        Break::FailureKeepsSends,
        Break::FailureKeepsReceives,
        Break::CompletesTwice,
        Break::SlotStaysTaken,
    ] {
        assert!(!passes_with(Flaw::Gates(broken), some_seeds), "{broken:?}");
    }
}
