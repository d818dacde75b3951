//! The sending side of the pairs: sends wait for credit and for their turn, and stay known until the peer has acknowledged them.
//!
//! ```text
//!  post ──► waiting ── turn, with credit ──► given ──► left ── progress, fault ──► completion
//!             │ refused, cancelled ─────────────┴───────────────────────────────────────┘
//! ```
//!
//! The sends of a pair are one queue, from number `acknowledged` on: first those that have left, then those that are given, then those that wait. It holds as
//! many as the pair has descriptors. Always `acknowledged ≤ safe ≤ left ≤ taken` and `returned ≤ safe`; a message is given
//! only while `taken < returned + granted` and `taken < acknowledged + 16`. A pair goes back to the first send that isn't
//! acknowledged when its peer misses one: the sends that have left are given again, in order and with their numbers, before any other. When nothing is
//! acknowledged for its time-out, it gives the last that has left again, and that alone: a peer that misses one in front of it says so.
//!
//! If the peer takes what was in front of that one by itself, it was slow, and the pair waits twice as long from then on; half as long, if what was given again is the first thing
//! that it acknowledges; and as long as ever when it has reported a gap.
//!
//! A put stands in the same queue. It takes no credit: it is given while fewer than [`MAX_UNACKNOWLEDGED`] of the pair's sends are unacknowledged. Its number counts among
//! the credits used until the peer returns it, which it does when it has written the put: so a message behind puts that are on their way may wait for them.
//!
//! A get is given as a put is, and needs more than to be safe at the peer: it ends when its answer is in its buffer. So the pair's sends end up to the first get that
//! isn't answered. `safe` is the number up to which the peer has the sends, and a pair that goes back begins there. While a get has no answer
//! credits of messages behind it come back and nothing ends; since a frame tells the outcomes of 16 requests, no more than these are given.
//!
//! A peer that has all that has left, and owes answers, may have many to answer first. So when a time-out is over the pair asks it whether it is there. Only after
//! [`ANSWER_TIMEOUTS`] of these without an answer, or if an answer has overtaken the first that is awaited, it asks for the answers again: the gets that
//! wait for one are given again, and of what the peer has nothing else. It fails if that has been for nothing too often.

use std::collections::{BTreeMap, VecDeque};

use abi::completion::{Completion, CompletionKind};
use abi::control::{Counter, PairCounter, PairReport, PairSetup};
use abi::limits::{EAGER_MAX, MAX_CREDITS, MAX_UNACKNOWLEDGED};
use abi::mailbox::PairState;
use abi::opcode::OpcodeRow;
use abi::request::{FLAG_ERRORS_ONLY, MAX_SEGMENTS, Opcode, Segment, SendRequest};
use abi::status::Status;
use abi::times::{ANSWER_TIMEOUTS, DOUBLINGS};

use crate::breaks::Break;
use crate::output::{Answered, Output, Reason};

/// Segments of a gather behind the first. Those of another send are empty.
pub type Segments = [Segment; MAX_SEGMENTS - 1];

/// A send with its whole buffer.
#[derive(Clone, Copy, Debug)]
pub struct Posted {
    /// The request.
    pub request: SendRequest,
    /// Segments behind that which it names itself.
    pub segments: Segments,
}

impl Posted {
    /// Every segment, in order.
    pub fn all(&self) -> impl Iterator<Item = Segment> {
        std::iter::once(self.request.segment()).chain(self.segments)
    }

    /// Whether it is a put.
    pub fn is_put(&self) -> bool {
        self.request.opcode == Opcode::Put.code()
    }

    /// Whether it is a get.
    pub fn is_get(&self) -> bool {
        self.request.opcode == Opcode::Get.code()
    }

    /// Whether it reaches into the peer's memory, and is no message.
    pub fn is_remote(&self) -> bool {
        self.is_put() || self.is_get()
    }

    /// Length of the message; 2^64 − 1 if it is longer than that.
    pub fn length(&self) -> u64 {
        let add = |sum: u64, segment: Segment| sum.saturating_add(segment.length);
        self.all().fold(0, add)
    }
}

/// What a send completes with.
#[derive(Clone, Copy, Debug)]
struct Sent {
    request: u32,
    context: u16,
    /// It completes only on error.
    errors_only: bool,
    is_remote: bool,
}

/// How far the answer of a get has come that has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// It is waited for.
    Awaited,
    /// It is on its way to the buffer.
    Coming,
    /// The get ends with this.
    Ends(Status),
}

