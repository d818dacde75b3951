//! The posted receives that no class fits: few, and each with a mask of its own.
//!
//! An entry holds what its receive matches: endpoint, source or any source, context, match bits and the
//! bits of them to ignore, and the handle by which a cancel names it. All entries compare themselves with
//! the key at once; [`Order`] picks the oldest that agrees.
//!
//! ```text
//!   cycle        t                        t+1             t+2               t+3         t+4
//!             search                     select       found, index, multi             age_out
//!   key ──┬──► AssociativeEntry 0 ─ hit ─┐                  │
//!         ├──► AssociativeEntry 1 ─ hit ─┼──► Order ──► choice ──► ages ──────────────► age_out
//!         ┆                              ┆      │           │     (memory)
//!         └──► AssociativeEntry n ─ hit ─┘   ▲  └─► place   └─ remove ─┐
//!                                            └─────────────────────────┘ what is being removed
//!                                                                        isn't chosen again
//! ```
//!
//! Each step may be taken in every cycle, so that a message a cycle runs through. A search sees what was
//! inserted in an earlier cycle. What it finds is chosen from when `select` comes, as a rule in the next
//! cycle, and not after another search. The choice stays until the next `select`; until then, and in its
//! cycle, `remove` takes it out. Whatever is compared, what a search finds is of the endpoint that it names, so that it is
//! known whose a removed entry was.
//!
//! An `insert` shows in `room`, `waiting` and `depth` in the next cycle, a removal two cycles later. An `insert` may
//! not come in the cycle after another insert, nor in the cycle after a removal: the vacant place isn't known
//! yet, and `fills_a_vacant_place` would say so.

use super::invariants::Invariants;
use super::order::Order;
use super::quota::Quota;
use super::{MAX_ENTRIES, Mutation};
use crate::construct::constant;
use crate::prelude::*;
use crate::prim::{BlockRam, Duty};

/// What a search of the posted receives compares.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
pub enum AssociativeSearch {
    /// Receives that an envelope matches.
    Envelope,
    /// The endpoint's receive with this handle.
    Request,
    /// The endpoint's receives that name this source, and no other would do.
    Pair,
    /// All of the endpoint.
    Endpoint,
}

/// One posted receive. What is compared is kept in five parts, so that no part takes long.
#[derive(LogicBlock)]
pub struct AssociativeEntry {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset.
    pub reset: Signal<In, Bit>,
    /// Contract to break, for tests; see [`Mutation`].
    pub mutation: Signal<In, Bits<8>>,
    /// Take the key.
    pub load: Signal<In, Bit>,
    /// Compare with the key; `hit` says the result from the next cycle on, until the next `search` or
    /// `load`.
    pub search: Signal<In, Bit>,
    /// What to compare.
    pub by: Signal<In, AssociativeSearch>,
    /// There is no such endpoint or source: nothing agrees.
    pub unknown: Signal<In, Bit>,
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
    /// Key, loaded only: age.
    pub age: Signal<In, Bits<54>>,
    /// The last search agreed with what is held here.
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
    /// For the checks: whom the last search named.
    pub searched_endpoint: Signal<In, Bits<8>>,
    held_endpoint: Reg<Bits<8>>,
    held_pair: Reg<Bits<16>>,
    held_any_source: Reg<Bit>,
    held_context: Reg<Bits<16>>,
    held_match_bits: Reg<Bits<64>>,
    held_ignore_bits: Reg<Bits<64>>,
    held_request: Reg<Bits<32>>,
    held_age: Reg<Bits<54>>,
    // What agreed with the last search: endpoint and source, context and handle, each half of the match bits.
    of_source: Reg<Bit>,
    of_context: Reg<Bit>,
    of_handle: Reg<Bit>,
    of_low_bits: Reg<Bit>,
    of_high_bits: Reg<Bit>,
    agrees: Signal<Local, Bit>,
    from_its_source: Signal<Local, Bit>,
    source_agrees: Signal<Local, Bit>,
    context_agrees: Signal<Local, Bit>,
    handle_agrees: Signal<Local, Bit>,
    low_bits_agree: Signal<Local, Bit>,
    high_bits_agree: Signal<Local, Bit>,
    differing: Signal<Local, Bits<64>>,
    low_half: Constant<Bits<64>>,
    widen_sources: Constant<Bits<8>>,
    narrow_wildcards: Constant<Bits<8>>,
    keep_hits: Constant<Bits<8>>,
    oldest_was_chosen: Check,
    memory_agrees: Check,
    found_of_its_endpoint: Check,
}

