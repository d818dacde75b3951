//! The table of regions, Verilated, against the regions of the model of the card.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

use abi::control::{
    GRANT_ANY_PEER, GRANT_ONE_SHOT, GRANT_SHARED, GrantSetup, KEY_INDEX_BITS, Operation, PAGE_BITS,
    PairSetup, PermissionSetup, RegionSetup, key_index, key_tag, minted_grants, region_key,
    shared_grants,
};
use abi::event::PeerRefusal;
use abi::key::{REMOTE_KEY_TAG_BITS, remote_key, remote_key_index};
use abi::times::SHUT_OUT_TICK;
use card_model::{Access, Break, Refused, Regions, RemoteAccess};
use hdl::config::{self, Config};
use hdl::protect::LATENCY;
use hdl_tests::broken::{breaks, mutants};
use hdl_tests::fields::{pack, unpack};
use hdl_tests::{Bench, Size, for_sizes, is_caught, rate};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

/// Words of a query.
fn words(query: &Access) -> Vec<u64> {
    pack(&[
        (query.domain.into(), 8),
        (query.key.into(), 32),
        (query.rights.into(), 8),
        (query.address, 64),
        (query.length, 64),
    ])
}

/// Words of what is asked for a process, or for a peer.
fn access_words(asked: &Asked, about: &About) -> Vec<u64> {
    let (query, remote) = match asked {
        Asked::Process(query) => (*query, None),
        Asked::Peer(access) => {
            let offset = Access {
                domain: 0,
                key: 0,
                rights: access.rights,
                address: access.offset,
                length: access.length,
            };
            (offset, Some(access))
        }
    };
    pack(&[
        (query.domain.into(), 8),
        (query.key.into(), 32),
        (query.rights.into(), 8),
        (query.address, 64),
        (query.length, 64),
        (remote.is_some().into(), 1),
        (remote.map_or(about.pair, |access| access.pair).into(), 16),
        (remote.map_or(0, |access| access.key), 64),
        (about.tagged.into(), 1),
        (about.context.into(), 16),
    ])
}

/// What an access is for, which decides nothing and goes to its ticket.
#[derive(Clone, Copy, Debug)]
struct About {
    /// Of a process's; a peer's access has its own.
    pair: u16,
    tagged: bool,
    context: u16,
}

impl About {
    fn random(rng: &mut ChaCha8Rng) -> Self {
        Self {
            pair: rng.random(),
            tagged: rng.random(),
            context: rng.random(),
        }
    }
}

/// For each clause of the rule: the region with which the query would satisfy it.
const RELAXED: [fn(&mut RegionSetup, &Access); 5] = [
    |region, query| region.tag = key_tag(query.key),
    |region, query| region.domain = query.domain,
    |region, query| region.rights |= query.rights,
    |region, query| {
        let before = region.base.saturating_sub(query.address);
        region.base -= before;
        region.length = region.length.saturating_add(before);
    },
    |region, _| region.length = u64::MAX,
];

/// The answer, if the region that the query names satisfied this clause anyway.
fn relaxed(regions: &Regions, query: &Access, relax: fn(&mut RegionSetup, &Access)) -> bool {
    let Some(mut region) = regions.get(key_index(query.key)) else {
        return false;
    };
    relax(&mut region, query);
    let mut alone = Regions::new(1);
    alone.set(0, Some(region));
    let key = region_key(0, key_tag(query.key));
    alone.allowed(&Access { key, ..*query })
}

fn open(size: &Size) -> Bench {
    let mut bench = Bench::open(&size.model);
    let Config {
        regions,
        grants,
        pairs,
        ..
    } = *size.config;
    let permissions = shared_grants(grants as u32) as usize * pairs;
    let rows = grants + minted_grants(grants as u32) as usize;
    let most = regions.max(rows).max(permissions);
    for cycle in 0.. {
        bench.eval();
        if bench.is("initialized") {
            break;
        }
        assert!(!bench.is("gather_query_ready"), "not before it is cleared");
        assert!(cycle <= most, "one word of each table a cycle");
        bench.step();
    }
    bench
}

