//! Sends: of a buffer, of several as one message, of a copy, with a completion or without.

use super::{Operation, Work, refused_list};
use crate::completion::WorkCompletion;
use crate::core::{Own, Ring, Way};
use crate::endpoint::Endpoint;
use crate::error::{ListRefused, PostError, Refused};
use crate::pair::Pair;
use crate::region::Buffer;
use crate::rules::HeldRule;
use crate::shared::readable::Piece;
use crate::shared::{Gather, Payload, SendBuffer, SharedBuffer};
use crate::table::{Request, Segments};
use abi::completion::Completion;
use abi::limits::EAGER_MAX;
use abi::request::{
    FLAG_ERRORS_ONLY, FLAG_GATHER, FLAG_INLINE, FLAG_READY, INLINE_BYTES, Opcode, Segment,
    SendRequest,
};
use abi::status::Status;

/// `Segments` is the second entry of a gather.
pub(super) const OPCODES: &[Opcode] = &[Opcode::TaggedSend, Opcode::Segments];

/// A send that is outstanding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posted {
    pair: Pair,
    /// Bytes of the message.
    length: u64,
    /// Its buffer is the library's, with a copy of the program's bytes.
    inject: bool,
    /// The program isn't told of its success.
    unsignaled: bool,
}

impl Operation for Posted {
    fn opcode(&self) -> Opcode {
        Opcode::TaggedSend
    }

    fn pair(&self) -> Option<Pair> {
        Some(self.pair)
    }

    fn is_silent(&self, status: Status) -> bool {
        (self.inject || self.unsignaled) && status == Status::Success
    }

    fn complete(&self, own: &mut Own<'_>, _: &Completion, told: &mut WorkCompletion) {
        // The card tells no length of a send.
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

/// How a message is addressed.
#[derive(Clone, Copy, Debug)]
pub struct TaggedSend {
    /// Pair to send on.
    pub pair: Pair,
    /// Communicator context.
    pub context: u16,
    /// Bits that the receive is matched against.
    pub match_bits: u64,
    /// Delivered with the message, not matched.
    pub immediate: u64,
}

bitflags::bitflags! {
    /// How a send of a list is sent: `send_flags` of `ibv_send_wr`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct SendFlags: u8 {
        /// As by [`Endpoint::post_ready_send`].
        const READY = FLAG_READY;
        /// As by [`Endpoint::post_unsignaled_send`]: no completion unless it is an error. The buffer is dropped when the send has ended, so that who wants it
        /// back sends a [`SharedBuffer`] and keeps a clone.
        const UNSIGNALED = FLAG_ERRORS_ONLY;
    }
}

/// A send of a list: `ibv_send_wr`. `B` is [`Buffer`], [`SharedBuffer`], [`Payload`] for a list of both, or [`Gather`] for one of messages of several segments.
#[derive(Debug)]
pub struct SendWr<B = Buffer> {
    /// The application's number.
    pub wr_id: u64,
    /// How the message is addressed.
    pub send: TaggedSend,
    /// In what way it is sent.
    pub flags: SendFlags,
    /// What is sent.
    pub buffer: B,
}

impl Endpoint {
    /// Sends the buffer. It comes back with the completion, when the message is safe at its destination.
    ///
    /// # Errors
    /// [`Refused`], with the buffer; see [`PostError`] for what to do.
    pub fn post_tagged_send<B: SendBuffer>(
        &self,
        wr_id: u64,
        send: &TaggedSend,
        buffer: B,
    ) -> Result<Request, Refused<B>> {
        self.post_send(wr_id, send, SendFlags::empty(), buffer)
    }

    /// Sends the buffer to a receive that the program knows to be posted. (MPI's ready mode.) If there is none when the message arrives, it isn't
    /// delivered and the send completes with [`NotReady`](crate::WcStatus::NotReady); the pair goes on.
    ///
    /// A receive counts as posted from the return of the call that posts it. While the peer's endpoint has more receives posted than its card
    /// holds, a message that finds none there may belong to one of the rest: then it waits, like any other.
    ///
    /// # Errors
    /// [`Refused`], with the buffer; see [`PostError`] for what to do.
    pub fn post_ready_send<B: SendBuffer>(
        &self,
        wr_id: u64,
        send: &TaggedSend,
        buffer: B,
    ) -> Result<Request, Refused<B>> {
        self.post_send(wr_id, send, SendFlags::READY, buffer)
    }

