//! Who owns the card, what it may still reach, and what becomes of that when firmware is late, a card is gone or a thread is a stranger.

use crate::common::{PATIENCE, Side, connected, fabric, options};
use abi::control::AccessReport;
use abi::mailbox::Command;
use host_driver::breaks;
use host_driver::transport::TransportError;
use host_driver::{
    Access, CommandError, Device, DeviceOptions, MailboxStatus, OpenError, PostError, SendFlags,
    SendWr, Source, WaitError, WcStatus, load_firmware,
};
use soft_card::{FirmwareBehaviour, Flaw, Sizes, SoftFabric, SoftOptions, as_stranger};

const QUICK: DeviceOptions = DeviceOptions {
    ready_timeout: 100_000,
    command_timeout: 50_000,
    ..DeviceOptions::DEFAULT
};

/// Every command from now on is answered so many cycles after it was given, which is too late.
fn late(fabric: &SoftFabric, card: usize) {
    let behaviour = FirmwareBehaviour::AnswersLate {
        after: 0,
        cycles: 3_000_000,
    };
    fabric.set_firmware(card, behaviour);
}

/// In time again; what is late still comes later.
fn in_time(fabric: &SoftFabric, card: usize) {
    fabric.set_firmware(card, FirmwareBehaviour::Normal);
}

#[track_caller]
fn assert_late<T>(result: Result<T, CommandError>, command: Command) {
    match result {
        Err(CommandError::FirmwareTimeout { command: late, .. }) => assert_eq!(late, command),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it was answered"),
    }
}

fn four_endpoints() -> SoftFabric {
    SoftFabric::new(SoftOptions {
        sizes: Sizes {
            endpoints: 4,
            ..options().sizes
        },
        ..options()
    })
}

#[test]
pub fn a_second_open_is_refused_where_it_once_swallowed_the_answer_to_a_close() {
    // Four endpoints, a second device on the same card, a close: the second had taken the number of the first's next command, so that this was taken
    // for answered, and the card still wrote into buffers that the library gave back.
    let fabric = four_endpoints();
    let device = Device::open(fabric.transport(0)).unwrap();
    let pd = device.alloc_pd().unwrap();
    let endpoints: Vec<_> = (0..4).map(|_| pd.endpoint().open().unwrap()).collect();
    assert_eq!(fabric.open_endpoints(0), 4);
    let second = Device::open(fabric.transport(0)).err();
    assert_eq!(second, Some(OpenError::AlreadyOpen));
    // SAFETY: nothing is loaded.
    let load = unsafe { load_firmware(fabric.transport(0), []) };
    assert_eq!(
        load,
        Err(OpenError::AlreadyOpen),
        "nor is its firmware changed"
    );
    for (k, endpoint) in endpoints.iter().enumerate() {
        endpoint.close().unwrap();
        assert_eq!(fabric.open_endpoints(0), 3 - k, "closed means closed");
    }
}

#[test]
fn a_card_is_free_again_when_the_last_of_what_was_opened_on_it_is_gone() {
    let fabric = fabric();
    let device = Device::open(fabric.transport(0)).unwrap();
    let pd = device.alloc_pd().unwrap();
    let (region, buffer) = pd.reg_mr(64, Access::Read).unwrap();
    let reopen = || Device::open(fabric.transport(0)).map(drop).err();
    assert_eq!(reopen(), Some(OpenError::AlreadyOpen));
    drop((device, pd, region));
    assert_eq!(reopen(), Some(OpenError::AlreadyOpen), "a buffer is left");
    drop(buffer);
    assert_eq!(reopen(), None);
    assert_eq!(fabric.mappings(0), 0);
    // SAFETY: nothing is loaded.
    assert!(unsafe { load_firmware(fabric.transport(0), []) }.is_ok());
    assert_eq!(reopen(), None);
}