/// A pair, from the side that sends.
#[derive(Clone, Debug, Default)]
struct Source {
    connected: bool,
    failed: Option<u8>,
    /// Its failure has been asked for.
    failing: bool,
    endpoint: u8,
    domain: u8,
    granted: u32,
    /// Sends that its run of descriptors holds.
    holds: usize,
    /// Log2 of the time without acknowledgement after which it gives its last send again; 0: it never does.
    timeout_log2: u8,
    /// Times that it does so before it fails.
    retry_limit: u8,
    /// Its sends, from number `acknowledged` on.
    sends: VecDeque<Posted>,
    /// Number behind the last send that has left.
    left: u32,
    /// Number of the send that is given next: `taken`, unless the pair goes back.
    turn: u32,
    /// Jobs of sends that are given again, not answered yet.
    repeats: usize,
    /// Times that it has gone back or asked since it heard of something.
    tries: u8,
    /// At a time-out it has given only the last that has left again, or is about to, and has heard of nothing since.
    probed: bool,
    /// Log2 of how many times its time-out it waits first for what isn't safe at its peer.
    learned: u8,
    taken: u32,
    acknowledged: u32,
    /// Sends that are safe at the peer: those behind `acknowledged` stand behind a get without an answer.
    safe: u32,
    /// Bit k: send `safe` − 1 − k was refused.
    refused: u16,
    /// Gets that have left, by their numbers.
    answers: BTreeMap<u32, Answer>,
    returned: u32,
    /// When something last became unacknowledged or acknowledged, an answer came, or the peer was asked.
    since: u64,
    /// Time-outs since an answer last came or was asked for again, in which the peer had all and owed answers.
    quiet: u8,
    /// Times that answers were asked for again since one last came.
    asked_again: u8,
    /// An answer has come of a get behind the first that waits for one.
    overtaken: bool,
    /// It goes back for answers, and not for what the peer misses.
    for_answers: bool,
}

/// What a pair waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaits {
    /// That the peer has what has left, or that the wire takes what is given.
    Acknowledgement,
    /// Answers of gets that the peer has.
    Answers,
    /// A credit, with nothing on its way that could bring one.
    Credit,
}

impl Source {
    fn in_use(&self) -> u32 {
        self.taken.wrapping_sub(self.returned)
    }

    /// The first send that waits may be given: each needs a place in the window of the outcomes that a frame tells, and a message a credit too. Behind a get without
    /// an answer credits come back while nothing ends.
    fn may_give_first(&self, broken: Break) -> bool {
        let unacknowledged = self.taken.wrapping_sub(self.acknowledged);
        let has_place = unacknowledged < u32::from(MAX_UNACKNOWLEDGED);
        self.waiting().next().is_some_and(|first| {
            match first.is_remote() && broken != Break::PutWaitsForCredit {
                true => has_place,
                false => has_place && self.in_use() < self.granted,
            }
        })
    }

    /// It can go on: nothing has failed it, and nothing is about to.
    fn sound(&self) -> bool {
        self.connected && self.failed.is_none() && !self.failing
    }

    /// Where the send of this number is in the queue.
    fn at(&self, number: u32) -> usize {
        number.wrapping_sub(self.acknowledged) as usize
    }

    /// Those that have left.
    fn sent(&self) -> impl Iterator<Item = &Posted> {
        self.sends.iter().take(self.at(self.left))
    }

    fn has_sent(&self) -> bool {
        self.left != self.acknowledged
    }

    /// Those that wait.
    fn waiting(&self) -> impl Iterator<Item = &Posted> {
        self.sends.iter().skip(self.at(self.taken))
    }

    fn waits(&self) -> bool {
        self.waiting().next().is_some()
    }

    /// Sends wait for a credit, and nothing is on its way that could bring one.
    fn is_dry(&self, broken: Break) -> bool {
        self.waits() && self.taken == self.acknowledged && !self.may_give_first(broken)
    }

    /// The peer has this send, and no answer of it is asked for: it isn't given again.
    fn is_passed_over(&self, number: u32) -> bool {
        let asks = self.for_answers && self.answers.get(&number) == Some(&Answer::Awaited);
        number.wrapping_sub(self.safe) >> 31 != 0 && !asks
    }

    /// Number of the send that is given next.
    fn next(&self) -> u32 {
        let mut next = self.turn;
        while next != self.taken && next != self.left && self.is_passed_over(next) {
            next = next.wrapping_add(1);
        }
        next
    }

    /// It goes back, and there is a send that hasn't been given again.
    fn repeats_left(&self) -> bool {
        let next = self.next();
        next != self.taken && next != self.left
    }

    /// Whatever is to be given again has been, or the pair doesn't go back.
    fn may_go_on(&self) -> bool {
        self.next() == self.taken
    }

    /// What it waits for, if for anything.
    fn awaits(&self, broken: Break) -> Option<Awaits> {
        if self.left != self.safe || self.taken != self.acknowledged && !self.has_sent() {
            Some(Awaits::Acknowledgement)
        } else if self.has_sent() {
            Some(Awaits::Answers)
        } else {
            self.is_dry(broken).then_some(Awaits::Credit)
        }
    }

    /// At the next time-out it asks for the answers again.
    fn is_due(&self, broken: Break) -> bool {
        let too_soon = broken == Break::AnswersAskedTooSoon;
        self.overtaken || too_soon || self.quiet + 1 >= ANSWER_TIMEOUTS
    }

