//! Both tables are read: the rows of the look-up in `place`, or once more those of the one in `read`.

use super::Exact;
use crate::prelude::*;

#[block]
impl Exact {
    /// The look-up in `read`, and the rows that are addressed.
    pub(super) fn read_next(&mut self) {
        self.addressed.next = self.place_rows.q.val();
        self.addressed.next.key0 = self.place_rows.q.val().key0 | self.slot_row.q.val();
        self.addressed.next.key1 = self.place_rows.q.val().key1 | self.slot_row.q.val();
        self.wanted.next = self.addressed.val();
        // Whether the look-up in `read` moves is known too late to say which row is read. One that stays has its rows read again in
        // the next cycle, and one that comes into `read` meanwhile in the cycle after it has come.
        if self.repeat.q.val() {
            self.wanted.next = self.read_rows.q.val();
        }
        self.own.d.next = self.repeat.q.val();
        self.repeat.d.next =
            self.read_valid.q.val() & (self.own.q.val() | self.conflict.val() | !self.passes.val());
        if self.read_free.val() {
            self.read_valid.d.next = self.place_valid.q.val() & !self.mending.q.val();
            self.own.d.next = !self.repeat.q.val();
            self.repeat.d.next =
                self.repeat.q.val() & self.place_valid.q.val() & !self.mending.q.val();
        }
        if self.read_takes.val() {
            self.read.d.next = self.place.q.val();
            self.read_rows.d.next = self.addressed.val();
        }
    }

    /// The ways get the rows to read.
    pub(super) fn address(&mut self) {
        self.key_same[0].read_row.next = self.wanted.val().key0;
        self.key_same[1].read_row.next = self.wanted.val().key1;
        self.handle_same[0].read_row.next = self.wanted.val().handle0;
        self.handle_same[1].read_row.next = self.wanted.val().handle1;
        for i in 0..3 {
            self.key_way[i].read_row.next = self.wanted.val().key0;
            self.handle_way[i].read_row.next = self.wanted.val().handle0;
            self.key_way[i + 3].read_row.next = self.wanted.val().key1;
            self.handle_way[i + 3].read_row.next = self.wanted.val().handle1;
            self.key_way[i].same_old.next = self.key_same[0].in_old.val();
            self.key_way[i].same_last.next = self.key_same[0].in_last.val();
            self.key_way[i].same_now.next = self.key_same[0].in_now.val();
            self.key_way[i + 3].same_old.next = self.key_same[1].in_old.val();
            self.key_way[i + 3].same_last.next = self.key_same[1].in_last.val();
            self.key_way[i + 3].same_now.next = self.key_same[1].in_now.val();
            self.handle_way[i].same_old.next = self.handle_same[0].in_old.val();
            self.handle_way[i].same_last.next = self.handle_same[0].in_last.val();
            self.handle_way[i].same_now.next = self.handle_same[0].in_now.val();
            self.handle_way[i + 3].same_old.next = self.handle_same[1].in_old.val();
            self.handle_way[i + 3].same_last.next = self.handle_same[1].in_last.val();
            self.handle_way[i + 3].same_now.next = self.handle_same[1].in_now.val();
        }
    }
}
