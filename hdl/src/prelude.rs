//! What every file with a block in it imports: rust-hdl's names, the register, the check, and the
//! attribute that goes with them.

pub use crate::prim::{Check, Reg};
pub use kernel_macros::module;
pub use rust_hdl::prelude::*;
