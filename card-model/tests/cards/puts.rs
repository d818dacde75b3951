//! Puts: what they write and what not, why they are refused, and how they stand among the sends of their pair.

use std::ops::{Deref, DerefMut};

use abi::capability::CAPABILITY_PUT;
use abi::control::{
    GRANT_ONE_SHOT, GRANT_SHARED, Operation, PermissionSetup, RIGHT_REMOTE_READ, RIGHT_REMOTE_WRITE,
};
use abi::limits::EAGER_MAX;
use abi::request::{
    FLAG_ERRORS_ONLY, FLAG_GATHER, FLAG_READY, Opcode, Segment, SendRequest, SendSegments,
};
use abi::status::Status;
use card_model::{Break, CardSizes, InTurn};
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::host_side::{BUFFER_BYTES, HostSide, WINDOW_BYTES, able};
use crate::lent::{A, B, CREDITS, END, FIRST, Lent, PAIR, ROW};
use crate::net::{End, Net};

struct Stage(Lent);

impl Deref for Stage {
    type Target = Lent;

    fn deref(&self) -> &Lent {
        &self.0
    }
}

impl DerefMut for Stage {
    fn deref_mut(&mut self) -> &mut Lent {
        &mut self.0
    }
}

impl Stage {
    fn new(broken: Break) -> Self {
        let mut lent = Lent::new(broken);
        lent.key = lent.grant(ROW, FIRST, END, |_| {});
        Self(lent)
    }

    /// Posts a put of bytes of a number to a place of B's window.
    fn put(&mut self, number: u32, at: u64, length: u64) {
        let put = self.a_put(number, at, length);
        self.send(put);
    }

    /// Its entry, with its bytes in place.
    fn a_put(&mut self, number: u32, at: u64, length: u64) -> SendRequest {
        let host_side = self.host_side(A);
        let offset = u64::from(number) * EAGER_MAX as u64;
        host_side.fill(&mut self.net.cards[A], offset, &bytes(number, length));
        host_side.a_put(PAIR, number, (offset, length), (self.key, at))
    }

    fn window(&mut self) -> Vec<u8> {
        let host_side = self.host_side(B);
        host_side.window_bytes(&mut self.net.cards[B])
    }
}

/// Bytes of a put, none of which is 0.
fn bytes(number: u32, length: u64) -> Vec<u8> {
    let byte = |at: u64| 1 + ((u64::from(number) * 31 + at * 7) % 255) as u8;
    (0..length).map(byte).collect()
}

/// What a window has in which these have been written one after the other: number, place, length.
fn written(puts: &[(u32, u64, u64)]) -> Vec<u8> {
    let mut window = vec![0; WINDOW_BYTES as usize];
    for &(number, at, length) in puts {
        let at = at as usize;
        window[at..at + length as usize].copy_from_slice(&bytes(number, length));
    }
    window
}

fn successes(numbers: impl IntoIterator<Item = u32>) -> Vec<(u32, Status)> {
    let all = numbers.into_iter();
    all.map(|number| (number, Status::Success)).collect()
}

/// B's window after puts of all kinds of places and lengths, and how they ended.
fn puts_everywhere(broken: Break) -> (Vec<u8>, Vec<(u32, Status)>) {
    let mut stage = Stage::new(broken);
    let mut ended = Vec::new();
    for (number, at, length) in PLACES {
        stage.put(number, at, length);
        ended.extend(stage.ended());
    }
    (stage.window(), ended)
}

const PLACES: [(u32, u64, u64); 7] = [
    (0, FIRST, 1024),
    (1, FIRST + 1, 1),
    (2, 0x2000, 8),
    (3, 0x2003, 1000),
    (4, END - 17, 17),
    (5, END - 1024, 3),
    (6, 0x2ffc, 5),
];

#[test]
fn a_put_is_written_where_it_is_granted_and_nowhere_else() {
    let (window, ended) = puts_everywhere(Break::None);
    assert_eq!(ended, successes(0..7));
    assert!(window == written(&PLACES));
    let (broken, _) = puts_everywhere(Break::PutOffsetIgnored);
    assert!(broken != window, "its place is noticed");
}

