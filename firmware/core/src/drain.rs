//! Drains: what a card's firmware does of the [agreement](crate::agreement) of a group's members. Frames, repetition, silence, and what the host is told.
//!
//! ```text
//!  Drain ──────► Agreement ─ wanted ─► DrainAsk, DrainPropose, DrainCommit, DrainReport ─► a member's firmware
//!  DrainSwept ─►     │     ◄─ receive ─ its answer, or what it asks
//!  ReadDrain ◄──     └─────► event Drain: asked, to be swept, done
//! ```
//!
//! A drain is named by the program's tag and the context, and rounds of one name are counted by the program. What is asked of a member is repeated until it is reached; each
//! frame that asks is answered, so a member that is silent for [`SILENT_MOST`] repetitions is taken to have failed. A frame of a later round says that the one before
//! is over; a frame of an earlier one is answered by the number of this one, which says the same.
//!
//! What has ended is remembered, for members that haven't heard of it, until its place is needed.

use crate::agreement::{Agreement, MOST_MEMBERS, Message, Proposal, Ranks, Report, bit, each};
use crate::argument::{BUSY, NOT_FOUND, Refusal, narrow};
use crate::card::{Break, Card};
use crate::connection::{Cause, State};
use crate::endpoint::EndpointState;
use crate::exchange::{Frame, Reply};
use crate::firmware::Firmware;
use crate::notice::Signalled;
use crate::repeat::{REPEAT_FIRST, Repeat};
use abi::control::{EventSetup, Operation};
use abi::event;
use abi::mailbox::{
    ConnectReason, DRAIN_LOST, DRAIN_NOBODY, Drain as Begin, DrainName, DrainState, DrainStatus,
    FailureCause, drain_info, id_generation, id_index,
};
use abi::wire::{DRAIN_ANNOUNCES, DRAIN_ASKS, DrainReport, FrameType, ManagementKind};

/// Drains that are known, those that have ended included.
pub const MOST_DRAINS: usize = 4;
/// Drains that may be under way.
pub const MOST_DRAINS_UNDER_WAY: usize = 2;
/// Repetitions that a member may leave unanswered.
const SILENT_MOST: u8 = 12;
/// Members that are asked at a time, so that their answers find room at the card.
const ASKED_MOST: u32 = 3;

/// A drain.
pub(crate) struct Drain {
    endpoint: u32,
    tag: u32,
    context: u16,
    round: u32,
    agreement: Agreement,
    /// Place of the pair of each rank.
    places: [u8; MOST_MEMBERS],
    /// Members whose pairs have ended.
    lost: Ranks,
    /// Repetitions that each has left unanswered.
    silent: [u8; MOST_MEMBERS],
    /// Who has been heard of in this round,
    heard: Ranks,
    /// to whom a frame is to be sent as soon as there is room,
    due: Ranks,
    /// and who hasn't answered the last one.
    asked: Ranks,
    pub(crate) repeat: Repeat,
    /// The others have gone on without this member.
    is_cut_off: bool,
    /// What the host was told last.
    told: DrainState,
}

impl Drain {
    fn state(&self) -> DrainState {
        match self.agreement.decided() {
            _ if self.is_cut_off => DrainState::CutOff,
            Some(_) if !self.agreement.has_swept() => DrainState::CutOff,
            Some(_) => DrainState::Done,
            None if self.agreement.asks_for_sweep() => DrainState::Sweep,
            None => DrainState::Flushed,
        }
    }

    fn has_ended(&self) -> bool {
        self.is_cut_off || self.agreement.decided().is_some()
    }

    fn wanted(&self, rank: u8) -> Option<Message> {
        let wanted = self.agreement.wanted(rank);
        wanted.filter(|_| self.reachable() & bit(rank) != 0)
    }

    /// Members to whom there is a way.
    fn reachable(&self) -> Ranks {
        match self.is_cut_off {
            true => 0,
            false => !self.lost,
        }
    }

    /// Members whose answer is awaited, or who are to know something.
    fn all_wanted(&self) -> Ranks {
        self.agreement.asking().0 & self.reachable()
    }

