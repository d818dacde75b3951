//! Delivery of the model of a card: whatever it asks of its neighbours, and tells them, becomes an access or an output that the gates owe.
//!
//! ```text
//!  what the gates have taken ──► Reference ──► Delivery ◄──► Wanted ──► accesses, outputs in order
//! ```

use std::collections::{BTreeMap, HashMap, VecDeque};

use abi::capability::CAPABILITY_RULES;
use abi::completion::{COMPLETION_MORE, CompletionKind};
use abi::control::{Counter, GrantSetup, PairCounter, PairSetup, RegionSetup, RuleSetup};
use abi::event::Cause;
use abi::opcode::decode_list;
use abi::request::{FLAG_ANY_SOURCE, ListRequest, Opcode, claim_slot, pair_and_slot};
use abi::status::Status;
use card_model::delivery::{Arrival, Delivery, Neighbours};
use card_model::matching::{Command, Lists, Operation, Reply};
use card_model::memory::BusError;
use card_model::{Access as Question, Break, Output, Regions, RemoteAccess};
use hdl::config::Config;

use crate::memory::Access;
use crate::world::Control;

pub const ENDPOINTS: u8 = 2;
/// Pairs that are used.
pub const PAIRS: usize = 8;

/// A connected pair.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    pub endpoint: u8,
    pub credits: u16,
    pub failed: Option<u8>,
    /// Which connection this is, over all pairs.
    pub incarnation: u32,
}

/// What has to hold when an output comes.
#[derive(Clone, Debug, Default)]
pub struct Duty {
    /// These bytes are at this address.
    pub bytes: Option<(u64, Vec<u8>)>,
    /// So many reads have been asked for, since the beginning.
    pub reads: u64,
    /// This write has been answered,
    pub own: Option<u64>,
    /// and all of lower numbers,
    pub before: u64,
    /// but, if it is of a message, for a copy that waits for a slot.
    may_pass: bool,
}

/// A write that is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Write {
    number: u64,
    access: Access,
    /// It is of a copy: messages that come behind it may pass it.
    of_copy: bool,
}

/// How often what has happened.
#[derive(Default, Debug)]
pub struct Seen {
    pub statuses: HashMap<(u8, u8), u32>,
    pub dropped: u32,
    /// Messages behind one that was lost.
    pub behind: u32,
    pub overflows: u32,
    pub expected: u32,
    pub unexpected: u32,
    pub invalid: u32,
    pub cleared_unexpected: u32,
    /// Claimed messages that went with their pair.
    pub cleared_claimed: u32,
    /// Claimed messages that were received or discarded after their pair had failed.
    pub claimed_from_failed: u32,
    pub from_failed: u32,
    pub empty: u32,
    /// Receives that took a message from behind one that waits for room.
    pub from_behind: u32,
    pub waiting_cancelled: u32,
    pub waiting_flushed: u32,
    pub woken_by_news: u32,
    pub woken_by_room: u32,
    /// Messages after which a multi-receive stayed, and after which it didn't for want of a completion.
    pub stayed: u32,
    pub ended_early: u32,
    /// Messages that memory answered with an error, and after which a multi-receive stayed.
    pub survived: u32,
    /// Multi-receives that ended, with their last message or without one, after others.
    pub counted: u32,
    pub counted_unfilled: u32,
    /// Times that a count of refused accesses was read that wasn't zero.
    pub refusals_read: u32,
    /// Ready messages that found a receive; that were refused; that were not, since the ring had more, or only since the host kept receives back.
    pub ready: u32,
    pub not_ready: u32,
    pub ready_for_ring: u32,
    pub ready_for_backlog: u32,
    /// Messages that a rule revoked, of each pair.
    pub revoked: BTreeMap<u16, u32>,
    /// Puts that were written, that were refused by the grants, and that memory answered with an error.
    pub put: u32,
    pub put_refused: u32,
    pub put_failed: u32,
    /// Gets that were passed on, first and again, and answers by what they end with.
    pub got: u32,
    pub got_again: u32,
    pub answers: HashMap<u8, u32>,
    /// Requests that found a message whose slot couldn't be written.
    pub again: u32,
    /// Messages that left their slots.
    vacated: u32,
}

