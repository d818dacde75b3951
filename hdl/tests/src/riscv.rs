//! As much of an RV32I assembler as a test's program needs (The RISC-V Instruction Set Manual,
//! volume I, chapter 2, and volume II for `csr`, `wfi`, `mret`).

use std::collections::HashMap;

/// A program in the making: words, labels, and the jumps to them.
#[derive(Default)]
pub struct Program {
    words: Vec<u32>,
    labels: HashMap<&'static str, usize>,
    jumps: Vec<(usize, &'static str)>,
}

impl Program {
    /// Goes on at byte `address`; what lies between is zero, which is an illegal instruction.
    pub fn at(&mut self, address: usize) {
        assert!(address / 4 >= self.words.len());
        self.words.resize(address / 4, 0);
    }

    /// Names this place.
    pub fn label(&mut self, name: &'static str) {
        self.labels.insert(name, self.words.len());
    }

    /// An instruction word.
    pub fn word(&mut self, word: u32) {
        self.words.push(word);
    }

    fn immediate(&mut self, opcode: u32, function: u32, rd: u32, rs1: u32, value: i32) {
        assert!((-2048..2048).contains(&value));
        self.word((value as u32) << 20 | rs1 << 15 | function << 12 | rd << 7 | opcode);
    }

    /// `rd = value << 12`
    pub fn lui(&mut self, rd: u32, value: u32) {
        self.word(value << 12 | rd << 7 | 0x37);
    }

    /// `rd = rs1 + value`
    pub fn addi(&mut self, rd: u32, rs1: u32, value: i32) {
        self.immediate(0x13, 0, rd, rs1, value);
    }

    /// `rd = word at rs1 + offset`
    pub fn lw(&mut self, rd: u32, rs1: u32, offset: i32) {
        self.immediate(0x03, 2, rd, rs1, offset);
    }

    /// `rd = byte at rs1 + offset`
    pub fn lbu(&mut self, rd: u32, rs1: u32, offset: i32) {
        self.immediate(0x03, 4, rd, rs1, offset);
    }

    fn store(&mut self, function: u32, rs2: u32, rs1: u32, offset: i32) {
        assert!((-2048..2048).contains(&offset));
        let offset = offset as u32;
        let (high, low) = (offset >> 5 & 0x7f, offset & 0x1f);
        self.word(high << 25 | rs2 << 20 | rs1 << 15 | function << 12 | low << 7 | 0x23);
    }

    /// `word at rs1 + offset = rs2`
    pub fn sw(&mut self, rs2: u32, rs1: u32, offset: i32) {
        self.store(2, rs2, rs1, offset);
    }

    /// `byte at rs1 + offset = rs2`
    pub fn sb(&mut self, rs2: u32, rs1: u32, offset: i32) {
        self.store(0, rs2, rs1, offset);
    }

    /// `csr = rs1`
    pub fn csrw(&mut self, csr: u32, rs1: u32) {
        self.word(csr << 20 | rs1 << 15 | 1 << 12 | 0x73);
    }

    /// `rd = csr`
    pub fn csrr(&mut self, rd: u32, csr: u32) {
        self.word(csr << 20 | 2 << 12 | rd << 7 | 0x73);
    }

    /// Waits for an interrupt.
    pub fn wfi(&mut self) {
        self.word(0x1050_0073);
    }

    /// Returns from a trap.
    pub fn mret(&mut self) {
        self.word(0x3020_0073);
    }

    /// Goes to `label` if `rs1 = rs2`.
    pub fn beq(&mut self, rs1: u32, rs2: u32, label: &'static str) {
        self.jumps.push((self.words.len(), label));
        self.word(rs2 << 20 | rs1 << 15 | 0x63);
    }

    /// Goes to `label` if `rs1 ≠ rs2`.
    pub fn bne(&mut self, rs1: u32, rs2: u32, label: &'static str) {
        self.jumps.push((self.words.len(), label));
        self.word(rs2 << 20 | rs1 << 15 | 1 << 12 | 0x63);
    }

    /// Goes to `label`.
    pub fn j(&mut self, label: &'static str) {
        self.beq(0, 0, label);
    }

    /// The words, all branches resolved.
    pub fn assemble(mut self) -> Vec<u32> {
        for (from, label) in self.jumps {
            let distance = 4 * (self.labels[label] as i32 - from as i32);
            assert!((-4096..4096).contains(&distance));
            let d = distance as u32;
            self.words[from] |= (d >> 12 & 1) << 31 | (d >> 5 & 0x3f) << 25;
            self.words[from] |= (d >> 1 & 0xf) << 8 | (d >> 11 & 1) << 7;
        }
        self.words
    }
}
