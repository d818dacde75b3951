//! Claims: a message taken out for one, to be received or discarded later.

use crate::common::{PATIENCE, Side, connected, cramped, fabric, options, sized};
use host_driver::{
    Access, Causes, Claimed, PostError, TaggedReceive, WaitError, WcKind, WcStatus, WorkCompletion,
};
use soft_card::{SoftFabric, SoftOptions};

/// Sends a message and lets it arrive.
fn send(from: &Side, match_bits: u64, bytes: &[u8]) {
    from.endpoint
        .post_tagged_inject(0, &from.send(match_bits), bytes)
        .unwrap();
    assert_eq!(from.cq.wait(20_000).unwrap_err(), WaitError::Timeout);
}

/// Claims a message and returns it with its completion.
fn claim(side: &Side, receive: &TaggedReceive) -> (Claimed, WorkCompletion) {
    side.endpoint.claim(5, receive).unwrap();
    let mut found = side.next();
    assert_eq!((found.wr_id, found.kind), (5, WcKind::Claim));
    assert_eq!(
        (found.status, found.pair),
        (WcStatus::Success, Some(side.pair))
    );
    (found.claimed.take().expect("a message"), found)
}

/// What a probe and a claim of the endpoint find.
fn looks(side: &Side, receive: &TaggedReceive) -> [WcStatus; 2] {
    side.endpoint.probe(90, receive).unwrap();
    let probe = side.next().status;
    side.endpoint.claim(91, receive).unwrap();
    let claim = side.next();
    assert_eq!(claim.claimed.is_some(), claim.status == WcStatus::Success);
    [probe, claim.status]
}

#[test]
fn a_claimed_message_is_found_by_nobody_else_and_received_whole() {
    let (a, mut b) = connected(&fabric(), 8);
    for text in [&b"first"[..], b"second", b""] {
        send(&a, 7, text);
    }
    let receive = b.receive(7);
    let (first, found) = claim(&b, &receive);
    assert_eq!((found.match_bits, found.immediate), (7, 7 ^ 0xabcd));
    assert_eq!((found.length, found.buffer.is_none()), (5, true));
    let (second, found) = claim(&b, &receive);
    assert_eq!(found.length, 6);

    // An ordinary receive gets what is behind them.
    let buffer = b.buffer(64);
    b.endpoint.post_tagged_recv(1, &receive, buffer).unwrap();
    assert_eq!((b.next().length, b.cq.outstanding()), (0, 0));
    assert_eq!(looks(&b, &receive), [WcStatus::NoMessage; 2]);
    // And so do later ones, while the first two rest.
    for k in 0..20u64 {
        let buffer = b.buffer(8);
        b.endpoint.post_tagged_recv(k, &receive, buffer).unwrap();
        send(&a, 7, &k.to_le_bytes());
        assert_eq!(b.next().received(), k.to_le_bytes());
    }

    // In whatever order.
    for (claimed, text) in [(second, &b"second"[..]), (first, b"first")] {
        let buffer = b.buffer(64);
        claimed.receive(2, buffer).unwrap();
        let received = b.next();
        assert_eq!(
            (received.wr_id, received.kind, received.status),
            (2, WcKind::Receive, WcStatus::Success)
        );
        assert_eq!((received.match_bits, received.immediate), (7, 7 ^ 0xabcd));
        assert_eq!((received.received(), received.pair), (text, Some(b.pair)));
    }
    assert_eq!((b.cq.outstanding(), b.cq.strays()), (0, 0));
}

#[test]
fn a_claim_of_nothing_finds_nothing() {
    let (_a, b) = connected(&fabric(), 8);
    assert_eq!(looks(&b, &b.receive(7)), [WcStatus::NoMessage; 2]);
}

#[test]
fn a_message_longer_than_the_buffer_is_truncated_and_its_place_is_free() {
    let (a, mut b) = connected(&fabric(), 1);
    send(&a, 7, b"more than fits");
    let (claimed, _) = claim(&b, &b.receive(7));
    let buffer = b.buffer(4);
    claimed.receive(1, buffer).unwrap();
    let received = b.next();
    assert_eq!(
        (received.status, received.length),
        (WcStatus::Truncated, 14)
    );
    assert_eq!(received.received(), b"more");
    assert_eq!(a.endpoint.query_pair(a.pair).unwrap().available, 1);
}

