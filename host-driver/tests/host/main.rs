//! The host library over cards in plain Rust, in one address space with them.

mod backlog;
mod breaks;
mod claims;
mod common;
mod completion_queues;
mod connections;
mod documented_errors;
mod documented_statuses;
mod drain;
#[cfg(target_os = "linux")]
mod event_fd;
mod failure;
mod gets;
mod lent;
mod lists;
mod memory;
mod messages;
mod multi;
mod operations;
mod optional;
mod ownership;
mod peers;
mod protection;
mod puts;
mod queries;
mod random;
mod ready;
mod refusals;
mod rendezvous_buffer_reuse;
mod reset;
mod revoke;
mod revoked;
mod sends;
mod shared;
mod timeouts;
mod times;
mod user_memory;
mod waiting;
mod windows;

/// How the suite's hosts reach their cards. `tests/cable` runs the same suite in the other way.
const ATTACHMENT: soft_card::Attachment = soft_card::Attachment::Shared;
