//! A gather is two entries of a send ring and one request: the first is held until the second is there.
//!
//! ```text
//!   oldest send ─┬─ takes a second ──► firsts, one a ring: held ────────┐
//!                ├─ is one, and its first is held ──► Looking ──► Deciding ─┬─► sends, both as one
//!                └─ anything else: alone ─────────────┘ (first read)        └─► refused ─► complete
//!   put back ──────────────────► alone ───┘
//!   ring ends, or has stopped ────────────┘
//! ```
//!
//! A first that is held has left its place in the queue: gathers of all rings can wait for their seconds and none for a place. A request has one
//! completion, so the second's reservation, if it was read ahead with one, is given up when it is joined. A second that is asked for while its first is
//! held needs none: it is read without, though no completion be free and the endpoint be stopping, and nothing of its ring is read behind it until
//! it has come. If it is no second, it goes back to its ring as if it had never been read.
//!
//! A first stays alone if its ring ends with it or another request follows. Then it is malformed; and if what follows can't be read, it ends
//! with `MemoryError`. A first that is malformed itself takes its second along.

use super::{Fetch, Held, Join};
use crate::prelude::*;
use crate::types::{Segment, Segments, SendRequest};
use abi::completion::CompletionKind;
use abi::limits::EAGER_MAX;
use abi::request::Opcode;
use abi::status::Status;

/// Stands for any length that is too long for a message.
const TOO_LONG: u64 = (1 << 11) - 1;

const _: () = assert!(
    EAGER_MAX < TOO_LONG as usize,
    "a length that counts has eleven bits"
);

#[block]
impl Fetch {
    /// Whose second entry is to be asked for: it is next in its ring, and nothing of the ring but the first is here.
    pub(super) fn find_seconds(&mut self) {
        self.awaited.next = 0.into();
        for i in 0..self._n {
            self.awaited.next = self.awaited.val().replace_bit(
                i,
                self.held[i].q.val()
                    & self.ring[2 * i].one_inside.val()
                    & self.ring[2 * i].none_read.val()
                    & !self.alone[i].q.val()
                    & !((self.join.q.val() != Join::Idle)
                        & (self.gather_endpoint.q.val() == i.to_bits())),
            );
        }
        self.wants_second.next = self.awaited.val();
    }

    /// The chosen entry is such a one.
    pub(super) fn read_second(&mut self) {
        self.reads_second.next = false;
        for i in 0..self._n {
            if self.selected_ring.val() == (2 * i).to_bits() {
                self.reads_second.next = self.wants_second.val().get_bit(i);
            }
        }
        for i in 0..self._n {
            if self.selecting.val()
                & self.reads_second.val()
                & ((self.selected_ring.val() >> 1) == i.to_bits())
            {
                self.bare[i].d.next = true;
            }
        }
    }

    /// An entry that was read without a reservation has come.
    pub(super) fn look_at_second(&mut self) {
        if self.read_data.valid.val() {
            self.begins.d.next = self.read_data_last.val();
            if self.begins.q.val() {
                self.opcode.d.next = self.read_data.data.val().get_bits::<8>(0);
            }
        }
        self.from_bare.next = false;
        for i in 0..self._n {
            if self.from.val() == (2 * i).to_bits() {
                self.from_bare.next = self.bare[i].q.val();
            }
        }
        self.put_back.next = self.whole.q.val()
            & !self.discard.val()
            & self.from_bare.val()
            & (self.opcode.q.val() != Opcode::Segments);
        for i in 0..self._n {
            if self.put_back.val() & (self.from_endpoint.val() == i.to_bits()) {
                self.alone[i].d.next = true;
                self.bare[i].d.next = false;
            }
        }
    }

