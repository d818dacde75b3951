//! `envelope::Resolve`: what may be written is written, everything else is dropped, and each job has its ending, in order.

use std::collections::VecDeque;

use abi::control::{RIGHT_LOCAL_WRITE, RIGHT_REMOTE_WRITE};
use abi::status::Status;
use hdl::config::TINY;
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::{Ending, Job, Sink, Source, Way, access};
use hdl_tests::broken::{breaks, mutants};
use hdl_tests::fields::pack;
use hdl_tests::{Bench, for_seeds, rate};

const PAIRS: usize = TINY.pairs;

/// What has to come of jobs.
#[derive(Default)]
struct Expected {
    queries: Vec<Vec<u64>>,
    writes: Vec<Vec<u64>>,
    written: Vec<Vec<u64>>,
    entries: Vec<Vec<u64>>,
    /// Words that have been taken of the wire, of slots, and given to memory when the entry of a job is there.
    gone: Vec<[usize; 3]>,
    refused: [u64; PAIRS],
}

/// What a run gives the block.
#[derive(Default)]
struct Given {
    jobs: Vec<Job>,
    /// The answer to each query, and the address that it says.
    granted: Vec<(bool, u64)>,
    payload: Vec<Vec<u64>>,
    data: Vec<Vec<u64>>,
    copied: Vec<Vec<u64>>,
}

/// Chooses jobs, none of them of the pair `gone`, and says what has to come of them.
fn choose(rng: &mut ChaCha8Rng, count: usize, gone: u64) -> (Given, Expected) {
    let (mut given, mut expected) = (Given::default(), Expected::default());
    for _ in 0..count {
        let mut job = Job::random(rng, PAIRS as u64);
        if job.ending.pair == gone {
            job.ending.pair = (gone + 1) % PAIRS as u64;
        }
        add(rng, &mut given, &mut expected, job, 0.7, 0.2);
    }
    (given, expected)
}

/// Adds a job that the Gate grants, or whose slot can't be read, as often as is said.
fn add(
    rng: &mut ChaCha8Rng,
    given: &mut Given,
    expected: &mut Expected,
    job: Job,
    grants: f64,
    fails: f64,
) {
    let mut ending = job.ending;
    let mut writes = job.length > 0;
    // The Gate has allowed it.
    let mut guarded = false;
    let mut target = job.target;
    let arrived = job.arrived.div_ceil(8) as usize;
    let on_wire: Vec<Vec<u64>> = (0..arrived).map(|_| vec![rng.random()]).collect();
    let in_slot: Vec<Vec<u64>> = match job.reads() {
        true => (0..job.length_words())
            .map(|_| vec![rng.random()])
            .collect(),
        false => vec![],
    };
    match job.way {
        Way::Ends | Way::Drop => writes = false,
        Way::Hit | Way::Put | Way::Copy if writes => {
            let rights = match job.way {
                Way::Put => RIGHT_REMOTE_WRITE,
                _ => RIGHT_LOCAL_WRITE,
            };
            let key = match job.way {
                Way::Put => job.source,
                // Nothing of a peer's.
                _ => 0,
            };
            expected.queries.push(pack(&[
                (job.domain, 8),
                (job.key, 32),
                (rights.into(), 8),
                (job.target, 64),
                (job.length, 64),
                ((job.way == Way::Put).into(), 1),
                (job.ending.pair, 16),
                (key, 64),
                (job.ending.of_message.into(), 1),
                (job.ending.context, 16),
            ]));
            writes = rng.random_bool(grants);
            guarded = writes;
            let address = rng.random();
            given.granted.push((writes, address));
            if job.way == Way::Put {
                target = address;
            }
            if !writes {
                ending.status = Status::AccessDenied.code().into();
                ending.refused = job.way == Way::Put;
                expected.refused[job.ending.pair as usize] += 1;
            }
            if job.way == Way::Copy {
                let unreadable = rng.random_bool(fails);
                given.copied.push(vec![u64::from(unreadable)]);
                if unreadable {
                    writes = false;
                    ending.status = Status::MemoryError.code().into();
                }
            }
        }
        Way::Hit | Way::Put | Way::Slot | Way::Copy => {}
    }
    if writes {
        expected.writes.push(access(target, job.length));
        let words = if job.reads() { &in_slot } else { &on_wire };
        let words = words.iter().take(job.length_words());
        expected.written.extend(words.cloned());
    }
    given.payload.extend(on_wire);
    given.data.extend(in_slot);
    given.jobs.push(job);
    expected.entries.push(entry(writes, guarded, &ending));
    let gone = [&given.payload, &given.data, &expected.written].map(Vec::len);
    expected.gone.push(gone);
}

