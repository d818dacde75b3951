//! A sweep's turns under the lock ([`crate::sweep`]): what it posts, and what it notices of the completions.
//!
//! A request of the sweep's is over when its completion has been *noticed*, which each is once, in order. The cancel of what is `Cancelled` has no completion: it is
//! over with its target's, and gives its slot back at once.

use super::{Core, Own, is_refusal};
use crate::claimed::Claim;
use crate::error::PostError;
use crate::group::Group;
use crate::link::Link;
use crate::operation::Work;
use crate::sweep::{MessageSet, SweepError, Swept};
use crate::table::{Entry, Outstanding, Place, Request};
use abi::completion::{COMPLETION_MORE, Completion};
use abi::request::FLAG_ANY_SOURCE;
use abi::status::Status;

/// A sweep of an endpoint that is under way.
#[derive(Clone, Copy, Default)]
pub(super) struct Sweep {
    swept: Swept,
    /// Flags of its claims.
    flags: u8,
    /// Members of the group whose messages have been discarded.
    done: usize,
    /// The last claim found nothing.
    none_left: bool,
    /// The message that it found is to be discarded.
    taken: Option<Claim>,
}

/// What came of a turn.
pub(crate) enum SweepTurn {
    /// Something was posted.
    Moved,
    /// What was posted has to end first: a completion will tell.
    Waits,
    /// A ring has no room yet.
    Full,
    /// Nothing is left.
    Done(Swept),
}

impl Core {
    /// Takes what the card has written. What the program isn't told of is done with; the rest waits for it to poll.
    pub(crate) fn set_aside(&mut self, link: &Link) {
        self.feed(link);
        self.take_written(link);
    }

    /// Takes what is in the queue, as far as there is room for it aside.
    pub(super) fn take_written(&mut self, link: &Link) {
        while self.queue.aside.len() < usize::from(self.queue.completions.entries()) {
            let Some(entry) = self.queue.completions.peek() else {
                return;
            };
            let silent = self.is_silent(&entry);
            let entry = self.consume(link, entry);
            let named = self.named(&entry);
            match named {
                Some(at) if silent => drop(self.of(at).finish(&entry)),
                Some(at) => {
                    self.of(at).returned(&entry);
                    self.queue.aside.push_back(entry);
                }
                None => self.queue.strays += 1,
            }
        }
    }
}

