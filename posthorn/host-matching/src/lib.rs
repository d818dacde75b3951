//! The opponent: tag matching on the host, as fast as we can write it.
//!
//! ```text
//!  message ─► for each class in use: hash(bits that count) ─► bin ─► oldest that agrees ─┐
//!          └► the list of receives of no class ──────────────────► oldest that agrees ─┴► older of all
//! ```
//!
//! The idea is that of UCX, PSM2 and Open MPI: bins for each class of wildcard, ages to decide between
//! classes. A class is a pair (ignore bits, any source), learnt from the receives, so that one
//! structure serves every kind. Waiting messages are in an index for each class that a receive has
//! ever asked by. One thread, no locks, no transport, no payload: a lower bound for any library.
//!
//! Nothing here that is timed is generic, so it is compiled here, with this crate's optimisation, and not in its users.

pub mod workload;

use std::collections::HashMap;
use std::hint::black_box;
use std::time::Instant;

use match_reference::{Command, Operation};
use rand::seq::SliceRandom;
use rand::{Rng, RngCore};

use workload::{Kind, Structure, Workload};

/// Classes that receives are looked up by.
const CLASSES: usize = 4;
/// No entry.
const NONE: u32 = u32::MAX;
/// Bins for each entry: most bins have one entry at most.
const SPARSE: usize = 4;

/// First and last of a list.
#[derive(Clone, Copy)]
struct Ends {
    first: u32,
    last: u32,
}

const EMPTY: Ends = Ends {
    first: NONE,
    last: NONE,
};

/// An entry's neighbours in a list.
#[derive(Clone, Copy)]
struct Link {
    next: u32,
    previous: u32,
}

fn append(ends: &mut Ends, links: &mut [Link], at: u32) {
    links[at as usize] = Link {
        next: NONE,
        previous: ends.last,
    };
    match ends.last {
        NONE => ends.first = at,
        last => links[last as usize].next = at,
    }
    ends.last = at;
}

fn unlink(ends: &mut Ends, links: &mut [Link], at: u32) {
    let Link { next, previous } = links[at as usize];
    match previous {
        NONE => ends.first = next,
        before => links[before as usize].next = next,
    }
    match next {
        NONE => ends.last = previous,
        behind => links[behind as usize].previous = previous,
    }
}

/// The bits of an envelope or receive that a class compares.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    bits: u64,
    /// Class, context and source.
    rest: u64,
}

#[derive(Clone, Copy)]
struct Class {
    ignore: u64,
    any_source: bool,
    live: u32,
}

impl Class {
    fn key(&self, number: usize, command: &Command) -> Key {
        let source = match self.any_source {
            true => 0,
            false => u64::from(command.pair) + 1,
        };
        Key {
            bits: command.match_bits & !self.ignore,
            rest: (number as u64) << 40 | u64::from(command.context) << 20 | source,
        }
    }
}

#[derive(Clone, Copy)]
struct Entry {
    key: Key,
    age: u64,
    command: Command,
    /// Number of its class, or [`CLASSES`].
    class: usize,
}

/// The structure, for one endpoint.
pub struct Matcher {
    secret: u64,
    shift: u32,
    age: u64,
    receives: Vec<Entry>,
    vacant: Vec<u32>,
    links: Vec<Link>,
    bins: Vec<Ends>,
    classes: Vec<Class>,
    /// Receives of no class.
    others: Ends,
    other_count: u32,
    messages: Vec<Command>,
    message_vacant: Vec<u32>,
    waiting: u32,
    /// Every waiting message.
    message_links: Vec<Link>,
    all: Ends,
    /// Classes that there is an index for.
    indexes: Vec<Class>,
    /// Of each message one link for each index.
    index_links: Vec<Link>,
    index_bins: Vec<Ends>,
}

