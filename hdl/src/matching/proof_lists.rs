//! What is proved of the whole engine, and around what.
//!
//! ```text
//!   any commands that ─┬─► Lists ──────────────────► reply ───────────┐
//!   a user may give    │                                              ├─► Check: equal
//!                      └─► Told × n ─► the first that ─► expected ────┘
//!                          (commands)  is found
//! ```
//!
//! The reference keeps the commands in their order, and says when the engine answers one what the answer
//! has to be: the commands before it have been answered, so that what each has left behind is known. The
//! order of the commands is the order of age, so the oldest entry is the first that is found.
//!
//! Keys are narrow, since a solver has to try what a search may compare; the engine's are as wide as in a
//! card with the other bits zero.

use super::lists::Lists;
use super::told::{Line, Told};
use crate::config::{Config, TINY, table_rows};
use crate::prelude::*;
use crate::types::{MatchCommand, MatchReply, Operation, PlaceUnit};

/// The engine that is proved.
pub const SMALLEST: Config = Config {
    name: "smallest",
    endpoints: 2,
    pairs: 4,
    posted: 2,
    exact: 8,
    rows: table_rows(8),
    unexpected: 32,
    comparators: 4,
    ..TINY
};

/// Longest time without a reply while a command is under way, and without a command taken while none is.
const PATIENCE: u64 = 24;
/// Cycles after which nothing moves that concerns a command that has been answered, unless its message is to wait.
const SETTLED: u64 = 4;
/// Cycles in which a message goes to the unexpected side.
const APPEND: u64 = 4;
/// Cycle after the reset from which on pairs get their units: the table of these is cleared.
const UNITS_FROM: u64 = 5;

/// Ports that are constant where one order of commands is followed to its end: *post, post, arrive, cancel, arrive*, at any
/// times, in fewer keys, all of which fall on the same rows.
pub fn order_of_commands() -> Vec<String> {
    use Operation::{Arrive, Cancel, Post};
    let order = [Post, Post, Arrive, Cancel, Arrive];
    let number = |(k, operation): (usize, &Operation)| (*operation as u32) << (4 * k);
    let script: u32 = order.iter().enumerate().map(number).sum();
    let mut ports = vec![format!("script={script}")];
    let constant = [
        "seed=0",
        "multi=0",
        "append=0",
        "slot=0",
        "ignore_bits[1]=0",
        "match_bits[1]=0",
        "request[1]=0",
    ];
    ports.extend(constant.map(String::from));
    ports
}

