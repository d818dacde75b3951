//! Claims: a message taken out for one, whoever else looks for it, whatever happens meanwhile.

use abi::request::{ListRequest, Opcode};
use abi::status::Status;
use host_driver::{Claimed, Request, WaitError, WcKind, WcStatus};
use posthorn_tests::cards::{GatesOnly, both, cards};
use posthorn_tests::raw::{LoopbackEndpoint, RawHost};
use posthorn_tests::side::{PATIENCE, Setup, Side};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Sends these messages to rank 1, and waits until all have arrived.
fn send_all(me: &mut Side, tag: u64, numbers: Range<u64>, length: usize) {
    for number in numbers.clone() {
        me.send(1, tag, number, length);
    }
    for _ in numbers {
        assert_eq!(me.completion().status, WcStatus::Success);
    }
}

/// Claims message `number` of `from`, which has come or is about to.
fn claim(me: &mut Side, from: usize, tag: u64, number: u64) -> Claimed {
    let filter = me.filter(Some(from), tag, 0);
    for _ in 0..1000 {
        me.endpoint.claim(900, &filter).expect("posted");
        let mut found = me.completion();
        assert_eq!((found.wr_id, found.kind), (900, WcKind::Claim));
        if found.status != WcStatus::NoMessage {
            assert_eq!(found.status, WcStatus::Success);
            assert_eq!((found.immediate, found.match_bits), (number, tag));
            assert_eq!(me.peer(found.pair), Some(from));
            return found.claimed.take().expect("a message");
        }
    }
    panic!("message {number} doesn't come");
}

#[test]
fn a_claimed_message_rests_while_others_come_and_go() {
    both("tiny", 2, 131, |host| {
        let mut me = Side::with(&host, Setup::with_credits(3));
        let lengths = [1024, 13];
        if me.rank() == 0 {
            for (number, length) in lengths.into_iter().enumerate() {
                me.send(1, 7, number as u64, length);
            }
            assert_eq!(
                me.statuses(2),
                [(0, WcStatus::Success), (1, WcStatus::Success)]
            );
            me.meet();
            // One credit is left for all of these.
            for number in 2..30 {
                me.send(1, 7, number, 100);
                assert_eq!(me.statuses(1), [(number, WcStatus::Success)]);
            }
            me.meet();
            me.meet();
            assert_eq!(me.pair_status(1).available, 3);
        } else {
            me.meet();
            let claimed = [claim(&mut me, 0, 7, 0), claim(&mut me, 0, 7, 1)];
            for number in 2..30 {
                me.receive(number, Some(0), 7, 100);
                let received = me.completion();
                me.assert_received(&received, 0, number, 100);
            }
            me.meet();
            for (number, claimed) in claimed.into_iter().enumerate().rev() {
                let buffer = me.buffer(lengths[number]);
                claimed.receive(number as u64, buffer).expect("posted");
                let received = me.completion();
                me.assert_received(&received, 0, number as u64, lengths[number]);
            }
            me.pause(5_000);
            me.meet();
        }
        me.meet();
        me.finish();
    });
}

