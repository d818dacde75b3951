//! Endpoints: opened on rings in host memory, closed with everything accounted for, and the verbs that post.
//!
//! ```text
//!  builder ── OpenEndpoint ──► open ── CloseEndpoint ──► closed: what was outstanding is `Flushed`
//!                               │ ▲
//!                 open_pair ────┘ └──── close_pair
//! ```

use crate::claimed::Claim;
use crate::completion::CompletionQueue;
use crate::core::{Core, Ring};
use crate::desk::{Concern, Desk, Release};
use crate::device::Device;
use crate::domain::{Domain, ProtectionDomain};
use crate::error::{CommandError, PostError, Refused};
use crate::event::AsyncEvent;
use crate::link::Link;
use crate::memory::HostMemory;
use crate::pair::{Pair, PairAddress};
use crate::region::{Access, Buffer, MemoryRegion};
use crate::ring::{EntryQueue, RequestRing, ring_log2};
use crate::sync::{CardGuard, CardMutex};
use crate::table::{ListEntry, Request, Work};
use crate::transport::TransportError;
use abi::limits::{EAGER_MAX, MAX_CREDITS};
use abi::mailbox::{
    CloseEndpoint, Command, ConnectPair, EndpointId, Nothing, OpenEndpoint, OpenPair, PairId,
    PairStatus, Words, id_index,
};
use abi::register::{EVENTS_LOST, STICKY, endpoint_page};
use abi::request::{FLAG_ANY_SOURCE, FLAG_MULTI, FLAG_READY, ListRequest, Opcode, SendRequest};
use std::sync::{Arc, Mutex, PoisonError, Weak};

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

/// What the handles of an endpoint share.
pub(crate) struct Shared {
    core: CardMutex<Core>,
    domain: Arc<Domain>,
    pub(crate) id: EndpointId,
    /// Claimed messages that were dropped by threads that can't talk to the card.
    dropped: Mutex<Vec<Claim>>,
}

impl Shared {
    pub(crate) fn link(&self) -> &Link {
        &self.domain.device.card.link
    }

