//! A question and its answer: they come beside each other, in order, and an answer that comes first waits.

use super::{Answer, State};
use crate::envelope::asked::Ask;
use crate::prelude::*;

#[block]
impl Answer {
    /// The question in front, the answer of Lists to it, and whether it is begun with.
    pub(super) fn meet(&mut self) {
        join!(self.asked => self.questions.input);
        self.now.next = self.questions.output.data.val();
        self.ask.next = self.now.val().ask;

        // The answer beside the question. It is used at once if none before it waits.
        self.needs_answer.next = (self.ask.val() != Ask::Ends)
            & (self.ask.val() != Ask::Last)
            & (self.ask.val() != Ask::Mark)
            & (self.ask.val() != Ask::Drop)
            & (self.ask.val() != Ask::Revoked)
            & (self.ask.val() != Ask::Put)
            & (self.ask.val() != Ask::Get)
            & (self.ask.val() != Ask::Answer)
            & (self.ask.val() != Ask::Handle);
        self.none_kept.next = self.replies.level.val() == 0;
        self.has_answer.next = self.replies.output.valid.val();
        self.answer.next = self.replies.output.data.val();
        if self.none_kept.val() {
            self.has_answer.next = self.reply.valid.val();
            self.answer.next = self.reply.data.val();
        }
        self.begins.next = (self.state.q.val() == State::Wait)
            & self.questions.output.valid.val()
            & (self.has_answer.val() | !self.needs_answer.val());
        self.takes_answer.next = self.begins.val() & self.needs_answer.val();
        self.replies.output.ready.next = self.takes_answer.val() & !self.none_kept.val();
        self.keeps_answer.next =
            self.reply.valid.val() & !(self.takes_answer.val() & self.none_kept.val());
        self.replies.input.valid.next = self.keeps_answer.val();
        self.replies.input.data.next = self.reply.data.val();
        self.answer_has_place.ok.next = !self.keeps_answer.val() | self.replies.input.ready.val();
    }
}
