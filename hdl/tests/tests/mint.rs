//! `protect::Mint`: which row and which tag a grant of the gates' own has, and when the row is free again, against the model.

use std::cell::RefCell;

use abi::control::{GrantSetup, MintSetup, Operation, minted_grants};
use abi::key::{remote_key_index, remote_key_tag};
use card_model::Mint;
use hdl::config::TINY;
use hdl_tests::broken::{breaks, mutants};
use hdl_tests::fields::pack;
use hdl_tests::{Bench, for_seeds, rate};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

/// Cycles in which a tag is made: a round in each, and one before them.
const TAG: u64 = 24;
/// Rows in front of those.
const GRANTS: u16 = TINY.grants as u16;
const ROWS: u16 = minted_grants(TINY.grants as u32) as u16;

/// A request, in words.
#[derive(Clone, Copy, Debug)]
struct Request {
    operation: Operation,
    index: u16,
    data: [u64; 5],
}

impl Request {
    fn random(rng: &mut ChaCha8Rng) -> Self {
        use Operation::{GrantClear, GrantMint, GrantSet, MintSet, SenderRevoke};
        let operations = [
            GrantMint,
            GrantMint,
            GrantMint,
            GrantClear,
            GrantClear,
            GrantSet,
            SenderRevoke,
        ];
        let operation = match rng.random_bool(0.01) {
            true => MintSet,
            false => operations[rng.random_range(0..operations.len())],
        };
        Self {
            operation,
            index: row(rng),
            data: rng.random(),
        }
    }

    fn words(&self) -> Vec<u64> {
        let mut fields = vec![(self.operation.code().into(), 8), (self.index.into(), 16)];
        fields.extend(self.data.map(|word| (word, 64)));
        pack(&fields)
    }

    /// What the tables are told, if it is `key` that is made.
    fn made(&self, key: u64) -> Self {
        let [w0, w1, w2, w3, w4] = self.data;
        let grant = GrantSetup {
            tag: remote_key_tag(key),
            ..GrantSetup::from_words(&[w0, w1, w2, w3, w4])
        };
        Self {
            operation: Operation::GrantSet,
            index: remote_key_index(key),
            data: grant.to_words(),
        }
    }
}

/// One of the rows of the gates', or one that isn't, which are the same in their low bits.
fn row(rng: &mut ChaCha8Rng) -> u16 {
    match rng.random_bool(0.8) {
        true => GRANTS + rng.random_range(0..ROWS),
        false => rng.random_range(0..GRANTS + 4 * ROWS),
    }
}

/// What became of requests to make a grant: made, with no key of the tags, with no row.
#[derive(Debug, Default)]
struct Seen {
    made: u32,
    no_key: u32,
    no_row: u32,
}

