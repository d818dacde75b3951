//! The sending side of the pairs: sends wait for credit and for their turn, and stay known until the peer has acknowledged them.
//!
//! ```text
//!  post ──► waiting (a queue a pair) ── turn, with credit ──► sent (a queue a pair) ── progress, fault ──► completion
//!             │ refused, cancelled ─────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Always `returned ≤ acknowledged ≤ taken ≤ returned + granted`.

use std::collections::VecDeque;

use abi::completion::{Completion, CompletionKind};
use abi::control::{Counter, PairReport, PairSetup};
use abi::limits::{EAGER_MAX, MAX_CREDITS, SEND_QUEUE_DEPTH};
use abi::mailbox::PairState;
use abi::request::{FLAG_ERRORS_ONLY, MAX_SEGMENTS, Segment, SendRequest};
use abi::status::Status;

use crate::breaks::Break;
use crate::output::Output;

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

    /// Length of the message; 2^64 − 1 if it is longer than that.
    pub fn length(&self) -> u64 {
        let add = |sum: u64, segment: Segment| sum.saturating_add(segment.length);
        self.all().fold(0, add)
    }
}

/// What is left of a send that is on its way.
#[derive(Clone, Copy, Debug)]
struct Sent {
    request: u32,
    context: u16,
    /// It completes only on error.
    errors_only: bool,
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
    waiting: VecDeque<Posted>,
    sent: VecDeque<Sent>,
    taken: u32,
    acknowledged: u32,
    returned: u32,
    /// When something last became unacknowledged or acknowledged, or the peer was asked.
    since: u64,
}

impl Source {
    fn in_use(&self) -> u32 {
        self.taken.wrapping_sub(self.returned)
    }

    fn has_credit(&self) -> bool {
        self.in_use() < self.granted
    }

    /// It can go on: nothing has failed it, and nothing is about to.
    fn sound(&self) -> bool {
        self.connected && self.failed.is_none() && !self.failing
    }

    fn ends(&mut self, number: u16, status: u8) -> Vec<Output> {
        let endpoint = self.endpoint;
        let sent = self.sent.drain(..);
        let waiting = self.waiting.drain(..).map(|send| Sent::of(&send));
        let ended = |sent: Sent| sent.completion(endpoint, number, status);
        sent.chain(waiting).map(ended).collect()
    }
}

impl Sent {
    fn of(posted: &Posted) -> Self {
        let request = &posted.request;
        Self {
            request: request.request,
            context: request.context,
            errors_only: request.flags & FLAG_ERRORS_ONLY != 0,
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
    /// Bit k: send `acknowledge` − 1 − k was refused.
    pub refused: u16,
}

/// Running numbers of a pair's sending side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceNumbers {
    /// Credits used.
    pub taken: u32,
    /// Sends that are safe at the peer.
    pub acknowledged: u32,
    /// Credits that came back.
    pub returned: u32,
    /// Credits that there are.
    pub granted: u32,
}

/// The sending side of all pairs.
#[derive(Clone, Debug)]
pub struct Sends {
    pairs: Vec<Source>,
    /// Time without acknowledgement after which a pair fails; 0 never.
    pub timeout: u32,
    broken: Break,
}

impl Sends {
    /// So many pairs, none of which is connected.
    pub fn new(pairs: usize) -> Self {
        Self {
            pairs: vec![Source::default(); pairs],
            timeout: 0,
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
                returned: s.returned,
                granted: s.granted,
            })
    }

