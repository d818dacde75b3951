//! The times of pairs: what a host may choose, when the gates go by it, and what follows from the round trip.

use crate::breaks::{promise, promise_eq};
use crate::commands::{connect, endpoint, firmware, open_pair};
use crate::gates::{Unit, call, settle};
use crate::network::{CALM, Weather, World, connected, for_seeds, two};
use abi::control::{Operation, PairSetup};
use abi::mailbox::{
    Command, Nothing, Pair, PairStatus, SetPairTimes, TIMES_CREDITS, TIMES_DELAY,
    TIMES_RETRY_LIMIT, TIMES_TIMEOUT, id_index,
};
use abi::status::MailboxStatus;
use abi::times::{ACKNOWLEDGE_DELAY, DEFAULT_TIMEOUT_LOG2_MOST, RETRY_LIMIT, default_timeout_log2};
use firmware_core::CONTROL_TIMEOUT;
use std::ops::RangeInclusive;

const ALL: u32 = TIMES_TIMEOUT | TIMES_RETRY_LIMIT | TIMES_DELAY | TIMES_CREDITS;

/// Time-out, retry limit, delay and credits, as the gates have them of a pair.
fn held(fw: &mut Unit, pair: u32) -> [u16; 4] {
    times(&fw.card().pairs[&id_index(pair)].setup)
}

fn times(setup: &PairSetup) -> [u16; 4] {
    [
        setup.timeout_log2.into(),
        setup.retry_limit.into(),
        setup.acknowledge_delay,
        setup.acknowledge_credits.into(),
    ]
}

/// The same, as a query tells them.
fn told(fw: &mut Unit, pair: u32) -> [u16; 4] {
    let status: PairStatus = call(fw, Command::QueryPair, Pair { pair }).expect("it is open");
    [
        status.timeout_log2,
        status.retry_limit,
        status.acknowledge_delay,
        status.acknowledge_credits,
    ]
    .map(|value| value as u16)
}

fn choice(
    pair: u32,
    chosen: u32,
    [timeout_log2, retry_limit, delay, credits]: [u32; 4],
) -> SetPairTimes {
    SetPairTimes {
        pair,
        chosen,
        timeout_log2,
        retry_limit,
        acknowledge_delay: delay,
        acknowledge_credits: credits,
    }
}

fn choose(fw: &mut Unit, choice: SetPairTimes) -> Result<Nothing, (MailboxStatus, u32)> {
    call(fw, Command::SetPairTimes, choice)
}

#[test]
pub fn the_gates_go_by_what_a_host_chooses_whenever_it_does() {
    let mut fw = firmware();
    let endpoint = endpoint(&mut fw).endpoint;
    let pair = open_pair(&mut fw, endpoint, 4).unwrap().pair;
    promise_eq!(
        told(&mut fw, pair),
        [12, RETRY_LIMIT.into(), ACKNOWLEDGE_DELAY, 2]
    );
    // Before the gates know of the pair, and after.
    choose(&mut fw, choice(pair, ALL, [10, 0, 65_535, 4])).unwrap();
    promise_eq!(told(&mut fw, pair), [10, 0, 65_535, 4]);
    let _: Nothing = call(&mut fw, Command::ConnectPair, connect(pair)).unwrap();
    promise_eq!(held(&mut fw, pair), [10, 0, 65_535, 4]);
    fw.card().log.clear();
    choose(&mut fw, choice(pair, ALL, [28, 15, 0, 0])).unwrap();
    promise_eq!(held(&mut fw, pair), [28, 15, 0, 0]);
    promise_eq!(fw.card().log, [(Operation::PairTimes, id_index(pair))]);
    // One of them alone: the others are the firmware's again, whatever is said of them.
    choose(
        &mut fw,
        choice(pair, TIMES_RETRY_LIMIT, [77, 3, 1 << 20, 99]),
    )
    .unwrap();
    let mixed = [12, 3, ACKNOWLEDGE_DELAY, 2];
    promise_eq!(held(&mut fw, pair), mixed);
    promise_eq!(told(&mut fw, pair), mixed);
    // Another pair has its own.
    let other = open_pair(&mut fw, endpoint, 2).unwrap().pair;
    promise_eq!(
        told(&mut fw, other),
        [12, RETRY_LIMIT.into(), ACKNOWLEDGE_DELAY, 1]
    );
    let _: Nothing = call(&mut fw, Command::ClosePair, Pair { pair }).unwrap();
    let closed = choose(&mut fw, choice(pair, 0, [0; 4]));
    promise_eq!(closed, Err((MailboxStatus::NotFound, 0)));
    let pair = open_pair(&mut fw, endpoint, 4).unwrap().pair;
    promise_eq!(
        told(&mut fw, pair),
        [12, RETRY_LIMIT.into(), ACKNOWLEDGE_DELAY, 2]
    );
}

