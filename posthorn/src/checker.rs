//! Is what the cards matched legal under MPI's order? Judged from outside, from what each rank sent,
//! posted and received, by a rule that shares nothing with the gates or their models.
//!
//! A matching at one destination is legal if some order of arrival explains it: an order in which
//! the messages of each source arrive as they were sent (MPI 4.1, section 3.5), and in which a list
//! that always takes the oldest receive and the earliest message would have matched the same. For
//! receives R1 posted before R2, both able to take message m, where R2 took m: R1 must have taken a message
//! m1, and m1 must have arrived before m. (If m1 came after R1 was posted, R1 was still pending
//! before, and an earlier m would have gone to it; if m1 was waiting when R1 was posted, R1 took the
//! earliest of those waiting.) So each such pair asks for an arrival before another one, and so do two
//! messages of one source; the matching is legal exactly if these wishes have no cycle.
//!
//! Receives with the same criteria are a *class*; within a class the rule chains, so that for each
//! message only the youngest older receive of each class has to be looked at.

use std::collections::HashMap;
use std::fmt;

use crate::payload::MessageId;

/// What a receive accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Criteria {
    /// Source rank, unless any will do.
    pub source: Option<usize>,
    /// Match bits.
    pub tag: u64,
    /// Bits that don't have to agree.
    pub ignore: u64,
}

impl Criteria {
    /// Would it take a message of this source and these match bits?
    pub fn accepts(&self, source: usize, tag: u64) -> bool {
        self.source.is_none_or(|wanted| wanted == source) && (self.tag ^ tag) & !self.ignore == 0
    }
}

/// What became of a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It took this message.
    Took(MessageId),
    /// It was cancelled.
    Cancelled,
    /// It is still posted.
    Pending,
}

/// One receive of a destination.
#[derive(Clone, Copy, Debug)]
pub struct Receive {
    /// Line of the trace that posted it.
    pub line: u64,
    /// What it accepts.
    pub criteria: Criteria,
    /// What became of it.
    pub outcome: Outcome,
}

/// Everything that happened at one destination.
#[derive(Clone, Debug, Default)]
pub struct Destination {
    /// Its rank.
    pub rank: usize,
    /// Match bits of what each source sent to it, in order.
    pub sent: HashMap<usize, Vec<u64>>,
    /// Its receives in the order posted.
    pub receives: Vec<Receive>,
}

/// Why a matching is illegal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// A receive took a message that was never sent.
    NeverSent {
        /// Line of the receive.
        line: u64,
        /// The message.
        message: MessageId,
    },
    /// A receive took a message that it doesn't accept.
    NotAccepted {
        /// Line of the receive.
        line: u64,
        /// The message.
        message: MessageId,
    },
    /// A message was received twice.
    Twice {
        /// Lines of the receives.
        lines: [u64; 2],
        /// The message.
        message: MessageId,
    },
    /// A receive was passed over: it is still posted, though a younger one took a message that it accepts.
    PassedOver {
        /// Line of the receive passed over.
        line: u64,
        /// Line of the younger one.
        younger: u64,
        /// What that took.
        message: MessageId,
    },
    /// A message was passed over: it was never received, though a receive that accepts it took a later one of the same source.
    Overtaken {
        /// The message passed over.
        message: MessageId,
        /// Line of the receive.
        line: u64,
        /// The later message that it took.
        later: MessageId,
    },
    /// No order of arrival explains the matching of these messages.
    NoOrder {
        /// Some of the messages on the cycle.
        messages: Vec<MessageId>,
    },
}

