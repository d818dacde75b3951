//! The table of registered regions, and the one question asked of it: may this buffer be used?
//!
//! ```text
//!  transmit ─┐          ┌───────┐  entry  ┌──────────┐  ends  ┌─────────┐
//!  delivery ─┼─ in turn ┤ table ├────────►│ add      ├───────►│ compare ├──► allowed, to who asked
//!  posts ────┘          └───────┘         │ lengths  │        │         │
//!     cycle 0               1             └──2───────┘        └──3──────┘
//! ```
//!
//! A query is taken in each cycle, and is answered after the same number of cycles whatever the table holds and whatever the answer is, so its
//! time reveals nothing about other regions. Sums are one bit wider than addresses: nothing wraps.
//!
//! The table changes in a cycle in which no query is on its way and `quiet` is high: then nothing that it allowed is on its way either.

use crate::config::Config;
use crate::prelude::*;
use crate::prim::{StreamMux, Table};
use crate::types::{Access, ControlRequest, Permission, RegionQuery, RegionSetup};
use abi::control::{KEY_INDEX_BITS, Operation};

/// Cycles from the transfer of a query to its answer.
pub const LATENCY: u64 = 3;

/// Numbers of the clients.
mod client {
    pub const TRANSMIT: usize = 0;
    pub const DELIVERY: usize = 1;
    pub const POSTS: usize = 2;
    pub const COUNT: usize = 3;
}

const _: () = assert!(
    client::TRANSMIT == 0 && client::DELIVERY == 1 && client::POSTS == 2,
    "the kernel joins their queries to the inputs of these numbers"
);
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

/// A query on its way.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Asked {
    valid: Bit,
    client: Bits<8>,
    query: Access,
    /// Nothing speaks against it so far.
    allowed: Bit,
}

/// The table, which answers the queries of three clients in turn.
#[block(config: &Config)]
pub struct Regions {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset.
    pub reset: Signal<In, Bit>,
    /// The table is cleared.
    pub initialized: Signal<Out, Bit>,
    /// A buffer of a send.
    pub transmit_query: Stream<In, RegionQuery>,
    /// Whether it may be used.
    pub transmit_allowed: Pulse<Out, Bit>,
    /// A buffer that a message has come for.
    pub delivery_query: Stream<In, Access>,
    /// Whether it may be used, and where it is. No peer may use anything yet.
    pub delivery_allowed: Pulse<Out, Permission>,
    /// A buffer that is posted.
    pub posts_query: Stream<In, RegionQuery>,
    /// Whether it may be used.
    pub posts_allowed: Pulse<Out, Bit>,
    /// A pulse with each answer that is no and that a process of this host asked for: the query.
    pub refused: Pulse<Out, RegionQuery>,
    /// No access that was allowed is on its way. `RegionSet` and `RegionClear` wait for it, and hold queries off only while it is high.
    pub quiet: Signal<In, Bit>,
    /// A control request; taken when it is done.
    pub control: Stream<In, ControlRequest>,

    #[is(StreamMux::new(client::COUNT))]
    turn: StreamMux<Access>,
    #[is(Table::new(config.regions))]
    entries: Table<Region>,
    /// Queries whose entry comes out of the table, whose ends are worked out, and that are answered.
    looking: Reg<Asked>,
    adding: Reg<Asked>,
    answering: Reg<Asked>,
    region: Reg<Region>,
    /// First bytes behind the buffer and behind the region.
    added_end: Reg<Bits<65>>,
    query_end: Reg<Bits<65>>,
    region_end: Reg<Bits<65>>,

    transmit_asks: Signal<Local, Access>,
    posts_asks: Signal<Local, Access>,
    key: Signal<Local, Bits<32>>,
    index: Signal<Local, Bits<16>>,
    in_table: Signal<Local, Bit>,
    setup: Signal<Local, RegionSetup>,
    data: Signal<Local, Bits<320>>,
    is_set: Signal<Local, Bit>,
    under_way: Signal<Local, Bit>,
    undisturbed: Signal<Local, Bit>,
    changes: Signal<Local, Bit>,
    accepts: Signal<Local, Bit>,
    written: Signal<Local, Region>,
    address: Signal<Local, Bits<64>>,
    length: Signal<Local, Bits<64>>,
    base: Signal<Local, Bits<64>>,
    size: Signal<Local, Bits<64>>,
    asked_key: Signal<Local, Bits<32>>,
    same_tag: Signal<Local, Bit>,
    same_domain: Signal<Local, Bit>,
    has_rights: Signal<Local, Bit>,
    is_local: Signal<Local, Bit>,
    begins_inside: Signal<Local, Bit>,
    permitted: Signal<Local, Bit>,
    fits: Signal<Local, Bit>,
    answers: Signal<Local, Bit>,
    answered: Signal<Local, Bits<8>>,

    #[is(constant(config.regions as u64))]
    region_count: Constant<Bits<16>>,
}

impl Regions {
    /// The control requests that it takes.
    pub const REQUESTS: &[Operation] = &[Operation::RegionSet, Operation::RegionClear];

    /// The table of a card.
    pub fn new(config: &Config) -> Self {
        Self::build(config)
    }
}

