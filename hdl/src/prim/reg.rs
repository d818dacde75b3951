//! The register: the only block of this design that holds state across a clock edge, memories
//! excepted.
//!
//! ```text
//!           ┌─────────┐
//!   d ─────►│         │
//!   reset ─►│   Reg   ├───► q       at each rising edge:  q = reset ? RESET_VALUE : d
//!   clock ─►│         │             at power-up:          q = RESET_VALUE
//!           └─────────┘
//! ```
//!
//! In a kernel, `registers!(self, clock, reset, count, state)` wires the registers up and holds
//! their values; `self.count.d.next = …` then says when they change.

use crate::verilog;
use rust_hdl::prelude::*;

/// A register of type `T` with synchronous reset. The reset value is the initial value as well.
#[derive(Clone, Debug, LogicBlock)]
pub struct Reg<T: Synth> {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// At an edge where this is set, `q` takes the reset value.
    pub reset: Signal<In, Bit>,
    /// Value that `q` takes at the next edge.
    pub d: Signal<In, T>,
    /// The value held.
    pub q: Signal<Out, T>,
    _reset_value: T,
}

impl<T: Synth> Reg<T> {
    /// A register that starts from `reset_value`.
    pub fn new(reset_value: T) -> Self {
        Reg {
            clock: Signal::default(),
            reset: Signal::default(),
            d: Signal::default(),
            q: Signal::new_with_default(reset_value),
            _reset_value: reset_value,
        }
    }
}

/// A register that starts from `T::default()`: zero, false, the first variant.
impl<T: Synth> Default for Reg<T> {
    fn default() -> Self {
        Reg::new(T::default())
    }
}

impl<T: Synth> Logic for Reg<T> {
    fn update(&mut self) {
        if self.clock.pos_edge() {
            self.q.next = if self.reset.val() {
                self._reset_value
            } else {
                self.d.val()
            };
        }
    }

    fn connect(&mut self) {
        self.q.connect();
    }

    fn hdl(&self) -> Verilog {
        verilog::register(&self._reset_value.verilog())
    }
}
