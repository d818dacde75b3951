//! What the monitor pins of the card show: for simulators and logic analysers, never for hosts.

use crate::status::codes;

/// Widths of the fields of a command on the pin `monitor_match_command`, the least significant first: operation, endpoint, pair, any source, context,
/// match bits, ignore bits, request, slot, multi, again, append.
pub const MATCH_COMMAND_WIDTHS: [usize; 12] = [4, 8, 16, 1, 16, 64, 64, 32, 6, 1, 1, 1];

/// Widths of the fields of a reply, in the same way: found, full, index, more.
pub const MATCH_REPLY_WIDTHS: [usize; 4] = [1, 1, 16, 1];

codes! {
    /// Number of an operation on the matching lists, as the pin `monitor_match_operation` shows it.
    MatchOperation {
        /// A message has come: the oldest posted receive that matches is removed. If there is none, and the command says so, the message is appended to
        /// the unexpected.
        Arrive = 0,
        /// The unexpected message at a place is removed: its slot couldn't be written.
        Remove = 1,
        /// A receive: the earliest unexpected message that matches is removed, or the receive is posted.
        Post = 2,
        /// A posted receive is removed by its handle.
        Cancel = 3,
        /// The earliest unexpected message that matches; it stays.
        Probe = 4,
        /// Some posted receive that names a pair is removed; a step of a walk.
        TakePostedOfPair = 5,
        /// Some posted receive of an endpoint is removed; a step of a walk.
        TakePostedOfEndpoint = 6,
        /// The earliest unexpected message of a pair is removed.
        TakeUnexpectedOfPair = 7,
        /// The earliest unexpected message that matches is removed; nothing is posted.
        Claim = 8,
    }
}
