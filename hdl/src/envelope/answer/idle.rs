//! What holds in a cycle in which nothing happens.

use super::{Answer, State};
use crate::envelope::backlog::Held;
use crate::envelope::filling::Filled;
use crate::prelude::*;
use crate::types::{Had, Slotted};

#[block]
impl Answer {
    /// No output is valid, and each names what is in hand.
    pub(super) fn rest_idle(&mut self) {
        self.job.valid.next = false;
        self.job.data.next = self.work.q.val();
        self.done.next = false;
        self.ended.next = false;
        self.own_slot.next = (self.now.val().pair << 6) | bit_cast::<16, 6>(self.now.val().slot);
        self.fills.valid.next = false;
        self.fills.data.next = Filled {
            slot: self.own_slot.val(),
            endpoint: self.now.val().endpoint,
        };
        // Which slot it has comes out of its memory late in the cycle: Filling is asked in the next.
        self.names_message.next =
            (self.state.q.val() == State::Taken) | (self.state.q.val() == State::Found);
        self.known.d.next = self.names_message.val();
        self.unsafe_yet.next = !self.known.q.val() | self.in_hand_fills.val();
        self.lost.next = self.known.q.val() & self.in_hand_fills.val() & self.in_hand_is_lost.val();
        self.still_fills.next =
            self.known.q.val() & self.in_hand_fills.val() & !self.in_hand_is_lost.val();
        self.removed.valid.next = false;
        self.removed.data.next = self.own_slot.val();
        self.retry.next = false;
        self.overflow.valid.next = false;
        self.overflow.data.next = Slotted::default();
        self.overflow.data.next.pair = self.now.val().pair;
        self.overflow.data.next.endpoint = self.now.val().endpoint;
        self.walked.valid.next = false;
        self.walked.data.next = false;
        self.hold.valid.next = false;
        self.had.next = Had {
            offset: self.now.val().immediate.get_bits::<32>(0),
            count: self.now.val().immediate.get_bits::<31>(32),
        };
        self.hold.data.next = Held {
            endpoint: self.now.val().endpoint,
            request: self.now.val().request,
            any_source: self.now.val().any_source,
            pair: self.now.val().pair,
            had: self.had.val(),
        };
        self.tells.next = false;
        self.news.data.next = self.now.val().endpoint;
        self.gone.next = false;
        self.multi_posted.valid.next = false;
        self.multi_posted.data.next = self.now.val().endpoint;
        self.multi_gone.valid.next = false;
        self.multi_gone.data.next = self.now.val().endpoint;
        self.follow.valid.next = false;
        self.reserve.valid.next = false;
        self.reserve.data.next = self.now.val().endpoint;
        self.unreserve.valid.next = false;
        self.unreserve.data.next = self.now.val().endpoint;
        self.count_expected.next = false;
        self.count_unexpected.next = false;
        self.count_rule_drops.next = false;
        self.ruled_pair.next = self.now.val().pair;
        self.count_invalid_requests.next = false;
        self.asks_slot.next = false;
    }
}
