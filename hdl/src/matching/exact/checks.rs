//! What is claimed of the exact side, and of its user.

use super::Exact;
use crate::prelude::*;
use crate::types::Search;

#[block]
impl Exact {
    /// All claims.
    pub(super) fn check(&mut self) {
        self.free_numbers.next = self.free.level.val();
        if self.number_valid.q.val() {
            self.free_numbers.next = self.free_numbers.val() + 1;
        }
        if self.spare_valid.q.val() {
            self.free_numbers.next = self.free_numbers.val() + 1;
        }
        if self.put_free_now.q.val() {
            self.free_numbers.next = self.free_numbers.val() + 1;
        }
        self.neither_lost_nor_doubled.ok.next = !self.ready.q.val()
            | ((self.count.q.val() + self.free_numbers.val()) == self.entries.val());
        self.number_for_each_post.ok.next =
            !self.numbering.val() | (self.number_valid.q.val() & self.end_found.q.val().room);
        self.by_handle.next = (self.read.q.val().search != Search::Arrive)
            & (self.read.q.val().search != Search::Post);
        self.alone.ok.next = !(self.read_valid.q.val()
            & self.by_handle.val()
            & (self.compare_valid.q.val() | self.mux_valid.q.val() | self.best_valid.q.val()))
            & !(self.read_valid.q.val()
                & self.by_handle.val()
                & (self.read.q.val().search != Search::Unlink)
                & (self.hash_valid.q.val() | self.place_valid.q.val() | self.end_valid.q.val()))
            & !((self.goes_on.val() | (self.best_valid.q.val() & self.unlinks.q.val()))
                & (self.hash_valid.q.val()
                    | self.place_valid.q.val()
                    | self.read_valid.q.val()
                    | self.end_valid.q.val()));
        self.told.d.next = self.tell.q.val() & !self.commit.val();
        self.removes_what_it_finds.ok.next = !self.told.q.val() | self.commit.val();
        self.reads_settled.ok.next = !self.compare_valid.q.val()
            | (self.compare.q.val().search == Search::Arrive)
            | (self.compare.q.val().search == Search::Post)
            | !(self.fresh_handle.val()
                | self.in_old.val().any()
                | self.in_last.val().any()
                | self.in_now.val().any());
        self.settles_what_is_done.ok.next = !self.settles.q.val()
            | (self.done.val()
                & ((self.end_valid.q.val() & self.end.q.val().last) | self.tell.q.val()));
        self.full_is_a_result.ok.next =
            self.end_full.q.val() == (self.end_valid.q.val() & self.end.q.val().last);
        self.row_after.next = (self.cursor.q.val() + 1) & self.row_mask.val();
        self.copies_agree.ok.next = (self.hash_empty.q.val() != self.hash_valid.q.val())
            & (self.hash_key.q.val() == self.hash.q.val().key)
            & (self.behind_cursor.q.val() == self.row_after.val());
        self.one_slot.ok.next =
            !self.mux_valid.q.val() | !(self.mux_hit.val() & (self.mux_hit.val() - 1)).any();
    }
}
