//! Each command, each refusal, and gates that fall silent.

use crate::breaks::{promise, promise_eq};
use crate::gates::{Gates, Refusal, Unit, Wire, answer, boot, call, give, pass, settle, sizes};
use abi::capability::{
    CAPABILITY_GRANTS, CAPABILITY_RULES, CAPABILITY_SENDERS, CAPABILITY_SHARED_COMPLETIONS,
};
use abi::completion::COMPLETION_BYTES;
use abi::control::{
    Counter, Operation, PairCounter, RING_COMPLETION, key_index, key_tag, ring_of_index,
};
use abi::event::{self, Cause as EventCause, EVENT_BYTES};
use abi::limits::{EAGER_MAX, FLAT_SPACE};
use abi::mailbox::{
    Accept, AuditEntry, AuditIndex, AuditKind, CloseEndpoint, Command, Connect, ConnectPair,
    ConnectReason, CounterId, CounterValue, Disconnect, DomainId, EndpointId, Identity,
    NO_ENDPOINT, Nothing, OpenEndpoint, OpenPair, Pair, PairCounterId, PairId, PairState,
    PairStatus, RegionKey, RegisterRegion, Reserve, SetShutOut, ShutOut, Words, id_index,
};
use abi::register::MAILBOX_WORDS;
use abi::request::REQUEST_BYTES;
use abi::ring::ring_bytes;
use abi::status::{MailboxStatus, Status};
use abi::times::{SHUT_OUT_LIMIT, SHUT_OUT_TICKS};
use abi::wire::{ETHERTYPE_FIELD, FrameHeader, FrameType, VERSION};
use card_model::matching::Sizes;
use card_model::{CardSizes, link};
use firmware_core::connection::{Cause, State};
use firmware_core::{CONTROL_TIMEOUT, GateEvent, MOST_DISCONNECTS, TELL_TIMEOUT};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::HashSet;

const MAC: u64 = 0x0605_0403_0202;
const BUILD_ID: u64 = 0x1122_3344_5566_7788;

fn started(seed: u64) -> Unit {
    boot(Gates::new(seed, MAC), BUILD_ID)
}

pub fn firmware() -> Unit {
    started(1)
}

/// On a card that has all that a card may have.
pub fn able() -> Unit {
    able_for(2)
}

/// The same, for so many endpoints.
pub fn able_for(endpoints: usize) -> Unit {
    let card = CardSizes {
        lists: Sizes::new(endpoints, 8, 24, 8, 64),
        capabilities: abi::capability::ALL,
        ..sizes(8, 64, 4)
    };
    boot(Gates::of(card, 1, MAC), BUILD_ID)
}

pub fn rings(domain: u32) -> OpenEndpoint {
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
        completion_owner: NO_ENDPOINT,
        job: 0,
        pair_sends: 0,
        space: FLAT_SPACE.into(),
    }
}

pub fn domain(fw: &mut Unit) -> u32 {
    let opened: DomainId = call(fw, Command::OpenDomain, Nothing {}).unwrap();
    opened.domain
}

pub fn endpoint(fw: &mut Unit) -> EndpointId {
    let domain = domain(fw);
    call(fw, Command::OpenEndpoint, rings(domain)).unwrap()
}

pub fn open_pair(fw: &mut Unit, endpoint: u32, credits: u32) -> Result<PairId, Refusal> {
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

pub fn connect(pair: u32) -> ConnectPair {
    ConnectPair {
        pair,
        remote_pair: 5,
        remote_endpoint: 1,
        remote_epoch: 9,
        remote_nonce: 0xaaaa_5555,
        remote_credits: 4,
        remote_mac: 0x0102_0304_0506,
        remote_job: 0,
    }
}

#[test]
pub fn the_identity_tells_the_card_and_the_build() {
    let identity: Identity = call(&mut firmware(), Command::Identify, Nothing {}).unwrap();
    promise_eq!(identity.abi_version, abi::ABI_VERSION);
    promise_eq!(identity.build_id, BUILD_ID);
    promise_eq!((identity.pairs, identity.regions), (8, 4));
    promise_eq!(
        (identity.mac, identity.message_max),
        (MAC, EAGER_MAX as u64)
    );
}

#[test]
fn an_unknown_command_is_refused() {
    let mut fw = firmware();
    let after = Command::ALL.last().map_or(0, |last| u32::from(last.code())) + 1;
    for code in [0, after, 0xff, 0x101, u32::MAX] {
        let mut words = [0; MAILBOX_WORDS];
        words[0] = code;
        fw.command(&words);
        let refused = answer::<Nothing>(&mut fw).expect("answered at once");
        promise_eq!(refused, Err((MailboxStatus::UnknownCommand, 0)), "{code}");
    }
}

#[test]
pub fn a_command_that_was_given_before_the_start_is_not_carried_out() {
    let restarted = u32::from(MailboxStatus::Restarted.code());
    promise_eq!(firmware().answer_to_lost(), [restarted, 0]);
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
        (
            10,
            OpenEndpoint {
                job: 1 << 24,
                ..good
            },
        ),
        (
            11,
            OpenEndpoint {
                pair_sends: 24,
                ..good
            },
        ),
        (
            11,
            OpenEndpoint {
                pair_sends: 128,
                ..good
            },
        ),
        (12, OpenEndpoint { space: 1, ..good }),
        (
            12,
            OpenEndpoint {
                space: 0x100,
                ..good
            },
        ),
    ];
    fw.card().log.clear();
    for (position, open) in broken {
        let refused = call::<_, EndpointId>(&mut fw, Command::OpenEndpoint, open);
        promise_eq!(refused, Err((MailboxStatus::InvalidArgument, position)));
    }
    promise_eq!(fw.card().log, [], "a refusal reached the gates");
    let stranger = OpenEndpoint { domain: 7, ..good };
    let refused = call::<_, EndpointId>(&mut fw, Command::OpenEndpoint, stranger);
    promise_eq!(refused, Err((MailboxStatus::NotFound, 0)));
}

#[test]
fn a_ring_that_is_aligned_to_half_of_its_size_is_refused_and_nothing_is_left_behind() {
    let mut fw = firmware();
    let domain = domain(&mut fw);
    let good = rings(domain);
    let halves = [
        (2, good.send_log2, REQUEST_BYTES),
        (4, good.list_log2, REQUEST_BYTES),
        (6, good.completion_log2, COMPLETION_BYTES),
        (8, good.event_log2, EVENT_BYTES),
    ];
    fw.card().log.clear();
    for (position, log2, entry_bytes) in halves {
        let half = u64::from(ring_bytes(log2 as u8, entry_bytes) / 2);
        let mut open = good;
        match position {
            2 => open.send_base += half,
            4 => open.list_base += half,
            6 => open.completion_base += half,
            _ => open.event_base += half,
        }
        let refused = call::<_, EndpointId>(&mut fw, Command::OpenEndpoint, open);
        promise_eq!(refused, Err((MailboxStatus::InvalidArgument, position)));
    }
    promise_eq!(fw.card().log, [], "a refusal reached the gates");
    // The endpoint gets the place and the epoch that it would have had, and holds the domain alone.
    let opened: EndpointId = call(&mut fw, Command::OpenEndpoint, good).unwrap();
    promise_eq!(opened, endpoint(&mut firmware()));
    let close = CloseEndpoint {
        endpoint: opened.endpoint,
    };
    let closed = call::<_, Nothing>(&mut fw, Command::CloseEndpoint, close);
    promise_eq!(closed, Ok(Nothing {}));
    let closed = call::<_, Nothing>(&mut fw, Command::CloseDomain, DomainId { domain });
    promise_eq!(closed, Ok(Nothing {}));
}

