//! Faults on links, by a seeded plan.
//!
//! Each frame is, with the shares given, lost, repeated, late (so that others overtake it) or changed in one
//! byte. The plan depends on the seed and on the frames alone, so a failure can be replayed.

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use crate::fabric::{Passing, Tap};
use crate::seed::generator;

/// What happens to frames, in thousandths of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultPlan {
    /// Lost.
    pub lose: u16,
    /// One byte changed behind the Ethernet addresses, so that the frame still arrives.
    pub corrupt: u16,
    /// Found bad by the receiving MAC.
    pub bad: u16,
    /// Delivered twice.
    pub repeat: u16,
    /// Late by up to `late_by` cycles.
    pub late: u16,
    /// Most cycles that a late frame is late.
    pub late_by: u64,
}

/// What has happened to frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCount {
    /// Frames seen.
    pub frames: u64,
    /// Lost.
    pub lost: u64,
    /// Changed.
    pub corrupted: u64,
    /// Marked bad.
    pub bad: u64,
    /// Repeated.
    pub repeated: u64,
    /// Late.
    pub late: u64,
}

/// A tap that injects the faults of a plan.
pub struct Faults {
    plan: FaultPlan,
    rng: ChaCha8Rng,
    count: FaultCount,
    finished: Option<Box<dyn FnOnce(FaultCount) + Send>>,
}

impl Faults {
    /// Faults by `plan`; `purpose` keeps the draws of several such taps apart.
    pub fn new(plan: FaultPlan, seed: u64, purpose: &str) -> Self {
        Self {
            plan,
            rng: generator(seed, usize::MAX, purpose),
            count: FaultCount::default(),
            finished: None,
        }
    }

    /// Tells `finished` at the end what has happened.
    #[must_use]
    pub fn on_finish(mut self, finished: impl FnOnce(FaultCount) + Send + 'static) -> Self {
        self.finished = Some(Box::new(finished));
        self
    }

    fn strikes(&mut self, share: u16) -> bool {
        self.rng.random_range(0..1000) < share
    }
}

impl Tap for Faults {
    fn pass(&mut self, mut passing: Passing, out: &mut Vec<Passing>) {
        // All draws are made for every frame, so that one fault doesn't move the next.
        let lose = self.strikes(self.plan.lose);
        let corrupt = self.strikes(self.plan.corrupt);
        let bad = self.strikes(self.plan.bad);
        let repeat = self.strikes(self.plan.repeat);
        let late = self.strikes(self.plan.late);
        let delay = self.rng.random_range(1..=self.plan.late_by.max(1));
        let place = self.rng.random::<u32>() as usize;
        let flip = self.rng.random_range(1..=u8::MAX);
        self.count.frames += 1;
        if lose {
            self.count.lost += 1;
            return;
        }
        if repeat {
            self.count.repeated += 1;
            out.push(passing.clone());
        }
        if let Some(behind) = passing.frame.bytes.len().checked_sub(12).filter(|&n| n > 0)
            && corrupt
        {
            self.count.corrupted += 1;
            passing.frame.bytes[12 + place % behind] ^= flip;
        }
        if bad {
            self.count.bad += 1;
            passing.frame.bad = true;
        }
        if late {
            self.count.late += 1;
            passing.delay += delay;
        }
        out.push(passing);
    }

    fn finish(&mut self) -> std::io::Result<()> {
        if let Some(finished) = self.finished.take() {
            finished(self.count);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Frame;

    fn run(plan: FaultPlan, seed: u64) -> (Vec<Passing>, FaultCount) {
        let mut faults = Faults::new(plan, seed, "test");
        let mut out = Vec::new();
        for k in 0..2000 {
            let passing = Passing {
                frame: Frame {
                    bytes: vec![k as u8; 64],
                    ..Frame::default()
                },
                source: 0,
                destination: 1,
                delay: 0,
            };
            faults.pass(passing, &mut out);
        }
        (out, faults.count)
    }

    #[test]
    fn without_a_plan_nothing_happens() {
        let (out, count) = run(FaultPlan::default(), 1);
        assert_eq!(out.len(), 2000);
        assert_eq!(
            count,
            FaultCount {
                frames: 2000,
                ..FaultCount::default()
            }
        );
    }

    #[test]
    fn each_fault_strikes_about_its_share_and_repeats_with_the_seed() {
        let plan = FaultPlan {
            lose: 100,
            corrupt: 100,
            bad: 100,
            repeat: 100,
            late: 100,
            late_by: 500,
        };
        let (out, count) = run(plan, 3);
        assert_eq!((out.clone(), count), run(plan, 3));
        assert_ne!(out, run(plan, 4).0);
        for (name, share) in [
            ("lost", count.lost),
            ("corrupted", count.corrupted),
            ("bad", count.bad),
            ("repeated", count.repeated),
            ("late", count.late),
        ] {
            assert!((120..280).contains(&share), "{share} {name}");
        }
        let changed = out.iter().filter(|p| {
            let bytes = &p.frame.bytes;
            assert!(bytes[..12].iter().all(|b| *b == bytes[0]), "addresses stay");
            bytes.iter().any(|b| *b != bytes[0])
        });
        assert_eq!(changed.count() as u64, count.corrupted);
        let late = out.iter().filter(|p| p.delay > 0).count() as u64;
        assert_eq!(late, count.late);
        assert!(out.iter().all(|p| p.delay <= 500));
        assert_eq!(out.len() as u64, 2000 - count.lost + count.repeated);
    }
}
