//! What the pins of a card show of tag matching: that each reply is right, the depths that operations meet, and the cycles that they take.
//!
//! ```text
//!  monitor_match_*  ── an operation enters ──► depths, by operation ─┐
//!                            │ cycles                                ├─► MatchReport
//!  monitor_reply_*  ── its reply ────────────► cycles, by operation ─┘   (and each, if asked for)
//!                            └► Lists, in plain Rust: is it theirs? ─► a fault
//! ```
//!
//! In every simulation of a card so, nothing is lost or found twice, the oldest that matches wins, and what is cancelled is matched no more.
//!
//! Several operations may be under way; replies come in the order of the operations.

use std::collections::VecDeque;

use match_reference::{Command, Lists, Operation, Reply, Sizes, Units};

use crate::pins::{MATCH_WORDS, MatchMonitor, ReplyMonitor, UnitMonitor};

/// Operations, by their numbers.
const OPERATIONS: usize = 16;
/// Depths that differ by the power of two that they reach: 0, 1, 2 and 3, 4 to 7, …
pub const DEPTH_POWERS: usize = 17;

/// Depth of a list, as the operations that looked at it met it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// Operations.
    pub count: u64,
    /// Sum of the depths that they met.
    pub sum: u64,
    /// Largest depth.
    pub max: u16,
    /// Operations that met depth 0, then those that met one of 2^(k - 1) to 2^k - 1.
    pub powers: [u64; DEPTH_POWERS],
}

impl Depth {
    /// One more operation, which met this depth.
    pub fn add(&mut self, depth: u16) {
        self.count += 1;
        self.sum += u64::from(depth);
        self.max = self.max.max(depth);
        self.powers[(u16::BITS - depth.leading_zeros()) as usize] += 1;
    }

    /// Mean depth; 0 if no operation looked.
    pub fn mean(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        self.sum as f64 / self.count as f64
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            sum: self.sum + other.sum,
            max: self.max.max(other.max),
            powers: std::array::from_fn(|k| self.powers[k] + other.powers[k]),
        }
    }
}

/// Cycles from an operation's entry to its reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatchCycles {
    /// Operations.
    pub count: u64,
    /// Their cycles together.
    pub sum: u64,
    /// Cycles of the longest.
    pub max: u64,
}

impl MatchCycles {
    fn add(&mut self, cycles: u64) {
        self.count += 1;
        self.sum += cycles;
        self.max = self.max.max(cycles);
    }

    /// Mean; 0 if there was none.
    pub fn mean(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        self.sum as f64 / self.count as f64
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            sum: self.sum + other.sum,
            max: self.max.max(other.max),
        }
    }
}

/// An operation that was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matched {
    /// The bits of the command, as on the pins.
    pub command: [u32; MATCH_WORDS],
    /// It found something.
    pub found: bool,
    /// It had no room.
    pub full: bool,
    /// Posted receives that it met.
    pub posted: u16,
}

/// What has been seen. The arrays are by the number of the operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchReport {
    /// Posted receives that each operation met.
    pub posted: [Depth; OPERATIONS],
    /// Unexpected messages that each operation met.
    pub unexpected: [Depth; OPERATIONS],
    /// Receives for which there was no room.
    pub refused: u64,
    /// Messages that found no receive and were appended to the unexpected.
    pub appended: u64,
    /// Cycles of each.
    pub cycles: [MatchCycles; OPERATIONS],
    /// Each operation, if they were asked for.
    pub each: Vec<Matched>,
}

/// Watches the pins of one card.
#[derive(Debug, Default)]
pub(crate) struct MatchWatch {
    /// Each operation is kept.
    keeps: bool,
    under_way: VecDeque<(u64, MatchMonitor)>,
    sizes: Option<Sizes>,
    /// What the lists must hold.
    reference: Option<Lists>,
    /// Where the gates keep the messages of each pair.
    units: Units,
    report: MatchReport,
}

impl MatchWatch {
    /// Replies are held to the reference if the `sizes` of the lists are known. The card must not have left reset.
    pub fn new(keeps: bool, sizes: Option<Sizes>) -> Self {
        Self {
            keeps,
            sizes,
            reference: sizes.map(Lists::new),
            ..Self::default()
        }
    }

    /// The lists are emptied by a reset of the gates, and what is under way in them with them.
    pub fn restart(&mut self) {
        self.under_way.clear();
        self.reference = self.sizes.map(Lists::new);
        self.units = Units::default();
    }

    /// A pair gets a unit of places, or has none any more, if the pins say so.
    ///
    /// # Errors
    /// If another pair has it.
    pub fn give(&mut self, unit: &UnitMonitor) -> Result<(), String> {
        unit.note(&mut self.units)
    }

    /// Looks at the pins in `cycle`.
    ///
    /// # Errors
    /// If the reply isn't the one that the reference allows: says which was expected.
    pub fn observe(
        &mut self,
        cycle: u64,
        entering: &MatchMonitor,
        reply: &ReplyMonitor,
    ) -> Result<(), String> {
        if let Some(reply) = reply.reply()
            && let Some((since, seen)) = self.under_way.pop_front()
        {
            self.report.cycles[usize::from(seen.operation & 15)].add(cycle - since);
            self.report.refused += u64::from(reply.full);
            self.hold(&seen.command, reply)?;
            if self.keeps {
                self.report.each.push(Matched {
                    command: seen.command,
                    found: reply.found,
                    full: reply.full,
                    posted: seen.posted,
                });
            }
        }
        if entering.valid {
            let operation = usize::from(entering.operation & 15);
            self.report.posted[operation].add(entering.posted);
            self.report.unexpected[operation].add(entering.unexpected);
            self.under_way.push_back((cycle, *entering));
        }
        Ok(())
    }

