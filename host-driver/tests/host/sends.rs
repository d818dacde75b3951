//! More sends of a pair than the card holds: the program sees nothing of it.

use crate::common::{PATIENCE, Side, able, connected, fabric, opened, options, sized};
use host_driver::{
    Buffer, CommandError, PostError, Request, RequestState, SendLimits, TaggedSend, WaitError,
    WcKind, WcStatus,
};
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use soft_card::{SoftFabric, SoftOptions};

/// Posts sends of their numbers, all of the match bits 7.
fn post(side: &mut Side, numbers: std::ops::Range<u64>) -> Vec<Request> {
    let send = side.send(7);
    numbers
        .map(|number| {
            let buffer = side.filled(&number.to_le_bytes());
            let posted = side.endpoint.post_tagged_send(number, &send, buffer);
            posted.expect("the ninth is kept")
        })
        .collect()
}

/// Numbers and statuses of the next sends that complete.
fn ended(side: &Side, count: u64) -> Vec<(u64, WcStatus)> {
    let ended = (0..count).map(|_| side.next_past_events());
    ended.map(|wc| (wc.wr_id, wc.status)).collect()
}

fn all(numbers: std::ops::Range<u64>, status: WcStatus) -> Vec<(u64, WcStatus)> {
    numbers.map(|number| (number, status)).collect()
}

/// Receives messages of the match bits 7 at `b`, one after the other, while the other program does something now and then.
fn take_during(a: impl Fn(), b: &mut Side, count: u64) -> Vec<Vec<u8>> {
    let mut taken = Vec::new();
    for wr_id in 0..count {
        let receive = b.receive(7);
        let buffer = b.buffer(64);
        let posted = b.endpoint.post_tagged_recv(wr_id, &receive, buffer);
        posted.expect("room");
        let deadline = b.device.now() + PATIENCE;
        let received = loop {
            a();
            match b.cq.wait(1_000) {
                Ok(completion) => break completion,
                Err(WaitError::Timeout | WaitError::Interrupted) => {}
                Err(error) => panic!("{error}"),
            }
            assert!(b.device.now() < deadline, "message {wr_id} doesn't come");
        };
        assert_eq!(
            (received.wr_id, received.status),
            (wr_id, WcStatus::Success)
        );
        taken.push(received.received().to_vec());
    }
    taken
}

/// The same while `a` looks whether it has a completion.
fn take(a: &Side, b: &mut Side, count: u64) -> Vec<Vec<u8>> {
    let look = || {
        a.cq.is_ready();
    };
    take_during(look, b, count)
}

fn bytes(numbers: impl IntoIterator<Item = u64>) -> Vec<Vec<u8>> {
    let bytes = |number: u64| number.to_le_bytes().to_vec();
    numbers.into_iter().map(bytes).collect()
}

/// Sends of the pair that its card has: those that wait there, and those that are on their way.
fn on_card(side: &Side) -> u32 {
    let status = side.endpoint.query_pair(side.pair).expect("it is open");
    status.waiting + status.unacknowledged
}

#[test]
pub fn a_ninth_send_of_a_pair_is_kept_where_it_once_was_refused() {
    let (mut a, mut b) = connected(&fabric(), 1);
    let posted = post(&mut a, 0..40);
    assert_eq!(a.endpoint.query_request(posted[7]), RequestState::Posted);
    assert_eq!(a.endpoint.query_request(posted[8]), RequestState::Kept);
    assert_eq!(a.endpoint.query().kept, 32);
    assert_eq!(take(&a, &mut b, 40), bytes(0..40));
    assert_eq!(ended(&a, 40), all(0..40, WcStatus::Success));
    assert_eq!((a.endpoint.query().kept, a.cq.outstanding()), (0, 0));
    assert_eq!((a.cq.strays(), on_card(&a)), (0, 0));
}

#[test]
pub fn a_card_gets_as_many_sends_of_a_pair_as_it_has_descriptors_for() {
    for (descriptors, holds) in [(16, 2), (47, 4), (128, 16), (4096, 64)] {
        let mut options = options();
        options.sizes.descriptors = descriptors;
        let (mut a, mut b) = sized(&SoftFabric::new(options), 1, 128);
        assert_eq!(a.device.limits().pair_sends, holds);
        post(&mut a, 0..100);
        assert_eq!(a.endpoint.query().kept, 100 - holds);
        assert_eq!(take(&a, &mut b, 100), bytes(0..100));
        assert_eq!(ended(&a, 100), all(0..100, WcStatus::Success));
    }
}

