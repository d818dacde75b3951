//! A tap that does to frames what a plan says.
//!
//! ```text
//!  frame ─► partitions ─► holds ─► fault 1 ─► fault 2 ─► … ─► what is left of it
//! ```

use std::collections::{HashMap, HashSet};
use std::fmt;

use abi::wire::{FrameHeader, FrameType};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use super::plan::{FaultPlan, Hold, LinkFault, Partition};
use crate::fabric::{Passing, Tap};
use crate::seed::generator;

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
    /// Slowed down by a link that carried less.
    pub slowed: u64,
    /// Lost between the sides of a partition.
    pub parted: u64,
    /// Held back, and lost because they repeat one that is.
    pub held: u64,
}

impl FaultCount {
    /// Adds what happened elsewhere.
    pub const fn add(&mut self, other: &Self) {
        self.frames += other.frames;
        self.lost += other.lost;
        self.corrupted += other.corrupted;
        self.bad += other.bad;
        self.repeated += other.repeated;
        self.late += other.late;
        self.slowed += other.slowed;
        self.parted += other.parted;
        self.held += other.held;
    }
}

impl fmt::Display for FaultCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            frames,
            lost,
            corrupted,
            bad,
            repeated,
            late,
            slowed,
            parted,
            held,
        } = self;
        write!(
            f,
            "of {frames} frames {lost} lost, {corrupted} changed, {bad} bad, {repeated} repeated, {late} late, {slowed} slowed, {parted} parted, {held} held"
        )
    }
}

/// A fault of links and what it remembers.
struct Striking {
    fault: LinkFault,
    rng: ChaCha8Rng,
    /// First cycle in which each link is free that carries less.
    free: HashMap<(usize, usize), u64>,
}

/// A message to be held back.
struct Holding {
    hold: Hold,
    kind: Option<FrameType>,
    /// Those of its kind that have passed.
    seen: HashSet<Identity>,
    /// The one that is held.
    held: Option<Identity>,
}

/// What tells a message from all others of its link: the connection, the class, the number.
type Identity = (u16, u32, u8, u32);

/// A tap that injects the faults of a plan.
pub struct Faults {
    plan: Vec<Striking>,
    partitions: Vec<Partition>,
    holds: Vec<Holding>,
    count: FaultCount,
    passing: Vec<Passing>,
    passed: Vec<Passing>,
    finished: Option<Box<dyn FnOnce(FaultCount) + Send>>,
}