/// Something near an edge of something.
fn near(rng: &mut ChaCha8Rng, of: u64) -> u64 {
    let step = [0, 0, 1, 1, 2, 64][rng.random_range(0..6)];
    match rng.random() {
        true => of.wrapping_add(step),
        false => of.wrapping_sub(step),
    }
}

fn region(rng: &mut ChaCha8Rng) -> RegionSetup {
    let base = [0, 0x1000, 0x1_0000_0000, u64::MAX - 0xfff][rng.random_range(0..4)];
    let length = [0, 1, 0x800, 0x1000, 1 << 40][rng.random_range(0..5)];
    RegionSetup {
        base: near(rng, base),
        length: near(rng, length),
        tag: [0, 1, 0xf_ffff][rng.random_range(0..3)],
        domain: rng.random_range(0..2),
        rights: rng.random_range(0..4) | [0, 4, 12, 12, 12][rng.random_range(0..5)],
        space: rng.random(),
        ..RegionSetup::default()
    }
}

/// A place that is often named: at the table's ends, or at times the first beyond it.
fn place(rng: &mut ChaCha8Rng, regions: u16) -> u16 {
    match rng.random_range(0..20) {
        0 | 1 => regions + rng.random_range(0..3),
        2..8 => regions - rng.random_range(1..4),
        _ => rng.random_range(0..3),
    }
}

fn query(rng: &mut ChaCha8Rng, regions: u16, model: &Regions) -> Access {
    let at = match rng.random_range(0..10) {
        // Beyond the table, where low bits alone would name a region.
        0 => rng.random_range(0..1 << KEY_INDEX_BITS),
        _ => place(rng, regions).into(),
    };
    // What a number beyond the table would alias.
    let named = model.get(at as u16 % regions);
    let like = named.unwrap_or_else(|| region(rng));
    let inside = rng.random_range(0..=like.length.min(100));
    let address = near(rng, like.base.wrapping_add(inside));
    let to_end = like.base.wrapping_add(like.length).wrapping_sub(address);
    let mut pick = |right: u64, wrong: u64| if rng.random_bool(0.9) { right } else { wrong };
    Access {
        domain: pick(like.domain.into(), 1) as u8,
        key: (pick(like.tag.into(), 1) as u32) << KEY_INDEX_BITS | at,
        rights: pick(like.rights.into(), 3) as u8,
        address,
        length: near(rng, to_end),
    }
}

/// What was asked: how often each clause decided, answers of either kind, and what peers were told.
#[derive(Debug, Default)]
struct Seen {
    clauses: [u32; RELAXED.len()],
    answers: [u32; 2],
    peers: BTreeMap<Option<Refused>, u32>,
}

/// Who asks.
const CLIENTS: [&str; 3] = ["gather", "delivery", "posts"];

/// The client that asks for processes alone.
const POSTS: usize = 2;

/// A question.
#[derive(Clone, Copy)]
enum Asked {
    Process(Access),
    Peer(RemoteAccess),
}

/// The last grants that were made, and the last access that was allowed.
#[derive(Default)]
struct Granted(Vec<(u16, GrantSetup)>, Option<RemoteAccess>);

