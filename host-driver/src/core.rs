//! A completion queue and the endpoints that complete on it: their rings, and what is outstanding.
//!
//! ```text
//!            post: reserve a slot ► write entry ► tail doorbell
//!  free slots ─────────────────────────────────────────────────► card
//!       ▲                                                          │
//!       └── poll: acquire entry ► find slot ► head doorbell ◄──────┘
//!
//!  Core ─┬─ Queue    completion queue, slots, interrupt: one
//!        └─ Rings    send ring, list ring, events, pairs: one for each endpoint on the queue
//!  Own = Queue + one of the Rings: what a verb of an endpoint works on
//! ```
//!
//! One lock guards all of it, so that a completion, a post and a close on any endpoint of the queue are seen in one order.
//!
//! **Reservation.** A slot stands for an entry of the completion queue, whichever endpoint takes it, so the card always has room for the
//! completion of what was posted. The card counts an entry as free only up to the last head doorbell, which is
//! rung once for a quarter of the queue; a post rings it first if the card would otherwise find less room than was
//! reserved, and would never fetch the request.
//!
//! **Cancel.** A cancel reserves a slot as well, and goes by the ring that its target went by, so that the card
//! sees it later. If the target completes as `Cancelled` there is no completion of the cancel, and both slots
//! are free; in any other case the cancel completes as `TooLate`. A receive that the card refused for want of room is with the library
//! ([`crate::backlog`]): then the cancel, which finds nothing, comes back as the completion of the receive.
//!
//! **Kept sends.** The card gets a window of a pair's sends; those behind it are kept until it has completed an earlier one (`sends.rs`).
//!
//! **Requests in parts.** What is longer than the card takes at once has a slot for itself and one for each part that may be under way (`parts.rs`).
//!
//! **Unsignaled sends.** Of the success of a send with `FLAG_ERRORS_ONLY` the card doesn't tell: such a send is *quiet*, and has ended when a later send of its
//! pair completes as delivered or refused, or when its pair has been closed and no completion of it has come. A few quiet ones, and the next unsignaled
//! send is posted without the flag.
//!
//! **Claims.** A claimed message that the program drops is discarded: its handle is kept until a slot is free and the ring has room.

mod arm;
mod complete;
mod expire;
mod failed;
mod parts;
mod post;
mod sends;
mod sweep;

use self::failed::Failed;
pub(crate) use self::parts::Parts;
pub(crate) use self::sends::{Room, Way};
pub(crate) use self::sweep::SweepTurn;
use crate::backlog::Backlog;
use crate::claimed::Claim;
use crate::drain::HeldDrain;
use crate::endpoint::Shared;
use crate::error::CommandError;
use crate::event::Causes;
#[cfg(target_os = "linux")]
use crate::event_fd::EventFd;
use crate::link::Link;
use crate::memory::HostMemory;
use crate::pair::Pair;
use crate::peer_failure::Lost;
use crate::protection::Exposures;
use crate::query::EndpointStatus;
use crate::region::Buffer;
use crate::request_queue::RequestQueue;
use crate::ring::{EntryQueue, RequestRing};
use crate::rules::HeldRule;
use crate::send_limits::SendLimits;
use crate::shared::readable::Held;
use crate::table::{Place, Request, RequestTable};
use crate::transport::{Line, TransportError, Watch};
use abi::completion::Completion;
use abi::event::Event;
use abi::mailbox::{EndpointId, Identity, PairId, id_index};
pub(crate) use abi::opcode::WorkRing as Ring;
use abi::register::{
    COMPLETION_HEAD, EVENT_HEAD, EVENT_TAIL, LIST_HEAD, LIST_TAIL, SEND_HEAD, SEND_TAIL,
    endpoint_page,
};
use abi::status::Status;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

/// Cycles between two looks at a ring that is full of what was kept.
const FEED_PAUSE: u64 = 64;
/// Looks after which a ring has stopped.
const FEED_PAUSES: u32 = 10_000;

