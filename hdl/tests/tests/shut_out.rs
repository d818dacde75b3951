//! Who is refused too often is denied without a look-up for a while, and nobody else waits: `protect::ShutOut` against the model's.

use std::cell::Cell;
use std::collections::VecDeque;

use abi::control::{Operation, RefusalReason, ShutOutReport, ShutOutSetup};
use abi::times::SHUT_OUT_TICK;
use card_model::ShutOuts;
use hdl::config::TINY;
use hdl_tests::broken::{breaks, mutants};
use hdl_tests::fields::pack;
use hdl_tests::{Bench, for_seeds};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

/// Cycles from a question of a peer to the answer, or to Regions, at most; and until a refusal is counted.
const SOON: u64 = 16;
/// Cycles by which a time may be longer: a round over the pairs is under way, beside all else.
const ROUND: u64 = 300;
/// Cycles in which Regions answers.
const LATENCY: u64 = 5;
/// Cycles between two accesses of peers that Regions refuses, at least.
const APART: u64 = 6;

/// A question that isn't answered.
#[derive(Clone, Copy)]
struct Question {
    remote: bool,
    pair: u16,
    offset: u64,
    since: u64,
    /// Regions has it since then, and will refuse it.
    passed: Option<(u64, bool)>,
}

/// A get that is asked about.
#[derive(Clone, Copy)]
struct Get {
    pair: u16,
    offset: u64,
    since: u64,
}

/// The model twice: as if all refusals that were told were counted, and as if those of the last cycles weren't.
struct Models {
    all: ShutOuts,
    counted: ShutOuts,
    /// Those of the last cycles: when, and of which pair.
    recent: VecDeque<(u64, u16)>,
}

impl Models {
    fn new(pairs: u16) -> Self {
        Models {
            all: ShutOuts::new(pairs.into()),
            counted: ShutOuts::new(pairs.into()),
            recent: VecDeque::new(),
        }
    }

    fn refused(&mut self, pair: u16, now: u64) {
        self.all.refused(pair, now);
        self.recent.push_back((now, pair));
    }

    /// What was told before this cycle is counted.
    fn count_until(&mut self, cycle: u64) {
        while let Some((told, pair)) = self.recent.pop_front_if(|(told, _)| *told < cycle) {
            self.counted.refused(pair, told);
        }
    }

    /// Nothing is counted in this cycle.
    fn wait(&mut self) {
        for (told, _) in &mut self.recent {
            *told += 1;
        }
    }

    /// A change, before which all that was told is counted, also what seemed to wait.
    fn change(&mut self, now: u64, change: impl Fn(&mut ShutOuts)) {
        for (told, pair) in self.recent.drain(..) {
            self.counted.refused(pair, told.min(now));
        }
        change(&mut self.all);
        change(&mut self.counted);
    }

    /// It may be denied: its time may be a round longer.
    fn may_be_out(&self, pair: u16, now: u64) -> bool {
        self.all.denies(pair, now) || self.is_still_out(pair, now)
    }

    fn is_still_out(&self, pair: u16, now: u64) -> bool {
        self.all.denies(pair, now.saturating_sub(ROUND))
    }

    /// It has to be denied: its time may be a tick shorter, and a round under way.
    fn is_surely_out(&self, pair: u16, now: u64) -> bool {
        let end = now + u64::from(SHUT_OUT_TICK) + ROUND;
        self.counted.denies(pair, end)
    }
}

fn words(question: &Question) -> Vec<u64> {
    pack(&[
        (1, 8),
        (2, 32),
        (3, 8),
        (question.offset, 64),
        (64, 64),
        (question.remote.into(), 1),
        (question.pair.into(), 16),
        (5, 64),
    ])
}

fn refused(pair: u16, reason: RefusalReason, region: u32, offset: u64) -> Vec<u64> {
    pack(&[
        (pair.into(), 16),
        (reason.code().into(), 8),
        (region.into(), 32),
        (offset, 64),
    ])
}

/// The pairs whose peers ask often: the ends of the table among them.
const OFTEN: [u16; 3] = [0, 1, TINY.pairs as u16 - 1];

