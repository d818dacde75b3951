//! Look-ups leave for the exact side: one for each class of an arrival, one for a receive, one for a cancel or a walk.
//!
//! ```text
//!   front ──┬──────────► look-up ──► Exact
//!           └► issue ───┘   if Exact isn't ready, or if there are more
//! ```

use super::Lists;
use crate::prelude::*;
use crate::types::{Lookup, Operation, Search};

#[block]
impl Lists {
    /// What the next look-up asks, and what is left of its command behind it.
    pub(super) fn look_up(&mut self) {
        // The first look-up of an operation leaves from `front`, or from `issue` if the exact side wasn't ready for it; the others
        // leave from `issue`. What a look-up says follows from registers; only its `valid` waits for whether `front` goes.
        self.first_live.set.next = self.front_live.q.val();
        self.several_live.next = (self.front_live.q.val() & !self.first_live.lowest.val()).any();
        self.first_kept.set.next = self.issue_todo.q.val();
        self.several_kept.next = (self.issue_todo.q.val() & !self.first_kept.lowest.val()).any();
        self.asks_post.next = self.front_posts.q.val();
        self.asks_first.next = true;
        self.asker.next = self.front.q.val();
        self.asks_in.next = self.classes.view.val();
        self.todo.next = self.front_live.q.val();
        self.first_todo.next = self.first_live.lowest.val();
        self.more_todo.next = self.several_live.val();
        if self.front_posts.q.val() {
            self.todo.next = self.fit_class.val();
            self.first_todo.next = self.fit_class.val();
            self.more_todo.next = false;
        }
        if self.issue_valid.q.val() {
            self.asker.next = self.issue_command.q.val();
            self.asks_in.next = self.issue_view.q.val();
        }
        if !self.issue_empty.q.val() {
            self.asks_post.next = self.issue_posts.q.val();
            self.asks_first.next = self.issue_first.q.val();
            self.todo.next = self.issue_todo.q.val();
            self.first_todo.next = self.first_kept.lowest.val();
            self.more_todo.next = self.several_kept.val();
        }
        self.todo_class.next = 0.into();
        if self.first_todo.val().get_bit(1) | self.first_todo.val().get_bit(3) {
            self.todo_class.next = 1.into();
        }
        if self.first_todo.val().get_bit(2) | self.first_todo.val().get_bit(3) {
            self.todo_class.next = self.todo_class.val() | 2;
        }
        // Both keys are made, so that the choice between `front` and `issue` comes last.
        self.front_key.view.next = self.classes.view.val();
        self.front_key.live.next = self.front_live.q.val();
        self.front_key.posts.next = self.front_posts.q.val();
        self.front_key.pair.next = self.front.q.val().pair;
        self.front_key.match_bits.next = self.front.q.val().match_bits;
        self.front_key.ignore_bits.next = self.front.q.val().ignore_bits;
        self.front_key.any_source.next = self.front.q.val().any_source;
        self.issue_key.view.next = self.issue_view.q.val();
        self.issue_key.live.next = self.issue_todo.q.val();
        self.issue_key.posts.next = self.issue_posts.q.val();
        self.issue_key.pair.next = self.issue_command.q.val().pair;
        self.issue_key.match_bits.next = self.issue_command.q.val().match_bits;
        self.issue_key.ignore_bits.next = self.issue_command.q.val().ignore_bits;
        self.issue_key.any_source.next = self.issue_command.q.val().any_source;
        self.source.next = self.front_key.source.val();
        self.match_bits.next = self.front_key.bits.val();
        if self.issue_valid.q.val() {
            self.source.next = self.issue_key.source.val();
            self.match_bits.next = self.issue_key.bits.val();
        }
        self.class_id.next = (bit_cast::<6, 8>(self.asker.val().endpoint) << 2)
            | bit_cast::<6, 2>(self.todo_class.val());
        self.lookup.next = Lookup::default();
        self.lookup.next.search = Search::Arrive;
        self.lookup.next.tag = self.tag.q.val();
        self.lookup.next.first = self.asks_first.val();
        self.lookup.next.last = !self.more_todo.val();
        self.lookup.next.endpoint = self.asker.val().endpoint;
        self.lookup.next.request = self.asker.val().request;
        self.lookup.next.pair = self.asker.val().pair;
        self.lookup.next.key = bit_cast::<97, 64>(self.match_bits.val())
            | (bit_cast::<97, 16>(self.asker.val().context) << 64)
            | (bit_cast::<97, 11>(self.source.val()) << 80)
            | (bit_cast::<97, 6>(self.class_id.val()) << 91);
        if self.asks_post.val() {
            self.lookup.next.search = Search::Post;
        }
        if !self.issue_empty.q.val() {
            self.lookup.next.tag = self.issue_tag.q.val();
        } else if self.front_direct.q.val() {
            self.lookup.next.first = !self.front.q.val().again;
            self.lookup.next.last = true;
            self.lookup.next.search = Search::Cancel;
            if self.front.q.val().operation == Operation::TakePostedOfPair {
                self.lookup.next.search = Search::OfPair;
            }
            if self.front.q.val().operation == Operation::TakePostedOfEndpoint {
                self.lookup.next.search = Search::OfEndpoint;
            }
        }
        self.exact.lookup.data.next = self.lookup.val();
        self.issue_command.d.next = self.asker.val();
        self.issue_view.d.next = self.asks_in.val();
        self.issue_posts.d.next = self.asks_post.val();
        self.issue_first.d.next = self.asks_first.val() & !self.exact.lookup.ready.val();
        if self.issue_empty.q.val() {
            self.issue_tag.d.next = self.tag.q.val();
        }
        self.issue_todo.d.next = self.todo.val();
        if self.exact.lookup.ready.val() {
            self.issue_todo.d.next = self.todo.val() & !self.first_todo.val();
        }
    }

    /// Whether the look-up leaves, and whether `issue` keeps its command for more.
    pub(super) fn leave(&mut self) {
        self.lookup_valid.next = !self.issue_empty.q.val() | self.to_issue.val();
        self.keeps.next =
            self.lookup_valid.val() & (self.more_todo.val() | !self.exact.lookup.ready.val());
        self.issue_valid.d.next = self.keeps.val();
        self.issue_empty.d.next = !self.keeps.val();
        self.exact.lookup.valid.next = self.lookup_valid.val() | self.goes_direct.val();
        self.exact_free.d.next =
            !self.exact.remains.val() & !self.lookup_valid.val() & !self.goes_direct.val();
    }
}
