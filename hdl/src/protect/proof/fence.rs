//! Changes as they may be asked for and withdrawn, accesses as they may come and go, and one of each client followed.
//!
//! ```text
//!   control ──► Fence ──► inner, taken at any time
//!     ready ◄──   ▲
//!                 └── begins, ends ──► Followed × 2 ──► under way, though it began before the tables changed? ──► Check
//! ```
//!
//! What a change waits for is said here once more, from the table of `fence.rs`.

use super::covers::Covers;
use super::followed::Followed;
use crate::prelude::*;
use crate::protect::fence::{CLIENTS, Fence};
use crate::protect::tickets::{TICKETS, TicketsState};
use crate::types::{AccessReport, ControlRequest, FenceSetup, PermissionSetup};
use abi::control::{COVER_PAIR, COVER_REGION, Operation};

/// The fence and the accesses.
#[block]
pub struct FenceProof {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset.
    pub reset: Signal<In, Bit>,
    /// A change is asked for; if it was in the cycle before, and isn't done, still the same one.
    pub control: Pulse<In, ControlRequest>,
    /// The tables change.
    pub take: Signal<In, Bit>,
    /// An access of client `i` begins, if there is room; it is followed.
    #[each(CLIENTS)]
    pub begins: Vec<Pulse<In, crate::types::Ticket>>,
    /// It is followed.
    #[each(CLIENTS)]
    pub follow: Vec<Signal<In, Bit>>,
    /// An access of client `i` ends, if one is under way.
    #[each(CLIENTS)]
    pub goes: Vec<Signal<In, Bit>>,
    #[is(Fence::default().with_states())]
    block: Fence,
    #[each(CLIENTS)]
    followed: Vec<Followed>,
    #[each(CLIENTS)]
    covers: Vec<Covers>,
    /// A change is asked for since before this cycle, and isn't done.
    asked: Reg<Bit>,
    request: Reg<ControlRequest>,
    /// The tables have changed for it.
    changed: Reg<Bit>,
    /// The access of client `i` began before, and hasn't ended since.
    #[each(CLIENTS)]
    older: Vec<Reg<Bit>>,
    now: Signal<Local, ControlRequest>,
    data: Signal<Local, Bits<320>>,
    permission: Signal<Local, PermissionSetup>,
    waits: Signal<Local, Bit>,
    fence: Signal<Local, FenceSetup>,
    takes: Signal<Local, Bit>,
    done: Signal<Local, Bit>,
    #[each(CLIENTS)]
    is_older: Vec<Signal<Local, Bit>>,
    #[each(CLIENTS)]
    owed: Vec<Signal<Local, Bit>>,
    #[each(CLIENTS)]
    ends: Vec<Signal<Local, Bit>>,
    #[each(CLIENTS)]
    begins_now: Vec<Signal<Local, Bit>>,
    #[each(CLIENTS)]
    state: Vec<Signal<Local, TicketsState>>,
    late: Signal<Local, Bit>,
    outlives: Signal<Local, Bit>,
    waited_for: Signal<Local, Bit>,
    report: Signal<Local, AccessReport>,
    told: Signal<Local, TicketsState>,
    tables_change_first: Check,
    tables_change_once: Check,
    done_when_what_it_covers_has_ended: Check,
    what_is_covered_is_waited_for: Check,
    reports_what_it_waits_for: Check,
    changes_are_asked_for: Check,
}

