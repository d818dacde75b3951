//! Many messages over links that do everything wrong at once: nobody above the link can tell.

use std::sync::Mutex;

use posthorn::soak::worker::Tally;
use posthorn::soak::{Run, WATCH};
use posthorn_tests::cards::{GatesOnly, cards, modelled_under, passes_with};
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

/// So many messages from each card to each other.
fn run(seed: u64, cards: usize, messages: u64, connected: u64) -> Run {
    Run {
        seed,
        cards,
        messages,
        connected,
        watch: WATCH,
        plan: one_of_a_hundred(),
    }
}

/// At least so many messages on cards of the model, a share of them on each number of cards from 2 to 8.
fn modelled(messages: u64) -> Tally {
    let sum = Mutex::new(Tally::default());
    for cards in 2..=8_usize {
        let pairs = (cards * (cards - 1)) as u64;
        let run = run(cards as u64, cards, (messages / 7).div_ceil(pairs), 100_000);
        // A `tiny` card has 8 pairs.
        modelled_under(&run.plan, "tiny", cards, run.seed, |host| {
            let tally = host.soak(&run);
            let tally = tally.unwrap_or_else(|failure| panic!("{cards} cards: {failure}"));
            sum.lock().unwrap().add(&tally);
        });
    }
    sum.into_inner().expect("no rank has failed")
}

/// All came, and nothing ended in any other way.
#[track_caller]
fn assert_whole(tally: &Tally, messages: u64) {
    assert!(tally.messages >= messages, "{tally:?}");
    assert_eq!(tally.completions[&("receive", "Success")], tally.messages);
    assert!(tally.completions[&("send", "Success")] >= tally.messages);
    assert!(tally.failed.is_empty(), "{tally:?}");
}

#[test]
fn messages_arrive_once_whole_and_in_order_over_links_that_do_everything_wrong() {
    assert_whole(&modelled(200_000), 200_000);
}

#[test]
#[ignore = "takes long"]
fn the_same_with_ten_million_messages() {
    assert_whole(&modelled(10_000_000), 10_000_000);
}

#[test]
fn on_gates_too_messages_arrive_once_whole_and_in_order() {
    let (seed, count) = (5, 3);
    let run = run(seed, count, 100, 100_000);
    let struck = std::sync::Arc::new(Mutex::new(FaultCount::default()));
    let told = struck.clone();
    let faults = Faults::new(&run.plan, seed, "soak");
    let faults = faults.on_finish(move |count| *told.lock().unwrap() = count);
    let cluster = cards("tiny", count, seed).tap(LinkFilter::ALL, faults);
    let (tallies, _) = GatesOnly::Race.run(cluster, |host| host.soak(&run).expect("it is whole"));
    let mut sum = Tally::default();
    tallies.iter().for_each(|tally| sum.add(tally));
    assert_whole(&sum, 600);
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

fn a_few() {
    modelled(3000);
}

#[test]
fn cards_that_take_a_frame_twice_or_unchecked_are_noticed() {
    assert!(passes_with(Flaw::None, a_few));
    for broken in [
        Break::DuplicateTaken,
        Break::CrcIgnored,
        Break::RepeatPassedOver,
    ] {
        assert!(!passes_with(Flaw::Gates(broken), a_few), "{broken:?}");
    }
}
