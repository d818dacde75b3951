//! Decides what the message that Admit has chosen enters as: the command for Lists, and what Answer is told beside it.
//!
//! Lists are asked which receive it meets, and append it if there is none. A ready message may be refused, and so isn't appended, unless its receive may still be
//! on its way: in the ring, in Posts, or kept by the host. A put, a get and the answer of a get take their place in the order of the card here and ask Lists nothing.
//! Whatever comes by a pair that has failed or been closed meanwhile is dropped.
//! A message without a slot is of a peer that spends more credits than it has. It enters alone, since its pair fails if it meets no receive.

use super::{Admit, State};
use crate::envelope::asked::{Ask, Asked};
use crate::prelude::*;
use crate::types;
use crate::types::MatchCommand;

#[block]
impl Admit {
    /// The command of the message in hand.
    pub(super) fn prepare_message(&mut self) {
        self.of_message.next = MatchCommand::default();
        self.of_message.next.operation = types::Operation::Arrive;
        self.of_message.next.endpoint = self.message.q.val().endpoint;
        self.of_message.next.pair = self.message.q.val().pair;
        self.of_message.next.context = self.message.q.val().context;
        self.of_message.next.match_bits = self.message.q.val().match_bits;
        // A receive for a ready message may be on its way here, or kept by the host.
        self.host_keeps.next = self.backlog.kept.val();
        self.may_be_posted.next = self.pending.q.val() | self.host_keeps.val();
        self.refusable.next = self.message.q.val().ready & !self.may_be_posted.val();
        self.appends.next = self.slot.q.val().found & !self.refusable.val();
        self.of_message.next.append = self.appends.val();
        self.of_message.next.slot = self.slot.q.val().slot;
        // If it finds no receive, its pair fails before anything else enters.
        self.has_no_slot.next =
            !self.slot.q.val().found & !self.refusable.val() & !self.message.q.val().put;

        // A get has no payload, nor has the answer of one that is refused.
        self.is_get.next = self.message.q.val().put & self.message.q.val().get;
        self.is_answer.next = self.message.q.val().put & self.message.q.val().answer;
        self.on_wire.next = self.message.q.val().length;
        if self.is_get.val() | (self.is_answer.val() & self.message.q.val().refused) {
            self.on_wire.next = 0.into();
        }
        // Its pair has failed or been closed meanwhile: nothing of it is done, and an answer's buffer may be the host's again.
        self.is_late.next = self.enters_message.q.val()
            & (!self.known.q.val().connected | self.known.q.val().failed);
    }

    /// It enters. Whether it is dropped instead is known when it does.
    pub(super) fn ask_for_message(&mut self) {
        if self.state.q.val() == State::Message {
            self.command_held.d.next = self.of_message.val();
            self.asked_held.d.next = Asked::default();
            self.asked_held.d.next.ask = Ask::Message;
            self.asked_held.d.next.endpoint = self.message.q.val().endpoint;
            self.asked_held.d.next.pair = self.message.q.val().pair;
            self.asked_held.d.next.context = self.message.q.val().context;
            self.asked_held.d.next.match_bits = self.message.q.val().match_bits;
            self.asked_held.d.next.immediate = self.message.q.val().immediate;
            self.asked_held.d.next.arrived = self.message.q.val().length;
            self.asked_held.d.next.again = self.message.q.val().again;
            self.asked_held.d.next.refused = self.message.q.val().refused;
            self.asked_held.d.next.number = self.message.q.val().number;
            self.asked_held.d.next.ready = self.message.q.val().ready;
            self.asked_held.d.next.refusable = self.refusable.val();
            self.asked_held.d.next.append = self.appends.val();
            self.asked_held.d.next.slot = self.slot.q.val().slot;
            if self.message.q.val().put {
                self.asked_held.d.next.ask = Ask::Put;
                self.commands.d.next = false;
            }
            if self.is_get.val() {
                self.asked_held.d.next.ask = Ask::Get;
            }
            if self.is_answer.val() {
                self.asked_held.d.next.ask = Ask::Answer;
                self.asked_held.d.next.arrived = self.on_wire.val();
            }
            self.enters_message.d.next = true;
            if self.alone.q.val() | self.has_no_slot.val() {
                self.after.d.next = State::Alone;
            }
            self.state.d.next = State::Enter;
        }
    }
}
