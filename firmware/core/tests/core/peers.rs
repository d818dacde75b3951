//! Peers that live, fall silent, are declared to have failed and come back; and the signals that processes send each other.

use crate::breaks::{promise, promise_eq};
use crate::gates::{Refusal, call};
use crate::network::{CALM, ROUGH, Weather, World, body, for_seeds, several, two};
use abi::event::Cause as EventCause;
use abi::mailbox::{
    AuditEntry, AuditIndex, AuditKind, Command, Disconnect, Endpoint, FailedPeers, FailureCause,
    Nothing, Pair, PairState, PeerState, Signal, TellFailed, WatchPeers, Words, id_index,
};
use abi::status::{MailboxStatus, Status};
use abi::times::WATCH_INTERVAL_LEAST;
use abi::wire::ManagementKind;
use firmware_core::MOST_TELLINGS;
use firmware_core::connection::{Cause, State};
use firmware_core::watch::TRANSITIONS;
use std::collections::HashSet;

const INTERVAL: u32 = WATCH_INTERVAL_LEAST;
const LOOKS: u32 = 8;
/// A silent peer has failed by then: each look comes a quarter of an interval late at most, and one may have found it alive.
const SURELY: u32 = (LOOKS + 2) * INTERVAL * 5 / 4;

const CUT: Weather = Weather { lost: 100, ..CALM };

/// Gives a command, at whatever cycle it is, and lets the others catch up.
pub fn ask<A: Words, R: Words>(
    world: &mut World,
    card: usize,
    command: Command,
    argument: A,
) -> Result<R, Refusal> {
    let answer = call(&mut world.cards[card], command, argument);
    world.catch_up();
    answer
}

fn watch(world: &mut World, card: usize, looks: u32, believe: u32) {
    let asked = WatchPeers {
        endpoint: world.endpoints[card][0],
        interval: if looks > 0 { INTERVAL } else { 0 },
        timeout: looks * INTERVAL,
        believe,
    };
    promise_eq!(ask(world, card, Command::WatchPeers, asked), Ok(Nothing {}));
}

/// What a card thinks of the peer of its pair.
fn peer(world: &mut World, card: usize, pair: u32) -> (PeerState, FailureCause) {
    let status = world.query(card, pair).expect("an open pair");
    let state = PeerState::from_code(status.peer as u8).expect("a state");
    let failure = FailureCause::from_code(status.failure as u8).expect("a cause");
    promise_eq!(state == PeerState::Failed, failure != FailureCause::None);
    (state, failure)
}

const ALIVE: (PeerState, FailureCause) = (PeerState::Alive, FailureCause::None);

/// Connects the first endpoints of two cards; their pairs.
pub fn join(world: &mut World, a: usize, b: usize) -> (u32, u32) {
    world.accept(b, 0);
    world.pass(20_000);
    world.connect(a, 0, b, 0, 0);
    world.pass(60_000);
    let last = |card: usize| world.pairs[card].last().expect("a pair").0;
    let pairs = (last(a), last(b));
    for (card, pair) in [(a, pairs.0), (b, pairs.1)] {
        let state = world.query(card, pair).expect("an open pair").state;
        promise_eq!(state, u32::from(PairState::Connected.code()));
    }
    pairs
}

/// Events of a cause that a card's hosts have had: pair and `info`.
pub fn events(world: &mut World, card: usize, cause: EventCause) -> Vec<(u16, u64)> {
    let raised = world.cards[card].card().raised.iter();
    let alike = raised.filter(|event| event.1 == cause.code());
    alike.map(|event| (event.2, event.3)).collect()
}

/// The places that `ReadFailed` names.
fn failed(world: &mut World, card: usize) -> Vec<u16> {
    let endpoint = world.endpoints[card][0];
    let read = ask(world, card, Command::ReadFailed, Endpoint { endpoint });
    let FailedPeers { low, high } = read.expect("an open endpoint");
    promise_eq!(high, 0);
    (0..64).filter(|k| low >> k & 1 == 1).collect()
}

fn kinds_sent(world: &World, kind: ManagementKind) -> usize {
    let alike = |words: &_| body(words).kind == kind.code();
    world.seen.iter().filter(|seen| alike(&seen.2)).count()
}

