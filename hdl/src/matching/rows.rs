//! The unexpected messages: those that arrived before their receive.
//!
//! A message rests at a place of its pair. The places of a pair are a few rows of the memory. A receive that names its
//! source looks at the rows of that pair; one that takes any source looks at the rows that hold a message of its endpoint,
//! which are a list:
//!
//! ```text
//!                        place 0    place 1        place n-1     row       list of the endpoint
//!                      ┌──────────┬──────────┬ ┄ ┬──────────┐ ┌───────┬─────────────────────────┐
//!   pair 0     row 0   │ bits,    │          │   │          │ │ live, │ next ─┐  before, owner  │
//!              row 1   │ context, │          │   │          │ │ order │ ◄─────┘                 │
//!   pair 1     row 2   │ age      │          │   │          │ │       │                         │
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
//! | 0 | its first row is read | head of the list is read | row and head are read |
//! | 1 | the next row | first link is read | message is written |
//! | 2 | first row in registers, compared | first row is read | order, live bit and link are written |
//! | 3 | its earliest hit | the second row (a row a cycle) | `ready` |
//! | 5 | better than the best so far? | | |
//! | 4 + rows | `done` | `done` at 6 + rows | |
//!
//! A message that is found and removed takes three cycles more until `ready`.

use super::place::{MAX_PLACES, Place, Sought};
use crate::prelude::*;
use crate::prim::BlockRam;
use abi::limits::{MAX_CREDITS, MAX_ENDPOINTS};
use abi::request::place;

const _: () = assert!(MAX_CREDITS == 16, "a slot has four bits");
const _: () = assert!(place(1, 0) == 1 << 4, "the kernel makes places so");
const _: () = assert!(MAX_ENDPOINTS <= 32, "`waiting` has a bit for each");

/// The key of an operation.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Key {
    endpoint: Bits<8>,
    pair: Bits<16>,
    by_pair: Bit,
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
    /// Rows of the pair are read; then the last of them are compared.
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

/// The unexpected messages of a card.
#[block(endpoints: usize, pairs: usize, comparators: usize, rows: usize)]
pub struct UnexpectedRows {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset: there are no messages.
    pub reset: Signal<In, Bit>,
    /// The memory is cleared.
    pub initialized: Signal<Out, Bit>,
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
    /// Key: context.
    pub context_id: Signal<In, Bits<16>>,
    /// Key: match bits.
    pub match_bits: Signal<In, Bits<64>>,
    /// Key: match bits that needn't agree.
    pub ignore_bits: Signal<In, Bits<64>>,
    /// Place of the message among those of `pair`, which must be vacant.
    pub slot: Signal<In, Bits<4>>,
    /// Age of the message, greater than that of any message that waits.
    pub age: Signal<In, Bits<54>>,
    /// The message found is removed.
    pub remove: Signal<In, Bit>,
    /// A pulse: a search ends, with `done` in the next cycle.
    pub ends: Signal<Out, Bit>,
    /// A pulse: a search has ended.
    pub done: Signal<Out, Bit>,
    /// From `done` until the next operation: a message was found.
    pub found: Signal<Out, Bit>,
    /// With `found`: its pair times 16 plus its slot.
    pub index: Signal<Out, Bits<16>>,
    /// Endpoints that a message waits for, a bit for each; true from the cycle after `insert` on, false when
    /// `ready` after the last removal.
    pub waiting: Signal<Out, Bits<32>>,
    /// Messages.
    pub depth: Signal<Out, Bits<16>>,

