//! Grants: what may be granted, when it ends, and what the gates are told of it.

use crate::breaks::{promise, promise_eq};
use crate::commands::{connect, domain, open_pair, rings};
use crate::gates::{Gates, Refusal, Unit, answer, boot, call, give, pass, settle, sizes};
use abi::capability::{self, CAPABILITY_GRANTS, CAPABILITY_SENDERS};
use abi::control::{
    AccessReport, COVER_CONTEXT, COVER_DOMAIN, COVER_PAGES, COVER_PAIR, COVER_REGION, FenceSetup,
    GRANT_ANY_PEER, GRANT_ONE_SHOT, GRANT_SHARED, Operation, PAGE_BITS, RIGHT_LOCAL_READ,
    RIGHT_REMOTE_ATOMIC, RIGHT_REMOTE_READ, RIGHT_REMOTE_WRITE, key_index,
};
use abi::key::{remote_key_index, remote_key_tag};
use abi::limits::FLAT_SPACE;
use abi::mailbox::{
    AuditEntry, AuditIndex, AuditKind, Command, DomainId, EndpointId, Fence, Grant, NO_CONTEXT,
    NO_PAIR, Nothing, OpenPair, Pair, PairId, RegionKey, RegisterRegion, RemoteKey, Share,
    UNDRAINED_READ, UNDRAINED_WRITE, Undrained, Words, id_index, undrained_info,
};
use abi::status::MailboxStatus;
use card_model::matching::Sizes;
use card_model::{CardSizes, Refused, RemoteAccess};
use firmware_core::CONTROL_TIMEOUT;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::HashSet;

const BASE: u64 = 0x10_0000;
const LENGTH: u64 = 0x1000;
const RIGHTS: u8 = RIGHT_REMOTE_WRITE | RIGHT_REMOTE_READ;

/// A card with a region and pairs that are connected.
struct Host {
    fw: Unit,
    domain: u32,
    endpoint: u32,
    region: u32,
    pairs: Vec<u32>,
}

fn card(capabilities: u32, seed: u64) -> Unit {
    let card = CardSizes {
        lists: Sizes::new(3, 8, 24, 8, 40),
        capabilities,
        ..sizes(8, 64, 4)
    };
    boot(Gates::of(card, seed, 0x0605_0403_0202), 1)
}

impl Host {
    fn new(pairs: usize) -> Self {
        Self::with_seed(pairs, 1)
    }

    fn with_seed(pairs: usize, seed: u64) -> Self {
        let mut fw = card(capability::ALL, seed);
        let domain = domain(&mut fw);
        let mut host = Self {
            endpoint: open(&mut fw, domain),
            region: register(&mut fw, domain, RIGHTS).unwrap(),
            fw,
            domain,
            pairs: Vec::new(),
        };
        for _ in 0..pairs {
            host.connect();
        }
        host
    }

    /// Connects one more pair.
    fn connect(&mut self) -> u32 {
        let pair = joined(&mut self.fw, self.endpoint);
        self.pairs.push(pair);
        pair
    }

    fn asked(&self, pair: u32) -> Grant {
        Grant {
            region: self.region,
            pair,
            rights: RIGHTS.into(),
            flags: 0,
            offset: 0x100,
            length: 0x200,
            lasts: 0,
        }
    }

    fn grant(&mut self, asked: Grant) -> Result<u64, Refusal> {
        let key: Result<RemoteKey, _> = call(&mut self.fw, Command::Grant, asked);
        key.map(|key| key.key)
    }

    fn call<A: abi::mailbox::Words>(
        &mut self,
        command: Command,
        argument: A,
    ) -> Result<Nothing, Refusal> {
        call(&mut self.fw, command, argument)
    }

    /// What the gates say to an access of the peer of a pair.
    fn access(&mut self, pair: u32, key: u64) -> Result<u64, Refused> {
        let access = RemoteAccess {
            pair: id_index(pair),
            key,
            rights: RIGHT_REMOTE_WRITE,
            offset: 0x100,
            length: 0x200,
        };
        let now = self.fw.card().now.into();
        self.fw.card().model.gates.find_remote(&access, now)
    }

    /// The peer of a pair makes the access that a key for one is for: where it goes.
    fn use_once(&mut self, pair: u32, key: u64) -> Option<u64> {
        let access = RemoteAccess {
            pair: id_index(pair),
            key,
            rights: RIGHT_REMOTE_WRITE,
            offset: 0x100,
            length: 0x200,
        };
        let now = self.fw.card().now.into();
        self.fw.card().model.gates.allow_remote(&access, now)
    }

    /// Control requests of an operation so far.
    fn told(&mut self, operation: Operation) -> usize {
        let log = &self.fw.card().log;
        log.iter().filter(|(told, _)| *told == operation).count()
    }

    /// The entries of a kind.
    fn audits(&mut self, kind: AuditKind) -> Vec<AuditEntry> {
        let mut found = Vec::new();
        let mut entry = 0;
        loop {
            let read: AuditEntry =
                call(&mut self.fw, Command::ReadAudit, AuditIndex { entry }).unwrap();
            if read.entry == read.next {
                return found;
            }
            if read.kind == u32::from(kind.code()) {
                found.push(read);
            }
            entry = read.entry + 1;
        }
    }
}

fn open(fw: &mut Unit, domain: u32) -> u32 {
    let opened: EndpointId = call(fw, Command::OpenEndpoint, rings(domain)).unwrap();
    opened.endpoint
}

