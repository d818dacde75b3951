//! What every program of the management processor stands on: registers, the mailbox, the time.
#![no_std]
#![cfg(target_arch = "riscv32")]

pub mod mailbox;
pub mod registers;
pub mod timer;

/// First eight bytes of the hash of the source, made by `build.rs`.
pub const BUILD: u64 = match u64::from_str_radix(env!("POSTHORN_BUILD_ID"), 10) {
    Ok(id) => id,
    Err(_) => panic!("the build id is a decimal number"),
};

/// Bytes that the linker leaves for the stack at least.
pub const STACK_BYTES: usize = match usize::from_str_radix(env!("POSTHORN_STACK_BYTES"), 10) {
    Ok(bytes) => bytes,
    Err(_) => panic!("the size of the stack is a decimal number"),
};
