//! A section that drives an output on one path only.

use super::Latch;
use hdl::prelude::*;

#[block]
impl Latch {
    pub(super) fn drive_late(&mut self) {
        if self.x.val() {
            self.o.next = self.sum.val();
        }
    }
}
