//! `envelope::Ledger`: what an entry ends with is said after its write is answered, to everybody in order.

use std::collections::HashSet;

use abi::completion::COMPLETION_MORE;
use abi::status::Status;
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::{Ending, Sink, Source};
use hdl_tests::broken::{breaks, mutants};
use hdl_tests::fields::pack;
use hdl_tests::{Bench, for_seeds, rate};

/// What the block says, with the bits of its pin.
#[derive(Clone, Debug, PartialEq)]
enum Said {
    Written(u64),
    Complete(Vec<u64>),
    Lost(Vec<u64>),
    Update(Vec<u64>),
    Asked(Vec<u64>),
    Answered(Vec<u64>),
    Ended,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    writes: bool,
    /// The Gate has allowed an access of it.
    guarded: bool,
    /// The write is answered by an error.
    fails: bool,
    ending: Ending,
    /// When all before it have ended, this pair is forgotten.
    forget: Option<u64>,
}

/// Pairs of the entries.
const PAIRS: u64 = 8;

impl Entry {
    fn random(rng: &mut ChaCha8Rng) -> Self {
        let mut ending = Ending::random(rng, PAIRS);
        if rng.random_bool(0.1) {
            // What says nothing at all, as a mark.
            ending = Ending {
                marks: ending.marks,
                ..Ending::default()
            };
        }
        Entry {
            writes: rng.random(),
            guarded: rng.random(),
            fails: rng.random_bool(0.2),
            ending,
            forget: rng.random_bool(0.2).then(|| rng.random_range(0..PAIRS)),
        }
    }

    fn words(&self) -> Vec<u64> {
        let mut fields = vec![(self.writes.into(), 1), (self.guarded.into(), 1)];
        fields.extend(self.ending.fields());
        pack(&fields)
    }

    /// What has to be said of it, in order. Of the pairs in `losing` a message is lost.
    fn says(&self, losing: &mut HashSet<u64>) -> Vec<Said> {
        let e = &self.ending;
        if let Some(pair) = self.forget {
            losing.remove(&pair);
        }
        let behind = (e.accepted || e.asks) && losing.contains(&e.pair);
        let failed = behind || self.writes && self.fails;
        let status = if failed {
            Status::MemoryError.code().into()
        } else {
            e.status
        };
        let mut said = vec![];
        if e.fills {
            let slot = e.pair << 6 | e.slot;
            said.push(Said::Written(slot | u64::from(failed) << 16));
        }
        if e.completes {
            let multi = e.of_message && e.multi;
            // With a message of a multi-receive, what its handle and number are there; without a message, what came with the entry.
            let (offset, count) = match (e.of_message, e.multi) {
                (true, true) => (e.handle as u32, e.number as u32 & !(1 << 31)),
                (true, false) => (0, 0),
                (false, _) => (e.immediate as u32, (e.immediate >> 32) as u32 & !(1 << 31)),
            };
            let of = |field: u64| if e.of_message { field } else { 0 };
            let completion = abi::completion::Completion {
                request: e.request as u32,
                status: status as u8,
                kind: e.kind as u8,
                handle: if multi { 0 } else { e.handle as u32 },
                offset,
                count,
                flags: if multi && e.stays { COMPLETION_MORE } else { 0 },
                match_bits: of(e.match_bits),
                immediate: of(e.immediate),
                length: of(e.length),
                pair: of(e.pair) as u16,
                context: of(e.context) as u16,
                ..Default::default()
            };
            let mut fields = vec![(e.endpoint, 8)];
            fields.extend(completion.to_words().map(|word| (word, 64)));
            said.push(Said::Complete(pack(&fields)));
        }
        let lost = e.fills && failed;
        if lost {
            losing.insert(e.pair);
            said.push(Said::Lost(pack(&[
                (e.pair, 16),
                (e.endpoint, 8),
                (e.slot, 6),
            ])));
        }
        // A put that couldn't be written is refused.
        let refused = e.refused || e.put && failed;
        if !lost && !behind && (e.accepted || e.freed || e.refused) {
            said.push(Said::Update(pack(&[
                (e.pair, 16),
                (e.accepted.into(), 1),
                (e.freed.into(), 1),
                (refused.into(), 1),
            ])));
        }
        if e.asks && !behind {
            said.push(Said::Asked(pack(&[
                (e.pair, 16),
                (e.match_bits, 64),
                (e.immediate, 64),
                (e.length, 16),
                (e.number, 32),
            ])));
        }
        if e.answers {
            said.push(Said::Answered(pack(&[
                (e.pair, 16),
                (e.number, 32),
                (status, 8),
            ])));
        }
        said.push(Said::Ended);
        said
    }
}

/// How often everybody gives and takes.
struct Rates {
    entry: f64,
    answer: f64,
    takes: [f64; 5],
}

