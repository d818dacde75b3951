//! `envelope::SendQueues`, Verilated, against the sends of the model of the card: each send completes exactly once and
//! with the right status, nothing goes out without a credit, a pair that has to wait waits alone, and of a cancel and a
//! turn exactly one comes first.
//!
//! What a request, a turn, an answer, progress and a failure lead to, the model says. When it has to come, this test says:
//! turns in turn, time-outs and questions not too early nor too late.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

use abi::completion::{Completion, CompletionKind};
use abi::control::{Counter, Operation, PairSetup};
use abi::limits::{EAGER_MAX, MAX_CREDITS, MAX_SENDS, MAX_UNACKNOWLEDGED};
use abi::request::{
    FLAG_ERRORS_ONLY, FLAG_INLINE, FLAG_READY, INLINE_BYTES, Opcode, Segment, SendRequest,
};
use abi::status::Status;
use abi::times::{
    ANSWER_TIMEOUTS, DOUBLINGS, RETRY_LIMIT, SCAN_CYCLES, scan_round, timeouts_until_failure,
};
use card_model::sends::{Awaited, Job, Posted, Progress, Segments, Sends};
use card_model::{Answered, Break, Output, Reason};
use hdl::config::{self, JOBS};
use hdl_tests::broken::{breaks_from, mutants};
use hdl_tests::fields::{Steady, pack, set_control, unpack};
use hdl_tests::{Bench, Size, for_sizes, is_caught, rate};
use rand::Rng;
use rand::seq::IteratorRandom;
use rand_chacha::ChaCha8Rng;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Send {
    endpoint: u8,
    domain: u8,
    pair: u16,
    context: u16,
    request: u32,
    key: u32,
    match_bits: u64,
    immediate: u64,
    address: u64,
    /// Of all its segments.
    length: u64,
    /// Those behind the first.
    segments: Segments,
    ready: bool,
    /// It is a put.
    put: bool,
    /// It is a get.
    get: bool,
    /// It completes only on error.
    errors_only: bool,
    /// It carries these bytes itself.
    inline: Option<u128>,
    /// It is a cancel of this send.
    target: Option<u32>,
}

impl Send {
    fn flags(&self) -> u64 {
        let flag = |is: bool, flag: u8| if is { u64::from(flag) } else { 0 };
        flag(self.ready, FLAG_READY)
            | flag(self.errors_only, FLAG_ERRORS_ONLY)
            | flag(self.inline.is_some(), FLAG_INLINE)
    }

    /// Words of the request.
    fn packed(&self) -> Vec<u64> {
        let opcode = match self.target {
            Some(_) => Opcode::CancelSend,
            None if self.get => Opcode::Get,
            None if self.put => Opcode::Put,
            None => Opcode::TaggedSend,
        };
        let target = u128::from(self.target.unwrap_or_default());
        let last = self.inline.unwrap_or(target);
        pack(&[
            (opcode.code().into(), 8),
            (self.flags(), 8),
            (self.pair.into(), 16),
            (self.context.into(), 16),
            (0, 16),
            (self.request.into(), 32),
            (self.key.into(), 32),
            (self.match_bits, 64),
            (self.immediate, 64),
            (self.address, 64),
            (self.length, 64),
            (last as u64, 64),
            ((last >> 64) as u64, 64),
        ])
    }

    fn request(&self) -> SendRequest {
        let words = self.packed().try_into().expect("eight words");
        SendRequest::from_words(&words)
    }

    fn words(&self) -> Vec<u64> {
        let mut fields = vec![(self.endpoint.into(), 8), (self.domain.into(), 8)];
        fields.extend(self.packed().into_iter().map(|word| (word, 64)));
        fields.extend(self.behind());
        pack(&fields)
    }

    /// Fields of the segments behind the first.
    fn behind(&self) -> impl Iterator<Item = (u64, usize)> {
        let fields = |s: Segment| [(s.address, 64), (s.key.into(), 32), (s.length, 11)];
        self.segments.into_iter().flat_map(fields)
    }

    /// The send as its host posts it: the request names the first segment.
    fn posted(&self) -> Posted {
        let mut request = self.request();
        let behind: u64 = self.segments.iter().map(|segment| segment.length).sum();
        request.length = request.length.saturating_sub(behind);
        Posted {
            request,
            segments: self.segments,
        }
    }

    /// The job that it becomes on a pair of this domain, for the first time or again.
    fn job(&self, domain: u8, again: bool, number: u32) -> Vec<u64> {
        let buffer = u128::from(self.address) | u128::from(self.key) << 64;
        let at = self.inline.unwrap_or(buffer);
        let mut fields = vec![
            (self.pair.into(), 16),
            (domain.into(), 8),
            (self.context.into(), 16),
            (self.length, 16),
            (self.match_bits, 64),
            (self.immediate, 64),
            (self.ready.into(), 1),
            (self.put.into(), 1),
            (self.get.into(), 1),
            (0, 1),
            (self.inline.is_some().into(), 1),
            (at as u64, 64),
            ((at >> 64) as u64, 64),
        ];
        fields.extend(self.behind());
        fields.extend([(again.into(), 1), (number.into(), 32)]);
        pack(&fields)
    }
}

/// What a peer's answer ends a send with.
const ANSWERS: [Status; 4] = [
    Status::Success,
    Status::NotReady,
    Status::RemoteAccess,
    Status::AccessDenied,
];

/// A completion: endpoint, handle, pair, context, length, status.
type Completed = (u8, u32, u16, u16, u64, Status);

/// What is around a pair, and since when it waits.
#[derive(Default)]
struct Pair {
    open: bool,
    failed: bool,
    /// Its failure has been, or is to be, asked for.
    failing: bool,
    /// The peer has said something that can't be.
    lied: bool,
    endpoint: u8,
    domain: u8,
    since: u64,
    /// Its time-out, 0 for none, and the times that it may go back; and when they were last changed.
    timeout: u64,
    retry_limit: u8,
    timed: u64,
    /// Since when sends wait for a credit and nothing is on its way that could bring one.
    dry: Option<u64>,
    /// What the peer has: messages arrived, made safe, and freed, and what it has told so far.
    arrived: u32,
    accepted: u32,
    freed: u32,
    /// Whether it refused each of those that it accepted.
    refused: Vec<bool>,
    told: Vec<(u32, u32)>,
    /// Jobs of others since this pair could have had its turn.
    passed: usize,
    /// Jobs that aren't answered.
    given: usize,
    /// A put or a get has come since it last had nothing that waits.
    remote: bool,
    /// It has gone back while jobs of it are given.
    back: bool,
    /// Since when it could have had its turn, and has had none.
    could_since: Option<u64>,
    /// When a job of it was last answered.
    answered: Option<u64>,
    /// Time-outs of pairs without anything on its way, any of which may have been its own.
    doubts: u8,
    /// A send of it can't be read again.
    cannot_repeat: bool,
    /// Jobs of it that were refused and that the block hasn't worked in: their descriptors aren't free yet.
    refused_now: usize,
    /// Credits taken, as the block last showed them.
    shown: u32,
    /// When it learned, not all that had left was known to the block.
    learned_unsure: bool,
}

impl Pair {
    fn is_sound(&self) -> bool {
        self.open && !self.failed && !self.failing
    }

    /// The answer of a job has come that the block may not have worked in, since completions wait.
    fn is_unsure(&self, cycle: u64) -> bool {
        self.answered.is_some_and(|at| at + 100 > cycle)
    }

    /// It goes by these times from now on; one that is failing has gone by those before.
    fn set_times(&mut self, setup: &PairSetup) {
        if !self.failing {
            self.timeout = match setup.timeout_log2 {
                0 => 0,
                log2 => 1 << log2,
            };
            self.retry_limit = setup.retry_limit;
        }
    }
}

/// Everything that is expected of the block.
struct Model {
    sends: Sends,
    pairs: Vec<Pair>,
    /// Pairs that are used.
    used: usize,
    /// The requests that were taken, by their handles.
    taken: BTreeMap<u32, Send>,
    /// Jobs that aren't answered, in order.
    jobs: VecDeque<Job>,
    /// Completions by handle, as they must come and as they came.
    wanted: BTreeMap<u32, Completed>,
    found: BTreeMap<u32, Completed>,
    /// Handles of the sends that the peer answers, in order, of each pair.
    succeed: BTreeMap<u16, VecDeque<u32>>,
    /// Endpoints of cancels that were in time.
    released: VecDeque<u8>,
    /// How many sends of each endpoint ended without a completion, less those whose reservation has been released.
    quiet: BTreeMap<u8, usize>,
    /// Sends refused as malformed.
    invalid: usize,
    /// Pairs whose peer is to be answered, or to be told that a request of it is missing.
    answers: VecDeque<(usize, Reason)>,
    /// Jobs of sends that were given again and can't be read, whose pairs are to fail.
    unreadable: Vec<Job>,
    /// Jobs that were given again.
    repeats: usize,
    /// Gets that have left: pair, number and length.
    gets: Vec<(u16, u32, u64)>,
    /// Answers that were taken, and are on their way to their buffers.
    coming: VecDeque<Answered>,
    /// The pair that a control request is to end.
    ending: Option<usize>,
    /// The pair whose fault is on offer.
    failing_now: Option<usize>,
    /// Run of each pair: its first descriptor, and log2 of its length.
    runs: Vec<(u16, u8)>,
}

/// Runs of the descriptors for the pairs that are used, as long as chance has it. The longest comes first: then each is aligned.
fn random_runs(size: &Size, rng: &mut ChaCha8Rng) -> Vec<(u16, u8)> {
    let mut free = size.config.descriptors;
    let mut lengths: Vec<(u8, usize)> = Vec::new();
    for (k, &pair) in size.pairs.iter().enumerate() {
        let others = size.pairs.len() - 1 - k;
        let longest = rng.random_range(1..=MAX_SENDS.ilog2() as u8);
        let fits = |log2: &u8| (1 << log2) + 2 * others <= free;
        let log2 = (1..=longest).rfind(fits).unwrap_or(1);
        lengths.push((log2, pair));
        free -= 1 << log2;
    }
    lengths.sort_unstable();
    let mut runs = vec![(0, 1); size.config.pairs];
    let mut first = 0;
    for (log2, pair) in lengths.into_iter().rev() {
        runs[pair] = (first, log2);
        first += 1 << log2;
    }
    runs
}

impl Model {
    fn new(size: &Size, runs: Vec<(u16, u8)>, broken: Break) -> Self {
        let mut sends = Sends::new(size.config.pairs);
        sends.break_on_purpose(broken);
        Self {
            sends,
            pairs: (0..size.config.pairs).map(|_| Pair::default()).collect(),
            used: size.pairs.len(),
            taken: BTreeMap::new(),
            jobs: VecDeque::new(),
            wanted: BTreeMap::new(),
            found: BTreeMap::new(),
            succeed: BTreeMap::new(),
            released: VecDeque::new(),
            quiet: BTreeMap::new(),
            invalid: 0,
            answers: VecDeque::new(),
            unreadable: Vec::new(),
            repeats: 0,
            gets: Vec::new(),
            coming: VecDeque::new(),
            ending: None,
            failing_now: None,
            runs,
        }
    }

    /// Takes what follows; returns the endpoints whose reservations are released.
    fn apply(&mut self, outputs: Vec<Output>) -> Vec<u8> {
        let mut released = Vec::new();
        for output in outputs {
            match output {
                Output::Complete { endpoint, entry } => self.complete(endpoint, &entry),
                Output::Release { endpoint } => released.push(endpoint),
                Output::Count(Counter::InvalidRequests) => self.invalid += 1,
                Output::Mark { pair, reason } => self.answers.push_back((pair.into(), reason)),
                Output::Fail { pair, .. } => {
                    let pair = &mut self.pairs[usize::from(pair)];
                    pair.lied = true;
                    pair.failing = true;
                }
                other => panic!("{other:?} of the sends"),
            }
        }
        released
    }