#[test]
fn an_endpoint_completes_on_anothers_queue_if_the_card_can_and_it_is_of_its_domain() {
    let mut fw = firmware();
    let of = domain(&mut fw);
    let owner: EndpointId = call(&mut fw, Command::OpenEndpoint, rings(of)).unwrap();
    let shared = OpenEndpoint {
        completion_log2: 0,
        completion_base: 0,
        completion_owner: owner.endpoint,
        ..rings(of)
    };
    let open = |fw: &mut Unit, open| call::<_, EndpointId>(fw, Command::OpenEndpoint, open);
    let lacks = (MailboxStatus::Unsupported, CAPABILITY_SHARED_COMPLETIONS);
    promise_eq!(open(&mut fw, shared), Err(lacks));

    let mut fw = able();
    let of = domain(&mut fw);
    let owner: EndpointId = call(&mut fw, Command::OpenEndpoint, rings(of)).unwrap();
    let shared = OpenEndpoint {
        domain: of,
        completion_owner: owner.endpoint,
        ..shared
    };
    let invalid = |position| Err((MailboxStatus::InvalidArgument, position));
    let other = domain(&mut fw);
    let foreign = OpenEndpoint {
        domain: other,
        ..shared
    };
    promise_eq!(open(&mut fw, foreign), invalid(9));
    let queue = OpenEndpoint {
        completion_log2: 8,
        ..shared
    };
    promise_eq!(open(&mut fw, queue), invalid(5));
    let queue = OpenEndpoint {
        completion_base: 0x4000,
        ..shared
    };
    promise_eq!(open(&mut fw, queue), invalid(6));
    let nobody = OpenEndpoint {
        completion_owner: owner.endpoint ^ 1 << 16,
        ..shared
    };
    promise_eq!(open(&mut fw, nobody), Err((MailboxStatus::NotFound, 0)));

    fw.card().log.clear();
    let sharer = open(&mut fw, shared).unwrap();
    let place = id_index(sharer.endpoint);
    let setup = &fw.card().endpoints[&place];
    promise_eq!(u16::from(setup.completion_owner), id_index(owner.endpoint));
    let is_queue = |(operation, index): &(Operation, u16)| {
        *operation == Operation::RingSet && ring_of_index(*index).1 == RING_COMPLETION
    };
    promise!(
        !fw.card().log.iter().any(is_queue),
        "it has no queue of its own"
    );

    let close = |fw: &mut Unit, endpoint| {
        call::<_, Nothing>(fw, Command::CloseEndpoint, CloseEndpoint { endpoint })
    };
    promise_eq!(
        close(&mut fw, owner.endpoint),
        Err((MailboxStatus::Busy, 0))
    );
    close(&mut fw, sharer.endpoint).unwrap();
    close(&mut fw, owner.endpoint).unwrap();
}

#[test]
fn an_owner_completes_on_its_own_queue() {
    let mut fw = able_for(3);
    let of = domain(&mut fw);
    let owner: EndpointId = call(&mut fw, Command::OpenEndpoint, rings(of)).unwrap();
    let on = |completion_owner| OpenEndpoint {
        completion_log2: 0,
        completion_base: 0,
        completion_owner,
        ..rings(of)
    };
    let sharer: EndpointId = call(&mut fw, Command::OpenEndpoint, on(owner.endpoint)).unwrap();
    let chained = call::<_, EndpointId>(&mut fw, Command::OpenEndpoint, on(sharer.endpoint));
    promise_eq!(chained, Err((MailboxStatus::InvalidArgument, 9)));
    let setup = &fw.card().endpoints[&id_index(owner.endpoint)];
    promise_eq!(u16::from(setup.completion_owner), id_index(owner.endpoint));
}

#[test]
pub fn endpoints_run_out_and_a_reopened_one_has_a_new_epoch() {
    let mut fw = firmware();
    let first = endpoint(&mut fw);
    endpoint(&mut fw);
    let domain = domain(&mut fw);
    let full = call::<_, EndpointId>(&mut fw, Command::OpenEndpoint, rings(domain));
    promise_eq!(full, Err((MailboxStatus::NoResource, 0)));
    let close = CloseEndpoint {
        endpoint: first.endpoint,
    };
    let _: Nothing = call(&mut fw, Command::CloseEndpoint, close).unwrap();
    let again: EndpointId = call(&mut fw, Command::OpenEndpoint, rings(domain)).unwrap();
    let place = |id: &EndpointId| id_index(id.endpoint);
    promise_eq!(
        (place(&again), again.epoch),
        (place(&first), first.epoch + 1)
    );
    promise!(again.endpoint != first.endpoint, "an id of its own");
    // The first one's id names nothing any more, whoever has its place.
    for stranger in [first.endpoint, again.endpoint ^ 0x8000_0000, 2] {
        let stranger = CloseEndpoint { endpoint: stranger };
        let refused = call::<_, Nothing>(&mut fw, Command::CloseEndpoint, stranger);
        promise_eq!(refused, Err((MailboxStatus::NotFound, 0)));
    }
}

#[test]
pub fn closing_stops_fails_flushes_and_forgets_in_that_order() {
    let mut fw = firmware();
    let endpoint = endpoint(&mut fw).endpoint;
    let connected = open_pair(&mut fw, endpoint, 2).unwrap().pair;
    open_pair(&mut fw, endpoint, 2).unwrap();
    let _: Nothing = call(&mut fw, Command::ConnectPair, connect(connected)).unwrap();
    fw.card().log.clear();
    let _: Nothing = call(&mut fw, Command::CloseEndpoint, CloseEndpoint { endpoint }).unwrap();
    let index = id_index(endpoint);
    let expected = [
        (Operation::EndpointStop, index),
        (Operation::PairFail, connected as u16),
        (Operation::EndpointFlush, index),
        (Operation::PairClear, connected as u16),
        (Operation::EndpointClear, index),
    ];
    promise_eq!(fw.card().log, expected);
    let gone = call::<_, PairStatus>(&mut fw, Command::QueryPair, Pair { pair: connected });
    promise_eq!(gone, Err((MailboxStatus::NotFound, 0)));
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
        space: FLAT_SPACE.into(),
    };
    let key: RegionKey = call(&mut fw, Command::RegisterRegion, region).unwrap();
    let busy = Err((MailboxStatus::Busy, 0));
    let close = |fw: &mut Unit| call::<_, Nothing>(fw, Command::CloseDomain, DomainId { domain });
    promise_eq!(close(&mut fw), busy);
    let _: Nothing = call(&mut fw, Command::DeregisterRegion, key).unwrap();
    promise_eq!(close(&mut fw), busy);
    let endpoint = id.endpoint;
    let _: Nothing = call(&mut fw, Command::CloseEndpoint, CloseEndpoint { endpoint }).unwrap();
    promise!(close(&mut fw).is_ok());
    promise_eq!(close(&mut fw), Err((MailboxStatus::NotFound, 0)));
}

/// The gates look whether the runs are in the memory, aligned, and apart.
#[test]
pub fn each_pair_has_descriptors_of_its_own() {
    let mut fw = firmware();
    let endpoint = endpoint(&mut fw).endpoint;
    for _ in 0..3 {
        let pair = open_pair(&mut fw, endpoint, 1).unwrap();
        call::<_, Nothing>(&mut fw, Command::ConnectPair, connect(pair.pair)).unwrap();
        let setup = fw.card().pairs[&id_index(pair.pair)].setup;
        promise_eq!(1 << setup.sends_log2, pair.sends);
        promise_eq!(pair.sends, 8);
    }
}

/// Eight units of eight: a long run takes what nobody else is to have, and a reservation is kept.
#[test]
pub fn a_pair_gets_as_many_descriptors_as_its_endpoint_asked_for_if_they_can_be_had() {
    let mut fw = firmware();
    let narrow = endpoint(&mut fw).endpoint;
    let DomainId { domain } = call(&mut fw, Command::OpenDomain, Nothing {}).unwrap();
    let pair_sends = 32;
    let open = OpenEndpoint {
        pair_sends,
        ..rings(domain)
    };
    let wide: EndpointId = call(&mut fw, Command::OpenEndpoint, open).unwrap();
    let mut take = |endpoint| {
        let pair = open_pair(&mut fw, endpoint, 1)?;
        call::<_, Nothing>(&mut fw, Command::ConnectPair, connect(pair.pair)).unwrap();
        Ok((pair.pair, pair.sends))
    };
    let first = take(narrow).unwrap();
    let second = take(wide.endpoint).unwrap();
    promise_eq!((first.1, second.1), (8, 32));
    // Three units are left, of which two are together.
    let third = take(wide.endpoint).unwrap();
    promise_eq!(third.1, 16);
    let fourth = take(wide.endpoint).unwrap();
    promise_eq!(fourth.1, 8);
    let full: Result<_, (MailboxStatus, u32)> = take(narrow);
    promise_eq!(full, Err((MailboxStatus::NoResource, 0)));
    for (pair, _) in [second, third, fourth] {
        let _: Nothing = call(&mut fw, Command::ClosePair, Pair { pair }).unwrap();
    }
    // Seven are free again, of which six are kept for others.
    let reserve = Reserve {
        endpoint: narrow,
        pairs: 6,
        credits: 1,
    };
    let _: Nothing = call(&mut fw, Command::Reserve, reserve).unwrap();
    let mut take = |endpoint| {
        let pair = open_pair(&mut fw, endpoint, 1)?;
        Ok::<_, (MailboxStatus, u32)>(pair.sends)
    };
    promise_eq!(take(wide.endpoint), Ok(8));
    promise_eq!(take(wide.endpoint), Err((MailboxStatus::NoResource, 0)));
    for _ in 0..6 {
        promise_eq!(take(narrow), Ok(8));
    }
}

