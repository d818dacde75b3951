//! The table of registered regions, and the one question asked of it: may this memory be used?
//!
//! ```text
//!  gather ───┐         ┌────────┐  region  ┌─────────┐  entry  ┌──────────┐  ends  ┌─────────┐
//!  delivery ─┼─ in ────┤ Grants ├─────────►│ entries ├────────►│ add      ├───────►│ compare ├──► allowed, to who asked
//!  posts ────┘  turn   └────────┘          └─────────┘         │ lengths  │        │         │
//!     cycle 0              1                  2, 3             └──4───────┘        └──5──────┘
//! ```
//!
//! A query is taken in each cycle, but for a peer's, of which one is under way. It is answered after the same number of cycles whatever the tables hold and whatever
//! the answer is, so its time reveals nothing about other regions. Sums are one bit wider than addresses: nothing wraps.
//!
//! The tables change in a cycle in which no query is on its way, and queries wait for that: some cycles. A ticket of each access that is
//! allowed is told in the cycle after its answer: by these [`Fence`](super::Fence) knows what is on its way when something has been taken away.

use super::grants::Grants;
use crate::config::Config;
use crate::prelude::*;
use crate::prim::{StreamMux, Table};
use crate::types::{
    Access, ControlRequest, Fault, GrantSetup, Permission, RegionQuery, RegionSetup, RemoteRefusal,
    Ticket,
};
use abi::control::{KEY_INDEX_BITS, Operation, PAGE_BITS, RefusalReason};

/// Cycles from the transfer of a query to its answer.
pub const LATENCY: u64 = 5;
/// Stages of a query on its way.
const STAGES: usize = LATENCY as usize;

/// Numbers of the clients.
mod client {
    pub const GATHER: usize = 0;
    pub const DELIVERY: usize = 1;
    pub const POSTS: usize = 2;
    pub const COUNT: usize = 3;
}

const _: () = assert!(
    client::GATHER == 0 && client::DELIVERY == 1 && client::POSTS == 2,
    "the kernel joins their queries to the inputs of these numbers"
);
const _: () = assert!(KEY_INDEX_BITS == 12, "the kernel slices keys at this bit");
const _: () = assert!(PAGE_BITS == 12, "the kernel slices addresses at this bit");

/// A region's entry in the table.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Region {
    valid: Bit,
    tag: Bits<20>,
    domain: Bits<8>,
    rights: Bits<8>,
    base: Bits<64>,
    length: Bits<64>,
    space: Bits<8>,
}

