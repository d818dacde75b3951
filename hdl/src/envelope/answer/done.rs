//! What was asked is dealt with, and what Slots are asked meanwhile.

use super::{Answer, State};
use crate::envelope::asked::Ask;
use crate::envelope::slots::SlotQuestion;
use crate::prelude::*;
use crate::types::Way;

#[block]
impl Answer {
    /// The question in front goes, and Admit hears what it was.
    pub(super) fn finish(&mut self) {
        self.questions.output.ready.next =
            (self.done.val() & !self.resumed.q.val()) | self.steps_aside.val();
        self.of_arrival.next = self.front_is_message.val() & !self.resumed.q.val();
        self.of_request.next = !self.of_arrival.val()
            & (self.ask.val() != Ask::Lost)
            & (self.ask.val() != Ask::Last)
            & (self.ask.val() != Ask::Mark)
            & (self.ask.val() != Ask::Flush)
            & (self.ask.val() != Ask::Forget);
        self.message_done.next = self.done.val() & self.of_arrival.val();
        self.request_done.next = self.done.val() & self.of_request.val() & !self.retry.val();
    }

    /// A question about a slot: once.
    pub(super) fn ask_slots(&mut self) {
        self.question.next = SlotQuestion {
            pair: self.now.val().pair,
            take: true,
            give: false,
            slot: self.now.val().slot,
        };
        if self.state.q.val() == State::Handle {
            self.question.next = SlotQuestion {
                pair: self.handle_slot.val() >> 6,
                take: false,
                give: false,
                slot: self.handle_slot.val().get_bits::<6>(0),
            };
        }
        if (self.state.q.val() == State::Where) | (self.state.q.val() == State::Vacate) {
            self.question.next = SlotQuestion {
                pair: self.work.q.val().ending.pair,
                take: false,
                give: self.state.q.val() == State::Vacate,
                slot: self.work.q.val().ending.slot,
            };
        }
        send!(
            self.slot,
            self.asks_slot.val() & !self.slot_asked.q.val(),
            self.question.val()
        );
        if self.slot.valid.val() & self.slot.ready.val() {
            self.slot_asked.d.next = true;
        }
    }

    /// What must hold of what leaves.
    pub(super) fn check(&mut self) {
        self.within_buffer.ok.next = !self.job.valid.val()
            | ((self.work.q.val().way != Way::Hit) & (self.work.q.val().way != Way::Copy))
            | self.work.q.val().ending.answers
            | (bit_cast::<32, 16>(self.work.q.val().length) <= self.receive.q.val().length);
        self.refusal_is_asked_for.ok.next =
            !self.job.valid.val() | !self.work.q.val().ending.refused | self.now.val().ready;
        self.reserves_what_is_free.ok.next = !self.reserve.valid.val() | self.one_is_free.val();
    }
}
