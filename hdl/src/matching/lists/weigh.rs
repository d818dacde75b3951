//! Class and quota of a receive: what it would need, what it takes when it goes to the exact side, what it gives back when it
//! leaves.

use super::Lists;
use crate::prelude::*;

#[block]
impl Lists {
    /// What the front knows of its endpoint, and whether the receive in `front` fits.
    pub(super) fn weigh(&mut self) {
        self.classes.endpoint_bit.next = self.front_bit.q.val();
        // The class of a receive: the one that it has, or the first that isn't in use.
        self.equal.next = 0.into();
        self.equal.next = self.equal.val().replace_bit(
            0,
            self.classes.read.val().ignore0 == self.front.q.val().ignore_bits,
        );
        self.equal.next = self.equal.val().replace_bit(
            1,
            self.classes.read.val().ignore1 == self.front.q.val().ignore_bits,
        );
        self.equal.next = self.equal.val().replace_bit(
            2,
            self.classes.read.val().ignore2 == self.front.q.val().ignore_bits,
        );
        self.equal.next = self.equal.val().replace_bit(
            3,
            self.classes.read.val().ignore3 == self.front.q.val().ignore_bits,
        );
        self.chosen.next =
            self.equal.val() & self.classes.read.val().learnt & !self.classes.read.val().any_source;
        if self.front.q.val().any_source {
            self.chosen.next = self.equal.val()
                & self.classes.read.val().learnt
                & self.classes.read.val().any_source;
        }
        // The class is found in the cycle after the masks were read, and stays.
        if self.fresh.q.val() {
            self.has_class.d.next = self.chosen.val();
        }
        self.unlearnt.next = !self.classes.view.val().learnt;
        self.idle.next = !self.classes.live.val();
        self.first_unlearnt.set.next = self.unlearnt.val();
        self.first_idle.set.next = self.idle.val();
        self.free_class.d.next = self.first_idle.lowest.val();
        if self.unlearnt.val().any() {
            self.free_class.d.next = self.first_unlearnt.lowest.val();
        }
        // The receive that went in the previous cycle isn't counted yet.
        self.quota.endpoint.next = self.front.q.val().endpoint;
        self.room_for_it.next =
            self.quota.room.val() & (self.quota.ample.val() | !self.taking.q.val());
        self.has_room.d.next = self.room_for_it.val();
        self.free_room.d.next =
            self.room_for_it.val() & (self.unlearnt.val().any() | self.idle.val().any());
        self.fit_learns.next = !self.has_class.q.val().any();
        self.fit_class.next = self.has_class.q.val();
        if self.fit_learns.val() {
            self.fit_class.next = self.free_class.q.val();
        }
        self.fits.next =
            self.free_room.q.val() | (self.has_room.q.val() & self.has_class.q.val().any());
        self.rests.next = self.way_free.q.val() & self.exact_free.q.val() & self.calm.q.val();
    }

    /// What a receive takes of quota and class.
    pub(super) fn take(&mut self) {
        // Quota and class are taken a cycle after the receive went. A class that it learns shows two cycles after that.
        self.learns.next = self.takes.val() & self.fit_learns.val();
        self.taking.d.next = self.takes.val();
        self.taking_bit.d.next = self.front_bit.q.val();
        self.taking_class.d.next = self.fit_class.val();
        self.learning.d.next = self.learns.val();
        self.taking_endpoint.next = self.issue_command.q.val().endpoint & 15;
        self.classes.take_endpoint.next = self.taking_endpoint.val();
        self.classes.take_bit.next = self.taking_bit.q.val();
        self.classes.take.next = self.taking.q.val();
        self.classes.take_class.next = self.taking_class.q.val();
        self.classes.learn.next = self.learning.q.val();
        self.classes.learn_ignore.next = self.issue_command.q.val().ignore_bits;
        self.classes.learn_any.next = self.issue_command.q.val().any_source;
        self.quota.take.next = self.taking.q.val();
        self.quota.take_bit.next = self.taking_bit.q.val();
    }

    /// What a receive that left the exact side gives back.
    pub(super) fn give(&mut self) {
        // A receive that leaves is counted a cycle later; until then there seems to be less room than there is.
        self.giving.d.next = self.gives.val();
        self.giving_class.d.next = self.result.val().class;
        self.giving_bit.d.next = bits::<32>(1) << (self.result.val().class >> 2);
        self.gave.d.next = self.gives.val() | self.giving.q.val();
        self.classes.give.next = self.giving.q.val();
        self.classes.give_class.next = self.giving_class.q.val();
        self.quota.give.next = self.giving.q.val();
        self.quota.give_bit.next = self.giving_bit.q.val();
    }
}
