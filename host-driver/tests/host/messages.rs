//! Messages between two endpoints, and the completions they end in.

use crate::common::{connected, fabric, options, sized};
use host_driver::{PostError, Source, WaitError, WcKind, WcStatus};
use soft_card::{SoftFabric, SoftOptions};

#[test]
fn a_message_arrives_in_the_posted_buffer_and_both_buffers_come_back() {
    let (mut a, mut b) = connected(&fabric(), 8);
    let buffer = b.buffer(64);
    b.endpoint
        .post_tagged_recv(1, &b.receive(7), buffer)
        .unwrap();
    let buffer = a.filled(b"posthorn");
    a.endpoint.post_tagged_send(2, &a.send(7), buffer).unwrap();

    let received = b.next();
    assert_eq!((received.wr_id, received.kind), (1, WcKind::Receive));
    assert_eq!(received.status, WcStatus::Success);
    assert_eq!((received.pair, received.length), (Some(b.pair), 8));
    assert_eq!((received.match_bits, received.immediate), (7, 7 ^ 0xabcd));
    assert_eq!(received.received(), b"posthorn");

    let sent = a.next();
    assert_eq!(
        (sent.wr_id, sent.kind, sent.status),
        (2, WcKind::Send, WcStatus::Success)
    );
    assert_eq!(&sent.buffer.unwrap()[..], b"posthorn");
    assert_eq!((a.cq.outstanding(), b.cq.outstanding()), (0, 0));
}

#[test]
fn unexpected_messages_are_received_in_the_order_sent() {
    let (mut a, mut b) = connected(&fabric(), 8);
    for k in 0..8u8 {
        let buffer = a.filled(&[k; 100]);
        a.endpoint
            .post_tagged_send(k.into(), &a.send(5), buffer)
            .unwrap();
    }
    for _ in 0..8 {
        assert_eq!(a.next().status, WcStatus::Success);
    }
    for k in 0..8u8 {
        let buffer = b.buffer(100);
        b.endpoint
            .post_tagged_recv(9, &b.receive(5), buffer)
            .unwrap();
        assert_eq!(b.next().received(), [k; 100]);
    }
}

#[test]
fn wildcards_match_and_the_context_separates() {
    let (mut a, mut b) = connected(&fabric(), 8);
    let mut any = b.receive(0x1200);
    any.source = Source::Any;
    any.ignore_bits = 0xff;
    any.context = 3;
    let buffer = b.buffer(16);
    b.endpoint.post_tagged_recv(1, &any, buffer).unwrap();
    let mut send = a.send(0x1234);
    a.endpoint
        .post_tagged_inject(0, &send, b"wrong context")
        .unwrap();
    send.context = 3;
    send.match_bits = 0x1334;
    a.endpoint
        .post_tagged_inject(0, &send, b"wrong bits")
        .unwrap();
    send.match_bits = 0x1234;
    a.endpoint.post_tagged_inject(0, &send, b"right").unwrap();
    let received = b.next();
    assert_eq!(received.received(), b"right");
    assert_eq!((received.pair, received.context), (Some(b.pair), 3));
    let buffer = a.buffer(0);
    a.endpoint.post_tagged_send(1, &a.send(99), buffer).unwrap();
    assert_eq!(a.next().wr_id, 1, "injects show no completion");
}

#[test]
pub fn a_message_longer_than_the_buffer_is_truncated_and_says_so() {
    let (mut a, mut b) = connected(&fabric(), 8);
    let buffer = b.buffer(4);
    let after = b.filled(b"untouched");
    b.endpoint
        .post_tagged_recv(1, &b.receive(7), buffer)
        .unwrap();
    let buffer = a.filled(b"posthorn");
    a.endpoint.post_tagged_send(2, &a.send(7), buffer).unwrap();
    let received = b.next();
    assert_eq!((received.status, received.length), (WcStatus::Truncated, 8));
    assert_eq!(received.received(), b"post");
    assert_eq!(&after[..], b"untouched");
}

