//! End to end tests: host library, firmware, gates and fabric together.
//!
//! The tests are under `tests/`; this library holds what they share.

pub mod raw;
