//! A cancel comes, or a job's answer that ends its send: one send is taken out of its pair's run, and nothing else is done meanwhile.
//!
//! Whether a cancel is in time is what its walk ([`Remove`](super::remove::Remove)) finds: a send that waits still is taken out and completes with `Cancelled`;
//! if there is none of that handle, the cancel completes with `TooLate`. A job that Gather has refused takes the same way, as the first of what is given.

use super::{SendQueues, Step};
use crate::prelude::*;
use abi::completion::CompletionKind;
use abi::status::Status;

#[block]
impl SendQueues {
    /// A cancel, or the answer of a job that ends, takes a send out of the pair's run.
    pub(super) fn take_out(&mut self) {
        self.remove.start.next = (self.deciding.q.val() == Step::Cancel) | self.takes_out.val();
        self.remove.takes_first.next = self.takes_out.val();
        self.remove.from.next = self.source.q.val().taken.get_bits::<8>(0);
        self.remove.count.next = 0.into();
        if (self.deciding.q.val() == Step::Cancel) & self.weighed.q.val().own {
            self.remove.count.next = self.source.q.val().count;
        }
        if self.deciding.q.val() == Step::Cancel {
            self.removed_status.d.next = Status::Cancelled;
        }
        if self.takes_out.val() {
            self.remove.from.next = self.weighed.q.val().sent.get_bits::<8>(0);
            self.remove.count.next = self.source.q.val().given + self.source.q.val().count;
            if self.source.q.val().failed {
                // Nothing is sent any more: its number is used up.
                self.remove.count.next = 1.into();
            }
        }
        self.remove.target.next = self.request.val().target;
        self.remove.read.next = self.descriptors.read_data.val();
        self.cancelled.next = self.remove.done.val() & !self.remove.took_first.val();
        self.in_time.next = self.cancelled.val() & self.remove.found.val();
        self.counts_down.next = self.in_time.val();
        self.too_late.next = self.cancelled.val() & !self.remove.found.val();
        self.moves_up.next = self.remove.moves.val();
        if self.remove.hits.val() {
            self.ends.next = true;
            self.ending.next.endpoint = self.source.q.val().endpoint;
            self.ending.next.request = self.descriptors.read_data.val().request;
            self.ending.next.context = self.descriptors.read_data.val().context;
            self.ending.next.length = bit_cast::<64, 11>(self.descriptors.read_data.val().length);
            self.ending.next.status = self.removed_status.q.val();
        }
        if self.too_late.val() {
            self.ends.next = true;
            self.ending.next.kind = CompletionKind::Cancel;
            self.ending.next.status = Status::TooLate;
        }
        if self.counts_down.val() {
            self.write.next = true;
            self.source_next.next.count = self.source.q.val().count - 1;
            self.source_next.next.may_put =
                self.source.q.val().may_put & (self.source.q.val().count != 1);
            // The message that is gone may have waited for credit in front of a put.
            self.push.next =
                self.may_put.val() & (self.source.q.val().count != 1) & !self.source.q.val().queued;
        }
        if self.cancelled.val() {
            self.sends.ready.next = true;
        }
        // A cancel isn't begun while a walk is under way, nor a walk during a cancel.
        self.given_up.valid.next = self.in_time.val() | self.walker.released.valid.val();
        self.given_up.data.next = self.walker.released.data.val();
        if self.in_time.val() {
            self.given_up.data.next = self.sends.data.val().endpoint;
        }
    }
}
