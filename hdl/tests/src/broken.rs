//! A block's own test, run on the block when it is wrong: which wrongs does it notice?
//!
//! ```text
//!   test ──► Bench::open("prim_skid")            the sound model: prim_skid_broken with no break picked, if a block can be broken
//!   breaks("prim_skid", test)                    for each break: the same test, and the same call opens
//!                                                prim_skid_broken with the break picked
//!   mutants("prim_skid", test)                   likewise prim_skid_mutants, and its mutants; not every day, it takes long
//! ```

use std::cell::{Cell, RefCell};
use std::env;
use std::fs;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Once;

use hdl::catalogue::{picks_of, text_of};
use hdl::verilog::picks;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::Bench;

/// What is picked where a model is opened.
#[derive(Clone)]
struct Pick {
    model: String,
    variant: String,
    number: u64,
}

thread_local! {
    static PICK: RefCell<Option<Pick>> = const { RefCell::new(None) };
    /// Cycles that benches may take until the test counts as hung.
    static FUEL: Cell<u64> = const { Cell::new(u64::MAX) };
}

/// The model that is to be opened for `name`, and what its pin `broken` is to have, if it has one. A block that can be broken is simulated as that variant
/// with no break picked where nothing is to be wrong: so it is compiled once, and not twice.
pub fn picked(name: &str) -> (String, Option<u64>) {
    let broken = format!("{name}_broken");
    PICK.with_borrow(|pick| match pick {
        Some(pick) if pick.model == name => (pick.variant.clone(), Some(pick.number)),
        _ if model::names().any(|linked| linked == broken) => (broken, Some(0)),
        _ => (name.to_string(), None),
    })
}

/// A bench has taken a cycle. A test that waits for what a wrong block never does is to end.
pub fn burn() {
    FUEL.set(FUEL.get().checked_sub(1).expect("the test hangs"));
}

/// Panics under a break are expected, and a backtrace of each would cost more than the test.
fn quieten() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let wrong = PICK.with_borrow(|pick| pick.as_ref().is_some_and(|p| p.number != 0));
            if !wrong {
                usual(info);
            }
        }));
    });
}

/// A variant of a model, and what is run on it: a test with one of these seeds.
struct Trial<'a> {
    model: &'a str,
    kind: &'a str,
    /// In the order in which they are tried.
    seeds: &'a [u64],
    test: &'a dyn Fn(u64),
}

impl Trial<'_> {
    /// Runs the test while opening the model opens its variant with `number` picked, and says whether it panics, and the cycles it took.
    fn run(&self, number: u64, seed: u64, fuel: u64) -> (bool, u64) {
        quieten();
        struct Restored;
        impl Drop for Restored {
            fn drop(&mut self) {
                PICK.set(None);
                FUEL.set(u64::MAX);
            }
        }
        let _restored = Restored;
        PICK.set(Some(Pick {
            model: self.model.to_string(),
            variant: format!("{}_{}", self.model, self.kind),
            number,
        }));
        FUEL.set(fuel);
        let fails = catch_unwind(AssertUnwindSafe(|| (self.test)(seed))).is_err();
        (fails, fuel - FUEL.get())
    }

    /// Which of the numbers are noticed: with some seed, with which it passes when nothing is picked, the test fails. It hangs if it takes over four
    /// times the cycles that it takes with that seed then.
    fn noticed(&self, numbers: &[u64]) -> Vec<bool> {
        // A model that isn't there fails as well.
        drop(Bench::open(&format!("{}_{}", self.model, self.kind)));
        // Cycles with nothing picked, of the seeds that were needed so far.
        let mut sound: Vec<u64> = vec![];
        let mut notices = |&number: &u64| {
            self.seeds.iter().enumerate().any(|(place, &seed)| {
                if place == sound.len() {
                    let (fails, cycles) = self.run(0, seed, u64::MAX);
                    assert!(
                        !fails,
                        "the test fails on {} as it is, with seed {seed}",
                        self.model
                    );
                    sound.push(cycles);
                }
                let fuel = 10_000 + 4 * sound[place];
                self.run(number, seed, fuel).0
            })
        };
        numbers.iter().map(&mut notices).collect()
    }
}

/// The test with the random numbers of a seed.
fn seeded(test: impl Fn(&mut ChaCha8Rng)) -> impl Fn(u64) {
    move |seed| test(&mut ChaCha8Rng::seed_from_u64(seed))
}

