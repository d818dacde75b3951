//! Whether a fence covers an access, as `abi::control` says it.

use crate::prelude::*;
use crate::types::{FenceSetup, Ticket};
use abi::control::{COVER_CONTEXT, COVER_DOMAIN, COVER_PAGES, COVER_PAIR, COVER_REGION};

/// The fence covers the access unless one of the things that it names is another.
#[block]
pub struct Covers {
    /// The fence.
    pub fence: Signal<In, FenceSetup>,
    /// The access.
    pub ticket: Signal<In, Ticket>,
    /// It is covered.
    pub covers: Signal<Out, Bit>,
}

#[block]
impl Logic for Covers {
    fn update(&mut self) {
        self.covers.next = true;
        if ((self.fence.val().covers & COVER_REGION) != 0)
            & (self.fence.val().region != self.ticket.val().region)
        {
            self.covers.next = false;
        }
        if ((self.fence.val().covers & COVER_PAIR) != 0)
            & (self.fence.val().pair != self.ticket.val().pair)
        {
            self.covers.next = false;
        }
        if ((self.fence.val().covers & COVER_CONTEXT) != 0)
            & !(self.ticket.val().tagged & (self.fence.val().context == self.ticket.val().context))
        {
            self.covers.next = false;
        }
        if ((self.fence.val().covers & COVER_PAGES) != 0)
            & !((self.fence.val().first_page <= self.ticket.val().last_page)
                & (self.ticket.val().first_page <= self.fence.val().last_page))
        {
            self.covers.next = false;
        }
        if ((self.fence.val().covers & COVER_DOMAIN) != 0)
            & (self.fence.val().domain != self.ticket.val().domain)
        {
            self.covers.next = false;
        }
    }
}
