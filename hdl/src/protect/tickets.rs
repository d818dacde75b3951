//! The accesses of one client that were allowed and haven't ended, and the wait for those of them that a fence covers.
//!
//! ```text
//!   begins ──► ring of tickets, in order ◄── ends: the oldest
//!                 │ from the youngest on, one a cycle
//!                 ▼
//!   start, fence ─► is it covered? ─► wait until it has ended ─► busy falls
//!                                      └─► found
//! ```
//!
//! Accesses end in the order in which they begin, so the youngest that is covered is the last to be waited for. The walk begins at the youngest of the
//! cycle of `start`: what begins later is never looked at, and holds nothing up. It ends at the first that is covered, or at one that has ended, since then all
//! older ones have.

#![allow(
    missing_docs,
    reason = "the LogicStruct derive makes methods without documentation"
)]

use crate::config::JOBS;
use crate::envelope::ledger::ENTRIES;
use crate::prelude::*;
use crate::prim::Ram;
use crate::types::{FenceSetup, Ticket};
use abi::control::{COVER_CONTEXT, COVER_DOMAIN, COVER_PAGES, COVER_PAIR, COVER_REGION};

/// Accesses under way, at most: of Gather the segments that are to be read and those that are being read.
pub const TICKETS: usize = 32;

const _: () = assert!(
    TICKETS >= 2 * JOBS && TICKETS >= ENTRIES + 2,
    "the segments that Gather may read and reads; the entries of the Ledger, and Resolve's in front of it"
);
const _: () = assert!(
    TICKETS == 1 << 5,
    "numbers have a bit more than places, and the bit says that a ticket has ended"
);
const _: () = assert!(
    COVER_REGION == 1
        && COVER_PAIR == 2
        && COVER_CONTEXT == 4
        && COVER_PAGES == 8
        && COVER_DOMAIN == 16,
    "the kernel takes these bits"
);

/// What a proof sees of a `Tickets`: its registers, and the ticket that comes out of the ring.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct TicketsState {
    /// Number of the next ticket.
    pub next_number: Bits<6>,
    /// Number of the oldest.
    pub oldest_number: Bits<6>,
    /// A ticket is compared.
    pub looks: Bit,
    /// A ticket has been found.
    pub waits: Bit,
    /// Its number.
    pub at: Bits<6>,
    /// The ticket found comes out of the ring,
    pub shows: Bit,
    /// and is told, since it hasn't ended.
    pub tells: Bit,
    /// With `looks` and with `shows`: the ticket.
    pub ticket: Ticket,
}

/// The accesses of a client.
#[block]
pub struct Tickets {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Nothing is under way.
    pub reset: Signal<In, Bit>,
    /// An access has been allowed.
    pub begins: Pulse<In, Ticket>,
    /// Pulse: the oldest access has ended.
    pub ends: Signal<In, Bit>,
    /// What is waited for: while `start` or `busy`.
    pub fence: Signal<In, FenceSetup>,
    /// Pulse: a wait begins, for what has begun before this cycle. One that is under way is given up.
    pub start: Signal<In, Bit>,
    /// The wait is under way. From the cycle after `start`.
    pub busy: Signal<Out, Bit>,
    /// The access that the wait is for. From the second cycle after it was found to the cycle of its end.
    pub found: Pulse<Out, Ticket>,
    /// For a proof: the state.
    #[is(vec![])]
    pub state: Vec<Signal<Out, TicketsState>>,
    #[is(Ram::distributed(TICKETS))]
    ring: Ram<Ticket>,
    /// Numbers of the next ticket and of the oldest, modulo 2^6.
    next: Reg<Bits<6>>,
    oldest: Reg<Bits<6>>,
    /// A ticket comes out of the ring to be compared,
    looks: Reg<Bit>,
    /// or has been found, and hasn't ended.
    waits: Reg<Bit>,
    /// Its number.
    at: Reg<Bits<6>>,
    /// It comes out of the ring.
    shows: Reg<Bit>,
    ticket: Signal<Local, Ticket>,
    covers: Signal<Local, Bits<8>>,
    other_region: Signal<Local, Bit>,
    other_pair: Signal<Local, Bit>,
    other_context: Signal<Local, Bit>,
    other_pages: Signal<Local, Bit>,
    other_domain: Signal<Local, Bit>,
    is_covered: Signal<Local, Bit>,
    /// Tickets from the oldest to the one at `at`; with bit 5 that one has ended.
    ahead: Signal<Local, Bits<6>>,
    has_ended: Signal<Local, Bit>,
    level: Signal<Local, Bits<6>>,
    #[is(Check::new("an_access_that_ends_has_begun"))]
    has_begun: Check,
    #[is(Check::new("each_access_has_a_ticket"))]
    has_place: Check,
    #[is(0)]
    _proofs: usize,
}

