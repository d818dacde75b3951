//! The card's registers: a 32-bit AXI4-Lite window of 4 KiB pages.
//!
//! Page 0 is the *mailbox page* and is privileged: identity, control of the management processor, the
//! mailbox. Page `1 + e` is the *doorbell page* of endpoint `e`, and that page is the endpoint's
//! identity: what an endpoint may do is decided by the page it can reach.

use crate::constant::constants;
use crate::limits::MAX_ENDPOINTS;

constants! {
    /// Geometry of the window, and the interrupt lines.
    WINDOW {
        /// Bytes of a page.
        PAGE_BYTES: u32 = 4096;
        /// Pages before that of endpoint 0.
        FIRST_ENDPOINT_PAGE: u32 = 1;
        /// Bits of a byte address in the window.
        WINDOW_ADDRESS_BITS: u32 = 20;
        /// Bytes of the window.
        WINDOW_BYTES: u32 = 1 << WINDOW_ADDRESS_BITS;
        /// Interrupt lines of a card.
        INTERRUPTS: usize = 32;
        /// Interrupt line that is high while the mailbox has an answer.
        MAILBOX_INTERRUPT: usize = 0;
        /// Interrupt line of endpoint 0; those of the others follow.
        FIRST_ENDPOINT_INTERRUPT: usize = 1;
    }
}

/// Who may do what with a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads only; a write is ignored.
    ReadOnly,
    /// Writes only; reads as zero.
    WriteOnly,
    /// Both.
    ReadWrite,
}

/// A register, for the register map of the book and for tools.
#[derive(Clone, Copy, Debug)]
pub struct Register {
    /// Name.
    pub name: &'static str,
    /// Byte offset in its page.
    pub offset: u32,
    /// Access.
    pub access: Access,
    /// What it does.
    pub doc: &'static str,
}

macro_rules! registers {
    ($(#[$meta:meta])* $table:ident { $($(#[doc = $doc:literal])+ $name:ident = $offset:literal, $access:ident;)* }) => {
        $($(#[doc = $doc])+ pub const $name: u32 = $offset;)*
        $(#[$meta])*
        pub const $table: &[$crate::register::Register] = &[$($crate::register::Register {
            name: stringify!($name),
            offset: $offset,
            access: $crate::register::Access::$access,
            doc: concat!($($doc),+),
        }),*];
    };
}
pub(crate) use registers;

registers! {
    /// Registers of page 0.
    MAILBOX_PAGE {
        /// Reads [`MAGIC`].
        ID = 0x000, ReadOnly;
        /// Reads [`ABI_VERSION`](crate::ABI_VERSION).
        ABI = 0x004, ReadOnly;
        /// Bits `STATUS_*`.
        STATUS = 0x008, ReadOnly;
        /// Bits `CONTROL_*`.
        CONTROL = 0x00c, ReadWrite;
        /// Writing a sequence number hands the command in the mailbox to the firmware.
        MAILBOX_REQUEST = 0x010, ReadWrite;
        /// Sequence number of the last command answered; equal to the request's when the answer is there.
        MAILBOX_ANSWER = 0x014, ReadOnly;
        /// Number of the firmware's start while [`STATUS_FIRMWARE`] is set, and 0 otherwise. Each start has the number after that of the start
        /// before, modulo 2^32 and without 0, also if the gates were reset in between; the first after power-on has any. A host that reads
        /// another one than when it opened the card knows that all its objects are gone.
        FIRMWARE_START = 0x018, ReadOnly;
        /// Address, as the processor sees it, of the next loader word; only while the processor is held.
        LOADER_ADDRESS = 0x020, ReadWrite;
        /// Writes a word of the management memory and advances the address; ignored unless the processor is held.
        LOADER_DATA = 0x024, WriteOnly;
        /// First word of the command area, [`MAILBOX_WORDS`] words.
        MAILBOX_COMMAND = 0x100, ReadWrite;
        /// First word of the answer area, [`MAILBOX_WORDS`] words.
        MAILBOX_RESULT = 0x200, ReadOnly;
    }
}

registers! {
    /// Registers of an endpoint's doorbell page.
    ENDPOINT_PAGE {
        /// Producer index of the send ring.
        SEND_TAIL = 0x000, WriteOnly;
        /// Producer index of the list ring.
        LIST_TAIL = 0x004, WriteOnly;
        /// Consumer index of the completion queue.
        COMPLETION_HEAD = 0x008, WriteOnly;
        /// Consumer index of the event queue.
        EVENT_HEAD = 0x00c, WriteOnly;
        /// Arms the completion interrupt: it is raised when the queue's producer index is past the value written. Only the next arming lowers it: polling and
        /// ringing `COMPLETION_HEAD` don't.
        COMPLETION_ARM = 0x010, WriteOnly;
        /// Arms the event interrupt in the same way.
        EVENT_ARM = 0x014, WriteOnly;
        /// Index up to which the card has fetched the send ring.
        SEND_HEAD = 0x020, ReadOnly;
        /// Index up to which the card has fetched the list ring.
        LIST_HEAD = 0x024, ReadOnly;
        /// Producer index of the completion queue.
        COMPLETION_TAIL = 0x028, ReadOnly;
        /// Producer index of the event queue.
        EVENT_TAIL = 0x02c, ReadOnly;
        /// One bit for each [`Cause`](crate::event::Cause) that has occurred; writing ones clears them.
        STICKY = 0x030, ReadWrite;
        /// Events that found the queue full.
        EVENTS_LOST = 0x034, ReadOnly;
    }
}

constants! {
    /// Values and bits of the registers of page 0.
    VALUES {
        /// What [`ID`] reads: "PSTH".
        MAGIC: u32 = 0x5053_5448;
        /// [`STATUS`]: the memories are cleared and the card takes requests.
        STATUS_READY: u32 = 1 << 0;
        /// [`STATUS`]: the firmware is up and answers the mailbox.
        STATUS_FIRMWARE: u32 = 1 << 1;
        /// [`CONTROL`]: lets the management processor run; cleared, it is held in reset.
        CONTROL_RUN: u32 = 1 << 0;
        /// [`CONTROL`]: written as 1, quiets the card's DMA and wire and then clears every table of the gates; the mailbox page and the
        /// memory of the management processor stay. Reads as 1 while that is under way, and [`STATUS_READY`] reads as 0 until the tables are clear.
        /// Doorbells rung meanwhile are ignored.
        CONTROL_RESET: u32 = 1 << 1;
        /// Words of each mailbox area.
        MAILBOX_WORDS: usize = 32;
    }
}

/// Byte address of the doorbell page of an endpoint.
pub const fn endpoint_page(endpoint: u8) -> u32 {
    (FIRST_ENDPOINT_PAGE + endpoint as u32) * PAGE_BYTES
}

/// Interrupt line of an endpoint. A number of [`INTERRUPTS`] or more is no line.
pub const fn endpoint_interrupt(endpoint: u8) -> usize {
    FIRST_ENDPOINT_INTERRUPT + endpoint as usize
}

const _: () = assert!(endpoint_page(MAX_ENDPOINTS as u8) <= WINDOW_BYTES);
const _: () = assert!(endpoint_interrupt(MAX_ENDPOINTS as u8) <= INTERRUPTS);
