//! Brings arriving messages and posted receives together, and the payload to its place. One thing at a time, to its end.
//!
//! ```text
//!  arrival ──► arrive ──┐               ┌──► completions, updates, events, faults
//!  request ──► list ────┼──► Delivery ──┤
//!  fault, control ──────┘   pairs, slots└──► commands to the lists, accesses to memory
//!                           claims, stalls
//! ```
//!
//! What isn't Delivery's it asks of its [`Neighbours`], in the order in which the gates do: so a test can hold the accesses and outputs of the
//! gates to those of this room alone, and a card puts its own memory and queues there.

mod arrive;
mod claims;
mod flush;
mod list;
mod rules;
mod stall;

use std::collections::HashMap;

use abi::completion::{COMPLETION_MORE, Completion, CompletionKind};
use abi::control::{RIGHT_LOCAL_WRITE, RuleSetup};
use abi::limits::EAGER_MAX;
use abi::request::{FLAG_MULTI, ListRequest, claim_handle};
use abi::status::Status;

use crate::breaks::Break;
use crate::matching::{Command, Lists, Operation, Reply, Sizes};
use crate::memory::BusError;
use crate::output::{Output, Update};
use crate::regions::{Access, RemoteAccess};
pub use rules::{Rules, Tag};
use stall::Stall;

pub use arrive::Arrival;

/// What Delivery asks of the rest of the card.
pub trait Neighbours {
    /// Reads from host memory.
    ///
    /// # Errors
    /// If the host's memory answers so.
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), BusError>;

    /// Writes to host memory.
    ///
    /// # Errors
    /// If the host's memory answers so.
    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), BusError>;

    /// Whether an access is allowed.
    fn allowed(&mut self, access: &Access) -> bool;

    /// Card address that an access of a peer may begin at; none if it isn't allowed.
    fn allowed_remote(&mut self, access: &RemoteAccess) -> Option<u64>;

    /// Whether one more completion can be reserved for an endpoint, for its multi-receive `request`.
    fn completion_free(&mut self, endpoint: u8, request: u32) -> bool;

    /// Whether the list ring of an endpoint has an entry that Delivery hasn't been given.
    fn list_pending(&mut self, endpoint: u8) -> bool;

    /// The slot for a message of a pair, of which this is the lowest vacant one: a card by itself takes that. The gates look for it a few cycles
    /// before the message enters, and may find it where a slot that is vacant by then was still in use.
    fn slot(&mut self, pair: u16, lowest: u8) -> u8 {
        let _ = pair;
        lowest
    }

    /// Whether [`Delivery::slot_fails`] is called when a slot couldn't be written, and not at once.
    fn slot_fails_later(&self) -> bool {
        false
    }

    /// The reply of the lists to a command: what they decide, unless the gates have decided it.
    fn reply(&mut self, lists: &Lists, command: &Command) -> Reply {
        lists.decide(command)
    }

    /// Takes what follows.
    fn put(&mut self, output: Output);
}

/// A pair, from the side that receives.
#[derive(Clone, Copy, Debug, Default)]
struct Sink {
    connected: bool,
    failed: Option<u8>,
    endpoint: u8,
    /// Slots.
    granted: u8,
    slots: u64,
    /// A bit for each slot that holds a message.
    used: u64,
    /// A message is lost: none behind it is accepted.
    losing: bool,
    /// Its failure was asked for here.
    given_up: bool,
    /// Accesses of the peer that a region refused.
    refused: u32,
}

/// A receive and its buffer.
#[derive(Clone, Copy, Debug)]
struct Receive {
    endpoint: u8,
    domain: u8,
    request: u32,
    key: u32,
    address: u64,
    /// Bytes left of the buffer. A receive holds at most so many.
    length: u32,
    multi: bool,
    min_free: u32,
    /// Bytes of a multi-receive's buffer that are used.
    offset: u32,
    /// Number of a multi-receive's next completion, from 1 on and modulo 2³¹; 0 of any other.
    count: u32,
}

