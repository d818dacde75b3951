//! Random commands: phases in which one thing or the other is likely, so that lists get deep and
//! empty, keys hot and distinct, classes few and too many, and commands race each other.

use std::collections::VecDeque;

use rand::Rng;
use rand::distr::Distribution;
use rand::distr::weighted::WeightedIndex;
use rand::seq::{IndexedRandom, SliceRandom};

use card_model::matching::{Command, Lists, Operation, Outcome, Sizes};

use crate::harness::Done;
use crate::sizes::SLOTS;

/// The ignore bits that every receive of MPICH's ch4:ofi has, with and without a tag.
const PROTOCOL: u64 = 0x00c0_0000_0000_0000;
const ANY_TAG: u64 = PROTOCOL | 0x7fff_ffff;

/// Commands that may still be under way when another one races them.
const RECENT: usize = 8;

/// How often each operation comes, in the order of their numbers.
const WEIGHTS: [[u32; Operation::ALL.len()]; 9] = [
    [8, 4, 8, 2, 2, 1, 1, 1, 2],
    [20, 0, 20, 4, 0, 0, 0, 0, 0],
    [20, 0, 20, 0, 0, 0, 0, 0, 0],
    [2, 0, 20, 1, 0, 0, 0, 0, 0],
    [2, 20, 2, 1, 2, 0, 0, 0, 1],
    [1, 6, 6, 1, 3, 0, 0, 1, 6],
    [20, 0, 2, 4, 1, 2, 2, 3, 3],
    [6, 1, 6, 6, 1, 3, 3, 6, 3],
    [60, 0, 2, 0, 0, 0, 0, 0, 1],
];

/// Among them, those by which receives and messages pile up. Each traffic has them early, the last first, so that no short one is without.
const EARLY: [usize; 2] = [3, 4];

/// Messages in a burst: more than the engine has room for at once on their way to the unexpected side.
const BURST: usize = 24;

/// What is likely for a while.
struct Phase {
    weights: WeightedIndex<u32>,
    /// Endpoints that take part.
    endpoints: Vec<u8>,
    /// Ignore bits and any-source of most receives.
    kinds: Vec<(u64, bool)>,
    /// How often a receive has ignore bits of its own.
    odd: f64,
    /// Match bits, or none if each receive is to have its own.
    tags: Vec<u64>,
    contexts: u16,
    multi: f64,
    /// How often the message of an arrival is to wait if it finds no receive.
    appends: f64,
    /// How often a command is for something that is known to be live.
    aimed: f64,
    idle: f64,
    window: usize,
    left: u32,
}

/// Makes commands.
pub struct Traffic {
    sizes: Sizes,
    /// Endpoint of each pair.
    endpoint_of: Vec<u8>,
    /// Slots of each pair in which a message waits, or is about to.
    busy: Vec<u16>,
    waiting: usize,
    request: u32,
    /// Given before anything random.
    script: VecDeque<Command>,
    recent: VecDeque<Command>,
    /// The last walk, and whether there is more to find.
    walk: Option<(Command, bool)>,
    /// Weights that haven't had their turn.
    to_come: Vec<usize>,
    phase: Phase,
}

impl Traffic {
    /// Traffic for an engine whose lists are empty.
    pub fn new(sizes: Sizes, rng: &mut impl Rng) -> Self {
        let random = |pair: usize| match pair < sizes.endpoints {
            true => pair as u8,
            false => rng.random_range(0..sizes.endpoints) as u8,
        };
        let endpoint_of = (0..sizes.pairs).map(random).collect();
        Traffic {
            sizes,
            endpoint_of,
            busy: vec![0; sizes.pairs],
            waiting: 0,
            request: 0,
            script: VecDeque::new(),
            recent: VecDeque::new(),
            walk: None,
            to_come: EARLY.to_vec(),
            phase: Phase::random(&sizes, 0, rng),
        }
    }

    /// How many commands may be under way.
    pub(crate) fn window(&self) -> usize {
        self.phase.window
    }

    /// How often nothing is offered.
    pub(crate) fn idle(&self) -> f64 {
        self.phase.idle
    }

    /// Whether another phase begins, which is a moment to let everything settle.
    pub(crate) fn turns(&mut self, rng: &mut impl Rng) -> bool {
        if self.phase.left > 0 {
            self.phase.left -= 1;
            return false;
        }
        if self.to_come.is_empty() {
            self.to_come = (0..WEIGHTS.len()).collect();
            self.to_come.shuffle(rng);
        }
        let weights = self.to_come.pop().expect("filled above");
        self.phase = Phase::random(&self.sizes, weights, rng);
        if rng.random_bool(0.2) {
            self.only_associative(rng);
        }
        if rng.random_bool(0.2) {
            self.burst(rng);
        }
        true
    }

