//! Peers that fail, are said to have failed, and come back; and signals.

use crate::common::{Side, connected, fabric};
use abi::event::INFO_CLOSED_BIT;
use abi::times::WATCH_INTERVAL_LEAST;
use host_driver::{
    AsyncEvent, Cause, FailureCause, Pair, PairState, PeerState, Source, TaggedReceive,
    WatchOptions, WcStatus,
};

/// A look every 131 µs, and failure after eight.
const WATCH: WatchOptions = WatchOptions {
    interval: WATCH_INTERVAL_LEAST,
    timeout: 8 * WATCH_INTERVAL_LEAST,
    believe_peers: false,
};
/// By then a silent peer has failed.
const SURELY: u64 = 13 * WATCH_INTERVAL_LEAST as u64;

fn anyone() -> TaggedReceive {
    TaggedReceive {
        source: Source::Any,
        context: 0,
        match_bits: 1,
        ignore_bits: 0,
    }
}

fn events(side: &Side) -> Vec<AsyncEvent> {
    std::iter::from_fn(|| side.endpoint.poll_event().expect("within reach")).collect()
}

/// What the card takes the peer of a side for.
fn peer(side: &Side) -> (PairState, PeerState, Option<FailureCause>) {
    let status = side.endpoint.query_pair(side.pair).expect("an open pair");
    (status.state, status.peer_state, status.failure)
}

const ALIVE: (PairState, PeerState, Option<FailureCause>) =
    (PairState::Connected, PeerState::Alive, None);

#[test]
pub fn a_process_that_only_receives_learns_that_its_peer_has_failed() {
    let fabric = fabric();
    let (mut a, b) = connected(&fabric, 4);
    a.endpoint.watch_peers(WATCH).expect("watched");
    a.post(1, &a.receive(7));
    a.post(2, &anyone());
    a.pause(4 * SURELY);
    assert_eq!(peer(&a), ALIVE);
    assert_eq!(a.endpoint.failed_peers(), Ok(vec![]));
    assert_eq!(a.endpoint.pending_failures(), Ok(vec![]));
    (0..2).for_each(|card| fabric.lose_frames(card, u32::MAX));
    a.pause(SURELY);
    // What names the peer ends; what anybody may meet stays.
    let ended = a.next_past_events();
    assert_eq!((ended.wr_id, ended.status), (1, WcStatus::PeerFailed));
    assert!(a.cq.poll().is_none());
    let failed = (
        PairState::Failed,
        PeerState::Failed,
        Some(FailureCause::Silence),
    );
    assert_eq!(peer(&a), failed);
    let event = events(&a);
    assert_eq!(event.len(), 1);
    assert_eq!(
        (event[0].cause, event[0].pair),
        (Cause::PeerFailed, Some(a.pair))
    );
    assert_eq!(event[0].info, u64::from(WcStatus::PeerFailed.code()));
    assert_eq!(a.endpoint.failed_peers(), Ok(vec![a.pair]));
    assert_eq!(a.endpoint.pending_failures(), Ok(vec![a.pair]));
    assert_eq!(a.endpoint.acknowledge_failures(), Ok(vec![a.pair]));
    assert_eq!(a.endpoint.pending_failures(), Ok(vec![]));
    assert_eq!(a.endpoint.failed_peers(), Ok(vec![a.pair]));
    // The peer watches nobody, and has nothing to send.
    assert_eq!(peer(&b), ALIVE);
}

/// As it was: who closed without a disconnect was taken for one that violates the protocol.
#[test]
pub fn a_peer_that_closes_without_a_disconnect_has_failed_and_broken_no_rule() {
    type Close = fn(&Side);
    let ways: [Close; 2] = [
        |b| b.endpoint.close_pair(b.pair).expect("open"),
        |b| b.endpoint.close().expect("open"),
    ];
    for close in ways {
        let fabric = fabric();
        let (mut a, b) = connected(&fabric, 4);
        a.post(1, &a.receive(7));
        close(&b);
        assert_eq!(a.next_past_events().status, WcStatus::PeerFailed);
        let closed = Some(FailureCause::Closed);
        assert_eq!(peer(&a), (PairState::Failed, PeerState::Failed, closed));
        let told = events(&a);
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(
            (told[0].cause, told[0].pair),
            (Cause::PeerFailed, Some(a.pair))
        );
        let status = u64::from(WcStatus::PeerFailed.code());
        assert_eq!(told[0].info, status | 1 << INFO_CLOSED_BIT);
        assert_eq!(a.endpoint.failed_peers(), Ok(vec![a.pair]));
    }
    // Who is declared failed though it lives is told another thing.
    let fabric = fabric();
    let (mut a, b) = connected(&fabric, 4);
    a.post(1, &a.receive(7));
    b.endpoint.declare_failed(b.pair).expect("connected");
    assert_eq!(a.next_past_events().status, WcStatus::LinkError);
    assert_eq!(events(&a)[0].cause, Cause::LinkError);
}

