//! Searches by handle: a walk looks at row after row, and the slot of a receive that was found is looked up behind it.
//!
//! The result goes out meanwhile. No look-up reads until the receive is out of its queue (`mending`).

use super::Exact;
use crate::prelude::*;
use crate::types::Search;

#[block]
impl Exact {
    /// A walk goes on with the next row, and a receive that was found with its slot.
    pub(super) fn walk(&mut self) {
        // A walk is alone: all stages behind it are empty. It has found nothing in this row, and goes on with the next, at once
        // or when it is asked to.
        if self.walks_on.val() {
            self.cursor.d.next = self.behind_cursor.q.val();
            self.behind_cursor.d.next = (self.behind_cursor.q.val() + 1) & self.row_mask.val();
        }
        // A receive was found by its handle: its slot is read next, while the result goes out.
        self.unlinking.next = self.best_valid.q.val() & self.unlinks.q.val();
        self.home.next = self.homes.read_data.val();
        self.home_key_row.next = self.home.val().key_row;
        if self.unlinking.val() {
            self.unlink_way.d.next = self.home.val().key_way;
        }
        self.next_place.next = self.place.q.val();
        self.next_place.next.search = Search::Unlink;
        self.next_place.next.last = false;
        if self.hash_valid.q.val() {
            self.next_place.next = self.hash.q.val();
        }
        if self.place_free.val() {
            self.place_rows.d.next = self.next_rows.val();
            self.slot_row.d.next = 0.into();
            if self.unlinking.val() {
                self.slot_row.d.next =
                    bit_cast::<16, 12>(self.home_key_row.val()) & self.row_mask.val();
            }
            self.place_valid.d.next =
                self.hash_valid.q.val() | self.goes_on.val() | self.unlinking.val();
        }
        if self.place_free.val() & (self.hash_valid.q.val() | self.unlinking.val()) {
            self.place.d.next = self.next_place.val();
        }
        if self.place_valid.q.val()
            & self.read_free.val()
            & (self.place.q.val().search == Search::Unlink)
        {
            self.mending.d.next = true;
        }
        // The result comes so late that the look-up behind it finds the queue mended when it reads.
        self.tell.d.next = self.moves.q.val()
            & self.compare_valid.q.val()
            & (self.compare.q.val().search == Search::Unlink);
        self.mended.d.next = self.mend.q.val();
        if self.mended.q.val() {
            self.mending.d.next = false;
        }
    }
}
