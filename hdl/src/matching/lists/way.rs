//! The way of the command in `front`: exact, associative or alone.
//!
//! Whether the command goes is a few levels of logic from registers, because all that stands behind the front waits for it.

use super::Lists;
use crate::prelude::*;

#[block]
impl Lists {
    /// Whether the command in `front` goes, and which way.
    pub(super) fn choose_way(&mut self) {
        // Whether the command goes, and which way, is a few levels of logic from registers, since all that follows waits for it.
        // `front_arrives` to `front_direct` are valid without `front_valid`: zero while there is no command.
        self.goes_sole.next = self.front_arrives.q.val()
            & !self.stale.q.val()
            & !self.front_live.q.val().any()
            & self.exact_free.q.val()
            & !self.alone.q.val();
        self.goes_exact.next = self.front_arrives.q.val()
            & !self.stale.q.val()
            & self.front_live.q.val().any()
            & self.way_free.q.val()
            & (!self.front_associative.q.val() | self.side_free.q.val());
        // A receive that no message waits for may follow what is under way. One for which the exact side has no room goes when
        // no receive can be about to leave that side.
        self.may_ask.next = self.weighed.q.val()
            & self.rests.val()
            & (self.unexpected.ready.val() | !self.front_unexpected.q.val());
        self.goes_if_fits.next = self.weighed.q.val()
            & self.way_free.q.val()
            & self.calm.q.val()
            & (!self.front_unexpected.q.val()
                | (self.exact_free.q.val() & self.unexpected.ready.val()));
        self.takes.next = self.fits.val() & self.goes_if_fits.val();
        self.posts_alone.next = self.may_ask.val()
            & ((self.fits.val() & self.front_unexpected.q.val())
                | (!self.fits.val() & !self.gave.q.val()));
        self.asks.next = self.front_asks.q.val()
            & !self.stale.q.val()
            & self.rests.val()
            & self.unexpected.ready.val();
        self.goes_direct.next = self.front_direct.q.val() & !self.stale.q.val() & self.rests.val();
        // Whether it goes, for all ways together.
        self.goes_first.next = !self.stale.q.val()
            & (self.front_direct.q.val() | (self.front_asks.q.val() & self.unexpected.ready.val()));
        // Whether the receive fits is known last.
        self.post_goes.next = (self.may_ask.val() & !self.gave.q.val()) | self.takes.val();
        self.go.next = self.goes_sole.val()
            | self.goes_exact.val()
            | self.post_goes.val()
            | (self.goes_first.val() & self.rests.val());
        self.goes_alone.next = self.posts_alone.val() | self.asks.val() | self.goes_direct.val();
        self.to_issue.next = self.goes_exact.val() | self.takes.val();
    }
}
