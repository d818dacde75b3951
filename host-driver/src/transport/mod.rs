//! How the library reaches a card: registers, mapped memory, commands, time and interrupts, and nothing else.
//!
//! ```text
//!                registers, doorbells, commands         AXI4-Lite
//!  host thread ─────────────────────────────────────────────────►┐
//!       │ ▲                                                      card
//!       │ └── interrupt counts ◄── pause ◄───────────────────────┤ irq: the mailbox's line, one an endpoint
//!       ▼                                                        │
//!  mapped memory ◄───────────────────────────────────────────────┘ AXI4, at the card's addresses
//! ```
//!
//! **Address spaces.** The card may be in another process or at the end of a cable. What it may reach is
//! what [`Transport::alloc`] or [`Transport::map`] made, and the address that it knows this memory by is the one
//! that they returned. Nothing else relates a pointer of the host to an address of the card.
//!
//! **One owner.** A card has one owner at a time, which is whoever [claimed](Transport::claim) it. The calls that
//! change what the card does are unsafe, and one of their obligations is to be the owner: a doorbell rung by somebody else makes
//! the card fetch a request that was carried out before, into a buffer that the program has back.
//!
//! **Time** is counted in cycles of the card's clock. Host code takes none. Each register access
//! takes a number of cycles that the transport documents and blocks the calling thread meanwhile;
//! [`Transport::pause`] takes as many as it waits. A simulated card advances only while every host
//! thread that is attached to it is blocked in one of these calls, so a thread must not wait for another
//! one in any other way, nor poll memory without pausing: it pauses for [`Line::Library`], which the other one raises by
//! [`Transport::notify`].
//!
//! **Order.** The card sees the register accesses and doorbells of one thread in program order, and sees the
//! thread's earlier writes to mapped memory when it sees a register write or a doorbell (both are a
//! release). What the card writes becomes visible in the order in which the card wrote it, and before an
//! interrupt that the card raised later is counted; each aligned 64-bit word becomes visible whole.
//!
//! **Closed and unreachable.** [`TransportError::Closed`] is a promise about memory: the card is gone *and its DMA has ended*, so what it
//! had may be freed and given back. A card that may be alive behind a link that is down is [`TransportError::Unreachable`], which promises nothing: what it
//! had stays allocated.

mod mailbox;

pub use mailbox::Mailbox;

use abi::register::{MAILBOX_INTERRUPT, endpoint_interrupt};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
#[cfg(target_os = "linux")]
use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr::NonNull;

/// A mapping keeps addresses modulo this many bytes: what is aligned for the host is for the card.
pub const MAP_BYTES: usize = 4096;

/// Why a transport could not do as asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// The offset is misaligned, or outside the register window.
    #[error("no register at offset {0:#x}")]
    NoRegister(u32),
    /// The card answered a register access with a bus error.
    #[error("the card answered the access at offset {0:#x} with a bus error")]
    Bus(u32),
    /// The transport has no room for another mapping of this size; unmap something first.
    #[error("no room to map {0} bytes for the card")]
    NoSpace(usize),
    /// No mapping starts at this card address, so that the card reaches nothing through it.
    #[error("nothing is mapped at card address {0:#x}")]
    NotMapped(u64),
    /// The transport signals no event file descriptor: wait by [`Transport::pause`].
    #[error("the transport signals no event file descriptor")]
    NoEventFd,
    /// The card can't be reached at the moment. It may be alive, and still read and write what it was given.
    #[error("the card can't be reached")]
    Unreachable,
    /// The card is gone and none of its accesses to memory is under way or will come: the simulation or the process that ran the card has ended, or
    /// the host has taken the card off its bus. No later call will do better.
    #[error("the card is gone")]
    Closed,
}

/// What interrupts a [`Transport::pause`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Line {
    /// The card's firmware has answered a command.
    Mailbox,
    /// This endpoint has a completion or an event that its interrupt was armed for.
    Endpoint(u8),
    /// A thread of the host has called [`Transport::notify`]. It is no line of the card.
    Library,
}

