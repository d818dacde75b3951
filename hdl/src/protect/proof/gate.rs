//! The Gate: `Regions` with `Grants`, as they may be asked and changed, beside what was said of one region, one grant and one pair.
//!
//! ```text
//!   control, fault ─┬─► Regions ─────────────────► allowed, ticket ─┐
//!                   └─► Kept: one of each ─► permitted ─────────────┴─► Check: equal
//!   queries ─────────────► on their way ────────►
//! ```
//!
//! The solver chooses the region, the grant and the pair, so what is claimed of queries that name these is claimed of all. A permission is said here
//! as people say it: a grant dies with its holder's revocation or next connection. That the gates count generations for it shows nowhere.

use super::kept::Kept;
use crate::config::{Config, TINY};
use crate::prelude::*;
use crate::protect::regions::{LATENCY, Regions};
use crate::types::{Access, ControlRequest, Fault, Ticket};
use abi::control::{GRANT_ANY_PEER, GRANT_SHARED, Operation};

/// The card that is proved. A sixteenth of the grants may be shared: one.
pub const SMALLEST: Config = Config {
    name: "smallest_gate",
    pairs: 2,
    regions: 2,
    grants: 16,
    ..TINY
};

const _: () = assert!(LATENCY == 5, "the kernel reads the last of so many stages");
const _: () = assert!(
    GRANT_SHARED == 1 && GRANT_ANY_PEER == 4,
    "the kernel clears this bit of the flags, which are from bit 248 on"
);

/// Cycles from a query to its answer.
const STAGES: usize = LATENCY as usize;

/// Bits that are free: all others of these ports are zero. What is compared or added is so for each bit in the same way; addresses and lengths have
/// their lowest and highest bits, so that they meet at a boundary, and sums wrap.
pub fn narrow_ports() -> Vec<String> {
    let free = |port: &'static str, width: usize, free: Vec<usize>| {
        let held = (0..width).filter(move |bit| !free.contains(bit));
        held.map(move |bit| format!("{port}[{bit}]=0"))
    };
    let number = |at: usize| vec![at, at + 1, at + 62, at + 63];
    // Of `RegionSetup`, `GrantSetup`, `PermissionSetup` and `PairSetup`, which lie over each other.
    let data = [
        number(0),
        number(64),
        vec![16, 128, 136, 160, 168, 169, 176, 177, 192],
        vec![224, 225, 240, 241, 248, 249, 250],
    ];
    // Of `Access`.
    let query = [
        vec![0, 8, 9, 20, 40, 41],
        number(48),
        number(112),
        vec![176, 177, 178, 193, 197, 209, 257, 258],
    ];
    free("data", 320, data.concat())
        .chain(free("query", 274, query.concat()))
        .chain(free("index", 16, vec![0, 1, 4]))
        .chain(free("failed", 16, vec![0]))
        .chain(free("region", 16, vec![0]))
        .chain(free("grant", 16, vec![0]))
        .chain(free("pair", 16, vec![0]))
        .chain(["tick=0".to_string()])
        .collect()
}

