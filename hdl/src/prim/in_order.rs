//! A queue of what was asked beside a queue of what was answered.
//!
//! ```text
//!             ┌───────────────────────┐
//!   asked ───►│ ► questions, in order ├──► output, output_answer
//!   answer ──►│ ► answers, in order   │◄── awaits
//!             └───────────────────────┘
//! ```
//!
//! Answers come in the order of the questions that await one. The oldest question is offered once its answer is there, or at
//! once if it awaits none; then both leave together. Whether the question at the head `awaits` an answer is said by who reads
//! it, from `output.data`, which is that question also before it is offered. An answer may come before its question.

use super::fifo::Fifo;
use crate::prelude::*;

/// Up to `depth` questions of type `T`, and up to `answers` answers of type `A` that none has taken.
#[block(depth: usize, answers: usize)]
pub struct InOrder<T: Synth, A: Synth> {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Forgets all. No answer may be owed.
    pub reset: Signal<In, Bit>,
    /// Questions.
    pub asked: Stream<In, T>,
    /// Answers, always taken: there is a place for each that is owed.
    pub answer: Pulse<In, A>,
    /// The question at the head awaits an answer: follows from `output.data`.
    pub awaits: Signal<In, Bit>,
    /// The oldest question, once it has its answer.
    pub output: Stream<Out, T>,
    /// With `output`: the answer, if the question awaits one.
    pub output_answer: Signal<Out, A>,
    /// `output.data` is the oldest question, whether it has its answer or not.
    pub here: Signal<Out, Bit>,
    /// Questions in here.
    pub level: Signal<Out, Bits<16>>,
    #[is(Fifo::new(depth))]
    questions: Fifo<T>,
    #[is(Fifo::new(answers))]
    answers: Fifo<A>,
    answered: Signal<Local, Bit>,
    answer_has_a_place: Check,
    #[is(depth)]
    _depth: usize,
    #[is(answers)]
    _answers: usize,
}

impl<T: Synth, A: Synth> InOrder<T, A> {
    /// An empty one for `depth` questions and `answers` answers.
    ///
    /// # Panics
    /// If one of them is below 2 or above 32768.
    pub fn new(depth: usize, answers: usize) -> Self {
        Self::build(depth, answers)
    }
}

#[block(depth = self._depth, answers = self._answers)]
impl<T: Synth, A: Synth> Logic for InOrder<T, A> {
    fn update(&mut self) {
        join!(self.asked => self.questions.input);
        send!(
            self.answers.input,
            self.answer.valid.val(),
            self.answer.data.val()
        );
        self.answered.next = !self.awaits.val() | self.answers.output.valid.val();
        send!(
            self.output,
            self.questions.output.valid.val() & self.answered.val(),
            self.questions.output.data.val()
        );
        self.output_answer.next = self.answers.output.data.val();
        self.questions.output.ready.next = self.answered.val() & self.output.ready.val();
        self.answers.output.ready.next =
            self.awaits.val() & self.questions.output.valid.val() & self.output.ready.val();
        self.here.next = self.questions.output.valid.val();
        self.level.next = self.questions.level.val();
        self.answer_has_a_place.ok.next = !self.answer.valid.val() | self.answers.input.ready.val();
    }
}