impl Faults {
    /// Faults by `plan`; `purpose` keeps the draws of several such taps apart.
    pub fn new(plan: &FaultPlan, seed: u64, purpose: &str) -> Self {
        let draws = |at: usize| generator(seed, usize::MAX - at, purpose);
        let faults = plan.faults.iter().enumerate();
        Self {
            plan: faults
                .map(|(at, fault)| Striking {
                    fault: *fault,
                    rng: draws(at),
                    free: HashMap::new(),
                })
                .collect(),
            partitions: plan.partitions.clone(),
            holds: plan
                .holds
                .iter()
                .map(|hold| Holding {
                    hold: hold.clone(),
                    kind: hold.frame_type(),
                    seen: HashSet::new(),
                    held: None,
                })
                .collect(),
            count: FaultCount::default(),
            passing: Vec::new(),
            passed: Vec::new(),
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

/// What becomes of a frame for a message that is held back.
enum Kept {
    Passes,
    Until(u64),
    Lost,
}

impl Holding {
    fn keep(&mut self, passing: &Passing) -> Kept {
        let Self {
            hold,
            kind,
            seen,
            held,
        } = self;
        if (hold.source, hold.destination) != (passing.source, passing.destination) {
            return Kept::Passes;
        }
        let (Ok(header), Some(kind)) = (FrameHeader::parse(&passing.frame.bytes), *kind) else {
            return Kept::Passes;
        };
        let bits = hold.match_bits.is_none_or(|bits| bits == header.match_bits);
        if header.frame_type != kind.code() || !bits {
            return Kept::Passes;
        }
        let mine: Identity = (
            header.destination_pair,
            header.cookie,
            header.frame_type,
            header.sequence,
        );
        if *held == Some(mine) {
            let late = passing.frame.last < hold.release && !hold.repeats_pass;
            return if late { Kept::Lost } else { Kept::Passes };
        }
        let is_it = held.is_none() && seen.len() as u64 == hold.nth && !seen.contains(&mine);
        if held.is_none() {
            seen.insert(mine);
        }
        if !is_it {
            return Kept::Passes;
        }
        *held = Some(mine);
        Kept::Until(hold.release)
    }
}

/// Delays a frame for as long as a link takes that carries less, or the frames before it took. True if that is later than it would have been.
fn slow(fault: &LinkFault, free: &mut HashMap<(usize, usize), u64>, passing: &mut Passing) -> bool {
    let link = (passing.source, passing.destination);
    let Some(bandwidth) = fault.bandwidth.filter(|_| fault.is_on(link.0, link.1)) else {
        return false;
    };
    let frame = &passing.frame;
    let bytes = match fault.covers(passing) {
        true => frame.bytes.len() as u64,
        // Frames behind it don't overtake, and are as fast as ever.
        false => 0,
    };
    let free = free.entry(link).or_default();
    let start = (*free).max(frame.first);
    let soonest = frame.last + 1;
    let end = (start + bytes.div_ceil(u64::from(bandwidth.max(1)))).max(soonest);
    *free = end;
    passing.delay += end - soonest;
    end > soonest
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
        if self.partitions.iter().any(|parts| parts.cuts(&passing)) {
            self.count.parted += 1;
            return;
        }
        let mut passing = passing;
        for holding in &mut self.holds {
            match holding.keep(&passing) {
                Kept::Passes => {}
                Kept::Until(cycle) => {
                    self.count.held += 1;
                    passing.delay += cycle.saturating_sub(passing.frame.last);
                }
                Kept::Lost => {
                    self.count.held += 1;
                    return;
                }
            }
        }
        // What is in `out` already has passed.
        self.passing.push(passing);
        for Striking { fault, rng, free } in &mut self.plan {
            for mut passing in self.passing.drain(..) {
                if slow(fault, free, &mut passing) {
                    self.count.slowed += 1;
                }
                match fault.covers(&passing) {
                    true => strike(fault, rng, &mut self.count, passing, &mut self.passed),
                    false => self.passed.push(passing),
                }
            }
            std::mem::swap(&mut self.passing, &mut self.passed);
        }
        out.append(&mut self.passing);
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

    /// Runs frames by a plan: pairs of the cycle in which each was sent and its delay.
    fn delays(plan: &FaultPlan, frames: &[Passing]) -> Vec<(u64, u64)> {
        let mut faults = Faults::new(plan, 1, "test");
        let mut all = Vec::new();
        for passing in frames {
            faults.pass(passing.clone(), &mut all);
        }
        all.iter().map(|p| (p.frame.last, p.delay)).collect()
    }

    fn plain(source: usize, destination: usize, last: u64) -> Passing {
        let frame = Frame {
            bytes: vec![0; 64],
            first: last - 7,
            last,
            ..Frame::default()
        };
        Passing {
            frame,
            source,
            destination,
            delay: 0,
        }
    }

    #[test]
    fn a_link_with_less_bandwidth_makes_frames_queue_and_none_overtakes() {
        let plan = FaultPlan::always(LinkFault {
            source: Some(0),
            begin: 100,
            end: Some(120),
            bandwidth: Some(1),
            ..LinkFault::default()
        });
        let frames = [90, 107, 118, 130, 400].map(|last| plain(0, 1, last));
        // 64 cycles each from cycle 100 on: until 164, until 228, and the next follows at once.
        let told = [(90, 0), (107, 56), (118, 109), (130, 97), (400, 0)];
        assert_eq!(delays(&plan, &frames), told);
        let others = [107, 118].map(|last| plain(1, 0, last));
        assert_eq!(delays(&plan, &others), [(107, 0), (118, 0)]);
    }

    #[test]
    fn the_sides_of_a_partition_do_not_hear_each_other_until_it_ends() {
        let plan = FaultPlan {
            partitions: vec![Partition {
                sides: [vec![0, 1], vec![2]],
                begin: 100,
                end: Some(200),
            }],
            ..FaultPlan::default()
        };
        for (source, destination, is_cut) in [
            (0, 2, true),
            (2, 0, true),
            (2, 1, true),
            (0, 1, false),
            (0, 3, false),
            (3, 2, false),
        ] {
            let frames = [99, 100, 199, 200].map(|last| plain(source, destination, last));
            let left = delays(&plan, &frames).len();
            assert_eq!(
                left,
                if is_cut { 2 } else { 4 },
                "{source} to {destination}"
            );
        }
    }

    /// A message with a number on its pair.
    fn message(sequence: u32, match_bits: u64, last: u64) -> Passing {
        let header = FrameHeader {
            frame_type: FrameType::Eager.code(),
            sequence,
            match_bits,
            ..FrameHeader::default()
        };
        let mut passing = plain(0, 1, last);
        passing.frame.bytes.resize(128, 0);
        header.emit(&mut passing.frame.bytes);
        passing
    }

    #[test]
    fn the_message_that_is_held_back_comes_when_it_is_released_and_its_repeats_do_not_before() {
        let hold = Hold {
            match_bits: Some(7),
            nth: 1,
            ..Hold::next(0, 1, 1000)
        };
        let held = |hold: Hold, frames: &[Passing]| {
            let holds = vec![hold];
            let plan = FaultPlan {
                holds,
                ..FaultPlan::default()
            };
            delays(&plan, frames)
        };
        let frames = [
            message(0, 7, 100),
            message(0, 7, 110),
            message(1, 8, 120),
            message(2, 7, 200),
            message(3, 7, 210),
            message(2, 7, 900),
            message(2, 7, 1100),
        ];
        let others = [(100, 0), (110, 0), (120, 0)];
        let told = [&others[..], &[(200, 800), (210, 0), (1100, 0)]].concat();
        assert_eq!(held(hold.clone(), &frames), told);
        let hold = Hold {
            repeats_pass: true,
            ..hold
        };
        let told = [&others[..], &[(200, 800), (210, 0), (900, 0), (1100, 0)]].concat();
        assert_eq!(held(hold.clone(), &frames), told);
        let kind = FrameType::Acknowledge.name().to_owned();
        assert_eq!(held(Hold { kind, ..hold }, &frames).len(), frames.len());
    }
}
