//! The work queues: fetches what the host has posted, and refuses what is malformed.
//!
//! Each endpoint has two rings, one for sends and their cancels and one for receives, their cancels,
//! probes and claims. Rings take turns. For each entry a completion is reserved before it is read, so that the request can always
//! be answered; one entry of each class may be under way, so a send that nobody takes doesn't stop
//! the list rings, nor the other way round.
//!
//! ```text
//!  doorbell ─► Ring ×2n ─► turn ─► reserve, read 64 bytes ─► words ─► check ─┬► send slot ─► sends
//!                 ▲                                                          ├► list slot ─► lists
//!                 └──────── advance, or stop and release ◄───────────────────┴► refused ───► complete
//! ```
//!
//! What is read always has a place: the slot of its class is empty when the read is issued. The
//! reader therefore never waits for anybody else's progress.

use super::decode::Decode;
use super::ring::Ring;
use crate::config::Config;
use crate::prelude::*;
use crate::prim::RoundRobin;
use crate::types::{
    Completion, ControlRequest, DmaRequest, Doorbell, EndpointSetup, FetchedList, FetchedSend,
    ListRequest, RaiseEvent, RingSetup, SendRequest, WriteCompletion,
};
use abi::control::{Operation, RING_BITS, RING_LIST, RING_SEND};
use abi::event::{INFO_LIST_RING_BIT, NO_PAIR};
use abi::opcode::WorkRing;
use abi::register::{LIST_TAIL, SEND_TAIL};
use abi::request::REQUEST_BYTES;
use abi::status::Status;

const _: () = assert!(RING_BITS == 2, "the kernel slices indices at this bit");
const _: () = assert!(INFO_LIST_RING_BIT == 32, "the kernel shifts by this much");

/// Rings of all endpoints and the fetcher that empties them.
#[derive(LogicBlock)]
pub struct WorkQueues {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous, active high.
    pub reset: Signal<In, Bit>,

    /// Pulse: a write to a doorbell page.
    pub doorbell_valid: Signal<In, Bit>,
    /// The write.
    pub doorbell: Signal<In, Doorbell>,
    /// Endpoint whose heads are read; they follow one cycle later.
    pub read_endpoint: Signal<In, Bits<8>>,
    /// Index up to which the send ring has been fetched.
    pub send_head: Signal<Out, Bits<16>>,
    /// Index up to which the list ring has been fetched.
    pub list_head: Signal<Out, Bits<16>>,

    /// A control request is offered to this block.
    pub control_valid: Signal<In, Bit>,
    /// The request, shared by all blocks.
    pub control: Signal<In, ControlRequest>,
    /// This block has finished with it.
    pub control_done: Signal<Out, Bit>,
    /// Zero: nothing is read here.
    pub control_result: Signal<Out, Bits<64>>,

    /// A bit an endpoint: a completion can be reserved. Knows of a reservation one cycle after it.
    pub completion_free: Signal<In, Bits<32>>,
    /// Pulse: a completion of `reserve_endpoint` is reserved.
    pub reserve_valid: Signal<Out, Bit>,
    /// Its endpoint.
    pub reserve_endpoint: Signal<Out, Bits<8>>,
    /// Pulse: a reservation of `release_endpoint` ends without a completion.
    pub release_valid: Signal<Out, Bit>,
    /// Its endpoint.
    pub release_endpoint: Signal<Out, Bits<8>>,

    /// Read client of `DmaRead`.
    pub read_request_valid: Signal<Out, Bit>,
    /// It is taken.
    pub read_request_ready: Signal<In, Bit>,
    /// The access.
    pub read_request: Signal<Out, DmaRequest>,
    /// A word is offered.
    pub read_data_valid: Signal<In, Bit>,
    /// It is taken.
    pub read_data_ready: Signal<Out, Bit>,
    /// Eight bytes, the first in the lowest lane.
    pub read_data: Signal<In, Bits<64>>,
    /// The last of this access.
    pub read_data_last: Signal<In, Bit>,
    /// With the last word: the host's memory refused the access.
    pub read_data_error: Signal<In, Bit>,