    /// An answer has come, or what stood behind one has ended.
    fn hears_answer(&mut self, now: u64) {
        (self.since, self.tries) = (now, 0);
        (self.quiet, self.asked_again) = (0, 0);
    }

    /// Time for which it waits now, if not for ever.
    fn patience(&self) -> Option<u64> {
        let learned = if self.left == self.safe {
            0
        } else {
            self.learned
        };
        let timeout = |log2: u8| 1_u64 << (log2 + (self.tries + learned).min(DOUBLINGS));
        (self.timeout_log2 != 0).then(|| timeout(self.timeout_log2))
    }

    /// Its failure is asked for: it has tried too often.
    fn gives_up(&mut self, pair: u16) -> Output {
        self.failing = true;
        let status = Status::PeerFailed.code();
        Output::Fail { pair, status }
    }

    /// The first of those that are given has ended with its pair: its number is used up.
    fn use_up(&mut self) {
        self.sends.pop_front();
        self.left = self.left.wrapping_add(1);
        (self.acknowledged, self.safe) = (self.left, self.left);
    }

    /// All that it has ends, but those that are given, and of those that wait what is to be kept.
    fn ends(
        &mut self,
        number: u16,
        status: u8,
        keeps: impl Fn(&SendRequest) -> bool,
    ) -> Vec<Output> {
        let endpoint = self.endpoint;
        let ended = |send: Posted| Sent::of(&send).completion(endpoint, number, status);
        let waiting = self.sends.split_off(self.at(self.taken));
        let given = self.sends.split_off(self.at(self.left));
        let (kept, waiting): (Vec<_>, Vec<_>) =
            waiting.into_iter().partition(|send| keeps(&send.request));
        let sent = std::mem::replace(&mut self.sends, given);
        self.sends.extend(kept);
        (self.acknowledged, self.safe, self.turn) = (self.left, self.left, self.taken);
        self.answers.clear();
        sent.into_iter().chain(waiting).map(ended).collect()
    }
}

impl Sent {
    fn of(posted: &Posted) -> Self {
        let request = &posted.request;
        Self {
            request: request.request,
            context: request.context,
            errors_only: request.flags & FLAG_ERRORS_ONLY != 0,
            is_remote: posted.is_remote(),
        }
    }

    fn completion(&self, endpoint: u8, pair: u16, status: u8) -> Output {
        let entry = Completion {
            request: self.request,
            pair,
            context: self.context,
            status,
            kind: CompletionKind::Send.code(),
            ..Completion::default()
        };
        Output::Complete { endpoint, entry }
    }
}

/// A send whose turn it is.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// Pair.
    pub pair: u16,
    /// Protection domain that it is sent from.
    pub domain: u8,
    /// Number of its frame.
    pub sequence: u32,
    /// The send.
    pub posted: Posted,
    /// It has been sent before.
    pub again: bool,
}

/// A get whose answer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// Its number.
    pub number: u32,
    /// Protection domain of its endpoint.
    pub domain: u8,
    /// Where the answer goes.
    pub buffer: Segment,
    /// The peer has refused it.
    pub refused: bool,
}

/// What a frame of the peer says of this side's sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Pair.
    pub pair: u16,
    /// Sends that are safe at the peer: a running number.
    pub acknowledge: u32,
    /// Envelopes returned: a running number.
    pub credit: u32,
    /// The peer asks for a frame.
    pub ask: bool,
    /// The peer misses a request: the pair is to go back.
    pub gap: bool,
    /// A request of the peer is missing here: it is to be told.
    pub misses: bool,
    /// Bit k: send `acknowledge` − 1 − k was refused.
    pub refused: u16,
}

/// Running numbers of a pair's sending side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceNumbers {
    /// Credits used.
    pub taken: u32,
    /// Sends that have ended.
    pub acknowledged: u32,
    /// Sends that are safe at the peer.
    pub safe: u32,
    /// Credits that came back.
    pub returned: u32,
    /// Credits that there are.
    pub granted: u32,
}

/// The sending side of all pairs.
#[derive(Clone, Debug)]
pub struct Sends {
    pairs: Vec<Source>,
    broken: Break,
}

impl Sends {
    /// So many pairs, none of which is connected.
    pub fn new(pairs: usize) -> Self {
        Self {
            pairs: vec![Source::default(); pairs],
            broken: Break::None,
        }
    }

    /// Breaks the room on purpose.
    pub fn break_on_purpose(&mut self, broken: Break) {
        self.broken = broken;
    }

    fn get(&self, pair: u16) -> Option<&Source> {
        self.pairs.get(usize::from(pair))
    }

    /// The connected pair of this number, if it is the endpoint's.
    fn own(&mut self, endpoint: u8, pair: u16) -> Option<&mut Source> {
        let source = self.pairs.get_mut(usize::from(pair))?;
        (source.connected && source.endpoint == endpoint).then_some(source)
    }