impl Default for AssociativeEntry {
    fn default() -> Self {
        Self {
            clock: Signal::default(),
            reset: Signal::default(),
            mutation: Signal::default(),
            load: Signal::default(),
            search: Signal::default(),
            by: Signal::default(),
            unknown: Signal::default(),
            endpoint: Signal::default(),
            pair: Signal::default(),
            any_source: Signal::default(),
            context_id: Signal::default(),
            match_bits: Signal::default(),
            ignore_bits: Signal::default(),
            request: Signal::default(),
            age: Signal::default(),
            hit: Signal::default(),
            held_age_out: Signal::default(),
            held_endpoint_out: Signal::default(),
            judged: Signal::default(),
            recalled: Signal::default(),
            chosen_age: Signal::default(),
            chosen: Signal::default(),
            chosen_endpoint: Signal::default(),
            searched_endpoint: Signal::default(),
            held_endpoint: Reg::default(),
            held_pair: Reg::default(),
            held_any_source: Reg::default(),
            held_context: Reg::default(),
            held_match_bits: Reg::default(),
            held_ignore_bits: Reg::default(),
            held_request: Reg::default(),
            held_age: Reg::default(),
            of_source: Reg::default(),
            of_context: Reg::default(),
            of_handle: Reg::default(),
            of_low_bits: Reg::default(),
            of_high_bits: Reg::default(),
            agrees: Signal::default(),
            from_its_source: Signal::default(),
            source_agrees: Signal::default(),
            context_agrees: Signal::default(),
            handle_agrees: Signal::default(),
            low_bits_agree: Signal::default(),
            high_bits_agree: Signal::default(),
            differing: Signal::default(),
            low_half: constant(u64::from(u32::MAX)),
            widen_sources: constant(Mutation::WidenSources as u64),
            narrow_wildcards: constant(Mutation::NarrowWildcards as u64),
            keep_hits: constant(Mutation::KeepHits as u64),
            oldest_was_chosen: Check::new("oldest_was_chosen"),
            memory_agrees: Check::new("memory_agrees"),
            found_of_its_endpoint: Check::new("found_of_its_endpoint"),
        }
    }
}

