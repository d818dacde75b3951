//! The loop: what the firmware is doing, and in which order it looks at what.
//!
//! ```text
//!  step ─► result of the control request ─► who waits for it
//!          event of the gates            ─► pair failed
//!          frame for the firmware        ─► handshake, disconnect
//!          timers                        ─► repeat, give up, time out
//!          frame to send                 ─► answers first, then whose turn it is
//!          control request to start      ─► host and pairs by turns
//! ```
//!
//! One control request is under way at a time, and nothing is waited for: whoever needs the gates leaves a mark ([`Pair::wanted`], the state of
//! an endpoint or a region, the host's [`Job`]), and `start_control` finds it when the gates are free. One that the gates don't answer in
//! time stays noted until they do, and its answer isn't believed. A pair is read then, and what the gates say of it is reckoned with. An endpoint
//! or a region can't be read: it is cleared whatever became of it, and its place stays taken until a clear is answered in time.

use crate::audit::Audit;
use crate::bits::PairBits;
use crate::card::{Break, Card, GateEvent, Sizes};
use crate::commands::{Answer, Job};
use crate::connection::{Cause, State, TRANSITIONS};
use crate::domain::Domains;
use crate::drain::{Drain, MOST_DRAINS};
use crate::endpoint::{Endpoint, EndpointState, Stage};
use crate::exchange::{Exchange, Reply};
use crate::grant::Grants;
use crate::keys::KeyMaker;
use crate::notice::{MOST_NOTICES, MOST_TELLINGS, Notice, SIGNALS, Signalled, Telling};
use crate::pair::{Held, Marks, Pair};
use crate::peers::Peers;
use crate::persistent::Persistent;
use crate::region::{Region, RegionState, Tags};
use crate::revoked::Revocations;
use crate::rule::{Rule, RuleState};
use crate::runs::Runs;
use crate::table::Table;
use abi::control::{
    CardSetup, DATA_WORDS, EventSetup, KEY_INDEX_BITS, MatchSetup, Operation, PairReport,
    PairSetup, region_key,
};
use abi::event;
use abi::limits::{FLAT_SPACE, MAX_ENDPOINTS, MAX_GRANTS, MAX_PAIRS, MAX_REGIONS, MAX_RULES};
use abi::mailbox::{
    AuditKind, FailureCause, NO_CONTEXT, PairState, PeerState, UNDRAINED_READ, UNDRAINED_WRITE,
    Undrained, reason_word, refused_info, undrained_info,
};
use abi::mgmt::EVENTS_IN;
use abi::status::Status;
use abi::times::CONTROL_TIMEOUT;
use heapless::{Deque, Vec};

/// Generations of a start begin so far behind those of the start before: an odd number, so that many starts pass before one comes again.
const GENERATION_STRIDE: u32 = 0x9e37;
/// Frames that answer and wait to be sent. One that finds no room is lost; the peer repeats what it answers.
const REPLIES: usize = 4;

/// A control request that the gates have not answered.
#[derive(Clone, Copy)]
pub(crate) struct UnderWay {
    pub(crate) operation: Operation,
    pub(crate) index: u16,
    since: u32,
    overdue: bool,
    /// Its result is the host's.
    pub(crate) for_host: bool,
    /// Of a pair's request or event: generation of the pair.
    generation: u16,
    /// It reads what became of a request of the pair that was answered late.
    reads_back: bool,
    /// It raises an event about a pair, with this `info`.
    event: Option<(u16, event::Cause, u64)>,
    ending: Option<u16>,
}

impl UnderWay {
    pub(crate) fn set_generation(&mut self, generation: u16) {
        self.generation = generation;
    }

    /// It takes the permission of a shared grant.
    pub(crate) fn set_ending(&mut self, number: u16) {
        self.ending = Some(number);
    }

    /// Number of the shared grant whose permission it takes.
    pub(crate) fn ending(&self) -> Option<u16> {
        self.ending
    }

    fn changes_pair(&self) -> bool {
        matches!(
            self.operation,
            Operation::PairSet | Operation::PairFail | Operation::PairClear
        )
    }
}

