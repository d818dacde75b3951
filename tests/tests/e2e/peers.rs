//! A process that has nothing to send learns that its peer is gone, and why; the others go on, and tell each other.

use abi::control::Counter;
use abi::times::{ACKNOWLEDGE_TIMEOUT, WATCH_INTERVAL_LEAST};
use host_driver::{Cause, FailureCause, PeerState, WatchOptions, WcStatus};
use posthorn_tests::cards::both_over;
use posthorn_tests::frames::{header, number};
use posthorn_tests::side::Side;
use posthorn_tests::wires::Wires;
use sim::fabric::{LinkFilter, Passing};

const WATCH: WatchOptions = WatchOptions {
    interval: 2 * WATCH_INTERVAL_LEAST,
    timeout: 8 * WATCH_INTERVAL_LEAST,
    believe_peers: true,
};
/// Five looks find the peer silent, each a quarter of an interval late at most, and one before them has found it alive.
const SURELY: u64 = 8 * WATCH.interval as u64;

/// From the first frame of message 2 on, all frames of its connection are lost, those of the firmware too.
fn cut() -> impl FnMut(Passing, &mut Vec<Passing>) + Send {
    let mut lost = None;
    move |passing, out: &mut Vec<Passing>| {
        let cookie = header(&passing).expect("a whole frame").cookie;
        if lost.is_none() && number(&passing) == Some(2) {
            lost = Some(cookie);
        }
        if lost != Some(cookie) {
            out.push(passing);
        }
    }
}

#[test]
pub(crate) fn who_only_receives_learns_that_its_peer_is_gone_and_tells_it_to_others() {
    both_over(
        "tiny",
        3,
        151,
        || Wires::tapped(LinkFilter::ALL, cut()),
        |host| {
            let mut me = Side::open(&host);
            me.meet();
            let anyone = 9;
            if me.rank() == 0 {
                me.endpoint.watch_peers(WATCH).expect("watched");
                for k in 1..3 {
                    me.receive(k, Some(1), 7, 8);
                }
                me.receive(anyone, None, 8, 8);
            } else if me.rank() == 2 {
                let believing = WatchOptions {
                    believe_peers: true,
                    ..WatchOptions::OFF
                };
                me.endpoint.watch_peers(believing).expect("watched");
            }
            me.pause(2000);
            me.meet();
            if me.rank() == 1 {
                me.send(0, 7, 1, 8);
                assert_eq!(me.statuses(1), [(1, WcStatus::Success)]);
            } else if me.rank() == 0 {
                assert_eq!(me.statuses(1), [(1, WcStatus::Success)]);
                // Silence is no failure while the peer's card answers.
                me.assert_silent(SURELY);
            }
            me.meet();
            match me.rank() {
                1 => {
                    me.send(0, 7, 2, 8);
                    me.pause(50 * u64::from(ACKNOWLEDGE_TIMEOUT));
                    assert_eq!(me.statuses(1), [(2, WcStatus::PeerFailed)]);
                    assert_eq!(me.pair_status(0).failure, Some(FailureCause::Retries));
                }
                0 => {
                    me.pause(SURELY);
                    assert_eq!(me.statuses(1), [(2, WcStatus::PeerFailed)]);
                    let status = me.pair_status(1);
                    assert_eq!(status.peer_state, PeerState::Failed);
                    assert_eq!(status.failure, Some(FailureCause::Silence));
                    // The receive from anyone waits for whoever is left.
                    let failed = me.pair(1);
                    let told: Vec<_> = me.events().iter().map(|e| (e.cause, e.pair)).collect();
                    let causes = [Cause::PeerFailed, Cause::PeerFailedPending];
                    assert_eq!(told, causes.map(|cause| (cause, Some(failed))));
                    assert_eq!(me.endpoint.failed_peers(), Ok(vec![failed]));
                    assert_eq!(me.endpoint.pending_failures(), Ok(vec![failed]));
                    me.endpoint.acknowledge_failures().expect("acknowledged");
                    me.receive(anyone + 1, None, 9, 8);
                    assert_eq!(me.events(), [], "it is told once");
                    assert_eq!(me.endpoint.pending_failures(), Ok(vec![]));
                    me.endpoint
                        .tell_failed(failed, &[me.pair(2)])
                        .expect("told");
                    // That is told first.
                    while me.endpoint.signal(me.pair(2), 0xabc).is_err() {
                        me.pause(2000);
                    }
                }
                _ => {}
            }
            if me.rank() == 2 {
                let mut signal = None;
                while signal.is_none() {
                    me.pause(2000);
                    let events = me.events();
                    let found = events.iter().find(|event| event.cause == Cause::Signal);
                    signal = found.map(|event| (event.pair, event.info));
                }
                assert_eq!(signal, Some((Some(me.pair(0)), 0xabc)));
                let told = me.pair_status(1);
                assert_eq!(told.failure, Some(FailureCause::Told));
                me.send(0, 8, 3, 8);
                assert_eq!(me.statuses(1), [(3, WcStatus::Success)]);
            } else if me.rank() == 0 {
                assert_eq!(me.statuses(1), [(anyone, WcStatus::Success)]);
            }
            me.meet();
        },
    );
}

#[test]
pub(crate) fn a_watched_pair_that_is_busy_sends_no_more_frames_than_one_that_is_not_watched() {
    both_over("tiny", 2, 152, Wires::default, |host| {
        let mut me = Side::open(&host);
        let mut frames = [0; 2];
        for (round, sent) in frames.iter_mut().enumerate() {
            if round == 1 && me.rank() == 0 {
                me.endpoint.watch_peers(WATCH).expect("watched");
            }
            let numbers = 10 * round as u64..10 * (round as u64 + 1);
            if me.rank() == 0 {
                for number in numbers.clone() {
                    me.receive(number, Some(1), 7, 8);
                }
            }
            me.pause(2000);
            me.meet();
            let before = me.count(Counter::FramesSent);
            for number in numbers {
                if me.rank() == 1 {
                    me.send(0, 7, number, 8);
                }
                assert_eq!(me.statuses(1), [(number, WcStatus::Success)]);
                me.pause(u64::from(WATCH.interval) / 2);
            }
            *sent = me.count(Counter::FramesSent) - before;
            me.meet();
        }
        assert_eq!(
            frames[0], frames[1],
            "what is watched and busy sends no more"
        );
        if me.rank() == 0 {
            let before = me.count(Counter::FramesSent);
            me.pause(10 * u64::from(WATCH.interval));
            assert!(me.count(Counter::FramesSent) - before >= 5);
        }
        me.meet();
    });
}
