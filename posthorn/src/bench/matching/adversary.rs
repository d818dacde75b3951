//! Keys that somebody has chosen who knows the hash, but not its seed: how often does a bin overflow when
//! the exact side is filled to the last receive?
//!
//! A Toeplitz hash is linear, so the keys to fear are those with a structure that a linear map keeps: runs of
//! numbers, multiples of a power of two, linear subspaces.

use anyhow::Result;
use match_reference::{Command, Operation};
use rand::Rng;

use super::engine::Engine;
use crate::bench::Point;

/// A way to choose keys.
type Choice = fn(usize, &Secret) -> Command;

/// What an adversary may draw beforehand.
struct Secret {
    /// Of a linear subspace.
    basis: [u64; 16],
    pairs: usize,
}

const BLANK: fn() -> Command = || Command::new(Operation::Post);

fn tag(match_bits: u64) -> Command {
    Command {
        match_bits,
        ..BLANK()
    }
}

/// The sum of the vectors of the basis that `n` names.
fn sum(n: usize, basis: &[u64]) -> u64 {
    let vectors = basis.iter().enumerate();
    vectors
        .filter(|(k, _)| n >> k & 1 == 1)
        .fold(0, |sum, (_, vector)| sum ^ vector)
}

/// A tag without any structure that a linear map keeps: squares of numbers that nobody else has.
fn scattered(n: usize, secret: &Secret) -> Command {
    let x = secret.basis[0] ^ n as u64;
    tag(x.wrapping_mul(x).rotate_left(32).wrapping_mul(x | 1))
}

const CHOICES: [(&str, Choice); 9] = [
    ("random", scattered),
    // Only the handles of the receives are a run of numbers.
    ("handles", scattered),
    ("sequential", |n, _| tag(n as u64)),
    ("same_low_byte", |n, _| tag((n as u64) << 8)),
    ("same_low_word", |n, _| tag((n as u64) << 32)),
    ("high_bits", |n, _| tag((n as u64).reverse_bits())),
    ("subspace", |n, secret| tag(sum(n, &secret.basis))),
    ("sources", |n, secret| Command {
        pair: (n % secret.pairs) as u16,
        ..tag((n / secret.pairs) as u64)
    }),
    ("contexts", |n, _| Command {
        context: n as u16,
        ..BLANK()
    }),
];

/// Fills the exact side with each choice of keys, under `seeds` seeds.
///
/// # Errors
/// If the engine breaks a promise.
pub fn run(
    points: &mut Vec<Point>,
    engine: &mut Engine,
    seeds: usize,
    rng: &mut impl Rng,
) -> Result<()> {
    let sizes = *engine.sizes();
    for (keys, choice) in CHOICES {
        let (mut total, mut most, mut least, mut clean) = (0, 0, sizes.exact, 0);
        for _ in 0..seeds {
            engine.reseed(rng.random())?;
            let secret = Secret {
                basis: rng.random(),
                pairs: sizes.pairs,
            };
            let receives: Vec<Command> = (0..sizes.exact)
                .map(|n| Command {
                    request: match keys {
                        "handles" => n as u32,
                        // An odd factor: they differ, and don't make a run.
                        _ => (n as u32).wrapping_mul(0x9e37_79b9) ^ secret.basis[1] as u32,
                    },
                    ..choice(n, &secret)
                })
                .collect();
            let (overflows, first) = engine.fill(&receives)?;
            total += overflows;
            most = most.max(overflows);
            least = least.min(first);
            clean += usize::from(overflows == 0);
        }
        let mean = total as f64 / seeds as f64;
        let params = [("keys", keys.into()), ("receives", sizes.exact.into())];
        let mut point = Point::new("overflow", params, mean, "receives");
        point.beside.insert("max", most as f64);
        point.beside.insert("without_overflow", least as f64);
        point
            .beside
            .insert("share_of_seeds_without", clean as f64 / seeds as f64);
        points.push(point);
    }
    engine.reseed(rng.random())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_a_choice_differ() {
        let basis = std::array::from_fn(|k| 0x9e37_79b9_7f4a_7c15_u64.rotate_left(5 * k as u32));
        let secret = Secret { basis, pairs: 128 };
        for (keys, choice) in CHOICES {
            let mut all: Vec<_> = (0..1024)
                .map(|n| choice(n, &secret))
                .map(|c| (c.pair, c.context, c.match_bits))
                .collect();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), 1024, "{keys}");
        }
    }
}
