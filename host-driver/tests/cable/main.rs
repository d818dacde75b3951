//! The whole suite of `tests/host` once more, over cards at the end of a cable: registers, doorbells, commands, interrupts and DMA are messages of bytes. What
//! assumes that host and card share an address space fails here.

#[path = "../host/backlog.rs"]
mod backlog;
#[path = "../host/breaks.rs"]
mod breaks;
#[path = "../host/claims.rs"]
mod claims;
#[path = "../host/common.rs"]
mod common;
#[path = "../host/connections.rs"]
mod connections;
#[cfg(target_os = "linux")]
#[path = "../host/event_fd.rs"]
mod event_fd;
#[path = "../host/failure.rs"]
mod failure;
#[path = "../host/lists.rs"]
mod lists;
#[path = "../host/memory.rs"]
mod memory;
#[path = "../host/messages.rs"]
mod messages;
#[path = "../host/multi.rs"]
mod multi;
#[path = "../host/ownership.rs"]
mod ownership;
#[path = "../host/queries.rs"]
mod queries;
#[path = "../host/random.rs"]
mod random;
#[path = "../host/ready.rs"]
mod ready;
#[path = "../host/shared.rs"]
mod shared;
#[path = "../host/user_memory.rs"]
mod user_memory;
#[path = "../host/waiting.rs"]
mod waiting;

const ATTACHMENT: soft_card::Attachment = soft_card::Attachment::Cable;
