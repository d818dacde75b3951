//! `link::Acknowledge`, Verilated, against that of the model of the card: the numbers are right whenever they are looked
//! up, each control frame is the one that its pair owes then, each change is followed by a frame that carries it, and no
//! control frame says what a frame of its pair has just said.
//!
//! What a pair owes, the model says. When it has to come, this test says: before long, but not at once if a message of the pair waits for its frame.

use abi::control::{Operation, PairSetup};
use abi::status::Status;
use abi::wire::FrameType;
use card_model::link::{Acknowledge, Owed, SinkNumbers};
use card_model::{Break, Reason, Update};
use hdl::config;
use hdl_tests::broken::{breaks, mutants};
use hdl_tests::fields::{Steady, pack, set_control, unpack};
use hdl_tests::{Bench, Size, for_sizes, is_caught, rate};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

/// Cycles for which numbers wait for a message of their pair, at most.
const DELAY: u16 = 300;

fn set_update(bench: &mut Bench, update: Option<(usize, bool, bool, bool)>) {
    bench.set("sink_update_valid", update.is_some());
    let (pair, accepted, freed, refused) = update.unwrap_or_default();
    let fields = [
        (pair as u64, 16),
        (accepted.into(), 1),
        (freed.into(), 1),
        (refused.into(), 1),
    ];
    bench.set("sink_update", pack(&fields)[0]);
}

/// Carries out a control request while nothing else happens.
fn control(bench: &mut Bench, operation: Operation, index: usize, data: &[u64]) {
    bench.set("control_valid", true);
    set_control(bench, operation, index as u16, data);
    for cycle in 0.. {
        bench.eval();
        let done = bench.is("control_ready") && bench.is("initialized");
        bench.step();
        if done {
            break;
        }
        assert!(cycle < 10_000, "it is done soon");
    }
    bench.set("control_valid", false);
}

