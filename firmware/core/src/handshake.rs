//! How the firmwares of two cards make a connection and end it: what each frame does. `docs/src/connection.md` has the exchange as a table.
//!
//! ```text
//!  initiator                                    acceptor
//!  Requesting ── ConnectRequest ──────────────► Accepting     (an offer, or its own Connect to the initiator)
//!                                               Preparing     PairSet
//!  Setting    ◄───────────── ConnectAccept ──── Offering
//!  PairSet
//!  Connected  ── ConnectConfirm ──────────────► Connected
//! ```
//!
//! A frame is taken for what it says only if everything in it agrees with what is known: endpoints, addresses, transaction, and both
//! nonces once they are. So one that comes late belongs to nothing, and its sender is told.

use crate::card::{Break, Card, FrameWords};
use crate::connection::{Cause, State};
use crate::endpoint::EndpointState;
use crate::exchange::Frame;
use crate::firmware::Firmware;
use crate::pair::{Held, Marks, Pair};
use crate::peers::Peer;
use crate::persistent::is_later;
use abi::event;
use abi::limits::MAX_CREDITS;
use abi::mailbox::{AuditKind, ConnectReason, FailureCause};
use abi::times::{ANSWER_TIMEOUT, TELL_TIMEOUT};
use abi::wire::{
    ETHERTYPE_FIELD, FrameHeader, FrameType, MANAGEMENT_BYTES, ManagementKind, VERSION,
};

/// Epochs of an initiator that its peer may find stale before it gives up. One more suffices, unless the peer remembers yet another.
const STALE_EPOCHS: u8 = 4;

impl<C: Card> Firmware<C> {
    /// Takes a frame for the firmware.
    pub(crate) fn incoming(&mut self, words: &FrameWords) {
        let frame = Frame::from_words(words);
        let FrameHeader {
            destination_mac,
            ethertype,
            version,
            frame_type,
            payload_length,
            ..
        } = frame.header;
        let (source, kind) = (frame.source(), ManagementKind::from_code(frame.body.kind));
        let addressed = ethertype == ETHERTYPE_FIELD
            && destination_mac == self.card.mac()
            && source.mac() & 1 == 0
            && source.mac() != 0;
        let (true, Some(kind)) = (addressed, kind) else {
            return self.malformed(&frame);
        };
        let whole = usize::from(payload_length) == MANAGEMENT_BYTES;
        match FrameType::from_code(frame_type) {
            Some(FrameType::Handshake)
                if version != VERSION && !self.card.is_broken(Break::VersionIgnored) =>
            {
                self.other_version(&frame, kind);
            }
            Some(FrameType::Handshake) if whole => match kind {
                ManagementKind::ConnectRequest => self.requested(&frame),
                ManagementKind::ConnectAccept => self.accepted(&frame),
                ManagementKind::ConnectConfirm => self.confirmed(&frame),
                ManagementKind::ConnectRefuse => self.was_refused(&frame),
                _ => self.malformed(&frame),
            },
            Some(FrameType::Management) if whole && version == VERSION => match kind {
                ManagementKind::Disconnect => self.peer_disconnects(&frame),
                ManagementKind::DisconnectDone => self.peer_is_done(&frame),
                ManagementKind::Alive
                | ManagementKind::Signal
                | ManagementKind::PeerFailed
                | ManagementKind::Revoked
                | ManagementKind::NoticeDone => self.noticed(&frame, kind),
                ManagementKind::DrainAsk
                | ManagementKind::DrainPropose
                | ManagementKind::DrainCommit
                | ManagementKind::DrainReport => self.drain_told(&frame, kind),
                _ => self.malformed(&frame),
            },
            _ => self.malformed(&frame),
        }
    }

    /// A pair that this side is connecting, by transaction.
    fn find(
        &self,
        frame: &Frame,
        initiated: bool,
        agrees: impl Fn(&Pair) -> bool,
    ) -> Option<usize> {
        let (source, transaction) = (frame.source(), frame.body.transaction);
        self.pairs.iter().position(|pair| {
            pair.state != State::Closed
                && pair.transaction == transaction
                && transaction != 0
                && pair.initiated == initiated
                && u16::from(pair.endpoint) == frame.header.destination_endpoint
                && pair.peer == source
                && agrees(pair)
        })
    }

