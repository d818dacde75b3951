//! `protect::Fence`: a change waits for the accesses that began before it and that it covers, and for no others.

use std::cell::RefCell;
use std::collections::VecDeque;

use abi::control::{
    AccessReport, COVER_CONTEXT, COVER_DOMAIN, COVER_PAGES, COVER_PAIR, COVER_REGION, FenceSetup,
    Operation, PermissionSetup,
};
use hdl::protect::TICKETS;
use hdl_tests::broken::{breaks, mutants};
use hdl_tests::fields::pack;
use hdl_tests::{Bench, for_seeds, rate};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

/// Clients.
const CLIENTS: usize = 2;

/// An access.
#[derive(Clone, Copy, Debug)]
struct Ticket {
    region: u16,
    domain: u8,
    pair: u16,
    tagged: bool,
    context: u16,
    first_page: u64,
    last_page: u64,
}

/// One of the first pages, or of the last.
fn page(rng: &mut ChaCha8Rng) -> u64 {
    match rng.random_bool(0.2) {
        true => (1 << 52) - rng.random_range(1..4),
        false => rng.random_range(0..8),
    }
}

impl Ticket {
    fn random(rng: &mut ChaCha8Rng) -> Self {
        let (a, b) = (page(rng), page(rng));
        let b = if rng.random_bool(0.7) { a } else { b };
        Self {
            region: rng.random_range(0..4),
            domain: rng.random_range(0..2),
            pair: rng.random_range(0..4),
            tagged: rng.random(),
            context: rng.random_range(0..3),
            first_page: a.min(b),
            last_page: a.max(b),
        }
    }

    /// What is told of it while it is waited for.
    fn report(&self, client: usize) -> AccessReport {
        AccessReport {
            waits: 1,
            writes: client as u8,
            tagged: self.tagged.into(),
            domain: self.domain,
            region: self.region,
            pair: self.pair,
            context: self.context,
            ..AccessReport::default()
        }
    }

    fn words(&self) -> Vec<u64> {
        pack(&[
            (self.region.into(), 16),
            (self.domain.into(), 8),
            (self.pair.into(), 16),
            (self.tagged.into(), 1),
            (self.context.into(), 16),
            (self.first_page, 52),
            (self.last_page, 52),
        ])
    }
}

/// A change.
#[derive(Clone, Copy, Debug)]
struct Change {
    operation: Operation,
    index: u16,
    fence: FenceSetup,
    permission: PermissionSetup,
}

impl Change {
    fn random(rng: &mut ChaCha8Rng) -> Self {
        use Operation::*;
        let operations = [
            RegionSet,
            RegionClear,
            GrantSet,
            GrantClear,
            PermissionSet,
            SenderRevoke,
            PairSet,
            PairClear,
            Fence,
            Fence,
        ];
        let (a, b) = (page(rng), page(rng));
        let all = [
            COVER_REGION,
            COVER_PAIR,
            COVER_CONTEXT,
            COVER_PAGES,
            COVER_DOMAIN,
        ];
        let mut covers = 0;
        for cover in all {
            covers |= cover * u8::from(rng.random_bool(0.3));
        }
        Self {
            operation: operations[rng.random_range(0..operations.len())],
            index: rng.random_range(0..4),
            fence: FenceSetup {
                covers,
                region: rng.random_range(0..4),
                pair: rng.random_range(0..4),
                context: rng.random_range(0..3),
                domain: rng.random_range(0..2),
                first_page: a.min(b),
                last_page: a.max(b),
                ..FenceSetup::default()
            },
            permission: PermissionSetup {
                shared: rng.random(),
                allowed: rng.random_range(0..2),
                ..PermissionSetup::default()
            },
        }
    }

    fn words(&self) -> Vec<u64> {
        let mut fields = vec![(self.operation.code().into(), 8), (self.index.into(), 16)];
        let data = match self.operation {
            Operation::PermissionSet => self.permission.to_words().to_vec(),
            _ => self.fence.to_words().to_vec(),
        };
        fields.extend(data.iter().map(|word| (*word, 64)));
        fields.resize(7, (0, 64));
        pack(&fields)
    }

