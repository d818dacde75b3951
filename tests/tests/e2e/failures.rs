//! Wires that lose frames, and pairs that fail. A lost frame is sent again, and nobody above the link can tell. A pair whose peer is silent for good fails:
//! every operation that depends on it completes, and nobody else notices.

use abi::control::{Counter, PairCounter};
use abi::mailbox::PairState;
use abi::times::{ACKNOWLEDGE_TIMEOUT, RETRY_LIMIT, timeouts_until_failure};
use host_driver::{Cause, WcStatus, WorkCompletion};
use posthorn_tests::cards::both_over;
use posthorn_tests::frames::{header, number};
use posthorn_tests::side::Side;
use posthorn_tests::wires::Wires;
use sim::fabric::{LinkFilter, Passing};

const TIMEOUT: u64 = ACKNOWLEDGE_TIMEOUT as u64;
/// Time-outs until a pair fails.
const WAITS: u64 = timeouts_until_failure(RETRY_LIMIT);

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

/// From the first frame of message 2 on, the wire is cut: for so many cycles for all, or for good for the frames of that connection.
pub(crate) fn cut(cycles: Option<u64>) -> impl FnMut(Passing, &mut Vec<Passing>) + Send {
    let mut since = None;
    move |passing, out: &mut Vec<Passing>| {
        let header = header(&passing).expect("a whole frame");
        if since.is_none() && number(&passing) == Some(2) {
            since = Some((passing.frame.last, header.cookie));
        }
        let is_cut = since.is_some_and(|(began, cookie)| match cycles {
            Some(cycles) => passing.frame.last < began + cycles,
            None => header.cookie == cookie,
        });
        if !is_cut {
            out.push(passing);
        }
    }
}

#[test]
pub(crate) fn a_lost_message_is_sent_again_and_nobody_above_the_link_can_tell() {
    both_over(
        "tiny",
        3,
        111,
        || Wires::tapped(LinkFilter::between(0, 1), lose(2)),
        |host| {
            let mut me = Side::open(&host);
            match me.rank() {
                1 => {
                    for k in 0..6 {
                        me.receive(k, Some(0), 7, 40);
                    }
                    me.meet();
                    for k in 0..6 {
                        let received = me.completion();
                        assert_eq!(received.wr_id, k);
                        me.assert_received(&received, 0, k, 40);
                    }
                    assert!(me.count(Counter::Gaps) > 0, "the next were there before");
                    me.receive(50, None, 8, 40);
                    let received = me.completion();
                    me.assert_received(&received, 2, 0, 40);
                    // It is known whose wire is bad.
                    let gaps = [0, 2].map(|peer| me.count_of(peer, PairCounter::Gaps));
                    assert_eq!(gaps.map(u64::from), [me.count(Counter::Gaps), 0]);
                    assert!(me.count_of(0, PairCounter::FramesReceived) >= 6);
                }
                0 => {
                    me.meet();
                    for number in 0..6 {
                        me.send(1, 7, number, 40);
                    }
                    let sent: Vec<_> = (0..6).map(|k| (k, WcStatus::Success)).collect();
                    assert_eq!(me.statuses(6), sent);
                    assert!(me.count(Counter::Repeats) > 0);
                    assert_eq!(me.count(Counter::Timeouts), 0, "the peer said it first");
                    let repeats = [1, 2].map(|peer| me.count_of(peer, PairCounter::Repeats));
                    assert_eq!(repeats.map(u64::from), [me.count(Counter::Repeats), 0]);
                }
                _ => {
                    me.meet();
                    me.send(1, 8, 0, 40);
                    assert_eq!(me.statuses(1), [(0, WcStatus::Success)]);
                    assert_eq!(me.count(Counter::Repeats), 0);
                }
            }
            me.meet();
            if me.rank() < 2 {
                assert_eq!(me.pair_status(1 - me.rank()).state, PairState::Connected);
            }
            me.finish();
        },
    );
}

#[test]
fn the_last_message_of_all_is_sent_again_after_the_time_out_if_it_is_lost() {
    // No gap will tell.
    both_over(
        "tiny",
        2,
        112,
        || Wires::tapped(LinkFilter::between(0, 1), lose(2)),
        |host| {
            let mut me = Side::open(&host);
            if me.rank() == 0 {
                for number in 0..2 {
                    me.send(1, 7, number, 8);
                }
                let sent = [0, 1].map(|number| (number, WcStatus::Success));
                assert_eq!(me.statuses(2), sent);
                let start = me.device.now();
                me.send(1, 7, 2, 8);
                assert_eq!(me.statuses(1), [(2, WcStatus::Success)]);
                let took = me.device.now() - start;
                assert!((TIMEOUT..2 * TIMEOUT).contains(&took), "{took} cycles");
                let counters = [Counter::Timeouts, Counter::Repeats];
                assert_eq!(counters.map(|counter| me.count(counter)), [1, 1]);
                let counters = [PairCounter::Timeouts, PairCounter::Repeats];
                assert_eq!(counters.map(|counter| me.count_of(1, counter)), [1, 1]);
            } else {
                for k in 0..3 {
                    me.receive(k, Some(0), 7, 8);
                    let received = me.completion();
                    me.assert_received(&received, 0, k, 8);
                }
                assert_eq!(me.count(Counter::Gaps), 0);
            }
            me.meet();
            me.finish();
        },
    );
}

