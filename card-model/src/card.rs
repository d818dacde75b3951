//! A card: the rooms, and what goes between them.
//!
//! ```text
//!  doorbells ─► Endpoints ─ Send ──► Sends ── Transmit ──► frame out ─┐
//!                   │                  ▲ progress                     │ to its own address
//!                   │ List             │                              ▼
//!                   └────► Delivery ◄─ Arrive ─ arrivals ◄─ Receive ─ frame in
//!                             │ updates                       │ faults
//!                             └────────► Acknowledge ─ Control ─► frame out
//! ```
//!
//! The card does one [`Action`] at a time, to its end; a [`Schedule`] chooses which. Between two actions everything is as the gates might have
//! it when nothing is under way. What the gates decide by their time alone is asked of [`Timing`].

use std::collections::VecDeque;

use abi::control::{
    Counter, PairCounter, RIGHT_LOCAL_READ, RIGHT_LOCAL_WRITE, RIGHT_REMOTE_READ, RefusalReason,
};
use abi::event::{Cause, INFO_CLOSED_BIT, PeerRefusal, Refusal};
use abi::opcode::{OpcodeRow, WorkRing, decode_list, decode_send, is_second_of};
use abi::register::FIRST_ENDPOINT_INTERRUPT;
use abi::request::{FLAG_GATHER, ListRequest, Segment, SendRequest, SendSegments};
use abi::status::Status;
use abi::wire::{FrameHeader, FrameType};

use crate::breaks::Break;
use crate::counters::Counters;
use crate::delivery::{Arrival, Delivery, Neighbours};
use crate::endpoints::{Endpoints, Raised};
use crate::grants::Refused;
use crate::link::{Acknowledge, Asked, Receive, SinkNumbers, Transmit, screen_for, seal};
use crate::matching::{Command, Lists, Reply, Sizes};
use crate::memory::{BusError, HostMemory};
use crate::output::{Answered, Output, Reason, Update};
use crate::peer_refusals::PeerRefusals;
use crate::regions::{Access, Regions, RemoteAccess};
use crate::schedule::{Action, Schedule};
use crate::sends::{Job, Posted, Progress, Segments, Sends, SourceNumbers};
use crate::shut_out::ShutOuts;

/// The failure of a pair that is carried out.
#[derive(Clone, Debug)]
pub(crate) struct Failing {
    pair: u16,
    status: u8,
    endpoint: u8,
    /// Delivery has heard of it.
    told: bool,
}

/// Sizes of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardSizes {
    /// Those of its lists; endpoints and pairs among them.
    pub lists: Sizes,
    /// Regions.
    pub regions: usize,
    /// What it has beyond what every card has: [`abi::capability`].
    pub capabilities: u32,
    /// Descriptors of sends.
    pub descriptors: usize,
    /// Rules.
    pub rules: usize,
    /// Grants to peers.
    pub grants: usize,
}

/// What the gates decide by their time. A card by itself decides as one that has all the time that it needs.
pub trait Timing {
    /// The reply of the lists to a command.
    fn reply(&mut self, lists: &Lists, command: &Command) -> Reply {
        lists.decide(command)
    }

    /// Whether a receive for a ready message may still be in the list ring, which has entries if `pending`.
    fn list_pending(&mut self, endpoint: u8, pending: bool) -> bool {
        let _ = endpoint;
        pending
    }

    /// Whether a completion can be reserved for the multi-receive `request`, which is to stay; one is free if `free`.
    fn completion_free(&mut self, endpoint: u8, request: u32, free: bool) -> bool {
        let _ = (endpoint, request);
        free
    }

    /// The slot for a message of a pair, of which this is the lowest vacant one.
    fn slot(&mut self, pair: u16, lowest: u8) -> u8 {
        let _ = pair;
        lowest
    }

    /// Whether a pair goes back when its peer says that a request is missing. Otherwise [`Card::send_again`] says what is sent again.
    fn goes_back(&self) -> bool {
        true
    }

    /// Whether [`Card::slot_fails`] says when a message is removed whose slot couldn't be written. Otherwise it is at once.
    fn slot_fails_later(&self) -> bool {
        false
    }

    /// Whether a send of a pair that has failed waits on until a cancel ends it, as the pair's sends don't know of the failure yet: the receives of the pair end
    /// before them. Those that end with the failure need no time to wait in.
    fn is_unaware(&self, endpoint: u8, request: &SendRequest) -> bool {
        let _ = (endpoint, request);
        false
    }

    /// Whether a send is refused with `QueueFull` although its pair has room for so many by now: a send of it had not ended yet when this one was taken.
    fn is_full(&self, endpoint: u8, request: &SendRequest, room: usize) -> bool {
        let _ = (endpoint, request, room);
        false
    }

    /// Looks at what follows from an action, in order.
    fn seen(&mut self, output: &Output) {
        let _ = output;
    }
}

