//! What the memories read and write: rows, links in both directions, and the heads of the lists.

use super::{Link, Row, UnexpectedRows, Walk};
use crate::prelude::*;

#[block]
impl UnexpectedRows {
    /// The memories as they are left by an operation that says nothing of them.
    pub(super) fn leave_memories(&mut self) {
        self.read_row.next = self.cursor.q.val();
        self.other_row.next = self.cursor.q.val();
        store!(
            self.counts.write,
            self.unit.valid.val(),
            self.unit.data.val().pair,
            self.unit.data.val().count
        );
        store!(
            self.units.write,
            self.unit.valid.val() & self.unit.data.val().count.any(),
            (self.unit.data.val().pair << 3) | bit_cast::<16, 4>(self.unit.data.val().count - 1),
            self.unit.data.val().unit
        );
        // The pair's next unit.
        self.counts.read_address.next = self.key.q.val().pair;
        self.unit_address.next =
            (self.key.q.val().pair << 3) | bit_cast::<16, 4>(self.next_unit.q.val());
        self.listed.d.next = self.read_link.val().row;
        self.follows.d.next = false;
        self.rows.write.enable.next = false;
        self.rows.write.address.next = self.key_row.q.val();
        self.new_row.next = Row::default();
        self.links.write.enable.next = false;
        self.links.write.address.next = self.key_row.q.val();
        self.new_link.next = Link::default();
        store!(
            self.befores.write,
            false,
            self.heads.read_data.val(),
            self.key_row.q.val()
        );
        self.heads.read_address.next = bit_cast::<16, 8>(self.key.q.val().endpoint);
        store!(
            self.heads.write,
            false,
            bit_cast::<16, 8>(self.key.q.val().endpoint),
            self.key_row.q.val()
        );
    }

    /// The memories and the places get what the step has chosen.
    pub(super) fn address(&mut self) {
        // A link is followed in each cycle, so little logic may stand in between.
        self.link_row.next = self.other_row.val();
        if self.follows.q.val() {
            self.link_row.next = self.read_link.val().row;
        }
        self.units.read_address.next = self.unit_address.val();
        self.rows.read_address.next = self.read_row.val();
        self.rows.write.data.next = self.new_row.val();
        self.links.read_address.next = self.link_row.val();
        self.links.write.data.next = self.new_link.val();
        self.befores.read_address.next = self.link_row.val();

        for i in 0..self._n {
            set!(
                self.place[i],
                write = (self.walk.q.val() == Walk::Insert) & self.place_bit.val().get_bit(i),
                write_row = self.key_row.q.val(),
                age = self.key.q.val().age,
                context_id = self.key.q.val().context_id,
                match_bits = self.key.q.val().match_bits,
                sought = self.sought.q.val(),
                read_row = self.read_row.val(),
                load = self.read_valid.q.val(),
                live = self.may_be_found.val() & self.live.val().get_bit(i),
                order = self.found_order.val().get_bits::<8>(8 * i),
                hits = self.hits.val(),
                beaten = self.beaten.val().get_bit(i),
                filled = self.place_bit.val(),
                order_before = self.entry_order.val().get_bits::<8>(8 * i)
            );
        }
    }
}