    /// Requests of the send rings.
    pub sends_valid: Signal<Out, Bit>,
    /// It is taken.
    pub sends_ready: Signal<In, Bit>,
    /// The request.
    pub sends: Signal<Out, FetchedSend>,
    /// A bit an endpoint: its list ring has an entry that `lists` hasn't been given and that wasn't counted as refused. One cycle late.
    pub lists_pending: Signal<Out, Bits<16>>,
    /// Requests of the list rings.
    pub lists_valid: Signal<Out, Bit>,
    /// It is taken.
    pub lists_ready: Signal<In, Bit>,
    /// The request.
    pub lists: Signal<Out, FetchedList>,
    /// Completions of malformed requests.
    pub complete_valid: Signal<Out, Bit>,
    /// It is taken.
    pub complete_ready: Signal<In, Bit>,
    /// The completion.
    pub complete: Signal<Out, WriteCompletion>,
    /// What went wrong with a ring.
    pub raise_valid: Signal<Out, Bit>,
    /// It is taken.
    pub raise_ready: Signal<In, Bit>,
    /// The event.
    pub raise: Signal<Out, RaiseEvent>,

    /// Pulse: a request was refused as malformed.
    pub count_invalid_requests: Signal<Out, Bit>,
    /// Pulse: a doorbell was ignored because of its value.
    pub count_doorbell_errors: Signal<Out, Bit>,

    /// Zero; a test breaks a contract with another value. See `tests/work_queues.rs`.
    pub mutation: Signal<In, Bits<4>>,

    ring: Vec<Ring>,
    running: Vec<Reg<Bit>>,
    domain: Vec<Reg<Bits<8>>>,
    turn: RoundRobin,
    event_turn: RoundRobin,

    // Selection and read request.
    address_valid: Reg<Bit>,
    wanted: Reg<DmaRequest>,
    selecting: Signal<Local, Bit>,
    selected_ring: Signal<Local, Bits<8>>,
    selected_endpoint: Signal<Local, Bits<8>>,
    selected_address: Signal<Local, Bits<64>>,
    selected_domain: Signal<Local, Bits<8>>,
    selected_list: Signal<Local, Bit>,
    eligible: Signal<Local, Bits<32>>,

    // Words of the entry that is being read.
    words: Reg<Bits<512>>,
    assembled: Reg<Bit>,
    failed: Reg<Bit>,
    send_reading: Reg<Bit>,
    list_reading: Reg<Bit>,
    list_is_older: Reg<Bit>,
    from_list: Signal<Local, Bit>,
    from_endpoint: Signal<Local, Bits<8>>,
    from_ring: Signal<Local, Bits<8>>,
    arrived: Signal<Local, Bit>,

    // One request of each class.
    send_busy: Reg<Bit>,
    send_loaded: Reg<Bit>,
    send_bad: Reg<Bit>,
    send_slot: Reg<FetchedSend>,
    list_busy: Reg<Bit>,
    pending_lists: Reg<Bits<16>>,
    pending_now: Signal<Local, Bits<16>>,
    list_loaded: Reg<Bit>,
    list_bad: Reg<Bit>,
    list_slot: Reg<FetchedList>,
    as_send: Signal<Local, SendRequest>,
    as_list: Signal<Local, ListRequest>,
    send_decode: Decode,
    list_decode: Decode,
    send_kind: Reg<Bits<8>>,

    // The refusal on its way to the completion queue.
    refused_valid: Reg<Bit>,
    refused: Reg<WriteCompletion>,
    refusal: Signal<Local, Completion>,

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
    busy: Signal<Local, Bit>,
    runs: Signal<Local, Bit>,
    target: Signal<Local, Bits<16>>,

    ring_number: Signal<Local, Bits<16>>,
    send_doorbell: Signal<Local, Bit>,
    list_doorbell: Signal<Local, Bit>,
    ignored: Signal<Local, Bit>,
    read_send_head: Reg<Bits<16>>,
    read_list_head: Reg<Bits<16>>,

    free_of_selected: Signal<Local, Bit>,
    reserves_what_is_free: Check,
    reads_what_it_asked_for: Check,
    slot_was_empty: Check,

