//! What the matching engine promises, in plain Rust, and a harness that holds the gates to it.
//!
//! ```text
//!  Traffic ── command ──┬──────────────► Block (the Verilated engine) ── reply ──┐
//!     ▲                 └─► under way ─────────────────────────────────► Lists ◄─┘
//!     └──────────────── what is live now ─────────────────────────────────┘ ─► Breach
//! ```
//!
//! [`Lists`] is the reference: vectors, oldest first. It can't know where the engine's hash puts a
//! receive, so it is told by the reply of each post which side took it, says whether that side may, and
//! from then on knows the place. ([`Tables`] does know, for a given seed: by it loads are swept.) [`Harness`] keeps commands in flight with random gaps and holds replies
//! to the reference, to their order and to the promised number of cycles. The tests of the gates and
//! `posthorn bench match` both use it.

mod block;
mod command;
mod harness;
mod lists;
mod sizes;
mod tables;
mod traffic;

pub use block::{Block, Outputs, Verilated};
pub use command::{Command, Operation, Reply};
pub use harness::{Breach, Done, Harness, LATENCY, Seen, Step};
pub use lists::{Class, Lists, Outcome, Receive, has_class, has_room};
pub use sizes::{SLOTS, Sizes};
pub use tables::Tables;
pub use traffic::Traffic;
