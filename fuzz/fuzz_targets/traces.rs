//! Traces: see `fuzz_targets::tools::traces`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    fuzz_targets::tools::traces(bytes);
});