/// Whether the card had no room for a receive, or didn't look because of one in front of it.
fn is_refusal(completion: &Completion) -> bool {
    [Status::ListFull, Status::Behind]
        .map(Status::code)
        .contains(&completion.status)
}

/// Sends of a pair of whose success the card doesn't tell, at most. The next one completes, and says that these have ended: before the pair is
/// full of sends that the library would have to wait for.
const QUIET_MAX: usize = 3;

/// What a call that ends a pair lets the library do with its sends meanwhile.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// No such call is under way.
    No,
    /// What is kept is posted, and nothing new.
    Draining,
    /// Nothing is posted.
    Command,
}

/// A pair that is open.
pub(crate) struct OpenPair {
    serial: u64,
    /// The card's name of it.
    id: u32,
    limits: SendLimits,
    /// Sends that the card holds of it.
    holds: u16,
    /// Sends that are outstanding.
    sends: usize,
    /// Of these, those that the card has got and has written no completion of.
    on_card: u16,
    /// Messages among them, each of which may wait for a credit.
    messages_on_card: u16,
    /// Of these, those that the card gets later, oldest first.
    kept: RequestQueue,
    /// Number of the next send that the card gets.
    order: u32,
    /// Sends of whose success the card doesn't tell, with their numbers.
    quiet: [Option<(u32, Request)>; QUIET_MAX],
    /// The program posts nothing on it while a call that ends it is under way,
    ending: Ending,
    /// nor any more once the card has heard of such a call.
    ended: bool,
    /// Number of the first event of the endpoint that can be about it: those before were about others in its place.
    events_from: u64,
    /// What has ended with its peer's failure.
    lost: Lost,
    /// The slots in which the peer's unexpected messages rest; given back when the pair is gone.
    slots: Arc<HostMemory>,
}

/// What an endpoint is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Open,
    /// A close is under way, or was and its end isn't known: no register of the endpoint is touched.
    Closing,
    /// The card has forgotten it, or is gone: what is outstanding is flushed here.
    Closed,
}

/// A completion queue, and the requests that are to complete on it.
pub(crate) struct Queue {
    completions: EntryQueue<Completion>,
    /// Completions that were taken from the queue for a sweep or for parts of a request and the program hasn't polled, and those of requests in parts: older than
    /// all that are in it.
    aside: VecDeque<Completion>,
    /// Requests in parts that are outstanding.
    in_parts: u16,
    /// Index of the first completion that nobody has looked at: those taken, and perhaps some behind them, have been.
    noticed: u16,
    table: RequestTable,
    /// Place of the endpoint whose page has the queue's registers, while these are its own for sure.
    page: Option<u8>,
    /// Index that the completion interrupt is armed at.
    armed: Option<u16>,
    strays: u64,
    /// What sends that have ended in silence have read.
    retired: Vec<Held>,
    /// The card tells the endpoint of each completion.
    tells_endpoint: bool,
    /// What the handles share, for what a completion gives to the program.
    shared: Weak<Shared>,
    /// No time-out of an outstanding request is over before.
    next_expiry: u64,
    /// Room for the lines that a wait watches.
    watches: Vec<Watch>,
    /// What tells those who wait by a file descriptor, once somebody does.
    #[cfg(target_os = "linux")]
    event_fd: Option<EventFd>,
}

impl Queue {
    /// Tells the card which entries are free. While the registers may be another's the card needn't know.
    fn ring(&mut self, link: &Link) -> Result<(), TransportError> {
        match self.page {
            Some(_) => self.completions.ring(link),
            None => Ok(()),
        }
    }

    /// Whether a completion has come that nobody has polled.
    fn has_written(&self) -> bool {
        !self.aside.is_empty() || self.completions.peek().is_some()
    }

    /// The line that interrupts when a completion has come.
    fn line(&self) -> Line {
        self.page.map_or(Line::Library, Line::Endpoint)
    }
}

