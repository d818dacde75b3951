//! Fetches what the hosts have posted, many entries at a time, and refuses what is malformed.
//!
//! ```text
//!  doorbell ─► Ring ×2n ─► turn ─► reserve, read 64 bytes ──► DmaRead
//!                 ▲                        │ which ring
//!                 │                        ▼
//!                 │               reads under way, in order
//!                 │                        │
//!                 └── advance, or stop ◄── words ◄── DmaRead
//!                                            ├─► EntryQueue of sends ─► check ─┬─► sends, a gather once both entries are here
//!                                            └─► EntryQueue of lists ─► check ─┼─► lists
//!                                                                              └─► refused ─► complete
//! ```
//!
//! Rings take turns. For each entry a completion is reserved before it is read, so that the request can always be answered, and a place
//! in the queue of its class, so that its words never wait for anybody else's progress: a send that nobody takes stops neither the list rings
//! nor the reader.
//!
//! A gather is two entries of its send ring and one request: its first entry waits until the second is there (`gathers.rs`).
//!
//! A ring is read ahead of what has come. When an entry can't be read the ring stops there, and what was read behind it is discarded as it comes.
//!
//! | file | idea |
//! |---|---|
//! | `control` | rings are set, endpoints begin and stop |
//! | `rings` | doorbells, heads, events, and what becomes of entries |
//! | `choose` | which ring is read next |
//! | `words` | what is read |
//! | `oldest` | what the oldest of each class means |
//! | `leave` | requests leave, or are refused |
//! | `gathers` | two entries that are one request |

mod choose;
mod control;
mod gathers;
mod leave;
mod oldest;
mod rings;
mod words;

use super::decode::Decode;
use super::entry_queue::EntryQueue;
use super::places::{Places, QUEUE};
use super::ring::Ring;
use crate::config::Config;
use crate::prelude::*;
use crate::prim::{Fifo, Ram, RoundRobin};
use crate::types::{
    Completion, ControlRequest, DmaRequest, Doorbell, EndpointSetup, FetchedList, FetchedSend,
    ListRequest, RaiseEvent, RingSetup, Segment, Segments, SendRequest, SendSegments,
    WriteCompletion,
};
use abi::control::{Operation, RING_BITS};
use abi::opcode::WorkRing;

const _: () = assert!(QUEUE < 1 << 5, "a ring counts to its class's places");

const _: () = assert!(RING_BITS == 2, "the kernel slices indices at this bit");

/// What is done to a gather.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Join {
    /// Nothing.
    Idle,
    /// Its first entry has been read, and is compared with the second.
    Looking,
    /// It is handed over, or refused.
    Deciding,
}

/// A first entry.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Held {
    malformed: Bit,
    flags: Bits<8>,
    pair: Bits<16>,
    context: Bits<16>,
    request: Bits<32>,
    key: Bits<32>,
    match_bits: Bits<64>,
    immediate: Bits<64>,
    address: Bits<64>,
    /// At most `TOO_LONG`.
    length: Bits<11>,
}

/// Rings of all endpoints and what empties them.
#[block(config: &Config)]
pub struct Fetch {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous, active high.
    pub reset: Signal<In, Bit>,

    /// A write to a doorbell page.
    pub doorbell: Pulse<In, Doorbell>,
    /// Endpoint whose heads are read; they follow one cycle later.
    pub read_endpoint: Signal<In, Bits<8>>,
    /// Index up to which the send ring has been fetched.
    pub send_head: Signal<Out, Bits<16>>,
    /// Index up to which the list ring has been fetched.
    pub list_head: Signal<Out, Bits<16>>,

    /// A control request; taken when it is done.
    pub control: Stream<In, ControlRequest>,

    /// A bit an endpoint: a completion can be reserved. Knows of a reservation one cycle after it.
    pub completion_free: Signal<In, Bits<32>>,
    /// A completion of this endpoint is reserved.
    pub reserve: Pulse<Out, Bits<8>>,
    /// A reservation of this endpoint ends without a completion.
    pub given_up: Pulse<Out, Bits<8>>,

    /// Read client of `DmaRead`.
    pub read_request: Stream<Out, DmaRequest>,
    /// Eight bytes, the first in the lowest lane. Always taken.
    pub read_data: Stream<In, Bits<64>>,
    /// The last of this access.
    pub read_data_last: Signal<In, Bit>,
    /// With the last word: the host's memory refused the access.
    pub read_data_error: Signal<In, Bit>,

    /// Requests of the send rings.
    pub sends: Stream<Out, FetchedSend>,
    /// A bit an endpoint: its list ring has an entry that has neither been handed over nor, malformed, completed. Follows one cycle later, a
    /// doorbell two cycles later.
    pub lists_pending: Signal<Out, Bits<16>>,
    /// Requests of the list rings.
    pub lists: Stream<Out, FetchedList>,
    /// Completions of malformed requests.
    pub complete: Stream<Out, WriteCompletion>,
    /// What went wrong with a ring.
    pub raise: Stream<Out, RaiseEvent>,

