//! The gates of the model of a card under the firmware: they answer when the test lets them, and panic if what they are asked can't be right.
//!
//! ```text
//!  Firmware ── control request ──► delay, silence ──► check ──► Managed (card-model) ──► outbox, events
//! ```

use crate::breaks::{self, promise, promise_eq};
use abi::completion::COMPLETION_BYTES;
use abi::control::{
    AccessReport, COVER_PAIR, COVER_REGION, CardSetup, DATA_WORDS, EndpointSetup, EventSetup,
    FenceSetup, GRANT_ANY_PEER, GRANT_ONE_SHOT, GRANT_SHARED, GrantSetup, MatchSetup, MintSetup,
    Operation, PairReport, PairSetup, PermissionSetup, RING_BITS, RING_COMPLETION, RING_EVENT,
    RegionSetup, RingSetup, RuleSetup, shared_grants,
};
use abi::event::{Cause as EventCause, EVENT_BYTES, NO_PAIR};
use abi::key::remote_key_index;
use abi::limits::{FLAT_SPACE, MAX_RING_LOG2, MIN_RING_LOG2, SLOTS_ALIGN, UNIT_PLACES};
use abi::mailbox::{PairState, PeerState, Words};
use abi::register::MAILBOX_WORDS;
use abi::request::{REQUEST_BYTES, place_units};
use abi::ring::ring_bytes;
use abi::status::MailboxStatus;
use abi::times::{RETRY_LIMIT_MOST, TIMEOUT_LOG2_LEAST, TIMEOUT_LOG2_MOST};
use abi::wire::{FrameHeader, FrameType, HEADER_BYTES};
use card_model::matching::Sizes as ListSizes;
use card_model::memory::Pieces;
use card_model::{CardSizes, InTurn, Managed, link};
use firmware_core::connection::{Cause, State};
use firmware_core::watch::PeerCause;
use firmware_core::{Break, CONTROL_TIMEOUT, Card, Firmware, FrameWords, GateEvent, Sizes};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

/// Sizes of a card with two endpoints.
pub fn sizes(pairs: usize, unexpected: usize, regions: usize) -> CardSizes {
    CardSizes {
        lists: ListSizes::new(2, pairs, 12, 4, unexpected),
        regions,
        capabilities: 0,
        descriptors: 8 * pairs,
        rules: 4,
        grants: 32,
    }
}

/// What leaves a card for another one.
#[derive(Clone, Debug)]
pub enum Wire {
    /// A frame of the firmware.
    Firmware(FrameWords),
    /// One of the gates, all its bytes.
    Gates(Vec<u8>),
}

impl Wire {
    fn of(frame: Vec<u8>) -> Self {
        let screened = link::screen(&frame).expect("a card sends good frames");
        match screened.frame_type {
            FrameType::Handshake | FrameType::Management => {
                let (words, _) = frame.as_chunks();
                Self::Firmware(std::array::from_fn(|k| u32::from_le_bytes(words[k])))
            }
            _ => Self::Gates(frame),
        }
    }

    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Firmware(words) => {
                let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                let header = FrameHeader::parse(&bytes).expect("it is longer than a header");
                link::seal(&header, &bytes[HEADER_BYTES..])
            }
            Self::Gates(frame) => frame.clone(),
        }
    }

    /// Address of the card that it is for.
    pub fn destination(&self) -> u64 {
        let header = FrameHeader::parse(&self.bytes());
        header.expect("it has a header").destination_mac
    }
}

/// A pair that the gates hold.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    pub setup: PairSetup,
    /// The status with which the firmware has failed it.
    pub failed_with: Option<u64>,
    /// Sends that are not acknowledged: none from some cycle on.
    pub busy_until: u32,
}