/// Random requests, and grants that end by their access.
fn requests(rng: &mut ChaCha8Rng) -> Seen {
    let mut bench = Bench::open("mint_tiny");
    let mut model = Mint::new(GRANTS.into());
    let (asks, takes) = (rate(rng), rate(rng));
    let spends = [0.002, 0.05][rng.random_range(0..2)];
    let mut has_key = false;
    let mut offered: Option<Request> = None;
    // Rows of grants that haven't ended.
    let mut open: Vec<u16> = vec![];
    // Cycles since the last tag was taken, and since no row was free.
    let (mut since_tag, mut since_full) = (0, 0);
    let mut before: Option<Vec<u64>> = None;
    let mut seen = Seen::default();
    for cycle in 0..4000_u64 {
        since_tag += 1;
        if offered.is_none() && rng.random_bool(asks) {
            offered = Some(Request::random(rng));
        }
        bench.set("control_valid", offered.is_some());
        let request = offered.unwrap_or_else(|| Request::random(rng));
        bench.set_wide("control", &request.words());
        let takes = rng.random_bool(takes);
        bench.set("inner_ready", takes);
        // A grant of any row may be for one access.
        let spent = rng.random_bool(spends).then(|| {
            let place = (!open.is_empty()).then(|| rng.random_range(0..open.len()));
            place.map_or_else(
                || rng.random_range(0..GRANTS),
                |place| open.swap_remove(place),
            )
        });
        bench.set("spent_valid", spent.is_some());
        bench.set("spent", spent.unwrap_or_else(|| row(rng)));
        bench.eval();
        let (ready, passes) = (bench.is("control_ready"), bench.is("inner_valid"));
        let words: Vec<u64> = bench.get_wide::<6>("inner").to_vec();
        let result = bench.get("control_result");
        // What is offered to the tables stays as it is until they take it.
        if let Some(before) = before.take() {
            assert!(passes, "cycle {cycle}");
            assert_eq!(words, before, "cycle {cycle}");
        }
        if passes && !takes {
            before = Some(words.clone());
        }
        let is_full = model.is_full();
        since_full = if is_full { 0 } else { since_full + 1 };
        let free = |model: &mut Mint| spent.into_iter().for_each(|row| model.free(row));
        match offered {
            None => {
                assert!(!ready && !passes, "cycle {cycle}");
                free(&mut model);
            }
            Some(Request {
                operation: Operation::MintSet,
                data,
                ..
            }) => {
                assert!(ready && !passes, "cycle {cycle}");
                assert_eq!(result, 0, "cycle {cycle}");
                model.set_key(&MintSetup::from_words(&[data[0], data[1]]));
                (has_key, since_tag) = (true, 0);
                free(&mut model);
            }
            Some(request) if request.operation == Operation::GrantMint => {
                if !has_key || is_full {
                    assert!(ready && !passes, "cycle {cycle}");
                    assert_eq!(result, 0, "cycle {cycle}");
                    seen.no_key += u32::from(!has_key);
                    seen.no_row += u32::from(has_key);
                    free(&mut model);
                } else {
                    assert_eq!(ready, passes && takes, "cycle {cycle}");
                    let early = since_tag <= TAG + 1 || since_full <= 1;
                    assert!(passes || early, "no grant in cycle {cycle}");
                    free(&mut model);
                    if ready {
                        let key = model.mint().expect("there are a row and a key");
                        assert_eq!(result, key, "cycle {cycle}");
                        assert_eq!(words, request.made(key).words(), "cycle {cycle}");
                        open.push(remote_key_index(key));
                        since_tag = 0;
                        seen.made += 1;
                    }
                }
            }
            Some(request) => {
                assert!(passes && ready == takes, "cycle {cycle}");
                assert_eq!(words, request.words(), "cycle {cycle}");
                assert_eq!(result, 0, "cycle {cycle}");
                let clears = ready && request.operation == Operation::GrantClear;
                let cleared = clears.then_some(request.index);
                // Of two that are freed in a cycle the lower one is the first.
                if cleared < spent {
                    cleared.into_iter().for_each(|row| model.free(row));
                    free(&mut model);
                } else {
                    free(&mut model);
                    cleared.into_iter().for_each(|row| model.free(row));
                }
                open.retain(|&row| Some(row) != cleared);
            }
        }
        if ready {
            offered = None;
        }
        bench.step();
    }
    seen
}

#[test]
fn rows_and_tags_are_those_of_the_model() {
    let sum = RefCell::new(Seen::default());
    for_seeds(16, |rng| {
        let seen = requests(rng);
        let mut total = sum.borrow_mut();
        total.made += seen.made;
        total.no_key += seen.no_key;
        total.no_row += seen.no_row;
    });
    let seen = sum.into_inner();
    assert!(
        seen.made > 100 && seen.no_key > 100 && seen.no_row > 100,
        "{seen:?}"
    );
}

#[test]
fn each_break_is_noticed() {
    breaks("mint_tiny", 16, |rng| {
        requests(rng);
    });
}

#[test]
#[ignore = "mutants: `cargo xtask mutants`, `cargo xtask test --long`"]
fn most_mutants_are_noticed() {
    mutants("mint_tiny", 6, |rng| {
        requests(rng);
    });
}
