//! The management processor's address map: memory, and the registers by which the firmware sees the card.
//!
//! Ibex starts at `MEMORY_BASE + 0x80`. All registers are 32 bits, word access only.

use crate::constant::constants;
use crate::register::registers;

constants! {
    /// The processor's memory, and the clock.
    MEMORY {
        /// First byte of the memory.
        MEMORY_BASE: u32 = 0x4000_0000;
        /// Bytes of memory.
        MEMORY_BYTES: u32 = 96 * 1024;
        /// Nanoseconds of a cycle of the card's nominal clock, by which the firmware's delays count.
        CLOCK_NS: u32 = 8;
        /// First byte of the persistent memory: the last bytes of the memory, which neither the loader nor the firmware's start
        /// writes, so that epochs go on over a restart of the firmware. After power-on its contents are arbitrary.
        PERSISTENT_BASE: u32 = MEMORY_BASE + MEMORY_BYTES - PERSISTENT_BYTES;
        /// Bytes of persistent memory.
        PERSISTENT_BYTES: u32 = 1024;
    }
}

/// A word of the processor's memory from its bytes, the lowest first. Of those that are missing each is zero.
///
/// # Panics
/// If there are more than four.
pub fn memory_word(bytes: &[u8]) -> u32 {
    let mut word = [0; 4];
    word[..bytes.len()].copy_from_slice(bytes);
    u32::from_le_bytes(word)
}

registers! {
    /// Registers, by their offset from `REGISTER_BASE`.
    REGISTERS {
        /// A byte of the `defmt` stream.
        LOG = 0x00, WriteOnly;
        /// Free-running cycle counter, low word.
        TIME = 0x04, ReadOnly;
        /// The timer interrupt is pending while `TIME - TIMER_COMPARE` is not negative (as a signed number) and the timer is enabled.
        TIMER_COMPARE = 0x08, ReadWrite;
        /// Bit 0 enables the timer interrupt.
        TIMER_ENABLE = 0x0c, WriteOnly;
        /// Sequence number of the host's last command.
        MAILBOX_REQUEST = 0x10, ReadOnly;
        /// Sequence number of the command answered; also clears the external interrupt that the command raised.
        MAILBOX_ANSWER = 0x14, WriteOnly;
        /// The number of this start of the firmware, never 0, says that it is up; 0 says that it isn't, and is what a processor that is held leaves.
        FIRMWARE_START = 0x18, WriteOnly;
        /// Control operation in bits 7:0, index in bits 31:16; starts the request.
        CONTROL_START = 0x20, WriteOnly;
        /// 1 while a control request is under way.
        CONTROL_BUSY = 0x24, ReadOnly;
        /// Result, low word; the high word follows. While the request is under way, what it waits for: an [`AccessReport`](crate::control::AccessReport), each word of
        /// it as it is in the cycle in which it is read.
        CONTROL_RESULT = 0x28, ReadOnly;
        /// A hardware random word that differs from card to card (seeded in simulation).
        RANDOM = 0x44, ReadOnly;
        /// Own Ethernet address as strapped, low word; the high word follows.
        MAC = 0x48, ReadOnly;
        /// Writing bit 0 starts a reset of the gates, which leaves the processor, its registers and the mailbox alone. Bit 0 reads as 1 while it is
        /// under way. The reset waits until the DMA accesses under way have been answered and the frame being sent has ended; then every
        /// table of the datapath is cleared.
        GATES_RESET = 0x50, ReadWrite;
        /// What asks for the processor, one bit each: `INTERRUPT_*`. Levels, not affected by [`INTERRUPT_ENABLE`].
        INTERRUPT_PENDING = 0x54, ReadOnly;
        /// Which bits of [`INTERRUPT_PENDING`] raise the external interrupt. [`INTERRUPT_MAILBOX`] after reset.
        INTERRUPT_ENABLE = 0x58, ReadWrite;
        /// Sends the frame in [`FRAME_OUT`]. The gates append the trailer with the CRC. Ignored while one is being sent.
        FRAME_SEND = 0x60, WriteOnly;
        /// Frees the frame in [`FRAME_IN`]; the next one then stands there.
        FRAME_TAKE = 0x64, WriteOnly;
        /// Frames for the firmware that found no room. Wraps.
        FRAMES_LOST = 0x68, ReadOnly;
        /// Frees the event in [`EVENT`]; the next one then stands there.
        EVENT_TAKE = 0x6c, WriteOnly;
        /// The oldest event of the gates: cause in bits 7:0, endpoint in bits 15:8, pair in bits 31:16; `info` follows, low word first.
        /// Valid while [`INTERRUPT_EVENT`] is pending.
        EVENT = 0x70, ReadOnly;
        /// Events of the gates that found the processor's queue full. Wraps.
        EVENTS_LOST = 0x7c, ReadOnly;
        /// First of the control data words, `2 * control::DATA_WORDS` words, low word of each first.
        CONTROL_DATA = 0x80, WriteOnly;
        /// The card's sizes and capabilities, [`SIZE_WORDS`] words in the order endpoints, pairs, posted, unexpected, regions, receives that each endpoint
        /// has for itself, capabilities, descriptors of sends, rules, grants.
        SIZES = 0xc0, ReadOnly;
        /// The host's command area, `register::MAILBOX_WORDS` words.
        MAILBOX_COMMAND = 0x100, ReadOnly;
        /// The answer area, `register::MAILBOX_WORDS` words.
        MAILBOX_RESULT = 0x200, WriteOnly;
        /// The frame to send, [`FRAME_WORDS`] words, low word first: the header of [`crate::wire`], then the payload. The whole frame is
        /// the firmware's, addresses included.
        FRAME_OUT = 0x300, WriteOnly;
        /// The oldest frame for the firmware, [`FRAME_WORDS`] words, low word first. Valid while [`INTERRUPT_FRAME_IN`] is pending.
        FRAME_IN = 0x380, ReadOnly;
    }
}

