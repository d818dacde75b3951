//! The commands of the mailbox: what each checks, what it begins, and when it is answered.
//!
//! Arguments are checked before anything is changed, and a refusal changes nothing. What needs the gates becomes the host's [`Job`]; its answer
//! comes when they have done it, or when they have answered nothing for [`CONTROL_TIMEOUT`](crate::CONTROL_TIMEOUT) cycles.

use crate::argument::{
    BUSY, NOT_CONNECTED, NOT_FOUND, Refusal, credits, mac, narrow, slots, space,
};
use crate::bits::PairBits;
use crate::card::{Break, Card};
use crate::connection::{Cause, State};
use crate::endpoint::{Endpoint, EndpointState, Rings, Stage, rings};
use crate::firmware::{Firmware, UnderWay};
use crate::grant::REMOTE_RIGHTS;
use crate::notice::Said;
use crate::pair::{Held, Marks, Pair, Room, credits_of, units_for};
use crate::peers::Peer;
use crate::region::{Region, RegionState};
use crate::revoked::Revocation;
use crate::rule::{self, Rule, RuleState};
use crate::table;
use crate::watch::Watch;
use abi::ABI_VERSION;
use abi::capability::{CAPABILITY_GRANTS, CAPABILITY_RULES, CAPABILITY_SHARED_COMPLETIONS};
use abi::control::{
    Counter, EndpointSetup, FenceSetup, GrantSetup, Operation, PairCounter, PairReport, PairSetup,
    RIGHT_LOCAL_READ, RIGHT_LOCAL_WRITE, RegionSetup, RuleSetup, ShutOutReport, ShutOutSetup,
    pair_counter_index, region_key, ring_index,
};
use abi::limits::{EAGER_MAX, MAX_SENDS, UNIT_PLACES};
use abi::mailbox::{
    Accept, AuditEntry, AuditIndex, AuditKind, CloseEndpoint, Command, Connect, ConnectPair,
    CounterId, CounterValue, Disconnect, DomainId, DrainName, DrainStatus, EndpointId, FailedPeers,
    FailureCause, Identity, JOB_BITS, NO_ENDPOINT, NameGroup, Nothing, OpenEndpoint, OpenPair,
    PairCounterId, PairId, PairState, PairStatus, PeerState, RegionKey, RegisterRegion, Reserve,
    RevokedNumber, RuleId, SetRule, SetShutOut, ShutOut, Signal, TellFailed, TellRevoked,
    ToldRevocation, Undrained, WatchPeers, Words, id_generation, id_index, reason_word,
};
use abi::register::MAILBOX_WORDS;
use abi::status::MailboxStatus;
use abi::times::{CONNECT_TIMEOUT, DRAIN_TIMEOUT, TELL_TIMEOUT};

/// What the host's command waits for.
#[derive(Clone, Copy)]
pub(crate) enum Job {
    /// There is none.
    None,
    /// Its rings, then itself, to be told to the gates.
    OpenEndpoint {
        index: usize,
        rings: Rings,
    },
    CloseEndpoint {
        index: usize,
    },
    ConnectPair {
        index: usize,
    },
    ClosePair {
        index: usize,
    },
    QueryPair {
        index: usize,
    },
    RegisterRegion {
        index: usize,
        setup: RegionSetup,
    },
    DeregisterRegion {
        index: usize,
    },
    SetRule {
        index: usize,
    },
    ClearRule {
        index: usize,
    },
    ReadCounter {
        counter: Counter,
    },
    ReadPairCounter {
        index: usize,
        counter: PairCounter,
    },
    SetPairTimes {
        index: usize,
    },
    SetShutOut {
        index: usize,
        setup: ShutOutSetup,
    },
    ReadShutOut {
        index: usize,
    },
    /// Its tag, if it has none yet; then `GrantSet`, and for a shared one the first permission. `pair` is `NO_PAIR` if it is for any peer.
    Grant {
        row: usize,
        pair: u16,
        setup: GrantSetup,
    },
    /// `MintSet`, once; then `GrantMint`. `pair` is as above.
    Mint {
        pair: u16,
        setup: GrantSetup,
    },
    Share {
        number: u16,
        pair: u16,
        allowed: bool,
    },
    Revoke {
        row: usize,
    },
    RevokePeer {
        index: usize,
    },
    Fence {
        setup: FenceSetup,
    },
}

impl Job {
    pub(crate) const fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

/// The answer to a command.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// Code of the command, as the host gave it.
    pub command: u32,
    /// Status.
    pub status: MailboxStatus,
    /// Words of the answer area, status included,
    pub words: [u32; MAILBOX_WORDS],
    /// of which so many count.
    pub count: usize,
}

/// A command that is answered at once, or when its job is done.
pub(crate) type Served<R> = Result<Outcome<R>, Refusal>;

pub(crate) enum Outcome<R> {
    Done(R),
    Later(Job),
}

impl<C: Card> Firmware<C> {
    /// Whether a command may be given: the one before has been answered, and the answer taken.
    pub fn is_free(&self) -> bool {
        self.is_up() && self.job.is_none() && self.answer.is_none()
    }

    /// Takes the answer to the command under way, once it is there.
    pub fn take_answer(&mut self) -> Option<Answer> {
        self.answer.take_if(|_| self.job.is_none())
    }

    /// Words of the answer to a command that is found in the mailbox at the start: it was given to the program before this one, and isn't carried out.
    pub fn answer_to_lost(&self) -> [u32; 2] {
        let status = match self.card.is_broken(Break::RestartNotTold) {
            true => MailboxStatus::Ok,
            false => MailboxStatus::Restarted,
        };
        [status.code().into(), 0]
    }

