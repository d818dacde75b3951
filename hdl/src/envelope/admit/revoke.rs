//! Whether a rule revokes what enters, and which rules there are.
//!
//! A message, or what a request looks for, is looked up while its command is put together, and enters when the answer is known: in the next
//! cycle, unless rules are of its endpoint and context. A message that is revoked is dropped then, and a request ends. What comes first in
//! a request, its pair and its buffer, comes before the rules, and
//! they come before receives that wait.

use super::{Admit, State, Walk};
use crate::envelope::rules::{RuleChange, Tag};
use crate::prelude::*;
use abi::completion::CompletionKind;

#[block]
impl Admit {
    /// What is looked up, and whether it can be revoked. And what becomes of the rules.
    pub(super) fn look_for_rule(&mut self) {
        self.tag.next = Tag {
            endpoint: self.request.q.val().fetched.endpoint,
            pair: self.fetched.val().pair,
            any_source: self.flags.val().get_bit(0),
            context: self.fetched.val().context,
            match_bits: self.fetched.val().match_bits,
            ignore_bits: self.fetched.val().ignore_bits,
        };
        self.past_rules.next = (self.request.q.val().fetched.kind == CompletionKind::Claim)
            & self.flags.val().get_bit(4);
        self.searches.next = !self.is_cancel.val()
            & !self.request.q.val().fetched.names_claim
            & (!self.request.q.val().fetched.needs_pair | self.source_ok.val())
            & self.request.q.val().allowed;
        self.rules.look.valid.next = false;
        self.rules.forget_pair.valid.next = false;
        self.rules.forget_endpoint.valid.next = false;
        if (self.state.q.val() == State::Message) | self.enters_message.q.val() {
            self.tag.next = Tag {
                endpoint: self.message.q.val().endpoint,
                pair: self.message.q.val().pair,
                any_source: false,
                context: self.message.q.val().context,
                match_bits: self.message.q.val().match_bits,
                ignore_bits: 0.into(),
            };
        }
        match self.state.q.val() {
            State::Idle => {
                self.revocable.d.next = false;
            }
            State::Alone => {
                self.revocable.d.next = false;
            }
            State::Message => {
                self.rules.look.valid.next = true;
                self.revocable.d.next = !self.message.q.val().put;
            }
            State::Request => {
                self.rules.look.valid.next = true;
                self.revocable.d.next = self.searches.val() & !self.past_rules.val();
            }
            State::Begin => {
                self.rules.forget_pair.valid.next = self.cause.q.val() == Walk::Messages;
                self.rules.forget_endpoint.valid.next = self.cause.q.val() == Walk::Endpoint;
            }
            _ => {}
        }
        self.rules.look.data.next = self.tag.val();
        self.rules.forget_pair.data.next = self.walk_pair.q.val();
        self.rules.forget_endpoint.data.next = self.walk_endpoint.q.val();
        self.rules.change.valid.next = (self.state.q.val() == State::Control)
            & (self.is_rule_set.val() | self.is_rule_clear.val());
        self.rules.change.data.next = RuleChange {
            row: self.control.data.val().index,
            holds: self.is_rule_set.val(),
            rule: self.rule.val(),
        };
        self.under_rules.next = self.revocable.q.val() & !self.is_late.val();
        self.rule_known.next = !self.under_rules.val() | self.rules.known.val();
        self.revoked.next = self.under_rules.val() & self.rules.covered.val();
        self.drops_revoked.next = self.revoked.val() & self.enters_message.q.val();
        self.ends_revoked.next = self.revoked.val() & !self.enters_message.q.val();
    }
}
