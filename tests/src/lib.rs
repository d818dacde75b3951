//! End to end tests: host library, firmware, gates and fabric together.
//!
//! The tests are under `tests/`; this library holds what they share.

pub mod raw;

use sim::Firmware;

/// The firmware as `cargo xtask firmware` has built it.
///
/// # Panics
/// If it isn't there.
pub fn firmware() -> Firmware {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../target/firmware/firmware.elf"
    );
    let elf = std::fs::read(path)
        .unwrap_or_else(|error| panic!("{path}: {error}; `cargo xtask firmware` builds it"));
    Firmware::parse(elf).unwrap_or_else(|error| panic!("{path}: {error}"))
}
