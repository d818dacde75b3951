//! The choice among the entries that agreed.

use super::Associative;
use crate::prelude::*;

#[block]
impl Associative {
    /// The oldest of the hits is chosen, and its age looked up.
    pub(super) fn choose(&mut self) {
        self.staying.next = self.multis.q.val();
        self.spared.next = 0.into();
        if self.spare_multi.val() {
            self.spared.next = self.staying.val();
        }
        self.order.hits.next = self.hits.val();
        self.order.select.next = self.choosing.q.val();
        self.order.take.next = self.choosing_to_take.q.val();
        self.order.spare.next = self.staying.val();
        self.order.insert.next = self.insert.val();
        self.order.remove.next = self.remove.val();
        self.order.keep.next = self.spared.val();
        self.multis.d.next = self.multis.q.val() & !self.order.filling.val();
        if self.new_multi.q.val() {
            self.multis.d.next = self.multis.q.val() | self.order.filling.val();
        }
        self.is_multi.next = (self.order.chosen.val() & self.multis.q.val()).any();

        self.found.next = self.order.found.val();
        self.index.next = self.order.index.val();
        self.chosen.next = self.order.chosen.val();
        self.chosen_multi.next = self.is_multi.val();
        self.place_index.next = self.order.place_index.val();

        self.ages.clock.next = self.clock.val();
        store!(
            self.ages.write,
            self.inserting.q.val(),
            self.new_place.q.val(),
            self.new_age.q.val()
        );
        self.ages.read_address.next = self.order.index.val();
        self.age_out.next = self.ages.read_data.val();
    }
}