    /// Takes a command area. Called only when [`is_free`](Self::is_free).
    pub fn command(&mut self, command: &[u32; MAILBOX_WORDS]) {
        debug_assert!(self.is_free());
        self.grants.end_of_revoked();
        let (code, arguments) = (command[0], &command[1..]);
        self.answer = Some(Answer {
            command: code,
            status: MailboxStatus::Ok,
            words: [0; MAILBOX_WORDS],
            count: 1,
        });
        self.job_since = self.card.now();
        let command = u8::try_from(code).ok().and_then(Command::from_code);
        match command {
            None => self.answer_with(Err::<Nothing, _>(Refusal::new(
                MailboxStatus::UnknownCommand,
            ))),
            Some(Command::Identify) => self.run(arguments, Self::identify),
            Some(Command::OpenDomain) => self.run(arguments, Self::open_domain),
            Some(Command::CloseDomain) => self.run(arguments, Self::close_domain),
            Some(Command::OpenEndpoint) => self.run(arguments, Self::open_endpoint),
            Some(Command::CloseEndpoint) => self.run(arguments, Self::command_close_endpoint),
            Some(Command::OpenPair) => self.run(arguments, Self::open_pair),
            Some(Command::ConnectPair) => self.run(arguments, Self::connect_pair),
            Some(Command::ClosePair) => self.run(arguments, Self::command_close_pair),
            Some(Command::RegisterRegion) => self.run(arguments, Self::register_region),
            Some(Command::DeregisterRegion) => self.run(arguments, Self::deregister_region),
            Some(Command::ReadCounter) => self.run(arguments, Self::read_counter),
            Some(Command::ReadPairCounter) => self.run(arguments, Self::read_pair_counter),
            Some(Command::QueryPair) => self.run(arguments, Self::query_pair),
            Some(Command::Connect) => self.run(arguments, Self::connect),
            Some(Command::Accept) => self.run(arguments, Self::accept),
            Some(Command::Disconnect) => self.run(arguments, Self::disconnect),
            Some(Command::Reserve) => self.run(arguments, Self::reserve),
            Some(Command::ReadAudit) => self.run(arguments, Self::read_audit),
            Some(Command::DeclareFailed) => self.run(arguments, Self::declare_failed),
            Some(Command::WatchPeers) => self.run(arguments, Self::watch_peers),
            Some(Command::ReadFailed) => self.run(arguments, Self::read_failed),
            Some(Command::TellFailed) => self.run(arguments, Self::command_tell_failed),
            Some(Command::Signal) => self.run(arguments, Self::signal),
            Some(Command::SetRule) => self.run(arguments, Self::set_rule),
            Some(Command::ClearRule) => self.run(arguments, Self::clear_rule),
            Some(Command::Drain) => self.run(arguments, Self::drain),
            Some(Command::DrainSwept) => self.run(arguments, Self::drain_swept),
            Some(Command::ReadDrain) => self.run(arguments, Self::command_read_drain),
            Some(Command::SetPairTimes) => self.run(arguments, Self::set_pair_times),
            Some(Command::Grant) => self.run(arguments, Self::grant),
            Some(Command::Share) => self.run(arguments, Self::share),
            Some(Command::Revoke) => self.run(arguments, Self::revoke),
            Some(Command::RevokePeer) => self.run(arguments, Self::revoke_peer),
            Some(Command::Fence) => self.run(arguments, Self::fence),
            Some(Command::TellRevoked) => self.run(arguments, Self::tell_revoked),
            Some(Command::ReadRevoked) => self.run(arguments, Self::command_read_revoked),
            Some(Command::ForgetRevoked) => self.run(arguments, Self::command_forget_revoked),
            Some(Command::NameGroup) => self.run(arguments, Self::command_name_group),
            Some(Command::SetShutOut) => self.run(arguments, Self::set_shut_out),
            Some(Command::ReadShutOut) => self.run(arguments, Self::read_shut_out),
        }
    }

    fn run<A: Words, R: Words>(
        &mut self,
        arguments: &[u32],
        command: impl FnOnce(&mut Self, A) -> Served<R>,
    ) {
        match command(self, A::from_words(arguments)) {
            Ok(Outcome::Done(results)) => self.answer_with(Ok(results)),
            Ok(Outcome::Later(job)) => self.job = job,
            Err(refusal) => self.answer_with(Err::<Nothing, _>(refusal)),
        }
    }

    /// Answers the command under way.
    pub(crate) fn answer_with<R: Words>(&mut self, result: Result<R, Refusal>) {
        self.job = Job::None;
        if let Some(request) = &mut self.under_way {
            // The next command doesn't wait for this one.
            request.for_host = false;
        }
        let Some(answer) = &mut self.answer else {
            return;
        };
        match result {
            Ok(results) => {
                results.to_words(&mut answer.words[1..]);
                answer.count = 1 + R::COUNT;
            }
            Err(Refusal { status, detail }) => {
                answer.status = status;
                answer.words[1] = detail;
                answer.count = 2;
                let info = status.code().into();
                self.audit
                    .record(AuditKind::CommandRefused, answer.command, info, &self.card);
            }
        }
        answer.words[0] = answer.status.code().into();
    }

    // The job

