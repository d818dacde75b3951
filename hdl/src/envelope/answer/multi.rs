//! A multi-receive: what is left of its buffer behind the message, and whether it stays.

use super::Answer;
use crate::envelope::asked::Follow;
use crate::prelude::*;
use crate::types::Way;

#[block]
impl Answer {
    /// It stays if enough of its buffer is left and a completion is free. A message that was truncated has left nothing. What has to follow: one that met a
    /// message on arrival, and ends, leaves Lists; one that took a message there, and stays, looks for the next.
    pub(super) fn go_on(&mut self) {
        self.left.next = self.receive.q.val().length - bit_cast::<32, 16>(self.work.q.val().length);
        self.rest.next = self.receive.q.val();
        self.rest.next.address =
            self.receive.q.val().address + bit_cast::<64, 16>(self.work.q.val().length);
        self.rest.next.length = self.left.val();
        self.used.next =
            self.receive.q.val().had.offset + bit_cast::<32, 16>(self.work.q.val().length);
        self.number.next = self.receive.q.val().had.count;
        self.rest.next.had.offset = self.used.val();
        self.rest.next.had.count = self.receive.q.val().had.count + 1;
        self.enough.next =
            (self.left.val() >= self.receive.q.val().min_free) & self.left.val().any();
        self.one_is_free.next =
            ((self.completion_free.val() >> self.receive.q.val().endpoint.get_bits::<5>(0)) & 1)
                .any();
        self.can_reserve.next = self.one_is_free.val();
        self.stays.next = self.enough.val() & self.can_reserve.val();
        self.follows.next = self.work.q.val().ending.multi
            & ((self.work.q.val().way == Way::Hit) != self.work.q.val().ending.stays);
        self.follow.data.next = Follow {
            retire: self.work.q.val().way == Way::Hit,
            endpoint: self.receive.q.val().endpoint,
            request: self.receive.q.val().request,
            address: self.rest.val().address,
            length: self.rest.val().length,
            had: self.rest.val().had,
        };
    }
}
