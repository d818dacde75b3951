//! The model does what the gates did, in their order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::{AddAssign, Range, RangeInclusive};

use abi::completion::{COMPLETION_MORE, Completion, CompletionKind};
use abi::control::{
    CardSetup, Counter, EndpointSetup, Operation, PairSetup, RING_COMPLETION, RING_EVENT,
    RING_LIST, RING_SEND, RegionSetup, RingSetup, RuleSetup, key_index, key_tag, ring_index,
};
use abi::event::{Cause, EVENT_BYTES};
use abi::opcode::{WorkRing, decode_list};
use abi::register::{
    COMPLETION_HEAD, COMPLETION_TAIL, EVENT_TAIL, LIST_HEAD, LIST_TAIL, SEND_HEAD, SEND_TAIL,
};
use abi::request::{ListRequest, Opcode, REQUEST_BYTES, SendRequest, claim_slot, pair_and_slot};
use abi::ring::{QueueEntry, entry_address};
use abi::status::Status;
use abi::wire::{FRAME_GAP, FrameHeader, FrameType, HEADER_BYTES, TRAILER_BYTES};
use card_model::link::screen;
use card_model::matching::{Command, Lists, Operation as Match, Reply};
use card_model::memory::{HostMemory, Pieces};
use card_model::sends::SourceNumbers;
use card_model::{Action, Break, Card, CardSizes, Output, Reason, Timing, Update};

use super::Event;
use super::memory::{Reads, Weak};
use hdl::config::JOBS;

/// Cycles from the first in which a frame shows on the pins until an update that came before it began has been counted, at most.
const COUNTED_CYCLES: u64 = 6;
/// Cycles that a frame waits at most, with its numbers looked up, while one of the card to itself goes: that waits for a frame from the wire, as long as there are.
const OWN_FRAME_CYCLES: u64 = 200;
/// Cycles from the one in which a doorbell is written to the first in which Delivery sees that the list ring has an entry: through the registers,
/// the doorbell's register, the ring's tail, and the register behind `lists_pending`.
const DOORBELL_CYCLES: u64 = 4;
/// Cycles from the one in which Delivery takes a message, and looks whether its receive may be on its way, until its command enters the lists, at most
/// if nothing holds it up.
const ENTER_CYCLES: u64 = 4;
/// Cycles from the one in which a pair has failed, as its frames or its first receive say, until its sends have: each receive of it ends before, and all endpoints'
/// commands go on between them.
const AWARE_CYCLES: u64 = 4000;
/// Cycles from the one in which the model gives a reserved completion back until the gates have, at most: the model may have looked at the frame that ended a
/// send as soon as that had come, and the gates some 200 cycles later, or more where a pair fails.
const RELEASE_CYCLES: u64 = 1000;
/// Cycles from the one in which the doorbell of a gather's second entry is written until the entry is joined with the first, at most. Until then
/// the gates may keep a completion free for it too: an entry that is read ahead isn't known to be a second.
const JOINED_CYCLES: u64 = 1000;
/// log2 of the entries of the model's completion queues, at an address where nothing else is: they are consumed when they are written, so that
/// the model never waits for its host.
const COMPLETIONS_LOG2: u8 = 13;

/// How a send ends whose pair has failed.
const FAILURES: [Status; 2] = [Status::LinkError, Status::MemoryError];
/// How a send ends whose payload couldn't be read.
const UNREAD: [Status; 2] = [Status::LocalProtection, Status::MemoryError];
/// How a send ends that was refused when it was taken, and got no descriptor.
const REFUSED: [Status; 4] = [
    Status::QueueFull,
    Status::InvalidRequest,
    Status::InvalidPair,
    Status::TooLong,
];

/// An endpoint as its host has opened it.
#[derive(Clone, Debug)]
pub struct Opened {
    /// Number.
    pub endpoint: u8,
    /// The endpoint on whose queue it completes: itself, or another one of its domain.
    pub completion_owner: u8,
    /// Epoch.
    pub epoch: u16,
    /// Addresses of its rings: sends, lists, completions, events. Where no queue of completions is there is no memory either.
    pub rings: [u64; 4],
    /// log2 of the entries of each.
    pub log2: [u8; 4],
    /// Its regions: key, address, length. Of the second the memory is gone.
    pub regions: [(u32, u64, u64); 2],
}

/// A request that the host has posted, and what it wrote to its buffers before.
#[derive(Clone, Debug)]
pub struct Post {
    /// Endpoint.
    pub endpoint: u8,
    /// Ring.
    pub ring: WorkRing,
    /// The entry.
    pub words: [u64; REQUEST_BYTES / 8],
    /// Address and bytes of what it sends.
    pub fill: Option<(u64, Vec<u8>)>,
}

/// All that a host did and saw of its card.
#[derive(Clone, Debug)]
pub struct Story {
    /// Sizes of the card.
    pub sizes: CardSizes,
    /// Its Ethernet address.
    pub mac: u64,
    /// Its endpoints.
    pub endpoints: Vec<Opened>,
    /// Its pairs, by number.
    pub pairs: Vec<(u16, PairSetup)>,
    /// Rules that were set before everything, and whether each held then.
    pub rules: Vec<(RuleSetup, bool)>,
    /// Mapped memory: address and what was there in the end.
    pub memory: Vec<(u64, Vec<u8>)>,
    /// Addresses of it that may have answered with errors.
    pub fragile: Vec<Range<u64>>,
    /// What it posted, in order.
    pub posts: Vec<Post>,
    /// Completions, by endpoint, in order, with the cycle in which the host saw each.
    pub completions: Vec<Vec<(u64, Completion)>>,
    /// Events, by endpoint, in order, without their phase.
    pub events: Vec<Vec<abi::event::Event>>,
    /// Cycles between which everything happened.
    pub cycles: (u64, u64),
    /// How far the counters went.
    pub counters: Vec<(Counter, u64)>,
}

/// What was held to the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// Requests that were posted, each of which has ended. The second entry of a gather is none.
    pub operations: usize,
    /// Commands to the lists.
    pub commands: usize,
    /// Completions.
    pub completions: usize,
    /// Frames out, each byte of each.
    pub frames: usize,
    /// Moves of envelopes.
    pub updates: usize,
    /// Ready messages, and of them those that the gates might have queued or refused.
    pub ready: (usize, usize),
    /// Multi-receives that could have stayed, and of them those for which a completion may or may not have been free.
    pub stays: (usize, usize),
    /// Messages that a rule revoked.
    pub revoked: usize,
    /// Pairs that failed.
    pub failed: usize,
    /// Messages that were with the transmitter when their cancels were too late.
    pub early: usize,
    /// Messages that were sent again though they were acknowledged: the transmitter had them before that.
    pub late: usize,
    /// Accesses that the memory answered with an error.
    pub errors: usize,
    /// Messages that were sent again, and frames that said that a message was missing.
    pub again: (usize, usize),
    /// Frames that asked for credit.
    pub asks: usize,
    /// Frames of the card to itself.
    pub own: usize,
    /// Frames whose numbers had changed while they waited behind such a frame.
    pub waited: usize,
    /// Bytes of memory.
    pub bytes: usize,
}

impl AddAssign for Compared {
    fn add_assign(&mut self, other: Self) {
        let add = |a: (usize, usize), b: (usize, usize)| (a.0 + b.0, a.1 + b.1);
        *self = Self {
            operations: self.operations + other.operations,
            early: self.early + other.early,
            late: self.late + other.late,
            errors: self.errors + other.errors,
            commands: self.commands + other.commands,
            completions: self.completions + other.completions,
            frames: self.frames + other.frames,
            updates: self.updates + other.updates,
            ready: add(self.ready, other.ready),
            stays: add(self.stays, other.stays),
            revoked: self.revoked + other.revoked,
            failed: self.failed + other.failed,
            again: add(self.again, other.again),
            asks: self.asks + other.asks,
            own: self.own + other.own,
            waited: self.waited + other.waited,
            bytes: self.bytes + other.bytes,
        };
    }
}

/// Entries of a ring or a queue that were known by a cycle: cycle of a doorbell, and the index that it says, without wrapping.
type Indices = Vec<(u64, u64)>;

/// The index that was known by a cycle.
fn index_at(indices: &Indices, cycle: u64) -> u64 {
    let known = indices.partition_point(|&(rung, _)| rung <= cycle);
    known.checked_sub(1).map_or(0, |last| indices[last].1)
}

/// The cycle by which a doorbell must have been written for Delivery to have seen its entries when it took the message whose command entered the
/// lists in this one.
fn known_to_delivery(entered: u64) -> u64 {
    entered.saturating_sub(ENTER_CYCLES + DOORBELL_CYCLES)
}

/// The doorbells of an endpoint at one register.
fn indices(events: &[(u64, Event)], number: usize, register: u32) -> Indices {
    let mut index = 0_u64;
    let rung = events.iter().filter_map(|(cycle, event)| match event {
        Event::Doorbell {
            endpoint,
            offset,
            value,
        } if usize::from(*endpoint) == number && *offset == register => Some((*cycle, *value)),
        _ => None,
    });
    rung.map(|(cycle, value)| {
        index += u64::from((value as u16).wrapping_sub(index as u16));
        (cycle, index)
    })
    .collect()
}

/// When the doorbell of each message was rung: by its endpoint and its immediate data, which are random.
fn messages_rung(story: &Story, events: &[(u64, Event)]) -> BTreeMap<(u16, u64), u64> {
    let mut rung = BTreeMap::new();
    for opened in &story.endpoints {
        let endpoint = opened.endpoint;
        let tails = indices(events, endpoint.into(), SEND_TAIL);
        let posts = posted(story, endpoint.into(), WorkRing::Send);
        for (index, post) in posts.enumerate() {
            let by = tails.partition_point(|&(_, tail)| tail <= index as u64);
            let send = SendRequest::from_words(&post.words);
            if let Some(&(cycle, _)) = tails.get(by)
                && send.opcode == Opcode::TaggedSend.code()
            {
                rung.insert((endpoint.into(), send.immediate), cycle);
            }
        }
    }
    rung
}

/// What was posted to a ring of an endpoint, in order.
fn posted(story: &Story, endpoint: usize, ring: WorkRing) -> impl Iterator<Item = &Post> {
    let posts = story.posts.iter();
    posts.filter(move |post| usize::from(post.endpoint) == endpoint && post.ring == ring)
}

