//! The sizes of an engine that its user can see.

use hdl::config::Config;
use hdl::matching::CLASSES;

use crate::command::Command;

/// Slots that a pair's messages can wait in, at most: the credits of a pair.
pub const SLOTS: usize = 16;

/// Sizes of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Endpoints.
    pub endpoints: usize,
    /// Pairs, over all endpoints.
    pub pairs: usize,
    /// Posted receives that the exact side holds.
    pub exact: usize,
    /// Rows of each table of the exact side.
    pub rows: usize,
    /// The match bits that are compared.
    pub match_mask: u64,
    /// Posted receives that the associative side holds.
    pub posted: usize,
    /// Messages that may wait at a time: the sum of the credits that admission gives.
    pub unexpected: usize,
    /// Classes of an endpoint.
    pub classes: usize,
    /// Places of unexpected messages that a search looks at in a cycle.
    pub comparators: usize,
    /// Receives on the exact side that are an endpoint's own.
    pub reserved_exact: usize,
    /// Receives on the associative side that are an endpoint's own.
    pub reserved_posted: usize,
}

impl Sizes {
    /// The sizes of a configuration.
    pub fn of(config: &Config) -> Self {
        Sizes {
            endpoints: config.endpoints,
            pairs: config.pairs,
            exact: config.exact,
            rows: config.rows,
            match_mask: config.match_mask(),
            posted: config.posted,
            unexpected: config.unexpected,
            classes: CLASSES,
            comparators: config.comparators,
            reserved_exact: config.reserved_exact(),
            reserved_posted: config.reserved_posted(),
        }
    }

    /// What the engine keeps of a command: beyond the match bits that are compared, nothing.
    pub fn kept(&self, command: &Command) -> Command {
        Command {
            match_bits: command.match_bits & self.match_mask,
            ignore_bits: command.ignore_bits & self.match_mask,
            ..*command
        }
    }

    /// Posted receives that one endpoint can have on the exact side.
    pub fn exact_of_one(&self) -> usize {
        self.exact - (self.endpoints - 1) * self.reserved_exact
    }

    /// Posted receives that one endpoint can have on the associative side.
    pub fn posted_of_one(&self) -> usize {
        self.posted - (self.endpoints - 1) * self.reserved_posted
    }
}