#[module]
impl Logic for AssociativeEntry {
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
            held_age,
            of_source,
            of_context,
            of_handle,
            of_low_bits,
            of_high_bits
        );
        clocked!(
            self,
            clock,
            reset,
            oldest_was_chosen,
            memory_agrees,
            found_of_its_endpoint
        );
        self.from_its_source.next = self.held_any_source.q.val()
            | (self.held_pair.q.val() == self.pair.val())
            | (self.mutation.val() == self.widen_sources.val());
        self.differing.next =
            (self.held_match_bits.q.val() ^ self.match_bits.val()) & !self.held_ignore_bits.q.val();
        self.source_agrees.next = true;
        self.context_agrees.next = true;
        self.handle_agrees.next = true;
        self.low_bits_agree.next = true;
        self.high_bits_agree.next = true;
        match self.by.val() {
            AssociativeSearch::Envelope => {
                self.source_agrees.next = self.from_its_source.val();
                self.context_agrees.next = self.held_context.q.val() == self.context_id.val();
                self.low_bits_agree.next = !(self.differing.val() & self.low_half.val()).any();
                self.high_bits_agree.next = !(self.differing.val() & !self.low_half.val()).any();
            }
            AssociativeSearch::Request => {
                self.handle_agrees.next = self.held_request.q.val() == self.request.val();
            }
            AssociativeSearch::Pair => {
                self.source_agrees.next =
                    !self.held_any_source.q.val() & (self.held_pair.q.val() == self.pair.val());
            }
            AssociativeSearch::Endpoint => {}
        }
        if self.search.val() {
            self.of_source.d.next = (self.held_endpoint.q.val() == self.endpoint.val())
                & self.source_agrees.val()
                & !self.unknown.val();
            self.of_context.d.next = self.context_agrees.val();
            self.of_handle.d.next = self.handle_agrees.val();
            self.of_low_bits.d.next = self.low_bits_agree.val();
            self.of_high_bits.d.next = self.high_bits_agree.val();
        }
        self.agrees.next = self.of_source.q.val()
            & self.of_context.q.val()
            & self.of_handle.q.val()
            & self.of_low_bits.q.val()
            & self.of_high_bits.q.val();
        if self.load.val() {
            self.held_endpoint.d.next = self.endpoint.val();
            self.held_pair.d.next = self.pair.val();
            self.held_any_source.d.next = self.any_source.val();
            self.held_context.d.next = self.context_id.val();
            self.held_match_bits.d.next = self.match_bits.val();
            self.held_ignore_bits.d.next = self.ignore_bits.val();
            if self.mutation.val() == self.narrow_wildcards.val() {
                self.held_ignore_bits.d.next = (self.ignore_bits.val() >> 1) << 1;
            }
            self.held_request.d.next = self.request.val();
            self.held_age.d.next = self.age.val();
            // It was the last holder of the place that agreed.
            if self.mutation.val() != self.keep_hits.val() {
                self.of_source.d.next = false;
            }
        }
        self.hit.next = self.agrees.val();
        self.held_age_out.next = self.held_age.q.val();
        self.held_endpoint_out.next = self.held_endpoint.q.val();
        self.memory_agrees.ok.next =
            !self.recalled.val() | (self.chosen_age.val() == self.held_age.q.val());
        self.found_of_its_endpoint.ok.next = (!self.chosen.val()
            | (self.chosen_endpoint.val() == self.held_endpoint.q.val()))
            & (!self.agrees.val() | (self.searched_endpoint.val() == self.held_endpoint.q.val()));
        self.oldest_was_chosen.ok.next =
            !self.judged.val() | (self.chosen_age.val() <= self.held_age.q.val());
    }
}