    /// Sends the buffer, and shows no completion unless it is an error. (A work request without `IBV_SEND_SIGNALED`.) The buffer is shared, and the program keeps
    /// a clone: when it is the last, [`try_into_buffer`](SharedBuffer::try_into_buffer), the send has ended.
    ///
    /// The card doesn't write a completion of every success either. The library has each fourth send of a pair write one, and knows by it that those before
    /// have ended. So the buffers of the last three are free only when a later send of the pair, of any kind, has completed and been polled for; or
    /// when the pair is closed. If the endpoint is closed first these sends complete as `Flushed`, though some may have been delivered.
    ///
    /// # Errors
    /// [`Refused`], with the buffer: [`PostError::Unsupported`] if the card can't do that; see [`PostError`] for what to do.
    pub fn post_unsignaled_send(
        &self,
        wr_id: u64,
        send: &TaggedSend,
        buffer: SharedBuffer,
    ) -> Result<Request, Refused<SharedBuffer>> {
        self.post_send(wr_id, send, SendFlags::UNSIGNALED, buffer)
    }

    /// Sends some buffers as one message, one after the other: up to four. (`ibv_post_send` with several `ibv_sge`.) They come back with the
    /// completion, which the program needn't wait for to read them, or to send them elsewhere.
    ///
    /// # Errors
    /// [`PostError`]: `Unsupported` if the card can't do that and there is more than one, `TooManySegments`, `TooLong` if they are more than 1024 bytes together,
    /// `SendRingFull` while the ring has less than two entries free.
    pub fn post_gather_send(
        &self,
        wr_id: u64,
        send: &TaggedSend,
        segments: &[SharedBuffer],
    ) -> Result<Request, PostError> {
        let gather = Gather::new(segments)?;
        let posted = self.post_send(wr_id, send, SendFlags::empty(), gather);
        posted.map_err(|refused| refused.error)
    }