/// Second entries of gathers, by the entries that were rung. They are no requests, so that no completion is kept free for one that is joined with its first.
fn seconds(rung: &Indices, posts: &[&Post]) -> Indices {
    let mut seconds = 0;
    let mut before = vec![0];
    for post in posts {
        let opcode = SendRequest::from_words(&post.words).opcode;
        seconds += u64::from(opcode == Opcode::Segments.code());
        before.push(seconds);
    }
    let seconds = |&(cycle, index)| (cycle, before[index as usize]);
    rung.iter().map(seconds).collect()
}

/// What the host of an endpoint rang and saw.
#[derive(Debug)]
struct Told {
    /// Entries of the send ring, and those of them that are seconds of gathers.
    sends: Indices,
    seconds: Indices,
    lists: Indices,
    consumed: Indices,
    /// Entries of the completion queue.
    size: u64,
    /// Cycle in which the host saw the last completion of each request.
    seen: BTreeMap<u32, u64>,
}

/// What the gates decided by their time.
#[derive(Debug)]
struct Gates {
    /// Commands that the model has not given yet: cycle, command, reply, and its cycle.
    commands: VecDeque<(u64, Command, Reply, u64)>,
    /// Commands that it has given.
    given: usize,
    /// Delivery's completions of each endpoint that the model has not made yet.
    delivered: Vec<VecDeque<Completion>>,
    /// What else completes, by endpoint and request.
    others: BTreeMap<(usize, u32), Vec<Completion>>,
    /// Completions of sends that the peers acknowledged, in order: those of an endpoint by the wire, and those of each pair of the card with itself.
    acknowledged: BTreeMap<(usize, Option<u16>), VecDeque<Completion>>,
    /// Pairs of the card with itself, with their other ends.
    own: BTreeMap<u16, u16>,
    told: Vec<Told>,
    /// The endpoint on whose queue each endpoint completes.
    owners: Vec<usize>,
    /// Cycle of what is being followed.
    now: u64,
    /// Cycles of the last command and of its reply.
    last: (u64, u64),
    /// Entries of each list ring that the model has taken.
    listed: Vec<u64>,
    /// Requests of each endpoint that were refused without a look since its last that looked: the gates may have had them before them still.
    quiet: Vec<Vec<u32>>,
    /// Malformed requests of each list ring, with their indices. Fetch lets what is behind one pass, and holds it until the completion queues take its completion: a long write of
    /// a payload holds these up.
    malformed: Vec<Vec<(u64, u32)>>,
    /// Cycle of the doorbell of each request of the send rings, by endpoint and request.
    rung: BTreeMap<(u8, u32), u64>,
    /// The last cancel of each send that has one, by endpoint and request.
    cancels: BTreeMap<(u8, u32), u32>,
    /// Cycle of the failure of each pair.
    failed: BTreeMap<u16, u64>,
    /// Cycles in which sends of each endpoint have ended, whether that completed or not, or list requests without a completion.
    ended: BTreeMap<u8, Vec<u64>>,
    /// How often each pair was to say that a message is missing.
    gaps: BTreeMap<u16, usize>,
    /// Reservations of each endpoint that ended without a completion, less those that a multi-receive made.
    released: Vec<i64>,
    /// Endpoints of those that ended lately, with the cycle: the gates may have them still.
    releasing: VecDeque<(u64, usize)>,
    completions: usize,
    ready: (usize, usize),
    stays: (usize, usize),
}

/// What a completion is compared without: where in its queue it is.
fn bare(entry: Completion) -> Completion {
    Completion { phase: 0, ..entry }
}

/// Whether a completion is one of Delivery. Handles of list requests are odd.
fn is_delivered(entry: &Completion) -> bool {
    entry.request % 2 == 1 && entry.status != Status::InvalidRequest.code()
}

fn is_acknowledged(entry: &Completion) -> bool {
    let ends = [Status::Success, Status::NotReady].map(Status::code);
    entry.kind == CompletionKind::Send.code() && ends.contains(&entry.status)
}

impl Gates {
    /// Where a completion of an acknowledged send waits.
    fn acknowledged_by(&self, endpoint: usize, entry: &Completion) -> (usize, Option<u16>) {
        let own = self.own.contains_key(&entry.pair);
        (endpoint, own.then_some(entry.pair))
    }
}

impl Gates {
    /// Whether the message of the next command isn't queued if it finds no receive.
    fn may_refuse_next(&self) -> bool {
        let next = self.commands.front();
        next.is_some_and(|(_, command, ..)| !command.append)
    }

    /// The cycle by which a doorbell must have been written for Delivery to have seen its entries when it took the message that entered the lists in this one. The message may have
    /// been taken when the command before it entered, and have waited since for the lists.
    fn known(&self, looked: u64) -> u64 {
        let (entered, replied) = self.last;
        let waited = looked <= replied + ENTER_CYCLES;
        known_to_delivery(if waited { entered.min(looked) } else { looked })
    }

    /// The next completion of a request of a list ring.
    fn next_delivered(&self, endpoint: usize, request: u32) -> Option<&Completion> {
        let mut all = self.delivered[endpoint].iter();
        all.find(|entry| entry.request == request)
    }
}

impl Timing for Gates {
    fn reply(&mut self, _: &Lists, command: &Command) -> Reply {
        let (cycle, given, reply, replied) = self.commands.pop_front().unwrap_or_else(|| {
            panic!("the model gives the lists {command:x?}, and the gates gave no more")
        });
        assert_eq!(
            command.essence(),
            given.essence(),
            "cycle {cycle}, a command"
        );
        self.given += 1;
        self.last = (cycle, replied);
        reply
    }

    /// The gates have queued the message, or refused it. It has to be queued if an entry was known to the gates when the lists replied, and
    /// mustn't be if none was.
    fn list_pending(&mut self, endpoint: u8, _: bool) -> bool {
        let next = self.commands.front();
        let (looked, command, ..) = next.expect("the message enters the lists");
        let (looked, queued) = (*looked, command.append);
        let at = usize::from(endpoint);
        let told = &self.told[at];
        let pending = index_at(&told.lists, self.known(looked)) > self.listed[at];
        let rung = index_at(&told.lists, looked) > self.listed[at];
        // The host had not seen the end of a request that looks at nothing: it may have been there still.
        let unseen = |request: &u32| told.seen.get(request).is_none_or(|&seen| seen > looked);
        let taken = |(index, _): &&(u64, u32)| *index < self.listed[at];
        let mut malformed = self.malformed[at].iter().take_while(taken);
        let may =
            self.quiet[at].iter().any(unseen) || malformed.any(|(_, request)| unseen(request));
        self.ready.0 += 1;
        self.ready.1 += usize::from(!pending && may);
        assert!(
            queued || !pending,
            "cycle {looked}: a ready message is refused, and endpoint {endpoint} has a request in its list ring"
        );
        assert!(
            !queued || rung || may,
            "cycle {looked}: a ready message is queued though nothing of endpoint {endpoint} is on its way"
        );
        queued
    }

    /// That of the next command, if its message may go to a slot.
    fn slot(&mut self, pair: u16, lowest: u8) -> u8 {
        let next = self.commands.front().map(|next| &next.1);
        let appends = next.filter(|next| next.append && next.pair == pair);
        appends.map_or(lowest, |next| next.slot)
    }

    fn slot_fails_later(&self) -> bool {
        true
    }

    /// When a pair goes back is decided by time: it has, when it sends something again.
    fn goes_back(&self) -> bool {
        false
    }

    /// The gates have cancelled it.
    fn is_unaware(&self, endpoint: u8, request: &SendRequest) -> bool {
        let Some(failed) = self.failed.get(&request.pair) else {
            return false;
        };
        let cancel = self.cancels.get(&(endpoint, request.request));
        let rung = cancel.and_then(|cancel| self.rung.get(&(endpoint, *cancel)));
        let ends = self.others.get(&(usize::from(endpoint), request.request));
        let cancelled = |entry: &Completion| entry.status == Status::Cancelled.code();
        ends.into_iter().flatten().any(cancelled)
            && rung.is_some_and(|rung| *rung < failed.saturating_add(AWARE_CYCLES))
    }

    /// The gates have refused it. As many sends of its pair may still have been there as have ended since its doorbell, or shortly before it: the gates look at a frame later than
    /// the model. Those of other pairs of the endpoint are counted with them, and its list
    /// requests that end without a completion.
    fn is_full(&self, endpoint: u8, request: &SendRequest, room: usize) -> bool {
        let ends = self.others.get(&(usize::from(endpoint), request.request));
        let refused = |entry: &Completion| entry.status == Status::QueueFull.code();
        let rung = self.rung.get(&(endpoint, request.request));
        let since = rung.map_or(u64::MAX, |rung| rung.saturating_sub(RELEASE_CYCLES));
        let ended = self.ended.get(&endpoint).map_or(&[][..], Vec::as_slice);
        let before = ended.partition_point(|&cycle| cycle < since);
        ends.into_iter().flatten().any(refused) && ended.len() - before >= room
    }

    /// A multi-receive stayed exactly if its completion says so. It has to if the queue can't have been full.
    fn completion_free(&mut self, endpoint: u8, request: u32, _: bool) -> bool {
        let at = usize::from(endpoint);
        let known = |&mut (cycle, _): &mut (u64, usize)| cycle + RELEASE_CYCLES <= self.last.0;
        while let Some((_, of)) = self.releasing.pop_front_if(known) {
            self.released[of] += 1;
        }
        let next = self.next_delivered(at, request).cloned();
        let stays = next
            .as_ref()
            .is_some_and(|entry| entry.flags & COMPLETION_MORE != 0);
        let owner = self.owners[at];
        let queue = &self.told[owner];
        let until = self.commands.front().map_or(u64::MAX, |next| next.0);
        let taken = |of: usize| {
            let told = &self.told[of];
            let fetched = index_at(&told.sends, until) + index_at(&told.lists, until);
            let joined = index_at(&told.seconds, self.last.0.saturating_sub(JOINED_CYCLES));
            (fetched - joined) as i64 - self.released[of]
        };
        let sharing = (0..self.owners.len()).filter(|of| self.owners[*of] == owner);
        let consumed = index_at(&queue.consumed, self.last.0);
        let most = sharing.map(taken).sum::<i64>() - consumed as i64;
        let full = most >= queue.size as i64;
        self.stays.0 += 1;
        self.stays.1 += usize::from(full);
        assert!(
            stays || full,
            "cycle {}: the multi-receive {request} of endpoint {endpoint} ends with {next:?}, and at most {most} completions of {} are taken",
            self.last.0,
            queue.size
        );
        stays
    }

