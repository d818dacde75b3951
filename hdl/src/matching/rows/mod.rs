//! The unexpected messages: those that arrived before their receive.
//!
//! A message rests at a place of its pair. The places of a pair are units of [`UNIT_PLACES`], which it gets when it comes and which needn't be
//! neighbours; a unit is a few rows of the memory, or one. A receive that names its
//! source looks at the rows of that pair's units; one that takes any source looks at the rows that hold a message of its endpoint,
//! which are a list:
//!
//! ```text
//!                        place 0    place 1        place n-1     row       list of the endpoint
//!                      ┌──────────┬──────────┬ ┄ ┬──────────┐ ┌───────┬─────────────────────────┐
//!   unit 0     row 0   │ bits,    │          │   │          │ │ live, │ next ─┐  before, owner  │
//!              row 1   │ context, │          │   │          │ │ order │ ◄─────┘                 │
//!   unit 1     row 2   │ age      │          │   │          │ │       │                         │
//!              ┆       └────┬─────┴────┬─────┴ ┄ ┴────┬─────┘ └───┬───┘                         │
//!                         hit?       hit?           hit?          │        a row a cycle
//!                           └──────────┴── earliest of the row ◄──┘
//!                                               └──► earliest of all rows ──► found, index
//! ```
//!
//! Within a row the order is kept in bits, so that the earliest of the hits is found in one step;
//! among rows ages decide. Everything that grows with the number of messages is memory.
//!
//! | cycle | search that names its source | any source | insert |
//! |---|---|---|---|
//! | 0 | its first unit is read | head of the list is read | unit of its slot is read |
//! | 1 | its first row is read | first link is read | row and head are read |
//! | 2 | the next row | first row is read | message is written |
//! | 3 | first row in registers, compared | the second row (a row a cycle) | order, live bit and link are written |
//! | 4 | its earliest hit | | `ready` |
//! | 6 | better than the best so far? | | |
//! | 5 + rows | `done`, or at 2 if the pair has no unit | `done` at 6 + rows | |
//!
//! A message that is found and removed takes three cycles more until `ready`.
//!
//! The kernel's sections: `walk` has the steps of an operation, `compare` what becomes of the rows that it reads,
//! `memories` what is read and written, `checks` the claims.

mod checks;
mod compare;
mod memories;
mod walk;

use super::place::{MAX_PLACES, Place, Sought};
use crate::prelude::*;
use crate::prim::{BlockRam, Ram, Table};
use crate::types::PlaceUnit;
use abi::limits::{MAX_CREDITS, MAX_ENDPOINTS, UNIT_PLACES};

const _: () = assert!(MAX_CREDITS == 64, "a slot has six bits");
const _: () = assert!(UNIT_PLACES == 8, "the kernel cuts places here");
const _: () = assert!(MAX_ENDPOINTS <= 32, "`waiting` has a bit for each");

/// The key of an operation.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Key {
    endpoint: Bits<8>,
    pair: Bits<16>,
    by_pair: Bit,
    by_place: Bit,
    any_source: Bit,
    context_id: Bits<16>,
    match_bits: Bits<64>,
    care_bits: Bits<64>,
    age: Bits<54>,
    remove: Bit,
}

/// What is kept of a row beside its messages.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Row {
    live: Bits<8>,
    order: Elders,
}

/// For each place the lower ones whose message is older; see [`Place`].
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Elders {
    place1: Bits<1>,
    place2: Bits<2>,
    place3: Bits<3>,
    place4: Bits<4>,
    place5: Bits<5>,
    place6: Bits<6>,
    place7: Bits<7>,
}

/// A row's link to the next of its list.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Link {
    row: Bits<16>,
    /// There is none.
    last: Bit,
    /// Endpoint whose list it is.
    owner: Bits<8>,
}

/// The earliest message found so far.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Candidate {
    found: Bit,
    row: Bits<16>,
    number: Bits<8>,
    age: Bits<54>,
    owner: Bits<8>,
    /// What its row holds.
    contents: Row,
}

