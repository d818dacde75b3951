//! Tag matching: the lists of posted receives and of unexpected messages, and the operations on them.
//!
//! ```text
//!             ┌──────────────────────────────┐
//!  command ──►│ key (held) ──┬─► Posted      │   cycle 0 the command is taken
//!             │ step         │               │         1 all entries compare themselves with it
//!             │              └─► Unexpected  │         2 the oldest that agrees is chosen
//!    reply ◄──│                              │         3 it is removed, or the key is appended
//!             └──────────────────────────────┘         4 the reply
//! ```
//!
//! One operation at a time: the next command may come with the reply of the one before. Both lists are
//! associative memories; each entry stays where it was put, so that its place can name its payload
//! elsewhere.

mod age;
mod associative;
mod invariants;
mod one_hot;
mod order;
mod place;
mod posted;
pub mod proof;
mod quota;
mod rows;
mod unexpected;

pub use age::Age;
pub use associative::{Associative, AssociativeEntry, AssociativeSearch};
pub use invariants::Invariants;
pub use one_hot::OneHot;
pub use order::Order;
pub use posted::{Posted, PostedEntry, PostedSearch};
pub use quota::{Quota, Share};
pub use rows::{UnexpectedMutation, UnexpectedRows};
pub use unexpected::{Unexpected, UnexpectedEntry};

use crate::config::{self, Config};
use crate::prelude::*;
use crate::tops::{Class, Top};
use crate::types::{MatchCommand, MatchReply};

/// Most entries that a list of this design can have: beyond that, associative memories of
/// flip-flops stop paying.
pub const MAX_ENTRIES: usize = 64;

/// Cycles from a command to its reply.
pub const LATENCY: u64 = 4;

/// What a [`MatchCommand`] asks for. The numbers are those of the pin `monitor_match_operation`.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, LogicState)]
pub enum Operation {
    /// A message has come: the oldest posted receive that matches it is removed.
    Arrive,
    /// A message found no receive: append it to the unexpected.
    Insert,
    /// A receive: the earliest unexpected message that matches is removed; if there is none, append it to the posted.
    Post,
    /// The endpoint's posted receive of this handle is removed.
    Cancel,
    /// The earliest unexpected message that matches; it stays.
    Probe,
    /// The oldest posted receive that names this pair is removed.
    TakePostedOfPair,
    /// The oldest posted receive of this endpoint is removed.
    TakePostedOfEndpoint,
    /// The earliest unexpected message of this pair is removed.
    TakeUnexpectedOfPair,
    /// The earliest unexpected message that matches is removed; nothing is ever appended.
    Claim,
}

impl Operation {
    /// Every operation, by number.
    pub const ALL: [Operation; 9] = [
        Operation::Arrive,
        Operation::Insert,
        Operation::Post,
        Operation::Cancel,
        Operation::Probe,
        Operation::TakePostedOfPair,
        Operation::TakePostedOfEndpoint,
        Operation::TakeUnexpectedOfPair,
        Operation::Claim,
    ];
}

/// A contract to break, so that a test can show that its breach is seen. The input `mutation` is zero
/// in a card.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// Nothing is broken.
    None = 0,
    /// A cancelled receive stays posted.
    LoseCancels = 1,
    /// An entry that was removed stays.
    MatchTwice = 2,
    /// Bit 0 of the match bits has to agree although the receive ignores it.
    NarrowWildcards = 3,
    /// Entries don't know which ones are older.
    ForgetAges = 4,
    /// The next entry always goes to place 0.
    ReusePlaces = 5,
    /// Searches find entries that aren't there any more.
    FindRemoved = 6,
    /// A choice that is made while an entry is removed may be that entry.
    ChooseDeparting = 7,
    /// Removals take entries that are to stay until they are cancelled.
    LoseMulti = 8,
    /// A receive from one source takes messages of any.
    WidenSources = 9,
    /// A search finds what a place held before it was filled anew.
    KeepHits = 10,
    /// An endpoint may take what is reserved for the others.
    OverdrawQuota = 11,
    /// What an endpoint gives back is not counted as common again.
    LoseQuota = 12,
}

impl Mutation {
    /// The number as a kernel compares it.
    fn constant(self) -> Constant<Bits<8>> {
        Constant::new((self as u64).into())
    }
}

/// Where an operation is.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum Step {
    /// No operation, or the reply of one.
    Idle,
    /// Entries compare.
    Search,
    /// The oldest is chosen.
    Select,
    /// The lists change.
    Act,
}