    /// Whether a member's answer is awaited, or its knowledge.
    pub(crate) fn waits(&self) -> bool {
        self.all_wanted() != 0
    }

    fn may_send(&self) -> bool {
        self.due != 0 && self.asked.count_ones() < ASKED_MOST
    }

    /// Changes the agreement; whom something new is wanted of is asked at once.
    fn change(&mut self, now: u32, change: impl FnOnce(&mut Agreement)) {
        let before = self.agreement;
        change(&mut self.agreement);
        if self.agreement == before {
            return;
        }
        let (was_asked, was) = before.asking();
        let (asked, message) = self.agreement.asking();
        let asked = asked & self.reachable();
        let as_before = match message == was {
            true => was_asked & asked,
            false => 0,
        };
        let changed = (was_asked | asked) & !as_before;
        self.due = self.due & !changed | asked & changed;
        self.asked &= !changed;
        self.repeat = Repeat::from(now.wrapping_add(REPEAT_FIRST));
    }

    fn rank_of(&self, pair: usize) -> Option<u8> {
        ranks().find(|&rank| {
            usize::from(self.places[usize::from(rank)]) == pair && self.lost & bit(rank) == 0
        })
    }
}

fn ranks() -> core::ops::Range<u8> {
    0..MOST_MEMBERS as u8
}

/// Kind, `reason`, `credits` and `word` of a frame.
fn encode(message: Message) -> (ManagementKind, u8, u8, Ranks) {
    let (report, ballot, word) = match message {
        Message::Ask(failed) => return (ManagementKind::DrainAsk, 0, 0, failed),
        Message::Propose(failed) => return (ManagementKind::DrainPropose, 0, 0, failed),
        Message::Commit(failed) => return (ManagementKind::DrainCommit, 0, 0, failed),
        Message::Report(Report::Idle) => (DrainReport::Idle, 0, 0),
        Message::Report(Report::Flushed(failed)) => (DrainReport::Flushed, 0, failed),
        Message::Report(Report::Accepted(last)) => {
            (DrainReport::Accepted, last.ballot, last.failed)
        }
        Message::Report(Report::Decided(failed)) => (DrainReport::Decided, 0, failed),
    };
    (ManagementKind::DrainReport, report.code(), ballot, word)
}

fn decode(frame: &Frame, kind: ManagementKind) -> Option<Message> {
    let failed = frame.body.word;
    Some(match kind {
        ManagementKind::DrainAsk => Message::Ask(failed),
        ManagementKind::DrainPropose => Message::Propose(failed),
        ManagementKind::DrainCommit => Message::Commit(failed),
        _ => {
            let ballot = frame.body.credits;
            let code = frame.body.reason & !(DRAIN_ASKS | DRAIN_ANNOUNCES);
            Message::Report(match DrainReport::from_code(code)? {
                DrainReport::Idle => Report::Idle,
                DrainReport::Flushed => Report::Flushed(failed),
                DrainReport::Accepted if usize::from(ballot) < MOST_MEMBERS => {
                    Report::Accepted(Proposal { ballot, failed })
                }
                DrainReport::Accepted => return None,
                DrainReport::Decided => Report::Decided(failed),
            })
        }
    })
}

impl<C: Card> Firmware<C> {
    /// The drain of an endpoint's name.
    fn drain_named(&self, endpoint: u32, tag: u32, context: u16) -> Option<usize> {
        let named =
            |drain: &Drain| (drain.endpoint, drain.tag, drain.context) == (endpoint, tag, context);
        self.drains.iter().position(named)
    }

    // Commands