#[test]
pub fn a_card_that_a_crashed_owner_left_behind_is_quieted_at_open() {
    let fabric = fabric();
    let (a, b) = connected(&fabric, 8);
    // The process is gone, and its transport says so; its card still has the endpoint.
    // SAFETY: nothing of this owner is used any more; its memory stays mapped and is never freed.
    unsafe { fabric.transport(1).release() };
    std::mem::forget(b);
    assert_eq!(fabric.open_endpoints(1), 1);
    let again = Device::open(fabric.transport(1)).unwrap();
    assert_eq!(fabric.open_endpoints(1), 0, "its gates were reset");
    // What the peer sends to the dead endpoint's pair is written nowhere.
    a.endpoint
        .post_tagged_inject(1, &a.send(7), b"old")
        .unwrap();
    fabric.run(100_000);
    let pd = again.alloc_pd().unwrap();
    assert_eq!(pd.endpoint().open().unwrap().index(), 0);
}

#[test]
pub fn a_close_that_timed_out_and_took_effect_gives_everything_back() {
    let fabric = fabric();
    let (mut a, mut b) = connected(&fabric, 8);
    for k in 0..3 {
        let buffer = b.buffer(8);
        b.endpoint
            .post_tagged_recv(k, &b.receive(9), buffer)
            .unwrap();
    }
    late(&fabric, 1);
    assert_late(b.endpoint.close(), Command::CloseEndpoint);
    in_time(&fabric, 1);
    assert_eq!(b.cq.outstanding(), 3, "the card may still have them");
    assert_late(b.endpoint.close(), Command::CloseEndpoint);
    // Nothing is rung meanwhile: the page may be another's at any moment.
    let buffer = b.buffer(8);
    let refused = b.endpoint.post_tagged_recv(9, &b.receive(9), buffer);
    assert!(matches!(refused, Err(refused) if refused.error == PostError::Closed));
    assert!(b.endpoint.sticky_causes().is_err());
    fabric.run(4_000_000);
    b.endpoint.close().unwrap();
    let mut back: Vec<_> = std::iter::from_fn(|| b.cq.poll())
        .map(|completion| {
            assert_eq!(completion.buffer.unwrap().len(), 8);
            (completion.wr_id, completion.status)
        })
        .collect();
    back.sort_unstable();
    assert_eq!(back, [0, 1, 2].map(|k| (k, WcStatus::Flushed)));
    let buffer = a.buffer(8);
    a.endpoint.post_tagged_send(4, &a.send(9), buffer).unwrap();
    assert_eq!(fabric.trespasses(1), 0);
}

#[test]
fn a_late_close_is_settled_by_any_command_and_an_old_handle_closes_no_stranger() {
    // An index was used again after a close that had timed out and took effect: the old handle's drop closed the stranger that had it.
    let fabric = fabric();
    let device = Device::open_with(fabric.transport(0), QUICK).unwrap();
    let pd = device.alloc_pd().unwrap();
    let old = pd.endpoint().inject_buffers(0).open().unwrap();
    late(&fabric, 0);
    assert_late(old.close(), Command::CloseEndpoint);
    in_time(&fabric, 0);
    fabric.run(4_000_000);
    let stranger = pd.endpoint().inject_buffers(0).open().unwrap();
    assert_eq!(stranger.index(), old.index(), "the place is used again");
    drop(old);
    assert_eq!(fabric.open_endpoints(0), 1, "the stranger is open");
    let (pair, _) = stranger.open_pair(1).unwrap();
    stranger.query_pair(pair).unwrap();
}

#[test]
fn what_an_endpoint_keeps_is_not_rung_for_when_its_place_may_be_a_strangers() {
    // A post that was refused put a kept send on the ring, and a list that was refused rang for it: in the place of an endpoint that was opened meanwhile, whose
    // card then read requests that nobody had written.
    let fabric = fabric();
    let (mut a, _b) = connected(&fabric, 8);
    // More than the card has descriptors for: the library keeps the rest.
    for k in 0..40 {
        let buffer = a.buffer(8);
        let sent = a.endpoint.post_tagged_send(k, &a.send(9), buffer);
        if sent.is_err() {
            break;
        }
    }
    late(&fabric, 0);
    assert_late(a.endpoint.close(), Command::CloseEndpoint);
    in_time(&fabric, 0);
    // Sends have completed, so that the card has room for one that is kept.
    assert!(a.cq.poll().is_some());
    let buffer = a.buffer(8);
    let refused = a.endpoint.post_tagged_send(99, &a.send(9), buffer);
    assert!(matches!(refused, Err(refused) if refused.error == PostError::Closed));
    fabric.run(4_000_000);
    let stranger = a.pd.endpoint().open().unwrap();
    assert_eq!(
        stranger.index(),
        a.endpoint.index(),
        "the place is used again"
    );
    let list = [SendWr {
        wr_id: 100,
        send: a.send(9),
        flags: SendFlags::empty(),
        buffer: a.buffer(8),
    }];
    let refused = a.endpoint.post_send_list(list, &mut Vec::new());
    assert!(matches!(refused, Err(refused) if refused.error == PostError::Closed));
    fabric.run(10_000);
    let queue = stranger.completion_queue();
    assert!(queue.poll().is_none());
    assert_eq!(queue.strays(), 0, "requests that nobody has written");
}

