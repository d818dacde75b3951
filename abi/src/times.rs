//! How long each side waits. All in cycles of the card's clock, which is 125 MHz in conversions to time.

use crate::constant::constants;
use crate::limits::MAX_PAIRS;

constants! {
    /// Time-outs.
    TIMES {
        /// A host waits so long for [`STATUS_READY`](crate::register::STATUS_READY), and then so long again for
        /// [`STATUS_FIRMWARE`](crate::register::STATUS_FIRMWARE): 80 ms.
        READY_TIMEOUT: u32 = 10_000_000;
        /// A host waits so long for the answer to a mailbox command: 16 ms. Most take 1,000 to 2,500 cycles.
        COMMAND_TIMEOUT: u32 = 2_000_000;
        /// The firmware waits so long for the gates to carry out one control request, and then answers `HardwareTimeout`: 2.1 ms.
        CONTROL_TIMEOUT: u32 = 1 << 18;
        /// A pair with sends unacknowledged that hears of no progress for so long sends the last of them again; one that only waits for credit asks its peer
        /// for it: 33 µs. Each further time it waits twice as long, up to four times: 131 µs. This is the time-out of a pair whose round trip wasn't measured, and
        /// the shortest that the firmware gives by itself.
        ACKNOWLEDGE_TIMEOUT: u32 = 1 << ACKNOWLEDGE_TIMEOUT_LOG2;
        /// Log2 of it.
        ACKNOWLEDGE_TIMEOUT_LOG2: u8 = 12;
        /// Log2 of the longest that the firmware gives by itself: 8.4 ms.
        DEFAULT_TIMEOUT_LOG2_MOST: u8 = 20;
        /// Log2 of the shortest that a host may choose: 8 µs.
        TIMEOUT_LOG2_LEAST: u8 = 10;
        /// Log2 of the longest that a host may choose: 2.1 s.
        TIMEOUT_LOG2_MOST: u8 = 28;
        /// So many times a pair doubles the time for which it waits.
        DOUBLINGS: u8 = 2;
        /// So often it does so before it fails with `PeerFailed`, unless the host has chosen otherwise: with `ACKNOWLEDGE_TIMEOUT` after 27 times that, 0.9 ms, and
        /// at most one scan of the pairs; after 32 times that, 1.1 ms, if its peer was slow before.
        RETRY_LIMIT: u8 = 7;
        /// Most times that a host may choose.
        RETRY_LIMIT_MOST: u8 = 15;
        /// A pair whose peer has all that it was sent, and owes it answers of gets, asks at each time-out whether the peer is there. After so many without an answer it
        /// asks for the answers again: 262 µs. A lap of a peer that answers 1024 bytes to each of 128 pairs takes 18,048 cycles. If it was to ask more often than
        /// `RETRY_LIMIT` it fails: 2.1 ms.
        ANSWER_TIMEOUTS: u8 = 8;
        /// From one pair to the next of the scan by which the gates look for time-outs that are over; a power of two. A round of it comes by each pair
        /// once, in the order of their places.
        SCAN_CYCLES: u32 = 32;
        /// An acknowledgement waits at most so long for a message that is about to go out and can carry it: 2 µs. This is the delay of a pair whose round trip wasn't
        /// measured, and the shortest that the firmware gives by itself.
        ACKNOWLEDGE_DELAY: u16 = 256;
        /// The longest that the firmware gives by itself: 33 µs.
        DEFAULT_DELAY_MOST: u16 = 1 << 12;
        /// A `Connect` without a time-out of its own ends after so long, as `TimedOut`: 67 ms.
        CONNECT_TIMEOUT: u32 = 1 << 23;
        /// The side that accepts waits so long for the confirmation, and then accepts others again: 34 ms.
        ANSWER_TIMEOUT: u32 = 1 << 22;
        /// A `Disconnect` without a time-out of its own waits so long for acknowledgements: 34 ms.
        DRAIN_TIMEOUT: u32 = 1 << 22;
        /// After that, it waits so long for the peer's answer: 17 ms.
        TELL_TIMEOUT: u32 = 1 << 21;
        /// Least interval of `WatchPeers`: 131 µs, enough for some four peers that send nothing.
        WATCH_INTERVAL_LEAST: u32 = 1 << 14;
        /// From one event [`AccessRefused`](crate::event::Cause::AccessRefused), which the firmware gets, to the next, at least: 131 µs.
        /// So it is from one event [`PeerRefused`](crate::event::Cause::PeerRefused), of whatever pair, to the next.
        REFUSAL_INTERVAL: u32 = 1 << 14;
        /// Unit of the time for which a peer is shut out: 8 µs.
        SHUT_OUT_TICK: u32 = 1 << 10;
        /// Unit of the time for which a grant lasts: 131 µs. A multiple of `SHUT_OUT_TICK`.
        GRANT_TICK: u32 = 1 << 14;
        /// After so many refused accesses a peer is shut out, unless the host has chosen otherwise,
        SHUT_OUT_LIMIT: u16 = 1024;
        /// for so many ticks: 8.4 ms.
        SHUT_OUT_TICKS: u16 = 1024;
    }
}

