//! What always holds of the associative side, for a proof by induction.
//!
//! In a proof by induction the solver starts from any state that the checks allow. The checks of a card look at what
//! happens; those here say which states exist at all: the age rows agree with the ages, and every count is the number of
//! the entries that it counts.
//!
//! ```text
//!   rows ◄── agree ──► ages ◄── are past ──► last_age
//!   live ◄── counted by ──► depth, used, counts[endpoint]
//!   chosen, cancelled, hits ◄── live or not ──► live
//! ```
//!
//! There are as many comparisons as pairs of entries, so they are in the gates only where a proof is made.

use crate::prelude::*;

/// The state of an `Associative` and what holds of it.
#[block(entries: usize, endpoints: usize)]
pub struct Invariants {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// While this is set, nothing is claimed.
    pub reset: Signal<In, Bit>,
    /// Places that live.
    pub live: Signal<In, Bits<64>>,
    /// How many places live.
    pub depth: Signal<In, Bits<16>>,
    /// The choice, one bit set or none.
    pub chosen: Signal<In, Bits<64>>,
    /// The choice, if it leaves in this cycle; one bit set or none.
    pub leaving: Signal<In, Bits<64>>,
    /// What was found is taken in this cycle, and isn't `multi`.
    pub taking: Signal<In, Bit>,
    /// Places that agreed with what is looked for, joined.
    pub hits: Signal<In, Bits<64>>,
    /// The place that is filled, one bit set, or none.
    pub filling: Signal<In, Bits<64>>,
    /// A place is filled in this cycle.
    pub inserting: Signal<In, Bit>,
    /// The choice has been removed.
    pub departed: Signal<In, Bit>,
    /// Places whose last entry was cancelled.
    pub cancelled: Signal<In, Bits<64>>,
    /// The youngest age given so far.
    pub last_age: Signal<In, Bits<54>>,
    /// An age has been given.
    pub any_age: Signal<In, Bit>,
    /// By place: which others are older.
    #[each(entries)]
    pub rows: Vec<Signal<In, Bits<64>>>,
    /// By place: the age.
    #[each(entries)]
    pub ages: Vec<Signal<In, Bits<54>>>,
    /// By place: the endpoint.
    #[each(entries)]
    pub endpoints: Vec<Signal<In, Bits<8>>>,
    /// An entry was removed in the cycle before; its quota isn't given back yet.
    pub gone: Signal<In, Bit>,
    /// With `gone`: whose.
    pub gone_endpoint: Signal<In, Bits<8>>,
    /// By endpoint: its quota in use.
    #[each(endpoints)]
    pub counts: Vec<Signal<In, Bits<16>>>,
    /// The sum of those.
    pub used: Signal<In, Bits<16>>,
    number: Signal<Local, Bits<16>>,
    agree: Signal<Local, Bit>,
    past: Signal<Local, Bit>,
    population: Signal<Local, Bits<16>>,
    of_endpoints: Signal<Local, Bit>,
    of_endpoint: Signal<Local, Bits<16>>,
    with_gone: Signal<Local, Bits<16>>,
    #[is(constant(u64::MAX >> (64 - entries)))]
    places: Constant<Bits<64>>,
    rows_agree_with_ages: Check,
    ages_are_past: Check,
    depth_counts_the_living: Check,
    quotas_count_the_living: Check,
    choice_lives_until_it_departs: Check,
    cancelled_are_dead: Check,
    choice_leaves: Check,
    hits_are_live: Check,
    one_place_is_filled: Check,
    #[is(entries)]
    _n: usize,
    #[is(endpoints)]
    _endpoints: usize,
}

impl Invariants {
    /// Of so many entries and endpoints.
    pub fn new(entries: usize, endpoints: usize) -> Self {
        Self::build(entries, endpoints)
    }
}

#[block(entries = self._n)]
impl Logic for Invariants {
    fn update(&mut self) {
        // Of two that live exactly one is older, and the row of the higher place knows which.
        self.agree.next = true;
        self.past.next = true;
        self.population.next = 0.into();
        for i in 0..self._n {
            self.number.next = i.to_bits();
            for j in 0..self._n {
                if (self.number.val() > j.to_bits())
                    & self.live.val().get_bit(i)
                    & self.live.val().get_bit(j)
                    & ((self.ages[i].val() == self.ages[j].val())
                        | (self.rows[i].val().get_bit(j)
                            != (self.ages[j].val() < self.ages[i].val())))
                {
                    self.agree.next = false;
                }
            }
            if self.live.val().get_bit(i) {
                self.population.next = self.population.val() + 1;
                if !self.any_age.val() | (self.last_age.val() < self.ages[i].val()) {
                    self.past.next = false;
                }
            }
        }
        self.rows_agree_with_ages.ok.next = self.agree.val();
        self.ages_are_past.ok.next = self.past.val();
        self.depth_counts_the_living.ok.next = (self.depth.val() == self.population.val())
            & !(self.live.val() & !self.places.val()).any();

        self.with_gone.next = self.depth.val();
        if self.gone.val() {
            self.with_gone.next = self.depth.val() + 1;
        }
        self.of_endpoints.next = true;
        for e in 0..self._endpoints {
            self.of_endpoint.next = 0.into();
            if self.gone.val() & (self.gone_endpoint.val() == e.to_bits()) {
                self.of_endpoint.next = 1.into();
            }
            for i in 0..self._n {
                if self.live.val().get_bit(i) & (self.endpoints[i].val() == e.to_bits()) {
                    self.of_endpoint.next = self.of_endpoint.val() + 1;
                }
            }
            if self.counts[e].val() != self.of_endpoint.val() {
                self.of_endpoints.next = false;
            }
        }
        self.quotas_count_the_living.ok.next =
            self.of_endpoints.val() & (self.used.val() == self.with_gone.val());

        self.choice_lives_until_it_departs.ok.next =
            self.departed.val() | !(self.chosen.val() & !self.live.val()).any();
        self.cancelled_are_dead.ok.next = !(self.cancelled.val() & self.live.val()).any();
        self.choice_leaves.ok.next = !self.leaving.val().any();
        if self.taking.val() {
            self.choice_leaves.ok.next =
                (self.leaving.val() == self.chosen.val()) & !self.departed.val();
        }
        self.hits_are_live.ok.next = !(self.hits.val() & !self.live.val()).any();
        self.one_place_is_filled.ok.next = (self.inserting.val() == self.filling.val().any())
            & !(self.filling.val() & (self.filling.val() - 1)).any();
    }
}