/// That of a card by itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Untimed;

impl Timing for Untimed {}

/// Running numbers of a pair, as the monitor pins show them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credits {
    /// Of its sends.
    pub source: SourceNumbers,
    /// Of its peer's.
    pub sink: SinkNumbers,
}

/// A card.
#[derive(Clone, Debug)]
pub struct Card<M, T = Untimed> {
    /// The host's memory.
    pub memory: M,
    /// What decides by time.
    pub timing: T,
    pub(crate) sizes: CardSizes,
    pub(crate) endpoints: Endpoints,
    pub(crate) counters: Counters,
    pub(crate) regions: Regions,
    pub(crate) shut_outs: ShutOuts,
    pub(crate) peer_refusals: PeerRefusals,
    pub(crate) sends: Sends,
    pub(crate) delivery: Delivery,
    pub(crate) receive: Receive,
    pub(crate) transmit: Transmit,
    pub(crate) acknowledge: Acknowledge,
    /// Endpoint of each pair that may still fail.
    pub(crate) sound: Vec<Option<u8>>,
    /// Requests to fail a pair.
    pub(crate) faults: VecDeque<(u16, u8)>,
    /// The failure that is carried out.
    pub(crate) failing: Option<Failing>,
    /// Messages that have been looked at.
    pub(crate) arrivals: VecDeque<Arrival>,
    /// Gets of peers that are to be answered.
    pub(crate) asked: VecDeque<Asked>,
    /// Answers that are in their buffers, or won't be.
    pub(crate) answered: VecDeque<Answered>,
    /// What Delivery has told of envelopes.
    pub(crate) updates: VecDeque<Update>,
    inbox: VecDeque<Vec<u8>>,
    /// Frames of the card to itself.
    own: VecDeque<Vec<u8>>,
    outbox: VecDeque<Vec<u8>>,
    firmware_inbox: VecDeque<Vec<u8>>,
    pub(crate) now: u64,
    pub(crate) broken: Break,
}

impl<M: HostMemory> Card<M> {
    /// A card out of reset.
    pub fn new(sizes: CardSizes, memory: M) -> Self {
        Self::with_timing(sizes, memory, Untimed)
    }
}

impl<M: HostMemory, T: Timing> Card<M, T> {
    /// A card out of reset that is told what the gates decide by their time.
    pub fn with_timing(sizes: CardSizes, memory: M, timing: T) -> Self {
        let CardSizes {
            lists,
            regions,
            capabilities,
            grants,
            ..
        } = sizes;
        Self {
            memory,
            timing,
            sizes,
            endpoints: Endpoints::new(lists.endpoints, capabilities),
            counters: Counters::default(),
            regions: Regions::with_grants(regions, grants, lists.pairs),
            shut_outs: ShutOuts::new(lists.pairs),
            peer_refusals: PeerRefusals::new(lists.pairs),
            sends: Sends::new(lists.pairs),
            delivery: Delivery::new(lists, sizes.rules),
            receive: Receive::new(lists.pairs),
            transmit: Transmit::new(lists.pairs),
            acknowledge: Acknowledge::new(lists.pairs),
            sound: vec![None; lists.pairs],
            faults: VecDeque::new(),
            failing: None,
            arrivals: VecDeque::new(),
            asked: VecDeque::new(),
            answered: VecDeque::new(),
            updates: VecDeque::new(),
            inbox: VecDeque::new(),
            own: VecDeque::new(),
            outbox: VecDeque::new(),
            firmware_inbox: VecDeque::new(),
            now: 0,
            broken: Break::None,
        }
    }

    /// Breaks the card on purpose.
    pub fn break_on_purpose(&mut self, broken: Break) {
        self.broken = broken;
        self.delivery.break_on_purpose(broken);
        self.sends.break_on_purpose(broken);
        self.endpoints.broken = broken;
        self.regions.break_on_purpose(broken);
        self.receive.break_on_purpose(broken);
        self.acknowledge.break_on_purpose(broken);
    }

    /// Resets the gates: every table is cleared, counters and what waits for the firmware too, and what was under way is forgotten. Memory and
    /// frames that have left stay.
    pub fn reset(&mut self) {
        let CardSizes {
            lists,
            regions,
            capabilities,
            grants,
            ..
        } = self.sizes;
        self.endpoints = Endpoints::new(lists.endpoints, capabilities);
        self.regions = Regions::with_grants(regions, grants, lists.pairs);
        self.regions.grants.advance_to(self.now);
        self.shut_outs = ShutOuts::new(lists.pairs);
        self.peer_refusals = PeerRefusals::new(lists.pairs);
        self.sends = Sends::new(lists.pairs);
        self.delivery = Delivery::new(lists, self.sizes.rules);
        self.receive = Receive::new(lists.pairs);
        self.transmit = Transmit::new(lists.pairs);
        self.acknowledge = Acknowledge::new(lists.pairs);
        self.sound = vec![None; lists.pairs];
        self.faults.clear();
        self.failing = None;
        self.arrivals.clear();
        self.asked.clear();
        self.answered.clear();
        self.updates.clear();
        self.inbox.clear();
        self.own.clear();
        self.firmware_inbox.clear();
        self.counters = Counters::default();
        self.break_on_purpose(self.broken);
    }

