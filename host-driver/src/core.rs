//! The heart of an endpoint: its four rings and what is outstanding on them.
//!
//! ```text
//!            post: reserve a slot ► write entry ► tail doorbell
//!  free slots ─────────────────────────────────────────────────► card
//!       ▲                                                          │
//!       └── poll: acquire entry ► find slot ► head doorbell ◄──────┘
//! ```
//!
//! **Reservation.** A slot stands for an entry of the completion queue, so the card always has room for the
//! completion of what was posted. The card counts an entry as free only when it has been told, and the head doorbell is
//! rung once for a quarter of the queue; a post rings it first if the card would otherwise find less room than was
//! reserved, and would never fetch the request.
//!
//! **Cancel.** A cancel reserves a slot as well, and goes by the ring that its target went by, so that the card
//! sees it later. If the target completes as `Cancelled` there is no completion of the cancel, and both slots
//! are free; in any other case the cancel completes as `TooLate`. A receive that the card refused for want of room is with the library
//! ([`crate::backlog`]): then the cancel, which finds nothing, comes back as the completion of the receive.
//!
//! **Claims.** A claimed message that the program drops is discarded: its handle is kept until a slot is free and the ring has room.

mod arm;
mod complete;
mod post;

use crate::backlog::Backlog;
use crate::claimed::Claim;
use crate::endpoint::Shared;
use crate::error::{PostError, WaitError};
use crate::event::{AsyncEvent, Cause};
use crate::link::Link;
use crate::memory::HostMemory;
use crate::pair::Pair;
use crate::query::EndpointStatus;
use crate::region::Buffer;
use crate::ring::{EntryQueue, RequestRing};
use crate::table::{Place, Request, RequestTable};
use abi::completion::Completion;
use abi::event::Event;
use abi::limits::MAX_CREDITS;
use abi::mailbox::id_index;
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

/// A pair that is open.
pub(crate) struct OpenPair {
    serial: u64,
    /// The card's name of it.
    id: u32,
    /// Sends that have not completed.
    sends: u16,
    /// A close is under way: nothing is posted on it.
    closing: bool,
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

/// Which of the two request rings.
#[derive(Clone, Copy)]
pub(crate) enum Ring {
    Send,
    List,
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
    event_told: u16,
    strays: u64,
    phase: Phase,
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
            event_told: 0,
            strays: 0,
            phase: Phase::Open,
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

    /// Says whose heart this is.
    pub(crate) fn set_shared(&mut self, shared: Weak<Shared>) {
        self.shared = shared;
    }

    pub(crate) fn outstanding(&self) -> u16 {
        self.table.outstanding()
    }

    pub(crate) fn strays(&self) -> u64 {
        self.strays
    }

    pub(crate) fn is_closed(&self) -> bool {
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

        self.phase == Phase::Closed
    }

    /// Whether the endpoint's registers are its own for sure.
    pub(crate) fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// A close begins, or was not begun after all.
    pub(crate) fn set_closing(&mut self, closing: bool) {
        if self.phase != Phase::Closed {
            self.phase = if closing { Phase::Closing } else { Phase::Open };
        }
    }