    fn complete(&mut self, endpoint: u8, entry: &Completion) {
        let status = Status::from_code(entry.status).expect("a status");
        let completed = (
            endpoint,
            entry.request,
            entry.pair,
            entry.context,
            entry.length,
            status,
        );
        if ANSWERS.contains(&status) {
            let order = self.succeed.entry(entry.pair).or_default();
            order.push_back(entry.request);
        }
        self.wanted.insert(entry.request, completed);
        self.compare(entry.request);
    }

    /// A completion came.
    fn find(&mut self, completed: Completed) {
        let (_, request, pair, _, _, status) = completed;
        let before = self.found.insert(request, completed);
        assert_eq!(before, None, "a send completes twice");
        if ANSWERS.contains(&status) {
            let next = self.succeed.entry(pair).or_default().pop_front();
            assert_eq!(next, Some(request), "an answer out of order");
        }
        self.compare(request);
    }

    fn compare(&self, request: u32) {
        if let (Some(wanted), Some(found)) = (self.wanted.get(&request), self.found.get(&request)) {
            assert_eq!(wanted, found);
        }
    }

    /// A send or a cancel is taken from Fetch.
    fn accept(&mut self, send: Send) {
        self.taken.insert(send.request, send);
        let request = send.request();
        if send.target.is_some() {
            let outputs = self.sends.cancel(send.endpoint, &request);
            let released = self.apply(outputs);
            self.released.extend(released);
            if let Some(pair) = self.pairs.get_mut(usize::from(send.pair))
                && self.sends.waiting(send.pair).next().is_none()
            {
                pair.passed = 0;
            }
            return;
        }
        if self.is_full_until_answered(&send) {
            let entry = Completion {
                request: send.request,
                pair: send.pair,
                context: send.context,
                status: Status::QueueFull.code(),
                ..Completion::default()
            };
            return self.complete(send.endpoint, &entry);
        }
        let outputs = self.sends.post(send.endpoint, send.posted());
        self.apply(outputs);
    }

    /// The send would have the descriptor of one that was refused, of which the block hasn't heard yet.
    fn is_full_until_answered(&self, send: &Send) -> bool {
        let late = self.pairs.get(usize::from(send.pair));
        let late = late.map_or(0, |pair| pair.refused_now);
        let would_wait = || {
            let mut sends = self.sends.clone();
            sends.post(send.endpoint, send.posted()).is_empty()
        };
        self.sends.room(send.pair) <= late && late > 0 && would_wait()
    }

    /// The block shows the credits that a pair has taken: one less than before when it has worked in a refusal, and none when the pair is set.
    fn show(&mut self, pair: usize, taken: u32) {
        let pair = &mut self.pairs[pair];
        if taken.wrapping_add(1) == pair.shown {
            pair.refused_now = pair.refused_now.saturating_sub(1);
        }
        pair.shown = taken;
    }

    /// A job is given.
    fn give(&mut self, pair: usize) -> (Send, Job) {
        let may: Vec<usize> = (0..self.pairs.len())
            .filter(|p| self.sends.has_turn(*p as u16))
            .collect();
        assert!(may.contains(&pair), "pair {pair} has no send or no credit");
        for (other, p) in self.pairs.iter_mut().enumerate() {
            // What it waited for may have come without a turn: the peer has acknowledged what it was to give again.
            if !may.contains(&other) {
                p.passed = 0;
                continue;
            }
            // What the peer says may hold up a pair that gives sends again, and one that is about to end has no turn.
            // So is one that goes back until its jobs that are given have been answered.
            let was_back = p.back;
            p.back &= p.given > 0;
            let read_again = self.sends.is_read_again(other as u16);
            let ends = self.ending == Some(other) || self.failing_now == Some(other);
            let passes_over = self.sends.passes_over(other as u16);
            let held = read_again || was_back || ends || passes_over;
            let exempt = other == pair || held;
            p.passed = if exempt { 0 } else { p.passed + 1 };
            assert!(p.passed <= self.used + 1, "pair {other} is passed over");
        }
        let p = &mut self.pairs[pair];
        p.given += 1;
        p.could_since = None;
        let job = self.sends.turn(pair as u16).expect("it has its turn");
        self.jobs.push_back(job);
        self.repeats += usize::from(job.again);
        (self.taken[&job.posted.request.request], job)
    }

    /// A job is answered.
    fn answer(&mut self, status: Status, cycle: u64) {
        let job = self.jobs.pop_front().expect("a job is given");
        let starts = !self.is_on_its_way(job.pair.into());
        let p = &mut self.pairs[usize::from(job.pair)];
        p.given -= 1;
        p.answered = Some(cycle);
        let outputs = match status {
            Status::Success => {
                if starts {
                    p.since = cycle;
                }
                p.arrived += u32::from(!p.failed && !job.again);
                let leaves = job.posted.is_get() && !p.failed && !job.again;
                let outputs = self.sends.sent(&job, cycle);
                if leaves {
                    let before = self.sends.on_their_way(job.pair).count() as u32 - 1;
                    let number = self.sends.numbers(job.pair).acknowledged + before;
                    self.gets
                        .push((job.pair, number, job.posted.request.length));
                }
                outputs
            }
            _ if job.again => {
                // That it has been read is all that the model hears, until the block asks for the fault.
                self.unreadable.push(job);
                self.sends.sent(&job, cycle)
            }
            refused => {
                p.refused_now += usize::from(!p.failed);
                self.sends.refuse(&job, refused)
            }
        };
        self.apply(outputs);
    }

    /// Progress is taken.
    fn progress(&mut self, told: &Told, cycle: u64) {
        let pair = told.pair;
        // An answer of a job goes before what is heard.
        let known = |pair: &Pair| pair.answered.is_none_or(|at| at + 4 <= cycle);
        let known = self.pairs.get(pair).is_some_and(known);
        if known || pair < self.pairs.len() && self.sends.is_read_again(pair as u16) {
            // That the block has found so isn't seen while the pair is about to end, which drops it as well.
            self.cannot_repeat(pair);
        }
        let Some(p) = self.pairs.get(pair) else {
            return;
        };
        let read_again = p.is_sound() && self.sends.is_read_again(pair as u16);
        assert!(!read_again, "pair {pair} hears while it reads again");
        let progress = told.progress(&p.refused);
        let before = self.moved(pair);
        let tries = self.sends.tries(pair as u16);
        let probed = self.sends.is_probed(pair as u16);
        let outputs = self.sends.progress(&progress, cycle);
        self.pairs[pair].back |= told.gap;
        let tried = self.sends.tries(pair as u16);
        let unsure = self.pairs[pair].answered.is_some_and(|at| at + 6 > cycle);
        if unsure && tried > 0 && tried == tries && self.sends.owes_an_answer(pair as u16) {
            // If the block hasn't worked in the answer of a job, the peer has all that it knows of, and any frame is a sign of life.
            self.sends.hears_life(pair as u16);
            self.pairs[pair].doubts += tries;
        }
        self.pairs[pair].learned_unsure |= unsure;
        if self.moved(pair) != before {
            self.pairs[pair].since = cycle;
            self.pairs[pair].doubts = 0;
        } else if tried > tries || probed && !self.sends.is_probed(pair as u16) {
            self.pairs[pair].since = cycle;
        }
        for endpoint in self.apply(outputs) {
            *self.quiet.entry(endpoint).or_default() += 1;
        }
    }

    /// Sends of a pair that have ended, and that are safe at its peer.
    fn moved(&self, pair: usize) -> (u32, u32) {
        let numbers = self.sends.numbers(pair as u16);
        (numbers.acknowledged, numbers.safe)
    }

    /// The answer of a get is taken, or isn't.
    fn claim(&mut self, claim: &Claim, rng: &mut ChaCha8Rng) -> Option<Awaited> {
        let bytes = (!claim.refused).then_some(claim.length.into());
        let awaited = self.sends.take_answer(claim.pair, claim.number, bytes)?;
        self.gets
            .retain(|(pair, number, _)| (*pair, *number) != (claim.pair, claim.number));
        let status = match rng.random_range(0..10) {
            _ if claim.refused => Status::RemoteAccess,
            0 => Status::AccessDenied,
            1 => Status::MemoryError,
            _ => Status::Success,
        };
        self.coming.push_back(Answered {
            pair: claim.pair,
            number: claim.number,
            status,
        });
        Some(awaited)
    }

    /// An answer is in its buffer, or won't be.
    fn answered(&mut self, answered: &Answered, cycle: u64) {
        let pair = usize::from(answered.pair);
        self.cannot_repeat(pair);
        let read_again = self.sends.is_read_again(answered.pair);
        assert!(!read_again, "pair {pair} ends while it reads again");
        let takes = self.sends.takes_answer(answered.pair, answered.number);
        let outputs = self.sends.answered(answered, cycle);
        if takes {
            self.pairs[pair].since = cycle;
            self.pairs[pair].doubts = 0;
        }
        for endpoint in self.apply(outputs) {
            *self.quiet.entry(endpoint).or_default() += 1;
        }
    }

    /// A pair is about to end: what was on its way to its buffers has been written, or dropped, and nobody is told.
    fn forget_answers(&mut self, pair: usize) {
        self.gets.retain(|(of, ..)| usize::from(*of) != pair);
        self.coming
            .retain(|answered| usize::from(answered.pair) != pair);
    }

    fn fail(&mut self, pair: usize, status: Status) {
        self.forget_answers(pair);
        let outputs = self.sends.fail(pair as u16, status.code(), |_, _| false);
        if let Some(pair) = self.pairs.get_mut(pair) {
            pair.failed = pair.open;
        }
        self.apply(outputs);
        self.forget_unreadable(pair);
    }

    /// A pair goes back since nothing was acknowledged while it gave again what had left.
    fn go_back(&mut self, pair: usize, cycle: u64) {
        let fails = self.sends.go_back(pair as u16, cycle);
        assert_eq!(fails, None, "pair {pair} goes back once too often");
        self.pairs[pair].since = cycle;
        self.pairs[pair].back = true;
    }

    /// It goes back to the last that has left, since nothing was acknowledged.
    fn probe(&mut self, pair: usize, cycle: u64) {
        let fails = self.sends.probe(pair as u16, cycle);
        assert_eq!(fails, None, "pair {pair} goes back once too often");
        self.pairs[pair].since = cycle;
        self.pairs[pair].back = true;
    }

    /// For how long a pair waits now at least, and at most; 0 for ever.
    fn patience(&self, pair: usize, cycle: u64) -> (u64, u64) {
        let patience = self.sends.patience(pair as u16);
        let p = &self.pairs[pair];
        let unsure = p.learned_unsure || p.is_unsure(cycle);
        let tries = self.sends.tries(pair as u16).min(DOUBLINGS);
        // Of time-outs that may have been its own it isn't known how often it has waited for longer.
        let most = p.doubts > 0 || unsure;
        (
            if unsure { p.timeout << tries } else { patience },
            if most {
                p.timeout << DOUBLINGS
            } else {
                patience
            },
        )
    }

    /// It asks for answers again since none came for long.
    fn ask_for_answers(&mut self, pair: usize, cycle: u64) {
        let due = self.sends.asked_again(pair as u16).is_some();
        assert!(due, "pair {pair} asks again too soon, cycle {cycle}");
        let fails = self.sends.ask_for_answers(pair as u16, cycle);
        assert_eq!(fails, None, "pair {pair} asks again once too often");
        self.pairs[pair].since = cycle;
        self.pairs[pair].back = true;
    }

