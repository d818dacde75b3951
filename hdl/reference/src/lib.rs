//! A harness that holds the matching engine to what it promises: to the lists of the model of a card.
//!
//! ```text
//!  Traffic ── command ──┬──────────────► Block (the Verilated engine) ── reply ──┐
//!     ▲                 └─► under way ─────────────────────────────────► Lists ◄─┘
//!     └──────────────── what is live now ─────────────────────────────────┘ ─► Breach
//! ```
//!
//! [`Lists`] is the reference, from `card-model`: vectors, oldest first. It can't know where the engine's hash puts a
//! receive, so it is told by the reply of each post which side took it, says whether that side may, and
//! from then on knows the place. ([`Tables`] does know, for a given seed: by it loads are swept.) [`Harness`] keeps commands in flight with random gaps and holds replies
//! to the reference, to their order and to the promised number of cycles. The tests of the gates and
//! `posthorn bench match` both use it.

mod block;
mod harness;
mod sizes;
mod tables;
mod traffic;

pub use block::{Block, Outputs, Verilated};
pub use card_model::matching::{Command, Lists, Operation, Outcome, Receive, Reply, Sizes, Units};
pub use harness::{Breach, Done, Harness, LATENCY, Seen, Step};
pub use sizes::{SLOTS, sizes_of};
pub use tables::Tables;
pub use traffic::Traffic;