#[test]
fn messages_without_payload_need_no_buffer() {
    let (a, b) = connected(&fabric(), 8);
    let empty = host_driver::Buffer::empty;
    a.endpoint.post_tagged_send(1, &a.send(7), empty()).unwrap();
    b.endpoint
        .post_tagged_recv(2, &b.receive(7), empty())
        .unwrap();
    let received = b.next();
    assert_eq!((received.status, received.length), (WcStatus::Success, 0));
    assert_eq!(received.immediate, 7 ^ 0xabcd);
    assert_eq!(a.next().status, WcStatus::Success);
}

#[test]
fn a_message_longer_than_the_card_takes_is_refused_by_the_card() {
    let (mut a, _b) = connected(&fabric(), 8);
    let buffer = a.buffer(1025);
    a.endpoint.post_tagged_send(1, &a.send(7), buffer).unwrap();
    let refused = a.next();
    assert_eq!(
        (refused.status, refused.kind),
        (WcStatus::TooLong, WcKind::Send)
    );
    assert_eq!(refused.buffer.unwrap().len(), 1025);
}

#[test]
pub fn a_cancelled_receive_completes_once_and_the_cancel_not_at_all() {
    let (_a, mut b) = connected(&fabric(), 8);
    let buffer = b.buffer(16);
    let receive = b
        .endpoint
        .post_tagged_recv(1, &b.receive(7), buffer)
        .unwrap();
    b.endpoint.cancel(2, receive).unwrap();
    assert_eq!(b.cq.outstanding(), 2);
    assert_eq!(
        b.endpoint.cancel(3, receive).unwrap_err(),
        PostError::NothingToCancel
    );
    let cancelled = b.next();
    assert_eq!(
        (cancelled.wr_id, cancelled.status),
        (1, WcStatus::Cancelled)
    );
    assert_eq!(cancelled.buffer.unwrap().len(), 16);
    assert_eq!(b.cq.outstanding(), 0);
    assert_eq!(b.cq.wait(100_000).unwrap_err(), WaitError::Timeout);
    assert_eq!(
        b.endpoint.cancel(3, receive).unwrap_err(),
        PostError::NothingToCancel
    );
}

#[test]
fn a_cancel_after_the_match_is_too_late() {
    let fabric = fabric();
    let (a, mut b) = connected(&fabric, 8);
    let buffer = b.buffer(16);
    let receive = b
        .endpoint
        .post_tagged_recv(1, &b.receive(7), buffer)
        .unwrap();
    a.endpoint
        .post_tagged_inject(0, &a.send(7), b"first")
        .unwrap();
    a.pause(10_000);
    b.endpoint.cancel(2, receive).unwrap();
    let matched = b.next();
    assert_eq!((matched.wr_id, matched.status), (1, WcStatus::Success));
    let late = b.next();
    assert_eq!(
        (late.wr_id, late.kind, late.status),
        (2, WcKind::Cancel, WcStatus::TooLate)
    );
    assert_eq!(b.cq.outstanding(), 0);
}

#[test]
fn completion_entries_return_however_cancels_end() {
    // Four entries: a reservation lost in any round would leave the queue full after a few.
    let (a, mut b) = sized(&fabric(), 8, 4);
    for round in 0..50 {
        let buffer = b.buffer(8);
        let receive = b
            .endpoint
            .post_tagged_recv(1, &b.receive(7), buffer)
            .unwrap();
        if round % 3 == 0 {
            a.endpoint.post_tagged_inject(0, &a.send(7), b"x").unwrap();
        }
        b.endpoint.cancel(2, receive).unwrap();
        let mut completions = vec![b.next()];
        if completions[0].status != WcStatus::Cancelled {
            completions.push(b.next());
        } else if round % 3 == 0 {
            let buffer = b.buffer(8);
            b.endpoint
                .post_tagged_recv(3, &b.receive(7), buffer)
                .unwrap();
            assert_eq!(b.next().wr_id, 3);
        }
        assert_eq!(b.cq.outstanding(), 0, "round {round}: {completions:?}");
    }
}

