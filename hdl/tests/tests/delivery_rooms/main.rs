//! The rooms of Delivery through which payloads go, Verilated, each against what its page promises: random jobs, idle and
//! back-pressure from a seed that a failure prints. Each deliberate break has to be found.

mod copies;
mod ledger;
mod resolve;
mod rules;

use hdl_tests::Bench;
use hdl_tests::fields::{Steady, pack};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

/// Ways of payloads, by the number that `hdl::types::Way` gives them.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Ends,
    Hit,
    Put,
    Slot,
    Copy,
    Drop,
}

const WAYS: [Way; 6] = [
    Way::Ends,
    Way::Hit,
    Way::Put,
    Way::Slot,
    Way::Copy,
    Way::Drop,
];

/// `hdl::types::Ending`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Ending {
    completes: bool,
    endpoint: u64,
    request: u64,
    status: u64,
    kind: u64,
    handle: u64,
    of_message: bool,
    pair: u64,
    context: u64,
    match_bits: u64,
    immediate: u64,
    length: u64,
    slot: u64,
    multi: bool,
    stays: bool,
    fills: bool,
    accepted: bool,
    freed: bool,
    refused: bool,
    put: bool,
    asks: bool,
    answers: bool,
    number: u64,
    marks: bool,
}

impl Ending {
    /// Anything, of one of `pairs` pairs.
    fn random(rng: &mut ChaCha8Rng, pairs: u64) -> Self {
        Ending {
            completes: rng.random(),
            endpoint: rng.random_range(0..16),
            request: rng.random::<u32>().into(),
            status: rng.random_range(0..4),
            kind: rng.random_range(0..8),
            handle: rng.random::<u32>().into(),
            of_message: rng.random(),
            pair: rng.random_range(0..pairs),
            context: rng.random::<u16>().into(),
            match_bits: rng.random(),
            immediate: rng.random(),
            length: rng.random_range(0..=1024),
            slot: rng.random_range(0..64),
            multi: rng.random(),
            stays: rng.random(),
            fills: rng.random_bool(0.2),
            accepted: rng.random(),
            freed: rng.random(),
            refused: rng.random(),
            put: rng.random_bool(0.2),
            asks: rng.random_bool(0.2),
            answers: rng.random_bool(0.2),
            number: rng.random::<u32>().into(),
            marks: rng.random_bool(0.2),
        }
    }

    fn fields(&self) -> Vec<(u64, usize)> {
        vec![
            (self.completes.into(), 1),
            (self.endpoint, 8),
            (self.request, 32),
            (self.status, 8),
            (self.kind, 8),
            (self.handle, 32),
            (self.of_message.into(), 1),
            (self.pair, 16),
            (self.context, 16),
            (self.match_bits, 64),
            (self.immediate, 64),
            (self.length, 16),
            (self.slot, 6),
            (self.multi.into(), 1),
            (self.stays.into(), 1),
            (self.fills.into(), 1),
            (self.accepted.into(), 1),
            (self.freed.into(), 1),
            (self.refused.into(), 1),
            (self.put.into(), 1),
            (self.asks.into(), 1),
            (self.answers.into(), 1),
            (self.number, 32),
            (self.marks.into(), 1),
        ]
    }
}

/// `hdl::types::Job`.
#[derive(Clone, Copy, Debug)]
struct Job {
    way: Way,
    length: u64,
    arrived: u64,
    domain: u64,
    key: u64,
    target: u64,
    source: u64,
    ending: Ending,
}

/// Words of a pin with a job.
const JOB_WORDS: usize = 9;

