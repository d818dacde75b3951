//! The host library over cards in plain Rust.

mod backlog;
mod claims;
mod common;
mod failure;
mod memory;
mod messages;
mod multi;
mod random;
mod ready;
mod waiting;
