//! Connections that the cards make themselves, gates, firmware and library together: by name of card and endpoint, over a link that
//! loses and repeats, and ended so that nobody takes it for a failure.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use abi::control::Counter;
use abi::wire::{FrameType, VERSION};
use host_driver::{
    Access, Buffer, Cause, CommandError, CompletionQueue, ConnectError, ConnectReason, Device,
    Endpoint, EndpointAddress, MailboxStatus, MemoryRegion, Pair, PairAddress, PairState, Source,
    TaggedReceive, TaggedSend, WaitError, WcStatus, WorkCompletion,
};
use posthorn_tests::cards::{GatesOnly, Host, both, both_over, cards};
use posthorn_tests::frames::{edit, is};
use posthorn_tests::wires::Wires;
use sim::Rate;
use sim::fabric::{LinkFilter, Passing};

/// Cycles after which a connection is given up: longer than the firmware needs to repeat each of its frames a few times.
pub(crate) const TIMEOUT: u32 = 2_000_000;
pub(crate) const CREDITS: u16 = 4;

/// A rank that has an endpoint and no pair.
pub(crate) struct Stranger {
    pub(crate) host: Host,
    pub(crate) device: Device,
    pub(crate) endpoint: Endpoint,
    queue: CompletionQueue,
    _region: MemoryRegion,
    memory: Buffer,
}

impl Stranger {
    pub(crate) fn open(host: &Host) -> Self {
        let device = Device::open(host.transport()).expect("a card");
        let domain = device.alloc_pd().expect("a domain");
        let endpoint = domain.endpoint().open().expect("an endpoint");
        let (region, memory) = domain.reg_mr(4096, Access::ReadWrite).expect("a region");
        Self {
            host: host.clone(),
            queue: endpoint.completion_queue(),
            device,
            endpoint,
            _region: region,
            memory,
        }
    }

    /// The addresses of all ranks' endpoints. All ranks must call it.
    pub(crate) fn addresses(&self) -> Vec<EndpointAddress> {
        let mine = self.endpoint.address().to_bytes().to_vec();
        let all = self.host.all_gather(mine).expect("all ranks");
        let address = |bytes: &Vec<u8>| bytes[..].try_into().expect("an address's length");
        all.iter()
            .map(|bytes| EndpointAddress::from_bytes(&address(bytes)))
            .collect()
    }

    pub(crate) fn meet(&self) {
        self.host.all_gather(Vec::new()).expect("all ranks");
    }

    fn causes(&self) -> Vec<Cause> {
        let event = || self.endpoint.poll_event().expect("a card");
        std::iter::from_fn(event).map(|event| event.cause).collect()
    }

    fn send(&self, pair: Pair, bytes: &[u8]) {
        let send = TaggedSend {
            pair,
            context: 0,
            match_bits: 7,
            immediate: 0,
        };
        self.endpoint
            .post_tagged_inject(1, &send, bytes)
            .expect("posted");
    }

    fn receive(&mut self, pair: Pair, wr_id: u64) {
        let receive = TaggedReceive {
            source: Source::Pair(pair),
            context: 0,
            match_bits: 7,
            ignore_bits: 0,
        };
        let buffer = self.memory.split_to(64);
        let posted = self.endpoint.post_tagged_recv(wr_id, &receive, buffer);
        posted.expect("posted");
    }

    fn send_buffer(&mut self, pair: Pair, wr_id: u64) {
        let send = TaggedSend {
            pair,
            context: 0,
            match_bits: 7,
            immediate: 0,
        };
        let mut buffer = self.memory.split_to(8);
        buffer.fill(wr_id as u8);
        let posted = self.endpoint.post_tagged_send(wr_id, &send, buffer);
        posted.expect("posted");
    }

