//! Several endpoints on one completion queue.

use crate::common::{PATIENCE, able_options, fabric};
use host_driver::transport::PauseResult;
use host_driver::{
    Access, Buffer, Causes, CommandError, CompletionChannel, CompletionQueue, Device, Endpoint,
    MailboxStatus, Pair, PostError, ProtectionDomain, Request, RequestState, Source, TaggedReceive,
    TaggedSend, WaitError, WcStatus,
};
use soft_card::{SoftFabric, SoftOptions, as_stranger};

/// An endpoint, and a pair with the endpoint of the same number on the other card.
struct Talker {
    endpoint: Endpoint,
    pair: Pair,
}

impl Talker {
    fn send(&self, wr_id: u64) -> TaggedSend {
        TaggedSend {
            pair: self.pair,
            context: 0,
            match_bits: wr_id,
            immediate: 0,
        }
    }

    fn receive(&self, match_bits: u64) -> TaggedReceive {
        TaggedReceive {
            source: Source::Pair(self.pair),
            context: 0,
            match_bits,
            ignore_bits: 0,
        }
    }

    /// Posts a receive of no bytes.
    fn post(&self, wr_id: u64) -> Result<Request, PostError> {
        let posted = self
            .endpoint
            .post_tagged_recv(wr_id, &self.receive(wr_id), Buffer::empty());
        posted.map_err(|refused| refused.error)
    }

    /// Sends an empty message, which the sender isn't told of.
    fn inject(&self, match_bits: u64) {
        for _ in 0..100 {
            let send = self.send(match_bits);
            match self.endpoint.post_tagged_inject(0, &send, &[]) {
                Ok(()) => return,
                Err(error) => assert_eq!(error, PostError::InjectBusy),
            }
            pause(self.endpoint.device(), 1_000);
        }
        panic!("no inject buffer is free");
    }
}

/// A card, and endpoints of it that complete on one queue.
struct Host {
    device: Device,
    pd: ProtectionDomain,
    cq: CompletionQueue,
    talkers: Vec<Talker>,
}

fn pause(device: &Device, cycles: u64) {
    let end = device.pause(&[], device.now() + cycles);
    assert_eq!(end, PauseResult::Deadline);
}

/// A fabric of cards with room for four endpoints that may share a queue.
fn able() -> SoftFabric {
    SoftFabric::new(four_endpoints())
}

fn four_endpoints() -> SoftOptions {
    let mut options = able_options();
    options.sizes.endpoints = 4;
    options
}

/// Two cards with so many endpoints each, on queues of so many entries, each connected to its like.
fn talkers(fabric: &SoftFabric, count: usize, entries: usize) -> [Host; 2] {
    let hosts = [0, 1].map(|card| {
        let device = Device::open(fabric.transport(card)).expect("a card");
        let pd = device.alloc_pd().expect("a domain");
        let cq = pd.create_cq(entries).expect("a queue");
        let open = || {
            let builder = pd.endpoint().send_ring(4).list_ring(64);
            let endpoint = builder.inject_buffers(2).on(&cq).open();
            let endpoint = endpoint.expect("an endpoint");
            let (pair, address) = endpoint.open_pair(2).expect("a pair");
            (Talker { endpoint, pair }, address)
        };
        let opened: Vec<_> = std::iter::repeat_with(open).take(count).collect();
        let (talkers, addresses): (Vec<_>, Vec<_>) = opened.into_iter().unzip();
        let host = Host {
            device,
            pd,
            cq,
            talkers,
        };
        (host, addresses)
    });
    let [(a, a_addresses), (b, b_addresses)] = hosts;
    for (talker, peer) in a.talkers.iter().zip(&b_addresses) {
        talker.endpoint.connect_pair(talker.pair, peer).unwrap();
    }
    for (talker, peer) in b.talkers.iter().zip(&a_addresses) {
        talker.endpoint.connect_pair(talker.pair, peer).unwrap();
    }
    [a, b]
}