    /// Learns what became of a command.
    pub(crate) fn done(&mut self, done: &Done) {
        let takes = matches!(
            done.command.operation,
            Operation::Post
                | Operation::Claim
                | Operation::Remove
                | Operation::TakeUnexpectedOfPair
        );
        let begun = Command {
            again: false,
            ..done.command.essence()
        };
        if let Some((_, goes_on)) = self.walk.as_mut().filter(|(walk, _)| *walk == begun) {
            *goes_on = done.reply.found || done.reply.more;
        }
        if let Outcome::Found(message) = done.outcome {
            // A message that doesn't wait leaves its slot, and so does one that has waited.
            let vacated = match takes {
                true => Some(message),
                false => Some(done.command).filter(|command| command.append),
            };
            if let Some(message) = vacated {
                self.busy[usize::from(message.pair)] &= !(1 << message.slot);
                self.waiting -= 1;
            }
        }
    }

    fn handle(&mut self) -> u32 {
        // An odd factor: no handle comes twice, and neighbours look unlike each other.
        self.request = self.request.wrapping_add(1);
        self.request.wrapping_mul(0x9e37_79b9)
    }

    /// A script after which an endpoint has receives on the associative side alone: receives of other kinds take
    /// every class, and go.
    fn only_associative(&mut self, rng: &mut impl Rng) {
        let endpoint = *self.phase.endpoints.choose(rng).expect("at least one");
        let post = |traffic: &mut Self, rng: &mut _| Command {
            ignore_bits: odd_mask(&traffic.sizes, rng),
            context: 0xfffe,
            pair: traffic.pair_of(endpoint, rng),
            request: traffic.handle(),
            endpoint,
            ..Command::new(Operation::Post)
        };
        let classes: Vec<Command> = (0..self.sizes.classes).map(|_| post(self, rng)).collect();
        let others: Vec<Command> = (0..rng.random_range(1..self.sizes.posted))
            .map(|_| post(self, rng))
            .collect();
        let cancels = classes.iter().map(|class| Command {
            operation: Operation::Cancel,
            ..*class
        });
        let cancels: Vec<Command> = cancels.collect();
        self.script.extend(classes);
        self.script.extend(&others);
        self.script.extend(cancels);
        // And messages for them, one behind the other.
        self.script.extend(others.iter().map(|receive| Command {
            operation: Operation::Arrive,
            match_bits: receive.match_bits ^ receive.ignore_bits,
            ignore_bits: 0,
            ..*receive
        }));
    }

    /// A script of arrivals that find nothing and wait, one behind the other.
    fn burst(&mut self, rng: &mut impl Rng) {
        let endpoint = *self.phase.endpoints.choose(rng).expect("at least one");
        for _ in 0..BURST {
            let mut message = Command {
                endpoint,
                context: 0xfffd,
                pair: self.pair_of(endpoint, rng),
                match_bits: rng.random(),
                ..Command::new(Operation::Arrive)
            };
            message.append = self.reserves(&mut message, rng);
            self.script.push_back(message);
        }
    }

    fn pair_of(&self, endpoint: u8, rng: &mut impl Rng) -> u16 {
        loop {
            let pair = rng.random_range(0..self.sizes.pairs);
            if self.endpoint_of[pair] == endpoint {
                return pair as u16;
            }
        }
    }

    /// A pair that is likely to come again soon.
    fn hot_pair_of(&self, endpoint: u8, rng: &mut impl Rng) -> u16 {
        match rng.random_bool(0.7) {
            // `new` has given each endpoint the pair of its number.
            true => endpoint.into(),
            false => self.pair_of(endpoint, rng),
        }
    }

    /// The next command.
    pub fn command(&mut self, lists: &Lists, rng: &mut impl Rng) -> Command {
        let mut command = match self.script.pop_front() {
            Some(command) => command,
            None => self.random(lists, rng),
        };
        if command.operation == Operation::Arrive
            && !command.append
            && rng.random_bool(self.phase.appends)
        {
            command.append = self.reserves(&mut command, rng);
        }
        // What isn't compared may be anything.
        let beyond = !self.sizes.match_mask;
        if beyond != 0 {
            command.match_bits ^= rng.random::<u64>() & beyond;
            command.ignore_bits ^= rng.random::<u64>() & beyond;
        }
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(command);
        command
    }

