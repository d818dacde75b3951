//! The posted receives that no class fits: few, and each with a mask of its own.
//!
//! An entry holds what its receive matches: endpoint, source or any source, context, match bits and the
//! bits of them to ignore, and the handle by which a cancel names it. All entries compare themselves with
//! the key at once; [`Order`] picks the oldest that agrees.
//!
//! ```text
//!   cycle    t        t+1        t+2                     t+3        t+4             t+5       t+6
//!          search   compare      join                  choose     found, multi    index     age_out
//!   key ─► register ──┬──► AssociativeEntry 0 ─ hit ─┐              │
//!                     ├──► AssociativeEntry 1 ─ hit ─┼──► Order ──► choice ──────► number ──► ages ──► age_out
//!                     ┆                              ┆     │          │                     (memory)
//!                     └──► AssociativeEntry n ─ hit ─┘  ▲  └► place   └─ take ─┐
//!                                                       └──────────────────────┘ what leaves isn't
//!                                                                                chosen again
//! ```
//!
//! A search may come in every cycle, so a message a cycle runs through. It sees what was inserted in an earlier cycle. Its
//! *choice*, the oldest entry that agrees, stands from four cycles after the search until the choice of the next search.
//! With `take` the chosen entry leaves as soon as it is found, unless it is `multi`, and the next search doesn't find it;
//! otherwise `remove` takes it out later, while no search is choosing. Whatever a search compares, the entry that it finds is
//! of the endpoint that it names, so the owner of a removed entry is known. A search can be dropped a cycle after it came: then
//! the choice before it stands on.
//!
//! An `insert` shows in `waiting` in the next cycle, and in `room` and `depth` in the one after that, as a removal does. An
//! `insert` may not come in the two cycles after another insert, in which the vacant place isn't known
//! (`fills_a_vacant_place`).
//!
//! The kernel's sections: `keys` has what goes to the entries, `choose` the choice among them, `counts` the quotas,
//! `checks` the claims.

mod checks;
mod choose;
mod counts;
mod entry;
mod keys;

pub use entry::AssociativeEntry;

use super::invariants::Invariants;
use super::order::{MAX_ENTRIES, Order};
use super::quota::Quota;
use crate::prelude::*;
use crate::prim::{Duty, Ram};

/// What a search of the posted receives compares.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum AssociativeSearch {
    /// Receives that an envelope matches.
    Envelope,
    /// The endpoint's receive with this handle.
    Request,
    /// The endpoint's receives that name this source; those from any source don't count.
    Pair,
    /// All of the endpoint.
    Endpoint,
}