#[block]
impl Logic for FenceProof {
    fn update(&mut self) {
        // ---------------------------------------------------------------- what is asked
        self.now.next = self.control.data.val();
        if self.asked.q.val() {
            self.now.next = self.request.q.val();
        }
        send!(self.block.control, self.control.valid.val(), self.now.val());
        self.done.next = self.control.valid.val() & self.block.control.ready.val();
        self.asked.d.next = self.control.valid.val() & !self.done.val();
        self.request.d.next = self.now.val();
        self.block.inner.ready.next = self.take.val();
        self.takes.next = self.block.inner.valid.val() & self.take.val();
        self.changed.d.next =
            (self.changed.q.val() | self.takes.val()) & self.control.valid.val() & !self.done.val();

        // What it waits for.
        self.data.next = self.now.val().data;
        self.permission.next = self.data.val().get_bits::<64>(0).into();
        self.waits.next = false;
        self.fence.next = self.data.val().get_bits::<192>(0).into();
        if (self.now.val().operation == Operation::GrantClear)
            | (self.now.val().operation == Operation::Fence)
        {
            self.waits.next = true;
        }
        if (self.now.val().operation == Operation::RegionSet)
            | (self.now.val().operation == Operation::RegionClear)
        {
            self.waits.next = true;
            self.fence.next = FenceSetup::default();
            self.fence.next.covers = COVER_REGION;
            self.fence.next.region = self.now.val().index;
        }
        if (self.now.val().operation == Operation::SenderRevoke)
            | ((self.now.val().operation == Operation::PermissionSet)
                & (self.permission.val().allowed == 0))
        {
            self.waits.next = true;
            self.fence.next = FenceSetup::default();
            self.fence.next.covers = COVER_PAIR;
            self.fence.next.pair = self.now.val().index;
        }

        // ---------------------------------------------------------------- accesses
        self.late.next = false;
        self.waited_for.next = true;
        self.outlives.next = false;
        for i in 0..CLIENTS {
            self.ends[i].next = self.goes[i].val() & (self.followed[i].level.val() != 0);
            self.begins_now[i].next = self.begins[i].valid.val()
                & ((self.followed[i].level.val() < TICKETS as u64) | self.ends[i].val());
            send!(
                self.block.begins[i],
                self.begins_now[i].val(),
                self.begins[i].data.val()
            );
            self.block.ends[i].next = self.ends[i].val();
            self.state[i].next = self.block.states[i].val();
            send!(
                self.followed[i].begins,
                self.begins_now[i].val(),
                self.begins[i].data.val()
            );
            self.followed[i].follow.next = self.follow[i].val();
            self.followed[i].ends.next = self.ends[i].val();
            self.followed[i].fence.next = self.fence.val();
            self.followed[i].start.next = self.takes.val() & self.waits.val();
            self.followed[i].busy.next = self.state[i].val().looks | self.state[i].val().waits;
            send!(
                self.followed[i].found,
                self.state[i].val().tells,
                self.state[i].val().ticket
            );
            self.followed[i].state.next = self.block.states[i].val();

            self.covers[i].fence.next = self.fence.val();
            self.covers[i].ticket.next = self.followed[i].ticket.val();
            self.is_older[i].next =
                (self.older[i].q.val() | self.takes.val()) & self.followed[i].under_way.val();
            self.older[i].d.next = self.is_older[i].val()
                & self.control.valid.val()
                & !self.done.val()
                & !self.followed[i].leaves.val();
            if self.older[i].q.val() {
                self.outlives.next = true;
            }
            self.owed[i].next =
                self.is_older[i].val() & self.waits.val() & self.covers[i].covers.val();
            if self.owed[i].val() {
                self.late.next = true;
                if self.changed.q.val()
                    & self.control.valid.val()
                    & !(self.followed[i].waited_for.val() & self.followed[i].holds.val())
                {
                    self.waited_for.next = false;
                }
            }
        }

        // ---------------------------------------------------------------- claims
        self.changes_are_asked_for.ok.next = (!self.changed.q.val() | self.asked.q.val())
            & !(self.outlives.val() & !self.changed.q.val());
        self.tables_change_first.ok.next =
            !self.done.val() | self.changed.q.val() | self.takes.val();
        self.tables_change_once.ok.next =
            !self.control.valid.val() | (self.block.inner.valid.val() != self.changed.q.val());
        self.done_when_what_it_covers_has_ended.ok.next = !self.done.val() | !self.late.val();
        self.what_is_covered_is_waited_for.ok.next = self.waited_for.val();
        self.report.next = self.block.report.val();
        self.told.next = self.state[0].val();
        if self.report.val().writes != 0 {
            self.told.next = self.state[1].val();
        }
        self.reports_what_it_waits_for.ok.next = (self.report.val().waits == 0)
            | (self.control.valid.val()
                & self.changed.q.val()
                & self.told.val().tells
                & ((self.report.val().tagged == 1) == self.told.val().ticket.tagged)
                & (self.report.val().domain == self.told.val().ticket.domain)
                & (self.report.val().region == self.told.val().ticket.region)
                & (self.report.val().pair == self.told.val().ticket.pair)
                & (self.report.val().context == self.told.val().ticket.context));
    }
}