impl Job {
    /// Any job. Lengths are often short, and often at an edge.
    fn random(rng: &mut ChaCha8Rng, pairs: u64) -> Self {
        let way = WAYS[rng.random_range(0..WAYS.len())];
        let edge = [0, 1, 8, 9, 1023, 1024][rng.random_range(0..6)];
        let length = match rng.random_range(0..10) {
            0..3 => edge,
            3 => rng.random_range(0..=1024),
            _ => rng.random_range(0..40),
        };
        let more = [0, 0, 1, 8, 60][rng.random_range(0..5)];
        let ending = Ending::random(rng, pairs);
        Job {
            way,
            length: if way == Way::Drop { 0 } else { length },
            arrived: match way {
                Way::Ends | Way::Copy => 0,
                _ => (length + more).min(1024),
            },
            domain: rng.random_range(0..16),
            key: rng.random::<u32>().into(),
            target: rng.random(),
            source: rng.random(),
            ending: Ending {
                put: way == Way::Put,
                ..ending
            },
        }
    }

    fn words(&self) -> Vec<u64> {
        let mut fields = vec![
            (self.way as u64, 3),
            (self.length, 16),
            (self.arrived, 16),
            (self.domain, 8),
            (self.key, 32),
            (self.target, 64),
            (self.source, 64),
        ];
        fields.extend(self.ending.fields());
        pack(&fields)
    }

    /// It reads a slot.
    fn reads(&self) -> bool {
        self.way == Way::Copy && self.length > 0
    }

    /// 64-bit words of `length`.
    fn length_words(&self) -> usize {
        self.length.div_ceil(8) as usize
    }
}

/// A stream that a test gives: the words in order, each offered when chance has it, and then until it is taken.
struct Source {
    pin: &'static str,
    words: Vec<Vec<u64>>,
    given: usize,
    offers: bool,
}

impl Source {
    fn new(pin: &'static str, words: Vec<Vec<u64>>) -> Self {
        Source {
            pin,
            words,
            given: 0,
            offers: false,
        }
    }

    /// Before the edge: offers the next word, if it is among the first `limit`.
    fn drive(&mut self, bench: &mut Bench, limit: usize, offers: bool) {
        self.offers |= offers && self.given < limit.min(self.words.len());
        bench.set(&format!("{}_valid", self.pin), self.offers);
        if self.offers {
            set(bench, self.pin, &self.words[self.given]);
        }
    }

    /// After `eval`: whether the word is taken.
    fn taken(&mut self, bench: &Bench) -> bool {
        let taken = self.offers && bench.is(&format!("{}_ready", self.pin));
        if taken {
            self.given += 1;
            self.offers = false;
        }
        taken
    }

    fn done(&self) -> bool {
        self.given == self.words.len()
    }
}

/// A stream that a test takes.
struct Sink<const N: usize> {
    valid: String,
    ready: String,
    pin: &'static str,
    steady: Steady,
    taken: Vec<Vec<u64>>,
}

impl<const N: usize> Sink<N> {
    /// The stream whose data are on `pin`, with `valid` and `ready` after `name`.
    fn new(name: &str, pin: &'static str) -> Self {
        Sink {
            valid: format!("{name}_valid"),
            ready: format!("{name}_ready"),
            pin,
            steady: Steady::default(),
            taken: vec![],
        }
    }

    fn drive(&self, bench: &mut Bench, ready: bool) {
        bench.set(&self.ready, ready);
    }

    /// After `eval`: the word that is taken, if one is.
    fn watch(&mut self, bench: &Bench) -> Option<Vec<u64>> {
        let data = match N {
            1 => vec![bench.get(self.pin)],
            _ => bench.get_wide::<N>(self.pin).to_vec(),
        };
        let (valid, ready) = (bench.is(&self.valid), bench.is(&self.ready));
        let word = self.steady.watch(self.pin, valid, ready, &data);
        self.taken.extend(word.clone());
        word
    }
}

/// Drives a pin of any width.
fn set(bench: &mut Bench, pin: &str, words: &[u64]) {
    match words {
        [word] => bench.set(pin, *word),
        _ => bench.set_wide(pin, words),
    }
}

/// A `DmaRequest` on a pin.
fn access(address: u64, length: u64) -> Vec<u64> {
    pack(&[(address, 64), (length, 16)])
}
