//! Messages: whole, at any length and alignment, with what travels beside the bytes.

use host_driver::{Counter, WcKind, WcStatus};
use posthorn_tests::cards::both;
use posthorn_tests::side::{Setup, Side};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const LENGTHS: [usize; 10] = [0, 1, 7, 8, 9, 63, 64, 65, 1023, 1024];
/// What lies around a buffer.
const GUARD: u8 = 0xa5;
const GUARD_BYTES: usize = 32;

#[test]
fn every_length_arrives_whole_at_any_alignment_expected_or_not() {
    let report = both("tiny", 2, 11, |host| {
        let mut me = Side::open(&host);
        // Both ranks draw the same.
        let mut rng = ChaCha8Rng::seed_from_u64(11);
        let mut number = 0;
        for expected in [true, false] {
            for length in LENGTHS {
                let (from, to) = (rng.random_range(0..64), rng.random_range(0..64));
                let (tag, context) = (rng.random(), rng.random());
                number += 1;
                if me.rank() == 0 {
                    if expected {
                        me.meet();
                    }
                    let mut buffer = me.buffer_at(from, length);
                    me.message(1, number).fill(&mut buffer);
                    let mut send = me.address(1, tag, number);
                    send.context = context;
                    me.endpoint.post_tagged_send(7, &send, buffer).unwrap();
                    let sent = me.completion();
                    assert_eq!(
                        (sent.wr_id, sent.kind, sent.status, me.peer(sent.pair)),
                        (7, WcKind::Send, WcStatus::Success, Some(1))
                    );
                    if !expected {
                        me.meet();
                    }
                } else {
                    if !expected {
                        me.meet();
                    }
                    let mut before = me.buffer_at((to + 64 - GUARD_BYTES) % 64, GUARD_BYTES);
                    let mut buffer = me.buffer(length);
                    let mut after = me.buffer(GUARD_BYTES);
                    for bytes in [&mut before, &mut buffer, &mut after] {
                        bytes.fill(GUARD);
                    }
                    let mut filter = me.filter(Some(0), tag, 0);
                    filter.context = context;
                    me.endpoint.post_tagged_recv(8, &filter, buffer).unwrap();
                    if expected {
                        me.meet();
                    }
                    let received = me.completion();
                    me.assert_received(&received, 0, number, length);
                    assert_eq!((received.wr_id, received.kind), (8, WcKind::Receive));
                    assert_eq!((received.match_bits, received.context), (tag, context));
                    assert_eq!(&before[..], [GUARD; GUARD_BYTES], "length {length}");
                    assert_eq!(&after[..], [GUARD; GUARD_BYTES], "length {length}");
                }
                me.meet();
            }
        }
        if me.rank() == 1 {
            let each = LENGTHS.len() as u64;
            assert_eq!(me.count(Counter::Expected), each);
            assert_eq!(me.count(Counter::Unexpected), each);
        }
        me.finish();
    });
    assert!(report.credit_checks > 0, "the monitor has seen the pair");
}

#[test]
fn immediate_data_and_match_bits_arrive_with_every_bit() {
    both("tiny", 2, 12, |host| {
        let mut me = Side::open(&host);
        for (k, bits) in [u64::MAX, 0, 1 << 63, 0x0123_4567_89ab_cdef]
            .into_iter()
            .enumerate()
        {
            let wr_id = k as u64;
            if me.rank() == 0 {
                let mut send = me.address(1, bits, !bits.rotate_left(7));
                send.context = 0xbeef;
                me.endpoint.post_tagged_inject(wr_id, &send, b"!").unwrap();
            } else {
                let mut filter = me.filter(Some(0), bits, 0);
                filter.context = 0xbeef;
                let buffer = me.buffer(1);
                me.endpoint
                    .post_tagged_recv(wr_id, &filter, buffer)
                    .unwrap();
                let received = me.completion();
                assert_eq!(received.status, WcStatus::Success);
                assert_eq!(received.match_bits, bits);
                assert_eq!(received.immediate, !bits.rotate_left(7));
                assert_eq!(received.context, 0xbeef);
                assert_eq!(received.received(), b"!");
            }
        }
        me.meet();
        me.pause(5000);
        me.finish();
    });
}

