//! The completion queues: one entry for each request, into room that was reserved before.
//!
//! ```text
//!   Fetch       ─┐                      ┌───────────────┐ write client
//!   send queues ─┼─► turn ─► current ──►│ EntryWriter   ├──────────────► DmaWrite
//!   delivery ────┘              │       └──────┬────────┘
//!                       address, phase         │ finished
//!                        ┌──────▼──────────────▼─┐
//!   doorbell ───────────►│ Queue, Reservations   ├──► completion_free, tail, interrupt
//!   reserve, release ───►│ one of each for each  │
//!                        │ endpoint              ├──► events
//!                        └───────────────────────┘
//! ```
//!
//! A completion without a reservation is dropped: nothing that the host hasn't consumed is ever
//! overwritten, whatever the rest of the card does. That it doesn't happen is checked in simulation.

use super::entry_writer::EntryWriter;
use super::queue::Queue;
use super::reservations::Reservations;
use crate::config::Config;
use crate::prelude::*;
use crate::prim::{RoundRobin, StreamMux};
use crate::types::{
    Completion, ControlRequest, DmaRequest, Doorbell, RaiseEvent, RingSetup, WriteCompletion,
};
use abi::completion::COMPLETION_BYTES;
use abi::control::{Operation, RING_BITS, RING_COMPLETION};
use abi::event::{Cause, NO_PAIR};
use abi::register::{COMPLETION_ARM, COMPLETION_HEAD};

const _: () = assert!(RING_BITS == 2, "the kernel slices indices at this bit");

/// Sources of completions.
const SOURCES: usize = 3;

/// Completion queues of all endpoints and their writer.
#[derive(LogicBlock)]
pub struct Completions {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous, active high.
    pub reset: Signal<In, Bit>,

    /// Pulse: a write to a doorbell page.
    pub doorbell_valid: Signal<In, Bit>,
    /// The write.
    pub doorbell: Signal<In, Doorbell>,
    /// Endpoint whose tail is read; it follows one cycle later.
    pub read_endpoint: Signal<In, Bits<8>>,
    /// Producer index of the completion queue.
    pub completion_tail: Signal<Out, Bits<16>>,
    /// Bit `e`: interrupt of endpoint `e`'s completion queue, a level.
    pub interrupts: Signal<Out, Bits<32>>,

    /// A control request is offered to this block.
    pub control_valid: Signal<In, Bit>,
    /// The request, shared by all blocks.
    pub control: Signal<In, ControlRequest>,
    /// This block has finished with it.
    pub control_done: Signal<Out, Bit>,
    /// Zero: nothing is read here.
    pub control_result: Signal<Out, Bits<64>>,

    /// A bit an endpoint: Fetch can reserve a completion.
    pub completion_free: Signal<Out, Bits<32>>,
    /// A bit an endpoint: delivery can, and is preferred.
    pub delivery_free: Signal<Out, Bits<32>>,
    /// Pulse: delivery reserves one.
    pub delivery_reserve_valid: Signal<In, Bit>,
    /// Its endpoint.
    pub delivery_reserve_endpoint: Signal<In, Bits<8>>,
    /// Pulse: reserve one.
    pub reserve_valid: Signal<In, Bit>,
    /// Its endpoint.
    pub reserve_endpoint: Signal<In, Bits<8>>,
    /// Pulse: a request of Fetch ends without a completion.
    pub queues_release_valid: Signal<In, Bit>,
    /// Its endpoint.
    pub queues_release_endpoint: Signal<In, Bits<8>>,
    /// Pulse: one of the send queues' does.
    pub sends_release_valid: Signal<In, Bit>,
    /// Its endpoint.
    pub sends_release_endpoint: Signal<In, Bits<8>>,
    /// Pulse: one of delivery's does.
    pub delivery_release_valid: Signal<In, Bit>,
    /// Its endpoint.
    pub delivery_release_endpoint: Signal<In, Bits<8>>,

    /// From Fetch.
    pub queues_valid: Signal<In, Bit>,
    /// It is taken.
    pub queues_ready: Signal<Out, Bit>,
    /// The completion.
    pub queues: Signal<In, WriteCompletion>,
    /// From the send queues.
    pub sends_valid: Signal<In, Bit>,
    /// It is taken.
    pub sends_ready: Signal<Out, Bit>,
    /// The completion.
    pub sends: Signal<In, WriteCompletion>,
    /// From delivery.
    pub delivery_valid: Signal<In, Bit>,
    /// It is taken.
    pub delivery_ready: Signal<Out, Bit>,
    /// The completion.
    pub delivery: Signal<In, WriteCompletion>,