/// Both lists.
#[derive(LogicBlock)]
pub struct Lists {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset: both lists are empty.
    pub reset: Signal<In, Bit>,
    /// Contract to break, for tests; zero in a card. See [`Mutation`].
    pub mutation: Signal<In, Bits<8>>,
    /// A pulse. Not before the reply of the command before.
    pub command_valid: Signal<In, Bit>,
    /// With `command_valid`: what to do.
    pub command: Signal<In, MatchCommand>,
    /// A pulse, [`LATENCY`] cycles after that of the command.
    pub reply_valid: Signal<Out, Bit>,
    /// With `reply_valid`: what came of it. `index` is the place of the entry found or appended;
    /// zero if neither.
    pub reply: Signal<Out, MatchReply>,
    /// Live posted receives.
    pub posted_depth: Signal<Out, Bits<16>>,
    /// Live unexpected messages.
    pub unexpected_depth: Signal<Out, Bits<16>>,
    /// Number of the operation in `command`, for the monitor pins.
    pub operation: Signal<Out, Bits<4>>,
    step: Reg<Step>,
    key: Reg<MatchCommand>,
    answered: Reg<Bit>,
    answer: Reg<MatchReply>,
    /// Places of receives that stay.
    staying: Reg<Bits<64>>,
    posted: Posted,
    unexpected: Unexpected,
    in_posted: Signal<Local, Bit>,
    in_unexpected: Signal<Local, Bit>,
    one_at_a_time: Check,
}

impl Lists {
    /// The lists of a configuration.
    ///
    /// # Panics
    /// If a list has no entries or more than [`MAX_ENTRIES`].
    pub fn new(config: &Config) -> Self {
        Self {
            clock: Signal::default(),
            reset: Signal::default(),
            mutation: Signal::default(),
            command_valid: Signal::default(),
            command: Signal::default(),
            reply_valid: Signal::default(),
            reply: Signal::default(),
            posted_depth: Signal::default(),
            unexpected_depth: Signal::default(),
            operation: Signal::default(),
            step: Reg::default(),
            key: Reg::default(),
            answered: Reg::default(),
            answer: Reg::default(),
            staying: Reg::default(),
            posted: Posted::new(config.posted),
            unexpected: Unexpected::new(config.unexpected),
            in_posted: Signal::default(),
            in_unexpected: Signal::default(),
            one_at_a_time: Check::new("one_operation_at_a_time"),
        }
    }
}

