//! Credits: nothing is dropped for want of space, and what waits stops nobody else.

use abi::wire::FrameType;
use host_driver::{Counter, WcStatus};
use posthorn_tests::cards::{both, both_over};
use posthorn_tests::frames::{header, is, lossy};
use posthorn_tests::side::{Setup, Side};
use posthorn_tests::wires::{Tally, Wires};
use sim::fabric::{LinkFilter, Passing};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[test]
fn a_receiver_that_posts_nothing_gets_its_credits_worth_and_all_in_order_when_it_posts() {
    both("tiny", 3, 41, |host| {
        let mut me = Side::with(&host, Setup::with_credits(4));
        match me.rank() {
            0 => {
                for number in 0..8 {
                    me.send(1, 5, number, 100);
                }
                // Four are safe in the receiver's slots, four wait for credit.
                let expected: Vec<_> = (0..4).map(|k| (k, WcStatus::Success)).collect();
                assert_eq!(me.statuses(4), expected);
                me.assert_silent(20_000);
                let status = me.pair_status(1);
                assert_eq!(
                    (status.available, status.unacknowledged, status.waiting),
                    (0, 0, 4)
                );
                // Another pair's sends go on meanwhile, more of them than there are credits.
                for number in 100..112 {
                    me.send(2, 6, number, 100);
                    assert_eq!(me.statuses(1), [(number, WcStatus::Success)]);
                }
                me.meet();
                let expected: Vec<_> = (4..8).map(|k| (k, WcStatus::Success)).collect();
                assert_eq!(me.statuses(4), expected);
                me.meet();
                assert_eq!(me.pair_status(1).available, 4, "every credit is back");
            }
            1 => {
                me.meet();
                assert_eq!(me.count(Counter::Unexpected), 4);
                for k in 0..8 {
                    me.receive(k, Some(0), 5, 100);
                    let received = me.completion();
                    me.assert_received(&received, 0, k, 100);
                }
                me.meet();
            }
            _ => {
                for number in 100..112 {
                    me.receive(0, Some(0), 6, 100);
                    let received = me.completion();
                    me.assert_received(&received, 0, number, 100);
                }
                me.meet();
                me.meet();
            }
        }
        me.finish();
    });
}

#[test]
fn sends_beyond_the_pairs_queue_are_kept_where_the_ninth_once_was_refused() {
    both("tiny", 2, 42, |host| {
        let setup = Setup::with_credits(1);
        let mut me = Side::with(&host, setup);
        if me.rank() == 0 {
            let sent: Vec<_> = (0..20).map(|number| me.send(1, 5, number, 8)).collect();
            assert_eq!(me.endpoint.query().kept, 12);
            me.endpoint.cancel(99, sent[15]).expect("it is kept");
            me.meet();
            let (cancelled, ended): (Vec<_>, Vec<_>) = me
                .statuses(20)
                .into_iter()
                .partition(|(_, status)| *status == WcStatus::Cancelled);
            assert_eq!(cancelled, [(15, WcStatus::Cancelled)]);
            let others = (0..20).filter(|&number| number != 15);
            let expected: Vec<_> = others.map(|number| (number, WcStatus::Success)).collect();
            assert_eq!(ended, expected);
            // One has credit, seven are with the card and four with the library when the pair is closed.
            for number in 20..32 {
                me.send(1, 5, number, 8);
            }
            assert_eq!(me.statuses(1), [(20, WcStatus::Success)]);
            me.disconnect(1);
            let flushed: Vec<_> = (21..32).map(|k| (k, WcStatus::Flushed)).collect();
            assert_eq!(me.statuses(11), flushed);
            assert_eq!((me.cq.outstanding(), me.cq.strays()), (0, 0));
        } else {
            me.meet();
            for k in (0..20).filter(|&number| number != 15) {
                me.receive(k, Some(0), 5, 8);
                let received = me.completion();
                me.assert_received(&received, 0, k, 8);
            }
        }
        me.meet();
    });
}

