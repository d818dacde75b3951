//! The block of the page *Writing a block*: sums up the lengths of messages, a batch at a time.
//!
//! ```text
//!   input ──► Fifo ──► sum, number of long ones ──► summary, after each `batch` lengths
//! ```

#![allow(
    missing_docs,
    reason = "the LogicStruct derive makes methods without documentation"
)]

use crate::prelude::*;
use crate::prim::{Fifo, Stable};
use crate::tops::{Class, Top};
use crate::verilog::Break;
use abi::limits::EAGER_MAX;

/// What is said of a batch.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub struct Summary {
    /// Bytes of all its messages.
    pub bytes: Bits<24>,
    /// Messages that are longer than an eager one may be.
    pub long: Bits<8>,
}

#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum State {
    Adding,
    Sending,
}

/// Sums up the lengths of `batch` messages at a time.
#[block(batch: u64)]
pub struct Batches {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Forgets the batch.
    pub reset: Signal<In, Bit>,
    /// Lengths of messages, in bytes.
    pub input: Stream<In, Bits<16>>,
    /// A word for each batch.
    pub summary: Stream<Out, Summary>,
    #[is(Fifo::new(4))]
    lengths: Fifo<Bits<16>>,
    state: Reg<State>,
    sum: Reg<Summary>,
    /// Messages that the batch still lacks.
    #[is(Reg::new(batch.into()))]
    missing: Reg<Bits<8>>,
    #[is(constant(batch))]
    batch: Constant<Bits<8>>,
    is_long: Signal<Local, Bit>,
    summary_stays_offered: Stable<Summary>,
}

impl Batches {
    /// A block for batches of `batch` messages.
    ///
    /// # Panics
    /// If `batch` is 0 or above 255, which the counters hold.
    pub fn new(batch: u64) -> Self {
        assert!((1..=255).contains(&batch), "a batch of {batch} messages");
        Self::build(batch)
    }
}

#[block(batch = self.batch.val().index())]
impl Logic for Batches {
    fn update(&mut self) {
        join!(self.input => self.lengths.input);
        self.lengths.output.ready.next = self.state.q.val() == State::Adding;
        self.is_long.next = self.lengths.output.data.val() > EAGER_MAX;
        send!(
            self.summary,
            self.state.q.val() == State::Sending,
            self.sum.q.val()
        );
        match self.state.q.val() {
            State::Adding => {
                if self.lengths.output.valid.val() {
                    self.sum.d.next = Summary {
                        bytes: self.sum.q.val().bytes
                            + bit_cast::<24, 16>(self.lengths.output.data.val()),
                        long: self.sum.q.val().long + self.is_long.val(),
                    };
                    self.missing.d.next = self.missing.q.val() - 1;
                    if self.missing.q.val() == 1 {
                        self.state.d.next = State::Sending;
                    }
                }
            }
            State::Sending => {
                if self.summary.ready.val() {
                    self.sum.d.next = Summary::default();
                    self.missing.d.next = self.batch.val();
                    self.state.d.next = State::Adding;
                }
            }
        }
        set!(
            self.summary_stays_offered,
            valid = self.summary.valid.val(),
            ready = self.summary.ready.val(),
            data = self.summary.data.val()
        );
    }
}

/// Promises that a test breaks, to show that it notices.
pub fn breaks() -> Vec<Break> {
    vec![
        // A message of the longest eager length counts as long.
        Break::new("longest_counts_as_long").force_if::<Batches>(
            "is_long",
            "true",
            "lengths.output.data == 1024",
        ),
        // A sum goes on where it should begin anew.
        Break::new("sums_go_on").force_if::<Batches>("sum.d", "sum.q", "summary.ready"),
        // The first summary is sent for ever.
        Break::new("stays_with_the_first").force_if::<Batches>(
            "state.d",
            "State::Sending",
            "state.q == State::Sending",
        ),
    ]
}

/// The block as it is tested: sound, with its breaks, and with its mutants.
pub fn tops() -> Vec<Top> {
    vec![
        Top::of("batches", Class::Test, || Batches::new(3)),
        Top::broken("batches_broken", breaks, || Batches::new(3)),
        Top::mutants("batches_mutants", || Batches::new(3)),
    ]
}
