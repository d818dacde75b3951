//! A send comes: it waits, or is refused. A cancel comes: it walks the queue of its pair, and nothing else is done meanwhile.

use super::waiting::WaitingSend;
use super::{SendQueues, Step};
use crate::prelude::*;
use abi::completion::CompletionKind;
use abi::limits::SEND_QUEUE_DEPTH;
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
            } else if self.source.q.val().count == SEND_QUEUE_DEPTH {
                self.refusal.next = Status::QueueFull;
            } else {
                self.write.next = true;
                self.queues.next = true;
                self.source_next.next.count = self.source.q.val().count + 1;
                self.push.next = self.has_credit.val() & !self.source.q.val().queued;
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

    /// The walk of a cancel, and what it finds.
    pub(super) fn cancel_one(&mut self) {
        self.cancel.start.next = self.deciding.q.val() == Step::Cancel;
        self.cancel.count.next = 0.into();
        if (self.deciding.q.val() == Step::Cancel) & self.weighed.q.val().own {
            self.cancel.count.next = self.source.q.val().count;
        }
        self.cancel.head.next = self.source.q.val().head;
        self.cancel.target.next = self.request.val().target;
        self.cancel.read.next = self.waiting.read.val();
        self.in_time.next = self.cancel.done.val() & self.cancel.found.val();
        self.takes_out.next = self.in_time.val();
        self.too_late.next = self.cancel.done.val() & !self.cancel.found.val();
        self.moves_up.next = self.cancel.moves.val();
        if self.cancel.hits.val() {
            self.ends.next = true;
            self.ending.next.endpoint = self.source.q.val().endpoint;
            self.ending.next.request = self.waiting.read.val().request;
            self.ending.next.context = self.waiting.read.val().context;
            self.ending.next.length = bit_cast::<64, 11>(self.waiting.read.val().length);
            self.ending.next.status = Status::Cancelled;
        }
        if self.too_late.val() {
            self.ends.next = true;
            self.ending.next.kind = CompletionKind::Cancel;
            self.ending.next.status = Status::TooLate;
        }
        if self.takes_out.val() {
            self.write.next = true;
            self.source_next.next.count = self.source.q.val().count - 1;
        }
        if self.cancel.done.val() {
            self.sends.ready.next = true;
        }
        // A cancel isn't begun while a walk is under way, nor a walk during a cancel.
        self.given_up.valid.next = self.in_time.val() | self.unacknowledged.released.valid.val();
        self.given_up.data.next = self.unacknowledged.released.data.val();
        if self.in_time.val() {
            self.given_up.data.next = self.sends.data.val().endpoint;
        }
    }

    /// The memory of the sends that wait: what is written, and who reads.
    pub(super) fn keep(&mut self) {
        self.flags.next = self.request.val().flags;
        self.at.next = self.request.val().address;
        self.key.next = self.request.val().key;
        if self.flags.val().get_bit(3) {
            self.at.next = bit_cast::<64, 32>(self.request.val().target)
                | (bit_cast::<64, 32>(self.request.val().inline1) << 32);
            self.key.next = self.request.val().inline2.get_bits::<32>(0);
        }
        self.accepted.next = WaitingSend {
            context: self.request.val().context,
            length: bit_cast::<11, 64>(self.request.val().length),
            errors_only: self.flags.val().get_bit(1),
            ready: self.flags.val().get_bit(0),
            inline: self.flags.val().get_bit(3),
            request: self.request.val().request,
            match_bits: self.request.val().match_bits,
            immediate: self.request.val().immediate,
            address: self.at.val(),
            key: self.key.val(),
            tail: self.request.val().inline2.get_bits::<32>(32),
            segments: self.sends.data.val().segments,
        };
        self.waiting.write.valid.next = self.queues.val();
        self.waiting.write.data.next = self.accepted.val();
        self.waiting.write_pair.next = self.pair.q.val();
        self.waiting.write_place.next = self.source.q.val().head + self.source.q.val().count;
        if self.moves_up.val() {
            self.waiting.write.valid.next = true;
            self.waiting.write.data.next = self.waiting.read.val();
            self.waiting.write_place.next = self.cancel.upper_place.val();
        }
        self.waiting.read_pair.next = self.unacknowledged.pair.val();
        self.waiting.read_place.next = self.unacknowledged.place.val();
        if self.deciding.q.val() == Step::Turn {
            self.waiting.read_pair.next = self.pair.q.val();
            self.waiting.read_place.next = self.source.q.val().head;
        }
        if self.cancel.busy.val() {
            self.waiting.read_pair.next = self.pair.q.val();
            self.waiting.read_place.next = self.cancel.place.val();
        }
    }
}