    // What the host and the firmware see.

    /// Sizes of the card.
    pub fn sizes(&self) -> CardSizes {
        self.sizes
    }

    /// Reads a register of an endpoint's doorbell page.
    pub fn read_register(&self, endpoint: u8, offset: u32) -> u32 {
        self.endpoints.read(endpoint, offset)
    }

    /// Writes a register of an endpoint's doorbell page.
    pub fn write_register(&mut self, endpoint: u8, offset: u32, value: u32) {
        let (memory, counters) = (&mut self.memory, &mut self.counters);
        self.endpoints
            .write(memory, counters, endpoint, offset, value);
    }

    /// Interrupt lines.
    pub fn interrupts(&self) -> u32 {
        self.endpoints.interrupts() << FIRST_ENDPOINT_INTERRUPT
    }

    /// How often something has happened.
    pub fn counter(&self, counter: Counter) -> u32 {
        self.counters.read(counter)
    }

    /// The numbers of a pair.
    pub fn credits(&self, pair: u16) -> Credits {
        Credits {
            source: self.sends.numbers(pair),
            sink: self.acknowledge.numbers(pair),
        }
    }

    /// The room that matches.
    pub fn delivery(&self) -> &Delivery {
        &self.delivery
    }

    /// The room that sends.
    pub fn sends(&self) -> &Sends {
        &self.sends
    }

    /// Endpoints that have been set and not cleared.
    pub fn open_endpoints(&self) -> usize {
        self.endpoints.open()
    }

    /// Whether an endpoint has been set and not cleared.
    pub fn is_endpoint_open(&self, endpoint: u8) -> bool {
        self.endpoints.is_open(endpoint)
    }

    /// Takes the events that the gates have raised for the firmware.
    pub fn take_raised(&mut self) -> Vec<Raised> {
        std::mem::take(&mut self.endpoints.raised)
    }

    /// Takes what the firmware is to be told of accesses that were refused.
    pub fn take_refusal(&mut self) -> Option<Refusal> {
        self.regions.take_refusal()
    }

    /// Card address of an access of a pair's peer, if it is allowed `now`; nothing but the time of the grants is changed.
    ///
    /// # Errors
    /// Why it isn't.
    pub fn find_remote(&mut self, access: &RemoteAccess, now: u64) -> Result<u64, Refused> {
        self.regions.grants.advance_to(now);
        self.regions.find_remote(access)
    }

    /// Where an access of a peer goes, if it is allowed: a grant for one access has ended then.
    pub fn allow_remote(&mut self, access: &RemoteAccess, now: u64) -> Option<u64> {
        self.regions.grants.advance_to(now);
        self.regions.allowed_remote(access)
    }

    // Frames and time.

    /// A frame has come from the wire.
    pub fn frame_in(&mut self, frame: Vec<u8>) {
        self.inbox.push_back(frame);
    }

    /// The next frame that goes out to the wire.
    pub fn frame_out(&mut self) -> Option<Vec<u8>> {
        self.outbox.pop_front()
    }

    /// The next frame for the firmware, header and payload.
    pub fn firmware_frame_in(&mut self) -> Option<Vec<u8>> {
        self.firmware_inbox.pop_front()
    }

    /// Sends a frame of the firmware.
    pub fn firmware_frame_out(&mut self, header: &FrameHeader, payload: &[u8]) {
        self.send_frame(header.destination_mac, seal(header, payload));
    }

    /// Lets time pass: a pair whose peer has been silent for too long by `now` gives its last send again, or fails. What was refused to a peer is told, if it is time.
    pub fn advance_to(&mut self, now: u64) {
        self.now = now;
        self.regions.grants.advance_to(now);
        let outputs = self.sends.scan(now);
        self.put_all(outputs);
        self.tell_refusals();
    }

    /// Raises the event of a peer's refused accesses that is due.
    fn tell_refusals(&mut self) {
        let due = self.peer_refusals.take(self.now);
        if let Some(told) = due {
            let [info, detail] = told.refusal.to_words();
            let (cause, pair) = (Cause::PeerRefused, told.pair);
            self.endpoints
                .raise_with(&mut self.memory, told.endpoint, cause, pair, info, detail);
        }
    }

    /// Messages that have been looked at, and not delivered.
    pub fn arrivals(&self) -> impl Iterator<Item = &Arrival> {
        self.arrivals.iter()
    }

