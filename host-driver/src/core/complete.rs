//! Completions and events: from the card's entries to what the application gets.

use super::{Core, Own, Phase, Queue, is_refusal};
use crate::claimed::{Claim, Claimed};
use crate::completion::WorkCompletion;
use crate::endpoint::Handle;
use crate::event::{AsyncEvent, Cause};
use crate::link::Link;
use crate::pair::Pair;
use crate::region::Buffer;
use crate::shared::readable::Held;
use crate::shared::{Payload, SharedBuffer};
use crate::table::{Had, Outstanding, Place, Request, Segments};
use crate::transport::{PauseResult, TransportError};
use abi::completion::{COMPLETION_MORE, Completion, CompletionKind};
use abi::event::NO_PAIR;
use abi::status::Status;

/// Whether the card can't be reached now. Takes no time.
fn is_unreachable(link: &Link) -> bool {
    matches!(link.pause(&[], 0), PauseResult::Unreachable)
}

/// The status of a completion. A code that the ABI doesn't have isn't what a card wrote.
fn status_of(completion: &Completion) -> Status {
    Status::from_code(completion.status).unwrap_or(Status::MemoryError)
}

/// The status of a completion, unless it is one of a multi-receive and the card has another place or number for it than the library has counted: what is in the
/// buffer isn't known then.
fn settled(had: Option<Had>, completion: &Completion, status: Status) -> Status {
    let is_good = matches!(status, Status::Success | Status::Truncated);
    match had {
        Some(had) if is_good && !had.agrees(completion) => Status::MemoryError,
        _ => status,
    }
}

/// What a request has read, of one kind or of the other.
fn held(buffer: Option<Buffer>, shared: Option<SharedBuffer>) -> Option<Payload> {
    let unique = buffer.map(Payload::Unique);
    unique.or(shared.map(Payload::Shared))
}

impl Core {
    /// Whether a completion waits to be polled.
    pub(crate) fn is_ready(&mut self, link: &Link) -> bool {
        loop {
            self.feed(link);
            if !self.queue.aside.is_empty() || self.flush_next().is_some() {
                return true;
            }
            match self.queue.completions.peek() {
                // What the card wrote before it went is there, and is taken first.
                None if link.is_lost()
                    && !is_broken!(KeepsOutstanding)
                    && self.set_all_closed(link) => {}
                None if is_broken!(FlushesUnreachable)
                    && is_unreachable(link)
                    && self.set_all_closed(link) => {}
                None => return false,
                Some(entry) if !self.is_silent(&entry) => return true,
                Some(_) => drop(self.take(link)),
            }
        }
    }

    /// Takes the next completion that the application gets.
    pub(crate) fn poll(&mut self, link: &Link) -> Option<WorkCompletion> {
        while self.is_ready(link) {
            if let Some(completion) = self.take(link) {
                return Some(completion);
            }
        }
        None
    }

    /// Takes what the card never fetched of a closed endpoint, or the next entry of the queue.
    fn take(&mut self, link: &Link) -> Option<WorkCompletion> {
        let behind = is_broken!(ForgetsAside) && self.queue.completions.peek().is_some();
        if !behind && let Some(completion) = self.queue.aside.pop_front() {
            let at = self.named(&completion)?;
            return self.of(at).finish(&completion);
        }
        if let Some((at, request)) = self.flush_next() {
            let flushed = Completion {
                request: request.wire(),
                status: Status::Flushed.code(),
                ..Completion::default()
            };
            return self.of(at).finish(&flushed);
        }
        let completion = self.queue.completions.peek()?;
        let completion = self.consume(link, completion);
        match self.named(&completion) {
            Some(at) => self.of(at).finish(&completion),
            None => {
                self.queue.strays += 1;
                None
            }
        }
    }

    /// Takes the entry last peeked from the queue.
    pub(super) fn consume(&mut self, link: &Link, completion: Completion) -> Completion {
        self.notice_first(&completion);
        let queue = &mut self.queue;
        queue.completions.advance();
        // A multi-receive has completions that were reserved by no post: the card must hear that they are taken.
        let (unrung, entries) = (queue.completions.unrung(), queue.completions.entries());
        let starves = queue.table.outstanding() + unrung > entries && !is_broken!(StarvesCard);
        if unrung >= entries / 4 || starves {
            // If this fails the head stays unrung, and the next call that needs the card says so.
            let _ = queue.ring(link);
        }
        completion
    }

