//! More receives than the card has room for: the program sees nothing of it.

use crate::common::{PATIENCE, Side, cramped};
use host_driver::{PostError, Source, TaggedReceive, WaitError, WcKind, WcStatus};
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Sends `number` with these match bits and waits until it may send again.
fn send(side: &Side, match_bits: u64, number: u64) {
    let send = side.send(match_bits);
    while let Err(error) = side
        .endpoint
        .post_tagged_inject(0, &send, &number.to_le_bytes())
    {
        assert_eq!(error, PostError::InjectBusy);
        assert_eq!(side.cq.wait(500).unwrap_err(), WaitError::Timeout);
    }
}

#[test]
pub fn receives_of_one_kind_are_matched_in_the_order_that_they_were_posted_in() {
    for posted in [1, 3, 8] {
        let (a, mut b) = cramped(posted, 4);
        let receive = b.receive(7);
        for k in 0..40 {
            b.post(k, &receive);
        }
        for k in 0..40 {
            send(&a, 7, k);
            let received = b.next();
            assert_eq!((received.wr_id, received.status), (k, WcStatus::Success));
            assert_eq!(received.received(), k.to_le_bytes());
        }
        assert_eq!(b.cq.strays(), 0);
    }
}

#[test]
fn messages_in_the_reverse_order_find_their_receives_with_one_credit() {
    let (a, mut b) = cramped(4, 1);
    for k in 0..60 {
        let receive = b.receive(k);
        b.post(k, &receive);
    }
    for k in (0..60).rev() {
        send(&a, k, k);
        let received = b.next();
        assert_eq!((received.wr_id, received.status), (k, WcStatus::Success));
    }
}

#[test]
pub fn a_receive_never_overtakes_one_that_is_kept() {
    for seed in 0..20 {
        println!("seed {seed}");
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (a, mut b) = cramped(rng.random_range(1..6), rng.random_range(1..9));
        // Every receive takes tag 0 or 1 or both; the oldest that does has to get each message.
        let mut open: Vec<(u64, u64, u64)> = vec![];
        let mut next = 0;
        let mut number = 0;
        for _ in 0..200 {
            if rng.random_ratio(3, 5) && open.len() < 60 {
                let (bits, ignore) = [(0, 0), (1, 0), (0, 1)][rng.random_range(0..3)];
                let receive = TaggedReceive {
                    ignore_bits: ignore,
                    source: [Source::Any, Source::Pair(b.pair)][rng.random_range(0..2)],
                    ..b.receive(bits)
                };
                b.post(next, &receive);
                open.push((next, bits, ignore));
                next += 1;
            } else {
                let tag = rng.random_range(0..2);
                let oldest = open.iter().position(|o| (o.1 ^ tag) & !o.2 == 0);
                let Some(at) = oldest else { continue };
                // All that was posted before is with the card or kept when the message comes.
                b.pause(20_000);
                send(&a, tag, number);
                let received = b.next();
                assert_eq!(
                    (received.wr_id, received.status),
                    (open[at].0, WcStatus::Success)
                );
                assert_eq!(received.received(), number.to_le_bytes());
                open.remove(at);
                number += 1;
            }
        }
        assert!(number > 40);
    }
}

#[test]
fn what_is_kept_can_be_cancelled() {
    let (a, mut b) = cramped(2, 4);
    let receive = b.receive(7);
    let requests: Vec<_> = (0..20).map(|k| (k, b.post(k, &receive))).collect();
    let mut cancelled = requests.clone();
    cancelled.shuffle(&mut ChaCha8Rng::seed_from_u64(1));
    cancelled.truncate(10);
    for (k, request) in &cancelled {
        b.endpoint.cancel(100, *request).unwrap();
        let completion = b.next();
        assert_eq!(
            (completion.wr_id, completion.kind, completion.status),
            (*k, WcKind::Receive, WcStatus::Cancelled)
        );
        assert_eq!(completion.buffer.unwrap().len(), 8);
    }
    for request in requests.iter().filter(|r| !cancelled.contains(r)) {
        send(&a, 7, request.0);
        let received = b.next();
        assert_eq!(
            (received.wr_id, received.status),
            (request.0, WcStatus::Success)
        );
    }
    assert_eq!(b.cq.outstanding(), 0);
}

#[test]
fn a_probe_sees_nothing_that_a_receive_in_front_of_it_has_a_claim_to() {
    let (a, mut b) = cramped(1, 4);
    for k in 0..5 {
        let receive = b.receive(k);
        b.post(k, &receive);
    }
    send(&a, 3, 0);
    send(&a, 9, 1);
    b.pause(5000);
    b.endpoint.probe(10, &b.receive(3)).unwrap();
    b.endpoint.probe(11, &b.receive(9)).unwrap();
    let mut seen: Vec<_> = (0..3)
        .map(|_| b.next())
        .map(|c| (c.wr_id, c.status))
        .collect();
    seen.sort_unstable();
    let wanted = [
        (3, WcStatus::Success),
        (10, WcStatus::NoMessage),
        (11, WcStatus::Success),
    ];
    assert_eq!(seen, wanted);
}

#[test]
fn what_is_kept_ends_as_its_pair_does() {
    for (peer, status) in [(true, WcStatus::PeerFailed), (false, WcStatus::Flushed)] {
        let (a, mut b) = cramped(2, 4);
        let any = TaggedReceive {
            source: Source::Any,
            ..b.receive(1)
        };
        for k in 0..2 {
            b.post(k, &any);
        }
        let receive = b.receive(7);
        for k in 2..12 {
            b.post(k, &receive);
        }
        b.pause(5000);
        match peer {
            true => a.endpoint.close_pair(a.pair).unwrap(),
            false => b.endpoint.close_pair(b.pair).unwrap(),
        }
        let mut ended = vec![];
        while ended.len() < 10 {
            match b.cq.wait(PATIENCE) {
                Ok(completion) => {
                    assert_eq!(completion.status, status);
                    ended.push(completion.wr_id);
                }
                Err(error) => assert_eq!(error, WaitError::Interrupted),
            }
        }
        ended.sort_unstable();
        assert_eq!(ended, Vec::from_iter(2..12));
        assert_eq!(b.cq.outstanding(), 2);
    }
}

#[test]
fn closing_an_endpoint_flushes_what_is_kept() {
    let (_a, mut b) = cramped(2, 4);
    let receive = b.receive(7);
    for k in 0..30 {
        b.post(k, &receive);
    }
    b.endpoint.close().unwrap();
    let mut flushed: Vec<_> = std::iter::from_fn(|| b.cq.poll())
        .map(|completion| {
            assert_eq!(completion.status, WcStatus::Flushed);
            assert_eq!(completion.buffer.unwrap().len(), 8);
            completion.wr_id
        })
        .collect();
    flushed.sort_unstable();
    assert_eq!(flushed, Vec::from_iter(0..30));
    assert_eq!((b.cq.outstanding(), b.cq.strays()), (0, 0));
}

#[test]
fn a_list_ring_that_is_smaller_than_what_is_kept_is_fed_while_the_program_sleeps() {
    let (a, mut b) = cramped(100, 1);
    // The card's list is full of receives of one kind, and 150 of another kind are kept.
    let first = b.receive(1);
    for k in 0..100 {
        b.post(k, &first);
    }
    for k in 100..250 {
        let receive = b.receive(k);
        b.post(k, &receive);
    }
    for k in 0..100 {
        send(&a, 1, k);
        assert_eq!(b.next().wr_id, k);
    }
    for k in (100..250).rev() {
        send(&a, k, k);
        assert_eq!(b.next().wr_id, k);
    }
}
