//! A pair's turn: its next send becomes a job of Gather, and what Gather answers is worked in.
//!
//! ```text
//!   turn, its send is read ──► with a credit, a put, a get ──► giving ──► job, given
//!                                                                        │
//!   unacknowledged, or taken out and ended ◄────────────────── answer ───┘
//! ```

use super::{Given, SendQueues, Step};
use crate::prelude::*;
use crate::types::SendJob;
use abi::status::Status;

#[block]
impl SendQueues {
    /// The pair's turn comes. One that has nothing to send, or whose first is a message without credit or a place, loses its place.
    pub(super) fn take_turn(&mut self) {
        // The pair is about to end, or what its peer says waits for the sends that it gives again: it sends nothing more.
        self.stops_for_progress.next =
            self.progress_waits.q.val() & (self.progress.data.val().pair == self.pair.q.val());
        self.stops.next = (self.fault.valid.val()
            & (self.fault.data.val().pair == self.pair.q.val()))
            | (self.ends_pair.val() & (self.control.data.val().index == self.pair.q.val()))
            | self.stops_for_progress.val()
            | (self.answered_waits.q.val() & (self.answered.data.val().pair == self.pair.q.val()));
        self.gives.next = false;
        self.gives_put.next = false;
        self.is_put_turn.next = self.descriptors.read_data.val().put;
        self.may_give.next =
            self.has_credit.val() | (self.is_put_turn.val() & self.weighed.q.val().room_one);
        self.is_first.next = false;
        self.goes_on.next = false;
        self.count_repeats.next = false;
        if self.deciding.q.val() == Step::Turn {
            self.write.next = true;
            self.source_next.next.queued = false;
            self.job_pair.d.next = self.pair.q.val();
            self.job_domain.d.next = self.source.q.val().domain;
            self.job_again.d.next = self.weighed.q.val().repeats_left;
            self.job_number.d.next = self.source.q.val().turn;
            self.is_first.next = !self.weighed.q.val().goes_back;
            self.goes_on.next = self.sound.val() & !self.stops.val();
            if self.stops_for_progress.val() {
                self.turn_stopped.d.next = true;
            }
            if self.goes_on.val() & self.weighed.q.val().repeats_left {
                self.source_next.next.turn = self.source.q.val().turn + 1;
                if self.source.q.val().probed {
                    self.source_next.next.turn = self.source.q.val().taken;
                }
                self.push.next = true;
                if !self.weighed.q.val().passed_over {
                    self.source_next.next.repeats = self.source.q.val().repeats + 1;
                    self.count_repeats.next = true;
                    self.gives.next = true;
                }
            }
            if self.goes_on.val()
                & self.is_first.val()
                & self.source.q.val().count.any()
                & self.may_give.val()
            {
                self.source_next.next.turn = self.source.q.val().taken + 1;
                self.source_next.next.count = self.source.q.val().count - 1;
                self.source_next.next.taken = self.source.q.val().taken + 1;
                self.source_next.next.given = self.source.q.val().given + 1;
                self.changed.next = true;
                self.gives.next = true;
                self.gives_put.next = self.is_put_turn.val();
                self.source_next.next.may_put =
                    self.source.q.val().may_put & (self.source.q.val().count != 1);
                self.push.next = (self.source.q.val().count != 1)
                    & (self.weighed.q.val().has_two
                        | (self.source.q.val().may_put & self.weighed.q.val().room_two));
            }
        }
    }

    /// The oldest job is answered.
    pub(super) fn take_result(&mut self) {
        self.given.awaits.next = true;
        self.given.output.ready.next = self.deciding.q.val() == Step::Result;
        self.taken_back.next = self.source.q.val().taken - 1;
        self.takes_out.next = false;
        if self.deciding.q.val() == Step::Result {
            self.awaits_result.d.next = false;
            self.fault_waits.d.next = false;
            self.progress_waits.d.next = false;
            self.answered_waits.d.next = false;
            self.write.next = true;
            self.takes_out.next = self.answer_ends.val();
            self.removed_status.d.next = self.given.output_answer.val();
            if self.given.output.data.val().again {
                self.source_next.next.repeats = self.source.q.val().repeats - 1;
                self.push.next = self.weighed.q.val().goes_back & !self.source.q.val().queued;
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
                    self.given.output_answer.val() == Status::LocalProtection;
                if self.source.q.val().failed {
                    self.source_next.next.acknowledged = self.weighed.q.val().sent + 1;
                    self.source_next.next.safe = self.weighed.q.val().sent + 1;
                    if !self.refused_by_gather.val() {
                        self.removed_status.d.next = self.source.q.val().status;
                    }
                } else {
                    // What Gather has dropped, since the pair has gone back meanwhile, is given again.
                    self.push.next = self.weighed.q.val().goes_back & !self.source.q.val().queued;
                    if self.all_safe.val() {
                        self.source_next.next.since = self.now.q.val();
                    }
                    if self.refused_by_gather.val() {
                        self.source_next.next.taken = self.taken_back.val();
                        if !self.weighed.q.val().goes_back {
                            self.source_next.next.turn = self.taken_back.val();
                        }
                        self.changed.next = true;
                        self.push.next = (self.source.q.val().count.any()
                            | self.weighed.q.val().goes_back)
                            & !self.source.q.val().queued;
                    }
                }
            }
        }
    }

    /// The send that has had its turn is given.
    pub(super) fn give(&mut self) {
        if self.gives.val() {
            self.job_send.d.next = self.descriptors.read_data.val();
        }
        self.giving.d.next = self.gives.val();
        self.settling.d.next = self.giving.q.val();
        self.job_ready.next = self.job_send.q.val().ready;
        self.job_get.next = self.job_send.q.val().get;
        self.job_put.next = self.job_send.q.val().put & !self.job_send.q.val().get;
        self.job_inline.next = self.job_send.q.val().inline;
        self.job_segments.next = self.job_send.q.val().segments;
        self.job_tail.next = 0.into();
        if self.job_send.q.val().inline {
            self.job_tail.next = self.job_send.q.val().segments.second.key;
            self.job_segments.next.second.key = 0.into();
        }
        self.job.valid.next = self.giving.q.val();
        self.job.data.next = SendJob {
            pair: self.job_pair.q.val(),
            domain: self.job_domain.q.val(),
            context: self.job_send.q.val().context,
            length: bit_cast::<16, 11>(self.job_send.q.val().length),
            match_bits: self.job_send.q.val().match_bits,
            immediate: self.job_send.q.val().immediate,
            ready: self.job_ready.val(),
            put: self.job_put.val(),
            get: self.job_get.val(),
            answer: false,
            inline: self.job_inline.val(),
            address: self.job_send.q.val().address,
            key: self.job_send.q.val().key,
            tail: self.job_tail.val(),
            segments: self.job_segments.val(),
            again: self.job_again.q.val(),
            number: self.job_number.q.val(),
            refused: false,
        };
        self.given.asked.valid.next = self.giving.q.val();
        self.given.asked.data.next = Given {
            pair: self.job_pair.q.val(),
            again: self.job_again.q.val(),
            get: self.job_send.q.val().get,
        };
        join!(self.job_result => self.given.answer);
        self.owed_next.next = self.owed.q.val();
        if self.giving.q.val() & !self.job_result.valid.val() {
            self.owed_next.next = self.owed.q.val() + 1;
        }
        if self.job_result.valid.val() & !self.giving.q.val() {
            self.owed_next.next = self.owed.q.val() - 1;
        }
        self.owed.d.next = self.owed_next.val();
    }
}
