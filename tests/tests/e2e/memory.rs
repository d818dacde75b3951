//! Host memory that answers with an error: the operation says so, and the card goes on.

use abi::completion::COMPLETION_MORE;
use abi::event::Cause;
use abi::limits::EAGER_MAX;
use abi::register::STICKY;
use abi::request::{FLAG_MULTI, ListRequest};
use abi::status::Status;
use posthorn_tests::cards::both;
use posthorn_tests::raw::{LoopbackEndpoint, Mapped, RawHost, Ring};

const RIGHTS: u8 = abi::control::RIGHT_LOCAL_READ | abi::control::RIGHT_LOCAL_WRITE;

#[test]
pub(crate) fn a_buffer_that_is_gone_is_a_memory_error_of_its_request_only() {
    both("tiny", 1, 71, |host| {
        let host = RawHost::new(&host);
        let mut loopback = LoopbackEndpoint::open(&host);
        let gone = Mapped::new(host.transport(), EAGER_MAX);
        let key = host.region(loopback.domain, RIGHTS, gone.address(), EAGER_MAX as u64);
        // Posted while it was there.
        let mut receive = loopback.receive(7, 1, 500);
        (receive.key, receive.address) = (key, gone.address());
        loopback.endpoint.post_list(receive.to_words());
        loopback.assert_works();
        gone.unmap();

        let mut send = loopback.send(8, 2, 700);
        (send.key, send.address) = (key, gone.address() + 3);
        loopback.endpoint.post_send(send.to_words());
        assert_eq!(loopback.status(), (2, Status::MemoryError));
        loopback.assert_works();

        // The sender has done its part; the receiver's buffer is the receiver's affair.
        let send = loopback.send(7, 3, 500);
        loopback.endpoint.post_send(send.to_words());
        let mut both = [loopback.status(), loopback.status()];
        both.sort_unstable();
        assert_eq!(both, [(1, Status::MemoryError), (3, Status::Success)]);
        loopback.assert_works();

        // The same when the message was there first.
        let send = loopback.send(9, 4, 64);
        loopback.endpoint.post_send(send.to_words());
        assert_eq!(loopback.status(), (4, Status::Success));
        (receive.match_bits, receive.request) = (9, 5);
        loopback.endpoint.post_list(receive.to_words());
        assert_eq!(loopback.status(), (5, Status::MemoryError));
        loopback.assert_works();
    });
}

#[test]
pub(crate) fn a_multi_receive_goes_on_behind_a_message_that_memory_or_the_gate_refuses() {
    both("tiny", 1, 76, |host| {
        let host = RawHost::new(&host);
        let mut loopback = LoopbackEndpoint::open(&host);
        let buffers = [(); 2].map(|()| Mapped::new(host.transport(), EAGER_MAX));
        let keys = buffers.each_ref().map(|buffer| {
            let length = EAGER_MAX as u64;
            host.region(loopback.domain, RIGHTS, buffer.address(), length)
        });
        let post = |loopback: &mut LoopbackEndpoint<'_>, request, at: usize| {
            let receive = ListRequest {
                flags: FLAG_MULTI,
                min_free: 200,
                key: keys[at],
                address: buffers[at].address(),
                ..loopback.receive(7, request, 400)
            };
            loopback.endpoint.post_list(receive.to_words());
        };
        // Sends a message, and says what comes of the receive.
        let take = |loopback: &mut LoopbackEndpoint<'_>, request, length| {
            let send = loopback.send(7, 9, length);
            loopback.endpoint.post_send(send.to_words());
            let both = [(); 2].map(|()| loopback.endpoint.completion());
            let of = |request: u32| both.iter().find(|entry| entry.request == request);
            assert_eq!(of(9).expect("a send").status, Status::Success.code());
            let entry = *of(request).expect("a receive");
            assert_eq!(entry.length, length);
            let status = Status::from_code(entry.status).expect("a status");
            (status, entry.flags, entry.offset, entry.count)
        };

        post(&mut loopback, 1, 0);
        let more = COMPLETION_MORE;
        let first = take(&mut loopback, 1, 100);
        assert_eq!(first, (Status::Success, more, 0, 0));
        buffers[0].unmap();
        let second = take(&mut loopback, 1, 50);
        assert_eq!(second, (Status::MemoryError, more, 100, 0));
        // A message of no byte needs no memory.
        let third = take(&mut loopback, 1, 0);
        assert_eq!(third, (Status::Success, more, 150, 0));
        // With this one less than 200 bytes are left.
        let fourth = take(&mut loopback, 1, 51);
        assert_eq!(fourth, (Status::MemoryError, 0, 150, 4));
        loopback.assert_works();

        post(&mut loopback, 2, 1);
        let first = take(&mut loopback, 2, 8);
        assert_eq!(first, (Status::Success, more, 0, 0));
        host.forget_region(keys[1]);
        // Its region has gone: nothing is written, and the program hears of it with each message until it cancels the receive.
        let second = take(&mut loopback, 2, 8);
        assert_eq!(second, (Status::AccessDenied, more, 8, 0));
        let third = take(&mut loopback, 2, 16);
        assert_eq!(third, (Status::AccessDenied, more, 16, 0));
        let cancel = loopback.cancel(3, 2);
        loopback.endpoint.post_list(cancel.to_words());
        let last = loopback.endpoint.completion();
        assert_eq!((last.request, last.status), (2, Status::Cancelled.code()));
        assert_eq!((last.offset, last.count), (32, 4));
        loopback.assert_works();
    });
}

