//! The receive of a claimed message.

use super::{Operation, Work};
use crate::claimed::{Claim, Claimed, ClaimedRefused};
use crate::core::{Own, Ring};
use crate::error::{PostError, Refused};
use crate::link::Link;
use crate::pair::Pair;
use crate::region::Buffer;
use crate::table::{Entry, Request};
use abi::request::{ListRequest, Opcode};

pub(super) const OPCODES: &[Opcode] = &[Opcode::ReceiveClaimed];

/// A receive of a claimed message that is outstanding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posted {
    claim: Claim,
}

impl Operation for Posted {
    fn opcode(&self) -> Opcode {
        Opcode::ReceiveClaimed
    }

    fn pair(&self) -> Option<Pair> {
        Some(self.claim.pair)
    }
}

impl Claimed {
    /// Receives the message into the buffer. It completes as a receive, in whatever order others do: `Success` or `Truncated`, with the envelope
    /// once more and the buffer; `Flushed` if the pair was closed meanwhile.
    ///
    /// # Errors
    /// [`ClaimedRefused`], with the message and the buffer: `InvalidPair` if the pair has been closed, else see [`PostError`] for what to do.
    pub fn receive(self, wr_id: u64, buffer: Buffer) -> Result<Request, ClaimedRefused> {
        let (endpoint, claim) = self.into_parts();
        let posted = match buffer.is_of(endpoint.domain()) {
            true => post(
                &mut endpoint.lock().own(),
                endpoint.link(),
                wr_id,
                claim,
                buffer,
            ),
            false => Err(Refused {
                error: PostError::WrongDomain,
                buffer,
            }),
        };
        posted.map_err(|Refused { error, buffer }| ClaimedRefused {
            error,
            claimed: Self::new(endpoint, claim),
            buffer,
        })
    }
}

fn post(
    own: &mut Own<'_>,
    link: &Link,
    wr_id: u64,
    claim: Claim,
    buffer: Buffer,
) -> Result<Request, Refused> {
    own.feed(link);
    let work = Work::ReceiveClaimed(Posted { claim });
    if let Err(error) = own.admit(link, &work) {
        return Err(Refused { error, buffer });
    }
    let entry = Entry::List(ListRequest {
        target: claim.handle,
        ..ListRequest::default()
    });
    let posted = own.post(wr_id, work, Some(buffer), entry);
    own.ring(link, Ring::List);
    Ok(posted)
}
