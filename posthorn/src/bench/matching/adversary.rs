//! Keys that somebody has chosen who knows the hash, but not its seed: how often does a bin overflow when
//! the exact side is filled to the last receive?
//!
//! A Toeplitz hash is linear, so the keys to fear are those with a structure that a linear map keeps: runs of
//! numbers, multiples of a power of two, linear subspaces.
//!
//! The gates are filled under a few seeds, and must overflow where the tables in plain Rust do. By those the load is then
//! swept: filled under many seeds, and kept full while receives go, any of them, and others come. What an operation takes then,
//! and how many there are per cycle, is measured in the gates with each choice of keys.

use std::ops::Range;

use anyhow::Result;
use match_reference::{Command, Operation, Sizes, Tables};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use super::engine::Engine;
use super::{Effort, SLACK};
use crate::bench::Point;
use host_matching::workload::{Kind, Structure};

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

/// Somebody's choice of keys.
struct Adversary {
    keys: &'static str,
    choice: Choice,
    secret: Secret,
    endpoints: usize,
}

impl Adversary {
    fn new(keys: &'static str, choice: Choice, sizes: &Sizes, rng: &mut impl Rng) -> Self {
        let secret = Secret {
            basis: rng.random(),
            pairs: sizes.pairs,
        };
        Adversary {
            keys,
            choice,
            secret,
            endpoints: sizes.endpoints,
        }
    }

    /// Receive `n`. All endpoints take their turns.
    fn receive(&self, n: usize) -> Command {
        Command {
            endpoint: (n % self.endpoints) as u8,
            request: match self.keys {
                "handles" => n as u32,
                // An odd factor: they differ, and don't make a run.
                _ => (n as u32).wrapping_mul(0x9e37_79b9) ^ self.secret.basis[1] as u32,
            },
            ..(self.choice)(n, &self.secret)
        }
    }
}

/// Overflows, over several seeds.
#[derive(Default)]
struct Overflows {
    seeds: u64,
    total: u64,
    most: u64,
    clean: u64,
}

impl Overflows {
    fn add(&mut self, overflows: u64) {
        self.seeds += 1;
        self.total += overflows;
        self.most = self.most.max(overflows);
        self.clean += u64::from(overflows == 0);
    }

    fn and(&self, other: &Self) -> Self {
        Overflows {
            seeds: self.seeds + other.seeds,
            total: self.total + other.total,
            most: self.most.max(other.most),
            clean: self.clean + other.clean,
        }
    }

