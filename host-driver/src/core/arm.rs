//! Interrupts: armed at the entries that the card writes next.

use super::{Core, Phase};
use crate::error::WaitError;
#[cfg(target_os = "linux")]
use crate::event_fd::{EventFd, EventFdError};
use crate::link::Link;
use crate::transport::{Line, TransportError, Watch};
use abi::register::{COMPLETION_ARM, EVENT_ARM, endpoint_page};

impl Core {
    /// The endpoint's event file descriptor, which is made when it is first asked for. That of an endpoint that isn't open is signalled.
    #[cfg(target_os = "linux")]
    pub(crate) fn event_fd(&mut self, link: &Link) -> Result<EventFd, EventFdError> {
        if let Some(event) = &self.event_fd {
            return Ok(event.try_clone()?);
        }
        let event = EventFd::new()?;
        match self.phase {
            Phase::Open => {
                let line = Line::Endpoint(self.endpoint);
                link.set_event_fd(line, Some(event.try_clone()?.into()))?;
            }
            Phase::Closing | Phase::Closed => event.signal(),
        }
        Ok(self.event_fd.insert(event).try_clone()?)
    }

    /// The endpoint is closed: who waits finds what was flushed, and the line may become another endpoint's.
    #[cfg(target_os = "linux")]
    pub(super) fn end_event_fd(&mut self, link: &Link) {
        if let Some(event) = &self.event_fd
            && self.phase != Phase::Closed
        {
            if !is_broken!(SignalsNoClose) {
                event.signal();
            }
            if is_broken!(KeepsEventFd) {
                return;
            }
            // A card that can't be reached signals no more.
            let _ = link.set_event_fd(Line::Endpoint(self.endpoint), None);
        }
    }

    /// Arms the completion interrupt, unless it is still armed at the next entry. Look once more
    /// before pausing: the line shows no edge if it was high and the queue isn't empty.
    pub(crate) fn arm_completions(&mut self, link: &Link) -> Result<Watch, TransportError> {
        loop {
            let fed = self.feed_all(link);
            let watch = self.arm_at_head(link)?;
            // What the application doesn't get may have come before the arming, and then shows no edge either.
            let armed = self.completion_armed;
            let ready = self.is_ready(link);
            let asleep = armed == Some(self.completions.head()) || self.phase != Phase::Open;
            if ready || asleep && (!fed || self.phase != Phase::Open || !self.is_due()) {
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

    /// Whether the next event would find no room.
    pub(crate) fn events_are_full(&self) -> bool {
        let next = self.events.next_unwritten();
        next.wrapping_sub(self.events.head()) >= self.events.entries()
    }

    pub(super) fn arm_at_head(&mut self, link: &Link) -> Result<Watch, TransportError> {
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
            link.write(register, u32::from(self.event_noticed))?;
            self.event_armed = Some(self.event_noticed);
        }
        if self.events.is_written(self.event_noticed) {
            self.event_noticed = self.event_noticed.wrapping_add(1);
            return Err(WaitError::Interrupted);
        }
        Ok(watch)
    }
}
