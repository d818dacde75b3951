//! What a request, or a receive, ends with, and how much of the message goes to memory.

use super::{Answer, State};
use crate::prelude::*;
use crate::types::Ending;
use abi::completion::CompletionKind;
use abi::status::Status;

#[block]
impl Answer {
    /// Bytes to move: those of the message that the buffer holds.
    pub(super) fn measure(&mut self) {
        self.capacity.next = self.now.val().length;
        self.size.next = bit_cast::<16, 11>(self.message_found.val().length);
        if self.state.q.val() == State::Met {
            self.capacity.next = self.receive_found.val().length;
            self.size.next = self.now.val().arrived;
        }
        self.too_long.next = bit_cast::<32, 16>(self.size.val()) > self.capacity.val();
        self.bytes.next = self.size.val();
        if self.too_long.val() {
            self.bytes.next = bit_cast::<16, 32>(self.capacity.val());
        }
        self.fit.next = Status::Success.into();
        if bit_cast::<32, 16>(self.size.val()) > self.capacity.val() {
            self.fit.next = Status::Truncated.into();
        }
    }

    /// The ends there are, and what each frees.
    pub(super) fn prepare_ends(&mut self) {
        self.own_end.next = Ending::default();
        self.own_end.next.completes = true;
        self.own_end.next.endpoint = self.now.val().endpoint;
        self.own_end.next.request = self.now.val().request;
        self.own_end.next.status = self.now.val().status;
        self.own_end.next.kind = self.now.val().kind;
        self.own_end.next.handle = self.now.val().names;
        self.own_end.next.immediate = self.now.val().immediate;
        self.ended_had.next = bit_cast::<64, 32>(self.receive_found.val().had.offset)
            | (bit_cast::<64, 31>(self.receive_found.val().had.count) << 32);
        self.met.next = Ending {
            completes: true,
            endpoint: self.now.val().endpoint,
            request: self.receive_found.val().request,
            status: self.fit.val(),
            kind: CompletionKind::Receive.into(),
            handle: 0.into(),
            of_message: true,
            pair: self.now.val().pair,
            context: self.now.val().context,
            match_bits: self.now.val().match_bits,
            immediate: self.now.val().immediate,
            length: self.now.val().arrived,
            slot: 0.into(),
            multi: self.receive_found.val().multi,
            stays: false,
            fills: false,
            accepted: true,
            freed: true,
            refused: false,
            put: false,
            asks: false,
            answers: false,
            number: 0.into(),
            marks: false,
        };
        self.took.next = Ending {
            completes: true,
            endpoint: self.now.val().endpoint,
            request: self.now.val().request,
            status: self.fit.val(),
            kind: self.now.val().kind,
            handle: 0.into(),
            of_message: true,
            pair: bit_cast::<16, 8>(self.message_found.val().pair),
            context: self.message_found.val().context,
            match_bits: self.message_found.val().match_bits,
            immediate: self.message_found.val().immediate,
            length: bit_cast::<16, 11>(self.message_found.val().length),
            slot: self.message_found.val().slot,
            multi: self.now.val().multi,
            stays: false,
            fills: false,
            accepted: false,
            freed: true,
            refused: false,
            put: false,
            asks: false,
            answers: false,
            number: 0.into(),
            marks: false,
        };
        self.refused_frees.next = true;
        self.revoked_frees.next = true;
        self.put_frees.next = true;
        self.get_is_new.next = !self.now.val().again;
        self.inserted_frees.next = false;
        self.claimed_frees.next = false;
        self.claimed_vacates.next = false;
        self.discarded_frees.next = true;
        self.cancels.next = true;
    }
}
