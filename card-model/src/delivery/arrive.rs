//! A message has arrived.

use abi::control::Counter;
use abi::event::Cause;
use abi::limits::MAX_CREDITS;
use abi::request::place;
use abi::status::Status;

use super::{Delivery, Envelope, Neighbours, slot_offset};
use crate::breaks::Break;
use crate::matching::{Command, Operation};
use crate::output::{Output, Update};

/// A message of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Pair that it came by.
    pub pair: u16,
    /// Endpoint that it is for.
    pub endpoint: u8,
    /// Context.
    pub context: u16,
    /// Match bits.
    pub match_bits: u64,
    /// Immediate data.
    pub immediate: u64,
    /// It is to find a receive posted.
    pub ready: bool,
    /// Its bytes.
    pub payload: Vec<u8>,
}

impl Delivery {
    /// A message goes to the receive that it matches, or to a slot; or it is refused, or dropped since its pair has failed.
    pub fn arrive(&mut self, arrival: &Arrival, around: &mut impl Neighbours) {
        let sink = self.sink(arrival.pair);
        if sink.connected && sink.failed.is_none() {
            let command = Command {
                endpoint: arrival.endpoint,
                pair: arrival.pair,
                context: arrival.context,
                match_bits: arrival.match_bits,
                ..Command::new(Operation::Arrive)
            };
            let reply = self.command(&command, around);
            if reply.found {
                self.hit(arrival, reply.index, around);
            } else if arrival.ready && !self.may_be_held_back(arrival.endpoint, around) {
                around.put(update(arrival.pair, true, true));
            } else {
                self.miss(arrival, &command, around);
            }
        }
        self.wake(around);
    }

    /// A receive for a ready message may not have got here.
    fn may_be_held_back(&self, endpoint: u8, around: &mut impl Neighbours) -> bool {
        self.broken == Break::ReadyWaits
            || self.stall(endpoint).kept
            || around.list_pending(endpoint)
    }

    fn envelope(arrival: &Arrival, slot: u8) -> Envelope {
        Envelope {
            pair: arrival.pair,
            slot,
            context: arrival.context,
            match_bits: arrival.match_bits,
            immediate: arrival.immediate,
            length: arrival.payload.len() as u16,
            claim: 0,
        }
    }

    fn hit(&mut self, arrival: &Arrival, index: u16, around: &mut impl Neighbours) {
        around.put(Output::Count(Counter::Expected));
        let receive = self.receives[&index];
        let envelope = Self::envelope(arrival, 0);
        let (mut written, mut status) = self.fit(&receive, envelope.length);
        if !receive.multi {
            self.receives.remove(&index);
            self.goes();
        }
        if written > 0 && !around.allowed(&Self::access(&receive, written.into())) {
            status = Status::AccessDenied;
            written = 0;
            if let Some(sink) = self.sink_mut(arrival.pair) {
                sink.refused = sink.refused.wrapping_add(1);
            }
        }
        let bytes = &arrival.payload[..written.into()];
        if written > 0
            && around.write(receive.address, bytes).is_err()
            && self.broken != Break::MemoryErrorUntold
        {
            status = Status::MemoryError;
        }
        let rest = self.settle(&receive, written, status, around);
        if let Some(rest) = rest {
            self.receives.insert(index, rest);
        } else if receive.multi {
            let retire = Command {
                endpoint: receive.endpoint,
                request: receive.request,
                ..Command::new(Operation::Cancel)
            };
            self.command(&retire, around);
            self.receives.remove(&index);
            self.goes();
        }
        self.complete(&receive, &envelope, status, rest.is_some(), around);
        around.put(update(arrival.pair, true, false));
    }

    fn miss(&mut self, arrival: &Arrival, command: &Command, around: &mut impl Neighbours) {
        let pair = arrival.pair;
        let sink = self.sink(pair);
        let slots = u16::from(sink.granted).min(MAX_CREDITS) as u8;
        let Some(slot) = (0..slots).find(|slot| sink.used & (1 << slot) == 0) else {
            let status = Status::LinkError;
            return self.give_up(arrival, Cause::UnexpectedOverflow, status, around);
        };
        if let Some(sink) = self.sink_mut(pair) {
            sink.used |= 1 << slot;
        }
        let address = sink.slots + slot_offset(slot);
        if !arrival.payload.is_empty() && around.write(address, &arrival.payload).is_err() {
            let status = Status::MemoryError;
            return self.give_up(arrival, Cause::SlotError, status, around);
        }
        let envelope = Self::envelope(arrival, slot);
        self.messages.insert(place(pair, slot), envelope);
        let insert = Command {
            operation: Operation::Insert,
            slot,
            ..*command
        };
        self.command(&insert, around);
        around.put(Output::Count(Counter::Unexpected));
        self.stall_mut(arrival.endpoint).news = true;
        around.put(Output::Update(Update {
            pair,
            accepted: true,
            freed: false,
            refused: false,
        }));
    }

    /// The message has no place: the pair can't go on.
    fn give_up(
        &mut self,
        arrival: &Arrival,
        cause: Cause,
        status: Status,
        around: &mut impl Neighbours,
    ) {
        let (endpoint, pair) = (arrival.endpoint, arrival.pair);
        around.put(Output::Raise {
            endpoint,
            cause,
            pair,
            info: 0,
        });
        let status = status.code();
        around.put(Output::Fail { pair, status });
        // What else it sends is dropped from now on.
        if let Some(sink) = self.sink_mut(pair) {
            sink.failed = Some(status);
        }
    }
}

/// A message needs no storage: it has been delivered, or refused.
fn update(pair: u16, accepted: bool, refused: bool) -> Output {
    Output::Update(Update {
        pair,
        accepted,
        freed: true,
        refused,
    })
}
