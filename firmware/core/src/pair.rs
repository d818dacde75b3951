//! Pairs: what is kept of each, and the admission of envelopes.
//!
//! The places of unexpected messages are shared by all pairs of the card. An envelope that a pair grants
//! is one of them, and a pair has whole units. So the units for what is granted and for what is reserved may not be more than there are: then no message
//! that a peer has credit for can find the list full.

use crate::argument::Refusal;
use crate::connection::State;
use crate::endpoint::{Endpoint, EndpointState};
use crate::peers::Peer;
use crate::runs::Run;
use crate::times::Times;
use abi::event::Cause;
use abi::limits::{MAX_CREDITS, UNIT_PLACES};
use abi::mailbox::{ConnectReason, FailureCause, PeerState, object_id};
use abi::request::place_units;
use abi::status::MailboxStatus;

/// What the gates hold of a pair, as far as they have answered; and what they are to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// Nothing.
    Absent,
    /// Connected.
    Set,
    /// Failed.
    Failed,
}

/// Things that are so of a pair, or aren't: a bit for each, since there are as many pairs as the card has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Marks(u8);

impl Marks {
    /// It was drawn from the endpoint's reservation.
    pub(crate) const DRAWN: Self = Self(1 << 0);
    /// Its state in the gates is to be read.
    pub(crate) const TO_READ: Self = Self(1 << 1);
    /// The host is to be told that it is connected.
    pub(crate) const TELL_CONNECTED: Self = Self(1 << 2);
    /// It is being read for a look.
    pub(crate) const LOOKS: Self = Self(1 << 3);

    pub(crate) const fn has(self, mark: Self) -> bool {
        self.0 & mark.0 != 0
    }

    pub(crate) const fn put(&mut self, mark: Self) {
        self.0 |= mark.0;
    }

    /// Takes a mark away. Whether it was there.
    pub(crate) const fn take(&mut self, mark: Self) -> bool {
        let had = self.has(mark);
        self.0 &= !mark.0;
        had
    }
}

/// A pair.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub(crate) slots: u64,
    pub(crate) times: Times,
    /// How far its peer's clock is ahead of the own, less the way of a frame.
    pub(crate) peer_ahead: u32,
    /// The peer; valid once one is known.
    pub(crate) peer: Peer,
    /// Both halves of the cookie.
    pub(crate) nonce: u32,
    pub(crate) peer_nonce: u32,
    /// Number of the handshake that made the connection; zero if none did.
    pub(crate) transaction: u32,
    pub(crate) peer_incarnation: u32,
    /// Cycle at which its last frame was sent.
    pub(crate) sent_at: u32,
    /// When it was offered: numbers of `Accept`.
    pub(crate) offer: u32,
    pub(crate) generation: u16,
    pub(crate) epoch: u16,
    pub(crate) remote_pair: u16,
    pub(crate) remote_epoch: u16,
    pub(crate) detail: u16,
    pub(crate) reason: ConnectReason,
    pub(crate) endpoint: u8,
    pub(crate) credits: u8,
    pub(crate) remote_credits: u8,
    /// Envelopes that it keeps from others: its own, and what a reservation that it has drawn from holds beyond them.
    pub(crate) held_credits: u8,
    pub(crate) state: State,
    pub(crate) gates: Held,
    pub(crate) wanted: Held,
    /// This side asked for the connection.
    pub(crate) initiated: bool,
    /// It was made by `Accept`, and is offered again if a connection comes to nothing.
    pub(crate) is_offer: bool,
    /// Its descriptors.
    pub(crate) run: Run,
    pub(crate) marks: Marks,
    /// The host is to be told by this event how it has ended, or that it was refused.
    pub(crate) tell_end: Option<Cause>,
    /// What is thought of its peer, and if that has failed, why.
    pub(crate) peer_state: PeerState,
    pub(crate) failure: FailureCause,
    /// When its peer is looked at next, if it is watched.
    pub(crate) next_look: u32,
    /// Looks since a frame of its peer came.
    pub(crate) silent: u16,
    /// Number of the last notice to its peer, and of the last one of its peer that was carried out.
    pub(crate) notices: u16,
    pub(crate) notices_seen: u16,
}