#[test]
pub fn what_is_opened_too_late_is_closed_again() {
    let fabric = fabric();
    let device = Device::open_with(fabric.transport(0), QUICK).unwrap();
    let pd = device.alloc_pd().unwrap();
    let endpoint = pd.endpoint().inject_buffers(0).open().unwrap();
    let mapped = fabric.mappings(0);
    type Open<'a> = &'a dyn Fn() -> Option<CommandError>;
    let opens: [(Command, Open); 4] = [
        (Command::OpenDomain, &|| device.alloc_pd().err()),
        (Command::RegisterRegion, &|| {
            pd.reg_mr(64, Access::Read).err()
        }),
        (Command::OpenPair, &|| {
            let opened = endpoint.open_pair(16);
            let close = |(pair, _)| endpoint.close_pair(pair).unwrap();
            opened.map(close).err()
        }),
        (Command::OpenEndpoint, &|| {
            pd.endpoint().inject_buffers(0).open().err()
        }),
    ];
    for (command, open) in opens {
        // More often than the card has places or envelopes.
        for _ in 0..70 {
            late(&fabric, 0);
            assert_late(open().map_or(Ok(()), Err), command);
            assert!(
                command == Command::OpenDomain || fabric.mappings(0) > mapped,
                "{command}: what it concerns was unmapped while the firmware had it"
            );
            in_time(&fabric, 0);
            fabric.run(4_000_000);
            // Any command settles it.
            let counter = host_driver::Counter::FramesSent;
            device.read_counter(counter).unwrap();
        }
        assert_eq!(fabric.mappings(0), mapped, "{command}");
        assert_eq!(fabric.open_endpoints(0), 1);
        assert_eq!(open(), None, "{command}");
    }
}

#[test]
fn a_pair_that_was_closed_too_late_is_closed_and_usable_by_nobody_meanwhile() {
    let fabric = fabric();
    let (mut a, b) = connected(&fabric, 8);
    late(&fabric, 0);
    assert_late(a.endpoint.close_pair(a.pair), Command::ClosePair);
    in_time(&fabric, 0);
    let buffer = a.buffer(8);
    let refused = a.endpoint.post_tagged_send(1, &a.send(7), buffer);
    assert_eq!(refused.unwrap_err().error, PostError::InvalidPair);
    assert_eq!(
        a.endpoint.probe(2, &a.receive(7)),
        Err(PostError::InvalidPair)
    );
    fabric.run(4_000_000);
    assert_eq!(
        a.endpoint.close_pair(a.pair),
        Err(CommandError::NotFound),
        "it has been closed"
    );
    assert!(a.endpoint.open_pair(8).is_ok());
    drop(b);
}

#[test]
pub fn what_is_dropped_while_the_firmware_hangs_keeps_its_memory_until_the_card_is_done() {
    let fabric = fabric();
    let (a, b) = connected(&fabric, 8);
    let device = b.device.clone();
    b.endpoint
        .post_tagged_recv(1, &b.receive(9), host_driver::Buffer::empty())
        .unwrap();
    let mapped = fabric.mappings(1);
    late(&fabric, 1);
    drop(b);
    assert_eq!(fabric.mappings(1), mapped, "the card has it all still");
    in_time(&fabric, 1);
    fabric.run(4_000_000);
    device
        .read_counter(host_driver::Counter::FramesSent)
        .unwrap();
    assert_eq!(fabric.mappings(1), 0);
    assert_eq!(fabric.open_endpoints(1), 0);
    drop(a);
}