    /// The heart, with what was dropped elsewhere.
    pub(crate) fn core(&self) -> CardGuard<'_, Core, Link> {
        let mut core = self.core.lock(self.link());
        self.elsewhere()
            .drain(..)
            .for_each(|claim| core.keep_dropped(claim));
        core
    }

    fn elsewhere(&self) -> std::sync::MutexGuard<'_, Vec<Claim>> {
        self.dropped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Discards a claimed message that the program has dropped: now, or in the next call of a thread that can.
    pub(crate) fn drop_claim(&self, claim: Claim) {
        self.elsewhere().push(claim);
        if self.link().may_call() {
            self.core().feed(self.link());
        }
    }

    pub(crate) fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    pub(crate) fn same_device(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.domain.device.card, &other.domain.device.card)
    }

    fn place(&self) -> u8 {
        id_index(self.id.endpoint) as u8
    }

    /// Closes the endpoint. May be called until it succeeds.
    fn close(self: &Arc<Self>) -> Result<(), CommandError> {
        if self.core().is_closed() {
            return Ok(());
        }
        match self.domain.device.desk() {
            Ok(mut desk) => self.close_at(&mut desk),
            Err(_) if self.link().is_lost() => {
                self.closing_ended(true, true);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Closes the endpoint at the desk. From before the command on, until it is known to have failed, nothing is rung.
    pub(crate) fn close_at(self: &Arc<Self>, desk: &mut Desk<'_>) -> Result<(), CommandError> {
        {
            let mut core = self.core();
            if core.is_closed() {
                return Ok(());
            }
            core.set_closing(true);
        }
        let endpoint = self.id.endpoint;
        let closed = desk.call::<_, Nothing>(Command::CloseEndpoint, &CloseEndpoint { endpoint });
        match closed {
            Ok(Nothing {}) => self.closing_ended(true, true),
            // Somebody else's close has taken effect.
            Err(error) if error.is_not_found() => self.closing_ended(true, true),
            Err(_) if self.link().is_lost() => self.closing_ended(true, true),
            Err(error) => {
                let refused = matches!(error, CommandError::Refused { .. });
                if desk.is_late() {
                    desk.concerns(Concern::EndpointClosed(Arc::downgrade(self)));
                } else {
                    self.closing_ended(false, refused);
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// A close has ended: it has closed the endpoint, or not; and the card has heard of it, or not.
    pub(crate) fn closing_ended(&self, done: bool, heard: bool) {
        let mut core = self.core();
        match done {
            true => core.set_closed(),
            false => core.set_closing(heard),
        }
        drop(core);
        // Who waits for a completion finds it flushed.
        self.link().notify();
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let core = self.core.get_mut();
        if !core.is_closed() {
            let memory = core.memory();
            self.domain.device.card.release(Release::Object {
                close: Command::CloseEndpoint,
                id: self.id.endpoint,
                memory,
            });
        }
    }
}

/// Sizes of an endpoint to be opened. All ring sizes are powers of two from 4 to 16384.
pub struct EndpointBuilder {
    pd: ProtectionDomain,
    send: usize,
    list: usize,
    completions: usize,
    events: usize,
    injects: usize,
}

impl EndpointBuilder {
    pub(crate) fn new(pd: &ProtectionDomain) -> Self {
        Self {
            pd: pd.clone(),
            send: 64,
            list: 64,
            completions: 256,
            events: 64,
            injects: 16,
        }
    }

    /// Entries of the send ring; 64 unless said otherwise.
    #[must_use]
    pub fn send_ring(mut self, entries: usize) -> Self {
        self.send = entries;
        self
    }

    /// Entries of the ring of receives, cancels, probes and claims; 64 unless said otherwise.
    #[must_use]
    pub fn list_ring(mut self, entries: usize) -> Self {
        self.list = entries;
        self
    }

    /// Entries of the completion queue, and so the requests that may be outstanding; 256 unless said otherwise.
    #[must_use]
    pub fn completion_queue(mut self, entries: usize) -> Self {
        self.completions = entries;
        self
    }

    /// Entries of the event queue; 64 unless said otherwise.
    #[must_use]
    pub fn event_queue(mut self, entries: usize) -> Self {
        self.events = entries;
        self
    }

    /// Injected sends that may be in flight; 16 unless said otherwise. 0 does without their region.
    #[must_use]
    pub fn inject_buffers(mut self, buffers: usize) -> Self {
        self.injects = buffers;
        self
    }

    /// Opens the endpoint.
    ///
    /// # Errors
    /// [`CommandError`]: `Argument` if a size is not one that a ring can have, `NoResource` if the
    /// card has no more endpoints.
    pub fn open(self) -> Result<Endpoint, CommandError> {
        let log2 = |entries| {
            ring_log2(entries).ok_or(CommandError::Argument(
                "a ring has a power of two of entries, from 4 to 16384",
            ))
        };
        let device = self.pd.device();
        let link = &device.card.link;
        let send = RequestRing::new(link, log2(self.send)?)?;
        let list = RequestRing::new(link, log2(self.list)?)?;
        let completions = EntryQueue::new(link, log2(self.completions)?)?;
        let events = EntryQueue::new(link, log2(self.events)?)?;
        let mut bounce = Vec::with_capacity(self.injects);
        if self.injects > 0 {
            // The buffers keep the region.
            let (_, mut whole) =
                MemoryRegion::register(&self.pd, self.injects * EAGER_MAX, Access::Read)?;
            bounce.extend((0..self.injects).map(|_| whole.split_to(EAGER_MAX)));
        }
        let argument = OpenEndpoint {
            domain: self.pd.inner.id.domain,
            send_log2: u32::from(send.log2()),
            send_base: send.address(),
            list_log2: u32::from(list.log2()),
            list_base: list.address(),
            completion_log2: u32::from(completions.log2()),
            completion_base: completions.address(),
            event_log2: u32::from(events.log2()),
            event_base: events.address(),
        };
        let rings = [
            send.memory(),
            list.memory(),
            completions.memory(),
            events.memory(),
        ];
        let close = Command::CloseEndpoint;
        let mut desk = device.desk()?;
        let id: EndpointId = desk.open(Command::OpenEndpoint, &argument, close, &rings)?;
        drop(desk);
        let endpoint =
            u8::try_from(id_index(id.endpoint)).map_err(|_| CommandError::Malformed {
                command: Command::OpenEndpoint,
                answer: id.endpoint,
            })?;
        let pairs = device.identity().pairs as usize;
        let mut core = Core::new(send, list, completions, events, pairs, bounce);
        core.set_endpoint(endpoint);
        let claims = pairs * usize::from(MAX_CREDITS);
        Ok(Endpoint {
            shared: Arc::new_cyclic(|shared| {
                core.set_shared(Weak::clone(shared));
                Shared {
                    core: CardMutex::new(core),
                    domain: self.pd.inner,
                    id,
                    // Posting and polling don't allocate, whoever drops what.
                    dropped: Mutex::new(Vec::with_capacity(claims)),
                }
            }),
        })
    }
}

/// An open endpoint: one process's set of queues on a card.
///
/// Its verbs may be called from any thread. Dropping it closes it; what is outstanding then can still be
/// polled from a [`CompletionQueue`] that was taken before.
pub struct Endpoint {
    pub(crate) shared: Arc<Shared>,
}

impl Endpoint {
    /// The endpoint's number on its card.
    pub fn index(&self) -> u8 {
        self.shared.place()
    }

    /// The card.
    pub fn device(&self) -> &Device {
        &self.shared.domain.device
    }

    /// The endpoint's completion queue.
    pub fn completion_queue(&self) -> CompletionQueue {
        CompletionQueue {
            shared: Arc::clone(&self.shared),
        }
    }

    /// Opens a pair on which the peer may have `credits` messages here that wait to be received.
    /// Connect it to what the peer's `open_pair` returned.
    ///
    /// # Errors
    /// [`CommandError::Refused`] with `NoEnvelopes` if the card can't keep so many for the peer, whose
    /// detail is how many it can, and with `NoResource` if it has no more pairs.
    pub fn open_pair(&self, credits: u16) -> Result<(Pair, PairAddress), CommandError> {
        let device = self.device();
        let size = usize::from(credits.max(1)) * EAGER_MAX;
        let slots = Arc::new(HostMemory::new(&device.card.link, size)?);
        let argument = OpenPair {
            endpoint: self.shared.id.endpoint,
            credits: u32::from(credits),
            slots: slots.address(),
        };
        let (pair, id) = self.open_pair_at(Command::OpenPair, &argument, slots)?;
        Ok((pair, PairAddress::new(id, device.identity().mac)))
    }

    /// Has the card open a pair over these slots, by one of the commands that do.
    pub(crate) fn open_pair_at<A: Words>(
        &self,
        command: Command,
        argument: &A,
        slots: Arc<HostMemory>,
    ) -> Result<(Pair, PairId), CommandError> {
        let mut desk = self.device().desk()?;
        if !self.shared.core().is_open() {
            return Err(CommandError::NotFound);
        }
        let id: PairId = desk.open(command, argument, Command::ClosePair, &[&slots])?;
        let opened = self.shared.core().add_pair(id.pair, slots);
        let answer = id.pair;
        let pair = opened.ok_or(CommandError::Malformed { command, answer })?;
        Ok((pair, id))
    }

    /// Connects a pair to the peer's.
    ///
    /// # Errors
    /// [`CommandError`]: `NotFound` if the pair isn't open, `Busy` if it is connected already.
    pub fn connect_pair(&self, pair: Pair, peer: &PairAddress) -> Result<(), CommandError> {
        let mut desk = self.device().desk()?;
        let argument = ConnectPair {
            pair: self.pair_id(pair)?,
            remote_pair: u32::from(id_index(peer.id.pair)),
            remote_endpoint: u32::from(id_index(peer.id.endpoint)),
            remote_epoch: peer.id.epoch,
            remote_nonce: peer.id.nonce,
            remote_credits: peer.id.credits,
            remote_mac: peer.mac,
        };
        let Nothing {} = desk.call(Command::ConnectPair, &argument)?;
        Ok(())
    }

    /// Reads the state of a pair.
    ///
    /// # Errors
    /// [`CommandError`]: `NotFound` if the pair isn't open.
    pub fn query_pair(&self, pair: Pair) -> Result<PairStatus, CommandError> {
        let mut desk = self.device().desk()?;
        let pair = self.pair_id(pair)?;
        desk.call(Command::QueryPair, &abi::mailbox::Pair { pair })
    }

    /// Closes a pair: the sends on it and the receives that name it complete as `Flushed`. From the call on, nothing can be posted on it. It may be
    /// called until it succeeds.
    ///
    /// # Errors
    /// [`CommandError`]: `NotFound` if the pair isn't open, or has been closed by a call before that was answered too late.
    pub fn close_pair(&self, pair: Pair) -> Result<(), CommandError> {
        let mut desk = self.device().desk()?;
        let id = self.shared.core().begin_closing_pair(pair);
        let id = id.ok_or(CommandError::NotFound)?;
        let closed = desk.call::<_, Nothing>(Command::ClosePair, &abi::mailbox::Pair { pair: id });
        let (done, heard) = match &closed {
            Ok(Nothing {}) => (true, true),
            Err(error) => (
                error.is_not_found(),
                matches!(error, CommandError::Refused { .. }),
            ),
        };
        if desk.is_late() {
            desk.concerns(Concern::PairClosed(Arc::downgrade(&self.shared), pair));
        } else {
            self.shared.core().pair_closing_ended(pair, done, heard);
        }
        closed.map(|Nothing {}| ())
    }

    /// The card's name of a pair. The caller has the desk, so that the pair isn't closed before its command is given.
    fn pair_id(&self, pair: Pair) -> Result<u32, CommandError> {
        let id = self.shared.core().pair_id(pair);
        id.ok_or(CommandError::NotFound)
    }

    /// Sends the buffer. It comes back with the completion, when the message is safe at its destination.
    ///
    /// # Errors
    /// [`Refused`], with the buffer; see [`PostError`] for what to do.
    pub fn post_tagged_send(
        &self,
        wr_id: u64,
        send: &TaggedSend,
        buffer: Buffer,
    ) -> Result<Request, Refused> {
        self.post_buffer(wr_id, send, 0, buffer)
    }

    /// Sends the buffer to a receive that the program knows to be posted. (MPI's ready mode.) If there is none when the message arrives, it isn't
    /// delivered and the send completes with [`NotReady`](crate::WcStatus::NotReady); the pair goes on.
    ///
    /// A receive counts as posted from the return of the call that posts it. While the peer's endpoint has more receives posted than its card
    /// holds, a message that finds none there may belong to one of the rest: then it waits, like any other.
    ///
    /// # Errors
    /// [`Refused`], with the buffer; see [`PostError`] for what to do.
    pub fn post_ready_send(
        &self,
        wr_id: u64,
        send: &TaggedSend,
        buffer: Buffer,
    ) -> Result<Request, Refused> {
        self.post_buffer(wr_id, send, FLAG_READY, buffer)
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
        // Completions that nobody polls for hold the buffers: look before giving up.
        let take = || self.shared.core().take_bounce();
        let buffer = take().or_else(|| {
            self.shared.core().is_ready(self.shared.link());
            take()
        });
        let mut buffer = buffer.ok_or(PostError::InjectBusy)?;
        buffer[..bytes.len()].copy_from_slice(bytes);
        let (key, address, _) = buffer.local();
        match self.post_send(
            wr_id,
            send,
            (true, 0),
            buffer,
            (key, address, bytes.len() as u64),
        ) {
            Ok(_) => Ok(()),
            Err((error, buffer)) => {
                if let Some(buffer) = buffer {
                    self.shared.core().give_bounce(buffer);
                }
                Err(error)
            }
        }
    }

    fn post_buffer(
        &self,
        wr_id: u64,
        send: &TaggedSend,
        flags: u8,
        buffer: Buffer,
    ) -> Result<Request, Refused> {
        if !buffer.is_of(&self.shared.domain) {
            return Err(wrong_domain(buffer));
        }
        let local = buffer.local();
        self.post_send(wr_id, send, (false, flags), buffer, local)
            .map_err(refused)
    }

    fn post_send(
        &self,
        wr_id: u64,
        send: &TaggedSend,
        (inject, flags): (bool, u8),
        buffer: Buffer,
        (key, address, length): (u32, u64, u64),
    ) -> Result<Request, crate::core::NotPosted> {
        let work = Work::Send {
            pair: send.pair.index,
            serial: send.pair.serial,
            inject,
            cancel: None,
        };
        let words = |request: Request| {
            SendRequest {
                opcode: Opcode::TaggedSend.code(),
                flags,
                pair: send.pair.index,
                context: send.context,
                request: request.wire(),
                key,
                match_bits: send.match_bits,
                immediate: send.immediate,
                address,
                length,
                ..SendRequest::default()
            }
            .to_words()
        };
        let link = self.shared.link();
        self.shared
            .core()
            .post(link, Ring::Send, wr_id, work, Some(buffer), words)
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
        self.post_receive(wr_id, receive, buffer, 0, 0)
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
        self.post_receive(wr_id, receive, buffer, FLAG_MULTI, min_free)
    }

    fn post_receive(
        &self,
        wr_id: u64,
        receive: &TaggedReceive,
        buffer: Buffer,
        flags: u8,
        min_free: u32,
    ) -> Result<Request, Refused> {
        if !buffer.is_of(&self.shared.domain) {
            return Err(wrong_domain(buffer));
        }
        let (key, address, length) = buffer.local();
        self.post_list(
            wr_id,
            Work::Receive { cancel: None },
            receive,
            Some(buffer),
            ListRequest {
                opcode: Opcode::TaggedReceive.code(),
                flags,
                min_free,
                key,
                address,
                length,
                ..ListRequest::default()
            },
        )
        .map_err(refused)
    }

    /// Looks for a message that waits to be received, without taking it. The completion's status is
    /// `Success`, with what was found, or `NoMessage`.
    ///
    /// # Errors
    /// [`PostError`].
    pub fn probe(&self, wr_id: u64, receive: &TaggedReceive) -> Result<Request, PostError> {
        let request = ListRequest {
            opcode: Opcode::Probe.code(),
            ..ListRequest::default()
        };
        self.post_list(wr_id, Work::Probe, receive, None, request)
            .map_err(|(error, _)| error)
    }

    /// Looks for a message that waits to be received, and takes it for the caller: nobody else finds it from then on. (MPI's `MPI_Mprobe`, libfabric's
    /// `FI_CLAIM`.) The completion's status is `Success`, with what was found and the [`Claimed`](crate::Claimed) message, or `NoMessage`. A claim whose
    /// completion is never polled holds its message until the pair is closed.
    ///
    /// # Errors
    /// [`PostError`].
    pub fn claim(&self, wr_id: u64, receive: &TaggedReceive) -> Result<Request, PostError> {
        let request = ListRequest {
            opcode: Opcode::Claim.code(),
            ..ListRequest::default()
        };
        self.post_list(wr_id, Work::Claim, receive, None, request)
            .map_err(|(error, _)| error)
    }

    /// Cancels a receive that hasn't matched, or a send that waits for credit or for its turn. Either the
    /// request completes as `Cancelled`, once, and nothing else does; or it completes in some other way and the
    /// cancel itself completes as `TooLate`. Until the request has completed the card may use its buffer, which
    /// therefore comes back with that completion.
    ///
    /// # Errors
    /// [`PostError`]: `NothingToCancel` if the request has been polled for already.
    pub fn cancel(&self, wr_id: u64, target: Request) -> Result<Request, PostError> {
        let mut core = self.shared.core();
        let sent_on = core.sent_on(target);
        let ring = match sent_on {
            Some(_) => Ring::Send,
            None => Ring::List,
        };
        let words = |request: Request| match sent_on {
            Some(pair) => SendRequest {
                opcode: Opcode::CancelSend.code(),
                pair,
                request: request.wire(),
                target: target.wire(),
                ..SendRequest::default()
            }
            .to_words(),
            None => ListRequest {
                opcode: Opcode::Cancel.code(),
                request: request.wire(),
                target: target.wire(),
                ..ListRequest::default()
            }
            .to_words(),
        };
        let work = Work::Cancel { target };
        core.post(self.shared.link(), ring, wr_id, work, None, words)
            .map_err(|(error, _)| error)
    }

    fn post_list(
        &self,
        wr_id: u64,
        work: Work,
        receive: &TaggedReceive,
        buffer: Option<Buffer>,
        mut entry: ListRequest,
    ) -> Result<Request, crate::core::NotPosted> {
        let mut core = self.shared.core();
        entry.context = receive.context;
        entry.match_bits = receive.match_bits;
        entry.ignore_bits = receive.ignore_bits;
        let source = match receive.source {
            Source::Any => {
                entry.flags |= FLAG_ANY_SOURCE;
                None
            }
            Source::Pair(pair) if core.is_usable(pair) => {
                entry.pair = pair.index;
                Some(pair)
            }
            Source::Pair(_) => return Err((PostError::InvalidPair, buffer)),
        };
        let entry = ListEntry {
            request: entry,
            source,
        };
        core.post_list(self.shared.link(), wr_id, work, buffer, entry)
    }

    /// Takes the next event, if there is one.
    ///
    /// # Errors
    /// [`TransportError`].
    pub fn poll_event(&self) -> Result<Option<AsyncEvent>, TransportError> {
        self.shared.core().poll_event(self.shared.link())
    }

    /// The causes of events since the last clearing, one bit each, whether or not the event queue had room.
    ///
    /// # Errors
    /// [`CommandError`]: `NotFound` if the endpoint is closed.
    pub fn sticky_causes(&self) -> Result<u32, CommandError> {
        self.register(|link, page| link.read(page + STICKY))
    }

    /// Clears causes.
    ///
    /// # Errors
    /// [`CommandError`]: `NotFound` if the endpoint is closed.
    pub fn clear_causes(&self, causes: u32) -> Result<(), CommandError> {
        self.register(|link, page| link.write(page + STICKY, causes))
    }

    /// Events that found the event queue full.
    ///
    /// # Errors
    /// [`CommandError`]: `NotFound` if the endpoint is closed.
    pub fn events_lost(&self) -> Result<u32, CommandError> {
        self.register(|link, page| link.read(page + EVENTS_LOST))
    }

    /// Accesses a register of the endpoint's page, while the page is its own.
    fn register<T>(
        &self,
        access: impl FnOnce(&Link, u32) -> Result<T, TransportError>,
    ) -> Result<T, CommandError> {
        let core = self.shared.core();
        if !core.is_open() {
            return Err(CommandError::NotFound);
        }
        Ok(access(
            self.shared.link(),
            endpoint_page(self.shared.place()),
        )?)
    }

    /// Closes the endpoint and its pairs. What is outstanding completes as `Flushed` and is polled as
    /// usual. From the call on, nothing can be posted. Closing a closed endpoint does nothing; nor does closing one of a card that is gone, which has
    /// flushed everything.
    ///
    /// # Errors
    /// [`CommandError`]. The endpoint isn't closed then, and buffers in flight stay there. Call again: as soon as the card is known to be done with the endpoint,
    /// by a late answer or a new one, they come back.
    pub fn close(&self) -> Result<(), CommandError> {
        self.shared.close()
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        // The card keeps the rings until it has closed the endpoint, whoever has it closed in the end.
        if !self.shared.link().may_call() || self.shared.close().is_err() {
            let shared = Arc::downgrade(&self.shared);
            let card = &self.shared.domain.device.card;
            card.release(Release::Endpoint(shared));
        }
    }
}

/// A post with a buffer that was refused.
fn refused((error, buffer): crate::core::NotPosted) -> Refused {
    // What was posted with a buffer is refused with it.
    let buffer = buffer.unwrap_or(Buffer::empty());
    Refused { error, buffer }
}

fn wrong_domain(buffer: Buffer) -> Refused {
    Refused {
        error: PostError::WrongDomain,
        buffer,
    }
}
