//! What only some cards have: sends that complete only on error, and gathers.

use crate::common::{Side, able, able_options, connected, fabric};
use host_driver::{
    Access, Counter, Gather, PostError, SendFlags, SendWr, SharedBuffer, WcKind, WcStatus,
    WorkCompletion,
};
use soft_card::SoftFabric;

/// Posts an unsignaled send of these bytes, and keeps a clone of the buffer.
fn unsignaled(side: &mut Side, wr_id: u64, bytes: &[u8]) -> SharedBuffer {
    let shared = side.filled(bytes).share();
    let send = side.send(wr_id);
    let posted = side
        .endpoint
        .post_unsignaled_send(wr_id, &send, shared.clone());
    posted.expect("room");
    shared
}

fn is_free(shared: SharedBuffer) -> bool {
    shared.try_into_buffer().is_ok()
}

/// Receives a message of these match bits.
fn take(side: &mut Side, match_bits: u64) -> WorkCompletion {
    let receive = side.receive(match_bits);
    let buffer = side.buffer(64);
    side.endpoint
        .post_tagged_recv(match_bits, &receive, buffer)
        .expect("room");
    side.next_past_events()
}

#[test]
pub fn unsignaled_sends_tell_nothing_and_free_their_buffers() {
    let (mut a, mut b) = able(4);
    let completions = |side: &Side| side.device.read_counter(Counter::Completions).unwrap();
    let before = completions(&a);
    let mut kept = Vec::new();
    for wr_id in 0..40 {
        kept.push(unsignaled(&mut a, wr_id, &wr_id.to_le_bytes()));
        assert_eq!(take(&mut b, wr_id).received(), wr_id.to_le_bytes());
        a.pause(5_000);
        assert!(a.cq.poll().is_none(), "success of {wr_id} is told");
    }
    // Each fourth was written by the card.
    assert_eq!(completions(&a) - before, 10);
    // A send of any kind that completes says that those before it have.
    let signaled = a.filled(b"the last");
    a.endpoint
        .post_tagged_send(99, &a.send(99), signaled)
        .unwrap();
    take(&mut b, 99);
    let last = a.next();
    assert_eq!((last.wr_id, last.status), (99, WcStatus::Success));
    assert!(kept.into_iter().all(is_free));
    assert_eq!(a.cq.outstanding(), 0);
}

#[test]
fn the_errors_of_unsignaled_sends_are_told() {
    let (mut a, _b) = able(2);
    let longest = vec![0; 1025];
    let kept = unsignaled(&mut a, 7, &longest);
    let ended = a.next();
    assert_eq!((ended.wr_id, ended.kind), (7, WcKind::Send));
    assert_eq!(ended.status, WcStatus::TooLong);
    let shared = ended.shared.expect("it comes back");
    assert_eq!(shared.len(), kept.len());
}

#[test]
fn when_the_pair_is_closed_unsignaled_sends_were_delivered_or_are_flushed() {
    let (mut a, mut b) = able(2);
    // Two have credit and are acknowledged, quietly; the third and the fourth wait, and the fourth isn't quiet.
    let kept: Vec<_> = (0..4).map(|k| unsignaled(&mut a, k, b"unsaid")).collect();
    a.pause(20_000);
    a.endpoint.close_pair(a.pair).expect("closed");
    let flushed: Vec<_> = std::iter::from_fn(|| a.cq.poll()).collect();
    let ids: Vec<_> = flushed.iter().map(|wc| (wc.wr_id, wc.status)).collect();
    assert_eq!(ids, [(2, WcStatus::Flushed), (3, WcStatus::Flushed)]);
    drop(flushed);
    assert!(a.cq.poll().is_none());
    assert!(kept.into_iter().all(is_free));
    assert_eq!((a.cq.outstanding(), a.cq.strays()), (0, 0));
    assert_eq!(take(&mut b, 0).received(), b"unsaid");
    assert_eq!(take(&mut b, 1).received(), b"unsaid");
}

/// The end of a region is a command, which nobody can give who holds the lock of a queue.
#[test]
fn regions_end_with_the_unsignaled_sends_that_read_the_last_of_them() {
    let fabric = SoftFabric::new(able_options());
    let (mut a, mut b) = connected(&fabric, 8);
    let before = fabric.mappings(0);
    let region = |a: &Side| a.pd.reg_mr(8, Access::Read).expect("a region").1;
    let send = a.send(7);
    let list = |wr_id, buffer: Gather| SendWr {
        wr_id,
        send,
        flags: SendFlags::UNSIGNALED,
        buffer,
    };
    let gathers = [0, 1].map(|wr_id| {
        let both = [region(&a).share(), region(&a).share()];
        list(wr_id, Gather::new(&both).expect("two are few"))
    });
    let posted = a.endpoint.post_send_list(gathers, &mut Vec::new());
    posted.expect("room");
    let unique = [2, 3].map(|wr_id| SendWr {
        wr_id,
        send,
        flags: SendFlags::UNSIGNALED,
        buffer: region(&a),
    });
    let posted = a.endpoint.post_send_list(unique, &mut Vec::new());
    posted.expect("room");
    assert_eq!(fabric.mappings(0), before + 6);
    for length in [16, 16, 8, 8] {
        assert_eq!(take(&mut b, 7).length, length);
    }
    // One that tells, and the regions are given back by the next command.
    let last = a.filled(b"the last");
    a.endpoint.post_tagged_send(4, &send, last).expect("room");
    assert_eq!(a.next().wr_id, 4);
    assert!(a.cq.poll().is_none());
    drop(a.device.alloc_pd().expect("a command"));
    assert_eq!(fabric.mappings(0), before);
}