/// The Gate and what was said.
#[block]
pub struct GateProof {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset.
    pub reset: Signal<In, Bit>,
    /// The region, the grant and the pair that are followed: those of the first cycles.
    pub region: Signal<In, Bits<16>>,
    /// The grant.
    pub grant: Signal<In, Bits<16>>,
    /// The pair.
    pub pair: Signal<In, Bits<16>>,
    /// A change is asked for; if it was in the cycle before, and isn't made, still the same one.
    pub change: Signal<In, Bit>,
    /// Which: a number of `Regions::REQUESTS`.
    pub operation: Signal<In, Bits<4>>,
    /// What it names.
    pub index: Signal<In, Bits<16>>,
    /// Its data.
    pub data: Signal<In, Bits<320>>,
    /// A pair has failed, until it is taken.
    pub fails: Signal<In, Bit>,
    /// Which.
    pub failed: Signal<In, Bits<16>>,
    /// Time goes on.
    pub tick: Signal<In, Bit>,
    /// Who asks: Gather, Delivery, Posts.
    pub asks: Signal<In, Bits<3>>,
    /// What.
    pub query: Signal<In, Access>,
    #[is(Regions::new(&SMALLEST))]
    block: Regions,
    kept: Kept,
    kept_region: Reg<Bits<16>>,
    kept_grant: Reg<Bits<16>>,
    kept_pair: Reg<Bits<16>>,
    asked: Reg<Bit>,
    request: Reg<ControlRequest>,
    failing: Reg<Bit>,
    fault: Reg<Fault>,
    /// Queries on their way, by the cycles since they were taken: whose, one bit set, and what.
    #[each(STAGES)]
    client: Vec<Reg<Bits<3>>>,
    #[each(STAGES)]
    way: Vec<Reg<Access>>,
    /// Who was allowed in the cycle before, and what, if it names what is followed.
    told: Reg<Bits<2>>,
    names: Reg<Bit>,
    ticket: Reg<Ticket>,
    now: Signal<Local, ControlRequest>,
    fault_now: Signal<Local, Fault>,
    fails_now: Signal<Local, Bit>,
    answered: Signal<Local, Bits<3>>,
    yes: Signal<Local, Bits<3>>,
    taken: Signal<Local, Bits<3>>,
    located: Signal<Local, Bits<64>>,
    answers_in_time: Check,
    only_what_is_permitted_is_allowed: Check,
    what_is_permitted_is_allowed: Check,
    allowed_where_it_is: Check,
    tickets_of_the_allowed: Check,
    ticket_is_of_the_access: Check,
    #[is(STAGES)]
    _stages: usize,
}

