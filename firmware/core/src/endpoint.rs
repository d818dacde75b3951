//! Endpoints: what is kept of each, and the checks on its rings.

use crate::argument::{Refusal, is_aligned_range, narrow};
use abi::completion::COMPLETION_BYTES;
use abi::control::{RING_COMPLETION, RING_EVENT, RING_LIST, RING_SEND, RingSetup};
use abi::event::EVENT_BYTES;
use abi::limits::{MAX_RING_LOG2, MIN_RING_LOG2};
use abi::mailbox::OpenEndpoint;
use abi::request::REQUEST_BYTES;

/// What an endpoint is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum EndpointState {
    /// Nothing.
    #[default]
    Closed,
    /// In use.
    Open,
    /// A close was begun and the gates didn't answer: it may only be closed again.
    Closing,
}

/// An endpoint.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Endpoint {
    pub(crate) state: EndpointState,
    pub(crate) domain: u8,
    /// Incarnations so far; frames carry it.
    pub(crate) epoch: u16,
}

/// The control index and the data of each ring that a host asks for.
///
/// # Errors
/// A refusal that names the size or the address that can't be.
pub(crate) fn rings(open: &OpenEndpoint) -> Result<[(u16, RingSetup); 4], Refusal> {
    let ring = |kind, position, log2: u32, base, entry_bytes: usize| {
        let log2: u8 = narrow(log2, position)?;
        if !(MIN_RING_LOG2..=MAX_RING_LOG2).contains(&log2) {
            return Err(Refusal::argument(position));
        }
        if !is_aligned_range(base, (entry_bytes as u64) << log2) {
            return Err(Refusal::argument(position + 1));
        }
        let setup = RingSetup {
            base,
            log2,
            reserved0: 0,
        };
        Ok((kind, setup))
    };
    Ok([
        ring(RING_SEND, 1, open.send_log2, open.send_base, REQUEST_BYTES)?,
        ring(RING_LIST, 3, open.list_log2, open.list_base, REQUEST_BYTES)?,
        ring(
            RING_COMPLETION,
            5,
            open.completion_log2,
            open.completion_base,
            COMPLETION_BYTES,
        )?,
        ring(RING_EVENT, 7, open.event_log2, open.event_base, EVENT_BYTES)?,
    ])
}
