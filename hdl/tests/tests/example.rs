//! `example::Batches`, Verilated: the block of the page *Writing a block*.

use abi::limits::EAGER_MAX;
use hdl_tests::broken::{breaks, mutants};
use hdl_tests::{Bench, for_seeds, rate};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

/// Gives the block lengths and takes its summaries, each side at a rate of its own; compares them with the
/// sums of three lengths each.
fn sums(rng: &mut ChaCha8Rng) {
    let mut bench = Bench::open("batches");
    let (busy, willing) = (rate(rng), rate(rng));
    let lengths: Vec<u64> = (0..60)
        .map(|_| EAGER_MAX as u64 + rng.random_range(0..4) - 2)
        .collect();
    let mut expected = lengths.chunks_exact(3).map(|lengths| {
        let long = lengths.iter().filter(|l| **l > EAGER_MAX as u64).count();
        lengths.iter().sum::<u64>() | (long as u64) << 24
    });
    let (mut given, mut taken, mut offered) = (0, 0, false);
    for _ in 0..5000 {
        offered |= given < lengths.len() && rng.random_bool(busy);
        bench.set("in_valid", offered);
        // What isn't offered must not matter.
        bench.set(
            "in_data",
            if offered {
                lengths[given]
            } else {
                rng.random_range(0..1 << 16)
            },
        );
        bench.set("summary_ready", rng.random_bool(willing));
        bench.eval();
        if bench.is("summary_valid") && bench.is("summary_ready") {
            assert_eq!(Some(bench.get("summary")), expected.next());
            taken += 1;
        }
        if offered && bench.is("in_ready") {
            (given, offered) = (given + 1, false);
        }
        bench.step();
    }
    assert_eq!((given, taken), (lengths.len(), lengths.len() / 3));
}

#[test]
fn each_batch_is_summed_up_once() {
    for_seeds(8, sums);
}

#[test]
fn a_block_that_is_broken_is_noticed() {
    breaks("batches", 4, sums);
}

#[test]
#[ignore = "mutants: `cargo xtask mutants`, `cargo xtask test --long`"]
fn most_mutants_are_noticed() {
    mutants("batches", 4, sums);
}
