//! A look-up that reads what an older one may yet write waits for it.
//!
//! Clashes are compared while the rows are addressed, a cycle before the look-up reads; each then moves on as the older
//! look-up does.

use super::Exact;
use crate::prelude::*;
use crate::types::Search;

#[block]
impl Exact {
    /// Which older look-ups the one in `place` clashes with, and those that the one in `read` does.
    pub(super) fn compare_rows(&mut self) {
        // Older look-ups that may yet write what the one in `place` is going to read. Beside an `Unlink` there is only its own search.
        for i in 0..5 {
            self.clash[i].younger.next = self.place_rows.q.val();
            self.clash[i].younger_tag.next = self.place.q.val().tag;
            self.clash[i].younger_post.next = self.place.q.val().search == Search::Post;
        }
        self.clash[0].valid.next = self.read_valid.q.val();
        self.clash[0].older.next = self.read_rows.q.val();
        self.clash[0].older_tag.next = self.read.q.val().tag;
        self.clash[0].older_post.next = self.read.q.val().search == Search::Post;
        self.clash[1].valid.next = self.compare_valid.q.val();
        self.clash[1].older.next = self.compare_rows.q.val();
        self.clash[1].older_tag.next = self.compare.q.val().tag;
        self.clash[1].older_post.next = self.compare.q.val().search == Search::Post;
        self.clash[2].valid.next = self.mux_valid.q.val();
        self.clash[2].older.next = self.mux_rows.q.val();
        self.clash[2].older_tag.next = self.mux.q.val().tag;
        self.clash[2].older_post.next = self.mux.q.val().search == Search::Post;
        self.clash[3].valid.next = self.best_valid.q.val();
        self.clash[3].older.next = self.best_found.q.val().rows;
        self.clash[3].older_tag.next = self.best.q.val().tag;
        self.clash[3].older_post.next = self.best.q.val().search == Search::Post;
        // The look-up in `end` stays if it isn't the last of its operation.
        self.end_remains.next = self.end_valid.q.val() & !self.end.q.val().last;
        self.clash[4].valid.next = self.end_remains.val();
        self.clash[4].older.next = self.end_found.q.val().rows;
        self.clash[4].older_tag.next = self.end.q.val().tag;
        self.clash[4].older_post.next = self.end.q.val().search == Search::Post;
        // A product for each case, so that a comparison of rows passes few levels of logic: another look-up comes into `read`; the
        // one in `read` stays while all before it move, and so do the clashes; none moves, but `end` may be done.
        self.read_loads.next = self.moves.q.val() & self.read_free.val();
        self.read_stays.next = self.moves.q.val() & !self.read_free.val();
        self.all_stand.next = !self.moves.q.val();
        self.clash_compare.d.next = (self.read_loads.val() & self.clash[0].clash.val())
            | (self.all_stand.val() & self.clash_compare.q.val());
        self.clash_mux.d.next = (self.read_loads.val() & self.clash[1].clash.val())
            | (self.read_stays.val() & self.clash_compare.q.val())
            | (self.all_stand.val() & self.clash_mux.q.val());
        self.clash_best.d.next = (self.read_loads.val() & self.clash[2].clash.val())
            | (self.read_stays.val() & self.clash_mux.q.val())
            | (self.all_stand.val() & self.clash_best.q.val());
        self.clash_end.d.next = (self.read_loads.val() & self.clash[3].clash.val())
            | (self.read_loads.val() & self.clash[4].clash.val())
            | (self.read_stays.val() & self.clash_best.q.val())
            | (self.read_stays.val() & self.clash_end.q.val() & self.end_remains.val())
            | (self.all_stand.val() & self.clash_end.q.val() & !self.done.val());
    }
}