    /// Running numbers of a pair.
    pub fn numbers(&self, pair: u16) -> SourceNumbers {
        self.get(pair)
            .map_or_else(SourceNumbers::default, |s| SourceNumbers {
                taken: s.taken,
                acknowledged: s.acknowledged,
                safe: s.safe,
                returned: s.returned,
                granted: s.granted,
            })
    }

    /// Takes a request that is well-formed.
    pub fn take(&mut self, endpoint: u8, row: &OpcodeRow, posted: Posted) -> Vec<Output> {
        match row.opcode {
            Opcode::TaggedSend | Opcode::Put | Opcode::Get => self.post(endpoint, posted),
            Opcode::CancelSend => self.cancel(endpoint, &posted.request),
            Opcode::Segments
            | Opcode::TaggedReceive
            | Opcode::Cancel
            | Opcode::Probe
            | Opcode::Claim
            | Opcode::ReceiveClaimed
            | Opcode::Discard => unreachable!("the decoder of the send ring refuses it"),
        }
    }

    /// How many more sends of a pair there are descriptors for.
    pub fn room(&self, pair: u16) -> usize {
        self.get(pair)
            .map_or(0, |source| source.holds.saturating_sub(source.sends.len()))
    }

    /// Takes a send: it waits, or is refused.
    pub fn post(&mut self, endpoint: u8, posted: Posted) -> Vec<Output> {
        self.queue(endpoint, posted, true)
    }

    /// Takes a send of a pair whose failure has not reached its sends yet: it waits until a cancel ends it, and never leaves.
    /// Any other request is taken as ever.
    pub fn keep(&mut self, endpoint: u8, row: &OpcodeRow, posted: Posted) -> Vec<Output> {
        match row.opcode {
            Opcode::TaggedSend => self.queue(endpoint, posted, false),
            _ => self.take(endpoint, row, posted),
        }
    }

    /// A send waits, or is refused: by a failure of its pair only if that `counts`.
    fn queue(&mut self, endpoint: u8, posted: Posted, counts: bool) -> Vec<Output> {
        let pair = posted.request.pair;
        let source = self.own(endpoint, pair);
        let (status, malformed) = match source {
            None => (Status::InvalidPair.code(), true),
            Some(_) if posted.length() > EAGER_MAX as u64 => (Status::TooLong.code(), true),
            Some(Source {
                failed: Some(status),
                ..
            }) if counts => (*status, false),
            Some(source) if source.sends.len() >= source.holds => (Status::QueueFull.code(), false),
            Some(source) => {
                source.sends.push_back(posted);
                return Vec::new();
            }
        };
        let refused = Sent::of(&posted).completion(endpoint, pair, status);
        let count = malformed.then_some(Output::Count(Counter::InvalidRequests));
        std::iter::once(refused).chain(count).collect()
    }

    /// Ends a send that isn't taken: the second entry of a gather can't be read, or there was no descriptor for it.
    pub fn refuse_request(&self, endpoint: u8, request: &SendRequest, status: Status) -> Output {
        let posted = Posted {
            request: *request,
            segments: Segments::default(),
        };
        Sent::of(&posted).completion(endpoint, request.pair, status.code())
    }

    /// Takes a cancel: the send that it names ends if it still waits, and only then.
    pub fn cancel(&mut self, endpoint: u8, request: &SendRequest) -> Vec<Output> {
        let pair = request.pair;
        let found = self.own(endpoint, pair).and_then(|source| {
            let is_target = |s: &Posted| s.request.request == request.target;
            let waiting = source.waiting().position(is_target)?;
            source.sends.remove(source.at(source.taken) + waiting)
        });
        let Some(send) = found else {
            let entry = Completion {
                request: request.request,
                pair,
                status: Status::TooLate.code(),
                kind: CompletionKind::Cancel.code(),
                ..Completion::default()
            };
            return vec![Output::Complete { endpoint, entry }];
        };
        let ended = Sent::of(&send).completion(endpoint, pair, Status::Cancelled.code());
        vec![ended, Output::Release { endpoint }]
    }

    /// Whether a send of the pair may go out.
    pub fn has_turn(&self, pair: u16) -> bool {
        let first = |s: &Source| s.may_go_on() && s.may_give_first(self.broken);
        let ready = |s: &Source| s.sound() && (s.repeats_left() || first(s));
        self.get(pair).is_some_and(ready)
    }

    /// Sends of a pair that wait.
    pub fn waiting(&self, pair: u16) -> impl Iterator<Item = &SendRequest> {
        self.get(pair)
            .into_iter()
            .flat_map(Source::waiting)
            .map(|posted| &posted.request)
    }

    /// Requests of a pair's sends that are on their way: nobody knows what has become of them.
    pub fn on_their_way(&self, pair: u16) -> impl Iterator<Item = u32> {
        let sent = self.get(pair).into_iter().flat_map(Source::sent);
        sent.map(|sent| sent.request.request)
    }

