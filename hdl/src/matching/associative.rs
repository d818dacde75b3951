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

/// One posted receive. It compares in four parts, which are joined a cycle later, so that no path is long.
#[block]
pub struct AssociativeEntry {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset.
    pub reset: Signal<In, Bit>,
    /// Take the new receive.
    pub load: Signal<In, Bit>,
    /// This place holds a live receive.
    pub present: Signal<In, Bit>,
    /// This place holds a live receive that isn't being removed.
    pub remains: Signal<In, Bit>,
    /// Compare source, context and match bits; the handle; the source that is named.
    pub by_envelope: Signal<In, Bit>,
    /// See `by_envelope`.
    pub by_request: Signal<In, Bit>,
    /// See `by_envelope`.
    pub by_pair: Signal<In, Bit>,
    /// The endpoint or source that the key names doesn't exist: no entry agrees.
    pub unknown: Signal<In, Bit>,
    /// Key: endpoint.
    pub endpoint: Signal<In, Bits<8>>,
    /// Key: source.
    pub pair: Signal<In, Bits<16>>,
    /// Key: context.
    pub context_id: Signal<In, Bits<16>>,
    /// Key: match bits.
    pub match_bits: Signal<In, Bits<64>>,
    /// Key: handle of the receive.
    pub request: Signal<In, Bits<32>>,
    /// New receive: endpoint.
    pub new_endpoint: Signal<In, Bits<8>>,
    /// New receive: source.
    pub new_pair: Signal<In, Bits<16>>,
    /// New receive: any source matches.
    pub new_any_source: Signal<In, Bit>,
    /// New receive: context.
    pub new_context: Signal<In, Bits<16>>,
    /// New receive: match bits.
    pub new_match_bits: Signal<In, Bits<64>>,
    /// New receive: match bits that needn't agree.
    pub new_ignore_bits: Signal<In, Bits<64>>,
    /// New receive: handle.
    pub new_request: Signal<In, Bits<32>>,
    /// New receive: age.
    pub new_age: Signal<In, Bits<54>>,
    /// The key of two cycles before agreed with what was held here, and it stayed.
    pub hit: Signal<Out, Bit>,
    /// The age held.
    pub held_age_out: Signal<Out, Bits<54>>,
    /// The endpoint held.
    pub held_endpoint_out: Signal<Out, Bits<8>>,
    /// For the checks: this entry could have been chosen, and `chosen_age` is that of the one that was.
    pub judged: Signal<In, Bit>,
    /// For the checks: `chosen_age` is of this entry.
    pub recalled: Signal<In, Bit>,
    /// Age that the memory has of the chosen entry.
    pub chosen_age: Signal<In, Bits<54>>,
    /// For the checks: this entry is chosen, by a search that named `chosen_endpoint`.
    pub chosen: Signal<In, Bit>,
    /// See `chosen`.
    pub chosen_endpoint: Signal<In, Bits<8>>,
    /// For the checks: the endpoint that the key of two cycles before named.
    pub searched_endpoint: Signal<In, Bits<8>>,
    held_endpoint: Reg<Bits<8>>,
    held_pair: Reg<Bits<16>>,
    held_any_source: Reg<Bit>,
    held_context: Reg<Bits<16>>,
    held_match_bits: Reg<Bits<64>>,
    held_ignore_bits: Reg<Bits<64>>,
    held_request: Reg<Bits<32>>,
    held_age: Reg<Bits<54>>,
    // Which parts agreed: the lower match bits; the upper ones; context and handle; all else, if the entry is live.
    lower_agrees: Reg<Bit>,
    upper_agrees: Reg<Bit>,
    named_agrees: Reg<Bit>,
    rest_agrees: Reg<Bit>,
    /// All parts agreed, and the entry stays.
    agrees: Reg<Bit>,
    from_its_source: Signal<Local, Bit>,
    of_source: Signal<Local, Bit>,
    pair_agrees: Signal<Local, Bit>,
    context_agrees: Signal<Local, Bit>,
    same_handle: Signal<Local, Bit>,
    differing: Signal<Local, Bits<64>>,
    oldest_was_chosen: Check,
    memory_agrees: Check,
    found_of_its_endpoint: Check,
}

