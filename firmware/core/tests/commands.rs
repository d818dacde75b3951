//! The firmware's decisions against gates that check every control request they get.

use abi::control::{
    CardSetup, Counter, EndpointSetup, MatchSetup, Operation, PairReport, PairSetup, RING_BITS,
    RING_EVENT, RegionSetup, RingSetup,
};
use abi::limits::{EAGER_MAX, MAX_RING_LOG2, MIN_RING_LOG2, RING_ALIGN};
use abi::mailbox::{
    CloseEndpoint, Command, ConnectPair, CounterId, CounterValue, DomainId, EndpointId, Identity,
    Nothing, OpenEndpoint, OpenPair, Pair, PairId, PairState, PairStatus, RegionKey,
    RegisterRegion, Words,
};
use abi::register::MAILBOX_WORDS;
use abi::status::{MailboxStatus, Status};
use firmware_core::{Card, ControlTimeout, Firmware, Sizes};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::HashMap;

const MAC: u64 = 0x0605_0403_0202;
const BUILD_ID: u64 = 0x1122_3344_5566_7788;
const SIZES: Sizes = Sizes {
    endpoints: 2,
    pairs: 8,
    posted: 16,
    unexpected: 20,
    regions: 4,
};

/// Gates that keep what they are told and panic if it can't be right.
struct Gates {
    rng: ChaCha8Rng,
    endpoints: HashMap<u16, EndpointSetup>,
    stopped: Vec<u16>,
    pairs: HashMap<u16, PairSetup>,
    failed: HashMap<u16, u64>,
    regions: HashMap<u16, RegionSetup>,
    log: Vec<(Operation, u16)>,
    /// Control requests that are still answered.
    patience: usize,
}

impl Gates {
    fn new(seed: u64) -> Self {
        Self {
            rng: ChaCha8Rng::seed_from_u64(seed),
            endpoints: HashMap::new(),
            stopped: Vec::new(),
            pairs: HashMap::new(),
            failed: HashMap::new(),
            regions: HashMap::new(),
            log: Vec::new(),
            patience: usize::MAX,
        }
    }

    /// Envelopes that all connected peers together may own here.
    fn granted(&self) -> u32 {
        self.pairs
            .values()
            .map(|pair| u32::from(pair.local_credits))
            .sum()
    }
}

fn words<const N: usize>(data: &[u64]) -> [u64; N] {
    std::array::from_fn(|k| data.get(k).copied().unwrap_or(0))
}