#[test]
fn a_card_holds_as_many_sends_of_a_pair_as_its_endpoint_was_opened_for() {
    let mut options = options();
    options.sizes.descriptors = 64;
    let fabric = SoftFabric::new(options);
    let (mut a, mut b) = opened(&fabric, 1, |pd| {
        pd.endpoint().completion_queue(128).pair_sends(32)
    });
    assert_eq!(a.device.limits().pair_sends, 8);
    // There are descriptors for a second pair like it, and for none beside these.
    let second = a.endpoint.open_pair(1);
    assert!(second.is_ok() && a.endpoint.open_pair(1).is_err());
    post(&mut a, 0..100);
    assert_eq!(a.endpoint.query().kept, 100 - 32);
    assert_eq!(take(&a, &mut b, 100), bytes(0..100));
    assert_eq!(ended(&a, 100), all(0..100, WcStatus::Success));
}

#[test]
pub fn a_send_never_overtakes_one_that_is_kept() {
    let (mut a, mut b) = connected(&fabric(), 1);
    post(&mut a, 0..9);
    // There is room at the card now, and the library hasn't looked.
    a.pause(20_000);
    post(&mut a, 9..12);
    assert_eq!(take(&a, &mut b, 12), bytes(0..12));
    assert_eq!(ended(&a, 12), all(0..12, WcStatus::Success));
}

#[test]
fn no_more_is_kept_than_the_completion_queue_has_entries_for() {
    let (mut a, mut b) = sized(&fabric(), 1, 16);
    post(&mut a, 0..16);
    let buffer = a.filled(b"mine");
    let refused = a.endpoint.post_tagged_send(16, &a.send(7), buffer);
    let refused = refused.expect_err("every entry is reserved");
    assert_eq!(refused.error, PostError::CompletionQueueFull);
    assert_eq!(&refused.buffer[..], b"mine");
    // Polled from one end, posted at the other: the card never gets too many, and always one more.
    for number in 16..200 {
        assert_eq!(take(&a, &mut b, 1), bytes([number - 16]));
        assert_eq!(ended(&a, 1), [(number - 16, WcStatus::Success)]);
        post(&mut a, number..number + 1);
    }
}

#[test]
pub fn kept_sends_go_when_earlier_ones_complete_though_nobody_polls() {
    let (mut a, mut b) = connected(&fabric(), 16);
    post(&mut a, 0..30);
    // Whoever waits for an event alone takes no completions.
    let wait = || assert!(a.endpoint.poll_event().expect("a card").is_none());
    let received = take_during(wait, &mut b, 30);
    assert_eq!(received, bytes(0..30));
    assert_eq!(ended(&a, 30), all(0..30, WcStatus::Success));
}

#[test]
fn a_card_holds_no_more_sends_of_a_pair_than_its_window() {
    for window in [1, 2, 5, 8] {
        let (mut a, mut b) = connected(&fabric(), 16);
        let limits = SendLimits {
            window,
            ..SendLimits::default()
        };
        a.endpoint.set_send_limits(a.pair, limits).expect("open");
        post(&mut a, 0..20);
        assert_eq!(a.endpoint.query().kept, 20 - usize::from(window));
        for number in 0..20 {
            assert!(on_card(&a) <= window.into());
            assert_eq!(take(&a, &mut b, 1), bytes([number]));
        }
        assert_eq!(ended(&a, 20), all(0..20, WcStatus::Success));
    }
}

#[test]
fn a_wider_window_lets_kept_sends_go_at_once_and_a_narrower_one_calls_nothing_back() {
    let (mut a, mut b) = connected(&fabric(), 1);
    let set = |a: &Side, window| {
        let limits = SendLimits {
            window,
            ..SendLimits::default()
        };
        a.endpoint.set_send_limits(a.pair, limits).expect("open");
    };
    set(&a, 2);
    post(&mut a, 0..12);
    assert_eq!(a.endpoint.query().kept, 10);
    set(&a, 6);
    assert_eq!(a.endpoint.query().kept, 6);
    set(&a, 1);
    assert_eq!(a.endpoint.query().kept, 6);
    assert_eq!(take(&a, &mut b, 12), bytes(0..12));
    assert_eq!(ended(&a, 12), all(0..12, WcStatus::Success));
}