    /// What the oldest send is to a gather, and which first stays alone.
    pub(super) fn join_gathers(&mut self) {
        self.send_takes_second.d.next = self.send_decode.takes_second.val();
        self.send_is_second.d.next = self.send_decode.is_second.val();
        self.has_first.next = false;
        self.has_no_reservation.next = false;
        for i in 0..self._n {
            if self.send_ring.val() == (2 * i).to_bits() {
                self.has_first.next = self.held[i].q.val();
                self.has_no_reservation.next = self.bare[i].q.val();
            }
        }
        self.looks.next = self.send_queue.output.valid.val() & (self.join.q.val() == Join::Idle);
        self.send_is_plain.next =
            self.looks.val() & !self.has_first.val() & !self.send_takes_second.q.val();
        self.holds.next = self.looks.val() & !self.has_first.val() & self.send_takes_second.q.val();
        self.joins.next = self.looks.val()
            & self.has_first.val()
            & self.send_is_second.q.val()
            & !self.discard.val();
        if self.joins.val() & !self.has_no_reservation.val() {
            self.given_up.valid.next = true;
            self.given_up.data.next = self.send_ring.val() >> 1;
        }

        self.orphans.next = 0.into();
        self.orphan.next = 0.into();
        self.orphan_unread.next = false;
        for i in 0..self._n {
            self.orphans.next = self.orphans.val().replace_bit(
                i,
                self.held[i].q.val()
                    & (self.alone[i].q.val()
                        | (self.ring[2 * i].one_inside.val()
                            & (self.ring[2 * i].stopped.val()
                                | (self.ring[2 * i].none_read.val()
                                    & !self.ring[2 * i].pending.val())))
                        | (self.looks.val()
                            & (self.send_ring.val() == (2 * i).to_bits())
                            & !self.send_is_second.q.val())),
            );
            if self.orphans.val().get_bit(i) {
                self.orphan.next = i.to_bits();
                self.orphan_unread.next = self.ring[2 * i].one_inside.val()
                    & self.ring[2 * i].stopped.val()
                    & !self.alone[i].q.val();
            }
        }
        self.orphaned.next = (self.join.q.val() == Join::Idle)
            & self.orphans.val().any()
            & !self.joins.val()
            & !self.send_is_plain.val();

        // The first goes into the table, or comes out of it.
        self.cut_first.next = bit_cast::<11, 64>(self.as_send.val().length);
        if self.as_send.val().length > TOO_LONG {
            self.cut_first.next = TOO_LONG.into();
        }
        self.holding.next = Held {
            malformed: self.send_malformed.q.val(),
            flags: self.as_send.val().flags,
            pair: self.as_send.val().pair,
            context: self.as_send.val().context,
            request: self.as_send.val().request,
            key: self.as_send.val().key,
            match_bits: self.as_send.val().match_bits,
            immediate: self.as_send.val().immediate,
            address: self.as_send.val().address,
            length: self.cut_first.val(),
        };
        store!(
            self.firsts.write,
            self.holds.val(),
            bit_cast::<16, 8>(self.send_ring.val() >> 1),
            self.holding.val()
        );
        for i in 0..self._n {
            if self.holds.val() & (self.send_ring.val() == (2 * i).to_bits()) {
                self.held[i].d.next = true;
            }
        }
        self.first_address.next = self.send_ring.val() >> 1;
        if self.orphaned.val() {
            self.first_address.next = self.orphan.val();
        }
        if self.join.q.val() != Join::Idle {
            self.first_address.next = self.gather_endpoint.q.val();
        }
        self.firsts.read_address.next = bit_cast::<16, 8>(self.first_address.val());
        self.first.next = self.firsts.read_data.val();

        // The two as one.
        self.as_second.next = self.send_queue.output.data.val().into();
        self.reserved_of_second.next = self.as_second.val().reserved0.any()
            | self.as_second.val().reserved1.any()
            | self.as_second.val().reserved2.any()
            | self.as_second.val().reserved3.any();
        self.cut_second.next = Segment {
            address: self.as_second.val().address1,
            key: self.as_second.val().key1,
            length: bit_cast::<11, 32>(self.as_second.val().length1),
        };
        if self.as_second.val().length1 > TOO_LONG {
            self.cut_second.next.length = TOO_LONG.into();
        }
        self.cut_third.next = Segment {
            address: self.as_second.val().address2,
            key: self.as_second.val().key2,
            length: bit_cast::<11, 32>(self.as_second.val().length2),
        };
        if self.as_second.val().length2 > TOO_LONG {
            self.cut_third.next.length = TOO_LONG.into();
        }
        self.cut_fourth.next = Segment {
            address: self.as_second.val().address3,
            key: self.as_second.val().key3,
            length: bit_cast::<11, 32>(self.as_second.val().length3),
        };
        if self.as_second.val().length3 > TOO_LONG {
            self.cut_fourth.next.length = TOO_LONG.into();
        }
        self.cut.next = Segments {
            second: self.cut_second.val(),
            third: self.cut_third.val(),
            fourth: self.cut_fourth.val(),
        };
        self.as_gather.next = SendRequest::default();
        self.as_gather.next.opcode = Opcode::TaggedSend;
        self.as_gather.next.flags = self.first.val().flags;
        self.as_gather.next.pair = self.first.val().pair;
        self.as_gather.next.context = self.first.val().context;
        self.as_gather.next.request = self.first.val().request;
        self.as_gather.next.key = self.first.val().key;
        self.as_gather.next.match_bits = self.first.val().match_bits;
        self.as_gather.next.immediate = self.first.val().immediate;
        self.as_gather.next.address = self.first.val().address;
        self.as_gather.next.length = bit_cast::<64, 13>(self.gather_length.q.val());
        if self.join.q.val() == Join::Deciding {
            self.fetched_send.next.request = self.as_gather.val();
            self.fetched_send.next.segments = self.cut.val();
        }

        match self.join.q.val() {
            Join::Idle => {
                self.gather_whole.d.next = self.joins.val();
                self.gather_status.d.next = Status::InvalidRequest;
                self.gather_endpoint.d.next = self.first_address.val();
                if self.joins.val() {
                    self.gather_status.d.next = Status::Success;
                } else if self.orphan_unread.val() {
                    self.gather_status.d.next = Status::MemoryError;
                }
                if self.joins.val() | self.orphaned.val() {
                    self.join.d.next = Join::Looking;
                }
            }
            Join::Looking => {
                self.gather_length.d.next = bit_cast::<13, 11>(self.first.val().length)
                    + bit_cast::<13, 11>(self.cut_second.val().length)
                    + bit_cast::<13, 11>(self.cut_third.val().length)
                    + bit_cast::<13, 11>(self.cut_fourth.val().length);
                if self.first.val().malformed
                    | (self.gather_whole.q.val()
                        & (self.reserved_of_second.val()
                            | (self.as_second.val().request != self.first.val().request)))
                {
                    self.gather_status.d.next = Status::InvalidRequest;
                }
                self.join.d.next = Join::Deciding;
            }
            Join::Deciding => {}
        }
        self.gather_sound.next =
            (self.join.q.val() == Join::Deciding) & (self.gather_status.q.val() == Status::Success);
    }

