//! The exact side of the posted receives: those whose ignored bits are a class of their endpoint.
//!
//! ```text
//!                       rows are   slots to             slot's    oldest of   remove,
//!            hashes     addressed  registers  compare   queue     classes     append
//! lookup ──► hash ────► place ───► read ────► compare ► mux ────► best ─────► end ──► result, commit
//!                       ▲          ▲ waits while an older look-up behind it may write what it reads
//!                       └──────────┼── found by its handle: its slot ◄─┘
//!                                  └── all from here on moves by one register: the end is free, or settles
//! ```
//!
//! A receive is found in either of two places of a table of keys, and by its handle in either of two places
//! of a table of handles: each table is twice `rows` rows of three ways, and each place is that of a keyed
//! hash ([`KeyHash`]). A slot of the first holds one key and the queue of its receives, oldest first, linked in
//! both directions through memory, so neither the length of a queue nor the number of keys
//! changes what an operation takes.
//!
//! Look-ups enter one a cycle and leave in order. An arrival makes one for each class that might hold its receive; the
//! oldest of their heads is the result. The result is removed or appended only when the user says `commit`, since the
//! associative side and the unexpected messages have a say in it. A look-up for a cancel or for a flush has to be alone. The
//! receive that it finds is the result before its slot is known, and is always removed; its queue is mended before any
//! look-up behind it reads.
//!
//! Whether a look-up clashes with an older one is known from registers when it reads: the two were compared a cycle before,
//! and the answer moves on as the older one does.
//!
//! The kernel's sections:
//!
//! | file | idea |
//! |---|---|
//! | `moving` | which look-ups move |
//! | `hash` | a look-up enters, and is hashed |
//! | `clashes` | older look-ups that may write what it reads |
//! | `read` | both tables are read |
//! | `compare` | keys or handles are compared |
//! | `mux` | the way that agreed is chosen, and its entry read |
//! | `by_handle` | walks, and the slot of a receive that was found by its handle |
//! | `best` | the oldest of what the classes offer |
//! | `result` | the result, until it is committed or discarded |
//! | `commit` | what it changes |
//! | `numbers` | numbers of receives |
//! | `write` | the memories are written |
//! | `checks` | claims |

mod best;
mod by_handle;
mod checks;
mod clashes;
mod commit;
mod compare;
mod hash;
mod moving;
mod mux;
mod numbers;
mod read;
mod result;
mod write;

use super::handle_way::{By, Handle, HandleWay};
use super::hash::{HASH_BITS, HandleHash, KeyHash};
use super::key_way::{FreshSlots, KeyWay, Queue};
use super::one_hot::OneHot;
use super::places::{Clash, Emptier, Rows};
use super::way::{SameRow, Written};
use crate::prelude::*;
use crate::prim::{BlockRam, Duty, Fifo, Lowest};
use crate::types::{ExactResult, Lookup, MatchCommand};

/// Ways of a table at most: three in each of a word's two rows.
const WAYS: usize = 6;

/// Most receives: a hash has 12 bits, which choose one of half as many rows.
pub const MAX_EXACT: usize = 1 << 13;

/// Ways of a row at most.
const ROW_WAYS: usize = WAYS / 2;

/// The ways of a table whose rows have `row_ways` each, a bit for each.
const fn ways(row_ways: usize) -> u64 {
    let row = (1 << row_ways) - 1;
    row | row << ROW_WAYS
}

/// A receive's successor in its queue.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Link {
    successor: Bits<14>,
    age: Bits<53>,
    multi: Bit,
}

/// Where a receive stands in the tables.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Home {
    key_row: Bits<12>,
    key_way: Bits<3>,
    handle_row: Bits<12>,
    handle_way: Bits<3>,
}

/// What a look-up has found so far.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Found {
    found: Bit,
    room: Bit,
    rows: Rows,
    /// Way of the key, or the one to fill; one bit set.
    way: Bits<8>,
    /// Way of the handle to fill; one bit set.
    handle_way: Bits<8>,
    key: Bits<97>,
    head: Bits<14>,
    tail: Bits<14>,
    age: Bits<53>,
    multi: Bit,
    class: Bits<6>,
    // The queue holds one receive; the receive of the handle is its head; is its head or its tail.
    single: Bit,
    first: Bit,
    outer: Bit,
    /// Number of the receive of the handle.
    id: Bits<14>,
    /// A walk pauses here: it has found nothing yet, and there are more rows.
    more: Bit,
    /// The associative side's receive is older.
    rival_older: Bit,
    // The entry of the queue's head, or of the receive of the handle.
    link: Link,
    home: Home,
    prev: Bits<14>,
}