#[test]
pub fn a_peer_that_answers_lives_however_little_is_said() {
    let mut world = two(1, CALM);
    let pairs = join(&mut world, 0, 1);
    watch(&mut world, 0, LOOKS, 0);
    world.pass(4 * SURELY);
    promise_eq!(peer(&mut world, 0, pairs.0), ALIVE);
    // Whoever is asked needs not ask: it has heard of its peer.
    watch(&mut world, 1, LOOKS, 0);
    world.pass(4 * SURELY);
    for (card, pair) in [(0, pairs.0), (1, pairs.1)] {
        promise_eq!(peer(&mut world, card, pair), ALIVE);
    }
    let rounds = 8 * LOOKS as usize;
    promise!(kinds_sent(&world, ManagementKind::Alive) < 3 * rounds);
    // Nobody is asked any more.
    for card in [0, 1] {
        watch(&mut world, card, 0, 0);
    }
    world.pass(2 * INTERVAL);
    world.seen.clear();
    world.pass(4 * SURELY);
    promise_eq!(kinds_sent(&world, ManagementKind::Alive), 0);
    promise_eq!(world.cards[0].next_deadline(), None);
}

#[test]
pub fn a_silent_peer_is_suspected_and_then_taken_to_have_failed() {
    let mut world = two(1, CALM);
    let (near, far) = join(&mut world, 0, 1);
    for card in [0, 1] {
        watch(&mut world, card, LOOKS, 0);
    }
    world.pass(SURELY);
    world.weather = CUT;
    world.pass((LOOKS - 1) * INTERVAL);
    promise_eq!(peer(&mut world, 0, near).0, PeerState::Suspect);
    // The wire comes back in time.
    world.weather = CALM;
    world.pass(2 * INTERVAL);
    promise_eq!(peer(&mut world, 0, near), ALIVE);
    world.weather = CUT;
    world.pass(SURELY);
    let silent = (PeerState::Failed, FailureCause::Silence);
    for (card, pair) in [(0, near), (1, far)] {
        promise_eq!(peer(&mut world, card, pair), silent);
        let place = id_index(pair);
        promise_eq!(failed(&mut world, card), [place]);
        let gates = world.cards[card].card();
        let status = u64::from(Status::PeerFailed.code());
        promise_eq!(gates.pairs[&place].failed_with, Some(status));
        promise_eq!(events(&mut world, card, EventCause::PeerFailed).len(), 1);
        promise!(events(&mut world, card, EventCause::LinkError).is_empty());
    }
}

#[test]
fn a_firmware_that_was_paused_takes_nobody_to_have_failed_for_it() {
    let mut world = two(1, CALM);
    let pairs = join(&mut world, 0, 1);
    for card in [0, 1] {
        watch(&mut world, card, 2, 0);
    }
    for _ in 0..20 {
        world.pass(INTERVAL);
        world.now += 10 * INTERVAL;
    }
    world.pass(4 * INTERVAL);
    for (card, pair) in [(0, pairs.0), (1, pairs.1)] {
        promise_eq!(peer(&mut world, card, pair), ALIVE);
    }
}

#[test]
pub fn a_peer_that_had_failed_is_known_when_it_comes_back() {
    let mut world = two(1, CALM);
    let (near, far) = join(&mut world, 0, 1);
    let declared = ask(&mut world, 0, Command::DeclareFailed, Pair { pair: near });
    promise_eq!(declared, Ok(Nothing {}));
    world.pass(50_000);
    let failure = (PeerState::Failed, FailureCause::Declared);
    promise_eq!(peer(&mut world, 0, near), failure);
    // Once more says nothing new, and of the failure there is one event.
    let again = ask(&mut world, 0, Command::DeclareFailed, Pair { pair: near });
    promise_eq!(again, Ok(Nothing {}));
    let status = u64::from(Status::PeerFailed.code());
    promise_eq!(events(&mut world, 0, EventCause::PeerFailed).len(), 1);
    let held = world.cards[0].card().pairs[&id_index(near)];
    promise_eq!(held.failed_with, Some(status));
    // The other side lives, and knows that its pair was failed by its peer.
    promise_eq!(peer(&mut world, 1, far).0, PeerState::Alive);
    promise_eq!(events(&mut world, 1, EventCause::LinkError).len(), 1);
    for (card, pair) in [(0, near), (1, far)] {
        let closed = ask(&mut world, card, Command::ClosePair, Pair { pair });
        promise_eq!(closed, Ok(Nothing {}));
    }
    promise!(failed(&mut world, 0).is_empty());
    let (near, far) = join(&mut world, 0, 1);
    promise_eq!(peer(&mut world, 0, near).0, PeerState::Rejoined);
    promise_eq!(peer(&mut world, 1, far), ALIVE);
}

