//! Revocations that a process is told by another: what its card does by itself, and what the program makes of it.

use crate::common::{PATIENCE, Side, able};
use host_driver::{
    Cause, Group, MessageSet, Source, TaggedReceive, ToldRevocation, WaitError, WatchOptions,
    WcStatus,
};

const TAG: u32 = 9;
/// Context 0, of the communicator 3 in the upper bits.
const MESSAGES: MessageSet = MessageSet {
    context: 0,
    match_bits: 3 << 32 | 5,
    mask: 0xffff << 32,
};
/// Long enough for two firmwares to tell each other something.
const SOON: u64 = 100_000;

fn believing(side: &Side, believe_peers: bool) {
    let options = WatchOptions {
        believe_peers,
        ..WatchOptions::OFF
    };
    side.endpoint.watch_peers(options).expect("watched");
}

fn group(side: &Side) -> Group {
    Group::new(&side.endpoint, &[(1, side.pair)], 0).expect("a group")
}

/// A receive of the communicator, from anyone.
fn anyone(tag: u64) -> TaggedReceive {
    TaggedReceive {
        source: Source::Any,
        context: 0,
        match_bits: 3 << 32 | tag,
        ignore_bits: 0,
    }
}

fn events(side: &Side) -> Vec<(Cause, u64)> {
    let events = std::iter::from_fn(|| side.endpoint.poll_event().expect("within reach"));
    events.map(|event| (event.cause, event.info)).collect()
}

/// The only one that a side has been told.
fn told(side: &Side) -> ToldRevocation {
    let all = side.endpoint.revoked().expect("an open endpoint");
    assert_eq!(all.len(), 1, "{all:?}");
    all[0]
}

#[test]
fn a_card_refuses_what_its_peers_have_revoked_before_its_program_knows() {
    let (mut a, mut b) = able(4);
    believing(&b, true);
    b.endpoint.name_group(TAG, &group(&b)).expect("named");
    b.post(1, &anyone(1));
    let to = [a.pair];
    a.endpoint.tell_revoked(TAG, &MESSAGES, &to).expect("told");
    b.pause(SOON);
    // The program has taken no event and given no command: it posts, and a message comes.
    b.post(2, &anyone(2));
    assert_eq!(b.next_past_events().status, WcStatus::Revoked);
    let buffer = a.buffer(8);
    let send = a.send(3 << 32 | 3);
    a.endpoint.post_tagged_send(3, &send, buffer).expect("room");
    assert_eq!(a.next_past_events().status, WcStatus::Success);
    let told = told(&b);
    assert_eq!((told.from, told.tag), (Some(b.pair), TAG));
    assert!(told.is_refused);
    let normal = MessageSet {
        match_bits: 3 << 32,
        ..MESSAGES
    };
    assert_eq!(told.messages, normal);
    // What was pending ends when the program revokes it too.
    assert!(b.cq.poll().is_none());
    let revoked = b.endpoint.revoke(&group(&b), &told.messages, PATIENCE);
    let revoked = revoked.expect("revoked");
    assert_eq!((revoked.swept.receives, revoked.swept.messages), (1, 0));
    let ended = b.next_past_events();
    assert_eq!((ended.wr_id, ended.status), (1, WcStatus::Revoked));
    // The rule is the card's: the program has it now, and clears it.
    b.endpoint.restore(revoked.rule).expect("it holds");
    assert_eq!(b.endpoint.revoked(), Ok(vec![]));
    b.post(4, &anyone(4));
    let buffer = a.buffer(8);
    let send = a.send(3 << 32 | 4);
    a.endpoint.post_tagged_send(4, &send, buffer).expect("room");
    let ended = b.next_past_events();
    assert_eq!((ended.wr_id, ended.status), (4, WcStatus::Success));
}

#[test]
fn who_waits_is_interrupted_and_reads_what_is_revoked() {
    let (a, mut b) = able(4);
    believing(&b, true);
    b.post(1, &anyone(1));
    let to = [a.pair];
    a.endpoint.tell_revoked(TAG, &MESSAGES, &to).expect("told");
    let waited = b.cq.wait(PATIENCE);
    assert_eq!(waited.err(), Some(WaitError::Interrupted));
    let told = told(&b);
    assert_eq!(events(&b), [(Cause::Revoked, told.number.into())]);
    assert!(!told.is_refused, "the card knows no group");
    // Until it is named.
    b.endpoint.name_group(TAG, &group(&b)).expect("named");
    b.pause(SOON);
    assert!(b.endpoint.revoked().expect("open")[0].is_refused);
    // Told again it is nothing new, until it is forgotten.
    a.endpoint.tell_revoked(TAG, &MESSAGES, &to).expect("told");
    b.pause(SOON);
    assert_eq!(events(&b), []);
    b.endpoint.forget_revoked(&told).expect("kept until now");
    assert_eq!(b.endpoint.revoked(), Ok(vec![]));
    a.endpoint.tell_revoked(TAG, &MESSAGES, &to).expect("told");
    b.pause(SOON);
    let again = self::told(&b);
    assert!(again.number > told.number && again.is_refused);
    assert_eq!(events(&b), [(Cause::Revoked, again.number.into())]);
}

#[test]
fn who_believes_nobody_is_told_nothing() {
    let (a, b) = able(4);
    believing(&b, false);
    b.endpoint.name_group(TAG, &group(&b)).expect("named");
    let to = [a.pair];
    a.endpoint.tell_revoked(TAG, &MESSAGES, &to).expect("told");
    b.pause(SOON);
    assert_eq!(b.endpoint.revoked(), Ok(vec![]));
    assert_eq!(events(&b), []);
}

/// Which of several was told by whom, and in which order.
#[test]
fn all_that_was_told_is_listed_in_order_and_a_pair_that_is_closed_is_not_named() {
    let (a, b) = able(4);
    believing(&b, true);
    for context in [8, 3, 5] {
        let messages = MessageSet::of_context(context);
        let told = a.endpoint.tell_revoked(TAG, &messages, &[a.pair]);
        told.expect("told");
        b.pause(SOON);
    }
    let all = b.endpoint.revoked().expect("open");
    let contexts: Vec<u16> = all.iter().map(|told| told.messages.context).collect();
    assert_eq!(contexts, [8, 3, 5]);
    assert!(all.iter().all(|told| told.from == Some(b.pair)));
    b.endpoint.close_pair(b.pair).expect("open");
    let all = b.endpoint.revoked().expect("open");
    assert!(all.len() == 3 && all.iter().all(|told| told.from.is_none()));
}