    /// A handshake in another version of the wire format.
    fn other_version(&mut self, frame: &Frame, kind: ManagementKind) {
        match kind {
            ManagementKind::ConnectRequest => {
                let ours = match self.card.is_broken(Break::VersionUnnamed) {
                    true => 0,
                    false => VERSION.into(),
                };
                self.refuse(frame, None, ConnectReason::WrongVersion, ours);
            }
            ManagementKind::ConnectRefuse => {
                let requesting = |pair: &Pair| pair.state == State::Requesting;
                if let Some(pair) = self.find(frame, true, requesting) {
                    let (reason, theirs) = (ConnectReason::WrongVersion, frame.header.version);
                    self.refused(pair, Cause::FrameRefuse, reason, theirs.into());
                }
            }
            // An answer that isn't asked for.
            _ => self.malformed(frame),
        }
    }

    /// Refuses what a frame asks for, which is about a pair of this card or about none.
    fn refuse(&mut self, frame: &Frame, pair: Option<usize>, reason: ConnectReason, detail: u16) {
        let reason = match self.card.is_broken(Break::ReasonUnnamed) {
            true => ConnectReason::None,
            false => reason,
        };
        let answer = self.answer_to(frame, ManagementKind::ConnectRefuse, reason, detail);
        match pair {
            Some(pair) => self.reply_about(pair, answer),
            None => self.reply(answer),
        }
        let object = frame.header.destination_endpoint.into();
        let info = reason.code().into();
        self.audit
            .record(AuditKind::PeerRefused, object, info, &self.card);
    }

    // Acceptor

    fn requested(&mut self, frame: &Frame) {
        if let Err((reason, detail)) = self.serve_request(frame) {
            self.refuse(frame, None, reason, detail);
        }
    }

    /// Serves a request for a connection.
    ///
    /// # Errors
    /// Why it is refused.
    fn serve_request(&mut self, frame: &Frame) -> Result<(), (ConnectReason, u16)> {
        let (header, body, source) = (&frame.header, &frame.body, frame.source());
        let fits = (1..=MAX_CREDITS).contains(&body.credits.into());
        if body.version != VERSION {
            return Err((ConnectReason::WrongVersion, VERSION.into()));
        }
        if !fits || body.transaction == 0 || header.source_epoch == 0 {
            self.malformed(frame);
            return Err((ConnectReason::Malformed, 0));
        }
        let index = usize::from(header.destination_endpoint);
        let open = |at: usize| {
            let endpoint = self.endpoints.get(at)?;
            (endpoint.state == EndpointState::Open).then_some(at as u8)
        };
        let endpoint = open(index).ok_or((ConnectReason::NoEndpoint, 0))?;

        // One that was served before?
        let answered = |pair: &Pair| pair.is_live();
        if let Some(pair) = self.find(frame, false, answered)
            && !self.card.is_broken(Break::RepetitionServed)
        {
            match self.pairs[pair].state {
                State::Offering => self.send_again(pair),
                State::Connected if self.may_repeat(pair) => self.accept_again(pair),
                _ => {}
            }
            return Ok(());
        }
        if !self.is_job_of(index, body.job) {
            return Err((ConnectReason::WrongJob, 0));
        }
        if let Err(epoch) = self
            .peers
            .judge(source, header.source_epoch, body.incarnation)
            && !self.card.is_broken(Break::StaleEpochServed)
        {
            return Err((ConnectReason::StaleEpoch, epoch));
        }
        let remembered = (body.remembered_epoch, body.remembered_incarnation);
        let raises = self.is_behind(index, remembered);
        if raises && !self.may_raise(index, body.remembered_epoch) {
            self.malformed(frame);
            return Err((ConnectReason::Malformed, 0));
        }
        let Some(chosen) = self.choose(endpoint, source, frame)? else {
            return Ok(());
        };
        let simultaneous = self.pairs[chosen].state == State::Requesting;
        if !simultaneous && !self.has_handshake() {
            return Err((ConnectReason::Busy, 0));
        }
        if raises {
            self.raise_epoch(index, body.remembered_epoch);
        }
        let (nonce, epoch) = (self.card.random(), self.endpoints[index].epoch);
        let pair = &mut self.pairs[chosen];
        pair.peer = source;
        pair.transaction = body.transaction;
        pair.initiated = false;
        (pair.nonce, pair.peer_nonce) = (nonce, body.nonce);
        (pair.epoch, pair.remote_epoch) = (epoch, header.source_epoch);
        pair.remote_pair = header.source_pair;
        pair.remote_credits = body.credits;
        pair.peer_incarnation = body.incarnation;
        self.note_clock(chosen, frame);
        if !simultaneous {
            self.begin_exchange(chosen, false, ANSWER_TIMEOUT);
        }
        self.go(chosen, Cause::FrameRequest, State::Preparing);
        self.want(chosen, Held::Set);
        Ok(())
    }

