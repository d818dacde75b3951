//! The steps of an operation: an insertion, a search, and the removal of what was found.
//!
//! ```text
//!   Idle ──► Place ──► Insert ──► Store ──► Idle
//!    │         └──────────────┐
//!    ├─────► Unit ◄──► Pair ──┴► Drain ──┬──► Idle
//!    └─────► Head ──────────────► Rows ──┴──► Remove ──► Removed ──► Unlink ──► Idle
//! ```

use super::{Candidate, Key, Link, Row, UnexpectedRows, Walk};
use crate::prelude::*;

#[block]
impl UnexpectedRows {
    /// The next step of an operation.
    pub(super) fn step(&mut self) {
        self.best_bit.next = bits::<8>(1) << self.best.q.val().number;
        self.owner_bit.next = (bits::<32>(1) << self.best.q.val().owner) & self.endpoint_bits.val();
        self.links_row.next = false;
        self.empties.next = false;
        self.unlinks.next = false;
        self.best_row.next = self.best.q.val().contents;
        self.ends.next = false;
        // The last row of a search ends it, or goes over to the removal of what it found.
        self.row_ends.next = self.first_valid.q.val() & self.first_last.q.val();
        self.removes.next =
            self.key.q.val().remove & (self.first.q.val().found | self.best.q.val().found);
        self.cleared.next = self.cursor.q.val() == self.last_row.val();
        // The unit whose row is read is the pair's last: in Unit it has just come, in Pair the number has moved on.
        self.has_none.next = self.counts.read_data.val() == 0;
        self.ends_units.next = self.next_unit.q.val() == self.counts.read_data.val();
        self.was_last.next = self.next_unit.q.val() > self.counts.read_data.val();
        self.ends_unit.next = (self.cursor.q.val() & self.unit_mask.val()) == self.unit_mask.val();
        self.names_source.next = self.by_pair.val() | !self.any_source.val();
        self.next_walk.next = self.walk.q.val();
        match self.walk.q.val() {
            Walk::Clear => {
                self.rows.write.enable.next = true;
                self.rows.write.address.next = self.cursor.q.val();
                self.cursor.d.next = self.cursor.q.val() + 1;
                if self.cleared.val() {
                    self.next_walk.next = Walk::Idle;
                }
            }
            Walk::Idle => {
                self.heads.read_address.next = bit_cast::<16, 8>(self.endpoint.val());
                // The key's unit: of its slot, or its pair's first.
                self.counts.read_address.next = self.pair.val();
                self.unit_address.next = self.pair.val() << 3;
                if self.insert.val() | self.by_place.val() {
                    self.unit_address.next =
                        (self.pair.val() << 3) | bit_cast::<16, 6>(self.slot.val() >> 3);
                }
                if self.insert.val() | self.search.val() {
                    self.key.d.next = Key {
                        endpoint: self.endpoint.val(),
                        pair: self.pair.val(),
                        by_pair: self.by_pair.val(),
                        by_place: self.by_place.val(),
                        any_source: self.any_source.val() & !self.by_pair.val(),
                        context_id: self.context_id.val(),
                        match_bits: self.match_bits.val(),
                        care_bits: !self.ignore_bits.val(),
                        age: self.number.q.val(),
                        remove: self.remove.val(),
                    };
                    self.slot_held.d.next = self.slot.val();
                    self.inserts.d.next = self.insert.val();
                    self.next_unit.d.next = 1.into();
                    self.key_place.d.next =
                        bit_cast::<8, 6>(self.slot.val()) & self.place_mask.val();
                    self.had.d.next = (self.waits.q.val() & self.endpoint_bit.val()).any();
                    self.best.d.next = Candidate::default();
                }
                if self.insert.val() {
                    self.waits.d.next = self.waits.q.val() | self.endpoint_bit.val();
                    self.count.d.next = self.count.q.val() + 1;
                    self.number.d.next = self.number.q.val() + 1;
                    self.next_walk.next = Walk::Place;
                } else if self.search.val() {
                    if self.by_place.val() {
                        self.next_walk.next = Walk::Place;
                    } else if self.names_source.val() {
                        self.next_walk.next = Walk::Unit;
                    } else {
                        self.key.d.next.any_source = true;
                        self.next_walk.next = Walk::Head;
                    }
                }
            }
            Walk::Place => {
                self.read_row.next = self.place_row.val();
                self.other_row.next = self.place_row.val();
                self.key_row.d.next = self.place_row.val();
                self.read_at.d.next = self.place_row.val();
                self.next_walk.next = Walk::Insert;
                if !self.inserts.q.val() {
                    self.read_valid.d.next = true;
                    self.read_last.d.next = true;
                    self.next_walk.next = Walk::Drain;
                }
            }
            Walk::Insert => {
                self.entry_row.d.next = self.row.val();
                self.next_walk.next = Walk::Store;
            }
            Walk::Store => {
                self.rows.write.enable.next = true;
                self.new_row.next = Row {
                    live: self.entry_row.q.val().live | self.place_bit.val(),
                    order: self.new_order.val(),
                };
                self.links_row.next = self.entry_row.q.val().live == 0;
                self.links.write.enable.next = self.links_row.val();
                self.new_link.next = Link {
                    row: self.heads.read_data.val(),
                    last: !self.had.q.val(),
                    owner: self.key.q.val().endpoint,
                };
                self.befores.write.enable.next = self.links_row.val() & self.had.q.val();
                self.heads.write.enable.next = self.links_row.val();
                self.next_walk.next = Walk::Idle;
            }
            Walk::Unit => {
                self.read_row.next = self.unit_row.val();
                self.other_row.next = self.unit_row.val();
                self.read_valid.d.next = true;
                self.read_at.d.next = self.unit_row.val();
                self.cursor.d.next = self.unit_row.val() + 1;
                self.next_unit.d.next = self.next_unit.q.val() + 1;
                self.next_walk.next = Walk::Pair;
                if self.unit_mask.val() == 0 {
                    self.next_walk.next = Walk::Unit;
                    self.read_last.d.next = self.ends_units.val();
                    if self.ends_units.val() {
                        self.next_walk.next = Walk::Drain;
                    }
                }
                if self.has_none.val() {
                    self.read_valid.d.next = false;
                    self.read_last.d.next = false;
                    self.ends.next = true;
                    self.next_walk.next = Walk::Idle;
                }
            }
            Walk::Pair => {
                self.unit_address.next =
                    (self.key.q.val().pair << 3) | bit_cast::<16, 4>(self.next_unit.q.val() - 1);
                self.read_valid.d.next = true;
                self.read_at.d.next = self.cursor.q.val();
                self.cursor.d.next = self.cursor.q.val() + 1;
                if self.ends_unit.val() {
                    self.next_walk.next = Walk::Unit;
                    if self.was_last.val() {
                        self.read_last.d.next = true;
                        self.next_walk.next = Walk::Drain;
                    }
                }
            }
            Walk::Head => {
                self.other_row.next = self.heads.read_data.val();
                self.listed.d.next = self.heads.read_data.val();
                self.follows.d.next = self.had.q.val();
                self.next_walk.next = Walk::Rows;
                if !self.had.q.val() {
                    self.ends.next = true;
                    self.next_walk.next = Walk::Idle;
                }
            }
            Walk::Rows => {
                self.read_valid.d.next = self.follows.q.val();
                self.read_last.d.next = self.follows.q.val() & self.read_link.val().last;
                self.read_at.d.next = self.listed.q.val();
                self.read_row.next = self.listed.q.val();
                self.follows.d.next = self.follows.q.val() & !self.read_link.val().last;
            }
            Walk::Drain => {}
            Walk::Remove => {
                self.read_row.next = self.best.q.val().row;
                self.other_row.next = self.best.q.val().row;
                self.heads.read_address.next = bit_cast::<16, 8>(self.best.q.val().owner);
                self.next_walk.next = Walk::Removed;
            }
            Walk::Removed => {
                self.gone_link.d.next = self.read_link.val();
                self.gone_before.d.next = self.befores.read_data.val();
                self.gone_is_head.d.next = self.heads.read_data.val() == self.best.q.val().row;
                self.gone_alone.d.next = (self.best_row.val().live & !self.best_bit.val()) == 0;
                self.next_walk.next = Walk::Unlink;
            }
            Walk::Unlink => {
                self.count.d.next = self.count.q.val() - 1;
                self.rows.write.enable.next = true;
                self.rows.write.address.next = self.best.q.val().row;
                self.new_row.next = Row {
                    live: self.best_row.val().live & !self.best_bit.val(),
                    order: self.best_row.val().order,
                };
                self.empties.next = self.gone_alone.q.val();
                self.unlinks.next = self.empties.val();
                self.heads.write.address.next = bit_cast::<16, 8>(self.best.q.val().owner);
                self.heads.write.data.next = self.gone_link.q.val().row;
                self.new_link.next = self.gone_link.q.val();
                self.befores.write.address.next = self.gone_link.q.val().row;
                self.befores.write.data.next = self.gone_before.q.val();
                self.links.write.address.next = self.gone_before.q.val();
                self.befores.write.enable.next = self.empties.val() & !self.gone_link.q.val().last;
                if self.empties.val() {
                    if self.gone_is_head.q.val() {
                        self.heads.write.enable.next = true;
                        if self.gone_link.q.val().last {
                            self.waits.d.next = self.waits.q.val() & !self.owner_bit.val();
                        }
                    } else {
                        self.links.write.enable.next = true;
                    }
                }
                self.next_walk.next = Walk::Idle;
            }
        }
        if self.row_ends.val() {
            self.ends.next = true;
            self.next_walk.next = Walk::Idle;
            if self.removes.val() {
                self.next_walk.next = Walk::Remove;
            }
        }
        self.answered.d.next = self.ends.val();
        self.walk.d.next = self.next_walk.val();
        // True when the next walk is `Idle`: a product for each walk that may end, since it is known late whether one does.
        self.idle.d.next = !self.row_ends.val()
            & (((self.walk.q.val() == Walk::Clear) & self.cleared.val())
                | (self.idle.q.val() & !self.insert.val() & !self.search.val())
                | (self.walk.q.val() == Walk::Store)
                | ((self.walk.q.val() == Walk::Unit) & self.has_none.val())
                | ((self.walk.q.val() == Walk::Head) & !self.had.q.val())
                | (self.walk.q.val() == Walk::Unlink))
            | (self.row_ends.val() & !self.removes.val());
    }
}
