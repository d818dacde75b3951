//! The times of pairs: what a program chooses is what its gates go by, and what it doesn't choose follows from the round trip.

use crate::connections::{CREDITS, Stranger, TIMEOUT};
use crate::failures::cut;
use abi::mailbox::PairState;
use abi::times::{ACKNOWLEDGE_TIMEOUT, ACKNOWLEDGE_TIMEOUT_LOG2, TIMEOUT_LOG2_LEAST};
use host_driver::{Cause, PairTimes, WcStatus};
use posthorn_tests::cards::{GatesOnly, both, both_over, cards};
use posthorn_tests::side::Side;
use posthorn_tests::wires::Wires;
use sim::fabric::{Link, LinkFilter};

/// One round of the scan for time-outs of eight pairs, and some more under load.
const SCAN: u64 = 8 * 64 + 300;

#[test]
pub(crate) fn a_pair_with_short_times_fails_soon_and_one_with_long_times_outlives_the_cut() {
    const UNIT: u64 = 1 << TIMEOUT_LOG2_LEAST;
    // One wire for good, the other for longer than the first pair has patience.
    let wires = || {
        let for_good = Wires::tapped(LinkFilter::between(0, 1), cut(None));
        let cycles = 25 * u64::from(ACKNOWLEDGE_TIMEOUT);
        for_good.tap(LinkFilter::between(0, 2), cut(Some(cycles)))
    };
    both_over("tiny", 3, 901, wires, |host| {
        let mut me = Side::open(&host);
        if me.rank() == 2 {
            me.receive(1, Some(0), 7, 8);
        }
        me.meet();
        if me.rank() == 0 {
            for (peer, timeout, retries) in [(1, TIMEOUT_LOG2_LEAST, 2), (2, 13, 5)] {
                let times = PairTimes {
                    timeout: Some(timeout),
                    retry_cnt: Some(retries),
                    ..PairTimes::default()
                };
                let pair = me.pair(peer);
                me.endpoint
                    .set_pair_times(pair, times)
                    .expect("within bounds");
                let status = me.pair_status(peer);
                assert_eq!((status.timeout, status.retry_cnt), (timeout, retries));
            }
            let start = me.device.now();
            // The cut is from message 2 on.
            me.send(2, 7, 2, 8);
            me.send(1, 7, 2, 8);
            assert_eq!(me.statuses(1), [(2, WcStatus::PeerFailed)]);
            let took = me.device.now() - start;
            let waits = 1 + 2 + 4;
            assert!(
                (waits * UNIT..waits * UNIT + 3 * SCAN + 2000).contains(&took),
                "{took} cycles"
            );
            assert_eq!(me.pair_status(1).state, PairState::Failed);
            let events = me.events();
            assert_eq!(events.len(), 1, "{events:?}");
            assert_eq!(
                (events[0].cause, events[0].pair),
                (Cause::PeerFailed, Some(me.pair(1)))
            );
            // The tries of the other one are after 1, 3, 7 and 15 of its time-outs, of which the last finds the wire whole.
            assert_eq!(me.statuses(1), [(2, WcStatus::Success)]);
            let took = me.device.now() - start;
            assert!(
                (15 << 13..(15 << 13) + 4 * SCAN + 4000).contains(&took),
                "{took} cycles"
            );
            assert_eq!(me.pair_status(2).state, PairState::Connected);
        } else if me.rank() == 2 {
            let received = me.completion();
            me.assert_received(&received, 0, 2, 8);
        }
        me.meet();
        me.finish();
    });
}

#[test]
fn times_that_change_while_a_message_waits_count_at_once() {
    let wires = || Wires::tapped(LinkFilter::between(0, 1), cut(None));
    both_over("tiny", 2, 902, wires, |host| {
        let mut me = Side::open(&host);
        if me.rank() == 0 {
            let long = PairTimes {
                timeout: Some(28),
                ..PairTimes::default()
            };
            let pair = me.pair(1);
            me.endpoint
                .set_pair_times(pair, long)
                .expect("within bounds");
            me.send(1, 7, 2, 8);
            // By the times that it had before it would have failed after 27 of these.
            me.assert_silent(40 * u64::from(ACKNOWLEDGE_TIMEOUT));
            assert_eq!(me.pair_status(1).state, PairState::Connected);
            let short = PairTimes {
                timeout: Some(TIMEOUT_LOG2_LEAST),
                retry_cnt: Some(0),
                ..PairTimes::default()
            };
            let start = me.device.now();
            me.endpoint
                .set_pair_times(pair, short)
                .expect("within bounds");
            assert_eq!(me.statuses(1), [(2, WcStatus::PeerFailed)]);
            // It had waited for longer than that before. The command takes some 5,000 cycles of it, beside what the firmware is doing.
            let took = me.device.now() - start;
            assert!(took < 2 * SCAN + 8000, "{took} cycles");
            me.events();
        }
        me.meet();
        me.finish();
    });
}

/// Connects rank 0 to rank 1. Both have the pair then.
fn handshake(me: &mut Stranger) -> u8 {
    let addresses = me.addresses();
    let pair = match me.host.card() {
        0 => me.endpoint.connect(&addresses[1], CREDITS, TIMEOUT),
        _ => me
            .endpoint
            .accept(CREDITS, TIMEOUT.into())
            .map(|(pair, _)| pair),
    };
    let pair = pair.expect("a connection");
    me.greet(pair);
    me.meet();
    me.endpoint.query_pair(pair).expect("it is open").timeout
}

#[test]
fn over_a_short_wire_a_pair_has_the_shortest_time_out_that_the_firmware_gives() {
    both("tiny", 2, 903, |host| {
        let mut me = Stranger::open(&host);
        let timeout = handshake(&mut me);
        println!("rank {}: 2^{timeout}", me.host.card());
        let most = ACKNOWLEDGE_TIMEOUT_LOG2 + 1;
        assert!(
            (ACKNOWLEDGE_TIMEOUT_LOG2..=most).contains(&timeout),
            "2^{timeout}"
        );
    });
}

#[test]
fn over_a_long_wire_no_message_is_sent_again_for_want_of_patience() {
    // Each way takes longer than the time-out of a pair that doesn't know.
    let link = Link {
        latency: 10_000,
        ..Link::default()
    };
    let cluster = cards("tiny", 2, 904).link(link);
    GatesOnly::Simulation.run(cluster, |host| {
        let mut me = Stranger::open(&host);
        let timeout = handshake(&mut me);
        assert!((15..=16).contains(&timeout), "2^{timeout}");
        let counters = [
            abi::control::Counter::Timeouts,
            abi::control::Counter::Repeats,
        ];
        assert_eq!(
            counters.map(|counter| me.device.read_counter(counter)),
            [Ok(0), Ok(0)]
        );
    });
}