pub struct Gates {
    pub model: Managed<Pieces>,
    pub rng: ChaCha8Rng,
    pub now: u32,
    /// What the gates have been told, by the firmware's requests.
    pub endpoints: HashMap<u16, EndpointSetup>,
    stopped: Vec<u16>,
    pub pairs: BTreeMap<u16, Held>,
    pub regions: HashMap<u16, RegionSetup>,
    pub rules: HashMap<u16, RuleSetup>,
    /// Grants by row and permissions by shared grant and pair, each with the generation of its peer; and generations by pair, which don't wrap.
    pub grants: HashMap<u16, (GrantSetup, u32)>,
    pub permissions: HashMap<(u16, u16), u32>,
    /// Key of the tags that the gates make.
    pub mint_key: Option<MintSetup>,
    generations: HashMap<u16, u32>,
    /// The random source says the same for ever.
    pub stuck: bool,
    pub log: Vec<(Operation, u16)>,
    /// Events for the host: endpoint, cause, pair, info. Those of the gates are here when the firmware takes them.
    pub raised: Vec<(u16, u8, u16, u64)>,
    /// Fences.
    pub fences: Vec<FenceSetup>,
    /// What requests that aren't answered wait for.
    pub report: AccessReport,
    /// So many control requests are answered and not carried out.
    pub forgets: usize,
    /// Of those that are answered late, half aren't carried out.
    pub forgets_late: bool,
    /// Requests that were answered late, and clears that may find nothing since.
    doubted: HashSet<(Operation, u16)>,
    /// Events that are told beside those of the model.
    pub told: VecDeque<GateEvent>,
    /// The next events find no room.
    pub loses_events: bool,
    events_lost: u32,
    /// The next events are still on their way.
    pub holds_events: bool,
    /// Events come faster than anybody takes them.
    pub flood: bool,
    pub outbox: Vec<Wire>,
    /// The out buffer is full until this cycle.
    out_until: u32,
    under_way: Option<(Operation, u16, [u64; DATA_WORDS])>,
    started_at: u32,
    done_at: u32,
    result: u64,
    resetting_until: Option<u32>,
    /// Cycles that a control request takes.
    pub delay: u32,
    /// Control requests that are still answered.
    pub patience: usize,
    /// Control requests are answered from this cycle on.
    pub silent_until: u32,
    /// A connected pair is busy for so many cycles.
    pub busy: u32,
    pub transitions: HashSet<(State, Cause, State)>,
    pub peer_transitions: HashSet<(PeerState, PeerCause, PeerState)>,
    /// Cookies of all pairs that were ever set.
    pub cookies: HashSet<u32>,
    /// Last epoch of each peer that a pair was connected with, since this start of the firmware.
    pub connected_epochs: HashMap<(u64, u16), u16>,
    /// Epochs of each endpoint since the persistent memory was last lost.
    pub epochs: HashMap<u16, u16>,
}

fn words<const N: usize>(data: &[u64]) -> [u64; N] {
    std::array::from_fn(|k| data.get(k).copied().unwrap_or(0))
}

/// Whether a pair can go by such times.
fn check_times(setup: &PairSetup) {
    let log2 = TIMEOUT_LOG2_LEAST..=TIMEOUT_LOG2_MOST;
    promise!(log2.contains(&setup.timeout_log2));
    promise!(setup.retry_limit <= RETRY_LIMIT_MOST);
    promise!(setup.acknowledge_credits <= setup.local_credits);
}

fn is_later(epoch: u16, than: u16) -> bool {
    (epoch.wrapping_sub(than) as i16) > 0
}

impl Gates {
    pub fn new(seed: u64, mac: u64) -> Self {
        Self::of(sizes(8, 64, 4), seed, mac)
    }

    pub fn of(sizes: CardSizes, seed: u64, mac: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut model = Managed::new(sizes, Pieces::default(), mac, seed);
        rng.fill(&mut model.persistent[..]);
        Self {
            model,
            rng,
            now: 0,
            endpoints: HashMap::new(),
            stopped: Vec::new(),
            pairs: BTreeMap::new(),
            regions: HashMap::new(),
            rules: HashMap::new(),
            grants: HashMap::new(),
            permissions: HashMap::new(),
            mint_key: None,
            generations: HashMap::new(),
            stuck: false,
            log: Vec::new(),
            raised: Vec::new(),
            fences: Vec::new(),
            report: AccessReport::default(),
            forgets: 0,
            forgets_late: false,
            doubted: HashSet::new(),
            told: VecDeque::new(),
            loses_events: false,
            events_lost: 0,
            holds_events: false,
            flood: false,
            outbox: Vec::new(),
            out_until: 0,
            under_way: None,
            started_at: 0,
            done_at: 0,
            result: 0,
            resetting_until: None,
            delay: 0,
            patience: usize::MAX,
            silent_until: 0,
            busy: 0,
            transitions: HashSet::new(),
            peer_transitions: HashSet::new(),
            cookies: HashSet::new(),
            connected_epochs: HashMap::new(),
            epochs: HashMap::new(),
        }
    }

