//! Time-outs of requests: each ends once, in time, and says why.

use crate::common::{PATIENCE, Side, able, able_options, connected, cramped, fabric, sized};
use host_driver::{
    Buffer, CompletionChannel, Group, MessageSet, PostError, Put, RemoteRights, WaitError, WcKind,
    WcStatus,
};
use soft_card::SoftFabric;

/// Cycles until a time-out is over.
const TIMEOUT: u64 = 50_000;
/// From then to the completion: a cancel crosses the bus, and is answered.
const CANCEL: u64 = 10_000;

/// The only completion, which comes when the time-out is over.
#[track_caller]
fn times_out(side: &Side, wr_id: u64, set: u64) {
    let ended = side.next();
    assert_eq!((ended.wr_id, ended.status), (wr_id, WcStatus::TimedOut));
    assert!(ended.buffer.is_some(), "the buffer comes back");
    let took = side.device.now() - set;
    assert!((TIMEOUT..TIMEOUT + CANCEL).contains(&took), "{took} cycles");
    side.pause(CANCEL);
    assert!(side.cq.poll().is_none(), "the cancel tells nobody");
    assert_eq!(side.cq.outstanding(), 0);
}

#[test]
pub fn what_has_waited_for_its_time_out_completes_as_timed_out() {
    let fabric = fabric();
    let (mut a, mut b) = connected(&fabric, 1);
    // A receive that nothing matches.
    let receive = b.post(1, &b.receive(7));
    b.endpoint.set_timeout(receive, TIMEOUT).expect("posted");
    times_out(&b, 1, fabric.now());
    // A send without a credit.
    a.endpoint
        .post_tagged_inject(2, &a.send(8), b"x")
        .expect("posted");
    a.pause(CANCEL);
    let buffer = a.filled(b"y");
    let send = a
        .endpoint
        .post_tagged_send(3, &a.send(9), buffer)
        .expect("posted");
    a.endpoint.set_timeout(send, TIMEOUT).expect("posted");
    let set = fabric.now();
    times_out(&a, 3, set);
    // It has left no trace.
    b.post(4, &b.receive(8));
    assert_eq!(b.next().received(), b"x");
    b.post(5, &b.receive(9));
    assert_eq!(b.cq.wait(TIMEOUT).err(), Some(WaitError::Timeout));
}

/// Each thing that may wait behind a message without a credit, in its order, times out at its own time, and leaves nothing.
#[test]
fn whatever_waits_for_its_turn_on_a_pair_times_out() {
    let (mut a, mut b) = able(1);
    let rights = RemoteRights::WRITE;
    let window = b.pd.reg_window(4096, rights).expect("a window");
    let key = window.grant(&b.endpoint, b.pair, rights, 0..4096);
    let put = Put {
        pair: a.pair,
        key: key.expect("a key"),
        offset: 0,
    };
    let pieces = a.filled(b"of two pieces").share();
    let pieces = [pieces.slice(..3), pieces.slice(3..)];
    for wr_id in [1, 2] {
        let send = a.send(wr_id);
        let posted = a.endpoint.post_tagged_send(wr_id, &send, Buffer::empty());
        posted.expect("posted");
    }
    assert_eq!(a.next().wr_id, 1, "it takes the credit");
    let long = a.buffer(3000);
    let buffers = [a.buffer(8), a.buffer(8)].map(Buffer::share);
    let [unsignaled, unsignaled_put] = buffers;
    let (send, endpoint) = (a.send(3), &a.endpoint);
    let waiting = [
        endpoint.post_gather_send(3, &send, &pieces).ok(),
        endpoint.post_ready_send(4, &send, Buffer::empty()).ok(),
        endpoint.post_unsignaled_send(5, &send, unsignaled).ok(),
        endpoint.post_put(6, &put, long).ok(),
        endpoint.post_gather_put(7, &put, &pieces).ok(),
        endpoint.post_unsignaled_put(8, &put, unsignaled_put).ok(),
    ];
    let set = a.device.now();
    for (request, wr_id) in waiting.into_iter().zip(3..) {
        let timeout = TIMEOUT * (wr_id - 2);
        let request = request.expect("posted");
        a.endpoint.set_timeout(request, timeout).expect("it waits");
    }
    for wr_id in 3..=8 {
        let ended = a.next();
        assert_eq!((ended.wr_id, ended.status), (wr_id, WcStatus::TimedOut));
        let took = a.device.now() - set;
        let over = TIMEOUT * (wr_id - 2);
        assert!(
            (over..over + CANCEL).contains(&took),
            "{wr_id}: {took} cycles"
        );
    }
    // Only the two messages have left, and nothing was written.
    for wr_id in [1, 2] {
        b.post(wr_id, &b.receive(wr_id));
        assert_eq!(b.next().wr_id, wr_id);
    }
    assert_eq!(a.next().wr_id, 2);
    b.post(3, &b.receive(3));
    assert_eq!(b.cq.wait(2 * TIMEOUT).err(), Some(WaitError::Timeout));
    let mut bytes = [1; 4096];
    window.read(0, &mut bytes);
    assert_eq!(bytes, [0; 4096]);
    assert_eq!((a.cq.outstanding(), a.cq.strays()), (0, 0));
}

