//! Ready sends: who finds no receive posted is told so, and nobody who has one is, wherever it is.

use host_driver::{Counter, PostError, WcKind, WcStatus};
use posthorn_tests::cards::{both, both_over};
use posthorn_tests::frames::lossy;
use posthorn_tests::side::{Setup, Side};
use posthorn_tests::wires::{Tally, Wires};
use sim::fabric::LinkFilter;

#[test]
pub(crate) fn a_ready_send_without_a_receive_fails_alone_and_costs_no_credit() {
    both("tiny", 2, 151, |host| {
        let mut me = Side::with(&host, Setup::with_credits(4));
        if me.rank() == 0 {
            for number in 0..12 {
                me.send_ready(1, 5, number, 40 * number as usize);
                assert_eq!(me.statuses(1), [(number, WcStatus::NotReady)]);
            }
            assert_eq!(me.pair_status(1).available, 4);
            me.meet();
            me.meet();
            me.send_ready(1, 6, 12, 300);
            me.send_ready(1, 5, 13, 1024);
            let expected = [(12, WcStatus::Success), (13, WcStatus::NotReady)];
            assert_eq!(me.statuses(2), expected);
            me.meet();
            me.send(1, 5, 14, 1024);
            assert_eq!(me.statuses(1), [(14, WcStatus::Success)]);
        } else {
            me.meet();
            assert_eq!(me.count(Counter::Unexpected), 0);
            me.receive(0, Some(0), 6, 300);
            me.meet();
            let received = me.completion();
            me.assert_received(&received, 0, 12, 300);
            me.meet();
            me.receive(1, Some(0), 5, 1024);
            let received = me.completion();
            me.assert_received(&received, 0, 14, 1024);
        }
        me.meet();
        me.finish();
    });
}

#[test]
fn a_refusal_is_told_however_many_acknowledgements_are_lost() {
    let lost = Tally::default();
    let wires = || {
        let tap = lossy(lost.next(), |header, messages| {
            header.acknowledge < messages
        });
        Wires::tapped(LinkFilter::ALL, tap)
    };
    both_over("tiny", 2, 152, wires, |host| {
        let mut me = Side::with(&host, Setup::with_credits(4));
        for round in 0..16 {
            // Of the four messages of a round, those of a set bit find a receive.
            let posted: Vec<u64> = (0..4).filter(|k| round >> k & 1 == 1).collect();
            let first = 4 * round;
            if me.rank() == 0 {
                me.meet();
                for k in 0..4 {
                    me.send_ready(1, k, first + k, 64);
                }
                let status = |k| match posted.contains(&k) {
                    true => WcStatus::Success,
                    false => WcStatus::NotReady,
                };
                let expected: Vec<_> = (0..4).map(|k| (first + k, status(k))).collect();
                assert_eq!(me.statuses(4), expected);
            } else {
                for &k in &posted {
                    me.receive(first + k, Some(0), k, 64);
                }
                me.meet();
                for &k in &posted {
                    let received = me.completion();
                    me.assert_received(&received, 0, first + k, 64);
                }
            }
            me.meet();
        }
        if me.rank() == 0 {
            let status = me.pair_status(1);
            assert_eq!((status.available, status.unacknowledged), (4, 0));
        }
        me.meet();
        me.finish();
    });
    let lost = lost.counts();
    assert!(lost.iter().all(|lost| *lost >= 10), "{lost:?} were lost");
}

#[test]
fn a_ready_message_that_comes_before_its_receive_has_left_the_ring_waits_for_it() {
    const RECEIVES: u64 = 60;
    both("tiny", 2, 153, |host| {
        let mut me = Side::open(&host);
        if me.rank() == 0 {
            me.receive(100, Some(1), 99, 8);
            me.meet();
            let go = me.completion();
            me.assert_received(&go, 1, 0, 8);
            // The receives of its peer went before that message, through another ring.
            for number in (0..RECEIVES).rev().take(8) {
                me.send_ready(1, number, number, 8);
            }
            for number in (0..RECEIVES).rev().take(8) {
                assert_eq!(me.statuses(1), [(number, WcStatus::Success)]);
            }
            me.meet();
            me.send_ready(1, RECEIVES, RECEIVES, 8);
            assert_eq!(me.statuses(1), [(RECEIVES, WcStatus::NotReady)]);
        } else {
            me.meet();
            for number in 0..RECEIVES {
                me.receive(number, Some(0), number, 8);
            }
            me.send(0, 99, 0, 8);
            let mut received = 0;
            while received < 8 {
                let completion = me.completion();
                assert_eq!(completion.status, WcStatus::Success);
                if completion.kind == WcKind::Receive {
                    me.assert_received(&completion, 0, completion.wr_id, 8);
                    received += 1;
                }
            }
            assert!(me.count(Counter::Unexpected) > 0, "some came that early");
            me.meet();
        }
        me.meet();
        if me.rank() == 1 {
            me.discard_receives();
        }
        me.finish();
    });
}

#[test]
fn a_ready_message_whose_receive_the_library_keeps_waits_for_it() {
    // More than the card's lists hold.
    const RECEIVES: u64 = 120;
    both("tiny", 2, 154, |host| {
        let mut me = Side::open(&host);
        if me.rank() == 0 {
            me.meet();
            for number in (0..RECEIVES).rev() {
                me.send_ready(1, number, number, 8);
                assert_eq!(me.statuses(1), [(number, WcStatus::Success)]);
            }
            me.meet();
            me.send_ready(1, 0, RECEIVES, 8);
            assert_eq!(me.statuses(1), [(RECEIVES, WcStatus::NotReady)]);
        } else {
            for number in 0..RECEIVES {
                let filter = me.filter(Some(0), number, 0);
                let mut buffer = me.buffer(8);
                while let Err(refused) = me.endpoint.post_tagged_recv(number, &filter, buffer) {
                    assert_eq!(refused.error, PostError::ListRingFull);
                    buffer = refused.buffer;
                    me.pause(500);
                }
            }
            me.pause(20_000);
            me.meet();
            // Among those that wait, the oldest receive that the library posts again is the first.
            for _ in 0..RECEIVES {
                let received = me.completion();
                me.assert_received(&received, 0, received.wr_id, 8);
            }
            assert!(me.count(Counter::Unexpected) > 0, "some waited");
            me.meet();
        }
        me.meet();
        me.finish();
    });
}
