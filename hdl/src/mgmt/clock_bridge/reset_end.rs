//! Resets both sides of the clock bridge.
//!
//! ```text
//!   reset        ──┐1┌─────────────────────────
//!   card_reset   ──┘‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾\____________   this side takes nothing and does nothing
//!   asks         ────/‾‾‾‾‾‾‾‾‾‾‾‾‾\____________   ─► the other side is in reset, two of its edges later
//!   in_reset     ───────────/‾‾‾‾‾‾‾‾‾‾‾‾‾\_____   ◄─ seen to be so
//!   queue_reset  ───────────/‾‾‾‾‾‾\____________   this side's halves of the queues
//! ```
//!
//! Four phases: `asks` rises while `in_reset` is low, and falls while it is high. So each reset, of however few edges, has both
//! halves of each queue in reset at once, and a half is never reset while the other is at work. This side is released first: it can take what the
//! other does from that one's first cycle on. A reset that comes meanwhile is done when the phases of the one before are over; this side does
//! nothing all the time. A clock of the processor that stands still holds up this side of the bridge, and nothing else of the card.

use crate::prelude::*;

/// The reset of both sides.
#[block]
pub struct ResetEnd {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Resets both sides.
    pub reset: Signal<In, Bit>,
    /// Resets what this side decides, from the first cycle of `reset` until the bridge may be used again.
    pub card_reset: Signal<Out, Bit>,
    /// Resets this side's halves of the queues, while the other side is in reset.
    pub queue_reset: Signal<Out, Bit>,
    /// The other side is to be in reset.
    pub asks: Signal<Out, Bit>,
    /// The other side is in reset, as seen here.
    pub in_reset: Signal<In, Bit>,
    // None of these is reset by `reset`: they say how far the one before has come.
    #[is(Reg::new(true))]
    asking: Reg<Bit>,
    #[is(Reg::new(true))]
    wanted: Reg<Bit>,
}

#[block]
impl Logic for ResetEnd {
    fn update(&mut self) {
        self.asking.reset.next = false;
        self.wanted.reset.next = false;
        if self.asking.q.val() {
            if self.in_reset.val() & !self.reset.val() {
                self.asking.d.next = false;
                self.wanted.d.next = false;
            }
        } else if self.wanted.q.val() & !self.in_reset.val() {
            self.asking.d.next = true;
        }
        if self.reset.val() {
            self.wanted.d.next = true;
        }
        self.asks.next = self.asking.q.val();
        self.queue_reset.next = self.asking.q.val() & self.in_reset.val();
        self.card_reset.next = self.reset.val() | self.wanted.q.val();
    }
}