impl Card for Gates {
    fn control(
        &mut self,
        operation: Operation,
        index: u16,
        data: &[u64],
    ) -> Result<u64, ControlTimeout> {
        self.patience = self.patience.checked_sub(1).ok_or(ControlTimeout)?;
        self.log.push((operation, index));
        assert!(data.len() <= abi::control::DATA_WORDS);
        let endpoint_exists = |index: u16| assert!(u32::from(index) < SIZES.endpoints);
        let pair_exists = |index: u16| assert!(u32::from(index) < SIZES.pairs);
        match operation {
            Operation::CardSet => assert_eq!(CardSetup::from_words(&words(data)).mac, MAC),
            Operation::EventRaise => endpoint_exists(index),
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
                    .filter(|pair| u16::from(pair.endpoint) == index);
                assert_eq!(left.count(), 0, "pairs outlive their endpoint");
                self.stopped.retain(|&stopped| stopped != index);
                self.endpoints.remove(&index);
            }
            Operation::PairSet => {
                pair_exists(index);
                let pair = PairSetup::from_words(&words(data));
                let endpoint = self.endpoints[&u16::from(pair.endpoint)];
                assert_eq!((pair.domain, pair.epoch), (endpoint.domain, endpoint.epoch));
                assert!(pair.slots.is_multiple_of(RING_ALIGN));
                assert!((1..=16).contains(&pair.local_credits));
                assert!((1..=16).contains(&pair.remote_credits));
                assert!(self.pairs.insert(index, pair).is_none(), "pair set twice");
                assert!(
                    self.granted() <= SIZES.unexpected,
                    "unexpected list oversubscribed"
                );
            }
            Operation::PairFail => {
                assert!(self.pairs.contains_key(&index));
                self.failed.entry(index).or_insert(data[0]);
            }
            Operation::PairClear => {
                assert!(self.failed.remove(&index).is_some(), "cleared while alive");
                assert!(self.pairs.remove(&index).is_some());
            }
            Operation::PairRead => {
                let pair = self.pairs[&index];
                let failed = self.failed.contains_key(&index);
                let state = if failed {
                    PairState::Failed
                } else {
                    PairState::Connected
                };
                let report = PairReport {
                    state: state.code(),
                    available: pair.remote_credits,
                    unacknowledged: 3,
                    waiting: 1,
                    refused: 0x8000_0002,
                };
                return Ok(report.to_words()[0]);
            }
            Operation::RegionSet => {
                assert!(u32::from(index) < SIZES.regions);
                let region = RegionSetup::from_words(&words(data));
                assert!(region.length > 0 && region.base.checked_add(region.length).is_some());
                assert!(
                    self.regions.insert(index, region).is_none(),
                    "region set twice"
                );
            }
            Operation::RegionClear => assert!(self.regions.remove(&index).is_some()),
            Operation::CounterRead => return Ok(1000 + u64::from(index)),
        }
        Ok(0)
    }

    fn random(&mut self) -> u32 {
        self.rng.random()
    }

    fn mac(&self) -> u64 {
        MAC
    }

    fn sizes(&self) -> Sizes {
        SIZES
    }
}

type Unit = Firmware<Gates, 16, 8>;
type Refusal = (MailboxStatus, u32);

fn started(seed: u64) -> Unit {
    let mut firmware = Firmware::new(Gates::new(seed), BUILD_ID);
    firmware.start().expect("gates answer");
    firmware
}

fn firmware() -> Unit {
    started(1)
}

fn call<A: Words, R: Words>(fw: &mut Unit, command: Command, argument: A) -> Result<R, Refusal> {
    let mut words = [0; MAILBOX_WORDS];
    words[0] = u32::from(command.code());
    argument.to_words(&mut words[1..]);
    let mut answer = [0; MAILBOX_WORDS];
    let (status, count) = fw.serve(&words, &mut answer);
    assert_eq!(answer[0], u32::from(status.code()));
    if status != MailboxStatus::Ok {
        return Err((status, answer[1]));
    }
    assert_eq!(count, 1 + R::COUNT);
    Ok(R::from_words(&answer[1..]))
}

fn rings(domain: u32) -> OpenEndpoint {
    OpenEndpoint {
        domain,
        send_log2: 6,
        send_base: 0x1000,
        list_log2: 6,
        list_base: 0x2000,
        completion_log2: 8,
        completion_base: 0x4000,
        event_log2: 4,
        event_base: 0x8000,
    }
}

fn domain(fw: &mut Unit) -> u32 {
    let opened: DomainId = call(fw, Command::OpenDomain, Nothing {}).unwrap();
    opened.domain
}

fn endpoint(fw: &mut Unit) -> EndpointId {
    let domain = domain(fw);
    call(fw, Command::OpenEndpoint, rings(domain)).unwrap()
}

fn open_pair(fw: &mut Unit, endpoint: u32, credits: u32) -> Result<PairId, Refusal> {
    let slots = 0x10_0000;
    call(
        fw,
        Command::OpenPair,
        OpenPair {
            endpoint,
            credits,
            slots,
        },
    )
}

fn connect(pair: u32) -> ConnectPair {
    ConnectPair {
        pair,
        remote_pair: 5,
        remote_endpoint: 1,
        remote_epoch: 9,
        remote_nonce: 0xaaaa_5555,
        remote_credits: 4,
        remote_mac: 0x0102_0304_0506,
    }
}