#[test]
fn the_last_owner_leaves_a_hung_card_quiet_and_takes_his_memory_along() {
    let fabric = fabric();
    let (a, b) = connected(&fabric, 8);
    fabric.set_firmware(1, FirmwareBehaviour::HangsAfter(0));
    drop(b);
    assert_eq!((fabric.mappings(1), fabric.open_endpoints(1)), (0, 0));
    in_time(&fabric, 1);
    assert!(
        Device::open(fabric.transport(1)).is_ok(),
        "it can be opened again"
    );
    drop(a);
}

#[test]
fn gates_that_do_not_answer_a_close_leave_the_endpoint_closable() {
    // They say nothing, or that they wait for an access of host memory.
    let writes = AccessReport {
        waits: 1,
        writes: 1,
        ..AccessReport::default()
    };
    for report in [AccessReport::default(), writes] {
        let fabric = fabric();
        let (mut a, _b) = connected(&fabric, 8);
        let buffer = a.buffer(8);
        a.endpoint
            .post_tagged_recv(1, &a.receive(7), buffer)
            .unwrap();
        let pair = a.pair;
        fabric.silence_gates_for(0, report);
        let late = |error| match error {
            CommandError::Refused { status, .. } => {
                assert_eq!((status, report.waits), (MailboxStatus::HardwareTimeout, 0));
            }
            CommandError::Undrained { access, .. } => assert!(access.writes),
            error => panic!("{error}"),
        };
        late(a.endpoint.close_pair(pair).unwrap_err());
        assert!(a.cq.poll().is_none(), "the buffer isn't given back");
        for _ in 0..3 {
            late(a.endpoint.close().unwrap_err());
            assert!(a.cq.poll().is_none(), "the buffer isn't given back");
        }
        fabric.wake_gates(0);
        a.endpoint.close().expect("the gates answer again");
        let completion = a.cq.poll().expect("the buffer comes back");
        assert_eq!(completion.status, WcStatus::Flushed);
        assert!(completion.buffer.is_some());
    }
}

#[test]
fn a_firmware_that_starts_anew_flushes_everything_and_says_so() {
    let fabric = fabric();
    let (mut a, _b) = connected(&fabric, 8);
    let buffer = a.buffer(8);
    a.endpoint
        .post_tagged_recv(1, &a.receive(7), buffer)
        .unwrap();
    fabric.set_firmware(0, FirmwareBehaviour::RestartsAfter(0));
    assert_eq!(a.device.alloc_pd().err(), Some(CommandError::Restarted));
    assert_restarted(&fabric, a);
}

/// All that was outstanding is flushed, the commands say why, and the card can be opened again.
#[track_caller]
fn assert_restarted(fabric: &SoftFabric, side: Side) {
    let flushed = side.cq.poll().expect("flushed");
    assert_eq!((flushed.wr_id, flushed.status), (1, WcStatus::Flushed));
    assert_eq!(side.endpoint.close(), Ok(()), "there is nothing to close");
    let again = side.device.alloc_pd().err();
    assert_eq!(again, Some(CommandError::Restarted));
    assert_eq!(fabric.open_endpoints(0), 0, "its gates are quiet");
    drop((side, flushed));
    assert_eq!(fabric.mappings(0), 0);
    assert!(Device::open(fabric.transport(0)).is_ok());
}

#[test]
pub fn a_firmware_that_starts_anew_while_no_command_is_given_is_noticed_by_the_next() {
    // Its mailbox had answered every command, so that nothing was answered `Restarted`: new objects had the names of old ones.
    let fabric = fabric();
    let (mut a, _b) = connected(&fabric, 8);
    busy(&mut a);
    fabric.restart_firmware(0);
    fabric.run(100_000);
    assert_eq!(a.cq.outstanding(), 1);
    let query = a.endpoint.query_pair(a.pair);
    assert_eq!(query, Err(CommandError::Restarted));
    assert_restarted(&fabric, a);
}

