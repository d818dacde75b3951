//! Messages that found no receive, and are to wait: they stand in a queue until the unexpected side takes them.
//!
//! ```text
//!   arrivals that append ──► under way ──► decided ──► found a receive
//!                          └──────────┐      └───────► messages ──► Unexpected
//!                                     └── pending ──────────┘
//! ```
//!
//! An arrival is answered when it is decided; its message waits some cycles later. Whatever looks at the unexpected
//! messages, and whatever posts a receive, goes when `calm` says that no message is on its way: so none is missed.

use super::{Lists, NewMessage, PENDING};
use crate::prelude::*;

#[block]
impl Lists {
    /// The message at the head of the queue goes to the unexpected side.
    pub(super) fn hand_over(&mut self) {
        self.message.next = self.messages.output.data.val();
        self.messages.output.ready.next = self.unexpected.ready.val();
        self.hands_over.next = self.messages.output.valid.val() & self.unexpected.ready.val();
    }

    /// What becomes of an arrival whose message is to wait if there is no receive for it.
    pub(super) fn append_message(&mut self) {
        self.resolves.next = self.held.read_data.val().append
            & (self.sole_ends.q.val()
                | (self.decided.val() & !self.posts.val() & !self.alone.q.val()));
        self.finds.next = self.accepts.val() | self.rival_wins.val();
        if self.sole_ends.q.val() {
            self.finds.next = self.sole_hit.q.val();
        }
        self.matched.next = self.resolves.val() & self.finds.val();
        self.unmatched.next = self.resolves.val() & !self.finds.val();
        send!(
            self.messages.input,
            self.unmatched.val(),
            NewMessage {
                endpoint: self.held.read_data.val().endpoint,
                pair: self.held.read_data.val().pair,
                slot: self.held.read_data.val().slot,
                context_id: self.held.read_data.val().context,
                match_bits: self.held.read_data.val().match_bits,
            }
        );
        // An arrival is counted a cycle after it went. What is behind it asks no earlier, since a receive stands in the front for two
        // cycles, and all else waits for the arrival's reply.
        self.appending.d.next =
            self.go.val() & self.front_arrives.q.val() & self.front.q.val().append;
        self.counted.next = self.pending.q.val();
        if self.appending.q.val() {
            self.counted.next = self.pending.q.val() + 1;
        }
        self.unresolved.next = self.counted.val();
        if self.matched.val() {
            self.unresolved.next = self.counted.val() - 1;
        }
        self.pending.d.next = self.unresolved.val();
        if self.hands_over.val() {
            self.pending.d.next = self.unresolved.val() - 1;
        }
        // After a message has gone to the unexpected side it takes a cycle until `front` knows of it.
        self.calm.d.next = !self.appending.q.val()
            & !self.hands_over.val()
            & ((self.pending.q.val() == 0) | ((self.pending.q.val() == 1) & self.matched.val()));
        self.admits.d.next = self.initialized_now.val() & (self.pending.q.val() < PENDING);
    }
}
