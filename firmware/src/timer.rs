//! The cycle counter, as a clock and as `embedded-hal`'s delay.

use crate::registers;
use abi::mgmt::{CLOCK_NS, TIME};
use embedded_hal::delay::DelayNs;

/// Cycles since reset, modulo 2^32.
pub fn now() -> u32 {
    registers::read(TIME)
}

/// Waits by the cycle counter.
pub struct Timer;

impl DelayNs for Timer {
    /// Waits at least `ns` nanoseconds of the card's nominal clock.
    fn delay_ns(&mut self, ns: u32) {
        let start = now();
        let cycles = ns.div_ceil(CLOCK_NS);
        while now().wrapping_sub(start) < cycles {}
    }
}
