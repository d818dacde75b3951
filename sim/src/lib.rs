//! The Verilated card as a Rust object, with host memory and fabric.

pub mod capture;
pub mod fabric;
pub mod fault;
pub mod firmware;
pub mod lite;
pub mod log;
pub mod memory;
pub mod monitor;
pub mod pins;
pub mod protocol;
pub mod seed;
pub mod stream;
#[cfg(test)]
mod testing;
pub mod timing;

/// Nanoseconds of a clock cycle: 125 MHz.
pub const NS_PER_CYCLE: u64 = 8;
