//! What is heard of a peer, and for how long nothing has been: credits come back, sends are safe, a pair asks, answers, or is failed.

use super::{SendQueues, Step};
use crate::prelude::*;
use crate::types::Mark;
use abi::status::Status;
use abi::times::SCAN_CYCLES;

#[block]
impl SendQueues {
    /// A frame of the peer.
    pub(super) fn hear(&mut self) {
        self.heard.next = (self.deciding.q.val() == Step::Progress)
            & !(self.sound.val() & self.is_repeated.val());
        self.progress.ready.next = self.heard.val();
        self.answers.next = self.progress.data.val().ask;
        self.tells_gap.next = self.progress.data.val().misses;
        self.hears_gap.next = false;
        self.some_stay.next = false;
        self.answers_probe.next = false;
        if (self.deciding.q.val() == Step::Progress) & !self.heard.val() {
            // A send whose payload is being read again doesn't end.
            self.progress_waits.d.next = true;
        }
        if self.heard.val() {
            self.turn_stopped.d.next = false;
        }
        if self.heard.val() & self.sound.val() {
            if self.weighed.q.val().lies {
                self.fail.next = true;
            } else {
                self.write.next = true;
                self.mark_pending.d.next = self.answers.val() | self.tells_gap.val();
                self.mark_held.d.next = Mark {
                    pair: self.pair.q.val(),
                    ask: false,
                    misses: self.tells_gap.val(),
                };
                self.source_next.next.safe = self.weighed.q.val().safe;
                self.source_next.next.returned = self.weighed.q.val().returned;
                self.ends_safe.next = true;
                self.changed.next = self.weighed.q.val().gets_credit;
                // It may have lost a turn that came while this waited.
                self.push.next = (((self.weighed.q.val().gets_credit
                    | self.has_credit.val()
                    | self.turn_stopped.q.val()
                    | (self.weighed.q.val().ends_some
                        & (self.source.q.val().may_put | !self.weighed.q.val().room_one)))
                    & self.source.q.val().count.any())
                    | self.weighed.q.val().goes_back)
                    & !self.source.q.val().queued;
                self.some_stay.next = self.weighed.q.val().safe.get_bits::<8>(0)
                    != self.weighed.q.val().sent.get_bits::<8>(0);
                // A round that is under way gives the missing one again, unless it is of the last alone.
                self.hears_gap.next = self.progress.data.val().gap
                    & (!self.weighed.q.val().goes_back | self.source.q.val().probed)
                    & self.some_stay.val();
                self.answers_probe.next =
                    self.source.q.val().probed & self.weighed.q.val().hears_more;
                if self.weighed.q.val().hears_more | self.weighed.q.val().asks {
                    self.source_next.next.tries = 0.into();
                }
                if self.weighed.q.val().hears_more {
                    self.source_next.next.since = self.now.q.val();
                    self.source_next.next.refused = self.progress.data.val().refused;
                }
            }
        }
    }

    /// What is safe, and in front of the first open get, ends.
    pub(super) fn end_safe(&mut self) {
        self.acknowledged.next =
            self.source.q.val().acknowledged + bit_cast::<32, 8>(self.weighed.q.val().newly);
        if self.ends_safe.val() {
            self.source_next.next.acknowledged = self.acknowledged.val();
            if self.weighed.q.val().passes_turn {
                self.source_next.next.turn = self.acknowledged.val();
            }
            if self.weighed.q.val().ends_some | self.hears_answer.val() {
                self.source_next.next.since = self.now.q.val();
                self.source_next.next.tries = 0.into();
                self.source_next.next.quiet = 0.into();
                self.source_next.next.asked_again = 0.into();
            }
            if self.weighed.q.val().ends_some {
                self.source_next.next.overtaken = false;
                self.walks.next = true;
                self.walk_sent.next = self.weighed.q.val().newly;
                self.for_fault.d.next = false;
                self.for_control.d.next = false;
            }
        }
    }

    /// The scan for time-outs comes by.
    pub(super) fn look_at_time(&mut self) {
        self.now.d.next = self.now.q.val() + 1;
        if (self.now.q.val() & (SCAN_CYCLES - 1)) == 0 {
            self.scan_due.d.next = true;
        }
        self.count_pair.next = self.pair.q.val();
        self.count_timeouts.next = false;
        self.count_asks.next = false;
        if self.deciding.q.val() == Step::Scan {
            self.scan_due.d.next = false;
            self.scan.d.next = self.scan.q.val() + 1;
            if self.scan.q.val() == self.last_pair.val() {
                self.scan.d.next = 0.into();
            }
            if self.weighed.q.val().unreadable {
                self.fail.next = true;
                self.fail_status.next = Status::LocalProtection;
                self.source_next.next.unreadable = false;
            }
            if self.weighed.q.val().late {
                if self.weighed.q.val().silent | self.weighed.q.val().asks_again {
                    self.count_timeouts.next = true;
                    self.count_asks.next = self.weighed.q.val().asks_again;
                } else if self.weighed.q.val().asks & !self.weighed.q.val().last_try {
                    self.mark_pending.d.next = true;
                    self.mark_held.d.next = Mark {
                        pair: self.pair.q.val(),
                        ask: true,
                        misses: false,
                    };
                    self.count_asks.next = true;
                }
            }
        }
    }
}
