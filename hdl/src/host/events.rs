//! The event queues: what happened that no completion reports, and what remains of it when the host
//! doesn't read.
//!
//! ```text
//!   Fetch       ─┐                      ┌─ room ────► EntryWriter ──► DmaWrite
//!   completions ─┤                      │
//!   delivery ────┼─► turn ─► current ──►┼─ none ────► events_lost + 1
//!   faults ──────┤                      ├─ always ──► sticky bit of the cause
//!   refusals ────┤                      └─ always, if its cause is one for the firmware ──► told
//!   own index ───┤
//!   firmware ────┘
//! ```
//!
//! Nothing waits for the host: an event that finds the queue full is counted, and its cause stays
//! readable until the host clears it. The firmware raises events by a control request. The gates' events
//! that it has to know of (`Cause::is_told`) go to it by the pulse `told`, which it can't hold up. No
//! process can cause as many of these as it likes.
//!
//! An event names a pair by its place. So `PairClear` is done when each event about the pair is in its queue or lost: what the host finds behind
//! `EVENT_TAIL` from then on is about the next pair in that place.
//!
//! A queue has one event on its way at a time. An event that can't be written is counted as lost, and the next one takes its
//! place in the queue.

use super::entry_writer::EntryWriter;
use super::queue::Queue;
use crate::config::Config;
use crate::prelude::*;
use crate::prim::StreamMux;
use crate::types::{
    ControlRequest, DmaRequest, Doorbell, Event, EventSetup, RaiseEvent, RingSetup,
};
use abi::control::{Operation, RING_BITS, RING_EVENT};
use abi::event::{Cause, EVENT_BYTES, NO_PAIR};
use abi::register::{EVENT_ARM, EVENT_HEAD, STICKY};

const _: () = assert!(RING_BITS == 2, "the kernel slices indices at this bit");

/// Sources of events, the block's own and the firmware's included.
const SOURCES: usize = 7;

/// Events that may be on their way to host memory, over all queues.
const UNDER_WAY: usize = 8;

/// A bit for each cause that goes to the firmware by `told`.
fn told_causes() -> u64 {
    let told = Cause::ALL.iter().filter(|cause| cause.is_told());
    told.fold(0, |bits, cause| bits | 1 << cause.code())
}

/// Event queues of all endpoints and their writer.
#[block(config: &Config)]
pub struct Events {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous, active high.
    pub reset: Signal<In, Bit>,

    /// The write.
    pub doorbell: Pulse<In, Doorbell>,
    /// Endpoint that is read; its registers follow one cycle later.
    pub read_endpoint: Signal<In, Bits<8>>,
    /// Producer index of the event queue.
    pub event_tail: Signal<Out, Bits<16>>,
    /// Causes that have occurred.
    pub sticky: Signal<Out, Bits<32>>,
    /// Events that found no room.
    pub events_lost: Signal<Out, Bits<32>>,
    /// Bit `e`: interrupt of endpoint `e`'s event queue, a level.
    pub interrupts: Signal<Out, Bits<32>>,

    /// A control request; taken when it is done.
    pub control: Stream<In, ControlRequest>,

    /// The event.
    pub queues: Stream<In, RaiseEvent>,
    /// The event.
    pub completions: Stream<In, RaiseEvent>,
    /// The event.
    pub delivery: Stream<In, RaiseEvent>,
    /// The event.
    pub faults: Stream<In, RaiseEvent>,
    /// The event.
    pub refusals: Stream<In, RaiseEvent>,
    /// With it: its `detail`. That of others is zero.
    pub refusals_detail: Signal<In, Bits<64>>,

    /// The event.
    pub told: Pulse<Out, RaiseEvent>,

    /// The access.
    pub write_request: Stream<Out, DmaRequest>,
    /// Eight bytes, the first in the lowest lane.
    pub write_data: Stream<Out, Bits<64>>,
    /// The oldest access has been answered: whether the host's memory refused it.
    pub write_done: Pulse<In, Bit>,

    /// Pulse: a doorbell was ignored because of its value.
    pub count_doorbell_errors: Signal<Out, Bit>,

