//! Revocations that are told to others: who keeps them, who has its gates told, and what a host can do about it.

use crate::breaks::{promise, promise_eq};
use crate::gates::Refusal;
use crate::network::{CALM, ROUGH, Weather, World, for_seeds, several, two};
use crate::peers::{ask, events, join};
use abi::control::{Operation, RuleSetup};
use abi::event::Cause as EventCause;
use abi::mailbox::{
    AuditEntry, AuditIndex, AuditKind, CloseEndpoint, Command, NO_RULE, NameGroup, Nothing, Pair,
    RevokedNumber, RuleId, SetRule, TellRevoked, ToldRevocation, WatchPeers, id_index,
};
use abi::status::MailboxStatus;
use firmware_core::{CONTROL_TIMEOUT, MOST_GROUPS, MOST_REVOCATIONS};

const TAG: u32 = 0xabcd_0007;
const CONTEXT: u32 = 7;
const BITS: u64 = 0x0123_4567_89ab_cdef;
const MASK: u64 = 0xff00_ff00_0000_00ff;
/// A notice has come and its rule is set by then, if no frame is lost.
const SOON: u32 = 60_000;

fn endpoint(world: &World, card: usize) -> u32 {
    world.endpoints[card][0]
}

fn places(pairs: &[u32]) -> u64 {
    pairs.iter().map(|&pair| 1 << id_index(pair)).sum()
}

fn believe(world: &mut World, card: usize, believe: u32) {
    let endpoint = endpoint(world, card);
    let watch = WatchPeers {
        endpoint,
        believe,
        ..WatchPeers::default()
    };
    promise_eq!(ask(world, card, Command::WatchPeers, watch), Ok(Nothing {}));
}

fn told(world: &World, card: usize, context: u32, to: &[u32]) -> TellRevoked {
    TellRevoked {
        endpoint: endpoint(world, card),
        tag: TAG,
        context,
        match_bits: BITS,
        mask: MASK,
        low: places(to),
        high: 0,
    }
}

fn tell(world: &mut World, card: usize, context: u32, to: &[u32]) {
    let told = told(world, card, context, to);
    promise_eq!(ask(world, card, Command::TellRevoked, told), Ok(Nothing {}));
}

fn name(world: &mut World, card: usize, tag: u32, pairs: &[u32]) -> Result<Nothing, Refusal> {
    let group = NameGroup {
        endpoint: endpoint(world, card),
        tag,
        low: places(pairs),
        high: 0,
    };
    ask(world, card, Command::NameGroup, group)
}

/// What an endpoint of a card has been told, read as a host does.
fn read_at(world: &mut World, card: usize, endpoint: u32) -> Vec<ToldRevocation> {
    let sent = world.seen.len();
    let (mut all, mut number) = (Vec::new(), 0);
    loop {
        let from = RevokedNumber { endpoint, number };
        let read = ask(world, card, Command::ReadRevoked, from);
        let one: ToldRevocation = read.expect("an open endpoint");
        if one.number == 0 {
            promise_eq!(one, ToldRevocation::default());
            promise_eq!(world.seen.len(), sent, "somebody else was asked");
            return all;
        }
        promise!(one.number >= number);
        number = one.number + 1;
        all.push(one);
    }
}

fn read(world: &mut World, card: usize) -> Vec<ToldRevocation> {
    let endpoint = endpoint(world, card);
    read_at(world, card, endpoint)
}

fn forget(world: &mut World, card: usize, number: u32) -> Result<Nothing, Refusal> {
    let endpoint = endpoint(world, card);
    let forget = RevokedNumber { endpoint, number };
    ask(world, card, Command::ForgetRevoked, forget)
}

/// The rules that a card's gates hold.
fn rules(world: &mut World, card: usize) -> Vec<RuleSetup> {
    world.cards[card].card().rules.values().copied().collect()
}

fn rule(context: u32, pairs: &[u32]) -> RuleSetup {
    RuleSetup {
        context: context as u16,
        match_bits: BITS & MASK,
        mask: MASK,
        pairs_low: places(pairs),
        ..RuleSetup::default()
    }
}

fn set(world: &mut World, card: usize, context: u32, pairs: &[u32]) -> Result<u32, Refusal> {
    let set = SetRule {
        endpoint: endpoint(world, card),
        context,
        match_bits: BITS,
        mask: MASK,
        low: places(pairs),
        high: 0,
    };
    ask::<_, RuleId>(world, card, Command::SetRule, set).map(|set| set.rule)
}

