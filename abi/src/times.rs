//! How long each side waits. All in cycles of the card's clock, which is 125 MHz in conversions to time.

use crate::constant::constants;

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
        /// A pair with sends unacknowledged that hears of no progress for so long sends them again; one that only waits for credit asks its peer
        /// for it: 33 µs. Each further time it waits twice as long, up to eight times: 262 µs.
        ACKNOWLEDGE_TIMEOUT: u32 = 1 << 12;
        /// So many times a pair doubles the time for which it waits.
        DOUBLINGS: u8 = 3;
        /// So often it does so before it fails with `PeerFailed`: after 55 times `ACKNOWLEDGE_TIMEOUT`, 1.8 ms.
        RETRY_LIMIT: u8 = 8;
        /// An acknowledgement waits at most so long for a message of its pair that is about to go out and can carry it: 2 µs.
        ACKNOWLEDGE_DELAY: u16 = 256;
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
        REFUSAL_INTERVAL: u32 = 1 << 14;
    }
}
