//! Many messages, puts, gets and signals over links that do everything wrong at once: nobody above the link can tell.

use std::sync::Mutex;

use firmware_core::Break as Promise;
use posthorn::soak::worker::{Goal, Tally};
use posthorn::soak::{Run, WATCH};
use posthorn_tests::cards::{CONNECTED, GatesOnly, cards, modelled_under, passes_with};
use sim::fabric::LinkFilter;
use sim::fault::{FaultCount, FaultPlan, Faults, LinkFault};
use soft_card::{Break, Flaw};

/// One frame of a hundred is lost, one repeated, one changed, one found bad by its MAC and one late enough for others to overtake it.
fn one_of_a_hundred() -> FaultPlan {
    FaultPlan::always(LinkFault {
        lose: 0.01,
        corrupt: 0.01,
        bad: 0.01,
        repeat: 0.01,
        late: 0.01,
        late_by: 2000,
        ..LinkFault::default()
    })
}

/// So much from each card to each other.
fn run(seed: u64, cards: usize, goal: Goal, connected: u64) -> Run {
    Run {
        seed,
        cards,
        goal,
        connected,
        watch: WATCH,
        plan: one_of_a_hundred(),
    }
}

/// At least so much on cards of the model, a share of it on each number of cards from 2 to 8, by other seeds in each round.
fn modelled(goal: Goal, round: u64) -> Tally {
    let sum = Mutex::new(Tally::default());
    for cards in 2..=8_usize {
        let pairs = (cards * (cards - 1)) as u64;
        let share = |all: u64| (all / 7).div_ceil(pairs);
        let goal = Goal {
            messages: share(goal.messages),
            accesses: share(goal.accesses),
            signals: share(goal.signals),
        };
        let run = run(10 * round + cards as u64, cards, goal, 100_000);
        // A `tiny` card has 8 pairs.
        modelled_under(&run.plan, "tiny", cards, run.seed, |host| {
            let tally = host.soak(&run);
            let tally = tally.unwrap_or_else(|failure| panic!("{cards} cards: {failure}"));
            sum.lock().unwrap().add(&tally);
        });
    }
    sum.into_inner().expect("no rank has failed")
}

/// With so many messages.
const fn with(messages: u64) -> Goal {
    Goal {
        messages,
        accesses: messages / 4,
        signals: messages / 200,
    }
}

/// All came, and nothing ended in any other way.
#[track_caller]
fn assert_whole(tally: &Tally, goal: Goal) {
    assert!(tally.messages >= goal.messages, "{tally:?}");
    assert!(tally.puts + tally.gets >= goal.accesses, "{tally:?}");
    assert!(tally.gets >= goal.accesses / 4, "{tally:?}");
    assert!(tally.signals >= goal.signals, "{tally:?}");
    let succeeded = |kind| {
        tally
            .completions
            .get(&(kind, "Success"))
            .copied()
            .unwrap_or(0)
    };
    for (kind, count) in [
        ("receive", tally.messages),
        ("put", tally.puts),
        ("get", tally.gets),
    ] {
        assert_eq!(succeeded(kind), count, "{kind}");
    }
    assert!(succeeded("send") >= tally.messages, "{tally:?}");
    let others = |&&(kind, status): &&(&str, &str)| {
        status != "Success" && !["receive", "cancel"].contains(&kind)
    };
    let failed = tally.completions.keys().find(others);
    assert!(failed.is_none() && tally.failed.is_empty(), "{tally:?}");
}

#[test]
fn all_arrives_once_whole_and_in_order_over_links_that_do_everything_wrong() {
    assert_whole(&modelled(with(200_000), 0), with(200_000));
}

#[test]
#[ignore = "takes long"]
fn the_same_with_ten_million_messages() {
    for round in 1..=50 {
        assert_whole(&modelled(with(200_000), round), with(200_000));
    }
}

#[test]
fn on_gates_too_all_arrives_once_whole_and_in_order() {
    let (seed, count) = (5, 3);
    let goal = Goal {
        messages: 100,
        accesses: 50,
        signals: 3,
    };
    let run = run(seed, count, goal, CONNECTED);
    let struck = std::sync::Arc::new(Mutex::new(FaultCount::default()));
    let told = struck.clone();
    let faults = Faults::new(&run.plan, seed, "soak");
    let faults = faults.on_finish(move |count| *told.lock().unwrap() = count);
    let cluster = cards("tiny", count, seed).tap(LinkFilter::ALL, faults);
    let (tallies, _) = GatesOnly::Race.run(cluster, |host| host.soak(&run).expect("it is whole"));
    let mut sum = Tally::default();
    tallies.iter().for_each(|tally| sum.add(tally));
    let pairs = 6;
    let all = Goal {
        messages: pairs * goal.messages,
        accesses: pairs * goal.accesses,
        signals: pairs * goal.signals,
    };
    assert_whole(&sum, all);
    let FaultCount {
        lost,
        corrupted,
        bad,
        repeated,
        late,
        ..
    } = *struck.lock().unwrap();
    for count in [lost, corrupted, bad, repeated, late] {
        assert!(count > 3, "a fault hardly struck");
    }
}

fn a_few_messages() {
    let messages = 3000;
    let goal = Goal {
        messages,
        ..Goal::default()
    };
    modelled(goal, 0);
}

fn a_few_accesses() {
    let accesses = 3000;
    let goal = Goal {
        accesses,
        ..Goal::default()
    };
    modelled(goal, 0);
}

fn a_few_signals() {
    let signals = 1500;
    let goal = Goal {
        signals,
        ..Goal::default()
    };
    modelled(goal, 0);
}

/// Each of these flaws is noticed by a test that passes without.
fn noticed(test: fn(), flaws: &[Flaw]) {
    assert!(passes_with(Flaw::None, test));
    for &flaw in flaws {
        assert!(!passes_with(flaw, test), "{flaw:?}");
    }
}

#[test]
fn cards_that_take_a_frame_twice_or_unchecked_are_noticed() {
    let flaws = [
        Break::DuplicateTaken,
        Break::CrcIgnored,
        Break::RepeatPassedOver,
    ];
    noticed(a_few_messages, &flaws.map(Flaw::Gates));
}

#[test]
fn cards_that_lose_a_put_or_an_answer_or_get_a_byte_wrong_are_noticed() {
    let flaws = [
        // The put behind the one that is taken twice is taken for a repetition.
        Break::DuplicateTaken,
        Break::CrcIgnored,
        Break::RepeatPassedOver,
        Break::PutOffsetIgnored,
        Break::GetOffsetIgnored,
        Break::GetEndsUnanswered,
        Break::GetAnsweredOnce,
    ];
    let mut flaws = flaws.map(Flaw::Gates).to_vec();
    flaws.push(Flaw::WritesLate);
    noticed(a_few_accesses, &flaws);
}

/// A question for a sign of life comes while a signal is under way only if much else is silent: the links of this run carry nothing but signals.
#[test]
fn cards_that_lose_a_signal_or_bring_one_twice_are_noticed() {
    let flaws = [
        Promise::NoticeNotRepeated,
        Promise::SignalRepeated,
        Promise::AliveNumbered,
    ];
    noticed(a_few_signals, &flaws.map(Flaw::Firmware));
}