impl Seen {
    /// Answers of gets that ended so.
    pub fn answered(&self, status: Status) -> u32 {
        self.answers.get(&status.code()).copied().unwrap_or(0)
    }

    fn woken(&self) -> u32 {
        let key = (CompletionKind::Receive.code(), Status::ListFull.code());
        self.statuses.get(&key).copied().unwrap_or(0)
    }
}

/// A step of a walk, and what Lists replied.
#[derive(Debug)]
pub struct Step {
    /// The command.
    pub command: Command,
    /// Something was found,
    pub found: bool,
    /// and if it is a receive, the one of this handle.
    pub request: Option<u32>,
    /// There is more to look at.
    pub more: bool,
}

/// What the gates owe.
pub struct Wanted {
    pub pairs: Vec<Option<Pair>>,
    regions: Regions,
    fails: fn(Access) -> bool,
    /// What has been written, by its first address.
    memory: HashMap<u64, Vec<u8>>,
    /// What has been written since the last output.
    written: Option<(u64, Vec<u8>)>,
    /// Reads and writes, each in their order: reads run ahead.
    pub reads: VecDeque<Access>,
    pub writes: VecDeque<Write>,
    /// Reads that have been asked for.
    pub read: u64,
    /// Writes that have been wanted, and the numbers of those that have been asked for, in the order in which that was.
    wrote: u64,
    asked: VecDeque<u64>,
    /// Writes that haven't been answered, and whether they are of copies.
    unanswered: BTreeMap<u64, bool>,
    answered: u64,
    /// What the operation has read and written that what it ends with comes behind.
    has_read: bool,
    own: Option<u64>,
    is_message: bool,
    pub outputs: VecDeque<(Output, Duty)>,
    pub releases: VecDeque<u8>,
    pub reserves: VecDeque<u8>,
    pub events: VecDeque<(u8, u8, u16)>,
    pub faults: VecDeque<(u16, u8)>,
    /// Whether a completion of each endpoint can be reserved by what is taken next.
    pub free: [bool; ENDPOINTS as usize],
    /// Whether the list ring of each endpoint has more, while what was taken last is dealt with.
    pub pending: [bool; ENDPOINTS as usize],
    /// The slot that the gates have found for the message that enters.
    pub slot: Option<u8>,
    /// The step of a walk that the gates have taken.
    pub step: Option<Step>,
    pub seen: Seen,
}

