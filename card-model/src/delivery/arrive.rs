//! A message has arrived.

use abi::control::{Counter, PairCounter, RIGHT_LOCAL_WRITE, RIGHT_REMOTE_WRITE};
use abi::event::Cause;
use abi::limits::MAX_CREDITS;
use abi::request::{Segment, slot_number};
use abi::status::Status;

use super::rules::Tag;
use super::{Delivery, Envelope, Neighbours, of_pair, slot_offset};
use crate::breaks::Break;
use crate::link::Asked;
use crate::matching::{Command, Operation};
use crate::output::{Answered, Output, Update};
use crate::regions::{Access, RemoteAccess};
use crate::sends::Awaited;

/// A message of a peer, a put, a get, or the answer of a get.
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
    /// It is a put: `match_bits` is the key, `immediate` the offset.
    pub put: bool,
    /// It is this get, and not a message.
    pub asks: Option<Asked>,
    /// It is no request, but the answer of this get.
    pub answers: Option<Awaited>,
    /// Its bytes.
    pub payload: Vec<u8>,
}

impl Arrival {
    /// Whether it is a message, which looks for a receive.
    pub fn is_message(&self) -> bool {
        !self.put && self.asks.is_none() && self.answers.is_none()
    }
}

impl Delivery {
    /// Whether a message of this pair is dropped: the pair has failed, or isn't connected.
    pub fn drops(&self, pair: u16) -> bool {
        let sink = self.sink(pair);
        !sink.connected || sink.failed.is_some()
    }

    /// Whether a message of this pair has been lost, so that none behind it is accepted.
    pub fn is_behind_a_lost_one(&self, pair: u16) -> bool {
        self.sink(pair).losing
    }

    /// Whether a message falls under a rule. Nothing else falls under one.
    pub fn is_revoked(&self, arrival: &Arrival) -> bool {
        if !arrival.is_message() {
            return false;
        }
        let tag = Tag {
            endpoint: arrival.endpoint,
            pair: Some(arrival.pair),
            context: arrival.context,
            match_bits: arrival.match_bits,
            ignore_bits: 0,
        };
        self.rules.cover(&tag, self.broken) && self.broken != Break::RuledMatches
    }

