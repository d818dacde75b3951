//! Typed answers about limits and states: `ibv_query_device`, `ibv_query_qp`, `ibv_query_srq`.
//!
//! | | asks | takes time of the card |
//! |---|---|---|
//! | [`Device::limits`] | what [`Device::open`] read, and the ABI | no |
//! | [`Endpoint::query`] | the library | no |
//! | [`Endpoint::query_request`] | the library | no |
//! | [`Endpoint::query_pair`] | the firmware | a command |
//! | [`Endpoint::pair_counters`] | the firmware | a command for each counter |

use crate::core::Phase;
use crate::device::Device;
use crate::endpoint::Endpoint;
use crate::error::CommandError;
use crate::pair::{EndpointAddress, Pair};
use crate::table::{Place, Request};
use abi::capability::{
    CAPABILITY_ERRORS_ONLY, CAPABILITY_GATHER, CAPABILITY_GET, CAPABILITY_GRANTS,
    CAPABILITY_INLINE, CAPABILITY_PUT, CAPABILITY_RULES, CAPABILITY_SENDERS,
    CAPABILITY_SHARED_COMPLETIONS,
};
use abi::control::{PairCounter, equal_sends_log2};
use abi::limits::{EAGER_MAX, MAX_CREDITS, MAX_RING_LOG2, MIN_RING_LOG2};
use abi::mailbox::{
    self, Command, ConnectReason, CounterValue, FailureCause, PairCounterId, PairState, PeerState,
};
use abi::request::{INLINE_BYTES, MAX_SEGMENTS};
use std::ops::RangeInclusive;

bitflags::bitflags! {
    /// What only some cards have: `capabilities` of [`Identity`](crate::Identity).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Capabilities: u32 {
        /// Several endpoints may complete on one queue: [`EndpointBuilder::on`](crate::EndpointBuilder::on).
        const SHARED_COMPLETIONS = CAPABILITY_SHARED_COMPLETIONS;
        /// A send may complete only on error: [`Endpoint::post_unsignaled_send`].
        const ERRORS_ONLY = CAPABILITY_ERRORS_ONLY;
        /// A send may read several buffers: [`Endpoint::post_gather_send`].
        const GATHER = CAPABILITY_GATHER;
        /// A send may carry a short payload in its request: the library does that by itself.
        const INLINE = CAPABILITY_INLINE;
        /// Messages may be revoked: [`Endpoint::revoke`].
        const RULES = CAPABILITY_RULES;
        /// Memory may be granted to peers: [`ProtectionDomain::reg_window`](crate::ProtectionDomain::reg_window).
        const GRANTS = CAPABILITY_GRANTS;
        /// Memory that a peer has granted may be written: [`Endpoint::post_put`].
        const PUT = CAPABILITY_PUT;
        /// What is granted may be for one peer: [`Window::grant`](crate::Window::grant). Without it each key is for [any](crate::Window::grant_any).
        const SENDERS = CAPABILITY_SENDERS;
        /// Memory that a peer has granted may be read: [`Endpoint::post_get`].
        const GET = CAPABILITY_GET;
    }
}

/// What a card, and this library on it, can do at most.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceLimits {
    /// Endpoints of the card.
    pub endpoints: usize,
    /// Pairs of the card, of all its endpoints.
    pub pairs: usize,
    /// Regions of the card.
    pub regions: usize,
    /// Remote keys of the card, of which a sixteenth may be shared. 0: memory can't be granted.
    pub remote_keys: usize,
    /// Receives that the card holds, of all its endpoints; the library keeps what is posted beyond.
    pub posted_receives: usize,
    /// Of these, those that each endpoint has for itself, whatever the others do.
    pub reserved_receives: usize,
    /// Messages that may wait for a receive: the sum of the credits of all pairs.
    pub unexpected_messages: usize,
    /// Credits of one pair.
    pub pair_credits: usize,
    /// Sends of one pair that the card holds, from when they are posted until they complete, unless its endpoint was opened for
    /// [more](crate::EndpointBuilder::pair_sends); the library keeps what is posted beyond.
    pub pair_sends: usize,
    /// Longest message, in bytes.
    pub message_bytes: u64,
    /// Buffers that a send may read one after the other: [`Endpoint::post_gather_send`].
    pub send_segments: usize,
    /// Longest payload that a send carries in its request, so that the card reads no buffer: the library does that by itself. 0: none.
    pub inline_bytes: usize,
    /// Whether a send may complete only on error: [`Endpoint::post_unsignaled_send`].
    pub unsignaled_sends: bool,
    /// Whether several endpoints may complete on one queue: [`EndpointBuilder::on`](crate::EndpointBuilder::on).
    pub shared_completions: bool,
    /// Rules of the card, of all its endpoints: what [`Endpoint::revoke`] sets one of. 0: it can't.
    pub rules: usize,
    /// Longest injected message, in bytes.
    pub inject_bytes: usize,
    /// Entries of a ring or a queue; powers of two only.
    pub ring_entries: RangeInclusive<usize>,
}

