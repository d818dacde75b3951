//! Primitives: the blocks that everything else is made of.

mod check;
mod reg;

pub use check::Check;
pub use reg::Reg;
