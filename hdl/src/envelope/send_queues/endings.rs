//! What ends: sends of a walk and of single steps become completions, and a fault or a control request is done when those that it made have been taken.

use super::SendQueues;
use crate::prelude::*;
use crate::types::{Completion, Fault, WriteCompletion};

#[block]
impl SendQueues {
    /// Completions, and the end of a fault and of a control request.
    pub(super) fn end(&mut self) {
        self.walk.next.window = self.source_next.val().refused;
        self.walk.next.behind = self.weighed.q.val().behind;
        self.walk.next.ends_low = self.source_next.val().ends_low;
        self.walk.next.ends_high = self.source_next.val().ends_high;
        self.walk.next.from = self.walk_from.val();
        self.walk.next.sent = self.walk_sent.val();
        self.walk.next.given = self.walk_given.val();
        self.walk.next.waiting = self.walk_waiting.val();
        self.walker.walk.valid.next = self.walks.val();
        self.walker.walk.data.next = self.walk.val();
        self.walker.walk_pair.next = self.pair.q.val();
        self.walker.reads.next = self.walk_reads.val();
        self.walker.read.next = self.descriptors.read_data.val();
        self.ended.input.valid.next = self.ends.val() | self.walker.ended.valid.val();
        self.ended.input.data.next = self.walker.ended.data.val();
        if self.ends.val() {
            self.ended.input.data.next = self.ending.val();
        }
        self.walker.ended.ready.next = self.ended.input.ready.val() & !self.ends.val();
        self.completion.next = Completion::default();
        self.completion.next.request = self.ended.output.data.val().request;
        self.completion.next.pair = self.ended.output.data.val().pair;
        self.completion.next.context = self.ended.output.data.val().context;
        self.completion.next.length = self.ended.output.data.val().length;
        self.completion.next.status = self.ended.output.data.val().status;
        self.completion.next.kind = self.ended.output.data.val().kind;
        self.complete.valid.next = self.ended.output.valid.val();
        self.complete.data.next = WriteCompletion {
            endpoint: self.ended.output.data.val().endpoint,
            entry: self.completion.val(),
        };
        self.ended.output.ready.next = self.complete.ready.val();
        self.ended_leaves.next = self.ended.output.valid.val() & self.complete.ready.val();

        self.drained.next = self.draining.q.val() & !self.drain.q.val().any();
        if self.ended_leaves.val() & self.drain.q.val().any() {
            self.drain.d.next = self.drain.q.val() - 1;
        }
        if self.drained.val() {
            self.draining.d.next = false;
        }
        if self.walker.done.val() & (self.for_fault.q.val() | self.for_control.q.val()) {
            self.draining.d.next = true;
            self.drain.d.next = self.ended.level.val();
            if self.ended_leaves.val() {
                self.drain.d.next = self.ended.level.val() - 1;
            }
        }
        self.fault.ready.next = self.drained.val() & self.for_fault.q.val();
        if self.drained.val() & self.for_control.q.val() {
            self.control.ready.next = true;
        }
    }

    /// What is asked of the neighbours, and shown to monitors.
    pub(super) fn ask(&mut self) {
        send!(self.mark, self.mark_pending.q.val(), self.mark_held.q.val());
        self.asked_fault.next = Fault::default();
        self.asked_fault.next.pair = self.fault_pair.q.val();
        self.asked_fault.next.status = self.fault_status.q.val();
        send!(
            self.fault_request,
            self.fault_pending.q.val(),
            self.asked_fault.val()
        );
        self.monitor_source_valid.next = self.changed.val();
        self.monitor_source_pair.next = self.pair.q.val();
        self.monitor_source_taken.next = self.source_next.val().taken;
        self.monitor_source_returned.next = self.source_next.val().returned;
        self.monitor_source_put.next = self.gives_put.val();
    }
}