impl Device {
    /// What the card has that only some have. Bits that this library doesn't know are kept.
    pub fn capabilities(&self) -> Capabilities {
        Capabilities::from_bits_retain(self.identity().capabilities)
    }

    /// The card's limits: `ibv_query_device`.
    pub fn limits(&self) -> DeviceLimits {
        let identity = self.identity();
        let has = |capability| self.capabilities().contains(capability);
        DeviceLimits {
            endpoints: identity.endpoints as usize,
            pairs: identity.pairs as usize,
            regions: identity.regions as usize,
            remote_keys: match has(Capabilities::GRANTS) {
                true => identity.grants as usize,
                false => 0,
            },
            posted_receives: identity.posted as usize,
            reserved_receives: identity.posted_reserved as usize,
            unexpected_messages: identity.unexpected as usize,
            pair_credits: usize::from(MAX_CREDITS),
            pair_sends: 1 << equal_sends_log2(identity.descriptors, identity.pairs),
            message_bytes: identity.message_max,
            send_segments: match has(Capabilities::GATHER) {
                true => MAX_SEGMENTS,
                false => 1,
            },
            inline_bytes: match has(Capabilities::INLINE) {
                true => INLINE_BYTES,
                false => 0,
            },
            unsignaled_sends: has(Capabilities::ERRORS_ONLY),
            shared_completions: has(Capabilities::SHARED_COMPLETIONS),
            rules: match has(Capabilities::RULES) {
                true => identity.rules as usize,
                false => 0,
            },
            inject_bytes: EAGER_MAX,
            ring_entries: 1 << MIN_RING_LOG2..=1 << MAX_RING_LOG2,
        }
    }
}

/// What an endpoint is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndpointState {
    /// Requests can be posted.
    Open,
    /// A close is under way, or its outcome isn't known: call [`Endpoint::close`] again.
    Closing,
    /// Closed, by the program or with its card: what was outstanding can be polled as `Flushed`.
    Closed,
}

impl From<Phase> for EndpointState {
    fn from(phase: Phase) -> Self {
        match phase {
            Phase::Open => Self::Open,
            Phase::Closing => Self::Closing,
            Phase::Closed => Self::Closed,
        }
    }
}

/// State and sizes of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointStatus {
    /// What it is doing.
    pub state: EndpointState,
    /// Entries of the send ring.
    pub send_ring: usize,
    /// Entries of the list ring.
    pub list_ring: usize,
    /// Entries of the completion queue, and so the requests that may be outstanding, of all endpoints on it.
    pub completion_queue: usize,
    /// Entries of the event queue.
    pub event_queue: usize,
    /// Requests that have not been polled for.
    pub outstanding: usize,
    /// Of these, those that the library keeps because the card has no room for them: receives, probes, claims and sends.
    pub kept: usize,
    /// Injected sends that could be posted now without polling.
    pub inject_buffers: usize,
    /// Pairs that are open.
    pub pairs: usize,
}

/// State of a pair, as the firmware tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PairStatus {
    /// What it is doing.
    pub state: PairState,
    /// Credits in hand.
    pub available: u32,
    /// Sends injected and not acknowledged.
    pub unacknowledged: u32,
    /// Sends waiting for credit or for their turn.
    pub waiting: u32,
    /// Accesses of the peer that a region of ours refused since the pair was connected. Wraps.
    pub refused: u32,
    /// Of a pair that is `Refused`: why, and the detail of that.
    pub reason: Option<(ConnectReason, u16)>,
    /// The peer, once it is known.
    pub peer: Option<EndpointAddress>,
    /// Envelopes that the peer granted, once it is connected.
    pub remote_credits: u32,
    /// Epoch of the peer's endpoint, once it is connected.
    pub remote_epoch: u32,
    /// What the card takes the peer for.
    pub peer_state: PeerState,
    /// Of a peer that has failed: why the card takes it to have.
    pub failure: Option<FailureCause>,
    /// Log2 of the cycles without acknowledgement after which the pair sends again, chosen by [`set_pair_times`](Endpoint::set_pair_times) or from the round trip.
    pub timeout: u8,
    /// Times that it does so before it fails.
    pub retry_cnt: u8,
    /// Cycles that its acknowledgements wait at most for a message that can carry them.
    pub acknowledge_delay: u16,
    /// Credits that wait with them at most.
    pub acknowledge_credits: u8,
}

