//! The times of a pair: what its host has chosen, and for the rest what follows from the round trip that the handshake measures.
//!
//! ```text
//!  initiator                                    acceptor
//!  ConnectRequest, own clock ─────────────────► knows how far the two clocks are apart, less the frame's way
//!                  ◄── ConnectAccept, its own clock, and the initiator's as it says now
//!  the round trip is what its clock says beyond that
//!                  ConnectConfirm, the same ──► likewise
//! ```
//!
//! What each side takes to answer isn't in it, nor how often a frame was repeated. A peer may say anything: what follows is within bounds whatever it says.
//! `docs/src/connection.md` has the formula.

use crate::argument::{BUSY, Refusal, narrow};
use crate::card::{Break, Card, FrameWords};
use crate::commands::{Job, Outcome, Served};
use crate::connection::State;
use crate::exchange::Frame;
use crate::firmware::Firmware;
use crate::pair::{Held, Pair};
use abi::control::PairSetup;
use abi::mailbox::{
    Nothing, SetPairTimes, TIMES_CREDITS, TIMES_DELAY, TIMES_RETRY_LIMIT, TIMES_TIMEOUT,
};
use abi::times::{
    ACKNOWLEDGE_TIMEOUT_LOG2, RETRY_LIMIT, RETRY_LIMIT_MOST, TIMEOUT_LOG2_LEAST, TIMEOUT_LOG2_MOST,
    default_delay, default_timeout_log2,
};
use abi::wire::{FrameType, ManagementKind, clocks, clocks_word};

/// Where the type stands in a frame for the firmware: word, and bit of it.
const TYPE_WORD: usize = 3;
const TYPE_SHIFT: u32 = 24;

/// The times of a pair.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// `TIMES_*`: which of the values are the host's.
    chosen: u8,
    timeout_log2: u8,
    retry_limit: u8,
    credits: u8,
    delay: u16,
    /// Log2 of the time-out that follows from the round trip.
    measured_log2: u8,
    /// The gates are to be told.
    pub(crate) is_due: bool,
}

impl Times {
    /// Nothing is chosen, and no round trip known.
    pub(crate) const fn unknown() -> Self {
        Self {
            chosen: 0,
            timeout_log2: 0,
            retry_limit: 0,
            credits: 0,
            delay: 0,
            measured_log2: ACKNOWLEDGE_TIMEOUT_LOG2,
            is_due: false,
        }
    }

    const fn has(&self, value: u32) -> bool {
        self.chosen as u32 & value != 0
    }

    /// What the host chooses for a pair that grants so many credits.
    fn choose(self, asked: &SetPairTimes, credits: u8, any: bool) -> Result<Self, Refusal> {
        let all = TIMES_TIMEOUT | TIMES_RETRY_LIMIT | TIMES_DELAY | TIMES_CREDITS;
        let within = |value: u32, chosen: u32, least: u8, most: u8, position: u32| {
            let fits = (least.into()..=most.into()).contains(&value) || any;
            match asked.chosen & chosen == 0 || fits {
                true => Ok(value as u8),
                false => Err(Refusal::argument(position)),
            }
        };
        if asked.chosen & !all != 0 {
            return Err(Refusal::argument(1));
        }
        let (least, most) = (TIMEOUT_LOG2_LEAST, TIMEOUT_LOG2_MOST);
        Ok(Self {
            chosen: asked.chosen as u8,
            timeout_log2: within(asked.timeout_log2, TIMES_TIMEOUT, least, most, 2)?,
            retry_limit: within(asked.retry_limit, TIMES_RETRY_LIMIT, 0, RETRY_LIMIT_MOST, 3)?,
            delay: match asked.chosen & TIMES_DELAY {
                0 => 0,
                _ => narrow(asked.acknowledge_delay, 4)?,
            },
            credits: within(asked.acknowledge_credits, TIMES_CREDITS, 0, credits, 5)?,
            ..self
        })
    }

    /// Puts those by which a pair goes that grants so many credits into its setup.
    pub(crate) fn put(&self, setup: &mut PairSetup, credits: u8) {
        setup.timeout_log2 = match self.has(TIMES_TIMEOUT) {
            true => self.timeout_log2,
            false => self.measured_log2,
        };
        setup.retry_limit = match self.has(TIMES_RETRY_LIMIT) {
            true => self.retry_limit,
            false => RETRY_LIMIT,
        };
        setup.acknowledge_delay = match self.has(TIMES_DELAY) {
            true => self.delay,
            false => default_delay(self.measured_log2),
        };
        setup.acknowledge_credits = match self.has(TIMES_CREDITS) {
            true => self.credits,
            false => credits / 2,
        };
    }
}

/// Sets the clocks of a frame of a handshake that has them on to when it is sent.
pub(crate) fn set_clocks(words: &mut FrameWords, now: u32) {
    let is_handshake = words[TYPE_WORD] >> TYPE_SHIFT == FrameType::Handshake.code().into();
    let [.., own, peer] = words;
    if is_handshake && *own | *peer != 0 {
        // A request has the own one only, and doesn't wait.
        *peer = peer.wrapping_add(now.wrapping_sub(*own));
        *own = now;
    }
}

impl<C: Card> Firmware<C> {
    /// Notes how far the clock of a pair's peer is ahead of the own one, by a frame of a handshake.
    pub(crate) fn note_clock(&mut self, index: usize, frame: &Frame) {
        let (peer, _) = clocks(frame.body.word);
        self.pairs[index].peer_ahead = match self.card.is_broken(Break::AnswerTimeCounted) {
            true => peer,
            false => peer.wrapping_sub(self.frame_at),
        };
    }

    /// Both clocks, for a frame of a pair's handshake.
    pub(crate) fn clocks_for(&self, pair: &Pair, kind: ManagementKind) -> u64 {
        let now = self.card.now();
        let peer = match kind {
            ManagementKind::ConnectAccept | ManagementKind::ConnectConfirm => {
                match self.card.is_broken(Break::AnswerTimeCounted) {
                    true => pair.peer_ahead,
                    false => now.wrapping_add(pair.peer_ahead),
                }
            }
            ManagementKind::ConnectRequest => 0,
            _ => return 0,
        };
        clocks_word(now, peer)
    }

    /// Takes the round trip from a frame that answers one of the pair.
    pub(crate) fn measure(&mut self, index: usize, frame: &Frame) {
        let (_, own) = clocks(frame.body.word);
        // A peer that says that it took longer than there was time for has taken all of it.
        let round_trip = self.frame_at.wrapping_sub(own) as i32;
        let log2 = default_timeout_log2(round_trip.max(0) as u32);
        let ignored = self.card.is_broken(Break::RoundTripIgnored);
        let times = &mut self.pairs[index].times;
        if log2 != times.measured_log2 && !ignored {
            times.measured_log2 = log2;
            times.is_due = true;
        }
    }

    pub(crate) fn set_pair_times(&mut self, set: SetPairTimes) -> Served<Nothing> {
        let index = self.pair(set.pair)?;
        let any = self.card.is_broken(Break::TimesUnbounded);
        let pair = &mut self.pairs[index];
        if pair.state == State::Closing {
            return Err(BUSY);
        }
        pair.times = pair.times.choose(&set, pair.credits, any)?;
        Ok(match pair.wanted {
            Held::Set if !self.card.is_broken(Break::TimesNotTold) => {
                Outcome::Later(Job::SetPairTimes { index })
            }
            _ => Outcome::Done(Nothing {}),
        })
    }
}
