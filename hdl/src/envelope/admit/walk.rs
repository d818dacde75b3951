//! A walk: the receives, or the messages, of a pair or an endpoint end one by one, while all others go on.
//!
//! ```text
//!   fault, control ──► Due ──► Step ──► Asked ──► Mark ──► Marked ──► done
//!                               ▲         │ more   one entry, behind everything
//!                               └─────────┘        that entered before
//! ```
//!
//! A walk begins when no message of its endpoint is under way, and no request: what a message does to a receive that
//! waits for room is done by then, as if it had come in one step, and a receive that finds its list full waits. No other
//! message of the endpoint enters before the walk's first step.
//!
//! Each step is a command of its own, in the order of the card; between two of them a message or a request goes, if one
//! waits. A step of Lists looks at a few rows only, so none holds up the others for long. Nothing new can be found behind
//! the place that a walk has come to: receives that name a pair are posted only while it is connected and hasn't failed,
//! and an endpoint is closed after its rings are.

use super::{Admit, Stage, State, Walk};
use crate::envelope::asked::{Ask, Asked};
use crate::prelude::*;
use crate::types;
use crate::types::MatchCommand;
use abi::completion::CompletionKind;

#[block]
impl Admit {
    /// Whether a step goes, and whether the receive of its endpoint that waits is one of those that end.
    pub(super) fn prepare_walk(&mut self) {
        self.walk_waits.next =
            self.walk_yields.q.val() & (self.arrival_free.val() | self.list_free.val());
        // Behind a request that comes to wait aside it would hold up all messages.
        self.walk_held.next = self.request_in.q.val();
        self.walk_goes.next = ((self.stage.q.val() == Stage::Step)
            | (self.stage.q.val() == Stage::Mark))
            & self.has_place.val()
            & !self.walk_held.val()
            & !self.walk_waits.val();
        self.waiting_named.next = self.backlog.waits.val()
            & ((self.cause.q.val() == Walk::Endpoint)
                | (!self.backlog.waiting.val().any_source
                    & (self.backlog.waiting.val().pair == self.walk_pair.q.val())));
        self.last.next = Asked::default();
        self.last.next.ask = Ask::Last;
        self.last.next.endpoint = self.walk_endpoint.q.val();
        self.last.next.request = self.backlog.waiting.val().request;
        self.last.next.immediate = self.waiting_had.val();
        self.last.next.kind = CompletionKind::Receive.into();
        self.last.next.status = self.walk_status.q.val();
    }

    /// A step enters; what Lists found of the one before is heard; and at the end a mark enters.
    pub(super) fn walk_on(&mut self) {
        match self.state.q.val() {
            State::Step => {
                self.command_held.d.next = MatchCommand::default();
                self.command_held.d.next.operation = types::Operation::TakePostedOfPair;
                self.command_held.d.next.endpoint = self.walk_endpoint.q.val();
                self.command_held.d.next.pair = self.walk_pair.q.val();
                self.command_held.d.next.again = self.walk_again.q.val();
                self.asked_held.d.next = Asked::default();
                self.asked_held.d.next.ask = Ask::Flush;
                self.asked_held.d.next.endpoint = self.walk_endpoint.q.val();
                self.asked_held.d.next.status = self.walk_status.q.val();
                if self.cause.q.val() == Walk::Endpoint {
                    self.command_held.d.next.operation = types::Operation::TakePostedOfEndpoint;
                }
                if self.cause.q.val() == Walk::Messages {
                    self.command_held.d.next.operation = types::Operation::TakeUnexpectedOfPair;
                    self.command_held.d.next.again = false;
                    self.asked_held.d.next.ask = Ask::Forget;
                }
                self.walk_begun.d.next = true;
                self.walk_again.d.next = true;
                self.walk_yields.d.next = true;
                self.stage.d.next = Stage::Asked;
                self.after.d.next = State::Last;
                if self.walk_begun.q.val() {
                    self.after.d.next = State::Idle;
                }
                self.state.d.next = State::Enter;
            }
            State::Last => {
                self.commands.d.next = false;
                self.after.d.next = State::Idle;
                self.asked_held.d.next = self.last.val();
                // Backlog hears one piece of news a cycle.
                if !self.news_in.valid.val() {
                    // What names the pair, and has been refused, may end as the pair did.
                    self.news.next = self.cause.q.val() != Walk::Endpoint;
                    self.backlog.forget.next = self.cause.q.val() == Walk::Endpoint;
                    self.backlog.ends.next = self.waiting_named.val();
                    self.state.d.next = State::Idle;
                    if self.waiting_named.val() {
                        self.state.d.next = State::Enter;
                    }
                }
            }
            State::Mark => {
                self.commands.d.next = false;
                self.asked_held.d.next = Asked::default();
                self.asked_held.d.next.ask = Ask::Mark;
                self.stage.d.next = Stage::Marked;
                self.after.d.next = State::Idle;
                self.state.d.next = State::Enter;
            }
            _ => {}
        }
        if self.walked.valid.val() {
            self.stage.d.next = Stage::Mark;
            if self.walked.data.val() {
                self.stage.d.next = Stage::Step;
            } else if self.cause.q.val() == Walk::Messages {
                self.cause.d.next = Walk::Pair;
                self.walk_again.d.next = false;
                self.stage.d.next = Stage::Step;
            }
        }
        self.ends_walk.next = self.marked.val();
        if self.ends_walk.val() {
            self.stage.d.next = Stage::None;
            self.fault.ready.next = self.cause.q.val() == Walk::Fault;
            self.arrival_first.d.next = true;
            if self.cause.q.val() != Walk::Fault {
                self.control.ready.next = self.walk_is_asked.q.val();
            }
            if self.cause.q.val() == Walk::Pair {
                self.clears.next = true;
            }
        }
    }
}
