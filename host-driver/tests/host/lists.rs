//! Lists of requests with one doorbell, and polling for many completions in one call.

use crate::common::{Side, able, connected, cramped, fabric, sized};
use host_driver::transport::TransportError;
use host_driver::{
    Access, Buffer, Gather, Payload, PostError, RecvWr, Request, SendFlags, SendLimits, SendWr,
    SharedBuffer, WcStatus, WorkCompletion,
};

/// Sends of one byte each, which is also the number of the request.
fn sends(side: &mut Side, count: u8) -> Vec<SendWr> {
    (0..count)
        .map(|k| SendWr {
            wr_id: k.into(),
            send: side.send(7),
            flags: SendFlags::empty(),
            buffer: side.filled(&[k]),
        })
        .collect()
}

/// Receives of eight bytes each.
fn receives(side: &mut Side, count: u8) -> Vec<RecvWr> {
    (0..count)
        .map(|k| RecvWr {
            wr_id: k.into(),
            receive: side.receive(7),
            multi: None,
            buffer: side.buffer(8),
        })
        .collect()
}

/// Takes `count` completions, as many at a time as there are.
fn poll(side: &Side, count: usize) -> Vec<WorkCompletion> {
    let mut completions = Vec::new();
    while completions.len() < count {
        let left = count - completions.len();
        if side.cq.poll_many(&mut completions, left) == 0 {
            completions.push(side.next());
        }
    }
    completions
}

fn numbers(completions: &[WorkCompletion]) -> Vec<u64> {
    completions.iter().map(|found| found.wr_id).collect()
}

#[test]
pub fn a_list_is_posted_in_order_by_one_doorbell() {
    let fabric = fabric();
    let (mut a, mut b) = connected(&fabric, 8);
    let mut handles = Vec::new();
    let (sends, receives) = (sends(&mut a, 8), receives(&mut b, 8));
    let before = (fabric.doorbells(0), fabric.doorbells(1));
    b.endpoint.post_recv_list(receives, &mut handles).unwrap();
    a.endpoint.post_send_list(sends, &mut handles).unwrap();
    assert_eq!(handles.len(), 16);
    a.pause(50_000);
    let after = (fabric.doorbells(0), fabric.doorbells(1));
    assert_eq!((after.0 - before.0, after.1 - before.1), (1, 1));
    let received = poll(&b, 8);
    for (k, found) in received.iter().enumerate() {
        assert_eq!((found.wr_id, found.request), (k as u64, handles[k]));
        assert_eq!(found.received(), [k as u8]);
    }
    assert_eq!(numbers(&poll(&a, 8)), (0..8).collect::<Vec<_>>());
}

#[test]
fn an_empty_list_rings_nothing() {
    let fabric = fabric();
    let (a, _b) = connected(&fabric, 8);
    let before = fabric.doorbells(0);
    let none: [SendWr; 0] = [];
    a.endpoint.post_send_list(none, &mut Vec::new()).unwrap();
    a.endpoint.post_recv_list([], &mut Vec::new()).unwrap();
    a.pause(1000);
    assert_eq!(fabric.doorbells(0), before);
}

#[test]
fn a_list_that_is_longer_than_the_card_holds_of_a_pair_is_posted_by_one_doorbell_and_then_on() {
    let fabric = fabric();
    let (mut a, b) = connected(&fabric, 16);
    let list = sends(&mut a, 11);
    let before = fabric.doorbells(0);
    let mut handles = Vec::new();
    a.endpoint.post_send_list(list, &mut handles).unwrap();
    a.pause(100);
    assert_eq!((handles.len(), fabric.doorbells(0) - before), (11, 1));
    assert_eq!(numbers(&poll(&a, 11)), (0..11).collect::<Vec<_>>());
    assert_eq!(b.cq.outstanding(), 0);
}

#[test]
fn a_list_that_is_longer_than_the_pairs_limit_is_posted_as_far_as_it_goes_and_then_on() {
    let (mut a, b) = connected(&fabric(), 16);
    let limits = SendLimits {
        outstanding: 8,
        ..SendLimits::default()
    };
    a.endpoint.set_send_limits(a.pair, limits).unwrap();
    let list = sends(&mut a, 11);
    let mut handles = Vec::new();
    let refused = a.endpoint.post_send_list(list, &mut handles).unwrap_err();
    assert_eq!((refused.posted, handles.len()), (8, 8));
    assert_eq!(refused.error, PostError::PairBusy);
    assert_eq!(refused.request.wr_id, 8);
    assert_eq!(refused.request.buffer[..], [8]);
    assert_eq!(
        refused.to_string(),
        "request 8 of the list: the pair has as many sends outstanding as it may"
    );
    assert_eq!(numbers(&poll(&a, 8)), (0..8).collect::<Vec<_>>());
    let rest = [refused.request].into_iter().chain(refused.rest);
    a.endpoint.post_send_list(rest, &mut handles).unwrap();
    assert_eq!(numbers(&poll(&a, 3)), [8, 9, 10]);
    assert_eq!(b.cq.outstanding(), 0);
}

