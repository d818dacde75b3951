//! The descriptors of all sends: one memory, of which each pair has a run.
//!
//! ```text
//!                  acknowledged      sent       taken             taken + count
//!   run of a pair ──────┬──────────────┬──────────┬─────────────────────┬──────────
//!                       │unacknowledged│  given   │       waiting       │ free
//!                       └──────────────┴──────────┴─────────────────────┘
//!                            ▲ turn: the send of the next turn; behind `taken` only while the pair goes back
//! ```
//!
//! A send stands where its number says, from when it comes to when it ends. One that ends out of its order, cancelled or refused by Gather, is taken out of the
//! run (`remove.rs`), so that numbers have no holes.
//!
//! The memory has one port that writes and one that reads. The read of a turn, and of a claim, goes first, while it is weighed; the walk that completes
//! sends waits for a cycle in which nobody else reads.

use super::descriptor::Descriptor;
use super::{SendQueues, Step};
use crate::prelude::*;

#[block]
impl SendQueues {
    /// What is written, and who reads.
    pub(super) fn keep(&mut self) {
        self.flags.next = self.request.val().flags;
        self.at.next = self.request.val().address;
        self.key.next = self.request.val().key;
        self.behind.next = self.sends.data.val().segments;
        if self.flags.val().get_bit(3) {
            self.at.next = bit_cast::<64, 32>(self.request.val().target)
                | (bit_cast::<64, 32>(self.request.val().inline1) << 32);
            self.key.next = self.request.val().inline2.get_bits::<32>(0);
            self.behind.next.second.key = self.request.val().inline2.get_bits::<32>(32);
        }
        self.accepted.next = Descriptor {
            context: self.request.val().context,
            length: bit_cast::<11, 64>(self.request.val().length),
            errors_only: self.flags.val().get_bit(1),
            ready: self.flags.val().get_bit(0),
            put: self.is_put.val(),
            get: self.is_get.val(),
            inline: self.flags.val().get_bit(3),
            request: self.request.val().request,
            match_bits: self.request.val().match_bits,
            immediate: self.request.val().immediate,
            address: self.at.val(),
            key: self.key.val(),
            segments: self.behind.val(),
        };
        self.tail.next = self.source.q.val().taken.get_bits::<8>(0) + self.source.q.val().count;
        self.write_number.next = self.tail.val();
        self.written.next = self.accepted.val();
        if self.remove.busy.val() {
            self.write_number.next = self.remove.upper.val();
            self.written.next = self.descriptors.read_data.val();
        }
        store!(
            self.descriptors.write,
            self.queues.val() | self.moves_up.val(),
            self.source.q.val().first
                | bit_cast::<16, 8>(
                    self.write_number.val() & bit_cast::<8, 6>(self.source.q.val().last)
                ),
            self.written.val()
        );

        self.turn_number.next = self.source.q.val().turn;
        self.read_number.next = self.turn_number.val().get_bits::<8>(0);
        if self.weighing.q.val() == Step::Claim {
            self.read_number.next = self.claim.data.val().number.get_bits::<8>(0);
        }
        if self.remove.busy.val() {
            self.read_number.next = self.remove.number.val();
        }
        self.read_by_step.next = (self.weighing.q.val() == Step::Turn)
            | (self.weighing.q.val() == Step::Claim)
            | self.remove.busy.val();
        self.walk_reads.next = !self.read_by_step.val();
        self.descriptors.read_address.next = self.walker.place.val();
        if self.read_by_step.val() {
            self.descriptors.read_address.next = self.source.q.val().first
                | bit_cast::<16, 8>(
                    self.read_number.val() & bit_cast::<8, 6>(self.source.q.val().last),
                );
        }
    }
}
