//! One place through which every failure of a pair goes, so that a pair fails once and every block that
//! holds state of the pair gets the fault.
//!
//! A block that finds a pair broken asks here. One fault at a time is offered to every block that holds state
//! of pairs, to each until it has finished with the pair. `SendQueues` are told when `Delivery` has (`delivery_done`): their end gives the buffers of the
//! pair's gets back, so no answer may be on its way to one then. Then an event goes to the endpoint, unless it has been
//! told already: of a slot that can't be written, or of an orderly end. A pair that is not connected, or has failed, isn't failed again.
//!
//! ```text
//!   control PairFail ─┐   ┌────────┐   ┌─► SendQueues   completes the sends
//!   SendQueues ───────┼──►│        │   ├─► Receive      drops what comes
//!   Receive ──────────┼──►│ Faults ├───┼─► Acknowledge  tells the peer
//!   Delivery ─────────┘   │        │   ├─► Delivery     completes the receives
//!                         │        │   ├─► Regions      refuses what the peer asks for
//!                         └────────┘   └─► Events       `LinkError`, `PeerFailed`
//! ```
//!
//! Control goes before requests, and a control request is answered when nothing is being offered.
//! So after `PairClear` no fault of the pair is on its way, and a request that was made before it is
//! swallowed.

use crate::config::Config;
use crate::prelude::*;
use crate::prim::{StreamMux, Table};
use crate::types::{ControlRequest, Fault, PairSetup, RaiseEvent};
use abi::control::Operation;
use abi::event::{Cause, INFO_CLOSED_BIT};
use abi::status::Status;

/// The blocks that ask, and those that get the fault: indices of the arrays of ports.
pub mod party {
    /// `envelope::SendQueues`.
    pub const SENDS: usize = 0;
    /// `link::Receive`.
    pub const RECEIVE: usize = 1;
    /// `envelope::Delivery`.
    pub const DELIVERY: usize = 2;
    /// Number of blocks that ask.
    pub const SOURCES: usize = 3;
    /// `link::Acknowledge`, which never asks.
    pub const ACKNOWLEDGE: usize = 3;
    /// `protect::Regions`, which never asks either.
    pub const REGIONS: usize = 4;
    /// Number of blocks that get the fault.
    pub const SINKS: usize = 5;
}

/// `info` of `PeerFailed`, if the peer has closed its side.
const CLOSED: u64 = 1 << INFO_CLOSED_BIT;

/// A pair's entry in the table.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Pair {
    /// Connected, and not failed.
    sound: Bit,
    endpoint: Bits<8>,
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    /// Waiting for a request.
    Idle,
    /// The pair has been read.
    Look,
    /// The fault is offered.
    Offer,
    /// The event is offered.
    Raise,
}

/// Hands failures of pairs round.
#[block(config: &Config)]
pub struct Faults {
    /// The clock.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset.
    pub reset: Signal<In, Bit>,
    /// The table is cleared.
    pub initialized: Signal<Out, Bit>,
    /// A [`party`] asks for a pair to be failed: pair, and status of its operations.
    #[each(party::SOURCES)]
    pub fault_request: Vec<Stream<In, Fault>>,
    /// A pair has failed: to each [`party`] until it is ready.
    #[each(party::SINKS)]
    pub fault_valid: Vec<Signal<Out, Bit>>,
    /// The party has finished with the pair.
    #[each(party::SINKS)]
    pub fault_ready: Vec<Signal<In, Bit>>,
    /// The pair and its status, the same for all.
    pub fault: Signal<Out, Fault>,
    /// `Delivery` has finished with it: nothing is on its way to a buffer of the pair.
    pub delivery_done: Signal<Out, Bit>,
    /// An event to raise.
    pub raise: Stream<Out, RaiseEvent>,
    /// A control request; taken when it is done.
    pub control: Stream<In, ControlRequest>,

    #[is(StreamMux::new(party::SOURCES))]
    requests: StreamMux<Fault>,
    #[is(Table::new(config.pairs))]
    pairs: Table<Pair>,
    state: Reg<State>,
    held: Reg<Fault>,
    endpoint: Reg<Bits<8>>,
    by_control: Reg<Bit>,
    /// It is the receiver's: the peer has said so.
    by_peer: Reg<Bit>,
    told: Reg<Bits<8>>,

    setup: Signal<Local, PairSetup>,
    pair: Signal<Local, Pair>,
    read: Signal<Local, Pair>,
    told_now: Signal<Local, Bits<8>>,
    is_news: Signal<Local, Bit>,
    is_set: Signal<Local, Bit>,
    is_fail: Signal<Local, Bit>,
    in_range: Signal<Local, Bit>,
    cause: Signal<Local, Bits<8>>,
    info: Signal<Local, Bits<64>>,

    // What must hold, and what it is compared with.
    /// The pair that failed last, unless it has been set or cleared since.
    has_failed: Reg<Bit>,
    failed_pair: Reg<Bits<16>>,
    /// A bit a party: it has taken the fault.
    took: Reg<Bits<8>>,
    took_now: Signal<Local, Bits<8>>,
    offers: Signal<Local, Bit>,
    a_pair_fails_once: Check,
    a_fault_ends_when_all_have_taken_it: Check,

    #[is(constant(config.pairs as u64))]
    count: Constant<Bits<16>>,
}

impl Faults {
    /// The control requests that it takes.
    pub const REQUESTS: &[Operation] = &[
        Operation::PairSet,
        Operation::PairFail,
        Operation::PairClear,
    ];

    /// The block of a card.
    pub fn new(config: &Config) -> Self {
        Self::build(config)
    }
}

