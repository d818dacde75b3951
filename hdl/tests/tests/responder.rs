//! `link::Responder`, Verilated, between a Delivery, a SendQueues and a Gather of the test's: each get is answered after it has been asked, by one job
//! that says whether its peer is shut out; pairs take turns, and so do sends; nobody waits for the wire; and a pair that is set or cleared forgets.

use std::collections::{BTreeMap, VecDeque};

use abi::control::{Operation, PairSetup};
use hdl::config::{self, JOBS};
use hdl_tests::broken::{breaks, mutants};
use hdl_tests::fields::{Steady, pack, set_control, unpack};
use hdl_tests::{Bench, Size, for_sizes, rate};
use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;

/// Gets that a peer which keeps to the rules has without an answer, and places that a pair has.
const PLACES: u32 = 16;
/// Cycles after which SendQueues gives the job that it has seen room for, at most.
const SEND_TAKES: u64 = 4;
/// Cycles within which a get is taken, whatever the wire does.
const TAKEN_WITHIN: u64 = 40;

/// A get, as it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Get {
    pair: u16,
    key: u64,
    offset: u64,
    length: u16,
    number: u32,
}

impl Get {
    fn words(&self) -> Vec<u64> {
        pack(&[
            (self.pair.into(), 16),
            (self.key, 64),
            (self.offset, 64),
            (self.length.into(), 16),
            (self.number.into(), 32),
        ])
    }
}

/// Widths of a job's fields, in order.
const JOB: [usize; 25] = [
    16, 8, 16, 16, 64, 64, 1, 1, 1, 1, 1, 64, 64, 64, 32, 11, 64, 32, 11, 64, 32, 11, 1, 32, 1,
];

/// The job of a get's answer.
fn answer(get: &Get, refused: bool) -> Vec<u64> {
    let mut fields = [0; JOB.len()];
    fields[0] = get.pair.into();
    fields[3] = get.length.into();
    fields[4] = get.key;
    fields[5] = get.offset;
    fields[9] = 1;
    fields[23] = get.number.into();
    fields[24] = refused.into();
    let fields: Vec<_> = fields.into_iter().zip(JOB).collect();
    pack(&fields)
}

/// A peer that asks, and what of it waits here.
#[derive(Clone, Default)]
struct Peer {
    /// Number of its next get.
    next: u32,
    /// Gets that were asked for and wait, by their places.
    waits: BTreeMap<u32, Get>,
    /// Gets that came again while it wasn't known whether the one before still waits, by their numbers: they may be answered twice.
    twice: Vec<u32>,
    /// Gets that were answered, of which some come again.
    answered: Vec<Get>,
    /// Answers of others since it could have had its turn.
    passed: usize,
    /// It ends: its gets are forgotten with `dropped`.
    forgotten: bool,
}

/// How often things happen.
struct Rates {
    asking: f64,
    sending: f64,
    willing: f64,
    refusing: f64,
    controlling: f64,
    /// Cycles that Gather takes for a job at most.
    slowest: u64,
    /// The wire takes nothing between these cycles.
    stopped: std::ops::Range<u64>,
}