/// The posted receives that are compared with every message.
#[derive(LogicBlock)]
pub struct Associative {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset: there are no receives.
    pub reset: Signal<In, Bit>,
    /// Contract to break, for tests; zero in a card. See [`Mutation`].
    pub mutation: Signal<In, Bits<8>>,
    /// Compare all entries with the key.
    pub search: Signal<In, Bit>,
    /// Choose the oldest that agreed with the last search. Once for each search.
    pub select: Signal<In, Bit>,
    /// Remove the chosen one, if there is one, and once.
    pub remove: Signal<In, Bit>,
    /// With `remove`: unless it is `multi`.
    pub spare_multi: Signal<In, Bit>,
    /// With `remove`: it is that of a cancel. Without `spare_multi`.
    pub cancel: Signal<In, Bit>,
    /// Append the key. Only with `room`.
    pub insert: Signal<In, Bit>,
    /// What `search` compares.
    pub by: Signal<In, AssociativeSearch>,
    /// Key: endpoint. `room` is about this one too.
    pub endpoint: Signal<In, Bits<8>>,
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
    /// An entry was chosen.
    pub found: Signal<Out, Bit>,
    /// Its place.
    pub index: Signal<Out, Bits<16>>,
    /// Its place, one bit set.
    pub chosen: Signal<Out, Bits<64>>,
    /// It was inserted as `multi`.
    pub chosen_multi: Signal<Out, Bit>,
    /// Its age, two cycles after `found`.
    pub age_out: Signal<Out, Bits<54>>,
    /// Where `insert` puts the key.
    pub place_index: Signal<Out, Bits<16>>,
    /// There is a place for a receive of `endpoint`, as far as quotas go.
    pub room: Signal<Out, Bit>,
    /// Bit `e`: endpoint `e` has entries.
    pub waiting: Signal<Out, Bits<32>>,
    /// Entries, and one more in the cycle after a removal.
    pub depth: Signal<Out, Bits<16>>,
    entry: Vec<AssociativeEntry>,
    order: Order,
    quota: Quota,
    /// By place.
    ages: BlockRam<Bits<54>>,
    chosen_age: Reg<Bits<54>>,
    own_endpoint: Signal<Local, Bits<8>>,
    own_pair: Signal<Local, Bits<16>>,
    unknown: Signal<Local, Bit>,
    unknown_pair: Signal<Local, Bit>,
    /// Whom the last search named, the choice is of, and the entry that is gone was of.
    searched_endpoint: Reg<Bits<8>>,
    chosen_endpoint: Reg<Bits<8>>,
    gone_endpoint: Reg<Bits<8>>,
    hits: Signal<Local, Bits<64>>,
    multis: Reg<Bits<64>>,
    is_multi: Signal<Local, Bit>,
    spared: Signal<Local, Bits<64>>,
    /// The entry chosen in the cycle before was removed.
    gone: Reg<Bit>,
    /// Places whose last entry was cancelled.
    cancelled: Reg<Bits<64>>,
    cancelled_or_new: Signal<Local, Bits<64>>,
    /// What the choice was from, and two cycles later, when its age is known.
    considered: Reg<Bits<64>>,
    considered_before: Reg<Bits<64>>,
    judged: Reg<Bits<64>>,
    /// What the memory was asked about in the cycle before, and in the one before that.
    asked: Reg<Bits<64>>,
    recalled: Reg<Bits<64>>,
    alive: Signal<Local, Bits<64>>,
    live_count: Signal<Local, Bits<16>>,
    /// The chosen entry has been removed.
    departed: Reg<Bit>,
    /// The places have changed in the cycle before.
    changed: Reg<Bit>,
    departs: Signal<Local, Bit>,
    last_age: Reg<Bits<54>>,
    any_age: Reg<Bit>,
    searched: Reg<Bit>,
    endpoint_bits: Constant<Bits<8>>,
    pair_bits: Constant<Bits<16>>,
    places: Constant<Bits<64>>,
    capacity: Constant<Bits<16>>,
    lose_cancels: Constant<Bits<8>>,
    lose_multi: Constant<Bits<8>>,
    count_is_of_live_entries: Check,
    cancelled_is_never_matched: Check,
    ages_grow: Duty,
    selects_once_a_search: Duty,
    removes_what_it_found_once: Duty,
    inserts_with_room_and_after_a_rest: Duty,
    inserts_of_a_known_pair: Duty,
    invariants: Vec<Invariants>,
    _n: usize,
    _proofs: usize,
    _proved: usize,
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
        Self {
            clock: Signal::default(),
            reset: Signal::default(),
            mutation: Signal::default(),
            search: Signal::default(),
            select: Signal::default(),
            remove: Signal::default(),
            spare_multi: Signal::default(),
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
            age: Signal::default(),
            multi: Signal::default(),
            found: Signal::default(),
            index: Signal::default(),
            chosen: Signal::default(),
            chosen_multi: Signal::default(),
            age_out: Signal::default(),
            place_index: Signal::default(),
            room: Signal::default(),
            waiting: Signal::default(),
            depth: Signal::default(),
            entry: (0..entries).map(|_| AssociativeEntry::default()).collect(),
            order: Order::new(entries),
            quota: Quota::new(endpoints, entries, reserved_each),
            ages: BlockRam::new(entries.max(2)),
            chosen_age: Reg::default(),
            own_endpoint: Signal::default(),
            own_pair: Signal::default(),
            unknown: Signal::default(),
            unknown_pair: Signal::default(),
            searched_endpoint: Reg::default(),
            chosen_endpoint: Reg::default(),
            gone_endpoint: Reg::default(),
            hits: Signal::default(),
            multis: Reg::default(),
            is_multi: Signal::default(),
            spared: Signal::default(),
            gone: Reg::default(),
            cancelled: Reg::default(),
            cancelled_or_new: Signal::default(),
            considered: Reg::default(),
            considered_before: Reg::default(),
            judged: Reg::default(),
            asked: Reg::default(),
            recalled: Reg::default(),
            alive: Signal::default(),
            live_count: Signal::default(),
            departed: Reg::default(),
            changed: Reg::default(),
            departs: Signal::default(),
            last_age: Reg::default(),
            any_age: Reg::default(),
            searched: Reg::default(),
            endpoint_bits: constant(bits_of(endpoints)),
            pair_bits: constant(bits_of(pairs)),
            places: constant(u64::MAX >> (MAX_ENTRIES - entries)),
            capacity: constant(entries as u64),
            lose_cancels: constant(Mutation::LoseCancels as u64),
            lose_multi: constant(Mutation::LoseMulti as u64),
            count_is_of_live_entries: Check::new("count_is_of_live_entries"),
            cancelled_is_never_matched: Check::new("cancelled_is_never_matched"),
            ages_grow: Duty::new("ages_grow"),
            selects_once_a_search: Duty::new("selects_once_a_search"),
            removes_what_it_found_once: Duty::new("removes_what_it_found_once"),
            inserts_with_room_and_after_a_rest: Duty::new("inserts_with_room_and_after_a_rest"),
            inserts_of_a_known_pair: Duty::new("inserts_of_a_known_pair"),
            invariants: vec![],
            _n: entries,
            _proofs: 0,
            _proved: 0,
            _endpoints: endpoints,
        }
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

#[module(entries = self._n)]
impl Logic for Associative {
    #[hdl_gen]
    fn update(&mut self) {
        registers!(
            self,
            clock,
            reset,
            chosen_age,
            searched_endpoint,
            chosen_endpoint,
            gone_endpoint,
            multis,
            gone,
            cancelled,
            considered,
            considered_before,
            judged,
            asked,
            recalled,
            departed,
            changed,
            last_age,
            any_age,
            searched
        );
        clocked!(
            self,
            clock,
            reset,
            order,
            quota,
            entry[0..self._n],
            count_is_of_live_entries,
            cancelled_is_never_matched,
            ages_grow,
            selects_once_a_search,
            removes_what_it_found_once,
            inserts_with_room_and_after_a_rest,
            inserts_of_a_known_pair,
            invariants[0..self._proofs]
        );
        // Bits that no endpoint and no source has aren't held.
        self.own_endpoint.next = self.endpoint.val() & self.endpoint_bits.val();
        self.own_pair.next = self.pair.val() & self.pair_bits.val();
        self.unknown_pair.next = (self.pair.val() & !self.pair_bits.val()).any();
        self.unknown.next = (self.endpoint.val() & !self.endpoint_bits.val()).any();
        match self.by.val() {
            AssociativeSearch::Envelope => {
                self.unknown.next = (self.endpoint.val() & !self.endpoint_bits.val()).any()
                    | self.unknown_pair.val();
            }
            AssociativeSearch::Pair => {
                self.unknown.next = (self.endpoint.val() & !self.endpoint_bits.val()).any()
                    | self.unknown_pair.val();
            }
            _ => {}
        }
        self.alive.next = self.order.chosen.val() & self.order.living.val();
        self.hits.next = 0.into();
        for i in 0..self._n {
            self.entry[i].mutation.next = self.mutation.val();
            self.entry[i].load.next = self.insert.val() & self.order.place.val().get_bit(i);
            self.entry[i].search.next = self.search.val();
            self.entry[i].by.next = self.by.val();
            self.entry[i].unknown.next = self.unknown.val();
            self.entry[i].endpoint.next = self.own_endpoint.val();
            self.entry[i].pair.next = self.own_pair.val();
            self.entry[i].any_source.next = self.any_source.val();
            self.entry[i].context_id.next = self.context_id.val();
            self.entry[i].match_bits.next = self.match_bits.val();
            self.entry[i].ignore_bits.next = self.ignore_bits.val();
            self.entry[i].request.next = self.request.val();
            self.entry[i].age.next = self.age.val();
            self.entry[i].judged.next = self.judged.q.val().get_bit(i);
            self.entry[i].recalled.next = self.recalled.q.val().get_bit(i);
            self.entry[i].chosen_age.next = self.chosen_age.q.val();
            self.entry[i].chosen.next = self.alive.val().get_bit(i) & !self.departed.q.val();
            self.entry[i].searched_endpoint.next = self.searched_endpoint.q.val();
            self.entry[i].chosen_endpoint.next = self.chosen_endpoint.q.val();
            self.hits.next = self.hits.val().replace_bit(i, self.entry[i].hit.val());
        }

        self.spared.next = 0.into();
        if self.spare_multi.val() & (self.mutation.val() != self.lose_multi.val()) {
            self.spared.next = self.multis.q.val();
        }
        self.order.mutation.next = self.mutation.val();
        self.order.hits.next = self.hits.val();
        self.order.select.next = self.select.val();
        self.order.insert.next = self.insert.val();
        self.order.remove.next = self.remove.val();
        if (self.mutation.val() == self.lose_cancels.val()) & self.cancel.val() {
            self.order.remove.next = false;
        }
        self.order.keep.next = self.spared.val();
        if self.insert.val() {
            self.multis.d.next = self.multis.q.val() & !self.order.place.val();
            if self.multi.val() {
                self.multis.d.next = self.multis.q.val() | self.order.place.val();
            }
        }
        self.is_multi.next = (self.order.chosen.val() & self.multis.q.val()).any();

        self.found.next = self.order.found.val();
        self.index.next = self.order.index.val();
        self.chosen.next = self.order.chosen.val();
        self.chosen_multi.next = self.is_multi.val();
        self.place_index.next = self.order.place_index.val();

        self.ages.clock.next = self.clock.val();
        self.ages.write_enable.next = self.insert.val();
        self.ages.write_address.next = self.order.place_index.val();
        self.ages.write_data.next = self.age.val();
        self.ages.read_address.next = self.order.index.val();
        self.chosen_age.d.next = self.ages.read_data.val();
        self.age_out.next = self.chosen_age.q.val();

        if self.search.val() {
            self.searched_endpoint.d.next = self.own_endpoint.val();
        }
        if self.select.val() {
            self.chosen_endpoint.d.next = self.searched_endpoint.q.val();
        }
        self.gone_endpoint.d.next = self.chosen_endpoint.q.val();
        self.departs.next = self.remove.val()
            & self.order.found.val()
            & !(self.spare_multi.val() & self.is_multi.val());
        self.gone.d.next = self.departs.val();
        self.quota.mutation.next = self.mutation.val();
        self.quota.endpoint.next = self.endpoint.val();
        self.quota.take.next = self.insert.val();
        self.quota.take_endpoint.next = self.endpoint.val();
        self.quota.give.next = self.gone.q.val();
        self.quota.give_endpoint.next = self.gone_endpoint.q.val();
        self.room.next = self.quota.room.val();
        self.waiting.next = self.quota.holds.val();
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
        self.cancelled.d.next = self.cancelled_or_new.val();
        if self.insert.val() {
            self.cancelled.d.next = self.cancelled_or_new.val() & !self.order.place.val();
        }
        self.cancelled_is_never_matched.ok.next = (!self.select.val()
            | !(self.cancelled.q.val() & self.order.candidates.val()).any())
            & (!self.remove.val() | !(self.cancelled.q.val() & self.order.chosen.val()).any());

        self.considered.d.next = 0.into();
        if self.select.val() {
            self.considered.d.next = self.order.candidates.val();
        }
        self.considered_before.d.next = self.considered.q.val();
        self.judged.d.next = self.considered_before.q.val();
        self.asked.d.next = self.alive.val();
        self.recalled.d.next = self.asked.q.val();

        if self.insert.val() {
            self.last_age.d.next = self.age.val();
            self.any_age.d.next = true;
        }
        self.ages_grow.ok.next =
            !self.insert.val() | !self.any_age.q.val() | (self.last_age.q.val() < self.age.val());
        if self.select.val() {
            self.searched.d.next = false;
        }
        if self.search.val() {
            self.searched.d.next = true;
        }
        self.selects_once_a_search.ok.next = !self.select.val() | self.searched.q.val();
        if self.departs.val() {
            self.departed.d.next = true;
        }
        if self.select.val() {
            self.departed.d.next = false;
        }
        self.removes_what_it_found_once.ok.next = !self.remove.val()
            | (!self.departed.q.val() & !(self.cancel.val() & self.spare_multi.val()));
        self.changed.d.next = self.insert.val() | self.departs.val();
        self.inserts_with_room_and_after_a_rest.ok.next =
            !self.insert.val() | (self.quota.room.val() & !self.changed.q.val());
        self.inserts_of_a_known_pair.ok.next =
            !self.insert.val() | self.any_source.val() | !self.unknown_pair.val();

        for k in 0..self._proofs {
            self.invariants[k].live.next = self.order.living.val();
            self.invariants[k].depth.next = self.live_count.val();
            self.invariants[k].chosen.next = self.order.chosen.val();
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
