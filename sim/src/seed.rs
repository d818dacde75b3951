//! Random numbers that depend on the seed and on nothing else.
//!
//! Each user of randomness has a generator of its own, named by the card and the purpose, so that one
//! more draw in one place moves nothing elsewhere. [`Idle`] turns a generator into back-pressure.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A generator for one purpose on one card.
pub fn generator(seed: u64, card: usize, purpose: &str) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&(card as u64).to_le_bytes());
    let mut rng = ChaCha8Rng::from_seed(key);
    rng.set_stream(purpose.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    }));
    rng
}

/// How much a port holds back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackPressure {
    /// Share of cycles in which the port holds back, in thousandths; 0 is never, at most 950.
    pub idle: u16,
    /// Longest run of such cycles.
    pub longest: u16,
}

impl BackPressure {
    /// Never holds back.
    pub const NONE: Self = Self {
        idle: 0,
        longest: 1,
    };
    /// Holds back in a third of the cycles, for up to eight at a time.
    pub const SOME: Self = Self {
        idle: 333,
        longest: 8,
    };
}

/// Decides, cycle by cycle, whether a port is open. A draw is made once a run of cycles, not once a cycle.
#[derive(Clone, Debug)]
pub struct Idle {
    rng: ChaCha8Rng,
    pressure: BackPressure,
    open: bool,
    left: u32,
}

impl Idle {
    /// Back-pressure of one port of one card.
    pub fn new(pressure: BackPressure, seed: u64, card: usize, port: &str) -> Self {
        Self {
            rng: generator(seed, card, port),
            pressure,
            open: false,
            left: 0,
        }
    }

    /// Whether the port is open in this cycle. To be called once a cycle.
    #[inline]
    pub fn open(&mut self) -> bool {
        if self.pressure.idle == 0 {
            return true;
        }
        if self.left == 0 {
            self.draw();
        }
        self.left -= 1;
        self.open
    }

    #[cold]
    fn draw(&mut self) {
        // Runs of both kinds are uniform from 1; their means are in the proportion asked for.
        let idle = f64::from(self.pressure.idle.min(950)) / 1000.0;
        let longest_idle = u32::from(self.pressure.longest.max(1));
        let mean_idle = f64::from(longest_idle + 1) / 2.0;
        let mean_open = mean_idle * (1.0 - idle) / idle;
        self.open = !self.open;
        self.left = if self.open {
            // The mean of a uniform draw from 1 to n is (n + 1) / 2; below 1 the port can't be.
            let longest = (2.0 * mean_open - 1.0).max(1.0);
            let whole = longest.floor();
            let longest = whole as u32 + u32::from(self.rng.random_bool(longest - whole));
            self.rng.random_range(1..=longest)
        } else {
            self.rng.random_range(1..=longest_idle)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_without_pressure_is_always_open() {
        let mut idle = Idle::new(BackPressure::NONE, 1, 0, "x");
        assert!((0..1000).all(|_| idle.open()));
    }

    #[test]
    fn the_share_of_idle_cycles_is_about_as_asked() {
        for per_mille in [100, 333, 600] {
            let pressure = BackPressure {
                idle: per_mille,
                longest: 8,
            };
            let mut idle = Idle::new(pressure, 7, 0, "x");
            let closed = (0..100_000).filter(|_| !idle.open()).count();
            let share = closed as f64 / 100.0;
            assert!(
                (share - f64::from(per_mille)).abs() < 50.0,
                "{share} of a thousand, {per_mille} asked"
            );
        }
    }

    #[test]
    fn ports_differ_and_seeds_repeat() {
        let runs = |seed, card, port| {
            let mut idle = Idle::new(BackPressure::SOME, seed, card, port);
            (0..256).map(|_| idle.open()).collect::<Vec<_>>()
        };
        assert_eq!(runs(1, 0, "r"), runs(1, 0, "r"));
        assert_ne!(runs(1, 0, "r"), runs(2, 0, "r"));
        assert_ne!(runs(1, 0, "r"), runs(1, 1, "r"));
        assert_ne!(runs(1, 0, "r"), runs(1, 0, "b"));
    }
}
