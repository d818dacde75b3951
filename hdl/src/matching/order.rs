//! Places and ages of the entries of a list: where the next one goes, and which of those that a
//! search hit came first.
//!
//! ```text
//!   live ─┬► present ──► (compared) ─┬► (joined) ──► hits ──► age rows ─┬► chosen ──► encoder ──► number ──► index
//!         └► remaining ──────────────┘             (select) oldest      └► leaving (take), which isn't chosen
//!                                                                          again; that, or remove, clears its live bit
//!
//!   live ──► lowest vacant place ─┬► place_index
//!                                 └► filling (insert), which sets its live bit, and its age row
//! ```
//!
//! A search takes two steps. In the cycle of `select` the oldest of `hits` is chosen. From the next cycle on, until the next
//! `select`, `found` and `chosen` are the answer; `index` follows a cycle later. With `take`, the chosen entry leaves in that
//! next cycle, unless `spare` has its bit; a `select` in the cycle in which it leaves doesn't choose it again, so a message a
//! cycle can run through. `remove` takes the chosen entry out later, unless `keep` has its bit; nothing is chosen in that
//! cycle. `insert` fills the vacant place in the next cycle (`filling`). A change of the places shows in `place_index` two
//! cycles later, and the next `insert` waits for that.

use super::age::Age;
use super::one_hot::OneHot;
use crate::prelude::*;
use crate::prim::Lowest;

/// Most receives that the associative side can have, which keeps them in flip-flops: beyond that, these stop paying.
/// The exact and the unexpected side lie in block RAM and have no such limit.
pub const MAX_ENTRIES: usize = 64;

/// Order of a list of at most 64 entries.
#[block(entries: usize)]
pub struct Order {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset: the list is empty.
    pub reset: Signal<In, Bit>,
    /// Choose among `hits` in this cycle.
    pub select: Signal<In, Bit>,
    /// With `select`: what is chosen leaves in the next cycle.
    pub take: Signal<In, Bit>,
    /// Places that `take` spares.
    pub spare: Signal<In, Bits<64>>,
    /// Entries whose key agreed, of those that remained in the cycle before.
    pub hits: Signal<In, Bits<64>>,
    /// Remove the chosen entry, if there is one. Not with `select`.
    pub remove: Signal<In, Bit>,
    /// Places that `remove` spares.
    pub keep: Signal<In, Bits<64>>,
    /// Make the vacant place live in the next cycle, as the youngest.
    pub insert: Signal<In, Bit>,
    /// What leaves in this cycle because it was taken: the choice, or nothing.
    pub going: Signal<Out, Bits<64>>,
    /// Entries that live, whose keys may be compared.
    pub present: Signal<Out, Bits<64>>,
    /// Entries that live and aren't removed in this cycle.
    pub remaining: Signal<Out, Bits<64>>,
    /// What `select` chooses from: the hits that aren't leaving.
    pub candidates: Signal<Out, Bits<64>>,
    /// An entry was chosen.
    pub found: Signal<Out, Bit>,
    /// The chosen entry, one bit set.
    pub chosen: Signal<Out, Bits<64>>,
    /// Number of the entry that was chosen, a cycle after `chosen`.
    pub index: Signal<Out, Bits<16>>,
    /// The place that is being filled, one bit set, or none.
    pub filling: Signal<Out, Bits<64>>,
    /// Number of the place where the next entry goes.
    pub place_index: Signal<Out, Bits<16>>,
    /// Places that live.
    pub living: Signal<Out, Bits<64>>,
    /// For a proof: the age rows.
    #[is(vec![])]
    pub rows: Vec<Signal<Out, Bits<64>>>,
    live: Reg<Bits<64>>,
    choice: Reg<Bits<64>>,
    /// Its number, a cycle later.
    number: Reg<Bits<16>>,
    /// Whether `choice` has a bit: a wide OR, registered so that no path waits for it.
    chose: Reg<Bit>,
    /// Places that leave in this cycle if they were chosen.
    yielding: Reg<Bits<64>>,
    leaving: Signal<Local, Bits<64>>,
    /// Where the next entry goes, one bit set; none if the list is full.
    #[is(Reg::new(1u64.into()))]
    vacant: Reg<Bits<64>>,
    filled: Reg<Bits<64>>,
    #[each(entries)]
    age: Vec<Age>,
    chosen_number: OneHot,
    place_number: OneHot,
    departing: Signal<Local, Bits<64>>,
    eligible: Signal<Local, Bits<64>>,
    staying: Signal<Local, Bits<64>>,
    elders: Signal<Local, Bits<64>>,
    below: Signal<Local, Bits<64>>,
    /// Places that aren't the oldest hit since one above is older: by the remainder of that one by 8.
    #[each(8)]
    beaten: Vec<Signal<Local, Bits<64>>>,
    /// Places below which a hit is older, for one remainder of its place.
    behind: Signal<Local, Bits<64>>,
    /// Places that aren't the oldest hit.
    younger: Signal<Local, Bits<64>>,
    oldest: Signal<Local, Bits<64>>,
    empty_places: Signal<Local, Bits<64>>,
    empty_place: Lowest<64>,
    #[is(constant(u64::MAX >> (MAX_ENTRIES - entries)))]
    places: Constant<Bits<64>>,
    one_choice: Check,
    fills_a_vacant_place: Check,
    removes_a_live_entry: Check,
    #[is(entries)]
    _n: usize,
    #[is(0)]
    _proved: usize,
}