fn register(fw: &mut Unit, domain: u32, rights: u8) -> Result<u32, Refusal> {
    let asked = RegisterRegion {
        domain,
        rights: rights.into(),
        address: BASE,
        length: LENGTH,
        space: FLAT_SPACE.into(),
    };
    let key: Result<RegionKey, _> = call(fw, Command::RegisterRegion, asked);
    key.map(|key| key.key)
}

fn joined(fw: &mut Unit, endpoint: u32) -> u32 {
    let PairId { pair, .. } = open_pair(fw, endpoint, 2).unwrap();
    let Nothing {} = call(fw, Command::ConnectPair, connect(pair)).unwrap();
    pair
}

fn argument<R>(position: u32) -> Result<R, Refusal> {
    Err((MailboxStatus::InvalidArgument, position))
}

#[test]
fn a_key_is_good_for_its_peer_until_it_is_revoked() {
    let mut host = Host::new(2);
    let [one, other] = [host.pairs[0], host.pairs[1]];
    let keys = [one, other].map(|pair| {
        let asked = host.asked(pair);
        host.grant(asked).unwrap()
    });
    promise_eq!(host.access(one, keys[0]), Ok(BASE + 0x100));
    promise_eq!(host.access(other, keys[1]), Ok(BASE + 0x100));
    promise_eq!(host.access(other, keys[0]), Err(Refused::Holder));
    let key = |at: usize| RemoteKey { key: keys[at] };
    promise_eq!(host.call(Command::Revoke, key(0)), Ok(Nothing {}));
    promise_eq!(host.access(one, keys[0]), Err(Refused::NoGrant));
    promise_eq!(host.access(other, keys[1]), Ok(BASE + 0x100));
    let gone = Err((MailboxStatus::NotFound, 0));
    promise_eq!(host.call(Command::Revoke, key(0)), gone);
    let guess = RemoteKey {
        key: keys[1] ^ 1 << 16,
    };
    promise_eq!(host.call(Command::Revoke, guess), gone);
}

#[test]
pub fn a_fence_covers_what_is_named_and_no_other_domain() {
    let mut host = Host::new(2);
    let pair = host.pairs[1];
    let strange = domain(&mut host.fw);
    let region = register(&mut host.fw, strange, RIGHTS).unwrap();
    let endpoint = open(&mut host.fw, strange);
    let stranger = joined(&mut host.fw, endpoint);
    let all = Fence {
        domain: host.domain,
        region: host.region,
        pair,
        context: 7,
        address: BASE + 0xfff,
        length: 2,
        ..Fence::default()
    };
    let of_domain = FenceSetup {
        covers: COVER_DOMAIN,
        domain: id_index(host.domain) as u8,
        ..FenceSetup::default()
    };
    let of = |cover: u8| FenceSetup {
        covers: COVER_DOMAIN | cover,
        ..of_domain
    };
    let each = [
        (0, of_domain),
        (
            COVER_REGION,
            FenceSetup {
                region: key_index(host.region),
                ..of(COVER_REGION)
            },
        ),
        (
            COVER_PAIR,
            FenceSetup {
                pair: id_index(pair),
                ..of(COVER_PAIR)
            },
        ),
        (
            COVER_CONTEXT,
            FenceSetup {
                context: 7,
                ..of(COVER_CONTEXT)
            },
        ),
        (
            COVER_PAGES,
            FenceSetup {
                first_page: BASE >> PAGE_BITS,
                last_page: (BASE >> PAGE_BITS) + 1,
                ..of(COVER_PAGES)
            },
        ),
    ];
    for (cover, setup) in each {
        let covers = cover.into();
        // What isn't named isn't looked at.
        let fence = match cover {
            0 => Fence {
                domain: host.domain,
                ..Fence::default()
            },
            _ => Fence { covers, ..all },
        };
        promise_eq!(host.call(Command::Fence, fence), Ok(Nothing {}));
        promise_eq!(host.fw.card().fences.last(), Some(&setup));
    }
    // It is answered when the gates have done it.
    let now = host.fw.card().now;
    host.fw.card().silent_until = now + 1000;
    give(&mut host.fw, Command::Fence, all);
    settle(&mut host.fw);
    let early = answer::<Nothing>(&mut host.fw);
    promise!(early.is_none(), "the gates haven't answered");
    pass(&mut host.fw, 2000);
    promise_eq!(answer(&mut host.fw), Some(Ok(Nothing {})));
    // And the gates hear nothing of what can't be meant.
    let done = host.told(Operation::Fence);
    let named = |cover: u8| Fence {
        covers: cover.into(),
        ..all
    };
    let gone = Err((MailboxStatus::NotFound, 0));
    let wrong = [
        (Fence { domain: !0, ..all }, gone),
        (named(COVER_DOMAIN), argument(1)),
        (
            Fence {
                covers: 1 << 8,
                ..all
            },
            argument(1),
        ),
        (
            Fence {
                region,
                ..named(COVER_REGION)
            },
            argument(2),
        ),
        (
            Fence {
                region: host.region ^ 1 << 12,
                ..named(COVER_REGION)
            },
            gone,
        ),
        (
            Fence {
                pair: stranger,
                ..named(COVER_PAIR)
            },
            argument(3),
        ),
        (
            Fence {
                pair: pair ^ 1 << 16,
                ..named(COVER_PAIR)
            },
            gone,
        ),
        (
            Fence {
                context: 1 << 16,
                ..named(COVER_CONTEXT)
            },
            argument(4),
        ),
        (
            Fence {
                length: 0,
                ..named(COVER_PAGES)
            },
            argument(6),
        ),
        (
            Fence {
                length: !0,
                ..named(COVER_PAGES)
            },
            argument(6),
        ),
    ];
    for (fence, refusal) in wrong {
        promise_eq!(host.call(Command::Fence, fence), refusal);
    }
    promise_eq!(host.told(Operation::Fence), done);
}

