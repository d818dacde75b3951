//! The completion queues: one entry for each request, into room that was reserved before, and of an entry the words that its kind has and no other. An
//! endpoint completes on its own queue, or on that of another one.
//!
//! ```text
//!   Fetch       ─┐                      ┌───────────────┐ write client
//!   send queues ─┼─► turn ─► current ──►│ EntryWriter   ├──────────────► DmaWrite
//!   delivery ────┘              │       └──────┬────────┘
//!                       address, phase         │ begins, finished
//!                        ┌──────▼──────────────▼─┐
//!   doorbell ───────────►│ Queue, Reservations   ├──► tail, interrupt, events
//!                 owner  │ one of each for each  │ owner
//!   reserve, release ─►──┤ endpoint              ├─►──► completion_free
//!                        └───────────────────────┘
//! ```
//!
//! Queues and reservations have the number of the endpoint that owns the queue. What names an endpoint that has a request is led by `owner`
//! to its queue; doorbells, tails, interrupts and events are of the owner.
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
    Completion, ControlRequest, DmaRequest, Doorbell, EndpointSetup, RaiseEvent, RingSetup,
    WriteCompletion,
};
use abi::completion::{
    COMPLETION_BYTES, COMPLETION_LONG_WORDS, COMPLETION_SHORT_WORDS, CompletionKind, LONG_KINDS,
};
use abi::control::{Operation, RING_BITS, RING_COMPLETION};
use abi::event::{Cause, NO_PAIR};
use abi::register::{COMPLETION_ARM, COMPLETION_HEAD};

const _: () = assert!(RING_BITS == 2, "the kernel slices indices at this bit");
const _: () = assert!(LONG_KINDS.len() == 3, "the kernel names each");

/// Sources of completions.
const SOURCES: usize = 3;
/// Entries that may be on their way to host memory: a long one begins every eight cycles, also when memory takes 125.
const UNDER_WAY: usize = 16;
/// Bits of the longest entry, and in front of it what is never written: bits of the layout, and bytes of memory.
pub(super) const LONG_BITS: usize = 64 * COMPLETION_LONG_WORDS;
const NEVER_WRITTEN: usize = 8 * COMPLETION_BYTES - LONG_BITS;
const FIRST_BYTE: u64 = NEVER_WRITTEN as u64 / 8;
/// A queue that no endpoint owns.
const NOWHERE: u64 = 31;

/// Completion queues of all endpoints and their writer.
#[block(config: &Config)]
pub struct Completions {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous, active high.
    pub reset: Signal<In, Bit>,

    /// A write to a doorbell page.
    pub doorbell: Pulse<In, Doorbell>,
    /// Endpoint whose tail is read; it follows one cycle later.
    pub read_endpoint: Signal<In, Bits<8>>,
    /// Producer index of the completion queue.
    pub completion_tail: Signal<Out, Bits<16>>,
    /// Bit `e`: interrupt of endpoint `e`'s completion queue, a level.
    pub interrupts: Signal<Out, Bits<32>>,

    /// A control request; taken when it is done.
    pub control: Stream<In, ControlRequest>,

    /// A bit an endpoint: Fetch can reserve a completion.
    pub completion_free: Signal<Out, Bits<32>>,
    /// A bit an endpoint: delivery can, and is preferred.
    pub delivery_free: Signal<Out, Bits<32>>,
    /// Delivery reserves one for this endpoint.
    pub delivery_reserve: Pulse<In, Bits<8>>,
    /// Fetch does.
    pub reserve: Pulse<In, Bits<8>>,
    /// A request of this endpoint that Fetch has ends without a completion.
    pub queues_release: Pulse<In, Bits<8>>,
    /// One that the send queues have does.
    pub sends_release: Pulse<In, Bits<8>>,
    /// One that delivery has does.
    pub delivery_release: Pulse<In, Bits<8>>,

    /// From Fetch.
    pub queues: Stream<In, WriteCompletion>,
    /// From the send queues.
    pub sends: Stream<In, WriteCompletion>,
    /// From delivery.
    pub delivery: Stream<In, WriteCompletion>,

