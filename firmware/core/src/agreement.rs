//! The agreement of a drain: how members come to hold one set of failed members, when all of them that live have flushed. No card, no time, no wire: a state,
//! and what changes it, so that a model checker goes through the very code that runs on the card (`tests/core/agreement.rs`).
//!
//! ```text
//!  coordinator: the lowest rank that lives         member
//!  Ask ──────────────────────────────────────────► adopts who has failed
//!      ◄───────────────────────────────── Report ─ Flushed, or what it has accepted
//!  all that live have reported: Propose ─────────► swept by its host, then accepted
//!      ◄───────────────────────────────── Report ─ Accepted
//!  all that live have accepted: Commit ──────────► decided
//!      ◄───────────────────────────────── Report ─ Decided
//! ```
//!
//! **Ballots are ranks.** Coordinators follow each other upwards only, each when it takes all below it to have failed, and each proposes once. Who has reported to one has
//! promised to accept nothing of those below: so a proposal of an earlier coordinator can't come behind that of a later one.
//!
//! **Why takeover is safe.** What was decided was accepted by all that lived. So whoever lives has it, the next coordinator gets it in each report, and proposes it again.
//!
//! Messages may be lost, repeated and late: each says a state, and is sent again until the state that it asks for is reached ([`Agreement::asking`]).

use crate::card::Break;

/// Most members of a group: one bit each.
pub const MOST_MEMBERS: usize = 64;

/// Members, a bit for each rank.
pub type Ranks = u64;

pub(crate) const fn bit(rank: u8) -> Ranks {
    1 << rank
}

/// The ranks whose bits are set, upwards.
pub(crate) fn each(mut ranks: Ranks) -> impl Iterator<Item = u8> {
    core::iter::from_fn(move || {
        let rank = (ranks != 0).then(|| ranks.trailing_zeros() as u8)?;
        ranks &= ranks - 1;
        Some(rank)
    })
}

/// A set of failed members that was proposed, and by whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Proposal {
    /// Rank of the coordinator.
    pub ballot: u8,
    /// The set.
    pub failed: Ranks,
}

/// What a member tells of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Report {
    /// Its host hasn't begun.
    Idle,
    /// Its host has flushed. The set is of those that it takes to have failed.
    Flushed(Ranks),
    /// It has accepted this, last.
    Accepted(Proposal),
    /// This is decided.
    Decided(Ranks),
}

/// What members tell each other. Whoever gets one that asks answers it ([`Agreement::answer`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Message {
    /// The coordinator asks for a report. The set is of those that it takes to have failed.
    Ask(Ranks),
    /// The coordinator proposes this set.
    Propose(Ranks),
    /// This set is decided.
    Commit(Ranks),
    /// To whoever the sender takes for the coordinator.
    Report(Report),
}

/// A member's part of the agreement, from the moment at which its host has flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Agreement {
    members: Ranks,
    rank: u8,
    /// Those that it takes to have failed, by what it has found or was told: it waits for none of them. It never shrinks.
    failed: Ranks,
    /// The highest coordinator that it has reported to. It accepts nothing of one below.
    promised: u8,
    /// Its host has swept what was left, after all had flushed.
    has_swept: bool,
    /// The last proposal that it got.
    offered: Option<Proposal>,
    /// The last one that it has accepted.
    accepted: Option<Proposal>,
    decided: Option<Ranks>,
    /// Coordinator: who has reported,
    reported: Ranks,
    /// the proposal of the highest ballot that they have accepted,
    reported_best: Option<Proposal>,
    /// who has accepted its own,
    accepts: Ranks,
    /// and who is known to have decided.
    knows: Ranks,
}

impl Agreement {
    /// The part of member `rank`, which is one of `members`, and takes some of them to have failed.
    pub fn new(members: Ranks, rank: u8, failed: Ranks, broken: impl Fn(Break) -> bool) -> Self {
        let mut begun = Self {
            members,
            rank,
            failed: failed & members & !bit(rank),
            promised: 0,
            has_swept: false,
            offered: None,
            accepted: None,
            decided: None,
            reported: 0,
            reported_best: None,
            accepts: 0,
            knows: 0,
        };
        // It may be the only one that lives.
        begun.advance(broken);
        begun
    }

