//! The rings: doorbells, heads, and what becomes of their entries.

use super::Fetch;
use crate::prelude::*;
use abi::event::{INFO_LIST_RING_BIT, NO_PAIR};
use abi::register::{LIST_TAIL, SEND_TAIL};

#[block]
impl Fetch {
    /// Doorbells go to their rings, and the heads that are asked for are looked up.
    pub(super) fn hear_doorbells(&mut self) {
        self.rung.d.next = self.doorbell.valid.val();
        self.doorbell_rung.d.next = self.doorbell.data.val();
        self.send_doorbell.next =
            self.rung.q.val() & (self.doorbell_rung.q.val().offset == SEND_TAIL);
        self.list_doorbell.next =
            self.rung.q.val() & (self.doorbell_rung.q.val().offset == LIST_TAIL);
        self.read_send_head.d.next = 0.into();
        self.read_list_head.d.next = 0.into();
        self.pending_now.next = 0.into();
        for i in 0..self._n {
            self.ring[2 * i].clear.next = self.clearing.val() & (self.target.val() == i.to_bits());
            self.ring[2 * i + 1].clear.next =
                self.clearing.val() & (self.target.val() == i.to_bits());
            self.ring[2 * i].doorbell.next =
                self.send_doorbell.val() & (self.doorbell_rung.q.val().endpoint == i.to_bits());
            self.ring[2 * i + 1].doorbell.next =
                self.list_doorbell.val() & (self.doorbell_rung.q.val().endpoint == i.to_bits());
            if self.read_endpoint.val() == i.to_bits() {
                self.read_send_head.d.next = self.ring[2 * i].head.val();
                self.read_list_head.d.next = self.ring[2 * i + 1].head.val();
            }
            self.pending_now.next = self.pending_now.val().replace_bit(
                i,
                self.ring[2 * i + 1].pending.val() | !self.ring[2 * i + 1].empty.val(),
            );
        }
        self.send_head.next = self.read_send_head.q.val();
        self.list_head.next = self.read_list_head.q.val();
        self.pending_lists.d.next = self.pending_now.val();
        self.lists_pending.next = self.pending_lists.q.val();
    }

    /// What has been read, kept, discarded and handed over.
    pub(super) fn move_rings(&mut self) {
        self.ignored.next = false;
        for i in 0..self._rings {
            self.ring[i].set.next = self.setting.val() & (self.set_number.val() == i.to_bits());
            self.ring[i].base.next = self.ring_setup.val().base;
            self.ring[i].log2.next = self.ring_setup.val().log2;
            self.ring[i].value.next = self.doorbell_rung.q.val().value;
            self.ring[i].read.next =
                self.selecting.val() & (self.selected_ring.val() == i.to_bits());
            self.ring[i].advance.next = self.keep.val() & (self.from.val() == i.to_bits());
            self.ring[i].stop.next = self.unreadable.val() & (self.from.val() == i.to_bits());
            self.ring[i].discard.next = self.discard.val() & (self.from.val() == i.to_bits());
            self.ring[i].put_back.next = self.put_back.val() & (self.from.val() == i.to_bits());
            self.ring[i].leaves.next =
                ((self.send_leaves.val() | self.joins.val() | self.gather_leaves.val())
                    & (self.send_ring.val() == i.to_bits()))
                    | (self.list_leaves.val() & (self.list_ring.val() == i.to_bits()));
            self.ring[i].refused.next =
                self.refusal_leaves.val() & (self.refused_ring.q.val() == i.to_bits());
            self.ignored.next = self.ignored.val() | self.ring[i].ignored.val();
        }
        self.count_doorbell_errors.next = self.ignored.val();
    }

    /// Events of the rings, in turn.
    pub(super) fn raise_events(&mut self) {
        self.event_request.next = 0.into();
        for i in 0..self._rings {
            self.event_request.next = self
                .event_request
                .val()
                .replace_bit(i, self.ring[i].raise.val());
        }
        self.event_turn.request.next = self.event_request.val();
        self.raising.next = self.event_turn.valid.val() & !self.raised_valid.q.val();
        self.event_turn.advance.next = self.raising.val();
        self.event_number.next = self.event_turn.index.val();
        send!(self.raise, self.raised_valid.q.val(), self.raised.q.val());
        if self.raise.ready.val() {
            self.raised_valid.d.next = false;
        }
        for i in 0..self._rings {
            self.info.next = self.ring[i].info.val();
            self.ring[i].event_taken.next =
                self.raising.val() & (self.event_number.val() == i.to_bits());
            if self.raising.val() & (self.event_number.val() == i.to_bits()) {
                self.raised_valid.d.next = true;
                self.raised.d.next.endpoint = self.event_number.val() >> 1;
                self.raised.d.next.cause = self.ring[i].cause.val();
                self.raised.d.next.pair = NO_PAIR;
                self.raised.d.next.info = bit_cast::<64, 32>(self.info.val())
                    | (bit_cast::<64, 8>(self.event_number.val() & 1) << INFO_LIST_RING_BIT);
            }
        }
    }
}
