//! Requests that go to the card in parts: a put or a get that is longer than the card takes at once.
//!
//! ```text
//!  program ──► whole ── kept of the pair, in front ──► next part ──► send ring ──► card
//!                │      while bytes are left              ▲                         │
//!                │                                        └── idle slots ◄── a part has ended
//!                └── nothing is left, or a part has failed; none is under way ──► one completion
//! ```
//!
//! The whole has a slot of the request table, and so have as many parts as may be under way at once: all are taken when it is posted, so that it never waits for
//! one. It stands at the front of what its pair keeps until its last part has gone, so that nothing of the pair goes between its parts or past them. A part that
//! has ended leaves its slot, and its entry of the completion queue, to the next.
//!
//! With the first part that fails no more go. The whole ends when all that are under way have, once, as the first that failed did.
//!
//! **Bounded.** A part waits at the card behind the messages of its pair that were posted before, and one of these may wait for a credit for ever. While there is
//! one at the card, only a single part is under way; a cancel of the whole names that part. Where none is, a part waits for nothing but the acknowledgements and
//! answers of its peer, which come or fail the pair. So what is cancelled ends.
//!
//! The completion of the whole is put behind those that were taken from the queue and not polled. Those of parts may be behind completions of the program's, so while a
//! request is in parts each look at the queue takes all that is there.

use super::{Core, OpenPair, Own};
use crate::link::Link;
use crate::operation::Work;
use crate::pair::Pair;
use crate::request_queue::RequestQueue;
use crate::shared::readable::Held;
use crate::table::{Entry, Outstanding, Place, Request};
use abi::completion::Completion;
use abi::limits::{EAGER_MAX, MAX_UNACKNOWLEDGED};
use abi::request::{FLAG_ERRORS_ONLY, MAX_SEGMENTS, Segment};
use abi::status::Status;

/// Parts of a request that are under way at once, at most: as many puts of a pair as may be unacknowledged, or gets unanswered.
const PARTS_MAX: usize = MAX_UNACKNOWLEDGED as usize;

/// How far a request has got that goes to the card in parts.
#[derive(Clone, Copy)]
pub(crate) struct Parts {
    /// Bytes of the whole, and those of them whose parts have gone.
    length: u64,
    gone: u64,
    /// Parts that the card has, and the last that it got.
    under_way: u16,
    last: Option<Request>,
    /// Slots for parts that may go.
    idle: RequestQueue,
    /// How the first part ended that failed, or the whole without one.
    failed: Option<Status>,
}

impl Parts {
    /// Whether a part may go on its pair now.
    pub(super) fn is_due(&self, open: &OpenPair) -> bool {
        let alone = open.messages_on_card > 0 && !is_broken!(PartsWaitTogether);
        !self.idle.is_empty() && (self.under_way == 0 || !alone)
    }

    /// How the whole ends, where it would end as `otherwise` without a part that failed.
    pub(super) fn end(&self, otherwise: Status) -> Status {
        self.failed.unwrap_or(otherwise)
    }

    /// Bytes of the next part.
    fn next_length(&self) -> u64 {
        (self.length - self.gone).min(EAGER_MAX as u64)
    }

    /// Whether no part of it will go any more.
    fn has_stopped(&self) -> bool {
        let failed = self.failed.is_some() && !is_broken!(GoesOnAfterError);
        failed || self.gone == self.length
    }
}

/// The `length` bytes behind the first `from` of these segments, in as few as can be.
fn cut(segments: &[Segment; MAX_SEGMENTS], from: u64, length: u64) -> [Segment; MAX_SEGMENTS] {
    let mut cut = [Segment::default(); MAX_SEGMENTS];
    let (mut skipped, mut left, mut found) = (from, length, 0);
    for segment in segments {
        let behind = skipped.min(segment.length);
        skipped -= behind;
        let taken = (segment.length - behind).min(left);
        if taken > 0 {
            cut[found] = Segment {
                key: segment.key,
                address: segment.address + behind,
                length: taken,
            };
            found += 1;
            left -= taken;
        }
    }
    cut
}

/// The segments of a request that is to be sent, as it was posted.
pub(super) fn segments_of(found: &Outstanding) -> [Segment; MAX_SEGMENTS] {
    let mut all = [Segment::default(); MAX_SEGMENTS];
    if let Some(Entry::Send(first)) = found.entry {
        all[0] = first.segment();
    }
    for (segment, behind) in all[1..].iter_mut().zip(&found.segments) {
        if let Some(behind) = behind {
            *segment = behind.piece().segment();
        }
    }
    all
}

