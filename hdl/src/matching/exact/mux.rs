//! The way that agreed is chosen, and the entry of its receive is read.

use super::{Exact, Found};
use crate::prelude::*;
use crate::types::Search;

#[block]
impl Exact {
    /// The look-up in `mux`: its slot or its handle, and the entry to read.
    pub(super) fn select(&mut self) {
        if self.moves.q.val() {
            self.mux_valid.d.next = self.compare_valid.q.val();
            self.mux.d.next = self.compare.q.val();
            self.mux_rows.d.next = self.compare_rows.q.val();
            self.mux_free.d.next = self.key_place.place.val();
            self.mux_handle_hit.d.next = self.first_hit.lowest.val();
            self.mux_handle_free.d.next = self.handle_place.place.val();
        }
        self.muxed_head.next = self.fresh_slots.shown.val().head;
        self.muxed_tail.next = self.fresh_slots.shown.val().tail;
        self.muxed_age.next = self.fresh_slots.shown.val().age;
        self.muxed_multi.next = self.fresh_slots.shown.val().multi;
        self.muxed_id.next = 0.into();
        self.muxed_class.next = 0.into();
        for i in 0..6 {
            self.muxed_head.next = self.muxed_head.val() | self.key_way[i].head.val();
            self.muxed_tail.next = self.muxed_tail.val() | self.key_way[i].tail.val();
            self.muxed_age.next = self.muxed_age.val() | self.key_way[i].age.val();
            self.muxed_multi.next = self.muxed_multi.val() | self.key_way[i].multi.val();
            self.muxed_id.next = self.muxed_id.val() | self.handle_way[i].id.val();
            self.muxed_class.next = self.muxed_class.val() | self.handle_way[i].class_id.val();
        }
        self.muxed.next = Found::default();
        self.muxed.next.rows = self.mux_rows.q.val();
        self.muxed.next.head = self.muxed_head.val();
        self.muxed.next.tail = self.muxed_tail.val();
        self.muxed.next.age = self.muxed_age.val();
        self.muxed.next.multi = self.muxed_multi.val();
        self.mux_key.next = self.mux.q.val().key;
        self.muxed.next.key = self.mux_key.val();
        self.muxed.next.id = self.muxed_id.val();
        self.muxed.next.handle_way = self.mux_handle_free.q.val();
        self.muxed.next.way = self.mux_hit.val();
        self.muxed.next.class = self.mux_key.val().get_bits::<6>(91);
        match self.mux.q.val().search {
            Search::Arrive => {
                self.muxed.next.found = self.mux_hit.val().any();
            }
            Search::Post => {
                self.muxed.next.found = self.mux_hit.val().any();
                self.muxed.next.room = self.mux_handle_free.q.val().any();
                if !self.mux_hit.val().any() {
                    self.muxed.next.way = self.mux_free.q.val();
                    self.muxed.next.room =
                        self.mux_handle_free.q.val().any() & self.mux_free.q.val().any();
                }
            }
            Search::Unlink => {
                self.muxed.next.id = self.entry_address.q.val();
            }
            _ => {
                self.muxed.next.found = self.mux_handle_hit.q.val().any();
                self.muxed.next.class = self.muxed_class.val();
            }
        }
        // A look-up has either the head of its queue or the number of a handle, the other being zero. While `end` waits, the same
        // entry is read again and again; so is that of a receive that is to be unlinked, until its slot is known.
        self.address.next = self.muxed_head.val() | self.muxed_id.val();
        self.entry_at.next = self.address.val();
        if self.stands.q.val()
            | !self.mux_valid.q.val()
            | (self.mux.q.val().search == Search::Unlink)
        {
            self.entry_at.next = self.entry_address.q.val();
        }
        self.entry_address.d.next = self.entry_at.val();
        self.links.read_address.next = bit_cast::<16, 14>(self.entry_at.val());
        self.homes.read_address.next = bit_cast::<16, 14>(self.entry_at.val());
        self.prevs.read_address.next = bit_cast::<16, 14>(self.entry_at.val());
    }
}