/// Each takes the other to have failed. When the wire is whole again old frames change nothing, before the two connect again and after; both know who comes.
#[test]
fn a_partition_that_heals_leaves_two_that_find_each_other_rejoined() {
    let mut world = two(1, CALM);
    let (near, far) = join(&mut world, 0, 1);
    for card in [0, 1] {
        watch(&mut world, card, LOOKS, 0);
    }
    world.pass(SURELY);
    world.weather = CUT;
    for (card, pair) in [(0, near), (1, far)] {
        let signal = Signal { pair, word: 7 };
        promise_eq!(
            ask(&mut world, card, Command::Signal, signal),
            Ok(Nothing {})
        );
    }
    world.pass(SURELY);
    let silent = (PeerState::Failed, FailureCause::Silence);
    let have_failed = |world: &mut World| {
        for (card, pair) in [(0, near), (1, far)] {
            promise_eq!(peer(world, card, pair), silent);
            promise_eq!(events(world, card, EventCause::PeerFailed).len(), 1);
            promise!(events(world, card, EventCause::Signal).is_empty());
        }
    };
    have_failed(&mut world);
    world.weather = CALM;
    let questions = kinds_sent(&world, ManagementKind::Alive);
    promise!(
        kinds_sent(&world, ManagementKind::Signal) > 2,
        "repeated into nothing"
    );
    world.repeat_all();
    world.pass(SURELY);
    have_failed(&mut world);
    let again = kinds_sent(&world, ManagementKind::Alive);
    promise_eq!(again, questions, "nobody asks, and nobody answers");
    for (card, pair) in [(0, near), (1, far)] {
        let closed = ask(&mut world, card, Command::ClosePair, Pair { pair });
        promise_eq!(closed, Ok(Nothing {}));
    }
    let pairs = join(&mut world, 0, 1);
    world.repeat_all();
    world.pass(SURELY);
    for (card, pair) in [(0, pairs.0), (1, pairs.1)] {
        promise_eq!(peer(&mut world, card, pair).0, PeerState::Rejoined);
        promise!(events(&mut world, card, EventCause::Signal).is_empty());
        promise!(failed(&mut world, card).is_empty());
    }
    // And each hears the other.
    let signal = Signal {
        pair: pairs.0,
        word: 8,
    };
    promise_eq!(ask(&mut world, 0, Command::Signal, signal), Ok(Nothing {}));
    world.pass(50_000);
    promise_eq!(
        events(&mut world, 1, EventCause::Signal),
        [(id_index(pairs.1), 8)]
    );
}

/// The first of three cards is connected to both others, and they to each other: the pairs of 0 and 1, of 0 and 2, of 1 and 2.
fn three() -> (World, [(u32, u32); 3]) {
    let mut world = several(3, 1, CALM);
    let pairs = [(0, 1), (0, 2), (1, 2)].map(|(a, b)| join(&mut world, a, b));
    (world, pairs)
}

fn places(pairs: &[u32]) -> u64 {
    pairs.iter().map(|&pair| 1 << id_index(pair)).sum()
}

