//! The language of the gates, beside rust-hdl's types: what a kernel may say, and what the attributes
//! `#[block]` and `#[module]` write for it.
//!
//! | file | idea |
//! |---|---|
//! | `part` | clock, reset and hold of what is in a block |
//! | `stream` | a stream or a pulse as one field |
//! | `term` | constants of the source in a kernel |
//! | `tree` | the kernel's text, for the printer |

mod part;
pub(crate) mod stream;
mod term;
mod tree;

pub use part::{Part, Within};
pub use stream::{Joins, Pulse, Stream, Way, joined};
pub use term::{Code, Coded, State, Term};
pub use tree::{Tree, Value};
