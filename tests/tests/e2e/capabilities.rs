//! What only some cards have: gathers, and sends that complete only on error.

use host_driver::{Counter, SharedBuffer, WcKind, WcStatus};
use posthorn_tests::cards::both;
use posthorn_tests::side::{Setup, Side};

/// Lengths of the segments of messages: none, empty ones, such as share words, and the longest message cut in several ways.
const CUTS: &[&[usize]] = &[
    &[],
    &[5],
    &[3, 4],
    &[0, 0, 9],
    &[0, 0, 0, 0],
    &[1, 1, 1, 1],
    &[7, 0, 8, 9],
    &[16, 8, 24, 1],
    &[13, 64, 3, 100],
    &[256, 256, 256, 256],
    &[1, 1023],
    &[1021, 1, 1, 1],
];

#[test]
pub fn a_gather_is_one_message_of_its_segments() {
    both("tiny", 2, 91, |host| {
        let mut me = Side::open(&host);
        assert_eq!(me.device.limits().send_segments, 4);
        for (number, cut) in (0..).zip(CUTS) {
            let length: usize = cut.iter().sum();
            if me.rank() == 1 {
                me.receive(number, Some(0), 5, length);
                let received = me.completion();
                me.assert_received(&received, 0, number, length);
                continue;
            }
            let mut message = vec![0; length];
            me.message(1, number).fill(&mut message);
            let mut from = 0;
            let mut segments = Vec::new();
            for (at, &length) in cut.iter().enumerate() {
                let mut buffer = me.buffer_at((3 * at + number as usize) % 8, length);
                buffer.copy_from_slice(&message[from..from + length]);
                segments.push(buffer.share());
                from += length;
            }
            let send = me.address(1, 5, number);
            let posted = me.endpoint.post_gather_send(number, &send, &segments);
            posted.expect("room");
            assert_eq!(me.statuses(1), [(number, WcStatus::Success)]);
            assert!(segments.into_iter().all(is_free));
        }
        me.finish();
    });
}

/// Posts message `number` unsignaled, and keeps a clone of the buffer.
fn unsignaled(me: &mut Side, number: u64, length: usize) -> SharedBuffer {
    let mut buffer = me.buffer(length);
    me.message(1, number).fill(&mut buffer);
    let shared = buffer.share();
    let send = me.address(1, 5, number);
    let posted = me
        .endpoint
        .post_unsignaled_send(number, &send, shared.clone());
    posted.expect("room");
    shared
}

fn is_free(shared: SharedBuffer) -> bool {
    shared.try_into_buffer().is_ok()
}

#[test]
pub fn unsignaled_sends_complete_only_on_error_and_free_their_buffers() {
    // More than the completion queue has entries: a reservation that is kept would stop the endpoint.
    const SENDS: u64 = 300;
    both("tiny", 2, 92, |host| {
        let mut me = Side::open(&host);
        assert!(me.device.limits().unsignaled_sends);
        if me.rank() == 0 {
            let before = me.count(Counter::Completions);
            let mut kept = Vec::new();
            for number in 0..SENDS {
                kept.push(unsignaled(&mut me, number, 40));
                if number % 4 == 3 {
                    me.meet();
                    me.meet();
                    me.assert_silent(3_000);
                }
            }
            let told = me.count(Counter::Completions) - before;
            assert_eq!(told, SENDS / 4, "the card tells of each fourth");
            // One that fails completes, with its buffer.
            let longest = unsignaled(&mut me, SENDS, 1025);
            let failed = me.completion();
            let seen = (failed.wr_id, failed.kind, failed.status);
            assert_eq!(seen, (SENDS, WcKind::Send, WcStatus::TooLong));
            assert_eq!(failed.shared.expect("it comes back").len(), longest.len());
            // One that completes says that those before it have ended.
            me.send(1, 5, SENDS, 40);
            assert_eq!(me.statuses(1), [(SENDS, WcStatus::Success)]);
            assert!(kept.into_iter().all(is_free));
            me.meet();
        } else {
            for number in 0..SENDS {
                if number % 4 == 3 {
                    me.meet();
                    for number in number - 3..=number {
                        me.receive(number, Some(0), 5, 40);
                        let received = me.completion();
                        me.assert_received(&received, 0, number, 40);
                    }
                    me.meet();
                }
            }
            me.receive(SENDS, Some(0), 5, 40);
            let received = me.completion();
            me.assert_received(&received, 0, SENDS, 40);
            me.meet();
        }
        me.finish();
    });
}

#[test]
fn unsignaled_sends_that_are_cancelled_or_flushed_complete() {
    both("tiny", 2, 93, |host| {
        let mut me = Side::with(&host, Setup::with_credits(1));
        if me.rank() == 0 {
            // One has credit and is acknowledged in silence, the others wait.
            let gone = unsignaled(&mut me, 0, 40);
            let mut buffer = me.buffer(40);
            me.message(1, 1).fill(&mut buffer);
            let (send, shared) = (me.address(1, 5, 1), buffer.share());
            let posted = me
                .endpoint
                .post_unsignaled_send(1, &send, shared.clone())
                .expect("room");
            let flushed = unsignaled(&mut me, 2, 40);
            me.assert_silent(10_000);
            assert_eq!(me.pair_status(1).waiting, 2);
            me.endpoint.cancel(9, posted).expect("it waits");
            assert_eq!(me.statuses(1), [(1, WcStatus::Cancelled)]);
            assert!(is_free(shared));
            me.disconnect(1);
            assert_eq!(me.statuses(1), [(2, WcStatus::Flushed)]);
            assert!(!me.cq.is_ready(), "the first was delivered");
            assert!(is_free(gone) && is_free(flushed));
            me.meet();
        } else {
            // Only now, so that no credit returns.
            me.meet();
            me.receive(0, Some(0), 5, 40);
            let received = me.completion();
            me.assert_received(&received, 0, 0, 40);
        }
        me.meet();
    });
}
