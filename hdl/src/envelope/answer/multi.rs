//! A multi-receive: what is left of its buffer behind the message, and whether it stays.

use super::Answer;
use crate::envelope::asked::Follow;
use crate::prelude::*;
use crate::types::Way;
use abi::status::Status;

#[block]
impl Answer {
    /// It stays if all went well, enough of the buffer is left and a completion is free.
    pub(super) fn go_on(&mut self) {
        self.left.next = self.receive.q.val().length - bit_cast::<32, 16>(self.work.q.val().length);
        self.rest.next = self.receive.q.val();
        self.rest.next.address =
            self.receive.q.val().address + bit_cast::<64, 16>(self.work.q.val().length);
        self.rest.next.length = self.left.val();
        self.enough.next =
            (self.left.val() >= self.receive.q.val().min_free) & self.left.val().any();
        self.status_good.next = self.settle.data.val() == Status::Success;
        self.one_is_free.next =
            ((self.completion_free.val() >> self.receive.q.val().endpoint.get_bits::<5>(0)) & 1)
                .any();
        self.can_reserve.next = self.one_is_free.val();
        self.stays.next = self.status_good.val() & self.enough.val() & self.can_reserve.val();
        self.settled.data.next = self.stays.val();
        self.follow.data.next = Follow {
            retire: self.work.q.val().way == Way::Hit,
            endpoint: self.receive.q.val().endpoint,
            request: self.receive.q.val().request,
            address: self.rest.val().address,
            length: self.rest.val().length,
        };
    }
}