#[test]
pub fn envelopes_that_cannot_be_guaranteed_are_refused_with_how_many_can() {
    let mut fw = firmware();
    let endpoint = endpoint(&mut fw).endpoint;
    // Eight units of eight places, of which each pair has whole ones.
    let first = open_pair(&mut fw, endpoint, 33).unwrap();
    let refused = (MailboxStatus::NoEnvelopes, 24);
    promise_eq!(open_pair(&mut fw, endpoint, 25), Err(refused));
    open_pair(&mut fw, endpoint, 24).unwrap();
    promise_eq!(
        open_pair(&mut fw, endpoint, 1),
        Err((MailboxStatus::NoEnvelopes, 0))
    );
    let _: Nothing = call(&mut fw, Command::ClosePair, Pair { pair: first.pair }).unwrap();
    promise_eq!(open_pair(&mut fw, endpoint, 40).unwrap().credits, 40);
    for credits in [0, 65, u32::MAX] {
        let refused = (MailboxStatus::InvalidArgument, 1);
        promise_eq!(open_pair(&mut fw, endpoint, credits), Err(refused));
    }
}

#[test]
pub fn both_sides_of_a_connection_make_the_same_cookie() {
    let mut fw = firmware();
    let endpoint = endpoint(&mut fw).endpoint;
    let pair = open_pair(&mut fw, endpoint, 8).unwrap();
    let _: Nothing = call(&mut fw, Command::ConnectPair, connect(pair.pair)).unwrap();
    let setup = fw.card().pairs[&id_index(pair.pair)].setup;
    promise_eq!(setup.cookie, pair.nonce ^ 0xaaaa_5555);
    promise_eq!((setup.remote_credits, setup.local_credits), (4, 8));
    let twice = call::<_, Nothing>(&mut fw, Command::ConnectPair, connect(pair.pair));
    promise_eq!(twice, Err((MailboxStatus::Busy, 0)));
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
                remote_credits: 65,
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
        (
            7,
            ConnectPair {
                remote_job: 1,
                ..good
            },
        ),
    ];
    for (position, connect) in broken {
        let refused = call::<_, Nothing>(&mut fw, Command::ConnectPair, connect);
        promise_eq!(refused, Err((MailboxStatus::InvalidArgument, position)));
    }
    promise!(fw.card().pairs.is_empty());
}

#[test]
fn the_state_of_a_pair_is_what_the_gates_say() {
    let mut fw = firmware();
    let endpoint = endpoint(&mut fw).endpoint;
    let pair = open_pair(&mut fw, endpoint, 1).unwrap().pair;
    fw.card().busy = 1000;
    let query = |fw: &mut Unit| call::<_, PairStatus>(fw, Command::QueryPair, Pair { pair });
    promise_eq!(
        query(&mut fw).unwrap().state,
        u32::from(PairState::Open.code())
    );
    let _: Nothing = call(&mut fw, Command::ConnectPair, connect(pair)).unwrap();
    let status = query(&mut fw).unwrap();
    promise_eq!(status.state, u32::from(PairState::Connected.code()));
    promise_eq!(
        (status.available, status.unacknowledged, status.waiting),
        (4, 3, 1)
    );
    promise_eq!(status.refused, 0x20_0002);
    let link_error = u64::from(Status::LinkError.code());
    fw.card().fail(id_index(pair), link_error);
    promise_eq!(
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
        space: FLAT_SPACE.into(),
    };
    let broken = [
        (1, RegisterRegion { rights: 0, ..good }),
        (1, RegisterRegion { rights: 32, ..good }),
        (
            1,
            RegisterRegion {
                rights: 0x101,
                ..good
            },
        ),
        (3, RegisterRegion { length: 0, ..good }),
        (4, RegisterRegion { space: 1, ..good }),
        (
            4,
            RegisterRegion {
                space: 0x100,
                ..good
            },
        ),
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
        promise_eq!(refused, Err((MailboxStatus::InvalidArgument, position)));
    }
    promise!(fw.card().regions.is_empty());
    promise!(call::<_, RegionKey>(&mut fw, Command::RegisterRegion, good).is_ok());
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
        space: FLAT_SPACE.into(),
    };
    let old: RegionKey = call(&mut fw, Command::RegisterRegion, register).unwrap();
    let _: Nothing = call(&mut fw, Command::DeregisterRegion, old).unwrap();
    let new: RegionKey = call(&mut fw, Command::RegisterRegion, register).unwrap();
    promise_eq!(key_index(old.key), key_index(new.key));
    promise!(old.key != new.key);
    let refused = call::<_, Nothing>(&mut fw, Command::DeregisterRegion, old);
    promise_eq!(refused, Err((MailboxStatus::NotFound, 0)));
    let region = fw.card().regions[&key_index(new.key)];
    promise_eq!(region.tag, key_tag(new.key));
}

/// Keys of one place, one after the other.
fn keys(seed: u64, count: usize) -> Vec<u32> {
    let mut fw = started(seed);
    let domain = domain(&mut fw);
    let register = RegisterRegion {
        domain,
        rights: 3,
        address: 0,
        length: 64,
        space: FLAT_SPACE.into(),
    };
    let mut key = || {
        let region: RegionKey = call(&mut fw, Command::RegisterRegion, register).unwrap();
        let RegionKey { key } = region;
        let _: Nothing = call(&mut fw, Command::DeregisterRegion, region).unwrap();
        key
    };
    std::iter::repeat_with(&mut key).take(count).collect()
}

/// As it broke: a tag was any but the last one, so that a place had one of its last thousand again with one region in a thousand.
#[test]
pub fn the_keys_of_a_place_do_not_repeat() {
    let keys = keys(1, 6000);
    promise!(keys.iter().all(|&key| key_index(key) == 0));
    let different: HashSet<_> = keys.iter().collect();
    promise_eq!(different.len(), keys.len());
}

#[test]
pub fn the_keys_of_a_place_tell_nothing_of_those_of_another_card_or_of_the_next() {
    let (ours, theirs) = (keys(1, 500), keys(2, 500));
    let same = ours.iter().zip(&theirs).filter(|(one, two)| one == two);
    promise!(same.count() <= 2, "another card has them too");
    let steps = |keys: &[u32]| -> HashSet<u32> {
        let step = |two: &[u32]| two[1].wrapping_sub(two[0]);
        keys.windows(2).map(step).collect()
    };
    promise!(steps(&ours).len() >= 490, "they go on in steps");
}

#[test]
fn counters_are_read_from_the_gates() {
    let mut fw = firmware();
    let read = |fw: &mut Unit, counter| {
        call::<_, CounterValue>(fw, Command::ReadCounter, CounterId { counter })
    };
    let crc = u32::from(Counter::CrcErrors.code());
    let header = FrameHeader {
        ethertype: ETHERTYPE_FIELD,
        ..FrameHeader::default()
    };
    let mut frame = link::seal(&header, &[]);
    frame[20] ^= 1;
    for bad in 0..3 {
        promise_eq!(read(&mut fw, crc).unwrap().value, bad);
        fw.card().take_in(&Wire::Gates(frame.clone()));
    }
    for counter in [Counter::ALL.len() as u32, 256 + crc, u32::MAX] {
        promise_eq!(
            read(&mut fw, counter),
            Err((MailboxStatus::InvalidArgument, 0))
        );
    }
}

#[test]
fn the_counters_of_a_pair_are_those_of_its_connection() {
    let mut fw = firmware();
    let read = |fw: &mut Unit, pair, counter| {
        let counter = PairCounterId { pair, counter };
        call::<_, CounterValue>(fw, Command::ReadPairCounter, counter)
    };
    let errors = u32::from(PairCounter::PairErrors.code());
    let stray = |pair| {
        let header = FrameHeader {
            ethertype: ETHERTYPE_FIELD,
            version: VERSION,
            frame_type: FrameType::Acknowledge.code(),
            destination_pair: id_index(pair),
            ..FrameHeader::default()
        };
        Wire::Gates(link::seal(&header, &[]))
    };
    let endpoint = endpoint(&mut fw).endpoint;
    let [first, second] = [(); 2].map(|()| open_pair(&mut fw, endpoint, 2).unwrap().pair);
    for k in 0..3 {
        // Somebody's frames name both, whether or not they are connected.
        fw.card().take_in(&stray(first));
        fw.card().take_in(&stray(second));
        if k == 0 {
            promise_eq!(read(&mut fw, first, errors).unwrap().value, 0);
            let _: Nothing = call(&mut fw, Command::ConnectPair, connect(first)).unwrap();
        }
        promise_eq!(read(&mut fw, first, errors).unwrap().value, k);
        promise_eq!(read(&mut fw, second, errors).unwrap().value, 0);
    }
    fw.card()
        .fail(id_index(first), Status::LinkError.code().into());
    settle(&mut fw);
    promise_eq!(read(&mut fw, first, errors).unwrap().value, 2);
    for counter in [PairCounter::ALL.len() as u32, 256 + errors, u32::MAX] {
        let refused = Err((MailboxStatus::InvalidArgument, 1));
        promise_eq!(read(&mut fw, first, counter), refused);
    }
    let _: Nothing = call(&mut fw, Command::ClosePair, Pair { pair: first }).unwrap();
    promise_eq!(
        read(&mut fw, first, errors),
        Err((MailboxStatus::NotFound, 0))
    );
    // Who has the place next counts from 0.
    let next = open_pair(&mut fw, endpoint, 2).unwrap().pair;
    promise_eq!(id_index(next), id_index(first));
    promise_eq!(read(&mut fw, next, errors).unwrap().value, 0);
    let _: Nothing = call(&mut fw, Command::ConnectPair, connect(next)).unwrap();
    promise_eq!(read(&mut fw, next, errors).unwrap().value, 0);
}

