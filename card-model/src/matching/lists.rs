//! The engine as vectors, oldest first.
//!
//! ```text
//!  command ──┬─► decide ──► reply of an engine without overflows ──┐
//!            └─────────── or the reply that the gates gave ────────┴─► act ─► Outcome, or what the reply should have been
//! ```

use abi::request::slot_number;

use super::{Command, Operation, Reply, SLOTS, Sizes};

/// A posted receive and the place that the engine has given to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receive {
    /// The post.
    pub command: Command,
    /// Its place: on the exact side below `Sizes::exact`, on the associative side from there on.
    pub index: u16,
}

/// What a command came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// This was found: a post, or the message that has come to wait.
    Found(Command),
    /// There is none such.
    Missing,
    /// A message waits.
    Inserted,
    /// A receive is posted, on the exact side.
    Exact,
    /// A receive is posted, on the associative side.
    Associative,
    /// No room for the receive.
    Full,
}

/// What the receives of a class have in common: the bits that they ignore, and whether they take any source.
type Class = (u64, bool);

/// Whether the exact side can look up one more receive of `class`, if `live` are the classes of its endpoint's receives there: it is among
/// them, or one of the `classes` that the endpoint has is free. Classes without live receives are as good as never learnt, so their numbers
/// don't matter.
fn has_class(live: impl IntoIterator<Item = Class>, class: Class, classes: usize) -> bool {
    let mut distinct = Vec::with_capacity(classes);
    for class in live {
        if !distinct.contains(&class) {
            distinct.push(class);
        }
    }
    distinct.contains(&class) || distinct.len() < classes
}

/// Whether a side of `capacity` receives, of which each endpoint has `reserved` of its own and the rest is common, has room for one more of `endpoint`.
/// `used` are the live ones of each endpoint.
///
/// # Panics
/// If there is no such endpoint.
pub fn has_room(capacity: usize, reserved: usize, used: &[usize], endpoint: usize) -> bool {
    let common: usize = used.iter().map(|used| used.saturating_sub(reserved)).sum();
    used[endpoint] < reserved || common < capacity - used.len() * reserved
}

/// How much of a side is in use.
#[derive(Clone, Debug)]
struct Quota {
    capacity: usize,
    reserved: usize,
    used: Vec<usize>,
}

impl Quota {
    fn new(endpoints: usize, capacity: usize, reserved: usize) -> Self {
        assert!(endpoints * reserved <= capacity);
        Quota {
            capacity,
            reserved,
            used: vec![0; endpoints],
        }
    }

    fn has_room(&self, endpoint: usize) -> bool {
        has_room(self.capacity, self.reserved, &self.used, endpoint)
    }
}

/// The engine's two lists, told by replies which side a receive has gone to.
#[derive(Clone, Debug)]
pub struct Lists {
    sizes: Sizes,
    /// Of each endpoint.
    posted: Vec<Vec<Receive>>,
    /// Of each endpoint; the slot is in the command.
    waiting: Vec<Vec<Command>>,
    /// Whether a place of a posted receive is in use.
    occupied: Vec<bool>,
    exact: Quota,
    associative: Quota,
    /// Messages in each row of each pair.
    rows: Vec<usize>,
    /// Rows with messages, of each endpoint.
    live_rows: Vec<usize>,
    overflows: u64,
    walk: Option<Walk>,
}

/// A walk over the receives of a pair or an endpoint.
#[derive(Clone, Debug)]
struct Walk {
    /// What began it.
    command: Command,
    /// Places of the receives that it has to find, unless they leave otherwise.
    left: Vec<u16>,
    /// How often it may still pause.
    pauses: usize,
}

/// Rows of the exact side that a step of a walk looks at, at most.
const ROWS_A_STEP: usize = 8;

impl Lists {
    /// Empty lists.
    pub fn new(sizes: Sizes) -> Self {
        let Sizes { endpoints, .. } = sizes;
        Lists {
            sizes,
            posted: vec![vec![]; endpoints],
            waiting: vec![vec![]; endpoints],
            occupied: vec![false; sizes.exact + sizes.posted],
            exact: Quota::new(endpoints, sizes.exact, sizes.reserved_exact),
            associative: Quota::new(endpoints, sizes.posted, sizes.reserved_posted),
            rows: vec![0; sizes.pairs * SLOTS.div_ceil(sizes.comparators)],
            live_rows: vec![0; endpoints],
            overflows: 0,
            walk: None,
        }
    }

