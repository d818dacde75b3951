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

const _: () = assert!(
    REFUSAL_DOMAIN_BIT == 32 && REFUSAL_RIGHTS_BIT == 40 && REFUSAL_COUNT_BIT == 48,
    "the kernel puts the fields there"
);
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
    #[is(Constant::new(blank()))]
    blank: Constant<RaiseEvent>,
    #[is(constant(REFUSAL_INTERVAL - 1))]
    pause_after: Constant<Bits<16>>,
}

/// The event, without what it says.
fn blank() -> RaiseEvent {
    RaiseEvent {
        cause: u64::from(Cause::AccessRefused.code()).into(),
        pair: u64::from(NO_PAIR).into(),
        ..RaiseEvent::default()
    }
}

#[block]
impl Logic for Refusals {
    fn update(&mut self) {
        self.tells.next =
            self.count.q.val().any() & !self.pause.q.val().any() & !self.others_tell.val();
        self.told.valid.next = self.tells.val();
        self.told.data.next = self.blank.val();
        self.told.data.next.info = bit_cast::<64, 32>(self.latest.q.val().key)
            | (bit_cast::<64, 8>(self.latest.q.val().domain) << 32)
            | (bit_cast::<64, 8>(self.latest.q.val().rights) << 40)
            | (bit_cast::<64, 16>(self.count.q.val()) << 48);

        if self.pause.q.val().any() {
            self.pause.d.next = self.pause.q.val() - 1;
        }
        if self.tells.val() {
            self.pause.d.next = self.pause_after.val();
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