impl Matcher {
    /// Room for `entries` receives and as many messages.
    pub fn new(entries: usize, rng: &mut dyn RngCore) -> Self {
        let bins = (SPARSE * entries).next_power_of_two().max(2);
        let link = Link {
            next: NONE,
            previous: NONE,
        };
        let blank = Entry {
            key: Key { bits: 0, rest: 0 },
            age: 0,
            command: Command::new(Operation::Post),
            class: CLASSES,
        };
        Matcher {
            secret: rng.random::<u64>() | 1,
            shift: 64 - bins.trailing_zeros(),
            age: 0,
            receives: vec![blank; entries],
            vacant: (0..entries as u32).collect(),
            links: vec![link; entries],
            bins: vec![EMPTY; bins],
            classes: Vec::with_capacity(CLASSES),
            others: EMPTY,
            other_count: 0,
            messages: vec![blank.command; entries],
            message_vacant: (0..entries as u32).collect(),
            waiting: 0,
            message_links: vec![link; entries],
            all: EMPTY,
            indexes: Vec::with_capacity(CLASSES),
            index_links: vec![link; entries * CLASSES],
            index_bins: vec![EMPTY; bins],
        }
    }

    #[inline]
    fn bin(&self, key: Key) -> usize {
        let mixed = key.bits ^ key.rest.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let product = u128::from(mixed) * u128::from(self.secret);
        let folded = (product as u64) ^ (product >> 64) as u64;
        (folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    /// A message comes: the handle of the oldest receive that matches, which is removed; or none, and the
    /// message waits.
    ///
    /// # Panics
    /// If it has to wait and there is no room.
    #[inline]
    pub fn arrive(&mut self, message: &Command) -> Option<u32> {
        let mut best = NONE;
        let mut best_age = u64::MAX;
        for (number, class) in self.classes.iter().enumerate() {
            if class.live == 0 {
                continue;
            }
            let key = class.key(number, message);
            let mut at = self.bins[self.bin(key)].first;
            while at != NONE {
                let entry = &self.receives[at as usize];
                if entry.key == key {
                    if entry.age < best_age {
                        (best, best_age) = (at, entry.age);
                    }
                    break;
                }
                at = self.links[at as usize].next;
            }
        }
        if self.other_count > 0 {
            let mut at = self.others.first;
            while at != NONE {
                let entry = &self.receives[at as usize];
                if entry.command.matches(message) {
                    if entry.age < best_age {
                        best = at;
                    }
                    break;
                }
                at = self.links[at as usize].next;
            }
        }
        if best == NONE {
            self.wait(message);
            return None;
        }
        let command = self.receives[best as usize].command;
        if !command.multi {
            self.remove(best);
        }
        Some(command.request)
    }

    /// The receive at `at` is posted no more.
    #[inline]
    fn remove(&mut self, at: u32) {
        let Entry { key, class, .. } = self.receives[at as usize];
        match class {
            CLASSES => {
                unlink(&mut self.others, &mut self.links, at);
                self.other_count -= 1;
            }
            class => {
                let bin = self.bin(key);
                unlink(&mut self.bins[bin], &mut self.links, at);
                self.classes[class].live -= 1;
            }
        }
        self.vacant.push(at);
    }

    fn wait(&mut self, message: &Command) {
        let at = self.message_vacant.pop().expect("room for the message");
        self.messages[at as usize] = *message;
        append(&mut self.all, &mut self.message_links, at);
        self.waiting += 1;
        for number in 0..self.indexes.len() {
            self.index(number, at);
        }
    }

    fn index(&mut self, number: usize, at: u32) {
        let key = self.indexes[number].key(number, &self.messages[at as usize]);
        let bin = self.bin(key);
        let node = at * CLASSES as u32 + number as u32;
        append(&mut self.index_bins[bin], &mut self.index_links, node);
    }

    /// A receive is posted: the earliest message that it matches, which is removed; or none, and the receive
    /// waits.
    ///
    /// # Panics
    /// If it has to wait and there is no room.
    #[inline]
    pub fn post(&mut self, receive: &Command) -> Option<Command> {
        if self.waiting > 0
            && let Some(at) = self.earliest(receive)
        {
            return Some(self.take(at));
        }
        let same = |class: &Class| {
            class.ignore == receive.ignore_bits && class.any_source == receive.any_source
        };
        let known = self.classes.iter().position(same);
        let class = known.or_else(|| self.learn(receive)).unwrap_or(CLASSES);
        let at = self.vacant.pop().expect("room for the receive");
        self.age += 1;
        let mut entry = Entry {
            key: Key { bits: 0, rest: 0 },
            age: self.age,
            command: *receive,
            class,
        };
        match class {
            CLASSES => {
                append(&mut self.others, &mut self.links, at);
                self.other_count += 1;
            }
            _ => {
                entry.key = self.classes[class].key(class, receive);
                self.classes[class].live += 1;
                let bin = self.bin(entry.key);
                append(&mut self.bins[bin], &mut self.links, at);
            }
        }
        self.receives[at as usize] = entry;
        None
    }

    /// A class for receives of this kind, if one is free.
    #[cold]
    fn learn(&mut self, receive: &Command) -> Option<usize> {
        let class = Class {
            ignore: receive.ignore_bits,
            any_source: receive.any_source,
            live: 0,
        };
        if self.classes.len() < CLASSES {
            self.classes.push(class);
            return Some(self.classes.len() - 1);
        }
        let free = self.classes.iter().position(|class| class.live == 0)?;
        self.classes[free] = class;
        Some(free)
    }

    #[inline]
    fn earliest(&mut self, receive: &Command) -> Option<u32> {
        let same = |class: &Class| {
            class.ignore == receive.ignore_bits && class.any_source == receive.any_source
        };
        let known = self.indexes.iter().position(same);
        let Some(number) = known.or_else(|| self.add_index(receive)) else {
            let mut at = self.all.first;
            while at != NONE && !receive.matches(&self.messages[at as usize]) {
                at = self.message_links[at as usize].next;
            }
            return (at != NONE).then_some(at);
        };
        let class = self.indexes[number];
        let key = class.key(number, receive);
        let mut node = self.index_bins[self.bin(key)].first;
        while node != NONE {
            let at = node / CLASSES as u32;
            let same_index = node % CLASSES as u32 == number as u32;
            if same_index && class.key(number, &self.messages[at as usize]) == key {
                return Some(at);
            }
            node = self.index_links[node as usize].next;
        }
        None
    }

    /// An index of the waiting messages for receives of this kind, if there may be one more.
    #[cold]
    fn add_index(&mut self, receive: &Command) -> Option<usize> {
        if self.indexes.len() == CLASSES {
            return None;
        }
        self.indexes.push(Class {
            ignore: receive.ignore_bits,
            any_source: receive.any_source,
            live: 0,
        });
        let number = self.indexes.len() - 1;
        let mut at = self.all.first;
        while at != NONE {
            self.index(number, at);
            at = self.message_links[at as usize].next;
        }
        Some(number)
    }

    fn take(&mut self, at: u32) -> Command {
        let message = self.messages[at as usize];
        unlink(&mut self.all, &mut self.message_links, at);
        for number in 0..self.indexes.len() {
            let bin = self.bin(self.indexes[number].key(number, &message));
            let node = at * CLASSES as u32 + number as u32;
            unlink(&mut self.index_bins[bin], &mut self.index_links, node);
        }
        self.message_vacant.push(at);
        self.waiting -= 1;
        message
    }
}

/// What a card was told, as the host would be: an arrival that finds nothing waits at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// A message comes.
    Arrive(Command),
    /// A receive is posted.
    Post(Command),
    /// What the post of this number has left is posted no more.
    Cancel(usize),
}

/// The operations of one endpoint that this structure knows, in the order in which a card carried them out.
#[derive(Clone, Debug, Default)]
pub struct Sequence {
    told: Vec<Told>,
    /// Whether the card found something.
    found: Vec<bool>,
    /// Posts of live handles, by their numbers in `told`.
    posts: HashMap<u32, usize>,
    matches: usize,
}

impl Sequence {
    /// Appends an operation that found something, or not. Those that had no room, and those that only a
    /// card knows, are left out; who left out would make a difference to others, a message that is claimed
    /// or a receive that is flushed, is an error.
    ///
    /// # Errors
    /// The operation that this structure doesn't have.
    pub fn push(&mut self, command: &Command, found: bool) -> Result<(), Operation> {
        let told = match command.operation {
            Operation::Arrive => Told::Arrive(*command),
            Operation::Post => {
                self.posts.insert(command.request, self.told.len());
                Told::Post(*command)
            }
            Operation::Cancel if found => match self.posts.remove(&command.request) {
                Some(post) => Told::Cancel(post),
                None => return Err(command.operation),
            },
            Operation::Remove | Operation::Cancel | Operation::Probe => return Ok(()),
            _ if !found => return Ok(()),
            other => return Err(other),
        };
        self.matches += usize::from(!matches!(told, Told::Cancel(_)));
        self.told.push(told);
        self.found.push(found);
        Ok(())
    }

