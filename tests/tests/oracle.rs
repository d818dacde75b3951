//! The gates against the model of the card: random programs of 2 to 4 cards, every command, number, frame, completion and byte compared.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use abi::capability::{
    CAPABILITY_GATHER, CAPABILITY_GET, CAPABILITY_INLINE, CAPABILITY_PUT, CAPABILITY_RULES,
};
use abi::completion::CompletionKind;
use abi::opcode::WorkRing;
use abi::request::{FLAG_GATHER, FLAG_INLINE, SendRequest};
use abi::status::Status;
use abi::wire::{FrameHeader, FrameType};
use card_model::Break;
use hdl::config::{Config, ECP5, TINY};
use posthorn_tests::cards::{GatesOnly, modelled};
use posthorn_tests::oracle::{
    Compared, Event, Fragile, Mix, Stops, Story, Tamper, follow, play, rough, watched,
};
use sim::Costs;
use sim::fabric::LinkFilter;

/// What a card's gates did: its host's story, and what was seen on its pins.
type Told = (Story, Vec<(u64, Event)>);

fn stories(
    config: &'static Config,
    cards: usize,
    seed: u64,
    mix: Mix,
    tamper: Option<Tamper>,
) -> Vec<Told> {
    let (mut cluster, seen, fragile) = watched(config.name, cards, seed, mix.stops, tamper);
    if mix.rough {
        cluster = cluster.tap(LinkFilter::default(), rough(seed));
    }
    if mix.busy {
        cluster = cluster.costs(Costs::NONE);
    }
    let (stories, _) = GatesOnly::Oracle.run(cluster, |host| {
        play(&host, config, seed, mix, &fragile[host.card()])
    });
    let seen = seen
        .iter()
        .map(|seen| seen.lock().expect("it is over").clone());
    stories.into_iter().zip(seen).collect()
}

fn held((story, seen): &Told, broken: Break) -> Option<Compared> {
    catch_unwind(AssertUnwindSafe(|| follow(story, seen, broken))).ok()
}

/// What a card would have shown if the announcement of a pair's failure had overtaken the pair's last messages, if the peer never heard of so
/// many.
fn overtake((story, seen): &Told, messages: usize) -> Option<Told> {
    let frames = |seen: &[(u64, Event)], pair: u16, of: FrameType| -> Vec<(usize, u32)> {
        let all = seen.iter().enumerate();
        all.filter_map(|(at, (_, event))| match event {
            Event::FrameOut(frame, _) => {
                let header = FrameHeader::parse(frame).ok()?;
                let is = header.source_pair == pair && header.frame_type == of.code();
                is.then_some((at, header.sequence))
            }
            _ => None,
        })
        .collect()
    };
    let heard = |pair: u16, sequence: u32| {
        seen.iter().any(|(_, event)| match event {
            Event::FrameIn(frame) => FrameHeader::parse(frame).is_ok_and(|header| {
                header.destination_pair == pair && header.acknowledge > sequence
            }),
            _ => false,
        })
    };
    story.pairs.iter().find_map(|&(pair, _)| {
        let &(announced, _) = frames(seen, pair, FrameType::PairFailed).first()?;
        let sent = frames(&seen[..announced], pair, FrameType::Eager);
        let last = sent.len().checked_sub(messages)?;
        if heard(pair, sent[last].1) {
            return None;
        }
        let mut moved = seen.clone();
        for (at, _) in &sent[last..] {
            moved[*at].0 = seen[announced].0 + 1;
        }
        Some((story.clone(), moved))
    })
}

/// Kinds of completions and statuses that came.
fn statuses(told: &[Told]) -> BTreeSet<(u8, u8)> {
    let entries = told.iter().flat_map(|(story, _)| &story.completions);
    let entries = entries.flatten();
    entries
        .map(|(_, entry)| (entry.kind, entry.status))
        .collect()
}

