//! What must hold in every cycle.

use super::{SendQueues, Step};
use crate::prelude::*;
use abi::limits::{MAX_CREDITS, MAX_UNACKNOWLEDGED};

#[block]
impl SendQueues {
    /// The checks of the kernel.
    pub(super) fn check(&mut self) {
        self.in_use_next.next = self.source_next.val().taken - self.source_next.val().returned;
        self.unacknowledged_next.next =
            self.source_next.val().taken - self.source_next.val().acknowledged;
        self.returnable_next.next = self.source_next.val().safe - self.source_next.val().returned;
        self.in_use_before.next = self.source.q.val().taken - self.source.q.val().returned;
        self.credits_used_are_within_the_grant.ok.next = !self.write.val()
            | (self.in_use_next.val() <= bit_cast::<32, 7>(self.source_next.val().granted))
            | (self.in_use_next.val() <= self.in_use_before.val())
            | self.gives_put.val();
        self.returned_acknowledged_taken_are_in_order.ok.next = !self.write.val()
            | self.source_next.val().failed
            | ((self.unacknowledged_next.val() <= MAX_UNACKNOWLEDGED)
                & (self.returnable_next.val() <= MAX_CREDITS));
        self.a_pair_has_one_turn_at_a_time.ok.next = (!self.push.val()
            | !self.source.q.val().queued
            | (self.deciding.q.val() == Step::Turn))
            & (!self.pushing.q.val() | self.turns.input.ready.val());
        self.held_next.next = self.source_next.val().taken.get_bits::<8>(0)
            - self.source_next.val().acknowledged.get_bits::<8>(0)
            + self.source_next.val().count;
        self.run_end.next = bit_cast::<8, 6>(self.source_next.val().last) + 1;
        self.sends_fit_the_run_of_their_pair.ok.next =
            !self.write.val() | (self.held_next.val() <= self.run_end.val());
        self.sent_next.next = self.source_next.val().taken
            - bit_cast::<32, 8>(self.source_next.val().given)
            - self.source_next.val().acknowledged;
        self.turn_next.next = self.source_next.val().turn - self.source_next.val().acknowledged;
        self.what_is_sent_again_is_unacknowledged.ok.next = !self.write.val()
            | self.source_next.val().failed
            | (self.source_next.val().turn == self.source_next.val().taken)
            | (self.turn_next.val() <= self.sent_next.val());
        self.only_a_job_is_answered.ok.next =
            !self.job_result.valid.val() | self.owed.q.val().any();
        self.one_reservation_is_given_up_at_a_time.ok.next =
            !(self.in_time.val() & self.walker.released.valid.val());
        self.what_ends_has_room.ok.next = !self.ends.val() | self.ended.input.ready.val();
        // The limit may be set below what has been tried.
        self.no_pair_tries_more_often_than_it_may.ok.next = !self.write.val()
            | (self.source_next.val().tries <= self.source_next.val().retry_limit)
            | (self.source_next.val().tries <= self.source.q.val().tries);
    }

    /// The send that was given last doesn't end by a walk while its payload may be read.
    pub(super) fn check_latest(&mut self) {
        self.unsettled_next.next = self.unsettled.q.val();
        if self.gives.val() {
            self.unsettled_next.next = self.unsettled.q.val() + 1;
            self.latest_place.d.next = self.source.q.val().first
                | bit_cast::<16, 8>(
                    self.turn_number.val().get_bits::<8>(0)
                        & bit_cast::<8, 6>(self.source.q.val().last),
                );
        }
        if self.deciding.q.val() == Step::Result {
            self.unsettled_next.next = self.unsettled.q.val() - 1;
            if self.latest_unsettled.q.val().any() {
                self.latest_unsettled.d.next = self.latest_unsettled.q.val() - 1;
            }
        }
        self.unsettled.d.next = self.unsettled_next.val();
        if self.gives.val() {
            self.latest_unsettled.d.next = self.unsettled_next.val();
        }
        // Behind a send that is taken out the others move up.
        if self.takes_out.val() {
            self.latest_unsettled.d.next = 0.into();
        }
        self.no_send_ends_while_it_is_read.ok.next = !(self.walker.ended.valid.val()
            | self.walker.released.valid.val())
            | !self.latest_unsettled.q.val().any()
            | (self.walker.place.val() != self.latest_place.q.val());
    }
}