    /// Write client of `DmaWrite`.
    pub write_request_valid: Signal<Out, Bit>,
    /// It is taken.
    pub write_request_ready: Signal<In, Bit>,
    /// The access.
    pub write_request: Signal<Out, DmaRequest>,
    /// A word is offered.
    pub write_data_valid: Signal<Out, Bit>,
    /// It is taken.
    pub write_data_ready: Signal<In, Bit>,
    /// Eight bytes, the first in the lowest lane.
    pub write_data: Signal<Out, Bits<64>>,
    /// Pulse: the oldest access has been answered.
    pub write_done: Signal<In, Bit>,
    /// With it: the host's memory refused it.
    pub write_done_error: Signal<In, Bit>,

    /// Index and write errors.
    pub raise_valid: Signal<Out, Bit>,
    /// It is taken.
    pub raise_ready: Signal<In, Bit>,
    /// The event.
    pub raise: Signal<Out, RaiseEvent>,

    /// Pulse: a completion is in host memory.
    pub count_completions: Signal<Out, Bit>,
    /// Pulse: a doorbell was ignored because of its value.
    pub count_doorbell_errors: Signal<Out, Bit>,

    /// Zero; a test breaks a contract with another value. See `tests/completions.rs`.
    pub mutation: Signal<In, Bits<4>>,

    queue: Vec<Queue>,
    reservations: Vec<Reservations>,
    source: StreamMux<WriteCompletion>,
    writer: EntryWriter<512>,
    current_valid: Reg<Bit>,
    current: Reg<WriteCompletion>,
    writes: Signal<Local, Bit>,
    drops: Signal<Local, Bit>,
    promised: Signal<Local, Bit>,
    address: Signal<Local, Bits<64>>,
    phase: Signal<Local, Bits<1>>,
    entry: Signal<Local, Completion>,
    finished: Signal<Local, Bit>,
    finished_endpoint: Signal<Local, Bits<8>>,

    index_error: Vec<Reg<Bit>>,
    index_value: Vec<Reg<Bits<32>>>,
    write_error: Vec<Reg<Bit>>,
    event_turn: RoundRobin,
    event_request: Signal<Local, Bits<32>>,
    event_number: Signal<Local, Bits<8>>,
    raising: Signal<Local, Bit>,
    rung: Signal<Local, Bits<32>>,
    raised_valid: Reg<Bit>,
    raised: Reg<RaiseEvent>,

    ring_setup: Signal<Local, RingSetup>,
    target: Signal<Local, Bits<16>>,
    set_ring: Signal<Local, Bit>,
    clear_endpoint: Signal<Local, Bit>,
    clearing: Signal<Local, Bit>,
    under_way: Signal<Local, Bit>,
    consumes: Signal<Local, Bit>,
    arms: Signal<Local, Bit>,
    settled: Signal<Local, Bit>,
    ignored: Signal<Local, Bit>,
    free_bits: Signal<Local, Bits<32>>,
    delivery_bits: Signal<Local, Bits<32>>,
    interrupt_bits: Signal<Local, Bits<32>>,
    read_tail: Reg<Bits<16>>,

    has_a_reservation: Check,

    offset_head: Constant<Bits<8>>,
    offset_arm: Constant<Bits<8>>,
    operation_ring_set: Constant<Bits<8>>,
    operation_endpoint_clear: Constant<Bits<8>>,
    ring_completion: Constant<Bits<16>>,
    cause_index: Constant<Bits<8>>,
    cause_write: Constant<Bits<8>>,
    no_pair: Constant<Bits<16>>,
    _n: usize,
}