#[test]
fn one_credit_is_enough_for_any_number_of_messages_both_ways() {
    both("tiny", 2, 43, |host| {
        let setup = Setup::with_credits(1);
        let mut me = Side::with(&host, setup);
        let peer = 1 - me.rank();
        let (mut sent, mut received) = (0, 0);
        while received < 40 {
            if sent < 40 && sent < received + 6 {
                me.send(peer, 1, 1000 + sent, 33);
                me.receive(2000 + sent, Some(peer), 1, 33);
                sent += 1;
                continue;
            }
            let completion = me.completion();
            if completion.wr_id >= 2000 {
                me.assert_received(&completion, peer, 1000 + received, 33);
                received += 1;
            } else {
                assert_eq!(completion.status, WcStatus::Success);
            }
        }
        while me.cq.outstanding() > 0 {
            assert_eq!(me.completion().status, WcStatus::Success);
        }
        me.meet();
        assert_eq!(me.pair_status(peer).available, 1);
        me.finish();
    });
}

#[test]
fn a_lost_or_repeated_acknowledgement_loses_no_credit() {
    let lost = Tally::default();
    // A message is on its way, or rests at the receiver: both are told of later.
    let wires = || {
        let tap = lossy(lost.next(), |header, messages| {
            header.acknowledge < messages || header.credit < messages
        });
        Wires::tapped(LinkFilter::ALL, tap)
    };
    both_over("tiny", 2, 44, wires, |host| {
        let mut me = Side::with(&host, Setup::with_credits(4));
        if me.rank() == 0 {
            for round in 0..10 {
                for k in 0..4 {
                    me.send(1, 5, 4 * round + k, 64);
                }
                let expected: Vec<_> = (4 * round..4 * round + 4)
                    .map(|k| (k, WcStatus::Success))
                    .collect();
                assert_eq!(me.statuses(4), expected);
            }
            me.meet();
            let status = me.pair_status(1);
            assert_eq!((status.available, status.unacknowledged), (4, 0));
            assert!(
                me.count(Counter::Duplicates) >= 10,
                "repeats were told as such"
            );
        } else {
            for k in 0..40 {
                me.receive(k, Some(0), 5, 64);
                let received = me.completion();
                me.assert_received(&received, 0, k, 64);
            }
            me.meet();
        }
        me.finish();
    });
    let lost = lost.counts();
    assert!(lost.iter().all(|lost| *lost >= 10), "{lost:?} were lost");
}

/// Loses every acknowledgement that tells of freed envelopes and of no message, unless it is the answer to an `Ask`.
fn silent(lost: Arc<AtomicU64>) -> impl FnMut(Passing, &mut Vec<Passing>) + Send {
    let (mut asked, mut told) = (false, 0);
    move |passing, out: &mut Vec<Passing>| {
        asked |= is(&passing, FrameType::Ask);
        if is(&passing, FrameType::Acknowledge) {
            let header = header(&passing).expect("whole");
            let answers = std::mem::take(&mut asked);
            if header.credit > 0 && header.acknowledge <= told && !answers {
                lost.fetch_add(1, Ordering::Relaxed);
                return;
            }
            told = told.max(header.acknowledge);
        }
        out.push(passing);
    }
}

#[test]
fn a_sender_that_has_not_heard_of_its_last_credit_asks_and_sends_on() {
    let lost = Tally::default();
    let wires = || Wires::tapped(LinkFilter::ALL, silent(lost.next()));
    both_over("tiny", 2, 45, wires, |host| {
        let setup = Setup::with_credits(1);
        let mut me = Side::with(&host, setup);
        // It asks each time that it has heard nothing for as long as another sender waits for an acknowledgement.
        if me.rank() == 0 {
            me.send(1, 5, 0, 64);
            assert_eq!(me.statuses(1), [(0, WcStatus::Success)]);
            // The second waits for a credit. Of the envelope, free long ago, no frame will tell unasked.
            me.send(1, 5, 1, 64);
            me.meet();
            assert_eq!(me.statuses(1), [(1, WcStatus::Success)]);
            assert!(me.count(Counter::CreditAsks) > 0);
            assert_eq!(me.count(Counter::Timeouts), 0);
        } else {
            me.meet();
            me.receive(0, Some(0), 5, 64);
            let received = me.completion();
            me.assert_received(&received, 0, 0, 64);
            me.receive(1, Some(0), 5, 64);
            let received = me.completion();
            me.assert_received(&received, 0, 1, 64);
            assert_eq!(me.count(Counter::CreditAsks), 0);
        }
        me.meet();
        me.finish();
    });
    let lost = lost.counts();
    assert!(lost.iter().all(|lost| *lost > 0), "{lost:?} were lost");
}