    /// Which pair is to serve a request: the one by which this side asks the same, or the oldest offer. None if the request is to be passed over,
    /// because the peer answers this side's, or because what it is in the way of has to end first; it will be repeated.
    fn choose(
        &mut self,
        endpoint: u8,
        source: Peer,
        frame: &Frame,
    ) -> Result<Option<usize>, (ConnectReason, u16)> {
        let own = Peer::new(self.card.mac(), endpoint.into());
        let mut mutual: Option<usize> = None;
        for index in 0..self.pairs.len() {
            let pair = &self.pairs[index];
            if !pair.is_between(endpoint, source) || pair.transaction == frame.body.transaction {
                continue;
            }
            match pair.state {
                State::Requesting => {
                    let greater = |other: usize| pair.transaction > self.pairs[other].transaction;
                    if mutual.is_none_or(greater) {
                        mutual = Some(index);
                    }
                }
                State::Connected => {
                    let same_epoch = pair.remote_epoch == frame.header.source_epoch;
                    let by_hand = pair.transaction == 0;
                    let incarnation = pair.peer_incarnation == frame.body.incarnation;
                    let ignored = self.card.is_broken(Break::OldConnectionKept);
                    if same_epoch && by_hand || !same_epoch && ignored {
                        continue;
                    }
                    if same_epoch && incarnation {
                        // Should the peer know nothing of it, it can end it: the refusal says which it is.
                        let (handshake, kind) =
                            (FrameType::Handshake, ManagementKind::ConnectRefuse);
                        let reason = ConnectReason::AlreadyConnected;
                        let mut refusal = self.frame(index, handshake, kind, reason, 0);
                        refusal.body.transaction = frame.body.transaction;
                        refusal.body.peer_nonce = frame.body.nonce;
                        if self.may_repeat(index) {
                            self.reply_about(index, refusal);
                        }
                        return Ok(None);
                    }
                    if !is_later(frame.header.source_epoch, pair.remote_epoch) {
                        return Err((ConnectReason::StaleEpoch, pair.remote_epoch));
                    }
                    // The peer has begun anew: what was connected has no other end.
                    self.peer_fails(index, FailureCause::Restarted, Cause::FrameRequest);
                }
                _ if pair.is_live() => {
                    self.send_again(index);
                    return Ok(None);
                }
                _ => {}
            }
        }
        if let Some(mutual) = mutual {
            let ours = (own, self.pairs[mutual].transaction);
            if ours > (source, frame.body.transaction) && !self.card.is_broken(Break::BothAnswer) {
                self.send_again(mutual);
                return Ok(None);
            }
            return Ok(Some(mutual));
        }
        let offers = self.pairs.iter().enumerate();
        offers
            .filter(|(_, pair)| pair.state == State::Accepting && pair.endpoint == endpoint)
            .min_by_key(
                |(_, pair)| match self.card.is_broken(Break::LastOfferFirst) {
                    true => self.offers.wrapping_sub(pair.offer) as i32,
                    false => pair.offer.wrapping_sub(self.offers) as i32,
                },
            )
            .map(|(index, _)| Some(index))
            .ok_or((ConnectReason::NotAccepting, 0))
    }

