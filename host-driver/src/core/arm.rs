//! Interrupts: armed at the entries that the card writes next.

use super::{Core, Own, Phase, Rings};
use crate::error::WaitError;
use crate::event::{Cause, Causes};
#[cfg(target_os = "linux")]
use crate::event_fd::{EventFd, EventFdError};
use crate::link::Link;
use crate::transport::{Line, TransportError, Watch};
use abi::register::{COMPLETION_ARM, EVENT_ARM, endpoint_page};

impl Core {
    /// The queue's event file descriptor, which is made when it is first asked for. That of a queue whose endpoints aren't open is signalled.
    #[cfg(target_os = "linux")]
    pub(crate) fn event_fd(&mut self, link: &Link) -> Result<EventFd, EventFdError> {
        if let Some(event) = &self.queue.event_fd {
            return Ok(event.try_clone()?);
        }
        let event = EventFd::new()?;
        let (mut found, mut signalled) = (false, false);
        for rings in &self.endpoints {
            found = true;
            if rings.phase == Phase::Open {
                signalled = true;
                let line = Line::Endpoint(rings.place);
                link.set_event_fd(line, Some(event.try_clone()?.into()))?;
            }
        }
        if found && !signalled {
            event.signal();
        }
        Ok(self.queue.event_fd.insert(event).try_clone()?)
    }

    /// Arms the completion interrupt, unless it is still armed at the next entry. Look once more
    /// before pausing: the line shows no edge if it was high and the queue isn't empty.
    pub(crate) fn arm_completions(&mut self, link: &Link) -> Result<Watch, TransportError> {
        loop {
            let fed = self.feed_all(link);
            let watch = self.arm_at_head(link)?;
            // What the application doesn't get may have come before the arming, and then shows no edge either.
            let ready = self.is_ready(link);
            let none = self.queue.page.is_none();
            if ready || self.is_armed() && (!fed || none || !self.is_due()) {
                return Ok(watch);
            }
        }
    }

    /// Whether the next completion interrupts: the queue is armed at the entry that is written next.
    pub(crate) fn is_armed(&self) -> bool {
        self.queue.page.is_none() || self.queue.armed == Some(self.queue.completions.head())
    }

    fn arm_at_head(&mut self, link: &Link) -> Result<Watch, TransportError> {
        let queue = &mut self.queue;
        let watch = link.watch(queue.line());
        if let Some(place) = queue.page {
            let head = queue.completions.head();
            // An interrupt that is armed at an entry not yet written has not been raised.
            if queue.armed != Some(head) || queue.completions.is_written(head) {
                let register = endpoint_page(place) + COMPLETION_ARM;
                link.write(register, u32::from(head))?;
                queue.armed = Some(head);
            }
        }
        let open = |rings: &&mut Rings| rings.phase == Phase::Open;
        for rings in self.endpoints.iter_mut().filter(open) {
            // An event that nobody waits for must not hold the line high.
            if let Some(armed) = rings.event_armed {
                let head = rings.events.head();
                let taken = (armed.wrapping_sub(head) as i16) < 0;
                let mut next = if taken { head } else { armed };
                while rings.events.is_written(next) {
                    next = next.wrapping_add(1);
                }
                if next != armed {
                    rings.arm_events(link, next)?;
                }
            }
        }
        Ok(watch)
    }

    /// Arms the interrupts of the queue and of the events of its endpoints, unless an event has come, or the library has one, that is to interrupt a wait and
    /// hasn't. The lines are added to `watches`.
    pub(crate) fn arm(&mut self, link: &Link, watches: &mut Vec<Watch>) -> Result<(), WaitError> {
        let open = |rings: &&Rings| rings.phase == Phase::Open;
        let lines = self.endpoints.iter().filter(open);
        watches.extend(lines.map(|rings| link.watch(Line::Endpoint(rings.place))));
        self.arm_completions(link)?;
        for at in 0..self.endpoints.len() {
            let mut own = self.of(at);
            let noticed = own.rings.event_noticed;
            if own.rings.event_armed.is_none() && own.rings.phase == Phase::Open {
                own.rings.arm_events(link, noticed)?;
            }
            if own.passes_events() {
                return Err(WaitError::Interrupted);
            }
        }
        match (0..self.endpoints.len()).any(|at| self.of(at).notice_failure()) {
            true => Err(WaitError::Interrupted),
            false => Ok(()),
        }
    }
}

