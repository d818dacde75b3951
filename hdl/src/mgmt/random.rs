//! Random words for the firmware: cookies, key tags.
//!
//! ```text
//!   seed ─► xor ─► state ─► word       state: Marsaglia's xorshift, 13, 17, 5, once a cycle
//! ```
//!
//! A xorshift generator of 32 bits (G. Marsaglia, "Xorshift RNGs", 2003) that steps in every cycle.
//! It starts from the strap, so two cards differ and a simulation repeats. On a board the time at which a
//! word is read depends on the host, so the next word can't be told from the last. It is no
//! cryptographic source.

use crate::prelude::*;

/// What the seed is combined with, so that small seeds start far apart: 2^32 divided by the golden
/// ratio.
const SPREAD: u64 = 0x9e37_79b9;

/// The generator.
#[block]
pub struct Random {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Starts again from the seed.
    pub reset: Signal<In, Bit>,
    /// Where to start; constant.
    pub seed: Signal<In, Bits<32>>,
    /// A word, another one in each cycle. Never 0, after the first cycle.
    pub word: Signal<Out, Bits<32>>,
    state: Reg<Bits<32>>,
    start: Signal<Local, Bits<32>>,
    one: Signal<Local, Bits<32>>,
    two: Signal<Local, Bits<32>>,
}

#[block]
impl Logic for Random {
    fn update(&mut self) {
        // Zero is the state that the generator would stay in: it means "not started".
        self.start.next = self.state.q.val();
        if !self.state.q.val().any() {
            self.start.next = self.seed.val() ^ SPREAD;
            if self.seed.val() == SPREAD {
                self.start.next = SPREAD;
            }
        }
        self.one.next = self.start.val() ^ (self.start.val() << 13);
        self.two.next = self.one.val() ^ (self.one.val() >> 17);
        self.state.d.next = self.two.val() ^ (self.two.val() << 5);
        self.word.next = self.state.q.val();
    }
}
