//! Several streams of one type into one, in turn.
//!
//! ```text
//!   input[0] ──►┌───────────┐
//!   input[1] ──►│ StreamMux ├──► output, out_index
//!   …        ──►│           │
//!               └───────────┘
//! ```
//!
//! A word passes in the cycle in which both its source and the taker are ready; nothing is stored.
//! Sources take turns word by word, and one that has been offered stays offered until it is taken.

use super::round_robin::RoundRobin;
use crate::prelude::*;

/// A fair multiplexer of `n` streams of words of type `T`.
#[block(n: usize)]
pub struct StreamMux<T: Synth> {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Puts source 0 first.
    pub reset: Signal<In, Bit>,
    /// Words of the sources.
    #[each(n)]
    pub input: Vec<Stream<In, T>>,
    /// The words of all.
    pub output: Stream<Out, T>,
    /// With `output`: the source of the word.
    pub out_index: Signal<Out, Bits<8>>,
    #[is(RoundRobin::new(n))]
    turn: RoundRobin,
    request: Signal<Local, Bits<32>>,
    #[is(n)]
    _n: usize,
}

impl<T: Synth> StreamMux<T> {
    /// A multiplexer of `n` streams.
    ///
    /// # Panics
    /// If `n` is 0 or above 32.
    pub fn new(n: usize) -> Self {
        Self::build(n)
    }
}

#[block(n = self._n)]
impl<T: Synth> Logic for StreamMux<T> {
    fn update(&mut self) {
        self.request.next = 0.into();
        for i in 0..self._n {
            self.request.next = self.request.val().replace_bit(i, self.input[i].valid.val());
        }
        self.turn.request.next = self.request.val();
        self.turn.advance.next = self.output.ready.val();
        self.out_index.next = self.turn.index.val();
        send!(self.output, self.turn.valid.val(), self.input[0].data.val());
        for i in 0..self._n {
            self.input[i].ready.next = false;
            if self.turn.index.val() == i.to_bits() {
                self.input[i].ready.next = self.turn.valid.val() & self.output.ready.val();
                self.output.data.next = self.input[i].data.val();
            }
        }
    }
}