/// The exact side.
#[block(entries: usize, rows: usize, row_ways: usize)]
pub struct Exact {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset.
    pub reset: Signal<In, Bit>,
    /// The tables are cleared.
    pub initialized: Signal<Out, Bit>,
    /// Key of the hashes. May change only while there is no receive.
    pub seed: Signal<In, Bits<128>>,
    /// The look-up.
    pub lookup: Stream<In, Lookup>,
    /// The result.
    pub result: Pulse<Out, ExactResult>,
    /// A pulse: the result's receive is removed unless it is `multi`, or appended.
    pub commit: Signal<In, Bit>,
    /// A pulse: the result is forgotten, nothing changes.
    pub discard: Signal<In, Bit>,
    /// Early: a result of the next cycle is committed or discarded in that cycle. A result that is decided without this costs
    /// a cycle more.
    pub will_settle: Signal<In, Bit>,
    /// The command of the operation of the result: the receive to append.
    pub receive: Signal<In, MatchCommand>,
    /// The age of that receive.
    pub age: Signal<In, Bits<54>>,
    /// Age of the receive that the associative side has for the operation, if it has one. Valid from the cycle in which the
    /// operation's look-up is in `best`.
    pub rival_age: Signal<In, Bits<54>>,
    /// In the next cycle a look-up that has gone all the way has its result; `will_settle` may be said of it.
    pub will_end: Signal<Out, Bit>,
    /// The result is a receive's.
    pub posts: Signal<Out, Bit>,
    /// The operation in `end` is there in the next cycle, too.
    pub stays: Signal<Out, Bit>,
    /// The tag of the operation in `end`.
    pub end_tag: Signal<Out, Bits<4>>,
    /// The tag of the operation that may have a result in the next cycle unless the one in `end` `stays`.
    pub best_tag: Signal<Out, Bits<4>>,
    /// A look-up is under way in the next cycle, not counting one whose queue is mended then.
    pub remains: Signal<Out, Bit>,
    /// Live receives.
    pub depth: Signal<Out, Bits<16>>,

    key_hash: KeyHash,
    #[each(5)]
    clash: Vec<Clash>,
    key_place: Emptier,
    handle_place: Emptier,
    key_number: OneHot,
    handle_number: OneHot,
    handle_hash: HandleHash,
    #[each(WAYS, KeyWay::new(rows))]
    key_way: Vec<KeyWay>,
    #[each(WAYS, HandleWay::new(rows))]
    handle_way: Vec<HandleWay>,
    /// The slots that were being written while a look-up read.
    fresh_slots: FreshSlots,
    fresh_handles: Written<Bit>,
    /// Of the keys and of the handles, in the first rows and in the second.
    #[each(2)]
    key_same: Vec<SameRow>,
    #[each(2)]
    handle_same: Vec<SameRow>,
    // What is written in this cycle: the decision of the previous one.
    put_queue: Reg<Queue>,
    put_key: Reg<Bits<97>>,
    put_new: Reg<Bit>,
    put_slot_ways: Reg<Bits<8>>,
    put_handle: Reg<Handle>,
    put_handle_ways: Reg<Bits<8>>,
    put_rows: Reg<Rows>,
    put_link: Reg<Link>,
    put_link_at: Reg<Bits<16>>,
    put_link_now: Reg<Bit>,
    put_prev: Reg<Bits<14>>,
    put_prev_at: Reg<Bits<16>>,
    put_prev_now: Reg<Bit>,
    put_home: Reg<Home>,
    put_home_at: Reg<Bits<16>>,
    put_home_now: Reg<Bit>,
    /// The memories show the rows of the look-up in `read`.
    own: Reg<Bit>,
    /// The rows of the look-up in `read` are read again, rather than those of the one in `place`.
    repeat: Reg<Bit>,
    // The older look-up in `compare`, `mux`, `best` or `end` may write what the one in `read` reads.
    clash_compare: Reg<Bit>,
    clash_mux: Reg<Bit>,
    clash_best: Reg<Bit>,
    clash_end: Reg<Bit>,
    /// The look-up in `best` is by handle, has found a receive, and goes on with the slot of that.
    unlinks: Reg<Bit>,
    /// The receive that was found by its handle is the result in this cycle.
    tell: Reg<Bit>,
    /// A receive found by its handle was the result in the previous cycle, and isn't removed yet.
    told: Reg<Bit>,
    /// A queue is to be mended: no look-up may read before that.
    mending: Reg<Bit>,
    /// The queue is mended in this cycle.
    mend: Reg<Bit>,
    /// The queue was mended in the previous cycle.
    mended: Reg<Bit>,
    #[is(BlockRam::new(entries))]
    links: BlockRam<Link>,
    #[is(BlockRam::new(entries))]
    homes: BlockRam<Home>,
    #[is(BlockRam::new(entries))]
    prevs: BlockRam<Bits<14>>,
    #[is(Fifo::new(entries))]
    free: Fifo<Bits<14>>,
    // The next number from `free`, the one behind it, and one that goes back to `free`.
    number_valid: Reg<Bit>,
    number: Reg<Bits<14>>,
    spare_valid: Reg<Bit>,
    spare: Reg<Bits<14>>,
    put_free_now: Reg<Bit>,
    put_free: Reg<Bits<14>>,