/// What looks for a message waits for nothing, and has no time-out: not even behind receives that wait for room, each of which has one.
#[test]
fn what_can_have_no_time_out_waits_for_nothing() {
    let (_a, mut b) = cramped(4, 4);
    let receives: Vec<_> = (0..12)
        .map(|wr_id| b.post(wr_id, &b.receive(wr_id)))
        .collect();
    assert_eq!(b.cq.wait(TIMEOUT).err(), Some(WaitError::Timeout));
    assert!(b.endpoint.query().kept > 0, "there is no room for them");
    let receive = b.receive(99);
    let looks = [
        b.endpoint.probe(12, &receive).expect("room"),
        b.endpoint.claim(13, &receive).expect("room"),
    ];
    for look in looks {
        let refused = b.endpoint.set_timeout(look, TIMEOUT);
        assert_eq!(refused, Err(PostError::NothingToCancel));
    }
    let posted = b.device.now();
    for wr_id in [12, 13] {
        let ended = b.next();
        assert_eq!((ended.wr_id, ended.status), (wr_id, WcStatus::NoMessage));
    }
    assert!(b.device.now() - posted < CANCEL);
    for receive in receives {
        b.endpoint.set_timeout(receive, TIMEOUT).expect("posted");
    }
    for _ in 0..12 {
        assert_eq!(b.next().status, WcStatus::TimedOut);
    }
    assert_eq!(b.cq.outstanding(), 0);
}

#[test]
fn what_has_ended_before_is_not_concerned() {
    let (mut a, mut b) = connected(&fabric(), 4);
    let receive = b.post(1, &b.receive(7));
    b.endpoint.set_timeout(receive, TIMEOUT).expect("posted");
    a.endpoint
        .post_tagged_inject(2, &a.send(7), b"x")
        .expect("posted");
    // It matches, and nobody polls until the time-out is over.
    b.pause(2 * TIMEOUT);
    let ended = b.next();
    assert_eq!((ended.wr_id, ended.received()), (1, &b"x"[..]));
    assert_eq!(b.cq.wait(TIMEOUT).err(), Some(WaitError::Timeout));
    assert_eq!(b.cq.outstanding(), 0);
    let gone = b.endpoint.set_timeout(receive, TIMEOUT);
    assert_eq!(gone, Err(PostError::NothingToCancel));
    // A time-out that is taken back, and one in its place.
    let receive = b.post(3, &b.receive(7));
    for timeout in [TIMEOUT, u64::MAX] {
        b.endpoint.set_timeout(receive, timeout).expect("posted");
    }
    assert_eq!(b.cq.wait(2 * TIMEOUT).err(), Some(WaitError::Timeout));
    b.endpoint.set_timeout(receive, TIMEOUT).expect("posted");
    times_out(&b, 3, b.device.now());
    // A cancel of the program's comes first.
    let receive = b.post(4, &b.receive(7));
    b.endpoint.set_timeout(receive, TIMEOUT).expect("posted");
    b.endpoint.cancel(5, receive).expect("posted");
    let twice = b.endpoint.set_timeout(receive, TIMEOUT);
    assert_eq!(twice, Err(PostError::NothingToCancel));
    assert_eq!(b.next().status, WcStatus::Cancelled);
    b.endpoint.close().expect("closed");
    let closed = b.endpoint.set_timeout(receive, TIMEOUT);
    assert_eq!(closed, Err(PostError::Closed));
    let _ = &mut a;
}

