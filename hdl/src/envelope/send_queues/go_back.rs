//! When a pair goes back, to which send, and when it asks its peer instead.
//!
//! ```text
//!   time-out, some aren't safe ─────► `turn` is the last that has left ────────────────────┐
//!   report of a gap ────────────────► `turn` is the first that isn't safe ─────────────────┼─► the queue of turns
//!   time-out, all are safe and answers are missing                                         │
//!      ├─ for the eighth time, or one was overtaken ─► `turn` is the first get without one ┘
//!      └─ else ─► the peer is asked whether it is there
//!   each of these ─► failed, if it has done so too often and heard of nothing
//! ```
//!
//! **Silence.** At a time-out the pair gives again the last that has left, and that alone: if anything in front of it is missing, the peer reports the gap; if nothing is,
//! the peer is slow, and would only be kept from what it has by more. Nothing is dropped. If what the peer says next leaves some of what had left, it has gone on by
//! itself, and the pair waits twice as long from then on (`learned`), and half as long if it leaves nothing. A gap takes back all that it has learned.
//!
//! **Gaps.** A pair that goes back for a gap gives its sends from there on again, in order, before any other. What Gather holds of it is dropped: all that has
//! left is given again, and so is what is answered meanwhile. What the peer has is passed over, unless it is a get whose answer is asked for again. The payload
//! is read again. So a send that is being given again doesn't end: what the peer says, and the pair's fault, wait for the answers of its jobs.
//!
//! **Answers.** A peer that has a get may have those of all its pairs to answer first. Asking it again for what it has would only make that longer. That it is there
//! it says when it is asked, and that clears the count of tries. Only an answer clears `quiet` and `asked_again`: so a peer that says that it is there and
//! never answers is failed, too.

use super::{SendQueues, Step};
use crate::prelude::*;
use abi::status::Status;
use abi::times::{DOUBLINGS, SCAN_CYCLES};

/// The bits of a cycle that name the scan's last tick before it.
const TICKS: u32 = !(SCAN_CYCLES - 1);

#[block]
impl SendQueues {
    /// Whether the pair goes back. It is failed instead if it has done so too often without hearing of anything.
    pub(super) fn go_back(&mut self) {
        self.tries.next = self.source.q.val().tries + 1;
        self.gives_up.next = self.weighed.q.val().last_try;
        if self.hears_gap.val() & (self.weighed.q.val().hears_more | self.weighed.q.val().ends_some)
        {
            self.tries.next = 1.into();
            self.gives_up.next = !self.source.q.val().retry_limit.any();
        } else if self.hears_gap.val() & self.source.q.val().probed {
            // It is the answer to what was given again: no further try.
            self.tries.next = self.source.q.val().tries;
            self.gives_up.next = false;
        }
        self.goes_back.next = false;
        self.tries_again.next = false;
        self.probes.next = false;
        self.back_to.next = self.weighed.q.val().safe;
        // It waits from when the scan came due, not from when it was looked at: else a time-out of whole scans would be over a few cycles after
        // the scan has passed, and be noticed by the next.
        self.last_tick.next = self.now.q.val() & TICKS;
        if (self.deciding.q.val() == Step::Scan) & self.weighed.q.val().late {
            self.tries_again.next = self.weighed.q.val().silent | self.weighed.q.val().asks;
            self.goes_back.next = (self.weighed.q.val().silent & !self.all_safe.val())
                | self.weighed.q.val().asks_again;
            if self.weighed.q.val().asks_again {
                self.back_to.next = self.source.q.val().acknowledged;
            }
            // One that hasn't given all again for a gap begins anew.
            self.probes.next = self.weighed.q.val().silent
                & (!self.weighed.q.val().goes_back | self.source.q.val().probed);
            if self.probes.val() {
                self.back_to.next = self.weighed.q.val().latest;
            }
        }
        self.learns.next = self.answers_probe.val() & self.some_stay.val();
        self.forgets.next = self.answers_probe.val() & !self.some_stay.val();
        if self.answers_probe.val() {
            self.source_next.next.probed = false;
            self.source_next.next.turn = self.source.q.val().taken;
        }
        if self.learns.val() & (self.source.q.val().learned < DOUBLINGS) {
            self.source_next.next.learned = self.source.q.val().learned + 1;
        }
        if self.forgets.val() & self.source.q.val().learned.any() {
            self.source_next.next.learned = self.source.q.val().learned - 1;
        }
        if self.hears_gap.val() {
            self.tries_again.next = true;
            self.goes_back.next = true;
            self.source_next.next.learned = 0.into();
        }
        if self.tries_again.val() {
            if self.gives_up.val() {
                self.goes_back.next = false;
                self.fail.next = true;
                self.fail_status.next = Status::PeerFailed;
            } else {
                self.write.next = true;
                self.source_next.next.since = self.last_tick.val();
                self.source_next.next.tries = self.tries.val();
                if (self.deciding.q.val() == Step::Scan) & self.weighed.q.val().owes_answers {
                    self.source_next.next.quiet = self.source.q.val().quiet + 1;
                }
            }
        }
        if self.goes_back.val() {
            self.source_next.next.turn = self.back_to.val();
            self.source_next.next.probed = self.probes.val();
            self.source_next.next.for_answers = self.weighed.q.val().asks_again;
            if self.weighed.q.val().asks_again {
                self.source_next.next.quiet = 0.into();
                self.source_next.next.asked_again = self.source.q.val().asked_again + 1;
                self.source_next.next.overtaken = false;
            }
            self.push.next = !self.source.q.val().queued;
            if !self.probes.val() {
                self.dropped.valid.next = true;
                self.dropped.data.next = self.pair.q.val();
            }
        }
    }
}