impl Receive {
    fn of(endpoint: u8, domain: u8, request: &ListRequest) -> Self {
        Self {
            endpoint,
            domain,
            request: request.request,
            key: request.key,
            address: request.address,
            length: u32::try_from(request.length).unwrap_or(u32::MAX),
            multi: request.flags & FLAG_MULTI != 0,
            min_free: request.min_free,
            offset: 0,
            count: (request.flags & FLAG_MULTI != 0).into(),
        }
    }

    /// Its last completion.
    fn completion(&self, kind: CompletionKind, status: u8) -> Completion {
        Completion {
            request: self.request,
            status,
            kind: kind.code(),
            offset: self.offset,
            count: self.count,
            ..Completion::default()
        }
    }
}

/// The envelope of a message that rests in a slot.
#[derive(Clone, Copy, Debug)]
struct Envelope {
    pair: u16,
    slot: u8,
    context: u16,
    match_bits: u64,
    immediate: u64,
    length: u16,
    /// Number of the claim that has taken it; 0 if none has.
    claim: u16,
    /// Its slot couldn't be written, and it is still to be removed.
    lost: bool,
}

impl Envelope {
    fn fill(&self, entry: Completion) -> Completion {
        Completion {
            match_bits: self.match_bits,
            immediate: self.immediate,
            length: self.length.into(),
            pair: self.pair,
            context: self.context,
            ..entry
        }
    }
}

/// The room.
#[derive(Clone, Debug)]
pub struct Delivery {
    lists: Lists,
    pairs: Vec<Sink>,
    /// Posted receives, by their place in the lists.
    receives: HashMap<u16, Receive>,
    /// Messages in slots, by their place.
    messages: HashMap<u16, Envelope>,
    stalls: Vec<Stall>,
    rules: Rules,
    /// Receives and messages that end one after the other.
    walk: Option<flush::Walk>,
    /// A request that has found a message which isn't anywhere.
    again: Option<list::Request>,
    /// Posted receives that have gone, by 16.
    gone: u8,
    /// Number of the next claim, never 0.
    claims: u16,
    broken: Break,
}

impl Delivery {
    /// Empty lists, no pair, and room for so many rules.
    pub fn new(sizes: Sizes, rules: usize) -> Self {
        Self {
            lists: Lists::new(sizes),
            pairs: vec![Sink::default(); sizes.pairs],
            receives: HashMap::new(),
            messages: HashMap::new(),
            stalls: vec![Stall::default(); sizes.endpoints],
            rules: Rules::new(rules),
            walk: None,
            again: None,
            gone: 0,
            claims: 1,
            broken: Break::None,
        }
    }

    /// Breaks the room on purpose.
    pub fn break_on_purpose(&mut self, broken: Break) {
        self.broken = broken;
    }

    /// A rule holds from now on, or the rule of a row does no more.
    pub fn rule_set(&mut self, row: u16, rule: Option<RuleSetup>) {
        self.rules.set(row, rule, self.broken);
    }

    /// What is posted and what waits.
    pub fn lists(&self) -> &Lists {
        &self.lists
    }

    /// An access of a pair's peer was refused.
    pub fn count_refusal(&mut self, pair: u16) {
        if let Some(sink) = self.sink_mut(pair) {
            sink.refused = sink.refused.wrapping_add(1);
        }
    }

    /// Accesses of a pair's peer that a region refused.
    pub fn refused(&self, pair: u16) -> u32 {
        self.sink(pair).refused
    }

    /// Slots of a pair that hold a message.
    pub fn slots_used(&self, pair: u16) -> u32 {
        self.sink(pair).used.count_ones()
    }

    /// Whether a slot of a pair holds a message.
    pub fn slot_used(&self, pair: u16, slot: u8) -> bool {
        self.sink(pair).used & (1 << slot) != 0
    }

