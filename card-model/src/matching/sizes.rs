//! The sizes of an engine that its user can see.

use abi::limits::MAX_CREDITS;

use super::Command;

/// Slots that a pair's messages can wait in, at most: the credits of a pair.
pub const SLOTS: usize = MAX_CREDITS as usize;
/// Classes of an endpoint.
pub const CLASSES: usize = 4;

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
    /// Ways of such a row.
    pub row_ways: usize,
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
    /// An engine for this many endpoints, pairs, receives on the exact and on the associative side, and unexpected messages. All match bits
    /// count, and of each side half is shared evenly among the endpoints.
    pub fn new(
        endpoints: usize,
        pairs: usize,
        exact: usize,
        posted: usize,
        unexpected: usize,
    ) -> Self {
        Sizes {
            endpoints,
            pairs,
            exact,
            rows: exact.div_ceil(2).next_power_of_two(),
            row_ways: 3,
            match_mask: u64::MAX,
            posted,
            unexpected,
            classes: CLASSES,
            comparators: 8,
            reserved_exact: exact / (2 * endpoints),
            reserved_posted: posted / (2 * endpoints),
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