#[test]
pub(crate) fn a_message_longer_than_its_buffer_is_truncated_and_nothing_is_written_beyond() {
    both("tiny", 2, 13, |host| {
        let mut me = Side::open(&host);
        let mut number = 0;
        for expected in [true, false] {
            for (length, room) in [(8, 4), (1, 0), (1024, 1023), (1024, 17), (65, 64)] {
                number += 1;
                if me.rank() == 0 {
                    if expected {
                        me.meet();
                    }
                    me.send(1, 5, number, length);
                    // The receiver had less room than it needed: not the sender's business.
                    assert_eq!(me.completion().status, WcStatus::Success);
                    if !expected {
                        me.meet();
                    }
                } else {
                    if !expected {
                        me.meet();
                    }
                    let buffer = me.buffer_at(3, room);
                    let mut after = me.buffer(GUARD_BYTES);
                    after.fill(GUARD);
                    let filter = me.filter(Some(0), 5, 0);
                    me.endpoint.post_tagged_recv(1, &filter, buffer).unwrap();
                    if expected {
                        me.meet();
                    }
                    let received = me.completion();
                    assert_eq!(received.status, WcStatus::Truncated, "{length} into {room}");
                    assert_eq!(received.length, length as u64, "as sent");
                    assert_eq!(received.received().len(), room);
                    let id = posthorn::payload::MessageId {
                        source: 0,
                        destination: 1,
                        number,
                    };
                    assert_eq!(id.first_wrong(received.received()), None);
                    assert_eq!(&after[..], [GUARD; GUARD_BYTES], "{length} into {room}");
                }
                me.meet();
            }
        }
        me.finish();
    });
}

#[test]
fn a_message_longer_than_the_card_takes_is_refused_and_nothing_is_sent() {
    both("tiny", 2, 14, |host| {
        let mut me = Side::open(&host);
        if me.rank() == 0 {
            me.send(1, 1, 1, 1025);
            let refused = me.completion();
            assert_eq!(
                (refused.kind, refused.status, refused.wr_id),
                (WcKind::Send, WcStatus::TooLong, 1)
            );
            assert_eq!(refused.buffer.unwrap().len(), 1025, "it comes back");
            let status = me.pair_status(1);
            assert_eq!((status.available, status.waiting), (8, 0));
            me.send(1, 1, 2, 1024);
            assert_eq!(me.completion().status, WcStatus::Success);
        } else {
            me.receive(1, Some(0), 1, 1024);
            let received = me.completion();
            me.assert_received(&received, 0, 2, 1024);
        }
        me.meet();
        me.finish();
    });
}

#[test]
fn a_rank_sends_to_itself_without_a_frame_on_the_wire() {
    let setup = Setup {
        credits: 4,
        to_self: true,
        ..Setup::default()
    };
    let report = both("tiny", 1, 15, |host| {
        let mut me = Side::with(&host, setup);
        for (number, length) in (0..).zip(LENGTHS) {
            let expected = number % 2 == 0;
            if expected {
                me.receive(100, Some(0), 9, 1024);
            }
            me.send(0, 9, number, length);
            if !expected {
                // Before the receive is posted the message is safe.
                assert_eq!(me.completion().wr_id, number);
                me.receive(100, Some(0), 9, 1024);
            }
            let mut received = me.completion();
            if received.kind == WcKind::Send {
                received = me.completion();
            } else if expected {
                assert_eq!(me.completion().wr_id, number);
            }
            me.assert_received(&received, 0, number, length);
        }
        me.finish();
    });
    assert_eq!(report.fabric.frames, 0);
    assert_eq!(report.cards[0].frames_sent, 0);
}
