//! End to end tests: host library, firmware, gates and fabric together.
