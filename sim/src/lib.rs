//! The Verilated card as a Rust object, with host memory and fabric.

pub mod lite;
pub mod memory;
pub mod pins;
pub mod protocol;
pub mod seed;
pub mod stream;