    /// Whether it waits for an access; for none at all: `None`.
    fn covers(&self, ticket: &Ticket) -> Option<bool> {
        match self.operation {
            Operation::RegionSet | Operation::RegionClear => Some(ticket.region == self.index),
            Operation::SenderRevoke => Some(ticket.pair == self.index),
            Operation::PermissionSet if self.permission.allowed == 0 => {
                Some(ticket.pair == self.index)
            }
            Operation::Fence | Operation::GrantClear => {
                let fence = &self.fence;
                let names = |cover: u8| fence.covers & cover != 0;
                let agrees = [
                    !names(COVER_REGION) || ticket.region == fence.region,
                    !names(COVER_PAIR) || ticket.pair == fence.pair,
                    !names(COVER_CONTEXT) || ticket.tagged && ticket.context == fence.context,
                    !names(COVER_PAGES)
                        || ticket.first_page <= fence.last_page
                            && fence.first_page <= ticket.last_page,
                    !names(COVER_DOMAIN) || ticket.domain == fence.domain,
                ];
                Some(agrees.iter().all(|agrees| *agrees))
            }
            _ => None,
        }
    }
}

/// How changes ended: at once, behind what they cover, beside what they don't cover, and withdrawn.
#[derive(Debug, Default)]
struct Seen {
    at_once: u32,
    behind: u32,
    beside: u32,
    withdrawn: u32,
    full: u32,
    told: u32,
}