#[test]
pub fn an_unsignaled_send_has_not_ended_with_one_before_it() {
    let (mut a, _b) = able(1);
    let first = a.filled(b"first");
    a.endpoint.post_tagged_send(0, &a.send(0), first).unwrap();
    let waits = unsignaled(&mut a, 1, b"waits");
    assert_eq!(a.next().wr_id, 0);
    assert_eq!(a.cq.outstanding(), 1);
    assert!(!is_free(waits), "the card will read it");
}

#[test]
fn an_unsignaled_send_that_waits_can_be_cancelled() {
    let (mut a, _b) = able(1);
    unsignaled(&mut a, 0, b"goes");
    let shared = a.filled(b"waits").share();
    let request = a
        .endpoint
        .post_unsignaled_send(1, &a.send(1), shared.clone())
        .unwrap();
    a.pause(10_000);
    a.endpoint.cancel(2, request).unwrap();
    let ended = a.next();
    assert_eq!((ended.wr_id, ended.status), (1, WcStatus::Cancelled));
    drop(ended);
    assert!(is_free(shared));
}

#[test]
fn an_unsignaled_send_of_a_closed_endpoint_is_flushed() {
    let (mut a, _b) = able(1);
    for wr_id in 0..3 {
        unsignaled(&mut a, wr_id, b"unsaid");
    }
    a.pause(10_000);
    a.endpoint.close().expect("closed");
    let mut ids: Vec<_> = std::iter::from_fn(|| a.cq.poll())
        .map(|wc| (wc.wr_id, wc.status))
        .collect();
    ids.sort_unstable_by_key(|&(wr_id, _)| wr_id);
    assert_eq!(ids, [0, 1, 2].map(|wr_id| (wr_id, WcStatus::Flushed)));
}

#[test]
pub fn a_gather_is_one_message_of_its_segments() {
    let (mut a, mut b) = able(2);
    let text = a.filled(b"one two three four").share();
    let parts = [0..3, 4..7, 8..13, 14..18].map(|part| text.slice(part));
    for count in 0..=4 {
        let all = &parts[..count];
        a.endpoint.post_gather_send(5, &a.send(5), all).unwrap();
        let receive = b.receive(5);
        let buffer = b.buffer(64);
        b.endpoint.post_tagged_recv(6, &receive, buffer).unwrap();
        let got = b.next();
        let wanted: Vec<u8> = all.iter().flat_map(|part| part.iter().copied()).collect();
        assert_eq!(got.received(), wanted);
        let sent = a.next();
        assert_eq!((sent.wr_id, sent.status), (5, WcStatus::Success));
        assert_eq!(sent.length, wanted.len() as u64);
        let back = sent.shared.iter().chain(sent.segments.iter().flatten());
        assert_eq!(back.count(), count, "segments come back");
    }
    drop(parts);
    assert!(is_free(text));
}

#[test]
fn a_gather_that_cannot_be_posted_says_why() {
    let (mut a, _b) = able(2);
    let send = a.send(1);
    let part = a.filled(&[1; 300]).share();
    let post = |parts: &[SharedBuffer]| a.endpoint.post_gather_send(1, &send, parts);
    let many = vec![part.clone(); 5];
    assert_eq!(post(&many), Err(PostError::TooManySegments));
    assert_eq!(post(&many[..4]), Err(PostError::TooLong));
    let other = a.device.alloc_pd().unwrap();
    let (_, foreign) = other.reg_mr(64, Access::Read).unwrap();
    let mixed = [part.slice(..8), foreign.share()];
    assert_eq!(post(&mixed), Err(PostError::WrongDomain));
    let two = [part.slice(..8), part.slice(8..16)];
    a.endpoint.close_pair(a.pair).unwrap();
    assert_eq!(post(&two), Err(PostError::InvalidPair));
}

#[test]
pub fn a_short_send_is_carried_by_its_request() {
    let (mut a, mut b) = able(4);
    assert_eq!(a.device.limits().inline_bytes, 16);
    for length in [0, 1, 8, 15, 16, 17] {
        let bytes: Vec<u8> = (1..=length).collect();
        let buffer = a.filled(&bytes);
        a.endpoint.post_tagged_send(5, &a.send(5), buffer).unwrap();
        assert_eq!(take(&mut b, 5).received(), bytes);
        let sent = a.next();
        assert_eq!(
            (sent.status, sent.length),
            (WcStatus::Success, length.into())
        );
        assert_eq!(&sent.buffer.expect("it comes back")[..], bytes);
        a.endpoint
            .post_tagged_inject(6, &a.send(6), &bytes)
            .unwrap();
        assert_eq!(take(&mut b, 6).received(), bytes);
    }
}

#[test]
fn a_card_that_lacks_it_is_said_to() {
    let (mut a, _b) = connected(&fabric(), 2);
    let shared = a.filled(b"posthorn").share();
    let send = a.send(1);
    let refused = a.endpoint.post_unsignaled_send(1, &send, shared.clone());
    let refused = refused.expect_err("the card has no such sends");
    assert_eq!(refused.error, PostError::Unsupported);
    assert_eq!(&refused.buffer[..], b"posthorn");
    let two = [shared.slice(..4), shared.slice(4..)];
    let refused = a.endpoint.post_gather_send(1, &send, &two);
    assert_eq!(refused, Err(PostError::Unsupported));
    // One segment is a send like any other.
    a.endpoint.post_gather_send(1, &send, &two[..1]).unwrap();
}