fn clear(world: &mut World, card: usize, rule: u32) {
    let clear = RuleId { rule };
    promise_eq!(ask(world, card, Command::ClearRule, clear), Ok(Nothing {}));
}

/// Entries of a kind in a card's audit: object and `info`.
fn audited(world: &mut World, card: usize, kind: AuditKind) -> Vec<(u32, u32)> {
    let mut found = Vec::new();
    let mut entry = 0;
    loop {
        let index = AuditIndex { entry };
        let read: AuditEntry = ask(world, card, Command::ReadAudit, index).expect("an entry");
        if read.count == 0 {
            return found;
        }
        if read.kind == u32::from(kind.code()) {
            found.push((read.object, read.info));
        }
        entry = read.entry + 1;
    }
}

/// All of `cards` cards are connected: `pairs[a][b]` is the pair of card a with card b.
fn group(cards: usize, seed: u64) -> (World, Vec<Vec<u32>>) {
    let mut world = several(cards, seed, CALM);
    let mut pairs = vec![vec![u32::MAX; cards]; cards];
    let apart = (0..cards).flat_map(|a| (a + 1..cards).map(move |b| (a, b)));
    for (a, b) in apart {
        (pairs[a][b], pairs[b][a]) = join(&mut world, a, b);
    }
    (world, pairs)
}

/// Card 1 believes card 0 and has named the group of the two: the pairs.
fn a_pair(seed: u64, weather: Weather) -> (World, u32, u32) {
    let mut world = two(seed, CALM);
    let (near, far) = join(&mut world, 0, 1);
    believe(&mut world, 1, 1);
    promise_eq!(name(&mut world, 1, TAG, &[far]), Ok(Nothing {}));
    world.weather = weather;
    (world, near, far)
}

fn a_revocation_is_told(seed: u64) {
    let (mut world, pairs) = group(4, seed);
    let members = |card: usize| -> Vec<u32> {
        let others = (0..4).filter(|&other| other != card);
        others.map(|other| pairs[card][other]).collect()
    };
    for card in 1..4 {
        believe(&mut world, card, 1);
        promise_eq!(name(&mut world, card, TAG, &members(card)), Ok(Nothing {}));
    }
    world.weather = ROUGH;
    tell(&mut world, 0, CONTEXT, &[pairs[0][1], pairs[0][2]]);
    world.pass(4_000_000);
    let mut first = Vec::new();
    for card in [1, 2] {
        let all = read(&mut world, card);
        promise_eq!(all.len(), 1, "what card {card} was told");
        let expected = ToldRevocation {
            number: all[0].number,
            pair: pairs[card][0],
            tag: TAG,
            context: CONTEXT,
            match_bits: BITS & MASK,
            mask: MASK,
            rule: all[0].rule,
        };
        promise_eq!(all[0], expected);
        promise!(all[0].rule != NO_RULE, "the gates aren't told");
        promise_eq!(rules(&mut world, card), [rule(CONTEXT, &members(card))]);
        let event = (id_index(pairs[card][0]), u64::from(all[0].number));
        promise_eq!(events(&mut world, card, EventCause::Revoked), [event]);
        first.push(all);
    }
    promise!(read(&mut world, 3).is_empty(), "it wasn't chosen");
    promise!(rules(&mut world, 3).is_empty() && rules(&mut world, 0).is_empty());
    // Another says the same, and all frames of before come again.
    tell(&mut world, 2, CONTEXT, &[pairs[2][1]]);
    world.calm_down();
    world.repeat_all();
    world.pass(SOON);
    for (card, first) in [1, 2].into_iter().zip(first) {
        promise_eq!(events(&mut world, card, EventCause::Revoked).len(), 1);
        let mut now = read(&mut world, card);
        now[0].pair = first[0].pair;
        promise_eq!(now, first, "told once, whoever says so");
        promise_eq!(rules(&mut world, card).len(), 1);
    }
    for card in 0..4 {
        promise_eq!(world.cards[card].next_deadline(), None, "told for ever");
    }
}

#[test]
pub fn a_revocation_is_told_once_to_those_that_are_chosen_whatever_happens_to_the_frames() {
    for_seeds(a_revocation_is_told);
}

