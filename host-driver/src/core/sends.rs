//! Sends: to the card as far as the window of their pair reaches, and kept behind that, in order.
//!
//! ```text
//!  program ─┬─────────────────────────► send ring ──► card: at most `window` sends of the pair
//!           └─► kept of the pair ──────►    ▲                │
//!                 │  (oldest first) ▲       │                ▼
//!                 │                 └───────│──── a completion is written: one less with the card
//!                 └─► orphans ──────────────┘
//!                     the pair is closed: the card refuses what names no pair, and the program is told `Flushed`
//! ```
//!
//! The card refuses what it has no room for, and takes what comes behind that: a send that it refused would be overtaken. So the library counts, and gives it no
//! more of a pair than it holds. A kept send rests in its slot of the request table with the entry that is to be written, so that nothing is allocated. What is
//! longer than the card takes is kept too, and goes in parts ([`super::parts`]).
//!
//! A send makes room as soon as its completion is *written*: [`Core::look_ahead`] looks at completions that the program has not taken yet, once each, while
//! something is kept.

use super::parts::{entries_of_part, segments_of};
use super::{Core, Ending, OpenPair, Own, QUIET_MAX, Ring};
use crate::error::PostError;
use crate::link::Link;
use crate::operation::Work;
use crate::pair::Pair;
use crate::request_queue::RequestQueue;
use crate::send_limits::SendLimits;
use crate::shared::Payload;
use crate::shared::readable::Held;
use crate::table::{Entry, Outstanding, Place, Request};
use abi::completion::Completion;
use abi::event::NO_PAIR;
use abi::request::{
    FLAG_ERRORS_ONLY, FLAG_GATHER, MAX_SEGMENTS, Segment, SendRequest, SendSegments,
};
use abi::status::Status;

/// Entries of the send ring that a send takes.
fn entries_of(work: &Work, request: &SendRequest) -> u16 {
    match request.flags & work.posting().second_flag {
        0 => 1,
        _ => 2,
    }
}

/// Where a send goes that has been admitted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// On the ring.
    Ring,
    /// Behind the others of its pair that the library keeps.
    Kept,
    /// There too, to go in parts.
    Parts,
}

/// What a send needs room for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// Entries of the send ring.
    pub(crate) entries: u16,
    /// It is longer than the card takes at once.
    pub(crate) in_parts: bool,
}

impl OpenPair {
    /// Sends that the card gets before it has completed one.
    fn window(&self) -> u16 {
        match is_broken!(WindowBeyondCard) {
            false => self.limits.window.min(self.holds),
            true => self.limits.window,
        }
    }

    /// Whether the card may get one more send. Of quiet ones alone no completion would come that makes room.
    fn has_turn(&self) -> bool {
        let quiet = self.quiet.iter().flatten().count();
        self.on_card < self.window()
            || usize::from(self.on_card) == quiet
            || is_broken!(OverfillsPair)
    }

    /// Whether the card may get one that is kept.
    fn is_due(&self) -> bool {
        let ends = self.ended || self.ending == Ending::Command;
        !self.kept.is_empty() && !ends && self.has_turn()
    }

    /// Whether one more send may be quiet: one that completes has to come while the window has room for it.
    fn may_be_quiet(&self) -> bool {
        let most = match is_broken!(FillsWindowQuietly) {
            false => usize::from(self.window() / 2).saturating_sub(1),
            true => QUIET_MAX,
        };
        self.quiet.iter().flatten().count() < most.min(QUIET_MAX)
    }

    /// A send has completed that the card had.
    pub(super) fn left_card(&mut self, work: &Work) {
        self.on_card -= 1;
        self.messages_on_card -= u16::from(work.operation().is_message());
    }

    /// A quiet send has completed after all, or isn't one.
    pub(super) fn forget_quiet(&mut self, request: Request) {
        let quiet = self.quiet.iter_mut();
        quiet
            .filter(|found| found.is_some_and(|(_, quiet)| quiet == request))
            .for_each(|found| *found = None);
    }
}

impl Core {
    /// Looks at the completions that the card has written and nobody has taken, if a send waits for one.
    pub(super) fn look_ahead(&mut self) {
        let mut endpoints = self.endpoints.iter();
        if endpoints.all(|rings| rings.keepers.is_empty()) || is_broken!(SeesOnlyWhatIsTaken) {
            return;
        }
        while let Some(entry) = self.queue.completions.look(self.queue.noticed) {
            self.notice(&entry);
        }
    }

