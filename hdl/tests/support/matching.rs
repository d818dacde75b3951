//! What the matching lists promise, in plain Rust: two vectors, oldest first.

#![allow(dead_code, reason = "each test program uses some of it")]

use hdl::matching::Operation;

/// A command, as `hdl::types::MatchCommand` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    pub operation: Operation,
    pub endpoint: u8,
    pub pair: u16,
    pub any_source: bool,
    pub context: u16,
    pub match_bits: u64,
    pub ignore_bits: u64,
    pub request: u32,
}

impl Command {
    /// A command that names nothing yet.
    pub fn new(operation: Operation) -> Self {
        Command {
            operation,
            endpoint: 0,
            pair: 0,
            any_source: false,
            context: 0,
            match_bits: 0,
            ignore_bits: 0,
            request: 0,
        }
    }

    /// The bits of the `LogicStruct`, first field least significant.
    pub fn words(&self) -> Vec<u64> {
        crate::bits::pack(&[
            (self.operation as u64, 4),
            (self.endpoint.into(), 8),
            (self.pair.into(), 16),
            (self.any_source.into(), 1),
            (self.context.into(), 16),
            (self.match_bits, 64),
            (self.ignore_bits, 64),
            (self.request.into(), 32),
            (0, 5),
        ])
    }

    /// Whether a receive posted by `self` matches the envelope `other`.
    fn matches(&self, other: &Command) -> bool {
        self.endpoint == other.endpoint
            && (self.any_source || self.pair == other.pair)
            && self.context == other.context
            && (self.match_bits ^ other.match_bits) & !self.ignore_bits == 0
    }
}

/// An answer. Places are the block's to choose, so an entry is named by what was inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// This entry was found.
    Found(Command),
    /// The key was appended.
    Appended,
    /// The list had no room for it.
    Full,
    /// There is no such entry.
    Missing,
}

/// Both lists.
pub struct Lists {
    pub posted: Vec<Command>,
    pub unexpected: Vec<Command>,
    posted_size: usize,
    unexpected_size: usize,
}

impl Lists {
    pub fn new(posted_size: usize, unexpected_size: usize) -> Self {
        Lists {
            posted: vec![],
            unexpected: vec![],
            posted_size,
            unexpected_size,
        }
    }

    pub fn act(&mut self, command: Command) -> Outcome {
        let take = |list: &mut Vec<Command>, wanted: &dyn Fn(&Command) -> bool| {
            let found = list.iter().position(wanted);
            found.map(|at| list.remove(at))
        };
        let append = |list: &mut Vec<Command>, size| {
            if list.len() == size {
                return Outcome::Full;
            }
            list.push(command);
            Outcome::Appended
        };
        let found = match command.operation {
            Operation::Arrive => take(&mut self.posted, &|e| e.matches(&command)),
            Operation::Insert => return append(&mut self.unexpected, self.unexpected_size),
            Operation::Post => match take(&mut self.unexpected, &|e| command.matches(e)) {
                Some(entry) => Some(entry),
                None => return append(&mut self.posted, self.posted_size),
            },
            Operation::Cancel => take(&mut self.posted, &|e| {
                e.endpoint == command.endpoint && e.request == command.request
            }),
            Operation::Probe => {
                let mut list = self.unexpected.iter();
                list.find(|e| command.matches(e)).copied()
            }
            Operation::Claim => take(&mut self.unexpected, &|e| command.matches(e)),
            Operation::TakePostedOfPair => take(&mut self.posted, &|e| {
                !e.any_source && e.pair == command.pair
            }),
            Operation::TakePostedOfEndpoint => {
                take(&mut self.posted, &|e| e.endpoint == command.endpoint)
            }
            Operation::TakeUnexpectedOfPair => {
                take(&mut self.unexpected, &|e| e.pair == command.pair)
            }
        };
        found.map_or(Outcome::Missing, Outcome::Found)
    }
}
