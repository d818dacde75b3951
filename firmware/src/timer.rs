//! The cycle counter and the timer's interrupt, which wakes the processor and is never taken.

use crate::registers;
use abi::mgmt::{TIME, TIMER_COMPARE, TIMER_ENABLE};

/// Cycles since reset, modulo 2^32.
pub fn now() -> u32 {
    registers::read(TIME)
}

/// Wakes the processor at a cycle, at once if it has been, or never.
pub fn wake_at(cycle: Option<u32>) {
    if let Some(cycle) = cycle {
        registers::write(TIMER_COMPARE, cycle);
    }
    registers::write(TIMER_ENABLE, u32::from(cycle.is_some()));
}
