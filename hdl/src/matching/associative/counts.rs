//! Quotas and depth.

use super::Associative;
use crate::prelude::*;

#[block]
impl Associative {
    /// Receives by endpoint: what may be inserted, and what the one that leaves gives back.
    pub(super) fn count(&mut self) {
        self.joined_endpoint.d.next = self.key_endpoint.q.val() & self.endpoint_bits.val();
        self.searched_endpoint.d.next = self.joined_endpoint.q.val();
        if self.choosing.q.val() {
            self.chosen_endpoint.d.next = self.searched_endpoint.q.val();
        }
        self.gone_endpoint.d.next = self.chosen_endpoint.q.val();
        self.gone_bit.d.next = bits::<32>(1) << self.chosen_endpoint.q.val();
        self.removes.next = self.remove.val() | self.takes.q.val();
        self.departs.next = self.removes.val()
            & self.order.found.val()
            & !((self.takes.q.val() | self.spare_multi.val()) & self.is_multi.val());
        self.gone.d.next = self.departs.val();
        self.quota.endpoint.next = self.insert_endpoint.val();
        self.quota.take.next = self.inserting.q.val();
        self.quota.take_bit.next = self.new_bit.q.val();
        self.quota.give.next = self.gone.q.val();
        self.quota.give_bit.next = self.gone_bit.q.val();
        self.room.next = self.quota.room.val();
        self.waiting.next = self.quota.holds.val();
        if self.inserting.q.val() {
            self.waiting.next = self.quota.holds.val() | self.new_bit.q.val();
        }
        self.depth.next = self.quota.used.val();
        self.live_count.next = self.quota.used.val();
        if self.gone.q.val() {
            self.live_count.next = self.quota.used.val() - 1;
        }
    }
}