#[test]
fn a_put_may_be_inline_or_a_gather() {
    let mut stage = Stage::new(Break::None);
    let inline = stage.a_put(0, FIRST, 0).with_inline(&bytes(0, 13));
    stage.send(inline);
    let whole = stage.a_put(1, 0x2001, 900);
    let segment = |from: u64, to: u64| Segment {
        key: whole.key,
        address: whole.address + from,
        length: to - from,
    };
    let first = SendRequest {
        flags: FLAG_GATHER,
        length: 300,
        ..whole
    };
    let behind = [segment(300, 301), segment(301, 301), segment(301, 900)];
    let second = SendSegments::new(1, &behind);
    let net = &mut stage.net;
    net.host_sides[A][0].send_two(&mut net.cards[A], first, second);
    assert_eq!(stage.ended(), successes(0..2));
    assert!(stage.window() == written(&[(0, FIRST, 13), (1, 0x2001, 900)]));
}

/// Puts that may not be, one for each reason: how each ends, and how a good put and a message behind them.
fn refusals(broken: Break) -> Vec<(u32, Status)> {
    let mut stage = Stage::new(broken);
    let bad = stage.unlawful(RIGHT_REMOTE_WRITE, RIGHT_REMOTE_READ);
    let mut ended = Vec::new();
    for (number, &(key, at, length)) in (0..).zip(&bad) {
        let put = stage.a_put(number, at, length);
        stage.send(SendRequest {
            match_bits: key,
            ..put
        });
        ended.extend(stage.ended());
    }
    // The last was allowed, and the memory refused it.
    assert_eq!(stage.refused(PAIR), bad.len() as u32 - 1);
    assert!(stage.window() == written(&[]));
    stage.put(30, FIRST, 8);
    stage.message(31);
    stage.receive(0);
    ended.extend(stage.ended());
    assert!(stage.window() == written(&[(30, FIRST, 8)]));
    ended
}

#[test]
fn a_put_is_refused_for_each_reason_and_the_pair_goes_on() {
    let mut told: Vec<_> = (0..16).map(|n| (n, Status::RemoteAccess)).collect();
    told.extend(successes(30..32));
    assert_eq!(refusals(Break::None), told);
    let broken = refusals(Break::PutRefusalUntold);
    assert_ne!(broken, told, "it is noticed");
}

#[test]
fn several_puts_on_their_way_are_told_each_its_own_outcome() {
    let mut stage = Stage::new(Break::None);
    for number in 0..16 {
        let bad = number % 3 == 1 || number == 15;
        let at = if bad {
            END
        } else {
            FIRST + 8 * u64::from(number)
        };
        stage.put(number, at, 8);
    }
    let told = stage.ended();
    for (number, status) in told {
        let bad = number % 3 == 1 || number == 15;
        assert_eq!(status == Status::RemoteAccess, bad, "{number}");
        assert_eq!(status == Status::Success, !bad, "{number}");
    }
}

#[test]
fn what_ends_a_key_ends_the_puts_by_it() {
    type End = fn(&mut Stage);
    let ends: [End; 4] = [
        |stage| {
            stage.net.cards[B].control(Operation::GrantClear, ROW, &[]);
        },
        |stage| {
            stage.net.cards[B].control(Operation::SenderRevoke, PAIR, &[]);
        },
        |stage| HostSide::clear_window(&mut stage.net.cards[B], 0),
        |stage| {
            stage.grant(ROW, FIRST, END, |grant| grant.tag += 1);
        },
    ];
    for end in ends {
        let mut stage = Stage::new(Break::None);
        stage.put(0, FIRST, 8);
        assert_eq!(stage.ended(), successes(0..1));
        // One is on its way when the key ends, and one is posted later.
        stage.put(1, FIRST, 8);
        stage.net.cards[A].run(&mut InTurn::default());
        stage.net.collect();
        assert_eq!(stage.net.wires[B].len(), 1);
        end(&mut stage);
        stage.put(2, FIRST, 8);
        let refused = [1, 2].map(|number| (number, Status::RemoteAccess));
        assert_eq!(stage.ended(), refused);
        assert!(stage.window() == written(&[(0, FIRST, 8)]));
        // Messages of the pair go on.
        stage.message(3);
        assert_eq!(stage.ended(), successes(3..4));
    }
}

