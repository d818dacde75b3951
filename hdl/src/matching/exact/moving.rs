//! What moves: all look-ups by one register, and those that wait in `read` by what they clash with.

use super::Exact;
use crate::prelude::*;

#[block]
impl Exact {
    /// Which look-ups move.
    pub(super) fn move_on(&mut self) {
        self.done.next = self.settles.q.val() | self.commit.val() | self.discard.val();
        self.conflict.next =
            self.clash_compare.q.val() | self.clash_mux.q.val() | self.clash_best.q.val();
        // `end` lets the look-up in `read` past: it is done, or it holds neither a result nor anything that clashes.
        self.passes.next = self.settles.q.val() | !(self.end_full.q.val() | self.clash_end.q.val());
        self.sees.next = self.own.q.val() & !self.conflict.val();
        self.move_read.next = self.passes.val() & self.sees.val();
        self.read_free.next =
            self.move_read.val() | !(self.stands.q.val() | self.read_valid.q.val());
        self.read_takes.next =
            self.move_read.val() | (self.moves.q.val() & !self.read_valid.q.val());
        self.place_free.next =
            !self.place_valid.q.val() | (self.read_free.val() & !self.mending.q.val());
    }
}
