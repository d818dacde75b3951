//! Cards, firmware and links that fail, and what the application learns of it.

use crate::common::{PATIENCE, connected, fabric, options};
use abi::times::{ACKNOWLEDGE_TIMEOUT, RETRY_LIMIT, timeouts_until_failure};
use host_driver::transport::TransportError;
use host_driver::{
    Access, AuditKind, Cause, Causes, CommandError, Device, DeviceOptions, MailboxStatus,
    OpenError, PairAddress, PairState, PostError, Source, WaitError, WcStatus, load_firmware,
};
use soft_card::{FirmwareBehaviour, SoftFabric, SoftOptions};

const QUICK: DeviceOptions = DeviceOptions {
    ready_timeout: 100_000,
    command_timeout: 50_000,
    ..DeviceOptions::DEFAULT
};

fn fabric_with(change: impl FnOnce(&mut SoftOptions)) -> SoftFabric {
    let mut changed = options();
    change(&mut changed);
    SoftFabric::new(changed)
}

fn open(fabric: &SoftFabric) -> Result<Device, OpenError> {
    Device::open_with(fabric.transport(0), QUICK)
}

#[test]
fn what_is_not_a_card_is_not_opened() {
    let fabric = fabric_with(|options| options.id = 0xffff_ffff);
    assert_eq!(open(&fabric).err(), Some(OpenError::NotACard(0xffff_ffff)));
}

#[test]
fn a_card_of_another_abi_is_not_opened() {
    let fabric = fabric_with(|options| options.abi_version = 99);
    let error = open(&fabric).err().unwrap();
    assert_eq!(
        error.to_string(),
        format!(
            "the card speaks version 99 of the ABI, this library version {}",
            abi::ABI_VERSION
        )
    );
}

#[test]
fn absent_firmware_is_a_time_out_that_says_so() {
    let fabric = fabric_with(|options| options.firmware = FirmwareBehaviour::Absent);
    assert_eq!(
        open(&fabric).err(),
        Some(OpenError::FirmwareTimeout(100_000))
    );
    assert!(
        (100_000..110_000).contains(&fabric.now()),
        "at {}",
        fabric.now()
    );
}

#[test]
fn firmware_that_is_loaded_comes_up() {
    let fabric = fabric_with(|options| options.firmware = FirmwareBehaviour::AwaitsLoad);
    let image = [(0x4000_0080, &[1, 2, 3, 4, 5][..])];
    // SAFETY: the soft card runs its own firmware, whatever is loaded.
    unsafe { load_firmware(fabric.transport(0), image) }.unwrap();
    assert_eq!(
        fabric.loaded(0),
        [(0x4000_0080, 0x0403_0201), (0x4000_0084, 5)]
    );
    assert!(open(&fabric).is_ok());
}

#[test]
fn firmware_that_hangs_is_a_time_out_and_later_commands_fail_at_once() {
    let fabric = fabric_with(|options| options.firmware = FirmwareBehaviour::HangsAfter(2));
    let device = open(&fabric).unwrap();
    let pd = device.alloc_pd().unwrap();
    let before = fabric.now();
    let error = pd.reg_mr(64, Access::Read).err().unwrap();
    let timeout = CommandError::FirmwareTimeout {
        command: abi::mailbox::Command::RegisterRegion,
        cycles: 50_000,
    };
    assert_eq!(error, timeout);
    assert_eq!(
        error.to_string(),
        "the card's firmware did not answer RegisterRegion within 50000 cycles"
    );
    assert!(fabric.now() - before >= 50_000);
    let before = fabric.now();
    assert_eq!(pd.reg_mr(64, Access::Read).err(), Some(timeout));
    assert!(fabric.now() - before < 1000, "waited again");
}

#[test]
fn firmware_that_hangs_in_open_is_a_time_out() {
    let fabric = fabric_with(|options| options.firmware = FirmwareBehaviour::HangsAfter(0));
    let error = open(&fabric).err().unwrap();
    assert!(
        matches!(
            error,
            OpenError::Command(CommandError::FirmwareTimeout { .. })
        ),
        "{error}"
    );
}

