//! What was chosen enters, and what has entered is counted; and what the tables beside hear.

use super::{Admit, ENTERED, State};
use crate::envelope::asked::{Ask, Asked};
use crate::envelope::slots::SlotSetup;
use crate::envelope::under_way::Member;
use crate::prelude::*;
use crate::types;
use crate::types::MatchCommand;
use abi::status::Status;

#[block]
impl Admit {
    /// Lists and Answer take it in the same cycle. A multi-receive's message, or request, is dealt with before anything else enters.
    pub(super) fn enter(&mut self) {
        self.command.data.next = self.command_held.q.val();
        self.asked.data.next = self.asked_held.q.val();
        if self.drops_revoked.val() {
            self.asked.data.next.ask = Ask::Revoked;
        }
        if self.is_late.val() {
            self.asked.data.next.ask = Ask::Drop;
            self.asked.data.next.arrived = self.on_wire.val();
        }
        if self.ends_revoked.val() {
            self.asked.data.next.ask = Ask::Ends;
            self.asked.data.next.status = Status::Revoked.into();
            self.asked.data.next.names = 0.into();
        }
        self.has_command.next = self.commands.q.val()
            & !self.drops_revoked.val()
            & !self.ends_revoked.val()
            & !self.is_late.val();
        // A message without a slot has met a receive, or is dropped, if Answer has dealt with it and its overflow isn't offered. A request that has to enter anew
        // is followed by nothing.
        self.alone_ends.next =
            self.all_is_found.val() | self.again.q.val() | self.overflow.valid.val();
        self.follow_is_heard.ok.next =
            !self.follow.valid.val() | (self.state.q.val() == State::Alone);
        match self.state.q.val() {
            State::Enter => {
                self.fires.next = self.rule_known.val()
                    & self.asked.ready.val()
                    & (!self.has_command.val() | self.command.ready.val());
                self.command.valid.next =
                    self.rule_known.val() & self.has_command.val() & self.asked.ready.val();
                self.asked.valid.next =
                    self.rule_known.val() & (!self.has_command.val() | self.command.ready.val());
                if self.fires.val() {
                    self.state.d.next = self.after.q.val();
                    if self.enters_request.q.val() {
                        self.request_in.d.next = true;
                    }
                    if self.enters_lost.q.val() {
                        self.lost_in.d.next = true;
                    }
                }
            }
            State::Alone => {
                self.enters_message.d.next = false;
                self.enters_request.d.next = true;
                self.commands.d.next = true;
                self.after.d.next = State::Alone;
                self.pair_read.next = self.fetched.val().pair;
                if self.follow.valid.val() {
                    // Its fields replace those of the request in hand, for one more message.
                    self.request.d.next.fetched.request.address = self.follow.data.val().address;
                    self.request.d.next.fetched.request.length =
                        bit_cast::<64, 32>(self.follow.data.val().length);
                    self.had.d.next = self.follow.data.val().had;
                    self.follows.d.next = true;
                    self.retires.d.next = self.follow.data.val().retire;
                    if self.follow.data.val().retire {
                        self.command_held.d.next = MatchCommand::default();
                        self.command_held.d.next.operation = types::Operation::Cancel;
                        self.command_held.d.next.endpoint = self.follow.data.val().endpoint;
                        self.command_held.d.next.request = self.follow.data.val().request;
                        self.asked_held.d.next = Asked::default();
                        self.asked_held.d.next.ask = Ask::Retire;
                        self.asked_held.d.next.endpoint = self.follow.data.val().endpoint;
                    }
                } else if self.follows.q.val() {
                    if self.has_place.val() {
                        self.follows.d.next = false;
                        self.state.d.next = State::Look;
                        if self.retires.q.val() {
                            self.state.d.next = State::Enter;
                        }
                    }
                } else if self.alone_ends.val() {
                    self.state.d.next = State::Idle;
                }
            }
            _ => {}
        }
    }

    /// What enters is counted until it ends.
    pub(super) fn count(&mut self) {
        self.counts.next = self.entered.q.val();
        if self.fires.val() {
            self.counts.next = self.counts.val() + 1;
        }
        if self.answer_ended.val() {
            self.counts.next = self.counts.val() - 1;
        }
        if self.ledger_ended.val() {
            self.counts.next = self.counts.val() - 1;
        }
        self.entered.d.next = self.counts.val();
        self.has_room.ok.next = (self.entered.q.val() <= ENTERED)
            | (self.lost_in.q.val() & (self.entered.q.val() == ENTERED + 1));
        if self.arrival.ready.val() {
            self.message_went.d.next = true;
            self.awaits_slot.d.next = false;
        }
        if self.lists.ready.val() {
            self.message_went.d.next = false;
        }
        // What is read beside a write is the old pair.
        self.list_looked.d.next =
            self.lists.valid.val() & !self.lists.ready.val() & !self.pair_write.val();
        // Before a fault or a control request a message may go out of turn.
        self.turns_are_taken.ok.next = !self.list_free.val()
            | !self.arrival_free.val()
            | self.list_goes.val()
            | (self.arrival_goes.val() & (!self.message_went.q.val() | self.arrival_now.val()));
        self.messages.enters.valid.next = self.fires.val() & self.enters_message.q.val();
        self.messages.enters.data.next = Member {
            pair: self.message.q.val().pair,
            endpoint: self.message.q.val().endpoint,
        };
    }

    /// What the rooms beside hear.
    pub(super) fn tell_tables(&mut self) {
        self.backlog.endpoint.next = self.asking.val();
        self.backlog.endpoint_next.next = self.asking_next.val();
        self.backlog.hold.valid.next = self.hold.valid.val();
        self.backlog.hold.data.next = self.hold.data.val();
        self.backlog.news.valid.next = self.news_in.valid.val() | self.news.val();
        self.backlog.news.data.next = self.walk_endpoint.q.val();
        if self.news_in.valid.val() {
            self.backlog.news.data.next = self.news_in.data.val();
        }
        self.backlog.gone.next = self.gone.val();
        self.backlog.other.next = self.message.q.val().endpoint;
        self.refused_pair.next = self.pair_read.val();
        self.pairs.read_address.next = self.pair_read.val();
        store!(
            self.pairs.write,
            self.pair_write.val(),
            self.pair_held.q.val(),
            self.changed.val()
        );
        store!(
            self.named.write,
            self.pair_write.val(),
            self.pair_held.q.val(),
            self.changed.val()
        );
        self.slot_setup.valid.next = self.clears.val() & self.in_table.val();
        // Slots have taken the setup before this one when a control request is looked at.
        self.setup_is_taken.ok.next = !self.slot_setup.valid.val() | self.slot_setup.ready.val();
        self.slot_setup.data.next = SlotSetup::default();
        self.slot_setup.data.next.pair = self.walk_pair.q.val();
        if self.state.q.val() == State::Control {
            self.slot_setup.data.next.base = self.setup.val().slots;
            self.slot_setup.data.next.slots = self.setup.val().local_credits;
        }
        self.forget.valid.next = self.clears.val() & self.in_table.val();
        self.forget.data.next = self.walk_pair.q.val();
    }
}