    /// Live receives of an endpoint, oldest first.
    pub fn posted(&self, endpoint: usize) -> &[Receive] {
        &self.posted[endpoint]
    }

    /// Waiting messages of an endpoint, earliest first.
    pub fn waiting(&self, endpoint: usize) -> &[Command] {
        &self.waiting[endpoint]
    }

    /// Live receives of all endpoints.
    pub fn posted_depth(&self) -> usize {
        self.posted.iter().map(Vec::len).sum()
    }

    /// Waiting messages of all endpoints.
    pub fn unexpected_depth(&self) -> usize {
        self.waiting.iter().map(Vec::len).sum()
    }

    /// Posts so far that the exact side had the class and the room for, but not the place in a bin.
    pub fn overflows(&self) -> u64 {
        self.overflows
    }

    /// Rows in which a message of this endpoint waits: what a search over all sources reads.
    pub fn live_rows(&self, endpoint: usize) -> usize {
        self.live_rows[endpoint]
    }

    fn row(&self, message: &Command) -> usize {
        let per_pair = SLOTS.div_ceil(self.sizes.comparators);
        usize::from(message.pair) * per_pair + usize::from(message.slot) / self.sizes.comparators
    }

    fn place_of(message: &Command) -> u16 {
        slot_number(message.pair, message.slot)
    }

    /// What an engine without overflows replies, which gives out the lowest vacant place.
    pub fn decide(&self, command: &Command) -> Reply {
        let command = &self.sizes.kept(command);
        let endpoint = usize::from(command.endpoint);
        let found = |index: Option<u16>| Reply {
            found: index.is_some(),
            full: false,
            index: index.unwrap_or(0),
            more: false,
        };
        let posted = |wanted: &dyn Fn(&Command) -> bool| {
            let all = &mut self.posted[endpoint].iter();
            found(all.find(|r| wanted(&r.command)).map(|r| r.index))
        };
        let waiting = |wanted: &dyn Fn(&Command) -> bool| {
            found(
                self.waiting[endpoint]
                    .iter()
                    .find(|m| wanted(m))
                    .map(Self::place_of),
            )
        };
        match command.operation {
            Operation::Arrive => posted(&|receive| receive.matches(command)),
            Operation::Cancel => posted(&|receive| receive.request == command.request),
            Operation::TakePostedOfPair => {
                posted(&|receive| !receive.any_source && receive.pair == command.pair)
            }
            Operation::TakePostedOfEndpoint => posted(&|_| true),
            Operation::Probe | Operation::Claim => waiting(&|message| command.matches(message)),
            Operation::TakeUnexpectedOfPair => waiting(&|message| message.pair == command.pair),
            Operation::Remove => {
                waiting(&|message| Self::place_of(message) == Self::place_of(command))
            }
            Operation::Post => {
                let reply = waiting(&|message| command.matches(message));
                if reply.found {
                    return reply;
                }
                let exact = self.has_class(command) && self.exact.has_room(endpoint);
                let (from, to) = match exact {
                    true => (0, self.sizes.exact),
                    false => (self.sizes.exact, self.occupied.len()),
                };
                let room = exact || self.associative.has_room(endpoint);
                let vacant = (from..to).find(|&index| room && !self.occupied[index]);
                Reply {
                    found: false,
                    full: vacant.is_none(),
                    index: vacant.unwrap_or(0) as u16,
                    more: false,
                }
            }
        }
    }

    fn names_what_there_is(&self, command: &Command) -> Result<(), String> {
        let Sizes {
            endpoints, pairs, ..
        } = self.sizes;
        if usize::from(command.endpoint) >= endpoints {
            return Err(format!(
                "is a mistake of its sender: there are {endpoints} endpoints"
            ));
        }
        let names_pair = match command.operation {
            Operation::Cancel | Operation::TakePostedOfEndpoint => false,
            Operation::Post | Operation::Probe | Operation::Claim => !command.any_source,
            _ => true,
        };
        if names_pair && usize::from(command.pair) >= pairs {
            return Err(format!(
                "is a mistake of its sender: there are {pairs} pairs"
            ));
        }
        Ok(())
    }

