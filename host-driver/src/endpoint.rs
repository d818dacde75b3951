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
use crate::core::{Completions, Core, Own, Rings};
use crate::device::Device;
use crate::domain::{Domain, ProtectionDomain};
use crate::error::CommandError;
use crate::event::{AsyncEvent, Causes};
use crate::link::Link;
use crate::memory::HostMemory;
use crate::pair::{Pair, PairAddress};
use crate::query::{Capabilities, PairStatus};
use crate::region::{Access, MemoryRegion};
use crate::ring::{EntryQueue, RequestRing, ring_log2};
use crate::shared::readable::Held;
use crate::sync::{CardGuard, CardMutex};
use crate::transport::{TransportError, Watch};
use abi::limits::{EAGER_MAX, FLAT_SPACE};
use abi::mailbox::{
    CloseEndpoint, Command, ConnectPair, EndpointId, NO_ENDPOINT, Nothing, OpenEndpoint, OpenPair,
    PairId, Words, id_index,
};
use abi::register::{EVENTS_LOST, STICKY, endpoint_page};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// What the handles of a completion queue and of the endpoints on it share.
pub(crate) struct Shared {
    core: CardMutex<Core>,
    domain: Arc<Domain>,
    /// Claimed messages that were dropped by threads that can't talk to the card, with the places of their endpoints.
    dropped: Mutex<Vec<(usize, Claim)>>,
}

impl Shared {
    /// A completion queue without an endpoint.
    pub(crate) fn new(pd: &ProtectionDomain, entries: usize) -> Result<Arc<Self>, CommandError> {
        let device = pd.device();
        let identity = device.identity();
        let completions = EntryQueue::new(&device.card.link, ring_log2_of(entries)?)?;
        let tells_endpoint = device
            .capabilities()
            .contains(Capabilities::SHARED_COMPLETIONS);
        let claims = identity.unexpected as usize;
        Ok(Arc::new_cyclic(|shared| Self {
            core: CardMutex::new(Core::new(completions, tells_endpoint, Weak::clone(shared))),
            domain: Arc::clone(&pd.inner),
            // Posting and polling don't allocate, whoever drops what.
            dropped: Mutex::new(Vec::with_capacity(claims)),
        }))
    }

    pub(crate) fn link(&self) -> &Link {
        &self.domain.device.card.link
    }

    /// The queues, with what was dropped elsewhere.
    pub(crate) fn core(&self) -> CardGuard<'_, Core, Link> {
        let mut core = self.core.lock(self.link());
        self.elsewhere()
            .drain(..)
            .for_each(|(at, claim)| core.of(at).keep_dropped(claim));
        core
    }

    fn elsewhere(&self) -> std::sync::MutexGuard<'_, Vec<(usize, Claim)>> {
        self.dropped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops what sends have read that have ended in silence: without the lock, because a region may end with it.
    pub(crate) fn free(&self, mut retired: Option<Held>) {
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
}

impl Drop for Shared {
    fn drop(&mut self) {
        let card = &self.domain.device.card;
        let core = self.core.get_mut();
        // That which owns the queue can only be closed after the others.
        for (at, id) in core.all() {
            let mut own = core.of(at);
            if own.is_closed() {
                continue;
            }
            let memory = own.memory();
            own.suspect_all();
            own.set_closed(&card.link);
            card.release(Release::Object {
                close: Command::CloseEndpoint,
                id: id.endpoint,
                memory,
            });
        }
    }
}

/// An endpoint, by its place among those of its completion queue.
#[derive(Clone)]
pub(crate) struct Handle {
    shared: Arc<Shared>,
    at: usize,
    id: EndpointId,
}

/// A [`Handle`] that keeps nothing.
#[derive(Clone)]
pub(crate) struct WeakHandle {
    shared: Weak<Shared>,
    at: usize,
    id: EndpointId,
}

impl WeakHandle {
    /// The endpoint, unless the program has let go of it and of its queue, or another one has its place.
    pub(crate) fn upgrade(&self) -> Option<Handle> {
        let shared = self.shared.upgrade()?;
        let is_there = shared.core().is_at(self.at, self.id);
        is_there.then(|| Handle::new(shared, self.at, self.id))
    }
}

/// The queues of an endpoint, locked.
pub(crate) struct Locked<'a> {
    pub(crate) core: CardGuard<'a, Core, Link>,
    at: usize,
}

