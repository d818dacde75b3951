//! What the monitor pins of the card show: for simulators and logic analysers, never for hosts.

use crate::status::codes;

/// Widths of the fields of a command on the pin `monitor_match_command`, the least significant first: operation, endpoint, pair, any source, context,
/// match bits, ignore bits, request, slot, multi, again, append.
pub const MATCH_COMMAND_WIDTHS: [usize; 12] = [4, 8, 16, 1, 16, 64, 64, 32, 6, 1, 1, 1];

/// Widths of the fields of a reply, in the same way: found, full, index, more.
pub const MATCH_REPLY_WIDTHS: [usize; 4] = [1, 1, 16, 1];

/// Widths of the fields on the pin `monitor_unit`, in the same way: pair, units that it has with this one, the unit.
pub const PLACE_UNIT_WIDTHS: [usize; 3] = [16, 4, 8];

/// What the pin `monitor_unit` shows, or an engine is told, of a pair's unit of places.
pub const fn place_unit(pair: u16, count: u16, unit: u16) -> u64 {
    let [pair_bits, count_bits, _] = PLACE_UNIT_WIDTHS;
    pair as u64 | (count as u64) << pair_bits | (unit as u64) << (pair_bits + count_bits)
}

/// Pair, count and unit of [`place_unit`].
pub const fn place_unit_fields(bits: u64) -> (u16, u16, u16) {
    let [pair_bits, count_bits, _] = PLACE_UNIT_WIDTHS;
    let count = bits >> pair_bits & ((1 << count_bits) - 1);
    (
        bits as u16,
        count as u16,
        (bits >> (pair_bits + count_bits)) as u16,
    )
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_of_places_survives_its_bits() {
        let bits = place_unit(0xffff, 8, 0xa5);
        assert_eq!(bits, 0xa5_8ffff_u64);
        assert_eq!(place_unit_fields(bits), (0xffff, 8, 0xa5));
    }
}