    /// Endpoint and handle of each claimed message, in the order of the handles.
    pub fn claims(&self) -> Vec<(u8, u32)> {
        let claimed = self
            .messages
            .iter()
            .filter(|(_, message)| message.claim != 0);
        let named = claimed.map(|(&place, message)| {
            let endpoint = self.sink(message.pair).endpoint;
            (endpoint, claim_handle(message.claim, place))
        });
        let mut claims: Vec<_> = named.collect();
        claims.sort_by_key(|&(_, handle)| handle);
        claims
    }

    /// Whether the host of an endpoint may keep receives back.
    pub fn keeps(&self, endpoint: u8) -> bool {
        self.stall(endpoint).kept
    }

    /// Whether requests of an endpoint are refused as `Behind` without a look: somebody in front has to look first.
    pub fn looks_at_nothing(&self, endpoint: u8) -> bool {
        let stall = self.stall(endpoint);
        stall.stalled && stall.news
    }

    /// Whether a request has found a message whose slot couldn't be written, and is to look again.
    pub fn looks_again(&self) -> bool {
        self.again.is_some()
    }

    /// Handle of the receive of an endpoint that waits for room.
    pub fn waits(&self, endpoint: u8) -> Option<u32> {
        self.stall(endpoint).waiting()
    }

    fn sink(&self, pair: u16) -> Sink {
        let sink = self.pairs.get(usize::from(pair)).copied();
        sink.unwrap_or_default()
    }

    fn sink_mut(&mut self, pair: u16) -> Option<&mut Sink> {
        self.pairs.get_mut(usize::from(pair))
    }

    fn stall(&self, endpoint: u8) -> &Stall {
        &self.stalls[usize::from(endpoint)]
    }

    fn stall_mut(&mut self, endpoint: u8) -> &mut Stall {
        &mut self.stalls[usize::from(endpoint)]
    }

    /// Gives a command to the lists, which act on it as they or the gates reply.
    ///
    /// # Panics
    /// If the gates have replied what they may not.
    fn command(&mut self, command: &Command, around: &mut impl Neighbours) -> Reply {
        let reply = around.reply(&self.lists, command);
        if let Err(expected) = self.lists.act(command, reply) {
            panic!("{command:x?} {expected}; the reply is {reply:x?}");
        }
        reply
    }

    /// One thing has been done: receives that wait for room are told if they may try again. A request that is to look again isn't done.
    fn wake(&mut self, around: &mut impl Neighbours) {
        if self.again.is_some() {
            return;
        }
        for endpoint in 0..self.stalls.len() as u8 {
            if let Some(waiting) = self.stall_mut(endpoint).wakes() {
                self.ends(&waiting, Status::ListFull.code(), around);
            }
        }
    }

    /// A receive ends without a message.
    fn ends(&mut self, receive: &Receive, status: u8, around: &mut impl Neighbours) {
        let entry = receive.completion(CompletionKind::Receive, status);
        let endpoint = receive.endpoint;
        around.put(Output::Complete { endpoint, entry });
    }

    /// A posted receive has gone: every sixteenth time there may be room for those that wait.
    fn goes(&mut self) {
        self.gone = (self.gone + 1) % 16;
        if self.gone == 0 {
            self.stalls.iter_mut().for_each(Stall::has_room);
        }
    }

    /// How much of a message the buffer takes, and what its receive completes with if nothing goes wrong.
    fn fit(&self, receive: &Receive, length: u16) -> (u16, Status) {
        match u16::try_from(receive.length) {
            Ok(room) if room < length && self.broken == Break::TruncationUntold => {
                (room, Status::Success)
            }
            Ok(room) if room < length => (room, Status::Truncated),
            _ => (length, Status::Success),
        }
    }

