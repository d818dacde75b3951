//! A program for the management processor by which a test has its loads and stores done.

use abi::mgmt::{
    FIRMWARE_START, LOG, MAILBOX_ANSWER, MAILBOX_COMMAND, MAILBOX_REQUEST, MAILBOX_RESULT,
    REGISTER_BASE,
};

use super::riscv::Program;

const MEPC: u32 = 0x341;
const MIE: u32 = 0x304;
const MIP: u32 = 0x344;
/// Bit of the timer interrupt in what [`Do::Pending`] answers.
pub const TIMER_PENDING: u64 = 1 << 7;
/// Bit of the external interrupt there.
pub const EXTERNAL_PENDING: u64 = 1 << 11;

/// Commands of the monitor: what the host wants done, at an address, with a value.
#[derive(Clone, Copy)]
pub enum Do {
    /// Loads the word at the address.
    LoadWord,
    /// Stores the value there.
    StoreWord,
    /// Loads the byte at the address.
    LoadByte,
    /// Stores the lowest byte of the value there.
    StoreByte,
    /// Reads which interrupts are pending.
    Pending,
}

/// A program that does what the mailbox says: loads and stores by the host's wish. It answers with
/// the value loaded and whether the access was refused.
pub fn monitor(greeting: u8) -> Vec<u32> {
    let mut p = Program::default();
    // Exceptions come to the start of the memory: note it, and skip the instruction.
    p.csrr(16, MEPC);
    p.addi(16, 16, 4);
    p.csrw(MEPC, 16);
    p.addi(9, 0, 1);
    p.mret();
    p.at(0x80);
    p.lui(5, REGISTER_BASE >> 12);
    p.lui(6, 1);
    p.addi(6, 6, (TIMER_PENDING | EXTERNAL_PENDING) as i32 - 0x1000);
    p.csrw(MIE, 6);
    p.addi(7, 0, i32::from(greeting));
    p.sw(7, 5, LOG as i32);
    p.addi(7, 0, 1);
    p.sw(7, 5, FIRMWARE_START as i32);
    p.addi(8, 0, 0);
    p.label("wait");
    p.wfi();
    p.lw(10, 5, MAILBOX_REQUEST as i32);
    p.beq(10, 8, "wait");
    p.lw(11, 5, MAILBOX_COMMAND as i32);
    p.lw(12, 5, MAILBOX_COMMAND as i32 + 4);
    p.lw(13, 5, MAILBOX_COMMAND as i32 + 8);
    p.addi(9, 0, 0);
    p.addi(14, 0, 0);
    p.addi(15, 0, Do::LoadWord as i32);
    p.bne(11, 15, "store word");
    p.lw(14, 12, 0);
    p.j("answer");
    p.label("store word");
    p.addi(15, 0, Do::StoreWord as i32);
    p.bne(11, 15, "load byte");
    p.sw(13, 12, 0);
    p.j("answer");
    p.label("load byte");
    p.addi(15, 0, Do::LoadByte as i32);
    p.bne(11, 15, "store byte");
    p.lbu(14, 12, 0);
    p.j("answer");
    p.label("store byte");
    p.addi(15, 0, Do::StoreByte as i32);
    p.bne(11, 15, "pending");
    p.sb(13, 12, 0);
    p.j("answer");
    p.label("pending");
    p.csrr(14, MIP);
    p.label("answer");
    p.sw(14, 5, MAILBOX_RESULT as i32);
    p.sw(9, 5, MAILBOX_RESULT as i32 + 4);
    p.addi(8, 10, 0);
    p.sw(10, 5, MAILBOX_ANSWER as i32);
    p.j("wait");
    p.assemble()
}
