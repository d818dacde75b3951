//! What every step begins with, and what has been decided is written: the pair's word, and its place in the queue of turns.
//!
//! A pair gets into the queue of turns by a register, a cycle after it is decided. So one that has just had its turn gets in when its old place is free.

use super::credit::Source;
use super::walk::{Ended, Walk};
use super::{SendQueues, Step};
use crate::prelude::*;
use abi::completion::CompletionKind;
use abi::status::Status;

#[block]
impl SendQueues {
    /// Nothing changes, nothing ends.
    pub(super) fn begin(&mut self) {
        self.source_next.next = self.source.q.val();
        self.write.next = false;
        self.changed.next = false;
        self.push.next = false;
        self.fail.next = false;
        self.fail_status.next = Status::LinkError;
        self.walks.next = false;
        self.walk_from.next = self.source.q.val().acknowledged.get_bits::<8>(0);
        self.walk_sent.next = 0.into();
        self.walk_given.next = 0.into();
        self.walk_waiting.next = 0.into();
        self.walk.next = Walk::default();
        self.walk.next.endpoint = self.source.q.val().endpoint;
        self.walk.next.status = Status::Success;
        self.walk.next.first = self.source.q.val().first;
        self.walk.next.last = self.source.q.val().last;
        self.ends_safe.next = false;
        self.ends.next = false;
        self.ending.next = Ended::default();
        self.ending.next.endpoint = self.sends.data.val().endpoint;
        self.ending.next.pair = self.pair.q.val();
        self.ending.next.kind = CompletionKind::Send;
        self.ending.next.request = self.request.val().request;
        self.count_invalid_requests.next = false;
        self.sends.ready.next = false;
        self.dropped.valid.next = self.fault.valid.val();
        self.dropped.data.next = self.fault.data.val().pair;
        if self.mark.ready.val() {
            self.mark_pending.d.next = false;
        }
        if self.fault_request.ready.val() {
            self.fault_pending.d.next = false;
        }
    }

    /// The pair's word, its turn and its failure.
    pub(super) fn write_pair(&mut self) {
        if self.fail.val() {
            self.write.next = true;
            self.source_next.next.failing = true;
            self.fault_pending.d.next = true;
            self.fault_pair.d.next = self.pair.q.val();
            self.fault_status.d.next = self.fail_status.val();
        }
        if self.push.val() {
            self.source_next.next.queued = true;
            // What is posted behind a message without credit doesn't put off the question for it. And while a job is given no turn is waited for.
            if self.all_safe.val()
                & !self.weighed.q.val().asks
                & (self.deciding.q.val() != Step::Turn)
            {
                self.source_next.next.since = self.now.q.val();
            }
        }
        self.pushing.d.next = self.push.val();
        self.pushed.d.next = self.pair.q.val();
        send!(self.turns.input, self.pushing.q.val(), self.pushed.q.val());
        self.stored_pair.next = self.pair.q.val();
        self.stored.next = self.source_next.val();
        if !self.cleared.q.val() {
            self.stored_pair.next = self.clearing.q.val();
            self.stored.next = Source::default();
            self.clearing.d.next = self.clearing.q.val() + 1;
            self.cleared.d.next = self.clearing.q.val() == self.last_pair.val();
        }
        self.turns.output.ready.next = self.deciding.q.val() == Step::Turn;

        self.stores.next = self.write.val() | !self.cleared.q.val();
        store!(
            self.sources.write,
            self.stores.val(),
            self.stored_pair.val(),
            self.stored.val()
        );
        store!(
            self.scheduled_pairs.write,
            self.stores.val(),
            self.stored_pair.val(),
            self.stored.val().queued
        );
        self.scheduled_pairs.read_address.next = self.scheduled_pair.val();
        self.scheduled.next = self.scheduled_pairs.read_data.val();
    }
}