fn name(message: &MessageId) -> String {
    format!(
        "message {} from rank {} to rank {}",
        message.number, message.source, message.destination
    )
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeverSent { line, message } => {
                write!(
                    f,
                    "the receive of line {line} took {}, which was never sent",
                    name(message)
                )
            }
            Self::NotAccepted { line, message } => {
                write!(
                    f,
                    "the receive of line {line} took {}, which it doesn't accept",
                    name(message)
                )
            }
            Self::Twice {
                lines: [a, b],
                message,
            } => {
                write!(
                    f,
                    "{} was received by the receives of lines {a} and {b}",
                    name(message)
                )
            }
            Self::PassedOver {
                line,
                younger,
                message,
            } => write!(
                f,
                "the receive of line {line} is still posted, though the younger one of line {younger} took {}, which it accepts",
                name(message)
            ),
            Self::Overtaken {
                message,
                line,
                later,
            } => write!(
                f,
                "{} was never received, though the receive of line {line}, which accepts it, took {}",
                name(message),
                name(later)
            ),
            Self::NoOrder { messages } => {
                write!(f, "no order of arrival explains the matching of ")?;
                for (k, message) in messages.iter().enumerate() {
                    write!(f, "{}{}", if k > 0 { ", " } else { "" }, name(message))?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for Violation {}

/// Judges the matching at one destination.
///
/// # Errors
/// The first [`Violation`] found.
pub fn check(destination: &Destination) -> Result<(), Violation> {
    let taken = takers(destination)?;
    let mut order = ArrivalOrder::default();
    for (&source, tags) in &destination.sent {
        let messages = (0..tags.len() as u64).map(|number| MessageId {
            source,
            destination: destination.rank,
            number,
        });
        order.chain(messages);
    }

    // The youngest receive of each class so far, and whether one of the class is still pending.
    let mut classes: HashMap<Criteria, Class> = HashMap::new();
    for receive in &destination.receives {
        if let Outcome::Took(message) = receive.outcome {
            let tag = destination.sent[&message.source][message.number as usize];
            for (criteria, class) in &classes {
                if !criteria.accepts(message.source, tag) {
                    continue;
                }
                if let Some(line) = class.pending {
                    return Err(Violation::PassedOver {
                        line,
                        younger: receive.line,
                        message,
                    });
                }
                if let Some(before) = class.youngest_took {
                    order.before(before, message);
                }
            }
        }
        let class = classes.entry(receive.criteria).or_default();
        match receive.outcome {
            Outcome::Took(message) => class.youngest_took = Some(message),
            Outcome::Pending => class.pending = class.pending.or(Some(receive.line)),
            Outcome::Cancelled => {}
        }
    }
    never_received(destination, &taken)?;
    order.check()
}

#[derive(Default)]
struct Class {
    youngest_took: Option<MessageId>,
    pending: Option<u64>,
}

/// The line of the receive that took each message.
fn takers(destination: &Destination) -> Result<HashMap<MessageId, u64>, Violation> {
    let mut taken = HashMap::new();
    for receive in &destination.receives {
        let Outcome::Took(message) = receive.outcome else {
            continue;
        };
        let line = receive.line;
        let sent = destination.sent.get(&message.source);
        let tag = sent.and_then(|tags| tags.get(usize::try_from(message.number).ok()?));
        let tag = *tag.ok_or(Violation::NeverSent { line, message })?;
        if !receive.criteria.accepts(message.source, tag) {
            return Err(Violation::NotAccepted { line, message });
        }
        if let Some(first) = taken.insert(message, line) {
            return Err(Violation::Twice {
                lines: [first, line],
                message,
            });
        }
    }
    Ok(taken)
}

/// A message that nobody received must not have been passed over for a later one of its source.
fn never_received(
    destination: &Destination,
    taken: &HashMap<MessageId, u64>,
) -> Result<(), Violation> {
    for receive in &destination.receives {
        let Outcome::Took(later) = receive.outcome else {
            continue;
        };
        let tags = &destination.sent[&later.source][..later.number as usize];
        for (number, &tag) in tags.iter().enumerate().rev() {
            let message = MessageId {
                number: number as u64,
                ..later
            };
            if taken.contains_key(&message) {
                continue;
            }
            if receive.criteria.accepts(message.source, tag) {
                return Err(Violation::Overtaken {
                    message,
                    line: receive.line,
                    later,
                });
            }
        }
    }
    Ok(())
}

/// A wish that some messages arrive before others.
#[derive(Default)]
struct ArrivalOrder {
    ids: HashMap<MessageId, usize>,
    messages: Vec<MessageId>,
    after: Vec<Vec<usize>>,
}

impl ArrivalOrder {
    fn id(&mut self, message: MessageId) -> usize {
        *self.ids.entry(message).or_insert_with(|| {
            self.messages.push(message);
            self.after.push(Vec::new());
            self.messages.len() - 1
        })
    }

    fn before(&mut self, first: MessageId, second: MessageId) {
        let (first, second) = (self.id(first), self.id(second));
        self.after[first].push(second);
    }

    fn chain(&mut self, messages: impl Iterator<Item = MessageId>) {
        let mut last = None;
        for message in messages {
            if let Some(last) = last {
                self.before(last, message);
            }
            last = Some(message);
        }
    }

    /// Kahn's algorithm: what can't be sorted lies on or behind a cycle.
    fn check(&self) -> Result<(), Violation> {
        let mut waits_for = vec![0_usize; self.messages.len()];
        for after in &self.after {
            for &message in after {
                waits_for[message] += 1;
            }
        }
        let mut free: Vec<usize> = (0..waits_for.len())
            .filter(|&k| waits_for[k] == 0)
            .collect();
        let mut sorted = 0;
        while let Some(message) = free.pop() {
            sorted += 1;
            for &next in &self.after[message] {
                waits_for[next] -= 1;
                if waits_for[next] == 0 {
                    free.push(next);
                }
            }
        }
        if sorted == self.messages.len() {
            return Ok(());
        }
        let stuck = (0..waits_for.len()).filter(|&k| waits_for[k] > 0);
        let mut messages: Vec<MessageId> = stuck.map(|k| self.messages[k]).collect();
        messages.sort_unstable();
        messages.truncate(4);
        Err(Violation::NoOrder { messages })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, seq::IndexedRandom};

    const ME: usize = 9;

    fn message(source: usize, number: u64) -> MessageId {
        MessageId {
            source,
            destination: ME,
            number,
        }
    }

    fn receive(
        line: u64,
        source: Option<usize>,
        tag: u64,
        ignore: u64,
        outcome: Outcome,
    ) -> Receive {
        Receive {
            line,
            criteria: Criteria {
                source,
                tag,
                ignore,
            },
            outcome,
        }
    }

    fn took(source: usize, number: u64) -> Outcome {
        Outcome::Took(message(source, number))
    }

    fn judge(sent: &[(usize, &[u64])], receives: &[Receive]) -> Result<(), Violation> {
        let sent = sent
            .iter()
            .map(|&(source, tags)| (source, tags.to_vec()))
            .collect();
        check(&Destination {
            rank: ME,
            sent,
            receives: receives.to_vec(),
        })
    }

    #[test]
    fn messages_of_one_source_may_not_overtake_in_one_class() {
        let receives = [
            receive(1, Some(0), 7, 0, took(0, 1)),
            receive(2, Some(0), 7, 0, took(0, 0)),
        ];
        assert!(matches!(
            judge(&[(0, &[7, 7])], &receives),
            Err(Violation::NoOrder { .. })
        ));
    }

    #[test]
    fn messages_of_two_sources_may_arrive_in_either_order() {
        for (a, b) in [(0, 1), (1, 0)] {
            let receives = [
                receive(1, None, 7, 0, took(a, 0)),
                receive(2, None, 7, 0, took(b, 0)),
            ];
            assert_eq!(judge(&[(0, &[7]), (1, &[7])], &receives), Ok(()));
        }
    }

    #[test]
    fn arrival_orders_that_contradict_each_other_across_sources_are_found() {
        // The wildcards say that source 1's first came before source 0's first, the exact ones say
        // that nothing forbids; reversing the second pair as well closes the cycle.
        let receives = [
            receive(1, None, 0, 7, took(0, 1)),
            receive(2, None, 0, 7, took(1, 0)),
            receive(3, None, 0, 7, took(0, 0)),
        ];
        assert!(matches!(
            judge(&[(0, &[1, 1]), (1, &[1])], &receives),
            Err(Violation::NoOrder { .. })
        ));
    }

    #[test]
    fn an_older_receive_may_not_be_passed_over() {
        let receives = [
            receive(1, None, 7, 0, Outcome::Pending),
            receive(2, Some(0), 7, 0, took(0, 0)),
        ];
        let violation = Violation::PassedOver {
            line: 1,
            younger: 2,
            message: message(0, 0),
        };
        assert_eq!(judge(&[(0, &[7])], &receives), Err(violation));
    }

    #[test]
    fn a_cancelled_receive_excuses_nobody_and_blocks_nobody() {
        let receives = [
            receive(1, None, 7, 0, Outcome::Cancelled),
            receive(2, Some(0), 7, 0, took(0, 0)),
        ];
        assert_eq!(judge(&[(0, &[7])], &receives), Ok(()));
    }

    #[test]
    fn a_message_never_received_may_not_be_overtaken() {
        let violation = Violation::Overtaken {
            message: message(0, 0),
            line: 1,
            later: message(0, 1),
        };
        assert_eq!(
            judge(&[(0, &[7, 7])], &[receive(1, Some(0), 7, 0, took(0, 1))]),
            Err(violation)
        );
    }

    #[test]
    fn what_was_not_sent_or_not_accepted_or_received_twice_is_refused() {
        let sent: &[(usize, &[u64])] = &[(0, &[7])];
        assert_eq!(
            judge(sent, &[receive(1, None, 7, 0, took(0, 1))]),
            Err(Violation::NeverSent {
                line: 1,
                message: message(0, 1)
            })
        );
        assert_eq!(
            judge(sent, &[receive(1, None, 8, 0, took(0, 0))]),
            Err(Violation::NotAccepted {
                line: 1,
                message: message(0, 0)
            })
        );
        let twice = [
            receive(1, None, 7, 0, took(0, 0)),
            receive(2, None, 7, 0, took(0, 0)),
        ];
        assert_eq!(
            judge(sent, &twice),
            Err(Violation::Twice {
                lines: [1, 2],
                message: message(0, 0)
            })
        );
    }

    /// Every interleaving of a plain list is legal; swapping what two receives of it took is legal
    /// exactly if another interleaving explains it, which a search over all of them decides.
    #[test]
    fn the_rule_agrees_with_a_search_over_all_orders_of_arrival() {
        let mut legal = 0;
        let mut illegal = 0;
        for seed in 0..800 {
            let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
            let sent: Vec<Vec<u64>> = (0..2)
                .map(|_| {
                    (0..random.random_range(1..4))
                        .map(|_| random.random_range(0..2))
                        .collect()
                })
                .collect();
            let criteria: Vec<Criteria> = (0..random.random_range(2..5))
                .map(|_| Criteria {
                    source: *[None, Some(0), Some(1)].choose(&mut random).unwrap(),
                    tag: random.random_range(0..2),
                    ignore: random.random_range(0..2),
                })
                .collect();
            let possible = outcomes(&sent, &criteria);
            let mut judged = possible[random.random_range(0..possible.len())].clone();
            if random.random_bool(0.7) {
                let (a, b) = (
                    random.random_range(0..judged.len()),
                    random.random_range(0..judged.len()),
                );
                judged.swap(a, b);
            }
            let accepted = criteria
                .iter()
                .zip(&judged)
                .all(|(criteria, outcome)| match outcome {
                    Outcome::Took(m) => {
                        criteria.accepts(m.source, sent[m.source][m.number as usize])
                    }
                    _ => true,
                });
            let complete = judged
                .iter()
                .all(|outcome| matches!(outcome, Outcome::Took(_)))
                || possible.contains(&judged);
            if !accepted || !complete {
                continue;
            }
            let destination = Destination {
                rank: ME,
                sent: sent.iter().cloned().enumerate().collect(),
                receives: criteria
                    .iter()
                    .zip(&judged)
                    .enumerate()
                    .map(|(k, (&criteria, &outcome))| Receive {
                        line: k as u64,
                        criteria,
                        outcome,
                    })
                    .collect(),
            };
            let verdict = check(&destination);
            assert_eq!(
                verdict.is_ok(),
                possible.contains(&judged),
                "seed {seed}: {verdict:?} for {destination:?}"
            );
            if verdict.is_ok() {
                legal += 1
            } else {
                illegal += 1
            }
        }
        assert!(
            legal > 50 && illegal > 20,
            "{legal} legal, {illegal} illegal"
        );
    }

    /// What the receives take under every interleaving of posts and arrivals.
    fn outcomes(sent: &[Vec<u64>], criteria: &[Criteria]) -> Vec<Vec<Outcome>> {
        #[derive(Clone)]
        struct State {
            posted: usize,
            arrived: Vec<usize>,
            unexpected: Vec<MessageId>,
            outcomes: Vec<Outcome>,
        }
        let start = State {
            posted: 0,
            arrived: vec![0; sent.len()],
            unexpected: vec![],
            outcomes: vec![Outcome::Pending; criteria.len()],
        };
        let mut found: Vec<Vec<Outcome>> = vec![];
        let mut open = vec![start];
        while let Some(state) = open.pop() {
            let mut end = true;
            if state.posted < criteria.len() {
                end = false;
                let mut next = state.clone();
                let receive = &criteria[next.posted];
                let hit = next
                    .unexpected
                    .iter()
                    .position(|m| receive.accepts(m.source, sent[m.source][m.number as usize]));
                if let Some(at) = hit {
                    next.outcomes[next.posted] = Outcome::Took(next.unexpected.remove(at));
                }
                next.posted += 1;
                open.push(next);
            }
            for (source, tags) in sent.iter().enumerate() {
                let number = state.arrived[source];
                if number == tags.len() {
                    continue;
                }
                end = false;
                let mut next = state.clone();
                let m = message(source, number as u64);
                next.arrived[source] += 1;
                let hit = (0..next.posted).find(|&k| {
                    next.outcomes[k] == Outcome::Pending
                        && criteria[k].accepts(source, tags[number])
                });
                match hit {
                    Some(k) => next.outcomes[k] = Outcome::Took(m),
                    None => next.unexpected.push(m),
                }
                open.push(next);
            }
            if end && !found.contains(&state.outcomes) {
                found.push(state.outcomes);
            }
        }
        found
    }
}
