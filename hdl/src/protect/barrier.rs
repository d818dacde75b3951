//! A change of the regions is done when the reads that began before it have ended.
//!
//! ```text
//!   control ──► Barrier ──► inner ──► Regions
//!           ◄── done when before is zero
//!   begins, ends ──► how many are under way ──► before: those of them that began before the change
//! ```
//!
//! Reads end in the order in which they begin. So when the table has changed it suffices to count down from as many as were under
//! way, and reads that begin later hold nothing up.

use crate::config::JOBS;
use crate::prelude::*;
use crate::types::ControlRequest;

const _: () = assert!(JOBS < 256, "a count has eight bits");

/// Holds the answer to a change until what it may have allowed before has ended.
#[block]
pub struct Barrier {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Nothing is under way.
    pub reset: Signal<In, Bit>,
    /// A change; taken when it is done. It may be withdrawn.
    pub control: Stream<In, ControlRequest>,
    /// It goes to the table; taken when that has changed.
    pub inner: Stream<Out, ControlRequest>,
    /// Pulse: a read begins. Whether it is allowed may not have been asked yet.
    pub begins: Signal<In, Bit>,
    /// Pulse: the oldest read has ended.
    pub ends: Signal<In, Bit>,
    /// The table has changed, and reads from before are under way.
    waits: Reg<Bit>,
    under_way: Reg<Bits<8>>,
    before: Reg<Bits<8>>,
    left: Signal<Local, Bits<8>>,
    done: Signal<Local, Bit>,
    #[is(Check::new("a_read_that_ends_has_begun"))]
    has_begun: Check,
}

#[block]
impl Logic for Barrier {
    fn update(&mut self) {
        self.left.next = self.under_way.q.val();
        if self.ends.val() {
            self.left.next = self.under_way.q.val() - 1;
        }
        self.under_way.d.next = self.left.val();
        if self.begins.val() {
            self.under_way.d.next = self.left.val() + 1;
        }
        self.has_begun.ok.next = !self.ends.val() | self.under_way.q.val().any();

        send!(
            self.inner,
            self.control.valid.val() & !self.waits.q.val(),
            self.control.data.val()
        );
        self.done.next = self.control.valid.val() & self.waits.q.val() & !self.before.q.val().any();
        self.control.ready.next = self.done.val();
        if self.ends.val() & self.before.q.val().any() {
            self.before.d.next = self.before.q.val() - 1;
        }
        if self.inner.valid.val() & self.inner.ready.val() {
            self.waits.d.next = true;
            self.before.d.next = self.left.val();
        }
        if self.done.val() | !self.control.valid.val() {
            self.waits.d.next = false;
        }
    }
}