    fn seen(&mut self, output: &Output) {
        match output {
            Output::Release { endpoint } => {
                self.releasing.push_back((self.now, usize::from(*endpoint)));
                self.ended.entry(*endpoint).or_default().push(self.now);
            }
            Output::Complete { endpoint, entry }
                if entry.kind == CompletionKind::Send.code()
                    && REFUSED.iter().all(|refused| entry.status != refused.code()) =>
            {
                self.ended.entry(*endpoint).or_default().push(self.now);
            }
            Output::Reserve { endpoint } => self.released[usize::from(*endpoint)] -= 1,
            Output::Mark {
                pair,
                reason: Reason::Gap,
            } => *self.gaps.entry(*pair).or_default() += 1,
            _ => {}
        }
        let Output::Complete { endpoint, entry } = output else {
            return;
        };
        self.completions += 1;
        let at = usize::from(*endpoint);
        let seen = if is_delivered(entry) {
            let delivered = &mut self.delivered[at];
            let same = delivered.iter().position(|e| e.request == entry.request);
            same.and_then(|same| delivered.remove(same))
        } else if is_acknowledged(entry) {
            let key = self.acknowledged_by(at, entry);
            self.acknowledged
                .get_mut(&key)
                .and_then(VecDeque::pop_front)
        } else {
            let key = (at, entry.request);
            self.others.get_mut(&key).and_then(Vec::pop)
        };
        // It names its endpoint when it is written.
        let written = Completion {
            endpoint: *endpoint,
            ..*entry
        };
        assert_eq!(
            seen,
            Some(written),
            "the completion of the gates, that of the model"
        );
    }
}

/// A frame, as far as it matters to the order of things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Glance {
    from: u16,
    to: u16,
    /// Number of the message that it brings, if it brings one.
    message: Option<u32>,
    announces: bool,
    asks: bool,
}

fn glance(frame: &[u8]) -> Glance {
    let header = FrameHeader::parse(frame).expect("a header");
    let good = screen(frame).is_ok();
    let message = good && header.frame_type == FrameType::Eager.code();
    Glance {
        from: header.source_pair,
        to: header.destination_pair,
        message: message.then_some(header.sequence),
        announces: good && header.frame_type == FrameType::PairFailed.code(),
        asks: good && header.frame_type == FrameType::Ask.code(),
    }
}

/// A frame without the numbers of the reverse direction, and what follows from them.
fn without_numbers(frame: &[u8]) -> (FrameHeader, Vec<u8>) {
    let (header, payload) = without_gap(frame);
    let header = FrameHeader {
        acknowledge: 0,
        credit: 0,
        refused: 0,
        ..header
    };
    (header, payload)
}

/// Whether a frame says that a message of its receiver is missing.
fn tells_gap(header: &FrameHeader) -> bool {
    header.frame_type != FrameType::Eager.code() && header.flags & FRAME_GAP != 0
}

/// A frame as it would be if no message were missing. Which frame says that one is depends on time.
fn without_gap(frame: &[u8]) -> (FrameHeader, Vec<u8>) {
    let mut header = FrameHeader::parse(frame).expect("a header");
    if tells_gap(&header) {
        header.flags &= !FRAME_GAP;
    }
    let payload = frame[HEADER_BYTES..frame.len() - TRAILER_BYTES].to_vec();
    (header, payload)
}

/// What a frame carries of the reverse direction: accepted, freed, refused.
type Numbers = (u32, u32, u16);

struct Follower {
    card: Card<Weak, Gates>,
    posts: Vec<[VecDeque<Post>; 2]>,
    rings: Vec<Opened>,
    tails: Vec<[u16; 2]>,
    /// Entries of the model's completion queues that have been taken.
    consumed: Vec<u16>,
    /// What has been rung of each endpoint's list ring, from its first entry on.
    listed: Vec<Vec<ListRequest>>,
    /// The same of its send ring.
    sent: Vec<Vec<SendRequest>>,
    /// Doorbells of list rings that the model has no room for yet: endpoint and tail.
    early_bells: VecDeque<(u8, u32)>,
    endpoints: BTreeMap<u16, u8>,
    /// What is in the model's inbox.
    wire: VecDeque<Glance>,
    /// Number of the next message of each pair.
    expected: BTreeMap<u16, u32>,
    /// Pairs of the messages that still come to the lists, in order, and of them those of the card to itself that haven't gone out.
    arrive: VecDeque<u16>,
    own_turns: VecDeque<u16>,
    /// Pairs that have failed, and what they sent after all: the frame had been begun.
    failed: BTreeSet<u16>,
    late: BTreeMap<u16, VecDeque<Vec<u8>>>,
    /// Messages of pairs whose turns a cancel has shown to be over, and which haven't gone out yet, and how many had then.
    early: BTreeMap<u16, VecDeque<(Vec<u8>, usize)>>,
    /// The pair that is being failed: what it did before is being caught up with.
    failing: Option<u16>,
    /// Statuses of the failures that events tell of, by endpoint and pair.
    link_errors: BTreeMap<(u8, u16), u8>,
    /// Frames of messages that have gone out, and how many had when the model heard that a message was safe, by pair and number.
    messages_out: usize,
    safe: BTreeMap<(u16, u32), usize>,
    events: VecDeque<(u64, Event)>,
    matched: usize,
    /// Cycles in which an update may have come that each pair's last frame needn't tell of though it doesn't carry it.
    framed: BTreeMap<u16, RangeInclusive<u64>>,
    /// Numbers that each pair had for its peer before each update, with the cycle of that.
    had: BTreeMap<u16, Vec<(u64, Numbers)>>,
    /// Messages of each pair, as they were when they were sent first; and how many frames of the gates, and of the model, have said that one is missing.
    sent_once: BTreeMap<(u16, u32), (FrameHeader, Vec<u8>)>,
    gaps_told: BTreeMap<u16, (usize, usize)>,
    /// Number of the next request to come in, by pair and cookie; and how many frames of each pair want an answer that it hasn't had for certain:
    /// those that ask, and repeated requests.
    requested: BTreeMap<(u16, u32), u32>,
    asked: BTreeMap<u16, u32>,
    /// Pairs that have answered such a frame before the model has looked at it.
    answered: BTreeSet<u16>,
    /// Entries that the model has written to its completion queues: owner of the queue and words, without their phase.
    written: Vec<(u8, [u64; Completion::BYTES / 8])>,
    compared: Compared,
}

/// Lets the model do what the gates did.
///
/// # Panics
/// If it comes to anything else.
pub fn follow(story: &Story, seen: &[(u64, Event)], broken: Break) -> Compared {
    let mut follower = Follower::new(story, seen, broken);
    while let Some((cycle, event)) = follower.events.pop_front() {
        follower.event(cycle, event);
    }
    follower.end(story)
}