/// A query on its way.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Asked {
    valid: Bit,
    client: Bits<8>,
    query: Access,
    /// Index of its region, and the tag that it has to have.
    region: Bits<16>,
    tag: Bits<20>,
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
    /// A buffer of a send, or what a peer asks to read.
    pub gather_query: Stream<In, Access>,
    /// Whether it may be used, and where it is.
    pub gather_allowed: Pulse<Out, Permission>,
    /// A buffer that a message has come for.
    pub delivery_query: Stream<In, Access>,
    /// Whether it may be used, and where it is.
    pub delivery_allowed: Pulse<Out, Permission>,
    /// A pulse in the cycle after each answer to `gather` that is yes.
    pub gather_ticket: Pulse<Out, Ticket>,
    /// The same of `delivery`.
    pub delivery_ticket: Pulse<Out, Ticket>,
    /// A buffer that is posted.
    pub posts_query: Stream<In, RegionQuery>,
    /// Whether it may be used.
    pub posts_allowed: Pulse<Out, Bit>,
    /// A pulse with each answer that is no and that a process of this host asked for: the query.
    pub refused: Pulse<Out, RegionQuery>,
    /// A pulse in the cycle after each answer that is no and that a peer asked for.
    pub peer_refused: Pulse<Out, RemoteRefusal>,
    /// A pair that has failed; taken when its peer may use nothing any more.
    pub fault: Stream<In, Fault>,
    /// Pulse: `SHUT_OUT_TICK` cycles more have passed.
    pub tick: Signal<In, Bit>,
    /// A grant has ended with its one access: its row.
    pub spent: Pulse<Out, Bits<16>>,
    /// A control request; taken when the tables have changed, and no query from before is unanswered.
    pub control: Stream<In, ControlRequest>,

    #[is(StreamMux::new(client::COUNT))]
    turn: StreamMux<Access>,
    #[is(Table::new(config.regions))]
    entries: Table<Region>,
    #[is(Grants::new(config))]
    grants: Grants,
    /// The next change is made in this cycle, if it is still asked for,
    changing: Reg<Bit>,
    /// and is a fault.
    failing: Reg<Bit>,
    /// Queries whose grant comes out of its table, whose region is known, whose entry comes out of the table, whose ends are worked out, and that are answered.
    taken: Reg<Asked>,
    named: Reg<Asked>,
    looking: Reg<Asked>,
    adding: Reg<Asked>,
    answering: Reg<Asked>,
    region: Reg<Region>,
    /// First bytes behind the buffer and behind the region.
    added_end: Reg<Bits<65>>,
    query_end: Reg<Bits<65>>,
    region_end: Reg<Bits<65>>,
    /// Card address of its first byte, and its region's domain and address space.
    located: Reg<Bits<64>>,
    answering_domain: Reg<Bits<8>>,
    answering_space: Reg<Bits<8>>,
    /// The region is there, has the rights, and is the one that was granted: its domain alone speaks against the access, or its end.
    fits_region: Reg<Bit>,
    other_domain: Reg<Bit>,
    ends_outside: Signal<Local, Bit>,
    told: Reg<RemoteRefusal>,
    tells: Reg<Bit>,
    /// Whose access was allowed in the cycle before, and which it was.
    gathers: Reg<Bit>,
    delivers: Reg<Bit>,
    ticket: Reg<Ticket>,
    first_byte: Signal<Local, Bits<64>>,
    last_byte: Signal<Local, Bits<64>>,

    answer: Signal<Local, Permission>,
    posts_asks: Signal<Local, Access>,
    next_key: Signal<Local, Bits<32>>,
    in_table: Signal<Local, Bit>,
    remote_under_way: Signal<Local, Bit>,
    takes: Signal<Local, Bit>,
    looks: Signal<Local, Asked>,
    operation: Signal<Local, Bits<8>>,
    is_region: Signal<Local, Bit>,
    cleared: Signal<Local, Bit>,
    holds: Signal<Local, Bit>,
    changed: Signal<Local, ControlRequest>,
    setup: Signal<Local, RegionSetup>,
    grant: Signal<Local, GrantSetup>,
    data: Signal<Local, Bits<320>>,
    is_set: Signal<Local, Bit>,
    under_way: Signal<Local, Bit>,
    changes: Signal<Local, Bit>,
    accepts: Signal<Local, Bit>,
    written: Signal<Local, Region>,
    address: Signal<Local, Bits<64>>,
    length: Signal<Local, Bits<64>>,
    base: Signal<Local, Bits<64>>,
    size: Signal<Local, Bits<64>>,
    same_tag: Signal<Local, Bit>,
    asker: Signal<Local, Bits<8>>,
    same_domain: Signal<Local, Bit>,
    has_rights: Signal<Local, Bit>,
    is_remote: Signal<Local, Bit>,
    is_granted: Signal<Local, Bit>,
    begins_inside: Signal<Local, Bit>,
    permitted: Signal<Local, Bit>,
    fits: Signal<Local, Bit>,
    answers: Signal<Local, Bit>,
    answered: Signal<Local, Bits<8>>,

    /// Bit k: a query was taken k + 1 cycles ago.
    taken_before: Reg<Bits<8>>,
    #[is(Check::new("the_gate_answers_after_its_latency"))]
    in_time: Check,
    #[is(Check::new("no_ticket_is_told_as_the_tables_change"))]
    tickets_are_out: Check,
    #[is(constant(config.regions as u64))]
    region_count: Constant<Bits<16>>,
}

