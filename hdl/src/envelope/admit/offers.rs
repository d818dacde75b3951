//! Whether the message that is offered, or the request, may enter.

use super::{Admit, ENTERED, MOST_TURNS, Stage};
use crate::prelude::*;
use abi::request::CLAIM_SLOT_BITS;

#[block]
impl Admit {
    /// Who has entered, and what is asked about them.
    pub(super) fn remember(&mut self) {
        self.all_is_found.next =
            self.messages.empty.val() & !self.request_in.q.val() & !self.again.q.val();
        self.has_place.next = self.entered.q.val() < ENTERED;
        if self.request_done.val() {
            self.request_in.d.next = false;
        }
        if self.retry.val() {
            self.again.d.next = true;
        }
        if self.removed.valid.val() {
            self.lost_in.d.next = false;
        }
        self.list.next = self.lists.data.val().fetched.request;
        self.list_endpoint.next = self.lists.data.val().fetched.endpoint;
        self.multis.posted.valid.next = self.multi_posted.valid.val();
        self.multis.posted.data.next = self.multi_posted.data.val();
        self.multis.gone.valid.next = self.multi_gone.valid.val();
        self.multis.gone.data.next = self.multi_gone.data.val();
        self.multis.endpoint.next = self.arrival.data.val().endpoint;
        send!(
            self.filling.enters,
            self.fills.valid.val(),
            self.fills.data.val()
        );
        send!(
            self.filling.written,
            self.written.valid.val(),
            self.written.data.val()
        );
        send!(
            self.filling.removed,
            self.removed.valid.val(),
            self.removed.data.val()
        );
        self.in_hand_fills.next = self.filling.fills.val();
        self.in_hand_is_lost.next = self.filling.is_lost.val();
        self.messages.leaves.next = self.message_done.val();
        set!(
            self.messages,
            pair = self.arrival.data.val().pair,
            endpoint = self.walk_endpoint.q.val()
        );
        set!(
            self.filling,
            pair = self.arrival.data.val().pair,
            endpoint = self.walk_endpoint.q.val(),
            slot = self.in_hand.val()
        );
    }

    /// A message waits for those of its pair; if its endpoint has a multi-receive, for all that Lists or Answer haven't dealt with. None enters before all that are lost are removed, so no
    /// more are ever lost than may be under way.
    pub(super) fn offer_message(&mut self) {
        self.endpoint.next = self.arrival.data.val().endpoint;
        self.in_ring.next =
            ((self.lists_pending.val() >> self.arrival.data.val().endpoint.get_bits::<4>(0)) & 1)
                .any();
        self.on_its_way.next = self.in_ring.val() | self.in_posts.val();
        self.ready_waits.next = self.arrival.data.val().ready
            & self.request_in.q.val()
            & (self.request.q.val().fetched.endpoint == self.arrival.data.val().endpoint);
        self.arrival_alone.next = self.multis.any.val();
        // Messages of an endpoint whose walk is about to begin come behind its first step.
        self.arrival_walked.next = (self.stage.q.val() == Stage::Due)
            & (self.arrival.data.val().endpoint == self.walk_endpoint.q.val());
        self.arrival_free.next = self.arrival.valid.val()
            & self.slot_known.val()
            & !self.ready_waits.val()
            & !self.again.q.val()
            & !self.has_lost.val()
            & !self.arrival_walked.val()
            & self.messages.room.val()
            & self.has_place.val()
            & (!self.arrival_alone.val() | self.all_is_found.val());
        self.may_pass.next = self.aside.val() & (self.owed.q.val() < MOST_TURNS);
        self.arrival_goes.next = self.arrival_free.val()
            & (self.arrival_now.val()
                | self.awaits_slot.q.val()
                | self.may_pass.val()
                | !(self.owed.q.val().any() & self.lists.valid.val()));
    }

    /// A request waits for the one before it, and for receives that have to be woken; one of a stalled endpoint for all messages and the step of a walk,
    /// by which one may have to be. Its pair, or its claim's, is read meanwhile.
    pub(super) fn offer_request(&mut self) {
        self.endpoint_waits.next = self.backlog.stalled.val()
            & (!self.messages.empty.val() | (self.stage.q.val() == Stage::Asked));
        self.again_goes.next =
            self.again.q.val() & self.messages.empty.val() & self.has_place.val();
        self.list_pair.next = self.list.val().pair;
        if self.lists.data.val().fetched.names_claim {
            self.list_pair.next = self
                .list
                .val()
                .target
                .get_bits::<{ CLAIM_SLOT_BITS as usize }>(0)
                >> 6;
        }
        self.named.read_address.next = self.list_pair.val();
        self.list_free.next = self.lists.valid.val()
            & self.list_looked.q.val()
            & !self.request_in.q.val()
            & !self.awaits_slot.q.val()
            & !self.backlog.wakes_soon.val()
            & !self.endpoint_waits.val()
            & self.has_place.val();
        self.list_goes.next = self.list_free.val() & !self.arrival_goes.val();
    }
}