/// The card doesn't tell of their success: the window must not fill with them, or nothing would make room any more.
#[test]
pub fn a_window_holds_for_unsignaled_sends_too() {
    for window in [1, 2, 3, 4, 8] {
        let (mut a, mut b) = able(1);
        let limits = SendLimits {
            window,
            ..SendLimits::default()
        };
        a.endpoint.set_send_limits(a.pair, limits).expect("open");
        let mut shared = Vec::new();
        for number in 0_u64..20 {
            let buffer = a.filled(&number.to_le_bytes()).share();
            let posted = a
                .endpoint
                .post_unsignaled_send(number, &a.send(7), buffer.clone());
            posted.expect("it is kept");
            shared.push(buffer);
        }
        for number in 0..20 {
            a.pause(10_000);
            assert!(a.cq.poll().is_none());
            assert!(on_card(&a) <= window.into(), "window {window}");
            assert_eq!(take(&a, &mut b, 1), bytes([number]));
        }
        // One that tells, for the last three.
        post(&mut a, 20..21);
        take(&a, &mut b, 1);
        assert_eq!(ended(&a, 1), [(20, WcStatus::Success)]);
        assert!(shared.into_iter().all(|s| s.try_into_buffer().is_ok()));
    }
}

/// A window that is set below the quiet sends that the card has already: none of these will tell that there is room.
#[test]
fn a_window_that_is_full_of_quiet_sends_lets_one_go_that_tells() {
    let (mut a, mut b) = able(8);
    for number in 0_u64..3 {
        let buffer = a.filled(&number.to_le_bytes()).share();
        let posted = a.endpoint.post_unsignaled_send(number, &a.send(7), buffer);
        posted.expect("room");
    }
    let limits = SendLimits {
        window: 1,
        ..SendLimits::default()
    };
    a.endpoint.set_send_limits(a.pair, limits).expect("open");
    post(&mut a, 3..6);
    assert_eq!(take(&a, &mut b, 4), bytes(0..4));
    assert_eq!(ended(&a, 1), [(3, WcStatus::Success)]);
    assert_eq!(take(&a, &mut b, 2), bytes(4..6));
    assert_eq!(ended(&a, 2), all(4..6, WcStatus::Success));
}

#[test]
pub fn a_limit_on_the_sends_of_a_pair_refuses_what_is_beyond_and_gives_it_back() {
    for outstanding in [1, 3, 8, 12] {
        let (mut a, _b) = connected(&fabric(), 1);
        let limits = SendLimits {
            outstanding,
            ..SendLimits::default()
        };
        a.endpoint.set_send_limits(a.pair, limits).expect("open");
        let limit = outstanding as u64;
        post(&mut a, 0..limit);
        let buffer = a.filled(b"mine");
        let refused = a.endpoint.post_tagged_send(limit, &a.send(7), buffer);
        let refused = refused.expect_err("the limit is reached");
        assert_eq!(refused.error, PostError::PairBusy);
        assert_eq!(&refused.buffer[..], b"mine");
        let injected = a.endpoint.post_tagged_inject(limit, &a.send(7), b"");
        assert_eq!(injected, Err(PostError::PairBusy));
        // Completed and not polled for still counts.
        a.pause(20_000);
        let injected = a.endpoint.post_tagged_inject(limit, &a.send(7), b"");
        assert_eq!(injected, Err(PostError::PairBusy));
        assert_eq!(ended(&a, 1), [(0, WcStatus::Success)]);
        post(&mut a, limit..limit + 1);
    }
}

