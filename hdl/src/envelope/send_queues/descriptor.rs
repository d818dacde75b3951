//! What is kept of a send until it ends.

#![allow(
    missing_docs,
    reason = "the LogicStruct derive makes methods without documentation"
)]

use crate::prelude::*;
use crate::types::Segments;

/// A send that hasn't ended.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct Descriptor {
    pub context: Bits<16>,
    /// At most `EAGER_MAX`.
    pub length: Bits<11>,
    /// It completes only on error.
    pub errors_only: Bit,
    /// It is to find a receive posted.
    pub ready: Bit,
    /// It is a put or a get, which take no credit.
    pub put: Bit,
    /// It is a get: `address` and `key` are of the buffer of its answer.
    pub get: Bit,
    /// The payload is here: in `address`, `key` and the key of the second segment, of which it has none.
    pub inline: Bit,
    pub request: Bits<32>,
    pub match_bits: Bits<64>,
    pub immediate: Bits<64>,
    pub address: Bits<64>,
    pub key: Bits<32>,
    /// `length` counts these too.
    pub segments: Segments,
}
