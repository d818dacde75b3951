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
//! A question takes the same number of cycles whatever the table holds and whatever the answer is, so
//! that neither tells anything about other regions. Sums are one bit wider than addresses: nothing wraps.

use crate::config::Config;
use crate::construct::construct;
use crate::prelude::*;
use crate::prim::Ram;
use crate::types::{ControlRequest, RegionQuery, RegionSetup};
use abi::control::{KEY_INDEX_BITS, Operation};

/// Cycles from the transfer of a query to its answer.
pub const LATENCY: u64 = 3;

const _: () = assert!(KEY_INDEX_BITS == 12, "the kernel slices keys at this bit");

/// A contract to break, so that a test can show that its breach is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, LogicState)]
pub enum RegionsMutation {
    /// As designed.
    None,
    /// A key of another tag names the region.
    TagNotChecked,
    /// A region is every domain's.
    DomainNotChecked,
    /// A region may be used for everything.
    RightsNotChecked,
    /// A buffer may begin before the region.
    StartNotChecked,
    /// The end of a buffer wraps at 64 bits.
    EndWraps,
    /// A number beyond the table is that of a region in it.
    NumbersAliased,
    /// A region that was cleared may still be used.
    NeverForgets,
    /// A refusal is known a cycle sooner.
    RefusesEarly,
}

/// What is kept of a region.
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
    /// The table is being cleared.
    Clear,
    /// Taking a query or a control request.
    Idle,
    /// The region of the query has been read.
    Add,
    /// The ends of query and region are known.
    Compare,
    /// The answer is known.
    Answer,
}

/// Answers queries of two askers, in turn.
#[derive(LogicBlock)]
pub struct Regions {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset.
    pub reset: Signal<In, Bit>,
    /// Which contract to break; there in [`Self::mutable`] only.
    pub mutation: Vec<Signal<In, RegionsMutation>>,
    /// The table is cleared.
    pub initialized: Signal<Out, Bit>,
    /// Transmit asks.
    pub transmit_query_valid: Signal<In, Bit>,
    /// Its query is taken.
    pub transmit_query_ready: Signal<Out, Bit>,
    /// The query.
    pub transmit_query: Signal<In, RegionQuery>,
    /// A pulse: the answer to Transmit.
    pub transmit_allowed_valid: Signal<Out, Bit>,
    /// With it: whether the buffer may be used.
    pub transmit_allowed: Signal<Out, Bit>,
    /// Delivery asks.
    pub delivery_query_valid: Signal<In, Bit>,
    /// Its query is taken.
    pub delivery_query_ready: Signal<Out, Bit>,
    /// The query.
    pub delivery_query: Signal<In, RegionQuery>,
    /// A pulse: the answer to Delivery.
    pub delivery_allowed_valid: Signal<Out, Bit>,
    /// With it: whether the buffer may be used.
    pub delivery_allowed: Signal<Out, Bit>,
    /// There is a control request.
    pub control_valid: Signal<In, Bit>,
    /// The control request.
    pub control: Signal<In, ControlRequest>,
    /// It is done.
    pub control_done: Signal<Out, Bit>,

    entries: Ram<Region>,
    state: Reg<State>,
    clearing: Reg<Bits<16>>,
    /// Whose turn it is if both ask.
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

    region_count: Constant<Bits<16>>,
    last_region: Constant<Bits<16>>,
    region_set: Constant<Bits<8>>,
    region_clear: Constant<Bits<8>>,
    nothing: Constant<Region>,
    _mutable: usize,
}

impl Regions {
    /// The table of a card.
    pub fn new(config: &Config) -> Self {
        Self::build(config, 0)
    }

    /// The same with the input `mutation`, for tests.
    pub fn mutable(config: &Config) -> Self {
        Self::build(config, 1)
    }

    fn build(config: &Config, mutable: usize) -> Self {
        let code = |code: Operation| Constant::new(u64::from(code.code()).into());
        construct!({
            entries: Ram::new(config.regions),
            state: Reg::new(State::Clear),
            region_count: Constant::new((config.regions as u64).into()),
            last_region: Constant::new((config.regions as u64 - 1).into()),
            region_set: code(Operation::RegionSet),
            region_clear: code(Operation::RegionClear),
            nothing: Constant::new(Region::default()),
            mutation: (0..mutable).map(|_| Signal::default()).collect(),
            _mutable: mutable,
        } default {
            clock reset initialized transmit_query_valid transmit_query_ready transmit_query
            transmit_allowed_valid transmit_allowed delivery_query_valid delivery_query_ready
            delivery_query delivery_allowed_valid delivery_allowed control_valid control control_done
            clearing delivery_first for_delivery query region query_end region_end allowed
            key kept_key setup data chosen choose_delivery is_set own written address length base size index
            in_table same_tag same_domain has_rights begins_inside permitted
        })
    }
}