    /// Write client of `DmaWrite`.
    pub write_request: Stream<Out, DmaRequest>,
    /// Eight bytes, the first in the lowest lane.
    pub write_data: Stream<Out, Bits<64>>,
    /// The oldest access has been answered: whether the host's memory refused it.
    pub write_done: Pulse<In, Bit>,

    /// Index and write errors.
    pub raise: Stream<Out, RaiseEvent>,

    /// Pulse: a completion is in host memory.
    pub count_completions: Signal<Out, Bit>,
    /// Pulse: a doorbell was ignored because of its value.
    pub count_doorbell_errors: Signal<Out, Bit>,

    /// The endpoint on whose queue an endpoint's requests complete.
    #[each(config.endpoints)]
    owner: Vec<Reg<Bits<5>>>,
    /// Entries of requests of an endpoint that are on their way.
    #[each(config.endpoints)]
    on_their_way: Vec<Reg<Bits<8>>>,
    #[each(config.endpoints, Queue::new(COMPLETION_BYTES))]
    queue: Vec<Queue>,
    #[each(config.endpoints)]
    reservations: Vec<Reservations>,
    #[is(StreamMux::new(SOURCES))]
    source: StreamMux<WriteCompletion>,
    #[is(EntryWriter::new(UNDER_WAY, COMPLETION_SHORT_WORDS))]
    writer: EntryWriter<{ LONG_BITS }>,
    current_valid: Reg<Bit>,
    current: Reg<WriteCompletion>,
    /// The queue that it goes to.
    current_queue: Reg<Bits<5>>,
    incoming: Signal<Local, Bits<8>>,
    incoming_queue: Signal<Local, Bits<5>>,
    /// The endpoint that the entry names.
    told: Signal<Local, Bits<8>>,
    /// Its place is taken, and its write asked for.
    issues: Signal<Local, Bit>,
    drops: Signal<Local, Bit>,
    promised: Signal<Local, Bit>,
    address: Signal<Local, Bits<64>>,
    phase: Signal<Local, Bit>,
    entry: Signal<Local, Completion>,
    layout: Signal<Local, Bits<512>>,
    /// Its kind says nothing of a message.
    is_short: Signal<Local, Bit>,
    /// An entry is in host memory, or failed to get there.
    finished: Signal<Local, Bit>,
    finished_endpoint: Signal<Local, Bits<8>>,
    finished_queue: Signal<Local, Bits<5>>,
    // Queues of the endpoints that reserve and release.
    reserve_queue: Signal<Local, Bits<5>>,
    delivery_queue: Signal<Local, Bits<5>>,
    queues_release_queue: Signal<Local, Bits<5>>,
    sends_release_queue: Signal<Local, Bits<5>>,
    delivery_release_queue: Signal<Local, Bits<5>>,

    #[each(config.endpoints)]
    index_error: Vec<Reg<Bit>>,
    #[each(config.endpoints)]
    index_value: Vec<Reg<Bits<32>>>,
    #[each(config.endpoints)]
    write_error: Vec<Reg<Bit>>,
    #[is(RoundRobin::new(config.endpoints))]
    event_turn: RoundRobin,
    event_request: Signal<Local, Bits<32>>,
    event_number: Signal<Local, Bits<8>>,
    raising: Signal<Local, Bit>,
    rung: Signal<Local, Bits<32>>,
    raised_valid: Reg<Bit>,
    raised: Reg<RaiseEvent>,

    ring_setup: Signal<Local, RingSetup>,
    endpoint_setup: Signal<Local, EndpointSetup>,
    set_endpoint: Signal<Local, Bit>,
    named_owner: Signal<Local, Bits<5>>,
    forgets: Signal<Local, Bit>,
    target: Signal<Local, Bits<16>>,
    set_ring: Signal<Local, Bit>,
    clear_endpoint: Signal<Local, Bit>,
    clearing: Signal<Local, Bit>,
    under_way: Signal<Local, Bit>,
    begins_here: Signal<Local, Bit>,
    ends_here: Signal<Local, Bit>,
    awaited: Signal<Local, Bit>,
    consumes: Signal<Local, Bit>,
    arms: Signal<Local, Bit>,
    ignored: Signal<Local, Bit>,
    /// A bit a queue: it has room for a reservation; and when delivery has made its own.
    free_queues: Signal<Local, Bits<32>>,
    left_queues: Signal<Local, Bits<32>>,
    free_bits: Signal<Local, Bits<32>>,
    left_bits: Signal<Local, Bits<32>>,
    interrupt_bits: Signal<Local, Bits<32>>,
    read_tail: Reg<Bits<16>>,

