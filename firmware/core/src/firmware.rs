//! The commands of the mailbox, one function each.

use crate::argument::{Refusal, is_aligned_range, narrow};
use crate::card::{Card, ControlTimeout, Sizes};
use crate::domain::Domains;
use crate::endpoint::{Endpoint, EndpointState, rings};
use crate::pair::{self, State};
use crate::region::{self, Region};
use crate::table;
use abi::ABI_VERSION;
use abi::control::{
    CardSetup, Counter, EndpointSetup, KEY_INDEX_BITS, MatchSetup, Operation, PairReport,
    PairSetup, RIGHT_LOCAL_READ, RIGHT_LOCAL_WRITE, RegionSetup, ring_index,
};
use abi::limits::{EAGER_MAX, MAX_CREDITS, MAX_ENDPOINTS};
use abi::mailbox::{
    CloseEndpoint, Command, ConnectPair, CounterId, CounterValue, DomainId, EndpointId, Identity,
    Nothing, OpenEndpoint, OpenPair, Pair, PairId, PairState, PairStatus, RegionKey,
    RegisterRegion, Words,
};
use abi::register::MAILBOX_WORDS;
use abi::status::{MailboxStatus, Status};
use heapless::Vec;

/// Cycles without acknowledgement after which a pair fails: 8.4 ms at 125 MHz.
pub const ACKNOWLEDGE_TIMEOUT: u32 = 1 << 20;

/// The firmware of a card, with tables for `PAIRS` pairs and `REGIONS` regions. A card with more has
/// as many as that, and says so.
pub struct Firmware<C, const PAIRS: usize, const REGIONS: usize> {
    card: C,
    sizes: Sizes,
    build_id: u64,
    domains: Domains,
    /// The tables are as long as they have ever been needed, so that booting fills nothing.
    endpoints: Vec<Endpoint, MAX_ENDPOINTS>,
    pairs: Vec<pair::Pair, PAIRS>,
    regions: Vec<Region, REGIONS>,
}

impl<C: Card, const PAIRS: usize, const REGIONS: usize> Firmware<C, PAIRS, REGIONS> {
    /// The firmware of a card whose tables are empty. To be [started](Self::start) before it serves.
    pub fn new(card: C, build_id: u64) -> Self {
        let sizes = card.sizes();
        let cap = |size: u32, most: usize| size.min(most as u32);
        Self {
            sizes: Sizes {
                endpoints: cap(sizes.endpoints, MAX_ENDPOINTS),
                pairs: cap(sizes.pairs, PAIRS),
                regions: cap(sizes.regions, REGIONS.min(1 << KEY_INDEX_BITS)),
                ..sizes
            },
            card,
            build_id,
            domains: Domains::new(),
            endpoints: Vec::new(),
            pairs: Vec::new(),
            regions: Vec::new(),
        }
    }

    /// Tells the gates their address, time-outs and the seed of their hashes.
    ///
    /// # Errors
    /// [`ControlTimeout`] if the gates don't answer.
    pub fn start(&mut self) -> Result<(), ControlTimeout> {
        let setup = CardSetup {
            mac: self.card.mac(),
            acknowledge_timeout: ACKNOWLEDGE_TIMEOUT,
            ..CardSetup::default()
        };
        self.card
            .control(Operation::CardSet, 0, &setup.to_words())?;
        let mut word = || u64::from(self.card.random()) << 32 | u64::from(self.card.random());
        let matching = MatchSetup {
            seed_low: word(),
            seed_high: word(),
        };
        self.card
            .control(Operation::MatchSet, 0, &matching.to_words())?;
        Ok(())
    }

    /// The card.
    pub fn card(&mut self) -> &mut C {
        &mut self.card
    }