    /// Arrivals and posts.
    pub fn matches(&self) -> usize {
        self.matches
    }

    /// Nanoseconds of all operations together, the best of `rounds`, by a structure for `room` receives and as many
    /// messages; `None` if it finds something where the card found nothing, or the other way round.
    pub fn measure(&self, room: usize, rounds: usize, rng: &mut dyn RngCore) -> Option<f64> {
        let mut best = f64::INFINITY;
        for _ in 0..rounds {
            let mut matcher = Matcher::new(room.max(1), rng);
            // Where each post has put its receive.
            let mut places = vec![NONE; self.told.len()];
            let start = Instant::now();
            for (n, told) in self.told.iter().enumerate() {
                let found = match told {
                    Told::Arrive(message) => matcher.arrive(black_box(message)).is_some(),
                    Told::Post(receive) => {
                        places[n] = matcher.vacant.last().copied().unwrap_or(NONE);
                        matcher.post(black_box(receive)).is_some()
                    }
                    Told::Cancel(post) => {
                        matcher.remove(places[*post]);
                        true
                    }
                };
                if found != self.found[n] {
                    return None;
                }
            }
            best = best.min(start.elapsed().as_secs_f64() * 1e9);
        }
        Some(best)
    }
}

/// Operations that are timed at a time.
const BATCH: usize = 4096;

/// Nanoseconds of an operation, at `depth`: arrivals and posts in turn, each of which finds what is at a random
/// place of the list, and puts it back. The best of `rounds`.
pub fn measure(
    structure: Structure,
    kind: Kind,
    depth: usize,
    rounds: usize,
    rng: &mut dyn RngCore,
) -> f64 {
    let workload = Workload::new(&[kind], depth, depth, rng);
    let mut matcher = Matcher::new(depth + 1, rng);
    let mut order: Vec<usize> = (0..BATCH).map(|n| n % depth).collect();
    order.shuffle(rng);
    let operations: Vec<(Command, Command)> = order
        .iter()
        .map(|n| (workload.message(*n), workload.receive(*n)))
        .collect();
    for n in 0..depth {
        let missing = match structure {
            Structure::Posted => matcher.post(&workload.receive(n)).is_none(),
            Structure::Unexpected => matcher.arrive(&workload.message(n)).is_none(),
        };
        assert!(missing, "the list fills");
    }
    let mut best = f64::INFINITY;
    for _ in 0..rounds {
        let start = Instant::now();
        let mut found = 0;
        for (message, receive) in &operations {
            found += match structure {
                Structure::Posted => {
                    let hit = usize::from(matcher.arrive(black_box(message)).is_some());
                    hit + usize::from(matcher.post(black_box(receive)).is_some())
                }
                Structure::Unexpected => {
                    let hit = usize::from(matcher.post(black_box(receive)).is_some());
                    hit + usize::from(matcher.arrive(black_box(message)).is_some())
                }
            };
        }
        let nanoseconds = start.elapsed().as_secs_f64() * 1e9;
        assert_eq!(found, BATCH, "each finds one and puts it back");
        best = best.min(nanoseconds / (2 * BATCH) as f64);
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn each_kind_is_timed_on_either_list() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for structure in Structure::ALL {
            for kind in Kind::ALL {
                for depth in [1, 100] {
                    let nanoseconds = measure(structure, kind, depth, 1, &mut rng);
                    println!("{structure:?} {kind:?} {depth} {nanoseconds:.1} ns");
                    assert!(nanoseconds > 0.0);
                }
            }
        }
    }

    #[test]
    fn a_sequence_is_replayed_as_the_card_carried_it_out() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let command = |operation, match_bits, request| Command {
            match_bits,
            request,
            ..Command::new(operation)
        };
        let stays = Command {
            multi: true,
            ..command(Operation::Post, 9, 4)
        };
        let mut sequence = Sequence::default();
        for (command, found) in [
            (command(Operation::Arrive, 7, 0), false),
            (command(Operation::Remove, 7, 0), false),
            (command(Operation::Post, 5, 1), false),
            (command(Operation::Post, 7, 2), true),
            (command(Operation::Post, 5, 3), false),
            (command(Operation::Cancel, 0, 1), true),
            (command(Operation::Cancel, 0, 1), false),
            (command(Operation::Arrive, 5, 0), true),
            (command(Operation::Arrive, 5, 0), false),
            (stays, false),
            (command(Operation::Arrive, 9, 0), true),
            (command(Operation::Arrive, 9, 0), true),
            (command(Operation::Cancel, 0, 4), true),
            (command(Operation::Arrive, 9, 0), false),
        ] {
            assert_eq!(sequence.push(&command, found), Ok(()));
        }
        assert_eq!(sequence.matches(), 10);
        assert!(sequence.measure(8, 3, &mut rng).is_some_and(|ns| ns > 0.0));
        let claim = command(Operation::Claim, 5, 9);
        assert_eq!(sequence.push(&claim, true), Err(Operation::Claim));
        let wrong = command(Operation::Arrive, 1, 0);
        assert_eq!(sequence.push(&wrong, true), Ok(()));
        assert_eq!(sequence.measure(8, 1, &mut rng), None);
    }

