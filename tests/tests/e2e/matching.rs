//! Matching: order, wildcards, contexts, probe and cancel.

use host_driver::{WcKind, WcStatus};
use posthorn_tests::cards::both;
use posthorn_tests::side::{Setup, Side};

#[test]
pub(crate) fn messages_of_a_pair_match_in_the_order_sent_expected_or_not() {
    both("tiny", 2, 21, |host| {
        let mut me = Side::open(&host);
        if me.rank() == 1 {
            for k in 0..4 {
                me.receive(k, Some(0), 7, 64);
            }
        }
        me.meet();
        if me.rank() == 0 {
            // Long and short ones, so that a short one could overtake.
            for k in 0..8 {
                me.send(1, 7, k, if k % 2 == 0 { 64 } else { 0 });
            }
            let sent: Vec<_> = me.statuses(8);
            let expected: Vec<_> = (0..8).map(|k| (k, WcStatus::Success)).collect();
            assert_eq!(sent, expected, "in order");
            me.meet();
        } else {
            me.meet();
            for k in 4..8 {
                me.receive(k, Some(0), 7, 64);
            }
            for k in 0..8 {
                let received = me.completion();
                assert_eq!(received.wr_id, k);
                me.assert_received(&received, 0, k, if k % 2 == 0 { 64 } else { 0 });
            }
        }
        me.finish();
    });
}

#[test]
fn the_oldest_receive_that_matches_wins_whatever_it_ignores() {
    both("tiny", 3, 22, |host| {
        let mut me = Side::open(&host);
        if me.rank() == 2 {
            let post = |me: &mut Side, wr_id, from, tag, ignore| {
                let buffer = me.buffer(16);
                let filter = me.filter(from, tag, ignore);
                me.endpoint
                    .post_tagged_recv(wr_id, &filter, buffer)
                    .unwrap();
            };
            post(&mut me, 1, Some(1), 0x10, 0);
            post(&mut me, 2, None, 0x00, 0xff);
            post(&mut me, 3, Some(0), 0x10, 0);
            post(&mut me, 4, None, 0x1_0000, 0);
            post(&mut me, 5, Some(0), 0, u64::MAX);
        }
        me.meet();
        if me.rank() == 0 {
            // Matches 2, 3 and 5; then 3 and 5; then 5; then 4.
            for (number, tag) in [(0, 0x10), (1, 0x10), (2, 0xffff), (3, 0x1_0000)] {
                me.send(2, tag, number, 16);
            }
            me.statuses(4);
        }
        me.meet();
        if me.rank() == 1 {
            me.send(2, 0x10, 0, 16);
            me.statuses(1);
        }
        if me.rank() == 2 {
            for (wr_id, from, number) in [(2, 0, 0), (3, 0, 1), (5, 0, 2), (4, 0, 3), (1, 1, 0)] {
                let received = me.completion();
                assert_eq!(received.wr_id, wr_id);
                me.assert_received(&received, from, number, 16);
            }
        }
        me.meet();
        me.finish();
    });
}

#[test]
fn the_earliest_unexpected_message_that_matches_is_taken() {
    both("tiny", 3, 23, |host| {
        let mut me = Side::open(&host);
        // One after the other, so that the order of arrival is known.
        for (number, (from, tag)) in (0..).zip([(0, 1), (1, 2), (0, 2), (1, 1)]) {
            if me.rank() == from {
                me.send(2, tag, number, 9);
                me.statuses(1);
            }
            me.meet();
        }
        if me.rank() == 2 {
            let take = |me: &mut Side, from, tag, ignore, source, number| {
                let buffer = me.buffer(9);
                let filter = me.filter(from, tag, ignore);
                me.endpoint.post_tagged_recv(0, &filter, buffer).unwrap();
                let received = me.completion();
                me.assert_received(&received, source, number, 9);
            };
            take(&mut me, None, 2, 0, 1, 1);
            take(&mut me, Some(1), 0, 3, 1, 3);
            take(&mut me, None, 0, 3, 0, 0);
            take(&mut me, None, 0, u64::MAX, 0, 2);
        }
        me.meet();
        me.finish();
    });
}