    #[is((0..comparators).map(|number| Place::new(rows, number)).collect())]
    place: Vec<Place>,
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
    place_index: Signal<Local, Bits<16>>,
    pair_row: Signal<Local, Bits<16>>,
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
    #[is(constant(comparators as u64 - 1))]
    place_mask: Constant<Bits<16>>,
    /// Number of a row within its pair.
    #[is(constant(u64::from(MAX_CREDITS) / comparators as u64 - 1))]
    pair_mask: Constant<Bits<16>>,
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
    newest: Reg<Bits<54>>,
    one_operation_at_a_time: Check,
    key_names_what_there_is: Check,
    ready_when_idle: Check,
    messages_come_in_order: Check,
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
    /// Places for `MAX_CREDITS` messages of each of `pairs` pairs, of `endpoints` endpoints, of which a
    /// search looks at `comparators` in a cycle.
    ///
    /// # Panics
    /// If `comparators` isn't 2, 4 or 8, if there are more than `MAX_ENDPOINTS` endpoints or fewer than
    /// 2, or more pairs than the index can name.
    pub fn new(endpoints: usize, pairs: usize, comparators: usize) -> Self {
        assert!(
            [2, 4, MAX_PLACES].contains(&comparators),
            "{comparators} comparators"
        );
        assert!(
            (2..=MAX_ENDPOINTS).contains(&endpoints),
            "{endpoints} endpoints"
        );
        let places = pairs * usize::from(MAX_CREDITS);
        assert!((1..=1 << 16).contains(&places), "{pairs} pairs");
        let rows = places / comparators;
        Self::build(endpoints, pairs, comparators, rows)
    }
}