    /// Carries out the command in `command`, a command area, and writes the answer to `answer`. Returns the
    /// status and how many words of the answer there are, status included.
    pub fn serve(
        &mut self,
        command: &[u32; MAILBOX_WORDS],
        answer: &mut [u32; MAILBOX_WORDS],
    ) -> (MailboxStatus, usize) {
        let (code, arguments) = (command[0], &command[1..]);
        let command = u8::try_from(code).ok().and_then(Command::from_code);
        let words = &mut answer[1..];
        let served = match command {
            None => Err(Refusal::new(MailboxStatus::UnknownCommand)),
            Some(Command::Identify) => run(arguments, words, |a| self.identify(a)),
            Some(Command::OpenDomain) => run(arguments, words, |a| self.open_domain(a)),
            Some(Command::CloseDomain) => run(arguments, words, |a| self.close_domain(a)),
            Some(Command::OpenEndpoint) => run(arguments, words, |a| self.open_endpoint(a)),
            Some(Command::CloseEndpoint) => run(arguments, words, |a| self.close_endpoint(a)),
            Some(Command::OpenPair) => run(arguments, words, |a| self.open_pair(a)),
            Some(Command::ConnectPair) => run(arguments, words, |a| self.connect_pair(a)),
            Some(Command::ClosePair) => run(arguments, words, |a| self.close_pair(a)),
            Some(Command::RegisterRegion) => run(arguments, words, |a| self.register_region(a)),
            Some(Command::DeregisterRegion) => run(arguments, words, |a| self.deregister_region(a)),
            Some(Command::ReadCounter) => run(arguments, words, |a| self.read_counter(a)),
            Some(Command::QueryPair) => run(arguments, words, |a| self.query_pair(a)),
            Some(
                Command::Connect
                | Command::Accept
                | Command::Disconnect
                | Command::Reserve
                | Command::ReadAudit,
            ) => Err(Refusal::new(MailboxStatus::UnknownCommand)),
        };
        let (status, count) = match served {
            Ok(count) => (MailboxStatus::Ok, count),
            Err(refusal) => {
                words[0] = refusal.detail;
                (refusal.status, 1)
            }
        };
        answer[0] = u32::from(status.code());
        (status, 1 + count)
    }

    fn identify(&mut self, _: Nothing) -> Result<Identity, Refusal> {
        Ok(Identity {
            abi_version: ABI_VERSION,
            build_id: self.build_id,
            endpoints: self.sizes.endpoints,
            pairs: self.sizes.pairs,
            posted: self.sizes.posted,
            unexpected: self.sizes.unexpected,
            regions: self.sizes.regions,
            message_max: EAGER_MAX as u64,
            mac: self.card.mac(),
        })
    }

    fn open_domain(&mut self, _: Nothing) -> Result<DomainId, Refusal> {
        let domain = u32::from(self.domains.open()?);
        Ok(DomainId { domain })
    }

    fn close_domain(&mut self, close: DomainId) -> Result<Nothing, Refusal> {
        self.domains.close(close.domain)?;
        Ok(Nothing {})
    }

    fn open_endpoint(&mut self, open: OpenEndpoint) -> Result<EndpointId, Refusal> {
        let domain = self.domains.find(open.domain)?;
        let rings = rings(&open)?;
        let closed = |endpoint: &Endpoint| endpoint.state == EndpointState::Closed;
        let index = table::free(&mut self.endpoints, self.sizes.endpoints, closed)?;
        let epoch = self.endpoints[index].epoch.wrapping_add(1);
        for (kind, ring) in rings {
            let index = ring_index(index as u8, kind);
            self.card
                .control(Operation::RingSet, index, &ring.to_words())?;
        }
        let setup = EndpointSetup {
            domain,
            epoch,
            ..EndpointSetup::default()
        };
        self.card
            .control(Operation::EndpointSet, index as u16, &setup.to_words())?;
        self.endpoints[index] = Endpoint {
            state: EndpointState::Open,
            domain,
            epoch,
        };
        self.domains.acquire(domain);
        Ok(EndpointId {
            endpoint: index as u32,
            epoch: u32::from(epoch),
        })
    }