    /// It asks whether its peer is there, or what credit there is.
    fn ask(&mut self, pair: usize, cycle: u64) {
        let due = self.is_on_its_way(pair) && self.sends.asked_again(pair as u16).is_some();
        assert!(!due, "pair {pair} doesn't ask again, cycle {cycle}");
        let fails = self.sends.ask(pair as u16, cycle);
        assert_eq!(fails, None, "pair {pair} asks once too often");
        self.pairs[pair].since = cycle;
    }

    /// Its peer has all that the block knows to have left, and owes answers.
    fn is_owed(&self, pair: usize, cycle: u64) -> bool {
        let answered = self.pairs[pair].answered;
        let unsure = answered.is_some_and(|at| at + 6 > cycle);
        self.is_on_its_way(pair)
            && (unsure || self.sends.numbers(pair as u16).safe == self.left(pair))
    }

    /// Number behind the last send that has left.
    fn left(&self, pair: usize) -> u32 {
        let sent = self.sends.on_their_way(pair as u16).count() as u32;
        let numbers = self.sends.numbers(pair as u16);
        numbers.acknowledged.wrapping_add(sent)
    }

    /// The pair has ended: it isn't failed any more because its sends can't be read again.
    fn forget_unreadable(&mut self, pair: usize) {
        self.unreadable.retain(|job| usize::from(job.pair) != pair);
    }

    /// The block has found that a send of the pair can't be read again: it does nothing more until it fails.
    fn cannot_repeat(&mut self, pair: usize) {
        let of_pair = |job: &Job| usize::from(job.pair) == pair;
        if self.unreadable.iter().any(of_pair) {
            self.pairs[pair].cannot_repeat = true;
            self.give_up(pair);
            self.forget_unreadable(pair);
        }
    }

    /// The block has found a pair late.
    fn give_up(&mut self, pair: usize) {
        self.pairs[pair].failing = true;
        self.sends.give_up(pair as u16);
    }

    /// A pair is connected or forgotten.
    fn set(&mut self, pair: usize, setup: Option<&PairSetup>) {
        self.forget_answers(pair);
        let outputs = self.sends.set(pair as u16, setup);
        self.apply(outputs);
        self.forget_unreadable(pair);
        self.pairs[pair] = setup.map_or_else(Pair::default, |setup| Pair {
            open: true,
            endpoint: setup.endpoint,
            domain: setup.domain,
            ..Pair::default()
        });
        if let Some(setup) = setup {
            self.pairs[pair].set_times(setup);
        }
    }

    fn is_on_its_way(&self, pair: usize) -> bool {
        self.sends.on_their_way(pair as u16).next().is_some()
    }

    fn is_waiting(&self, pair: usize) -> bool {
        self.sends.waiting(pair as u16).next().is_some()
    }

    /// The peer of a pair is silent, or its wire takes nothing.
    fn is_late(&self, pair: usize, cycle: u64) -> bool {
        let (timeout, _) = self.patience(pair, cycle);
        let p = &self.pairs[pair];
        let since = match self.is_on_its_way(pair) {
            true => Some(p.since),
            false => p.could_since,
        };
        // What goes back waits from when the scan came due.
        let late = |since| cycle + 6 + u64::from(SCAN_CYCLES) >= since + timeout;
        p.is_sound() && timeout != 0 && since.is_some_and(late)
    }

    /// The peer of a pair is to be asked: sends wait, nothing is on its way, and there is no credit.
    fn is_dry(&self, pair: usize) -> bool {
        let numbers = self.sends.numbers(pair as u16);
        let idle = numbers.acknowledged == numbers.taken;
        let all = numbers.taken - numbers.returned >= numbers.granted;
        let first = self.sends.waiting(pair as u16).next();
        let message = first.is_some_and(|first| first.opcode == Opcode::TaggedSend.code());
        self.pairs[pair].is_sound() && message && idle && all
    }
}

/// A cancel, as a rule of a send that waits or that was posted not long ago.
fn random_cancel(size: &Size, rng: &mut ChaCha8Rng, model: &Model, request: u32) -> Send {
    let pairs = &model.pairs;
    let waits = |pair: &usize| model.is_waiting(*pair);
    let queues: Vec<usize> = size.pairs.iter().copied().filter(waits).collect();
    let mut cancel = Send {
        pair: size.pair(rng) as u16,
        target: Some(request.saturating_sub(rng.random_range(0..20))),
        ready: false,
        put: false,
        get: false,
        errors_only: false,
        inline: None,
        segments: Segments::default(),
        ..random_send(size, rng, pairs, request, (0.0, 0.0))
    };
    if !queues.is_empty() && rng.random_bool(0.8) {
        cancel.pair = queues[rng.random_range(0..queues.len())] as u16;
        let waiting: Vec<_> = model.sends.waiting(cancel.pair).collect();
        cancel.target = Some(waiting[rng.random_range(0..waiting.len())].request);
    }
    cancel.endpoint = pairs[usize::from(cancel.pair)].endpoint;
    match rng.random_range(0..20) {
        0 => cancel.endpoint ^= 1,
        1 => cancel.pair = rng.random_range(0..=u16::MAX),
        _ => {}
    }
    cancel
}

/// How often it is a put, and how often a get, is said last.
fn random_send(
    size: &Size,
    rng: &mut ChaCha8Rng,
    pairs: &[Pair],
    request: u32,
    (puts, gets): (f64, f64),
) -> Send {
    let pair = size.pair(rng) as u16;
    let endpoint = pairs[usize::from(pair)].endpoint;
    let remote = rng.random_bool(puts + gets);
    let get = remote && rng.random_bool(gets / (puts + gets));
    let send = Send {
        endpoint,
        domain: rng.random(),
        pair,
        context: rng.random(),
        request,
        key: rng.random(),
        match_bits: rng.random(),
        immediate: rng.random(),
        address: rng.random(),
        length: rng.random_range(0..=EAGER_MAX as u64),
        segments: Segments::default(),
        ready: !remote && rng.random(),
        put: remote && !get,
        get,
        errors_only: rng.random(),
        inline: None,
        target: None,
    };
    let send = match rng.random_range(0..10) {
        _ if get => send,
        0..2 => Send {
            inline: Some(rng.random()),
            length: rng.random_range(0..=INLINE_BYTES as u64),
            ..send
        },
        2..5 => Send {
            segments: std::array::from_fn(|_| Segment {
                key: rng.random(),
                address: rng.random(),
                length: rng.random_range(0..=send.length / 3),
            }),
            ..send
        },
        _ => send,
    };
    match rng.random_range(0..40) {
        0 => Send {
            endpoint: endpoint ^ 1,
            ..send
        },
        1 => Send {
            pair: rng.random_range(size.config.pairs as u16..=u16::MAX),
            ..send
        },
        2 => Send {
            length: [EAGER_MAX as u64 + 1, u64::MAX, 1 << 32][rng.random_range(0..3)],
            ..send
        },
        _ => send,
    }
}

/// What a frame that acknowledges so many says of the latest of them.
fn window(refused: &[bool], acknowledge: u32) -> u16 {
    let bit = |k: usize| {
        let at = (acknowledge as usize).checked_sub(k + 1)?;
        refused.get(at).copied()
    };
    (0..16).fold(0, |bits, k| bits | u16::from(bit(k).unwrap_or(false)) << k)
}

/// The answer of a get, as a frame says it.
#[derive(Clone, Copy, Debug, Default)]
struct Claim {
    pair: u16,
    number: u32,
    length: u16,
    refused: bool,
}

/// As a rule the answer of a get that waits for one and whose pair's peer doesn't keep them all, at times of one that has been answered, and rarely of none.
fn random_claim(
    size: &Size,
    rng: &mut ChaCha8Rng,
    model: &Model,
    owing: Option<usize>,
) -> Option<Claim> {
    let honest = owing.is_none();
    let gets = model.gets.iter();
    let told = |(pair, ..): &&(u16, u32, u64)| owing != Some(usize::from(*pair));
    let get = gets.filter(told).choose(rng).copied();
    let odd = !honest && rng.random_bool(0.2);
    if odd && rng.random_bool(0.5) {
        let pair = size.pair(rng) as u16;
        let numbers = model.sends.numbers(pair);
        return Some(Claim {
            pair,
            number: numbers
                .acknowledged
                .wrapping_add(rng.random_range(0..40))
                .wrapping_sub(20),
            length: rng.random_range(0..=EAGER_MAX as u16),
            refused: rng.random(),
        });
    }
    let (pair, number, length) = get?;
    let refused = rng.random_bool(0.2);
    let right = Claim {
        pair,
        number,
        length: if refused { 0 } else { length as u16 },
        refused,
    };
    Some(match rng.random_range(0..3) {
        0 if odd => Claim {
            number: number ^ 16,
            ..right
        },
        1 if odd => Claim {
            length: right.length ^ 1,
            refused: false,
            ..right
        },
        _ => right,
    })
}

/// What a frame of a peer says.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    pair: usize,
    acknowledge: u32,
    credit: u32,
    ask: bool,
    gap: bool,
    misses: bool,
}

impl Told {
    fn progress(&self, refused: &[bool]) -> Progress {
        Progress {
            pair: self.pair as u16,
            acknowledge: self.acknowledge,
            credit: self.credit,
            ask: self.ask,
            gap: self.gap,
            misses: self.misses,
            refused: window(refused, self.acknowledge),
        }
    }
}

/// Progress that a peer reports: as a rule the truth, at times late, rarely a lie.
fn random_progress(rng: &mut ChaCha8Rng, pair: &mut Pair, lies: bool) -> (u32, u32) {
    let now = (pair.accepted, pair.freed);
    pair.told.push(now);
    match rng.random_range(0..60) {
        0..10 => pair.told[rng.random_range(0..pair.told.len())],
        10 if lies => (pair.arrived + rng.random_range(1..1 << 30), pair.freed),
        11 if lies => (pair.accepted, pair.accepted + rng.random_range(1..1 << 30)),
        // Puts hold no envelope, whatever it says.
        12..16 if lies => (pair.accepted, pair.told[0].1),
        _ => now,
    }
}

/// An answer of a get of the pair is being told.
fn being_told(answered: &Option<Answered>, pair: usize) -> bool {
    answered
        .as_ref()
        .is_some_and(|of| usize::from(of.pair) == pair)
}

/// The pair has failed, or is to be set or cleared, and this block is being told.
fn ending_now(
    fault: &Option<(usize, Status)>,
    control: &Option<(Operation, usize, PairSetup)>,
    pair: u16,
) -> bool {
    let fails = fault.is_some_and(|(failed, _)| failed == usize::from(pair));
    let ends = [Operation::PairSet, Operation::PairClear];
    let ended = control.is_some_and(|(operation, index, _)| {
        ends.contains(&operation) && index == usize::from(pair)
    });
    fails || ended
}