    /// The mean of the seeds, and beside it what else there is to say.
    fn point<const N: usize>(
        &self,
        name: &'static str,
        params: [(&'static str, Value); N],
    ) -> Point {
        let seeds = self.seeds as f64;
        let mut point = Point::new(name, params, self.total as f64 / seeds, "receives");
        point.beside.insert("max", self.most as f64);
        point.beside.insert("seeds", seeds);
        let clean = self.clean as f64 / seeds;
        point.beside.insert("share_of_seeds_without", clean);
        point
    }
}

/// How much is swept.
#[derive(Clone, Copy)]
pub struct Sweep {
    /// Seeds of the hash in the gates.
    pub seeds: usize,
    /// Seeds of the hash in plain Rust.
    pub trials: usize,
    /// Receives that are replaced under each of those.
    pub replaced: usize,
}

/// Fills the exact side with each choice of keys, and keeps it full; what operations take then.
///
/// # Errors
/// If the engine breaks a promise, or doesn't overflow where it should.
pub fn run(
    points: &mut Vec<Point>,
    engine: &mut Engine,
    effort: &Effort,
    rng: &mut impl Rng,
) -> Result<()> {
    let sizes = *engine.sizes();
    let sweep = effort.sweep;
    for (keys, choice) in CHOICES {
        let (mut all, mut least) = (Overflows::default(), sizes.exact);
        for _ in 0..sweep.seeds {
            let seed = rng.random();
            engine.reseed(seed)?;
            let adversary = Adversary::new(keys, choice, &sizes, rng);
            let receives: Vec<Command> = (0..sizes.exact).map(|n| adversary.receive(n)).collect();
            let (overflows, first) = engine.fill(&receives)?;
            let mut tables = Tables::new(sizes.rows, sizes.row_ways, seed);
            let refused = receives.iter().filter(|r| !tables.post(r, 0)).count() as u64;
            anyhow::ensure!(
                overflows == refused,
                "{keys}, seed {seed:#x}: {overflows} overflows, {refused} in plain Rust"
            );
            all.add(overflows);
            least = least.min(first);
        }
        let params = [("keys", keys.into()), ("receives", sizes.exact.into())];
        let mut point = all.point("overflow", params);
        point.beside.insert("without_overflow", least as f64);
        points.push(point);
    }
    for (keys, choice) in CHOICES {
        engine.reseed(rng.random())?;
        let adversary = Adversary::new(keys, choice, &sizes, rng);
        timed(points, engine, &adversary, effort, rng)?;
    }
    for (keys, choice) in CHOICES {
        let (filled, kept) = swept(keys, choice, &sizes, sweep, rng.random());
        let params = [("keys", keys.into()), ("receives", sizes.exact.into())];
        points.push(filled.point("overflow_filled", params.clone()));
        let [a, b] = params;
        let params = [a, b, ("replaced", sweep.replaced.into())];
        points.push(kept.point("overflow_replaced", params));
    }
    engine.reseed(rng.random())
}

/// Cycles of the operations with the exact side filled to the last receive, and operations per cycle with room for a few that
/// are under way.
fn timed(
    points: &mut Vec<Point>,
    engine: &mut Engine,
    adversary: &Adversary,
    effort: &Effort,
    rng: &mut impl Rng,
) -> Result<()> {
    let exact = engine.sizes().exact;
    let params = || {
        let [a, b, c] = super::params(Structure::Posted, Kind::Exact, "full".into());
        [a, b, c, ("keys", adversary.keys.into())]
    };
    let most = exact - SLACK;
    let receives: Vec<Command> = (0..exact.max(most + effort.operations / 2))
        .map(|n| adversary.receive(n))
        .collect();
    let operations = engine.timed(&receives[..exact], effort.samples, rng)?;
    super::report(points, &operations, exact, params());
    let rate = engine.stream(&receives[..most + effort.operations / 2], most, false)?;
    let [a, b, c, d] = params();
    let params = [a, b, c, d, ("operations", "mixed".into())];
    points.push(rate.point(params, most));
    Ok(())
}

/// Overflows while the tables are filled, and while they are kept full.
fn swept(
    keys: &'static str,
    choice: Choice,
    sizes: &Sizes,
    sweep: Sweep,
    seed: u64,
) -> (Overflows, Overflows) {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let share =
        |thread: usize| sweep.trials * thread / threads..sweep.trials * (thread + 1) / threads;
    let trials = |trials: Range<usize>| {
        let (mut filled, mut kept) = (Overflows::default(), Overflows::default());
        for n in trials {
            let mut rng = ChaCha8Rng::seed_from_u64(seed ^ n as u64);
            let tables = Tables::new(sizes.rows, sizes.row_ways, rng.random());
            let adversary = Adversary::new(keys, choice, sizes, &mut rng);
            let (first, later) = trial(tables, &adversary, sizes.exact, sweep.replaced, &mut rng);
            filled.add(first);
            kept.add(later);
        }
        (filled, kept)
    };
    std::thread::scope(|scope| {
        let trials = &trials;
        let running: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || trials(share(thread))))
            .collect();
        let mut both: (Overflows, Overflows) = Default::default();
        for thread in running {
            let (filled, kept) = thread.join().expect("it doesn't panic");
            both = (both.0.and(&filled), both.1.and(&kept));
        }
        both
    })
}

/// Overflows of one seed.
fn trial(
    mut tables: Tables,
    adversary: &Adversary,
    entries: usize,
    replaced: usize,
    rng: &mut impl Rng,
) -> (u64, u64) {
    let mut live: Vec<Command> = (0..entries).map(|n| adversary.receive(n)).collect();
    let filled = live.iter().filter(|r| !tables.post(r, 0)).count() as u64;
    let mut kept = 0;
    for n in entries..entries + replaced {
        let gone = &mut live[rng.random_range(0..entries)];
        tables.remove(gone);
        *gone = adversary.receive(n);
        kept += u64::from(!tables.post(gone, 0));
    }
    (filled, kept)
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