#[test]
fn a_waiting_send_that_is_cancelled_completes_once_and_its_message_never_goes() {
    let fabric = fabric();
    let (mut a, mut b) = connected(&fabric, 1);
    let mut sends = Vec::new();
    for k in 0..5 {
        let buffer = a.filled(&[k as u8; 16]);
        sends.push(a.endpoint.post_tagged_send(k, &a.send(7), buffer).unwrap());
    }
    assert_eq!(a.next().wr_id, 0, "one credit lets one go");
    for (wr_id, k) in [(10, 2), (11, 4)] {
        a.endpoint.cancel(wr_id, sends[k]).unwrap();
        assert_eq!(
            a.endpoint.cancel(99, sends[k]).unwrap_err(),
            PostError::NothingToCancel
        );
        let cancelled = a.next();
        assert_eq!(
            (cancelled.wr_id, cancelled.kind, cancelled.status),
            (k as u64, WcKind::Send, WcStatus::Cancelled)
        );
        assert_eq!(cancelled.pair, Some(a.pair));
        assert_eq!(cancelled.buffer.unwrap()[..], [k as u8; 16]);
        assert_eq!(
            a.endpoint.cancel(99, sends[k]).unwrap_err(),
            PostError::NothingToCancel
        );
    }
    assert_eq!(a.cq.outstanding(), 2, "neither cancel is outstanding");
    // What stays keeps its order.
    for k in [0, 1, 3] {
        let buffer = b.buffer(16);
        b.endpoint
            .post_tagged_recv(k, &b.receive(7), buffer)
            .unwrap();
        assert_eq!(b.next().received(), [k as u8; 16]);
    }
    assert_eq!([a.next().wr_id, a.next().wr_id], [1, 3]);
    assert_eq!((a.cq.outstanding(), a.cq.strays()), (0, 0));
}

#[test]
fn a_cancel_of_a_send_that_has_gone_is_too_late() {
    let (mut a, b) = connected(&fabric(), 8);
    let buffer = a.buffer(16);
    let send = a.endpoint.post_tagged_send(1, &a.send(7), buffer).unwrap();
    a.endpoint.cancel(2, send).unwrap();
    let mut both = [a.next(), a.next()];
    both.sort_by_key(|completion| completion.wr_id);
    let seen = both.map(|completion| (completion.kind, completion.status));
    assert_eq!(
        seen,
        [
            (WcKind::Send, WcStatus::Success),
            (WcKind::Cancel, WcStatus::TooLate)
        ]
    );
    assert_eq!(a.cq.outstanding(), 0);
    drop(b);
}

#[test]
fn a_cancel_of_a_send_whose_pair_is_closed_is_too_late() {
    let (mut a, _b) = connected(&fabric(), 1);
    let mut send = None;
    for k in 0..2 {
        let buffer = a.buffer(16);
        send = Some(a.endpoint.post_tagged_send(k, &a.send(7), buffer).unwrap());
    }
    assert_eq!(a.next().status, WcStatus::Success);
    a.endpoint.close_pair(a.pair).unwrap();
    a.endpoint.cancel(9, send.unwrap()).unwrap();
    let flushed = a.next();
    assert_eq!((flushed.wr_id, flushed.status), (1, WcStatus::Flushed));
    let late = a.next();
    assert_eq!((late.wr_id, late.status), (9, WcStatus::TooLate));
}

#[test]
fn a_probe_finds_a_message_and_leaves_it() {
    let fabric = fabric();
    let (a, mut b) = connected(&fabric, 8);
    b.endpoint.probe(1, &b.receive(7)).unwrap();
    let nothing = b.next();
    assert_eq!(
        (nothing.kind, nothing.status),
        (WcKind::Probe, WcStatus::NoMessage)
    );
    a.endpoint
        .post_tagged_inject(0, &a.send(7), b"hello")
        .unwrap();
    a.pause(10_000);
    for _ in 0..2 {
        b.endpoint.probe(1, &b.receive(7)).unwrap();
        let found = b.next();
        assert_eq!((found.status, found.length), (WcStatus::Success, 5));
        assert_eq!((found.match_bits, found.pair), (7, Some(b.pair)));
    }
    let buffer = b.buffer(8);
    b.endpoint
        .post_tagged_recv(2, &b.receive(7), buffer)
        .unwrap();
    assert_eq!(b.next().received(), b"hello");
}

