//! The harness, held to an engine in software: a sound one passes, and each way to break it is noticed.

use std::collections::VecDeque;

use abi::request::slot_number;
use match_reference::{Block, Command, Harness, Operation, Outputs, Reply, Seen, Sizes, Traffic};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const SIZES: Sizes = Sizes {
    endpoints: 3,
    pairs: 7,
    exact: 24,
    row_ways: 3,
    rows: 16,
    match_mask: u64::MAX,
    posted: 9,
    unexpected: 40,
    classes: 4,
    comparators: 8,
    reserved_exact: 3,
    reserved_posted: 1,
};

/// What is wrong with an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    YoungestWins,
    AssociativeWins,
    IgnoreNothing,
    KeepCancelled,
    FiveClasses,
    NeverRelearn,
    RefuseEarly,
    ForgetMulti,
    RepeatPlaces,
    SilentOverflow,
    LatestMessage,
    ProbeRemoves,
    ForgetAppend,
    AppendHits,
    OvertakeAppend,
    Slow,
    SwapReplies,
}

const FAULTS: [Fault; 17] = [
    Fault::YoungestWins,
    Fault::AssociativeWins,
    Fault::IgnoreNothing,
    Fault::KeepCancelled,
    Fault::FiveClasses,
    Fault::NeverRelearn,
    Fault::RefuseEarly,
    Fault::ForgetMulti,
    Fault::RepeatPlaces,
    Fault::SilentOverflow,
    Fault::LatestMessage,
    Fault::ProbeRemoves,
    Fault::ForgetAppend,
    Fault::AppendHits,
    Fault::OvertakeAppend,
    Fault::Slow,
    Fault::SwapReplies,
];

/// A class as the gates keep it.
#[derive(Clone, Copy)]
struct Class {
    key: (u64, bool),
    live: usize,
}

/// The engine in software: one list, and the tables of classes as the gates have them.
struct Soft {
    fault: Fault,
    rng: ChaCha8Rng,
    cycle: u64,
    posted: Vec<(Command, usize)>,
    waiting: Vec<Command>,
    /// A message that has come, and doesn't wait yet.
    late: Option<Command>,
    classes: Vec<Vec<Class>>,
    answers: VecDeque<(u64, Reply, bool)>,
}

impl Soft {
    fn new(fault: Fault) -> Self {
        Soft {
            fault,
            rng: ChaCha8Rng::seed_from_u64(1),
            cycle: 0,
            posted: vec![],
            waiting: vec![],
            late: None,
            classes: vec![vec![]; SIZES.endpoints],
            answers: VecDeque::new(),
        }
    }

    fn matches(&self, receive: &Command, message: &Command) -> bool {
        let ignore = match self.fault {
            Fault::IgnoreNothing => 0,
            _ => receive.ignore_bits,
        };
        receive.endpoint == message.endpoint
            && (receive.any_source || receive.pair == message.pair)
            && receive.context == message.context
            && receive.match_bits & !ignore == message.match_bits & !ignore
    }

    fn found(&mut self, at: Option<usize>, keep: bool) -> Reply {
        let index = at.map(|at| self.posted[at].1);
        if let Some(at) = at.filter(|_| !keep) {
            let (command, place) = self.posted.remove(at);
            if place < SIZES.exact {
                let key = (command.ignore_bits, command.any_source);
                let classes = &mut self.classes[usize::from(command.endpoint)];
                let class = classes.iter_mut().find(|class| class.key == key);
                class.expect("it was learnt").live -= 1;
            }
        }
        reply(index)
    }

    fn found_message(&mut self, wanted: impl Fn(&Self, &Command) -> bool, keep: bool) -> Reply {
        let mut places = 0..self.waiting.len();
        let is_wanted = |at: &usize| wanted(self, &self.waiting[*at]);
        let at = match self.fault {
            Fault::LatestMessage => places.rfind(is_wanted),
            _ => places.find(is_wanted),
        };
        let index = at.map(|at| slot_number(self.waiting[at].pair, self.waiting[at].slot).into());
        if let Some(at) = at.filter(|_| !keep) {
            self.waiting.remove(at);
        }
        reply(index)
    }

