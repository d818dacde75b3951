//! Commands in flight, and what their replies are held to.

use std::array::from_fn;
use std::collections::VecDeque;

use rand::Rng;

use card_model::matching::{Command, Lists, Operation, Outcome, Receive, Reply, Sizes};

use crate::block::{Block, Outputs};
use crate::sizes::SLOTS;
use crate::traffic::Traffic;

/// Cycles from taking a command to its reply, at most, if nothing earlier is under way. A
/// search over all sources may take one more for each row with a message of the endpoint, and one of a pair's
/// messages one more for each of its rows beyond two.
pub const LATENCY: u64 = 13;

/// Cycles more for a step of a walk: four for each of its eight rows but the first.
const WALK: usize = 7 * 4;

/// Cycles more that a command may wait for those of other endpoints that were taken before it: two look-ups in
/// the same rows, and a receive that changes sides, after which what is under way is decided one after the other.
pub const INTERFERENCE: u64 = 24;

/// Cycles more for each arrival that is under way before it, which looks up one class a cycle: all but the first of four. How many
/// classes its endpoint has receives of isn't asked.
const CLASSES: u64 = 3;

/// Cycles more for each arrival before it that may look at the associative side a second time: it is decided eight cycles later, and
/// the next result comes three cycles after that instead of one.
const DETOUR: u64 = 10;

/// Cycles in which the message of an arrival that has found nothing goes to the unexpected side. Whatever looks there, or posts a
/// receive, waits until all of them have.
const APPEND: u64 = 4;

/// Cycles in which anything that is under way ends, whatever waits before it.
const PATIENCE: u64 = 10_000;

/// Cycles after which nothing that a reply has told is still on its way to the depths and counters.
const SETTLED: u64 = 48;

/// A promise that the engine didn't keep.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cycle {cycle}: {what}")]
pub struct Breach {
    /// Cycle of the harness.
    pub cycle: u64,
    /// What should have been, and what was.
    pub what: String,
}

/// A command that was answered.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// The command.
    pub command: Command,
    /// Its reply.
    pub reply: Reply,
    /// What it came to.
    pub outcome: Outcome,
    /// Cycles from taking it to the reply.
    pub cycles: u64,
}

/// What a cycle brought.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// The command that was offered is taken.
    pub taken: bool,
    /// The answer to an earlier one.
    pub done: Option<Done>,
}

/// What has happened so far: a test that hasn't seen everything has proved nothing about the rest. The
/// arrays are by the number of the operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Commands that found something.
    pub found: [u64; OPERATIONS],
    /// Commands that found nothing.
    pub missing: [u64; OPERATIONS],
    /// Longest time from taking a command to its reply, if nothing earlier of its endpoint was under way.
    pub longest: [u64; OPERATIONS],
    /// Arrivals that found nothing, so that their message waits.
    pub appended: u64,
    /// Arrivals whose message would have waited, but found a receive.
    pub matched: u64,
    /// Receives that went to the exact side.
    pub exact: u64,
    /// Receives that went to the associative side.
    pub associative: u64,
    /// Receives refused.
    pub full: u64,
    /// Bins without room.
    pub overflows: u64,
    /// Commands taken while others were under way.
    pub overlapped: u64,
    /// Most receives that were posted at a time.
    pub deepest_posted: usize,
    /// Most messages that waited at a time.
    pub deepest_unexpected: usize,
}

impl Seen {
    /// What has been seen here or there.
    pub fn and(&self, other: &Self) -> Self {
        let sum = |a: &[u64; OPERATIONS], b: &[u64; OPERATIONS]| from_fn(|n| a[n] + b[n]);
        Seen {
            found: sum(&self.found, &other.found),
            missing: sum(&self.missing, &other.missing),
            longest: from_fn(|n| self.longest[n].max(other.longest[n])),
            appended: self.appended + other.appended,
            matched: self.matched + other.matched,
            exact: self.exact + other.exact,
            associative: self.associative + other.associative,
            full: self.full + other.full,
            overflows: self.overflows + other.overflows,
            overlapped: self.overlapped + other.overlapped,
            deepest_posted: self.deepest_posted.max(other.deepest_posted),
            deepest_unexpected: self.deepest_unexpected.max(other.deepest_unexpected),
        }
    }
}

