//! Peers that fail, are said to have failed, and come back; and signals.

use crate::common::{PATIENCE, Side, connected, fabric, opened};
use abi::event::INFO_CLOSED_BIT;
use abi::register::{SEND_TAIL, endpoint_page};
use abi::times::WATCH_INTERVAL_LEAST;
use host_driver::transport::TransportError;
use host_driver::{
    AsyncEvent, Cause, Causes, CommandError, FailureCause, Pair, PairState, PairTimes, PeerState,
    Source, TaggedReceive, WaitError, WatchOptions, WcStatus,
};
use soft_card::{Passing, SoftFabric};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

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

/// The events that there are; the first hundred of a library that never stops.
fn events(side: &Side) -> Vec<AsyncEvent> {
    let events = std::iter::from_fn(|| side.endpoint.poll_event().expect("within reach"));
    events.take(100).collect()
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
    let told: Vec<_> = event
        .iter()
        .map(|event| (event.cause, event.pair))
        .collect();
    let causes = [Cause::PeerFailed, Cause::PeerFailedPending];
    assert_eq!(told, causes.map(|cause| (cause, Some(a.pair))));
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

/// What is posted before a failure, and one receive behind it, as they end: nine of them, of which all but one name the peer.
fn posted(side: &mut Side) {
    for k in 0..5 {
        side.post(k, &side.receive(7));
    }
    side.post(5, &anyone());
    for k in 6..8 {
        let buffer = side.buffer(8);
        let send = side.send(9);
        side.endpoint
            .post_tagged_send(k, &send, buffer)
            .expect("room");
    }
    let send = side.send(9);
    side.endpoint
        .post_tagged_inject(8, &send, b"x")
        .expect("a buffer");
}

#[test]
pub fn a_failure_says_who_failed_how_and_what_was_lost() {
    type Fail = fn(&SoftFabric, &Side, &Side);
    type Way = (Fail, FailureCause, Option<u64>, Option<u8>, &'static str);
    let cut: Fail = |fabric, _, _| (0..2).for_each(|card| fabric.lose_frames(card, u32::MAX));
    let ways: [Way; 4] = [
        (
            cut,
            FailureCause::Retries,
            Some(1 << 12),
            Some(4),
            "4 tries without an acknowledgement, the first for 4096 cycles",
        ),
        (
            |fabric, a, _| {
                let patient = PairTimes {
                    timeout: Some(20),
                    retry_cnt: Some(15),
                    ..PairTimes::default()
                };
                a.endpoint.set_pair_times(a.pair, patient).expect("open");
                a.endpoint.watch_peers(WATCH).expect("watched");
                (0..2).for_each(|card| fabric.lose_frames(card, u32::MAX));
            },
            FailureCause::Silence,
            Some(WATCH.timeout as u64),
            None,
            "it gave no sign of life for 131072 cycles",
        ),
        (
            |_, a, _| a.endpoint.declare_failed(a.pair).expect("connected"),
            FailureCause::Declared,
            None,
            None,
            "the program declared it",
        ),
        (
            |_, _, b| b.endpoint.close_pair(b.pair).expect("open"),
            FailureCause::Closed,
            None,
            None,
            "it closed its side of the pair without a disconnect",
        ),
    ];
    for (fail, cause, timeout, tries, how) in ways {
        let fabric = fabric();
        let (mut a, b) = connected(&fabric, 1);
        // The only credit is taken, so that nothing leaves.
        let buffer = a.buffer(8);
        let send = a.send(9);
        a.endpoint
            .post_tagged_send(9, &send, buffer)
            .expect("posted");
        assert_eq!(a.next().status, WcStatus::Success);
        assert_eq!(a.endpoint.peer_failure(a.pair), Ok(None));
        let times = PairTimes {
            timeout: Some(12),
            retry_cnt: Some(3),
            ..PairTimes::default()
        };
        a.endpoint.set_pair_times(a.pair, times).expect("open");
        posted(&mut a);
        fail(&fabric, &a, &b);
        while a.endpoint.failed_peers() == Ok(vec![]) {
            a.pause(10_000);
        }
        a.pause(50_000);
        let failure = |a: &Side| {
            a.endpoint
                .peer_failure(a.pair)
                .expect("open")
                .expect("failed")
        };
        let first = failure(&a);
        assert_eq!((first.sends_failed, first.receives_failed), (0, 0));
        assert_eq!((first.pair, first.cause), (a.pair, cause));
        assert_eq!((first.timeout, first.tries), (timeout, tries));
        assert_eq!(first.peer, Some(b.endpoint.address()));
        // Counted as they are taken; what is posted afterwards ends so too.
        let ended: Vec<_> = (0..8).map(|_| a.next_past_events()).collect();
        assert!(ended.iter().all(|one| one.status == WcStatus::PeerFailed));
        a.endpoint.probe(10, &a.receive(7)).expect("posted");
        assert_eq!(a.next_past_events().status, WcStatus::PeerFailed);
        // What is set now isn't what has found it.
        a.endpoint.watch_peers(WatchOptions::OFF).expect("open");
        let _ = a.endpoint.set_pair_times(a.pair, PairTimes::default());
        let last = failure(&a);
        assert_eq!((last.sends_failed, last.receives_failed), (3, 6));
        assert_eq!((last.timeout, last.tries), (timeout, tries));
        let peer = b.endpoint.address();
        let pair = a.pair.index();
        let sentence = format!(
            "{peer}, the peer of pair {pair}, has failed: {how}; 3 sends and 6 receives ended with it"
        );
        assert_eq!(last.to_string(), sentence);
        a.endpoint.close_pair(a.pair).expect("open");
        assert_eq!(a.endpoint.peer_failure(a.pair), Err(CommandError::NotFound));
    }
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

/// The causes of the events that there are, all of the side's pair.
#[track_caller]
fn causes(side: &Side) -> Vec<Cause> {
    let told = events(side);
    assert!(told.iter().all(|event| event.pair == Some(side.pair)));
    told.iter().map(|event| event.cause).collect()
}

#[track_caller]
fn is_interrupted(side: &Side) {
    assert_eq!(side.cq.wait(10_000).err(), Some(WaitError::Interrupted));
}

#[track_caller]
fn is_left_alone(side: &Side) {
    assert_eq!(side.cq.wait(10_000).err(), Some(WaitError::Timeout));
    assert_eq!(events(side), []);
}

#[test]
pub fn whoever_waits_for_anyone_is_told_once_of_a_failed_peer() {
    // The receive is there first, or comes when the program has heard of the failure by the card's event.
    for is_first in [true, false] {
        let fabric = fabric();
        let (mut a, _b) = connected(&fabric, 4);
        a.endpoint.set_wait_interrupts(Causes::all());
        let mut request = is_first.then(|| a.post(1, &anyone()));
        a.endpoint.declare_failed(a.pair).expect("connected");
        is_interrupted(&a);
        let pending = Cause::PeerFailedPending;
        if is_first {
            assert_eq!(causes(&a), [Cause::PeerFailed, pending]);
        } else {
            assert_eq!(causes(&a), [Cause::PeerFailed]);
            // Who names the peer is told by the completion.
            a.post(2, &a.receive(7));
            assert_eq!(a.next().status, WcStatus::PeerFailed);
            is_left_alone(&a);
            request = Some(a.post(1, &anyone()));
            is_interrupted(&a);
            is_left_alone_but_for(&a, pending);
        }
        is_left_alone(&a);
        // The next receive changes nothing.
        a.endpoint
            .cancel(3, request.expect("posted"))
            .expect("room");
        assert_eq!(a.next().status, WcStatus::Cancelled);
        a.post(4, &anyone());
        is_left_alone(&a);
        assert_eq!(a.endpoint.pending_failures(), Ok(vec![a.pair]));
    }
}

/// A wait is interrupted once, whether or not the event is taken.
#[track_caller]
fn is_left_alone_but_for(side: &Side, cause: Cause) {
    assert_eq!(side.cq.wait(10_000).err(), Some(WaitError::Timeout));
    assert_eq!(causes(side), [cause]);
}

#[test]
pub fn an_acknowledged_failure_is_told_no_more() {
    let fabric = fabric();
    let (mut a, _b) = connected(&fabric, 4);
    a.endpoint.set_wait_interrupts(Causes::PEER_FAILED);
    a.endpoint.declare_failed(a.pair).expect("connected");
    is_interrupted(&a);
    assert_eq!(a.endpoint.acknowledge_failures(), Ok(vec![a.pair]));
    a.post(1, &anyone());
    assert_eq!(a.cq.wait(10_000).err(), Some(WaitError::Timeout));
    assert_eq!(causes(&a), [Cause::PeerFailed]);
    is_left_alone(&a);
    // Another peer in the same place is another matter.
    a.endpoint.close_pair(a.pair).expect("open");
    let (next, _) = a.endpoint.open_pair(4).expect("room");
    assert_eq!(next.index(), a.pair.index());
    is_left_alone(&a);
}

#[test]
pub fn a_failure_whose_event_was_lost_is_told_to_whoever_waits_for_anyone() {
    for is_posted in [true, false] {
        let fabric = fabric();
        let (mut a, _b) = opened(&fabric, 4, |pd| pd.endpoint().event_queue(4));
        if is_posted {
            a.post(1, &anyone());
        }
        let page = endpoint_page(a.endpoint.index());
        let transport = fabric.transport(0);
        for _ in 0..4 {
            // SAFETY: the card ignores this value of the doorbell, which is the point: it makes it fetch nothing.
            unsafe { transport.doorbell(page + SEND_TAIL, 0x8000) }.expect("within reach");
        }
        a.endpoint.declare_failed(a.pair).expect("connected");
        a.pause(5_000);
        assert_eq!(a.endpoint.events_lost(), Ok(1));
        // One event is taken for each interrupt, and out of the card's reach.
        for taken in 0..4 {
            is_interrupted(&a);
            fabric.cut(0, true);
            let event = a.endpoint.poll_event().expect("one is there");
            assert_eq!(event.expect("one is there").cause, Cause::RingOverrun);
            fabric.cut(0, taken == 3);
        }
        let unreachable = Err(TransportError::Unreachable);
        assert_eq!(a.endpoint.poll_event(), unreachable);
        fabric.cut(0, false);
        if !is_posted {
            assert_eq!(a.endpoint.poll_event(), Ok(None));
            a.post(1, &anyone());
            is_interrupted(&a);
        }
        assert_eq!(causes(&a), [Cause::PeerFailedPending]);
        is_left_alone(&a);
    }
}

#[test]
pub fn a_thread_that_waits_is_told_of_a_receive_that_another_has_posted() {
    let fabric = fabric();
    let (mut a, _b) = connected(&fabric, 4);
    a.endpoint.declare_failed(a.pair).expect("connected");
    a.pause(5_000);
    assert_eq!(causes(&a), [Cause::PeerFailed]);
    let (poster, attached) = (fabric.attach(), fabric.attach());
    let cq = a.cq.clone();
    let ended = std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let _attached = attached;
            (cq.wait(PATIENCE).err(), fabric.now())
        });
        a.pause(50_000);
        a.post(1, &anyone());
        drop(poster);
        waiter.join().expect("no panic")
    });
    assert_eq!(ended.0, Some(WaitError::Interrupted));
    assert!(ended.1 < PATIENCE / 2, "nobody was woken until {}", ended.1);
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