    /// Frames of the card to itself that it hasn't looked at.
    pub fn own_frames(&self) -> impl Iterator<Item = &[u8]> {
        self.own.iter().map(Vec::as_slice)
    }

    /// Updates of envelopes that frames don't tell of yet.
    pub fn updates(&self) -> impl Iterator<Item = &Update> {
        self.updates.iter()
    }

    /// The control frame that a pair owes.
    pub fn control_due(&self, pair: u16) -> Option<FrameType> {
        self.acknowledge.due(pair).map(|owed| owed.frame_type)
    }

    /// Whether the numbers of a pair have changed since a frame carried them.
    pub fn has_news(&self, pair: u16) -> bool {
        self.acknowledge.has_news(pair)
    }

    /// A pair owes a control frame, though nothing has moved on.
    pub fn mark(&mut self, pair: u16) {
        self.acknowledge.mark(pair, Reason::Answer);
    }

    /// A pair asks its peer, as it does when it has waited for credit for its time-out.
    pub fn ask(&mut self, pair: u16) {
        self.acknowledge.mark(pair, Reason::Ask);
    }

    /// A message's frame goes out again that the transmitter had when it was acknowledged: it carries the numbers of its pair.
    pub fn goes_late(&mut self, pair: u16) {
        self.counters.count_of_pair(pair, PairCounter::Repeats);
        self.counters.count(Counter::FramesSent);
        self.carries(pair);
    }

    /// A message's frame, which was given when it had its turn, goes out now: it carries the numbers of its pair.
    pub fn carries(&mut self, pair: u16) {
        self.acknowledge.carried(pair);
    }

    /// The cycle that time has got to.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// When time alone will make something happen.
    pub fn next_time(&self) -> Option<u64> {
        let scan = self.sends.next_scan();
        scan.into_iter().chain(self.peer_refusals.next_time()).min()
    }

    fn send_frame(&mut self, destination: u64, frame: Vec<u8>) {
        self.counters.count(Counter::FramesSent);
        match destination == self.transmit.mac {
            true => self.own.push_back(frame),
            false => self.outbox.push_back(frame),
        }
    }

    // What it does.

    /// What it can do.
    pub fn actions(&self) -> Vec<Action> {
        let mut all = Vec::new();
        let mut add = |action, can| all.extend(Some(action).filter(|_| can));
        add(Action::Receive, !self.inbox.is_empty());
        add(Action::Arrive, !self.arrivals.is_empty());
        add(Action::ReceiveOwn, !self.own.is_empty());
        add(Action::Respond, !self.asked.is_empty());
        add(Action::Answered, !self.answered.is_empty());
        for (at, &(pair, status)) in self.faults.iter().enumerate() {
            let first = !self.faults.range(..at).any(|&f| f == (pair, status));
            add(
                Action::Fault { pair, status },
                first && self.failing.is_none(),
            );
        }
        add(Action::Flush, self.failing.is_some());
        for (at, update) in self.updates.iter().enumerate() {
            let Update { pair, accepted, .. } = *update;
            let mut before = self.updates.range(..at).filter(|other| other.pair == pair);
            let first = !before.any(|other| other.accepted || !accepted);
            add(Action::Update { pair, accepted }, first);
        }
        for endpoint in 0..self.endpoints.count() {
            let can = |ring| self.endpoints.can_fetch(endpoint, ring);
            add(Action::List(endpoint), can(WorkRing::List));
            add(Action::Send(endpoint), can(WorkRing::Send));
        }
        for pair in 0..self.sizes.lists.pairs as u16 {
            add(Action::Transmit(pair), self.sends.has_turn(pair));
            add(Action::Control(pair), self.acknowledge.due(pair).is_some());
        }
        all
    }

    /// Does one thing. What can't be done does nothing.
    pub fn step(&mut self, action: Action) {
        match action {
            Action::Receive => {
                if let Some(frame) = self.inbox.pop_front() {
                    self.look_at_frame(&frame);
                }
            }
            Action::ReceiveOwn => {
                if let Some(frame) = self.own.pop_front() {
                    self.look_at_frame(&frame);
                }
            }
            Action::Arrive => {
                let arrival = self.arrivals.pop_front();
                if let Some(arrival) = arrival.filter(|arrival| self.is_wanted(arrival)) {
                    self.deliver(|delivery, around| delivery.arrive(&arrival, around));
                    self.tell_refusals();
                }
            }
            Action::Respond => {
                if let Some(asked) = self.asked.pop_front() {
                    self.respond(&asked);
                }
            }
            Action::Answered => {
                if let Some(answered) = self.answered.pop_front() {
                    let outputs = self.sends.answered(&answered, self.now);
                    self.put_all(outputs);
                }
            }
            Action::Fault { pair, status } => {
                let asked = self.faults.iter().position(|&f| f == (pair, status));
                if let (Some(at), None) = (asked, &self.failing) {
                    self.faults.remove(at);
                    self.fail_pair(pair, status);
                }
            }
            Action::Flush => self.flush(),
            Action::Update { pair, accepted } => {
                let mut all = self.updates.iter();
                let next = all.position(|next| (next.pair, next.accepted) == (pair, accepted));
                if let Some(update) = next.and_then(|at| self.updates.remove(at)) {
                    self.acknowledge.update(&update);
                }
            }
            Action::List(endpoint) => self.list(endpoint),
            Action::Send(endpoint) => self.send(endpoint),
            Action::Transmit(pair) => self.transmit(pair),
            Action::Control(pair) => {
                if let Some(owed) = self.acknowledge.offer(pair) {
                    self.acknowledge.carried(pair);
                    let numbers = self.acknowledge.numbers(pair);
                    let frame = self.transmit.control(pair, &owed, numbers);
                    self.send_to_peer(frame);
                }
            }
        }
    }

