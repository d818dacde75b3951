//! The firmware's file, and logs: see `fuzz_targets::tools::firmware`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    fuzz_targets::tools::firmware(bytes);
});
