//! What the gates of a card do, in plain Rust and without their time.
//!
//! ```text
//!             registers          host memory (trait)
//!                 │                  ▲
//!  control ──►┌───▼──────────────────┴───┐──► interrupts, counters, credits
//!  requests   │ Card: one action at a    │
//!  frames ───►│ time, to its end         │──► frames, as bytes of abi::wire
//!             └───▲──────────────────────┘
//!            Schedule: which action;  Timing: what the gates decide by their time
//! ```
//!
//! One model for three uses. Rooms of it are the references of their blocks' tests: [`matching::Lists`], [`delivery::Delivery`] with
//! [`delivery::Neighbours`] of the test, [`link::screen`] and [`link::Receive`], and [`Regions`]. The whole [`Card`] is a card for whoever needs
//! one without gates, driven by a [`Schedule`]: the soft card of the host library's tests, and the cards of the firmware's (feature `firmware`:
//! `Managed`, a card as its firmware sees it). And it is the oracle of end-to-end runs: told by a [`Timing`] in which order the gates did
//! things, it says what every completion, frame and byte of memory has to be.
//!
//! The order of a card is that in which commands enter its lists. A room is a file, as a block of the gates is.

mod breaks;
mod card;
mod control;
mod counters;
pub mod delivery;
mod endpoints;
mod grants;
pub mod link;
#[cfg(feature = "firmware")]
mod managed;
pub mod matching;
pub mod memory;
mod mint;
mod output;
mod peer_refusals;
mod regions;
mod schedule;
pub mod sends;
mod shut_out;

pub use breaks::Break;
pub use card::{Card, CardSizes, Credits, Timing, Untimed};
pub use counters::Counters;
pub use endpoints::{Endpoints, Entry, Raised};
pub use grants::{Grants, Refused};
#[cfg(feature = "firmware")]
pub use managed::{Managed, Persistent};
pub use mint::Mint;
pub use output::{Answered, Output, Reason, Update};
pub use peer_refusals::{PeerRefusals, Told};
pub use regions::{Access, Regions, RemoteAccess};
pub use schedule::{Action, InTurn, Schedule, Seeded};
pub use shut_out::ShutOuts;
