//! The engine itself, Verilated, and every reply of it held to the reference.

use anyhow::{Context, Result};
use match_reference::{
    Command, Done, Harness, Operation, Outcome, Receive, SLOTS, Sizes, Verilated,
};
use rand::Rng;
use serde_json::Value;

use crate::bench::Point;
use host_matching::workload::{Kind, Structure, Workload, mask};

/// Context of receives that only keep classes busy.
const ASIDE: u16 = 0xffff;

/// Cycles of one operation, over the samples taken.
#[derive(Clone, Debug, Default)]
pub struct Cycles {
    total: u64,
    count: u64,
    max: u64,
}

impl Cycles {
    fn add(&mut self, cycles: u64) {
        self.total += cycles;
        self.count += 1;
        self.max = self.max.max(cycles);
    }

    /// On the average.
    pub fn mean(&self) -> f64 {
        self.total as f64 / self.count as f64
    }

    /// At most.
    pub fn max(&self) -> f64 {
        self.max as f64
    }
}

/// Cycles of the operations at one depth.
#[derive(Clone, Debug, Default)]
pub struct Operations {
    /// A message comes. Where messages wait it finds no receive, and waits.
    pub arrive: Cycles,
    /// A receive is posted.
    pub post: Cycles,
    /// A receive is cancelled.
    pub cancel: Cycles,
    /// Somebody looks for a message.
    pub probe: Cycles,
}

/// Operations one behind the other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rate {
    /// Operations per cycle.
    pub rate: f64,
    /// Share of the operations whose endpoint had receives on both sides.
    pub both_sides: f64,
    /// Posts whose places on the exact side were full.
    pub overflows: u64,
    /// Posts that went to the associative side, those included.
    pub associative: u64,
}

impl Rate {
    /// As it is in a report, of a list of `depth` entries.
    pub fn point<const N: usize>(&self, params: [(&'static str, Value); N], depth: usize) -> Point {
        let mut point = Point::new("sustained", params, self.rate, "ops/cycle");
        point.beside.insert("entries", depth as f64);
        point.beside.insert("share_on_both_sides", self.both_sides);
        point.beside.insert("overflows", self.overflows as f64);
        point.beside.insert("associative", self.associative as f64);
        point
    }
}

/// What is posted while a rate is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// Receives of different keys.
    Distinct,
    /// Receives of one key.
    One,
    /// Receives of different keys, and one of each endpoint on the associative side.
    BesideOdd,
    /// Receives of different keys; a message that found none would wait.
    Append,
}

impl Keys {
    /// All.
    pub const ALL: [Self; 4] = [Self::Distinct, Self::One, Self::BesideOdd, Self::Append];

    /// As it is in a report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Distinct => "distinct",
            Self::One => "one",
            Self::BesideOdd => "beside_odd",
            Self::Append => "append",
        }
    }
}

/// How the messages that wait are spread over the rows of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// As many in a row as there are comparators, or credits.
    Dense,
    /// One in each row, as far as there are rows.
    Sparse,
}

/// The envelope of the message that `receive` waits for.
fn envelope(receive: &Command) -> Command {
    Command {
        operation: Operation::Arrive,
        any_source: false,
        ignore_bits: 0,
        request: 0,
        ..*receive
    }
}

/// An engine to measure.
pub struct Engine {
    harness: Harness<Verilated>,
    sizes: Sizes,
}

impl Engine {
    /// Opens the engine of a configuration.
    ///
    /// # Errors
    /// If there is no model of it.
    pub fn open(config: &str, sizes: Sizes, seed: u128) -> Result<Self> {
        let block = Verilated::open(&format!("lists_{config}"), sizes.pairs, seed)?;
        Ok(Self {
            harness: Harness::new(block, sizes),
            sizes,
        })
    }

    /// Empties it, and gives the hash another seed.
    ///
    /// # Errors
    /// If the engine breaks a promise.
    pub fn reseed(&mut self, seed: u128) -> Result<()> {
        self.harness.empty()?;
        self.harness.block().reset(seed)?;
        Ok(())
    }

    /// The sizes.
    pub fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// Entries of this kind with which a list is full. Receives of a class fill both sides.
    pub fn capacity(&self, structure: Structure, kind: Kind) -> usize {
        match (structure, kind) {
            (Structure::Unexpected, _) => self.sizes.unexpected,
            (Structure::Posted, Kind::Mask) => self.sizes.posted,
            (Structure::Posted, _) => self.sizes.exact + self.sizes.posted,
        }
    }

    fn act(&mut self, command: &Command) -> Result<Done> {
        Ok(self.harness.act(command)?)
    }