impl Pair {
    /// A free place whose generations begin after `generation`.
    pub(crate) const fn closed(generation: u16) -> Self {
        Self {
            slots: 0,
            times: Times::unknown(),
            peer_ahead: 0,
            peer: Peer::UNKNOWN,
            nonce: 0,
            peer_nonce: 0,
            transaction: 0,
            peer_incarnation: 0,
            sent_at: 0,
            offer: 0,
            generation,
            epoch: 0,
            remote_pair: 0,
            remote_epoch: 0,
            detail: 0,
            reason: ConnectReason::None,
            endpoint: 0,
            credits: 0,
            remote_credits: 0,
            held_credits: 0,
            state: State::Closed,
            gates: Held::Absent,
            wanted: Held::Absent,
            initiated: false,
            is_offer: false,
            run: Run { first: 0, log2: 0 },
            marks: Marks(0),
            tell_end: None,
            peer_state: PeerState::Unknown,
            failure: FailureCause::None,
            next_look: 0,
            silent: 0,
            notices: 0,
            notices_seen: 0,
        }
    }

    pub(crate) const fn id(&self, index: usize) -> u32 {
        object_id(index as u16, self.generation)
    }

    pub(crate) const fn cookie(&self) -> u32 {
        self.nonce ^ self.peer_nonce
    }

    /// Whether this is a pair of `endpoint` with `peer`, or is to be one.
    pub(crate) fn is_between(&self, endpoint: u8, peer: Peer) -> bool {
        self.endpoint == endpoint && self.peer == peer
    }

    /// Whether the peer is known, and the connection is made or being made.
    pub(crate) const fn is_live(&self) -> bool {
        matches!(
            self.state,
            State::Connected
                | State::Setting
                | State::Preparing
                | State::Offering
                | State::Draining
                | State::Ending
                | State::Telling
                | State::PeerEnding
        )
    }
}

/// Pairs, units of places for envelopes, and units of descriptors that nobody has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) pairs: u32,
    pub(crate) places: u32,
    pub(crate) units: u32,
}

/// Units of places that so many credits need.
pub(crate) const fn units_for(credits: u8) -> u32 {
    place_units(credits as u16) as u32
}

/// Most credits of a pair for which so many units suffice.
pub(crate) fn credits_of(units: u32) -> u32 {
    (units * u32::from(UNIT_PLACES)).min(MAX_CREDITS.into())
}

impl Room {
    /// What is left of a card's beside the open pairs and what endpoints have reserved, but for `except`'s reservation.
    pub(crate) fn beside(
        pairs: &[Pair],
        endpoints: &[Endpoint],
        card: Self,
        except: Option<usize>,
    ) -> Self {
        let mut room = card;
        for pair in pairs.iter().filter(|pair| pair.state != State::Closed) {
            let spared = except == Some(usize::from(pair.endpoint));
            let held = match spared {
                true => pair.credits,
                false => pair.held_credits,
            };
            room.pairs = room.pairs.saturating_sub(1);
            room.places = room.places.saturating_sub(units_for(held));
            room.units = room.units.saturating_sub(1 << pair.run.log2);
        }
        for (k, endpoint) in endpoints.iter().enumerate() {
            if except != Some(k) && endpoint.state != EndpointState::Closed {
                let left = u32::from(endpoint.reserved_pairs - endpoint.drawn_pairs);
                let places = left * units_for(endpoint.reserved_credits);
                room.pairs = room.pairs.saturating_sub(left);
                room.places = room.places.saturating_sub(places);
                room.units = room.units.saturating_sub(left);
            }
        }
        room
    }

    /// Refuses what doesn't fit: `pairs` of `credits` envelopes each.
    pub(crate) fn admit(self, pairs: u32, credits: u32) -> Result<(), Refusal> {
        let detail = self.pairs.min(self.units);
        if pairs > detail {
            return Err(Refusal {
                status: MailboxStatus::NoResource,
                detail,
            });
        }
        let most = self
            .places
            .checked_div(pairs)
            .map_or(u32::from(MAX_CREDITS), credits_of);
        if credits > most {
            return Err(Refusal {
                status: MailboxStatus::NoEnvelopes,
                detail: most,
            });
        }
        Ok(())
    }
}