/// A failure is told to one peer, which believes it or not.
fn a_failure_is_told(believe: u32) -> World {
    let (mut world, [one, two, between]) = three();
    watch(&mut world, 1, 0, believe);
    world.weather = ROUGH;
    let tell = TellFailed {
        failed: two.0,
        low: places(&[one.0, two.0]),
        high: u64::MAX,
    };
    let early = ask::<_, Nothing>(&mut world, 0, Command::TellFailed, tell);
    promise_eq!(early, Err((MailboxStatus::InvalidArgument, 0)));
    let pair = Pair { pair: two.0 };
    promise_eq!(
        ask(&mut world, 0, Command::DeclareFailed, pair),
        Ok(Nothing {})
    );
    promise_eq!(
        ask(&mut world, 0, Command::TellFailed, tell),
        Ok(Nothing {})
    );
    world.pass(4_000_000);
    let expected = match believe {
        0 => ALIVE,
        _ => (PeerState::Failed, FailureCause::Told),
    };
    promise_eq!(peer(&mut world, 1, between.0), expected);
    // Who tells is trusted with nothing else, and is not concerned itself.
    promise_eq!(peer(&mut world, 1, one.1), ALIVE);
    promise_eq!(peer(&mut world, 0, one.0), ALIVE);
    let index = AuditIndex { entry: 0 };
    let mut entry: AuditEntry = ask(&mut world, 1, Command::ReadAudit, index).unwrap();
    let mut noted = false;
    while entry.entry != entry.next {
        noted |= entry.kind == u32::from(AuditKind::NotBelieved.code());
        let index = AuditIndex {
            entry: entry.entry + 1,
        };
        entry = ask(&mut world, 1, Command::ReadAudit, index).unwrap();
    }
    promise_eq!(noted, believe == 0);
    world
}

#[test]
pub fn a_failure_is_told_to_those_that_are_chosen() {
    for believe in [0, 1] {
        a_failure_is_told(believe);
    }
}

#[test]
fn more_failures_than_there_is_room_to_tell_of_are_refused_until_some_have_been_told() {
    let (mut world, [one, two, _]) = three();
    let pair = Pair { pair: two.0 };
    promise_eq!(
        ask(&mut world, 0, Command::DeclareFailed, pair),
        Ok(Nothing {})
    );
    world.weather = CUT;
    let tell = TellFailed {
        failed: two.0,
        low: places(&[one.0]),
        high: 0,
    };
    // One is under way, and the others wait for it.
    let taken = (0..10)
        .take_while(|_| ask::<_, Nothing>(&mut world, 0, Command::TellFailed, tell).is_ok())
        .count();
    promise!((MOST_TELLINGS..=MOST_TELLINGS + 1).contains(&taken));
    let refused = ask::<_, Nothing>(&mut world, 0, Command::TellFailed, tell);
    promise_eq!(refused, Err((MailboxStatus::Busy, 0)));
    world.weather = CALM;
    world.pass(8_000_000);
    promise_eq!(
        ask(&mut world, 0, Command::TellFailed, tell),
        Ok(Nothing {})
    );
}

#[test]
fn places_without_a_pair_are_passed_over() {
    let (mut world, [_, two, _]) = three();
    let pair = Pair { pair: two.0 };
    promise_eq!(
        ask(&mut world, 0, Command::DeclareFailed, pair),
        Ok(Nothing {})
    );
    let tell = TellFailed {
        failed: two.0,
        low: u64::MAX,
        high: u64::MAX,
    };
    for _ in 0..2 * MOST_TELLINGS {
        promise_eq!(
            ask(&mut world, 0, Command::TellFailed, tell),
            Ok(Nothing {})
        );
        world.pass(100_000);
    }
    promise_eq!(world.cards[0].next_deadline(), None, "under way for ever");
}

fn signals_arrive(seed: u64) {
    let mut world = two(seed, CALM);
    let (near, far) = join(&mut world, 0, 1);
    world.weather = ROUGH;
    let mut given = [Vec::new(), Vec::new()];
    for word in 0..6_u64 {
        for (card, pair) in [(0, near), (1, far)] {
            let word = word | 0xabcd_0000_0000_0000 | (card as u64) << 32;
            let signal = Signal { pair, word };
            let mut give = || {
                let given = ask(&mut world, card, Command::Signal, signal);
                world.pass(20_000);
                given
            };
            let taken = (0..1_000).any(|_| give() == Ok(Nothing {}));
            promise!(taken, "the one before is under way for ever");
            given[card].push(word);
        }
    }
    world.calm_down();
    for (card, pair) in [(0, near), (1, far)] {
        let got = events(&mut world, card, EventCause::Signal);
        let expected = given[1 - card].iter();
        let expected: Vec<_> = expected.map(|&word| (id_index(pair), word)).collect();
        promise_eq!(got, expected, "signals of card {}", 1 - card);
    }
}

#[test]
pub fn each_signal_arrives_once_and_in_order_whatever_happens_to_the_frames() {
    for_seeds(signals_arrive);
}