#[test]
pub(crate) fn a_claimed_message_keeps_its_credit_to_its_end() {
    both("tiny", 2, 132, |host| {
        let mut me = Side::with(&host, Setup::with_credits(2));
        if me.rank() == 0 {
            for number in 0..5 {
                me.send(1, 7, number, 40);
            }
            assert_eq!(
                me.statuses(2),
                [(0, WcStatus::Success), (1, WcStatus::Success)]
            );
            // Received, discarded, dropped: one more each.
            for number in 2..5 {
                me.meet();
                assert_eq!(me.pair_status(1).waiting, 5 - number as u32);
                me.assert_silent(10_000);
                me.meet();
                assert_eq!(me.statuses(1), [(number, WcStatus::Success)]);
            }
        } else {
            let received = claim(&mut me, 0, 7, 0);
            let discarded = claim(&mut me, 0, 7, 1);
            me.meet();
            me.meet();
            let buffer = me.buffer(40);
            received.receive(1, buffer).expect("posted");
            let completion = me.completion();
            me.assert_received(&completion, 0, 0, 40);
            let dropped = claim(&mut me, 0, 7, 2);
            me.meet();
            me.meet();
            discarded.discard(2).expect("posted");
            let completion = me.completion();
            assert_eq!(
                (completion.wr_id, completion.kind, completion.status),
                (2, WcKind::Discard, WcStatus::Success)
            );
            let last = claim(&mut me, 0, 7, 3);
            me.meet();
            me.meet();
            drop(dropped);
            let after = claim(&mut me, 0, 7, 4);
            last.discard(3).expect("posted");
            after.discard(4).expect("posted");
            let ends = [(3, WcStatus::Success), (4, WcStatus::Success)];
            assert_eq!(me.statuses(2), ends);
            me.pause(5_000);
        }
        me.meet();
        assert_eq!(me.pair_status(1 - me.rank()).available, 2);
        me.finish();
    });
}

/// Who got the message of a round.
const CLAIMED: usize = 0;
const RECEIVED: usize = 1;
const CANCELLED: usize = 2;

#[test]
fn of_a_claim_a_receive_and_its_cancel_that_race_with_the_message_one_gets_it() {
    const ROUNDS: u64 = 16;
    let outcomes: Arc<[AtomicU64; 3]> = Default::default();
    for seed in 0..5 {
        let outcomes = Arc::clone(&outcomes);
        GatesOnly::Race.run(cards("tiny", 2, 1330 + seed), move |host| {
            let mut rng = ChaCha8Rng::seed_from_u64(2 * seed + host.card() as u64);
            let mut me = Side::open(&host);
            for round in 0..ROUNDS {
                me.pause(rng.random_range(1..3000));
                if me.rank() == 0 {
                    me.send(1, 7, round, 32);
                    assert_eq!(me.statuses(1), [(round, WcStatus::Success)]);
                    me.meet();
                    continue;
                }
                let receive = me.receive(1, Some(0), 7, 32);
                me.pause(rng.random_range(1..800));
                let filter = me.filter(Some(0), 7, 0);
                me.endpoint.cancel(2, receive).expect("not polled for");
                if rng.random() {
                    me.pause(rng.random_range(1..800));
                }
                me.endpoint.claim(3, &filter).expect("posted");
                let (mut received, mut claimed, mut ended) = (0, None, false);
                while me.cq.outstanding() > 0 {
                    let mut next = me.completion();
                    match (next.wr_id, next.status) {
                        (1, WcStatus::Success) => {
                            me.assert_received(&next, 0, round, 32);
                            (received, ended) = (received + 1, true);
                        }
                        (1, WcStatus::Cancelled) => ended = true,
                        (2, WcStatus::TooLate) => assert_eq!(received, 1),
                        (3, WcStatus::Success) => claimed = next.claimed.take(),
                        (3, WcStatus::NoMessage) => {}
                        _ => panic!("seed {seed}, round {round}: {next:?}"),
                    }
                }
                assert!(ended, "seed {seed}, round {round}");
                let outcome = match (&claimed, received) {
                    (Some(_), 0) => CLAIMED,
                    (None, 1) => RECEIVED,
                    (None, 0) => CANCELLED,
                    _ => panic!("seed {seed}, round {round}: two have message {round}"),
                };
                outcomes[outcome].fetch_add(1, Ordering::Relaxed);
                if received == 0 {
                    let claimed = claimed.unwrap_or_else(|| claim(&mut me, 0, 7, round));
                    let buffer = me.buffer(32);
                    claimed.receive(4, buffer).expect("posted");
                    let received = me.completion();
                    me.assert_received(&received, 0, round, 32);
                }
                me.meet();
            }
            me.pause(5_000);
            me.meet();
            assert_eq!(me.pair_status(1 - me.rank()).available, 8);
            me.finish();
        });
    }
    let outcomes = [0, 1, 2].map(|k| outcomes[k].load(Ordering::Relaxed));
    println!("{outcomes:?} claimed, received, claimed later");
    assert!(outcomes.iter().all(|n| *n > 5), "{outcomes:?}: no race");
}

