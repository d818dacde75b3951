//! Faults on links, by a seeded plan.
//!
//! A plan is a list of faults, each on some links and for some time. Each frame that a fault covers is, with the shares given, lost, repeated, late (so that
//! others overtake it) or changed in one byte. What happens depends on the plan, the seed and the frames alone, so a failure can be replayed. As text a plan is
//! TOML, a table `[[fault]]` for each:
//!
//! ```toml
//! [[fault]]        # everywhere, always: one frame of a hundred is lost
//! lose = 0.01
//!
//! [[fault]]        # nothing gets from card 0 to card 1 for 40,000 cycles
//! source = 0
//! destination = 1
//! begin = 100000
//! end = 140000
//! lose = 1.0
//! ```

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::fabric::{Passing, Tap};
use crate::seed::generator;

/// What happens to the frames of some links for some time. Shares are of the frames, from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinkFault {
    /// Only frames that this card sends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<usize>,
    /// Only frames to this card.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<usize>,
    /// First cycle: of the last beat of a frame, at the card that sends it.
    pub begin: u64,
    /// Cycle before which it ends; never if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<u64>,
    /// Lost.
    pub lose: f64,
    /// One byte changed behind the Ethernet addresses, so that the frame still arrives.
    pub corrupt: f64,
    /// Found bad by the receiving MAC.
    pub bad: f64,
    /// Delivered twice.
    pub repeat: f64,
    /// Late by up to `late_by` cycles.
    pub late: f64,
    /// Most cycles that a late frame is late.
    pub late_by: u64,
}

/// Everything that happens to frames, each fault to what those before have let pass.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultPlan {
    /// The faults.
    #[serde(default, rename = "fault")]
    pub faults: Vec<LinkFault>,
}

impl LinkFault {
    /// What can't be meant.
    fn wrong(&self, cards: usize) -> Option<String> {
        let shares = [
            ("lose", self.lose),
            ("corrupt", self.corrupt),
            ("bad", self.bad),
            ("repeat", self.repeat),
            ("late", self.late),
        ];
        let ends = [("source", self.source), ("destination", self.destination)];
        if let Some((name, share)) = shares
            .into_iter()
            .find(|(_, share)| !(0.0..=1.0).contains(share))
        {
            return Some(format!(
                "{name} is {share}: a share of the frames is from 0 to 1"
            ));
        }
        if let Some((name, Some(card))) = ends
            .into_iter()
            .find(|(_, end)| end.is_some_and(|c| c >= cards))
        {
            return Some(format!(
                "{name} is {card}: there are {cards} cards, counted from 0"
            ));
        }
        if let Some(end) = self.end.filter(|end| *end <= self.begin) {
            return Some(format!(
                "it begins in cycle {} and ends before cycle {end}",
                self.begin
            ));
        }
        if (self.late > 0.0) != (self.late_by > 0) {
            return Some("late and late_by belong together".to_owned());
        }
        None
    }

    fn covers(&self, passing: &Passing) -> bool {
        let at = passing.frame.last;
        self.source.is_none_or(|card| card == passing.source)
            && self
                .destination
                .is_none_or(|card| card == passing.destination)
            && self.begin <= at
            && self.end.is_none_or(|end| at < end)
    }
}

impl FaultPlan {
    /// One fault, on all links and for ever.
    pub fn always(fault: LinkFault) -> Self {
        Self {
            faults: vec![fault],
        }
    }

    /// A plan drawn from a seed, for so many cards and cycles: a little of everything on every link, and a few links that are worse for a time, or cut.
    pub fn random(seed: u64, cards: usize, cycles: u64) -> Self {
        let mut rng = generator(seed, 0, "fault plan");
        let mut share = |most: f64| rng.random_range(most / 5.0..=most);
        let mut faults = vec![LinkFault {
            lose: share(0.01),
            corrupt: share(0.01),
            bad: share(0.005),
            repeat: share(0.01),
            late: share(0.01),
            late_by: 2_000,
            ..LinkFault::default()
        }];
        for _ in 0..rng.random_range(0..4) {
            let begin = rng.random_range(0..cycles.max(1));
            let cut = rng.random_ratio(1, 3);
            // A cut is shorter than a card's patience.
            let lasts = rng.random_range(1_000..30_000);
            faults.push(LinkFault {
                source: Some(rng.random_range(0..cards)),
                destination: Some(rng.random_range(0..cards)),
                begin,
                end: Some(begin + lasts),
                lose: if cut {
                    1.0
                } else {
                    rng.random_range(0.02..0.2)
                },
                ..LinkFault::default()
            });
        }
        Self { faults }
    }

    /// Whether the plan can be meant for so many cards.
    ///
    /// # Errors
    /// Which fault can't, and why.
    pub fn check(&self, cards: usize) -> Result<(), String> {
        let wrong = |(at, fault): (usize, &LinkFault)| {
            let why = fault.wrong(cards)?;
            Some(format!("fault {}: {why}", at + 1))
        };
        self.faults
            .iter()
            .enumerate()
            .find_map(wrong)
            .map_or(Ok(()), Err)
    }
}

/// What has happened to frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
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
    plan: Vec<(LinkFault, ChaCha8Rng)>,
    count: FaultCount,
    passing: Vec<Passing>,
    finished: Option<Box<dyn FnOnce(FaultCount) + Send>>,
}

