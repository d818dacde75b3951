//! Endpoints: opened on rings in host memory, closed with everything accounted for, and their pairs and events. The verbs that post are in [`crate::post`].
//!
//! ```text
//!  builder ── OpenEndpoint ──► open ── CloseEndpoint ──► closed: what was outstanding is `Flushed`
//!                               │ ▲
//!                 open_pair ────┘ └──── close_pair
//! ```

use crate::claimed::Claim;
use crate::commands::{Commands, Concern, Release};
use crate::completion::CompletionQueue;
use crate::core::Core;
use crate::device::Device;
use crate::domain::{Domain, ProtectionDomain};
use crate::error::CommandError;
use crate::event::{AsyncEvent, Causes};
use crate::link::Link;
use crate::memory::HostMemory;
use crate::pair::{Pair, PairAddress};
use crate::query::PairStatus;
use crate::region::{Access, MemoryRegion};
use crate::ring::{EntryQueue, RequestRing, ring_log2};
use crate::shared::SharedBuffer;
use crate::sync::{CardGuard, CardMutex};
use crate::transport::{TransportError, Watch};
use abi::limits::{EAGER_MAX, MAX_CREDITS};
use abi::mailbox::{
    CloseEndpoint, Command, ConnectPair, EndpointId, NO_ENDPOINT, Nothing, OpenEndpoint, OpenPair,
    PairId, Words, id_index,
};
use abi::register::{EVENTS_LOST, STICKY, endpoint_page};
use std::sync::{Arc, Mutex, PoisonError, Weak};

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

    /// The queues, with what was dropped elsewhere.
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

    /// Drops what sends have read that have ended in silence: without the lock, because a region may end with it.
    pub(crate) fn free(&self, mut retired: Option<SharedBuffer>) {
        while retired.is_some() {
            retired = self.core().take_retired();
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
        match self.domain.device.commands() {
            Ok(mut commands) => self.close_at(&mut commands),
            Err(_) if self.link().is_lost() => {
                self.closing_ended(true, true);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Closes the endpoint by a command. From before the command on, until it is known to have failed, nothing is rung.
    pub(crate) fn close_at(
        self: &Arc<Self>,
        commands: &mut Commands<'_>,
    ) -> Result<(), CommandError> {
        {
            let mut core = self.core();
            if core.is_closed() {
                return Ok(());
            }
            core.set_closing(true);
        }
        let endpoint = self.id.endpoint;
        let closed =
            commands.call::<_, Nothing>(Command::CloseEndpoint, &CloseEndpoint { endpoint });
        match closed {
            Ok(Nothing {}) => self.closing_ended(true, true),
            // Somebody else's close has taken effect.
            Err(error) if error.is_not_found() => self.closing_ended(true, true),
            Err(_) if self.link().is_lost() => self.closing_ended(true, true),
            Err(_) if is_broken!(FreesAtTimeout) && commands.is_late() => {
                self.closing_ended(true, true);
            }
            Err(error) => {
                let refused = matches!(error, CommandError::Refused { .. });
                if commands.is_late() {
                    commands.concerns(Concern::EndpointClosed(Arc::downgrade(self)));
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
            true => core.set_closed(self.link()),
            false => core.set_closing(heard),
        }
        drop(core);
        // Who waits for a completion finds it flushed.
        self.link().closing_ended();
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let core = self.core.get_mut();
        if !core.is_closed() {
            let memory = core.memory();
            core.set_closed(&self.domain.device.card.link);
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
            completion_owner: NO_ENDPOINT,
        };
        let rings = [
            send.memory(),
            list.memory(),
            completions.memory(),
            events.memory(),
        ];
        let close = Command::CloseEndpoint;
        let mut commands = device.commands()?;
        let id: EndpointId = commands.open(Command::OpenEndpoint, &argument, close, &rings)?;
        let place = u8::try_from(id_index(id.endpoint)).ok();
        let free = |place: &u8| !device.card.has_endpoint(*place);
        let Some(endpoint) = place.filter(free) else {
            return Err(commands.refuse(close, &id, rings.map(Arc::clone).to_vec()));
        };
        let pairs = device.identity().pairs as usize;
        let mut core = Core::new(send, list, completions, events, pairs, bounce);
        core.set_endpoint(endpoint);
        let claims = pairs * usize::from(MAX_CREDITS);
        let shared = Arc::new_cyclic(|shared| {
            core.set_shared(Weak::clone(shared));
            Shared {
                core: CardMutex::new(core),
                domain: Arc::clone(&self.pd.inner),
                id,
                // Posting and polling don't allocate, whoever drops what.
                dropped: Mutex::new(Vec::with_capacity(claims)),
            }
        });
        device
            .card
            .enter_endpoint(endpoint, Arc::downgrade(&shared));
        drop(commands);
        Ok(Endpoint { shared })
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
        let (mut commands, ()) = self.commands_while_open()?;
        let id: PairId = commands.open(command, argument, Command::ClosePair, &[&slots])?;
        let opened = self.shared.core().add_pair(id.pair, Arc::clone(&slots));
        match opened {
            Some(pair) => Ok((pair, id)),
            None => Err(commands.refuse(Command::ClosePair, &id, vec![slots])),
        }
    }

    /// Connects a pair to the peer's.
    ///
    /// # Errors
    /// [`CommandError`]: `NotFound` if the pair isn't open, `Busy` if it is connected already.
    pub fn connect_pair(&self, pair: Pair, peer: &PairAddress) -> Result<(), CommandError> {
        let (mut commands, id) = self.commands_for(|core| core.pair_id(pair))?;
        let argument = ConnectPair {
            pair: id,
            remote_pair: u32::from(id_index(peer.id.pair)),
            remote_endpoint: u32::from(id_index(peer.id.endpoint)),
            remote_epoch: peer.id.epoch,
            remote_nonce: peer.id.nonce,
            remote_credits: peer.id.credits,
            remote_mac: peer.mac,
        };
        let Nothing {} = commands.call(Command::ConnectPair, &argument)?;
        Ok(())
    }

    /// Reads the state of a pair.
    ///
    /// # Errors
    /// [`CommandError`]: `NotFound` if the pair isn't open.
    pub fn query_pair(&self, pair: Pair) -> Result<PairStatus, CommandError> {
        let (mut commands, pair) = self.commands_for(|core| core.pair_id(pair))?;
        let words = commands.call(Command::QueryPair, &abi::mailbox::Pair { pair })?;
        PairStatus::from_words(&words)
    }

    /// Closes a pair: the sends on it and the receives that name it complete as `Flushed`. From the call on, nothing can be posted on it. It may be
    /// called until it succeeds.
    ///
    /// # Errors
    /// [`CommandError`]: `NotFound` if the pair isn't open, or has been closed by a call before that was answered too late.
    pub fn close_pair(&self, pair: Pair) -> Result<(), CommandError> {
        let (mut commands, id) = self.commands_for(|core| core.begin_closing_pair(pair))?;
        let closed =
            commands.call::<_, Nothing>(Command::ClosePair, &abi::mailbox::Pair { pair: id });
        let (done, heard) = match &closed {
            Ok(Nothing {}) => (true, true),
            Err(error) => (
                error.is_not_found(),
                matches!(error, CommandError::Refused { .. }),
            ),
        };
        if commands.is_late() {
            commands.concerns(Concern::PairClosed(Arc::downgrade(&self.shared), pair));
        } else {
            self.shared.core().pair_closing_ended(pair, done, heard);
        }
        closed.map(|Nothing {}| ())
    }

    /// Takes the command channel, and only with it in hand finds what the command is to name: who would close that in between needs the channel too.
    ///
    /// # Errors
    /// [`CommandError::NotFound`] if there is no such thing; those of the channel.
    pub(crate) fn commands_for<T>(
        &self,
        find: impl FnOnce(&mut Core) -> Option<T>,
    ) -> Result<(Commands<'_>, T), CommandError> {
        let find = || find(&mut self.shared.core()).ok_or(CommandError::NotFound);
        if is_broken!(LooksBeforeItsTurn) {
            let found = find()?;
            return Ok((self.shared.domain.device.commands()?, found));
        }
        let commands = self.shared.domain.device.commands()?;
        Ok((commands, find()?))
    }

    /// The same for a command that names the endpoint itself.
    pub(crate) fn commands_while_open(&self) -> Result<(Commands<'_>, ()), CommandError> {
        self.commands_for(|core| core.is_open().then_some(()))
    }

    /// Takes the next event, if there is one.
    ///
    /// # Errors
    /// [`TransportError`].
    pub fn poll_event(&self) -> Result<Option<AsyncEvent>, TransportError> {
        self.shared.core().poll_event(self.shared.link())
    }

    /// Asks for an interrupt at the next event after those that the queue has, taken or not, and at the next completion in the same way. Poll once more
    /// before waiting, as after [`CompletionQueue::req_notify`].
    ///
    /// # Errors
    /// [`TransportError`].
    pub fn req_notify_event(&self) -> Result<Watch, TransportError> {
        self.shared.core().arm_for_event(self.shared.link())
    }

    /// The causes of events since the last clearing, whether or not the event queue had room.
    ///
    /// # Errors
    /// [`CommandError`]: `NotFound` if the endpoint is closed.
    pub fn sticky_causes(&self) -> Result<Causes, CommandError> {
        let bits = self.register(|link, page| link.read(page + STICKY))?;
        Ok(Causes::from_bits_retain(bits))
    }

    /// Clears causes.
    ///
    /// # Errors
    /// [`CommandError`]: `NotFound` if the endpoint is closed.
    pub fn clear_causes(&self, causes: Causes) -> Result<(), CommandError> {
        self.register(|link, page| link.write(page + STICKY, causes.bits()))
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
