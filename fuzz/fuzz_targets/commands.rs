//! Commands from the host: see `fuzz_targets::commands`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    fuzz_targets::commands(bytes);
});
