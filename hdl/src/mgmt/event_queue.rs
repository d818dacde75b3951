//! Events of the gates, for the processor.
//!
//! ```text
//!   told_valid, told ──► Fifo, 16 events ──► event_valid, oldest
//!                    └─ no room ─► lost + 1     ◄── take
//! ```
//!
//! An event comes as a pulse and never waits: one that finds no room is counted as lost. The endpoint's own event queue is
//! `host::Events`, which this block doesn't touch.

use crate::prelude::*;
use crate::prim::Fifo;
use crate::types::RaiseEvent;
use abi::mgmt::EVENTS_IN;

/// A queue of events, and the count of those that it had no room for.
#[block]
pub struct EventQueue {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Empties the queue and clears the count.
    pub reset: Signal<In, Bit>,
    /// What.
    pub told: Pulse<In, RaiseEvent>,
    /// An event waits.
    pub event_valid: Signal<Out, Bit>,
    /// The oldest.
    pub oldest: Signal<Out, RaiseEvent>,
    /// Pulse: the oldest event leaves the queue.
    pub take: Signal<In, Bit>,
    /// Events that found no room. Wraps.
    pub lost: Signal<Out, Bits<32>>,

    #[is(Fifo::new(EVENTS_IN))]
    events: Fifo<RaiseEvent>,
    count: Reg<Bits<32>>,
    loses: Signal<Local, Bit>,
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
        if self.loses.val() {
            self.count.d.next = self.count.q.val() + 1;
        }
        self.lost.next = self.count.q.val();
    }
}