    /// Endpoints that a list of `depth` is spread over: one, if it may have so many; else all.
    pub fn endpoints(&self, kinds: &[Kind], depth: usize) -> usize {
        let of_one = match kinds.contains(&Kind::Mask) {
            true => self.sizes.posted_of_one(),
            false => self.sizes.exact_of_one(),
        };
        match depth <= of_one {
            true => 1,
            false => self.sizes.endpoints,
        }
    }

    /// Endpoint of receive `n` of a list of `depth`: so many as there are kinds are of one, and then the next.
    fn endpoint(&self, kinds: &[Kind], depth: usize, n: usize) -> u8 {
        (n / kinds.len() % self.endpoints(kinds, depth)) as u8
    }

    /// Receives of other kinds, so that those that follow on this endpoint find no class.
    fn busy_classes(&self, endpoint: u8) -> Vec<Command> {
        let classes = 0..self.sizes.classes;
        let receive = |class| Command {
            endpoint,
            pair: endpoint.into(),
            context: ASIDE,
            // Beyond the tag, so that no workload has it.
            ignore_bits: 1_u64 << (40 + class),
            request: u32::MAX - class as u32,
            ..Command::new(Operation::Post)
        };
        classes.map(receive).collect()
    }

    fn post_all(&mut self, receives: &[Command]) -> Result<()> {
        for receive in receives {
            let done = self.act(receive)?;
            anyhow::ensure!(
                matches!(done.outcome, Outcome::Exact | Outcome::Associative),
                "the list doesn't take {receive:?}"
            );
        }
        Ok(())
    }

    fn cancel_all(&mut self, receives: &[Command]) -> Result<()> {
        for receive in receives {
            self.act(&Command {
                operation: Operation::Cancel,
                ..*receive
            })?;
        }
        Ok(())
    }

    /// Sources of the workload, so that they are pairs of the card.
    fn workload(&self, kinds: &[Kind], count: usize, rng: &mut impl Rng) -> Workload {
        Workload::new(kinds, count, self.sizes.pairs, rng)
    }

    /// Cycles of each operation while `depth` receives are posted, of these kinds in turn.
    ///
    /// # Errors
    /// If the engine breaks a promise.
    pub fn posted(
        &mut self,
        kinds: &[Kind],
        depth: usize,
        samples: usize,
        rng: &mut impl Rng,
    ) -> Result<Operations> {
        let workload = self.workload(kinds, depth, rng);
        let own = |engine: &Self, command: Command| Command {
            endpoint: engine.endpoint(kinds, depth, command.request as usize),
            ..command
        };
        if kinds.contains(&Kind::Mask) {
            for endpoint in 0..self.sizes.endpoints as u8 {
                let busy = self.busy_classes(endpoint);
                self.post_all(&busy)?;
            }
        }
        let receives: Vec<Command> = (0..depth).map(|n| own(self, workload.receive(n))).collect();
        self.timed(&receives, samples, rng)
    }

    /// Cycles of each operation while these receives are posted, of which no two match the same message.
    ///
    /// # Errors
    /// If the engine breaks a promise.
    pub fn timed(
        &mut self,
        receives: &[Command],
        samples: usize,
        rng: &mut impl Rng,
    ) -> Result<Operations> {
        self.post_all(receives)?;
        let mut operations = Operations::default();
        for _ in 0..samples {
            let receive = receives[rng.random_range(0..receives.len())];
            let probe = Command {
                operation: Operation::Probe,
                ..receive
            };
            operations.probe.add(self.act(&probe)?.cycles);
            let message = envelope(&receive);
            let arrived = self.act(&message)?;
            anyhow::ensure!(arrived.reply.found, "{message:?} finds its receive");
            operations.arrive.add(arrived.cycles);
            operations.post.add(self.act(&receive)?.cycles);
            let cancel = Command {
                operation: Operation::Cancel,
                ..receive
            };
            operations.cancel.add(self.act(&cancel)?.cycles);
            operations.post.add(self.act(&receive)?.cycles);
        }
        self.harness.empty()?;
        Ok(operations)
    }

    /// The place of message `n`.
    fn slot(&self, spread: Spread, n: usize) -> (u16, u8) {
        let (pairs, row) = (self.sizes.pairs, self.sizes.comparators);
        let (pair, slot) = match spread {
            Spread::Dense => (n / SLOTS, n % SLOTS),
            Spread::Sparse => {
                let rows = SLOTS / row;
                let round = n / (pairs * rows);
                (n % pairs, n / pairs % rows * row + round)
            }
        };
        (pair as u16, slot as u8)
    }