impl Follower {
    fn new(story: &Story, seen: &[(u64, Event)], broken: Break) -> Self {
        let mut events: Vec<_> = seen
            .iter()
            .filter(|(cycle, _)| (story.cycles.0..story.cycles.1).contains(cycle))
            .cloned()
            .collect();
        let rung = messages_rung(story, &events);
        for (cycle, event) in &mut events {
            let Event::FrameOut(frame, before) = event else {
                continue;
            };
            // The numbers of a message that was posted while the wire stood still were looked up behind its doorbell.
            let header = FrameHeader::parse(frame).expect("a header");
            let bell = rung.get(&(header.source_endpoint, header.immediate));
            if let Some(bell) = bell.filter(|_| header.frame_type == FrameType::Eager.code()) {
                *before = (*before).min(cycle.saturating_sub(bell + 1));
            }
            *cycle -= *before;
        }
        events.sort_by_key(|(cycle, _)| *cycle);
        events.retain(|(_, event)| !matches!(event, Event::Access { .. }));
        let commands = events.iter().filter_map(|(cycle, event)| match event {
            Event::Matched(command, reply, replied) => Some((*cycle, *command, *reply, *replied)),
            _ => None,
        });
        let commands: VecDeque<_> = commands.collect();
        let arrives = commands.iter();
        let arrives = arrives.filter(|(_, command, ..)| command.operation == Match::Arrive);
        let arrive: VecDeque<u16> = arrives.map(|(_, command, ..)| command.pair).collect();
        let own: BTreeMap<u16, u16> = story
            .pairs
            .iter()
            .filter(|(_, setup)| setup.remote_mac == story.mac)
            .map(|(pair, setup)| (*pair, setup.remote_pair))
            .collect();
        let entries = |endpoint: usize| story.completions.get(endpoint).into_iter().flatten();
        let mut others = BTreeMap::<_, Vec<_>>::new();
        let mut acknowledged = BTreeMap::<_, VecDeque<_>>::new();
        for endpoint in 0..story.completions.len() {
            for (_, entry) in entries(endpoint) {
                if is_acknowledged(entry) {
                    let own = own.contains_key(&entry.pair).then_some(entry.pair);
                    let queue = acknowledged.entry((endpoint, own)).or_default();
                    queue.push_back(bare(*entry));
                } else if !is_delivered(entry) {
                    let key = (endpoint, entry.request);
                    others.entry(key).or_default().push(bare(*entry));
                }
            }
        }
        let delivered = |endpoint: usize| {
            let all = entries(endpoint).map(|(_, entry)| bare(*entry));
            all.filter(is_delivered).collect()
        };
        let endpoints = story.sizes.lists.endpoints;
        let told = |endpoint: usize| {
            let mut opened = story.endpoints.iter();
            let opened = opened.find(|opened| usize::from(opened.endpoint) == endpoint);
            let posted: Vec<&Post> = posted(story, endpoint, WorkRing::Send).collect();
            let sends = indices(&events, endpoint, SEND_TAIL);
            Told {
                seconds: seconds(&sends, &posted),
                sends,
                lists: indices(&events, endpoint, LIST_TAIL),
                consumed: indices(&events, endpoint, COMPLETION_HEAD),
                size: opened.map_or(0, |opened| 1 << opened.log2[2]),
                seen: entries(endpoint)
                    .map(|(cycle, entry)| (entry.request, *cycle))
                    .collect(),
            }
        };
        let malformed = |endpoint: usize| {
            let all = posted(story, endpoint, WorkRing::List).zip(0..);
            let requests = all.map(|(post, index)| (index, ListRequest::from_words(&post.words)));
            requests
                .filter(|(_, request)| decode_list(request, story.sizes.capabilities).is_err())
                .map(|(index, request)| (index, request.request))
                .collect()
        };
        let owner = |endpoint: usize| {
            let mut opened = story.endpoints.iter();
            let opened = opened.find(|opened| usize::from(opened.endpoint) == endpoint);
            opened.map_or(endpoint, |opened| opened.completion_owner.into())
        };
        let (mut rung, mut cancels) = (BTreeMap::new(), BTreeMap::new());
        for opened in &story.endpoints {
            let endpoint = opened.endpoint;
            let posted = posted(story, endpoint.into(), WorkRing::Send);
            let tails = indices(&events, endpoint.into(), SEND_TAIL);
            for (index, post) in posted.enumerate() {
                let send = SendRequest::from_words(&post.words);
                let by = tails.partition_point(|&(_, tail)| tail <= index as u64);
                if let Some(&(cycle, _)) = tails.get(by)
                    && send.opcode != Opcode::Segments.code()
                {
                    rung.insert((endpoint, send.request), cycle);
                }
                if send.opcode == Opcode::CancelSend.code() {
                    cancels.insert((endpoint, send.target), send.request);
                }
            }
        }
        let gates = Gates {
            commands,
            given: 0,
            delivered: (0..endpoints).map(delivered).collect(),
            others,
            acknowledged,
            own: own.clone(),
            told: (0..endpoints).map(told).collect(),
            owners: (0..endpoints).map(owner).collect(),
            now: 0,
            last: (0, 0),
            listed: vec![0; endpoints],
            quiet: vec![Vec::new(); endpoints],
            malformed: (0..endpoints).map(malformed).collect(),
            rung,
            cancels,
            failed: BTreeMap::new(),
            ended: BTreeMap::new(),
            gaps: BTreeMap::new(),
            released: vec![0; endpoints],
            releasing: VecDeque::new(),
            completions: 0,
            ready: (0, 0),
            stays: (0, 0),
        };
        let mut errors = 0;
        let mut memory = Pieces::default();
        for (address, bytes) in &story.memory {
            memory.map(*address, bytes.len());
        }
        for opened in &story.endpoints {
            let bytes = Completion::BYTES << COMPLETIONS_LOG2;
            memory.map(completions_of(opened.endpoint), bytes);
        }
        let mut memory = Weak::new(memory, story.fragile.clone());
        for (cycle, event) in seen {
            if let &Event::Access {
                write,
                address,
                end,
                failed,
            } = event
            {
                memory.burst(*cycle, write, address, end, failed);
                errors += usize::from(failed);
            }
        }
        let mut card = Card::with_timing(story.sizes, memory, gates);
        card.break_on_purpose(broken);
        set_up(&mut card, story);
        let posts = |endpoint: usize| {
            [WorkRing::Send, WorkRing::List]
                .map(|ring| posted(story, endpoint, ring).cloned().collect())
        };
        Self {
            card,
            posts: (0..endpoints).map(posts).collect(),
            rings: story.endpoints.clone(),
            tails: vec![[0; 2]; endpoints],
            consumed: vec![0; endpoints],
            listed: vec![Vec::new(); endpoints],
            sent: vec![Vec::new(); endpoints],
            early_bells: VecDeque::new(),
            endpoints: story
                .pairs
                .iter()
                .map(|(pair, setup)| (*pair, setup.endpoint))
                .collect(),
            wire: VecDeque::new(),
            expected: BTreeMap::new(),
            own_turns: arrive
                .iter()
                .copied()
                .filter(|pair| own.contains_key(pair))
                .collect(),
            arrive,
            failed: BTreeSet::new(),
            late: BTreeMap::new(),
            early: BTreeMap::new(),
            failing: None,
            link_errors: story
                .endpoints
                .iter()
                .zip(&story.events)
                .flat_map(|(opened, all)| {
                    let failures = [Cause::LinkError, Cause::PeerFailed].map(Cause::code);
                    let link = all.iter().filter(move |e| failures.contains(&e.cause));
                    link.map(|event| ((opened.endpoint, event.pair), event.info as u8))
                })
                .collect(),
            messages_out: 0,
            safe: BTreeMap::new(),
            events: events.into(),
            matched: 0,
            framed: BTreeMap::new(),
            had: BTreeMap::new(),
            sent_once: BTreeMap::new(),
            gaps_told: BTreeMap::new(),
            requested: BTreeMap::new(),
            asked: BTreeMap::new(),
            answered: BTreeSet::new(),
            written: Vec::new(),
            compared: Compared {
                errors,
                ..Compared::default()
            },
        }
    }

    fn can(&self, action: Action) -> bool {
        self.card.actions().contains(&action)
    }

    /// Does what must be possible now.
    fn step(&mut self, action: Action, cycle: u64, why: &str) {
        assert!(
            self.can(action),
            "cycle {cycle}: {why}, and the model can't {action:?}"
        );
        self.card.step(action);
    }

    /// Takes what the model has completed since the last time.
    fn consume(&mut self) {
        for opened in &self.rings {
            let owner = opened.endpoint;
            let tail = self.card.read_register(owner, COMPLETION_TAIL) as u16;
            let consumed = &mut self.consumed[usize::from(owner)];
            while *consumed != tail {
                let base = completions_of(owner);
                let at = entry_address(base, *consumed, COMPLETIONS_LOG2, Completion::BYTES);
                let mut bytes = [0; Completion::BYTES];
                let read = self.card.memory.read(at, &mut bytes);
                read.expect("the queue is mapped");
                let words = bytes.as_chunks().0;
                let entry = Completion::read(|at| u64::from_le_bytes(words[at]));
                self.written.push((owner, bare(entry).to_words()));
                *consumed = consumed.wrapping_add(1);
            }
            self.card
                .write_register(owner, COMPLETION_HEAD, tail.into());
        }
    }

    /// Each queue was written the same entries; those of different rooms have no order.
    fn queues_written(&mut self, story: &Story) {
        self.consume();
        let of_gates = story.endpoints.iter().flat_map(|opened| {
            let all = story.completions[usize::from(opened.endpoint)].iter();
            all.map(|(_, entry)| (opened.completion_owner, bare(*entry).to_words()))
        });
        let mut of_gates: Vec<_> = of_gates.collect();
        of_gates.sort_unstable();
        self.written.sort_unstable();
        let differ = self.written.iter().zip(&of_gates).find(|(a, b)| a != b);
        assert_eq!(
            differ, None,
            "entries of a queue, the model's and the gates'"
        );
        assert_eq!(self.written.len(), of_gates.len(), "entries of the queues");
    }

    fn event(&mut self, cycle: u64, event: Event) {
        self.card.timing.now = cycle;
        self.consume();
        self.ring_again(cycle);
        match event {
            Event::Doorbell {
                endpoint,
                offset,
                value,
            } => self.doorbell(cycle, endpoint, offset, value),
            Event::FrameIn(frame) => {
                if self.asks(&frame) {
                    let pair = FrameHeader::parse(&frame)
                        .expect("a header")
                        .destination_pair;
                    *self.asked.entry(pair).or_default() += 1;
                }
                self.wire.push_back(glance(&frame));
                self.card.frame_in(frame);
            }
            Event::Matched(command, ..) => self.matched(cycle, &command),
            Event::Access { .. } => unreachable!("the memory has them"),
            Event::Control(operation, index) => {
                panic!("cycle {cycle}: the firmware changes {index:#x} by operation {operation}")
            }
            Event::Sink {
                pair,
                accepted,
                freed,
            } => self.sink(cycle, pair, accepted, freed),
            Event::Source { pair, returned } => {
                let behind = |card: &Card<_, _>| {
                    let known: u32 = card.credits(pair).source.returned;
                    returned.wrapping_sub(known) as i32 > 0
                };
                while behind(&self.card) {
                    match self.card.timing.own.get(&pair).copied() {
                        None => self.receive(cycle, "a credit has come back"),
                        // A message that is on its way may have brought it.
                        Some(other) => match self.next_own() {
                            Some(next) => self.look_own(next),
                            None => self.tell_own(cycle, other),
                        },
                    }
                }
            }
            Event::FrameOut(frame, before) => self.frame_out(cycle, cycle + before, &frame),
        }
    }

    /// The host has posted: its entries and buffers are in memory when it rings.
    fn doorbell(&mut self, cycle: u64, endpoint: u8, offset: u32, value: u32) {
        let at = usize::from(endpoint);
        let ring = match offset {
            SEND_TAIL => 0,
            LIST_TAIL => 1,
            // The model may make a completion later than the gates: it is consumed when it is made.
            _ => return,
        };
        while self.tails[at][ring] != value as u16 {
            if !self.make_room(cycle, endpoint, ring) {
                self.early_bells.push_back((endpoint, value));
                break;
            }
            let post = self.posts[at][ring].pop_front().expect("it was posted");
            let index = self.tails[at][ring];
            self.tails[at][ring] = index.wrapping_add(1);
            if ring == 1 {
                self.listed[at].push(ListRequest::from_words(&post.words));
            } else {
                self.sent[at].push(SendRequest::from_words(&post.words));
            }
            let opened = &self.rings[at];
            let log2 = opened.log2[ring];
            let entry = entry_address(opened.rings[ring], index, log2, REQUEST_BYTES);
            let bytes: Vec<u8> = post.words.iter().flat_map(|w| w.to_le_bytes()).collect();
            let memory = &mut self.card.memory;
            memory.host_writes(entry, &bytes);
            if let Some((address, bytes)) = &post.fill {
                memory.host_writes(*address, bytes);
            }
        }
        let tail = self.tails[at][ring];
        self.card.write_register(endpoint, offset, tail.into());
    }

    /// Doorbells of list rings that were full wait until the model has carried out a request.
    fn ring_again(&mut self, cycle: u64) {
        for (endpoint, value) in std::mem::take(&mut self.early_bells) {
            self.doorbell(cycle, endpoint, LIST_TAIL, value);
        }
    }

    /// Where the host writes an entry, it knew that the gates had taken the one before it, though nothing else may have come of that yet. A list request that the
    /// gates have taken may not have had its turn, so that there may be no room for another: false then.
    fn make_room(&mut self, cycle: u64, endpoint: u8, ring: usize) -> bool {
        let at = usize::from(endpoint);
        let head = [SEND_HEAD, LIST_HEAD][ring];
        let size = 1 << self.rings[at].log2[ring];
        let is_full = |follower: &mut Self| {
            let head = follower.card.read_register(endpoint, head) as u16;
            follower.tails[at][ring].wrapping_sub(head) >= size
        };
        while ring == 0 && is_full(self) {
            self.fetch_send(cycle, endpoint);
        }
        !is_full(self)
    }