#[test]
pub fn a_host_chooses_when_the_peer_of_a_connected_pair_is_shut_out() {
    let fw = &mut firmware();
    let set = |fw: &mut Unit, pair, limit, ticks| {
        let set = SetShutOut { pair, limit, ticks };
        call::<_, Nothing>(fw, Command::SetShutOut, set)
    };
    let read = |fw: &mut Unit, pair| {
        let read = call::<_, ShutOut>(fw, Command::ReadShutOut, Pair { pair })?;
        Ok((read.limit, read.ticks, read.count, read.left))
    };
    let own = (SHUT_OUT_LIMIT.into(), SHUT_OUT_TICKS.into(), 0, 0);
    let endpoint = endpoint(fw).endpoint;
    let pair = open_pair(fw, endpoint, 2).unwrap().pair;
    let absent = (MailboxStatus::NotConnected, 0);
    promise_eq!(set(fw, pair, 1, 1), Err(absent));
    promise_eq!(read(fw, pair), Err(absent));
    let _: Nothing = call(fw, Command::ConnectPair, connect(pair)).unwrap();
    promise_eq!(read(fw, pair), Ok(own));
    promise_eq!(set(fw, pair, 3, 0xffff), Ok(Nothing {}));
    promise_eq!(read(fw, pair), Ok((3, 0xffff, 0, 0)));
    for (limit, ticks, position) in [(0x1_0000, 1, 1), (1, 0x1_0000, 2), (u32::MAX, u32::MAX, 1)] {
        let refused = Err((MailboxStatus::InvalidArgument, position));
        promise_eq!(set(fw, pair, limit, ticks), refused);
    }
    promise_eq!(read(fw, pair), Ok((3, 0xffff, 0, 0)), "as it was");
    promise_eq!(set(fw, pair, 0, 0), Ok(Nothing {}));
    fw.card()
        .fail(id_index(pair), Status::LinkError.code().into());
    settle(fw);
    promise_eq!(read(fw, pair), Ok((0, 0, 0, 0)), "it lives on");
    let _: Nothing = call(fw, Command::ClosePair, Pair { pair }).unwrap();
    let gone = (MailboxStatus::NotFound, 0);
    promise_eq!(set(fw, pair, 1, 1), Err(gone));
    promise_eq!(read(fw, pair), Err(gone));
    let next = open_pair(fw, endpoint, 2).unwrap().pair;
    let _: Nothing = call(fw, Command::ConnectPair, connect(next)).unwrap();
    promise_eq!(read(fw, next), Ok(own), "another connection");
}

#[test]
pub fn gates_that_fall_silent_in_a_close_are_reported_and_the_close_can_be_finished() {
    for answered in 0..5 {
        let mut fw = firmware();
        let endpoint = endpoint(&mut fw).endpoint;
        let pair = open_pair(&mut fw, endpoint, 2).unwrap().pair;
        let _: Nothing = call(&mut fw, Command::ConnectPair, connect(pair)).unwrap();
        fw.card().patience = answered;
        let close = CloseEndpoint { endpoint };
        let late = Err((MailboxStatus::HardwareTimeout, 0));
        let silent = call::<_, Nothing>(&mut fw, Command::CloseEndpoint, close);
        promise_eq!(silent, late, "after {answered}");
        promise_eq!(
            open_pair(&mut fw, endpoint, 1),
            Err((MailboxStatus::Busy, 0))
        );
        // What needs no gates goes on, and what does is given up in its turn.
        promise!(call::<_, Identity>(&mut fw, Command::Identify, Nothing {}).is_ok());
        let counter = CounterId { counter: 0 };
        let counted = call::<_, CounterValue>(&mut fw, Command::ReadCounter, counter);
        promise_eq!(counted, Err((MailboxStatus::HardwareTimeout, 0)));
        fw.card().patience = usize::MAX;
        let repeated = call(&mut fw, Command::CloseEndpoint, close);
        promise_eq!(repeated, Ok(Nothing {}));
        promise!(fw.card().endpoints.is_empty() && fw.card().pairs.is_empty());
        let again = call::<_, Nothing>(&mut fw, Command::CloseEndpoint, close);
        promise_eq!(again, Err((MailboxStatus::NotFound, 0)), "it is closed");
    }
}

#[test]
fn a_close_that_timed_out_ends_by_itself_when_the_gates_answer() {
    let mut fw = firmware();
    let endpoint = endpoint(&mut fw).endpoint;
    fw.card().patience = 1;
    let close = CloseEndpoint { endpoint };
    let silent = call::<_, Nothing>(&mut fw, Command::CloseEndpoint, close);
    promise_eq!(silent, Err((MailboxStatus::HardwareTimeout, 0)));
    fw.card().patience = usize::MAX;
    settle(&mut fw);
    promise!(fw.card().endpoints.is_empty());
    let again = call::<_, Nothing>(&mut fw, Command::CloseEndpoint, close);
    promise_eq!(again, Err((MailboxStatus::NotFound, 0)));
}

/// It was `HardwareTimeout`, and the pair was connected all the same.
#[test]
fn a_pair_whose_connecting_timed_out_is_unsettled_until_the_gates_answer_and_then_closed() {
    let seen = a_pair_is_unsettled(false);
    promise!(seen.contains(&(State::Unsettled, Cause::GatesClear, State::Closed)));
}

/// Opens two pairs, one of which is connected, and closes both.
pub fn pairs_are_joined_and_closed() -> HashSet<(State, Cause, State)> {
    let mut fw = firmware();
    let endpoint = endpoint(&mut fw).endpoint;
    let [joined, open] = [(); 2].map(|()| open_pair(&mut fw, endpoint, 2).unwrap().pair);
    let _: Nothing = call(&mut fw, Command::ConnectPair, connect(joined)).unwrap();
    let connected: PairStatus = call(&mut fw, Command::QueryPair, Pair { pair: joined }).unwrap();
    promise_eq!(connected.state, u32::from(PairState::Connected.code()));
    for pair in [joined, open] {
        let closed = call(&mut fw, Command::ClosePair, Pair { pair });
        promise_eq!(closed, Ok(Nothing {}));
    }
    promise!(fw.card().pairs.is_empty());
    std::mem::take(&mut fw.card().transitions)
}

/// `ConnectPair` times out, and the host closes the pair, or doesn't, before the gates answer.
pub fn a_pair_is_unsettled(is_closed: bool) -> HashSet<(State, Cause, State)> {
    let mut fw = firmware();
    let endpoint = endpoint(&mut fw).endpoint;
    let pair = open_pair(&mut fw, endpoint, 2).unwrap().pair;
    fw.card().patience = 0;
    let silent = call::<_, Nothing>(&mut fw, Command::ConnectPair, connect(pair));
    promise_eq!(silent, Err((MailboxStatus::HardwareTimeout, 0)));
    let status: PairStatus = call(&mut fw, Command::QueryPair, Pair { pair }).unwrap();
    promise_eq!(status.state, u32::from(PairState::Unsettled.code()));
    if is_closed {
        give(&mut fw, Command::ClosePair, Pair { pair });
        settle(&mut fw);
        promise!(answer::<Nothing>(&mut fw).is_none(), "the gates have it");
    }
    fw.card().patience = usize::MAX;
    settle(&mut fw);
    if is_closed {
        promise_eq!(answer(&mut fw), Some(Ok(Nothing {})));
    }
    promise!(fw.card().pairs.is_empty(), "what was set late is cleared");
    let gone = call::<_, PairStatus>(&mut fw, Command::QueryPair, Pair { pair });
    promise_eq!(gone, Err((MailboxStatus::NotFound, 0)));
    open_pair(&mut fw, endpoint, 16).unwrap();
    open_pair(&mut fw, endpoint, 4).expect("its envelopes are free");
    std::mem::take(&mut fw.card().transitions)
}

