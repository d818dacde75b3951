//! Exchanges with the firmware of a peer: which are under way, their timers, and the frames that they repeat.
//!
//! Each frame is repeated, ever more seldom, until it is answered or the time is over. What answers a frame is not repeated: the peer asks again.
//!
//! One frame of a pair is under way: a later one takes the place of one that waits, and a repetition of the peer's isn't answered while the last
//! frame may still be on its way.

use crate::card::{Break, Card, FrameWords};
use crate::connection::{Cause, State};
use crate::firmware::Firmware;
use crate::pair::{Held, Marks, Pair};
use crate::peers::Peer;
use crate::repeat::{REPEAT_FIRST, Repeat, is_reached};
use crate::times;
use abi::mailbox::{AuditKind, ConnectReason, malformed_info};
use abi::mgmt::FRAME_WORDS;
use abi::times::TELL_TIMEOUT;
use abi::wire::{
    ETHERTYPE_FIELD, FrameHeader, FrameType, MANAGEMENT_BYTES, ManagementBody, ManagementKind,
    VERSION, join_mac, split_mac,
};

/// Handshakes that may be under way.
pub const MOST_HANDSHAKES: usize = 16;
/// Disconnects that may be under way.
pub const MOST_DISCONNECTS: usize = 16;
pub(crate) const MOST: usize = MOST_HANDSHAKES + MOST_DISCONNECTS;

/// Cycles for which a frame that was sent is taken to be on its way: less than a peer waits before it repeats what it asks.
const ON_ITS_WAY: u32 = REPEAT_FIRST / 2;
/// Cycles between two looks at a pair that drains.
const DRAIN_POLL: u32 = 1 << 12;

/// An exchange. What it is about is the state of its pair.
#[derive(Clone, Copy)]
pub(crate) struct Exchange {
    pub(crate) pair: u16,
    is_disconnect: bool,
    /// When it is given up.
    pub(crate) deadline: u32,
    /// When its frame is sent, or the next look is taken.
    pub(crate) repeat: Repeat,
    /// Epochs of its endpoint that the peer has found stale.
    pub(crate) stale: u8,
}

/// A frame that waits to be sent, and the pair that it is about.
pub(crate) struct Reply {
    pub(crate) pair: Option<u16>,
    pub(crate) words: FrameWords,
}

/// A frame for a firmware, or from one.
#[derive(Clone, Copy)]
pub(crate) struct Frame {
    pub(crate) header: FrameHeader,
    pub(crate) body: ManagementBody,
}

impl Frame {
    pub(crate) fn from_words(words: &FrameWords) -> Self {
        let word = |k: usize| u64::from(words[2 * k]) | u64::from(words[2 * k + 1]) << 32;
        Self {
            header: FrameHeader::from_words(&core::array::from_fn(word)),
            body: ManagementBody::from_words(&core::array::from_fn(|k| {
                word(FrameHeader::WORDS + k)
            })),
        }
    }

    pub(crate) fn to_words(self) -> FrameWords {
        let mut words = [0; FRAME_WORDS];
        let (header, body) = (self.header.to_words(), self.body.to_words());
        for (pair, word) in words.chunks_exact_mut(2).zip(header.iter().chain(&body)) {
            (pair[0], pair[1]) = (*word as u32, (*word >> 32) as u32);
        }
        words
    }

    pub(crate) fn source(&self) -> Peer {
        Peer::new(
            join_mac(self.header.source_mac_low, self.header.source_mac_high),
            self.header.source_endpoint,
        )
    }
}

impl<C: Card> Firmware<C> {
    fn count_exchanges(&self, disconnects: bool) -> usize {
        let alike = |one: &&Exchange| one.is_disconnect == disconnects;
        self.exchanges.iter().filter(alike).count()
    }

    /// Whether one more handshake may begin.
    pub(crate) fn has_handshake(&self) -> bool {
        self.count_exchanges(false) < MOST_HANDSHAKES
            || self.card.is_broken(Break::HandshakesUnbounded)
    }

    /// Whether one more disconnect may begin.
    pub(crate) fn has_disconnect(&self) -> bool {
        self.count_exchanges(true) < MOST_DISCONNECTS
            || self.card.is_broken(Break::DisconnectsUnbounded)
    }

    /// Begins an exchange, for which there is room.
    pub(crate) fn begin_exchange(&mut self, pair: usize, is_disconnect: bool, timeout: u32) {
        let now = self.card.now();
        let exchange = Exchange {
            pair: pair as u16,
            is_disconnect,
            deadline: now.wrapping_add(timeout),
            repeat: Repeat::from(now.wrapping_add(timeout)),
            stale: 0,
        };
        let pushed = self.exchanges.push(exchange);
        debug_assert!(
            pushed.is_ok(),
            "an exchange was begun without asking for room"
        );
    }

    /// The exchange of a pair.
    pub(crate) fn exchange(&mut self, pair: usize) -> Option<&mut Exchange> {
        let own = |one: &&mut Exchange| usize::from(one.pair) == pair;
        self.exchanges.iter_mut().find(own)
    }