    /// A command has entered the lists, unless the model has given it already, as part of what came before.
    fn matched(&mut self, cycle: u64, command: &Command) {
        self.matched += 1;
        let wanted = self.matched;
        if self.card.timing.given < wanted {
            if is_listed(command.operation) {
                self.card.timing.quiet[usize::from(command.endpoint)].clear();
            }
            for endpoint in 0..self.rings.len() as u8 {
                self.quiet_requests(endpoint, command);
            }
        }
        while self.card.timing.given < wanted {
            if command.operation == Match::Arrive {
                self.drop_revoked();
                while self.card.arrivals().next().is_none() {
                    match self.card.timing.own.contains_key(&command.pair) {
                        true => self.receive_own(cycle, command.pair),
                        false => self.receive(cycle, "a message arrives"),
                    }
                }
                if self.revokes_next() {
                    continue;
                }
                self.vacate(command);
                self.enter_before_refusal(cycle);
                for endpoint in 0..self.rings.len() as u8 {
                    // Indices of a story don't come round: it is shorter than 2^16 requests.
                    let head = self.card.read_register(endpoint, LIST_HEAD);
                    self.card.timing.listed[usize::from(endpoint)] = head.into();
                }
                self.card.step(Action::Arrive);
            } else if command.operation == Match::TakePostedOfPair {
                if !self.failed.contains(&command.pair) {
                    self.fail(cycle, command.pair, false);
                }
                self.step(Action::Flush, cycle, "a pair fails");
            } else if command.operation == Match::Remove {
                self.card.slot_fails(command.pair, command.slot);
            } else if self.card.delivery().looks_again() {
                self.card.look_again();
            } else {
                let list = Action::List(command.endpoint);
                self.step(list, cycle, "a list request is taken");
            }
        }
        self.compared.commands = wanted;
    }

    /// Whether the next message falls under a rule.
    fn revokes_next(&self) -> bool {
        let delivery = self.card.delivery();
        let next = self.card.arrivals().next();
        next.is_some_and(|next| !delivery.drops(next.pair) && delivery.is_revoked(next))
    }

    /// Messages that fall under a rule give no command: they were dropped before the message behind them came to the lists. Claimed ones of their
    /// pairs that left before go before.
    fn drop_revoked(&mut self) {
        while self.revokes_next() {
            let pair = self.card.arrivals().next().map(|next| next.pair);
            let pair = pair.expect("it is revoked");
            let endpoint = self.endpoints[&pair];
            while self.frees_first(pair) && self.uses_claim_next(endpoint) {
                self.card.step(Action::List(endpoint));
            }
            self.card.step(Action::Arrive);
            self.compared.revoked += 1;
        }
    }

    /// A claimed message that is received or discarded leaves without a command to the lists. That was before the next message of its pair, if this
    /// goes to its slot, or if its envelope is the next of the pair to move on: envelopes of a pair move on in the order in which all that entered.
    fn vacate(&mut self, command: &Command) {
        let pair = command.pair;
        let endpoint = self.endpoints[&pair];
        while self.needs_its_slot(pair) || self.frees_first(pair) {
            self.quiet_requests(endpoint, command);
            if !self.uses_claim_next(endpoint) {
                return;
            }
            self.card.step(Action::List(endpoint));
        }
        // What completes behind one of them, and before whatever the message wakes.
        self.quiet_requests(endpoint, command);
    }

    /// A ready message that is refused, or would be, says that what its endpoint's list ring had held for long enough had entered: of that, what uses a claim
    /// gives no command, and is carried out now. A request that gives one isn't, so that [`Gates::list_pending`] finds it in the ring.
    fn enter_before_refusal(&mut self, cycle: u64) {
        let arrival = self.card.arrivals().next();
        let Some(endpoint) = arrival.filter(|next| next.ready).map(|next| next.endpoint) else {
            return;
        };
        if !self.card.timing.may_refuse_next() {
            return;
        }
        let command = self.card.timing.commands[0].1;
        let at = usize::from(endpoint);
        let timing = &self.card.timing;
        let rung = index_at(&timing.told[at].lists, timing.known(cycle));
        loop {
            self.quiet_requests(endpoint, &command);
            let head = self.card.read_register(endpoint, LIST_HEAD);
            if u64::from(head) >= rung || !self.uses_claim_next(endpoint) {
                return;
            }
            self.card.step(Action::List(endpoint));
        }
    }

    /// Whether the next request of a list ring uses a claim, and can be carried out.
    fn uses_claim_next(&self, endpoint: u8) -> bool {
        let head = self.card.read_register(endpoint, LIST_HEAD) as usize;
        let request = self.listed[usize::from(endpoint)].get(head);
        let claims = [Opcode::ReceiveClaimed, Opcode::Discard].map(Opcode::code);
        request.is_some_and(|request| claims.contains(&request.opcode))
            && self.can(Action::List(endpoint))
    }

    /// Whether the message of the next command goes to a slot that still holds one.
    fn needs_its_slot(&self, pair: u16) -> bool {
        let next = self.card.timing.commands.front().map(|next| &next.1);
        next.is_some_and(|next| next.append && self.card.delivery().slot_used(pair, next.slot))
    }

    /// Whether what moves on next of a pair, behind all that the model knows of, is an envelope that is freed and no message that is accepted.
    fn frees_first(&self, pair: u16) -> bool {
        let known = self.card.updates().filter(|update| update.pair == pair);
        let known: Vec<bool> = known.map(|update| update.accepted).collect();
        let accepted = known.iter().filter(|accepted| **accepted).count() as u32;
        let accepted = self.card.credits(pair).sink.accepted + accepted;
        let mut moves = self.events.iter().filter_map(|(_, event)| match event {
            Event::Sink {
                pair: of, accepted, ..
            } if *of == pair => Some(*accepted),
            _ => None,
        });
        moves.nth(known.len()) == Some(accepted)
    }

    /// Requests that are refused without a look at the lists have no place in the order but that of their completions: those go that complete next
    /// of all that Delivery completes for their endpoint. So none goes before a receive has been told to try again whose completion comes first:
    /// such a request may resume the endpoint, which it can't while that receive waits.
    fn quiet_requests(&mut self, endpoint: u8, command: &Command) {
        // A request of its own list ring comes behind those in front anyway.
        if is_listed(command.operation) && command.endpoint == endpoint {
            return;
        }
        let at = usize::from(endpoint);
        loop {
            let head = self.card.read_register(endpoint, LIST_HEAD) as usize;
            let next = self.listed[at].get(head).copied();
            let completes = self.card.timing.delivered[at].front();
            let behind = self.card.delivery().looks_at_nothing(endpoint);
            let first =
                next.is_some_and(
                    |next| match decode_list(&next, self.card.sizes().capabilities) {
                        Err(_) => true,
                        Ok(row) => completes.is_some_and(|entry| {
                            let refused = Status::from_code(entry.status).is_some_and(|status| {
                                let quiet = [
                                    Status::LocalProtection,
                                    Status::InvalidPair,
                                    Status::InvalidClaim,
                                    Status::Revoked,
                                ];
                                quiet.contains(&status) || (status == Status::Behind && behind)
                            });
                            let ends = entry.request == next.request && refused;
                            // The receive that waits for room is in no list.
                            let waits = row.opcode == Opcode::Cancel
                                && (entry.request, entry.status)
                                    == (next.target, Status::Cancelled.code())
                                && self.card.delivery().waits(endpoint) == Some(next.target);
                            // The envelopes of a failed pair are nobody's: no numbers show that they are free.
                            let claims = [Opcode::ReceiveClaimed, Opcode::Discard];
                            let (pair, _) = pair_and_slot(claim_slot(next.target));
                            let silent = entry.request == next.request
                                && claims.contains(&row.opcode)
                                && self.is_silent(pair);
                            ends || waits || silent
                        }),
                    },
                );
            let Some(next) = next.filter(|_| first && self.can(Action::List(endpoint))) else {
                return;
            };
            self.card.timing.quiet[at].push(next.request);
            self.card.step(Action::List(endpoint));
        }
    }

    /// What has become of the envelopes of a failed pair nobody is told.
    fn forget_updates(&mut self) {
        let updates: Vec<Update> = self.card.updates().cloned().collect();
        for Update { pair, accepted, .. } in updates {
            if self.failed.contains(&pair) {
                self.card.step(Action::Update { pair, accepted });
            }
        }
    }

    fn sink(&mut self, cycle: u64, pair: u16, accepted: u32, freed: u32) {
        self.forget_updates();
        let update = Action::Update {
            pair,
            accepted: accepted != self.card.credits(pair).sink.accepted,
        };
        while !self.can(update) {
            // What is accepted and gave no command was revoked.
            if accepted != self.card.credits(pair).sink.accepted {
                while self.card.arrivals().next().is_none() {
                    self.receive(cycle, "a message is accepted");
                }
                assert!(
                    self.revokes_next(),
                    "cycle {cycle}: a message in front of one that pair {pair} accepts"
                );
                self.card.step(Action::Arrive);
                self.compared.revoked += 1;
                continue;
            }
            let list = Action::List(self.endpoints[&pair]);
            self.step(list, cycle, "an envelope moves on");
            self.forget_updates();
        }
        let had = (cycle, self.numbers(pair));
        self.had.entry(pair).or_default().push(had);
        self.card.step(update);
        let numbers = self.numbers(pair);
        assert_eq!(
            (numbers.0, numbers.1),
            (accepted, freed),
            "cycle {cycle}: pair {pair}"
        );
        self.compared.updates += 1;
    }

    /// Whether a frame that comes in has its pair answer, whatever the numbers are: an `Ask`, or a request that has come before.
    fn asks(&mut self, frame: &[u8]) -> bool {
        let Ok(screened) = screen(frame) else {
            return false;
        };
        let header = &screened.header;
        let next = (header.destination_pair, header.cookie);
        match screened.frame_type {
            FrameType::Eager => {
                let next = self.requested.entry(next).or_default();
                let before = header.sequence < *next;
                *next += u32::from(header.sequence == *next);
                before
            }
            other => other == FrameType::Ask,
        }
    }