#[test]
fn an_unsettled_pair_can_be_closed() {
    let seen = a_pair_is_unsettled(true);
    promise!(seen.contains(&(State::Unsettled, Cause::CommandClose, State::Closing)));
}

/// As it broke: the answer was taken for what had been asked, and nobody looked.
#[test]
pub fn after_a_late_answer_the_pair_is_read_back() {
    let mut fw = firmware();
    let endpoint = endpoint(&mut fw).endpoint;
    let pair = open_pair(&mut fw, endpoint, 2).unwrap().pair;
    let late = |fw: &mut Unit, answered, times_out: &dyn Fn(&mut Unit)| {
        fw.card().patience = answered;
        times_out(fw);
        // Nor does the first read say what there is.
        (fw.card().patience, fw.card().forgets) = (1, 2);
        fw.card().log.clear();
        settle(fw);
        pass(fw, CONTROL_TIMEOUT + 1);
        fw.card().patience = usize::MAX;
        settle(fw);
    };
    // A PairSet: there is nothing to clear.
    late(&mut fw, 0, &|fw| {
        let silent = call::<_, Nothing>(fw, Command::ConnectPair, connect(pair));
        promise_eq!(silent, Err((MailboxStatus::HardwareTimeout, 0)));
    });
    promise_eq!(fw.card().log, [(Operation::PairRead, id_index(pair))]);
    let gone = call::<_, PairStatus>(&mut fw, Command::QueryPair, Pair { pair });
    promise_eq!(gone, Err((MailboxStatus::NotFound, 0)));
    // A PairFail, and a PairClear: it is asked for again, and no pair is left alive.
    for answered in [0, 1] {
        let pair = open_pair(&mut fw, endpoint, 2).unwrap().pair;
        let _: Nothing = call(&mut fw, Command::ConnectPair, connect(pair)).unwrap();
        late(&mut fw, answered, &|fw| {
            let silent = call::<_, Nothing>(fw, Command::ClosePair, Pair { pair });
            promise_eq!(silent, Err((MailboxStatus::HardwareTimeout, 0)));
        });
        promise!(fw.card().pairs.is_empty());
        let gone = call::<_, PairStatus>(&mut fw, Command::QueryPair, Pair { pair });
        promise_eq!(gone, Err((MailboxStatus::NotFound, 0)));
    }
}

/// As it broke: the gates said late that they had a region, which they had not, and the firmware saw the answer and the time at once.
#[test]
pub fn an_answer_that_came_late_is_late_though_nobody_looked_before() {
    let mut fw = firmware();
    let register = RegisterRegion {
        domain: domain(&mut fw),
        rights: 3,
        address: 64,
        length: 64,
        space: FLAT_SPACE.into(),
    };
    let answered_at = fw.card().now + CONTROL_TIMEOUT;
    (fw.card().silent_until, fw.card().forgets) = (answered_at, 1);
    give(&mut fw, Command::RegisterRegion, register);
    settle(&mut fw);
    fw.card().now = answered_at;
    settle(&mut fw);
    let late = answer::<RegionKey>(&mut fw).expect("an answer");
    promise_eq!(late, Err((MailboxStatus::HardwareTimeout, 0)));
}

/// As it broke: the late answer to a clear was believed, and the place was used again while the gates still had the region.
#[test]
pub fn a_region_is_cleared_until_the_gates_answer_in_time_and_its_place_stays_taken() {
    for (answered_late, registers) in [(1, false), (3, false), (2, true)] {
        let mut fw = firmware();
        let domain = domain(&mut fw);
        let register = RegisterRegion {
            domain,
            rights: 3,
            address: 64,
            length: 64,
            space: FLAT_SPACE.into(),
        };
        let late = (MailboxStatus::HardwareTimeout, 0);
        if registers {
            // It was set all the same, and the host knows no key of it.
            fw.card().patience = 0;
            let silent = call::<_, RegionKey>(&mut fw, Command::RegisterRegion, register);
            promise_eq!(silent, Err(late));
        } else {
            let region: RegionKey = call(&mut fw, Command::RegisterRegion, register).unwrap();
            fw.card().patience = 0;
            let silent = call::<_, Nothing>(&mut fw, Command::DeregisterRegion, region);
            promise_eq!(silent, Err(late));
        }
        let close = |fw: &mut Unit| {
            let closed = call::<_, Nothing>(fw, Command::CloseDomain, DomainId { domain });
            closed.err().map(|(status, _)| status)
        };
        for k in 0..answered_late {
            promise_eq!(close(&mut fw), Some(MailboxStatus::Busy), "it is in use");
            // What was to be cleared isn't.
            let forgets = usize::from(!registers || k > 0);
            (fw.card().patience, fw.card().forgets) = (1, forgets);
            settle(&mut fw);
            promise_eq!(fw.card().regions.len(), 1);
            pass(&mut fw, CONTROL_TIMEOUT + 1);
        }
        fw.card().patience = usize::MAX;
        settle(&mut fw);
        promise!(fw.card().regions.is_empty());
        promise_eq!(close(&mut fw), None);
    }
}

/// As it broke: a step of a close that was answered late was taken for done.
#[test]
pub fn a_close_repeats_the_step_that_was_answered_late() {
    let steps = [
        Operation::EndpointStop,
        Operation::PairFail,
        Operation::EndpointFlush,
        Operation::PairClear,
        Operation::EndpointClear,
    ];
    for (answered, step) in steps.into_iter().enumerate() {
        let mut fw = firmware();
        let endpoint = endpoint(&mut fw).endpoint;
        let pair = open_pair(&mut fw, endpoint, 2).unwrap().pair;
        let _: Nothing = call(&mut fw, Command::ConnectPair, connect(pair)).unwrap();
        fw.card().patience = answered;
        let close = CloseEndpoint { endpoint };
        let silent = call::<_, Nothing>(&mut fw, Command::CloseEndpoint, close);
        promise_eq!(silent, Err((MailboxStatus::HardwareTimeout, 0)));
        fw.card().log.clear();
        (fw.card().patience, fw.card().forgets) = (usize::MAX, 1);
        settle(&mut fw);
        let done = fw.card().log.iter().map(|&(operation, _)| operation);
        let done: Vec<_> = done.filter(|&one| one != Operation::PairRead).collect();
        promise_eq!(done, steps[answered..], "{step}");
        promise!(fw.card().endpoints.is_empty() && fw.card().pairs.is_empty());
    }
}

#[test]
pub fn an_event_that_was_answered_late_is_raised_again_unless_its_pair_is_closed() {
    for closes in [false, true] {
        let mut fw = firmware();
        let endpoint = endpoint(&mut fw).endpoint;
        let connect = Connect {
            endpoint,
            credits: 1,
            slots: 64,
            remote_mac: 0x0a02,
            remote_endpoint: 0,
            timeout: 1000,
        };
        let PairId { pair, .. } = call(&mut fw, Command::Connect, connect).unwrap();
        fw.card().patience = 0;
        pass(&mut fw, CONTROL_TIMEOUT + 2000);
        if closes {
            let _: Nothing = call(&mut fw, Command::ClosePair, Pair { pair }).unwrap();
        }
        (fw.card().patience, fw.card().forgets) = (usize::MAX, 1);
        settle(&mut fw);
        let raised = fw.card().raised.iter().map(|&(_, cause, ..)| cause);
        let told = [EventCause::ConnectFailed.code()];
        promise_eq!(
            raised.collect::<Vec<_>>(),
            told[usize::from(closes)..],
            "closed: {closes}"
        );
    }
}

#[test]
pub fn the_gates_are_told_their_address_until_they_answer_in_time() {
    for late in [0, 1] {
        let mut gates = Gates::new(1, MAC);
        gates.patience = late;
        let mut fw = boot(gates, BUILD_ID);
        for _ in 0..2 {
            promise!(!fw.is_up());
            pass(&mut fw, CONTROL_TIMEOUT + 1);
            (fw.card().patience, fw.card().forgets) = (1, 1);
            settle(&mut fw);
        }
        fw.card().patience = usize::MAX;
        settle(&mut fw);
        pass(&mut fw, CONTROL_TIMEOUT + 1);
        promise!(fw.is_up());
        let told = [(Operation::CardSet, 0), (Operation::MatchSet, 0)];
        promise_eq!(fw.card().log, told);
    }
}