/// Those of the next part of the whole.
fn next_part(found: &Outstanding) -> Option<[Segment; MAX_SEGMENTS]> {
    let parts = found.parts.as_ref()?;
    Some(cut(&segments_of(found), parts.gone, parts.next_length()))
}

/// Entries of the send ring that the next part takes.
pub(super) fn entries_of_part(found: &Outstanding) -> u16 {
    let gathers = next_part(found).is_some_and(|segments| segments[1].length > 0);
    if gathers { 2 } else { 1 }
}

impl Core {
    /// Takes all completions that the card has written, so that parts make room for others, whatever is in front of them.
    pub(super) fn take_parts(&mut self, link: &Link) {
        if self.queue.in_parts > 0 {
            self.take_written(link);
        }
    }
}

impl Own<'_> {
    /// Keeps a request that has been admitted and is longer than the card takes at once, of this length.
    pub(crate) fn post_in_parts(
        &mut self,
        wr_id: u64,
        work: Work,
        held: Held,
        request: abi::request::SendRequest,
        length: u64,
    ) -> Request {
        let whole = self.enter_send(wr_id, work, held, request);
        let count = length.div_ceil(EAGER_MAX as u64);
        let count = count.min(PARTS_MAX as u64) as usize;
        let mut idle = RequestQueue::new();
        for _ in 0..count.min(self.queue.table.free()) {
            let part = self.queue.table.insert(Outstanding {
                part_of: Some(whole),
                ..Outstanding::new(self.rings.at, wr_id, work)
            });
            self.rest(&mut idle, part);
        }
        if let Some(found) = self.queue.table.get_mut(whole) {
            found.parts = Some(Parts {
                length,
                gone: 0,
                under_way: 0,
                last: None,
                idle,
                failed: None,
            });
        }
        self.queue.in_parts += 1;
        if let Some(pair) = work.queued_on() {
            self.keep_send(pair, whole);
        }
        whole
    }

    /// A part may go.
    fn rest(&mut self, idle: &mut RequestQueue, part: Request) {
        let table = &mut self.queue.table;
        table.set_place(part, Place::Kept);
        idle.push_back(table, part);
    }

    /// Puts the next part of a request on the ring, which has room. Whether it was the last.
    pub(super) fn put_part(&mut self, whole: Request) -> bool {
        let table = &mut self.queue.table;
        let Some(found) = table.get_mut(whole) else {
            return true;
        };
        let (work, segments) = (found.work, next_part(found));
        let (Some(Entry::Send(mut request)), Some(segments), Some(mut parts)) =
            (found.entry, segments, found.parts)
        else {
            return true;
        };
        let Some(part) = parts.idle.pop_front(table) else {
            return true;
        };
        // It has to tell its success: the next waits for that.
        request.flags &= !(FLAG_ERRORS_ONLY | work.posting().second_flag);
        if segments[1].length > 0 {
            request.flags |= work.posting().second_flag;
        }
        let first = segments[0];
        (request.key, request.address, request.length) = (first.key, first.address, first.length);
        // An offset that wrapped would name memory that the program doesn't mean: the last is nowhere.
        request.immediate = match is_broken!(OffsetWraps) {
            false => request.immediate.saturating_add(parts.gone),
            true => request.immediate.wrapping_add(parts.gone),
        };
        if is_broken!(PartsInOnePlace) {
            request.immediate -= parts.gone;
        }
        parts.gone += parts.next_length();
        parts.under_way += 1;
        parts.last = Some(part);
        if let Some(found) = table.get_mut(whole) {
            found.parts = Some(parts);
        }
        if let Some(found) = table.get_mut(part) {
            found.noticed = false;
        }
        self.put_send_of(part, request, &segments);
        parts.has_stopped() || is_broken!(LetsOvertake)
    }

    /// Whether parts of the request are under way.
    pub(super) fn has_parts_under_way(&self, whole: Request) -> bool {
        let parts = self.queue.table.get(whole).and_then(|found| found.parts);
        parts.is_some_and(|parts| parts.under_way > 0) && !is_broken!(EndsUnderWay)
    }

    /// What the card is to cancel of a request: it, or of one in parts the only one that can wait.
    pub(crate) fn to_cancel(&self, target: Request) -> Request {
        let parts = self.queue.table.get(target).and_then(|found| found.parts);
        let alone = parts.filter(|parts| parts.under_way == 1 && !is_broken!(CancelsWholeOnly));
        alone.and_then(|parts| parts.last).unwrap_or(target)
    }

    /// No more parts of a request go: it is to end as this, unless one has failed. False if it isn't in parts, or none is under way: then it is left as it is.
    pub(super) fn stop_parts(&mut self, whole: Request, status: Status) -> bool {
        let found = self.queue.table.get_mut(whole);
        let parts = found.and_then(|found| found.parts.as_mut());
        let Some(parts) = parts.filter(|parts| parts.under_way > 0) else {
            return false;
        };
        parts.failed.get_or_insert(status);
        self.queue.table.set_place(whole, Place::Card);
        true
    }

    /// A request isn't in parts any more: their slots are free.
    pub(super) fn free_parts(&mut self, parts: Option<Parts>) {
        let Some(mut parts) = parts else {
            return;
        };
        self.queue.in_parts -= 1;
        while let Some(part) = parts.idle.pop_front(&mut self.queue.table) {
            if !is_broken!(KeepsPartSlots) {
                self.queue.table.remove(part);
            }
        }
    }

    /// A part has ended.
    pub(super) fn part_ended(&mut self, part: Request, whole: Request, completion: &Completion) {
        let Some(found) = self.queue.table.get(part) else {
            return;
        };
        let (pair, order) = (found.work.queued_on(), found.order);
        let status = self.status_on(pair, completion);
        if let Some(pair) = pair
            && matches!(status, Status::Success | Status::RemoteAccess)
        {
            self.retire_before(pair, order);
        }
        let found = self.queue.table.get_mut(whole);
        let Some(mut parts) = found.and_then(|found| found.parts) else {
            // Its endpoint is closed, and it has been flushed.
            self.queue.table.remove(part);
            return;
        };
        parts.under_way -= 1;
        if status != Status::Success && !is_broken!(ForgetsError) {
            parts.failed.get_or_insert(status);
        }
        if is_broken!(ForgetsError) {
            parts.failed = (status != Status::Success).then_some(status);
        }
        let withdrawn = self.queue.table.place(whole) == Some(Place::Withdrawn);
        let stopped = parts.has_stopped() || withdrawn;
        match stopped {
            true => drop(self.queue.table.remove(part)),
            false => self.rest(&mut parts.idle, part),
        }
        if let Some(found) = self.queue.table.get_mut(whole) {
            found.parts = Some(parts);
            found.order = order;
        }
        if !stopped {
            return;
        }
        if let Some(pair) = pair
            && !withdrawn
        {
            self.unkeep_send(pair, whole);
            self.queue.table.set_place(whole, Place::Card);
        }
        if parts.under_way > 0 {
            return;
        }
        let cancelled = status == Status::Cancelled;
        match (withdrawn, cancelled || !self.is_being_cancelled(whole)) {
            (false, _) => self.whole_ended(whole, pair, parts.end(Status::Success)),
            (true, true) => self.whole_ended(whole, pair, Status::Cancelled),
            // It ends with the cancel, which is to come back.
            (true, false) => {}
        }
    }

    /// Whether a cancel of a request is outstanding.
    fn is_being_cancelled(&self, target: Request) -> bool {
        let cancel = self.queue.table.get(target).and_then(|found| found.cancel);
        cancel.is_some_and(|cancel| self.queue.table.get(cancel).is_some())
    }

    /// A request in parts has ended: it is told behind what was taken from the queue before.
    fn whole_ended(&mut self, whole: Request, pair: Option<Pair>, status: Status) {
        let Some(work) = self.queue.table.get(whole).map(|found| found.work) else {
            return;
        };
        let completion = Completion {
            request: whole.wire(),
            status: status.code(),
            kind: work.posting().kind.code(),
            endpoint: self.rings.place,
            pair: pair.map_or(0, |pair| pair.index),
            ..Completion::default()
        };
        self.queue.table.set_place(whole, Place::Completed);
        self.sweep_notices(whole, &completion);
        match work.operation().is_silent(status) {
            true => drop(self.finish(&completion)),
            false => self.queue.aside.push_back(completion),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(key: u32, length: u64) -> Segment {
        Segment {
            key,
            address: u64::from(key) << 32,
            length,
        }
    }

    #[test]
    fn a_part_is_cut_out_of_all_segments_that_it_touches() {
        let all = [segment(1, 10), segment(2, 0), segment(3, 1), segment(4, 7)];
        let bytes = |segments: &[Segment]| -> Vec<u64> {
            let each = segments.iter().map(|s| s.address..s.address + s.length);
            each.flatten().collect()
        };
        let whole = bytes(&all);
        for from in 0..=18 {
            for length in 0..=18 - from {
                let part = cut(&all, from, length);
                let expected = &whole[from as usize..][..length as usize];
                assert_eq!(bytes(&part), expected, "{from} {length}");
                let empty = part.iter().position(|segment| segment.length == 0);
                let behind = &part[empty.unwrap_or(MAX_SEGMENTS)..];
                assert!(behind.iter().all(|segment| *segment == Segment::default()));
            }
        }
    }
}