impl Neighbours for Wanted {
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), BusError> {
        self.access(false, address, bytes.len())?;
        bytes.copy_from_slice(&self.memory[&address][..bytes.len()]);
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), BusError> {
        self.access(true, address, bytes.len())?;
        self.memory.insert(address, bytes.to_vec());
        self.written = Some((address, bytes.to_vec()));
        Ok(())
    }

    fn allowed(&mut self, question: &Question) -> bool {
        self.regions.allowed(question)
    }

    fn allowed_remote(&mut self, question: &RemoteAccess) -> Option<u64> {
        self.regions.allowed_remote(question)
    }

    fn completion_free(&mut self, endpoint: u8, _: u32) -> bool {
        let free = self.free[usize::from(endpoint)];
        self.seen.ended_early += u32::from(!free);
        free
    }

    fn slot(&mut self, _: u16, lowest: u8) -> u8 {
        self.slot.take().unwrap_or(lowest)
    }

    fn slot_fails_later(&self) -> bool {
        true
    }

    fn list_pending(&mut self, endpoint: u8) -> bool {
        self.pending[usize::from(endpoint)]
    }

    /// A walk may take its receives in any order, and pause: it does as in the gates. Their places in the lists are of their own.
    fn reply(&mut self, lists: &Lists, command: &Command) -> Reply {
        let reply = lists.decide(command);
        if !command.is_step() {
            return reply;
        }
        let step = self.step.take().expect("the gates take a step");
        assert_eq!(command.essence(), step.command.essence(), "wanted, taken");
        if command.operation == Operation::TakeUnexpectedOfPair {
            assert_eq!(reply.found, step.found, "a message of {command:x?}");
            self.seen.cleared_unexpected += u32::from(step.found);
            return reply;
        }
        let mut posted = lists.posted(command.endpoint.into()).iter();
        let place = step.request.map(|request| {
            let receive = posted.find(|r| r.command.request == request);
            receive.expect("what a walk takes is posted").index
        });
        Reply {
            found: step.found,
            full: false,
            index: place.unwrap_or(0),
            more: step.more,
        }
    }

    fn put(&mut self, output: Output) {
        match output {
            Output::Complete { entry, .. } => {
                let key = (entry.kind, entry.status);
                *self.seen.statuses.entry(key).or_default() += 1;
                let received = entry.kind == CompletionKind::Receive.code()
                    && entry.status == Status::Success.code();
                self.seen.empty += u32::from(received && entry.length == 0);
                let failed = entry.status == Status::MemoryError.code();
                let stays = entry.flags & COMPLETION_MORE != 0;
                self.seen.survived += u32::from(failed && stays);
                let of_message = [
                    Status::Success,
                    Status::Truncated,
                    Status::AccessDenied,
                    Status::MemoryError,
                ]
                .map(Status::code)
                .contains(&entry.status);
                let counted = match of_message {
                    true => &mut self.seen.counted,
                    false => &mut self.seen.counted_unfilled,
                };
                *counted += u32::from(entry.count > 1);
                self.owe(output);
            }
            Output::Update(update) => {
                self.seen.not_ready += u32::from(update.refused);
                self.seen.vacated += u32::from(!update.accepted);
                self.owe(output);
            }
            Output::Reserve { endpoint } => {
                self.seen.stayed += 1;
                self.reserves.push_back(endpoint);
            }
            Output::Release { endpoint } => self.releases.push_back(endpoint),
            Output::Raise {
                endpoint,
                cause,
                pair,
                ..
            } => {
                self.seen.overflows += u32::from(cause == Cause::UnexpectedOverflow);
                self.events.push_back((endpoint, cause.code(), pair));
            }
            Output::Fail { pair, status } => {
                self.faults.push_back((pair, status));
                self.fail(pair, status);
            }
            Output::Count(counter) => match counter {
                Counter::Expected => self.seen.expected += 1,
                Counter::Unexpected => self.seen.unexpected += 1,
                Counter::InvalidRequests => self.seen.invalid += 1,
                counter => panic!("Delivery doesn't count {counter:?}"),
            },
            Output::CountOfPair { pair, counter } => {
                assert_eq!(counter, PairCounter::RuleDrops);
                *self.seen.revoked.entry(pair).or_default() += 1;
            }
            Output::Asked(asked) => {
                self.seen.got += u32::from(!asked.again);
                self.seen.got_again += u32::from(asked.again);
                self.owe(output);
            }
            Output::Answered(answered) => {
                let key = answered.status.code();
                *self.seen.answers.entry(key).or_default() += 1;
                self.owe(output);
            }
            Output::Mark { .. } => panic!("Delivery sends no frames"),
        }
    }
}

impl Wanted {
    fn access(&mut self, write: bool, address: u64, length: usize) -> Result<(), BusError> {
        let access = Access {
            write,
            address,
            length,
        };
        if write {
            let (number, of_copy) = (self.wrote, self.has_read);
            self.writes.push_back(Write {
                number,
                access,
                of_copy,
            });
            self.unanswered.insert(number, of_copy);
            self.wrote += 1;
            self.own = Some(number);
        } else {
            self.reads.push_back(access);
            self.has_read = true;
        }
        match (self.fails)(access) {
            true => Err(BusError),
            false => Ok(()),
        }
    }