impl Granted {
    /// A grant of a region that is there, to the peer of one of the first pairs, to many, or to any.
    fn next(&mut self, rng: &mut ChaCha8Rng, size: &Size, model: &Regions) -> (u16, GrantSetup) {
        let Config {
            regions, grants, ..
        } = size.config;
        let row = place(rng, *grants as u16);
        let region = place(rng, *regions as u16);
        let like = model.get(region).unwrap_or_else(|| self::region(rng));
        let shared = rng.random_bool(0.4);
        let one_shot = rng.random_bool(0.3);
        let any = !shared && rng.random_bool(0.25);
        let holder = match shared {
            true => place(rng, shared_grants(*grants as u32) as u16),
            false => pair(rng, size),
        };
        let offset = near(rng, like.length / 4);
        let setup = GrantSetup {
            offset,
            length: near(rng, like.length / 2),
            tag: [0, 1, (1 << REMOTE_KEY_TAG_BITS) - 1][rng.random_range(0..3)],
            region,
            region_tag: like.tag ^ u32::from(rng.random_bool(0.05)),
            holder,
            rights: [4, 4, 8, 12][rng.random_range(0..4)],
            flags: (u8::from(shared) * GRANT_SHARED)
                | (u8::from(one_shot) * GRANT_ONE_SHOT)
                | (u8::from(any) * GRANT_ANY_PEER),
            lasts: match rng.random_range(0..6) {
                0 => rng.random_range(1..40),
                1 => u32::MAX,
                _ => 0,
            },
            ..GrantSetup::default()
        };
        self.0.retain(|(other, _)| *other != row);
        self.0.push((row, setup));
        if self.0.len() > 6 {
            self.0.remove(0);
        }
        (row, setup)
    }

    /// There is none of this key any more. Its row is named now and then all the same.
    fn forget(&mut self, key: u64) {
        if !key.is_multiple_of(8) {
            self.0
                .retain(|(row, grant)| remote_key(*row, grant.tag) != key);
        }
    }

    /// An access that one of them allows, but for at most one thing.
    fn access(&self, rng: &mut ChaCha8Rng, size: &Size) -> RemoteAccess {
        let (row, like) = match self.0.len() {
            0 => (0, GrantSetup::default()),
            n => self.0[rng.random_range(0..n)],
        };
        let inside = rng.random_range(0..=like.length.min(100));
        let offset = like.offset.wrapping_add(inside);
        let mut access = RemoteAccess {
            pair: match like.flags & (GRANT_SHARED | GRANT_ANY_PEER) {
                0 => like.holder,
                _ => pair(rng, size),
            },
            key: remote_key(row, like.tag),
            rights: like.rights,
            offset,
            length: like.length.wrapping_sub(inside),
        };
        match rng.random_range(0..24) {
            0 | 9 | 10 => access.pair = pair(rng, size),
            1 => access.key ^= 1 << rng.random_range(16..64),
            // A row beyond the table, whose low bits name this one.
            2 => access.key ^= (size.config.grants as u64).next_power_of_two(),
            3 | 11 => access.rights |= [4, 8, 16][rng.random_range(0..3)],
            4 => access.offset = near(rng, like.offset),
            5 => access.length = near(rng, access.length),
            6 => access.length = (u64::MAX - access.offset).saturating_add(rng.random_range(0..3)),
            7 => (access.offset, access.length) = (0, 1),
            8 => access.key ^= 1 << rng.random_range(0..6),
            _ => {}
        }
        access
    }
}

/// One of the first pairs, or the first beyond the table, whose low bits name one of them.
fn pair(rng: &mut ChaCha8Rng, size: &Size) -> u16 {
    match rng.random_range(0..12) {
        0 => (size.config.pairs + rng.random_range(0..3)) as u16,
        1 => (size.config.pairs - 1) as u16,
        _ => rng.random_range(0..3),
    }
}

/// A change of the tables.
#[derive(Clone, Copy, Debug)]
struct Change {
    operation: Operation,
    index: u16,
    data: [u64; 5],
}

