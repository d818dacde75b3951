//! The list of unexpected messages: those that arrived before their receive.
//!
//! The mirror image of the posted receives: here the entries are plain, and the key has the
//! wildcards. All entries compare themselves with the key at once; [`Order`] picks the earliest
//! arrival that agrees.
//!
//! ```text
//!   key, ──┬───────► UnexpectedEntry 0 ─ hit ─┐
//!   its    ├───────► UnexpectedEntry 1 ─ hit ─┼─► Order ─► found, index
//!   masks  ┆                                  ┆     │
//!          └───────► UnexpectedEntry n ─ hit ─┘     └─► place (which entry loads the key)
//! ```

use super::Mutation;
use super::order::Order;
use crate::prelude::*;

/// One unexpected message.
#[derive(LogicBlock, Default)]
pub struct UnexpectedEntry {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset.
    pub reset: Signal<In, Bit>,
    /// Take the key.
    pub load: Signal<In, Bit>,
    /// Compare with the key; `hit` says the result from the next cycle on.
    pub search: Signal<In, Bit>,
    /// Compare nothing but the pair.
    pub by_pair: Signal<In, Bit>,
    /// Key: endpoint.
    pub endpoint: Signal<In, Bits<8>>,
    /// Key: source.
    pub pair: Signal<In, Bits<16>>,
    /// Key: any source matches.
    pub any_source: Signal<In, Bit>,
    /// Key: context.
    pub context_id: Signal<In, Bits<16>>,
    /// Key: match bits.
    pub match_bits: Signal<In, Bits<64>>,
    /// Key: match bits that have to agree.
    pub care_bits: Signal<In, Bits<64>>,
    /// The last search agreed with what is held here.
    pub hit: Signal<Out, Bit>,
    held_endpoint: Reg<Bits<8>>,
    held_pair: Reg<Bits<16>>,
    held_context: Reg<Bits<16>>,
    held_match_bits: Reg<Bits<64>>,
    agrees: Reg<Bit>,
}

#[module]
impl Logic for UnexpectedEntry {
    #[hdl_gen]
    fn update(&mut self) {
        registers!(
            self,
            clock,
            reset,
            held_endpoint,
            held_pair,
            held_context,
            held_match_bits,
            agrees
        );
        if self.load.val() {
            self.held_endpoint.d.next = self.endpoint.val();
            self.held_pair.d.next = self.pair.val();
            self.held_context.d.next = self.context_id.val();
            self.held_match_bits.d.next = self.match_bits.val();
        }
        if self.search.val() {
            if self.by_pair.val() {
                self.agrees.d.next = self.held_pair.q.val() == self.pair.val();
            } else {
                self.agrees.d.next = (self.held_endpoint.q.val() == self.endpoint.val())
                    & (self.any_source.val() | (self.held_pair.q.val() == self.pair.val()))
                    & (self.held_context.q.val() == self.context_id.val())
                    & (((self.held_match_bits.q.val() ^ self.match_bits.val())
                        & self.care_bits.val())
                        == 0);
            }
        }
        self.hit.next = self.agrees.q.val();
    }
}

/// The unexpected messages of a card. Steps of an operation, each in a cycle of its own: `search`,
/// `select`, then `remove` or `insert`.
#[derive(LogicBlock)]
pub struct Unexpected {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset: the list is empty.
    pub reset: Signal<In, Bit>,
    /// Contract to break, for tests; see [`Mutation`].
    pub mutation: Signal<In, Bits<8>>,
    /// Compare all entries with the key.
    pub search: Signal<In, Bit>,
    /// Choose the earliest that agreed.
    pub select: Signal<In, Bit>,
    /// Remove the chosen one.
    pub remove: Signal<In, Bit>,
    /// Append the key.
    pub insert: Signal<In, Bit>,
    /// `search` compares nothing but the pair.
    pub by_pair: Signal<In, Bit>,
    /// Key: endpoint.
    pub endpoint: Signal<In, Bits<8>>,
    /// Key: source.
    pub pair: Signal<In, Bits<16>>,
    /// Key: any source matches.
    pub any_source: Signal<In, Bit>,
    /// Key: context.
    pub context_id: Signal<In, Bits<16>>,
    /// Key: match bits.
    pub match_bits: Signal<In, Bits<64>>,
    /// Key: match bits that needn't agree.
    pub ignore_bits: Signal<In, Bits<64>>,
    /// An entry was chosen.
    pub found: Signal<Out, Bit>,
    /// Its place.
    pub index: Signal<Out, Bits<16>>,
    /// Where `insert` puts the key.
    pub place_index: Signal<Out, Bits<16>>,
    /// No room.
    pub full: Signal<Out, Bit>,
    /// Live entries.
    pub depth: Signal<Out, Bits<16>>,
    entry: Vec<UnexpectedEntry>,
    order: Order,
    hits: Signal<Local, Bits<64>>,
    care_bits: Signal<Local, Bits<64>>,
    narrow_wildcards: Constant<Bits<8>>,
    _n: usize,
}

impl Unexpected {
    /// A list of at most `entries` messages.
    pub fn new(entries: usize) -> Self {
        Self {
            clock: Signal::default(),
            reset: Signal::default(),
            mutation: Signal::default(),
            search: Signal::default(),
            select: Signal::default(),
            remove: Signal::default(),
            insert: Signal::default(),
            by_pair: Signal::default(),
            endpoint: Signal::default(),
            pair: Signal::default(),
            any_source: Signal::default(),
            context_id: Signal::default(),
            match_bits: Signal::default(),
            ignore_bits: Signal::default(),
            found: Signal::default(),
            index: Signal::default(),
            place_index: Signal::default(),
            full: Signal::default(),
            depth: Signal::default(),
            entry: (0..entries).map(|_| UnexpectedEntry::default()).collect(),
            order: Order::new(entries),
            hits: Signal::default(),
            care_bits: Signal::default(),
            narrow_wildcards: Mutation::NarrowWildcards.constant(),
            _n: entries,
        }
    }
}

#[module(entries = self._n)]
impl Logic for Unexpected {
    #[hdl_gen]
    fn update(&mut self) {
        clocked!(self, clock, reset, order, entry[0..self._n]);
        self.care_bits.next = !self.ignore_bits.val();
        if self.mutation.val() == self.narrow_wildcards.val() {
            self.care_bits.next = !self.ignore_bits.val() | 1;
        }
        self.hits.next = 0.into();
        for i in 0..self._n {
            self.entry[i].load.next = self.insert.val() & self.order.place.val().get_bit(i);
            self.entry[i].search.next = self.search.val();
            self.entry[i].by_pair.next = self.by_pair.val();
            self.entry[i].endpoint.next = self.endpoint.val();
            self.entry[i].pair.next = self.pair.val();
            self.entry[i].any_source.next = self.any_source.val();
            self.entry[i].context_id.next = self.context_id.val();
            self.entry[i].match_bits.next = self.match_bits.val();
            self.entry[i].care_bits.next = self.care_bits.val();
            self.hits.next = self.hits.val().replace_bit(i, self.entry[i].hit.val());
        }
        self.order.mutation.next = self.mutation.val();
        self.order.hits.next = self.hits.val();
        self.order.select.next = self.select.val();
        self.order.insert.next = self.insert.val();
        self.order.remove.next = self.remove.val();
        self.order.keep.next = 0.into();
        self.found.next = self.order.found.val();
        self.index.next = self.order.index.val();
        self.place_index.next = self.order.place_index.val();
        self.full.next = self.order.full.val();
        self.depth.next = self.order.depth.val();
    }
}
