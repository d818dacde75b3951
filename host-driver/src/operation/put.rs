//! Puts: bytes written into memory that a peer has granted.

use super::outgoing::header::{Fields, Header};
use super::outgoing::{Outgoing, Posted as Outgone};
use super::{Operation, SendFlags, Work};
use crate::completion::{WcKind, WorkCompletion};
use crate::core::Own;
use crate::endpoint::Endpoint;
use crate::error::{PostError, Refused};
use crate::pair::Pair;
use crate::shared::{Gather, SendBuffer, SharedBuffer};
use crate::table::Request;
use crate::window::RemoteKey;
use abi::completion::Completion;
use abi::request::Opcode;
use abi::status::Status;

pub(super) const OPCODES: &[Opcode] = &[Opcode::Put];

/// A put that is outstanding, or a part of one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posted(Outgone);

impl Operation for Posted {
    fn opcode(&self) -> Opcode {
        Opcode::Put
    }

    fn pair(&self) -> Option<Pair> {
        Some(self.0.pair)
    }

    fn is_message(&self) -> bool {
        false
    }

    fn kind(&self) -> Option<WcKind> {
        Some(WcKind::Put)
    }

    fn is_silent(&self, status: Status) -> bool {
        self.0.is_silent(status)
    }

    fn complete(&self, own: &mut Own<'_>, _: &Completion, told: &mut WorkCompletion) {
        self.0.complete(own, told);
    }
}

/// Where a put writes.
#[derive(Clone, Copy, Debug)]
pub struct Put {
    /// Pair by which it goes. The key has been granted to this end of it.
    pub pair: Pair,
    /// What the peer has granted.
    pub key: RemoteKey,
    /// Where the first byte goes: bytes from the first of the peer's [`Window`](crate::Window), also if only a part of it was granted.
    pub offset: u64,
}

impl<B: SendBuffer> Outgoing<B> for Put {}

impl Header for Put {
    fn fields(&self) -> Fields {
        let at = (self.key, self.offset);
        Fields::of_remote(Opcode::Put, self.pair, at, true, |posted| {
            Work::Put(Posted(posted))
        })
    }
}

impl Endpoint {
    /// Writes the buffer into memory that the peer has granted. (`IBV_WR_RDMA_WRITE`.) It comes back with the completion, when the bytes are in that memory; a
    /// message that is posted behind it on the pair finds them there.
    ///
    /// It completes with [`RemoteAccess`](crate::WcStatus::RemoteAccess) if the peer's card doesn't allow it, and the pair goes on. It goes in the
    /// order of the pair's sends, and needs no credit and no receive of the peer's. Rules, revocations and drains of messages don't concern it.
    ///
    /// It may have up to 2^32 − 1 bytes. One of more than 1024 goes in parts of 1024, up to sixteen of them under way at once. It has one completion,
    /// when all that went have ended, and takes up to seventeen entries of the completion queue until then, at least two. If a part fails those
    /// behind it don't go, and the put ends as that part did: what was written of the others stays written. Parts go while the program polls, waits
    /// or posts.
    ///
    /// # Errors
    /// [`Refused`], with the buffer: [`PostError::Unsupported`] if the card has no puts, `TooLong` beyond 2^32 − 1 bytes; see [`PostError`] for what to do.
    pub fn post_put<B: SendBuffer>(
        &self,
        wr_id: u64,
        put: &Put,
        buffer: B,
    ) -> Result<Request, Refused<B>> {
        self.post_outgoing(wr_id, put, SendFlags::empty(), buffer)
    }

    /// The same, and shows no completion unless it is an error: what [`post_unsignaled_send`](Self::post_unsignaled_send) is for sends, with the same to say of
    /// when the buffer is free.
    ///
    /// # Errors
    /// As for [`post_put`](Self::post_put), and `Unsupported` if the card can't do that.
    pub fn post_unsignaled_put(
        &self,
        wr_id: u64,
        put: &Put,
        buffer: SharedBuffer,
    ) -> Result<Request, Refused<SharedBuffer>> {
        self.post_outgoing(wr_id, put, SendFlags::UNSIGNALED, buffer)
    }

    /// Writes some buffers one after the other, up to four, as one put. They come back with the completion.
    ///
    /// # Errors
    /// [`PostError`]: `Unsupported` if the card can't do that and there is more than one, `TooManySegments`; as for [`post_put`](Self::post_put).
    pub fn post_gather_put(
        &self,
        wr_id: u64,
        put: &Put,
        segments: &[SharedBuffer],
    ) -> Result<Request, PostError> {
        let gather = Gather::new(segments)?;
        let posted = self.post_outgoing(wr_id, put, SendFlags::empty(), gather);
        posted.map_err(|refused| refused.error)
    }

    /// Writes a copy of `bytes`, which may be reused at once. No completion is shown unless it is an error.
    ///
    /// # Errors
    /// [`PostError`]: `TooLong` for more than 1024 bytes, `InjectBusy` while all copies are in flight, `Unsupported`.
    pub fn post_inject_put(&self, wr_id: u64, put: &Put, bytes: &[u8]) -> Result<(), PostError> {
        self.post_copy(wr_id, put, bytes)
    }
}