/// Gives the block entries, and answers to their writes: up to one before its entry. Returns the cycles that it took, after it was initialized.
fn run(rng: &mut ChaCha8Rng, entries: &[Entry], rates: &Rates) -> usize {
    let mut bench = Bench::open("ledger");
    let mut source = Source::new("entry", entries.iter().map(Entry::words).collect());
    let mut complete = Sink::<9>::new("complete", "complete");
    let mut lost = Sink::<1>::new("lost", "lost");
    let mut update = Sink::<1>::new("sink_update", "sink_update");
    let mut asked = Sink::<3>::new("asked", "asked");
    let mut told = Sink::<1>::new("answered", "answered");
    let writes: Vec<&Entry> = entries.iter().filter(|entry| entry.writes).collect();
    let guarded: Vec<usize> = (0..entries.len()).filter(|n| entries[*n].guarded).collect();
    let mut ended = 0;
    let mut losing = HashSet::new();
    let expected: Vec<Vec<Said>> = entries.iter().map(|e| e.says(&mut losing)).collect();
    let forgets = (0..entries.len()).filter(|n| entries[*n].forget.is_some());
    let mut forgets = forgets.peekable();
    // What hasn't been said yet, by number of the entry, the next one last.
    let mut unsaid: Vec<(usize, Said)> = vec![];
    for (n, said) in expected.into_iter().enumerate() {
        unsaid.extend(said.into_iter().map(|said| (n, said)));
    }
    unsaid.reverse();
    let mut answered = 0;
    bench.set("entry_valid", false);
    bench.set("write_done_valid", false);
    for n in 0.. {
        bench.eval();
        if bench.is("initialized") {
            break;
        }
        assert!(n < 1_000, "its table is cleared soon");
        bench.step();
    }
    let mut cycle = 0;
    while !unsaid.is_empty() {
        assert!(cycle < 20_000, "it stands still");
        // No entry of a pair is here when that is forgotten.
        let current = unsaid.last().map_or(entries.len(), |(n, _)| *n);
        let before = forgets.peek().copied();
        let forget = before.filter(|n| *n == current && source.given == current);
        bench.set("forget_valid", forget.is_some());
        let pair = forget.and_then(|n| entries[n].forget);
        bench.set("forget", pair.unwrap_or(rng.random_range(0..PAIRS)));
        source.drive(
            &mut bench,
            before.unwrap_or(usize::MAX),
            rng.random_bool(rates.entry),
        );
        if forget.is_some() {
            forgets.next();
        }
        // Writes whose entries have come, and one more.
        let written = entries[..source.given].iter().filter(|e| e.writes).count();
        let answers = answered < writes.len().min(written + 1) && rng.random_bool(rates.answer);
        bench.set("write_done_valid", answers);
        let error = answers && writes[answered].fails;
        bench.set("write_done", if answers { error } else { rng.random() });
        complete.drive(&mut bench, rng.random_bool(rates.takes[0]));
        lost.drive(&mut bench, rng.random_bool(rates.takes[1]));
        update.drive(&mut bench, rng.random_bool(rates.takes[2]));
        asked.drive(&mut bench, rng.random_bool(rates.takes[3]));
        told.drive(&mut bench, rng.random_bool(rates.takes[4]));
        bench.eval();

        // An access has ended when its write is answered,
        if bench.is("access_ends") {
            let n = guarded[ended];
            assert!(n < source.given, "entry {n}, which hasn't come");
            let number = entries[..n].iter().filter(|e| e.writes).count();
            let written = !entries[n].writes || number < answered;
            assert!(written, "entry {n}'s write isn't answered");
            ended += 1;
        }
        let said = [
            bench
                .is("written_valid")
                .then(|| Said::Written(bench.get("written"))),
            complete.watch(&bench).map(Said::Complete),
            lost.watch(&bench).map(Said::Lost),
            update.watch(&bench).map(Said::Update),
            asked.watch(&bench).map(Said::Asked),
            told.watch(&bench).map(Said::Answered),
            bench.is("ended").then_some(Said::Ended),
        ];
        // Entries that have come, and not ended, make it hold something.
        let holds = current < source.given;
        assert!(!holds || !bench.is("empty"), "it says that it is empty");
        assert!(!bench.is("marked") || bench.is("ended"), "nothing ends");
        for said in said.into_iter().flatten() {
            let (n, expected) = unsaid.pop().expect("nothing more has to be said");
            assert_eq!(said, expected, "of entry {n}: {:?}", entries[n]);
            assert!(n < source.given, "of entry {n}, which hasn't come");
            if entries[n].writes {
                let number = entries[..n].iter().filter(|e| e.writes).count();
                assert!(number < answered, "entry {n}'s write isn't answered");
            }
            // and before anything is said of it.
            let up_to_it = guarded.partition_point(|guarded| *guarded <= n);
            assert_eq!(ended, up_to_it, "accesses that have ended at entry {n}");
            if said == Said::Ended {
                assert_eq!(bench.is("marked"), entries[n].ending.marks, "entry {n}");
            }
        }
        answered += usize::from(answers);
        source.taken(&bench);
        bench.step();
        cycle += 1;
    }
    bench.set("entry_valid", false);
    bench.set("write_done_valid", false);
    for _ in 0..5 {
        bench.step();
        bench.eval();
    }
    assert!(source.done() && bench.is("empty"));
    cycle
}

fn random(rng: &mut ChaCha8Rng) {
    let entries: Vec<Entry> = (0..150).map(|_| Entry::random(rng)).collect();
    let rates = Rates {
        entry: rate(rng),
        answer: rate(rng),
        takes: std::array::from_fn(|_| rate(rng)),
    };
    run(rng, &entries, &rates);
}

#[test]
fn endings_wait_for_their_writes_and_are_said_in_order() {
    for_seeds(12, random);
}

#[test]
fn a_ledger_that_is_broken_is_noticed() {
    breaks("ledger", 20, random);
}

#[test]
#[ignore = "mutants: `cargo xtask mutants`, `cargo xtask test --long`"]
fn most_mutants_of_a_ledger_are_noticed() {
    mutants("ledger", 2, random);
}

#[test]
fn a_completion_and_its_progress_take_four_cycles() {
    for_seeds(1, |rng| {
        let entry = Entry {
            writes: true,
            guarded: true,
            fails: false,
            ending: Ending {
                completes: true,
                of_message: true,
                accepted: true,
                freed: true,
                ..Ending::default()
            },
            forget: None,
        };
        let rates = Rates {
            entry: 1.0,
            answer: 1.0,
            takes: [1.0; 5],
        };
        let cycles = run(rng, &[entry; 100], &rates);
        assert!(cycles <= 410, "{cycles} cycles for 100 entries");
    });
}
