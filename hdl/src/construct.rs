//! `construct!`: a block from the fields that need a value, and the names of those that don't; and [`constant`], for the fields that
//! are numbers.
//!
//! rust-hdl's derive needs each signal as a field of the block, so a block of any size has dozens,
//! and all but a few start from their default.

use rust_hdl::prelude::{Bits, Constant};

/// Builds `Self` with the fields given, and the fields named after `default` from `Default`.
macro_rules! construct {
    ({ $($field:ident : $value:expr),* $(,)? } default { $($name:ident)* }) => {
        Self { $($field: $value,)* $($name: ::core::default::Default::default(),)* }
    };
}
pub(crate) use construct;

/// A number of the source as it enters a kernel.
pub fn constant<const N: usize>(value: impl Into<u64>) -> Constant<Bits<N>> {
    Constant::new(value.into().into())
}
