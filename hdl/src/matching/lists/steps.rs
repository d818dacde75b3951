//! Operations that take several cycles after their result: an arrival that searches the associative side again, a receive that
//! is appended to it.
//!
//! ```text
//!   Run ──► Doubt ──► Search ──► Join ──► Select ──► Number ──► Recall ──► Compare ──► Decide ──► Run
//!    │        └──► Run: there is nothing to search
//!    └────► Settle ──► Append ──► Run
//!    └───────────────► Append: the quotas have settled during the search of the messages
//! ```

use super::{Lists, Step};
use crate::prelude::*;

#[block]
impl Lists {
    /// The next step of an operation that is decided slowly, or appended.
    pub(super) fn go_on(&mut self) {
        // A removal shows in `room` within three cycles, before any receive behind it is appended.
        self.room.d.next = self.associative.room.val();
        self.slow.next = false;
        match self.step.q.val() {
            Step::Run => {
                if self.alone.q.val() & !self.looking.q.val() & self.solo_posts.q.val() {
                    // After a search of the messages the quotas have settled.
                    if self.searched_alone.val() & !self.searched.val() {
                        self.next_step.next = Step::Settle;
                        if self.has_searched.q.val() {
                            self.next_step.next = Step::Append;
                        }
                    }
                }
                if self.overflow.val() {
                    // Both rows of the receive are full: it goes to the associative side.
                    self.next_step.next = Step::Settle;
                }
                if self.doubts.val() {
                    self.next_step.next = Step::Doubt;
                    self.slow.next = true;
                }
            }
            Step::Doubt => {
                if self.tainted.q.val() {
                    self.slow_search.next = true;
                    self.next_step.next = Step::Search;
                    self.slow.next = true;
                    self.next_kept.next = false;
                } else {
                    self.next_step.next = Step::Run;
                }
            }
            Step::Search => {
                self.next_step.next = Step::Join;
                self.slow.next = true;
            }
            Step::Join => {
                self.next_step.next = Step::Select;
                self.slow.next = true;
            }
            Step::Select => {
                self.next_step.next = Step::Number;
                self.slow.next = true;
            }
            Step::Number => {
                self.next_step.next = Step::Recall;
                self.slow.next = true;
            }
            Step::Recall => {
                self.next_step.next = Step::Compare;
                self.slow.next = true;
            }
            Step::Compare => {
                self.next_step.next = Step::Decide;
                self.slow.next = true;
            }
            Step::Decide => {
                self.next_step.next = Step::Run;
            }
            Step::Settle => {
                self.next_step.next = Step::Append;
            }
            Step::Append => {
                self.next_step.next = Step::Run;
            }
        }
        if self.decided.val() & self.result_kept.q.val() {
            self.next_kept.next = false;
        }
    }

    /// Whether an operation is alone in the next cycle.
    pub(super) fn end_alone(&mut self) {
        // An operation is alone until it is answered: when it is appended, decided on the exact side, or searched for.
        self.alone_ends.next = self.appends.val()
            | (self.told.val()
                & !(self.posts.val()
                    & (self.searching.q.val() | !(self.result.val().room | self.searched.val()))))
            | self.search_answers.val();
        self.next_alone.next = self.goes_alone.val()
            | self.overflow.val()
            | (self.alone.q.val() & !self.alone_ends.val());
        if self.overflow.val() {
            self.looking.d.next = false;
        }
        self.best_tag_bit.next = bits::<16>(1) << self.exact.best_tag.val();
    }
}