    /// Whether payloads of the pair's sends are being read again: until they have been, nothing that the peer says ends one, and no fault.
    pub fn is_read_again(&self, pair: u16) -> bool {
        self.get(pair).is_some_and(|source| source.repeats > 0)
    }

    /// Times that the pair has gone back, or asked its peer, since it heard of something.
    pub fn tries(&self, pair: u16) -> u8 {
        self.get(pair).map_or(0, |source| source.tries)
    }

    /// Times that the pair has asked for answers again since one came, if at the next time-out at which it waits for some it does so again.
    pub fn asked_again(&self, pair: u16) -> Option<u8> {
        let source = self.get(pair)?;
        (source.is_due(self.broken)).then_some(source.asked_again)
    }

    /// Whether some get of the pair that has left has no answer.
    pub fn owes_an_answer(&self, pair: u16) -> bool {
        let is_open = |answer: &Answer| !matches!(answer, Answer::Ends(_));
        self.get(pair)
            .is_some_and(|source| source.answers.values().any(is_open))
    }

    /// The pair's peer is there: it has all tries again.
    pub fn hears_life(&mut self, pair: u16) {
        if let Some(source) = self.pairs.get_mut(usize::from(pair)) {
            source.tries = 0;
        }
    }

    /// Whether the pair has given the last that has left again, or is about to, and has heard of nothing since.
    pub fn is_probed(&self, pair: u16) -> bool {
        self.get(pair).is_some_and(|source| source.probed)
    }

    /// It is this one that the pair gives again at its time-out: when it was over, the pair didn't know of all that had left.
    pub fn probes(&mut self, pair: u16, number: u32) {
        if let Some(source) = self.pairs.get_mut(usize::from(pair)) {
            let behind = source.left.wrapping_sub(number);
            let on_their_way = source.left.wrapping_sub(source.safe);
            if source.probed && source.turn != source.taken && behind <= on_their_way {
                source.turn = number;
            }
        }
    }

    /// Whether some that it has would be given again, had the peer not got them.
    pub fn passes_over(&self, pair: u16) -> bool {
        self.get(pair)
            .is_some_and(|source| source.next() != source.turn)
    }

    /// For how long the pair waits now for an acknowledgement; 0 for ever.
    pub fn patience(&self, pair: u16) -> u64 {
        let patience = |source: &Source| source.patience().unwrap_or(0);
        self.get(pair).map_or(0, patience)
    }

    /// The next send that is given again, or else the pair's oldest waiting send, which takes a credit and its number.
    pub fn turn(&mut self, pair: u16) -> Option<Job> {
        if !self.has_turn(pair) {
            return None;
        }
        let source = self.pairs.get_mut(usize::from(pair))?;
        let sequence = source.next();
        let posted = *source.sends.get(source.at(sequence))?;
        source.turn = sequence.wrapping_add(1);
        if sequence != source.taken {
            if source.probed {
                source.turn = source.taken;
            }
            return self.again(pair, sequence);
        }
        source.taken = source.turn;
        Some(Job {
            pair,
            domain: source.domain,
            sequence,
            posted,
            again: false,
        })
    }

    /// This one of the pair's unacknowledged sends, once more.
    pub fn again(&mut self, pair: u16, sequence: u32) -> Option<Job> {
        let passes_over = self.broken == Break::RepeatPassedOver;
        let source = self.pairs.get_mut(usize::from(pair))?;
        let posted = *source.sent().nth(source.at(sequence))?;
        let last = *source.sent().last()?;
        source.repeats += 1;
        Some(Job {
            pair,
            domain: source.domain,
            sequence,
            posted: if passes_over { last } else { posted },
            again: true,
        })
    }

    /// The job's frame will be sent; unless its pair has failed since its turn: then it ends as the others of the pair did.
    pub fn sent(&mut self, job: &Job, now: u64) -> Vec<Output> {
        let Some(source) = self.pairs.get_mut(usize::from(job.pair)) else {
            return Vec::new();
        };
        if job.again {
            source.repeats = source.repeats.saturating_sub(1);
            return Vec::new();
        }
        if let Some(status) = source.failed {
            let sent = Sent::of(&job.posted);
            source.use_up();
            return vec![sent.completion(source.endpoint, job.pair, status)];
        }
        if !source.has_sent() {
            source.since = now;
        }
        // By the number that it leaves with: one in front of it may have been refused since it had its turn.
        if job.posted.is_get() {
            source.answers.insert(source.left, Answer::Awaited);
        }
        source.left = source.left.wrapping_add(1);
        Vec::new()
    }