#[block]
impl Logic for AssociativeEntry {
    fn update(&mut self) {
        self.pair_agrees.next = self.held_pair.q.val() == self.pair.val();
        self.from_its_source.next = self.held_any_source.q.val() | self.pair_agrees.val();
        self.differing.next =
            (self.held_match_bits.q.val() ^ self.match_bits.val()) & !self.held_ignore_bits.q.val();
        self.context_agrees.next = self.held_context.q.val() == self.context_id.val();
        self.same_handle.next = self.held_request.q.val() == self.request.val();
        // Written flat, so that it is mapped to few levels.
        self.of_source.next = (!self.by_envelope.val() & !self.by_pair.val())
            | (self.by_envelope.val() & self.from_its_source.val())
            | (self.by_pair.val() & self.pair_agrees.val() & !self.held_any_source.q.val());
        self.lower_agrees.d.next =
            !self.differing.val().get_bits::<32>(0).any() | !self.by_envelope.val();
        self.upper_agrees.d.next =
            !self.differing.val().get_bits::<32>(32).any() | !self.by_envelope.val();
        self.named_agrees.d.next = (self.context_agrees.val() | !self.by_envelope.val())
            & (self.same_handle.val() | !self.by_request.val());
        self.rest_agrees.d.next = (self.held_endpoint.q.val() == self.endpoint.val())
            & self.of_source.val()
            & self.present.val()
            & !self.unknown.val();
        self.agrees.d.next = self.lower_agrees.q.val()
            & self.upper_agrees.q.val()
            & self.named_agrees.q.val()
            & self.rest_agrees.q.val()
            & self.remains.val();
        if self.load.val() {
            self.held_endpoint.d.next = self.new_endpoint.val();
            self.held_pair.d.next = self.new_pair.val();
            self.held_any_source.d.next = self.new_any_source.val();
            self.held_context.d.next = self.new_context.val();
            self.held_match_bits.d.next = self.new_match_bits.val();
            self.held_ignore_bits.d.next = self.new_ignore_bits.val();
            self.held_request.d.next = self.new_request.val();
            self.held_age.d.next = self.new_age.val();
        }
        self.hit.next = self.agrees.q.val();
        self.held_age_out.next = self.held_age.q.val();
        self.held_endpoint_out.next = self.held_endpoint.q.val();
        self.memory_agrees.ok.next =
            !self.recalled.val() | (self.chosen_age.val() == self.held_age.q.val());
        self.found_of_its_endpoint.ok.next = (!self.chosen.val()
            | (self.chosen_endpoint.val() == self.held_endpoint.q.val()))
            & (!self.agrees.q.val() | (self.searched_endpoint.val() == self.held_endpoint.q.val()));
        self.oldest_was_chosen.ok.next =
            !self.judged.val() | (self.chosen_age.val() <= self.held_age.q.val());
    }
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
        // Bits that no endpoint and no source has aren't held.
        self.own_endpoint.next = self.insert_endpoint.val() & self.endpoint_bits.val();
        self.own_pair.next = self.pair.val() & self.pair_bits.val();
        self.unknown_pair.next = (self.pair.val() & !self.pair_bits.val()).any();
        self.key_endpoint_unknown.d.next = (self.endpoint.val() & !self.endpoint_bits.val()).any();
        self.key_pair_unknown.d.next = self.unknown_pair.val();
        self.unknown.next = self.key_endpoint_unknown.q.val()
            | ((self.by_envelope.q.val() | self.by_pair.q.val()) & self.key_pair_unknown.q.val());
        // Only registers drive what goes to all entries.
        self.comparing.d.next = self.search.val();
        self.comparing_to_take.d.next = self.take.val();
        self.by_envelope.d.next = self.by.val() == AssociativeSearch::Envelope;
        self.by_request.d.next = self.by.val() == AssociativeSearch::Request;
        self.by_pair.d.next = self.by.val() == AssociativeSearch::Pair;
        self.key_endpoint.d.next = self.endpoint.val();
        self.key_pair.d.next = self.pair.val();
        self.key_context.d.next = self.context_id.val();
        self.key_match_bits.d.next = self.match_bits.val();
        self.key_request.d.next = self.request.val();
        self.inserting.d.next = self.insert.val();
        if self.insert.val() {
            self.new_endpoint.d.next = self.own_endpoint.val();
            self.new_bit.d.next = bits::<32>(1) << self.own_endpoint.val();
            self.new_pair.d.next = self.own_pair.val();
            self.new_any_source.d.next = self.any_source.val();
            self.new_context.d.next = self.context_id.val();
            self.new_match_bits.d.next = self.match_bits.val();
            self.new_ignore_bits.d.next = self.ignore_bits.val();
            self.new_request.d.next = self.request.val();
            self.new_age.d.next = self.age.val();
            self.new_multi.d.next = self.multi.val();
            self.new_place.d.next = self.order.place_index.val();
        }
        self.joining.d.next = self.comparing.q.val() & !self.drop.val();
        self.joining_to_take.d.next = self.comparing_to_take.q.val();
        self.choosing.d.next = self.joining.q.val();
        self.choosing_to_take.d.next = self.joining_to_take.q.val();
        self.takes.d.next = self.choosing.q.val() & self.choosing_to_take.q.val();
        self.alive.next = self.order.chosen.val() & self.order.living.val();
        self.hits.next = 0.into();
        for i in 0..self._n {
            self.entry[i].load.next = self.order.filling.val().get_bit(i);
            self.entry[i].present.next = self.order.present.val().get_bit(i);
            self.entry[i].remains.next = self.order.remaining.val().get_bit(i);
            self.entry[i].by_envelope.next = self.by_envelope.q.val();
            self.entry[i].by_request.next = self.by_request.q.val();
            self.entry[i].by_pair.next = self.by_pair.q.val();
            self.entry[i].unknown.next = self.unknown.val();
            self.entry[i].endpoint.next = self.key_endpoint.q.val() & self.endpoint_bits.val();
            self.entry[i].pair.next = self.key_pair.q.val() & self.pair_bits.val();
            self.entry[i].context_id.next = self.key_context.q.val();
            self.entry[i].match_bits.next = self.key_match_bits.q.val();
            self.entry[i].request.next = self.key_request.q.val();
            self.entry[i].new_endpoint.next = self.new_endpoint.q.val();
            self.entry[i].new_pair.next = self.new_pair.q.val();
            self.entry[i].new_any_source.next = self.new_any_source.q.val();
            self.entry[i].new_context.next = self.new_context.q.val();
            self.entry[i].new_match_bits.next = self.new_match_bits.q.val();
            self.entry[i].new_ignore_bits.next = self.new_ignore_bits.q.val();
            self.entry[i].new_request.next = self.new_request.q.val();
            self.entry[i].new_age.next = self.new_age.q.val();
            self.entry[i].judged.next = self.judged.q.val().get_bit(i);
            self.entry[i].recalled.next = self.recalled.q.val().get_bit(i);
            self.entry[i].chosen_age.next = self.ages.read_data.val();
            self.entry[i].chosen.next = self.alive.val().get_bit(i) & !self.departed.q.val();
            self.entry[i].searched_endpoint.next = self.searched_endpoint.q.val();
            self.entry[i].chosen_endpoint.next = self.chosen_endpoint.q.val();
            self.hits.next = self.hits.val().replace_bit(i, self.entry[i].hit.val());
        }

