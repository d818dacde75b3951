//! A claim: it takes a message for the endpoint alone, to be [received](super::receive_claimed) or [discarded](super::discard).

use super::{Operation, TaggedReceive, Work};
use crate::claimed::Claim;
use crate::completion::WorkCompletion;
use crate::core::Own;
use crate::endpoint::Endpoint;
use crate::error::PostError;
use crate::link::Link;
use crate::pair::Pair;
use crate::sweep::MessageSet;
use crate::table::{Entry, Request};
use abi::completion::Completion;
use abi::request::{ListRequest, Opcode};
use abi::status::Status;

pub(super) const OPCODES: &[Opcode] = &[Opcode::Claim];

/// A claim that is outstanding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posted {
    /// The pair whose messages it looks for, unless any does.
    source: Option<Pair>,
    /// A sweep asks for it, and not the program.
    swept: bool,
}

impl Operation for Posted {
    fn opcode(&self) -> Opcode {
        Opcode::Claim
    }

    fn pair(&self) -> Option<Pair> {
        self.source
    }

    fn is_sweeps(&self) -> bool {
        self.swept
    }

    fn is_sweeps_look(&self) -> bool {
        self.swept
    }

    fn is_silent(&self, _: Status) -> bool {
        self.swept
    }

    fn complete(&self, own: &mut Own<'_>, entry: &Completion, told: &mut WorkCompletion) {
        if told.status == Status::Success
            && !self.swept
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
        let swept = false;
        self.post_look(wr_id, receive, Work::Claim(Posted { source, swept }))
    }
}

impl Own<'_> {
    /// Claims a message of these for a sweep.
    pub(crate) fn post_claim_swept(
        &mut self,
        link: &Link,
        pair: Pair,
        messages: &MessageSet,
        flags: u8,
    ) -> Result<Request, PostError> {
        let (source, swept) = (Some(pair), true);
        let work = Work::Claim(Posted { source, swept });
        self.admit(link, &work)?;
        let entry = Entry::List(ListRequest {
            flags,
            pair: pair.index,
            context: messages.context,
            match_bits: messages.match_bits,
            ignore_bits: !messages.mask,
            ..ListRequest::default()
        });
        Ok(self.post(0, work, None, entry))
    }
}