/// The engine and the commands.
#[block(config: &Config, commands: usize)]
pub struct ListsProof {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset.
    pub reset: Signal<In, Bit>,
    /// Key of the hashes: what it is when the engine is initialised.
    pub seed: Signal<In, Bits<128>>,
    /// What each command is to do: numbers of operations of four bits, the first command's least significant. Other
    /// numbers: any.
    pub script: Signal<In, Bits<32>>,
    /// The next command is offered.
    pub offer: Signal<In, Bit>,
    /// Key of the offered command: what to do, if `script` doesn't say.
    pub operation: Signal<In, Operation>,
    /// Key of the offered command: endpoint.
    pub endpoint: Signal<In, Bits<1>>,
    /// Key of the offered command: source, among those of the endpoint.
    pub source: Signal<In, Bits<1>>,
    /// Key of the offered command: any source matches.
    pub any_source: Signal<In, Bit>,
    /// Key of the offered command: match bits.
    pub match_bits: Signal<In, Bits<2>>,
    /// Key of the offered command: match bits that needn't agree.
    pub ignore_bits: Signal<In, Bits<2>>,
    /// Key of the offered command: handle.
    pub request: Signal<In, Bits<2>>,
    /// Key of the offered command: place of a message.
    pub slot: Signal<In, Bits<2>>,
    /// Key of the offered command: the receive stays when it is matched.
    pub multi: Signal<In, Bit>,
    /// Key of the offered command: the message waits if no receive matches it.
    pub append: Signal<In, Bit>,
    #[is(Lists::new(config))]
    lists: Lists,
    #[each(commands)]
    told: Vec<Told>,
    kept_seed: Reg<Bits<128>>,
    accepted: Reg<Bits<8>>,
    answered: Reg<Bits<8>>,
    silent: Reg<Bits<8>>,
    /// Cycles until all messages that are to wait have gone to the unexpected side.
    unsettled: Reg<Bits<8>>,
    left: Signal<Local, Bits<8>>,
    waits: Signal<Local, Bit>,
    rests: Signal<Local, Bit>,
    offered: Signal<Local, Bit>,
    permitted: Signal<Local, Bit>,
    number: Signal<Local, Bits<4>>,
    given: Signal<Local, Line>,
    excluded: Signal<Local, Bit>,
    entering: Signal<Local, Bit>,
    command: Signal<Local, MatchCommand>,
    pair: Signal<Local, Bits<16>>,
    slot_of_pair: Signal<Local, Bits<6>>,
    /// Cycles since the reset, as long as pairs get their units.
    age: Reg<Bits<8>>,
    given_unit: Signal<Local, PlaceUnit>,
    key: Signal<Local, Line>,
    reply: Signal<Local, MatchReply>,
    replying: Signal<Local, Bit>,
    any: Signal<Local, Bit>,
    index: Signal<Local, Bits<16>>,
    first: Signal<Local, Bits<8>>,
    named: Signal<Local, Bits<8>>,
    taken: Signal<Local, Bits<8>>,
    hit: Signal<Local, Bit>,
    found_line: Signal<Local, Line>,
    unordered: Signal<Local, Bit>,
    stays: Signal<Local, Bit>,
    appends: Signal<Local, Bit>,
    in_use: Signal<Local, Bit>,
    receives: Signal<Local, Bits<16>>,
    odd_receives: Signal<Local, Bits<16>>,
    messages: Signal<Local, Bits<16>>,
    place: Signal<Local, Bits<16>>,
    #[is(constant(config.exact as u64))]
    exact: Constant<Bits<16>>,
    #[is(constant(config.posted as u64))]
    odd: Constant<Bits<16>>,
    #[is(constant((config.exact + config.posted) as u64))]
    total: Constant<Bits<16>>,
    #[is(constant(commands as u64))]
    commands: Constant<Bits<8>>,
    found_if_any_matches: Check,
    found_the_oldest: Check,
    found_one_of_those: Check,
    appended_at_a_vacant_place: Check,
    refused_only_if_full: Check,
    replies_follow_commands: Check,
    answers_in_time: Check,
    counted: Check,
    #[is(commands)]
    _n: usize,
}

impl ListsProof {
    /// Of so many commands.
    pub fn new(config: &Config, commands: usize) -> Self {
        assert!(commands <= 8, "{commands} commands");
        Self::build(config, commands)
    }
}