    /// The next control request of the host's job.
    pub(crate) fn start_for_host(&mut self) -> bool {
        match self.job {
            Job::OpenEndpoint { index, rings } => {
                let EndpointState::Opening(done) = self.endpoints[index].state else {
                    return false;
                };
                if let Some((kind, ring)) = rings.iter().flatten().nth(done.into()) {
                    let ring_of = ring_index(index as u8, *kind);
                    self.request(Operation::RingSet, ring_of, &ring.to_words());
                } else {
                    let endpoint = &self.endpoints[index];
                    let setup = EndpointSetup {
                        domain: endpoint.domain,
                        completion_owner: endpoint.completion_owner.unwrap_or(index as u8),
                        epoch: endpoint.epoch,
                        ..EndpointSetup::default()
                    };
                    self.request(Operation::EndpointSet, index as u16, &setup.to_words());
                }
            }
            Job::RegisterRegion { index, setup }
                if self.regions[index].state == RegionState::Waiting =>
            {
                self.regions[index].state = RegionState::Setting;
                self.request(Operation::RegionSet, index as u16, &setup.to_words());
            }
            Job::QueryPair { index } => self.request(Operation::PairRead, index as u16, &[]),
            Job::ReadCounter { counter } => {
                self.request(Operation::CounterRead, counter.code().into(), &[]);
            }
            Job::ReadPairCounter { index, counter } => {
                let index = pair_counter_index(index as u16, counter);
                self.request(Operation::PairCounterRead, index, &[]);
            }
            Job::SetPairTimes { index } => self.tell_pair(Operation::PairTimes, index),
            Job::SetShutOut { index, setup } => {
                self.request(Operation::ShutOutSet, index as u16, &setup.to_words());
            }
            Job::ReadShutOut { index } => self.request(Operation::ShutOutRead, index as u16, &[]),
            // What others wait for is done for the object.
            _ => {
                if !self.start_for_grant_job() {
                    return false;
                }
            }
        }
        if let Some(request) = &mut self.under_way {
            request.for_host = true;
            if let Job::QueryPair { index } = self.job {
                request.set_generation(self.pairs[index].generation);
            }
        }
        true
    }

    /// Answers the host's command, if what the gates have done was what it waits for.
    pub(crate) fn advance_job(&mut self, request: UnderWay, result: u64) {
        match self.job {
            Job::OpenEndpoint { index, .. } => {
                let endpoint = &self.endpoints[index];
                if endpoint.state == EndpointState::Open {
                    let id = endpoint.id(index);
                    let epoch = u32::from(endpoint.epoch);
                    self.audit
                        .record(AuditKind::EndpointOpened, id, epoch, &self.card);
                    self.answer_with(Ok(EndpointId {
                        endpoint: id,
                        epoch,
                    }));
                }
            }
            Job::CloseEndpoint { index }
                if self.endpoints[index].state == EndpointState::Closed =>
            {
                self.answer_with(Ok(Nothing {}));
            }
            Job::ConnectPair { index } => match self.pairs[index].state {
                State::Joining => {}
                _ => self.answer_with(Ok(Nothing {})),
            },
            Job::ClosePair { index } if self.pairs[index].state == State::Closed => {
                self.answer_with(Ok(Nothing {}));
            }
            Job::QueryPair { index } if request.for_host => {
                let report = PairReport::from_words(&[result]);
                if report.heard != 0 {
                    // The next look doesn't hear of it.
                    self.peer_heard(index);
                }
                let status = self.pair_status(index);
                self.answer_with(Ok(PairStatus {
                    state: u32::from(report.state),
                    available: u32::from(report.available),
                    unacknowledged: u32::from(report.unacknowledged),
                    waiting: u32::from(report.waiting),
                    refused: report.refused,
                    ..status
                }));
            }
            Job::RegisterRegion { index, .. } => {
                let region = &self.regions[index];
                if region.state == RegionState::Used {
                    let key = region_key(index as u16, self.tag(index));
                    self.answer_with(Ok(RegionKey { key }));
                }
            }
            Job::DeregisterRegion { index } if self.regions[index].state == RegionState::Free => {
                self.answer_with(Ok(Nothing {}));
            }
            Job::SetRule { index } if self.rules[index].state == RuleState::Used => {
                let rule = self.rules[index].id(index);
                self.answer_with(Ok(RuleId { rule }));
            }
            Job::ClearRule { index } if self.rules[index].state == RuleState::Free => {
                self.answer_with(Ok(Nothing {}));
            }
            Job::ReadCounter { .. } | Job::ReadPairCounter { .. } if request.for_host => {
                self.answer_with(Ok(CounterValue { value: result }));
            }
            Job::SetPairTimes { .. } | Job::SetShutOut { .. } if request.for_host => {
                self.answer_with(Ok(Nothing {}));
            }
            Job::ReadShutOut { .. } if request.for_host => {
                let report = ShutOutReport::from_words(&[result]);
                self.answer_with(Ok(ShutOut {
                    limit: report.limit.into(),
                    ticks: report.ticks.into(),
                    count: report.count.into(),
                    left: report.left.into(),
                }));
            }
            _ => self.advance_grant_job(request, result),
        }
    }

    /// The gates have answered nothing for too long. What they were asked for is settled when they do.
    pub(crate) fn job_is_late(&mut self) {
        match self.job {
            _ if self.card.is_broken(Break::LateSetKept) => {}
            Job::OpenEndpoint { index, .. } => self.close_endpoint(index),
            Job::ConnectPair { index } if self.pairs[index].state == State::Joining => {
                self.go(index, Cause::GatesLate, State::Unsettled);
                self.want(index, Held::Absent);
            }
            Job::RegisterRegion { index, .. } => self.forget_region(index),
            Job::SetRule { index } => self.rules[index].forget(),
            _ => self.grant_is_late(),
        }
        let undrained = self.undrained();
        self.answer_with(Err::<Nothing, _>(Refusal::new(
            MailboxStatus::HardwareTimeout,
        )));
        if let Some(answer) = &mut self.answer {
            undrained.to_words(&mut answer.words[1..]);
            answer.count = 1 + Undrained::COUNT;
        }
    }

    // Commands

