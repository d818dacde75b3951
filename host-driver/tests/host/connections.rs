//! Connections that the cards make.

use crate::common::{PATIENCE, fabric, next_past_events, options};
use abi::mailbox::Command;
use host_driver::{
    AsyncEvent, Cause, CommandError, CompletionQueue, ConnectError, ConnectReason, Device,
    Endpoint, EndpointAddress, MailboxStatus, Pair, Source, TaggedReceive, TaggedSend, WcStatus,
};
use soft_card::SoftFabric;
use std::thread;

/// Cycles after which a connection is given up.
const TIMEOUT: u32 = 2_000_000;

fn open(fabric: &SoftFabric, card: usize) -> (Device, Endpoint, CompletionQueue) {
    let device = Device::open(fabric.transport(card)).unwrap();
    let endpoint = device.alloc_pd().unwrap().endpoint().open().unwrap();
    let queue = endpoint.completion_queue();
    (device, endpoint, queue)
}

/// Waits for a connection that was begun on both sides.
fn made(fabric: &SoftFabric, endpoint: &Endpoint, pair: Pair) -> EndpointAddress {
    for _ in 0..1000 {
        if let Some(peer) = endpoint.poll_connection(pair).unwrap() {
            return peer;
        }
        fabric.run(2000);
    }
    panic!("no connection");
}

/// Connects `a` to `b`: the pair at `a`, and the pair at `b`.
fn join(fabric: &SoftFabric, a: &Endpoint, b: &Endpoint) -> (Pair, Pair) {
    let there = b.listen(4).unwrap();
    let here = a.begin_connect(&b.address(), 4, TIMEOUT).unwrap();
    assert_eq!(made(fabric, a, here), b.address());
    assert_eq!(made(fabric, b, there), a.address());
    (here, there)
}

fn receive(pair: Pair) -> TaggedReceive {
    TaggedReceive {
        source: Source::Pair(pair),
        context: 0,
        match_bits: 7,
        ignore_bits: 0,
    }
}

fn send(pair: Pair) -> TaggedSend {
    TaggedSend {
        pair,
        context: 0,
        match_bits: 7,
        immediate: 0,
    }
}

fn events(endpoint: &Endpoint) -> Vec<AsyncEvent> {
    std::iter::from_fn(|| endpoint.poll_event().unwrap()).collect()
}

#[test]
fn an_address_survives_its_bytes() {
    let fabric = fabric();
    let (_, a, _) = open(&fabric, 0);
    let (_, b, _) = open(&fabric, 1);
    assert_ne!(a.address(), b.address());
    let bytes = b.address().to_bytes();
    assert_eq!(EndpointAddress::from_bytes(&bytes), b.address());
}

#[test]
fn two_threads_connect_and_accept_by_interrupt_and_talk() {
    let fabric = fabric();
    let (_, a, _) = open(&fabric, 0);
    let (_, b, b_queue) = open(&fabric, 1);
    let (to, from) = (b.address(), a.address());
    let attached = [fabric.attach(), fabric.attach()];
    let [first, second] = attached;
    thread::scope(|scope| {
        scope.spawn(|| {
            let _attached = first;
            let pair = a.connect(&to, 4, TIMEOUT).unwrap();
            a.post_tagged_inject(1, &send(pair), b"hello").unwrap();
            let [event] = events(&a)[..] else {
                panic!("one event");
            };
            assert_eq!(
                (event.cause, event.pair),
                (Cause::PairConnected, Some(pair))
            );
        });
        scope.spawn(|| {
            let _attached = second;
            let (pair, peer) = b.accept(4, TIMEOUT.into()).unwrap();
            assert_eq!(peer, from);
            b.post_tagged_recv(2, &receive(pair), host_driver::Buffer::empty())
                .unwrap();
            let received = next_past_events(&b_queue);
            assert_eq!((received.status, received.length), (WcStatus::Truncated, 5));
        });
    });
    assert!(fabric.now() < TIMEOUT.into(), "woken in time");
}

/// The event that tells of a connection interrupts nobody when the queue is full.
#[test]
fn connections_are_made_though_nobody_takes_the_events_of_those_before() {
    let fabric = fabric();
    let small = |card| {
        let device = Device::open(fabric.transport(card)).unwrap();
        let builder = device.alloc_pd().unwrap().endpoint().event_queue(4);
        builder.open().unwrap()
    };
    let (a, b) = (small(0), small(1));
    let to = b.address();
    let [first, second] = [fabric.attach(), fabric.attach()];
    thread::scope(|scope| {
        scope.spawn(|| {
            let _attached = first;
            for _ in 0..6 {
                let pair = loop {
                    // No time-out: nothing but the connection ends it.
                    match a.connect(&to, 4, 0) {
                        Ok(pair) => break pair,
                        Err(ConnectError::Refused {
                            reason: ConnectReason::NotAccepting,
                            ..
                        }) => {}
                        Err(error) => panic!("{error}"),
                    }
                };
                a.disconnect(pair, TIMEOUT).unwrap();
            }
        });
        scope.spawn(|| {
            let _attached = second;
            for _ in 0..6 {
                let (pair, _) = b.accept(4, PATIENCE).unwrap();
                while !b.is_disconnected(pair).unwrap() {}
                b.close_pair(pair).unwrap();
            }
        });
    });
    assert!(a.events_lost().unwrap() > 0, "or it proves nothing");
}