/// What sends had of optional flags, and how they ended.
fn ends_of_sends<'a>(stories: impl IntoIterator<Item = &'a Story>) -> BTreeSet<(u8, u8)> {
    let of_story = |story: &Story| {
        let posted = story.posts.iter();
        let posted = posted.filter(|post| post.ring == WorkRing::Send);
        let posted = posted.map(|post| {
            let send = SendRequest::from_words(&post.words);
            ((post.endpoint, send.request), send.flags)
        });
        let mut flags: BTreeMap<_, u8> = BTreeMap::new();
        for (request, has) in posted {
            *flags.entry(request).or_default() |= has & (FLAG_INLINE | FLAG_GATHER);
        }
        let opened = story.endpoints.iter().zip(&story.completions);
        let ends = opened.flat_map(|(opened, told)| {
            let flags = &flags;
            told.iter().filter_map(move |(_, entry)| {
                let flags = flags.get(&(opened.endpoint, entry.request))?;
                Some((*flags, entry.status))
            })
        });
        ends.collect::<Vec<_>>()
    };
    stories.into_iter().flat_map(of_story).collect()
}

fn assert_ends(seen: &BTreeSet<(u8, u8)>, flags: u8, statuses: &[Status]) {
    for status in statuses {
        let key = (flags, status.code());
        assert!(seen.contains(&key), "no send with {flags:#x}: {status}");
    }
}

/// How inline sends have to end, and gathers, in enough random programs.
const INLINE_ENDS: [Status; 5] = [
    Status::Success,
    Status::NotReady,
    Status::Cancelled,
    Status::InvalidRequest,
    Status::InvalidPair,
];
const GATHER_ENDS: [Status; 6] = [
    Status::Success,
    Status::InvalidRequest,
    Status::InvalidPair,
    Status::TooLong,
    Status::LocalProtection,
    Status::MemoryError,
];

/// Those of the everyday run, with all that a mix may have.
const RUNS: [(usize, Mix); 7] = [
    (3, Mix::even(500).own().doomed()),
    (3, Mix::flood(1200)),
    (4, Mix::even(600).rough().shared()),
    (2, Mix::even(400).tight().own().doomed()),
    (2, Mix::even(400).doomed()),
    (2, Mix::even(500).doomed()),
    (3, Mix::even(400).revoked()),
];

/// Long ones, which are held to the model as it is only: for how many cards each.
const LONG_RUNS: [(usize, Mix); 4] = [
    (3, Mix::even(16_000).shared().busy()),
    (3, Mix::flood(16_000).own().busy()),
    (4, Mix::even(10_000).own().doomed().busy()),
    (2, Mix::even(14_000).tight().shared().doomed().busy()),
];
/// A long program over links that lose and repeat frames.
const ROUGH_RUN: (usize, Mix) = (4, Mix::even(10_000).rough().own().doomed().busy());

