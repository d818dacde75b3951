//! The seed of the hashes, as the firmware has set it.

use crate::construct::construct;
use crate::prelude::*;
use crate::types::{ControlRequest, MatchSetup};
use abi::control::Operation;

/// A register that `MatchSet` fills.
#[derive(LogicBlock)]
pub struct Seed {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Synchronous reset.
    pub reset: Signal<In, Bit>,
    /// There is a control request.
    pub control_valid: Signal<In, Bit>,
    /// The control request.
    pub control: Signal<In, ControlRequest>,
    /// It is done.
    pub control_done: Signal<Out, Bit>,
    /// The seed.
    pub seed: Signal<Out, Bits<128>>,
    held: Reg<Bits<128>>,
    data: Signal<Local, Bits<320>>,
    setup: Signal<Local, MatchSetup>,
    match_set: Constant<Bits<8>>,
}

impl Default for Seed {
    fn default() -> Self {
        construct!({
            match_set: Constant::new(u64::from(Operation::MatchSet.code()).into()),
        } default {
            clock reset control_valid control control_done seed held data setup
        })
    }
}

#[module]
impl Logic for Seed {
    #[hdl_gen]
    fn update(&mut self) {
        registers!(self, clock, reset, held);
        self.control_done.next = self.control_valid.val();
        self.data.next = self.control.val().data;
        self.setup.next = self.data.val().get_bits::<128>(0).into();
        if self.control_valid.val() & (self.control.val().operation == self.match_set.val()) {
            self.held.d.next = bit_cast::<128, 64>(self.setup.val().seed_low)
                | (bit_cast::<128, 64>(self.setup.val().seed_high) << 64);
        }
        self.seed.next = self.held.q.val();
    }
}