    /// The next completion, whatever events there are.
    #[track_caller]
    fn completion(&self) -> WorkCompletion {
        loop {
            match self.queue.wait(TIMEOUT.into()) {
                Ok(completion) => return completion,
                Err(WaitError::Interrupted) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Waits for a connection that was begun or offered.
    #[track_caller]
    fn made(&self, pair: Pair) -> EndpointAddress {
        loop {
            let made = self.endpoint.poll_connection(pair);
            match made.expect("it comes to something") {
                Some(peer) => return peer,
                None => self.pause(2000),
            }
        }
    }

    fn pause(&self, cycles: u64) {
        self.wait_until(self.device.now() + cycles);
    }

    fn wait_until(&self, cycle: u64) {
        while self.device.now() < cycle {
            let _ = self.device.pause(&[], cycle);
        }
    }

    /// Both ranks send one message each and receive the other's.
    pub(crate) fn greet(&mut self, pair: Pair) {
        self.receive(pair, 10);
        let text = format!("from card {}", self.host.card());
        self.send(pair, text.as_bytes());
        let found = self.completion();
        assert_eq!((found.wr_id, found.status), (10, WcStatus::Success));
        let text = format!("from card {}", 1 - self.host.card());
        assert_eq!(found.received(), text.as_bytes());
    }
}

/// Card 0 connects to card 1, they talk, and card 0 ends it.
fn whole_life(me: &mut Stranger) {
    let addresses = me.addresses();
    if me.host.card() == 0 {
        let pair = me.endpoint.connect(&addresses[1], CREDITS, TIMEOUT);
        let pair = pair.expect("a connection");
        me.greet(pair);
        me.meet();
        me.endpoint
            .disconnect(pair, TIMEOUT)
            .expect("an orderly end");
        me.meet();
        let ended = [Cause::PairConnected, Cause::Disconnected];
        assert_eq!(me.causes(), ended, "and no failure");
    } else {
        let accepted = me.endpoint.accept(CREDITS, TIMEOUT.into());
        let (pair, peer) = accepted.expect("a connection");
        assert_eq!(peer, addresses[0]);
        me.greet(pair);
        // It waits for a message that won't come.
        me.receive(pair, 11);
        me.meet();
        let ended = me.completion();
        assert_eq!((ended.wr_id, ended.status), (11, WcStatus::PeerClosed));
        me.meet();
        let ended = [Cause::PairConnected, Cause::PeerClosed];
        assert_eq!(me.causes(), ended, "and no failure");
        me.endpoint.close_pair(pair).expect("closed");
    }
}

#[test]
fn cards_connect_by_name_and_a_clean_end_is_no_failure_for_either() {
    both("tiny", 2, 301, |host| {
        let mut me = Stranger::open(&host);
        // A place that is used again is another pair.
        for _ in 0..3 {
            whole_life(&mut me);
        }
        assert_eq!(me.device.read_counter(Counter::Timeouts), Ok(0));
        assert_eq!(me.device.read_counter(Counter::PairErrors), Ok(0));
    });
}

/// As on boards. In other tests processors are faster, since commands are most of what is simulated.
#[test]
fn cards_whose_processors_have_half_the_clock_connect_talk_and_part() {
    let cluster = cards("tiny", 2, 311).processor_clock(Rate::OneIn(2));
    GatesOnly::Simulation.run(cluster, |host| {
        let mut me = Stranger::open(&host);
        whole_life(&mut me);
        assert_eq!(me.device.read_counter(Counter::Timeouts), Ok(0));
        assert_eq!(me.device.read_counter(Counter::PairErrors), Ok(0));
    });
}

#[test]
fn a_connection_is_made_and_ended_over_a_link_that_loses_and_repeats_frames_of_the_firmware() {
    // Of the firmware's frames every third goes on, the next one twice.
    let tap = || {
        let mut count = 0;
        move |passing: Passing, out: &mut Vec<Passing>| {
            let firmware =
                is(&passing, FrameType::Handshake) || is(&passing, FrameType::Management);
            count += u32::from(firmware);
            if firmware && count % 3 == 0 {
                return;
            }
            if firmware && count % 3 == 1 {
                out.push(passing.clone());
            }
            out.push(passing);
        }
    };
    let wires =
        || Wires::tapped(LinkFilter::between(0, 1), tap()).tap(LinkFilter::between(1, 0), tap());
    both_over("tiny", 2, 302, wires, |host| {
        let mut me = Stranger::open(&host);
        for _ in 0..4 {
            whole_life(&mut me);
        }
    });
}

#[test]
fn two_that_connect_at_once_get_one_pair() {
    both("tiny", 2, 303, |host| {
        let mut me = Stranger::open(&host);
        let addresses = me.addresses();
        let peer = &addresses[1 - host.card()];
        let pair = me.endpoint.connect(peer, CREDITS, TIMEOUT);
        let pair = pair.expect("a connection");
        me.greet(pair);
        me.meet();
        let status = me.endpoint.query_pair(pair).expect("a pair");
        assert_eq!(status.remote_credits, u32::from(CREDITS));
        assert_eq!(me.causes(), [Cause::PairConnected]);
        // Whoever is left with a second one would find it connecting still.
        let again = me.endpoint.connect(peer, CREDITS, TIMEOUT);
        assert_eq!(
            again.map_err(reason),
            Err(Some(ConnectReason::AlreadyConnected))
        );
        me.meet();
    });
}

fn reason(error: ConnectError) -> Option<ConnectReason> {
    match error {
        ConnectError::Refused { reason, .. } => Some(reason),
        _ => None,
    }
}

#[test]
fn who_is_not_there_or_does_not_accept_is_a_reason_and_not_a_hang() {
    both("tiny", 2, 304, |host| {
        let me = Stranger::open(&host);
        let addresses = me.addresses();
        if host.card() == 0 {
            let connect = |to: &EndpointAddress, timeout| {
                let made = me.endpoint.connect(to, CREDITS, timeout);
                made.map_err(reason).expect_err("nobody there")
            };
            let refused = connect(&addresses[1], TIMEOUT);
            assert_eq!(refused, Some(ConnectReason::NotAccepting));
            let mut bytes = addresses[1].to_bytes();
            // No card has this Ethernet address.
            bytes[1] ^= 0x40;
            let nobody = EndpointAddress::from_bytes(&bytes);
            assert_eq!(connect(&nobody, 200_000), Some(ConnectReason::TimedOut));
        }
        me.meet();
    });
}

/// What a command was refused with.
fn refusal<T>(refused: Result<T, CommandError>) -> (MailboxStatus, u32) {
    match refused.map(drop) {
        Err(CommandError::Refused { status, detail, .. }) => (status, detail),
        other => panic!("{other:?}"),
    }
}

#[test]
fn peers_that_were_reserved_have_room_when_others_have_taken_all_the_rest() {
    // Of `tiny`: 8 pairs, 64 envelopes, 2 endpoints.
    both("tiny", 2, 305, |host| {
        let mut me = Stranger::open(&host);
        let domain = me.device.alloc_pd().expect("a domain");
        let other = domain.endpoint().inject_buffers(0).open();
        let other = other.expect("another endpoint");
        let mine = [&me.endpoint, &other].map(Endpoint::address);
        let all = host.all_gather(mine.map(|it| it.to_bytes()).concat());
        let all = all.expect("all ranks");
        if host.card() == 0 {
            me.endpoint.reserve_peers(2, 8).expect("there is room");
            let reserve = |pairs, credits| refusal(other.reserve_peers(pairs, credits));
            assert_eq!(reserve(7, 1), (MailboxStatus::NoResource, 6));
            assert_eq!(reserve(6, 9), (MailboxStatus::NoEnvelopes, 8));
            other.reserve_peers(6, 8).expect("what is left");
            for _ in 0..6 {
                other.open_pair(8).expect("one of those set aside");
            }
            assert_eq!(refusal(other.open_pair(1)).0, MailboxStatus::NoResource);
            me.meet();
            let (addresses, _) = all[1].as_chunks();
            for address in addresses {
                let peer = EndpointAddress::from_bytes(address);
                let pair = me.endpoint.connect(&peer, 8, TIMEOUT);
                let pair = pair.expect("one of those set aside");
                me.send(pair, b"in");
            }
            assert_eq!(
                refusal(me.endpoint.open_pair(1)).0,
                MailboxStatus::NoResource
            );
        } else {
            let first = me.endpoint.listen(CREDITS).expect("an offer");
            other.listen(CREDITS).expect("an offer");
            me.meet();
            me.made(first);
            me.receive(first, 1);
            assert_eq!(me.completion().received(), b"in");
        }
        me.meet();
    });
}

#[test]
fn cards_whose_versions_disagree_say_which_and_connect_when_they_agree_again() {
    // Who is of another version: he who asks, as the other sees him, or each in the eyes of the other.
    for (seed, each) in [(306, false), (307, true)] {
        let disagree = Arc::new(AtomicBool::new(true));
        let tap = |disagree: &Arc<AtomicBool>| {
            let disagree = Arc::clone(disagree);
            move |mut passing: Passing, out: &mut Vec<Passing>| {
                if is(&passing, FrameType::Handshake) && disagree.load(Ordering::Relaxed) {
                    edit(&mut passing, |header| header.version += 1);
                }
                out.push(passing);
            }
        };
        let wires = || {
            disagree.store(true, Ordering::Relaxed);
            let wires = Wires::tapped(LinkFilter::between(0, 1), tap(&disagree));
            match each {
                true => wires.tap(LinkFilter::between(1, 0), tap(&disagree)),
                false => wires,
            }
        };
        both_over("tiny", 2, seed, wires, |host| {
            let mut me = Stranger::open(&host);
            let addresses = me.addresses();
            if host.card() == 0 {
                me.meet();
                let refused = me.endpoint.connect(&addresses[1], CREDITS, TIMEOUT);
                let theirs = u16::from(VERSION) + u16::from(each);
                let wrong = ConnectError::Refused {
                    reason: ConnectReason::WrongVersion,
                    detail: theirs,
                };
                assert_eq!(refused, Err(wrong), "it is named");
                disagree.store(false, Ordering::Relaxed);
                let pair = me.endpoint.connect(&addresses[1], CREDITS, TIMEOUT);
                me.greet(pair.expect("a connection"));
            } else {
                let offer = me.endpoint.listen(CREDITS).expect("an offer");
                me.meet();
                let peer = me.made(offer);
                assert_eq!(peer, addresses[0]);
                me.greet(offer);
            }
            me.meet();
        });
    }
}

#[test]
fn a_disconnect_sends_what_is_outstanding_if_the_peer_takes_it_in_time() {
    both("tiny", 2, 308, |host| {
        let mut me = Stranger::open(&host);
        let addresses = me.addresses();
        // More than the peer grants: the rest waits for credit.
        const SENDS: u64 = CREDITS as u64 + 3;
        if host.card() == 0 {
            let pair = me.endpoint.connect(&addresses[1], CREDITS, TIMEOUT);
            let pair = pair.expect("a connection");
            (0..SENDS).for_each(|k| me.send_buffer(pair, k));
            me.receive(pair, 100);
            me.meet();
            me.endpoint
                .disconnect(pair, TIMEOUT)
                .expect("an orderly end");
            let mut ended: Vec<_> = (0..=SENDS).map(|_| me.completion()).collect();
            ended.sort_unstable_by_key(|completion| completion.wr_id);
            for (k, completion) in (0..SENDS).zip(&ended) {
                assert_eq!(
                    (completion.wr_id, completion.status),
                    (k, WcStatus::Success)
                );
                assert!(completion.buffer.is_some());
            }
            let receive = &ended[SENDS as usize];
            assert_eq!(receive.wr_id, 100);
            assert!(receive.buffer.is_some() && receive.status != WcStatus::Success);
            assert_eq!(me.queue.outstanding(), 0);
            me.meet();
            assert!(!me.causes().contains(&Cause::LinkError), "and no failure");
        } else {
            let accepted = me.endpoint.accept(CREDITS, TIMEOUT.into());
            let (pair, _) = accepted.expect("a connection");
            me.meet();
            me.pause(20_000);
            for k in 0..SENDS {
                me.receive(pair, k);
                let received = me.completion();
                assert_eq!((received.wr_id, received.status), (k, WcStatus::Success));
                assert_eq!(received.received(), [k as u8; 8]);
            }
            me.receive(pair, 50);
            let ended = me.completion();
            assert_eq!((ended.wr_id, ended.status), (50, WcStatus::PeerClosed));
            me.meet();
            let ended = [Cause::PairConnected, Cause::PeerClosed];
            assert_eq!(me.causes(), ended, "and no failure");
        }
    });
}

#[test]
fn a_disconnect_ends_what_the_peer_does_not_take_in_time_once_and_is_no_failure_for_him() {
    both("tiny", 2, 309, |host| {
        let mut me = Stranger::open(&host);
        let addresses = me.addresses();
        const SENDS: u64 = CREDITS as u64 + 3;
        if host.card() == 0 {
            let pair = me.endpoint.connect(&addresses[1], CREDITS, TIMEOUT);
            let pair = pair.expect("a connection");
            (0..SENDS).for_each(|k| me.send_buffer(pair, k));
            me.meet();
            let before = me.device.now();
            me.endpoint.disconnect(pair, 50_000).expect("an end");
            assert!(me.device.now() - before < 500_000);
            let mut ended: Vec<_> = (0..SENDS).map(|_| me.completion()).collect();
            ended.sort_unstable_by_key(|completion| completion.wr_id);
            for (k, completion) in (0..SENDS).zip(&ended) {
                assert_eq!(completion.wr_id, k);
                assert!(completion.buffer.is_some());
                let delivered = completion.status == WcStatus::Success;
                assert_eq!(
                    delivered,
                    k < u64::from(CREDITS),
                    "{k}: {:?}",
                    completion.status
                );
            }
            assert_eq!(me.queue.outstanding(), 0);
            me.meet();
            assert!(!me.causes().contains(&Cause::LinkError), "and no failure");
        } else {
            let accepted = me.endpoint.accept(CREDITS, TIMEOUT.into());
            let (pair, _) = accepted.expect("a connection");
            me.meet();
            me.meet();
            // What had arrived is the receiver's; then the peer has closed.
            for k in 0..u64::from(CREDITS) {
                me.receive(pair, k);
                let received = me.completion();
                assert_eq!((received.wr_id, received.status), (k, WcStatus::Success));
            }
            me.receive(pair, 50);
            let ended = me.completion();
            assert_eq!((ended.wr_id, ended.status), (50, WcStatus::PeerClosed));
            let ended = [Cause::PairConnected, Cause::PeerClosed];
            assert_eq!(me.causes(), ended, "and no failure");
        }
    });
}

/// As it broke: a pair was set and cleared only when the wire had taken what went before, so that on a wire that takes nothing `ConnectPair` was answered
/// `HardwareTimeout` and `ClosePair` hung.
#[test]
fn a_pair_connects_and_closes_while_the_wire_takes_nothing() {
    // For less than it takes to give the peer up.
    const STALL: std::ops::Range<u64> = 200_000..280_000;
    GatesOnly::Simulation.run(cards("tiny", 2, 310).stall(0, STALL), |host| {
        let mut me = Stranger::open(&host);
        let addresses = me.addresses();
        let busy = if host.card() == 0 {
            let pair = me.endpoint.connect(&addresses[1], CREDITS, TIMEOUT);
            pair.expect("a connection")
        } else {
            let accepted = me.endpoint.accept(CREDITS, TIMEOUT.into());
            accepted.expect("a connection").0
        };
        let domain = me.device.alloc_pd().expect("a domain");
        let other = domain.endpoint().open().expect("another endpoint");
        let exchange = |endpoint: &Endpoint| {
            let (pair, address) = endpoint.open_pair(CREDITS).expect("a pair");
            let all = host.all_gather(address.to_bytes().to_vec());
            let theirs = &all.expect("all ranks")[1 - host.card()][..];
            let theirs = PairAddress::from_bytes(theirs.try_into().expect("its length"));
            (pair, theirs.expect("an address"))
        };
        let (pair, peer) = exchange(&other);
        assert!(me.device.now() < STALL.start, "{}", me.device.now());
        if host.card() == 0 {
            me.wait_until(STALL.start);
            for _ in 0..CREDITS {
                me.send(busy, &[7; 1024]);
            }
            other.connect_pair(pair, &peer).expect("connected");
            let state = other.query_pair(pair).expect("it is there").state;
            assert_eq!(state, PairState::Connected);
            other.close_pair(pair).expect("closed");
            assert!(other.query_pair(pair).is_err(), "it is closed");
            assert!(me.device.now() < STALL.end, "{}", me.device.now());
            me.wait_until(STALL.end + 20_000);
        } else {
            other.connect_pair(pair, &peer).expect("connected");
            for wr_id in 0..CREDITS {
                me.receive(busy, wr_id.into());
                let received = me.completion();
                assert_eq!(received.status, WcStatus::Truncated, "{received:?}");
            }
        }
        me.meet();
    });
}
