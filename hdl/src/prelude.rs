//! What every file with a block in it imports: rust-hdl's names, the register, the check, streams, and the
//! attributes that go with them.

pub use crate::language::stream::{Pulse, Stream};
pub use crate::language::term::constant;
pub use crate::language::write::Write;
pub use crate::prim::check::Check;
pub use crate::prim::reg::Reg;
pub use kernel_macros::{block, module};
pub use rust_hdl::prelude::*;
