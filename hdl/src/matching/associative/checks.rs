//! What is claimed of the associative side, and of its user.

use super::Associative;
use crate::prelude::*;

#[block]
impl Associative {
    /// Claims about counts, choices and ages, and about the user.
    pub(super) fn check(&mut self) {
        self.count_is_of_live_entries.ok.next = ((self.live_count.val() != 0)
            == self.order.living.val().any())
            & ((self.live_count.val() == self.capacity.val())
                == (self.order.living.val() == self.places.val()))
            & (self.live_count.val() <= self.capacity.val());

        self.cancelled_or_new.next = self.cancelled.q.val();
        if self.remove.val() & self.cancel.val() {
            self.cancelled_or_new.next = self.cancelled.q.val() | self.order.chosen.val();
        }
        self.cancelled.d.next = self.cancelled_or_new.val() & !self.order.filling.val();
        self.cancelled_is_never_matched.ok.next = (!self.choosing.q.val()
            | !(self.cancelled.q.val() & self.order.candidates.val()).any())
            & (!self.removes.val() | !(self.cancelled.q.val() & self.order.chosen.val()).any());

        self.considered.d.next = 0.into();
        if self.choosing.q.val() {
            self.considered.d.next = self.order.candidates.val();
        }
        self.considered_before.d.next = self.considered.q.val();
        self.judged.d.next = self.considered_before.q.val();
        self.asked.d.next = self.alive.val();
        self.recalled.d.next = self.asked.q.val();

        if self.inserting.q.val() {
            self.last_age.d.next = self.new_age.q.val();
            self.any_age.d.next = true;
        }
        self.ages_grow.ok.next =
            !self.insert.val() | !self.any_age.q.val() | (self.last_age.q.val() < self.age.val());
        if self.departs.val() {
            self.departed.d.next = true;
        }
        if self.choosing.q.val() {
            self.departed.d.next = false;
        }
        self.removes_once.ok.next = !self.remove.val()
            | (!self.departed.q.val()
                & !self.takes.q.val()
                & !self.choosing.q.val()
                & !(self.cancel.val() & self.spare_multi.val()));
        self.inserted.d.next = self.inserting.q.val();
        self.inserts_with_room_and_after_a_rest.ok.next = !self.insert.val()
            | (self.quota.room.val() & !self.inserting.q.val() & !self.inserted.q.val());
        self.inserts_of_a_known_pair.ok.next =
            !self.insert.val() | self.any_source.val() | !self.unknown_pair.val();
    }

    /// What a proof by induction looks at.
    pub(super) fn prove(&mut self) {
        for k in 0..self._proofs {
            self.invariants[k].live.next = self.order.living.val();
            self.invariants[k].depth.next = self.live_count.val();
            self.invariants[k].chosen.next = self.order.chosen.val();
            self.invariants[k].leaving.next = self.order.going.val();
            self.invariants[k].taking.next = self.takes.q.val() & !self.is_multi.val();
            self.invariants[k].hits.next = self.hits.val();
            self.invariants[k].filling.next = self.order.filling.val();
            self.invariants[k].inserting.next = self.inserting.q.val();
            self.invariants[k].departed.next = self.departed.q.val();
            self.invariants[k].cancelled.next = self.cancelled.q.val();
            self.invariants[k].last_age.next = self.last_age.q.val();
            self.invariants[k].any_age.next = self.any_age.q.val();
            self.invariants[k].gone.next = self.gone.q.val();
            self.invariants[k].gone_endpoint.next = self.gone_endpoint.q.val();
            self.invariants[k].used.next = self.quota.used.val();
            for i in 0..self._proved {
                self.invariants[k].rows[i].next = self.order.rows[i].val();
                self.invariants[k].ages[i].next = self.entry[i].held_age_out.val();
                self.invariants[k].endpoints[i].next = self.entry[i].held_endpoint_out.val();
            }
            for e in 0..self._endpoints {
                self.invariants[k].counts[e].next = self.quota.held[e].val();
            }
        }
    }
}