    /// What follows is of another operation.
    fn begin(&mut self, is_message: bool) {
        self.has_read = false;
        self.own = None;
        self.is_message = is_message;
    }

    /// An output that has to come behind the accesses that have to come so far, but for those of a copy that waits.
    fn owe(&mut self, output: Output) {
        let duty = Duty {
            bytes: self.written.take(),
            reads: self.read + self.reads.len() as u64
                - u64::from(self.is_message && !self.reads.is_empty()),
            own: self.own,
            before: self.wrote,
            may_pass: self.is_message,
        };
        self.outputs.push_back((output, duty));
    }

    pub fn fail(&mut self, pair: u16, status: u8) {
        if let Some(pair) = &mut self.pairs[usize::from(pair)] {
            pair.failed = Some(status);
        }
    }

    /// Nothing has to follow any more.
    pub fn settled(&self) -> bool {
        self.reads.is_empty()
            && self.writes.is_empty()
            && self.outputs.is_empty()
            && self.releases.is_empty()
            && self.reserves.is_empty()
            && self.events.is_empty()
            && self.faults.is_empty()
    }

    /// An access has been asked for: it has to be the one of its kind that is wanted next, or a message's behind a copy.
    pub fn asked(&mut self, access: Access) {
        if !access.write {
            self.read += 1;
            assert_eq!(self.reads.pop_front(), Some(access), "wanted, asked for");
            return;
        }
        let first = self
            .writes
            .front()
            .map(|write| (write.access, write.of_copy));
        let at = match first {
            Some((wanted, true)) if wanted != access => 1,
            _ => 0,
        };
        let write = self.writes.remove(at);
        assert_eq!(
            write.map(|write| write.access),
            Some(access),
            "wanted, asked for"
        );
        let write = write.expect("it is the one");
        assert!(at == 0 || !write.of_copy, "a copy passes another");
        self.asked.push_back(write.number);
    }

    /// So many writes have been answered.
    pub fn answer(&mut self, answered: u64) {
        while self.answered < answered {
            let number = self.asked.pop_front().expect("it was asked for");
            self.unanswered.remove(&number);
            self.answered += 1;
        }
    }

    /// What must have been answered before an output and hasn't.
    pub fn is_early(&self, duty: &Duty) -> bool {
        let left: Vec<_> = self.unanswered.range(..duty.before).collect();
        let waits = |&(number, of_copy): &(&u64, &bool)| {
            duty.may_pass && *of_copy && Some(*number) != duty.own
        };
        left.len() > 1 || !left.iter().all(waits)
    }

    /// Takes the first output that is owed to whom this one is: each request hears of its messages, and each pair of its
    /// progress, in order. What ends later than something that entered behind it comes later.
    pub fn owed(&mut self, output: &Output) -> Option<(Output, Duty)> {
        let of_same = |owed: &Output| match (owed, output) {
            (Output::Complete { entry, .. }, Output::Complete { entry: other, .. }) => {
                entry.request == other.request
            }
            (Output::Update(update), Output::Update(other)) => {
                (update.pair, update.accepted) == (other.pair, other.accepted)
            }
            (Output::Asked(asked), Output::Asked(other)) => asked.pair == other.pair,
            (Output::Answered(answered), Output::Answered(other)) => answered.pair == other.pair,
            _ => false,
        };
        let at = self.outputs.iter().position(|(owed, _)| of_same(owed))?;
        self.outputs.remove(at)
    }
}

pub struct Reference {
    delivery: Delivery,
    pub wanted: Wanted,
    pub regions: HashMap<u16, RegionSetup>,
    incarnations: u32,
}