    fn identify(&mut self, _: Nothing) -> Served<Identity> {
        Ok(Outcome::Done(Identity {
            abi_version: match self.card.is_broken(Break::AbiVersionUnnamed) {
                true => 0,
                false => ABI_VERSION,
            },
            build_id: self.build_id,
            endpoints: self.sizes.endpoints,
            pairs: self.sizes.pairs,
            posted: self.sizes.posted,
            unexpected: self.sizes.unexpected,
            regions: self.sizes.regions,
            message_max: EAGER_MAX as u64,
            mac: self.card.mac(),
            posted_reserved: self.sizes.posted_reserved,
            capabilities: self.sizes.capabilities,
            descriptors: self.sizes.descriptors,
            rules: self.sizes.rules,
            grants: self.sizes.grants,
        }))
    }

    fn open_domain(&mut self, _: Nothing) -> Served<DomainId> {
        let domain = self.domains.open()?;
        Ok(Outcome::Done(DomainId { domain }))
    }

    fn close_domain(&mut self, close: DomainId) -> Served<Nothing> {
        self.domains.close(close.domain)?;
        Ok(Outcome::Done(Nothing {}))
    }

    fn open_endpoint(&mut self, open: OpenEndpoint) -> Served<EndpointId> {
        let domain = self.domains.find(open.domain)?;
        let completion_owner = self.completion_owner(open.completion_owner, domain)?;
        let rings = rings(&open)?;
        if open.job >> JOB_BITS != 0 {
            return Err(Refusal::argument(10));
        }
        let sends = open.pair_sends;
        if sends != 0 && (sends > MAX_SENDS.into() || !sends.is_power_of_two()) {
            return Err(Refusal::argument(11));
        }
        let index = table::free(
            &mut self.endpoints,
            self.sizes.endpoints,
            Endpoint::closed(self.first_generation),
            |endpoint| endpoint.state == EndpointState::Closed,
        )?;
        let last = self.persistent.epoch(index);
        let epoch = self.persistent.take_after(index, last, &mut self.card);
        let generation = self.endpoints[index].generation.wrapping_add(1);
        self.endpoints[index] = Endpoint {
            state: EndpointState::Opening(0),
            domain,
            job: open.job,
            sends_log2: sends.checked_ilog2().unwrap_or(0) as u8,
            completion_owner,
            epoch,
            incarnation: self.card.random(),
            ..Endpoint::closed(generation)
        };
        self.domains.acquire(domain);
        Ok(Outcome::Later(Job::OpenEndpoint { index, rings }))
    }

    /// Refuses what a card without a capability doesn't know.
    pub(crate) fn needs(&self, capability: u32) -> Result<(), Refusal> {
        match self.sizes.capabilities & capability {
            0 => Err(Refusal {
                status: MailboxStatus::Unsupported,
                detail: capability,
            }),
            _ => Ok(()),
        }
    }

    /// The place of the endpoint of this id, if requests of another one of the domain may complete on its queue.
    fn completion_owner(&self, id: u32, domain: u8) -> Result<Option<u8>, Refusal> {
        if id == NO_ENDPOINT {
            return Ok(None);
        }
        self.needs(CAPABILITY_SHARED_COMPLETIONS)?;
        let index = self.endpoint(id)?;
        let owner = &self.endpoints[index];
        if owner.domain != domain || owner.completion_owner.is_some() {
            return Err(Refusal::argument(9));
        }
        Ok(Some(index as u8))
    }

    /// Whether requests of another endpoint complete on this one's queue.
    fn is_completion_owner(&self, index: usize) -> bool {
        let completes_here = |endpoint: &Endpoint| {
            let owner = endpoint.completion_owner.map(usize::from);
            endpoint.state != EndpointState::Closed && owner == Some(index)
        };
        self.endpoints.iter().any(completes_here)
    }

    fn command_close_endpoint(&mut self, close: CloseEndpoint) -> Served<Nothing> {
        let index = usize::from(id_index(close.endpoint));
        let found = self.endpoints.get(index);
        let found = found.filter(|found| {
            found.generation == id_generation(close.endpoint)
                || self.card.is_broken(Break::GenerationIgnored)
        });
        match found.ok_or(NOT_FOUND)?.state {
            EndpointState::Closed | EndpointState::Opening(_) => return Err(NOT_FOUND),
            EndpointState::Open if self.is_completion_owner(index) => return Err(BUSY),
            EndpointState::Open => self.close_endpoint(index),
            EndpointState::Closing(_) if self.card.is_broken(Break::CloseNotRepeated) => {
                return Err(NOT_FOUND);
            }
            // Begun before, and not finished in time.
            EndpointState::Closing(_) => {}
        }
        Ok(Outcome::Later(Job::CloseEndpoint { index }))
    }

    /// The place of the open endpoint of this id.
    fn endpoint(&self, id: u32) -> Result<usize, Refusal> {
        let index = usize::from(id_index(id));
        let found = self.endpoints.get(index).ok_or(NOT_FOUND)?;
        if found.generation != id_generation(id) && !self.card.is_broken(Break::GenerationIgnored) {
            return Err(NOT_FOUND);
        }
        match found.state {
            EndpointState::Open => Ok(index),
            EndpointState::Closing(Stage::Stop | Stage::FailPairs(_) | Stage::Flush)
            | EndpointState::Closing(Stage::ClearPairs(_) | Stage::Clear) => Err(BUSY),
            EndpointState::Closed | EndpointState::Opening(_) => Err(NOT_FOUND),
        }
    }

