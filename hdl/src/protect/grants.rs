//! Decides whether a peer's key allows its access: a put, or the read that a get asks for. It decides this for [`Regions`](super::Regions), which asks about
//! each access of a peer and about none of this host's own processes. The answer is the region that the key's grant names, and whether tag, holder, generation,
//! rights and part of the region agree. Whether the region itself allows the access, and at which address, Regions decides.
//!
//! The tables are the grants, the generations of the peers that hold them, and the permissions of shared keys.
//!
//! ```text
//!   query ─┬─► rows ────┐        ┌─► region (named to Regions)
//!          │            ├─► row ─┤
//!          └─► senders ─┘        └─► compare: tag, holder, generation, rights ─┬─► permitted
//!                       permissions ─► compare: generation, end of the part ──┘
//!     cycle 0     1          2                      3                               4
//! ```
//!
//! A grant and a permission hold the generation that their peer had when they were made. So one increment ends all that a peer has, however
//! many they are: its revocation, or the next connection of its pair. A pair that has failed isn't open, and its peer may use nothing.
//!
//! A grant may end by itself: it holds the unit of time in which it has ended, and what is asked from then on finds none.
//!
//! A grant for any peer holds neither: it is good for whoever comes by a connected pair of the region's domain, which Regions compares.
//!
//! Why a query is refused comes a cycle later, from registers: the first clause of `RefusalReason` that holds.
//!
//! One query is under way at a time, so that a grant for one access is forgotten before the next one is looked at.

use super::mint::minted;
use crate::config::Config;
use crate::prelude::*;
use crate::prim::Table;
use crate::types::{Access, ControlRequest, GrantSetup, PairSetup, PermissionSetup};
use abi::control::{
    GRANT_ANY_PEER, GRANT_ONE_SHOT, GRANT_SHARED, KEY_INDEX_BITS, Operation, RefusalReason,
    shared_grants,
};
use abi::key::REMOTE_KEY_INDEX_BITS;
use abi::times::{GRANT_TICK, SHUT_OUT_TICK};

const _: () = assert!(
    REMOTE_KEY_INDEX_BITS == 16,
    "the kernel slices keys at this bit"
);
const _: () = assert!(
    GRANT_TICK == SHUT_OUT_TICK << 4,
    "the kernel takes units from bit 4 of the ticks on"
);

/// A grant.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Grant {
    valid: Bit,
    /// Of the holder, when the grant was made.
    generation: Bits<8>,
    offset: Bits<64>,
    length: Bits<64>,
    tag: Bits<48>,
    region: Bits<16>,
    region_tag: Bits<20>,
    holder: Bits<16>,
    rights: Bits<8>,
    shared: Bit,
    one_shot: Bit,
    /// For whoever asks from the region's domain.
    any_peer: Bit,
    /// It ends by itself, with the unit of time before this one.
    ends: Bit,
    until: Bits<39>,
}

/// The peer of a pair.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Sender {
    /// The pair is connected and hasn't failed.
    open: Bit,
    /// Connections and revocations, modulo 2^8: the firmware has a grant of an earlier generation cleared before the place gets the next but 254.
    generation: Bits<8>,
    /// Of the pair's endpoint.
    domain: Bits<8>,
}

/// Whether the peer of a pair may use a shared key.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Held {
    valid: Bit,
    /// Of the peer, when it was permitted.
    generation: Bits<8>,
}

/// The tables, which answer one query after the other.
#[block(config: &Config)]
pub struct Grants {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset.
    pub reset: Signal<In, Bit>,
    /// The tables are cleared.
    pub initialized: Signal<Out, Bit>,
    /// Cycle 0: an access of a peer. The next one may come after cycle 5.
    pub query: Pulse<In, Access>,
    /// Cycle 2: region that the grant names.
    pub region: Signal<Out, Bits<16>>,
    /// Cycle 2: and the tag that it has to have.
    pub region_tag: Signal<Out, Bits<20>>,
    /// Cycle 4: the grant allows the access.
    pub permitted: Signal<Out, Bit>,
    /// Cycle 4: it does so for any peer of the region's domain.
    pub any_peer: Signal<Out, Bit>,
    /// Cycle 4: the domain of the pair.
    pub domain: Signal<Out, Bits<8>>,
    /// Cycle 5: the grant refuses it, for this reason.
    pub refuses: Signal<Out, Bit>,
    /// `abi::control::RefusalReason`.
    pub reason: Signal<Out, Bits<8>>,
    /// Key of the region that the grant names; 0 if there is no grant.
    pub region_key: Signal<Out, Bits<32>>,
    /// Cycle 5: the region allows it too. A grant for one access has ended.
    pub spend: Signal<In, Bit>,
    /// Then: its row.
    pub spent: Pulse<Out, Bits<16>>,
    /// In the cycle before a change: the pair whose peer it is about.
    pub subject: Signal<In, Bits<16>>,
    /// A change of the tables. No query is under way.
    pub change: Pulse<In, ControlRequest>,
    /// Pulse: `SHUT_OUT_TICK` cycles more have passed.
    pub tick: Signal<In, Bit>,

