//! The management processor's address map: memory, and the registers by which the firmware sees the card.
//!
//! Ibex starts at `MEMORY_BASE + 0x80`. All registers are 32 bits, word access only.

/// First byte of the memory.
pub const MEMORY_BASE: u32 = 0x4000_0000;
/// Bytes of memory.
pub const MEMORY_BYTES: u32 = 64 * 1024;
/// Nanoseconds of a cycle of the card's nominal clock, by which the firmware's delays count.
pub const CLOCK_NS: u32 = 8;
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
/// Write: bit 0 says that the firmware is up.
pub const FIRMWARE_READY: u32 = 0x18;
/// Write: control operation in bits 7:0, index in bits 31:16; starts the request.
pub const CONTROL_START: u32 = 0x20;
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
/// Write: first of the control data words, `2 * control::DATA_WORDS` words, low word of each first.
pub const CONTROL_DATA: u32 = 0x80;
/// Read: the host's command area, `register::MAILBOX_WORDS` words.
pub const MAILBOX_COMMAND: u32 = 0x100;
/// Write: the answer area, `register::MAILBOX_WORDS` words.
pub const MAILBOX_RESULT: u32 = 0x200;
