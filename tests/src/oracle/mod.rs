//! The model of the card as the oracle of the gates: what the gates did is done again by the model, in their order, and everything has to be the same.
//!
//! ```text
//!  test's host ── posts, fills ───────────────────────────┐
//!       │                                                 ▼
//!  Verilated card ── pins ─► watch ── events by cycle ─► follow ── actions ─► model card
//!                                      doorbells, frames,   │  ◄── commands, numbers, frames, completions, memory ──┘
//!                                      commands, numbers    └─► the first difference, or what was compared
//! ```
//!
//! Which request or message the gates take next, nobody else can say, since it depends on their time. But *the cycle in which a command enters the
//! lists is the order of the card*, and the monitor pins show it; what enters no list (a discard, a claim that is received) shows by the
//! envelopes that it frees. Given this order the model leaves nothing open: each command to the lists, each number, each byte of each
//! frame, each completion and in the end every byte of the host's memory are determined, and compared.
//!
//! What the pins don't show (frames of a card to itself, when a block hears of a failure) is done as late as what they show allows. The book's page
//! on the model says what is compared exactly, and which decisions of time are taken from the gates, within which bounds.

mod follow;
mod memory;
mod program;
mod trouble;
mod watch;

pub use follow::{Compared, Opened, Post, Story, follow};
pub use program::{Mix, play};
pub use trouble::{Fragile, Stops};
pub use watch::{Event, Seen, Tamper, rough, watched};
