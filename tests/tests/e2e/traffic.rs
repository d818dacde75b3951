//! Random traffic, judged from outside; and the judges judged by fabrics that lie.

use abi::wire::FrameType;
use posthorn_tests::cards::{GatesOnly, cards};
use posthorn_tests::frames::{edit, edit_payload, header, is};
use posthorn_tests::side::{Setup, Side};
use posthorn_tests::traffic::{Mix, Record, Wrong, judge, play};
use sim::Cluster;
use sim::fabric::{LinkFilter, Passing};
use sim::seed::BackPressure;

fn traffic(cluster: Cluster, seed: u64, steps: usize, credits: u16) -> Vec<Record> {
    mixed(cluster, seed, Mix::even(steps), credits).0
}

fn mixed(cluster: Cluster, seed: u64, mix: Mix, credits: u16) -> (Vec<Record>, sim::Report) {
    let setup = Setup::with_credits(credits);
    GatesOnly::Race.run(cluster, |host| {
        let mut me = Side::with(&host, setup);
        let record = play(&mut me, seed, mix);
        me.finish();
        record
    })
}

#[track_caller]
fn assert_legal(seed: u64, records: &[Record]) {
    if let Err(wrong) = judge(records) {
        panic!("seed {seed}: {wrong:?}");
    }
}

#[test]
fn random_traffic_matches_in_mpi_order_on_three_cards() {
    let mut seen = Record::default();
    for seed in 31..34 {
        let records = traffic(cards("tiny", 3, seed), seed, 200, 8);
        assert_legal(seed, &records);
        for record in records {
            seen.too_late += record.too_late;
            seen.found += record.found;
            seen.taken.extend(record.taken);
        }
    }
    // The traffic is worth judging.
    assert!(seen.taken.len() > 300, "{} messages", seen.taken.len());
    assert!(seen.found > 0, "no probe found anything");
    assert!(seen.too_late > 0, "no cancel was too late");
}

#[test]
fn random_traffic_matches_in_mpi_order_when_more_receives_are_posted_than_there_is_room_for() {
    for seed in 41..43 {
        let (records, report) = mixed(cards("tiny", 3, seed), seed, Mix::flood(250), 8);
        assert_legal(seed, &records);
        for card in report.cards {
            assert!(card.matching.refused > 2, "seed {seed}: there was room");
        }
        let beyond: usize = records.iter().map(|record| record.taken_beyond).sum();
        assert!(beyond > 20, "seed {seed}: {beyond} messages meanwhile");
    }
}

#[test]
fn random_traffic_matches_in_mpi_order_under_back_pressure_with_few_credits() {
    for (seed, credits) in [(35, 1), (36, 3)] {
        let cluster = cards("tiny", 3, seed).pressure(BackPressure::SOME);
        assert_legal(seed, &traffic(cluster, seed, 120, credits));
    }
}

#[test]
fn random_traffic_matches_in_mpi_order_on_four_larger_cards() {
    let seed = 37;
    let cluster = cards("ecp5", 4, seed).pressure(BackPressure {
        idle: 200,
        longest: 20,
    });
    assert_legal(seed, &traffic(cluster, seed, 120, 8));
}

/// Changes places of neighbours among the messages of a link, and gives each the other's numbers, so that the
/// receiving card can't know.
fn swap_messages() -> impl FnMut(Passing, &mut Vec<Passing>) + Send {
    let mut held: Option<Passing> = None;
    move |passing, out: &mut Vec<Passing>| {
        if !is(&passing, FrameType::Eager) {
            out.push(passing);
            return;
        }
        match held.take() {
            Some(mut first) => {
                let mut second = passing;
                let [a, b] = [&first, &second].map(|p| header(p).expect("whole"));
                for (frame, like) in [(&mut first, b), (&mut second, a)] {
                    edit(frame, |header| {
                        header.sequence = like.sequence;
                        header.acknowledge = like.acknowledge;
                        header.credit = like.credit;
                    });
                }
                out.extend([second, first]);
            }
            // Once in a while: one that nothing follows would be held for ever.
            None if header(&passing).is_some_and(|h| h.sequence % 8 == 2) => held = Some(passing),
            None => out.push(passing),
        }
    }
}

#[test]
fn messages_that_a_fabric_swaps_unseen_are_called_illegal() {
    let seed = 38;
    let mut found = false;
    for link in [(0, 1), (1, 0)] {
        let filter = LinkFilter::between(link.0, link.1);
        let cluster = cards("tiny", 2, seed).tap(filter, swap_messages());
        let records = traffic(cluster, seed, 150, 8);
        found |= matches!(judge(&records), Err(Wrong::Matching(_)));
    }
    assert!(found, "nobody noticed");
}

#[test]
fn a_byte_that_a_fabric_changes_unseen_is_found() {
    let seed = 39;
    let mut left = 1;
    let cluster = cards("tiny", 2, seed).tap(
        LinkFilter::ALL,
        move |mut passing: Passing, out: &mut Vec<Passing>| {
            let long = header(&passing).is_some_and(|header| header.payload_length > 300);
            if long && left > 0 {
                left -= 1;
                edit_payload(&mut passing, 299);
            }
            out.push(passing);
        },
    );
    let records = traffic(cluster, seed, 100, 8);
    assert!(matches!(judge(&records), Err(Wrong::Bytes(_))));
}
