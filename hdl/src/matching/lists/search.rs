//! Searches of the associative side.
//!
//! ```text
//!   sole   arrivals of the associative way    ──► joined ──► chosen ──► found ──► ends: the receive is removed
//!   both   arrivals of the exact way, whose   ──► joined ──► chosen ──► found: clear, or the choice is kept
//!          endpoint has receives on both sides
//! ```

use super::{Lists, Step};
use crate::matching::associative::AssociativeSearch;
use crate::prelude::*;
use crate::types::Operation;

#[block]
impl Lists {
    /// What the associative side compares.
    pub(super) fn compare(&mut self) {
        // What the associative side compares follows from the operation; whether it searches at all is known later.
        self.associative.by.next = AssociativeSearch::Envelope;
        match self.front.q.val().operation {
            Operation::Cancel => {
                self.associative.by.next = AssociativeSearch::Request;
            }
            Operation::TakePostedOfPair => {
                self.associative.by.next = AssociativeSearch::Pair;
            }
            Operation::TakePostedOfEndpoint => {
                self.associative.by.next = AssociativeSearch::Endpoint;
            }
            _ => {}
        }
        // An operation that is alone, or decided slowly, has the associative side to itself.
        self.probes.next = self.alone.q.val() | self.slowly.q.val();
        if self.probes.val() {
            self.associative.by.next = AssociativeSearch::Envelope;
        }
    }

    /// A search of the associative side sets out, and those under way come a stage further.
    pub(super) fn search(&mut self) {
        self.searches_both.next = self.goes_exact.val() & self.front_associative.q.val();
        self.associative_search.next =
            self.goes_sole.val() | self.searches_both.val() | self.goes_direct.val();
        self.next_step.next = self.step.q.val();
        self.next_kept.next = self.kept.q.val();
        self.next_sole.next = self.goes_sole.val();
        self.sole_tag.d.next = self.tag.q.val();
        self.sole_joined_tag.d.next = self.sole_tag.q.val();
        self.sole_chosen_tag.d.next = self.sole_joined_tag.q.val();
        self.sole_found_tag.d.next = self.sole_chosen_tag.q.val();
        self.sole_joined.d.next = self.sole.q.val();
        self.sole_chosen.d.next = self.sole_joined.q.val();
        self.sole_found.d.next = self.sole_chosen.q.val();
        self.sole_ends.d.next = self.sole_found.q.val();
        self.sole_hit.d.next = self.sole_found.q.val() & self.associative.found.val();
        self.keeps_found.next = self.both_found.q.val()
            & self.associative.found.val()
            & (self.step.q.val() == Step::Run);
        self.next_both.next = self.searches_both.val();
        // The search of the previous cycle, if another one finds something in this cycle or did so before.
        self.drops.next = self.both.q.val() & (self.keeps_found.val() | self.kept.q.val());
        self.both_joined.d.next = self.both.q.val() & !self.drops.val();
        self.both_chosen.d.next = self.both_joined.q.val();
        self.both_found.d.next = self.both_chosen.q.val();
        if self.searches_both.val() {
            self.both_tag.d.next = self.tag.q.val();
        }
        // Copied, since the next arrival may set out before this one is decided.
        if self.both_chosen.q.val() {
            self.found_tag.d.next = self.both_tag.q.val();
        }
    }

    /// What the associative side gets.
    pub(super) fn ask(&mut self) {
        self.associative.search.next = self.associative_search.val() | self.slow_search.val();
        self.associative.take.next = self.next_sole.val();
        self.associative.drop.next = self.drops.val();
        // An arrival of the associative way takes its receive at once, so that the next arrival doesn't find it. A receive that
        // wins by age is removed a cycle after the decision: no search sets out in between.
        self.removing.d.next = self.remove.val();
        self.removing_for_message.d.next = !self.alone.q.val();
        self.removing_cancelled.d.next =
            self.alone.q.val() & (self.solo.q.val().operation == Operation::Cancel);
        self.associative.remove.next = self.removing.q.val();
        self.associative.spare_multi.next = self.removing_for_message.q.val();
        self.associative.cancel.next = self.removing_cancelled.q.val();
        self.associative.insert.next = self.append.val();
        self.probed.next = self.front.q.val();
        if self.probes.val() {
            self.probed.next = self.solo.q.val();
        }
        self.associative.endpoint.next = self.probed.val().endpoint;
        // Only the receive in `solo` is appended, so `room` doesn't wait for the choice of `probed`.
        self.associative.insert_endpoint.next = self.solo.q.val().endpoint;
        self.associative.pair.next = self.probed.val().pair;
        self.associative.any_source.next = self.solo.q.val().any_source;
        self.associative.context_id.next = self.probed.val().context;
        self.associative.match_bits.next = self.probed.val().match_bits;
        self.associative.ignore_bits.next = self.solo.q.val().ignore_bits;
        self.associative.request.next = self.probed.val().request;
        self.associative.multi.next = self.solo.q.val().multi;
        self.associative.age.next = self.solo_age.q.val();
    }
}
