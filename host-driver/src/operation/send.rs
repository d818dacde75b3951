//! Sends of messages.

use super::outgoing::header::{Fields, Header};
use super::outgoing::{Outgoing, Posted as Outgone};
use super::{Operation, SendFlags, Work};
use crate::completion::WorkCompletion;
use crate::core::Own;
use crate::endpoint::Endpoint;
use crate::error::{PostError, Refused};
use crate::pair::Pair;
use crate::rules::HeldRule;
use crate::shared::{Gather, SendBuffer, SharedBuffer};
use crate::table::Request;
use abi::completion::Completion;
use abi::limits::EAGER_MAX;
use abi::request::{Opcode, SendRequest};
use abi::status::Status;

/// `Segments` is the second entry of a gather.
pub(super) const OPCODES: &[Opcode] = &[Opcode::TaggedSend, Opcode::Segments];

/// A send that is outstanding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posted(Outgone);

impl Operation for Posted {
    fn opcode(&self) -> Opcode {
        Opcode::TaggedSend
    }

    fn pair(&self) -> Option<Pair> {
        Some(self.0.pair)
    }

    fn is_silent(&self, status: Status) -> bool {
        self.0.is_silent(status)
    }

    fn complete(&self, own: &mut Own<'_>, _: &Completion, told: &mut WorkCompletion) {
        self.0.complete(own, told);
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

impl<B: SendBuffer> Outgoing<B> for TaggedSend {}

impl Header for TaggedSend {
    fn fields(&self) -> Fields {
        Fields {
            opcode: Opcode::TaggedSend,
            pair: self.pair,
            // A longer one is refused by the card, which knows what it takes.
            most: EAGER_MAX as u64,
            entry: SendRequest {
                pair: self.pair.index,
                context: self.context,
                match_bits: self.match_bits,
                immediate: self.immediate,
                ..SendRequest::default()
            },
            is_message: true,
            may_be_silent: true,
            work: |posted| Work::Send(Posted(posted)),
        }
    }
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
        self.post_outgoing(wr_id, send, SendFlags::empty(), buffer)
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
        self.post_outgoing(wr_id, send, SendFlags::READY, buffer)
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
        self.post_outgoing(wr_id, send, SendFlags::UNSIGNALED, buffer)
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
        let posted = self.post_outgoing(wr_id, send, SendFlags::empty(), gather);
        posted.map_err(|refused| refused.error)
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
        self.post_copy(wr_id, send, bytes)
    }
}

impl Own<'_> {
    /// Refuses a message that falls under a rule of the endpoint's.
    pub(super) fn refuse_revoked(
        &mut self,
        pair: Pair,
        context: u16,
        match_bits: u64,
    ) -> Result<(), PostError> {
        let open = self.pair_mut(pair).is_some();
        let covers = |rule: &HeldRule| rule.covers(pair.index, context, match_bits);
        if open {
            self.refuse_drained(Some(pair.index), context, match_bits, 0)?;
        }
        match open && self.rules().iter().any(covers) && !is_broken!(SendsRevoked) {
            true => Err(PostError::Revoked),
            false => Ok(()),
        }
    }
}
