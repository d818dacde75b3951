//! The targets of the fuzzer, fed from a seed.

use abi::mailbox::Command;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Feeds a target with inputs of up to `length` bytes. The seed of one that fails is the last that is printed.
fn feed<T>(target: impl Fn(&[u8]) -> T, inputs: u64, length: usize) -> Vec<T> {
    let of_seed = |seed| {
        println!("seed {seed}");
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut bytes = vec![0; rng.random_range(0..length)];
        rng.fill(&mut bytes[..]);
        // A length in front of a body is short more often than not.
        for byte in &mut bytes {
            if rng.random_bool(0.3) {
                *byte = rng.random_range(0..4);
            }
        }
        target(&bytes)
    };
    (0..inputs).map(of_seed).collect()
}

#[test]
fn frames_of_any_bytes_hang_no_card_and_write_nowhere() {
    let good = feed(fuzz_targets::frames, 5_000, 8_000);
    let good: u32 = good.iter().sum();
    assert!(good > 5_000, "{good} frames were taken for good");
}

#[test]
fn commands_of_any_words_are_answered() {
    let done = feed(fuzz_targets::commands, 5_000, 4_000);
    let done = done.iter().fold(0, |all, some| all | some);
    let undone = Command::ALL
        .iter()
        .filter(|one| done >> one.code() & 1 == 0);
    let undone: Vec<_> = undone.collect();
    assert!(undone.is_empty(), "never carried out: {undone:?}");
}

#[test]
fn addresses_of_any_bytes_are_read_as_they_were_written_or_not_at_all() {
    feed(fuzz_targets::addresses, 2_000, 64);
}

#[cfg(feature = "tools")]
mod tools {
    use super::feed;
    use fuzz_targets::tools;

    /// Feeds a target. So many of the inputs, or more, were taken for good.
    fn some_are_good(target: impl Fn(&[u8]) -> bool, inputs: u64, length: usize, least: usize) {
        let good = feed(target, inputs, length);
        let good = good.iter().filter(|&&good| good).count();
        assert!(good >= least, "{good} were taken for good");
    }

    #[test]
    fn traces_of_any_text_are_read_or_refused() {
        some_are_good(tools::traces, 20_000, 64, 1_000);
    }

    #[test]
    fn plans_of_any_text_are_read_or_refused() {
        some_are_good(tools::plans, 20_000, 24, 1_000);
    }

    #[test]
    fn a_firmware_file_of_any_bytes_loads_nothing_outside_of_the_memory() {
        some_are_good(tools::firmware, 20_000, 400, 1_000);
    }
}