    // After reset.
    ready: Reg<Bit>,
    clearing: Reg<Bits<16>>,

    /// A look-up that waits until `hash` is free. So the user may send one without asking whether those before it move.
    queued_valid: Reg<Bit>,
    queued: Reg<Lookup>,
    hash_valid: Reg<Bit>,
    hash: Reg<Lookup>,
    /// The opposite of `hash_valid`, so that the registers behind it are loaded by a net of their own.
    #[is(Reg::new(true))]
    hash_empty: Reg<Bit>,
    /// A second copy of the key in `hash`.
    hash_key: Reg<Bits<97>>,
    place_valid: Reg<Bit>,
    place: Reg<Lookup>,
    place_rows: Reg<Rows>,
    /// Key row of an [`Unlink`](Search::Unlink) in `place`, whose rows in `place_rows` are zero then; zero for all else.
    slot_row: Reg<Bits<16>>,
    read_valid: Reg<Bit>,
    read: Reg<Lookup>,
    read_rows: Reg<Rows>,
    compare_valid: Reg<Bit>,
    compare: Reg<Lookup>,
    compare_rows: Reg<Rows>,
    // The look-up in `compare` compares keys; or it has chosen a way; or it compares handles.
    compare_by_key: Reg<Bit>,
    compare_chosen: Reg<Bits<8>>,
    #[is(Reg::new(By::Nothing))]
    compare_by: Reg<By>,
    mux_valid: Reg<Bit>,
    mux: Reg<Lookup>,
    mux_rows: Reg<Rows>,
    mux_free: Reg<Bits<8>>,
    /// The first handle that is the one looked for.
    mux_handle_hit: Reg<Bits<8>>,
    mux_handle_free: Reg<Bits<8>>,
    best_valid: Reg<Bit>,
    /// The look-up in `best` goes to `end` whatever is there: it is the first of its operation, or the only one.
    best_wins: Reg<Bit>,
    /// The look-up in `best` goes to `end` if its receive is the older one: it is a later one of an arrival.
    best_rivals: Reg<Bit>,
    best: Reg<Lookup>,
    best_found: Reg<Found>,
    entry_address: Reg<Bits<14>>,
    end_valid: Reg<Bit>,
    /// `end` holds a result: a copy of `end_valid` and its `last` that drives a thousand enables.
    end_full: Reg<Bit>,
    end: Reg<Lookup>,
    /// `end` holds a receive's look-up: a copy of its `search`.
    end_posts: Reg<Bit>,
    end_found: Reg<Found>,

    /// Row that a walk over a pair or an endpoint has come to, and the one behind it.
    cursor: Reg<Bits<16>>,
    #[is(Reg::new(1u64.into()))]
    behind_cursor: Reg<Bits<16>>,
    unlink_way: Reg<Bits<3>>,
    count: Reg<Bits<16>>,

