//! Decides, for the pipeline of SendQueues, what is done next and to which pair: a step each two cycles. The picture has the steps in the order of their
//! precedence: an answer of Gather comes first, so that a send is known to be on its way before its peer is heard; a new send comes last. Whether a step may be
//! done is decided here too, from what is under way and from what has room; what it does to the pair is decided two cycles later.
//!
//! ```text
//!   answer of a job ─┐
//!   fault ───────────┤
//!   control request ─┼─► the first of these that may be done ──► reading ──► weighing ──► deciding
//!   answered, claim ─┤                    │
//!   progress, scan ──┤                    │
//!   turn, send ──────┘                    └─► address of the pair's word
//! ```
//!
//! What a step stands for stays on offer until it is decided. So none of a kind is chosen while one of that kind is weighed or decided, and none of a pair
//! whose word is still to be written.

use super::{SendQueues, Step};
use crate::config::JOBS;
use crate::prelude::*;

/// So many completions may wait when a step is chosen that adds some.
const ENDED_AT_CHOICE: usize = 3;

#[block]
impl SendQueues {
    /// What may be done, and the step that is.
    pub(super) fn choose(&mut self) {
        self.ending_sends.next = self.walker.busy.val() | self.draining.q.val();
        self.hears.next = (self.weighing.q.val() == Step::Progress)
            | (self.deciding.q.val() == Step::Progress)
            | (self.weighing.q.val() == Step::Answered)
            | (self.deciding.q.val() == Step::Answered);
        self.scans.next =
            (self.weighing.q.val() == Step::Scan) | (self.deciding.q.val() == Step::Scan);
        self.walk_busy.next = self.ending_sends.val() | self.hears.val();
        self.flushes.next =
            self.ending_sends.val() & (self.for_fault.q.val() | self.for_control.q.val());
        self.ended_has_room.next = self.ended.level.val() <= ENDED_AT_CHOICE;
        // What may ask for a fault or for a frame waits until the last request for one has been taken.
        self.held_back.next = self.fault_pending.q.val()
            | self.mark_pending.q.val()
            | self.hears.val()
            | self.scans.val();
        // What would change a pair's sends waits while some of that pair are being completed.
        self.result_ready.next = self.given.output.valid.val()
            & self.ended_has_room.val()
            & (self.weighing.q.val() != Step::Result)
            & (self.deciding.q.val() != Step::Result)
            & !(self.walker.busy.val()
                & (self.walker.pair.val() == self.given.output.data.val().pair));
        // An answer that has come goes first: a send is known to be on its way before anything is heard of it.
        self.no_result.next = self.given.level.val() == self.owed.q.val();
        self.fault_ready.next = self.fault.valid.val()
            & self.delivery_done.val()
            & self.no_result.val()
            & !self.walk_busy.val()
            & !self.fault_waits.q.val();
        self.control_ready.next = self.control.valid.val()
            & self.no_result.val()
            & !self.walk_busy.val()
            & !self.awaits_result.q.val()
            & !(self.ends_pair.val() & self.fault_pending.q.val());
        // Gather has forgotten a job whose answer waits here, for room for its completion.
        self.given_has_room.next = self.given.level.val() < JOBS;
        self.turn_ready.next = self.turns.output.valid.val()
            & self.job_room.val()
            & self.given_has_room.val()
            & !self.flushes.val()
            & (self.weighing.q.val() != Step::Turn)
            & (self.deciding.q.val() != Step::Turn)
            & !self.giving.q.val()
            & !self.settling.q.val();
        self.accept_ready.next = self.sends.valid.val()
            & self.ended_has_room.val()
            & (self.weighing.q.val() != Step::Accept)
            & (self.deciding.q.val() != Step::Accept)
            & !(self.walk_busy.val() & self.is_cancel.val())
            & !(self.ending_sends.val() & (self.walker.pair.val() == self.request.val().pair));
        self.scan_ready.next = self.scan_due.q.val() & !self.held_back.val();
        self.others.next = self.scan_due.q.val() | self.turn_ready.val() | self.accept_ready.val();
        self.progress_ready.next = self.progress.valid.val()
            & self.no_result.val()
            & !self.held_back.val()
            & !self.walk_busy.val()
            & !self.progress_waits.q.val()
            & !(self.progress_last.q.val() & self.others.val());

        self.answered_ready.next = self.answered.valid.val()
            & self.no_result.val()
            & !self.walk_busy.val()
            & !self.answered_waits.q.val();
        self.claim_ready.next = self.claim.valid.val()
            & self.no_result.val()
            & (self.weighing.q.val() != Step::Claim)
            & (self.deciding.q.val() != Step::Claim);

        self.chosen.next = Step::Nothing;
        self.address.next = self.pair.q.val();
        if self.result_ready.val() {
            self.chosen.next = Step::Result;
            self.address.next = self.given.output.data.val().pair;
        } else if self.fault_ready.val() {
            self.chosen.next = Step::Fault;
            self.address.next = self.fault.data.val().pair;
        } else if self.control_ready.val() {
            self.chosen.next = Step::Control;
            self.address.next = self.control.data.val().index;
        } else if self.answered_ready.val() {
            self.chosen.next = Step::Answered;
            self.address.next = self.answered.data.val().pair;
        } else if self.claim_ready.val() {
            self.chosen.next = Step::Claim;
            self.address.next = self.claim.data.val().pair;
        } else if self.progress_ready.val() {
            self.chosen.next = Step::Progress;
            self.address.next = self.progress.data.val().pair;
        } else if self.scan_ready.val() {
            self.chosen.next = Step::Scan;
            self.address.next = self.scan.q.val();
        } else if self.turn_ready.val() {
            self.chosen.next = Step::Turn;
            self.address.next = self.turns.output.data.val();
        } else if self.accept_ready.val() {
            self.chosen.next = Step::Accept;
            if self.is_cancel.val() {
                self.chosen.next = Step::Cancel;
            }
            self.address.next = self.request.val().pair;
        }

        // A fault, a control request, a cancel and an answer that ends a send are alone until they are decided.
        self.weighed_alone.next = (self.weighing.q.val() == Step::Fault)
            | (self.weighing.q.val() == Step::Control)
            | (self.weighing.q.val() == Step::Cancel)
            | ((self.weighing.q.val() == Step::Result) & self.answer_ends.val());
        self.decided_alone.next = (self.deciding.q.val() == Step::Fault)
            | (self.deciding.q.val() == Step::Control)
            | (self.deciding.q.val() == Step::Cancel)
            | ((self.deciding.q.val() == Step::Result) & self.answer_ends.val());
        self.may_choose.next = self.cleared.q.val()
            & (self.reading.q.val() == Step::Nothing)
            & !self.weighed_alone.val()
            & !self.decided_alone.val()
            & !self.remove.busy.val();
        self.same_pair.next = ((self.weighing.q.val() != Step::Nothing)
            | (self.deciding.q.val() != Step::Nothing))
            & (self.address.val() == self.pair.q.val());
        self.chooses.next =
            self.may_choose.val() & (self.chosen.val() != Step::Nothing) & !self.same_pair.val();
        self.reading.d.next = Step::Nothing;
        if self.chooses.val() {
            self.reading.d.next = self.chosen.val();
            self.read_pair.d.next = self.address.val();
            self.progress_last.d.next = self.chosen.val() == Step::Progress;
        }
        self.sources.read_address.next = self.address.val();
        self.weighing.d.next = self.reading.q.val();
        if self.reading.q.val() != Step::Nothing {
            self.pair.d.next = self.read_pair.q.val();
            self.source.d.next = self.sources.read_data.val();
        }
        self.deciding.d.next = self.weighing.q.val();
    }
}
