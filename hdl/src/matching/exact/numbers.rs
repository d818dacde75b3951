//! Numbers of receives: a list of the free ones, and two that wait in registers.

use super::Exact;
use crate::prelude::*;

#[block]
impl Exact {
    /// A receive takes a number, or gives it back.
    pub(super) fn take_number(&mut self) {
        // The number for the next receive, and one behind it, stand in registers, so that `free` needn't know in the same cycle
        // whether one is taken.
        self.wants_number.next = self.numbering.val() | !self.number_valid.q.val();
        if self.wants_number.val() {
            self.number_valid.d.next = self.spare_valid.q.val() | self.free.output.valid.val();
            self.number.d.next = self.free.output.data.val();
            if self.spare_valid.q.val() {
                self.number.d.next = self.spare.q.val();
            }
            self.spare_valid.d.next = false;
        } else if self.free.output.valid.val() {
            self.spare_valid.d.next = true;
        }
        if !self.spare_valid.q.val() {
            self.spare.d.next = self.free.output.data.val();
        }
        self.free.output.ready.next = !self.spare_valid.q.val();
        self.put_free_now.d.next = self.freeing.val();
        self.put_free.d.next = self.freed.val();
        self.free.input.valid.next = self.put_free_now.q.val();
        self.free.input.data.next = self.put_free.q.val();
        self.count.d.next = self.count.q.val();
        if self.freeing.val() {
            self.count.d.next = self.count.q.val() - 1;
        }
        if self.numbering.val() {
            self.count.d.next = self.count.q.val() + 1;
        }
        self.depth.next = self.count.q.val();
    }

    /// After reset, each number becomes free.
    pub(super) fn clear(&mut self) {
        self.initialized.next = self.ready.q.val();
        if !self.ready.q.val() {
            self.put_free_now.d.next = self.clearing.q.val() <= self.last_entry.val();
            self.put_free.d.next = bit_cast::<14, 16>(self.clearing.q.val());
            self.count.d.next = 0.into();
            self.clearing.d.next = self.clearing.q.val() + 1;
            self.ready.d.next = self.clearing.q.val() == self.last_cleared.val();
        }
    }
}