impl Own<'_> {
    /// A sweep begins whose claims have these flags. False if one is under way.
    pub(crate) fn begin_sweep(&mut self, flags: u8) -> bool {
        let free = self.rings.sweep.is_none();
        if free {
            self.rings.sweep = Some(Sweep {
                flags,
                ..Sweep::default()
            });
        }
        free
    }

    /// It is over. What it has claimed is discarded all the same.
    pub(crate) fn end_sweep(&mut self) {
        if let Some(claim) = self.rings.sweep.take().and_then(|sweep| sweep.taken) {
            self.keep_dropped(claim);
        }
    }

    /// Posts what can be posted.
    pub(crate) fn sweep_turn(
        &mut self,
        link: &Link,
        group: &Group,
        messages: &MessageSet,
        told: Status,
    ) -> Result<SweepTurn, SweepError> {
        let mut moved = false;
        let turn = self.sweep_on(link, group, messages, told, &mut moved);
        self.feed(link);
        match turn {
            Err(PostError::ListRingFull | PostError::SendRingFull) => Ok(SweepTurn::Full),
            // Slots of the sweep's own come back.
            Err(PostError::CompletionQueueFull) if self.is_sweeping() => Ok(SweepTurn::Waits),
            Err(PostError::CompletionQueueFull) => Err(SweepError::CompletionQueueFull),
            Err(PostError::Transport(error)) => Err(error.into()),
            Err(_) => Err(SweepError::Closed),
            Ok(_) if moved => Ok(SweepTurn::Moved),
            Ok(None) => Ok(SweepTurn::Waits),
            Ok(Some(swept)) => Ok(SweepTurn::Done(swept)),
        }
    }

    fn sweep_on(
        &mut self,
        link: &Link,
        group: &Group,
        messages: &MessageSet,
        told: Status,
        moved: &mut bool,
    ) -> Result<Option<Swept>, PostError> {
        if !self.is_open() {
            return Err(PostError::Closed);
        }
        while let Some(target) = self.next_to_sweep(group, messages) {
            self.post_cancel(link, 0, target, true)?;
            if let Some(found) = self.queue.table.get_mut(target) {
                found.told = Some(told);
            }
            *moved = true;
        }
        let sweep = self.rings.sweep.unwrap_or_default();
        if let Some(claim) = sweep.taken {
            // A pair that was closed has taken its messages with it.
            if self.pair_mut(claim.pair).is_some() {
                self.post_discard_swept(link, claim)?;
            }
            self.change_sweep(|sweep| sweep.taken = None);
            *moved = true;
        }
        if self.is_sweeping() {
            return Ok(None);
        }
        if sweep.none_left {
            self.change_sweep(|sweep| (sweep.none_left, sweep.done) = (false, sweep.done + 1));
        }
        let done = self.rings.sweep.map_or(0, |sweep| sweep.done);
        let members = group.members().iter().enumerate().skip(done);
        for (at, &(_, pair)) in members {
            self.change_sweep(|sweep| sweep.done = at);
            if self.is_usable(pair) && !is_broken!(LeavesMessages) {
                self.post_claim_swept(link, pair, messages, sweep.flags)?;
                *moved = true;
                return Ok(None);
            }
        }
        Ok(self.rings.sweep.map(|sweep| sweep.swept))
    }

    fn change_sweep(&mut self, change: impl FnOnce(&mut Sweep)) {
        if let Some(sweep) = &mut self.rings.sweep {
            change(sweep);
        }
    }

    /// Whether a request of a sweep hasn't ended.
    fn is_sweeping(&self) -> bool {
        let under_way = |found: &Outstanding| !found.noticed && found.work.is_sweeps();
        self.queue.table.any_of(self.rings.at, under_way)
    }

    /// A receive or a send of these messages that no sweep has cancelled and nobody is cancelling.
    fn next_to_sweep(&mut self, group: &Group, messages: &MessageSet) -> Option<Request> {
        let pairs = &self.rings.pairs;
        let of_group = |found: &Outstanding| match found.work.operation().pair() {
            None => true,
            Some(pair) => {
                let place = pairs.get(usize::from(pair.index));
                let open = place.and_then(Option::as_ref);
                let member = group.rank(pair).is_some() || is_broken!(SweepsStrangers);
                member && open.is_some_and(|open| open.serial == pair.serial)
            }
        };
        let covered = |found: &Outstanding| match found.entry {
            None => false,
            Some(Entry::Send(entry)) => messages.covers(entry.context, entry.match_bits, 0),
            Some(Entry::List(entry)) => {
                messages.covers(entry.context, entry.match_bits, entry.ignore_bits)
                    && (entry.flags & FLAG_ANY_SOURCE != 0
                        || found.work.operation().pair().is_some())
            }
        };
        self.queue.table.find_of(self.rings.at, |found| {
            let of_messages = found.work.operation().is_message() || is_broken!(SweepsPuts);
            let pending = found.told.is_none() && found.cancel.is_none() && !found.noticed;
            let cancelled_by = found.work.posting().cancelled_by;
            of_messages && pending && cancelled_by.is_some() && covered(found) && of_group(found)
        })
    }

    /// Sends of these messages to members of the group that haven't ended.
    pub(crate) fn sends_under(&mut self, group: &Group, messages: &MessageSet) -> usize {
        let under = |found: &Outstanding| {
            let pair = found.work.operation().pair();
            let of_messages = found.work.operation().is_message();
            let member = pair.is_some_and(|pair| group.rank(pair).is_some());
            let covered = matches!(found.entry, Some(Entry::Send(entry))
                if messages.covers(entry.context, entry.match_bits, 0));
            of_messages && member && covered && !found.noticed
        };
        self.queue.table.count_of(self.rings.at, under)
    }

    /// The completion of a request, which nobody has looked at before.
    pub(super) fn sweep_notices(&mut self, request: Request, entry: &Completion) {
        let Some(found) = self.queue.table.get_mut(request) else {
            return;
        };
        if entry.flags & COMPLETION_MORE != 0 || found.work.posting().is_kept && is_refusal(entry) {
            return;
        }
        found.noticed = true;
        let (work, told, cancel) = (found.work, found.told, found.cancel);
        let cancelled = entry.status == Status::Cancelled.code();
        if cancelled && told.is_some() {
            let by_sweep = cancel.filter(|&cancel| {
                let cancel = self.queue.table.get_mut(cancel);
                cancel.is_some_and(|cancel| cancel.work.is_sweeps())
            });
            if let Some(cancel) = by_sweep {
                self.queue.table.remove(cancel);
                self.set_cancel(request, None);
                self.count_swept(&work, told);
            }
        }
        if !work.is_sweeps() {
            return;
        }
        if let Some(target) = work.operation().target()
            && self.queue.table.place(target) == Some(Place::Withdrawn)
            && let Some(target) = self.queue.table.get_mut(target)
        {
            let (target, told) = (target.work, target.told);
            self.count_swept(&target, told);
        }
        if work.operation().is_sweeps_look() {
            self.claim_was_swept(entry);
        }
    }

    /// A cancel that nobody is told of was in time. A sweep's is counted, a time-out's isn't.
    fn count_swept(&mut self, work: &Work, told: Option<Status>) {
        if told == Some(Status::TimedOut) {
            return;
        }
        let is_send = work.queued_on().is_some();
        self.change_sweep(|Sweep { swept, .. }| match is_send {
            true => swept.sends += 1,
            false => swept.receives += 1,
        });
    }

    fn claim_was_swept(&mut self, entry: &Completion) {
        let success = entry.status == Status::Success.code();
        let pair = self.pair_of_card(entry.pair).filter(|_| success);
        let claim = pair.map(|pair| Claim {
            handle: entry.handle,
            pair,
        });
        match (&mut self.rings.sweep, claim) {
            (Some(sweep), Some(_)) => {
                sweep.taken = claim;
                sweep.swept.messages += 1;
            }
            (Some(sweep), None) => sweep.none_left = true,
            // The sweep was given up.
            (None, Some(claim)) => self.keep_dropped(claim),
            (None, None) => {}
        }
    }
}