    /// A message goes to the receive that it matches, or to a slot; or it is refused, or dropped since its pair has failed or a rule revokes it.
    ///
    /// # Panics
    /// If the gates have chosen a slot that isn't vacant.
    pub fn arrive(&mut self, arrival: &Arrival, around: &mut impl Neighbours) {
        let sink = self.sink(arrival.pair);
        if self.drops(arrival.pair) {
            // It comes too late.
        } else if self.is_revoked(arrival) {
            around.put(Output::CountOfPair {
                pair: arrival.pair,
                counter: PairCounter::RuleDrops,
            });
            let update = Update {
                pair: arrival.pair,
                accepted: true,
                freed: self.broken != Break::RuledKeepsCredit,
                refused: false,
            };
            self.accept(update, around);
        } else if let Some(awaited) = &arrival.answers {
            self.answer(arrival, awaited, around);
        } else if let Some(asked) = arrival.asks {
            // In the order of the pair's requests it is a put of no byte. It is answered when all before it is written.
            if !asked.again {
                self.accept(update(arrival.pair, false), around);
            }
            if !sink.losing {
                around.put(Output::Asked(asked));
            }
        } else if arrival.put {
            self.put(arrival, around);
        } else {
            let refusable = arrival.ready && !self.may_be_held_back(arrival.endpoint, around);
            let slots = u16::from(sink.granted).min(MAX_CREDITS) as u8;
            let slot = (0..slots).find(|slot| sink.used & (1 << slot) == 0);
            let slot = slot.map(|lowest| around.slot(arrival.pair, lowest));
            assert!(
                slot.is_none_or(|slot| slot < slots && sink.used & (1 << slot) == 0),
                "slot {slot:?} of pair {} isn't vacant",
                arrival.pair
            );
            let command = Command {
                endpoint: arrival.endpoint,
                pair: arrival.pair,
                context: arrival.context,
                match_bits: arrival.match_bits,
                append: slot.is_some() && !refusable,
                slot: slot.unwrap_or(0),
                ..Command::new(Operation::Arrive)
            };
            let reply = self.command(&command, around);
            match slot {
                _ if reply.found => self.hit(arrival, reply.index, around),
                _ if refusable => self.accept(update(arrival.pair, true), around),
                Some(slot) => self.miss(arrival, slot, around),
                None => {
                    let status = Status::LinkError;
                    self.give_up(arrival.pair, Cause::UnexpectedOverflow, status, around);
                }
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
            lost: false,
        }
    }

    fn hit(&mut self, arrival: &Arrival, index: u16, around: &mut impl Neighbours) {
        around.put(Output::Count(Counter::Expected));
        let receive = self.receives[&index];
        let envelope = Self::envelope(arrival, 0);
        let (fits, mut status) = self.fit(&receive, envelope.length);
        let mut written = fits;
        if !receive.multi {
            self.receives.remove(&index);
            self.goes();
        }
        if written > 0 && !around.allowed(&Self::access(&receive, written.into())) {
            status = Status::AccessDenied;
            written = 0;
            self.count_refusal(arrival.pair);
        }
        let bytes = &arrival.payload[..written.into()];
        if written > 0
            && around.write(receive.address, bytes).is_err()
            && self.broken != Break::MemoryErrorUntold
        {
            status = Status::MemoryError;
        }
        if self.sink(arrival.pair).losing {
            status = Status::MemoryError;
        }
        let rest = self.settle(&receive, fits, status, around);
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
        self.accept(update(arrival.pair, false), around);
    }

    /// A put goes to the memory that its key opens, or is refused. So is one whose memory answers with an error: its sender is told the same.
    fn put(&mut self, arrival: &Arrival, around: &mut impl Neighbours) {
        let pair = arrival.pair;
        let length = arrival.payload.len() as u64;
        let access = RemoteAccess {
            pair,
            key: arrival.match_bits,
            rights: RIGHT_REMOTE_WRITE,
            offset: match self.broken {
                Break::PutOffsetIgnored => 0,
                _ => arrival.immediate,
            },
            length,
        };
        let address = match length {
            0 => Some(0),
            _ => around.allowed_remote(&access),
        };
        let written = match address {
            Some(address) => length == 0 || around.write(address, &arrival.payload).is_ok(),
            None => {
                self.count_refusal(pair);
                false
            }
        };
        let told = !written && self.broken != Break::PutRefusalUntold;
        self.accept(update(pair, told), around);
    }

    /// The answer of a get goes to the buffer of the get, and says what that ends with.
    fn answer(&mut self, arrival: &Arrival, awaited: &Awaited, around: &mut impl Neighbours) {
        let pair = arrival.pair;
        let length = arrival.payload.len() as u64;
        let Segment { key, address, .. } = awaited.buffer;
        let access = Access {
            domain: awaited.domain,
            key,
            rights: RIGHT_LOCAL_WRITE,
            address,
            length,
        };
        let status = if awaited.refused {
            Status::RemoteAccess
        } else if length == 0 {
            Status::Success
        } else if !around.allowed(&access) {
            self.count_refusal(pair);
            Status::AccessDenied
        } else if around.write(address, &arrival.payload).is_err() {
            Status::MemoryError
        } else {
            Status::Success
        };
        around.put(Output::Answered(Answered {
            pair,
            number: awaited.number,
            status,
        }));
    }

    /// It waits from now on, and goes to its slot.
    fn miss(&mut self, arrival: &Arrival, slot: u8, around: &mut impl Neighbours) {
        let pair = arrival.pair;
        let place = slot_number(pair, slot);
        self.messages.insert(place, Self::envelope(arrival, slot));
        around.put(Output::Count(Counter::Unexpected));
        self.stall_mut(arrival.endpoint).news = true;
        let mut address = slot_offset(slot);
        if let Some(sink) = self.sink_mut(pair) {
            sink.used |= 1 << slot;
            address += sink.slots;
        }
        let written = arrival.payload.is_empty() || around.write(address, &arrival.payload).is_ok();
        if written && !self.sink(pair).losing {
            return around.put(Output::Update(Update {
                pair,
                accepted: true,
                freed: false,
                refused: false,
            }));
        }
        self.messages.entry(place).and_modify(|m| m.lost = true);
        if let Some(sink) = self.sink_mut(pair) {
            sink.losing = true;
        }
        if !around.slot_fails_later() {
            self.slot_fails(pair, slot, around);
        }
    }

    /// Its peer is told of a message, unless one in front of it is lost.
    fn accept(&self, update: Update, around: &mut impl Neighbours) {
        if !self.sink(update.pair).losing {
            around.put(Output::Update(update));
        }
    }

    /// The slot of a message couldn't be written: it isn't there any more, and its pair fails. Whoever has found it before looks again, by
    /// [`Delivery::look_again`].
    pub fn slot_fails(&mut self, pair: u16, slot: u8, around: &mut impl Neighbours) {
        let endpoint = self.sink(pair).endpoint;
        let command = Command {
            slot,
            ..of_pair(Operation::Remove, endpoint, pair)
        };
        self.command(&command, around);
        self.messages.remove(&slot_number(pair, slot));
        self.give_up(pair, Cause::SlotError, Status::MemoryError, around);
    }

    /// The message has no place: the pair can't go on. It ends so once.
    fn give_up(&mut self, pair: u16, cause: Cause, status: Status, around: &mut impl Neighbours) {
        if self.sink(pair).given_up {
            return;
        }
        around.put(Output::Raise {
            endpoint: self.sink(pair).endpoint,
            cause,
            pair,
            info: 0,
        });
        let status = status.code();
        around.put(Output::Fail { pair, status });
        // What else it sends is dropped from now on.
        if let Some(sink) = self.sink_mut(pair) {
            sink.failed = Some(status);
            sink.given_up = true;
        }
    }
}

/// A message is accepted and needs no storage: it has been delivered, or refused.
fn update(pair: u16, refused: bool) -> Update {
    Update {
        pair,
        accepted: true,
        freed: true,
        refused,
    }
}