    /// Goes on until there is nothing left to do, and returns how many things were done.
    pub fn run(&mut self, schedule: &mut impl Schedule) -> usize {
        self.run_those(|_| true, schedule)
    }

    /// Goes on until there is nothing left of what is wanted, and returns how many things were done.
    pub fn run_those(
        &mut self,
        wanted: impl Fn(&Action) -> bool,
        schedule: &mut impl Schedule,
    ) -> usize {
        let mut done = 0;
        loop {
            let mut actions = self.actions();
            actions.retain(&wanted);
            if actions.is_empty() {
                return done;
            }
            self.step(actions[schedule.pick(&actions)]);
            done += 1;
        }
    }

    fn send_to_peer(&mut self, frame: Option<Vec<u8>>) {
        if let Some(frame) = frame {
            let header = FrameHeader::parse(&frame).expect("it has a header");
            self.send_frame(header.destination_mac, frame);
        }
    }

    fn look_at_frame(&mut self, frame: &[u8]) {
        let screened = match screen_for(frame, self.broken, self.sizes.capabilities) {
            Ok(screened) => screened,
            Err(counter) => return self.counters.count(counter),
        };
        if let FrameType::Handshake | FrameType::Management = screened.frame_type {
            if self.firmware_inbox.len() >= abi::mgmt::FRAMES_IN {
                return self.counters.count(Counter::FirmwareFramesDropped);
            }
            self.counters.count(Counter::FramesReceived);
            let end = frame.len() - abi::wire::TRAILER_BYTES;
            self.firmware_inbox.push_back(frame[..end].to_vec());
            return;
        }
        let mut judged = self.receive.judge(&screened);
        let named = screened.header.destination_pair;
        if screened.is_response() && judged.progress.is_some() {
            let (number, refused) = (screened.header.sequence, screened.header.flags != 0);
            let bytes = (!refused).then_some(screened.payload.len());
            let awaited = self.sends.take_answer(named, number, bytes);
            judged.arrival = awaited.map(|awaited| Arrival {
                answers: Some(awaited),
                ..screened.arrival(0, None)
            });
            if judged.arrival.is_none() {
                judged.counter = PairCounter::Duplicates;
            }
        }
        self.counters.count_of_pair(named, judged.counter);
        if let Some(progress) = judged.progress {
            let gap = progress.gap && self.timing.goes_back();
            let progress = Progress { gap, ..progress };
            let outputs = self.sends.progress(&progress, self.now);
            self.put_all(outputs);
        }
        self.arrivals.extend(judged.arrival);
        let pair = screened.header.destination_pair;
        self.faults
            .extend(judged.fails.map(|status| (pair, status)));
    }

    /// The next thing that a failure of a pair needs, if there is one.
    pub(crate) fn next_fault(&self) -> Option<Action> {
        let asked = self.faults.front();
        let asked = asked.map(|&(pair, status)| Action::Fault { pair, status });
        self.failing.as_ref().map(|_| Action::Flush).or(asked)
    }

    /// Fails a pair once: it sends and receives nothing more. Delivery hears of it by [`flush`](Self::flush).
    pub(crate) fn fail_pair(&mut self, pair: u16, status: u8) {
        let sound = self.sound.get_mut(usize::from(pair));
        let Some(endpoint) = sound.and_then(Option::take) else {
            return;
        };
        let timing = &self.timing;
        let unaware = |endpoint, request: &SendRequest| timing.is_unaware(endpoint, request);
        let outputs = self.sends.fail(pair, status, unaware);
        self.put_all(outputs);
        self.receive.fail(pair);
        self.regions.grants.close(pair);
        self.acknowledge.fail(pair, status);
        self.failing = Some(Failing {
            pair,
            status,
            endpoint,
            told: false,
        });
    }

