//! A request of a list ring: what is asked of Lists for it, and what it ends with unless something else is found.

use super::{Admit, State};
use crate::envelope::asked::{Ask, Asked};
use crate::prelude::*;
use crate::types;
use crate::types::MatchCommand;
use abi::completion::CompletionKind;
use abi::request::CLAIM_SLOT_BITS;
use abi::status::Status;

#[block]
impl Admit {
    /// What the request in hand says, and the command that it would be.
    pub(super) fn prepare_request(&mut self) {
        self.fetched.next = self.request.q.val().fetched.request;
        self.flags.next = self.fetched.val().flags;
        self.buffer_bytes.next = self.fetched.val().length;
        self.bytes.next = bit_cast::<32, 64>(self.buffer_bytes.val());
        if self.buffer_bytes.val().get_bits::<32>(32).any() {
            self.bytes.next = u32::MAX.into();
        }
        self.is_cancel.next = self.request.q.val().fetched.kind == CompletionKind::Cancel;
        self.source_ok.next = self.flags.val().get_bit(0)
            | (self.known.q.val().connected
                & (self.known.q.val().endpoint == self.request.q.val().fetched.endpoint)
                & (self.fetched.val().pair < self.pair_count.val()));
        self.handle_pair.next = self
            .fetched
            .val()
            .target
            .get_bits::<{ CLAIM_SLOT_BITS as usize }>(0)
            >> 6;
        self.owns_claim.next = self.known.q.val().endpoint == self.request.q.val().fetched.endpoint;
        self.resumes.next = self.flags.val().get_bit(1) & !self.backlog.waits.val();
        self.believed.next = !self.backlog.stalled.val() | self.resumes.val();
        self.nothing_kept.next = self.flags.val().get_bit(3) & self.believed.val();
        self.is_behind.next = self.backlog.stalled.val() & !self.resumes.val();
        self.looks_later.next = self.is_behind.val() & self.backlog.has_news.val();
        self.wanted.next = MatchCommand {
            operation: types::Operation::Post,
            endpoint: self.request.q.val().fetched.endpoint,
            pair: self.fetched.val().pair,
            any_source: self.flags.val().get_bit(0),
            context: self.fetched.val().context,
            match_bits: self.fetched.val().match_bits,
            ignore_bits: self.fetched.val().ignore_bits,
            request: self.fetched.val().request,
            slot: 0.into(),
            multi: self.flags.val().get_bit(2),
            again: false,
            append: false,
        };
        self.claim_takes.next = types::Operation::Claim;
        self.had_bits.next = bit_cast::<64, 32>(self.had.q.val().offset)
            | (bit_cast::<64, 31>(self.had.q.val().count) << 32);
        self.waiting_had.next = bit_cast::<64, 32>(self.backlog.waiting.val().had.offset)
            | (bit_cast::<64, 31>(self.backlog.waiting.val().had.count) << 32);
        self.of_request.next = Asked::default();
        self.of_request.next.endpoint = self.request.q.val().fetched.endpoint;
        self.of_request.next.pair = self.fetched.val().pair;
        self.of_request.next.immediate = self.had_bits.val();
        self.of_request.next.request = self.fetched.val().request;
        self.of_request.next.kind = self.request.q.val().fetched.kind;
        self.of_request.next.target = self.fetched.val().target;
        self.of_request.next.domain = self.request.q.val().fetched.domain;
        self.of_request.next.key = self.fetched.val().key;
        self.of_request.next.address = self.fetched.val().address;
        self.of_request.next.length = self.bytes.val();
        self.of_request.next.any_source = self.flags.val().get_bit(0);
        self.of_request.next.multi = self.flags.val().get_bit(2);
        self.of_request.next.min_free = self.fetched.val().min_free;
        self.of_request.next.buffer = self.request.q.val().fetched.buffer;
        self.of_request.next.allowed = self.request.q.val().allowed;
        self.of_request.next.own = self.known.q.val().connected
            & (self.handle_pair.val() < self.pair_count.val())
            & self.owns_claim.val();

        // A receive that waited ends, and may be posted again.
        self.woken.next = Asked::default();
        self.woken.next.endpoint = self.endpoint_held.q.val();
        self.woken.next.request = self.backlog.waiting.val().request;
        self.woken.next.immediate = self.waiting_had.val();
        self.woken.next.kind = CompletionKind::Receive.into();
        self.woken.next.status = Status::ListFull.into();
    }