    /// Stops the endpoint's rings, so that nothing new comes; fails its pairs and flushes its lists, so that
    /// what is outstanding completes; then lets the gates forget it all.
    fn close_endpoint(&mut self, close: CloseEndpoint) -> Result<Nothing, Refusal> {
        let index = close.endpoint as usize;
        match self.endpoints.get_mut(index) {
            Some(endpoint) if endpoint.state != EndpointState::Closed => {
                endpoint.state = EndpointState::Closing;
            }
            _ => return Err(Refusal::new(MailboxStatus::NotFound)),
        }
        let number = index as u16;
        self.card.control(Operation::EndpointStop, number, &[])?;
        for k in 0..self.pairs.len() {
            if self.is_pair_of(k, index) {
                self.fail_pair(k)?;
            }
        }
        self.card.control(Operation::EndpointFlush, number, &[])?;
        for k in 0..self.pairs.len() {
            if self.is_pair_of(k, index) {
                self.clear_pair(k)?;
            }
        }
        self.card.control(Operation::EndpointClear, number, &[])?;
        let endpoint = &mut self.endpoints[index];
        endpoint.state = EndpointState::Closed;
        self.domains.release(endpoint.domain);
        Ok(Nothing {})
    }

    fn is_pair_of(&self, pair: usize, endpoint: usize) -> bool {
        let pair = &self.pairs[pair];
        pair.state != State::Closed && usize::from(pair.endpoint) == endpoint
    }

    /// Completes what is outstanding on a pair with `Flushed`. A pair that has failed stays as it is.
    fn fail_pair(&mut self, index: usize) -> Result<(), ControlTimeout> {
        if self.pairs[index].state == State::Connected {
            let status = [u64::from(Status::Flushed.code())];
            self.card
                .control(Operation::PairFail, index as u16, &status)?;
        }
        Ok(())
    }

    /// Forgets a pair.
    fn clear_pair(&mut self, index: usize) -> Result<(), ControlTimeout> {
        if self.pairs[index].state == State::Connected {
            self.card.control(Operation::PairClear, index as u16, &[])?;
        }
        self.pairs[index] = pair::Pair::default();
        Ok(())
    }

    /// The open endpoint of this number.
    fn endpoint(&self, endpoint: u32) -> Result<&Endpoint, Refusal> {
        match self.endpoints.get(endpoint as usize) {
            Some(found) if found.state == EndpointState::Open => Ok(found),
            Some(found) if found.state == EndpointState::Closing => {
                Err(Refusal::new(MailboxStatus::Busy))
            }
            _ => Err(Refusal::new(MailboxStatus::NotFound)),
        }
    }

    /// Where the open pair of this number is.
    fn pair(&self, pair: u32) -> Result<usize, Refusal> {
        match self.pairs.get(pair as usize) {
            Some(found) if found.state != State::Closed => Ok(pair as usize),
            _ => Err(Refusal::new(MailboxStatus::NotFound)),
        }
    }

    fn open_pair(&mut self, open: OpenPair) -> Result<PairId, Refusal> {
        let epoch = self.endpoint(open.endpoint)?.epoch;
        if !(1..=u32::from(MAX_CREDITS)).contains(&open.credits) {
            return Err(Refusal::argument(1));
        }
        if !is_aligned_range(open.slots, u64::from(open.credits) * EAGER_MAX as u64) {
            return Err(Refusal::argument(2));
        }
        pair::admit(&self.pairs, self.sizes.unexpected, open.credits)?;
        let closed = |pair: &pair::Pair| pair.state == State::Closed;
        let index = table::free(&mut self.pairs, self.sizes.pairs, closed)?;
        let nonce = self.card.random();
        self.pairs[index] = pair::Pair {
            slots: open.slots,
            nonce,
            state: State::Open,
            endpoint: open.endpoint as u8,
            credits: open.credits as u8,
        };
        Ok(PairId {
            pair: index as u32,
            endpoint: open.endpoint,
            epoch: u32::from(epoch),
            nonce,
            credits: open.credits,
        })
    }

