//! A pair fails by what became of a message: it has found no slot, or its slot couldn't be written. It does so once, whatever becomes of those behind it.

use super::{Admit, State};
use crate::prelude::*;
use crate::types::{Fault, RaiseEvent};
use abi::event::Cause;
use abi::status::Status;

#[block]
impl Admit {
    /// A message has found no slot, or its slot couldn't be written: its endpoint gets an event, and its pair fails.
    pub(super) fn fail(&mut self) {
        send!(
            self.fault_request,
            self.faults.output.valid.val(),
            self.faults.output.data.val()
        );
        self.faults.output.ready.next = self.fault_request.ready.val();
        self.raise.data.next = RaiseEvent::default();
        self.raise.data.next.endpoint = self.endpoint_held.q.val();
        self.raise.data.next.pair = self.pair_held.q.val();
        self.raise.data.next.cause = Cause::SlotError.into();
        self.own_fault.next = Fault::default();
        self.own_fault.next.pair = self.pair_held.q.val();
        self.own_fault.next.status = Status::MemoryError.into();
        if self.overflown.q.val() {
            self.raise.data.next.cause = Cause::UnexpectedOverflow.into();
            self.own_fault.next.status = Status::LinkError.into();
        }
        self.faults.input.data.next = self.own_fault.val();
        self.has_given_up.next = self.pair.val().given_up;
        match self.state.q.val() {
            State::Raise => {
                self.raise.valid.next = !self.has_given_up.val();
                if self.has_given_up.val() {
                    self.state.d.next = State::Idle;
                } else if self.raise.ready.val() {
                    self.state.d.next = State::Fail;
                }
            }
            State::Fail => {
                self.faults.input.valid.next = true;
                self.pair_write.next = self.faults.input.ready.val();
                self.changed.next.failed = true;
                self.changed.next.given_up = true;
                self.changed.next.status = self.own_fault.val().status;
                if self.faults.input.ready.val() {
                    self.state.d.next = State::Idle;
                }
            }
            _ => {}
        }
    }
}
