//! The seed of the hashes, as the firmware has set it.

use crate::prelude::*;
use crate::types::{ControlRequest, MatchSetup};
use abi::control::Operation;

/// A register that `MatchSet` fills.
#[block]
pub struct Seed {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset.
    pub reset: Signal<In, Bit>,
    /// The control request.
    pub control: Pulse<In, ControlRequest>,
    /// The control request is done.
    pub control_done: Signal<Out, Bit>,
    /// The seed.
    pub seed: Signal<Out, Bits<128>>,
    held: Reg<Bits<128>>,
    data: Signal<Local, Bits<320>>,
    setup: Signal<Local, MatchSetup>,
}

#[block]
impl Logic for Seed {
    fn update(&mut self) {
        self.control_done.next = self.control.valid.val();
        self.data.next = self.control.data.val().data;
        self.setup.next = self.data.val().get_bits::<128>(0).into();
        if self.control.valid.val() & (self.control.data.val().operation == Operation::MatchSet) {
            self.held.d.next = bit_cast::<128, 64>(self.setup.val().seed_low)
                | (bit_cast::<128, 64>(self.setup.val().seed_high) << 64);
        }
        self.seed.next = self.held.q.val();
    }
}