#[test]
fn contexts_keep_messages_apart_even_from_full_wildcards() {
    both("tiny", 2, 24, |host| {
        let mut me = Side::open(&host);
        if me.rank() == 0 {
            for (number, context) in [(0, 3), (1, 4)] {
                let mut send = me.address(1, 7, number);
                send.context = context;
                let mut buffer = me.buffer(5);
                me.message(1, number).fill(&mut buffer);
                me.endpoint.post_tagged_send(number, &send, buffer).unwrap();
            }
            me.statuses(2);
            me.meet();
        } else {
            me.meet();
            for (context, number) in [(4, 1), (3, 0)] {
                let mut filter = me.filter(None, 0, u64::MAX);
                filter.context = context;
                let buffer = me.buffer(5);
                me.endpoint.post_tagged_recv(0, &filter, buffer).unwrap();
                let received = me.completion();
                assert_eq!(received.context, context);
                me.assert_received(&received, 0, number, 5);
            }
        }
        me.finish();
    });
}

#[test]
fn a_probe_finds_the_message_that_a_receive_would_take_and_leaves_it() {
    both("tiny", 2, 25, |host| {
        let mut me = Side::open(&host);
        if me.rank() == 1 {
            me.endpoint.probe(1, &me.filter(None, 0, u64::MAX)).unwrap();
            let nothing = me.completion();
            assert_eq!(
                (nothing.kind, nothing.status),
                (WcKind::Probe, WcStatus::NoMessage)
            );
        }
        me.meet();
        if me.rank() == 0 {
            for (number, tag) in [(10, 1), (11, 2), (12, 2)] {
                me.send(1, tag, number, 100 + number as usize);
            }
            me.statuses(3);
            me.meet();
        } else {
            me.meet();
            for _ in 0..2 {
                me.endpoint.probe(2, &me.filter(Some(0), 2, 0)).unwrap();
                let found = me.completion();
                assert_eq!(
                    (found.kind, found.status),
                    (WcKind::Probe, WcStatus::Success)
                );
                assert_eq!((found.immediate, found.length), (11, 111));
                assert_eq!((found.match_bits, me.peer(found.pair)), (2, Some(0)));
            }
            me.endpoint.probe(3, &me.filter(Some(0), 3, 0)).unwrap();
            assert_eq!(me.completion().status, WcStatus::NoMessage);
            for (tag, number) in [(2, 11), (1, 10), (2, 12)] {
                me.receive(4, Some(0), tag, 200);
                let received = me.completion();
                me.assert_received(&received, 0, number, 100 + number as usize);
            }
        }
        me.finish();
    });
}

#[test]
pub(crate) fn a_cancel_in_time_ends_the_receive_and_one_too_late_says_so() {
    both("tiny", 2, 26, |host| {
        let mut me = Side::open(&host);
        if me.rank() == 1 {
            let first = me.receive(1, Some(0), 7, 8);
            me.receive(2, Some(0), 7, 8);
            me.endpoint.cancel(3, first).unwrap();
            let cancelled = me.cancelled(1);
            assert_eq!(cancelled.buffer.unwrap().len(), 8);
            me.meet();
            me.meet();
            // What was cancelled takes nothing: the message went to the second.
            let received = me.completion();
            assert_eq!(received.wr_id, 2);
            me.assert_received(&received, 0, 0, 8);

            let third = me.receive(4, Some(0), 7, 8);
            me.meet();
            me.meet();
            // It has matched, and its completion hasn't been polled for.
            me.endpoint.cancel(5, third).unwrap();
            assert_eq!(
                me.statuses(2),
                [(4, WcStatus::Success), (5, WcStatus::TooLate)]
            );
        } else {
            for number in 0..2 {
                me.meet();
                me.send(1, 7, number, 8);
                me.statuses(1);
                me.meet();
            }
        }
        me.finish();
    });
}

