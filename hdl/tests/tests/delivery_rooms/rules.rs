//! `envelope::Rules`: what falls under a rule, against the rules of the model of the card.

use abi::control::RuleSetup;
use card_model::Break;
use card_model::delivery::{Rules, Tag};
use hdl::config::TINY;
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use hdl_tests::broken::{breaks, mutants};
use hdl_tests::fields::pack;
use hdl_tests::{Bench, Size, for_sizes};

const BLOCK: &str = "rules";
/// Looks of a run.
const LOOKS: usize = 1500;

/// A rule of some of the card's pairs.
fn rule(size: &Size, rng: &mut ChaCha8Rng) -> RuleSetup {
    let members: u128 = (0..size.config.pairs)
        .map(|pair| u128::from(rng.random_bool(0.5)) << pair)
        .sum();
    RuleSetup {
        endpoint: rng.random_range(0..size.config.endpoints) as u8,
        context: rng.random_range(0..3),
        match_bits: rng.random(),
        mask: [0, u64::MAX, 0xf << 20, rng.random()][rng.random_range(0..4)],
        pairs_low: members as u64,
        pairs_high: (members >> 64) as u64,
        ..RuleSetup::default()
    }
}

/// What falls under this rule, or would but for one thing.
fn near(rule: &RuleSetup, size: &Size, rng: &mut ChaCha8Rng) -> Tag {
    let members: Vec<u16> = (0..size.config.pairs as u16)
        .filter(|pair| rule.pairs() >> pair & 1 == 1)
        .collect();
    let pair = match members.len() {
        0 => 0,
        count => members[rng.random_range(0..count)],
    };
    let anything: u64 = rng.random();
    let bit = 1 << rng.random_range(0..64);
    let mut tag = Tag {
        endpoint: rule.endpoint,
        pair: Some(pair),
        context: rule.context,
        match_bits: rule.match_bits & rule.mask | anything & !rule.mask,
        ignore_bits: [0, rng.random::<u64>() & !rule.mask][rng.random_range(0..2)],
    };
    match rng.random_range(0..10) {
        0 => tag.endpoint = rng.random_range(0..size.config.endpoints as u8 + 1),
        1 => tag.pair = Some(size.pair_or_none(rng) as u16),
        2 => tag.pair = Some(size.pair(rng) as u16 + [128, 256][rng.random_range(0..2)]),
        3 => tag.pair = None,
        4 => tag.context ^= 1 << rng.random_range(0..16),
        5 => tag.match_bits ^= bit,
        6 => tag.ignore_bits |= bit,
        _ => {}
    }
    tag
}

fn words(tag: &Tag, rng: &mut ChaCha8Rng) -> Vec<u64> {
    let any_pair: u16 = rng.random();
    pack(&[
        (tag.endpoint.into(), 8),
        (tag.pair.unwrap_or(any_pair).into(), 16),
        (tag.pair.is_none().into(), 1),
        (tag.context.into(), 16),
        (tag.match_bits, 64),
        (tag.ignore_bits, 64),
    ])
}

