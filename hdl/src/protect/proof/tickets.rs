//! A client's accesses, as they may come and go, and one of them followed.
//!
//! ```text
//!   any inputs ──► none ends that hasn't begun, ─┬─► Tickets ──► busy, found ─┐
//!                  at most 32 are under way      └─► Followed ◄───────────────┘
//! ```

use super::followed::Followed;
use crate::prelude::*;
use crate::protect::tickets::{TICKETS, Tickets};
use crate::types::{FenceSetup, Ticket};

/// The tickets and the access.
#[block]
pub struct TicketsProof {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset.
    pub reset: Signal<In, Bit>,
    /// An access begins, if there is room.
    pub comes: Signal<In, Bit>,
    /// What it is.
    pub ticket: Signal<In, Ticket>,
    /// It is followed.
    pub follow: Signal<In, Bit>,
    /// An access ends, if one is under way.
    pub goes: Signal<In, Bit>,
    /// As of the block.
    pub fence: Signal<In, FenceSetup>,
    /// As of the block.
    pub start: Signal<In, Bit>,
    #[is(Tickets::default().with_state())]
    block: Tickets,
    followed: Followed,
    ends: Signal<Local, Bit>,
    begins: Signal<Local, Bit>,
}

#[block]
impl Logic for TicketsProof {
    fn update(&mut self) {
        self.ends.next = self.goes.val() & (self.followed.level.val() != 0);
        self.begins.next =
            self.comes.val() & ((self.followed.level.val() < TICKETS as u64) | self.ends.val());
        send!(self.block.begins, self.begins.val(), self.ticket.val());
        self.block.ends.next = self.ends.val();
        self.block.fence.next = self.fence.val();
        self.block.start.next = self.start.val();

        send!(self.followed.begins, self.begins.val(), self.ticket.val());
        self.followed.follow.next = self.follow.val();
        self.followed.ends.next = self.ends.val();
        self.followed.fence.next = self.fence.val();
        self.followed.start.next = self.start.val();
        self.followed.busy.next = self.block.busy.val();
        join!(self.block.found => self.followed.found);
        self.followed.state.next = self.block.state[0].val();
    }
}