impl Completions {
    /// For the endpoints of `config`.
    pub fn new(config: &Config) -> Self {
        let n = config.endpoints;
        Self {
            clock: Default::default(),
            reset: Default::default(),
            doorbell_valid: Default::default(),
            doorbell: Default::default(),
            read_endpoint: Default::default(),
            completion_tail: Default::default(),
            interrupts: Default::default(),
            control_valid: Default::default(),
            control: Default::default(),
            control_done: Default::default(),
            control_result: Default::default(),
            completion_free: Default::default(),
            reserve_valid: Default::default(),
            reserve_endpoint: Default::default(),
            queues_release_valid: Default::default(),
            queues_release_endpoint: Default::default(),
            sends_release_valid: Default::default(),
            sends_release_endpoint: Default::default(),
            delivery_release_valid: Default::default(),
            delivery_release_endpoint: Default::default(),
            queues_valid: Default::default(),
            queues_ready: Default::default(),
            queues: Default::default(),
            sends_valid: Default::default(),
            sends_ready: Default::default(),
            sends: Default::default(),
            delivery_valid: Default::default(),
            delivery_ready: Default::default(),
            delivery: Default::default(),
            write_request_valid: Default::default(),
            write_request_ready: Default::default(),
            write_request: Default::default(),
            write_data_valid: Default::default(),
            write_data_ready: Default::default(),
            write_data: Default::default(),
            write_done: Default::default(),
            write_done_error: Default::default(),
            raise_valid: Default::default(),
            raise_ready: Default::default(),
            raise: Default::default(),
            count_completions: Default::default(),
            count_doorbell_errors: Default::default(),
            mutation: Default::default(),
            delivery_free: Default::default(),
            delivery_reserve_valid: Default::default(),
            delivery_reserve_endpoint: Default::default(),
            queue: (0..n).map(|_| Queue::new(COMPLETION_BYTES)).collect(),
            reservations: (0..n).map(|_| Reservations::default()).collect(),
            source: StreamMux::new(SOURCES),
            writer: Default::default(),
            current_valid: Default::default(),
            current: Default::default(),
            writes: Default::default(),
            drops: Default::default(),
            promised: Default::default(),
            address: Default::default(),
            phase: Default::default(),
            entry: Default::default(),
            finished: Default::default(),
            finished_endpoint: Default::default(),
            index_error: (0..n).map(|_| Reg::default()).collect(),
            index_value: (0..n).map(|_| Reg::default()).collect(),
            write_error: (0..n).map(|_| Reg::default()).collect(),
            event_turn: RoundRobin::new(n),
            event_request: Default::default(),
            event_number: Default::default(),
            raising: Default::default(),
            rung: Default::default(),
            raised_valid: Default::default(),
            raised: Default::default(),
            ring_setup: Default::default(),
            target: Default::default(),
            set_ring: Default::default(),
            clear_endpoint: Default::default(),
            clearing: Default::default(),
            under_way: Default::default(),
            consumes: Default::default(),
            arms: Default::default(),
            settled: Default::default(),
            ignored: Default::default(),
            free_bits: Default::default(),
            delivery_bits: Default::default(),
            interrupt_bits: Default::default(),
            read_tail: Default::default(),
            has_a_reservation: Check::new("a_completion_has_a_reservation"),
            offset_head: constant(COMPLETION_HEAD),
            offset_arm: constant(COMPLETION_ARM),
            operation_ring_set: constant(Operation::RingSet.code()),
            operation_endpoint_clear: constant(Operation::EndpointClear.code()),
            ring_completion: constant(RING_COMPLETION),
            cause_index: constant(Cause::IndexError.code()),
            cause_write: constant(Cause::CompletionError.code()),
            no_pair: constant(NO_PAIR),
            _n: n,
        }
    }
}

