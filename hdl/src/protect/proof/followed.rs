//! One access of a client, any one, from its beginning to its end, and what a wait has to do with it.
//!
//! ```text
//!   begins, follow ──► number, mine ──► there ──┐
//!   ends ────────────► ended ───────────────────┤
//!   start, fence ────► limit, held, awaited ────┴──► Check: busy, found, state
//! ```
//!
//! It counts by itself: accesses have the numbers 0, 1, … modulo 64 in the order in which they begin, and `begun` and `ended` are those of the next to begin
//! and to end. The solver chooses which access is followed, so what is claimed of that one is claimed of all.
//!
//! A wait is for a fence that stays the same. If the fence changes under it, nothing more is claimed of what it covers.

use super::covers::Covers;
use crate::prelude::*;
use crate::protect::tickets::{TICKETS, TicketsState};
use crate::types::{FenceSetup, Ticket};

/// Cycles after which a wait that is still under way has found what it is for: one for each ticket, one to see that it was the last, and one to end.
const WALK: u64 = TICKETS as u64 + 2;
/// `since` stops here.
const LONG: u64 = 63;

/// The access.
#[block]
pub struct Followed {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Nothing is under way.
    pub reset: Signal<In, Bit>,
    /// The access that begins in this cycle is followed, unless another is.
    pub follow: Signal<In, Bit>,
    /// As of `Tickets`.
    pub begins: Pulse<In, Ticket>,
    /// As of `Tickets`.
    pub ends: Signal<In, Bit>,
    /// As of `Tickets`.
    pub fence: Signal<In, FenceSetup>,
    /// As of `Tickets`.
    pub start: Signal<In, Bit>,
    /// As of `Tickets`.
    pub busy: Signal<In, Bit>,
    /// As of `Tickets`.
    pub found: Pulse<In, Ticket>,
    /// As of `Tickets`.
    pub state: Signal<In, TicketsState>,
    /// The followed access is under way.
    pub under_way: Signal<Out, Bit>,
    /// It ends in this cycle.
    pub leaves: Signal<Out, Bit>,
    /// What it is.
    pub ticket: Signal<Out, Ticket>,
    /// The wait is for it: it had begun before, it is covered, and the fence has stayed the same.
    pub waited_for: Signal<Out, Bit>,
    /// The fence is in this cycle what it has been since the wait began.
    pub holds: Signal<Out, Bit>,
    /// Accesses under way.
    pub level: Signal<Out, Bits<6>>,
    begun: Reg<Bits<6>>,
    ended: Reg<Bits<6>>,
    there: Reg<Bit>,
    number: Reg<Bits<6>>,
    mine: Reg<Ticket>,
    /// What was written last to its place of the ring.
    kept: Reg<Ticket>,
    /// Number of the first access that the wait isn't for.
    limit: Reg<Bits<6>>,
    /// The followed access had begun before the wait, and hadn't ended.
    before: Reg<Bit>,
    /// Cycles since the wait began; 0 if none has.
    since: Reg<Bits<6>>,
    /// The fence of the wait.
    held: Reg<FenceSetup>,
    /// It is still the same.
    same: Reg<Bit>,
    of_mine: Covers,
    goes: Signal<Local, Bit>,
    still: Signal<Local, Bit>,
    covered: Signal<Local, Bit>,
    count: Signal<Local, Bits<6>>,
    /// By how many an access is younger than the oldest: the followed one, the one that the wait is at, and the first that it isn't for.
    mine_from_oldest: Signal<Local, Bits<6>>,
    at_from_oldest: Signal<Local, Bits<6>>,
    limit_from_oldest: Signal<Local, Bits<6>>,
    at_is_under_way: Signal<Local, Bit>,
    at_has_ended: Signal<Local, Bit>,
    at_mine: Signal<Local, Bit>,
    memory_agrees: Check,
    covered_access_is_waited_for: Check,
    no_other_is_waited_for: Check,
    wait_is_short: Check,
    told_is_under_way: Check,
    told_as_it_began: Check,
    numbers_agree: Check,
    ring_keeps_it: Check,
    walk_is_in_time: Check,
    walk_is_in_front: Check,
    tells_while_it_waits: Check,
}