#[test]
fn the_identity_tells_the_card_and_the_build() {
    let identity: Identity = call(&mut firmware(), Command::Identify, Nothing {}).unwrap();
    assert_eq!(identity.abi_version, abi::ABI_VERSION);
    assert_eq!(identity.build_id, BUILD_ID);
    assert_eq!((identity.pairs, identity.regions), (8, 4));
    assert_eq!(
        (identity.mac, identity.message_max),
        (MAC, EAGER_MAX as u64)
    );
}

#[test]
fn an_unknown_command_is_refused() {
    let mut fw = firmware();
    for code in [0, 13, 0xff, 0x101, u32::MAX] {
        let mut words = [0; MAILBOX_WORDS];
        words[0] = code;
        let (status, _) = fw.serve(&words, &mut [0; MAILBOX_WORDS]);
        assert_eq!(status, MailboxStatus::UnknownCommand, "{code}");
    }
}

#[test]
fn each_ring_is_checked_and_the_refusal_names_the_argument() {
    let mut fw = firmware();
    let domain = domain(&mut fw);
    let good = rings(domain);
    let broken = [
        (
            1,
            OpenEndpoint {
                send_log2: 1,
                ..good
            },
        ),
        (
            2,
            OpenEndpoint {
                send_base: 0x1020,
                ..good
            },
        ),
        (
            3,
            OpenEndpoint {
                list_log2: 15,
                ..good
            },
        ),
        (
            4,
            OpenEndpoint {
                list_base: u64::MAX - 63,
                ..good
            },
        ),
        (
            5,
            OpenEndpoint {
                completion_log2: 0x106,
                ..good
            },
        ),
        (
            6,
            OpenEndpoint {
                completion_base: 8,
                ..good
            },
        ),
        (
            7,
            OpenEndpoint {
                event_log2: 0,
                ..good
            },
        ),
        (
            8,
            OpenEndpoint {
                event_base: 1,
                ..good
            },
        ),
    ];
    fw.card().log.clear();
    for (position, open) in broken {
        let refused = call::<_, EndpointId>(&mut fw, Command::OpenEndpoint, open);
        assert_eq!(refused, Err((MailboxStatus::InvalidArgument, position)));
    }
    assert_eq!(fw.card().log, [], "a refusal reached the gates");
    let stranger = OpenEndpoint { domain: 7, ..good };
    let refused = call::<_, EndpointId>(&mut fw, Command::OpenEndpoint, stranger);
    assert_eq!(refused, Err((MailboxStatus::NotFound, 0)));
}

#[test]
fn endpoints_run_out_and_a_reopened_one_has_a_new_epoch() {
    let mut fw = firmware();
    let first = endpoint(&mut fw);
    endpoint(&mut fw);
    let domain = domain(&mut fw);
    let full = call::<_, EndpointId>(&mut fw, Command::OpenEndpoint, rings(domain));
    assert_eq!(full, Err((MailboxStatus::NoResource, 0)));
    let close = CloseEndpoint {
        endpoint: first.endpoint,
    };
    let _: Nothing = call(&mut fw, Command::CloseEndpoint, close).unwrap();
    let again: EndpointId = call(&mut fw, Command::OpenEndpoint, rings(domain)).unwrap();
    assert_eq!(
        (again.endpoint, again.epoch),
        (first.endpoint, first.epoch + 1)
    );
    let stranger = CloseEndpoint { endpoint: 2 };
    let refused = call::<_, Nothing>(&mut fw, Command::CloseEndpoint, stranger);
    assert_eq!(refused, Err((MailboxStatus::NotFound, 0)));
}