#[test]
fn a_shared_key_is_of_use_to_who_has_its_permission() {
    let mut stage = Stage::new(Break::None);
    stage.key = stage.grant(0, FIRST, END, |grant| {
        (grant.holder, grant.flags) = (0, GRANT_SHARED);
    });
    let expected = [Status::Success, Status::RemoteAccess];
    for (number, allowed) in [1, 0].into_iter().enumerate() {
        let permission = PermissionSetup {
            allowed,
            ..PermissionSetup::default()
        };
        let gates = &mut stage.net.cards[B];
        gates.control(Operation::PermissionSet, PAIR, &permission.to_words());
        stage.put(number as u32, FIRST, 8);
        assert_eq!(stage.ended(), [(number as u32, expected[number])]);
    }
}

#[test]
fn a_one_shot_key_is_good_for_one_put() {
    let mut stage = Stage::new(Break::None);
    stage.key = stage.grant(7, FIRST, END, |grant| grant.flags = GRANT_ONE_SHOT);
    // What is refused leaves it, and so does a put without bytes, which nothing asks for.
    stage.put(0, END, 8);
    stage.put(1, 0, 0);
    stage.put(2, FIRST, 8);
    stage.put(3, FIRST + 8, 8);
    let mut told = vec![(0, Status::RemoteAccess)];
    told.extend(successes(1..3));
    told.push((3, Status::RemoteAccess));
    assert_eq!(stage.ended(), told);
    assert!(stage.window() == written(&[(2, FIRST, 8)]));
}

/// A pair whose credits are all used by messages that nobody receives, with puts in front of the message that waits and behind it. What has ended.
fn starved(broken: Break) -> (Stage, Vec<(u32, Status)>) {
    let mut stage = Stage::new(broken);
    (0..3).for_each(|number| stage.message(number));
    (3..6).for_each(|number| stage.put(number, FIRST + 8 * u64::from(number), 8));
    stage.message(6);
    stage.put(7, 0x2000, 8);
    let ended = stage.ended();
    (stage, ended)
}

#[test]
fn a_put_needs_no_credit_and_waits_behind_a_message_that_does() {
    let (mut stage, ended) = starved(Break::None);
    assert_eq!(ended, successes(0..6));
    let place = |number: u32| (number, FIRST + 8 * u64::from(number), 8);
    let mut there: Vec<_> = (3..6).map(place).collect();
    assert!(stage.window() == written(&there));
    // Time alone changes nothing: the pair asks, and its peer is there.
    for _ in 0..20 {
        let next = stage.net.cards[A].next_time().expect("a message waits");
        stage
            .net
            .cards
            .iter_mut()
            .for_each(|card| card.advance_to(next));
        assert_eq!(stage.ended(), []);
    }
    stage.receive(0);
    assert_eq!(stage.ended(), successes(6..8));
    there.push((7, 0x2000, 8));
    assert!(stage.window() == written(&there));
    let (_, broken) = starved(Break::PutWaitsForCredit);
    assert_ne!(broken, ended, "a put that waits for a credit is noticed");
}

#[test]
fn a_put_that_waits_is_cancelled_and_never_written() {
    let (mut stage, _) = starved(Break::None);
    let cancel = |request, target| SendRequest {
        opcode: Opcode::CancelSend.code(),
        pair: PAIR,
        request,
        target,
        ..SendRequest::default()
    };
    stage.send(cancel(20, 7));
    stage.send(cancel(21, 3));
    let told = [(7, Status::Cancelled), (21, Status::TooLate)];
    assert_eq!(stage.ended(), told);
    stage.receive(0);
    assert_eq!(stage.ended(), successes(6..7));
    let place = |number: u32| (number, FIRST + 8 * u64::from(number), 8);
    let there: Vec<_> = (3..6).map(place).collect();
    assert!(stage.window() == written(&there));
}

/// Whether each message, when its receive has completed, finds the put in front of it written.
fn put_then_send(seed: u64) -> usize {
    let mut stage = Stage::new(Break::None);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut received = 0;
    (0..8).for_each(|number| stage.receive(number));
    for number in 0..8 {
        stage.put(2 * number, FIRST + 16 * u64::from(number), 16);
        stage.message(2 * number + 1);
    }
    for step in 0.. {
        let card = rng.random_range(0..2);
        if let Some(&action) = stage.net.cards[card].actions().choose(&mut rng) {
            stage.net.cards[card].step(action);
        }
        stage.net.collect();
        if rng.random()
            && let Some(frame) = stage.net.wires[card].pop_front()
        {
            stage.net.cards[card].frame_in(frame);
        }
        while let Some(entry) = stage.poll(B) {
            assert_eq!(entry.status, Status::Success.code());
            let at = (FIRST + 16 * u64::from(entry.request)) as usize;
            let found = stage.window()[at..at + 16].to_vec();
            assert_eq!(found, bytes(2 * entry.request, 16), "seed {seed}");
            received += 1;
        }
        if received == 8 || step == 10_000 {
            break;
        }
    }
    received
}

