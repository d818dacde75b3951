//! A rule that a block's user keeps, looked at on every cycle.
//!
//! ```text
//!           ┌─────────┐
//!   ok ────►│         │        at each rising edge outside reset: ok, or
//!   reset ─►│  Duty   │          in simulation   what a `Check` does
//!   clock ─►│         │          for a solver    the rule is assumed
//!           └─────────┘          in synthesis    nothing
//! ```
//!
//! A `Check` is a claim about what the block does, a `Duty` about what it is given: a command only while it is ready, an
//! entry only while there is room. In simulation the block has its user, and both must hold. In a proof of the block alone
//! its inputs may be anything that its duties allow, so a duty speaks of inputs and outputs, never of what the block could
//! get wrong by itself. A proof of the user doesn't show that it keeps the duties of a block inside: they are assumed there
//! too.

use crate::verilog;
use rust_hdl::prelude::*;

/// Asserts, or lets a solver assume, that `ok` holds at every rising edge of the clock at which `reset` is
/// low.
#[derive(Clone, Debug, LogicBlock)]
pub struct Duty {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// While this is set, nothing is asked.
    pub reset: Signal<In, Bit>,
    /// The rule is kept.
    pub ok: Signal<In, Bit>,
    _name: &'static str,
}

impl Duty {
    /// A duty whose breach is reported under `name`.
    ///
    /// # Panics
    /// If `name` has anything but letters, digits and `_`.
    pub fn new(name: &'static str) -> Self {
        assert!(
            name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'),
            "the name of a duty, {name:?}, may have letters, digits and `_`"
        );
        Duty {
            clock: Signal::default(),
            reset: Signal::default(),
            ok: Signal::default(),
            _name: name,
        }
    }
}

impl Logic for Duty {
    fn update(&mut self) {
        if self.clock.pos_edge() && !self.reset.val() {
            assert!(self.ok.val(), "duty not done: {}", self._name);
        }
    }

    fn hdl(&self) -> Verilog {
        verilog::duty(self._name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prelude::{Check, module};
    use crate::verilog::{Options, Target, generate};

    #[derive(LogicBlock)]
    struct Adder {
        pub clock: Signal<In, Clock>,
        pub reset: Signal<In, Bit>,
        pub addend: Signal<In, Bits<4>>,
        pub sum: Signal<Out, Bits<4>>,
        small_addend: Duty,
        no_overflow: Check,
    }

    #[module]
    impl Logic for Adder {
        #[hdl_gen]
        fn update(&mut self) {
            clocked!(self, clock, reset, small_addend, no_overflow);
            self.sum.next = self.addend.val() + 1;
            self.small_addend.ok.next = self.addend.val() < 15;
            self.no_overflow.ok.next = self.addend.val() + 1 != 0;
        }
    }

    #[test]
    fn a_solver_assumes_duties_and_proves_checks() {
        let text = |target| {
            let adder = Adder {
                clock: Signal::default(),
                reset: Signal::default(),
                addend: Signal::default(),
                sum: Signal::default(),
                small_addend: Duty::new("small_addend"),
                no_overflow: Check::new("no_overflow"),
            };
            let options = Options::new("adder").target(target);
            generate(&adder, &options).expect("it is sound").text
        };
        let solver = text(Target::Formal);
        assert!(solver.contains("small_addend: assume ("), "{solver}");
        assert!(solver.contains("no_overflow: assert ("), "{solver}");
        let simulation = text(Target::Simulation);
        assert!(
            simulation.contains("small_addend: assert ("),
            "{simulation}"
        );
        assert!(simulation.contains("$error(\"%m: small_addend\")"));
        assert!(!text(Target::Synthesis).contains("small_addend"));
    }

    #[test]
    #[should_panic(expected = "duty not done: small_addend")]
    fn a_breach_is_named() {
        let mut duty = Duty::new("small_addend");
        duty.ok.next = false;
        for level in [false, true] {
            duty.clock.next = level.into();
            assert!(simulate(&mut duty, 10));
        }
    }
}