    /// Which command it is, if any.
    pub(super) fn ask_for_request(&mut self) {
        match self.state.q.val() {
            State::Look => {
                self.state.d.next = State::Request;
            }
            State::Request => {
                self.enters_request.d.next = true;
                if self.flags.val().get_bit(2) {
                    self.after.d.next = State::Alone;
                }
                self.command_held.d.next = self.wanted.val();
                self.asked_held.d.next = self.of_request.val();
                self.state.d.next = State::Enter;
                if !self.is_cancel.val() {
                    self.backlog.resumes.next = self.resumes.val();
                    self.backlog.nothing_kept.next = self.nothing_kept.val();
                }
                if self.is_cancel.val()
                    & self.backlog.waits.val()
                    & (self.backlog.waiting.val().request == self.fetched.val().target)
                {
                    self.backlog.ends.next = true;
                    self.asked_held.d.next.request = self.fetched.val().target;
                    self.asked_held.d.next.immediate = self.waiting_had.val();
                    self.asked_held.d.next.kind = CompletionKind::Receive.into();
                    self.asked_held.d.next.status = Status::Cancelled.into();
                    self.asked_held.d.next.releases = true;
                    self.commands.d.next = false;
                } else if self.is_cancel.val() {
                    self.command_held.d.next.operation = types::Operation::Cancel;
                    self.command_held.d.next.request = self.fetched.val().target;
                    self.asked_held.d.next.ask = Ask::Cancel;
                    self.asked_held.d.next.status = Status::TooLate.into();
                } else if self.request.q.val().fetched.names_claim {
                    self.asked_held.d.next.ask = Ask::Handle;
                    self.commands.d.next = false;
                } else if self.request.q.val().fetched.needs_pair & !self.source_ok.val() {
                    self.asked_held.d.next.status = Status::InvalidPair.into();
                    self.asked_held.d.next.invalid = true;
                    self.commands.d.next = false;
                } else if !self.request.q.val().allowed {
                    self.asked_held.d.next.status = Status::LocalProtection.into();
                    self.asked_held.d.next.invalid = true;
                    self.commands.d.next = false;
                } else if self.looks_later.val() {
                    self.asked_held.d.next.status = Status::Behind.into();
                    self.asked_held.d.next.names = self.backlog.waiting.val().request;
                    self.commands.d.next = false;
                } else if self.request.q.val().fetched.kind == CompletionKind::Probe {
                    self.command_held.d.next.operation = types::Operation::Probe;
                    self.asked_held.d.next.ask = Ask::Probe;
                    self.asked_held.d.next.status = Status::NoMessage.into();
                    if self.known.q.val().failed & !self.flags.val().get_bit(0) {
                        // From a failed pair nothing will come: the request ends as the pair did.
                        self.asked_held.d.next.status = self.known.q.val().status;
                    }
                } else if self.request.q.val().fetched.kind == CompletionKind::Claim {
                    self.command_held.d.next.operation = self.claim_takes.val();
                    self.asked_held.d.next.ask = Ask::Claim;
                    self.asked_held.d.next.status = Status::NoMessage.into();
                    if self.known.q.val().failed & !self.flags.val().get_bit(0) {
                        self.asked_held.d.next.status = self.known.q.val().status;
                    }
                } else if self.known.q.val().failed & !self.flags.val().get_bit(0) {
                    // A failed pair sends nothing more; what it sent before may still be received.
                    self.command_held.d.next.operation = types::Operation::Claim;
                    self.asked_held.d.next.ask = Ask::Take;
                    self.asked_held.d.next.status = self.known.q.val().status;
                } else if self.is_behind.val() {
                    self.command_held.d.next.operation = types::Operation::Claim;
                    self.asked_held.d.next.ask = Ask::Take;
                    self.asked_held.d.next.status = Status::Behind.into();
                    self.asked_held.d.next.names = self.backlog.waiting.val().request;
                } else {
                    self.asked_held.d.next.ask = Ask::Receive;
                }
            }
            State::Wake => {
                self.asked_held.d.next = self.woken.val();
                self.commands.d.next = false;
                self.enters_request.d.next = true;
                self.state.d.next = State::Idle;
                // It may have ended since it was chosen.
                if self.backlog.waits.val() {
                    self.backlog.ends.next = true;
                    self.state.d.next = State::Enter;
                }
            }
            _ => {}
        }
    }
}
