//! Connections that the cards make themselves, gates, firmware and library together: by name of card and endpoint, over a link that
//! loses and repeats, and ended so that nobody takes it for a failure.

use std::sync::Arc;

use abi::control::Counter;
use abi::wire::FrameType;
use host_driver::{
    Access, Buffer, Cause, CompletionQueue, ConnectError, ConnectReason, Device, Endpoint,
    EndpointAddress, MemoryRegion, Pair, Source, TaggedReceive, TaggedSend, WcStatus,
};
use posthorn_tests::cards::{cards, run};
use posthorn_tests::frames::is;
use posthorn_tests::side::PATIENCE;
use sim::Host;
use sim::fabric::{LinkFilter, Passing};

/// Cycles after which a connection is given up: longer than the firmware needs to repeat each of its frames a few times.
const TIMEOUT: u32 = 2_000_000;
const CREDITS: u16 = 4;

/// A rank that has an endpoint and no pair.
struct Stranger {
    host: Host,
    device: Device,
    endpoint: Endpoint,
    queue: CompletionQueue,
    _region: MemoryRegion,
    memory: Buffer,
}

impl Stranger {
    fn open(host: &Host) -> Self {
        let device = Device::open(Arc::new(host.transport())).expect("a card");
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
    fn addresses(&self) -> Vec<EndpointAddress> {
        let mine = self.endpoint.address().to_bytes().to_vec();
        let all = self.host.all_gather(mine).expect("all ranks");
        let address = |bytes: &Vec<u8>| bytes[..].try_into().expect("an address's length");
        all.iter()
            .map(|bytes| EndpointAddress::from_bytes(&address(bytes)))
            .collect()
    }

    fn meet(&self) {
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

    /// Both ranks send one message each and receive the other's.
    fn greet(&mut self, pair: Pair) {
        self.receive(pair, 10);
        let text = format!("from card {}", self.host.card());
        self.send(pair, text.as_bytes());
        let found = loop {
            match self.queue.wait(PATIENCE) {
                Ok(found) => break found,
                // Of the connection.
                Err(host_driver::WaitError::Interrupted) => {}
                Err(error) => panic!("{error}"),
            }
        };
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
        let ended = loop {
            match me.queue.wait(TIMEOUT.into()) {
                Ok(ended) => break ended,
                Err(host_driver::WaitError::Interrupted) => {}
                Err(error) => panic!("{error}"),
            }
        };
        assert_eq!((ended.wr_id, ended.status), (11, WcStatus::PeerClosed));
        me.meet();
        let ended = [Cause::PairConnected, Cause::PeerClosed];
        assert_eq!(me.causes(), ended, "and no failure");
        me.endpoint.close_pair(pair).expect("closed");
    }
}

#[test]
fn cards_connect_by_name_and_a_clean_end_is_no_failure_for_either() {
    run(cards("tiny", 2, 301), |host| {
        let mut me = Stranger::open(&host);
        // A place that is used again is another pair.
        for _ in 0..3 {
            whole_life(&mut me);
        }
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
    let cluster = cards("tiny", 2, 302)
        .tap(LinkFilter::between(0, 1), tap())
        .tap(LinkFilter::between(1, 0), tap());
    run(cluster, |host| {
        let mut me = Stranger::open(&host);
        for _ in 0..4 {
            whole_life(&mut me);
        }
    });
}

#[test]
fn two_that_connect_at_once_get_one_pair() {
    run(cards("tiny", 2, 303), |host| {
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
    run(cards("tiny", 2, 304), |host| {
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