    /// `end` takes what comes in this cycle: it is free, or `settles`. All look-ups under way move by this.
    #[is(Reg::new(true))]
    moves: Reg<Bit>,
    /// The opposite of `moves`, which drives three thousand enables and so comes late.
    stands: Reg<Bit>,
    /// The result in `end` is committed or discarded in this cycle.
    settles: Reg<Bit>,
    passes: Signal<Local, Bit>,
    sees: Signal<Local, Bit>,
    move_read: Signal<Local, Bit>,
    read_free: Signal<Local, Bit>,
    /// The same, as a net of its own for the registers of `read`.
    read_takes: Signal<Local, Bit>,
    // All look-ups move, and `read` takes another, or keeps its own; or none moves.
    read_loads: Signal<Local, Bit>,
    read_stays: Signal<Local, Bit>,
    all_stand: Signal<Local, Bit>,
    /// The look-up in `end` isn't the last of its operation.
    end_remains: Signal<Local, Bit>,
    place_free: Signal<Local, Bit>,
    hash_free: Signal<Local, Bit>,
    /// The same for the second copy of the key.
    hash_loads: Signal<Local, Bit>,
    next_hash: Signal<Local, Lookup>,
    offered: Signal<Local, Bit>,
    /// A look-up is offered, or waits in `queued`.
    arrives: Signal<Local, Bit>,
    fills: Signal<Local, Bit>,
    mends: Signal<Local, Bit>,
    /// A walk has found nothing in its row, and there are more: it goes on with the next, or pauses.
    walks_on: Signal<Local, Bit>,
    pauses: Signal<Local, Bit>,
    goes_on: Signal<Local, Bit>,
    by_key: Signal<Local, Bit>,
    conflict: Signal<Local, Bit>,
    handle_key: Signal<Local, Bits<40>>,
    /// The look-up in `hash` is for any receive of a pair or an endpoint.
    of_all: Signal<Local, Bit>,
    // The two rows of handles that are addressed next are both `walk_row`.
    walks: Signal<Local, Bit>,
    walk_row: Signal<Local, Bits<16>>,
    /// The row behind the one that a walk has come to.
    row_after: Signal<Local, Bits<16>>,
    /// Rows of the look-up in `place`.
    addressed: Signal<Local, Rows>,
    wanted: Signal<Local, Rows>,
    next_rows: Signal<Local, Rows>,
    next_place: Signal<Local, Lookup>,
    unlinking: Signal<Local, Bit>,
    mux_hit: Signal<Local, Bits<8>>,
    occupied: Signal<Local, Bits<8>>,
    handle_hits: Signal<Local, Bits<8>>,
    handle_occupied: Signal<Local, Bits<8>>,
    first_hit: Lowest<8>,
    muxed: Signal<Local, Found>,
    muxed_head: Signal<Local, Bits<14>>,
    muxed_tail: Signal<Local, Bits<14>>,
    muxed_age: Signal<Local, Bits<53>>,
    muxed_multi: Signal<Local, Bit>,
    muxed_id: Signal<Local, Bits<14>>,
    muxed_class: Signal<Local, Bits<6>>,
    mux_key: Signal<Local, Bits<97>>,
    address: Signal<Local, Bits<14>>,
    entry_at: Signal<Local, Bits<14>>,
    best_age: Signal<Local, Bits<53>>,
    end_age: Signal<Local, Bits<53>>,
    // The upper halves of both ages; the same with a clear, and with a set bit behind them.
    best_above: Signal<Local, Bits<26>>,
    end_above: Signal<Local, Bits<26>>,
    best_low: Signal<Local, Bits<27>>,
    end_high: Signal<Local, Bits<27>>,
    older: Signal<Local, Bit>,
    arriving: Signal<Local, Bit>,
    single: Signal<Local, Bit>,
    /// The receive that an arrival has found leaves with it: it isn't `multi`.
    matched_leaves: Signal<Local, Bit>,
    /// What `end` would change is changed.
    acts: Signal<Local, Bit>,
    // What it would change: a number becomes free, or is taken; a link is written, or a link back.
    frees: Signal<Local, Bit>,
    freed: Signal<Local, Bits<14>>,
    numbers: Signal<Local, Bit>,
    links_now: Signal<Local, Bit>,
    prevs_now: Signal<Local, Bit>,
    wants_number: Signal<Local, Bit>,
    free_numbers: Signal<Local, Bits<16>>,
    /// The number of a receive becomes free.
    freeing: Signal<Local, Bit>,
    /// A receive gets a number.
    numbering: Signal<Local, Bit>,
    by_handle: Signal<Local, Bit>,
    home: Signal<Local, Home>,
    candidate: Signal<Local, Found>,
    better: Signal<Local, Bit>,
    done: Signal<Local, Bit>,
    entry: Signal<Local, Link>,
    new_link: Signal<Local, Link>,
    new_home: Signal<Local, Home>,
    queue: Signal<Local, Queue>,
    new_slot: Signal<Local, Bit>,
    slot_ways: Signal<Local, Bits<8>>,
    handle: Signal<Local, Handle>,
    handle_ways: Signal<Local, Bits<8>>,
    key_row0: Signal<Local, Bits<16>>,
    key_row1: Signal<Local, Bits<16>>,
    handle_row0: Signal<Local, Bits<16>>,
    handle_row1: Signal<Local, Bits<16>>,
    home_of_end: Signal<Local, Home>,
    home_key_row: Signal<Local, Bits<12>>,
    home_handle_row: Signal<Local, Bits<12>>,
    gone_row: Signal<Local, Bits<16>>,
    home_handle_way: Signal<Local, Bits<3>>,
    new_id: Signal<Local, Bits<14>>,
    end_key: Signal<Local, Bits<97>>,
    write_rows: Signal<Local, Rows>,
    in_old: Signal<Local, Bits<8>>,
    in_last: Signal<Local, Bits<8>>,
    in_now: Signal<Local, Bits<8>>,
    fresh_handle: Signal<Local, Bit>,

