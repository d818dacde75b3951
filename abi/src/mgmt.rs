//! The management processor's address map: memory, and the registers by which the firmware sees the card.
//!
//! Ibex starts at `MEMORY_BASE + 0x80`. All registers are 32 bits, word access only.

use crate::constant::constants;

constants! {
    /// The processor's memory, and the clock.
    MEMORY {
        /// First byte of the memory.
        MEMORY_BASE: u32 = 0x4000_0000;
        /// Bytes of memory.
        MEMORY_BYTES: u32 = 64 * 1024;
        /// Nanoseconds of a cycle of the card's nominal clock, by which the firmware's delays count.
        CLOCK_NS: u32 = 8;
        /// First byte of the persistent memory: the last bytes of the memory, which neither the loader nor the firmware's start
        /// writes, so that epochs go on over a restart of the firmware. After power-on its contents are arbitrary.
        PERSISTENT_BASE: u32 = MEMORY_BASE + MEMORY_BYTES - PERSISTENT_BYTES;
        /// Bytes of persistent memory.
        PERSISTENT_BYTES: u32 = 1024;
    }
}

/// First byte of the registers.
pub const REGISTER_BASE: u32 = 0xf000_0000;

/// Write: a byte of the `defmt` stream.
pub const LOG: u32 = 0x00;
/// Read: free-running cycle counter, low word.
pub const TIME: u32 = 0x04;
/// Read and write: the timer interrupt is pending while `TIME - TIMER_COMPARE` is not negative (as a signed number) and the timer is enabled.
pub const TIMER_COMPARE: u32 = 0x08;
/// Write: bit 0 enables the timer interrupt.
pub const TIMER_ENABLE: u32 = 0x0c;
/// Read: sequence number of the host's last command.
pub const MAILBOX_REQUEST: u32 = 0x10;
/// Write: sequence number of the command answered; also clears the external interrupt that the command raised.
pub const MAILBOX_ANSWER: u32 = 0x14;
/// Write: the number of this start of the firmware, never 0, says that it is up; 0 says that it isn't, and is what a processor that is held leaves.
pub const FIRMWARE_START: u32 = 0x18;
/// Write: control operation in bits 7:0, index in bits 31:16; starts the request.
pub const CONTROL_START: u32 = 0x20;
/// Bit of [`CONTROL_START`] where the index begins.
pub const CONTROL_INDEX_SHIFT: u32 = 16;
/// Read: 1 while a control request is under way.
pub const CONTROL_BUSY: u32 = 0x24;
/// Read: result, low word; the high word follows.
pub const CONTROL_RESULT: u32 = 0x28;
/// Read: the card's sizes, [`SIZE_WORDS`] words in the order endpoints, pairs, posted, unexpected, regions.
pub const SIZES: u32 = 0x30;
/// Words at [`SIZES`].
pub const SIZE_WORDS: usize = 5;
/// Read: a hardware random word that differs from card to card (seeded in simulation).
pub const RANDOM: u32 = 0x44;
/// Read: own Ethernet address as strapped, low word; the high word follows.
pub const MAC: u32 = 0x48;
/// Write: bit 0 starts a reset of the gates, which leaves the processor, its registers and the mailbox alone. Read: bit 0 is 1 while it is
/// under way. The reset waits until the DMA accesses under way have been answered and the frame being sent has ended; then every
/// table of the datapath is cleared.
pub const GATES_RESET: u32 = 0x50;
/// Read: what asks for the processor, one bit each: `INTERRUPT_*`. Levels, not affected by [`INTERRUPT_ENABLE`].
pub const INTERRUPT_PENDING: u32 = 0x54;
/// Read and write: which bits of [`INTERRUPT_PENDING`] raise the external interrupt. [`INTERRUPT_MAILBOX`] after reset.
pub const INTERRUPT_ENABLE: u32 = 0x58;
/// The host's last command isn't the one answered last.
pub const INTERRUPT_MAILBOX: u32 = 1 << 0;
/// No control request is under way.
pub const INTERRUPT_CONTROL: u32 = 1 << 1;
/// A frame waits in [`FRAME_IN`].
pub const INTERRUPT_FRAME_IN: u32 = 1 << 2;
/// [`FRAME_OUT`] may be written: no frame of the firmware is being sent.
pub const INTERRUPT_FRAME_OUT: u32 = 1 << 3;
/// An event waits in [`EVENT`].
pub const INTERRUPT_EVENT: u32 = 1 << 4;
/// No reset of the gates is under way, and every table is cleared.
pub const INTERRUPT_GATES_READY: u32 = 1 << 5;
/// Write: sends the frame in [`FRAME_OUT`]. The gates append the trailer with the CRC. Ignored while one is being sent.
pub const FRAME_SEND: u32 = 0x60;
/// Write: frees the frame in [`FRAME_IN`]; the next one then stands there.
pub const FRAME_TAKE: u32 = 0x64;
/// Read: frames for the firmware that found no room. Wraps.
pub const FRAMES_LOST: u32 = 0x68;
/// Write: frees the event in [`EVENT`]; the next one then stands there.
pub const EVENT_TAKE: u32 = 0x6c;
/// Read: the oldest event of the gates: cause in bits 7:0, endpoint in bits 15:8, pair in bits 31:16; `info` follows, low word first.
/// Valid while [`INTERRUPT_EVENT`] is pending.
pub const EVENT: u32 = 0x70;
/// Read: events of the gates that found the processor's queue full. Wraps.
pub const EVENTS_LOST: u32 = 0x7c;
/// Write: first of the control data words, `2 * control::DATA_WORDS` words, low word of each first.
pub const CONTROL_DATA: u32 = 0x80;
/// Read: the host's command area, `register::MAILBOX_WORDS` words.
pub const MAILBOX_COMMAND: u32 = 0x100;
/// Write: the answer area, `register::MAILBOX_WORDS` words.
pub const MAILBOX_RESULT: u32 = 0x200;
/// Write: the frame to send, [`FRAME_WORDS`] words, low word first: the header of [`crate::wire`], then the payload. The whole frame is
/// the firmware's, addresses included.
pub const FRAME_OUT: u32 = 0x300;
/// Read: the oldest frame for the firmware, [`FRAME_WORDS`] words, low word first. Valid while [`INTERRUPT_FRAME_IN`] is pending.
pub const FRAME_IN: u32 = 0x380;
/// 32-bit words of a frame of the firmware.
pub const FRAME_WORDS: usize = (crate::wire::HEADER_BYTES + crate::wire::MANAGEMENT_BYTES) / 4;
/// Frames for the firmware that the gates keep.
pub const FRAMES_IN: usize = 4;
/// Events for the firmware that the gates keep.
pub const EVENTS_IN: usize = 16;
/// Cycles from one event [`AccessRefused`](crate::event::Cause::AccessRefused) to the next, at least: 131 µs.
pub const REFUSAL_INTERVAL: u32 = 1 << 14;

/// What is written to [`CONTROL_START`] for an operation on an index.
pub const fn control_start(operation: crate::control::Operation, index: u16) -> u32 {
    (index as u32) << CONTROL_INDEX_SHIFT | operation as u32
}