#[test]
pub fn kept_sends_of_every_kind_arrive_whole_and_in_order() {
    for seed in 0..12 {
        println!("seed {seed}");
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (mut a, mut b) = able(rng.random_range(1..=16));
        let (mut expected, mut told) = (Vec::new(), Vec::new());
        let mut injects = 0;
        for number in 0..60 {
            let length = *[0, 5, 16, 17, 60].choose(&mut rng).expect("one");
            let text: Vec<u8> = (0..length).map(|k| number as u8 ^ k).collect();
            let send = a.send(7);
            let kind = rng.random_range(0..4);
            match kind {
                0 if injects < 4 => {
                    injects += 1;
                    a.endpoint
                        .post_tagged_inject(number, &send, &text)
                        .expect("room");
                }
                1 => {
                    let buffer = a.filled(&text).share();
                    let posted = a.endpoint.post_unsignaled_send(number, &send, buffer);
                    posted.expect("room");
                }
                2 => {
                    let whole = a.filled(&text).share();
                    let at = rng.random_range(0..=usize::from(length));
                    let parts = [whole.slice(..at), whole.slice(at..at), whole.slice(at..)];
                    let posted = a.endpoint.post_gather_send(number, &send, &parts);
                    posted.expect("room");
                    told.push(number);
                }
                _ => {
                    let buffer = a.filled(&text);
                    let posted = a.endpoint.post_tagged_send(number, &send, buffer);
                    posted.expect("room");
                    told.push(number);
                }
            }
            expected.push(text);
        }
        assert!(a.endpoint.query().kept > 40);
        assert_eq!(take(&a, &mut b, 60), expected);
        for number in told {
            let ended = a.next_past_events();
            assert_eq!((ended.wr_id, ended.status), (number, WcStatus::Success));
            assert_eq!(ended.length, expected[number as usize].len() as u64);
        }
    }
}

#[test]
fn ready_sends_that_are_kept_are_refused_or_received_as_others() {
    let (mut a, mut b) = connected(&fabric(), 4);
    // Only the even ones have a receive.
    let receive = b.receive(0);
    for number in 0..10 {
        b.post(number, &receive);
    }
    b.pause(20_000);
    for number in 0..20 {
        let buffer = a.filled(&[number as u8]);
        let send = a.send(number % 2);
        let posted = a.endpoint.post_ready_send(number, &send, buffer);
        posted.expect("room");
    }
    let expected: Vec<_> = (0..20)
        .map(|number| match number % 2 {
            0 => (number, WcStatus::Success),
            _ => (number, WcStatus::NotReady),
        })
        .collect();
    assert_eq!(ended(&a, 20), expected);
}

#[test]
pub fn a_kept_send_that_is_cancelled_is_never_sent() {
    let (mut a, mut b) = connected(&fabric(), 1);
    let posted = post(&mut a, 0..30);
    let withdrawn = [29, 8, 9, 15, 20, 28];
    for number in withdrawn {
        let request = posted[number as usize];
        a.endpoint.cancel(99, request).expect("it is outstanding");
        let state = a.endpoint.query_request(request);
        assert_eq!(state, RequestState::Cancelling);
        let again = a.endpoint.cancel(99, request);
        assert_eq!(again, Err(PostError::NothingToCancel));
    }
    let rest: Vec<_> = (0..30).filter(|n| !withdrawn.contains(n)).collect();
    assert_eq!(
        take(&a, &mut b, rest.len() as u64),
        bytes(rest.iter().copied())
    );
    let (cancelled, sent): (Vec<_>, Vec<_>) = ended(&a, 30)
        .into_iter()
        .partition(|(_, status)| *status == WcStatus::Cancelled);
    assert_eq!(cancelled, withdrawn.map(|n| (n, WcStatus::Cancelled)));
    let successes = rest.iter().map(|&n| (n, WcStatus::Success));
    assert_eq!(sent, successes.collect::<Vec<_>>());
    assert_eq!((a.cq.outstanding(), a.endpoint.query().kept), (0, 0));
}

#[test]
fn all_kept_sends_of_a_pair_may_be_cancelled_and_others_be_posted() {
    let (mut a, mut b) = connected(&fabric(), 1);
    let posted = post(&mut a, 0..12);
    for &request in &posted[8..] {
        a.endpoint.cancel(99, request).expect("it is outstanding");
    }
    post(&mut a, 12..14);
    assert_eq!(take(&a, &mut b, 10), bytes((0..8).chain(12..14)));
    let ended = ended(&a, 14);
    let cancelled = ended.iter().filter(|(_, s)| *s == WcStatus::Cancelled);
    assert_eq!(cancelled.count(), 4);
}

