//! A register in a stream that cuts the paths of `valid`, `data` and `ready` alike.
//!
//! ```text
//!                       ┌───────┐
//!   input ────┬────────►│ head  ├──► output
//!             │ ┌─────┐ │       │
//!             └►│spare├►│       │
//!               └─────┘ └───────┘
//!   input.ready = spare is empty
//! ```
//!
//! `input.ready` is known a cycle before the taker's `output.ready`, so one more word may come when the
//! taker stops: the spare register holds it. One cycle of latency, a transfer in every cycle.

use crate::prelude::*;

/// A stream register for words of type `T`.
#[block]
pub struct Skid<T: Synth> {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Forgets the words inside.
    pub reset: Signal<In, Bit>,
    /// Words that come.
    pub input: Stream<In, T>,
    /// The same words, a cycle later or more.
    pub output: Stream<Out, T>,
    head: Reg<T>,
    head_valid: Reg<Bit>,
    spare: Reg<T>,
    spare_valid: Reg<Bit>,
}

#[block]
impl<T: Synth> Logic for Skid<T> {
    fn update(&mut self) {
        self.input.ready.next = !self.spare_valid.q.val();
        send!(self.output, self.head_valid.q.val(), self.head.q.val());
        if self.output.ready.val() | !self.head_valid.q.val() {
            if self.spare_valid.q.val() {
                self.head.d.next = self.spare.q.val();
                self.head_valid.d.next = true;
                self.spare_valid.d.next = false;
            } else {
                self.head.d.next = self.input.data.val();
                self.head_valid.d.next = self.input.valid.val();
            }
        } else if self.input.valid.val() & !self.spare_valid.q.val() {
            self.spare.d.next = self.input.data.val();
            self.spare_valid.d.next = true;
        }
    }
}
