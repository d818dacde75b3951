//! The gates against the model of the card: random programs of 2 to 4 cards, every command, number, frame, completion and byte compared.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use abi::completion::CompletionKind;
use abi::status::Status;
use card_model::Break;
use hdl::config::{Config, ECP5, TINY};
use posthorn_tests::cards::run;
use posthorn_tests::oracle::{Compared, Event, Mix, Story, Tamper, follow, play, watched};

/// What a card's gates did: its host's story, and what was seen on its pins.
type Told = (Story, Vec<(u64, Event)>);

fn stories(
    config: &'static Config,
    cards: usize,
    seed: u64,
    mix: Mix,
    tamper: Option<Tamper>,
) -> Vec<Told> {
    let (cluster, seen) = watched(config.name, cards, seed, tamper);
    let (stories, _) = run(cluster, |host| play(&host, config, seed, mix));
    let seen = seen
        .iter()
        .map(|seen| seen.lock().expect("it is over").clone());
    stories.into_iter().zip(seen).collect()
}

fn held((story, seen): &Told, broken: Break) -> Option<Compared> {
    catch_unwind(AssertUnwindSafe(|| follow(story, seen, broken))).ok()
}

/// Kinds of completions and statuses that came.
fn statuses(told: &[Told]) -> BTreeSet<(u8, u8)> {
    let entries = told.iter().flat_map(|(story, _)| &story.completions);
    let entries = entries.flatten();
    entries.map(|entry| (entry.kind, entry.status)).collect()
}

#[test]
fn the_gates_do_what_the_model_does_and_not_what_a_broken_one_does() {
    let mut all = stories(&TINY, 2, 1, Mix::even(400), None);
    all.extend(stories(&TINY, 3, 2, Mix::flood(1200), None));
    all.extend(stories(&TINY, 4, 3, Mix::even(400), None));
    for (at, told) in all.iter().enumerate() {
        let compared = held(told, Break::None).unwrap_or_else(|| panic!("card {at} of all"));
        let parts = [compared.commands, compared.completions, compared.frames];
        assert!(
            parts.iter().all(|&part| part > 50),
            "card {at}: {compared:?}"
        );
    }
    let seen = statuses(&all);
    for (kind, wanted) in [
        (
            CompletionKind::Send,
            &[
                Status::Success,
                Status::Cancelled,
                Status::TooLong,
                Status::InvalidRequest,
                Status::InvalidPair,
                Status::LocalProtection,
                Status::NotReady,
            ][..],
        ),
        (
            CompletionKind::Receive,
            &[
                Status::Success,
                Status::Truncated,
                Status::Cancelled,
                Status::InvalidRequest,
                Status::InvalidPair,
                Status::LocalProtection,
                Status::ListFull,
                Status::Behind,
            ],
        ),
        (CompletionKind::Cancel, &[Status::TooLate]),
        (CompletionKind::Probe, &[Status::Success, Status::NoMessage]),
        (CompletionKind::Claim, &[Status::Success, Status::NoMessage]),
        (
            CompletionKind::Discard,
            &[Status::Success, Status::InvalidClaim],
        ),
    ] {
        for status in wanted {
            let key = (kind.code(), status.code());
            assert!(seen.contains(&key), "{kind} never ended with {status}");
        }
    }
    for broken in Break::ALL {
        let noticed = all.iter().any(|told| held(told, broken).is_none());
        assert!(noticed, "{broken:?}");
    }
}

#[test]
fn a_word_that_the_gates_write_wrongly_is_noticed_though_no_host_looks_at_it() {
    // The first word of a completion are its match bits, which those of sends haven't.
    let tamper: Tamper = |beat, outputs| {
        if beat == 0 && outputs.w.valid && !outputs.w.last && outputs.w.data == 0 {
            outputs.w.data = 1;
        }
    };
    let told = stories(&TINY, 2, 4, Mix::even(60), Some(tamper));
    assert_eq!(held(&told[0], Break::None), None, "the broken card");
    assert!(held(&told[1], Break::None).is_some(), "the other one");
}

#[test]
#[ignore = "takes long"]
fn larger_cards_and_longer_programs_do_what_the_model_does() {
    for seed in 10..20 {
        for config in [&TINY, &ECP5] {
            for mix in [Mix::even(3000), Mix::flood(3000)] {
                let told = stories(config, 2 + seed as usize % 3, seed, mix, None);
                for (card, told) in told.iter().enumerate() {
                    let held = held(told, Break::None);
                    assert!(
                        held.is_some(),
                        "{}, seed {seed}, card {card}, {mix:?}",
                        config.name
                    );
                }
            }
        }
    }
}