/// Lets hosts and peers do what they like for `active` cycles, then finishes and compares with the model, which is broken
/// on purpose.
fn traffic(
    size: &Size,
    rng: &mut ChaCha8Rng,
    active: u64,
    broken: Break,
) -> impl Iterator<Item = Status> + use<> {
    let mut bench = Bench::open(&size.model);
    let mut model = Model::new(size, random_runs(size, rng), broken);
    let lies = rng.random_bool(0.5);
    let troubled = rng.random_bool(0.5);
    // Log2 of the time-outs of pairs, and how often they try: as a rule not all the same.
    let timeouts: &[u8] = [&[0][..], &[9, 12], &[0, 9, 11]][rng.random_range(0..3)];
    let retry_limits: &[u8] = [&[0, 1][..], &[2], &[0, 5, 15]][rng.random_range(0..3)];
    // Cycles that the reading of a payload takes at most.
    let slowest = [20, 60, 300][rng.random_range(0..3)];
    // How often a peer misses something.
    let lossy = [0.0, 0.1, 0.5][rng.random_range(0..3)];
    // A peer that takes messages and never frees an envelope, and one that never says that it has any.
    let stuck = size.pairs.get(rng.random_range(0..2 * size.pairs.len()));
    let stuck = stuck.copied().unwrap_or(usize::MAX);
    let mute = size.pairs.get(rng.random_range(0..2 * size.pairs.len()));
    let mute = mute.copied().unwrap_or(usize::MAX);
    // And one that takes gets, and answers none.
    let owing = size.pairs.get(rng.random_range(0..2 * size.pairs.len()));
    let owing = owing.copied().unwrap_or(usize::MAX);
    let (busy, willing, peers) = (rate(rng), rate(rng), rate(rng));
    let mut steady: [Steady; 3] = Default::default();
    // Jobs that have room at a time. For a time a wire takes nothing, and there is none.
    let most = rng.random_range(1..=JOBS);
    let stopped = rng.random_range(0..2 * active);
    let stopped = stopped..stopped + [0, 5000, 12_000][rng.random_range(0..3)];
    // The block offers a mark that was looked at.
    let mut marking = false;
    // The pair that was counted as one that asks, until its question is on offer.
    let mut counted_ask: Option<usize> = None;
    // The pair whose time-out was over in the last cycle, and that gives the last that has left again, or fails.
    let mut probing: Option<usize> = None;
    let mut send: Option<Send> = None;
    let mut requests = 0;
    let (mut released, mut invalid) = (0, 0);
    // How often a host changes its mind.
    let fickle = [0.05, 0.3][rng.random_range(0..2)];
    let remote = (0.2, [0.0, 0.02, 0.2][rng.random_range(0..3)]);
    let mut answers: VecDeque<(u64, Status)> = VecDeque::new();
    let mut repeats = VecDeque::new();
    let mut dropped: Vec<bool> = vec![];
    let mut progress: Option<Told> = None;
    let mut claim: Option<Claim> = None;
    let mut answered: Option<Answered> = None;
    // How often answers come.
    let answering = [0.01, 0.1, 0.5][rng.random_range(0..3)];
    let mut control: Option<(Operation, usize, PairSetup)> = None;
    let mut fault: Option<(usize, Status)> = None;
    let mut asked: VecDeque<(usize, Status)> = VecDeque::new();
    // When Delivery finishes with the pair that has failed, and whether it has.
    let (mut finishes, mut finished) = (0, None);
    let mut quiet_since = 0;
    // Cycles after which the scan for time-outs has certainly seen every pair.
    let scan = u64::from(SCAN_CYCLES) * 2 * size.config.pairs as u64;

    for cycle in 0u64.. {
        let talking = cycle < active;
        if send.is_none() && talking && rng.random_bool(busy) {
            requests += 1;
            send = Some(match rng.random_bool(fickle) {
                true => random_cancel(size, rng, &model, requests),
                false => random_send(size, rng, &model.pairs, requests, remote),
            });
        }
        bench.set("sends_valid", send.is_some());
        if let Some(send) = &send {
            bench.set_wide("sends", &send.words());
        }

        // Peers make messages safe, free envelopes, and say so.
        for &index in &size.pairs {
            let acknowledged = model.sends.numbers(index as u16).acknowledged as usize;
            let pair = &mut model.pairs[index];
            if !talking || index != mute && rng.random_bool(peers / 20.0) {
                pair.accepted = pair.arrived.min(pair.accepted + 1 + u32::from(!talking));
                while pair.refused.len() < pair.accepted as usize {
                    // Of a pair that has failed nothing is on its way.
                    let behind = pair.refused.len().saturating_sub(acknowledged);
                    let of = model.sends.on_their_way(index as u16).nth(behind);
                    let of = of.map(|request| model.taken[&request]);
                    let may_refuse = of.is_some_and(|send| send.ready || send.put);
                    pair.refused.push(may_refuse && rng.random_bool(0.5));
                    // A put and a get hold no envelope.
                    pair.freed += u32::from(of.is_some_and(|send| send.put || send.get));
                }
            }
            if index != stuck && (!talking || rng.random_bool(peers / 20.0)) {
                pair.freed = pair.accepted.min(pair.freed + 1);
            }
        }
        let reports = if talking { peers / 8.0 } else { 0.5 };
        if progress.is_none() && rng.random_bool(reports) {
            // What is missing is on its way.
            let gap = talking && rng.random_bool(lossy);
            let on_its_way = size.pairs.iter().filter(|p| model.is_on_its_way(**p));
            let index = match on_its_way.choose(rng) {
                Some(pair) if gap => *pair,
                _ => size.pair(rng),
            };
            let (acknowledge, credit) =
                random_progress(rng, &mut model.pairs[index], lies && talking);
            let misses = talking && rng.random_bool(lossy);
            progress = Some(Told {
                pair: index,
                acknowledge,
                credit,
                ask: talking && !misses && rng.random_bool(0.1),
                gap,
                misses,
            });
        }
        bench.set("progress_valid", progress.is_some());
        let told = progress.unwrap_or_default();
        let said = told.progress(&model.pairs[told.pair].refused);
        let fields = [
            (said.pair.into(), 16),
            (said.acknowledge.into(), 32),
            (said.credit.into(), 32),
            (said.ask.into(), 1),
            (said.gap.into(), 1),
            (said.misses.into(), 1),
            (said.refused.into(), 16),
        ];
        bench.set_wide("progress", &pack(&fields));

        // Answers of gets come, and go to their buffers.
        if claim.is_none() && rng.random_bool(answering) {
            claim = random_claim(size, rng, &model, talking.then_some(owing));
        }
        bench.set("claim_valid", claim.is_some());
        let of = claim.unwrap_or_default();
        let fields = [
            (of.pair.into(), 16),
            (of.number.into(), 32),
            (of.length.into(), 16),
            (of.refused.into(), 1),
        ];
        bench.set_wide("claim", &pack(&fields));
        if answered.is_none() && rng.random_bool(answering) {
            answered = model.coming.pop_front();
        }
        bench.set("answered_valid", answered.is_some());
        let fields = answered.as_ref().map_or([(0, 16), (0, 32), (0, 8)], |of| {
            let status = of.status.code();
            [
                (of.pair.into(), 16),
                (of.number.into(), 32),
                (status.into(), 8),
            ]
        });
        bench.set_wide("answered", &pack(&fields));

        // The firmware; a pair is set anew when its failure has come round.
        if control.is_none() && talking && rng.random_bool(0.05) {
            let down = size.pairs.iter().copied().find(|p| {
                let asked = asked.iter().any(|(pair, _)| pair == p);
                let under_way = asked || fault.is_some_and(|(other, _)| other == *p);
                let pair = &model.pairs[*p];
                !under_way && (!pair.open || pair.failed)
            });
            let index = down.unwrap_or_else(|| size.pair(rng));
            let being_told = being_told(&answered, index);
            let operation = match rng.random_range(0..30) {
                0 if troubled && !being_told => Operation::PairClear,
                1 if troubled && !being_told => Operation::PairSet,
                2..20 if down.is_some() => Operation::PairSet,
                20..24 => Operation::PairTimes,
                _ => Operation::PairRead,
            };
            // A pair that is failing is left alone until it has failed.
            if operation == Operation::PairRead || !model.pairs[index].failing || down.is_some() {
                let setup = PairSetup {
                    endpoint: rng.random_range(0..2),
                    domain: rng.random(),
                    // More than may be unacknowledged, now and then.
                    remote_credits: match rng.random_range(1..=16) {
                        16 => MAX_CREDITS as u8,
                        few => few,
                    },
                    sends_first: model.runs[index].0,
                    sends_log2: model.runs[index].1,
                    timeout_log2: timeouts[rng.random_range(0..timeouts.len())],
                    retry_limit: retry_limits[rng.random_range(0..retry_limits.len())],
                    ..Default::default()
                };
                control = Some((operation, index, setup));
                if [Operation::PairSet, Operation::PairClear].contains(&operation) {
                    model.forget_answers(index);
                }
            }
        }
        bench.set("control_valid", control.is_some());
        let ends = [Operation::PairSet, Operation::PairClear];
        let ending = control.filter(|(operation, ..)| ends.contains(operation));
        model.ending = ending.map(|(_, index, _)| index);
        if let Some((operation, index, setup)) = &control {
            let data = setup.to_words();
            set_control(&mut bench, *operation, *index as u16, &data);
        }
        if fault.is_none() {
            let names = |control: Option<(Operation, usize, PairSetup)>, pair: usize| {
                control.is_some_and(|(_, index, _)| index == pair)
            };
            if let Some((pair, _)) = asked.front()
                && !names(control, *pair)
                && !being_told(&answered, *pair)
            {
                fault = asked.pop_front();
            } else if troubled && talking && rng.random_bool(0.001) {
                // As a rule one whose sends are just being read again, if there is any.
                let again = |pair: &&usize| model.sends.is_read_again(**pair as u16);
                let again = size.pairs.iter().filter(again).choose(rng).copied();
                let pair = again.unwrap_or_else(|| size.pair(rng));
                let asked = asked.iter().any(|(asked, _)| *asked == pair);
                if !names(control, pair)
                    && !asked
                    && !model.pairs[pair].failing
                    && !being_told(&answered, pair)
                {
                    fault = Some((pair, Status::Flushed));
                }
            } else if cycle == active + 60_000 && model.pairs.get(stuck).is_some_and(Pair::is_sound)
            {
                fault = Some((stuck, Status::Flushed));
            }
            if fault.is_some() {
                finished = None;
                finishes = cycle + [0, rng.random_range(0..60)][rng.random_range(0..2)];
            }
        }
        // Delivery finishes with the pair: what is on its way to its buffers by then is dropped.
        if let Some((pair, _)) = fault
            && finished.is_none()
            && cycle >= finishes
            && !being_told(&answered, pair)
        {
            model.forget_answers(pair);
            finished = Some(pair);
        }
        model.failing_now = fault.map(|(pair, _)| pair);
        let done = match fault {
            Some((pair, _)) => finished == Some(pair),
            None => rng.random(),
        };
        bench.set("delivery_done", done);
        bench.set("fault_valid", fault.is_some());
        let (pair, status) = fault.unwrap_or((0, Status::Success));
        bench.set(
            "fault",
            pack(&[(pair as u64, 16), (status.code().into(), 8)])[0],
        );

        // An answer in the midst of a flush may be worked in before or after it: not to be told apart. One that the flush waits for comes before.
        let awaited = |(pair, _): (usize, Status)| model.sends.is_read_again(pair as u16);
        let due = |(due, _): &&(u64, Status)| *due <= cycle && fault.is_none_or(awaited);
        let answer = answers.front().filter(due).copied();
        bench.set("job_result_valid", answer.is_some());
        let noise = rng.random();
        let status = answer.map_or(noise, |(_, status)| status.code());
        bench.set("job_result", status);
        let room = model.jobs.len() < most && !stopped.contains(&cycle);
        bench.set("job_room", room && rng.random_bool(willing));
        bench.set("complete_ready", rng.random_bool(willing));
        bench.set("fault_request_ready", rng.random_bool(willing));
        bench.set("mark_ready", rng.random_bool(willing));
        bench.eval();

        if let Some(pair) = probing.take() {
            let [fails, _] = unpack(&bench.get_wide::<1>("fault_request"), [16, 8]);
            match bench.is("fault_request_valid") && fails as usize == pair {
                true => model.pairs[pair].doubts += 1,
                false => model.probe(pair, cycle - 1),
            }
        }
        if bench.is("job_valid") {
            let words = bench.get_wide::<11>("job");
            let [pair] = unpack(&words, [16]);
            let again = words[9] >> 62 & 1 != 0;
            if again {
                // Which was the last that had left, the block knows: answers of jobs may wait to be worked in for as long as completions do.
                let number = (words[9] >> 63 | words[10] << 1) as u32;
                model.sends.probes(pair as u16, number);
            }
            assert!(model.jobs.len() < most, "a job without room, cycle {cycle}");
            let (send, job) = model.give(pair as usize);
            // Of a send that hasn't been sent, the number isn't looked at.
            let number = match job.again {
                true => job.sequence,
                false => (words[9] >> 63 | words[10] << 1) as u32,
            };
            let domain = model.pairs[usize::from(send.pair)].domain;
            let wanted = send.job(domain, job.again, number);
            let message = format!("job of {send:?}, cycle {cycle}");
            if job.again {
                assert_eq!(repeats.pop_front(), Some(u64::from(send.pair)), "{message}");
            }
            assert_eq!(words[..], wanted, "{message}");
            let status = [
                Status::Success,
                Status::LocalProtection,
                Status::MemoryError,
            ][rng.random_range(0..30usize).saturating_sub(27)];
            let after = answers.back().map_or(0, |(due, _)| due + 1);
            answers.push_back((after.max(cycle + rng.random_range(3..slowest)), status));
        }
        if bench.is("count_repeats") {
            repeats.push_back(bench.get("count_pair"));
        }
        if answer.is_some() {
            let (_, status) = answers.pop_front().expect("it is due");
            model.answer(status, cycle);
        }
        if bench.is("dropped_valid") {
            let pair = bench.get("dropped") as usize;
            dropped.resize(model.pairs.len(), false);
            if let Some(dropped) = dropped.get_mut(pair) {
                *dropped = true;
            }
        }
        if bench.is("dropped_valid") && !bench.is("count_timeouts") {
            let pair = bench.get("dropped") as usize;
            let ends =
                fault.is_some_and(|(failed, _)| failed == pair) || model.ending == Some(pair);
            let hears =
                bench.is("progress_ready") && progress.is_some_and(|told| told.pair == pair);
            if !ends && !hears {
                model.cannot_repeat(pair);
            }
        }
        if bench.is("count_timeouts") {
            let late = (0..model.pairs.len()).filter(|p| model.is_late(*p, cycle));
            let late: Vec<usize> = late.collect();
            let counted = bench.get("count_pair") as usize;
            // One that could send before, and has its turn still to lose, is counted too.
            let waits = |pair: usize| {
                let waiting = model.sends.waiting(pair as u16).count() > 0;
                let (patience, _) = model.patience(pair, cycle);
                let pair = &model.pairs[pair];
                let late = cycle + 6 + u64::from(SCAN_CYCLES) >= pair.since + patience;
                pair.is_sound() && patience != 0 && waiting && pair.given == 0 && late
            };
            assert!(
                late.contains(&counted) || waits(counted),
                "pair {counted} isn't late in cycle {cycle}"
            );
            let ends =
                model.ending == Some(counted) || fault.is_some_and(|(failed, _)| failed == counted);
            let drops = bench.is("dropped_valid") && bench.get("dropped") as usize == counted;
            let asks = bench.is("count_asks");
            let goes_back = (drops || !asks) && late.contains(&counted);
            if goes_back && model.is_on_its_way(counted) {
                // One that is about to end is dropped in any case.
                match (drops, asks) {
                    _ if ends => {}
                    (true, true) => model.ask_for_answers(counted, cycle),
                    (true, false) => model.go_back(counted, cycle),
                    (false, _) => probing = Some(counted),
                }
            } else {
                // It has nothing on its way, or fails now. The one that is counted has tried once more also if it only has its turn still to lose.
                let counted = Some(counted).filter(|pair| !late.contains(pair));
                for pair in late.into_iter().chain(counted) {
                    model.pairs[pair].doubts += 1;
                }
            }
        }
        if bench.is("monitor_source_valid") {
            let pair = bench.get("monitor_source_pair") as usize;
            model.show(pair, bench.get("monitor_source_taken") as u32);
        }
        if bench.is("sends_ready") {
            let taken = send.take().expect("only what is offered is taken");
            // A pair that may have a put gets into the queue of turns, and waits anew if that comes to nothing.
            if let Some(pair) = model.pairs.get_mut(usize::from(taken.pair))
                && pair.remote
            {
                pair.dry = None;
            }
            model.accept(taken);
        }
        if bench.is("given_up_valid") {
            let endpoint = bench.get("given_up") as u8;
            match model.released.pop_front() {
                Some(cancel) => assert_eq!(cancel, endpoint, "cycle {cycle}"),
                None => {
                    let quiet = model.quiet.entry(endpoint).or_default();
                    assert!(*quiet > 0, "nothing of {endpoint} ended, cycle {cycle}");
                    *quiet -= 1;
                }
            }
            released += 1;
        }
        assert!(
            model.released.is_empty(),
            "a cancel that was in time is released"
        );
        invalid += bench.get("count_invalid_requests") as usize;
        let [valid, takes] = ["complete_valid", "complete_ready"].map(|name| bench.is(name));
        let complete = bench.get_wide::<9>("complete");
        if let Some(words) = steady[0].watch("complete", valid, takes, &complete) {
            let widths = [8, 64, 64, 64, 64, 64, 64, 32, 16, 16, 8, 8];
            let [
                endpoint,
                _,
                _,
                length,
                _,
                _,
                _,
                request,
                pair,
                context,
                status,
                kind,
            ] = unpack(&words, widths);
            let status = Status::from_code(status as u8).expect("a status");
            let wanted = match status {
                Status::TooLate => CompletionKind::Cancel,
                _ => CompletionKind::Send,
            };
            assert_eq!(kind, u64::from(wanted.code()));
            let pair = pair as u16;
            model.find((
                endpoint as u8,
                request as u32,
                pair,
                context as u16,
                length,
                status,
            ));
        }
        let request = bench.get_wide::<1>("fault_request");
        let [valid, takes] =
            ["fault_request_valid", "fault_request_ready"].map(|name| bench.is(name));
        if let Some(words) = steady[1].watch("fault_request", valid, takes, &request) {
            let [pair, status] = unpack(&words, [16, 8]);
            let status = Status::from_code(status as u8).expect("a status");
            let pair = pair as usize;
            // It was looked at when the request began.
            let waits = model.is_on_its_way(pair) || model.is_waiting(pair);
            let tries = model.sends.tries(pair as u16) + model.pairs[pair].doubts;
            let limit = model.pairs[pair].retry_limit;
            let again = model.sends.asked_again(pair as u16);
            let often = tries >= limit || again.is_some_and(|again| again >= limit);
            let right = match status {
                Status::LinkError => model.pairs[pair].lied,
                Status::PeerFailed => waits && often,
                Status::LocalProtection => model.pairs[pair].cannot_repeat,
                _ => false,
            };
            assert!(right, "pair {pair} is failed for nothing: {status}");
            model.give_up(pair);
            asked.push_back((pair, status));
        } else if valid {
            let [pair, _] = unpack(&request, [16, 8]);
            model.give_up(pair as usize);
        }
        let mark = bench.get_wide::<1>("mark");
        let [valid, takes] = ["mark_valid", "mark_ready"].map(|name| bench.is(name));
        let [pair, ask, misses] = unpack(&mark, [16, 1, 1]);
        let pair = pair as usize;
        if valid && !marking {
            marking = true;
            match (ask, misses) {
                (1, 0) => {
                    let counted = counted_ask.take();
                    assert_eq!(counted, Some(pair), "who asks is counted, cycle {cycle}");
                    model.ask(pair, cycle);
                }
                (0, misses) => {
                    let reason = [Reason::Answer, Reason::Gap][misses as usize];
                    assert_eq!(model.answers.pop_front(), Some((pair, reason)));
                }
                _ => panic!("a question that says what is missing"),
            }
        }
        if steady[2].watch("mark", valid, takes, &mark).is_some() {
            marking = false;
        }
        if bench.is("count_asks") && !bench.is("count_timeouts") {
            // It is told who asks in the next cycle; here it must be possible at all.
            let dry = (0..model.pairs.len()).filter(|p| {
                let since = model.pairs[*p].since;
                let (patience, _) = model.patience(*p, cycle);
                (model.is_dry(*p) || model.is_owed(*p, cycle))
                    && patience != 0
                    && cycle + 4 + u64::from(SCAN_CYCLES) >= since + patience
            });
            let dry: Vec<usize> = dry.collect();
            let counted = bench.get("count_pair") as usize;
            assert!(
                dry.contains(&counted),
                "pair {counted} has nothing to ask in cycle {cycle}"
            );
            counted_ask = Some(counted);
        }
        if bench.is("progress_ready") {
            let mut told = progress.take().expect("only what is offered");
            // Whether an answer that has just come had been worked in, so that there was something to go back to, only the block knows; and whether it has passed
            // over all that it had to.
            let answered = model.pairs.get(told.pair).and_then(|pair| pair.answered);
            let passes_over = model.sends.passes_over(told.pair as u16);
            if answered.is_some_and(|at| at + 6 > cycle) || passes_over {
                let dropped = bench.get("dropped") as usize;
                told.gap &= bench.is("dropped_valid") && dropped == told.pair;
            }
            model.progress(&told, cycle);
        }
        if bench.is("claim_ready") {
            let of = claim.take().expect("only what is offered");
            assert!(bench.is("claimed_valid"));
            let words = bench.get_wide::<2>("claimed");
            let [taken, domain, key, address] = unpack(&words, [1, 8, 32, 64]);
            // Whether the get of an answer that has just come was known to have left, or its pair has ended, only the block knows.
            let answered = model.pairs.get(usize::from(of.pair));
            let answered = answered.and_then(|pair| pair.answered);
            let may_be_unknown =
                answered.is_some_and(|at| at + 6 > cycle) || ending_now(&fault, &control, of.pair);
            let unknown = taken == 0 && may_be_unknown;
            let wanted = (!unknown).then(|| model.claim(&of, rng)).flatten();
            assert_eq!(taken == 1, wanted.is_some(), "{of:?}, cycle {cycle}");
            if let Some(wanted) = wanted {
                let buffer = (u64::from(wanted.domain), u64::from(wanted.buffer.key));
                assert_eq!(
                    (domain, key, address),
                    (buffer.0, buffer.1, wanted.buffer.address)
                );
                if ending_now(&fault, &control, of.pair) {
                    model.forget_answers(of.pair.into());
                }
            }
        }
        if bench.is("answered_ready") {
            let of = answered.take().expect("only what is offered");
            model.answered(&of, cycle);
        }
        let all_done = |model: &Model, pair: usize| {
            let of_pair = |list: &BTreeMap<u32, Completed>| {
                list.values().filter(|c| usize::from(c.2) == pair).count()
            };
            let (wanted, found) = (of_pair(&model.wanted), of_pair(&model.found));
            assert_eq!(wanted, found, "pair {pair} is not done, cycle {cycle}");
        };
        if let Some((pair, status)) = fault
            && bench.is("fault_ready")
        {
            let read_again = model.sends.is_read_again(pair as u16);
            assert!(!read_again, "pair {pair} fails while it reads again");
            assert_eq!(finished, Some(pair), "its buffers may be written");
            model.fail(pair, status);
            if model.pairs.get(pair).is_none_or(|p| p.given == 0) {
                all_done(&model, pair);
            }
            assert!(dropped[pair], "jobs of pair {pair} would go out");
            dropped[pair] = false;
            fault = None;
        }
        if let Some((operation, index, setup)) = control
            && bench.is("control_ready")
        {
            let result = bench.get("control_result");
            match operation {
                // An answer that is still to be worked in isn't seen yet.
                Operation::PairRead
                    if model.pairs[index].answered.is_some_and(|at| at + 6 > cycle) => {}
                Operation::PairRead => {
                    let report = model.sends.report(index as u16);
                    assert_eq!([result], report.to_words(), "cycle {cycle}");
                }
                Operation::PairSet | Operation::PairClear => {
                    assert_eq!(result, 0);
                    let given = model.pairs[index].given;
                    assert_eq!(given, 0, "pair {index} ends while jobs of it are given");
                    let set = operation == Operation::PairSet;
                    model.set(index, set.then_some(&setup));
                    all_done(&model, index);
                    assert!(dropped[index], "jobs of pair {index} would go out");
                    dropped[index] = false;
                    if progress.is_some_and(|told| told.pair == index) {
                        progress = None; // The old connection's.
                    }
                }
                Operation::PairTimes => {
                    assert_eq!(result, 0);
                    model.sends.set_times(index as u16, &setup);
                    if model.pairs[index].open {
                        model.pairs[index].set_times(&setup);
                        model.pairs[index].timed = cycle;
                        model.pairs[index].learned_unsure = false;
                    }
                }
                _ => assert_eq!(result, 0),
            }
            control = None;
        }
        bench.step();

        // Silence is noticed in bounded time.
        for &index in &size.pairs {
            let on_its_way = model.is_on_its_way(index);
            let remote = [Opcode::Put.code(), Opcode::Get.code()];
            let puts_wait = model
                .sends
                .waiting(index as u16)
                .any(|send| remote.contains(&send.opcode));
            let any_waits = model.is_waiting(index);
            let (dry, may_send) = (model.is_dry(index), model.sends.has_turn(index as u16));
            let (_, patience) = model.patience(index, cycle);
            let pair = &mut model.pairs[index];
            if !may_send {
                // It loses its place, also between two jobs of others: a cancel has left it a message without credit in front.
                pair.passed = 0;
            }
            let timeout = pair.timeout;
            let silent = pair.is_sound() && on_its_way && timeout != 0;
            // What waits by other times than before is late at once, but not before.
            let bound = pair.since.max(pair.timed) + patience + scan + 900;
            assert!(
                !silent || cycle < bound,
                "pair {index} is silent, cycle {cycle}"
            );
            let could = may_send && pair.given == 0 && !on_its_way;
            pair.could_since = could.then(|| pair.could_since.unwrap_or(cycle));
            let tries = 0..=u64::from(pair.retry_limit);
            // How often it had tried when it was given other times isn't known.
            let changed = pair.could_since.is_some_and(|since| pair.timed > since);
            let doublings = |tries: u64| if changed { DOUBLINGS.into() } else { tries };
            let waits =
                |tries: u64| (timeout << doublings(tries).min(DOUBLINGS.into())) + scan + 100;
            let bound = tries.map(waits).sum::<u64>() + 900;
            let stuck = |since: u64| cycle > since.max(pair.timed) + bound;
            let stuck = pair.could_since.is_some_and(stuck);
            assert!(
                !stuck || timeout == 0,
                "pair {index} has no turn, cycle {cycle}"
            );
            // One of whose waiting sends a put is, or was, stands in the queue of turns, which moves when the wire does.
            pair.remote = (any_waits || stopped.contains(&cycle)) && (pair.remote || puts_wait);
            let moves = match pair.remote && cycle >= stopped.start {
                true => stopped.end,
                false => 0,
            };
            pair.dry = dry.then(|| pair.dry.unwrap_or(cycle).max(pair.since).max(moves));
            let asked = pair
                .dry
                .is_none_or(|dry| cycle < dry.max(pair.timed) + patience + scan + 900);
            assert!(
                asked || timeout == 0,
                "pair {index} doesn't ask, cycle {cycle}"
            );
        }
        let done = !talking
            && model.wanted.len() == model.found.len()
            && send.is_none()
            && model.jobs.is_empty()
            && control.is_none()
            && fault.is_none()
            && asked.is_empty()
            && answered.is_none()
            && (0..model.pairs.len()).all(|p| !model.is_on_its_way(p));
        let waiting = |but: usize| {
            let others = (0..model.pairs.len()).filter(|p| *p != but);
            others
                .map(|p| model.sends.waiting(p as u16).count())
                .sum::<usize>()
        };
        if !done {
            quiet_since = cycle;
        }
        assert!(
            cycle < active + 50_000 || waiting(stuck) == 0,
            "sends wait although their peers are willing"
        );
        if cycle > active + 62_000
            || (done && waiting(usize::MAX) == 0 && cycle > quiet_since + 1000)
        {
            break;
        }
    }
    assert_eq!(model.wanted, model.found);
    let left = (0..model.pairs.len()).any(|pair| model.is_waiting(pair));
    assert!(!left, "sends that never complete");
    assert_eq!(
        model.found.len() + released,
        requests as usize,
        "each send completes once, or ends without a completion, and each cancel that was too late"
    );
    println!(
        "{} jobs given again, time-outs {timeouts:?}, limits {retry_limits:?}, lossy {lossy}, slowest {slowest}",
        model.repeats
    );
    let kept: usize = model.quiet.values().sum();
    assert_eq!(
        kept, 0,
        "reservations of sends that completed only on error"
    );
    assert_eq!(invalid, model.invalid, "refused as malformed");
    assert!(model.answers.is_empty(), "peers that aren't answered");
    assert!(
        model.unreadable.is_empty(),
        "sends that can't be read again fail their pairs"
    );
    model.found.into_values().map(|completed| completed.5)
}

