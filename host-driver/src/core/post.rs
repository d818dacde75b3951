//! Posting: admission, the rings, and what the library keeps of the list ring until it can be posted.

use super::{Core, FEED_PAUSE, FEED_PAUSES, Own, Phase, Ring};
use crate::claimed::Claim;
use crate::error::PostError;
use crate::link::Link;
use crate::operation::{Posting, Work};
use crate::region::Buffer;
use crate::ring::RequestRing;
use crate::table::{Entry, Had, Outstanding, Request};
use crate::transport::{PauseResult, TransportError};
use abi::event::NO_PAIR;

impl Core {
    /// Posts all that is kept before the caller sleeps: what the card takes in silence would wake nobody to post the rest. The rings move on
    /// in bounded time, unless the card has stopped one: false then.
    pub(super) fn feed_all(&mut self, link: &Link) -> bool {
        for _ in 0..FEED_PAUSES {
            self.feed(link);
            if self.queue.has_written() || !self.is_due() {
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

    /// Whether something is kept, of any endpoint, that could be posted now.
    pub(super) fn is_due(&mut self) -> bool {
        (0..self.endpoints.len()).any(|at| self.of(at).is_due())
    }
}

impl Own<'_> {
    /// Posts a request that has been [admitted](Self::admit), or keeps it behind those that the card had no room for. The doorbell is rung by the next
    /// [`ring`](Self::ring) or [`feed`](Self::feed).
    pub(crate) fn post(
        &mut self,
        wr_id: u64,
        work: Work,
        buffer: Option<Buffer>,
        entry: Entry,
    ) -> Request {
        let Posting { ring, is_kept, .. } = work.posting();
        let handle = self.queue.table.insert(Outstanding {
            buffer,
            entry: is_kept.then_some(entry),
            had: entry.is_multi().then(Had::default),
            ..Outstanding::new(self.rings.at, wr_id, work)
        });
        if let Some(target) = work.operation().target() {
            self.set_cancel(target, Some(handle));
            match ring {
                Ring::Send => self.withdraw_send(target),
                Ring::List => self.rings.backlog.withdraw(&mut self.queue.table, target),
            }
        }
        if is_kept && self.rings.backlog.keeps() {
            self.rings.backlog.keep(&mut self.queue.table, handle);
        } else {
            self.put(handle, entry);
            self.ring_for_each(ring);
        }
        handle
    }

    /// Puts a request on its ring, which has room. Not one that is queued: [`put_send`](Self::put_send) does that.
    fn put(&mut self, handle: Request, entry: Entry) {
        let Some(found) = self.queue.table.get_mut(handle) else {
            return;
        };
        let (work, buffer) = (found.work, found.buffer.as_ref().map(Buffer::local));
        let opcode = work.operation().opcode().code();
        match entry {
            Entry::Send(mut request) => {
                (request.opcode, request.request) = (opcode, handle.wire());
                self.rings.send.post(&request.to_words());
            }
            Entry::List(mut request) => {
                (request.opcode, request.request) = (opcode, handle.wire());
                if let Some(buffer) = buffer {
                    // A multi-receive that comes back has given away the front of its buffer.
                    (request.key, request.address, request.length) = buffer;
                }
                if let Some(had) = &mut found.had {
                    had.post();
                }
                if work.posting().is_kept {
                    let source = work.operation().pair();
                    if source.is_some_and(|pair| self.pair_mut(pair).is_none()) {
                        // Closed meanwhile, and its number may be another's: the card refuses what names no pair.
                        request.pair = NO_PAIR;
                    }
                    request.flags |= self.rings.backlog.posted(&mut self.queue.table, handle);
                }
                self.rings.list.post(&request.to_words());
            }
        }
    }

    /// Posts what is kept, as far as the card would look at it and the ring has room, and tells the card of all that it doesn't know.
    pub(crate) fn feed(&mut self, link: &Link) {
        if self.rings.phase == Phase::Open {
            self.discard_dropped(link);
            self.post_kept(link);
            self.post_kept_sends(link);
            self.ring(link, Ring::Send);
            self.ring(link, Ring::List);
        }
    }

    /// Rings for the entries of a ring behind its last doorbell, while the registers are the endpoint's for sure. If that can't be done now, the next call that
    /// posts, polls or waits does it; if the endpoint is closing, the first one when it is open again.
    pub(crate) fn ring(&mut self, link: &Link, ring: Ring) {
        if self.is_open() {
            self.ring_mut(ring).ring(link);
        }
    }

    fn post_kept(&mut self, link: &Link) {
        while self.rings.backlog.is_due(&mut self.queue.table) {
            if !self.has_room_for(link, Ring::List, 1) {
                return;
            }
            let Some(handle) = self.rings.backlog.take_next(&mut self.queue.table) else {
                return;
            };
            let found = self.queue.table.get_mut(handle);
            if let Some(entry) = found.and_then(|found| found.entry) {
                self.put(handle, entry);
            }
        }
    }

    /// Whether a request that has its entry of the completion queue can be posted: its ring has room, and the card knows of the entry.
    pub(super) fn has_room_for(&mut self, link: &Link, ring: Ring, entries: u16) -> bool {
        // What fails here fails the next call that needs the card, which says so.
        if !matches!(self.ring_mut(ring).has_room_for(link, entries), Ok(true)) {
            return false;
        }
        let known_free = self.queue.table.outstanding() + self.queue.completions.unrung();
        known_free <= self.queue.completions.entries() || self.queue.ring(link).is_ok()
    }

    /// Whether something is kept that could be posted now.
    fn is_due(&mut self) -> bool {
        let due = self.rings.backlog.is_due(&mut self.queue.table) || self.is_send_due();
        let dropped = !self.rings.dropped.is_empty() && !self.queue.table.is_full();
        self.rings.phase == Phase::Open && (due || dropped)
    }

    /// The program has dropped a claimed message.
    pub(crate) fn keep_dropped(&mut self, claim: Claim) {
        if self.rings.phase == Phase::Open {
            self.rings.dropped.push(claim);
        }
    }

    /// A claimed message that the program has dropped, and that is to be discarded.
    pub(crate) fn take_dropped(&mut self) -> Option<Claim> {
        self.rings.dropped.pop()
    }

    /// Does nothing, in a library that rings once for a list.
    pub(super) fn ring_for_each(&mut self, ring: Ring) {
        if is_broken!(RingsForEach)
            && let Some(shared) = self.queue.shared.upgrade()
        {
            self.ring(shared.link(), ring);
        }
    }

    const fn ring_mut(&mut self, ring: Ring) -> &mut RequestRing {
        match ring {
            Ring::Send => &mut self.rings.send,
            Ring::List => &mut self.rings.list,
        }
    }

    /// Looks whether a request can be posted or kept, and makes the card see its room. Not one that is queued:
    /// [`admit_send`](Self::admit_send) does that.
    pub(crate) fn admit(&mut self, link: &Link, work: &Work) -> Result<(), PostError> {
        let Posting { ring, is_kept, .. } = work.posting();
        let kept = is_kept && self.rings.backlog.keeps();
        self.admit_at(link, (!kept).then_some(ring), work, 1)
    }

    /// The same for a request of so many entries of its ring, or for one that is kept.
    pub(super) fn admit_at(
        &mut self,
        link: &Link,
        ring: Option<Ring>,
        work: &Work,
        entries: u16,
    ) -> Result<(), PostError> {
        if self.rings.phase != Phase::Open {
            return Err(PostError::Closed);
        }
        if link.is_closed() {
            return Err(TransportError::Closed.into());
        }
        if let Some(pair) = work.queued_on() {
            let open = self.usable_pair(pair).ok_or(PostError::InvalidPair)?;
            if !Self::has_send_left(open) {
                return Err(PostError::PairBusy);
            }
        }
        if let Some(target) = work.operation().target() {
            match self.cancel_of(target) {
                Some(None) => {}
                Some(Some(_)) | None => return Err(PostError::NothingToCancel),
            }
        }
        if work.posting().uses_claim
            && let Some(pair) = work.operation().pair()
        {
            self.usable_pair(pair).ok_or(PostError::InvalidPair)?;
        }
        if self.queue.table.is_full() {
            return Err(PostError::CompletionQueueFull);
        }
        let (has_room, full) = match ring {
            Some(Ring::Send) => (
                self.rings.send.has_room_for(link, entries)?,
                PostError::SendRingFull,
            ),
            Some(Ring::List) => (
                self.rings.list.has_room_for(link, entries)?,
                PostError::ListRingFull,
            ),
            None => return Ok(()),
        };
        if !has_room {
            return Err(full);
        }
        let known_free = self.queue.table.outstanding() + 1 + self.queue.completions.unrung();
        if known_free > self.queue.completions.entries() && !is_broken!(StarvesCard) {
            self.queue.ring(link)?;
        }
        Ok(())
    }

    /// What the library keeps of an outstanding request of this endpoint.
    pub(crate) fn work_of(&mut self, request: Request) -> Option<Work> {
        let request = self.own(request)?;
        Some(self.queue.table.get_mut(request)?.work)
    }

    /// The cancel under way for an outstanding request. None if there is no such request, or if nothing cancels it.
    pub(super) fn cancel_of(&mut self, target: Request) -> Option<Option<Request>> {
        let found = self.queue.table.get_mut(target)?;
        found.work.posting().cancelled_by?;
        Some(found.cancel)
    }

    pub(super) fn set_cancel(&mut self, target: Request, cancel: Option<Request>) {
        if let Some(found) = self.queue.table.get_mut(target) {
            found.cancel = cancel;
        }
    }
}