    /// The get that an answer of a pair's peer is for, if it waits for one of so many bytes, or for a refusal (`None`): the answer goes to its buffer from now on, and
    /// no other one does.
    pub fn take_answer(&mut self, pair: u16, number: u32, bytes: Option<usize>) -> Option<Awaited> {
        let source = self.pairs.get_mut(usize::from(pair))?;
        let source = (source.connected && source.failed.is_none()).then_some(source)?;
        let request = source.sends.get(source.at(number))?.request;
        let answer = source.answers.get_mut(&number)?;
        let fits = bytes.is_none_or(|bytes| bytes as u64 == request.length);
        let takes = *answer == Answer::Awaited && fits;
        takes.then(|| *answer = Answer::Coming)?;
        Some(Awaited {
            number,
            domain: source.domain,
            buffer: request.segment(),
            refused: bytes.is_none(),
        })
    }

    /// Whether the answer of this get is on its way to its buffer, and the get hasn't ended with its pair.
    pub fn takes_answer(&self, pair: u16, number: u32) -> bool {
        let source = self.get(pair);
        source.is_some_and(|source| source.answers.get(&number) == Some(&Answer::Coming))
    }

    /// The answer of a get is in its buffer, or won't be: the get ends, and with it what waited behind it, up to the next get without an answer.
    pub fn answered(&mut self, answered: &Answered, now: u64) -> Vec<Output> {
        let Some(source) = self.pairs.get_mut(usize::from(answered.pair)) else {
            return Vec::new();
        };
        let Some(answer) = source.answers.get_mut(&answered.number) else {
            return Vec::new();
        };
        *answer = Answer::Ends(answered.status);
        source.hears_answer(now);
        source.overtaken = true;
        self.end_sent(answered.pair, now)
    }

    /// Ends the sends of a pair that are safe at the peer, up to the first get without an answer.
    fn end_sent(&mut self, pair: u16, now: u64) -> Vec<Output> {
        let ignores_refusals = self.broken == Break::RefusalUnheard;
        let tells_success = self.broken == Break::SuccessTold;
        let waits_not = self.broken == Break::GetEndsUnanswered;
        let source = &mut self.pairs[usize::from(pair)];
        let mut outputs = Vec::new();
        while source.acknowledged != source.safe {
            let number = source.acknowledged;
            let answer = source.answers.get(&number).copied();
            if matches!(answer, Some(Answer::Awaited | Answer::Coming)) && !waits_not {
                break;
            }
            source.answers.remove(&number);
            let posted = source
                .sends
                .pop_front()
                .expect("it is known until it is safe");
            let sent = Sent::of(&posted);
            let later = source.safe.wrapping_sub(number) - 1;
            let refused = source.refused.checked_shr(later).unwrap_or(0) & 1 != 0;
            let status = match (refused && !ignores_refusals, sent.is_remote, answer) {
                (false, _, Some(Answer::Ends(status))) => status,
                (true, false, _) => Status::NotReady,
                (true, true, _) => Status::RemoteAccess,
                (false, _, _) => Status::Success,
            };
            let endpoint = source.endpoint;
            let silent = sent.errors_only && status == Status::Success;
            outputs.push(match silent && !tells_success {
                true => Output::Release { endpoint },
                false => sent.completion(endpoint, pair, status.code()),
            });
            source.acknowledged = number.wrapping_add(1);
            source.overtaken = false;
            source.hears_answer(now);
        }
        // What has ended needn't be given again.
        if source.acknowledged.wrapping_sub(source.turn) >> 31 == 0 {
            source.turn = source.acknowledged;
        }
        outputs
    }

    /// The failure of a pair has been asked for: it does nothing more until it comes.
    pub fn give_up(&mut self, pair: u16) {
        if let Some(source) = self.pairs.get_mut(usize::from(pair)) {
            source.failing = true;
        }
    }

    /// The job's payload may not or can't be read: it ends, and its credit and number are given back. If it had been sent before, its number can't be passed
    /// over: its pair fails.
    pub fn refuse(&mut self, job: &Job, status: Status) -> Vec<Output> {
        let Some(source) = self.pairs.get_mut(usize::from(job.pair)) else {
            return Vec::new();
        };
        if job.again {
            source.repeats = source.repeats.saturating_sub(1);
            if !source.sound() {
                return Vec::new();
            }
            source.failing = true;
            let (pair, status) = (job.pair, Status::LocalProtection.code());
            return vec![Output::Fail { pair, status }];
        }
        if source.failed.is_some() {
            source.use_up();
        } else {
            source.sends.remove(source.at(source.left));
            if source.turn == source.taken {
                source.turn = source.turn.wrapping_sub(1);
            }
            source.taken = source.taken.wrapping_sub(1);
        }
        let sent = Sent::of(&job.posted);
        let mut outputs = vec![sent.completion(source.endpoint, job.pair, status.code())];
        if status == Status::LocalProtection {
            outputs.push(Output::Count(Counter::InvalidRequests));
        }
        outputs
    }