/// As it broke: the question had the number of the signal, whose repetitions its answer ended.
#[test]
pub fn a_signal_that_is_lost_is_repeated_though_a_question_for_a_sign_of_life_is_answered() {
    const WORD: u64 = 0x51_60a1;
    let mut world = two(1, CALM);
    let (near, far) = join(&mut world, 0, 1);
    watch(&mut world, 0, LOOKS, 0);
    // The first look still finds what the handshake has said.
    world.pass(100);
    world.weather = CUT;
    let signal = Signal {
        pair: near,
        word: WORD,
    };
    promise_eq!(ask(&mut world, 0, Command::Signal, signal), Ok(Nothing {}));
    world.pass(100);
    world.weather = CALM;
    let answers = |world: &World| kinds_sent(world, ManagementKind::NoticeDone);
    world.seen.clear();
    while answers(&world) == 0 {
        world.pass(1000);
    }
    // It is the question that was answered: no signal has gone meanwhile.
    assert_eq!(kinds_sent(&world, ManagementKind::Signal), 0);
    world.pass(2 * SURELY);
    let raised = events(&mut world, 1, EventCause::Signal);
    promise_eq!(raised, [(id_index(far), WORD)]);
    promise_eq!(ask(&mut world, 0, Command::Signal, signal), Ok(Nothing {}));
}

#[test]
pub fn a_signal_to_a_pair_that_is_not_connected_is_refused_and_one_under_way_ends_with_its_pair() {
    let mut world = two(1, CALM);
    let (near, _) = join(&mut world, 0, 1);
    world.weather = CUT;
    let signal = Signal {
        pair: near,
        word: 1,
    };
    promise_eq!(ask(&mut world, 0, Command::Signal, signal), Ok(Nothing {}));
    promise_eq!(
        ask::<_, Nothing>(&mut world, 0, Command::Signal, signal),
        Err((MailboxStatus::Busy, 0))
    );
    let pair = Pair { pair: near };
    promise_eq!(
        ask(&mut world, 0, Command::DeclareFailed, pair),
        Ok(Nothing {})
    );
    // Who is told that the pair has ended may rely on it that the peer writes no more.
    let told = ask::<_, Nothing>(&mut world, 0, Command::Signal, signal);
    promise!(
        world.cards[0].card().is_failed(id_index(near)) || told == Err((MailboxStatus::Busy, 0))
    );
    world.pass(100_000);
    let told = ask::<_, Nothing>(&mut world, 0, Command::Signal, signal);
    promise_eq!(told, Err((MailboxStatus::NotConnected, 0)));
    promise_eq!(world.cards[0].next_deadline(), None, "under way for ever");
}

#[test]
fn what_cannot_be_watched_is_refused() {
    let mut world = two(1, CALM);
    let endpoint = world.endpoints[0][0];
    let least = WATCH_INTERVAL_LEAST;
    for (interval, timeout, believe, position) in [
        (least - 1, 1 << 20, 0, 1),
        (1 << 30, 1 << 31, 0, 1),
        (least, 2 * least - 1, 0, 2),
        (least, 1 << 31, 0, 2),
        (0, 1, 0, 2),
        (0, 0, 2, 3),
    ] {
        let asked = WatchPeers {
            endpoint,
            interval,
            timeout,
            believe,
        };
        let refused = ask::<_, Nothing>(&mut world, 0, Command::WatchPeers, asked);
        promise_eq!(refused, Err((MailboxStatus::InvalidArgument, position)));
    }
    let declared = ask::<_, Nothing>(&mut world, 0, Command::DeclareFailed, Pair { pair: 77 });
    promise_eq!(declared, Err((MailboxStatus::NotFound, 0)));
    world.accept(0, 0);
    let (pair, _) = world.pairs[0][0];
    let declared = ask::<_, Nothing>(&mut world, 0, Command::DeclareFailed, Pair { pair });
    promise_eq!(declared, Err((MailboxStatus::NotConnected, 0)));
}

/// The changes of pairs whose peers fail, by the gates' word, the host's, another's, and by silence.
pub fn transitions() -> HashSet<(State, Cause, State)> {
    let mut reached = peers_fail_in_every_way().transitions;
    reached.extend(a_failure_is_told(1).transitions);
    reached
}