#[test]
pub fn what_another_start_of_the_firmware_opens_is_refused() {
    let fabric = fabric();
    let (mut a, _b) = connected(&fabric, 8);
    busy(&mut a);
    // Between the library's look and its command.
    fabric.set_firmware(0, FirmwareBehaviour::RestartsBefore(0));
    let opened = a.device.alloc_pd().err();
    assert_eq!(opened, Some(CommandError::Restarted));
    assert_restarted(&fabric, a);
}

#[test]
pub fn an_endpoint_in_the_place_of_another_is_refused() {
    let fabric = SoftFabric::new(SoftOptions {
        flaw: Flaw::GivesPlaceTwice,
        ..options()
    });
    let (mut a, _b) = connected(&fabric, 8);
    busy(&mut a);
    let twin = a.pd.endpoint().inject_buffers(0).open().err();
    assert_eq!(twin, Some(CommandError::Restarted));
    assert_restarted(&fabric, a);
}

#[test]
fn a_firmware_that_is_held_is_not_one_that_has_started_anew() {
    let fabric = fabric();
    let (a, mut b) = connected(&fabric, 8);
    busy(&mut b);
    fabric.set_firmware(1, FirmwareBehaviour::Absent);
    fabric.restart_firmware(1);
    let refused = b.endpoint.query_pair(b.pair);
    assert!(matches!(refused, Err(CommandError::FirmwareTimeout { .. })));
    a.endpoint
        .post_tagged_inject(1, &a.send(9), b"alive")
        .unwrap();
    assert_eq!(b.next().received(), b"alive", "what is open goes on");
}

/// Posts a receive and a send that waits, and says what may come back.
fn busy(side: &mut Side) {
    let buffer = side.buffer(8);
    let receive = side.receive(9);
    side.endpoint.post_tagged_recv(1, &receive, buffer).unwrap();
}

#[test]
pub fn a_card_that_is_gone_flushes_all_that_was_outstanding() {
    let fabric = fabric();
    let (mut a, mut b) = connected(&fabric, 8);
    busy(&mut a);
    busy(&mut b);
    let sent = a.buffer(8);
    let kept = a.buffer(8);
    a.endpoint.post_tagged_send(2, &a.send(7), sent).unwrap();
    assert_eq!(a.next().wr_id, 2);
    fabric.close();
    let refused = a
        .endpoint
        .post_tagged_send(3, &a.send(7), kept)
        .unwrap_err();
    assert_eq!(refused.error, PostError::Transport(TransportError::Closed));
    assert_eq!(refused.buffer.len(), 8, "the card can't have seen it");
    let flushed = a.cq.wait(PATIENCE).unwrap();
    assert_eq!((flushed.wr_id, flushed.status), (1, WcStatus::Flushed));
    assert_eq!(flushed.buffer.unwrap().len(), 8);
    let gone = WaitError::Transport(TransportError::Closed);
    assert_eq!(a.cq.wait(PATIENCE).unwrap_err(), gone);
    assert_eq!(a.endpoint.close(), Ok(()), "all is flushed");
    assert_eq!(b.endpoint.close(), Ok(()), "nobody has polled before");
    assert_eq!(b.cq.poll().unwrap().status, WcStatus::Flushed);
    let gone = CommandError::Transport(TransportError::Closed);
    assert_eq!(a.device.alloc_pd().err(), Some(gone));
    assert!(a.endpoint.open_pair(1).is_err());
}

#[test]
fn what_a_card_wrote_before_it_went_is_not_flushed() {
    let fabric = fabric();
    let (a, mut b) = connected(&fabric, 8);
    busy(&mut b);
    a.endpoint
        .post_tagged_inject(0, &a.send(9), b"last")
        .unwrap();
    fabric.run(100_000);
    fabric.close();
    let received = b.cq.poll().unwrap();
    assert_eq!(
        (received.status, received.received()),
        (WcStatus::Success, &b"last"[..])
    );
    assert!(b.cq.poll().is_none());
}

