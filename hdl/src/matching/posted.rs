//! The list of posted receives.
//!
//! An entry holds what its receive matches: endpoint, source or any source, context, match bits and
//! the bits of them to ignore, and the handle by which a cancel names it. All entries compare
//! themselves with the key at once; [`Order`] picks the oldest that agrees.
//!
//! ```text
//!   key ──┬────────► PostedEntry 0 ─ hit ─┐
//!         ├────────► PostedEntry 1 ─ hit ─┼─► Order ─► found, index
//!         ┆                               ┆     │
//!         └────────► PostedEntry n ─ hit ─┘     └─► place (which entry loads the key)
//! ```

use super::Mutation;
use super::order::Order;
use crate::prelude::*;

/// What a search of the posted receives compares.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum PostedSearch {
    /// Receives that an envelope matches.
    Envelope,
    /// The endpoint's receive with this handle.
    Request,
    /// Receives that name this source, and no other would do.
    Pair,
    /// All of the endpoint.
    Endpoint,
}

/// One posted receive.
#[derive(LogicBlock, Default)]
pub struct PostedEntry {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset.
    pub reset: Signal<In, Bit>,
    /// Take the key.
    pub load: Signal<In, Bit>,
    /// Compare with the key; `hit` says the result from the next cycle on.
    pub search: Signal<In, Bit>,
    /// What to compare.
    pub by: Signal<In, PostedSearch>,
    /// Key: endpoint.
    pub endpoint: Signal<In, Bits<8>>,
    /// Key: source.
    pub pair: Signal<In, Bits<16>>,
    /// Key, loaded only: any source matches.
    pub any_source: Signal<In, Bit>,
    /// Key: context.
    pub context_id: Signal<In, Bits<16>>,
    /// Key: match bits.
    pub match_bits: Signal<In, Bits<64>>,
    /// Key, loaded only: match bits that needn't agree.
    pub ignore_bits: Signal<In, Bits<64>>,
    /// Key: handle of the receive.
    pub request: Signal<In, Bits<32>>,
    /// The last search agreed with what is held here.
    pub hit: Signal<Out, Bit>,
    held_endpoint: Reg<Bits<8>>,
    held_pair: Reg<Bits<16>>,
    held_any_source: Reg<Bit>,
    held_context: Reg<Bits<16>>,
    held_match_bits: Reg<Bits<64>>,
    held_ignore_bits: Reg<Bits<64>>,
    held_request: Reg<Bits<32>>,
    agrees: Reg<Bit>,
}

#[module]
impl Logic for PostedEntry {
    #[hdl_gen]
    fn update(&mut self) {
        registers!(
            self,
            clock,
            reset,
            held_endpoint,
            held_pair,
            held_any_source,
            held_context,
            held_match_bits,
            held_ignore_bits,
            held_request,
            agrees
        );
        if self.load.val() {
            self.held_endpoint.d.next = self.endpoint.val();
            self.held_pair.d.next = self.pair.val();
            self.held_any_source.d.next = self.any_source.val();
            self.held_context.d.next = self.context_id.val();
            self.held_match_bits.d.next = self.match_bits.val();
            self.held_ignore_bits.d.next = self.ignore_bits.val();
            self.held_request.d.next = self.request.val();
        }
        if self.search.val() {
            match self.by.val() {
                PostedSearch::Envelope => {
                    self.agrees.d.next = (self.held_endpoint.q.val() == self.endpoint.val())
                        & (self.held_any_source.q.val()
                            | (self.held_pair.q.val() == self.pair.val()))
                        & (self.held_context.q.val() == self.context_id.val())
                        & (((self.held_match_bits.q.val() ^ self.match_bits.val())
                            & !self.held_ignore_bits.q.val())
                            == 0);
                }
                PostedSearch::Request => {
                    self.agrees.d.next = (self.held_endpoint.q.val() == self.endpoint.val())
                        & (self.held_request.q.val() == self.request.val());
                }
                PostedSearch::Pair => {
                    self.agrees.d.next =
                        !self.held_any_source.q.val() & (self.held_pair.q.val() == self.pair.val());
                }
                PostedSearch::Endpoint => {
                    self.agrees.d.next = self.held_endpoint.q.val() == self.endpoint.val();
                }
            }
        }
        self.hit.next = self.agrees.q.val();
    }
}