/// What is polled until nothing has come for some time: endpoint, number and status of each.
fn all(host: &Host) -> Vec<(u8, u64, WcStatus)> {
    let mut all = Vec::new();
    loop {
        match host.cq.wait(100_000) {
            Ok(wc) => all.push((wc.endpoint, wc.wr_id, wc.status)),
            Err(WaitError::Interrupted) => {}
            Err(_) => break,
        }
    }
    all.sort_unstable_by_key(|&(endpoint, wr_id, _)| (endpoint, wr_id));
    all
}

#[test]
pub fn one_poll_serves_all_and_each_completion_names_its_endpoint() {
    let [a, b] = talkers(&able(), 3, 64);
    let mut wanted = Vec::new();
    for (sender, receiver) in a.talkers.iter().zip(&b.talkers) {
        for wr_id in 0..4 {
            receiver.post(wr_id).unwrap();
            sender.inject(wr_id);
            wanted.push((receiver.endpoint.index(), wr_id, WcStatus::Success));
        }
        assert_eq!(receiver.endpoint.query().outstanding, 4);
    }
    assert_eq!((b.cq.outstanding(), b.cq.strays()), (12, 0));
    assert_eq!(all(&b), wanted);
    assert_eq!((b.cq.outstanding(), b.cq.strays()), (0, 0));
    let numbers: Vec<_> = b.talkers.iter().map(|t| t.endpoint.index()).collect();
    assert_eq!(numbers, [0, 1, 2]);
}

#[test]
pub fn a_place_is_reserved_for_each_request_whichever_endpoint_it_is_of() {
    let [a, b] = talkers(&able(), 2, 16);
    let [waiting, busy] = &b.talkers[..] else {
        unreachable!()
    };
    // Receives that match nothing hold 14 of the 16 entries.
    for wr_id in 0..14 {
        waiting.post(wr_id).unwrap();
    }
    // The other has two, again and again: had the card none free for what was posted, it would never fetch it.
    for wr_id in 100..150 {
        busy.post(wr_id).unwrap();
        let other = waiting.post(99).unwrap();
        assert_eq!(busy.post(1), Err(PostError::CompletionQueueFull));
        assert_eq!(waiting.post(1), Err(PostError::CompletionQueueFull));
        a.talkers[1].inject(wr_id);
        let wc = b.cq.wait(PATIENCE).unwrap();
        assert_eq!((wc.endpoint, wc.wr_id), (busy.endpoint.index(), wr_id));
        waiting.endpoint.cancel(7, other).unwrap();
        let wc = b.cq.wait(PATIENCE).unwrap();
        assert_eq!((wc.wr_id, wc.status), (99, WcStatus::Cancelled));
    }
    assert_eq!(busy.endpoint.query().outstanding, 0);
    assert_eq!(waiting.endpoint.query().outstanding, 14);
    // What the first ones hold is theirs still.
    (0..14).for_each(|wr_id| a.talkers[0].inject(wr_id));
    assert_eq!(all(&b).len(), 14);
}

#[test]
fn a_card_that_cannot_refuses_the_second_endpoint_and_says_what_it_lacks() {
    let fabric = fabric();
    let device = Device::open(fabric.transport(0)).unwrap();
    assert!(!device.limits().shared_completions);
    let pd = device.alloc_pd().unwrap();
    let cq = pd.create_cq(16).unwrap();
    let first = pd.endpoint().on(&cq).open().expect("a queue of its own");
    let refused = pd.endpoint().on(&cq).open().err().expect("refused");
    assert!(matches!(
        refused,
        CommandError::Refused {
            status: MailboxStatus::Unsupported,
            detail: abi::capability::CAPABILITY_SHARED_COMPLETIONS,
            ..
        }
    ));
    // The first is as it was.
    first
        .post_tagged_inject(1, &send_to_nobody(&first), b"")
        .unwrap();
    pd.endpoint().open().expect("one with its own queue");
}

/// A send on a pair that nobody is at the other end of.
fn send_to_nobody(endpoint: &Endpoint) -> TaggedSend {
    let (pair, _) = endpoint.open_pair(1).unwrap();
    TaggedSend {
        pair,
        context: 0,
        match_bits: 0,
        immediate: 0,
    }
}

