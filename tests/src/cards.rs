//! Simulated cards with the real firmware, set up and run for one test.

use std::path::Path;

use sim::{Cluster, Firmware, Host, Outcome};

/// The firmware that `cargo xtask firmware` has built.
///
/// # Panics
/// If it hasn't.
pub fn firmware() -> Firmware {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/firmware/firmware.elf");
    let elf = std::fs::read(&path)
        .unwrap_or_else(|error| panic!("{}: {error}: run `cargo xtask firmware`", path.display()));
    Firmware::parse(elf).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// So many cards of a configuration, with firmware.
///
/// A cluster runs on one thread: the tests run beside each other.
pub fn cards(config: &str, cards: usize, seed: u64) -> Cluster {
    Cluster::verilated(config)
        .cards(cards)
        .seed(seed)
        .threads(1)
        .firmware(firmware())
}

/// Runs `host` for each card and returns what each returned, with what the simulation did.
///
/// # Panics
/// If the simulation ended early: a check in the gates failed, a card broke a rule of a bus, credits don't add
/// up, or an assertion in `host` failed. The message has the seed.
pub fn run<T: Send>(cluster: Cluster, host: impl Fn(Host) -> T + Sync) -> (Vec<T>, sim::Report) {
    let Outcome {
        hosts,
        error,
        report,
    } = cluster.run(host);
    if let Some(error) = error {
        panic!("{error}");
    }
    (hosts.into_iter().flatten().collect(), report)
}
