//! What a card may have beyond what every card has.
//!
//! `Identify` tells the host which of these its card has. A flag or an opcode of a capability that the card hasn't is unknown to it: the request
//! completes with `InvalidRequest`. A mailbox command that asks for one is refused with `Unsupported`.

use crate::constant::constants;

constants! {
    /// All of them: bits of `capabilities` of `Identify`.
    CAPABILITIES {
        /// An endpoint may complete on the completion queue of another one: `completion_owner` of `OpenEndpoint`, and `endpoint` of a completion.
        CAPABILITY_SHARED_COMPLETIONS: u32 = 1 << 0;
        /// Sends may have `FLAG_ERRORS_ONLY`.
        CAPABILITY_ERRORS_ONLY: u32 = 1 << 1;
        /// Sends may have `FLAG_GATHER`.
        CAPABILITY_GATHER: u32 = 1 << 2;
        /// Sends may have `FLAG_INLINE`.
        CAPABILITY_INLINE: u32 = 1 << 3;
        /// The host may set rules: `SetRule` and `ClearRule`. Claims may have `FLAG_PAST_RULES`.
        CAPABILITY_RULES: u32 = 1 << 4;
        /// Regions may have `RIGHT_REMOTE_*`, and be granted: `Grant` and the commands after it.
        CAPABILITY_GRANTS: u32 = 1 << 6;
        /// Sends may be puts: the send ring knows `Put`.
        CAPABILITY_PUT: u32 = 1 << 7;
        /// A grant may be for one peer, or for those that are permitted. Without it each is for any peer of the domain (`GRANT_ANY_PEER`).
        CAPABILITY_SENDERS: u32 = 1 << 8;
        /// Sends may be gets: the send ring knows `Get`.
        CAPABILITY_GET: u32 = 1 << 9;
    }
}

/// Every capability.
pub const ALL: u32 = CAPABILITY_SHARED_COMPLETIONS
    | CAPABILITY_ERRORS_ONLY
    | CAPABILITY_GATHER
    | CAPABILITY_INLINE
    | CAPABILITY_RULES
    | CAPABILITY_GRANTS
    | CAPABILITY_PUT
    | CAPABILITY_SENDERS
    | CAPABILITY_GET;
