//! What goes out by the queue of its pair, messages, puts and gets: one way for all, of a buffer, of several, of a copy, with a completion or without.
//!
//! ```text
//!  send.rs: TaggedSend ─┐                       ┌─► as it is
//!                       ├─► Header ─► admission ┼─► kept behind others of the pair
//!  put.rs:  Put ────────┤                       └─► in parts, if it is longer than the card takes
//!  get.rs:  Get ────────┘
//! ```

use self::header::{Fields, Header};
use super::{Work, refused_list};
use crate::completion::WorkCompletion;
use crate::core::{Own, Ring, Room, Way};
use crate::endpoint::Endpoint;
use crate::error::{ListRefused, PostError, Refused};
use crate::pair::Pair;
use crate::region::Buffer;
use crate::shared::readable::Piece;
use crate::shared::{Payload, SendBuffer};
use crate::table::{Request, Segments};
use crate::window::RemoteKey;
use abi::limits::EAGER_MAX;
use abi::request::{
    FLAG_ERRORS_ONLY, FLAG_GATHER, FLAG_INLINE, FLAG_READY, INLINE_BYTES, Opcode, Segment,
    SendRequest,
};
use abi::status::Status;
use std::fmt;

/// What the library keeps of a message, a put or a get that is outstanding.
#[derive(Clone, Copy, Debug)]
pub struct Posted {
    pub(super) pair: Pair,
    /// Its bytes.
    length: u64,
    /// Its buffer is the library's, with a copy of the program's bytes.
    inject: bool,
    /// The program isn't told of its success.
    unsignaled: bool,
}

impl Posted {
    pub(super) fn is_silent(&self, status: Status) -> bool {
        (self.inject || self.unsignaled) && status == Status::Success
    }

    pub(super) fn complete(&self, own: &mut Own<'_>, told: &mut WorkCompletion) {
        // The card tells no length of it.
        if !is_broken!(AsksCompletionForLength) {
            told.length = self.length;
        }
        if self.inject {
            let buffer = told.buffer.take();
            buffer
                .into_iter()
                .for_each(|buffer| own.give_bounce(buffer));
        } else if self.is_silent(told.status) {
            let segments = std::mem::take(&mut told.segments);
            own.keep_retired(told.buffer.take(), told.shared.take(), segments);
        }
    }
}

/// How something that goes out with a buffer of this kind is addressed: a [`TaggedSend`](crate::TaggedSend), a [`Put`](crate::Put), or, with a [`Buffer`], a
/// [`Get`](crate::Get): the card writes to that one.
pub trait Outgoing<B>: Copy + fmt::Debug + Header {}

pub(crate) mod header {
    //! What the library asks of an address; nobody else implements it.

    use super::Posted;
    use crate::operation::Work;
    use crate::pair::Pair;
    use abi::request::{Opcode, SendRequest};

    /// How a kind of request that goes out is posted.
    pub struct Fields {
        pub(crate) opcode: Opcode,
        pub(crate) pair: Pair,
        /// Bytes that it may have, at most. More than the card takes go in parts.
        pub(crate) most: u64,
        /// The entry of the ring, but for flags, bytes and handle.
        pub(crate) entry: SendRequest,
        /// Rules and drains of messages concern it.
        pub(crate) is_message: bool,
        /// It may succeed without a completion.
        pub(crate) may_be_silent: bool,
        pub(crate) work: fn(Posted) -> Work,
    }

    pub trait Header {
        fn fields(&self) -> Fields;
    }
}

impl Fields {
    /// Of what reaches into the peer's memory, by a key and from this byte on.
    pub(super) fn of_remote(
        opcode: Opcode,
        pair: Pair,
        (key, offset): (RemoteKey, u64),
        may_be_silent: bool,
        work: fn(Posted) -> Work,
    ) -> Self {
        Self {
            opcode,
            pair,
            most: u32::MAX.into(),
            entry: SendRequest {
                pair: pair.index,
                match_bits: key.to_bits(),
                immediate: offset,
                ..SendRequest::default()
            },
            is_message: false,
            may_be_silent,
            work,
        }
    }

    /// Refuses what a rule or a drain of the endpoint concerns.
    fn admit(&self, own: &mut Own<'_>) -> Result<(), PostError> {
        match self.is_message || is_broken!(RevokesPuts) {
            true => own.refuse_revoked(self.pair, self.entry.context, self.entry.match_bits),
            false => Ok(()),
        }
    }
}