    no_completion: Constant<Completion>,
    request_bytes: Constant<Bits<16>>,
    no_pair: Constant<Bits<16>>,
    status_invalid: Constant<Bits<8>>,
    offset_send_tail: Constant<Bits<8>>,
    offset_list_tail: Constant<Bits<8>>,
    operation_ring_set: Constant<Bits<8>>,
    operation_endpoint_set: Constant<Bits<8>>,
    operation_endpoint_stop: Constant<Bits<8>>,
    operation_endpoint_clear: Constant<Bits<8>>,
    ring_send: Constant<Bits<16>>,
    ring_list: Constant<Bits<16>>,
    _n: usize,
    _rings: usize,
}

impl WorkQueues {
    /// For the endpoints of `config`.
    ///
    /// # Panics
    /// If there are more than 16 endpoints.
    pub fn new(config: &Config) -> Self {
        let n = config.endpoints;
        assert!(n <= 16, "the rings of {n} endpoints don't fit one arbiter");
        Self {
            clock: Default::default(),
            reset: Default::default(),
            doorbell_valid: Default::default(),
            doorbell: Default::default(),
            read_endpoint: Default::default(),
            send_head: Default::default(),
            list_head: Default::default(),
            control_valid: Default::default(),
            control: Default::default(),
            control_done: Default::default(),
            control_result: Default::default(),
            completion_free: Default::default(),
            reserve_valid: Default::default(),
            reserve_endpoint: Default::default(),
            release_valid: Default::default(),
            release_endpoint: Default::default(),
            read_request_valid: Default::default(),
            read_request_ready: Default::default(),
            read_request: Default::default(),
            read_data_valid: Default::default(),
            read_data_ready: Default::default(),
            read_data: Default::default(),
            read_data_last: Default::default(),
            read_data_error: Default::default(),
            sends_valid: Default::default(),
            sends_ready: Default::default(),
            sends: Default::default(),
            lists_pending: Default::default(),
            lists_valid: Default::default(),
            lists_ready: Default::default(),
            lists: Default::default(),
            complete_valid: Default::default(),
            complete_ready: Default::default(),
            complete: Default::default(),
            raise_valid: Default::default(),
            raise_ready: Default::default(),
            raise: Default::default(),
            count_invalid_requests: Default::default(),
            count_doorbell_errors: Default::default(),
            mutation: Default::default(),
            ring: (0..2 * n).map(|_| Ring::default()).collect(),
            running: (0..n).map(|_| Reg::default()).collect(),
            domain: (0..n).map(|_| Reg::default()).collect(),
            turn: RoundRobin::new(2 * n),
            event_turn: RoundRobin::new(2 * n),
            address_valid: Default::default(),
            wanted: Default::default(),
            selecting: Default::default(),
            selected_ring: Default::default(),
            selected_endpoint: Default::default(),
            selected_address: Default::default(),
            selected_domain: Default::default(),
            selected_list: Default::default(),
            eligible: Default::default(),
            words: Default::default(),
            assembled: Default::default(),
            failed: Default::default(),
            send_reading: Default::default(),
            list_reading: Default::default(),
            list_is_older: Default::default(),
            from_list: Default::default(),
            from_endpoint: Default::default(),
            from_ring: Default::default(),
            arrived: Default::default(),
            send_busy: Default::default(),
            send_loaded: Default::default(),
            send_bad: Default::default(),
            send_slot: Default::default(),
            list_busy: Default::default(),
            pending_lists: Default::default(),
            pending_now: Default::default(),
            list_loaded: Default::default(),
            list_bad: Default::default(),
            list_slot: Default::default(),
            as_send: Default::default(),
            as_list: Default::default(),
            send_decode: Decode::new(WorkRing::Send, config.capabilities),
            list_decode: Decode::new(WorkRing::List, config.capabilities),
            send_kind: Default::default(),
            refused_valid: Default::default(),
            refused: Default::default(),
            refusal: Default::default(),
            raised_valid: Default::default(),
            raised: Default::default(),
            event_number: Default::default(),
            event_request: Default::default(),
            raising: Default::default(),
            info: Default::default(),
            ring_setup: Default::default(),
            endpoint_setup: Default::default(),
            set_ring: Default::default(),
            set_endpoint: Default::default(),
            stop_endpoint: Default::default(),
            clear_endpoint: Default::default(),
            clearing: Default::default(),
            busy: Default::default(),
            runs: Default::default(),
            target: Default::default(),
            ring_number: Default::default(),
            send_doorbell: Default::default(),
            list_doorbell: Default::default(),
            ignored: Default::default(),
            read_send_head: Default::default(),
            read_list_head: Default::default(),
            free_of_selected: Default::default(),
            reserves_what_is_free: Check::new("work_queues_reserve_only_what_is_free"),
            reads_what_it_asked_for: Check::new("work_queues_words_belong_to_a_read"),
            slot_was_empty: Check::new("work_queues_slot_was_empty"),
            no_completion: Constant::new(Completion::default()),
            request_bytes: constant(REQUEST_BYTES as u64),
            no_pair: constant(NO_PAIR),
            status_invalid: constant(Status::InvalidRequest.code()),
            offset_send_tail: constant(SEND_TAIL),
            offset_list_tail: constant(LIST_TAIL),
            operation_ring_set: constant(Operation::RingSet.code()),
            operation_endpoint_set: constant(Operation::EndpointSet.code()),
            operation_endpoint_stop: constant(Operation::EndpointStop.code()),
            operation_endpoint_clear: constant(Operation::EndpointClear.code()),
            ring_send: constant(RING_SEND),
            ring_list: constant(RING_LIST),
            _n: n,
            _rings: 2 * n,
        }
    }
}

