//! Kernels on which the SystemVerilog printer is proved against rust-hdl's simulation: the five
//! that rust-hdl's own printer is known to get wrong, some eighty that were written by hand, each
//! for a construct, and some three hundred that a program wrote.

pub mod kernel;
pub mod source;
pub mod vectors;
pub mod verilator;

mod random;
mod table;
mod types;
mod written;

pub use kernel::{Case, Inputs, Vector};

/// The kernels that rust-hdl's own printer is known to get wrong.
pub fn table() -> Vec<Case> {
    table::all()
}

/// The kernels that were written by hand.
pub fn written() -> Vec<Case> {
    written::all()
}

/// The kernels that a program wrote.
pub fn random() -> Vec<Case> {
    random::all()
}
