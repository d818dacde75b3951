//! The matching engine, Verilated, against the reference of `match-reference`.

mod support;

use hdl::config::{self, Config};
use match_reference::{Harness, Sizes, Traffic, Verilated};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use support::for_seeds;

fn sizes(config: &Config) -> Sizes {
    Sizes {
        endpoints: config.endpoints,
        pairs: config.pairs,
        exact: config.exact,
        posted: config.posted,
        unexpected: config.unexpected,
        classes: hdl::matching::CLASSES,
        comparators: config.comparators,
        reserved_exact: config.reserved_exact(),
        reserved_posted: config.reserved_posted(),
    }
}

fn run(config: &Config, mutation: u64, rng: &mut ChaCha8Rng, commands: u64) {
    let block = Verilated::open(&format!("lists_{}", config.name), mutation, rng.random())
        .unwrap_or_else(|error| panic!("{error}"));
    let mut harness = Harness::new(block, sizes(config));
    let mut traffic = Traffic::new(sizes(config), rng);
    harness
        .random(&mut traffic, rng, commands)
        .unwrap_or_else(|breach| panic!("{breach}"));
    println!("{:?}", harness.seen());
}

#[test]
fn tiny_keeps_its_promises() {
    for_seeds(6, |rng| run(&config::TINY, 0, rng, 20_000));
}

#[test]
fn ecp5_keeps_its_promises() {
    for_seeds(6, |rng| run(&config::ECP5, 0, rng, 20_000));
}
