//! Reports to the processor what the table of regions refuses: in few events, and never in the way of those it has to act on.
//!
//! ```text
//!  refused ──► the last one, how many ──► told, when the last event is long enough ago
//!                                                        and no other block sends an event
//! ```
//!
//! A process can make as many wrong requests as it likes. They must not crowd the failure of a pair out of the processor's
//! queue, so one event counts all accesses that were refused since the event before.

use crate::prelude::*;
use crate::types::{RaiseEvent, RegionQuery};
use abi::event::{Cause, NO_PAIR, REFUSAL_COUNT_BIT, REFUSAL_DOMAIN_BIT, REFUSAL_RIGHTS_BIT};
use abi::times::REFUSAL_INTERVAL;

const _: () = assert!(REFUSAL_INTERVAL <= 1 << 16, "the pause has 16 bits");

/// The last refusal, and how many have not been reported.
#[block]
pub struct Refusals {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Forgets all.
    pub reset: Signal<In, Bit>,
    /// An access was refused.
    pub refused: Pulse<In, RegionQuery>,
    /// Another block sends the processor an event in this cycle.
    pub others_tell: Signal<In, Bit>,
    /// To the processor: an event of the cause `AccessRefused`.
    pub told: Pulse<Out, RaiseEvent>,

    latest: Reg<RegionQuery>,
    count: Reg<Bits<16>>,
    pause: Reg<Bits<16>>,
    tells: Signal<Local, Bit>,
}

#[block]
impl Logic for Refusals {
    fn update(&mut self) {
        self.tells.next =
            self.count.q.val().any() & !self.pause.q.val().any() & !self.others_tell.val();
        self.told.valid.next = self.tells.val();
        self.told.data.next = RaiseEvent {
            cause: Cause::AccessRefused,
            pair: NO_PAIR,
            info: bit_cast::<64, 32>(self.latest.q.val().key)
                | (bit_cast::<64, 8>(self.latest.q.val().domain) << REFUSAL_DOMAIN_BIT)
                | (bit_cast::<64, 8>(self.latest.q.val().rights) << REFUSAL_RIGHTS_BIT)
                | (bit_cast::<64, 16>(self.count.q.val()) << REFUSAL_COUNT_BIT),
            ..RaiseEvent::default()
        };

        if self.pause.q.val().any() {
            self.pause.d.next = self.pause.q.val() - 1;
        }
        if self.tells.val() {
            self.pause.d.next = REFUSAL_INTERVAL - 1;
            self.count.d.next = 0.into();
        }
        if self.refused.valid.val() {
            self.latest.d.next = self.refused.data.val();
            if self.tells.val() {
                self.count.d.next = 1.into();
            } else if !self.count.q.val().all() {
                self.count.d.next = self.count.q.val() + 1;
            }
        }
    }
}