#[test]
pub fn who_is_not_believed_revokes_nothing() {
    let (mut world, near, far) = a_pair(1, CALM);
    believe(&mut world, 1, 0);
    tell(&mut world, 0, CONTEXT, &[near]);
    world.pass(SOON);
    promise!(read(&mut world, 1).is_empty());
    promise!(rules(&mut world, 1).is_empty());
    promise!(events(&mut world, 1, EventCause::Revoked).is_empty());
    promise_eq!(audited(&mut world, 1, AuditKind::NotBelieved), [(far, 0)]);
    promise_eq!(world.cards[0].next_deadline(), None, "told for ever");
}

#[test]
fn a_peer_that_has_failed_revokes_nothing_any_more() {
    let (mut world, near, far) = a_pair(1, CALM);
    tell(&mut world, 0, CONTEXT, &[near]);
    world.pass(SOON);
    let number = read(&mut world, 1)[0].number;
    promise_eq!(forget(&mut world, 1, number), Ok(Nothing {}));
    let failed = ask(&mut world, 1, Command::DeclareFailed, Pair { pair: far });
    promise_eq!(failed, Ok(Nothing {}));
    world.repeat_all();
    world.pass(SOON);
    promise!(read(&mut world, 1).is_empty());
    promise!(rules(&mut world, 1).is_empty());
}

#[test]
pub fn a_revocation_waits_for_a_group_of_its_name_that_its_peer_is_of() {
    let (mut world, pairs) = group(3, 1);
    believe(&mut world, 1, 1);
    let (teller, other) = (pairs[1][0], pairs[1][2]);
    let strange = name(&mut world, 1, TAG + 1, &[teller, other]);
    promise_eq!(strange, Ok(Nothing {}));
    tell(&mut world, 0, CONTEXT, &[pairs[0][1]]);
    world.pass(SOON);
    let all = read(&mut world, 1);
    promise_eq!((all.len(), all[0].rule), (1, NO_RULE), "no such group");
    promise_eq!(name(&mut world, 1, TAG, &[other]), Ok(Nothing {}));
    world.pass(SOON);
    promise!(rules(&mut world, 1).is_empty(), "revoked by a stranger");
    // A member says the same.
    tell(&mut world, 2, CONTEXT, &[pairs[2][1]]);
    world.pass(SOON);
    promise_eq!(rules(&mut world, 1), [rule(CONTEXT, &[other])]);
    let all = read(&mut world, 1);
    promise_eq!((all.len(), all[0].pair), (1, other));
    promise_eq!(events(&mut world, 1, EventCause::Revoked).len(), 1);
    // What is set stays as it was set.
    promise_eq!(name(&mut world, 1, TAG, &[teller, other]), Ok(Nothing {}));
    world.pass(SOON);
    promise_eq!(rules(&mut world, 1), [rule(CONTEXT, &[other])]);
}

#[test]
fn a_revocation_waits_for_a_rule_that_is_free() {
    let (mut world, near, far) = a_pair(1, CALM);
    let held: Vec<_> = (0..4)
        .map(|k| set(&mut world, 1, 20 + k, &[far]).expect("a rule"))
        .collect();
    tell(&mut world, 0, CONTEXT, &[near]);
    world.pass(SOON);
    promise_eq!(read(&mut world, 1)[0].rule, NO_RULE);
    clear(&mut world, 1, held[2]);
    world.pass(SOON);
    promise!(rules(&mut world, 1).contains(&rule(CONTEXT, &[far])));
    promise_eq!(id_index(read(&mut world, 1)[0].rule), id_index(held[2]));
}

#[test]
pub fn a_host_takes_over_the_rule_that_a_peers_word_has_set() {
    let (mut world, near, far) = a_pair(1, CALM);
    tell(&mut world, 0, CONTEXT, &[near]);
    world.pass(SOON);
    let by_peer = read(&mut world, 1)[0];
    let taken = set(&mut world, 1, CONTEXT, &[far]);
    promise_eq!(taken, Ok(by_peer.rule));
    promise_eq!(rules(&mut world, 1).len(), 1);
    // It is the host's now, and another is another.
    let other = set(&mut world, 1, CONTEXT, &[far]).expect("a rule");
    promise!(other != by_peer.rule);
    clear(&mut world, 1, other);
    promise_eq!(forget(&mut world, 1, by_peer.number), Ok(Nothing {}));
    world.pass(SOON);
    promise_eq!(rules(&mut world, 1), [rule(CONTEXT, &[far])]);
    // What the host has set before serves a peer's word.
    tell(&mut world, 0, CONTEXT, &[near]);
    world.pass(SOON);
    let again = read(&mut world, 1)[0];
    promise_eq!(again.rule, by_peer.rule);
    promise!(again.number != by_peer.number);
    clear(&mut world, 1, again.rule);
    world.pass(SOON);
    promise!(read(&mut world, 1).is_empty(), "cleared and still revoked");
    promise!(rules(&mut world, 1).is_empty());
}

