//! Notices: what firmwares of two cards tell each other of a connected pair, beside making and ending it.
//!
//! ```text
//!  Alive, Signal, PeerFailed, Revoked ──► the peer's firmware ──► NoticeDone, with the same number
//! ```
//!
//! All but `Alive` are repeated until they are answered, and one of a pair is under way at a time. Their numbers go up by one for each pair, so that a
//! repetition is answered and not carried out again. An `Alive` is sent once: the next look sends another. It has the number 0, which no notice has: its answer is
//! a sign of life, and none that a notice has arrived.
//!
//! Whom [`TellFailed`](abi::mailbox::Command::TellFailed) or [`TellRevoked`](abi::mailbox::Command::TellRevoked) has named and no notice is under way to is in
//! [`Telling`], and is told as room comes.

use crate::bits::PairBits;
use crate::card::{Break, Card};
use crate::connection::{Cause, State};
use crate::exchange::{Frame, Reply};
use crate::firmware::Firmware;
use crate::peers::Peer;
use crate::persistent::is_later;
use crate::repeat::Repeat;
use crate::revoked::Revocation;
use abi::event;
use abi::mailbox::{AuditKind, ConnectReason, FailureCause};
use abi::wire::{FrameType, ManagementBody, ManagementKind};

/// Notices that may be under way.
pub const MOST_NOTICES: usize = 16;
/// Number of an `Alive`, and of the answer to it.
const NUMBER_OF_ALIVE: u16 = 0;
/// Failures and revocations that peers may be about to be told of.
pub const MOST_TELLINGS: usize = 4;
/// Signals that wait to be raised as events. While there is no room, a peer's signal isn't answered: it comes again.
pub(crate) const SIGNALS: usize = 8;

/// What a notice says.
#[derive(Clone, Copy)]
pub(crate) enum Said {
    /// A word for the process at the other end.
    Signal(u64),
    /// This peer has failed.
    PeerFailed(Peer),
    /// These messages are revoked.
    Revoked(Revocation),
}

impl Said {
    const fn kind(&self) -> ManagementKind {
        match self {
            Self::Signal(_) => ManagementKind::Signal,
            Self::PeerFailed(_) => ManagementKind::PeerFailed,
            Self::Revoked(_) => ManagementKind::Revoked,
        }
    }

    /// Says it in a frame of its kind.
    const fn put(self, body: &mut ManagementBody) {
        match self {
            Self::Signal(word) => body.word = word,
            Self::PeerFailed(peer) => body.word = peer.to_word(),
            Self::Revoked(revocation) => revocation.put(body),
        }
    }
}

/// A notice that the peer hasn't answered.
#[derive(Clone, Copy)]
pub(crate) struct Notice {
    pair: u16,
    generation: u16,
    number: u16,
    said: Said,
    /// When it is sent.
    pub(crate) repeat: Repeat,
}

/// A failure or a revocation that peers are told of.
#[derive(Clone, Copy)]
pub(crate) struct Telling {
    endpoint: u8,
    said: Said,
    /// Pairs whose peers no notice has been begun to.
    to: PairBits,
}

/// A signal of a pair's peer that is to be raised as an event.
#[derive(Clone, Copy)]
pub(crate) struct Signalled {
    pub(crate) pair: u16,
    pub(crate) generation: u16,
    pub(crate) cause: event::Cause,
    pub(crate) word: u64,
}

impl<C: Card> Firmware<C> {
    /// Whether a notice of a pair may begin.
    pub(crate) fn has_notice(&self, pair: usize) -> bool {
        let own = |notice: &Notice| usize::from(notice.pair) == pair;
        !self.notices.is_full() && !self.notices.iter().any(own)
    }

    /// Begins a notice, for which there is room.
    pub(crate) fn begin_notice(&mut self, index: usize, said: Said) {
        let number = self.next_notice(index);
        let notice = Notice {
            pair: index as u16,
            generation: self.pairs[index].generation,
            number,
            said,
            repeat: Repeat::begun(self.card.now()),
        };
        let pushed = self.notices.push(notice);
        debug_assert!(pushed.is_ok(), "a notice was begun without asking for room");
    }

    /// Number of the next notice of a pair: never [`NUMBER_OF_ALIVE`].
    fn next_notice(&mut self, index: usize) -> u16 {
        let pair = &mut self.pairs[index];
        pair.notices = match pair.notices.wrapping_add(1) {
            NUMBER_OF_ALIVE => 1,
            next => next,
        };
        pair.notices
    }

    /// Asks the peer of a pair for a sign of life, once.
    pub(crate) fn ask_for_life(&mut self, index: usize) {
        self.asks.insert(index);
    }

    /// Begins to tell the peers of some pairs of an endpoint. False if there is no room.
    pub(crate) fn begin_telling(&mut self, endpoint: u8, said: Said, to: PairBits) -> bool {
        let telling = Telling { endpoint, said, to };
        self.tellings.push(telling).is_ok()
    }

    /// Whether anything of this room is to be sent.
    pub(crate) fn notices_are_due(&self) -> bool {
        self.notices.iter().any(|notice| notice.repeat.due) || !self.asks.is_empty()
    }

    /// Forgets notices whose pair has ended, repeats those whose time has come, and tells whom there is room to tell.
    pub(crate) fn run_notices(&mut self) -> bool {
        let now = self.card.now();
        let pairs = &self.pairs;
        self.notices.retain(|notice| {
            let pair = &pairs[usize::from(notice.pair)];
            pair.state == State::Connected && pair.generation == notice.generation
        });
        let endless = !self.card.is_broken(Break::NoticeNotRepeated);
        let mut moved = false;
        for notice in &mut self.notices {
            if notice.repeat.comes(now) {
                notice.repeat.due |= endless;
                moved = true;
            }
        }
        moved | self.tell()
    }