    /// The place of the open pair of this id.
    pub(crate) fn pair(&self, id: u32) -> Result<usize, Refusal> {
        let index = usize::from(id_index(id));
        let found = self.pairs.get(index).ok_or(NOT_FOUND)?;
        let named =
            found.generation == id_generation(id) || self.card.is_broken(Break::GenerationIgnored);
        (named && found.state != State::Closed)
            .then_some(index)
            .ok_or(NOT_FOUND)
    }

    // Pairs

    /// What nobody has, but for what `except` has reserved.
    fn room(&self, except: Option<usize>) -> Room {
        let card = Room {
            pairs: self.sizes.pairs,
            places: self.sizes.unexpected / u32::from(UNIT_PLACES),
            units: self.runs.units,
        };
        let room = Room::beside(&self.pairs, &self.endpoints, card, except);
        match self.card.is_broken(Break::Oversubscribed) {
            true => Room {
                // As many as all pairs of a card can want.
                places: u32::from(u16::MAX),
                ..room
            },
            false => room,
        }
    }

    /// Takes a pair for an endpoint, from its reservation if it has one.
    fn take_pair(
        &mut self,
        endpoint: usize,
        credits: u8,
        slots: u64,
        cause: Cause,
        state: State,
    ) -> Result<usize, Refusal> {
        let owner = &self.endpoints[endpoint];
        let drawn = owner.drawn_pairs < owner.reserved_pairs;
        let reserved = if drawn { owner.reserved_credits } else { 0 };
        let room = self.room(None);
        let had = units_for(reserved);
        if !drawn {
            room.admit(1, credits.into())?;
        } else if units_for(credits) > had + room.places {
            return Err(Refusal {
                status: MailboxStatus::NoEnvelopes,
                detail: credits_of(had + room.places),
            });
        }
        // One unit is the pair's own, of the room or of the reservation; beyond that it may have what nobody else is to have.
        let most = match self.card.is_broken(Break::RunsTakeReserved) {
            true => u32::MAX,
            false => room.units + u32::from(drawn),
        };
        let run = self
            .runs
            .find(&self.pairs, owner.sends_log2, most)
            .ok_or(Refusal::new(MailboxStatus::NoResource))?;
        let index = table::free(
            &mut self.pairs,
            self.sizes.pairs,
            Pair::closed(self.first_generation),
            |pair| pair.state == State::Closed,
        )?;
        if drawn {
            self.endpoints[endpoint].drawn_pairs += 1;
        }
        let (nonce, epoch) = (self.card.random(), self.endpoints[endpoint].epoch);
        let mut pair = Pair {
            slots,
            nonce,
            epoch,
            endpoint: endpoint as u8,
            credits,
            held_credits: credits.max(reserved),
            run,
            ..Pair::closed(self.pairs[index].generation.wrapping_add(1))
        };
        if drawn {
            pair.marks.put(Marks::DRAWN);
        }
        self.pairs[index] = pair;
        self.leaves_groups(index);
        self.go(index, cause, state);
        Ok(index)
    }

    fn pair_id(&self, index: usize) -> PairId {
        let pair = &self.pairs[index];
        let endpoint = &self.endpoints[usize::from(pair.endpoint)];
        PairId {
            pair: pair.id(index),
            endpoint: endpoint.id(pair.endpoint.into()),
            epoch: pair.epoch.into(),
            nonce: pair.nonce,
            credits: pair.credits.into(),
            sends: 1 << (self.runs.unit_log2 + pair.run.log2),
            job: endpoint.job,
        }
    }

    fn open_pair(&mut self, open: OpenPair) -> Served<PairId> {
        let endpoint = self.endpoint(open.endpoint)?;
        let credits = credits(open.credits, 1)?;
        let slots = slots(open.slots, credits, 2)?;
        let index = self.take_pair(endpoint, credits, slots, Cause::CommandOpen, State::Open)?;
        Ok(Outcome::Done(self.pair_id(index)))
    }

    fn connect_pair(&mut self, connect: ConnectPair) -> Served<Nothing> {
        let index = self.pair(connect.pair)?;
        let remote_pair = narrow(connect.remote_pair, 1)?;
        let endpoint = narrow(connect.remote_endpoint, 2)?;
        let remote_epoch = narrow(connect.remote_epoch, 3)?;
        let remote_credits = credits(connect.remote_credits, 5)?;
        let mac = mac(connect.remote_mac, 6)?;
        if self.pairs[index].state != State::Open {
            return Err(BUSY);
        }
        if !self.is_job_of(self.pairs[index].endpoint.into(), connect.remote_job) {
            return Err(Refusal::argument(7));
        }
        let pair = &mut self.pairs[index];
        pair.peer = Peer::new(mac, endpoint);
        (pair.remote_pair, pair.remote_epoch) = (remote_pair, remote_epoch);
        (pair.remote_credits, pair.peer_nonce) = (remote_credits, connect.remote_nonce);
        self.go(index, Cause::CommandJoin, State::Joining);
        self.want(index, Held::Set);
        Ok(Outcome::Later(Job::ConnectPair { index }))
    }

    fn command_close_pair(&mut self, close: abi::mailbox::Pair) -> Served<Nothing> {
        let index = self.pair(close.pair)?;
        if self.pairs[index].state != State::Closing {
            self.close_pair(index);
        }
        Ok(match self.pairs[index].state {
            State::Closed => Outcome::Done(Nothing {}),
            _ => Outcome::Later(Job::ClosePair { index }),
        })
    }

