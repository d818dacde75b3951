//! What is kept of receives and messages: the two memories, and the claimed message that a request names.

use super::{Answer, Message, Receive};
use crate::prelude::*;
use abi::request::CLAIM_SLOT_BITS;

#[block]
impl Answer {
    /// What is read, what would be written, and whether a handle is good.
    pub(super) fn look_up(&mut self) {
        // The two memories. While a message is written another one is read.
        self.receives.read_address.next = self.answer.val().index;
        self.receives.write.enable.next = false;
        self.receives.write.address.next = self.answer.val().index;
        self.receive_found.next = self.receives.read_data.val();
        self.messages.read_address.next = self.answer.val().index;
        self.messages.write.enable.next = false;
        self.message_found.next = self.messages.read_data.val();
        self.found_slot.next = (bit_cast::<16, 8>(self.message_found.val().pair) << 6)
            | bit_cast::<16, 6>(self.message_found.val().slot);
        self.slot_in_hand.d.next = self.found_slot.val();
        self.in_hand.next = self.slot_in_hand.q.val();

        // What a receive that is posted becomes.
        self.posted.next = Receive {
            endpoint: self.now.val().endpoint,
            domain: self.now.val().domain,
            request: self.now.val().request,
            key: self.now.val().key,
            address: self.now.val().address,
            length: self.now.val().length,
            multi: self.now.val().multi,
            min_free: self.now.val().min_free,
            had: self.had.val(),
        };
        self.receives.write.data.next = self.posted.val();

        // A message in its slot isn't claimed.
        self.slotted.next = Message {
            context: self.now.val().context,
            match_bits: self.now.val().match_bits,
            immediate: self.now.val().immediate,
            length: bit_cast::<11, 16>(self.now.val().arrived),
            claim: 0.into(),
            pair: bit_cast::<8, 16>(self.now.val().pair),
            slot: self.now.val().slot,
        };
        self.claimed.next = self.message_found.val();
        self.claimed.next.claim = self.claims.q.val();
        self.messages.write.address.next = self.slot_answer.data.val().place;
        self.messages.write.data.next = self.slotted.val();

        // The claimed message that a request names.
        self.handle_slot.next = self
            .now
            .val()
            .target
            .get_bits::<{ CLAIM_SLOT_BITS as usize }>(0);
        self.handle_claim.next = self
            .now
            .val()
            .target
            .get_bits::<16>(CLAIM_SLOT_BITS as usize);
        self.same_claim.next = self.message_found.val().claim == self.handle_claim.val();
        self.own_claim.next = self.now.val().own;
        self.handle_good.next = self.slot_held.q.val().used
            & self.handle_claim.val().any()
            & self.same_claim.val()
            & self.own_claim.val();
    }
}