    /// Envelopes that all connected peers together may own here.
    fn granted(&self) -> u32 {
        let held = self.pairs.values();
        // A pair has whole units of places.
        let places = |credits: u8| place_units(credits.into()) * UNIT_PLACES;
        held.map(|pair| u32::from(places(pair.setup.local_credits)))
            .sum()
    }

    fn clear(&mut self) {
        self.endpoints.clear();
        self.stopped.clear();
        self.pairs.clear();
        self.regions.clear();
        self.rules.clear();
        self.grants.clear();
        self.permissions.clear();
        self.mint_key = None;
        self.generations.clear();
        self.connected_epochs.clear();
        self.under_way = None;
        self.model.reset();
    }

    /// Lets the gates do what there is to do, and takes what they send.
    fn run(&mut self) {
        let gates = &mut self.model.gates;
        gates.run(&mut InTurn::default());
        let frames = std::iter::from_fn(|| gates.frame_out());
        self.outbox.extend(frames.map(Wire::of));
    }

    /// The gates fail a pair.
    pub fn fail(&mut self, index: u16, status: u64) {
        self.model
            .gates
            .control(Operation::PairFail, index, &[status]);
        self.run();
    }

    pub fn is_failed(&self, index: u16) -> bool {
        let report = self.model.gates.sends().report(index);
        report.state == PairState::Failed.code()
    }

    /// Something comes from the wire.
    pub fn take_in(&mut self, wire: &Wire) {
        self.model.gates.frame_in(wire.bytes());
        self.run();
    }

    fn carry_out(&mut self, operation: Operation, index: u16, data: &[u64]) -> u64 {
        self.log.push((operation, index));
        self.check(operation, index, data);
        let result = self.model.gates.control(operation, index, data);
        if operation == Operation::GrantMint && result != 0 {
            let grant = GrantSetup::from_words(&words(data));
            let generation = self.generation(grant.holder);
            let row = remote_key_index(result);
            promise!(
                u32::from(row) >= Card::sizes(self).grants,
                "a row of the firmware's"
            );
            // What had the row before has ended with its access.
            self.grants.insert(row, (grant, generation));
        }
        self.run();
        let busy = self.pairs.get(&index).is_some_and(|pair| {
            let ended = (self.now.wrapping_sub(pair.busy_until) as i32) >= 0;
            !ended && !self.is_failed(index)
        });
        match operation {
            Operation::PairRead if busy => {
                let report = PairReport {
                    unacknowledged: 3,
                    waiting: 1,
                    refused: 0x20_0002,
                    ..PairReport::from_words(&[result])
                };
                report.to_words()[0]
            }
            _ => result,
        }
    }

    fn generation(&self, pair: u16) -> u32 {
        self.generations.get(&pair).copied().unwrap_or(0)
    }

    /// The peer of a pair gets its next generation: nothing of the one before the last is left.
    fn renew(&mut self, pair: u16) {
        let of_pair = |(grant, generation): &(GrantSetup, u32)| {
            let own = grant.flags & GRANT_SHARED == 0 && grant.holder == pair;
            own.then_some(*generation)
        };
        let permissions = self.permissions.iter();
        let permissions = permissions.filter(|(key, _)| key.1 == pair);
        let held = self.grants.values().filter_map(of_pair);
        let mut held = held.chain(permissions.map(|(_, generation)| *generation));
        let now = self.generation(pair);
        promise!(
            held.all(|generation| generation == now),
            "a grant of an earlier generation is left"
        );
        self.generations.insert(pair, now + 1);
    }

