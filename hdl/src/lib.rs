//! Posthorn's gates, in rust-hdl, and the SystemVerilog printer under it.

// `#[block]` writes paths that start with `::hdl`; in here they must mean this crate.
extern crate self as hdl;

pub mod catalogue;
pub mod config;
pub mod datapath;
pub mod envelope;
pub mod example;
pub mod host;
pub mod language;
pub mod link;
pub mod matching;
pub mod mgmt;
pub mod nic;
pub mod prelude;
pub mod prim;
pub mod proofs;
pub mod protect;
pub mod tops;
pub mod types;
pub mod verilog;
