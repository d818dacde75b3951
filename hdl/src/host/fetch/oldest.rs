//! What the oldest entry of each class means, looked at in the cycle before it is offered.

use super::Fetch;
use crate::prelude::*;
use crate::types::{FetchedList, FetchedSend, Segments};
use abi::request::INLINE_BYTES;

#[block]
impl Fetch {
    /// By its row, and by the domain of its endpoint.
    pub(super) fn decode(&mut self) {
        self.as_send.next = self.send_queue.output.data.val().into();
        self.as_list.next = self.list_queue.output.data.val().into();
        self.send_reserved.next = self.as_send.val().reserved0.any();
        self.send_payload.next =
            self.as_send.val().inline1.any() | self.as_send.val().inline2.any();
        self.send_long.next = self.as_send.val().length > INLINE_BYTES;
        self.list_reserved.next =
            self.as_list.val().reserved0.any() | self.as_list.val().reserved2.any();
        set!(
            self.send_decode,
            opcode = self.as_send.val().opcode,
            flags = self.as_send.val().flags,
            reserved = self.send_reserved.val(),
            payload = self.send_payload.val(),
            long = self.send_long.val(),
            min_free = false
        );
        set!(
            self.list_decode,
            opcode = self.as_list.val().opcode,
            flags = self.as_list.val().flags,
            reserved = self.list_reserved.val(),
            payload = false,
            long = false,
            min_free = self.as_list.val().min_free.any()
        );
        self.send_malformed.d.next = self.send_decode.malformed.val();
        self.send_kind.d.next = self.send_decode.kind.val();
        self.list_malformed.d.next = self.list_decode.malformed.val();
        self.list_kind.d.next = self.list_decode.kind.val();
        self.list_buffer.d.next = self.list_decode.buffer.val();
        self.list_needs_pair.d.next = self.list_decode.needs_pair.val();
        self.list_names_claim.d.next = self.list_decode.names_claim.val();
        self.send_ring.next = self.send_queue.ring.val();
        self.list_ring.next = self.list_queue.ring.val();
        self.send_domain.next = 0.into();
        self.list_domain.next = 0.into();
        for i in 0..self._n {
            if (self.send_ring.val() >> 1) == i.to_bits() {
                self.send_domain.next = self.domain[i].q.val();
            }
            if (self.list_ring.val() >> 1) == i.to_bits() {
                self.list_domain.next = self.domain[i].q.val();
            }
        }
        self.fetched_send.next = FetchedSend {
            endpoint: self.send_ring.val() >> 1,
            domain: self.send_domain.val(),
            request: self.as_send.val(),
            segments: Segments::default(),
        };
    }

    /// What a list request carries along of its row.
    pub(super) fn describe_list(&mut self) {
        self.fetched_list.next = FetchedList {
            endpoint: self.list_ring.val() >> 1,
            domain: self.list_domain.val(),
            kind: self.list_kind.q.val(),
            buffer: self.list_buffer.q.val(),
            needs_pair: self.list_needs_pair.q.val(),
            names_claim: self.list_names_claim.q.val(),
            request: self.as_list.val(),
        };
    }
}