#[test]
fn the_gates_do_what_the_model_does_and_not_what_a_broken_one_does() {
    let runs = RUNS.iter().zip(1..);
    let all: Vec<Told> = runs
        .flat_map(|(&(cards, mix), seed)| stories(&TINY, cards, seed, mix, None))
        .collect();
    let mut sum = Compared::default();
    for (at, told) in all.iter().enumerate() {
        let compared = held(told, Break::None).unwrap_or_else(|| panic!("card {at} of all"));
        let enough = compared.commands > 50 && compared.completions > 50 && compared.frames > 8;
        assert!(enough, "card {at}: {compared:?}");
        sum += compared;
    }
    // Bad wires fail no pair: only a doomed one fails, once a message is to rest in its slots, and at both ends.
    assert!(sum.own > 200 && sum.failed >= 2, "{sum:?}");
    // What is lost is told, and sent again.
    let (again, gaps) = sum.again;
    assert!(again > 20 && gaps > 5, "{sum:?}");
    // What time alone decides is seldom met; and full queues are.
    assert!(
        sum.ready.0 > 20 && 16 * sum.ready.1 <= sum.ready.0,
        "{sum:?}"
    );
    assert!(
        sum.stays.1 > 0 && 10 * sum.stays.1 <= sum.stays.0,
        "{sum:?}"
    );
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
                Status::MemoryError,
                Status::LinkError,
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
                Status::MemoryError,
                Status::LinkError,
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
    let ends = ends_of_sends(all.iter().map(|(story, _)| story));
    for (capability, flags, statuses) in [
        (CAPABILITY_INLINE, FLAG_INLINE, &INLINE_ENDS[..]),
        (CAPABILITY_GATHER, FLAG_GATHER, &GATHER_ENDS),
    ] {
        if TINY.capabilities & capability != 0 {
            assert_ends(&ends, flags, statuses);
        }
    }
    if TINY.capabilities & CAPABILITY_RULES != 0 {
        assert!(sum.revoked > 10, "{sum:?}");
        for kind in [CompletionKind::Receive, CompletionKind::Probe] {
            let key = (kind.code(), Status::Revoked.code());
            assert!(seen.contains(&key), "{kind} was never revoked");
        }
    }
    for (begun, allowed) in [(1, true), (2, false)] {
        let overtaken: Vec<Told> = all
            .iter()
            .filter_map(|told| overtake(told, begun))
            .collect();
        let holds = |told| held(told, Break::None).is_some() == allowed;
        assert!(!overtaken.is_empty(), "{begun} messages in front of none");
        assert!(
            overtaken.iter().all(holds),
            "{begun} messages behind the announcement of a failure"
        );
    }
    // Of what only some cards have the programs use what these gates have, but for puts and gets, of which `e2e::breaks` shows that they are noticed. No
    // program closes a pair.
    let has = |(broken, capability): &(Break, u32)| {
        TINY.capabilities & capability != 0
            && *capability != CAPABILITY_PUT
            && *capability != CAPABILITY_GET
            && *broken != Break::RuleKeepsPair
    };
    let optional = Break::OPTIONAL.into_iter().filter(has);
    let every_card = Break::ALL.into_iter().map(|broken| (broken, 0));
    for (broken, capability) in every_card.chain(optional) {
        let mut may_meet = all
            .iter()
            .filter(|(story, _)| capability != CAPABILITY_RULES || !story.rules.is_empty());
        let noticed = may_meet.any(|told| held(told, broken).is_none());
        assert!(noticed, "{broken:?}");
    }
}

#[test]
fn programs_come_to_rest_on_cards_that_have_every_capability() {
    let ends = Mutex::new(BTreeSet::new());
    modelled("tiny", 3, 1, abi::capability::ALL, |host| {
        let story = play(
            &host,
            &TINY,
            1,
            Mix::even(2500).shared(),
            &Fragile::default(),
        );
        ends.lock().unwrap().extend(ends_of_sends([&story]));
    });
    let ends = ends.into_inner().expect("it is over");
    assert_ends(&ends, FLAG_INLINE, &INLINE_ENDS);
    assert_ends(&ends, FLAG_GATHER, &GATHER_ENDS);
}

#[test]
fn a_word_that_the_gates_write_wrongly_is_noticed_though_no_host_looks_at_it() {
    // The fourth word that is written of a receive's completion is its handle, which only `Behind` has.
    let tamper: Tamper = |beat, outputs| {
        if beat == 3 && outputs.w.valid && !outputs.w.last && outputs.w.data == 0 {
            outputs.w.data = 1;
        }
    };
    let told = stories(&TINY, 2, 4, Mix::even(60), Some(tamper));
    assert_eq!(held(&told[0], Break::None), None, "the broken card");
    assert!(held(&told[1], Break::None).is_some(), "the other one");
}

/// Wires that go on for some time-outs, stop for less than one as a rule, and now and then for some.
const STOPS: Stops = Stops {
    open: 12_000,
    short: 2_000,
    long: 20_000,
};

