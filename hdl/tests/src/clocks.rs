//! Two clocks of a block, at any ratio and any phase.

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::Bench;

/// When each clock rises next, its period, and by how much that wavers.
pub struct Clocks {
    pins: [&'static str; 2],
    next: [u64; 2],
    periods: [u64; 2],
    wavers: [u64; 2],
}

impl Clocks {
    /// Clocks whose periods waver by up to a quarter, so that one overtakes the other now and then.
    pub fn wavering(pins: [&'static str; 2], periods: [u64; 2], rng: &mut ChaCha8Rng) -> Self {
        Clocks {
            wavers: periods.map(|period| period / 4),
            ..Self::steady(pins, periods, rng)
        }
    }

    /// Clocks that keep their periods; the phase is random.
    pub fn steady(pins: [&'static str; 2], periods: [u64; 2], rng: &mut ChaCha8Rng) -> Self {
        Clocks {
            pins,
            next: periods.map(|period| rng.random_range(1..=period)),
            periods,
            wavers: [0; 2],
        }
    }

    /// Clocks that keep their periods and rise together at the start, and whenever their periods meet.
    pub fn aligned(pins: [&'static str; 2], periods: [u64; 2]) -> Self {
        Clocks {
            pins,
            next: [1; 2],
            periods,
            wavers: [0; 2],
        }
    }

    /// Those that rise at the next time at which any does.
    pub fn rising(&mut self, rng: &mut ChaCha8Rng) -> [bool; 2] {
        let now = self.next[0].min(self.next[1]);
        let rising = self.next.map(|next| next == now);
        for side in (0..2).filter(|side| rising[*side]) {
            let waver = self.wavers[side];
            self.next[side] += self.periods[side] - waver + rng.random_range(0..=2 * waver);
        }
        rising
    }

    /// Lets these clocks rise at once; the inputs were set before, and the outputs read.
    pub fn rise(&self, bench: &mut Bench, rising: [bool; 2]) {
        for (clock, rises) in self.pins.into_iter().zip(rising) {
            bench.set(clock, rises);
        }
        bench.settle();
    }

    /// Both clocks low again.
    pub fn fall(&self, bench: &mut Bench) {
        for clock in self.pins {
            bench.set(clock, false);
        }
        bench.eval();
    }
}
