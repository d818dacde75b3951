//! The host library over cards in plain Rust, in one address space with them.

mod backlog;
mod claims;
mod common;
mod connections;
mod failure;
mod memory;
mod messages;
mod lists;
mod multi;
mod ownership;
mod random;
mod ready;
mod queries;
mod waiting;

mod shared;
mod user_memory;
/// How the suite's hosts reach their cards. `tests/cable` runs the same suite in the other way.
const ATTACHMENT: soft_card::Attachment = soft_card::Attachment::Shared;