#[module]
impl Logic for Lists {
    #[hdl_gen]
    fn update(&mut self) {
        registers!(self, clock, reset, step, key, answered, answer, staying);
        clocked!(self, clock, reset, posted, unexpected, one_at_a_time);
        self.posted.mutation.next = self.mutation.val();
        self.unexpected.mutation.next = self.mutation.val();
        self.posted.endpoint.next = self.key.q.val().endpoint;
        self.posted.pair.next = self.key.q.val().pair;
        self.posted.any_source.next = self.key.q.val().any_source;
        self.posted.context_id.next = self.key.q.val().context;
        self.posted.match_bits.next = self.key.q.val().match_bits;
        self.posted.ignore_bits.next = self.key.q.val().ignore_bits;
        self.posted.request.next = self.key.q.val().request;
        self.unexpected.endpoint.next = self.key.q.val().endpoint;
        self.unexpected.pair.next = self.key.q.val().pair;
        self.unexpected.any_source.next = self.key.q.val().any_source;
        self.unexpected.context_id.next = self.key.q.val().context;
        self.unexpected.match_bits.next = self.key.q.val().match_bits;
        self.unexpected.ignore_bits.next = self.key.q.val().ignore_bits;

        // Which list the operation searches, and for what.
        self.in_posted.next = false;
        self.in_unexpected.next = false;
        self.posted.by.next = PostedSearch::Envelope;
        self.posted.cancel.next = false;
        self.unexpected.by_pair.next = false;
        match self.key.q.val().operation {
            Operation::Arrive => {
                self.in_posted.next = true;
            }
            Operation::Insert => {}
            Operation::Post => {
                self.in_unexpected.next = true;
            }
            Operation::Cancel => {
                self.in_posted.next = true;
                self.posted.by.next = PostedSearch::Request;
                self.posted.cancel.next = true;
            }
            Operation::Probe => {
                self.in_unexpected.next = true;
            }
            Operation::TakePostedOfPair => {
                self.in_posted.next = true;
                self.posted.by.next = PostedSearch::Pair;
            }
            Operation::TakePostedOfEndpoint => {
                self.in_posted.next = true;
                self.posted.by.next = PostedSearch::Endpoint;
            }
            Operation::TakeUnexpectedOfPair => {
                self.in_unexpected.next = true;
                self.unexpected.by_pair.next = true;
            }
            Operation::Claim => {
                self.in_unexpected.next = true;
            }
        }

        self.posted.search.next = false;
        self.posted.select.next = false;
        self.posted.remove.next = false;
        self.posted.insert.next = false;
        self.unexpected.search.next = false;
        self.unexpected.select.next = false;
        self.unexpected.remove.next = false;
        self.unexpected.insert.next = false;
        self.answered.d.next = false;
        match self.step.q.val() {
            Step::Idle => {
                if self.command_valid.val() {
                    self.key.d.next = self.command.val();
                    self.step.d.next = Step::Search;
                }
            }
            Step::Search => {
                self.posted.search.next = self.in_posted.val();
                self.unexpected.search.next = self.in_unexpected.val();
                self.step.d.next = Step::Select;
            }
            Step::Select => {
                self.posted.select.next = self.in_posted.val();
                self.unexpected.select.next = self.in_unexpected.val();
                self.step.d.next = Step::Act;
            }
            Step::Act => {
                self.answered.d.next = true;
                self.answer.d.next.found = false;
                self.answer.d.next.full = false;
                self.answer.d.next.index = 0.into();
                if self.in_posted.val() & self.posted.found.val() {
                    self.posted.remove.next = (self.key.q.val().operation != Operation::Arrive)
                        | !((self.staying.q.val() >> self.posted.index.val().get_bits::<6>(0)) & 1)
                            .any();
                    self.answer.d.next.found = true;
                    self.answer.d.next.index = self.posted.index.val();
                }
                if self.in_unexpected.val() & self.unexpected.found.val() {
                    self.unexpected.remove.next = self.key.q.val().operation != Operation::Probe;
                    self.answer.d.next.found = true;
                    self.answer.d.next.index = self.unexpected.index.val();
                }
                if self.key.q.val().operation == Operation::Insert {
                    self.unexpected.insert.next = !self.unexpected.full.val();
                    self.answer.d.next.full = self.unexpected.full.val();
                    self.answer.d.next.index = self.unexpected.place_index.val();
                }
                if (self.key.q.val().operation == Operation::Post) & !self.unexpected.found.val() {
                    self.posted.insert.next = !self.posted.full.val();
                    self.answer.d.next.full = self.posted.full.val();
                    self.answer.d.next.index = self.posted.place_index.val();
                    if !self.posted.full.val() {
                        self.staying.d.next = self.staying.q.val()
                            & !(bits::<64>(1) << self.posted.place_index.val().get_bits::<6>(0));
                        if self.key.q.val().multi {
                            self.staying.d.next = self.staying.q.val()
                                | (bits::<64>(1) << self.posted.place_index.val().get_bits::<6>(0));
                        }
                    }
                }
                self.step.d.next = Step::Idle;
            }
        }
        self.reply_valid.next = self.answered.q.val();
        self.reply.next = self.answer.q.val();
        self.posted_depth.next = self.posted.depth.val();
        self.unexpected_depth.next = self.unexpected.depth.val();

        self.operation.next = 0.into();
        match self.command.val().operation {
            Operation::Arrive => {}
            Operation::Insert => {
                self.operation.next = 1.into();
            }
            Operation::Post => {
                self.operation.next = 2.into();
            }
            Operation::Cancel => {
                self.operation.next = 3.into();
            }
            Operation::Probe => {
                self.operation.next = 4.into();
            }
            Operation::TakePostedOfPair => {
                self.operation.next = 5.into();
            }
            Operation::TakePostedOfEndpoint => {
                self.operation.next = 6.into();
            }
            Operation::TakeUnexpectedOfPair => {
                self.operation.next = 7.into();
            }
            Operation::Claim => {
                self.operation.next = 8.into();
            }
        }

        self.one_at_a_time.ok.next = !self.command_valid.val() | (self.step.q.val() == Step::Idle);
    }
}

/// The lists of each configuration, alone, and their parts.
pub fn tops() -> Vec<Top> {
    let associative = |config: &Config| {
        let reserved = config.posted / (2 * config.endpoints);
        Associative::new(config.posted, config.endpoints, reserved)
    };
    let quota = |config: &Config| {
        let reserved = config.posted / (2 * config.endpoints);
        Quota::new(config.endpoints, config.posted, reserved)
    };
    vec![
        Top::of("lists_tiny", Class::Test, || Lists::new(&config::TINY)),
        Top::of("lists_ecp5", Class::Test, || Lists::new(&config::ECP5)),
        Top::of("associative_tiny", Class::Test, move || {
            associative(&config::TINY)
        }),
        Top::of("associative_ecp5", Class::Test, move || {
            associative(&config::ECP5)
        }),
        Top::of("quota_tiny", Class::Test, move || quota(&config::TINY)),
        Top::of("quota_ecp5", Class::Test, move || quota(&config::ECP5)),
        Top::of("unexpected_tiny", Class::Test, || {
            UnexpectedRows::new(config::TINY.endpoints, config::TINY.pairs, 8)
        }),
        Top::of("unexpected_ecp5", Class::Test, || {
            UnexpectedRows::new(config::ECP5.endpoints, config::ECP5.pairs, 8)
        }),
        Top::of("unexpected_odd", Class::Test, || {
            UnexpectedRows::new(3, 5, 4)
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::Operation;
    use abi::monitor::MatchOperation;

    #[test]
    fn operations_have_the_numbers_that_the_monitor_pins_are_read_by() {
        for (operation, number) in Operation::ALL.into_iter().zip(MatchOperation::ALL) {
            assert_eq!(format!("{operation:?}"), number.name());
            assert_eq!(operation as u8, number.code());
        }
        assert!(Operation::ALL.len() <= MatchOperation::ALL.len());
    }
}
