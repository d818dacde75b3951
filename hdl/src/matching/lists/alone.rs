//! An operation that is alone: it stands in `solo` until it is answered, and asks the unexpected side from there.
//!
//! As long as none is alone, `solo` copies the command that would be.

use super::{Lists, Step};
use crate::prelude::*;
use crate::types::Operation;

#[block]
impl Lists {
    /// The operation in `solo`, and what the unexpected side is asked for it.
    pub(super) fn stand_alone(&mut self) {
        // An operation that is alone stands in `solo`. As long as none is, `solo` copies `front`, or while the exact side has a
        // result, when nothing goes alone, the command of that. The unexpected side is asked from here, a cycle after `front` went.
        if !self.alone.q.val() & (self.step.q.val() == Step::Run) {
            self.solo.d.next = self.front.q.val();
            self.solo_age.d.next = self.age.q.val();
            self.solo_posts.d.next = self.front_posts.q.val();
            if self.exact.result.valid.val() {
                self.solo.d.next = self.held.read_data.val();
                self.solo_age.d.next = self.held_age.read_data.val();
                self.solo_posts.d.next = self.posts.val();
            }
            self.solo_by_pair.d.next = (self.front.q.val().operation
                == Operation::TakeUnexpectedOfPair)
                | (self.front.q.val().operation == Operation::Remove);
            self.solo_by_place.d.next = self.front.q.val().operation == Operation::Remove;
            self.solo_probes.d.next = self.front.q.val().operation == Operation::Probe;
            self.looking.d.next =
                self.front_direct.q.val() | (self.front_posts.q.val() & self.fits.val());
            self.searching.d.next = self.front_asks.q.val()
                | (self.front_posts.q.val() & self.front_unexpected.q.val());
            self.has_searched.d.next = self.front_asks.q.val() | self.front_unexpected.q.val();
        }
        self.begins.d.next =
            self.asks.val() | (self.posts_alone.val() & self.front_unexpected.q.val());
        join!(self.unit => self.unexpected.unit);
        self.unexpected.insert.next = self.hands_over.val();
        self.unexpected.search.next = self.begins.q.val();
        self.unexpected.by_pair.next = self.solo_by_pair.q.val();
        self.unexpected.by_place.next = self.solo_by_place.q.val();
        self.unexpected.remove.next = !self.solo_probes.q.val();
        self.unexpected.endpoint.next = self.solo.q.val().endpoint;
        self.unexpected.pair.next = self.solo.q.val().pair;
        self.unexpected.slot.next = self.solo.q.val().slot;
        self.unexpected.any_source.next = self.solo.q.val().any_source;
        self.unexpected.context_id.next = self.solo.q.val().context;
        self.unexpected.match_bits.next = self.solo.q.val().match_bits;
        self.unexpected.ignore_bits.next = self.solo.q.val().ignore_bits;
        // While there is a message in the queue, nothing else asks.
        if self.messages.output.valid.val() {
            self.unexpected.endpoint.next = self.message.val().endpoint;
            self.unexpected.pair.next = self.message.val().pair;
            self.unexpected.slot.next = self.message.val().slot;
            self.unexpected.context_id.next = self.message.val().context_id;
            self.unexpected.match_bits.next = self.message.val().match_bits;
        }
    }
}
