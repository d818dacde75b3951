//! What comes next.

use super::{Admit, Stage, State, TURNS};
use crate::envelope::asked::{Ask, Asked};
use crate::prelude::*;
use crate::types;
use crate::types::{Had, MatchCommand};

#[block]
impl Admit {
    /// Nothing happens unless a later section says so.
    pub(super) fn stand_still(&mut self) {
        self.arrival.ready.next = false;
        self.lists.ready.next = false;
        self.lost.ready.next = false;
        self.request_again.next = false;
        self.overflow.ready.next = false;
        self.fault.ready.next = false;
        self.raise.valid.next = false;
        self.faults.input.valid.next = false;
        self.pair_write.next = false;
        self.clears.next = false;
        self.fires.next = false;
        self.news.next = false;
        self.backlog.resumes.next = false;
        self.backlog.nothing_kept.next = false;
        self.backlog.ends.next = false;
        self.backlog.forget.next = false;
        self.command.valid.next = false;
        self.asked.valid.next = false;
    }

    /// The pair that is looked at: read in one cycle, and perhaps written in the next. Messages and requests use a copy of it, a cycle later; that of the request that
    /// is offered was read while it waited. And the endpoint that Backlog is asked about.
    pub(super) fn look_up(&mut self) {
        self.pair.next = self.pairs.read_data.val();
        self.changed.next = self.pair.val();
        self.pair_read.next = self.pair_held.q.val();
        match self.state.q.val() {
            State::Idle => {
                self.known.d.next = self.named.read_data.val();
            }
            State::Message => {
                self.known.d.next = self.pair.val();
            }
            State::Look => {
                self.known.d.next = self.pair.val();
            }
            _ => {}
        }
        self.asking.next = self.endpoint_held.q.val();
        if self.state.q.val() == State::Idle {
            self.asking.next = self.list_endpoint.val();
        }
        if (self.state.q.val() == State::Enter) | (self.state.q.val() == State::Last) {
            self.asking.next = self.walk_endpoint.q.val();
        }
        self.asking_next.next = self.asking.val();
    }

    /// In this order: what can't wait, faults and control requests, a walk, messages and requests, which take turns.
    pub(super) fn choose(&mut self) {
        if self.state.q.val() == State::Idle {
            self.alone.d.next = false;
            self.commands.d.next = true;
            self.enters_message.d.next = false;
            self.enters_request.d.next = false;
            self.enters_lost.d.next = false;
            self.after.d.next = State::Idle;
            // What is offered is taken into the hand, which is free, before it is known whether it goes: that is known late in the cycle.
            self.message.d.next = self.arrival.data.val();
            self.slot.d.next = self.vacancy.q.val();
            self.pending.d.next = self.on_its_way.val();
            if !self.request_in.q.val() & !self.again.q.val() {
                self.request.d.next = self.lists.data.val();
                self.had.d.next = Had {
                    offset: 0.into(),
                    count: bit_cast::<31, 1>(self.list.val().flags.get_bits::<1>(2)),
                };
            }
            if !self.pairs.initialized.val() {
                self.state.d.next = State::Idle;
            } else if self.lost.valid.val() & !self.lost_in.q.val() {
                // It needs no place: it has just given the Ledger's back. What follows of a multi-receive may have taken that: then one more has entered than there are places.
                self.lost.ready.next = true;
                self.pair_held.d.next = self.lost.data.val().pair;
                self.endpoint_held.d.next = self.lost.data.val().endpoint;
                self.overflown.d.next = false;
                self.command_held.d.next = MatchCommand::default();
                self.command_held.d.next.operation = types::Operation::Remove;
                self.command_held.d.next.endpoint = self.lost.data.val().endpoint;
                self.command_held.d.next.pair = self.lost.data.val().pair;
                self.command_held.d.next.slot = self.lost.data.val().slot;
                self.asked_held.d.next = Asked::default();
                self.asked_held.d.next.ask = Ask::Lost;
                self.asked_held.d.next.pair = self.lost.data.val().pair;
                self.asked_held.d.next.slot = self.lost.data.val().slot;
                self.enters_lost.d.next = true;
                self.after.d.next = State::Raise;
                self.state.d.next = State::Enter;
            } else if self.overflow.valid.val() {
                self.overflow.ready.next = true;
                self.pair_read.next = self.overflow.data.val().pair;
                self.pair_held.d.next = self.overflow.data.val().pair;
                self.endpoint_held.d.next = self.overflow.data.val().endpoint;
                self.overflown.d.next = true;
                self.state.d.next = State::Raise;
            } else if self.again_goes.val() {
                self.again.d.next = false;
                self.request_again.next = true;
                self.asking_next.next = self.request.q.val().fetched.endpoint;
                self.endpoint_held.d.next = self.request.q.val().fetched.endpoint;
                self.pair_read.next = self.request.q.val().fetched.request.pair;
                self.state.d.next = State::Look;
            } else if self.backlog.wake.valid.val()
                & !self.request_in.q.val()
                & self.has_place.val()
            {
                self.asking_next.next = self.backlog.wake.data.val();
                self.endpoint_held.d.next = self.backlog.wake.data.val();
                self.state.d.next = State::Wake;
            } else if self.walk_begins.val() {
                self.pair_read.next = self.walk_pair.q.val();
                self.pair_held.d.next = self.walk_pair.q.val();
                self.state.d.next = State::Begin;
            } else if self.fault_goes.val() | self.control_goes.val() {
                self.pair_read.next = self.named_pair.val();
                self.pair_held.d.next = self.named_pair.val();
                self.walk_pair.d.next = self.named_pair.val();
                self.walk_status.d.next = self.fault.data.val().status;
                self.state.d.next = State::Control;
                if self.fault.valid.val() {
                    self.state.d.next = State::Fault;
                }
            } else if self.walk_goes.val() {
                self.state.d.next = State::Step;
                if self.stage.q.val() == Stage::Mark {
                    self.state.d.next = State::Mark;
                }
            } else if self.arrival_goes.val() {
                self.arrival.ready.next = true;
                self.arrival_first.d.next = false;
                self.walk_yields.d.next = false;
                // Nobody is owed more than one or two turns who didn't want them when messages passed.
                if !self.owed.q.val().any() | !self.lists.valid.val() {
                    self.owed.d.next = 1.into();
                    if self.receives_come_late.val() {
                        self.owed.d.next = TURNS.into();
                    }
                } else if self.may_pass.val() {
                    self.owed.d.next = self.owed.q.val() + TURNS;
                }
                self.pair_read.next = self.arrival.data.val().pair;
                self.looked.d.next = false;
                self.alone.d.next = self.arrival_alone.val();
                self.state.d.next = State::Message;
            } else if self.list_goes.val() {
                self.lists.ready.next = true;
                self.walk_yields.d.next = false;
                if self.owed.q.val().any() {
                    self.owed.d.next = self.owed.q.val() - 1;
                }
                self.endpoint_held.d.next = self.list_endpoint.val();
                self.state.d.next = State::Request;
            }
        }
    }
}
