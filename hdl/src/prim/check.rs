//! A claim about the design that is looked at on every cycle.
//!
//! ```text
//!           ┌─────────┐
//!   ok ────►│         │        at each rising edge outside reset: ok, or
//!   reset ─►│  Check  │          in rust-hdl's simulation  a panic that names the check
//!   clock ─►│         │          in Verilator              $error, with the path (needs --assert)
//!           └─────────┘          for a solver              assert
//!                                in synthesis              nothing
//! ```

use crate::verilog;
use rust_hdl::prelude::*;

/// Asserts that `ok` holds at every rising edge of the clock at which `reset` is low.
#[derive(Clone, Debug, LogicBlock)]
pub struct Check {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// While this is set, nothing is claimed.
    pub reset: Signal<In, Bit>,
    /// The claim.
    pub ok: Signal<In, Bit>,
    _name: &'static str,
}

impl Check {
    /// A check that reports under `name`, which says what is claimed.
    ///
    /// # Panics
    /// If `name` has anything but letters, digits and `_`.
    pub fn new(name: &'static str) -> Self {
        assert!(
            name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'),
            "the name of a check, {name:?}, may have letters, digits and `_`"
        );
        Check {
            clock: Signal::default(),
            reset: Signal::default(),
            ok: Signal::default(),
            _name: name,
        }
    }
}

impl Logic for Check {
    fn update(&mut self) {
        if self.clock.pos_edge() && !self.reset.val() {
            assert!(self.ok.val(), "check failed: {}", self._name);
        }
    }

    fn hdl(&self) -> Verilog {
        verilog::check(self._name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One cycle with these inputs.
    fn cycle(reset: bool, ok: bool) {
        let mut check = Check::new("credits_are_conserved");
        check.reset.next = reset;
        check.ok.next = ok;
        for level in [false, true] {
            check.clock.next = level.into();
            assert!(simulate(&mut check, 10));
        }
    }

    #[test]
    fn what_holds_passes_and_reset_excuses() {
        cycle(false, true);
        cycle(true, false);
    }

    #[test]
    #[should_panic(expected = "check failed: credits_are_conserved")]
    fn what_does_not_hold_is_named() {
        cycle(false, false);
    }
}
