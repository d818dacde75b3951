//! Who is shut out: the peers to which something was refused too often, for a while.

use abi::control::{ShutOutReport, ShutOutSetup};
use abi::times::{SHUT_OUT_LIMIT, SHUT_OUT_TICK, SHUT_OUT_TICKS};

/// Of a pair.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    setup: ShutOutSetup,
    count: u16,
    /// Cycle from which on the peer isn't shut out.
    until: u64,
}

/// What is known of all pairs.
#[derive(Clone, Debug)]
pub struct ShutOuts {
    pairs: Vec<Held>,
}

impl ShutOuts {
    /// Nobody is shut out, and nobody will be before its pair is connected.
    pub fn new(pairs: usize) -> Self {
        Self {
            pairs: vec![Held::default(); pairs],
        }
    }

    /// A pair is connected: the card's own limit and time are its.
    pub fn connect(&mut self, pair: u16) {
        let setup = ShutOutSetup {
            limit: SHUT_OUT_LIMIT,
            ticks: SHUT_OUT_TICKS,
            ..ShutOutSetup::default()
        };
        self.set(pair, setup);
    }

    /// Chooses limit and time of a pair. Its count starts anew, and its peer isn't shut out.
    pub fn set(&mut self, pair: u16, setup: ShutOutSetup) {
        if let Some(held) = self.pairs.get_mut(usize::from(pair)) {
            *held = Held {
                setup,
                ..Held::default()
            };
        }
    }

    /// Whether a peer is shut out.
    pub fn denies(&self, pair: u16, now: u64) -> bool {
        let held = self.pairs.get(usize::from(pair));
        held.is_some_and(|held| now < held.until)
    }

    /// An access of a peer that isn't shut out was refused.
    pub fn refused(&mut self, pair: u16, now: u64) {
        let Some(held) = self.pairs.get_mut(usize::from(pair)) else {
            return;
        };
        if held.setup.limit == 0 {
            return;
        }
        held.count += 1;
        if held.count >= held.setup.limit {
            held.count = 0;
            held.until = now + u64::from(held.setup.ticks) * u64::from(SHUT_OUT_TICK);
        }
    }

    /// What `ShutOutRead` answers.
    pub fn report(&self, pair: u16, now: u64) -> ShutOutReport {
        let held = self.pairs.get(usize::from(pair)).copied();
        let held = held.unwrap_or_default();
        let left = held.until.saturating_sub(now);
        ShutOutReport {
            limit: held.setup.limit,
            ticks: held.setup.ticks,
            count: held.count,
            left: left.div_ceil(SHUT_OUT_TICK.into()) as u16,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_refusal_that_reaches_the_limit_shuts_out_for_the_time() {
        let tick = u64::from(SHUT_OUT_TICK);
        let mut all = ShutOuts::new(2);
        all.refused(1, 0);
        assert!(!all.denies(1, 1), "it isn't connected");
        all.connect(1);
        assert_eq!(all.report(1, 0).limit, SHUT_OUT_LIMIT);
        let setup = ShutOutSetup {
            limit: 3,
            ticks: 2,
            ..ShutOutSetup::default()
        };
        all.set(1, setup);
        for round in [100, 10_000] {
            for now in round..round + 3 {
                assert!(!all.denies(1, now));
                all.refused(1, now);
            }
            let end = round + 2 + 2 * tick;
            assert_eq!(all.report(1, round + 3).count, 0);
            assert_eq!(all.report(1, round + 3).left, 2);
            assert!(all.denies(1, end - 1) && !all.denies(1, end));
            assert!(!all.denies(0, end - 1), "another one's");
        }
        all.set(1, ShutOutSetup::default());
        (0..0x2_0000).for_each(|now| all.refused(1, now));
        assert!(!all.denies(1, 0x2_0001), "without a limit nobody is");
        assert!(!all.denies(2, 0) && all.report(2, 0) == ShutOutReport::default());
    }
}