    #[is(constant((rows - 1) as u64))]
    row_mask: Constant<Bits<16>>,
    #[is(constant((rows - 1) as u64))]
    last_row: Constant<Bits<16>>,
    #[is(constant(rows as u64))]
    rows: Constant<Bits<16>>,
    #[is(constant(entries as u64))]
    entries: Constant<Bits<16>>,
    #[is(constant((entries - 1) as u64))]
    last_entry: Constant<Bits<16>>,
    /// The last row or number that is handled after reset.
    #[is(constant((entries.max(rows) - 1) as u64))]
    last_cleared: Constant<Bits<16>>,
    /// The ways that there are.
    #[is(constant(ways(row_ways)))]
    ways: Constant<Bits<8>>,

    #[is(Check::new("receive_neither_lost_nor_doubled"))]
    neither_lost_nor_doubled: Check,
    #[is(Check::new("a_number_for_each_post"))]
    number_for_each_post: Check,
    #[is(Check::new("searches_by_handle_are_alone"))]
    alone: Check,
    #[is(Check::new("a_key_has_one_slot"))]
    one_slot: Check,
    #[is(Check::new("searches_read_what_is_settled"))]
    reads_settled: Check,
    #[is(Duty::new("what_settles_is_done"))]
    settles_what_is_done: Duty,
    #[is(Check::new("what_is_full_is_a_result"))]
    full_is_a_result: Check,
    copies_agree: Check,
    #[is(Duty::new("what_is_found_by_handle_is_removed"))]
    removes_what_it_finds: Duty,
}

impl Exact {
    /// The exact side for `entries` receives, whose tables have `rows` rows each, of `row_ways` words; see
    /// [`table_rows`](crate::config::table_rows).
    ///
    /// # Panics
    /// If there are fewer than 8 receives or more than [`MAX_EXACT`], or if `rows` isn't a power of two from 2 on, or is more than a
    /// hash can choose from, or a row has fewer than 2 ways or more than [`ROW_WAYS`].
    pub fn new(entries: usize, rows: usize, row_ways: usize) -> Self {
        assert!((8..=MAX_EXACT).contains(&entries), "{entries} receives");
        assert!(
            rows.is_power_of_two() && (2..=1 << HASH_BITS).contains(&rows),
            "{rows} rows; a hash of {HASH_BITS} bits chooses one of a power of two"
        );
        assert!(
            (2..=ROW_WAYS).contains(&row_ways),
            "a row has 2 or {ROW_WAYS} ways, and not {row_ways}"
        );
        Self::build(entries, rows, row_ways)
    }
}

#[block(entries = self.entries.val().index())]
impl Logic for Exact {
    fn update(&mut self) {
        self.move_on();
        self.hash_next();
        self.compare_rows();
        self.read_next();
        self.compare_words();
        self.select();
        self.load_best();
        self.walk();
        self.compare_ages();
        self.address();
        self.tell_result();
        self.change();
        self.take_number();
        self.clear();
        self.write();
        self.check();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_three_places_for_each_receive() {
        for entries in [8, 64, 100, 1024] {
            let exact = Exact::new(entries, crate::config::table_rows(entries), 3);
            let rows = exact.rows.val().index();
            assert!(
                rows.is_power_of_two() && rows * WAYS >= 3 * entries,
                "{entries}"
            );
        }
    }

    #[test]
    #[should_panic(expected = "24 rows")]
    fn rows_are_a_power_of_two() {
        Exact::new(64, 24, 3);
    }

    #[test]
    #[should_panic(expected = "a row has 2 or 3 ways")]
    fn a_row_has_two_or_three_ways() {
        Exact::new(64, 32, 4);
    }
}