#[test]
fn each_send_completes_once_and_nothing_goes_out_without_credit() {
    let seen = RefCell::new(BTreeMap::new());
    for_sizes("send_queues", 10, |size, rng| {
        for status in traffic(size, rng, 16_000, Break::None) {
            *seen.borrow_mut().entry(status).or_insert(0) += 1;
        }
    });
    let seen = seen.into_inner();
    println!("{seen:?}");
    assert!(seen[&Status::NotReady] > 200, "{seen:?}");
    assert!(seen[&Status::RemoteAccess] > 200, "{seen:?}");
    assert!(seen[&Status::AccessDenied] > 20, "{seen:?}");
    assert!(seen.len() >= 13, "each way to end is taken: {seen:?}");
    assert!(seen[&Status::Success] > 1000, "{seen:?}");
    assert!(seen[&Status::Cancelled] > 100, "{seen:?}");
    assert!(seen[&Status::TooLate] > 100, "{seen:?}");
}

/// A send like any, on a block whose pairs have had none.
fn any_send(size: &Size, rng: &mut ChaCha8Rng) -> Send {
    let pairs: Vec<Pair> = (0..size.config.pairs).map(|_| Pair::default()).collect();
    random_send(size, rng, &pairs, 0, (0.0, 0.0))
}

/// Connects a pair of a block that is to take all jobs, and to be answered `Success`.
fn connect(bench: &mut Bench, pair: u16, setup: &PairSetup) {
    set_control(bench, Operation::PairSet, pair, &setup.to_words());
    for pin in ["control_valid", "job_room", "complete_ready"] {
        bench.set(pin, true);
    }
    bench.set("job_result", Status::Success.code());
    while {
        bench.eval();
        !bench.is("control_ready")
    } {
        bench.step();
    }
    bench.step();
    bench.set("control_valid", false);
}

