//! The table of regions, Verilated, against the regions of the model of the card.

#[path = "support/bits.rs"]
mod bits;
mod support;

use std::cell::RefCell;
use std::collections::VecDeque;

use abi::control::{KEY_INDEX_BITS, Operation, RegionSetup, key_index, key_tag, region_key};
use bits::{pack, unpack};
use card_model::{Access, Break, Regions};
use hdl::config;
use hdl::protect::LATENCY;
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use support::broken::breaks;
use support::{Bench, Size, for_sizes, is_caught, rate};

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

/// Words of what Delivery asks.
fn of_delivery(asked: &Asked) -> Vec<u64> {
    let query = &asked.query;
    pack(&[
        (query.domain.into(), 8),
        (query.key.into(), 32),
        (query.rights.into(), 8),
        (query.address, 64),
        (query.length, 64),
        (asked.peer.is_some().into(), 1),
        (asked.peer.unwrap_or_default().into(), 16),
        (query.key.into(), 64),
    ])
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
    for cycle in 0.. {
        bench.eval();
        if bench.is("initialized") {
            break;
        }
        assert!(
            !bench.is("transmit_query_ready"),
            "not before it is cleared"
        );
        assert!(cycle <= size.config.regions, "one region a cycle");
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
        rights: rng.random_range(0..4),
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

/// What was asked: how often each clause decided, and answers of either kind.
#[derive(Debug, Default)]
struct Seen {
    clauses: [u32; RELAXED.len()],
    answers: [u32; 2],
}

/// Who asks.
const CLIENTS: [&str; 3] = ["transmit", "delivery", "posts"];

/// The client that asks for peers too.
const DELIVERY: usize = 1;

/// A question.
#[derive(Clone, Copy)]
struct Asked {
    query: Access,
    /// The pair of a peer, which asks with the same numbers and may do nothing yet.
    peer: Option<u16>,
}

/// A pin that stays low or high for some cycles.
#[derive(Default)]
struct Quiet {
    high: bool,
    left: u32,
}

impl Quiet {
    fn next(&mut self, rng: &mut ChaCha8Rng) -> bool {
        if self.left == 0 {
            self.high = !self.high;
            self.left = rng.random_range(6..40);
        }
        self.left -= 1;
        self.high
    }
}

/// Random queries of all clients while the table changes, held to the model, which is broken on purpose.
fn questions(size: &Size, rng: &mut ChaCha8Rng, broken: Break) -> Seen {
    let mut bench = open(size);
    let regions = size.config.regions as u16;
    let mut model = Regions::new(regions.into());
    model.break_on_purpose(broken);
    let mut control: Option<(Operation, u16, RegionSetup)> = None;
    let mut offered: [Option<Asked>; 3] = [None; 3];
    // Who asked, when, and what the answer has to be.
    let mut asked: VecDeque<(usize, u64, bool, Asked)> = VecDeque::new();
    let rates = [rate(rng), rate(rng), rate(rng)];
    let mut waited = [0; 3];
    // What was allowed is on its way for some time, and then isn't for some time.
    let mut quiet = Quiet::default();
    let (mut pulses, mut refusals) = (0, 0);
    let mut seen = Seen::default();
    for cycle in 0..10_000_u64 {
        if control.is_none() && rng.random_bool(0.02) {
            let set = rng.random_bool(0.7);
            let operation = match set {
                true => Operation::RegionSet,
                false => Operation::RegionClear,
            };
            // Sometimes beyond the table, which changes nothing.
            let at = place(rng, regions);
            control = Some((operation, at, region(rng)));
        }
        bench.set("control_valid", control.is_some());
        if let Some((operation, at, setup)) = control {
            let mut fields = vec![(operation.code().into(), 8), (at.into(), 16)];
            fields.extend(setup.to_words().map(|word| (word, 64)));
            bench.set_wide("control", &pack(&fields));
        }
        for (k, name) in CLIENTS.into_iter().enumerate() {
            if offered[k].is_none() && rng.random_bool(rates[k]) {
                offered[k] = Some(Asked {
                    query: query(rng, regions, &model),
                    peer: (k == DELIVERY && rng.random_bool(0.3)).then(|| rng.random()),
                });
            }
            bench.set(&format!("{name}_query_valid"), offered[k].is_some());
            if let Some(asked) = &offered[k] {
                let words = match k {
                    DELIVERY => of_delivery(asked),
                    _ => words(&asked.query),
                };
                bench.set_wide(&format!("{name}_query"), &words);
            }
        }
        let is_quiet = quiet.next(rng);
        bench.set("quiet", is_quiet);
        bench.eval();
        pulses += u32::from(bench.is("refused_valid"));
        let due = asked.front().copied();
        let due = due.filter(|(_, at, ..)| at + LATENCY == cycle);
        for (k, name) in CLIENTS.into_iter().enumerate() {
            let answered = bench.is(&format!("{name}_allowed_valid"));
            let its = due.filter(|(who, ..)| *who == k);
            assert_eq!(answered, its.is_some(), "{name} in cycle {cycle}");
            if let Some((_, _, right, asked)) = its {
                let allowed = match k {
                    DELIVERY => {
                        let permission: [u64; 2] = bench.get_wide("delivery_allowed");
                        let [allowed, address] = unpack(&permission, [1, 64]);
                        assert!(!right || address == asked.query.address, "cycle {cycle}");
                        allowed == 1
                    }
                    _ => bench.is(&format!("{name}_allowed")),
                };
                assert_eq!(allowed, right, "cycle {cycle}");
                let told = !right && asked.peer.is_none();
                assert_eq!(bench.is("refused_valid"), told, "cycle {cycle}");
                let refused: [u64; 3] = bench.get_wide("refused");
                assert_eq!(refused.to_vec(), words(&asked.query), "cycle {cycle}");
                refusals += u32::from(told);
            }
        }
        let own_done = control.is_some() && bench.is("control_ready");
        assert!(!own_done || is_quiet, "a change in cycle {cycle}");
        assert!(!own_done || asked.is_empty(), "a change in cycle {cycle}");
        if due.is_some() {
            asked.pop_front();
        }
        let mut queries = 0;
        for (k, name) in CLIENTS.into_iter().enumerate() {
            let taken = bench.is(&format!("{name}_query_ready"));
            let Some(asks) = offered[k].filter(|_| taken) else {
                waited[k] += u32::from(offered[k].is_some());
                assert!(waited[k] < 20, "{name} gets its turn");
                continue;
            };
            queries += 1;
            waited[k] = 0;
            offered[k] = None;
            let query = asks.query;
            if asks.peer.is_some() {
                asked.push_back((k, cycle, false, asks));
                continue;
            }
            let right = model.allowed(&query);
            asked.push_back((k, cycle, right, asks));
            for (relax, seen) in RELAXED.into_iter().zip(&mut seen.clauses) {
                *seen += u32::from(relaxed(&model, &query, relax) != right);
            }
            seen.answers[usize::from(right)] += 1;
        }
        // Nothing but a change that can be made now holds a query off.
        let asks = waited.iter().any(|waited| *waited > 0);
        assert!(queries <= 1, "one query a cycle");
        assert!(
            queries == 1 || !asks || control.is_some() && is_quiet,
            "cycle {cycle}"
        );
        if let Some((operation, at, setup)) = control.filter(|_| bench.is("control_ready")) {
            control = None;
            model.set(at, (operation == Operation::RegionSet).then_some(setup));
        }
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
    });
    let total = total.into_inner();
    // Each clause was the one that decided, so that a block without it would have failed.
    assert!(total.clauses.iter().all(|n| *n > 10), "{total:?}");
    assert!(total.answers.iter().all(|n| *n > 100), "{total:?}");
}

#[test]
fn each_broken_contract_is_noticed() {
    breaks("regions_tiny", 3, |rng| {
        questions(&Size::new(&config::TINY, "regions", rng), rng, Break::None);
    });
}

#[test]
fn a_model_to_which_every_tag_is_right_is_noticed() {
    assert!(is_caught("regions_tiny", 3, |rng| {
        let size = Size::new(&config::TINY, "regions", rng);
        questions(&size, rng, Break::TagIgnored);
    }));
}
