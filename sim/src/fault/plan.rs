//! What a plan of faults says, and whether it can be meant.

use std::ops::Range;

use abi::wire::FrameType;
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::fabric::Passing;
use crate::seed::generator;

/// Cycles from the first to the one before `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// First cycle.
    pub begin: u64,
    /// Cycle before which it ends.
    pub end: u64,
}

impl Span {
    /// Whether it has this cycle.
    pub const fn contains(self, cycle: u64) -> bool {
        self.begin <= cycle && cycle < self.end
    }

    fn wrong(self, name: &str) -> Option<String> {
        let Self { begin, end } = self;
        (end <= begin)
            .then(|| format!("{name} begins in cycle {begin} and ends before cycle {end}"))
    }
}

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
    /// Bytes a cycle that each link carries, if it isn't as fast as ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<u32>,
}

/// Two sets of cards that don't hear each other for some time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Partition {
    /// The cards of either side. Cards of neither hear both.
    pub sides: [Vec<usize>; 2],
    /// First cycle.
    #[serde(default)]
    pub begin: u64,
    /// Cycle before which it ends; never if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<u64>,
}

/// One message that is held back and delivered later. What is sent behind it goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hold {
    /// Card that sends it.
    pub source: usize,
    /// Card that it is for.
    pub destination: usize,
    /// Name of the type of its frame; `Eager`, a message, if it isn't said.
    #[serde(default = "eager", skip_serializing_if = "is_eager")]
    pub kind: String,
    /// Only a frame with these match bits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub match_bits: Option<u64>,
    /// Which of them, counted from 0. A repeated frame isn't counted again.
    #[serde(default)]
    pub nth: u64,
    /// Cycle in which it goes on.
    pub release: u64,
    /// Frames that repeat it pass, so that it comes late as a duplicate. Otherwise they are lost until then: the message isn't there before.
    #[serde(default)]
    pub repeats_pass: bool,
}

fn eager() -> String {
    FrameType::Eager.name().to_owned()
}

fn is_eager(kind: &String) -> bool {
    *kind == FrameType::Eager.name()
}

/// What happens to the host of a card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostPlan {
    /// Which card's.
    pub card: usize,
    /// Cycle in which its process is killed: its program does nothing more, and what it had is closed as an operating system closes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kill: Option<u64>,
    /// Cycles in which it stands still.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freeze: Option<Span>,
}

/// What happens to a card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CardPlan {
    /// Which.
    pub card: usize,
    /// Cycle in which its power is cut: nothing comes out of it any more, and nothing goes in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kill: Option<u64>,
    /// Cycles in which its processor stands still: its clock doesn't rise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_firmware: Option<Span>,
    /// Cycles in which its host's memory takes and gives nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall_memory: Option<Span>,
}

/// Everything that goes wrong. Of the faults of links each meets what those before have let pass.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FaultPlan {
    /// Of links, `[[fault]]`.
    #[serde(rename = "fault", skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<LinkFault>,
    /// Cards that don't hear each other, `[[partition]]`.
    #[serde(rename = "partition", skip_serializing_if = "Vec::is_empty")]
    pub partitions: Vec<Partition>,
    /// Messages that are held back, `[[hold]]`.
    #[serde(rename = "hold", skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<Hold>,
    /// Of hosts, `[[host]]`.
    #[serde(rename = "host", skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostPlan>,
    /// Of cards, `[[card]]`.
    #[serde(rename = "card", skip_serializing_if = "Vec::is_empty")]
    pub cards: Vec<CardPlan>,
}

/// Why a card that is named isn't one, if it isn't.
fn no_card(name: &str, card: usize, cards: usize) -> Option<String> {
    (card >= cards).then(|| format!("{name} is {card}: there are {cards} cards, counted from 0"))
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
        if let Some(wrong) = ends
            .into_iter()
            .find_map(|(name, card)| no_card(name, card?, cards))
        {
            return Some(wrong);
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
        if self.bandwidth == Some(0) {
            return Some("bandwidth is 0 bytes a cycle: a link that carries nothing loses everything, lose = 1.0".to_owned());
        }
        None
    }

    /// Whether frames from one card to another are its affair, at some time.
    pub(super) fn is_on(&self, source: usize, destination: usize) -> bool {
        self.source.is_none_or(|card| card == source)
            && self.destination.is_none_or(|card| card == destination)
    }

    pub(super) fn covers(&self, passing: &Passing) -> bool {
        let at = passing.frame.last;
        self.is_on(passing.source, passing.destination)
            && self.begin <= at
            && self.end.is_none_or(|end| at < end)
    }
}