    fn room(&self, endpoint: u8, exact: bool) -> bool {
        let (capacity, reserved) = match exact {
            true => (SIZES.exact, SIZES.reserved_exact),
            false => (SIZES.posted, SIZES.reserved_posted),
        };
        let used = |endpoint: u8| {
            let on_side = |(c, place): &&(Command, usize)| {
                c.endpoint == endpoint && (*place < SIZES.exact) == exact
            };
            self.posted.iter().filter(on_side).count()
        };
        let common: usize = (0..SIZES.endpoints as u8)
            .map(|e| used(e).saturating_sub(reserved))
            .sum();
        let early = usize::from(self.fault == Fault::RefuseEarly);
        used(endpoint) < reserved || common + early < capacity - SIZES.endpoints * reserved
    }

    /// The class that takes the receive, learnt anew if need be.
    fn class(&mut self, command: &Command) -> Option<usize> {
        let count = match self.fault {
            Fault::FiveClasses => 5,
            _ => SIZES.classes,
        };
        let key = (command.ignore_bits, command.any_source);
        let relearns = self.fault != Fault::NeverRelearn;
        let classes = &mut self.classes[usize::from(command.endpoint)];
        if let Some(known) = classes.iter().position(|class| class.key == key) {
            return Some(known);
        }
        if classes.len() < count {
            classes.push(Class { key, live: 0 });
            return Some(classes.len() - 1);
        }
        let free = classes.iter().position(|class| class.live == 0);
        let free = free.filter(|_| relearns)?;
        classes[free].key = key;
        Some(free)
    }

    fn append(&mut self, command: &Command) -> (Reply, bool) {
        let vacant = |this: &Self, mut places: std::ops::Range<usize>| {
            let repeats = this.fault == Fault::RepeatPlaces;
            places.find(|place| repeats || this.posted.iter().all(|(_, taken)| taken != place))
        };
        let mut overflow = false;
        if let Some(class) = self.class(command)
            && self.room(command.endpoint, true)
        {
            overflow = self.rng.random_bool(0.02);
            if !overflow {
                self.classes[usize::from(command.endpoint)][class].live += 1;
                let place = vacant(self, 0..SIZES.exact);
                self.posted.extend(place.map(|place| (*command, place)));
                return (reply(place).appended(), false);
            }
            overflow = self.fault != Fault::SilentOverflow;
        }
        if !self.room(command.endpoint, false) {
            let full = Reply {
                found: false,
                full: true,
                index: 0,
                more: false,
            };
            return (full, overflow);
        }
        let place = vacant(self, SIZES.exact..SIZES.exact + SIZES.posted);
        self.posted.extend(place.map(|place| (*command, place)));
        (reply(place).appended(), overflow)
    }

    fn act(&mut self, command: &Command) -> (Reply, bool) {
        let quiet = |reply| (reply, false);
        let mut places = 0..self.posted.len();
        let of = |at: &usize| &self.posted[*at].0;
        match command.operation {
            Operation::Arrive => {
                let matches = |at: &usize| self.matches(of(at), command);
                let at = match self.fault {
                    Fault::YoungestWins => places.rfind(matches),
                    Fault::AssociativeWins => places
                        .clone()
                        .find(|at| matches(at) && self.posted[*at].1 >= SIZES.exact)
                        .or_else(|| places.find(matches)),
                    _ => places.find(matches),
                };
                let multi = at.is_some_and(|at| of(&at).multi);
                let reply = self.found(at, multi && self.fault != Fault::ForgetMulti);
                if command.append && (!reply.found || self.fault == Fault::AppendHits) {
                    match self.fault {
                        Fault::ForgetAppend => {}
                        Fault::OvertakeAppend => self.late = Some(*command),
                        _ => self.waiting.push(*command),
                    }
                }
                quiet(reply)
            }
            Operation::Cancel => {
                let at = places.find(|at| {
                    (of(at).endpoint, of(at).request) == (command.endpoint, command.request)
                });
                quiet(self.found(at, self.fault == Fault::KeepCancelled))
            }
            Operation::TakePostedOfPair => {
                let at = places.rfind(|at| !of(at).any_source && of(at).pair == command.pair);
                quiet(self.found(at, false))
            }
            Operation::TakePostedOfEndpoint => {
                let at = places.rfind(|at| of(at).endpoint == command.endpoint);
                quiet(self.found(at, false))
            }
            Operation::Remove => quiet(self.found_message(
                |_, m| (m.pair, m.slot) == (command.pair, command.slot),
                false,
            )),
            Operation::TakeUnexpectedOfPair => {
                quiet(self.found_message(|_, m| m.pair == command.pair, false))
            }
            Operation::Probe => {
                let keep = self.fault != Fault::ProbeRemoves;
                quiet(self.found_message(|this, m| this.matches(command, m), keep))
            }
            Operation::Claim => {
                quiet(self.found_message(|this, m| this.matches(command, m), false))
            }
            Operation::Post => {
                let found = self.found_message(|this, m| this.matches(command, m), false);
                match found.found {
                    true => quiet(found),
                    false => self.append(command),
                }
            }
        }
    }
}