    /// Posts the sends of a list in order, and tells the card of all of them by one doorbell. (`ibv_post_send` of a chain.) The handles of those that
    /// were posted are added to `posted`.
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
    pub fn post_send_list<B: SendBuffer, L: IntoIterator<Item = SendWr<B>>>(
        &self,
        list: L,
        posted: &mut impl Extend<Request>,
    ) -> Result<(), ListRefused<SendWr<B>, L::IntoIter>> {
        let mut rest = list.into_iter();
        let mut count = 0;
        let refused = loop {
            let Some(wr) = rest.next() else {
                break None;
            };
            let entered = self.enter_send(
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

    /// Sends a copy of `bytes`, which may be reused at once. No completion is shown unless it is an error.
    ///
    /// # Errors
    /// [`PostError`]: `TooLong` for more than 1024 bytes, `InjectBusy` while all copies are in flight.
    pub fn post_tagged_inject(
        &self,
        wr_id: u64,
        send: &TaggedSend,
        bytes: &[u8],
    ) -> Result<(), PostError> {
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
        let work = Work::Send(Posted {
            pair: send.pair,
            length: bytes.len() as u64,
            inject: true,
            unsignaled: false,
        });
        own.refuse_revoked(send)?;
        let way = own.admit_send(link, &work, 1)?;
        let mut buffer = own.take_bounce().ok_or(PostError::InjectBusy)?;
        buffer[..bytes.len()].copy_from_slice(bytes);
        let (key, address, _) = buffer.local();
        let segment = Segment {
            key,
            address,
            length: bytes.len() as u64,
        };
        let request = send_request(send, 0, segment, self.inline(bytes));
        let held = (Some(Payload::Unique(buffer)), Segments::default());
        own.post_send(way, wr_id, work, held, request);
        own.ring(link, Ring::Send);
        Ok(())
    }

    /// These bytes, if the request itself can carry them.
    fn inline<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let short = bytes.len() <= INLINE_BYTES;
        let carries = short && self.supports(Opcode::TaggedSend, FLAG_INLINE).is_ok();
        carries.then_some(bytes)
    }

    fn post_send<B: SendBuffer>(
        &self,
        wr_id: u64,
        send: &TaggedSend,
        flags: SendFlags,
        buffer: B,
    ) -> Result<Request, Refused<B>> {
        let mut locked = self.handle.lock();
        let mut own = locked.own();
        let entered = self.enter_send(&mut own, wr_id, send, flags, buffer)?;
        own.ring(self.handle.link(), Ring::Send);
        Ok(entered)
    }

    /// Posts a send without ringing.
    fn enter_send<B: SendBuffer>(
        &self,
        own: &mut Own<'_>,
        wr_id: u64,
        send: &TaggedSend,
        flags: SendFlags,
        buffer: B,
    ) -> Result<Request, Refused<B>> {
        match self.admit_send(own, send, flags, &buffer) {
            Err(error) => Err(Refused { error, buffer }),
            Ok((way, work, request)) => {
                Ok(own.post_send(way, wr_id, work, buffer.into_held(), request))
            }
        }
    }

    /// Looks whether a send can be posted or kept, and makes its entry.
    fn admit_send<B: SendBuffer>(
        &self,
        own: &mut Own<'_>,
        send: &TaggedSend,
        flags: SendFlags,
        buffer: &B,
    ) -> Result<(Way, Work, SendRequest), PostError> {
        let pieces = buffer.pieces();
        let gathers = pieces.iter().flatten().count() > 1;
        let gather = if gathers { FLAG_GATHER } else { 0 };
        self.supports(Opcode::TaggedSend, flags.bits() | gather)?;
        let foreign = |piece: &Piece<'_>| !piece.whole.is_of(self.handle.domain());
        if pieces.iter().flatten().any(foreign) {
            return Err(PostError::WrongDomain);
        }
        let length = pieces.iter().flatten().map(|piece| piece.length as u64);
        let length = length.sum();
        if gathers && length > EAGER_MAX as u64 {
            return Err(PostError::TooLong);
        }
        let work = Work::Send(Posted {
            pair: send.pair,
            length,
            inject: false,
            unsignaled: flags.contains(SendFlags::UNSIGNALED),
        });
        let entries = if gathers { 2 } else { 1 };
        own.refuse_revoked(send)?;
        let way = own.admit_send(self.handle.link(), &work, entries)?;
        let first = pieces[0].map(Piece::segment).unwrap_or_default();
        let inline = match gathers {
            true => None,
            false => self.inline(pieces[0].map_or(&[], Piece::bytes)),
        };
        let flags = (flags & SendFlags::all()).bits() | gather;
        Ok((way, work, send_request(send, flags, first, inline)))
    }
}

impl Own<'_> {
    /// Refuses a send that falls under a rule of the endpoint's.
    fn refuse_revoked(&mut self, send: &TaggedSend) -> Result<(), PostError> {
        let open = self.pair_mut(send.pair).is_some();
        let covers = |rule: &HeldRule| rule.covers(send.pair.index, send.context, send.match_bits);
        if open {
            self.refuse_drained(Some(send.pair.index), send.context, send.match_bits, 0)?;
        }
        match open && self.rules().iter().any(covers) && !is_broken!(SendsRevoked) {
            true => Err(PostError::Revoked),
            false => Ok(()),
        }
    }
}

/// The ring entry of a send, but for its handle. It carries the bytes itself, if there are some, and otherwise names the buffer.
fn send_request(
    send: &TaggedSend,
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
        pair: send.pair.index,
        context: send.context,
        key,
        match_bits: send.match_bits,
        immediate: send.immediate,
        address,
        length,
        ..SendRequest::default()
    };
    inline.map_or(named, |bytes| named.with_inline(bytes))
}
