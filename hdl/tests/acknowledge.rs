//! `link::Acknowledge`, Verilated, against a model: the numbers are right whenever they are looked
//! up, each change is followed by a frame that carries it, and a pair never has two frames waiting.

mod support;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use abi::control::{Operation, PairSetup};
use abi::status::Status;
use abi::wire::FrameType;
use hdl::config;
use hdl::link::AcknowledgeMutation;
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use support::fields::{Steady, pack, set_control, unpack};
use support::{Bench, Size, for_size, for_sizes, rate};

#[derive(Clone, Copy, Default)]
struct Pair {
    open: bool,
    failed: bool,
    /// Its end is an orderly one.
    closed: bool,
    granted: u32,
    accepted: u32,
    freed: u32,
    /// Which of the latest accepted were refused.
    window: u16,
    /// Numbers that the peer has been told.
    told: (u32, u32, u16),
    failure_told: bool,
    /// A frame is still to ask the peer, or to answer it.
    to_ask: bool,
    to_answer: bool,
    /// Times that it was told to ask, less the frames that did.
    asks: u32,
}

/// Random updates, faults and control requests for a while, then silence until all is told.
fn updates(size: &Size, mutation: AcknowledgeMutation, rng: &mut ChaCha8Rng) {
    let mut bench = Bench::open(&size.model);
    bench.set("mutation_0", mutation as u64);
    let mut pairs = vec![Pair::default(); size.config.pairs];
    let (busy, willing) = (rate(rng), rate(rng));
    let mut steady = Steady::default();
    let mut update: Option<(usize, bool, bool, bool)> = None;
    let mut mark: Option<(usize, bool)> = None;
    let mut fault: Option<(usize, Status)> = None;
    let mut control: Option<(Operation, usize, PairSetup)> = None;
    let mut control_since = 0;
    // The pair whose numbers were asked for in the cycle before, and what they were then.
    let mut looked_up: Option<(usize, (u32, u32, u16))> = None;
    // The frame that began in the cycle before.
    let mut begun: Option<(usize, FrameType)> = None;
    let (active, mut idle) = (6000, 0);

    for cycle in 0.. {
        let talking = cycle < active;
        if update.is_none() && talking && rng.random_bool(busy) {
            let index = size.pair(rng);
            let pair = pairs[index];
            let queued = pair.accepted.wrapping_sub(pair.freed);
            // Never more than is granted, as Delivery never does.
            let (accepted, freed) = match rng.random_range(0..3) {
                0 if queued < pair.granted => (true, false),
                1 if queued > 0 => (false, true),
                _ if queued < pair.granted => (true, true),
                _ => (false, false),
            };
            let under_way = control.is_some_and(|(_, other, _)| other == index);
            if (accepted || freed || !pair.open) && !under_way {
                let refused = accepted && freed && rng.random_bool(0.5);
                update = Some((index, accepted, freed, refused));
            }
        }
        bench.set("sink_update_valid", update.is_some());
        let (pair, accepted, freed, refused) = update.unwrap_or_default();
        let fields = [
            (pair as u64, 16),
            (accepted.into(), 1),
            (freed.into(), 1),
            (refused.into(), 1),
        ];
        bench.set("sink_update", pack(&fields)[0]);

        if mark.is_none() && talking && rng.random_bool(busy / 20.0) {
            mark = Some((size.pair_or_none(rng), rng.random()));
        }
        bench.set("mark_valid", mark.is_some());
        let (pair, ask) = mark.unwrap_or_default();
        bench.set("mark", pack(&[(pair as u64, 16), (ask.into(), 1)])[0]);

        if fault.is_none() && control.is_none() && talking && rng.random_bool(0.005) {
            let status = match rng.random_bool(0.3) {
                true => Status::PeerClosed,
                false => Status::LinkError,
            };
            fault = Some((size.pair_or_none(rng), status));
        }
        bench.set("fault_valid", fault.is_some());
        let (faulty, status) = fault.unwrap_or((0, Status::LinkError));
        bench.set(
            "fault",
            pack(&[(faulty as u64, 16), (status.code().into(), 8)])[0],
        );

        if control.is_none() && fault.is_none() && talking && rng.random_bool(0.02) {
            let index = size.pair(rng);
            let operation = match rng.random_range(0..6) {
                0 => Operation::PairClear,
                1 => Operation::CardSet,
                _ if pairs[index].open && !pairs[index].failed => Operation::RingSet,
                _ => Operation::PairSet,
            };
            let setup = PairSetup {
                local_credits: rng.random_range(1..=16),
                ..Default::default()
            };
            let under_way = update.is_some_and(|(pair, ..)| pair == index);
            if !under_way {
                control = Some((operation, index, setup));
                control_since = cycle.max(size.config.pairs as u64);
            }
        }
        bench.set("control_valid", control.is_some());
        if let Some((operation, index, setup)) = control {
            set_control(&mut bench, operation, index as u16, &setup.to_words());
        }

        let takes = rng.random_bool(willing);
        bench.set("control_frame_ready", takes);
        bench.eval();
        let words = bench.get_wide::<1>("control_frame");
        let [offered, _] = unpack(&words, [16, 8]);
        // As the transmitter does: numbers are looked up in the cycle in which a frame begins.
        let lookup = if takes && bench.is("control_frame_valid") {
            offered as usize
        } else {
            size.pair(rng)
        };
        bench.set("lookup_pair", lookup as u64);
        bench.eval();

        if let Some((pair, numbers)) = looked_up {
            let found = (
                bench.get("lookup_acknowledge") as u32,
                bench.get("lookup_credit") as u32,
                bench.get("lookup_refused") as u16,
            );
            assert_eq!(found, numbers, "pair {pair}, cycle {cycle}");
            if let Some((_, frame_type)) = begun.take() {
                let pair = &mut pairs[pair];
                pair.told = numbers;
                pair.failure_told |= frame_type == FrameType::PairFailed;
                pair.to_answer = false;
                if frame_type == FrameType::Ask {
                    assert!(pair.asks > 0, "it asks unasked, cycle {cycle}");
                    pair.asks -= 1;
                    pair.to_ask = false;
                }
            }
        }
        let asked = &pairs[lookup];
        looked_up = Some((lookup, (asked.accepted, asked.freed, asked.window)));
        let valid = bench.is("control_frame_valid");
        if let Some(words) = steady.watch("control_frame", valid, takes, &words) {
            let [pair, code] = unpack(&words, [16, 8]);
            let frame_type = FrameType::from_code(code as u8).expect("a type");
            let failed = pairs[pair as usize].failed && !pairs[pair as usize].closed;
            assert!(
                frame_type != FrameType::PairFailed || failed,
                "pair {pair}, which has not failed, is announced as failed, cycle {cycle}"
            );
            begun = Some((pair as usize, frame_type));
        }

        if let Some((index, accepted, freed, refused)) = update
            && bench.is("sink_update_ready")
        {
            let pair = &mut pairs[index];
            let counts = pair.open && !pair.failed;
            assert_eq!(bench.is("monitor_sink_valid"), counts, "cycle {cycle}");
            if counts {
                pair.accepted = pair.accepted.wrapping_add(accepted.into());
                pair.freed = pair.freed.wrapping_add(freed.into());
                if accepted {
                    pair.window = pair.window << 1 | u16::from(refused);
                }
                let seen = ["pair", "accepted", "freed"]
                    .map(|name| bench.get(&format!("monitor_sink_{name}")));
                let now = [index as u64, pair.accepted.into(), pair.freed.into()];
                assert_eq!(seen, now, "cycle {cycle}");
            }
            update = None;
        }
        if let Some((index, ask)) = mark
            && bench.is("mark_ready")
        {
            assert!(!bench.is("monitor_sink_valid"), "nothing has moved");
            if let Some(pair) = pairs.get_mut(index).filter(|p| p.open && !p.failed) {
                pair.asks += u32::from(ask);
                pair.to_ask |= ask;
                pair.to_answer |= !ask;
            }
            mark = None;
        }
        if let Some((index, status)) = fault
            && bench.is("fault_ready")
        {
            if let Some(pair) = pairs.get_mut(index) {
                pair.closed |= pair.open && !pair.failed && status == Status::PeerClosed;
                pair.failed = pair.open;
            }
            fault = None;
        }
        // A wire that stopped left the frame of a pair on offer for ever, and `PairClear` undone.
        assert!(
            control.is_none() || cycle < control_since + 5,
            "a control request waits for the wire, cycle {cycle}"
        );
        if let Some((operation, index, setup)) = control
            && bench.is("control_done")
        {
            // A frame of the pair that is on offer is withdrawn; one that is taken in this cycle is dropped by Framer, which has forgotten the pair.
            if [Operation::PairSet, Operation::PairClear].contains(&operation)
                && offered as usize == index
            {
                steady = Steady::default();
                begun = None;
            }
            if [Operation::PairSet, Operation::PairClear].contains(&operation) {
                pairs[index] = Pair {
                    open: operation == Operation::PairSet,
                    granted: setup.local_credits.into(),
                    ..Default::default()
                };
            }
            control = None;
        }
        bench.step();
        idle = if talking { 0 } else { idle + 1 };
        if idle > 2000 {
            break;
        }
    }
    for (index, pair) in pairs.iter().enumerate().filter(|(_, pair)| pair.open) {
        if pair.failed {
            assert!(
                pair.failure_told != pair.closed,
                "the peer of pair {index} has heard nothing, or of a failure that is none"
            );
        } else {
            let now = (pair.accepted, pair.freed, pair.window);
            assert_eq!(pair.told, now, "the peer of pair {index} knows old numbers");
            assert!(!pair.to_ask, "the peer of pair {index} isn't asked");
            assert!(!pair.to_answer, "the peer of pair {index} isn't answered");
        }
    }
}

