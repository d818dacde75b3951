//! Waiting: in time, without losing a wake-up, for one queue or several, and in several threads.

use crate::common::{PATIENCE, connected, fabric, opened, options, sized};
use host_driver::transport::{Line, PauseResult};
use host_driver::{
    Cause, Causes, CompletionChannel, Counter, Device, Source, TaggedReceive, WaitError, WcStatus,
};
use soft_card::{SoftFabric, SoftOptions};
use std::thread;

#[test]
fn a_wait_ends_at_its_time_out() {
    let fabric = fabric();
    let (_a, b) = connected(&fabric, 8);
    let before = fabric.now();
    assert_eq!(b.cq.wait(12_345).unwrap_err(), WaitError::Timeout);
    // The first wait arms, which takes register accesses of 20 cycles.
    assert!((12_345..12_400).contains(&(fabric.now() - before)));
}

/// As it broke: the mailbox was read every 200 cycles.
#[test]
pub fn a_command_is_waited_for_by_interrupt() {
    let took = |command_cycles| {
        let fabric = SoftFabric::new(SoftOptions {
            command_cycles,
            ..options()
        });
        let device = Device::open(fabric.transport(0)).unwrap();
        let (began, before) = (fabric.now(), fabric.accesses(0));
        device.read_counter(Counter::FramesSent).unwrap();
        assert!(fabric.now() - began >= command_cycles);
        fabric.accesses(0) - before
    };
    assert_eq!(took(1_000), took(500_000), "however long it takes");
}

/// As it broke: a post waited for its doorbell to cross the bus.
#[test]
pub fn a_post_takes_no_time() {
    let fabric = fabric();
    let (mut a, mut b) = connected(&fabric, 8);
    let (buffer, receive) = (b.buffer(8), b.receive(7));
    let sent = a.filled(b"x");
    let before = fabric.now();
    b.endpoint.post_tagged_recv(1, &receive, buffer).unwrap();
    a.endpoint.post_tagged_send(2, &a.send(7), sent).unwrap();
    assert_eq!(fabric.now(), before);
    assert_eq!(b.next().received(), b"x", "and is seen all the same");
}

#[test]
fn a_wait_ends_when_the_completion_comes_and_not_later() {
    let fabric = fabric();
    let (a, mut b) = connected(&fabric, 8);
    let buffer = b.buffer(8);
    b.endpoint
        .post_tagged_recv(1, &b.receive(7), buffer)
        .unwrap();
    let before = fabric.now();
    a.endpoint.post_tagged_inject(0, &a.send(7), b"x").unwrap();
    b.next();
    assert!(
        fabric.now() - before < 500,
        "after {} cycles",
        fabric.now() - before
    );
}

/// A signal, a failed peer and a connection that is refused reach one who waits; those that it has chosen end a wait, once each.
#[test]
pub fn a_wait_is_interrupted_by_the_causes_that_were_chosen() {
    let chosen = [
        (Causes::empty(), 0),
        (Causes::SIGNAL, 2),
        (Causes::PEER_FAILED, 1),
        (Causes::SIGNAL | Causes::PEER_FAILED, 3),
        (Causes::PEER_FAILED_PENDING, 1),
        (Causes::INTERRUPT_BY_DEFAULT, 3),
        (Causes::all(), 4),
    ];
    for (causes, expected) in chosen {
        let (a, mut b) = connected(&fabric(), 8);
        let default = b.endpoint.wait_interrupts();
        assert_eq!(default, Causes::INTERRUPT_BY_DEFAULT);
        b.endpoint.set_wait_interrupts(causes);
        assert_eq!(b.endpoint.wait_interrupts(), causes);
        let anyone = TaggedReceive {
            source: Source::Any,
            ..b.receive(7)
        };
        b.post(1, &anyone);
        let mut interrupted = 0;
        let mut count = |ended: Option<WaitError>| match ended {
            Some(WaitError::Interrupted) => interrupted += 1,
            ended => assert_eq!(ended, Some(WaitError::Timeout)),
        };
        // Each comes before the wait, and is passed by in it or by the next.
        for word in 0..2 {
            a.endpoint.signal(a.pair, word).expect("connected");
            b.pause(50_000);
            count(b.cq.wait(1_000).err());
        }
        b.endpoint.declare_failed(b.pair).expect("connected");
        b.pause(50_000);
        // The library's own event is known with the card's.
        let mut told = Vec::new();
        for _ in 0..3 {
            count(b.cq.wait(1_000).err());
            let event = b.endpoint.poll_event();
            told.extend(event.expect("within reach").map(|event| event.cause));
        }
        count(b.cq.wait(1_000).err());
        told.extend(std::iter::from_fn(|| b.endpoint.poll_event().ok().flatten()).map(|e| e.cause));
        let all = [
            Cause::Signal,
            Cause::Signal,
            Cause::PeerFailed,
            Cause::PeerFailedPending,
        ];
        assert_eq!(told, all, "every event can be polled");
        assert_eq!(interrupted, expected, "{causes:?}");
    }
}