/// Two threads of one host and one endpoint: one receives what the other doesn't claim.
#[test]
fn a_thread_that_claims_and_one_that_receives_share_the_messages() {
    const MESSAGES: u64 = 40;
    GatesOnly::Threads.run(cards("tiny", 2, 134), |host| {
        let mut me = Side::open(&host);
        if me.rank() == 0 {
            for number in 0..MESSAGES {
                me.send(1, 7, number, 8);
                if number % 4 == 3 {
                    while me.cq.outstanding() > 0 {
                        assert_eq!(me.completion().status, WcStatus::Success);
                    }
                }
            }
            while me.cq.outstanding() > 0 {
                assert_eq!(me.completion().status, WcStatus::Success);
            }
            me.meet();
            me.finish();
            return;
        }
        let filter = me.filter(Some(0), 7, 0);
        let mut buffers: Vec<_> = (0..200).map(|_| me.buffer(8)).collect();
        let theirs = buffers.split_off(100);
        let me = Arc::new(me);
        let receiver = {
            let me = Arc::clone(&me);
            host.simulated().spawn(move |host| {
                let mut posted: Vec<Request> = Vec::new();
                for (k, buffer) in theirs.into_iter().enumerate().take(MESSAGES as usize / 2) {
                    let receive = me.endpoint.post_tagged_recv(k as u64, &filter, buffer);
                    posted.push(receive.expect("posted"));
                    let device = &me.device;
                    let _ = device.pause(&[], device.now() + 300 + 97 * (k as u64 % 7));
                }
                drop(host);
                posted
            })
        };
        // All completions come to this thread: half of the messages to receives, half to claims.
        let (mut numbers, mut received, mut claims) = (Vec::new(), 0, 0);
        while (numbers.len() as u64) < MESSAGES {
            // Never more claims than there are messages that no receive is meant for.
            if claims < MESSAGES / 2 {
                match me.endpoint.claim(1000, &filter) {
                    Ok(_) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            let mut found = match me.cq.wait(PATIENCE) {
                Ok(found) => found,
                Err(WaitError::Interrupted) => continue,
                Err(error) => panic!("{error} after {numbers:?}"),
            };
            loop {
                match (found.kind, found.status) {
                    (WcKind::Claim, WcStatus::NoMessage) => {}
                    (WcKind::Claim, WcStatus::Success) => {
                        claims += 1;
                        let claimed = found.claimed.take().expect("a message");
                        let buffer = buffers.pop().expect("plenty");
                        claimed
                            .receive(2000 + found.immediate, buffer)
                            .expect("posted");
                    }
                    (WcKind::Receive, WcStatus::Success) => {
                        if found.wr_id >= 2000 {
                            assert_eq!(found.wr_id, 2000 + found.immediate);
                        } else {
                            received += 1;
                        }
                        me.assert_received(&found, 0, found.immediate, 8);
                        numbers.push(found.immediate);
                    }
                    _ => panic!("{found:?}"),
                }
                match me.cq.poll() {
                    Some(next) => found = next,
                    None => break,
                }
            }
        }
        let posted = receiver.join().expect("it ends");
        numbers.sort_unstable();
        assert_eq!(numbers, Vec::from_iter(0..MESSAGES), "each once");
        println!("{received} received, {claims} claimed");
        assert!(
            received > 4 && claims > 4,
            "{received} and {claims}: no race"
        );
        let mut me = Arc::into_inner(me).expect("the other thread is gone");
        // What found nothing: claims, and receives for which a claim has left no message.
        let mut left = 0;
        for receive in posted {
            left += usize::from(me.endpoint.cancel(3000, receive).is_ok());
        }
        while me.cq.outstanding() > 0 {
            let found = me.completion();
            match (found.kind, found.status) {
                (WcKind::Claim, WcStatus::NoMessage) => {}
                (WcKind::Receive, WcStatus::Cancelled) => left -= 1,
                _ => panic!("{found:?}"),
            }
        }
        assert_eq!(left, 0);
        me.meet();
        me.finish();
    });
}

#[test]
fn claims_outlive_the_death_of_the_peer_and_end_with_the_pair() {
    both("tiny", 3, 135, |host| {
        let mut me = Side::open(&host);
        for round in 0..3 {
            if me.rank() == 0 {
                send_all(&mut me, 7, 10 * round..10 * round + 4, 40);
            } else if me.rank() == 2 {
                me.send(1, 7, 10 * round, 40);
                assert_eq!(me.completion().status, WcStatus::Success);
            }
            me.meet();
            let mut held: Vec<Claimed> = Vec::new();
            let mut of_the_living = None;
            if me.rank() == 1 {
                held.extend((0..4).map(|k| claim(&mut me, 0, 7, 10 * round + k)));
                of_the_living = Some(claim(&mut me, 2, 7, 10 * round));
            }
            me.meet();
            // Rank 0 dies, and comes back as another.
            if me.rank() == 0 {
                let old = me.reopen();
                assert_eq!(old.outstanding(), 0);
            }
            me.meet();
            if me.rank() == 1 {
                me.pause(20_000);
                assert_eq!(me.events().len(), 1);
                let buffer = me.buffer(40);
                held.remove(0).receive(1, buffer).expect("posted");
                let received = me.completion();
                me.assert_received(&received, 0, 10 * round, 40);
                held.remove(0).discard(2).expect("posted");
                assert_eq!(me.statuses(1), [(2, WcStatus::Success)]);
                me.disconnect(0);
                for claimed in held {
                    let buffer = me.buffer(40);
                    let refused = claimed.receive(3, buffer).expect_err("the pair is gone");
                    assert_eq!(refused.error, host_driver::PostError::InvalidPair);
                }
                assert_eq!(me.cq.outstanding(), 0);
                let buffer = me.buffer(40);
                let claimed = of_the_living.expect("rank 2's message");
                claimed.receive(4, buffer).expect("posted");
                let received = me.completion();
                me.assert_received(&received, 2, 10 * round, 40);
            } else if me.rank() == 2 {
                me.disconnect(0);
            }
            me.meet();
            me.events();
            me.connect();
            // Every slot of the new pair is vacant.
            if me.rank() == 0 {
                send_all(&mut me, 9, 0..8, 16);
                me.meet();
            } else {
                me.meet();
            }
            if me.rank() == 1 {
                for number in 0..8 {
                    me.receive(number, Some(0), 9, 16);
                    let received = me.completion();
                    me.assert_received(&received, 0, number, 16);
                }
            }
            me.meet();
        }
        me.finish();
    });
}

#[test]
fn an_endpoint_that_is_closed_leaves_no_claim_behind() {
    both("tiny", 2, 137, |host| {
        let mut me = Side::open(&host);
        for round in 0..3 {
            if me.rank() == 0 {
                send_all(&mut me, 7, 0..6, 40);
                me.meet();
                me.meet();
                me.pause(20_000);
                assert_eq!(me.events().len(), 1, "the peer has gone");
                me.disconnect(1);
            } else {
                me.meet();
                let mut held: Vec<_> = (0..5).map(|k| claim(&mut me, 0, 7, k)).collect();
                // One whose completion comes before the closing and is polled for behind it.
                let filter = me.filter(Some(0), 7, 0);
                me.endpoint.claim(900, &filter).expect("posted");
                me.pause(5_000);
                // One that is on its way when the endpoint is closed.
                let buffer = me.buffer(40);
                let receiving = held.pop().expect("five were claimed");
                receiving.receive(round, buffer).expect("posted");
                let old = me.reopen();
                let found = old.poll().expect("it has completed");
                assert_eq!((found.wr_id, found.status), (900, WcStatus::Success));
                assert!(found.claimed.is_none(), "it is gone with the endpoint");
                let received = old.poll().expect("each request ends");
                let ends = [WcStatus::Success, WcStatus::Flushed];
                assert!(ends.contains(&received.status), "{received:?}");
                assert!(received.buffer.is_some());
                let buffer = me.buffer(40);
                let late = held.pop().expect("four are left");
                let refused = late.receive(1, buffer).expect_err("the endpoint is gone");
                assert_eq!(refused.error, host_driver::PostError::Closed);
                drop((refused, held));
                assert_eq!((old.outstanding(), old.strays()), (0, 0));
                me.meet();
            }
            me.connect();
            // Every slot of the new pair is vacant.
            if me.rank() == 0 {
                send_all(&mut me, 9, 0..8, 16);
            }
            me.meet();
            if me.rank() == 1 {
                for number in 0..8 {
                    me.receive(number, Some(0), 9, 16);
                    let received = me.completion();
                    me.assert_received(&received, 0, number, 16);
                }
            }
            me.meet();
        }
        me.finish();
    });
}

/// A request that names a claimed message.
fn by_handle(
    loopback: &LoopbackEndpoint<'_>,
    opcode: Opcode,
    request: u32,
    handle: u32,
) -> ListRequest {
    ListRequest {
        opcode: opcode.code(),
        target: handle,
        ..loopback.receive(0, request, 64)
    }
}

#[test]
fn a_handle_is_good_once_and_for_its_endpoint_alone() {
    both("tiny", 1, 136, |host| {
        let host = RawHost::new(&host);
        let mut a = LoopbackEndpoint::open(&host);
        let mut b = LoopbackEndpoint::open(&host);
        let mut handles = Vec::new();
        for round in 0..3 {
            a.fill(round, 64);
            a.endpoint.post_send(a.send(9, 1, 64).to_words());
            assert_eq!(a.status(), (1, Status::Success));
            let mut claim = a.probe(9, 2);
            claim.opcode = Opcode::Claim.code();
            a.endpoint.post_list(claim.to_words());
            let found = a.endpoint.completion();
            assert_eq!((found.request, found.status), (2, Status::Success.code()));
            assert_eq!((found.match_bits, found.length), (9, 64));
            let handle = found.handle;
            assert!(!handles.contains(&handle), "a number of its own");

            for opcode in [Opcode::ReceiveClaimed, Opcode::Discard] {
                // The other endpoint's; used; beside it; none.
                let post = by_handle(&b, opcode, 3, handle);
                b.endpoint.post_list(post.to_words());
                assert_eq!(b.status(), (3, Status::InvalidClaim));
                let near = [handle ^ 1, handle ^ 1 << 16, handle & 0xffff, 0, u32::MAX];
                for wrong in handles.iter().copied().chain(near) {
                    let post = by_handle(&a, opcode, 4, wrong);
                    a.endpoint.post_list(post.to_words());
                    assert_eq!(a.status(), (4, Status::InvalidClaim), "{wrong:#x}");
                }
            }
            // A bad buffer leaves it as it is.
            let mut post = by_handle(&a, Opcode::ReceiveClaimed, 5, handle);
            post.key ^= 1 << 31;
            a.endpoint.post_list(post.to_words());
            assert_eq!(a.status(), (5, Status::LocalProtection));

            let opcode = [Opcode::ReceiveClaimed, Opcode::Discard][usize::from(round % 2)];
            let post = by_handle(&a, opcode, 6, handle);
            a.endpoint.post_list(post.to_words());
            assert_eq!(a.status(), (6, Status::Success));
            if opcode == Opcode::ReceiveClaimed {
                assert_eq!(a.received(64), [round; 64]);
            }
            handles.push(handle);
        }
        a.assert_works();
        b.assert_works();
    });
}