/// Sees to it that `test`, which passes on `model` as it is, fails for some of the seeds with each break of
/// `MODEL_broken`.
///
/// # Panics
/// With the names of the breaks that it doesn't notice.
pub fn breaks(model: &str, seeds: u64, test: impl Fn(&mut ChaCha8Rng)) {
    breaks_from(model, &[], seeds, test);
}

/// The same, with these seeds tried first: those that notice a break that few others do.
///
/// # Panics
/// As [`breaks`].
pub fn breaks_from(model: &str, first: &[u64], seeds: u64, test: impl Fn(&mut ChaCha8Rng)) {
    all_noticed(model, &in_order(first, seeds), &seeded(test));
}

/// The same of a test that has its own random choices, with each break.
///
/// # Panics
/// With the names of the breaks that it doesn't notice.
pub fn breaks_by(model: &str, test: &dyn Fn()) {
    all_noticed(model, &[1], &|_| test());
}

/// Seeds in the order in which they are tried: these first, then the others of so many.
fn in_order(first: &[u64], seeds: u64) -> Vec<u64> {
    let others = (1..=seeds).filter(|seed| !first.contains(seed));
    first.iter().copied().chain(others).collect()
}

fn all_noticed(model: &str, seeds: &[u64], test: &dyn Fn(u64)) {
    let kind = "broken";
    let names = picks_of(&format!("{model}_{kind}"));
    let numbers: Vec<u64> = (1..=names.len() as u64).collect();
    let trial = Trial {
        model,
        kind,
        seeds,
        test,
    };
    let noticed = trial.noticed(&numbers);
    let unnoticed = names.iter().zip(noticed).filter(|(_, noticed)| !noticed);
    let unnoticed: Vec<_> = unnoticed.map(|(name, _)| name).collect();
    assert!(!names.is_empty() && unnoticed.is_empty(), "{unnoticed:?}");
}

/// Mutants of a block that are tried where no score is asked for.
const SAMPLE: usize = 24;
/// Mutants that a long run tries at most: the tests of the largest blocks would take hours with all.
const MOST: usize = 500;
/// Which those are.
const SEED: u64 = 17;

/// Counts which mutants of `MODEL_mutants` the `test` notices that passes on `model` as it is: of a fixed sample, of all or a
/// larger one if `POSTHORN_MUTANTS` names a folder, where the score then goes, with the text that it is of. With
/// `POSTHORN_MUTANTS_OF` only the models named there are tried. A mutant that nobody can tell from the block survives
/// rightly, so a score is told and no more is asked than that most are noticed.
///
/// # Panics
/// If less than half of them are noticed.
pub fn mutants(model: &str, seeds: u64, test: impl Fn(&mut ChaCha8Rng)) {
    let asked = env::var("POSTHORN_MUTANTS_OF").unwrap_or_default();
    if !asked.is_empty() && !asked.split(' ').any(|name| name == model) {
        return;
    }
    let text = text_of(&format!("{model}_mutants"));
    let names = picks(&text);
    let mut numbers: Vec<u64> = (1..=names.len() as u64).collect();
    let folder = env::var_os("POSTHORN_MUTANTS");
    numbers.shuffle(&mut ChaCha8Rng::seed_from_u64(SEED));
    numbers.truncate(if folder.is_none() { SAMPLE } else { MOST });
    numbers.sort_unstable();
    let trial = Trial {
        model,
        kind: "mutants",
        seeds: &in_order(&[], seeds),
        test: &seeded(test),
    };
    let noticed = trial.noticed(&numbers);
    let count = noticed.iter().filter(|noticed| **noticed).count();
    println!("{model}: {count} of {} mutants are noticed", numbers.len());
    let survivors = numbers
        .iter()
        .zip(&noticed)
        .filter(|(_, noticed)| !*noticed);
    let survivors: Vec<_> = survivors.map(|(n, _)| &names[*n as usize - 1]).collect();
    let lines: String = survivors.iter().map(|name| format!("{name}\n")).collect();
    print!("{lines}");
    if let Some(folder) = folder {
        let score = format!("{count} {} {}\n{lines}", numbers.len(), names.len());
        for (extension, content) in [("sv", text), ("txt", score)] {
            let file = Path::new(&folder).join(format!("{model}.{extension}"));
            fs::write(&file, content).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        }
    }
    assert!(2 * count >= numbers.len(), "{survivors:?}");
}