    /// The host has flushed what was under way: the agreement begins.
    pub(crate) fn begin_drain(&mut self, begin: &Begin, endpoint: usize) -> Result<(), Refusal> {
        let context = narrow(begin.context, 2)?;
        let rank = narrow::<u8>(begin.rank, 4)?;
        if usize::from(rank) >= MOST_MEMBERS {
            return Err(Refusal::argument(4));
        }
        let mut places = [DRAIN_NOBODY; MOST_MEMBERS];
        let words = [
            begin.places0,
            begin.places1,
            begin.places2,
            begin.places3,
            begin.places4,
            begin.places5,
            begin.places6,
            begin.places7,
        ];
        for (at, place) in places.iter_mut().enumerate() {
            *place = (words[at / 8] >> (at % 8 * 8)) as u8;
        }
        places[usize::from(rank)] = DRAIN_NOBODY;
        let (mut members, mut lost) = (bit(rank), 0);
        for at in ranks() {
            let place = places[usize::from(at)];
            if place == DRAIN_NOBODY {
                continue;
            }
            members |= bit(at);
            let pair = self.pairs.get(usize::from(place));
            let own = pair.filter(|pair| usize::from(pair.endpoint) == endpoint);
            match own {
                Some(pair) if pair.state == State::Connected => {}
                _ if place == DRAIN_LOST => lost |= bit(at),
                Some(pair) if pair.state != State::Closed => lost |= bit(at),
                _ => return Err(Refusal::argument(5 + u32::from(at) / 8)),
            }
        }
        let Begin {
            endpoint,
            tag,
            round,
            ..
        } = *begin;
        let mut known = self.drain_named(endpoint, tag, context);
        if let Some(at) = known {
            let last = &self.drains[at];
            if last.round == round {
                // Given again.
                return Ok(());
            }
            if !last.has_ended() {
                return Err(BUSY);
            }
            if round < last.round {
                return Err(Refusal::argument(3));
            }
        }
        if round == 0 {
            return Err(Refusal::argument(3));
        }
        let under_way = self.drains.iter().filter(|drain| !drain.has_ended());
        if under_way.count() >= MOST_DRAINS_UNDER_WAY {
            return Err(BUSY);
        }
        if known.is_none() && self.drains.is_full() {
            known = self.drains.iter().position(Drain::has_ended);
        }
        if let Some(at) = known {
            self.drains.remove(at);
        }
        let now = self.card.now();
        let card = &self.card;
        let agreement = Agreement::new(members, rank, lost, |promise| card.is_broken(promise));
        let mut drain = Drain {
            endpoint,
            tag,
            context,
            round,
            agreement,
            places,
            lost,
            silent: [0; MOST_MEMBERS],
            heard: 0,
            due: 0,
            asked: 0,
            repeat: Repeat::from(now.wrapping_add(REPEAT_FIRST)),
            is_cut_off: false,
            told: DrainState::Flushed,
        };
        drain.due = drain.all_wanted();
        // There is room now.
        let _ = self.drains.push(drain);
        Ok(())
    }

    fn drain_of(&self, name: &DrainName) -> Result<usize, Refusal> {
        let context = narrow(name.context, 2)?;
        self.drain_named(name.endpoint, name.tag, context)
            .ok_or(NOT_FOUND)
    }

    /// The host has swept what was left of the context.
    pub(crate) fn drain_is_swept(&mut self, name: &DrainName) -> Result<(), Refusal> {
        let at = self.drain_of(name)?;
        let now = self.card.now();
        let Self { drains, card, .. } = self;
        let drain = &mut drains[at];
        drain.change(now, |agreement| {
            agreement.swept(|promise| card.is_broken(promise));
        });
        if !card.is_broken(Break::DrainSweptIsNews) {
            // The host knows that it has swept. Whatever comes next is news to it, another sweep too.
            drain.told = DrainState::Flushed;
        }
        Ok(())
    }

    pub(crate) fn read_drain(&self, name: &DrainName) -> Result<DrainStatus, Refusal> {
        let drain = &self.drains[self.drain_of(name)?];
        Ok(DrainStatus {
            state: drain.state().code().into(),
            round: drain.round,
            failed: match drain.agreement.decided() {
                Some(failed) => failed,
                None => drain.agreement.failed(),
            },
        })
    }

    // Frames

