//! Multi-receives: one buffer, many messages.

use crate::common::{Side, connected, cramped, fabric, sized};
use host_driver::{PostError, Source, TaggedReceive, WaitError, WcKind, WcStatus};
use soft_card::BusAccess;

fn send(side: &Side, match_bits: u64, bytes: &[u8]) {
    let send = side.send(match_bits);
    while let Err(error) = side.endpoint.post_tagged_inject(0, &send, bytes) {
        assert_eq!(error, PostError::InjectBusy);
        assert_eq!(side.cq.wait(500).unwrap_err(), WaitError::Timeout);
    }
}

#[test]
pub fn messages_fill_the_buffer_one_behind_the_other_until_too_little_is_left() {
    // Before the receive is posted, and after.
    for early in [0, 3, 7] {
        let (a, mut b) = connected(&fabric(), 8);
        let buffer = b.buffer(100);
        let texts: Vec<Vec<u8>> = (0..7).map(|k| vec![k; 13]).collect();
        for text in &texts[..early] {
            send(&a, 7, text);
        }
        b.pause(20_000);
        b.endpoint
            .post_multi_recv(1, &b.receive(7), buffer, 20)
            .unwrap();
        for text in &texts[early..] {
            send(&a, 7, text);
        }
        let mut whole = None;
        for (k, text) in texts.iter().enumerate() {
            let completion = b.next();
            assert_eq!(
                (completion.wr_id, completion.kind, completion.status),
                (1, WcKind::Receive, WcStatus::Success)
            );
            // Nine are left behind the seventh: less than twenty.
            assert_eq!(completion.more, k < 6);
            assert_eq!(completion.offset, 13 * k as u64);
            assert_eq!(completion.completions, if k < 6 { 0 } else { 7 });
            assert_eq!(completion.received(), text);
            assert_eq!(completion.pair, Some(b.pair));
            let part = completion.buffer.unwrap();
            assert_eq!(part.len(), if k < 6 { 13 } else { 22 });
            whole = match whole.take() {
                None => Some(part),
                Some(mut front) => {
                    host_driver::Buffer::join(&mut front, part).unwrap();
                    Some(front)
                }
            };
        }
        assert_eq!(whole.unwrap().len(), 100);
        assert_eq!((b.cq.outstanding(), b.cq.strays()), (0, 0));
    }
}

#[test]
fn a_message_longer_than_what_is_left_is_truncated_and_the_last() {
    let (a, mut b) = connected(&fabric(), 8);
    let buffer = b.buffer(30);
    b.endpoint
        .post_multi_recv(1, &b.receive(7), buffer, 0)
        .unwrap();
    send(&a, 7, &[1; 20]);
    send(&a, 7, &[2; 20]);
    assert!(b.next().more);
    let last = b.next();
    assert_eq!((last.status, last.more), (WcStatus::Truncated, false));
    assert_eq!(last.received(), [2; 10]);
    assert_eq!((last.offset, last.completions), (20, 2));
}

#[test]
pub fn a_message_that_memory_refuses_fails_alone_and_the_next_ones_come_behind_its_part() {
    const BAD: [u8; 13] = [0xbb; 13];
    // None waits for the receive, those up to the bad one do, or all do.
    for early in [0, 2, 4] {
        let fabric = fabric();
        let (a, mut b) = connected(&fabric, 8);
        let texts = [[1; 13], BAD, [3; 13], [4; 13]];
        for text in &texts[..early] {
            send(&a, 7, text);
        }
        b.pause(20_000);
        // The slots have been written: from now on only the buffer is refused these bytes.
        fabric.bus(
            1,
            |access| !matches!(access, BusAccess::Write { bytes, .. } if bytes == BAD),
        );
        let buffer = b.buffer(60);
        b.endpoint
            .post_multi_recv(1, &b.receive(7), buffer, 13)
            .unwrap();
        for text in &texts[early..] {
            send(&a, 7, text);
        }
        let mut whole = host_driver::Buffer::empty();
        for (k, text) in texts.iter().enumerate() {
            let completion = b.next();
            let (status, received): (_, &[u8]) = match *text == BAD {
                true => (WcStatus::MemoryError, &[]),
                false => (WcStatus::Success, text),
            };
            assert_eq!(
                (completion.status, completion.received()),
                (status, received)
            );
            assert_eq!((completion.wr_id, completion.length), (1, 13));
            assert_eq!((completion.more, completion.offset), (k < 3, 13 * k as u64));
            assert_eq!(completion.completions, if k < 3 { 0 } else { 4 });
            let part = completion.buffer.unwrap();
            assert_eq!(part.len(), if k < 3 { 13 } else { 21 });
            match k {
                0 => whole = part,
                _ => whole.join(part).unwrap(),
            }
        }
        assert_eq!(whole.len(), 60);
        assert_eq!((b.cq.outstanding(), b.cq.strays()), (0, 0));
    }
}

#[test]
fn a_multi_receive_that_is_cancelled_gives_back_what_is_left() {
    let (a, mut b) = connected(&fabric(), 8);
    let buffer = b.buffer(64);
    let request = b
        .endpoint
        .post_multi_recv(1, &b.receive(7), buffer, 0)
        .unwrap();
    send(&a, 7, &[1; 20]);
    assert!(b.next().more);
    b.endpoint.cancel(2, request).unwrap();
    let last = b.next();
    assert_eq!(
        (last.wr_id, last.status, last.more),
        (1, WcStatus::Cancelled, false)
    );
    assert_eq!((last.offset, last.completions), (20, 2));
    assert_eq!(last.buffer.unwrap().len(), 44);
    assert_eq!(b.cq.outstanding(), 0);
}

#[test]
fn without_a_free_completion_a_multi_receive_ends_and_nothing_is_lost() {
    let (a, mut b) = sized(&fabric(), 8, 4);
    let mut left = Some(b.buffer(400));
    for k in 0..8 {
        send(&a, 7, &[k; 10]);
    }
    let (mut ends, mut stays) = (0, 0);
    for k in 0..8 {
        if let Some(buffer) = left.take() {
            b.endpoint
                .post_multi_recv(1, &b.receive(7), buffer, 0)
                .unwrap();
        }
        // Time enough for all that the queue takes.
        b.pause(20_000);
        let completion = b.next();
        assert_eq!(completion.received(), [k; 10]);
        match completion.more {
            true => stays += 1,
            false => {
                ends += 1;
                let mut part = completion.buffer.unwrap();
                let _ = part.split_to(10);
                left = Some(part);
            }
        }
    }
    assert!(ends > 0 && stays > 0, "{ends} {stays}");
}

#[test]
fn a_multi_receive_is_kept_like_any_other_and_goes_on_behind_what_it_has() {
    let (a, mut b) = cramped(1, 8);
    // The only place is taken for good.
    let blocker = b.buffer(8);
    b.endpoint
        .post_tagged_recv(9, &b.receive(9), blocker)
        .unwrap();
    let buffer = b.buffer(100);
    let any = TaggedReceive {
        source: Source::Any,
        ..b.receive(7)
    };
    b.endpoint.post_multi_recv(1, &any, buffer, 5).unwrap();
    for k in 0..10 {
        send(&a, 7, &[k; 10]);
        let completion = b.next();
        assert_eq!((completion.wr_id, completion.more), (1, k < 9));
        assert_eq!(completion.received(), [k; 10]);
        // However often the card was given what was left.
        assert_eq!(completion.offset, 10 * u64::from(k));
        assert_eq!(completion.completions, if k < 9 { 0 } else { 10 });
    }
    assert_eq!(b.cq.outstanding(), 1);
}
