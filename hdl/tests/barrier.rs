//! A change of the regions waits for the reads that began before it, and for no others.

#[path = "support/bits.rs"]
mod bits;
mod support;

use std::collections::VecDeque;

use abi::control::Operation;
use bits::pack;
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use support::broken::breaks;
use support::{Bench, for_seeds, rate};

/// Random reads beside random changes, some of which are withdrawn.
fn changes(rng: &mut ChaCha8Rng) {
    let mut bench = Bench::open("barrier");
    let (begins, ends, table) = (rate(rng), rate(rng), rate(rng));
    // Numbers of the reads under way; the last one that began before the change, once the table has changed.
    let mut reads: VecDeque<u64> = VecDeque::new();
    let (mut begun, mut changed) = (0, None::<u64>);
    let mut wanted = false;
    let mut done = [0; 2];
    for cycle in 0..4000 {
        wanted |= rng.random_bool(0.05);
        if wanted && rng.random_bool(0.01) {
            (wanted, changed) = (false, None);
        }
        let ends = !reads.is_empty() && rng.random_bool(ends);
        let begins = reads.len() < 16 && rng.random_bool(begins);
        let changes = rng.random_bool(table);
        bench.set("control_valid", wanted);
        bench.set_wide(
            "control",
            &pack(&[(Operation::RegionClear.code().into(), 8), (7, 16)]),
        );
        bench.set("inner_ready", changes);
        bench.set("begins", begins);
        bench.set("ends", ends);
        bench.eval();
        let asks = wanted && changed.is_none();
        assert_eq!(bench.is("inner_valid"), asks, "cycle {cycle}");
        let first = reads.front().copied();
        let over = changed.is_some_and(|last| first.is_none_or(|first| first > last));
        assert_eq!(bench.is("control_ready"), over, "cycle {cycle}");
        if ends {
            reads.pop_front();
        }
        if asks && changes {
            changed = Some(begun);
        }
        if over {
            (wanted, changed) = (false, None);
            done[usize::from(!reads.is_empty())] += 1;
        }
        if begins {
            begun += 1;
            reads.push_back(begun);
        }
        bench.step();
    }
    assert!(done[0] + done[1] > 0, "some change is done");
}

#[test]
fn a_change_waits_for_the_reads_before_it_and_no_others() {
    for_seeds(8, changes);
}

#[test]
fn each_break_of_the_wait_is_noticed() {
    breaks("barrier", 8, changes);
}
