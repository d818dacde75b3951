//! A probe: it looks for a message and leaves it where it is.

use super::{Operation, TaggedReceive, Work};
use crate::endpoint::Endpoint;
use crate::error::PostError;
use crate::pair::Pair;
use crate::table::Request;
use abi::request::Opcode;

pub(super) const OPCODES: &[Opcode] = &[Opcode::Probe];

/// A probe that is outstanding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posted {
    /// The pair whose messages it looks for, unless any does.
    pub(super) source: Option<Pair>,
}

impl Operation for Posted {
    fn opcode(&self) -> Opcode {
        Opcode::Probe
    }

    fn pair(&self) -> Option<Pair> {
        self.source
    }
}

impl Endpoint {
    /// Looks for a message that waits to be received, without taking it. The completion's status is
    /// `Success`, with what was found, or `NoMessage`.
    ///
    /// # Errors
    /// [`PostError`].
    pub fn probe(&self, wr_id: u64, receive: &TaggedReceive) -> Result<Request, PostError> {
        let source = receive.source.pair();
        self.post_look(wr_id, receive, Work::Probe(Posted { source }))
    }
}