    /// Takes a send: it waits, or is refused.
    pub fn post(&mut self, endpoint: u8, posted: Posted) -> Vec<Output> {
        let pair = posted.request.pair;
        let source = self.own(endpoint, pair);
        let (status, malformed) = match source {
            None => (Status::InvalidPair.code(), true),
            Some(_) if posted.length() > EAGER_MAX as u64 => (Status::TooLong.code(), true),
            Some(Source {
                failed: Some(status),
                ..
            }) => (*status, false),
            Some(source) if source.waiting.len() >= usize::from(SEND_QUEUE_DEPTH) => {
                (Status::QueueFull.code(), false)
            }
            Some(source) => {
                source.waiting.push_back(posted);
                return Vec::new();
            }
        };
        let refused = Sent::of(&posted).completion(endpoint, pair, status);
        let count = malformed.then_some(Output::Count(Counter::InvalidRequests));
        std::iter::once(refused).chain(count).collect()
    }

    /// Ends a gather whose second entry can't be read.
    pub fn unread(&self, endpoint: u8, request: &SendRequest, status: Status) -> Output {
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
            let waiting = &mut source.waiting;
            let at = waiting
                .iter()
                .position(|s| s.request.request == request.target)?;
            waiting.remove(at)
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
        let ready = |s: &Source| s.sound() && !s.waiting.is_empty() && s.has_credit();
        self.get(pair).is_some_and(ready)
    }

    /// Sends of a pair that wait.
    pub fn waiting(&self, pair: u16) -> impl Iterator<Item = &SendRequest> {
        self.get(pair)
            .into_iter()
            .flat_map(|source| &source.waiting)
            .map(|posted| &posted.request)
    }

    /// Requests of a pair's sends that are on their way: nobody knows what has become of them.
    pub fn on_their_way(&self, pair: u16) -> impl Iterator<Item = u32> {
        let sent = self.get(pair).into_iter().flat_map(|source| &source.sent);
        sent.map(|sent| sent.request)
    }

    /// The pair's oldest waiting send takes a credit and its number.
    pub fn turn(&mut self, pair: u16) -> Option<Job> {
        if !self.has_turn(pair) {
            return None;
        }
        let source = self.pairs.get_mut(usize::from(pair))?;
        let posted = source.waiting.pop_front()?;
        let sequence = source.taken;
        source.taken = sequence.wrapping_add(1);
        Some(Job {
            pair,
            domain: source.domain,
            sequence,
            posted,
        })
    }

    /// The job's frame will be sent; unless its pair has failed since its turn: then it ends as the others of the pair did.
    pub fn sent(&mut self, job: &Job, now: u64) -> Vec<Output> {
        let Some(source) = self.pairs.get_mut(usize::from(job.pair)) else {
            return Vec::new();
        };
        let sent = Sent::of(&job.posted);
        if let Some(status) = source.failed {
            return vec![sent.completion(source.endpoint, job.pair, status)];
        }
        if source.sent.is_empty() {
            source.since = now;
        }
        source.sent.push_back(sent);
        Vec::new()
    }

    /// The failure of a pair has been asked for: it does nothing more until it comes.
    pub fn give_up(&mut self, pair: u16) {
        if let Some(source) = self.pairs.get_mut(usize::from(pair)) {
            source.failing = true;
        }
    }