impl Partition {
    fn wrong(&self, cards: usize) -> Option<String> {
        let [one, other] = &self.sides;
        if let Some(wrong) = one
            .iter()
            .chain(other)
            .find_map(|&card| no_card("a card of its sides", card, cards))
        {
            return Some(wrong);
        }
        if one.is_empty() || other.is_empty() {
            return Some("a side has no card".to_owned());
        }
        if let Some(both) = one.iter().find(|card| other.contains(card)) {
            return Some(format!("card {both} is on both sides"));
        }
        let end = self.end.unwrap_or(u64::MAX);
        let span = Span {
            begin: self.begin,
            end,
        };
        span.wrong("it")
    }

    pub(super) fn cuts(&self, passing: &Passing) -> bool {
        let [one, other] = &self.sides;
        let crosses = |from: &[usize], to: &[usize]| {
            from.contains(&passing.source) && to.contains(&passing.destination)
        };
        let at = passing.frame.last;
        self.begin <= at
            && self.end.is_none_or(|end| at < end)
            && (crosses(one, other) || crosses(other, one))
    }
}

impl Hold {
    /// The next message from one card to another.
    pub fn next(source: usize, destination: usize, release: u64) -> Self {
        Self {
            source,
            destination,
            kind: eager(),
            match_bits: None,
            nth: 0,
            release,
            repeats_pass: false,
        }
    }

    /// The type of its frame, if there is one of that name.
    pub(super) fn frame_type(&self) -> Option<FrameType> {
        let mut all = FrameType::ALL.iter().copied();
        all.find(|kind| kind.name() == self.kind)
    }

    fn wrong(&self, cards: usize) -> Option<String> {
        let ends = [("source", self.source), ("destination", self.destination)];
        let mut ends = ends.into_iter();
        if let Some(wrong) = ends.find_map(|(name, card)| no_card(name, card, cards)) {
            return Some(wrong);
        }
        if self.frame_type().is_none() {
            let all: Vec<_> = FrameType::ALL.iter().map(|kind| kind.name()).collect();
            let (kind, all) = (&self.kind, all.join(", "));
            return Some(format!("kind is {kind}: frames are {all}"));
        }
        None
    }
}

impl HostPlan {
    fn wrong(&self, cards: usize) -> Option<String> {
        no_card("card", self.card, cards)
            .or_else(|| self.freeze?.wrong("freeze"))
            .or_else(|| {
                let nothing = self.kill.is_none() && self.freeze.is_none();
                nothing.then(|| "it has neither kill nor freeze".to_owned())
            })
    }
}

impl CardPlan {
    fn wrong(&self, cards: usize) -> Option<String> {
        let nothing =
            self.kill.is_none() && self.pause_firmware.is_none() && self.stall_memory.is_none();
        no_card("card", self.card, cards)
            .or_else(|| self.pause_firmware?.wrong("pause_firmware"))
            .or_else(|| self.stall_memory?.wrong("stall_memory"))
            .or_else(|| {
                nothing.then(|| "it has none of kill, pause_firmware and stall_memory".to_owned())
            })
    }
}

impl FaultPlan {
    /// One fault, on all links and for ever.
    pub fn always(fault: LinkFault) -> Self {
        Self {
            faults: vec![fault],
            ..Self::default()
        }
    }

