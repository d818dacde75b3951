//! What is proved of the associative side and of the quotas, and around what.
//!
//! ```text
//!   any inputs that the ─┬─► Associative ─────────────────► found, index, age, …  ─┐
//!   duties allow         │                                                         ├─► Check: equal
//!                        └─► Place × n ─► the oldest that ─► expected ─────────────┘
//!                            (a list)     matches
//! ```
//!
//! The list beside the block is written for a reader, not for a card. Ages are compared as numbers. Each search and each
//! insert is done in one cycle, the one after it came to the block, and the result of a search comes two cycles later. Keys of
//! the list are narrow, since a solver has to try what a search may compare; the block's are as wide as in a card, with the
//! other bits zero.

use super::associative::{Associative, AssociativeSearch};
use super::breaks;
use super::proof_lists::{ListsProof, SMALLEST, order_of_commands};
use super::quota::Quota;
use crate::prelude::*;
use crate::prim::Duty;
use crate::proofs::{Method, Proof};
use crate::verilog::Break;

/// Entries of the block that is proved.
const ENTRIES: usize = 4;
/// Its endpoints, and what is reserved for each of them.
const ENDPOINTS: usize = 2;
const RESERVED: usize = 1;
/// Its sources.
const PAIRS: usize = 2;
/// The quotas that are proved: their endpoints, what they share, and what is reserved for each.
const QUOTA_ENDPOINTS: usize = 3;
const QUOTA_CAPACITY: usize = 8;
const QUOTA_RESERVED: usize = 2;

/// A receive, or nothing, at one place of the list.
#[block]
pub struct Place {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset: there is nothing.
    pub reset: Signal<In, Bit>,
    /// The key is put here.
    pub insert: Signal<In, Bit>,
    /// The receive is removed.
    pub remove: Signal<In, Bit>,
    /// The key is compared.
    pub search: Signal<In, Bit>,
    /// What is compared.
    pub by: Signal<In, AssociativeSearch>,
    /// Key: endpoint.
    pub endpoint: Signal<In, Bits<1>>,
    /// Key: source.
    pub pair: Signal<In, Bits<1>>,
    /// Key: any source.
    pub any_source: Signal<In, Bit>,
    /// Key: context.
    pub context_id: Signal<In, Bits<1>>,
    /// Key: match bits.
    pub match_bits: Signal<In, Bits<2>>,
    /// Key: bits that needn't agree.
    pub ignore_bits: Signal<In, Bits<2>>,
    /// Key: handle.
    pub request: Signal<In, Bits<1>>,
    /// Key: age.
    pub age: Signal<In, Bits<8>>,
    /// Key: stays when it is matched.
    pub multi: Signal<In, Bit>,
    /// The entry holds a receive.
    pub live: Signal<Out, Bit>,
    /// The search two cycles ago found it and it isn't being removed.
    pub candidate: Signal<Out, Bit>,
    /// Age of the receive.
    pub live_age: Signal<Out, Bits<8>>,
    /// The receive stays when it is matched.
    pub live_multi: Signal<Out, Bit>,
    /// Endpoint of the receive.
    pub live_endpoint: Signal<Out, Bits<1>>,
    there: Reg<Bit>,
    my_endpoint: Reg<Bits<1>>,
    my_pair: Reg<Bits<1>>,
    my_any_source: Reg<Bit>,
    my_context: Reg<Bits<1>>,
    my_match_bits: Reg<Bits<2>>,
    my_ignore_bits: Reg<Bits<2>>,
    my_request: Reg<Bits<1>>,
    my_age: Reg<Bits<8>>,
    my_multi: Reg<Bit>,
    hit: Reg<Bit>,
    hit_before: Reg<Bit>,
    bits_agree: Signal<Local, Bit>,
}