#[test]
pub fn a_failure_is_pending_only_for_a_receive_from_any_source() {
    let fabric = fabric();
    let (mut a, _b) = connected(&fabric, 4);
    a.post(1, &a.receive(7));
    a.endpoint.declare_failed(a.pair).expect("connected");
    assert_eq!(a.next_past_events().status, WcStatus::PeerFailed);
    assert_eq!(a.endpoint.pending_failures(), Ok(vec![]));
    let request = a.post(2, &anyone());
    assert_eq!(a.endpoint.pending_failures(), Ok(vec![a.pair]));
    a.endpoint.cancel(3, request).expect("there is room");
    assert_eq!(a.next_past_events().status, WcStatus::Cancelled);
    assert_eq!(a.endpoint.pending_failures(), Ok(vec![]));
}

#[test]
fn a_busy_link_carries_no_heartbeats() {
    let fabric = fabric();
    let (mut a, b) = connected(&fabric, 4);
    let frames = |side: &Side| {
        let counter = host_driver::Counter::FramesSent;
        side.device.read_counter(counter).expect("a counter")
    };
    let mut sent = [0; 2];
    for (way, watched) in [false, true].into_iter().enumerate() {
        if watched {
            b.endpoint.watch_peers(WATCH).expect("watched");
        }
        let before = frames(&b);
        for k in 0..40 {
            let buffer = a.buffer(0);
            a.endpoint.post_tagged_send(k, &a.send(9), buffer).unwrap();
            b.endpoint
                .post_tagged_recv(k, &b.receive(9), host_driver::Buffer::empty())
                .unwrap();
            a.pause(u64::from(WATCH.interval) / 2);
            assert_eq!(a.next().status, WcStatus::Success);
            assert_eq!(b.next().status, WcStatus::Success);
        }
        sent[way] = frames(&b) - before;
    }
    assert_eq!(sent[0], sent[1], "what is watched and busy sends no more");
    let before = frames(&b);
    b.pause(20 * u64::from(WATCH.interval));
    assert!(frames(&b) - before >= 10, "what is watched and idle does");
}

#[test]
fn a_peer_that_was_declared_failed_is_cut_off_and_comes_back_as_another() {
    let fabric = fabric();
    let (a, b) = connected(&fabric, 4);
    let connect = || {
        let offer = b.endpoint.listen(4).expect("a pair");
        let pair = a.endpoint.connect(&b.endpoint.address(), 4, 0);
        (pair.expect("connected"), offer)
    };
    for side in [&a, &b] {
        side.endpoint.close_pair(side.pair).expect("closed");
    }
    let (near, far) = connect();
    assert_eq!(
        a.endpoint.query_pair(near).unwrap().peer_state,
        PeerState::Alive
    );
    a.endpoint.declare_failed(near).expect("connected");
    a.endpoint
        .declare_failed(near)
        .expect("once more is nothing");
    let status = a.endpoint.query_pair(near).unwrap();
    assert_eq!(status.failure, Some(FailureCause::Declared));
    a.pause(100_000);
    assert_eq!(b.endpoint.query_pair(far).unwrap().state, PairState::Failed);
    for (side, pair) in [(&a, near), (&b, far)] {
        side.endpoint.close_pair(pair).expect("closed");
    }
    assert_eq!(a.endpoint.failed_peers(), Ok(vec![]));
    let (near, far) = connect();
    let states = [(&a, near), (&b, far)]
        .map(|(side, pair)| side.endpoint.query_pair(pair).unwrap().peer_state);
    assert_eq!(states, [PeerState::Rejoined, PeerState::Alive]);
}

#[test]
fn signals_arrive_in_order_and_need_no_credit() {
    let fabric = fabric();
    let (mut a, b) = connected(&fabric, 1);
    // The only envelope is taken, and the wire loses frames of the firmware.
    for k in 0..2 {
        let buffer = a.buffer(8);
        a.endpoint.post_tagged_send(k, &a.send(9), buffer).unwrap();
    }
    fabric.lose_frames(0, 1);
    let words = [7, u64::MAX, 0];
    for word in words {
        while a.endpoint.signal(a.pair, word).is_err() {
            a.pause(10_000);
        }
    }
    a.pause(1 << 20);
    let signals = events(&b);
    let signals: Vec<(Cause, Option<Pair>, u64)> =
        signals.iter().map(|e| (e.cause, e.pair, e.info)).collect();
    let expected = words.map(|word| (Cause::Signal, Some(b.pair), word));
    assert_eq!(signals, expected);
}

#[test]
fn a_failure_is_told_to_who_believes_it() {
    let fabric = fabric();
    let (a, b) = connected(&fabric, 4);
    // Each card has a second endpoint, and those of both are connected to the first ones.
    let other = a.pd.endpoint().open().expect("an endpoint");
    let join = |from: &Side| {
        let offer = other.listen(2).expect("a pair");
        let pair = from.endpoint.connect(&other.address(), 2, 0);
        (pair.expect("connected"), offer)
    };
    let (of_a, _) = join(&a);
    let (of_b, _) = join(&b);
    b.endpoint
        .watch_peers(WatchOptions {
            believe_peers: true,
            ..WatchOptions::OFF
        })
        .expect("watched");
    a.endpoint.declare_failed(of_a).expect("connected");
    a.endpoint.tell_failed(of_a, &[a.pair]).expect("told");
    b.pause(100_000);
    let status = b.endpoint.query_pair(of_b).expect("an open pair");
    assert_eq!(status.failure, Some(FailureCause::Told));
    assert_eq!(peer(&b), ALIVE);
}