    /// Delivery hears of the failure that is carried out, and ends the pair's receives with each further call; then the endpoint gets the event.
    pub(crate) fn flush(&mut self) {
        let Some(Failing {
            pair,
            status,
            endpoint,
            told,
        }) = &mut self.failing
        else {
            return;
        };
        let (pair, status, endpoint) = (*pair, *status, *endpoint);
        match std::mem::replace(told, true) {
            false => self.deliver(|delivery, around| delivery.pair_fails(pair, status, around)),
            true => self.deliver(|delivery, around| delivery.walk_step(around)),
        }
        if self.delivery.walks() {
            return;
        }
        self.failing = None;
        // The firmware knows of those that it asked for, and a slot that couldn't be written was told as such.
        let told = [Status::Flushed, Status::PeerClosed, Status::MemoryError].map(Status::code);
        if !told.contains(&status) {
            let (cause, closed) = match status == Status::PeerFailed.code() {
                true => (Cause::PeerFailed, self.receive.is_closed(pair)),
                false => (Cause::LinkError, false),
            };
            let info = u64::from(status) | u64::from(closed) << INFO_CLOSED_BIT;
            self.put(Output::Raise {
                endpoint,
                cause,
                pair,
                info,
            });
        }
    }

    fn list(&mut self, endpoint: u8) {
        let words = self
            .endpoints
            .fetch(&mut self.memory, endpoint, WorkRing::List);
        let Some(request) = words.map(|words| ListRequest::from_words(&words)) else {
            return;
        };
        let domain = self.endpoints.domain(endpoint);
        match decode_list(&request, self.sizes.capabilities) {
            Ok(row) => self.deliver(|delivery, around| {
                delivery.list(endpoint, domain, row, &request, around);
            }),
            Err(kind) => self.malformed(endpoint, request.request, request.pair, kind.code()),
        }
    }

    fn send(&mut self, endpoint: u8) {
        let words = self
            .endpoints
            .fetch(&mut self.memory, endpoint, WorkRing::Send);
        let Some(request) = words.map(|words| SendRequest::from_words(&words)) else {
            return;
        };
        let SendRequest { flags, pair, .. } = request;
        let capabilities = self.sizes.capabilities;
        let decoded = decode_send(&request, capabilities);
        let row = OpcodeRow::find(WorkRing::Send, request.opcode);
        let second = row.map_or(0, |row| row.second_flag & row.flags_with(capabilities));
        let segments = match flags & second {
            0 => Ok(Segments::default()),
            _ => self.second_entry(endpoint, &request),
        };
        let outputs = match (decoded, segments) {
            (Err(kind), _) => return self.malformed(endpoint, request.request, pair, kind.code()),
            (Ok(row), Err(Status::InvalidRequest)) => {
                let kind = row.kind.code();
                return self.malformed(endpoint, request.request, pair, kind);
            }
            (Ok(_), Err(status)) => vec![self.sends.refuse_request(endpoint, &request, status)],
            (Ok(row), Ok(segments)) => {
                let posted = Posted { request, segments };
                let room = self.sends.room(pair);
                if room > 0 && self.timing.is_full(endpoint, &request, room) {
                    vec![
                        self.sends
                            .refuse_request(endpoint, &request, Status::QueueFull),
                    ]
                } else if self.timing.is_unaware(endpoint, &request) {
                    self.sends.keep(endpoint, row, posted)
                } else {
                    self.sends.take(endpoint, row, posted)
                }
            }
        };
        self.put_all(outputs);
    }

    /// Takes the second entry of a gather: its segments, or what the request ends with.
    fn second_entry(&mut self, endpoint: u8, request: &SendRequest) -> Result<Segments, Status> {
        let looked = self.endpoints.look_behind(&mut self.memory, endpoint);
        let entry = looked.map_err(|BusError| Status::MemoryError)?;
        let entry = entry.map(|words| SendSegments::from_words(&words));
        // Another request, or none, stays where it is.
        let row = |entry: &SendSegments| OpcodeRow::find(WorkRing::Send, entry.opcode);
        let entry = entry.filter(|entry| row(entry).is_some_and(|row| row.is_second));
        let entry = entry.ok_or(Status::InvalidRequest)?;
        self.endpoints.skip(endpoint);
        let good = is_second_of(request, &entry);
        good.then(|| entry.segments()).ok_or(Status::InvalidRequest)
    }

    fn malformed(&mut self, endpoint: u8, request: u32, pair: u16, kind: u8) {
        self.put(Output::Count(Counter::InvalidRequests));
        let entry = abi::completion::Completion {
            request,
            pair,
            status: Status::InvalidRequest.code(),
            kind,
            ..Default::default()
        };
        self.put(Output::Complete { endpoint, entry });
    }