/// A peer fails in each state that it may be in.
fn peers_fail_in_every_way() -> World {
    let (mut world, [one, two, between]) = three();
    // Of the gates.
    let status = Status::PeerFailed.code().into();
    world.cards[0].card().fail(id_index(two.0), status);
    world.pass(10_000);
    let retries = (PeerState::Failed, FailureCause::Retries);
    promise_eq!(peer(&mut world, 0, two.0), retries);
    // Of the host's word, of one that is suspected.
    watch(&mut world, 1, LOOKS, 1);
    world.weather = CUT;
    world.pass((LOOKS - 1) * INTERVAL);
    promise_eq!(peer(&mut world, 1, one.1).0, PeerState::Suspect);
    let pair = Pair { pair: one.1 };
    promise_eq!(
        ask(&mut world, 1, Command::DeclareFailed, pair),
        Ok(Nothing {})
    );
    world.weather = CALM;
    world.pass(2 * INTERVAL);
    promise_eq!(peer(&mut world, 1, between.0), ALIVE);
    // It comes back, and fails again: the same endpoint, and one that nobody had closed.
    for card in [0, 1] {
        let pair = Pair {
            pair: [one.0, one.1][card],
        };
        promise_eq!(
            ask(&mut world, card, Command::ClosePair, pair),
            Ok(Nothing {})
        );
    }
    let (_, back) = join(&mut world, 0, 1);
    promise_eq!(peer(&mut world, 1, back).0, PeerState::Rejoined);
    world.weather = CUT;
    world.pass(SURELY);
    let silent = (PeerState::Failed, FailureCause::Silence);
    promise_eq!(peer(&mut world, 1, back), silent);
    world.weather = CALM;
    let pair = Pair { pair: back };
    promise_eq!(ask(&mut world, 1, Command::ClosePair, pair), Ok(Nothing {}));
    let (_, back) = join(&mut world, 0, 1);
    let pair = Pair { pair: back };
    promise_eq!(
        ask(&mut world, 1, Command::DeclareFailed, pair),
        Ok(Nothing {})
    );
    world.pass(1_000);
    world
}

/// Card 0 is connected to both endpoints of card 1, and one of them fails: the other is suspected, whether or not it had failed before, and is found alive.
fn a_neighbour_fails(returned: bool) -> World {
    let mut world = two(1, CALM);
    world.open_endpoint(1);
    world.pass(20_000);
    let pair_with = |world: &mut World, at: usize| {
        world.accept(1, at);
        world.pass(20_000);
        world.connect(0, 0, 1, at as u32, 0);
        world.pass(60_000);
        let (pair, _) = *world.pairs[0].last().expect("a pair");
        promise!(peer(world, 0, pair).1 == FailureCause::None);
        pair
    };
    let first = pair_with(&mut world, 0);
    let mut second = pair_with(&mut world, 1);
    if returned {
        let pair = Pair { pair: second };
        promise_eq!(
            ask(&mut world, 0, Command::DeclareFailed, pair),
            Ok(Nothing {})
        );
        world.pass(50_000);
        promise_eq!(ask(&mut world, 0, Command::ClosePair, pair), Ok(Nothing {}));
        let other = Pair {
            pair: world.pairs[1].last().expect("a pair").0,
        };
        promise_eq!(
            ask(&mut world, 1, Command::ClosePair, other),
            Ok(Nothing {})
        );
        second = pair_with(&mut world, 1);
        promise_eq!(peer(&mut world, 0, second).0, PeerState::Rejoined);
    }
    watch(&mut world, 0, LOOKS, 0);
    world.weather = CUT;
    let status = Status::PeerFailed.code().into();
    world.cards[0].card().fail(id_index(first), status);
    world.pass(1_000);
    promise_eq!(peer(&mut world, 0, second).0, PeerState::Suspect);
    world.weather = CALM;
    world.pass(2 * INTERVAL);
    promise_eq!(peer(&mut world, 0, second), ALIVE);
    world
}

#[test]
fn every_change_of_what_is_thought_of_a_peer_happens() {
    let mut reached = peers_fail_in_every_way().peer_transitions;
    for returned in [false, true] {
        reached.extend(a_neighbour_fails(returned).peer_transitions);
    }
    let missing: Vec<_> = TRANSITIONS
        .iter()
        .filter(|row| !reached.contains(row))
        .collect();
    promise!(missing.is_empty(), "never seen: {missing:?}");
}

