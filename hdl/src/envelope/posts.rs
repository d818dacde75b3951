//! The requests of the list rings ask the Gate for their buffers before anything else is done with them.
//!
//! ```text
//!              ┌──────────────────────────────┐
//!   input ────►│ ► requests, in order ───────►├──► output, with the answer
//!              │      │ has a buffer          │
//!              └──────┼──────────────▲────────┘
//!                     ▼ query        │ allowed
//! ```
//!
//! Answers come in the order of the questions. Requests without a buffer wait for their turn and nothing else. So the
//! time that a question takes is hidden, and a request whose buffer isn't its endpoint's never gets to Lists. What is allowed here may be taken away before it
//! is used: whoever writes the buffer asks again.

use super::under_way::{Member, UnderWay};
use crate::prelude::*;
use crate::prim::InOrder;
use crate::types::{FetchedList, RegionQuery};
use abi::control::RIGHT_LOCAL_WRITE;

/// Requests in here, at most.
const REQUESTS: usize = 4;

/// A request whose buffer the Gate has been asked about.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
pub(super) struct CheckedList {
    /// The request.
    pub fetched: FetchedList,
    /// Its buffer may be written, or it has none.
    pub allowed: Bit,
}

/// A request on its way through.
#[derive(Copy, Clone, Debug, PartialEq, Default, LogicStruct)]
struct Waiting {
    fetched: FetchedList,
    /// The Gate was asked.
    asked: Bit,
}

/// The requests between the rings and Lists.
#[block]
pub(super) struct Posts {
    /// Rising edge counts.
    pub clock: Signal<In, Clock>,
    /// Forgets all requests; no answer may be owed.
    pub reset: Signal<In, Bit>,
    /// From the list rings.
    pub input: Stream<In, FetchedList>,
    /// The endpoint that is asked about.
    pub endpoint: Signal<In, Bits<8>>,
    /// A request of it is in here.
    pub of_endpoint: Signal<Out, Bit>,
    /// To the Gate.
    pub query: Stream<Out, RegionQuery>,
    /// Its answers, in order.
    pub allowed: Pulse<In, Bit>,
    /// On to Lists.
    pub output: Stream<Out, CheckedList>,
    #[is(InOrder::new(REQUESTS, REQUESTS))]
    requests: InOrder<Waiting, Bit>,
    #[is(UnderWay::new(REQUESTS))]
    in_here: UnderWay,
    has_buffer: Signal<Local, Bit>,
    may_enter: Signal<Local, Bit>,
    enters: Signal<Local, Bit>,
    verdict: Signal<Local, Bit>,
    leaves: Signal<Local, Bit>,
    what_leaves_as_allowed_has_a_yes: Check,
}

#[block]
impl Logic for Posts {
    fn update(&mut self) {
        // In: with the question, if there is one to ask.
        self.has_buffer.next =
            self.input.data.val().buffer & self.input.data.val().request.length.any();
        self.may_enter.next = self.requests.asked.ready.val() & self.in_here.room.val();
        send!(
            self.query,
            self.input.valid.val() & self.has_buffer.val() & self.may_enter.val(),
            RegionQuery {
                domain: self.input.data.val().domain,
                key: self.input.data.val().request.key,
                rights: RIGHT_LOCAL_WRITE,
                address: self.input.data.val().request.address,
                length: self.input.data.val().request.length,
            }
        );
        self.input.ready.next =
            self.may_enter.val() & (self.query.ready.val() | !self.has_buffer.val());
        self.enters.next = self.input.valid.val() & self.input.ready.val();
        send!(
            self.requests.asked,
            self.enters.val(),
            Waiting {
                fetched: self.input.data.val(),
                asked: self.has_buffer.val(),
            }
        );
        join!(self.allowed => self.requests.answer);

        // Out: with the answer.
        self.requests.awaits.next = self.requests.output.data.val().asked;
        self.verdict.next =
            !self.requests.output.data.val().asked | self.requests.output_answer.val();
        send!(
            self.output,
            self.requests.output.valid.val(),
            CheckedList {
                fetched: self.requests.output.data.val().fetched,
                allowed: self.verdict.val(),
            }
        );
        self.what_leaves_as_allowed_has_a_yes.ok.next = !self.output.valid.val()
            | !self.output.data.val().allowed
            | !self.requests.output.data.val().asked
            | self.requests.output_answer.val();
        self.requests.output.ready.next = self.output.ready.val();
        self.leaves.next = self.output.valid.val() & self.output.ready.val();

        // Who is in here.
        self.in_here.enters.valid.next = self.enters.val();
        self.in_here.enters.data.next = Member {
            pair: 0.into(),
            endpoint: self.input.data.val().endpoint,
        };
        self.in_here.leaves.next = self.leaves.val();
        self.in_here.pair.next = 0.into();
        self.in_here.endpoint.next = self.endpoint.val();
        self.of_endpoint.next = self.in_here.of_endpoint.val();
    }
}
