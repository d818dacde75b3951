//! What a result changes: a receive is appended to its queue or leaves it, and its handle with it.
//!
//! What would be written doesn't depend on whether it is, which is known late.

use super::{Exact, Home, Link};
use crate::matching::handle_way::Handle;
use crate::matching::key_way::Queue;
use crate::prelude::*;
use crate::types::Search;

#[block]
impl Exact {
    /// What the result would change, and whether it does.
    pub(super) fn change(&mut self) {
        self.home_of_end.next = self.end_found.q.val().home;
        self.entry.next = self.end_found.q.val().link;
        self.queue.next = Queue::default();
        self.queue.next.valid = true;
        self.queue.next.head = self.end_found.q.val().head;
        self.queue.next.tail = self.end_found.q.val().tail;
        self.queue.next.age = self.end_found.q.val().age;
        self.queue.next.multi = self.end_found.q.val().multi;
        self.new_slot.next = false;
        self.slot_ways.next = 0.into();
        self.handle.next = Handle::default();
        self.handle_ways.next = 0.into();
        self.key_row0.next = self.end_found.q.val().rows.key0;
        self.key_row1.next = self.end_found.q.val().rows.key1;
        // The handle of a receive that goes.
        self.home_handle_way.next = self.home_of_end.val().handle_way;
        self.handle_row0.next = self.end_found.q.val().rows.handle0;
        self.handle_row1.next = self.end_found.q.val().rows.handle1;
        self.put_link_at.d.next = bit_cast::<16, 14>(self.end_found.q.val().tail);
        self.put_link.d.next = self.entry.val();
        self.put_prev_at.d.next = bit_cast::<16, 14>(self.new_id.val());
        self.put_prev.d.next = self.end_found.q.val().tail;
        self.put_home_at.d.next = bit_cast::<16, 14>(self.new_id.val());
        self.freed.next = self.end_found.q.val().head;
        self.frees.next = false;
        self.numbers.next = false;
        self.links_now.next = false;
        self.prevs_now.next = false;
        self.single.next = self.end_found.q.val().single;
        self.key_number.vector.next = bit_cast::<64, 8>(self.end_found.q.val().way);
        self.handle_number.vector.next = bit_cast::<64, 8>(self.end_found.q.val().handle_way);
        self.new_home.next = Home::default();
        self.new_home.next.key_way = bit_cast::<3, 16>(self.key_number.index.val());
        self.new_home.next.handle_way = bit_cast::<3, 16>(self.handle_number.index.val());
        self.new_home.next.key_row = bit_cast::<12, 16>(self.end_found.q.val().rows.key0);
        if self.end_found.q.val().way > 7 {
            self.new_home.next.key_row = bit_cast::<12, 16>(self.end_found.q.val().rows.key1);
        }
        self.new_home.next.handle_row = bit_cast::<12, 16>(self.end_found.q.val().rows.handle0);
        if self.end_found.q.val().handle_way > 7 {
            self.new_home.next.handle_row = bit_cast::<12, 16>(self.end_found.q.val().rows.handle1);
        }
        self.put_home.d.next = self.new_home.val();
        self.new_link.next = Link::default();
        self.new_link.next.successor = self.new_id.val();
        self.new_link.next.age = bit_cast::<53, 54>(self.age.val());
        self.new_link.next.multi = self.receive.val().multi;
        self.matched_leaves.next =
            (self.end.q.val().search == Search::Arrive) & !self.end_found.q.val().multi;
        // What would be written doesn't depend on whether it is written, which is known late.
        match self.end.q.val().search {
            Search::Post => {
                self.queue.next.tail = self.new_id.val();
                if !self.end_found.q.val().found {
                    self.new_slot.next = true;
                    self.queue.next.tail = self.new_id.val();
                    self.queue.next.head = self.new_id.val();
                    self.queue.next.age = bit_cast::<53, 54>(self.age.val());
                    self.queue.next.multi = self.receive.val().multi;
                }
                self.put_link.d.next = self.new_link.val();
                self.handle.next.valid = true;
                self.handle.next.class = self.end_found.q.val().class;
                self.handle.next.request = self.receive.val().request;
                self.handle.next.pair = self.receive.val().pair;
                self.handle.next.any_source = self.receive.val().any_source;
                self.handle.next.id = self.new_id.val();
                self.slot_ways.next = self.end_found.q.val().way;
                self.handle_ways.next = self.end_found.q.val().handle_way;
                self.links_now.next = self.end_found.q.val().found;
                self.prevs_now.next = self.end_found.q.val().found;
                self.numbers.next = true;
            }
            Search::Unlink => {
                self.freed.next = self.end_found.q.val().id;
                self.put_prev.d.next = self.end_found.q.val().prev;
                self.put_prev_at.d.next = bit_cast::<16, 14>(self.entry.val().successor);
                self.put_link_at.d.next = bit_cast::<16, 14>(self.end_found.q.val().prev);
                self.frees.next = true;
                if self.single.val() {
                    self.queue.next = Queue::default();
                } else if self.end_found.q.val().first {
                    self.queue.next.head = self.entry.val().successor;
                    self.queue.next.age = self.entry.val().age;
                    self.queue.next.multi = self.entry.val().multi;
                } else {
                    self.queue.next.tail = self.end_found.q.val().prev;
                }
                if self.end_found.q.val().outer {
                    self.slot_ways.next = self.end_found.q.val().way;
                }
                self.links_now.next = !self.end_found.q.val().outer;
                self.prevs_now.next = !self.end_found.q.val().outer;
            }
            _ => {
                // An arrival. For a search by handle nothing is written yet.
                self.queue.next.head = self.entry.val().successor;
                self.queue.next.age = self.entry.val().age;
                self.queue.next.multi = self.entry.val().multi;
                if self.single.val() {
                    self.queue.next = Queue::default();
                }
                if self.matched_leaves.val() {
                    self.slot_ways.next = self.end_found.q.val().way;
                    self.frees.next = true;
                }
            }
        }
        if self.frees.val() {
            self.handle_ways.next = (bits::<8>(1) << self.home_handle_way.val()) & self.ways.val();
        }
        self.acts.next = self.commit.val() | self.mend.q.val();
        self.freeing.next = self.acts.val() & self.frees.val();
        self.numbering.next = self.acts.val() & self.numbers.val();
        self.put_link_now.d.next = self.acts.val() & self.links_now.val();
        self.put_prev_now.d.next = self.acts.val() & self.prevs_now.val();
        self.put_home_now.d.next = self.numbering.val();
        self.put_slot_ways.d.next = 0.into();
        self.put_handle_ways.d.next = 0.into();
        if self.acts.val() {
            self.put_slot_ways.d.next = self.slot_ways.val();
            self.put_handle_ways.d.next = self.handle_ways.val();
        }
        for i in 0..6 {
            self.key_way[i].next_write.next = self.acts.val() & self.slot_ways.val().get_bit(i);
            self.handle_way[i].next_write.next =
                self.acts.val() & self.handle_ways.val().get_bit(i);
        }
    }
}
