//! What a full list does to an endpoint.
//!
//! ```text
//!             list full              message, failure, 16 gone
//!  running ─────────────► waiting ───────────────────────────► woken    completes with ListFull
//!     ▲                      │  cancel, flush                    │
//!     │                      └───────────────────────────────────┤
//!     └──────────────────────────────────────────────────────────┘  request with FLAG_RESUME
//! ```

use super::Receive;
use abi::request::{FLAG_ANY_SOURCE, FLAG_NOTHING_KEPT, FLAG_RESUME, ListRequest};

/// A receive that waits for room.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    receive: Receive,
    /// The source that it names, if it names one.
    pair: Option<u16>,
}

/// Of one endpoint.
#[derive(Clone, Debug, Default)]
pub(super) struct Stall {
    /// What is posted isn't posted.
    pub(super) stalled: bool,
    /// The host may keep receives back.
    pub(super) kept: bool,
    waiting: Option<Waiting>,
    /// Handle of the receive that waits, or last waited.
    pub(super) last: u32,
    /// Something has come since that those in front have to look at first.
    pub(super) news: bool,
    /// A batch of posted receives has gone since.
    room: bool,
}

impl Stall {
    /// A request says how far the host is.
    pub(super) fn hears(&mut self, flags: u8) {
        if flags & FLAG_RESUME != 0 && self.waiting.is_none() {
            self.stalled = false;
        }
        // The host of a stalled endpoint has requests back that it may not know of yet.
        if flags & FLAG_NOTHING_KEPT != 0 && !self.stalled {
            self.kept = false;
        }
    }

    /// Handle of the receive that waits.
    pub(super) fn waiting(&self) -> Option<u32> {
        self.waiting.map(|waiting| waiting.receive.request)
    }

    /// The list is full for this receive.
    pub(super) fn waits(&mut self, receive: &Receive, request: &ListRequest) {
        let any_source = request.flags & FLAG_ANY_SOURCE != 0;
        *self = Self {
            stalled: true,
            kept: true,
            waiting: Some(Waiting {
                receive: *receive,
                pair: (!any_source).then_some(request.pair),
            }),
            last: request.request,
            news: false,
            room: false,
        };
    }

    /// Sixteen posted receives have gone.
    pub(super) fn has_room(&mut self) {
        self.room |= self.waiting.is_some();
    }

    /// The receive that waits, if it is to be told that it may try again. It waits no more.
    pub(super) fn wakes(&mut self) -> Option<Receive> {
        let told = self.news || self.room;
        let woken = self.waiting.take_if(|_| told);
        woken.map(|waiting| waiting.receive)
    }

    /// The receive of this handle, if it waits. It waits no more.
    pub(super) fn cancel(&mut self, request: u32) -> Option<Receive> {
        let named = |waiting: &mut Waiting| waiting.receive.request == request;
        self.waiting.take_if(named).map(|waiting| waiting.receive)
    }

    /// The receive that waits, whatever it names. It waits no more.
    pub(super) fn flush(&mut self) -> Option<Receive> {
        self.waiting.take().map(|waiting| waiting.receive)
    }

    /// The receive that waits, if it names the pair. It waits no more.
    pub(super) fn flush_pair(&mut self, pair: u16) -> Option<Receive> {
        let waited = self.waiting.take_if(|waiting| waiting.pair == Some(pair));
        waited.map(|waiting| waiting.receive)
    }
}
