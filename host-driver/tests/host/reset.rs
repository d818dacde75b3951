//! Resets: how a program gets everything back from a card whose firmware hangs.

use crate::common::{PATIENCE, connected, fabric, options};
use host_driver::transport::TransportError;
use host_driver::{
    Access, CommandError, Device, DeviceOptions, Source, TaggedReceive, WaitError, WcStatus,
};
use soft_card::{FirmwareBehaviour, SoftFabric, SoftOptions};
use std::thread;

/// A receive that nothing matches.
const ANY: TaggedReceive = TaggedReceive {
    source: Source::Any,
    context: 0,
    match_bits: 99,
    ignore_bits: 0,
};

/// As it broke: under firmware that hangs nothing was ever flushed while the device was open.
#[test]
pub fn a_reset_gives_everything_back_though_the_firmware_hangs_and_ends_all_endpoints() {
    let fabric = fabric();
    let (mut a, mut b) = connected(&fabric, 1);
    let other = a.pd.endpoint().inject_buffers(0).open().unwrap();
    let others = other.completion_queue();
    let buffer = a.buffer(8);
    other.post_tagged_recv(1, &ANY, buffer).unwrap();
    a.post(2, &ANY);
    // One send has gone; the next waits for its credit.
    let shared = a.filled(b"shared").share();
    for k in 3..5 {
        let send = a.send(7);
        a.endpoint
            .post_tagged_send(k, &send, shared.clone())
            .unwrap();
    }
    assert_eq!(a.next().wr_id, 3);
    fabric.set_firmware(0, FirmwareBehaviour::HangsAfter(0));
    let hangs = |error| matches!(error, Some(CommandError::FirmwareTimeout { .. }));
    assert!(hangs(a.endpoint.close().err()) && hangs(other.close().err()));
    assert!(
        a.cq.poll().is_none() && others.poll().is_none(),
        "the card has it all"
    );

    a.device.reset().unwrap();
    assert_eq!(fabric.open_endpoints(0), 0, "its gates are quiet");
    let mut flushed: Vec<_> = [&a.cq, &a.cq, &others]
        .map(|queue| queue.poll().expect("flushed"))
        .into_iter()
        .map(|completion| {
            assert_eq!(completion.status, WcStatus::Flushed);
            assert!(completion.buffer.is_some() || completion.shared.is_some());
            completion.wr_id
        })
        .collect();
    flushed.sort_unstable();
    assert_eq!(flushed, [1, 2, 4]);
    assert!(a.cq.poll().is_none() && others.poll().is_none(), "once");
    assert!(shared.try_into_buffer().is_ok(), "nobody else reads it");
    assert_eq!(a.endpoint.close(), Ok(()), "there is nothing to close");
    assert_eq!(a.device.reset(), Ok(()), "nor to reset");
    let over = Some(CommandError::Restarted);
    assert_eq!(a.pd.reg_mr(64, Access::Read).err(), over);
    assert_eq!(other.open_pair(1).err(), Some(CommandError::Restarted));

    // The peer isn't told: what it sends fails in bounded time, and then what waits on the pair.
    let before = fabric.now();
    let receive = b.receive(8);
    b.post(5, &receive);
    b.endpoint.post_tagged_inject(6, &b.send(7), b"y").unwrap();
    let mut failed = [(); 2].map(|()| {
        let failed = b.next_past_events();
        (failed.wr_id, failed.status)
    });
    failed.sort_unstable_by_key(|&(wr_id, _)| wr_id);
    assert_eq!(failed, [5, 6].map(|wr_id| (wr_id, WcStatus::PeerFailed)));
    assert!(fabric.now() - before < 3_000_000);

    drop((a, other, others));
    assert_eq!(fabric.mappings(0), 0);
    fabric.set_firmware(0, FirmwareBehaviour::Normal);
    let again = Device::open(fabric.transport(0)).unwrap();
    let endpoint = again.alloc_pd().unwrap().endpoint().open().unwrap();
    assert_eq!(fabric.open_endpoints(0), 1);
    endpoint.close().unwrap();
}

