//! Addresses that a program had from somewhere: see `fuzz_targets::addresses`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::addresses(bytes));