    /// The job's payload may not or can't be read: it ends, and its credit and number are given back.
    pub fn refuse(&mut self, job: &Job, status: Status) -> Vec<Output> {
        let Some(source) = self.pairs.get_mut(usize::from(job.pair)) else {
            return Vec::new();
        };
        if source.failed.is_none() {
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
        let ignores_refusals = self.broken == Break::RefusalUnheard;
        let tells_success = self.broken == Break::SuccessTold;
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
        let on_their_way = source.sent.len() as u32;
        let numbers = moves(source.acknowledged, progress.acknowledge, on_their_way).and_then(
            |acknowledged| {
                let room = acknowledged.wrapping_sub(source.returned);
                let returned = moves(source.returned, progress.credit, room)?;
                Ok((acknowledged, returned))
            },
        );
        let Ok((acknowledged, returned)) = numbers else {
            source.failing = true;
            let status = Status::LinkError.code();
            return vec![Output::Fail {
                pair: number,
                status,
            }];
        };
        let mut outputs = Vec::new();
        let newly = acknowledged.wrapping_sub(source.acknowledged);
        for (later, sent) in (0..newly).rev().zip(source.sent.drain(..newly as usize)) {
            let refused = progress.refused.checked_shr(later).unwrap_or(0) & 1 != 0;
            let status = match refused && !ignores_refusals {
                true => Status::NotReady,
                false => Status::Success,
            };
            let endpoint = source.endpoint;
            let silent = sent.errors_only && status == Status::Success;
            outputs.push(match silent && !tells_success {
                true => Output::Release { endpoint },
                false => sent.completion(endpoint, number, status.code()),
            });
        }
        if newly > 0 {
            source.since = now;
        }
        source.acknowledged = acknowledged;
        source.returned = returned;
        if progress.ask {
            outputs.push(Output::Mark {
                pair: number,
                ask: false,
            });
        }
        outputs
    }

    /// Fails pairs whose peers have been silent for too long, and asks the peers of those that have only waited for credit.
    pub fn scan(&mut self, now: u64) -> Vec<Output> {
        let timeout = u64::from(self.timeout);
        let mut outputs = Vec::new();
        for (number, source) in self.pairs.iter_mut().enumerate() {
            let pair = number as u16;
            if timeout == 0 || !source.sound() || now < source.since + timeout {
                continue;
            }
            if source.taken != source.acknowledged {
                source.failing = true;
                outputs.push(Output::Count(Counter::Timeouts));
                let status = Status::LinkError.code();
                outputs.push(Output::Fail { pair, status });
            } else if !source.waiting.is_empty() && !source.has_credit() {
                source.since = now;
                outputs.push(Output::Count(Counter::CreditAsks));
                outputs.push(Output::Mark { pair, ask: true });
            }
        }
        outputs
    }

    /// When [`scan`](Self::scan) will find something if nothing happens before.
    pub fn next_scan(&self) -> Option<u64> {
        let timeout = u64::from(self.timeout);
        let waits = |s: &&Source| {
            let silent = s.taken != s.acknowledged || (!s.waiting.is_empty() && !s.has_credit());
            timeout > 0 && s.sound() && silent
        };
        let due = self.pairs.iter().filter(waits).map(|s| s.since + timeout);
        due.min()
    }

    /// A pair has failed: all its sends end with the status.
    pub fn fail(&mut self, pair: u16, status: u8) -> Vec<Output> {
        let source = self.pairs.get_mut(usize::from(pair));
        let Some(source) = source.filter(|s| s.connected && s.failed.is_none()) else {
            return Vec::new();
        };
        source.failed = Some(status);
        source.acknowledged = source.taken;
        if self.broken == Break::FailureKeepsSends {
            return Vec::new();
        }
        source.ends(pair, status)
    }

    /// A pair is connected, or forgotten. What was still there of it is flushed.
    pub fn set(&mut self, pair: u16, setup: Option<&PairSetup>) -> Vec<Output> {
        let Some(source) = self.pairs.get_mut(usize::from(pair)) else {
            return Vec::new();
        };
        let outputs = source.ends(pair, Status::Flushed.code());
        *source = setup.map_or_else(Source::default, |setup| Source {
            connected: true,
            endpoint: setup.endpoint,
            domain: setup.domain,
            granted: u32::from(setup.remote_credits).min(MAX_CREDITS.into()),
            ..Source::default()
        });
        outputs
    }

    /// What a `PairRead` tells of the pair, without what it refused.
    pub fn report(&self, pair: u16) -> PairReport {
        let Some(source) = self.get(pair).filter(|source| source.connected) else {
            return PairReport::default();
        };
        let (state, available) = match source.failed {
            Some(_) => (PairState::Failed, 0),
            None => (PairState::Connected, source.granted - source.in_use()),
        };
        PairReport {
            state: state.code(),
            available: available as u8,
            unacknowledged: source.sent.len() as u8,
            waiting: source.waiting.len() as u8,
            refused: 0,
        }
    }
}
