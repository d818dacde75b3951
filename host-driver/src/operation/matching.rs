//! What a receive, a probe and a claim have in common: which messages they match.

use super::Work;
use crate::core::Own;
use crate::endpoint::Endpoint;
use crate::error::PostError;
use crate::pair::Pair;
use crate::table::{Entry, Request};
use abi::request::{FLAG_ANY_SOURCE, ListRequest};

/// Where a message may come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Any pair of the endpoint.
    Any,
    /// This pair.
    Pair(Pair),
}

impl Source {
    /// The pair, unless it is any.
    pub(super) const fn pair(self) -> Option<Pair> {
        match self {
            Self::Any => None,
            Self::Pair(pair) => Some(pair),
        }
    }
}

/// Which messages a receive, a probe or a claim matches.
#[derive(Clone, Copy, Debug)]
pub struct TaggedReceive {
    /// Source.
    pub source: Source,
    /// Communicator context.
    pub context: u16,
    /// Match bits.
    pub match_bits: u64,
    /// Bits of `match_bits` that don't have to agree.
    pub ignore_bits: u64,
}

impl Endpoint {
    /// Looks whether a request that matches these messages can be posted or kept, and completes its entry.
    pub(super) fn admit_matching(
        &self,
        own: &mut Own<'_>,
        work: &Work,
        receive: &TaggedReceive,
        mut entry: ListRequest,
    ) -> Result<Entry, PostError> {
        own.admit(self.handle.link(), work)?;
        let TaggedReceive {
            context,
            match_bits,
            ignore_bits,
            ..
        } = *receive;
        let place = receive.source.pair().map(|pair| pair.index);
        own.refuse_drained(place, context, match_bits, ignore_bits)?;
        entry.context = receive.context;
        entry.match_bits = receive.match_bits;
        entry.ignore_bits = receive.ignore_bits;
        match receive.source {
            Source::Any => entry.flags |= FLAG_ANY_SOURCE,
            Source::Pair(pair) if own.is_usable(pair) => entry.pair = pair.index,
            Source::Pair(_) => return Err(PostError::InvalidPair),
        }
        Ok(Entry::List(entry))
    }

    /// Posts a request that looks for a message and has no buffer.
    pub(super) fn post_look(
        &self,
        wr_id: u64,
        receive: &TaggedReceive,
        work: Work,
    ) -> Result<Request, PostError> {
        let link = self.handle.link();
        let mut locked = self.handle.lock();
        let mut own = locked.own();
        own.feed(link);
        let entry = self.admit_matching(&mut own, &work, receive, ListRequest::default())?;
        let posted = own.post(wr_id, work, None, entry);
        own.feed(link);
        Ok(posted)
    }
}