    /// A frame has gone out. The numbers that it carries were looked up in one of the cycles until it was shown.
    fn frame_out(&mut self, cycle: u64, shown: u64, frame: &[u8]) {
        let header = FrameHeader::parse(frame).expect("a header");
        let pair = header.source_pair;
        let glanced = glance(frame);
        let announces = glanced.announces;
        self.messages_out += usize::from(glanced.message.is_some());
        // The announcement overtakes the message that the pair had begun.
        let late = self.late.get_mut(&pair).filter(|_| !announces);
        if let Some(late) = late.and_then(VecDeque::pop_front) {
            let same = without_numbers(&late) == without_numbers(frame);
            assert!(
                same,
                "cycle {cycle}: a frame that pair {pair} had begun when it failed"
            );
            self.compared.frames += 1;
            return;
        }
        if tells_gap(&header) {
            self.tell_gap(cycle, pair);
        }
        // When a pair has waited for long enough is the gates' affair.
        if glanced.asks {
            self.card.ask(pair);
            self.compared.asks += 1;
        }
        let carried = (header.acknowledge, header.credit, header.refused);
        let control = header.frame_type != FrameType::Eager.code();
        // Since when numbers have changed that the frame doesn't know of.
        let mut waited;
        loop {
            let numbers = self.numbers(pair);
            waited = self.had_lately(cycle, pair, carried);
            if waited.is_some() {
                self.card.mark(pair);
                self.compared.waited += 1;
                break;
            }
            let due = !control || self.card.control_due(pair).is_some();
            if numbers == carried && announces && !self.failed.contains(&pair) {
                self.fail(cycle, pair, true);
                continue;
            }
            if numbers == carried && due {
                break;
            }
            // The gates have looked at a frame that asks, and the model may not have, or they answered it together with something else.
            if numbers == carried
                && let Some(asked) = self.asked.get_mut(&pair).filter(|asked| **asked > 0)
            {
                *asked -= 1;
                self.answered.insert(pair);
                self.card.mark(pair);
                break;
            }
            match self.events.front() {
                Some((next, _)) if *next <= shown => {
                    let (next, event) = self.events.pop_front().expect("there is one");
                    self.event(next, event);
                }
                _ if numbers == carried => {
                    // The update came when the pair's last frame had been taken, and had not begun.
                    let updates = self.had.get(&pair);
                    let updated = updates.and_then(|had| had.last()).map_or(0, |had| had.0);
                    let framed = self.framed.get(&pair);
                    let between = framed.is_some_and(|framed| framed.contains(&updated));
                    assert!(between, "cycle {shown}: pair {pair} owes no control frame");
                    self.card.mark(pair);
                }
                _ => panic!("cycle {shown}: pair {pair} tells {carried:?}, and has {numbers:?}"),
            }
        }
        let looked_up = waited.unwrap_or(cycle)..=shown + COUNTED_CYCLES;
        if control {
            self.card.step(Action::Control(pair));
        } else if self.transmit_this(shown, pair, frame) {
            self.framed.insert(pair, looked_up);
            self.compared.frames += 1;
            return;
        }
        let same = self.card.frame_out();
        let essence = match waited {
            None => without_gap,
            Some(_) => without_numbers,
        };
        assert_eq!(
            same.as_deref().map(essence),
            Some(essence(frame)),
            "cycle {shown}: a frame of pair {pair}"
        );
        if waited.is_some() {
            self.card.mark(pair);
        }
        assert!(
            screen(frame).is_ok(),
            "cycle {shown}: a frame of pair {pair}"
        );
        let told = same.and_then(|frame| FrameHeader::parse(&frame).ok());
        if told.is_some_and(|header| tells_gap(&header)) {
            self.gaps_told.entry(pair).or_default().1 += 1;
        }
        self.framed.insert(pair, looked_up);
        self.compared.frames += 1;
    }

    /// What a frame of a pair carries of the reverse direction.
    fn numbers(&self, pair: u16) -> Numbers {
        let sink = self.card.credits(pair).sink;
        (sink.accepted, sink.freed, sink.refused)
    }

    /// Until when a pair had numbers that a frame carries though they have changed since: it waited behind a frame of the card to itself, which waits for the
    /// receiver where nobody sees it.
    fn had_lately(&self, cycle: u64, pair: u16, carried: Numbers) -> Option<u64> {
        if self.card.timing.own.is_empty() {
            return None;
        }
        let mut had = self.had.get(&pair)?.iter().rev();
        let (until, _) = had.find(|(_, numbers)| *numbers == carried)?;
        (*until + OWN_FRAME_CYCLES >= cycle).then_some(*until)
    }

    /// The gates say that a message is missing: the model knows of one that they haven't told of, and owes a frame.
    fn tell_gap(&mut self, cycle: u64, pair: u16) {
        let told = self.gaps_told.entry(pair).or_default().0;
        let known = |card: &Card<_, Gates>| card.timing.gaps.get(&pair).copied().unwrap_or(0);
        while known(&self.card) <= told {
            self.receive(cycle, "a message is said to be missing");
        }
        self.gaps_told.entry(pair).or_default().0 += 1;
        self.compared.again.1 += 1;
        self.card.mark(pair);
    }

    /// A message of a pair goes out: the next one, or one that is sent again and has to be what it was but for the numbers of the reverse direction.
    /// Whether it is acknowledged, so that the model has no frame for it.
    fn transmit_this(&mut self, cycle: u64, pair: u16, frame: &[u8]) -> bool {
        let header = FrameHeader::parse(frame).expect("a header");
        let SourceNumbers {
            taken,
            acknowledged,
            ..
        } = self.card.credits(pair).source;
        let key = (pair, header.sequence);
        if header.sequence >= taken {
            self.sent_once.insert(key, without_numbers(frame));
            self.transmit(cycle, pair);
            return false;
        }
        let early = self.early.get_mut(&pair);
        let next =
            |(early, _): &mut (Vec<u8>, usize)| glance(early).message == Some(header.sequence);
        if let Some((early, out)) = early.and_then(|early| early.pop_front_if(next)) {
            assert_eq!(
                without_numbers(&early),
                without_numbers(frame),
                "cycle {cycle}: a frame of pair {pair}, whose turn was before a cancel"
            );
            let since = self.messages_out - out;
            assert!(
                since <= JOBS + 1,
                "cycle {cycle}: a cancel was too late for what pair {pair} sends {since} messages later"
            );
            self.sent_once.insert(key, without_numbers(frame));
            self.card.carries(pair);
            return true;
        }
        assert_eq!(
            self.sent_once.get(&key),
            Some(&without_numbers(frame)),
            "cycle {cycle}: a frame that pair {pair} sends again"
        );
        self.compared.again.0 += 1;
        if header.sequence >= acknowledged {
            assert!(self.send_again(pair, header.sequence), "it is on its way");
            return false;
        }
        self.goes_late(cycle, pair, header.sequence);
        true
    }

    /// A message that is sent again is acknowledged. It was with the transmitter then: Gather has [`JOBS`] messages at most, of all pairs, and Framer one,
    /// and they leave in their order.
    fn goes_late(&mut self, cycle: u64, pair: u16, sequence: u32) {
        let since = self.messages_out - self.safe[&(pair, sequence)];
        assert!(
            since <= JOBS + 1,
            "cycle {cycle}: pair {pair} sends again what was acknowledged {since} messages before"
        );
        self.card.goes_late(pair);
        self.compared.late += 1;
    }

    /// One of a pair's unacknowledged sends goes out again: what was read for it was seen.
    fn send_again(&mut self, pair: u16, sequence: u32) -> bool {
        self.card.memory.reads = Reads::Seen;
        let again = self.card.send_again(pair, sequence);
        self.card.memory.reads = Reads::Since(0);
        again
    }

    /// The next send of a pair has its turn: its buffer was read after its doorbell.
    fn take_turn(&mut self, pair: u16) {
        let head = self.card.sends().waiting(pair).next();
        let request = head.map(|head| (self.endpoints[&pair], head.request));
        let rung = request.map(|request| self.card.timing.rung[&request]);
        self.card.memory.reads = Reads::Since(rung.unwrap_or(0));
        self.card.step(Action::Transmit(pair));
        self.card.memory.reads = Reads::Since(0);
    }

    /// The next message of a pair goes out.
    fn transmit(&mut self, cycle: u64, pair: u16) {
        let taken = self.card.credits(pair).source.taken;
        while self.card.credits(pair).source.taken == taken {
            self.towards_a_turn(cycle, pair);
        }
    }

    /// One step towards the next turn of a pair's sends. Of those in front some were cancelled, as the send ring says, and some couldn't be read.
    fn towards_a_turn(&mut self, cycle: u64, pair: u16) {
        let endpoint = self.endpoints[&pair];
        let head = self.card.sends().waiting(pair).next();
        let cancelled =
            head.is_some_and(|head| self.ends(endpoint, head.request, &[Status::Cancelled]));
        if !cancelled && self.can(Action::Transmit(pair)) {
            self.take_turn(pair);
        } else if self.can(Action::Send(endpoint)) {
            self.fetch_send(cycle, endpoint);
        } else if self.wire.is_empty() {
            let numbers = self.card.credits(pair).source;
            panic!(
                "cycle {cycle}: a message of pair {pair} goes out, and the model has none to send: {numbers:?}"
            );
        } else {
            self.receive(cycle, "a message of a pair goes out");
        }
    }

    /// The next frame from the wire is looked at. What the card sent itself, and came to the lists before its message, was looked at before.
    fn receive(&mut self, cycle: u64, why: &str) {
        let Some(next) = self.wire.front().copied() else {
            panic!("cycle {cycle}: {why}, and no frame has come");
        };
        if self.is_expected(&next) {
            let first = |arrive: &VecDeque<u16>| arrive.iter().position(|&pair| pair == next.to);
            while let Some(at) = first(&self.arrive) {
                let mut before = self.arrive.range(..at);
                match before.any(|pair| self.card.timing.own.contains_key(pair)) {
                    true => self.receive_own(cycle, next.to),
                    false => break,
                }
            }
        }
        self.look_at_wire();
    }

    /// Whether a frame of the wire brings the message that its pair waits for.
    fn is_expected(&self, frame: &Glance) -> bool {
        let expected = self.expected.get(&frame.to).copied().unwrap_or(0);
        frame.message == Some(expected)
    }

