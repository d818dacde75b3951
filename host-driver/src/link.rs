//! A card that this library owns: the one place that calls the unsafe half of a transport.
//!
//! ```text
//!  Device, Endpoint, rings ── safe calls ──► Link ── unsafe, as the owner ──► Transport
//! ```
//!
//! A `Link` is the claim: making it claims the card, dropping it gives the card up. So every call through it is the owner's. That what
//! a doorbell or a command names is memory of the card's is kept by the modules that ring and ask, which are all of this crate: rings by
//! [`crate::ring`], requests by [`crate::region`], commands by [`crate::device`].

use crate::memory::Owner;
use crate::primitives::{AtomicBool, AtomicU32};
use crate::sync::{Changes, Waits};
use crate::transport::{Answer, Line, PauseResult, SharedMemory, Transport, TransportError, Watch};
use crate::waiting::Waiting;
use abi::register::FIRMWARE_START;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// An owned card.
pub(crate) struct Link {
    transport: Arc<dyn Transport>,
    /// Number of the firmware's start that the card was opened with; 0 before.
    start: AtomicU32,
    /// The firmware has started anew by itself: nothing is open on the card any more.
    restarted: AtomicBool,
    /// Endpoints that were opened, closed, or that a close was given up of; and events of the library's own.
    closings: Changes,
    /// Memory that nobody uses and that couldn't be given back while the card was out of reach.
    unreturned: Waiting<(SharedMemory, Option<Owner>)>,
}

impl Link {
    /// Claims the card; none if somebody owns it.
    pub(crate) fn claim(transport: Arc<dyn Transport>) -> Result<Option<Self>, TransportError> {
        let claimed = transport.claim()?;
        let claimed = claimed || is_broken!(OpensTwice);
        Ok(claimed.then(|| Self {
            transport,
            start: AtomicU32::new(0),
            restarted: AtomicBool::new(false),
            closings: Changes::new(),
            unreturned: Waiting::new(),
        }))
    }

    pub(crate) fn read(&self, offset: u32) -> Result<u32, TransportError> {
        // SAFETY: this link is the owner.
        unsafe { self.transport.read_register(offset) }
    }

    /// Writes a register: one that arms, clears or controls, and moves no ring.
    pub(crate) fn write(&self, offset: u32, value: u32) -> Result<(), TransportError> {
        // SAFETY: this link is the owner. No register but a doorbell makes the card touch memory that it didn't before.
        unsafe { self.transport.write_register(offset, value) }
    }

    /// Rings a doorbell: a ring's, whose entries up to `value` are written and name buffers that are in requests.
    pub(crate) fn doorbell(&self, offset: u32, value: u32) -> Result<(), TransportError> {
        if is_broken!(WaitsForDoorbell) {
            return self.write(offset, value);
        }
        // SAFETY: this link is the owner, and the caller, of this crate, has written the entries.
        unsafe { self.transport.doorbell(offset, value) }
    }

    /// Gives the firmware a command. The caller holds the command channel of the card, and keeps what the command names.
    pub(crate) fn command(
        &self,
        words: &[u32],
        answer: &mut [u32],
        deadline: u64,
    ) -> Result<Answer, TransportError> {
        // SAFETY: this link is the owner; the command channel is held by one at a time, which has settled what was outstanding, and keeps what it names.
        unsafe { self.transport.command(words, answer, deadline) }
    }

    /// Waits for the answer to the command that is outstanding. The caller holds the command channel.
    pub(crate) fn late_answer(
        &self,
        answer: &mut [u32],
        deadline: u64,
    ) -> Result<Answer, TransportError> {
        // SAFETY: as for `command`.
        unsafe { self.transport.late_answer(answer, deadline) }
    }

    pub(crate) fn alloc(&self, length: usize) -> Result<SharedMemory, TransportError> {
        // SAFETY: `HostMemory`, which alone calls this, frees it, and the modules that access it keep to the rules (see its head).
        unsafe { self.transport.alloc(length) }
    }

    /// Lets the card reach memory of the program's, whose owner the caller keeps until [`free`](Self::free).
    pub(crate) fn map(
        &self,
        start: NonNull<u8>,
        length: usize,
    ) -> Result<SharedMemory, TransportError> {
        // SAFETY: as for `alloc`; the bytes are valid as long as their owner is kept, which is until the mapping has ended.
        let address = unsafe { self.transport.map(start, length) }?;
        Ok(SharedMemory {
            start,
            length,
            address,
        })
    }