impl Change {
    fn next(rng: &mut ChaCha8Rng, size: &Size, model: &Regions, granted: &mut Granted) -> Self {
        // What an operation doesn't read may be anything, such as a region where one is cleared.
        let mut data: [u64; 5] = rng.random();
        let mut put = |words: &[u64]| data[..words.len()].copy_from_slice(words);
        let (operation, index) = match rng.random_range(0..30) {
            // Sometimes beyond the table, which changes nothing.
            0..4 => {
                put(&region(rng).to_words());
                (Operation::RegionSet, place(rng, size.config.regions as u16))
            }
            4 => {
                put(&region(rng).to_words());
                let place = place(rng, size.config.regions as u16);
                (Operation::RegionClear, place)
            }
            5..16 => {
                let (row, setup) = granted.next(rng, size, model);
                put(&setup.to_words());
                (Operation::GrantSet, row)
            }
            16..18 => {
                let row = match granted.1 {
                    Some(access) if rng.random_bool(0.7) => remote_key_index(access.key),
                    _ => place(rng, size.config.grants as u16),
                };
                (Operation::GrantClear, row)
            }
            18..22 => {
                let last = granted.0.iter().rev();
                let mut shared = last.filter(|(_, grant)| grant.flags & GRANT_SHARED != 0);
                let number = match shared.next() {
                    Some((_, grant)) if rng.random_bool(0.9) => grant.holder,
                    _ => place(rng, shared_grants(size.config.grants as u32) as u16),
                };
                let permission = PermissionSetup {
                    shared: number,
                    allowed: rng.random_bool(0.8).into(),
                    ..PermissionSetup::default()
                };
                put(&permission.to_words());
                (Operation::PermissionSet, pair(rng, size))
            }
            22..24 => {
                let holder = granted.1.map(|access| access.pair);
                let peer = holder.unwrap_or_else(|| pair(rng, size));
                (Operation::SenderRevoke, peer)
            }
            24..28 => {
                let setup = PairSetup {
                    domain: rng.random_range(0..2),
                    ..PairSetup::default()
                };
                put(&setup.to_words());
                (Operation::PairSet, pair(rng, size))
            }
            28 => (Operation::PairClear, pair(rng, size)),
            _ => (Operation::Fence, 0),
        };
        Self {
            operation,
            index,
            data,
        }
    }

    /// What may follow when a pair has ended: it is connected anew, or its peer is revoked all the same.
    fn after_an_end(rng: &mut ChaCha8Rng, pair: u16) -> Self {
        match rng.random() {
            true => Self::of(Operation::PairSet, pair),
            false => Self {
                data: rng.random(),
                ..Self::of(Operation::SenderRevoke, pair)
            },
        }
    }

    const fn of(operation: Operation, index: u16) -> Self {
        Self {
            operation,
            index,
            data: [0; 5],
        }
    }

    fn make(&self, model: &mut Regions) {
        let Self { index, data, .. } = *self;
        let words = |n: usize| data[..n].to_vec();
        let grants = &mut model.grants;
        match self.operation {
            Operation::RegionSet => {
                let setup = RegionSetup::from_words(&words(3).try_into().unwrap());
                model.set(index, Some(setup));
            }
            Operation::RegionClear => model.set(index, None),
            Operation::GrantSet => {
                let setup = GrantSetup::from_words(&data);
                grants.set(index, setup);
            }
            Operation::GrantClear => grants.clear(index),
            Operation::PermissionSet => {
                let setup = PermissionSetup::from_words(&words(1).try_into().unwrap());
                grants.permit(index, setup);
            }
            Operation::SenderRevoke => grants.revoke(index),
            Operation::PairSet => {
                let setup = PairSetup::from_words(&data);
                grants.connect(index, setup.domain);
            }
            Operation::PairClear => grants.close(index),
            _ => {}
        }
    }
}

/// What the answer to a question has to be: who asked, and when.
struct Due {
    client: usize,
    cycle: u64,
    asked: Asked,
    /// Card address, if it is allowed.
    address: Option<u64>,
    /// Address space of its region.
    space: u8,
    /// Row of the grant for one access that ends with it.
    spends: Option<u16>,
    /// What is told in the cycle after, of a peer's access that is refused,
    told: Option<PeerRefusal>,
    /// or of one that is allowed.
    ticket: Vec<u64>,
}

/// Cycles in which a change is made: what is under way is answered, and a pair may fail before.
const CHANGED_WITHIN: u64 = 40;