bitflags::bitflags! {
    /// How a send, a put or a get of a list is posted: `send_flags` of `ibv_send_wr`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct SendFlags: u8 {
        /// As by [`Endpoint::post_ready_send`]. Not of a put or a get.
        const READY = FLAG_READY;
        /// As by [`Endpoint::post_unsignaled_send`]: no completion unless it is an error. The buffer is dropped when the send has ended, so that who wants it
        /// back sends a [`SharedBuffer`](crate::SharedBuffer) and keeps a clone. Not of a get, whose buffer has what was read.
        const UNSIGNALED = FLAG_ERRORS_ONLY;
    }
}

/// A send, a put or a get of a list: `ibv_send_wr`. `B` is [`Buffer`], [`SharedBuffer`](crate::SharedBuffer), [`Payload`] for a list of both, or [`Gather`](crate::Gather)
/// for one of several segments each; `S` is [`TaggedSend`](crate::TaggedSend), [`Put`](crate::Put) or, with a [`Buffer`], [`Get`](crate::Get).
#[derive(Debug)]
pub struct SendWr<B = Buffer, S = crate::TaggedSend> {
    /// The application's number.
    pub wr_id: u64,
    /// How it is addressed.
    pub send: S,
    /// In what way it is posted.
    pub flags: SendFlags,
    /// What is sent, or filled.
    pub buffer: B,
}

impl Endpoint {
    /// Posts the sends, the puts or the gets of a list in order, and tells the card of all of them by one doorbell. (`ibv_post_send` of a chain.) The
    /// handles of those that were posted are added to `posted`.
    ///
    /// Either all are posted, or those in front of the first that is refused. `list` is asked for one at a time, without a lock held; posts of other
    /// threads may come in between. The ring takes no more at once than it has entries free: a longer list is refused with `SendRingFull` there,
    /// after the doorbell, and can go on when the card has fetched.
    ///
    /// # Errors
    /// [`ListRefused`], with the request that was refused and those behind it. Its [`PostError`] is that of the request:
    /// - [`SendRingFull`](PostError::SendRingFull), [`CompletionQueueFull`](PostError::CompletionQueueFull), [`PairBusy`](PostError::PairBusy): there is no room
    ///   behind those in front of it. Let the card run or poll, then post the rest.
    /// - [`Revoked`](PostError::Revoked): a rule of the endpoint revokes the message.
    /// - [`Unsupported`](PostError::Unsupported), [`TooLong`](PostError::TooLong): of flags that the card doesn't know, and of gathers.
    /// - [`InvalidPair`](PostError::InvalidPair), [`WrongDomain`](PostError::WrongDomain): what the request names isn't this endpoint's.
    /// - [`Closed`](PostError::Closed), [`Transport`](PostError::Transport): as of any post.
    pub fn post_send_list<B: SendBuffer, S: Outgoing<B>, L: IntoIterator<Item = SendWr<B, S>>>(
        &self,
        list: L,
        posted: &mut impl Extend<Request>,
    ) -> Result<(), ListRefused<SendWr<B, S>, L::IntoIter>> {
        let mut rest = list.into_iter();
        let mut count = 0;
        let refused = loop {
            let Some(wr) = rest.next() else {
                break None;
            };
            let entered = self.enter_outgoing(
                &mut self.handle.lock().own(),
                wr.wr_id,
                &wr.send,
                wr.flags,
                wr.buffer,
            );
            match entered {
                Ok(request) => posted.extend([request]),
                Err(Refused { error, buffer }) => break Some((error, SendWr { buffer, ..wr })),
            }
            count += 1;
        };
        self.handle
            .lock()
            .own()
            .ring(self.handle.link(), Ring::Send);
        refused_list(refused, count, rest)
    }

    /// Posts a copy of `bytes`.
    pub(super) fn post_copy<S: Header>(
        &self,
        wr_id: u64,
        send: &S,
        bytes: &[u8],
    ) -> Result<(), PostError> {
        let fields = send.fields();
        self.supports(fields.opcode, 0)?;
        if bytes.len() > EAGER_MAX {
            return Err(PostError::TooLong);
        }
        let link = self.handle.link();
        let mut locked = self.handle.lock();
        // Completions that nobody polls for hold the buffers: look before giving up.
        if !locked.own().has_bounce() {
            locked.core.is_ready(link);
        }
        let mut own = locked.own();
        if !own.has_bounce() {
            return Err(PostError::InjectBusy);
        }
        let work = (fields.work)(Posted {
            pair: fields.pair,
            length: bytes.len() as u64,
            inject: true,
            unsignaled: false,
        });
        fields.admit(&mut own)?;
        let room = Room {
            entries: 1,
            in_parts: false,
        };
        let way = own.admit_send(link, &work, room)?;
        let mut buffer = own.take_bounce().ok_or(PostError::InjectBusy)?;
        buffer[..bytes.len()].copy_from_slice(bytes);
        let (key, address, _) = buffer.local();
        let segment = Segment {
            key,
            address,
            length: bytes.len() as u64,
        };
        let inline = self.inline(fields.opcode, bytes);
        let request = entry_of(fields.entry, 0, segment, inline);
        let held = (Some(Payload::Unique(buffer)), Segments::default());
        own.post_send(way, wr_id, work, held, request);
        own.ring(link, Ring::Send);
        Ok(())
    }

