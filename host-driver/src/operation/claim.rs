//! A claim: it takes a message for the endpoint alone, to be [received](super::receive_claimed) or [discarded](super::discard).

use super::{Operation, TaggedReceive, Work};
use crate::claimed::Claim;
use crate::completion::WorkCompletion;
use crate::core::Own;
use crate::endpoint::Endpoint;
use crate::error::PostError;
use crate::pair::Pair;
use crate::table::Request;
use abi::completion::Completion;
use abi::request::Opcode;
use abi::status::Status;

pub(super) const OPCODES: &[Opcode] = &[Opcode::Claim];

/// A claim that is outstanding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posted {
    /// The pair whose messages it looks for, unless any does.
    source: Option<Pair>,
}

impl Operation for Posted {
    fn opcode(&self) -> Opcode {
        Opcode::Claim
    }

    fn pair(&self) -> Option<Pair> {
        self.source
    }

    fn complete(&self, own: &mut Own<'_>, entry: &Completion, told: &mut WorkCompletion) {
        if told.status == Status::Success
            && let Some(pair) = told.pair
        {
            let handle = entry.handle;
            told.claimed = own.claimed(Claim { handle, pair });
        }
    }
}

impl Endpoint {
    /// Looks for a message that waits to be received, and takes it for the caller: nobody else finds it from then on. (MPI's `MPI_Mprobe`, libfabric's
    /// `FI_CLAIM`.) The completion's status is `Success`, with what was found and the [`Claimed`](crate::Claimed) message, or `NoMessage`. A claim whose
    /// completion is never polled holds its message until the pair is closed.
    ///
    /// # Errors
    /// [`PostError`].
    pub fn claim(&self, wr_id: u64, receive: &TaggedReceive) -> Result<Request, PostError> {
        let source = receive.source.pair();
        self.post_look(wr_id, receive, Work::Claim(Posted { source }))
    }
}