    /// Puts `depth` messages into the list.
    fn wait(&mut self, depth: usize, spread: Spread, rng: &mut impl Rng) -> Result<Vec<Command>> {
        let workload = self.workload(&[Kind::Exact], depth, rng);
        let message = |n: usize| {
            let (pair, slot) = self.slot(spread, n);
            Command {
                pair,
                slot,
                append: true,
                ..workload.message(n)
            }
        };
        let messages: Vec<Command> = (0..depth).map(message).collect();
        for message in &messages {
            self.act(message)?;
        }
        Ok(messages)
    }

    /// The receive of this kind that message `n` matches. There may be earlier ones that it matches, too.
    fn asks(kind: Kind, message: &Command, n: usize) -> Command {
        Command {
            operation: Operation::Post,
            any_source: matches!(kind, Kind::AnySource | Kind::Any),
            ignore_bits: match kind {
                Kind::Exact | Kind::AnySource => 0,
                Kind::AnyTag | Kind::Any => host_matching::workload::TAG_BITS,
                Kind::Mask => mask(n),
            },
            request: n as u32,
            slot: 0,
            append: false,
            ..*message
        }
    }

    /// Cycles of each operation while `depth` messages wait.
    ///
    /// # Errors
    /// If the engine breaks a promise.
    pub fn unexpected(
        &mut self,
        kind: Kind,
        depth: usize,
        spread: Spread,
        samples: usize,
        rng: &mut impl Rng,
    ) -> Result<Operations> {
        let messages = self.wait(depth, spread, rng)?;
        let mut operations = Operations::default();
        for _ in 0..samples {
            let n = rng.random_range(0..depth);
            let receive = Self::asks(kind, &messages[n], n);
            let probe = Command {
                operation: Operation::Probe,
                ..receive
            };
            operations.probe.add(self.act(&probe)?.cycles);
            let posted = self.act(&receive)?;
            operations.post.add(posted.cycles);
            let Outcome::Found(found) = posted.outcome else {
                anyhow::bail!("{receive:?} finds a message");
            };
            // The same message comes again, and waits in the same slot.
            operations.arrive.add(self.act(&found)?.cycles);
            let elsewhere = Command {
                context: ASIDE,
                ..receive
            };
            self.act(&elsewhere)?;
            let cancel = Command {
                operation: Operation::Cancel,
                ..elsewhere
            };
            operations.cancel.add(self.act(&cancel)?.cycles);
        }
        self.harness.empty()?;
        Ok(operations)
    }

    /// Whether an endpoint has receives on both sides.
    fn is_on_both_sides(&self, endpoint: u8) -> bool {
        let posted = self.harness.lists().posted(endpoint.into());
        let exact = |receive: &&Receive| usize::from(receive.index) < self.sizes.exact;
        let first = posted.iter().next();
        first.is_some_and(|first| posted.iter().any(|r| exact(&r) != exact(&first)))
    }

    /// Offers commands as fast as they are taken; the rate is from the first reply to the last.
    fn rate(&mut self, commands: &[Command]) -> Result<Rate> {
        let before = *self.harness.seen();
        let mut both_sides = 0;
        let mut replies = vec![];
        let mut open = commands.iter().peekable();
        while open.peek().is_some() || self.harness.under_way() > 0 {
            let step = self.harness.cycle(open.peek().copied())?;
            if step.taken {
                open.next();
            }
            if let Some(done) = step.done {
                replies.push(self.harness.now());
                both_sides += usize::from(self.is_on_both_sides(done.command.endpoint));
            }
        }
        let (first, last) = replies
            .first()
            .zip(replies.last())
            .context("there are replies")?;
        let after = self.harness.seen();
        Ok(Rate {
            rate: (replies.len() - 1) as f64 / (last - first).max(1) as f64,
            both_sides: both_sides as f64 / replies.len() as f64,
            overflows: after.overflows - before.overflows,
            associative: after.associative - before.associative,
        })
    }

    /// Posts a receive of each endpoint that stays on the associative side, and that no message is for.
    fn post_odd(&mut self) -> Result<()> {
        for endpoint in 0..self.sizes.endpoints as u8 {
            let busy = self.busy_classes(endpoint);
            self.post_all(&busy)?;
            let odd = Command {
                ignore_bits: mask(0),
                request: u32::MAX - busy.len() as u32,
                ..busy[0]
            };
            self.post_all(&[odd])?;
            self.cancel_all(&busy)?;
        }
        Ok(())
    }