#[module(regions = self.region_count.val().index())]
impl Logic for Regions {
    #[hdl_gen]
    fn update(&mut self) {
        registers!(
            self,
            clock,
            reset,
            state,
            clearing,
            delivery_first,
            for_delivery,
            query,
            region,
            query_end,
            region_end,
            allowed
        );
        clock!(self, clock, entries);

        self.initialized.next = self.state.q.val() != State::Clear;
        self.is_set.next = self.control.val().operation == self.region_set.val();
        self.own.next = self.control_valid.val()
            & (self.is_set.val() | (self.control.val().operation == self.region_clear.val()));
        self.control_done.next = self.control_valid.val() & !self.own.val();
        self.data.next = self.control.val().data;
        self.setup.next = self.data.val().get_bits::<192>(0).into();
        self.transmit_query_ready.next = false;
        self.delivery_query_ready.next = false;
        self.transmit_allowed_valid.next = false;
        self.delivery_allowed_valid.next = false;
        self.transmit_allowed.next = self.allowed.q.val();
        self.delivery_allowed.next = self.allowed.q.val();

        self.choose_delivery.next = self.delivery_query_valid.val()
            & (self.delivery_first.q.val() | !self.transmit_query_valid.val());
        self.chosen.next = self.transmit_query.val();
        if self.choose_delivery.val() {
            self.chosen.next = self.delivery_query.val();
        }
        self.key.next = self.chosen.val().key;
        self.index.next = bit_cast::<16, 12>(self.key.val().get_bits::<12>(0));
        self.entries.read_address.next = self.index.val();

        self.written.next = self.nothing.val();
        if self.is_set.val() {
            self.written.next.valid = true;
            self.written.next.tag = self.setup.val().tag;
            self.written.next.domain = self.setup.val().domain;
            self.written.next.rights = self.setup.val().rights;
            self.written.next.base = self.setup.val().base;
            self.written.next.length = self.setup.val().length;
        }
        self.entries.write_enable.next = false;
        self.entries.write_address.next = self.control.val().index;
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
        for m in 0..self._mutable {
            if self.mutation[m].val() == RegionsMutation::NumbersAliased {
                self.in_table.next = true;
            }
            if self.mutation[m].val() == RegionsMutation::TagNotChecked {
                self.same_tag.next = true;
            }
            if self.mutation[m].val() == RegionsMutation::DomainNotChecked {
                self.same_domain.next = true;
            }
            if self.mutation[m].val() == RegionsMutation::RightsNotChecked {
                self.has_rights.next = true;
            }
            if self.mutation[m].val() == RegionsMutation::StartNotChecked {
                self.begins_inside.next = true;
            }
        }
        self.permitted.next = self.allowed.q.val()
            & self.region.q.val().valid
            & self.same_tag.val()
            & self.same_domain.val()
            & self.has_rights.val()
            & self.begins_inside.val();

        match self.state.q.val() {
            State::Clear => {
                self.entries.write_enable.next = true;
                self.entries.write_address.next = self.clearing.q.val();
                self.entries.write_data.next = self.nothing.val();
                self.clearing.d.next = self.clearing.q.val() + 1;
                if self.clearing.q.val() == self.last_region.val() {
                    self.state.d.next = State::Idle;
                }
            }
            State::Idle => {
                if self.own.val() {
                    self.control_done.next = true;
                    self.entries.write_enable.next =
                        self.control.val().index < self.region_count.val();
                    for m in 0..self._mutable {
                        if (self.mutation[m].val() == RegionsMutation::NeverForgets)
                            & !self.is_set.val()
                        {
                            self.entries.write_enable.next = false;
                        }
                    }
                } else if self.transmit_query_valid.val() | self.delivery_query_valid.val() {
                    self.transmit_query_ready.next = !self.choose_delivery.val();
                    self.delivery_query_ready.next = self.choose_delivery.val();
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
                for m in 0..self._mutable {
                    if self.mutation[m].val() == RegionsMutation::EndWraps {
                        self.query_end.d.next =
                            bit_cast::<65, 64>(self.address.val() + self.length.val());
                    }
                }
                self.state.d.next = State::Compare;
            }
            State::Compare => {
                self.region_end.d.next =
                    bit_cast::<65, 64>(self.base.val()) + bit_cast::<65, 64>(self.size.val());
                self.region.d.next = self.region.q.val();
                self.allowed.d.next = self.permitted.val();
                self.state.d.next = State::Answer;
                for m in 0..self._mutable {
                    if (self.mutation[m].val() == RegionsMutation::RefusesEarly)
                        & !self.permitted.val()
                    {
                        self.transmit_allowed_valid.next = !self.for_delivery.q.val();
                        self.delivery_allowed_valid.next = self.for_delivery.q.val();
                        self.transmit_allowed.next = false;
                        self.delivery_allowed.next = false;
                        self.state.d.next = State::Idle;
                    }
                }
            }
            State::Answer => {
                self.transmit_allowed_valid.next = !self.for_delivery.q.val();
                self.delivery_allowed_valid.next = self.for_delivery.q.val();
                self.transmit_allowed.next =
                    self.allowed.q.val() & (self.query_end.q.val() <= self.region_end.q.val());
                self.delivery_allowed.next =
                    self.allowed.q.val() & (self.query_end.q.val() <= self.region_end.q.val());
                self.state.d.next = State::Idle;
            }
            _ => {}
        }
    }
}