/// What only one endpoint has.
pub(crate) struct Rings {
    /// Where it is among those of its queue.
    at: usize,
    id: EndpointId,
    /// Its place on the card.
    place: u8,
    /// Its page has the queue's registers: it was there first, and goes last.
    owns_queue: bool,
    /// The program has its handle.
    held: bool,
    send: RequestRing,
    list: RequestRing,
    events: EntryQueue<Event>,
    backlog: Backlog,
    /// Claimed messages that the program has dropped, to be discarded.
    dropped: Vec<Claim>,
    /// The sweep that is under way.
    sweep: Option<sweep::Sweep>,
    rules: Vec<HeldRule>,
    drains: Vec<HeldDrain>,
    pairs: Vec<Option<OpenPair>>,
    /// Pairs that keep sends, in the order of their turns.
    keepers: VecDeque<u16>,
    /// Sends that were kept when their pair was closed, oldest first.
    orphans: RequestQueue,
    /// Buffers for injected sends that are not in flight.
    bounce: Vec<Buffer>,
    /// Index that the event interrupt is armed at.
    event_armed: Option<u16>,
    /// Index up to which events have interrupted a wait.
    event_noticed: u16,
    /// Causes by which waits are interrupted.
    interrupts: Causes,
    /// Events that have been taken.
    events_taken: u64,
    failed: Failed,
    /// Cycles for which the peers may be silent, as the program has said; 0: for ever.
    watch: u32,
    /// Windows that its peers may write.
    exposed: Arc<Exposures>,
    phase: Phase,
    /// Closed: index of the queue behind the last completion that the card has written for it.
    told: u16,
    /// Closed, and nothing of it is outstanding.
    flushed: bool,
}

impl Rings {
    /// Rings of an endpoint that the firmware has made of them.
    pub(crate) fn new(
        id: EndpointId,
        mut send: RequestRing,
        mut list: RequestRing,
        mut events: EntryQueue<Event>,
        card: &Identity,
        bounce: Vec<Buffer>,
        exposed: Arc<Exposures>,
    ) -> Self {
        let pairs = card.pairs as usize;
        let place = id_index(id.endpoint) as u8;
        let page = endpoint_page(place);
        send.set_registers(page + SEND_TAIL, page + SEND_HEAD);
        list.set_registers(page + LIST_TAIL, page + LIST_HEAD);
        events.set_register(page + EVENT_HEAD);
        Self {
            at: 0,
            id,
            place,
            owns_queue: false,
            held: true,
            send,
            list,
            events,
            backlog: Backlog::new(),
            dropped: Vec::with_capacity(card.unexpected as usize),
            sweep: None,
            rules: Vec::new(),
            drains: Vec::new(),
            pairs: std::iter::repeat_with(|| None).take(pairs).collect(),
            keepers: VecDeque::with_capacity(pairs),
            orphans: RequestQueue::new(),
            bounce,
            event_armed: None,
            event_noticed: 0,
            interrupts: Causes::INTERRUPT_BY_DEFAULT,
            events_taken: 0,
            failed: Failed::default(),
            watch: 0,
            exposed,
            phase: Phase::Open,
            told: 0,
            flushed: false,
        }
    }
}

/// Whose queue the completions of an endpoint to be opened go to.
pub(crate) enum Completions {
    /// Its own: address and log2 of the number of entries.
    Own(u64, u8),
    /// This endpoint's.
    Of(EndpointId),
}

/// A completion queue and the endpoints that complete on it.
pub(crate) struct Core {
    queue: Queue,
    endpoints: Vec<Rings>,
}

/// A completion queue and one of the endpoints that complete on it.
pub(crate) struct Own<'a> {
    queue: &'a mut Queue,
    rings: &'a mut Rings,
}

