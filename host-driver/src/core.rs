//! The queues of an endpoint: its four rings and what is outstanding on them.
//!
//! ```text
//!            post: reserve a slot ► write entry ► tail doorbell
//!  free slots ─────────────────────────────────────────────────► card
//!       ▲                                                          │
//!       └── poll: acquire entry ► find slot ► head doorbell ◄──────┘
//! ```
//!
//! **Reservation.** A slot stands for an entry of the completion queue, so the card always has room for the
//! completion of what was posted. The card counts an entry as free only up to the last head doorbell, which is
//! rung once for a quarter of the queue; a post rings it first if the card would otherwise find less room than was
//! reserved, and would never fetch the request.
//!
//! **Cancel.** A cancel reserves a slot as well, and goes by the ring that its target went by, so that the card
//! sees it later. If the target completes as `Cancelled` there is no completion of the cancel, and both slots
//! are free; in any other case the cancel completes as `TooLate`. A receive that the card refused for want of room is with the library
//! ([`crate::backlog`]): then the cancel, which finds nothing, comes back as the completion of the receive.
//!
//! **Unsignaled sends.** Of the success of a send with `FLAG_ERRORS_ONLY` the card doesn't tell: such a send is *quiet*, and has ended when a later send of its
//! pair completes as delivered or refused, or when its pair has been closed and no completion of it has come. A few quiet ones, and the next unsignaled
//! send is posted without the flag.
//!
//! **Claims.** A claimed message that the program drops is discarded: its handle is kept until a slot is free and the ring has room.

mod arm;
mod complete;
mod post;

use crate::backlog::Backlog;
use crate::claimed::Claim;
use crate::endpoint::Shared;
#[cfg(target_os = "linux")]
use crate::event_fd::EventFd;
use crate::link::Link;
use crate::memory::HostMemory;
use crate::pair::Pair;
use crate::query::EndpointStatus;
use crate::region::Buffer;
use crate::ring::{EntryQueue, RequestRing};
use crate::shared::SharedBuffer;
use crate::table::{Place, Request, RequestTable};
use abi::completion::Completion;
use abi::event::Event;
use abi::limits::{MAX_CREDITS, SEND_QUEUE_DEPTH};
use abi::mailbox::id_index;
pub(crate) use abi::opcode::WorkRing as Ring;
use abi::register::{
    COMPLETION_HEAD, EVENT_HEAD, LIST_HEAD, LIST_TAIL, SEND_HEAD, SEND_TAIL, endpoint_page,
};
use abi::status::Status;
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
const QUIET_MAX: usize = SEND_QUEUE_DEPTH as usize / 2 - 1;

/// A pair that is open.
pub(crate) struct OpenPair {
    serial: u64,
    /// The card's name of it.
    id: u32,
    /// Sends that have not completed.
    sends: u16,
    /// Number of the next send.
    order: u32,
    /// Sends of whose success the card doesn't tell, with their numbers.
    quiet: [Option<(u32, Request)>; QUIET_MAX],
    /// A call that ends it is under way: nothing is posted on it meanwhile,
    ending: bool,
    /// nor any more once the card has heard of such a call.
    ended: bool,
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

/// Rings and outstanding requests of one endpoint.
pub(crate) struct Core {
    endpoint: u8,
    send: RequestRing,
    list: RequestRing,
    completions: EntryQueue<{ Completion::WORDS }>,
    events: EntryQueue<{ Event::WORDS }>,
    table: RequestTable,
    backlog: Backlog,
    /// Claimed messages that the program has dropped, to be discarded.
    dropped: Vec<Claim>,
    /// The endpoint, for what a completion gives to the program.
    shared: Weak<Shared>,
    pairs: Vec<Option<OpenPair>>,
    /// Buffers for injected sends that are not in flight.
    bounce: Vec<Buffer>,
    /// Index that the completion interrupt is armed at.
    completion_armed: Option<u16>,
    /// Index that the event interrupt is armed at.
    event_armed: Option<u16>,
    /// Index up to which events have interrupted a wait.
    event_noticed: u16,
    strays: u64,
    /// What sends that have ended in silence have read.
    retired: Vec<SharedBuffer>,
    phase: Phase,
    /// What tells those who wait by a file descriptor, once somebody does.
    #[cfg(target_os = "linux")]
    event_fd: Option<EventFd>,
}

impl Core {
    pub(crate) fn new(
        send: RequestRing,
        list: RequestRing,
        completions: EntryQueue<{ Completion::WORDS }>,
        events: EntryQueue<{ Event::WORDS }>,
        pairs: usize,
        bounce: Vec<Buffer>,
    ) -> Self {
        Self {
            endpoint: 0,
            table: RequestTable::new(completions.entries()),
            retired: Vec::with_capacity(completions.entries().into()),
            backlog: Backlog::new(),
            dropped: Vec::with_capacity(pairs * usize::from(MAX_CREDITS)),
            shared: Weak::new(),
            send,
            list,
            completions,
            events,
            pairs: std::iter::repeat_with(|| None).take(pairs).collect(),
            bounce,
            completion_armed: None,
            event_armed: None,
            event_noticed: 0,
            strays: 0,
            phase: Phase::Open,
            #[cfg(target_os = "linux")]
            event_fd: None,
        }
    }

    /// Says which endpoint the firmware made of the rings.
    pub(crate) fn set_endpoint(&mut self, endpoint: u8) {
        let page = endpoint_page(endpoint);
        self.endpoint = endpoint;
        self.send.set_registers(page + SEND_TAIL, page + SEND_HEAD);
        self.list.set_registers(page + LIST_TAIL, page + LIST_HEAD);
        self.completions.set_register(page + COMPLETION_HEAD);
        self.events.set_register(page + EVENT_HEAD);
    }

