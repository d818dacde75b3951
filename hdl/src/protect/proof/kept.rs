//! What the changes have said of one region, one grant and one pair, and what follows for an access.

use crate::prelude::*;
use crate::types::{
    Access, ControlRequest, Fault, GrantSetup, PairSetup, PermissionSetup, RegionSetup, Ticket,
};
use abi::control::{GRANT_ANY_PEER, GRANT_ONE_SHOT, GRANT_SHARED, Operation};

/// They. The grant that is shared is number 0 of those, the only one of the smallest card.
#[block]
pub struct Kept {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Nothing was said.
    pub reset: Signal<In, Bit>,
    /// Number of the region.
    pub region: Signal<In, Bits<16>>,
    /// Number of the grant.
    pub grant: Signal<In, Bits<16>>,
    /// Number of the pair.
    pub pair: Signal<In, Bits<16>>,
    /// A change has been made.
    pub change: Pulse<In, ControlRequest>,
    /// A pair has failed.
    pub fault: Pulse<In, Fault>,
    /// An access.
    pub query: Signal<In, Access>,
    /// It is allowed in this cycle.
    pub spends: Signal<In, Bit>,
    /// It names what is kept here, and nothing else.
    pub names: Signal<Out, Bit>,
    /// It is permitted.
    pub permitted: Signal<Out, Bit>,
    /// Where it is in memory.
    pub located: Signal<Out, Bits<64>>,
    /// Its ticket.
    pub ticket: Signal<Out, Ticket>,
    registered: Reg<Bit>,
    memory: Reg<RegionSetup>,
    granted: Reg<Bit>,
    terms: Reg<GrantSetup>,
    connected: Reg<Bit>,
    domain: Reg<Bits<8>>,
    allowed: Reg<Bit>,
    operation: Signal<Local, Bits<8>>,
    data: Signal<Local, Bits<320>>,
    setup: Signal<Local, RegionSetup>,
    grant_setup: Signal<Local, GrantSetup>,
    pair_setup: Signal<Local, PairSetup>,
    permission: Signal<Local, PermissionSetup>,
    of_region: Signal<Local, Bit>,
    of_grant: Signal<Local, Bit>,
    of_pair: Signal<Local, Bit>,
    shared: Signal<Local, Bit>,
    any_peer: Signal<Local, Bit>,
    key: Signal<Local, Bits<32>>,
    remote_key: Signal<Local, Bits<64>>,
    names_region: Signal<Local, Bit>,
    names_grant: Signal<Local, Bit>,
    of_memory: Signal<Local, Bit>,
    of_terms: Signal<Local, Bit>,
    address: Signal<Local, Bits<65>>,
    length: Signal<Local, Bits<65>>,
    first: Signal<Local, Bits<65>>,
    last_byte: Signal<Local, Bits<64>>,
    first_byte: Signal<Local, Bits<64>>,
}

