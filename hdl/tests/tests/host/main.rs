//! The blocks towards the host, Verilated, against models in plain Rust: random traffic, idle and
//! back-pressure from a seed that a failure prints, and each deliberate break must be found.

mod bench;
mod completions;
mod events;
mod fetch;
mod memory;