    /// Takes the peer's numbers. From what is known up to what can be true they move on, from before that they are late, and anything else
    /// is a lie and fails the pair.
    pub fn progress(&mut self, progress: &Progress, now: u64) -> Vec<Output> {
        let number = progress.pair;
        let Some(source) = self.pairs.get_mut(usize::from(number)) else {
            return Vec::new();
        };
        if !source.sound() {
            return Vec::new();
        }
        let moves = |from: u32, to: u32, room: u32| match to.wrapping_sub(from) {
            ahead if ahead <= room => Ok(to),
            ahead if ahead >> 31 != 0 => Ok(from),
            _ => Err(()),
        };
        let on_their_way = source.left.wrapping_sub(source.safe);
        let awaits = source.awaits(self.broken);
        let asked = matches!(awaits, Some(Awaits::Answers | Awaits::Credit));
        let numbers = moves(source.safe, progress.acknowledge, on_their_way).and_then(|safe| {
            let room = safe.wrapping_sub(source.returned);
            let returned = moves(source.returned, progress.credit, room)?;
            // What is safe and not returned are messages that hold an envelope: a put's number comes back with its acknowledgement, and a get's.
            match safe.wrapping_sub(returned) <= source.granted {
                true => Ok((safe, returned)),
                false => Err(()),
            }
        });
        let Ok((safe, returned)) = numbers else {
            source.failing = true;
            let status = Status::LinkError.code();
            return vec![Output::Fail {
                pair: number,
                status,
            }];
        };
        if safe != source.safe {
            source.refused = progress.refused;
            source.since = now;
        }
        if safe != source.safe || asked {
            source.tries = 0;
        }
        let (hears_more, probed) = (safe != source.safe, source.probed);
        source.safe = safe;
        source.returned = returned;
        let mut outputs = self.end_sent(number, now);
        let source = &mut self.pairs[usize::from(number)];
        if hears_more && probed {
            (source.probed, source.turn) = (false, source.taken);
            source.learned = match source.left != source.safe {
                true => (source.learned + 1).min(DOUBLINGS),
                false => source.learned.saturating_sub(1),
            };
        }
        let reason = match (progress.ask, progress.misses) {
            (_, true) => Some(Reason::Gap),
            (true, false) => Some(Reason::Answer),
            (false, false) => None,
        };
        outputs.extend(reason.map(|reason| Output::Mark {
            pair: number,
            reason,
        }));
        // A round that is under way gives the missing one again, unless it is of the last alone.
        let may_go_back = source.may_go_on() || probed;
        if progress.gap && may_go_back && source.left != source.safe {
            source.learned = 0;
            if probed && !hears_more {
                // It is the answer to what was given again: no further try.
                (source.turn, source.probed, source.since) = (source.safe, false, now);
            } else {
                outputs.extend(self.go_back(number, now));
            }
        }
        outputs
    }

    /// A pair's sends that the peer doesn't have are given again, from the first on; or it fails, if it has heard of nothing for too many times.
    pub fn go_back(&mut self, pair: u16, now: u64) -> Option<Output> {
        let fails = self.try_again(pair, now);
        if fails.is_none()
            && let Some(source) = self.pairs.get_mut(usize::from(pair))
            && source.left != source.safe
        {
            source.turn = source.safe;
            (source.probed, source.for_answers) = (false, false);
        }
        fails
    }

    /// A time-out is over, and the peer hasn't said that it has what has left: the last of it is given again; all, if the pair hasn't given all again for a gap. Or the
    /// pair fails, as when it goes back.
    pub fn probe(&mut self, pair: u16, now: u64) -> Option<Output> {
        let is_back = |source: &Source| !source.may_go_on() && !source.probed;
        if self.get(pair).is_some_and(is_back) {
            return self.go_back(pair, now);
        }
        let fails = self.try_again(pair, now);
        if fails.is_none()
            && let Some(source) = self.pairs.get_mut(usize::from(pair))
            && source.left != source.safe
        {
            source.turn = source.left.wrapping_sub(1);
            (source.probed, source.for_answers) = (true, false);
        }
        fails
    }

    /// The peer of a pair that waits for credit, or has all and owes answers, is asked whether it is there; or the pair fails, as when it goes back.
    pub fn ask(&mut self, pair: u16, now: u64) -> Option<Output> {
        let fails = self.try_again(pair, now);
        if fails.is_none()
            && let Some(source) = self.pairs.get_mut(usize::from(pair))
            && source.has_sent()
        {
            source.quiet += 1;
        }
        fails
    }

    /// A pair's gets whose answers are awaited are given again; or it fails, if that has been for nothing too often.
    pub fn ask_for_answers(&mut self, pair: u16, now: u64) -> Option<Output> {
        let never_ends = self.broken == Break::AnswersAskedForEver;
        let source = self.pairs.get_mut(usize::from(pair))?;
        if source.asked_again >= source.retry_limit && !never_ends {
            return Some(source.gives_up(pair));
        }
        let fails = self.try_again(pair, now);
        if fails.is_none()
            && let Some(source) = self.pairs.get_mut(usize::from(pair))
        {
            source.turn = source.acknowledged;
            (source.probed, source.for_answers) = (false, true);
            source.asked_again = source.asked_again.saturating_add(1);
            (source.quiet, source.overtaken) = (0, false);
        }
        fails
    }