    /// Whether a grant can be right.
    fn check_grant(&self, grant: &GrantSetup) {
        let region = self.regions[&grant.region];
        promise_eq!(grant.region_tag, region.tag);
        promise!(grant.rights != 0 && grant.rights & !region.rights == 0);
        promise!(grant.length > 0 && grant.offset + grant.length <= region.length);
        if grant.flags & GRANT_SHARED != 0 {
            let grants = Card::sizes(self).grants;
            promise!(u32::from(grant.holder) < shared_grants(grants));
            let permitted = self.permissions.keys().any(|key| key.0 == grant.holder);
            promise!(!permitted, "a permission of an earlier grant");
        } else if grant.flags & GRANT_ANY_PEER == 0 {
            promise_eq!(self.pairs[&grant.holder].setup.domain, region.domain);
        }
    }

    /// Whether a request can be right.
    fn check(&mut self, operation: Operation, index: u16, data: &[u64]) {
        let sizes = Card::sizes(self);
        let endpoint_exists = |index: u16| promise!(u32::from(index) < sizes.endpoints);
        let pair_exists = |index: u16| promise!(u32::from(index) < sizes.pairs);
        match operation {
            Operation::CardSet => promise_eq!(CardSetup::from_words(&words(data)).mac, self.mac()),
            Operation::MatchSet => {
                let setup = MatchSetup::from_words(&words(data));
                promise!(setup.seed_low != setup.seed_high, "a random seed");
            }
            Operation::RingSet => {
                let ring = RingSetup::from_words(&words(data));
                endpoint_exists(index >> RING_BITS);
                promise!(
                    !self.endpoints.contains_key(&(index >> RING_BITS)),
                    "ring of a live endpoint"
                );
                promise!((MIN_RING_LOG2..=MAX_RING_LOG2).contains(&ring.log2));
                let entry_bytes = match index & ((1 << RING_BITS) - 1) {
                    RING_EVENT => EVENT_BYTES,
                    RING_COMPLETION => COMPLETION_BYTES,
                    _ => REQUEST_BYTES,
                };
                let bytes = ring_bytes(ring.log2, entry_bytes);
                promise!(ring.base.is_multiple_of(bytes.into()));
                promise_eq!(ring.space, FLAT_SPACE);
            }
            Operation::EndpointSet => {
                endpoint_exists(index);
                let setup = EndpointSetup::from_words(&words(data));
                promise!(self.endpoints.insert(index, setup).is_none());
                if let Some(last) = self.epochs.insert(index, setup.epoch) {
                    promise!(
                        is_later(setup.epoch, last),
                        "epoch {} after {last}",
                        setup.epoch
                    );
                }
            }
            Operation::EndpointStop => {
                endpoint_exists(index);
                self.stopped.push(index);
            }
            Operation::EndpointFlush => {
                promise!(self.stopped.contains(&index));
                self.rules
                    .retain(|_, rule| u16::from(rule.endpoint) != index);
            }
            Operation::EndpointClear => {
                let doubted = self.doubted.contains(&(operation, index));
                promise!(self.stopped.contains(&index) || doubted);
                let left = self
                    .pairs
                    .values()
                    .filter(|pair| u16::from(pair.setup.endpoint) == index);
                promise_eq!(left.count(), 0, "pairs outlive their endpoint");
                self.stopped.retain(|&stopped| stopped != index);
                self.endpoints.remove(&index);
            }
            Operation::PairSet => {
                pair_exists(index);
                let setup = PairSetup::from_words(&words(data));
                let endpoint = self.endpoints[&u16::from(setup.endpoint)];
                promise_eq!(setup.domain, endpoint.domain);
                promise!(!is_later(endpoint.epoch, setup.epoch) && setup.epoch != 0);
                let last = self.epochs.entry(setup.endpoint.into()).or_default();
                if is_later(setup.epoch, *last) {
                    *last = setup.epoch;
                }
                promise!(setup.slots.is_multiple_of(SLOTS_ALIGN));
                promise_eq!(setup.space, FLAT_SPACE);
                check_times(&setup);
                promise!((1..=16).contains(&setup.local_credits));
                promise!((1..=16).contains(&setup.remote_credits));
                let run = |setup: &PairSetup| {
                    let first = usize::from(setup.sends_first);
                    first..first + (1 << setup.sends_log2)
                };
                let own = run(&setup);
                promise!((2..=64).contains(&own.len()) && own.start.is_multiple_of(own.len()));
                promise!(own.end <= sizes.descriptors as usize);
                let mut others = self.pairs.values().map(|pair| run(&pair.setup));
                promise!(
                    others.all(|other| other.end <= own.start || own.end <= other.start),
                    "two pairs have one descriptor"
                );
                let peer = (setup.remote_mac, setup.remote_endpoint);
                if let Some(&last) = self.connected_epochs.get(&peer) {
                    promise!(!is_later(last, setup.remote_epoch), "stale epoch of a peer");
                }
                let held = Held {
                    setup,
                    failed_with: None,
                    busy_until: self.now.wrapping_add(self.busy),
                };
                self.cookies.insert(setup.cookie);
                promise!(self.pairs.insert(index, held).is_none(), "pair set twice");
                self.renew(index);
                promise!(
                    self.granted() <= sizes.unexpected,
                    "unexpected list oversubscribed"
                );
            }
            Operation::PairTimes => {
                pair_exists(index);
                let setup = PairSetup::from_words(&words(data));
                check_times(&setup);
                if let Some(held) = self.pairs.get_mut(&index) {
                    promise!(setup.acknowledge_credits <= held.setup.local_credits);
                    held.setup = PairSetup {
                        timeout_log2: setup.timeout_log2,
                        retry_limit: setup.retry_limit,
                        acknowledge_delay: setup.acknowledge_delay,
                        acknowledge_credits: setup.acknowledge_credits,
                        ..held.setup
                    };
                }
            }
            Operation::PairFail => {
                let held = self.pairs.get_mut(&index);
                promise!(held.is_some(), "a pair to fail");
                held.into_iter()
                    .for_each(|held| held.failed_with = Some(data[0]));
            }
            Operation::PairClear => {
                promise!(self.is_failed(index), "cleared while alive");
                promise!(self.pairs.remove(&index).is_some(), "a pair to clear");
            }
            Operation::RegionSet => {
                promise!(u32::from(index) < sizes.regions);
                let region = RegionSetup::from_words(&words(data));
                promise!(region.length > 0 && region.base.checked_add(region.length).is_some());
                promise_eq!(region.space, FLAT_SPACE);
                promise!(
                    self.regions.insert(index, region).is_none(),
                    "region set twice"
                );
            }
            Operation::RegionClear => {
                let doubted = self.doubted.contains(&(operation, index));
                promise!(self.regions.remove(&index).is_some() || doubted);
            }
            Operation::RuleSet => {
                promise!(u32::from(index) < sizes.rules);
                let rule = RuleSetup::from_words(&words(data));
                let endpoint = rule.endpoint;
                promise!(self.endpoints.contains_key(&endpoint.into()));
                let strangers = self.pairs.iter().filter(|(index, pair)| {
                    rule.pairs() >> **index & 1 == 1 && pair.setup.endpoint != endpoint
                });
                promise_eq!(strangers.count(), 0, "pairs of other endpoints in a group");
                promise!(self.rules.insert(index, rule).is_none(), "rule set twice");
            }
            Operation::RuleClear => {
                let doubted = self.doubted.contains(&(operation, index));
                promise!(self.rules.remove(&index).is_some() || doubted);
            }
            Operation::Fence => self.fences.push(FenceSetup::from_words(&words(data))),
            Operation::PairRead | Operation::CounterRead | Operation::PairCounterRead => {}
            Operation::ShutOutSet | Operation::ShutOutRead => {
                promise!(self.pairs.contains_key(&index), "of no pair");
            }
            Operation::MintSet => {
                self.mint_key = Some(MintSetup::from_words(&words(data)));
            }
            // Its row isn't known yet.
            Operation::GrantMint => {
                let grant = GrantSetup::from_words(&words(data));
                promise!(
                    grant.flags & GRANT_ONE_SHOT != 0,
                    "others are the firmware's"
                );
                promise!(self.mint_key.is_some(), "the gates have no key");
                self.check_grant(&grant);
            }
            Operation::GrantSet => {
                promise!(u32::from(index) < sizes.grants);
                let grant = GrantSetup::from_words(&words(data));
                promise!(grant.flags & GRANT_ONE_SHOT == 0, "the gates make these");
                self.check_grant(&grant);
                let generation = self.generation(grant.holder);
                let before = self.grants.insert(index, (grant, generation));
                promise!(before.is_none(), "grant set twice");
            }
            Operation::GrantClear => {
                let doubted = self.doubted.contains(&(operation, index));
                let grant = self.grants.remove(&index);
                promise!(grant.is_some() || doubted);
                if let Some((grant, _)) = grant {
                    let holder = match grant.flags & (GRANT_SHARED | GRANT_ANY_PEER) {
                        0 => Some(grant.holder),
                        _ => None,
                    };
                    let fence = FenceSetup::from_words(&words(data));
                    let covered = FenceSetup {
                        covers: COVER_REGION | holder.map_or(0, |_| COVER_PAIR),
                        region: grant.region,
                        pair: holder.unwrap_or(0),
                        ..FenceSetup::default()
                    };
                    promise_eq!(fence, covered, "what a grant allows is waited for");
                }
            }
            Operation::PermissionSet => {
                let setup = PermissionSetup::from_words(&words(data));
                promise!(u32::from(setup.shared) < shared_grants(sizes.grants));
                pair_exists(index);
                let key = (setup.shared, index);
                match setup.allowed {
                    0 => self.permissions.remove(&key),
                    _ => self.permissions.insert(key, self.generation(index)),
                };
            }
            Operation::SenderRevoke => self.renew(index),
            Operation::EventRaise => {
                let event = EventSetup::from_words(&words(data));
                endpoint_exists(index);
                promise!(self.endpoints.contains_key(&index), "event of no endpoint");
                self.raised
                    .push((index, event.cause, event.pair, event.info));
            }
        }
    }
}

