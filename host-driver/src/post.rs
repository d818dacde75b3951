//! The verbs that post: sends, receives, looks and cancels, one by one or as a list with one doorbell.
//!
//! ```text
//!  post        admit ► write entry ► doorbell
//!  post a list admit ► write entry ► admit ► write entry ► … ► doorbell     stops at the first that isn't admitted
//! ```

use crate::core::{Own, Ring, Way, segment};
use crate::endpoint::Endpoint;
use crate::error::{ListRefused, PostError, Refused};
use crate::pair::Pair;
use crate::query::Capabilities;
use crate::region::Buffer;
use crate::shared::readable::Piece;
use crate::shared::{Gather, Payload, SendBuffer, SharedBuffer};
use crate::table::{ListEntry, Request, Segments, Work};
use abi::event::NO_PAIR;
use abi::limits::EAGER_MAX;
use abi::request::{
    FLAG_ANY_SOURCE, FLAG_ERRORS_ONLY, FLAG_GATHER, FLAG_INLINE, FLAG_MULTI, FLAG_READY,
    INLINE_BYTES, ListRequest, Opcode, Segment, SendRequest,
};

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

/// Where a message may come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Any pair of the endpoint.
    Any,
    /// This pair.
    Pair(Pair),
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

/// A receive of a list: `ibv_recv_wr`.
#[derive(Debug)]
pub struct RecvWr {
    /// The application's number.
    pub wr_id: u64,
    /// Which message it matches.
    pub receive: TaggedReceive,
    /// Of a multi-receive, `min_free` of [`Endpoint::post_multi_recv`].
    pub multi: Option<u32>,
    /// Where the message goes to.
    pub buffer: Buffer,
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

    /// Whether the card knows a request of this opcode with these flags.
    fn supports(&self, opcode: Opcode, flags: u8) -> Result<(), PostError> {
        let needed = Capabilities::from_bits_retain(opcode.row().needs(flags));
        let has = self.device().capabilities().contains(needed);
        has.then_some(()).ok_or(PostError::Unsupported)
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
        let work = send_work(send, bytes.len() as u64, true, false);
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
        let unsignaled = flags.contains(SendFlags::UNSIGNALED);
        let work = send_work(send, length, false, unsignaled);
        let entries = if gathers { 2 } else { 1 };
        let way = own.admit_send(self.handle.link(), &work, entries)?;
        let first = pieces[0].map(segment).unwrap_or_default();
        let inline = match gathers {
            true => None,
            false => self.inline(pieces[0].map_or(&[], Piece::bytes)),
        };
        // Which unsignaled sends are quiet on the card is decided when they go there.
        let flags = (flags & SendFlags::READY).bits() | gather;
        Ok((way, work, send_request(send, flags, first, inline)))
    }

    /// Posts a receive into the buffer. It comes back with the completion.
    ///
    /// # Errors
    /// [`Refused`], with the buffer; see [`PostError`] for what to do.
    pub fn post_tagged_recv(
        &self,
        wr_id: u64,
        receive: &TaggedReceive,
        buffer: Buffer,
    ) -> Result<Request, Refused> {
        self.post_receive(wr_id, receive, None, buffer)
    }

    /// Posts a receive that takes message after message, each behind the one before in the buffer, until less than `min_free` bytes of it, or none,
    /// are left. (libfabric's `FI_MULTI_RECV`, Portals' locally managed offset.) Each message completes the request once: with
    /// the part of the buffer that it fills, and [`more`](crate::WorkCompletion::more) until the last, which brings what is left. So no message is
    /// truncated that isn't longer than `min_free`.
    ///
    /// A message after which the receive stays needs an entry of the completion queue for itself. If none is free when it
    /// matches, it is the last: keep the queue longer than the requests that are outstanding, and post again what is left.
    ///
    /// # Errors
    /// [`Refused`], with the buffer; see [`PostError`] for what to do.
    pub fn post_multi_recv(
        &self,
        wr_id: u64,
        receive: &TaggedReceive,
        buffer: Buffer,
        min_free: u32,
    ) -> Result<Request, Refused> {
        self.post_receive(wr_id, receive, Some(min_free), buffer)
    }