#[module(endpoints = self._n)]
impl Logic for Completions {
    #[hdl_gen]
    fn update(&mut self) {
        registers!(
            self,
            clock,
            reset,
            current_valid,
            current,
            raised_valid,
            raised,
            read_tail,
            index_error[0..self._n],
            index_value[0..self._n],
            write_error[0..self._n]
        );
        clocked!(
            self,
            clock,
            reset,
            queue[0..self._n],
            reservations[0..self._n],
            source,
            writer,
            event_turn,
            has_a_reservation
        );

        // Control.
        self.ring_setup.next = bit_cast::<128, 320>(self.control.val().data).into();
        self.target.next = self.control.val().index;
        self.set_ring.next = self.control_valid.val()
            & (self.control.val().operation == self.operation_ring_set.val())
            & ((self.target.val() & 3) == self.ring_completion.val());
        self.clear_endpoint.next = self.control_valid.val()
            & (self.control.val().operation == self.operation_endpoint_clear.val());
        self.under_way.next = self.current_valid.q.val()
            & (bit_cast::<16, 8>(self.current.q.val().endpoint) == self.target.val());
        for i in 0..self._n {
            if (self.target.val() == i.to_bits()) & !self.queue[i].idle.val() {
                self.under_way.next = true;
            }
        }
        self.clearing.next = self.clear_endpoint.val() & !self.under_way.val();
        self.control_done.next =
            self.control_valid.val() & (!self.clear_endpoint.val() | !self.under_way.val());
        self.control_result.next = 0.into();

        // The sources, in turn, into `current`.
        self.source.input[0].valid.next = self.queues_valid.val();
        self.queues_ready.next = self.source.input[0].ready.val();
        self.source.input[0].data.next = self.queues.val();
        self.source.input[1].valid.next = self.sends_valid.val();
        self.sends_ready.next = self.source.input[1].ready.val();
        self.source.input[1].data.next = self.sends.val();
        self.source.input[2].valid.next = self.delivery_valid.val();
        self.delivery_ready.next = self.source.input[2].ready.val();
        self.source.input[2].data.next = self.delivery.val();
        self.source.output.ready.next = !self.current_valid.q.val();
        if !self.current_valid.q.val() & self.source.output.valid.val() {
            self.current_valid.d.next = true;
            self.current.d.next = self.source.output.data.val();
        }

        // From there to the writer, at the place and with the phase of its queue.
        self.promised.next = false;
        self.address.next = 0.into();
        self.phase.next = 0.into();
        for i in 0..self._n {
            if self.current.q.val().endpoint == i.to_bits() {
                self.promised.next = self.reservations[i].any.val();
                self.address.next = self.queue[i].address.val();
                if self.queue[i].phase.val() | (self.mutation.val() == 2) {
                    self.phase.next = 1.into();
                }
            }
        }
        self.writes.next =
            self.current_valid.q.val() & self.promised.val() & self.writer.ready.val();
        self.drops.next = self.current_valid.q.val() & !self.promised.val();
        if self.writes.val() | self.drops.val() {
            self.current_valid.d.next = false;
        }
        self.has_a_reservation.ok.next = !self.drops.val();
        self.entry.next = self.current.q.val().entry;
        self.entry.next.phase = self.phase.val();
        self.writer.start.next = self.writes.val();
        self.writer.address.next = self.address.val();
        self.writer.endpoint.next = self.current.q.val().endpoint;
        self.writer.entry.next = self.entry.val().into();
        self.write_request_valid.next = self.writer.request.valid.val();
        self.writer.request.ready.next = self.write_request_ready.val();
        self.write_request.next = self.writer.request.data.val();
        self.write_data_valid.next = self.writer.data.valid.val();
        self.writer.data.ready.next = self.write_data_ready.val();
        self.write_data.next = self.writer.data.data.val();
        self.writer.done.next = self.write_done.val();
        self.writer.done_error.next = self.write_done_error.val();
        self.count_completions.next =
            self.writer.finished.val() & !self.writer.finished_error.val();
        self.finished.next = self.writer.finished.val();
        self.finished_endpoint.next = self.writer.finished_endpoint.val();
        if self.mutation.val() == 3 {
            self.finished.next = self.writes.val();
            self.finished_endpoint.next = self.current.q.val().endpoint;
        }

        // Queues and reservations.
        self.consumes.next =
            self.doorbell_valid.val() & (self.doorbell.val().offset == self.offset_head.val());
        self.arms.next =
            self.doorbell_valid.val() & (self.doorbell.val().offset == self.offset_arm.val());
        self.free_bits.next = 0.into();
        self.delivery_bits.next = 0.into();
        self.interrupt_bits.next = 0.into();
        self.event_request.next = 0.into();
        self.ignored.next = false;
        self.read_tail.d.next = 0.into();
        for i in 0..self._n {
            self.queue[i].set.next =
                self.set_ring.val() & ((self.target.val() >> 2) == i.to_bits());
            self.queue[i].base.next = self.ring_setup.val().base;
            self.queue[i].log2.next = self.ring_setup.val().log2;
            self.queue[i].clear.next = self.clearing.val() & (self.target.val() == i.to_bits());
            self.queue[i].value.next = self.doorbell.val().value;
            self.queue[i].consume.next =
                self.consumes.val() & (self.doorbell.val().endpoint == i.to_bits());
            self.settled.next = (self.mutation.val() != 4)
                | (self.queue[i].tail.val() == self.doorbell.val().value.get_bits::<16>(0));
            self.queue[i].arm.next = self.arms.val()
                & self.settled.val()
                & (self.doorbell.val().endpoint == i.to_bits());
            self.queue[i].issue.next =
                self.writes.val() & (self.current.q.val().endpoint == i.to_bits());
            self.queue[i].failed.next = false;
            self.queue[i].written.next =
                self.finished.val() & (self.finished_endpoint.val() == i.to_bits());
            if self.read_endpoint.val() == i.to_bits() {
                self.read_tail.d.next = self.queue[i].tail.val();
            }
            self.ignored.next = self.ignored.val() | self.queue[i].ignored.val();
            self.interrupt_bits.next = self
                .interrupt_bits
                .val()
                .replace_bit(i, self.queue[i].wakes.val());

            self.reservations[i].clear.next = (self.clearing.val()
                & (self.target.val() == i.to_bits()))
                | (self.set_ring.val() & ((self.target.val() >> 2) == i.to_bits()));
            self.reservations[i].size.next = self.queue[i].size.val();
            self.reservations[i].used.next = self.queue[i].used.val();
            self.reservations[i].reserve.next =
                self.reserve_valid.val() & (self.reserve_endpoint.val() == i.to_bits());
            self.reservations[i].write.next =
                self.writes.val() & (self.current.q.val().endpoint == i.to_bits());
            self.reservations[i].release_a.next = self.queues_release_valid.val()
                & (self.queues_release_endpoint.val() == i.to_bits());
            self.reservations[i].release_b.next = self.delivery_release_valid.val()
                & (self.delivery_release_endpoint.val() == i.to_bits());
            self.reservations[i].release_c.next =
                self.sends_release_valid.val() & (self.sends_release_endpoint.val() == i.to_bits());
            self.reservations[i].reserve_again.next = self.delivery_reserve_valid.val()
                & (self.delivery_reserve_endpoint.val() == i.to_bits());
            self.delivery_bits.next = self
                .delivery_bits
                .val()
                .replace_bit(i, self.reservations[i].free.val());
            self.free_bits.next = self.free_bits.val().replace_bit(
                i,
                (self.reservations[i].free.val()
                    & !(self.delivery_reserve_valid.val()
                        & (self.delivery_reserve_endpoint.val() == i.to_bits())))
                    | (self.mutation.val() == 1),
            );
            self.event_request.next = self
                .event_request
                .val()
                .replace_bit(i, self.index_error[i].q.val() | self.write_error[i].q.val());
        }
        self.completion_free.next = self.free_bits.val();
        self.delivery_free.next = self.delivery_bits.val();
        self.interrupts.next = self.interrupt_bits.val();
        self.completion_tail.next = self.read_tail.q.val();
        self.count_doorbell_errors.next = self.ignored.val();

        // What went wrong, in turn.
        self.event_turn.request.next = self.event_request.val();
        self.raising.next = self.event_turn.valid.val() & !self.raised_valid.q.val();
        self.event_turn.advance.next = self.raising.val();
        self.event_number.next = self.event_turn.index.val();
        self.raise_valid.next = self.raised_valid.q.val();
        self.raise.next = self.raised.q.val();
        if self.raise_ready.val() {
            self.raised_valid.d.next = false;
        }
        for i in 0..self._n {
            self.rung.next = self.index_value[i].q.val();
            if self.raising.val() & (self.event_number.val() == i.to_bits()) {
                self.raised_valid.d.next = true;
                self.raised.d.next.endpoint = self.event_number.val();
                self.raised.d.next.pair = self.no_pair.val();
                if self.write_error[i].q.val() {
                    self.raised.d.next.cause = self.cause_write.val();
                    self.raised.d.next.info = 0.into();
                    self.write_error[i].d.next = false;
                } else {
                    self.raised.d.next.cause = self.cause_index.val();
                    self.raised.d.next.info = bit_cast::<64, 32>(self.rung.val());
                    self.index_error[i].d.next = false;
                }
            }
            // An index for a queue that isn't there belongs to nobody who could be told.
            if self.queue[i].ignored.val() & self.queue[i].size.val().any() {
                self.index_error[i].d.next = true;
                self.index_value[i].d.next = self.doorbell.val().value;
            }
            if self.writer.finished.val()
                & self.writer.finished_error.val()
                & (self.writer.finished_endpoint.val() == i.to_bits())
            {
                self.write_error[i].d.next = true;
            }
            if self.clearing.val() & (self.target.val() == i.to_bits()) {
                self.write_error[i].d.next = false;
                self.index_error[i].d.next = false;
            }
        }
    }
}