    /// Gives memory back, to the transport or by dropping its owner: now, or when the card can be reached again. If it never can, the memory is left to it.
    ///
    /// # Safety
    /// As for [`Transport::free`]; the owner is that of the memory, if it was [mapped](Self::map).
    pub(crate) unsafe fn free(&self, memory: SharedMemory, owner: Option<Owner>) {
        let Some(owner) = owner else {
            // SAFETY: the caller's promise is the same.
            if unsafe { self.transport.free(memory) }.is_err() {
                self.unreturned.push_back((memory, None));
            }
            return;
        };
        // SAFETY: the mapping is of this link's `map`.
        match unsafe { self.transport.unmap(memory.address) } {
            // As in `Transport::free`: the mapping is over.
            Ok(()) | Err(TransportError::NotMapped(_) | TransportError::Closed) => {
                // SAFETY: nobody has a reference, as the caller promises, and the card's accesses are over.
                unsafe { owner.end() };
            }
            // SAFETY: of a broken library, whose test has the card do nothing with the memory.
            Err(_) if is_broken!(DropsOwnerUnreached) => unsafe { owner.end() },
            Err(_) => self.unreturned.push_back((memory, Some(owner))),
        }
    }

    /// Gives back what couldn't be given back before.
    pub(crate) fn free_unreturned(&self) {
        for (memory, owner) in self.unreturned.take() {
            // SAFETY: what is in there was given to `free` and was not freed.
            unsafe { self.free(memory, owner) };
        }
    }

    pub(crate) fn now(&self) -> u64 {
        self.transport.now()
    }

    pub(crate) fn interrupts(&self, line: Line) -> u64 {
        self.transport.interrupts(line)
    }

    /// An endpoint was closed, or not after all: wakes who waits for its completions.
    pub(crate) fn closing_ended(&self) {
        if !is_broken!(ClosesInSilence) {
            self.closings.raise(self);
        }
    }

    /// An endpoint is on a completion queue from now on: wakes who waits there.
    pub(crate) fn queue_changed(&self) {
        self.closings.raise(self);
    }

    /// The library has an event of its own: wakes who waits.
    pub(crate) fn own_event(&self) {
        self.closings.raise(self);
    }

    /// Times that a close has ended, or an endpoint was opened, or the library had an event of its own.
    pub(crate) fn closings(&self) -> u64 {
        self.closings.seen()
    }

    /// What a thread waits for that has looked whether something was closed, from when `closings` were counted; none if it has to look again.
    pub(crate) fn watch_closings(&self, closings: u64) -> Option<Watch> {
        self.closings.watch(closings, self)
    }

    /// Has the transport signal a file descriptor when `line` interrupts, or not any more.
    #[cfg(target_os = "linux")]
    pub(crate) fn set_event_fd(
        &self,
        line: Line,
        event: Option<std::os::fd::OwnedFd>,
    ) -> Result<(), TransportError> {
        self.transport.set_event_fd(line, event)
    }

    pub(crate) fn pause(&self, watch: &[Watch], deadline: u64) -> PauseResult {
        self.transport.pause(watch, deadline)
    }

    /// The same, for who looks again whatever has ended it.
    ///
    /// # Errors
    /// If the card is out of reach.
    pub(crate) fn pause_or_fail(
        &self,
        watch: &[Watch],
        deadline: u64,
    ) -> Result<(), TransportError> {
        match self.pause(watch, deadline) {
            PauseResult::Deadline | PauseResult::Interrupt(_) => Ok(()),
            PauseResult::Unreachable => Err(TransportError::Unreachable),
            PauseResult::Closed => Err(TransportError::Closed),
        }
    }

    /// Watches `line` from now on.
    pub(crate) fn watch(&self, line: Line) -> Watch {
        let seen = self.interrupts(line);
        Watch { line, seen }
    }

    pub(crate) fn may_call(&self) -> bool {
        self.transport.may_call()
    }

    /// Whether the card is gone for good.
    pub(crate) fn is_closed(&self) -> bool {
        self.transport.is_closed()
    }

    /// Whether the card has forgotten what was open, so that no completion of it will come.
    pub(crate) fn is_lost(&self) -> bool {
        self.restarted.load(Ordering::Acquire) || self.is_closed()
    }

    pub(crate) fn is_restarted(&self) -> bool {
        self.restarted.load(Ordering::Acquire)
    }

    /// Notes which start of the firmware everything is opened with.
    pub(crate) fn note_start(&self) -> Result<(), TransportError> {
        self.start
            .store(self.read(FIRMWARE_START)?, Ordering::Release);
        Ok(())
    }

    /// Whether another start of the firmware than the noted one is up. While none is up, what is open may go on.
    pub(crate) fn is_another_start(&self) -> Result<bool, TransportError> {
        let start = self.read(FIRMWARE_START)?;
        let another = start != 0 && start != self.start.load(Ordering::Acquire);
        Ok(another && !is_broken!(ForgetsStart))
    }

    /// Notes that the firmware has started anew, and that the gates are quiet.
    pub(crate) fn set_restarted(&self) {
        self.restarted.store(true, Ordering::Release);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.free_unreturned();
        // SAFETY: this link is the owner. Memory keeps its link, so none is left.
        unsafe { self.transport.release() };
    }
}

impl Waits for Link {
    fn notifications(&self) -> Watch {
        self.watch(Line::Library)
    }

    fn wait(&self, watch: Watch) {
        if let PauseResult::Closed | PauseResult::Unreachable = self.pause(&[watch], u64::MAX) {
            std::thread::yield_now();
        }
    }

    fn wake(&self) {
        self.transport.notify();
    }
}
