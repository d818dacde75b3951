//! Messages that are revoked: what was pending of them ends, what had come is discarded, and nothing new is taken.

use crate::common::{PATIENCE, Side, able, able_options, connected, options};
use crate::drain::{CONTEXT, assert_epoch_is_clean, fabric, members};
use host_driver::{
    Counter, Endpoint, Group, MessageSet, Pair, PostError, RequestState, Revocation, Source, Swept,
    TaggedReceive, TaggedSend, WcKind, WcStatus,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use soft_card::{Sizes, SoftFabric, SoftOptions};
use std::collections::BTreeMap;

/// Long enough for all that the cards can do by themselves.
const REST: u64 = 1_000_000;

/// The group of one peer, of rank 1.
fn one(side: &Side) -> Group {
    Group::new(&side.endpoint, &[(1, side.pair)], 0).expect("a group")
}

fn revoke(side: &Side, group: &Group, messages: &MessageSet) -> Revocation {
    let revoked = side.endpoint.revoke(group, messages, PATIENCE);
    revoked.expect("revoked")
}

fn swept(receives: usize, sends: usize, messages: usize) -> Swept {
    Swept {
        receives,
        sends,
        messages,
    }
}

fn send(side: &Side, context: u16, match_bits: u64) -> TaggedSend {
    TaggedSend {
        context,
        ..side.send(match_bits)
    }
}

fn receive(side: &Side, context: u16, match_bits: u64) -> TaggedReceive {
    TaggedReceive {
        context,
        ..side.receive(match_bits)
    }
}

fn from_any(receive: TaggedReceive) -> TaggedReceive {
    TaggedReceive {
        source: Source::Any,
        ..receive
    }
}

trait Sends {
    /// Posts a send of eight bytes.
    fn put(&mut self, wr_id: u64, send: &TaggedSend);
}

impl Sends for Side {
    fn put(&mut self, wr_id: u64, send: &TaggedSend) {
        let buffer = self.filled(&wr_id.to_le_bytes());
        let posted = self.endpoint.post_tagged_send(wr_id, send, buffer);
        posted.expect("room");
    }
}

/// Lets the cards do all that they can. The libraries feed them what they keep.
fn rest(sides: &[&Side]) {
    for _ in 0..20 {
        sides[0].pause(REST / 20);
        sides.iter().for_each(|side| _ = side.cq.is_ready());
    }
}

/// All that has completed in the end.
fn ended(side: &Side) -> Vec<(u64, WcKind, WcStatus)> {
    let mut all = Vec::new();
    for _ in 0..20 {
        side.pause(REST / 20);
        let done = std::iter::from_fn(|| side.cq.poll());
        all.extend(done.map(|done| (done.wr_id, done.kind, done.status)));
    }
    all
}

/// What the pair has in hand, waiting and unacknowledged.
fn credits(side: &Side) -> (u32, u32, u32) {
    let status = side.endpoint.query_pair(side.pair).expect("open");
    (status.available, status.waiting, status.unacknowledged)
}

fn drops(side: &Side) -> u64 {
    side.device
        .read_counter(Counter::RuleDrops)
        .expect("within reach")
}

/// One more pair between two endpoints.
fn another_pair(a: &Endpoint, b: &Endpoint) -> (Pair, Pair) {
    let (to_b, a_address) = a.open_pair(4).expect("a pair");
    let (to_a, b_address) = b.open_pair(4).expect("a pair");
    a.connect_pair(to_b, &b_address).expect("connected");
    b.connect_pair(to_a, &a_address).expect("connected");
    (to_b, to_a)
}

#[test]
pub fn what_is_pending_ends_as_revoked_and_what_had_come_is_discarded() {
    let (mut a, mut b) = able(2);
    b.post(1, &b.receive(1));
    b.post(2, &from_any(b.receive(2)));
    b.post(3, &receive(&b, 8, 1));
    for wr_id in 10..15 {
        b.put(wr_id, &b.send(5));
    }
    for wr_id in 20..22 {
        a.put(wr_id, &a.send(9));
    }
    b.pause(REST);
    let context = MessageSet::of_context(0);
    let revoked = revoke(&b, &one(&b), &context);
    // Two of the sends had left.
    assert_eq!(revoked.swept, swept(2, 3, 2));
    let mut told = ended(&b);
    told.sort_by_key(|&(wr_id, _, _)| wr_id);
    let (receives, sends) = (WcKind::Receive, WcKind::Send);
    let (success, revoked) = (WcStatus::Success, WcStatus::Revoked);
    let wanted = [
        (1, receives, revoked),
        (2, receives, revoked),
        (10, sends, success),
        (11, sends, success),
        (12, sends, revoked),
        (13, sends, revoked),
        (14, sends, revoked),
    ];
    assert_eq!(told, wanted);
    assert_eq!((b.cq.outstanding(), b.cq.strays()), (1, 0));
    assert_eq!(ended(&a).len(), 2, "they had been delivered");
    assert_eq!(credits(&a), (2, 0, 0), "the credits of what was discarded");
    // The other context goes on.
    a.put(30, &send(&a, 8, 1));
    let taken = b.next();
    assert_eq!((taken.wr_id, taken.status), (3, success));
}

#[test]
pub fn what_comes_is_dropped_with_its_credit_and_what_would_take_it_is_refused() {
    let (mut a, mut b) = able(2);
    let rule = revoke(&b, &one(&b), &MessageSet::of_context(0)).rule;
    for wr_id in 0..10 {
        a.put(wr_id, &a.send(wr_id));
    }
    let told = ended(&a);
    assert!(
        told.iter()
            .all(|&(_, _, status)| status == WcStatus::Success)
    );
    assert_eq!((told.len(), drops(&b)), (10, 10));
    assert_eq!(credits(&a), (2, 0, 0));
    // A ready send asks for no receive here.
    let buffer = a.buffer(8);
    a.endpoint.post_ready_send(10, &a.send(1), buffer).unwrap();
    assert_eq!(a.next().status, WcStatus::Success);
    b.post(1, &b.receive(1));
    b.post(2, &from_any(b.receive(1)));
    b.endpoint.probe(3, &b.receive(1)).unwrap();
    b.endpoint.claim(4, &b.receive(1)).unwrap();
    for wr_id in 1..5 {
        let refused = b.next();
        assert_eq!((refused.wr_id, refused.status), (wr_id, WcStatus::Revoked));
    }
    let buffer = b.buffer(8);
    let refused = b
        .endpoint
        .post_tagged_send(5, &b.send(1), buffer)
        .unwrap_err();
    assert_eq!(
        (refused.error, refused.buffer.len()),
        (PostError::Revoked, 8)
    );
    let inject = b.endpoint.post_tagged_inject(6, &b.send(1), b"no");
    assert_eq!(inject, Err(PostError::Revoked));
    // Another context goes on.
    b.post(7, &receive(&b, 1, 1));
    a.put(11, &send(&a, 1, 1));
    assert_eq!(b.next().status, WcStatus::Success);
    assert_eq!(a.next().status, WcStatus::Success);
    // And so does this one, once the rule is cleared.
    b.endpoint.restore(rule).expect("cleared");
    b.post(8, &b.receive(1));
    a.put(12, &a.send(1));
    let taken = b.next();
    assert_eq!((taken.wr_id, taken.status), (8, WcStatus::Success));
    assert_eq!(taken.received(), 12_u64.to_le_bytes());
    b.put(9, &b.send(1));
    a.post(13, &a.receive(1));
    assert_eq!(b.next().status, WcStatus::Success);
    assert_eq!(drops(&b), 11);
}

#[test]
pub fn only_the_bits_of_the_mask_have_to_agree() {
    let (mut a, mut b) = able(4);
    let messages = MessageSet {
        context: 0,
        match_bits: 0x10,
        mask: 0xf0,
    };
    for (wr_id, bits) in [(1, 0x12), (2, 0x22), (3, 0x10)] {
        b.post(wr_id, &b.receive(bits));
    }
    // It may be for other messages.
    let wide = TaggedReceive {
        ignore_bits: 0x30,
        ..b.receive(0x15)
    };
    b.post(4, &wide);
    let narrow = TaggedReceive {
        ignore_bits: 0xf,
        ..b.receive(0x15)
    };
    b.post(5, &narrow);
    let revoked = revoke(&b, &one(&b), &messages);
    assert_eq!(revoked.swept, swept(3, 0, 0));
    let mut gone = ended(&b);
    gone.sort_by_key(|&(wr_id, _, _)| wr_id);
    assert_eq!(gone.iter().map(|one| one.0).collect::<Vec<_>>(), [1, 3, 5]);
    for bits in [0x15, 0x1f, 0x25, 0x22] {
        a.put(bits, &a.send(bits));
    }
    assert_eq!(b.next().wr_id, 4, "of 0x25");
    assert_eq!(b.next().wr_id, 2, "of 0x22");
    b.pause(REST);
    assert_eq!(drops(&b), 2);
    // What could be for others is posted, and what couldn't is refused.
    b.post(6, &wide);
    b.post(7, &narrow);
    let told = ended(&b);
    assert_eq!(told, [(7, WcKind::Receive, WcStatus::Revoked)]);
}

#[test]
pub fn a_pair_outside_the_group_goes_on() {
    let (mut a, mut b) = able(4);
    let (to_b, to_a) = another_pair(&a.endpoint, &b.endpoint);
    let second = TaggedReceive {
        source: Source::Pair(to_a),
        ..b.receive(1)
    };
    let on_second = TaggedSend {
        pair: to_b,
        ..a.send(1)
    };
    b.post(1, &second);
    b.post(2, &b.receive(1));
    b.post(3, &from_any(b.receive(2)));
    // A message of either has come.
    a.put(1, &a.send(7));
    let seventh = TaggedSend {
        match_bits: 7,
        ..on_second
    };
    a.put(2, &seventh);
    b.pause(REST);
    let context = MessageSet::of_context(0);
    let revoked = revoke(&b, &one(&b), &context);
    assert_eq!(revoked.swept, swept(2, 0, 1));
    let mut gone = ended(&b);
    gone.sort_by_key(|&(wr_id, _, _)| wr_id);
    assert_eq!(gone.iter().map(|one| one.0).collect::<Vec<_>>(), [2, 3]);
    a.put(3, &on_second);
    let taken = b.next();
    assert_eq!((taken.wr_id, taken.status), (1, WcStatus::Success));
    let seventh = TaggedReceive {
        match_bits: 7,
        ..second
    };
    b.post(4, &seventh);
    let taken = b.next();
    assert_eq!((taken.wr_id, taken.pair), (4, Some(to_a)));
    // Any source is of the group.
    b.post(5, &from_any(seventh));
    assert_eq!(b.next().status, WcStatus::Revoked);
    // Sends on it go.
    let buffer = b.buffer(8);
    let send = TaggedSend {
        pair: to_a,
        ..b.send(1)
    };
    b.endpoint
        .post_tagged_send(6, &send, buffer)
        .expect("it goes");
    assert_eq!(b.next().status, WcStatus::Success);
}

#[test]
pub fn another_endpoint_of_the_card_goes_on() {
    let (_a, mut b) = able(4);
    let other = b.pd.endpoint().open().expect("an endpoint");
    revoke(&b, &one(&b), &MessageSet::of_context(0));
    let buffer = b.buffer(8);
    let any = from_any(b.receive(1));
    let posted = other.post_tagged_recv(1, &any, buffer).expect("room");
    b.pause(REST);
    assert!(other.completion_queue().poll().is_none());
    assert_eq!(other.query_request(posted), RequestState::Posted);
}

#[test]
pub fn a_pair_that_is_closed_leaves_the_group() {
    let (mut a, mut b) = able(4);
    let (to_b, to_a) = another_pair(&a.endpoint, &b.endpoint);
    let both = Group::new(&b.endpoint, &[(1, b.pair), (2, to_a)], 0).expect("a group");
    let context = MessageSet::of_context(0);
    revoke(&b, &both, &context);
    b.endpoint.close_pair(to_a).expect("closed");
    a.endpoint.close_pair(to_b).expect("closed");
    let place = to_a.index();
    let (to_b, to_a) = another_pair(&a.endpoint, &b.endpoint);
    assert_eq!(to_a.index(), place, "the next in its place");
    let receive = TaggedReceive {
        source: Source::Pair(to_a),
        ..b.receive(1)
    };
    b.post(1, &receive);
    let send = TaggedSend {
        pair: to_b,
        ..a.send(1)
    };
    a.put(1, &send);
    let taken = b.next_past_events();
    assert_eq!((taken.wr_id, taken.status), (1, WcStatus::Success));
    let send = TaggedSend {
        pair: to_a,
        ..b.send(1)
    };
    b.put(2, &send);
    assert_eq!(b.next_past_events().status, WcStatus::Success);
}

/// Cards with room for this many receives.
fn cramped(posted: u32) -> SoftFabric {
    SoftFabric::new(SoftOptions {
        sizes: Sizes {
            endpoints: 1,
            posted,
            ..able_options().sizes
        },
        ..options()
    })
}

#[test]
pub fn what_the_library_keeps_is_revoked_too_and_the_rest_stays_in_order() {
    for (posted, revoked_first) in [(1, true), (3, false), (8, true)] {
        let (a, mut b) = connected(&cramped(posted), 4);
        // Of two contexts by turns, far more than the card or its list ring hold.
        for k in 0..80 {
            let context = (k % 2 == 0) == revoked_first;
            b.post(k, &receive(&b, context.into(), 7));
        }
        let revoked = revoke(&b, &one(&b), &MessageSet::of_context(1));
        // Those that the card hadn't fetched it has refused by itself.
        assert!(revoked.swept.receives <= 40);
        let told = ended(&b);
        assert_eq!(told.len(), 40);
        for (wr_id, _, status) in told {
            assert_eq!(status, WcStatus::Revoked);
            assert_eq!(wr_id % 2 == 0, revoked_first);
        }
        let first = u64::from(revoked_first);
        for k in (first..80).step_by(2) {
            let sent = a.endpoint.post_tagged_inject(0, &a.send(7), b"in order");
            sent.expect("room");
            let taken = b.next();
            assert_eq!((taken.wr_id, taken.status), (k, WcStatus::Success));
        }
        assert_eq!((b.cq.outstanding(), b.cq.strays()), (0, 0));
    }
}

#[test]
pub fn sends_that_the_library_keeps_are_revoked_and_those_behind_them_go() {
    let (mut a, mut b) = able(2);
    for wr_id in 0..40 {
        b.put(wr_id, &send(&b, (wr_id % 2) as u16, wr_id));
    }
    b.pause(REST);
    let revoked = revoke(&b, &one(&b), &MessageSet::of_context(1));
    // One of the two that had left.
    assert_eq!(revoked.swept, swept(0, 19, 0));
    a.post(100, &receive(&a, 1, 1));
    for wr_id in (0..40).step_by(2) {
        a.post(wr_id, &a.receive(wr_id));
    }
    rest(&[&a, &b]);
    let mut taken: Vec<_> = ended(&a).iter().map(|one| one.0).collect();
    taken.retain(|&wr_id| wr_id != 100);
    let wanted: Vec<_> = (0..40).step_by(2).collect();
    assert_eq!(taken, wanted, "in order");
    let told = ended(&b);
    let revoked = told.iter().filter(|one| one.2 == WcStatus::Revoked);
    assert!(revoked.clone().all(|one| one.0 % 2 == 1));
    assert_eq!((told.len(), revoked.count()), (40, 19));
}

#[test]
pub fn completions_that_the_program_had_not_polled_are_there_in_their_order() {
    let (mut a, mut b) = able(8);
    for wr_id in 0..6 {
        b.post(wr_id, &receive(&b, 1, wr_id));
        a.put(wr_id, &send(&a, 1, wr_id));
    }
    for wr_id in 6..12 {
        a.put(wr_id, &a.send(wr_id));
    }
    b.post(12, &b.receive(99));
    rest(&[&a]);
    let context = MessageSet::of_context(0);
    let revoked = revoke(&b, &one(&b), &context);
    assert_eq!(revoked.swept, swept(1, 0, 6));
    assert!(b.cq.is_ready());
    b.post(13, &receive(&b, 1, 100));
    a.put(13, &send(&a, 1, 100));
    let told: Vec<_> = ended(&b).iter().map(|one| one.0).collect();
    assert_eq!(told, [0, 1, 2, 3, 4, 5, 12, 13]);
    assert_eq!((b.cq.outstanding(), b.cq.strays()), (0, 0));
}

#[test]
pub fn a_revocation_of_what_is_revoked_sets_no_other_rule() {
    let (mut a, b) = able(2);
    let (group, context) = (one(&b), MessageSet::of_context(0));
    let first = revoke(&b, &group, &context);
    for _ in 0..20 {
        let again = revoke(&b, &group, &context);
        assert_eq!((again.rule, again.swept), (first.rule, swept(0, 0, 0)));
    }
    b.endpoint.restore(first.rule).expect("it is set once");
    a.put(1, &a.send(1));
    a.pause(REST);
    assert_eq!(drops(&b), 0);
}

#[test]
fn a_receive_that_matched_before_ends_as_it_ends() {
    let (mut a, mut b) = able(4);
    b.post(1, &b.receive(1));
    a.put(1, &a.send(1));
    b.pause(REST);
    let revoked = revoke(&b, &one(&b), &MessageSet::of_context(0));
    assert_eq!(revoked.swept, swept(0, 0, 0));
    let taken = b.next();
    assert_eq!((taken.wr_id, taken.status), (1, WcStatus::Success));
    assert_eq!(taken.received(), 1_u64.to_le_bytes());
}

#[test]
fn a_group_has_each_rank_and_each_pair_once() {
    let (a, b) = able(2);
    let (_, to_a) = another_pair(&a.endpoint, &b.endpoint);
    let of = |members: &[(u32, Pair)]| Group::new(&b.endpoint, members, 0);
    let group = of(&[(5, to_a), (1, b.pair)]).expect("a group");
    assert_eq!(group.members(), [(1, b.pair), (5, to_a)]);
    assert_eq!(
        (group.pair(5), group.pair(0), group.pair(2)),
        (Some(to_a), None, None)
    );
    assert_eq!((group.rank(b.pair), group.own_rank()), (Some(1), 0));
    for wrong in [
        [(1, b.pair), (1, to_a)],
        [(1, b.pair), (2, b.pair)],
        [(0, b.pair), (1, to_a)],
    ] {
        assert!(of(&wrong).is_err(), "{wrong:?}");
    }
    assert!(of(&[(1, a.pair)]).is_err(), "another endpoint's");
    b.endpoint.close_pair(to_a).expect("closed");
    assert!(of(&[(1, to_a)]).is_err(), "closed");
}

/// Traffic of all with all; cards are switched off at random cycles, and all that live revoke its context at theirs. How many requests have ended as each
/// status.
fn what_is_revoked_ends(seed: u64) -> BTreeMap<&'static str, usize> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let count = rng.random_range(2..=5);
    let fabric = fabric(count, seed);
    let mut all = members(&fabric, count);
    let mut live: Vec<_> = (0..count).collect();
    let mut posted = vec![Vec::new(); count];
    let mut ended: Vec<Vec<(u64, WcStatus)>> = vec![Vec::new(); count];
    while live.len() > 2 && rng.random_ratio(2, 3) {
        let dead = live.remove(rng.random_range(0..live.len()));
        fabric.power_off_at(dead, fabric.now() + rng.random_range(1..200_000));
    }
    // Each member that lives revokes after so many steps of its own; the others know nothing of it.
    let mut revokes: Vec<_> = (0..count).map(|_| rng.random_range(0..50)).collect();
    let mut rules = vec![None; count];
    for word in 0..40 * live.len() as u64 {
        let at = live[rng.random_range(0..live.len())];
        if revokes[at] == 0 && rules[at].is_none() {
            let of_context = MessageSet::of_context(CONTEXT);
            let revoked = all[at]
                .endpoint
                .revoke(&all[at].group, &of_context, PATIENCE);
            rules[at] = Some(revoked.expect("revoked").rule);
        }
        revokes[at] = i32::max(revokes[at] - 1, 0);
        let other = rng.random_range(0..count);
        if other == at {
            all[at].pause(rng.random_range(0..40_000));
        } else if rng.random() {
            match all[at].send(other, word) {
                Ok(()) => {
                    assert_eq!(rules[at], None, "seed {seed}: it is refused");
                    posted[at].push(word);
                }
                Err(error) => assert_eq!((error, rules[at].is_some()), (PostError::Revoked, true)),
            }
        } else {
            let source = rng.random::<bool>().then_some(other);
            all[at].receive(word, source).expect("posted");
            posted[at].push(word);
        }
        let told = all[at].completions().into_iter();
        ended[at].extend(told.map(|told| (told.wr_id, told.status)));
    }
    for &at in &live {
        if rules[at].is_none() {
            let of_context = MessageSet::of_context(CONTEXT);
            let revoked = all[at]
                .endpoint
                .revoke(&all[at].group, &of_context, PATIENCE);
            rules[at] = Some(revoked.expect("revoked").rule);
        }
    }
    // By then the cards have given up what left to those that are dead.
    all[live[0]].pause(2 * REST);
    let mut statuses = BTreeMap::new();
    for &at in &live {
        let told = all[at].completions().into_iter();
        ended[at].extend(told.map(|told| (told.wr_id, told.status)));
        assert_eq!((all[at].cq.outstanding(), all[at].cq.strays()), (0, 0));
        for &(_, status) in &ended[at] {
            *statuses.entry(status.name()).or_default() += 1;
        }
        let mut names: Vec<_> = ended[at].iter().map(|told| told.0).collect();
        names.sort_unstable();
        assert_eq!(names, posted[at], "seed {seed}: each of {at} ends once");
    }
    // Whoever lives agrees: nothing of before comes when the rules are cleared, and all credits are there.
    for &at in &live {
        let rule = rules[at].expect("it has revoked");
        all[at].endpoint.restore(rule).expect("it holds");
    }
    for _ in 0..5 {
        assert_epoch_is_clean(&mut all, &live);
    }
    statuses
}

fn what_is_revoked_ends_in(runs: u64) {
    let mut statuses: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in 0..runs {
        for (status, count) in what_is_revoked_ends(seed) {
            *statuses.entry(status).or_default() += count;
        }
    }
    println!("{runs} runs: {statuses:?}");
    let known = ["PeerFailed", "Revoked", "Success"];
    assert!(statuses.keys().eq(&known), "{statuses:?}");
    assert!(statuses.values().all(|&count| count as u64 >= runs));
}

#[test]
fn what_is_revoked_ends_whoever_fails_meanwhile_and_survivors_go_on() {
    what_is_revoked_ends_in(30);
}

#[test]
#[ignore = "three thousand runs take minutes"]
fn what_is_revoked_ends_in_three_thousand_runs() {
    what_is_revoked_ends_in(3_000);
}
