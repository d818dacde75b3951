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

use super::handle_way::{By, Handle, HandleWay};
use super::hash::{HASH_BITS, HandleHash, KeyHash};
use super::key_way::{FreshSlots, KeyWay, Queue};
use super::one_hot::OneHot;
use super::places::{Clash, Emptier, Rows};
use super::way::{SameRow, Written};
use crate::prelude::*;
use crate::prim::{BlockRam, Duty, Fifo};
use crate::types::{ExactResult, Lookup, MatchCommand, Search};

/// Ways of a table: three in each of a word's two rows.
pub const WAYS: usize = 6;

/// Most receives: a hash has 12 bits, which choose one of half as many rows.
pub const MAX_EXACT: usize = 1 << 13;

/// Ways of a row.
pub const ROW_WAYS: usize = WAYS / 2;

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
    /// The associative side's receive is older.
    rival_older: Bit,
    // The entry of the queue's head, or of the receive of the handle.
    link: Link,
    home: Home,
    prev: Bits<14>,
}

/// The exact side.
#[block(entries: usize, rows: usize)]
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
    first_hit: Signal<Local, Bits<8>>,
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
    /// The exact side for `entries` receives, whose tables have `rows` rows each; see [`table_rows`](crate::config::table_rows).
    ///
    /// # Panics
    /// If there are fewer than 8 receives or more than [`MAX_EXACT`], or if `rows` isn't a power of two from 2 on, is more than a
    /// hash can choose from, or more than `entries`.
    pub fn new(entries: usize, rows: usize) -> Self {
        assert!((8..=MAX_EXACT).contains(&entries), "{entries} receives");
        assert!(
            rows.is_power_of_two() && (2..=1 << HASH_BITS).contains(&rows),
            "{rows} rows; a hash of {HASH_BITS} bits chooses one of a power of two"
        );
        assert!(
            rows <= entries,
            "{rows} rows for {entries} receives: they are cleared while the receives' numbers are handed out"
        );
        Self::build(entries, rows)
    }
}