/// Random updates, faults and control requests for a while, then silence until all is told. As it broke: an acknowledgement went out although a message of its pair had just carried
/// the same numbers.
fn updates(size: &Size, rng: &mut ChaCha8Rng, broken: Break) {
    let mut bench = Bench::open(&size.model);
    let mut model = Acknowledge::new(size.config.pairs);
    model.break_on_purpose(broken);
    // Envelopes that the peers are granted, and the pairs of which a message waits for its frame.
    let mut granted = vec![0; size.config.pairs];
    let mut waiting = vec![false; size.config.pairs];
    let (busy, willing) = (rate(rng), rate(rng));
    let mut steady = Steady::default();
    let mut update: Option<(usize, bool, bool, bool)> = None;
    let mut mark: Option<(usize, Reason)> = None;
    let mut fault: Option<(usize, Status)> = None;
    let mut control: Option<(Operation, usize, PairSetup)> = None;
    let mut control_since = 0;
    // The pair whose numbers were asked for in the cycle before, and what they were then.
    let mut looked_up: Option<(usize, SinkNumbers, bool)> = None;
    let mut connected = vec![false; size.config.pairs];
    // A frame began in the cycle before.
    let mut begun = false;
    // The frame on offer.
    let mut offer: Option<Owed> = None;
    let mut gathered_pair = 0;
    let (active, mut idle) = (6000, 0);

    for cycle in 0.. {
        let talking = cycle < active;
        if update.is_none() && talking && rng.random_bool(busy) {
            let index = size.pair(rng);
            let numbers = model.numbers(index as u16);
            let queued = numbers.accepted.wrapping_sub(numbers.freed);
            // Never more than is granted, as Delivery never does.
            let (accepted, freed) = match rng.random_range(0..3) {
                0 if queued < granted[index] => (true, false),
                1 if queued > 0 => (false, true),
                _ if queued < granted[index] => (true, true),
                _ => (false, false),
            };
            let under_way = control.is_some_and(|(_, other, _)| other == index);
            if (accepted || freed || granted[index] == 0) && !under_way {
                let refused = accepted && freed && rng.random_bool(0.5);
                update = Some((index, accepted, freed, refused));
            }
        }
        set_update(&mut bench, update);

        if mark.is_none() && talking && rng.random_bool(busy / 20.0) {
            let reasons = [Reason::Answer, Reason::Ask, Reason::Gap];
            mark = Some((size.pair_or_none(rng), reasons[rng.random_range(0..3)]));
        }
        bench.set("mark_valid", mark.is_some());
        let (pair, reason) = mark.unwrap_or((0, Reason::Answer));
        let fields = [
            (pair as u64, 16),
            ((reason == Reason::Ask).into(), 1),
            ((reason == Reason::Gap).into(), 1),
        ];
        bench.set("mark", pack(&fields)[0]);

        if fault.is_none() && control.is_none() && talking && rng.random_bool(0.005) {
            let statuses = [Status::PeerClosed, Status::LinkError, Status::Flushed];
            let status = statuses[rng.random_range(0..3)];
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
                _ if model.is_sound(index as u16) => Operation::PairTimes,
                _ => Operation::PairSet,
            };
            let setup = PairSetup {
                local_credits: rng.random_range(1..=16),
                acknowledge_credits: rng.random_range(0..=16),
                acknowledge_delay: rng.random_range(0..=DELAY),
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

        if talking && rng.random_bool(busy / 5.0) {
            waiting[size.pair(rng)] = true;
        }
        let waits = waiting.get(gathered_pair).copied().unwrap_or(false);
        bench.set("gathered", waits);
        bench.set("wire_busy", talking && rng.random_bool(busy));
        // As Framer does: a frame begins seldom, and its numbers are looked up in that cycle.
        let message = size.pair(rng);
        let sends = !begun && waiting[message] && rng.random_bool(willing / 10.0);
        let takes = !begun && !sends && rng.random_bool(willing);
        bench.set("control_frame_ready", takes);
        bench.set("lookup_begins", sends);
        bench.eval();
        let words = bench.get_wide::<1>("control_frame");
        let [offered, code, misses] = unpack(&words, [16, 8, 1]);
        let valid = bench.is("control_frame_valid");
        let lookup = match (sends, takes && valid) {
            (true, _) => message,
            (_, true) => offered as usize,
            _ => size.pair(rng),
        };
        bench.set("lookup_pair", lookup as u64);
        bench.set("lookup_begins", sends || (takes && valid));
        bench.eval();
        gathered_pair = bench.get("gathered_pair") as usize;

        if let Some((pair, numbers, failed)) = looked_up {
            let found = SinkNumbers {
                accepted: bench.get("lookup_acknowledge") as u32,
                freed: bench.get("lookup_credit") as u32,
                refused: bench.get("lookup_refused") as u16,
            };
            assert_eq!(found, numbers, "pair {pair}, cycle {cycle}");
            assert_eq!(bench.is("lookup_failed"), failed, "pair {pair}, {cycle}");
        }
        let failed = connected[lookup] && !model.is_sound(lookup as u16);
        looked_up = Some((lookup, model.numbers(lookup as u16), failed));
        let frame_type = FrameType::from_code(code as u8);
        if valid && offer.is_none() {
            offer = model.offer(offered as u16);
            let offers = offer.map(|owed| (owed.frame_type, owed.misses));
            let found = frame_type.map(|frame_type| (frame_type, misses != 0));
            assert_eq!(found, offers, "pair {offered}, cycle {cycle}");
        }
        begun = sends || (valid && takes);
        let on_offer = offer.filter(|_| valid);
        // An offer ends if a message of its pair carries the same.
        let ends =
            sends && message == offered as usize && on_offer.is_some_and(|owed| owed.only_numbers);
        if ends {
            (steady, offer) = (Steady::default(), None);
        } else if steady
            .watch("control_frame", valid, takes, &words)
            .is_some()
        {
            let superfluous =
                on_offer.is_some_and(|owed| owed.only_numbers) && !model.has_news(offered as u16);
            assert!(!superfluous, "a superfluous frame, cycle {cycle}");
            offer = None;
        }
        if begun {
            model.carried(lookup as u16);
            waiting[lookup] &= !sends;
        }

        let mut moves = false;
        if let Some((index, accepted, freed, refused)) = update
            && bench.is("sink_update_ready")
        {
            let pair = index as u16;
            let counts = model.is_sound(pair);
            moves = counts;
            model.update(&Update {
                pair,
                accepted,
                freed,
                refused,
            });
            if counts {
                let seen = ["pair", "accepted", "freed"]
                    .map(|name| bench.get(&format!("monitor_sink_{name}")));
                let now = model.numbers(pair);
                let now = [index as u64, now.accepted.into(), now.freed.into()];
                assert_eq!(seen, now, "cycle {cycle}");
            }
            update = None;
        }
        if let Some((index, reason)) = mark
            && bench.is("mark_ready")
        {
            model.mark(index as u16, reason);
            mark = None;
        }
        if let Some((index, status)) = fault
            && bench.is("fault_ready")
        {
            model.fail(index as u16, status.code());
            fault = None;
        }
        // A wire that stopped left the frame of a pair on offer for ever, and `PairClear` undone.
        assert!(
            control.is_none() || cycle < control_since + 7,
            "a control request waits for the wire, cycle {cycle}"
        );
        if let Some((operation, index, setup)) = control
            && bench.is("control_ready")
        {
            if [Operation::PairSet, Operation::PairClear].contains(&operation) {
                // A frame of the pair that is on offer is withdrawn.
                if offered as usize == index {
                    (steady, offer) = (Steady::default(), None);
                }
                let is_set = operation == Operation::PairSet;
                moves = is_set;
                if is_set {
                    let zeros = ["pair", "accepted", "freed"]
                        .map(|name| bench.get(&format!("monitor_sink_{name}")));
                    assert_eq!(zeros, [index as u64, 0, 0], "cycle {cycle}");
                }
                model.set(index as u16, is_set);
                connected[index] = is_set;
                granted[index] = if is_set {
                    setup.local_credits.into()
                } else {
                    0
                };
                waiting[index] = false;
            }
            control = None;
        }
        assert_eq!(bench.is("monitor_sink_valid"), moves, "cycle {cycle}");
        bench.step();
        idle = if talking { 0 } else { idle + 1 };
        if idle > 2000 {
            break;
        }
    }
    assert_eq!(offer, None, "a frame is still on offer");
    for pair in 0..size.config.pairs as u16 {
        assert_eq!(
            model.due(pair),
            None,
            "the peer of pair {pair} waits for it"
        );
    }
}

#[test]
fn peers_learn_what_has_changed_and_lookups_are_exact() {
    for_sizes("acknowledge", 12, |size, rng| {
        updates(size, rng, Break::None);
    });
}

/// A pair whose message waits for its frame, and nothing else.
struct Alone {
    /// The input that says so: a message of the pair waits, or another one.
    waits: &'static str,
    bench: Bench,
    cycle: u64,
}

impl Alone {
    const PAIR: usize = 1;
    const CREDITS: u8 = 8;
    /// Credits that wait with a number.
    const WAITING: u8 = 3;

    fn new(delay: u16, waits: &'static str) -> Self {
        let mut bench = Bench::open("acknowledge_tiny");
        let setup = PairSetup {
            local_credits: Self::CREDITS,
            acknowledge_delay: delay,
            acknowledge_credits: Self::WAITING,
            ..PairSetup::default()
        };
        control(
            &mut bench,
            Operation::PairSet,
            Self::PAIR,
            &setup.to_words(),
        );
        bench.set("lookup_pair", Self::PAIR as u64);
        bench.set(waits, true);
        Self {
            waits,
            bench,
            cycle: 0,
        }
    }

    /// Gives a pair other times.
    fn set_times(&mut self, pair: usize, acknowledge_delay: u16, acknowledge_credits: u8) {
        let setup = PairSetup {
            acknowledge_delay,
            acknowledge_credits,
            ..PairSetup::default()
        };
        let words = setup.to_words();
        control(&mut self.bench, Operation::PairTimes, pair, &words);
    }

    /// A message becomes safe, and its envelope free.
    fn update(&mut self) {
        set_update(&mut self.bench, Some((Self::PAIR, true, true, false)));
        self.step_until(20, "sink_update_ready");
        set_update(&mut self.bench, None);
    }

    /// Steps until a pin is high, that cycle included, and says whether it was within so many cycles.
    fn step_until(&mut self, cycles: u64, pin: &str) -> bool {
        (0..cycles).any(|_| {
            self.bench.eval();
            let high = self.bench.is(pin);
            self.bench.step();
            self.cycle += 1;
            high
        })
    }

    /// Whether a control frame is offered within so many cycles.
    fn tells(&mut self, cycles: u64) -> bool {
        self.step_until(cycles, "control_frame_valid")
    }

    /// A frame of the pair begins: a message's, or the control frame on offer.
    fn begins(&mut self, control: bool) {
        self.bench.set("lookup_begins", true);
        self.bench.set("control_frame_ready", control);
        self.tells(1);
        self.bench.set("lookup_begins", false);
        self.bench.set("control_frame_ready", false);
    }
}

/// What is told alone, and when.
fn an_acknowledgement_that_waits(_: &mut ChaCha8Rng) {
    for waits in ["gathered", "wire_busy"] {
        it_waits(waits);
    }
}

fn it_waits(waits: &'static str) {
    const DELAY: u64 = 200;
    // No message comes by: the delay passes.
    let mut pair = Alone::new(DELAY as u16, waits);
    pair.update();
    assert!(!pair.tells(DELAY - 20), "it doesn't wait for the message");
    assert!(pair.tells(40), "it waits for longer than the delay");
    pair.begins(true);
    // A message carries it.
    pair.update();
    assert!(!pair.tells(DELAY / 2));
    pair.begins(false);
    assert!(
        !pair.tells(2 * DELAY),
        "it goes although a message carried it"
    );
    // The message doesn't come any more.
    pair.update();
    assert!(!pair.tells(DELAY / 2));
    pair.bench.set(pair.waits, false);
    assert!(pair.tells(20), "it waits for a message that there isn't");
    // A message goes out while the control frame is on offer.
    pair.begins(false);
    assert!(
        !pair.tells(2 * DELAY),
        "it goes although a message overtook it"
    );
    pair.bench.set(pair.waits, true);
    // As many credits wait as the pair was set for.
    let waits_for = |pair: &mut Alone, credits: u8| {
        for _ in 1..credits {
            pair.update();
            assert!(!pair.tells(10), "fewer than {credits} credits wait");
        }
        pair.update();
        assert!(pair.tells(20), "{credits} credits wait");
        pair.begins(true);
    };
    waits_for(&mut pair, Alone::WAITING);
    // The delay begins with the first that waits, not anew with each.
    pair.update();
    assert!(!pair.tells(DELAY / 2));
    pair.update();
    assert!(!pair.tells(DELAY / 4));
    assert!(pair.tells(DELAY / 4 + 20), "each message prolongs it");
    pair.begins(true);
    // Another pair gets other times, and then this one.
    pair.set_times(Alone::PAIR + 1, 1, 1);
    waits_for(&mut pair, Alone::WAITING);
    pair.set_times(Alone::PAIR, 2 * DELAY as u16, 5);
    waits_for(&mut pair, 5);
    pair.update();
    assert!(!pair.tells(2 * DELAY - 20), "it goes by its old delay");
    assert!(pair.tells(40), "it waits for longer than its new delay");
    pair.begins(true);
    // It doesn't wait.
    for (delay, credits) in [(DELAY as u16, 0), (0, 5)] {
        pair.set_times(Alone::PAIR, delay, credits);
        pair.update();
        assert!(pair.tells(20), "it waits");
        pair.begins(true);
    }
    // The peer asks.
    pair.bench.set("mark", Alone::PAIR as u64);
    pair.bench.set("mark_valid", true);
    pair.step_until(20, "mark_ready");
    pair.bench.set("mark_valid", false);
    assert!(pair.tells(20), "the peer is not answered");
    pair.begins(true);
    assert!(!pair.tells(2 * DELAY), "it goes on telling");
}

#[test]
fn an_acknowledgement_waits_for_a_message_that_can_carry_it_but_not_for_long() {
    hdl_tests::for_seeds(1, an_acknowledgement_that_waits);
}

#[test]
fn what_is_broken_is_noticed() {
    breaks("acknowledge_tiny", 20, |rng| {
        an_acknowledgement_that_waits(rng);
        let size = Size::new(&config::TINY, "acknowledge", rng);
        updates(&size, rng, Break::None);
    });
}

#[test]
#[ignore = "mutants: `cargo xtask mutants`, `cargo xtask test --long`"]
fn most_mutants_are_noticed() {
    mutants("acknowledge_tiny", 20, |rng| {
        an_acknowledgement_that_waits(rng);
        let size = Size::new(&config::TINY, "acknowledge", rng);
        updates(&size, rng, Break::None);
    });
}

#[test]
fn a_broken_model_is_noticed() {
    for broken in [
        Break::FailureUntold,
        Break::GapUntold,
        Break::CloseToldAsFailure,
    ] {
        let noticed = is_caught("acknowledge_tiny", 10, |rng| {
            let size = Size::new(&config::TINY, "acknowledge", rng);
            updates(&size, rng, broken);
        });
        assert!(noticed, "{broken:?}");
    }
}