#[test]
pub fn a_card_that_cannot_be_reached_gives_nothing_back() {
    let fabric = fabric();
    let (a, mut b) = connected(&fabric, 8);
    busy(&mut b);
    let mapped = fabric.mappings(1);
    fabric.cut(1, true);
    let unreachable = TransportError::Unreachable;
    assert_eq!(b.endpoint.close(), Err(unreachable.into()));
    assert!(b.cq.poll().is_none(), "the card may still write to it");
    assert_eq!(
        b.cq.wait(1000).unwrap_err(),
        WaitError::Transport(unreachable)
    );
    drop(b.pd.reg_mr(64, Access::Read));
    assert_eq!(fabric.mappings(1), mapped);
    // The card is alive behind the link that is down.
    a.endpoint
        .post_tagged_inject(0, &a.send(9), b"alive")
        .unwrap();
    fabric.run(100_000);
    fabric.cut(1, false);
    assert_eq!(b.next().received(), b"alive");
    b.endpoint.close().unwrap();
}

/// Opens an endpoint by a command that is on its way when the library hears that the card can't be reached, and looks what is left of it.
fn open_on_the_way(flaw: Flaw) -> Result<(), String> {
    let fabric = SoftFabric::new(SoftOptions {
        flaw,
        // What overtakes must find the firmware before the next command does.
        command_cycles: if flaw == Flaw::None { 2000 } else { 1 },
        ..options()
    });
    let device = Device::open_with(fabric.transport(0), QUICK).unwrap();
    let pd = device.alloc_pd().unwrap();
    let mapped = fabric.mappings(0);
    for _ in 0..4 {
        fabric.delay_command(0);
        let opened = pd.endpoint().inject_buffers(0).open();
        let unreachable = CommandError::Transport(TransportError::Unreachable);
        assert_eq!(opened.err(), Some(unreachable));
        assert_eq!(fabric.mappings(0), mapped + 4, "its rings are kept");
        let settled = loop {
            match device.read_counter(host_driver::Counter::FramesSent) {
                Err(CommandError::FirmwareTimeout { .. }) => fabric.run(1000),
                settled => break settled,
            }
        };
        settled.map_err(|error| error.to_string())?;
        fabric.run(100_000);
        let open = fabric.open_endpoints(0);
        if (open, fabric.mappings(0)) != (0, mapped) {
            return Err(format!("{open} endpoints of nobody are open"));
        }
    }
    Ok(())
}

#[test]
fn what_a_command_names_is_kept_while_it_is_on_its_way() {
    open_on_the_way(Flaw::None).unwrap();
}

#[test]
fn a_transport_on_which_a_command_is_overtaken_is_noticed() {
    let error = open_on_the_way(Flaw::Overtakes).unwrap_err();
    assert!(error.contains("endpoints of nobody"), "{error}");
}

#[test]
fn memory_of_a_card_that_is_never_reached_again_is_left_to_it() {
    let fabric = fabric();
    let (_a, b) = connected(&fabric, 8);
    let mapped = fabric.mappings(1);
    fabric.cut(1, true);
    drop(b);
    assert_eq!(fabric.mappings(1), mapped, "nothing was freed");
    fabric.cut(1, false);
    let device = Device::open(fabric.transport(1)).unwrap();
    assert!(device.alloc_pd().is_ok());
}

#[test]
pub fn a_cancel_of_an_old_request_cancels_no_stranger_after_65536_uses_of_its_slot() {
    let fabric = fabric();
    let device = Device::open(fabric.transport(0)).unwrap();
    let endpoint = device.alloc_pd().unwrap().endpoint();
    let endpoint = endpoint
        .completion_queue(4)
        .inject_buffers(0)
        .open()
        .unwrap();
    let cq = endpoint.completion_queue();
    let receive = host_driver::TaggedReceive {
        source: Source::Any,
        context: 0,
        match_bits: 0,
        ignore_bits: 0,
    };
    let probe = |wr_id| {
        let request = endpoint.probe(wr_id, &receive).unwrap();
        assert_eq!(cq.wait(PATIENCE).unwrap().wr_id, wr_id);
        request
    };
    let old = probe(1);
    // The many uses take too long elsewhere. What they test is the library's table, which is the same over every transport.
    let uses = if cfg!(miri) || crate::ATTACHMENT != soft_card::Attachment::Shared {
        64
    } else {
        1 << 16
    };
    for _ in 1..uses {
        probe(2);
    }
    let empty = host_driver::Buffer::empty();
    let stranger = endpoint.post_tagged_recv(3, &receive, empty).unwrap();
    assert_ne!(stranger, old);
    assert_eq!(endpoint.cancel(4, old), Err(PostError::NothingToCancel));
    endpoint.cancel(5, stranger).unwrap();
    assert_eq!(cq.wait(PATIENCE).unwrap().status, WcStatus::Cancelled);
}

