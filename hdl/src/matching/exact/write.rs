//! The memories are written a cycle after the decision, from registers; after reset they are cleared.

use super::Exact;
use crate::matching::handle_way::Handle;
use crate::matching::key_way::Queue;
use crate::prelude::*;

#[block]
impl Exact {
    /// All memories are written.
    pub(super) fn write(&mut self) {
        self.put_queue.d.next = self.queue.val();
        self.put_key.d.next = self.end_key.val();
        self.put_new.d.next = self.new_slot.val();
        self.put_handle.d.next = self.handle.val();
        self.put_rows.d.next.key0 = self.key_row0.val();
        self.put_rows.d.next.key1 = self.key_row1.val();
        self.put_rows.d.next.handle0 = self.handle_row0.val();
        self.put_rows.d.next.handle1 = self.handle_row1.val();
        if !self.ready.q.val() {
            self.put_queue.d.next = Queue::default();
            self.put_new.d.next = false;
            self.put_slot_ways.d.next = self.ways.val();
            self.put_handle.d.next = Handle::default();
            self.put_handle_ways.d.next = self.ways.val();
            self.put_rows.d.next.key0 = self.clearing.q.val() & self.row_mask.val();
            self.put_rows.d.next.key1 = self.clearing.q.val() & self.row_mask.val();
            self.put_rows.d.next.handle0 = self.clearing.q.val() & self.row_mask.val();
            self.put_rows.d.next.handle1 = self.clearing.q.val() & self.row_mask.val();
        }
        self.write_rows.next = self.put_rows.q.val();
        self.fresh_slots.write_key.next = self.put_key.q.val();
        self.fresh_slots.write_queue.next = self.put_queue.q.val();
        self.fresh_slots.next_key.next = self.end_key.val();
        self.fresh_slots.next_queue.next = self.queue.val();
        self.fresh_handles.write_word.next = self.put_handle.q.val().valid;
        self.fresh_handles.next_word.next = self.handle.val().valid;
        self.key_same[0].write_row.next = self.write_rows.val().key0;
        self.key_same[1].write_row.next = self.write_rows.val().key1;
        self.handle_same[0].write_row.next = self.write_rows.val().handle0;
        self.handle_same[1].write_row.next = self.write_rows.val().handle1;
        self.key_same[0].next_row.next = self.key_row0.val();
        self.key_same[1].next_row.next = self.key_row1.val();
        self.handle_same[0].next_row.next = self.handle_row0.val();
        self.handle_same[1].next_row.next = self.handle_row1.val();
        for i in 0..6 {
            self.key_way[i].write.next =
                self.put_slot_ways.q.val().get_bit(i) & self.ways.val().get_bit(i);
            self.key_way[i].write_new.next = self.put_new.q.val();
            self.key_way[i].write_key.next = self.put_key.q.val();
            self.key_way[i].write_queue.next = self.put_queue.q.val();
            self.handle_way[i].write.next =
                self.put_handle_ways.q.val().get_bit(i) & self.ways.val().get_bit(i);
            self.handle_way[i].write_handle.next = self.put_handle.q.val();
        }
        for i in 0..3 {
            self.key_way[i].write_row.next = self.write_rows.val().key0;
            self.key_way[i + 3].write_row.next = self.write_rows.val().key1;
            self.handle_way[i].write_row.next = self.write_rows.val().handle0;
            self.handle_way[i + 3].write_row.next = self.write_rows.val().handle1;
        }
        store!(
            self.links.write,
            self.put_link_now.q.val(),
            self.put_link_at.q.val(),
            self.put_link.q.val()
        );
        store!(
            self.prevs.write,
            self.put_prev_now.q.val(),
            self.put_prev_at.q.val(),
            self.put_prev.q.val()
        );
        store!(
            self.homes.write,
            self.put_home_now.q.val(),
            self.put_home_at.q.val(),
            self.put_home.q.val()
        );
    }
}