#[block]
impl Logic for Place {
    fn update(&mut self) {
        self.bits_agree.next = true;
        for bit in 0..2 {
            if !self.my_ignore_bits.q.val().get_bit(bit)
                & (self.my_match_bits.q.val().get_bit(bit) != self.match_bits.val().get_bit(bit))
            {
                self.bits_agree.next = false;
            }
        }
        self.hit_before.d.next = self.hit.q.val();
        if self.search.val() {
            self.hit.d.next = false;
            match self.by.val() {
                AssociativeSearch::Envelope => {
                    if (self.my_endpoint.q.val() == self.endpoint.val())
                        & (self.my_context.q.val() == self.context_id.val())
                        & self.bits_agree.val()
                    {
                        self.hit.d.next =
                            self.my_any_source.q.val() | (self.my_pair.q.val() == self.pair.val());
                    }
                }
                AssociativeSearch::Request => {
                    if self.my_endpoint.q.val() == self.endpoint.val() {
                        self.hit.d.next = self.my_request.q.val() == self.request.val();
                    }
                }
                AssociativeSearch::Pair => {
                    if (self.my_endpoint.q.val() == self.endpoint.val())
                        & (self.my_pair.q.val() == self.pair.val())
                    {
                        self.hit.d.next = !self.my_any_source.q.val();
                    }
                }
                AssociativeSearch::Endpoint => {
                    self.hit.d.next = self.my_endpoint.q.val() == self.endpoint.val();
                }
            }
        }
        if self.remove.val() {
            self.there.d.next = false;
        }
        if self.insert.val() {
            self.there.d.next = true;
            self.hit.d.next = false;
            self.hit_before.d.next = false;
            self.my_endpoint.d.next = self.endpoint.val();
            self.my_pair.d.next = self.pair.val();
            self.my_any_source.d.next = self.any_source.val();
            self.my_context.d.next = self.context_id.val();
            self.my_match_bits.d.next = self.match_bits.val();
            self.my_ignore_bits.d.next = self.ignore_bits.val();
            self.my_request.d.next = self.request.val();
            self.my_age.d.next = self.age.val();
            self.my_multi.d.next = self.multi.val();
        }
        self.live.next = self.there.q.val();
        self.candidate.next = self.there.q.val() & self.hit_before.q.val() & !self.remove.val();
        self.live_age.next = self.my_age.q.val();
        self.live_multi.next = self.my_multi.q.val();
        self.live_endpoint.next = self.my_endpoint.q.val();
    }
}