/// As it broke: two looked whether the pair was open, then each gave its command, the second for what the first had closed.
#[test]
pub fn one_of_two_threads_that_close_a_pair_closes_it_and_the_other_finds_nothing() {
    let fabric = fabric();
    let (a, _b) = connected(&fabric, 1);
    let other = a.endpoint.open_pair(1).unwrap().0;
    let commands = fabric.commands(0);
    // Time stands while one of the two has not begun: each begins before the other has ended.
    let attached = [fabric.attach(), fabric.attach()];
    let results = std::thread::scope(|scope| {
        let threads = attached.map(|attached| {
            let endpoint = &a.endpoint;
            scope.spawn(breaks::inherited(move || {
                let _attached = attached;
                endpoint.close_pair(other)
            }))
        });
        threads.map(|thread| thread.join().unwrap())
    });
    let closed = results.iter().filter(|result| result.is_ok()).count();
    assert_eq!(closed, 1, "{results:?}");
    let nothing = Err(CommandError::NotFound);
    assert!(results.contains(&nothing), "{results:?}");
    assert_eq!(
        fabric.commands(0) - commands,
        1,
        "who finds nothing asks for nothing"
    );
}

#[test]
pub fn what_a_thread_that_is_none_of_the_hosts_drops_is_released_by_the_next_call() {
    // A buffer that was the last of its region panicked in `drop` there.
    let fabric = fabric();
    let (a, mut b) = connected(&fabric, 8);
    let mapped = fabric.mappings(1);
    let (region, buffer) = b.pd.reg_mr(64, Access::Read).unwrap();
    drop(region);
    let other = b.pd.endpoint().inject_buffers(0).open().unwrap();
    let queue = other.completion_queue();
    a.endpoint
        .post_tagged_inject(1, &a.send(7), b"claimed")
        .unwrap();
    fabric.run(10_000);
    b.endpoint.claim(2, &b.receive(7)).unwrap();
    let claimed = b.next().claimed.expect("a message");
    let pd = b.device.alloc_pd().unwrap();
    as_stranger(|| drop((buffer, other, claimed, pd)));
    assert!(fabric.mappings(1) > mapped, "it can't talk to the card");
    assert_eq!(fabric.open_endpoints(1), 2);
    b.device
        .read_counter(host_driver::Counter::FramesSent)
        .unwrap();
    assert_eq!(fabric.open_endpoints(1), 1);
    drop(queue);
    assert_eq!(fabric.mappings(1), mapped);
    // The message's credit goes back to the peer with the next call on the endpoint.
    busy(&mut b);
    fabric.run(10_000);
    let status = a.endpoint.query_pair(a.pair).unwrap();
    assert_eq!(status.available, 8);
    // The last of everything goes there too: the card is left to whoever opens it next.
    as_stranger(|| drop(b));
    assert_eq!(fabric.mappings(1), 0);
    drop(Device::open(fabric.transport(1)).unwrap());
    assert_eq!(fabric.open_endpoints(1), 0);
}

#[test]
fn a_close_that_closes_in_name_only_is_noticed() {
    // A test of the tests above: they look at the gates, not at the answer.
    let fabric = SoftFabric::new(SoftOptions {
        flaw: Flaw::ClosesInName,
        ..options()
    });
    let device = Device::open(fabric.transport(0)).unwrap();
    let endpoint = device.alloc_pd().unwrap().endpoint().open().unwrap();
    endpoint.close().unwrap();
    assert_eq!(fabric.open_endpoints(0), 1);
}
