//! The posthorn command: replay of recorded applications, benchmarks, captures.

pub mod bench;
pub mod checker;
pub mod payload;
pub mod replay;
pub mod summary;
pub mod trace;