constants! {
    /// Where the registers are, and their bits and numbers.
    VALUES {
        /// First byte of the registers.
        REGISTER_BASE: u32 = 0xf000_0000;
        /// Bit of [`CONTROL_START`] where the index begins.
        CONTROL_INDEX_SHIFT: u32 = 16;
        /// Bit of [`EVENT`] where the endpoint begins.
        EVENT_ENDPOINT_SHIFT: u32 = 8;
        /// Bit of [`EVENT`] where the pair begins.
        EVENT_PAIR_SHIFT: u32 = 16;
        /// Words at [`SIZES`].
        SIZE_WORDS: usize = 10;
        /// The host's last command isn't the one answered last.
        INTERRUPT_MAILBOX: u32 = 1 << 0;
        /// No control request is under way.
        INTERRUPT_CONTROL: u32 = 1 << 1;
        /// A frame waits in [`FRAME_IN`].
        INTERRUPT_FRAME_IN: u32 = 1 << 2;
        /// [`FRAME_OUT`] may be written: no frame of the firmware is being sent.
        INTERRUPT_FRAME_OUT: u32 = 1 << 3;
        /// An event waits in [`EVENT`].
        INTERRUPT_EVENT: u32 = 1 << 4;
        /// No reset of the gates is under way, and every table is cleared.
        INTERRUPT_GATES_READY: u32 = 1 << 5;
        /// 32-bit words of a frame of the firmware.
        FRAME_WORDS: usize = (crate::wire::HEADER_BYTES + crate::wire::MANAGEMENT_BYTES) / 4;
        /// Frames for the firmware that the gates keep.
        FRAMES_IN: usize = 4;
        /// Events for the firmware that the gates keep.
        EVENTS_IN: usize = 16;
    }
}

/// What is written to [`CONTROL_START`] for an operation on an index.
pub const fn control_start(operation: crate::control::Operation, index: u16) -> u32 {
    (index as u32) << CONTROL_INDEX_SHIFT | operation as u32
}

/// Operation's code and index of what is written to [`CONTROL_START`].
pub const fn control_started(word: u32) -> (u8, u16) {
    (word as u8, (word >> CONTROL_INDEX_SHIFT) as u16)
}

/// First word of [`EVENT`], from the cause's code, the endpoint and the pair.
pub const fn event_word(cause: u8, endpoint: u8, pair: u16) -> u32 {
    (pair as u32) << EVENT_PAIR_SHIFT | (endpoint as u32) << EVENT_ENDPOINT_SHIFT | cause as u32
}

/// Cause's code, endpoint and pair of such a word.
pub const fn event_fields(word: u32) -> (u8, u8, u16) {
    let endpoint = (word >> EVENT_ENDPOINT_SHIFT) as u8;
    (word as u8, endpoint, (word >> EVENT_PAIR_SHIFT) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Operation;

    #[test]
    fn packed_registers_are_their_own_inverse() {
        let word = control_start(Operation::PairClear, 0xabcd);
        assert_eq!(control_started(word), (Operation::PairClear.code(), 0xabcd));
        assert_eq!(event_word(0x12, 0x34, 0x5678), 0x5678_3412);
        assert_eq!(event_fields(0x5678_3412), (0x12, 0x34, 0x5678));
    }

    #[test]
    fn no_two_registers_overlap() {
        let words = |name| match name {
            "CONTROL_RESULT" | "MAC" => 2,
            "SIZES" => SIZE_WORDS,
            "EVENT" => 3,
            "CONTROL_DATA" => 2 * crate::control::DATA_WORDS,
            "MAILBOX_COMMAND" | "MAILBOX_RESULT" => crate::register::MAILBOX_WORDS,
            "FRAME_OUT" | "FRAME_IN" => FRAME_WORDS,
            _ => 1,
        };
        for two in REGISTERS.windows(2) {
            let end = two[0].offset + 4 * words(two[0].name) as u32;
            assert!(
                end <= two[1].offset,
                "{} reaches {}",
                two[0].name,
                two[1].name
            );
        }
    }
}