impl Order {
    /// Order of a list of `entries`.
    ///
    /// # Panics
    /// If there are none or more than [`MAX_ENTRIES`].
    pub fn new(entries: usize) -> Self {
        assert!((1..=MAX_ENTRIES).contains(&entries), "{entries} entries");
        Self::build(entries)
    }

    /// The same with its age rows as outputs.
    pub fn with_rows(self) -> Self {
        Self {
            rows: (0..self._n).map(|_| Signal::default()).collect(),
            _proved: self._n,
            ..self
        }
    }
}

#[block(entries = self._n)]
impl Logic for Order {
    fn update(&mut self) {
        self.leaving.next = self.choice.q.val() & self.yielding.q.val();
        self.going.next = self.leaving.val();
        self.departing.next = self.leaving.val();
        if self.remove.val() {
            self.departing.next = self.leaving.val() | (self.choice.q.val() & !self.keep.val());
        }
        self.eligible.next = self.hits.val() & !self.leaving.val();
        self.candidates.next = self.eligible.val();
        self.elders.next = self.places.val();
        self.filled.d.next = 0.into();
        if self.insert.val() {
            self.filled.d.next = self.vacant.q.val();
        }
        self.filling.next = self.filled.q.val();
        // Older entries are looked for in eight parts, by the remainder of the place by 8, so that all trees are equally deep.
        for g in 0..8 {
            self.beaten[g].next = 0.into();
        }
        self.below.next = 0.into();
        for i in 0..self._n {
            self.age[i].below.next = self.below.val();
            self.age[i].filled.next = self.filled.q.val();
            self.age[i].mine.next = self.filled.q.val().get_bit(i);
            self.age[i].elders.next = self.elders.val();
            self.age[i].hits.next = self.eligible.val();
            self.age[i].hit.next = self.eligible.val().get_bit(i);
            self.beaten[i % 8].next = self.beaten[i % 8].val() | self.age[i].beats.val();
            self.below.next = (self.below.val() << 1) | 1;
        }
        self.younger.next = 0.into();
        for g in 0..8 {
            self.behind.next = 0.into();
            for i in 0..self._n {
                self.behind.next = self
                    .behind
                    .val()
                    .replace_bit(i, self.age[i].behind.val().get_bit(g));
            }
            self.younger.next = self.younger.val() | (self.behind.val() | self.beaten[g].val());
        }
        self.oldest.next = self.eligible.val() & !self.younger.val();
        self.yielding.d.next = 0.into();
        if self.select.val() {
            self.choice.d.next = self.oldest.val();
            self.chose.d.next = self.eligible.val().any();
            if self.take.val() {
                self.yielding.d.next = !self.spare.val();
            }
        }

        self.empty_places.next = !self.live.q.val() & self.places.val();
        self.empty_place.set.next = self.empty_places.val();
        self.vacant.d.next = self.empty_place.lowest.val();

        self.staying.next = self.live.q.val() & !self.departing.val();
        self.live.d.next = self.staying.val() | self.filled.q.val();
        self.present.next = self.live.q.val();
        self.remaining.next = self.staying.val();

        self.chosen_number.vector.next = self.choice.q.val();
        self.place_number.vector.next = self.vacant.q.val();
        self.found.next = self.chose.q.val();
        self.chosen.next = self.choice.q.val();
        self.number.d.next = self.chosen_number.index.val();
        self.index.next = self.number.q.val();
        self.place_index.next = self.place_number.index.val();
        self.living.next = self.live.q.val();
        for i in 0..self._proved {
            self.rows[i].next = self.age[i].row.val();
        }

        self.one_choice.ok.next = !(self.choice.q.val() & (self.choice.q.val() - 1)).any()
            & (self.chose.q.val() == self.choice.q.val().any());
        self.fills_a_vacant_place.ok.next = (!self.insert.val() | self.vacant.q.val().any())
            & !(self.filled.q.val() & self.live.q.val()).any();
        self.removes_a_live_entry.ok.next = !(self.leaving.val() & !self.live.q.val()).any()
            & (!self.remove.val()
                | (!self.select.val() & !(self.choice.q.val() & !self.live.q.val()).any()));
    }
}