    /// Carries out the command that `reply` answers, which the replies before have led up to.
    ///
    /// # Errors
    /// If the reply isn't one that the engine may give: the text says which it should have been; or if the command names an endpoint or a pair
    /// that there isn't, or a place that is taken.
    pub fn act(&mut self, command: &Command, reply: Reply) -> Result<Outcome, String> {
        let command = &self.sizes.kept(command);
        let endpoint = usize::from(command.endpoint);
        self.names_what_there_is(command)?;
        match command.operation {
            Operation::Arrive => {
                let at = self.posted[endpoint]
                    .iter()
                    .position(|receive| receive.command.matches(command));
                let keep = at.is_some_and(|at| self.posted[endpoint][at].command.multi);
                let outcome = self.take_posted(endpoint, at, keep, reply)?;
                match outcome {
                    Outcome::Missing if command.append => self.wait(command),
                    _ => Ok(outcome),
                }
            }
            Operation::Cancel => {
                let at = self.posted[endpoint]
                    .iter()
                    .position(|receive| receive.command.request == command.request);
                self.take_posted(endpoint, at, false, reply)
            }
            Operation::TakePostedOfPair => self.walk(command, reply, |receive| {
                !receive.any_source && receive.pair == command.pair
            }),
            Operation::TakePostedOfEndpoint => self.walk(command, reply, |_| true),
            Operation::Remove => {
                let place = Self::place_of(command);
                let at = self.first_waiting(endpoint, |m| Self::place_of(m) == place);
                self.take_waiting(endpoint, at, false, reply)
            }
            Operation::Post => {
                let at = self.first_waiting(endpoint, |m| command.matches(m));
                match at {
                    Some(_) => self.take_waiting(endpoint, at, false, reply),
                    None => self.append(command, reply),
                }
            }
            Operation::Probe => {
                let at = self.first_waiting(endpoint, |m| command.matches(m));
                self.take_waiting(endpoint, at, true, reply)
            }
            Operation::Claim => {
                let at = self.first_waiting(endpoint, |m| command.matches(m));
                self.take_waiting(endpoint, at, false, reply)
            }
            Operation::TakeUnexpectedOfPair => {
                let at = self.first_waiting(endpoint, |m| m.pair == command.pair);
                self.take_waiting(endpoint, at, false, reply)
            }
        }
    }

    /// The message waits at its place from now on.
    fn wait(&mut self, message: &Command) -> Result<Outcome, String> {
        let endpoint = usize::from(message.endpoint);
        let place = Self::place_of(message);
        let mut others = self.waiting[endpoint].iter();
        if others.any(|m| Self::place_of(m) == place) {
            return Err(format!(
                "is a mistake of its sender: place {place} is taken"
            ));
        }
        self.waiting[endpoint].push(*message);
        let row = self.row(message);
        self.live_rows[endpoint] += usize::from(self.rows[row] == 0);
        self.rows[row] += 1;
        Ok(Outcome::Inserted)
    }

    fn first_waiting(&self, endpoint: usize, wanted: impl Fn(&Command) -> bool) -> Option<usize> {
        self.waiting[endpoint].iter().position(wanted)
    }

    /// The message at `at` is found, or none; it stays or is removed.
    fn take_waiting(
        &mut self,
        endpoint: usize,
        at: Option<usize>,
        keep: bool,
        reply: Reply,
    ) -> Result<Outcome, String> {
        let Some(at) = at else {
            return missing(reply);
        };
        let message = self.waiting[endpoint][at];
        let place = Self::place_of(&message);
        if !reply.found || reply.full || reply.index != place {
            return Err(format!("finds message {message:x?} at place {place}"));
        }
        if !keep {
            self.waiting[endpoint].remove(at);
            let row = self.row(&message);
            self.rows[row] -= 1;
            self.live_rows[endpoint] -= usize::from(self.rows[row] == 0);
        }
        Ok(Outcome::Found(message))
    }

    /// The receive at `at` is found, or none; it stays or is removed.
    fn take_posted(
        &mut self,
        endpoint: usize,
        at: Option<usize>,
        keep: bool,
        reply: Reply,
    ) -> Result<Outcome, String> {
        let Some(at) = at else {
            return missing(reply);
        };
        let receive = self.posted[endpoint][at];
        if !reply.found || reply.full || reply.index != receive.index {
            return Err(format!("finds {receive:x?}"));
        }
        if !keep {
            self.remove_posted(endpoint, at);
        }
        Ok(Outcome::Found(receive.command))
    }

