//! Completions: one 64-byte entry of an endpoint's completion queue.
//!
//! The card writes the entry with one burst, last word last, and the phase bit is in the last word:
//! a host that sees the phase it expects sees the whole entry (rings contract: the completion is
//! written after all payload write responses have come). The phase that a fresh queue waits for is 1
//! and flips at each wrap.

use crate::constant::constants;
use crate::status::codes;

constants! {
    /// Size and flags.
    CONSTANTS {
        /// Size of a completion in bytes.
        COMPLETION_BYTES: usize = 64;
        /// `flags`: the receive, one with `FLAG_MULTI`, stays posted, and completes again.
        COMPLETION_MORE: u8 = 1 << 0;
    }
}

codes! {
    /// What kind of request a completion is of.
    CompletionKind {
        /// A send.
        Send = 1,
        /// A receive.
        Receive = 2,
        /// A cancel of a receive or of a send; only ever with `TooLate` or `InvalidRequest`.
        Cancel = 3,
        /// A probe.
        Probe = 4,
        /// A ring entry whose opcode is unknown.
        Unknown = 5,
        /// A claim.
        Claim = 6,
        /// A discard of a claimed message.
        Discard = 7,
    }
}

/// Field list of [`Completion`].
#[macro_export]
macro_rules! completion_layout {
    ($apply:ident) => {
        $apply! {
            /// Entry of a completion queue.
            Completion, CompletionView, 8 words {
                /// Match bits of the message (receives, probes and claims).
                match_bits: u64 = 64,
                /// Immediate data of the message (receives, probes and claims).
                immediate: u64 = 64,
                /// Length of the message as sent, in bytes; more than the buffer holds if truncated.
                length: u64 = 64,
                /// With `Behind`: handle of the receive that waits, or last waited, for room. Of a claim that found a message: the claim's handle.
                handle: u32 = 32,
                /// Zero.
                reserved0: u32 = 32,
                /// Zero.
                reserved1: u64 = 64,
                /// Zero.
                reserved2: u64 = 64,
                /// Handle of the request.
                request: u32 = 32,
                /// Source: the pair that the message came by, or that the send went by.
                pair: u16 = 16,
                /// Context of the message.
                context: u16 = 16,
                /// [`Status`](crate::status::Status).
                status: u8 = 8,
                /// [`CompletionKind`](crate::completion::CompletionKind).
                kind: u8 = 8,
                /// [`COMPLETION_MORE`](crate::completion::COMPLETION_MORE) or 0.
                flags: u8 = 8,
                /// Place of the endpoint whose request it is. 0 on a card without `CAPABILITY_SHARED_COMPLETIONS`.
                endpoint: u8 = 8,
                /// Zero.
                reserved3: u32 = 31,
                /// Valid in this pass of the ring.
                phase: u8 = 1,
            }
        }
    };
}

use crate::define_layout;
completion_layout!(define_layout);
