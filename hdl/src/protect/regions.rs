//! The table of registered regions, and the one question asked of it: may this buffer be used?
//!
//! ```text
//!  transmit ──┐    ┌───────┐  entry  ┌──────────┐  ends  ┌─────────┐
//!             ├───►│ table ├────────►│ add      ├───────►│ compare ├──► allowed, to who asked
//!  delivery ──┘    │ (Ram) │         │ lengths  │        │         │
//!                  └───────┘         └──────────┘        └─────────┘
//!     cycle 0          1                  2                   3
//! ```
//!
//! A query takes the same number of cycles whatever the table holds and whatever the answer is, so its
//! time reveals nothing about other regions. Sums are one bit wider than addresses: nothing wraps.

use crate::config::Config;
use crate::prelude::*;
use crate::prim::Table;
use crate::types::{ControlRequest, RegionQuery, RegionSetup};
use abi::control::{KEY_INDEX_BITS, Operation};

/// Cycles from the transfer of a query to its answer.
pub const LATENCY: u64 = 3;

const _: () = assert!(KEY_INDEX_BITS == 12, "the kernel slices keys at this bit");

/// A region's entry in the table.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Region {
    valid: Bit,
    tag: Bits<20>,
    domain: Bits<8>,
    rights: Bits<8>,
    base: Bits<64>,
    length: Bits<64>,
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    /// Taking a query or a control request.
    Idle,
    /// The region of the query has been read.
    Add,
    /// The ends of query and region are known.
    Compare,
    /// The answer is known.
    Answer,
}

/// The table, which answers the queries of two clients in turn.
#[block(config: &Config)]
pub struct Regions {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset.
    pub reset: Signal<In, Bit>,
    /// The table is cleared.
    pub initialized: Signal<Out, Bit>,
    /// The query.
    pub transmit_query: Stream<In, RegionQuery>,
    /// With it: whether the buffer may be used.
    pub transmit_allowed: Pulse<Out, Bit>,
    /// The query.
    pub delivery_query: Stream<In, RegionQuery>,
    /// With it: whether the buffer may be used.
    pub delivery_allowed: Pulse<Out, Bit>,
    /// A pulse with each answer that is no: the query.
    pub refused: Pulse<Out, RegionQuery>,
    /// The control request.
    pub control: Pulse<In, ControlRequest>,
    /// It is done.
    pub control_done: Signal<Out, Bit>,

    #[is(Table::new(config.regions))]
    entries: Table<Region>,
    state: Reg<State>,
    /// The client that goes first if both ask.
    delivery_first: Reg<Bit>,
    for_delivery: Reg<Bit>,
    query: Reg<RegionQuery>,
    region: Reg<Region>,
    query_end: Reg<Bits<65>>,
    region_end: Reg<Bits<65>>,
    allowed: Reg<Bit>,

    key: Signal<Local, Bits<32>>,
    kept_key: Signal<Local, Bits<32>>,
    setup: Signal<Local, RegionSetup>,
    data: Signal<Local, Bits<320>>,
    chosen: Signal<Local, RegionQuery>,
    choose_delivery: Signal<Local, Bit>,
    is_set: Signal<Local, Bit>,
    own: Signal<Local, Bit>,
    written: Signal<Local, Region>,
    address: Signal<Local, Bits<64>>,
    length: Signal<Local, Bits<64>>,
    base: Signal<Local, Bits<64>>,
    size: Signal<Local, Bits<64>>,
    index: Signal<Local, Bits<16>>,
    in_table: Signal<Local, Bit>,
    same_tag: Signal<Local, Bit>,
    same_domain: Signal<Local, Bit>,
    has_rights: Signal<Local, Bit>,
    begins_inside: Signal<Local, Bit>,
    permitted: Signal<Local, Bit>,
    fits: Signal<Local, Bit>,

    #[is(constant(config.regions as u64))]
    region_count: Constant<Bits<16>>,
}

impl Regions {
    /// The table of a card.
    pub fn new(config: &Config) -> Self {
        Self::build(config)
    }
}

