//! Buffers that several sends read at once.

use crate::common::{connected, fabric};
use host_driver::{PostError, WcStatus};

#[test]
pub fn several_sends_read_one_buffer_at_once_and_the_last_gives_it_back() {
    let (mut a, mut b) = connected(&fabric(), 8);
    let shared = a.filled(b"posthorn").share();
    for k in 0..8 {
        a.endpoint
            .post_tagged_send(k, &a.send(k), shared.clone())
            .unwrap();
    }
    // All are in flight, and the program reads too.
    assert_eq!(a.cq.outstanding(), 8);
    assert_eq!(&shared[..], b"posthorn");
    let mut shared = shared.try_into_buffer().expect_err("in flight");
    for k in 0..8 {
        let buffer = b.buffer(8);
        b.endpoint
            .post_tagged_recv(k, &b.receive(k), buffer)
            .unwrap();
        assert_eq!(b.next().received(), b"posthorn");
    }
    for _ in 0..8 {
        shared = shared.try_into_buffer().expect_err("in flight");
        let sent = a.next();
        assert_eq!(sent.status, WcStatus::Success);
        assert!(sent.buffer.is_none());
        assert_eq!(&sent.shared.unwrap()[..], b"posthorn");
    }
    let mut buffer = shared.try_into_buffer().unwrap();
    buffer.fill(0);
    a.endpoint
        .post_tagged_recv(9, &a.receive(9), buffer)
        .unwrap();
}

#[test]
fn a_slice_sends_its_part_and_keeps_the_whole() {
    let (mut a, mut b) = connected(&fabric(), 8);
    let shared = a.filled(b"posthorn").share();
    let parts = [
        shared.slice(..4),
        shared.slice(4..),
        shared.slice(1..=6).slice(2..4),
        shared.slice(8..),
    ];
    drop(shared);
    for (part, wanted) in parts.iter().zip([&b"post"[..], b"horn", b"th", b""]) {
        assert_eq!(&part[..], wanted);
        a.endpoint
            .post_tagged_send(1, &a.send(7), part.clone())
            .unwrap();
        let buffer = b.buffer(8);
        b.endpoint
            .post_tagged_recv(2, &b.receive(7), buffer)
            .unwrap();
        assert_eq!(b.next().received(), wanted);
        assert_eq!(&a.next().shared.unwrap()[..], wanted);
    }
    let [first, second, third, last] = parts;
    let last = last.try_into_buffer().expect_err("others have it");
    drop((first, second, third));
    assert_eq!(&last.try_into_buffer().unwrap()[..], b"posthorn");
}

#[test]
#[should_panic(expected = "slice past the end")]
fn a_shared_buffer_is_not_sliced_past_its_end() {
    let (mut a, _b) = connected(&fabric(), 8);
    let part = a.filled(b"posthorn").share().slice(2..6);
    let _ = part.slice(..5);
}

#[test]
fn a_refused_send_gives_the_shared_buffer_back() {
    let (a, mut b) = connected(&fabric(), 8);
    let foreign = b.filled(b"foreign").share();
    let refused = a
        .endpoint
        .post_tagged_send(1, &a.send(7), foreign)
        .unwrap_err();
    assert_eq!(refused.error, PostError::WrongDomain);
    b.endpoint.close_pair(b.pair).unwrap();
    let refused = b
        .endpoint
        .post_ready_send(1, &b.send(7), refused.buffer)
        .unwrap_err();
    assert_eq!(refused.error, PostError::InvalidPair);
    assert_eq!(&refused.buffer.try_into_buffer().unwrap()[..], b"foreign");
}

#[test]
fn what_is_flushed_or_cancelled_gives_the_shared_buffer_back() {
    let (mut a, _b) = connected(&fabric(), 1);
    let shared = a.filled(b"posthorn").share();
    let requests: Vec<_> = (0..4)
        .map(|k| {
            a.endpoint
                .post_tagged_send(k, &a.send(7), shared.clone())
                .unwrap()
        })
        .collect();
    a.pause(50_000);
    assert_eq!(a.next().status, WcStatus::Success);
    a.endpoint.cancel(9, requests[2]).unwrap();
    assert_eq!(
        (a.next().status, a.cq.outstanding()),
        (WcStatus::Cancelled, 2)
    );
    let shared = shared.try_into_buffer().expect_err("two wait for credit");
    a.endpoint.close().unwrap();
    for _ in 0..2 {
        assert_eq!(a.next().status, WcStatus::Flushed);
    }
    assert_eq!(&shared.try_into_buffer().unwrap()[..], b"posthorn");
}

#[test]
fn a_region_is_in_use_while_a_shared_buffer_is_out() {
    let (a, _b) = connected(&fabric(), 8);
    let (region, whole) = a.pd.reg_mr(8, host_driver::Access::Read).unwrap();
    let shared = whole.share();
    let region = region.deregister().unwrap_err().0;
    drop(shared);
    region.deregister().unwrap();
}
