//! What is read, to the queue of its class. The last word says whether anything comes of it.

use super::Fetch;
use crate::prelude::*;

#[block]
impl Fetch {
    /// A word, and of which ring it is.
    pub(super) fn hear_words(&mut self) {
        self.read_data.ready.next = true;
        self.word_valid.d.next = self.read_data.valid.val();
        self.whole.d.next = self.read_data.valid.val() & self.read_data_last.val();
        if self.read_data.valid.val() {
            self.word.d.next = self.read_data.data.val();
            self.failed.d.next = self.read_data_error.val();
        }
        self.words_belong_to_a_read.ok.next =
            !self.word_valid.q.val() | self.under_way.output.valid.val();
        self.under_way.output.ready.next = self.whole.q.val();
        self.from.next = self.under_way.output.data.val();
        self.from_list.next = self.from.val().get_bit(0);
        self.from_endpoint.next = self.from.val() >> 1;
        self.from_stopped.next = false;
        for i in 0..self._rings {
            if self.from.val() == i.to_bits() {
                self.from_stopped.next = self.ring[i].stopped.val();
            }
        }
        self.unreadable.next = self.whole.q.val() & self.failed.q.val() & !self.from_stopped.val();
        self.discard.next = self.whole.q.val() & (self.failed.q.val() | self.from_stopped.val());
    }

    /// The entry is kept, or nothing of it.
    pub(super) fn keep_words(&mut self) {
        self.keep.next = self.whole.q.val() & !self.discard.val() & !self.put_back.val();
        self.given_up.valid.next = self.discard.val() & !self.from_bare.val();
        self.given_up.data.next = self.from_endpoint.val();
        send!(
            self.send_queue.word,
            self.word_valid.q.val() & !self.from_list.val(),
            self.word.q.val()
        );
        send!(
            self.send_queue.keep,
            self.keep.val() & !self.from_list.val(),
            self.from.val()
        );
        self.send_queue.drop.next =
            (self.discard.val() & !self.from_list.val()) | self.put_back.val();
        send!(
            self.list_queue.word,
            self.word_valid.q.val() & self.from_list.val(),
            self.word.q.val()
        );
        send!(
            self.list_queue.keep,
            self.keep.val() & self.from_list.val(),
            self.from.val()
        );
        self.list_queue.drop.next = self.discard.val() & self.from_list.val();
    }
}
