//! Lets a card come out of reset by itself.
//!
//! ```text
//!   reset ──►│ PowerOnReset │──► card_reset
//!
//!   power on or reset ──┐ CYCLES ┌────
//!   card_reset  ‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾‾\_____
//! ```
//!
//! The counter's initial value is its reset value, so power-on and `reset` have the same effect:
//! `card_reset` is high at first and stays so for [`CYCLES`] edges after the last one with `reset`.
//! It rises with `reset`, in the same cycle, so that the card takes nothing at the edge that resets it. One edge is enough.

use crate::prelude::*;

/// Edges between the release of the reset and that of the card.
pub const CYCLES: u64 = 15;

/// Reset of the card, from power-on or from outside.
#[block]
pub struct PowerOnReset {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Reset from outside: synchronous, active high, may stay low for ever.
    pub reset: Signal<In, Bit>,
    /// Reset of the card: synchronous, active high.
    pub card_reset: Signal<Out, Bit>,
    elapsed: Reg<Bits<4>>,
    #[is(Reg::new(true))]
    held: Reg<Bit>,
}

#[block]
impl Logic for PowerOnReset {
    fn update(&mut self) {
        if self.elapsed.q.val() == CYCLES - 1 {
            self.held.d.next = false;
        } else {
            self.elapsed.d.next = self.elapsed.q.val() + 1;
        }
        self.card_reset.next = self.held.q.val() | self.reset.val();
    }
}
