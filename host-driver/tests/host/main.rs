//! The host library over cards in plain Rust.

mod backlog;
mod common;
mod failure;
mod memory;
mod messages;
mod random;
mod waiting;
