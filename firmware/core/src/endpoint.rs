//! Endpoints: what is kept of each, and the checks on its rings.

use crate::argument::{Refusal, narrow, space};
use crate::watch::Watch;
use abi::completion::COMPLETION_BYTES;
use abi::control::{RING_COMPLETION, RING_EVENT, RING_LIST, RING_SEND, RingSetup};
use abi::event::EVENT_BYTES;
use abi::limits::{MAX_RING_LOG2, MIN_RING_LOG2};
use abi::mailbox::{NO_ENDPOINT, OpenEndpoint, object_id};
use abi::request::REQUEST_BYTES;
use abi::ring::ring_bytes;

/// What an endpoint is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndpointState {
    /// Nothing.
    Closed,
    /// The gates are told of its rings, then of itself: so many requests of it have been answered.
    Opening(u8),
    /// In use.
    Open,
    /// It is being closed.
    Closing(Stage),
}

/// How far a close has come: the gates
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// stop fetching its rings, so that nothing new comes,
    Stop,
    /// fail its pairs, from this one on, so that their operations complete,
    FailPairs(u16),
    /// complete what else is outstanding,
    Flush,
    /// forget its pairs, from this one on,
    ClearPairs(u16),
    /// and forget it.
    Clear,
}

impl Stage {
    /// What comes after this; `flushes_first` is the wrong order.
    pub(crate) const fn next(self, flushes_first: bool) -> EndpointState {
        EndpointState::Closing(match (self, flushes_first) {
            (Self::Stop, false) | (Self::Flush, true) => Self::FailPairs(0),
            (Self::FailPairs(_), false) | (Self::Stop, true) => Self::Flush,
            (Self::Flush, false) | (Self::FailPairs(_), true) => Self::ClearPairs(0),
            (Self::ClearPairs(_), _) => Self::Clear,
            (Self::Clear, _) => return EndpointState::Closed,
        })
    }
}

/// An endpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Endpoint {
    pub(crate) state: EndpointState,
    pub(crate) domain: u8,
    /// The job that it is of.
    pub(crate) job: u32,
    /// Place of the endpoint on whose completion queue its requests complete, if that isn't its own.
    pub(crate) completion_owner: Option<u8>,
    pub(crate) generation: u16,
    /// Its epoch; frames of its pairs carry the one that it had when they were opened or began to connect.
    pub(crate) epoch: u16,
    /// Random word of this incarnation.
    pub(crate) incarnation: u32,
    /// Pairs set aside, and envelopes for each.
    pub(crate) reserved_pairs: u16,
    pub(crate) reserved_credits: u8,
    /// Of these, those in use.
    pub(crate) drawn_pairs: u16,
    /// Log2 of the sends that its pairs are to have descriptors for.
    pub(crate) sends_log2: u8,
    /// How its peers are watched.
    pub(crate) watch: Watch,
}

impl Endpoint {
    /// The id by which the host names the endpoint at this place.
    pub(crate) const fn id(&self, index: usize) -> u32 {
        object_id(index as u16, self.generation)
    }

    /// A free place whose generations begin after `generation`.
    pub(crate) const fn closed(generation: u16) -> Self {
        Self {
            state: EndpointState::Closed,
            domain: 0,
            job: 0,
            completion_owner: None,
            generation,
            epoch: 0,
            incarnation: 0,
            reserved_pairs: 0,
            reserved_credits: 0,
            drawn_pairs: 0,
            sends_log2: 0,
            watch: Watch {
                interval: 0,
                looks: 0,
                believes: false,
            },
        }
    }
}

/// The control index and the data of a ring, of each that an endpoint has.
pub(crate) type Rings = [Option<(u16, RingSetup)>; 4];

/// The rings that a host asks for: no completion queue if the endpoint completes on another's.
///
/// # Errors
/// A refusal that names the size, the address or the address space that can't be.
pub(crate) fn rings(open: &OpenEndpoint) -> Result<Rings, Refusal> {
    let space = space(open.space, 12)?;
    let ring = |kind, position, log2: u32, base, entry_bytes: usize| {
        let log2: u8 = narrow(log2, position)?;
        if !(MIN_RING_LOG2..=MAX_RING_LOG2).contains(&log2) {
            return Err(Refusal::argument(position));
        }
        if base as u32 & (ring_bytes(log2, entry_bytes) - 1) != 0 {
            return Err(Refusal::argument(position + 1));
        }
        let setup = RingSetup {
            base,
            log2,
            space,
            reserved0: 0,
        };
        Ok(Some((kind, setup)))
    };
    let completions = match (open.completion_owner, open.completion_log2) {
        (NO_ENDPOINT, log2) => ring(
            RING_COMPLETION,
            5,
            log2,
            open.completion_base,
            COMPLETION_BYTES,
        )?,
        (_, 0) if open.completion_base == 0 => None,
        (_, 0) => return Err(Refusal::argument(6)),
        _ => return Err(Refusal::argument(5)),
    };
    Ok([
        ring(RING_SEND, 1, open.send_log2, open.send_base, REQUEST_BYTES)?,
        ring(RING_LIST, 3, open.list_log2, open.list_base, REQUEST_BYTES)?,
        completions,
        ring(RING_EVENT, 7, open.event_log2, open.event_base, EVENT_BYTES)?,
    ])
}
