//! The reply: its fields are made in the cycle of the decision, and leave in the next.

use super::Lists;
use crate::prelude::*;
use crate::types::MatchReply;

#[block]
impl Lists {
    /// The reply to what is decided in this cycle.
    pub(super) fn make_reply(&mut self) {
        // The reply's fields are made in every cycle, and count in a cycle with `replying`.
        self.of_rival.next = self.sole_ends.q.val()
            | self.rival_wins.val()
            | (self.alone.q.val()
                & self.looking.q.val()
                & !self.posts.val()
                & !self.result.val().found);
        self.of_search.next =
            self.alone.q.val() & (!self.looking.q.val() | (self.posts.val() & self.searched.val()));
        self.answer.d.next = MatchReply::default();
        // While an arrival of the associative way is answered, `associative.found` is that of the arrival behind it.
        self.answer.d.next.found = self.sole_hit.q.val()
            | (self.of_rival.val() & !self.sole_ends.q.val() & self.associative.found.val());
        self.answer.d.next.index = bit_cast::<16, 14>(self.result.val().id);
        if self.of_rival.val() {
            self.answer.d.next.index = self.found_associative.val();
        } else if self.of_search.val() {
            self.answer.d.next.found = self.searched.val();
            self.answer.d.next.index = self.searched_index.val();
        } else {
            self.answer.d.next.found = !self.posts.val() & self.result.val().found;
        }
        if self.takes_alone.val() {
            self.answer.d.next.more = self.result.val().more & !self.associative.found.val();
        }
        if self.appends.val() {
            self.answer.d.next.found = false;
            self.answer.d.next.full = !self.room.q.val();
            self.answer.d.next.index =
                self.exact_entries.val() + self.associative.place_index.val();
        }
    }

    /// The reply to what was decided in the previous cycle, and the depths.
    pub(super) fn send_reply(&mut self) {
        self.count_overflows.next = self.overflow.val();
        self.answered.d.next = self.replying.val();
        self.reply.valid.next = self.answered.q.val();
        self.reply.data.next = self.answer.q.val();
        self.posted_depth.next = self.exact.depth.val() + self.associative.depth.val();
        self.unexpected_depth.next = self.unexpected.depth.val();
    }
}
