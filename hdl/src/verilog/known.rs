//! Leaf blocks that the printer knows by their text: registers and checks.
//!
//! Every other leaf with hand-written Verilog becomes a module of its own. A register as a module
//! would make one instance of each flip-flop, so these are printed in their parent instead:
//!
//! ```text
//!            ┌───────────┐
//!   d ──────►│           │                always_ff @(posedge clock)
//!   reset ──►│ register  ├──► q    ►        if (reset) q <= VALUE;
//!   clock ──►│           │                  else       q <= d;
//!            └───────────┘
//! ```
//!
//! A block is a register if its ports are `clock`, `reset`, `d` and `q` in this order and its
//! `Logic::hdl` returns [`register`] of its reset value, and a check if its ports are `clock`,
//! `reset` and `ok` and it returns [`check`] or [`duty`] of its name. rust-hdl's own `DFF`, which has no
//! reset, is known as well. Recognition is of the exact text: a block that looks similar is
//! printed as a module, which is larger and just as right.

use super::types::parse_literal;
use num_bigint::BigInt;
use rust_hdl::prelude::{Verilog, VerilogLiteral};

/// A leaf that is printed in its parent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Known {
    /// `q` follows `d` at the clock's rising edge. With `reset`, synchronously, to `value`.
    Register { value: BigInt, reset: bool },
    /// `ok` holds at each rising edge outside reset. A solver may assume it if the user is to see to it.
    Check { name: String, duty: bool },
}

/// Text of a register with synchronous reset to `value`, which is also its initial value. For the
/// `Logic::hdl` of a block with the ports `clock`, `reset`, `d` and `q`.
pub fn register(value: &VerilogLiteral) -> Verilog {
    Verilog::Custom(format!(
        "initial begin\n  q = {value:x};\nend\nalways @(posedge clock) begin\n  \
         q <= reset ? {value:x} : d;\nend\n"
    ))
}

/// Text of a check that `ok` holds outside reset. For the `Logic::hdl` of a block with the ports
/// `clock`, `reset` and `ok`. `name` may have letters, digits and `_`.
pub fn check(name: &str) -> Verilog {
    Verilog::Custom(format!(
        "always @(posedge clock) begin\n  if (!reset && !ok) $error(\"{name}\");\nend\n"
    ))
}

/// The same for a check of what the block's user is to see to.
pub fn duty(name: &str) -> Verilog {
    check(&format!("{DUTY}{name}"))
}

/// What tells a duty from another check.
const DUTY: &str = "duty: ";

/// The leaf of this code and these ports, if it is known.
pub(crate) fn recognise(code: &Verilog, ports: &[&str]) -> Option<Known> {
    let Verilog::Custom(text) = code else {
        return None;
    };
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match ports {
        ["clock", "reset", "d", "q"] => {
            let rest = text.strip_prefix("initial begin q = ")?;
            let (value, rest) = rest.split_once("; end always @(posedge clock) begin q <= ")?;
            (rest == format!("reset ? {value} : d; end")).then_some(Known::Register {
                value: parse_literal(value)?.0,
                reset: true,
            })
        }
        ["d", "q", "clock"] => {
            let rest = text.strip_prefix("initial begin q = ")?;
            let value = rest.strip_suffix("; end always @(posedge clock) begin q <= d; end")?;
            Some(Known::Register {
                value: parse_literal(value)?.0,
                reset: false,
            })
        }
        ["clock", "reset", "ok"] => {
            let rest =
                text.strip_prefix("always @(posedge clock) begin if (!reset && !ok) $error(\"")?;
            let name = rest.strip_suffix("\"); end")?;
            Some(Known::Check {
                name: name.strip_prefix(DUTY).unwrap_or(name).to_string(),
                duty: name.starts_with(DUTY),
            })
        }
        _ => None,
    }
}