    #[each(config.endpoints, Queue::new(EVENT_BYTES))]
    queue: Vec<Queue>,
    #[each(config.endpoints)]
    sticky_of: Vec<Reg<Bits<32>>>,
    #[each(config.endpoints)]
    lost_of: Vec<Reg<Bits<32>>>,
    #[each(config.endpoints)]
    index_error: Vec<Reg<Bit>>,
    #[each(config.endpoints)]
    index_value: Vec<Reg<Bits<32>>>,
    #[is(StreamMux::new(SOURCES))]
    source: StreamMux<RaiseEvent>,
    #[is(EntryWriter::new(UNDER_WAY, EVENT_BYTES / 8))]
    writer: EntryWriter<256>,
    own: Signal<Local, RaiseEvent>,
    rung: Signal<Local, Bits<32>>,
    own_valid: Signal<Local, Bit>,
    own_taken: Signal<Local, Bit>,
    current_valid: Reg<Bit>,
    current: Reg<RaiseEvent>,
    detail: Reg<Bits<64>>,
    /// The firmware has raised `current`.
    by_firmware: Reg<Bit>,
    /// Pair of the event of each queue that is on its way.
    #[each(config.endpoints)]
    written_pair: Vec<Reg<Bits<16>>>,
    exists: Signal<Local, Bit>,
    room: Signal<Local, Bit>,
    free: Signal<Local, Bit>,
    address: Signal<Local, Bits<64>>,
    phase: Signal<Local, Bit>,
    entry: Signal<Local, Event>,
    settles: Signal<Local, Bit>,
    writes: Signal<Local, Bit>,
    loses: Signal<Local, Bit>,
    more: Signal<Local, Bits<32>>,
    one: Signal<Local, Bits<32>>,
    cause_bit: Signal<Local, Bits<32>>,
    to_firmware: Signal<Local, Bit>,

    ring_setup: Signal<Local, RingSetup>,
    event_setup: Signal<Local, EventSetup>,
    raises: Signal<Local, Bit>,
    raised: Signal<Local, RaiseEvent>,
    target: Signal<Local, Bits<16>>,
    set_ring: Signal<Local, Bit>,
    clear_endpoint: Signal<Local, Bit>,
    clearing: Signal<Local, Bit>,
    clear_pair: Signal<Local, Bit>,
    about_pair: Signal<Local, Bit>,
    under_way: Signal<Local, Bit>,
    consumes: Signal<Local, Bit>,
    arms: Signal<Local, Bit>,
    cleans: Signal<Local, Bit>,
    ignored: Signal<Local, Bit>,
    interrupt_bits: Signal<Local, Bits<32>>,
    read_tail: Reg<Bits<16>>,
    read_sticky: Reg<Bits<32>>,
    read_lost: Reg<Bits<32>>,

    #[is(Check::new("an_event_has_room"))]
    never_overwrites: Check,
    #[is(constant(config.endpoints as u64))]
    endpoints: Constant<Bits<16>>,
    /// A bit for each cause that goes to the firmware by `told`.
    #[is(constant(told_causes()))]
    told_causes: Constant<Bits<32>>,
    #[is(config.endpoints)]
    _n: usize,
}

impl Events {
    /// The control requests that it takes.
    pub const REQUESTS: &[Operation] = &[
        Operation::RingSet,
        Operation::EndpointClear,
        Operation::PairClear,
        Operation::EventRaise,
    ];

    /// For the endpoints of `config`.
    pub fn new(config: &Config) -> Self {
        Self::build(config)
    }
}