    #[is(Table::new(rows(config)))]
    rows: Table<Grant>,
    #[is(Table::new(config.pairs))]
    senders: Table<Sender>,
    #[is(Table::new(permissions(config)))]
    permissions: Table<Held>,
    /// The cycle that the query under way is in: bit 0 is cycle 1.
    cycle: Reg<Bits<5>>,
    asked: Reg<Access>,
    /// Ticks since the reset. It stops at the last number, after 2^53 cycles: then grants that are for a time have ended, and none lives again.
    ticks: Reg<Bits<43>>,
    /// Unit of time in which the query came.
    asked_in: Reg<Bits<39>>,
    row: Reg<Grant>,
    sender: Reg<Sender>,
    /// Nothing but the end, and the permission, speaks against it.
    agrees: Reg<Bit>,
    access_end: Reg<Bits<65>>,
    part_end: Reg<Bits<65>>,
    allows: Reg<Bit>,
    // What speaks against it, of `row` and `sender`: from cycle 3 on, until the next query.
    no_grant: Reg<Bit>,
    other_tag: Reg<Bit>,
    closed: Reg<Bit>,
    other_holder: Reg<Bit>,
    outdated: Reg<Bit>,
    lacks_rights: Reg<Bit>,
    begins_outside: Reg<Bit>,
    // And from cycle 4 on.
    not_permitted: Reg<Bit>,
    permission_outdated: Reg<Bit>,
    ends_outside: Reg<Bit>,
    /// What is told of it in cycle 5.
    why: Reg<Bits<8>>,
    is_refused: Reg<Bit>,

    key: Signal<Local, Bits<64>>,
    number: Signal<Local, Bits<16>>,
    pair: Signal<Local, Bits<16>>,
    unit: Signal<Local, Bits<39>>,
    is_over: Signal<Local, Bit>,
    is_there: Signal<Local, Bit>,
    in_table: Signal<Local, Bit>,
    row_in_table: Signal<Local, Bit>,
    pair_in_table: Signal<Local, Bit>,
    held_is_current: Signal<Local, Bit>,
    same_tag: Signal<Local, Bit>,
    is_open: Signal<Local, Bit>,
    is_holder: Signal<Local, Bit>,
    is_current: Signal<Local, Bit>,
    has_rights: Signal<Local, Bit>,
    begins_inside: Signal<Local, Bit>,
    is_held: Signal<Local, Bit>,
    held: Signal<Local, Held>,
    ends_inside: Signal<Local, Bit>,
    ends: Signal<Local, Bit>,
    operation: Signal<Local, Bits<8>>,
    setup: Signal<Local, GrantSetup>,
    pair_setup: Signal<Local, PairSetup>,
    permission: Signal<Local, PermissionSetup>,
    data: Signal<Local, Bits<320>>,
    named: Signal<Local, Sender>,
    changed: Signal<Local, Sender>,
    connects: Signal<Local, Bit>,
    revokes: Signal<Local, Bit>,
    fails: Signal<Local, Bit>,
    leaves: Signal<Local, Bit>,
    changes_sender: Signal<Local, Bit>,
    grants_now: Signal<Local, Bit>,
    clears: Signal<Local, Bit>,
    granted: Signal<Local, Grant>,
    permitted_now: Signal<Local, Held>,
    is_permission: Signal<Local, Bit>,
    has_permission: Signal<Local, Bit>,

    #[is(constant(rows(config) as u64))]
    grant_count: Constant<Bits<17>>,
    #[is(constant(config.pairs as u64))]
    pair_count: Constant<Bits<16>>,
    #[is(constant(shared_grants(config.grants as u32) as u64))]
    shared_count: Constant<Bits<16>>,
    #[is(constant(pair_bits(config)))]
    pair_bits: Constant<Bits<4>>,
}

/// The firmware's grants, and those that [`Mint`](super::Mint) makes behind them.
fn rows(config: &Config) -> usize {
    config.grants + minted(config)
}

/// Bits of a number of a pair in the address of a permission.
fn pair_bits(config: &Config) -> u64 {
    config.pairs.next_power_of_two().ilog2().into()
}

/// Permissions: one for each shared grant and pair.
fn permissions(config: &Config) -> usize {
    (shared_grants(config.grants as u32) as usize) << pair_bits(config)
}

impl Grants {
    /// The tables of a card.
    pub fn new(config: &Config) -> Self {
        Self::build(config)
    }
}