#[test]
fn closing_stops_fails_flushes_and_forgets_in_that_order() {
    let mut fw = firmware();
    let endpoint = endpoint(&mut fw).endpoint;
    let connected = open_pair(&mut fw, endpoint, 2).unwrap().pair;
    open_pair(&mut fw, endpoint, 2).unwrap();
    let _: Nothing = call(&mut fw, Command::ConnectPair, connect(connected)).unwrap();
    fw.card().log.clear();
    let _: Nothing = call(&mut fw, Command::CloseEndpoint, CloseEndpoint { endpoint }).unwrap();
    let index = endpoint as u16;
    let expected = [
        (Operation::EndpointStop, index),
        (Operation::PairFail, connected as u16),
        (Operation::EndpointFlush, index),
        (Operation::PairClear, connected as u16),
        (Operation::EndpointClear, index),
    ];
    assert_eq!(fw.card().log, expected);
    let gone = call::<_, PairStatus>(&mut fw, Command::QueryPair, Pair { pair: connected });
    assert_eq!(gone, Err((MailboxStatus::NotFound, 0)));
}

#[test]
fn a_domain_is_closed_only_when_nothing_uses_it() {
    let mut fw = firmware();
    let domain = domain(&mut fw);
    let id: EndpointId = call(&mut fw, Command::OpenEndpoint, rings(domain)).unwrap();
    let region = RegisterRegion {
        domain,
        rights: 3,
        address: 0x5000,
        length: 1,
    };
    let key: RegionKey = call(&mut fw, Command::RegisterRegion, region).unwrap();
    let busy = Err((MailboxStatus::Busy, 0));
    let close = |fw: &mut Unit| call::<_, Nothing>(fw, Command::CloseDomain, DomainId { domain });
    assert_eq!(close(&mut fw), busy);
    let _: Nothing = call(&mut fw, Command::DeregisterRegion, key).unwrap();
    assert_eq!(close(&mut fw), busy);
    let endpoint = id.endpoint;
    let _: Nothing = call(&mut fw, Command::CloseEndpoint, CloseEndpoint { endpoint }).unwrap();
    assert!(close(&mut fw).is_ok());
    assert_eq!(close(&mut fw), Err((MailboxStatus::NotFound, 0)));
}

#[test]
fn envelopes_that_cannot_be_guaranteed_are_refused_with_how_many_can() {
    let mut fw = firmware();
    let endpoint = endpoint(&mut fw).endpoint;
    let first = open_pair(&mut fw, endpoint, 16).unwrap();
    let refused = (MailboxStatus::NoEnvelopes, 4);
    assert_eq!(open_pair(&mut fw, endpoint, 5), Err(refused));
    open_pair(&mut fw, endpoint, 4).unwrap();
    assert_eq!(
        open_pair(&mut fw, endpoint, 1),
        Err((MailboxStatus::NoEnvelopes, 0))
    );
    let _: Nothing = call(&mut fw, Command::ClosePair, Pair { pair: first.pair }).unwrap();
    assert_eq!(open_pair(&mut fw, endpoint, 16).unwrap().credits, 16);
    for credits in [0, 17, u32::MAX] {
        let refused = (MailboxStatus::InvalidArgument, 1);
        assert_eq!(open_pair(&mut fw, endpoint, credits), Err(refused));
    }
}

#[test]
fn both_sides_of_a_connection_make_the_same_cookie() {
    let mut fw = firmware();
    let endpoint = endpoint(&mut fw).endpoint;
    let pair = open_pair(&mut fw, endpoint, 8).unwrap();
    let _: Nothing = call(&mut fw, Command::ConnectPair, connect(pair.pair)).unwrap();
    let setup = fw.card().pairs[&(pair.pair as u16)];
    assert_eq!(setup.cookie, pair.nonce ^ 0xaaaa_5555);
    assert_eq!((setup.remote_credits, setup.local_credits), (4, 8));
    let twice = call::<_, Nothing>(&mut fw, Command::ConnectPair, connect(pair.pair));
    assert_eq!(twice, Err((MailboxStatus::Busy, 0)));
}