#[test]
fn what_the_card_has_completed_before_a_reset_is_not_flushed() {
    let fabric = fabric();
    let (a, mut b) = connected(&fabric, 8);
    let receive = b.receive(7);
    b.post(1, &receive);
    b.post(2, &receive);
    a.endpoint
        .post_tagged_inject(0, &a.send(7), b"before")
        .unwrap();
    fabric.run(10_000);
    b.device.reset().unwrap();
    a.endpoint
        .post_tagged_inject(0, &a.send(7), b"after")
        .unwrap();
    fabric.run(10_000);
    let statuses = [(); 2].map(|()| b.cq.poll().map(|found| (found.wr_id, found.status)));
    let expected = [(1, WcStatus::Success), (2, WcStatus::Flushed)];
    assert_eq!(statuses, expected.map(Some));
}

/// A thread that sleeps until a completion comes, and what ends its sleep.
#[track_caller]
fn assert_wakes(fabric: &SoftFabric, end: impl FnOnce(&Device)) {
    let (mut a, _b) = connected(fabric, 8);
    a.post(1, &ANY);
    let (sleeps, ends) = (fabric.attach(), fabric.attach());
    let before = fabric.now();
    let woken = thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let _attached = sleeps;
            a.cq.wait(PATIENCE)
        });
        let _ = a.device.pause(&[], fabric.now() + 1000);
        end(&a.device);
        drop(ends);
        waiter.join().unwrap()
    });
    let woken = woken.expect("flushed");
    assert!(fabric.now() - before < PATIENCE, "woken in time");
    assert_eq!((woken.wr_id, woken.status), (1, WcStatus::Flushed));
}

/// The second as it broke: nobody woke who slept when another thread's command found that the firmware had started anew.
#[test]
pub fn a_reset_or_a_restart_that_another_thread_notices_ends_a_wait() {
    assert_wakes(&fabric(), |device| device.reset().unwrap());
    let fabric = fabric();
    assert_wakes(&fabric, |device| {
        fabric.restart_firmware(0);
        let _ = device.pause(&[], fabric.now() + 100_000);
        assert_eq!(device.alloc_pd().err(), Some(CommandError::Restarted));
    });
}

#[test]
fn a_reset_of_a_card_out_of_reach_gives_nothing_back_and_one_of_a_card_that_is_gone_does_nothing() {
    let fabric = fabric();
    let (mut a, mut b) = connected(&fabric, 8);
    a.post(1, &ANY);
    b.post(2, &ANY);
    let mapped = fabric.mappings(0);
    fabric.cut(0, true);
    let unreachable = CommandError::Transport(TransportError::Unreachable);
    assert_eq!(a.device.reset(), Err(unreachable));
    assert!(a.cq.poll().is_none(), "the card may still write to it");
    assert_eq!(fabric.mappings(0), mapped);
    fabric.cut(0, false);
    a.device.reset().unwrap();
    assert_eq!(a.cq.poll().unwrap().status, WcStatus::Flushed);
    fabric.close();
    b.device.reset().unwrap();
    assert_eq!(b.cq.wait(PATIENCE).unwrap().status, WcStatus::Flushed);
    let gone = WaitError::Transport(TransportError::Closed);
    assert_eq!(b.cq.wait(PATIENCE).unwrap_err(), gone);
}

#[test]
fn gates_that_are_not_quiet_in_time_keep_everything_until_they_are() {
    let fabric = SoftFabric::new(SoftOptions {
        boot_cycles: 100,
        ..options()
    });
    // A reset takes the gates 1000 cycles.
    let hasty = DeviceOptions {
        ready_timeout: 500,
        ..DeviceOptions::default()
    };
    let device = Device::open_with(fabric.transport(0), hasty).unwrap();
    let endpoint = device.alloc_pd().unwrap().endpoint().open().unwrap();
    let queue = endpoint.completion_queue();
    let empty = host_driver::Buffer::empty();
    endpoint.post_tagged_recv(1, &ANY, empty).unwrap();
    assert_eq!(device.reset(), Err(CommandError::ResetTimeout(500)));
    assert!(queue.poll().is_none());
    let quiet = (0..3).any(|_| device.reset().is_ok());
    assert!(quiet);
    assert_eq!(queue.poll().unwrap().status, WcStatus::Flushed);
}
