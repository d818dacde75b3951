//! The result of an operation stands in `end` until the user commits or discards it.

use super::Exact;
use crate::prelude::*;
use crate::types::{ExactResult, Search};

#[block]
impl Exact {
    /// The result, and whether everything moves in the next cycle.
    pub(super) fn tell_result(&mut self) {
        self.fills.next = self.end_full.q.val() & !self.done.val();
        self.mends.next = self.arriving.val() & (self.best.q.val().search == Search::Unlink);
        self.mend.d.next = self.mends.val();
        if self.done.val() | self.mend.q.val() {
            self.end_valid.d.next = false;
        }
        if self.arriving.val() {
            self.end_valid.d.next = true;
            self.end.d.next = self.best.q.val();
            self.end_posts.d.next = self.best.q.val().search == Search::Post;
            self.fills.next = self.best.q.val().last & !self.unlinks.q.val();
            if self.unlinks.q.val() {
                self.end.d.next.last = false;
            }
        }
        if self.better.val() & !self.stands.q.val() {
            self.end_found.d.next = self.candidate.val();
        }
        self.end_full.d.next = self.fills.val();
        self.will_end.next = self.fills.val();
        self.settles.d.next = self.fills.val() & self.will_settle.val();
        self.moves.d.next = !self.fills.val() | self.will_settle.val();
        self.stands.d.next = self.fills.val() & !self.will_settle.val();
        self.posts.next = self.end_posts.q.val();
        self.stays.next = self.stands.q.val();
        self.end_tag.next = self.end.q.val().tag;
        self.best_tag.next = self.best.q.val().tag;
        self.end_key.next = self.end_found.q.val().key;
        self.new_id.next = self.number.q.val();
        self.result.valid.next = self.end_full.q.val() | self.tell.q.val();
        self.result.data.next = ExactResult::default();
        self.result.data.next.found = self.end_found.q.val().found;
        self.result.data.next.room = self.end_found.q.val().room & self.number_valid.q.val();
        self.result.data.next.age = self.end_found.q.val().age;
        self.result.data.next.class = self.end_found.q.val().class;
        self.result.data.next.multi = self.end_found.q.val().multi;
        self.result.data.next.more = self.end_found.q.val().more;
        self.result.data.next.rival_older = self.end_found.q.val().rival_older;
        self.result.data.next.id = self.end_found.q.val().id;
        if self.end.q.val().search == Search::Arrive {
            self.result.data.next.id = self.end_found.q.val().head;
        }
        if self.end.q.val().search == Search::Post {
            self.result.data.next.id = self.new_id.val();
        }
        self.remains.next = self.hash_valid.q.val()
            | self.place_valid.q.val()
            | self.read_valid.q.val()
            | self.compare_valid.q.val()
            | self.mux_valid.q.val()
            | (!self.mends.val()
                & (self.best_valid.q.val()
                    | (self.end_valid.q.val() & !self.done.val() & !self.mend.q.val())));
    }
}