/// The posted receives of a card. Steps of an operation, each in a cycle of its own: `search`,
/// `select`, then `remove` or `insert`.
#[derive(LogicBlock)]
pub struct Posted {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset: the list is empty.
    pub reset: Signal<In, Bit>,
    /// Contract to break, for tests; see [`Mutation`].
    pub mutation: Signal<In, Bits<8>>,
    /// Compare all entries with the key.
    pub search: Signal<In, Bit>,
    /// Choose the oldest that agreed.
    pub select: Signal<In, Bit>,
    /// Remove the chosen one.
    pub remove: Signal<In, Bit>,
    /// The removal is that of a cancel.
    pub cancel: Signal<In, Bit>,
    /// Append the key.
    pub insert: Signal<In, Bit>,
    /// What `search` compares.
    pub by: Signal<In, PostedSearch>,
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
    /// Key: handle of the receive.
    pub request: Signal<In, Bits<32>>,
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
    entry: Vec<PostedEntry>,
    order: Order,
    hits: Signal<Local, Bits<64>>,
    /// Places whose last entry was cancelled.
    cancelled: Reg<Bits<64>>,
    lose_cancels: Constant<Bits<8>>,
    cancelled_is_never_matched: Check,
    _n: usize,
}

impl Posted {
    /// A list of at most `entries` receives.
    pub fn new(entries: usize) -> Self {
        Self {
            clock: Signal::default(),
            reset: Signal::default(),
            mutation: Signal::default(),
            search: Signal::default(),
            select: Signal::default(),
            remove: Signal::default(),
            cancel: Signal::default(),
            insert: Signal::default(),
            by: Signal::default(),
            endpoint: Signal::default(),
            pair: Signal::default(),
            any_source: Signal::default(),
            context_id: Signal::default(),
            match_bits: Signal::default(),
            ignore_bits: Signal::default(),
            request: Signal::default(),
            found: Signal::default(),
            index: Signal::default(),
            place_index: Signal::default(),
            full: Signal::default(),
            depth: Signal::default(),
            entry: (0..entries).map(|_| PostedEntry::default()).collect(),
            order: Order::new(entries),
            hits: Signal::default(),
            cancelled: Reg::default(),
            lose_cancels: Mutation::LoseCancels.constant(),
            cancelled_is_never_matched: Check::new("cancelled_is_never_matched"),
            _n: entries,
        }
    }
}

#[module(entries = self._n)]
impl Logic for Posted {
    #[hdl_gen]
    fn update(&mut self) {
        registers!(self, clock, reset, cancelled);
        clocked!(
            self,
            clock,
            reset,
            order,
            entry[0..self._n],
            cancelled_is_never_matched
        );
        self.hits.next = 0.into();
        for i in 0..self._n {
            self.entry[i].load.next = self.insert.val() & self.order.place.val().get_bit(i);
            self.entry[i].search.next = self.search.val();
            self.entry[i].by.next = self.by.val();
            self.entry[i].endpoint.next = self.endpoint.val();
            self.entry[i].pair.next = self.pair.val();
            self.entry[i].any_source.next = self.any_source.val();
            self.entry[i].context_id.next = self.context_id.val();
            self.entry[i].match_bits.next = self.match_bits.val();
            self.entry[i].ignore_bits.next = self.ignore_bits.val();
            self.entry[i].request.next = self.request.val();
            self.hits.next = self.hits.val().replace_bit(i, self.entry[i].hit.val());
        }
        self.order.mutation.next = self.mutation.val();
        self.order.hits.next = self.hits.val();
        self.order.select.next = self.select.val();
        self.order.insert.next = self.insert.val();
        self.order.remove.next = self.remove.val();
        self.order.keep.next = 0.into();
        if (self.mutation.val() == self.lose_cancels.val()) & self.cancel.val() {
            self.order.remove.next = false;
        }
        self.found.next = self.order.found.val();
        self.index.next = self.order.index.val();
        self.place_index.next = self.order.place_index.val();
        self.full.next = self.order.full.val();
        self.depth.next = self.order.depth.val();

        if self.remove.val() & self.cancel.val() {
            self.cancelled.d.next = self.cancelled.q.val() | self.order.chosen.val();
        }
        if self.insert.val() {
            self.cancelled.d.next = self.cancelled.q.val() & !self.order.place.val();
        }
        self.cancelled_is_never_matched.ok.next =
            !self.remove.val() | !(self.cancelled.q.val() & self.order.chosen.val()).any();
    }
}