/// What comes while a thread sleeps in a wait wakes it only for a chosen cause, and is lost on none.
#[test]
fn a_wait_that_sleeps_goes_on_through_what_was_not_chosen() {
    let fabric = fabric();
    let (a, mut b) = connected(&fabric, 8);
    b.endpoint.set_wait_interrupts(Causes::DRAIN);
    b.post(1, &b.receive(7));
    let (sender, attached) = (fabric.attach(), fabric.attach());
    let (ended, word) = thread::scope(|scope| {
        let b = &b;
        let waiter = scope.spawn(move || {
            let _attached = attached;
            b.cq.wait(PATIENCE).expect("no interruption").wr_id
        });
        for word in 0..5 {
            a.endpoint.signal(a.pair, word).expect("connected");
            a.pause(50_000);
        }
        a.endpoint
            .post_tagged_inject(2, &a.send(7), b"x")
            .expect("there is a buffer");
        a.pause(50_000);
        drop(sender);
        let ended = waiter.join().expect("no panic");
        (ended, b.endpoint.poll_event().expect("within reach"))
    });
    assert_eq!(ended, 1);
    assert_eq!(word.expect("a signal").info, 0);
    // Chosen while nobody waits: it holds from the next wait on, for what no wait has passed by.
    b.endpoint.set_wait_interrupts(Causes::SIGNAL);
    assert_eq!(b.cq.wait(1_000).err(), Some(WaitError::Timeout));
    a.endpoint.signal(a.pair, 5).expect("connected");
    assert_eq!(b.cq.wait(PATIENCE).err(), Some(WaitError::Interrupted));
}

/// By default the card's event interrupts nothing: the library's does, whoever takes the card's.
#[test]
pub fn whoever_waits_for_anyone_hears_of_a_failure_that_was_not_chosen() {
    let (_a, mut b) = connected(&fabric(), 8);
    let anyone = TaggedReceive {
        source: Source::Any,
        ..b.receive(7)
    };
    b.post(1, &anyone);
    b.endpoint.declare_failed(b.pair).expect("connected");
    b.pause(50_000);
    assert_eq!(b.cq.wait(PATIENCE).err(), Some(WaitError::Interrupted));
    assert_eq!(b.cq.wait(10_000).err(), Some(WaitError::Timeout));
    for cause in [Cause::PeerFailed, Cause::PeerFailedPending] {
        let event = b.endpoint.poll_event().expect("within reach");
        let event = event.map(|event| (event.cause, event.pair));
        assert_eq!(event, Some((cause, Some(b.pair))));
    }
}

/// Else a wait would sleep through all that comes behind it.
#[test]
fn an_event_that_fills_the_queue_interrupts_whatever_was_chosen() {
    let fabric = fabric();
    let (a, b) = opened(&fabric, 8, |pd| pd.endpoint().event_queue(4));
    b.endpoint.set_wait_interrupts(Causes::empty());
    for round in 0..3 {
        for word in 0..4 {
            let ended = b.cq.wait(10_000).err();
            assert_eq!(ended, Some(WaitError::Timeout), "{round} {word}");
            a.endpoint.signal(a.pair, word).expect("connected");
            b.pause(50_000);
        }
        assert_eq!(b.cq.wait(PATIENCE).err(), Some(WaitError::Interrupted));
        assert_eq!(b.cq.wait(10_000).err(), Some(WaitError::Timeout));
        for word in 0..4 {
            let event = b.endpoint.poll_event().expect("within reach");
            assert_eq!(event.expect("a signal").info, word);
        }
    }
}

#[test]
fn a_notification_asked_for_wakes_once() {
    let fabric = fabric();
    let (a, b) = connected(&fabric, 8);
    let endpoint = b.endpoint.index();
    for round in 0..10 {
        let buffer = host_driver::Buffer::empty();
        b.endpoint
            .post_tagged_recv(1, &b.receive(7), buffer)
            .unwrap();
        let watch = b.cq.req_notify().unwrap();
        assert!(b.cq.poll().is_none());
        a.endpoint.post_tagged_inject(0, &a.send(7), b"").unwrap();
        let woken = b.device.pause(&[watch], fabric.now() + PATIENCE);
        assert_eq!(
            woken,
            PauseResult::Interrupt(Line::Endpoint(endpoint)),
            "round {round}"
        );
        assert_eq!(b.cq.poll().unwrap().status, WcStatus::Success);
    }
}

#[test]
pub fn a_wait_ends_when_another_thread_closes_the_endpoint() {
    // The card doesn't fetch the receive, so that it is the library that flushes it, and no interrupt tells.
    let fabric = SoftFabric::new(SoftOptions {
        fetch_cycles: 2 * PATIENCE,
        ..options()
    });
    let (_a, mut b) = connected(&fabric, 8);
    let buffer = b.buffer(8);
    b.endpoint
        .post_tagged_recv(1, &b.receive(9), buffer)
        .unwrap();
    let (closer, attached) = (fabric.attach(), fabric.attach());
    let (flushed, ended) = std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let _attached = attached;
            let flushed = b.cq.wait(PATIENCE).unwrap();
            (flushed.status, fabric.now())
        });
        b.pause(50_000);
        b.endpoint.close().unwrap();
        drop(closer);
        waiter.join().unwrap()
    });
    assert_eq!(flushed, WcStatus::Flushed);
    assert!(ended < PATIENCE / 2, "nobody was woken until {ended}");
}