    /// Looks at a completion, if it is the first that nobody has looked at.
    pub(super) fn notice_first(&mut self, completion: &Completion) {
        if self.queue.noticed == self.queue.completions.head() {
            self.notice(completion);
        }
    }

    fn notice(&mut self, completion: &Completion) {
        self.queue.noticed = self.queue.noticed.wrapping_add(1);
        if let Some(at) = self.named(completion) {
            let request = self.queue.table.of_wire(completion.request);
            self.of(at).send_completed(request);
            self.of(at).sweep_notices(request, completion);
        }
    }
}

impl Own<'_> {
    /// Looks whether a send can be posted, or kept.
    pub(crate) fn admit_send(
        &mut self,
        link: &Link,
        work: &Work,
        Room { entries, in_parts }: Room,
    ) -> Result<Way, PostError> {
        self.post_kept_sends(link);
        let keeps = work.queued_on().is_some_and(|pair| self.keeps(pair));
        let (way, ring) = match keeps {
            _ if in_parts => (Way::Parts, None),
            true => (Way::Kept, None),
            false => (Way::Ring, Some(Ring::Send)),
        };
        self.admit_at(link, ring, work, entries)?;
        // Beside the slot of the whole, of which the line above has seen to it that it is there, at least one for a part.
        match in_parts && self.queue.table.free() < 2 {
            true => Err(PostError::CompletionQueueFull),
            false => Ok(way),
        }
    }

    /// Whether a new send of the pair has to be kept.
    fn keeps(&mut self, pair: Pair) -> bool {
        self.pair_mut(pair).is_some_and(|open| {
            let behind = !open.kept.is_empty();
            (behind || !open.has_turn()) && !(behind && is_broken!(OvertakesKept))
        })
    }

    /// Whether the pair's limit leaves room for one more send.
    pub(super) fn has_send_left(open: &OpenPair) -> bool {
        let left = open.sends < open.limits.outstanding || is_broken!(IgnoresSendLimit);
        left && (open.has_turn() || !is_broken!(RefusesNinth))
    }

    /// Posts a send that has been [admitted](Self::admit_send), or keeps it. `request` is its entry, but for the handle. The doorbell is rung by the next
    /// [`ring`](Self::ring).
    pub(crate) fn post_send(
        &mut self,
        way: Way,
        wr_id: u64,
        work: Work,
        held: Held,
        request: SendRequest,
    ) -> Request {
        let handle = self.enter_send(wr_id, work, held, request);
        match work.queued_on() {
            Some(pair) if way == Way::Kept => self.keep_send(pair, handle),
            _ => self.put_send(handle, request),
        }
        handle
    }

    /// Enters a send into the table.
    pub(super) fn enter_send(
        &mut self,
        wr_id: u64,
        work: Work,
        (payload, segments): Held,
        request: SendRequest,
    ) -> Request {
        let (buffer, shared) = match payload {
            None => (None, None),
            Some(Payload::Unique(buffer)) => (Some(buffer), None),
            Some(Payload::Shared(_)) if is_broken!(UnsharesInFlight) => (None, None),
            Some(Payload::Shared(shared)) => (None, Some(shared)),
        };
        let handle = self.queue.table.insert(Outstanding {
            buffer,
            shared,
            segments,
            entry: Some(Entry::Send(request)),
            ..Outstanding::new(self.rings.at, wr_id, work)
        });
        let pair = work.queued_on();
        if let Some(open) = pair.and_then(|pair| self.pair_mut(pair)) {
            open.sends += 1;
        }
        handle
    }

    pub(super) fn keep_send(&mut self, Pair { index, .. }: Pair, handle: Request) {
        let table = &mut self.queue.table;
        if let Some(open) = &mut self.rings.pairs[usize::from(index)] {
            if open.kept.is_empty() {
                self.rings.keepers.push_back(index);
            }
            table.set_place(handle, Place::Kept);
            open.kept.push_back(table, handle);
        }
    }

    /// Puts a send on the ring, which has room.
    fn put_send(&mut self, handle: Request, request: SendRequest) {
        if let Some(found) = self.queue.table.get(handle) {
            let segments = segments_of(found);
            self.put_send_of(handle, request, &segments);
        }
    }

    /// The same, of these segments, of which the entry names the first. One that is to complete on errors only is quiet, or completes all the same.
    pub(super) fn put_send_of(
        &mut self,
        handle: Request,
        mut request: SendRequest,
        segments: &[Segment; MAX_SEGMENTS],
    ) {
        let Some(found) = self.queue.table.get_mut(handle) else {
            return;
        };
        let errors_only = request.flags & FLAG_ERRORS_ONLY != 0;
        request.flags &= !FLAG_ERRORS_ONLY;
        if let Some(pair) = found.work.queued_on()
            && let Some(Some(open)) = self.rings.pairs.get_mut(usize::from(pair.index))
            && open.serial == pair.serial
        {
            found.order = open.order;
            open.order = open.order.wrapping_add(1);
            open.on_card += 1;
            open.messages_on_card += u16::from(found.work.operation().is_message());
            if errors_only
                && open.may_be_quiet()
                && let Some(free) = open.quiet.iter_mut().find(|quiet| quiet.is_none())
            {
                *free = Some((found.order, handle));
                request.flags |= FLAG_ERRORS_ONLY;
            }
        }
        request.opcode = found.work.operation().opcode().code();
        request.request = handle.wire();
        let entries = entries_of(&found.work, &request);
        self.queue.table.set_place(handle, Place::Card);
        self.rings.send.post(&request.to_words());
        if entries == 2 {
            let second = SendSegments::new(handle.wire(), &segments[1..]);
            self.rings.send.post(&second.to_words());
        }
        self.ring_for_each(Ring::Send);
    }

    /// Posts what is kept of the sends, as far as the windows of their pairs reach and the ring has room.
    pub(crate) fn post_kept_sends(&mut self, link: &Link) {
        if !self.is_open() {
            return;
        }
        while let Some(handle) = self.rings.orphans.front() {
            if !self.has_room_for(link, Ring::Send, 1) {
                return;
            }
            self.rings.orphans.pop_front(&mut self.queue.table);
            self.put_kept(handle);
        }
        for _ in 0..self.rings.keepers.len() {
            let Some(index) = self.rings.keepers.pop_front() else {
                return;
            };
            while let Some((handle, entries)) = self.due_send(index) {
                if !self.has_room_for(link, Ring::Send, entries) {
                    self.rings.keepers.push_front(index);
                    return;
                }
                let in_parts = self.is_in_parts(handle);
                let all_gone = match in_parts {
                    true => self.put_part(handle),
                    false => true,
                };
                let overtaken = !all_gone && is_broken!(LetsOvertake);
                if let Some(open) = &mut self.rings.pairs[usize::from(index)]
                    && (all_gone || overtaken)
                {
                    open.kept.pop_front(&mut self.queue.table);
                    if overtaken {
                        open.kept.push_back(&mut self.queue.table, handle);
                    }
                }
                match in_parts {
                    true if all_gone => self.queue.table.set_place(handle, Place::Card),
                    true => {}
                    false => self.put_kept(handle),
                }
            }
            if self.kept_of(index).is_some_and(|kept| !kept.is_empty()) {
                self.rings.keepers.push_back(index);
            }
        }
    }

    fn put_kept(&mut self, handle: Request) {
        let found = self.queue.table.get_mut(handle);
        if let Some(Entry::Send(mut request)) = found.and_then(|found| found.entry) {
            if is_broken!(SplitsGather) {
                request.flags &= !FLAG_GATHER;
            }
            self.put_send(handle, request);
        }
    }

    fn kept_of(&mut self, index: u16) -> Option<&mut RequestQueue> {
        let open = self.rings.pairs.get_mut(usize::from(index))?.as_mut()?;
        Some(&mut open.kept)
    }

    /// Whether a kept request is in parts.
    fn is_in_parts(&self, handle: Request) -> bool {
        let found = self.queue.table.get(handle);
        found.is_some_and(|found| found.parts.is_some())
    }

    /// The send of the pair that may be posted next, or the next part of one, and how many entries it takes.
    fn due_send(&self, index: u16) -> Option<(Request, u16)> {
        let open = self.rings.pairs.get(usize::from(index))?.as_ref()?;
        let handle = open.kept.front().filter(|_| open.is_due())?;
        let found = self.queue.table.get(handle)?;
        let Entry::Send(request) = found.entry? else {
            return None;
        };
        match &found.parts {
            None => Some((handle, entries_of(&found.work, &request))),
            Some(parts) => parts.is_due(open).then(|| (handle, entries_of_part(found))),
        }
    }

    /// Whether a send is kept that could be posted now.
    pub(super) fn is_send_due(&self) -> bool {
        let mut keepers = self.rings.keepers.iter();
        let due = |&index: &u16| self.due_send(index).is_some();
        !self.rings.orphans.is_empty() || keepers.any(due)
    }

    /// Whether sends of any pair are kept.
    pub(crate) fn is_send_kept(&self) -> bool {
        !self.rings.keepers.is_empty()
    }

    /// Whether sends of the pair are kept.
    pub(crate) fn keeps_sends(&mut self, pair: Pair) -> bool {
        self.pair_mut(pair)
            .is_some_and(|open| !open.kept.is_empty())
    }

    /// Sets the limits of an open pair; none if it isn't open.
    pub(crate) fn set_send_limits(&mut self, pair: Pair, limits: SendLimits) -> Option<()> {
        self.pair_mut(pair)?.limits = limits;
        Some(())
    }

    /// The card has written the completion of a request: if it is a send, it is with the card no more.
    fn send_completed(&mut self, request: Request) {
        let Some(work) = self.queue.table.get(request).map(|found| found.work) else {
            return;
        };
        let on_card = self.queue.table.place(request) == Some(Place::Card);
        let Some(pair) = work.queued_on().filter(|_| on_card) else {
            return;
        };
        self.queue.table.set_place(request, Place::Completed);
        if let Some(open) = self.pair_mut(pair) {
            open.forget_quiet(request);
            open.left_card(&work);
        }
    }

    /// A request of the pair isn't kept any more, if it is.
    pub(super) fn unkeep_send(&mut self, pair: Pair, request: Request) {
        let kept = self.queue.table.place(request) == Some(Place::Kept);
        if !kept || self.pair_mut(pair).is_none() {
            return;
        }
        if let Some(open) = &mut self.rings.pairs[usize::from(pair.index)]
            && !open.kept.is_empty()
        {
            open.kept.remove(&mut self.queue.table, request);
            if open.kept.is_empty() {
                self.rings.keepers.retain(|&keeper| keeper != pair.index);
            }
        }
    }

    /// A send that is being cancelled won't be posted, if it is kept; nor what is left of one in parts.
    pub(super) fn withdraw_send(&mut self, request: Request) {
        let found = self.queue.table.get_mut(request);
        let Some(pair) = found.and_then(|found| found.work.queued_on()) else {
            return;
        };
        let kept = self.queue.table.place(request) == Some(Place::Kept);
        if !kept || is_broken!(PostsCancelled) {
            return;
        }
        self.rings.orphans.remove(&mut self.queue.table, request);
        self.unkeep_send(pair, request);
        self.queue.table.set_place(request, Place::Withdrawn);
    }

    /// The pair is gone: what is kept of it is posted all the same, naming no pair, so that the card completes it behind the others of the pair.
    pub(super) fn orphan_sends(&mut self, pair: Pair) {
        let Some(open) = self.pair_mut(pair) else {
            return;
        };
        let mut kept = std::mem::replace(&mut open.kept, RequestQueue::new());
        self.rings.keepers.retain(|&keeper| keeper != pair.index);
        if is_broken!(ForgetsKept) {
            return;
        }
        while let Some(handle) = kept.pop_front(&mut self.queue.table) {
            if self.stop_parts(handle, Status::Flushed) {
                continue;
            }
            let table = &mut self.queue.table;
            if let Some(found) = table.get_mut(handle)
                && !is_broken!(SendsToSuccessor)
            {
                let parts = found.parts.take();
                found.entry = Some(Entry::Send(SendRequest {
                    pair: NO_PAIR,
                    ..SendRequest::default()
                }));
                self.free_parts(parts);
            }
            self.rings.orphans.push_back(&mut self.queue.table, handle);
        }
    }
}