#[test]
pub fn what_is_kept_of_a_pair_that_is_closed_is_flushed_in_order() {
    let (mut a, _b) = connected(&fabric(), 2);
    post(&mut a, 0..20);
    a.endpoint
        .post_tagged_inject(20, &a.send(7), b"")
        .expect("room");
    a.pause(20_000);
    a.endpoint.close_pair(a.pair).expect("closed");
    let mut expected = all(0..2, WcStatus::Success);
    expected.extend(all(2..21, WcStatus::Flushed));
    assert_eq!(ended(&a, 21), expected);
    assert_eq!((a.cq.outstanding(), a.endpoint.query().kept), (0, 0));
    let refused = a.endpoint.post_tagged_send(21, &a.send(7), Buffer::empty());
    assert_eq!(refused.expect_err("closed").error, PostError::InvalidPair);
}

#[test]
pub fn what_is_kept_of_a_closed_pair_is_not_sent_on_the_next_in_its_place() {
    let (mut a, mut b) = connected(&fabric(), 2);
    post(&mut a, 0..12);
    a.pause(20_000);
    let old = a.pair;
    a.endpoint.close_pair(old).expect("closed");
    let (there, b_address) = b.endpoint.open_pair(16).expect("a pair");
    let (here, a_address) = a.endpoint.open_pair(16).expect("a pair");
    assert_eq!(here.index(), old.index(), "or it proves nothing");
    a.endpoint
        .connect_pair(here, &b_address)
        .expect("connected");
    b.endpoint
        .connect_pair(there, &a_address)
        .expect("connected");
    (a.pair, b.pair) = (here, there);
    post(&mut a, 12..32);
    assert_eq!(take(&a, &mut b, 20), bytes(12..32));
    let mut expected = all(0..2, WcStatus::Success);
    expected.extend(all(2..12, WcStatus::Flushed));
    expected.extend(all(12..32, WcStatus::Success));
    let mut found = ended(&a, 32);
    found.sort_unstable_by_key(|&(number, _)| number);
    assert_eq!(found, expected);
}

#[test]
pub fn what_is_kept_of_an_endpoint_that_is_closed_is_flushed_in_order() {
    let (mut a, _b) = connected(&fabric(), 2);
    // The slots of the first are used again, out of their order.
    let posted = post(&mut a, 0..5);
    a.pause(20_000);
    assert_eq!(ended(&a, 2), all(0..2, WcStatus::Success));
    a.endpoint.cancel(99, posted[3]).expect("it waits");
    assert_eq!(ended(&a, 1), [(3, WcStatus::Cancelled)]);
    post(&mut a, 5..30);
    a.endpoint.close().expect("closed");
    let expected: Vec<_> = [2, 4].into_iter().chain(5..30).collect();
    let found: Vec<_> = std::iter::from_fn(|| a.cq.poll()).collect();
    assert!(found.iter().all(|wc| wc.status == WcStatus::Flushed));
    let found: Vec<_> = found.iter().map(|wc| wc.wr_id).collect();
    assert_eq!(found, expected);
    assert_eq!(a.cq.outstanding(), 0);
}

#[test]
fn what_is_kept_of_a_pair_that_fails_ends_as_what_the_card_has() {
    let (mut a, b) = connected(&fabric(), 2);
    post(&mut a, 0..20);
    a.pause(20_000);
    b.endpoint.close_pair(b.pair).expect("closed");
    let mut expected = all(0..2, WcStatus::Success);
    expected.extend(all(2..20, WcStatus::PeerFailed));
    assert_eq!(ended(&a, 20), expected);
}

#[test]
fn what_is_kept_when_the_peer_disconnects_ends_as_what_the_card_has() {
    let (mut a, b) = connected(&fabric(), 2);
    post(&mut a, 0..20);
    a.pause(20_000);
    b.endpoint.disconnect(b.pair, 100_000).expect("ended");
    let mut expected = all(0..2, WcStatus::Success);
    expected.extend(all(2..20, WcStatus::PeerClosed));
    assert_eq!(ended(&a, 20), expected);
}

#[test]
fn a_card_that_is_gone_flushes_what_is_kept_in_order() {
    let fabric = fabric();
    let (mut a, _b) = connected(&fabric, 2);
    post(&mut a, 0..20);
    a.pause(20_000);
    fabric.close();
    let found: Vec<_> = std::iter::from_fn(|| a.cq.poll())
        .map(|wc| (wc.wr_id, wc.status))
        .collect();
    let mut expected = all(0..2, WcStatus::Success);
    expected.extend(all(2..20, WcStatus::Flushed));
    assert_eq!(found, expected);
}

