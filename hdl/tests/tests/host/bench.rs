//! A Verilated block with its pins by name, and values of many fields on one pin.

use hdl::config::{self, Config};
use hdl_tests::broken::{burn, picked};
use hdl_tests::current;
use model::{Model, Pins};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

/// What a run of a test says: nothing, or what was wrong and when.
pub type Outcome = Result<(), String>;

/// Leaves the run with what is wrong.
macro_rules! wrong {
    ($($message:tt)*) => { return Err(format!($($message)*)) };
}
pub(crate) use wrong;

/// Leaves the run unless a claim holds.
macro_rules! claim {
    ($claim:expr, $($message:tt)*) => { if !$claim { return Err(format!($($message)*)); } };
}
pub(crate) use claim;

/// Runs a test for some seeds at each of the card's sizes.
pub fn for_sizes(seeds: impl Iterator<Item = u64> + Clone, test: impl Fn(&Config, u64) -> Outcome) {
    for config in config::ALL {
        for seed in seeds.clone() {
            test(config, seed)
                .unwrap_or_else(|error| panic!("{}, seed {seed}: {error}", config.name));
        }
    }
}

/// A block under test.
pub struct Bench {
    model: Model,
    pins: Pins,
}

impl Bench {
    /// Opens the model and takes it through reset.
    pub fn new(name: &str) -> Self {
        let (name, pick) = picked(name);
        let model = Model::open(&name).unwrap_or_else(|error| panic!("{error}"));
        current::check(&model);
        let pins = Pins::of(&model);
        let mut bench = Bench { model, pins };
        if let Some(number) = pick {
            bench.set(hdl::verilog::PICK, number);
        }
        bench.set("reset", 1);
        for _ in 0..3 {
            bench.step().expect("nothing is claimed in reset");
        }
        bench.set("reset", 0);
        bench
    }

    pub fn set(&mut self, name: &str, value: u64) {
        self.pins.set(&mut self.model, name, value);
    }

    pub fn get(&self, name: &str) -> u64 {
        self.pins.get(&self.model, name)
    }

    pub fn is(&self, name: &str) -> bool {
        self.get(name) != 0
    }

    /// Whether a transfer happens on a stream.
    pub fn moves(&self, stream: &str) -> bool {
        self.pins.moves(&self.model, stream)
    }

    /// Offers, or doesn't, on a stream into the block.
    pub fn offer(&mut self, stream: &str, valid: bool) {
        self.pins.offer(&mut self.model, stream, valid);
    }

    /// Takes, or doesn't, from a stream out of the block.
    pub fn take(&mut self, stream: &str, ready: bool) {
        self.pins.take(&mut self.model, stream, ready);
    }

    pub fn set_packed(&mut self, name: &str, value: &Packed) {
        self.pins.set_wide(&mut self.model, name, &value.words);
    }

    pub fn packed(&self, name: &str) -> Packed {
        let width = self.model.info(self.pins.port(name)).width as usize;
        let mut words = vec![0; width.div_ceil(32)];
        self.pins.get_wide(&self.model, name, &mut words);
        Packed { words, at: 0 }
    }

    /// Lets outputs follow the inputs of this cycle.
    pub fn settle(&mut self) {
        self.model.eval();
    }

    /// The clock's edge.
    pub fn step(&mut self) -> Outcome {
        burn();
        self.model.step();
        self.model.got_error().map_err(|error| error.to_string())
    }

    pub fn cycle(&self) -> u64 {
        self.model.cycle()
    }
}

/// Fields one after the other, the first least significant, as a `LogicStruct` has them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Packed {
    words: Vec<u32>,
    at: usize,
}

impl Packed {
    /// Appends a field of at most 64 bits.
    pub fn with(mut self, width: usize, value: u64) -> Self {
        let end = self.at + width;
        self.words.resize(end.div_ceil(32), 0);
        let kept = u128::from(value) & ((1 << width) - 1);
        let spread = kept << (self.at % 32);
        // It touches three words at most.
        for (k, word) in self.words[self.at / 32..].iter_mut().enumerate() {
            *word |= (spread >> (32 * k)) as u32;
        }
        self.at = end;
        self
    }

    /// Appends whole words.
    pub fn with_words(self, words: &[u64]) -> Self {
        words
            .iter()
            .fold(self, |packed, &word| packed.with(64, word))
    }

    /// Reads the next field, of at most 64 bits.
    pub fn take(&mut self, width: usize) -> u64 {
        let words = self.words[self.at / 32..].iter().take(3).enumerate();
        let spread: u128 = words.map(|(k, &word)| u128::from(word) << (32 * k)).sum();
        let value = (spread >> (self.at % 32)) & ((1 << width) - 1);
        self.at += width;
        value as u64
    }

    /// Reads whole words.
    pub fn take_words<const N: usize>(&mut self) -> [u64; N] {
        std::array::from_fn(|_| self.take(64))
    }
}

/// A control request: operation, index, data.
pub fn control(operation: abi::control::Operation, index: u16, data: &[u64]) -> Packed {
    let mut words = [0; abi::control::DATA_WORDS];
    words[..data.len()].copy_from_slice(data);
    Packed::default()
        .with(8, u64::from(operation.code()))
        .with(16, u64::from(index))
        .with_words(&words)
}

/// A write to a doorbell page.
pub fn doorbell(endpoint: u8, offset: u32, value: u32) -> Packed {
    Packed::default()
        .with(8, u64::from(endpoint))
        .with(8, u64::from(offset))
        .with(32, u64::from(value))
}

/// True `percent` times in a hundred.
pub fn chance(rng: &mut ChaCha8Rng, percent: u32) -> bool {
    rng.random_range(0..100) < percent
}

/// How often each side of a stream is there, in percent; drawn anew from time to time, so that every
/// pairing of fast and slow occurs.
pub fn pace(rng: &mut ChaCha8Rng) -> u32 {
    [5, 30, 70, 100][rng.random_range(0..4)]
}