fn traffic(size: &Size, rng: &mut ChaCha8Rng, active: u64) {
    let mut bench = Bench::open(&size.model);
    let mut peers = vec![Peer::default(); size.config.pairs];
    let began = rng.random_range(0..active);
    let rates = Rates {
        asking: rate(rng),
        sending: rate(rng),
        willing: rate(rng).max(0.05),
        refusing: [0.0, 0.1, 1.0][rng.random_range(0..3)],
        controlling: [0.0, 0.005][rng.random_range(0..2)],
        slowest: [5, 40, 200][rng.random_range(0..3)],
        stopped: began..began + [0, 1000][rng.random_range(0..2)],
    };
    // A peer that asks for more than it may.
    let liar = size
        .pairs
        .choose(rng)
        .copied()
        .filter(|_| rng.random_bool(0.3));
    let mut asked: Option<(Get, u64)> = None;
    let mut send: Option<(u64, Vec<u64>)> = None;
    let mut sampled = 0;
    // Cycles in which the jobs in Gather leave.
    let mut gathers: VecDeque<u64> = VecDeque::new();
    let mut known_at = 0;
    let mut undecided: VecDeque<(u64, u16, bool)> = VecDeque::new();
    let mut denied: VecDeque<u16> = VecDeque::new();
    let mut questions: BTreeMap<(u16, u32), bool> = BTreeMap::new();
    let mut control: Option<(Operation, usize)> = None;
    let mut dropped = false;
    let mut held_up = 0;
    let (mut query, mut refused) = (Steady::default(), Steady::default());
    let (mut answers, mut sends, mut room_cycles) = (0u64, 0u64, 0u64);
    let mut quiet = 0;

    while !bench.is("initialized") {
        bench.step();
    }
    for cycle in 0u64.. {
        let talking = cycle < active;
        // A peer asks: as a rule for something new, at times for what it has no answer of, or whose answer was lost.
        if asked.is_none() && talking && rng.random_bool(rates.asking) {
            let pair = size.pair(rng);
            let peer = &mut peers[pair];
            let ends = control.is_some_and(|(_, ending)| ending == pair);
            let oldest = peer.waits.values().map(|get| get.number).min();
            let full = oldest.is_some_and(|oldest| peer.next - oldest >= PLACES);
            let again = rng.random_bool(0.1);
            let get = if again && !peer.waits.is_empty() {
                let waiting: Vec<_> = peer.waits.values().copied().collect();
                waiting.choose(rng).copied()
            } else if again && !peer.answered.is_empty() {
                // One that is so old that its place is another's isn't sent again.
                let get = peer.answered[rng.random_range(0..peer.answered.len())];
                (peer.next - get.number < PLACES
                    && oldest.is_none_or(|o| o <= get.number || get.number + PLACES > peer.next))
                .then_some(get)
                .filter(|get| {
                    peer.waits
                        .get(&(get.number % PLACES))
                        .is_none_or(|o| o.number == get.number)
                })
            } else if !full || liar == Some(pair) {
                let number = peer.next;
                peer.next += 1;
                Some(Get {
                    pair: pair as u16,
                    key: rng.random(),
                    offset: rng.random(),
                    length: [0, 1, 8, rng.random_range(0..=1024)][rng.random_range(0..4)],
                    number,
                })
            } else {
                None
            };
            asked = get.filter(|_| !ends).map(|get| (get, cycle));
        }
        bench.set("asked_valid", asked.is_some());
        if let Some((get, _)) = &asked {
            bench.set_wide("asked", &get.words());
        }

        // SendQueues gives what it has seen room for.
        let gives = send.as_ref().is_some_and(|(due, _)| *due == cycle);
        let given = send.take_if(|_| gives).map(|(_, job)| job);
        bench.set("sends_job_valid", given.is_some());
        let noise: Vec<u64> = (0..11).map(|_| rng.random()).collect();
        bench.set_wide("sends_job", given.as_ref().unwrap_or(&noise));

        // Gather decides, and its jobs leave in order.
        let leaves = !rates.stopped.contains(&cycle);
        if leaves && gathers.front().is_some_and(|due| *due <= cycle) {
            gathers.pop_front();
        }
        let room = gathers.len() < JOBS && cycle >= known_at;
        // What it says of its room is two cycles old.
        bench.set("gather_room", room);
        room_cycles += u64::from(room);
        let decides = undecided.front().filter(|(due, ..)| *due <= cycle).copied();
        if decides.is_some() {
            undecided.pop_front();
        }
        bench.set("answer_decided_valid", decides.is_some());
        let (_, of, denies) = decides.unwrap_or((0, rng.random(), rng.random()));
        bench.set("answer_decided", of);
        bench.set("answer_denied", denies);
        if decides.is_some() && denies {
            denied.push_back(of);
        }

        let shut = rng.random_bool(rates.refusing);
        bench.set("shut_query_ready", rng.random_bool(rates.willing));
        bench.set("shut_out", shut);
        bench.set("refused_ready", rng.random_bool(rates.willing));

        // The firmware sets and clears pairs; their peers ask for nothing meanwhile.
        if control.is_none() && talking && rng.random_bool(rates.controlling) {
            let pair = size.pair(rng);
            if asked.is_none_or(|(get, _)| usize::from(get.pair) != pair) {
                let operation = [Operation::PairSet, Operation::PairClear][rng.random_range(0..2)];
                control = Some((operation, pair));
                dropped = false;
            }
        }
        bench.set("control_valid", control.is_some());
        if let Some((operation, pair)) = control {
            set_control(
                &mut bench,
                operation,
                pair as u16,
                &PairSetup::default().to_words(),
            );
        }
        bench.eval();

        // A question is about a get that is to be answered and has bytes.
        let [valid, ready] = ["shut_query_valid", "shut_query_ready"].map(|pin| bench.is(pin));
        let words = bench.get_wide::<3>("shut_query");
        if let Some(words) = query.watch("shut_query", valid, ready, &words) {
            let [pair, _, _, length, number] = unpack(&words, [16, 64, 64, 16, 32]);
            assert!(
                length > 0,
                "one without bytes is asked about, cycle {cycle}"
            );
            questions.insert((pair as u16, number as u32), shut);
        }

        if bench.is("dropped_valid") {
            let (_, pair) = control.expect("a pair ends");
            assert_eq!(bench.get("dropped"), pair as u64, "cycle {cycle}");
            assert!(!dropped, "cycle {cycle}");
            dropped = true;
            peers[pair].forgotten = true;
        }

        // A job: a send's, in the cycle in which it comes, or an answer.
        let job = bench.is("job_valid");
        assert!(job || given.is_none(), "a send is lost, cycle {cycle}");
        if job {
            let words = bench.get_wide::<11>("job");
            match given {
                Some(send) => {
                    assert_eq!(words[..], send[..], "cycle {cycle}");
                    sends += 1;
                }
                None => {
                    let fields = unpack(&words, JOB);
                    let pair = fields[0] as usize;
                    let number = fields[23] as u32;
                    let peer = &mut peers[pair];
                    let waited = peer.waits.get(&(number % PLACES));
                    let waited = waited.filter(|get| get.number == number).copied();
                    let get = match waited {
                        Some(get) => {
                            peer.waits.remove(&(number % PLACES));
                            get
                        }
                        None => {
                            let at = peer.twice.iter().position(|of| *of == number);
                            let at = at.expect("only what is asked for is answered");
                            peer.twice.swap_remove(at);
                            let old = peer.answered.iter().find(|get| get.number == number);
                            *old.expect("it has been answered")
                        }
                    };
                    let refused = questions.remove(&(get.pair, number));
                    assert_eq!(refused.is_some(), get.length > 0, "{get:?}, cycle {cycle}");
                    let refused = refused.unwrap_or(false);
                    assert_eq!(
                        words[..],
                        answer(&get, refused)[..],
                        "{get:?}, cycle {cycle}"
                    );
                    let is_new = peer.answered.iter().all(|of| of.number != number);
                    if is_new {
                        peer.answered.push(get);
                    }
                    if peer.answered.len() > PLACES as usize {
                        peer.answered.remove(0);
                    }
                    answers += 1;
                    for (other, peer) in peers.iter_mut().enumerate() {
                        let waits = !peer.waits.is_empty() && other != pair;
                        peer.passed = if waits { peer.passed + 1 } else { 0 };
                        // One turn of each other, and what was on offer.
                        assert!(
                            peer.passed <= size.pairs.len() + 1,
                            "pair {other} is passed over, cycle {cycle}"
                        );
                    }
                    let denies = refused || rng.random_bool(rates.refusing);
                    let after = undecided.back().map_or(0, |(due, ..)| due + 1);
                    let due = after.max(cycle + rng.random_range(3..3 + rates.slowest));
                    undecided.push_back((due, get.pair, denies));
                }
            }
            let after = gathers.back().map_or(0, |due| due + 1);
            let due = after.max(cycle + rng.random_range(5..5 + rates.slowest));
            gathers.push_back(due);
            assert!(gathers.len() <= JOBS, "a job without room, cycle {cycle}");
            known_at = cycle + 2;
        }
        // A pair that ends waits for what is undecided of it, and no send waits for that.
        let waits = dropped && room && !bench.is("job_room");
        held_up = if waits { held_up + 1 } else { 0 };
        assert!(
            held_up < 12,
            "sends wait for the end of a pair, cycle {cycle}"
        );
        // SendQueues looks for room again when Gather knows of what it gave.
        if bench.is("job_room")
            && send.is_none()
            && cycle >= sampled
            && talking
            && rng.random_bool(rates.sending)
        {
            let due = cycle + rng.random_range(SEND_TAKES - 1..=SEND_TAKES);
            sampled = due + 2;
            let mut fields: Vec<(u64, usize)> = JOB
                .iter()
                .map(|width| (rng.random::<u64>() & (u64::MAX >> (64 - width)), *width))
                .collect();
            fields[9].0 = 0;
            let words = pack(&fields);
            send = Some((due, words));
        }

        let [valid, ready] = ["refused_valid", "refused_ready"].map(|pin| bench.is(pin));
        let words = bench.get_wide::<1>("refused");
        if let Some(words) = refused.watch("refused", valid, ready, &words) {
            assert_eq!(Some(words[0] as u16), denied.pop_front(), "cycle {cycle}");
        }

        if bench.is("asked_ready")
            && let Some((get, _)) = asked.take()
        {
            let peer = &mut peers[usize::from(get.pair)];
            if let Some(old) = peer.waits.insert(get.number % PLACES, get) {
                // The one before may have been taken out already, to be given next.
                peer.twice.push(old.number);
                if peer.answered.iter().all(|of| of.number != old.number) {
                    peer.answered.push(old);
                }
            }
        }
        if let Some((get, since)) = &asked {
            assert!(cycle < since + TAKEN_WITHIN, "{get:?} waits, cycle {cycle}");
        }

        // What waited of a pair that ends is forgotten, and it ends when Gather has decided all.
        for peer in &mut peers {
            if std::mem::take(&mut peer.forgotten) {
                *peer = Peer {
                    next: peer.next + PLACES,
                    ..Peer::default()
                };
            }
        }
        if bench.is("control_ready") {
            let (_, pair) = control.take().expect("only what is asked for is done");
            assert!(dropped, "pair {pair} isn't forgotten, cycle {cycle}");
            dropped = false;
            questions.retain(|(of, _), _| usize::from(*of) != pair);
            let open = undecided.iter().any(|(_, of, _)| usize::from(*of) == pair);
            assert!(!open, "an answer of {pair} is undecided, cycle {cycle}");
        }
        bench.step();

        let waits = peers.iter().any(|peer| !peer.waits.is_empty());
        let idle = !talking
            && asked.is_none()
            && control.is_none()
            && !waits
            && undecided.is_empty()
            && denied.is_empty();
        quiet = if idle { quiet + 1 } else { 0 };
        if quiet > 200 {
            break;
        }
        assert!(
            cycle < active + 60_000,
            "the block hangs: {asked:?} {control:?}"
        );
    }
    println!("{answers} answers, {sends} sends, room in {room_cycles} cycles");
    // While there is room sends have most of it: an answer keeps it for seven cycles of at least fifteen.
    let share = rates.sending > 0.5 && room_cycles > 2000;
    assert!(
        !share || sends * 40 > room_cycles,
        "sends starve: {sends} in {room_cycles} cycles"
    );
    assert!(answers > 0 || rates.asking < 0.1, "nothing is answered");
}

