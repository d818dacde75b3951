//! Endpoints of one card: each has its page, its memory and its pairs, and nobody else's.

use abi::completion::CompletionKind;
use abi::control::{Counter, RIGHT_LOCAL_READ, RIGHT_LOCAL_WRITE};
use abi::mailbox::{AuditEntry, AuditIndex, AuditKind, Command, id_index, refused_info};
use abi::register::EVENT_HEAD;
use abi::request::SendRequest;
use abi::status::Status;
use abi::times::REFUSAL_INTERVAL;
use posthorn_tests::cards::both;
use posthorn_tests::raw::{LoopbackEndpoint, Mapped, RawHost};

#[test]
fn an_endpoint_can_use_neither_memory_nor_pairs_of_another_domain() {
    both("tiny", 1, 51, |host| {
        let host = RawHost::new(&host);
        let mut a = LoopbackEndpoint::open(&host);
        let mut b = LoopbackEndpoint::open(&host);
        for turned in [false, true] {
            let (me, other) = if turned {
                (&mut b, &mut a)
            } else {
                (&mut a, &mut b)
            };
            // Memory: the key is right, the domain isn't.
            let mut send = me.send(7, 1, 16);
            (send.key, send.address) = (other.key, other.memory.address());
            me.endpoint.post_send(send.to_words());
            assert_eq!(me.status(), (1, Status::LocalProtection));
            let mut receive = me.receive(7, 2, 16);
            (receive.key, receive.address) = (other.key, other.memory.address());
            me.endpoint.post_list(receive.to_words());
            assert_eq!(me.status(), (2, Status::LocalProtection));
            // Pairs.
            let mut send = me.send(7, 3, 16);
            send.pair = other.pair;
            me.endpoint.post_send(send.to_words());
            assert_eq!(me.status(), (3, Status::InvalidPair));
            let mut receive = me.receive(7, 4, 16);
            receive.pair = other.pair;
            me.endpoint.post_list(receive.to_words());
            assert_eq!(me.status(), (4, Status::InvalidPair));
            me.assert_works();
            other.assert_works();
        }
    });
}

#[test]
fn a_message_for_one_endpoint_never_meets_a_receive_of_another() {
    both("tiny", 1, 52, |host| {
        let host = RawHost::new(&host);
        let mut a = LoopbackEndpoint::open(&host);
        let mut b = LoopbackEndpoint::open(&host);
        // B's receive takes anything from anybody; A's message still waits for A.
        let mut greedy = b.receive(0, 1, 64);
        greedy.flags = abi::request::FLAG_ANY_SOURCE;
        greedy.ignore_bits = u64::MAX;
        b.endpoint.post_list(greedy.to_words());
        let send = a.send(9, 2, 64);
        a.endpoint.post_send(send.to_words());
        assert_eq!(a.status(), (2, Status::Success));
        let receive = a.receive(9, 3, 64);
        a.endpoint.post_list(receive.to_words());
        assert_eq!(a.status(), (3, Status::Success));
        assert!(b.endpoint.poll().is_none());
        // Nor does B's cancel reach A's receive, though the handle is the same.
        let posted = a.receive(10, 77, 64);
        a.endpoint.post_list(posted.to_words());
        let cancel = b.cancel(4, 77);
        b.endpoint.post_list(cancel.to_words());
        assert_eq!(b.status(), (4, Status::TooLate));
        let send = a.send(10, 5, 64);
        a.endpoint.post_send(send.to_words());
        let mut both = [a.status(), a.status()];
        both.sort_unstable();
        assert_eq!(both, [(5, Status::Success), (77, Status::Success)]);
    });
}

