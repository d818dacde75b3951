//! What is decided reaches the exact side: in the cycle of its result if registers say so early enough (`quick`), a cycle later
//! if not.

use super::{Lists, Step};
use crate::prelude::*;

#[block]
impl Lists {
    /// What the exact side gets.
    pub(super) fn settle(&mut self) {
        self.exact.receive.next = self.held.read_data.val();
        self.exact.age.next = self.held_age.read_data.val();
        self.exact.rival_age.next = self.associative.age_out.val();
        self.swift.next = !self.alone.q.val()
            & (self.step.q.val() == Step::Run)
            & (!self.result_valid.val()
                | (self.quick.q.val() & (self.result.val().room | !self.posts.val())));
        // A receive that no message waits for, and a clear arrival, are decided from registers, early enough to move the exact side
        // in the same cycle. Any other decision reaches the exact side a cycle later.
        self.will_be_quick.next =
            self.exact.will_end.val() & self.swift.val() & self.next_clear.val();
        self.quick.d.next = self.will_be_quick.val();
        self.quick_commit.next = self.result.val().found;
        if self.posts.val() {
            self.quick_commit.next = self.result.val().room;
        }
        self.late.d.next = self.decided.val() & !self.quick.q.val();
        self.late_commit.d.next = self.commit.val() & !self.quick.q.val();
        self.late_discard.d.next = self.discard.val() & !self.quick.q.val();
        self.exact.will_settle.next = self.will_be_quick.val();
        self.exact.commit.next =
            (self.quick.q.val() & self.quick_commit.val()) | self.late_commit.q.val();
        self.exact.discard.next =
            (self.quick.q.val() & !self.quick_commit.val()) | self.late_discard.q.val();
    }

    /// What may go in the next cycle, and the next values of registers.
    pub(super) fn open_ways(&mut self) {
        self.way_free.d.next = !self.next_alone.val()
            & !self.next_sole.val()
            & !self.sole.q.val()
            & !self.sole_joined.q.val()
            & !self.sole_chosen.q.val()
            & !self.keeps.val();
        self.slowly.d.next = self.slow.val();
        self.side_free.d.next =
            !self.next_both.val() & !self.both.q.val() & !self.next_kept.val() & !self.slow.val();
        self.step.d.next = self.next_step.val();
        self.alone.d.next = self.next_alone.val();
        self.kept.d.next = self.next_kept.val();
        self.result_kept.d.next =
            self.next_kept.val() & (self.found_tag.q.val() == self.next_tag.val());
        self.both.d.next = self.next_both.val();
        self.sole.d.next = self.next_sole.val();
    }
}
