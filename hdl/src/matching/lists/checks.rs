//! What is claimed of the engine, and of its user.

use super::Lists;
use crate::prelude::*;

#[block]
impl Lists {
    /// Claims about copies, and about decisions that were made early.
    pub(super) fn check_decisions(&mut self) {
        self.commands_name_what_there_is.ok.next =
            !self.enters.val() | (self.command.data.val().endpoint < self.endpoints.val());
        self.copies_agree.ok.next = (self.vacant.q.val() != self.front_valid.q.val())
            & (self.issue_empty.q.val() != self.issue_valid.q.val());
        // The exact side had the age of the kept choice in time to compare it.
        self.kept_age_was_compared.ok.next = !(self.told.val()
            & self.result_kept.q.val()
            & self.associative.found.val()
            & self.result.val().found)
            | (self.result.val().rival_older == self.precedes.val());
        // What is read of the commands under way is that of the arrival of the associative way which is answered.
        self.one_command_is_read.ok.next = !self.sole_ends.q.val() | !self.exact.result.valid.val();
        self.messages_have_room.ok.next = !self.unmatched.val() | self.messages.input.ready.val();
        self.messages_come_alone.ok.next = !self.messages.output.valid.val() | !self.begins.q.val();
        self.pending_are_counted.ok.next = (self.pending.q.val() != 0)
            | !(self.matched.val() | self.unmatched.val() | self.hands_over.val());
        self.quick_is_right.ok.next = !self.quick.q.val()
            | ((self.commit.val() == self.quick_commit.val())
                & (self.discard.val() != self.quick_commit.val()));
    }

    /// Claims about commands and replies, and about the seed.
    pub(super) fn check_replies(&mut self) {
        if self.enters.val() & !self.replying.val() {
            self.under_way.d.next = self.under_way.q.val() + 1;
        }
        if self.replying.val() & !self.enters.val() {
            self.under_way.d.next = self.under_way.q.val() - 1;
        }
        self.replies_to_commands.ok.next = !self.replying.val() | (self.under_way.q.val() != 0);
        self.one_at_a_time.ok.next =
            !self.sole_ends.q.val() | !(self.result_valid.val() | self.alone.q.val());
        // A receive stands where the old seed put it, and would be looked for where the new one says.
        self.last_seed.d.next = self.seed.val();
        self.seed_changes_while_empty.ok.next = (self.seed.val() == self.last_seed.q.val())
            | ((self.posted_depth.val() == 0) & (self.under_way.q.val() == 0));
    }
}