#[test]
fn a_connection_ends_in_order_and_the_peer_learns_that_it_is_no_failure() {
    let fabric = fabric();
    let (_, a, a_queue) = open(&fabric, 0);
    let (_, b, b_queue) = open(&fabric, 1);
    let (here, there) = join(&fabric, &a, &b);
    b.post_tagged_recv(1, &receive(there), host_driver::Buffer::empty())
        .unwrap();
    drop((events(&a), events(&b)));
    let mapped = fabric.mappings(0);
    a.disconnect(here, 0).unwrap();
    assert_eq!(fabric.mappings(0), mapped - 1, "its slots are given back");
    let ended = b_queue.poll().expect("it has ended");
    assert_eq!((ended.wr_id, ended.status), (1, WcStatus::PeerClosed));
    let [event] = events(&b)[..] else {
        panic!("one event");
    };
    assert_eq!((event.cause, event.pair), (Cause::PeerClosed, Some(there)));
    assert!(b.is_disconnected(there).unwrap());
    b.close_pair(there).unwrap();
    fabric.run(100_000);
    let [event] = events(&a)[..] else {
        panic!("one event");
    };
    // The pair is closed, and nobody's any more.
    assert_eq!((event.cause, event.pair), (Cause::Disconnected, None));
    assert!(events(&b).is_empty(), "no failure");
    assert!(a_queue.poll().is_none());
    // And once more, in the same places.
    join(&fabric, &a, &b);
}

/// As it broke: nobody told who had disconnected that it was done, and the library asked the firmware again and again.
#[test]
pub fn a_disconnect_waits_for_its_event() {
    let fabric = fabric();
    let (_, a, _) = open(&fabric, 0);
    let (_, b, _) = open(&fabric, 1);
    let (here, _) = join(&fabric, &a, &b);
    drop(events(&a));
    // The peer's answers are lost for a while.
    fabric.lose_frames(1, 3);
    let (began, commands) = (fabric.now(), fabric.commands(0));
    a.disconnect(here, 0).unwrap();
    assert!(fabric.now() - began > 200_000, "or it proves nothing");
    // Disconnect, two looks and ClosePair.
    assert_eq!(fabric.commands(0) - commands, 4);
}

/// As it broke: the firmware waits for its gates as long as they say nothing, and the library waited for the firmware.
#[test]
pub fn a_disconnect_does_not_wait_for_gates_that_hang() {
    let fabric = fabric();
    let (_, a, _) = open(&fabric, 0);
    let (_, b, _) = open(&fabric, 1);
    let (here, _) = join(&fabric, &a, &b);
    fabric.silence_gates(0);
    // A call that goes on for ever ends with the cards.
    fabric.close_at(fabric.now() + 100_000_000);
    let ended = a.disconnect(here, 1000);
    let Err(CommandError::Refused {
        command, status, ..
    }) = ended
    else {
        panic!("{ended:?}");
    };
    let closing = (Command::ClosePair, MailboxStatus::HardwareTimeout);
    assert_eq!((command, status), closing);
    fabric.wake_gates(0);
    // The gates answer again, and the firmware may have ended the close before it is asked once more.
    match a.close_pair(here) {
        Ok(())
        | Err(CommandError::Refused {
            status: MailboxStatus::NotFound,
            ..
        }) => {}
        other => panic!("{other:?}"),
    }
}

/// As it broke: a pair was open to posts again when a disconnect of it was refused because it was being closed.
#[test]
pub fn a_refused_disconnect_leaves_a_pair_that_is_being_closed_as_it_was() {
    let fabric = fabric();
    let (_, a, _) = open(&fabric, 0);
    let (_, b, _) = open(&fabric, 1);
    let (here, _) = join(&fabric, &a, &b);
    let refusal = |status, error: Result<(), CommandError>| match error {
        Err(CommandError::Refused { status: found, .. }) => assert_eq!(found, status),
        other => panic!("{other:?}"),
    };
    // One that isn't connected isn't disconnected either, and stays what it is.
    let offer = b.listen(4).unwrap();
    refusal(MailboxStatus::Busy, b.begin_disconnect(offer, 0));
    let empty = host_driver::Buffer::empty();
    b.post_tagged_recv(1, &receive(offer), empty).unwrap();
    let posted = || a.post_tagged_inject(1, &send(here), b"").err();
    assert_eq!(posted(), None);
    fabric.silence_gates(0);
    refusal(MailboxStatus::HardwareTimeout, a.close_pair(here));
    assert_eq!(posted(), Some(host_driver::PostError::InvalidPair));
    refusal(MailboxStatus::Busy, a.begin_disconnect(here, 0));
    assert_eq!(posted(), Some(host_driver::PostError::InvalidPair));
}

