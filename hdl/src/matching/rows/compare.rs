//! Rows come from the memory, one a cycle, and are compared; of all hits the earliest is kept.
//!
//! ```text
//!   rows ──► entry ──► hits ──► first ──► best
//!            compare   earliest of a row  earliest of all
//! ```

use super::{Elders, UnexpectedRows};
use crate::prelude::*;

#[block]
impl UnexpectedRows {
    /// A row that is read is compared in the cycle after the next, and so on.
    pub(super) fn move_rows(&mut self) {
        self.row.next = self.rows.read_data.val();
        self.read_link.next = self.links.read_data.val();
        self.read_valid.d.next = false;
        self.read_last.d.next = false;
        self.entry_valid.d.next = self.read_valid.q.val();
        self.entry_last.d.next = self.read_last.q.val();
        self.hits_valid.d.next = self.entry_valid.q.val();
        self.hits_last.d.next = self.entry_last.q.val();
        self.first_valid.d.next = self.hits_valid.q.val();
        self.first_last.d.next = self.hits_last.q.val();
        if self.read_valid.q.val() {
            self.entry_at.d.next = self.read_at.q.val();
            self.entry_row.d.next = self.row.val();
            // The rows of a list are their endpoint's.
            self.entry_owner.d.next = self.read_link.val().owner;
            if self.key.q.val().any_source {
                self.entry_owner.d.next = self.key.q.val().endpoint;
            }
        }
        self.of_endpoint.next = self.entry_owner.q.val() == self.key.q.val().endpoint;
        self.may_be_found.next =
            self.entry_valid.q.val() & (self.key.q.val().by_pair | self.of_endpoint.val());
        self.place_bit.next = bits::<8>(1) << self.key_place.q.val();
        self.live.next = self.entry_row.q.val().live;
        if self.key.q.val().by_place {
            self.live.next = 0.into();
            if self.entry_at.q.val() == self.key_row.q.val() {
                self.live.next = self.entry_row.q.val().live & self.place_bit.val();
            }
        }
        if self.entry_valid.q.val() {
            self.hits_at.d.next = self.entry_at.q.val();
            self.hits_row.d.next = self.entry_row.q.val();
            self.hits_owner.d.next = self.entry_owner.q.val();
        }
    }

    /// The messages of a row are compared, and the earliest that agrees is kept. What takes all of a pair compares nothing.
    pub(super) fn compare(&mut self) {
        self.sought.d.next.by_pair = self.key.q.val().by_pair;
        self.sought.d.next.context_id = self.key.q.val().context_id;
        self.sought.d.next.match_bits = self.key.q.val().match_bits;
        self.sought.d.next.care_bits = self.key.q.val().care_bits;
        if self.key.q.val().by_pair {
            self.sought.d.next.care_bits = 0.into();
        }
        self.order_before.next = self.entry_row.q.val().order;
        self.order_found.next = self.hits_row.q.val().order;
        self.entry_order.next = (bit_cast::<64, 1>(self.order_before.val().place1) << 8)
            | (bit_cast::<64, 2>(self.order_before.val().place2) << 16)
            | (bit_cast::<64, 3>(self.order_before.val().place3) << 24)
            | (bit_cast::<64, 4>(self.order_before.val().place4) << 32)
            | (bit_cast::<64, 5>(self.order_before.val().place5) << 40)
            | (bit_cast::<64, 6>(self.order_before.val().place6) << 48)
            | (bit_cast::<64, 7>(self.order_before.val().place7) << 56);
        self.found_order.next = (bit_cast::<64, 1>(self.order_found.val().place1) << 8)
            | (bit_cast::<64, 2>(self.order_found.val().place2) << 16)
            | (bit_cast::<64, 3>(self.order_found.val().place3) << 24)
            | (bit_cast::<64, 4>(self.order_found.val().place4) << 32)
            | (bit_cast::<64, 5>(self.order_found.val().place5) << 40)
            | (bit_cast::<64, 6>(self.order_found.val().place6) << 48)
            | (bit_cast::<64, 7>(self.order_found.val().place7) << 56);
        self.order_after.next = 0.into();
        self.hits.next = 0.into();
        self.beaten.next = 0.into();
        self.first_age.next = 0.into();
        self.first_number.next = 0.into();
        for i in 0..self._n {
            self.hits.next = self.hits.val().replace_bit(i, self.place[i].hit.val());
            self.beaten.next = self.beaten.val() | self.place[i].beats.val();
            self.first_age.next = self.first_age.val() | self.place[i].first_age.val();
            self.first_number.next = self.first_number.val() | self.place[i].first_number.val();
            self.order_after.next = self.order_after.val() | self.place[i].order_after.val();
        }
        self.new_order.next = Elders::default();
        self.new_order.next.place1 = self.order_after.val().get_bits::<1>(8);
        self.new_order.next.place2 = self.order_after.val().get_bits::<2>(16);
        self.new_order.next.place3 = self.order_after.val().get_bits::<3>(24);
        self.new_order.next.place4 = self.order_after.val().get_bits::<4>(32);
        self.new_order.next.place5 = self.order_after.val().get_bits::<5>(40);
        self.new_order.next.place6 = self.order_after.val().get_bits::<6>(48);
        self.new_order.next.place7 = self.order_after.val().get_bits::<7>(56);
        if self.hits_valid.q.val() {
            self.first.d.next.found = self.hits.val().any();
            self.first.d.next.row = self.hits_at.q.val();
            self.first.d.next.number = self.first_number.val();
            self.first.d.next.age = self.first_age.val();
            self.first.d.next.owner = self.hits_owner.q.val();
            self.first.d.next.contents = self.hits_row.q.val();
        }
        self.better.next = self.first.q.val().age < self.best.q.val().age;
        if self.first_valid.q.val()
            & self.first.q.val().found
            & (!self.best.q.val().found | self.better.val())
        {
            self.best.d.next = self.first.q.val();
        }
    }
}