#[block(grants = self.grant_count.val().index(), pairs = self.pair_count.val().index())]
impl Logic for Grants {
    fn update(&mut self) {
        self.initialized.next = self.rows.initialized.val()
            & self.senders.initialized.val()
            & self.permissions.initialized.val();

        // Time.
        if self.tick.val() & !self.ticks.q.val().all() {
            self.ticks.d.next = self.ticks.q.val() + 1;
        }
        self.unit.next = self.ticks.q.val().get_bits::<39>(4);

        // Cycle 0: a query comes.
        self.cycle.d.next = self.cycle.q.val() << 1;
        self.rows.read_address.next = self.query.data.val().remote_key.get_bits::<16>(0);
        self.senders.read_address.next = self.subject.val();
        if self.query.valid.val() {
            self.cycle.d.next = 1.into();
            self.asked.d.next = self.query.data.val();
            self.asked_in.d.next = self.unit.val();
            self.senders.read_address.next = self.query.data.val().pair;
        }

        // Cycle 1: its row and its peer come out of the tables.
        if self.cycle.q.val().get_bit(0) {
            self.row.d.next = self.rows.read_data.val();
            self.sender.d.next = self.senders.read_data.val();
        }

        // Cycle 2: all but the ends is compared, and the permission is looked for.
        self.key.next = self.asked.q.val().remote_key;
        self.number.next = self.key.val().get_bits::<16>(0);
        self.pair.next = self.asked.q.val().pair;
        self.region.next = self.row.q.val().region;
        self.region_tag.next = self.row.q.val().region_tag;
        // A number beyond a table would alias another.
        self.row_in_table.next = bit_cast::<17, 16>(self.number.val()) < self.grant_count.val();
        self.pair_in_table.next = self.pair.val() < self.pair_count.val();
        self.in_table.next = self.row_in_table.val() & self.pair_in_table.val();
        self.is_over.next =
            self.row.q.val().ends & (self.asked_in.q.val() >= self.row.q.val().until);
        self.is_there.next = self.row.q.val().valid & !self.is_over.val();
        self.same_tag.next = self.row.q.val().tag == self.key.val().get_bits::<48>(16);
        self.is_open.next = self.sender.q.val().open;
        self.is_holder.next = self.row.q.val().holder == self.pair.val();
        if self.row.q.val().shared {
            self.is_holder.next = self.row.q.val().holder < self.shared_count.val();
        }
        if self.row.q.val().any_peer {
            self.is_holder.next = true;
        }
        self.is_current.next = self.row.q.val().shared
            | self.row.q.val().any_peer
            | (self.row.q.val().generation == self.sender.q.val().generation);
        self.has_rights.next = (self.row.q.val().rights & self.asked.q.val().buffer.rights)
            == self.asked.q.val().buffer.rights;
        self.begins_inside.next = self.asked.q.val().buffer.address >= self.row.q.val().offset;
        self.agrees.d.next = self.is_there.val()
            & self.in_table.val()
            & self.same_tag.val()
            & self.is_open.val()
            & self.is_holder.val()
            & self.is_current.val()
            & self.has_rights.val()
            & self.begins_inside.val();
        self.access_end.d.next = bit_cast::<65, 64>(self.asked.q.val().buffer.address)
            + bit_cast::<65, 64>(self.asked.q.val().buffer.length);
        self.part_end.d.next = bit_cast::<65, 64>(self.row.q.val().offset)
            + bit_cast::<65, 64>(self.row.q.val().length);
        self.permissions.read_address.next =
            (self.row.q.val().holder << self.pair_bits.val()) | self.pair.val();

        // Cycle 3: the ends are compared, and the permission has come.
        self.held.next = self.permissions.read_data.val();
        self.held_is_current.next = self.held.val().generation == self.sender.q.val().generation;
        self.is_held.next =
            !self.row.q.val().shared | (self.held.val().valid & self.held_is_current.val());
        self.ends_inside.next = self.access_end.q.val() <= self.part_end.q.val();
        self.allows.d.next = self.agrees.q.val() & self.is_held.val() & self.ends_inside.val();

        // Why not, which is told later.
        self.no_grant.d.next = !self.is_there.val() | !self.row_in_table.val();
        self.other_tag.d.next = !self.same_tag.val();
        self.closed.d.next = !self.is_open.val() | !self.pair_in_table.val();
        self.other_holder.d.next = !self.is_holder.val();
        self.outdated.d.next = !self.is_current.val();
        self.lacks_rights.d.next = !self.has_rights.val();
        self.begins_outside.d.next = !self.begins_inside.val();
        self.not_permitted.d.next = self.row.q.val().shared & !self.held.val().valid;
        self.permission_outdated.d.next = self.row.q.val().shared & !self.held_is_current.val();
        self.ends_outside.d.next = !self.ends_inside.val();
        self.is_refused.d.next = true;
        self.why.d.next = RefusalReason::UnknownKey.into();
        if !self.no_grant.q.val() {
            if self.other_tag.q.val() {
                self.why.d.next = RefusalReason::WrongTag.into();
            } else if self.closed.q.val() {
                self.why.d.next = RefusalReason::Revoked.into();
            } else if self.other_holder.q.val() | self.not_permitted.q.val() {
                self.why.d.next = RefusalReason::WrongPeer.into();
            } else if self.outdated.q.val() | self.permission_outdated.q.val() {
                self.why.d.next = RefusalReason::Revoked.into();
            } else if self.lacks_rights.q.val() {
                self.why.d.next = RefusalReason::MissingRight.into();
            } else {
                self.why.d.next = RefusalReason::OutOfBounds.into();
                self.is_refused.d.next = self.begins_outside.q.val() | self.ends_outside.q.val();
            }
        }
        self.refuses.next = self.is_refused.q.val();
        self.reason.next = self.why.q.val();
        self.region_key.next = 0.into();
        if !self.no_grant.q.val() {
            self.region_key.next = (bit_cast::<32, 20>(self.row.q.val().region_tag)
                << KEY_INDEX_BITS)
                | bit_cast::<32, 16>(self.row.q.val().region);
        }

        // Cycle 4.
        self.permitted.next = self.allows.q.val();
        self.any_peer.next = self.row.q.val().any_peer;
        self.domain.next = self.sender.q.val().domain;

        // Cycle 5: a grant for one access ends with it.
        self.ends.next =
            self.cycle.q.val().get_bit(4) & self.spend.val() & self.row.q.val().one_shot;

        // Changes, of which the peer has been read in the cycle before.
        self.operation.next = self.change.data.val().operation;
        self.data.next = self.change.data.val().data;
        self.setup.next = self.data.val().into();
        self.permission.next = self.data.val().get_bits::<64>(0).into();
        self.pair_setup.next = self.data.val().into();
        self.named.next = self.senders.read_data.val();
        self.connects.next = self.operation.val() == Operation::PairSet;
        self.revokes.next = self.operation.val() == Operation::SenderRevoke;
        self.fails.next = self.operation.val() == Operation::PairFail;
        self.leaves.next = self.operation.val() == Operation::PairClear;
        self.changed.next = self.named.val();
        if self.connects.val() | self.revokes.val() {
            self.changed.next.generation = self.named.val().generation + 1;
        }
        if self.connects.val() {
            self.changed.next.open = true;
            self.changed.next.domain = self.pair_setup.val().domain;
        }
        if self.fails.val() | self.leaves.val() {
            self.changed.next.open = false;
        }
        self.changes_sender.next =
            self.connects.val() | self.revokes.val() | self.fails.val() | self.leaves.val();
        store!(
            self.senders.write,
            self.change.valid.val() & self.changes_sender.val(),
            self.change.data.val().index,
            self.changed.val()
        );
        self.grants_now.next = self.operation.val() == Operation::GrantSet;
        self.clears.next = self.operation.val() == Operation::GrantClear;
        self.granted.next = Grant::default();
        if self.grants_now.val() {
            self.granted.next = Grant {
                valid: true,
                generation: self.named.val().generation,
                offset: self.setup.val().offset,
                length: self.setup.val().length,
                tag: self.setup.val().tag,
                region: self.setup.val().region,
                region_tag: self.setup.val().region_tag,
                holder: self.setup.val().holder,
                rights: self.setup.val().rights,
                shared: (self.setup.val().flags & GRANT_SHARED) != 0,
                one_shot: (self.setup.val().flags & GRANT_ONE_SHOT) != 0,
                any_peer: (self.setup.val().flags & GRANT_ANY_PEER) != 0,
                ends: self.setup.val().lasts.any(),
                until: self.unit.val() + bit_cast::<39, 32>(self.setup.val().lasts),
            };
        }
        store!(
            self.rows.write,
            self.change.valid.val() & (self.grants_now.val() | self.clears.val()),
            self.change.data.val().index,
            self.granted.val()
        );
        send!(self.spent, self.ends.val(), self.number.val());
        if self.ends.val() {
            store!(self.rows.write, true, self.number.val(), Grant::default());
        }
        self.is_permission.next = self.operation.val() == Operation::PermissionSet;
        self.has_permission.next = (self.permission.val().shared < self.shared_count.val())
            & (self.change.data.val().index < self.pair_count.val());
        self.permitted_now.next = Held {
            valid: self.permission.val().allowed != 0,
            generation: self.named.val().generation,
        };
        store!(
            self.permissions.write,
            self.change.valid.val() & self.is_permission.val() & self.has_permission.val(),
            (self.permission.val().shared << self.pair_bits.val()) | self.change.data.val().index,
            self.permitted_now.val()
        );
    }
}