/// Where an operation is.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Walk {
    Clear,
    Idle,
    /// The row is read in which a message is put; then both are written.
    Insert,
    Store,
    /// The unit of the message's slot is known, and so is its row.
    Place,
    /// Rows of the pair are read: the first of a unit, which comes out of the memory, or a further one of it; then the last of them are compared.
    Unit,
    Pair,
    Drain,
    /// The endpoint's first link is read; then its rows are, and the last of them compared.
    Head,
    Rows,
    /// The links of the message's row are read; then the row is written, and unlinked if it is empty.
    Remove,
    Removed,
    Unlink,
}

/// Units of a pair, at most.
const UNITS: usize = (MAX_CREDITS / UNIT_PLACES) as usize;

/// The unexpected messages of a card.
#[block(endpoints: usize, pairs: usize, comparators: usize, rows: usize)]
pub struct UnexpectedRows {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset: there are no messages.
    pub reset: Signal<In, Bit>,
    /// The memory is cleared.
    pub initialized: Signal<Out, Bit>,
    /// A unit of places that a pair gets, or that it has none any more; none of the pair's is in use, and no operation of it under way.
    pub unit: Pulse<In, PlaceUnit>,
    /// An operation may begin.
    pub ready: Signal<Out, Bit>,
    /// A pulse, with `ready`: a message with this key waits from now on.
    pub insert: Signal<In, Bit>,
    /// A pulse, with `ready`: look for the earliest message that agrees with the key.
    pub search: Signal<In, Bit>,
    /// Key: endpoint.
    pub endpoint: Signal<In, Bits<8>>,
    /// Key: source.
    pub pair: Signal<In, Bits<16>>,
    /// Key: any source matches.
    pub any_source: Signal<In, Bit>,
    /// Look for whatever is of `pair`, of any endpoint; goes before `any_source`.
    pub by_pair: Signal<In, Bit>,
    /// With `by_pair`: only what is in `slot`.
    pub by_place: Signal<In, Bit>,
    /// Key: context.
    pub context_id: Signal<In, Bits<16>>,
    /// Key: match bits.
    pub match_bits: Signal<In, Bits<64>>,
    /// Key: match bits that needn't agree.
    pub ignore_bits: Signal<In, Bits<64>>,
    /// Slot of the message among those of `pair`; of one that is inserted, vacant.
    pub slot: Signal<In, Bits<6>>,
    /// The message found is removed.
    pub remove: Signal<In, Bit>,
    /// A pulse: a search ends, with `done` in the next cycle.
    pub ends: Signal<Out, Bit>,
    /// A pulse: a search has ended.
    pub done: Signal<Out, Bit>,
    /// From `done` until the next operation: a message was found.
    pub found: Signal<Out, Bit>,
    /// With `found`: its place.
    pub index: Signal<Out, Bits<16>>,
    /// Endpoints that a message waits for, a bit for each; true from the cycle after `insert` on, false when
    /// `ready` after the last removal.
    pub waiting: Signal<Out, Bits<32>>,
    /// Messages.
    pub depth: Signal<Out, Bits<16>>,

    #[is((0..comparators).map(|number| Place::new(rows, number)).collect())]
    place: Vec<Place>,
    /// How many units each pair has, and which.
    #[is(Table::new(pairs))]
    counts: Table<Bits<4>>,
    #[is(Ram::new(pairs * UNITS))]
    units: Ram<Bits<8>>,
    #[is(BlockRam::new(rows))]
    rows: BlockRam<Row>,
    #[is(BlockRam::new(rows))]
    links: BlockRam<Link>,
    /// The row before, in the list.
    #[is(BlockRam::new(rows))]
    befores: BlockRam<Bits<16>>,
    /// The first row of each endpoint's list; of those that `waiting` names.
    #[is(BlockRam::new(endpoints))]
    heads: BlockRam<Bits<16>>,
    walk: Reg<Walk>,
    /// No operation is under way: the register behind `ready`.
    idle: Reg<Bit>,
    key: Reg<Key>,
    /// The part of the key that the places compare: a copy, since the comparators are far from the memories.
    sought: Reg<Sought>,
    /// Slot of the key.
    slot_held: Reg<Bits<6>>,
    /// The operation is an insertion.
    inserts: Reg<Bit>,
    /// Number of the pair's unit that comes out of the memory.
    next_unit: Reg<Bits<4>>,
    key_row: Reg<Bits<16>>,
    key_place: Reg<Bits<8>>,
    /// The endpoint of the key had a message before.
    had: Reg<Bit>,
    /// The row of the pair to be read next, or to be cleared.
    cursor: Reg<Bits<16>>,
    /// The row of the list to be read next; its link is known.
    listed: Reg<Bits<16>>,
    /// There is such a row.
    follows: Reg<Bit>,
    waits: Reg<Bits<32>>,
    count: Reg<Bits<16>>,
    /// Age of the next message: one more than the last one's.
    number: Reg<Bits<54>>,
    answered: Reg<Bit>,

