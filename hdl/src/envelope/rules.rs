//! Which messages are revoked: the rules that the firmware has set, looked at before anything is matched.
//!
//! ```text
//!   change ──────────► ┌───────┐
//!   forget_pair ──────►│ Rules │  a row: endpoint, pairs, context, match bits, mask
//!   forget_endpoint ──►│       │
//!   look ─────────────►│       ├──► known, covered   the message that was looked up falls under a rule
//!                      └───────┘
//! ```
//!
//! Endpoint and context are compared in all rows at once, the rest in the rows that agree in these, one a cycle. So where no rule is of the
//! message's endpoint and context the answer is there in the cycle behind the look; otherwise so many cycles later as rules are, and one more. It
//! stays until the next look. A receive whose ignore bits overlap the mask of a rule doesn't fall under it: it may be for other messages.
//!
//! Which pairs are in a rule's group is a column of a memory that has a word for each pair. A new rule's column is written in as many cycles as
//! there are pairs, and looks that have a row to read wait for that.

use crate::config::Config;
use crate::prelude::*;
use crate::prim::Ram;
use crate::types::RuleSetup;
use abi::limits::MAX_RULES;

/// A message, or what a request looks for.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Tag {
    /// Its endpoint.
    pub endpoint: Bits<8>,
    /// Its pair, unless
    pub pair: Bits<16>,
    /// a request takes messages of any source.
    pub any_source: Bit,
    /// Its context.
    pub context: Bits<16>,
    /// Its match bits.
    pub match_bits: Bits<64>,
    /// Of these, those that may be anything; none of a message.
    pub ignore_bits: Bits<64>,
}

/// A row gets a rule, or loses the one that it has.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct RuleChange {
    /// The row. One beyond the table is none.
    pub row: Bits<16>,
    /// It has a rule from now on.
    pub holds: Bit,
    /// This one.
    pub rule: RuleSetup,
}

/// What of a rule is compared bit by bit: of the row that is read.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Bound {
    match_bits: Bits<64>,
    mask: Bits<64>,
}

/// What is compared in all rows at once.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Place {
    endpoint: Bits<8>,
    context: Bits<16>,
}

/// Rules at most, a bit of [`Rules`]' groups for each.
const MOST: usize = 16;

const _: () = assert!(
    MAX_RULES <= MOST,
    "a word of the groups has a bit for each rule"
);

/// The rules of a card.
#[block(config: &Config)]
pub(super) struct Rules {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// No rule holds.
    pub reset: Signal<In, Bit>,
    /// A row changes. Only while `settled`.
    pub change: Pulse<In, RuleChange>,
    /// A pair is closed: it leaves the groups. Only while `settled`, and not with a change.
    pub forget_pair: Pulse<In, Bits<16>>,
    /// An endpoint is closed: its rules go.
    pub forget_endpoint: Pulse<In, Bits<8>>,
    /// No group is being written.
    pub settled: Signal<Out, Bit>,
    /// This is looked up, and nothing changes in the same cycle. The data stay until the answer is known. Another look, or a change, before that makes the
    /// answer void.
    pub look: Pulse<In, Tag>,
    /// The answer to the last look is known: no sooner than in the cycle behind it.
    pub known: Signal<Out, Bit>,
    /// It falls under a rule.
    pub covered: Signal<Out, Bit>,
    #[each(config.rules)]
    holds: Vec<Reg<Bit>>,
    #[each(config.rules)]
    place: Vec<Reg<Place>>,
    #[is(Ram::distributed(config.rules))]
    bounds: Ram<Bound>,
    /// Of each pair, the rows whose groups it is in.
    #[is(Ram::distributed(config.pairs))]
    groups: Ram<Bits<16>>,
    /// Rows that agree in endpoint and context and haven't been read.
    #[each(config.rules)]
    left: Vec<Reg<Bit>>,
    /// One was read in the last cycle, as the pair's groups were:
    reads: Reg<Bit>,
    /// this one.
    row: Reg<Bits<16>>,
    hit: Reg<Bit>,
    // A rule's group is being written: its row, the next pair, and a bit for this and each later one. A word is read a cycle before.
    fills: Reg<Bit>,
    filled: Reg<Bits<16>>,
    cursor: Reg<Bits<16>>,
    members_low: Reg<Bits<64>>,
    members_high: Reg<Bits<64>>,
    /// The word of the pair before the cursor has been read.
    fetched: Reg<Bit>,

    /// Row `i` gets what changes.
    #[each(config.rules)]
    chosen: Vec<Signal<Local, Bit>>,
    /// Its endpoint is closed.
    #[each(config.rules)]
    closes: Vec<Signal<Local, Bit>>,
    // Of what is looked up: the row is of its endpoint, and of its context.
    #[each(config.rules)]
    of_endpoint: Vec<Signal<Local, Bit>>,
    #[each(config.rules)]
    of_context: Vec<Signal<Local, Bit>>,
    /// Some row is left.
    some: Signal<Local, Bit>,
    /// The lowest of them, which is read.
    lowest: Signal<Local, Bits<16>>,
    goes: Signal<Local, Bit>,
    /// Of the row that was read: its bit in a word of the groups.
    member: Signal<Local, Bits<16>>,
    of_group: Signal<Local, Bit>,
    agrees: Signal<Local, Bit>,
    /// The column of the row that is filled, in a word.
    column: Signal<Local, Bits<16>>,
    #[is(Check::new("groups_are_written_one_at_a_time"))]
    groups_alone: Check,
    #[is(Check::new("rows_stand_while_a_look_begins"))]
    look_alone: Check,
    #[is(constant(config.pairs as u64))]
    pair_count: Constant<Bits<16>>,
    #[is(constant(config.rules as u64))]
    rule_count: Constant<Bits<16>>,
    #[is(config.rules)]
    _n: usize,
}

