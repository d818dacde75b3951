//! The posthorn command: replay of recorded applications, benchmarks, captures.

pub mod bench;
pub mod checker;
pub mod explain;
pub mod info;
pub mod payload;
pub mod replay;
pub mod soak;
pub mod stats;
pub mod summary;
pub mod trace;