    /// A time-out is over, or the peer misses something: the pair tries again, or has done so too often.
    fn try_again(&mut self, pair: u16, now: u64) -> Option<Output> {
        let source = self.pairs.get_mut(usize::from(pair))?;
        if source.tries >= source.retry_limit {
            return Some(source.gives_up(pair));
        }
        source.tries += 1;
        source.since = now;
        None
    }

    /// Lets the pairs go back whose peers have been silent for too long, and asks the peers of those that wait for answers or have only waited for credit; those
    /// that have done so too often fail.
    pub fn scan(&mut self, now: u64) -> Vec<Output> {
        let mut outputs = Vec::new();
        for number in 0..self.pairs.len() {
            let source = &self.pairs[number];
            let pair = number as u16;
            let late = source.patience().map(|patience| source.since + patience);
            if !source.sound() || late.is_none_or(|late| now < late) {
                continue;
            }
            let count = |counter| Output::CountOfPair { pair, counter };
            let (timeout, ask) = (PairCounter::Timeouts, PairCounter::CreditAsks);
            match source.awaits(self.broken) {
                Some(Awaits::Acknowledgement) => {
                    outputs.push(count(timeout));
                    outputs.extend(self.probe(pair, now));
                }
                Some(Awaits::Answers) if source.is_due(self.broken) => {
                    outputs.extend([timeout, ask].map(count));
                    outputs.extend(self.ask_for_answers(pair, now));
                }
                Some(Awaits::Answers | Awaits::Credit) => match self.ask(pair, now) {
                    None => {
                        let reason = Reason::Ask;
                        outputs.extend([count(ask), Output::Mark { pair, reason }]);
                    }
                    fails => outputs.extend(fails),
                },
                None => {}
            }
        }
        outputs
    }

    /// When [`scan`](Self::scan) will find something if nothing happens before.
    pub fn next_scan(&self) -> Option<u64> {
        let waits = |s: &&Source| s.sound() && s.awaits(self.broken).is_some();
        let waiting = self.pairs.iter().filter(waits);
        let due = waiting.filter_map(|s| Some(s.since + s.patience()?));
        due.min()
    }

    /// A pair has failed: all its sends end with the status, but those that wait and are kept until a cancel ends them, as by [`Sends::keep`].
    pub fn fail(
        &mut self,
        pair: u16,
        status: u8,
        keeps: impl Fn(u8, &SendRequest) -> bool,
    ) -> Vec<Output> {
        let source = self.pairs.get_mut(usize::from(pair));
        let Some(source) = source.filter(|s| s.connected && s.failed.is_none()) else {
            return Vec::new();
        };
        source.failed = Some(status);
        if self.broken == Break::FailureKeepsSends {
            return Vec::new();
        }
        let endpoint = source.endpoint;
        source.ends(pair, status, |request| keeps(endpoint, request))
    }

    /// A pair is connected, or forgotten. What was still there of it is flushed.
    pub fn set(&mut self, pair: u16, setup: Option<&PairSetup>) -> Vec<Output> {
        let Some(source) = self.pairs.get_mut(usize::from(pair)) else {
            return Vec::new();
        };
        let outputs = source.ends(pair, Status::Flushed.code(), |_| false);
        *source = setup.map_or_else(Source::default, |setup| Source {
            connected: true,
            endpoint: setup.endpoint,
            domain: setup.domain,
            granted: u32::from(setup.remote_credits).min(MAX_CREDITS.into()),
            holds: 1 << setup.sends_log2,
            timeout_log2: setup.timeout_log2,
            retry_limit: setup.retry_limit,
            ..Source::default()
        });
        outputs
    }

    /// Another time-out and retry limit for a connected pair. What it waits for is counted from when it was before.
    pub fn set_times(&mut self, pair: u16, setup: &PairSetup) {
        let source = self.pairs.get_mut(usize::from(pair));
        if let Some(source) = source.filter(|source| source.connected) {
            source.timeout_log2 = setup.timeout_log2;
            source.retry_limit = setup.retry_limit;
            source.learned = 0;
        }
    }

    /// What a `PairRead` tells of the pair, without what it refused.
    pub fn report(&self, pair: u16) -> PairReport {
        let Some(source) = self.get(pair).filter(|source| source.connected) else {
            return PairReport::default();
        };
        let (state, available) = match source.failed {
            Some(_) => (PairState::Failed, 0),
            None => (
                PairState::Connected,
                source.granted.saturating_sub(source.in_use()),
            ),
        };
        PairReport {
            state: state.code(),
            available: available as u8,
            unacknowledged: source.sent().count() as u8,
            waiting: source.waiting().count() as u8,
            status: source.failed.unwrap_or_default(),
            ..PairReport::default()
        }
    }
}
