//! Ready sends: each finds its receive posted, wherever the library or the card keeps it, or fails alone.

use crate::common::{Side, cramped};
use host_driver::{Request, WcKind, WcStatus};

/// Sends `number` to a receive that is to be posted, and returns how that ended.
fn send_ready(side: &mut Side, tag: u64, number: u64) -> WcStatus {
    let buffer = side.filled(&number.to_le_bytes());
    let send = side.send(tag);
    side.endpoint
        .post_ready_send(number, &send, buffer)
        .expect("posted");
    let sent = side.next();
    assert_eq!((sent.wr_id, sent.kind), (number, WcKind::Send));
    assert_eq!(sent.buffer.expect("it comes back").len(), 8);
    sent.status
}

/// Posts a receive of this tag.
fn post(side: &mut Side, wr_id: u64, tag: u64) -> Request {
    let receive = side.receive(tag);
    side.post(wr_id, &receive)
}

#[test]
pub fn a_ready_send_without_a_receive_fails_and_the_pair_goes_on() {
    let (mut a, mut b) = cramped(64, 2);
    for round in 0..20 {
        // More refusals than there are credits.
        assert_eq!(send_ready(&mut a, 1, round), WcStatus::NotReady);
        post(&mut b, round, 2);
        b.pause(5_000);
        assert_eq!(send_ready(&mut a, 1, round), WcStatus::NotReady);
        assert_eq!(send_ready(&mut a, 2, round), WcStatus::Success);
        let received = b.next();
        assert_eq!(
            (received.wr_id, received.status),
            (round, WcStatus::Success)
        );
        assert_eq!(received.received(), round.to_le_bytes());
    }
    let send = a.send(1);
    let buffer = a.filled(&[7; 8]);
    a.endpoint
        .post_tagged_send(3, &send, buffer)
        .expect("posted");
    assert_eq!(a.next().status, WcStatus::Success);
    post(&mut b, 99, 1);
    assert_eq!(b.next().received(), [7; 8], "the refused ones left nothing");
}

#[test]
fn a_receive_counts_as_posted_from_the_return_of_its_call() {
    let (mut a, mut b) = cramped(64, 8);
    for k in 0..50 {
        post(&mut b, k, k);
    }
    // The last ones are in the ring still.
    for k in (0..50).rev() {
        assert_eq!(send_ready(&mut a, k, k), WcStatus::Success, "{k}");
        let received = b.next();
        assert_eq!((received.wr_id, received.status), (k, WcStatus::Success));
    }
}

#[test]
fn a_ready_send_to_a_receive_that_the_library_keeps_waits_for_it() {
    for posted in [1, 2, 7] {
        let (mut a, mut b) = cramped(posted, 4);
        for k in 0..40 {
            post(&mut b, k, k);
        }
        for k in (0..40).rev() {
            b.pause(20_000);
            assert_eq!(send_ready(&mut a, k, k), WcStatus::Success, "{posted}, {k}");
            let received = b.next();
            assert_eq!((received.wr_id, received.status), (k, WcStatus::Success));
            assert_eq!(received.received(), k.to_le_bytes());
        }
        // Nothing is kept any more, and so the card can tell again.
        assert_eq!(send_ready(&mut a, 0, 0), WcStatus::NotReady);
        assert_eq!(b.cq.strays(), 0);
    }
}

#[test]
fn once_a_backlog_is_cancelled_the_next_receive_makes_the_card_sure_again() {
    let (mut a, mut b) = cramped(2, 4);
    let requests: Vec<_> = (0..10).map(|k| post(&mut b, k, 5)).collect();
    b.pause(20_000);
    for (k, request) in requests.into_iter().enumerate() {
        b.endpoint.cancel(100, request).expect("posted");
        let cancelled = b.next();
        assert_eq!(
            (cancelled.wr_id, cancelled.status),
            (k as u64, WcStatus::Cancelled)
        );
    }
    post(&mut b, 11, 6);
    b.pause(20_000);
    assert_eq!(send_ready(&mut a, 5, 1), WcStatus::NotReady);
    assert_eq!(send_ready(&mut a, 6, 2), WcStatus::Success);
    assert_eq!(b.next().wr_id, 11);
}