/// Cycles of a round of the scan for time-outs over the pairs of a card: at most, since the bound is of as many places as the next power of two.
pub const fn scan_round(pairs: u32) -> u64 {
    SCAN_CYCLES as u64 * pairs.next_power_of_two() as u64
}

/// Time-outs for which a pair waits, one after the other, before it fails with `PeerFailed`: the first, and one for each time that it tries again. One whose peer was slow before, so
/// that its first wait is longer already, waits for up to `1 << DOUBLINGS` each time.
pub const fn timeouts_until_failure(retry_limit: u8) -> u64 {
    let (mut sum, mut tries) = (0, 0);
    while tries <= retry_limit {
        sum += 1 << if tries < DOUBLINGS { tries } else { DOUBLINGS };
        tries += 1;
    }
    sum
}

/// Log2 of the time-out that the firmware gives a pair, from the cycles that a frame to the peer's firmware and its answer took: the smallest power of two that is as
/// long, from `ACKNOWLEDGE_TIMEOUT` to `2^DEFAULT_TIMEOUT_LOG2_MOST`. Two firmwares take some 2,000 cycles longer to write and to notice frames than gates
/// do to acknowledge one, so this has room.
pub const fn default_timeout_log2(round_trip: u32) -> u8 {
    let log2 = match round_trip {
        0 => 0,
        cycles => (u32::BITS - (cycles - 1).leading_zeros()) as u8,
    };
    if log2 < ACKNOWLEDGE_TIMEOUT_LOG2 {
        ACKNOWLEDGE_TIMEOUT_LOG2
    } else if log2 > DEFAULT_TIMEOUT_LOG2_MOST {
        DEFAULT_TIMEOUT_LOG2_MOST
    } else {
        log2
    }
}

/// Cycles for which acknowledgements wait at most if the firmware says so: a sixteenth of the time-out that it gives, from `ACKNOWLEDGE_DELAY` to
/// `DEFAULT_DELAY_MOST`.
pub const fn default_delay(timeout_log2: u8) -> u16 {
    let most = (DEFAULT_DELAY_MOST as u32).ilog2() as u8;
    match timeout_log2.saturating_sub(4) {
        0..8 => ACKNOWLEDGE_DELAY,
        log2 if log2 > most => DEFAULT_DELAY_MOST,
        log2 => 1 << log2,
    }
}

const _: () = assert!(ACKNOWLEDGE_DELAY == 1 << 8);
const _: () = assert!(SCAN_CYCLES.is_power_of_two());
// A lap over as many pairs as any card has, of frames of 138 beats and 3 between two, is over before an answer of it is asked for again.
const _: () = assert!(MAX_PAIRS as u32 * 141 < ANSWER_TIMEOUTS as u32 * ACKNOWLEDGE_TIMEOUT);
// A silent peer that hasn't been slow before is declared in less than a millisecond of 125,000 cycles, the last round of the scan over as many pairs as any card has included. A round is no longer
// than the first wait, so that none ends a whole round late.
const _: () = {
    let round = scan_round(MAX_PAIRS as u32);
    let waits = timeouts_until_failure(RETRY_LIMIT) * ACKNOWLEDGE_TIMEOUT as u64;
    assert!(round <= ACKNOWLEDGE_TIMEOUT as u64 && waits + round < 125_000);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_waits_for_the_sum_of_its_tries() {
        let limits = [0, 1, 2, 3, RETRY_LIMIT, RETRY_LIMIT_MOST];
        assert_eq!(limits.map(timeouts_until_failure), [1, 3, 7, 11, 27, 59]);
    }

    #[test]
    fn time_outs_and_delays_grow_with_the_round_trip_between_their_bounds() {
        for (round_trip, timeout_log2, delay) in [
            (0, 12, 256),
            (1, 12, 256),
            (4096, 12, 256),
            (4097, 13, 512),
            (8192, 13, 512),
            (8193, 14, 1024),
            (100_000, 17, 4096),
            (1_000_000, 20, 4096),
            (2_000_000, 20, 4096),
            (u32::MAX, 20, 4096),
        ] {
            let found = default_timeout_log2(round_trip);
            assert_eq!(found, timeout_log2, "{round_trip}");
            assert_eq!(default_delay(found), delay, "{round_trip}");
        }
    }
}
