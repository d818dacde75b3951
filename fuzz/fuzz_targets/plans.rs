//! Plans of faults: see `fuzz_targets::tools::plans`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    fuzz_targets::tools::plans(bytes);
});
