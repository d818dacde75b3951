//! The card's registers, as the processor reaches them: 32-bit words from `REGISTER_BASE` on.

use abi::mgmt::REGISTER_BASE;
use core::ptr::with_exposed_provenance_mut;

fn register(offset: u32) -> *mut u32 {
    with_exposed_provenance_mut((REGISTER_BASE + offset) as usize)
}

/// Reads the register at `offset`, one of [`abi::mgmt`].
pub fn read(offset: u32) -> u32 {
    // SAFETY: the window is mapped as long as the processor runs, holds no memory of the program, and answers at
    // every offset.
    unsafe { register(offset).read_volatile() }
}

/// Reads a register of two words, the low one first.
pub fn read_pair(offset: u32) -> u64 {
    u64::from(read(offset)) | u64::from(read(offset + 4)) << 32
}

/// Writes the register at `offset`, one of [`abi::mgmt`].
pub fn write(offset: u32, value: u32) {
    // SAFETY: as for `read`. No register makes the card access the program's memory.
    unsafe { register(offset).write_volatile(value) }
}
