//! The whole suite of `tests/host` once more, over cards at the end of a cable: registers, doorbells, commands, interrupts and DMA are messages of bytes. What
//! assumes that host and card share an address space fails here.
//!
//! Two tests do less than there: a slot is used 64 times instead of 65,536 before its old handle is tried, because each use takes longer, and the break
//! `PollsMailbox` isn't tried, because another thread reads the mailbox here and a break is in force on the test's thread only.

#[path = "../host/backlog.rs"]
mod backlog;
#[path = "../host/breaks.rs"]
mod breaks;
#[path = "../host/claims.rs"]
mod claims;
#[path = "../host/common.rs"]
mod common;
#[path = "../host/completion_queues.rs"]
mod completion_queues;
#[path = "../host/connections.rs"]
mod connections;
#[path = "../host/documented_errors.rs"]
mod documented_errors;
#[path = "../host/documented_statuses.rs"]
mod documented_statuses;
#[path = "../host/drain.rs"]
mod drain;
#[cfg(target_os = "linux")]
#[path = "../host/event_fd.rs"]
mod event_fd;
#[path = "../host/failure.rs"]
mod failure;
#[path = "../host/gets.rs"]
mod gets;
#[path = "../host/lent.rs"]
mod lent;
#[path = "../host/lists.rs"]
mod lists;
#[path = "../host/memory.rs"]
mod memory;
#[path = "../host/messages.rs"]
mod messages;
#[path = "../host/multi.rs"]
mod multi;
#[path = "../host/optional.rs"]
mod optional;
#[path = "../host/ownership.rs"]
mod ownership;
#[path = "../host/peers.rs"]
mod peers;
#[path = "../host/protection.rs"]
mod protection;
#[path = "../host/puts.rs"]
mod puts;
#[path = "../host/queries.rs"]
mod queries;
#[path = "../host/random.rs"]
mod random;
#[path = "../host/ready.rs"]
mod ready;
#[path = "../host/refusals.rs"]
mod refusals;
#[path = "../host/rendezvous_buffer_reuse.rs"]
mod rendezvous_buffer_reuse;
#[path = "../host/reset.rs"]
mod reset;
#[path = "../host/revoke.rs"]
mod revoke;
#[path = "../host/revoked.rs"]
mod revoked;
#[path = "../host/sends.rs"]
mod sends;
#[path = "../host/shared.rs"]
mod shared;
#[path = "../host/timeouts.rs"]
mod timeouts;
#[path = "../host/user_memory.rs"]
mod user_memory;
#[path = "../host/waiting.rs"]
mod waiting;
#[path = "../host/windows.rs"]
mod windows;

#[test]
fn the_memory_is_the_cables_own_and_zero_however_often_it_is_used() {
    let fabric = common::fabric();
    let device = host_driver::Device::open(fabric.transport(0)).unwrap();
    let pd = device.alloc_pd().unwrap();
    for _ in 0..3 {
        let (_, mut buffer) = pd.reg_mr(5000, host_driver::Access::ReadWrite).unwrap();
        assert_eq!((fabric.lent(0), fabric.mappings(0)), (1, 1));
        assert!(buffer.iter().all(|&byte| byte == 0));
        buffer.fill(7);
        drop(buffer);
        assert_eq!((fabric.lent(0), fabric.mappings(0)), (0, 0));
    }
    let endpoint = pd.endpoint().open().unwrap();
    assert_eq!(fabric.lent(0), fabric.mappings(0), "rings too");
    fabric.cut(0, true);
    drop(endpoint);
    assert!(
        fabric.lent(0) > 0,
        "nothing is used again that the card may have"
    );
}

const ATTACHMENT: soft_card::Attachment = soft_card::Attachment::Cable;
