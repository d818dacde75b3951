//! Pairs that fail: every operation that depends on one completes, both sides are told, and nobody else notices.

use abi::control::Counter;
use abi::mailbox::PairState;
use host_driver::{Cause, WcStatus, WorkCompletion};
use posthorn_tests::cards::both_over;
use posthorn_tests::frames::number;
use posthorn_tests::side::{PATIENCE, Side};
use posthorn_tests::wires::Wires;
use sim::fabric::{LinkFilter, Passing};

/// Loses the message with this number, once.
fn lose(lost: u64) -> impl FnMut(Passing, &mut Vec<Passing>) + Send {
    let mut done = false;
    move |passing, out: &mut Vec<Passing>| {
        if !done && number(&passing) == Some(lost) {
            done = true;
        } else {
            out.push(passing);
        }
    }
}

fn names(completions: &[WorkCompletion], status: WcStatus) -> Vec<u64> {
    let with = completions.iter().filter(|wc| wc.status == status);
    let mut names: Vec<u64> = with.map(|wc| wc.wr_id).collect();
    names.sort_unstable();
    names
}

#[test]
fn a_lost_message_fails_its_pair_on_both_sides_and_no_other() {
    both_over(
        "tiny",
        3,
        111,
        || Wires::tapped(LinkFilter::between(0, 1), lose(2)),
        |host| {
            let mut me = Side::open(&host);
            match me.rank() {
                0 => {
                    // Receives from the peer hang on the pair as well.
                    me.receive(100, Some(1), 9, 8);
                    me.receive(101, Some(2), 9, 8);
                    me.meet();
                    // What is under way when the loss is noticed ends with the pair: the first two are safe before.
                    for number in 0..2 {
                        me.send(1, 7, number, 40);
                    }
                    let ended = me.statuses(2);
                    let safe = [(0, WcStatus::Success), (1, WcStatus::Success)];
                    assert_eq!(ended, safe);
                    for number in 2..6 {
                        me.send(1, 7, number, 40);
                    }
                    let ended: Vec<_> = (0..5).map(|_| me.completion()).collect();
                    assert_eq!(names(&ended, WcStatus::LinkError), [2, 3, 4, 5, 100]);
                    // What is posted on a failed pair completes at once.
                    me.send(1, 7, 6, 40);
                    assert_eq!(me.statuses(1), [(6, WcStatus::LinkError)]);
                }
                1 => {
                    for k in 0..4 {
                        me.receive(k, Some(0), 7, 40);
                    }
                    me.receive(50, None, 8, 40);
                    me.meet();
                    let ended: Vec<_> = (0..4).map(|_| me.completion()).collect();
                    assert_eq!(names(&ended, WcStatus::Success), [0, 1]);
                    assert_eq!(names(&ended, WcStatus::LinkError), [2, 3]);
                    me.receive(4, Some(0), 7, 40);
                    assert_eq!(me.statuses(1), [(4, WcStatus::LinkError)]);
                    assert_eq!(me.count(Counter::Gaps), 1);
                }
                _ => me.meet(),
            }
            me.meet();
            if me.rank() < 2 {
                let peer = 1 - me.rank();
                assert_eq!(me.pair_status(peer).state, PairState::Failed);
                let events = me.events();
                assert_eq!(events.len(), 1, "{events:?}");
                assert_eq!(events[0].cause, Cause::LinkError);
                assert_eq!(events[0].pair, Some(me.pair(peer)));
            }
            // Other pairs go on, to the receives that name no pair or theirs.
            if me.rank() == 2 {
                me.send(1, 8, 0, 40);
                me.send(0, 9, 1, 8);
                assert_eq!(
                    names(&[me.completion(), me.completion()], WcStatus::Success),
                    [0, 1]
                );
            } else {
                let received = me.completion();
                let (wr_id, number, length) = [(101, 1, 8), (50, 0, 40)][me.rank()];
                assert_eq!(received.wr_id, wr_id);
                me.assert_received(&received, 2, number, length);
            }
            me.meet();
            // A pair that is closed and opened anew works again.
            if me.rank() < 2 {
                me.disconnect(1 - me.rank());
            }
            me.connect();
            if me.rank() == 0 {
                me.send(1, 7, 10, 40);
                assert_eq!(me.statuses(1), [(10, WcStatus::Success)]);
            } else if me.rank() == 1 {
                me.receive(1, Some(0), 7, 40);
                let received = me.completion();
                me.assert_received(&received, 0, 10, 40);
            }
            me.meet();
            me.finish();
        },
    );
}

#[test]
fn a_peer_that_never_acknowledges_is_a_link_error_after_the_time_out() {
    // The last message of all: no gap will tell.
    both_over(
        "tiny",
        2,
        112,
        || Wires::tapped(LinkFilter::between(0, 1), lose(2)),
        |host| {
            let mut me = Side::open(&host);
            if me.rank() == 0 {
                for number in 0..3 {
                    me.send(1, 7, number, 8);
                }
                assert_eq!(
                    me.statuses(2),
                    [(0, WcStatus::Success), (1, WcStatus::Success)]
                );
                let timeout = u64::from(firmware_core::ACKNOWLEDGE_TIMEOUT);
                let start = me.device.now();
                me.pause(timeout - PATIENCE / 2);
                let failed = me.completion();
                assert_eq!((failed.wr_id, failed.status), (2, WcStatus::LinkError));
                let took = me.device.now() - start;
                assert!(took <= timeout + timeout / 4, "it took {took} cycles");
                assert_eq!(me.count(Counter::Timeouts), 1);
                assert_eq!(me.events().len(), 1);
            }
            me.meet();
            if me.rank() == 1 {
                // It was told.
                let events = me.events();
                assert_eq!(events.len(), 1);
                assert_eq!(events[0].cause, Cause::LinkError);
                for k in 0..2 {
                    me.receive(k, Some(0), 7, 8);
                    let received = me.completion();
                    me.assert_received(&received, 0, k, 8);
                }
            }
            me.finish();
        },
    );
}
