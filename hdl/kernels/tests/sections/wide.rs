//! A section with a constant that doesn't fit.

use super::{LIMIT, Wide};
use hdl::prelude::*;

#[block]
impl Wide {
    pub(super) fn widen(&mut self) {
        if self.x.val() {
            self.sum.next = self.a.val() + LIMIT;
        }
        self.o.next = (LIMIT + 400).into();
    }
}
