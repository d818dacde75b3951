//! A drain's agreement, gone through exhaustively by a model checker: the code that the card runs, over a network that loses, repeats and delays what it likes,
//! with members that stop at any moment.
//!
//! A message that was sent once may arrive at any time, any number of times or never: what is sent is a set that only grows. What members ask again and again
//! is therefore sent once here. Each step adds to what somebody knows, so that no behaviour goes round in circles, and "in the end" is where nothing more can happen.

use crate::breaks::{is_broken, promise};
use firmware_core::Break;
use firmware_core::agreement::{Agreement, Message, Ranks};
use stateright::{Checker, Expectation, Model, Property};
use std::collections::BTreeSet;

/// From, to, and what is said. All are taken to ask for an answer, which is more than the firmware asks for.
type Letter = (u8, u8, Message);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    /// None: its host hasn't begun.
    members: Vec<Option<Agreement>>,
    /// Who was known to have failed by each, when its host began.
    knew: Vec<Ranks>,
    /// Those whose hosts have swept.
    swept: Ranks,
    crashed: Ranks,
    /// Those that are cut off from each other though they live: lower rank, higher rank.
    cut: BTreeSet<(u8, u8)>,
    sent: BTreeSet<Letter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Action {
    /// It knows who has failed, or nobody that has.
    Begin(u8, bool),
    Sweep(u8),
    Crash(u8),
    /// Two that live take each other to have failed.
    Cut(u8, u8),
    /// One finds out that another has failed.
    Find(u8, u8),
    Deliver(Letter),
    /// One that has decided has begun the next round, and the other hears of it.
    Over(u8, u8),
}

/// Members that drain.
#[derive(Clone, Copy)]
struct Drain {
    members: u8,
    /// Members that may stop,
    crashes: u32,
    /// and pairs that may be cut.
    cuts: usize,
    broken: Option<Break>,
}

impl Drain {
    fn new(members: u8, crashes: u32) -> Self {
        // The checker's threads aren't this one.
        let broken = Break::ALL.iter().copied().find(|&broken| is_broken(broken));
        Self {
            members,
            crashes,
            cuts: 0,
            broken,
        }
    }

    fn all(&self) -> Ranks {
        (1 << self.members) - 1
    }

    fn ranks(&self) -> std::ops::Range<u8> {
        0..self.members
    }

    fn is_broken(&self) -> impl Fn(Break) -> bool + Copy + use<> {
        let broken = self.broken;
        move |promise| broken == Some(promise)
    }

    /// Whom a member can't hear of any more, whether or not it has found out.
    fn lost(&self, state: &State, of: u8) -> Ranks {
        // Whoever has decided that another has failed cuts it off.
        let names = |one: u8, other: u8| {
            let decided = state.members[usize::from(one)].and_then(|one| one.decided());
            decided.is_some_and(|set| set >> other & 1 == 1)
        };
        let cut = |&other: &u8| {
            let pair = (of.min(other), of.max(other));
            state.cut.contains(&pair) || names(of, other) || names(other, of)
        };
        let cut: Ranks = self.ranks().filter(cut).map(|other| 1 << other).sum();
        state.crashed | cut
    }

    /// What a member asks of the others now is sent.
    fn send(&self, state: &mut State, from: u8) {
        if let Some(member) = state.members[usize::from(from)] {
            let wanted = |to| Some((from, to, member.wanted(to)?));
            state.sent.extend(self.ranks().filter_map(wanted));
        }
    }

    /// Forgets what was sent and can't do anything any more: nobody hears it, or it says what is known. Each message adds to what its receiver knows, so what
    /// adds nothing now never will; and the answer to it is what its receiver asks its coordinator of itself, unless it has decided and the sender hasn't.
    fn forget(&self, state: &mut State) {
        let State {
            members,
            crashed,
            sent,
            ..
        } = state;
        let has_decided = |rank: u8| {
            let member = &members[usize::from(rank)];
            member.is_some_and(|member| member.decided().is_some())
        };
        sent.retain(|&(from, to, message)| {
            let Some(member) = members[usize::from(to)] else {
                return *crashed >> to & 1 == 0;
            };
            let mut after = member;
            after.receive(from, message, self.is_broken());
            let may_answer = member.decided().is_some() && !has_decided(from);
            *crashed >> to & 1 == 0 && (after != member || may_answer)
        });
    }