    /// A plan drawn from a seed, for so many cards, that every pair survives: a little of everything on every link, and for a time, which begins in one of these
    /// cycles, a few links that are worse or slower, cards that don't hear each other, a message that is late, a host that stands still, memory that doesn't
    /// answer.
    ///
    /// # Panics
    /// If there are no cycles.
    pub fn random(seed: u64, cards: usize, cycles: Range<u64>) -> Self {
        let mut rng = generator(seed, 0, "fault plan");
        let mut share = |most: f64| rng.random_range(most / 5.0..=most);
        let mut plan = Self::always(LinkFault {
            lose: share(0.01),
            corrupt: share(0.01),
            bad: share(0.005),
            repeat: share(0.01),
            late: share(0.01),
            late_by: 2_000,
            ..LinkFault::default()
        });
        let link = |rng: &mut ChaCha8Rng| {
            let source = rng.random_range(0..cards);
            let destination = rng.random_range(0..cards);
            (Some(source), Some(destination))
        };
        // What cuts a pair off lasts, all together, less than the 23 time-outs after which a card tries for the last time.
        let span = |rng: &mut ChaCha8Rng, most: u64| {
            let begin = rng.random_range(cycles.clone());
            let end = begin + rng.random_range(1_000..most);
            Span { begin, end }
        };
        for _ in 0..rng.random_range(0..4) {
            let cut = rng.random_ratio(1, 3);
            let Span { begin, end } = span(&mut rng, 20_000);
            let (source, destination) = link(&mut rng);
            plan.faults.push(LinkFault {
                source,
                destination,
                begin,
                end: Some(end),
                lose: if cut {
                    1.0
                } else {
                    rng.random_range(0.02..0.2)
                },
                ..LinkFault::default()
            });
        }
        if rng.random_ratio(1, 3) {
            let Span { begin, end } = span(&mut rng, 30_000);
            let (source, destination) = link(&mut rng);
            plan.faults.push(LinkFault {
                source,
                destination,
                begin,
                end: Some(end),
                bandwidth: Some(rng.random_range(1..4)),
                ..LinkFault::default()
            });
        }
        if cards > 1 && rng.random_ratio(1, 3) {
            let Span { begin, end } = span(&mut rng, 15_000);
            let first = rng.random_range(1..cards);
            plan.partitions.push(Partition {
                sides: [(0..first).collect(), (first..cards).collect()],
                begin,
                end: Some(end),
            });
        }
        if rng.random_ratio(1, 3) {
            let source = rng.random_range(0..cards);
            let destination = rng.random_range(0..cards);
            // It is held from when it is sent, which may be at any time: a duplicate costs its pair nothing however long that is.
            let release = rng.random_range(cycles.clone());
            plan.holds.push(Hold {
                nth: rng.random_range(0..20),
                repeats_pass: true,
                ..Hold::next(source, destination, release)
            });
        }
        if rng.random_ratio(1, 3) {
            plan.hosts.push(HostPlan {
                card: rng.random_range(0..cards),
                freeze: Some(span(&mut rng, 50_000)),
                ..HostPlan::default()
            });
        }
        if rng.random_ratio(1, 3) {
            plan.cards.push(CardPlan {
                card: rng.random_range(0..cards),
                stall_memory: Some(span(&mut rng, 15_000)),
                ..CardPlan::default()
            });
        }
        plan
    }

    /// A [random](Self::random) plan in which, in one of these cycles, a process is killed or a card.
    ///
    /// # Panics
    /// If there are no cycles.
    pub fn deadly(seed: u64, cards: usize, cycles: Range<u64>) -> Self {
        let mut plan = Self::random(seed, cards, cycles.clone());
        let mut rng = generator(seed, 1, "fault plan");
        let card = rng.random_range(0..cards);
        let kill = Some(rng.random_range(cycles));
        match rng.random() {
            true => plan.hosts.push(HostPlan {
                card,
                kill,
                freeze: None,
            }),
            false => plan.cards.push(CardPlan {
                card,
                kill,
                ..CardPlan::default()
            }),
        }
        plan
    }

    /// Whether nothing goes wrong.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether something happens to frames.
    pub fn strikes_links(&self) -> bool {
        !(self.faults.is_empty() && self.partitions.is_empty() && self.holds.is_empty())
    }

    /// What the plan has for hosts and cards.
    #[must_use]
    pub fn without_links(&self) -> Self {
        Self {
            hosts: self.hosts.clone(),
            cards: self.cards.clone(),
            ..Self::default()
        }
    }

    /// Cards whose process or power ends, with the cycle, in the order of cards.
    pub fn kills(&self) -> Vec<(usize, u64)> {
        let hosts = self.hosts.iter().map(|host| (host.card, host.kill));
        let cards = self.cards.iter().map(|card| (card.card, card.kill));
        let mut all: Vec<_> = hosts
            .chain(cards)
            .filter_map(|(card, kill)| Some((card, kill?)))
            .collect();
        all.sort_unstable();
        all.dedup_by_key(|(card, _)| *card);
        all
    }

