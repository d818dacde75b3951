//! Frames from the wire: see `fuzz_targets::frames`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    fuzz_targets::frames(bytes);
});