    #[test]
    fn the_opponent_matches_as_two_lists_would() {
        const MASKS: [u64; 7] = [0, 1, 2, 3, 4, 6, 7];
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let mut matcher = Matcher::new(64, &mut rng);
        let (mut posted, mut waiting): (Vec<Command>, Vec<Command>) = (vec![], vec![]);
        let mut seen = [0; 4];
        for request in 0..200_000 {
            let mut command = Command {
                pair: rng.random_range(0..3),
                context: rng.random_range(0..2),
                match_bits: rng.random_range(0..8),
                request,
                ..Command::new(Operation::Arrive)
            };
            let arrives = rng.random_bool(match request / 1000 % 3 {
                0 => 0.3,
                1 => 0.5,
                _ => 0.7,
            });
            if arrives {
                let at = posted.iter().position(|receive| receive.matches(&command));
                if at.is_none() && waiting.len() == 64 {
                    continue;
                }
                let expected = at.map(|at| posted.remove(at).request);
                assert_eq!(matcher.arrive(&command), expected);
                if expected.is_none() {
                    waiting.push(command);
                }
                seen[usize::from(expected.is_some())] += 1;
            } else {
                command.any_source = rng.random_bool(0.3);
                command.ignore_bits = MASKS[rng.random_range(0..MASKS.len())];
                let at = waiting.iter().position(|message| command.matches(message));
                if at.is_none() && posted.len() == 64 {
                    continue;
                }
                let expected = at.map(|at| waiting.remove(at));
                assert_eq!(matcher.post(&command), expected);
                if expected.is_none() {
                    posted.push(command);
                }
                seen[2 + usize::from(expected.is_some())] += 1;
            }
        }
        assert!(seen.iter().all(|n| *n > 10_000), "{seen:?}");
    }
}