    fn drain_frame(&self, pair: usize, at: &DrainName, round: u32, message: Message) -> Frame {
        let none = ConnectReason::None;
        let (kind, reason, ballot, word) = encode(message);
        let mut frame = self.frame(pair, FrameType::Management, kind, none, at.context as u16);
        let body = &mut frame.body;
        (body.transaction, body.incarnation, body.word) = (at.tag, round, word);
        (body.reason, body.credits) = (reason, ballot);
        frame
    }

    /// A frame of a member's firmware has come.
    pub(crate) fn drain_told(&mut self, frame: &Frame, kind: ManagementKind) {
        let Some(index) = self.named_connected(frame) else {
            return;
        };
        let Some(message) = decode(frame, kind) else {
            return self.malformed(frame);
        };
        self.peer_heard(index);
        let asks = frame.body.reason & DRAIN_ASKS != 0;
        let announces = frame.body.reason & DRAIN_ANNOUNCES != 0;
        let (tag, context, round) = (
            frame.body.transaction,
            frame.body.detail,
            frame.body.incarnation,
        );
        let pair = &self.pairs[index];
        let owner = usize::from(pair.endpoint);
        let endpoint = self.endpoints[owner].id(owner);
        let name = DrainName {
            endpoint,
            tag,
            context: context.into(),
        };
        let known = self.drain_named(endpoint, tag, context);
        let now = self.card.now();
        let Self { drains, card, .. } = self;
        let broken = |promise| card.is_broken(promise);
        let mut answer = (round, Some(Message::Report(Report::Idle)));
        let mut is_begun = false;
        if let Some(drain) = known.map(|at| &mut drains[at])
            && let Some(rank) = drain.rank_of(index)
        {
            drain.asked &= !bit(rank);
            drain.silent[usize::from(rank)] = 0;
            if drain.round == round {
                is_begun = true;
                drain.heard |= bit(rank);
                drain.change(now, |agreement| agreement.receive(rank, message, broken));
                answer.1 = drain.agreement.answer(rank, message);
                if asks && answer.1 == drain.wanted(rank) {
                    // The answer says it.
                    drain.due &= !bit(rank);
                }
            } else if drain.round < round {
                if !drain.has_ended() && !broken(Break::DrainOverForgotten) {
                    drain.change(now, Agreement::is_over);
                    drain.is_cut_off = drain.agreement.decided().is_none();
                }
            } else {
                // It is told that its round is over.
                is_begun = true;
                answer.0 = drain.round;
            }
        }
        if !is_begun && announces {
            let signal = Signalled {
                pair: index as u16,
                generation: self.pairs[index].generation,
                cause: event::Cause::Drain,
                word: drain_info(tag, context, DrainState::Asked),
            };
            // Without room, the program finds out when it comes to drain.
            let _ = self.signals.push_back(signal);
        }
        if let (true, (round, Some(message))) = (asks, answer) {
            let frame = self.drain_frame(index, &name, round, message);
            let words = frame.to_words();
            let pair = Some(index as u16);
            // If there is no room, it asks again.
            let _ = self.replies.push_back(Reply { pair, words });
        }
    }

    /// Whether a frame of a drain is to be sent.
    pub(crate) fn drains_are_due(&self) -> bool {
        self.drains.iter().any(Drain::may_send)
    }

    /// The next frame of a drain.
    pub(crate) fn next_due_drain(&mut self) -> Option<Reply> {
        let drain = self.drains.iter_mut().find(|drain| drain.may_send())?;
        let rank = drain.due.trailing_zeros() as u8;
        drain.due &= !bit(rank);
        let message = drain.wanted(rank)?;
        drain.asked |= bit(rank);
        let name = DrainName {
            endpoint: drain.endpoint,
            tag: drain.tag,
            context: drain.context.into(),
        };
        let (round, first) = (drain.round, drain.heard & bit(rank) == 0);
        let pair = usize::from(drain.places[usize::from(rank)]);
        let mut frame = self.drain_frame(pair, &name, round, message);
        frame.body.reason |= DRAIN_ASKS;
        if first && !self.card.is_broken(Break::DrainNotAnnounced) {
            frame.body.reason |= DRAIN_ANNOUNCES;
        }
        Some(Reply {
            pair: Some(pair as u16),
            words: frame.to_words(),
        })
    }

