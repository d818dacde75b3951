//! `envelope::Copies`: jobs keep their order, slots are read ahead, and there is room for what is read.

use std::cell::Cell;
use std::collections::VecDeque;

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::{JOB_WORDS, Job, Sink, Source, access};
use hdl_tests::broken::{breaks, mutants};
use hdl_tests::{Bench, for_seeds, rate};

/// Words of the buffer.
const BUFFER: usize = 512;

/// Gives the block jobs and the answers of a memory, and takes everything at rates of their own. Returns how many reads were
/// under way at once.
fn ahead(rng: &mut ChaCha8Rng) -> usize {
    let mut bench = Bench::open("copies");
    let jobs: Vec<Job> = (0..120).map(|_| Job::random(rng, 8)).collect();
    let reads: Vec<&Job> = jobs.iter().filter(|job| job.reads()).collect();
    let failures: Vec<bool> = reads.iter().map(|_| rng.random_bool(0.2)).collect();
    let contents: Vec<Vec<u64>> = reads
        .iter()
        .map(|job| (0..job.length_words()).map(|_| rng.random()).collect())
        .collect();
    let wanted: Vec<Vec<u64>> = reads.iter().map(|j| access(j.source, j.length)).collect();
    let (busy, memory_busy) = (rate(rng), rate(rng));
    let latency = rng.random_range(0..60);
    // Who takes `output`, `copied` and `data`.
    let willing = [rate(rng), rate(rng), rate(rng), rate(rng)];

    let mut job = Source::new("job", jobs.iter().map(Job::words).collect());
    let words = contents.concat().into_iter().map(|word| vec![word]);
    let mut read_data = Source::new("read_data", words.collect());
    let mut output = Sink::<JOB_WORDS>::new("out", "out_data");
    let mut read_request = Sink::<2>::new("read_request", "read_request");
    let mut data = Sink::<1>::new("data", "data");
    let mut copied = Sink::<1>::new("copied", "copied");
    // Words that memory may give, and from when on; the numbers of the last words of reads.
    let (mut owed, mut given_limit) = (VecDeque::new(), 0);
    let mut ends = vec![];
    for content in &contents {
        ends.push(ends.last().unwrap_or(&0) + content.len());
    }
    let (mut asked, mut most, mut copies_out) = (0, 0, 0);
    for cycle in 0..60_000 {
        job.drive(&mut bench, usize::MAX, rng.random_bool(busy));
        while let Some((from, words)) = owed.front()
            && *from <= cycle
        {
            given_limit += words;
            owed.pop_front();
        }
        read_data.drive(&mut bench, given_limit, rng.random_bool(memory_busy));
        let read = ends.partition_point(|end| *end <= read_data.given);
        let last = read_data.given + 1 == *ends.get(read).unwrap_or(&0);
        let failed = last && failures[read];
        // What comes before the last word of a read means nothing.
        bench.set("read_data_error", if last { failed } else { rng.random() });
        for (sink, rate) in [&data, &copied].into_iter().zip(&willing) {
            sink.drive(&mut bench, rng.random_bool(*rate));
        }
        output.drive(&mut bench, rng.random_bool(willing[2]));
        read_request.drive(&mut bench, rng.random_bool(willing[3]));
        bench.eval();

        asked = asked.max(read_request.taken.len() + usize::from(bench.is("read_request_valid")));
        job.taken(&bench);
        read_data.taken(&bench);
        if output.watch(&bench).is_some() {
            copies_out += usize::from(jobs[output.taken.len() - 1].reads());
            assert!(copies_out <= asked, "a copy goes on before its read");
        }
        if read_request.watch(&bench).is_some() {
            let words = contents[read_request.taken.len() - 1].len();
            owed.push_back((cycle + 1 + latency, words));
            let reserved = ends[read_request.taken.len() - 1] - data.taken.len();
            assert!(reserved <= BUFFER, "{reserved} words are reserved");
            most = most.max(read_request.taken.len() - read);
        }
        data.watch(&bench);
        if copied.watch(&bench).is_some() {
            let here = ends[copied.taken.len() - 1] < read_data.given + 1;
            assert!(here, "a copy ends before its words are here");
        }
        bench.step();
        let all = output.taken.len() == jobs.len() && data.taken.len() == ends[ends.len() - 1];
        if all && copied.taken.len() == reads.len() {
            break;
        }
    }
    assert!(job.done() && read_data.done(), "it stands still");
    for _ in 0..20 {
        bench.eval();
        let more =
            ["out", "read_request", "data", "copied"].map(|s| bench.is(&format!("{s}_valid")));
        assert_eq!(more, [false; 4], "something comes that nobody asked for");
        bench.step();
    }
    assert_eq!(
        output.taken,
        jobs.iter().map(Job::words).collect::<Vec<_>>()
    );
    assert_eq!(read_request.taken, wanted);
    assert_eq!(data.taken, read_data.words);
    let failures: Vec<_> = failures.iter().map(|f| vec![u64::from(*f)]).collect();
    assert_eq!(copied.taken, failures);
    most
}

#[test]
fn slots_are_read_ahead_in_the_order_of_their_jobs() {
    let most = Cell::new(0);
    for_seeds(8, |rng| most.set(most.get().max(ahead(rng))));
    assert!(
        most.get() >= 8,
        "{} reads are under way at once",
        most.get()
    );
}

#[test]
fn copies_that_are_broken_are_noticed() {
    breaks("copies", 4, |rng| {
        ahead(rng);
    });
}

#[test]
#[ignore = "mutants: `cargo xtask mutants`, `cargo xtask test --long`"]
fn most_mutants_of_copies_are_noticed() {
    mutants("copies", 1, |rng| {
        ahead(rng);
    });
}
