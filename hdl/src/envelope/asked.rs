//! What was asked of Lists, beside the answer that comes: the queue between [`Admit`](super::admit::Admit) and
//! [`Answer`](super::answer::Answer).

use crate::prelude::*;
use crate::types::Had;

/// What was asked, and so what an answer means.
#[derive(Copy, Clone, Debug, PartialEq, Eq, LogicState)]
pub(super) enum Ask {
    /// Nothing: a request ends, with `status`.
    Ends,
    /// The same, of a receive that waits for room and that a walk ends.
    Last,
    /// Nothing: all that was asked before has to end.
    Mark,
    /// Nothing: a message of a pair that isn't connected is dropped.
    Drop,
    /// Nothing: a message that a rule revokes is dropped, and its envelope freed.
    Revoked,
    /// Nothing: a put goes where its key says.
    Put,
    /// Nothing: a get is answered when all before it is written.
    Get,
    /// Nothing: the answer of a get goes to the get's buffer, or says that there is none.
    Answer,
    /// Nothing: a request names a claimed message.
    Handle,
    /// Which receive a message meets; it was appended if there is none, or is refused.
    Message,
    /// A message whose slot couldn't be written was removed.
    Lost,
    /// Which message a receive meets; it was posted if there is none.
    Receive,
    /// The same, but the receive isn't posted: its pair has failed, or it is behind one that waits.
    Take,
    /// A message; it stays.
    Probe,
    /// A message, which is claimed.
    Claim,
    /// The receive that a cancel names.
    Cancel,
    /// One more receive of a pair or an endpoint that ends: a step of a walk.
    Flush,
    /// One more message of a pair that is closed.
    Forget,
    /// A multi-receive that has ended.
    Retire,
}

/// One question, or one end without a question.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Asked {
    /// What was asked.
    pub ask: Ask,
    /// Endpoint of the message or the request.
    pub endpoint: Bits<8>,
    /// The message's pair, or the one that the request names.
    pub pair: Bits<16>,
    /// The message's context.
    pub context: Bits<16>,
    /// The message's match bits. Put, Get: the remote key. Answer: card address of the get's buffer.
    pub match_bits: Bits<64>,
    /// The message's immediate data. Put, Get: the offset. Answer: key and protection domain of the get's buffer. A request: `offset` of a
    /// [`Had`] in the low half, `count` above.
    pub immediate: Bits<64>,
    /// The message's length in bytes. Get: bytes that are wanted. Drop, Answer: those that are on the wire.
    pub arrived: Bits<16>,
    /// Get: it has come before. It is no further request, and only answered again.
    pub again: Bit,
    /// Answer: the peer refuses.
    pub refused: Bit,
    /// Get, Answer: number of the get.
    pub number: Bits<32>,
    /// The message is to find a receive, or to be refused.
    pub ready: Bit,
    /// It is refused if it finds none: no receive for it can be on its way here.
    pub refusable: Bit,
    /// It was appended if it found none.
    pub append: Bit,
    /// The message's slot then.
    pub slot: Bits<6>,
    /// Handle of the request.
    pub request: Bits<32>,
    /// `abi::completion::CompletionKind` of its completion.
    pub kind: Bits<8>,
    /// Handle that the request names.
    pub target: Bits<32>,
    /// Its buffer: protection domain.
    pub domain: Bits<8>,
    /// Its buffer: key.
    pub key: Bits<32>,
    /// Its buffer: card address.
    pub address: Bits<64>,
    /// Its buffer: bytes, 2³² − 1 if there are more.
    pub length: Bits<32>,
    /// It takes messages of any source.
    pub any_source: Bit,
    /// It stays when it has taken a message.
    pub multi: Bit,
    /// It ends when fewer bytes than that are left.
    pub min_free: Bits<32>,
    /// It has a buffer.
    pub buffer: Bit,
    /// The Gate allows it.
    pub allowed: Bit,
    /// The pair of the claimed message is connected, and is the endpoint's.
    pub own: Bit,
    /// What it ends with, unless something else is found.
    pub status: Bits<8>,
    /// Handle that its completion names beside its own.
    pub names: Bits<32>,
    /// It was malformed, and is counted as such.
    pub invalid: Bit,
    /// The completion that was reserved for the cancel isn't needed.
    pub releases: Bit,
}

/// What has to follow when a multi-receive has taken a message.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Follow {
    /// It has ended, and has to leave Lists. Otherwise it looks for one more message.
    pub retire: Bit,
    /// Its endpoint.
    pub endpoint: Bits<8>,
    /// Its handle.
    pub request: Bits<32>,
    /// What is left of its buffer: card address.
    pub address: Bits<64>,
    /// What is left of its buffer: bytes.
    pub length: Bits<32>,
    /// What it has had.
    pub had: Had,
}