#[test]
fn a_disconnect_sends_what_is_kept_first() {
    let (mut a, mut b) = connected(&fabric(), 16);
    let receive = b.receive(7);
    for number in 0..30 {
        b.post(number, &receive);
    }
    post(&mut a, 0..30);
    a.endpoint.disconnect(a.pair, 0).expect("ended");
    let received = (0..30).map(|_| b.next_past_events().received().to_vec());
    assert_eq!(received.collect::<Vec<_>>(), bytes(0..30));
    assert_eq!(ended(&a, 30), all(0..30, WcStatus::Success));
}

#[test]
fn a_disconnect_whose_time_is_over_ends_what_is_kept_with_the_pair() {
    let (mut a, _b) = connected(&fabric(), 2);
    post(&mut a, 0..20);
    let began = a.device.now();
    a.endpoint.disconnect(a.pair, 50_000).expect("ended");
    assert!(a.device.now() - began < 1_000_000, "in bounded time");
    let mut expected = all(0..2, WcStatus::Success);
    expected.extend(all(2..10, WcStatus::PeerClosed));
    expected.extend(all(10..20, WcStatus::Flushed));
    assert_eq!(ended(&a, 20), expected);
}

#[test]
pub fn a_disconnect_that_does_not_wait_is_refused_while_sends_are_kept() {
    let (mut a, mut b) = connected(&fabric(), 1);
    post(&mut a, 0..10);
    let refused = a.endpoint.begin_disconnect(a.pair, 0);
    assert_eq!(refused, Err(CommandError::SendsKept));
    // The pair goes on.
    post(&mut a, 10..11);
    assert_eq!(take(&a, &mut b, 11), bytes(0..11));
    assert_eq!(ended(&a, 11), all(0..11, WcStatus::Success));
    a.endpoint
        .begin_disconnect(a.pair, 0)
        .expect("nothing is kept");
}

#[test]
fn pairs_that_keep_sends_take_turns_on_a_small_ring() {
    let fabric = SoftFabric::new(SoftOptions {
        fetch_cycles: 200,
        ..options()
    });
    let (mut a, mut b) = connected(&fabric, 16);
    let builder = a.pd.endpoint().send_ring(4).inject_buffers(0);
    let endpoint = builder.open().expect("an endpoint");
    let pairs: Vec<_> = (0..3)
        .map(|_| {
            let (here, a_address) = endpoint.open_pair(16).expect("a pair");
            let (there, b_address) = b.endpoint.open_pair(16).expect("a pair");
            endpoint.connect_pair(here, &b_address).expect("connected");
            b.endpoint
                .connect_pair(there, &a_address)
                .expect("connected");
            (here, there)
        })
        .collect();
    let mut posted = [0_u64; 3];
    // Whoever finds the ring full lets the card run: what is kept goes in between.
    while posted.iter().any(|&count| count < 20) {
        for (k, &(pair, _)) in pairs.iter().enumerate() {
            let send = TaggedSend {
                pair,
                ..a.send(posted[k])
            };
            let buffer = a.filled(&[k as u8]);
            match endpoint.post_tagged_send(1, &send, buffer) {
                Ok(_) => posted[k] += 1,
                Err(refused) => {
                    assert_eq!(refused.error, PostError::SendRingFull);
                    a.pause(300);
                }
            }
        }
    }
    for (k, &(_, there)) in pairs.iter().enumerate() {
        b.pair = there;
        for number in 0..posted[k] {
            let receive = b.receive(number);
            b.post(number, &receive);
        }
    }
    let total: u64 = posted.iter().sum();
    a.cq = endpoint.completion_queue();
    for _ in 0..total {
        assert_eq!(a.next_past_events().status, WcStatus::Success);
    }
    let mut seen = [0; 3];
    for _ in 0..total {
        let wc = b.next_past_events();
        assert_eq!(wc.kind, WcKind::Receive);
        let k = usize::from(wc.received()[0]);
        assert_eq!(wc.wr_id, seen[k]);
        seen[k] += 1;
    }
}