impl Rules {
    /// For the rules of a card, none of which holds.
    pub(super) fn new(config: &Config) -> Self {
        Self::build(config)
    }
}

#[block(rules = self._n, pairs = self.pair_count.val().index())]
impl Logic for Rules {
    fn update(&mut self) {
        self.search();
        self.compare();
        self.change_rows();
        self.change_groups();
    }
}

#[block]
impl Rules {
    /// A look begins with the rows that agree at sight, and reads them one after the other.
    fn search(&mut self) {
        self.some.next = false;
        self.lowest.next = 0.into();
        for i in 0..self._n {
            self.of_endpoint[i].next =
                self.place[i].q.val().endpoint == self.look.data.val().endpoint;
            self.of_context[i].next = self.place[i].q.val().context == self.look.data.val().context;
            if self.left[i].q.val() & !self.some.val() {
                self.lowest.next = i.to_bits();
            }
            self.some.next = self.some.val() | self.left[i].q.val();
        }
        self.goes.next = self.some.val() & !self.fills.q.val();
        self.reads.d.next = self.goes.val();
        self.row.d.next = self.lowest.val();
        self.bounds.read_address.next = self.lowest.val();
        for i in 0..self._n {
            if self.goes.val() & (self.lowest.val() == i.to_bits()) {
                self.left[i].d.next = false;
            }
        }
    }

    /// The row that was read in the last cycle.
    fn compare(&mut self) {
        self.member.next = bits::<16>(1) << self.row.q.val();
        self.of_group.next = self.look.data.val().any_source
            | ((self.look.data.val().pair < self.pair_count.val())
                & (self.groups.read_data.val() & self.member.val()).any());
        self.agrees.next = !(((self.bounds.read_data.val().match_bits
            ^ self.look.data.val().match_bits)
            | self.look.data.val().ignore_bits)
            & self.bounds.read_data.val().mask)
            .any();
        if self.reads.q.val() & self.of_group.val() & self.agrees.val() {
            self.hit.d.next = true;
        }
        self.known.next = !self.some.val() & !self.reads.q.val();
        self.covered.next = self.hit.q.val();
        if self.look.valid.val() {
            self.hit.d.next = false;
            self.reads.d.next = false;
            for i in 0..self._n {
                self.left[i].d.next =
                    self.holds[i].q.val() & self.of_endpoint[i].val() & self.of_context[i].val();
            }
        }
    }

    /// Rules come and go.
    fn change_rows(&mut self) {
        store!(
            self.bounds.write,
            self.change.valid.val()
                & self.change.data.val().holds
                & (self.change.data.val().row < self.rule_count.val()),
            self.change.data.val().row,
            Bound {
                match_bits: self.change.data.val().rule.match_bits,
                mask: self.change.data.val().rule.mask,
            }
        );
        for i in 0..self._n {
            self.closes[i].next = self.forget_endpoint.valid.val()
                & (self.forget_endpoint.data.val() == self.place[i].q.val().endpoint);
            if self.closes[i].val() {
                self.holds[i].d.next = false;
            }
            self.chosen[i].next =
                self.change.valid.val() & (self.change.data.val().row == i.to_bits());
            if self.chosen[i].val() {
                self.holds[i].d.next = self.change.data.val().holds;
            }
            if self.chosen[i].val() & self.change.data.val().holds {
                self.place[i].d.next = Place {
                    endpoint: self.change.data.val().rule.endpoint,
                    context: self.change.data.val().rule.context,
                };
                self.fills.d.next = true;
            }
        }
    }

    /// A new rule's group is written, pair by pair; a pair that is closed leaves all groups.
    fn change_groups(&mut self) {
        self.settled.next = !self.fills.q.val();
        self.groups.read_address.next = self.look.data.val().pair;
        self.groups.write.enable.next = false;
        self.groups.write.address.next = self.forget_pair.data.val();
        self.groups.write.data.next = 0.into();
        self.column.next = bits::<16>(1) << self.filled.q.val();
        if self.fills.q.val() {
            self.groups.read_address.next = self.cursor.q.val();
            self.groups.write.address.next = self.cursor.q.val() - 1;
            self.groups.write.enable.next = self.fetched.q.val();
            self.groups.write.data.next = self.groups.read_data.val() & !self.column.val();
            if self.members_low.q.val().get_bit(0) {
                self.groups.write.data.next = self.groups.read_data.val() | self.column.val();
            }
            self.fetched.d.next = true;
            self.cursor.d.next = self.cursor.q.val() + 1;
            if self.fetched.q.val() {
                self.members_low.d.next =
                    (self.members_low.q.val() >> 1) | (self.members_high.q.val() << 63);
                self.members_high.d.next = self.members_high.q.val() >> 1;
            }
            if self.cursor.q.val() == self.pair_count.val() {
                self.fills.d.next = false;
            }
        } else {
            self.groups.write.enable.next = self.forget_pair.valid.val()
                & (self.forget_pair.data.val() < self.pair_count.val());
            self.fetched.d.next = false;
            self.cursor.d.next = 0.into();
        }
        if self.change.valid.val() & self.change.data.val().holds {
            self.filled.d.next = self.change.data.val().row;
            self.members_low.d.next = self.change.data.val().rule.pairs_low;
            self.members_high.d.next = self.change.data.val().rule.pairs_high;
        }
        self.look_alone.ok.next = !self.look.valid.val()
            | !(self.change.valid.val()
                | self.forget_pair.valid.val()
                | self.forget_endpoint.valid.val());
        self.groups_alone.ok.next = !self.fills.q.val()
            | (!self.forget_pair.valid.val()
                & !(self.change.valid.val() & self.change.data.val().holds));
    }
}