#[test]
pub(crate) fn slots_that_are_gone_fail_their_pair_and_no_other() {
    both("tiny", 1, 72, |host| {
        let host = RawHost::new(&host);
        let mut other = LoopbackEndpoint::open(&host);
        let mut loopback = LoopbackEndpoint::open(&host);
        loopback.assert_works();
        loopback.slots.unmap();
        // What is expected needs no slot.
        for request in [10, 20] {
            let receive = loopback.receive(8, request, 100);
            loopback.endpoint.post_list(receive.to_words());
            // The rings have no order between them: what is behind the receive has been looked at.
            let probe = loopback.probe(1, request + 2);
            loopback.endpoint.post_list(probe.to_words());
            assert_eq!(loopback.status(), (request + 2, Status::NoMessage));
            let send = loopback.send(8, request + 1, 100);
            loopback.endpoint.post_send(send.to_words());
            let mut both = [loopback.status(), loopback.status()];
            both.sort_unstable();
            assert_eq!(
                both,
                [(request, Status::Success), (request + 1, Status::Success)]
            );
        }
        // A message that has nowhere to go can't be promised: the sender is told, and so is who waits for it.
        let send = loopback.send(7, 1, 100);
        loopback.endpoint.post_send(send.to_words());
        assert_eq!(loopback.status(), (1, Status::MemoryError));
        let event = loopback.endpoint.event();
        assert_eq!(
            (event.cause, event.pair),
            (Cause::SlotError.code(), loopback.pair)
        );
        let receive = loopback.receive(7, 2, 100);
        loopback.endpoint.post_list(receive.to_words());
        assert_eq!(loopback.status(), (2, Status::MemoryError));
        assert!(
            loopback.endpoint.poll_event().is_none(),
            "one cause, one event"
        );
        other.assert_works();
    });
}

#[test]
pub(crate) fn slots_that_are_gone_are_a_memory_error_here_and_a_link_error_at_the_peer() {
    both("tiny", 1, 75, |host| {
        let host = RawHost::new(&host);
        let mut near = LoopbackEndpoint::open(&host);
        let mut far = LoopbackEndpoint::open(&host);
        let slots = [0, 1].map(|_| Mapped::new(host.transport(), 8 << 10));
        let there = host.open_pair(near.endpoint.id, 8, &slots[0]);
        let back = host.open_pair(far.endpoint.id, 8, &slots[1]);
        host.connect(&there, &back);
        host.connect(&back, &there);
        (near.pair, far.pair) = (there.pair as u16, back.pair as u16);

        // One message rests in a slot before the slots go.
        let send = far.send(3, 1, 40);
        far.endpoint.post_send(send.to_words());
        assert_eq!(far.status(), (1, Status::Success));
        let waits = near.receive(7, 2, 100);
        near.endpoint.post_list(waits.to_words());
        slots[0].unmap();
        let send = far.send(8, 3, 100);
        far.endpoint.post_send(send.to_words());
        assert_eq!(far.status(), (3, Status::LinkError));
        assert_eq!(far.endpoint.event().cause, Cause::LinkError.code());
        assert_eq!(near.status(), (2, Status::MemoryError));
        assert_eq!(near.endpoint.event().cause, Cause::SlotError.code());
        // What had come before is a message still, though its payload is gone with the slots.
        let receive = near.receive(3, 4, 100);
        near.endpoint.post_list(receive.to_words());
        let entry = near.endpoint.completion();
        let seen = (entry.request, entry.status, entry.match_bits, entry.length);
        assert_eq!(seen, (4, Status::MemoryError.code(), 3, 40));
        // And nothing else of it: no envelope of another request's.
        assert_eq!(entry.pair, near.pair);
    });
}

#[test]
fn a_completion_queue_that_is_gone_is_an_event_and_other_endpoints_go_on() {
    both("tiny", 1, 73, |host| {
        let host = RawHost::new(&host);
        let mut other = LoopbackEndpoint::open(&host);
        let mut loopback = LoopbackEndpoint::open(&host);
        loopback.endpoint.unmap(Ring::Completion);
        let probe = loopback.probe(1, 1);
        loopback.endpoint.post_list(probe.to_words());
        assert_eq!(
            loopback.endpoint.event().cause,
            Cause::CompletionError.code()
        );
        other.assert_works();
        loopback.endpoint.close();
        other.assert_works();
    });
}

#[test]
fn an_event_queue_that_is_gone_leaves_the_sticky_cause() {
    both("tiny", 1, 74, |host| {
        let host = RawHost::new(&host);
        let mut loopback = LoopbackEndpoint::open(&host);
        loopback.endpoint.unmap(Ring::Event);
        loopback.endpoint.doorbell(abi::register::SEND_TAIL, 0x4000);
        let sticky = 1 << Cause::RingOverrun.code();
        host.until("the cause is seen", || {
            (loopback.endpoint.read(STICKY) == sticky).then_some(())
        });
        loopback.assert_works();
        loopback.endpoint.close();
    });
}