impl Card for Gates {
    fn control_start(&mut self, operation: Operation, index: u16, data: &[u64]) {
        promise!(data.len() <= DATA_WORDS);
        promise!(self.under_way.is_none(), "two requests at a time");
        promise!(self.resetting_until.is_none(), "a request in the reset");
        self.under_way = Some((operation, index, words(data)));
        let delay = match self.delay {
            0 => 0,
            most => self.rng.random_range(0..most),
        };
        self.started_at = self.now;
        self.done_at = self.now.wrapping_add(delay);
    }

    fn control_result(&mut self) -> Option<u64> {
        let Some((operation, index, data)) = self.under_way else {
            return Some(self.result);
        };
        let reached = |time: u32| (self.now.wrapping_sub(time) as i32) >= 0;
        if self.patience == 0 || !reached(self.done_at) || !reached(self.silent_until) {
            return None;
        }
        self.patience -= 1;
        self.under_way = None;
        let late = self.now.wrapping_sub(self.started_at) >= CONTROL_TIMEOUT;
        let forgets_late = late && self.forgets_late && self.rng.random_ratio(1, 2);
        self.result = match self.forgets > 0 || forgets_late {
            true => 0,
            false => self.carry_out(operation, index, &data),
        };
        self.forgets = self.forgets.saturating_sub(1);
        let may_find_nothing = match operation {
            Operation::RegionSet | Operation::RegionClear => Operation::RegionClear,
            Operation::RuleSet | Operation::RuleClear => Operation::RuleClear,
            Operation::GrantSet | Operation::GrantClear => Operation::GrantClear,
            _ => operation,
        };
        match late {
            true => self.doubted.insert((may_find_nothing, index)),
            false => self.doubted.remove(&(may_find_nothing, index)),
        };
        Some(self.result)
    }