/// The block and the list.
#[block]
pub struct AssociativeProof {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset.
    pub reset: Signal<In, Bit>,
    /// As of the block.
    pub search: Signal<In, Bit>,
    /// As of the block.
    pub take: Signal<In, Bit>,
    /// As of the block.
    pub drop: Signal<In, Bit>,
    /// As of the block.
    pub remove: Signal<In, Bit>,
    /// As of the block.
    pub spare_multi: Signal<In, Bit>,
    /// As of the block.
    pub cancel: Signal<In, Bit>,
    /// As of the block.
    pub insert: Signal<In, Bit>,
    /// As of the block.
    pub by: Signal<In, AssociativeSearch>,
    /// As of the block.
    pub endpoint: Signal<In, Bits<1>>,
    /// As of the block.
    pub pair: Signal<In, Bits<1>>,
    /// As of the block.
    pub any_source: Signal<In, Bit>,
    /// As of the block.
    pub context_id: Signal<In, Bits<1>>,
    /// As of the block.
    pub match_bits: Signal<In, Bits<2>>,
    /// As of the block.
    pub ignore_bits: Signal<In, Bits<2>>,
    /// As of the block.
    pub request: Signal<In, Bits<1>>,
    /// As of the block.
    pub multi: Signal<In, Bit>,
    #[is(Associative::new(ENTRIES, ENDPOINTS, PAIRS, RESERVED))]
    block: Associative,
    #[each(ENTRIES)]
    place: Vec<Place>,
    /// Age of the next receive: their number.
    age: Reg<Bits<8>>,
    // What came in the cycle before, and the place that was promised for an insert.
    late_search: Reg<Bit>,
    late_take: Reg<Bit>,
    late_insert: Reg<Bit>,
    late_by: Reg<AssociativeSearch>,
    late_endpoint: Reg<Bits<1>>,
    late_pair: Reg<Bits<1>>,
    late_any_source: Reg<Bit>,
    late_context_id: Reg<Bits<1>>,
    late_match_bits: Reg<Bits<2>>,
    late_ignore_bits: Reg<Bits<2>>,
    late_request: Reg<Bits<1>>,
    late_multi: Reg<Bit>,
    late_age: Reg<Bits<8>>,
    promised: Reg<Bits<16>>,
    /// The search before that is joined, to take or not.
    joins: Reg<Bit>,
    joins_to_take: Reg<Bit>,
    /// The one before that chooses.
    chooses: Reg<Bit>,
    chooses_to_take: Reg<Bit>,
    /// What it has found is taken.
    takes: Reg<Bit>,
    answered: Reg<Bit>,
    expected: Reg<Bit>,
    expected_place: Reg<Bits<16>>,
    expected_age: Reg<Bits<8>>,
    expected_multi: Reg<Bit>,
    /// There was an answer in the cycle before, and something was found, at this place.
    numbered: Reg<Bit>,
    numbered_place: Reg<Bits<16>>,
    /// The answer is new.
    fresh: Reg<Bit>,
    /// It was a cycle ago, and then two cycles ago, and something was found, of this age.
    asked: Reg<Bit>,
    asked_age: Reg<Bits<8>>,
    aged: Reg<Bit>,
    aged_age: Reg<Bits<8>>,
    /// An entry was removed in the cycle before, and counts still.
    leaves: Reg<Bit>,
    best: Signal<Local, Bit>,
    best_place: Signal<Local, Bits<16>>,
    best_age: Signal<Local, Bits<8>>,
    best_multi: Signal<Local, Bit>,
    population: Signal<Local, Bits<16>>,
    removed: Signal<Local, Bit>,
    occupied: Signal<Local, Bit>,
    found_if_any_matches: Check,
    found_the_oldest: Check,
    told_its_age: Check,
    inserted_at_a_vacant_place: Check,
    counted: Check,
    #[is(ENTRIES)]
    _n: usize,
}