/// Rules come and go, pairs and endpoints close, and something is looked up. Now and then a rule comes while an answer isn't known, which is void then.
fn live(size: &Size, rng: &mut ChaCha8Rng, broken: Break) {
    let rows = size.config.rules;
    let mut bench = Bench::open(&size.model);
    let mut reference = Rules::new(rows);
    // Rules that were set, which may be gone: something near them is looked up.
    let mut recent: Vec<RuleSetup> = vec![rule(size, rng)];
    let mut looks = 0;
    let (changes, closes) = (rng.random_range(0.02..0.3), rng.random_range(0.002..0.05));
    // What is looked up, and the cycles since; whether it is covered, if the answer isn't void.
    let mut looked = near(&recent[0], size, rng);
    let mut asked = 0;
    let mut covered = None;
    // Cycles for which a group is being written yet.
    let mut fills = 0;
    while looks < LOOKS {
        let waits = covered.is_some();
        let settled = fills == 0;
        let may_change = settled && (!waits || rng.random_bool(0.02));
        let change = (may_change && rng.random_bool(changes)).then(|| {
            // Now and then a row that there isn't.
            let row = match rng.random_range(0..20) {
                0 => [rows, 256, 1 << 15][rng.random_range(0..3)],
                _ => rng.random_range(0..rows),
            };
            let set = rng.random_bool(0.7).then(|| rule(size, rng));
            (row as u16, set)
        });
        let pair = (may_change && change.is_none() && rng.random_bool(closes))
            .then(|| size.pair(rng) as u16);
        let endpoint = (may_change && rng.random_bool(closes / 4.0))
            .then(|| rng.random_range(0..size.config.endpoints) as u8);
        let changes = change.is_some() || pair.is_some() || endpoint.is_some();
        let look = !waits && !changes && rng.random_bool(0.7);
        if look {
            looks += 1;
            looked = near(&recent[rng.random_range(0..recent.len())], size, rng);
        }

        bench.set("look_valid", look);
        bench.set_wide("look", &words(&looked, rng));
        bench.set("change_valid", change.is_some());
        let (row, set) = change.unwrap_or((rng.random_range(0..rows) as u16, None));
        let mut fields = vec![(row.into(), 16), (set.is_some().into(), 1)];
        let data = set.unwrap_or_else(|| rule(size, rng)).to_words();
        fields.extend(data.map(|word| (word, 64)));
        bench.set_wide("change", &pack(&fields));
        bench.set("forget_pair_valid", pair.is_some());
        bench.set("forget_pair", pair.unwrap_or(rng.random_range(0..8)));
        bench.set("forget_endpoint_valid", endpoint.is_some());
        bench.set(
            "forget_endpoint",
            endpoint.unwrap_or(rng.random_range(0..2)),
        );
        bench.eval();
        assert_eq!(bench.is("settled"), settled);
        if let Some(expected) = covered {
            asked += 1;
            if bench.is("known") {
                assert_eq!(bench.is("covered"), expected, "of {looked:?}");
                covered = None;
            }
            let most = rows + 2 + size.config.pairs + 1;
            assert!(asked <= most, "no answer after {asked} cycles");
        }
        bench.step();
        fills = usize::saturating_sub(fills, 1);

        if changes {
            covered = None;
        }
        if look {
            covered = Some(reference.cover(&looked, broken));
            asked = 0;
        }
        if let Some(pair) = pair {
            reference.forget_pair(pair, broken);
        }
        if let Some(endpoint) = endpoint {
            reference.forget_endpoint(endpoint);
        }
        if let Some((row, set)) = change {
            reference.set(row, set, broken);
            if set.is_some() && usize::from(row) < rows {
                fills = size.config.pairs + 1;
            }
            recent.extend(set);
            let old = recent.len().saturating_sub(rows + 2);
            recent.drain(..old);
        }
    }
}

fn random(size: &Size, rng: &mut ChaCha8Rng) {
    live(size, rng, Break::None);
}

fn tiny(rng: &mut ChaCha8Rng) -> Size {
    Size::new(&TINY, BLOCK, rng)
}

#[test]
fn a_message_is_revoked_if_a_rule_covers_it() {
    for_sizes(BLOCK, 6, random);
}

#[test]
fn rules_that_are_broken_are_noticed() {
    breaks("rules_tiny", 4, |rng| random(&tiny(rng), rng));
}

#[test]
fn broken_rules_of_the_model_are_noticed() {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use rand::SeedableRng;

    let all = [
        Break::RuleMaskIgnored,
        Break::RuleContextIgnored,
        Break::RuleGroupIgnored,
        Break::RuleEndpointIgnored,
        Break::RuleNotCleared,
        Break::RuleKeepsPair,
    ];
    for broken in all {
        let noticed = (1..6).any(|seed| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let run = || live(&tiny(&mut rng), &mut rng, broken);
            catch_unwind(AssertUnwindSafe(run)).is_err()
        });
        assert!(noticed, "{broken:?} goes unnoticed");
    }
}

#[test]
#[ignore = "mutants: `cargo xtask mutants`, `cargo xtask test --long`"]
fn most_mutants_of_rules_are_noticed() {
    mutants("rules_tiny", 2, |rng| random(&tiny(rng), rng));
}
