//! A request of the list ring: a receive, a probe or a claim looks for a message; a cancel looks for a receive.

use abi::completion::{Completion, CompletionKind};
use abi::control::Counter;
use abi::opcode::OpcodeRow;
use abi::request::{FLAG_ANY_SOURCE, FLAG_PAST_RULES, ListRequest, Opcode, claim_handle};
use abi::status::Status;

use super::rules::Tag;
use super::{Delivery, Neighbours, Receive};
use crate::breaks::Break;
use crate::matching::{Command, Operation};
use crate::output::Output;

/// What looking for a message came to.
enum Look {
    /// The request is done with.
    Done,
    /// A receive has taken the message, and stays with this rest of its buffer.
    Stays(Receive),
}

/// A request that looks for a message.
#[derive(Clone, Debug)]
pub(super) struct Request {
    kind: CompletionKind,
    receive: Receive,
    request: ListRequest,
}

impl Delivery {
    /// The request that has found a message whose slot couldn't be written looks again, if there is one.
    pub fn look_again(&mut self, around: &mut impl Neighbours) {
        if let Some(again) = self.again.take() {
            self.search(again.kind, again.receive, &again.request, around);
            self.wake(around);
        }
    }

    /// Carries out a request that is well-formed.
    pub fn list(
        &mut self,
        endpoint: u8,
        domain: u8,
        row: &OpcodeRow,
        request: &ListRequest,
        around: &mut impl Neighbours,
    ) {
        let receive = Receive::of(endpoint, domain, request);
        match row.opcode {
            Opcode::TaggedReceive | Opcode::Probe | Opcode::Claim => {
                self.search(row.kind, receive, request, around)
            }
            Opcode::Cancel => self.cancel(endpoint, request, around),
            Opcode::ReceiveClaimed | Opcode::Discard => {
                self.use_claim(row.kind, &receive, request, around)
            }
            Opcode::TaggedSend
            | Opcode::CancelSend
            | Opcode::Segments
            | Opcode::Put
            | Opcode::Get => {
                unreachable!("the decoder of the list ring refuses it")
            }
        }
        self.wake(around);
    }

    pub(super) fn refuse(
        &self,
        receive: &Receive,
        kind: CompletionKind,
        status: Status,
        around: &mut impl Neighbours,
    ) {
        let malformed = [
            Status::InvalidPair,
            Status::LocalProtection,
            Status::InvalidClaim,
        ];
        if malformed.contains(&status) {
            around.put(Output::Count(Counter::InvalidRequests));
        }
        let handle = match status {
            Status::Behind => self.stall(receive.endpoint).last,
            _ => 0,
        };
        let entry = Completion {
            handle,
            ..receive.completion(kind, status.code())
        };
        let endpoint = receive.endpoint;
        around.put(Output::Complete { endpoint, entry });
    }

    /// Looks for a message, and for one after the other if the receive stays.
    fn search(
        &mut self,
        kind: CompletionKind,
        mut receive: Receive,
        request: &ListRequest,
        around: &mut impl Neighbours,
    ) {
        let endpoint = receive.endpoint;
        self.stall_mut(endpoint).hears(request.flags);
        let any_source = request.flags & FLAG_ANY_SOURCE != 0;
        let sink = self.sink(request.pair);
        let own = sink.connected && sink.endpoint == endpoint;
        if !any_source && !own {
            return self.refuse(&receive, kind, Status::InvalidPair, around);
        }
        let receives = kind == CompletionKind::Receive;
        let access = Self::access(&receive, request.length);
        if receives && request.length > 0 && !around.allowed(&access) {
            return self.refuse(&receive, kind, Status::LocalProtection, around);
        }
        if self.request_is_revoked(kind, endpoint, request) {
            return self.refuse(&receive, kind, Status::Revoked, around);
        }
        while let Look::Stays(rest) = self.look(kind, &receive, request, around) {
            receive = rest;
        }
    }

    /// Whether what a request is for falls under a rule. Of a receive with flags of another request the bit means nothing.
    fn request_is_revoked(
        &self,
        kind: CompletionKind,
        endpoint: u8,
        request: &ListRequest,
    ) -> bool {
        let any_source = request.flags & FLAG_ANY_SOURCE != 0;
        let past = kind == CompletionKind::Claim && request.flags & FLAG_PAST_RULES != 0;
        let tag = Tag {
            endpoint,
            pair: (!any_source).then_some(request.pair),
            context: request.context,
            match_bits: request.match_bits,
            ignore_bits: request.ignore_bits,
        };
        !past && self.rules.cover(&tag, self.broken) && self.broken != Break::RuledPosts
    }