/// Those for which the card has no room, too; each at its own time, whatever their order.
#[test]
fn each_of_many_requests_times_out_at_its_own_time() {
    let (_a, mut b) = cramped(4, 4);
    let before = b.device.now();
    let times: Vec<u64> = (0..12).map(|k| TIMEOUT * (1 + k * 5 % 12)).collect();
    for (wr_id, &timeout) in (0..).zip(&times) {
        let receive = b.post(wr_id, &b.receive(100 + wr_id));
        b.endpoint.set_timeout(receive, timeout).expect("posted");
    }
    for nth in 1..=12 {
        let ended = b.next();
        assert_eq!(ended.status, WcStatus::TimedOut);
        let took = b.device.now() - before;
        assert_eq!(times[ended.wr_id as usize], nth * TIMEOUT);
        assert!(
            (nth * TIMEOUT..nth * TIMEOUT + 2 * CANCEL).contains(&took),
            "{took} cycles"
        );
    }
    assert_eq!(b.cq.outstanding(), 0);
}

#[test]
fn a_time_out_whose_cancel_finds_no_room_is_tried_again() {
    let (_a, mut b) = sized(&fabric(), 4, 4);
    let posted: Vec<_> = (0..4)
        .map(|wr_id| b.post(wr_id, &b.receive(wr_id)))
        .collect();
    b.endpoint.set_timeout(posted[0], TIMEOUT).expect("posted");
    let mut channel = CompletionChannel::new(std::slice::from_ref(&b.cq));
    assert_eq!(channel.wait(2 * TIMEOUT), Err(WaitError::Timeout));
    b.endpoint.close_pair(b.pair).expect("closed");
    for _ in 0..4 {
        assert_eq!(b.next().status, WcStatus::Flushed);
    }
    assert_eq!(b.cq.outstanding(), 0);
}

#[test]
fn a_channel_wakes_for_a_time_out_of_any_of_its_queues() {
    let (mut a, b) = connected(&fabric(), 4);
    let other = a.pd.endpoint().open().expect("an endpoint");
    let receive = a.post(1, &a.receive(7));
    a.endpoint.set_timeout(receive, TIMEOUT).expect("posted");
    let mut channel = CompletionChannel::new(&[other.completion_queue(), a.cq.clone()]);
    let set = a.device.now();
    assert_eq!(channel.wait(PATIENCE), Ok(1));
    times_out(&a, 1, set);
    drop(b);
}

/// A sweep counts what it has cancelled, and leaves a time-out its own.
#[test]
fn a_time_out_within_a_revocation_is_no_part_of_it() {
    let fabric = SoftFabric::new(able_options());
    let (mut a, _b) = connected(&fabric, 4);
    let receives: Vec<_> = (0..3)
        .map(|wr_id| a.post(wr_id, &a.receive(wr_id)))
        .collect();
    a.endpoint.set_timeout(receives[1], 0).expect("posted");
    let group = Group::new(&a.endpoint, &[(1, a.pair)], 0).expect("a group");
    let of_context = MessageSet::of_context(0);
    let revoked = a
        .endpoint
        .revoke(&group, &of_context, PATIENCE)
        .expect("revoked");
    assert_eq!(revoked.swept.receives, 2);
    let mut told: Vec<_> = (0..3).map(|_| a.next()).collect();
    told.sort_by_key(|ended| ended.wr_id);
    assert!(told.iter().all(|ended| ended.kind == WcKind::Receive));
    let told: Vec<_> = told.iter().map(|ended| ended.status).collect();
    let (revoked, timed_out) = (WcStatus::Revoked, WcStatus::TimedOut);
    assert_eq!(told, [revoked, timed_out, revoked]);
}