impl Reference {
    pub fn new(config: &Config, fails: fn(Access) -> bool) -> Self {
        Reference {
            delivery: Delivery::new(match_reference::sizes_of(config), config.rules),
            wanted: Wanted {
                pairs: vec![None; config.pairs],
                regions: Regions::with_grants(config.regions, config.grants, config.pairs),
                fails,
                memory: HashMap::new(),
                written: None,
                reads: VecDeque::new(),
                writes: VecDeque::new(),
                read: 0,
                wrote: 0,
                asked: VecDeque::new(),
                unanswered: BTreeMap::new(),
                answered: 0,
                has_read: false,
                own: None,
                is_message: false,
                outputs: VecDeque::new(),
                releases: VecDeque::new(),
                reserves: VecDeque::new(),
                events: VecDeque::new(),
                faults: VecDeque::new(),
                free: [true; ENDPOINTS as usize],
                pending: [false; ENDPOINTS as usize],
                slot: None,
                step: None,
                seen: Seen::default(),
            },
            regions: HashMap::new(),
            incarnations: 0,
        }
    }

    /// Breaks the model on purpose.
    pub fn break_on_purpose(&mut self, broken: Break) {
        self.delivery.break_on_purpose(broken);
    }

    /// Receives that are posted, and messages that wait.
    pub fn depths(&self) -> (u64, u64) {
        let lists = self.delivery.lists();
        (lists.posted_depth() as u64, lists.unexpected_depth() as u64)
    }

    pub fn pair(&self, pair: u16) -> Option<Pair> {
        *self.wanted.pairs.get(usize::from(pair))?
    }

    /// Accesses of the peer of a pair that a region refused.
    pub fn refused(&self, pair: u16) -> u32 {
        self.delivery.refused(pair)
    }

    /// A get of the peer was refused where it was to be answered.
    pub fn refuse(&mut self, pair: u16) {
        self.delivery.count_refusal(pair);
    }

    /// Whether the answer of a get of the pair, or a get of its peer, has entered and isn't told.
    pub fn owes_of_gets(&self, pair: u16) -> [bool; 2] {
        let owes = |of: fn(&Output) -> Option<u16>| {
            let outputs = self.wanted.outputs.iter();
            outputs
                .map(|(output, _)| of(output))
                .any(|of| of == Some(pair))
        };
        let asked = |output: &Output| match output {
            Output::Asked(asked) => Some(asked.pair),
            _ => None,
        };
        let answered = |output: &Output| match output {
            Output::Answered(answered) => Some(answered.pair),
            _ => None,
        };
        [owes(asked), owes(answered)]
    }

    /// How many of them at least have been counted in the gates: all but those whose ends are on their way.
    pub fn refused_at_least(&self, pair: u16) -> u32 {
        let denied = |output: &Output| match output {
            Output::Complete { entry, .. } => {
                entry.pair == pair && entry.status == Status::AccessDenied.code()
            }
            Output::Update(update) => update.pair == pair && update.refused,
            Output::Answered(answered) => {
                answered.pair == pair && answered.status == Status::AccessDenied
            }
            _ => false,
        };
        let owed = self
            .wanted
            .outputs
            .iter()
            .filter(|(output, _)| denied(output));
        self.refused(pair).saturating_sub(owed.count() as u32)
    }

    /// Envelopes of unexpected messages.
    pub fn waiting(&self) -> Vec<Command> {
        let lists = self.delivery.lists();
        let endpoints = 0..ENDPOINTS.into();
        endpoints
            .flat_map(|endpoint| lists.waiting(endpoint))
            .copied()
            .collect()
    }

    /// Handles of claimed messages, with the endpoint that has claimed them.
    pub fn claims(&self) -> Vec<(u8, u32)> {
        self.delivery.claims()
    }

    /// Whether a message gives the lists no command: it is a put, a get or an answer, its pair has failed or is closed, or a rule revokes it.
    pub fn asks_nothing(&self, message: &Arrival) -> bool {
        !message.is_message()
            || self.delivery.drops(message.pair)
            || self.delivery.is_revoked(message)
    }

    /// Whether what comes by the pair is dropped.
    pub fn drops(&self, pair: u16) -> bool {
        self.delivery.drops(pair)
    }