impl Line {
    /// Number of the card's interrupt line, if it is one and there is such a line.
    pub fn number(self) -> Option<usize> {
        let number = match self {
            Self::Mailbox => MAILBOX_INTERRUPT,
            Self::Endpoint(endpoint) => endpoint_interrupt(endpoint),
            Self::Library => return None,
        };
        (number < abi::register::INTERRUPTS).then_some(number)
    }
}

/// What a thread waits for in [`Transport::pause`]: an interrupt of `line` after the first `seen`.
///
/// Read the count with [`Transport::interrupts`], then arm the interrupt, then look at the queue,
/// then pause: what came before the arming is seen in the queue, and an interrupt after it is counted, so
/// that the pause returns at once. Any number of threads may watch one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watch {
    /// Whose interrupts count.
    pub line: Line,
    /// Interrupts of it that the thread knows of.
    pub seen: u64,
}

/// Why [`Transport::pause`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum PauseResult {
    /// The deadline has come.
    Deadline,
    /// This line has interrupted; the first of those watched, if several have.
    Interrupt(Line),
    /// The card can't be reached; see [`TransportError::Unreachable`]. It may be again later.
    Unreachable,
    /// The card is gone; see [`TransportError::Closed`].
    Closed,
}

/// What became of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Answer {
    /// The firmware has answered: the words are there.
    Complete,
    /// The deadline came first. The firmware may carry the command out still: no other may be given before [`Transport::late_answer`] has said otherwise.
    Outstanding,
    /// The firmware never saw the command and never will.
    NotSent,
}

/// Memory that the host and the card share, as [`Transport::alloc`] made it. It is a description: dropping it frees nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedMemory {
    /// First byte, for the host.
    pub start: NonNull<u8>,
    /// Length in bytes.
    pub length: usize,
    /// The card's address of the first byte.
    pub address: u64,
}

// SAFETY: it is a description of plain bytes that nothing ties to a thread.
unsafe impl Send for SharedMemory {}
// SAFETY: as above.
unsafe impl Sync for SharedMemory {}