    /// The card has forgotten the endpoint: what it never fetched is flushed here, and the memory of the pairs is given back.
    pub(crate) fn set_closed(&mut self) {
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

    pub(crate) fn add_pair(&mut self, id: u32, slots: Arc<HostMemory>) -> Option<Pair> {
        let pair = Pair::new(id_index(id));
        *self.pairs.get_mut(usize::from(pair.index))? = Some(OpenPair {
            serial: pair.serial,
            id,
            sends: 0,
            closing: false,
            slots,
        });
        Some(pair)
    }

    /// The card's name of an open pair.
    pub(crate) fn pair_id(&mut self, pair: Pair) -> Option<u32> {
        self.pair_mut(pair).map(|open| open.id)
    }

    /// The same, of a pair that is to be closed: nothing is posted on it from now on.
    pub(crate) fn begin_closing_pair(&mut self, pair: Pair) -> Option<u32> {
        let open = self.pair_mut(pair)?;
        open.closing = true;
        Some(open.id)
    }

    /// A close of a pair has ended: it has closed the pair, or not; and the card has heard of it, or not.
    pub(crate) fn pair_closing_ended(&mut self, pair: Pair, done: bool, heard: bool) {
        if done {
            self.remove_pair(pair);
        } else if let Some(open) = self.pair_mut(pair) {
            open.closing = heard;
        }
    }

    /// A pair on which something may be posted.
    fn usable_pair(&mut self, pair: Pair) -> Option<&mut OpenPair> {
        self.pair_mut(pair).filter(|open| !open.closing)
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
        (open.serial == pair.serial).then_some(open)
    }

    fn pair_of_card(&self, index: u16) -> Option<Pair> {
        let open = self.pairs.get(usize::from(index))?.as_ref()?;
        Some(Pair {
            index,
            serial: open.serial,
        })
    }

    /// Takes a buffer for an injected send.
    pub(crate) fn take_bounce(&mut self) -> Option<Buffer> {
        self.bounce.pop()
    }

    /// Gives such a buffer back.
    pub(crate) fn give_bounce(&mut self, buffer: Buffer) {
        self.bounce.push(buffer);
    }

    /// Posts a receive, a probe or a claim, or keeps it behind those that the card had no room for.
    pub(crate) fn post_list(
        &mut self,
        link: &Link,
        wr_id: u64,
        work: Work,
        buffer: Option<Buffer>,
        entry: ListEntry,
    ) -> Result<Request, NotPosted> {
        self.feed(link);
        let keeps = self.backlog.keeps();
        if let Err(error) = self.admit(link, (!keeps).then_some(Ring::List), &work) {
            return Err((error, buffer));
        }
        let request = Outstanding {
            wr_id,
            work,
            buffer,
            entry: Some(entry),
        };
        let handle = match self.table.insert(request) {
    /// Whether there is a buffer for an injected send.
    pub(crate) const fn has_bounce(&self) -> bool {
        !self.bounce.is_empty()
    }

            Ok(handle) => handle,
            Err(buffer) => return Err((PostError::CompletionQueueFull, buffer)),
        };
        if keeps {
            self.backlog.keep(&mut self.table, handle);
            self.feed(link);
        } else {
            self.post_entry(link, handle);
        }
        Ok(handle)
    }

    /// Puts a receive, a probe or a claim on the ring, which has room.
    fn post_entry(&mut self, link: &Link, handle: Request) {
        let found = self.table.get_mut(handle).and_then(|found| found.entry);
        let Some(ListEntry {
            mut request,
            source,
        }) = found
        else {
            return;
        };
        request.request = handle.wire();
        if let Some(buffer) = self.table.get_mut(handle).and_then(|f| f.buffer.as_ref()) {
            // A multi-receive that comes back has given away the front of its buffer.
            (request.key, request.address, request.length) = buffer.local();
        }
        if source.is_some_and(|pair| self.pair_mut(pair).is_none()) {
            // Closed meanwhile, and its number may be another's: the card refuses what names no pair.
            request.pair = NO_PAIR;
        }
        request.flags |= self.backlog.posted(&mut self.table, handle);
        self.list.post(link, &request.to_words());
    }

    /// Posts what is kept, as far as the card would look at it and the ring has room.
    pub(crate) fn feed(&mut self, link: &Link) {
        if self.phase == Phase::Open {
            self.send.ring(link);
            self.list.ring(link);
            self.discard_dropped(link);
        }
        while self.phase == Phase::Open && self.backlog.is_due(&mut self.table) {
            // What fails here fails the next call that needs the card, which says so.
            if !matches!(self.list.has_room(link), Ok(true)) {
                return;
            }
            if self.table.outstanding() + self.completions.unrung() > self.completions.entries()
                && self.completions.ring(link).is_err()
            {
                return;
            }
            match self.backlog.take_next(&mut self.table) {
                Some(handle) => self.post_entry(link, handle),
                None => return,
            }
        }
    }

    /// Posts all that is kept before the caller sleeps: what the card takes in silence would wake nobody to post the rest. The ring moves on
    /// in bounded time, unless the card has stopped it: false then.
    fn feed_all(&mut self, link: &Link) -> bool {
        for _ in 0..FEED_PAUSES {
            self.feed(link);
            if self.phase != Phase::Open || self.completions.peek().is_some() || !self.is_due() {
                return true;
            }
            let next = link.now().saturating_add(FEED_PAUSE);
            if matches!(
                link.pause(&[], next),
                PauseResult::Closed | PauseResult::Unreachable
            ) {
                return false;
            }
        }
        false
    }

    /// Whether something is kept that could be posted now.
    fn is_due(&mut self) -> bool {
        self.backlog.is_due(&mut self.table) || !self.dropped.is_empty() && !self.table.is_full()
    }

    /// Receives a claimed message into a buffer.
    pub(crate) fn receive_claimed(
        &mut self,
        link: &Link,
        wr_id: u64,
        claim: Claim,
        buffer: Buffer,
    ) -> Result<Request, NotPosted> {
        self.feed(link);
        let (key, address, length) = buffer.local();
        let words = |request: Request| {
            ListRequest {
                opcode: Opcode::ReceiveClaimed.code(),
                request: request.wire(),
                target: claim.handle,
                key,
                address,
                length,
                ..ListRequest::default()
            }
            .to_words()
        };
        let work = Work::ReceiveClaimed { claim };
        self.post(link, Ring::List, wr_id, work, Some(buffer), words)
    }

    /// Discards a claimed message.
    pub(crate) fn discard(
        &mut self,
        link: &Link,
        wr_id: u64,
        claim: Claim,
    ) -> Result<Request, PostError> {
        self.feed(link);
        self.post_discard(link, wr_id, claim, false)
    }

    fn post_discard(
        &mut self,
        link: &Link,
        wr_id: u64,
        claim: Claim,
        silent: bool,
    ) -> Result<Request, PostError> {
        let words = |request: Request| {
            ListRequest {
                opcode: Opcode::Discard.code(),
                request: request.wire(),
                target: claim.handle,
                ..ListRequest::default()
            }
            .to_words()
        };
        let work = Work::Discard { claim, silent };
        self.post(link, Ring::List, wr_id, work, None, words)
            .map_err(|(error, _)| error)
    }

    /// The program has dropped a claimed message.
    pub(crate) fn keep_dropped(&mut self, claim: Claim) {
        if self.phase == Phase::Open {
            self.dropped.push(claim);
        }
    }

    /// Discards what the program has dropped, as far as there is room. A closed pair has taken its messages with it.
    fn discard_dropped(&mut self, link: &Link) {
        while let Some(claim) = self.dropped.pop() {
            let open = self.pair_mut(claim.pair).is_some();
            let posted = open.then(|| self.post_discard(link, 0, claim, true));
            if let Some(Err(PostError::ListRingFull | PostError::CompletionQueueFull)) = posted {
                self.dropped.push(claim);
                return;
            }
        }
    }

    /// Posts a send or a cancel, or uses a claim. `words` makes the ring entry from the handle.
    pub(crate) fn post(
        &mut self,
        link: &Link,
        ring: Ring,
        wr_id: u64,
        work: Work,
        buffer: Option<Buffer>,
        words: impl FnOnce(Request) -> [u64; REQUEST_WORDS],
    ) -> Result<Request, NotPosted> {
        if let Err(error) = self.admit(link, Some(ring), &work) {
            return Err((error, buffer));
        }
        let request = Outstanding {
            wr_id,
            work,
            buffer,
            entry: None,
        };
        let handle = match self.table.insert(request) {
            Ok(handle) => handle,
            Err(buffer) => return Err((PostError::CompletionQueueFull, buffer)),
        };
        match work {
            Work::Send { pair, serial, .. } => {
                if let Some(open) = self.pair_mut(Pair {
                    index: pair,
                    serial,
                }) {
                    open.sends += 1;
                }
            }
            Work::Cancel { target } => {
                self.set_cancel(target, Some(handle));
                self.backlog.withdraw(&mut self.table, target);
            }
            Work::Receive { .. }
            | Work::Probe
            | Work::Claim
            | Work::ReceiveClaimed { .. }
            | Work::Discard { .. } => {}
        }
        let ring = match ring {
            Ring::Send => &mut self.send,
            Ring::List => &mut self.list,
        };
        ring.post(link, &words(handle));
        Ok(handle)
    }

    /// Looks whether there is room for a request everywhere, and makes the card see it.
    fn admit(&mut self, link: &Link, ring: Option<Ring>, work: &Work) -> Result<(), PostError> {
        if self.phase != Phase::Open {
            return Err(PostError::Closed);
        }
        if link.is_closed() {
            return Err(TransportError::Closed.into());
        }
        match *work {
            Work::Send { pair, serial, .. } => {
                let pair = Pair {
                    index: pair,
                    serial,
                };
                let open = self.usable_pair(pair).ok_or(PostError::InvalidPair)?;
                if open.sends >= SEND_QUEUE_DEPTH {
                    return Err(PostError::PairBusy);
                }
            }
            Work::Cancel { target } => match self.cancel_of(target) {
                Some(None) => {}
                Some(Some(_)) | None => return Err(PostError::NothingToCancel),
            },
            Work::ReceiveClaimed { claim } | Work::Discard { claim, .. } => {
                self.usable_pair(claim.pair).ok_or(PostError::InvalidPair)?;
            }
            Work::Receive { .. } | Work::Probe | Work::Claim => {}
        }
        if self.table.is_full() {
            return Err(PostError::CompletionQueueFull);
        }
        let (has_room, full) = match ring {
            Some(Ring::Send) => (self.send.has_room(link)?, PostError::SendRingFull),
            Some(Ring::List) => (self.list.has_room(link)?, PostError::ListRingFull),
            None => return Ok(()),
        };
        if !has_room {
            return Err(full);
        }
        if self.table.outstanding() + 1 + self.completions.unrung() > self.completions.entries() {
            self.completions.ring(link)?;
        }
        Ok(())
    }

    /// The pair that an outstanding send goes by. None if the request isn't one.
    pub(crate) fn sent_on(&mut self, request: Request) -> Option<u16> {
        match self.table.get_mut(request)?.work {
            Work::Send { pair, .. } => Some(pair),
            Work::Receive { .. }
            | Work::Cancel { .. }
            | Work::Probe
            | Work::Claim
            | Work::ReceiveClaimed { .. }
            | Work::Discard { .. } => None,
        }
    }

    /// The cancel under way for an outstanding send or receive. None if the request isn't one.
    fn cancel_of(&mut self, target: Request) -> Option<Option<Request>> {
        self.table.get_mut(target)?.work.cancel_mut().copied()
    }

    fn set_cancel(&mut self, target: Request, cancel: Option<Request>) {
        let found = self.table.get_mut(target);
        if let Some(slot) = found.and_then(|found| found.work.cancel_mut()) {
            *slot = cancel;
        }
    }

    /// Whether a completion waits to be polled.
    pub(crate) fn is_ready(&mut self, link: &Link) -> bool {
        loop {
            self.feed(link);
            match self.completions.peek() {
                None if self.phase == Phase::Closed => return self.flush_next().is_some(),
                // What the card wrote before it went is there, and is taken first.
                None if link.is_lost() => self.set_closed(),
                None => return false,
                Some(words) if !self.is_silent(&Completion::from_words(&words)) => return true,
                Some(_) => drop(self.take(link)),
            }
        }
    }

    /// Whether the application isn't told of a completion: an inject that went well, a refusal for want of room, or none of its requests.
    fn is_silent(&mut self, completion: &Completion) -> bool {
        match self.named(completion) {
            Some(Work::Send { inject, .. }) => {
                inject && completion.status == Status::Success.code()
            }
            Some(Work::Receive { .. } | Work::Probe | Work::Claim) => is_refusal(completion),
            Some(Work::Discard { silent, .. }) => silent,
            Some(Work::Cancel { .. } | Work::ReceiveClaimed { .. }) => false,
            None => true,
        }
    }

    /// The outstanding request that a completion is of.
    fn named(&mut self, completion: &Completion) -> Option<Work> {
        let work = self
            .table
            .get_mut(self.table.of_wire(completion.request))?
            .work;
        let kind = WcKind::from_card(completion.kind);
        kind.is_none_or(|kind| kind == work.kind()).then_some(work)
    }

    /// In a closed endpoint, a request that the card never fetched. A cancel of that sort has nothing to tell, nor has a discard that nobody asked for.
    fn flush_next(&mut self) -> Option<Request> {
        loop {
            let request = self.table.any()?;
            match self.table.get_mut(request)?.work {
                Work::Cancel { .. } | Work::Discard { silent: true, .. } => {
                    drop(self.table.remove(request));
                }
                _ => return Some(request),
            }
        }
    }

    /// Takes the next completion that the application is told of.
    pub(crate) fn poll(&mut self, link: &Link) -> Option<WorkCompletion> {
        while self.is_ready(link) {
            if let Some(completion) = self.take(link) {
                return Some(completion);
            }
        }
        None
    }

    /// Takes the next entry of the queue, or after the end of a closed queue what the card never fetched.
    fn take(&mut self, link: &Link) -> Option<WorkCompletion> {
        let Some(words) = self.completions.peek() else {
            let request = self.flush_next()?;
            let flushed = Completion {
                request: request.wire(),
                status: Status::Flushed.code(),
                ..Completion::default()
            };
            return self.finish(&flushed);
        };
        self.completions.advance();
        // A multi-receive has completions that were reserved by no post: the card must hear that they are taken.
        let (unrung, entries) = (self.completions.unrung(), self.completions.entries());
        let due = unrung >= entries / 4 || self.table.outstanding() + unrung > entries;
        if due && self.phase == Phase::Open {
            // If this fails the head stays unrung, and the next call that needs the card says so.
            let _ = self.completions.ring(link);
        }
        self.finish(&Completion::from_words(&words))
    }

    /// Ends the request that a completion names. None if the application isn't told.
    fn finish(&mut self, completion: &Completion) -> Option<WorkCompletion> {
        let handle = self.table.of_wire(completion.request);
        let silent = self.is_silent(completion);
        if self.named(completion).is_none() {
            self.strays += 1;
            return None;
        }
        if completion.flags & COMPLETION_MORE != 0 {
            return self.finish_one(completion);
        }
        self.backlog.returned(handle);
        if silent && is_refusal(completion) {
            let behind = completion.status == Status::Behind.code();
            let waiting = behind.then(|| self.table.of_wire(completion.handle));
            self.backlog.refused(&mut self.table, handle, waiting);
            return None;
        }
        let Outstanding {
            wr_id,
            mut work,
            mut buffer,
            entry,
        } = self.table.remove(handle)?;
        if let Work::Cancel { target } = work
            && self.table.place(target) == Some(Place::Withdrawn)
        {
            self.set_cancel(target, None);
            return self.finish(&Completion {
                request: target.wire(),
                status: Status::Cancelled.code(),
                ..Completion::default()
            });
        }
        // A code that the ABI doesn't have isn't what a card wrote.
        let mut status = Status::from_code(completion.status).unwrap_or(Status::MemoryError);
        if let Some(ListEntry {
            source: Some(source),
            ..
        }) = entry
            && status == Status::InvalidPair
            && self.pair_mut(source).is_none()
        {
            status = Status::Flushed;
        }
        if let Work::ReceiveClaimed { claim } | Work::Discard { claim, .. } = work
            && status == Status::InvalidClaim
            && self.pair_mut(claim.pair).is_none()
        {
            status = Status::Flushed;
        }
        let mut pair = self.pair_of_card(completion.pair);
        if matches!(status, Status::Cancelled)
            && let Some(&mut Some(cancel)) = work.cancel_mut()
        {
            self.table.remove(cancel);
        }
        match work {
            Work::Send {
                pair: index,
                serial,
                inject,
                ..
            } => {
                let sent_on = Pair { index, serial };
                if let Some(open) = self.pair_mut(sent_on) {
                    open.sends -= 1;
                    pair = Some(sent_on);
                } else {
                    pair = None;
                }
                if inject && let Some(buffer) = buffer.take() {
                    self.bounce.push(buffer);
                }
            }
            Work::Cancel { target } => self.set_cancel(target, None),
            Work::Receive { .. }
            | Work::Probe
            | Work::Claim
            | Work::ReceiveClaimed { .. }
            | Work::Discard { .. } => {}
        }
        let has_source = match work.kind() {
            WcKind::Send => true,
            WcKind::Receive | WcKind::Probe | WcKind::Claim => {
                matches!(status, Status::Success | Status::Truncated)
            }
            WcKind::Cancel | WcKind::Discard => false,
        };
        let found =
            matches!(work, Work::Claim) && status == Status::Success && self.phase == Phase::Open;
        let claimed = pair.filter(|_| found).and_then(|pair| {
            let handle = completion.handle;
            Some(Claimed::new(self.shared.upgrade()?, Claim { handle, pair }))
        });
        (!silent).then_some(WorkCompletion {
            wr_id,
            request: handle,
            kind: work.kind(),
            status,
            pair: pair.filter(|_| has_source),
            context: completion.context,
            match_bits: completion.match_bits,
            immediate: completion.immediate,
            length: completion.length,
            buffer,
            more: false,
            claimed,
        })
    }

    /// One message of a multi-receive that stays: the front of its buffer, which the message fills, is given to the application.
    fn finish_one(&mut self, completion: &Completion) -> Option<WorkCompletion> {
        let handle = self.table.of_wire(completion.request);
        let pair = self.pair_of_card(completion.pair);
        let found = self.table.get_mut(handle)?;
        let rest = found.buffer.as_mut()?;
        let length = usize::try_from(completion.length).map_or(rest.len(), |n| n.min(rest.len()));
        Some(WorkCompletion {
            wr_id: found.wr_id,
            request: handle,
            kind: WcKind::Receive,
            status: Status::from_code(completion.status).unwrap_or(Status::MemoryError),
            pair,
            context: completion.context,
            match_bits: completion.match_bits,
            immediate: completion.immediate,
            length: completion.length,
            buffer: Some(rest.split_to(length)),
            more: true,
            claimed: None,
        })
    }

    /// Takes the next event.
    pub(crate) fn poll_event(&mut self, link: &Link) -> Result<Option<AsyncEvent>, TransportError> {
        while let Some(words) = self.events.peek() {
            if self.event_told == self.events.head() {
                self.event_told = self.event_told.wrapping_add(1);
            }
            self.events.advance();
            if self.phase == Phase::Open {
                self.events.ring(link)?;
            }
            let event = Event::from_words(&words);
            if let Some(cause) = Cause::from_code(event.cause) {
                return Ok(Some(AsyncEvent {
                    cause,
                    pair: (event.pair != NO_PAIR)
                        .then(|| self.pair_of_card(event.pair))
                        .flatten(),
                    info: event.info,
                }));
            }
            self.strays += 1;
        }
        Ok(None)
    }

    /// Arms the completion interrupt, unless it is still armed at the next entry. Look once more
    /// before pausing: the line shows no edge if it was high and the queue isn't empty.
    pub(crate) fn arm_completions(&mut self, link: &Link) -> Result<Watch, TransportError> {
        loop {
            let fed = self.feed_all(link);
            let watch = self.arm_at_head(link)?;
            // What the application isn't told of may have come before the arming, and then shows no edge either.
            let armed = self.completion_armed;
            let told = self.is_ready(link);
            let asleep = armed == Some(self.completions.head()) || self.phase != Phase::Open;
            if told || asleep && (!fed || self.phase != Phase::Open || !self.is_due()) {
                return Ok(watch);
            }
        }
    }

    /// Arms both interrupts at the next entries that the card will write, for who waits for an event and takes none.
    pub(crate) fn arm_for_event(&mut self, link: &Link) -> Result<Watch, TransportError> {
        let watch = link.watch(Line::Endpoint(self.endpoint));
        if self.phase != Phase::Open {
            return Ok(watch);
        }
        let page = endpoint_page(self.endpoint);
        let next = self.completions.next_unwritten();
        if self.completion_armed != Some(next) {
            link.write(page + COMPLETION_ARM, u32::from(next))?;
            self.completion_armed = Some(next);
        }
        let next = self.events.next_unwritten();
        if self.event_armed != Some(next) {
            link.write(page + EVENT_ARM, u32::from(next))?;
            self.event_armed = Some(next);
        }
        Ok(watch)
    }

    fn arm_at_head(&mut self, link: &Link) -> Result<Watch, TransportError> {
        let watch = link.watch(Line::Endpoint(self.endpoint));
        if self.phase != Phase::Open {
            return Ok(watch);
        }
        let page = endpoint_page(self.endpoint);
        let head = self.completions.head();
        // An interrupt that is armed at an entry not yet written has not been raised.
        if self.completion_armed != Some(head) || self.completions.is_written(head) {
            link.write(page + COMPLETION_ARM, u32::from(head))?;
            self.completion_armed = Some(head);
        }
        // The line is shared: events that nobody waits for must not hold it high.
        if let Some(armed) = self.event_armed {
            let head = self.events.head();
            let taken = (armed.wrapping_sub(head) as i16) < 0;
            let mut next = if taken { head } else { armed };
            while self.events.is_written(next) {
                next = next.wrapping_add(1);
            }
            if next != armed {
                link.write(page + EVENT_ARM, u32::from(next))?;
                self.event_armed = Some(next);
            }
        }
        Ok(watch)
    }

    /// Arms both interrupts, unless an event has come that no wait was interrupted by.
    pub(crate) fn arm(&mut self, link: &Link) -> Result<Watch, WaitError> {
        let watch = self.arm_completions(link)?;
        if self.event_armed.is_none() && self.phase == Phase::Open {
            let register = endpoint_page(self.endpoint) + EVENT_ARM;
            link.write(register, u32::from(self.event_told))?;
            self.event_armed = Some(self.event_told);
        }
        if self.events.is_written(self.event_told) {
            self.event_told = self.event_told.wrapping_add(1);
            return Err(WaitError::Interrupted);
        }
        Ok(watch)
    }
}