    /// Posts the receives of a list in order, and tells the card of all of them by one doorbell. (`ibv_post_srq_recv` of a chain.) As
    /// [`post_send_list`](Self::post_send_list) otherwise, on the list ring.
    ///
    /// # Errors
    /// [`ListRefused`], with the request that was refused and those behind it. Its [`PostError`] is that of the request:
    /// - [`ListRingFull`](PostError::ListRingFull), [`CompletionQueueFull`](PostError::CompletionQueueFull): there is no room behind those in front of it. Let the
    ///   card run or poll, then post the rest.
    /// - [`InvalidPair`](PostError::InvalidPair), [`WrongDomain`](PostError::WrongDomain): what the request names isn't this endpoint's.
    /// - [`Closed`](PostError::Closed), [`Transport`](PostError::Transport): as of any post.
    pub fn post_recv_list<L: IntoIterator<Item = RecvWr>>(
        &self,
        list: L,
        posted: &mut impl Extend<Request>,
    ) -> Result<(), ListRefused<RecvWr, L::IntoIter>> {
        let mut rest = list.into_iter();
        let mut count = 0;
        self.handle.lock().own().feed(self.handle.link());
        let refused = loop {
            let Some(wr) = rest.next() else {
                break None;
            };
            let mut locked = self.handle.lock();
            let mut own = locked.own();
            match self.enter_receive(&mut own, wr.wr_id, &wr.receive, wr.multi, wr.buffer) {
                Ok(request) => {
                    drop(locked);
                    posted.extend([request]);
                }
                Err(Refused { error, buffer }) => break Some((error, RecvWr { buffer, ..wr })),
            }
            count += 1;
        };
        self.handle.lock().own().feed(self.handle.link());
        refused_list(refused, count, rest)
    }

    fn post_receive(
        &self,
        wr_id: u64,
        receive: &TaggedReceive,
        multi: Option<u32>,
        buffer: Buffer,
    ) -> Result<Request, Refused> {
        let link = self.handle.link();
        let mut locked = self.handle.lock();
        let mut own = locked.own();
        own.feed(link);
        let entered = self.enter_receive(&mut own, wr_id, receive, multi, buffer)?;
        own.feed(link);
        Ok(entered)
    }

    /// Posts a receive without ringing.
    fn enter_receive(
        &self,
        own: &mut Own<'_>,
        wr_id: u64,
        receive: &TaggedReceive,
        multi: Option<u32>,
        buffer: Buffer,
    ) -> Result<Request, Refused> {
        if !buffer.is_of(self.handle.domain()) {
            let error = PostError::WrongDomain;
            return Err(Refused { error, buffer });
        }
        let (key, address, length) = buffer.local();
        let entry = ListRequest {
            opcode: Opcode::TaggedReceive.code(),
            flags: if multi.is_some() { FLAG_MULTI } else { 0 },
            min_free: multi.unwrap_or(0),
            key,
            address,
            length,
            ..ListRequest::default()
        };
        let work = Work::Receive { cancel: None };
        match self.admit_list(own, work, receive, entry) {
            Ok(entry) => Ok(own.post_list(wr_id, work, Some(buffer), entry)),
            Err(error) => Err(Refused { error, buffer }),
        }
    }

    /// Looks for a message that waits to be received, without taking it. The completion's status is
    /// `Success`, with what was found, or `NoMessage`.
    ///
    /// # Errors
    /// [`PostError`].
    pub fn probe(&self, wr_id: u64, receive: &TaggedReceive) -> Result<Request, PostError> {
        self.post_look(wr_id, receive, Opcode::Probe, Work::Probe)
    }

