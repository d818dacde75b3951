//! Endpoints of a soft card: indices of their rings, reservations, interrupts.

use crate::memory::Memory;
use abi::completion::Completion;
use abi::control::{EndpointSetup, RingSetup};
use abi::event::{Cause, Event, NO_PAIR};

/// A ring that the host produces.
#[derive(Clone, Default)]
pub(crate) struct Requests {
    pub(crate) setup: RingSetup,
    pub(crate) tail: u16,
    pub(crate) head: u16,
}

impl Requests {
    pub(crate) fn waiting(&self) -> u16 {
        self.tail.wrapping_sub(self.head)
    }
}

/// A queue that the card produces.
#[derive(Clone, Default)]
pub(crate) struct Entries {
    pub(crate) setup: RingSetup,
    pub(crate) tail: u16,
    pub(crate) head: u16,
    /// Entries promised to requests.
    pub(crate) reserved: u16,
    /// Index that the interrupt is armed at.
    armed: Option<u16>,
}

impl Entries {
    fn size(&self) -> u32 {
        1 << self.setup.log2
    }

    pub(crate) fn has_room(&self) -> bool {
        u32::from(self.reserved) + u32::from(self.tail.wrapping_sub(self.head)) < self.size()
    }

    pub(crate) fn arm(&mut self, index: u16) {
        self.armed = Some(index);
    }

    fn interrupts(&self) -> bool {
        self.armed.is_some_and(|index| index != self.tail)
    }

    /// Takes the host's consumer index; false if the queue never was there.
    pub(crate) fn consume(&mut self, head: u16) -> bool {
        let valid = head.wrapping_sub(self.head) <= self.tail.wrapping_sub(self.head);
        if valid {
            self.head = head;
        }
        valid
    }

    /// Phase bit and address of the next entry of `bytes` bytes.
    fn next(&self, bytes: usize) -> (u8, u64) {
        let pass = self.tail >> self.setup.log2;
        let entry = u64::from(self.tail) & ((1 << self.setup.log2) - 1);
        (
            u8::from(pass & 1 == 0),
            self.setup.base + entry * bytes as u64,
        )
    }
}

/// An endpoint.
#[derive(Clone, Default)]
pub(crate) struct Endpoint {
    pub(crate) setup: Option<EndpointSetup>,
    pub(crate) stopped: bool,
    pub(crate) send: Requests,
    pub(crate) list: Requests,
    pub(crate) completions: Entries,
    pub(crate) events: Entries,
    pub(crate) sticky: u32,
    pub(crate) lost: u32,
    /// Rising edges of the interrupt line, and the line.
    pub(crate) interrupts: u64,
    line: bool,
}

impl Endpoint {
    /// The endpoint when it is forgotten: only the count of its interrupts stays.
    pub(crate) fn cleared(&self) -> Self {
        Self {
            interrupts: self.interrupts,
            ..Self::default()
        }
    }

    /// Writes a completion to the entry that its request reserved.
    pub(crate) fn complete(&mut self, memory: &Memory, completion: Completion) {
        let (phase, address) = self.completions.next(Completion::BYTES);
        let words = Completion {
            phase,
            ..completion
        }
        .to_words();
        self.completions.reserved -= 1;
        self.completions.tail = self.completions.tail.wrapping_add(1);
        if memory.write_entry(address, &words).is_err() {
            self.raise(memory, Cause::CompletionError, NO_PAIR, 0);
        }
        self.update_line();
    }

    /// Raises an event.
    pub(crate) fn raise(&mut self, memory: &Memory, cause: Cause, pair: u16, info: u64) {
        self.sticky |= 1 << cause.code();
        if !self.events.has_room() {
            self.lost = self.lost.wrapping_add(1);
            return;
        }
        let (phase, address) = self.events.next(Event::BYTES);
        let event = Event {
            info,
            cause: cause.code(),
            pair,
            phase,
            ..Event::default()
        };
        // Nobody can be told of an event that can't be written, but by its sticky bit.
        if memory.write_entry(address, &event.to_words()).is_ok() {
            self.events.tail = self.events.tail.wrapping_add(1);
        }
        self.update_line();
    }

    /// Sets the interrupt line to what it must be, and counts its edges.
    pub(crate) fn update_line(&mut self) {
        let line = self.completions.interrupts() || self.events.interrupts();
        self.interrupts += u64::from(line && !self.line);
        self.line = line;
    }
}