    fn random(&mut self, lists: &Lists, rng: &mut impl Rng) -> Command {
        // A walk goes on with other commands between its steps, and mostly to its end.
        let operation = Operation::ALL[self.phase.weights.sample(rng)];
        let walks = [Operation::TakePostedOfPair, Operation::TakePostedOfEndpoint];
        if let Some((walk, true)) = self.walk
            && rng.random_bool(match walk.operation {
                _ if walks.contains(&operation) => 0.9,
                Operation::TakePostedOfPair => 0.25,
                _ => 0.02,
            })
        {
            return Command {
                again: true,
                ..walk
            };
        }
        let endpoint = *self.phase.endpoints.choose(rng).expect("at least one");
        let mut command = Command {
            endpoint,
            pair: self.hot_pair_of(endpoint, rng),
            context: rng.random_range(0..self.phase.contexts),
            match_bits: match self.phase.tags.choose(rng) {
                Some(tag) => *tag,
                None => rng.random(),
            },
            ..Command::new(operation)
        };
        match operation {
            Operation::Arrive => self.aim_message(&mut command, lists, rng),
            // As a rule one more message comes, so that there is something to remove.
            Operation::Remove if rng.random_bool(0.85) => return self.pile_up(command, rng),
            Operation::Remove => self.aim_remove(&mut command, lists, rng),
            Operation::Post | Operation::Probe | Operation::Claim => {
                self.receive(&mut command, lists, rng);
            }
            Operation::Cancel => self.aim_cancel(&mut command, lists, rng),
            Operation::TakePostedOfPair | Operation::TakePostedOfEndpoint => {
                // Often of a pair that a receive names.
                let live = lists.posted(endpoint.into()).choose(rng);
                if let Some(receive) = live.filter(|_| rng.random_bool(0.8)) {
                    command.pair = receive.command.pair;
                }
                let command = command.essence();
                self.walk = Some((command, false));
                return command;
            }
            Operation::TakeUnexpectedOfPair => {}
        }
        command
    }

    /// Often makes an envelope match a receive that is live, or about to be.
    fn aim_message(&self, message: &mut Command, lists: &Lists, rng: &mut impl Rng) {
        if !rng.random_bool(self.phase.aimed) {
            return;
        }
        let live = lists.posted(message.endpoint.into());
        let recent = |c: &&Command| c.operation == Operation::Post;
        let receive = match rng.random_bool(0.2) {
            true => self.recent.iter().rev().find(recent).copied(),
            false => live.choose(rng).map(|receive| receive.command),
        };
        if let Some(receive) = receive {
            message.endpoint = receive.endpoint;
            message.context = receive.context;
            message.match_bits = receive.match_bits ^ (rng.random::<u64>() & receive.ignore_bits);
            message.pair = match receive.any_source {
                true => self.hot_pair_of(receive.endpoint, rng),
                false => receive.pair,
            };
        }
    }

    /// A message that waits if no receive matches it; if there is no slot for it, looks for one that waits.
    fn pile_up(&mut self, mut message: Command, rng: &mut impl Rng) -> Command {
        if self.busy[usize::from(message.pair)] == (1 << SLOTS) - 1 {
            message.pair = self.pair_of(message.endpoint, rng);
        }
        if !self.reserves(&mut message, rng) {
            message.operation = Operation::Claim;
            message.any_source = true;
            message.ignore_bits = u64::MAX;
            return message;
        }
        message.operation = Operation::Arrive;
        message.append = true;
        message
    }

    /// Names the place of a message that waits, or has just come; or any.
    fn aim_remove(&self, remove: &mut Command, lists: &Lists, rng: &mut impl Rng) {
        let recent = |c: &&Command| c.append && c.endpoint == remove.endpoint;
        let message = match rng.random_range(0..10) {
            0 => None,
            1..4 => self.recent.iter().rev().find(recent).copied(),
            _ => lists.waiting(remove.endpoint.into()).choose(rng).copied(),
        };
        remove.slot = rng.random_range(0..SLOTS as u8);
        if let Some(message) = message {
            (remove.pair, remove.slot) = (message.pair, message.slot);
        }
    }