#[test]
fn what_a_peer_can_not_be_is_refused() {
    let mut fw = firmware();
    let endpoint = endpoint(&mut fw).endpoint;
    let pair = open_pair(&mut fw, endpoint, 1).unwrap().pair;
    let good = connect(pair);
    let broken = [
        (
            1,
            ConnectPair {
                remote_pair: 0x1_0000,
                ..good
            },
        ),
        (
            2,
            ConnectPair {
                remote_endpoint: 0x1_0000,
                ..good
            },
        ),
        (
            3,
            ConnectPair {
                remote_epoch: 0x1_0000,
                ..good
            },
        ),
        (
            5,
            ConnectPair {
                remote_credits: 0,
                ..good
            },
        ),
        (
            5,
            ConnectPair {
                remote_credits: 17,
                ..good
            },
        ),
        (
            6,
            ConnectPair {
                remote_mac: 1 << 48,
                ..good
            },
        ),
    ];
    for (position, connect) in broken {
        let refused = call::<_, Nothing>(&mut fw, Command::ConnectPair, connect);
        assert_eq!(refused, Err((MailboxStatus::InvalidArgument, position)));
    }
    assert!(fw.card().pairs.is_empty());
}

#[test]
fn the_state_of_a_pair_is_what_the_gates_say() {
    let mut fw = firmware();
    let endpoint = endpoint(&mut fw).endpoint;
    let pair = open_pair(&mut fw, endpoint, 1).unwrap().pair;
    let query = |fw: &mut Unit| call::<_, PairStatus>(fw, Command::QueryPair, Pair { pair });
    assert_eq!(
        query(&mut fw).unwrap().state,
        u32::from(PairState::Open.code())
    );
    let _: Nothing = call(&mut fw, Command::ConnectPair, connect(pair)).unwrap();
    let status = query(&mut fw).unwrap();
    assert_eq!(status.state, u32::from(PairState::Connected.code()));
    assert_eq!(
        (status.available, status.unacknowledged, status.waiting),
        (4, 3, 1)
    );
    assert_eq!(status.refused, 0x8000_0002);
    let link_error = u64::from(Status::LinkError.code());
    fw.card().failed.insert(pair as u16, link_error);
    assert_eq!(
        query(&mut fw).unwrap().state,
        u32::from(PairState::Failed.code())
    );
}

#[test]
fn regions_that_wrap_or_ask_for_unknown_rights_are_refused() {
    let mut fw = firmware();
    let domain = domain(&mut fw);
    let good = RegisterRegion {
        domain,
        rights: 1,
        address: 0x1003,
        length: 17,
    };
    let broken = [
        (1, RegisterRegion { rights: 0, ..good }),
        (1, RegisterRegion { rights: 4, ..good }),
        (
            1,
            RegisterRegion {
                rights: 0x101,
                ..good
            },
        ),
        (3, RegisterRegion { length: 0, ..good }),
        (
            3,
            RegisterRegion {
                length: u64::MAX,
                ..good
            },
        ),
        (
            3,
            RegisterRegion {
                address: u64::MAX,
                length: 1,
                ..good
            },
        ),
    ];
    for (position, register) in broken {
        let refused = call::<_, RegionKey>(&mut fw, Command::RegisterRegion, register);
        assert_eq!(refused, Err((MailboxStatus::InvalidArgument, position)));
    }
    assert!(fw.card().regions.is_empty());
    assert!(call::<_, RegionKey>(&mut fw, Command::RegisterRegion, good).is_ok());
}

#[test]
fn the_key_of_a_forgotten_region_names_nothing() {
    let mut fw = firmware();
    let domain = domain(&mut fw);
    let register = RegisterRegion {
        domain,
        rights: 3,
        address: 0,
        length: 64,
    };
    let old: RegionKey = call(&mut fw, Command::RegisterRegion, register).unwrap();
    let _: Nothing = call(&mut fw, Command::DeregisterRegion, old).unwrap();
    let new: RegionKey = call(&mut fw, Command::RegisterRegion, register).unwrap();
    assert_eq!(old.key & 0xfff, new.key & 0xfff);
    assert_ne!(old.key, new.key);
    let refused = call::<_, Nothing>(&mut fw, Command::DeregisterRegion, old);
    assert_eq!(refused, Err((MailboxStatus::NotFound, 0)));
    let region = fw.card().regions[&((new.key & 0xfff) as u16)];
    assert_eq!(region.tag, new.key >> 12);
}