impl Locked<'_> {
    /// The endpoint's own, with its completion queue.
    pub(crate) fn own(&mut self) -> Own<'_> {
        self.core.of(self.at)
    }
}

impl Handle {
    pub(crate) const fn new(shared: Arc<Shared>, at: usize, id: EndpointId) -> Self {
        Self { shared, at, id }
    }

    pub(crate) fn downgrade(&self) -> WeakHandle {
        WeakHandle {
            shared: Arc::downgrade(&self.shared),
            at: self.at,
            id: self.id,
        }
    }

    pub(crate) fn link(&self) -> &Link {
        self.shared.link()
    }

    pub(crate) fn domain(&self) -> &Arc<Domain> {
        self.shared.domain()
    }

    /// The card's name of the endpoint.
    pub(crate) fn id(&self) -> u32 {
        self.id.endpoint
    }

    pub(crate) fn lock(&self) -> Locked<'_> {
        Locked {
            core: self.shared.core(),
            at: self.at,
        }
    }

    /// Discards a claimed message that the program has dropped: now, or in the next call of a thread that can.
    pub(crate) fn drop_claim(&self, claim: Claim) {
        self.shared.elsewhere().push((self.at, claim));
        if self.link().may_call() {
            self.lock().own().feed(self.link());
        }
    }

    fn place(&self) -> u8 {
        id_index(self.id.endpoint) as u8
    }

    /// Closes the endpoint. May be called until it succeeds.
    fn close(&self) -> Result<(), CommandError> {
        if self.lock().own().is_closed() {
            return Ok(());
        }
        match self.domain().device.commands() {
            Ok(mut commands) => self.close_at(&mut commands),
            Err(_) if self.link().is_lost() && !is_broken!(ClosesByCardOnly) => {
                self.closing_ended(true, true);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Closes the endpoint by a command. From before the command on, until it is known to have failed, nothing is rung.
    ///
    /// The card refuses to close that which owns the queue while another endpoint is on it, and goes on with it: so does the library.
    pub(crate) fn close_at(&self, commands: &mut Commands<'_>) -> Result<(), CommandError> {
        // Afterwards the card doesn't know whose peers had failed.
        match self.look_before_end(commands) {
            Err(error) if !self.link().is_lost() => return Err(error),
            _ => {}
        }
        {
            let mut locked = self.lock();
            if locked.own().is_closed() {
                return Ok(());
            }
            if !locked.core.is_needed(self.at) {
                locked.own().set_closing(true);
            }
        }
        let endpoint = self.id.endpoint;
        let closed =
            commands.call::<_, Nothing>(Command::CloseEndpoint, &CloseEndpoint { endpoint });
        match closed {
            Ok(Nothing {}) => self.closing_ended(true, true),
            // Somebody else's close has taken effect.
            Err(error) if error.is_not_found() => self.closing_ended(true, true),
            Err(_) if self.link().is_lost() && !is_broken!(ClosesByCardOnly) => {
                self.closing_ended(true, true);
            }
            Err(_) if is_broken!(FreesAtTimeout) && commands.is_late() => {
                self.closing_ended(true, true);
            }
            Err(error) => {
                let refused = error.is_refusal();
                if commands.is_late() {
                    commands.concerns(Concern::EndpointClosed(self.downgrade()));
                } else {
                    self.closing_ended(false, refused);
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// The endpoint is on its queue from now on: who waits there waits for it too.
    fn begin(&self) -> Result<(), CommandError> {
        #[cfg(target_os = "linux")]
        self.lock().own().begin_event_fd(self.link())?;
        self.link().queue_changed();
        Ok(())
    }

    /// A close has ended: it has closed the endpoint, or not; and the card has heard of it, or not.
    pub(crate) fn closing_ended(&self, done: bool, heard: bool) {
        let mut locked = self.lock();
        match done {
            true => locked.own().set_closed(self.link()),
            false => {
                let closing = heard && !locked.core.is_needed(self.at);
                locked.own().set_closing(closing);
            }
        }
        drop(locked);
        // Who waits for a completion finds it flushed.
        self.link().closing_ended();
    }
}

/// log2 of the entries of a ring.
fn ring_log2_of(entries: usize) -> Result<u8, CommandError> {
    ring_log2(entries).ok_or(CommandError::Argument(
        "a ring has a power of two of entries, from 4 to 16384",
    ))
}

/// Where the requests of an endpoint to be opened complete.
enum CompletesOn {
    /// On a queue of its own with so many entries.
    Own(usize),
    /// On this one.
    Queue(CompletionQueue),
}

/// Sizes of an endpoint to be opened. All ring sizes are powers of two from 4 to 16384.
pub struct EndpointBuilder {
    pd: ProtectionDomain,
    send: usize,
    list: usize,
    completions: CompletesOn,
    events: usize,
    injects: usize,
    job: u32,
    pair_sends: u16,
}

impl EndpointBuilder {
    pub(crate) fn new(pd: &ProtectionDomain) -> Self {
        Self {
            pd: pd.clone(),
            send: 64,
            list: 64,
            completions: CompletesOn::Own(256),
            events: 64,
            injects: 16,
            job: 0,
            pair_sends: 0,
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

    /// Entries of a completion queue of the endpoint's own, and so the requests that may be outstanding; 256 unless said otherwise.
    #[must_use]
    pub fn completion_queue(mut self, entries: usize) -> Self {
        self.completions = CompletesOn::Own(entries);
        self
    }

    /// Completes on this queue, with whatever else is opened on it, in place of one of its own: `send_cq` and `recv_cq` of `ibv_create_qp`.
    #[must_use]
    pub fn on(mut self, queue: &CompletionQueue) -> Self {
        self.completions = CompletesOn::Queue(queue.clone());
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

    /// The job (the tenant) that it is of, less than 2^24; 0 unless said otherwise. Endpoints of different jobs can't be connected.
    #[must_use]
    pub fn job(mut self, job: u32) -> Self {
        self.job = job;
        self
    }

    /// Sends that the card is to hold of each of its pairs: a power of two up to 64, or 0, the default, for as many as all pairs can have
    /// ([`DeviceLimits::pair_sends`](crate::DeviceLimits::pair_sends)). A pair gets what can be had up to that when it is opened, and never less than that default;
    /// the library keeps what is posted beyond it. A pair over a long way, or with a peer that has many credits to give, needs more to keep it busy.
    #[must_use]
    pub fn pair_sends(mut self, sends: u16) -> Self {
        self.pair_sends = sends;
        self
    }

    /// Opens the endpoint.
    ///
    /// # Errors
    /// [`CommandError`]: `Argument` if a size is not one that a ring can have, `InvalidArgument` if the job has more than 24 bits or
    /// the sends of a pair are no power of two up to 64, `NoResource` if the
    /// card has no more endpoints. On a queue that has an endpoint: `Unsupported`, with [`Capabilities::SHARED_COMPLETIONS`] as detail, if the card
    /// has a queue for each endpoint only ([`DeviceLimits::shared_completions`](crate::DeviceLimits::shared_completions)); `Argument` if the queue is of
    /// another domain, or its endpoints are all closed and have left completions on it; `NotFound` while its first endpoint is being closed.
    pub fn open(self) -> Result<Endpoint, CommandError> {
        let log2 = ring_log2_of;
        let device = self.pd.device();
        let link = &device.card.link;
        let send = RequestRing::new(link, log2(self.send)?)?;
        let list = RequestRing::new(link, log2(self.list)?)?;
        let events = EntryQueue::new(link, log2(self.events)?)?;
        let shared = match self.completions {
            CompletesOn::Own(entries) => Shared::new(&self.pd, entries)?,
            CompletesOn::Queue(queue) => queue.shared,
        };
        if !Arc::ptr_eq(shared.domain(), &self.pd.inner) {
            return Err(CommandError::Argument(
                "the completion queue is of another protection domain",
            ));
        }
        let mut bounce = Vec::with_capacity(self.injects);
        if self.injects > 0 {
            // The buffers keep the region.
            let (_, mut whole) =
                MemoryRegion::register(&self.pd, self.injects * EAGER_MAX, Access::Read)?;
            bounce.extend((0..self.injects).map(|_| whole.split_to(EAGER_MAX)));
        }
        let mut commands = device.commands()?;
        let (completions, queue_memory) = {
            let mut core = shared.core();
            let completions = core.begin_open(link)?;
            (completions, Arc::clone(core.queue_memory()))
        };
        let (completion_owner, completion_base, completion_log2) = match completions {
            Completions::Own(base, log2) => (NO_ENDPOINT, base, log2),
            Completions::Of(owner) => (owner.endpoint, 0, 0),
        };
        let argument = OpenEndpoint {
            domain: self.pd.inner.id.domain,
            send_log2: u32::from(send.log2()),
            send_base: send.address(),
            list_log2: u32::from(list.log2()),
            list_base: list.address(),
            completion_log2: u32::from(completion_log2),
            completion_base,
            event_log2: u32::from(events.log2()),
            event_base: events.address(),
            completion_owner,
            job: self.job,
            pair_sends: self.pair_sends.into(),
            space: FLAT_SPACE.into(),
        };
        let rings = [send.memory(), list.memory(), &queue_memory, events.memory()];
        let close = Command::CloseEndpoint;
        let id: EndpointId = commands.open(Command::OpenEndpoint, &argument, close, &rings)?;
        let place = u8::try_from(id_index(id.endpoint)).ok();
        let free = |place: &u8| !device.card.has_endpoint(*place);
        let Some(place) = place.filter(free) else {
            return Err(commands.refuse(close, &id, rings.map(Arc::clone).to_vec()));
        };
        let identity = device.identity();
        let exposed = Arc::clone(&self.pd.inner.exposed);
        let rings = Rings::new(id, send, list, events, identity, bounce, exposed);
        let at = shared.core().enter(rings, completion_owner == NO_ENDPOINT);
        let handle = Handle::new(shared, at, id);
        device.card.enter_endpoint(place, handle.downgrade());
        drop(commands);
        let endpoint = Endpoint { handle };
        endpoint.handle.begin()?;
        Ok(endpoint)
    }
}

/// An open endpoint: one process's set of queues on a card.
///
/// Its verbs may be called from any thread. Dropping it closes it; what is outstanding then can still be
/// polled from a [`CompletionQueue`] that was taken before.
pub struct Endpoint {
    pub(crate) handle: Handle,
}

impl Endpoint {
    /// The endpoint's number on its card, which its [completions](crate::WorkCompletion::endpoint) have.
    pub fn index(&self) -> u8 {
        self.handle.place()
    }

    /// The card.
    pub fn device(&self) -> &Device {
        &self.handle.domain().device
    }

    /// The completion queue that the endpoint's requests complete on.
    pub fn completion_queue(&self) -> CompletionQueue {
        CompletionQueue {
            shared: Arc::clone(&self.handle.shared),
        }
    }

    /// Opens a pair on which the peer may have `credits` messages here that wait to be received.
    /// Connect it to what the peer's `open_pair` returned.
    ///
    /// # Errors
    /// [`CommandError::Refused`] with `NoEnvelopes` if the card can't keep so many for the peer, whose
    /// detail is how many it can, with `NoResource` if it has no more pairs, and with `InvalidArgument` if `credits` is 0 or more than 64.
    pub fn open_pair(&self, credits: u16) -> Result<(Pair, PairAddress), CommandError> {
        let device = self.device();
        let size = usize::from(credits.max(1)) * EAGER_MAX;
        let slots = Arc::new(HostMemory::new(&device.card.link, size)?);
        let argument = OpenPair {
            endpoint: self.handle.id(),
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
        // No pair is closed and none is opened while the channel is held: what has been raised so far isn't about this one.
        let events_from = self.handle.lock().own().next_event(self.handle.link())?;
        let id: PairId = commands.open(command, argument, Command::ClosePair, &[&slots])?;
        let mut locked = self.handle.lock();
        let opened = locked.own().add_pair(&id, Arc::clone(&slots), events_from);
        drop(locked);
        match opened {
            Some(pair) => Ok((pair, id)),
            None => Err(commands.refuse(Command::ClosePair, &id, vec![slots])),
        }
    }

    /// Connects a pair to the peer's.
    ///
    /// # Errors
    /// [`CommandError`]: `NotFound` if the pair isn't open, `Busy` if it is connected already, `InvalidArgument` if the peer's Ethernet address is a
    /// group's, or its endpoint is of another job.
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
            remote_job: peer.id.job,
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
        let (mut commands, id) = self.commands_for(|own| own.begin_closing_pair(pair))?;
        // Afterwards the card doesn't know whether its peer had failed.
        if let Err(error) = self.handle.look_before_end(&mut commands) {
            let mut locked = self.handle.lock();
            locked.own().pair_closing_ended(pair, false, false);
            return Err(error);
        }
        let closed =
            commands.call::<_, Nothing>(Command::ClosePair, &abi::mailbox::Pair { pair: id });
        let (done, heard) = match &closed {
            Ok(Nothing {}) => (true, true),
            Err(error) => (error.is_not_found(), error.is_refusal()),
        };
        if commands.is_late() {
            commands.concerns(Concern::PairClosed(self.handle.downgrade(), pair));
        } else {
            self.handle
                .lock()
                .own()
                .pair_closing_ended(pair, done, heard);
        }
        closed.map(|Nothing {}| ())
    }

    /// Takes the command channel, and only with it in hand finds what the command is to name: who would close that in between needs the channel too.
    ///
    /// # Errors
    /// [`CommandError::NotFound`] if there is no such thing; those of the channel.
    pub(crate) fn commands_for<T>(
        &self,
        find: impl FnOnce(&mut Own<'_>) -> Option<T>,
    ) -> Result<(Commands<'_>, T), CommandError> {
        let find = || find(&mut self.handle.lock().own()).ok_or(CommandError::NotFound);
        if is_broken!(LooksBeforeItsTurn) {
            let found = find()?;
            return Ok((self.device().commands()?, found));
        }
        let commands = self.device().commands()?;
        Ok((commands, find()?))
    }

    /// The same for a command that names the endpoint itself.
    pub(crate) fn commands_while_open(&self) -> Result<(Commands<'_>, ()), CommandError> {
        self.commands_for(|own| own.is_open().then_some(()))
    }

    /// Takes the next event, if there is one: those of the card in their order, then [`PeerFailedPending`](crate::Cause::PeerFailedPending), which is the library's own. If the
    /// card has lost events it is asked by a command who has failed; a command that isn't answered is given again by the next call.
    ///
    /// # Errors
    /// [`TransportError`] if the card can't be told which events have been taken. No event is lost by it: that is said when none is left.
    pub fn poll_event(&self) -> Result<Option<AsyncEvent>, TransportError> {
        let link = self.handle.link();
        let poll = || {
            let mut locked = self.handle.lock();
            // Who waits for an event alone polls no completions.
            locked.core.feed(link);
            let mut own = locked.own();
            let polled = own.poll_event(link);
            (polled, own.asks_for_failed())
        };
        let (polled, asks) = poll();
        let answered = asks && self.ask_for_failed();
        match polled {
            Ok(None) if answered => poll().0,
            polled => polled,
        }
    }

    /// Asks for an interrupt at the next event after those that the queue has, taken or not, and at the next completion in the same way. Poll once more
    /// before waiting, as after [`CompletionQueue::req_notify`].
    ///
    /// # Errors
    /// [`TransportError`].
    pub fn req_notify_event(&self) -> Result<Watch, TransportError> {
        self.handle.lock().own().arm_for_event(self.handle.link())
    }

    /// Says by which events [waits](CompletionQueue::wait) on the endpoint's completion queue are interrupted: each of these causes, once for each event that
    /// no wait has passed by yet. [`Causes::INTERRUPT_BY_DEFAULT`] until it is said. What [`poll_event`](Self::poll_event) gives doesn't depend on it.
    pub fn set_wait_interrupts(&self, causes: Causes) {
        *self.handle.lock().own().interrupts() = causes;
    }

    /// The causes of events by which waits are interrupted.
    pub fn wait_interrupts(&self) -> Causes {
        *self.handle.lock().own().interrupts()
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
        let mut locked = self.handle.lock();
        if !locked.own().is_open() {
            return Err(CommandError::NotFound);
        }
        Ok(access(
            self.handle.link(),
            endpoint_page(self.handle.place()),
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
        self.handle.close()
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        let handle = &self.handle;
        let is_closed = {
            let mut locked = handle.lock();
            locked.own().let_go();
            locked.own().is_closed()
        };
        // The card keeps the rings until it has closed the endpoint, whoever has it closed in the end.
        if !is_closed && (!handle.link().may_call() || handle.close().is_err()) {
            let card = &handle.domain().device.card;
            card.release(Release::Endpoint(handle.downgrade()));
        }
    }
}
