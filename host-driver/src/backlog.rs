//! What the card couldn't post: kept here, in order, and posted again as room appears.
//!
//! ```text
//!   program ──► rest ──────────────► list ring ──► card ─┬─► posted, or matched
//!                ▲  (oldest first)                       ├─► waits: the oldest without room
//!                │                                       └─► behind it
//!                └── refused ◄── ListFull (in front) ◄── the waiting one, when it may try again
//!                            ◄── Behind (at the end) ◄── those behind it, which found no message
//! ```
//!
//! The card keeps one receive of an endpoint waiting when its list is full, and refuses what is posted behind it at once: each
//! looks for a message, but is never posted past the one that waits. The waiting one is refused when something has
//! changed. Then, once the last that was posted is back too, all are posted again from the oldest on, the first with
//! `FLAG_RESUME`, so that each looks in its turn at what has come meanwhile, and the last with `FLAG_NOTHING_KEPT`: until then a ready message, whose
//! receive may be here, waits for it as any other. A probe or a claim is kept like a receive: what the
//! receives in front of it have a right to isn't shown.
//!
//! The queues are linked through the request table, so that nothing is allocated.

use crate::request_queue::RequestQueue;
use crate::table::{Place, Request, RequestTable};
use abi::request::{FLAG_NOTHING_KEPT, FLAG_RESUME};

/// What is known of the card's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stall {
    /// Nothing waits there.
    None,
    /// This receive waits for room.
    Waiting(Request),
    /// The one that waited is back, or has ended.
    Woken,
}

/// The requests of a list ring that are not with the card, and what is known of those that are.
pub(crate) struct Backlog {
    /// Back from the card, oldest first; older than all of `rest`.
    refused: RequestQueue,
    /// To be posted.
    rest: RequestQueue,
    stall: Stall,
    /// The last that was posted, while it is with the card.
    last: Option<Request>,
    /// The next to be posted is the first after a stall.
    resume: bool,
}

impl Backlog {
    pub(crate) const fn new() -> Self {
        Self {
            refused: RequestQueue::new(),
            rest: RequestQueue::new(),
            stall: Stall::None,
            last: None,
            resume: false,
        }
    }

    /// Whether a new request has to be kept behind others.
    pub(crate) fn keeps(&self) -> bool {
        !self.rest.is_empty() || self.stall == Stall::Woken
    }

    /// Keeps a new request.
    pub(crate) fn keep(&mut self, table: &mut RequestTable, request: Request) {
        table.set_place(request, Place::Kept);
        self.rest.push_back(table, request);
    }

    /// Begins anew if all are back.
    fn rewind(&mut self, table: &mut RequestTable) {
        if self.stall == Stall::Woken && self.last.is_none() {
            self.rest.prepend(table, std::mem::take(&mut self.refused));
            self.stall = Stall::None;
            self.resume = true;
        }
    }

    /// Whether there is something that could be posted now.
    pub(crate) fn is_due(&mut self, table: &mut RequestTable) -> bool {
        self.rewind(table);
        self.stall != Stall::Woken && !self.rest.is_empty()
    }

    /// Takes the next to be posted; [`is_due`](Self::is_due) said that there is one.
    pub(crate) fn take_next(&mut self, table: &mut RequestTable) -> Option<Request> {
        self.rest.pop_front(table)
    }

    /// A request is being posted. Returns its flags: whether it is the first after a stall, and whether nothing is kept behind it.
    ///
    /// What the card has refused without a completion yet is kept too. The card knows that, and takes the second flag for true only if it
    /// has refused nothing since the first.
    pub(crate) fn posted(&mut self, table: &mut RequestTable, request: Request) -> u8 {
        table.set_place(request, Place::Card);
        self.last = Some(request);
        let mut flags = 0;
        if std::mem::take(&mut self.resume) {
            flags |= FLAG_RESUME;
        }
        if self.rest.is_empty() && self.refused.is_empty() {
            flags |= FLAG_NOTHING_KEPT;
        }
        flags
    }

    /// The card is done with a request, whether or not it comes back.
    pub(crate) fn returned(&mut self, request: Request) {
        if self.last == Some(request) {
            self.last = None;
        }
        if self.stall == Stall::Waiting(request) {
            self.stall = Stall::Woken;
        }
    }

    /// The card has refused a request: because `waiting` waits for room, or because it was the one that did. One that is being cancelled isn't
    /// kept to be posted again.
    pub(crate) fn refused(
        &mut self,
        table: &mut RequestTable,
        request: Request,
        waiting: Option<Request>,
    ) {
        let cancelling = table
            .get_mut(request)
            .is_some_and(|found| found.cancel.is_some());
        match waiting {
            _ if cancelling => table.set_place(request, Place::Withdrawn),
            Some(_) => {
                table.set_place(request, Place::Kept);
                self.refused.push_back(table, request);
            }
            None => {
                table.set_place(request, Place::Kept);
                self.refused.push_front(table, request);
            }
        }
        self.stall = match waiting {
            Some(waiting)
                if self.stall != Stall::Woken && table.place(waiting) == Some(Place::Card) =>
            {
                Stall::Waiting(waiting)
            }
            _ => Stall::Woken,
        };
    }

    /// A request that is being cancelled won't be posted again, if it is kept.
    pub(crate) fn withdraw(&mut self, table: &mut RequestTable, request: Request) {
        if table.place(request) == Some(Place::Kept) {
            self.refused.remove(table, request);
            self.rest.remove(table, request);
            table.set_place(request, Place::Withdrawn);
        }
    }
}
