//! Revocations that peers tell of: what is kept of each, and the groups by whose names the gates are told.
//!
//! ```text
//!  Revoked of a peer ─► believed? ─► kept, once ─► event Revoked ─► the host reads it: ReadRevoked
//!                                     │
//!                                     └─ NameGroup has given its name to a group with that peer ─► a rule of that group in the gates
//!  SetRule of the same messages and group: the host takes the rule over      ForgetRevoked, ClearRule: it is forgotten
//! ```
//!
//! A card knows no communicator, and the pairs of a group are other pairs at each of its members. So a revocation travels with the name that the program has given the
//! group, as a [drain](crate::drain) does, and it is this card's own group of that name that is revoked: the peer can't say which pairs it has.
//!
//! **Nobody fills it for others.** Each endpoint has an equal share of the places, and of the rules that may be set by a peer's word. A revocation that finds no place
//! isn't answered, so that its sender tells it again; one that finds no rule is kept, and gets the next that is free.

use crate::argument::Refusal;
use crate::bits::PairBits;
use crate::card::{Break, Card};
use crate::connection::State;
use crate::endpoint::EndpointState;
use crate::firmware::Firmware;
use crate::notice::Signalled;
use crate::rule::{Rule, RuleState};
use abi::capability::CAPABILITY_RULES;
use abi::control::RuleSetup;
use abi::event;
use abi::mailbox::{AuditKind, NO_RULE, ToldRevocation, id_generation, id_index};
use abi::status::MailboxStatus;
use abi::wire::ManagementBody;
use heapless::Vec;

/// Revocations that a card keeps. Each endpoint has an equal share.
pub const MOST_REVOCATIONS: usize = 32;
/// Groups that a card knows by name. Each endpoint has an equal share.
pub const MOST_GROUPS: usize = 16;

/// Messages of a group that are revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Revocation {
    tag: u32,
    context: u16,
    match_bits: u64,
    mask: u64,
}

impl Revocation {
    /// Match bits that don't count are zero, so that what revokes the same is the same.
    pub(crate) const fn new(tag: u32, context: u16, match_bits: u64, mask: u64) -> Self {
        Self {
            tag,
            context,
            match_bits: match_bits & mask,
            mask,
        }
    }

    /// Says it in a frame.
    pub(crate) const fn put(self, body: &mut ManagementBody) {
        (body.incarnation, body.detail, body.word) = (self.tag, self.context, self.match_bits);
        (body.nonce, body.peer_nonce) = (self.mask as u32, (self.mask >> 32) as u32);
    }

    /// What a frame says.
    pub(crate) const fn said_by(body: &ManagementBody) -> Self {
        let mask = body.nonce as u64 | (body.peer_nonce as u64) << 32;
        Self::new(body.incarnation, body.detail, body.word, mask)
    }
}

/// A revocation that a peer has told.
struct Told {
    number: u32,
    endpoint: u8,
    /// Id of the pair whose peer it was: of several a member of the group, if one is.
    pair: u32,
    revocation: Revocation,
    /// Id of its rule. Its row may be free again.
    rule: u32,
    /// The rule is the host's, by `SetRule`.
    is_hosts: bool,
}

/// A group that the host has named.
struct Group {
    endpoint: u8,
    tag: u32,
    pairs: PairBits,
}

/// What has been told, and the groups.
pub(crate) struct Revocations {
    told: Vec<Told, MOST_REVOCATIONS>,
    groups: Vec<Group, MOST_GROUPS>,
    /// Number of the one that was kept last.
    last: u32,
    /// Something has changed by which one without a rule may get one.
    pub(crate) applies: bool,
}

impl Revocations {
    pub(crate) const fn new() -> Self {
        Self {
            told: Vec::new(),
            groups: Vec::new(),
            last: 0,
            applies: false,
        }
    }

    /// The pairs that an endpoint's host has given this name.
    fn group(&self, endpoint: u8, tag: u32) -> PairBits {
        let named = |group: &&Group| (group.endpoint, group.tag) == (endpoint, tag);
        let found = self.groups.iter().find(named);
        found.map_or(PairBits::default(), |group| group.pairs)
    }

    fn has_room(&self, endpoint: u8, share: usize) -> bool {
        let own = |told: &&Told| told.endpoint == endpoint;
        !self.told.is_full() && self.told.iter().filter(own).count() < share
    }
}

impl<C: Card> Firmware<C> {
    /// An endpoint's share of so many places.
    fn equal_share(&self, places: usize) -> usize {
        match self.card.is_broken(Break::RevocationsUnshared) {
            true => places,
            false => places / self.sizes.endpoints.max(1) as usize,
        }
    }

    /// The row of a rule that hasn't been forgotten.
    fn live_rule(&self, id: u32) -> Option<(usize, &Rule)> {
        let index = usize::from(id_index(id));
        let rule = self.rules.get(index)?;
        let live = rule.state != RuleState::Free && rule.generation == id_generation(id);
        live.then_some((index, rule))
    }

