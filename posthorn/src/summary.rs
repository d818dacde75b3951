//! What a replay reports: the same figures as text for people and as JSON for programs.

use std::collections::BTreeMap;
use std::fmt;

use abi::mgmt::CLOCK_NS;
use serde::Serialize;
use sim::fault::FaultCount;

/// Depth of one of the matching lists, as those met it who looked.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Depth {
    /// Mean over those that looked.
    pub mean: f64,
    /// Deepest seen.
    pub max: u64,
    /// How many met which depth, by powers of two, up to the deepest.
    pub histogram: Vec<Bar>,
}

/// Those who met a depth within bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Bar {
    /// Least depth.
    pub from: u64,
    /// Greatest depth.
    pub to: u64,
    /// How many met one of these.
    pub count: u64,
}

impl Depth {
    /// The depth of which `powers` counts: first 0, then those of 2^(k - 1) to 2^k - 1.
    pub fn new(mean: f64, max: u64, powers: &[u64]) -> Self {
        let bar = |(k, &count): (usize, &u64)| Bar {
            from: (1 << k) >> 1,
            to: (1 << k) - 1,
            count,
        };
        let bars = powers.iter().enumerate().map(bar);
        Depth {
            mean,
            max,
            histogram: bars.take_while(|bar| bar.from <= max).collect(),
        }
    }
}

impl fmt::Display for Depth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mean {:.2}, max {}", self.mean, self.max)?;
        for bar in self.histogram.iter().filter(|bar| bar.count > 0) {
            match bar.from == bar.to {
                true => write!(f, "; {}: {}", bar.from, bar.count)?,
                false => write!(f, "; {}–{}: {}", bar.from, bar.to, bar.count)?,
            }
        }
        Ok(())
    }
}

/// Cycles of the matching engine for one kind of operation, from its entry to its reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct MatchCycles {
    /// Operations.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// Those of the longest.
    pub max: u64,
}

/// What matching took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Matching {
    /// Messages that came.
    pub arrive: MatchCycles,
    /// Receives that were posted.
    pub post: MatchCycles,
    /// Both together.
    pub both: MatchCycles,
    /// Nanoseconds for one of those operations if the host does it: the very same ones in the same order, by the
    /// best structure that we can write, alone and with nothing else to do. None if the replay isn't complete.
    pub host_ns: Option<f64>,
}

impl fmt::Display for Matching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |cycles: MatchCycles| format!("mean {:.1}, max {}", cycles.mean, cycles.max);
        let (arrive, post) = (of(self.arrive), of(self.post));
        write!(f, "{}; arrivals {arrive}; posts {post}", of(self.both))
    }
}

/// A rank that a plan of faults has killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Kill {
    /// Which.
    pub rank: usize,
    /// Its process, or its card.
    pub what: &'static str,
    /// When.
    pub cycle: u64,
}

/// An operation that ended otherwise than the application saw it end, because a rank was killed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ended {
    /// Rank that posted it.
    pub rank: usize,
    /// Line of the trace that waits for it, or would have.
    pub line: u64,
    /// What it is.
    pub operation: &'static str,
    /// Its status; none if it hadn't completed when the rank gave it up.
    pub status: Option<&'static str>,
}