        self.staying.next = self.multis.q.val();
        self.spared.next = 0.into();
        if self.spare_multi.val() {
            self.spared.next = self.staying.val();
        }
        self.order.hits.next = self.hits.val();
        self.order.select.next = self.choosing.q.val();
        self.order.take.next = self.choosing_to_take.q.val();
        self.order.spare.next = self.staying.val();
        self.order.insert.next = self.insert.val();
        self.order.remove.next = self.remove.val();
        self.order.keep.next = self.spared.val();
        self.multis.d.next = self.multis.q.val() & !self.order.filling.val();
        if self.new_multi.q.val() {
            self.multis.d.next = self.multis.q.val() | self.order.filling.val();
        }
        self.is_multi.next = (self.order.chosen.val() & self.multis.q.val()).any();

        self.found.next = self.order.found.val();
        self.index.next = self.order.index.val();
        self.chosen.next = self.order.chosen.val();
        self.chosen_multi.next = self.is_multi.val();
        self.place_index.next = self.order.place_index.val();

        self.ages.clock.next = self.clock.val();
        self.ages.write_enable.next = self.inserting.q.val();
        self.ages.write_address.next = self.new_place.q.val();
        self.ages.write_data.next = self.new_age.q.val();
        self.ages.read_address.next = self.order.index.val();
        self.age_out.next = self.ages.read_data.val();