    /// Gives a message a free slot of its pair. `false` if there is none.
    fn reserves(&mut self, message: &mut Command, rng: &mut impl Rng) -> bool {
        let slots: Vec<u8> = (0..SLOTS as u8)
            .filter(|slot| self.busy[usize::from(message.pair)] & 1 << slot == 0)
            .collect();
        if slots.is_empty() || self.waiting == self.sizes.unexpected {
            return false;
        }
        // As a rule the lowest, as Delivery gives them.
        message.slot = match rng.random_bool(0.8) {
            true => slots[0],
            false => *slots.choose(rng).expect("the pair has one"),
        };
        self.busy[usize::from(message.pair)] |= 1 << message.slot;
        self.waiting += 1;
        true
    }

    /// Fills in a receive, or what looks for a message as one does.
    fn receive(&mut self, receive: &mut Command, lists: &Lists, rng: &mut impl Rng) {
        let kind = self.phase.kinds.choose(rng).expect("at least one");
        (receive.ignore_bits, receive.any_source) = *kind;
        if rng.random_bool(self.phase.odd) {
            receive.ignore_bits = odd_mask(&self.sizes, rng);
            receive.any_source = rng.random_bool(0.3);
        }
        receive.multi = rng.random_bool(self.phase.multi);
        receive.request = self.handle();
        if rng.random_bool(self.phase.aimed / 2.0)
            && let Some(message) = lists.waiting(receive.endpoint.into()).choose(rng)
        {
            receive.context = message.context;
            receive.match_bits = message.match_bits ^ (rng.random::<u64>() & receive.ignore_bits);
            if !receive.any_source {
                receive.pair = message.pair;
            }
        }
    }

    /// Names a receive that is live, was just posted, or is none of this endpoint's.
    fn aim_cancel(&self, cancel: &mut Command, lists: &Lists, rng: &mut impl Rng) {
        let live = lists.posted(cancel.endpoint.into());
        let target = match rng.random_range(0..10) {
            0 => None,
            1..4 => self.recent.iter().rev().find(|c| c.request != 0).copied(),
            4 => {
                // Another endpoint's, most likely.
                let endpoint = rng.random_range(0..self.sizes.endpoints);
                lists.posted(endpoint).choose(rng).map(|r| r.command)
            }
            _ => live.choose(rng).map(|receive| receive.command),
        };
        cancel.request = target.map_or_else(|| rng.random(), |receive| receive.request);
    }
}

impl Phase {
    fn random(sizes: &Sizes, weights: usize, rng: &mut impl Rng) -> Self {
        let mut endpoints: Vec<u8> = (0..sizes.endpoints as u8).collect();
        while endpoints.len() > 1 && rng.random_bool(0.4) {
            endpoints.swap_remove(rng.random_range(0..endpoints.len()));
        }
        let mut kinds = vec![
            (0, false),
            (PROTOCOL, false),
            (PROTOCOL, true),
            (ANY_TAG, false),
            (ANY_TAG, true),
            (u64::MAX, true),
        ];
        for _ in 0..rng.random_range(0..kinds.len()) {
            kinds.swap_remove(rng.random_range(0..kinds.len()));
        }
        let tags = [0, 1, 2, 16][rng.random_range(0..4)];
        Phase {
            weights: WeightedIndex::new(WEIGHTS[weights]).expect("some weight is positive"),
            endpoints,
            kinds,
            odd: [0.0, 0.0, 0.05, 0.5][rng.random_range(0..4)],
            tags: (0..tags).map(|_| rng.random()).collect(),
            contexts: [1, 1, 3][rng.random_range(0..3)],
            multi: [0.0, 0.0, 0.05][rng.random_range(0..3)],
            appends: [0.0, 0.1, 0.5, 1.0][rng.random_range(0..4)],
            aimed: [0.3, 0.8, 0.95][rng.random_range(0..3)],
            idle: [0.0, 0.0, 0.1, 0.5, 0.9][rng.random_range(0..5)],
            window: [1, 2, 1000, 1000][rng.random_range(0..4)],
            left: rng.random_range(100..1000 + 2 * (sizes.exact + sizes.unexpected) as u32),
        }
    }
}

/// Ignore bits that hardly anybody else has.
fn odd_mask(sizes: &Sizes, rng: &mut impl Rng) -> u64 {
    let bits = sizes.match_mask.count_ones();
    match rng.random_range(0..4) {
        0 => 1 << rng.random_range(0..bits),
        1 => 0xff << rng.random_range(0..bits.saturating_sub(7).max(1)),
        2 => rng.random::<u64>() & rng.random::<u64>(),
        _ => rng.random(),
    }
}