#[test]
pub fn the_first_endpoint_is_closed_last_and_a_refusal_leaves_it_as_it_was() {
    let [a, b] = talkers(&able(), 2, 16);
    let [first, second] = &b.talkers[..] else {
        unreachable!()
    };
    for _ in 0..2 {
        assert!(matches!(
            first.endpoint.close(),
            Err(CommandError::Refused {
                status: MailboxStatus::Busy,
                ..
            })
        ));
    }
    // More than the queue has entries, so that the card must hear that they are free.
    for wr_id in 0..40 {
        for (talker, sender) in [first, second].into_iter().zip(&a.talkers) {
            talker.post(wr_id).unwrap();
            sender.inject(wr_id);
            assert_eq!(b.cq.wait(PATIENCE).unwrap().wr_id, wr_id);
        }
    }
    second.endpoint.close().unwrap();
    first.endpoint.close().unwrap();
}

#[test]
fn endpoints_are_dropped_in_any_order() {
    let fabric = able();
    let device = Device::open(fabric.transport(0)).unwrap();
    let pd = device.alloc_pd().unwrap();
    for order in [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 2, 1]] {
        for by_stranger in [false, true] {
            let cq = pd.create_cq(8).unwrap();
            let mut open: Vec<_> = (0..3)
                .map(|_| Some(pd.endpoint().inject_buffers(0).on(&cq).open().unwrap()))
                .collect();
            drop(cq);
            for at in order {
                let endpoint = open[at].take();
                match by_stranger {
                    true => as_stranger(|| drop(endpoint)),
                    false => drop(endpoint),
                }
            }
            // What could not be closed then is, one or two commands later.
            drop(device.alloc_pd().unwrap());
            assert_eq!(fabric.open_endpoints(0), 0);
        }
    }
}

#[test]
pub fn closing_one_endpoint_flushes_its_requests_however_busy_the_others_are() {
    let [a, b] = talkers(&able(), 2, 32);
    let [busy, closed] = &b.talkers[..] else {
        unreachable!()
    };
    for wr_id in 0..4 {
        closed.post(wr_id).unwrap();
        busy.post(wr_id).unwrap();
        a.talkers[0].inject(wr_id);
    }
    pause(&b.device, 100_000);
    // The last of them is in the ring, not fetched: it is the library that flushes it.
    closed.endpoint.close().unwrap();
    assert_eq!(closed.post(9), Err(PostError::Closed));
    let mut flushed = Vec::new();
    for wr_id in 4..100 {
        // There is always something else to poll.
        busy.post(wr_id).unwrap();
        a.talkers[0].inject(wr_id);
        pause(&b.device, 20_000);
        let wc = b.cq.poll().expect("something has come");
        if wc.endpoint == closed.endpoint.index() {
            assert_eq!(wc.status, WcStatus::Flushed);
            flushed.push(wc.wr_id);
        } else {
            assert_eq!(wc.status, WcStatus::Success);
        }
        if flushed.len() == 4 {
            break;
        }
    }
    flushed.sort_unstable();
    assert_eq!(flushed, [0, 1, 2, 3]);
    assert!(!all(&b).is_empty(), "the queue was never empty");
    busy.post(1_000).unwrap();
    a.talkers[0].inject(1_000);
    assert_eq!(b.cq.wait(PATIENCE).unwrap().wr_id, 1_000);
}

/// Requests that the card never fetches are flushed by the library, and before what others complete later.
#[test]
pub fn what_was_never_fetched_is_flushed_behind_what_the_queue_held_at_the_close() {
    let fabric = SoftFabric::new(SoftOptions {
        fetch_cycles: 50_000,
        ..four_endpoints()
    });
    let [a, b] = talkers(&fabric, 2, 64);
    let [busy, closed] = &b.talkers[..] else {
        unreachable!()
    };
    for wr_id in 0..16 {
        busy.post(wr_id).unwrap();
    }
    pause(&b.device, 4_000_000);
    (0..8).for_each(|wr_id| a.talkers[0].inject(wr_id));
    pause(&b.device, 2_000_000);
    closed.post(77).unwrap();
    closed.endpoint.close().unwrap();
    (8..16).for_each(|wr_id| a.talkers[0].inject(wr_id));
    pause(&b.device, 2_000_000);
    let order: Vec<_> = std::iter::from_fn(|| b.cq.poll())
        .map(|wc| wc.wr_id)
        .collect();
    let flushed = order.iter().position(|&wr_id| wr_id == 77);
    assert_eq!(order.len(), 17);
    assert!(flushed.is_some_and(|at| at <= 10), "{order:?}");
}