    /// A step of a walk: any receive that is wanted is found and removed, or none yet, or all that were there when it began have gone.
    fn walk(
        &mut self,
        command: &Command,
        reply: Reply,
        wanted: impl Fn(&Command) -> bool,
    ) -> Result<Outcome, String> {
        let endpoint = usize::from(command.endpoint);
        let live = self.posted[endpoint].iter();
        let begun = Command {
            again: false,
            ..command.essence()
        };
        if !command.again {
            let live = live.filter(|receive| wanted(&receive.command));
            self.walk = Some(Walk {
                command: begun,
                left: live.map(|receive| receive.index).collect(),
                pauses: self.sizes.exact.max(self.sizes.rows).div_ceil(ROWS_A_STEP),
            });
        }
        let walk = self.walk.as_mut().filter(|walk| walk.command == begun);
        let Some(walk) = walk else {
            return Err("is a mistake of its sender: no such walk was the last".into());
        };
        if reply.more {
            if reply.found || reply.full || walk.pauses == 0 {
                return Err("finds something, or is over".into());
            }
            walk.pauses -= 1;
            return Ok(Outcome::Missing);
        }
        if !reply.found {
            return match walk.left.first() {
                Some(place) => Err(format!("finds the receive at place {place}")),
                None => missing(reply),
            };
        }
        let at = self.posted[endpoint]
            .iter()
            .position(|receive| receive.index == reply.index && wanted(&receive.command));
        match at {
            Some(_) if !reply.full => self.take_posted(endpoint, at, false, reply),
            _ => Err("finds a receive of that kind, or none".into()),
        }
    }

    fn remove_posted(&mut self, endpoint: usize, at: usize) {
        let receive = self.posted[endpoint].remove(at);
        let index = usize::from(receive.index);
        self.occupied[index] = false;
        if let Some(walk) = &mut self.walk {
            walk.left.retain(|place| *place != receive.index);
        }
        let side = match index < self.sizes.exact {
            true => &mut self.exact,
            false => &mut self.associative,
        };
        side.used[endpoint] -= 1;
    }

    /// Whether the exact side can look up receives like this one.
    fn has_class(&self, command: &Command) -> bool {
        let class = |receive: &Command| (receive.ignore_bits, receive.any_source);
        let of_endpoint = self.posted[usize::from(command.endpoint)].iter();
        let live = of_endpoint
            .filter(|receive| usize::from(receive.index) < self.sizes.exact)
            .map(|receive| class(&receive.command));
        has_class(live, class(command), self.sizes.classes)
    }

    fn append(&mut self, command: &Command, reply: Reply) -> Result<Outcome, String> {
        let endpoint = usize::from(command.endpoint);
        if reply.found {
            return Err("finds nothing that waits".into());
        }
        let may_be_exact = self.has_class(command) && self.exact.has_room(endpoint);
        let may_be_associative = self.associative.has_room(endpoint);
        if reply.full {
            if may_be_associative {
                return Err("is not refused: the associative side has room".into());
            }
            self.overflows += u64::from(may_be_exact);
            return Ok(Outcome::Full);
        }
        let index = usize::from(reply.index);
        match self.occupied.get(index) {
            None => return Err("goes to a place that there is".into()),
            Some(true) => return Err("goes to a place that is vacant".into()),
            Some(false) => {}
        }
        let exact = index < self.sizes.exact;
        match exact {
            true if !may_be_exact => return Err("is not for the exact side".into()),
            false if !may_be_associative => return Err("is not for the associative side".into()),
            true => self.exact.used[endpoint] += 1,
            false => {
                self.associative.used[endpoint] += 1;
                self.overflows += u64::from(may_be_exact);
            }
        }
        self.occupied[index] = true;
        self.posted[endpoint].push(Receive {
            command: *command,
            index: reply.index,
        });
        Ok(match exact {
            true => Outcome::Exact,
            false => Outcome::Associative,
        })
    }
}

fn missing(reply: Reply) -> Result<Outcome, String> {
    match reply.found || reply.full || reply.more {
        true => Err("finds nothing".into()),
        false => Ok(Outcome::Missing),
    }
}