#[test]
fn a_card_that_has_no_grants_says_so() {
    let mut fw = card(capability::ALL & !CAPABILITY_GRANTS, 1);
    let domain = domain(&mut fw);
    let lacks: Refusal = (MailboxStatus::Unsupported, CAPABILITY_GRANTS);
    promise_eq!(register(&mut fw, domain, RIGHTS), Err(lacks));
    let fence: Result<Nothing, _> = call(&mut fw, Command::Fence, Fence::default());
    promise_eq!(fence, Err(lacks));
    let grant: Result<RemoteKey, _> = call(&mut fw, Command::Grant, Grant::default());
    promise_eq!(grant, Err(lacks));
}

/// A key of the lower level: whoever is connected to the domain may use it, then and later, and it ends by itself alone.
#[test]
fn a_key_for_any_peer_is_good_for_all_of_its_domain_until_it_is_revoked() {
    let mut host = Host::new(2);
    let DomainId { domain: strange } = call(&mut host.fw, Command::OpenDomain, Nothing {}).unwrap();
    let stranger = open(&mut host.fw, strange);
    let strangers = joined(&mut host.fw, stranger);
    let asked = Grant {
        flags: GRANT_ANY_PEER.into(),
        ..host.asked(NO_PAIR)
    };
    let key = host.grant(asked).unwrap();
    let later = host.connect();
    for pair in [host.pairs[0], host.pairs[1], later] {
        promise_eq!(host.access(pair, key), Ok(BASE + 0x100));
    }
    promise_eq!(host.access(strangers, key), Err(Refused::Domain));
    // A peer that is revoked is still one of the domain's, and one that has failed comes back as that.
    let pair = host.pairs[0];
    promise_eq!(
        host.call(Command::RevokePeer, Pair { pair }),
        Ok(Nothing {})
    );
    promise_eq!(host.access(pair, key), Ok(BASE + 0x100));
    promise_eq!(
        host.call(Command::DeclareFailed, Pair { pair }),
        Ok(Nothing {})
    );
    pass(&mut host.fw, 1000);
    promise_eq!(host.access(pair, key), Err(Refused::Closed));
    promise_eq!(host.call(Command::ClosePair, Pair { pair }), Ok(Nothing {}));
    let again = host.connect();
    promise_eq!(id_index(again), id_index(pair));
    promise_eq!(host.access(again, key), Ok(BASE + 0x100));
    promise_eq!(
        host.call(Command::Revoke, RemoteKey { key }),
        Ok(Nothing {})
    );
    for pair in [again, host.pairs[1], later] {
        promise_eq!(host.access(pair, key), Err(Refused::NoGrant));
    }
}

#[test]
pub fn a_card_that_can_not_tell_senders_apart_makes_keys_for_any_only() {
    let mut fw = card(capability::ALL & !CAPABILITY_SENDERS, 1);
    let domain = domain(&mut fw);
    let endpoint = open(&mut fw, domain);
    let region = register(&mut fw, domain, RIGHTS).unwrap();
    let pair = joined(&mut fw, endpoint);
    let mut host = Host {
        fw,
        domain,
        endpoint,
        region,
        pairs: vec![pair],
    };
    let lacks: Refusal = (MailboxStatus::Unsupported, CAPABILITY_SENDERS);
    for flags in [0, GRANT_SHARED, GRANT_ONE_SHOT] {
        let flags = flags.into();
        let asked = host.asked(pair);
        promise_eq!(host.grant(Grant { flags, ..asked }), Err(lacks));
    }
    let asked = Grant {
        flags: GRANT_ANY_PEER.into(),
        ..host.asked(NO_PAIR)
    };
    let key = host.grant(asked).unwrap();
    promise_eq!(host.access(pair, key), Ok(BASE + 0x100));
    let share = Share {
        key,
        pair,
        allowed: 1,
    };
    promise_eq!(host.call(Command::Share, share), Err(lacks));
    promise_eq!(host.call(Command::RevokePeer, Pair { pair }), Err(lacks));
}