#[test]
pub fn times_out_of_their_bounds_are_refused_and_change_nothing() {
    let mut fw = firmware();
    let endpoint = endpoint(&mut fw).endpoint;
    let pair = open_pair(&mut fw, endpoint, 4).unwrap().pair;
    let _: Nothing = call(&mut fw, Command::ConnectPair, connect(pair)).unwrap();
    let good = [20, 5, 100, 3];
    choose(&mut fw, choice(pair, ALL, good)).unwrap();
    let with = |at: usize, value: u32| {
        let mut values = [13, 6, 7, 1];
        values[at] = value;
        choice(pair, ALL, values)
    };
    let hostile = [
        (1, choice(pair, 16, [13, 6, 7, 1])),
        (1, choice(pair, u32::MAX, [13, 6, 7, 1])),
        (2, with(0, 9)),
        (2, with(0, 0)),
        (2, with(0, 29)),
        (2, with(0, 256 + 12)),
        (3, with(1, 16)),
        (3, with(1, u32::MAX)),
        (4, with(2, 1 << 16)),
        (5, with(3, 5)),
        (5, with(3, 257)),
    ];
    for (position, times) in hostile {
        let refused = choose(&mut fw, times);
        promise_eq!(refused, Err((MailboxStatus::InvalidArgument, position)));
        promise_eq!(held(&mut fw, pair), good.map(|value| value as u16));
        promise_eq!(told(&mut fw, pair), good.map(|value| value as u16));
    }
}

#[test]
fn what_the_gates_answer_late_they_are_told_again() {
    let mut fw = firmware();
    let endpoint = endpoint(&mut fw).endpoint;
    let pair = open_pair(&mut fw, endpoint, 4).unwrap().pair;
    let _: Nothing = call(&mut fw, Command::ConnectPair, connect(pair)).unwrap();
    (fw.card().patience, fw.card().forgets) = (0, 1);
    let late = choose(&mut fw, choice(pair, TIMES_TIMEOUT, [20, 0, 0, 0]));
    promise_eq!(late, Err((MailboxStatus::HardwareTimeout, 0)));
    fw.card().now += CONTROL_TIMEOUT;
    fw.card().patience = usize::MAX;
    settle(&mut fw);
    promise_eq!(held(&mut fw, pair)[0], 20);
}

/// Connects A to B over a wire each way of which takes up to so many cycles more, and as a rule does. Returns the round trip of the frames of the handshake at least and at
/// most.
fn over(world: &mut World, way: u32) -> RangeInclusive<u32> {
    world.weather = match way {
        0 => CALM,
        latest => Weather {
            late: 100,
            latest,
            ..CALM
        },
    };
    world.accept(1, 0);
    world.connect(0, 0, 1, 0, 0);
    world.pass(20 * way + 500_000);
    promise_eq!((connected(world, 0), connected(world, 1)), (1, 1));
    // Frames wait for room for up to so long on either side, and an answer that is repeated is the one that came first.
    200..=2 * (100 + way.max(500)) + 2000
}

fn a_round_trip_is_measured(seed: u64) {
    for way in [0, 4_000, 30_000, 1_000_000] {
        let mut world = two(seed, CALM);
        // The gates of either side take their time, which is no part of the way.
        for card in &mut world.cards {
            card.card().delay = 60_000;
        }
        let round_trip = over(&mut world, way);
        for card in 0..2 {
            let (pair, _) = world.pairs[card][0];
            let unit = &mut world.cards[card];
            let [found, ..] = held(unit, pair);
            let [least, most] = [round_trip.start(), round_trip.end()]
                .map(|&cycles| u16::from(default_timeout_log2(cycles)));
            promise!(
                (least..=most).contains(&found),
                "{way} cycles each way: 2^{found}, and it should be 2^{least} to 2^{most}"
            );
            let query = told(unit, pair);
            promise_eq!(held(unit, pair), query);
        }
    }
}

#[test]
pub fn both_sides_have_their_time_out_from_the_round_trip() {
    for_seeds(a_round_trip_is_measured);
    // A way of so many cycles is far beyond what a pair has whose round trip isn't known.
    let mut found = Vec::new();
    for seed in 0..20 {
        let mut world = two(seed, CALM);
        over(&mut world, 400_000);
        for card in 0..2 {
            let (pair, _) = world.pairs[card][0];
            found.push(held(&mut world.cards[card], pair)[0]);
        }
    }
    let long = found.iter().filter(|&&log2| log2 > 16).count();
    promise!(long > 20, "{found:?}");
    let most = u16::from(DEFAULT_TIMEOUT_LOG2_MOST);
    promise!(found.iter().all(|&log2| log2 <= most));
}