#[block(entries = self.entries.val().index())]
impl Logic for Exact {
    fn update(&mut self) {
        // ---------------------------------------------------------------- what moves
        self.done.next = self.settles.q.val() | self.commit.val() | self.discard.val();
        self.conflict.next =
            self.clash_compare.q.val() | self.clash_mux.q.val() | self.clash_best.q.val();
        // `end` lets the look-up in `read` past: it is done, or it holds neither a result nor anything that clashes.
        self.passes.next = self.settles.q.val() | !(self.end_full.q.val() | self.clash_end.q.val());
        self.sees.next = self.own.q.val() & !self.conflict.val();
        self.move_read.next = self.passes.val() & self.sees.val();
        self.read_free.next =
            self.move_read.val() | !(self.stands.q.val() | self.read_valid.q.val());
        self.read_takes.next =
            self.move_read.val() | (self.moves.q.val() & !self.read_valid.q.val());
        self.place_free.next =
            !self.place_valid.q.val() | (self.read_free.val() & !self.mending.q.val());

        // ---------------------------------------------------------------- hash
        self.lookup.ready.next = self.ready.q.val() & !self.queued_valid.q.val();
        self.offered.next = self.lookup.valid.val() & self.ready.q.val();
        self.hash_free.next = !self.hash_valid.q.val() | self.place_free.val();
        self.arrives.next = self.queued_valid.q.val() | self.offered.val();
        self.queued_valid.d.next = !self.hash_free.val() & self.arrives.val();
        if !self.queued_valid.q.val() {
            self.queued.d.next = self.lookup.data.val();
        }
        self.next_hash.next = self.lookup.data.val();
        if self.queued_valid.q.val() {
            self.next_hash.next = self.queued.q.val();
        }
        if self.hash_free.val() {
            self.hash_valid.d.next = self.arrives.val();
            self.hash_empty.d.next = !self.arrives.val();
            self.hash.d.next = self.next_hash.val();
        }
        self.hash_loads.next = self.hash_empty.q.val() | self.place_free.val();
        if self.hash_loads.val() {
            self.hash_key.d.next = self.next_hash.val().key;
        }
        self.key_hash.seed.next = self.seed.val();
        self.key_hash.key.next = self.hash.q.val().key;
        self.key_hash.twin.next = self.hash_key.q.val();
        self.handle_key.next = bit_cast::<40, 32>(self.hash.q.val().request)
            | (bit_cast::<40, 8>(self.hash.q.val().endpoint) << 32);
        self.handle_hash.seed.next = self.seed.val();
        self.handle_hash.handle.next = self.handle_key.val();
        // While `hash` is empty the row behind the one that a walk has come to is addressed. The slot's row of a receive that was
        // found by its handle, which comes from a memory in this cycle, has a register of its own (`slot_row`), and zeros here. So
        // one choice is left behind the hashes, by registers.
        self.of_all.next = (self.hash.q.val().search == Search::OfPair)
            | (self.hash.q.val().search == Search::OfEndpoint);
        self.walks.next = !self.hash_valid.q.val() | self.of_all.val();
        self.walk_row.next = self.behind_cursor.q.val();
        if self.hash_valid.q.val() {
            self.walk_row.next = self.cursor.q.val();
            if self.hash.q.val().first {
                self.walk_row.next = 0.into();
            }
        }
        if self.hash_valid.q.val() & self.of_all.val() & self.hash.q.val().first {
            self.cursor.d.next = 0.into();
            self.behind_cursor.d.next = 1.into();
        }
        self.next_rows.next = Rows::default();
        self.next_rows.next.key0 = self.key_hash.first.val() & self.row_mask.val();
        self.next_rows.next.key1 = self.key_hash.second.val() & self.row_mask.val();
        self.next_rows.next.handle0 = self.handle_hash.first.val() & self.row_mask.val();
        self.next_rows.next.handle1 = self.handle_hash.second.val() & self.row_mask.val();
        if !self.hash_valid.q.val() {
            self.next_rows.next.key0 = 0.into();
            self.next_rows.next.key1 = 0.into();
        }
        if self.walks.val() {
            self.next_rows.next.handle0 = self.walk_row.val();
            self.next_rows.next.handle1 = self.walk_row.val();
        }

        // ---------------------------------------------------------------- place
        // Older look-ups that may yet write what the one in `place` is going to read. Beside an `Unlink` there is only its own search.
        for i in 0..5 {
            self.clash[i].younger.next = self.place_rows.q.val();
            self.clash[i].younger_tag.next = self.place.q.val().tag;
            self.clash[i].younger_post.next = self.place.q.val().search == Search::Post;
        }
        self.clash[0].valid.next = self.read_valid.q.val();
        self.clash[0].older.next = self.read_rows.q.val();
        self.clash[0].older_tag.next = self.read.q.val().tag;
        self.clash[0].older_post.next = self.read.q.val().search == Search::Post;
        self.clash[1].valid.next = self.compare_valid.q.val();
        self.clash[1].older.next = self.compare_rows.q.val();
        self.clash[1].older_tag.next = self.compare.q.val().tag;
        self.clash[1].older_post.next = self.compare.q.val().search == Search::Post;
        self.clash[2].valid.next = self.mux_valid.q.val();
        self.clash[2].older.next = self.mux_rows.q.val();
        self.clash[2].older_tag.next = self.mux.q.val().tag;
        self.clash[2].older_post.next = self.mux.q.val().search == Search::Post;
        self.clash[3].valid.next = self.best_valid.q.val();
        self.clash[3].older.next = self.best_found.q.val().rows;
        self.clash[3].older_tag.next = self.best.q.val().tag;
        self.clash[3].older_post.next = self.best.q.val().search == Search::Post;
        // The look-up in `end` stays if it isn't the last of its operation.
        self.end_remains.next = self.end_valid.q.val() & !self.end.q.val().last;
        self.clash[4].valid.next = self.end_remains.val();
        self.clash[4].older.next = self.end_found.q.val().rows;
        self.clash[4].older_tag.next = self.end.q.val().tag;
        self.clash[4].older_post.next = self.end.q.val().search == Search::Post;
        // A product for each case, so that a comparison of rows passes few levels of logic: another look-up comes into `read`; the
        // one in `read` stays while all before it move, and so do the clashes; none moves, but `end` may be done.
        self.read_loads.next = self.moves.q.val() & self.read_free.val();
        self.read_stays.next = self.moves.q.val() & !self.read_free.val();
        self.all_stand.next = !self.moves.q.val();
        self.clash_compare.d.next = (self.read_loads.val() & self.clash[0].clash.val())
            | (self.all_stand.val() & self.clash_compare.q.val());
        self.clash_mux.d.next = (self.read_loads.val() & self.clash[1].clash.val())
            | (self.read_stays.val() & self.clash_compare.q.val())
            | (self.all_stand.val() & self.clash_mux.q.val());
        self.clash_best.d.next = (self.read_loads.val() & self.clash[2].clash.val())
            | (self.read_stays.val() & self.clash_mux.q.val())
            | (self.all_stand.val() & self.clash_best.q.val());
        self.clash_end.d.next = (self.read_loads.val() & self.clash[3].clash.val())
            | (self.read_loads.val() & self.clash[4].clash.val())
            | (self.read_stays.val() & self.clash_best.q.val())
            | (self.read_stays.val() & self.clash_end.q.val() & self.end_remains.val())
            | (self.all_stand.val() & self.clash_end.q.val() & !self.done.val());

        // ---------------------------------------------------------------- read
        self.addressed.next = self.place_rows.q.val();
        self.addressed.next.key0 = self.place_rows.q.val().key0 | self.slot_row.q.val();
        self.addressed.next.key1 = self.place_rows.q.val().key1 | self.slot_row.q.val();
        self.wanted.next = self.addressed.val();
        // Whether the look-up in `read` moves is known too late to say which row is read. One that stays has its rows read again in
        // the next cycle, and one that comes into `read` meanwhile in the cycle after it has come.
        if self.repeat.q.val() {
            self.wanted.next = self.read_rows.q.val();
        }
        self.own.d.next = self.repeat.q.val();
        self.repeat.d.next =
            self.read_valid.q.val() & (self.own.q.val() | self.conflict.val() | !self.passes.val());
        if self.read_free.val() {
            self.read_valid.d.next = self.place_valid.q.val() & !self.mending.q.val();
            self.own.d.next = !self.repeat.q.val();
            self.repeat.d.next =
                self.repeat.q.val() & self.place_valid.q.val() & !self.mending.q.val();
        }
        if self.read_takes.val() {
            self.read.d.next = self.place.q.val();
            self.read_rows.d.next = self.addressed.val();
        }

        // ---------------------------------------------------------------- compare
        self.by_key.next = (self.read.q.val().search == Search::Arrive)
            | (self.read.q.val().search == Search::Post);
        if self.moves.q.val() {
            self.compare_valid.d.next = self.read_valid.q.val() & self.move_read.val();
            self.compare.d.next = self.read.q.val();
            self.compare_rows.d.next = self.read_rows.q.val();
            self.compare_by_key.d.next = self.by_key.val();
            self.compare_chosen.d.next = 0.into();
            self.compare_by.d.next = By::Nothing;
            match self.read.q.val().search {
                Search::Cancel => {
                    self.compare_by.d.next = By::Request;
                }
                Search::OfPair => {
                    self.compare_by.d.next = By::Pair;
                }
                Search::OfEndpoint => {
                    self.compare_by.d.next = By::Endpoint;
                }
                Search::Unlink => {
                    self.compare_chosen.d.next = bits::<8>(1) << self.unlink_way.q.val();
                }
                _ => {}
            }
        }
        self.mux_hit.next = 0.into();
        self.occupied.next = 0.into();
        self.handle_hits.next = 0.into();
        self.handle_occupied.next = 0.into();
        self.fresh_slots.capture.next = self.moves.q.val();
        self.fresh_slots.pass.next = self.moves.q.val();
        self.fresh_slots.key.next = self.compare.q.val().key;
        self.fresh_handles.capture.next = self.moves.q.val();
        self.in_old.next = 0.into();
        self.in_last.next = 0.into();
        self.in_now.next = 0.into();
        self.fresh_handle.next = false;
        for i in 0..6 {
            self.key_way[i].capture.next = self.moves.q.val();
            self.key_way[i].pass.next = self.moves.q.val();
            self.key_way[i].key.next = self.compare.q.val().key;
            self.key_way[i].occupied_old.next = self.fresh_slots.occupied_old.val();
            self.key_way[i].occupied_last.next = self.fresh_slots.occupied_last.val();
            self.key_way[i].occupied_now.next = self.fresh_slots.occupied_now.val();
            self.key_way[i].by_key.next = self.compare_by_key.q.val();
            self.key_way[i].chosen.next = self.compare_chosen.q.val().get_bit(i);
            self.key_way[i].shows_old.next = self.fresh_slots.shows_old.val();
            self.key_way[i].shows_last.next = self.fresh_slots.shows_last.val();
            self.key_way[i].shows_now.next = self.fresh_slots.shows_now.val();
            self.mux_hit.next = self.mux_hit.val().replace_bit(i, self.key_way[i].hit.val());
            self.occupied.next = self
                .occupied
                .val()
                .replace_bit(i, self.key_way[i].occupied.val());
            self.in_old.next = self
                .in_old
                .val()
                .replace_bit(i, self.key_way[i].in_old.val());
            self.in_last.next = self
                .in_last
                .val()
                .replace_bit(i, self.key_way[i].in_last.val());
            self.in_now.next = self
                .in_now
                .val()
                .replace_bit(i, self.key_way[i].in_now.val());
            self.handle_way[i].capture.next = self.moves.q.val();
            self.handle_way[i].pass.next = self.moves.q.val();
            self.handle_way[i].occupied_old.next = self.fresh_handles.old.val();
            self.handle_way[i].occupied_last.next = self.fresh_handles.last.val();
            self.handle_way[i].occupied_now.next = self.fresh_handles.now.val();
            self.handle_way[i].by.next = self.compare_by.q.val();
            self.handle_way[i].endpoint.next = self.compare.q.val().endpoint;
            self.handle_way[i].request.next = self.compare.q.val().request;
            self.handle_way[i].pair.next = self.compare.q.val().pair;
            self.handle_way[i].select.next = self.mux_handle_hit.q.val().get_bit(i);
            self.handle_hits.next = self
                .handle_hits
                .val()
                .replace_bit(i, self.handle_way[i].hit.val());
            self.handle_occupied.next = self
                .handle_occupied
                .val()
                .replace_bit(i, self.handle_way[i].occupied.val());
            self.fresh_handle.next = self.fresh_handle.val() | self.handle_way[i].fresh.val();
        }
        // The lowest hit: in a walk several ways may hit.
        self.first_hit.next = self.handle_hits.val()
            & !((self.handle_hits.val() << 1)
                | (self.handle_hits.val() << 2)
                | (self.handle_hits.val() << 3)
                | (self.handle_hits.val() << 4)
                | (self.handle_hits.val() << 5));
        self.key_place.occupied.next = self.occupied.val();
        self.handle_place.occupied.next = self.handle_occupied.val();
        self.fresh_slots.in_old.next = self.in_old.val().any();
        self.fresh_slots.in_last.next = self.in_last.val().any();
        self.fresh_slots.in_now.next = self.in_now.val().any();
        // ---------------------------------------------------------------- mux
        if self.moves.q.val() {
            self.mux_valid.d.next = self.compare_valid.q.val();
            self.mux.d.next = self.compare.q.val();
            self.mux_rows.d.next = self.compare_rows.q.val();
            self.mux_free.d.next = self.key_place.place.val();
            self.mux_handle_hit.d.next = self.first_hit.val();
            self.mux_handle_free.d.next = self.handle_place.place.val();
        }
        self.muxed_head.next = self.fresh_slots.shown.val().head;
        self.muxed_tail.next = self.fresh_slots.shown.val().tail;
        self.muxed_age.next = self.fresh_slots.shown.val().age;
        self.muxed_multi.next = self.fresh_slots.shown.val().multi;
        self.muxed_id.next = 0.into();
        self.muxed_class.next = 0.into();
        for i in 0..6 {
            self.muxed_head.next = self.muxed_head.val() | self.key_way[i].head.val();
            self.muxed_tail.next = self.muxed_tail.val() | self.key_way[i].tail.val();
            self.muxed_age.next = self.muxed_age.val() | self.key_way[i].age.val();
            self.muxed_multi.next = self.muxed_multi.val() | self.key_way[i].multi.val();
            self.muxed_id.next = self.muxed_id.val() | self.handle_way[i].id.val();
            self.muxed_class.next = self.muxed_class.val() | self.handle_way[i].class_id.val();
        }
        self.muxed.next = Found::default();
        self.muxed.next.rows = self.mux_rows.q.val();
        self.muxed.next.head = self.muxed_head.val();
        self.muxed.next.tail = self.muxed_tail.val();
        self.muxed.next.age = self.muxed_age.val();
        self.muxed.next.multi = self.muxed_multi.val();
        self.mux_key.next = self.mux.q.val().key;
        self.muxed.next.key = self.mux_key.val();
        self.muxed.next.id = self.muxed_id.val();
        self.muxed.next.handle_way = self.mux_handle_free.q.val();
        self.muxed.next.way = self.mux_hit.val();
        self.muxed.next.class = self.mux_key.val().get_bits::<6>(91);
        match self.mux.q.val().search {
            Search::Arrive => {
                self.muxed.next.found = self.mux_hit.val().any();
            }
            Search::Post => {
                self.muxed.next.found = self.mux_hit.val().any();
                self.muxed.next.room = self.mux_handle_free.q.val().any();
                if !self.mux_hit.val().any() {
                    self.muxed.next.way = self.mux_free.q.val();
                    self.muxed.next.room =
                        self.mux_handle_free.q.val().any() & self.mux_free.q.val().any();
                }
            }
            Search::Unlink => {
                self.muxed.next.id = self.entry_address.q.val();
            }
            _ => {
                self.muxed.next.found = self.mux_handle_hit.q.val().any();
                self.muxed.next.class = self.muxed_class.val();
            }
        }
        // A look-up has either the head of its queue or the number of a handle, the other being zero. While `end` waits, the same
        // entry is read again and again; so is that of a receive that is to be unlinked, until its slot is known.
        self.address.next = self.muxed_head.val() | self.muxed_id.val();
        self.entry_at.next = self.address.val();
        if self.stands.q.val()
            | !self.mux_valid.q.val()
            | (self.mux.q.val().search == Search::Unlink)
        {
            self.entry_at.next = self.entry_address.q.val();
        }
        self.entry_address.d.next = self.entry_at.val();
        self.links.read_address.next = bit_cast::<16, 14>(self.entry_at.val());
        self.homes.read_address.next = bit_cast::<16, 14>(self.entry_at.val());
        self.prevs.read_address.next = bit_cast::<16, 14>(self.entry_at.val());

        // ---------------------------------------------------------------- best of the classes
        self.goes_on.next = false;
        if self.mux_valid.q.val() & !self.mux_handle_hit.q.val().any() {
            self.goes_on.next = ((self.mux.q.val().search == Search::OfPair)
                | (self.mux.q.val().search == Search::OfEndpoint))
                & (self.cursor.q.val() != self.last_row.val());
        }
        if self.moves.q.val() {
            self.best_valid.d.next = self.mux_valid.q.val() & !self.goes_on.val();
            self.best_wins.d.next = self.mux_valid.q.val()
                & !self.goes_on.val()
                & (self.mux.q.val().first | (self.mux.q.val().search != Search::Arrive));
            self.best_rivals.d.next = self.mux_valid.q.val()
                & !self.mux.q.val().first
                & (self.mux.q.val().search == Search::Arrive)
                & self.muxed.val().found;
            self.unlinks.d.next = self.mux_handle_hit.q.val().any();
            self.best.d.next = self.mux.q.val();
            self.best_found.d.next = self.muxed.val();
        }
        // A walk is alone: all stages behind it are empty. It has found nothing in this row, and goes on with the next.
        if self.goes_on.val() {
            self.cursor.d.next = self.behind_cursor.q.val();
            self.behind_cursor.d.next = (self.behind_cursor.q.val() + 1) & self.row_mask.val();
        }
        // A receive was found by its handle: its slot is read next, while the result goes out.
        self.unlinking.next = self.best_valid.q.val() & self.unlinks.q.val();
        self.home.next = self.homes.read_data.val();
        self.home_key_row.next = self.home.val().key_row;
        if self.unlinking.val() {
            self.unlink_way.d.next = self.home.val().key_way;
        }
        self.next_place.next = self.place.q.val();
        self.next_place.next.search = Search::Unlink;
        self.next_place.next.last = false;
        if self.hash_valid.q.val() {
            self.next_place.next = self.hash.q.val();
        }
        if self.place_free.val() {
            self.place_rows.d.next = self.next_rows.val();
            self.slot_row.d.next = 0.into();
            if self.unlinking.val() {
                self.slot_row.d.next =
                    bit_cast::<16, 12>(self.home_key_row.val()) & self.row_mask.val();
            }
            self.place_valid.d.next =
                self.hash_valid.q.val() | self.goes_on.val() | self.unlinking.val();
        }
        if self.place_free.val() & (self.hash_valid.q.val() | self.unlinking.val()) {
            self.place.d.next = self.next_place.val();
        }
        if self.place_valid.q.val()
            & self.read_free.val()
            & (self.place.q.val().search == Search::Unlink)
        {
            self.mending.d.next = true;
        }
        // The result comes so late that the look-up behind it finds the queue mended when it reads.
        self.tell.d.next = self.moves.q.val()
            & self.compare_valid.q.val()
            & (self.compare.q.val().search == Search::Unlink);
        self.mended.d.next = self.mend.q.val();
        if self.mended.q.val() {
            self.mending.d.next = false;
        }
        self.candidate.next = self.best_found.q.val();
        self.candidate.next.rival_older =
            self.rival_age.val() < bit_cast::<54, 53>(self.best_found.q.val().age);
        self.candidate.next.single = self.best_found.q.val().head == self.best_found.q.val().tail;
        self.candidate.next.first = self.best_found.q.val().head == self.best_found.q.val().id;
        self.candidate.next.outer = (self.best_found.q.val().head == self.best_found.q.val().id)
            | (self.best_found.q.val().tail == self.best_found.q.val().id);
        self.candidate.next.link = self.links.read_data.val();
        self.candidate.next.home = self.home.val();
        // The row of handles to write is that of the receive that leaves, unless one is appended.
        self.home_handle_row.next = self.home.val().handle_row;
        self.gone_row.next = bit_cast::<16, 12>(self.home_handle_row.val()) & self.row_mask.val();
        if self.best.q.val().search != Search::Post {
            self.candidate.next.rows.handle0 = self.gone_row.val();
            self.candidate.next.rows.handle1 = self.gone_row.val();
        }
        self.candidate.next.prev = self.prevs.read_data.val();
        // Ages are compared in halves side by side, since an enable of hundreds of registers waits for it. The upper halves are
        // compared twice: as they are, and with a bit behind each that makes equal ones count as less.
        self.best_age.next = self.best_found.q.val().age;
        self.end_age.next = self.end_found.q.val().age;
        self.best_above.next = self.best_age.val().get_bits::<26>(27);
        self.end_above.next = self.end_age.val().get_bits::<26>(27);
        self.best_low.next = bit_cast::<27, 26>(self.best_above.val()) << 1;
        self.end_high.next = (bit_cast::<27, 26>(self.end_above.val()) << 1) | 1;
        self.older.next = self.best_above.val() < self.end_above.val();
        if self.best_age.val().get_bits::<27>(0) < self.end_age.val().get_bits::<27>(0) {
            self.older.next = self.best_low.val() < self.end_high.val();
        }
        self.better.next = self.best_wins.q.val()
            | (self.best_rivals.q.val() & (!self.end_found.q.val().found | self.older.val()));

        self.arriving.next = self.best_valid.q.val() & !self.stands.q.val();
        self.key_same[0].read_row.next = self.wanted.val().key0;
        self.key_same[1].read_row.next = self.wanted.val().key1;
        self.handle_same[0].read_row.next = self.wanted.val().handle0;
        self.handle_same[1].read_row.next = self.wanted.val().handle1;
        for i in 0..3 {
            self.key_way[i].read_row.next = self.wanted.val().key0;
            self.handle_way[i].read_row.next = self.wanted.val().handle0;
            self.key_way[i + 3].read_row.next = self.wanted.val().key1;
            self.handle_way[i + 3].read_row.next = self.wanted.val().handle1;
            self.key_way[i].same_old.next = self.key_same[0].in_old.val();
            self.key_way[i].same_last.next = self.key_same[0].in_last.val();
            self.key_way[i].same_now.next = self.key_same[0].in_now.val();
            self.key_way[i + 3].same_old.next = self.key_same[1].in_old.val();
            self.key_way[i + 3].same_last.next = self.key_same[1].in_last.val();
            self.key_way[i + 3].same_now.next = self.key_same[1].in_now.val();
            self.handle_way[i].same_old.next = self.handle_same[0].in_old.val();
            self.handle_way[i].same_last.next = self.handle_same[0].in_last.val();
            self.handle_way[i].same_now.next = self.handle_same[0].in_now.val();
            self.handle_way[i + 3].same_old.next = self.handle_same[1].in_old.val();
            self.handle_way[i + 3].same_last.next = self.handle_same[1].in_last.val();
            self.handle_way[i + 3].same_now.next = self.handle_same[1].in_now.val();
        }

        // ---------------------------------------------------------------- result
        self.fills.next = self.end_full.q.val() & !self.done.val();
        self.mends.next = self.arriving.val() & (self.best.q.val().search == Search::Unlink);
        self.mend.d.next = self.mends.val();
        if self.done.val() | self.mend.q.val() {
            self.end_valid.d.next = false;
        }
        if self.arriving.val() {
            self.end_valid.d.next = true;
            self.end.d.next = self.best.q.val();
            self.end_posts.d.next = self.best.q.val().search == Search::Post;
            self.fills.next = self.best.q.val().last & !self.unlinks.q.val();
            if self.unlinks.q.val() {
                self.end.d.next.last = false;
            }
        }
        if self.better.val() & !self.stands.q.val() {
            self.end_found.d.next = self.candidate.val();
        }
        self.end_full.d.next = self.fills.val();
        self.will_end.next = self.fills.val();
        self.settles.d.next = self.fills.val() & self.will_settle.val();
        self.moves.d.next = !self.fills.val() | self.will_settle.val();
        self.stands.d.next = self.fills.val() & !self.will_settle.val();
        self.posts.next = self.end_posts.q.val();
        self.stays.next = self.stands.q.val();
        self.end_tag.next = self.end.q.val().tag;
        self.best_tag.next = self.best.q.val().tag;
        self.end_key.next = self.end_found.q.val().key;
        self.new_id.next = self.number.q.val();
        self.result.valid.next = self.end_full.q.val() | self.tell.q.val();
        self.result.data.next = ExactResult::default();
        self.result.data.next.found = self.end_found.q.val().found;
        self.result.data.next.room = self.end_found.q.val().room & self.number_valid.q.val();
        self.result.data.next.age = self.end_found.q.val().age;
        self.result.data.next.class = self.end_found.q.val().class;
        self.result.data.next.multi = self.end_found.q.val().multi;
        self.result.data.next.rival_older = self.end_found.q.val().rival_older;
        self.result.data.next.id = self.end_found.q.val().id;
        if self.end.q.val().search == Search::Arrive {
            self.result.data.next.id = self.end_found.q.val().head;
        }
        if self.end.q.val().search == Search::Post {
            self.result.data.next.id = self.new_id.val();
        }
        self.remains.next = self.hash_valid.q.val()
            | self.place_valid.q.val()
            | self.read_valid.q.val()
            | self.compare_valid.q.val()
            | self.mux_valid.q.val()
            | (!self.mends.val()
                & (self.best_valid.q.val()
                    | (self.end_valid.q.val() & !self.done.val() & !self.mend.q.val())));

        // ---------------------------------------------------------------- commit
        self.home_of_end.next = self.end_found.q.val().home;
        self.entry.next = self.end_found.q.val().link;
        self.queue.next = Queue::default();
        self.queue.next.valid = true;
        self.queue.next.head = self.end_found.q.val().head;
        self.queue.next.tail = self.end_found.q.val().tail;
        self.queue.next.age = self.end_found.q.val().age;
        self.queue.next.multi = self.end_found.q.val().multi;
        self.new_slot.next = false;
        self.slot_ways.next = 0.into();
        self.handle.next = Handle::default();
        self.handle_ways.next = 0.into();
        self.key_row0.next = self.end_found.q.val().rows.key0;
        self.key_row1.next = self.end_found.q.val().rows.key1;
        // The handle of a receive that goes.
        self.home_handle_way.next = self.home_of_end.val().handle_way;
        self.handle_row0.next = self.end_found.q.val().rows.handle0;
        self.handle_row1.next = self.end_found.q.val().rows.handle1;
        self.put_link_at.d.next = bit_cast::<16, 14>(self.end_found.q.val().tail);
        self.put_link.d.next = self.entry.val();
        self.put_prev_at.d.next = bit_cast::<16, 14>(self.new_id.val());
        self.put_prev.d.next = self.end_found.q.val().tail;
        self.put_home_at.d.next = bit_cast::<16, 14>(self.new_id.val());
        self.freed.next = self.end_found.q.val().head;
        self.frees.next = false;
        self.numbers.next = false;
        self.links_now.next = false;
        self.prevs_now.next = false;
        self.single.next = self.end_found.q.val().single;
        self.key_number.vector.next = bit_cast::<64, 8>(self.end_found.q.val().way);
        self.handle_number.vector.next = bit_cast::<64, 8>(self.end_found.q.val().handle_way);
        self.new_home.next = Home::default();
        self.new_home.next.key_way = bit_cast::<3, 16>(self.key_number.index.val());
        self.new_home.next.handle_way = bit_cast::<3, 16>(self.handle_number.index.val());
        self.new_home.next.key_row = bit_cast::<12, 16>(self.end_found.q.val().rows.key0);
        if self.end_found.q.val().way > 7 {
            self.new_home.next.key_row = bit_cast::<12, 16>(self.end_found.q.val().rows.key1);
        }
        self.new_home.next.handle_row = bit_cast::<12, 16>(self.end_found.q.val().rows.handle0);
        if self.end_found.q.val().handle_way > 7 {
            self.new_home.next.handle_row = bit_cast::<12, 16>(self.end_found.q.val().rows.handle1);
        }
        self.put_home.d.next = self.new_home.val();
        self.new_link.next = Link::default();
        self.new_link.next.successor = self.new_id.val();
        self.new_link.next.age = bit_cast::<53, 54>(self.age.val());
        self.new_link.next.multi = self.receive.val().multi;
        self.matched_leaves.next =
            (self.end.q.val().search == Search::Arrive) & !self.end_found.q.val().multi;
        // What would be written doesn't depend on whether it is written, which is known late.
        match self.end.q.val().search {
            Search::Post => {
                self.queue.next.tail = self.new_id.val();
                if !self.end_found.q.val().found {
                    self.new_slot.next = true;
                    self.queue.next.tail = self.new_id.val();
                    self.queue.next.head = self.new_id.val();
                    self.queue.next.age = bit_cast::<53, 54>(self.age.val());
                    self.queue.next.multi = self.receive.val().multi;
                }
                self.put_link.d.next = self.new_link.val();
                self.handle.next.valid = true;
                self.handle.next.class = self.end_found.q.val().class;
                self.handle.next.request = self.receive.val().request;
                self.handle.next.pair = self.receive.val().pair;
                self.handle.next.any_source = self.receive.val().any_source;
                self.handle.next.id = self.new_id.val();
                self.slot_ways.next = self.end_found.q.val().way;
                self.handle_ways.next = self.end_found.q.val().handle_way;
                self.links_now.next = self.end_found.q.val().found;
                self.prevs_now.next = self.end_found.q.val().found;
                self.numbers.next = true;
            }
            Search::Unlink => {
                self.freed.next = self.end_found.q.val().id;
                self.put_prev.d.next = self.end_found.q.val().prev;
                self.put_prev_at.d.next = bit_cast::<16, 14>(self.entry.val().successor);
                self.put_link_at.d.next = bit_cast::<16, 14>(self.end_found.q.val().prev);
                self.frees.next = true;
                if self.single.val() {
                    self.queue.next = Queue::default();
                } else if self.end_found.q.val().first {
                    self.queue.next.head = self.entry.val().successor;
                    self.queue.next.age = self.entry.val().age;
                    self.queue.next.multi = self.entry.val().multi;
                } else {
                    self.queue.next.tail = self.end_found.q.val().prev;
                }
                if self.end_found.q.val().outer {
                    self.slot_ways.next = self.end_found.q.val().way;
                }
                self.links_now.next = !self.end_found.q.val().outer;
                self.prevs_now.next = !self.end_found.q.val().outer;
            }
            _ => {
                // An arrival. For a search by handle nothing is written yet.
                self.queue.next.head = self.entry.val().successor;
                self.queue.next.age = self.entry.val().age;
                self.queue.next.multi = self.entry.val().multi;
                if self.single.val() {
                    self.queue.next = Queue::default();
                }
                if self.matched_leaves.val() {
                    self.slot_ways.next = self.end_found.q.val().way;
                    self.frees.next = true;
                }
            }
        }
        if self.frees.val() {
            self.handle_ways.next = bits::<8>(1) << self.home_handle_way.val();
        }
        self.acts.next = self.commit.val() | self.mend.q.val();
        self.freeing.next = self.acts.val() & self.frees.val();
        self.numbering.next = self.acts.val() & self.numbers.val();
        self.put_link_now.d.next = self.acts.val() & self.links_now.val();
        self.put_prev_now.d.next = self.acts.val() & self.prevs_now.val();
        self.put_home_now.d.next = self.numbering.val();
        self.put_slot_ways.d.next = 0.into();
        self.put_handle_ways.d.next = 0.into();
        if self.acts.val() {
            self.put_slot_ways.d.next = self.slot_ways.val();
            self.put_handle_ways.d.next = self.handle_ways.val();
        }
        for i in 0..6 {
            self.key_way[i].next_write.next = self.acts.val() & self.slot_ways.val().get_bit(i);
            self.handle_way[i].next_write.next =
                self.acts.val() & self.handle_ways.val().get_bit(i);
        }
        // The number for the next receive, and one behind it, stand in registers, so that `free` needn't know in the same cycle
        // whether one is taken.
        self.wants_number.next = self.numbering.val() | !self.number_valid.q.val();
        if self.wants_number.val() {
            self.number_valid.d.next = self.spare_valid.q.val() | self.free.output.valid.val();
            self.number.d.next = self.free.output.data.val();
            if self.spare_valid.q.val() {
                self.number.d.next = self.spare.q.val();
            }
            self.spare_valid.d.next = false;
        } else if self.free.output.valid.val() {
            self.spare_valid.d.next = true;
        }
        if !self.spare_valid.q.val() {
            self.spare.d.next = self.free.output.data.val();
        }
        self.free.output.ready.next = !self.spare_valid.q.val();
        self.put_free_now.d.next = self.freeing.val();
        self.put_free.d.next = self.freed.val();
        self.free.input.valid.next = self.put_free_now.q.val();
        self.free.input.data.next = self.put_free.q.val();
        self.count.d.next = self.count.q.val();
        if self.freeing.val() {
            self.count.d.next = self.count.q.val() - 1;
        }
        if self.numbering.val() {
            self.count.d.next = self.count.q.val() + 1;
        }
        self.depth.next = self.count.q.val();

        // ---------------------------------------------------------------- after reset
        self.initialized.next = self.ready.q.val();
        if !self.ready.q.val() {
            self.put_free_now.d.next = true;
            self.put_free.d.next = bit_cast::<14, 16>(self.clearing.q.val());
            self.count.d.next = 0.into();
            self.clearing.d.next = self.clearing.q.val() + 1;
            self.ready.d.next = self.clearing.q.val() == self.last_entry.val();
        }

        // ---------------------------------------------------------------- write, one cycle later
        self.put_queue.d.next = self.queue.val();
        self.put_key.d.next = self.end_key.val();
        self.put_new.d.next = self.new_slot.val();
        self.put_handle.d.next = self.handle.val();
        self.put_rows.d.next.key0 = self.key_row0.val();
        self.put_rows.d.next.key1 = self.key_row1.val();
        self.put_rows.d.next.handle0 = self.handle_row0.val();
        self.put_rows.d.next.handle1 = self.handle_row1.val();
        if !self.ready.q.val() {
            self.put_queue.d.next = Queue::default();
            self.put_new.d.next = false;
            self.put_slot_ways.d.next = 0x3f.into();
            self.put_handle.d.next = Handle::default();
            self.put_handle_ways.d.next = 0x3f.into();
            self.put_rows.d.next.key0 = self.clearing.q.val() & self.row_mask.val();
            self.put_rows.d.next.key1 = self.clearing.q.val() & self.row_mask.val();
            self.put_rows.d.next.handle0 = self.clearing.q.val() & self.row_mask.val();
            self.put_rows.d.next.handle1 = self.clearing.q.val() & self.row_mask.val();
        }
        self.write_rows.next = self.put_rows.q.val();
        self.fresh_slots.write_key.next = self.put_key.q.val();
        self.fresh_slots.write_queue.next = self.put_queue.q.val();
        self.fresh_slots.next_key.next = self.end_key.val();
        self.fresh_slots.next_queue.next = self.queue.val();
        self.fresh_handles.write_word.next = self.put_handle.q.val().valid;
        self.fresh_handles.next_word.next = self.handle.val().valid;
        self.key_same[0].write_row.next = self.write_rows.val().key0;
        self.key_same[1].write_row.next = self.write_rows.val().key1;
        self.handle_same[0].write_row.next = self.write_rows.val().handle0;
        self.handle_same[1].write_row.next = self.write_rows.val().handle1;
        self.key_same[0].next_row.next = self.key_row0.val();
        self.key_same[1].next_row.next = self.key_row1.val();
        self.handle_same[0].next_row.next = self.handle_row0.val();
        self.handle_same[1].next_row.next = self.handle_row1.val();
        for i in 0..6 {
            self.key_way[i].write.next = self.put_slot_ways.q.val().get_bit(i);
            self.key_way[i].write_new.next = self.put_new.q.val();
            self.key_way[i].write_key.next = self.put_key.q.val();
            self.key_way[i].write_queue.next = self.put_queue.q.val();
            self.handle_way[i].write.next = self.put_handle_ways.q.val().get_bit(i);
            self.handle_way[i].write_handle.next = self.put_handle.q.val();
        }
        for i in 0..3 {
            self.key_way[i].write_row.next = self.write_rows.val().key0;
            self.key_way[i + 3].write_row.next = self.write_rows.val().key1;
            self.handle_way[i].write_row.next = self.write_rows.val().handle0;
            self.handle_way[i + 3].write_row.next = self.write_rows.val().handle1;
        }
        self.links.write_enable.next = self.put_link_now.q.val();
        self.links.write_address.next = self.put_link_at.q.val();
        self.links.write_data.next = self.put_link.q.val();
        self.prevs.write_enable.next = self.put_prev_now.q.val();
        self.prevs.write_address.next = self.put_prev_at.q.val();
        self.prevs.write_data.next = self.put_prev.q.val();
        self.homes.write_enable.next = self.put_home_now.q.val();
        self.homes.write_address.next = self.put_home_at.q.val();
        self.homes.write_data.next = self.put_home.q.val();

        // ---------------------------------------------------------------- checks
        self.free_numbers.next = self.free.level.val();
        if self.number_valid.q.val() {
            self.free_numbers.next = self.free_numbers.val() + 1;
        }
        if self.spare_valid.q.val() {
            self.free_numbers.next = self.free_numbers.val() + 1;
        }
        if self.put_free_now.q.val() {
            self.free_numbers.next = self.free_numbers.val() + 1;
        }
        self.neither_lost_nor_doubled.ok.next = !self.ready.q.val()
            | ((self.count.q.val() + self.free_numbers.val()) == self.entries.val());
        self.number_for_each_post.ok.next =
            !self.numbering.val() | (self.number_valid.q.val() & self.end_found.q.val().room);
        self.by_handle.next = (self.read.q.val().search != Search::Arrive)
            & (self.read.q.val().search != Search::Post);
        self.alone.ok.next = !(self.read_valid.q.val()
            & self.by_handle.val()
            & (self.compare_valid.q.val() | self.mux_valid.q.val() | self.best_valid.q.val()))
            & !(self.read_valid.q.val()
                & self.by_handle.val()
                & (self.read.q.val().search != Search::Unlink)
                & (self.hash_valid.q.val() | self.place_valid.q.val() | self.end_valid.q.val()))
            & !((self.goes_on.val() | (self.best_valid.q.val() & self.unlinks.q.val()))
                & (self.hash_valid.q.val()
                    | self.place_valid.q.val()
                    | self.read_valid.q.val()
                    | self.end_valid.q.val()));
        self.told.d.next = self.tell.q.val() & !self.commit.val();
        self.removes_what_it_finds.ok.next = !self.told.q.val() | self.commit.val();
        self.reads_settled.ok.next = !self.compare_valid.q.val()
            | (self.compare.q.val().search == Search::Arrive)
            | (self.compare.q.val().search == Search::Post)
            | !(self.fresh_handle.val()
                | self.in_old.val().any()
                | self.in_last.val().any()
                | self.in_now.val().any());
        self.settles_what_is_done.ok.next = !self.settles.q.val()
            | (self.done.val()
                & ((self.end_valid.q.val() & self.end.q.val().last) | self.tell.q.val()));
        self.full_is_a_result.ok.next =
            self.end_full.q.val() == (self.end_valid.q.val() & self.end.q.val().last);
        self.row_after.next = (self.cursor.q.val() + 1) & self.row_mask.val();
        self.copies_agree.ok.next = (self.hash_empty.q.val() != self.hash_valid.q.val())
            & (self.hash_key.q.val() == self.hash.q.val().key)
            & (self.behind_cursor.q.val() == self.row_after.val());
        self.one_slot.ok.next =
            !self.mux_valid.q.val() | !(self.mux_hit.val() & (self.mux_hit.val() - 1)).any();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_three_places_for_each_receive() {
        for entries in [8, 64, 100, 1024] {
            let exact = Exact::new(entries, crate::config::table_rows(entries));
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
        Exact::new(64, 24);
    }

    #[test]
    #[should_panic(expected = "128 rows for 64 receives")]
    fn rows_are_no_more_than_are_cleared() {
        Exact::new(64, 128);
    }
}
