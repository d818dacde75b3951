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

mod gathers;

use super::decode::Decode;
use super::entry_queue::{DEPTH, EntryQueue};
use super::ring::Ring;
use crate::config::Config;
use crate::prelude::*;
use crate::prim::{Fifo, Ram, RoundRobin};
use crate::types::{
    Completion, ControlRequest, DmaRequest, Doorbell, EndpointSetup, FetchedList, FetchedSend,
    ListRequest, RaiseEvent, RingSetup, Segment, Segments, SendRequest, SendSegments,
    WriteCompletion,
};
use abi::control::{Operation, RING_BITS, RING_LIST, RING_SEND};
use abi::event::{INFO_LIST_RING_BIT, NO_PAIR};
use abi::opcode::WorkRing;
use abi::register::{LIST_TAIL, SEND_TAIL};
use abi::request::{INLINE_BYTES, REQUEST_BYTES};
use abi::status::Status;

const _: () = assert!(QUEUE < 1 << 5, "a ring counts to its class's places");

/// Entries of a class that may be under way or wait to be taken. At a memory latency of 125 cycles this keeps a read for every nine cycles under way.
pub const QUEUE: usize = DEPTH;

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
    free_of_selected: Signal<Local, Bit>,
    wanted_valid: Reg<Bit>,
    wanted: Reg<DmaRequest>,
    /// Rings of the reads under way, the oldest first.
    #[is(Fifo::new(2 * QUEUE))]
    under_way: Fifo<Bits<8>>,
    /// Places of each class that nothing is read for.
    #[is(Reg::new((QUEUE as u64).into()))]
    send_room: Reg<Bits<8>>,
    #[is(Reg::new((QUEUE as u64).into()))]
    list_room: Reg<Bits<8>>,
    send_place: Signal<Local, Bit>,
    list_place: Signal<Local, Bit>,
    send_places: Signal<Local, Bits<8>>,
    list_places: Signal<Local, Bits<8>>,

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
        // Control.
        self.ring_setup.next = bit_cast::<128, 320>(self.control.data.val().data).into();
        self.endpoint_setup.next = bit_cast::<64, 320>(self.control.data.val().data).into();
        self.target.next = self.control.data.val().index;
        self.set_ring.next = self.control.valid.val()
            & (self.control.data.val().operation == Operation::RingSet)
            & (((self.target.val() & 3) == RING_SEND) | ((self.target.val() & 3) == RING_LIST));
        self.set_endpoint.next = self.control.valid.val()
            & (self.control.data.val().operation == Operation::EndpointSet);
        self.stop_endpoint.next = self.control.valid.val()
            & (self.control.data.val().operation == Operation::EndpointStop);
        self.clear_endpoint.next = self.control.valid.val()
            & (self.control.data.val().operation == Operation::EndpointClear);
        // Rings here are two an endpoint, the list ring behind the send ring.
        self.set_number.next = (self.target.val() >> RING_BITS) << 1;
        if (self.target.val() & 3) == RING_LIST {
            self.set_number.next = ((self.target.val() >> RING_BITS) << 1) | 1;
        }
        self.runs.next = false;
        self.busy.next = false;
        for i in 0..self._n {
            if self.target.val() == i.to_bits() {
                self.runs.next = self.running[i].q.val();
                self.busy.next = (self.stop_endpoint.val() | self.clear_endpoint.val())
                    & !(self.ring[2 * i].empty.val() & self.ring[2 * i + 1].empty.val());
                if self.set_endpoint.val() {
                    self.running[i].d.next = true;
                    self.domain[i].d.next = self.endpoint_setup.val().domain;
                }
                if self.stop_endpoint.val() | self.clear_endpoint.val() {
                    self.running[i].d.next = false;
                }
            }
        }
        for i in 0..self._rings {
            if self.set_ring.val()
                & (self.set_number.val() == i.to_bits())
                & !self.ring[i].empty.val()
            {
                self.busy.next = true;
            }
        }
        self.control.ready.next = self.control.valid.val()
            & !self.busy.val()
            & !((self.stop_endpoint.val() | self.clear_endpoint.val()) & self.runs.val());
        self.clearing.next = self.clear_endpoint.val() & self.control.ready.val();
        self.setting.next = self.set_ring.val() & self.control.ready.val();

        // Doorbells and rings.
        self.rung.d.next = self.doorbell.valid.val();
        self.doorbell_rung.d.next = self.doorbell.data.val();
        self.send_doorbell.next =
            self.rung.q.val() & (self.doorbell_rung.q.val().offset == SEND_TAIL);
        self.list_doorbell.next =
            self.rung.q.val() & (self.doorbell_rung.q.val().offset == LIST_TAIL);
        self.read_send_head.d.next = 0.into();
        self.read_list_head.d.next = 0.into();
        self.pending_now.next = 0.into();
        for i in 0..self._n {
            self.ring[2 * i].clear.next = self.clearing.val() & (self.target.val() == i.to_bits());
            self.ring[2 * i + 1].clear.next =
                self.clearing.val() & (self.target.val() == i.to_bits());
            self.ring[2 * i].doorbell.next =
                self.send_doorbell.val() & (self.doorbell_rung.q.val().endpoint == i.to_bits());
            self.ring[2 * i + 1].doorbell.next =
                self.list_doorbell.val() & (self.doorbell_rung.q.val().endpoint == i.to_bits());
            if self.read_endpoint.val() == i.to_bits() {
                self.read_send_head.d.next = self.ring[2 * i].head.val();
                self.read_list_head.d.next = self.ring[2 * i + 1].head.val();
            }
            self.pending_now.next = self.pending_now.val().replace_bit(
                i,
                self.ring[2 * i + 1].pending.val() | !self.ring[2 * i + 1].empty.val(),
            );
        }
        self.send_head.next = self.read_send_head.q.val();
        self.list_head.next = self.read_list_head.q.val();
        self.pending_lists.d.next = self.pending_now.val();
        self.lists_pending.next = self.pending_lists.q.val();

        // The next ring in turn that has an entry, a place for it, and one for its completion. None is read in the cycle in which its doorbell
        // is looked at.
        self.find_seconds();
        self.may_reserve.next = self.completion_free.val();
        self.send_place.next = self.send_room.q.val().any();
        self.list_place.next = self.list_room.q.val().any();
        self.eligible.next = 0.into();
        for i in 0..self._n {
            self.eligible.next = self.eligible.val().replace_bit(
                2 * i,
                self.ring[2 * i].pending.val()
                    & !(self.send_doorbell.val()
                        & (self.doorbell_rung.q.val().endpoint == i.to_bits()))
                    & self.send_place.val()
                    & !self.bare[i].q.val()
                    & (self.wants_second.val().get_bit(i)
                        | (self.running[i].q.val()
                            & self.may_reserve.val().get_bit(i)
                            & !(self.set_ring.val()
                                & ((self.set_number.val() >> 1) == i.to_bits())
                                & !self.set_number.val().get_bit(0)))),
            );
            self.eligible.next = self.eligible.val().replace_bit(
                2 * i + 1,
                self.ring[2 * i + 1].pending.val()
                    & !(self.list_doorbell.val()
                        & (self.doorbell_rung.q.val().endpoint == i.to_bits()))
                    & self.running[i].q.val()
                    & self.may_reserve.val().get_bit(i)
                    & self.list_place.val()
                    & !(self.set_ring.val()
                        & ((self.set_number.val() >> 1) == i.to_bits())
                        & self.set_number.val().get_bit(0)),
            );
        }
        // It is chosen in one cycle, and read in the next in which the request before has gone, if it still may be: so nobody else waits for the
        // choice.
        self.turn.request.next = self.eligible.val();
        self.turn.advance.next = !self.choice_valid.q.val();
        if !self.choice_valid.q.val() {
            self.choice_valid.d.next = self.turn.valid.val();
            self.choice.d.next = self.turn.index.val();
        }
        self.selected_ring.next = self.choice.q.val();
        self.may_read.next = false;
        for i in 0..self._rings {
            if self.selected_ring.val() == i.to_bits() {
                self.may_read.next = self.eligible.val().get_bit(i);
            }
        }
        self.selecting.next =
            self.choice_valid.q.val() & !self.wanted_valid.q.val() & self.may_read.val();
        if !self.wanted_valid.q.val() {
            self.choice_valid.d.next = self.turn.valid.val() & !self.choice_valid.q.val();
        }
        self.selected_start.next = 0.into();
        self.selected_slot.next = 0.into();
        self.free_of_selected.next = false;
        for i in 0..self._rings {
            if self.selected_ring.val() == i.to_bits() {
                self.selected_start.next = self.ring[i].start.val();
                self.selected_slot.next = self.ring[i].slot.val();
            }
        }
        for i in 0..self._n {
            if (self.selected_ring.val() >> 1) == i.to_bits() {
                self.free_of_selected.next = self.completion_free.val().get_bit(i);
            }
        }
        self.read_second();
        self.reserve.valid.next = self.selecting.val() & !self.reads_second.val();
        self.reserve.data.next = self.selected_ring.val() >> 1;
        self.reserves_what_is_free.ok.next =
            !self.reserve.valid.val() | self.free_of_selected.val();

        // The read request.
        send!(
            self.read_request,
            self.wanted_valid.q.val(),
            self.wanted.q.val()
        );
        if self.read_request.ready.val() {
            self.wanted_valid.d.next = false;
        }
        if self.selecting.val() {
            self.wanted_valid.d.next = true;
            self.wanted.d.next.address = self.selected_start.val()
                + (bit_cast::<64, 16>(self.selected_slot.val()) << REQUEST_BYTES.trailing_zeros());
            self.wanted.d.next.length = REQUEST_BYTES;
        }
        self.under_way.input.valid.next = self.selecting.val();
        self.under_way.input.data.next = self.selected_ring.val();

        // Its words, to the queue of its class. The last says whether anything comes of it.
        self.read_data.ready.next = true;
        self.word_valid.d.next = self.read_data.valid.val();
        self.whole.d.next = self.read_data.valid.val() & self.read_data_last.val();
        if self.read_data.valid.val() {
            self.word.d.next = self.read_data.data.val();
            self.failed.d.next = self.read_data_error.val();
        }
        self.words_belong_to_a_read.ok.next =
            !self.word_valid.q.val() | self.under_way.output.valid.val();
        self.under_way.output.ready.next = self.whole.q.val();
        self.from.next = self.under_way.output.data.val();
        self.from_list.next = self.from.val().get_bit(0);
        self.from_endpoint.next = self.from.val() >> 1;
        self.from_stopped.next = false;
        for i in 0..self._rings {
            if self.from.val() == i.to_bits() {
                self.from_stopped.next = self.ring[i].stopped.val();
            }
        }
        self.unreadable.next = self.whole.q.val() & self.failed.q.val() & !self.from_stopped.val();
        self.discard.next = self.whole.q.val() & (self.failed.q.val() | self.from_stopped.val());
        self.look_at_second();
        self.keep.next = self.whole.q.val() & !self.discard.val() & !self.put_back.val();
        self.given_up.valid.next = self.discard.val() & !self.from_bare.val();
        self.given_up.data.next = self.from_endpoint.val();
        send!(
            self.send_queue.word,
            self.word_valid.q.val() & !self.from_list.val(),
            self.word.q.val()
        );
        send!(
            self.send_queue.keep,
            self.keep.val() & !self.from_list.val(),
            self.from.val()
        );
        self.send_queue.drop.next =
            (self.discard.val() & !self.from_list.val()) | self.put_back.val();
        send!(
            self.list_queue.word,
            self.word_valid.q.val() & self.from_list.val(),
            self.word.q.val()
        );
        send!(
            self.list_queue.keep,
            self.keep.val() & self.from_list.val(),
            self.from.val()
        );
        self.list_queue.drop.next = self.discard.val() & self.from_list.val();

        // What the oldest of each class means, looked at in the cycle before it is offered.
        self.as_send.next = self.send_queue.output.data.val().into();
        self.as_list.next = self.list_queue.output.data.val().into();
        self.send_reserved.next = self.as_send.val().reserved0.any();
        self.send_payload.next =
            self.as_send.val().inline1.any() | self.as_send.val().inline2.any();
        self.send_long.next = self.as_send.val().length > INLINE_BYTES;
        self.list_reserved.next =
            self.as_list.val().reserved0.any() | self.as_list.val().reserved2.any();
        set!(
            self.send_decode,
            opcode = self.as_send.val().opcode,
            flags = self.as_send.val().flags,
            reserved = self.send_reserved.val(),
            payload = self.send_payload.val(),
            long = self.send_long.val(),
            min_free = false
        );
        set!(
            self.list_decode,
            opcode = self.as_list.val().opcode,
            flags = self.as_list.val().flags,
            reserved = self.list_reserved.val(),
            payload = false,
            long = false,
            min_free = self.as_list.val().min_free.any()
        );
        self.send_malformed.d.next = self.send_decode.malformed.val();
        self.send_kind.d.next = self.send_decode.kind.val();
        self.list_malformed.d.next = self.list_decode.malformed.val();
        self.list_kind.d.next = self.list_decode.kind.val();
        self.list_buffer.d.next = self.list_decode.buffer.val();
        self.list_needs_pair.d.next = self.list_decode.needs_pair.val();
        self.list_names_claim.d.next = self.list_decode.names_claim.val();
        self.send_ring.next = self.send_queue.ring.val();
        self.list_ring.next = self.list_queue.ring.val();
        self.send_domain.next = 0.into();
        self.list_domain.next = 0.into();
        for i in 0..self._n {
            if (self.send_ring.val() >> 1) == i.to_bits() {
                self.send_domain.next = self.domain[i].q.val();
            }
            if (self.list_ring.val() >> 1) == i.to_bits() {
                self.list_domain.next = self.domain[i].q.val();
            }
        }
        self.fetched_send.next = FetchedSend {
            endpoint: self.send_ring.val() >> 1,
            domain: self.send_domain.val(),
            request: self.as_send.val(),
            segments: Segments::default(),
        };
        self.join_gathers();
        self.fetched_list.next = FetchedList {
            endpoint: self.list_ring.val() >> 1,
            domain: self.list_domain.val(),
            kind: self.list_kind.q.val(),
            buffer: self.list_buffer.q.val(),
            needs_pair: self.list_needs_pair.q.val(),
            names_claim: self.list_names_claim.q.val(),
            request: self.as_list.val(),
        };

        // What is well formed leaves by the streams, the rest as a completion.
        self.finish_gather();
        self.send_sound.next = self.send_is_plain.val() & !self.send_malformed.q.val();
        self.list_sound.next = self.list_queue.output.valid.val() & !self.list_malformed.q.val();
        send!(
            self.sends,
            self.send_sound.val() | self.gather_sound.val(),
            self.fetched_send.val()
        );
        send!(self.lists, self.list_sound.val(), self.fetched_list.val());
        self.send_refused.next =
            self.send_is_plain.val() & self.send_malformed.q.val() & !self.refused_valid.q.val();
        self.list_refused.next = self.list_queue.output.valid.val()
            & self.list_malformed.q.val()
            & !self.refused_valid.q.val()
            & !self.send_refused.val()
            & !self.gather_refused.val();
        self.send_leaves.next = self.send_sound.val() & self.sends.ready.val();
        self.list_leaves.next = self.list_sound.val() & self.lists.ready.val();
        self.send_gone.next = self.send_leaves.val()
            | self.send_refused.val()
            | self.holds.val()
            | (self.gather_gone.val() & self.gather_whole.q.val());
        self.send_queue.output.ready.next = self.send_gone.val();
        self.list_gone.next = self.list_leaves.val() | self.list_refused.val();
        self.list_queue.output.ready.next = self.list_gone.val();
        self.count_invalid_requests.next = self.send_refused.val()
            | self.list_refused.val()
            | (self.gather_refused.val() & self.gather_is_malformed.val());

        send!(
            self.complete,
            self.refused_valid.q.val(),
            self.refused.q.val()
        );
        self.refusal_leaves.next = self.refused_valid.q.val() & self.complete.ready.val();
        if self.refusal_leaves.val() {
            self.refused_valid.d.next = false;
        }
        self.refusal.next = Completion::default();
        self.refusal.next.status = Status::InvalidRequest;
        if self.send_refused.val() {
            self.refusal.next.request = self.as_send.val().request;
            self.refusal.next.pair = self.as_send.val().pair;
            self.refusal.next.kind = self.send_kind.q.val();
            self.refused.d.next.endpoint = self.send_ring.val() >> 1;
            self.refused_ring.d.next = self.send_ring.val();
        }
        if self.list_refused.val() {
            self.refusal.next.request = self.as_list.val().request;
            self.refusal.next.pair = self.as_list.val().pair;
            self.refusal.next.kind = self.list_kind.q.val();
            self.refused.d.next.endpoint = self.list_ring.val() >> 1;
            self.refused_ring.d.next = self.list_ring.val();
        }
        self.refuse_gather();
        if self.send_refused.val() | self.list_refused.val() | self.gather_refused.val() {
            self.refused_valid.d.next = true;
            self.refused.d.next.entry = self.refusal.val();
        }

        // Places come back when what was read leaves its queue, or never came there.
        self.send_places.next = self.send_room.q.val();
        self.list_places.next = self.list_room.q.val();
        if self.selecting.val() & !self.selected_ring.val().get_bit(0) {
            self.send_places.next = self.send_places.val() - 1;
        }
        if self.selecting.val() & self.selected_ring.val().get_bit(0) {
            self.list_places.next = self.list_places.val() - 1;
        }
        if self.send_gone.val() {
            self.send_places.next = self.send_places.val() + 1;
        }
        if self.list_gone.val() {
            self.list_places.next = self.list_places.val() + 1;
        }
        if (self.discard.val() & !self.from_list.val()) | self.put_back.val() {
            self.send_places.next = self.send_places.val() + 1;
        }
        if self.discard.val() & self.from_list.val() {
            self.list_places.next = self.list_places.val() + 1;
        }
        self.send_room.d.next = self.send_places.val();
        self.list_room.d.next = self.list_places.val();
        self.ignored.next = false;
        for i in 0..self._rings {
            self.ring[i].set.next = self.setting.val() & (self.set_number.val() == i.to_bits());
            self.ring[i].base.next = self.ring_setup.val().base;
            self.ring[i].log2.next = self.ring_setup.val().log2;
            self.ring[i].value.next = self.doorbell_rung.q.val().value;
            self.ring[i].read.next =
                self.selecting.val() & (self.selected_ring.val() == i.to_bits());
            self.ring[i].advance.next = self.keep.val() & (self.from.val() == i.to_bits());
            self.ring[i].stop.next = self.unreadable.val() & (self.from.val() == i.to_bits());
            self.ring[i].discard.next = self.discard.val() & (self.from.val() == i.to_bits());
            self.ring[i].put_back.next = self.put_back.val() & (self.from.val() == i.to_bits());
            self.ring[i].leaves.next =
                ((self.send_leaves.val() | self.joins.val() | self.gather_leaves.val())
                    & (self.send_ring.val() == i.to_bits()))
                    | (self.list_leaves.val() & (self.list_ring.val() == i.to_bits()));
            self.ring[i].refused.next =
                self.refusal_leaves.val() & (self.refused_ring.q.val() == i.to_bits());
            self.ignored.next = self.ignored.val() | self.ring[i].ignored.val();
        }
        self.count_doorbell_errors.next = self.ignored.val();

        // Events of the rings, in turn.
        self.event_request.next = 0.into();
        for i in 0..self._rings {
            self.event_request.next = self
                .event_request
                .val()
                .replace_bit(i, self.ring[i].raise.val());
        }
        self.event_turn.request.next = self.event_request.val();
        self.raising.next = self.event_turn.valid.val() & !self.raised_valid.q.val();
        self.event_turn.advance.next = self.raising.val();
        self.event_number.next = self.event_turn.index.val();
        send!(self.raise, self.raised_valid.q.val(), self.raised.q.val());
        if self.raise.ready.val() {
            self.raised_valid.d.next = false;
        }
        for i in 0..self._rings {
            self.info.next = self.ring[i].info.val();
            self.ring[i].event_taken.next =
                self.raising.val() & (self.event_number.val() == i.to_bits());
            if self.raising.val() & (self.event_number.val() == i.to_bits()) {
                self.raised_valid.d.next = true;
                self.raised.d.next.endpoint = self.event_number.val() >> 1;
                self.raised.d.next.cause = self.ring[i].cause.val();
                self.raised.d.next.pair = NO_PAIR;
                self.raised.d.next.info = bit_cast::<64, 32>(self.info.val())
                    | (bit_cast::<64, 8>(self.event_number.val() & 1) << INFO_LIST_RING_BIT);
            }
        }
    }
}
