//! Several streams of one type into one, in turn.
//!
//! ```text
//!   in_*[0] ──►┌───────────┐
//!   in_*[1] ──►│ StreamMux ├──► out_valid, out_data, out_index
//!   …       ──►│           │◄── out_ready
//!              └───────────┘
//! ```
//!
//! A word passes in the cycle in which both its source and the taker are ready; nothing is stored.
//! Sources take turns word by word, and one that has been offered stays offered until it is taken.

use super::RoundRobin;
use crate::prelude::*;

/// A contract to break, so that a test can show that its breach is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, LogicState)]
pub enum StreamMuxMutation {
    /// As designed.
    None,
    /// A source that offers loses its turn although its word wasn't taken.
    TurnsWithoutTransfer,
    /// Every source that offers is told that its word is taken.
    AllTaken,
    /// The word is another source's.
    WrongWord,
}

/// A fair multiplexer of `n` streams of words of type `T`.
#[derive(LogicBlock)]
pub struct StreamMux<T: Synth> {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Puts source 0 first.
    pub reset: Signal<In, Bit>,
    /// Which contract to break; there in [`Self::mutable`] only.
    pub mutation: Vec<Signal<In, StreamMuxMutation>>,
    /// Source `i` offers a word.
    pub in_valid: Vec<Signal<In, Bit>>,
    /// It is taken.
    pub in_ready: Vec<Signal<Out, Bit>>,
    /// The word.
    pub in_data: Vec<Signal<In, T>>,
    /// A word is offered.
    pub out_valid: Signal<Out, Bit>,
    /// It is taken.
    pub out_ready: Signal<In, Bit>,
    /// The word.
    pub out_data: Signal<Out, T>,
    /// The source that it is from.
    pub out_index: Signal<Out, Bits<8>>,
    turn: RoundRobin,
    request: Signal<Local, Bits<32>>,
    _n: usize,
    _mutable: usize,
}

impl<T: Synth> StreamMux<T> {
    /// A multiplexer of `n` streams.
    ///
    /// # Panics
    /// If `n` is 0 or above 32.
    pub fn new(n: usize) -> Self {
        Self::build(n, 0)
    }

    /// The same with the input `mutation`, for tests.
    pub fn mutable(n: usize) -> Self {
        Self::build(n, 1)
    }

    fn build(n: usize, mutable: usize) -> Self {
        StreamMux {
            clock: Signal::default(),
            reset: Signal::default(),
            mutation: (0..mutable).map(|_| Signal::default()).collect(),
            in_valid: (0..n).map(|_| Signal::default()).collect(),
            in_ready: (0..n).map(|_| Signal::default()).collect(),
            in_data: (0..n).map(|_| Signal::default()).collect(),
            out_valid: Signal::default(),
            out_ready: Signal::default(),
            out_data: Signal::default(),
            out_index: Signal::default(),
            turn: RoundRobin::new(n),
            request: Signal::default(),
            _n: n,
            _mutable: mutable,
        }
    }
}

#[module(n = self._n)]
impl<T: Synth> Logic for StreamMux<T> {
    #[hdl_gen]
    fn update(&mut self) {
        clocked!(self, clock, reset, turn);
        self.request.next = 0.into();
        for i in 0..self._n {
            self.request.next = self.request.val().replace_bit(i, self.in_valid[i].val());
        }
        self.turn.request.next = self.request.val();
        self.turn.advance.next = self.out_ready.val();
        self.out_valid.next = self.turn.valid.val();
        self.out_index.next = self.turn.index.val();
        self.out_data.next = self.in_data[0].val();
        for i in 0..self._n {
            self.in_ready[i].next = false;
            if self.turn.index.val() == i.to_bits() {
                self.in_ready[i].next = self.turn.valid.val() & self.out_ready.val();
                self.out_data.next = self.in_data[i].val();
            }
        }
        for m in 0..self._mutable {
            if self.mutation[m].val() == StreamMuxMutation::TurnsWithoutTransfer {
                self.turn.advance.next = true;
            }
            if self.mutation[m].val() == StreamMuxMutation::AllTaken {
                for i in 0..self._n {
                    self.in_ready[i].next = self.out_ready.val() & self.in_valid[i].val();
                }
            }
            if self.mutation[m].val() == StreamMuxMutation::WrongWord {
                self.out_data.next = self.in_data[0].val();
            }
        }
    }
}
