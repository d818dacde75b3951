//! The discard of a claimed message: by the program, or in silence when the program drops it.

use super::{Operation, Work};
use crate::claimed::{Claim, Claimed, DiscardRefused};
use crate::core::{Own, Ring};
use crate::error::PostError;
use crate::link::Link;
use crate::pair::Pair;
use crate::table::{Entry, Request};
use abi::request::{ListRequest, Opcode};
use abi::status::Status;

pub(super) const OPCODES: &[Opcode] = &[Opcode::Discard];

/// A discard that is outstanding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posted {
    claim: Claim,
    /// The program didn't ask for it, and has no completion of it.
    silent: bool,
    /// A sweep did.
    swept: bool,
}

impl Operation for Posted {
    fn opcode(&self) -> Opcode {
        Opcode::Discard
    }

    fn pair(&self) -> Option<Pair> {
        Some(self.claim.pair)
    }

    fn is_sweeps(&self) -> bool {
        self.swept
    }

    fn is_silent(&self, _: Status) -> bool {
        self.silent
    }
}

impl Claimed {
    /// Drops the message. The completion says that its place is free, or `Flushed` if the pair was closed meanwhile.
    ///
    /// # Errors
    /// [`DiscardRefused`], with the message: `InvalidPair` if the pair has been closed, else see [`PostError`] for what to do.
    pub fn discard(self, wr_id: u64) -> Result<Request, DiscardRefused> {
        let (endpoint, claim) = self.into_parts();
        let link = endpoint.link();
        let mut locked = endpoint.lock();
        let mut own = locked.own();
        own.feed(link);
        let discard = Posted {
            claim,
            silent: false,
            swept: false,
        };
        let posted = own.post_discard(link, wr_id, discard);
        if posted.is_ok() {
            own.ring(link, Ring::List);
        }
        drop(locked);
        posted.map_err(|error| DiscardRefused {
            error,
            claimed: Self::new(endpoint, claim),
        })
    }
}

impl Own<'_> {
    /// Discards what the program has dropped, as far as there is room. A closed pair has taken its messages with it.
    pub(crate) fn discard_dropped(&mut self, link: &Link) {
        while let Some(claim) = self.take_dropped() {
            let open = self.pair_mut(claim.pair).is_some();
            let discard = Posted {
                claim,
                silent: true,
                swept: false,
            };
            let posted = open.then(|| self.post_discard(link, 0, discard));
            if let Some(Err(PostError::ListRingFull | PostError::CompletionQueueFull)) = posted {
                self.keep_dropped(claim);
                return;
            }
        }
    }

    /// Discards what a sweep has claimed.
    pub(crate) fn post_discard_swept(
        &mut self,
        link: &Link,
        claim: Claim,
    ) -> Result<Request, PostError> {
        let discard = Posted {
            claim,
            silent: true,
            swept: true,
        };
        self.post_discard(link, 0, discard)
    }

    fn post_discard(
        &mut self,
        link: &Link,
        wr_id: u64,
        discard: Posted,
    ) -> Result<Request, PostError> {
        let work = Work::Discard(discard);
        self.admit(link, &work)?;
        let entry = Entry::List(ListRequest {
            target: discard.claim.handle,
            ..ListRequest::default()
        });
        Ok(self.post(wr_id, work, None, entry))
    }
}