impl Core {
    /// A queue without an endpoint, of a card that tells the endpoint of each completion or doesn't.
    pub(crate) fn new(
        completions: EntryQueue<Completion>,
        tells_endpoint: bool,
        shared: Weak<Shared>,
    ) -> Self {
        let queue = Queue {
            table: RequestTable::new(completions.entries()),
            retired: Vec::with_capacity(completions.entries().into()),
            // What is taken from the queue, and each of the requests once more.
            aside: VecDeque::with_capacity(2 * usize::from(completions.entries())),
            in_parts: 0,
            completions,
            noticed: 0,
            page: None,
            armed: None,
            strays: 0,
            tells_endpoint,
            shared,
            next_expiry: u64::MAX,
            watches: Vec::new(),
            #[cfg(target_os = "linux")]
            event_fd: None,
        };
        Self {
            queue,
            endpoints: Vec::new(),
        }
    }

    /// The queue and the endpoint that is `at` this place of it.
    pub(crate) fn of(&mut self, at: usize) -> Own<'_> {
        Own {
            queue: &mut self.queue,
            rings: &mut self.endpoints[at],
        }
    }

    /// All endpoints, that which owns the queue last.
    pub(crate) fn all(&self) -> Vec<(usize, EndpointId)> {
        let mut all: Vec<_> = self.endpoints.iter().collect();
        all.sort_by_key(|rings| rings.owns_queue);
        all.iter().map(|rings| (rings.at, rings.id)).collect()
    }

    /// Whether this endpoint is still the one that is `at` this place.
    pub(crate) fn is_at(&self, at: usize, id: EndpointId) -> bool {
        self.endpoints.get(at).is_some_and(|rings| rings.id == id)
    }

    /// Where the completions of an endpoint to be opened go to. A queue whose endpoints are all closed is begun anew.
    ///
    /// # Errors
    /// [`CommandError`]: `NotFound` if the endpoint that owns the queue is being closed, `Argument` if the queue has completions of closed endpoints.
    pub(crate) fn begin_open(&mut self, link: &Arc<Link>) -> Result<Completions, CommandError> {
        let owner = |rings: &&Rings| rings.owns_queue && rings.phase != Phase::Closed;
        if let Some(owner) = self.endpoints.iter().find(owner) {
            let open = owner.phase == Phase::Open;
            return open
                .then_some(Completions::Of(owner.id))
                .ok_or(CommandError::NotFound);
        }
        if !self.endpoints.is_empty() && !is_broken!(ContinuesQueue) {
            if self.queue.table.outstanding() > 0 || self.queue.has_written() {
                return Err(CommandError::Argument(
                    "the queue has completions of endpoints that are closed: poll them first",
                ));
            }
            self.queue.completions = EntryQueue::new(link, self.queue.completions.log2())?;
            self.queue.armed = None;
            self.queue.noticed = 0;
            self.endpoints.iter_mut().for_each(|e| e.flushed = true);
        }
        let completions = &self.queue.completions;
        Ok(Completions::Own(completions.address(), completions.log2()))
    }

    /// Enters an endpoint that has been opened, and returns where it is. Places of endpoints that nobody knows any more are used again.
    pub(crate) fn enter(&mut self, mut rings: Rings, owns_queue: bool) -> usize {
        let forgotten =
            |rings: &Rings| rings.phase == Phase::Closed && rings.flushed && !rings.held;
        let at = self.endpoints.iter().position(forgotten);
        let at = at.unwrap_or(self.endpoints.len());
        (rings.at, rings.owns_queue) = (at, owns_queue);
        if owns_queue {
            let register = endpoint_page(rings.place) + COMPLETION_HEAD;
            self.queue.completions.set_register(register);
            self.queue.page = Some(rings.place);
        }
        if at < self.endpoints.len() {
            self.endpoints[at] = rings;
        } else {
            self.endpoints.push(rings);
            self.queue.watches.reserve(self.endpoints.len() + 1);
        }
        at
    }

    /// Whether an endpoint beside the one `at` this place isn't closed.
    fn has_others(&self, at: usize) -> bool {
        let mut others = self.endpoints.iter().filter(|rings| rings.at != at);
        others.any(|rings| rings.phase != Phase::Closed)
    }

    /// Whether the one `at` this place owns the queue, and another is on it.
    pub(crate) fn is_needed(&self, at: usize) -> bool {
        self.endpoints[at].owns_queue && self.has_others(at) && !is_broken!(ClosesNeeded)
    }

    /// The memory that the card knows as the queue.
    pub(crate) fn queue_memory(&self) -> &Arc<HostMemory> {
        self.queue.completions.memory()
    }

    /// Posts what is kept of all endpoints; see [`Own::feed`].
    pub(crate) fn feed(&mut self, link: &Link) {
        self.look_ahead();
        self.take_parts(link);
        self.expire(link);
        for at in 0..self.endpoints.len() {
            self.of(at).feed(link);
        }
    }

    pub(crate) fn outstanding(&self) -> u16 {
        self.queue.table.outstanding()
    }

    pub(crate) fn strays(&self) -> u64 {
        self.queue.strays
    }

    /// Room for the lines that a wait watches, to be given back by [`keep_watches`](Self::keep_watches). A second one that waits has room of its own.
    pub(crate) fn take_watches(&mut self) -> Vec<Watch> {
        std::mem::take(&mut self.queue.watches)
    }

    pub(crate) fn keep_watches(&mut self, watches: Vec<Watch>) {
        self.queue.watches = watches;
    }

    /// The card has forgotten every endpoint. False if it had before.
    fn set_all_closed(&mut self, link: &Link) -> bool {
        let mut news = false;
        for at in 0..self.endpoints.len() {
            news |= !self.of(at).is_closed();
            self.of(at).set_closed(link);
        }
        news
    }
}

