//! The posthorn command: replay, benchmarks, captures.
fn main() {}