#[test]
pub fn what_may_not_be_granted_is_refused() {
    let mut host = Host::new(1);
    let good = host.asked(host.pairs[0]);
    let (region, pair) = (good.region, good.pair);
    let gone = || Err((MailboxStatus::NotFound, 0));
    let other = |region| Grant { region, ..good };
    promise_eq!(host.grant(other(region ^ 1 << 12)), gone());
    let DomainId { domain: strange } = call(&mut host.fw, Command::OpenDomain, Nothing {}).unwrap();
    let stranger = open(&mut host.fw, strange);
    let strangers = joined(&mut host.fw, stranger);
    let of = |pair| Grant { pair, ..good };
    promise_eq!(host.grant(of(strangers)), argument(1));
    promise_eq!(host.grant(of(pair ^ 1 << 16)), gone());
    let asked = OpenPair {
        endpoint: host.endpoint,
        credits: 2,
        slots: 0x10_0000,
    };
    let unjoined: PairId = call(&mut host.fw, Command::OpenPair, asked).unwrap();
    let unready = Err((MailboxStatus::NotConnected, 0));
    promise_eq!(host.grant(of(unjoined.pair)), unready);
    for rights in [
        0,
        RIGHT_LOCAL_READ,
        RIGHT_REMOTE_ATOMIC,
        RIGHTS | RIGHT_REMOTE_ATOMIC,
        0x80,
    ] {
        let rights = rights.into();
        promise_eq!(host.grant(Grant { rights, ..good }), argument(2));
    }
    let rights = 0x100;
    promise_eq!(host.grant(Grant { rights, ..good }), argument(2));
    let any_peer = u32::from(GRANT_ANY_PEER);
    promise_eq!(
        host.grant(Grant {
            flags: any_peer,
            ..good
        }),
        argument(1)
    );
    for pair in [0, NO_PAIR] {
        promise_eq!(host.grant(of(pair)), gone());
    }
    let both = Grant {
        flags: any_peer | u32::from(GRANT_SHARED),
        ..of(NO_PAIR)
    };
    promise_eq!(host.grant(both), argument(3));
    for flags in [8, 0x100] {
        promise_eq!(host.grant(Grant { flags, ..good }), argument(3));
    }
    // A get may be asked for more than once.
    let once = u32::from(GRANT_ONE_SHOT);
    for rights in [RIGHT_REMOTE_READ, RIGHTS].map(u32::from) {
        let reads = Grant {
            flags: once,
            rights,
            ..good
        };
        promise_eq!(host.grant(reads), argument(3));
    }
    for (offset, length) in [
        (0, 0),
        (0, LENGTH + 1),
        (LENGTH, 1),
        (1, LENGTH),
        (u64::MAX, 2),
        (2, u64::MAX),
    ] {
        let part = Grant {
            offset,
            length,
            ..good
        };
        promise_eq!(host.grant(part), argument(5), "{offset} {length}");
    }
    promise_eq!(
        host.told(Operation::GrantSet),
        0,
        "a refusal changes nothing"
    );
    for (offset, length) in [(0, LENGTH), (LENGTH - 1, 1)] {
        let part = Grant {
            offset,
            length,
            ..good
        };
        promise!(host.grant(part).is_ok());
    }
    // What isn't shared can't be, and a stranger has no part in what is.
    let key = host.grant(good).unwrap();
    let flags = GRANT_SHARED.into();
    let shared = host.grant(Grant { flags, ..good }).unwrap();
    let share = |key, pair, allowed| Share { key, pair, allowed };
    promise_eq!(host.call(Command::Share, share(key, pair, 1)), argument(0));
    promise_eq!(
        host.call(Command::Share, share(shared, strangers, 1)),
        argument(1)
    );
    promise_eq!(
        host.call(Command::Share, share(shared, pair, 2)),
        argument(2)
    );
    promise_eq!(
        host.call(Command::Share, share(shared + (1 << 16), pair, 1)),
        Err((MailboxStatus::NotFound, 0))
    );
    // A region that only the card may use is nobody else's.
    let private = register(&mut host.fw, host.domain, RIGHT_LOCAL_READ).unwrap();
    promise_eq!(host.grant(other(private)), argument(2));
}

#[test]
fn a_table_that_is_full_says_so_and_has_room_again() {
    let mut host = Host::new(1);
    let asked = host.asked(host.pairs[0]);
    let keys: Vec<u64> = std::iter::from_fn(|| host.grant(asked).ok()).collect();
    promise_eq!(keys.len(), 32);
    let full = Err((MailboxStatus::NoResource, 0));
    promise_eq!(host.grant(asked), full);
    let key = keys[7];
    promise_eq!(
        host.call(Command::Revoke, RemoteKey { key }),
        Ok(Nothing {})
    );
    let again = host.grant(asked).unwrap();
    promise_eq!(remote_key_index(again), remote_key_index(key));
    promise!(again != key);
    for key in &keys[8..] {
        let key = RemoteKey { key: *key };
        promise_eq!(host.call(Command::Revoke, key), Ok(Nothing {}));
    }
    // Of 32 two may be shared.
    let flags = GRANT_SHARED.into();
    let shared = Grant { flags, ..asked };
    let [one, _] = [(); 2].map(|()| host.grant(shared).unwrap());
    promise_eq!(host.grant(shared), full);
    promise_eq!(
        host.call(Command::Revoke, RemoteKey { key: one }),
        Ok(Nothing {})
    );
    pass(&mut host.fw, 1000);
    promise!(host.grant(shared).is_ok());
}

#[test]
pub fn keys_are_foreseen_by_nobody() {
    let keys = |seed| {
        let mut host = Host::with_seed(1, seed);
        let asked = host.asked(host.pairs[0]);
        [(); 30].map(|()| host.grant(asked).unwrap())
    };
    let all: Vec<u64> = [1, 2, 3].into_iter().flat_map(keys).collect();
    let tags: HashSet<u64> = all.iter().map(|&key| remote_key_tag(key)).collect();
    promise_eq!(tags.len(), all.len());
    // Each bit is as often set as not, about.
    for bit in 0..48 {
        let set = tags.iter().filter(|&&tag| tag >> bit & 1 == 1).count();
        promise!((25..66).contains(&set), "bit {bit} is set in {set} of 90");
    }
}

/// Keys for one access of a host.
fn once(host: &Host, pair: u32) -> Grant {
    Grant {
        rights: RIGHT_REMOTE_WRITE.into(),
        flags: GRANT_ONE_SHOT.into(),
        ..host.asked(pair)
    }
}

