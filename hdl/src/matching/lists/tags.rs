//! What is remembered of the commands under way, by tag.

use super::Lists;
use crate::prelude::*;

#[block]
impl Lists {
    /// Of the command in `front`, by its tag: itself, its age, and whether it is clear.
    pub(super) fn remember(&mut self) {
        self.tag_bit.next = bits::<16>(1) << self.tag.q.val();
        self.found_tag_bit.next = bits::<16>(1) << self.found_tag.q.val();
        self.newly_clear.next = 0.into();
        if self.both_found.q.val() & !self.associative.found.val() {
            self.newly_clear.next = self.found_tag_bit.val();
        }
        if self.keeps_found.val() {
            self.next_kept.next = true;
        }
        // No operation has the tag of `front` until that goes, so its bit may be written in every cycle.
        self.clear.d.next = (self.clear.q.val() | self.newly_clear.val()) & !self.tag_bit.val();
        if self.front_posts.q.val() | !self.front_associative.q.val() {
            self.clear.d.next = self.clear.q.val() | self.newly_clear.val() | self.tag_bit.val();
        }
        store!(
            self.held.write,
            true,
            bit_cast::<16, 4>(self.tag.q.val()),
            self.front.q.val()
        );
        store!(
            self.held_age.write,
            true,
            bit_cast::<16, 4>(self.tag.q.val()),
            self.age.q.val()
        );
    }

    /// Tag and age of the next command.
    pub(super) fn number(&mut self) {
        if self.go.val() {
            self.tag.d.next = self.tag.q.val() + 1;
        }
        self.went.d.next = self.go.val();
        if self.went.q.val() {
            self.age.d.next = self.age.q.val() + 1;
        }
    }

    /// Whether the next result is clear. When a receive is appended none is, what is under way of searches is void, and
    /// `front` asks anew what it knows.
    pub(super) fn judge(&mut self) {
        self.next_clear.next = (self.clear.q.val() & self.best_tag_bit.val()).any();
        if self.exact.stays.val() {
            self.next_clear.next = self.result_clear.q.val();
        }
        if self.append.val() {
            self.stale.d.next = true;
            self.weighed.d.next = false;
        }
        self.none_is_clear.next = self.append.val();
        if self.none_is_clear.val() {
            self.next_clear.next = false;
            self.next_both.next = false;
            self.both_joined.d.next = false;
            self.both_chosen.d.next = false;
            self.both_found.d.next = false;
            self.next_kept.next = false;
            self.clear.d.next = 0.into();
        }
        self.result_clear.d.next = self.next_clear.val();
    }
}
