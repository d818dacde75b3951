//! A vacant slot for the message that is offered, looked for while others enter.
//!
//! It stays vacant until the message enters: only messages of its pair take slots of the pair, and none of them is between here and Answer. If there
//! is none while a request is under way, which may give one back, it is looked for again. A message without one waits until those of its pair are in
//! their slots, so that its pair fails by one thing at a time.

use super::{Admit, State};
use crate::prelude::*;

#[block]
impl Admit {
    /// What is asked of Slots.
    pub(super) fn look_for_slot(&mut self) {
        // The message in hand isn't counted yet.
        self.pair_in_hand.next = ((self.state.q.val() == State::Message)
            | ((self.state.q.val() == State::Enter) & self.enters_message.q.val()))
            & (self.message.q.val().pair == self.arrival.data.val().pair);
        self.pair_waits.next = self.messages.of_pair.val() | self.pair_in_hand.val();
        send!(
            self.look,
            self.arrival.valid.val()
                & !self.pair_waits.val()
                & !self.looks.q.val()
                & !self.looked.q.val(),
            self.arrival.data.val().pair
        );
        if self.look.valid.val() & self.look.ready.val() {
            self.looks.d.next = true;
        }
        if self.seen.valid.val() {
            self.looks.d.next = false;
            self.looked.d.next = true;
            self.vacancy.d.next = self.seen.data.val();
        } else if self.looked.q.val() & !self.vacancy.q.val().found & self.request_in.q.val() {
            self.looked.d.next = false;
        }
        self.arrival_fills.d.next = self.filling.of_pair.val();
        self.slot_known.next = self.looked.q.val()
            & (self.vacancy.q.val().found
                | (!self.arrival_fills.q.val() & !self.request_in.q.val()));
        // No further request goes in front of a message that waits so.
        if self.looked.q.val() & !self.vacancy.q.val().found & self.request_in.q.val() {
            self.awaits_slot.d.next = true;
        }
    }
}