#[test]
pub fn a_key_for_one_access_leaves_its_place_with_it_and_is_revoked_behind_it() {
    let mut host = Host::new(1);
    let pair = host.pairs[0];
    let asked = once(&host, pair);
    // Of 32 grants, 4 more for those.
    let keys: Vec<u64> = std::iter::from_fn(|| host.grant(asked).ok()).collect();
    let rows: Vec<u16> = keys.iter().map(|&key| remote_key_index(key)).collect();
    promise_eq!(rows, [32, 33, 34, 35]);
    promise_eq!(host.grant(asked), Err((MailboxStatus::NoResource, 0)));
    promise_eq!(host.told(Operation::MintSet), 1, "once for all");
    let others = host.asked(pair);
    promise!(host.grant(others).is_ok(), "these have rows of their own");
    promise_eq!(host.use_once(pair, keys[2]), Some(BASE + 0x100));
    promise_eq!(host.use_once(pair, keys[2]), None);
    let next = host.grant(asked).unwrap();
    promise_eq!(remote_key_index(next), 34);
    promise!(!keys.contains(&next));
    // What was written by the key that was used may be on its way.
    let key = keys[2];
    promise_eq!(
        host.call(Command::Revoke, RemoteKey { key }),
        Ok(Nothing {})
    );
    promise_eq!(host.fw.card().fences, [FenceSetup::default()]);
    promise_eq!(host.access(pair, next), Ok(BASE + 0x100));
    // One that was used, and whose row nobody has taken, is revoked as others are; and the row is free all the same.
    promise!(host.use_once(pair, keys[1]).is_some());
    for key in [keys[0], keys[1]] {
        promise_eq!(
            host.call(Command::Revoke, RemoteKey { key }),
            Ok(Nothing {})
        );
    }
    promise_eq!(host.fw.card().fences.len(), 1);
    promise_eq!(host.told(Operation::GrantClear), 2);
    let again = [(); 3].map(|()| host.grant(asked).map(remote_key_index));
    let full = Err((MailboxStatus::NoResource, 0));
    promise_eq!(again, [Ok(33), Ok(32), full]);
    // No key is shared and for one access.
    let shared = Grant {
        flags: (GRANT_ONE_SHOT | GRANT_SHARED).into(),
        ..asked
    };
    promise_eq!(host.grant(shared), Err((MailboxStatus::InvalidArgument, 3)));
}

#[test]
pub fn a_key_that_the_gates_made_for_nobody_any_more_ends() {
    let mut host = Host::new(1);
    let pair = host.pairs[0];
    let asked = once(&host, pair);
    promise!(host.grant(asked).is_ok());
    let now = host.fw.card().now;
    host.fw.card().silent_until = now + CONTROL_TIMEOUT + 10;
    let late = Err((MailboxStatus::HardwareTimeout, 0));
    promise_eq!(host.grant(asked), late);
    // The host asks again at once, and isn't given the key that it was to have before.
    promise_eq!(host.grant(asked).map(remote_key_index), Ok(34));
    pass(&mut host.fw, 2000);
    promise_eq!(host.told(Operation::GrantMint), 3);
    promise_eq!(host.told(Operation::GrantClear), 1, "its place is free");
    let rows = [(); 3].map(|()| host.grant(asked).map(remote_key_index));
    let full = Err((MailboxStatus::NoResource, 0));
    promise_eq!(rows, [Ok(33), Ok(35), full]);
}

/// As it broke: the row of the key that was used is cleared for what the gates have made in it since, and nothing waited for what the used one wrote.
#[test]
pub fn a_used_key_whose_row_is_given_anew_while_it_is_revoked_is_revoked_behind_its_access() {
    let mut host = Host::new(1);
    let pair = host.pairs[0];
    let asked = once(&host, pair);
    let keys: Vec<u64> = std::iter::from_fn(|| host.grant(asked).ok()).collect();
    let key = keys[0];
    promise!(host.use_once(pair, key).is_some());
    let now = host.fw.card().now;
    host.fw.card().silent_until = now + CONTROL_TIMEOUT + 100;
    let late = Err((MailboxStatus::HardwareTimeout, 0));
    promise_eq!(host.grant(asked), late);
    promise_eq!(host.told(Operation::GrantMint), 5, "they haven't made it");
    promise_eq!(
        host.call(Command::Revoke, RemoteKey { key }),
        Ok(Nothing {})
    );
    promise_eq!(host.told(Operation::GrantMint), 6);
    promise_eq!(host.fw.card().fences, [FenceSetup::default()]);
    pass(&mut host.fw, 2000);
    promise_eq!(host.told(Operation::GrantClear), 1);
    promise_eq!(host.grant(asked).map(remote_key_index), Ok(32));
}

#[test]
pub fn a_source_that_is_stuck_makes_no_key() {
    let mut host = Host::new(1);
    let asked = host.asked(host.pairs[0]);
    host.fw.card().stuck = true;
    let broken = Err((MailboxStatus::NoEntropy, 0));
    promise_eq!(host.grant(asked), broken);
    promise_eq!(host.audits(AuditKind::EntropyFailed).len(), 1);
    // For good: what is random again may be so by chance.
    host.fw.card().stuck = false;
    promise_eq!(host.grant(asked), broken);
    promise_eq!(host.told(Operation::GrantSet), 0);
    // All else goes on.
    let pair = host.connect();
    promise_eq!(host.call(Command::ClosePair, Pair { pair }), Ok(Nothing {}));
}