const OPERATIONS: usize = Operation::ALL.len();

struct UnderWay {
    command: Command,
    taken: u64,
    /// Nothing earlier of its endpoint was under way when it was taken.
    first: bool,
    /// Nothing at all was.
    alone: bool,
    /// Arrivals that were; and those of them whose message may wait.
    behind: u64,
    appending: u64,
    /// Cycles until the messages before it have gone to the unexpected side.
    messages: u64,
    /// Bins without room before it was taken.
    overflows: u64,
    /// Arrivals answered before it was taken that may have looked twice.
    detours: u64,
}

/// An engine, the reference, and what is between them.
pub struct Harness<B> {
    block: B,
    lists: Lists,
    sizes: Sizes,
    under_way: VecDeque<UnderWay>,
    cycle: u64,
    /// Cycle of the last command taken or answered, or of the last without any.
    progress: u64,
    overflows: u64,
    /// Arrivals answered so far that may have looked twice.
    detours: u64,
    /// Cycle from which on the unexpected side has all messages of arrivals that were answered.
    appended: u64,
    seen: Seen,
}

impl<B: Block> Harness<B> {
    /// An engine whose lists are empty.
    pub fn new(block: B, sizes: Sizes) -> Self {
        Harness {
            block,
            lists: Lists::new(sizes),
            sizes,
            under_way: VecDeque::new(),
            cycle: 0,
            progress: 0,
            overflows: 0,
            detours: 0,
            appended: 0,
            seen: Seen::default(),
        }
    }

    /// The same engine after a reset: the reference knows of nothing any more.
    pub fn restarted(self) -> Self {
        Self::new(self.block, self.sizes)
    }

    /// The engine.
    pub fn block(&mut self) -> &mut B {
        &mut self.block
    }

    /// The reference, as of the last reply.
    pub fn lists(&self) -> &Lists {
        &self.lists
    }

    /// Sizes of the engine.
    pub fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// What has happened so far.
    pub fn seen(&self) -> &Seen {
        &self.seen
    }

    /// Cycles so far.
    pub fn now(&self) -> u64 {
        self.cycle
    }

    /// Commands taken and not yet answered.
    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    fn breach(&self, what: String) -> Breach {
        Breach {
            cycle: self.cycle,
            what,
        }
    }

    /// One cycle, in which `offer` is offered.
    ///
    /// # Errors
    /// If the engine breaks a promise.
    pub fn cycle(&mut self, offer: Option<&Command>) -> Result<Step, Breach> {
        let outputs = self.block.cycle(offer).map_err(|what| self.breach(what))?;
        self.overflows += u64::from(outputs.overflow);
        let done = match outputs.reply {
            Some(reply) => Some(self.answer(reply)?),
            None => None,
        };
        let taken = offer.filter(|_| outputs.ready);
        if let Some(command) = taken {
            let mut earlier = self.under_way.iter();
            let first = earlier.all(|other| other.command.endpoint != command.endpoint);
            let alone = self.under_way.is_empty();
            let arrivals = self.under_way.iter();
            let arrivals = arrivals.filter(|other| other.command.operation == Operation::Arrive);
            let appending = arrivals.clone().filter(|other| other.command.append);
            let appending = appending.count() as u64;
            let behind = arrivals.count() as u64;
            self.seen.overlapped += u64::from(!self.under_way.is_empty());
            self.under_way.push_back(UnderWay {
                command: *command,
                taken: self.cycle,
                first,
                alone,
                behind,
                appending,
                messages: self.appended.saturating_sub(self.cycle),
                overflows: self.lists.overflows(),
                detours: self.detours,
            });
        }
        let idle = offer.is_none() && self.under_way.is_empty();
        if done.is_some() || taken.is_some() || idle {
            self.progress = self.cycle;
        }
        if self.cycle - self.progress > PATIENCE {
            let stuck = self.under_way.front().map(|first| first.command);
            let what =
                format!("nothing happens while {stuck:x?} is under way and {offer:x?} is offered");
            return Err(self.breach(what));
        }
        self.cycle += 1;
        Ok(Step {
            taken: taken.is_some(),
            done,
        })
    }