#[block]
impl Logic for GateProof {
    fn update(&mut self) {
        if !self.block.initialized.val() {
            self.kept_region.d.next = self.region.val();
            self.kept_grant.d.next = self.grant.val();
            self.kept_pair.d.next = self.pair.val();
        }
        self.kept.region.next = self.kept_region.q.val();
        self.kept.grant.next = self.kept_grant.q.val();
        self.kept.pair.next = self.kept_pair.q.val();

        // ---------------------------------------------------------------- changes
        self.now.next = ControlRequest::default();
        self.now.next.index = self.index.val();
        // No grant is shared and for any peer.
        self.now.next.data = self.data.val();
        if self.data.val().get_bit(248) {
            self.now.next.data = self.data.val().replace_bit(250, false);
        }
        self.now.next.operation = Operation::Fence.into();
        match self.operation.val().index() {
            0 => {
                self.now.next.operation = Operation::PairSet.into();
            }
            1 => {
                self.now.next.operation = Operation::PairClear.into();
            }
            2 => {
                self.now.next.operation = Operation::RegionSet.into();
            }
            3 => {
                self.now.next.operation = Operation::RegionClear.into();
            }
            4 => {
                self.now.next.operation = Operation::GrantSet.into();
            }
            5 => {
                self.now.next.operation = Operation::GrantClear.into();
            }
            6 => {
                self.now.next.operation = Operation::PermissionSet.into();
            }
            7 => {
                self.now.next.operation = Operation::SenderRevoke.into();
            }
            _ => {
                self.now.next.operation = Operation::Fence.into();
            }
        }
        if self.asked.q.val() {
            self.now.next = self.request.q.val();
        }
        send!(self.block.control, self.change.val(), self.now.val());
        self.asked.d.next = self.change.val() & !self.block.control.ready.val();
        self.request.d.next = self.now.val();
        self.fails_now.next = self.fails.val() | self.failing.q.val();
        self.fault_now.next = Fault::default();
        self.fault_now.next.pair = self.failed.val();
        if self.failing.q.val() {
            self.fault_now.next = self.fault.q.val();
        }
        send!(self.block.fault, self.fails_now.val(), self.fault_now.val());
        self.failing.d.next = self.fails_now.val() & !self.block.fault.ready.val();
        self.fault.d.next = self.fault_now.val();
        self.block.tick.next = self.tick.val();
        send!(
            self.kept.change,
            self.change.val() & self.block.control.ready.val(),
            self.now.val()
        );
        send!(
            self.kept.fault,
            self.fails_now.val() & self.block.fault.ready.val(),
            self.fault_now.val()
        );

        // ---------------------------------------------------------------- queries
        send!(
            self.block.gather_query,
            self.asks.val().get_bit(0),
            self.query.val()
        );
        send!(
            self.block.delivery_query,
            self.asks.val().get_bit(1),
            self.query.val()
        );
        send!(
            self.block.posts_query,
            self.asks.val().get_bit(2),
            self.query.val().buffer
        );
        self.taken.next = 0.into();
        self.way[0].d.next = self.query.val();
        if self.asks.val().get_bit(0) & self.block.gather_query.ready.val() {
            self.taken.next = self.taken.val().replace_bit(0, true);
        }
        if self.asks.val().get_bit(1) & self.block.delivery_query.ready.val() {
            self.taken.next = self.taken.val().replace_bit(1, true);
        }
        if self.asks.val().get_bit(2) & self.block.posts_query.ready.val() {
            self.taken.next = self.taken.val().replace_bit(2, true);
            self.way[0].d.next = Access::default();
            self.way[0].d.next.buffer = self.query.val().buffer;
        }
        self.client[0].d.next = self.taken.val();
        for i in 1..self._stages {
            self.client[i].d.next = self.client[i - 1].q.val();
            self.way[i].d.next = self.way[i - 1].q.val();
        }
        self.kept.query.next = self.way[4].q.val();

        // ---------------------------------------------------------------- answers
        self.answered.next = 0.into();
        self.yes.next = 0.into();
        self.located.next = self.block.gather_allowed.data.val().address;
        if self.block.gather_allowed.valid.val() {
            self.answered.next = self.answered.val().replace_bit(0, true);
            if self.block.gather_allowed.data.val().allowed {
                self.yes.next = self.yes.val().replace_bit(0, true);
            }
        }
        if self.block.delivery_allowed.valid.val() {
            self.located.next = self.block.delivery_allowed.data.val().address;
            self.answered.next = self.answered.val().replace_bit(1, true);
            if self.block.delivery_allowed.data.val().allowed {
                self.yes.next = self.yes.val().replace_bit(1, true);
            }
        }
        if self.block.posts_allowed.valid.val() {
            self.answered.next = self.answered.val().replace_bit(2, true);
            if self.block.posts_allowed.data.val() {
                self.yes.next = self.yes.val().replace_bit(2, true);
            }
        }
        self.kept.spends.next = self.yes.val().any();
        self.answers_in_time.ok.next = self.answered.val() == self.client[4].q.val();
        self.only_what_is_permitted_is_allowed.ok.next =
            !self.yes.val().any() | !self.kept.names.val() | self.kept.permitted.val();
        self.what_is_permitted_is_allowed.ok.next = !self.answered.val().any()
            | !self.kept.names.val()
            | !self.kept.permitted.val()
            | self.yes.val().any();
        self.allowed_where_it_is.ok.next = !self.kept.names.val()
            | !self.yes.val().get_bits::<2>(0).any()
            | (self.located.val() == self.kept.located.val());

        // Their tickets, in the next cycle.
        self.told.d.next = self.yes.val().get_bits::<2>(0);
        self.names.d.next = self.kept.names.val();
        self.ticket.d.next = self.kept.ticket.val();
        self.tickets_of_the_allowed.ok.next = (self.block.gather_ticket.valid.val()
            == self.told.q.val().get_bit(0))
            & (self.block.delivery_ticket.valid.val() == self.told.q.val().get_bit(1));
        self.ticket_is_of_the_access.ok.next = !self.names.q.val()
            | ((!self.told.q.val().get_bit(0)
                | (self.block.gather_ticket.data.val() == self.ticket.q.val()))
                & (!self.told.q.val().get_bit(1)
                    | (self.block.delivery_ticket.data.val() == self.ticket.q.val())));
    }
}
