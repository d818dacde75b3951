//! The processor's end of the clock bridge: one load at a time, and nothing of an old program for a new one.
//!
//! ```text
//!   start ──────────► running?              held = not running, and nothing under way
//!   words ──► not running? ──► loader
//!   access ─► running, no load waits? ──► leaving ─┊─►
//!   answer ◄─ running? ◄── returned ◄──────────────┊──
//! ```

use crate::prelude::*;
use crate::types::{LoaderWord, RegisterAccess};

/// The processor's end.
#[block]
pub struct ProcessorEnd {
    /// Rising edge counts: the processor's clock.
    pub clock: Signal<In, Clock>,
    /// Nothing is under way.
    pub reset: Signal<In, Bit>,
    /// The processor runs.
    pub start: Signal<In, Bit>,
    /// It doesn't, and nothing of it is under way.
    pub held: Signal<Out, Bit>,
    /// Words for the memory.
    pub words: Stream<In, LoaderWord>,
    /// A word for the memory; the processor is held.
    pub loader: Pulse<Out, LoaderWord>,
    /// Accesses of the processor.
    pub access: Stream<In, RegisterAccess>,
    /// The same, on their way.
    pub leaving: Stream<Out, RegisterAccess>,
    /// All that left have arrived.
    pub all_taken: Signal<In, Bit>,
    /// Answers of loads.
    pub returned: Stream<In, Bits<32>>,
    /// The same, for the program that asked.
    pub answer: Pulse<Out, Bits<32>>,
    /// A load isn't answered yet.
    waits: Reg<Bit>,
    may_leave: Signal<Local, Bit>,
    leaves: Signal<Local, Bit>,
    #[is(Check::new("an_answer_is_awaited"))]
    awaited: Check,
}

#[block]
impl Logic for ProcessorEnd {
    fn update(&mut self) {
        self.may_leave.next = self.start.val() & !self.waits.q.val();
        self.leaves.next = self.access.valid.val() & self.may_leave.val();
        send!(self.leaving, self.leaves.val(), self.access.data.val());
        self.access.ready.next = self.may_leave.val() & self.leaving.ready.val();
        if self.returned.valid.val() {
            self.waits.d.next = false;
        }
        if self.leaves.val() & self.leaving.ready.val() & !self.access.data.val().store {
            self.waits.d.next = true;
        }
        self.returned.ready.next = true;
        send!(
            self.answer,
            self.returned.valid.val() & self.start.val(),
            self.returned.data.val()
        );
        self.held.next = !self.start.val() & !self.waits.q.val() & self.all_taken.val();
        self.words.ready.next = !self.start.val();
        send!(
            self.loader,
            self.words.valid.val() & !self.start.val(),
            self.words.data.val()
        );
        self.awaited.ok.next = !self.returned.valid.val() | self.waits.q.val();
    }
}
