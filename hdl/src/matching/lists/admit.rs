//! Admission: whether the offered command is taken, judged by what is under way.
//!
//! A command waits at the door rather than in `front`, where it would keep others waiting. The registers of this section
//! hold of all commands under way together.

use super::Lists;
use crate::prelude::*;
use crate::types::Operation;

#[block]
impl Lists {
    /// Whether the offered command is taken as soon as the front moves.
    pub(super) fn admit(&mut self) {
        // A command is taken at once if it will not wait for another endpoint's: when nothing is under way, when all commands under
        // way are of its endpoint, or when it goes the same way as they. Its way is judged by what was known in the previous cycle,
        // and a receive's as if it had a class. A wrong guess costs time only: the receive waits in `front` until all under way
        // has ended.
        self.no_class.d.next = !self.classes.any_live.val();
        self.unhindered.d.next = self.quota.roomy.val() & !self.unexpected.waiting.val();
        // Four bits name an endpoint: `commands_name_what_there_is`.
        self.next_endpoint.next = self.command.data.val().endpoint.get_bits::<4>(0);
        self.next_bit.next = bits::<32>(1) << self.next_endpoint.val();
        self.comes_arrival.next = self.command.data.val().operation == Operation::Arrive;
        self.comes_receive.next = self.command.data.val().operation == Operation::Post;
        self.comes_classless.next = (self.no_class.q.val() >> self.next_endpoint.val()).get_bit(0);
        self.comes_unhindered.next =
            (self.unhindered.q.val() >> self.next_endpoint.val()).get_bit(0);
        self.latest_endpoint.next = self.last_endpoint.q.val();
        if self.front_valid.q.val() {
            self.latest_endpoint.next = self.front.q.val().endpoint.get_bits::<4>(0);
        }
        self.last_endpoint.d.next = self.latest_endpoint.val();
        self.same_endpoint.next = self.next_endpoint.val() == self.latest_endpoint.val();
        self.comes_associative.next = self.comes_arrival.val() & self.comes_classless.val();
        self.comes_exact.next = (self.comes_arrival.val() & !self.comes_classless.val())
            | (self.comes_receive.val() & self.comes_unhindered.val());
        self.follows.next = (self.on_associative_way.q.val() & self.comes_associative.val())
            | (self.on_exact_way.q.val() & self.comes_exact.val());
        self.empty.next = self.rests.val() & !self.front_valid.q.val();
        self.admitted.next = self.empty.val()
            | (self.one_endpoint.q.val() & self.same_endpoint.val())
            | self.follows.val();
        self.front_moves.next = !self.front_valid.q.val() | self.go.val();
        self.front_loads.next = self.vacant.q.val() | self.go.val();
        self.may_come.next = self.admits.q.val() & self.admitted.val();
        self.comes.next = self.may_come.val() & self.command.valid.val();
        self.command.ready.next = self.may_come.val() & self.front_moves.val();
    }

    /// What holds of all commands under way.
    pub(super) fn count_in(&mut self) {
        // What holds of all under way, the command that enters included: as products, so that no enable waits for `enters`.
        self.enters.next = self.comes.val() & self.front_moves.val();
        self.one_endpoint.d.next = (self.enters.val() & self.empty.val())
            | (self.enters.val() & self.one_endpoint.q.val() & self.same_endpoint.val())
            | (!self.enters.val() & self.one_endpoint.q.val());
        self.on_associative_way.d.next = (self.enters.val()
            & self.comes_associative.val()
            & (self.empty.val() | self.on_associative_way.q.val()))
            | (!self.enters.val() & self.on_associative_way.q.val());
        self.on_exact_way.d.next = (self.enters.val()
            & self.comes_exact.val()
            & (self.empty.val() | self.on_exact_way.q.val()))
            | (!self.enters.val() & self.on_exact_way.q.val());
    }
}