#[test]
pub fn a_revoke_is_answered_when_the_gates_have_done_it() {
    let mut host = Host::new(2);
    let [one, other] = [host.pairs[0], host.pairs[1]];
    let asked = host.asked(one);
    let key = host.grant(asked).unwrap();
    let flags = GRANT_SHARED.into();
    let shared = host.grant(Grant { flags, ..asked }).unwrap();
    let share = |allowed| Share {
        key: shared,
        pair: other,
        allowed,
    };
    promise_eq!(host.access(other, shared), Err(Refused::Permission));
    promise_eq!(host.call(Command::Share, share(1)), Ok(Nothing {}));
    promise_eq!(host.access(other, shared), Ok(BASE + 0x100));
    let until = |host: &mut Host, silent: bool| {
        let now = host.fw.card().now;
        host.fw.card().silent_until = now + if silent { 1000 } else { 0 };
    };
    until(&mut host, true);
    give(&mut host.fw, Command::Revoke, RemoteKey { key });
    settle(&mut host.fw);
    let early = answer::<Nothing>(&mut host.fw);
    promise!(early.is_none(), "the gates haven't answered");
    pass(&mut host.fw, 2000);
    promise_eq!(answer(&mut host.fw), Some(Ok(Nothing {})));
    promise_eq!(host.access(one, key), Err(Refused::NoGrant));
    until(&mut host, true);
    give(&mut host.fw, Command::Share, share(0));
    settle(&mut host.fw);
    let early = answer::<Nothing>(&mut host.fw);
    promise!(early.is_none(), "the gates haven't answered");
    pass(&mut host.fw, 2000);
    promise_eq!(answer(&mut host.fw), Some(Ok(Nothing {})));
    promise_eq!(host.access(other, shared), Err(Refused::Permission));
    promise_eq!(host.access(one, shared), Ok(BASE + 0x100));
    // What it hasn't can be taken, too.
    promise_eq!(host.call(Command::Share, share(0)), Ok(Nothing {}));
}

#[test]
pub fn a_peer_is_revoked_in_one_step() {
    let mut host = Host::new(2);
    let [one, other] = [host.pairs[0], host.pairs[1]];
    let mut keys = Vec::new();
    for flags in [0, GRANT_SHARED, GRANT_ONE_SHOT, 0, 0].map(u32::from) {
        let asked = Grant {
            rights: RIGHT_REMOTE_WRITE.into(),
            ..host.asked(one)
        };
        keys.push(host.grant(Grant { flags, ..asked }).unwrap());
    }
    let share = Share {
        key: keys[1],
        pair: other,
        allowed: 1,
    };
    promise_eq!(host.call(Command::Share, share), Ok(Nothing {}));
    let asked = host.asked(other);
    let theirs = host.grant(asked).unwrap();
    // Nothing but the one request is answered.
    host.fw.card().patience = 1;
    promise_eq!(
        host.call(Command::RevokePeer, Pair { pair: one }),
        Ok(Nothing {})
    );
    promise_eq!(host.told(Operation::SenderRevoke), 1);
    for (k, &key) in keys.iter().enumerate() {
        promise_eq!(host.access(one, key), Err(Refused::Generation), "key {k}");
    }
    promise_eq!(host.access(other, keys[1]), Ok(BASE + 0x100));
    promise_eq!(host.access(other, theirs), Ok(BASE + 0x100));
    promise_eq!(host.audits(AuditKind::PeerRevoked).len(), 1);
    host.fw.card().patience = usize::MAX;
    // Behind that the rows are cleared, and can be granted anew, also to the same peer.
    pass(&mut host.fw, 1000);
    promise_eq!(host.told(Operation::GrantClear), 4);
    promise_eq!(host.fw.card().permissions.len(), 1);
    let asked = host.asked(one);
    let again = host.grant(asked).unwrap();
    promise_eq!(host.access(one, again), Ok(BASE + 0x100));
    for key in keys {
        promise!(host.access(one, key).is_err());
    }
}

#[test]
fn a_revocation_is_answered_before_the_rows_end_and_they_end_before_the_next_command() {
    let mut host = Host::new(1);
    let pair = host.pairs[0];
    let asked = host.asked(pair);
    let key = host.grant(asked).unwrap();
    give(&mut host.fw, Command::RevokePeer, Pair { pair });
    let answered = loop {
        host.fw.step();
        if let Some(answered) = answer(&mut host.fw) {
            break answered;
        }
    };
    promise_eq!(answered, Ok(Nothing {}));
    promise_eq!(host.told(Operation::GrantClear), 0, "no row has ended");
    // The next command comes without a step, and is no victim of the one before.
    let again = host.grant(asked).unwrap();
    pass(&mut host.fw, 1000);
    promise_eq!(host.told(Operation::GrantClear), 1);
    promise!(host.access(pair, key).is_err());
    promise_eq!(host.access(pair, again), Ok(BASE + 0x100));
}

#[test]
pub fn grants_end_with_their_pair_and_its_place_waits_for_that() {
    for declared in [false, true] {
        let mut host = Host::new(2);
        let [one, other] = [host.pairs[0], host.pairs[1]];
        let asked = host.asked(one);
        let keys: Vec<u64> = (0..6).map(|_| host.grant(asked).unwrap()).collect();
        let flags = GRANT_SHARED.into();
        let asked = host.asked(other);
        let shared = host.grant(Grant { flags, ..asked }).unwrap();
        let share = Share {
            key: shared,
            pair: one,
            allowed: 1,
        };
        promise_eq!(host.call(Command::Share, share), Ok(Nothing {}));
        host.fw.card().delay = 500;
        if declared {
            let failed = Pair { pair: one };
            promise_eq!(host.call(Command::DeclareFailed, failed), Ok(Nothing {}));
        }
        promise_eq!(
            host.call(Command::ClosePair, Pair { pair: one }),
            Ok(Nothing {})
        );
        for &key in keys.iter().chain([&shared]) {
            promise!(host.access(one, key).is_err());
        }
        // The next pair has its place, and what was its, was nobody's before: the gates check that.
        let next = host.connect();
        promise_eq!(id_index(next), id_index(one));
        promise!(host.fw.card().grants.len() == 1, "rows are cleared");
        for &key in keys.iter().chain([&shared]) {
            promise!(host.access(next, key).is_err());
        }
        promise_eq!(host.access(other, shared), Ok(BASE + 0x100));
        let again = host.asked(next);
        let again = host.grant(again).unwrap();
        promise_eq!(host.access(next, again), Ok(BASE + 0x100));
    }
}

