//! Events of the gates, for the processor.
//!
//! ```text
//!   told_valid, told ──► Fifo, 16 events ──► event_valid, oldest
//!                    └─ no room ─► lost + 1     ◄── take
//! ```
//!
//! An event is told for one cycle and never waits: one that finds no room is counted, and gone. What an event did to its endpoint's own
//! queue is no affair of this block.

use crate::prelude::*;
use crate::prim::Fifo;
use crate::types::RaiseEvent;
use abi::mgmt::EVENTS_IN;

/// A contract to break, so that a test can show that its breach is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, LogicState)]
pub enum EventQueueMutation {
    /// As designed.
    None,
    /// An event that finds no room drives the oldest out.
    Overwrites,
    /// An event that is dropped isn't counted.
    LossNotCounted,
    /// An event is gone although it wasn't taken.
    NotKept,
}

/// A queue of events, and the count of those that it had no room for.
#[block(mutable: usize)]
pub struct EventQueue {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Empties the queue and clears the count.
    pub reset: Signal<In, Bit>,
    /// Which contract to break; there in [`Self::mutable`] only.
    #[each(mutable)]
    pub mutation: Vec<Signal<In, EventQueueMutation>>,
    /// What.
    pub told: Pulse<In, RaiseEvent>,
    /// An event waits.
    pub event_valid: Signal<Out, Bit>,
    /// The oldest.
    pub oldest: Signal<Out, RaiseEvent>,
    /// Pulse: it is done with.
    pub take: Signal<In, Bit>,
    /// Events that found no room. Wraps.
    pub lost: Signal<Out, Bits<32>>,

    #[is(Fifo::new(EVENTS_IN))]
    events: Fifo<RaiseEvent>,
    count: Reg<Bits<32>>,
    loses: Signal<Local, Bit>,
    #[is(mutable)]
    _mutable: usize,
}

impl Default for EventQueue {
    fn default() -> Self {
        Self::build(0)
    }
}

impl EventQueue {
    /// The block with the input `mutation`, for tests.
    pub fn mutable() -> Self {
        Self::build(1)
    }
}

#[block]
impl Logic for EventQueue {
    fn update(&mut self) {
        send!(
            self.events.input,
            self.told.valid.val(),
            self.told.data.val()
        );
        self.events.output.ready.next = self.take.val();
        self.event_valid.next = self.events.output.valid.val();
        self.oldest.next = self.events.output.data.val();
        self.loses.next = self.told.valid.val() & !self.events.input.ready.val();
        for m in 0..self._mutable {
            if (self.mutation[m].val() == EventQueueMutation::Overwrites) & self.loses.val() {
                self.events.output.ready.next = true;
            }
            if self.mutation[m].val() == EventQueueMutation::LossNotCounted {
                self.loses.next = false;
            }
            if (self.mutation[m].val() == EventQueueMutation::NotKept)
                & self.told.valid.val()
                & (self.told.data.val().cause == 0)
            {
                self.events.output.ready.next = true;
            }
        }
        if self.loses.val() {
            self.count.d.next = self.count.q.val() + 1;
        }
        self.lost.next = self.count.q.val();
    }
}