    /// Pulse: a request was refused as malformed.
    pub count_invalid_requests: Signal<Out, Bit>,
    /// Pulse: a doorbell was ignored because of its value.
    pub count_doorbell_errors: Signal<Out, Bit>,

    #[each(2 * config.endpoints)]
    ring: Vec<Ring>,
    #[each(config.endpoints)]
    running: Vec<Reg<Bit>>,
    #[each(config.endpoints)]
    domain: Vec<Reg<Bits<8>>>,
    #[is(RoundRobin::new(2 * config.endpoints))]
    turn: RoundRobin,
    #[is(RoundRobin::new(2 * config.endpoints))]
    event_turn: RoundRobin,

    // Selection and read request.
    eligible: Signal<Local, Bits<32>>,
    may_reserve: Signal<Local, Bits<32>>,
    choice_valid: Reg<Bit>,
    choice: Reg<Bits<8>>,
    may_read: Signal<Local, Bit>,
    selecting: Signal<Local, Bit>,
    selected_ring: Signal<Local, Bits<8>>,
    selected_start: Signal<Local, Bits<64>>,
    selected_slot: Signal<Local, Bits<16>>,
    selected_offset: Signal<Local, Bits<64>>,
    #[is(Check::new("a_ring_is_aligned_to_its_size"))]
    ring_is_aligned: Check,
    free_of_selected: Signal<Local, Bit>,
    wanted_valid: Reg<Bit>,
    wanted: Reg<DmaRequest>,
    /// Rings of the reads under way, the oldest first.
    #[is(Fifo::new(2 * QUEUE))]
    under_way: Fifo<Bits<8>>,
    // Places of each class that nothing is read for.
    send_places: Places,
    list_places: Places,

    // The word that has come, and whether it was the last of its entry.
    word: Reg<Bits<64>>,
    word_valid: Reg<Bit>,
    whole: Reg<Bit>,
    failed: Reg<Bit>,
    from: Signal<Local, Bits<8>>,
    from_list: Signal<Local, Bit>,
    from_endpoint: Signal<Local, Bits<8>>,
    from_stopped: Signal<Local, Bit>,
    keep: Signal<Local, Bit>,
    unreadable: Signal<Local, Bit>,
    discard: Signal<Local, Bit>,

    // What waits to be taken, and what the oldest of each class is.
    send_queue: EntryQueue,
    list_queue: EntryQueue,
    as_send: Signal<Local, SendRequest>,
    as_list: Signal<Local, ListRequest>,
    send_domain: Signal<Local, Bits<8>>,
    list_domain: Signal<Local, Bits<8>>,
    fetched_send: Signal<Local, FetchedSend>,
    fetched_list: Signal<Local, FetchedList>,
    send_malformed: Reg<Bit>,
    send_kind: Reg<Bits<8>>,
    list_malformed: Reg<Bit>,
    list_kind: Reg<Bits<8>>,
    list_buffer: Reg<Bit>,
    list_needs_pair: Reg<Bit>,
    list_names_claim: Reg<Bit>,
    send_reserved: Signal<Local, Bit>,
    send_payload: Signal<Local, Bit>,
    send_long: Signal<Local, Bit>,
    list_reserved: Signal<Local, Bit>,
    #[is(Decode::new(WorkRing::Send, config.capabilities))]
    send_decode: Decode,
    #[is(Decode::new(WorkRing::List, config.capabilities))]
    list_decode: Decode,

    // Gathers, by the endpoints of their rings.
    join: Reg<Join>,
    /// First entries that wait for their seconds.
    #[is(Ram::new(config.endpoints))]
    firsts: Ram<Held>,
    #[each(config.endpoints)]
    held: Vec<Reg<Bit>>,
    /// The second has been asked for without a reservation.
    #[each(config.endpoints)]
    bare: Vec<Reg<Bit>>,
    /// What is behind the first isn't its second.
    #[each(config.endpoints)]
    alone: Vec<Reg<Bit>>,
    awaited: Signal<Local, Bits<16>>,
    wants_second: Signal<Local, Bits<16>>,
    /// The entry that is chosen is read without a reservation.
    reads_second: Signal<Local, Bit>,
    /// So was the one that comes.
    from_bare: Signal<Local, Bit>,
    /// The next word is the first of its entry, and the opcode of the last one that was.
    #[is(Reg::new(true))]
    begins: Reg<Bit>,
    opcode: Reg<Bits<8>>,
    put_back: Signal<Local, Bit>,
    /// Of the oldest send: what its row says, whether a first of its ring is held, and whether the second of that has no reservation.
    send_takes_second: Reg<Bit>,
    send_is_second: Reg<Bit>,
    has_first: Signal<Local, Bit>,
    has_no_reservation: Signal<Local, Bit>,
    looks: Signal<Local, Bit>,
    send_is_plain: Signal<Local, Bit>,
    holds: Signal<Local, Bit>,
    holding: Signal<Local, Held>,
    joins: Signal<Local, Bit>,
    /// Firsts to which nothing will be joined, one of them, and whether that is because its second can't be read.
    orphans: Signal<Local, Bits<16>>,
    orphan: Signal<Local, Bits<8>>,
    orphan_unread: Signal<Local, Bit>,
    orphaned: Signal<Local, Bit>,
    /// The gather that is dealt with.
    gather_endpoint: Reg<Bits<8>>,
    gather_whole: Reg<Bit>,
    gather_status: Reg<Bits<8>>,
    gather_length: Reg<Bits<13>>,
    first_address: Signal<Local, Bits<8>>,
    first: Signal<Local, Held>,
    as_second: Signal<Local, SendSegments>,
    reserved_of_second: Signal<Local, Bit>,
    cut_first: Signal<Local, Bits<11>>,
    cut: Signal<Local, Segments>,
    cut_second: Signal<Local, Segment>,
    cut_third: Signal<Local, Segment>,
    cut_fourth: Signal<Local, Segment>,
    as_gather: Signal<Local, SendRequest>,
    gather_sound: Signal<Local, Bit>,
    gather_leaves: Signal<Local, Bit>,
    gather_refused: Signal<Local, Bit>,
    gather_gone: Signal<Local, Bit>,
    gather_is_malformed: Signal<Local, Bit>,