    /// A request that the card never fetched, of an endpoint that is closed and has no entry in the queue any more; and where that endpoint is. However much
    /// the others complete meanwhile, that is no more than the queue held when the endpoint was closed.
    fn flush_next(&mut self) -> Option<(usize, Request)> {
        let head = self.queue.completions.head();
        if is_broken!(FlushesLast) && self.queue.completions.peek().is_some() {
            return None;
        }
        for rings in &mut self.endpoints {
            let is_due = rings.phase == Phase::Closed && !rings.flushed;
            if !is_due || (head.wrapping_sub(rings.told) as i16) < 0 {
                continue;
            }
            match self.queue.flush_next(rings.at) {
                Some(request) => return Some((rings.at, request)),
                None => rings.flushed = true,
            }
        }
        None
    }

    /// Where the endpoint is of whose outstanding request a completion is. None if it is of no such request.
    pub(super) fn named(&mut self, completion: &Completion) -> Option<usize> {
        let named = self.queue.table.of_wire(completion.request);
        let found = self.queue.table.get_mut(named)?;
        let (at, kind) = (found.at, found.work.posting().kind);
        let told = CompletionKind::from_code(completion.kind);
        let of_kind = told.is_none_or(|told| told == kind || told == CompletionKind::Unknown);
        let of_place = completion.endpoint == self.endpoints[at].place;
        (of_kind && (of_place || !self.queue.tells_endpoint)).then_some(at)
    }

    /// Whether the application doesn't get a completion: an inject that went well, a refusal for want of room, or none of its requests.
    pub(super) fn is_silent(&mut self, completion: &Completion) -> bool {
        let named = self.named(completion);
        named.is_none_or(|at| self.of(at).is_silent(completion))
    }

    /// What a send that has ended in silence has read: to be dropped without the queue's lock, because a region may end with it.
    pub(crate) fn take_retired(&mut self) -> Option<Held> {
        self.queue.retired.pop()
    }
}

impl Queue {
    /// Of an endpoint, a request to be flushed. One that has nothing to tell then has ended.
    fn flush_next(&mut self, at: usize) -> Option<Request> {
        loop {
            let request = self.table.oldest_of(at)?;
            let found = self.table.get(request)?;
            let part = found.part_of.is_some();
            if !part && !found.work.operation().is_silent(Status::Flushed) {
                return Some(request);
            }
            drop(self.table.remove(request));
        }
    }
}

