//! Look-ups enter, through `queued` if `hash` isn't free, and are hashed.

use super::Exact;
use crate::matching::places::Rows;
use crate::prelude::*;
use crate::types::Search;

#[block]
impl Exact {
    /// The look-up in `hash`, and the rows of its key and its handle.
    pub(super) fn hash_next(&mut self) {
        self.lookup.ready.next = self.ready.q.val() & !self.queued_valid.q.val();
        self.offered.next = self.lookup.valid.val() & self.ready.q.val();
        self.hash_free.next = !self.hash_valid.q.val() | self.place_free.val();
        self.arrives.next = self.queued_valid.q.val() | self.offered.val();
        self.queued_valid.d.next = !self.hash_free.val() & self.arrives.val();
        if !self.queued_valid.q.val() {
            self.queued.d.next = self.lookup.data.val();
        }
        self.next_hash.next = self.lookup.data.val();
        if self.queued_valid.q.val() {
            self.next_hash.next = self.queued.q.val();
        }
        if self.hash_free.val() {
            self.hash_valid.d.next = self.arrives.val();
            self.hash_empty.d.next = !self.arrives.val();
            self.hash.d.next = self.next_hash.val();
        }
        self.hash_loads.next = self.hash_empty.q.val() | self.place_free.val();
        if self.hash_loads.val() {
            self.hash_key.d.next = self.next_hash.val().key;
        }
        self.key_hash.seed.next = self.seed.val();
        self.key_hash.key.next = self.hash.q.val().key;
        self.key_hash.twin.next = self.hash_key.q.val();
        self.handle_key.next = bit_cast::<40, 32>(self.hash.q.val().request)
            | (bit_cast::<40, 8>(self.hash.q.val().endpoint) << 32);
        self.handle_hash.seed.next = self.seed.val();
        self.handle_hash.handle.next = self.handle_key.val();
        // While `hash` is empty the row behind the one that a walk has come to is addressed. The slot's row of a receive that was
        // found by its handle, which comes from a memory in this cycle, has a register of its own (`slot_row`), and zeros here. So
        // one choice is left behind the hashes, by registers.
        self.of_all.next = (self.hash.q.val().search == Search::OfPair)
            | (self.hash.q.val().search == Search::OfEndpoint);
        self.walks.next = !self.hash_valid.q.val() | self.of_all.val();
        self.walk_row.next = self.behind_cursor.q.val();
        if self.hash_valid.q.val() {
            self.walk_row.next = self.cursor.q.val();
            if self.hash.q.val().first {
                self.walk_row.next = 0.into();
            }
        }
        if self.hash_valid.q.val() & self.of_all.val() & self.hash.q.val().first {
            self.cursor.d.next = 0.into();
            self.behind_cursor.d.next = 1.into();
        }
        self.next_rows.next = Rows::default();
        self.next_rows.next.key0 = self.key_hash.first.val() & self.row_mask.val();
        self.next_rows.next.key1 = self.key_hash.second.val() & self.row_mask.val();
        self.next_rows.next.handle0 = self.handle_hash.first.val() & self.row_mask.val();
        self.next_rows.next.handle1 = self.handle_hash.second.val() & self.row_mask.val();
        if !self.hash_valid.q.val() {
            self.next_rows.next.key0 = 0.into();
            self.next_rows.next.key1 = 0.into();
        }
        if self.walks.val() {
            self.next_rows.next.handle0 = self.walk_row.val();
            self.next_rows.next.handle1 = self.walk_row.val();
        }
    }
}