#[test]
fn a_full_completion_queue_refuses_and_gives_the_buffer_back() {
    let (_a, mut b) = sized(&fabric(), 8, 4);
    for k in 0..4 {
        let buffer = b.buffer(8);
        b.endpoint
            .post_tagged_recv(k, &b.receive(7), buffer)
            .unwrap();
    }
    let buffer = b.filled(b"mine");
    let refused = b
        .endpoint
        .post_tagged_recv(4, &b.receive(7), buffer)
        .unwrap_err();
    assert_eq!(refused.error, PostError::CompletionQueueFull);
    assert_eq!(&refused.buffer[..], b"mine");
}

#[test]
fn a_full_ring_is_looked_at_again_before_a_post_is_refused() {
    let fabric = SoftFabric::new(SoftOptions {
        fetch_cycles: 1000,
        ..options()
    });
    let (a, mut b) = connected(&fabric, 8);
    let list =
        b.pd.endpoint()
            .list_ring(4)
            .inject_buffers(0)
            .open()
            .unwrap();
    let (pair, _) = list.open_pair(1).unwrap();
    let receive = host_driver::TaggedReceive {
        source: Source::Any,
        ..b.receive(1)
    };
    let refused = loop {
        let buffer = b.buffer(8);
        if let Err(refused) = list.post_tagged_recv(0, &receive, buffer) {
            break refused;
        }
        assert!(
            list.completion_queue().outstanding() < 200,
            "the ring never was full"
        );
    };
    assert_eq!(refused.error, PostError::ListRingFull);
    a.pause(10_000);
    list.post_tagged_recv(1, &receive, refused.buffer).unwrap();
    list.close_pair(pair).unwrap();
}

#[test]
fn inject_buffers_return_without_a_poll() {
    let (a, b) = connected(&fabric(), 8);
    let mut injected = 0;
    while injected < 8 {
        match a.endpoint.post_tagged_inject(0, &a.send(7), b"again") {
            Ok(()) => injected += 1,
            Err(PostError::InjectBusy) => {
                assert_eq!(a.cq.wait(2000).unwrap_err(), WaitError::Timeout)
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(
        a.endpoint.post_tagged_inject(0, &a.send(7), &[0; 1025]),
        Err(PostError::TooLong)
    );
    for _ in 0..8 {
        b.endpoint.probe(1, &b.receive(7)).unwrap();
        assert_eq!(b.next().status, WcStatus::Success);
    }
}

#[test]
pub fn a_send_says_its_own_length_though_a_receive_had_its_entry_before() {
    // Three completions a round: each entry is of a receive, and of a send later.
    let (mut a, mut b) = sized(&fabric(), 8, 4);
    for (round, bytes) in [1, 40, 7, 64, 0, 9, 33, 2].into_iter().enumerate() {
        let round = round as u64;
        let buffer = a.buffer(64);
        let receive = a.receive(round);
        a.endpoint.post_tagged_recv(1, &receive, buffer).unwrap();
        let echo = b.filled(&[0xee; 50]);
        b.endpoint
            .post_tagged_send(2, &b.send(round), echo)
            .unwrap();
        let received = a.next();
        assert_eq!((received.length, received.match_bits), (50, round));
        assert_eq!(b.next().length, 50);
        for tag in [1000, 2000] {
            let buffer = a.filled(&vec![7; bytes]);
            a.endpoint
                .post_tagged_send(3, &a.send(tag), buffer)
                .unwrap();
            let buffer = b.buffer(64);
            b.endpoint
                .post_tagged_recv(4, &b.receive(tag), buffer)
                .unwrap();
            let received = b.next();
            assert_eq!((received.length, received.match_bits), (bytes as u64, tag));
            let sent = a.next();
            assert_eq!((sent.kind, sent.length), (WcKind::Send, bytes as u64));
            assert_eq!((sent.match_bits, sent.immediate), (0, 0), "of a receive");
        }
    }
}
