//! End to end tests: host library, firmware, gates and fabric together.
//!
//! ```text
//!  tests/e2e/*.rs ── Side, traffic ─► host library ─┐              ┌─► Verilated cards ─ fabric ─ taps
//!                 └─ raw ─ rings and mailbox by hand ┴─► Transport ─┴─► cards of the model
//! ```
//!
//! The tests are under `tests/`; this library holds what they share. They need the firmware and the models of the
//! cards, which `cargo xtask test` builds.

pub mod cards;
pub mod cut;
pub mod frames;
mod model;
pub mod oracle;
pub mod raw;
pub mod side;
pub mod traffic;
pub mod wires;