/// Posts these sends, of request, kind and target, on a pair with a single credit and a run of 32, each when the pair has had its turn; how many are given. The
/// peer says nothing.
fn given(size: &Size, rng: &mut ChaCha8Rng, posted: &[(u32, bool, Option<u32>)]) -> usize {
    let mut bench = Bench::open(&size.model);
    let pair = size.pairs[0];
    let setup = PairSetup {
        remote_credits: 1,
        sends_log2: 5,
        ..PairSetup::default()
    };
    connect(&mut bench, pair as u16, &setup);
    let any = any_send(size, rng);
    let mut jobs = 0;
    let mut step = |bench: &mut Bench| {
        bench.eval();
        let answers = bench.is("job_valid");
        jobs += usize::from(answers);
        let taken = bench.is("sends_ready");
        bench.step();
        bench.set("job_result_valid", answers);
        taken
    };
    for &(request, put, target) in posted {
        for _ in 0..100 {
            let _ = step(&mut bench);
        }
        let send = Send {
            endpoint: 0,
            pair: pair as u16,
            length: 0,
            segments: Segments::default(),
            inline: None,
            ready: false,
            request,
            put,
            get: false,
            target,
            ..any
        };
        bench.set_wide("sends", &send.words());
        bench.set("sends_valid", true);
        while !step(&mut bench) {}
        bench.set("sends_valid", false);
    }
    for _ in 0..200 {
        let _ = step(&mut bench);
    }
    jobs
}

/// A message without credit is cancelled, and behind it waits a put: that goes, and so does the message with the credit.
fn put_behind_a_cancel(size: &Size, rng: &mut ChaCha8Rng) {
    let posted = [
        (1, false, None),
        (2, false, None),
        (3, true, None),
        (4, false, Some(2)),
    ];
    assert_eq!(given(size, rng, &posted), 2);
}

/// As many puts go as a frame tells outcomes of.
fn puts_fill_the_window(size: &Size, rng: &mut ChaCha8Rng) {
    let posted: Vec<_> = (1..=20).map(|request| (request, true, None)).collect();
    assert_eq!(given(size, rng, &posted), MAX_UNACKNOWLEDGED.into());
}

/// Sixteen gets have left, all are safe at the peer, and one more waits: it goes when the first is answered, though the peer says nothing more.
fn get_behind_a_window(size: &Size, rng: &mut ChaCha8Rng) {
    let mut bench = Bench::open(&size.model);
    let pair = size.pairs[0] as u16;
    let setup = PairSetup {
        remote_credits: 1,
        sends_log2: 5,
        ..PairSetup::default()
    };
    connect(&mut bench, pair, &setup);
    let any = any_send(size, rng);
    let mut jobs = 0;
    let mut step = |bench: &mut Bench, pin: &str| {
        bench.eval();
        let answers = bench.is("job_valid");
        jobs += u16::from(answers);
        let taken = bench.is(pin);
        bench.step();
        bench.set("job_result_valid", answers);
        (taken, jobs)
    };
    let mut offer = |bench: &mut Bench, pin: &str, words: &[u64]| {
        bench.set_wide(pin, words);
        bench.set(&format!("{pin}_valid"), true);
        while !step(bench, &format!("{pin}_ready")).0 {}
        bench.set(&format!("{pin}_valid"), false);
        (0..100).map(|_| step(bench, "job_valid").1).last()
    };
    for request in 0..=MAX_UNACKNOWLEDGED.into() {
        let get = Send {
            get: true,
            ..message_of(&any, pair, request)
        };
        offer(&mut bench, "sends", &get.words());
    }
    let all = u64::from(MAX_UNACKNOWLEDGED);
    let pair = u64::from(pair);
    let told = [
        (pair, 16),
        (all, 32),
        (all, 32),
        (0, 1),
        (0, 1),
        (0, 1),
        (0, 16),
    ];
    let given = offer(&mut bench, "progress", &pack(&told));
    assert_eq!(given, Some(MAX_UNACKNOWLEDGED));
    offer(
        &mut bench,
        "claim",
        &pack(&[(pair, 16), (0, 32), (0, 16), (0, 1)]),
    );
    let success = u64::from(Status::Success.code());
    let answered = pack(&[(pair, 16), (0, 32), (success, 8)]);
    let given = offer(&mut bench, "answered", &answered);
    assert_eq!(given, Some(MAX_UNACKNOWLEDGED + 1));
}

