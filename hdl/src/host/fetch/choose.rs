//! Decides, for Fetch, of which of the endpoints' rings the next entry is read, and reserves its completion. Rings take turns; one may be read if it has an
//! entry, its class has a place for the entry, and its completion queue has room for what the entry will complete with. The second entry of a gather
//! needs no room of its own.
//!
//! A ring is chosen in one cycle and read in the next in which the request before has gone, if it still may be.

use super::Fetch;
use crate::prelude::*;
use abi::request::REQUEST_BYTES;

#[block]
impl Fetch {
    /// The next ring in turn that has an entry, a place for it, and one for its completion. None is read in the cycle in which
    /// its doorbell is looked at.
    pub(super) fn choose(&mut self) {
        self.may_reserve.next = self.completion_free.val();
        self.eligible.next = 0.into();
        for i in 0..self._n {
            self.eligible.next = self.eligible.val().replace_bit(
                2 * i,
                self.ring[2 * i].pending.val()
                    & !(self.send_doorbell.val()
                        & (self.doorbell_rung.q.val().endpoint == i.to_bits()))
                    & self.send_places.some.val()
                    & !self.bare[i].q.val()
                    & (self.wants_second.val().get_bit(i)
                        | (self.running[i].q.val()
                            & self.may_reserve.val().get_bit(i)
                            & !(self.set_ring.val()
                                & ((self.set_number.val() >> 1) == i.to_bits())
                                & !self.set_number.val().get_bit(0)))),
            );
            self.eligible.next = self.eligible.val().replace_bit(
                2 * i + 1,
                self.ring[2 * i + 1].pending.val()
                    & !(self.list_doorbell.val()
                        & (self.doorbell_rung.q.val().endpoint == i.to_bits()))
                    & self.running[i].q.val()
                    & self.may_reserve.val().get_bit(i)
                    & self.list_places.some.val()
                    & !(self.set_ring.val()
                        & ((self.set_number.val() >> 1) == i.to_bits())
                        & self.set_number.val().get_bit(0)),
            );
        }
        // It is chosen in one cycle, and read in the next in which the request before has gone, if it still may be: so nobody else waits for the
        // choice.
        self.turn.request.next = self.eligible.val();
        self.turn.advance.next = !self.choice_valid.q.val();
        if !self.choice_valid.q.val() {
            self.choice_valid.d.next = self.turn.valid.val();
            self.choice.d.next = self.turn.index.val();
        }
        self.selected_ring.next = self.choice.q.val();
        self.may_read.next = false;
        for i in 0..self._rings {
            if self.selected_ring.val() == i.to_bits() {
                self.may_read.next = self.eligible.val().get_bit(i);
            }
        }
        self.selecting.next =
            self.choice_valid.q.val() & !self.wanted_valid.q.val() & self.may_read.val();
        if !self.wanted_valid.q.val() {
            self.choice_valid.d.next = self.turn.valid.val() & !self.choice_valid.q.val();
        }
        self.selected_start.next = 0.into();
        self.selected_slot.next = 0.into();
        self.free_of_selected.next = false;
        for i in 0..self._rings {
            if self.selected_ring.val() == i.to_bits() {
                self.selected_start.next = self.ring[i].start.val();
                self.selected_slot.next = self.ring[i].slot.val();
            }
        }
        for i in 0..self._n {
            if (self.selected_ring.val() >> 1) == i.to_bits() {
                self.free_of_selected.next = self.completion_free.val().get_bit(i);
            }
        }
    }

    /// Its completion is reserved, and the entry read.
    pub(super) fn read_chosen(&mut self) {
        self.reserve.valid.next = self.selecting.val() & !self.reads_second.val();
        self.reserve.data.next = self.selected_ring.val() >> 1;
        self.reserves_what_is_free.ok.next =
            !self.reserve.valid.val() | self.free_of_selected.val();

        // The read request.
        self.selected_offset.next =
            bit_cast::<64, 16>(self.selected_slot.val()) << REQUEST_BYTES.trailing_zeros();
        self.ring_is_aligned.ok.next =
            !self.selecting.val() | !(self.selected_start.val() & self.selected_offset.val()).any();
        send!(
            self.read_request,
            self.wanted_valid.q.val(),
            self.wanted.q.val()
        );
        if self.read_request.ready.val() {
            self.wanted_valid.d.next = false;
        }
        if self.selecting.val() {
            self.wanted_valid.d.next = true;
            self.wanted.d.next.address = self.selected_start.val() | self.selected_offset.val();
            self.wanted.d.next.length = REQUEST_BYTES;
        }
        self.under_way.input.valid.next = self.selecting.val();
        self.under_way.input.data.next = self.selected_ring.val();
    }
}
