//! The cancel of a send or of a receive, by the opcode that the row of its target names.

use super::{Operation, Work};
use crate::core::{Own, Ring};
use crate::endpoint::Endpoint;
use crate::error::PostError;
use crate::link::Link;
use crate::table::{Entry, Request};
use abi::event::NO_PAIR;
use abi::request::{ListRequest, Opcode, SendRequest};
use abi::status::Status;

pub(super) const OPCODES: &[Opcode] = &[Opcode::CancelSend, Opcode::Cancel];

/// A cancel that is outstanding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posted {
    target: Request,
    opcode: Opcode,
    /// The library's own: a sweep's, or a time-out's.
    swept: bool,
}

impl Operation for Posted {
    fn opcode(&self) -> Opcode {
        self.opcode
    }

    fn target(&self) -> Option<Request> {
        Some(self.target)
    }

    fn is_sweeps(&self) -> bool {
        self.swept
    }

    /// The end of its endpoint has ended the target too, which tells of it.
    fn is_silent(&self, status: Status) -> bool {
        status == Status::Flushed || self.swept
    }
}

impl Endpoint {
    /// Cancels a receive that hasn't matched, or a send that waits for credit or for its turn. Either the
    /// request completes as `Cancelled`, once, and nothing else does; or it completes in some other way and the
    /// cancel itself completes as `TooLate`. Until the request has completed the card may use its buffer, which
    /// therefore comes back with that completion.
    ///
    /// # Errors
    /// [`PostError`]: `NothingToCancel` if the request has been polled for already.
    pub fn cancel(&self, wr_id: u64, target: Request) -> Result<Request, PostError> {
        let link = self.handle.link();
        let mut locked = self.handle.lock();
        let mut own = locked.own();
        let (posted, ring) = own.post_cancel(link, wr_id, target, false)?;
        own.ring(link, ring);
        Ok(posted)
    }

    /// Gives a request a time-out, in place of one that it may have: if it hasn't ended when so many cycles have gone by from now, the library cancels it. In time it completes
    /// as `TimedOut`; what has matched by then, or has left, completes as it would have. No completion tells of the cancel. `u64::MAX` is no time-out.
    ///
    /// Any call that posts, polls or waits on the completion queue sees to it; while nobody calls, nothing ends.
    ///
    /// # Errors
    /// [`PostError`]: `NothingToCancel` if the request has been polled for, can't be cancelled, or has a cancel under way; `Closed` if the endpoint is.
    pub fn set_timeout(&self, request: Request, cycles: u64) -> Result<(), PostError> {
        let expires_at = self.handle.link().now().saturating_add(cycles);
        let mut locked = self.handle.lock();
        let mut own = locked.own();
        if !own.is_open() {
            return Err(PostError::Closed);
        }
        own.set_expiry(request, expires_at)
    }
}

impl Own<'_> {
    /// Posts a cancel, of the program's or of the library's own, without ringing.
    pub(crate) fn post_cancel(
        &mut self,
        link: &Link,
        wr_id: u64,
        target: Request,
        swept: bool,
    ) -> Result<(Request, Ring), PostError> {
        let cancelled = self.work_of(target);
        let opcode = cancelled.and_then(|work| work.posting().cancelled_by);
        let opcode = opcode.ok_or(PostError::NothingToCancel)?;
        let work = Work::Cancel(Posted {
            target,
            opcode,
            swept,
        });
        let ring = work.posting().ring;
        let entry = match ring {
            Ring::Send => {
                let pair = cancelled.and_then(|work| work.operation().pair());
                Entry::Send(SendRequest {
                    pair: pair.map_or(NO_PAIR, |pair| pair.index),
                    target: self.to_cancel(target).wire(),
                    ..SendRequest::default()
                })
            }
            Ring::List => Entry::List(ListRequest {
                target: target.wire(),
                ..ListRequest::default()
            }),
        };
        self.admit(link, &work)?;
        Ok((self.post(wr_id, work, None, entry), ring))
    }
}