    /// Begins a notice to somebody who is to be told. A place without a pair is passed over.
    fn tell(&mut self) -> bool {
        for k in 0..self.tellings.len() {
            let Telling { endpoint, said, to } = self.tellings[k];
            let mut from = 0;
            while let Some(index) = to.next(from) {
                from = index + 1;
                let is_told = self.pairs.get(index).is_some_and(|pair| {
                    pair.endpoint == endpoint && pair.state == State::Connected
                });
                if is_told && !self.has_notice(index) {
                    continue;
                }
                self.tellings[k].to.remove(index);
                if is_told {
                    self.begin_notice(index, said);
                }
                return true;
            }
            if to.is_empty() {
                self.tellings.remove(k);
                return true;
            }
        }
        false
    }

    /// The notice to send next, if one is due: `Alive` when there is no other.
    pub(crate) fn next_due_notice(&mut self) -> Option<Reply> {
        if let Some(at) = self.notices.iter().position(|notice| notice.repeat.due) {
            self.notices[at].repeat.due = false;
            let Notice {
                pair, number, said, ..
            } = self.notices[at];
            let mut frame = self.notice_frame(pair.into(), said.kind(), number);
            said.put(&mut frame.body);
            return Some(Reply {
                pair: Some(pair),
                words: frame.to_words(),
            });
        }
        while let Some(index) = self.asks.next(0) {
            self.asks.remove(index);
            if self.pairs[index].state == State::Connected {
                let number = match self.card.is_broken(Break::AliveNumbered) {
                    true => self.pairs[index].notices,
                    false => NUMBER_OF_ALIVE,
                };
                return Some(self.notice(index, ManagementKind::Alive, number));
            }
        }
        None
    }

    fn notice_frame(&self, index: usize, kind: ManagementKind, number: u16) -> Frame {
        let none = ConnectReason::None;
        let mut frame = self.frame(index, FrameType::Management, kind, none, 0);
        (frame.body.transaction, frame.body.word) = (number.into(), 0);
        frame
    }

    fn notice(&self, index: usize, kind: ManagementKind, number: u16) -> Reply {
        Reply {
            pair: Some(index as u16),
            words: self.notice_frame(index, kind, number).to_words(),
        }
    }

    /// A notice of the peer of a pair, or the answer to one.
    pub(crate) fn noticed(&mut self, frame: &Frame, kind: ManagementKind) {
        // Of a pair that isn't connected any more there is nothing to say: its peer finds that out by itself.
        let Some(index) = self.named_connected(frame) else {
            return;
        };
        let Ok(number) = u16::try_from(frame.body.transaction) else {
            return self.malformed(frame);
        };
        self.peer_heard(index);
        if kind == ManagementKind::NoticeDone {
            self.notices
                .retain(|notice| (usize::from(notice.pair), notice.number) != (index, number));
            return;
        }
        let seen = self.pairs[index].notices_seen;
        let repeated = seen == number && !self.card.is_broken(Break::SignalRepeated);
        if kind != ManagementKind::Alive && !repeated {
            if !is_later(number, seen) && !self.card.is_broken(Break::SignalRepeated)
                || !self.carry_out(index, frame, kind)
            {
                return;
            }
            self.pairs[index].notices_seen = number;
        }
        self.answer_notice(index, number);
    }

    fn answer_notice(&mut self, index: usize, number: u16) {
        let waits = |reply: &Reply| reply.pair == Some(index as u16);
        if !self.replies.iter().any(waits) {
            let done = self.notice(index, ManagementKind::NoticeDone, number);
            // If there is no room, the peer asks again.
            let _ = self.replies.push_back(done);
        }
    }

    /// Does what a notice says. False if there is no room to.
    fn carry_out(&mut self, index: usize, frame: &Frame, kind: ManagementKind) -> bool {
        let word = frame.body.word;
        if kind == ManagementKind::Signal {
            let signal = Signalled {
                pair: index as u16,
                generation: self.pairs[index].generation,
                cause: event::Cause::Signal,
                word,
            };
            return self.signals.push_back(signal).is_ok();
        }
        let endpoint = self.pairs[index].endpoint;
        let believes = self.endpoints[usize::from(endpoint)].watch.believes;
        if !believes && !self.card.is_broken(Break::AnyoneBelieved) {
            let id = self.pairs[index].id(index);
            self.audit.record(AuditKind::NotBelieved, id, 0, &self.card);
            return true;
        }
        if kind == ManagementKind::Revoked {
            return self.keep_revocation(index, Revocation::said_by(&frame.body));
        }
        let peer = Peer::from_word(word);
        for other in (0..self.pairs.len()).filter(|&other| other != index) {
            let pair = &self.pairs[other];
            if pair.is_between(endpoint, peer) && pair.state == State::Connected {
                self.peer_fails(other, FailureCause::Told, Cause::FrameTold);
            }
        }
        true
    }

    /// Raises the oldest signal as an event.
    pub(crate) fn start_signal(&mut self) -> bool {
        while let Some(signal) = self.signals.pop_front() {
            let pair = &self.pairs[usize::from(signal.pair)];
            let open = !matches!(pair.state, State::Closed | State::Closing);
            if open && pair.generation == signal.generation {
                self.raise(signal.pair.into(), signal.cause, signal.word);
                return true;
            }
        }
        false
    }
}
