//! What the card's firmware decides: which objects there are, who may have one, and what the gates are told.
//!
//! ```text
//!  mailbox words ──► Firmware::serve ──► Card::control ──► tables of the gates
//!                      │ domains, endpoints, pairs, regions: heapless tables
//!  answer words  ◄─────┘
//! ```
//!
//! The host is privileged and may still be careless: every argument is checked before anything is
//! changed, and a refusal changes nothing. The crate knows no processor and no address; a [`Card`] is
//! what it runs on, so that the host tests it, and a card simulated in plain Rust runs it.
#![no_std]

mod argument;
mod card;
mod domain;
mod endpoint;
mod firmware;
mod pair;
mod region;
mod table;

pub use argument::Refusal;
pub use card::{Card, ControlTimeout, Sizes};
pub use firmware::{ACKNOWLEDGE_TIMEOUT, Firmware};