    /// Whether an endpoint is of a job.
    pub(crate) fn is_job_of(&self, index: usize, job: u32) -> bool {
        self.endpoints[index].job == job || self.card.is_broken(Break::JobIgnored)
    }

    /// Whether a peer remembers an epoch of an endpoint, and an incarnation, that this isn't later than: the card has forgotten it.
    fn is_behind(&self, index: usize, (epoch, incarnation): (u16, u32)) -> bool {
        let endpoint = &self.endpoints[index];
        let foreign = epoch == endpoint.epoch && incarnation != endpoint.incarnation;
        epoch != 0 && (foreign || is_later(epoch, endpoint.epoch))
    }

    /// Whether a peer that says that it remembers epoch `last` of an endpoint can be right, after all by which peers have raised the epoch.
    fn may_raise(&self, index: usize, last: u16) -> bool {
        self.persistent.may_raise(index, last) || self.card.is_broken(Break::EpochsRaisedFreely)
    }

    /// Takes the epoch after `last` for an open endpoint, which it [may](Self::may_raise). Its connections keep theirs.
    fn raise_epoch(&mut self, index: usize, last: u16) {
        let last = match self.card.is_broken(Break::EpochAsRemembered) {
            true => last - 1,
            false => last,
        };
        let epoch = self.persistent.raise_after(index, last, &mut self.card);
        let endpoint = &mut self.endpoints[index];
        endpoint.epoch = epoch;
        let id = endpoint.id(index);
        self.audit
            .record(AuditKind::EpochRaised, id, epoch.into(), &self.card);
    }

    /// The gates take frames of the connection: the peer may be told.
    pub(crate) fn acceptor_is_set(&mut self, index: usize) {
        self.go(index, Cause::GatesSet, State::Offering);
        if self.card.is_broken(Break::ConfirmNotNeeded) {
            self.accept_again(index);
            return self.connected(index, Cause::FrameConfirm);
        }
        self.repeat_from_now(index);
    }

    fn accept_again(&mut self, index: usize) {
        let (handshake, kind) = (FrameType::Handshake, ManagementKind::ConnectAccept);
        let accept = self.frame(index, handshake, kind, ConnectReason::None, 0);
        self.reply_about(index, accept);
    }

    fn confirmed(&mut self, frame: &Frame) {
        let body = &frame.body;
        let nonces = |pair: &Pair| (pair.nonce, pair.peer_nonce) == (body.peer_nonce, body.nonce);
        let found = self.find(frame, false, nonces);
        match found.map(|pair| (pair, self.pairs[pair].state)) {
            Some((pair, State::Offering)) => {
                self.measure(pair, frame);
                self.connected(pair, Cause::FrameConfirm);
            }
            // The offer was withdrawn: the initiator is connected to nothing.
            None => self.refuse(frame, None, ConnectReason::Closed, 0),
            Some((pair, State::Withdrawing | State::Closing)) if self.may_repeat(pair) => {
                self.refuse(frame, Some(pair), ConnectReason::Closed, 0);
            }
            Some(_) => {}
        }
    }

    // Both

    /// A handshake has come to its end.
    fn connected(&mut self, index: usize, cause: Cause) {
        self.end_exchange(index);
        self.go(index, cause, State::Connected);
        let pair = &mut self.pairs[index];
        pair.marks.put(Marks::TELL_CONNECTED);
        self.peer_connects(index);
        let pair = &self.pairs[index];
        let (peer, epoch, incarnation) = (pair.peer, pair.remote_epoch, pair.peer_incarnation);
        // One that was overtaken by a later incarnation isn't what was seen last.
        if self.peers.judge(peer, epoch, incarnation).is_ok() {
            self.peers.remember(peer, epoch, incarnation);
        }
        self.note_connected(index);
        self.mark(index);
    }