/// What a pair does that waits for answers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Seen {
    /// It asks whether its peer is there.
    Asks,
    /// It gives this send again.
    Again(u32),
    /// It is to be failed.
    Fails,
}

/// A block, one of whose pairs has three gets and messages between and behind them, that the peer has. It says that it is there whenever it is asked.
struct Owed {
    bench: Bench,
    pair: u16,
    /// Where the gets stand.
    gets: [u32; 3],
    cycle: u64,
    timeout: u64,
    scan: u64,
    setup: PairSetup,
}

/// A message of nothing, on this pair of the first endpoint.
fn message_of(any: &Send, pair: u16, request: u32) -> Send {
    Send {
        endpoint: 0,
        pair,
        length: 0,
        segments: Segments::default(),
        inline: None,
        ready: false,
        put: false,
        get: false,
        request,
        target: None,
        ..*any
    }
}

impl Owed {
    /// The pair has sent nothing. Its time-out is of two rounds of the scan at least.
    fn connected(size: &Size, retry_limit: u8, timeout_log2: u8) -> Self {
        let mut bench = Bench::open(&size.model);
        let pair = size.pairs[0] as u16;
        let scan = scan_round(size.config.pairs as u32);
        let timeout_log2 = timeout_log2.max(scan.ilog2() as u8 + 1);
        let setup = PairSetup {
            remote_credits: 16,
            sends_log2: 5,
            timeout_log2,
            retry_limit,
            ..PairSetup::default()
        };
        connect(&mut bench, pair, &setup);
        bench.set("mark_ready", true);
        bench.set("fault_request_ready", true);
        Self {
            bench,
            pair,
            gets: [0, 2, 3],
            cycle: 0,
            timeout: 1 << timeout_log2,
            scan,
            setup,
        }
    }

    /// Every get goes beside a message that the peer has refused, or a put.
    fn new(size: &Size, rng: &mut ChaCha8Rng, retry_limit: u8) -> Self {
        let mut owed = Self::connected(size, retry_limit, 0);
        let any = any_send(size, rng);
        for request in 0..5 {
            let send = Send {
                put: request == 1,
                get: owed.gets.contains(&request),
                ..message_of(&any, owed.pair, request)
            };
            owed.offer("sends", &send.words());
        }
        owed.offer("progress", &owed.is_there());
        owed
    }

    /// The pair gets the times that it has.
    fn sets_times(&mut self) {
        let words = self.setup.to_words();
        set_control(&mut self.bench, Operation::PairTimes, self.pair, &words);
        self.bench.set("control_valid", true);
        while !self.step("control_ready").0 {}
        self.bench.set("control_valid", false);
    }

    /// The peer has all.
    fn is_there(&self) -> Vec<u64> {
        pack(&[(self.pair.into(), 16), (5, 32), (5, 32), (0, 3), (0, 16)])
    }

    /// A cycle, in which each job is taken and what is offered may be. What was seen in it.
    fn step(&mut self, pin: &str) -> (bool, Option<Seen>) {
        self.bench.eval();
        let job = self.bench.is("job_valid");
        let words = self.bench.get_wide::<11>("job");
        let number = (words[9] >> 63 | words[10] << 1) as u32;
        let [_, ask] = unpack(&self.bench.get_wide::<1>("mark"), [16, 1]);
        let seen = if self.bench.is("fault_request_valid") {
            Some(Seen::Fails)
        } else if job && words[9] >> 62 & 1 != 0 {
            Some(Seen::Again(number))
        } else {
            (self.bench.is("mark_valid") && ask != 0).then_some(Seen::Asks)
        };
        let taken = self.bench.is(pin);
        self.bench.step();
        self.bench.set("job_result_valid", job);
        self.cycle += 1;
        (taken, seen)
    }

    /// Offers this until it is taken, and lets some cycles pass. What was seen in these.
    fn offer(&mut self, pin: &str, words: &[u64]) -> Vec<Seen> {
        self.bench.set_wide(pin, words);
        self.bench.set(&format!("{pin}_valid"), true);
        while !self.step(&format!("{pin}_ready")).0 {}
        self.bench.set(&format!("{pin}_valid"), false);
        let seen = (0..20).filter_map(|_| self.step("job_valid").1);
        seen.collect()
    }

    /// The answer of a get comes.
    fn answer(&mut self, number: u32) {
        let (pair, number) = (u64::from(self.pair), u64::from(number));
        let claim = pack(&[(pair, 16), (number, 32), (0, 16), (0, 1)]);
        self.offer("claim", &claim);
        let success = u64::from(Status::Success.code());
        let answered = pack(&[(pair, 16), (number, 32), (success, 8)]);
        self.offer("answered", &answered);
    }

    /// The next time-out is over: what it does then, of which there is nothing before and nothing but what is told.
    fn expect(&mut self, wanted: &[Seen]) {
        let begin = self.cycle;
        let next = loop {
            if let (_, Some(seen)) = self.step("job_valid") {
                break seen;
            }
            let waited = self.cycle - begin;
            assert!(waited <= self.timeout + self.scan + 200, "{wanted:?}");
        };
        let waited = self.cycle - begin;
        assert!(waited + 300 >= self.timeout, "{wanted:?} after {waited}");
        let mut seen = vec![next];
        for _ in 0..150 {
            seen.extend(self.step("job_valid").1);
        }
        assert_eq!(seen, wanted);
        if next != Seen::Fails {
            self.offer("progress", &self.is_there());
        }
    }

    /// So many time-outs are over, at each of which the peer is asked whether it is there.
    fn is_patient(&mut self, timeouts: u8) {
        (0..timeouts).for_each(|_| self.expect(&[Seen::Asks]));
    }
}

/// A peer that has all and owes answers is asked whether it is there, and only for those that didn't come, and for nothing else, and in the end not again.
fn owed_answers(size: &Size, rng: &mut ChaCha8Rng) {
    let mut owed = Owed::new(size, rng, 2);
    let [first, second, third] = owed.gets.map(Seen::Again);
    owed.is_patient(ANSWER_TIMEOUTS - 1);
    owed.expect(&[first, second, third]);
    owed.is_patient(ANSWER_TIMEOUTS - 1);
    owed.expect(&[first, second, third]);
    owed.is_patient(ANSWER_TIMEOUTS - 2);
    // An answer of one behind the first: that is lost, as it seems, and all tries are there again.
    owed.answer(owed.gets[1]);
    owed.expect(&[first, third]);
    owed.is_patient(ANSWER_TIMEOUTS - 1);
    owed.expect(&[first, third]);
    owed.is_patient(2);
    owed.answer(owed.gets[0]);
    owed.is_patient(ANSWER_TIMEOUTS - 1);
    owed.expect(&[third]);
    owed.is_patient(ANSWER_TIMEOUTS - 1);
    owed.expect(&[third]);
    owed.is_patient(ANSWER_TIMEOUTS - 1);
    owed.expect(&[Seen::Fails]);
}

/// Pairs of which a message waits for its turn, and only they, are said to be scheduled: others hold back what they have to say for such a message.
fn turns_to_come(size: &Size, rng: &mut ChaCha8Rng) {
    let any = any_send(size, rng);
    let mut owed = Owed::connected(size, 2, 12);
    let (pair, all) = (owed.pair, 0..size.config.pairs as u16);
    let scheduled = |owed: &mut Owed| {
        let asked = all.clone().filter(|&asked| {
            owed.bench.set("scheduled_pair", asked);
            owed.step("job_valid");
            owed.bench.eval();
            owed.bench.is("scheduled")
        });
        asked.collect::<Vec<u16>>()
    };
    assert_eq!(scheduled(&mut owed), []);
    // Gather takes nothing.
    owed.bench.set("job_room", false);
    owed.offer("sends", &message_of(&any, pair, 0).words());
    assert_eq!(scheduled(&mut owed), [pair]);
    owed.bench.set("job_room", true);
    for _ in 0..40 {
        owed.step("job_valid");
    }
    assert_eq!(scheduled(&mut owed), [], "it is given");
    // The last one has no credit, which may come late.
    for request in 1..17 {
        owed.offer("sends", &message_of(&any, pair, request).words());
    }
    for _ in 0..40 {
        owed.step("job_valid");
    }
    assert_eq!(scheduled(&mut owed), [], "it waits for credit");
    owed.bench.set("job_room", false);
    let one = [(pair.into(), 16), (1, 32), (1, 32), (0, 19)];
    owed.offer("progress", &pack(&one));
    assert_eq!(scheduled(&mut owed), [pair]);
}

/// A block, one of whose pairs has sent messages to a peer that loses none of them.
struct Slow {
    owed: Owed,
    /// Messages posted, and safe at the peer.
    posted: u32,
    safe: u32,
    any: Send,
}

impl Slow {
    /// Eight messages are on their way.
    fn new(size: &Size, rng: &mut ChaCha8Rng, retry_limit: u8) -> Self {
        let mut slow = Self {
            owed: Owed::connected(size, retry_limit, 11),
            posted: 0,
            safe: 0,
            any: any_send(size, rng),
        };
        slow.post(8);
        slow
    }

    fn post(&mut self, messages: u32) {
        for _ in 0..messages {
            let send = message_of(&self.any, self.owed.pair, self.posted);
            self.owed.offer("sends", &send.words());
            self.posted += 1;
        }
    }

    /// The peer says that so many more are safe, and maybe that it misses the next. What the pair does at once.
    fn tells(&mut self, more: u32, gap: bool) -> Vec<Seen> {
        self.safe += more;
        let safe = u64::from(self.safe);
        let fields = [
            (self.owed.pair.into(), 16),
            (safe, 32),
            (safe, 32),
            (0, 1),
            (gap.into(), 1),
            (0, 17),
        ];
        self.owed.offer("progress", &pack(&fields))
    }

    /// What the pair does in so many tenths of its time-out.
    fn waits(&mut self, tenths: u64) -> Vec<Seen> {
        let steps = 0..self.owed.timeout * tenths / 10;
        steps
            .filter_map(|_| self.owed.step("job_valid").1)
            .collect()
    }

    /// The peer takes half of the messages after nearly four time-outs each time, until the pair waits for so long.
    fn learned(mut self) -> Self {
        assert_eq!(self.waits(37), [Seen::Again(7), Seen::Again(7)]);
        self.tells(4, false);
        self.post(4);
        assert_eq!(self.waits(37), [Seen::Again(11)]);
        self.tells(4, false);
        self.post(4);
        self
    }

    /// Nothing is on its way but one message. It is given again when its time-out has been over so often, and the peer has it then.
    fn one_more_after(&mut self, timeouts: u64) {
        self.tells(self.posted - self.safe, false);
        self.post(1);
        assert_eq!(self.waits(10 * timeouts - 1), [], "too early");
        assert_eq!(self.waits(7), [Seen::Again(self.posted - 1)]);
        self.tells(1, false);
    }
}

