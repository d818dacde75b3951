//! What changes or takes away is done when the accesses have ended that it concerns, and no others are waited for.
//!
//! ```text
//!   control ──► Fence ──► inner ──► Regions ──► begins ──► Tickets of Gather
//!           ◄── done ◄── nothing covered ◄────────────┴──► Tickets of Delivery ◄── ends
//!   report  ◄── what is waited for ◄──────────────────────────────┘
//! ```
//!
//! The tables change first: from then on nothing more is allowed by what they held. Then a wait begins for what was allowed before and is under way, by
//! their [`Tickets`]. So a wait ends however much traffic goes on, and nobody stands still for it.
//!
//! | request | waits for accesses |
//! |---|---|
//! | `RegionSet`, `RegionClear` | of that region |
//! | `GrantClear`, `Fence` | that its `FenceSetup` covers |
//! | `PermissionSet` that takes away, `SenderRevoke` | of that pair |
//! | others | none |

use super::tickets::{Tickets, TicketsState};
use crate::prelude::*;
use crate::types::{AccessReport, ControlRequest, FenceSetup, PermissionSetup, Ticket};
use abi::control::{COVER_PAIR, COVER_REGION, Operation};

/// Clients whose accesses are waited for: Gather's, then Delivery's.
pub const CLIENTS: usize = 2;

/// Holds the answer to a change until what it concerns has ended.
#[block]
pub struct Fence {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Nothing is under way.
    pub reset: Signal<In, Bit>,
    /// A change; taken when it is done. It may be withdrawn.
    pub control: Stream<In, ControlRequest>,
    /// An access that the change waits for. All zero if it waits for none, or hasn't found it yet.
    pub report: Signal<Out, AccessReport>,
    /// It goes to the tables; taken when they have changed, and all that was allowed before has begun here.
    pub inner: Stream<Out, ControlRequest>,
    /// An access of client `i` was allowed, and will end.
    #[each(CLIENTS)]
    pub begins: Vec<Pulse<In, Ticket>>,
    /// Pulse: the oldest access of client `i` has ended.
    #[each(CLIENTS)]
    pub ends: Vec<Signal<In, Bit>>,
    /// For a proof: the tickets of client `i`.
    #[is(vec![])]
    pub states: Vec<Signal<Out, TicketsState>>,
    #[each(CLIENTS, Tickets::default())]
    tickets: Vec<Tickets>,
    /// The tables have changed.
    waits: Reg<Bit>,
    operation: Signal<Local, Bits<8>>,
    data: Signal<Local, Bits<320>>,
    named: Signal<Local, FenceSetup>,
    permission: Signal<Local, PermissionSetup>,
    of_region: Signal<Local, Bit>,
    of_pair: Signal<Local, Bit>,
    of_named: Signal<Local, Bit>,
    covered: Signal<Local, FenceSetup>,
    starts: Signal<Local, Bit>,
    withdrawn: Signal<Local, Bit>,
    is_under_way: Signal<Local, Bit>,
    /// The access that is told of writes,
    writes: Signal<Local, Bit>,
    /// and is this one.
    found: Signal<Local, Ticket>,
    done: Signal<Local, Bit>,
    #[is(0)]
    _proved: usize,
}

impl Fence {
    /// The same with the state of its tickets as outputs.
    pub fn with_states(self) -> Self {
        let tickets = self.tickets.into_iter().map(Tickets::with_state);
        Self {
            states: vec![Signal::default(); CLIENTS],
            tickets: tickets.collect(),
            _proved: CLIENTS,
            ..self
        }
    }
}

#[block]
impl Logic for Fence {
    fn update(&mut self) {
        // What is waited for.
        self.operation.next = self.control.data.val().operation;
        self.data.next = self.control.data.val().data;
        self.named.next = self.data.val().get_bits::<192>(0).into();
        self.permission.next = self.data.val().get_bits::<64>(0).into();
        self.of_region.next = (self.operation.val() == Operation::RegionSet)
            | (self.operation.val() == Operation::RegionClear);
        self.of_pair.next = (self.operation.val() == Operation::SenderRevoke)
            | ((self.operation.val() == Operation::PermissionSet)
                & !self.permission.val().allowed.any());
        self.of_named.next = (self.operation.val() == Operation::GrantClear)
            | (self.operation.val() == Operation::Fence);
        self.covered.next = self.named.val();
        if self.of_region.val() {
            self.covered.next.covers = COVER_REGION;
            self.covered.next.region = self.control.data.val().index;
        }
        if self.of_pair.val() {
            self.covered.next.covers = COVER_PAIR;
            self.covered.next.pair = self.control.data.val().index;
        }

        // The tables first.
        send!(
            self.inner,
            self.control.valid.val() & !self.waits.q.val(),
            self.control.data.val()
        );
        self.starts.next = self.inner.valid.val()
            & self.inner.ready.val()
            & (self.of_region.val() | self.of_pair.val() | self.of_named.val());
        self.withdrawn.next = !self.control.valid.val();
        self.is_under_way.next = false;
        for i in 0..CLIENTS {
            join!(self.begins[i] => self.tickets[i].begins);
            self.tickets[i].ends.next = self.ends[i].val();
            self.tickets[i].fence.next = self.covered.val();
            self.tickets[i].start.next = self.starts.val();
            if self.tickets[i].busy.val() {
                self.is_under_way.next = true;
            }
        }

        // One of what is waited for.
        self.writes.next = self.tickets[1].found.valid.val();
        self.found.next = self.tickets[0].found.data.val();
        if self.writes.val() {
            self.found.next = self.tickets[1].found.data.val();
        }
        self.report.next = AccessReport::default();
        if self.control.valid.val()
            & self.waits.q.val()
            & (self.tickets[0].found.valid.val() | self.writes.val())
        {
            self.report.next = AccessReport {
                waits: true.into(),
                writes: self.writes.val().into(),
                tagged: self.found.val().tagged.into(),
                domain: self.found.val().domain,
                region: self.found.val().region,
                pair: self.found.val().pair,
                context: self.found.val().context,
                ..AccessReport::default()
            };
        }
        self.done.next = self.waits.q.val() & !self.is_under_way.val();
        self.control.ready.next = self.control.valid.val()
            & (self.done.val()
                | (self.inner.valid.val() & self.inner.ready.val() & !self.starts.val()));
        if self.starts.val() {
            self.waits.d.next = true;
        }
        if self.done.val() | self.withdrawn.val() {
            self.waits.d.next = false;
        }
        for i in 0..self._proved {
            self.states[i].next = self.tickets[i].state[0].val();
        }
    }
}
