//! Limits and states.

use crate::common::{connected, cramped, fabric, options, sized};
use host_driver::transport::PauseResult;
use host_driver::{
    Buffer, CommandError, Device, Endpoint, EndpointState, MailboxStatus, PairState, PostError,
    RequestState, Source, TaggedReceive, WcStatus,
};
use soft_card::{FirmwareBehaviour, Sizes, SoftFabric, SoftOptions};

#[test]
fn a_card_says_its_limits_and_keeps_them() {
    let (mut a, _b) = connected(&fabric(), 8);
    let limits = a.device.limits();
    assert_eq!((limits.endpoints, limits.pairs, limits.regions), (2, 8, 32));
    assert_eq!(
        (limits.posted_receives, limits.unexpected_messages),
        (80, 64)
    );
    assert_eq!(limits.reserved_receives, 4);
    assert_eq!((limits.send_segments, limits.unsignaled_sends), (1, false));
    assert_eq!((limits.message_bytes, limits.inject_bytes), (1024, 1024));
    assert_eq!((limits.pair_credits, limits.pair_sends), (64, 8));
    assert_eq!(limits.ring_entries, 4..=16384);

    let endpoint = a.pd.endpoint().open().unwrap();
    assert!(a.pd.endpoint().open().is_err(), "a third endpoint");
    let too_many = endpoint.open_pair(limits.pair_credits as u16 + 1);
    assert!(matches!(too_many, Err(CommandError::Refused { .. })));
    for _ in 1..limits.pairs {
        endpoint.open_pair(1).unwrap();
    }
    let status = MailboxStatus::NoResource;
    let one_more = endpoint.open_pair(1);
    assert!(
        matches!(one_more, Err(CommandError::Refused { status: found, .. }) if found == status)
    );
    let too_small =
        a.pd.endpoint()
            .send_ring(limits.ring_entries.start() / 2)
            .open();
    assert!(matches!(too_small, Err(CommandError::Argument(_))));
    let too_long = vec![0; limits.inject_bytes + 1];
    let refused = a.endpoint.post_tagged_inject(1, &a.send(7), &too_long);
    assert_eq!(refused, Err(PostError::TooLong));
    let buffer = a.buffer(limits.message_bytes as usize + 1);
    a.endpoint.post_tagged_send(1, &a.send(7), buffer).unwrap();
    assert_eq!(a.next().status, WcStatus::TooLong);
}

#[test]
fn an_endpoint_says_its_sizes_and_what_is_outstanding() {
    let (mut a, _b) = sized(&fabric(), 8, 16);
    let fresh = a.endpoint.query();
    assert_eq!(fresh.state, EndpointState::Open);
    assert_eq!((fresh.send_ring, fresh.list_ring), (64, 64));
    assert_eq!((fresh.completion_queue, fresh.event_queue), (16, 64));
    assert_eq!((fresh.outstanding, fresh.kept, fresh.pairs), (0, 0, 1));
    assert_eq!(fresh.inject_buffers, 4);
    a.endpoint.post_tagged_inject(1, &a.send(7), b"x").unwrap();
    let receive = a.receive(7);
    a.post(2, &receive);
    let busy = a.endpoint.query();
    assert_eq!((busy.outstanding, busy.inject_buffers), (2, 3));
    a.endpoint.close_pair(a.pair).unwrap();
    assert_eq!(a.endpoint.query().pairs, 0);
}

#[test]
fn an_endpoint_says_whether_it_is_open() {
    let fabric = fabric();
    let (a, b) = connected(&fabric, 8);
    a.endpoint.close().unwrap();
    assert_eq!(a.endpoint.query().state, EndpointState::Closed);
    fabric.set_firmware(1, FirmwareBehaviour::HangsAfter(0));
    b.endpoint.close().unwrap_err();
    assert_eq!(b.endpoint.query().state, EndpointState::Closing);
    fabric.close();
    b.endpoint.close().unwrap();
    assert_eq!(b.endpoint.query().state, EndpointState::Closed);
}