#[test]
fn counters_are_read_from_the_gates() {
    let mut fw = firmware();
    let read = |fw: &mut Unit, counter| {
        call::<_, CounterValue>(fw, Command::ReadCounter, CounterId { counter })
    };
    let crc = u32::from(Counter::CrcErrors.code());
    assert_eq!(read(&mut fw, crc).unwrap().value, 1000 + u64::from(crc));
    for counter in [Counter::ALL.len() as u32, 256 + crc, u32::MAX] {
        assert_eq!(
            read(&mut fw, counter),
            Err((MailboxStatus::InvalidArgument, 0))
        );
    }
}

#[test]
fn gates_that_fall_silent_in_a_close_are_reported_and_the_close_can_be_finished() {
    for answered in 0..5 {
        let mut fw = firmware();
        let endpoint = endpoint(&mut fw).endpoint;
        let pair = open_pair(&mut fw, endpoint, 2).unwrap().pair;
        let _: Nothing = call(&mut fw, Command::ConnectPair, connect(pair)).unwrap();
        fw.card().patience = answered;
        let close = CloseEndpoint { endpoint };
        let silent = call::<_, Nothing>(&mut fw, Command::CloseEndpoint, close);
        assert_eq!(
            silent,
            Err((MailboxStatus::HardwareTimeout, 0)),
            "after {answered}"
        );
        assert_eq!(
            open_pair(&mut fw, endpoint, 1),
            Err((MailboxStatus::Busy, 0))
        );
        fw.card().patience = usize::MAX;
        let _: Nothing = call(&mut fw, Command::CloseEndpoint, close).unwrap();
        assert!(fw.card().endpoints.is_empty() && fw.card().pairs.is_empty());
    }
}

/// A host that sends anything: mostly plausible commands, often with a word gone wild.
#[test]
fn no_sequence_of_commands_makes_the_gates_complain() {
    let mut reached = Vec::new();
    for seed in 0..300 {
        println!("seed {seed}");
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut fw = started(seed);
        let mut keys = vec![0];
        for _ in 0..400 {
            let mut words: [u32; MAILBOX_WORDS] = std::array::from_fn(|_| rng.random_range(0..3));
            words[0] = rng.random_range(0..14);
            let command = Command::from_code(words[0] as u8);
            let arguments = &mut words[1..];
            match command {
                Some(Command::OpenEndpoint) => rings(arguments[0]).to_words(arguments),
                Some(Command::OpenPair) => arguments[2] = rng.random::<u32>() << 6,
                Some(Command::ConnectPair) => connect(arguments[0]).to_words(arguments),
                Some(Command::RegisterRegion) => arguments[1] += 1,
                Some(Command::DeregisterRegion) => {
                    arguments[0] = keys[rng.random_range(0..keys.len())];
                }
                _ => {}
            }
            if rng.random_ratio(1, 4) {
                words[rng.random_range(1..16)] = rng.random();
            }
            let mut answer = [0; MAILBOX_WORDS];
            fw.card().patience = if rng.random_ratio(1, 200) {
                2
            } else {
                usize::MAX
            };
            let (status, count) = fw.serve(&words, &mut answer);
            assert!(count <= MAILBOX_WORDS);
            if status == MailboxStatus::HardwareTimeout {
                // What the gates did is unknown from here on, so there is nothing more to hold them to.
                break;
            }
            if status == MailboxStatus::Ok && words[0] == u32::from(Command::RegisterRegion.code())
            {
                keys.push(answer[1]);
            }
        }
        reached.extend(fw.card().log.iter().map(|&(operation, _)| operation));
    }
    reached.sort_unstable();
    reached.dedup();
    assert_eq!(reached, Operation::ALL, "the commands never got that far");
}
