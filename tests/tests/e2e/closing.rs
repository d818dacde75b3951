//! Closing with things outstanding: each ends once, and the next incarnation knows nothing of the last.

use abi::control::Counter;
use abi::times::ACKNOWLEDGE_TIMEOUT;
use abi::wire::FrameType;
use host_driver::{Cause, WcKind, WcStatus};
use posthorn_tests::cards::{both, both_over};
use posthorn_tests::frames::{header, is, number};
use posthorn_tests::side::{Setup, Side};
use posthorn_tests::wires::{Tally, Wires};
use sim::fabric::{LinkFilter, Passing};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

#[test]
pub fn closing_an_endpoint_ends_each_request_once_and_the_next_one_gets_no_stale_frame() {
    // The first message of the old incarnation comes again before each of the new one.
    let (replayed, epochs) = (Tally::default(), Tally::default());
    let tap = || {
        let (replayed, epochs) = (replayed.next(), epochs.next());
        let mut old: Option<Passing> = None;
        move |passing: Passing, out: &mut Vec<Passing>| {
            match (number(&passing), &old) {
                (Some(0), None) => old = Some(passing.clone()),
                (Some(100..), Some(old)) => {
                    let epoch = |p: &Passing| u64::from(header(p).expect("whole").source_epoch);
                    epochs.fetch_max(epoch(&passing) - epoch(old), Ordering::Relaxed);
                    replayed.fetch_add(1, Ordering::Relaxed);
                    out.push(old.clone());
                }
                _ => {}
            }
            out.push(passing);
        }
    };
    both_over(
        "tiny",
        2,
        121,
        || Wires::tapped(LinkFilter::between(0, 1), tap()),
        |host| {
            let mut me = Side::with(&host, Setup::with_credits(4));
            if me.rank() == 0 {
                for number in 0..8 {
                    me.send(1, 5, number, 50);
                }
                for k in 20..23 {
                    me.receive(k, Some(1), 5, 50);
                }
                me.receive(23, None, 5, 50);
                let delivered: Vec<_> = (0..4).map(|k| (k, WcStatus::Success)).collect();
                assert_eq!(me.statuses(4), delivered);
                let queue = me.reopen();
                let mut flushed: Vec<u64> = std::iter::from_fn(|| queue.poll())
                    .map(|wc| {
                        assert_eq!(wc.status, WcStatus::Flushed, "{wc:?}");
                        assert!(wc.buffer.is_some(), "it comes back");
                        wc.wr_id
                    })
                    .collect();
                flushed.sort_unstable();
                assert_eq!(flushed, [4, 5, 6, 7, 20, 21, 22, 23]);
                assert_eq!((queue.outstanding(), queue.strays()), (0, 0));
            }
            me.meet();
            if me.rank() == 1 {
                // What had arrived is the receiver's.
                for k in 0..3 {
                    me.receive(k, Some(0), 5, 50);
                    let received = me.completion();
                    me.assert_received(&received, 0, k, 50);
                }
                // The fourth goes with the pair; so does a receive that names it, but not one from anybody. The pair
                // has failed with its peer, so that is what the receive is told.
                me.receive(10, Some(0), 6, 50);
                me.receive(11, None, 7, 50);
                me.disconnect(0);
                assert_eq!(me.statuses(1), [(10, WcStatus::PeerFailed)]);
                // The closing told this side.
                let events = me.events();
                assert_eq!(events.len(), 1, "{events:?}");
                assert_eq!(events[0].cause, Cause::PeerFailed);
            }
            me.connect();
            if me.rank() == 0 {
                for number in 100..108 {
                    me.send(1, 7, number, 50);
                    assert_eq!(me.statuses(1), [(number, WcStatus::Success)]);
                }
                me.meet();
            } else {
                let received = me.completion();
                assert_eq!(received.wr_id, 11);
                me.assert_received(&received, 0, 100, 50);
                for number in 101..108 {
                    me.receive(number, Some(0), 7, 50);
                    let received = me.completion();
                    me.assert_received(&received, 0, number, 50);
                }
                me.meet();
                assert_eq!(me.count(Counter::PairErrors), 8, "each stale frame is told");
                me.endpoint.probe(1, &me.filter(None, 0, u64::MAX)).unwrap();
                assert_eq!(me.statuses(1), [(1, WcStatus::NoMessage)]);
            }
            me.finish();
        },
    );
    assert_eq!(replayed.counts(), [8, 8]);
    assert_eq!(epochs.counts(), [1, 1], "the epoch has risen");
}

#[test]
fn closing_a_pair_flushes_what_hangs_on_it_and_nothing_else() {
    both("tiny", 3, 122, |host| {
        let mut me = Side::with(&host, Setup::with_credits(4));
        if me.rank() == 0 {
            for number in 0..6 {
                me.send(1, 5, number, 8);
            }
            me.receive(10, Some(1), 5, 8);
            me.receive(11, Some(2), 5, 8);
            me.receive(12, None, 6, 8);
            let delivered: Vec<_> = (0..4).map(|k| (k, WcStatus::Success)).collect();
            assert_eq!(me.statuses(4), delivered);
            me.disconnect(1);
            let mut flushed = me.statuses(3);
            flushed.sort_unstable_by_key(|(name, _)| *name);
            let expected = [4, 5, 10].map(|name| (name, WcStatus::Flushed));
            assert_eq!(flushed, expected);
            me.meet();
            for (name, number) in [(11, 0), (12, 1)] {
                let received = me.completion();
                assert_eq!(received.wr_id, name);
                me.assert_received(&received, 2, number, 8);
            }
        } else {
            me.meet();
            if me.rank() == 2 {
                for (number, tag) in [(0, 5), (1, 6)] {
                    me.send(0, tag, number, 8);
                    me.statuses(1);
                }
            }
        }
        me.meet();
        if me.rank() == 1 {
            let events = me.events();
            assert_eq!(events.len(), 1, "the other side is told: {events:?}");
            assert_eq!(events[0].cause, Cause::PeerFailed);
        }
        me.finish();
    });
}

