//! What is heard of a peer, and for how long nothing has been: credits come back, sends are safe, a pair asks, answers, or is failed.

use super::{SCAN_CYCLES, SendQueues, Step};
use crate::prelude::*;

#[block]
impl SendQueues {
    /// A frame of the peer.
    pub(super) fn hear(&mut self) {
        self.progress.ready.next = self.deciding.q.val() == Step::Progress;
        self.answers.next = self.progress.data.val().ask;
        if (self.deciding.q.val() == Step::Progress) & self.sound.val() {
            if self.weighed.q.val().lies {
                self.fail.next = true;
            } else {
                self.write.next = true;
                self.mark_pending.d.next = self.answers.val();
                self.mark_held.d.next.pair = self.pair.q.val();
                self.mark_held.d.next.ask = false;
                self.source_next.next.acknowledged = self.weighed.q.val().acknowledged;
                self.source_next.next.returned = self.weighed.q.val().returned;
                self.changed.next = self.weighed.q.val().gets_credit;
                self.push.next = self.weighed.q.val().gets_credit
                    & self.source.q.val().count.any()
                    & !self.source.q.val().queued;
                if self.weighed.q.val().hears_more {
                    self.source_next.next.since = self.now.q.val();
                    self.walks.next = true;
                    self.walk_until.next = self.weighed.q.val().acknowledged;
                    self.for_fault.d.next = false;
                    self.for_control.d.next = false;
                }
            }
        }
    }

    /// The scan for time-outs comes by.
    pub(super) fn look_at_time(&mut self) {
        self.now.d.next = self.now.q.val() + 1;
        if (self.now.q.val() & (SCAN_CYCLES - 1)) == 0 {
            self.scan_due.d.next = true;
        }
        self.count_timeouts.next = false;
        self.count_asks.next = false;
        if self.deciding.q.val() == Step::Scan {
            self.scan_due.d.next = false;
            self.scan.d.next = self.scan.q.val() + 1;
            if self.scan.q.val() == self.last_pair.val() {
                self.scan.d.next = 0.into();
            }
            if self.weighed.q.val().late {
                if self.weighed.q.val().silent {
                    self.fail.next = true;
                    self.count_timeouts.next = true;
                } else if self.weighed.q.val().asks {
                    self.write.next = true;
                    self.source_next.next.since = self.now.q.val();
                    self.mark_pending.d.next = true;
                    self.mark_held.d.next.pair = self.pair.q.val();
                    self.mark_held.d.next.ask = true;
                    self.count_asks.next = true;
                }
            }
        }
    }
}