    /// What the firmware knows of a pair.
    fn pair_status(&self, index: usize) -> PairStatus {
        let pair = &self.pairs[index];
        let state = match pair.state {
            State::Withdrawing if pair.is_offer => PairState::Accepting,
            State::Withdrawing => PairState::Connecting,
            state => state.told(),
        };
        let refused = pair.state == State::Refused;
        let mut times = PairSetup::default();
        pair.times.put(&mut times, pair.credits);
        PairStatus {
            state: state.code().into(),
            reason: match refused {
                true => reason_word(pair.reason, pair.detail),
                false => 0,
            },
            remote_mac: pair.peer.mac(),
            remote_endpoint: pair.peer.endpoint().into(),
            remote_credits: pair.remote_credits.into(),
            remote_epoch: pair.remote_epoch.into(),
            peer: pair.peer_state.code().into(),
            failure: pair.failure.code().into(),
            timeout_log2: times.timeout_log2.into(),
            retry_limit: times.retry_limit.into(),
            acknowledge_delay: times.acknowledge_delay.into(),
            acknowledge_credits: times.acknowledge_credits.into(),
            ..PairStatus::default()
        }
    }

    fn query_pair(&mut self, query: abi::mailbox::Pair) -> Served<PairStatus> {
        let index = self.pair(query.pair)?;
        Ok(match self.pairs[index].state {
            State::Connected | State::Failed => Outcome::Later(Job::QueryPair { index }),
            _ => Outcome::Done(self.pair_status(index)),
        })
    }

    fn connect(&mut self, connect: Connect) -> Served<PairId> {
        let endpoint = self.endpoint(connect.endpoint)?;
        let credits = credits(connect.credits, 1)?;
        let slots = slots(connect.slots, credits, 2)?;
        let mac = mac(connect.remote_mac, 3)?;
        let remote_endpoint = narrow(connect.remote_endpoint, 4)?;
        let timeout = timeout(connect.timeout, CONNECT_TIMEOUT, 5)?;
        if !self.has_handshake() {
            return Err(BUSY);
        }
        let (cause, state) = (Cause::CommandConnect, State::Requesting);
        let index = self.take_pair(endpoint, credits, slots, cause, state)?;
        self.pairs[index].peer = Peer::new(mac, remote_endpoint);
        self.begin_exchange(index, false, timeout);
        self.ask(index);
        Ok(Outcome::Done(self.pair_id(index)))
    }

    fn accept(&mut self, accept: Accept) -> Served<PairId> {
        let endpoint = self.endpoint(accept.endpoint)?;
        let credits = credits(accept.credits, 1)?;
        let slots = slots(accept.slots, credits, 2)?;
        let (cause, state) = (Cause::CommandAccept, State::Accepting);
        let index = self.take_pair(endpoint, credits, slots, cause, state)?;
        self.offers = self.offers.wrapping_add(1);
        let pair = &mut self.pairs[index];
        (pair.is_offer, pair.offer) = (true, self.offers);
        Ok(Outcome::Done(self.pair_id(index)))
    }

    fn disconnect(&mut self, disconnect: Disconnect) -> Served<Nothing> {
        let index = self.pair(disconnect.pair)?;
        let timeout = timeout(disconnect.timeout, DRAIN_TIMEOUT, 1)?;
        match self.pairs[index].state {
            State::Connected if self.has_disconnect() => {
                self.begin_exchange(index, true, timeout);
                self.go(index, Cause::CommandDisconnect, State::Draining);
                self.look_at_drain(index);
            }
            State::Failed if self.has_disconnect() => {
                self.begin_exchange(index, true, TELL_TIMEOUT);
                self.go(index, Cause::CommandDisconnect, State::Ending);
                self.want(index, Held::Failed);
            }
            // It has ended, or is going to.
            State::Draining
            | State::Ending
            | State::Telling
            | State::PeerEnding
            | State::Disconnected => {}
            _ => return Err(BUSY),
        }
        Ok(Outcome::Done(Nothing {}))
    }

    fn reserve(&mut self, reserve: Reserve) -> Served<Nothing> {
        let index = self.endpoint(reserve.endpoint)?;
        let credits = match reserve.pairs {
            0 => 0,
            _ => credits(reserve.credits, 2)?,
        };
        self.room(Some(index))
            .admit(reserve.pairs, credits.into())?;
        let endpoint = &mut self.endpoints[index];
        // No more than the card has, which is less than 2^16.
        endpoint.reserved_pairs = reserve.pairs as u16;
        (endpoint.reserved_credits, endpoint.drawn_pairs) = (credits, 0);
        for pair in self.pairs.iter_mut() {
            if usize::from(pair.endpoint) == index {
                pair.marks.take(Marks::DRAWN);
                pair.held_credits = pair.credits;
            }
        }
        Ok(Outcome::Done(Nothing {}))
    }

    // Peers

    fn declare_failed(&mut self, declared: abi::mailbox::Pair) -> Served<Nothing> {
        let index = self.pair(declared.pair)?;
        match self.pairs[index].state {
            State::Connected => {
                self.peer_fails(index, FailureCause::Declared, Cause::CommandDeclare);
            }
            // Its operations have ended; of its peer the host knows more than the gates did.
            State::Failed => self.note_failure(index, FailureCause::Declared),
            _ => return Err(NOT_CONNECTED),
        }
        Ok(Outcome::Done(Nothing {}))
    }

    fn watch_peers(&mut self, asked: WatchPeers) -> Served<Nothing> {
        let endpoint = self.endpoint(asked.endpoint)?;
        self.watch(endpoint, Watch::asked(&asked)?);
        Ok(Outcome::Done(Nothing {}))
    }

    fn read_failed(&mut self, read: abi::mailbox::Endpoint) -> Served<FailedPeers> {
        let endpoint = self.endpoint(read.endpoint)?;
        let mut failed = PairBits::default();
        for (index, pair) in self.pairs.iter().enumerate() {
            let own = usize::from(pair.endpoint) == endpoint;
            if own && pair.state != State::Closed && pair.peer_state == PeerState::Failed {
                failed.insert(index);
            }
        }
        let (low, high) = failed.to_words();
        Ok(Outcome::Done(FailedPeers { low, high }))
    }