impl Rings {
    fn arm_events(&mut self, link: &Link, index: u16) -> Result<(), TransportError> {
        let register = endpoint_page(self.place) + EVENT_ARM;
        link.write(register, u32::from(index))?;
        self.event_armed = Some(index);
        Ok(())
    }
}

impl Own<'_> {
    /// The endpoint has been opened on the queue: its line tells by the queue's event file descriptor too.
    #[cfg(target_os = "linux")]
    pub(crate) fn begin_event_fd(&mut self, link: &Link) -> Result<(), crate::error::CommandError> {
        if let Some(event) = &self.queue.event_fd
            && !is_broken!(ForgetsLine)
        {
            let line = Line::Endpoint(self.rings.place);
            let none = crate::error::CommandError::Argument(
                "no file descriptor is left for the queue's event",
            );
            let event = event.try_clone().map_err(|_| none)?;
            link.set_event_fd(line, Some(event.into()))?;
        }
        Ok(())
    }

    /// The endpoint is closed: who waits finds what was flushed, and the line may become another endpoint's.
    #[cfg(target_os = "linux")]
    pub(super) fn end_event_fd(&mut self, link: &Link) {
        if let Some(event) = &self.queue.event_fd {
            if !is_broken!(SignalsNoClose) {
                event.signal();
            }
            if is_broken!(KeepsEventFd) {
                return;
            }
            // A card that can't be reached signals no more.
            let _ = link.set_event_fd(Line::Endpoint(self.rings.place), None);
        }
    }

    /// Arms the interrupts of the line at the next entries that the card will write, for who waits for an event and takes none.
    pub(crate) fn arm_for_event(&mut self, link: &Link) -> Result<Watch, TransportError> {
        let watch = link.watch(Line::Endpoint(self.rings.place));
        if self.rings.phase != Phase::Open {
            return Ok(watch);
        }
        let next = self.queue.completions.next_unwritten();
        if self.rings.owns_queue && self.queue.armed != Some(next) {
            let register = endpoint_page(self.rings.place) + COMPLETION_ARM;
            link.write(register, u32::from(next))?;
            self.queue.armed = Some(next);
        }
        let next = self.rings.events.next_unwritten();
        if self.rings.event_armed != Some(next) {
            self.rings.arm_events(link, next)?;
        }
        Ok(watch)
    }

    /// Passes by the events that no wait has passed by, up to one that is to interrupt: of a chosen cause, or the last that the queue has room for, behind
    /// which others would be lost. Whether there is one. Who waits for anyone hears of a failure by the library's own event, though the card's is left in the
    /// queue.
    fn passes_events(&mut self) -> bool {
        while let Some(event) = self.rings.events.look(self.rings.event_noticed) {
            let ahead = self
                .rings
                .event_noticed
                .wrapping_sub(self.rings.events.head());
            let number = self.rings.events_taken + u64::from(ahead);
            self.rings.event_noticed = self.rings.event_noticed.wrapping_add(1);
            let cause = Cause::from_code(event.cause);
            let chosen = cause.is_some_and(|cause| self.rings.interrupts.contains(cause.into()));
            let last = ahead + 1 >= self.rings.events.entries();
            if chosen || last || is_broken!(InterruptsUnasked) {
                return true;
            }
            if cause == Some(Cause::PeerFailed)
                && let Some(failed) = self.pair_of_event(event.pair, number)
                && !is_broken!(SleepsThroughFailure)
            {
                self.note_failed(1 << failed.index);
            }
        }
        false
    }

    /// The causes by which waits are interrupted.
    pub(crate) const fn interrupts(&mut self) -> &mut Causes {
        &mut self.rings.interrupts
    }

    /// Whether the next event would find no room.
    pub(crate) fn events_are_full(&self) -> bool {
        let events = &self.rings.events;
        events.next_unwritten().wrapping_sub(events.head()) >= events.entries()
    }
}