/// A `LedgerEntry` on a pin.
fn entry(writes: bool, guarded: bool, ending: &Ending) -> Vec<u64> {
    let mut fields = vec![(writes.into(), 1), (guarded.into(), 1)];
    fields.extend(ending.fields());
    pack(&fields)
}

/// How often everybody gives and takes.
#[derive(Clone, Copy)]
struct Rates {
    job: f64,
    query: f64,
    payload: f64,
    data: f64,
    request: f64,
    words: f64,
    entry: f64,
    /// Cycles from a query to its answer.
    latency: usize,
    /// How often a pair that no job is of is forgotten.
    forget: f64,
    gone: u64,
    /// How often something is refused elsewhere.
    elsewhere: f64,
}

impl Rates {
    /// Nobody makes anybody wait.
    const FULL: Rates = Rates {
        job: 1.0,
        query: 1.0,
        payload: 1.0,
        data: 1.0,
        request: 1.0,
        words: 1.0,
        entry: 1.0,
        latency: 3,
        forget: 0.0,
        gone: 0,
        elsewhere: 0.0,
    };

    fn random(rng: &mut ChaCha8Rng, gone: u64) -> Self {
        Rates {
            job: rate(rng),
            query: rate(rng),
            payload: rate(rng),
            data: rate(rng),
            request: rate(rng),
            words: rate(rng),
            entry: rate(rng),
            latency: rng.random_range(1..10),
            forget: rate(rng) / 2.0,
            gone,
            elsewhere: rate(rng) / 4.0,
        }
    }
}

fn open() -> Bench {
    let mut bench = Bench::open("resolve_tiny");
    bench.eval();
    while !bench.is("initialized") {
        bench.step();
        bench.eval();
    }
    bench
}

/// Runs jobs to their ends and compares; returns the cycles that they took, what was refused elsewhere meanwhile,
/// and whether the pair that is gone was forgotten: of it what was refused since.
fn run(
    bench: &mut Bench,
    rng: &mut ChaCha8Rng,
    rates: Rates,
    given: &Given,
    expected: &Expected,
) -> (usize, [u64; PAIRS], bool) {
    let mut job = Source::new("job", given.jobs.iter().map(Job::words).collect());
    let mut payload = Source::new("payload", given.payload.clone());
    let mut data = Source::new("data", given.data.clone());
    let mut copied = Source::new("copied", given.copied.clone());
    let mut query = Sink::<5>::new("query", "query");
    let mut request = Sink::<2>::new("write_request", "write_request");
    let mut words = Sink::<1>::new("write_data", "write_data");
    let mut entries = Sink::<5>::new("entry", "entry");
    let mut answers = VecDeque::new();
    let (mut cycle, mut announced) = (0, 0);
    // Refusals elsewhere: the pair, and since when it waits to be counted.
    let mut elsewhere: Option<(u64, usize)> = None;
    let (mut told, mut forgotten) = ([0; PAIRS], false);
    while entries.taken.len() < given.jobs.len() {
        assert!(cycle < 60_000, "it stands still");
        job.drive(bench, usize::MAX, rng.random_bool(rates.job));
        payload.drive(bench, usize::MAX, rng.random_bool(rates.payload));
        data.drive(bench, usize::MAX, rng.random_bool(rates.data));
        copied.drive(bench, usize::MAX, rng.random_bool(rates.data));
        query.drive(bench, rng.random_bool(rates.query));
        request.drive(bench, rng.random_bool(rates.request));
        words.drive(bench, rng.random_bool(rates.words));
        entries.drive(bench, rng.random_bool(rates.entry));
        let answer: Option<(usize, (bool, u64))> = match answers.front() {
            Some((due, _)) if *due == cycle => answers.pop_front(),
            _ => None,
        };
        bench.set("allowed_valid", answer.is_some());
        let noise = (rng.random(), rng.random());
        let (granted, address) = answer.map_or(noise, |(_, answer)| answer);
        bench.set_wide("allowed", &pack(&[(granted.into(), 1), (address, 64)]));
        if elsewhere.is_none() && rng.random_bool(rates.elsewhere) {
            let pair = match rng.random() {
                true => rates.gone,
                false => rng.random_range(0..PAIRS as u64),
            };
            elsewhere = Some((pair, cycle));
        }
        bench.set("elsewhere_valid", elsewhere.is_some());
        bench.set(
            "elsewhere",
            elsewhere.map_or(rng.random(), |(pair, _)| pair as u16),
        );
        let forgets = rng.random_bool(rates.forget);
        bench.set("forget_valid", forgets);
        bench.set("forget", rates.gone);
        bench.eval();
        if let Some((pair, since)) = elsewhere {
            assert!(cycle < since + 64, "a refusal elsewhere waits");
            if bench.is("elsewhere_ready") {
                told[pair as usize] += 1;
                elsewhere = None;
            }
        }
        if forgets {
            told[rates.gone as usize] = 0;
            forgotten = true;
        }
        job.taken(bench);
        for source in [&mut payload, &mut data, &mut copied] {
            source.taken(bench);
        }
        if query.watch(bench).is_some() {
            let granted = given.granted[query.taken.len() - 1];
            answers.push_back((cycle + rates.latency, granted));
        }
        if let Some(word) = request.watch(bench) {
            announced += (word[1] & 0xffff).div_ceil(8) as usize;
        }
        if words.watch(bench).is_some() {
            assert!(words.taken.len() <= announced, "words before their write");
        }
        if entries.watch(bench).is_some() {
            let gone = expected.gone[entries.taken.len() - 1];
            let now = [payload.given, data.given, words.taken.len()];
            assert_eq!(now, gone, "when entry {} is there", entries.taken.len());
        }
        bench.step();
        cycle += 1;
    }
    assert_eq!(query.taken, expected.queries);
    assert_eq!(request.taken, expected.writes);
    assert_eq!(words.taken, expected.written);
    assert_eq!(entries.taken, expected.entries);
    assert!(copied.done());
    for pin in [
        "job",
        "payload",
        "data",
        "copied",
        "allowed",
        "forget",
        "elsewhere",
    ] {
        bench.set(&format!("{pin}_valid"), false);
    }
    (cycle, told, forgotten)
}