#[test]
pub fn an_endpoint_or_a_region_that_was_set_late_is_forgotten() {
    for answered in 0..6 {
        let mut fw = firmware();
        let domain = domain(&mut fw);
        fw.card().patience = answered;
        let opened = call::<_, EndpointId>(&mut fw, Command::OpenEndpoint, rings(domain));
        promise_eq!(opened.is_ok(), answered >= 5, "after {answered}");
        let register = RegisterRegion {
            domain,
            rights: 3,
            address: 64,
            length: 64,
            space: FLAT_SPACE.into(),
        };
        let late = call::<_, RegionKey>(&mut fw, Command::RegisterRegion, register);
        promise_eq!(late, Err((MailboxStatus::HardwareTimeout, 0)));
        fw.card().patience = usize::MAX;
        settle(&mut fw);
        let card = fw.card();
        promise_eq!(card.endpoints.len(), usize::from(opened.is_ok()));
        promise!(card.regions.is_empty());
        if let Ok(EndpointId { endpoint, .. }) = opened {
            let close = CloseEndpoint { endpoint };
            let _: Nothing = call(&mut fw, Command::CloseEndpoint, close).unwrap();
        }
        let closed = call::<_, Nothing>(&mut fw, Command::CloseDomain, DomainId { domain });
        promise_eq!(closed, Ok(Nothing {}), "nothing uses it");
    }
}

#[test]
pub fn the_gates_are_reset_before_anything_is_taken_for_granted() {
    let mut fw = firmware();
    let endpoint = endpoint(&mut fw).endpoint;
    let pair = open_pair(&mut fw, endpoint, 2).unwrap().pair;
    let _: Nothing = call(&mut fw, Command::ConnectPair, connect(pair)).unwrap();
    let mut gates = std::mem::replace(fw.card(), Gates::new(2, MAC));
    gates.log.clear();
    gates.delay = 1000;
    let mut fw = boot(gates, BUILD_ID);
    promise!(!fw.is_up(), "the reset takes its time");
    for _ in 0..3 {
        fw.card().now += 1000;
        settle(&mut fw);
    }
    promise!(fw.is_up());
    let told = [(Operation::CardSet, 0), (Operation::MatchSet, 0)];
    promise_eq!(fw.card().log, told);
    promise!(fw.card().endpoints.is_empty() && fw.card().pairs.is_empty());
}

#[test]
pub fn epochs_and_generations_go_on_over_a_restart_at_any_moment_and_start_anew_without_memory() {
    let mut fw = firmware();
    let first = endpoint(&mut fw);
    let mut gates = std::mem::replace(fw.card(), Gates::new(2, MAC));
    for _ in 0..20 {
        // The memory is torn while the epoch is being written: the other copy is whole.
        let before = gates.model.persistent;
        let mut fw = boot(gates, BUILD_ID);
        let next = endpoint(&mut fw);
        promise!(next.endpoint != first.endpoint);
        gates = std::mem::replace(fw.card(), Gates::new(3, MAC));
        let after = gates.model.persistent;
        let changed: Vec<_> = (0..after.len())
            .filter(|&k| before[k] != after[k])
            .collect();
        promise!(!changed.is_empty());
        let torn = changed.len() - 2;
        gates.model.persistent[changed[torn]] = before[changed[torn]];
    }
    gates.rng.fill(&mut gates.model.persistent);
    gates.epochs.clear();
    let mut fw = boot(gates, BUILD_ID);
    promise_eq!(endpoint(&mut fw).epoch, 1);
}

/// As it broke: firmware that started again while the mailbox was idle looked to its host as if it had run all the time.
#[test]
pub fn each_start_has_the_number_after_that_of_the_start_before() {
    let mut gates = Gates::new(5, MAC);
    let next = |_| {
        let blank = Gates::new(6, MAC);
        let mut fw = boot(std::mem::replace(&mut gates, blank), BUILD_ID);
        gates = std::mem::replace(fw.card(), Gates::new(6, MAC));
        fw.start_number()
    };
    let numbers: Vec<u32> = (0..4).map(next).collect();
    let after = |last: u32| last.checked_add(1).unwrap_or(1);
    promise!(!numbers.contains(&0));
    promise!(numbers.windows(2).all(|two| two[1] == after(two[0])));
}

#[test]
fn an_epoch_wraps_and_is_never_0() {
    let mut fw = firmware();
    let domain = domain(&mut fw);
    let mut last = 0;
    for _ in 0..0x1_0010 {
        let opened = call(&mut fw, Command::OpenEndpoint, rings(domain));
        let EndpointId { endpoint, epoch } = opened.unwrap();
        promise!(epoch != 0);
        promise!(epoch == last + 1 || (last, epoch) == (0xffff, 1));
        last = epoch;
        let _: Nothing = call(&mut fw, Command::CloseEndpoint, CloseEndpoint { endpoint }).unwrap();
    }
}

fn reserve(fw: &mut Unit, endpoint: u32, pairs: u32, credits: u32) -> Result<Nothing, Refusal> {
    let reserve = Reserve {
        endpoint,
        pairs,
        credits,
    };
    call(fw, Command::Reserve, reserve)
}

#[test]
fn a_reservation_gets_room_for_all_or_none_and_says_what_there_is() {
    let mut fw = firmware();
    let (first, second) = (endpoint(&mut fw).endpoint, endpoint(&mut fw).endpoint);
    // 8 pairs, 64 envelopes in units of eight.
    let pairs = Err((MailboxStatus::NoResource, 8));
    promise_eq!(reserve(&mut fw, first, 9, 1), pairs);
    let envelopes = Err((MailboxStatus::NoEnvelopes, 16));
    promise_eq!(reserve(&mut fw, first, 3, 17), envelopes);
    promise_eq!(reserve(&mut fw, first, 3, 10), Ok(Nothing {}));
    // Nobody else gets what is set aside.
    promise_eq!(
        open_pair(&mut fw, second, 17),
        Err((MailboxStatus::NoEnvelopes, 16))
    );
    open_pair(&mut fw, second, 9).unwrap();
    let full = Err((MailboxStatus::NoEnvelopes, 0));
    promise_eq!(open_pair(&mut fw, second, 1), full);
    // It is there whatever happens, and again when a pair is closed.
    let mut pairs: Vec<_> = (0..3)
        .map(|_| open_pair(&mut fw, first, 10).expect("reserved").pair)
        .collect();
    promise_eq!(open_pair(&mut fw, first, 1), full);
    let pair = pairs.remove(2);
    let _: Nothing = call(&mut fw, Command::ClosePair, Pair { pair }).unwrap();
    promise_eq!(open_pair(&mut fw, second, 1), full);
    pairs.push(open_pair(&mut fw, first, 2).expect("it came back").pair);
    promise_eq!(open_pair(&mut fw, second, 1), full);
    // One that replaces it counts what is open as open.
    promise_eq!(
        reserve(&mut fw, first, 5, 1),
        Err((MailboxStatus::NoResource, 4))
    );
    promise_eq!(
        reserve(&mut fw, first, 2, 1),
        Err((MailboxStatus::NoEnvelopes, 0))
    );
    promise_eq!(reserve(&mut fw, first, 0, 0), Ok(Nothing {}));
    open_pair(&mut fw, second, 1).expect("what a pair held beyond its own is free");
    for credits in [0, 65, u32::MAX] {
        let refused = Err((MailboxStatus::InvalidArgument, 2));
        promise_eq!(reserve(&mut fw, first, 1, credits), refused);
    }
}

#[test]
pub fn more_disconnects_than_there_is_room_for_are_refused() {
    let mut fw = boot(Gates::of(sizes(32, 256, 4), 1, MAC), BUILD_ID);
    let endpoint = endpoint(&mut fw).endpoint;
    fw.card().busy = 100_000;
    for k in 0..=MOST_DISCONNECTS {
        let pair = open_pair(&mut fw, endpoint, 1).unwrap().pair;
        let _: Nothing = call(&mut fw, Command::ConnectPair, connect(pair)).unwrap();
        let end = Disconnect { pair, timeout: 0 };
        let begun = call::<_, Nothing>(&mut fw, Command::Disconnect, end);
        let promised = match k < MOST_DISCONNECTS {
            true => Ok(Nothing {}),
            false => Err((MailboxStatus::Busy, 0)),
        };
        promise_eq!(begun, promised);
    }
}

#[test]
pub fn a_pair_that_the_gates_have_failed_is_not_failed_again() {
    let mut fw = firmware();
    let endpoint = endpoint(&mut fw).endpoint;
    let pair = open_pair(&mut fw, endpoint, 2).unwrap().pair;
    let _: Nothing = call(&mut fw, Command::ConnectPair, connect(pair)).unwrap();
    let link_error = Status::LinkError.code();
    fw.card().fail(id_index(pair), link_error.into());
    settle(&mut fw);
    let noted = |one: &AuditEntry| one.kind == u32::from(AuditKind::PairFailed.code());
    promise_eq!(audit(&mut fw).into_iter().filter(noted).count(), 1);
    fw.card().log.clear();
    let _: Nothing = call(&mut fw, Command::ClosePair, Pair { pair }).unwrap();
    promise_eq!(fw.card().log, [(Operation::PairClear, id_index(pair))]);
}

