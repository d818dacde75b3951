//! Of the receives that the classes of an arrival offer, `end` keeps the oldest.

use super::Exact;
use crate::prelude::*;
use crate::types::Search;

#[block]
impl Exact {
    /// The look-up in `best`.
    pub(super) fn load_best(&mut self) {
        self.walks_on.next = false;
        if self.mux_valid.q.val() & !self.mux_handle_hit.q.val().any() {
            self.walks_on.next = ((self.mux.q.val().search == Search::OfPair)
                | (self.mux.q.val().search == Search::OfEndpoint))
                & (self.cursor.q.val() != self.last_row.val());
        }
        // Every eight rows it pauses, so that what others ask needn't wait for all of them.
        self.pauses.next = self.walks_on.val() & self.cursor.q.val().get_bits::<3>(0).all();
        self.goes_on.next = self.walks_on.val() & !self.pauses.val();
        if self.moves.q.val() {
            self.best_valid.d.next = self.mux_valid.q.val() & !self.goes_on.val();
            self.best_wins.d.next = self.mux_valid.q.val()
                & !self.goes_on.val()
                & (self.mux.q.val().first | (self.mux.q.val().search != Search::Arrive));
            self.best_rivals.d.next = self.mux_valid.q.val()
                & !self.mux.q.val().first
                & (self.mux.q.val().search == Search::Arrive)
                & self.muxed.val().found;
            self.unlinks.d.next = self.mux_handle_hit.q.val().any();
            self.best.d.next = self.mux.q.val();
            self.best_found.d.next = self.muxed.val();
            self.best_found.d.next.more = self.pauses.val();
        }
    }

    /// Whether what `best` has found is better than what `end` holds.
    pub(super) fn compare_ages(&mut self) {
        self.candidate.next = self.best_found.q.val();
        self.candidate.next.rival_older =
            self.rival_age.val() < bit_cast::<54, 53>(self.best_found.q.val().age);
        self.candidate.next.single = self.best_found.q.val().head == self.best_found.q.val().tail;
        self.candidate.next.first = self.best_found.q.val().head == self.best_found.q.val().id;
        self.candidate.next.outer = (self.best_found.q.val().head == self.best_found.q.val().id)
            | (self.best_found.q.val().tail == self.best_found.q.val().id);
        self.candidate.next.link = self.links.read_data.val();
        self.candidate.next.home = self.home.val();
        // The row of handles to write is that of the receive that leaves, unless one is appended.
        self.home_handle_row.next = self.home.val().handle_row;
        self.gone_row.next = bit_cast::<16, 12>(self.home_handle_row.val()) & self.row_mask.val();
        if self.best.q.val().search != Search::Post {
            self.candidate.next.rows.handle0 = self.gone_row.val();
            self.candidate.next.rows.handle1 = self.gone_row.val();
        }
        self.candidate.next.prev = self.prevs.read_data.val();
        // Ages are compared in halves side by side, since an enable of hundreds of registers waits for it. The upper halves are
        // compared twice: as they are, and with a bit behind each that makes equal ones count as less.
        self.best_age.next = self.best_found.q.val().age;
        self.end_age.next = self.end_found.q.val().age;
        self.best_above.next = self.best_age.val().get_bits::<26>(27);
        self.end_above.next = self.end_age.val().get_bits::<26>(27);
        self.best_low.next = bit_cast::<27, 26>(self.best_above.val()) << 1;
        self.end_high.next = (bit_cast::<27, 26>(self.end_above.val()) << 1) | 1;
        self.older.next = self.best_above.val() < self.end_above.val();
        if self.best_age.val().get_bits::<27>(0) < self.end_age.val().get_bits::<27>(0) {
            self.older.next = self.best_low.val() < self.end_high.val();
        }
        self.better.next = self.best_wins.q.val()
            | (self.best_rivals.q.val() & (!self.end_found.q.val().found | self.older.val()));

        self.arriving.next = self.best_valid.q.val() & !self.stands.q.val();
    }
}