/// The count of each number of a pair, and of the first that is none.
fn counts(bench: &mut Bench) -> Vec<u64> {
    let count = |pair: usize| {
        bench.set("refused_pair", pair as u64);
        bench.step();
        bench.eval();
        bench.get("refused_count")
    };
    (0..=PAIRS).map(count).collect()
}

fn random(rng: &mut ChaCha8Rng) {
    let mut bench = open();
    let mut refused = [0; PAIRS];
    for _ in 0..4 {
        let gone = rng.random_range(0..PAIRS);
        let (given, expected) = choose(rng, 60, gone as u64);
        let rates = Rates::random(rng, gone as u64);
        let (_, told, forgotten) = run(&mut bench, rng, rates, &given, &expected);
        if forgotten {
            refused[gone] = 0;
        }
        for (total, new) in refused.iter_mut().zip(expected.refused) {
            *total += new;
        }
        for (total, new) in refused.iter_mut().zip(told) {
            *total += new;
        }
        if rng.random() {
            bench.set("forget_valid", true);
            bench.step();
            bench.set("forget_valid", false);
            refused[gone] = 0;
        }
        // What was refused elsewhere at the end is counted.
        for _ in 0..4 {
            bench.step();
        }
        let shown = counts(&mut bench);
        assert_eq!((&shown[..PAIRS], shown[PAIRS]), (&refused[..], 0));
    }
}

#[test]
fn payloads_go_where_they_may_and_each_job_ends_in_order() {
    for_seeds(4, random);
}

#[test]
fn resolve_that_is_broken_is_noticed() {
    breaks("resolve_tiny", 3, random);
}

#[test]
#[ignore = "mutants: `cargo xtask mutants`, `cargo xtask test --long`"]
fn most_mutants_of_resolve_are_noticed() {
    mutants("resolve_tiny", 1, random);
}

/// Cycles a job of hits of so many bytes when nobody makes anybody wait.
fn pace(rng: &mut ChaCha8Rng, length: u64) -> f64 {
    let (mut given, mut expected) = (Given::default(), Expected::default());
    for _ in 0..100 {
        let job = Job {
            way: Way::Hit,
            length,
            arrived: length,
            ..Job::random(rng, PAIRS as u64)
        };
        add(rng, &mut given, &mut expected, job, 1.0, 0.0);
    }
    let (cycles, ..) = run(&mut open(), rng, Rates::FULL, &given, &expected);
    cycles as f64 / 100.0
}

#[test]
fn hits_follow_each_other_closely() {
    for_seeds(1, |rng| {
        let (short, long) = (pace(rng, 8), pace(rng, 1024));
        println!("{short} cycles a hit of 8 bytes, {long} a hit of 1024");
        assert!(short <= 6.0 && long <= 128.0 + 4.0, "{short}, {long}");
    });
}