impl Own<'_> {
    /// The same, of a completion of a request of this endpoint.
    fn is_silent(&mut self, completion: &Completion) -> bool {
        let named = self.queue.table.of_wire(completion.request);
        let Some(found) = self.queue.table.get_mut(named) else {
            return true;
        };
        let (work, part) = (found.work, found.part_of.is_some());
        let status = status_of(completion);
        if part {
            return true;
        }
        let target = work
            .operation()
            .target()
            .filter(|_| status != Status::Flushed);
        if target.is_some_and(|target| self.queue.table.place(target) == Some(Place::Withdrawn)) {
            // The target completes with it, unless parts of it are under way.
            return target.is_some_and(|target| self.has_parts_under_way(target));
        }
        work.posting().is_kept && is_refusal(completion) || work.operation().is_silent(status)
    }

    /// The card is done with the request that a completion names, though the program hasn't polled it.
    pub(super) fn returned(&mut self, completion: &Completion) {
        if completion.flags & COMPLETION_MORE == 0 {
            let handle = self.queue.table.of_wire(completion.request);
            self.rings.backlog.returned(handle);
        }
    }

    /// Ends the request that a completion names. None if the application gets none.
    pub(super) fn finish(&mut self, completion: &Completion) -> Option<WorkCompletion> {
        let handle = self.queue.table.of_wire(completion.request);
        let silent = self.is_silent(completion);
        if completion.flags & COMPLETION_MORE != 0 {
            return self.finish_one(completion);
        }
        self.rings.backlog.returned(handle);
        let whole = self.queue.table.get(handle).and_then(|found| found.part_of);
        if let Some(whole) = whole {
            self.part_ended(handle, whole, completion);
            return None;
        }
        if silent && is_refusal(completion) {
            let behind = completion.status == Status::Behind.code();
            let waiting = behind.then(|| self.queue.table.of_wire(completion.handle));
            self.rings
                .backlog
                .refused(&mut self.queue.table, handle, waiting);
            return None;
        }
        let Outstanding {
            at: _,
            wr_id,
            work,
            buffer,
            shared,
            segments,
            entry: _,
            had,
            cancel,
            order,
            told,
            expires_at: _,
            noticed: _,
            parts,
            part_of: _,
        } = self.queue.table.remove(handle)?;
        self.free_parts(parts);
        if let Some(target) = work.operation().target() {
            if self.queue.table.place(target) == Some(Place::Withdrawn)
                && self.has_parts_under_way(target)
            {
                // The target ends as cancelled when they have.
                return None;
            }
            self.set_cancel(target, None);
            if self.queue.table.place(target) == Some(Place::Withdrawn) {
                return self.finish(&Completion {
                    request: target.wire(),
                    status: Status::Cancelled.code(),
                    ..Completion::default()
                });
            }
        }
        let named = work.operation().pair();
        let open = named.filter(|&pair| self.pair_mut(pair).is_some());
        let mut status = settled(had, completion, self.status_on(named, completion));
        if let Some(parts) = &parts
            && status == Status::Flushed
        {
            status = parts.end(status);
        }
        if status == Status::Cancelled
            && let Some(cancel) = cancel
        {
            self.queue.table.remove(cancel);
        }
        if status == Status::Cancelled
            && let Some(told) = told
            && !is_broken!(TellsCancelled)
        {
            status = told;
        }
        let of_message =
            work.posting().is_of_message && matches!(status, Status::Success | Status::Truncated);
        let mut pair = self.pair_of_card(completion.pair).filter(|_| of_message);
        if let Some(queued) = work.queued_on() {
            if matches!(
                status,
                Status::Success | Status::NotReady | Status::RemoteAccess
            ) {
                self.retire_before(queued, order);
            }
            if let Some(open) = self.pair_mut(queued) {
                open.sends -= 1;
            }
            pair = open;
        }
        let mut told = WorkCompletion {
            wr_id,
            request: handle,
            endpoint: self.rings.place,
            kind: work.kind(),
            status,
            pair,
            context: completion.context,
            match_bits: completion.match_bits,
            immediate: completion.immediate,
            length: completion.length,
            buffer,
            offset: had.map_or(0, |had| had.bytes),
            completions: had.map_or(0, |had| had.completions + 1),
            shared,
            segments,
            more: false,
            claimed: None,
        };
        work.operation().complete(self, completion, &mut told);
        if !silent {
            self.count_lost(&work, status);
        }
        (!silent).then_some(told)
    }

    /// The status of a completion of a request that names this pair: the card doesn't know one that is closed, and its requests have been flushed.
    pub(super) fn status_on(&mut self, pair: Option<Pair>, completion: &Completion) -> Status {
        let status = status_of(completion);
        let closed = pair.is_some_and(|pair| self.pair_mut(pair).is_none());
        match closed && matches!(status, Status::InvalidPair | Status::InvalidClaim) {
            true => Status::Flushed,
            false => status,
        }
    }

    /// A message that a claim has taken, for the program. None if the endpoint isn't open any more.
    pub(crate) fn claimed(&self, claim: Claim) -> Option<Claimed> {
        let shared = self.queue.shared.upgrade()?;
        let endpoint = Handle::new(shared, self.rings.at, self.rings.id);
        self.is_open().then(|| Claimed::new(endpoint, claim))
    }

    /// A send has ended of which the program isn't told: what it has read is dropped when nobody has the queue's lock.
    pub(crate) fn keep_retired(
        &mut self,
        buffer: Option<Buffer>,
        shared: Option<SharedBuffer>,
        segments: Segments,
    ) {
        let held = held(buffer, shared);
        self.queue.retired.push((held, segments));
    }

    /// A send of the pair has been delivered or refused by the peer: the quiet ones before it have been delivered.
    pub(super) fn retire_before(&mut self, pair: Pair, order: u32) {
        let Some(open) = self.pair_mut(pair) else {
            return;
        };
        let before = |&(quiet, _): &(u32, Request)| {
            (quiet.wrapping_sub(order) as i32) < 0 || is_broken!(RetiresTooMany)
        };
        let ended = open.quiet.map(|found| found.filter(before));
        for (_, request) in ended.into_iter().flatten() {
            let work = self.queue.table.get(request).map(|found| found.work);
            if let Some(open) = self.pair_mut(pair)
                && let Some(work) = work
            {
                open.forget_quiet(request);
                open.sends -= 1;
                open.left_card(&work);
            }
            self.retire(request);
        }
    }

    /// The card has closed the pair, and has told of every send that wasn't delivered: the other quiet ones have been.
    pub(super) fn retire_closed(&mut self, pair: Pair) {
        let Some(open) = self.pair_mut(pair) else {
            return;
        };
        let quiet = std::mem::take(&mut open.quiet);
        for (_, request) in quiet.into_iter().flatten() {
            let names = |entry: Completion| entry.request == request.wire();
            let mut aside = self.queue.aside.iter().copied();
            if !aside.any(names) && !self.queue.completions.written().any(names) {
                self.retire(request);
            }
        }
    }

    fn retire(&mut self, request: Request) {
        if let Some(ended) = self.queue.table.remove(request) {
            self.keep_retired(ended.buffer, ended.shared, ended.segments);
        }
    }

    /// One message of a multi-receive that stays: the front of its buffer, which the message fills, is given to the application. So is that of a message that
    /// couldn't be written: the card is done with it, and goes on behind.
    fn finish_one(&mut self, completion: &Completion) -> Option<WorkCompletion> {
        let handle = self.queue.table.of_wire(completion.request);
        let pair = self.pair_of_card(completion.pair);
        let found = self.queue.table.get_mut(handle)?;
        let (Some(rest), Some(had)) = (found.buffer.as_mut(), found.had.as_mut()) else {
            // Only a multi-receive stays.
            self.queue.strays += 1;
            return None;
        };
        let length = usize::try_from(completion.length).map_or(rest.len(), |n| n.min(rest.len()));
        let before = *had;
        had.take(length);
        Some(WorkCompletion {
            wr_id: found.wr_id,
            request: handle,
            endpoint: self.rings.place,
            kind: found.work.kind(),
            status: settled(Some(before), completion, status_of(completion)),
            pair,
            context: completion.context,
            match_bits: completion.match_bits,
            immediate: completion.immediate,
            length: completion.length,
            buffer: Some(rest.split_to(length)),
            offset: before.bytes,
            completions: 0,
            shared: None,
            segments: Segments::default(),
            more: true,
            claimed: None,
        })
    }

    /// Takes the next event: the card's first, then the library's own. Out of reach, the card hears of that at a later poll; it can't be reached is said when no event is left.
    pub(crate) fn poll_event(&mut self, link: &Link) -> Result<Option<AsyncEvent>, TransportError> {
        while let Some(event) = self.rings.events.peek() {
            if self.rings.event_noticed == self.rings.events.head() {
                self.rings.event_noticed = self.rings.event_noticed.wrapping_add(1);
            }
            self.rings.events.advance();
            let number = self.rings.events_taken;
            self.rings.events_taken += 1;
            let rung = self.ring_for_events(link);
            if is_broken!(LosesEvent) {
                rung?;
            }
            if self.rings.events.peek().is_none() {
                self.suspect_lost_events();
                self.look_for_lost_events(link);
            }
            let cause = Cause::from_code(event.cause);
            // No card raises the library's own.
            let Some(cause) = cause.filter(|&cause| cause != Cause::PeerFailedPending) else {
                self.queue.strays += 1;
                continue;
            };
            let pair = (event.pair != NO_PAIR)
                .then(|| self.pair_of_event(event.pair, number))
                .flatten();
            if let Some(failed) = pair.filter(|_| cause == Cause::PeerFailed) {
                self.note_failed(1 << failed.index);
            }
            return Ok(Some(AsyncEvent {
                cause,
                pair,
                info: event.info,
                detail: event.detail,
            }));
        }
        self.look_for_lost_events(link);
        if let Some(pending) = self.take_pending() {
            return Ok(Some(pending));
        }
        self.ring_for_events(link)?;
        Ok(None)
    }

    /// Tells the card which events have been taken, unless it knows.
    fn ring_for_events(&mut self, link: &Link) -> Result<(), TransportError> {
        let events = &mut self.rings.events;
        if self.rings.phase == Phase::Open && events.unrung() > 0 {
            events.ring(link)?;
        }
        Ok(())
    }
}