    /// Those whose word counts: neither have they stopped, nor are they named by what another has decided.
    fn survives(state: &State, rank: u8) -> bool {
        let names = |other: &Agreement| other.decided().is_some_and(|set| set >> rank & 1 == 1);
        state.crashed >> rank & 1 == 0 && !state.members.iter().flatten().any(names)
    }

    /// Whether nobody that lives has anything to decide.
    fn is_done(&self, state: &State) -> bool {
        self.ranks().all(|rank| {
            let member = &state.members[usize::from(rank)];
            let decided = member.is_some_and(|member| member.decided().is_some());
            state.crashed >> rank & 1 == 1 || decided
        })
    }

    /// Each set that was decided, and by whom: by one that has stopped since, too. Its host may have acted on it.
    fn decisions(state: &State) -> impl Iterator<Item = (u8, Ranks)> {
        let members = state.members.iter().enumerate();
        members.filter_map(|(rank, member)| Some((rank as u8, member.as_ref()?.decided()?)))
    }
}

impl Model for Drain {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            members: vec![None; self.members.into()],
            knew: vec![0; self.members.into()],
            swept: 0,
            crashed: 0,
            cut: BTreeSet::new(),
            sent: BTreeSet::new(),
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if self.is_done(state) {
            return;
        }
        // It begins the next round with those that it doesn't take to have failed.
        let begins_next = |with: u8| {
            let decided = Self::decisions(state).map(|(rank, _)| rank);
            let members = &state.members;
            let failed = |one: u8| members[usize::from(one)].map_or(0, |one| one.failed());
            let hear = move |&one: &u8| (failed(one) >> with | failed(with) >> one) & 1 == 0;
            decided.filter(hear)
        };
        for rank in self.ranks().filter(|rank| state.crashed >> rank & 1 == 0) {
            let lost = self.lost(state, rank);
            match &state.members[usize::from(rank)] {
                None => {
                    actions.push(Action::Begin(rank, true));
                    actions.extend((lost != 0).then_some(Action::Begin(rank, false)));
                }
                Some(member) => {
                    actions.extend(member.asks_for_sweep().then_some(Action::Sweep(rank)));
                    let found = lost & !member.failed();
                    let found = self.ranks().filter(|other| found >> other & 1 == 1);
                    actions.extend(found.map(|other| Action::Find(rank, other)));
                    actions.extend(begins_next(rank).map(|from| Action::Over(from, rank)));
                }
            }
            if state.crashed.count_ones() < self.crashes {
                actions.push(Action::Crash(rank));
            }
            if state.cut.len() < self.cuts {
                actions.extend((rank + 1..self.members).map(|other| Action::Cut(rank, other)));
            }
        }
        actions.extend(state.sent.iter().map(|&letter| Action::Deliver(letter)));
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        let broken = self.is_broken();
        let members = &mut state.members;
        match action {
            Action::Begin(rank, knows) => {
                let failed = if knows { self.lost(last, rank) } else { 0 };
                let begun = Agreement::new(self.all(), rank, failed, broken);
                members[usize::from(rank)] = Some(begun);
                state.knew[usize::from(rank)] = failed;
            }
            Action::Sweep(rank) => {
                members[usize::from(rank)].as_mut()?.swept(broken);
                state.swept |= 1 << rank;
            }
            Action::Crash(rank) => state.crashed |= 1 << rank,
            Action::Cut(low, high) => {
                state.cut.insert((low, high));
            }
            Action::Find(rank, other) => {
                members[usize::from(rank)]
                    .as_mut()?
                    .fail(1 << other, broken);
            }
            Action::Over(_, rank) => members[usize::from(rank)].as_mut()?.is_over(),
            Action::Deliver((from, to, message)) => {
                // Of one whose host hasn't begun, its firmware answers that; nothing is made of it.
                let member = members[usize::from(to)].as_mut()?;
                member.receive(from, message, broken);
                let answer = member.answer(from, message);
                state.sent.extend(answer.map(|answer| (to, from, answer)));
            }
        }
        // What was asked before is asked again, too: it may have been forgotten, and be answered in another way now.
        let crashed = state.crashed;
        for rank in self.ranks().filter(|rank| crashed >> rank & 1 == 0) {
            self.send(&mut state, rank);
        }
        self.forget(&mut state);
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            // Two that are cut off from each other may differ.
            Property::always("one set is decided", |model: &Self, state: &State| {
                Self::decisions(state).all(|(a, of_a)| {
                    Self::decisions(state).all(|(b, of_b)| {
                        let apart = model.lost(state, a) & !state.crashed & 1 << b != 0;
                        of_a == of_b || model.cuts > 0 && apart
                    })
                })
            }),
            Property::always(
                "nobody is named that lives",
                |model: &Self, state: &State| {
                    model.cuts > 0
                        || Self::decisions(state).all(|(_, set)| set & !state.crashed == 0)
                },
            ),
            Property::always(
                "when a set is decided, all others have begun and swept",
                |model: &Self, state: &State| {
                    // The others may have gone on without one that was cut off from somebody: its host is told.
                    let whole = |&rank: &u8| model.lost(state, rank) & !state.crashed == 0;
                    let all: Ranks = model.ranks().filter(whole).map(|rank| 1 << rank).sum();
                    let all = all & !state.crashed;
                    Self::decisions(state).all(|(_, set)| all & !set & !state.swept == 0)
                },
            ),
            Property::always(
                "what a survivor knew when it began is decided",
                |model: &Self, state: &State| {
                    let knew = |rank| state.knew[usize::from(rank)];
                    let survivors = model.ranks().filter(|&rank| Self::survives(state, rank));
                    let known = survivors.map(knew).fold(0, |all, one| all | one);
                    Self::decisions(state).all(|(_, set)| known & !set == 0) || model.cuts > 0
                },
            ),
            Property::eventually("who lives decides", |model: &Self, state: &State| {
                model.is_done(state)
            }),
            Property::sometimes("a failure is decided", |model: &Self, state: &State| {
                model.crashes + model.cuts as u32 == 0
                    || Self::decisions(state).any(|(_, set)| set != 0)
            }),
            Property::sometimes("a proposal is taken over", |model: &Self, state: &State| {
                let taken_over = |member: &Agreement| {
                    member.failed() & 1 == 1 && member.decided().is_some_and(|set| set & 1 == 0)
                };
                model.crashes == 0 || state.members.iter().flatten().any(taken_over)
            }),
        ]
    }
}

/// Goes through everything, and finds each promise kept.
fn check(drain: Drain) {
    let checker = drain.checker().threads(2).spawn_bfs().join();
    for property in drain.properties() {
        let found = checker.discovery(property.name);
        let kept = match property.expectation {
            Expectation::Sometimes => found.is_some(),
            Expectation::Always | Expectation::Eventually => found.is_none(),
        };
        let path = found.map(|path| format!("{:#?}", path.into_actions()));
        promise!(kept, "{}: {}", property.name, path.unwrap_or_default());
    }
}

/// Some 41,000 states of four members and one that stops, 26,000 of three and two.
#[test]
pub fn survivors_agree_whoever_fails_at_whatever_moment() {
    for (members, crashes) in [(2, 1), (3, 0), (3, 1), (3, 2), (4, 1)] {
        check(Drain::new(members, crashes));
    }
}

#[test]
fn only_members_that_are_cut_off_from_each_other_may_differ() {
    for members in [2, 3] {
        let crashes = 0;
        check(Drain {
            cuts: 1,
            ..Drain::new(members, crashes)
        });
    }
}