/// One of them, or at times the first beyond the table, whose low bits name one of them.
fn some_pair(rng: &mut ChaCha8Rng) -> u16 {
    match rng.random_range(0..24) {
        0 => TINY.pairs as u16 + rng.random_range(0..2),
        _ => OFTEN[rng.random_range(0..3)],
    }
}

/// Random questions of processes and of peers, few of whom are often refused, and their gets, while limits are chosen and read. How often two refusals
/// were told while one question waited.
fn denies(rng: &mut ChaCha8Rng) -> u32 {
    let mut bench = Bench::open("shut_out");
    let pairs = TINY.pairs as u16;
    for _ in 0..pairs + 2 {
        bench.step();
    }
    assert!(bench.is("initialized"));
    let tick = u64::from(SHUT_OUT_TICK);
    let mut model = Models::new(pairs);
    let (mut gets, mut gets_denied, mut two_wait) = (0, 0, 0);
    let mut get: Option<Get> = None;
    // Gets that Regions will refuse: when, whose and where.
    let mut refuses_gets: VecDeque<(u64, u16, u64)> = VecDeque::new();
    let gets_often = [0.02, 0.2, 1.0][rng.random_range(0..3)];
    // When a refusal was told last, and how many while a question waits for Regions.
    let (mut told_last, mut told_meanwhile) = (0, 0);
    // Regions is slow to take questions.
    let mut slow = false;
    let (mut denied, mut allowed_again, mut reports, mut locals) = (0, 0, 0, 0);
    let mut question: Option<Question> = None;
    // What Regions tells in this cycle of a refusal in the one before.
    let mut tells: Option<(u16, u64)> = None;
    let mut control: Option<(Operation, u16, ShutOutSetup, u64)> = None;
    let (mut counted, mut free) = (0, 0);
    // A question was denied in the cycle before, which is answered in this one.
    let mut denied_before = false;
    let mut was_out = vec![false; pairs.into()];
    for now in 0..24 * tick {
        if control.is_none() && rng.random_bool(0.002) {
            let index = match rng.random_bool(0.8) {
                true => OFTEN[rng.random_range(0..3)],
                false => rng.random_range(0..pairs + 3),
            };
            let setup = ShutOutSetup {
                limit: [0, 1, 2, 3, 5][rng.random_range(0..5)],
                ticks: [0, 1, 2, 3][rng.random_range(0..4)],
                ..ShutOutSetup::default()
            };
            let operation = match rng.random_range(0..8) {
                0 => Operation::PairSet,
                1..4 => Operation::ShutOutSet,
                _ => Operation::ShutOutRead,
            };
            control = Some((operation, index, setup, now));
        }
        bench.set("control_valid", control.is_some());
        if let Some((operation, index, setup, _)) = control {
            let [word] = setup.to_words();
            let fields = [
                (operation.code().into(), 8),
                (index.into(), 16),
                (word, 64),
                (0, 64),
                (0, 64),
                (0, 64),
                (0, 64),
            ];
            bench.set_wide("control", &pack(&fields));
        }
        if get.is_none() && rng.random_bool(gets_often) {
            get = Some(Get {
                pair: some_pair(rng),
                offset: rng.random(),
                since: now,
            });
        }
        bench.set("get_valid", get.is_some());
        if let Some(get) = &get {
            let fields = [
                (get.pair.into(), 16),
                (rng.random(), 64),
                (get.offset, 64),
                (64, 16),
                (rng.random::<u32>().into(), 32),
            ];
            bench.set_wide("get", &pack(&fields));
        }
        if now % 256 == 0 {
            slow = rng.random_bool(0.3);
        }
        // The next question comes two cycles after the answer.
        if question.is_none() && !denied_before && now > free + 1 && rng.random_bool(0.1) {
            let remote = rng.random_bool(0.7);
            question = Some(Question {
                remote,
                pair: some_pair(rng),
                offset: rng.random(),
                since: now,
                passed: None,
            });
        }
        let asks = question.filter(|question| question.passed.is_none());
        bench.set("query_valid", asks.is_some());
        if let Some(asks) = &asks {
            bench.set_wide("query", &words(asks));
        }
        let takes = rng.random_bool(if slow { 0.05 } else { 0.7 });
        bench.set("passed_ready", takes);
        let answers = question.and_then(|question| question.passed);
        let answers = answers.filter(|(since, _)| since + LATENCY == now);
        bench.set("answer_valid", answers.is_some());
        // Without an answer, what stands there says nothing.
        let right = answers.map_or(rng.random(), |(_, refuses)| !refuses);
        let place: u64 = rng.random();
        bench.set_wide("answer", &pack(&[(right.into(), 1), (place, 64)]));
        // Regions looks at one access of a peer at a time.
        let looks = question.is_some_and(|question| question.remote && question.passed.is_some());
        let due = refuses_gets.front().is_some_and(|(due, ..)| *due <= now);
        if due
            && tells.is_none()
            && !looks
            && answers.is_none()
            && told_last + APART <= now
            && told_meanwhile < 2
            && let Some((_, pair, offset)) = refuses_gets.pop_front()
        {
            tells = Some((pair, offset));
        }
        bench.set("refused_valid", tells.is_some());
        if let Some((pair, offset)) = tells {
            let words = refused(pair, RefusalReason::WrongTag, 7, offset);
            bench.set_wide("refused", &words);
        }
        bench.eval();

        let told = bench.is("peer_refused_valid");
        let found: [u64; 2] = bench.get_wide("peer_refused");
        let counts = tells.take();
        let mut wanted =
            counts.map(|(pair, offset)| refused(pair, RefusalReason::WrongTag, 7, offset));
        if counts.is_some() {
            counted = now;
            told_last = now;
            told_meanwhile += u32::from(asks.is_some());
            two_wait += u32::from(told_meanwhile == 2);
        }
        model.count_until(now.saturating_sub(SOON));
        let answered = bench.is("allowed_valid");
        let [permission, high] = bench.get_wide("allowed");
        let mut denies_now = false;
        if let Some((_, refuses)) = answers {
            let asked = question.take().expect("it is under way");
            assert!(answered, "an answer goes through in cycle {now}");
            assert_eq!(permission & 1 == 1, !refuses);
            assert_eq!(permission >> 1 | high << 63, place);
            tells = (refuses && asked.remote).then_some((asked.pair, asked.offset));
        } else if let Some(asked) = asks {
            let passes = bench.is("passed_valid");
            let taken = bench.is("query_ready");
            if !asked.remote {
                assert!(passes && taken == takes, "a process waits in cycle {now}");
                locals += 1;
            }
            let surely = model.is_surely_out(asked.pair, now);
            let still = model.is_still_out(asked.pair, now);
            let may_be = model.may_be_out(asked.pair, now);
            assert!(!answered, "an answer comes after its question");
            if taken {
                told_meanwhile = 0;
            }
            if taken && !passes {
                assert!(asked.remote && may_be, "denied in cycle {now}");
                assert_eq!(wanted, None, "cycle {now}: two are told at once");
                wanted = Some(refused(asked.pair, RefusalReason::ShutOut, 0, asked.offset));
                denied += 1;
                was_out[usize::from(asked.pair)] = true;
                question = None;
                denies_now = true;
            } else if passes {
                assert!(
                    !asked.remote || !surely,
                    "{} looked up in cycle {now}",
                    asked.pair
                );
                assert_eq!(bench.get_wide::<5>("passed").to_vec(), words(&asked));
                if taken {
                    assert!(takes);
                    let refuses = rng.random_bool(0.5);
                    let of_peer = asked.remote && !still;
                    let was_out = was_out.get_mut(usize::from(asked.pair));
                    if of_peer && was_out.is_some_and(std::mem::take) {
                        allowed_again += 1;
                    }
                    question = Some(Question {
                        passed: Some((now, refuses)),
                        ..asked
                    });
                }
            } else {
                assert!(!taken && now - asked.since < SOON, "nobody waits for long");
            }
            if passes && !taken {
                // Whoever waits behind it does so for Regions.
                get = get.map(|get| Get {
                    since: get.since + 1,
                    ..get
                });
                if let Some((_, _, _, since)) = &mut control {
                    *since += 1;
                }
                model.wait();
            }
        } else {
            assert_eq!(answered, denied_before, "cycle {now}");
            assert!(!answered || permission & 1 == 0, "cycle {now}");
            assert!(!bench.is("passed_valid"));
        }
        if let Some(asked) = get {
            if bench.is("get_ready") {
                if bench.is("get_denied") {
                    let may_be = model.may_be_out(asked.pair, now);
                    assert!(may_be, "a get is denied in cycle {now}");
                    assert_eq!(wanted, None, "cycle {now}: two are told at once");
                    wanted = Some(refused(asked.pair, RefusalReason::ShutOut, 0, asked.offset));
                    gets_denied += 1;
                } else {
                    let surely = model.is_surely_out(asked.pair, now);
                    assert!(!surely, "a get goes on in cycle {now}");
                    if rng.random_bool(0.5) && refuses_gets.len() < 4 {
                        let due = now + rng.random_range(8..20);
                        refuses_gets.push_back((due, asked.pair, asked.offset));
                    }
                    gets += 1;
                }
                get = None;
            } else {
                assert!(
                    now.saturating_sub(asked.since) < 2 * SOON,
                    "no get waits for long"
                );
            }
        }
        if answered {
            free = now;
        }
        denied_before = denies_now;
        assert_eq!(told, wanted.is_some(), "cycle {now}");
        if let Some(wanted) = wanted {
            assert_eq!(found.to_vec(), wanted, "cycle {now}");
        }

        if let Some((operation, index, setup, since)) = control {
            if bench.is("control_ready") {
                let result = bench.get("control_result");
                match operation {
                    Operation::PairSet => model.change(now, |model| model.connect(index)),
                    Operation::ShutOutSet => model.change(now, |model| model.set(index, setup)),
                    _ => {
                        let report = ShutOutReport::from_words(&[result]);
                        let of_model = model.all.report(index, now);
                        let early = model.counted.report(index, now + tick + ROUND).left;
                        let late = model.all.report(index, now.saturating_sub(ROUND)).left;
                        let between = early..=late;
                        assert!(between.contains(&report.left), "{report:?}, {between:?}");
                        let left = report.left;
                        // What has just been refused may not be counted yet.
                        if counted + SOON < now {
                            assert_eq!(report, ShutOutReport { left, ..of_model });
                        }
                        reports += u32::from(report.count > 0 || left > 0);
                    }
                }
                if operation != Operation::ShutOutRead {
                    assert_eq!(result, 0);
                    if let Some(was_out) = was_out.get_mut(usize::from(index)) {
                        *was_out = false;
                    }
                }
                control = None;
            } else {
                assert!(now.saturating_sub(since) < SOON * 8, "{operation} is done");
            }
        }
        // What was refused in the cycle before is counted from now on.
        if let Some((pair, _)) = counts {
            model.refused(pair, now);
        }
        bench.step();
    }
    assert!(denied > 5 && locals > 50, "{denied}, {locals}");
    assert!(gets > 20 && gets_denied > 0, "{gets}, {gets_denied}");
    assert!(allowed_again + reports > 0);
    two_wait
}

#[test]
fn who_is_refused_too_often_is_denied_for_a_while_and_nobody_else() {
    let two_wait = Cell::new(0);
    for_seeds(8, |rng| two_wait.set(two_wait.get() + denies(rng)));
    assert!(two_wait.get() > 5, "two refusals wait at times");
}

#[test]
fn each_broken_contract_is_noticed() {
    breaks("shut_out", 6, |rng| {
        denies(rng);
    });
}

#[test]
#[ignore = "mutants: `cargo xtask mutants`, `cargo xtask test --long`"]
fn most_mutants_are_noticed() {
    mutants("shut_out", 6, |rng| {
        denies(rng);
    });
}
