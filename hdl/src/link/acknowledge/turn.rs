//! A pair's turn: whether its numbers go alone, wait for a frame of its own messages, or have gone already; and the offer of the frame.
//!
//! Numbers wait while a message of the pair waits for its turn or its frame, or any message for the wire, until as many credits wait with them
//! as the pair's setup says, or its `acknowledge_delay` has passed.

use super::{Acknowledge, Step};
use crate::prelude::*;
use abi::wire::FrameType;

#[block]
impl Acknowledge {
    pub(super) fn turn(&mut self) {
        self.unsaid_credits.next =
            bit_cast::<8, 32>(self.held.val().freed) - self.said_before.val().freed;
        self.many_credits.next =
            self.unsaid_credits.val() >= bit_cast::<8, 7>(self.held.val().waiting_credits);
        self.waited.next = self.now.q.val() - self.held.val().since;
        self.waited_enough.next = self.waited.val() >= self.held.val().delay;
        self.waits.next = (self.gathered.val() | self.wire_busy.val())
            & !self.many_credits.val()
            & !self.waited_enough.val()
            & !self.held.val().answers;

        // The frame on offer, which lives as long as nothing else has said the same and its pair is the same.
        send!(
            self.control_frame,
            self.offered.q.val(),
            self.offered_frame.q.val()
        );
        self.replaced.next = self.lookup_begins.val()
            & !self.control_frame.ready.val()
            & self.only_numbers.q.val()
            & (self.lookup_pair.val() == self.offered_frame.q.val().pair);
        if self.control_frame.ready.val() | self.replaced.val() | self.outlived.val() {
            self.offered.d.next = false;
        }

        self.turns.output.ready.next = false;
        // If a frame begins in this cycle, the turn is looked at anew: it may be one of the pair.
        if (self.step.q.val() == Step::Turn) & !self.lookup_begins.val() {
            self.turns.output.ready.next = true;
            self.write.next = true;
            self.sink.next.queued = false;
            if self.held.val().announces {
                self.sink.next.announces = false;
                self.offered.d.next = true;
                self.offered_frame.d.next.frame_type = FrameType::PairFailed;
                if self.held.val().closed {
                    self.offered_frame.d.next.frame_type = FrameType::PairClosed;
                }
                self.offered_frame.d.next.misses = false;
            } else if self.sound.val() & (!self.nothing_new.val() | self.held.val().answers) {
                if self.waits.val() {
                    self.push.next = true;
                } else {
                    self.sink.next.asks = false;
                    self.sink.next.answers = false;
                    self.sink.next.misses = false;
                    self.offered.d.next = true;
                    self.offered_frame.d.next.misses = self.held.val().misses;
                    self.offered_frame.d.next.frame_type = FrameType::Acknowledge;
                    if self.held.val().asks {
                        self.offered_frame.d.next.frame_type = FrameType::Ask;
                    }
                }
            }
            self.offered_frame.d.next.pair = self.pair.q.val();
            self.only_numbers.d.next = !self.held.val().announces & !self.held.val().answers;
        }
        if self.push.val() {
            self.sink.next.queued = true;
        }
        self.turns.input.valid.next = self.push.val();
        self.turns.input.data.next = self.pair.q.val();
        self.one_control_frame_a_pair_waits.ok.next = !self.push.val()
            | (self.turns.input.ready.val()
                & (!self.held.val().queued | (self.step.q.val() == Step::Turn)));
    }
}
