//! What the card's firmware decides: which objects there are, who may have one, what the gates are told, and how the firmwares of two cards connect
//! a pair.
//!
//! ```text
//!  commands ──► Firmware::command ─┐      ┌─► Card::control_start ──► tables of the gates
//!  answers  ◄── take_answer        ├ step ┤
//!  frames, events, time ───────────┘      └─► Card::frame_send ─────► the peer's firmware
//! ```
//!
//! It is a loop of small state machines, and [`Firmware::step`] never waits. The host is privileged and may still be careless, and a frame may say
//! anything: every argument and every frame is checked before anything is changed, and a refusal changes nothing. The crate knows no processor and no
//! address; a [`Card`] is what it runs on, so that the host tests it, and a card simulated in plain Rust runs it.
#![no_std]

#[macro_use]
mod names;

pub mod agreement;
mod argument;
mod audit;
mod bits;
mod card;
mod chacha;
mod commands;
pub mod connection;
mod domain;
mod drain;
mod endpoint;
mod exchange;
mod firmware;
mod grant;
mod handshake;
mod keys;
mod notice;
mod pair;
mod peers;
mod persistent;
mod region;
mod repeat;
mod revoked;
mod rule;
mod runs;
mod table;
mod times;
pub mod watch;

pub use abi::times::{
    ACKNOWLEDGE_TIMEOUT, ANSWER_TIMEOUT, CONNECT_TIMEOUT, CONTROL_TIMEOUT, DRAIN_TIMEOUT,
    TELL_TIMEOUT,
};
pub use argument::Refusal;
pub use card::{Break, Card, FrameWords, GateEvent, Sizes};
pub use commands::Answer;
pub use drain::{MOST_DRAINS, MOST_DRAINS_UNDER_WAY};
pub use exchange::{MOST_DISCONNECTS, MOST_HANDSHAKES};
pub use firmware::{Firmware, Waits};
pub use notice::{MOST_NOTICES, MOST_TELLINGS};
pub use revoked::{MOST_GROUPS, MOST_REVOCATIONS};
