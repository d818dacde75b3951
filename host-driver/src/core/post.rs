//! Posting: admission, the rings, and what the library keeps of the list ring until it can be posted.

use super::{Core, FEED_PAUSE, FEED_PAUSES, Own, Phase, Ring};
use crate::claimed::Claim;
use crate::error::{PostError, Refused};
use crate::link::Link;
use crate::pair::Pair;
use crate::region::Buffer;
use crate::ring::{REQUEST_WORDS, RequestRing};
use crate::table::{Entry, ListEntry, Outstanding, Request, Segments, Work};
use crate::transport::{PauseResult, TransportError};
use abi::event::NO_PAIR;
use abi::request::{ListRequest, Opcode};

impl Core {
    /// Posts all that is kept before the caller sleeps: what the card takes in silence would wake nobody to post the rest. The rings move on
    /// in bounded time, unless the card has stopped one: false then.
    pub(super) fn feed_all(&mut self, link: &Link) -> bool {
        for _ in 0..FEED_PAUSES {
            self.feed(link);
            if self.queue.completions.peek().is_some() || !self.is_due() {
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
    /// Looks whether a receive, a probe or a claim can be posted, or kept.
    pub(crate) fn admit_list(&mut self, link: &Link, work: &Work) -> Result<(), PostError> {
        let ring = (!self.rings.backlog.keeps()).then_some(work.posting().ring);
        self.admit_at(link, ring, work, 1)
    }

    /// Posts a receive, a probe or a claim that has been [admitted](Self::admit_list), or keeps it behind those that the card had no room for. The
    /// doorbell is rung by the next [`feed`](Self::feed).
    pub(crate) fn post_list(
        &mut self,
        wr_id: u64,
        work: Work,
        buffer: Option<Buffer>,
        entry: ListEntry,
    ) -> Request {
        let handle = self.queue.table.insert(Outstanding {
            at: self.rings.at,
            wr_id,
            work,
            buffer,
            shared: None,
            segments: Segments::default(),
            entry: Some(Entry::List(entry)),
        });
        if self.rings.backlog.keeps() {
            self.rings.backlog.keep(&mut self.queue.table, handle);
        } else {
            self.post_entry(handle);
        }
        handle
    }

    /// Puts a receive, a probe or a claim on the ring, which has room.
    pub(super) fn post_entry(&mut self, handle: Request) {
        let found = self
            .queue
            .table
            .get_mut(handle)
            .and_then(|found| found.entry);
        let Some(Entry::List(ListEntry {
            mut request,
            source,
        })) = found
        else {
            return;
        };
        request.request = handle.wire();
        if let Some(buffer) = self
            .queue
            .table
            .get_mut(handle)
            .and_then(|f| f.buffer.as_ref())
        {
            // A multi-receive that comes back has given away the front of its buffer.
            (request.key, request.address, request.length) = buffer.local();
        }
        if source.is_some_and(|pair| self.pair_mut(pair).is_none()) {
            // Closed meanwhile, and its number may be another's: the card refuses what names no pair.
            request.pair = NO_PAIR;
        }
        request.flags |= self.rings.backlog.posted(&mut self.queue.table, handle);
        self.rings.list.post(&request.to_words());
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

    /// Rings for the entries of a ring behind its last doorbell. If that can't be done now, the next call that posts, polls or waits does it.
    pub(crate) fn ring(&mut self, link: &Link, ring: Ring) {
        self.ring_mut(ring).ring(link);
    }

    fn post_kept(&mut self, link: &Link) {
        while self.rings.backlog.is_due(&mut self.queue.table) {
            if !self.has_room_for(link, Ring::List, 1) {
                return;
            }
            match self.rings.backlog.take_next(&mut self.queue.table) {
                Some(handle) => self.post_entry(handle),
                None => return,
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

    /// Receives a claimed message into a buffer.
    pub(crate) fn receive_claimed(
        &mut self,
        link: &Link,
        wr_id: u64,
        claim: Claim,
        buffer: Buffer,
    ) -> Result<Request, Refused> {
        self.feed(link);
        let work = Work::ReceiveClaimed { claim };
        if let Err(error) = self.admit(link, &work) {
            return Err(Refused { error, buffer });
        }
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
        let posted = self.post(wr_id, work, Some(buffer), words);
        self.ring(link, Ring::List);
        Ok(posted)
    }

    /// Discards a claimed message.
    pub(crate) fn discard(
        &mut self,
        link: &Link,
        wr_id: u64,
        claim: Claim,
    ) -> Result<Request, PostError> {
        self.feed(link);
        let posted = self.post_discard(link, wr_id, claim, false)?;
        self.ring(link, Ring::List);
        Ok(posted)
    }

    fn post_discard(
        &mut self,
        link: &Link,
        wr_id: u64,
        claim: Claim,
        silent: bool,
    ) -> Result<Request, PostError> {
        let work = Work::Discard { claim, silent };
        self.admit(link, &work)?;
        let words = |request: Request| {
            ListRequest {
                opcode: Opcode::Discard.code(),
                request: request.wire(),
                target: claim.handle,
                ..ListRequest::default()
            }
            .to_words()
        };
        Ok(self.post(wr_id, work, None, words))
    }

    /// The program has dropped a claimed message.
    pub(crate) fn keep_dropped(&mut self, claim: Claim) {
        if self.rings.phase == Phase::Open {
            self.rings.dropped.push(claim);
        }
    }

    /// Discards what the program has dropped, as far as there is room. A closed pair has taken its messages with it.
    pub(super) fn discard_dropped(&mut self, link: &Link) {
        while let Some(claim) = self.rings.dropped.pop() {
            let open = self.pair_mut(claim.pair).is_some();
            let posted = open.then(|| self.post_discard(link, 0, claim, true));
            if let Some(Err(PostError::ListRingFull | PostError::CompletionQueueFull)) = posted {
                self.rings.dropped.push(claim);
                return;
            }
        }
    }

    /// Posts a cancel, or uses a claim; it has been [admitted](Self::admit). `words` makes the ring entry from the handle. The doorbell is rung
    /// by the next [`ring`](Self::ring).
    pub(crate) fn post(
        &mut self,
        wr_id: u64,
        work: Work,
        buffer: Option<Buffer>,
        words: impl FnOnce(Request) -> [u64; REQUEST_WORDS],
    ) -> Request {
        let handle = self.queue.table.insert(Outstanding {
            at: self.rings.at,
            wr_id,
            work,
            buffer,
            shared: None,
            segments: Segments::default(),
            entry: None,
        });
        if let Work::Cancel { target, .. } = work {
            self.set_cancel(target, Some(handle));
            match self.sent_on(target) {
                Some(_) => self.withdraw_send(target),
                None => self.rings.backlog.withdraw(&mut self.queue.table, target),
            }
        }
        let ring = work.posting().ring;
        self.ring_mut(ring).post(&words(handle));
        self.ring_for_each(ring);
        handle
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

    /// Looks whether there is room for a request everywhere, and makes the card see it.
    pub(crate) fn admit(&mut self, link: &Link, work: &Work) -> Result<(), PostError> {
        self.admit_at(link, Some(work.posting().ring), work, 1)
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
        match *work {
            Work::Send { pair, serial, .. } => {
                let pair = Pair {
                    index: pair,
                    serial,
                };
                let open = self.usable_pair(pair).ok_or(PostError::InvalidPair)?;
                if !Self::has_send_left(open) {
                    return Err(PostError::PairBusy);
                }
            }
            Work::Cancel { target, .. } => match self.cancel_of(target) {
                Some(None) => {}
                Some(Some(_)) | None => return Err(PostError::NothingToCancel),
            },
            Work::ReceiveClaimed { claim } | Work::Discard { claim, .. } => {
                self.usable_pair(claim.pair).ok_or(PostError::InvalidPair)?;
            }
            Work::Receive { .. } | Work::Probe | Work::Claim => {}
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

    /// The pair that an outstanding send goes by. None if the request isn't one.
    pub(crate) fn sent_on(&mut self, request: Request) -> Option<u16> {
        let request = self.own(request)?;
        match self.queue.table.get_mut(request)?.work {
            Work::Send { pair, .. } => Some(pair),
            Work::Receive { .. }
            | Work::Cancel { .. }
            | Work::Probe
            | Work::Claim
            | Work::ReceiveClaimed { .. }
            | Work::Discard { .. } => None,
        }
    }

    /// The opcode that cancels an outstanding request. None if there is no such request, or if nothing cancels it.
    pub(crate) fn cancelled_by(&mut self, request: Request) -> Option<Opcode> {
        let request = self.own(request)?;
        self.queue
            .table
            .get_mut(request)?
            .work
            .posting()
            .cancelled_by
    }

    /// The cancel under way for an outstanding send or receive. None if the request isn't one.
    pub(super) fn cancel_of(&mut self, target: Request) -> Option<Option<Request>> {
        self.queue.table.get_mut(target)?.work.cancel_mut().copied()
    }

    pub(super) fn set_cancel(&mut self, target: Request, cancel: Option<Request>) {
        let found = self.queue.table.get_mut(target);
        if let Some(slot) = found.and_then(|found| found.work.cancel_mut()) {
            *slot = cancel;
        }
    }
}
