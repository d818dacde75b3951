//! A pair fails, is set, is cleared, gets other times, or tells how it is.

use super::credit::Source;
use super::{SendQueues, Step};
use crate::prelude::*;
use crate::types::PairReport;
use abi::control::Operation;
use abi::limits::MAX_CREDITS;
use abi::mailbox::PairState;
use abi::request::Opcode;
use abi::status::Status;

#[block]
impl SendQueues {
    /// What is offered: a request of a ring, and of the firmware, and the answer of a job.
    pub(super) fn look(&mut self) {
        self.request.next = self.sends.data.val().request;
        self.is_cancel.next = self.request.val().opcode == Opcode::CancelSend;
        self.is_get.next = self.request.val().opcode == Opcode::Get;
        self.is_put.next = (self.request.val().opcode == Opcode::Put) | self.is_get.val();
        self.setup.next = self.control.data.val().data.into();
        self.setup_timeout.next = self.setup.val().timeout_log2;
        self.setup_retries.next = bit_cast::<4, 8>(self.setup.val().retry_limit);
        self.run_first.next = self.setup.val().sends_first;
        self.run_length.next = bits::<8>(1) << self.setup.val().sends_log2;
        self.run_before.next = self.run_length.val() - 1;
        self.run_last.next = self.run_before.val().get_bits::<6>(0);
        self.is_set.next = self.control.data.val().operation == Operation::PairSet;
        self.is_read.next = self.control.data.val().operation == Operation::PairRead;
        self.is_times.next = self.control.data.val().operation == Operation::PairTimes;
        self.ends_pair.next = self.control.valid.val() & !self.is_read.val() & !self.is_times.val();
        self.refused_by_gather.next = self.given.output_answer.val() != Status::Success;
        // The job's send ends: it is refused, or its pair failed while Gather had it.
        self.answer_ends.next = !self.given.output.data.val().again
            & (self.refused_by_gather.val() | self.source.q.val().failed);
    }

    /// All that the pair has ends, except the jobs that are given.
    pub(super) fn fail_pair(&mut self) {
        if (self.deciding.q.val() == Step::Fault) & self.is_repeated.val() {
            self.fault_waits.d.next = true;
        } else if self.deciding.q.val() == Step::Fault {
            self.walks.next = true;
            self.for_fault.d.next = true;
            self.for_control.d.next = false;
            if self.source.q.val().connected
                & !self.source.q.val().failed
                & self.weighed.q.val().in_range
            {
                self.write.next = true;
                self.source_next.next.failed = true;
                self.source_next.next.turn = self.source.q.val().taken;
                self.source_next.next.status = self.fault.data.val().status;
                self.source_next.next.count = 0.into();
                self.source_next.next.may_put = false;
                self.source_next.next.acknowledged = self.weighed.q.val().sent;
                self.source_next.next.safe = self.weighed.q.val().sent;
                self.source_next.next.open = 0.into();
                self.source_next.next.awaited = 0.into();
                self.walk.next.status = self.fault.data.val().status;
                self.walk_sent.next = self.weighed.q.val().unacknowledged;
                self.walk_given.next = self.source.q.val().given;
                self.walk_waiting.next = self.source.q.val().count;
            }
        }
    }

    /// A control request. One that ends a pair is looked at again after the answer of each of its jobs.
    pub(super) fn serve(&mut self) {
        self.report.next = PairReport::default();
        self.control_result.next = 0.into();
        self.control.ready.next = false;
        if self.deciding.q.val() == Step::Control {
            if self.is_read.val() {
                if self.source.q.val().connected & self.weighed.q.val().in_range {
                    self.report.next.state = PairState::Connected;
                    if self.weighed.q.val().in_use < bit_cast::<8, 7>(self.source.q.val().granted) {
                        self.report.next.available = bit_cast::<8, 7>(self.source.q.val().granted)
                            - self.weighed.q.val().in_use;
                    }
                    self.report.next.unacknowledged = self.weighed.q.val().unacknowledged;
                    self.report.next.waiting = self.source.q.val().count;
                    if self.source.q.val().failed {
                        self.report.next.state = PairState::Failed;
                        self.report.next.available = 0.into();
                        self.report.next.status = self.source.q.val().status;
                    }
                }
                self.control_result.next = self.report.val().into();
                self.control.ready.next = true;
            } else if self.is_times.val() {
                self.control.ready.next = true;
                self.write.next = self.source.q.val().connected & self.weighed.q.val().in_range;
                self.source_next.next.timeout_log2 = self.setup_timeout.val();
                self.source_next.next.retry_limit = self.setup_retries.val();
                self.source_next.next.learned = 0.into();
            } else if self.weighed.q.val().in_range & self.has_given.val() {
                self.dropped.valid.next = true;
                self.dropped.data.next = self.pair.q.val();
                self.awaits_result.d.next = true;
            } else {
                // What is still there of the pair as it was is flushed.
                self.walks.next = true;
                self.for_fault.d.next = false;
                self.for_control.d.next = true;
                if self.weighed.q.val().in_range {
                    self.dropped.valid.next = true;
                    self.dropped.data.next = self.pair.q.val();
                    self.walk.next.status = Status::Flushed;
                    self.walk_sent.next = self.weighed.q.val().unacknowledged;
                    self.walk_waiting.next = self.source.q.val().count;
                    self.write.next = true;
                    self.changed.next = self.is_set.val();
                    // A turn stays in its queue and finds nothing to do.
                    self.source_next.next = Source::default();
                    self.source_next.next.queued = self.source.q.val().queued;
                    if self.is_set.val() {
                        self.source_next.next.connected = true;
                        self.source_next.next.endpoint = self.setup.val().endpoint;
                        self.source_next.next.domain = self.setup.val().domain;
                        self.source_next.next.first = self.run_first.val();
                        self.source_next.next.last = self.run_last.val();
                        self.source_next.next.timeout_log2 = self.setup_timeout.val();
                        self.source_next.next.retry_limit = self.setup_retries.val();
                        self.source_next.next.granted =
                            bit_cast::<7, 8>(self.setup.val().remote_credits);
                        if self.setup.val().remote_credits > MAX_CREDITS {
                            self.source_next.next.granted = MAX_CREDITS;
                        }
                    }
                }
            }
        }
    }
}