/// Both sides send into nothing, and each takes the other to have failed. When the wire is whole again all old frames come, before those of the next
/// connection and behind each of them: they are dropped, and the two are connected as those who have rejoined.
#[test]
fn a_partition_that_heals_lets_old_frames_die_and_both_come_back() {
    let fabric = fabric();
    let (mut a, mut b) = connected(&fabric, 4);
    let connect = |a: &Side, b: &Side| {
        let offer = b.endpoint.listen(4).expect("a pair");
        let pair = a.endpoint.connect(&b.endpoint.address(), 4, 0);
        (pair.expect("connected"), offer)
    };
    let close = |a: &Side, b: &Side| {
        for side in [a, b] {
            side.endpoint.close_pair(side.pair).expect("open");
        }
    };
    close(&a, &b);
    (a.pair, b.pair) = connect(&a, &b);
    for side in [&a, &b] {
        events(side);
    }
    let is_cut = Arc::new(AtomicBool::new(true));
    let old: Arc<Mutex<Vec<Passing>>> = Arc::default();
    let (cut, kept) = (Arc::clone(&is_cut), Arc::clone(&old));
    fabric.tap(move |passing, out| {
        let mut kept = kept.lock().expect("no panic");
        if cut.load(Ordering::SeqCst) {
            kept.push(passing);
        } else {
            out.extend(kept.iter().cloned());
            out.push(passing);
            out.extend(kept.iter().cloned());
        }
    });
    for (side, word) in [(&mut a, b"of a old"), (&mut b, b"of b old")] {
        side.endpoint.watch_peers(WATCH).expect("watched");
        side.post(1, &side.receive(7));
        let send = side.send(7);
        let buffer = side.filled(word);
        let posted = side.endpoint.post_tagged_send(2, &send, buffer);
        posted.expect("posted");
        side.endpoint.signal(side.pair, 1).expect("connected");
    }
    a.pause(2 * SURELY);
    for side in [&a, &b] {
        let (state, taken_for, cause) = peer(side);
        let failed = (PairState::Failed, PeerState::Failed);
        assert_eq!((state, taken_for), failed);
        assert!(matches!(
            cause,
            Some(FailureCause::Silence | FailureCause::Retries)
        ));
        for _ in 0..2 {
            assert_eq!(side.next_past_events().status, WcStatus::PeerFailed);
        }
        assert_eq!(causes(side), [Cause::PeerFailed]);
    }
    let lost = old.lock().expect("no panic").len();
    assert!(lost > 20, "{lost} old frames prove little");
    is_cut.store(false, Ordering::SeqCst);
    close(&a, &b);
    let errors = |side: &Side| {
        let counter = host_driver::Counter::PairErrors;
        side.device.read_counter(counter).expect("a counter")
    };
    let before = [errors(&a), errors(&b)];
    (a.pair, b.pair) = connect(&a, &b);
    let rejoined = (PairState::Connected, PeerState::Rejoined, None);
    let mut sides = [a, b];
    for word in [b"of a new", b"of b new"] {
        let [me, other] = &mut sides;
        assert_eq!(peer(me), rejoined);
        let send = me.send(7);
        let buffer = me.filled(word);
        let posted = me.endpoint.post_tagged_send(3, &send, buffer);
        posted.expect("posted");
        assert_eq!(me.next_past_events().status, WcStatus::Success);
        other.post(4, &other.receive(7));
        let received = other.next_past_events();
        assert_eq!((received.wr_id, received.received()), (4, &word[..]));
        sides.reverse();
    }
    let [a, b] = sides;
    a.pause(SURELY);
    for (side, before) in [(&a, before[0]), (&b, before[1])] {
        assert_eq!(peer(side), rejoined);
        assert!(errors(side) - before >= 10, "old frames are counted");
        // Nothing of before has come: no message, no signal.
        side.endpoint.probe(5, &anyone_of(7)).expect("room");
        assert_eq!(side.next_past_events().status, WcStatus::NoMessage);
        let told = events(side);
        assert!(
            told.iter().all(|event| event.cause == Cause::PairConnected),
            "{told:?}"
        );
    }
}

/// A message of these match bits from anyone.
fn anyone_of(match_bits: u64) -> TaggedReceive {
    TaggedReceive {
        match_bits,
        ..anyone()
    }
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
