//! Which pair something is done to next: it is read in this cycle, and changed in the next.

use super::{Acknowledge, Step};
use crate::prelude::*;
use abi::control::Operation;

#[block]
impl Acknowledge {
    pub(super) fn choose(&mut self) {
        self.initialized.next = self.sinks.initialized.val()
            & self.numbers.initialized.val()
            & self.said.initialized.val();
        self.now.d.next = self.now.q.val() + 1;
        self.setup.next = self.control.data.val().data.into();
        self.is_times.next = self.control.data.val().operation == Operation::PairTimes;
        self.is_set.next = self.control.data.val().operation == Operation::PairSet;

        // What a frame that has just begun carries is known two cycles later, and one that is offered may carry all.
        self.said_is_known.next = !self.lookup_begins.val() & !self.carrying.q.val();
        self.turn_comes.next =
            self.turns.output.valid.val() & !self.offered.q.val() & self.said_is_known.val();
        self.gathered_pair.next = self.turns.output.data.val();

        self.address.next = self.turns.output.data.val();
        if self.control.valid.val() {
            self.address.next = self.control.data.val().index;
        } else if self.fault.valid.val() {
            self.address.next = self.fault.data.val().pair;
        } else if self.sink_update.valid.val() {
            self.address.next = self.sink_update.data.val().pair;
        } else if self.mark.valid.val() {
            self.address.next = self.mark.data.val().pair;
        }
        self.step.d.next = Step::Choose;
        if (self.step.q.val() == Step::Choose) & self.initialized.val() {
            self.pair.d.next = self.address.val();
            if self.control.valid.val() {
                self.step.d.next = Step::Control;
            } else if self.fault.valid.val() {
                self.step.d.next = Step::Fault;
            } else if self.sink_update.valid.val() {
                if self.said_is_known.val() {
                    self.step.d.next = Step::Update;
                }
            } else if self.mark.valid.val() {
                self.step.d.next = Step::Mark;
            } else if self.turn_comes.val() {
                self.step.d.next = Step::Turn;
            }
        } else {
            // A control request may have to look again.
            self.address.next = self.pair.q.val();
        }
        self.sinks.read_address.next = self.address.val();
        self.said.read_address.next = self.address.val();
        self.held.next = self.sinks.read_data.val();
        self.said_before.next = self.said.read_data.val();
        self.nothing_new.next = (bit_cast::<8, 32>(self.held.val().accepted)
            == self.said_before.val().accepted)
            & (bit_cast::<8, 32>(self.held.val().freed) == self.said_before.val().freed);
    }
}
