//! Gets that have left: whether an answer may be taken, and what each ends with.
//!
//! ```text
//!   left ──► open, awaited ── claim ──► open ── answered ──► its outcome is kept, until the send ends
//! ```
//!
//! A get ends when its answer is in its buffer, and so do the sends in front of which it stands. So the sends of a pair that are safe at the peer end up to the
//! first open get. Its answer is claimed once: no two are on their way to one buffer. What has no answer for long is asked for again (`go_back.rs`); an
//! answer of whichever get is a sign that the peer's Responder works, and the pair waits anew.
//!
//! Four bits for each of the latest `MAX_UNACKNOWLEDGED` numbers say all this, at the place that the lowest bits of the number name: that many sends of a pair are
//! unacknowledged at most.

use super::credit::{ACCESS_DENIED, MEMORY_ERROR, REMOTE_ACCESS};
use super::{SendQueues, Step};
use crate::prelude::*;
use crate::types::Claimed;
use abi::status::Status;

#[block]
impl SendQueues {
    /// A get of the pair has left, as this number.
    pub(super) fn open_get(&mut self) {
        self.left_bit.next = bits::<16>(1) << self.weighed.q.val().sent.get_bits::<4>(0);
        self.opens.next = (self.deciding.q.val() == Step::Result)
            & self.given.output.data.val().get
            & !self.given.output.data.val().again
            & !self.refused_by_gather.val()
            & !self.source.q.val().failed;
        if self.opens.val() {
            self.source_next.next.open = self.source.q.val().open | self.left_bit.val();
            self.source_next.next.awaited = self.source.q.val().awaited | self.left_bit.val();
        }
    }

    /// The answer of a get has come. It may go to the get's buffer, if the get waits for it, and for so many bytes.
    pub(super) fn take_claim(&mut self) {
        self.fits.next = self.claim.data.val().refused
            | (self.claim.data.val().length
                == bit_cast::<16, 11>(self.descriptors.read_data.val().length));
        self.claim.ready.next = self.deciding.q.val() == Step::Claim;
        self.takes_claim.next =
            self.claim.ready.val() & self.weighed.q.val().awaits & self.fits.val();
        send!(
            self.claimed,
            self.claim.ready.val(),
            Claimed {
                taken: self.takes_claim.val(),
                domain: self.source.q.val().domain,
                key: self.descriptors.read_data.val().key,
                address: self.descriptors.read_data.val().address,
            }
        );
        // Whether it fits is known late: the word is written as it is if it doesn't.
        if self.claim.ready.val() & self.weighed.q.val().awaits {
            self.write.next = true;
        }
        if self.takes_claim.val() {
            self.source_next.next.awaited = self.source.q.val().awaited & !self.claim_bit.val();
        }
    }

    /// The answer is in its buffer, or won't be. That of a get whose payloads are being read again waits, since it would end what is read.
    pub(super) fn take_answer(&mut self) {
        self.hears_answer.next = false;
        self.outcome.next = 0.into();
        if self.answered.data.val().status == Status::RemoteAccess {
            self.outcome.next = REMOTE_ACCESS;
        }
        if self.answered.data.val().status == Status::AccessDenied {
            self.outcome.next = ACCESS_DENIED;
        }
        if self.answered.data.val().status == Status::MemoryError {
            self.outcome.next = MEMORY_ERROR;
        }
        self.is_answered.next = (self.deciding.q.val() == Step::Answered)
            & !(self.weighed.q.val().is_open & self.is_repeated.val());
        self.answered.ready.next = self.is_answered.val();
        if (self.deciding.q.val() == Step::Answered) & !self.is_answered.val() {
            self.answered_waits.d.next = true;
        }
        if self.is_answered.val() & self.weighed.q.val().is_open {
            self.write.next = true;
            self.ends_safe.next = true;
            self.hears_answer.next = true;
            self.source_next.next.overtaken = true;
            self.source_next.next.open = self.source.q.val().open & !self.answered_bit.val();
            self.source_next.next.ends_low =
                self.source.q.val().ends_low & !self.answered_bit.val();
            self.source_next.next.ends_high =
                self.source.q.val().ends_high & !self.answered_bit.val();
            if self.outcome.val().get_bit(0) {
                self.source_next.next.ends_low =
                    self.source.q.val().ends_low | self.answered_bit.val();
            }
            if self.outcome.val().get_bit(1) {
                self.source_next.next.ends_high =
                    self.source.q.val().ends_high | self.answered_bit.val();
            }
            self.push.next = (self.source.q.val().count.any() | self.weighed.q.val().goes_back)
                & !self.source.q.val().queued;
        }
    }
}
