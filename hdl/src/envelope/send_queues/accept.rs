//! A send comes: it waits behind the others of its pair, or is refused. A cancel comes by the same ring and is dealt with in `cancel.rs`.

use super::{SendQueues, Step};
use crate::prelude::*;
use abi::status::Status;

#[block]
impl SendQueues {
    /// Whether the send waits.
    pub(super) fn accept(&mut self) {
        self.queues.next = false;
        self.refusal.next = Status::Success;
        if self.deciding.q.val() == Step::Accept {
            self.sends.ready.next = true;
            if !self.weighed.q.val().own {
                self.refusal.next = Status::InvalidPair;
                self.count_invalid_requests.next = true;
            } else if self.weighed.q.val().too_long {
                self.refusal.next = Status::TooLong;
                self.count_invalid_requests.next = true;
            } else if self.source.q.val().failed {
                self.refusal.next = self.source.q.val().status;
            } else if self.weighed.q.val().full {
                self.refusal.next = Status::QueueFull;
            } else {
                self.write.next = true;
                self.queues.next = true;
                self.source_next.next.count = self.source.q.val().count + 1;
                self.source_next.next.may_put = self.source.q.val().may_put | self.is_put.val();
                self.push.next = (self.has_credit.val()
                    | ((self.source.q.val().may_put | self.is_put.val())
                        & self.weighed.q.val().room_one))
                    & !self.source.q.val().queued;
                // It may stand in the queue of turns from a time when it had other sends.
                if !self.source.q.val().count.any() & self.all_safe.val() {
                    self.source_next.next.since = self.now.q.val();
                }
            }
            self.ends.next = !self.queues.val();
            self.ending.next.context = self.request.val().context;
            self.ending.next.length = self.request.val().length;
            self.ending.next.status = self.refusal.val();
        }
    }
}