#[block]
impl Logic for Faults {
    fn update(&mut self) {
        for source in 0..party::SOURCES {
            join!(self.fault_request[source] => self.requests.input[source]);
        }
        self.requests.output.ready.next = false;

        self.initialized.next = self.pairs.initialized.val();
        self.setup.next = self.control.data.val().data.into();
        self.is_set.next = self.control.data.val().operation == Operation::PairSet;
        self.is_fail.next = self.control.data.val().operation == Operation::PairFail;
        self.control.ready.next = false;

        self.read.next = self.pairs.read_data.val();
        self.pairs.read_address.next = self.held.q.val().pair;
        self.pairs.write.enable.next = false;
        self.pairs.write.address.next = self.held.q.val().pair;
        self.pair.next = Pair {
            sound: false,
            endpoint: self.read.val().endpoint,
        };
        self.in_range.next = self.held.q.val().pair < self.count.val();

        self.fault.next = self.held.q.val();
        // Of an orderly end the firmware knows, and of a slot that can't be written Delivery tells.
        self.is_news.next = (self.held.q.val().status != Status::Flushed)
            & (self.held.q.val().status != Status::PeerClosed)
            & (self.held.q.val().status != Status::MemoryError);
        self.told_now.next = self.told.q.val();
        self.delivery_done.next = self.told.q.val().get_bit(party::DELIVERY);
        for sink in 0..party::SINKS {
            self.fault_valid[sink].next =
                (self.state.q.val() == State::Offer) & !self.told.q.val().get_bit(sink);
            if self.fault_ready[sink].val() & (self.state.q.val() == State::Offer) {
                self.told_now.next = self.told_now.val().replace_bit(sink, true);
            }
        }
        self.cause.next = Cause::LinkError.into();
        self.info.next = bit_cast::<64, 8>(self.held.q.val().status);
        if self.held.q.val().status == Status::PeerFailed {
            self.cause.next = Cause::PeerFailed.into();
            if self.by_peer.q.val() {
                self.info.next = bit_cast::<64, 8>(self.held.q.val().status) | CLOSED;
            }
        }
        self.raise.valid.next = self.state.q.val() == State::Raise;
        self.raise.data.next = RaiseEvent {
            endpoint: self.endpoint.q.val(),
            cause: self.cause.val(),
            pair: self.held.q.val().pair,
            info: self.info.val(),
        };

        match self.state.q.val() {
            State::Idle => {
                self.by_control.d.next = false;
                self.by_peer.d.next = false;
                if self.control.valid.val() & self.pairs.initialized.val() {
                    if self.is_fail.val() {
                        self.by_control.d.next = true;
                        self.held.d.next = Fault {
                            pair: self.control.data.val().index,
                            status: self.control.data.val().data.get_bits::<8>(0),
                        };
                        self.pairs.read_address.next = self.control.data.val().index;
                        self.state.d.next = State::Look;
                    } else {
                        self.control.ready.next = true;
                        self.pairs.write.enable.next = true;
                        self.pairs.write.address.next = self.control.data.val().index;
                        self.pair.next = Pair {
                            sound: self.is_set.val(),
                            endpoint: self.setup.val().endpoint,
                        };
                    }
                } else if self.requests.output.valid.val() & self.pairs.initialized.val() {
                    self.requests.output.ready.next = true;
                    self.held.d.next = self.requests.output.data.val();
                    self.by_peer.d.next = self.requests.out_index.val() == party::RECEIVE;
                    self.state.d.next = State::Look;
                    self.pairs.read_address.next = self.requests.output.data.val().pair;
                }
            }
            State::Look => {
                self.endpoint.d.next = self.read.val().endpoint;
                self.told.d.next = 0.into();
                if self.in_range.val() & self.read.val().sound {
                    self.pairs.write.enable.next = true;
                    self.state.d.next = State::Offer;
                } else {
                    self.control.ready.next = self.by_control.q.val();
                    self.state.d.next = State::Idle;
                }
            }
            State::Offer => {
                self.told.d.next = self.told_now.val();
                if self.told_now.val() == (1 << party::SINKS) - 1 {
                    self.control.ready.next = self.by_control.q.val();
                    self.state.d.next = State::Idle;
                    if self.is_news.val() {
                        self.state.d.next = State::Raise;
                    }
                }
            }
            State::Raise => {
                if self.raise.ready.val() {
                    self.state.d.next = State::Idle;
                }
            }
            _ => {}
        }
        self.pairs.write.data.next = self.pair.val();

        self.offers.next =
            (self.state.q.val() == State::Look) & self.in_range.val() & self.read.val().sound;
        self.a_pair_fails_once.ok.next = !self.offers.val()
            | !self.has_failed.q.val()
            | (self.failed_pair.q.val() != self.held.q.val().pair);
        if self.offers.val() {
            self.has_failed.d.next = true;
            self.failed_pair.d.next = self.held.q.val().pair;
        }
        if self.control.ready.val()
            & !self.is_fail.val()
            & (self.control.data.val().index == self.failed_pair.q.val())
        {
            self.has_failed.d.next = false;
        }
        self.took_now.next = self.took.q.val();
        for sink in 0..party::SINKS {
            if self.fault_valid[sink].val() & self.fault_ready[sink].val() {
                self.took_now.next = self.took_now.val().replace_bit(sink, true);
            }
        }
        self.took.d.next = self.took_now.val();
        if self.state.q.val() == State::Look {
            self.took.d.next = 0.into();
        }
        self.a_fault_ends_when_all_have_taken_it.ok.next = (self.state.q.val() != State::Offer)
            | (self.told_now.val() != (1 << party::SINKS) - 1)
            | (self.took_now.val() == (1 << party::SINKS) - 1);
    }
}