/// Figures of a replay.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Application.
    pub app: String,
    /// Configuration of the cards.
    pub config: String,
    /// Ranks, and so cards.
    pub ranks: usize,
    /// Seed of everything that is random.
    pub seed: u64,
    /// Share of cycles in which host memory, registers and network held back.
    pub back_pressure: f64,
    /// What happened to frames, if a plan of faults was given.
    pub faults: Option<FaultCount>,
    /// Who was killed. Of these nothing else is said below.
    pub killed: Vec<Kill>,
    /// What ended otherwise because of that.
    pub ended: Vec<Ended>,
    /// The replay ran to the end of the trace on every rank that wasn't killed.
    pub complete: bool,
    /// Messages received and checked.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Messages that were longer than the card's longest, and were sent clipped to it.
    pub clipped: Clipped,
    /// Untagged multi-receive buffers posted. Nothing is received into them.
    pub multi_receives: u64,
    /// Cycles from the first post of any rank to the last completion of any.
    pub cycles: u64,
    /// Those, for each message that a rank received: the mean over ranks.
    pub cycles_per_message: f64,
    /// Depth of the posted list, as arriving messages met it, without the multi-receives.
    pub posted_depth: Depth,
    /// Depth of the unexpected list, as new receives met it.
    pub unexpected_depth: Depth,
    /// Messages that arrived before their receive.
    pub unexpected: u64,
    /// What matching took, on the card and on the host.
    pub match_cycles: Matching,
    /// Completions that the ranks took, by status: of receives, probes, cancels and of sends that aren't injected. A receive's
    /// counts when it is taken, its message when it is checked: some of a partial replay are taken and not checked.
    pub completions: BTreeMap<String, u64>,
    /// What the checker of matchings says: `legal`, `not judged` for a partial replay, or the violation.
    pub matching: String,
    /// Cycles simulated, of all cards together, for each second of wall time.
    pub nic_cycles_per_second: f64,
    /// Wall time of the simulation in seconds.
    pub seconds: f64,
}

/// Lines of the trace that the text names of operations that ended alike.
const LINES: usize = 8;