#[test]
fn what_is_posted_before_a_disconnect_arrives_and_nothing_after_it_is_posted() {
    let fabric = fabric();
    let (_, a, _) = open(&fabric, 0);
    let (_, b, b_queue) = open(&fabric, 1);
    let there = b.listen(8).unwrap();
    let here = a.begin_connect(&b.address(), 4, TIMEOUT).unwrap();
    made(&fabric, &a, here);
    made(&fabric, &b, there);
    for _ in 0..6 {
        a.post_tagged_inject(1, &send(here), b"").unwrap();
    }
    a.begin_disconnect(here, 0).unwrap();
    let refused = a.post_tagged_inject(1, &send(here), b"");
    assert_eq!(refused, Err(host_driver::PostError::InvalidPair));
    while !a.is_disconnected(here).unwrap() {
        fabric.run(2000);
    }
    a.close_pair(here).unwrap();
    for k in 0..6 {
        let empty = host_driver::Buffer::empty();
        b.post_tagged_recv(k, &receive(there), empty).unwrap();
        fabric.run(2000);
        let received = b_queue.poll().expect("it had arrived");
        assert_eq!((received.wr_id, received.status), (k, WcStatus::Success));
    }
}

#[test]
fn a_connection_that_nobody_accepts_is_refused_with_the_reason_and_leaves_nothing() {
    let fabric = fabric();
    let (_, a, _) = open(&fabric, 0);
    let (_, b, _) = open(&fabric, 1);
    let mapped = fabric.mappings(0);
    let refused = |reason| Err(ConnectError::Refused { reason, detail: 0 });
    let not_accepting = a.connect(&b.address(), 4, TIMEOUT);
    assert_eq!(not_accepting, refused(ConnectReason::NotAccepting));
    let mut bytes = b.address().to_bytes();
    bytes[6] = 1;
    let nobody = EndpointAddress::from_bytes(&bytes);
    let no_endpoint = a.connect(&nobody, 4, TIMEOUT);
    assert_eq!(no_endpoint, refused(ConnectReason::NoEndpoint));
    bytes[1] = 9;
    let nowhere = EndpointAddress::from_bytes(&bytes);
    let before = fabric.now();
    let timed_out = a.connect(&nowhere, 4, 200_000);
    assert_eq!(timed_out, refused(ConnectReason::TimedOut));
    assert!(fabric.now() - before < 400_000);
    assert_eq!(fabric.mappings(0), mapped);
    assert_eq!(a.accept(4, 10_000), Err(ConnectError::TimedOut));
    assert_eq!(fabric.mappings(0), mapped);
}

#[test]
fn endpoints_of_different_jobs_are_refused_and_those_of_one_job_connect() {
    let fabric = fabric();
    let open = |card, job| {
        let device = Device::open(fabric.transport(card)).unwrap();
        device
            .alloc_pd()
            .unwrap()
            .endpoint()
            .job(job)
            .open()
            .unwrap()
    };
    let (mine, theirs) = (open(0, 7), open(1, 8));
    theirs.listen(4).unwrap();
    let refused = mine.connect(&theirs.address(), 4, TIMEOUT);
    let (reason, detail) = (ConnectReason::WrongJob, 0);
    assert_eq!(refused, Err(ConnectError::Refused { reason, detail }));
    drop(mine);
    let like = open(0, 8);
    like.connect(&theirs.address(), 4, TIMEOUT).unwrap();
}

#[test]
fn frames_that_are_lost_are_asked_for_again() {
    let fabric = fabric();
    let (_, a, _) = open(&fabric, 0);
    let (_, b, _) = open(&fabric, 1);
    for card in [0, 1, 0, 1] {
        let there = b.listen(4).unwrap();
        fabric.lose_frames(card, 1);
        let here = a.begin_connect(&b.address(), 4, TIMEOUT).unwrap();
        made(&fabric, &a, here);
        made(&fabric, &b, there);
        fabric.lose_frames(card, 1);
        a.disconnect(here, 0).unwrap();
        b.close_pair(there).unwrap();
    }
}

#[test]
fn pairs_for_all_peers_are_reserved_or_none() {
    let fabric = SoftFabric::new(options());
    let (device, a, _) = open(&fabric, 0);
    let pairs = device.identity().pairs;
    a.reserve_peers(4, 8).unwrap();
    let (_, other, _) = {
        let endpoint = device.alloc_pd().unwrap().endpoint().open().unwrap();
        let queue = endpoint.completion_queue();
        (device.clone(), endpoint, queue)
    };
    let refused = |error: CommandError| match error {
        CommandError::Refused { status, detail, .. } => (status, detail),
        error => panic!("{error}"),
    };
    let error = other.reserve_peers(pairs, 1).unwrap_err();
    assert_eq!(refused(error), (MailboxStatus::NoResource, pairs - 4));
    let error = other.reserve_peers(4, 16).unwrap_err();
    assert_eq!(refused(error), (MailboxStatus::NoEnvelopes, 8));
    other.reserve_peers(4, 8).unwrap();
    for _ in 0..4 {
        a.open_pair(8).unwrap();
    }
    assert!(a.open_pair(8).is_err(), "the rest is the other's");
}