    /// Operations per cycle, arrivals and posts in turn, while about `depth` receives of these kinds, in turn, are posted by one
    /// endpoint, if it may have so many, or by all in turn.
    ///
    /// # Errors
    /// If the engine breaks a promise.
    pub fn sustained(
        &mut self,
        kinds: &[Kind],
        depth: usize,
        keys: Keys,
        operations: usize,
        rng: &mut impl Rng,
    ) -> Result<Rate> {
        if keys == Keys::BesideOdd {
            self.post_odd()?;
        }
        let append = keys == Keys::Append;
        let one_key = keys == Keys::One;
        let keys = 2 * depth;
        let workload = self.workload(kinds, keys, rng);
        let key = |n: usize| if one_key { 0 } else { n % keys };
        // Each is of another endpoint than the one before, and of the kind that is its endpoint's turn.
        let (own, endpoints) = (kinds.len(), self.endpoints(kinds, depth));
        let turn = |n: usize| {
            let round = n / (own * endpoints);
            own * (round * endpoints + n % endpoints) + n / endpoints % own
        };
        let receive = |n: usize| Command {
            endpoint: self.endpoint(kinds, depth, turn(n)),
            request: n as u32,
            ..workload.receive(key(turn(n)))
        };
        let receives: Vec<Command> = (0..depth + operations / 2).map(receive).collect();
        self.stream(&receives, depth, append)
    }

    /// Operations per cycle, arrivals and posts in turn: the first `depth` of these receives are posted, then a message comes for
    /// the first of all and the next is posted, and so on to the last. With `append` the messages would wait.
    ///
    /// # Errors
    /// If the engine breaks a promise.
    pub fn stream(&mut self, receives: &[Command], depth: usize, append: bool) -> Result<Rate> {
        self.post_all(&receives[..depth])?;
        let turns = receives.iter().zip(&receives[depth..]);
        let commands: Vec<Command> = turns
            .flat_map(|(due, next)| {
                let message = Command {
                    append,
                    ..envelope(due)
                };
                [message, *next]
            })
            .collect();
        let rate = self.rate(&commands)?;
        self.harness.empty()?;
        Ok(rate)
    }

    /// Operations per cycle of messages that each find a receive on the associative side, `depth` in a row, while
    /// their endpoint has nothing on the exact side.
    ///
    /// # Errors
    /// If the engine breaks a promise.
    pub fn burst(&mut self, depth: usize, rounds: usize, rng: &mut impl Rng) -> Result<f64> {
        let mut total = 0.0;
        for _ in 0..rounds {
            let workload = self.workload(&[Kind::Mask], depth, rng);
            let busy = self.busy_classes(0);
            self.post_all(&busy)?;
            let receives: Vec<Command> = (0..depth).map(|n| workload.receive(n)).collect();
            self.post_all(&receives)?;
            self.cancel_all(&busy)?;
            let messages: Vec<Command> = (0..depth).map(|n| workload.message(n)).collect();
            total += self.rate(&messages)?.rate;
            self.harness.empty()?;
        }
        Ok(total / rounds as f64)
    }

    /// Operations per cycle while `depth` messages wait: one comes, finds no receive and waits, and a receive of this kind takes the
    /// one that has waited longest. Two operations a message.
    ///
    /// # Errors
    /// If the engine breaks a promise.
    pub fn sustained_unexpected(
        &mut self,
        kind: Kind,
        depth: usize,
        operations: usize,
        rng: &mut impl Rng,
    ) -> Result<Rate> {
        let messages = self.wait(depth, Spread::Dense, rng)?;
        let asks = |n: usize| Self::asks(kind, &messages[n % depth], n);
        // Its place is where the first that comes will wait.
        self.act(&asks(0))?;
        let commands: Vec<Command> = (0..operations / 2)
            .flat_map(|n| [messages[n % depth], asks(n + 1)])
            .collect();
        let posted = self.harness.lists().posted_depth();
        let rate = self.rate(&commands)?;
        anyhow::ensure!(
            self.harness.lists().posted_depth() == posted,
            "each receive takes a message"
        );
        self.harness.empty()?;
        Ok(rate)
    }

    /// Posts `receives` and says how many found no room in their bins, and how many were posted before the
    /// first of those.
    ///
    /// # Errors
    /// If the engine breaks a promise.
    pub fn fill(&mut self, receives: &[Command]) -> Result<(u64, usize)> {
        let before = self.harness.lists().overflows();
        let mut first = None;
        for (n, receive) in receives.iter().enumerate() {
            self.act(receive)?;
            if self.harness.lists().overflows() > before {
                first.get_or_insert(n);
            }
        }
        let overflows = self.harness.lists().overflows() - before;
        Ok((overflows, first.unwrap_or(receives.len())))
    }
}