#[test]
fn a_channel_says_which_queue_is_ready() {
    let fabric = fabric();
    let device = Device::open(fabric.transport(0)).unwrap();
    let pd = device.alloc_pd().unwrap();
    let open = || pd.endpoint().inject_buffers(0).open().unwrap();
    let endpoints = [open(), open()];
    let queues = endpoints
        .each_ref()
        .map(|endpoint| endpoint.completion_queue());
    let mut channel = CompletionChannel::new(&queues);
    assert_eq!(channel.wait(1000), Err(WaitError::Timeout));
    for k in [1, 0, 1, 1] {
        let (pair, _) = endpoints[k].open_pair(1).unwrap();
        let probe = host_driver::TaggedReceive {
            source: host_driver::Source::Pair(pair),
            context: 0,
            match_bits: 0,
            ignore_bits: 0,
        };
        endpoints[k].probe(5, &probe).unwrap();
        assert_eq!(channel.wait(PATIENCE), Ok(k));
        assert_eq!(queues[k].poll().unwrap().wr_id, 5);
        endpoints[k].close_pair(pair).unwrap();
    }
}

#[test]
#[should_panic(expected = "one device")]
fn a_channel_is_of_one_device() {
    let (a, b) = connected(&fabric(), 8);
    CompletionChannel::new(&[a.cq.clone(), b.cq.clone()]);
}

#[test]
pub fn a_queue_that_is_polled_rarely_and_posted_often_never_starves_the_card() {
    // A head whose doorbell isn't rung would stop its fetching for good: every receive but one stays
    // outstanding, so that a quarter of the queue is never polled at once.
    let (a, mut b) = sized(&fabric(), 8, 16);
    for k in 0..15 {
        let buffer = b.buffer(8);
        b.endpoint
            .post_tagged_recv(k, &b.receive(1000), buffer)
            .unwrap();
    }
    for k in 0..40 {
        let buffer = b.buffer(8);
        b.endpoint
            .post_tagged_recv(100 + k, &b.receive(k), buffer)
            .unwrap();
        a.endpoint.post_tagged_inject(0, &a.send(k), b"x").unwrap();
        assert_eq!(b.next().wr_id, 100 + k);
    }
}

/// Two host threads, one a card, play ping-pong; the cycle at which they end.
fn ping_pong(seed: u64) -> u64 {
    let fabric = SoftFabric::new(SoftOptions { seed, ..options() });
    let (mut a, mut b) = connected(&fabric, 8);
    let (first, second) = (fabric.attach(), fabric.attach());
    thread::scope(|scope| {
        scope.spawn(move || {
            for k in 0..200 {
                let buffer = a.buffer(8);
                a.endpoint
                    .post_tagged_recv(k, &a.receive(k), buffer)
                    .unwrap();
                a.endpoint
                    .post_tagged_inject(0, &a.send(k), b"ping")
                    .unwrap();
                assert_eq!(a.next().received(), b"pong");
            }
            // The closing is part of what is repeated.
            drop(a);
            drop(first);
        });
        scope.spawn(move || {
            for k in 0..200 {
                let buffer = b.buffer(8);
                b.endpoint
                    .post_tagged_recv(k, &b.receive(k), buffer)
                    .unwrap();
                assert_eq!(b.next().received(), b"ping");
                b.endpoint
                    .post_tagged_inject(0, &b.send(k), b"pong")
                    .unwrap();
            }
            drop(b);
            drop(second);
        });
    });
    fabric.now()
}

#[test]
fn threads_on_their_own_cards_take_the_same_cycles_every_time() {
    let first = ping_pong(1);
    for _ in 0..3 {
        assert_eq!(ping_pong(1), first);
    }
}

#[test]
fn threads_may_share_an_endpoint() {
    let fabric = fabric();
    let (a, b) = connected(&fabric, 8);
    let (endpoint, cq) = (&b.endpoint, b.cq.clone());
    let (first, second) = (fabric.attach(), fabric.attach());
    thread::scope(|scope| {
        let (a, b) = (&a, &b);
        scope.spawn(move || {
            for k in 0..100 {
                let empty = host_driver::Buffer::empty();
                endpoint.post_tagged_recv(k, &b.receive(k), empty).unwrap();
                a.endpoint
                    .post_tagged_inject(0, &a.send(k), b"")
                    .unwrap_or_else(|error| {
                        assert_eq!(error, host_driver::PostError::InjectBusy);
                        assert_eq!(a.cq.wait(5000).unwrap_err(), WaitError::Timeout);
                        a.endpoint.post_tagged_inject(0, &a.send(k), b"").unwrap();
                    });
            }
            drop(first);
        });
        scope.spawn(move || {
            for k in 0..100 {
                assert_eq!(cq.wait(PATIENCE).unwrap().wr_id, k);
            }
            drop(second);
        });
    });
}
