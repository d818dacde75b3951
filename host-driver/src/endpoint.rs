//! Endpoints: opened on rings in host memory, closed with everything accounted for, and the verbs that post.
//!
//! ```text
//!  builder ── OpenEndpoint ──► open ── CloseEndpoint ──► closed: what was outstanding is `Flushed`
//!                               │ ▲
//!                 open_pair ────┘ └──── close_pair
//! ```

use crate::completion::CompletionQueue;
use crate::core::{Core, Ring};
use crate::device::{Device, lock};
use crate::domain::{Domain, ProtectionDomain};
use crate::error::{CommandError, PostError, Refused};
use crate::event::AsyncEvent;
use crate::memory::HostMemory;
use crate::pair::{Pair, PairAddress};
use crate::region::{Access, Buffer, MemoryRegion};
use crate::ring::{EntryQueue, RequestRing, ring_log2};
use crate::table::{ListEntry, Request, Work};
use crate::transport::{Transport, TransportError};
use abi::limits::EAGER_MAX;
use abi::mailbox::{
    CloseEndpoint, Command, ConnectPair, EndpointId, Nothing, OpenEndpoint, OpenPair, PairId,
    PairStatus, id_index,
};
use abi::register::{EVENTS_LOST, STICKY, endpoint_page};
use abi::request::{FLAG_ANY_SOURCE, FLAG_MULTI, FLAG_READY, ListRequest, Opcode, SendRequest};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

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
    core: Mutex<Core>,
    domain: Arc<Domain>,
    id: EndpointId,
}

impl Shared {
    pub(crate) fn transport(&self) -> &dyn Transport {
        &*self.domain.device.inner.transport
    }