#[test]
fn traffic_goes_on_under_firmware_that_hangs() {
    let fabric = fabric_with(|options| options.firmware = FirmwareBehaviour::HangsAfter(7));
    // Identify, domain, region of injects, endpoint, region, pair, connect.
    let (mut a, mut b) = connected(&fabric, 8);
    let buffer = b.buffer(8);
    b.endpoint
        .post_tagged_recv(1, &b.receive(7), buffer)
        .unwrap();
    let buffer = a.filled(b"alive");
    a.endpoint.post_tagged_send(2, &a.send(7), buffer).unwrap();
    assert_eq!(b.next().received(), b"alive");
    assert_eq!(a.next().status, WcStatus::Success);
    let error = a.endpoint.close().unwrap_err();
    assert!(
        matches!(error, CommandError::FirmwareTimeout { .. }),
        "{error}"
    );
}

#[test]
fn the_audit_of_the_firmware_can_be_read() {
    let fabric = fabric();
    let device = Device::open(fabric.transport(0)).unwrap();
    let first = device.read_audit(0).unwrap();
    assert_eq!(first.kind, u32::from(AuditKind::Started.code()));
    let end = device.read_audit(first.next).unwrap();
    assert_eq!(end.entry, end.next, "there is none after the last");
    let pd = device.alloc_pd().unwrap();
    fabric.silence_gates(0);
    pd.reg_mr(64, Access::Read).err().unwrap();
    let mut news = Vec::new();
    let mut at = first.next;
    loop {
        let entry = device.read_audit(at).unwrap();
        if entry.entry == entry.next {
            break;
        }
        assert_eq!(entry.count, 1);
        news.push(entry.kind);
        at = entry.entry + 1;
    }
    for kind in [AuditKind::ControlTimeout, AuditKind::CommandRefused] {
        assert!(
            news.contains(&u32::from(kind.code())),
            "{kind:?} of {news:?}"
        );
    }
}

