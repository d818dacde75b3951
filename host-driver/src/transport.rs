//! How the library reaches a card: registers, mapped memory, time and interrupts, and nothing else.
//!
//! ```text
//!                read_register, write_register          AXI4-Lite
//!  host thread ─────────────────────────────────────────────────►┐
//!       │ ▲                                                      card
//!       │ └── interrupt counts ◄── pause ◄───────────────────────┤ irq, one line an endpoint
//!       ▼                                                        │
//!  mapped memory ◄───────────────────────────────────────────────┘ AXI4, at the card's addresses
//! ```
//!
//! **Address spaces.** The card may be in another process or at the end of a cable. What it may reach is
//! what [`Transport::map`] was told of, and the address that it knows this memory by is the one
//! that `map` returned. Nothing else relates a pointer of the host to an address of the card.
//!
//! **Time** is counted in cycles of the card's clock. Host code takes none. Each register access
//! takes a number of cycles that the transport documents and blocks the calling thread meanwhile;
//! [`Transport::pause`] takes as many as it waits. A simulated card advances only while every host
//! thread that is attached to it is blocked in one of these calls, so a thread must not wait for another
//! one in any other way, nor poll memory without pausing.
//!
//! **Order.** The card sees the register accesses of one thread in program order, and sees the
//! thread's earlier writes to mapped memory when it sees a register write (a doorbell is a
//! release). What the card writes becomes visible in the order in which the card wrote it, and before an
//! interrupt that the card raised later is counted; each aligned 64-bit word becomes visible whole.

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
    /// No mapping starts at this card address.
    #[error("nothing is mapped at card address {0:#x}")]
    NotMapped(u64),
    /// The card is gone: the simulation ended, or the link to the card is down. No later call will do better.
    #[error("the card is gone")]
    Closed,
}

/// What a thread waits for in [`Transport::pause`]: an interrupt of `endpoint` after the first `seen`.
///
/// Read the count with [`Transport::interrupts`], then arm the interrupt, then look at the queue,
/// then pause: what came before the arming is seen in the queue, and an interrupt after it is counted, so
/// that the pause returns at once. Any number of threads may watch one endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watch {
    /// Endpoint whose interrupts count.
    pub endpoint: u8,
    /// Interrupts of it that the thread knows of.
    pub seen: u64,
}

/// Why [`Transport::pause`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum PauseResult {
    /// The deadline has come.
    Deadline,
    /// This endpoint has interrupted; the first of those watched, if several have.
    Interrupt {
        /// The endpoint.
        endpoint: u8,
    },
    /// The card is gone; see [`TransportError::Closed`].
    Closed,
}

/// One card as its host sees it.
///
/// Offsets are bytes in the register window of [`abi::register`]; page 0 is the mailbox page.
/// The calls may be made from any thread, so a transport has to be `Send` and `Sync`: one that keeps its
/// state in a cell isn't one.
///
/// ```compile_fail,E0277
/// # use host_driver::transport::{PauseResult, Transport, TransportError, Watch};
/// # use std::ptr::NonNull;
/// struct Counting {
///     reads: std::cell::Cell<u64>, // compiles with `std::sync::atomic::AtomicU64`
/// }
/// impl Transport for Counting {
/// #   fn read_register(&self, _: u32) -> Result<u32, TransportError> { Ok(0) }
/// #   fn write_register(&self, _: u32, _: u32) -> Result<(), TransportError> { Ok(()) }
/// #   unsafe fn map(&self, _: NonNull<u8>, _: usize) -> Result<u64, TransportError> { Ok(0) }
/// #   fn unmap(&self, _: u64) -> Result<(), TransportError> { Ok(()) }
/// #   fn now(&self) -> u64 { 0 }
/// #   fn interrupts(&self, _: u8) -> u64 { 0 }
/// #   fn pause(&self, _: &[Watch], _: u64) -> PauseResult { PauseResult::Closed }
///     // …
/// }
/// ```
pub trait Transport: Send + Sync {
    /// Reads a 32-bit register.
    ///
    /// # Errors
    /// [`TransportError::NoRegister`], [`TransportError::Bus`] or [`TransportError::Closed`].
    fn read_register(&self, offset: u32) -> Result<u32, TransportError>;

    /// Writes a 32-bit register. The card has taken the write when the call returns.
    ///
    /// # Errors
    /// As for [`read_register`](Self::read_register).
    fn write_register(&self, offset: u32, value: u32) -> Result<(), TransportError>;

    /// Lets the card read and write `length` bytes of host memory from `start` on and returns the card's
    /// address of the first of them, which is congruent to `start` modulo [`MAP_BYTES`]. A length of 0 is
    /// refused with [`TransportError::NoSpace`].
    ///
    /// # Errors
    /// [`TransportError::NoSpace`] or [`TransportError::Closed`].
    ///
    /// # Safety
    /// The memory is one allocation, and valid for reads and writes through `start`, until the matching
    /// [`unmap`](Self::unmap) has returned or the transport has been dropped. Until then the caller
    /// holds no reference to bytes that the card has been given (entries of a ring between its
    /// two indices, buffers of requests that have not completed), and looks at those that the card
    /// signals by (the last word of a completion or event) with atomic accesses only.
    unsafe fn map(&self, start: NonNull<u8>, length: usize) -> Result<u64, TransportError>;

    /// Ends the mapping that starts at card address `address`. When the call returns, the card's accesses
    /// to it are over; later ones get an error response on the bus.
    ///
    /// # Errors
    /// [`TransportError::NotMapped`]. After [`TransportError::Closed`] nothing is mapped either.
    fn unmap(&self, address: u64) -> Result<(), TransportError>;

    /// Cycles of the card's clock since its reset. Takes no cycles.
    fn now(&self) -> u64;

    /// Interrupts that `endpoint` has raised so far, for completions and events together: the rising
    /// edges of its interrupt line. Takes no cycles.
    fn interrupts(&self, endpoint: u8) -> u64;

    /// Lets the card run until an endpoint in `watch` has interrupted more often than was seen, or until
    /// cycle `deadline`, whichever is first. Returns without taking time if either is so
    /// already. An empty `watch` waits for the deadline.
    fn pause(&self, watch: &[Watch], deadline: u64) -> PauseResult;
}