#[block]
impl Logic for Kept {
    fn update(&mut self) {
        // ---------------------------------------------------------------- what is said
        self.operation.next = self.change.data.val().operation;
        self.data.next = self.change.data.val().data;
        self.setup.next = self.data.val().get_bits::<192>(0).into();
        self.grant_setup.next = self.data.val().into();
        self.pair_setup.next = self.data.val().into();
        self.permission.next = self.data.val().get_bits::<64>(0).into();
        self.of_region.next =
            self.change.valid.val() & (self.change.data.val().index == self.region.val());
        self.of_grant.next =
            self.change.valid.val() & (self.change.data.val().index == self.grant.val());
        self.of_pair.next =
            self.change.valid.val() & (self.change.data.val().index == self.pair.val());
        self.shared.next = (self.terms.q.val().flags & GRANT_SHARED) != 0;
        self.any_peer.next = (self.terms.q.val().flags & GRANT_ANY_PEER) != 0;
        if self.of_region.val() & (self.operation.val() == Operation::RegionSet) {
            self.registered.d.next = true;
            self.memory.d.next = self.setup.val();
        }
        if self.of_region.val() & (self.operation.val() == Operation::RegionClear) {
            self.registered.d.next = false;
        }
        if self.of_pair.val() & (self.operation.val() == Operation::PairSet) {
            self.connected.d.next = true;
            self.domain.d.next = self.pair_setup.val().domain;
            self.allowed.d.next = false;
        }
        if self.of_pair.val() & (self.operation.val() == Operation::SenderRevoke) {
            self.allowed.d.next = false;
        }
        if self.of_pair.val() & (self.operation.val() == Operation::PairClear) {
            self.connected.d.next = false;
        }
        if self.fault.valid.val() & (self.fault.data.val().pair == self.pair.val()) {
            self.connected.d.next = false;
        }
        if self.of_pair.val()
            & (self.operation.val() == Operation::PermissionSet)
            & (self.permission.val().shared == 0)
        {
            self.allowed.d.next = self.permission.val().allowed != 0;
        }
        // A grant of one peer ends when that is revoked or connected anew.
        if self.change.valid.val()
            & ((self.operation.val() == Operation::SenderRevoke)
                | (self.operation.val() == Operation::PairSet))
            & (self.change.data.val().index == self.terms.q.val().holder)
            & !self.shared.val()
            & !self.any_peer.val()
        {
            self.granted.d.next = false;
        }
        if self.of_grant.val() & (self.operation.val() == Operation::GrantSet) {
            self.granted.d.next = true;
            self.terms.d.next = self.grant_setup.val();
        }
        if self.of_grant.val() & (self.operation.val() == Operation::GrantClear) {
            self.granted.d.next = false;
        }

        // ---------------------------------------------------------------- what follows
        self.key.next = self.query.val().buffer.key;
        self.remote_key.next = self.query.val().remote_key;
        self.address.next = bit_cast::<65, 64>(self.query.val().buffer.address);
        self.length.next = bit_cast::<65, 64>(self.query.val().buffer.length);
        self.names_grant.next = (self.remote_key.val().get_bits::<16>(0) == self.grant.val())
            & (self.query.val().pair == self.pair.val());
        self.names_region.next =
            bit_cast::<16, 12>(self.key.val().get_bits::<12>(0)) == self.region.val();
        // An offset of a peer counts from the first byte.
        self.first.next = bit_cast::<65, 64>(self.memory.q.val().base);
        self.first_byte.next = self.query.val().buffer.address;
        if self.query.val().remote {
            self.first.next = 0.into();
            self.first_byte.next = self.memory.q.val().base + self.query.val().buffer.address;
        }
        self.of_memory.next = self.registered.q.val()
            & ((self.query.val().buffer.rights & !self.memory.q.val().rights) == 0)
            & (self.first.val() <= self.address.val())
            & (self.address.val() + self.length.val()
                <= self.first.val() + bit_cast::<65, 64>(self.memory.q.val().length));
        self.of_terms.next = self.granted.q.val()
            & self.connected.q.val()
            & (self.remote_key.val().get_bits::<48>(16) == self.terms.q.val().tag)
            & ((self.query.val().buffer.rights & !self.terms.q.val().rights) == 0)
            & (bit_cast::<65, 64>(self.terms.q.val().offset) <= self.address.val())
            & (self.address.val() + self.length.val()
                <= bit_cast::<65, 64>(self.terms.q.val().offset)
                    + bit_cast::<65, 64>(self.terms.q.val().length))
            & (self.memory.q.val().tag == self.terms.q.val().region_tag);
        self.names.next = self.names_region.val();
        self.permitted.next = self.of_memory.val()
            & (self.memory.q.val().tag == self.key.val().get_bits::<20>(12))
            & (self.memory.q.val().domain == self.query.val().buffer.domain);
        if self.query.val().remote {
            // If there is no grant, no region is named.
            self.names.next = self.names_grant.val()
                & (!self.granted.q.val() | (self.terms.q.val().region == self.region.val()));
            self.permitted.next = self.of_memory.val() & self.of_terms.val();
            if self.shared.val() {
                if !self.allowed.q.val() | (self.terms.q.val().holder != 0) {
                    self.permitted.next = false;
                }
            } else if self.any_peer.val() {
                if self.memory.q.val().domain != self.domain.q.val() {
                    self.permitted.next = false;
                }
            } else if self.terms.q.val().holder != self.pair.val() {
                self.permitted.next = false;
            }
        }
        if self.spends.val()
            & self.query.val().remote
            & (self.remote_key.val().get_bits::<16>(0) == self.grant.val())
            & ((self.terms.q.val().flags & GRANT_ONE_SHOT) != 0)
        {
            self.granted.d.next = false;
        }
        self.located.next = self.first_byte.val();
        self.last_byte.next = self.first_byte.val() + self.query.val().buffer.length - 1;
        self.ticket.next = Ticket {
            region: self.region.val(),
            domain: self.memory.q.val().domain,
            pair: self.query.val().pair,
            tagged: self.query.val().tagged,
            context: self.query.val().context,
            first_page: self.first_byte.val().get_bits::<52>(12),
            last_page: self.last_byte.val().get_bits::<52>(12),
        };
    }
}
