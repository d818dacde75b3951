//! What changes a pair: a control request, its failure, an update of its numbers, a mark.

use super::{Acknowledge, Sink, Step};
use crate::prelude::*;
use abi::limits::MAX_CREDITS;
use abi::status::Status;

#[block]
impl Acknowledge {
    pub(super) fn change(&mut self) {
        self.known.next = self.pair.q.val() < self.pairs.val();
        self.sound.next = self.known.val() & self.held.val().connected & !self.held.val().failed;
        self.sink.next = self.held.val();
        self.write.next = false;
        self.changed.next = false;
        self.push.next = false;
        self.outlived.next = false;
        self.forgets_said.next = false;
        self.fault.ready.next = self.step.q.val() == Step::Fault;
        self.sink_update.ready.next = self.step.q.val() == Step::Update;
        self.mark.ready.next = self.step.q.val() == Step::Mark;
        self.control.ready.next = false;

        // The number of freed envelopes and the window of refusals, one message later.
        self.one_freed.next = self.held.val().freed + 1;
        self.window.next = self.held.val().refused;
        if self.sink_update.data.val().accepted {
            self.window.next = self.held.val().refused << 1;
            if self.sink_update.data.val().refused {
                self.window.next = (self.held.val().refused << 1) | 1;
            }
        }
        // The firmware has told the peer of an orderly end itself.
        self.announces.next = self.fault.data.val().status != Status::PeerClosed;
        self.closes.next = self.fault.data.val().status == Status::Flushed;

        match self.step.q.val() {
            Step::Control => {
                // A frame that has just begun still writes what it carries.
                if !self.is_times.val()
                    & (self.carrying.q.val()
                        | (self.lookup_begins.val()
                            & (self.lookup_pair.val() == self.pair.q.val())))
                {
                    self.step.d.next = Step::Control;
                } else if self.is_times.val() {
                    self.control.ready.next = true;
                    self.write.next = self.known.val() & self.held.val().connected;
                } else {
                    self.control.ready.next = true;
                    self.write.next = self.known.val();
                    self.changed.next = self.known.val() & self.is_set.val();
                    self.forgets_said.next = true;
                    // A frame of the pair that is on offer would go out as one of the next incarnation, and a `PairFailed` would end that.
                    self.outlived.next = self.offered_frame.q.val().pair == self.pair.q.val();
                    // A stale turn stays in the queue and finds nothing to do.
                    self.sink.next = Sink::default();
                    self.sink.next.queued = self.held.val().queued;
                    self.sink.next.granted = bit_cast::<7, 8>(self.setup.val().local_credits);
                    if self.setup.val().local_credits > MAX_CREDITS {
                        self.sink.next.granted = MAX_CREDITS;
                    }
                    self.sink.next.connected = self.is_set.val();
                }
                self.sink.next.delay = self.setup.val().acknowledge_delay;
                self.sink.next.waiting_credits =
                    bit_cast::<7, 8>(self.setup.val().acknowledge_credits);
            }
            Step::Fault => {
                if self.sound.val() {
                    self.write.next = true;
                    self.sink.next.failed = true;
                    self.sink.next.announces = self.announces.val();
                    self.sink.next.closed = self.closes.val();
                    self.push.next = !self.held.val().queued;
                }
            }
            Step::Update => {
                if self.sound.val() {
                    self.write.next = true;
                    self.changed.next = true;
                    if self.sink_update.data.val().accepted {
                        self.sink.next.accepted = self.held.val().accepted + 1;
                        self.sink.next.refused = self.window.val();
                    }
                    if self.sink_update.data.val().freed {
                        self.sink.next.freed = self.one_freed.val();
                    }
                    if self.nothing_new.val() {
                        self.sink.next.since = self.now.q.val();
                    }
                    self.push.next = !self.held.val().queued;
                }
            }
            Step::Mark => {
                if self.sound.val() {
                    self.write.next = true;
                    self.sink.next.answers = true;
                    if self.mark.data.val().ask {
                        self.sink.next.asks = true;
                    }
                    if self.mark.data.val().misses {
                        self.sink.next.misses = true;
                    }
                    self.push.next = !self.held.val().queued;
                }
            }
            _ => {}
        }
    }
}
