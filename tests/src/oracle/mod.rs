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

/// What a card around another, its `inner` one, leaves to that: all of `CardModel` but `step`. A function that were left out would do nothing, in silence.
macro_rules! forwards_all_but_steps {
    () => {
        fn assertion(&mut self) -> Option<String> {
            self.inner.assertion()
        }

        fn set_processor_clock(&mut self, rate: sim::Rate) {
            self.inner.set_processor_clock(rate);
        }

        fn hold_processor_clock(&mut self, held: bool) {
            self.inner.hold_processor_clock(held);
        }

        fn preload(&mut self, address: u32, bytes: &[u8]) -> bool {
            self.inner.preload(address, bytes)
        }

        fn sizes(&self) -> Option<card_model::matching::Sizes> {
            self.inner.sizes()
        }

        fn start_waves(&mut self, path: &std::path::Path) -> std::io::Result<()> {
            self.inner.start_waves(path)
        }

        fn stop_waves(&mut self) {
            self.inner.stop_waves();
        }
    };
}

mod follow;
mod memory;
mod program;
mod trouble;
mod watch;

pub use follow::{Compared, Opened, Post, Story, follow};
pub use program::{Mix, play};
pub use trouble::{Fragile, Stops};
pub use watch::{Event, Seen, Tamper, rough, watched};