    /// Gives up a connection that the gates may know of.
    pub(crate) fn withdraw(
        &mut self,
        index: usize,
        cause: Cause,
        reason: ConnectReason,
        detail: u16,
    ) {
        self.end_exchange(index);
        if !matches!(cause, Cause::FrameRefuse) {
            let (handshake, kind) = (FrameType::Handshake, ManagementKind::ConnectRefuse);
            let refusal = self.frame(index, handshake, kind, reason, detail);
            self.reply_about(index, refusal);
        }
        self.go(index, cause, State::Withdrawing);
        let pair = &mut self.pairs[index];
        (pair.reason, pair.detail) = (reason, detail);
        self.want(index, Held::Absent);
    }

    /// The gates know nothing any more of a connection that was given up.
    pub(crate) fn withdrawn(&mut self, index: usize) {
        let pair = &mut self.pairs[index];
        let (id, reason) = (pair.id(index), pair.reason.code().into());
        self.audit
            .record(AuditKind::ConnectFailed, id, reason, &self.card);
        let pair = &mut self.pairs[index];
        if pair.is_offer {
            pair.peer = Peer::UNKNOWN;
            (pair.remote_pair, pair.remote_epoch, pair.remote_credits) = (0, 0, 0);
            (pair.transaction, pair.peer_nonce) = (0, 0);
            pair.reason = ConnectReason::None;
            self.go(index, Cause::GatesClear, State::Accepting);
        } else {
            pair.tell_end = Some(event::Cause::ConnectFailed);
            self.go(index, Cause::GatesClear, State::Refused);
            self.mark(index);
        }
    }

    /// A request came to nothing.
    pub(crate) fn refused(
        &mut self,
        index: usize,
        cause: Cause,
        reason: ConnectReason,
        detail: u16,
    ) {
        self.end_exchange(index);
        self.go(index, cause, State::Refused);
        let pair = &mut self.pairs[index];
        (pair.reason, pair.detail) = (reason, detail);
        pair.tell_end = Some(event::Cause::ConnectFailed);
        let id = pair.id(index);
        let info = reason.code().into();
        self.audit
            .record(AuditKind::ConnectFailed, id, info, &self.card);
        self.mark(index);
    }

    // Initiator

    fn accepted(&mut self, frame: &Frame) {
        let (header, body) = (&frame.header, &frame.body);
        let found = self.find(frame, true, |_| true);
        match found.map(|pair| (pair, self.pairs[pair].state)) {
            Some((index, State::Requesting)) => {
                let pair = &self.pairs[index];
                let credits = (1..=MAX_CREDITS).contains(&body.credits.into());
                if !credits || body.peer_nonce != pair.nonce || header.source_epoch == 0 {
                    self.malformed(frame);
                    let reason = ConnectReason::Malformed;
                    self.refuse(frame, Some(index), reason, 0);
                    return self.refused(index, Cause::FrameRefuse, reason, 0);
                }
                // By an incarnation that isn't there any more.
                let (source, epoch) = (frame.source(), header.source_epoch);
                if self.peers.judge(source, epoch, body.incarnation).is_err() {
                    return;
                }
                if !self.is_job_of(self.pairs[index].endpoint.into(), body.job) {
                    let reason = ConnectReason::WrongJob;
                    self.refuse(frame, Some(index), reason, 0);
                    return self.refused(index, Cause::FrameRefuse, reason, 0);
                }
                self.end_others(index, epoch, body.incarnation);
                let pair = &mut self.pairs[index];
                pair.remote_pair = header.source_pair;
                pair.remote_epoch = epoch;
                pair.remote_credits = match self.card.is_broken(Break::CreditsAssumed) {
                    true => pair.credits,
                    false => body.credits,
                };
                pair.peer_nonce = body.nonce;
                pair.peer_incarnation = body.incarnation;
                self.note_clock(index, frame);
                self.measure(index, frame);
                self.go(index, Cause::FrameAccept, State::Setting);
                self.want(index, Held::Set);
            }
            Some((_, State::Setting | State::Preparing)) => {}
            Some((index, State::Connected | State::Draining | State::Ending | State::Telling)) => {
                if self.may_repeat(index) {
                    self.confirm(index);
                }
            }
            Some((index, _)) if !self.may_repeat(index) => {}
            found => {
                let pair = found.map(|(index, _)| index);
                self.refuse(frame, pair, ConnectReason::Closed, 0);
            }
        }
    }