#[test]
fn the_ends_of_a_connection_are_refused_what_they_can_not_do() {
    let mut fw = firmware();
    let endpoint = endpoint(&mut fw).endpoint;
    let good = Connect {
        endpoint,
        credits: 1,
        slots: 64,
        remote_mac: 0x0a02,
        remote_endpoint: 0,
        timeout: 0,
    };
    let (low, wild) = (0x8000_0000, u32::MAX);
    let broken = [
        (1, Connect { credits: 0, ..good }),
        (2, Connect { slots: 8, ..good }),
        (
            3,
            Connect {
                remote_mac: 0xffff_ffff_ffff,
                ..good
            },
        ),
        (
            4,
            Connect {
                remote_endpoint: wild,
                ..good
            },
        ),
        (
            5,
            Connect {
                timeout: low,
                ..good
            },
        ),
    ];
    for (position, connect) in broken {
        let refused = call::<_, PairId>(&mut fw, Command::Connect, connect);
        promise_eq!(refused, Err((MailboxStatus::InvalidArgument, position)));
    }
    let accept = Accept {
        endpoint,
        credits: 2,
        slots: 64,
    };
    let offer: PairId = call(&mut fw, Command::Accept, accept).unwrap();
    let disconnect = Disconnect {
        pair: offer.pair,
        timeout: 0,
    };
    let busy = call::<_, Nothing>(&mut fw, Command::Disconnect, disconnect);
    promise_eq!(busy, Err((MailboxStatus::Busy, 0)), "not connected");
    let by_hand = call::<_, Nothing>(&mut fw, Command::ConnectPair, connect(offer.pair));
    promise_eq!(by_hand, Err((MailboxStatus::Busy, 0)), "an offer");
    promise!(fw.card().pairs.is_empty());
}

#[test]
pub fn a_connect_that_nobody_answers_times_out_when_it_was_told_to() {
    let mut fw = firmware();
    let endpoint = endpoint(&mut fw).endpoint;
    let connect = Connect {
        endpoint,
        credits: 1,
        slots: 64,
        remote_mac: 0x0a02,
        remote_endpoint: 0,
        timeout: 300_000,
    };
    let PairId { pair, .. } = call(&mut fw, Command::Connect, connect).unwrap();
    let state =
        |fw: &mut Unit| -> PairStatus { call(fw, Command::QueryPair, Pair { pair }).unwrap() };
    pass(&mut fw, 290_000);
    let status = state(&mut fw);
    promise_eq!(status.state, u32::from(PairState::Connecting.code()));
    promise_eq!((status.remote_mac, status.remote_endpoint), (0x0a02, 0));
    pass(&mut fw, 10_001);
    let status = state(&mut fw);
    promise_eq!(status.state, u32::from(PairState::Refused.code()));
    promise_eq!(status.reason, u32::from(ConnectReason::TimedOut.code()));
    // Asked at first, and then ever more seldom.
    promise_eq!(fw.card().outbox.len(), 4);
    let told = (
        id_index(endpoint),
        EventCause::ConnectFailed.code(),
        id_index(pair),
        u64::from(status.reason),
    );
    promise_eq!(fw.card().raised, [told]);
}

#[test]
pub fn a_connection_made_by_hand_can_be_ended_in_an_orderly_way() {
    let mut fw = firmware();
    let endpoint = endpoint(&mut fw).endpoint;
    let pair = open_pair(&mut fw, endpoint, 2).unwrap().pair;
    fw.card().busy = 100_000;
    let _: Nothing = call(&mut fw, Command::ConnectPair, connect(pair)).unwrap();
    let end = Disconnect { pair, timeout: 0 };
    let _: Nothing = call(&mut fw, Command::Disconnect, end).unwrap();
    pass(&mut fw, 90_000);
    promise!(fw.card().outbox.is_empty(), "it drains first");
    pass(&mut fw, 20_000);
    promise_eq!(fw.card().outbox.len(), 1);
    let ended = u64::from(Status::PeerClosed.code());
    let held = fw.card().pairs[&id_index(pair)];
    promise_eq!(held.failed_with, Some(ended));
    pass(&mut fw, TELL_TIMEOUT);
    let status: PairStatus = call(&mut fw, Command::QueryPair, Pair { pair }).unwrap();
    promise_eq!(status.state, u32::from(PairState::Disconnected.code()));
    let cause = EventCause::Disconnected.code();
    let told = (id_index(endpoint), cause, id_index(pair), 0);
    promise_eq!(fw.card().raised, [told]);
    // And again, which changes nothing.
    let _: Nothing = call(&mut fw, Command::Disconnect, end).unwrap();
    let _: Nothing = call(&mut fw, Command::ClosePair, Pair { pair }).unwrap();
    promise!(fw.card().pairs.is_empty());
}

#[test]
fn the_audit_ring_folds_repetitions_and_keeps_the_latest_and_one_of_each_kind() {
    let mut fw = firmware();
    let read = |fw: &mut Unit, entry| -> AuditEntry {
        call(fw, Command::ReadAudit, AuditIndex { entry }).unwrap()
    };
    let started = read(&mut fw, 0);
    promise_eq!(started.kind, u32::from(AuditKind::Started.code()));
    promise_eq!((started.info, started.count), (BUILD_ID as u32, 1));
    for _ in 0..1000 {
        let _ = call::<_, Nothing>(&mut fw, Command::ClosePair, Pair { pair: 77 });
    }
    let refused = read(&mut fw, 1);
    let code = u32::from(Command::ClosePair.code());
    promise_eq!((refused.object, refused.count), (code, 1000));
    promise_eq!((refused.entry, refused.next), (1000, 1001));
    promise_eq!(read(&mut fw, 1001).count, 0, "there is none yet");
    let domain = domain(&mut fw);
    for _ in 0..100 {
        let opened = call(&mut fw, Command::OpenEndpoint, rings(domain));
        let EndpointId { endpoint, .. } = opened.unwrap();
        let _: Nothing = call(&mut fw, Command::CloseEndpoint, CloseEndpoint { endpoint }).unwrap();
    }
    let (oldest, refused) = (read(&mut fw, 0), read(&mut fw, 1));
    promise_eq!(
        oldest,
        AuditEntry {
            next: oldest.next,
            ..started
        }
    );
    promise_eq!(refused.count, 1000);
    let opened = read(&mut fw, refused.entry + 1);
    promise_eq!(opened.entry, opened.next - 30, "the latest of the others");
}

/// All that the audit has, oldest first.
fn audit(fw: &mut Unit) -> Vec<AuditEntry> {
    let mut entries: Vec<AuditEntry> = Vec::new();
    loop {
        let entry = entries.last().map_or(0, |last| last.entry + 1);
        let found: AuditEntry = call(fw, Command::ReadAudit, AuditIndex { entry }).unwrap();
        if found.count == 0 {
            return entries;
        }
        entries.push(found);
    }
}

/// The gates tell of a refusal.
fn refuse(fw: &mut Unit, key: u32, count: u16) {
    let refusal = event::Refusal {
        key,
        domain: 3,
        rights: 2,
        count,
    };
    fw.card().told.push_back(GateEvent::AccessRefused(refusal));
    settle(fw);
}

/// As it broke: only what repeated the newest entry was folded, and two kinds that alternated drove out all others. Losses
/// of another number were another entry each.
#[test]
pub fn no_storm_of_some_kinds_drives_another_out_of_the_audit() {
    let mut fw = firmware();
    let _ = call::<_, Nothing>(&mut fw, Command::ClosePair, Pair { pair: 77 });
    for _ in 0..1000 {
        refuse(&mut fw, 0, 3);
        let cause = EventCause::RingError.code();
        fw.card()
            .told
            .push_back(GateEvent::Other { cause, pair: 5 });
        settle(&mut fw);
    }
    for key in 1..=64 {
        refuse(&mut fw, key, 1);
    }
    let kept = audit(&mut fw);
    let has = |kind: AuditKind, object, count| {
        let is = |one: &AuditEntry| (one.kind, one.object, one.count);
        let wanted = (u32::from(kind.code()), object, count);
        kept.iter().any(|one| is(one) == wanted)
    };
    let close = u32::from(Command::ClosePair.code());
    promise!(has(AuditKind::CommandRefused, close, 1));
    promise!(has(AuditKind::GateEvent, 5, 1000));
    // As many of the kind as there is room for, the newest.
    promise_eq!(kept.len(), 32);
    promise!(has(AuditKind::AccessRefused, 64, 1) && !has(AuditKind::AccessRefused, 1, 1));
}