#[test]
pub(crate) fn receives_beyond_the_card_s_room_are_kept_and_matched_in_order() {
    let report = both("tiny", 2, 27, |host| {
        // One credit: the next message comes when the one before has its receive.
        let mut me = Side::with(&host, Setup::with_credits(1));
        let kept = 24;
        if me.rank() == 1 {
            let room = me.device.identity().posted as u64;
            // More than the card has room for, since a part of it is the other endpoint's; they are matched last of all.
            for k in 0..room {
                me.receive(k, Some(0), 1000, 8);
            }
            // One of each kind, and two of another.
            for k in 0..kept {
                me.receive(100 + k, Some(0), k, 8);
            }
            me.receive(200, None, 2000, 8);
            me.receive(201, Some(0), 2000, 8);
            // One that is cancelled while it is kept, and one behind it.
            let cancelled = me.receive(300, None, 3000, 8);
            me.receive(301, Some(0), 3000, 8);
            me.endpoint.cancel(302, cancelled).unwrap();
            me.cancelled(300);
            me.meet();
            for (number, tag) in order(kept, room).into_iter().enumerate() {
                let received = me.completion();
                me.assert_received(&received, 0, number as u64, 8);
                assert_eq!(received.match_bits, tag);
                let first_of_two = number as u64 == kept;
                match tag {
                    1000 => assert_eq!(received.wr_id, number as u64 - kept - 3),
                    3000 => assert_eq!(received.wr_id, 301),
                    2000 => assert_eq!(received.wr_id, 201 - u64::from(first_of_two)),
                    _ => assert_eq!(received.wr_id, 100 + tag),
                }
            }
        } else {
            let room = me.device.identity().posted as u64;
            me.meet();
            for (number, tag) in order(kept, room).into_iter().enumerate() {
                me.send(1, tag, number as u64, 8);
                me.statuses(1);
            }
        }
        me.finish();
    });
    assert!(
        report.cards[1].matching.refused > 0,
        "the card has had no room"
    );

    /// Tags in the order that they are sent in: what was posted last first.
    fn order(kept: u64, room: u64) -> Vec<u64> {
        let kinds = (0..kept).rev();
        let last = std::iter::repeat_n(1000, room as usize);
        kinds.chain([2000, 2000, 3000]).chain(last).collect()
    }
}

#[test]
pub(crate) fn a_multi_receive_takes_messages_until_too_little_of_its_buffer_is_left() {
    both("tiny", 2, 28, |host| {
        let mut me = Side::open(&host);
        let lengths = [100, 0, 1, 1024, 7, 333, 64, 900, 8, 500];
        // Half of them wait when the receive is posted.
        let early = 5;
        if me.rank() == 1 {
            me.meet();
            me.pause(10_000);
            let buffer = me.buffer(3000);
            let filter = me.filter(Some(0), 7, 0);
            // Behind the last, 3000 − 2937 bytes are left.
            let posted = me.endpoint.post_multi_recv(1, &filter, buffer, 64);
            posted.expect("posted");
            me.meet();
            for (number, length) in lengths.into_iter().enumerate() {
                let received = me.completion();
                me.assert_received(&received, 0, number as u64, length);
                assert_eq!((received.wr_id, received.more), (1, number < 9));
                let before: usize = lengths[..number].iter().sum();
                assert_eq!(received.offset, before as u64);
                assert_eq!(received.completions, if number < 9 { 0 } else { 10 });
            }
        } else {
            for (number, length) in lengths.into_iter().enumerate() {
                if number == early {
                    me.meet();
                    me.meet();
                }
                me.send(1, 7, number as u64, length);
                me.statuses(1);
            }
        }
        me.finish();
    });
}