#[test]
fn a_message_finds_the_puts_in_front_of_it_written() {
    for seed in 0..60 {
        assert_eq!(put_then_send(seed), 8, "seed {seed}");
    }
}

#[test]
fn a_put_that_completes_on_error_only_is_silent_when_it_is_written() {
    let mut stage = Stage::new(Break::None);
    for number in 0..4 {
        let put = stage.a_put(number, if number == 2 { END } else { FIRST }, 8);
        stage.send(SendRequest {
            flags: FLAG_ERRORS_ONLY,
            ..put
        });
    }
    assert_eq!(stage.ended(), [(2, Status::RemoteAccess)]);
    assert!(stage.window() == written(&[(3, FIRST, 8)]));
}

#[test]
fn a_put_is_refused_as_a_send_is() {
    let mut stage = Stage::new(Break::None);
    let good = stage.a_put(1, FIRST, 8);
    for (bad, status) in [
        (
            SendRequest {
                flags: FLAG_READY,
                ..good
            },
            Status::InvalidRequest,
        ),
        (SendRequest { pair: 7, ..good }, Status::InvalidPair),
        (
            SendRequest {
                length: EAGER_MAX as u64 + 1,
                ..good
            },
            Status::TooLong,
        ),
        (SendRequest { key: 0, ..good }, Status::LocalProtection),
        (
            SendRequest {
                address: stage.host_side(A).buffers + BUFFER_BYTES,
                ..good
            },
            Status::MemoryError,
        ),
    ] {
        stage.send(bad);
        assert_eq!(stage.ended(), [(1, status)]);
    }
    let (mut stage, _) = starved(Break::None);
    (8..23).for_each(|number| stage.put(number, FIRST, 8));
    assert_eq!(stage.ended(), [(22, Status::QueueFull)]);
    assert!(stage.window().iter().filter(|&&byte| byte != 0).count() == 24);
}

#[test]
fn a_card_without_puts_does_not_know_them() {
    let sizes = CardSizes {
        capabilities: abi::capability::ALL & !CAPABILITY_PUT,
        ..able()
    };
    let mut net = Net::new(1, sizes, 1, 5);
    let end = End {
        card: 0,
        endpoint: 0,
        pair: PAIR,
    };
    net.connect(end, end, CREDITS);
    let host_side = &mut net.host_sides[0][0];
    let put = host_side.a_put(PAIR, 1, (0, 8), (0, 0));
    host_side.send(&mut net.cards[0], put);
    net.cards[0].run(&mut InTurn::default());
    let refused = host_side.poll(&mut net.cards[0]).expect("it is refused");
    assert_eq!(refused.status, Status::InvalidRequest.code());
}

#[test]
fn puts_end_with_their_pair_and_what_is_on_the_wire_then_is_never_written() {
    for fails in [A, B] {
        let (mut stage, _) = starved(Break::None);
        let before = stage.window();
        // One is on the wire when the pair fails, and one waits.
        stage.receive(0);
        stage.net.cards[B].run(&mut InTurn::default());
        stage.net.collect();
        stage.net.deliver(A);
        stage.net.cards[A].run(&mut InTurn::default());
        stage.net.collect();
        assert_eq!(stage.net.wires[B].len(), 2);
        stage.put(8, FIRST, 8);
        let status = Status::PeerFailed;
        let code = status.code().into();
        stage.net.cards[fails].control(Operation::PairFail, PAIR, &[code]);
        stage.net.cards[fails].run(&mut InTurn::default());
        let told = stage.ended();
        match fails {
            // What is on its way arrives, since B doesn't know; and A can't know.
            A => assert_eq!(told, [6, 7, 8].map(|number| (number, status))),
            _ => {
                assert_eq!(told.len(), 3);
                assert!(told.iter().all(|(_, ended)| *ended != Status::Success));
                assert!(stage.window() == before, "the peer has failed");
            }
        }
    }
}
