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
    /// A control request; taken when it is done.
    pub control: Stream<In, ControlRequest>,
    /// The seed.
    pub seed: Signal<Out, Bits<128>>,
    held: Reg<Bits<128>>,
    data: Signal<Local, Bits<320>>,
    setup: Signal<Local, MatchSetup>,
}

impl Seed {
    /// The control requests that it takes.
    pub const REQUESTS: &[Operation] = &[Operation::MatchSet];
}

#[block]
impl Logic for Seed {
    fn update(&mut self) {
        self.control.ready.next = true;
        self.data.next = self.control.data.val().data;
        self.setup.next = self.data.val().get_bits::<128>(0).into();
        if self.control.valid.val() {
            self.held.d.next = bit_cast::<128, 64>(self.setup.val().seed_low)
                | (bit_cast::<128, 64>(self.setup.val().seed_high) << 64);
        }
        self.seed.next = self.held.q.val();
    }
}