fn reply(index: Option<usize>) -> Reply {
    Reply {
        found: index.is_some(),
        full: false,
        index: index.unwrap_or(0) as u16,
        more: false,
    }
}

trait Appended {
    fn appended(self) -> Self;
}

impl Appended for Reply {
    fn appended(self) -> Self {
        Reply {
            found: false,
            ..self
        }
    }
}

impl Block for Soft {
    fn cycle(&mut self, offer: Option<&Command>) -> Result<Outputs, String> {
        let ready = self.answers.len() < 3 && self.rng.random_bool(0.8);
        let (posted_depth, unexpected_depth) = (self.posted.len(), self.waiting.len());
        let due = |answer: &mut (u64, Reply, bool)| answer.0 <= self.cycle;
        let answer = self.answers.pop_front_if(due);
        if let Some(command) = offer.filter(|_| ready) {
            let late = self.late.take();
            let overtakes = command.operation == Operation::Post;
            self.waiting.extend(late.filter(|_| !overtakes));
            let (reply, overflow) = self.act(command);
            self.waiting.extend(late.filter(|_| overtakes));
            let cycles = match self.fault {
                Fault::Slow if self.rng.random_bool(0.01) => 14,
                _ => self.rng.random_range(2..7),
            };
            self.answers
                .push_back((self.cycle + cycles, reply, overflow));
            if self.fault == Fault::SwapReplies && self.answers.len() == 3 {
                self.answers.swap(1, 2);
            }
        }
        self.cycle += 1;
        Ok(Outputs {
            ready,
            reply: answer.map(|(_, reply, _)| reply),
            overflow: answer.is_some_and(|(_, _, overflow)| overflow),
            posted_depth,
            unexpected_depth,
        })
    }
}

fn run(fault: Fault, commands: u64) -> Result<Seen, String> {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut harness = Harness::new(Soft::new(fault), SIZES);
    let mut traffic = Traffic::new(SIZES, &mut rng);
    let result = harness.random(&mut traffic, &mut rng, commands);
    result.map_err(|breach| breach.to_string())?;
    Ok(*harness.seen())
}

#[test]
fn a_sound_engine_passes_and_everything_is_seen() {
    let seen = run(Fault::None, 100_000).expect("it is sound");
    for operation in Operation::ALL {
        let n = usize::from(operation.code());
        assert!(seen.found[n] > 100, "{operation} {seen:?}");
        assert_eq!(seen.missing[n] > 100, *operation != Operation::Post);
    }
    assert!(seen.exact > 1000 && seen.associative > 1000 && seen.full > 100);
    assert!(seen.appended > 1000 && seen.matched > 1000, "{seen:?}");
    assert!(seen.overflows > 10 && seen.overlapped > 1000, "{seen:?}");
    assert_eq!(seen.deepest_posted, SIZES.exact + SIZES.posted);
    assert_eq!(seen.deepest_unexpected, SIZES.unexpected);
}

#[test]
fn every_fault_is_noticed() {
    for fault in FAULTS {
        let noticed = run(fault, 20_000).expect_err(&format!("{fault:?} goes unnoticed"));
        println!("{fault:?}: {noticed}");
    }
}
