//! Gates that keep what they are told, panic if it can't be right, and answer when the test lets them.

use abi::control::{
    CardSetup, DATA_WORDS, EndpointSetup, EventSetup, MatchSetup, Operation, PairReport, PairSetup,
    RING_BITS, RING_EVENT, RegionSetup, RingSetup,
};
use abi::event::{Cause as EventCause, NO_PAIR};
use abi::limits::{MAX_RING_LOG2, MIN_RING_LOG2, RING_ALIGN};
use abi::mailbox::{PairState, Words};
use abi::mgmt::{EVENTS_IN, FRAMES_IN, PERSISTENT_BYTES};
use abi::register::MAILBOX_WORDS;
use abi::status::{MailboxStatus, Status};
use firmware_core::connection::{Cause, State};
use firmware_core::{Break, Card, Firmware, FrameWords, GateEvent, Sizes};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

pub const SIZES: Sizes = Sizes {
    endpoints: 2,
    pairs: 8,
    posted: 16,
    unexpected: 20,
    regions: 4,
};

pub type Persistent = [u32; PERSISTENT_BYTES as usize / 4];

/// What leaves the gates for another card.
#[derive(Clone, Debug)]
pub enum Wire {
    Firmware(FrameWords),
    /// The gates of `from` have failed a pair and tell those of the peer.
    PairFailed(PairSetup),
}

/// A pair that the gates hold.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    pub setup: PairSetup,
    pub failed: Option<u64>,
    /// Sends that are not acknowledged: none from some cycle on.
    pub busy_until: u32,
}

pub struct Gates {
    pub rng: ChaCha8Rng,
    pub mac: u64,
    pub sizes: Sizes,
    pub now: u32,
    pub endpoints: HashMap<u16, EndpointSetup>,
    stopped: Vec<u16>,
    pub pairs: BTreeMap<u16, Held>,
    pub regions: HashMap<u16, RegionSetup>,
    pub log: Vec<(Operation, u16)>,
    /// Events for the host: endpoint, cause, pair, info.
    pub raised: Vec<(u16, u8, u16, u64)>,
    pub inbox: VecDeque<FrameWords>,
    frames_lost: u32,
    pub events: VecDeque<GateEvent>,
    pub events_lost: u32,
    /// A process rings its doorbells with nonsense, faster than anybody takes the events of it.
    pub flood: bool,
    pub outbox: Vec<Wire>,
    /// The out buffer is full until this cycle.
    out_until: u32,
    pub persistent: Persistent,
    under_way: Option<(Operation, u16, [u64; DATA_WORDS])>,
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
    /// Cookies of all pairs that were ever set.
    pub cookies: HashSet<u32>,
    /// Last epoch of each peer that a pair was connected with, since this start of the firmware.
    pub connected_epochs: HashMap<(u64, u16), u16>,
    /// Epochs of each endpoint since the persistent memory was last lost.
    pub epochs: HashMap<u16, u16>,
    pub broken: Option<Break>,
}

fn words<const N: usize>(data: &[u64]) -> [u64; N] {
    std::array::from_fn(|k| data.get(k).copied().unwrap_or(0))
}

fn is_later(epoch: u16, than: u16) -> bool {
    (epoch.wrapping_sub(than) as i16) > 0
}

impl Gates {
    pub fn new(seed: u64, mac: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut persistent = [0; PERSISTENT_BYTES as usize / 4];
        rng.fill(&mut persistent[..]);
        Self {
            rng,
            mac,
            sizes: SIZES,
            now: 0,
            endpoints: HashMap::new(),
            stopped: Vec::new(),
            pairs: BTreeMap::new(),
            regions: HashMap::new(),
            log: Vec::new(),
            raised: Vec::new(),
            inbox: VecDeque::new(),
            frames_lost: 0,
            events: VecDeque::new(),
            events_lost: 0,
            flood: false,
            outbox: Vec::new(),
            out_until: 0,
            persistent,
            under_way: None,
            done_at: 0,
            result: 0,
            resetting_until: None,
            delay: 0,
            patience: usize::MAX,
            silent_until: 0,
            busy: 0,
            transitions: HashSet::new(),
            cookies: HashSet::new(),
            connected_epochs: HashMap::new(),
            epochs: HashMap::new(),
            broken: None,
        }
    }

    /// Envelopes that all connected peers together may own here.
    fn granted(&self) -> u32 {
        let held = self.pairs.values();
        held.map(|pair| u32::from(pair.setup.local_credits)).sum()
    }