#[test]
fn gates_that_do_not_answer_the_firmware_are_reported() {
    let fabric = fabric();
    // With the default patience, which is longer than the firmware's with the gates.
    let device = Device::open(fabric.transport(0)).unwrap();
    let pd = device.alloc_pd().unwrap();
    fabric.silence_gates(0);
    let error = pd.reg_mr(64, Access::Read).err().unwrap();
    let CommandError::Refused { status, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(status, MailboxStatus::HardwareTimeout);
}

#[test]
fn envelopes_that_do_not_fit_are_refused_with_how_many_do() {
    let fabric = fabric();
    let (a, _b) = connected(&fabric, 16);
    for _ in 0..2 {
        a.endpoint.open_pair(16).unwrap();
    }
    // Of eight units of eight places two are left.
    let error = a.endpoint.open_pair(17).unwrap_err();
    let CommandError::Refused { status, detail, .. } = error else {
        panic!("{error}");
    };
    assert_eq!((status, detail), (MailboxStatus::NoEnvelopes, 16));
    a.endpoint.open_pair(9).unwrap();
}

#[test]
fn closing_an_endpoint_flushes_what_is_outstanding_and_gives_the_buffers_back() {
    let (mut a, mut b) = connected(&fabric(), 1);
    for k in 0..5 {
        let buffer = a.buffer(8);
        a.endpoint.post_tagged_send(k, &a.send(2), buffer).unwrap();
    }
    assert_eq!(a.next().status, WcStatus::Success, "the one credit");
    let buffer = a.buffer(8);
    a.endpoint
        .post_tagged_recv(5, &a.receive(1), buffer)
        .unwrap();
    let buffer = b.buffer(8);
    b.endpoint
        .post_tagged_recv(6, &b.receive(1), buffer)
        .unwrap();
    a.endpoint.close().unwrap();
    a.endpoint.close().unwrap();
    for k in 1..6 {
        let completion = a.cq.poll().expect("flushed");
        assert_eq!(
            (completion.wr_id, completion.status),
            (k, WcStatus::Flushed)
        );
        assert_eq!(completion.buffer.unwrap().len(), 8);
    }
    assert!(a.cq.poll().is_none());
    assert_eq!((a.cq.outstanding(), a.cq.strays()), (0, 0));
    let buffer = a.buffer(8);
    let refused = a
        .endpoint
        .post_tagged_recv(0, &a.receive(1), buffer)
        .unwrap_err();
    assert_eq!(refused.error, PostError::Closed);
    let mut any = a.receive(1);
    any.source = Source::Any;
    assert_eq!(a.endpoint.probe(0, &any), Err(PostError::Closed));
    let failed = b.next();
    assert_eq!(
        (failed.wr_id, failed.status),
        (6, WcStatus::PeerFailed),
        "the peer has an error"
    );
}

#[test]
fn requests_that_the_card_never_fetched_are_flushed_too() {
    // No fetch before the close.
    let fabric = fabric_with(|options| options.fetch_cycles = 10_000);
    let (_a, mut b) = connected(&fabric, 8);
    let mut receives = Vec::new();
    for k in 0..4 {
        let buffer = b.buffer(8);
        receives.push(
            b.endpoint
                .post_tagged_recv(k, &b.receive(1), buffer)
                .unwrap(),
        );
    }
    b.endpoint.cancel(9, receives[3]).unwrap();
    b.endpoint.close().unwrap();
    let mut flushed: Vec<_> = std::iter::from_fn(|| b.cq.poll())
        .map(|completion| (completion.wr_id, completion.status))
        .collect();
    flushed.sort_unstable();
    assert_eq!(flushed, [0, 1, 2, 3].map(|k| (k, WcStatus::Flushed)));
    assert_eq!(b.cq.outstanding(), 0);
}

#[test]
fn closing_a_pair_flushes_its_own_and_leaves_the_rest() {
    let (_a, mut b) = connected(&fabric(), 8);
    let mut any = b.receive(1);
    any.source = Source::Any;
    let buffer = b.buffer(8);
    b.endpoint
        .post_tagged_recv(1, &b.receive(1), buffer)
        .unwrap();
    let buffer = b.buffer(8);
    b.endpoint.post_tagged_recv(2, &any, buffer).unwrap();
    b.endpoint.close_pair(b.pair).unwrap();
    let flushed = b.next();
    assert_eq!((flushed.wr_id, flushed.status), (1, WcStatus::Flushed));
    assert_eq!(
        b.cq.outstanding(),
        1,
        "a receive from any source stays posted"
    );
    assert_eq!(b.endpoint.query_pair(b.pair), Err(CommandError::NotFound));
    let buffer = b.buffer(8);
    let refused = b
        .endpoint
        .post_tagged_send(3, &b.send(1), buffer)
        .unwrap_err();
    assert_eq!(refused.error, PostError::InvalidPair);
}

#[test]
pub fn a_pair_of_another_endpoint_is_refused() {
    let (a, mut b) = connected(&fabric(), 8);
    let buffer = b.buffer(8);
    let refused = b
        .endpoint
        .post_tagged_send(1, &a.send(1), buffer)
        .unwrap_err();
    assert_eq!(refused.error, PostError::InvalidPair);
    let refused = b
        .endpoint
        .post_tagged_recv(1, &a.receive(1), refused.buffer);
    assert_eq!(refused.unwrap_err().error, PostError::InvalidPair);
    assert_eq!(b.endpoint.close_pair(a.pair), Err(CommandError::NotFound));
}

#[test]
fn a_send_on_a_pair_that_is_not_connected_completes_as_invalid() {
    let (mut a, _b) = connected(&fabric(), 8);
    let (open, address) = a.endpoint.open_pair(1).unwrap();
    assert_eq!(PairAddress::from_bytes(&address.to_bytes()), Some(address));
    let mut send = a.send(1);
    send.pair = open;
    let buffer = a.buffer(8);
    a.endpoint.post_tagged_send(1, &send, buffer).unwrap();
    assert_eq!(a.next().status, WcStatus::InvalidPair);
    let status = a.endpoint.query_pair(open).unwrap();
    assert_eq!(status.state, PairState::Open);
}

#[test]
fn a_failed_inject_is_shown() {
    let (a, _b) = connected(&fabric(), 8);
    let (open, _) = a.endpoint.open_pair(1).unwrap();
    let mut send = a.send(1);
    send.pair = open;
    for _ in 0..10 {
        a.endpoint.post_tagged_inject(77, &send, b"lost").unwrap();
        let failed = a.next();
        assert_eq!((failed.wr_id, failed.status), (77, WcStatus::InvalidPair));
        assert!(failed.buffer.is_none());
    }
}

/// Posts three receives at B and sends three messages from A, of whose frames the first is lost. Returns the cycles that it took.
fn exchange_with_a_loss() -> u64 {
    let fabric = fabric();
    let (mut a, mut b) = connected(&fabric, 8);
    for k in 0..3 {
        b.post(k, &b.receive(9));
    }
    b.pause(5000);
    let before = fabric.now();
    fabric.lose_frames(0, 1);
    let payload = |k: u64| [k as u8 + 1; 8];
    for k in 0..3 {
        let buffer = a.filled(&payload(k));
        a.endpoint.post_tagged_send(k, &a.send(9), buffer).unwrap();
    }
    for k in 0..3 {
        let received = b.next();
        assert_eq!((received.wr_id, received.status), (k, WcStatus::Success));
        assert_eq!(received.received(), payload(k));
    }
    let took = fabric.now() - before;
    for k in 0..3 {
        let sent = a.next();
        assert_eq!((sent.wr_id, sent.status), (k, WcStatus::Success));
    }
    for side in [&a, &b] {
        assert_eq!(side.cq.wait(50_000).unwrap_err(), WaitError::Timeout);
        assert_eq!(side.endpoint.poll_event().unwrap(), None);
        let status = side.endpoint.query_pair(side.pair).unwrap();
        assert_eq!(status.state, PairState::Connected);
    }
    took
}

#[test]
pub fn a_lost_message_is_sent_again_and_nobody_is_told() {
    exchange_with_a_loss();
}

#[test]
pub fn a_lost_message_is_sent_again_before_the_time_out_if_others_come_behind_it() {
    let took = exchange_with_a_loss();
    assert!(took < ACKNOWLEDGE_TIMEOUT.into(), "{took} cycles");
}

#[test]
pub fn a_wire_that_is_cut_fails_the_pair_on_both_sides_and_raises_events() {
    let fabric = fabric();
    let (mut a, mut b) = connected(&fabric, 8);
    let buffer = b.buffer(8);
    b.endpoint
        .post_tagged_recv(1, &b.receive(1), buffer)
        .unwrap();
    b.pause(5000);
    for card in 0..2 {
        fabric.lose_frames(card, u32::MAX);
    }
    for k in 0..2 {
        let buffer = a.buffer(8);
        a.endpoint.post_tagged_send(k, &a.send(9), buffer).unwrap();
    }
    b.endpoint.post_tagged_inject(2, &b.send(9), b"z").unwrap();
    for side in [&a, &b] {
        side.endpoint.set_wait_interrupts(Causes::PEER_FAILED);
    }
    for (side, requests) in [(&a, 2), (&b, 2)] {
        let (mut completions, mut interruptions) = (0, 0);
        while completions < requests || interruptions < 1 {
            match side.cq.wait(PATIENCE) {
                Ok(completion) => {
                    assert_eq!(completion.status, WcStatus::PeerFailed);
                    completions += 1;
                }
                Err(error) => {
                    assert_eq!(error, WaitError::Interrupted);
                    interruptions += 1;
                }
            }
        }
        assert_eq!(side.cq.wait(1000).unwrap_err(), WaitError::Timeout);
        assert_eq!((completions, interruptions), (requests, 1));
    }
    let event = b.endpoint.poll_event().unwrap().expect("an event");
    assert_eq!((event.cause, event.pair), (Cause::PeerFailed, Some(b.pair)));
    assert_eq!(b.endpoint.poll_event().unwrap(), None);
    let sticky = Causes::PEER_FAILED;
    assert_eq!(b.endpoint.sticky_causes(), Ok(sticky));
    b.endpoint.clear_causes(sticky).unwrap();
    assert_eq!(
        (b.endpoint.sticky_causes(), b.endpoint.events_lost()),
        (Ok(Causes::empty()), Ok(0))
    );
    let status = a.endpoint.query_pair(a.pair).unwrap();
    assert_eq!(status.state, PairState::Failed);
}

#[test]
fn a_wire_that_is_cut_for_less_loses_nothing() {
    let fabric = fabric();
    let (mut a, mut b) = connected(&fabric, 8);
    for k in 0..2 {
        b.post(k, &b.receive(9));
    }
    b.pause(5000);
    (0..2).for_each(|card| fabric.lose_frames(card, u32::MAX));
    for k in 0..2 {
        let buffer = a.buffer(8);
        a.endpoint.post_tagged_send(k, &a.send(9), buffer).unwrap();
    }
    // The last but one try is the last that is lost.
    let lost = timeouts_until_failure(RETRY_LIMIT - 2);
    a.pause((lost + 1) * u64::from(ACKNOWLEDGE_TIMEOUT));
    assert!(a.cq.poll().is_none() && b.cq.poll().is_none());
    (0..2).for_each(|card| fabric.lose_frames(card, 0));
    for side in [&a, &b] {
        for k in 0..2 {
            let ended = side.next();
            assert_eq!((ended.wr_id, ended.status), (k, WcStatus::Success));
        }
    }
}

#[test]
pub fn a_peer_that_falls_silent_fails_the_sends_in_bounded_time() {
    let fabric = fabric();
    let (mut a, _b) = connected(&fabric, 8);
    fabric.lose_frames(1, u32::MAX);
    let buffer = a.buffer(8);
    a.endpoint.post_tagged_send(1, &a.send(9), buffer).unwrap();
    let before = fabric.now();
    assert_eq!(a.next().status, WcStatus::PeerFailed);
    let took = fabric.now() - before;
    let (timeout, waits) = (
        u64::from(ACKNOWLEDGE_TIMEOUT),
        timeouts_until_failure(RETRY_LIMIT),
    );
    assert!(
        (waits * timeout..(waits + 1) * timeout).contains(&took),
        "{took} cycles"
    );
    let buffer = a.buffer(8);
    a.endpoint.post_tagged_send(2, &a.send(9), buffer).unwrap();
    assert_eq!(a.next_past_events().status, WcStatus::PeerFailed);
}

#[test]
fn events_that_find_no_room_are_counted_and_stay_readable() {
    let fabric = fabric();
    let device = open(&fabric).unwrap();
    let pd = device.alloc_pd().unwrap();
    let endpoint = pd
        .endpoint()
        .event_queue(4)
        .inject_buffers(0)
        .open()
        .unwrap();
    let page = abi::register::endpoint_page(endpoint.index());
    let transport = fabric.transport(0);
    // SAFETY: the card ignores this value of the doorbell, which is the point: it makes it fetch nothing.
    let overrun = || unsafe { transport.doorbell(page + abi::register::SEND_TAIL, 0x8000) };
    for _ in 0..6 {
        overrun().unwrap();
    }
    assert_eq!(endpoint.events_lost(), Ok(2));
    assert_eq!(endpoint.sticky_causes(), Ok(Causes::RING_OVERRUN));
    for _ in 0..4 {
        let event = endpoint.poll_event().unwrap().unwrap();
        assert_eq!(
            (event.cause, event.info, event.pair),
            (Cause::RingOverrun, 0x8000, None)
        );
    }
    assert_eq!(endpoint.poll_event().unwrap(), None);
    overrun().unwrap();
    assert_eq!(endpoint.events_lost(), Ok(2), "the doorbell has been seen");
    assert!(
        endpoint.poll_event().unwrap().is_some(),
        "the queue goes on"
    );
}

#[test]
pub(crate) fn events_are_taken_though_the_card_is_out_of_reach_and_it_hears_of_them_later() {
    let fabric = fabric();
    let device = open(&fabric).unwrap();
    let pd = device.alloc_pd().unwrap();
    let endpoint = pd.endpoint().event_queue(4).open().unwrap();
    let page = abi::register::endpoint_page(endpoint.index());
    let transport = fabric.transport(0);
    // SAFETY: the card ignores this value of the doorbell, which is the point: it makes it fetch nothing.
    let overrun = || unsafe { transport.doorbell(page + abi::register::SEND_TAIL, 0x8000) };
    for round in 0..2 {
        for _ in 0..4 {
            overrun().unwrap();
        }
        assert_eq!(
            endpoint.events_lost(),
            Ok(0),
            "the queue is full, round {round}"
        );
        fabric.cut(0, true);
        for _ in 0..4 {
            let event = endpoint.poll_event().unwrap().expect("the card wrote it");
            assert_eq!(event.cause, Cause::RingOverrun);
        }
        assert_eq!(endpoint.poll_event(), Err(TransportError::Unreachable));
        fabric.cut(0, false);
        assert_eq!(endpoint.poll_event(), Ok(None));
    }
}

/// As it broke: events know only the place of their pair, and one that was polled late was reported for the next pair there.
#[test]
pub fn an_event_about_a_closed_pair_is_not_told_of_the_next_in_its_place() {
    let fabric = fabric();
    let (a, _b) = connected(&fabric, 8);
    a.endpoint.declare_failed(a.pair).expect("connected");
    a.pause(5000);
    a.endpoint.close_pair(a.pair).expect("open");
    let (next, _) = a.endpoint.open_pair(8).expect("room");
    assert_eq!(next.index(), a.pair.index(), "it has the place");
    let event = a.endpoint.poll_event().unwrap().expect("an event");
    assert_eq!((event.cause, event.pair), (Cause::PeerFailed, None));
    // What comes later is about the pair that is there now.
    a.endpoint.close_pair(next).expect("open");
    let nobody = a.endpoint.address();
    let next = a.endpoint.begin_connect(&nobody, 8, 0).expect("room");
    assert_eq!(next.index(), a.pair.index(), "it has the place");
    a.pause(100_000);
    let event = a.endpoint.poll_event().unwrap().expect("an event");
    assert_eq!(
        (event.cause, event.pair),
        (Cause::ConnectFailed, Some(next))
    );
}
