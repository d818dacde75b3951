//! A pair's turn: its oldest waiting send becomes a job of Gather, and what Gather answers is worked in.
//!
//! ```text
//!   turn, with a credit ──► loading ──► giving ──► job, given
//!                           (the send is read)        │
//!   recorded as unacknowledged, or ended ◄── results ─┘
//! ```

use super::unacknowledged::Sent;
use super::{Given, SendQueues, Step};
use crate::prelude::*;
use crate::types::SendJob;
use abi::status::Status;

#[block]
impl SendQueues {
    /// The pair's turn comes. One that has nothing to send, or no credit, loses its place.
    pub(super) fn take_turn(&mut self) {
        // The pair is about to end, or what its peer says waits for the sends that it gives again: it sends nothing more.
        self.stops.next = (self.fault.valid.val()
            & (self.fault.data.val().pair == self.pair.q.val()))
            | (self.ends_pair.val() & (self.control.data.val().index == self.pair.q.val()))
            | (self.progress_waits.q.val() & (self.progress.data.val().pair == self.pair.q.val()));
        self.loading.d.next = false;
        self.is_first.next = false;
        self.goes_on.next = false;
        self.count_repeats.next = false;
        if self.deciding.q.val() == Step::Turn {
            self.write.next = true;
            self.source_next.next.queued = false;
            self.job_pair.d.next = self.pair.q.val();
            self.job_domain.d.next = self.source.q.val().domain;
            self.job_again.d.next = self.weighed.q.val().repeats_left;
            self.job_number.d.next = self.source.q.val().repeat;
            self.is_first.next = !self.source.q.val().repeating
                | (!self.weighed.q.val().repeats_left & !self.source.q.val().given.any());
            self.goes_on.next = self.sound.val() & !self.stops.val();
            if self.goes_on.val() & self.weighed.q.val().repeats_left {
                self.source_next.next.repeat = self.source.q.val().repeat + 1;
                self.source_next.next.repeats = self.source.q.val().repeats + 1;
                self.count_repeats.next = true;
                self.loading.d.next = true;
                self.push.next = true;
            }
            if self.goes_on.val() & self.is_first.val() {
                // Whatever had left has been given again.
                self.source_next.next.repeating = false;
            }
            if self.goes_on.val()
                & self.is_first.val()
                & self.source.q.val().count.any()
                & self.has_credit.val()
            {
                self.source_next.next.head = self.source.q.val().head + 1;
                self.source_next.next.count = self.source.q.val().count - 1;
                self.source_next.next.taken = self.source.q.val().taken + 1;
                self.source_next.next.given = self.source.q.val().given + 1;
                self.changed.next = true;
                self.loading.d.next = true;
                self.push.next = (self.source.q.val().count != 1) & self.weighed.q.val().has_two;
            }
        }
    }