    fn clear(&mut self) {
        self.endpoints.clear();
        self.stopped.clear();
        self.pairs.clear();
        self.regions.clear();
        self.connected_epochs.clear();
        self.under_way = None;
        self.inbox.clear();
    }

    /// Another card's gates have failed their end of a pair.
    pub fn peer_failed(&mut self, theirs: &PairSetup, from: u64) {
        let index = theirs.remote_pair;
        let agrees = |held: &&Held| {
            let ours = &held.setup;
            ours.cookie == theirs.cookie
                && ours.remote_mac == from
                && ours.epoch == theirs.remote_epoch
                && ours.remote_epoch == theirs.epoch
        };
        if self.pairs.get(&index).filter(agrees).is_some() {
            self.fail(index, u64::from(Status::LinkError.code()));
        }
    }

    /// Fails a pair, once.
    pub fn fail(&mut self, index: u16, status: u64) {
        let held = self.pairs.get_mut(&index).expect("a pair");
        if held.failed.is_some() {
            return;
        }
        held.failed = Some(status);
        let setup = held.setup;
        if status != u64::from(Status::PeerClosed.code()) {
            self.outbox.push(Wire::PairFailed(setup));
        }
        if status == u64::from(Status::LinkError.code()) {
            let cause = EventCause::LinkError.code();
            self.raised
                .push((setup.endpoint.into(), cause, index, status));
            self.events.push_back(GateEvent {
                cause,
                endpoint: setup.endpoint,
                pair: index,
                info: status,
            });
            if self.events.len() > EVENTS_IN {
                self.events.pop_back();
                self.events_lost += 1;
            }
        }
    }

    pub fn take_in(&mut self, frame: FrameWords) {
        if self.inbox.len() == FRAMES_IN {
            self.frames_lost += 1;
        } else {
            self.inbox.push_back(frame);
        }
    }