    /// Looks at the next frame from the wire, if one has come.
    fn look_at_wire(&mut self) {
        let Some(next) = self.wire.pop_front() else {
            return;
        };
        if self.is_expected(&next) {
            *self.expected.entry(next.to).or_default() += 1;
        }
        self.look(Action::Receive, next.to);
    }

    /// Looks at the next frame of the card to itself. What has come by the wire, and came to the lists before its message, was looked at before.
    fn look_own(&mut self, next: Glance) {
        let own = &self.card.timing.own;
        let message = self.arrive.iter().position(|&pair| pair == next.to);
        let before = self.arrive.range(..message.unwrap_or(0));
        let from_wire = before.filter(|pair| !own.contains_key(pair)).count();
        let left = self.arrive.len() - from_wire;
        if next.message.is_some() {
            while self.arrive.len() > left && !self.wire.is_empty() {
                self.look_at_wire();
            }
        }
        self.look(Action::ReceiveOwn, next.to);
        self.compared.own += 1;
    }

    fn next_own(&self) -> Option<Glance> {
        self.card.own_frames().next().map(glance)
    }

    /// Looks at a frame for a pair.
    fn look(&mut self, action: Action, pair: u16) {
        let arrivals = self.card.arrivals().count();
        let known = self.card.credits(pair).source.acknowledged;
        self.card.step(action);
        for number in known..self.card.credits(pair).source.acknowledged {
            self.safe.insert((pair, number), self.messages_out);
        }
        let delivery = self.card.delivery();
        let new = self.card.arrivals().nth(arrivals);
        if new.is_some_and(|new| !delivery.is_revoked(new)) {
            let at = self.arrive.iter().position(|&next| next == pair);
            at.map(|at| self.arrive.remove(at));
        }
    }

    /// The next message of the card to itself goes out and is looked at, with the frames before it.
    fn receive_own(&mut self, cycle: u64, why: u16) {
        let arrivals = self.card.arrivals().count();
        while self.card.arrivals().count() == arrivals {
            if let Some(next) = self.next_own() {
                self.look_own(next);
            } else {
                self.transmit_own(cycle, why);
            }
        }
    }

    /// The next message of the card to itself goes out.
    fn transmit_own(&mut self, cycle: u64, why: u16) {
        let next = self.own_turns.pop_front();
        let to = next.unwrap_or_else(|| panic!("cycle {cycle}: no message to pair {why} itself"));
        let from = self.card.timing.own[&to];
        self.transmit(cycle, from);
    }

    /// A pair of the card with itself tells its other end what it has accepted and freed.
    fn tell_own(&mut self, cycle: u64, pair: u16) {
        self.step(Action::Control(pair), cycle, "a credit has come back");
        while let Some(next) = self.next_own() {
            self.look_own(next);
        }
    }

    /// A pair fails. What it has done before, as its completions, frames and messages say, comes first. `announced` if the peer has been told.
    fn fail(&mut self, cycle: u64, pair: u16, announced: bool) {
        self.failing = Some(pair);
        // What it had begun goes out behind the failure, as `transmit_late` sees.
        self.early.remove(&pair);
        let endpoint = self.endpoints[&pair];
        let at = usize::from(endpoint);
        let failed = self.link_errors.get(&(endpoint, pair)).copied();
        let failed = failed.map_or(Some(Status::MemoryError), Status::from_code);
        let failed = failed.expect("a status");
        // A send that the pair's failure didn't end, nor its payload, was acknowledged, whether or not it told so.
        let ended = [failed, Status::MemoryError];
        let unheard = |follower: &Self| {
            let mut sent = follower.card.sends().on_their_way(pair);
            if sent.any(|request| !follower.ends(endpoint, request, &ended)) {
                return true;
            }
            let acknowledged = follower.card.timing.acknowledged.get(&(at, None));
            let mut acknowledged = acknowledged.into_iter().flatten();
            acknowledged.any(|entry| entry.pair == pair) || follower.arrive.contains(&pair)
        };
        while unheard(self) {
            self.receive(cycle, "a pair fails that has been heard of since");
        }
        // A cancel that comes later may be in time all the same, see [`Gates::is_unaware`].
        while self.has_send_that_ends(pair, &[Status::Cancelled])
            && self.can(Action::Send(endpoint))
        {
            self.fetch_send(cycle, endpoint);
        }
        self.transmit_late(cycle, pair, announced);
        // Behind them are sends whose turn came to nothing.
        let unread: Vec<Status> = UNREAD.into_iter().filter(|&s| s != failed).collect();
        // No completion tells memory that is gone from such a failure, or a refusal from such a one.
        while self.has_send_that_ends(pair, &unread) {
            self.towards_a_turn(cycle, pair);
        }
        let status = failed.code();
        let fault = Action::Fault { pair, status };
        while !self.can(fault) {
            self.receive(cycle, "a pair fails");
        }
        self.card.timing.failed.insert(pair, cycle);
        self.card.step(fault);
        self.failing = None;
        self.failed.insert(pair);
        self.compared.failed += 1;
    }

    /// What a pair that fails still sends: all that it had sent when it failed, and the one message that was with the transmitter. Nothing waits for
    /// the transmitter, so that message may show after the announcement; the pair begins none after it.
    fn transmit_late(&mut self, cycle: u64, pair: u16, mut announced: bool) {
        let later = self.events.iter().filter_map(|(_, event)| match event {
            Event::FrameOut(frame, _) => Some(glance(frame)),
            _ => None,
        });
        let later: Vec<Glance> = later.filter(|next| next.from == pair).collect();
        let mut begun = 0;
        for next in later {
            announced |= next.announces;
            if next.message.is_some() {
                begun += usize::from(announced);
                assert!(
                    begun <= 1,
                    "cycle {cycle}: pair {pair} has announced its failure, and goes on sending"
                );
                match next
                    .message
                    .filter(|&number| number < self.card.credits(pair).source.taken)
                {
                    Some(number) => _ = self.send_again(pair, number),
                    None => self.transmit(cycle, pair),
                }
            } else if announced {
                continue;
            } else {
                match next.asks {
                    true => self.card.ask(pair),
                    false => self.card.mark(pair),
                }
                self.card.step(Action::Control(pair));
            }
            let frame = self.card.frame_out().expect("a frame goes out");
            self.late.entry(pair).or_default().push_back(frame);
        }
    }

    /// Whether a pair has a send, waiting or still in its ring, that the gates ended with one of these.
    fn has_send_that_ends(&self, pair: u16, statuses: &[Status]) -> bool {
        let endpoint = self.endpoints[&pair];
        let head = self.card.read_register(endpoint, SEND_HEAD) as usize;
        let to_come = self.sent[usize::from(endpoint)][head..].iter();
        let mut open = self.card.sends().waiting(pair).chain(to_come);
        open.any(|send| {
            send.pair == pair
                && send.opcode == Opcode::TaggedSend.code()
                && self.ends(endpoint, send.request, statuses)
        })
    }

    /// Whether the gates ended a request with one of these.
    fn ends(&self, endpoint: u8, request: u32, statuses: &[Status]) -> bool {
        let key = (usize::from(endpoint), request);
        let ends = self.card.timing.others.get(&key).into_iter().flatten();
        let codes = statuses.iter().map(|status| status.code());
        let codes: Vec<u8> = codes.collect();
        ends.into_iter().any(|entry| codes.contains(&entry.status))
    }

    /// The next entry of a send ring is taken. A cancel that came too late comes after what made it so: the turn of a send that couldn't be read,
    /// of one of the card to itself, or of one whose frame goes out later; or the failure of the pair.
    fn fetch_send(&mut self, cycle: u64, endpoint: u8) {
        let head = self.card.read_register(endpoint, SEND_HEAD) as usize;
        let next = self.sent[usize::from(endpoint)].get(head).copied();
        if let Some(send) = next.filter(|next| next.opcode == Opcode::TaggedSend.code()) {
            self.make_descriptor_free(cycle, endpoint, &send);
            // A message of the card to itself that came on the way may have taken it.
            if self.card.read_register(endpoint, SEND_HEAD) as usize != head {
                return;
            }
        }
        let cancel = next.filter(|next| next.opcode == Opcode::CancelSend.code());
        while let Some(cancel) = cancel {
            let pair = cancel.pair;
            let waiting = self.card.sends().waiting(pair);
            let waiting: Vec<u32> = waiting.map(|send| send.request).collect();
            if !waiting.contains(&cancel.target)
                || self.ends(endpoint, cancel.target, &[Status::Cancelled])
            {
                break;
            }
            if self.ends(endpoint, waiting[0], &UNREAD) && self.can(Action::Transmit(pair)) {
                self.take_turn(pair);
            } else if self.card.timing.own.contains_key(&pair) {
                self.transmit_own(cycle, pair);
            } else if self.ends(endpoint, cancel.target, &FAILURES)
                && !self.failed.contains(&pair)
                && self.failing != Some(pair)
                && self.fails_later(pair)
            {
                self.fail(cycle, pair, false);
            } else if self.shows_later(pair) && self.can(Action::Transmit(pair)) {
                self.take_turn(pair);
                let frame = self.card.frame_out().expect("a turn gives a frame");
                let early = self.early.entry(pair).or_default();
                early.push_back((frame, self.messages_out));
                self.compared.early += 1;
            } else if !self.wire.is_empty() {
                self.receive(cycle, "a cancel is too late");
            } else {
                break;
            }
        }
        self.card.step(Action::Send(endpoint));
    }

    /// Whether the next message of a pair is with the transmitter: it is among those that go out next, see [`Follower::goes_late`].
    fn shows_later(&self, pair: u16) -> bool {
        let next = self.card.credits(pair).source.taken;
        let frames = self.events.iter().filter_map(|(_, event)| match event {
            Event::FrameOut(frame, _) => Some(glance(frame)),
            _ => None,
        });
        let messages = frames.filter(|shown| shown.message.is_some());
        let mut given = messages.take(JOBS + 1);
        given.any(|shown| shown.from == pair && shown.message == Some(next))
    }