    /// The oldest job is answered.
    pub(super) fn take_result(&mut self) {
        self.given.output.ready.next = self.deciding.q.val() == Step::Result;
        self.results.output.ready.next = self.deciding.q.val() == Step::Result;
        self.refused_by_gather.next = self.results.output.data.val() != Status::Success;
        self.taken_back.next = self.source.q.val().taken - 1;
        self.records.next = false;
        self.answered.next = self.given.output.data.val().send;
        self.unacknowledged.record.data.next = Sent {
            request: self.answered.val().request,
            context: self.answered.val().context,
            length: self.answered.val().length,
            errors_only: self.answered.val().errors_only,
        };
        self.unacknowledged.record_pair.next = self.pair.q.val();
        self.unacknowledged.record_number.next = self.weighed.q.val().sent;
        if self.deciding.q.val() == Step::Result {
            self.awaits_result.d.next = false;
            self.fault_waits.d.next = false;
            self.progress_waits.d.next = false;
            self.write.next = true;
            self.ending.next.endpoint = self.source.q.val().endpoint;
            self.ending.next.request = self.answered.val().request;
            self.ending.next.context = self.answered.val().context;
            self.ending.next.length = bit_cast::<64, 11>(self.answered.val().length);
            self.ending.next.status = self.results.output.data.val();
            if self.given.output.data.val().again {
                self.source_next.next.repeats = self.source.q.val().repeats - 1;
                self.push.next = self.source.q.val().repeating & !self.source.q.val().queued;
                // Its number is taken, so it can't be passed over: the pair sends nothing more, and the scan fails it.
                if self.refused_by_gather.val() & self.sound.val() {
                    self.source_next.next.failing = true;
                    self.source_next.next.unreadable = true;
                    self.dropped.valid.next = true;
                    self.dropped.data.next = self.pair.q.val();
                }
            } else {
                self.source_next.next.given = self.source.q.val().given - 1;
                self.count_invalid_requests.next =
                    self.results.output.data.val() == Status::LocalProtection;
                if self.source.q.val().failed {
                    // The pair failed while Gather had the job.
                    self.ends.next = true;
                    self.source_next.next.acknowledged = self.weighed.q.val().sent + 1;
                    if !self.refused_by_gather.val() {
                        self.ending.next.status = self.source.q.val().status;
                    }
                } else {
                    // What Gather has dropped, since the pair has gone back meanwhile, is given again.
                    self.push.next = self.source.q.val().repeating & !self.source.q.val().queued;
                    if self.all_safe.val() {
                        self.source_next.next.since = self.now.q.val();
                    }
                    if self.refused_by_gather.val() {
                        self.ends.next = true;
                        self.source_next.next.taken = self.taken_back.val();
                        self.changed.next = true;
                        self.push.next = (self.source.q.val().count.any()
                            | self.source.q.val().repeating)
                            & !self.source.q.val().queued;
                    } else {
                        self.records.next = true;
                    }
                }
            }
        }
    }

    /// The send that has had its turn is read and given.
    pub(super) fn give(&mut self) {
        if self.loading.q.val() {
            self.job_send.d.next = self.waiting.read.val();
            if self.job_again.q.val() {
                self.job_send.d.next = self.repeats.read.val();
            }
        }
        self.giving.d.next = self.loading.q.val();
        self.settling.d.next = self.giving.q.val();
        self.job_ready.next = self.job_send.q.val().ready;
        self.job_inline.next = self.job_send.q.val().inline;
        self.job.valid.next = self.giving.q.val();
        self.job.data.next = SendJob {
            pair: self.job_pair.q.val(),
            domain: self.job_domain.q.val(),
            context: self.job_send.q.val().context,
            length: bit_cast::<16, 11>(self.job_send.q.val().length),
            match_bits: self.job_send.q.val().match_bits,
            immediate: self.job_send.q.val().immediate,
            ready: self.job_ready.val(),
            inline: self.job_inline.val(),
            address: self.job_send.q.val().address,
            key: self.job_send.q.val().key,
            tail: self.job_send.q.val().tail,
            segments: self.job_send.q.val().segments,
            again: self.job_again.q.val(),
            number: self.job_number.q.val(),
        };
        self.given.input.valid.next = self.giving.q.val();
        self.given.input.data.next = Given {
            pair: self.job_pair.q.val(),
            again: self.job_again.q.val(),
            send: self.job_send.q.val(),
        };
        self.unacknowledged.record.valid.next = self.records.val();
        self.repeats.write.valid.next = self.records.val();
        self.repeats.write.data.next = self.answered.val();
        self.repeats.write_pair.next = self.pair.q.val();
        self.repeats.write_number.next = self.weighed.q.val().sent;
        self.repeats.read_pair.next = self.pair.q.val();
        self.repeats.read_number.next = self.source.q.val().repeat;
        self.results.input.valid.next = self.job_result.valid.val();
        self.results.input.data.next = self.job_result.data.val();
    }
}