    send_refused: Signal<Local, Bit>,
    list_refused: Signal<Local, Bit>,
    send_sound: Signal<Local, Bit>,
    list_sound: Signal<Local, Bit>,
    send_leaves: Signal<Local, Bit>,
    list_leaves: Signal<Local, Bit>,
    send_gone: Signal<Local, Bit>,
    list_gone: Signal<Local, Bit>,
    send_ring: Signal<Local, Bits<8>>,
    list_ring: Signal<Local, Bits<8>>,

    // The refusal on its way to the completion queue.
    refused_valid: Reg<Bit>,
    refused_ring: Reg<Bits<8>>,
    refused: Reg<WriteCompletion>,
    refusal: Signal<Local, Completion>,
    refusal_leaves: Signal<Local, Bit>,

    // The event on its way to the event queue.
    raised_valid: Reg<Bit>,
    raised: Reg<RaiseEvent>,
    event_number: Signal<Local, Bits<8>>,
    event_request: Signal<Local, Bits<32>>,
    raising: Signal<Local, Bit>,
    info: Signal<Local, Bits<32>>,

    // Control.
    ring_setup: Signal<Local, RingSetup>,
    endpoint_setup: Signal<Local, EndpointSetup>,
    set_ring: Signal<Local, Bit>,
    set_endpoint: Signal<Local, Bit>,
    stop_endpoint: Signal<Local, Bit>,
    clear_endpoint: Signal<Local, Bit>,
    clearing: Signal<Local, Bit>,
    setting: Signal<Local, Bit>,
    busy: Signal<Local, Bit>,
    runs: Signal<Local, Bit>,
    target: Signal<Local, Bits<16>>,
    set_number: Signal<Local, Bits<16>>,

    /// The doorbell of the cycle before: what it is compared with is enough for one cycle.
    rung: Reg<Bit>,
    doorbell_rung: Reg<Doorbell>,
    send_doorbell: Signal<Local, Bit>,
    list_doorbell: Signal<Local, Bit>,
    ignored: Signal<Local, Bit>,
    pending_now: Signal<Local, Bits<16>>,
    pending_lists: Reg<Bits<16>>,
    read_send_head: Reg<Bits<16>>,
    read_list_head: Reg<Bits<16>>,

    #[is(Check::new("fetch_reserves_only_what_is_free"))]
    reserves_what_is_free: Check,
    #[is(Check::new("fetch_words_belong_to_a_read"))]
    words_belong_to_a_read: Check,
    #[is(config.endpoints)]
    _n: usize,
    #[is(2 * config.endpoints)]
    _rings: usize,
}

impl Fetch {
    /// The control requests that it takes.
    pub const REQUESTS: &[Operation] = &[
        Operation::RingSet,
        Operation::EndpointSet,
        Operation::EndpointStop,
        Operation::EndpointClear,
    ];

    /// For the endpoints of `config`.
    ///
    /// # Panics
    /// If there are more than 16 endpoints.
    pub fn new(config: &Config) -> Self {
        let n = config.endpoints;
        assert!(n <= 16, "the rings of {n} endpoints don't fit one arbiter");
        Self::build(config)
    }
}

#[block(rings = self._rings)]
impl Logic for Fetch {
    fn update(&mut self) {
        self.obey();
        self.hear_doorbells();
        self.find_seconds();
        self.choose();
        self.read_second();
        self.read_chosen();
        self.hear_words();
        self.look_at_second();
        self.keep_words();
        self.decode();
        self.join_gathers();
        self.describe_list();
        self.finish_gather();
        self.hand_over();
        self.refuse();
        self.refuse_gather();
        self.keep_refusal();
        self.count_places();
        self.move_rings();
        self.raise_events();
    }
}