    /// Whether what has been looked at is to be delivered: the answer of a get that has ended with its pair isn't, since its buffer is the host's again.
    fn is_wanted(&self, arrival: &Arrival) -> bool {
        let answers = arrival.answers.as_ref();
        answers.is_none_or(|awaited| self.sends.takes_answer(arrival.pair, awaited.number))
    }

    /// Answers a get of a peer: with the bytes, or as refused if its peer may not read them or the memory answers with an error. A pair that has failed says nothing more.
    fn respond(&mut self, asked: &Asked) {
        let Asked {
            pair,
            key,
            offset,
            length,
            ..
        } = *asked;
        let access = RemoteAccess {
            pair,
            key,
            rights: match self.broken {
                Break::GetNeedsNoRight => 0,
                _ => RIGHT_REMOTE_READ,
            },
            offset: match self.broken {
                Break::GetOffsetIgnored => 0,
                _ => offset,
            },
            length: length.into(),
        };
        let mut bytes = vec![0; length.into()];
        let address = match length {
            0 => Some(0),
            _ => self.deliver(|_, around| around.allowed_remote(&access)),
        };
        self.tell_refusals();
        if address.is_none() {
            self.delivery.count_refusal(pair);
        }
        let read = address
            .is_some_and(|address| length == 0 || self.memory.read(address, &mut bytes).is_ok());
        if !self.acknowledge.is_sound(pair) {
            return;
        }
        let payload = match (read, self.broken) {
            (true, _) => Some(&bytes[..]),
            (false, Break::GetRefusalUntold) => Some(&bytes[..]),
            (false, _) => None,
        };
        let numbers = self.acknowledge.numbers(pair);
        let frame = self.transmit.answer(asked, payload, numbers);
        self.acknowledge.carried(pair);
        self.send_to_peer(frame);
    }

    fn transmit(&mut self, pair: u16) {
        if let Some(job) = self.sends.turn(pair) {
            self.transmit_job(&job);
        }
    }

    /// Sends this one of a pair's unacknowledged sends again, and no other. Whether there is such a one.
    pub fn send_again(&mut self, pair: u16, sequence: u32) -> bool {
        let job = self.sends.again(pair, sequence);
        if let Some(job) = &job {
            self.transmit_job(job);
        }
        job.is_some()
    }

    fn transmit_job(&mut self, job: &Job) {
        let pair = job.pair;
        if job.again {
            self.counters.count_of_pair(pair, PairCounter::Repeats);
        }
        let payload = match self.gather(job) {
            Ok(payload) => payload,
            Err(status) => {
                let outputs = self.sends.refuse(job, status);
                return self.put_all(outputs);
            }
        };
        let ended = self.sends.sent(job, self.now);
        self.put_all(ended);
        let numbers = self.acknowledge.numbers(pair);
        let frame =
            self.transmit
                .request(pair, job.sequence, &job.posted.request, &payload, numbers);
        self.acknowledge.carried(pair);
        self.send_to_peer(frame);
    }

    /// A send's payload: what it carries itself, or its buffer, of which every segment is checked, whether or not one before it was refused.
    fn gather(&mut self, job: &Job) -> Result<Vec<u8>, Status> {
        let request = &job.posted.request;
        if job.posted.is_get() {
            return self.look_at_buffer(job);
        }
        if request.is_inline() {
            let mut payload = request.inline_bytes()[..request.length as usize].to_vec();
            if self.broken == Break::InlineReversed {
                payload.reverse();
            }
            return Ok(payload);
        }
        let all = || job.posted.all().filter(|segment| segment.length > 0);
        let mut allowed = |segment: Segment| {
            self.regions.ask(&Access {
                domain: job.domain,
                key: segment.key,
                rights: RIGHT_LOCAL_READ,
                address: segment.address,
                length: segment.length,
            })
        };
        let refused = all().filter(|segment| !allowed(*segment)).count();
        if refused > 0 {
            return Err(Status::LocalProtection);
        }
        let mut payload = Vec::new();
        for segment in all() {
            let from = payload.len();
            payload.resize(from + segment.length as usize, 0);
            let read = self.memory.read(segment.address, &mut payload[from..]);
            read.map_err(|BusError| Status::MemoryError)?;
        }
        if self.broken == Break::SegmentsSwapped && job.posted.request.flags & FLAG_GATHER != 0 {
            payload.reverse();
        }
        Ok(payload)
    }

    /// Looks whether the answer of a get may be written to its buffer. The get itself has no payload.
    fn look_at_buffer(&mut self, job: &Job) -> Result<Vec<u8>, Status> {
        let Segment {
            key,
            address,
            length,
        } = job.posted.request.segment();
        let allowed = length == 0
            || self.regions.ask(&Access {
                domain: job.domain,
                key,
                rights: RIGHT_LOCAL_WRITE,
                address,
                length,
            });
        allowed.then(Vec::new).ok_or(Status::LocalProtection)
    }