    fn look(
        &mut self,
        kind: CompletionKind,
        receive: &Receive,
        request: &ListRequest,
        around: &mut impl Neighbours,
    ) -> Look {
        let endpoint = receive.endpoint;
        let any_source = request.flags & FLAG_ANY_SOURCE != 0;
        // A failed pair sends nothing more; what it sent before may still be received.
        let failed = self.sink(request.pair).failed.filter(|_| !any_source);
        let stall = self.stall(endpoint);
        let stalled = stall.stalled;
        if stalled && stall.news && self.broken != Break::LooksAgain {
            self.refuse(receive, kind, Status::Behind, around);
            return Look::Done;
        }
        let operation = match kind {
            CompletionKind::Probe => Operation::Probe,
            CompletionKind::Claim => Operation::Claim,
            // It takes what is there, and isn't posted.
            _ if failed.is_some() || stalled => Operation::Claim,
            _ => Operation::Post,
        };
        let command = Command {
            endpoint,
            pair: request.pair,
            any_source,
            context: request.context,
            match_bits: request.match_bits,
            ignore_bits: request.ignore_bits,
            request: request.request,
            multi: receive.multi,
            ..Command::new(operation)
        };
        let reply = self.command(&command, around);
        if reply.found && self.messages[&reply.index].lost {
            self.again = Some(Request {
                kind,
                receive: *receive,
                request: *request,
            });
        } else if reply.found {
            if kind == CompletionKind::Receive {
                let rest = self.copy(reply.index, receive, around);
                return rest.map_or(Look::Done, Look::Stays);
            }
            self.tell(kind, receive, reply.index, around);
        } else if let Some(status) = failed {
            let entry = receive.completion(kind, status);
            around.put(Output::Complete { endpoint, entry });
        } else if kind != CompletionKind::Receive {
            self.refuse(receive, kind, Status::NoMessage, around);
        } else if stalled {
            self.refuse(receive, kind, Status::Behind, around);
        } else if reply.full {
            self.stall_mut(endpoint).waits(receive, request);
        } else {
            self.receives.insert(reply.index, *receive);
        }
        Look::Done
    }

    /// A probe tells of the message at `place`, and a claim takes it.
    fn tell(
        &mut self,
        kind: CompletionKind,
        receive: &Receive,
        place: u16,
        around: &mut impl Neighbours,
    ) {
        let envelope = self.messages.get_mut(&place).expect("the lists hold it");
        let mut entry = envelope.fill(receive.completion(kind, Status::Success.code()));
        if kind == CompletionKind::Claim {
            envelope.claim = self.claims;
            entry.handle = claim_handle(self.claims, place);
            self.claims = self.claims.checked_add(1).unwrap_or(1);
        }
        let endpoint = receive.endpoint;
        around.put(Output::Complete { endpoint, entry });
    }

    /// The receive that a cancel names ends, if it is posted or waits for room; else the cancel is too late.
    fn cancel(&mut self, endpoint: u8, request: &ListRequest, around: &mut impl Neighbours) {
        let target = request.target;
        let waited = self.stall_mut(endpoint).cancel(target);
        let receive = waited.or_else(|| {
            let command = Command {
                endpoint,
                request: target,
                ..Command::new(Operation::Cancel)
            };
            let reply = self.command(&command, around);
            let found = reply.found.then(|| {
                let posted = self.receives.remove(&reply.index);
                posted.expect("it is posted")
            })?;
            self.goes();
            Some(found)
        });
        let Some(receive) = receive else {
            let entry = Completion {
                request: request.request,
                status: Status::TooLate.code(),
                kind: CompletionKind::Cancel.code(),
                ..Completion::default()
            };
            return around.put(Output::Complete { endpoint, entry });
        };
        match self.broken {
            Break::CancelTold => {
                let entry = Completion {
                    request: request.request,
                    kind: CompletionKind::Cancel.code(),
                    ..Completion::default()
                };
                around.put(Output::Complete { endpoint, entry });
            }
            _ => around.put(Output::Release { endpoint }),
        }
        self.ends(&receive, Status::Cancelled.code(), around);
    }
}