    pub(crate) fn end_exchange(&mut self, pair: usize) {
        self.exchanges.retain(|one| usize::from(one.pair) != pair);
    }

    /// Sends the frame of a pair's state, now and again.
    pub(crate) fn repeat_from_now(&mut self, pair: usize) {
        let now = self.card.now();
        self.drop_reply(pair);
        if let Some(exchange) = self.exchange(pair) {
            exchange.repeat = Repeat::begun(now);
        }
    }

    /// Sends the frame of a pair's state once more, unless one is under way.
    pub(crate) fn send_again(&mut self, pair: usize) {
        let broken = self.card.is_broken(Break::AcceptNotRepeated)
            && self.pairs[pair].state == State::Offering;
        let may = self.may_repeat(pair) && !broken;
        if let Some(exchange) = self.exchange(pair)
            && may
        {
            exchange.repeat.due = true;
        }
    }

    /// Whether no frame of a pair waits or may still be on its way, so that the peer's repetition is answered. It repeats again if it isn't.
    pub(crate) fn may_repeat(&self, pair: usize) -> bool {
        let due = |one: &Exchange| one.repeat.due && usize::from(one.pair) == pair;
        let waits = self.exchanges.iter().any(due)
            || self
                .replies
                .iter()
                .any(|reply| reply.pair == Some(pair as u16));
        let elapsed = self.card.now().wrapping_sub(self.pairs[pair].sent_at);
        !waits && elapsed >= ON_ITS_WAY || self.card.is_broken(Break::EveryRepetitionAnswered)
    }

    /// Forgets the answer of a pair that waits, if one does.
    fn drop_reply(&mut self, pair: usize) {
        if self.card.is_broken(Break::EveryRepetitionAnswered) {
            return;
        }
        for _ in 0..self.replies.len() {
            let reply = self.replies.pop_front();
            if let Some(reply) = reply.filter(|reply| reply.pair != Some(pair as u16)) {
                // There is the room that it left.
                let _ = self.replies.push_back(reply);
            }
        }
    }

    /// Gives an exchange another time to end.
    pub(crate) fn extend_exchange(&mut self, pair: usize, timeout: u32) {
        let now = self.card.now();
        if let Some(exchange) = self.exchange(pair) {
            exchange.deadline = now.wrapping_add(timeout);
        }
    }

    pub(crate) fn run_exchange_timers(&mut self) -> bool {
        let now = self.card.now();
        let (mut moved, mut k) = (false, 0);
        while let Some(exchange) = self.exchanges.get_mut(k) {
            let pair = usize::from(exchange.pair);
            let endless = self.card.is_broken(Break::NeverGivesUp);
            let over = is_reached(now, exchange.deadline) && !endless;
            let again = exchange.repeat.comes(now);
            let before = self.exchanges.len();
            if over {
                self.give_up(pair);
            } else if again {
                self.look_again(pair);
            }
            moved |= over | again;
            // One that has ended has left its place to the next.
            k += usize::from(self.exchanges.len() == before);
        }
        moved
    }

    fn look_again(&mut self, pair: usize) {
        match self.pairs[pair].state {
            State::Requesting | State::Offering | State::Telling => self.send_again(pair),
            State::Draining => self.look_at_drain(pair),
            _ => {}
        }
    }

    /// Reads a pair that drains, and again soon.
    pub(crate) fn look_at_drain(&mut self, pair: usize) {
        let next = self.card.now().wrapping_add(DRAIN_POLL);
        if let Some(exchange) = self.exchange(pair) {
            exchange.repeat.next = next;
        }
        self.pairs[pair].marks.put(Marks::TO_READ);
        self.mark(pair);
    }

    fn give_up(&mut self, pair: usize) {
        match self.pairs[pair].state {
            State::Requesting => {
                self.refused(pair, Cause::TimerGiveUp, ConnectReason::TimedOut, 0);
            }
            State::Setting | State::Preparing | State::Offering => {
                self.withdraw(pair, Cause::TimerGiveUp, ConnectReason::TimedOut, 0);
            }
            State::Draining => {
                self.go(pair, Cause::TimerGiveUp, State::Ending);
                self.extend_exchange(pair, TELL_TIMEOUT);
                self.want(pair, Held::Failed);
            }
            State::Telling => self.disconnected(pair, Cause::TimerGiveUp),
            // The gates are what is waited for.
            _ => self.extend_exchange(pair, TELL_TIMEOUT),
        }
    }

    // Frames