    /// Lets Delivery do something, and passes on what follows.
    pub(crate) fn deliver<R>(
        &mut self,
        act: impl FnOnce(&mut Delivery, &mut Around<'_, M, T>) -> R,
    ) -> R {
        let mut around = Around {
            memory: &mut self.memory,
            timing: &mut self.timing,
            regions: &mut self.regions,
            shut_outs: &mut self.shut_outs,
            peer_refusals: &mut self.peer_refusals,
            now: self.now,
            endpoints: &mut self.endpoints,
            counters: &mut self.counters,
            acknowledge: &mut self.acknowledge,
            updates: &mut self.updates,
            asked: &mut self.asked,
            answered: &mut self.answered,
            faults: &mut self.faults,
        };
        act(&mut self.delivery, &mut around)
    }

    /// The message in this slot, which couldn't be written, is removed, and its pair fails.
    pub fn slot_fails(&mut self, pair: u16, slot: u8) {
        self.deliver(|delivery, around| delivery.slot_fails(pair, slot, around));
    }

    /// The request that has found such a message looks again, if there is one.
    pub fn look_again(&mut self) {
        self.deliver(|delivery, around| delivery.look_again(around));
    }

    pub(crate) fn put_all(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            self.put(output);
        }
    }

    fn put(&mut self, output: Output) {
        self.deliver(|_, around| around.put(output));
    }
}

/// The card around Delivery.
pub(crate) struct Around<'a, M, T> {
    memory: &'a mut M,
    timing: &'a mut T,
    regions: &'a mut Regions,
    shut_outs: &'a mut ShutOuts,
    peer_refusals: &'a mut PeerRefusals,
    now: u64,
    endpoints: &'a mut Endpoints,
    counters: &'a mut Counters,
    acknowledge: &'a mut Acknowledge,
    updates: &'a mut VecDeque<Update>,
    asked: &'a mut VecDeque<Asked>,
    answered: &'a mut VecDeque<Answered>,
    faults: &'a mut VecDeque<(u16, u8)>,
}

impl<M: HostMemory, T: Timing> Neighbours for Around<'_, M, T> {
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), BusError> {
        self.memory.read(address, bytes)
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), BusError> {
        self.memory.write(address, bytes)
    }

    fn allowed(&mut self, access: &Access) -> bool {
        self.regions.ask(access)
    }

    fn allowed_remote(&mut self, access: &RemoteAccess) -> Option<u64> {
        let (pair, now) = (access.pair, self.now);
        let refusal = match self.shut_outs.denies(pair, now) {
            true => PeerRefusal {
                region: 0,
                offset: access.offset,
                reason: RefusalReason::ShutOut,
                count: 1,
            },
            false => {
                let Some(refusal) = self.regions.peer_refusal(access) else {
                    return self.regions.allowed_remote(access);
                };
                self.shut_outs.refused(pair, now);
                refusal
            }
        };
        let counter = PairCounter::of_refusals(refusal.reason);
        self.counters.count_of_pair(pair, counter);
        self.peer_refusals.refused(pair, refusal);
        None
    }

    fn slot(&mut self, pair: u16, lowest: u8) -> u8 {
        self.timing.slot(pair, lowest)
    }

    fn slot_fails_later(&self) -> bool {
        self.timing.slot_fails_later()
    }

    fn completion_free(&mut self, endpoint: u8, request: u32) -> bool {
        let free = self.endpoints.completion_free(endpoint);
        self.timing.completion_free(endpoint, request, free)
    }

    fn list_pending(&mut self, endpoint: u8) -> bool {
        let pending = self.endpoints.pending(endpoint, WorkRing::List);
        self.timing.list_pending(endpoint, pending)
    }

    fn reply(&mut self, lists: &Lists, command: &Command) -> Reply {
        self.timing.reply(lists, command)
    }

    fn put(&mut self, output: Output) {
        self.timing.seen(&output);
        match output {
            Output::Complete { endpoint, entry } => {
                self.endpoints
                    .complete(self.memory, self.counters, endpoint, entry);
            }
            Output::Reserve { endpoint } => self.endpoints.reserve(endpoint),
            Output::Release { endpoint } => self.endpoints.release(endpoint),
            Output::Update(update) => self.updates.push_back(update),
            Output::Asked(asked) => self.asked.push_back(asked),
            Output::Answered(answered) => self.answered.push_back(answered),
            Output::Raise {
                endpoint,
                cause,
                pair,
                info,
            } => self
                .endpoints
                .raise(self.memory, endpoint, cause, pair, info),
            Output::Fail { pair, status } => self.faults.push_back((pair, status)),
            Output::Mark { pair, reason } => self.acknowledge.mark(pair, reason),
            Output::Count(counter) => self.counters.count(counter),
            Output::CountOfPair { pair, counter } => self.counters.count_of_pair(pair, counter),
        }
    }
}