    // The row that was read in the cycle before, then in registers, compared, and its earliest hit.
    read_valid: Reg<Bit>,
    read_last: Reg<Bit>,
    read_at: Reg<Bits<16>>,
    entry_valid: Reg<Bit>,
    entry_last: Reg<Bit>,
    entry_at: Reg<Bits<16>>,
    entry_row: Reg<Row>,
    entry_owner: Reg<Bits<8>>,
    hits_valid: Reg<Bit>,
    hits_last: Reg<Bit>,
    hits_at: Reg<Bits<16>>,
    hits_row: Reg<Row>,
    hits_owner: Reg<Bits<8>>,
    first_valid: Reg<Bit>,
    first_last: Reg<Bit>,
    first: Reg<Candidate>,
    best: Reg<Candidate>,
    // Links of the row of the message that is removed.
    gone_link: Reg<Link>,
    gone_before: Reg<Bits<16>>,
    gone_is_head: Reg<Bit>,
    gone_alone: Reg<Bit>,

    next_walk: Signal<Local, Walk>,
    /// The search looks at the rows of one pair.
    names_source: Signal<Local, Bit>,
    /// The last row of a search has been compared.
    row_ends: Signal<Local, Bit>,
    /// What it found is to be removed.
    removes: Signal<Local, Bit>,
    /// In `Clear`: the last row is being cleared.
    cleared: Signal<Local, Bit>,
    /// First row of the unit that comes out of the memory; row of the key's message, if it is its unit.
    unit_row: Signal<Local, Bits<16>>,
    place_row: Signal<Local, Bits<16>>,
    unit_address: Signal<Local, Bits<16>>,
    /// The pair has no unit; the row that is read is the last of its unit; the unit is the pair's last, before and after its number moved on.
    has_none: Signal<Local, Bit>,
    ends_unit: Signal<Local, Bit>,
    ends_units: Signal<Local, Bit>,
    was_last: Signal<Local, Bit>,
    read_row: Signal<Local, Bits<16>>,
    link_row: Signal<Local, Bits<16>>,
    other_row: Signal<Local, Bits<16>>,
    endpoint_bit: Signal<Local, Bits<32>>,
    owner_bit: Signal<Local, Bits<32>>,
    place_bit: Signal<Local, Bits<8>>,
    best_bit: Signal<Local, Bits<8>>,
    read_link: Signal<Local, Link>,
    new_link: Signal<Local, Link>,
    row: Signal<Local, Row>,
    new_row: Signal<Local, Row>,
    /// The row that is compared is of the endpoint that is looked for.
    of_endpoint: Signal<Local, Bit>,
    may_be_found: Signal<Local, Bit>,
    live: Signal<Local, Bits<8>>,
    entry_order: Signal<Local, Bits<64>>,
    found_order: Signal<Local, Bits<64>>,
    order_after: Signal<Local, Bits<64>>,
    order_before: Signal<Local, Elders>,
    order_found: Signal<Local, Elders>,
    new_order: Signal<Local, Elders>,
    hits: Signal<Local, Bits<8>>,
    beaten: Signal<Local, Bits<8>>,
    first_age: Signal<Local, Bits<54>>,
    first_number: Signal<Local, Bits<8>>,
    better: Signal<Local, Bit>,
    empties: Signal<Local, Bit>,
    unlinks: Signal<Local, Bit>,
    best_row: Signal<Local, Row>,
    links_row: Signal<Local, Bit>,