#[test]
fn a_peer_whose_pair_the_gates_have_failed_may_do_nothing() {
    let mut host = Host::new(1);
    let pair = host.pairs[0];
    let asked = host.asked(pair);
    let key = host.grant(asked).unwrap();
    host.fw.card().fail(id_index(pair), 10);
    promise_eq!(host.access(pair, key), Err(Refused::Closed));
    pass(&mut host.fw, 1000);
    promise!(
        host.fw.card().grants.is_empty(),
        "it is cleared behind that"
    );
    promise_eq!(host.grant(asked), Err((MailboxStatus::NotConnected, 0)));
}

#[test]
pub fn grants_end_with_their_region() {
    let mut host = Host::new(1);
    let pair = host.pairs[0];
    let asked = host.asked(pair);
    let key = host.grant(asked).unwrap();
    let region = RegionKey { key: host.region };
    promise_eq!(host.call(Command::DeregisterRegion, region), Ok(Nothing {}));
    promise_eq!(host.access(pair, key).is_err(), true);
    pass(&mut host.fw, 1000);
    promise!(
        host.fw.card().grants.is_empty(),
        "it is cleared behind that"
    );
    promise_eq!(host.grant(asked), Err((MailboxStatus::NotFound, 0)));
    let gone = Err((MailboxStatus::NotFound, 0));
    promise_eq!(host.call(Command::Revoke, RemoteKey { key }), gone);
}

#[test]
pub fn a_grant_is_cleared_until_the_gates_answer_in_time() {
    let late = Err((MailboxStatus::HardwareTimeout, 0));
    let mut host = Host::new(1);
    let pair = host.pairs[0];
    let asked = host.asked(pair);
    let key = host.grant(asked).unwrap();
    // The gates answer too late, and haven't done it.
    let now = host.fw.card().now;
    host.fw.card().silent_until = now + CONTROL_TIMEOUT + 10;
    host.fw.card().forgets = 1;
    promise_eq!(host.call(Command::Revoke, RemoteKey { key }), late);
    promise_eq!(host.access(pair, key), Ok(BASE + 0x100));
    pass(&mut host.fw, CONTROL_TIMEOUT);
    promise!(host.access(pair, key).is_err(), "it is asked for again");
    // A grant that comes too late is nobody's.
    let now = host.fw.card().now;
    host.fw.card().silent_until = now + CONTROL_TIMEOUT + 10;
    let late = Err((MailboxStatus::HardwareTimeout, 0));
    promise_eq!(host.grant(asked), late);
    pass(&mut host.fw, CONTROL_TIMEOUT);
    promise!(host.fw.card().grants.is_empty());
    let full: Vec<u64> = std::iter::from_fn(|| host.grant(asked).ok()).collect();
    promise_eq!(full.len(), 32, "no place is lost");
}

#[test]
fn a_peer_whose_revocation_is_late_loses_its_keys_all_the_same() {
    let mut host = Host::new(1);
    let pair = host.pairs[0];
    let asked = host.asked(pair);
    let keys = [0, 1].map(|_| host.grant(asked).unwrap());
    // The gates answer too late, and haven't done it.
    let now = host.fw.card().now;
    host.fw.card().silent_until = now + CONTROL_TIMEOUT + 10;
    host.fw.card().forgets = 1;
    let late = Err((MailboxStatus::HardwareTimeout, 0));
    promise_eq!(host.call(Command::RevokePeer, Pair { pair }), late);
    pass(&mut host.fw, CONTROL_TIMEOUT);
    for key in keys {
        promise!(host.access(pair, key).is_err());
    }
    promise!(host.fw.card().grants.is_empty());
}

#[test]
pub fn the_gates_are_told_for_how_long_a_grant_lasts() {
    let mut host = Host::new(1);
    let pair = host.pairs[0];
    for lasts in [0, 1, u32::MAX] {
        let asked = Grant {
            lasts,
            ..host.asked(pair)
        };
        let key = host.grant(asked).unwrap();
        let (setup, _) = host.fw.card().grants[&remote_key_index(key)];
        promise_eq!(setup.lasts, lasts);
        let revoked = host.call(Command::Revoke, RemoteKey { key });
        promise_eq!(revoked, Ok(Nothing {}));
    }
}