    /// These bytes, if the request itself can carry them.
    fn inline<'a>(&self, opcode: Opcode, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let short = bytes.len() <= INLINE_BYTES;
        let carries = short && self.supports(opcode, FLAG_INLINE).is_ok();
        carries.then_some(bytes)
    }

    pub(super) fn post_outgoing<B: SendBuffer, S: Outgoing<B>>(
        &self,
        wr_id: u64,
        send: &S,
        flags: SendFlags,
        buffer: B,
    ) -> Result<Request, Refused<B>> {
        let mut locked = self.handle.lock();
        let mut own = locked.own();
        let entered = self.enter_outgoing(&mut own, wr_id, send, flags, buffer)?;
        own.ring(self.handle.link(), Ring::Send);
        Ok(entered)
    }

    /// Posts a send, a put or a get without ringing.
    fn enter_outgoing<B: SendBuffer, S: Outgoing<B>>(
        &self,
        own: &mut Own<'_>,
        wr_id: u64,
        send: &S,
        flags: SendFlags,
        buffer: B,
    ) -> Result<Request, Refused<B>> {
        let fields = send.fields();
        let (way, posted, request) = match self.admit_outgoing(own, &fields, flags, &buffer) {
            Err(error) => return Err(Refused { error, buffer }),
            Ok(admitted) => admitted,
        };
        let (work, held) = ((fields.work)(posted), buffer.into_held());
        if way != Way::Parts {
            return Ok(own.post_send(way, wr_id, work, held, request));
        }
        let whole = own.post_in_parts(wr_id, work, held, request, posted.length);
        own.post_kept_sends(self.handle.link());
        Ok(whole)
    }

    /// Looks whether a send, a put or a get can be posted or kept, and makes its entry.
    fn admit_outgoing<B: SendBuffer>(
        &self,
        own: &mut Own<'_>,
        fields: &Fields,
        flags: SendFlags,
        buffer: &B,
    ) -> Result<(Way, Posted, SendRequest), PostError> {
        let pieces = buffer.pieces();
        let gathers = pieces.iter().flatten().count() > 1;
        let gather = if gathers { FLAG_GATHER } else { 0 };
        self.supports(fields.opcode, flags.bits() | gather)?;
        let silent = flags.contains(SendFlags::UNSIGNALED);
        if silent && !fields.may_be_silent && !is_broken!(DropsWhatWasRead) {
            return Err(PostError::Unsupported);
        }
        let foreign = |piece: &Piece<'_>| !piece.whole.is_of(self.handle.domain());
        if pieces.iter().flatten().any(foreign) {
            return Err(PostError::WrongDomain);
        }
        let length = pieces.iter().flatten().map(|piece| piece.length as u64);
        let length = length.sum::<u64>();
        let in_parts = fields.most > EAGER_MAX as u64 && length > EAGER_MAX as u64;
        if length > fields.most && (gathers || in_parts) {
            return Err(PostError::TooLong);
        }
        let posted = Posted {
            pair: fields.pair,
            length,
            inject: false,
            unsignaled: silent,
        };
        fields.admit(own)?;
        let room = Room {
            entries: if gathers { 2 } else { 1 },
            in_parts,
        };
        let way = own.admit_send(self.handle.link(), &(fields.work)(posted), room)?;
        let first = pieces[0].map(Piece::segment).unwrap_or_default();
        let inline = match gathers {
            true => None,
            false => self.inline(fields.opcode, pieces[0].map_or(&[], Piece::bytes)),
        };
        let flags = (flags & SendFlags::all()).bits() | gather;
        Ok((way, posted, entry_of(fields.entry, flags, first, inline)))
    }
}

/// The ring entry, but for its handle. It carries the bytes itself, if there are some, and otherwise names the buffer.
fn entry_of(
    entry: SendRequest,
    flags: u8,
    Segment {
        key,
        address,
        length,
    }: Segment,
    inline: Option<&[u8]>,
) -> SendRequest {
    let named = SendRequest {
        flags,
        key,
        address,
        length,
        ..entry
    };
    inline.map_or(named, |bytes| named.with_inline(bytes))
}