#[test]
fn each_get_is_answered_and_nobody_waits_for_the_wire() {
    for_sizes("responder", 20, |size, rng| traffic(size, rng, 6000));
}

/// A peer that asks in every cycle, and one that asks once: how soon it is answered.
fn flood(size: &Size, rng: &mut ChaCha8Rng) {
    let mut bench = Bench::open(&size.model);
    while !bench.is("initialized") {
        bench.step();
    }
    for pin in ["gather_room", "shut_query_ready", "refused_ready"] {
        bench.set(pin, true);
    }
    let get = |pair: usize, number: u32| Get {
        pair: pair as u16,
        key: 1,
        offset: 2,
        length: 8,
        number,
    };
    let (floods, asks) = (size.pairs[0], size.pairs[1]);
    let (mut number, mut answered, mut due) = (rng.random_range(0..1000), 0, VecDeque::new());
    for cycle in 0..400u64 {
        let next = match (100..=110).contains(&cycle) {
            true => get(asks, 7),
            false => get(floods, number),
        };
        bench.set("asked_valid", true);
        bench.set_wide("asked", &next.words());
        let decides = due.front() == Some(&cycle);
        bench.set("answer_decided_valid", decides);
        if decides {
            due.pop_front();
        }
        bench.eval();
        if bench.is("asked_ready") {
            number += 1;
        }
        if bench.is("job_valid") {
            due.push_back(cycle + 5);
            let fields = unpack(&bench.get_wide::<11>("job"), JOB);
            answered += usize::from(fields[0] == asks as u64);
        }
        bench.step();
    }
    assert!(answered > 0, "the peer that asks once waits for the other");
}

#[test]
fn a_peer_that_floods_delays_only_itself() {
    for_sizes("responder", 2, flood);
}

#[test]
fn each_broken_contract_is_noticed() {
    breaks("responder_tiny", 12, |rng| {
        let size = Size::new(&config::TINY, "responder", rng);
        traffic(&size, rng, 6000);
        flood(&size, rng);
    });
}

#[test]
#[ignore = "mutants: `cargo xtask mutants`, `cargo xtask test --long`"]
fn most_mutants_are_noticed() {
    mutants("responder_tiny", 6, |rng| {
        let size = Size::new(&config::TINY, "responder", rng);
        traffic(&size, rng, 6000);
        flood(&size, rng);
    });
}
