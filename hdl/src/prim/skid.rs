//! A register in a stream that cuts the paths of `valid`, `data` and `ready` alike.
//!
//! ```text
//!                       ┌───────┐
//!   in_data ──┬────────►│ head  ├──► out_data
//!             │ ┌─────┐ │       │
//!             └►│spare├►│       │
//!               └─────┘ └───────┘
//!   in_ready = spare is empty
//! ```
//!
//! `in_ready` is known a cycle before the taker's `out_ready`, so one more word may come when the
//! taker stops: the spare register holds it. One cycle of latency, a transfer in every cycle.

use crate::prelude::*;

/// A contract to break, so that a test can show that its breach is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, LogicState)]
pub enum SkidMutation {
    /// As designed.
    None,
    /// A word is taken although the spare register is full.
    SpareOverwritten,
    /// The word at the head is replaced before it is taken.
    HeadReplaced,
    /// A word that leaves the spare register is there still.
    SpareRepeated,
}

/// A stream register for words of type `T`.
#[derive(LogicBlock, Default)]
pub struct Skid<T: Synth> {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Forgets what it holds.
    pub reset: Signal<In, Bit>,
    /// Which contract to break; there in [`Self::mutable`] only.
    pub mutation: Vec<Signal<In, SkidMutation>>,
    /// A word is offered.
    pub in_valid: Signal<In, Bit>,
    /// It is taken.
    pub in_ready: Signal<Out, Bit>,
    /// The word.
    pub in_data: Signal<In, T>,
    /// A word is offered on.
    pub out_valid: Signal<Out, Bit>,
    /// It is taken.
    pub out_ready: Signal<In, Bit>,
    /// The word.
    pub out_data: Signal<Out, T>,
    head: Reg<T>,
    head_valid: Reg<Bit>,
    spare: Reg<T>,
    spare_valid: Reg<Bit>,
    _mutable: usize,
}

impl<T: Synth> Skid<T> {
    /// A register with the input `mutation`, for tests.
    pub fn mutable() -> Self {
        Skid {
            mutation: vec![Signal::default()],
            _mutable: 1,
            ..Self::default()
        }
    }
}

#[module]
impl<T: Synth> Logic for Skid<T> {
    #[hdl_gen]
    fn update(&mut self) {
        registers!(self, clock, reset, head, head_valid, spare, spare_valid);
        self.in_ready.next = !self.spare_valid.q.val();
        self.out_valid.next = self.head_valid.q.val();
        self.out_data.next = self.head.q.val();
        if self.out_ready.val() | !self.head_valid.q.val() {
            if self.spare_valid.q.val() {
                self.head.d.next = self.spare.q.val();
                self.head_valid.d.next = true;
                self.spare_valid.d.next = false;
            } else {
                self.head.d.next = self.in_data.val();
                self.head_valid.d.next = self.in_valid.val();
            }
        } else if self.in_valid.val() & !self.spare_valid.q.val() {
            self.spare.d.next = self.in_data.val();
            self.spare_valid.d.next = true;
        }
        for m in 0..self._mutable {
            if self.mutation[m].val() == SkidMutation::SpareOverwritten {
                self.in_ready.next = true;
                if self.in_valid.val() & self.spare_valid.q.val() {
                    self.spare.d.next = self.in_data.val();
                }
            }
            if (self.mutation[m].val() == SkidMutation::HeadReplaced) & self.spare_valid.q.val() {
                self.head.d.next = self.spare.q.val();
            }
            if (self.mutation[m].val() == SkidMutation::SpareRepeated) & self.spare_valid.q.val() {
                self.spare_valid.d.next = true;
            }
        }
    }
}