/// One card as its host sees it.
///
/// Offsets are bytes in the register window of [`abi::register`]; page 0 is the mailbox page.
/// The calls may be made from any thread for which [`may_call`](Self::may_call) is true, so a transport has to be `Send` and `Sync`: one that keeps its
/// state in a cell isn't one.
///
/// ```compile_fail,E0277
/// # use host_driver::transport::*;
/// # use std::ptr::NonNull;
/// struct Counting {
///     reads: std::cell::Cell<u64>, // compiles with `std::sync::atomic::AtomicU64`
/// }
/// unsafe impl Transport for Counting {
/// #   fn claim(&self) -> Result<bool, TransportError> { Ok(true) }
/// #   unsafe fn release(&self) {}
/// #   unsafe fn read_register(&self, _: u32) -> Result<u32, TransportError> { Ok(0) }
/// #   unsafe fn write_register(&self, _: u32, _: u32) -> Result<(), TransportError> { Ok(()) }
/// #   unsafe fn map(&self, _: NonNull<u8>, _: usize) -> Result<u64, TransportError> { Ok(0) }
/// #   unsafe fn unmap(&self, _: u64) -> Result<(), TransportError> { Ok(()) }
/// #   unsafe fn command(&self, _: &[u32], _: &mut [u32], _: u64) -> Result<Answer, TransportError> { Ok(Answer::Complete) }
/// #   unsafe fn late_answer(&self, _: &mut [u32], _: u64) -> Result<Answer, TransportError> { Ok(Answer::Complete) }
/// #   fn now(&self) -> u64 { 0 }
/// #   fn interrupts(&self, _: Line) -> u64 { 0 }
/// #   fn notify(&self) {}
/// #   fn pause(&self, _: &[Watch], _: u64) -> PauseResult { PauseResult::Closed }
/// #   fn is_closed(&self) -> bool { true }
///     // …
/// }
/// ```
///
/// Who implements it says so, because memory rests on it:
///
/// ```compile_fail,E0200
/// # use host_driver::transport::*;
/// # use std::ptr::NonNull;
/// struct Careless;
/// impl Transport for Careless {
/// #   fn claim(&self) -> Result<bool, TransportError> { Ok(true) }
/// #   unsafe fn release(&self) {}
/// #   unsafe fn read_register(&self, _: u32) -> Result<u32, TransportError> { Ok(0) }
/// #   unsafe fn write_register(&self, _: u32, _: u32) -> Result<(), TransportError> { Ok(()) }
/// #   unsafe fn map(&self, _: NonNull<u8>, _: usize) -> Result<u64, TransportError> { Ok(0) }
/// #   unsafe fn unmap(&self, _: u64) -> Result<(), TransportError> { Ok(()) }
/// #   unsafe fn command(&self, _: &[u32], _: &mut [u32], _: u64) -> Result<Answer, TransportError> { Ok(Answer::Complete) }
/// #   unsafe fn late_answer(&self, _: &mut [u32], _: u64) -> Result<Answer, TransportError> { Ok(Answer::Complete) }
/// #   fn now(&self) -> u64 { 0 }
/// #   fn interrupts(&self, _: Line) -> u64 { 0 }
/// #   fn notify(&self) {}
/// #   fn pause(&self, _: &[Watch], _: u64) -> PauseResult { PauseResult::Closed }
/// #   fn is_closed(&self) -> bool { true }
///     // …
/// }
/// ```
///
/// Safe code can't reach a card's registers, whoever owns it:
///
/// ```compile_fail,E0133
/// # fn example(transport: &dyn host_driver::transport::Transport) {
/// transport.write_register(abi::register::CONTROL, 0);
/// # }
/// ```
///
/// ```compile_fail,E0133
/// # fn example(transport: &dyn host_driver::transport::Transport) {
/// transport.unmap(4096);
/// # }
/// ```
///
/// ```compile_fail,E0133
/// # fn example(transport: &dyn host_driver::transport::Transport, bytes: &mut [u8]) {
/// transport.map(std::ptr::NonNull::from(&mut bytes[0]), bytes.len());
/// # }
/// ```
///
/// # Safety
/// Who implements this trait promises what the library's memory rests on:
///
/// - Memory that `alloc` returned is valid for reads and writes, zeroed, owned by nobody else, aligned to [`MAP_BYTES`] for host and card, and stays so
///   until `free` has returned `Ok`. Its card address is a multiple of its length, rounded up to a power of two.
/// - The card reads and writes memory of the host only inside of mappings, and of these only what the requests, rings and slots that it
///   was given say. Once `unmap` or `free` has returned `Ok`, no access to that mapping is under way or will come.
/// - `Closed` is returned, and `is_closed` is true, only when no access of the card to any memory is under way or will come.
/// - Accesses, doorbells and commands reach the card in the order in which they were made, whoever made them, where one had returned before the other
///   began. One that returned `Unreachable` may be on its way still. When a later access has returned `Ok`, it has reached the card or never will.
/// - `late_answer` returns `NotSent` only if the command has not reached the firmware and never will. It returns the answer also of a command that
///   returned `Unreachable`.
/// - The order of other accesses is that of the head of this module, and accesses to words that the library looks at while the card may write them are
///   atomic.
/// - `claim` is exclusive among everybody who can reach the card, through whatever clone of the transport, until `release`.
pub unsafe trait Transport: Send + Sync {
    /// Makes the caller the owner of the card; false if it has one.
    ///
    /// # Errors
    /// [`TransportError::Closed`] or [`TransportError::Unreachable`].
    fn claim(&self) -> Result<bool, TransportError>;

    /// Ends the ownership. May be called from any thread.
    ///
    /// # Safety
    /// The caller is the owner, and neither reaches the card any more nor uses memory that was mapped for it.
    unsafe fn release(&self);

    /// Reads a 32-bit register.
    ///
    /// # Errors
    /// [`TransportError::NoRegister`], [`TransportError::Bus`], [`TransportError::Unreachable`] or [`TransportError::Closed`].
    ///
    /// # Safety
    /// The caller is the card's owner.
    unsafe fn read_register(&self, offset: u32) -> Result<u32, TransportError>;