#[block(rows = self._rows, comparators = self._n)]
impl Logic for UnexpectedRows {
    fn update(&mut self) {
        self.initialized.next = self.walk.q.val() != Walk::Clear;
        self.ready.next = self.idle.q.val();
        self.done.next = self.answered.q.val();
        self.found.next = self.best.q.val().found;
        self.index.next = (self.best.q.val().row << self.row_shift.val())
            | bit_cast::<16, 8>(self.best.q.val().number);
        self.waiting.next = self.waits.q.val();
        self.depth.next = self.count.q.val();

        // Where the key's message is, or its source's first row.
        self.pair_row.next = (self.pair.val() << 4) >> self.row_shift.val();
        self.place_index.next = (self.pair.val() << 4) | bit_cast::<16, 4>(self.slot.val());
        self.endpoint_bit.next = (bits::<32>(1) << self.endpoint.val()) & self.endpoint_bits.val();

        // A row that is read is compared in the cycle after the next, and so on.
        self.row.next = self.rows.read_data.val();
        self.read_link.next = self.links.read_data.val();
        self.read_valid.d.next = false;
        self.read_last.d.next = false;
        self.entry_valid.d.next = self.read_valid.q.val();
        self.entry_last.d.next = self.read_last.q.val();
        self.hits_valid.d.next = self.entry_valid.q.val();
        self.hits_last.d.next = self.entry_last.q.val();
        self.first_valid.d.next = self.hits_valid.q.val();
        self.first_last.d.next = self.hits_last.q.val();
        if self.read_valid.q.val() {
            self.entry_at.d.next = self.read_at.q.val();
            self.entry_row.d.next = self.row.val();
            // The rows of a list are their endpoint's.
            self.entry_owner.d.next = self.read_link.val().owner;
            if self.key.q.val().any_source {
                self.entry_owner.d.next = self.key.q.val().endpoint;
            }
        }
        self.of_endpoint.next = self.entry_owner.q.val() == self.key.q.val().endpoint;
        self.may_be_found.next =
            self.entry_valid.q.val() & (self.key.q.val().by_pair | self.of_endpoint.val());
        self.live.next = self.entry_row.q.val().live;
        if self.entry_valid.q.val() {
            self.hits_at.d.next = self.entry_at.q.val();
            self.hits_row.d.next = self.entry_row.q.val();
            self.hits_owner.d.next = self.entry_owner.q.val();
        }

        // Comparison, and the earliest of a row. What takes all of a pair compares nothing.
        self.sought.d.next.by_pair = self.key.q.val().by_pair;
        self.sought.d.next.context_id = self.key.q.val().context_id;
        self.sought.d.next.match_bits = self.key.q.val().match_bits;
        self.sought.d.next.care_bits = self.key.q.val().care_bits;
        if self.key.q.val().by_pair {
            self.sought.d.next.care_bits = 0.into();
        }
        self.order_before.next = self.entry_row.q.val().order;
        self.order_found.next = self.hits_row.q.val().order;
        self.entry_order.next = (bit_cast::<64, 1>(self.order_before.val().place1) << 8)
            | (bit_cast::<64, 2>(self.order_before.val().place2) << 16)
            | (bit_cast::<64, 3>(self.order_before.val().place3) << 24)
            | (bit_cast::<64, 4>(self.order_before.val().place4) << 32)
            | (bit_cast::<64, 5>(self.order_before.val().place5) << 40)
            | (bit_cast::<64, 6>(self.order_before.val().place6) << 48)
            | (bit_cast::<64, 7>(self.order_before.val().place7) << 56);
        self.found_order.next = (bit_cast::<64, 1>(self.order_found.val().place1) << 8)
            | (bit_cast::<64, 2>(self.order_found.val().place2) << 16)
            | (bit_cast::<64, 3>(self.order_found.val().place3) << 24)
            | (bit_cast::<64, 4>(self.order_found.val().place4) << 32)
            | (bit_cast::<64, 5>(self.order_found.val().place5) << 40)
            | (bit_cast::<64, 6>(self.order_found.val().place6) << 48)
            | (bit_cast::<64, 7>(self.order_found.val().place7) << 56);
        self.order_after.next = 0.into();
        self.hits.next = 0.into();
        self.beaten.next = 0.into();
        self.first_age.next = 0.into();
        self.first_number.next = 0.into();
        for i in 0..self._n {
            self.hits.next = self.hits.val().replace_bit(i, self.place[i].hit.val());
            self.beaten.next = self.beaten.val() | self.place[i].beats.val();
            self.first_age.next = self.first_age.val() | self.place[i].first_age.val();
            self.first_number.next = self.first_number.val() | self.place[i].first_number.val();
            self.order_after.next = self.order_after.val() | self.place[i].order_after.val();
        }
        self.new_order.next = Elders::default();
        self.new_order.next.place1 = self.order_after.val().get_bits::<1>(8);
        self.new_order.next.place2 = self.order_after.val().get_bits::<2>(16);
        self.new_order.next.place3 = self.order_after.val().get_bits::<3>(24);
        self.new_order.next.place4 = self.order_after.val().get_bits::<4>(32);
        self.new_order.next.place5 = self.order_after.val().get_bits::<5>(40);
        self.new_order.next.place6 = self.order_after.val().get_bits::<6>(48);
        self.new_order.next.place7 = self.order_after.val().get_bits::<7>(56);
        if self.hits_valid.q.val() {
            self.first.d.next.found = self.hits.val().any();
            self.first.d.next.row = self.hits_at.q.val();
            self.first.d.next.number = self.first_number.val();
            self.first.d.next.age = self.first_age.val();
            self.first.d.next.owner = self.hits_owner.q.val();
            self.first.d.next.contents = self.hits_row.q.val();
        }
        self.better.next = self.first.q.val().age < self.best.q.val().age;
        if self.first_valid.q.val()
            & self.first.q.val().found
            & (!self.best.q.val().found | self.better.val())
        {
            self.best.d.next = self.first.q.val();
        }

        // Memories.
        self.read_row.next = self.cursor.q.val();
        self.other_row.next = self.cursor.q.val();
        self.listed.d.next = self.read_link.val().row;
        self.follows.d.next = false;
        self.rows.write_enable.next = false;
        self.rows.write_address.next = self.key_row.q.val();
        self.new_row.next = Row::default();
        self.links.write_enable.next = false;
        self.links.write_address.next = self.key_row.q.val();
        self.new_link.next = Link::default();
        self.befores.write_enable.next = false;
        self.befores.write_address.next = self.heads.read_data.val();
        self.befores.write_data.next = self.key_row.q.val();
        self.heads.read_address.next = bit_cast::<16, 8>(self.key.q.val().endpoint);
        self.heads.write_enable.next = false;
        self.heads.write_address.next = bit_cast::<16, 8>(self.key.q.val().endpoint);
        self.heads.write_data.next = self.key_row.q.val();

        self.place_bit.next = bits::<8>(1) << self.key_place.q.val();
        self.best_bit.next = bits::<8>(1) << self.best.q.val().number;
        self.owner_bit.next = (bits::<32>(1) << self.best.q.val().owner) & self.endpoint_bits.val();
        self.links_row.next = false;
        self.empties.next = false;
        self.unlinks.next = false;
        self.best_row.next = self.best.q.val().contents;
        self.ends.next = false;
        // The last row of a search ends it, or goes over to the removal of what it found.
        self.row_ends.next = self.first_valid.q.val() & self.first_last.q.val();
        self.removes.next =
            self.key.q.val().remove & (self.first.q.val().found | self.best.q.val().found);
        self.cleared.next = self.cursor.q.val() == self.last_row.val();
        self.names_source.next = self.by_pair.val() | !self.any_source.val();
        self.next_walk.next = self.walk.q.val();
        match self.walk.q.val() {
            Walk::Clear => {
                self.rows.write_enable.next = true;
                self.rows.write_address.next = self.cursor.q.val();
                self.cursor.d.next = self.cursor.q.val() + 1;
                if self.cleared.val() {
                    self.next_walk.next = Walk::Idle;
                }
            }
            Walk::Idle => {
                self.heads.read_address.next = bit_cast::<16, 8>(self.endpoint.val());
                self.read_row.next = self.pair_row.val();
                self.other_row.next = self.pair_row.val();
                if self.insert.val() | self.search.val() {
                    self.key.d.next = Key {
                        endpoint: self.endpoint.val(),
                        pair: self.pair.val(),
                        by_pair: self.by_pair.val(),
                        any_source: self.any_source.val() & !self.by_pair.val(),
                        context_id: self.context_id.val(),
                        match_bits: self.match_bits.val(),
                        care_bits: !self.ignore_bits.val(),
                        age: self.age.val(),
                        remove: self.remove.val(),
                    };
                    self.key_row.d.next = self.place_index.val() >> self.row_shift.val();
                    self.key_place.d.next =
                        bit_cast::<8, 16>(self.place_index.val() & self.place_mask.val());
                    self.had.d.next = (self.waits.q.val() & self.endpoint_bit.val()).any();
                    self.best.d.next = Candidate::default();
                }
                if self.insert.val() {
                    self.read_row.next = self.place_index.val() >> self.row_shift.val();
                    self.waits.d.next = self.waits.q.val() | self.endpoint_bit.val();
                    self.count.d.next = self.count.q.val() + 1;
                    self.newest.d.next = self.age.val();
                    self.next_walk.next = Walk::Insert;
                } else if self.search.val() {
                    if self.names_source.val() {
                        self.read_valid.d.next = true;
                        self.read_at.d.next = self.pair_row.val();
                        self.cursor.d.next = self.pair_row.val() + 1;
                        self.next_walk.next = Walk::Pair;
                    } else {
                        self.key.d.next.any_source = true;
                        self.next_walk.next = Walk::Head;
                    }
                }
            }
            Walk::Insert => {
                self.entry_row.d.next = self.row.val();
                self.next_walk.next = Walk::Store;
            }
            Walk::Store => {
                self.rows.write_enable.next = true;
                self.new_row.next = Row {
                    live: self.entry_row.q.val().live | self.place_bit.val(),
                    order: self.new_order.val(),
                };
                self.links_row.next = self.entry_row.q.val().live == 0;
                self.links.write_enable.next = self.links_row.val();
                self.new_link.next = Link {
                    row: self.heads.read_data.val(),
                    last: !self.had.q.val(),
                    owner: self.key.q.val().endpoint,
                };
                self.befores.write_enable.next = self.links_row.val() & self.had.q.val();
                self.heads.write_enable.next = self.links_row.val();
                self.next_walk.next = Walk::Idle;
            }
            Walk::Pair => {
                self.read_valid.d.next = true;
                self.read_at.d.next = self.cursor.q.val();
                self.cursor.d.next = self.cursor.q.val() + 1;
                if (self.cursor.q.val() & self.pair_mask.val()) == self.pair_mask.val() {
                    self.read_last.d.next = true;
                    self.next_walk.next = Walk::Drain;
                }
            }
            Walk::Head => {
                self.other_row.next = self.heads.read_data.val();
                self.listed.d.next = self.heads.read_data.val();
                self.follows.d.next = self.had.q.val();
                self.next_walk.next = Walk::Rows;
                if !self.had.q.val() {
                    self.ends.next = true;
                    self.next_walk.next = Walk::Idle;
                }
            }
            Walk::Rows => {
                self.read_valid.d.next = self.follows.q.val();
                self.read_last.d.next = self.follows.q.val() & self.read_link.val().last;
                self.read_at.d.next = self.listed.q.val();
                self.read_row.next = self.listed.q.val();
                self.follows.d.next = self.follows.q.val() & !self.read_link.val().last;
            }
            Walk::Drain => {}
            Walk::Remove => {
                self.read_row.next = self.best.q.val().row;
                self.other_row.next = self.best.q.val().row;
                self.heads.read_address.next = bit_cast::<16, 8>(self.best.q.val().owner);
                self.next_walk.next = Walk::Removed;
            }
            Walk::Removed => {
                self.gone_link.d.next = self.read_link.val();
                self.gone_before.d.next = self.befores.read_data.val();
                self.gone_is_head.d.next = self.heads.read_data.val() == self.best.q.val().row;
                self.gone_alone.d.next = (self.best_row.val().live & !self.best_bit.val()) == 0;
                self.next_walk.next = Walk::Unlink;
            }
            Walk::Unlink => {
                self.count.d.next = self.count.q.val() - 1;
                self.rows.write_enable.next = true;
                self.rows.write_address.next = self.best.q.val().row;
                self.new_row.next = Row {
                    live: self.best_row.val().live & !self.best_bit.val(),
                    order: self.best_row.val().order,
                };
                self.empties.next = self.gone_alone.q.val();
                self.unlinks.next = self.empties.val();
                self.heads.write_address.next = bit_cast::<16, 8>(self.best.q.val().owner);
                self.heads.write_data.next = self.gone_link.q.val().row;
                self.new_link.next = self.gone_link.q.val();
                self.befores.write_address.next = self.gone_link.q.val().row;
                self.befores.write_data.next = self.gone_before.q.val();
                self.links.write_address.next = self.gone_before.q.val();
                self.befores.write_enable.next = self.empties.val() & !self.gone_link.q.val().last;
                if self.empties.val() {
                    if self.gone_is_head.q.val() {
                        self.heads.write_enable.next = true;
                        if self.gone_link.q.val().last {
                            self.waits.d.next = self.waits.q.val() & !self.owner_bit.val();
                        }
                    } else {
                        self.links.write_enable.next = true;
                    }
                }
                self.next_walk.next = Walk::Idle;
            }
        }
        if self.row_ends.val() {
            self.ends.next = true;
            self.next_walk.next = Walk::Idle;
            if self.removes.val() {
                self.next_walk.next = Walk::Remove;
            }
        }
        self.answered.d.next = self.ends.val();
        self.walk.d.next = self.next_walk.val();
        // True when the next walk is `Idle`: a product for each walk that may end, since it is known late whether one does.
        self.idle.d.next = !self.row_ends.val()
            & (((self.walk.q.val() == Walk::Clear) & self.cleared.val())
                | (self.idle.q.val() & !self.insert.val() & !self.search.val())
                | (self.walk.q.val() == Walk::Store)
                | ((self.walk.q.val() == Walk::Head) & !self.had.q.val())
                | (self.walk.q.val() == Walk::Unlink))
            | (self.row_ends.val() & !self.removes.val());
        // A link is followed in each cycle, so little logic may stand in between.
        self.link_row.next = self.other_row.val();
        if self.follows.q.val() {
            self.link_row.next = self.read_link.val().row;
        }
        self.rows.read_address.next = self.read_row.val();
        self.rows.write_data.next = self.new_row.val();
        self.links.read_address.next = self.link_row.val();
        self.links.write_data.next = self.new_link.val();
        self.befores.read_address.next = self.link_row.val();

        for i in 0..self._n {
            set!(
                self.place[i],
                write = (self.walk.q.val() == Walk::Insert) & self.place_bit.val().get_bit(i),
                write_row = self.key_row.q.val(),
                age = self.key.q.val().age,
                context_id = self.key.q.val().context_id,
                match_bits = self.key.q.val().match_bits,
                sought = self.sought.q.val(),
                read_row = self.read_row.val(),
                load = self.read_valid.q.val(),
                live = self.may_be_found.val() & self.live.val().get_bit(i),
                order = self.found_order.val().get_bits::<8>(8 * i),
                hits = self.hits.val(),
                beaten = self.beaten.val().get_bit(i),
                filled = self.place_bit.val(),
                order_before = self.entry_order.val().get_bits::<8>(8 * i)
            );
        }

        // What must be true.
        if self.links_row.val() {
            self.linked.d.next = self.linked.q.val() + 1;
        }
        if self.unlinks.val() {
            self.linked.d.next = self.linked.q.val() - 1;
        }
        self.one_operation_at_a_time.ok.next = !(self.insert.val() & self.search.val())
            & (!(self.insert.val() | self.search.val()) | (self.walk.q.val() == Walk::Idle));
        self.ready_when_idle.ok.next = self.idle.q.val() == (self.walk.q.val() == Walk::Idle);
        self.key_names_what_there_is.ok.next = !(self.insert.val() | self.search.val())
            | ((self.by_pair.val() | (self.endpoint.val() < self.endpoints.val()))
                & (self.any_source.val() | (self.pair.val() < self.pairs.val())));
        self.messages_come_in_order.ok.next =
            !self.insert.val() | (self.count.q.val() == 0) | (self.age.val() > self.newest.q.val());
        self.fills_a_vacant_place.ok.next = (self.walk.q.val() != Walk::Store)
            | ((self.entry_row.q.val().live & self.place_bit.val()) == 0);
        self.removes_a_live_message.ok.next = (self.walk.q.val() != Walk::Removed)
            | (((self.row.val().live & self.best_bit.val()) != 0)
                & (self.row.val() == self.best_row.val()));
        self.listed_row_has_a_message.ok.next =
            !self.read_valid.q.val() | !self.key.q.val().any_source | (self.row.val().live != 0);
        self.list_leads_back.ok.next = !self.follows.q.val()
            | ((self.read_link.val().owner == self.key.q.val().endpoint)
                & (!self.read_valid.q.val()
                    | (self.befores.read_data.val() == self.read_at.q.val())));
        self.empty_list_has_no_messages.ok.next = ((self.count.q.val() != 0)
            == self.waits.q.val().any())
            & ((self.walk.q.val() != Walk::Idle)
                | ((self.linked.q.val() <= self.count.q.val())
                    & ((self.count.q.val() == 0) == (self.linked.q.val() == 0))));
        self.depth_is_within_the_places.ok.next =
            bit_cast::<17, 16>(self.count.q.val()) <= self.capacity.val();
    }
}