    // Time

    /// Looks at the pairs of drains, repeats what isn't answered, and ends what has been decided.
    pub(crate) fn run_drains(&mut self) -> bool {
        let mut moved = false;
        let endpoints = &self.endpoints;
        self.drains.retain(|drain| {
            let endpoint = &endpoints[usize::from(id_index(drain.endpoint))];
            endpoint.state == EndpointState::Open
                && endpoint.generation == id_generation(drain.endpoint)
        });
        let looks = core::mem::take(&mut self.pairs_left);
        for at in 0..self.drains.len() {
            let lost = looks && self.look_at_members(at);
            moved |= lost | self.repeat_drain(at) | self.end_drain(at);
        }
        moved
    }

    /// Members whose pairs aren't connected any more have failed.
    fn look_at_members(&mut self, at: usize) -> bool {
        let now = self.card.now();
        let Self {
            drains,
            pairs,
            card,
            ..
        } = self;
        let drain = &mut drains[at];
        let mut lost = 0;
        for rank in each(drain.agreement.members() & !drain.lost) {
            let pair = pairs.get(usize::from(drain.places[usize::from(rank)]));
            if pair.is_some_and(|pair| pair.state != State::Connected) {
                lost |= bit(rank);
            }
        }
        if lost == 0 {
            return false;
        }
        drain.lost |= lost;
        drain.due &= !lost;
        drain.asked &= !lost;
        drain.change(now, |agreement| {
            agreement.fail(lost, |promise| card.is_broken(promise));
        });
        true
    }

    /// Asks again those that haven't answered; one that has been silent for too long has failed.
    fn repeat_drain(&mut self, at: usize) -> bool {
        let now = self.card.now();
        let drain = &mut self.drains[at];
        if !drain.waits() || !drain.repeat.comes(now) {
            return false;
        }
        drain.due = drain.all_wanted();
        let unanswered = drain.due & core::mem::take(&mut drain.asked);
        let mut silent = None;
        for rank in each(unanswered) {
            let times = &mut drain.silent[usize::from(rank)];
            *times += 1;
            if *times >= SILENT_MOST {
                silent = Some(drain.places[usize::from(rank)]);
            }
        }
        if let Some(place) = silent
            && !self.card.is_broken(Break::DrainSilenceForgiven)
        {
            // The others in the next round.
            self.peer_fails(place.into(), FailureCause::Silence, Cause::TimerSilence);
        }
        true
    }

    /// What is decided holds: whoever is named and lives is cut off. The host is to be told.
    fn end_drain(&mut self, at: usize) -> bool {
        let drain = &self.drains[at];
        let named = drain.agreement.decided().unwrap_or(0) & !drain.lost;
        let named = each(named).find(|&rank| drain.places[usize::from(rank)] < DRAIN_LOST);
        let kept = self.card.is_broken(Break::DrainNamedKept);
        let Some(rank) = named.filter(|_| !kept) else {
            return false;
        };
        let pair = usize::from(drain.places[usize::from(rank)]);
        // The next look finds it lost.
        self.peer_fails(pair, FailureCause::Told, Cause::FrameTold);
        true
    }

    /// Tells a host how far its drain has come.
    pub(crate) fn start_drain_event(&mut self) -> bool {
        let changed = |drain: &&mut Drain| drain.state() != drain.told;
        let Some(drain) = self.drains.iter_mut().find(changed) else {
            return false;
        };
        drain.told = drain.state();
        let endpoint = id_index(drain.endpoint);
        let setup = EventSetup {
            cause: event::Cause::Drain.code(),
            pair: event::NO_PAIR,
            info: drain_info(drain.tag, drain.context, drain.told),
            ..EventSetup::default()
        };
        self.request(Operation::EventRaise, endpoint, &setup.to_words());
        true
    }
}
