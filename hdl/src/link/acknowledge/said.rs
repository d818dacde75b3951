//! The numbers that frames carry, and what the last frame of each pair has carried; and what of all this is written.

use super::{Acknowledge, Numbers, Said};
use crate::prelude::*;

#[block]
impl Acknowledge {
    pub(super) fn carry(&mut self) {
        self.numbers.read_address.next = self.lookup_pair.val();
        self.carried.next = self.numbers.read_data.val();
        self.lookup_acknowledge.next = self.carried.val().accepted;
        self.lookup_credit.next = self.carried.val().freed;
        self.lookup_refused.next = self.carried.val().refused;
        self.lookup_failed.next = self.carried.val().failed;
        self.carrying.d.next = self.lookup_begins.val();
        self.carrying_pair.d.next = self.lookup_pair.val();
        store!(
            self.said.write,
            self.carrying.q.val() | self.forgets_said.val(),
            self.carrying_pair.q.val(),
            Said::default()
        );
        self.said.write.data.next.accepted = bit_cast::<8, 32>(self.carried.val().accepted);
        self.said.write.data.next.freed = bit_cast::<8, 32>(self.carried.val().freed);
        if self.forgets_said.val() {
            self.said.write.address.next = self.pair.q.val();
            self.said.write.data.next = Said::default();
        }

        store!(
            self.sinks.write,
            self.write.val(),
            self.pair.q.val(),
            self.sink.val()
        );
        self.numbers_now.next = Numbers {
            accepted: self.sink.val().accepted,
            freed: self.sink.val().freed,
            refused: self.sink.val().refused,
            failed: self.sink.val().failed,
        };
        store!(
            self.numbers.write,
            self.write.val(),
            self.pair.q.val(),
            self.numbers_now.val()
        );

        self.monitor_sink_valid.next = self.changed.val();
        self.monitor_sink_pair.next = self.pair.q.val();
        self.monitor_sink_accepted.next = self.sink.val().accepted;
        self.monitor_sink_freed.next = self.sink.val().freed;

        self.used.next = self.sink.val().accepted - self.sink.val().freed;
        self.queued_envelopes_are_within_the_grant.ok.next =
            !self.changed.val() | (self.used.val() <= bit_cast::<32, 7>(self.sink.val().granted));

        self.alone.d.next =
            self.offered.q.val() & self.control_frame.ready.val() & self.only_numbers.q.val();
        if self.carrying.q.val() {
            self.has_last.d.next = true;
            self.last_pair.d.next = self.carrying_pair.q.val();
            self.last_carried.d.next = self.carried.val();
        }
        if self.forgets_said.val() {
            self.has_last.d.next = false;
        }
        self.an_acknowledgement_alone_says_something_new.ok.next = !self.carrying.q.val()
            | !self.alone.q.val()
            | !self.has_last.q.val()
            | (self.last_pair.q.val() != self.carrying_pair.q.val())
            | (self.last_carried.q.val().accepted != self.carried.val().accepted)
            | (self.last_carried.q.val().freed != self.carried.val().freed);
    }
}