impl Regions {
    /// The control requests that it takes, and those that [`Fence`](super::Fence) and [`Mint`](super::Mint) take in front of it.
    pub const REQUESTS: &[Operation] = &[
        Operation::PairSet,
        Operation::PairClear,
        Operation::RegionSet,
        Operation::RegionClear,
        Operation::GrantSet,
        Operation::GrantClear,
        Operation::PermissionSet,
        Operation::SenderRevoke,
        Operation::Fence,
        Operation::MintSet,
        Operation::GrantMint,
    ];

    /// The table of a card.
    pub fn new(config: &Config) -> Self {
        Self::build(config)
    }
}

#[block(regions = self.region_count.val().index())]
impl Logic for Regions {
    fn update(&mut self) {
        self.cleared.next = self.entries.initialized.val() & self.grants.initialized.val();
        self.initialized.next = self.cleared.val();

        // Changes of the tables: in one cycle the peer is read that it is about, in the next it is made.
        self.operation.next = self.control.data.val().operation;
        self.is_set.next = self.operation.val() == Operation::RegionSet;
        self.is_region.next = self.is_set.val() | (self.operation.val() == Operation::RegionClear);
        self.holds.next = self.fault.valid.val() | self.control.valid.val();
        self.under_way.next = self.taken.q.val().valid
            | self.named.q.val().valid
            | self.looking.q.val().valid
            | self.adding.q.val().valid
            | self.answering.q.val().valid;
        self.changing.d.next =
            self.holds.val() & !self.under_way.val() & self.cleared.val() & !self.changing.q.val();
        self.failing.d.next = self.fault.valid.val();
        self.fault.ready.next = self.changing.q.val() & self.failing.q.val();
        self.changes.next =
            self.changing.q.val() & !self.failing.q.val() & self.control.valid.val();
        self.control.ready.next = self.changes.val();
        self.data.next = self.control.data.val().data;
        self.setup.next = self.data.val().get_bits::<192>(0).into();
        self.grant.next = self.data.val().into();
        self.grants.tick.next = self.tick.val();
        self.written.next = Region::default();
        if self.is_set.val() {
            self.written.next.valid = true;
            self.written.next.tag = self.setup.val().tag;
            self.written.next.domain = self.setup.val().domain;
            self.written.next.rights = self.setup.val().rights;
            self.written.next.base = self.setup.val().base;
            self.written.next.length = self.setup.val().length;
            self.written.next.space = self.setup.val().space;
        }
        store!(
            self.entries.write,
            self.changes.val() & self.is_region.val(),
            self.control.data.val().index,
            self.written.val()
        );
        self.changed.next = self.control.data.val();
        self.grants.subject.next = self.control.data.val().index;
        if self.operation.val() == Operation::GrantSet {
            self.grants.subject.next = self.grant.val().holder;
        }
        if self.fault.valid.val() {
            self.grants.subject.next = self.fault.data.val().pair;
        }
        if self.failing.q.val() {
            self.changed.next.operation = Operation::PairFail.into();
            self.changed.next.index = self.fault.data.val().pair;
        }
        send!(
            self.grants.change,
            self.changes.val() | self.fault.ready.val(),
            self.changed.val()
        );

        // Cycle 0: a query is taken.
        self.posts_asks.next = Access::default();
        self.posts_asks.next.buffer = self.posts_query.data.val();
        join!(self.gather_query => self.turn.input[0]);
        join!(self.delivery_query => self.turn.input[1]);
        send!(
            self.turn.input[2],
            self.posts_query.valid.val(),
            self.posts_asks.val()
        );
        self.posts_query.ready.next = self.turn.input[2].ready.val();
        self.remote_under_way.next = (self.taken.q.val().valid & self.taken.q.val().query.remote)
            | (self.named.q.val().valid & self.named.q.val().query.remote)
            | (self.looking.q.val().valid & self.looking.q.val().query.remote)
            | (self.adding.q.val().valid & self.adding.q.val().query.remote)
            | (self.answering.q.val().valid & self.answering.q.val().query.remote);
        self.accepts.next = self.cleared.val()
            & !self.holds.val()
            & !(self.remote_under_way.val() & self.turn.output.data.val().remote);
        self.turn.output.ready.next = self.accepts.val();
        self.takes.next = self.turn.output.valid.val() & self.accepts.val();
        send!(
            self.grants.query,
            self.takes.val() & self.turn.output.data.val().remote,
            self.turn.output.data.val()
        );
        self.taken.d.next = Asked {
            valid: self.takes.val(),
            client: self.turn.out_index.val(),
            query: self.turn.output.data.val(),
            ..Asked::default()
        };

        // Cycle 1: a peer's grant comes out of its table. The region of a process's key is known.
        self.next_key.next = self.taken.q.val().query.buffer.key;
        self.named.d.next = self.taken.q.val();
        self.named.d.next.region = bit_cast::<16, 12>(self.next_key.val().get_bits::<12>(0));
        self.named.d.next.tag = self.next_key.val().get_bits::<20>(12);

        // Cycle 2: that of a peer's is known too.
        self.looks.next = self.named.q.val();
        if self.named.q.val().query.remote {
            self.looks.next.region = self.grants.region.val();
            self.looks.next.tag = self.grants.region_tag.val();
        }
        self.looking.d.next = self.looks.val();
        self.entries.read_address.next = self.looks.val().region;

        // Cycle 3: the region comes out of the table.
        self.address.next = self.looking.q.val().query.buffer.address;
        self.length.next = self.looking.q.val().query.buffer.length;
        self.adding.d.next = self.looking.q.val();
        // A number beyond the table would alias a region of it.
        self.in_table.next = self.looking.q.val().region < self.region_count.val();
        self.adding.d.next.allowed = self.in_table.val();
        self.region.d.next = self.entries.read_data.val();
        self.added_end.d.next =
            bit_cast::<65, 64>(self.address.val()) + bit_cast::<65, 64>(self.length.val());

        // Cycle 4: all but the end is compared. An offset counts from the first byte of the region, an address from that of memory.
        self.base.next = self.region.q.val().base;
        self.size.next = self.region.q.val().length;
        self.is_remote.next = self.adding.q.val().query.remote;
        self.is_granted.next = !self.is_remote.val() | self.grants.permitted.val();
        self.same_tag.next = self.region.q.val().tag == self.adding.q.val().tag;
        // Of a grant that isn't for any peer the firmware has compared it.
        self.asker.next = self.adding.q.val().query.buffer.domain;
        if self.is_remote.val() {
            self.asker.next = self.grants.domain.val();
        }
        self.same_domain.next = (self.is_remote.val() & !self.grants.any_peer.val())
            | (self.region.q.val().domain == self.asker.val());
        self.has_rights.next = (self.region.q.val().rights
            & self.adding.q.val().query.buffer.rights)
            == self.adding.q.val().query.buffer.rights;
        self.begins_inside.next =
            self.is_remote.val() | (self.adding.q.val().query.buffer.address >= self.base.val());
        self.permitted.next = self.adding.q.val().allowed
            & self.is_granted.val()
            & self.region.q.val().valid
            & self.same_tag.val()
            & self.same_domain.val()
            & self.has_rights.val()
            & self.begins_inside.val();
        self.fits_region.d.next = self.adding.q.val().allowed
            & self.region.q.val().valid
            & self.same_tag.val()
            & self.has_rights.val();
        self.other_domain.d.next = !self.same_domain.val();
        self.answering.d.next = self.adding.q.val();
        self.answering.d.next.allowed = self.permitted.val();
        self.answering_domain.d.next = self.region.q.val().domain;
        self.answering_space.d.next = self.region.q.val().space;
        self.query_end.d.next = self.added_end.q.val();
        self.region_end.d.next =
            bit_cast::<65, 64>(self.base.val()) + bit_cast::<65, 64>(self.size.val());
        self.located.d.next = self.adding.q.val().query.buffer.address;
        if self.is_remote.val() {
            self.region_end.d.next = bit_cast::<65, 64>(self.size.val());
            self.located.d.next = self.base.val() + self.adding.q.val().query.buffer.address;
        }

        // Cycle 5: the ends are compared, and who asked is answered.
        self.ends_outside.next = self.query_end.q.val() > self.region_end.q.val();
        self.fits.next = self.answering.q.val().allowed & !self.ends_outside.val();
        self.grants.spend.next = self.fits.val();
        send!(
            self.spent,
            self.grants.spent.valid.val(),
            self.grants.spent.data.val()
        );
        self.answers.next = self.answering.q.val().valid;
        self.answered.next = self.answering.q.val().client;
        self.answer.next = Permission {
            allowed: self.fits.val(),
            address: self.located.q.val(),
            space: self.answering_space.q.val(),
        };
        send!(
            self.gather_allowed,
            self.answers.val() & (self.answered.val() == client::GATHER),
            self.answer.val()
        );
        send!(
            self.delivery_allowed,
            self.answers.val() & (self.answered.val() == client::DELIVERY),
            self.answer.val()
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

        // In the cycle after it is told why not: the grant says so first, then the region, and its domain last.
        self.tells.d.next =
            self.answers.val() & !self.fits.val() & self.answering.q.val().query.remote;
        self.told.d.next = RemoteRefusal {
            pair: self.answering.q.val().query.pair,
            reason: RefusalReason::RegionGone,
            region: self.grants.region_key.val(),
            offset: self.answering.q.val().query.buffer.address,
        };
        if self.fits_region.q.val() & !self.ends_outside.val() & self.other_domain.q.val() {
            self.told.d.next.reason = RefusalReason::WrongPeer.into();
        }
        if self.grants.refuses.val() {
            self.told.d.next.reason = self.grants.reason.val();
        }
        send!(self.peer_refused, self.tells.q.val(), self.told.q.val());

        // What was allowed is known then, too.
        self.first_byte.next = self.located.q.val();
        self.last_byte.next = self.located.q.val() + self.answering.q.val().query.buffer.length - 1;
        self.ticket.d.next = Ticket {
            region: self.answering.q.val().region,
            domain: self.answering_domain.q.val(),
            pair: self.answering.q.val().query.pair,
            tagged: self.answering.q.val().query.tagged,
            context: self.answering.q.val().query.context,
            first_page: self.first_byte.val().get_bits::<52>(12),
            last_page: self.last_byte.val().get_bits::<52>(12),
        };
        self.gathers.d.next = self.gather_allowed.valid.val() & self.fits.val();
        self.delivers.d.next = self.delivery_allowed.valid.val() & self.fits.val();
        send!(
            self.gather_ticket,
            self.gathers.q.val(),
            self.ticket.q.val()
        );
        send!(
            self.delivery_ticket,
            self.delivers.q.val(),
            self.ticket.q.val()
        );
        // A wait begins as the tables change, and is for what has begun before.
        self.tickets_are_out.ok.next =
            !self.changes.val() | !(self.gathers.q.val() | self.delivers.q.val());
        self.taken_before.d.next = self.taken_before.q.val() << 1;
        if self.takes.val() {
            self.taken_before.d.next = (self.taken_before.q.val() << 1) | 1;
        }
        self.in_time.ok.next = self.answers.val() == self.taken_before.q.val().get_bit(STAGES - 1);
    }
}