/// Posts both kinds of list with the request at `bad` made bad, and says what was posted and why not more.
fn refused(
    side: &mut Side,
    spoil: impl FnOnce(&mut SendWr, &mut RecvWr),
    bad: usize,
) -> [(usize, PostError); 2] {
    let (mut sends, mut receives) = (sends(side, 4), receives(side, 4));
    spoil(&mut sends[bad], &mut receives[bad]);
    let mut handles: Vec<Request> = Vec::new();
    let send = side.endpoint.post_send_list(sends, &mut handles);
    let send = send.unwrap_err();
    let receive = side.endpoint.post_recv_list(receives, &mut handles);
    let receive = receive.unwrap_err();
    assert_eq!(handles.len(), send.posted + receive.posted);
    assert_eq!(send.request.wr_id, send.posted as u64);
    assert_eq!(receive.request.wr_id, receive.posted as u64);
    assert_eq!(send.rest.count(), 3 - send.posted);
    assert_eq!(receive.rest.count(), 3 - receive.posted);
    [(send.posted, send.error), (receive.posted, receive.error)]
}

#[test]
fn the_request_that_is_refused_is_named_whatever_is_wrong_with_it() {
    let (mut a, mut b) = connected(&fabric(), 8);
    let gone = a.endpoint.open_pair(1).unwrap().0;
    a.endpoint.close_pair(gone).unwrap();
    let closed_pair = refused(
        &mut a,
        |send, receive| {
            send.send.pair = gone;
            receive.receive.source = host_driver::Source::Pair(gone);
        },
        1,
    );
    assert_eq!(closed_pair, [(1, PostError::InvalidPair); 2]);
    let (_region, mut foreign) = a
        .device
        .alloc_pd()
        .unwrap()
        .reg_mr(8, Access::Read)
        .unwrap();
    let half = foreign.split_to(4);
    let domain = refused(
        &mut a,
        |send, receive| {
            send.buffer = half;
            receive.buffer = foreign;
        },
        2,
    );
    assert_eq!(domain, [(2, PostError::WrongDomain); 2]);
    b.endpoint.close().unwrap();
    let closed = refused(&mut b, |_, _| {}, 0);
    assert_eq!(closed, [(0, PostError::Closed); 2]);
}

#[test]
fn a_list_stops_where_the_completion_queue_is_full() {
    let (mut a, mut b) = sized(&fabric(), 8, 4);
    let list = sends(&mut a, 6);
    let refused = a.endpoint.post_send_list(list, &mut Vec::new());
    let refused = refused.unwrap_err();
    assert_eq!(
        (refused.posted, refused.error),
        (4, PostError::CompletionQueueFull)
    );
    let list = receives(&mut b, 6);
    let refused = b
        .endpoint
        .post_recv_list(list, &mut Vec::new())
        .unwrap_err();
    assert_eq!(
        (refused.posted, refused.error),
        (4, PostError::CompletionQueueFull)
    );
    assert_eq!(numbers(&poll(&b, 4)), [0, 1, 2, 3]);
    b.endpoint
        .post_recv_list(
            [refused.request].into_iter().chain(refused.rest),
            &mut Vec::new(),
        )
        .unwrap();
}