/// Programs around which wires stop, or memory fails: for how many cards each.
const TROUBLED: [(usize, Mix); 3] = [
    (3, Mix::even(2000).stopped(STOPS)),
    (2, Mix::even(2000).tight().own().stopped(STOPS)),
    (3, Mix::flood(2000).doomed().failing(200)),
];

/// An operation is a request that a host has posted, of whatever kind, and that has ended; the second entry of a gather is none. The seed is 1000, or
/// that in `POSTHORN_SEED`.
#[test]
fn the_gates_do_what_the_model_does_though_wires_stop_and_memory_fails() {
    let seed = std::env::var("POSTHORN_SEED").map_or(1000, |text| {
        text.parse().expect("POSTHORN_SEED is a number")
    });
    let mut sum = Compared::default();
    for (kind, (cards, mix)) in TROUBLED.into_iter().enumerate() {
        let told = stories(&TINY, cards, seed, mix, None);
        for (card, told) in told.iter().enumerate() {
            sum += held(told, Break::None)
                .unwrap_or_else(|| panic!("seed {seed}, program {kind}, card {card}"));
        }
    }
    println!("seed {seed}: {sum:?}");
    assert!(sum.operations > 5000, "{sum:?}");
    // A wire that stops for longer than a time-out has a pair send its last send again.
    assert!(sum.again.0 > 5, "{sum:?}");
    assert!(sum.errors > 0, "{sum:?}");
}

#[test]
#[ignore = "minutes of simulation: `cargo xtask test --long`"]
fn a_hundred_programs_around_which_wires_stop_or_memory_fails_do_what_the_model_does() {
    long_programs(&TINY, &TROUBLED, 1001..1035, 100_000);
}

/// Of every seed each long program, which are so many operations in all, or of the seed in `POSTHORN_SEED` alone, whatever they are then. Runs all before it
/// fails, and names those that differ.
fn long_programs(
    config: &'static Config,
    runs: &[(usize, Mix)],
    seeds: Range<u64>,
    operations: usize,
) {
    let (seeds, wanted) = match std::env::var("POSTHORN_SEED") {
        Ok(text) => (vec![text.parse().expect("POSTHORN_SEED is a number")], 0),
        Err(_) => (seeds.collect::<Vec<u64>>(), operations),
    };
    let mut sum = Compared::default();
    let mut differ = Vec::new();
    for seed in &seeds {
        for (kind, (cards, mix)) in runs.iter().copied().enumerate() {
            let told = stories(config, cards, *seed, mix, None);
            for (card, told) in told.iter().enumerate() {
                match held(told, Break::None) {
                    Some(compared) => sum += compared,
                    None => differ.push(format!("seed {seed}, program {kind}, card {card}")),
                }
            }
        }
    }
    println!("{}: {sum:?}", config.name);
    assert_eq!(
        differ,
        [] as [String; 0],
        "cards that differ from the model"
    );
    assert!(sum.operations >= wanted, "{sum:?}");
}

/// Over links that lose nothing. A seed's programs are the same in each run, as long as the gates take the same cycles.
#[test]
fn a_hundred_thousand_operations_of_small_cards_do_what_the_model_does() {
    long_programs(&TINY, &LONG_RUNS, 10..11, 100_000);
}

#[test]
#[ignore = "an hour of simulation: `cargo xtask test --long`"]
fn five_million_operations_of_small_cards_do_what_the_model_does() {
    // A seed is 95 to 101 thousand.
    long_programs(&TINY, &LONG_RUNS, 20..73, 5_000_000);
}

#[test]
#[ignore = "two minutes of simulation: `cargo xtask test --long`"]
fn long_programs_over_rough_links_do_what_the_model_does() {
    long_programs(&TINY, &[ROUGH_RUN], 10..14, 100_000);
}

#[test]
#[ignore = "takes long"]
fn a_million_operations_of_larger_cards_do_what_the_model_does() {
    long_programs(&ECP5, &LONG_RUNS, 10..21, 1_000_000);
}
