//! What is well formed leaves by the streams, the rest as a completion.

use super::Fetch;
use crate::prelude::*;
use crate::types::Completion;
use abi::status::Status;

#[block]
impl Fetch {
    /// Which of the oldest leave, and which are refused.
    pub(super) fn hand_over(&mut self) {
        self.send_sound.next = self.send_is_plain.val() & !self.send_malformed.q.val();
        self.list_sound.next = self.list_queue.output.valid.val() & !self.list_malformed.q.val();
        send!(
            self.sends,
            self.send_sound.val() | self.gather_sound.val(),
            self.fetched_send.val()
        );
        send!(self.lists, self.list_sound.val(), self.fetched_list.val());
        self.send_refused.next =
            self.send_is_plain.val() & self.send_malformed.q.val() & !self.refused_valid.q.val();
        self.list_refused.next = self.list_queue.output.valid.val()
            & self.list_malformed.q.val()
            & !self.refused_valid.q.val()
            & !self.send_refused.val()
            & !self.gather_refused.val();
        self.send_leaves.next = self.send_sound.val() & self.sends.ready.val();
        self.list_leaves.next = self.list_sound.val() & self.lists.ready.val();
        self.send_gone.next = self.send_leaves.val()
            | self.send_refused.val()
            | self.holds.val()
            | (self.gather_gone.val() & self.gather_whole.q.val());
        self.send_queue.output.ready.next = self.send_gone.val();
        self.list_gone.next = self.list_leaves.val() | self.list_refused.val();
        self.list_queue.output.ready.next = self.list_gone.val();
        self.count_invalid_requests.next = self.send_refused.val()
            | self.list_refused.val()
            | (self.gather_refused.val() & self.gather_is_malformed.val());
    }

    /// The refusal on its way, and the next one.
    pub(super) fn refuse(&mut self) {
        send!(
            self.complete,
            self.refused_valid.q.val(),
            self.refused.q.val()
        );
        self.refusal_leaves.next = self.refused_valid.q.val() & self.complete.ready.val();
        if self.refusal_leaves.val() {
            self.refused_valid.d.next = false;
        }
        self.refusal.next = Completion::default();
        self.refusal.next.status = Status::InvalidRequest;
        if self.send_refused.val() {
            self.refusal.next.request = self.as_send.val().request;
            self.refusal.next.pair = self.as_send.val().pair;
            self.refusal.next.kind = self.send_kind.q.val();
            self.refused.d.next.endpoint = self.send_ring.val() >> 1;
            self.refused_ring.d.next = self.send_ring.val();
        }
        if self.list_refused.val() {
            self.refusal.next.request = self.as_list.val().request;
            self.refusal.next.pair = self.as_list.val().pair;
            self.refusal.next.kind = self.list_kind.q.val();
            self.refused.d.next.endpoint = self.list_ring.val() >> 1;
            self.refused_ring.d.next = self.list_ring.val();
        }
    }

    /// It waits for the completion queue.
    pub(super) fn keep_refusal(&mut self) {
        if self.send_refused.val() | self.list_refused.val() | self.gather_refused.val() {
            self.refused_valid.d.next = true;
            self.refused.d.next.entry = self.refusal.val();
        }
    }

    /// Places come back when what was read leaves its queue, or never came there.
    pub(super) fn count_places(&mut self) {
        set!(
            self.send_places,
            taken = self.selecting.val() & !self.selected_ring.val().get_bit(0),
            gone = self.send_gone.val(),
            left = (self.discard.val() & !self.from_list.val()) | self.put_back.val()
        );
        set!(
            self.list_places,
            taken = self.selecting.val() & self.selected_ring.val().get_bit(0),
            gone = self.list_gone.val(),
            left = self.discard.val() & self.from_list.val()
        );
    }
}
