//! The Verilated card as a Rust object, with host memory and fabric.