    #[is(Check::new("a_completion_has_a_reservation"))]
    has_a_reservation: Check,
    #[is(config.endpoints)]
    _n: usize,
}

impl Completions {
    /// The control requests that it takes.
    pub const REQUESTS: &[Operation] = &[
        Operation::RingSet,
        Operation::EndpointSet,
        Operation::EndpointClear,
    ];

    /// For the endpoints of `config`.
    pub fn new(config: &Config) -> Self {
        let mut block = Self::build(config);
        for (endpoint, owner) in block.owner.iter_mut().enumerate() {
            *owner = Reg::new((endpoint as u64).into());
        }
        block
    }
}

#[block(endpoints = self._n)]
impl Logic for Completions {
    fn update(&mut self) {
        // Control.
        self.ring_setup.next = bit_cast::<128, 320>(self.control.data.val().data).into();
        self.target.next = self.control.data.val().index;
        self.set_ring.next = self.control.valid.val()
            & (self.control.data.val().operation == Operation::RingSet)
            & ((self.target.val() & 3) == RING_COMPLETION);
        self.clear_endpoint.next = self.control.valid.val()
            & (self.control.data.val().operation == Operation::EndpointClear);
        self.endpoint_setup.next = bit_cast::<64, 320>(self.control.data.val().data).into();
        self.set_endpoint.next = self.control.valid.val()
            & (self.control.data.val().operation == Operation::EndpointSet);
        self.named_owner.next = bit_cast::<5, 8>(self.endpoint_setup.val().completion_owner);
        self.under_way.next = self.current_valid.q.val()
            & (bit_cast::<16, 8>(self.current.q.val().endpoint) == self.target.val());
        for i in 0..self._n {
            if (self.target.val() == i.to_bits()) & self.on_their_way[i].q.val().any() {
                self.under_way.next = true;
            }
        }
        self.awaited.next = self.clear_endpoint.val() & self.under_way.val();
        self.clearing.next = self.clear_endpoint.val() & !self.awaited.val();
        self.control.ready.next = self.control.valid.val() & !self.awaited.val();
        self.forgets.next = self.clearing.val();
        for i in 0..self._n {
            if self.target.val() == i.to_bits() {
                if self.set_endpoint.val() {
                    self.owner[i].d.next = self.named_owner.val();
                }
                if self.forgets.val() {
                    self.owner[i].d.next = i.to_bits();
                }
            }
        }

        // The sources, in turn, into `current`.
        join!(self.queues => self.source.input[0]);
        join!(self.sends => self.source.input[1]);
        join!(self.delivery => self.source.input[2]);
        self.source.output.ready.next = !self.current_valid.q.val();
        self.incoming.next = self.source.output.data.val().endpoint;
        self.incoming_queue.next = NOWHERE;
        for i in 0..self._n {
            if self.incoming.val() == i.to_bits() {
                self.incoming_queue.next = self.owner[i].q.val();
            }
        }
        if !self.current_valid.q.val() & self.source.output.valid.val() {
            self.current_valid.d.next = true;
            self.current.d.next = self.source.output.data.val();
            self.current_queue.d.next = self.incoming_queue.val();
        }

        // From there to the writer, at the place and with the phase of its queue. Both are looked at when its write begins.
        self.promised.next = false;
        self.address.next = 0.into();
        self.phase.next = false;
        for i in 0..self._n {
            if self.current_queue.q.val() == i.to_bits() {
                self.promised.next = self.reservations[i].any.val();
                self.address.next = self.queue[i].address.val();
                self.phase.next = self.queue[i].phase.val();
            }
        }
        self.entry.next = self.current.q.val().entry;
        self.told.next = self.current.q.val().endpoint;
        self.entry.next.endpoint = self.told.val();
        self.entry.next.phase = 0.into();
        self.layout.next = self.entry.val().into();
        self.is_short.next = (self.current.q.val().entry.kind != CompletionKind::Receive)
            & (self.current.q.val().entry.kind != CompletionKind::Probe)
            & (self.current.q.val().entry.kind != CompletionKind::Claim);
        set!(
            self.writer,
            offer = self.current_valid.q.val() & (self.promised.val() | self.writer.begun.val()),
            phase = self.phase.val(),
            address = self.address.val() | FIRST_BYTE,
            endpoint = self.current.q.val().endpoint,
            entry = self.layout.val().get_bits::<{ LONG_BITS }>(NEVER_WRITTEN),
            short = self.is_short.val()
        );
        join!(self.write_done => self.writer.done);
        join!(self.writer.request => self.write_request);
        join!(self.writer.data => self.write_data);
        self.issues.next = self.writer.begins.val();
        self.drops.next =
            self.current_valid.q.val() & !self.promised.val() & !self.writer.begun.val();
        if self.writer.takes.val() | self.drops.val() {
            self.current_valid.d.next = false;
        }
        self.finished.next = self.writer.finished.valid.val();
        self.finished_endpoint.next = self.writer.finished.data.val().endpoint;
        self.count_completions.next = self.finished.val() & !self.writer.finished.data.val().failed;
        self.has_a_reservation.ok.next = !self.drops.val();

        // Whose queue it is.
        self.finished_queue.next = NOWHERE;
        self.reserve_queue.next = NOWHERE;
        self.delivery_queue.next = NOWHERE;
        self.queues_release_queue.next = NOWHERE;
        self.sends_release_queue.next = NOWHERE;
        self.delivery_release_queue.next = NOWHERE;
        for i in 0..self._n {
            if self.finished_endpoint.val() == i.to_bits() {
                self.finished_queue.next = self.owner[i].q.val();
            }
            if self.reserve.data.val() == i.to_bits() {
                self.reserve_queue.next = self.owner[i].q.val();
            }
            if self.delivery_reserve.data.val() == i.to_bits() {
                self.delivery_queue.next = self.owner[i].q.val();
            }
            if self.queues_release.data.val() == i.to_bits() {
                self.queues_release_queue.next = self.owner[i].q.val();
            }
            if self.sends_release.data.val() == i.to_bits() {
                self.sends_release_queue.next = self.owner[i].q.val();
            }
            if self.delivery_release.data.val() == i.to_bits() {
                self.delivery_release_queue.next = self.owner[i].q.val();
            }
        }
        for i in 0..self._n {
            self.begins_here.next =
                self.issues.val() & (self.current.q.val().endpoint == i.to_bits());
            self.ends_here.next = self.writer.finished.valid.val()
                & (self.writer.finished.data.val().endpoint == i.to_bits());
            if self.begins_here.val() & !self.ends_here.val() {
                self.on_their_way[i].d.next = self.on_their_way[i].q.val() + 1;
            }
            if !self.begins_here.val() & self.ends_here.val() {
                self.on_their_way[i].d.next = self.on_their_way[i].q.val() - 1;
            }
        }

        // Queues and reservations.
        self.consumes.next =
            self.doorbell.valid.val() & (self.doorbell.data.val().offset == COMPLETION_HEAD);
        self.arms.next =
            self.doorbell.valid.val() & (self.doorbell.data.val().offset == COMPLETION_ARM);
        self.free_queues.next = 0.into();
        self.left_queues.next = 0.into();
        self.interrupt_bits.next = 0.into();
        self.event_request.next = 0.into();
        self.ignored.next = false;
        self.read_tail.d.next = 0.into();
        for i in 0..self._n {
            set!(
                self.queue[i],
                set = self.set_ring.val() & ((self.target.val() >> RING_BITS) == i.to_bits()),
                base = self.ring_setup.val().base,
                log2 = self.ring_setup.val().log2,
                clear = self.clearing.val() & (self.target.val() == i.to_bits()),
                value = self.doorbell.data.val().value,
                consume = self.consumes.val() & (self.doorbell.data.val().endpoint == i.to_bits()),
                arm = self.arms.val() & (self.doorbell.data.val().endpoint == i.to_bits()),
                issue = self.issues.val() & (self.current_queue.q.val() == i.to_bits()),
                failed = false,
                written = self.finished.val() & (self.finished_queue.val() == i.to_bits())
            );
            if self.read_endpoint.val() == i.to_bits() {
                self.read_tail.d.next = self.queue[i].tail.val();
            }
            self.ignored.next = self.ignored.val() | self.queue[i].ignored.val();
            self.interrupt_bits.next = self
                .interrupt_bits
                .val()
                .replace_bit(i, self.queue[i].wakes.val());

            set!(
                self.reservations[i],
                clear = (self.clearing.val() & (self.target.val() == i.to_bits()))
                    | (self.set_ring.val() & ((self.target.val() >> RING_BITS) == i.to_bits())),
                size = self.queue[i].size.val(),
                used = self.queue[i].used.val(),
                reserve = self.reserve.valid.val() & (self.reserve_queue.val() == i.to_bits()),
                reserve_again =
                    self.delivery_reserve.valid.val() & (self.delivery_queue.val() == i.to_bits()),
                write = self.issues.val() & (self.current_queue.q.val() == i.to_bits()),
                release_a = self.queues_release.valid.val()
                    & (self.queues_release_queue.val() == i.to_bits()),
                release_b = self.delivery_release.valid.val()
                    & (self.delivery_release_queue.val() == i.to_bits()),
                release_c = self.sends_release.valid.val()
                    & (self.sends_release_queue.val() == i.to_bits())
            );
            self.free_queues.next = self
                .free_queues
                .val()
                .replace_bit(i, self.reservations[i].free.val());
            self.left_queues.next = self.left_queues.val().replace_bit(
                i,
                self.reservations[i].free.val()
                    & !(self.delivery_reserve.valid.val()
                        & (self.delivery_queue.val() == i.to_bits())),
            );
            self.event_request.next = self
                .event_request
                .val()
                .replace_bit(i, self.index_error[i].q.val() | self.write_error[i].q.val());
        }
        self.free_bits.next = 0.into();
        self.left_bits.next = 0.into();
        for i in 0..self._n {
            for j in 0..self._n {
                if self.owner[i].q.val() == j.to_bits() {
                    self.free_bits.next = self
                        .free_bits
                        .val()
                        .replace_bit(i, self.free_queues.val().get_bit(j));
                    self.left_bits.next = self
                        .left_bits
                        .val()
                        .replace_bit(i, self.left_queues.val().get_bit(j));
                }
            }
        }
        self.delivery_free.next = self.free_bits.val();
        self.completion_free.next = self.left_bits.val();
        self.interrupts.next = self.interrupt_bits.val();
        self.completion_tail.next = self.read_tail.q.val();
        self.count_doorbell_errors.next = self.ignored.val();

        // What went wrong, in turn.
        self.event_turn.request.next = self.event_request.val();
        self.raising.next = self.event_turn.valid.val() & !self.raised_valid.q.val();
        self.event_turn.advance.next = self.raising.val();
        self.event_number.next = self.event_turn.index.val();
        send!(self.raise, self.raised_valid.q.val(), self.raised.q.val());
        if self.raise.ready.val() {
            self.raised_valid.d.next = false;
        }
        for i in 0..self._n {
            self.rung.next = self.index_value[i].q.val();
            if self.raising.val() & (self.event_number.val() == i.to_bits()) {
                self.raised_valid.d.next = true;
                self.raised.d.next.endpoint = self.event_number.val();
                self.raised.d.next.pair = NO_PAIR;
                if self.write_error[i].q.val() {
                    self.raised.d.next.cause = Cause::CompletionError;
                    self.raised.d.next.info = 0.into();
                    self.write_error[i].d.next = false;
                } else {
                    self.raised.d.next.cause = Cause::IndexError;
                    self.raised.d.next.info = bit_cast::<64, 32>(self.rung.val());
                    self.index_error[i].d.next = false;
                }
            }
            // An index for a queue that isn't there belongs to nobody who could be told.
            if self.queue[i].ignored.val() & self.queue[i].size.val().any() {
                self.index_error[i].d.next = true;
                self.index_value[i].d.next = self.doorbell.data.val().value;
            }
            if self.finished.val()
                & self.writer.finished.data.val().failed
                & (self.finished_queue.val() == i.to_bits())
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