    fn connect_pair(&mut self, connect: ConnectPair) -> Result<Nothing, Refusal> {
        let index = self.pair(connect.pair)?;
        let remote_pair = narrow(connect.remote_pair, 1)?;
        let remote_endpoint = narrow(connect.remote_endpoint, 2)?;
        let remote_epoch = narrow(connect.remote_epoch, 3)?;
        if !(1..=u32::from(MAX_CREDITS)).contains(&connect.remote_credits) {
            return Err(Refusal::argument(5));
        }
        if connect.remote_mac >> 48 != 0 {
            return Err(Refusal::argument(6));
        }
        let pair = self.pairs[index];
        let endpoint = *self.endpoint(u32::from(pair.endpoint))?;
        if pair.state != State::Open {
            return Err(Refusal::new(MailboxStatus::Busy));
        }
        let setup = PairSetup {
            remote_mac: connect.remote_mac,
            remote_endpoint,
            remote_pair,
            remote_epoch,
            cookie: pair.nonce ^ connect.remote_nonce,
            endpoint: pair.endpoint,
            domain: endpoint.domain,
            epoch: endpoint.epoch,
            remote_credits: connect.remote_credits as u8,
            local_credits: pair.credits,
            slots: pair.slots,
            ..PairSetup::default()
        };
        // Connected before the gates have answered: if they don't, closing must ask them to forget it.
        self.pairs[index].state = State::Connected;
        self.card
            .control(Operation::PairSet, index as u16, &setup.to_words())?;
        Ok(Nothing {})
    }

    fn close_pair(&mut self, close: Pair) -> Result<Nothing, Refusal> {
        let index = self.pair(close.pair)?;
        self.fail_pair(index)?;
        self.clear_pair(index)?;
        Ok(Nothing {})
    }

    fn query_pair(&mut self, query: Pair) -> Result<PairStatus, Refusal> {
        let index = self.pair(query.pair)?;
        if self.pairs[index].state == State::Open {
            return Ok(PairStatus {
                state: u32::from(PairState::Open.code()),
                ..PairStatus::default()
            });
        }
        let report = self.card.control(Operation::PairRead, index as u16, &[])?;
        let report = PairReport::from_words(&[report]);
        Ok(PairStatus {
            state: u32::from(report.state),
            available: u32::from(report.available),
            unacknowledged: u32::from(report.unacknowledged),
            waiting: u32::from(report.waiting),
            refused: report.refused,
            ..PairStatus::default()
        })
    }

    fn register_region(&mut self, register: RegisterRegion) -> Result<RegionKey, Refusal> {
        let domain = self.domains.find(register.domain)?;
        let rights: u8 = narrow(register.rights, 1)?;
        if rights == 0 || rights & !(RIGHT_LOCAL_READ | RIGHT_LOCAL_WRITE) != 0 {
            return Err(Refusal::argument(1));
        }
        if register.length == 0 || register.address.checked_add(register.length).is_none() {
            return Err(Refusal::argument(3));
        }
        let unused = |region: &Region| !region.used;
        let index = table::free(&mut self.regions, self.sizes.regions, unused)?;
        let tag = region::tag(self.card.random());
        let setup = RegionSetup {
            base: register.address,
            length: register.length,
            tag,
            domain,
            rights,
            ..RegionSetup::default()
        };
        self.card
            .control(Operation::RegionSet, index as u16, &setup.to_words())?;
        self.regions[index] = Region {
            tag,
            domain,
            used: true,
        };
        self.domains.acquire(domain);
        let key = region::key(index, tag);
        Ok(RegionKey { key })
    }

    fn deregister_region(&mut self, region: RegionKey) -> Result<Nothing, Refusal> {
        let index = region::find(&self.regions, region.key);
        let index = index.ok_or(Refusal::new(MailboxStatus::NotFound))?;
        self.card
            .control(Operation::RegionClear, index as u16, &[])?;
        self.domains.release(self.regions[index].domain);
        self.regions[index] = Region::default();
        Ok(Nothing {})
    }

    fn read_counter(&mut self, read: CounterId) -> Result<CounterValue, Refusal> {
        let counter = u8::try_from(read.counter).ok().and_then(Counter::from_code);
        let counter = counter.ok_or(Refusal::argument(0))?;
        let index = u16::from(counter.code());
        let value = self.card.control(Operation::CounterRead, index, &[])?;
        Ok(CounterValue { value })
    }
}

/// Reads a command's arguments, runs it, and writes its results; the count of result words.
fn run<A: Words, R: Words>(
    arguments: &[u32],
    words: &mut [u32],
    command: impl FnOnce(A) -> Result<R, Refusal>,
) -> Result<usize, Refusal> {
    let results = command(A::from_words(arguments))?;
    results.to_words(words);
    Ok(R::COUNT)
}
