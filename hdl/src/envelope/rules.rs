//! Which messages are revoked: the rules that the firmware has set, looked at before anything is matched.
//!
//! ```text
//!   change ──────────► ┌───────┐
//!   forget_pair ──────►│ Rules │  a row: endpoint, pairs, context, match bits, mask
//!   forget_endpoint ──►│       │
//!   look ─────────────►│       ├──► covered   from the next cycle on: the message that was looked up falls under a rule
//!                      └───────┘
//! ```
//!
//! All rows are compared at once, so an answer takes one cycle whatever the table holds, and stays until the next look. A receive whose ignore
//! bits overlap the mask of a rule doesn't fall under it: it may be for other messages.

use crate::config::Config;
use crate::prelude::*;
use crate::types::RuleSetup;

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

/// A rule.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Row {
    endpoint: Bits<8>,
    context: Bits<16>,
    match_bits: Bits<64>,
    mask: Bits<64>,
    // A bit for each pair of the group.
    pairs_low: Bits<64>,
    pairs_high: Bits<64>,
}

/// The pairs of a card among the 64 from `first` on, a bit for each.
const fn pairs_from(first: usize, pairs: usize) -> u64 {
    match pairs.saturating_sub(first) {
        0 => 0,
        count if count >= 64 => u64::MAX,
        count => (1 << count) - 1,
    }
}

/// The rules of a card.
#[block(config: &Config)]
pub(super) struct Rules {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// No rule holds.
    pub reset: Signal<In, Bit>,
    /// A row changes.
    pub change: Pulse<In, RuleChange>,
    /// A pair is closed: it leaves the groups.
    pub forget_pair: Pulse<In, Bits<16>>,
    /// An endpoint is closed: its rules go.
    pub forget_endpoint: Pulse<In, Bits<8>>,
    /// This is looked up, with the rows as they are before what changes in this cycle.
    pub look: Pulse<In, Tag>,
    /// What was looked up last falls under a rule.
    pub covered: Signal<Out, Bit>,
    #[each(config.rules)]
    holds: Vec<Reg<Bit>>,
    #[each(config.rules)]
    row: Vec<Reg<Row>>,
    hit: Reg<Bit>,
    /// Some rule covers what is looked up.
    hits: Signal<Local, Bit>,
    /// The row gets what changes.
    #[each(config.rules)]
    chosen: Vec<Signal<Local, Bit>>,
    /// Its endpoint is closed.
    #[each(config.rules)]
    closes: Vec<Signal<Local, Bit>>,
    // Of what is looked up: the row is of its endpoint, and of its context; its pair, if it names one, is of the group; its match bits agree.
    #[each(config.rules)]
    of_endpoint: Vec<Signal<Local, Bit>>,
    #[each(config.rules)]
    of_context: Vec<Signal<Local, Bit>>,
    #[each(config.rules)]
    of_group: Vec<Signal<Local, Bit>>,
    #[each(config.rules)]
    agrees: Vec<Signal<Local, Bit>>,
    // The pair that is looked up, and the one that leaves, as a bit in the halves of the groups.
    looked_low: Signal<Local, Bits<64>>,
    looked_high: Signal<Local, Bits<64>>,
    leaving_low: Signal<Local, Bits<64>>,
    leaving_high: Signal<Local, Bits<64>>,
    #[is(constant(pairs_from(0, config.pairs)))]
    all_low: Constant<Bits<64>>,
    #[is(constant(pairs_from(64, config.pairs)))]
    all_high: Constant<Bits<64>>,
    #[is(config.rules)]
    _n: usize,
    #[is(config.pairs)]
    _pairs: usize,
}

impl Rules {
    /// For the rules of a card, none of which holds.
    pub(super) fn new(config: &Config) -> Self {
        Self::build(config)
    }
}

#[block(rules = self._n, pairs = self._pairs)]
impl Logic for Rules {
    fn update(&mut self) {
        self.looked_low.next = bits::<64>(1) << self.look.data.val().pair;
        self.looked_high.next = bits::<64>(1) << (self.look.data.val().pair - 64);
        self.leaving_low.next = bits::<64>(0);
        self.leaving_high.next = bits::<64>(0);
        if self.forget_pair.valid.val() {
            self.leaving_low.next = bits::<64>(1) << self.forget_pair.data.val();
            self.leaving_high.next = bits::<64>(1) << (self.forget_pair.data.val() - 64);
        }
        self.covered.next = self.hit.q.val();
        self.hits.next = false;
        for i in 0..self._n {
            self.of_endpoint[i].next =
                self.row[i].q.val().endpoint == self.look.data.val().endpoint;
            self.of_context[i].next = self.row[i].q.val().context == self.look.data.val().context;
            self.of_group[i].next = self.look.data.val().any_source
                | (self.row[i].q.val().pairs_low & self.looked_low.val()).any()
                | (self.row[i].q.val().pairs_high & self.looked_high.val()).any();
            self.agrees[i].next = !(((self.row[i].q.val().match_bits
                ^ self.look.data.val().match_bits)
                | self.look.data.val().ignore_bits)
                & self.row[i].q.val().mask)
                .any();
            if self.holds[i].q.val()
                & self.of_endpoint[i].val()
                & self.of_context[i].val()
                & self.of_group[i].val()
                & self.agrees[i].val()
            {
                self.hits.next = true;
            }

            self.row[i].d.next.pairs_low = self.row[i].q.val().pairs_low & !self.leaving_low.val();
            self.row[i].d.next.pairs_high =
                self.row[i].q.val().pairs_high & !self.leaving_high.val();
            self.closes[i].next = self.forget_endpoint.valid.val()
                & (self.forget_endpoint.data.val() == self.row[i].q.val().endpoint);
            if self.closes[i].val() {
                self.holds[i].d.next = false;
            }
            self.chosen[i].next =
                self.change.valid.val() & (self.change.data.val().row == i.to_bits());
            if self.chosen[i].val() {
                self.holds[i].d.next = self.change.data.val().holds;
            }
            if self.chosen[i].val() & self.change.data.val().holds {
                self.row[i].d.next = Row {
                    endpoint: self.change.data.val().rule.endpoint,
                    context: self.change.data.val().rule.context,
                    match_bits: self.change.data.val().rule.match_bits,
                    mask: self.change.data.val().rule.mask,
                    pairs_low: self.change.data.val().rule.pairs_low & self.all_low.val(),
                    pairs_high: self.change.data.val().rule.pairs_high & self.all_high.val(),
                };
            }
        }
        if self.look.valid.val() {
            self.hit.d.next = self.hits.val();
        }
    }
}
