//! Keys or handles of six ways are compared with the look-up's; what was written while it read is compared beside them.

use super::Exact;
use crate::matching::handle_way::By;
use crate::prelude::*;
use crate::types::Search;

#[block]
impl Exact {
    /// The look-up in `compare`, and what its ways say.
    pub(super) fn compare_words(&mut self) {
        self.by_key.next = (self.read.q.val().search == Search::Arrive)
            | (self.read.q.val().search == Search::Post);
        if self.moves.q.val() {
            self.compare_valid.d.next = self.read_valid.q.val() & self.move_read.val();
            self.compare.d.next = self.read.q.val();
            self.compare_rows.d.next = self.read_rows.q.val();
            self.compare_by_key.d.next = self.by_key.val();
            self.compare_chosen.d.next = 0.into();
            self.compare_by.d.next = By::Nothing;
            match self.read.q.val().search {
                Search::Cancel => {
                    self.compare_by.d.next = By::Request;
                }
                Search::OfPair => {
                    self.compare_by.d.next = By::Pair;
                }
                Search::OfEndpoint => {
                    self.compare_by.d.next = By::Endpoint;
                }
                Search::Unlink => {
                    self.compare_chosen.d.next = bits::<8>(1) << self.unlink_way.q.val();
                }
                _ => {}
            }
        }
        self.mux_hit.next = 0.into();
        self.occupied.next = 0.into();
        self.handle_hits.next = 0.into();
        self.handle_occupied.next = 0.into();
        self.fresh_slots.capture.next = self.moves.q.val();
        self.fresh_slots.pass.next = self.moves.q.val();
        self.fresh_slots.key.next = self.compare.q.val().key;
        self.fresh_handles.capture.next = self.moves.q.val();
        self.in_old.next = 0.into();
        self.in_last.next = 0.into();
        self.in_now.next = 0.into();
        self.fresh_handle.next = false;
        for i in 0..6 {
            self.key_way[i].capture.next = self.moves.q.val();
            self.key_way[i].pass.next = self.moves.q.val();
            self.key_way[i].key.next = self.compare.q.val().key;
            self.key_way[i].occupied_old.next = self.fresh_slots.occupied_old.val();
            self.key_way[i].occupied_last.next = self.fresh_slots.occupied_last.val();
            self.key_way[i].occupied_now.next = self.fresh_slots.occupied_now.val();
            self.key_way[i].by_key.next = self.compare_by_key.q.val();
            self.key_way[i].chosen.next = self.compare_chosen.q.val().get_bit(i);
            self.key_way[i].shows_old.next = self.fresh_slots.shows_old.val();
            self.key_way[i].shows_last.next = self.fresh_slots.shows_last.val();
            self.key_way[i].shows_now.next = self.fresh_slots.shows_now.val();
            self.mux_hit.next = self.mux_hit.val().replace_bit(i, self.key_way[i].hit.val());
            self.occupied.next = self
                .occupied
                .val()
                .replace_bit(i, self.key_way[i].occupied.val());
            self.in_old.next = self
                .in_old
                .val()
                .replace_bit(i, self.key_way[i].in_old.val());
            self.in_last.next = self
                .in_last
                .val()
                .replace_bit(i, self.key_way[i].in_last.val());
            self.in_now.next = self
                .in_now
                .val()
                .replace_bit(i, self.key_way[i].in_now.val());
            self.handle_way[i].capture.next = self.moves.q.val();
            self.handle_way[i].pass.next = self.moves.q.val();
            self.handle_way[i].occupied_old.next = self.fresh_handles.old.val();
            self.handle_way[i].occupied_last.next = self.fresh_handles.last.val();
            self.handle_way[i].occupied_now.next = self.fresh_handles.now.val();
            self.handle_way[i].by.next = self.compare_by.q.val();
            self.handle_way[i].endpoint.next = self.compare.q.val().endpoint;
            self.handle_way[i].request.next = self.compare.q.val().request;
            self.handle_way[i].pair.next = self.compare.q.val().pair;
            self.handle_way[i].select.next = self.mux_handle_hit.q.val().get_bit(i);
            self.handle_hits.next = self
                .handle_hits
                .val()
                .replace_bit(i, self.handle_way[i].hit.val());
            self.handle_occupied.next = self
                .handle_occupied
                .val()
                .replace_bit(i, self.handle_way[i].occupied.val());
            self.fresh_handle.next = self.fresh_handle.val() | self.handle_way[i].fresh.val();
        }
        // Ways that there aren't are never free, and never hit: nor written, so that synthesis leaves nothing of their memories.
        self.mux_hit.next = self.mux_hit.val() & self.ways.val();
        self.handle_hits.next = self.handle_hits.val() & self.ways.val();
        self.occupied.next = self.occupied.val() | !self.ways.val();
        self.handle_occupied.next = self.handle_occupied.val() | !self.ways.val();
        // In a walk several ways may hit.
        self.first_hit.set.next = self.handle_hits.val();
        self.key_place.occupied.next = self.occupied.val();
        self.handle_place.occupied.next = self.handle_occupied.val();
        self.fresh_slots.in_old.next = self.in_old.val().any();
        self.fresh_slots.in_last.next = self.in_last.val().any();
        self.fresh_slots.in_now.next = self.in_now.val().any();
    }
}