    fn answer(&mut self, reply: Reply) -> Result<Done, Breach> {
        let Some(front) = self.under_way.pop_front() else {
            return Err(self.breach(format!("{reply:?} answers nothing")));
        };
        let UnderWay {
            command,
            taken,
            first,
            alone,
            behind,
            appending,
            messages,
            overflows,
            detours,
        } = front;
        let cycles = self.cycle - taken;
        let endpoint = usize::from(command.endpoint);
        if first {
            let limit = self.limit(&command) + messages;
            // Of those before it, each whose bin has no room changes sides.
            let changes = self.lists.overflows() - overflows;
            let limit = match alone {
                true => limit,
                false => {
                    let detours = self.detours - detours;
                    limit
                        + (1 + changes) * INTERFERENCE
                        + detours * DETOUR
                        + behind * CLASSES
                        + appending * APPEND
                }
            };
            if cycles > limit {
                let what = format!("{command:x?} took {cycles} cycles; {limit} are allowed");
                return Err(self.breach(what));
            }
            let longest = &mut self.seen.longest[usize::from(command.operation.code())];
            *longest = cycles.max(*longest);
        }
        let associative = |receive: &Receive| usize::from(receive.index) >= self.sizes.exact;
        self.detours += u64::from(
            command.operation == Operation::Arrive
                && self.lists.posted(endpoint).iter().any(associative),
        );
        let outcome = self
            .lists
            .act(&command, reply)
            .map_err(|expected| Breach {
                cycle: self.cycle,
                what: format!(
                    "{command:x?} {expected}; the reply is {reply:x?}, endpoint {endpoint} has {} posted and {} waiting",
                    self.lists.posted(endpoint).len(),
                    self.lists.waiting(endpoint).len()
                ),
            })?;
        if outcome == Outcome::Inserted {
            self.appended = self.appended.max(self.cycle) + APPEND;
        }
        self.note(&command, outcome);
        Ok(Done {
            command,
            reply,
            outcome,
            cycles,
        })
    }

    /// Cycles allowed for `command`, which is about to be compared.
    fn limit(&self, command: &Command) -> u64 {
        let rows = self.lists.live_rows(usize::from(command.endpoint));
        let of_a_pair = SLOTS / self.sizes.comparators;
        let more = match command.operation {
            Operation::TakePostedOfPair | Operation::TakePostedOfEndpoint => WALK,
            Operation::Post | Operation::Probe | Operation::Claim if command.any_source => rows,
            Operation::Post | Operation::Probe | Operation::Claim => of_a_pair.saturating_sub(2),
            Operation::TakeUnexpectedOfPair | Operation::Remove => of_a_pair.saturating_sub(2),
            _ => 0,
        };
        LATENCY + more as u64
    }

    fn note(&mut self, command: &Command, outcome: Outcome) {
        let seen = &mut self.seen;
        let operation = command.operation;
        let appends = operation == Operation::Arrive && command.append;
        let number = usize::from(operation.code());
        match outcome {
            Outcome::Found(_) => {
                seen.found[number] += 1;
                seen.matched += u64::from(appends);
            }
            Outcome::Missing => seen.missing[number] += 1,
            Outcome::Inserted => seen.appended += u64::from(appends),
            Outcome::Exact => seen.exact += 1,
            Outcome::Associative => seen.associative += 1,
            Outcome::Full => seen.full += 1,
        }
        seen.overflows = self.lists.overflows();
        match operation {
            Operation::Post => {
                seen.deepest_posted = seen.deepest_posted.max(self.lists.posted_depth());
            }
            Operation::Arrive => {
                let depth = self.lists.unexpected_depth();
                seen.deepest_unexpected = seen.deepest_unexpected.max(depth);
            }
            _ => {}
        }
    }

