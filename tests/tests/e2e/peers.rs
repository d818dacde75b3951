//! A process that has nothing to send learns that its peer is gone, and why; the others go on, and tell each other.

use abi::control::Counter;
use abi::times::{ACKNOWLEDGE_TIMEOUT, WATCH_INTERVAL_LEAST};
use host_driver::{
    Cause, Causes, DrainOptions, DrainPolicy, EndpointAddress, FailureCause, Group, MessageSet,
    PeerState, WaitError, WatchOptions, WcStatus,
};
use posthorn_tests::cards::both_over;
use posthorn_tests::frames::{header, number};
use posthorn_tests::side::Side;
use posthorn_tests::wires::Wires;
use sim::fabric::{LinkFilter, Passing};

const WATCH: WatchOptions = WatchOptions {
    interval: WATCH_INTERVAL_LEAST,
    timeout: 4 * WATCH_INTERVAL_LEAST,
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
                    me.pause(32 * u64::from(ACKNOWLEDGE_TIMEOUT));
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

/// The causes that interrupt a wait unless a program says otherwise. Each is raised by gates, firmware or library while a receive waits: all but a peer's failure end the
/// wait once, and a receive from anyone ends it for that too.
#[test]
pub(crate) fn by_default_a_wait_is_interrupted_by_all_but_the_failure_of_a_peer() {
    both_over("tiny", 3, 153, Wires::default, |host| {
        let mut me = Side::open(&host);
        me.endpoint
            .set_wait_interrupts(Causes::INTERRUPT_BY_DEFAULT);
        let believing = WatchOptions {
            believe_peers: true,
            ..WatchOptions::OFF
        };
        me.endpoint.watch_peers(believing).expect("watched");
        let context = MessageSet::of_context(3);
        let drain = DrainOptions {
            tag: 1,
            messages: context,
            policy: DrainPolicy::Reset,
            peer: None,
            timeout: 2_000_000,
        };
        let group = |me: &Side, with: usize| {
            let members = [(with as u32, me.pair(with))];
            Group::new(&me.endpoint, &members, me.rank() as u32).expect("a group")
        };
        // Another endpoint of rank 1, to be connected to.
        let other = (me.rank() == 1).then(|| me.pd.endpoint().open().expect("an endpoint"));
        let address = other.as_ref().map(|other| other.address().to_bytes());
        let addresses = host.all_gather(address.map_or(vec![], |bytes| bytes.to_vec()));
        let addresses = addresses.expect("all ranks meet");
        let address = addresses[1][..].try_into().expect("an address");
        let address = EndpointAddress::from_bytes(&address);
        match me.rank() {
            0 => {
                me.receive(1, Some(1), 7, 8);
                let interrupted = |me: &Side, cause: Cause| {
                    let ended = me.cq.wait(1_000_000).err();
                    assert_eq!(ended, Some(WaitError::Interrupted), "{cause}");
                    let event = me.endpoint.poll_event().expect("a card");
                    assert_eq!(event.map(|event| event.cause), Some(cause));
                    assert_eq!(me.cq.wait(1_000).err(), Some(WaitError::Timeout), "{cause}");
                };
                me.meet();
                interrupted(&me, Cause::Signal);
                me.meet();
                interrupted(&me, Cause::Revoked);
                me.meet();
                interrupted(&me, Cause::Drain);
                let drained = me.endpoint.drain(&group(&me, 1), &drain);
                drained.expect("drained");
                me.events();
                me.meet();
                // What nobody accepts.
                let refused = me.endpoint.begin_connect(&address, 1, 0).expect("a pair");
                interrupted(&me, Cause::ConnectFailed);
                me.endpoint.close_pair(refused).expect("open");
                me.meet();
                let made = me.endpoint.begin_connect(&address, 1, 0).expect("a pair");
                interrupted(&me, Cause::PairConnected);
                me.meet();
                interrupted(&me, Cause::PeerClosed);
                me.endpoint.close_pair(made).expect("open");
                // A failure that no receive from anyone waits for.
                me.endpoint.declare_failed(me.pair(2)).expect("connected");
                assert_eq!(me.cq.wait(50_000).err(), Some(WaitError::Timeout));
                me.receive(2, None, 8, 8);
                let ended = me.cq.wait(50_000).err();
                assert_eq!(ended, Some(WaitError::Interrupted));
                let told: Vec<_> = me.events().iter().map(|event| event.cause).collect();
                assert_eq!(told, [Cause::PeerFailed, Cause::PeerFailedPending]);
                me.meet();
                assert_eq!(sorted_statuses(&mut me, 2), [1, 2]);
            }
            1 => {
                let other = other.expect("of this rank");
                me.meet();
                me.endpoint.signal(me.pair(0), 1).expect("connected");
                me.meet();
                let to = [me.pair(0)];
                let told = me.endpoint.tell_revoked(1, &MessageSet::of_context(9), &to);
                told.expect("told");
                me.meet();
                let drained = me.endpoint.drain(&group(&me, 0), &drain);
                drained.expect("drained");
                me.meet();
                me.meet();
                let offer = other.listen(1).expect("a pair");
                while other.poll_event().expect("a card").is_none() {
                    me.pause(2000);
                }
                me.meet();
                other.disconnect(offer, 0).expect("disconnected");
                me.meet();
                me.send(0, 7, 1, 8);
                me.send(0, 8, 2, 8);
                assert_eq!(sorted_statuses(&mut me, 2), [1, 2]);
            }
            _ => (0..7).for_each(|_| me.meet()),
        }
        me.meet();
    });
}

/// Names of so many completions, all of them well, in their order.
fn sorted_statuses(me: &mut Side, count: usize) -> Vec<u64> {
    let mut told = me.statuses(count);
    told.sort_unstable_by_key(|&(name, _)| name);
    assert!(told.iter().all(|&(_, status)| status == WcStatus::Success));
    told.into_iter().map(|(name, _)| name).collect()
}
