//! The language of the gates, beside rust-hdl's types: what a kernel may say, and what the attributes
//! `#[block]` and `#[module]` write for it.
//!
//! | file | idea |
//! |---|---|
//! | `part` | clock, reset and hold of what is in a block |
//! | `stream` | a stream or a pulse as one field |
//! | `term` | constants of the source in a kernel |
//! | `tree` | the kernel's text, for the printer |
//! | `write` | the write port of a memory as one field |
//!
//! A kernel's sections are methods of an `impl` with `#[block]`, which `update` calls in their order:
//!
//! ```
//! use hdl::prelude::*;
//!
//! #[block]
//! pub struct Inverter {
//!     pub level: Signal<In, Bit>,
//!     pub inverse: Signal<Out, Bit>,
//! }
//!
//! #[block]
//! impl Logic for Inverter {
//!     fn update(&mut self) {
//!         self.invert();
//!     }
//! }
//!
//! #[block]
//! impl Inverter {
//!     fn invert(&mut self) {
//!         self.inverse.next = !self.level.val();
//!     }
//! }
//! ```
//!
//! One that `update` doesn't call is an error:
//!
//! ```compile_fail
//! # use hdl::prelude::*;
//! #
//! # #[block]
//! # pub struct Inverter {
//! #     pub level: Signal<In, Bit>,
//! #     pub inverse: Signal<Out, Bit>,
//! # }
//! #
//! #[block]
//! impl Logic for Inverter {
//!     fn update(&mut self) {
//!         self.inverse.next = !self.level.val();
//!     }
//! }
//!
//! #[block]
//! impl Inverter {
//!     fn invert(&mut self) {
//!         self.inverse.next = !self.level.val();
//!     }
//! }
//! ```

mod part;
pub(crate) mod stream;
pub(crate) mod term;
mod tree;
pub(crate) mod write;

pub use part::{Part, Within};
pub use stream::{Joins, Pulse, Stream, Way, joined};
pub use term::{Code, Coded, State, Term};
pub use tree::{Tree, Value};
pub use write::Write;
