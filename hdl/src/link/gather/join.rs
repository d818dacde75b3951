//! The words of a job's segments, joined to those of its payload, and what the job is answered with.
//!
//! ```text
//!   read_data ──► shift by the bytes carried ──┬─► low word: or ──► memory, when it is full or the last
//!                                   carried ───┘          │
//!                                      ▲── high word, or the low one if it isn't full
//! ```
//!
//! Words of a segment are whole but for its last, and zero beyond it. A word of the payload is written in the cycle in which the word comes that fills
//! it, or the last of the job. If that one holds more than the word's rest, what is beyond takes one cycle more. So a payload of one segment takes as
//! many cycles as it has words.
//!
//! Of several segments one may be refused and another fail: the job is then refused, whichever came first.

use super::Gather;
use crate::config::JOBS;
use crate::prelude::*;
use abi::status::Status;

#[block]
impl Gather {
    /// Words of the oldest segment under way come, and words of the payload go to memory.
    pub(super) fn join_words(&mut self) {
        self.read_data.ready.next = self.under_way.output.valid.val()
            & self.under_way.output.data.val().reads
            & !self.spills.q.val();
        self.comes.next = self.read_data.ready.val() & self.read_data.valid.val();
        self.last_comes.next = self.comes.val() & self.read_data_last.val();
        self.closes.next = self.last_comes.val() & self.under_way.output.data.val().last;

        self.shifted.next = bit_cast::<128, 64>(self.read_data.data.val())
            << (bit_cast::<7, 3>(self.carried_bytes.q.val()) << 3);
        self.joined.next = self.carried.q.val() | self.shifted.val().get_bits::<64>(0);
        self.beyond_word.next = self.shifted.val().get_bits::<64>(64);
        self.bytes.next = 8.into();
        if self.read_data_last.val() & self.under_way.output.data.val().tail.any() {
            self.bytes.next = bit_cast::<4, 3>(self.under_way.output.data.val().tail);
        }
        self.bytes_now.next = bit_cast::<4, 3>(self.carried_bytes.q.val()) + self.bytes.val();
        self.is_full.next = self.bytes_now.val().get_bit(3);
        self.is_over.next = self.is_full.val() & self.bytes_now.val().get_bits::<3>(0).any();
        if self.comes.val() {
            self.come.d.next = self.come.q.val() + 1;
            self.carried_bytes.d.next = self.bytes_now.val().get_bits::<3>(0);
            self.carried.d.next = self.joined.val();
            if self.is_full.val() {
                self.carried.d.next = self.beyond_word.val();
            }
        }
        self.spills.d.next = self.closes.val() & self.is_over.val();

        self.fills.next =
            (self.comes.val() & (self.is_full.val() | self.closes.val())) | self.spills.q.val();
        store!(
            self.memory.write,
            self.fills.val(),
            self.fill_place.q.val() + self.filled.q.val(),
            self.joined.val()
        );
        if self.spills.q.val() {
            self.memory.write.data.next = self.carried.q.val();
        }
        self.filled_now.next = self.filled.q.val();
        if self.fills.val() {
            self.filled_now.next = self.filled.q.val() + 1;
        }
        self.filled.d.next = self.filled_now.val();
    }

    /// The segment passes, and with the last of them the job is answered.
    pub(super) fn answer(&mut self) {
        self.passes.next = self.under_way.output.valid.val()
            & (!self.under_way.output.data.val().reads
                | (self.last_comes.val() & !(self.closes.val() & self.is_over.val()))
                | self.spills.q.val());
        self.under_way.output.ready.next = self.passes.val();
        self.access_ends.next = self.passes.val() & self.under_way.output.data.val().allowed;
        self.ends.next = self.passes.val() & self.under_way.output.data.val().last;
        self.refused.next = self.refused_before.q.val() | self.under_way.output.data.val().refused;
        self.failed.next =
            self.failed_before.q.val() | (self.last_comes.val() & self.read_data_error.val());
        if self.under_way.output.valid.val() {
            self.refused_before.d.next = self.refused.val();
            self.failed_before.d.next = self.failed.val();
        }
        if self.passes.val() {
            self.come.d.next = 0.into();
        }
        if self.ends.val() {
            self.refused_before.d.next = false;
            self.failed_before.d.next = false;
            self.carried.d.next = 0.into();
            self.carried_bytes.d.next = 0.into();
            self.filled.d.next = 0.into();
            self.fill_place.d.next =
                self.fill_place.q.val() + bit_cast::<16, 8>(self.under_way.output.data.val().whole);
            self.answer_number.d.next = self.answer_number.q.val() + 1;
        }
        self.status.next = Status::Success;
        if self.refused.val() {
            self.status.next = Status::LocalProtection;
        } else if self.failed.val() {
            self.status.next = Status::MemoryError;
        }
        self.sound.next = self.status.val() == Status::Success;
        self.of_answer.next = self.under_way.output.data.val().answer;
        self.result.valid.next = self.ends.val() & !self.of_answer.val();
        self.result.data.next = self.status.val();
        self.answered_pair.next = 0.into();
        for i in 0..JOBS {
            if self.answer_number.q.val() == i.to_bits() {
                self.answered_pair.next = self.pair[i].q.val();
            }
        }
        send!(
            self.answer_decided,
            self.ends.val() & self.of_answer.val(),
            self.answered_pair.val()
        );
        self.answer_denied.next = self.refused.val();

        self.a_payload_ends_where_its_length_says.ok.next = !self.comes.val()
            | ((self.come.q.val() + 1 == self.under_way.output.data.val().words)
                == self.read_data_last.val());
        self.a_message_fills_what_it_reserved.ok.next = !self.ends.val()
            | !self.sound.val()
            | (self.filled_now.val() == bit_cast::<16, 8>(self.under_way.output.data.val().whole));
    }
}