    /// Holds a reply to the reference.
    fn hold(&mut self, words: &[u32; MATCH_WORDS], reply: Reply) -> Result<(), String> {
        let command = Command::from_words(words);
        let command = command.ok_or_else(|| format!("{words:x?} is no command"))?;
        let appended = command.operation == Operation::Arrive && command.append && !reply.found;
        self.report.appended += u64::from(appended);
        let Some(lists) = &mut self.reference else {
            return Ok(());
        };
        let reply = self.units.named(command.operation, reply)?;
        match lists.act(&command, reply) {
            Ok(_) => Ok(()),
            Err(expected) => Err(format!("{command:x?} {expected}; the reply is {reply:x?}")),
        }
    }

    pub fn take(&mut self) -> MatchReport {
        std::mem::take(&mut self.report)
    }
}

#[cfg(test)]
mod tests {
    use match_reference::{Operation, sizes_of};

    use super::*;

    #[test]
    fn depths_are_counted_by_powers_of_two() {
        let mut depth = Depth::default();
        for seen in [0, 1, 2, 3, 4, 7, 8, u16::MAX] {
            depth.add(seen);
        }
        assert_eq!(depth.powers[..5], [1, 1, 2, 2, 1]);
        assert_eq!(depth.powers[16], 1);
        assert_eq!(depth.and(depth).powers.iter().sum::<u64>(), 16);
    }

    #[test]
    fn an_operation_lasts_until_its_reply() {
        let mut watch = MatchWatch::new(true, None);
        let entering = MatchMonitor {
            valid: true,
            operation: 2,
            posted: 5,
            ..MatchMonitor::default()
        };
        let reply = ReplyMonitor {
            valid: true,
            found: true,
            ..ReplyMonitor::default()
        };
        let (nothing, silent) = (MatchMonitor::default(), ReplyMonitor::default());
        // The next enters in the very cycle of a reply, and a reply to nothing is none.
        let pins = [
            (10, &entering, &silent),
            (19, &nothing, &reply),
            (20, &entering, &silent),
            (32, &entering, &reply),
            (33, &entering, &silent),
            (34, &nothing, &reply),
            (37, &nothing, &reply),
            (38, &nothing, &reply),
        ];
        for (cycle, entering, reply) in pins {
            assert_eq!(watch.observe(cycle, entering, reply), Ok(()));
        }
        let report = watch.take();
        let cycles = MatchCycles {
            count: 4,
            sum: 9 + 12 + 2 + 4,
            max: 12,
        };
        assert_eq!(report.cycles[2], cycles);
        assert_eq!((report.posted[2].count, report.posted[2].sum), (4, 20));
        assert_eq!(report.each.len(), 4);
        assert!(report.each.iter().all(|matched| matched.posted == 5));
    }

    /// What lists say of a receive that is posted at place 0, cancelled, and found all the same by a message.
    #[test]
    fn a_receive_that_is_cancelled_and_matched_is_a_fault() {
        let mut watch = MatchWatch::new(false, Some(sizes_of(&hdl::config::TINY)));
        let mut act = |operation, found| {
            let entering = MatchMonitor {
                valid: true,
                command: Command::new(operation).words(),
                ..MatchMonitor::default()
            };
            let reply = ReplyMonitor {
                valid: true,
                found,
                ..ReplyMonitor::default()
            };
            let told = watch.observe(0, &entering, &ReplyMonitor::default());
            told.and_then(|()| watch.observe(9, &MatchMonitor::default(), &reply))
        };
        assert_eq!(act(Operation::Post, false), Ok(()));
        assert_eq!(act(Operation::Arrive, true), Ok(()), "it is there");
        assert_eq!(act(Operation::Post, false), Ok(()));
        assert_eq!(act(Operation::Cancel, true), Ok(()));
        let fault = act(Operation::Arrive, true).expect_err("it is gone");
        assert!(fault.contains("finds nothing"), "{fault}");
    }

    #[test]
    fn a_command_for_what_there_is_not_is_a_fault() {
        let tiny = &hdl::config::TINY;
        let of = |operation, endpoint: usize, pair: usize| Command {
            endpoint: endpoint as u8,
            pair: pair as u16,
            ..Command::new(operation)
        };
        let told = |command: Command| {
            let mut watch = MatchWatch::new(false, Some(sizes_of(tiny)));
            let entering = MatchMonitor {
                valid: true,
                command: command.words(),
                ..MatchMonitor::default()
            };
            let reply = ReplyMonitor {
                valid: true,
                ..ReplyMonitor::default()
            };
            let told = watch.observe(0, &entering, &ReplyMonitor::default());
            assert_eq!(told, Ok(()));
            watch.observe(9, &entering, &reply)
        };
        for beyond in [
            of(Operation::Probe, tiny.endpoints, 0),
            of(Operation::Probe, 0, tiny.pairs),
            of(Operation::Remove, 0, tiny.pairs),
            of(Operation::Arrive, 0, tiny.pairs),
        ] {
            let fault = told(beyond).expect_err("it names nothing");
            assert!(fault.contains("is a mistake of its sender"), "{fault}");
        }
        // Of any source a pair says nothing.
        let any = Command {
            any_source: true,
            ..of(Operation::Probe, 0, tiny.pairs)
        };
        assert_eq!(told(any), Ok(()));
    }
}