impl PairStatus {
    pub(crate) fn from_words(words: &mailbox::PairStatus) -> Result<Self, CommandError> {
        let malformed = |answer| CommandError::Malformed {
            command: Command::QueryPair,
            answer,
        };
        let state = u8::try_from(words.state)
            .ok()
            .and_then(PairState::from_code)
            .ok_or_else(|| malformed(words.state))?;
        let reason = match state {
            PairState::Refused => {
                let (reason, detail) = mailbox::reason_and_detail(words.reason);
                let reason =
                    ConnectReason::from_code(reason).ok_or_else(|| malformed(words.reason))?;
                Some((reason, detail))
            }
            _ => None,
        };
        let code = |word: u32| u8::try_from(word).ok();
        let peer_state = code(words.peer).and_then(PeerState::from_code);
        let failure = code(words.failure).and_then(FailureCause::from_code);
        Ok(Self {
            state,
            available: words.available,
            unacknowledged: words.unacknowledged,
            waiting: words.waiting,
            refused: words.refused,
            reason,
            peer: (words.remote_mac != 0).then_some(EndpointAddress {
                mac: words.remote_mac,
                endpoint: words.remote_endpoint as u16,
            }),
            remote_credits: words.remote_credits,
            remote_epoch: words.remote_epoch,
            peer_state: peer_state.ok_or_else(|| malformed(words.peer))?,
            failure: Some(failure.ok_or_else(|| malformed(words.failure))?)
                .filter(|&failure| failure != FailureCause::None),
            timeout: code(words.timeout_log2).ok_or_else(|| malformed(words.timeout_log2))?,
            retry_cnt: code(words.retry_limit).ok_or_else(|| malformed(words.retry_limit))?,
            acknowledge_delay: u16::try_from(words.acknowledge_delay)
                .map_err(|_| malformed(words.acknowledge_delay))?,
            acknowledge_credits: code(words.acknowledge_credits)
                .ok_or_else(|| malformed(words.acknowledge_credits))?,
        })
    }
}

/// The counters of a pair: `Endpoint::pair_counters`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairCounters {
    values: [u32; PairCounter::ALL.len()],
}

impl PairCounters {
    /// One of them, which wraps at 2^32.
    pub fn get(&self, counter: PairCounter) -> u32 {
        self.values[usize::from(counter.code())]
    }

    /// All of them, in the order of their codes.
    pub fn iter(&self) -> impl Iterator<Item = (PairCounter, u32)> {
        PairCounter::ALL.iter().copied().zip(self.values)
    }
}

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestState {
    /// In a ring, with the card, or completed and not polled for.
    Posted,
    /// The library keeps it because the card has no room for it. It is as good as posted.
    Kept,
    /// A cancel is under way for it.
    Cancelling,
    /// It has been polled for, or is of another endpoint.
    Ended,
}

impl Endpoint {
    /// State and sizes of the endpoint: `ibv_query_qp`.
    pub fn query(&self) -> EndpointStatus {
        self.handle.lock().own().status()
    }

    /// What has happened to the frames of a pair since it was connected, by cause: [`PairCounter`] says of each what it counts. A pair that isn't connected
    /// yet has counted nothing. One command a counter, so what happens meanwhile is in some of them.
    ///
    /// # Errors
    /// [`CommandError`]: `NotFound` if the pair isn't open.
    pub fn pair_counters(&self, pair: Pair) -> Result<PairCounters, CommandError> {
        let mut counted = PairCounters::default();
        for (value, &counter) in counted.values.iter_mut().zip(PairCounter::ALL) {
            let (mut commands, pair) = self.commands_for(|core| core.pair_id(pair))?;
            let counter = counter.code().into();
            let answer: CounterValue =
                commands.call(Command::ReadPairCounter, &PairCounterId { pair, counter })?;
            *value = answer.value as u32;
        }
        Ok(counted)
    }

    /// Where a request is: a receive, in what `ibv_query_srq` counts.
    pub fn query_request(&self, request: Request) -> RequestState {
        match self.handle.lock().own().place_of(request) {
            None => RequestState::Ended,
            Some((_, true)) | Some((Place::Withdrawn, _)) => RequestState::Cancelling,
            Some((Place::Kept, false)) if !is_broken!(HidesKept) => RequestState::Kept,
            Some((Place::Card | Place::Kept | Place::Completed, false)) => RequestState::Posted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Capabilities;
    use abi::capability::{ALL, CAPABILITIES};

    #[test]
    fn every_capability_has_its_flag() {
        assert_eq!(Capabilities::all().bits(), ALL);
        let named = Capabilities::all().iter_names();
        let named = named.map(|(name, flag)| (format!("CAPABILITY_{name}"), flag.bits().into()));
        let constants = CAPABILITIES.iter().map(|c| (c.name.to_owned(), c.value));
        assert!(named.eq(constants));
    }
}