    /// Says whose queues these are.
    pub(crate) fn set_shared(&mut self, shared: Weak<Shared>) {
        self.shared = shared;
    }

    pub(crate) fn outstanding(&self) -> u16 {
        self.table.outstanding()
    }

    /// What the endpoint is doing, what it has and what is outstanding.
    pub(crate) fn status(&self) -> EndpointStatus {
        EndpointStatus {
            state: self.phase.into(),
            send_ring: self.send.entries(),
            list_ring: self.list.entries(),
            completion_queue: usize::from(self.completions.entries()),
            event_queue: usize::from(self.events.entries()),
            outstanding: usize::from(self.table.outstanding()),
            kept: self.table.kept(),
            inject_buffers: self.bounce.len(),
            pairs: self.pairs.iter().flatten().count(),
        }
    }

    /// Where an outstanding request is, and whether a cancel is under way for it.
    pub(crate) fn place_of(&mut self, request: Request) -> Option<(Place, bool)> {
        let place = self.table.place(request)?;
        let cancel = self.cancel_of(request).flatten();
        Some((place, cancel.is_some()))
    }

    pub(crate) fn strays(&self) -> u64 {
        self.strays
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    /// Whether the endpoint's registers are its own for sure.
    pub(crate) fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// A close begins, or was not begun after all.
    pub(crate) fn set_closing(&mut self, closing: bool) {
        if self.phase != Phase::Closed && !is_broken!(RingsWhileClosing) {
            self.phase = if closing { Phase::Closing } else { Phase::Open };
        }
    }

    /// The card has forgotten the endpoint: what it never fetched is flushed here, and the memory of the pairs is given back.
    pub(crate) fn set_closed(&mut self, link: &Link) {
        #[cfg(target_os = "linux")]
        self.end_event_fd(link);
        #[cfg(not(target_os = "linux"))]
        let _ = link;
        self.phase = Phase::Closed;
        self.pairs.iter_mut().for_each(|pair| *pair = None);
        self.dropped.clear();
    }

    /// All that the card may access for this endpoint: rings and slots.
    pub(crate) fn memory(&self) -> Vec<Arc<HostMemory>> {
        let slots = self.pairs.iter().flatten().map(|pair| &pair.slots);
        let rings = [
            self.send.memory(),
            self.list.memory(),
            self.completions.memory(),
            self.events.memory(),
        ];
        rings.into_iter().chain(slots).map(Arc::clone).collect()
    }

    /// Enters a pair; none if its place is another's, or out of the table.
    pub(crate) fn add_pair(&mut self, id: u32, slots: Arc<HostMemory>) -> Option<Pair> {
        let pair = Pair::new(id_index(id));
        let place = self.pairs.get_mut(usize::from(pair.index))?;
        if place.is_some() {
            return None;
        }
        *place = Some(OpenPair {
            serial: pair.serial,
            id,
            sends: 0,
            order: 0,
            quiet: [None; QUIET_MAX],
            ending: false,
            ended: false,
            slots,
        });
        Some(pair)
    }

    /// The card's name of an open pair.
    pub(crate) fn pair_id(&mut self, pair: Pair) -> Option<u32> {
        self.pair_mut(pair).map(|open| open.id)
    }

    /// The same, of a pair that is to be closed or disconnected: nothing is posted on it from now on.
    pub(crate) fn begin_closing_pair(&mut self, pair: Pair) -> Option<u32> {
        let open = self.pair_mut(pair)?;
        open.ending = true;
        Some(open.id)
    }

    /// A call that was to end a pair has come back: it has closed the pair, or not; and the card is ending the pair because of it, or not. If
    /// not, the pair is what it was before the call.
    pub(crate) fn pair_closing_ended(&mut self, pair: Pair, done: bool, heard: bool) {
        if done {
            self.retire_closed(pair);
            self.remove_pair(pair);
        } else if let Some(open) = self.pair_mut(pair) {
            open.ending = false;
            open.ended = heard || open.ended && !is_broken!(ReopensPair);
        }
    }

    /// A pair on which something may be posted.
    fn usable_pair(&mut self, pair: Pair) -> Option<&mut OpenPair> {
        self.pair_mut(pair)
            .filter(|open| !open.ending && !open.ended)
    }

    /// Whether a receive may name the pair.
    pub(crate) fn is_usable(&mut self, pair: Pair) -> bool {
        self.usable_pair(pair).is_some()
    }

    pub(crate) fn remove_pair(&mut self, pair: Pair) {
        if self.pair_mut(pair).is_some() {
            self.pairs[usize::from(pair.index)] = None;
        }
    }

    pub(crate) fn pair_mut(&mut self, pair: Pair) -> Option<&mut OpenPair> {
        let open = self.pairs.get_mut(usize::from(pair.index))?.as_mut()?;
        (open.serial == pair.serial || is_broken!(StalePair)).then_some(open)
    }

    fn pair_of_card(&self, index: u16) -> Option<Pair> {
        let open = self.pairs.get(usize::from(index))?.as_ref()?;
        Some(Pair {
            index,
            serial: open.serial,
        })
    }

    /// Whether there is a buffer for an injected send.
    pub(crate) const fn has_bounce(&self) -> bool {
        !self.bounce.is_empty()
    }

    /// Takes a buffer for an injected send.
    pub(crate) fn take_bounce(&mut self) -> Option<Buffer> {
        self.bounce.pop()
    }
}