#[test]
pub fn a_claimed_message_keeps_its_credit_until_it_is_received_discarded_or_dropped() {
    let (a, mut b) = connected(&fabric(), 2);
    let credits = |side: &Side| side.endpoint.query_pair(side.pair).unwrap().available;
    let ends: [fn(&mut Side, Claimed); 3] = [
        |b, claimed| {
            let buffer = b.buffer(8);
            claimed.receive(1, buffer).unwrap();
            assert_eq!(b.next().kind, WcKind::Receive);
        },
        |b, claimed| {
            claimed.discard(2).unwrap();
            let discarded = b.next();
            assert_eq!(
                (discarded.wr_id, discarded.kind, discarded.status),
                (2, WcKind::Discard, WcStatus::Success)
            );
        },
        |b, claimed| {
            drop(claimed);
            assert_eq!(b.cq.wait(20_000).unwrap_err(), WaitError::Timeout);
        },
    ];
    for end in ends {
        send(&a, 7, b"kept");
        assert_eq!(credits(&a), 1);
        let (claimed, _) = claim(&b, &b.receive(7));
        let rest = |b: &Side| b.pause(100_000);
        rest(&b);
        assert_eq!(credits(&a), 1);
        end(&mut b, claimed);
        rest(&b);
        assert_eq!(credits(&a), 2);
    }
    assert_eq!((b.cq.outstanding(), b.cq.strays()), (0, 0));
}

#[test]
fn what_is_dropped_while_no_entry_is_free_is_discarded_later() {
    let (a, mut b) = sized(&fabric(), 8, 4);
    let credits = || a.endpoint.query_pair(a.pair).unwrap().available;
    let mut claimed = Vec::new();
    for k in 0..6 {
        send(&a, k, b"kept");
        claimed.push(claim(&b, &b.receive(k)).0);
    }
    // All entries are reserved.
    for k in 0..4 {
        let buffer = b.buffer(8);
        let receive = b.receive(100 + k);
        b.endpoint.post_tagged_recv(k, &receive, buffer).unwrap();
    }
    let refused = claimed.pop().unwrap().discard(1).unwrap_err();
    assert!(matches!(refused.error, PostError::CompletionQueueFull));
    drop(refused);
    let buffer = b.buffer(8);
    let refused = claimed.pop().unwrap().receive(1, buffer).unwrap_err();
    assert!(matches!(refused.error, PostError::CompletionQueueFull));
    assert_eq!(refused.buffer.len(), 8);
    drop(refused.claimed);
    claimed.clear();
    assert_eq!((credits(), b.cq.outstanding()), (2, 4));
    // One that matches makes room.
    send(&a, 102, b"matches");
    assert_eq!(b.next().wr_id, 2);
    assert_eq!(b.cq.wait(100_000).unwrap_err(), WaitError::Timeout);
    assert_eq!((credits(), b.cq.outstanding()), (8, 3));
    assert_eq!(b.cq.strays(), 0);
}

#[test]
fn a_claimed_message_outlives_the_failure_of_its_pair_but_not_its_closing() {
    let fabric = fabric();
    let (a, mut b) = connected(&fabric, 4);
    for k in 0..4 {
        send(&a, k, b"kept");
    }
    let mut claimed: Vec<Claimed> = (0..4).map(|k| claim(&b, &b.receive(k)).0).collect();
    b.endpoint.set_wait_interrupts(Causes::PEER_FAILED);
    a.endpoint.close().unwrap();
    // The failure interrupts a wait, once.
    let interrupted = b.cq.wait(PATIENCE).unwrap_err();
    assert_eq!(interrupted, WaitError::Interrupted);

    let buffer = b.buffer(8);
    claimed.pop().unwrap().receive(1, buffer).unwrap();
    let received = b.next();
    assert_eq!(received.status, WcStatus::Success);
    assert_eq!(received.received(), b"kept");
    claimed.pop().unwrap().discard(2).unwrap();
    assert_eq!(b.next().status, WcStatus::Success);

    b.endpoint.close_pair(b.pair).unwrap();
    let buffer = b.buffer(8);
    let refused = claimed.pop().unwrap().receive(3, buffer).unwrap_err();
    assert!(matches!(refused.error, PostError::InvalidPair), "{refused}");
    assert_eq!(refused.buffer.len(), 8);
    let refused = refused.claimed.discard(4).unwrap_err();
    assert!(matches!(refused.error, PostError::InvalidPair), "{refused}");
    drop(refused);
    claimed.clear();
    assert_eq!(b.cq.wait(20_000).unwrap_err(), WaitError::Timeout);
    assert_eq!((b.cq.outstanding(), b.cq.strays()), (0, 0));
}

#[test]
fn what_was_posted_when_the_pair_was_closed_is_flushed() {
    let fabric = SoftFabric::new(SoftOptions {
        fetch_cycles: 50_000,
        ..options()
    });
    let (a, mut b) = connected(&fabric, 4);
    let settle = || b.pause(1_000_000);
    for k in 0..3 {
        let send = a.send(k);
        a.endpoint.post_tagged_inject(0, &send, b"kept").unwrap();
        settle();
    }
    let mut claimed: Vec<Claimed> = (0..3).map(|k| claim(&b, &b.receive(k)).0).collect();
    let buffer = b.buffer(8);
    claimed.pop().unwrap().receive(1, buffer).unwrap();
    claimed.pop().unwrap().discard(2).unwrap();
    drop(claimed);
    b.endpoint.close_pair(b.pair).unwrap();
    let received = b.next();
    assert_eq!((received.wr_id, received.status), (1, WcStatus::Flushed));
    assert!(received.buffer.is_some());
    let discarded = b.next();
    assert_eq!((discarded.wr_id, discarded.status), (2, WcStatus::Flushed));
    assert_eq!(b.cq.wait(1_000_000).unwrap_err(), WaitError::Timeout);
    assert_eq!((b.cq.outstanding(), b.cq.strays()), (0, 0));
}

