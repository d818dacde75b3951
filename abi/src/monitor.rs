//! What the monitor pins of the card show: for simulators and logic analysers, never for hosts.

use crate::status::codes;

codes! {
    /// Number of an operation on the matching lists, as the pin `monitor_match_operation` shows it.
    MatchOperation {
        /// A message has come: the oldest posted receive that matches is removed.
        Arrive = 0,
        /// A message found no receive and is appended to the unexpected.
        Insert = 1,
        /// A receive: the earliest unexpected message that matches is removed, or the receive is posted.
        Post = 2,
        /// A posted receive is removed by its handle.
        Cancel = 3,
        /// The earliest unexpected message that matches; it stays.
        Probe = 4,
        /// Some posted receive that names a pair is removed.
        TakePostedOfPair = 5,
        /// Some posted receive of an endpoint is removed.
        TakePostedOfEndpoint = 6,
        /// The earliest unexpected message of a pair is removed.
        TakeUnexpectedOfPair = 7,
        /// The earliest unexpected message that matches is removed; nothing is posted.
        Claim = 8,
    }
}