#[block]
impl Logic for AssociativeProof {
    fn update(&mut self) {
        self.block.search.next = self.search.val();
        self.block.take.next = self.take.val();
        self.block.drop.next = self.drop.val();
        self.block.remove.next = self.remove.val();
        self.block.spare_multi.next = self.spare_multi.val();
        self.block.cancel.next = self.cancel.val();
        self.block.insert.next = self.insert.val();
        self.block.by.next = self.by.val();
        self.block.endpoint.next = bit_cast::<8, 1>(self.endpoint.val());
        self.block.insert_endpoint.next = bit_cast::<8, 1>(self.endpoint.val());
        self.block.pair.next = bit_cast::<16, 1>(self.pair.val());
        self.block.any_source.next = self.any_source.val();
        self.block.context_id.next = bit_cast::<16, 1>(self.context_id.val());
        self.block.match_bits.next = bit_cast::<64, 2>(self.match_bits.val());
        self.block.ignore_bits.next = bit_cast::<64, 2>(self.ignore_bits.val());
        self.block.request.next = bit_cast::<32, 1>(self.request.val());
        self.block.age.next = bit_cast::<54, 8>(self.age.q.val());
        self.block.multi.next = self.multi.val();
        if self.insert.val() {
            self.age.d.next = self.age.q.val() + 1;
        }

        self.late_search.d.next = self.search.val();
        self.late_take.d.next = self.search.val() & self.take.val();
        self.late_insert.d.next = self.insert.val();
        self.late_by.d.next = self.by.val();
        self.late_endpoint.d.next = self.endpoint.val();
        self.late_pair.d.next = self.pair.val();
        self.late_any_source.d.next = self.any_source.val();
        self.late_context_id.d.next = self.context_id.val();
        self.late_match_bits.d.next = self.match_bits.val();
        self.late_ignore_bits.d.next = self.ignore_bits.val();
        self.late_request.d.next = self.request.val();
        self.late_multi.d.next = self.multi.val();
        self.late_age.d.next = self.age.q.val();
        self.promised.d.next = self.block.place_index.val();
        self.joins.d.next = self.late_search.q.val() & !self.drop.val();
        self.joins_to_take.d.next = self.late_take.q.val() & !self.drop.val();
        self.chooses.d.next = self.joins.q.val();
        self.chooses_to_take.d.next = self.joins_to_take.q.val();
        self.takes.d.next = self.chooses_to_take.q.val();

        self.removed.next = (self.remove.val() | self.takes.q.val())
            & self.expected.q.val()
            & !((self.spare_multi.val() | self.takes.q.val()) & self.expected_multi.q.val());
        self.leaves.d.next = self.removed.val();
        self.best.next = false;
        self.best_place.next = 0.into();
        self.best_age.next = 0.into();
        self.best_multi.next = false;
        self.population.next = 0.into();
        self.occupied.next = false;
        for i in 0..self._n {
            self.place[i].insert.next =
                self.late_insert.q.val() & (self.promised.q.val() == i.to_bits());
            self.place[i].remove.next =
                self.removed.val() & (self.expected_place.q.val() == i.to_bits());
            self.place[i].search.next = self.late_search.q.val();
            self.place[i].by.next = self.late_by.q.val();
            self.place[i].endpoint.next = self.late_endpoint.q.val();
            self.place[i].pair.next = self.late_pair.q.val();
            self.place[i].any_source.next = self.late_any_source.q.val();
            self.place[i].context_id.next = self.late_context_id.q.val();
            self.place[i].match_bits.next = self.late_match_bits.q.val();
            self.place[i].ignore_bits.next = self.late_ignore_bits.q.val();
            self.place[i].request.next = self.late_request.q.val();
            self.place[i].age.next = self.late_age.q.val();
            self.place[i].multi.next = self.late_multi.q.val();
            if self.place[i].candidate.val()
                & (!self.best.val() | (self.place[i].live_age.val() < self.best_age.val()))
            {
                self.best.next = true;
                self.best_place.next = i.to_bits();
                self.best_age.next = self.place[i].live_age.val();
                self.best_multi.next = self.place[i].live_multi.val();
            }
            if self.place[i].live.val() {
                self.population.next = self.population.val() + 1;
                if self.promised.q.val() == i.to_bits() {
                    self.occupied.next = true;
                }
            }
        }
        self.numbered.d.next = self.answered.q.val() & self.expected.q.val();
        self.numbered_place.d.next = self.expected_place.q.val();
        self.fresh.d.next = self.chooses.q.val();
        self.asked.d.next = self.fresh.q.val() & self.expected.q.val();
        self.asked_age.d.next = self.expected_age.q.val();
        self.aged.d.next = self.asked.q.val();
        self.aged_age.d.next = self.asked_age.q.val();
        // The answer is good until its entry leaves.
        if self.removed.val() {
            self.answered.d.next = false;
        }
        if self.chooses.q.val() {
            self.answered.d.next = true;
            self.expected.d.next = self.best.val();
            self.expected_place.d.next = self.best_place.val();
            self.expected_age.d.next = self.best_age.val();
            self.expected_multi.d.next = self.best_multi.val();
        }

        self.found_if_any_matches.ok.next =
            !self.answered.q.val() | (self.block.found.val() == self.expected.q.val());
        self.found_the_oldest.ok.next = (!self.numbered.q.val()
            | (self.block.index.val() == self.numbered_place.q.val()))
            & (!self.answered.q.val()
                | !self.expected.q.val()
                | (self.block.chosen_multi.val() == self.expected_multi.q.val()));
        self.told_its_age.ok.next = !self.aged.q.val()
            | (self.block.age_out.val() == bit_cast::<54, 8>(self.aged_age.q.val()));
        self.inserted_at_a_vacant_place.ok.next = !self.late_insert.q.val() | !self.occupied.val();
        if self.leaves.q.val() {
            self.population.next = self.population.val() + 1;
        }
        self.counted.ok.next = self.block.depth.val() == self.population.val();
    }
}

