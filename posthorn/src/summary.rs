//! What a replay reports: the same figures as text for people and as JSON for programs.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

/// Depth of one of the matching lists, as those met it who looked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Depth {
    /// Mean over those that looked.
    pub mean: f64,
    /// Deepest seen.
    pub max: u64,
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
    /// The replay ran to the end of the trace on every rank.
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
    /// Depth of the posted list, as arriving messages met it.
    pub posted_depth: Depth,
    /// Depth of the unexpected list, as new receives met it.
    pub unexpected_depth: Depth,
    /// Messages that arrived before their receive.
    pub unexpected: u64,
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
            format!("{} untagged buffers posted", self.multi_receives),
        )?;
        line("cycles", self.cycles.to_string())?;
        line(
            "cycles per message",
            format!("{:.1}", self.cycles_per_message),
        )?;
        let depth = |depth: Depth| format!("mean {:.2}, max {}", depth.mean, depth.max);
        line("posted depth", depth(self.posted_depth))?;
        line("unexpected depth", depth(self.unexpected_depth))?;
        let share = 100.0 * self.unexpected as f64 / (self.messages.max(1)) as f64;
        line("unexpected", format!("{} ({share:.0}%)", self.unexpected))?;
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
            posted_depth: Depth { mean: 0.5, max: 1 },
            unexpected_depth: Depth::default(),
            unexpected: 1,
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
              multi-receives         16 untagged buffers posted
              cycles                 1000
              cycles per message     500.0
              posted depth           mean 0.50, max 1
              unexpected depth       mean 0.00, max 0
              unexpected             1 (25%)
              completed Success      8
              matching               legal
              speed                  200000 NIC-cycles/s over 0.0 s
        "#]]
        .assert_eq(&summary().to_string());
    }

    #[test]
    fn the_text_says_how_much_was_held_back() {
        let held_back = Summary {
            back_pressure: 0.333,
            ..summary()
        };
        let text = held_back.to_string();
        assert!(text.starts_with("toy on 2 tiny cards, seed 7, back-pressure 33%\n"));
    }

    #[test]
    fn a_partial_summary_says_so_in_both_forms() {
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
        assert_eq!(json["complete"], false);
        assert_eq!(json["completions"]["Success"], 8);
    }
}