/// The posted receives that are compared with every message.
#[block(entries: usize, endpoints: usize, pairs: usize, reserved_each: usize)]
pub struct Associative {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset: there are no receives.
    pub reset: Signal<In, Bit>,
    /// Compare all entries with the key.
    pub search: Signal<In, Bit>,
    /// With `search`: what it finds is removed when it is found, unless it is `multi`.
    pub take: Signal<In, Bit>,
    /// The search of the previous cycle, if there was one, finds and takes nothing, and the choice before it stands on.
    pub drop: Signal<In, Bit>,
    /// Remove the chosen entry, if there is one. At most once for a choice, and not three cycles after a search.
    pub remove: Signal<In, Bit>,
    /// With `remove`: unless it is `multi`.
    pub spare_multi: Signal<In, Bit>,
    /// With `remove`: a cancel removes it. Not with `spare_multi`.
    pub cancel: Signal<In, Bit>,
    /// Append the key. Only with `room`.
    pub insert: Signal<In, Bit>,
    /// What `search` compares.
    pub by: Signal<In, AssociativeSearch>,
    /// Key of a search: endpoint.
    pub endpoint: Signal<In, Bits<8>>,
    /// Key of an insert: endpoint. `room` is about this one, and needs nothing else of the key.
    pub insert_endpoint: Signal<In, Bits<8>>,
    /// Key: source.
    pub pair: Signal<In, Bits<16>>,
    /// Key of an insert: any source matches.
    pub any_source: Signal<In, Bit>,
    /// Key: context.
    pub context_id: Signal<In, Bits<16>>,
    /// Key: match bits.
    pub match_bits: Signal<In, Bits<64>>,
    /// Key of an insert: match bits that needn't agree.
    pub ignore_bits: Signal<In, Bits<64>>,
    /// Key: handle of the receive.
    pub request: Signal<In, Bits<32>>,
    /// Key of an insert: larger than that of every insert before.
    pub age: Signal<In, Bits<54>>,
    /// Key of an insert: the receive stays when a message has matched.
    pub multi: Signal<In, Bit>,
    /// The last search but those of the last three cycles has found an entry.
    pub found: Signal<Out, Bit>,
    /// Place of the entry found, a cycle after `found`.
    pub index: Signal<Out, Bits<16>>,
    /// Place of the entry found, one bit set.
    pub chosen: Signal<Out, Bits<64>>,
    /// The entry found was inserted as `multi`.
    pub chosen_multi: Signal<Out, Bit>,
    /// Age of the entry found, two cycles after `found`.
    pub age_out: Signal<Out, Bits<54>>,
    /// Where `insert` puts the key.
    pub place_index: Signal<Out, Bits<16>>,
    /// There is a place for a receive of `insert_endpoint`, as far as quotas go. Not known in the cycle after an insert.
    pub room: Signal<Out, Bit>,
    /// Bit `e`: endpoint `e` has entries.
    pub waiting: Signal<Out, Bits<32>>,
    /// Entries, and one more in the cycle after a removal, and one less in the cycle after an insert.
    pub depth: Signal<Out, Bits<16>>,
    #[each(entries)]
    entry: Vec<AssociativeEntry>,
    #[is(Order::new(entries))]
    order: Order,
    #[is(Quota::new(endpoints, entries, reserved_each))]
    quota: Quota,
    /// By place.
    #[is(Ram::distributed(entries.max(2)))]
    ages: Ram<Bits<54>>,
    // The key of a search, and the receive that is to be appended: in registers of their own, since each goes to all entries.
    comparing: Reg<Bit>,
    by_envelope: Reg<Bit>,
    by_request: Reg<Bit>,
    by_pair: Reg<Bit>,
    key_endpoint: Reg<Bits<8>>,
    key_pair: Reg<Bits<16>>,
    key_context: Reg<Bits<16>>,
    key_match_bits: Reg<Bits<64>>,
    key_request: Reg<Bits<32>>,
    inserting: Reg<Bit>,
    new_endpoint: Reg<Bits<8>>,
    /// The bit of that.
    new_bit: Reg<Bits<32>>,
    new_pair: Reg<Bits<16>>,
    new_any_source: Reg<Bit>,
    new_context: Reg<Bits<16>>,
    new_match_bits: Reg<Bits<64>>,
    new_ignore_bits: Reg<Bits<64>>,
    new_request: Reg<Bits<32>>,
    new_age: Reg<Bits<54>>,
    new_multi: Reg<Bit>,
    new_place: Reg<Bits<16>>,
    /// What agreed in the cycle before is joined.
    joining: Reg<Bit>,
    /// The oldest is chosen of what was joined in the cycle before.
    choosing: Reg<Bit>,
    // `take` of the search that compares, of the one that joins, of the one that chooses, and of the one that has found.
    comparing_to_take: Reg<Bit>,
    joining_to_take: Reg<Bit>,
    choosing_to_take: Reg<Bit>,
    takes: Reg<Bit>,
    own_endpoint: Signal<Local, Bits<8>>,
    own_pair: Signal<Local, Bits<16>>,
    /// The endpoint or the source of the key doesn't exist.
    unknown: Signal<Local, Bit>,
    unknown_pair: Signal<Local, Bit>,
    // Of the key of a search.
    key_endpoint_unknown: Reg<Bit>,
    key_pair_unknown: Reg<Bit>,
    // The endpoint of the search that joins, of the one that chooses, of the choice, and of the entry that was removed.
    joined_endpoint: Reg<Bits<8>>,
    searched_endpoint: Reg<Bits<8>>,
    chosen_endpoint: Reg<Bits<8>>,
    /// For a proof only.
    gone_endpoint: Reg<Bits<8>>,
    gone_bit: Reg<Bits<32>>,
    hits: Signal<Local, Bits<64>>,
    multis: Reg<Bits<64>>,
    is_multi: Signal<Local, Bit>,
    staying: Signal<Local, Bits<64>>,
    spared: Signal<Local, Bits<64>>,
    /// The entry chosen in the cycle before was removed.
    gone: Reg<Bit>,
    /// Places whose last entry was cancelled.
    cancelled: Reg<Bits<64>>,
    cancelled_or_new: Signal<Local, Bits<64>>,
    // The hits that the choice was made from, and the same two cycles later, when the age of the choice is known.
    considered: Reg<Bits<64>>,
    considered_before: Reg<Bits<64>>,
    judged: Reg<Bits<64>>,
    // What was chosen in the previous cycle, and in the one before that, whose age the memory was asked for a cycle ago.
    asked: Reg<Bits<64>>,
    recalled: Reg<Bits<64>>,
    alive: Signal<Local, Bits<64>>,
    live_count: Signal<Local, Bits<16>>,
    /// The chosen entry has been removed.
    departed: Reg<Bit>,
    /// An entry was filled in the cycle before.
    inserted: Reg<Bit>,
    removes: Signal<Local, Bit>,
    departs: Signal<Local, Bit>,
    last_age: Reg<Bits<54>>,
    any_age: Reg<Bit>,
    #[is(constant(bits_of(endpoints)))]
    endpoint_bits: Constant<Bits<8>>,
    #[is(constant(bits_of(pairs)))]
    pair_bits: Constant<Bits<16>>,
    #[is(constant(u64::MAX >> (MAX_ENTRIES - entries)))]
    places: Constant<Bits<64>>,
    #[is(constant(entries as u64))]
    capacity: Constant<Bits<16>>,
    count_is_of_live_entries: Check,
    cancelled_is_never_matched: Check,
    ages_grow: Duty,
    removes_once: Duty,
    inserts_with_room_and_after_a_rest: Duty,
    inserts_of_a_known_pair: Duty,
    #[is(vec![])]
    invariants: Vec<Invariants>,
    #[is(entries)]
    _n: usize,
    #[is(0)]
    _proofs: usize,
    #[is(0)]
    _proved: usize,
    #[is(endpoints)]
    _endpoints: usize,
}