/// It was `HardwareTimeout`, and nobody knew which of all accesses the bus didn't answer.
#[test]
pub fn a_fence_that_is_late_names_what_it_waits_for() {
    let mut host = Host::new(1);
    let (region, pair) = (host.region, host.pairs[0]);
    let written = AccessReport {
        waits: 1,
        writes: 1,
        tagged: 1,
        region: key_index(region),
        pair: id_index(pair),
        context: 7,
        ..AccessReport::default()
    };
    let read = AccessReport {
        writes: 0,
        tagged: 0,
        ..written
    };
    let of_pair = Undrained {
        access: UNDRAINED_WRITE,
        region,
        pair: id_index(pair).into(),
        context: 7,
    };
    let of_put = Undrained {
        access: UNDRAINED_READ,
        context: NO_CONTEXT,
        ..of_pair
    };
    let nothing = Undrained::default();
    let reports = [
        (written, of_pair),
        (read, of_put),
        (AccessReport::default(), nothing),
    ];
    let fence = Fence {
        domain: host.domain,
        ..Fence::default()
    };
    for (report, undrained) in reports {
        host.fw.card().report = report;
        let now = host.fw.card().now;
        host.fw.card().silent_until = now + CONTROL_TIMEOUT + 10;
        give(&mut host.fw, Command::Fence, fence);
        pass(&mut host.fw, CONTROL_TIMEOUT - 1);
        promise!(host.fw.take_answer().is_none(), "its time isn't over");
        pass(&mut host.fw, 1);
        let answer = host.fw.take_answer().expect("it is over");
        promise_eq!(answer.status, MailboxStatus::HardwareTimeout);
        promise_eq!(answer.count, 1 + Undrained::COUNT);
        promise_eq!(Undrained::from_words(&answer.words[1..]), undrained);
        pass(&mut host.fw, 100);
        // When the access has ended it may be given again.
        promise_eq!(host.call(Command::Fence, fence), Ok(Nothing {}));
    }
    let told = host.audits(AuditKind::AccessUndrained);
    let told: Vec<_> = told.iter().map(|read| (read.object, read.info)).collect();
    let info = |writes| undrained_info(id_index(pair), writes);
    promise_eq!(told, [(region, info(true)), (region, info(false))]);
}

#[test]
fn a_pair_that_fails_while_it_is_granted_something_gets_nothing() {
    for shared in [0, GRANT_SHARED] {
        let mut host = Host::new(1);
        let pair = host.pairs[0];
        let flags = shared.into();
        let asked = host.asked(pair);
        let now = host.fw.card().now;
        host.fw.card().silent_until = now + 500;
        give(&mut host.fw, Command::Grant, Grant { flags, ..asked });
        settle(&mut host.fw);
        host.fw.card().fail(id_index(pair), 10);
        pass(&mut host.fw, 5000);
        let refused = answer::<RemoteKey>(&mut host.fw);
        promise_eq!(refused, Some(Err((MailboxStatus::NotConnected, 0))));
        promise!(host.fw.card().grants.is_empty() && host.fw.card().permissions.is_empty());
    }
}

#[test]
fn no_sequence_of_grants_and_ends_makes_the_gates_complain_or_opens_more_than_was_granted() {
    for seed in 1..9 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut host = Host::with_seed(3, seed);
        host.fw.card().delay = 200;
        // What is granted now: key, kind, and the pairs that may use it, but of a key for any.
        let mut granted: Vec<(u64, u8, Vec<u32>)> = Vec::new();
        for _ in 0..400 {
            let at = rng.random_range(0..host.pairs.len());
            let pair = host.pairs[at];
            let key = match granted.is_empty() {
                true => 0,
                false => granted[rng.random_range(0..granted.len())].0,
            };
            match rng.random_range(0..12) {
                0..5 => {
                    let kind = [0, 0, GRANT_SHARED, GRANT_ANY_PEER][rng.random_range(0..4)];
                    let any = kind == GRANT_ANY_PEER;
                    let flags = kind.into();
                    let asked = host.asked(if any { NO_PAIR } else { pair });
                    if let Ok(key) = host.grant(Grant { flags, ..asked }) {
                        granted.push((key, kind, vec![pair]));
                    }
                }
                5 | 6 => {
                    let revoked = host.call(Command::Revoke, RemoteKey { key });
                    promise_eq!(revoked.is_ok(), !granted.is_empty());
                    granted.retain(|grant| grant.0 != key);
                }
                7 | 8 => {
                    let allowed = rng.random();
                    let share = Share {
                        key,
                        pair,
                        allowed: u32::from(allowed),
                    };
                    let shared = host.call(Command::Share, share).is_ok();
                    let grant = granted.iter_mut().find(|grant| grant.0 == key);
                    promise_eq!(
                        shared,
                        grant.as_ref().is_some_and(|grant| grant.1 == GRANT_SHARED)
                    );
                    if let Some((_, _, pairs)) = grant.filter(|_| shared) {
                        pairs.retain(|&other| other != pair);
                        pairs.extend(Some(pair).filter(|_| allowed));
                    }
                }
                9 | 10 => {
                    promise_eq!(
                        host.call(Command::RevokePeer, Pair { pair }),
                        Ok(Nothing {})
                    );
                    granted.retain_mut(|(_, kind, pairs)| {
                        pairs.retain(|&other| other != pair);
                        *kind != 0 || !pairs.is_empty()
                    });
                }
                _ => {
                    promise_eq!(host.call(Command::ClosePair, Pair { pair }), Ok(Nothing {}));
                    granted.retain_mut(|(_, kind, pairs)| {
                        pairs.retain(|&other| other != pair);
                        *kind != 0 || !pairs.is_empty()
                    });
                    host.pairs.remove(at);
                    host.connect();
                }
            }
            for (key, kind, pairs) in &granted {
                for pair in host.pairs.clone() {
                    let may = host.access(pair, *key).is_ok();
                    let right = *kind == GRANT_ANY_PEER || pairs.contains(&pair);
                    promise_eq!(may, right, "seed {seed}");
                }
            }
        }
        (0..100).for_each(|_| pass(&mut host.fw, 200));
        promise_eq!(host.fw.card().grants.len(), granted.len());
    }
}