#[test]
fn a_reader_who_reads_on_finds_what_is_new_and_what_has_repeated() {
    let mut fw = firmware();
    let read = |fw: &mut Unit, entry| -> AuditEntry {
        call(fw, Command::ReadAudit, AuditIndex { entry }).unwrap()
    };
    refuse(&mut fw, 1, 1);
    let next = read(&mut fw, 0).next;
    promise_eq!((next, read(&mut fw, next).count), (2, 0));
    fw.card().now += 10;
    refuse(&mut fw, 1, 1);
    let repeated = read(&mut fw, next);
    let time = fw.card().now;
    promise_eq!(
        (repeated.entry, repeated.count, repeated.time),
        (2, 2, time)
    );
    promise_eq!(read(&mut fw, 3).count, 0);
    // Who asks for what has not come, of a firmware that has started again, gets the oldest.
    promise_eq!(read(&mut fw, 99).entry, 0);
}

/// As it broke: nobody but the process that asked heard of a refusal.
#[test]
fn what_a_region_refused_is_in_the_audit_with_how_often() {
    let mut fw = firmware();
    for count in [1, 0xffff, 7] {
        refuse(&mut fw, 0x1234_5678, count);
    }
    let found: AuditEntry = call(&mut fw, Command::ReadAudit, AuditIndex { entry: 1 }).unwrap();
    promise_eq!(found.kind, u32::from(AuditKind::AccessRefused.code()));
    promise_eq!((found.object, found.info), (0x1234_5678, 0x203));
    promise_eq!(found.count, 1 + 0xffff + 7);
}

#[test]
pub fn a_flood_of_events_holds_up_no_command() {
    let mut fw = firmware();
    endpoint(&mut fw);
    let domain = domain(&mut fw);
    fw.card().flood = true;
    give(&mut fw, Command::OpenEndpoint, rings(domain));
    let mut steps = 0;
    let opened: Result<EndpointId, _> = loop {
        // It never comes to rest, and is to be done with the command all the same.
        promise!(fw.step() && steps < 1000, "no answer after {steps} steps");
        steps += 1;
        fw.card().now += 1;
        if let Some(answer) = answer(&mut fw) {
            break answer;
        }
    };
    promise!(opened.is_ok(), "{opened:?}");
}

#[test]
pub fn events_that_were_lost_are_made_up_by_reading() {
    let mut fw = firmware();
    let endpoint = endpoint(&mut fw).endpoint;
    let pair = open_pair(&mut fw, endpoint, 2).unwrap().pair;
    let _: Nothing = call(&mut fw, Command::ConnectPair, connect(pair)).unwrap();
    let card = fw.card();
    card.loses_events = true;
    card.fail(id_index(pair), u64::from(Status::LinkError.code()));
    card.log.clear();
    settle(&mut fw);
    promise_eq!(fw.card().log, [(Operation::PairRead, id_index(pair))]);
    let end = Disconnect { pair, timeout: 0 };
    let _: Nothing = call(&mut fw, Command::Disconnect, end).unwrap();
    fw.card().log.clear();
    settle(&mut fw);
    promise!(fw.card().log.is_empty(), "it is known to have failed");
}

#[test]
fn a_pair_behind_one_that_needs_nothing_is_not_slept_over() {
    // It was: taking the first out of the work ended the search, the processor slept, and `ClosePair` was answered `HardwareTimeout`.
    let mut fw = firmware();
    let endpoint = endpoint(&mut fw).endpoint;
    let [first, second] = [(); 2].map(|()| {
        let pair = open_pair(&mut fw, endpoint, 2).unwrap().pair;
        let _: Nothing = call(&mut fw, Command::ConnectPair, connect(pair)).unwrap();
        pair
    });
    let failed = u64::from(Status::LinkError.code());
    fw.card().silent_until = fw.card().now + 1000;
    give(&mut fw, Command::ClosePair, Pair { pair: second });
    settle(&mut fw);
    // The gates have done `PairFail` of the second, and the first has failed meanwhile.
    fw.card().fail(id_index(first), failed);
    fw.card().now += 1000;
    settle(&mut fw);
    let answer: Option<Result<Nothing, Refusal>> = answer(&mut fw);
    answer.expect("an answer at the first rest").unwrap();
}

#[test]
fn a_card_with_more_than_there_is_room_for_has_as_much_as_that() {
    let mut fw = boot(Gates::of(sizes(2048, 64, 4096), 1, MAC), BUILD_ID);
    let identity: Identity = call(&mut fw, Command::Identify, Nothing {}).unwrap();
    promise_eq!(identity.pairs as usize, abi::limits::MAX_PAIRS);
    promise_eq!(identity.regions as usize, abi::limits::MAX_REGIONS);
}

/// A host that sends anything, mostly plausible commands, often with a word gone wild, to gates that fall silent now and then.
#[test]
fn no_sequence_of_commands_makes_the_gates_complain() {
    let mut reached = Vec::new();
    for seed in 0..300 {
        println!("seed {seed}");
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let card = CardSizes {
            capabilities: CAPABILITY_RULES | CAPABILITY_GRANTS | CAPABILITY_SENDERS,
            ..sizes(8, 64, 4)
        };
        let mut fw = boot(Gates::of(card, seed, MAC), BUILD_ID);
        fw.card().forgets_late = true;
        let mut ids = vec![0, 1];
        let (mut region, mut pair, mut key) = (0, 0, [0, 0]);
        for _ in 0..400 {
            let mut words: [u32; MAILBOX_WORDS] = std::array::from_fn(|_| rng.random_range(0..3));
            words[0] = match rng.random_range(0..37) {
                code @ 0..19 => code,
                19 => Command::SetRule.code().into(),
                20 => Command::ClearRule.code().into(),
                33 => Command::SetPairTimes.code().into(),
                34 => Command::ReadPairCounter.code().into(),
                35 => Command::SetShutOut.code().into(),
                36.. => Command::ReadShutOut.code().into(),
                code => u32::from(Command::Grant.code()) + (code - 21) % 6,
            };
            let command = Command::from_code(words[0] as u8);
            let arguments = &mut words[1..];
            arguments[0] = ids[rng.random_range(ids.len().saturating_sub(12)..ids.len())];
            match command {
                Some(Command::OpenEndpoint) => rings(arguments[0]).to_words(arguments),
                Some(Command::OpenPair | Command::Accept | Command::Connect) => {
                    arguments[2] = rng.random::<u32>() << 6;
                    arguments[4] = 2;
                }
                Some(Command::ConnectPair) => {
                    let named = [arguments[0], pair][rng.random_range(0..2)];
                    connect(named).to_words(arguments);
                }
                Some(Command::SetRule) => {
                    arguments[6] = rng.random_range(1..4);
                    arguments[7..10].fill(0);
                }
                Some(Command::RegisterRegion) => arguments[1] += 1 + 12 * rng.random_range(0..2),
                Some(Command::Grant) => {
                    arguments[..4].copy_from_slice(&[
                        region,
                        pair,
                        4,
                        [0, 1, 1, 2, 3][rng.random_range(0..5)],
                    ]);
                    arguments[5] = 0;
                    (arguments[6], arguments[7]) = (1, 0);
                }
                Some(Command::Share | Command::Revoke) => {
                    arguments[..3].copy_from_slice(&[key[0], key[1], pair]);
                }
                Some(
                    Command::RevokePeer
                    | Command::ReadPairCounter
                    | Command::SetShutOut
                    | Command::ReadShutOut,
                ) => arguments[0] = pair,
                Some(Command::SetPairTimes) => {
                    arguments[0] = pair;
                    arguments[2] += 10 * rng.random_range(0..3);
                    arguments[5] %= 2;
                }
                _ => {}
            }
            if rng.random_ratio(1, 6) {
                words[rng.random_range(1..16)] = rng.random();
            }
            let now = fw.card().now;
            if rng.random_ratio(1, 50) {
                fw.card().silent_until = now + rng.random_range(0..3 * CONTROL_TIMEOUT);
            }
            fw.command(&words);
            let code = words[0];
            for _ in 0..1000 {
                settle(&mut fw);
                let Some(answer) = fw.take_answer() else {
                    fw.card().now += 1 << 14;
                    continue;
                };
                promise_eq!(answer.command, code);
                if answer.status == MailboxStatus::Ok && answer.count > 1 {
                    match command {
                        Some(Command::RegisterRegion) => region = answer.words[1],
                        Some(Command::OpenPair) => pair = answer.words[1],
                        Some(Command::Grant) => key = [answer.words[1], answer.words[2]],
                        _ => {}
                    }
                    ids.push(answer.words[1]);
                }
                break;
            }
            promise!(fw.is_free(), "never answered");
        }
        reached.extend(fw.card().log.iter().map(|&(operation, _)| operation));
    }
    reached.sort_unstable();
    reached.dedup();
    promise_eq!(reached, Operation::ALL, "the commands never got that far");
}