/// Random queries of all clients while the tables change and pairs fail, held to the model, which is broken on purpose.
fn questions(size: &Size, rng: &mut ChaCha8Rng, broken: Break) -> Seen {
    let mut bench = open(size);
    let Config {
        regions,
        grants,
        pairs,
        ..
    } = *size.config;
    let mut model = Regions::with_grants(regions, grants, pairs);
    model.break_on_purpose(broken);
    let mut granted = Granted::default();
    let mut first: Vec<Change> = (0..3)
        .map(|pair| Change::of(Operation::PairSet, pair))
        .collect();
    let mut control: Option<Change> = None;
    let mut waits_since = 0;
    let mut fault: Option<u16> = None;
    let mut offered: [Option<Asked>; 3] = [None; 3];
    let mut asked: VecDeque<Due> = VecDeque::new();
    let rates = [rate(rng), rate(rng), rate(rng)];
    let mut waited = [0; 3];
    let (mut pulses, mut refusals) = (0, 0);
    // Whose access was allowed in the cycle before, and its ticket.
    let mut ticket_now: Option<(usize, Vec<u64>)> = None;
    let mut offered_about = [About::random(rng); 3];
    // What was refused to a peer in the cycle before.
    let mut told_now: Option<(u16, PeerRefusal)> = None;
    let mut seen = Seen::default();
    let (mut ticks, passes) = (0, rate(rng));
    for cycle in 0..10_000_u64 {
        let tick = rng.random_bool(passes);
        bench.set("tick", tick);
        if control.is_none() && !first.is_empty() {
            control = first.pop();
            waits_since = cycle;
        } else if control.is_none() && rng.random_bool(0.03) {
            control = Some(Change::next(rng, size, &model, &mut granted));
            waits_since = cycle;
        }
        assert!(
            control.is_none() || cycle < waits_since + CHANGED_WITHIN,
            "{control:?} waits, cycle {cycle}"
        );
        bench.set("control_valid", control.is_some());
        if let Some(change) = control {
            let mut fields = vec![
                (change.operation.code().into(), 8),
                (change.index.into(), 16),
            ];
            fields.extend(change.data.map(|word| (word, 64)));
            bench.set_wide("control", &pack(&fields));
        }
        if fault.is_none() && rng.random_bool(0.002) {
            fault = Some(pair(rng, size));
        }
        bench.set("fault_valid", fault.is_some());
        bench.set_wide("fault", &pack(&[(fault.unwrap_or(0).into(), 16), (0, 8)]));
        for (k, name) in CLIENTS.into_iter().enumerate() {
            if offered[k].is_none() && rng.random_bool(rates[k]) {
                offered[k] = Some(match k != POSTS && rng.random_bool(0.5) {
                    true => Asked::Peer(granted.access(rng, size)),
                    false => Asked::Process(query(rng, regions as u16, &model)),
                });
                offered_about[k] = About::random(rng);
            }
            bench.set(&format!("{name}_query_valid"), offered[k].is_some());
            if let Some(asked) = &offered[k] {
                let words = match asked {
                    Asked::Process(query) if k == POSTS => words(query),
                    asked => access_words(asked, &offered_about[k]),
                };
                bench.set_wide(&format!("{name}_query"), &words);
            }
        }
        bench.eval();
        pulses += u32::from(bench.is("refused_valid"));
        let tells = bench.is("peer_refused_valid");
        assert_eq!(tells, told_now.is_some(), "cycle {cycle}");
        if let Some((pair, told)) = told_now.take() {
            let found: [u64; 2] = bench.get_wide("peer_refused");
            let wanted = pack(&[
                (pair.into(), 16),
                (told.reason.code().into(), 8),
                (told.region.into(), 32),
                (told.offset, 64),
            ]);
            assert_eq!(found.to_vec(), wanted, "{told:x?} in cycle {cycle}");
        }
        for (k, name) in CLIENTS.into_iter().enumerate().take(POSTS) {
            let its = ticket_now.as_ref().filter(|(client, _)| *client == k);
            let tells = bench.is(&format!("{name}_ticket_valid"));
            assert_eq!(tells, its.is_some(), "{name} in cycle {cycle}");
            if let Some((_, words)) = its {
                let found: [u64; 3] = bench.get_wide(&format!("{name}_ticket"));
                assert_eq!(found[..], words[..], "{name} in cycle {cycle}");
            }
        }
        ticket_now = None;
        let due = asked.front().filter(|due| due.cycle + LATENCY == cycle);
        let spends = due.and_then(|due| due.spends);
        let spent = bench.is("spent_valid").then(|| bench.get("spent") as u16);
        assert_eq!(spent, spends, "cycle {cycle}");
        for (k, name) in CLIENTS.into_iter().enumerate() {
            let answered = bench.is(&format!("{name}_allowed_valid"));
            let its = due.filter(|due| due.client == k);
            assert_eq!(answered, its.is_some(), "{name} in cycle {cycle}");
            let Some(due) = its else { continue };
            let right = due.address.is_some();
            let allowed = match k {
                POSTS => bench.is("posts_allowed"),
                _ => {
                    let permission: [u64; 2] = bench.get_wide(&format!("{name}_allowed"));
                    let [allowed, address, space] = unpack(&permission, [1, 64, 8]);
                    let located = due.address == Some(address) && space == u64::from(due.space);
                    assert!(!right || located, "cycle {cycle}");
                    allowed == 1
                }
            };
            assert_eq!(allowed, right, "cycle {cycle}");
            if right && k != POSTS {
                ticket_now = Some((k, due.ticket.clone()));
            }
            if let Asked::Peer(access) = due.asked {
                told_now = due.told.map(|told| (access.pair, told));
            }
            let told = match due.asked {
                Asked::Process(query) if !right => Some(query),
                _ => None,
            };
            assert_eq!(bench.is("refused_valid"), told.is_some(), "cycle {cycle}");
            if let Some(query) = told {
                let refused: [u64; 3] = bench.get_wide("refused");
                assert_eq!(refused.to_vec(), words(&query), "cycle {cycle}");
                refusals += 1;
            }
        }
        let made = control.filter(|_| bench.is("control_ready"));
        let failed = fault.filter(|_| bench.is("fault_ready"));
        let changes = made.is_some() || failed.is_some();
        assert!(!changes || asked.is_empty(), "a change in cycle {cycle}");
        assert!(made.is_none() || failed.is_none(), "two in cycle {cycle}");
        let is_answered = due.is_some();
        let peer_waits = asked.iter().any(|due| matches!(due.asked, Asked::Peer(_)));
        if is_answered {
            asked.pop_front();
        }
        let mut queries = 0;
        for (k, name) in CLIENTS.into_iter().enumerate() {
            let taken = bench.is(&format!("{name}_query_ready"));
            let Some(asks) = offered[k].filter(|_| taken) else {
                waited[k] += u32::from(offered[k].is_some());
                assert!(waited[k] < 40, "{name} gets its turn");
                continue;
            };
            queries += 1;
            waited[k] = 0;
            offered[k] = None;
            let told = match asks {
                Asked::Process(_) => None,
                Asked::Peer(access) => model.peer_refusal(&access),
            };
            let once = match asks {
                Asked::Process(_) => None,
                Asked::Peer(access) => {
                    let grant = model.grants.find(&access).ok();
                    let once = grant.filter(|grant| grant.flags & GRANT_ONE_SHOT != 0);
                    once.map(|_| remote_key_index(access.key))
                }
            };
            let region = match asks {
                Asked::Process(query) => key_index(query.key),
                Asked::Peer(access) => key_index(model.grants.region_named(access.key)),
            };
            let address = match asks {
                Asked::Process(query) => {
                    let right = model.allowed(&query);
                    for (relax, seen) in RELAXED.into_iter().zip(&mut seen.clauses) {
                        *seen += u32::from(relaxed(&model, &query, relax) != right);
                    }
                    seen.answers[usize::from(right)] += 1;
                    right.then_some(query.address)
                }
                Asked::Peer(access) => {
                    let found = model.find_remote(&access).err();
                    *seen.peers.entry(found).or_default() += 1;
                    match found {
                        None => granted.1 = Some(access),
                        Some(Refused::NoGrant) => granted.forget(access.key),
                        Some(_) => {}
                    }
                    model.allowed_remote(&access)
                }
            };
            let about = offered_about[k];
            let (pair, length) = match asks {
                Asked::Process(query) => (about.pair, query.length),
                Asked::Peer(access) => (access.pair, access.length),
            };
            let first = address.unwrap_or(0);
            let ticket = pack(&[
                (region.into(), 16),
                (
                    model.get(region).map_or(0, |region| region.domain.into()),
                    8,
                ),
                (pair.into(), 16),
                (about.tagged.into(), 1),
                (about.context.into(), 16),
                (first >> PAGE_BITS, 52),
                (first.wrapping_add(length).wrapping_sub(1) >> PAGE_BITS, 52),
            ]);
            asked.push_back(Due {
                client: k,
                cycle,
                asked: asks,
                address,
                space: model.get(region).map_or(0, |region| region.space),
                spends: once.filter(|_| address.is_some()),
                told,
                ticket,
            });
        }
        // Nothing but a change holds a query off, or another one of a peer's.
        let asks = waited.iter().any(|waited| *waited > 0);
        assert!(queries <= 1, "one query a cycle");
        assert!(
            queries == 1 || !asks || control.is_some() || fault.is_some() || peer_waits,
            "cycle {cycle}"
        );
        let ended = match made {
            Some(change) if change.operation == Operation::PairClear => Some(change.index),
            _ => failed,
        };
        if let Some(change) = made {
            change.make(&mut model);
            control = None;
        }
        if let Some(pair) = failed {
            model.grants.close(pair);
            fault = None;
        }
        if let Some(pair) = ended.filter(|_| rng.random_bool(0.7)) {
            first.push(Change::after_an_end(rng, pair));
        }
        ticks += u64::from(tick);
        model.grants.advance_to(ticks * u64::from(SHUT_OUT_TICK));
        bench.step();
    }
    assert_eq!(pulses, refusals, "one pulse a refusal");
    seen
}