    /// A message has been taken.
    pub fn arrive(&mut self, arrival: &Arrival) {
        self.wanted.begin(true);
        let pair = self.pair(arrival.pair);
        let dropped = pair.is_none_or(|pair| pair.failed.is_some());
        let behind = !dropped && self.delivery.is_behind_a_lost_one(arrival.pair);
        let seen = &mut self.wanted.seen;
        seen.dropped += u32::from(dropped);
        seen.behind += u32::from(behind);
        let (expected, unexpected, woken) = (seen.expected, seen.unexpected, seen.woken());
        let (not_ready, refused) = (seen.not_ready, self.refused(arrival.pair));
        self.delivery.arrive(arrival, &mut self.wanted);
        let refused = self.refused(arrival.pair) - refused;
        let seen = &mut self.wanted.seen;
        if arrival.put && !dropped && !behind {
            let told = std::mem::replace(&mut seen.not_ready, not_ready) - not_ready;
            seen.put += 1 - told;
            seen.put_refused += refused;
            seen.put_failed += told - refused;
        }
        let woken = seen.woken() - woken;
        if seen.unexpected > unexpected {
            seen.woken_by_news += woken;
        } else {
            seen.woken_by_room += woken;
        }
        let for_ring = self.wanted.pending[usize::from(arrival.endpoint)];
        if !arrival.ready {
        } else if seen.expected > expected {
            seen.ready += 1;
        } else if seen.unexpected > unexpected && for_ring {
            seen.ready_for_ring += 1;
        } else if seen.unexpected > unexpected {
            seen.ready_for_backlog += 1;
        }
    }

    /// A request of the list ring has been taken.
    pub fn list(&mut self, endpoint: u8, domain: u8, request: &ListRequest) {
        self.wanted.begin(false);
        let row =
            decode_list(request, CAPABILITY_RULES).expect("only well-formed requests get here");
        let waits = self.delivery.waits(endpoint);
        let is_failed = |pair: u16| self.pair(pair).is_some_and(|pair| pair.failed.is_some());
        let any_source = request.flags & FLAG_ANY_SOURCE != 0;
        let uses_claim = [Opcode::ReceiveClaimed, Opcode::Discard].contains(&row.opcode);
        let failed = match uses_claim {
            true => is_failed(pair_and_slot(claim_slot(request.target)).0),
            false => !any_source && is_failed(request.pair),
        };
        let (vacated, woken) = (self.wanted.seen.vacated, self.wanted.seen.woken());
        self.delivery
            .list(endpoint, domain, row, request, &mut self.wanted);
        let seen = &mut self.wanted.seen;
        seen.woken_by_room += seen.woken() - woken;
        let took = seen.vacated - vacated;
        let of_failed = match uses_claim {
            true => &mut seen.claimed_from_failed,
            false => &mut seen.from_failed,
        };
        *of_failed += if failed { took } else { 0 };
        seen.from_behind += if waits.is_some() && !uses_claim {
            took
        } else {
            0
        };
        let cancelled = row.opcode == Opcode::Cancel && waits == Some(request.target);
        seen.waiting_cancelled += u32::from(cancelled);
    }

    /// The message of a place whose slot couldn't be written is removed.
    pub fn slot_fails(&mut self, pair: u16, slot: u8) {
        self.wanted.begin(false);
        self.delivery.slot_fails(pair, slot, &mut self.wanted);
    }

    /// The request that has found such a message enters anew.
    pub fn look_again(&mut self) {
        self.wanted.begin(false);
        self.wanted.seen.again += 1;
        self.delivery.look_again(&mut self.wanted);
    }