    /// The peer has accepted, so it has no other connection with this endpoint that it made in the same way, nor any of another incarnation.
    fn end_others(&mut self, index: usize, epoch: u16, incarnation: u32) {
        let Pair { endpoint, peer, .. } = self.pairs[index];
        for other in (0..self.pairs.len()).filter(|&other| other != index) {
            let pair = &self.pairs[other];
            let same = (pair.remote_epoch, pair.peer_incarnation) == (epoch, incarnation);
            // The two ends of a connection with itself are of one incarnation.
            let made_so = pair.transaction != 0 && peer.mac() != self.card.mac();
            let between = pair.is_between(endpoint, peer) && pair.state == State::Connected;
            if between && (is_later(epoch, pair.remote_epoch) || same && made_so) {
                self.peer_fails(other, FailureCause::Restarted, Cause::FrameAccept);
            }
        }
    }

    /// The gates take frames of the connection that the peer has accepted.
    pub(crate) fn initiator_is_set(&mut self, index: usize) {
        self.connected(index, Cause::GatesSet);
        self.confirm(index);
    }

    fn confirm(&mut self, index: usize) {
        let (handshake, kind) = (FrameType::Handshake, ManagementKind::ConnectConfirm);
        let confirm = self.frame(index, handshake, kind, ConnectReason::None, 0);
        self.reply_about(index, confirm);
    }

    fn was_refused(&mut self, frame: &Frame) {
        let body = frame.body;
        let reason = ConnectReason::from_code(body.reason);
        let reason = match reason {
            Some(ConnectReason::None) | None => ConnectReason::Malformed,
            Some(reason) => reason,
        };
        let own_nonce = |pair: &Pair| pair.nonce == body.peer_nonce;
        if let Some(index) = self.find(frame, true, own_nonce) {
            let pair = &self.pairs[index];
            match pair.state {
                State::Requesting => self.request_was_refused(index, frame, reason),
                // The offer that this side took was withdrawn.
                State::Connected if pair.peer_nonce == body.nonce => {
                    self.go(index, Cause::FrameRefuse, State::Failed);
                    self.want(index, Held::Failed);
                }
                _ => {}
            }
        } else if let Some(index) = self.find(frame, false, own_nonce)
            && self.pairs[index].state == State::Offering
        {
            self.withdraw(index, Cause::FrameRefuse, reason, body.detail);
        }
    }

    fn request_was_refused(&mut self, index: usize, frame: &Frame, reason: ConnectReason) {
        let Pair { endpoint, peer, .. } = self.pairs[index];
        let live = |(k, pair): (usize, &Pair)| {
            k != index && pair.is_between(endpoint, peer) && pair.is_live()
        };
        match reason {
            ConnectReason::StaleEpoch => {
                let stale = self.exchange(index).map_or(0, |exchange| {
                    exchange.stale += 1;
                    exchange.stale
                });
                let (at, last) = (usize::from(endpoint), frame.body.detail);
                let raises = !is_later(self.endpoints[at].epoch, last);
                if stale > STALE_EPOCHS || raises && !self.may_raise(at, last) {
                    return self.refused(index, Cause::FrameRefuse, reason, last);
                }
                if raises {
                    self.raise_epoch(at, last);
                }
                self.ask(index);
            }
            // The peer's end of a connection that this side knows nothing of: it is told so, and the request goes on.
            ConnectReason::AlreadyConnected
                if !self.pairs.iter().enumerate().any(live)
                    && !self.card.is_broken(Break::LoneEndKept) =>
            {
                let (kind, none) = (ManagementKind::Disconnect, ConnectReason::None);
                let mut end = self.answer_to(frame, kind, none, 0);
                end.header.frame_type = FrameType::Management.code();
                self.reply(end);
            }
            _ => self.refused(index, Cause::FrameRefuse, reason, frame.body.detail),
        }
    }