    /// Gives a command when nothing else is under way, and waits for its reply.
    ///
    /// # Errors
    /// If the engine breaks a promise.
    pub fn act(&mut self, command: &Command) -> Result<Done, Breach> {
        while !self.under_way.is_empty() {
            self.cycle(None)?;
        }
        while !self.cycle(Some(command))?.taken {}
        loop {
            if let Some(done) = self.cycle(None)?.done {
                return Ok(done);
            }
        }
    }

    /// Waits for all replies and then some, and compares what is only sure when nothing moves: the
    /// depths, and the count of bins without room.
    ///
    /// # Errors
    /// If the engine breaks a promise.
    pub fn settle(&mut self) -> Result<Vec<Done>, Breach> {
        let mut all = vec![];
        while !self.under_way.is_empty() {
            all.extend(self.cycle(None)?.done);
        }
        for _ in 0..SETTLED {
            self.cycle(None)?;
        }
        let Outputs {
            posted_depth,
            unexpected_depth,
            ..
        } = self.block.cycle(None).map_err(|what| self.breach(what))?;
        for (what, shown, expected) in [
            ("posted receives", posted_depth, self.lists.posted_depth()),
            (
                "waiting messages",
                unexpected_depth,
                self.lists.unexpected_depth(),
            ),
            (
                "bins without room",
                self.overflows as usize,
                self.lists.overflows() as usize,
            ),
        ] {
            if shown != expected {
                return Err(self.breach(format!("{expected} {what}; the engine says {shown}")));
            }
        }
        Ok(all)
    }

    /// Gives `commands` random commands, and then takes out what is left.
    ///
    /// # Errors
    /// If the engine breaks a promise.
    pub fn random(
        &mut self,
        traffic: &mut Traffic,
        rng: &mut impl Rng,
        commands: u64,
    ) -> Result<(), Breach> {
        for _ in 0..commands {
            if traffic.turns(rng) {
                for done in self.settle()? {
                    traffic.done(&done);
                }
            }
            while self.under_way.len() >= traffic.window() || rng.random_bool(traffic.idle()) {
                if let Some(done) = self.cycle(None)?.done {
                    traffic.done(&done);
                }
            }
            let command = traffic.command(&self.lists, rng);
            loop {
                let step = self.cycle(Some(&command))?;
                if let Some(done) = step.done {
                    traffic.done(&done);
                }
                if step.taken {
                    break;
                }
            }
        }
        for done in self.settle()? {
            traffic.done(&done);
        }
        self.empty()
    }

    /// Takes out everything, by the operations that a closing endpoint uses.
    ///
    /// # Errors
    /// If the engine breaks a promise.
    pub fn empty(&mut self) -> Result<(), Breach> {
        for endpoint in 0..self.sizes.endpoints {
            let mut take = Command {
                endpoint: endpoint as u8,
                ..Command::new(Operation::TakePostedOfEndpoint)
            };
            loop {
                let reply = self.act(&take)?.reply;
                if !reply.found && !reply.more {
                    break;
                }
                take.again = true;
            }
            while let Some(message) = self.lists.waiting(endpoint).first() {
                let take = Command {
                    endpoint: endpoint as u8,
                    pair: message.pair,
                    ..Command::new(Operation::TakeUnexpectedOfPair)
                };
                while self.act(&take)?.reply.found {}
            }
        }
        self.settle().map(|_| ())
    }
}