/// The break that believes a late answer to a request.
const fn trust_in(operation: Operation) -> Break {
    match operation {
        Operation::CardSet | Operation::MatchSet => Break::LateStartBelieved,
        Operation::PairSet
        | Operation::PairFail
        | Operation::PairClear
        | Operation::PairRead
        | Operation::PairTimes
        | Operation::ShutOutSet
        | Operation::ShutOutRead => Break::LatePairBelieved,
        Operation::RegionSet | Operation::RegionClear => Break::LateRegionBelieved,
        Operation::GrantSet
        | Operation::GrantClear
        | Operation::PermissionSet
        | Operation::SenderRevoke
        | Operation::Fence
        | Operation::MintSet
        | Operation::GrantMint => Break::LateGrantBelieved,
        Operation::CounterRead | Operation::PairCounterRead | Operation::EventRaise => {
            Break::LateEventBelieved
        }
        Operation::RuleSet | Operation::RuleClear => Break::LateRuleBelieved,
        Operation::RingSet
        | Operation::EndpointSet
        | Operation::EndpointStop
        | Operation::EndpointFlush
        | Operation::EndpointClear => Break::LateEndpointBelieved,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Boot {
    /// The gates are to be reset.
    Begin,
    /// They are being reset.
    Resetting,
    /// They are to be told their address, until they have answered that,
    Card,
    /// and the seed of their hashes.
    Match,
    Up,
}

/// What the firmware waits for besides its timers, frames and events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waits {
    /// The gates' answer to a control request.
    pub control: bool,
    /// Room for a frame.
    pub frame_out: bool,
    /// The end of a reset of the gates.
    pub reset: bool,
}

/// The firmware of a card.
pub struct Firmware<C> {
    pub(crate) card: C,
    pub(crate) sizes: Sizes,
    pub(crate) build_id: u64,
    boot: Boot,
    pub(crate) persistent: Persistent,
    pub(crate) domains: Domains,
    /// The tables are as long as they have ever been needed, so that booting fills nothing.
    pub(crate) endpoints: Table<Endpoint, MAX_ENDPOINTS>,
    pub(crate) pairs: Table<Pair, MAX_PAIRS>,
    pub(crate) regions: Table<Region, MAX_REGIONS>,
    pub(crate) rules: Table<Rule, MAX_RULES>,
    pub(crate) tags: Tags,
    pub(crate) grants: Grants,
    pub(crate) keys: KeyMaker,
    pub(crate) first_generation: u16,
    pub(crate) peers: Peers,
    pub(crate) audit: Audit,
    pub(crate) exchanges: Vec<Exchange, { crate::exchange::MOST }>,
    pub(crate) next_exchange: usize,
    pub(crate) replies: Deque<Reply, REPLIES>,
    pub(crate) notices: Vec<Notice, MOST_NOTICES>,
    pub(crate) tellings: Vec<Telling, MOST_TELLINGS>,
    /// What peers have said to be revoked.
    pub(crate) revocations: Revocations,
    pub(crate) drains: Vec<Drain, MOST_DRAINS>,
    /// A pair has left `Connected`: its drains haven't been told.
    pub(crate) pairs_left: bool,
    /// Signals of peers that the hosts of their pairs are to be told.
    pub(crate) signals: Deque<Signalled, SIGNALS>,
    /// Pairs whose peers are to be asked for a sign of life.
    pub(crate) asks: PairBits,
    /// When peers are looked at next.
    pub(crate) next_round: Option<u32>,
    pub(crate) runs: Runs,
    /// A bit for each pair that may need the gates.
    work: PairBits,
    next_pair: usize,
    pub(crate) under_way: Option<UnderWay>,
    host_first: bool,
    pub(crate) job: Job,
    pub(crate) job_since: u32,
    pub(crate) answer: Option<Answer>,
    /// Offers so far.
    pub(crate) offers: u32,
    /// Regions that the gates are to forget.
    pub(crate) regions_clearing: u16,
    /// Events were lost: pairs from this one on are to be read.
    unread_pairs: Option<usize>,
    events_lost: u32,
    frames_lost: u32,
    /// When the frame that is being looked at was found.
    pub(crate) frame_at: u32,
}

impl<C: Card> Firmware<C> {
    /// The firmware of a card. It has started when [`is_up`](Self::is_up), some steps later.
    pub fn new(mut card: C, build_id: u64) -> Self {
        let sizes = card.sizes();
        let any_size = card.is_broken(Break::SizesAssumed);
        let cap = |size: u32, most: usize| match any_size {
            true => most as u32,
            false => size.min(most as u32),
        };
        let mut persistent = Persistent::load(&mut card);
        if card.is_broken(Break::EpochsStartAgain) {
            persistent = Persistent::fresh(persistent.starts);
        }
        if !card.is_broken(Break::StartNotCounted) {
            persistent.start(&mut card);
        }
        let first_generation = match card.is_broken(Break::GenerationsStartAgain) {
            true => 0,
            false => persistent.starts.wrapping_mul(GENERATION_STRIDE) as u16,
        };
        let mut audit = Audit::new();
        audit.record(AuditKind::Started, 0, build_id as u32, &card);
        Self {
            sizes: Sizes {
                endpoints: cap(sizes.endpoints, MAX_ENDPOINTS),
                pairs: cap(sizes.pairs, MAX_PAIRS),
                grants: cap(sizes.grants, MAX_GRANTS),
                regions: cap(sizes.regions, MAX_REGIONS.min(1 << KEY_INDEX_BITS)),
                rules: sizes.rules.min(MAX_RULES as u32),
                ..sizes
            },
            build_id,
            boot: Boot::Begin,
            persistent,
            domains: Domains::new(first_generation),
            endpoints: Table::new(),
            pairs: Table::new(),
            regions: Table::new(),
            rules: Table::new(),
            tags: Tags::new(&mut card),
            grants: Grants::default(),
            keys: KeyMaker::default(),
            first_generation,
            peers: Peers::new(),
            audit,
            exchanges: Vec::new(),
            next_exchange: 0,
            replies: Deque::new(),
            notices: Vec::new(),
            tellings: Vec::new(),
            revocations: Revocations::new(),
            drains: Vec::new(),
            pairs_left: false,
            signals: Deque::new(),
            asks: PairBits::default(),
            next_round: None,
            runs: Runs::of(&Sizes {
                pairs: cap(sizes.pairs, MAX_PAIRS),
                ..sizes
            }),
            work: PairBits::default(),
            next_pair: 0,
            under_way: None,
            host_first: true,
            job: Job::None,
            job_since: 0,
            answer: None,
            offers: 0,
            regions_clearing: 0,
            unread_pairs: None,
            events_lost: card.events_lost(),
            frames_lost: card.frames_lost(),
            frame_at: 0,
            card,
        }
    }

    /// The card.
    pub fn card(&mut self) -> &mut C {
        &mut self.card
    }

    /// Whether it has started: the gates are clear and know what they must, and commands are taken.
    pub fn is_up(&self) -> bool {
        self.boot == Boot::Up
    }

    /// Number of this start, never 0; the start after it has the next one.
    pub fn start_number(&self) -> u32 {
        self.persistent.starts
    }

    /// What it waits for besides its timers, frames and events.
    pub fn waits(&self) -> Waits {
        Waits {
            control: self.waits_for_gates(),
            frame_out: !self.replies.is_empty()
                || self.exchanges.iter().any(|one| one.repeat.due)
                || self.notices_are_due()
                || self.drains_are_due(),
            reset: self.boot == Boot::Resetting,
        }
    }

    /// Whether it waits for the gates' answer to a control request.
    pub fn waits_for_gates(&self) -> bool {
        self.under_way.is_some()
    }

    /// Does what can be done now, a little of it. True if it did something: then there may be more.
    pub fn step(&mut self) -> bool {
        let answered = self.grants.end_of_revoked() | self.finish_control();
        if self.boot != Boot::Up {
            return self.boot() | answered;
        }
        if self.under_way.is_some() && self.card.is_broken(Break::WaitsForGates) {
            return answered | self.run_timers();
        }
        // All that the gates had told before this step: what they are asked for next comes behind it. No more, so that a flood of events
        // holds up nobody.
        let event = (0..EVENTS_IN).take_while(|_| self.take_event()).count() > 0;
        if event && self.card.is_broken(Break::FloodHoldsUp) {
            return true;
        }
        let frame = self.take_frame();
        let timer = self.run_timers() | self.run_grant_job();
        let sent = self.send_frame();
        let started = self.start_control();
        answered | event | frame | timer | sent | started
    }

    /// The cycle at which a step is needed though nothing happens.
    pub fn next_deadline(&self) -> Option<u32> {
        let now = self.card.now();
        let exchanges = self
            .exchanges
            .iter()
            .flat_map(|one| [one.deadline, one.repeat.next]);
        let notices = self.notices.iter().map(|notice| notice.repeat.next);
        let drains = self.drains.iter().filter(|drain| drain.waits());
        let drains = drains.map(|drain| drain.repeat.next);
        let job = (!self.job.is_none()).then(|| self.job_since.wrapping_add(CONTROL_TIMEOUT));
        let request = self.under_way.filter(|request| !request.overdue);
        let request = request.map(|request| request.since.wrapping_add(CONTROL_TIMEOUT));
        exchanges
            .chain(notices)
            .chain(drains)
            .chain(self.next_round)
            .chain(job)
            .chain(request)
            .min_by_key(|deadline| deadline.wrapping_sub(now) as i32)
    }

    // Start

    fn boot(&mut self) -> bool {
        match self.boot {
            Boot::Begin => {
                if !self.card.is_broken(Break::GatesKept) {
                    self.card.reset_start();
                }
                self.boot = Boot::Resetting;
            }
            Boot::Resetting => {
                // A request of the program before this one may have been under way.
                if !self.card.reset_done() || self.card.control_result().is_none() {
                    return false;
                }
                // Nor is anything that it was told of news.
                while self.card.event_take().is_some() {}
                self.boot = Boot::Card;
            }
            Boot::Card | Boot::Match if self.under_way.is_some() => return false,
            Boot::Card => {
                let setup = CardSetup {
                    mac: self.card.mac(),
                    ..CardSetup::default()
                };
                self.request(Operation::CardSet, 0, &setup.to_words());
            }
            Boot::Match => {
                let mut word =
                    || u64::from(self.card.random()) << 32 | u64::from(self.card.random());
                let matching = MatchSetup {
                    seed_low: word(),
                    seed_high: word(),
                };
                self.request(Operation::MatchSet, 0, &matching.to_words());
            }
            Boot::Up => return false,
        }
        true
    }

    // Control requests

    /// Starts a control request. There is none under way.
    pub(crate) fn request(&mut self, operation: Operation, index: u16, data: &[u64]) {
        debug_assert!(self.under_way.is_none() && data.len() <= DATA_WORDS);
        self.card.control_start(operation, index, data);
        self.under_way = Some(UnderWay {
            operation,
            index,
            since: self.card.now(),
            overdue: false,
            for_host: false,
            generation: 0,
            reads_back: false,
            event: None,
            ending: None,
        });
    }

    fn request_for_pair(&mut self, operation: Operation, index: usize, data: &[u64]) {
        self.request(operation, index as u16, data);
        let generation = self.pairs[index].generation;
        if let Some(request) = &mut self.under_way {
            request.generation = generation;
        }
    }

    fn finish_control(&mut self) -> bool {
        let late = self.note_late_request();
        let Some(request) = self.under_way else {
            return late;
        };
        let Some(result) = self.card.control_result() else {
            return late;
        };
        self.under_way = None;
        if request.overdue {
            let (kind, info) = (AuditKind::ControlLate, request.operation.code());
            self.audit
                .record(kind, request.index.into(), info.into(), &self.card);
            if !self.card.is_broken(trust_in(request.operation)) {
                self.answered_late(request, result);
                return true;
            }
        }
        self.job_since = self.card.now();
        self.finished(request, result);
        self.advance_job(request, result);
        true
    }

    /// Notes if the time of the control request under way is over, whether or not it has been answered since.
    fn note_late_request(&mut self) -> bool {
        let now = self.card.now();
        let unseen = self.card.is_broken(Break::LateIfUnanswered);
        let unseen = unseen && self.card.control_result().is_some();
        let over = |request: &&mut UnderWay| {
            !request.overdue && !unseen && now.wrapping_sub(request.since) >= CONTROL_TIMEOUT
        };
        let Some(request) = self.under_way.as_mut().filter(over) else {
            return false;
        };
        request.overdue = true;
        let (operation, index) = (request.operation, request.index.into());
        let (kind, info) = (AuditKind::ControlTimeout, operation.code().into());
        self.audit.record(kind, index, info, &self.card);
        let undrained = self.undrained();
        if undrained != Undrained::default() {
            let info = undrained_info(undrained.pair as u16, undrained.access == UNDRAINED_WRITE);
            let kind = AuditKind::AccessUndrained;
            self.audit.record(kind, undrained.region, info, &self.card);
        }
        if operation == Operation::PairSet {
            self.pair_is_late(index as usize);
        }
        if self.card.is_broken(Break::LateAnswerForgotten) {
            self.under_way = None;
        }
        true
    }

    /// The access that the control request under way waits for.
    pub(crate) fn undrained(&mut self) -> Undrained {
        let report = self.card.control_report();
        if report.waits == 0 || self.card.is_broken(Break::UndrainedUnnamed) {
            return Undrained::default();
        }
        let index = usize::from(report.region);
        let region = match index < self.regions.len() {
            true if !self.card.is_broken(Break::UndrainedByPlace) => {
                region_key(report.region, self.tag(index))
            }
            _ => report.region.into(),
        };
        Undrained {
            access: match report.writes {
                0 => UNDRAINED_READ,
                _ => UNDRAINED_WRITE,
            },
            region,
            pair: report.pair.into(),
            context: match report.tagged {
                0 => NO_CONTEXT,
                _ => report.context.into(),
            },
        }
    }

    /// An answer that came late isn't believed. What the gates hold of a pair is read, and an event is raised again. What an endpoint, a region or
    /// the start asked for is asked again by itself, since it has not moved on; what a command asked for has been given up with it.
    fn answered_late(&mut self, request: UnderWay, result: u64) {
        match request.operation {
            Operation::PairSet
            | Operation::PairFail
            | Operation::PairClear
            | Operation::PairRead => {
                self.request_for_pair(Operation::PairRead, request.index.into(), &[]);
                if let Some(read) = &mut self.under_way {
                    read.reads_back = request.changes_pair() || request.reads_back;
                }
            }
            Operation::EventRaise => self.raise_again(request),
            Operation::PairTimes => {
                self.pairs[usize::from(request.index)].times.is_due = true;
                self.mark(request.index.into());
            }
            // One that a command asked for is being forgotten already.
            Operation::RuleSet => self.rules[usize::from(request.index)].forget(),
            Operation::GrantMint => self.grant_minted(result, false),
            _ => {}
        }
    }

    /// The gates have done a request.
    fn finished(&mut self, request: UnderWay, result: u64) {
        let index = usize::from(request.index);
        match request.operation {
            Operation::RingSet => {
                self.endpoint_answered(index >> abi::control::RING_BITS, request.operation);
            }
            Operation::EndpointSet
            | Operation::EndpointStop
            | Operation::EndpointFlush
            | Operation::EndpointClear => self.endpoint_answered(index, request.operation),
            Operation::PairSet | Operation::PairFail | Operation::PairClear => {
                self.pairs[index].gates = match request.operation {
                    Operation::PairSet => Held::Set,
                    Operation::PairFail => Held::Failed,
                    _ => Held::Absent,
                };
                if request.operation != Operation::PairSet {
                    self.end_grants_of_pair(index);
                }
                self.settle(index);
            }
            Operation::PairRead if request.reads_back => {
                let PairReport { state, .. } = PairReport::from_words(&[result]);
                self.pairs[index].gates = match PairState::from_code(state) {
                    Some(PairState::Connected) => Held::Set,
                    Some(PairState::Failed) => Held::Failed,
                    _ => Held::Absent,
                };
                if self.pairs[index].gates != Held::Set {
                    self.end_grants_of_pair(index);
                }
                self.settle(index);
            }
            Operation::PairRead => self.pair_was_read(request, PairReport::from_words(&[result])),
            Operation::RegionSet | Operation::RegionClear => {
                self.region_answered(index, request.operation);
            }
            Operation::RuleSet | Operation::RuleClear => {
                self.rule_answered(index, request.operation);
            }
            Operation::CardSet => self.boot = Boot::Match,
            Operation::MatchSet => self.boot = Boot::Up,
            Operation::GrantClear | Operation::PermissionSet => {
                self.grant_answered(request);
            }
            Operation::MintSet => self.gates_make_tags(),
            Operation::GrantMint => self.grant_minted(result, request.for_host),
            Operation::GrantSet
            | Operation::SenderRevoke
            | Operation::Fence
            | Operation::CounterRead
            | Operation::PairCounterRead
            | Operation::EventRaise
            | Operation::ShutOutSet
            | Operation::ShutOutRead
            | Operation::PairTimes => {}
        }
    }

    /// Starts the next control request, if the gates are free and there is one.
    fn start_control(&mut self) -> bool {
        if self.under_way.is_some() {
            return false;
        }
        self.host_first = !self.host_first;
        // What the host waits for comes behind closes that it gave up, so that they are done when it is.
        let host = |this: &mut Self| {
            this.start_for_endpoint()
                || this.start_for_region()
                || this.start_for_rule()
                || this.start_for_grants()
                || this.start_for_host()
        };
        let others = |this: &mut Self| {
            this.start_for_pair()
                || this.start_signal()
                || this.start_drain_event()
                || this.start_reading()
        };
        match self.host_first {
            true => host(self) || others(self),
            false => others(self) || host(self),
        }
    }

    // Endpoints

    /// The next request of an endpoint that is being closed.
    fn start_for_endpoint(&mut self) -> bool {
        let flushes_first = self.card.is_broken(Break::FlushesFirst);
        for index in 0..self.endpoints.len() {
            while let EndpointState::Closing(stage) = self.endpoints[index].state {
                let number = index as u16;
                match stage {
                    Stage::Stop => self.request(Operation::EndpointStop, number, &[]),
                    Stage::Flush => self.request(Operation::EndpointFlush, number, &[]),
                    Stage::Clear => self.request(Operation::EndpointClear, number, &[]),
                    Stage::FailPairs(from) => match self.held_pair_of(index, from, Held::Set) {
                        Some(pair) => {
                            self.endpoints[index].state =
                                EndpointState::Closing(Stage::FailPairs(pair as u16));
                            let status = [u64::from(Status::Flushed.code())];
                            self.request_for_pair(Operation::PairFail, pair, &status);
                        }
                        None => {
                            self.endpoints[index].state = stage.next(flushes_first);
                            continue;
                        }
                    },
                    Stage::ClearPairs(from) => match self.held_pair_of(index, from, Held::Failed) {
                        Some(pair) => {
                            self.endpoints[index].state =
                                EndpointState::Closing(Stage::ClearPairs(pair as u16));
                            self.request_for_pair(Operation::PairClear, pair, &[]);
                        }
                        None => {
                            self.endpoints[index].state = stage.next(flushes_first);
                            continue;
                        }
                    },
                }
                return true;
            }
        }
        false
    }

    fn held_pair_of(&self, endpoint: usize, from: u16, held: Held) -> Option<usize> {
        (from.into()..self.pairs.len()).find(|&k| {
            let pair = &self.pairs[k];
            pair.state != State::Closed
                && usize::from(pair.endpoint) == endpoint
                && pair.gates == held
        })
    }

    /// The gates have done a request of an endpoint's own. What comes late, when it is being closed already, changes nothing.
    fn endpoint_answered(&mut self, index: usize, operation: Operation) {
        let flushes_first = self.card.is_broken(Break::FlushesFirst);
        let endpoint = &mut self.endpoints[index];
        endpoint.state = match (endpoint.state, operation) {
            (EndpointState::Opening(done), Operation::RingSet) => EndpointState::Opening(done + 1),
            (EndpointState::Opening(_), Operation::EndpointSet) => EndpointState::Open,
            (EndpointState::Closing(stage @ Stage::Stop), Operation::EndpointStop)
            | (EndpointState::Closing(stage @ Stage::Flush), Operation::EndpointFlush)
            | (EndpointState::Closing(stage @ Stage::Clear), Operation::EndpointClear) => {
                stage.next(flushes_first)
            }
            (state, _) => state,
        };
        if endpoint.state == EndpointState::Closed {
            let (domain, id) = (endpoint.domain, endpoint.id(index));
            *endpoint = Endpoint::closed(endpoint.generation);
            self.domains.release(domain);
            self.forget_rules_of(index as u8);
            self.forget_revocations_of(index as u8);
            self.audit
                .record(AuditKind::EndpointClosed, id, 0, &self.card);
        }
    }

    /// Begins to close an endpoint, and its pairs with it.
    pub(crate) fn close_endpoint(&mut self, index: usize) {
        self.endpoints[index].state = EndpointState::Closing(Stage::Stop);
        for pair in 0..self.pairs.len() {
            let found = &self.pairs[pair];
            let own = usize::from(found.endpoint) == index;
            if own && !matches!(found.state, State::Closed | State::Closing) {
                self.close_pair(pair);
            }
        }
    }

    // Pairs

    /// Changes the state of a pair.
    pub(crate) fn go(&mut self, index: usize, cause: Cause, to: State) {
        let from = self.pairs[index].state;
        debug_assert!(
            TRANSITIONS.contains(&(from, cause, to)),
            "{} by {} to {}",
            from.name(),
            cause.name(),
            to.name()
        );
        self.pairs[index].state = to;
        self.pairs_left |= from == State::Connected;
        self.card.transition(from, cause, to);
    }

    /// Says what the gates are to hold of a pair.
    pub(crate) fn want(&mut self, index: usize, wanted: Held) {
        self.pairs[index].wanted = wanted;
        self.mark(index);
        self.settle(index);
    }

    /// Looks at a pair when the gates are free.
    pub(crate) fn mark(&mut self, index: usize) {
        self.work.insert(index);
    }

    /// Whether the gates are changing what they hold of a pair.
    fn is_changing(&self, index: usize) -> bool {
        self.under_way.is_some_and(|request| {
            let changes = request.changes_pair() || request.reads_back;
            changes && usize::from(request.index) == index
        })
    }

    /// If the gates hold what they are to, lets the pair go on.
    fn settle(&mut self, index: usize) {
        let pair = &self.pairs[index];
        let reached = pair.gates == pair.wanted
            // Of what the gates don't know, nothing is outstanding.
            || pair.wanted == Held::Failed && pair.gates == Held::Absent;
        if !reached || self.is_changing(index) {
            self.mark(index);
            return;
        }
        match pair.state {
            State::Joining if pair.gates == Held::Set => {
                self.go(index, Cause::GatesSet, State::Connected);
                self.peer_connects(index);
                self.note_connected(index);
            }
            State::Setting if pair.gates == Held::Set => self.initiator_is_set(index),
            State::Preparing if pair.gates == Held::Set => self.acceptor_is_set(index),
            State::Ending => self.tell_peer(index),
            State::PeerEnding => self.peer_has_ended(index),
            State::Withdrawing => self.withdrawn(index),
            State::Unsettled | State::Closing => self.pair_is_gone(index),
            _ => {}
        }
    }

    fn pair_is_gone(&mut self, index: usize) {
        self.go(index, Cause::GatesClear, State::Closed);
        let pair = &mut self.pairs[index];
        let (endpoint, generation) = (usize::from(pair.endpoint), pair.generation);
        let drawn = pair.marks.has(Marks::DRAWN) && !self.card.is_broken(Break::ReservationLeaked);
        *pair = Pair::closed(generation);
        if drawn {
            self.endpoints[endpoint].drawn_pairs -= 1;
        }
    }

    /// Begins to close a pair.
    pub(crate) fn close_pair(&mut self, index: usize) {
        self.end_exchange(index);
        self.go(index, Cause::CommandClose, State::Closing);
        let pair = &mut self.pairs[index];
        pair.marks.take(Marks::TO_READ);
        pair.marks.take(Marks::TELL_CONNECTED);
        pair.tell_end = None;
        self.want(index, Held::Absent);
    }

    /// The next request of a pair that needs the gates, whose turn it is.
    fn start_for_pair(&mut self) -> bool {
        // Each round takes a pair out, so that none is left when there is nothing to start.
        while let Some(index) = self.work.next(self.next_pair).or_else(|| self.work.next(0)) {
            self.next_pair = index + 1;
            if self.request_of_pair(index) {
                return true;
            }
            self.work.remove(index);
        }
        false
    }

    fn request_of_pair(&mut self, index: usize) -> bool {
        let pair = self.pairs[index];
        let endpoint = usize::from(pair.endpoint);
        if pair.state == State::Closed
            || matches!(self.endpoints[endpoint].state, EndpointState::Closing(_))
        {
            return false;
        }
        match (pair.gates, pair.wanted) {
            // What was granted to who had the place before is forgotten first; then it is marked again.
            (Held::Absent, Held::Set) if !self.may_renew(index) => return false,
            (Held::Absent, Held::Set) => {
                self.pairs[index].times.is_due = false;
                self.tell_pair(Operation::PairSet, index);
            }
            (Held::Set, Held::Failed | Held::Absent) => {
                let status = match pair.state {
                    State::Ending | State::PeerEnding
                        if !self.card.is_broken(Break::EndsAsFailure) =>
                    {
                        Status::PeerClosed
                    }
                    State::Failed
                        if pair.peer_state == PeerState::Failed
                            && !self.card.is_broken(Break::FailureEndsAsLink) =>
                    {
                        Status::PeerFailed
                    }
                    State::Ending | State::PeerEnding | State::Failed => Status::LinkError,
                    _ => Status::Flushed,
                };
                let status = [u64::from(status.code())];
                self.request_for_pair(Operation::PairFail, index, &status);
            }
            (Held::Failed, Held::Absent | Held::Set) => {
                self.request_for_pair(Operation::PairClear, index, &[]);
            }
            (Held::Set, Held::Set)
                if pair.times.is_due && !self.card.is_broken(Break::AcceptorNotTimed) =>
            {
                self.pairs[index].times.is_due = false;
                self.tell_pair(Operation::PairTimes, index);
            }
            _ if pair.marks.has(Marks::TO_READ) => {
                self.pairs[index].marks.take(Marks::TO_READ);
                self.request_for_pair(Operation::PairRead, index, &[]);
            }
            _ if pair.marks.has(Marks::TELL_CONNECTED) => {
                self.pairs[index].marks.take(Marks::TELL_CONNECTED);
                self.raise(index, event::Cause::PairConnected, 0);
            }
            _ => {
                let Some(cause) = self.pairs[index].tell_end.take() else {
                    return false;
                };
                let info = match cause {
                    event::Cause::ConnectFailed => reason_word(pair.reason, pair.detail).into(),
                    _ => 0,
                };
                self.raise(index, cause, info);
            }
        }
        true
    }

    /// Tells the gates of a pair, or of its times alone.
    pub(crate) fn tell_pair(&mut self, operation: Operation, index: usize) {
        let pair = &self.pairs[index];
        let mut setup = PairSetup {
            remote_mac: pair.peer.mac(),
            remote_endpoint: pair.peer.endpoint(),
            remote_pair: pair.remote_pair,
            remote_epoch: pair.remote_epoch,
            cookie: match self.card.is_broken(Break::CookieOfOneSide) {
                true => pair.nonce,
                false => pair.cookie(),
            },
            endpoint: pair.endpoint,
            domain: self.endpoints[usize::from(pair.endpoint)].domain,
            epoch: pair.epoch,
            remote_credits: pair.remote_credits,
            local_credits: pair.credits,
            slots: pair.slots,
            sends_first: match self.card.is_broken(Break::RunsOverlap) {
                true => 0,
                false => u16::from(pair.run.first) << self.runs.unit_log2,
            },
            sends_log2: self.runs.unit_log2 + pair.run.log2,
            // Its endpoint's, which may have no other.
            space: FLAT_SPACE,
            ..PairSetup::default()
        };
        pair.times.put(&mut setup, pair.credits);
        self.request_for_pair(operation, index, &setup.to_words());
    }

    pub(crate) fn raise(&mut self, pair: usize, cause: event::Cause, info: u64) {
        let setup = EventSetup {
            cause: cause.code(),
            pair: pair as u16,
            info,
            ..EventSetup::default()
        };
        let Pair {
            endpoint,
            generation,
            ..
        } = self.pairs[pair];
        self.request(Operation::EventRaise, endpoint.into(), &setup.to_words());
        if let Some(request) = &mut self.under_way {
            (request.generation, request.event) = (generation, Some((pair as u16, cause, info)));
        }
    }

    /// Tells the host again what it may have been told: twice is better than never. Of a pair that is being closed it wants to know nothing.
    fn raise_again(&mut self, request: UnderWay) {
        let Some((index, cause, word)) = request.event else {
            return;
        };
        let index = usize::from(index);
        let pair = &mut self.pairs[index];
        let over = matches!(pair.state, State::Closed | State::Closing);
        if over || pair.generation != request.generation {
            return;
        }
        match cause {
            event::Cause::PairConnected => pair.marks.put(Marks::TELL_CONNECTED),
            event::Cause::Signal | event::Cause::Drain | event::Cause::Revoked => {
                let (pair, generation) = (index as u16, request.generation);
                let signal = Signalled {
                    pair,
                    generation,
                    cause,
                    word,
                };
                // Without room it is one of those that the queue of events had no room for.
                let _ = self.signals.push_front(signal);
            }
            cause => pair.tell_end = pair.tell_end.or(Some(cause)),
        }
        self.mark(index);
    }

    /// The gates don't answer the `PairSet` of a pair.
    fn pair_is_late(&mut self, index: usize) {
        match self.pairs[index].state {
            State::Setting | State::Preparing => {
                let reason = abi::mailbox::ConnectReason::HardwareTimeout;
                self.withdraw(index, Cause::GatesLate, reason, 0);
            }
            // The host's command times out by itself.
            _ => {}
        }
    }

    fn pair_was_read(&mut self, request: UnderWay, report: PairReport) {
        let index = usize::from(request.index);
        let pair = &self.pairs[index];
        if pair.generation != request.generation || pair.gates != Held::Set {
            return;
        }
        if report.state == PairState::Connected.code() {
            self.looked(index, report.heard != 0);
        }
        let pair = &self.pairs[index];
        if pair.gates != Held::Set || pair.wanted != Held::Set {
            return;
        }
        let is_drained = report.waiting == 0 && report.unacknowledged == 0
            || self.card.is_broken(Break::EndsUndrained);
        if report.state == PairState::Failed.code() {
            // The event that told so was lost, or comes later.
            let hidden = self.card.is_broken(Break::LostCauseForgotten)
                || self.card.is_broken(Break::ReadHidesFailure);
            let cause = match Status::from_code(report.status) {
                Some(Status::PeerFailed) if !hidden => event::Cause::PeerFailed,
                Some(Status::MemoryError) => event::Cause::SlotError,
                _ => event::Cause::LinkError,
            };
            self.pair_failed(index, cause, report.closed != 0);
        } else if pair.state == State::Draining && is_drained {
            self.go(index, Cause::GatesDrained, State::Ending);
            self.want(index, Held::Failed);
        }
    }

    /// Reads the next pair, after events were lost.
    fn start_reading(&mut self) -> bool {
        while let Some(from) = self.unread_pairs {
            if from >= self.pairs.len() {
                self.unread_pairs = None;
                break;
            }
            self.unread_pairs = Some(from + 1);
            if self.pairs[from].gates == Held::Set {
                self.request_for_pair(Operation::PairRead, from, &[]);
                return true;
            }
        }
        false
    }

    // Regions

    fn start_for_region(&mut self) -> bool {
        if self.regions_clearing == 0 {
            return false;
        }
        let clearing = |region: &Region| region.state == RegionState::Clearing;
        let Some(index) = self.regions.iter().position(clearing) else {
            return false;
        };
        self.request(Operation::RegionClear, index as u16, &[]);
        true
    }

    fn region_answered(&mut self, index: usize, operation: Operation) {
        let region = &mut self.regions[index];
        match (region.state, operation) {
            (RegionState::Setting, Operation::RegionSet) => region.state = RegionState::Used,
            (RegionState::Clearing, Operation::RegionClear) => {
                region.state = RegionState::Free;
                let domain = region.domain;
                self.regions_clearing -= 1;
                self.domains.release(domain);
                self.end_grants_of_region(index);
            }
            // The late answer to one that was given up.
            _ => {}
        }
    }

    // Rules

    fn start_for_rule(&mut self) -> bool {
        let changes = |rule: &Rule| matches!(rule.state, RuleState::Waiting | RuleState::Clearing);
        let Some(index) = self.rules.iter().position(changes) else {
            return false;
        };
        let rule = &mut self.rules[index];
        if rule.state == RuleState::Clearing {
            self.request(Operation::RuleClear, index as u16, &[]);
        } else {
            rule.state = RuleState::Setting;
            let setup = rule.setup.to_words();
            self.request(Operation::RuleSet, index as u16, &setup);
        }
        true
    }

    fn rule_answered(&mut self, index: usize, operation: Operation) {
        let rule = &mut self.rules[index];
        rule.state = match (rule.state, operation) {
            (RuleState::Setting, Operation::RuleSet) => RuleState::Used,
            (RuleState::Clearing, Operation::RuleClear) => RuleState::Free,
            // The late answer to one that was given up.
            (state, _) => state,
        };
        self.revocations.applies |= self.rules[index].state == RuleState::Free;
    }

    /// The gates have forgotten an endpoint, and its rules with it. What they are to forget of a row they are told all the same.
    fn forget_rules_of(&mut self, endpoint: u8) {
        if self.card.is_broken(Break::RulesLeaked) {
            return;
        }
        for rule in self.rules.iter_mut() {
            let free = matches!(rule.state, RuleState::Used | RuleState::Waiting);
            if rule.setup.endpoint == endpoint && free {
                rule.state = RuleState::Free;
            }
        }
    }

    // Events

    fn take_event(&mut self) -> bool {
        let lost = self.card.events_lost();
        if lost != self.events_lost {
            let count = lost.wrapping_sub(self.events_lost);
            self.audit
                .record_many(AuditKind::EventsLost, 0, 0, count, &self.card);
            self.events_lost = lost;
            // What the gates would have told is read.
            self.unread_pairs = match self.card.is_broken(Break::LostEventsForgotten) {
                true => None,
                false => Some(0),
            };
        }
        let Some(event) = self.card.event_take() else {
            return false;
        };
        match event {
            GateEvent::AccessRefused(refusal) => {
                let info = refused_info(refusal.domain, refusal.rights);
                let (kind, count) = (AuditKind::AccessRefused, refusal.count.into());
                self.audit
                    .record_many(kind, refusal.key, info, count, &self.card);
            }
            GateEvent::PairFailed {
                endpoint,
                pair,
                cause,
                closed,
            } => {
                let index = usize::from(pair);
                let found = self.pairs.get(index);
                let found = found.filter(|found| found.endpoint == endpoint);
                match found.map(|found| (found.gates, found.state)) {
                    Some((Held::Set, state))
                        if state != State::Closed
                            && !self.card.is_broken(Break::FailureNotNoted) =>
                    {
                        self.pair_failed(index, cause, closed);
                    }
                    // A `PairRead` that came before the event has found it failed, or the firmware has failed it meanwhile for another reason: the peer has
                    // failed whatever has become of the pair since.
                    Some((Held::Failed, state))
                        if state != State::Closed
                            && cause == event::Cause::PeerFailed
                            && !self.card.is_broken(Break::ReadHidesFailure) =>
                    {
                        self.note_event(cause.code(), pair);
                        self.note_failed_by_gates(index, closed);
                    }
                    _ => self.note_event(cause.code(), pair),
                }
            }
            GateEvent::Other { cause, pair } => self.note_event(cause, pair),
        }
        true
    }

    /// Notes an event of the gates that the firmware does nothing about.
    fn note_event(&mut self, cause: u8, pair: u16) {
        let kind = AuditKind::GateEvent;
        self.audit
            .record(kind, pair.into(), cause.into(), &self.card);
    }

    /// The gates take the peer of a pair to have failed: it has `closed` its side, or doesn't answer.
    fn note_failed_by_gates(&mut self, index: usize, closed: bool) {
        let failure = match closed && !self.card.is_broken(Break::CloseTakenForSilence) {
            true => FailureCause::Closed,
            false => FailureCause::Retries,
        };
        self.note_failure(index, failure);
    }

    /// The gates have failed a pair, `closed` by its peer or not.
    fn pair_failed(&mut self, index: usize, cause: event::Cause, closed: bool) {
        let pair = &mut self.pairs[index];
        pair.gates = Held::Failed;
        self.end_grants_of_pair(index);
        let pair = &self.pairs[index];
        let (id, state) = (pair.id(index), pair.state);
        self.audit
            .record(AuditKind::PairFailed, id, cause.code().into(), &self.card);
        if cause == event::Cause::PeerFailed {
            self.note_failed_by_gates(index, closed);
        }
        match state {
            State::Connected => {
                self.go(index, Cause::GatesEvent, State::Failed);
                self.want(index, Held::Failed);
            }
            State::Draining => {
                self.go(index, Cause::GatesEvent, State::Ending);
                self.want(index, Held::Failed);
            }
            State::Offering => {
                let reason = abi::mailbox::ConnectReason::Closed;
                self.withdraw(index, Cause::GatesEvent, reason, 0);
            }
            _ => self.settle(index),
        }
    }

    pub(crate) fn note_connected(&mut self, index: usize) {
        let pair = &self.pairs[index];
        let (id, epoch) = (pair.id(index), pair.remote_epoch.into());
        self.audit
            .record(AuditKind::PairConnected, id, epoch, &self.card);
    }

    // Frames

    fn take_frame(&mut self) -> bool {
        let lost = self.card.frames_lost();
        if lost != self.frames_lost {
            let count = lost.wrapping_sub(self.frames_lost);
            self.audit
                .record_many(AuditKind::FramesLost, 0, 0, count, &self.card);
            self.frames_lost = lost;
        }
        let now = self.card.now();
        let Some(words) = self.card.frame_take() else {
            return false;
        };
        self.frame_at = now;
        self.incoming(&words);
        true
    }

    fn send_frame(&mut self) -> bool {
        if !self.waits().frame_out || !self.card.frame_out_is_free() {
            return false;
        }
        let frame = self.next_frame();
        if let Some(frame) = &frame {
            self.card.frame_send(frame);
        }
        frame.is_some()
    }

    // Timers

    fn run_timers(&mut self) -> bool {
        let mut moved = self.run_exchange_timers()
            | self.run_notices()
            | self.run_revocations()
            | self.run_looks()
            | self.run_drains();
        let elapsed = self.card.now().wrapping_sub(self.job_since);
        let late = elapsed >= CONTROL_TIMEOUT && !self.card.is_broken(Break::GatesAwaited);
        if !self.job.is_none() && late {
            if let Some(request) = &mut self.under_way {
                request.for_host = false;
            }
            self.job_is_late();
            moved = true;
        }
        moved
    }
}