    /// Whether the plan can be meant for so many cards.
    ///
    /// # Errors
    /// Which fault can't, and why.
    pub fn check(&self, cards: usize) -> Result<(), String> {
        let told = |table: &'static str| {
            move |(at, wrong): (usize, Option<String>)| {
                wrong.map(|why| format!("{table} {}: {why}", at + 1))
            }
        };
        let faults = self.faults.iter().map(|fault| fault.wrong(cards));
        let partitions = self.partitions.iter().map(|parts| parts.wrong(cards));
        let holds = self.holds.iter().map(|hold| hold.wrong(cards));
        let hosts = self.hosts.iter().map(|host| host.wrong(cards));
        let of_cards = self.cards.iter().map(|card| card.wrong(cards));
        let first = None
            .or_else(|| faults.enumerate().find_map(told("fault")))
            .or_else(|| partitions.enumerate().find_map(told("partition")))
            .or_else(|| holds.enumerate().find_map(told("hold")))
            .or_else(|| hosts.enumerate().find_map(told("host")))
            .or_else(|| of_cards.enumerate().find_map(told("card")));
        first.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let still = LinkFault {
            bandwidth: Some(0),
            ..sound
        };
        assert!(wrong(still).starts_with("fault 1: bandwidth is 0"));
        for seed in 0..100 {
            assert_eq!(FaultPlan::random(seed, 3, 0..50_000).check(3), Ok(()));
            let deadly = FaultPlan::deadly(seed, 3, 10_000..50_000);
            assert_eq!(deadly.check(3), Ok(()));
            assert_eq!(deadly.kills().len(), 1);
        }
    }
    #[test]
    fn each_table_of_a_plan_says_what_is_wrong_with_it() {
        let wrong = |text: &str| {
            let plan: FaultPlan = toml::from_str(text).expect("it is a plan");
            plan.check(3).expect_err("it is wrong")
        };
        let none = "there are 3 cards, counted from 0";
        for (text, why) in [
            (
                "[[partition]]\nsides = [[0], [1, 3]]",
                format!("partition 1: a card of its sides is 3: {none}"),
            ),
            (
                "[[partition]]\nsides = [[0], []]",
                "partition 1: a side has no card".to_owned(),
            ),
            (
                "[[partition]]\nsides = [[0, 1], [1]]",
                "partition 1: card 1 is on both sides".to_owned(),
            ),
            (
                "[[partition]]\nsides = [[0], [1]]\nbegin = 9\nend = 9",
                "partition 1: it begins in cycle 9 and ends before cycle 9".to_owned(),
            ),
            (
                "[[hold]]\nsource = 0\ndestination = 4\nrelease = 9",
                format!("hold 1: destination is 4: {none}"),
            ),
            (
                "[[hold]]\nsource = 0\ndestination = 1\nrelease = 9\nkind = \"Large\"",
                "hold 1: kind is Large: frames are".to_owned(),
            ),
            (
                "[[host]]\ncard = 0\nkill = 5\n[[host]]\ncard = 3\nkill = 5",
                format!("host 2: card is 3: {none}"),
            ),
            (
                "[[host]]\ncard = 0",
                "host 1: it has neither kill nor freeze".to_owned(),
            ),
            (
                "[[host]]\ncard = 0\nfreeze = { begin = 7, end = 7 }",
                "host 1: freeze begins in cycle 7 and ends before cycle 7".to_owned(),
            ),
            (
                "[[card]]\ncard = 5\nkill = 1",
                format!("card 1: card is 5: {none}"),
            ),
            (
                "[[card]]\ncard = 1",
                "card 1: it has none of kill, pause_firmware and stall_memory".to_owned(),
            ),
            (
                "[[card]]\ncard = 1\nstall_memory = { begin = 7, end = 3 }",
                "card 1: stall_memory begins in cycle 7 and ends before cycle 3".to_owned(),
            ),
            (
                "[[card]]\ncard = 1\npause_firmware = { begin = 7, end = 3 }",
                "card 1: pause_firmware begins in cycle 7 and ends before cycle 3".to_owned(),
            ),
        ] {
            let told = wrong(text);
            assert!(told.starts_with(&why), "{told}, and not {why}");
        }
    }

    #[test]
    fn random_plans_draw_everything_that_a_run_survives_and_are_read_as_they_are_printed() {
        let plans: Vec<_> = (0..100)
            .map(|seed| FaultPlan::random(seed, 4, 0..100_000))
            .collect();
        for plan in &plans {
            assert_eq!(plan.kills(), []);
            let text = toml::to_string(plan).expect("it can be printed");
            assert_eq!(toml::from_str(&text).as_ref(), Ok(plan), "{text}");
        }
        let dips = |plan: &FaultPlan| plan.faults.iter().any(|fault| fault.bandwidth.is_some());
        for (name, has) in [
            ("dips", plans.iter().filter(|plan| dips(plan)).count()),
            (
                "partitions",
                plans
                    .iter()
                    .filter(|plan| !plan.partitions.is_empty())
                    .count(),
            ),
            (
                "holds",
                plans.iter().filter(|plan| !plan.holds.is_empty()).count(),
            ),
            (
                "hosts",
                plans.iter().filter(|plan| !plan.hosts.is_empty()).count(),
            ),
            (
                "cards",
                plans.iter().filter(|plan| !plan.cards.is_empty()).count(),
            ),
        ] {
            assert!((10..60).contains(&has), "{has} of 100 have {name}");
        }
    }
}
