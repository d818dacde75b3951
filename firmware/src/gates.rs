//! The gates, as the firmware's decisions see them.
//!
//! ```text
//!  CONTROL_DATA ◄─ data, then CONTROL_START ◄─ operation, index ─► gates
//!  CONTROL_BUSY ─► 0 ─► CONTROL_RESULT
//! ```

use abi::control::{DATA_WORDS, Operation};
use abi::mgmt::{
    CONTROL_BUSY, CONTROL_DATA, CONTROL_RESULT, CONTROL_START, MAC, RANDOM, SIZE_WORDS, SIZES,
};
use embedded_hal::delay::DelayNs;
use firmware::registers::{read, read_pair, write};
use firmware::timer::{self, Timer};
use firmware_core::{Card, ControlTimeout, Sizes};

/// Cycles that the gates are given for a control request. The longest ones wait for the last memory accesses of an endpoint.
const CONTROL_CYCLES: u32 = 1 << 18;
/// Nanoseconds between two looks at whether they are done.
const POLL_NS: u32 = 160;

/// The gates of this card.
pub struct Gates {
    timer: Timer,
}

impl Gates {
    /// The gates. There is one set of them, so this is called once.
    pub fn new(timer: Timer) -> Self {
        Self { timer }
    }

    fn await_idle(&mut self) -> Result<(), ControlTimeout> {
        let start = timer::now();
        while read(CONTROL_BUSY) != 0 {
            if timer::now().wrapping_sub(start) > CONTROL_CYCLES {
                return Err(ControlTimeout);
            }
            self.timer.delay_ns(POLL_NS);
        }
        Ok(())
    }
}

impl Card for Gates {
    fn control(
        &mut self,
        operation: Operation,
        index: u16,
        data: &[u64],
    ) -> Result<u64, ControlTimeout> {
        // One that was given up may still be under way.
        self.await_idle()?;
        let words = data.iter().copied().chain(core::iter::repeat(0));
        for (word, offset) in words.take(DATA_WORDS).zip((CONTROL_DATA..).step_by(8)) {
            write(offset, word as u32);
            write(offset + 4, (word >> 32) as u32);
        }
        let start = u32::from(operation.code()) | u32::from(index) << 16;
        write(CONTROL_START, start);
        self.await_idle()?;
        Ok(read_pair(CONTROL_RESULT))
    }

    fn random(&mut self) -> u32 {
        read(RANDOM)
    }

    fn mac(&self) -> u64 {
        read_pair(MAC)
    }

    fn sizes(&self) -> Sizes {
        let mut words = [0; SIZE_WORDS];
        for (word, offset) in words.iter_mut().zip((SIZES..).step_by(4)) {
            *word = read(offset);
        }
        let [endpoints, pairs, posted, unexpected, regions] = words;
        Sizes {
            endpoints,
            pairs,
            posted,
            unexpected,
            regions,
        }
    }
}