    pub(crate) fn core(&self) -> MutexGuard<'_, Core> {
        lock(self.transport(), &self.core)
    }

    pub(crate) fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    pub(crate) fn same_device(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.domain.device.inner, &other.domain.device.inner)
    }

    fn register(&self, offset: u32) -> u32 {
        endpoint_page(id_index(self.id.endpoint) as u8) + offset
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
        let transport = &device.inner.transport;
        let send = RequestRing::new(transport, log2(self.send)?)?;
        let list = RequestRing::new(transport, log2(self.list)?)?;
        let completions = EntryQueue::new(transport, log2(self.completions)?)?;
        let events = EntryQueue::new(transport, log2(self.events)?)?;
        let mut bounce = Vec::with_capacity(self.injects);
        if self.injects > 0 {
            // The buffers keep the region.
            let (_, mut whole) =
                MemoryRegion::register(&self.pd, self.injects * EAGER_MAX, Access::Read)?;
            bounce.extend((0..self.injects).map(|_| whole.split_to(EAGER_MAX)));
        }
        let id: EndpointId = device.command(
            Command::OpenEndpoint,
            &OpenEndpoint {
                domain: self.pd.inner.id.domain,
                send_log2: u32::from(send.log2()),
                send_base: send.address(),
                list_log2: u32::from(list.log2()),
                list_base: list.address(),
                completion_log2: u32::from(completions.log2()),
                completion_base: completions.address(),
                event_log2: u32::from(events.log2()),
                event_base: events.address(),
            },
        )?;
        let endpoint =
            u8::try_from(id_index(id.endpoint)).map_err(|_| CommandError::Malformed {
                command: Command::OpenEndpoint,
                answer: id.endpoint,
            })?;
        let pairs = device.identity().pairs as usize;
        let mut core = Core::new(send, list, completions, events, pairs, bounce);
        core.set_endpoint(endpoint);
        Ok(Endpoint {
            shared: Arc::new_cyclic(|shared| {
                core.set_shared(Weak::clone(shared));
                Shared {
                    core: Mutex::new(core),
                    domain: self.pd.inner,
                    id,
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
    shared: Arc<Shared>,
}

impl Endpoint {
    /// The endpoint's number on its card.
    pub fn index(&self) -> u8 {
        id_index(self.shared.id.endpoint) as u8
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
        let slots = HostMemory::new(&device.inner.transport, size)?;
        let id: PairId = device.command(
            Command::OpenPair,
            &OpenPair {
                endpoint: self.shared.id.endpoint,
                credits: u32::from(credits),
                slots: slots.address(),
            },
        )?;
        let opened = self.shared.core().add_pair(id.pair, slots);
        let pair = opened.ok_or(CommandError::Malformed {
            command: Command::OpenPair,
            answer: id.pair,
        })?;
        // The peer's card knows places, not ids.
        let id = PairId {
            pair: pair.index.into(),
            endpoint: self.index().into(),
            ..id
        };
        let mac = device.identity().mac;
        Ok((pair, PairAddress { id, mac }))
    }

    /// Connects a pair to the peer's.
    ///
    /// # Errors
    /// [`CommandError`]: `NotFound` if the pair isn't open, `Busy` if it is connected already.
    pub fn connect(&self, pair: Pair, peer: &PairAddress) -> Result<(), CommandError> {
        let id = self.check_open(pair)?;
        let Nothing {} = self.device().command(
            Command::ConnectPair,
            &ConnectPair {
                pair: id,
                remote_pair: peer.id.pair,
                remote_endpoint: peer.id.endpoint,
                remote_epoch: peer.id.epoch,
                remote_nonce: peer.id.nonce,
                remote_credits: peer.id.credits,
                remote_mac: peer.mac,
            },
        )?;
        Ok(())
    }

    /// Reads the state of a pair.
    ///
    /// # Errors
    /// [`CommandError`]: `NotFound` if the pair isn't open.
    pub fn query_pair(&self, pair: Pair) -> Result<PairStatus, CommandError> {
        let id = self.check_open(pair)?;
        self.device()
            .command(Command::QueryPair, &abi::mailbox::Pair { pair: id })
    }

    /// Closes a pair: the sends on it and the receives that name it complete as `Flushed`.
    ///
    /// # Errors
    /// [`CommandError`]: `NotFound` if the pair isn't open.
    pub fn close_pair(&self, pair: Pair) -> Result<(), CommandError> {
        let id = self.check_open(pair)?;
        let Nothing {} = self
            .device()
            .command(Command::ClosePair, &abi::mailbox::Pair { pair: id })?;
        self.shared.core().remove_pair(pair);
        Ok(())
    }

    /// The id of a pair that is open.
    fn check_open(&self, pair: Pair) -> Result<u32, CommandError> {
        match self.shared.core().pair_mut(pair) {
            Some(open) => Ok(open.id),
            None => Err(CommandError::NotFound),
        }
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
            self.shared.core().is_ready(self.shared.transport());
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
            .map_err(|(error, buffer)| Refused { error, buffer })
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
                request: request.0,
                key,
                match_bits: send.match_bits,
                immediate: send.immediate,
                address,
                length,
                ..SendRequest::default()
            }
            .to_words()
        };
        let transport = self.shared.transport();
        self.shared
            .core()
            .post(transport, Ring::Send, wr_id, work, Some(buffer), words)
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
        .map_err(|(error, buffer)| Refused { error, buffer })
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
                request: request.0,
                target: target.0,
                ..SendRequest::default()
            }
            .to_words(),
            None => ListRequest {
                opcode: Opcode::Cancel.code(),
                request: request.0,
                target: target.0,
                ..ListRequest::default()
            }
            .to_words(),
        };
        let work = Work::Cancel { target };
        core.post(self.shared.transport(), ring, wr_id, work, None, words)
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
            Source::Pair(pair) if core.pair_mut(pair).is_some() => {
                entry.pair = pair.index;
                Some(pair)
            }
            Source::Pair(_) => return Err((PostError::InvalidPair, buffer)),
        };
        let entry = ListEntry {
            request: entry,
            source,
        };
        core.post_list(self.shared.transport(), wr_id, work, buffer, entry)
    }

    /// Takes the next event, if there is one.
    ///
    /// # Errors
    /// [`TransportError`].
    pub fn poll_event(&self) -> Result<Option<AsyncEvent>, TransportError> {
        self.shared.core().poll_event(self.shared.transport())
    }

    /// The causes of events since the last clearing, one bit each, whether or not the event queue had room.
    ///
    /// # Errors
    /// [`TransportError`].
    pub fn sticky_causes(&self) -> Result<u32, TransportError> {
        let register = self.shared.register(STICKY);
        self.shared.transport().read_register(register)
    }

    /// Clears causes.
    ///
    /// # Errors
    /// [`TransportError`].
    pub fn clear_causes(&self, causes: u32) -> Result<(), TransportError> {
        let register = self.shared.register(STICKY);
        self.shared.transport().write_register(register, causes)
    }

    /// Events that found the event queue full.
    ///
    /// # Errors
    /// [`TransportError`].
    pub fn events_lost(&self) -> Result<u32, TransportError> {
        let register = self.shared.register(EVENTS_LOST);
        self.shared.transport().read_register(register)
    }

    /// Closes the endpoint and its pairs. What is outstanding completes as `Flushed` and is polled as
    /// usual. Closing a closed endpoint does nothing.
    ///
    /// # Errors
    /// [`CommandError`]; the endpoint is then still open, and buffers in flight stay there until it
    /// is gone.
    pub fn close(&self) -> Result<(), CommandError> {
        if self.shared.core().is_closed() {
            return Ok(());
        }
        let Nothing {} = self.device().command(
            Command::CloseEndpoint,
            &CloseEndpoint {
                endpoint: self.shared.id.endpoint,
            },
        )?;
        self.shared.core().set_closed();
        Ok(())
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        // If the firmware doesn't answer, the rings are unmapped when the last handle goes, which keeps
        // the card out of memory that is freed then.
        let _ = self.close();
    }
}

fn wrong_domain(buffer: Buffer) -> Refused {
    Refused {
        error: PostError::WrongDomain,
        buffer: Some(buffer),
    }
}