#[test]
pub fn what_is_forgotten_is_revoked_no_more_and_can_be_told_again() {
    let (mut world, near, _) = a_pair(1, CALM);
    let mut last = 0;
    for times in 1..4 {
        tell(&mut world, 0, CONTEXT, &[near]);
        world.pass(SOON);
        let all = read(&mut world, 1);
        promise_eq!(all.len(), 1);
        promise!(all[0].number > last, "a number that has been");
        last = all[0].number;
        promise_eq!(events(&mut world, 1, EventCause::Revoked).len(), times);
        promise_eq!(rules(&mut world, 1).len(), 1);
        promise_eq!(forget(&mut world, 1, last), Ok(Nothing {}));
        let gone = forget(&mut world, 1, last);
        promise_eq!(gone, Err((MailboxStatus::NotFound, 0)));
        world.pass(SOON);
        promise!(read(&mut world, 1).is_empty());
        promise!(rules(&mut world, 1).is_empty(), "the gates still refuse it");
    }
}

#[test]
pub fn no_endpoint_takes_the_places_of_another() {
    let (mut world, near, far) = a_pair(1, CALM);
    world.open_endpoint(1);
    world.pass(20_000);
    let share = MOST_REVOCATIONS / 2;
    for context in 0..share as u32 + 1 {
        tell(&mut world, 0, context, &[near]);
        world.pass(SOON);
    }
    promise_eq!(read(&mut world, 1).len(), share);
    // Half of the rules may be set by the word of this endpoint's peers.
    promise_eq!(rules(&mut world, 1).len(), 2);
    let not_kept = audited(&mut world, 1, AuditKind::RevocationNotKept);
    promise_eq!(not_kept, [(far, share as u32)]);
    let second = world.endpoints[1][1];
    promise!(read_at(&mut world, 1, second).is_empty());
    // It is told again, until there is room.
    promise_eq!(forget(&mut world, 1, 1), Ok(Nothing {}));
    world.pass(2_000_000);
    let all = read(&mut world, 1);
    promise_eq!(all.len(), share);
    promise_eq!(all[share - 1].context, share as u32);
    promise_eq!(world.cards[0].next_deadline(), None, "told for ever");
    promise_eq!(
        rules(&mut world, 1).len(),
        2,
        "the next in turn has the rule"
    );
}

#[test]
fn names_of_groups_run_out_and_are_checked() {
    let (mut world, _, far) = a_pair(1, CALM);
    let share = MOST_GROUPS as u32 / 2;
    for k in 1..share {
        promise_eq!(name(&mut world, 1, TAG + k, &[far]), Ok(Nothing {}));
    }
    let full = Err((MailboxStatus::NoResource, 0));
    promise_eq!(name(&mut world, 1, TAG + share, &[far]), full);
    promise_eq!(name(&mut world, 1, TAG + 1, &[far]), Ok(Nothing {}));
    promise_eq!(name(&mut world, 1, TAG + 1, &[]), Ok(Nothing {}));
    promise_eq!(name(&mut world, 1, TAG + share, &[far]), Ok(Nothing {}));
    let mut wrong = NameGroup {
        endpoint: endpoint(&world, 1),
        tag: TAG,
        low: 1 << 7,
        high: 0,
    };
    let refused = |world: &mut World, wrong| -> Result<Nothing, Refusal> {
        ask(world, 1, Command::NameGroup, wrong)
    };
    let invalid = |position| Err((MailboxStatus::InvalidArgument, position));
    promise_eq!(refused(&mut world, wrong), invalid(2));
    (wrong.low, wrong.high) = (places(&[far]), 1);
    promise_eq!(refused(&mut world, wrong), invalid(3));
}

