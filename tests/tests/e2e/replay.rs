//! Recorded applications on cards: small pieces, and of one as much as has wildcards; whole ones with `--long`.

use posthorn::replay::{Options, PlayError, Played, Shared, play, run as replay};
use posthorn::summary::Summary;
use posthorn::trace::Call;
use posthorn_tests::cards::{PROCESSORS, cards, firmware};
use posthorn_tests::cut::cut;
use posthorn_tests::frames::{edit_payload, header, number};
use sim::fabric::{LinkFilter, Passing};
use sim::fault::{FaultPlan, LinkFault};
use sim::seed::BackPressure;
use std::path::Path;
use std::sync::Arc;

/// Shares of the time of each application that are replayed: some 200 messages.
const MINIFE: f64 = 0.08;
const LULESH: f64 = 0.02;
const COMD: f64 = 0.04;
const HPCG: f64 = 0.22;

fn options(config: &str, seed: u64) -> Options {
    Options {
        config: config.into(),
        seed,
        pressure: BackPressure::NONE,
        faults: FaultPlan::default(),
        processors: PROCESSORS,
        threads: None,
        pcap: None,
        waves: None,
        cancel: Arc::default(),
    }
}

fn assert_replays(app: &str, config: &str, share: f64) -> Summary {
    assert_replays_with(app, share, &options(config, 131))
}

fn assert_replays_with(app: &str, share: f64, options: &Options) -> Summary {
    let trace = cut(app, share);
    let replayed = replay(&trace, firmware(), options, &Shared::default());
    let replayed = replayed.expect("it begins");
    assert_eq!(replayed.failures, Vec::<String>::new(), "{app}");
    let summary = replayed.summary;
    assert!(summary.complete, "{app}");
    assert_eq!(summary.matching, "legal", "{app}");
    let sends = trace.ranks.iter().flatten();
    let sends = sends.filter(|event| matches!(event.call, Call::Send { .. }));
    assert!(summary.messages > 50, "{app}: {}", summary.messages);
    assert!(summary.messages <= sends.count() as u64, "{app}");
    summary
}

#[test]
fn minife_with_its_first_wildcards_replays_legally() {
    // The first is behind 18 % of its time.
    const SHARE: f64 = 0.2;
    let all = cut("minife", SHARE).ranks;
    let of_any = |call: &Call| matches!(call, Call::Receive { source: None, .. });
    let wildcards = all.iter().flatten().filter(|event| of_any(&event.call));
    assert!(wildcards.count() > 10);
    assert_replays("minife", "tiny", SHARE);
}

#[test]
#[ignore = "minutes of simulation: `cargo xtask test --long`"]
fn all_of_minife_with_its_wildcards_replays_legally() {
    let summary = assert_replays("minife", "tiny", 1.0);
    // Its tagged receives, as the README of the traces counts them.
    assert_eq!(summary.messages, 9_524);
}

#[test]
fn the_start_of_lulesh_replays_legally() {
    assert_replays("lulesh", "tiny", LULESH);
}

#[test]
fn the_start_of_comd_replays_legally_with_its_long_messages_clipped() {
    let summary = assert_replays("comd", "tiny", COMD);
    assert!(summary.clipped.messages > 0);
}

#[test]
fn the_start_of_hpcg_replays_legally_on_the_larger_card() {
    assert_replays("hpcg", "ecp5", HPCG);
}

#[test]
fn under_back_pressure_the_seed_decides_each_cycle_and_matching_stays_legal() {
    let trace = cut("minife", MINIFE);
    let cycles = |seed| {
        let options = Options {
            pressure: BackPressure::SOME,
            ..options("tiny", seed)
        };
        let replayed = replay(&trace, firmware(), &options, &Shared::default()).expect("it begins");
        assert_eq!(replayed.failures, Vec::<String>::new(), "seed {seed}");
        assert_eq!(replayed.summary.matching, "legal", "seed {seed}");
        replayed.summary.cycles
    };
    assert_eq!(cycles(7), cycles(7), "the same seed");
}