#[test]
pub fn a_request_is_of_the_endpoint_that_it_was_posted_on() {
    let [_a, b] = talkers(&able(), 2, 16);
    let [first, second] = &b.talkers[..] else {
        unreachable!()
    };
    let request = first.post(1).unwrap();
    assert_eq!(second.endpoint.query_request(request), RequestState::Ended);
    assert_eq!(
        second.endpoint.cancel(2, request),
        Err(PostError::NothingToCancel)
    );
    first.endpoint.cancel(2, request).unwrap();
    let ended = b.cq.wait(PATIENCE).unwrap();
    assert_eq!((ended.wr_id, ended.status), (1, WcStatus::Cancelled));
}

#[test]
fn pairs_and_claims_are_of_their_endpoint() {
    let [a, b] = talkers(&able(), 2, 16);
    let [first, second] = &b.talkers[..] else {
        unreachable!()
    };
    a.talkers[1].inject(5);
    let claimed = loop {
        second.endpoint.claim(1, &second.receive(5)).unwrap();
        if let Some(claimed) = b.cq.wait(PATIENCE).unwrap().claimed {
            break claimed;
        }
    };
    claimed.receive(2, Buffer::empty()).unwrap();
    let wc = b.cq.wait(PATIENCE).unwrap();
    assert_eq!((wc.endpoint, wc.wr_id), (second.endpoint.index(), 2));
    let foreign = first
        .endpoint
        .post_tagged_inject(1, &second.send(1), &[])
        .unwrap_err();
    assert_eq!(foreign, PostError::InvalidPair);
}

#[test]
fn an_event_of_any_endpoint_ends_a_wait_once() {
    let [a, b] = talkers(&able(), 2, 16);
    for talker in 0..2 {
        let waits = &b.talkers[talker].endpoint;
        waits.set_wait_interrupts(Causes::PEER_FAILED);
        a.talkers[talker]
            .endpoint
            .close_pair(a.talkers[talker].pair)
            .unwrap();
        assert_eq!(b.cq.wait(PATIENCE).unwrap_err(), WaitError::Interrupted);
        assert_eq!(b.cq.wait(10_000).unwrap_err(), WaitError::Timeout);
        let event = b.talkers[talker].endpoint.poll_event().unwrap().unwrap();
        assert_eq!(event.pair, Some(b.talkers[talker].pair));
    }
}

#[test]
fn a_wait_ends_for_a_completion_of_any_endpoint() {
    let [a, b] = talkers(&able(), 3, 16);
    let mut channel = CompletionChannel::new(std::slice::from_ref(&b.cq));
    for round in 0..12 {
        let at = round as usize % 3;
        b.talkers[at].post(round).unwrap();
        a.talkers[at].inject(round);
        let before = b.device.now();
        assert_eq!(channel.wait(PATIENCE), Ok(0));
        assert!(b.device.now() - before < 5_000, "it slept");
        assert_eq!(b.cq.wait(PATIENCE).unwrap().wr_id, round);
    }
}

#[cfg(target_os = "linux")]
#[test]
pub fn the_file_descriptor_tells_of_endpoints_that_were_opened_after_it_was_made() {
    let fabric = able();
    let device = Device::open(fabric.transport(0)).unwrap();
    let pd = device.alloc_pd().unwrap();
    let cq = pd.create_cq(16).unwrap();
    let event = cq.event_fd().unwrap();
    let first = pd.endpoint().on(&cq).open().unwrap();
    let second = pd.endpoint().on(&cq).open().unwrap();
    assert_eq!(event.clear().unwrap(), 0);
    // A send that can't be delivered completes at once.
    let of_closed = |endpoint: &Endpoint| {
        let (pair, _) = endpoint.open_pair(1).unwrap();
        let receive = TaggedReceive {
            source: Source::Pair(pair),
            context: 0,
            match_bits: 0,
            ignore_bits: 0,
        };
        cq.req_notify().unwrap();
        assert!(cq.poll().is_none());
        let posted = endpoint.post_tagged_recv(1, &receive, Buffer::empty());
        posted.unwrap();
        pause(&device, 1_000);
        endpoint.close_pair(pair).unwrap();
        pause(&device, 10_000);
        assert!(event.clear().unwrap() > 0);
        assert_eq!(cq.poll().unwrap().endpoint, endpoint.index());
    };
    of_closed(&first);
    of_closed(&second);
    // The second's own line tells of its events.
    second.req_notify_event().unwrap();
    event.clear().unwrap();
    second.begin_connect(&first.address(), 1, 1_000).unwrap();
    pause(&device, 100_000);
    assert!(second.poll_event().unwrap().is_some());
    assert!(event.clear().unwrap() > 0, "its event");
}