    fn carry_out(&mut self, operation: Operation, index: u16, data: &[u64]) -> u64 {
        self.log.push((operation, index));
        let sizes = self.sizes;
        let endpoint_exists = |index: u16| assert!(u32::from(index) < sizes.endpoints);
        let pair_exists = |index: u16| assert!(u32::from(index) < sizes.pairs);
        match operation {
            Operation::CardSet => assert_eq!(CardSetup::from_words(&words(data)).mac, self.mac),
            Operation::MatchSet => {
                let setup = MatchSetup::from_words(&words(data));
                assert_ne!(setup.seed_low, setup.seed_high, "a random seed");
            }
            Operation::RingSet => {
                let ring = RingSetup::from_words(&words(data));
                endpoint_exists(index >> RING_BITS);
                assert!(
                    !self.endpoints.contains_key(&(index >> RING_BITS)),
                    "ring of a live endpoint"
                );
                assert!((MIN_RING_LOG2..=MAX_RING_LOG2).contains(&ring.log2));
                assert!(ring.base.is_multiple_of(RING_ALIGN));
                assert!(
                    ring.base.checked_add(64 << ring.log2).is_some()
                        || index & ((1 << RING_BITS) - 1) == RING_EVENT
                );
            }
            Operation::EndpointSet => {
                endpoint_exists(index);
                let setup = EndpointSetup::from_words(&words(data));
                assert!(self.endpoints.insert(index, setup).is_none());
                if let Some(last) = self.epochs.insert(index, setup.epoch) {
                    assert!(
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
            Operation::EndpointFlush => assert!(self.stopped.contains(&index)),
            Operation::EndpointClear => {
                assert!(self.stopped.contains(&index));
                let left = self
                    .pairs
                    .values()
                    .filter(|pair| u16::from(pair.setup.endpoint) == index);
                assert_eq!(left.count(), 0, "pairs outlive their endpoint");
                self.stopped.retain(|&stopped| stopped != index);
                self.endpoints.remove(&index);
            }
            Operation::PairSet => {
                pair_exists(index);
                let setup = PairSetup::from_words(&words(data));
                let endpoint = self.endpoints[&u16::from(setup.endpoint)];
                assert_eq!(setup.domain, endpoint.domain);
                assert!(!is_later(endpoint.epoch, setup.epoch) && setup.epoch != 0);
                let last = self.epochs.entry(setup.endpoint.into()).or_default();
                if is_later(setup.epoch, *last) {
                    *last = setup.epoch;
                }
                assert!(setup.slots.is_multiple_of(RING_ALIGN));
                assert!((1..=16).contains(&setup.local_credits));
                assert!((1..=16).contains(&setup.remote_credits));
                let peer = (setup.remote_mac, setup.remote_endpoint);
                if let Some(&last) = self.connected_epochs.get(&peer) {
                    assert!(!is_later(last, setup.remote_epoch), "stale epoch of a peer");
                }
                let held = Held {
                    setup,
                    failed: None,
                    busy_until: self.now.wrapping_add(self.busy),
                };
                self.cookies.insert(setup.cookie);
                assert!(self.pairs.insert(index, held).is_none(), "pair set twice");
                assert!(
                    self.granted() <= self.sizes.unexpected,
                    "unexpected list oversubscribed"
                );
            }
            Operation::PairFail => self.fail(index, data[0]),
            Operation::PairClear => {
                let held = self.pairs.remove(&index).expect("a pair to clear");
                assert!(held.failed.is_some(), "cleared while alive");
            }
            Operation::PairRead => {
                let Some(pair) = self.pairs.get(&index) else {
                    return 0;
                };
                let (state, outstanding) = match pair.failed {
                    Some(_) => (PairState::Failed, 0),
                    None if (self.now.wrapping_sub(pair.busy_until) as i32) < 0 => {
                        (PairState::Connected, 3)
                    }
                    None => (PairState::Connected, 0),
                };
                let report = PairReport {
                    state: state.code(),
                    available: pair.setup.remote_credits,
                    unacknowledged: outstanding,
                    waiting: outstanding / 2,
                    refused: 0x8000_0002,
                };
                return report.to_words()[0];
            }
            Operation::RegionSet => {
                assert!(u32::from(index) < self.sizes.regions);
                let region = RegionSetup::from_words(&words(data));
                assert!(region.length > 0 && region.base.checked_add(region.length).is_some());
                assert!(
                    self.regions.insert(index, region).is_none(),
                    "region set twice"
                );
            }
            Operation::RegionClear => assert!(self.regions.remove(&index).is_some()),
            Operation::CounterRead => return 1000 + u64::from(index),
            Operation::EventRaise => {
                let event = EventSetup::from_words(&words(data));
                endpoint_exists(index);
                assert!(self.endpoints.contains_key(&index), "event of no endpoint");
                self.raised
                    .push((index, event.cause, event.pair, event.info));
            }
        }
        0
    }
}

impl Card for Gates {
    fn control_start(&mut self, operation: Operation, index: u16, data: &[u64]) {
        assert!(data.len() <= DATA_WORDS);
        assert!(self.under_way.is_none(), "two requests at a time");
        assert!(self.resetting_until.is_none(), "a request in the reset");
        self.under_way = Some((operation, index, words(data)));
        let delay = match self.delay {
            0 => 0,
            most => self.rng.random_range(0..most),
        };
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
        self.result = self.carry_out(operation, index, &data);
        Some(self.result)
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
        assert!(self.frame_out_is_free());
        self.out_until = self.now.wrapping_add(self.delay / 4);
        self.outbox.push(Wire::Firmware(*frame));
    }

    fn frame_take(&mut self) -> Option<FrameWords> {
        self.inbox.pop_front()
    }

    fn frames_lost(&mut self) -> u32 {
        self.frames_lost
    }

    fn event_take(&mut self) -> Option<GateEvent> {
        let nonsense = self.flood.then_some(GateEvent {
            cause: EventCause::IndexError.code(),
            endpoint: 0,
            pair: NO_PAIR,
            info: 0,
        });
        self.events.pop_front().or(nonsense)
    }

    fn events_lost(&mut self) -> u32 {
        self.events_lost
    }

    fn now(&self) -> u32 {
        self.now
    }

    fn random(&mut self) -> u32 {
        self.rng.random()
    }

    fn mac(&self) -> u64 {
        self.mac
    }

    fn sizes(&self) -> Sizes {
        self.sizes
    }

    fn persistent(&self, word: usize) -> u32 {
        self.persistent[word]
    }

    fn set_persistent(&mut self, word: usize, value: u32) {
        self.persistent[word] = value;
    }

    fn transition(&mut self, from: State, cause: Cause, to: State) {
        self.transitions.insert((from, cause, to));
    }

    fn is_broken(&self, promise: Break) -> bool {
        self.broken == Some(promise)
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
    panic!("{command} is never answered");
}