    fn command_tell_failed(&mut self, told: TellFailed) -> Served<Nothing> {
        let index = self.pair(told.failed)?;
        let pair = &self.pairs[index];
        if pair.peer_state != PeerState::Failed {
            return Err(Refusal::argument(0));
        }
        let (endpoint, peer) = (pair.endpoint, pair.peer);
        let to = PairBits::from_words(told.low, told.high);
        match self.begin_telling(endpoint, Said::PeerFailed(peer), to) {
            true => Ok(Outcome::Done(Nothing {})),
            false => Err(BUSY),
        }
    }

    fn tell_revoked(&mut self, told: TellRevoked) -> Served<Nothing> {
        let endpoint = self.endpoint(told.endpoint)?;
        let context = narrow(told.context, 2)?;
        let said = Revocation::new(told.tag, context, told.match_bits, told.mask);
        let to = PairBits::from_words(told.low, told.high);
        match self.begin_telling(endpoint as u8, Said::Revoked(said), to) {
            true => Ok(Outcome::Done(Nothing {})),
            false => Err(BUSY),
        }
    }

    fn command_read_revoked(&mut self, read: RevokedNumber) -> Served<ToldRevocation> {
        let endpoint = self.endpoint(read.endpoint)?;
        Ok(Outcome::Done(self.read_revoked(endpoint, read.number)))
    }

    fn command_forget_revoked(&mut self, forget: RevokedNumber) -> Served<Nothing> {
        let endpoint = self.endpoint(forget.endpoint)?;
        match self.forget_revoked(endpoint, forget.number) {
            true => Ok(Outcome::Done(Nothing {})),
            false => Err(NOT_FOUND),
        }
    }

    fn command_name_group(&mut self, name: NameGroup) -> Served<Nothing> {
        let endpoint = self.endpoint(name.endpoint)?;
        self.own_pairs(endpoint, [name.low, name.high], 2)?;
        let pairs = PairBits::from_words(name.low, name.high);
        self.name_group(endpoint as u8, name.tag, pairs)?;
        Ok(Outcome::Done(Nothing {}))
    }

    fn signal(&mut self, signal: Signal) -> Served<Nothing> {
        let index = self.pair(signal.pair)?;
        let pair = &self.pairs[index];
        match (pair.state, pair.gates, pair.wanted) {
            (State::Connected, ..) if self.has_notice(index) => {}
            // Who is told that a pair has ended may rely on it that its peer writes no more.
            (State::Connected, ..) => return Err(BUSY),
            (_, Held::Set, Held::Failed) if !self.card.is_broken(Break::EndSaidEarly) => {
                return Err(BUSY);
            }
            _ => return Err(NOT_CONNECTED),
        }
        self.begin_notice(index, Said::Signal(signal.word));
        Ok(Outcome::Done(Nothing {}))
    }

    fn drain(&mut self, begin: abi::mailbox::Drain) -> Served<Nothing> {
        let endpoint = self.endpoint(begin.endpoint)?;
        self.begin_drain(&begin, endpoint)?;
        Ok(Outcome::Done(Nothing {}))
    }

    fn drain_swept(&mut self, name: DrainName) -> Served<Nothing> {
        self.drain_is_swept(&name)?;
        Ok(Outcome::Done(Nothing {}))
    }

    fn command_read_drain(&mut self, name: DrainName) -> Served<DrainStatus> {
        Ok(Outcome::Done(self.read_drain(&name)?))
    }

    fn read_audit(&mut self, read: AuditIndex) -> Served<AuditEntry> {
        Ok(Outcome::Done(self.audit.read(read.entry)))
    }

    // Regions

    fn register_region(&mut self, register: RegisterRegion) -> Served<RegionKey> {
        let domain = self.domains.find(register.domain)?;
        let rights: u8 = narrow(register.rights, 1)?;
        if rights == 0 || rights & !(RIGHT_LOCAL_READ | RIGHT_LOCAL_WRITE | REMOTE_RIGHTS) != 0 {
            return Err(Refusal::argument(1));
        }
        if rights & REMOTE_RIGHTS != 0 {
            self.needs(CAPABILITY_GRANTS)?;
        }
        if register.length == 0 || register.address.checked_add(register.length).is_none() {
            return Err(Refusal::argument(3));
        }
        let space = space(register.space, 4)?;
        let free = |region: &Region| region.state == RegionState::Free;
        let fresh = Region::default();
        let index = table::free(&mut self.regions, self.sizes.regions, fresh, free)?;
        self.regions[index].take(domain, rights, register.length, &mut self.card);
        let tag = self.tag(index);
        self.domains.acquire(domain);
        let setup = RegionSetup {
            base: register.address,
            length: register.length,
            tag,
            domain,
            rights,
            space,
            ..RegionSetup::default()
        };
        Ok(Outcome::Later(Job::RegisterRegion { index, setup }))
    }

    fn deregister_region(&mut self, region: RegionKey) -> Served<Nothing> {
        let found = self.tags.find(&self.regions, region.key);
        let index = found.ok_or(NOT_FOUND)?;
        if self.regions[index].state == RegionState::Used {
            self.forget_region(index);
        }
        Ok(Outcome::Later(Job::DeregisterRegion { index }))
    }

    /// Tag of the region of a place.
    pub(crate) fn tag(&self, index: usize) -> u32 {
        let generation = self.regions[index].generation;
        self.tags.tag(index as u16, generation)
    }