impl Own<'_> {
    /// What the endpoint is doing, what it has and what is outstanding.
    pub(crate) fn status(&self) -> EndpointStatus {
        EndpointStatus {
            state: self.rings.phase.into(),
            send_ring: self.rings.send.entries(),
            list_ring: self.rings.list.entries(),
            completion_queue: usize::from(self.queue.completions.entries()),
            event_queue: usize::from(self.rings.events.entries()),
            outstanding: self.queue.table.outstanding_of(self.rings.at),
            kept: self.queue.table.kept_of(self.rings.at),
            inject_buffers: self.rings.bounce.len(),
            pairs: self.rings.pairs.iter().flatten().count(),
        }
    }

    /// Where an outstanding request is, and whether a cancel is under way for it.
    pub(crate) fn place_of(&mut self, request: Request) -> Option<(Place, bool)> {
        let request = self.own(request)?;
        let place = self.queue.table.place(request)?;
        let cancel = self.cancel_of(request).flatten();
        Some((place, cancel.is_some()))
    }

    /// The handle, if it is of a request of this endpoint.
    fn own(&mut self, request: Request) -> Option<Request> {
        let at = self.queue.table.get_mut(request)?.at;
        (at == self.rings.at || is_broken!(TakesStrangers)).then_some(request)
    }

    /// Whether the queue's completions interrupt by the endpoint's line.
    pub(crate) const fn owns_queue(&self) -> bool {
        self.rings.owns_queue
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.rings.phase == Phase::Closed
    }

    /// Whether the endpoint's registers are its own for sure.
    pub(crate) fn is_open(&self) -> bool {
        self.rings.phase == Phase::Open
    }

    /// A close begins, or was not begun after all.
    pub(crate) fn set_closing(&mut self, closing: bool) {
        if self.rings.phase != Phase::Closed && !is_broken!(RingsWhileClosing) {
            self.set_phase(if closing { Phase::Closing } else { Phase::Open });
            // No time-out was looked at while it was closing.
            self.queue.next_expiry = 0;
        }
    }

    fn set_phase(&mut self, phase: Phase) {
        self.rings.phase = phase;
        if self.rings.owns_queue {
            self.queue.page = (phase == Phase::Open).then_some(self.rings.place);
        }
    }

    /// The card has forgotten the endpoint: what it never fetched is flushed here, and the memory of the pairs is given back.
    pub(crate) fn set_closed(&mut self, link: &Link) {
        if self.is_closed() {
            return;
        }
        #[cfg(target_os = "linux")]
        self.end_event_fd(link);
        #[cfg(not(target_os = "linux"))]
        let _ = link;
        self.set_phase(Phase::Closed);
        self.rings.told = self.queue.completions.next_unwritten();
        self.rings.pairs.iter_mut().for_each(|pair| *pair = None);
        self.rings.keepers.clear();
        self.rings.orphans = RequestQueue::new();
        self.rings.dropped.clear();
        self.rings.rules.clear();
        self.rings.drains.clear();
        self.rings.failed = Failed::default();
    }

    /// The program has dropped its handle.
    pub(crate) fn let_go(&mut self) {
        self.rings.held = false;
    }

    /// All that the card may access for this endpoint: rings and slots.
    pub(crate) fn memory(&self) -> Vec<Arc<HostMemory>> {
        let slots = self.rings.pairs.iter().flatten().map(|pair| &pair.slots);
        let rings = [
            self.rings.send.memory(),
            self.rings.list.memory(),
            self.queue.completions.memory(),
            self.rings.events.memory(),
        ];
        rings.into_iter().chain(slots).map(Arc::clone).collect()
    }

    /// Number of the event that the card raises next, as far as it has written those before. One about a pair that is closed by now has a lower number.
    pub(crate) fn next_event(&self, link: &Link) -> Result<u64, TransportError> {
        let tail = link.read(endpoint_page(self.rings.place) + EVENT_TAIL)? as u16;
        let untaken = tail.wrapping_sub(self.rings.events.head());
        Ok(self.rings.events_taken + u64::from(untaken))
    }

    /// Enters a pair, which no event below a number is about; none if its place is another's, or out of the table.
    pub(crate) fn add_pair(
        &mut self,
        opened: &PairId,
        slots: Arc<HostMemory>,
        events_from: u64,
    ) -> Option<Pair> {
        let pair = Pair::new(id_index(opened.pair));
        let place = self.rings.pairs.get_mut(usize::from(pair.index))?;
        if place.is_some() {
            return None;
        }
        *place = Some(OpenPair {
            serial: pair.serial,
            id: opened.pair,
            limits: SendLimits::default(),
            holds: opened.sends as u16,
            sends: 0,
            on_card: 0,
            messages_on_card: 0,
            kept: RequestQueue::new(),
            order: 0,
            quiet: [None; QUIET_MAX],
            ending: Ending::No,
            ended: false,
            events_from,
            lost: Lost::default(),
            slots,
        });
        Some(pair)
    }

    /// What has ended with the failure of the peer of an open pair.
    pub(crate) fn lost_mut(&mut self, pair: Pair) -> Option<&mut Lost> {
        self.pair_mut(pair).map(|open| &mut open.lost)
    }

    /// Cycles for which the peers may be silent; 0: for ever.
    pub(crate) const fn watch(&self) -> u32 {
        self.rings.watch
    }

    /// The card watches the peers so.
    pub(crate) const fn set_watch(&mut self, cycles: u32) {
        self.rings.watch = cycles;
    }

    /// The card's name of an open pair.
    pub(crate) fn pair_id(&mut self, pair: Pair) -> Option<u32> {
        self.pair_mut(pair).map(|open| open.id)
    }

    /// The same, of a pair that is to be closed or disconnected: nothing is posted on it from now on.
    pub(crate) fn begin_closing_pair(&mut self, pair: Pair) -> Option<u32> {
        let open = self.pair_mut(pair)?;
        open.ending = Ending::Command;
        Some(open.id)
    }

    /// A pair is to be disconnected as soon as the card has got the sends that are kept: nothing new is posted on it from now on. False if it
    /// is being ended already, or isn't open.
    pub(crate) fn begin_draining_pair(&mut self, pair: Pair) -> bool {
        let Some(open) = self.usable_pair(pair) else {
            return false;
        };
        open.ending = Ending::Draining;
        true
    }

    /// The draining of a pair has ended before a command did.
    pub(crate) fn end_draining_pair(&mut self, pair: Pair) {
        let open = self.pair_mut(pair);
        if let Some(open) = open.filter(|open| open.ending == Ending::Draining) {
            open.ending = Ending::No;
        }
    }

    /// A call that was to end a pair has come back: it has closed the pair, or not; and the card is ending the pair because of it, or not. If
    /// not, the pair is what it was before the call.
    pub(crate) fn pair_closing_ended(&mut self, pair: Pair, done: bool, heard: bool) {
        if done {
            self.retire_closed(pair);
            self.remove_pair(pair);
        } else if let Some(open) = self.pair_mut(pair) {
            open.ending = Ending::No;
            open.ended = heard || open.ended && !is_broken!(ReopensPair);
        }
    }

    /// A pair on which something may be posted.
    fn usable_pair(&mut self, pair: Pair) -> Option<&mut OpenPair> {
        self.pair_mut(pair)
            .filter(|open| open.ending == Ending::No && !open.ended)
    }

    /// Whether a receive may name the pair.
    pub(crate) fn is_usable(&mut self, pair: Pair) -> bool {
        self.usable_pair(pair).is_some()
    }

    pub(crate) fn remove_pair(&mut self, pair: Pair) {
        if self.pair_mut(pair).is_some() {
            self.orphan_sends(pair);
            self.rings.pairs[usize::from(pair.index)] = None;
            let rules = self.rings.rules.iter_mut();
            rules.for_each(|rule| rule.forget_pair(pair.index));
            let drains = self.rings.drains.iter_mut();
            drains.for_each(|drain| drain.forget_pair(pair.index));
            self.rings.failed.forget(pair.index);
        }
    }

    pub(crate) fn pair_mut(&mut self, pair: Pair) -> Option<&mut OpenPair> {
        let open = self
            .rings
            .pairs
            .get_mut(usize::from(pair.index))?
            .as_mut()?;
        (open.serial == pair.serial || is_broken!(StalePair)).then_some(open)
    }

    fn pair_of_card(&self, index: u16) -> Option<Pair> {
        let open = self.rings.pairs.get(usize::from(index))?.as_ref()?;
        Some(Pair {
            index,
            serial: open.serial,
        })
    }

    /// The open pair that an event of this number is about.
    fn pair_of_event(&self, index: u16, number: u64) -> Option<Pair> {
        let open = self.rings.pairs.get(usize::from(index))?.as_ref()?;
        let is_old = number < open.events_from && !is_broken!(EventOfPredecessor);
        self.pair_of_card(index).filter(|_| !is_old)
    }

    /// The open pairs of these places: a bit for each.
    pub(crate) fn pairs_of_card(&self, places: u128) -> Vec<Pair> {
        let named = (0..128).filter(|index| places >> index & 1 == 1);
        named.filter_map(|index| self.pair_of_card(index)).collect()
    }

    /// The rules that hold.
    pub(crate) const fn rules(&mut self) -> &mut Vec<HeldRule> {
        &mut self.rings.rules
    }

    /// The drains that there are and were.
    pub(crate) const fn drains(&mut self) -> &mut Vec<HeldDrain> {
        &mut self.rings.drains
    }

    /// Whether there is a buffer for an injected send.
    pub(crate) const fn has_bounce(&self) -> bool {
        !self.rings.bounce.is_empty()
    }

    /// Takes a buffer for an injected send.
    pub(crate) fn take_bounce(&mut self) -> Option<Buffer> {
        self.rings.bounce.pop()
    }

    /// Gives such a buffer back.
    pub(crate) fn give_bounce(&mut self, buffer: Buffer) {
        self.rings.bounce.push(buffer);
    }
}