        self.joined_endpoint.d.next = self.key_endpoint.q.val() & self.endpoint_bits.val();
        self.searched_endpoint.d.next = self.joined_endpoint.q.val();
        if self.choosing.q.val() {
            self.chosen_endpoint.d.next = self.searched_endpoint.q.val();
        }
        self.gone_endpoint.d.next = self.chosen_endpoint.q.val();
        self.gone_bit.d.next = bits::<32>(1) << self.chosen_endpoint.q.val();
        self.removes.next = self.remove.val() | self.takes.q.val();
        self.departs.next = self.removes.val()
            & self.order.found.val()
            & !((self.takes.q.val() | self.spare_multi.val()) & self.is_multi.val());
        self.gone.d.next = self.departs.val();
        self.quota.endpoint.next = self.insert_endpoint.val();
        self.quota.take.next = self.inserting.q.val();
        self.quota.take_bit.next = self.new_bit.q.val();
        self.quota.give.next = self.gone.q.val();
        self.quota.give_bit.next = self.gone_bit.q.val();
        self.room.next = self.quota.room.val();
        self.waiting.next = self.quota.holds.val();
        if self.inserting.q.val() {
            self.waiting.next = self.quota.holds.val() | self.new_bit.q.val();
        }
        self.depth.next = self.quota.used.val();
        self.live_count.next = self.quota.used.val();
        if self.gone.q.val() {
            self.live_count.next = self.quota.used.val() - 1;
        }
        self.count_is_of_live_entries.ok.next = ((self.live_count.val() != 0)
            == self.order.living.val().any())
            & ((self.live_count.val() == self.capacity.val())
                == (self.order.living.val() == self.places.val()))
            & (self.live_count.val() <= self.capacity.val());

        self.cancelled_or_new.next = self.cancelled.q.val();
        if self.remove.val() & self.cancel.val() {
            self.cancelled_or_new.next = self.cancelled.q.val() | self.order.chosen.val();
        }
        self.cancelled.d.next = self.cancelled_or_new.val() & !self.order.filling.val();
        self.cancelled_is_never_matched.ok.next = (!self.choosing.q.val()
            | !(self.cancelled.q.val() & self.order.candidates.val()).any())
            & (!self.removes.val() | !(self.cancelled.q.val() & self.order.chosen.val()).any());

        self.considered.d.next = 0.into();
        if self.choosing.q.val() {
            self.considered.d.next = self.order.candidates.val();
        }
        self.considered_before.d.next = self.considered.q.val();
        self.judged.d.next = self.considered_before.q.val();
        self.asked.d.next = self.alive.val();
        self.recalled.d.next = self.asked.q.val();

        if self.inserting.q.val() {
            self.last_age.d.next = self.new_age.q.val();
            self.any_age.d.next = true;
        }
        self.ages_grow.ok.next =
            !self.insert.val() | !self.any_age.q.val() | (self.last_age.q.val() < self.age.val());
        if self.departs.val() {
            self.departed.d.next = true;
        }
        if self.choosing.q.val() {
            self.departed.d.next = false;
        }
        self.removes_once.ok.next = !self.remove.val()
            | (!self.departed.q.val()
                & !self.takes.q.val()
                & !self.choosing.q.val()
                & !(self.cancel.val() & self.spare_multi.val()));
        self.inserted.d.next = self.inserting.q.val();
        self.inserts_with_room_and_after_a_rest.ok.next = !self.insert.val()
            | (self.quota.room.val() & !self.inserting.q.val() & !self.inserted.q.val());
        self.inserts_of_a_known_pair.ok.next =
            !self.insert.val() | self.any_source.val() | !self.unknown_pair.val();

        for k in 0..self._proofs {
            self.invariants[k].live.next = self.order.living.val();
            self.invariants[k].depth.next = self.live_count.val();
            self.invariants[k].chosen.next = self.order.chosen.val();
            self.invariants[k].leaving.next = self.order.going.val();
            self.invariants[k].taking.next = self.takes.q.val() & !self.is_multi.val();
            self.invariants[k].hits.next = self.hits.val();
            self.invariants[k].filling.next = self.order.filling.val();
            self.invariants[k].inserting.next = self.inserting.q.val();
            self.invariants[k].departed.next = self.departed.q.val();
            self.invariants[k].cancelled.next = self.cancelled.q.val();
            self.invariants[k].last_age.next = self.last_age.q.val();
            self.invariants[k].any_age.next = self.any_age.q.val();
            self.invariants[k].gone.next = self.gone.q.val();
            self.invariants[k].gone_endpoint.next = self.gone_endpoint.q.val();
            self.invariants[k].used.next = self.quota.used.val();
            for i in 0..self._proved {
                self.invariants[k].rows[i].next = self.order.rows[i].val();
                self.invariants[k].ages[i].next = self.entry[i].held_age_out.val();
                self.invariants[k].endpoints[i].next = self.entry[i].held_endpoint_out.val();
            }
            for e in 0..self._endpoints {
                self.invariants[k].counts[e].next = self.quota.held[e].val();
            }
        }
    }
}
