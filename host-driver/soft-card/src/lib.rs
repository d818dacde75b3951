//! A card in plain Rust, for tests of host code that don't need gates.
//!
//! ```text
//!  host thread ── Transport ─► SoftFabric ─┬─ card 0: firmware-core over Gates ─┐
//!                                          ├─ card 1: …                         ├─ frames, after a latency
//!                                          └─ …                                ─┘
//! ```
//!
//! It keeps the contracts that a host can see: rings, reservation of completions, matching order, credits
//! with waiting sends, slots of unexpected messages, protection of regions, failure of pairs. The mailbox is
//! served by [`firmware_core`], so it refuses what the real firmware refuses. It says nothing about the time that
//! real gates take.
//!
//! A host is attached in one address space, or by a cable that carries bytes ([`Attachment`]).
//!
//! Time is that of the fabric, in cycles, and passes only while every attached host thread is in a call of the
//! transport. One thread runs at a time, in the order of the cards, so that what happens depends on
//! the seed alone as long as each card has one thread.

mod cable;
mod fabric;
mod gates;
mod memory;
mod pairs;
mod rings;
#[cfg(test)]
mod tests;

pub use fabric::{
    Attachment, FirmwareBehaviour, Flaw, HostThread, SoftFabric, SoftOptions, as_stranger,
};
pub use firmware_core::Sizes;
