//! The random kernels that `build/` writes.

#![expect(
    double_negations,
    clippy::all,
    reason = "written by a program, with redundancy on purpose"
)]

use crate::types::*;
use hdl::prelude::*;

include!(concat!(env!("OUT_DIR"), "/random.rs"));