#[test]
fn an_endpoint_that_fills_the_list_leaves_another_its_share() {
    const SEND: u32 = 1000;
    const PROBE: u32 = 1001;
    /// Posts a receive, and a probe to see whether the receive is refused before that. The first that is refused isn't told so before
    /// there may be room, only those behind it are.
    fn takes(loopback: &mut LoopbackEndpoint, tag: u32) -> bool {
        let receive = loopback.receive(u64::from(tag), tag, 64);
        loopback.endpoint.post_list(receive.to_words());
        let probe = loopback.probe(u64::MAX, PROBE);
        loopback.endpoint.post_list(probe.to_words());
        let (first, status) = loopback.status();
        if status == Status::Behind {
            assert_eq!(
                (first, loopback.status()),
                (tag, (PROBE, Status::NoMessage))
            );
            return false;
        }
        assert_eq!((first, status), (PROBE, Status::NoMessage));
        true
    }
    let report = both("tiny", 1, 57, |host| {
        let host = RawHost::new(&host);
        // A receive that is posted has a place in the completion ring.
        let mut flood = LoopbackEndpoint::with_rings(&host, 7);
        let mut modest = LoopbackEndpoint::with_rings(&host, 7);
        // A half is common, the other one the endpoints' own.
        let identity = host.identity();
        let (posted, share) = (identity.posted, identity.posted / (2 * identity.endpoints));
        let refused = (0..posted).find(|&tag| !takes(&mut flood, tag));
        // The one before it waits.
        let waiting = posted - share;
        assert_eq!(refused, Some(waiting + 1));
        for tag in 0..share {
            assert!(takes(&mut modest, tag), "receive {tag} of {share}");
        }
        let send =
            |loopback: &LoopbackEndpoint, tag| loopback.send(u64::from(tag), SEND, 64).to_words();
        for tag in [0, share - 1] {
            modest.endpoint.post_send(send(&modest, tag));
            let mut statuses = [modest.status(), modest.status()];
            statuses.sort_unstable();
            assert_eq!(statuses, [(tag, Status::Success), (SEND, Status::Success)]);
        }
        // Where there is room again, for a batch, the one that was refused is told.
        let mut told = false;
        for tag in 0..waiting {
            flood.endpoint.post_send(send(&flood, tag));
            let mut expected = vec![tag, SEND];
            while !expected.is_empty() {
                let (request, status) = flood.status();
                if request == waiting {
                    assert_eq!(status, Status::ListFull);
                    told = true;
                } else {
                    assert_eq!(status, Status::Success, "{request}");
                    expected.retain(|&other| other != request);
                }
            }
            if told {
                break;
            }
        }
        assert!(told, "all of its receives have gone");
    });
    // The flood's, and none of the modest one's: the last of its share, of which `takes` couldn't tell, is posted too.
    assert_eq!(report.cards[0].matching.refused, 1);
}

#[test]
fn an_endpoint_cannot_cancel_anothers_send() {
    both("tiny", 1, 56, |host| {
        let host = RawHost::new(&host);
        let mut a = LoopbackEndpoint::open(&host);
        let mut b = LoopbackEndpoint::open(&host);
        for request in 0..4 {
            a.endpoint.post_send(a.send(7, request, 8).to_words());
            assert_eq!(a.status(), (request, Status::Success));
        }
        // No credit is left: this one waits.
        a.endpoint.post_send(a.send(7, 77, 8).to_words());
        for (request, pair) in [(1, a.pair), (2, b.pair), (3, 8), (4, u16::MAX)] {
            let cancel = SendRequest {
                pair,
                ..b.cancel_send(request, 77)
            };
            b.endpoint.post_send(cancel.to_words());
            let entry = b.endpoint.completion();
            let seen = (entry.request, entry.status, entry.kind);
            let kind = CompletionKind::Cancel.code();
            assert_eq!(seen, (request, Status::TooLate.code(), kind), "pair {pair}");
        }
        assert_eq!(host.pair_status(a.pair).waiting, 1);
        for request in 200..205 {
            a.endpoint.post_list(a.receive(7, request, 8).to_words());
        }
        let mut all: Vec<_> = (0..6).map(|_| a.status()).collect();
        all.sort_unstable();
        let expected = [77, 200, 201, 202, 203, 204];
        assert_eq!(all, expected.map(|request| (request, Status::Success)));
        b.assert_works();
    });
}

#[test]
fn two_endpoints_of_a_card_talk_to_each_other() {
    both("tiny", 1, 53, |host| {
        let host = RawHost::new(&host);
        let mut a = LoopbackEndpoint::open(&host);
        let mut b = LoopbackEndpoint::open(&host);
        let slots = [
            Mapped::new(host.transport(), 8 << 10),
            Mapped::new(host.transport(), 8 << 10),
        ];
        let there = host.open_pair(a.endpoint.id, 8, &slots[0]);
        let back = host.open_pair(b.endpoint.id, 8, &slots[1]);
        host.connect(&there, &back);
        host.connect(&back, &there);
        (a.pair, b.pair) = (there.pair as u16, back.pair as u16);
        a.fill(b'x', 200);
        let receive = b.receive(1, 10, 300);
        b.endpoint.post_list(receive.to_words());
        let send = a.send(1, 11, 200);
        a.endpoint.post_send(send.to_words());
        assert_eq!(a.status(), (11, Status::Success));
        let received = b.endpoint.completion();
        assert_eq!((received.request, received.length), (10, 200));
        assert_eq!(received.pair, b.pair);
        assert_eq!(b.received(200), vec![b'x'; 200]);
    });
}

#[test]
fn a_region_is_read_or_written_only_as_it_was_registered() {
    both("tiny", 1, 54, |host| {
        let host = RawHost::new(&host);
        let mut loopback = LoopbackEndpoint::open(&host);
        let memory = Mapped::new(host.transport(), 4096);
        let read = host.region(loopback.domain, RIGHT_LOCAL_READ, memory.address(), 4096);
        let write = host.region(loopback.domain, RIGHT_LOCAL_WRITE, memory.address(), 4096);
        let mut send = loopback.send(7, 1, 16);
        (send.key, send.address) = (write, memory.address());
        loopback.endpoint.post_send(send.to_words());
        assert_eq!(loopback.status(), (1, Status::LocalProtection));
        let mut receive = loopback.receive(7, 2, 16);
        (receive.key, receive.address) = (read, memory.address());
        loopback.endpoint.post_list(receive.to_words());
        assert_eq!(loopback.status(), (2, Status::LocalProtection));
        (send.key, receive.key) = (read, write);
        (send.request, receive.request) = (3, 4);
        receive.address += 1000;
        loopback.endpoint.post_list(receive.to_words());
        loopback.endpoint.post_send(send.to_words());
        let mut both = [loopback.status(), loopback.status()];
        both.sort_unstable();
        assert_eq!(both, [(3, Status::Success), (4, Status::Success)]);
    });
}