/// The quotas, used as they have to be.
#[block]
pub struct QuotaProof {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset.
    pub reset: Signal<In, Bit>,
    /// Endpoint that is asked about, and takes.
    pub endpoint: Signal<In, Bits<8>>,
    /// `endpoint` takes one.
    pub take: Signal<In, Bit>,
    /// As of the block.
    pub give: Signal<In, Bit>,
    /// As of the block.
    pub give_endpoint: Signal<In, Bits<8>>,
    #[is(Quota::new(QUOTA_ENDPOINTS, QUOTA_CAPACITY, QUOTA_RESERVED))]
    block: Quota,
    below: Signal<Local, Bit>,
    giver_has: Signal<Local, Bit>,
    takes_with_room: Duty,
    gives_what_it_has: Duty,
    what_is_reserved_is_there: Check,
    who_has_room_fits: Check,
    #[is(QUOTA_ENDPOINTS)]
    _endpoints: usize,
}

#[block]
impl Logic for QuotaProof {
    fn update(&mut self) {
        self.block.endpoint.next = self.endpoint.val();
        self.block.take.next = self.take.val();
        self.block.take_bit.next = bits::<32>(1) << self.endpoint.val();
        self.block.give.next = self.give.val();
        self.block.give_bit.next = bits::<32>(1) << self.give_endpoint.val();
        self.below.next = false;
        self.giver_has.next = false;
        for e in 0..self._endpoints {
            if self.endpoint.val() == e.to_bits() {
                self.below.next = self.block.held[e].val() < QUOTA_RESERVED;
            }
            if self.give_endpoint.val() == e.to_bits() {
                self.giver_has.next = self.block.held[e].val() != 0;
            }
        }
        self.takes_with_room.ok.next = !self.take.val() | self.block.room.val();
        self.gives_what_it_has.ok.next = !self.give.val() | self.giver_has.val();
        self.what_is_reserved_is_there.ok.next =
            !self.below.val() | (self.block.room.val() & (self.block.used.val() < QUOTA_CAPACITY));
        self.who_has_room_fits.ok.next =
            !self.block.room.val() | (self.block.used.val() < QUOTA_CAPACITY);
    }
}

/// What is proved here.
pub fn proofs() -> Vec<Proof> {
    let engine = [breaks::associative(), breaks::exact()].concat();
    let broken = |names: &[&str]| Break::named(&engine, names);
    let order = [
        "lose_cancels",
        "delay_cancels",
        "match_twice",
        "forget_ages",
        "reuse_places",
        "find_removed",
        "choose_departing",
    ];
    let list = [
        "narrow_wildcards",
        "lose_multi",
        "widen_sources",
        "keep_hits",
    ];
    vec![
        Proof::of("quota", Method::Induction(2), QuotaProof::default)
            .broken_by(broken(&["overdraw_quota", "lose_quota"])),
        Proof::of("associative_order", Method::Induction(4), || {
            Associative::new(ENTRIES, ENDPOINTS, PAIRS, RESERVED).with_invariants()
        })
        .assuming(&["memory_agrees"])
        .broken_by(broken(&order)),
        Proof::of(
            "associative_list",
            Method::Bounded(15),
            AssociativeProof::default,
        )
        .broken_by(broken(&[&order[..], &list].concat())),
        Proof::of("lists_any", Method::Unrolled(26), || {
            ListsProof::new(&SMALLEST, 5)
        })
        .in_cases(vec![vec!["script=4294967295".to_string()]])
        .broken_by(broken(&["ignore_conflicts"])),
        Proof::of("lists_order", Method::Unrolled(64), || {
            ListsProof::new(&SMALLEST, 5)
        })
        .in_cases(vec![order_of_commands()])
        .broken_by(broken(&["newest_class", "keep_matched"])),
    ]
}
