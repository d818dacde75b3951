//! What is claimed of the unexpected messages, and of their user.

use super::{UnexpectedRows, Walk};
use crate::prelude::*;

#[block]
impl UnexpectedRows {
    /// All claims.
    pub(super) fn check(&mut self) {
        if self.links_row.val() {
            self.linked.d.next = self.linked.q.val() + 1;
        }
        if self.unlinks.val() {
            self.linked.d.next = self.linked.q.val() - 1;
        }
        self.one_operation_at_a_time.ok.next = !(self.insert.val() & self.search.val())
            & (!(self.insert.val() | self.search.val()) | (self.walk.q.val() == Walk::Idle));
        self.ready_when_idle.ok.next = self.idle.q.val() == (self.walk.q.val() == Walk::Idle);
        self.key_names_what_there_is.ok.next = !(self.insert.val() | self.search.val())
            | ((self.by_pair.val() | (self.endpoint.val() < self.endpoints.val()))
                & (self.any_source.val() | (self.pair.val() < self.pairs.val())));
        self.slot_is_of_its_pair.ok.next = (self.walk.q.val() != Walk::Place)
            | (bit_cast::<4, 6>(self.slot_held.q.val() >> 3) < self.counts.read_data.val());
        self.fills_a_vacant_place.ok.next = (self.walk.q.val() != Walk::Store)
            | ((self.entry_row.q.val().live & self.place_bit.val()) == 0);
        self.removes_a_live_message.ok.next = (self.walk.q.val() != Walk::Removed)
            | (((self.row.val().live & self.best_bit.val()) != 0)
                & (self.row.val() == self.best_row.val()));
        self.listed_row_has_a_message.ok.next =
            !self.read_valid.q.val() | !self.key.q.val().any_source | (self.row.val().live != 0);
        self.list_leads_back.ok.next = !self.follows.q.val()
            | ((self.read_link.val().owner == self.key.q.val().endpoint)
                & (!self.read_valid.q.val()
                    | (self.befores.read_data.val() == self.read_at.q.val())));
        self.empty_list_has_no_messages.ok.next = ((self.count.q.val() != 0)
            == self.waits.q.val().any())
            & ((self.walk.q.val() != Walk::Idle)
                | ((self.linked.q.val() <= self.count.q.val())
                    & ((self.count.q.val() == 0) == (self.linked.q.val() == 0))));
        self.depth_is_within_the_places.ok.next =
            bit_cast::<17, 16>(self.count.q.val()) <= self.capacity.val();
    }
}