    /// Asks for a connection with the endpoint's epoch, by a transaction of its own.
    pub(crate) fn ask(&mut self, index: usize) {
        let (transaction, nonce) = (self.card.random().max(1), self.card.random());
        let epoch = self.endpoints[usize::from(self.pairs[index].endpoint)].epoch;
        let pair = &mut self.pairs[index];
        (pair.transaction, pair.nonce, pair.epoch) = (transaction, nonce, epoch);
        pair.initiated = true;
        self.repeat_from_now(index);
    }

    // Disconnect

    /// The pair that a frame of a connection names.
    pub(crate) fn named(&self, frame: &Frame) -> Option<usize> {
        let header = &frame.header;
        let index = usize::from(header.destination_pair);
        let pair = self.pairs.get(index)?;
        let agrees = u16::from(pair.endpoint) == header.destination_endpoint
            && pair.peer == frame.source()
            && pair.remote_pair == header.source_pair
            && pair.cookie() == header.cookie
            && pair.epoch == header.destination_epoch
            && pair.remote_epoch == header.source_epoch;
        agrees.then_some(index)
    }

    /// The pair that a frame of its peer's firmware names, while it is connected.
    pub(crate) fn named_connected(&self, frame: &Frame) -> Option<usize> {
        let connected = |&index: &usize| self.pairs[index].state == State::Connected;
        self.named(frame).filter(connected)
    }

    /// What is outstanding has been acknowledged, or is given up: the peer is told.
    pub(crate) fn tell_peer(&mut self, index: usize) {
        self.go(index, Cause::GatesFailed, State::Telling);
        self.extend_exchange(index, TELL_TIMEOUT);
        self.repeat_from_now(index);
    }

    pub(crate) fn disconnected(&mut self, index: usize, cause: Cause) {
        self.end_exchange(index);
        self.go(index, cause, State::Disconnected);
        if !self.card.is_broken(Break::EndNotTold) {
            self.pairs[index].tell_end = Some(event::Cause::Disconnected);
            self.mark(index);
        }
        let id = self.pairs[index].id(index);
        self.audit
            .record(AuditKind::PairDisconnected, id, 0, &self.card);
    }

    fn peer_disconnects(&mut self, frame: &Frame) {
        let found = self.named(frame);
        match found.map(|pair| (pair, self.pairs[pair].state)) {
            Some((index, State::Connected | State::Draining | State::Offering)) => {
                if self.pairs[index].state == State::Offering {
                    // Nobody ends what isn't connected: the confirmation was lost.
                    self.connected(index, Cause::FrameConfirm);
                }
                self.end_exchange(index);
                self.go(index, Cause::FrameDisconnect, State::PeerEnding);
                self.want(index, Held::Failed);
            }
            // Answered when the gates have ended it.
            Some((_, State::PeerEnding)) => {}
            found => {
                let (kind, none) = (ManagementKind::DisconnectDone, ConnectReason::None);
                let done = self.answer_to(frame, kind, none, 0);
                match found {
                    Some((index, State::Telling)) => {
                        self.disconnected(index, Cause::FrameDisconnect);
                        self.reply_about(index, done);
                    }
                    Some((index, _)) if self.may_repeat(index) => self.reply_about(index, done),
                    Some(_) => {}
                    None => self.reply(done),
                }
            }
        }
    }

    /// What the peer has ended is over in the gates.
    pub(crate) fn peer_has_ended(&mut self, index: usize) {
        self.go(index, Cause::GatesFailed, State::Disconnected);
        let (management, kind) = (FrameType::Management, ManagementKind::DisconnectDone);
        let done = self.frame(index, management, kind, ConnectReason::None, 0);
        self.reply_about(index, done);
        if !self.card.is_broken(Break::PeerEndNotTold) {
            self.pairs[index].tell_end = Some(event::Cause::PeerClosed);
            self.mark(index);
        }
        let id = self.pairs[index].id(index);
        self.audit
            .record(AuditKind::PairDisconnected, id, 1, &self.card);
    }

    fn peer_is_done(&mut self, frame: &Frame) {
        if let Some(index) = self.named(frame)
            && self.pairs[index].state == State::Telling
        {
            self.disconnected(index, Cause::FrameDone);
        }
    }
}
