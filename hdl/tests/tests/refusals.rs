//! What the regions refuse is told to the processor: all of it, seldom, and when nobody else tells something.

use abi::event::{Cause, NO_PAIR, Refusal};
use abi::times::REFUSAL_INTERVAL;
use hdl_tests::broken::{breaks, mutants};
use hdl_tests::fields::{pack, unpack};
use hdl_tests::{Bench, for_seeds, rate};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

/// Random refusals, beside somebody who tells at times.
fn refuses(rng: &mut ChaCha8Rng) {
    let mut bench = Bench::open("refusals");
    let (wrong, others) = (rate(rng), rate(rng) / 2.0);
    // The last refusal, how many were not told, and when the last event was.
    let (mut waiting, mut last_told) = (Refusal::default(), None);
    let mut events = 0;
    for cycle in 0..4 * u64::from(REFUSAL_INTERVAL) {
        // Towards the end there is a time without any.
        let refused = rng.random_bool(wrong) && cycle % 0x3000 < 0x2000;
        let (key, domain, rights): (u32, u8, u8) = rng.random();
        bench.set("refused_valid", refused);
        let query = [
            (domain.into(), 8),
            (key.into(), 32),
            (rights.into(), 8),
            (rng.random(), 64),
            (rng.random(), 64),
        ];
        bench.set_wide("refused", &pack(&query));
        let others = rng.random_bool(others);
        bench.set("others_tell", others);
        bench.eval();
        let rested = last_told.is_none_or(|last| cycle - last >= u64::from(REFUSAL_INTERVAL));
        let tells = waiting.count > 0 && rested && !others;
        assert_eq!(bench.is("told_valid"), tells, "cycle {cycle}");
        if tells {
            let told = pack(&[
                (0, 8),
                (Cause::AccessRefused.code().into(), 8),
                (NO_PAIR.into(), 16),
                (waiting.to_info(), 64),
            ]);
            let found: [u64; 2] = bench.get_wide("told");
            assert_eq!(found.to_vec(), told, "cycle {cycle}");
            (waiting.count, last_told) = (0, Some(cycle));
            events += 1;
        }
        if refused {
            waiting = Refusal {
                key,
                domain,
                rights,
                count: waiting.count.saturating_add(1),
            };
        }
        bench.step();
    }
    assert!((3..=4).contains(&events), "{events} events");
}

/// Others tell events for so long that more is refused than the count can say.
fn ends_at_the_largest(_: &mut ChaCha8Rng) {
    let mut bench = Bench::open("refusals");
    bench.set("refused_valid", true);
    bench.set("others_tell", true);
    bench.model.steps(u64::from(u16::MAX) + 5);
    bench.set("refused_valid", false);
    bench.set("others_tell", false);
    bench.eval();
    assert!(bench.is("told_valid"));
    let info = unpack(&bench.get_wide::<2>("told"), [8, 8, 16, 64])[3];
    assert_eq!(
        info,
        Refusal {
            count: u16::MAX,
            ..Refusal::default()
        }
        .to_info()
    );
}

#[test]
fn a_count_ends_at_its_largest_number() {
    for_seeds(1, ends_at_the_largest);
}

/// As it broke: the processor wasn't told of a refusal at all. With one event for each, a process that asks for what it may not have would fill the
/// queue in which the failures of pairs come.
#[test]
fn one_event_tells_of_all_that_was_refused_since_the_event_before() {
    for_seeds(6, refuses);
}

#[test]
fn each_broken_contract_is_noticed() {
    breaks("refusals", 3, refuses);
}

#[test]
#[ignore = "mutants: `cargo xtask mutants`, `cargo xtask test --long`"]
fn most_mutants_are_noticed() {
    mutants("refusals", 2, |rng| {
        refuses(rng);
        ends_at_the_largest(rng);
    });
}