/// The bits in which numbers below `count` differ.
fn bits_of(count: usize) -> u64 {
    count.next_power_of_two() as u64 - 1
}

impl Associative {
    /// At most `entries` receives of `endpoints`, with `reserved_each` for each of them, from `pairs` sources.
    ///
    /// # Panics
    /// If there are no entries or more than [`MAX_ENTRIES`], if pairs aren't 1 to 65536, or as [`Quota::new`] does.
    pub fn new(entries: usize, endpoints: usize, pairs: usize, reserved_each: usize) -> Self {
        assert!((1..=MAX_ENTRIES).contains(&entries), "{entries} entries");
        assert!((1..=1 << 16).contains(&pairs), "{pairs} pairs");
        Self::build(entries, endpoints, pairs, reserved_each)
    }

    /// The same with the checks that a proof by induction needs, which are too many for a card.
    pub fn with_invariants(self) -> Self {
        Self {
            invariants: vec![Invariants::new(self._n, self._endpoints)],
            order: self.order.with_rows(),
            _proofs: 1,
            _proved: self._n,
            ..self
        }
    }
}

#[block(entries = self._n)]
impl Logic for Associative {
    fn update(&mut self) {
        self.compare();
        self.choose();
        self.count();
        self.check();
        self.prove();
    }
}