#[test]
fn endpoints_open_and_close_as_often_as_one_likes() {
    both("tiny", 1, 123, |host| {
        let setup = Setup {
            credits: 16,
            to_self: true,
            ..Setup::default()
        };
        let mut me = Side::with(&host, setup);
        for round in 0..6 {
            // Leave something behind in every list and queue.
            me.send(0, 1, 100 + round, 8);
            assert_eq!(me.statuses(1), [(100 + round, WcStatus::Success)]);
            me.receive(1, None, 2, 8);
            let queue = me.reopen();
            assert_eq!(queue.poll().map(|wc| wc.status), Some(WcStatus::Flushed));
            me.connect();
            me.receive(2, None, 1, 8);
            me.send(0, 1, round, 8);
            let mut both = [me.completion(), me.completion()];
            both.sort_unstable_by_key(|wc| wc.kind != WcKind::Receive);
            me.assert_received(&both[0], 0, round, 8);
        }
        me.finish();
    });
}

/// Nothing is acknowledged, so that all that has left is sent again and again, until it can't be. A frame sent from a buffer that the program has got back
/// would carry what the program has written there since.
#[test]
fn what_was_cancelled_or_closed_is_never_sent_again() {
    let (repeated, late) = (Tally::default(), Tally::default());
    // Of the run that is under way: the pair is closed.
    let closed = Mutex::new(Arc::new(AtomicBool::new(false)));
    let wires = || {
        let (repeated, late) = (repeated.next(), late.next());
        let ended = Arc::new(AtomicBool::new(false));
        *closed.lock().expect("nobody panics with it") = Arc::clone(&ended);
        let mut left = [0; 2];
        let sent = move |passing: Passing, out: &mut Vec<Passing>| {
            let cookie = header(&passing).expect("a whole frame").cookie;
            if ended.load(Ordering::SeqCst) && !is(&passing, FrameType::PairClosed) {
                late.fetch_add(1, Ordering::Relaxed);
            }
            match number(&passing) {
                None => {}
                Some(number @ 0..2) => {
                    left[number as usize] += 1;
                    if left[number as usize] > 1 {
                        repeated.fetch_add(1, Ordering::Relaxed);
                    }
                }
                Some(number) => panic!("message {number} of {cookie:#x} has left without a credit"),
            }
            out.push(passing);
        };
        Wires::tapped(LinkFilter::between(0, 1), sent).tap(
            LinkFilter::between(1, 0),
            |_: Passing, _: &mut Vec<Passing>| {},
        )
    };
    both_over("tiny", 2, 124, wires, |host| {
        let mut me = Side::with(&host, Setup::with_credits(2));
        if me.rank() == 0 {
            let requests: Vec<_> = (0..4).map(|number| me.send(1, 5, number, 50)).collect();
            me.pause(20 * u64::from(ACKNOWLEDGE_TIMEOUT));
            // The first two have left, so that only the pair's end ends them.
            let cancelled = me.endpoint.cancel(10, requests[0]);
            cancelled.expect("there is room");
            assert_eq!(me.statuses(1), [(10, WcStatus::TooLate)]);
            me.endpoint.cancel(11, requests[2]).expect("there is room");
            let mut ended = vec![me.completion()];
            assert_eq!((ended[0].wr_id, ended[0].status), (2, WcStatus::Cancelled));
            me.disconnect(1);
            let closed = closed.lock().expect("nobody panics with it");
            closed.store(true, Ordering::SeqCst);
            ended.extend((0..3).map(|_| me.completion()));
            for ended in &mut ended[1..] {
                assert_eq!(ended.status, WcStatus::Flushed, "{}", ended.wr_id);
            }
            for ended in &mut ended {
                ended.buffer.as_mut().expect("it comes back").fill(0xff);
            }
            me.pause(60 * u64::from(ACKNOWLEDGE_TIMEOUT));
        }
        me.meet();
        if me.rank() == 1 {
            // What had arrived is what was sent, once each.
            for number in 0..2 {
                me.receive(number, Some(0), 5, 50);
                let received = me.completion();
                me.assert_received(&received, 0, number, 50);
            }
            me.endpoint.probe(1, &me.filter(None, 0, u64::MAX)).unwrap();
            assert_eq!(me.statuses(1), [(1, WcStatus::NoMessage)]);
            let told: Vec<_> = me.events().iter().map(|event| event.cause).collect();
            assert_eq!(told, [Cause::PeerFailed], "of the closing");
        }
        me.finish();
    });
    for repeated in repeated.counts() {
        assert!(repeated >= 4, "{repeated} frames again prove little");
    }
    assert_eq!(late.counts(), [0, 0], "frames of a pair that is closed");
}