    /// All members, those that have failed included.
    pub const fn members(&self) -> Ranks {
        self.members
    }

    /// The set, once it is decided.
    pub const fn decided(&self) -> Option<Ranks> {
        self.decided
    }

    /// Whether its host has swept.
    pub const fn has_swept(&self) -> bool {
        self.has_swept
    }

    /// Those that it takes to have failed.
    pub const fn failed(&self) -> Ranks {
        self.failed
    }

    /// Whether all that live have flushed, so that nothing older can arrive: its host is to sweep, and to say so ([`swept`](Self::swept)).
    pub const fn asks_for_sweep(&self) -> bool {
        self.offered.is_some() && !self.has_swept && self.decided.is_none()
    }

    const fn live(&self) -> Ranks {
        self.members & !self.failed
    }

    /// The lowest rank that lives. It lives itself.
    const fn coordinator(&self) -> u8 {
        self.live().trailing_zeros() as u8
    }

    const fn coordinates(&self) -> bool {
        self.coordinator() == self.rank
    }

    /// Members have failed.
    pub fn fail(&mut self, ranks: Ranks, broken: impl Fn(Break) -> bool) {
        self.adopt(ranks);
        self.advance(broken);
    }

    /// Its host has swept.
    pub fn swept(&mut self, broken: impl Fn(Break) -> bool) {
        self.has_swept = true;
        self.advance(broken);
    }

    /// A member that isn't taken to have failed has begun the round after this one: this one is decided. Whoever lives had accepted what was.
    pub fn is_over(&mut self) {
        self.decided = self.decided.or(self.accepted.map(|last| last.failed));
    }

    /// A message of a member has come.
    pub fn receive(&mut self, from: u8, message: Message, broken: impl Fn(Break) -> bool) {
        let sender = bit(from) & self.members & !bit(self.rank);
        let superseded = from < self.promised && !broken(Break::DrainOldBallotHeard);
        match message {
            _ if sender == 0 => return,
            Message::Ask(_) | Message::Propose(_) if superseded => return,
            // It is cut off from whoever takes it to have failed.
            Message::Ask(failed) if failed & bit(self.rank) != 0 => return,
            Message::Ask(failed) => self.report_to(from, failed),
            Message::Propose(failed) => {
                self.report_to(from, 0);
                let ballot = from;
                self.offered = Some(Proposal { ballot, failed });
            }
            Message::Commit(failed) => self.decided = self.decided.or(Some(failed)),
            Message::Report(report) => self.hear(sender, report, &broken),
        }
        self.advance(broken);
    }

    /// Whoever coordinates takes all below to have failed.
    fn report_to(&mut self, coordinator: u8, failed: Ranks) {
        self.promised = coordinator;
        self.adopt(failed | (bit(coordinator) - 1));
    }

    fn hear(&mut self, sender: Ranks, report: Report, broken: &impl Fn(Break) -> bool) {
        // One that another has found to have failed isn't believed when it says the same of others.
        let is_live = sender & self.live() != 0;
        if matches!(report, Report::Flushed(_) | Report::Accepted(_)) && is_live {
            // It takes this member for the coordinator.
            self.adopt(bit(self.rank) - 1);
            self.reported |= sender;
        }
        match report {
            Report::Flushed(failed) if is_live && !broken(Break::DrainUnionForgotten) => {
                self.adopt(failed);
            }
            Report::Accepted(last) if last.ballot == self.rank => self.accepts |= sender,
            Report::Accepted(last) if !broken(Break::DrainAcceptedForgotten) => {
                self.reported_best = self.reported_best.max(Some(last));
            }
            Report::Decided(failed) => {
                self.decided = self.decided.or(Some(failed));
                self.knows |= sender;
            }
            _ => {}
        }
    }