    /// Looks for a message that waits to be received, and takes it for the caller: nobody else finds it from then on. (MPI's `MPI_Mprobe`, libfabric's
    /// `FI_CLAIM`.) The completion's status is `Success`, with what was found and the [`Claimed`](crate::Claimed) message, or `NoMessage`. A claim whose
    /// completion is never polled holds its message until the pair is closed.
    ///
    /// # Errors
    /// [`PostError`].
    pub fn claim(&self, wr_id: u64, receive: &TaggedReceive) -> Result<Request, PostError> {
        self.post_look(wr_id, receive, Opcode::Claim, Work::Claim)
    }

    fn post_look(
        &self,
        wr_id: u64,
        receive: &TaggedReceive,
        opcode: Opcode,
        work: Work,
    ) -> Result<Request, PostError> {
        let request = ListRequest {
            opcode: opcode.code(),
            ..ListRequest::default()
        };
        let link = self.handle.link();
        let mut locked = self.handle.lock();
        let mut own = locked.own();
        own.feed(link);
        let entry = self.admit_list(&mut own, work, receive, request)?;
        let posted = own.post_list(wr_id, work, None, entry);
        own.feed(link);
        Ok(posted)
    }

    /// Cancels a receive that hasn't matched, or a send that waits for credit or for its turn. Either the
    /// request completes as `Cancelled`, once, and nothing else does; or it completes in some other way and the
    /// cancel itself completes as `TooLate`. Until the request has completed the card may use its buffer, which
    /// therefore comes back with that completion.
    ///
    /// # Errors
    /// [`PostError`]: `NothingToCancel` if the request has been polled for already.
    pub fn cancel(&self, wr_id: u64, target: Request) -> Result<Request, PostError> {
        let mut locked = self.handle.lock();
        let mut own = locked.own();
        let pair = own.sent_on(target);
        let opcode = own.cancelled_by(target);
        let opcode = opcode.ok_or(PostError::NothingToCancel)?;
        let work = Work::Cancel { target, opcode };
        let ring = work.posting().ring;
        let words = |request: Request| match ring {
            Ring::Send => SendRequest {
                opcode: opcode.code(),
                pair: pair.unwrap_or(NO_PAIR),
                request: request.wire(),
                target: target.wire(),
                ..SendRequest::default()
            }
            .to_words(),
            Ring::List => ListRequest {
                opcode: opcode.code(),
                request: request.wire(),
                target: target.wire(),
                ..ListRequest::default()
            }
            .to_words(),
        };
        let link = self.handle.link();
        own.admit(link, &work)?;
        let posted = own.post(wr_id, work, None, words);
        own.ring(link, ring);
        Ok(posted)
    }

    /// Completes the entry of a receive, a probe or a claim, and looks whether it can be posted or kept.
    fn admit_list(
        &self,
        own: &mut Own<'_>,
        work: Work,
        receive: &TaggedReceive,
        mut entry: ListRequest,
    ) -> Result<ListEntry, PostError> {
        own.admit_list(self.handle.link(), &work)?;
        entry.context = receive.context;
        entry.match_bits = receive.match_bits;
        entry.ignore_bits = receive.ignore_bits;
        let source = match receive.source {
            Source::Any => {
                entry.flags |= FLAG_ANY_SOURCE;
                None
            }
            Source::Pair(pair) if own.is_usable(pair) => {
                entry.pair = pair.index;
                Some(pair)
            }
            Source::Pair(_) => return Err(PostError::InvalidPair),
        };
        Ok(ListEntry {
            request: entry,
            source,
        })
    }
}

/// What is kept of a send of `length` bytes.
fn send_work(send: &TaggedSend, length: u64, inject: bool, unsignaled: bool) -> Work {
    Work::Send {
        pair: send.pair.index,
        serial: send.pair.serial,
        inject,
        unsignaled,
        order: 0,
        length,
        cancel: None,
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
        opcode: Opcode::TaggedSend.code(),
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

fn refused_list<W, I>(
    refused: Option<(PostError, W)>,
    posted: usize,
    rest: I,
) -> Result<(), ListRefused<W, I>> {
    refused.map_or(Ok(()), |(error, request)| {
        Err(ListRefused {
            posted,
            error,
            request,
            rest,
        })
    })
}