#[test]
fn accesses_that_a_region_refuses_are_counted_for_the_peer_whose_they_were() {
    both("tiny", 1, 55, |host| {
        let host = RawHost::new(&host);
        let mut loopback = LoopbackEndpoint::open(&host);
        let mut peer = LoopbackEndpoint::open(&host);
        let slots = [0, 1].map(|_| Mapped::new(host.transport(), 4 << 10));
        let there = host.open_pair(loopback.endpoint.id, 4, &slots[0]);
        let back = host.open_pair(peer.endpoint.id, 4, &slots[1]);
        host.connect(&there, &back);
        host.connect(&back, &there);
        let (own, of_peer) = (loopback.pair, there.pair as u16);
        peer.pair = back.pair as u16;
        let memory = Mapped::new(host.transport(), 4096);
        for round in 1..4 {
            // The region goes after the check of the post, and before the message.
            let key = host.region(loopback.domain, RIGHT_LOCAL_WRITE, memory.address(), 4096);
            let mut receive = loopback.receive(u64::from(round), 2 * round, 64);
            (receive.key, receive.address, receive.pair) = (key, memory.address(), of_peer);
            loopback.endpoint.post_list(receive.to_words());
            loopback.assert_works();
            host.forget_region(key);
            let send = peer.send(u64::from(round), 2 * round + 1, 64);
            peer.endpoint.post_send(send.to_words());
            assert_eq!(peer.status(), (2 * round + 1, Status::Success));
            let entry = loopback.endpoint.completion();
            assert_eq!(
                (entry.request, entry.status, entry.pair),
                (2 * round, Status::AccessDenied.code(), of_peer)
            );
            assert_eq!(host.pair_status(of_peer).refused, round);
        }
        assert_eq!(memory.bytes(), vec![0; 4096]);
        assert_eq!(host.pair_status(own).refused, 0, "another peer");
        assert_eq!(
            host.pair_status(peer.pair).refused,
            0,
            "the other direction"
        );
        loopback.assert_works();
    });
}

/// All that is in the firmware's audit ring.
fn audit(host: &RawHost) -> Vec<AuditEntry> {
    let mut entries = Vec::new();
    let mut entry = 0;
    loop {
        let found: AuditEntry = host
            .command(Command::ReadAudit, &AuditIndex { entry })
            .expect("an entry");
        if found.entry == found.next {
            return entries;
        }
        entry = found.entry + 1;
        entries.push(found);
    }
}

/// As it broke: refusals weren't told to the firmware at all, and every wrong doorbell was, as fast as a process rings.
#[test]
fn the_firmware_hears_of_every_refusal_in_few_events_and_of_no_wrong_doorbell() {
    both("tiny", 1, 56, |simulated| {
        let host = RawHost::new(&simulated);
        let mut loopback = LoopbackEndpoint::open(&host);
        const REFUSED: u32 = 60;
        for request in 0..REFUSED {
            let mut send = loopback.send(7, request, 16);
            send.key ^= 1 << 31;
            loopback.endpoint.post_send(send.to_words());
            assert_eq!(loopback.status(), (request, Status::LocalProtection));
            loopback.endpoint.doorbell(EVENT_HEAD, 0x7777);
        }
        assert_eq!(host.count(Counter::DoorbellErrors), u64::from(REFUSED));
        let transport = simulated.transport();
        let until = transport.now() + 2 * u64::from(REFUSAL_INTERVAL);
        while transport.now() < until {
            let _ = transport.pause(&[], until);
        }
        let entries = audit(&host);
        let of = |kind: AuditKind| {
            entries
                .iter()
                .filter(move |one| one.kind == u32::from(kind.code()))
        };
        let [refusals] = of(AuditKind::AccessRefused).collect::<Vec<_>>()[..] else {
            panic!("one entry: {entries:?}");
        };
        assert_eq!(refusals.object, loopback.key ^ 1 << 31);
        assert_eq!(refusals.count, REFUSED);
        // The domain's place, and the right to read.
        let domain = id_index(loopback.domain) as u8;
        assert_eq!(refusals.info, refused_info(domain, RIGHT_LOCAL_READ));
        assert_eq!(of(AuditKind::GateEvent).count(), 0, "{entries:?}");
        assert_eq!(of(AuditKind::EventsLost).count(), 0, "{entries:?}");
        loopback.assert_works();
    });
}
