//! A claimed message is out of the lists, and keeps its slot and its credit until it is received or discarded by the claim's handle.

use abi::completion::CompletionKind;
use abi::limits::MAX_CREDITS;
use abi::request::{ListRequest, claim_number, claim_slot, pair_and_slot};
use abi::status::Status;

use super::{Delivery, Neighbours, Receive};
use crate::breaks::Break;
use crate::output::Output;

impl Delivery {
    /// Receives or discards the message that `target` names. Asks nobody in front.
    pub(super) fn use_claim(
        &mut self,
        kind: CompletionKind,
        receive: &Receive,
        request: &ListRequest,
        around: &mut impl Neighbours,
    ) {
        let place = claim_slot(request.target);
        if !self.is_claim(receive.endpoint, request.target) {
            return self.refuse(receive, kind, Status::InvalidClaim, around);
        }
        if kind == CompletionKind::Receive {
            let access = Self::access(receive, request.length);
            if request.length > 0 && !around.allowed(&access) {
                // The claim stays as it is.
                return self.refuse(receive, kind, Status::LocalProtection, around);
            }
            self.copy(place, receive, around);
            return;
        }
        let envelope = self.messages.remove(&place).expect("it is claimed");
        let entry = receive.completion(kind, Status::Success.code());
        let endpoint = receive.endpoint;
        around.put(Output::Complete { endpoint, entry });
        let freed = self.broken != Break::DiscardKeepsEnvelope;
        self.vacate(&envelope, freed, around);
    }

    /// Whether a handle names a message that the endpoint has claimed.
    fn is_claim(&self, endpoint: u8, handle: u32) -> bool {
        let (pair, slot) = pair_and_slot(claim_slot(handle));
        let sink = self.sink(pair);
        let number = claim_number(handle);
        let found = self.messages.get(&claim_slot(handle));
        u16::from(slot) < MAX_CREDITS
            && number != 0
            && sink.connected
            && sink.endpoint == endpoint
            && found.is_some_and(|envelope| envelope.claim == number)
    }
}
