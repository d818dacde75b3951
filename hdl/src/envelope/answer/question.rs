//! A question and its answer: they come beside each other, in order, and an answer that comes first waits.

use super::{Answer, State};
use crate::envelope::asked::Ask;
use crate::prelude::*;

#[block]
impl Answer {
    /// The question in front, or the one that waits aside, the answer of Lists, and which of them goes on.
    pub(super) fn meet(&mut self) {
        join!(self.asked => self.questions.input);
        // A request that found a message which isn't in its slot yet waits aside, so that messages pass it, one between two looks.
        self.front.next = self.questions.output.data.val();
        self.now.next = self.front.val();
        if self.resumed.q.val() {
            self.now.next = self.aside.q.val();
        }
        self.ask.next = self.now.val().ask;
        self.front_is_message.next = (self.front.val().ask == Ask::Message)
            | (self.front.val().ask == Ask::Drop)
            | (self.front.val().ask == Ask::Revoked)
            | (self.front.val().ask == Ask::Put)
            | (self.front.val().ask == Ask::Get)
            | (self.front.val().ask == Ask::Answer);

        // The answer beside the question. It is used at once if none before it waits.
        self.needs_answer.next = (self.front.val().ask == Ask::Message)
            | (!self.front_is_message.val()
                & (self.front.val().ask != Ask::Ends)
                & (self.front.val().ask != Ask::Last)
                & (self.front.val().ask != Ask::Mark)
                & (self.front.val().ask != Ask::Handle));
        self.none_kept.next = self.replies.level.val() == 0;
        self.has_answer.next = self.replies.output.valid.val();
        self.answer.next = self.replies.output.data.val();
        if self.none_kept.val() {
            self.has_answer.next = self.reply.valid.val();
            self.answer.next = self.reply.data.val();
        }
        self.may_begin.next =
            self.questions.output.valid.val() & (self.has_answer.val() | !self.needs_answer.val());
        self.passes.next = self.may_begin.val() & self.front_is_message.val();
        self.resumes.next = (self.state.q.val() == State::Wait)
            & self.is_aside.q.val()
            & (self.looks_next.q.val() | !self.passes.val());
        self.begins.next = (self.state.q.val() == State::Wait)
            & self.may_begin.val()
            & (!self.is_aside.q.val() | (self.front_is_message.val() & !self.looks_next.q.val()));
        self.takes_answer.next = self.begins.val() & self.needs_answer.val();
        self.replies.output.ready.next = self.takes_answer.val() & !self.none_kept.val();
        self.keeps_answer.next =
            self.reply.valid.val() & !(self.takes_answer.val() & self.none_kept.val());
        self.replies.input.valid.next = self.keeps_answer.val();
        self.replies.input.data.next = self.reply.data.val();
        self.answer_has_place.ok.next = !self.keeps_answer.val() | self.replies.input.ready.val();
    }
}