    /// Takes members to have failed. Of itself it knows better.
    fn adopt(&mut self, failed: Ranks) {
        self.failed |= failed & self.members & !bit(self.rank);
    }

    fn advance(&mut self, broken: impl Fn(Break) -> bool) {
        if self.decided.is_some() {
            return;
        }
        // Whom it takes for the coordinator, it reports to.
        self.promised = self.promised.max(self.coordinator());
        let others = self.live() & !bit(self.rank);
        let own = self.rank;
        let proposed = self.offered.filter(|offer| offer.ballot == own);
        let all_reported = others & !self.reported == 0 || broken(Break::DrainReportsNotAwaited);
        if proposed.is_none() && self.coordinates() && all_reported {
            let last = self.accepted.max(self.reported_best);
            let last = last.filter(|_| !broken(Break::DrainAcceptedForgotten));
            let failed = last.map_or(self.failed, |last| last.failed);
            let ballot = own;
            self.offered = Some(Proposal { ballot, failed });
        }
        let stands =
            |offer: &Proposal| offer.ballot >= self.promised || broken(Break::DrainOldBallotHeard);
        if self.has_swept || broken(Break::DrainSweepNotAwaited) {
            self.accepted = self.offered.filter(stands).or(self.accepted);
        }
        let own_accepted = self.accepted.filter(|last| last.ballot == own);
        if let Some(last) = own_accepted
            && self.coordinates()
            && (others & !self.accepts == 0 || broken(Break::DrainAcceptancesNotAwaited))
        {
            self.decided = Some(last.failed);
        }
    }

    /// What it tells of itself.
    pub fn report(&self) -> Report {
        match (self.decided, self.accepted) {
            (Some(failed), _) => Report::Decided(failed),
            (None, Some(last)) => Report::Accepted(last),
            (None, None) => Report::Flushed(self.failed),
        }
    }

    /// Whom it asks now, a bit for each rank, and what: all of them the same, again until that is reached. Each is to answer. A member that waits for its coordinator asks it
    /// too, and so finds out whether it lives.
    pub fn asking(&self) -> (Ranks, Message) {
        if !self.coordinates() {
            let asked = match self.decided {
                None => bit(self.coordinator()),
                Some(_) => 0,
            };
            return (asked, Message::Report(self.report()));
        }
        let others = self.live() & !bit(self.rank);
        match (self.decided, self.offered) {
            (Some(failed), _) => (others & !self.knows, Message::Commit(failed)),
            (None, Some(own)) if own.ballot == self.rank => {
                (others & !self.accepts, Message::Propose(own.failed))
            }
            (None, _) => (others & !self.reported, Message::Ask(self.failed)),
        }
    }

    /// What it asks of a member now.
    pub fn wanted(&self, to: u8) -> Option<Message> {
        let (asked, message) = self.asking();
        (asked & bit(to) != 0).then_some(message)
    }

    /// What it answers a member whose message asked, once that has been [received](Self::receive). What is decided is told to those too that are taken to have
    /// failed: they may live.
    pub fn answer(&self, to: u8, asked: Message) -> Option<Message> {
        if bit(to) & self.members == 0 {
            return None;
        }
        let idle = Message::Report(Report::Idle);
        let hears = to >= self.promised && bit(to) & self.live() != 0;
        let coordinates = self.coordinates() && bit(to) & self.live() != 0;
        Some(match (asked, self.decided) {
            (Message::Report(_), Some(failed)) => Message::Commit(failed),
            // If there is nothing new, that it lives.
            (Message::Report(_), None) if coordinates => {
                self.wanted(to).unwrap_or(Message::Ask(self.failed))
            }
            (Message::Ask(_) | Message::Propose(_), None) if hears => {
                Message::Report(self.report())
            }
            (_, None) => idle,
            (_, Some(_)) => Message::Report(self.report()),
        })
    }
}