#[block]
impl Logic for Followed {
    fn update(&mut self) {
        // ---------------------------------------------------------------- accesses
        if self.begins.valid.val() {
            self.begun.d.next = self.begun.q.val() + 1;
        }
        if self.ends.val() {
            self.ended.d.next = self.ended.q.val() + 1;
        }
        self.goes.next =
            self.there.q.val() & self.ends.val() & (self.ended.q.val() == self.number.q.val());
        self.leaves.next = self.goes.val();
        if self.goes.val() {
            self.there.d.next = false;
        }
        if self.begins.valid.val() & self.follow.val() & !self.there.q.val() {
            self.there.d.next = true;
            self.number.d.next = self.begun.q.val();
            self.mine.d.next = self.begins.data.val();
            self.kept.d.next = self.begins.data.val();
            self.before.d.next = false;
        }
        if self.there.q.val()
            & self.begins.valid.val()
            & (((self.begun.q.val() ^ self.number.q.val()) & 31) == 0)
        {
            self.kept.d.next = self.begins.data.val();
        }
        self.count.next = self.begun.q.val() - self.ended.q.val();
        self.level.next = self.count.val();
        self.under_way.next = self.there.q.val();
        self.ticket.next = self.mine.q.val();

        // ---------------------------------------------------------------- the wait
        if (self.since.q.val() != 0) & (self.since.q.val() != LONG) {
            self.since.d.next = self.since.q.val() + 1;
        }
        self.still.next = self.same.q.val() & (self.fence.val() == self.held.q.val());
        self.holds.next = self.still.val();
        self.same.d.next = self.still.val();
        if self.start.val() {
            self.since.d.next = 1.into();
            self.limit.d.next = self.begun.q.val();
            self.before.d.next = self.there.q.val();
            self.held.d.next = self.fence.val();
            self.same.d.next = true;
        }
        self.of_mine.fence.next = self.held.q.val();
        self.of_mine.ticket.next = self.mine.q.val();
        self.covered.next = self.of_mine.covers.val();
        self.waited_for.next =
            self.there.q.val() & self.before.q.val() & self.same.q.val() & self.covered.val();

        // ---------------------------------------------------------------- claims
        self.mine_from_oldest.next = self.number.q.val() - self.ended.q.val();
        self.at_from_oldest.next = self.state.val().at - self.ended.q.val();
        self.limit_from_oldest.next = self.limit.q.val() - self.ended.q.val();
        self.at_is_under_way.next = (self.at_from_oldest.val() < self.limit_from_oldest.val())
            & (self.limit_from_oldest.val() <= self.count.val());
        self.at_has_ended.next = self.at_from_oldest.val() == 63;
        self.at_mine.next = self.there.q.val() & (self.state.val().at == self.number.q.val());
        self.covered_access_is_waited_for.ok.next = !self.waited_for.val() | self.busy.val();
        self.no_other_is_waited_for.ok.next = !self.state.val().waits
            | ((self.at_is_under_way.val() | self.at_has_ended.val())
                & (!self.at_mine.val()
                    | (self.before.q.val() & (!self.same.q.val() | self.covered.val()))));
        self.wait_is_short.ok.next =
            !self.busy.val() | self.state.val().waits | (self.since.q.val() < WALK);
        self.told_is_under_way.ok.next =
            !self.found.valid.val() | (self.busy.val() & self.at_is_under_way.val());
        self.told_as_it_began.ok.next = !self.found.valid.val()
            | !self.at_mine.val()
            | (self.found.data.val() == self.mine.q.val());

        // ---------------------------------------------------------------- the ring
        self.memory_agrees.ok.next = !(self.state.val().looks | self.state.val().shows)
            | !self.at_mine.val()
            | (self.state.val().ticket == self.kept.q.val());

        // ---------------------------------------------------------------- which states there are
        self.numbers_agree.ok.next = (self.state.val().next_number == self.begun.q.val())
            & (self.state.val().oldest_number == self.ended.q.val())
            & (self.count.val() <= TICKETS as u64)
            & (!self.there.q.val() | (self.mine_from_oldest.val() < self.count.val()));
        self.ring_keeps_it.ok.next = !self.there.q.val() | (self.kept.q.val() == self.mine.q.val());
        self.walk_is_in_time.ok.next = !self.state.val().looks
            | ((self.state.val().at == self.limit.q.val() - self.since.q.val())
                & (self.since.q.val() != 0)
                & (self.since.q.val() < WALK)
                & (self.limit_from_oldest.val() <= self.count.val())
                & (self.at_is_under_way.val()
                    | self.at_has_ended.val()
                    | (self.at_from_oldest.val() == 62)));
        self.walk_is_in_front.ok.next = (!self.waited_for.val()
            | ((self.mine_from_oldest.val() <= self.at_from_oldest.val())
                & self.at_is_under_way.val()))
            & (!self.there.q.val()
                | !(self.state.val().looks
                    | (self.state.val().waits & self.at_is_under_way.val()))
                | (self.before.q.val()
                    == (self.mine_from_oldest.val() < self.limit_from_oldest.val())));
        self.tells_while_it_waits.ok.next = !(self.state.val().looks
            & (self.state.val().waits | self.state.val().shows))
            & (!self.state.val().shows
                | self.state.val().waits
                | self.at_has_ended.val()
                | (self.at_from_oldest.val() == 62));
    }
}