#[test]
fn a_wire_that_is_unplugged_and_plugged_in_again_loses_nothing() {
    // Until shortly before the last try.
    let wires = || Wires::tapped(LinkFilter::between(0, 1), cut(Some((WAITS - 6) * TIMEOUT)));
    both_over("tiny", 2, 113, wires, |host| {
        let mut me = Side::open(&host);
        let peer = 1 - me.rank();
        for k in 0..6 {
            me.receive(100 + k, Some(peer), 7, 40);
        }
        me.meet();
        for number in 0..6 {
            me.send(peer, 7, number, 40);
        }
        let (mut sent, mut received) = (0, 0);
        while sent < 6 || received < 6 {
            let completion = me.completion();
            if completion.wr_id < 100 {
                let ended = (completion.wr_id, completion.status);
                assert_eq!(ended, (sent, WcStatus::Success));
                sent += 1;
            } else {
                assert_eq!(completion.wr_id, 100 + received);
                me.assert_received(&completion, peer, received, 40);
                received += 1;
            }
        }
        if me.rank() == 0 {
            assert!(me.count(Counter::Timeouts) >= 5);
        }
        me.meet();
        assert_eq!(me.pair_status(peer).state, PairState::Connected);
        me.finish();
    });
}

#[test]
fn a_wire_that_is_cut_for_good_fails_its_pair_on_both_sides_in_bounded_time_and_no_other() {
    both_over(
        "tiny",
        3,
        114,
        || Wires::tapped(LinkFilter::ALL, cut(None)),
        |host| {
            let mut me = Side::open(&host);
            let peer = 1 - me.rank().min(1);
            if me.rank() == 1 {
                for k in 0..2 {
                    me.receive(k, Some(0), 7, 40);
                }
                me.receive(50, None, 8, 40);
            } else if me.rank() == 0 {
                // Receives from the peer hang on the pair as well.
                me.receive(100, Some(1), 9, 8);
                me.receive(101, Some(2), 9, 8);
            }
            me.meet();
            if me.rank() < 2 {
                if me.rank() == 0 {
                    for number in 0..2 {
                        me.send(1, 7, number, 40);
                    }
                    let safe = [0, 1].map(|number| (number, WcStatus::Success));
                    assert_eq!(me.statuses(2), safe);
                    for number in 2..6 {
                        me.send(1, 7, number, 40);
                    }
                } else {
                    for k in 0..2 {
                        let received = me.completion();
                        me.assert_received(&received, 0, k, 40);
                    }
                    me.receive(4, Some(0), 7, 40);
                }
            }
            me.pause(2000);
            me.meet();
            let start = me.device.now();
            if me.rank() == 1 {
                me.send(0, 9, 20, 8);
            }
            if me.rank() < 2 {
                me.assert_silent((WAITS - 2) * TIMEOUT);
                let (count, failed): (usize, &[u64]) = match me.rank() {
                    0 => (5, &[2, 3, 4, 5, 100]),
                    _ => (2, &[4, 20]),
                };
                let ended: Vec<_> = (0..count).map(|_| me.completion()).collect();
                assert_eq!(names(&ended, WcStatus::PeerFailed), failed);
                let took = me.device.now() - start;
                assert!(took < (WAITS + 3) * TIMEOUT, "{took} cycles");
                // What is posted on a failed pair completes at once.
                me.send(peer, 7, 6, 40);
                assert_eq!(me.statuses(1), [(6, WcStatus::PeerFailed)]);
                me.receive(5, Some(peer), 7, 40);
                assert_eq!(me.statuses(1), [(5, WcStatus::PeerFailed)]);
                me.pause(2000);
                assert_eq!(me.pair_status(peer).state, PairState::Failed);
                // Rank 1 has a receive from any source, which may wait for nothing now.
                let causes: &[Cause] = match me.rank() {
                    0 => &[Cause::PeerFailed],
                    _ => &[Cause::PeerFailed, Cause::PeerFailedPending],
                };
                let events = me.events();
                let said: Vec<_> = events.iter().map(|event| event.cause).collect();
                assert_eq!(said, causes, "{events:?}");
                let of_peer = Some(me.pair(peer));
                assert!(
                    events.iter().all(|event| event.pair == of_peer),
                    "{events:?}"
                );
            }
            me.meet();
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
                me.disconnect(peer);
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