#[test]
pub fn a_peer_that_has_closed_its_side_has_failed_by_that() {
    let mut world = two(1, CALM);
    let (near, far) = join(&mut world, 0, 1);
    let closed = ask(&mut world, 1, Command::ClosePair, Pair { pair: far });
    promise_eq!(closed, Ok(Nothing {}));
    world.pass(50_000);
    let failure = (PeerState::Failed, FailureCause::Closed);
    promise_eq!(peer(&mut world, 0, near), failure);
    let place = id_index(near);
    promise_eq!(failed(&mut world, 0), [place]);
    promise_eq!(events(&mut world, 0, EventCause::PeerFailed).len(), 1);
    promise!(events(&mut world, 0, EventCause::LinkError).is_empty());
}

/// The gates take the peer of card 0's pair to have failed, the pair is read by the host and, if it drains, by the firmware, and then their event comes. The state
/// that the host is told of the pair.
fn read_before_the_event(world: &mut World, near: u32) -> u32 {
    let card = world.cards[0].card();
    card.holds_events = true;
    card.fail(id_index(near), Status::PeerFailed.code().into());
    world.query(0, near).expect("an open pair");
    world.pass(10_000);
    // What was read says who has failed, before the event does.
    let read = world.query(0, near).expect("an open pair");
    promise_eq!(read.failure, u32::from(FailureCause::Retries.code()));
    let state = read.state;
    world.cards[0].card().holds_events = false;
    world.pass(10_000);
    let failure = (PeerState::Failed, FailureCause::Retries);
    promise_eq!(peer(world, 0, near), failure);
    promise_eq!(failed(world, 0), [id_index(near)]);
    let (place, told) = (id_index(near).into(), EventCause::PeerFailed.code().into());
    let audited = (0..).map_while(|entry| {
        let found: AuditEntry = ask(world, 0, Command::ReadAudit, AuditIndex { entry }).ok()?;
        (found.count != 0).then_some((found.kind, found.object, found.info))
    });
    let expected = (AuditKind::GateEvent.code().into(), place, told);
    promise!(audited.collect::<Vec<_>>().contains(&expected));
    state
}

/// As it broke: a pair that was found failed when events had been lost was taken for one whose link had failed, and `ReadFailed` didn't name its peer.
#[test]
pub fn a_failure_whose_event_was_lost_is_the_peers_all_the_same() {
    for closes in [false, true] {
        let mut world = two(1, CALM);
        let (near, far) = join(&mut world, 0, 1);
        let card = world.cards[0].card();
        card.loses_events = true;
        match closes {
            // The peer's gates say that its side is closed.
            true => {
                let _: Nothing =
                    ask(&mut world, 1, Command::ClosePair, Pair { pair: far }).unwrap();
            }
            false => card.fail(id_index(near), Status::PeerFailed.code().into()),
        }
        world.pass(10_000);
        world.cards[0].card().loses_events = false;
        let cause = match closes {
            true => FailureCause::Closed,
            false => FailureCause::Retries,
        };
        promise_eq!(peer(&mut world, 0, near), (PeerState::Failed, cause));
        promise_eq!(failed(&mut world, 0), [id_index(near)]);
    }
}

/// `posthorn bench failure` asked for a pair after its last completion and before the firmware had taken the event: the peer stayed `Alive`, and no command named it.
#[test]
pub fn a_failure_that_is_read_before_the_gates_tell_of_it_is_the_peers_all_the_same() {
    let mut world = two(1, CALM);
    let (near, _) = join(&mut world, 0, 1);
    let state = read_before_the_event(&mut world, near);
    promise_eq!(state, u32::from(PairState::Failed.code()));
    promise_eq!(events(&mut world, 0, EventCause::PeerFailed).len(), 1);
}

/// Its pair was being disconnected: it ends, and was taken to be no failure.
#[test]
pub fn a_failure_while_a_pair_drains_that_is_read_before_it_is_told_is_the_peers() {
    let mut world = two(1, CALM);
    world.cards[0].card().busy = 1_000_000;
    let (near, _) = join(&mut world, 0, 1);
    let end = Disconnect {
        pair: near,
        timeout: 0,
    };
    promise_eq!(ask(&mut world, 0, Command::Disconnect, end), Ok(Nothing {}));
    let state = read_before_the_event(&mut world, near);
    promise_eq!(state, u32::from(PairState::Disconnected.code()));
}