#[test]
fn an_answer_is_the_rule_and_takes_the_same_time_always() {
    let total = RefCell::new(Seen::default());
    for_sizes("regions", 4, |size, rng| {
        let seen = questions(size, rng, Break::None);
        let mut total = total.borrow_mut();
        for (total, seen) in total.clauses.iter_mut().zip(seen.clauses) {
            *total += seen;
        }
        for (total, seen) in total.answers.iter_mut().zip(seen.answers) {
            *total += seen;
        }
        for (why, seen) in seen.peers {
            *total.peers.entry(why).or_default() += seen;
        }
    });
    let total = total.into_inner();
    // Each clause was the one that decided, so that a block without it would have failed.
    assert!(total.clauses.iter().all(|n| *n > 10), "{total:?}");
    assert!(total.answers.iter().all(|n| *n > 100), "{total:?}");
    // Peers were refused for each reason, and allowed.
    for why in Refused::ALL.map(Some).into_iter().chain([None]) {
        assert!(total.peers.get(&why) > Some(&10), "{why:?} of {total:?}");
    }
}

#[test]
fn each_broken_contract_is_noticed() {
    breaks("regions_tiny", 10, |rng| {
        questions(&Size::new(&config::TINY, "regions", rng), rng, Break::None);
    });
}

#[test]
#[ignore = "mutants: `cargo xtask mutants`, `cargo xtask test --long`"]
fn most_mutants_are_noticed() {
    mutants("regions_tiny", 6, |rng| {
        let size = Size::new(&config::TINY, "regions", rng);
        questions(&size, rng, Break::None);
    });
}

#[test]
fn a_model_to_which_every_tag_is_right_is_noticed() {
    assert!(is_caught("regions_tiny", 3, |rng| {
        let size = Size::new(&config::TINY, "regions", rng);
        questions(&size, rng, Break::TagIgnored);
    }));
}
