//! Waiting by a file descriptor.

use crate::common::{Side, connected, fabric};
use host_driver::{EventFd, EventFdError, WcStatus};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// Whether the descriptor is readable, or becomes so within some time of the host's.
fn is_readable(event: &impl AsFd, patience: Duration) -> bool {
    let timeout = Timespec::try_from(patience).unwrap();
    let mut fds = [PollFd::new(event, PollFlags::IN)];
    poll(&mut fds, Some(&timeout)).unwrap() == 1 && fds[0].revents().contains(PollFlags::IN)
}

fn readable_now(event: &EventFd) -> bool {
    is_readable(event, Duration::ZERO)
}

/// Asks for an interrupt at the next completion.
fn arm(side: &Side) -> EventFd {
    let event = side.cq.event_fd().unwrap();
    event.clear().unwrap();
    side.cq.req_notify().unwrap();
    assert!(side.cq.poll().is_none());
    event
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no poll")]
fn a_completion_makes_the_descriptor_readable_until_it_is_cleared() {
    let (a, mut b) = connected(&fabric(), 8);
    let receive = b.receive(7);
    b.post(1, &receive);
    let event = arm(&b);
    b.pause(100_000);
    assert!(!readable_now(&event), "nothing has come");
    a.endpoint.post_tagged_inject(0, &a.send(7), b"x").unwrap();
    b.pause(100_000);
    assert!(readable_now(&event));
    assert_eq!(event.clear().unwrap(), 1);
    assert!(!readable_now(&event));
    assert_eq!(event.clear().unwrap(), 0);
    assert_eq!(b.cq.poll().unwrap().wr_id, 1);
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no poll")]
fn a_thread_that_polls_is_woken() {
    let (a, mut b) = connected(&fabric(), 8);
    let receive = b.receive(7);
    b.post(1, &receive);
    let event = arm(&b);
    let polled = std::thread::scope(|scope| {
        // It is no thread that the card waits for.
        let waiter = scope.spawn(|| is_readable(&event, Duration::from_secs(60)));
        a.endpoint.post_tagged_inject(0, &a.send(7), b"x").unwrap();
        b.pause(100_000);
        waiter.join().unwrap()
    });
    assert!(polled);
    assert_eq!(b.cq.poll().unwrap().wr_id, 1);
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no poll")]
fn what_is_not_asked_for_signals_nothing() {
    let (a, mut b) = connected(&fabric(), 8);
    let receive = b.receive(7);
    b.post(1, &receive);
    let event = b.cq.event_fd().unwrap();
    a.endpoint.post_tagged_inject(0, &a.send(7), b"x").unwrap();
    b.pause(100_000);
    assert!(!readable_now(&event), "no req_notify");
    assert_eq!(b.cq.poll().unwrap().wr_id, 1);
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no poll")]
fn all_descriptors_of_a_queue_are_of_one_event() {
    let (a, mut b) = connected(&fabric(), 8);
    let receive = b.receive(7);
    b.post(1, &receive);
    let first = arm(&b);
    let second = b.cq.event_fd().unwrap();
    drop(first);
    a.endpoint.post_tagged_inject(0, &a.send(7), b"x").unwrap();
    b.pause(100_000);
    let third = b.cq.event_fd().unwrap();
    assert!(readable_now(&second) && readable_now(&third));
    assert_eq!(third.clear().unwrap(), 1);
    let owned: OwnedFd = second.into();
    assert!(!is_readable(&owned, Duration::ZERO));
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no poll")]
fn an_event_makes_the_descriptor_readable_if_it_was_asked_for() {
    let (a, b) = connected(&fabric(), 8);
    let event = a.cq.event_fd().unwrap();
    a.endpoint.req_notify_event().unwrap();
    assert!(a.endpoint.poll_event().unwrap().is_none());
    b.endpoint.close_pair(b.pair).unwrap();
    a.pause(100_000);
    assert!(readable_now(&event));
    assert_eq!(a.endpoint.poll_event().unwrap().unwrap().pair, Some(a.pair));
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no poll")]
pub fn the_end_of_a_close_and_of_the_card_make_it_readable() {
    let fabric = fabric();
    let (mut a, mut b) = connected(&fabric, 8);
    for side in [&mut a, &mut b] {
        let receive = side.receive(7);
        side.post(1, &receive);
    }
    let events = [arm(&a), arm(&b)];
    a.endpoint.close().unwrap();
    assert!(readable_now(&events[0]) && !readable_now(&events[1]));
    assert_eq!(a.cq.poll().unwrap().status, WcStatus::Flushed);
    fabric.close();
    assert!(readable_now(&events[1]));
    assert_eq!(b.cq.poll().unwrap().status, WcStatus::Flushed);
    assert!(readable_now(&a.cq.event_fd().unwrap()));
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no poll")]
fn a_reset_of_the_card_makes_it_readable() {
    let (mut a, _b) = connected(&fabric(), 8);
    let receive = a.receive(7);
    a.post(1, &receive);
    let event = arm(&a);
    a.device.reset().unwrap();
    assert!(readable_now(&event));
    assert_eq!(a.cq.poll().unwrap().status, WcStatus::Flushed);
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no poll")]
pub fn an_old_queue_and_the_next_endpoint_in_its_place_have_events_of_their_own() {
    let (a, b) = connected(&fabric(), 8);
    let old = a.cq.event_fd().unwrap();
    a.endpoint.close().unwrap();
    old.clear().unwrap();
    let next = a.pd.endpoint().open().unwrap();
    assert_eq!(next.index(), a.endpoint.index());
    let cq = next.completion_queue();
    let receive = host_driver::TaggedReceive {
        source: host_driver::Source::Any,
        context: 0,
        match_bits: 0,
        ignore_bits: 0,
    };
    let interrupt = || {
        cq.req_notify().unwrap();
        next.probe(1, &receive).unwrap();
        b.pause(100_000);
        assert!(cq.poll().is_some());
    };
    interrupt();
    assert!(!readable_now(&old));
    let event = cq.event_fd().unwrap();
    drop((a.cq, a.endpoint));
    interrupt();
    assert!(readable_now(&event) && !readable_now(&old));
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no poll")]
fn a_closed_endpoint_gives_a_descriptor_that_is_readable() {
    let (a, _b) = connected(&fabric(), 8);
    a.endpoint.close().unwrap();
    assert!(readable_now(&a.cq.event_fd().unwrap()));
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no poll")]
fn a_card_out_of_reach_gives_no_descriptor() {
    let fabric = fabric();
    let (a, _b) = connected(&fabric, 8);
    fabric.cut(0, true);
    let error = a.cq.event_fd().unwrap_err();
    assert!(matches!(error, EventFdError::Transport(_)), "{error}");
    fabric.cut(0, false);
    assert!(!readable_now(&a.cq.event_fd().unwrap()));
}
