//! The seed decides everything, the machine nothing.

use posthorn_tests::cards::{GatesOnly, cards};
use posthorn_tests::side::Side;
use posthorn_tests::traffic::{Mix, judge, play};
use sim::fabric::{LinkFilter, Passing};
use sim::seed::BackPressure;
use std::sync::{Arc, Mutex};

/// Everything that can be seen of a run.
#[derive(Debug, PartialEq)]
struct Seen {
    cycles: u64,
    frames: Vec<(u64, u64, Vec<u8>)>,
    memory: Vec<sim::memory::MemoryCount>,
    completions: Vec<usize>,
}

fn seen(seed: u64, threads: usize) -> Seen {
    let frames = Arc::new(Mutex::new(Vec::new()));
    let tap = {
        let frames = Arc::clone(&frames);
        move |passing: Passing, out: &mut Vec<Passing>| {
            let frame = &passing.frame;
            let entry = (frame.first, frame.last, frame.bytes.clone());
            frames.lock().unwrap().push(entry);
            out.push(passing);
        }
    };
    let cluster = cards("tiny", 3, seed)
        .threads(threads)
        .pressure(BackPressure::SOME)
        .tap(LinkFilter::ALL, tap);
    let (records, report) = GatesOnly::Simulation.run(cluster, |host| {
        let mut me = Side::open(&host);
        play(&mut me, seed, Mix::even(40))
    });
    judge(&records).expect("legal");
    Seen {
        cycles: report.cycles,
        frames: std::mem::take(&mut *frames.lock().unwrap()),
        memory: report.cards.iter().map(|card| card.memory).collect(),
        completions: records.iter().map(|record| record.taken.len()).collect(),
    }
}

#[test]
fn neither_threads_nor_luck_change_a_cycle_or_a_frame_and_another_seed_does() {
    let one = seen(91, 1);
    assert!(one.frames.len() > 50, "{} frames", one.frames.len());
    let two = seen(91, 2);
    assert_eq!(one.cycles, two.cycles);
    assert!(one == two, "two threads differ from one");
    let other = seen(95, 2);
    // A run ends with a window of the simulation, so two may take as long; each frame has its own cycles.
    assert_ne!(one.frames, other.frames);
    assert_ne!(one.memory, other.memory);
}