    /// A frame about a pair, to its peer.
    pub(crate) fn frame(
        &self,
        index: usize,
        frame_type: FrameType,
        kind: ManagementKind,
        reason: ConnectReason,
        detail: u16,
    ) -> Frame {
        let pair: &Pair = &self.pairs[index];
        let endpoint = &self.endpoints[usize::from(pair.endpoint)];
        let remembered = self.peers.find(pair.peer);
        let (source_mac_low, source_mac_high) = split_mac(self.card.mac());
        Frame {
            header: FrameHeader {
                destination_mac: pair.peer.mac(),
                source_mac_low,
                source_mac_high,
                ethertype: ETHERTYPE_FIELD,
                version: VERSION,
                frame_type: frame_type.code(),
                destination_endpoint: pair.peer.endpoint(),
                source_endpoint: pair.endpoint.into(),
                destination_pair: pair.remote_pair,
                source_pair: index as u16,
                destination_epoch: pair.remote_epoch,
                source_epoch: pair.epoch,
                cookie: pair.cookie(),
                payload_length: MANAGEMENT_BYTES as u16,
                message_length: MANAGEMENT_BYTES as u64,
                ..FrameHeader::default()
            },
            body: ManagementBody {
                kind: kind.code(),
                reason: reason.code(),
                detail,
                transaction: pair.transaction,
                incarnation: endpoint.incarnation,
                credits: pair.credits,
                version: VERSION,
                remembered_epoch: remembered.map_or(0, |seen| seen.epoch),
                remembered_incarnation: remembered.map_or(0, |seen| seen.incarnation),
                nonce: pair.nonce,
                peer_nonce: pair.peer_nonce,
                job: match frame_type {
                    FrameType::Handshake => endpoint.job,
                    _ => 0,
                },
                word: self.clocks_for(pair, kind),
                ..ManagementBody::default()
            },
        }
    }

    /// An answer to a frame that no pair is found for, or no pair is to answer.
    pub(crate) fn answer_to(
        &self,
        frame: &Frame,
        kind: ManagementKind,
        reason: ConnectReason,
        detail: u16,
    ) -> Frame {
        let asked = &frame.header;
        let (source_mac_low, source_mac_high) = split_mac(self.card.mac());
        Frame {
            header: FrameHeader {
                destination_mac: frame.source().mac(),
                source_mac_low,
                source_mac_high,
                ethertype: ETHERTYPE_FIELD,
                version: VERSION,
                frame_type: asked.frame_type,
                destination_endpoint: asked.source_endpoint,
                source_endpoint: asked.destination_endpoint,
                destination_pair: asked.source_pair,
                source_pair: asked.destination_pair,
                destination_epoch: asked.source_epoch,
                source_epoch: asked.destination_epoch,
                cookie: asked.cookie,
                payload_length: MANAGEMENT_BYTES as u16,
                message_length: MANAGEMENT_BYTES as u64,
                ..FrameHeader::default()
            },
            body: ManagementBody {
                kind: kind.code(),
                reason: reason.code(),
                detail,
                transaction: frame.body.transaction,
                version: VERSION,
                nonce: frame.body.peer_nonce,
                peer_nonce: frame.body.nonce,
                ..ManagementBody::default()
            },
        }
    }

    /// Sends an answer that is about no pair of this card, if there is room; the peer asks again if there is none.
    pub(crate) fn reply(&mut self, frame: Frame) {
        self.push_reply(None, frame);
    }

    /// Sends an answer about a pair instead of what waits of it.
    pub(crate) fn reply_about(&mut self, pair: usize, frame: Frame) {
        self.drop_reply(pair);
        if let Some(exchange) = self.exchange(pair) {
            exchange.repeat.due = false;
        }
        self.push_reply(Some(pair as u16), frame);
    }

    fn push_reply(&mut self, pair: Option<u16>, frame: Frame) {
        let words = frame.to_words();
        let _ = self.replies.push_back(Reply { pair, words });
    }

    /// Takes the next frame to send: answers first, then whose turn it is.
    pub(crate) fn next_frame(&mut self) -> Option<FrameWords> {
        let reply = self.replies.pop_front();
        let exchange = |this: &mut Self| reply.or_else(|| this.next_due_frame());
        let Reply { pair, mut words } = exchange(self)
            .or_else(|| self.next_due_notice())
            .or_else(|| self.next_due_drain())?;
        let now = self.card.now();
        if let Some(pair) = pair.and_then(|pair| self.pairs.get_mut(usize::from(pair))) {
            pair.sent_at = now;
        }
        times::set_clocks(&mut words, now);
        Some(words)
    }

    /// The frame that the state of a pair repeats, if one is due.
    fn next_due_frame(&mut self) -> Option<Reply> {
        let count = self.exchanges.len();
        let first = self.next_exchange;
        let at = (0..count)
            .map(|k| (first + k) % count)
            .find(|&k| self.exchanges[k].repeat.due)?;
        self.next_exchange = at + 1;
        self.exchanges[at].repeat.due = false;
        let pair = usize::from(self.exchanges[at].pair);
        let (frame_type, kind) = match self.pairs[pair].state {
            State::Requesting => (FrameType::Handshake, ManagementKind::ConnectRequest),
            State::Offering => (FrameType::Handshake, ManagementKind::ConnectAccept),
            State::Telling => (FrameType::Management, ManagementKind::Disconnect),
            // It was due before the state changed.
            _ => return None,
        };
        let frame = self.frame(pair, frame_type, kind, ConnectReason::None, 0);
        Some(Reply {
            pair: Some(pair as u16),
            words: frame.to_words(),
        })
    }

    /// Notes that a frame makes no sense.
    pub(crate) fn malformed(&mut self, frame: &Frame) {
        let info = malformed_info(frame.body.kind, frame.header.frame_type);
        self.audit
            .record(AuditKind::FrameMalformed, 0, info, &self.card);
    }
}
