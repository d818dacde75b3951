//! Posthorn's gates, in rust-hdl, and the SystemVerilog printer under it.

pub mod config;
pub mod tops;
pub mod types;