#[test]
fn what_cannot_be_told_is_refused() {
    let (mut world, near, _) = a_pair(1, Weather { lost: 100, ..CALM });
    let asked = |world: &mut World, told: TellRevoked| -> Result<Nothing, Refusal> {
        ask(world, 0, Command::TellRevoked, told)
    };
    let wrong = told(&world, 0, 0x1_0000, &[near]);
    let refused = Err((MailboxStatus::InvalidArgument, 2));
    promise_eq!(asked(&mut world, wrong), refused);
    let good = told(&world, 0, CONTEXT, &[near]);
    let gone = TellRevoked {
        endpoint: 77,
        ..good
    };
    let not_found = Err((MailboxStatus::NotFound, 0));
    promise_eq!(asked(&mut world, gone), not_found);
    let taken = (0..10).take_while(|_| asked(&mut world, good).is_ok());
    promise!(taken.count() < 10);
    promise_eq!(asked(&mut world, good), Err((MailboxStatus::Busy, 0)));
    world.weather = CALM;
    world.pass(4_000_000);
    promise_eq!(asked(&mut world, good), Ok(Nothing {}));
}

#[test]
pub fn nothing_outlives_its_endpoint() {
    let (mut world, near, _) = a_pair(1, CALM);
    tell(&mut world, 0, CONTEXT, &[near]);
    world.pass(SOON);
    promise_eq!(rules(&mut world, 1).len(), 1);
    let endpoint = world.endpoints[1].remove(0);
    let close = CloseEndpoint { endpoint };
    let closed = ask(&mut world, 1, Command::CloseEndpoint, close);
    promise_eq!(closed, Ok(Nothing {}));
    promise!(rules(&mut world, 1).is_empty());
    world.open_endpoint(1);
    world.pass(SOON);
    promise!(read(&mut world, 1).is_empty(), "told to somebody else");
    promise!(rules(&mut world, 1).is_empty());
}

/// An endpoint is closed while the gates are about to be told.
#[test]
fn a_rule_that_was_to_be_set_when_its_endpoint_was_closed_is_not_left_behind() {
    for wait in (0..4_000).step_by(97) {
        let (mut world, near, _) = a_pair(1, CALM);
        world.cards[1].card().delay = 700;
        tell(&mut world, 0, CONTEXT, &[near]);
        world.pass(wait);
        let endpoint = world.endpoints[1].remove(0);
        let close = CloseEndpoint { endpoint };
        let closed = ask(&mut world, 1, Command::CloseEndpoint, close);
        promise_eq!(closed, Ok(Nothing {}));
        world.pass(SOON);
        promise!(
            rules(&mut world, 1).is_empty(),
            "closed after {wait} cycles"
        );
        world.open_endpoint(1);
        world.pass(SOON);
        let (pair, _) = {
            world.accept(1, 0);
            world.pass(20_000);
            *world.pairs[1].last().expect("a pair")
        };
        for context in 0..4 {
            let rule = set(&mut world, 1, context, &[pair]);
            promise!(rule.is_ok(), "a row is lost");
        }
    }
}

#[test]
pub fn a_pair_is_of_no_group_that_the_one_before_in_its_place_was_of() {
    let (mut world, near, far) = a_pair(1, CALM);
    for (card, pair) in [(0, near), (1, far)] {
        let closed = ask(&mut world, card, Command::ClosePair, Pair { pair });
        promise_eq!(closed, Ok(Nothing {}));
    }
    let (again, next) = join(&mut world, 0, 1);
    promise_eq!(id_index(next), id_index(far));
    tell(&mut world, 0, CONTEXT, &[again]);
    world.pass(SOON);
    promise_eq!(read(&mut world, 1)[0].rule, NO_RULE);
    promise!(rules(&mut world, 1).is_empty());
}

#[test]
fn a_rule_whose_setting_is_answered_late_is_cleared_and_set_again() {
    let mut were_late = 0;
    for patience in [0, 1] {
        let (mut world, near, far) = a_pair(1, CALM);
        // Beside it the event is to be raised, before it or after.
        world.cards[1].card().patience = patience;
        tell(&mut world, 0, CONTEXT, &[near]);
        world.pass(SOON + 3 * CONTROL_TIMEOUT);
        let late = audited(&mut world, 1, AuditKind::ControlTimeout);
        were_late += usize::from(late.contains(&(0, Operation::RuleSet.code().into())));
        world.cards[1].card().patience = usize::MAX;
        world.pass(SOON);
        promise_eq!(rules(&mut world, 1), [rule(CONTEXT, &[far])]);
        promise!(read(&mut world, 1)[0].rule != NO_RULE);
    }
    promise!(were_late > 0, "no rule was late");
}
