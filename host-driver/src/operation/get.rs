//! Gets: bytes read from memory that a peer has granted.

use super::outgoing::header::{Fields, Header};
use super::outgoing::{Outgoing, Posted as Outgone};
use super::{Operation, SendFlags, Work};
use crate::completion::{WcKind, WorkCompletion};
use crate::core::Own;
use crate::endpoint::Endpoint;
use crate::error::Refused;
use crate::pair::Pair;
use crate::region::Buffer;
use crate::table::Request;
use crate::window::RemoteKey;
use abi::completion::Completion;
use abi::request::Opcode;

pub(super) const OPCODES: &[Opcode] = &[Opcode::Get];

/// A get that is outstanding, or a part of one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posted(Outgone);

impl Operation for Posted {
    fn opcode(&self) -> Opcode {
        Opcode::Get
    }

    fn pair(&self) -> Option<Pair> {
        Some(self.0.pair)
    }

    fn is_message(&self) -> bool {
        false
    }

    fn kind(&self) -> Option<WcKind> {
        Some(WcKind::Get)
    }

    fn complete(&self, own: &mut Own<'_>, _: &Completion, told: &mut WorkCompletion) {
        self.0.complete(own, told);
    }
}

/// Where a get reads.
///
/// The card writes the buffer of a get, so nobody else has it until the completion brings it back:
///
/// ```compile_fail,E0382
/// # use host_driver::*;
/// # fn example(endpoint: Endpoint, get: Get, buffer: Buffer) {
/// let posted = endpoint.post_get(1, &get, buffer);
/// let early = buffer[0];
/// # }
/// ```
///
/// A buffer that others may read meanwhile is none for it, alone or in a list:
///
/// ```compile_fail,E0308
/// # use host_driver::*;
/// # fn example(endpoint: Endpoint, get: Get, buffer: SharedBuffer) {
/// let posted = endpoint.post_get(1, &get, buffer);
/// # }
/// ```
///
/// ```compile_fail,E0277
/// # use host_driver::*;
/// # fn example(endpoint: Endpoint, send: Get, buffer: SharedBuffer) {
/// let list = [SendWr { wr_id: 1, send, flags: SendFlags::empty(), buffer }];
/// let posted = endpoint.post_send_list(list, &mut Vec::new());
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Get {
    /// Pair by which it goes. The key has been granted to this end of it.
    pub pair: Pair,
    /// What the peer has granted.
    pub key: RemoteKey,
    /// Where the first byte is: bytes from the first of the peer's [`Window`](crate::Window), also if only a part of it was granted.
    pub offset: u64,
}

/// The card writes the buffer, so that it has to be the request's alone.
impl Outgoing<Buffer> for Get {}

impl Header for Get {
    fn fields(&self) -> Fields {
        let at = (self.key, self.offset);
        Fields::of_remote(Opcode::Get, self.pair, at, false, |posted| {
            Work::Get(Posted(posted))
        })
    }
}

impl Endpoint {
    /// Fills the buffer with bytes from memory that the peer has granted. (`IBV_WR_RDMA_READ`.) It comes back with the completion: the card writes it until
    /// then, and never after it.
    ///
    /// It completes with [`RemoteAccess`](crate::WcStatus::RemoteAccess) if the peer's card doesn't allow it, and the pair goes on. It goes in the order of
    /// the pair's sends, and needs no credit and no receive of the peer's. What is posted behind it on the pair goes too, and completes behind it. Rules,
    /// revocations and drains of messages don't concern it.
    ///
    /// It reads what the puts in front of it on the pair have written. With what is posted behind it nothing orders it: it may read again until its answer has
    /// come. So wait for its completion before a put or a message that depends on it. Not all of its bytes need be of one moment.
    ///
    /// The buffer may have up to 2^32 − 1 bytes. More than 1024 go in parts of 1024, up to sixteen of them under way at once, as those of a
    /// [put](Self::post_put) do: with one completion, and up to seventeen entries of the completion queue. If a part fails those behind it don't go,
    /// and the get ends as that part did: what was read of the others is in the buffer.
    ///
    /// # Errors
    /// [`Refused`], with the buffer: [`PostError::Unsupported`](crate::PostError::Unsupported) if the card has no gets, `TooLong` beyond 2^32 − 1 bytes; see
    /// [`PostError`](crate::PostError) for what to do.
    pub fn post_get(&self, wr_id: u64, get: &Get, buffer: Buffer) -> Result<Request, Refused> {
        self.post_outgoing(wr_id, get, SendFlags::empty(), buffer)
    }
}