/// Random accesses beside random changes, some of which are withdrawn.
fn changes(rng: &mut ChaCha8Rng) -> Seen {
    let mut bench = Bench::open("fence");
    let begins: [f64; CLIENTS] = std::array::from_fn(|_| rate(rng));
    let ends: [f64; CLIENTS] = std::array::from_fn(|_| rate(rng));
    let table = rate(rng);
    let impatience = [0.01, 0.1][rng.random_range(0..2)];
    let mut under_way: [VecDeque<(u64, Ticket)>; CLIENTS] = Default::default();
    let mut begun = 0;
    let mut wanted: Option<Change> = None;
    // When the tables changed, the number of the last access then, and when the walk is over.
    let mut changed: Option<(u64, u64, u64)> = None;
    // The last cycle in which an access was there that is waited for.
    let mut waited = 0;
    let mut seen = Seen::default();
    for cycle in 0..6000_u64 {
        if wanted.is_none() && rng.random_bool(0.3) {
            wanted = Some(Change::random(rng));
        } else if wanted.is_some() && rng.random_bool(impatience) {
            seen.withdrawn += u32::from(changed.is_some());
            (wanted, changed) = (None, None);
        }
        bench.set("control_valid", wanted.is_some());
        let words = wanted.unwrap_or_else(|| Change::random(rng)).words();
        bench.set_wide("control", &words);
        let changes = rng.random_bool(table);
        bench.set("inner_ready", changes);
        let mut new = [None; CLIENTS];
        let mut gone = [false; CLIENTS];
        for k in 0..CLIENTS {
            gone[k] = !under_way[k].is_empty() && rng.random_bool(ends[k]);
            let room = under_way[k].len() < TICKETS || gone[k];
            seen.full += u32::from(!room);
            new[k] = (room && rng.random_bool(begins[k])).then(|| Ticket::random(rng));
            bench.set(&format!("ends_{k}"), gone[k]);
            bench.set(&format!("begins_valid_{k}"), new[k].is_some());
            let words = new[k].unwrap_or_else(|| Ticket::random(rng)).words();
            bench.set_wide(&format!("begins_{k}"), &words);
        }
        bench.eval();
        let asks = wanted.is_some() && changed.is_none();
        assert_eq!(bench.is("inner_valid"), asks, "cycle {cycle}");
        let done = bench.is("control_ready");
        let report = AccessReport::from_words(&[bench.get("report")]);
        let open = |change: &Change, last: u64| {
            let all = under_way.iter().flatten();
            all.filter(|(number, ticket)| *number <= last && change.covers(ticket) == Some(true))
                .count()
        };
        // What is told to be waited for is.
        if report != AccessReport::default() {
            let (change, (_, last, _)) = wanted.zip(changed).expect("somebody waits");
            let client = usize::from(report.writes);
            let waited_for = |(number, ticket): &(u64, Ticket)| {
                *number <= last
                    && change.covers(ticket) == Some(true)
                    && ticket.report(client) == report
            };
            assert!(
                under_way[client].iter().any(waited_for),
                "{report:?} in cycle {cycle}"
            );
            seen.told += 1;
        }
        match (wanted, changed) {
            (None, _) => assert!(!done, "cycle {cycle}"),
            // What takes nothing away is done with the tables.
            (Some(change), None) => {
                let nothing = change.covers(&Ticket::random(rng)).is_none();
                assert_eq!(done, changes && nothing, "{change:?} in cycle {cycle}");
                if done {
                    seen.at_once += 1;
                    wanted = None;
                } else if changes {
                    // From the youngest to the first that is covered, or past all, one a cycle.
                    let steps = |all: &VecDeque<(u64, Ticket)>| {
                        let covered = |(_, ticket): &(u64, Ticket)| change.covers(ticket);
                        let found = all.iter().rev().position(|one| covered(one) == Some(true));
                        found.unwrap_or(all.len()) as u64
                    };
                    let walk = under_way.iter().map(steps).max().unwrap_or(0);
                    changed = Some((cycle, begun, cycle + walk + 2));
                    waited = cycle;
                }
            }
            (Some(change), Some((since, last, walked))) => {
                let is_open = open(&change, last) > 0;
                assert!(!done || !is_open, "{change:?} is done in cycle {cycle}");
                if is_open {
                    waited = cycle;
                    assert!(cycle < walked + 1 || report.waits == 1, "cycle {cycle}");
                }
                let latest = walked.max(waited + 2);
                assert!(cycle <= latest, "{change:?} of {since} in cycle {cycle}");
                if done {
                    let all = under_way.iter().flatten();
                    let others = all.filter(|(number, _)| *number <= last).count();
                    seen.behind += u32::from(waited > since);
                    seen.beside += u32::from(others > 0);
                    (wanted, changed) = (None, None);
                }
            }
        }
        for k in 0..CLIENTS {
            if gone[k] {
                under_way[k].pop_front();
            }
            if let Some(ticket) = new[k] {
                begun += 1;
                under_way[k].push_back((begun, ticket));
            }
        }
        bench.step();
    }
    seen
}

#[test]
fn a_change_waits_for_what_it_covers_and_for_nothing_else() {
    let total = RefCell::new(Seen::default());
    for_seeds(16, |rng| {
        let seen = changes(rng);
        let mut total = total.borrow_mut();
        total.at_once += seen.at_once;
        total.behind += seen.behind;
        total.beside += seen.beside;
        total.withdrawn += seen.withdrawn;
        total.full += seen.full;
        total.told += seen.told;
    });
    let Seen {
        at_once,
        behind,
        beside,
        withdrawn,
        full,
        told,
    } = total.into_inner();
    let all = [at_once, behind, beside, withdrawn, full, told];
    assert!(all.iter().all(|n| *n > 100), "{all:?}");
}

#[test]
fn each_break_of_the_wait_is_noticed() {
    breaks("fence", 8, |rng| {
        changes(rng);
    });
}

#[test]
#[ignore = "mutants: `cargo xtask mutants`, `cargo xtask test --long`"]
fn most_mutants_of_a_fence_are_noticed() {
    mutants("fence", 2, |rng| {
        changes(rng);
    });
}