    /// Lets pairs or endpoints go.
    fn flush(&mut self, act: impl FnOnce(&mut Delivery, &mut Wanted)) {
        let waiting: Vec<_> = (0..ENDPOINTS)
            .filter_map(|endpoint| self.delivery.waits(endpoint))
            .collect();
        let before = self.wanted.outputs.len();
        act(&mut self.delivery, &mut self.wanted);
        let flushed = |output: &Output| match output {
            Output::Complete { entry, .. } => {
                waiting.contains(&entry.request) && entry.status != Status::ListFull.code()
            }
            _ => false,
        };
        let new = self.wanted.outputs.range(before..);
        let flushed = new.filter(|(output, _)| flushed(output)).count();
        self.wanted.seen.waiting_flushed += flushed as u32;
    }

    /// A walk takes a step, its first one or another. What begins is what waits.
    pub fn walk(&mut self, step: Step, fault: Option<(u16, u8)>, control: Option<&Control>) {
        self.wanted.begin(false);
        let command = step.command;
        self.wanted.step = Some(step);
        if self.delivery.walks() {
            return self.delivery.walk_step(&mut self.wanted);
        }
        match (command.operation, fault, control) {
            (Operation::TakePostedOfPair, Some((pair, status)), _) => {
                assert_eq!(command.pair, pair, "the pair that has failed");
                self.wanted.fail(pair, status);
                self.flush(|delivery, wanted| delivery.pair_fails(pair, status, wanted));
            }
            (Operation::TakeUnexpectedOfPair, _, Some(&Control::PairClear(pair))) => {
                assert_eq!(command.pair, pair, "the pair that is cleared");
                self.wanted.pairs[usize::from(pair)] = None;
                let of_pair = |handle: u32| pair_and_slot(claim_slot(handle)).0 == pair;
                let claims = self.claims().into_iter();
                let claims = claims.filter(|(_, handle)| of_pair(*handle)).count();
                self.wanted.seen.cleared_claimed += claims as u32;
                self.flush(|delivery, wanted| delivery.pair_clear(pair, wanted));
            }
            (Operation::TakePostedOfEndpoint, _, Some(&Control::EndpointFlush(endpoint))) => {
                self.flush(|delivery, wanted| delivery.endpoint_flush(endpoint, wanted));
            }
            _ => panic!("nothing causes {command:x?}"),
        }
    }

    /// Handle of the receive of an endpoint that waits for room.
    pub fn waits(&self, endpoint: u8) -> Option<u32> {
        self.delivery.waits(endpoint)
    }

    /// Whether a walk is under way.
    pub fn walks(&self) -> bool {
        self.delivery.walks()
    }

    pub fn pair_set(&mut self, pair: u16, setup: &PairSetup) {
        self.incarnations += 1;
        self.wanted.pairs[usize::from(pair)] = Some(Pair {
            endpoint: setup.endpoint,
            credits: setup.local_credits.into(),
            failed: None,
            incarnation: self.incarnations,
        });
        self.wanted.regions.grants.connect(pair, setup.domain);
    }

    /// Delivery knows the pair, before all other blocks may: requests can name it.
    pub fn pair_set_in_delivery(&mut self, pair: u16, setup: &PairSetup) {
        self.delivery.pair_set(pair, setup);
    }

    /// A pair has been closed: its peer may do nothing.
    pub fn pair_cleared(&mut self, pair: u16) {
        self.wanted.regions.grants.close(pair);
    }

    /// A row has this grant from now on, or none.
    pub fn grant_set(&mut self, row: u16, grant: Option<GrantSetup>) {
        match grant {
            Some(grant) => self.wanted.regions.grants.set(row, grant),
            None => self.wanted.regions.grants.clear(row),
        }
    }

    /// All that was granted to the peer of a pair has ended.
    pub fn revoke(&mut self, pair: u16) {
        self.wanted.regions.grants.revoke(pair);
    }

    /// A row has this rule from now on, or none.
    pub fn rule_set(&mut self, row: u16, rule: Option<RuleSetup>) {
        self.delivery.rule_set(row, rule);
    }

    pub fn region_set(&mut self, index: u16, region: Option<RegionSetup>) {
        self.wanted.regions.set(index, region);
        match region {
            Some(region) => self.regions.insert(index, region),
            None => self.regions.remove(&index),
        };
    }
}