    // What peers say

    /// Keeps what the peer of a pair says to be revoked. False if there is no room.
    pub(crate) fn keep_revocation(&mut self, index: usize, said: Revocation) -> bool {
        let pair = &self.pairs[index];
        let (endpoint, id) = (pair.endpoint, pair.id(index));
        let is_member = self.revocations.group(endpoint, said.tag).contains(index);
        let again = |told: &&mut Told| (told.endpoint, told.revocation) == (endpoint, said);
        let known = self.revocations.told.iter_mut().find(again);
        if let Some(known) = known.filter(|_| !self.card.is_broken(Break::RevocationToldAgain)) {
            // A stranger may have said so first.
            if is_member {
                known.pair = id;
                self.revocations.applies = true;
            }
            return true;
        }
        let share = self.equal_share(MOST_REVOCATIONS);
        let full = !self.revocations.has_room(endpoint, share);
        if full || self.signals.is_full() {
            if full {
                let (kind, context) = (AuditKind::RevocationNotKept, said.context.into());
                self.audit.record(kind, id, context, &self.card);
            }
            return false;
        }
        let kept = &mut self.revocations;
        kept.last = kept.last.wrapping_add(1).max(1);
        let number = kept.last;
        let told = Told {
            number,
            endpoint,
            pair: id,
            revocation: said,
            rule: NO_RULE,
            is_hosts: false,
        };
        let signal = Signalled {
            pair: index as u16,
            generation: self.pairs[index].generation,
            cause: event::Cause::Revoked,
            word: number.into(),
        };
        // There is room for both.
        let _ = kept.told.push(told);
        let _ = self.signals.push_back(signal);
        kept.applies = true;
        true
    }

    /// Gives rules to those that may have one now.
    pub(crate) fn run_revocations(&mut self) -> bool {
        if !core::mem::take(&mut self.revocations.applies) {
            return false;
        }
        if self.needs(CAPABILITY_RULES).is_err() || self.card.is_broken(Break::ToldRuleNotSet) {
            return false;
        }
        for at in 0..self.revocations.told.len() {
            self.apply(at);
        }
        true
    }

    /// Has the gates refuse what is revoked, if they don't yet, the group is known here, and there is a rule for it.
    fn apply(&mut self, at: usize) {
        let told = &self.revocations.told[at];
        let (endpoint, pair) = (told.endpoint, usize::from(id_index(told.pair)));
        let group = self.revocations.group(endpoint, told.revocation.tag);
        let is_open = self.endpoints[usize::from(endpoint)].state == EndpointState::Open;
        let is_members = group.contains(pair) || self.card.is_broken(Break::StrangersBelieved);
        if self.live_rule(told.rule).is_some() || !is_open || !is_members {
            return;
        }
        let Revocation {
            context,
            match_bits,
            mask,
            ..
        } = told.revocation;
        let (pairs_low, pairs_high) = self.open_of(endpoint, group);
        if pairs_low | pairs_high == 0 {
            return;
        }
        let setup = RuleSetup {
            endpoint,
            context,
            match_bits,
            mask,
            pairs_low,
            pairs_high,
            ..RuleSetup::default()
        };
        // The host may have set it by itself.
        let own = (0..self.rules.len()).find(|&index| {
            self.rules[index].state == RuleState::Used && self.is_rule(index, &setup)
        });
        let by_peers = self.revocations.told.iter().filter(|told| {
            let held = self.live_rule(told.rule).is_some();
            told.endpoint == endpoint && held && !told.is_hosts
        });
        let share = self.equal_share(self.sizes.rules as usize).max(1);
        let index = match own {
            Some(index) => index,
            None if by_peers.count() >= share => return,
            None => match self.take_rule(setup) {
                Ok(index) => index,
                Err(_) => return,
            },
        };
        let rule = self.rules[index].id(index);
        let told = &mut self.revocations.told[at];
        (told.rule, told.is_hosts) = (rule, own.is_some());
    }

    /// Those of a group that are open, as words.
    fn open_of(&self, endpoint: u8, mut pairs: PairBits) -> (u64, u64) {
        let mut from = 0;
        while let Some(place) = pairs.next(from) {
            if !self.is_open_pair_of(place, endpoint.into()) {
                pairs.remove(place);
            }
            from = place + 1;
        }
        pairs.to_words()
    }

    /// Whether a row says this, but for pairs that have been closed since.
    fn is_rule(&self, index: usize, setup: &RuleSetup) -> bool {
        let held = &self.rules[index].setup;
        let pairs = PairBits::from_words(held.pairs_low, held.pairs_high);
        let (pairs_low, pairs_high) = self.open_of(held.endpoint, pairs);
        let match_bits = held.match_bits & held.mask;
        let now = RuleSetup {
            match_bits,
            pairs_low,
            pairs_high,
            ..*held
        };
        let match_bits = setup.match_bits & setup.mask;
        now == RuleSetup {
            match_bits,
            ..*setup
        }
    }

