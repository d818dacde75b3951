//! Receives: one message, or one after the other in the same buffer.

use super::{Operation, TaggedReceive, Work, refused_list};
use crate::core::Own;
use crate::endpoint::Endpoint;
use crate::error::{ListRefused, PostError, Refused};
use crate::pair::Pair;
use crate::region::Buffer;
use crate::table::Request;
use abi::request::{FLAG_MULTI, ListRequest, Opcode};

pub(super) const OPCODES: &[Opcode] = &[Opcode::TaggedReceive];

/// A receive that is outstanding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posted {
    /// The pair whose messages match, unless any does.
    pub(super) source: Option<Pair>,
}

impl Operation for Posted {
    fn opcode(&self) -> Opcode {
        Opcode::TaggedReceive
    }

    fn pair(&self) -> Option<Pair> {
        self.source
    }

    fn awaits_anyone(&self) -> bool {
        self.source.is_none()
    }
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
        let mut locked = self.handle.lock();
        locked.own().feed(self.handle.link());
        let interrupts = locked.own().interrupts_for_failure();
        drop(locked);
        self.tell_waiting(interrupts);
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
        let interrupts = own.interrupts_for_failure();
        drop(locked);
        self.tell_waiting(interrupts);
        Ok(entered)
    }

    /// A receive may have been posted that waits for a peer that has failed: another thread, which waits already, is to be told.
    fn tell_waiting(&self, interrupts: bool) {
        if interrupts {
            self.handle.link().own_event();
        }
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
        let entry = ListRequest {
            flags: if multi.is_some() { FLAG_MULTI } else { 0 },
            min_free: multi.unwrap_or(0),
            ..ListRequest::default()
        };
        let source = receive.source.pair();
        let work = Work::Receive(Posted { source });
        match self.admit_matching(own, &work, receive, entry) {
            Ok(entry) => Ok(own.post(wr_id, work, Some(buffer), entry)),
            Err(error) => Err(Refused { error, buffer }),
        }
    }
}