#[test]
fn closing_the_endpoint_ends_its_claims() {
    let (a, mut b) = connected(&fabric(), 4);
    send(&a, 7, b"kept");
    send(&a, 7, b"too");
    let (first, _) = claim(&b, &b.receive(7));
    // One whose completion is polled only afterwards.
    b.endpoint.claim(6, &b.receive(7)).unwrap();
    b.pause(20_000);
    b.endpoint.close().unwrap();
    let found = b.next();
    assert_eq!((found.wr_id, found.status), (6, WcStatus::Success));
    assert!(
        found.claimed.is_none(),
        "there is nothing to receive any more"
    );
    let buffer = b.buffer(8);
    let refused = first.receive(1, buffer).unwrap_err();
    assert!(matches!(refused.error, PostError::Closed), "{refused}");
    drop(refused);
    assert_eq!((b.cq.outstanding(), b.cq.strays()), (0, 0));
}

#[test]
fn a_buffer_of_another_domain_is_refused_and_the_message_kept() {
    let (a, mut b) = connected(&fabric(), 4);
    send(&a, 7, b"kept");
    let (claimed, _) = claim(&b, &b.receive(7));
    let other = b.device.alloc_pd().unwrap();
    let (_region, foreign) = other.reg_mr(64, Access::ReadWrite).unwrap();
    let refused = claimed.receive(1, foreign).unwrap_err();
    assert!(matches!(refused.error, PostError::WrongDomain), "{refused}");
    let buffer = b.buffer(8);
    refused.claimed.receive(1, buffer).unwrap();
    assert_eq!(b.next().received(), b"kept");
}

#[test]
fn a_claim_behind_receives_without_room_takes_nothing_of_theirs() {
    let (a, mut b) = cramped(1, 8);
    for k in 0..4 {
        let (receive, buffer) = (b.receive(k), b.buffer(8));
        b.endpoint.post_tagged_recv(k, &receive, buffer).unwrap();
    }
    // Tag 3 is the last receive's, tag 4 nobody's.
    b.endpoint.claim(13, &b.receive(3)).unwrap();
    b.endpoint.claim(14, &b.receive(4)).unwrap();
    let mut seen = Vec::new();
    while let Ok(found) = b.cq.wait(20_000) {
        assert_eq!(
            (found.kind, found.status),
            (WcKind::Claim, WcStatus::NoMessage)
        );
        seen.push(found.wr_id);
    }
    assert_eq!(seen, [13, 14]);
    // They are posted while the message is on its way: whichever comes first, the receive gets it.
    let text = b"for the receive";
    let (send_3, send_4) = (a.send(3), a.send(4));
    a.endpoint
        .post_tagged_inject(0, &send_3, &text[..3])
        .unwrap();
    a.endpoint
        .post_tagged_inject(0, &send_4, &text[..4])
        .unwrap();
    let (mut received, mut claimed) = (None, None);
    for _ in 0..200 {
        b.endpoint.claim(13, &b.receive(3)).unwrap();
        b.endpoint.claim(14, &b.receive(4)).unwrap();
        for _ in 0..3 {
            let Ok(next) = b.cq.wait(1_000) else { break };
            match (next.kind, next.status) {
                (WcKind::Receive, WcStatus::Success) => received = Some(next),
                (WcKind::Claim, WcStatus::Success) => {
                    assert_eq!(next.wr_id, 14, "what the receive has a right to is claimed");
                    claimed = next.claimed;
                }
                (WcKind::Claim, WcStatus::NoMessage) => {}
                _ => panic!("{next:?}"),
            }
        }
        if received.is_some() && claimed.is_some() {
            break;
        }
    }
    assert_eq!(received.expect("a message").wr_id, 3);
    let buffer = b.buffer(8);
    // A use of a claim isn't kept behind the receives.
    claimed.expect("a message").receive(20, buffer).unwrap();
    loop {
        let next = b.next();
        if next.wr_id == 20 {
            assert_eq!(next.received(), &text[..4]);
            break;
        }
    }
}

#[test]
fn an_endpoint_claims_only_what_came_to_it() {
    let (a, b) = connected(&fabric(), 4);
    send(&a, 7, b"kept");
    let other = b.pd.endpoint().open().unwrap();
    let any = TaggedReceive {
        source: host_driver::Source::Any,
        ..b.receive(7)
    };
    other.claim(1, &any).unwrap();
    let found = other.completion_queue().wait(PATIENCE).unwrap();
    assert_eq!(found.status, WcStatus::NoMessage);
    let (claimed, _) = claim(&b, &b.receive(7));
    claimed.discard(2).unwrap();
    assert_eq!(b.next().status, WcStatus::Success);
}