#[test]
pub fn a_queue_whose_endpoints_are_closed_takes_others_once_it_is_polled() {
    let fabric = able();
    let device = Device::open(fabric.transport(0)).unwrap();
    let pd = device.alloc_pd().unwrap();
    let cq = pd.create_cq(4).unwrap();
    for round in 0..6 {
        let endpoint = pd.endpoint().on(&cq).open().expect("nothing is left there");
        let receive = TaggedReceive {
            source: Source::Any,
            context: 0,
            match_bits: 0,
            ignore_bits: 0,
        };
        for wr_id in 0..round % 4 {
            let posted = endpoint.post_tagged_recv(wr_id, &receive, Buffer::empty());
            posted.unwrap();
        }
        pause(&device, 10_000);
        endpoint.close().unwrap();
        if round % 4 > 0 {
            let refused = pd.endpoint().on(&cq).open().err();
            assert!(matches!(refused, Some(CommandError::Argument(_))));
        }
        let flushed = std::iter::from_fn(|| cq.poll()).count();
        assert_eq!(flushed as u64, round % 4);
    }
    assert_eq!(cq.strays(), 0);
}

#[test]
fn a_queue_that_does_not_fit_is_refused() {
    let fabric = able();
    let device = Device::open(fabric.transport(0)).unwrap();
    let (pd, other) = (device.alloc_pd().unwrap(), device.alloc_pd().unwrap());
    let cq = other.create_cq(16).unwrap();
    let is_argument = |refused| matches!(refused, Some(CommandError::Argument(_)));
    assert!(is_argument(pd.endpoint().on(&cq).open().err()));
    for entries in [0, 2, 5, 1 << 15] {
        assert!(is_argument(pd.create_cq(entries).err()));
    }
    assert!(cq.poll().is_none());
    assert_eq!(cq.wait(1_000).unwrap_err(), WaitError::Timeout);
}

#[test]
fn a_card_that_is_gone_flushes_all_endpoints() {
    let fabric = able();
    let [_a, b] = talkers(&fabric, 2, 16);
    for talker in &b.talkers {
        talker.post(1).unwrap();
    }
    let (_region, _buffer) = b.pd.reg_mr(8, Access::Read).unwrap();
    fabric.close();
    let all: Vec<_> = std::iter::from_fn(|| b.cq.poll())
        .map(|wc| (wc.endpoint, wc.status))
        .collect();
    assert_eq!(all, [0, 1].map(|endpoint| (endpoint, WcStatus::Flushed)));
}

#[test]
fn threads_post_on_endpoints_of_one_queue_that_another_polls() {
    let fabric = able();
    let [a, b] = talkers(&fabric, 3, 64);
    let attached = [0; 3].map(|_| fabric.attach());
    let polls = fabric.attach();
    std::thread::scope(|scope| {
        for ((talker, peer), attached) in b.talkers.iter().zip(&a.talkers).zip(attached) {
            scope.spawn(move || {
                let _attached = attached;
                for wr_id in 0..50 {
                    while talker.post(wr_id).is_err() {
                        pause(talker.endpoint.device(), 500);
                    }
                    peer.inject(wr_id);
                }
            });
        }
        scope.spawn(|| {
            let _attached = polls;
            let mut next = [0; 3];
            for _ in 0..150 {
                let wc = b.cq.wait(PATIENCE).unwrap();
                let next = &mut next[usize::from(wc.endpoint)];
                assert_eq!(wc.wr_id, *next, "in order");
                *next += 1;
            }
        });
    });
}