#[test]
pub fn a_request_says_where_it_is() {
    let (a, mut b) = cramped(2, 8);
    let receive = b.receive(7);
    let requests: Vec<_> = (0..5).map(|k| b.post(k, &receive)).collect();
    let states = || {
        let state = |&request| b.endpoint.query_request(request);
        requests.iter().map(state).collect::<Vec<_>>()
    };
    use RequestState::{Cancelling, Ended, Kept, Posted};
    assert_eq!(states(), [Posted; 5], "in the ring");
    b.pause(50_000);
    assert!(!b.cq.is_ready());
    // Two fit, one waits in the card for room, the rest is back.
    assert_eq!(states(), [Posted, Posted, Posted, Kept, Kept]);
    assert_eq!(
        (b.endpoint.query().kept, b.endpoint.query().outstanding),
        (2, 5)
    );
    b.endpoint.cancel(9, requests[0]).unwrap();
    b.endpoint.cancel(9, requests[4]).unwrap();
    assert_eq!(states(), [Cancelling, Posted, Posted, Kept, Cancelling]);
    for _ in 0..2 {
        assert_eq!(b.next().status, WcStatus::Cancelled);
    }
    assert_eq!((states()[0], states()[4]), (Ended, Ended));
    a.endpoint.post_tagged_inject(0, &a.send(7), b"x").unwrap();
    assert_eq!(b.next().wr_id, 1);
    assert_eq!(b.endpoint.query_request(requests[1]), Ended);
    assert_eq!(
        a.endpoint.query_request(requests[2]),
        Ended,
        "of another endpoint"
    );
}

#[test]
fn a_pair_says_its_state_and_a_closed_one_is_not_found() {
    let (a, b) = connected(&fabric(), 8);
    let status = a.endpoint.query_pair(a.pair).unwrap();
    assert_eq!(status.state, PairState::Connected);
    b.endpoint.close_pair(b.pair).unwrap();
    a.pause(100_000);
    let status = a.endpoint.query_pair(a.pair).unwrap();
    assert_eq!(status.state, PairState::Failed);
    a.endpoint.close_pair(a.pair).unwrap();
    assert_eq!(a.endpoint.query_pair(a.pair), Err(CommandError::NotFound));
}

#[test]
pub fn an_endpoint_has_the_places_that_are_reserved_for_it_though_another_fills_the_list() {
    // Of 80 places 16 are on the associative side, where those go that the exact side has no room for. With 0 the card reserves half of each side.
    let (exact, associative, own_exact) = (64, 16, 16);
    for (asked, reserved) in [(0, 4), (6, 6), (8, 8)] {
        let fabric = SoftFabric::new(SoftOptions {
            sizes: Sizes {
                posted_reserved: asked,
                ..options().sizes
            },
            ..options()
        });
        let device = Device::open(fabric.transport(0)).unwrap();
        assert_eq!(device.limits().reserved_receives, reserved);
        let pd = device.alloc_pd().unwrap();
        let any = TaggedReceive {
            source: Source::Any,
            context: 0,
            match_bits: 0,
            ignore_bits: 1,
        };
        // Receives that the card holds of 100; it has one more in hand, and the library keeps the rest.
        let held = |endpoint: &Endpoint| {
            for k in 0..100 {
                let posted = endpoint.post_tagged_recv(k, &any, Buffer::empty());
                posted.unwrap();
            }
            let end = device.pause(&[], device.now() + 50_000);
            assert_eq!(end, PauseResult::Deadline);
            assert!(endpoint.completion_queue().poll().is_none());
            99 - endpoint.query().kept
        };
        let open = || pd.endpoint().list_ring(128).open().unwrap();
        let (greedy, modest) = (open(), open());
        let others = own_exact + reserved;
        assert_eq!(held(&greedy), exact + associative - others);
        assert_eq!(held(&modest), others);
    }
}
