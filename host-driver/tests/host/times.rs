//! The times of pairs: what a program chooses, and what follows from the round trip.

use crate::common::{PATIENCE, Side, connected, fabric, options};
use abi::times::{
    ACKNOWLEDGE_TIMEOUT_LOG2, DEFAULT_TIMEOUT_LOG2_MOST, RETRY_LIMIT, TIMEOUT_LOG2_LEAST,
    default_delay, default_timeout_log2, timeouts_until_failure,
};
use host_driver::transport::PauseResult;
use host_driver::{CommandError, Device, MailboxStatus, Pair, PairTimes, WcStatus};
use soft_card::{SoftFabric, SoftOptions};

/// Time-out, retry limit, delay and credits that are in force.
fn in_force(side: &Side, pair: Pair) -> (u8, u8, u16, u8) {
    let status = side.endpoint.query_pair(pair).expect("it is open");
    (
        status.timeout,
        status.retry_cnt,
        status.acknowledge_delay,
        status.acknowledge_credits,
    )
}

/// Another pair between the two.
fn second(a: &Side, b: &Side, times: PairTimes) -> Pair {
    let (here, address) = a.endpoint.open_pair(4).expect("there is room");
    let (there, peer) = b.endpoint.open_pair(4).expect("there is room");
    a.endpoint.set_pair_times(here, times).expect("it is open");
    a.endpoint.connect_pair(here, &peer).expect("it is open");
    b.endpoint
        .connect_pair(there, &address)
        .expect("it is open");
    here
}

#[test]
pub fn a_pair_with_short_times_fails_soon_and_one_with_long_times_lives_through_it() {
    let fabric = fabric();
    let (a, b) = connected(&fabric, 4);
    let short = second(
        &a,
        &b,
        PairTimes {
            timeout: Some(TIMEOUT_LOG2_LEAST),
            retry_cnt: Some(1),
            ..PairTimes::default()
        },
    );
    let long = second(
        &a,
        &b,
        PairTimes {
            timeout: Some(20),
            retry_cnt: Some(0),
            ..PairTimes::default()
        },
    );
    (0..2).for_each(|card| fabric.lose_frames(card, u32::MAX));
    let before = fabric.now();
    for (number, pair) in [short, a.pair, long].into_iter().enumerate() {
        let send = host_driver::TaggedSend { pair, ..a.send(9) };
        a.endpoint
            .post_tagged_inject(number as u64, &send, b"x")
            .expect("there is room");
    }
    // One time-out, and one twice as long.
    let unit = 1 << TIMEOUT_LOG2_LEAST;
    let ended = a.cq.wait(PATIENCE).expect("it is given up");
    assert_eq!((ended.wr_id, ended.status), (0, WcStatus::PeerFailed));
    let took = fabric.now() - before;
    assert!((3 * unit..5 * unit).contains(&took), "{took} cycles");
    // By itself, after as many of four times as long as `RETRY_LIMIT` gives.
    let ended = a.next_past_events();
    assert_eq!((ended.wr_id, ended.status), (1, WcStatus::PeerFailed));
    let took = fabric.now() - before;
    let waits = timeouts_until_failure(RETRY_LIMIT);
    assert!(
        (waits * 4 * unit..(waits + 1) * 4 * unit).contains(&took),
        "{took} cycles"
    );
    // The last one waits for longer than these two together, once.
    a.pause(PATIENCE / 20);
    assert!(a.cq.poll().is_none());
    let ended = a.next_past_events();
    assert_eq!((ended.wr_id, ended.status), (2, WcStatus::PeerFailed));
    let took = fabric.now() - before;
    assert!(
        ((1 << 20)..(1 << 20) + 20_000).contains(&took),
        "{took} cycles"
    );
}

#[test]
pub fn a_program_chooses_each_of_the_times_and_reads_what_is_in_force() {
    let (a, b) = connected(&fabric(), 4);
    let own = (ACKNOWLEDGE_TIMEOUT_LOG2, RETRY_LIMIT, 256, 2);
    assert_eq!(in_force(&a, a.pair), own);
    let choices = [
        (
            PairTimes {
                timeout: Some(28),
                ..PairTimes::default()
            },
            (28, RETRY_LIMIT, 256, 2),
        ),
        (
            PairTimes {
                retry_cnt: Some(15),
                ..PairTimes::default()
            },
            (12, 15, 256, 2),
        ),
        (
            PairTimes {
                acknowledge_delay: Some(0),
                ..PairTimes::default()
            },
            (12, RETRY_LIMIT, 0, 2),
        ),
        (
            PairTimes {
                acknowledge_credits: Some(4),
                ..PairTimes::default()
            },
            (12, RETRY_LIMIT, 256, 4),
        ),
        (
            PairTimes {
                timeout: Some(10),
                retry_cnt: Some(0),
                acknowledge_delay: Some(65_535),
                acknowledge_credits: Some(0),
            },
            (10, 0, 65_535, 0),
        ),
        (PairTimes::default(), own),
    ];
    for (times, found) in choices {
        a.endpoint
            .set_pair_times(a.pair, times)
            .expect("within bounds");
        assert_eq!(in_force(&a, a.pair), found);
        assert_eq!(in_force(&b, b.pair), own, "the other side has its own");
    }
    // Out of bounds: the place of the value in the command, and nothing changes.
    let hostile = [
        (
            PairTimes {
                timeout: Some(9),
                ..PairTimes::default()
            },
            2,
        ),
        (
            PairTimes {
                timeout: Some(29),
                ..PairTimes::default()
            },
            2,
        ),
        (
            PairTimes {
                retry_cnt: Some(16),
                ..PairTimes::default()
            },
            3,
        ),
        (
            PairTimes {
                acknowledge_credits: Some(5),
                ..PairTimes::default()
            },
            5,
        ),
    ];
    for (times, place) in hostile {
        let refused = a.endpoint.set_pair_times(a.pair, times);
        let Err(CommandError::Refused { status, detail, .. }) = refused else {
            panic!("{times:?}: {refused:?}");
        };
        assert_eq!((status, detail), (MailboxStatus::InvalidArgument, place));
        assert_eq!(in_force(&a, a.pair), own);
    }
}

#[test]
fn both_sides_of_a_connection_wait_for_longer_the_longer_the_way_is() {
    for latency in [100, 5_000, 40_000, 600_000] {
        let fabric = SoftFabric::new(SoftOptions {
            latency,
            ..options()
        });
        let open = |card| {
            let device = Device::open(fabric.transport(card)).expect("a card");
            let pd = device.alloc_pd().expect("a domain");
            (pd.endpoint().open().expect("an endpoint"), device)
        };
        let ((a, _), (b, device)) = (open(0), open(1));
        let offer = b.listen(4).expect("there is room");
        let pair = a.connect(&b.address(), 4, 0).expect("they connect");
        while b.poll_connection(offer).expect("it is made").is_none() {
            let end = device.pause(&[], device.now() + 1000);
            assert_eq!(end, PauseResult::Deadline);
        }
        for (endpoint, pair) in [(&a, pair), (&b, offer)] {
            let status = endpoint.query_pair(pair).expect("it is open");
            let least = default_timeout_log2(2 * latency as u32);
            // A soft card's firmware looks at its frames without delay, or nearly.
            let most = default_timeout_log2(2 * latency as u32 + 2_000);
            assert!(
                (least..=most).contains(&status.timeout),
                "{latency} cycles each way: 2^{}",
                status.timeout
            );
            assert_eq!(status.acknowledge_delay, default_delay(status.timeout));
            assert!(status.timeout <= DEFAULT_TIMEOUT_LOG2_MOST);
        }
    }
}