/// Plays a piece of a trace over a fabric with a tap.
fn tapped(tap: impl FnMut(Passing, &mut Vec<Passing>) + Send + 'static) -> Vec<Played> {
    let trace = cut("minife", MINIFE);
    let ranks = trace.ranks.len();
    let shared = Shared::default();
    let outcome = cards("tiny", ranks, 132)
        .tap(LinkFilter::ALL, tap)
        .cycle_limit(1_000_000)
        .run(|host| {
            let rank = host.card();
            let transport = Arc::new(host.transport());
            play(transport, &host, rank, ranks, &trace.ranks[rank], &shared)
        });
    outcome.hosts.into_iter().flatten().collect()
}

#[test]
fn a_byte_changed_unseen_makes_a_replay_fail() {
    let mut left = 1;
    let played = tapped(move |mut passing, out| {
        if left > 0 && header(&passing).is_some_and(|header| header.payload_length >= 8) {
            left -= 1;
            edit_payload(&mut passing, 5);
        }
        out.push(passing);
    });
    let wrong = |played: &Played| matches!(&played.error, Some(PlayError::Wrong { reason, .. }) if reason.contains("byte 5"));
    assert!(played.iter().any(wrong), "nobody noticed");
}

#[test]
fn messages_that_overtake_each_other_on_the_link_are_received_in_order() {
    // Now and then a message is late, and if another one follows soon it is overtaken.
    let mut messages = 0;
    let played = tapped(move |mut passing, out| {
        if number(&passing).is_some() {
            messages += 1;
            if messages % 5 == 0 {
                passing.delay += 3000;
            }
        }
        out.push(passing);
    });
    for (rank, played) in played.iter().enumerate() {
        assert!(played.error.is_none(), "rank {rank}: {:?}", played.error);
    }
}

/// A replay over links that lose, change, repeat and delay frames, some for a time more than others, by a plan drawn from the seed.
/// A short piece has few frames: `more` strikes more of them than the plan does.
fn assert_replays_over_rough_links(
    app: &str,
    config: &str,
    share: f64,
    seed: u64,
    more: Option<LinkFault>,
) {
    let mut plan = FaultPlan::random(seed, cut(app, share).ranks.len(), 0..100_000);
    plan.faults.extend(more);
    let options = Options {
        faults: plan,
        ..options(config, seed)
    };
    let summary = assert_replays_with(app, share, &options);
    let faults = summary.faults.expect("there is a plan");
    assert!(faults.lost > 0 && faults.late > 0, "{app}: {faults:?}");
    let struck = faults.corrupted > 0 && faults.repeated > 0;
    assert!(struck, "{app}: {faults:?}");
}

#[test]
fn pieces_of_recorded_applications_replay_legally_over_rough_links() {
    let more = Some(LinkFault {
        lose: 0.02,
        corrupt: 0.02,
        repeat: 0.02,
        late: 0.02,
        late_by: 2_000,
        ..LinkFault::default()
    });
    assert_replays_over_rough_links("minife", "tiny", MINIFE, 133, more);
    assert_replays_over_rough_links("comd", "tiny", COMD, 134, more);
}

#[test]
#[ignore = "minutes of simulation: `cargo xtask test --long`"]
fn every_recorded_application_replays_legally_over_rough_links() {
    for (app, seed) in ["comd", "hpcg", "lulesh", "minife"].into_iter().zip(135..) {
        assert_replays_over_rough_links(app, "ecp5", 1.0, seed, None);
    }
}

#[test]
#[ignore = "a minute of simulation: `cargo xtask test --long`"]
fn every_recorded_application_replays_at_its_full_rank_count() {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../traces");
    let report = posthorn::bench::traces::run(&traces, "ecp5", 1, &firmware()).expect("complete");
    let messages = report
        .points
        .iter()
        .filter(|point| point.name == "messages");
    let messages: Vec<f64> = messages.map(|point| point.value).collect();
    // CoMD, HPCG, LULESH, miniFE: the tagged receives that the README of the traces counts.
    assert_eq!(messages, [5_911.0, 39_576.0, 33_111.0, 9_524.0]);
}