#[block(endpoints = self._n)]
impl Logic for Events {
    fn update(&mut self) {
        // Control.
        self.ring_setup.next = bit_cast::<128, 320>(self.control.data.val().data).into();
        self.target.next = self.control.data.val().index;
        self.set_ring.next = self.control.valid.val()
            & (self.control.data.val().operation == Operation::RingSet)
            & ((self.target.val() & 3) == RING_EVENT);
        self.clear_endpoint.next = self.control.valid.val()
            & (self.control.data.val().operation == Operation::EndpointClear);
        self.under_way.next = self.current_valid.q.val()
            & (bit_cast::<16, 8>(self.current.q.val().endpoint) == self.target.val());
        for i in 0..self._n {
            if (self.target.val() == i.to_bits()) & !self.queue[i].idle.val() {
                self.under_way.next = true;
            }
        }
        self.clearing.next = self.clear_endpoint.val() & !self.under_way.val();
        // `EVENT_TAIL` is past all that was raised about a pair when that is cleared.
        self.clear_pair.next =
            self.control.valid.val() & (self.control.data.val().operation == Operation::PairClear);
        self.about_pair.next = (self.current_valid.q.val()
            & (self.current.q.val().pair == self.target.val()))
            | (self.delivery.valid.val() & (self.delivery.data.val().pair == self.target.val()))
            | (self.faults.valid.val() & (self.faults.data.val().pair == self.target.val()))
            | (self.refusals.valid.val() & (self.refusals.data.val().pair == self.target.val()));
        for i in 0..self._n {
            if (self.written_pair[i].q.val() == self.target.val()) & !self.queue[i].idle.val() {
                self.about_pair.next = true;
            }
        }
        self.event_setup.next = bit_cast::<128, 320>(self.control.data.val().data).into();
        // A request for an endpoint that doesn't exist raises nothing, and is done at once.
        self.raises.next = self.control.valid.val()
            & (self.control.data.val().operation == Operation::EventRaise)
            & (self.target.val() < self.endpoints.val());
        self.control.ready.next = self.control.valid.val()
            & (!self.clear_endpoint.val() | !self.under_way.val())
            & (!self.clear_pair.val() | !self.about_pair.val())
            & (!self.raises.val() | self.source.input[5].ready.val());

        // The sources, in turn, into `current`; index errors of these queues are one of them.
        join!(self.queues => self.source.input[0]);
        join!(self.completions => self.source.input[1]);
        join!(self.delivery => self.source.input[2]);
        join!(self.faults => self.source.input[3]);
        self.own.next = RaiseEvent {
            cause: Cause::IndexError,
            pair: NO_PAIR,
            ..RaiseEvent::default()
        };
        self.own_valid.next = false;
        for i in 0..self._n {
            self.rung.next = self.index_value[i].q.val();
            if self.index_error[i].q.val() & !self.own_valid.val() {
                self.own_valid.next = true;
                self.own.next.endpoint = i.to_bits();
                self.own.next.info = bit_cast::<64, 32>(self.rung.val());
            }
        }
        self.source.input[4].valid.next = self.own_valid.val();
        self.source.input[4].data.next = self.own.val();
        self.own_taken.next = self.source.input[4].ready.val();
        self.raised.next = RaiseEvent {
            endpoint: bit_cast::<8, 16>(self.target.val()),
            cause: self.event_setup.val().cause,
            pair: self.event_setup.val().pair,
            info: self.event_setup.val().info,
        };
        self.source.input[5].valid.next = self.raises.val();
        self.source.input[5].data.next = self.raised.val();
        join!(self.refusals => self.source.input[6]);
        self.source.output.ready.next = !self.current_valid.q.val();
        if !self.current_valid.q.val() & self.source.output.valid.val() {
            self.current_valid.d.next = true;
            self.current.d.next = self.source.output.data.val();
            self.by_firmware.d.next = self.source.out_index.val() == 5;
            self.detail.d.next = 0.into();
            if self.source.out_index.val() == 6 {
                self.detail.d.next = self.refusals_detail.val();
            }
        }

        // From there into the queue, or into the count.
        self.exists.next = false;
        self.room.next = false;
        self.free.next = false;
        self.address.next = 0.into();
        self.phase.next = false;
        for i in 0..self._n {
            if self.current.q.val().endpoint == i.to_bits() {
                self.exists.next = self.queue[i].size.val().any();
                self.room.next = self.queue[i].used.val() < self.queue[i].size.val();
                self.free.next = self.queue[i].idle.val();
                self.address.next = self.queue[i].address.val();
                self.phase.next = self.queue[i].phase.val();
            }
        }
        self.writer.offer.next = self.current_valid.q.val()
            & (self.writer.begun.val() | (self.exists.val() & self.room.val() & self.free.val()));
        self.writes.next = self.writer.begins.val();
        self.settles.next = self.current_valid.q.val()
            & !self.writer.begun.val()
            & (self.writes.val() | !self.room.val() | !self.exists.val());
        if self.writer.takes.val() | (self.settles.val() & !self.writes.val()) {
            self.current_valid.d.next = false;
        }
        self.one.next = 1.into();
        self.cause_bit.next = self.one.val() << self.current.q.val().cause;
        self.to_firmware.next = (self.cause_bit.val() & self.told_causes.val()).any();
        self.told.valid.next =
            self.settles.val() & self.to_firmware.val() & !self.by_firmware.q.val();
        self.told.data.next = self.current.q.val();
        self.loses.next = self.settles.val() & self.exists.val() & !self.room.val();
        self.entry.next = Event::default();
        self.entry.next.info = self.current.q.val().info;
        self.entry.next.detail = self.detail.q.val();
        self.entry.next.cause = self.current.q.val().cause;
        self.entry.next.pair = self.current.q.val().pair;
        self.writer.phase.next = self.phase.val();
        self.writer.address.next = self.address.val();
        self.writer.endpoint.next = self.current.q.val().endpoint;
        self.writer.entry.next = self.entry.val().into();
        self.writer.short.next = false;
        join!(self.writer.request => self.write_request);
        join!(self.writer.data => self.write_data);
        join!(self.write_done => self.writer.done);

        // Queues, sticky bits, losses.
        self.consumes.next =
            self.doorbell.valid.val() & (self.doorbell.data.val().offset == EVENT_HEAD);
        self.arms.next = self.doorbell.valid.val() & (self.doorbell.data.val().offset == EVENT_ARM);
        self.cleans.next = self.doorbell.valid.val() & (self.doorbell.data.val().offset == STICKY);
        self.interrupt_bits.next = 0.into();
        self.ignored.next = false;
        self.never_overwrites.ok.next = true;
        self.read_tail.d.next = 0.into();
        self.read_sticky.d.next = 0.into();
        self.read_lost.d.next = 0.into();
        for i in 0..self._n {
            self.queue[i].set.next =
                self.set_ring.val() & ((self.target.val() >> 2) == i.to_bits());
            self.queue[i].base.next = self.ring_setup.val().base;
            self.queue[i].log2.next = self.ring_setup.val().log2;
            self.queue[i].clear.next = self.clearing.val() & (self.target.val() == i.to_bits());
            self.queue[i].value.next = self.doorbell.data.val().value;
            self.queue[i].consume.next =
                self.consumes.val() & (self.doorbell.data.val().endpoint == i.to_bits());
            self.queue[i].arm.next =
                self.arms.val() & (self.doorbell.data.val().endpoint == i.to_bits());
            self.queue[i].issue.next =
                self.writes.val() & (self.current.q.val().endpoint == i.to_bits());
            if self.writes.val() & (self.current.q.val().endpoint == i.to_bits()) {
                self.written_pair[i].d.next = self.current.q.val().pair;
            }
            self.queue[i].written.next = false;
            self.queue[i].failed.next = false;
            if self.writer.finished.valid.val()
                & (self.writer.finished.data.val().endpoint == i.to_bits())
            {
                if self.writer.finished.data.val().failed {
                    self.queue[i].failed.next = true;
                } else {
                    self.queue[i].written.next = true;
                }
            }
            self.ignored.next = self.ignored.val() | self.queue[i].ignored.val();
            self.interrupt_bits.next = self
                .interrupt_bits
                .val()
                .replace_bit(i, self.queue[i].wakes.val());
            if self.queue[i].used.val() > self.queue[i].size.val() {
                self.never_overwrites.ok.next = false;
            }

            self.more.next = 0.into();
            // A cause that occurs while its bit is being cleared stays set.
            if self.cleans.val() & (self.doorbell.data.val().endpoint == i.to_bits()) {
                self.sticky_of[i].d.next =
                    self.sticky_of[i].q.val() & !self.doorbell.data.val().value;
            }
            if self.settles.val() & (self.current.q.val().endpoint == i.to_bits()) {
                self.sticky_of[i].d.next = self.sticky_of[i].q.val() | self.cause_bit.val();
                if self.cleans.val() & (self.doorbell.data.val().endpoint == i.to_bits()) {
                    self.sticky_of[i].d.next = (self.sticky_of[i].q.val()
                        & !self.doorbell.data.val().value)
                        | self.cause_bit.val();
                }
                if self.loses.val() {
                    self.more.next = 1.into();
                }
            }
            if self.writer.finished.valid.val()
                & self.writer.finished.data.val().failed
                & (self.writer.finished.data.val().endpoint == i.to_bits())
            {
                self.more.next = self.more.val() + 1;
            }
            self.lost_of[i].d.next = self.lost_of[i].q.val() + self.more.val();

            // A queue that isn't set has no endpoint to raise the event for.
            if self.own_taken.val() & (self.own.val().endpoint == i.to_bits()) {
                self.index_error[i].d.next = false;
            }
            if self.queue[i].ignored.val() & self.queue[i].size.val().any() {
                self.index_error[i].d.next = true;
                self.index_value[i].d.next = self.doorbell.data.val().value;
            }

            if self.read_endpoint.val() == i.to_bits() {
                self.read_tail.d.next = self.queue[i].tail.val();
                self.read_sticky.d.next = self.sticky_of[i].q.val();
                self.read_lost.d.next = self.lost_of[i].q.val();
            }
            if (self.clearing.val() & (self.target.val() == i.to_bits()))
                | (self.set_ring.val() & ((self.target.val() >> 2) == i.to_bits()))
            {
                self.sticky_of[i].d.next = 0.into();
                self.lost_of[i].d.next = 0.into();
                self.index_error[i].d.next = false;
            }
        }
        self.interrupts.next = self.interrupt_bits.val();
        self.event_tail.next = self.read_tail.q.val();
        self.sticky.next = self.read_sticky.q.val();
        self.events_lost.next = self.read_lost.q.val();
        self.count_doorbell_errors.next = self.ignored.val();
    }
}