#[block(regions = self.region_count.val().index())]
impl Logic for Regions {
    fn update(&mut self) {
        self.initialized.next = self.entries.initialized.val();
        self.is_set.next = self.control.data.val().operation == Operation::RegionSet;
        self.own.next = self.control.valid.val()
            & (self.is_set.val() | (self.control.data.val().operation == Operation::RegionClear));
        self.control_done.next = self.control.valid.val() & !self.own.val();
        self.data.next = self.control.data.val().data;
        self.setup.next = self.data.val().get_bits::<192>(0).into();
        self.transmit_query.ready.next = false;
        self.delivery_query.ready.next = false;
        self.transmit_allowed.valid.next = false;
        self.delivery_allowed.valid.next = false;
        self.transmit_allowed.data.next = self.allowed.q.val();
        self.delivery_allowed.data.next = self.allowed.q.val();
        self.fits.next = self.allowed.q.val() & (self.query_end.q.val() <= self.region_end.q.val());
        self.refused.valid.next = false;
        self.refused.data.next = self.query.q.val();

        self.choose_delivery.next = self.delivery_query.valid.val()
            & (self.delivery_first.q.val() | !self.transmit_query.valid.val());
        self.chosen.next = self.transmit_query.data.val();
        if self.choose_delivery.val() {
            self.chosen.next = self.delivery_query.data.val();
        }
        self.key.next = self.chosen.val().key;
        self.index.next = bit_cast::<16, 12>(self.key.val().get_bits::<12>(0));
        self.entries.read_address.next = self.index.val();

        self.written.next = Region::default();
        if self.is_set.val() {
            self.written.next.valid = true;
            self.written.next.tag = self.setup.val().tag;
            self.written.next.domain = self.setup.val().domain;
            self.written.next.rights = self.setup.val().rights;
            self.written.next.base = self.setup.val().base;
            self.written.next.length = self.setup.val().length;
        }
        self.entries.write_enable.next = false;
        self.entries.write_address.next = self.control.data.val().index;
        self.entries.write_data.next = self.written.val();

        self.address.next = self.query.q.val().address;
        self.length.next = self.query.q.val().length;
        self.region.d.next = self.entries.read_data.val();
        self.base.next = self.region.q.val().base;
        self.size.next = self.region.q.val().length;

        // A number beyond the table would alias a region of it.
        self.in_table.next = self.index.val() < self.region_count.val();
        self.kept_key.next = self.query.q.val().key;
        self.same_tag.next = self.region.q.val().tag == self.kept_key.val().get_bits::<20>(12);
        self.same_domain.next = self.region.q.val().domain == self.query.q.val().domain;
        self.has_rights.next =
            (self.region.q.val().rights & self.query.q.val().rights) == self.query.q.val().rights;
        self.begins_inside.next = self.address.val() >= self.base.val();
        self.permitted.next = self.allowed.q.val()
            & self.region.q.val().valid
            & self.same_tag.val()
            & self.same_domain.val()
            & self.has_rights.val()
            & self.begins_inside.val();

        match self.state.q.val() {
            State::Idle => {
                if self.own.val() & self.entries.initialized.val() {
                    self.control_done.next = true;
                    self.entries.write_enable.next = true;
                } else if (self.transmit_query.valid.val() | self.delivery_query.valid.val())
                    & self.entries.initialized.val()
                {
                    self.transmit_query.ready.next = !self.choose_delivery.val();
                    self.delivery_query.ready.next = self.choose_delivery.val();
                    self.for_delivery.d.next = self.choose_delivery.val();
                    self.delivery_first.d.next = !self.choose_delivery.val();
                    self.query.d.next = self.chosen.val();
                    self.allowed.d.next = self.in_table.val();
                    self.state.d.next = State::Add;
                }
            }
            State::Add => {
                self.query_end.d.next =
                    bit_cast::<65, 64>(self.address.val()) + bit_cast::<65, 64>(self.length.val());
                self.state.d.next = State::Compare;
            }
            State::Compare => {
                self.region_end.d.next =
                    bit_cast::<65, 64>(self.base.val()) + bit_cast::<65, 64>(self.size.val());
                self.region.d.next = self.region.q.val();
                self.allowed.d.next = self.permitted.val();
                self.state.d.next = State::Answer;
            }
            State::Answer => {
                self.transmit_allowed.valid.next = !self.for_delivery.q.val();
                self.delivery_allowed.valid.next = self.for_delivery.q.val();
                self.transmit_allowed.data.next = self.fits.val();
                self.delivery_allowed.data.next = self.fits.val();
                self.refused.valid.next = !self.fits.val();
                self.state.d.next = State::Idle;
            }
            _ => {}
        }
    }
}