    #[is(constant(u64::from(comparators.ilog2())))]
    row_shift: Constant<Bits<8>>,
    /// Log2 of the rows of a unit.
    #[is(constant(u64::from((usize::from(UNIT_PLACES) / comparators).ilog2())))]
    unit_shift: Constant<Bits<8>>,
    #[is(constant(comparators as u64 - 1))]
    place_mask: Constant<Bits<8>>,
    /// Number of a row within its unit.
    #[is(constant(u64::from(UNIT_PLACES) / comparators as u64 - 1))]
    unit_mask: Constant<Bits<16>>,
    #[is(constant(rows as u64 - 1))]
    last_row: Constant<Bits<16>>,
    #[is(constant((rows * comparators) as u64))]
    capacity: Constant<Bits<17>>,
    #[is(constant(endpoints as u64))]
    endpoints: Constant<Bits<8>>,
    /// A bit for each of them.
    #[is(constant((1u64 << endpoints) - 1))]
    endpoint_bits: Constant<Bits<32>>,
    #[is(constant(pairs as u64))]
    pairs: Constant<Bits<16>>,

    // For the checks only.
    linked: Reg<Bits<16>>,
    one_operation_at_a_time: Check,
    key_names_what_there_is: Check,
    ready_when_idle: Check,
    slot_is_of_its_pair: Check,
    fills_a_vacant_place: Check,
    removes_a_live_message: Check,
    listed_row_has_a_message: Check,
    list_leads_back: Check,
    empty_list_has_no_messages: Check,
    depth_is_within_the_places: Check,
    #[is(comparators)]
    _n: usize,
    #[is(rows)]
    _rows: usize,
}

impl UnexpectedRows {
    /// `places` for messages of `pairs` pairs, of `endpoints` endpoints, of which a
    /// search looks at `comparators` in a cycle.
    ///
    /// # Panics
    /// If `comparators` isn't 2, 4 or 8, if there are more than `MAX_ENDPOINTS` endpoints or fewer than
    /// 2, or if the places aren't a number of units, more than one.
    pub fn new(endpoints: usize, pairs: usize, places: usize, comparators: usize) -> Self {
        assert!(
            [2, 4, MAX_PLACES].contains(&comparators),
            "{comparators} comparators"
        );
        assert!(
            (2..=MAX_ENDPOINTS).contains(&endpoints),
            "{endpoints} endpoints"
        );
        assert!(
            places.is_multiple_of(UNIT_PLACES.into()) && (16..=1 << 16).contains(&places),
            "{places} places"
        );
        let rows = places / comparators;
        Self::build(endpoints, pairs, comparators, rows)
    }
}

#[block(rows = self._rows, comparators = self._n)]
impl Logic for UnexpectedRows {
    fn update(&mut self) {
        self.initialized.next = (self.walk.q.val() != Walk::Clear) & self.counts.initialized.val();
        self.ready.next = self.idle.q.val();
        self.done.next = self.answered.q.val();
        self.found.next = self.best.q.val().found;
        self.index.next = (self.best.q.val().row << self.row_shift.val())
            | bit_cast::<16, 8>(self.best.q.val().number);
        self.waiting.next = self.waits.q.val();
        self.depth.next = self.count.q.val();

        // A unit's first row, and in it the row of the key's slot.
        self.unit_row.next = bit_cast::<16, 8>(self.units.read_data.val()) << self.unit_shift.val();
        self.place_row.next = self.unit_row.val()
            | (bit_cast::<16, 6>(self.slot_held.q.val() & 7) >> self.row_shift.val());
        self.endpoint_bit.next = (bits::<32>(1) << self.endpoint.val()) & self.endpoint_bits.val();
        self.move_rows();
        self.compare();
        self.leave_memories();
        self.step();
        self.address();
        self.check();
    }
}