    /// What is left of a multi-receive that stays behind a message, for which a completion is reserved. A message that couldn't be written, or may not be, has
    /// used as much of it as any other.
    fn settle(
        &self,
        receive: &Receive,
        used: u16,
        status: Status,
        around: &mut impl Neighbours,
    ) -> Option<Receive> {
        let length = receive.length - u32::from(used);
        let goes_on = self.broken != Break::MultiEndsByError || status == Status::Success;
        let stays = receive.multi && goes_on && length >= receive.min_free.max(1);
        let endpoint = receive.endpoint;
        if !stays || !around.completion_free(endpoint, receive.request) {
            return None;
        }
        around.put(Output::Reserve { endpoint });
        let behind = match self.broken {
            Break::MultiStartsAgain => 0,
            _ => u64::from(used),
        };
        Some(Receive {
            address: receive.address.wrapping_add(behind),
            length,
            offset: match self.broken {
                Break::MultiOffsetStays => receive.offset,
                _ => receive.offset + u32::from(used),
            },
            count: (receive.count + 1) % (1 << 31),
            ..*receive
        })
    }

    fn complete(
        &self,
        receive: &Receive,
        envelope: &Envelope,
        status: Status,
        stays: bool,
        around: &mut impl Neighbours,
    ) {
        let entry = receive.completion(CompletionKind::Receive, status.code());
        let (flags, count) = match (stays, self.broken) {
            (true, _) => (COMPLETION_MORE, 0),
            (false, Break::MultiCountShort) => (0, entry.count.saturating_sub(1)),
            (false, _) => (0, entry.count),
        };
        let entry = envelope.fill(Completion {
            flags,
            count,
            ..entry
        });
        let endpoint = receive.endpoint;
        around.put(Output::Complete { endpoint, entry });
        if self.broken == Break::CompletesTwice && around.completion_free(endpoint, receive.request)
        {
            around.put(Output::Reserve { endpoint });
            around.put(Output::Complete { endpoint, entry });
        }
    }

    /// Copies a message from its slot to the buffer of a receive. Returns what is left of a multi-receive that stays.
    fn copy(
        &mut self,
        place: u16,
        receive: &Receive,
        around: &mut impl Neighbours,
    ) -> Option<Receive> {
        let envelope = self.messages.remove(&place).expect("the lists hold it");
        let (written, mut status) = self.fit(receive, envelope.length);
        if written > 0 {
            let from = self.sink(envelope.pair).slots + slot_offset(envelope.slot);
            let mut bytes = vec![0; written.into()];
            let moved = around
                .read(from, &mut bytes)
                .and_then(|()| around.write(receive.address, &bytes));
            if moved.is_err() && self.broken != Break::MemoryErrorUntold {
                status = Status::MemoryError;
            }
        }
        let rest = self.settle(receive, written, status, around);
        self.complete(receive, &envelope, status, rest.is_some(), around);
        self.vacate(&envelope, true, around);
        rest
    }

    /// The slot of a message is vacant, and its envelope is free.
    fn vacate(&mut self, envelope: &Envelope, freed: bool, around: &mut impl Neighbours) {
        let stays = self.broken == Break::SlotStaysTaken;
        if let Some(sink) = self.sink_mut(envelope.pair)
            && !stays
        {
            sink.used &= !(1 << envelope.slot);
        }
        around.put(Output::Update(Update {
            pair: envelope.pair,
            accepted: false,
            freed,
            refused: false,
        }));
    }

    /// What a receive asks of the regions for `length` bytes of its buffer.
    fn access(receive: &Receive, length: u64) -> Access {
        Access {
            domain: receive.domain,
            key: receive.key,
            rights: RIGHT_LOCAL_WRITE,
            address: receive.address,
            length,
        }
    }
}

/// Where a slot begins, from the first of its pair.
fn slot_offset(slot: u8) -> u64 {
    u64::from(slot) * EAGER_MAX as u64
}

/// A command that names a pair of an endpoint.
fn of_pair(operation: Operation, endpoint: u8, pair: u16) -> Command {
    Command {
        endpoint,
        pair,
        ..Command::new(operation)
    }
}