impl Tickets {
    /// The same with its state as an output.
    pub fn with_state(self) -> Self {
        Self {
            state: vec![Signal::default()],
            _proofs: 1,
            ..self
        }
    }
}

#[block]
impl Logic for Tickets {
    fn update(&mut self) {
        // What begins and ends.
        self.level.next = self.next.q.val() - self.oldest.q.val();
        self.has_begun.ok.next = !self.ends.val() | self.level.val().any();
        self.has_place.ok.next =
            !self.begins.valid.val() | !self.level.val().get_bit(5) | self.ends.val();
        store!(
            self.ring.write,
            self.begins.valid.val(),
            bit_cast::<16, 6>(self.next.q.val()),
            self.begins.data.val()
        );
        if self.begins.valid.val() {
            self.next.d.next = self.next.q.val() + 1;
        }
        if self.ends.val() {
            self.oldest.d.next = self.oldest.q.val() + 1;
        }

        // Whether the ticket that is looked at is covered.
        self.ticket.next = self.ring.read_data.val();
        self.covers.next = self.fence.val().covers;
        self.other_region.next =
            self.covers.val().get_bit(0) & (self.ticket.val().region != self.fence.val().region);
        self.other_pair.next =
            self.covers.val().get_bit(1) & (self.ticket.val().pair != self.fence.val().pair);
        self.other_context.next = self.covers.val().get_bit(2)
            & (!self.ticket.val().tagged | (self.ticket.val().context != self.fence.val().context));
        self.other_pages.next = self.covers.val().get_bit(3)
            & ((self.ticket.val().last_page < self.fence.val().first_page)
                | (self.ticket.val().first_page > self.fence.val().last_page));
        self.other_domain.next =
            self.covers.val().get_bit(4) & (self.ticket.val().domain != self.fence.val().domain);
        self.is_covered.next = !self.other_region.val()
            & !self.other_pair.val()
            & !self.other_context.val()
            & !self.other_pages.val()
            & !self.other_domain.val();

        // The walk, and the wait.
        self.ahead.next = self.at.q.val() - self.oldest.q.val();
        self.has_ended.next = self.ahead.val().get_bit(5);
        self.ring.read_address.next = bit_cast::<16, 6>(self.at.q.val() - 1);
        if self.looks.q.val() {
            self.at.d.next = self.at.q.val() - 1;
            if self.has_ended.val() {
                self.looks.d.next = false;
            } else if self.is_covered.val() {
                self.looks.d.next = false;
                self.waits.d.next = true;
                self.at.d.next = self.at.q.val();
            }
        }
        self.shows.d.next = false;
        if self.waits.q.val() {
            self.ring.read_address.next = bit_cast::<16, 6>(self.at.q.val());
            self.shows.d.next = true;
        }
        if self.waits.q.val() & self.has_ended.val() {
            self.waits.d.next = false;
        }
        if self.start.val() {
            self.ring.read_address.next = bit_cast::<16, 6>(self.next.q.val() - 1);
            self.at.d.next = self.next.q.val() - 1;
            self.looks.d.next = true;
            self.waits.d.next = false;
            self.shows.d.next = false;
        }
        self.busy.next = self.looks.q.val() | self.waits.q.val();
        send!(
            self.found,
            self.shows.q.val() & !self.has_ended.val(),
            self.ticket.val()
        );
        for k in 0..self._proofs {
            self.state[k].next = TicketsState {
                next_number: self.next.q.val(),
                oldest_number: self.oldest.q.val(),
                looks: self.looks.q.val(),
                waits: self.waits.q.val(),
                at: self.at.q.val(),
                shows: self.shows.q.val(),
                tells: self.found.valid.val(),
                ticket: self.ticket.val(),
            };
        }
    }
}
