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
//! `#[block]` connects clock and reset of each register and makes it hold its value, `d = q`; in the
//! kernel `self.count.d.next = …` says when it changes.

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

#[cfg(test)]
mod tests {
    use super::*;

    /// One cycle with these inputs; the value held afterwards.
    fn cycle(reg: &mut Reg<Bits<8>>, reset: bool, d: u64) -> Bits<8> {
        reg.reset.next = reset;
        reg.d.next = d.into();
        for level in [false, true] {
            reg.clock.next = level.into();
            assert!(simulate(reg, 10));
        }
        reg.q.val()
    }

    #[test]
    fn a_register_starts_from_its_reset_value_and_returns_to_it() {
        let mut reg = Reg::new(bits::<8>(42));
        assert_eq!(reg.q.val(), 42);
        assert_eq!(cycle(&mut reg, false, 7), 7);
        assert_eq!(cycle(&mut reg, true, 9), 42);
        assert_eq!(cycle(&mut reg, false, 9), 9);
    }

    #[test]
    fn a_register_holds_between_edges() {
        let mut reg = Reg::<Bits<8>>::default();
        cycle(&mut reg, false, 5);
        reg.d.next = 6.into();
        assert!(simulate(&mut reg, 10));
        assert_eq!(reg.q.val(), 5);
    }
}