    /// Where the gates had a descriptor for a send, one of its pair's sends had ended before: its turn came to nothing, or its acknowledgement had come.
    fn make_descriptor_free(&mut self, cycle: u64, endpoint: u8, send: &SendRequest) {
        let pair = send.pair;
        let connected = self.endpoints.get(&pair) == Some(&endpoint);
        while connected
            && !self.failed.contains(&pair)
            && self.card.sends().room(pair) == 0
            && !self.ends(endpoint, send.request, &REFUSED)
        {
            let first = self.card.sends().waiting(pair).next();
            let unread = first.is_some_and(|first| self.ends(endpoint, first.request, &UNREAD));
            if unread && self.can(Action::Transmit(pair)) {
                self.take_turn(pair);
            } else if let Some(other) = self.card.timing.own.get(&pair).copied() {
                match self.next_own() {
                    Some(next) => self.look_own(next),
                    None if self.can(Action::Control(other)) => self.tell_own(cycle, other),
                    None => break,
                }
            } else if self.wire.is_empty() {
                break;
            } else {
                self.receive(cycle, "a descriptor is free");
            }
        }
    }

    /// Whether nobody is told of a pair's envelopes any more: it has failed, or is just about to.
    fn is_silent(&self, pair: u16) -> bool {
        let told = |event: &Event| matches!(event, Event::Sink { pair: told, .. } if *told == pair);
        let silent = || !self.events.iter().any(|(_, event)| told(event));
        self.failed.contains(&pair) || (self.fails_later(pair) && silent())
    }

    /// Whether the gates will have failed a pair.
    fn fails_later(&self, pair: u16) -> bool {
        let of = |command: &Command| {
            command.operation == Match::TakePostedOfPair && command.pair == pair
        };
        let commands = &self.card.timing.commands;
        commands.iter().any(|(_, command, ..)| of(command))
    }

    /// The gates have come to rest, so the model must too, and both have to have the same.
    fn end(mut self, story: &Story) -> Compared {
        loop {
            self.ring_again(u64::MAX);
            let actions = self.card.actions();
            let owes = |action: &Action| match action {
                Action::Control(pair) => !self.card.timing.own.contains_key(pair),
                _ => false,
            };
            let Some(&action) = actions.iter().find(|action| !owes(action)) else {
                // One frame may have said of two messages that they were missing, or have answered two that asked.
                let told = |pair: &u16| {
                    let asked = self.asked.get(pair).is_some_and(|asked| *asked > 1);
                    self.answered.contains(pair) || self.gaps_told.contains_key(pair) || asked
                };
                let early = |action: &&Action| {
                    matches!(action, Action::Control(pair)
                    if told(pair) && !self.card.has_news(*pair))
                };
                let owed: Vec<&Action> = actions.iter().filter(|action| !early(action)).collect();
                assert!(owed.is_empty(), "the gates owe no control frame: {owed:?}");
                break;
            };
            match action {
                Action::Send(endpoint) => self.fetch_send(u64::MAX, endpoint),
                Action::Receive => self.receive(u64::MAX, "the end"),
                Action::Transmit(pair) => self.take_turn(pair),
                _ => self.card.step(action),
            }
            assert_eq!(self.card.frame_out(), None, "the gates sent no such frame");
        }
        for (pair, known) in &self.card.timing.gaps {
            if !self.failed.contains(pair) {
                let (gates, model) = self.gaps_told.get(pair).copied().unwrap_or_default();
                let all = [gates, model].map(|told| (1..=*known).contains(&told));
                assert_eq!(all, [true; 2], "pair {pair} tells of {known} gaps");
            }
        }
        assert!(
            self.late.values().all(VecDeque::is_empty),
            "a frame that was begun goes out"
        );
        assert!(
            self.early.values().all(VecDeque::is_empty),
            "a message whose cancel was too late goes out"
        );
        let gates = &self.card.timing;
        assert_eq!(
            gates.commands.front(),
            None,
            "a command of the gates is left"
        );
        let delivered = gates.delivered.iter();
        for left in delivered.chain(gates.acknowledged.values()) {
            assert_eq!(left.front(), None, "a completion of the gates is left");
        }
        let left = gates.others.values().flatten().next();
        assert_eq!(left, None, "a completion of the gates is left");
        if let Some(left) = self.card.memory.left() {
            panic!("the gates write {left:#x}, and the model doesn't");
        }
        let posts = story.posts.iter();
        let requests = posts.filter(|post| {
            post.ring == WorkRing::List
                || SendRequest::from_words(&post.words).opcode != Opcode::Segments.code()
        });
        self.compared.operations = requests.count();
        self.compared.completions = gates.completions;
        self.compared.ready = gates.ready;
        self.compared.stays = gates.stays;
        self.queues_written(story);
        self.counters(story);
        self.events_told(story);
        let entries = story
            .endpoints
            .iter()
            .flat_map(|opened| opened.rings[2..].to_vec());
        let entries: Vec<u64> = entries.collect();
        let pieces: BTreeMap<_, _> = self.card.memory.pieces().collect();
        for (address, bytes) in &story.memory {
            // Completions have been compared; those of different rooms have no order among each other.
            if !entries.contains(address) {
                let held = pieces[address];
                let differs = (0..bytes.len()).find(|&at| held[at] != bytes[at]);
                assert_eq!(differs, None, "byte of the memory at {address:#x}");
                self.compared.bytes += bytes.len();
            }
        }
        self.compared
    }
}

impl Follower {
    /// Counters are the same. How many control frames pairs of the card with itself need depends on time, and each is sent and received; and
    /// whether a frame came just before or just after its pair had failed does too, and it is counted either way. Of a card with itself there may be more
    /// duplicates than in the model, but no more than messages that were sent again.
    fn counters(&self, story: &Story) {
        let pairs = |all: &mut dyn FnMut(Counter) -> i64| {
            let mut counts = vec![
                all(Counter::InvalidRequests),
                all(Counter::DoorbellErrors),
                all(Counter::Expected),
                all(Counter::Unexpected),
                all(Counter::Completions),
                all(Counter::Gaps),
                all(Counter::CrcErrors),
                all(Counter::RuleDrops),
            ];
            let sent = all(Counter::FramesSent);
            let received = all(Counter::FramesReceived) + all(Counter::Duplicates);
            let dropped = all(Counter::PairErrors);
            let own = !self.card.timing.own.is_empty();
            if own {
                counts.push(received + dropped - sent);
            } else {
                counts.extend([sent, received + dropped]);
            }
            if self.failed.is_empty() {
                counts.push(dropped);
                if !own {
                    counts.push(all(Counter::Duplicates));
                }
            }
            counts
        };
        let of_gates = |counter: Counter| {
            let found = story.counters.iter().find(|(c, _)| *c == counter);
            found.map_or(0, |&(_, counted)| counted as i64)
        };
        let of_model = |counter: Counter| i64::from(self.card.counter(counter));
        assert_eq!(
            pairs(&mut { of_model }),
            pairs(&mut { of_gates }),
            "counters, the model's and the gates'"
        );
        // A message of the card to itself is sent again by time alone, and the model isn't told; it may be a duplicate then.
        if self.failed.is_empty() {
            let more = |counter| of_gates(counter) - of_model(counter);
            let (duplicates, repeats) = (more(Counter::Duplicates), more(Counter::Repeats));
            assert!(
                (0..=repeats).contains(&duplicates),
                "{duplicates} more duplicates, and {repeats} more messages sent again"
            );
        }
    }

    /// Each endpoint got the same events; those of different blocks have no order among each other.
    fn events_told(&self, story: &Story) {
        let key = |event: &abi::event::Event| (event.cause, event.pair, event.info);
        let pieces: BTreeMap<_, _> = self.card.memory.pieces().collect();
        for (opened, told) in story.endpoints.iter().zip(&story.events) {
            let tail = self.card.read_register(opened.endpoint, EVENT_TAIL) as usize;
            let entries = pieces[&opened.rings[3]]
                .chunks_exact(EVENT_BYTES)
                .take(tail);
            let raised = entries.map(|entry| {
                let words: Vec<u64> = entry
                    .chunks_exact(8)
                    .map(|word| u64::from_le_bytes(word.try_into().expect("eight")))
                    .collect();
                abi::event::Event::from_words(&words.try_into().expect("four"))
            });
            let mut raised: Vec<_> = raised.map(|event| key(&event)).collect();
            let mut told: Vec<_> = told.iter().map(key).collect();
            raised.sort_unstable();
            told.sort_unstable();
            assert_eq!(raised, told, "events, the model's and the gates'");
        }
    }
}

/// Where the model's completion queue of an endpoint is.
fn completions_of(endpoint: u8) -> u64 {
    1 << 62 | u64::from(endpoint) << 32
}

/// Whether a request of a list ring makes such a command.
fn is_listed(operation: Match) -> bool {
    matches!(
        operation,
        Match::Post | Match::Probe | Match::Claim | Match::Cancel
    )
}

fn set_up(card: &mut Card<Weak, Gates>, story: &Story) {
    let setup = CardSetup {
        mac: story.mac,
        ..CardSetup::default()
    };
    card.control(Operation::CardSet, 0, &setup.to_words());
    for opened in &story.endpoints {
        let endpoint = opened.endpoint;
        let names = [RING_SEND, RING_LIST, RING_COMPLETION, RING_EVENT];
        let places = opened.rings.into_iter().zip(opened.log2);
        for (ring, (base, log2)) in names.into_iter().zip(places) {
            let (base, log2) = match ring {
                RING_COMPLETION => (completions_of(endpoint), COMPLETIONS_LOG2),
                _ => (base, log2),
            };
            let setup = RingSetup {
                base,
                log2,
                ..RingSetup::default()
            };
            let index = ring_index(endpoint, ring);
            card.control(Operation::RingSet, index, &setup.to_words());
        }
        let setup = EndpointSetup {
            domain: opened.completion_owner,
            completion_owner: opened.completion_owner,
            epoch: opened.epoch,
            ..EndpointSetup::default()
        };
        card.control(Operation::EndpointSet, endpoint.into(), &setup.to_words());
        for (key, base, length) in opened.regions {
            let region = RegionSetup {
                base,
                length,
                tag: key_tag(key),
                domain: opened.completion_owner,
                rights: abi::control::RIGHT_LOCAL_READ | abi::control::RIGHT_LOCAL_WRITE,
                ..RegionSetup::default()
            };
            card.control(Operation::RegionSet, key_index(key), &region.to_words());
        }
    }
    for (pair, setup) in &story.pairs {
        card.control(Operation::PairSet, *pair, &setup.to_words());
    }
    for (row, (rule, _)) in (0..).zip(&story.rules) {
        card.control(Operation::RuleSet, row, &rule.to_words());
    }
    for (row, _) in (0..).zip(&story.rules).filter(|(_, (_, holds))| !holds) {
        card.control(Operation::RuleClear, row, &[]);
    }
}
