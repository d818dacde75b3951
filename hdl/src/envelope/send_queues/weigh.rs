//! What follows from a pair's word and from what is offered to it, in a cycle of its own before anything is decided.

use super::credit::Weighed;
use super::{SendQueues, Step};
use crate::prelude::*;
use abi::limits::EAGER_MAX;
use abi::times::{ANSWER_TIMEOUTS, DOUBLINGS};

const _: () = assert!(DOUBLINGS < 1 << 2);

#[block]
impl SendQueues {
    /// Fills `weighed`.
    pub(super) fn weigh(&mut self) {
        self.in_range.next = self.pair.q.val() < self.pairs.val();
        self.credit.source.next = self.source.q.val();
        self.credit.progress.next = self.progress.data.val();
        self.credit.hears.next = self.weighing.q.val() == Step::Progress;
        self.answered_bit.next = bits::<16>(1) << self.answered.data.val().number.get_bits::<4>(0);
        self.still_open.next = self.source.q.val().open;
        if self.weighing.q.val() == Step::Answered {
            self.still_open.next = self.source.q.val().open & !self.answered_bit.val();
        }
        self.credit.open.next = self.still_open.val();
        self.claim_bit.next = bits::<16>(1) << self.claim.data.val().number.get_bits::<4>(0);
        self.claim_ahead.next = self.claim.data.val().number - self.source.q.val().acknowledged;
        self.is_live.next =
            self.source.q.val().connected & !self.source.q.val().failed & self.in_range.val();
        self.is_awaited.next = self.is_live.val()
            & (self.claim_ahead.val() < bit_cast::<32, 8>(self.credit.unacknowledged.val()))
            & (self.source.q.val().awaited & self.claim_bit.val()).any();
        self.is_claimed.next = self.is_live.val()
            & (self.source.q.val().open & !self.source.q.val().awaited & self.answered_bit.val())
                .any();
        self.is_own_pair.next = self.source.q.val().connected
            & self.in_range.val()
            & (self.source.q.val().endpoint == self.sends.data.val().endpoint);
        self.is_sound.next = self.is_live.val() & !self.source.q.val().failing;
        // Silence: of a peer that has something to acknowledge, or of a wire that takes nothing, so that the pair has no turn.
        // Each time it waits twice as long as the time before, `DOUBLINGS` times; for what isn't safe as if it had tried as often before as it has learned.
        self.quiet_for.next = self.now.q.val() - self.source.q.val().since;
        self.doublings.next = DOUBLINGS;
        if self.source.q.val().tries < DOUBLINGS {
            self.doublings.next = self.source.q.val().tries.get_bits::<2>(0);
        }
        self.doublings_learned.next =
            self.source.q.val().tries.get_bits::<2>(0) + self.source.q.val().learned;
        self.is_learned.next = (self.source.q.val().tries < DOUBLINGS)
            & (self.doublings_learned.val() < DOUBLINGS)
            & self.credit.on_their_way.val().any();
        if self.is_learned.val() {
            self.doublings.next = self.doublings_learned.val();
        } else if self.credit.on_their_way.val().any() & self.source.q.val().learned.any() {
            self.doublings.next = DOUBLINGS;
        }
        self.timeouts_over.next = self.quiet_for.val() >> self.source.q.val().timeout_log2;
        self.patience.next = self.timeouts_over.val() >> self.doublings.val();
        self.late.next = self.is_sound.val()
            & self.source.q.val().timeout_log2.any()
            & self.patience.val().any();
        self.is_unreadable.next = self.source.q.val().unreadable & !self.source.q.val().failed;
        // No two of the numbers are further apart than `MAX_SENDS`, so that their low bits say which are the same.
        self.turn_low.next = self.source.q.val().turn.get_bits::<8>(0);
        self.is_back.next = self.turn_low.val() != self.source.q.val().taken.get_bits::<8>(0);
        self.repeats_left.next =
            self.is_back.val() & (self.turn_low.val() != self.credit.sent.val().get_bits::<8>(0));
        self.behind_turn.next = self.turn_low.val() - self.source.q.val().safe.get_bits::<8>(0);
        self.turn_bit.next = bits::<16>(1) << self.source.q.val().turn.get_bits::<4>(0);
        self.passed_over.next = self.behind_turn.val().get_bit(7)
            & !(self.source.q.val().for_answers
                & (self.source.q.val().awaited & self.turn_bit.val()).any());
        self.passes_turn.next = self.credit.passes_turn.val();
        self.held.next = self.source.q.val().taken.get_bits::<8>(0)
            - self.source.q.val().acknowledged.get_bits::<8>(0)
            + self.source.q.val().count;
        self.full.next = self.held.val() > bit_cast::<8, 6>(self.source.q.val().last);
        self.silent.next = self.credit.on_their_way.val().any()
            | (!self.credit.unacknowledged.val().any()
                & self.source.q.val().queued
                & self.source.q.val().count.any()
                & !self.source.q.val().given.any());
        // A peer that has all may have others to answer first: it is asked whether it is there, and for the answers again when that has gone on for long.
        self.owes_answers.next =
            self.credit.unacknowledged.val().any() & !self.credit.on_their_way.val().any();
        self.asks_again.next = self.owes_answers.val()
            & (self.source.q.val().overtaken | (self.source.q.val().quiet == ANSWER_TIMEOUTS - 1));
        self.last_try.next = (self.source.q.val().tries >= self.source.q.val().retry_limit)
            | (self.asks_again.val()
                & (self.source.q.val().asked_again >= self.source.q.val().retry_limit));
        // Messages wait for credit and none is on its way (a put that is first is in the queue of turns): should the frame that returned it have been lost, nothing else would tell.
        self.is_dry.next = self.source.q.val().count.any()
            & (self.source.q.val().taken == self.source.q.val().acknowledged)
            & !self.credit.has_one.val()
            & !(self.source.q.val().may_put & self.source.q.val().queued);
        self.asks.next = self.is_dry.val() | self.owes_answers.val();
        self.behind_latest.next = self.source.q.val().given + 1;
        self.latest.next = self.source.q.val().taken - bit_cast::<32, 8>(self.behind_latest.val());
        self.too_long.next = self.request.val().length > EAGER_MAX;
        self.weighed.d.next = Weighed {
            in_range: self.in_range.val(),
            own: self.is_own_pair.val(),
            sound: self.is_sound.val(),
            late: self.late.val(),
            silent: self.silent.val(),
            asks: self.asks.val(),
            latest: self.latest.val(),
            owes_answers: self.owes_answers.val(),
            asks_again: self.asks_again.val(),
            unreadable: self.is_unreadable.val(),
            last_try: self.last_try.val(),
            goes_back: self.is_back.val(),
            repeats_left: self.repeats_left.val(),
            passed_over: self.passed_over.val(),
            passes_turn: self.passes_turn.val(),
            full: self.full.val(),
            too_long: self.too_long.val(),
            sent: self.credit.sent.val(),
            unacknowledged: self.credit.unacknowledged.val(),
            in_use: self.credit.in_use.val(),
            has_one: self.credit.has_one.val(),
            has_two: self.credit.has_two.val(),
            room_one: self.credit.room_one.val(),
            room_two: self.credit.room_two.val(),
            safe: self.credit.safe.val(),
            hears_more: self.credit.hears_more.val(),
            ends_some: self.credit.ends_some.val(),
            newly: self.credit.newly.val(),
            behind: self.credit.behind.val(),
            awaits: self.is_awaited.val(),
            is_open: self.is_claimed.val(),
            returned: self.credit.returned.val(),
            gets_credit: self.credit.gets_credit.val(),
            lies: self.credit.lies.val(),
        };

        // What the step that is decided uses of it under a name.
        self.sound.next = self.weighed.q.val().sound;
        self.has_credit.next = self.weighed.q.val().has_one;
        self.may_put.next = self.source.q.val().may_put & self.weighed.q.val().room_one;
        self.all_safe.next = !self.weighed.q.val().unacknowledged.any();
        self.has_given.next = self.source.q.val().given.any() | self.source.q.val().repeats.any();
        self.is_repeated.next = self.source.q.val().repeats.any();
    }
}
