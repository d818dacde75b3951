//! Cancels of sends: a send that waits for credit can be called back, one that has had its turn can't.

use abi::completion::CompletionKind;
use abi::status::Status;
use host_driver::{Counter, PostError, WcKind, WcStatus};
use posthorn_tests::cards::{GatesOnly, both, cards};
use posthorn_tests::raw::{LoopbackEndpoint, RawHost};
use posthorn_tests::side::{Setup, Side};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[test]
fn sends_that_wait_for_credit_are_cancelled_at_once_and_the_others_keep_their_order() {
    both("tiny", 2, 91, |host| {
        let setup = Setup::with_credits(2);
        let mut me = Side::with(&host, setup);
        if me.rank() == 0 {
            let sends: Vec<_> = (0..8).map(|k| me.send(1, 5, k, 40)).collect();
            let expected: Vec<_> = (0..2).map(|k| (k, WcStatus::Success)).collect();
            assert_eq!(me.statuses(2), expected);
            assert_eq!(me.pair_status(1).waiting, 6);
            // The first of the queue, one in its middle, the last: nobody returns a credit meanwhile.
            for (k, waiting) in [(2, 5), (4, 4), (7, 3)] {
                me.endpoint.cancel(100 + k, sends[k as usize]).unwrap();
                let cancelled = me.completion();
                let seen = (cancelled.wr_id, cancelled.kind, cancelled.status);
                assert_eq!(seen, (k, WcKind::Send, WcStatus::Cancelled));
                assert_eq!(cancelled.buffer.expect("it comes back").len(), 40);
                assert_eq!(me.pair_status(1).waiting, waiting);
                let again = me.endpoint.cancel(200, sends[k as usize]);
                assert_eq!(again.unwrap_err(), PostError::NothingToCancel);
            }
            assert_eq!(me.cq.outstanding(), 3, "the cancels are over");
            me.assert_silent(10_000);
            // There is room in the pair's queue again.
            me.send(1, 5, 8, 40);
            me.meet();
            let expected = [3, 5, 6, 8].map(|k| (k, WcStatus::Success));
            assert_eq!(me.statuses(4), expected);
            assert_eq!(me.pair_status(1).waiting, 0);
            assert_eq!(me.count(Counter::InvalidRequests), 0);
        } else {
            me.meet();
            for k in [0, 1, 3, 5, 6, 8] {
                me.receive(k, Some(0), 5, 40);
                let received = me.completion();
                me.assert_received(&received, 0, k, 40);
            }
        }
        me.meet();
        me.finish();
    });
}

#[test]
fn of_a_cancel_and_a_credit_that_returns_exactly_one_comes_first() {
    const ROUNDS: u64 = 12;
    const SENDS: u64 = 6;
    let outcomes: Arc<[AtomicU64; 2]> = Default::default();
    for seed in 0..6 {
        let outcomes = outcomes.clone();
        GatesOnly::Race.run(cards("tiny", 2, 9200 + seed), move |host| {
            let mut rng = ChaCha8Rng::seed_from_u64(2 * seed + host.card() as u64);
            let setup = Setup::with_credits(1);
            let mut me = Side::with(&host, setup);
            for round in 0..ROUNDS {
                let first = SENDS * round;
                if me.rank() == 1 {
                    for k in 0..SENDS {
                        me.pause(rng.random_range(1..1500));
                        me.receive(first + k, Some(0), round, 32);
                    }
                    let told = me.host.all_gather(Vec::new()).expect("all ranks meet");
                    for (k, &number) in told[0].iter().enumerate() {
                        let received = me.completion();
                        assert_eq!(received.wr_id, first + k as u64);
                        me.assert_received(&received, 0, u64::from(number), 32);
                    }
                    me.discard_receives();
                    continue;
                }
                let requests: Vec<_> = (0..SENDS)
                    .map(|k| me.send(1, round, first + k, 32))
                    .collect();
                me.pause(rng.random_range(1..4000));
                let mut cancels = Vec::new();
                for (k, request) in requests.into_iter().enumerate() {
                    if rng.random() {
                        let wr_id = 1000 + first + k as u64;
                        me.endpoint.cancel(wr_id, request).expect("not polled for");
                        cancels.push(first + k as u64);
                        me.pause(rng.random_range(1..700));
                    }
                }
                let (mut sent, mut late) = (Vec::new(), Vec::new());
                let mut cancelled = Vec::new();
                while me.cq.outstanding() > 0 {
                    let completion = me.completion();
                    match (completion.kind, completion.status) {
                        (WcKind::Send, WcStatus::Success) => sent.push(completion.wr_id),
                        (WcKind::Send, WcStatus::Cancelled) => cancelled.push(completion.wr_id),
                        (WcKind::Cancel, WcStatus::TooLate) => late.push(completion.wr_id - 1000),
                        _ => panic!("seed {seed}, round {round}: {completion:?}"),
                    }
                }
                let mut all = [sent.clone(), cancelled.clone()].concat();
                all.sort_unstable();
                let posted: Vec<_> = (first..first + SENDS).collect();
                assert_eq!(all, posted, "seed {seed}, round {round}: each once");
                let mut answered = [late.clone(), cancelled.clone()].concat();
                answered.sort_unstable();
                assert_eq!(
                    answered, cancels,
                    "seed {seed}, round {round}: one or other"
                );
                assert!(late.iter().all(|number| sent.contains(number)));
                outcomes[0].fetch_add(cancelled.len() as u64, Ordering::Relaxed);
                outcomes[1].fetch_add(late.len() as u64, Ordering::Relaxed);
                let numbers = sent.iter().map(|&number| number as u8).collect();
                me.host.all_gather(numbers).expect("all ranks meet");
            }
            me.meet();
            assert_eq!(me.pair_status(1 - me.rank()).available, 1);
            me.finish();
        });
    }
    let [cancelled, late] = [0, 1].map(|k| outcomes[k].load(Ordering::Relaxed));
    println!("{cancelled} cancelled, {late} too late");
    assert!(
        cancelled > 40 && late > 40,
        "{cancelled} and {late}: no race"
    );
}

#[test]
pub(crate) fn a_cancel_in_time_gives_its_completion_entry_back() {
    both("tiny", 1, 93, |host| {
        let host = RawHost::new(&host);
        let mut loopback = LoopbackEndpoint::open(&host);
        for request in 0..4 {
            loopback
                .endpoint
                .post_send(loopback.send(7, request, 8).to_words());
            assert_eq!(loopback.status(), (request, Status::Success));
        }
        // No credit is left. The queue has 16 entries: 40 that are lost would be noticed.
        for request in (100..180).step_by(2) {
            let cancel = loopback.cancel_send(request + 1, request);
            loopback
                .endpoint
                .post_send(loopback.send(7, request, 8).to_words());
            loopback.endpoint.post_send(cancel.to_words());
            let entry = loopback.endpoint.completion();
            let kind = CompletionKind::Send.code();
            let seen = (entry.request, entry.status, entry.kind);
            assert_eq!(seen, (request, Status::Cancelled.code(), kind));
            assert_eq!(entry.pair, loopback.pair);
        }
        for request in 200..204 {
            loopback
                .endpoint
                .post_list(loopback.receive(7, request, 8).to_words());
            assert_eq!(loopback.status(), (request, Status::Success));
        }
        loopback.assert_works();
    });
}