#[module]
impl Logic for WorkQueues {
    #[hdl_gen]
    fn update(&mut self) {
        registers!(
            self,
            clock,
            reset,
            address_valid,
            wanted,
            words,
            assembled,
            failed,
            send_reading,
            list_reading,
            list_is_older,
            send_busy,
            send_loaded,
            send_bad,
            send_kind,
            send_slot,
            list_busy,
            pending_lists,
            list_loaded,
            list_bad,
            list_slot,
            refused_valid,
            refused,
            raised_valid,
            raised,
            read_send_head,
            read_list_head,
            running[0..self._n],
            domain[0..self._n]
        );
        clocked!(
            self,
            clock,
            reset,
            turn,
            event_turn,
            ring[0..self._rings],
            reserves_what_is_free,
            reads_what_it_asked_for,
            slot_was_empty
        );

        // Control.
        self.ring_setup.next = bit_cast::<128, 320>(self.control.val().data).into();
        self.endpoint_setup.next = bit_cast::<64, 320>(self.control.val().data).into();
        self.target.next = self.control.val().index;
        self.set_ring.next = self.control_valid.val()
            & (self.control.val().operation == self.operation_ring_set.val());
        self.set_endpoint.next = self.control_valid.val()
            & (self.control.val().operation == self.operation_endpoint_set.val());
        self.stop_endpoint.next = self.control_valid.val()
            & (self.control.val().operation == self.operation_endpoint_stop.val());
        self.clear_endpoint.next = self.control_valid.val()
            & (self.control.val().operation == self.operation_endpoint_clear.val());
        self.busy.next = (self.send_busy.q.val()
            & (bit_cast::<16, 8>(self.send_slot.q.val().endpoint) == self.target.val()))
            | (self.list_busy.q.val()
                & (bit_cast::<16, 8>(self.list_slot.q.val().endpoint) == self.target.val()))
            | (self.refused_valid.q.val()
                & (bit_cast::<16, 8>(self.refused.q.val().endpoint) == self.target.val()));
        self.runs.next = false;
        for i in 0..self._n {
            if self.target.val() == i.to_bits() {
                self.runs.next = self.running[i].q.val();
                if self.set_endpoint.val() {
                    self.running[i].d.next = true;
                    self.domain[i].d.next = self.endpoint_setup.val().domain;
                }
                if self.stop_endpoint.val() | self.clear_endpoint.val() {
                    self.running[i].d.next = false;
                }
            }
        }
        self.control_done.next = self.control_valid.val();
        if (self.stop_endpoint.val() | self.clear_endpoint.val())
            & (self.runs.val() | self.busy.val())
        {
            self.control_done.next = false;
        }
        self.control_result.next = 0.into();
        self.clearing.next = self.clear_endpoint.val() & self.control_done.val();

        // Doorbells and rings.
        self.send_doorbell.next =
            self.doorbell_valid.val() & (self.doorbell.val().offset == self.offset_send_tail.val());
        self.list_doorbell.next =
            self.doorbell_valid.val() & (self.doorbell.val().offset == self.offset_list_tail.val());
        self.ring_number.next = self.control.val().index;
        self.read_send_head.d.next = 0.into();
        self.read_list_head.d.next = 0.into();
        self.ignored.next = false;
        for i in 0..self._n {
            self.ring[2 * i].set.next = self.set_ring.val()
                & ((self.ring_number.val() >> 2) == i.to_bits())
                & ((self.ring_number.val() & 3) == self.ring_send.val());
            self.ring[2 * i + 1].set.next = self.set_ring.val()
                & ((self.ring_number.val() >> 2) == i.to_bits())
                & ((self.ring_number.val() & 3) == self.ring_list.val());
            self.ring[2 * i].clear.next = self.clearing.val() & (self.target.val() == i.to_bits());
            self.ring[2 * i + 1].clear.next =
                self.clearing.val() & (self.target.val() == i.to_bits());
            self.ring[2 * i].doorbell.next =
                self.send_doorbell.val() & (self.doorbell.val().endpoint == i.to_bits());
            self.ring[2 * i + 1].doorbell.next =
                self.list_doorbell.val() & (self.doorbell.val().endpoint == i.to_bits());
            if self.read_endpoint.val() == i.to_bits() {
                self.read_send_head.d.next = self.ring[2 * i].head.val();
                self.read_list_head.d.next = self.ring[2 * i + 1].head.val();
            }
        }
        self.send_head.next = self.read_send_head.q.val();
        self.list_head.next = self.read_list_head.q.val();

        // The next ring in turn that has an entry and a place for it, at both ends.
        self.eligible.next = 0.into();
        for i in 0..self._n {
            self.eligible.next = self.eligible.val().replace_bit(
                2 * i,
                self.ring[2 * i].pending.val()
                    & self.running[i].q.val()
                    & (self.completion_free.val().get_bit(i) | (self.mutation.val() == 1))
                    & !self.send_busy.q.val(),
            );
            self.eligible.next = self.eligible.val().replace_bit(
                2 * i + 1,
                self.ring[2 * i + 1].pending.val()
                    & self.running[i].q.val()
                    & (self.completion_free.val().get_bit(i) | (self.mutation.val() == 1))
                    & !self.list_busy.q.val(),
            );
        }
        // What the host has posted to a list ring and Delivery hasn't been given.
        self.pending_now.next = 0.into();
        for i in 0..self._n {
            self.pending_now.next = self.pending_now.val().replace_bit(
                i,
                self.ring[2 * i + 1].pending.val()
                    | (self.list_busy.q.val() & (self.list_slot.q.val().endpoint == i.to_bits())),
            );
        }
        self.pending_lists.d.next = self.pending_now.val();
        self.lists_pending.next = self.pending_lists.q.val();
        self.turn.request.next = self.eligible.val();
        self.selecting.next = self.turn.valid.val() & !self.address_valid.q.val();
        self.turn.advance.next = self.selecting.val();
        self.selected_ring.next = self.turn.index.val();
        self.selected_list.next = self.selected_ring.val().get_bit(0);
        self.selected_endpoint.next = self.selected_ring.val() >> 1;
        self.selected_address.next = 0.into();
        self.selected_domain.next = 0.into();
        self.free_of_selected.next = false;
        for i in 0..self._n {
            if self.selected_endpoint.val() == i.to_bits() {
                self.selected_domain.next = self.domain[i].q.val();
                self.free_of_selected.next = self.completion_free.val().get_bit(i);
                self.selected_address.next = self.ring[2 * i].address.val();
                if self.selected_list.val() {
                    self.selected_address.next = self.ring[2 * i + 1].address.val();
                }
            }
        }
        self.reserve_valid.next = self.selecting.val();
        self.reserve_endpoint.next = self.selected_endpoint.val();
        self.reserves_what_is_free.ok.next = !self.selecting.val() | self.free_of_selected.val();

        // The read request.
        self.read_request_valid.next = self.address_valid.q.val();
        self.read_request.next = self.wanted.q.val();
        if self.read_request_ready.val() {
            self.address_valid.d.next = false;
        }

        // Its words, the oldest read first.
        self.from_list.next =
            self.list_reading.q.val() & (self.list_is_older.q.val() | !self.send_reading.q.val());
        self.from_endpoint.next = self.send_slot.q.val().endpoint;
        if self.from_list.val() {
            self.from_endpoint.next = self.list_slot.q.val().endpoint;
        }
        self.from_ring.next = self.from_endpoint.val() << 1;
        if self.from_list.val() {
            self.from_ring.next = (self.from_endpoint.val() << 1) | 1;
        }
        self.read_data_ready.next = !self.assembled.q.val();
        self.arrived.next = self.read_data_valid.val() & !self.assembled.q.val();
        self.assembled.d.next = self.arrived.val() & self.read_data_last.val();
        if self.arrived.val() {
            self.words.d.next =
                (self.words.q.val() >> 64) | (bit_cast::<512, 64>(self.read_data.val()) << 448);
            self.failed.d.next = self.read_data_error.val();
        }
        self.reads_what_it_asked_for.ok.next =
            !self.read_data_valid.val() | self.send_reading.q.val() | self.list_reading.q.val();

        // What they mean.
        self.as_send.next = self.words.q.val().into();
        self.as_list.next = self.words.q.val().into();
        self.send_decode.opcode.next = self.as_send.val().opcode;
        self.send_decode.flags.next = self.as_send.val().flags;
        self.send_decode.reserved.next = (self.as_send.val().reserved0.any()
            | self.as_send.val().reserved1.any()
            | self.as_send.val().reserved2.any())
            & (self.mutation.val() != 2);
        self.send_decode.min_free.next = false;
        self.list_decode.opcode.next = self.as_list.val().opcode;
        self.list_decode.flags.next = self.as_list.val().flags;
        self.list_decode.reserved.next =
            self.as_list.val().reserved0.any() | self.as_list.val().reserved2.any();
        self.list_decode.min_free.next = self.as_list.val().min_free.any();

        // A whole entry: into its slot, or the ring stops.
        self.release_valid.next = false;
        self.release_endpoint.next = self.from_endpoint.val();
        for i in 0..self._rings {
            self.ring[i].base.next = self.ring_setup.val().base;
            self.ring[i].log2.next = self.ring_setup.val().log2;
            self.ring[i].value.next = self.doorbell.val().value;
            self.ring[i].advance.next = self.assembled.q.val()
                & !self.failed.q.val()
                & (self.from_ring.val() == i.to_bits());
            self.ring[i].stop.next = self.assembled.q.val()
                & self.failed.q.val()
                & (self.from_ring.val() == i.to_bits());
            self.ignored.next = self.ignored.val() | self.ring[i].ignored.val();
        }
        self.count_doorbell_errors.next = self.ignored.val();
        self.slot_was_empty.ok.next = true;
        if self.assembled.q.val() {
            if self.from_list.val() {
                self.slot_was_empty.ok.next = !self.list_loaded.q.val();
                self.list_reading.d.next = false;
                self.list_loaded.d.next = !self.failed.q.val();
                self.list_busy.d.next = !self.failed.q.val();
                self.list_bad.d.next = self.list_decode.malformed.val();
                self.list_slot.d.next.kind = self.list_decode.kind.val();
                self.list_slot.d.next.buffer = self.list_decode.buffer.val();
                self.list_slot.d.next.needs_pair = self.list_decode.needs_pair.val();
                self.list_slot.d.next.names_claim = self.list_decode.names_claim.val();
                self.list_slot.d.next.request = self.as_list.val();
            } else {
                self.slot_was_empty.ok.next = !self.send_loaded.q.val();
                self.send_reading.d.next = false;
                self.send_loaded.d.next = !self.failed.q.val();
                self.send_busy.d.next = !self.failed.q.val();
                self.send_bad.d.next = self.send_decode.malformed.val();
                self.send_kind.d.next = self.send_decode.kind.val();
                self.send_slot.d.next.request = self.as_send.val();
            }
            self.release_valid.next = self.failed.q.val() & (self.mutation.val() != 3);
        }

        // Selection last: it needs a class that is not busy, so it meets nothing above.
        if self.selecting.val() {
            self.address_valid.d.next = true;
            self.wanted.d.next.address = self.selected_address.val();
            self.wanted.d.next.length = self.request_bytes.val();
            if self.selected_list.val() {
                self.list_busy.d.next = true;
                self.list_reading.d.next = true;
                self.list_is_older.d.next = false;
                self.list_slot.d.next.endpoint = self.selected_endpoint.val();
                self.list_slot.d.next.domain = self.selected_domain.val();
            } else {
                self.send_busy.d.next = true;
                self.send_reading.d.next = true;
                self.list_is_older.d.next = true;
                self.send_slot.d.next.endpoint = self.selected_endpoint.val();
                self.send_slot.d.next.domain = self.selected_domain.val();
            }
        }

        // Well-formed requests leave by their own streams.
        self.sends_valid.next = self.send_loaded.q.val() & !self.send_bad.q.val();
        self.sends.next = self.send_slot.q.val();
        if self.sends_valid.val() & self.sends_ready.val() {
            self.send_loaded.d.next = false;
            self.send_busy.d.next = false;
        }
        self.lists_valid.next = self.list_loaded.q.val() & !self.list_bad.q.val();
        self.lists.next = self.list_slot.q.val();
        if self.lists_valid.val() & self.lists_ready.val() {
            self.list_loaded.d.next = false;
            self.list_busy.d.next = false;
        }

        // Malformed ones as completions.
        self.complete_valid.next = self.refused_valid.q.val();
        self.complete.next = self.refused.q.val();
        self.refusal.next = self.no_completion.val();
        self.refusal.next.status = self.status_invalid.val();
        self.count_invalid_requests.next = false;
        if self.refused_valid.q.val() {
            if self.complete_ready.val() {
                self.refused_valid.d.next = false;
            }
        } else if self.send_loaded.q.val() & self.send_bad.q.val() {
            self.send_loaded.d.next = false;
            self.send_busy.d.next = false;
            self.refusal.next.request = self.send_slot.q.val().request.request;
            self.refusal.next.pair = self.send_slot.q.val().request.pair;
            self.refusal.next.kind = self.send_kind.q.val();
            self.refused_valid.d.next = true;
            self.refused.d.next.endpoint = self.send_slot.q.val().endpoint;
            self.count_invalid_requests.next = true;
        } else if self.list_loaded.q.val() & self.list_bad.q.val() {
            self.list_loaded.d.next = false;
            self.list_busy.d.next = false;
            self.refusal.next.request = self.list_slot.q.val().request.request;
            self.refusal.next.pair = self.list_slot.q.val().request.pair;
            self.refusal.next.kind = self.list_slot.q.val().kind;
            self.refused_valid.d.next = true;
            self.refused.d.next.endpoint = self.list_slot.q.val().endpoint;
            self.count_invalid_requests.next = true;
        }
        if self.count_invalid_requests.val() {
            self.refused.d.next.entry = self.refusal.val();
        }

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
        self.raise_valid.next = self.raised_valid.q.val();
        self.raise.next = self.raised.q.val();
        if self.raise_ready.val() {
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
                self.raised.d.next.pair = self.no_pair.val();
                self.raised.d.next.info = bit_cast::<64, 32>(self.info.val())
                    | (bit_cast::<64, 8>(self.event_number.val() & 1) << 32);
            }
        }
    }
}
