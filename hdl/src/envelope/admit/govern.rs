//! Control requests: a pair comes, goes, or is read; an endpoint goes; a rule changes.

use super::{Admit, ENTERED, Pair, Stage, State, Walk};
use crate::prelude::*;
use crate::types::PairReport;
use abi::control::Operation;
use abi::status::Status;

#[block]
impl Admit {
    /// What is requested, and of which pair, if no fault comes first.
    pub(super) fn hear_control(&mut self) {
        self.setup.next = self.control.data.val().data.into();
        self.is_set.next = self.control.data.val().operation == Operation::PairSet;
        self.is_clear.next = self.control.data.val().operation == Operation::PairClear;
        self.is_flush.next = self.control.data.val().operation == Operation::EndpointFlush;
        self.is_read.next = self.control.data.val().operation == Operation::PairRead;
        self.is_rule_set.next = self.control.data.val().operation == Operation::RuleSet;
        self.is_rule_clear.next = self.control.data.val().operation == Operation::RuleClear;
        self.rule.next = self.control.data.val().data.into();
        self.control.ready.next = false;
        if !self.control.valid.val() {
            self.walk_is_asked.d.next = false;
        }
        self.control_result.next = 0.into();
        self.report.next = PairReport::default();
        self.in_table.next = self.walk_pair.q.val() < self.pair_count.val();
        if self.in_table.val() {
            self.report.next.refused = self.refused_count.val().get_bits::<22>(0);
        }
        self.arrival_now.next = self.arrival_first.q.val() & self.arrival.valid.val();
        self.named_pair.next = self.control.data.val().index;
        if self.fault.valid.val() {
            self.named_pair.next = self.fault.data.val().pair;
        }
    }

    /// Whether a fault, or a control request, may be looked at; and whether the walk for it begins.
    pub(super) fn offer_control(&mut self) {
        self.fault_goes.next =
            self.fault.valid.val() & (self.stage.q.val() == Stage::None) & !self.arrival_now.val();
        // Own faults are out and offered ones taken first: none is left over for the pair's next connection.
        self.control_goes.next = self.control.valid.val()
            & (self.stage.q.val() == Stage::None)
            & !self.fault.valid.val()
            & (self.faults.level.val() == 0)
            & self.rules.settled.val()
            & self.slot_setup.ready.val()
            & !self.arrival_now.val();
        self.walk_is_early.next = self.messages.of_endpoint.val()
            | self.filling.of_endpoint.val()
            | self.request_in.q.val();
        self.walk_begins.next = (self.stage.q.val() == Stage::Due)
            & (self.entered.q.val() < ENTERED - 1)
            & !self.backlog.wakes_soon.val()
            & self.rules.settled.val()
            & !self.walk_is_early.val();
    }

    /// It is carried out, or a walk begins.
    pub(super) fn govern(&mut self) {
        match self.state.q.val() {
            State::Fault => {
                self.walk_endpoint.d.next = self.pair.val().endpoint;
                self.cause.d.next = Walk::Fault;
                self.stage.d.next = Stage::Due;
                self.state.d.next = State::Idle;
            }
            State::Control => {
                self.walk_status.d.next = Status::Flushed.into();
                self.walk_endpoint.d.next = self.pair.val().endpoint;
                self.cause.d.next = Walk::Messages;
                self.changed.next = Pair::default();
                self.walk_is_asked.d.next = true;
                self.state.d.next = State::Idle;
                if self.is_clear.val() {
                    self.stage.d.next = Stage::Due;
                } else if self.is_flush.val() {
                    self.walk_endpoint.d.next = bit_cast::<8, 16>(self.walk_pair.q.val());
                    self.cause.d.next = Walk::Endpoint;
                    self.stage.d.next = Stage::Due;
                } else if self.is_set.val() {
                    self.pair_write.next = true;
                    self.clears.next = true;
                    self.changed.next.connected = true;
                    self.changed.next.endpoint = self.setup.val().endpoint;
                    self.control.ready.next = true;
                } else if self.is_rule_set.val() | self.is_rule_clear.val() {
                    self.control.ready.next = true;
                } else {
                    self.control_result.next = self.report.val().into();
                    self.control.ready.next = true;
                }
                if self.control.ready.val() {
                    self.arrival_first.d.next = true;
                    self.state.d.next = State::Idle;
                }
            }
            State::Begin => {
                self.pair_write.next = self.cause.q.val() != Walk::Endpoint;
                self.changed.next.failed = true;
                self.changed.next.status = self.walk_status.q.val();
                if self.cause.q.val() == Walk::Messages {
                    self.changed.next = Pair::default();
                }
                self.walk_begun.d.next = false;
                self.walk_again.d.next = false;
                self.state.d.next = State::Step;
            }
            _ => {}
        }
    }
}