#[block]
impl Logic for ListsProof {
    fn update(&mut self) {
        self.lists.seed.next = self.kept_seed.q.val();
        if !self.lists.initialized.val() {
            self.kept_seed.d.next = self.seed.val();
        }

        // While the engine clears its tables each of the four pairs gets a unit: the last pair the first.
        self.given_unit.next = PlaceUnit {
            pair: bit_cast::<16, 8>(self.age.q.val() - UNITS_FROM),
            count: 1.into(),
            unit: bits::<8>(3) - (self.age.q.val() - UNITS_FROM),
        };
        send!(
            self.lists.unit,
            (self.age.q.val() >= UNITS_FROM) & (self.age.q.val() < UNITS_FROM + 4),
            self.given_unit.val()
        );
        if self.age.q.val() != UNITS_FROM + 4 {
            self.age.d.next = self.age.q.val() + 1;
        }

        // ---------------------------------------------------------------- commands
        self.number.next = 0.into();
        for i in 0..self._n {
            if self.accepted.q.val() == i.to_bits() {
                self.number.next = self.script.val().get_bits::<4>(4 * i);
            }
        }
        self.given.next = Line::default();
        self.given.next.operation = self.operation.val();
        self.given.next.endpoint = self.endpoint.val();
        self.given.next.source = self.source.val();
        self.given.next.any_source = self.any_source.val();
        self.given.next.match_bits = self.match_bits.val();
        self.given.next.ignore_bits = self.ignore_bits.val();
        self.given.next.request = self.request.val();
        self.given.next.slot = self.slot.val();
        self.given.next.multi = self.multi.val();
        self.given.next.append = self.append.val();
        // Numbers that are no operation aren't offered.
        self.permitted.next = self.number.val() < 9;
        if self.operation.val() == Operation::Arrive {
            self.permitted.next = true;
        }
        if self.operation.val() == Operation::Remove {
            self.permitted.next = true;
        }
        if self.operation.val() == Operation::Post {
            self.permitted.next = true;
        }
        if self.operation.val() == Operation::Cancel {
            self.permitted.next = true;
        }
        if self.operation.val() == Operation::Probe {
            self.permitted.next = true;
        }
        if self.operation.val() == Operation::TakePostedOfPair {
            self.permitted.next = true;
        }
        if self.operation.val() == Operation::TakePostedOfEndpoint {
            self.permitted.next = true;
        }
        if self.operation.val() == Operation::TakeUnexpectedOfPair {
            self.permitted.next = true;
        }
        if self.operation.val() == Operation::Claim {
            self.permitted.next = true;
        }
        if self.number.val() == 0 {
            self.given.next.operation = Operation::Arrive;
        }
        if self.number.val() == 1 {
            self.given.next.operation = Operation::Remove;
        }
        if self.number.val() == 2 {
            self.given.next.operation = Operation::Post;
        }
        if self.number.val() == 3 {
            self.given.next.operation = Operation::Cancel;
        }
        if self.number.val() == 4 {
            self.given.next.operation = Operation::Probe;
        }
        if self.number.val() == 5 {
            self.given.next.operation = Operation::TakePostedOfPair;
        }
        if self.number.val() == 6 {
            self.given.next.operation = Operation::TakePostedOfEndpoint;
        }
        if self.number.val() == 7 {
            self.given.next.operation = Operation::TakeUnexpectedOfPair;
        }
        if self.number.val() == 8 {
            self.given.next.operation = Operation::Claim;
        }
        self.pair.next = bit_cast::<16, 1>(self.given.val().source)
            | (bit_cast::<16, 1>(self.given.val().endpoint) << 1);
        self.slot_of_pair.next = bit_cast::<6, 2>(self.given.val().slot & 1)
            | (bit_cast::<6, 2>(self.given.val().slot & 2) << 1);
        self.command.next = MatchCommand::default();
        self.command.next.operation = self.given.val().operation;
        self.command.next.endpoint = bit_cast::<8, 1>(self.given.val().endpoint);
        self.command.next.pair = self.pair.val();
        self.command.next.any_source = self.given.val().any_source;
        self.command.next.match_bits = bit_cast::<64, 2>(self.given.val().match_bits);
        self.command.next.ignore_bits = bit_cast::<64, 2>(self.given.val().ignore_bits);
        self.command.next.request = bit_cast::<32, 2>(self.given.val().request);
        self.command.next.slot = self.slot_of_pair.val();
        self.command.next.multi = self.given.val().multi;
        self.command.next.append = self.given.val().append;
        self.lists.command.data.next = self.command.val();
        self.excluded.next = false;
        for i in 0..self._n {
            if self.told[i].excludes.val() {
                self.excluded.next = true;
            }
        }
        // An engine that rests doesn't change, so that it makes no difference how long it does.
        self.rests.next = (self.answered.q.val() == self.accepted.q.val())
            & (self.silent.q.val() == SETTLED)
            & (self.unsettled.q.val() == 0);
        self.offered.next = (self.offer.val() | self.rests.val())
            & self.permitted.val()
            & !self.excluded.val()
            & (self.accepted.q.val() != self.commands.val());
        self.lists.command.valid.next = self.offered.val();
        self.entering.next = self.offered.val() & self.lists.command.ready.val();
        if self.entering.val() {
            self.accepted.d.next = self.accepted.q.val() + 1;
        }

        // ---------------------------------------------------------------- what has to be answered
        self.reply.next = self.lists.reply.data.val();
        self.replying.next = self.lists.reply.valid.val();
        self.key.next = Line::default();
        for i in 0..self._n {
            if self.answered.q.val() == i.to_bits() {
                self.key.next = self.told[i].line.val();
            }
        }
        self.any.next = false;
        self.index.next = 0.into();
        self.first.next = 0.into();
        self.named.next = 0.into();
        self.in_use.next = false;
        self.receives.next = 0.into();
        self.odd_receives.next = 0.into();
        self.messages.next = 0.into();
        for i in 0..self._n {
            self.hit.next = self.told[i].hit.val();
            if self.hit.val() & !self.any.val() {
                self.any.next = true;
                self.index.next = self.told[i].index.val();
                self.first.next = self.first.val().replace_bit(i, true);
            }
            if self.hit.val() & (self.told[i].index.val() == self.reply.val().index) {
                self.named.next = self.named.val().replace_bit(i, true);
            }
            if self.told[i].posted.val() {
                self.receives.next = self.receives.val() + 1;
                if self.told[i].index.val() == self.reply.val().index {
                    self.in_use.next = true;
                }
                if self.told[i].index.val() >= self.exact.val() {
                    self.odd_receives.next = self.odd_receives.val() + 1;
                }
            }
            if self.told[i].waiting.val() {
                self.messages.next = self.messages.val() + 1;
            }
        }
        self.unordered.next = (self.key.val().operation == Operation::TakePostedOfPair)
            | (self.key.val().operation == Operation::TakePostedOfEndpoint);
        self.stays.next = self.key.val().operation == Operation::Probe;
        self.appends.next = (self.key.val().operation == Operation::Post)
            & !self.any.val()
            & !self.reply.val().full;
        self.place.next = (bit_cast::<16, 1>(!self.key.val().endpoint) << 4)
            | (bit_cast::<16, 1>(!self.key.val().source) << 3)
            | bit_cast::<16, 2>(self.key.val().slot & 1)
            | (bit_cast::<16, 2>(self.key.val().slot & 2) << 1);
        self.waits.next = (self.key.val().operation == Operation::Arrive)
            & self.key.val().append
            & !self.any.val();
        self.taken.next = self.first.val();
        if self.unordered.val() {
            self.taken.next = self.named.val();
        }
        if !self.replying.val() | self.stays.val() {
            self.taken.next = 0.into();
        }
        for i in 0..self._n {
            self.told[i].given.next = self.given.val();
            self.told[i].load.next = self.entering.val() & (self.accepted.q.val() == i.to_bits());
            self.told[i].key.next = self.key.val();
            self.told[i].answered.next =
                self.replying.val() & (self.answered.q.val() == i.to_bits());
            self.told[i].posts.next = self.appends.val();
            self.told[i].waits.next = self.waits.val();
            self.told[i].number.next = self.reply.val().index;
            if self.waits.val() {
                self.told[i].number.next = self.place.val();
            }
            self.found_line.next = self.told[i].line.val();
            self.told[i].take.next = self.taken.val().get_bit(i)
                & !((self.key.val().operation == Operation::Arrive) & self.found_line.val().multi);
        }
        if self.replying.val() {
            self.answered.d.next = self.answered.q.val() + 1;
        }
        self.silent.d.next = self.silent.q.val() + 1;
        if self.replying.val() | self.entering.val() | !self.lists.initialized.val() {
            self.silent.d.next = 0.into();
        } else if (self.answered.q.val() == self.accepted.q.val())
            & (self.silent.q.val() == SETTLED)
        {
            self.silent.d.next = SETTLED;
        }
        self.left.next = self.unsettled.q.val();
        if self.unsettled.q.val() != 0 {
            self.left.next = self.unsettled.q.val() - 1;
        }
        self.unsettled.d.next = self.left.val();
        if self.replying.val() & self.waits.val() {
            self.unsettled.d.next = self.left.val() + APPEND;
        }

        // ---------------------------------------------------------------- checks
        self.replies_follow_commands.ok.next =
            !self.replying.val() | (self.answered.q.val() != self.accepted.q.val());
        self.found_if_any_matches.ok.next =
            !self.replying.val() | (self.reply.val().found == self.any.val());
        self.found_the_oldest.ok.next = !self.replying.val()
            | !self.any.val()
            | self.unordered.val()
            | (self.reply.val().index == self.index.val());
        self.found_one_of_those.ok.next =
            !self.replying.val() | !self.any.val() | !self.unordered.val() | self.named.val().any();
        self.appended_at_a_vacant_place.ok.next = !self.replying.val()
            | !self.appends.val()
            | (!self.in_use.val() & (self.reply.val().index < self.total.val()));
        self.refused_only_if_full.ok.next = !self.replying.val()
            | !self.reply.val().full
            | ((self.key.val().operation == Operation::Post)
                & !self.any.val()
                & (self.odd_receives.val() == self.odd.val()));
        // Nothing waits for ever: who is under way is answered, and who isn't finds the engine ready.
        self.answers_in_time.ok.next =
            (self.silent.q.val() < PATIENCE) & (!self.rests.val() | self.lists.command.ready.val());
        self.counted.ok.next = !self.rests.val()
            | ((self.lists.posted_depth.val() == self.receives.val())
                & (self.lists.unexpected_depth.val() == self.messages.val()));
    }
}