#[test]
fn a_list_stops_where_the_ring_is_full_and_goes_on_when_the_card_has_fetched() {
    let (mut a, _b) = connected(&fabric(), 8);
    let endpoint = a.pd.endpoint().send_ring(4).list_ring(4).open().unwrap();
    let cq = endpoint.completion_queue();
    let (to, address) = endpoint.open_pair(8).unwrap();
    let (back, back_address) = endpoint.open_pair(8).unwrap();
    endpoint.connect_pair(to, &back_address).unwrap();
    endpoint.connect_pair(back, &address).unwrap();
    let mut sends = sends(&mut a, 6);
    let mut receives = receives(&mut a, 6);
    for (send, receive) in sends.iter_mut().zip(&mut receives) {
        send.send.pair = to;
        receive.receive.source = host_driver::Source::Pair(back);
    }
    let mut handles = Vec::new();
    let more_receives = endpoint.post_recv_list(receives, &mut handles).unwrap_err();
    assert_eq!(
        (more_receives.posted, more_receives.error),
        (4, PostError::ListRingFull)
    );
    let more_sends = endpoint.post_send_list(sends, &mut handles).unwrap_err();
    assert_eq!(
        (more_sends.posted, more_sends.error),
        (4, PostError::SendRingFull)
    );
    a.pause(10_000);
    endpoint
        .post_recv_list(
            [more_receives.request]
                .into_iter()
                .chain(more_receives.rest),
            &mut handles,
        )
        .unwrap();
    endpoint
        .post_send_list(
            [more_sends.request].into_iter().chain(more_sends.rest),
            &mut handles,
        )
        .unwrap();
    let mut seen = Vec::new();
    while seen.len() < 12 {
        seen.push(cq.wait(crate::common::PATIENCE).unwrap().wr_id);
    }
    seen.sort_unstable();
    assert_eq!(seen, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
}

#[test]
fn a_list_to_a_card_that_is_gone_is_refused() {
    let fabric = fabric();
    let (mut a, _b) = connected(&fabric, 8);
    fabric.close();
    let gone = refused(&mut a, |_, _| {}, 0);
    assert_eq!(gone, [(0, TransportError::Closed.into()); 2]);
}

#[test]
fn a_list_whose_doorbell_is_lost_is_rung_for_by_the_next_call() {
    let fabric = fabric();
    let (mut a, mut b) = connected(&fabric, 8);
    let list = receives(&mut b, 3);
    b.endpoint.post_recv_list(list, &mut Vec::new()).unwrap();
    let list = sends(&mut a, 3);
    fabric.cut(0, true);
    a.endpoint.post_send_list(list, &mut Vec::new()).unwrap();
    fabric.cut(0, false);
    assert_eq!(numbers(&poll(&a, 3)), [0, 1, 2]);
    assert_eq!(numbers(&poll(&b, 3)), [0, 1, 2]);
}

#[test]
fn receives_of_a_list_that_the_card_has_no_room_for_are_kept_in_order() {
    let (a, mut b) = cramped(4, 8);
    let mut list = receives(&mut b, 12);
    list[11].multi = Some(1);
    b.endpoint.post_recv_list(list, &mut Vec::new()).unwrap();
    for k in 0..13u8 {
        while a.endpoint.post_tagged_inject(0, &a.send(7), &[k]).is_err() {
            a.pause(100);
        }
        let found = b.next();
        assert_eq!(found.received(), [k]);
        assert_eq!((found.wr_id, found.more), (u64::from(k).min(11), k >= 11));
    }
}

#[test]
fn a_list_may_hold_both_kinds_of_buffers_and_ready_sends() {
    let (mut a, mut b) = connected(&fabric(), 8);
    let shared = a.filled(b"shared").share();
    let (send, unique) = (a.send(7), a.filled(b"unique"));
    let wr = |wr_id, buffer: Payload| SendWr {
        wr_id,
        send,
        flags: match wr_id {
            2 => SendFlags::READY,
            _ => SendFlags::empty(),
        },
        buffer,
    };
    let list = receives(&mut b, 2);
    b.endpoint.post_recv_list(list, &mut Vec::new()).unwrap();
    b.pause(10_000);
    let list = [
        wr(0, shared.clone().into()),
        wr(1, unique.into()),
        wr(2, shared.into()),
    ];
    a.endpoint.post_send_list(list, &mut Vec::new()).unwrap();
    let sent = poll(&a, 3);
    let mut statuses: Vec<_> = sent.iter().map(|sent| (sent.wr_id, sent.status)).collect();
    statuses.sort_unstable_by_key(|&(wr_id, _)| wr_id);
    let ok = WcStatus::Success;
    assert_eq!(statuses, [(0, ok), (1, ok), (2, WcStatus::NotReady)]);
    let mut received = poll(&b, 2);
    assert_eq!(received.pop().unwrap().received(), b"unique");
    assert_eq!(received.pop().unwrap().received(), b"shared");
}

#[test]
fn a_list_may_hold_gathers_and_sends_that_tell_only_of_errors() {
    let (mut a, mut b) = able(8);
    let text = a.filled(b"one two three").share();
    let gathers = [
        Gather::new(&[text.slice(..3), text.slice(4..7), text.slice(8..)]).unwrap(),
        Gather::from(text.clone()),
        Gather::default(),
    ];
    let list = receives(&mut b, 5).into_iter().map(|wr| RecvWr {
        buffer: b.buffer(16),
        ..wr
    });
    let list: Vec<_> = list.collect();
    b.endpoint.post_recv_list(list, &mut Vec::new()).unwrap();
    let send = a.send(7);
    let quiet = |wr_id| match wr_id {
        0 => SendFlags::UNSIGNALED,
        _ => SendFlags::empty(),
    };
    let list = (0..).zip(gathers).map(|(wr_id, buffer)| SendWr {
        wr_id,
        send,
        flags: quiet(wr_id),
        buffer,
    });
    a.endpoint.post_send_list(list, &mut Vec::new()).unwrap();
    // A buffer that is no shared one is dropped when such a send has ended.
    let list = (3..5).map(|wr_id| SendWr {
        wr_id,
        send,
        flags: SendFlags::UNSIGNALED | SendFlags::READY,
        buffer: a.filled(&[wr_id as u8]),
    });
    let list: Vec<_> = list.collect();
    a.endpoint.post_send_list(list, &mut Vec::new()).unwrap();
    let messages: [&[u8]; 5] = [b"onetwothree", b"one two three", b"", &[3], &[4]];
    for (found, message) in poll(&b, 5).iter().zip(messages) {
        assert_eq!(found.received(), message);
    }
    assert_eq!(numbers(&poll(&a, 2)), [1, 2]);
    // Nothing is told of the others, until one of them is refused.
    let list = [SendWr {
        wr_id: 5,
        send,
        flags: SendFlags::UNSIGNALED | SendFlags::READY,
        buffer: a.filled(&[5]),
    }];
    a.endpoint.post_send_list(list, &mut Vec::new()).unwrap();
    let refused = a.next();
    assert_eq!((refused.wr_id, refused.status), (5, WcStatus::NotReady));
    assert_eq!(a.cq.outstanding(), 0);
    assert_eq!(text.try_into_buffer().expect("the last")[..3], *b"one");
}

/// Posts a list of a send and of one with these flags and segments, which is refused; returns why.
fn refused_gather(side: &Side, flags: SendFlags, segments: &[SharedBuffer]) -> PostError {
    let wr = |wr_id, flags, buffer| SendWr {
        wr_id,
        send: side.send(7),
        flags,
        buffer,
    };
    let list = [
        wr(0, SendFlags::empty(), Gather::default()),
        wr(1, flags, Gather::new(segments).expect("few")),
    ];
    let mut handles = Vec::new();
    let refused = side.endpoint.post_send_list(list, &mut handles);
    let refused = refused.expect_err("the second");
    assert_eq!((refused.posted, handles.len()), (1, 1));
    let back = refused.request.buffer.segments().count();
    assert_eq!(back, segments.len());
    refused.error
}

#[test]
fn a_list_stops_at_what_the_card_lacks_or_no_message_can_be() {
    let none = SendFlags::empty();
    let (mut a, _b) = connected(&fabric(), 8);
    let part = a.buffer(400).share();
    let unsupported = PostError::Unsupported;
    let two = [part.slice(..8), part.slice(8..16)];
    assert_eq!(refused_gather(&a, none, &two), unsupported);
    let quiet = SendFlags::UNSIGNALED;
    assert_eq!(refused_gather(&a, quiet, &two[..1]), unsupported);
    let (mut a, _b) = able(8);
    let foreign = part;
    let part = a.buffer(400).share();
    let mixed = [part.clone(), foreign];
    assert_eq!(refused_gather(&a, none, &mixed), PostError::WrongDomain);
    let long = vec![part.clone(); 3];
    assert_eq!(refused_gather(&a, none, &long), PostError::TooLong);
    let many = Gather::new(&vec![part; 5]).unwrap_err();
    assert_eq!(many, PostError::TooManySegments);
}

#[test]
pub fn a_poll_takes_no_more_than_its_limit_and_nothing_when_there_is_nothing() {
    let (mut a, b) = connected(&fabric(), 8);
    let mut completions = Vec::new();
    assert_eq!(a.cq.poll_many(&mut completions, 8), 0);
    let list = sends(&mut a, 8);
    a.endpoint.post_send_list(list, &mut Vec::new()).unwrap();
    b.pause(100_000);
    assert_eq!(a.cq.poll_many(&mut completions, 0), 0);
    assert_eq!(a.cq.poll_many(&mut completions, 3), 3);
    assert_eq!(a.cq.outstanding(), 5);
    assert_eq!(a.cq.poll_many(&mut completions, usize::MAX), 5);
    assert_eq!(numbers(&completions), (0..8).collect::<Vec<_>>());
    a.endpoint
        .post_tagged_send(9, &a.send(7), Buffer::empty())
        .unwrap();
    a.endpoint.close().unwrap();
    assert_eq!(a.cq.poll_many(&mut completions, 8), 1);
    assert_eq!(completions[8].wr_id, 9);
}
