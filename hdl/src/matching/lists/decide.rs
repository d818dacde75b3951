//! Results are decided in the order of the commands: the exact side's, that of the associative side, or the older of both.

use super::{Lists, Step};
use crate::prelude::*;

#[block]
impl Lists {
    /// The exact side's result, and the command that it is of.
    pub(super) fn hear(&mut self) {
        self.result.next = self.exact.result.data.val();
        self.result_valid.next = self.exact.result.valid.val() & !self.late.q.val();
        // The command is read of the result that may come in the next cycle.
        self.next_tag.next = self.exact.best_tag.val();
        if self.exact.stays.val() {
            self.next_tag.next = self.exact.end_tag.val();
        }
        self.held.read_address.next = bit_cast::<16, 4>(self.next_tag.val());
        // Or of the arrival of the associative way that is answered then: the exact side has nothing meanwhile.
        if self.sole_found.q.val() {
            self.held.read_address.next = bit_cast::<16, 4>(self.sole_found_tag.q.val());
        }
        self.held_age.read_address.next = bit_cast::<16, 4>(self.next_tag.val());
        self.posts.next = self.exact.posts.val();
    }

    /// What is decided of the result, and whether anything is answered.
    pub(super) fn decide(&mut self) {
        // First what is decided; then the reply, and what is done next.
        self.slow_search.next = false;
        self.append.next = false;
        self.found_associative.next = self.exact_entries.val() + self.associative.index.val();
        self.key_bit.next = bits::<32>(1) << self.held.read_data.val().endpoint;
        self.tainted.d.next = (self.associative.waiting.val() & self.key_bit.val()).any();
        self.precedes.next =
            self.associative.age_out.val() < bit_cast::<54, 53>(self.result.val().age);
        self.older.next = self.precedes.val();
        self.was_older.d.next = self.older.val();
        self.runs.next = self.step.q.val() == Step::Run;
        // The exact side has compared the age of the kept choice on the way.
        self.rival_older.next = self.was_older.q.val();
        if self.runs.val() {
            self.rival_older.next = self.result.val().rival_older;
        }
        if self.unexpected.ends.val() {
            self.searching.d.next = false;
        }
        self.searched.next = self.has_searched.q.val() & self.unexpected.found.val();
        self.searched_index.next = self.unexpected.index.val();
        self.told.next = self.result_valid.val() & self.runs.val();
        // A result is decided: a receive's, unless messages are still searched for it; a cancel's or a walk's; an arrival's, when
        // the associative side's answer for it is known.
        self.decided.next = (self.step.q.val() == Step::Decide)
            | ((self.step.q.val() == Step::Doubt) & !self.tainted.q.val());
        if self.told.val() {
            self.decided.next =
                self.alone.q.val() | self.result_clear.q.val() | self.result_kept.q.val();
            if self.posts.val() {
                self.decided.next = !(self.alone.q.val() & self.searching.q.val());
            }
        }
        // A receive that has found a message is not posted.
        self.yields.next = self.alone.q.val() & self.searched.val();
        self.rival_wins.next = (self.result_kept.q.val() | (self.step.q.val() == Step::Decide))
            & self.associative.found.val()
            & (!self.result.val().found | self.rival_older.val());
        self.accepts.next = self.result.val().found & !self.rival_wins.val();
        if self.posts.val() {
            self.accepts.next = self.result.val().room & !self.yields.val();
        }
        self.commit.next = self.decided.val() & self.accepts.val();
        self.discard.next = self.decided.val() & !self.accepts.val();
        self.overflow.next = self.told.val()
            & self.posts.val()
            & !(self.alone.q.val() & self.searching.q.val())
            & !self.result.val().room
            & !self.yields.val();
        self.doubts.next = self.told.val()
            & !self.alone.q.val()
            & !self.posts.val()
            & !self.result_clear.q.val()
            & !self.result_kept.q.val();
        self.gives.next = self.discard.val();
        if !self.posts.val() {
            self.gives.next = self.commit.val() & (self.alone.q.val() | !self.result.val().multi);
        }
        self.takes_alone.next = self.told.val() & !self.posts.val() & self.alone.q.val();
        self.remove.next =
            (self.takes_alone.val() & !self.result.val().found & self.associative.found.val())
                | (self.decided.val() & self.rival_wins.val());
        self.searched_alone.next =
            self.runs.val() & self.alone.q.val() & !self.looking.q.val() & !self.searching.q.val();
        self.appends.next = self.step.q.val() == Step::Append;
        self.append.next = self.appends.val() & self.room.q.val();
        self.replying.next = self.sole_ends.q.val()
            | self.appends.val()
            | (self.decided.val()
                & (!self.posts.val() | self.result.val().room | self.yields.val()));
        self.search_answers.next =
            self.searched_alone.val() & (self.searched.val() | !self.solo_posts.q.val());
        if self.search_answers.val() {
            self.replying.next = true;
        }
    }
}
