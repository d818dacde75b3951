//! A card in plain Rust, for tests of host code that don't need gates.
//!
//! ```text
//!  host thread ── Transport ─► SoftFabric ─┬─ card 0: firmware-core over card-model ─┐
//!                                          ├─ card 1: …                              ├─ frames, after a latency
//!                                          └─ …                                     ─┘
//! ```
//!
//! Its gates are [`card_model`]'s, which is held to the real ones, and its mailbox is served by [`firmware_core`], so it refuses what the real
//! firmware refuses. It says nothing about the time that real gates take: one entry of each ring is fetched at a time, and
//! what follows from it is done at once.
//!
//! A host is attached in one address space, or by a cable that carries bytes ([`Attachment`]).
//!
//! Time is that of the fabric, in cycles, and passes only while every attached host thread is in a call of the
//! transport. One thread runs at a time, in the order of the cards, so that what happens depends on
//! the seed alone as long as each card has one thread.

mod cable;
mod fabric;
mod memory;
#[cfg(test)]
mod tests;

pub use card_model::{Break, Refused, RemoteAccess};
pub use fabric::{
    Attachment, FirmwareBehaviour, Flaw, HostThread, Passing, SoftFabric, SoftOptions, as_stranger,
};
pub use firmware_core::Sizes;
pub use memory::BusAccess;