    /// Writes a 32-bit register. The card has taken the write when the call returns `Ok`.
    ///
    /// # Errors
    /// As for [`read_register`](Self::read_register). After [`TransportError::Unreachable`] the write has been taken, or is on its way, or is lost; only the
    /// next access that returns `Ok` says that it isn't on its way any more.
    ///
    /// # Safety
    /// The caller is the card's owner. What the write makes the card do touches only memory that the owner has given to it: the indices of a ring move over
    /// entries that name such memory, and commands to the firmware name such memory.
    unsafe fn write_register(&self, offset: u32, value: u32) -> Result<(), TransportError>;

    /// Rings a doorbell: a posted write. The call may return before the card has taken it, and an error may stay untold; later accesses
    /// of the thread are seen after it.
    ///
    /// # Errors
    /// As for [`read_register`](Self::read_register).
    ///
    /// # Safety
    /// As for [`write_register`](Self::write_register).
    unsafe fn doorbell(&self, offset: u32, value: u32) -> Result<(), TransportError> {
        // SAFETY: the caller's promise is the same.
        unsafe { self.write_register(offset, value) }
    }

    /// Gets `length` zeroed bytes that host and card share. A transport to a card in another process takes them from
    /// memory that both have; the default takes them from this process's allocator and maps them.
    ///
    /// # Errors
    /// [`TransportError::NoSpace`], [`TransportError::Unreachable`] or [`TransportError::Closed`].
    ///
    /// # Safety
    /// Until [`free`](Self::free) the caller keeps to the rules of [`map`](Self::map) for references to these bytes.
    unsafe fn alloc(&self, length: usize) -> Result<SharedMemory, TransportError> {
        let layout = layout(length).ok_or(TransportError::NoSpace(length))?;
        // SAFETY: the layout's size is not 0, as `layout` checks.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else {
            handle_alloc_error(layout)
        };
        // SAFETY: an allocation of `length` bytes, freed by `free` once it is unmapped; the caller keeps to the rules.
        match unsafe { self.map(start, length) } {
            Ok(address) => Ok(SharedMemory {
                start,
                length,
                address,
            }),
            Err(error) => {
                // SAFETY: allocated above with this layout, and the card never had its address.
                unsafe { dealloc(start.as_ptr(), layout) };
                Err(error)
            }
        }
    }

    /// Gives memory of [`alloc`](Self::alloc) back, once the card can't reach it any more. May be called from any thread. This is the one place that
    /// decides when memory of the card's is free: after an error it stays allocated, and is still the caller's, for another try or for ever.
    ///
    /// # Errors
    /// [`TransportError::Unreachable`].
    ///
    /// # Safety
    /// The memory is of this transport's `alloc`, was not freed before, and nobody has a reference to it.
    unsafe fn free(&self, memory: SharedMemory) -> Result<(), TransportError> {
        // SAFETY: nobody has a reference to the memory.
        match unsafe { self.unmap(memory.address) } {
            // The mapping is over: it was ended just now, or there was none, or there is no card any more.
            Ok(()) | Err(TransportError::NotMapped(_) | TransportError::Closed) => {
                if let Some(layout) = layout(memory.length) {
                    // SAFETY: allocated by `alloc` with this layout, and nobody reaches it.
                    unsafe { dealloc(memory.start.as_ptr(), layout) };
                }
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Lets the card read and write `length` bytes of host memory from `start` on and returns the card's
    /// address of the first of them, which is congruent to `start` modulo [`MAP_BYTES`]. If `start` is a multiple of that, the address is also one of
    /// `length`, rounded up to a power of two: the card wants its rings [aligned to their size](abi::ring::ring_bytes). A length of 0 is
    /// refused with [`TransportError::NoSpace`].
    ///
    /// # Errors
    /// [`TransportError::NoSpace`], [`TransportError::Unreachable`] or [`TransportError::Closed`].
    ///
    /// # Safety
    /// The memory is one allocation, and valid for reads and writes through `start`, until the matching
    /// [`unmap`](Self::unmap) has returned `Ok` or the transport has been dropped. Until then the caller
    /// holds no reference to bytes that the card has been given (entries of a ring between its
    /// two indices, buffers of requests that have not completed), except shared ones to buffers of sends, which
    /// both only read, and looks at those that the card
    /// signals by (the last word of a completion or event) with atomic accesses only.
    unsafe fn map(&self, start: NonNull<u8>, length: usize) -> Result<u64, TransportError>;

    /// Ends the mapping that starts at card address `address`. When the call returns `Ok`, the card's accesses
    /// to it are over; later ones get an error response on the bus. May be called from any thread.
    ///
    /// # Errors
    /// [`TransportError::NotMapped`], [`TransportError::Unreachable`] or [`TransportError::Closed`].
    ///
    /// # Safety
    /// The mapping is the caller's own.
    unsafe fn unmap(&self, address: u64) -> Result<(), TransportError>;

    /// Has the card's firmware carry out the command in `words`, and waits for its answer until cycle `deadline`. As many words of the answer as `answer` has are
    /// written to it when it is [`Answer::Complete`]. A transport with registers only gives this to a [`Mailbox`]; one through a mediator has the mediator do it.
    ///
    /// # Errors
    /// As for [`read_register`](Self::read_register). After [`TransportError::Unreachable`] the command may be outstanding, as after [`Answer::Outstanding`].
    ///
    /// # Safety
    /// The caller is the card's owner. What the command names (rings, slots, regions) is memory that the card may access from now on, until the
    /// command that ends it has been answered. No other command is under way or outstanding.
    unsafe fn command(
        &self,
        words: &[u32],
        answer: &mut [u32],
        deadline: u64,
    ) -> Result<Answer, TransportError>;

    /// Waits until cycle `deadline` for the answer to the last command whose caller has not got one. [`Answer::NotSent`] if there is none, or if it was lost on its
    /// way to the firmware; what it named is the caller's again then. Who doesn't know whether it was lost returns an error, or [`Answer::Outstanding`].
    ///
    /// # Errors
    /// As for [`command`](Self::command).
    ///
    /// # Safety
    /// The caller is the card's owner, and in no other call of this or of [`command`](Self::command).
    unsafe fn late_answer(
        &self,
        answer: &mut [u32],
        deadline: u64,
    ) -> Result<Answer, TransportError>;

    /// Cycles of the card's clock since its reset. Takes no cycles. May be called from any thread.
    fn now(&self) -> u64;

    /// Interrupts of `line` so far: rising edges of the card's interrupt line, or notifications. Takes no cycles. May be called from any thread.
    fn interrupts(&self, line: Line) -> u64;

    /// From now on signals this event file descriptor too, by [`signal_event_fd`], when `line` interrupts, and when the card is gone. It takes the place of
    /// the one that the line had; none ends that. Takes no cycles. May be called from any thread. Unless a transport says otherwise it can't.
    ///
    /// # Errors
    /// [`TransportError::NoEventFd`], [`TransportError::Unreachable`] or [`TransportError::Closed`].
    #[cfg(target_os = "linux")]
    fn set_event_fd(&self, line: Line, event: Option<OwnedFd>) -> Result<(), TransportError> {
        let _ = (line, event);
        Err(TransportError::NoEventFd)
    }

    /// Counts an interrupt of [`Line::Library`], and wakes those who watch it.
    fn notify(&self);

    /// Lets the card run until a line in `watch` has interrupted more often than was seen, or until
    /// cycle `deadline`, whichever is first. Returns without taking time if either is so
    /// already. An empty `watch` waits for the deadline.
    fn pause(&self, watch: &[Watch], deadline: u64) -> PauseResult;

    /// Whether the card is gone; see [`TransportError::Closed`]. Takes no cycles. May be called from any thread.
    fn is_closed(&self) -> bool;

    /// Whether this thread may make the calls that take time. A simulated card knows the threads of its host, and others may not.
    fn may_call(&self) -> bool {
        true
    }
}

/// Makes an event file descriptor readable.
#[cfg(target_os = "linux")]
pub fn signal_event_fd(event: BorrowedFd<'_>) {
    // It fails only if it has been signalled 2^64 - 2 times and is readable anyway.
    let _ = rustix::io::write(event, &1u64.to_ne_bytes());
}

fn layout(length: usize) -> Option<Layout> {
    let layout = Layout::from_size_align(length, MAP_BYTES).ok()?;
    (layout.size() > 0).then_some(layout)
}