#[block(regions = self.region_count.val().index())]
impl Logic for Regions {
    fn update(&mut self) {
        self.initialized.next = self.entries.initialized.val();

        // Changes of the table.
        self.is_set.next = self.control.data.val().operation == Operation::RegionSet;
        self.under_way.next =
            self.looking.q.val().valid | self.adding.q.val().valid | self.answering.q.val().valid;
        self.undisturbed.next = self.control.valid.val() & self.quiet.val();
        self.changes.next =
            self.undisturbed.val() & !self.under_way.val() & self.entries.initialized.val();
        self.control.ready.next = self.changes.val();
        self.data.next = self.control.data.val().data;
        self.setup.next = self.data.val().get_bits::<192>(0).into();
        self.written.next = Region::default();
        if self.is_set.val() {
            self.written.next.valid = true;
            self.written.next.tag = self.setup.val().tag;
            self.written.next.domain = self.setup.val().domain;
            self.written.next.rights = self.setup.val().rights;
            self.written.next.base = self.setup.val().base;
            self.written.next.length = self.setup.val().length;
        }
        store!(
            self.entries.write,
            self.changes.val(),
            self.control.data.val().index,
            self.written.val()
        );

        // Cycle 0: a query is taken.
        self.transmit_asks.next = Access::default();
        self.transmit_asks.next.buffer = self.transmit_query.data.val();
        self.posts_asks.next = Access::default();
        self.posts_asks.next.buffer = self.posts_query.data.val();
        send!(
            self.turn.input[0],
            self.transmit_query.valid.val(),
            self.transmit_asks.val()
        );
        self.transmit_query.ready.next = self.turn.input[0].ready.val();
        join!(self.delivery_query => self.turn.input[1]);
        send!(
            self.turn.input[2],
            self.posts_query.valid.val(),
            self.posts_asks.val()
        );
        self.posts_query.ready.next = self.turn.input[2].ready.val();
        self.accepts.next = self.entries.initialized.val() & !self.undisturbed.val();
        self.turn.output.ready.next = self.accepts.val();
        self.key.next = self.turn.output.data.val().buffer.key;
        self.index.next = bit_cast::<16, 12>(self.key.val().get_bits::<12>(0));
        self.entries.read_address.next = self.index.val();
        // A number beyond the table would alias a region of it.
        self.in_table.next = self.index.val() < self.region_count.val();
        self.looking.d.next = Asked {
            valid: self.turn.output.valid.val() & self.accepts.val(),
            client: self.turn.out_index.val(),
            query: self.turn.output.data.val(),
            allowed: self.in_table.val(),
        };

        // Cycle 1: its region comes out of the table.
        self.address.next = self.looking.q.val().query.buffer.address;
        self.length.next = self.looking.q.val().query.buffer.length;
        self.adding.d.next = self.looking.q.val();
        self.region.d.next = self.entries.read_data.val();
        self.added_end.d.next =
            bit_cast::<65, 64>(self.address.val()) + bit_cast::<65, 64>(self.length.val());

        // Cycle 2: all but the end is compared.
        self.base.next = self.region.q.val().base;
        self.size.next = self.region.q.val().length;
        self.asked_key.next = self.adding.q.val().query.buffer.key;
        self.same_tag.next = self.region.q.val().tag == self.asked_key.val().get_bits::<20>(12);
        self.same_domain.next =
            self.region.q.val().domain == self.adding.q.val().query.buffer.domain;
        self.has_rights.next = (self.region.q.val().rights
            & self.adding.q.val().query.buffer.rights)
            == self.adding.q.val().query.buffer.rights;
        self.begins_inside.next = self.adding.q.val().query.buffer.address >= self.base.val();
        self.is_local.next = !self.adding.q.val().query.remote;
        self.permitted.next = self.adding.q.val().allowed
            & self.is_local.val()
            & self.region.q.val().valid
            & self.same_tag.val()
            & self.same_domain.val()
            & self.has_rights.val()
            & self.begins_inside.val();
        self.answering.d.next = Asked {
            valid: self.adding.q.val().valid,
            client: self.adding.q.val().client,
            query: self.adding.q.val().query,
            allowed: self.permitted.val(),
        };
        self.query_end.d.next = self.added_end.q.val();
        self.region_end.d.next =
            bit_cast::<65, 64>(self.base.val()) + bit_cast::<65, 64>(self.size.val());

        // Cycle 3: the ends are compared, and who asked is answered.
        self.fits.next =
            self.answering.q.val().allowed & (self.query_end.q.val() <= self.region_end.q.val());
        self.answers.next = self.answering.q.val().valid;
        self.answered.next = self.answering.q.val().client;
        send!(
            self.transmit_allowed,
            self.answers.val() & (self.answered.val() == client::TRANSMIT),
            self.fits.val()
        );
        send!(
            self.delivery_allowed,
            self.answers.val() & (self.answered.val() == client::DELIVERY),
            Permission {
                allowed: self.fits.val(),
                address: self.answering.q.val().query.buffer.address,
            }
        );
        send!(
            self.posts_allowed,
            self.answers.val() & (self.answered.val() == client::POSTS),
            self.fits.val()
        );
        send!(
            self.refused,
            self.answers.val() & !self.fits.val() & !self.answering.q.val().query.remote,
            self.answering.q.val().query.buffer
        );
    }
}