impl Faults {
    /// Faults by `plan`; `purpose` keeps the draws of several such taps apart.
    pub fn new(plan: &FaultPlan, seed: u64, purpose: &str) -> Self {
        let draws = |at: usize| generator(seed, usize::MAX - at, purpose);
        let faults = plan.faults.iter().enumerate();
        Self {
            plan: faults.map(|(at, fault)| (*fault, draws(at))).collect(),
            count: FaultCount::default(),
            passing: Vec::new(),
            finished: None,
        }
    }

    /// Tells `finished` at the end what has happened.
    #[must_use]
    pub fn on_finish(mut self, finished: impl FnOnce(FaultCount) + Send + 'static) -> Self {
        self.finished = Some(Box::new(finished));
        self
    }
}

/// Does to a frame what the fault says.
fn strike(
    fault: &LinkFault,
    rng: &mut ChaCha8Rng,
    count: &mut FaultCount,
    mut passing: Passing,
    out: &mut Vec<Passing>,
) {
    // All draws are made for every frame, so that one fault doesn't move the next.
    let mut strikes = |share: f64| rng.random_bool(share);
    let lose = strikes(fault.lose);
    let corrupt = strikes(fault.corrupt);
    let bad = strikes(fault.bad);
    let repeat = strikes(fault.repeat);
    let late = strikes(fault.late);
    let delay = rng.random_range(1..=fault.late_by.max(1));
    let place = rng.random::<u32>() as usize;
    let flip = rng.random_range(1..=u8::MAX);
    if lose {
        count.lost += 1;
        return;
    }
    if repeat {
        count.repeated += 1;
        out.push(passing.clone());
    }
    if let Some(behind) = passing.frame.bytes.len().checked_sub(12).filter(|&n| n > 0)
        && corrupt
    {
        count.corrupted += 1;
        passing.frame.bytes[12 + place % behind] ^= flip;
    }
    if bad {
        count.bad += 1;
        passing.frame.bad = true;
    }
    if late {
        count.late += 1;
        passing.delay += delay;
    }
    out.push(passing);
}

impl Tap for Faults {
    fn pass(&mut self, passing: Passing, out: &mut Vec<Passing>) {
        self.count.frames += 1;
        out.push(passing);
        for (fault, rng) in &mut self.plan {
            self.passing.append(out);
            for passing in self.passing.drain(..) {
                match fault.covers(&passing) {
                    true => strike(fault, rng, &mut self.count, passing, out),
                    false => out.push(passing),
                }
            }
        }
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

    fn run(plan: &FaultPlan, seed: u64) -> (Vec<Passing>, FaultCount) {
        let mut faults = Faults::new(plan, seed, "test");
        let mut all = Vec::new();
        for k in 0..2000 {
            let passing = Passing {
                frame: Frame {
                    bytes: vec![k as u8; 64],
                    last: k,
                    ..Frame::default()
                },
                source: 0,
                destination: 1,
                delay: 0,
            };
            let mut out = Vec::new();
            faults.pass(passing, &mut out);
            all.append(&mut out);
        }
        (all, faults.count)
    }

    #[test]
    fn without_a_plan_nothing_happens() {
        let (out, count) = run(&FaultPlan::default(), 1);
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
        let plan = FaultPlan::always(LinkFault {
            lose: 0.1,
            corrupt: 0.1,
            bad: 0.1,
            repeat: 0.1,
            late: 0.1,
            late_by: 500,
            ..LinkFault::default()
        });
        let (out, count) = run(&plan, 3);
        assert_eq!((out.clone(), count), run(&plan, 3));
        assert_ne!(out, run(&plan, 4).0);
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

    #[test]
    fn a_fault_strikes_its_links_and_its_time_and_nothing_else() {
        let cut = LinkFault {
            begin: 500,
            end: Some(700),
            lose: 1.0,
            ..LinkFault::default()
        };
        let left = |fault: LinkFault| {
            let (out, _) = run(&FaultPlan::always(fault), 1);
            out.iter().map(|p| p.frame.last).collect::<Vec<_>>()
        };
        let sound: Vec<u64> = (0..500).chain(700..2000).collect();
        assert_eq!(left(cut), sound);
        let to = |source, destination| LinkFault {
            source,
            destination,
            ..cut
        };
        assert_eq!(left(to(Some(0), Some(1))), sound);
        assert_eq!(left(to(Some(1), None)).len(), 2000);
        assert_eq!(left(to(None, Some(0))).len(), 2000);
    }

    #[test]
    fn a_plan_that_cannot_be_meant_is_told() {
        let wrong = |fault: LinkFault| FaultPlan::always(fault).check(2).expect_err("it is wrong");
        let sound = LinkFault::default();
        let share = LinkFault { lose: 1.5, ..sound };
        assert_eq!(
            wrong(share),
            "fault 1: lose is 1.5: a share of the frames is from 0 to 1"
        );
        let card = LinkFault {
            destination: Some(2),
            ..sound
        };
        assert_eq!(
            wrong(card),
            "fault 1: destination is 2: there are 2 cards, counted from 0"
        );
        let time = LinkFault {
            begin: 5,
            end: Some(5),
            ..sound
        };
        assert_eq!(
            wrong(time),
            "fault 1: it begins in cycle 5 and ends before cycle 5"
        );
        let late = LinkFault { late: 0.5, ..sound };
        assert_eq!(wrong(late), "fault 1: late and late_by belong together");
        for seed in 0..100 {
            assert_eq!(FaultPlan::random(seed, 3, 50_000).check(3), Ok(()));
        }
    }
}