    /// It is handed over, or refused.
    pub(super) fn finish_gather(&mut self) {
        self.gather_leaves.next = self.gather_sound.val() & self.sends.ready.val();
        self.gather_refused.next = (self.join.q.val() == Join::Deciding)
            & !self.gather_sound.val()
            & !self.refused_valid.q.val();
        self.gather_gone.next = self.gather_leaves.val() | self.gather_refused.val();
        self.gather_is_malformed.next = self.gather_status.q.val() == Status::InvalidRequest;
        if self.gather_gone.val() {
            self.join.d.next = Join::Idle;
        }
        for i in 0..self._n {
            if self.gather_gone.val() & (self.gather_endpoint.q.val() == i.to_bits()) {
                self.held[i].d.next = false;
                self.bare[i].d.next = false;
                self.alone[i].d.next = false;
            }
        }
    }

    /// Its completion, if it is refused.
    pub(super) fn refuse_gather(&mut self) {
        if self.gather_refused.val() {
            self.refusal.next.request = self.first.val().request;
            self.refusal.next.pair = self.first.val().pair;
            self.refusal.next.kind = CompletionKind::Send;
            self.refusal.next.status = self.gather_status.q.val();
            if !self.gather_is_malformed.val() {
                self.refusal.next.context = self.first.val().context;
            }
            self.refused.d.next.endpoint = self.gather_endpoint.q.val();
            self.refused_ring.d.next = self.gather_endpoint.q.val() << 1;
        }
    }
}