/// What was clipped to the longest message that the card takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Clipped {
    /// Sends.
    pub messages: u64,
    /// Their bytes beyond the limit.
    pub bytes: u64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = if self.complete { "" } else { "  PARTIAL" };
        write!(
            f,
            "{} on {} {} cards, seed {}",
            self.app, self.ranks, self.config, self.seed
        )?;
        if self.back_pressure > 0.0 {
            let percent = 100.0 * self.back_pressure;
            write!(f, ", back-pressure {percent:.0}%")?;
        }
        writeln!(f, "{end}")?;
        let mut line = |name: &str, value: String| writeln!(f, "  {name:<22} {value}");
        if let Some(faults) = self.faults {
            line("faults", faults.to_string())?;
        }
        for Kill { rank, what, cycle } in &self.killed {
            line(
                "killed",
                format!("the {what} of rank {rank} in cycle {cycle}"),
            )?;
        }
        let mut ended: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for each in &self.ended {
            let key = (each.rank, each.operation, each.status);
            ended.entry(key).or_default().push(each.line.to_string());
        }
        for ((rank, operation, status), lines) in ended {
            let status = status.unwrap_or("nothing, and were given up");
            let more = lines.len().saturating_sub(LINES);
            let shown = lines[..lines.len() - more].join(", ");
            let more = match more {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            line(
                "ended",
                format!(
                    "of rank {rank} {}s with {status}: lines {shown}{more}",
                    operation
                ),
            )?;
        }
        line("messages", format!("{}, every byte checked", self.messages))?;
        line("bytes", self.bytes.to_string())?;
        line(
            "clipped",
            format!(
                "{} messages by {} bytes",
                self.clipped.messages, self.clipped.bytes
            ),
        )?;
        line(
            "multi-receives",
            format!(
                "{} untagged buffers posted, left out of the depth",
                self.multi_receives
            ),
        )?;
        line("cycles", self.cycles.to_string())?;
        line(
            "cycles per message",
            format!("{:.1}", self.cycles_per_message),
        )?;
        line("posted depth", self.posted_depth.to_string())?;
        line("unexpected depth", self.unexpected_depth.to_string())?;
        let share = 100.0 * self.unexpected as f64 / (self.messages.max(1)) as f64;
        line("unexpected", format!("{} ({share:.0}%)", self.unexpected))?;
        line("cycles per match", self.match_cycles.to_string())?;
        if let Some(host) = self.match_cycles.host_ns {
            let card = self.match_cycles.both.mean * f64::from(CLOCK_NS);
            let value = format!("{host:.1} ns by the host's best structure; the card {card:.0} ns");
            line("the same on the host", value)?;
        }
        for (status, count) in &self.completions {
            line(&format!("completed {status}"), count.to_string())?;
        }
        line("matching", self.matching.clone())?;
        line(
            "speed",
            format!(
                "{:.0} NIC-cycles/s over {:.1} s",
                self.nic_cycles_per_second, self.seconds
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary() -> Summary {
        Summary {
            app: "toy".into(),
            config: "tiny".into(),
            ranks: 2,
            seed: 7,
            back_pressure: 0.0,
            faults: None,
            killed: Vec::new(),
            ended: Vec::new(),
            complete: true,
            messages: 4,
            bytes: 32,
            clipped: Clipped {
                messages: 1,
                bytes: 3072,
            },
            multi_receives: 16,
            cycles: 1000,
            cycles_per_message: 500.0,
            posted_depth: Depth::new(1.25, 5, &[3, 1, 0, 2, 0]),
            unexpected_depth: Depth::default(),
            unexpected: 1,
            match_cycles: Matching {
                arrive: MatchCycles {
                    count: 6,
                    mean: 9.0,
                    max: 10,
                },
                post: MatchCycles {
                    count: 2,
                    mean: 13.0,
                    max: 17,
                },
                both: MatchCycles {
                    count: 8,
                    mean: 10.0,
                    max: 17,
                },
                host_ns: Some(12.34),
            },
            completions: BTreeMap::from([("Success".into(), 8)]),
            matching: "legal".into(),
            nic_cycles_per_second: 2e5,
            seconds: 0.01,
        }
    }

    #[test]
    fn the_text_names_every_figure() {
        expect_test::expect![[r#"
            toy on 2 tiny cards, seed 7
              messages               4, every byte checked
              bytes                  32
              clipped                1 messages by 3072 bytes
              multi-receives         16 untagged buffers posted, left out of the depth
              cycles                 1000
              cycles per message     500.0
              posted depth           mean 1.25, max 5; 0: 3; 1: 1; 4–7: 2
              unexpected depth       mean 0.00, max 0
              unexpected             1 (25%)
              cycles per match       mean 10.0, max 17; arrivals mean 9.0, max 10; posts mean 13.0, max 17
              the same on the host   12.3 ns by the host's best structure; the card 80 ns
              completed Success      8
              matching               legal
              speed                  200000 NIC-cycles/s over 0.0 s
        "#]]
        .assert_eq(&summary().to_string());
    }

    #[test]
    fn the_text_says_what_was_held_back_and_what_happened_to_frames() {
        let held_back = Summary {
            back_pressure: 0.333,
            faults: Some(FaultCount {
                frames: 900,
                lost: 9,
                late: 4,
                ..FaultCount::default()
            }),
            ..summary()
        };
        let text = held_back.to_string();
        let begin = "toy on 2 tiny cards, seed 7, back-pressure 33%\n  faults                 of 900 frames 9 lost, 0 changed, 0 bad, 0 repeated, 4 late, 0 slowed, 0 parted, 0 held\n";
        assert!(text.starts_with(begin), "{text}");
    }

    #[test]
    fn a_partial_summary_says_so_in_both_forms() {
        let killed = Summary {
            killed: vec![Kill {
                rank: 1,
                what: "process",
                cycle: 5000,
            }],
            ended: (1..=10)
                .map(|line| Ended {
                    rank: 0,
                    line,
                    operation: "receive",
                    status: Some("PeerFailed"),
                })
                .collect(),
            ..summary()
        };
        let begin = "toy on 2 tiny cards, seed 7\n  killed                 the process of rank 1 in cycle 5000\n  ended                  of rank 0 receives with PeerFailed: lines 1, 2, 3, 4, 5, 6, 7, 8 and 2 more\n";
        let text = killed.to_string();
        assert!(text.starts_with(begin), "{text}");
        let partial = Summary {
            complete: false,
            ..summary()
        };
        assert!(
            partial
                .to_string()
                .starts_with("toy on 2 tiny cards, seed 7  PARTIAL\n")
        );
        let json = serde_json::to_value(&partial).unwrap();
        let bar = serde_json::json!({"from": 4, "to": 7, "count": 2});
        assert_eq!(json["posted_depth"]["histogram"][3], bar);
        assert_eq!(json["match_cycles"]["both"]["max"], 17);
        assert_eq!(json["complete"], false);
        assert_eq!(json["completions"]["Success"], 8);
    }
}