    // What the host says

    /// The rule that was set by a peer's word and says this, if there is one: it is the host's from now on.
    pub(crate) fn take_over(&mut self, setup: &RuleSetup) -> Option<usize> {
        let found = self.revocations.told.iter().position(|told| {
            let row = self.live_rule(told.rule);
            let same = row.is_some_and(|(index, rule)| {
                rule.state != RuleState::Clearing && self.is_rule(index, setup)
            });
            same && !told.is_hosts && !self.card.is_broken(Break::ToldRuleNotTakenOver)
        })?;
        let told = &mut self.revocations.told[found];
        told.is_hosts = true;
        Some(id_index(told.rule).into())
    }

    /// The first that was told an endpoint from this number on.
    pub(crate) fn read_revoked(&self, endpoint: usize, number: u32) -> ToldRevocation {
        let own = self
            .revocations
            .told
            .iter()
            .filter(|told| usize::from(told.endpoint) == endpoint && told.number >= number);
        // They are in the order of their numbers.
        let Some(told) = own.min_by_key(|told| told.number) else {
            return ToldRevocation::default();
        };
        let row = self.live_rule(told.rule);
        let held = row.is_some_and(|(_, rule)| rule.state == RuleState::Used);
        let Revocation {
            tag,
            context,
            match_bits,
            mask,
        } = told.revocation;
        ToldRevocation {
            number: told.number,
            pair: told.pair,
            tag,
            context: context.into(),
            match_bits,
            mask,
            rule: match held {
                true => told.rule,
                false => NO_RULE,
            },
        }
    }

    /// Forgets one, and its rule if that isn't the host's. False if there is no such one.
    pub(crate) fn forget_revoked(&mut self, endpoint: usize, number: u32) -> bool {
        let named = |told: &Told| (usize::from(told.endpoint), told.number) == (endpoint, number);
        let Some(at) = self.revocations.told.iter().position(named) else {
            return false;
        };
        let Told { rule, is_hosts, .. } = self.revocations.told.remove(at);
        let kept = is_hosts || self.card.is_broken(Break::ForgottenRuleKept);
        let row = self.live_rule(rule).filter(|_| !kept);
        if let Some(index) = row.map(|(index, _)| index) {
            self.rules[index].forget();
            self.revocations.applies = true;
        }
        true
    }

    /// The host has cleared a rule: what was told and had it is forgotten with it.
    pub(crate) fn forget_revocation_of(&mut self, rule: u32) {
        self.revocations.told.retain(|told| told.rule != rule);
    }

    /// An endpoint is closed.
    pub(crate) fn forget_revocations_of(&mut self, endpoint: u8) {
        if !self.card.is_broken(Break::RevocationsOutlive) {
            let kept = &mut self.revocations;
            kept.told.retain(|told| told.endpoint != endpoint);
            kept.groups.retain(|group| group.endpoint != endpoint);
        }
        // Its rules are free.
        self.revocations.applies = true;
    }

    /// Gives a group this name.
    ///
    /// # Errors
    /// `NoResource` if the endpoint has named as many as it may.
    pub(crate) fn name_group(
        &mut self,
        endpoint: u8,
        tag: u32,
        pairs: PairBits,
    ) -> Result<(), Refusal> {
        let share = self.equal_share(MOST_GROUPS);
        let groups = &mut self.revocations.groups;
        let named = |group: &Group| (group.endpoint, group.tag) == (endpoint, tag);
        let own = groups.iter().filter(|group| group.endpoint == endpoint);
        let room = !groups.is_full() && own.count() < share;
        match groups.iter().position(named) {
            Some(at) if pairs.is_empty() => {
                groups.remove(at);
            }
            Some(at) => groups[at].pairs = pairs,
            None if pairs.is_empty() => {}
            None if room => {
                let group = Group {
                    endpoint,
                    tag,
                    pairs,
                };
                // There is room.
                let _ = groups.push(group);
            }
            None => return Err(Refusal::new(MailboxStatus::NoResource)),
        }
        self.revocations.applies = true;
        Ok(())
    }

    /// A place gets another pair: it is of no group of before.
    pub(crate) fn leaves_groups(&mut self, index: usize) {
        debug_assert!(self.pairs[index].state == State::Closed);
        if self.card.is_broken(Break::PlaceStaysMember) {
            return;
        }
        for group in &mut self.revocations.groups {
            group.pairs.remove(index);
        }
        for rule in self.rules.iter_mut() {
            let setup = &mut rule.setup;
            let mut pairs = PairBits::from_words(setup.pairs_low, setup.pairs_high);
            pairs.remove(index);
            (setup.pairs_low, setup.pairs_high) = pairs.to_words();
        }
    }
}