    /// Begins to forget a region.
    fn forget_region(&mut self, index: usize) {
        let region = &mut self.regions[index];
        if region.state == RegionState::Waiting {
            // The gates have not heard of it.
            region.state = RegionState::Free;
            let domain = region.domain;
            self.domains.release(domain);
        } else {
            region.state = RegionState::Clearing;
            self.regions_clearing += 1;
        }
    }

    // Rules

    fn set_rule(&mut self, set: SetRule) -> Served<RuleId> {
        self.needs(CAPABILITY_RULES)?;
        let endpoint = self.endpoint(set.endpoint)?;
        let context = narrow(set.context, 1)?;
        self.own_pairs(endpoint, [set.low, set.high], 4)?;
        if set.low | set.high == 0 {
            return Err(Refusal::argument(4));
        }
        let setup = RuleSetup {
            endpoint: endpoint as u8,
            context,
            match_bits: set.match_bits,
            mask: set.mask,
            pairs_low: set.low,
            pairs_high: set.high,
            ..RuleSetup::default()
        };
        if let Some(index) = self.take_over(&setup) {
            let rule = self.rules[index].id(index);
            return Ok(match self.rules[index].state {
                RuleState::Used => Outcome::Done(RuleId { rule }),
                _ => Outcome::Later(Job::SetRule { index }),
            });
        }
        let index = self.take_rule(setup)?;
        Ok(Outcome::Later(Job::SetRule { index }))
    }

    /// Takes a row for a rule, which the gates are to be told of.
    pub(crate) fn take_rule(&mut self, setup: RuleSetup) -> Result<usize, Refusal> {
        let free = |rule: &Rule| rule.state == RuleState::Free;
        let fresh = Rule::free(self.first_generation);
        let index = table::free(&mut self.rules, self.sizes.rules, fresh, free)?;
        self.rules[index].take(setup);
        Ok(index)
    }

    /// Checks that a group is of open pairs of an endpoint. Its words are the arguments from this position on.
    fn own_pairs(&self, endpoint: usize, words: [u64; 2], position: u32) -> Result<(), Refusal> {
        for (at, word) in words.into_iter().enumerate() {
            let mut left = word;
            while left != 0 {
                let place = at * 64 + left.trailing_zeros() as usize;
                let own = self.is_open_pair_of(place, endpoint)
                    || self.pairs.get(place).is_some()
                        && self.card.is_broken(Break::StrangersRuled);
                if !own {
                    return Err(Refusal::argument(position + at as u32));
                }
                left &= left - 1;
            }
        }
        Ok(())
    }

    /// Whether a place is that of an open pair of an endpoint.
    pub(crate) fn is_open_pair_of(&self, place: usize, endpoint: usize) -> bool {
        let of_endpoint = |pair: &&Pair| usize::from(pair.endpoint) == endpoint;
        let found = self.pairs.get(place).filter(of_endpoint);
        found.is_some_and(|pair| !matches!(pair.state, State::Closed | State::Closing))
    }

    fn clear_rule(&mut self, clear: RuleId) -> Served<Nothing> {
        let index = rule::find(&self.rules, clear.rule).ok_or(NOT_FOUND)?;
        self.rules[index].forget();
        self.forget_revocation_of(clear.rule);
        Ok(Outcome::Later(Job::ClearRule { index }))
    }

    fn read_counter(&mut self, read: CounterId) -> Served<CounterValue> {
        let counter = u8::try_from(read.counter).ok().and_then(Counter::from_code);
        let counter = counter.ok_or(Refusal::argument(0))?;
        Ok(Outcome::Later(Job::ReadCounter { counter }))
    }

    fn read_pair_counter(&mut self, read: PairCounterId) -> Served<CounterValue> {
        let index = self.pair(read.pair)?;
        let counter = u8::try_from(read.counter).ok();
        let counter = counter.and_then(PairCounter::from_code);
        let counter = counter.ok_or(Refusal::argument(1))?;
        Ok(match self.pairs[index].gates {
            // The gates still have those of whoever had the place before.
            Held::Absent => Outcome::Done(CounterValue { value: 0 }),
            Held::Set | Held::Failed => Outcome::Later(Job::ReadPairCounter { index, counter }),
        })
    }

    /// A pair of which the gates know who its peer is.
    fn pair_of_gates(&self, pair: u32) -> Result<usize, Refusal> {
        let index = self.pair(pair)?;
        match (self.pairs[index].gates, self.pairs[index].state) {
            (Held::Absent, _) => Err(NOT_CONNECTED),
            (_, State::Closing) => Err(BUSY),
            (Held::Set | Held::Failed, _) => Ok(index),
        }
    }

    fn set_shut_out(&mut self, set: SetShutOut) -> Served<Nothing> {
        let index = self.pair_of_gates(set.pair)?;
        let word = |word: u32, position| {
            let any = self.card.is_broken(Break::ShutOutUnbounded);
            u16::try_from(word).or(match any {
                true => Ok(word as u16),
                false => Err(Refusal::argument(position)),
            })
        };
        let setup = ShutOutSetup {
            limit: word(set.limit, 1)?,
            ticks: word(set.ticks, 2)?,
            ..ShutOutSetup::default()
        };
        Ok(Outcome::Later(Job::SetShutOut { index, setup }))
    }

    fn read_shut_out(&mut self, read: abi::mailbox::Pair) -> Served<ShutOut> {
        let index = self.pair_of_gates(read.pair)?;
        Ok(Outcome::Later(Job::ReadShutOut { index }))
    }
}

/// A time that the host gives, or the firmware's.
fn timeout(cycles: u32, default: u32, position: u32) -> Result<u32, Refusal> {
    match cycles {
        0 => Ok(default),
        1..0x8000_0000 => Ok(cycles),
        _ => Err(Refusal::argument(position)),
    }
}