/// A peer that is slow and loses nothing is given three messages once more, the last each time, and no more for as long as it is no slower.
fn slow_peer(size: &Size, rng: &mut ChaCha8Rng) {
    let mut slow = Slow::new(size, rng, 2).learned();
    for _ in 0..4 {
        assert_eq!(slow.waits(37), []);
        slow.tells(4, false);
        slow.post(4);
    }
    // What was given again is acknowledged with all else: that may have been needed, each time.
    slow.one_more_after(4);
    slow.one_more_after(2);
    slow.one_more_after(1);
    slow.one_more_after(1);

    // It misses something, and says so when the last try is over: all is given again from there on.
    let mut slow = Slow::new(size, rng, 2);
    assert_eq!(slow.waits(37), [Seen::Again(7), Seen::Again(7)]);
    let mut again = slow.tells(0, true);
    again.extend(slow.waits(1));
    assert_eq!(again, (0..8).map(Seen::Again).collect::<Vec<_>>());
    slow.one_more_after(1);

    // It does so before the last has been given again.
    let mut slow = Slow::new(size, rng, 2);
    slow.owed.bench.set("job_room", false);
    assert_eq!(slow.waits(20), []);
    assert_eq!(slow.tells(0, true), []);
    slow.owed.bench.set("job_room", true);
    assert_eq!(slow.waits(1), (0..8).map(Seen::Again).collect::<Vec<_>>());

    // It misses something: all is given again from there on, and what was learned was wrong.
    let mut slow = Slow::new(size, rng, 2).learned();
    let mut again = slow.tells(0, true);
    again.extend(slow.waits(1));
    let all: Vec<_> = (slow.safe..slow.posted).map(Seen::Again).collect();
    assert_eq!(again, all);
    slow.one_more_after(1);

    // Other times are a beginning.
    let mut slow = Slow::new(size, rng, 2).learned();
    slow.owed.sets_times();
    slow.one_more_after(1);

    // One that says nothing more is failed after four time-outs for each try.
    let mut slow = Slow::new(size, rng, 2).learned();
    let last = Seen::Again(slow.posted - 1);
    assert_eq!(slow.waits(117), [last, last]);
    assert_eq!(slow.waits(10).first(), Some(&Seen::Fails));
}

/// A put comes while what the peer says waits for a message that is read again, so that its turn comes in vain. It goes when that has been read, though the peer
/// has said nothing new.
fn put_behind_waiting_progress(size: &Size, rng: &mut ChaCha8Rng) {
    let mut bench = Bench::open(&size.model);
    let pair = size.pairs[0] as u16;
    let setup = PairSetup {
        remote_credits: 1,
        sends_log2: 5,
        retry_limit: 5,
        ..PairSetup::default()
    };
    connect(&mut bench, pair, &setup);
    let message = Send {
        endpoint: 0,
        pair,
        length: 0,
        segments: Segments::default(),
        inline: None,
        request: 1,
        ..any_send(size, rng)
    };
    let put = Send {
        ready: false,
        request: 2,
        put: true,
        ..message
    };
    let told = |gap: u64| pack(&[(pair.into(), 16), (0, 64), (0, 1), (gap, 1), (0, 17)]);
    let mut jobs = 0;
    // Some cycles, in which what is offered may be taken; a job's answer comes when the test says so.
    let mut run = |bench: &mut Bench| {
        for _ in 0..40 {
            bench.eval();
            jobs += usize::from(bench.is("job_valid"));
            let taken = ["sends", "progress"].map(|pin| bench.is(&format!("{pin}_ready")));
            bench.step();
            bench.set("job_result_valid", false);
            for (pin, taken) in ["sends", "progress"].iter().zip(taken) {
                if taken {
                    bench.set(&format!("{pin}_valid"), false);
                }
            }
        }
        jobs
    };
    let offer = |bench: &mut Bench, pin: &str, words: &[u64]| {
        bench.set_wide(pin, words);
        bench.set(&format!("{pin}_valid"), true);
    };
    offer(&mut bench, "sends", &message.words());
    assert_eq!(run(&mut bench), 1);
    bench.set("job_result_valid", true);
    run(&mut bench);
    offer(&mut bench, "progress", &told(1));
    assert_eq!(run(&mut bench), 2, "it goes back");
    offer(&mut bench, "progress", &told(0));
    run(&mut bench);
    offer(&mut bench, "sends", &put.words());
    assert_eq!(run(&mut bench), 2, "what the peer says waits");
    bench.set("job_result_valid", true);
    assert_eq!(run(&mut bench), 3, "the put has its turn");
}

/// A peer keeps the number of each put, as if puts held envelopes. It may keep as many as it has granted; one more is a lie, and fails the pair.
fn peer_keeps_puts(size: &Size, rng: &mut ChaCha8Rng) {
    let any = any_send(size, rng);
    let mut owed = Owed::connected(size, 2, 11);
    let pair = owed.pair;
    let granted = u32::from(owed.setup.remote_credits);
    let put = |owed: &mut Owed, number: u32| {
        let send = Send {
            put: true,
            ..message_of(&any, pair, number)
        };
        owed.offer("sends", &send.words());
        let safe = [
            (pair.into(), 16),
            (u64::from(number) + 1, 32),
            (0, 32),
            (0, 19),
        ];
        owed.offer("progress", &pack(&safe))
    };
    for number in 0..granted {
        assert_eq!(put(&mut owed, number), [], "put {number}");
    }
    assert_eq!(put(&mut owed, granted), [Seen::Fails]);
}

/// A message waits for a credit whose return was lost, and puts are posted behind it, again and again. The peer is asked all the same when the time-out is over.
fn puts_behind_a_dry_message(size: &Size, rng: &mut ChaCha8Rng) {
    let any = any_send(size, rng);
    let mut owed = Owed::connected(size, 2, 11);
    let pair = owed.pair;
    let credits = owed.setup.remote_credits;
    for request in 0..credits.into() {
        owed.offer("sends", &message_of(&any, pair, request).words());
    }
    // The peer has all of them, and has returned none of their credits.
    let safe = [(pair.into(), 16), (credits.into(), 32), (0, 32), (0, 19)];
    assert_eq!(owed.offer("progress", &pack(&safe)), []);
    owed.offer("sends", &message_of(&any, pair, credits.into()).words());
    let begin = owed.cycle;
    for put in 1.. {
        let send = Send {
            put: true,
            ..message_of(&any, pair, u32::from(credits) + put)
        };
        let mut seen = owed.offer("sends", &send.words());
        for _ in 0..owed.timeout / 4 {
            seen.extend(owed.step("job_valid").1);
        }
        let waited = owed.cycle - begin;
        if !seen.is_empty() {
            assert_eq!(seen, [Seen::Asks], "after {waited} cycles");
            return assert!(waited >= owed.timeout, "{waited} of {}", owed.timeout);
        }
        assert!(waited <= 2 * owed.timeout + owed.scan, "it doesn't ask");
    }
}

/// A peer that says nothing, of a card that has nothing else to do, is declared when its time-outs are over, each of several whole scans, and one scan has passed.
fn silence(size: &Size, rng: &mut ChaCha8Rng) {
    let mut bench = Bench::open(&size.model);
    let index = size.pairs[size.pairs.len() - 1] as u16;
    let scan = scan_round(size.config.pairs as u32);
    let timeout_log2 = scan.ilog2() as u8 + rng.random_range(0..2);
    let setup = PairSetup {
        remote_credits: 1,
        sends_log2: 5,
        timeout_log2,
        retry_limit: RETRY_LIMIT,
        ..PairSetup::default()
    };
    connect(&mut bench, index, &setup);
    bench.set("fault_request_ready", true);
    for _ in 0..rng.random_range(0..scan) {
        bench.step();
    }
    let send = Send {
        endpoint: 0,
        pair: index,
        length: 0,
        segments: Segments::default(),
        inline: None,
        ready: false,
        request: 1,
        put: false,
        get: false,
        target: None,
        ..any_send(size, rng)
    };
    bench.set_wide("sends", &send.words());
    bench.set("sends_valid", true);
    let (mut jobs, mut left, mut cycle) = (0, None, 0);
    let most = timeouts_until_failure(RETRY_LIMIT) << timeout_log2;
    loop {
        bench.eval();
        if bench.is("fault_request_valid") {
            break;
        }
        let (answers, taken) = (bench.is("job_valid"), bench.is("sends_ready"));
        jobs += usize::from(answers);
        if answers {
            left.get_or_insert(cycle);
        }
        bench.step();
        bench.set("job_result_valid", answers);
        if taken {
            bench.set("sends_valid", false);
        }
        cycle += 1;
        assert!(
            cycle < most + 2 * scan,
            "it waits for a scan more each time"
        );
    }
    let waited = cycle - left.expect("it was given");
    assert_eq!(jobs, 1 + usize::from(RETRY_LIMIT));
    assert!(
        (most - 100..most + scan + 100).contains(&waited),
        "{waited} cycles, not {most} and up to {scan}"
    );
}

#[test]
fn a_silent_peer_is_declared_after_its_time_outs_and_one_scan() {
    for_sizes("send_queues", 3, silence);
}

#[test]
fn a_peer_that_is_slow_and_loses_nothing_is_given_little_again() {
    for_sizes("send_queues", 1, slow_peer);
}

#[test]
fn a_peer_that_owes_answers_is_asked_whether_it_is_there_and_rarely_for_the_answers() {
    for_sizes("send_queues", 1, owed_answers);
}

#[test]
fn pairs_whose_messages_wait_for_their_turn_are_told() {
    for_sizes("send_queues", 1, turns_to_come);
}

#[test]
fn a_put_goes_when_the_message_in_front_of_it_is_cancelled() {
    for_sizes("send_queues", 1, put_behind_a_cancel);
}

#[test]
fn a_put_goes_though_its_turn_came_while_what_the_peer_says_waited() {
    for_sizes("send_queues", 1, put_behind_waiting_progress);
}

#[test]
fn a_peer_keeps_no_more_numbers_of_puts_than_it_has_granted_envelopes() {
    for_sizes("send_queues", 1, peer_keeps_puts);
}

#[test]
fn puts_behind_a_message_without_credit_dont_put_off_the_question_for_it() {
    for_sizes("send_queues", 1, puts_behind_a_dry_message);
}

#[test]
fn a_get_goes_when_one_in_front_of_it_is_answered() {
    for_sizes("send_queues", 1, get_behind_a_window);
}

#[test]
fn puts_go_as_far_as_a_frame_tells_outcomes() {
    for_sizes("send_queues", 1, puts_fill_the_window);
}

/// All that finds a wrong block, in a short time.
fn in_short(rng: &mut ChaCha8Rng) {
    let size = Size::new(&config::TINY, "send_queues", rng);
    put_behind_a_cancel(&size, rng);
    puts_fill_the_window(&size, rng);
    get_behind_a_window(&size, rng);
    put_behind_waiting_progress(&size, rng);
    puts_behind_a_dry_message(&size, rng);
    peer_keeps_puts(&size, rng);
    silence(&size, rng);
    owed_answers(&size, rng);
    traffic(&size, rng, 10_000, Break::None).for_each(drop);
    slow_peer(&size, rng);
    turns_to_come(&size, rng);
}

#[test]
fn a_block_that_is_broken_is_noticed() {
    breaks_from("send_queues_tiny", &[27, 19, 8], 30, in_short);
}

#[test]
#[ignore = "mutants: `cargo xtask mutants`, `cargo xtask test --long`"]
fn most_mutants_are_noticed() {
    mutants("send_queues_tiny", 4, in_short);
}

#[test]
fn a_broken_model_is_noticed() {
    for broken in [
        Break::RefusalUnheard,
        Break::FailureKeepsSends,
        Break::SuccessTold,
        Break::PutWaitsForCredit,
    ] {
        let noticed = is_caught("send_queues_tiny", 10, |rng| {
            let size = Size::new(&config::TINY, "send_queues", rng);
            traffic(&size, rng, 10_000, broken).for_each(drop);
        });
        assert!(noticed, "{broken:?}");
    }
}