#[test]
fn peers_learn_what_has_changed_and_lookups_are_exact() {
    for_sizes("acknowledge", 12, |size, rng| {
        updates(size, AcknowledgeMutation::None, rng);
    });
}

fn is_caught(mutation: AcknowledgeMutation) -> bool {
    let caught = Cell::new(false);
    for_size(&config::TINY, "acknowledge", 30, |size, rng| {
        let run = AssertUnwindSafe(|| updates(size, mutation, rng));
        caught.set(caught.get() || catch_unwind(run).is_err());
    });
    caught.get()
}

#[test]
fn a_credit_that_is_returned_twice_is_noticed() {
    assert!(is_caught(AcknowledgeMutation::CreditReturnedTwice));
}

#[test]
fn a_pair_that_is_queued_twice_is_noticed() {
    assert!(is_caught(AcknowledgeMutation::QueuedTwice));
}

#[test]
fn a_mark_that_is_lost_is_noticed() {
    assert!(is_caught(AcknowledgeMutation::MarkLost));
}

#[test]
fn a_pair_that_does_not_ask_is_noticed() {
    assert!(is_caught(AcknowledgeMutation::AskForgotten));
}

#[test]
fn a_window_that_is_not_shifted_is_noticed() {
    assert!(is_caught(AcknowledgeMutation::WindowNotShifted));
}

#[test]
fn a_frame_that_outlives_its_pair_is_noticed() {
    assert!(is_caught(AcknowledgeMutation::FrameOutlivesPair));
}

#[test]
fn an_orderly_end_that_is_announced_as_a_failure_is_noticed() {
    assert!(is_caught(AcknowledgeMutation::ClosingAnnounced));
}