    fn control_report(&mut self) -> AccessReport {
        match self.under_way {
            Some(_) => self.report,
            None => AccessReport::default(),
        }
    }

    fn reset_start(&mut self) {
        self.clear();
        self.resetting_until = Some(self.now.wrapping_add(self.delay));
    }

    fn reset_done(&mut self) -> bool {
        self.resetting_until
            .take_if(|until| (self.now.wrapping_sub(*until) as i32) >= 0);
        self.resetting_until.is_none()
    }

    fn frame_out_is_free(&mut self) -> bool {
        (self.now.wrapping_sub(self.out_until) as i32) >= 0
    }

    fn frame_send(&mut self, frame: &FrameWords) {
        promise!(self.frame_out_is_free());
        self.out_until = self.now.wrapping_add(self.delay / 4);
        self.model.frame_send(frame);
        self.run();
    }

    fn frame_take(&mut self) -> Option<FrameWords> {
        self.model.frame_take()
    }

    fn frames_lost(&mut self) -> u32 {
        self.model.frames_lost()
    }

    fn event_take(&mut self) -> Option<GateEvent> {
        if self.holds_events {
            return None;
        }
        let Some(event) = self.model.event_take() else {
            let stopped = self.flood.then_some(GateEvent::Other {
                cause: EventCause::RingError.code(),
                pair: NO_PAIR,
            });
            return self.told.pop_front().or(stopped);
        };
        if let GateEvent::PairFailed {
            endpoint,
            pair,
            cause,
            ..
        } = event
        {
            self.raised.push((endpoint.into(), cause.code(), pair, 0));
        }
        Some(event)
    }

    fn events_lost(&mut self) -> u32 {
        if self.loses_events {
            let lost = std::iter::from_fn(|| self.model.event_take()).count();
            self.events_lost += lost as u32;
        }
        self.model.events_lost() + self.events_lost
    }

    fn now(&self) -> u32 {
        self.now
    }

    fn random(&mut self) -> u32 {
        match self.stuck {
            true => 7,
            false => self.rng.random(),
        }
    }

    fn mac(&self) -> u64 {
        self.model.mac()
    }

    fn sizes(&self) -> Sizes {
        self.model.sizes()
    }

    fn persistent(&self, word: usize) -> u32 {
        self.model.persistent(word)
    }

    fn set_persistent(&mut self, word: usize, value: u32) {
        self.model.set_persistent(word, value);
    }

    fn transition(&mut self, from: State, cause: Cause, to: State) {
        self.transitions.insert((from, cause, to));
    }

    fn peer_transition(&mut self, from: PeerState, cause: PeerCause, to: PeerState) {
        self.peer_transitions.insert((from, cause, to));
    }

    fn is_broken(&self, promise: Break) -> bool {
        breaks::is_broken(promise)
    }
}

pub type Unit = Firmware<Gates>;
pub type Refusal = (MailboxStatus, u32);

/// Lets the firmware do all that it can at this cycle.
pub fn settle(fw: &mut Unit) {
    for _ in 0..100_000 {
        if !fw.step() {
            return;
        }
    }
    panic!("it never comes to rest");
}

/// Lets the firmware start over gates, which may have held something before.
pub fn boot(gates: Gates, build_id: u64) -> Unit {
    let mut fw = Firmware::new(gates, build_id);
    settle(&mut fw);
    fw
}

/// Lets time pass until nothing happens any more, or `cycles` have passed.
pub fn pass(fw: &mut Unit, cycles: u32) {
    let end = fw.card().now.wrapping_add(cycles);
    loop {
        settle(fw);
        let now = fw.card().now;
        let next = fw
            .next_deadline()
            .filter(|&next| (end.wrapping_sub(next) as i32) > 0);
        let next = next.map_or(end, |next| match (next.wrapping_sub(now) as i32) > 0 {
            true => next,
            false => now + 1,
        });
        fw.card().now = next;
        if next == end {
            return settle(fw);
        }
    }
}

/// Gives a command, without waiting for its answer.
pub fn give<A: Words>(fw: &mut Unit, command: abi::mailbox::Command, argument: A) {
    let mut words = [0; MAILBOX_WORDS];
    words[0] = u32::from(command.code());
    argument.to_words(&mut words[1..]);
    fw.command(&words);
}

/// The answer to the command under way, if it is there.
pub fn answer<R: Words>(fw: &mut Unit) -> Option<Result<R, Refusal>> {
    let answer = fw.take_answer()?;
    assert_eq!(answer.words[0], u32::from(answer.status.code()));
    Some(match answer.status {
        MailboxStatus::Ok => {
            assert_eq!(answer.count, 1 + R::COUNT);
            Ok(R::from_words(&answer.words[1..]))
        }
        status => Err((status, answer.words[1])),
    })
}

/// Runs a command to its answer, which comes at the latest when the gates are given up.
pub fn call<A: Words, R: Words>(
    fw: &mut Unit,
    command: abi::mailbox::Command,
    argument: A,
) -> Result<R, Refusal> {
    give(fw, command, argument);
    for _ in 0..1000 {
        settle(fw);
        if let Some(answer) = answer(fw) {
            return answer;
        }
        fw.card().now += 1 << 12;
    }
    promise!(false, "{command} is answered");
    unreachable!()
}
