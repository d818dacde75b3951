//! What the tests of several blocks share: a bench around a Verilated block, and random choices that
//! a printed seed repeats.

pub mod axi;
pub mod broken;
pub mod clocks;
pub mod current;
pub mod fields;
pub mod monitor;
pub mod riscv;
pub mod sources;

use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind};

use hdl::config::{self, Config};
use model::{Model, Pins, Rate};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A Verilated block whose pins are used by name.
pub struct Bench {
    /// The model itself, for what a bench doesn't do.
    pub model: Model,
    pins: Pins,
}

impl Bench {
    /// Opens the model `name`, puts it through reset and leaves all its inputs at 0.
    ///
    /// # Panics
    /// If there is no such model, or it is of other gates than the sources have now.
    pub fn open(name: &str) -> Self {
        let mut bench = Self::open_cold(name);
        if bench.pins.has("reset") {
            bench.set("reset", true);
            bench.model.steps(2);
            bench.set("reset", false);
        }
        bench.model.eval();
        bench
    }

    /// Opens the model `name` as it is at power-on. With `POSTHORN_WAVES=FILE` it writes a waveform (VCD), each model over that
    /// of the one before; `cargo xtask models --trace NAME` builds what can.
    pub fn open_cold(name: &str) -> Self {
        let (name, pick) = broken::picked(name);
        let model = match env::var_os("POSTHORN_WAVES") {
            None => Model::open(&name),
            Some(file) => Model::open_traced(&name, 0)
                .and_then(|mut model| model.trace_start(file.as_ref()).map(|()| model)),
        };
        let model = model.unwrap_or_else(|error| panic!("{error}"));
        current::check(&model);
        let pins = Pins::of(&model);
        let mut bench = Bench { model, pins };
        bench.set_processor_clock(Rate::Times(1));
        if let Some(number) = pick {
            bench.set(hdl::verilog::PICK, number);
        }
        bench
    }

    /// How fast the processor's clock is, if the block has one: as fast as the card's if it isn't said.
    pub fn set_processor_clock(&mut self, rate: Rate) {
        if self.pins.has("processor_clock") {
            self.model
                .second_clock(self.pins.port("processor_clock"), rate);
        }
    }

    /// Opens the variant of the model `name` that can be broken, with the break `broken` picked.
    ///
    /// # Panics
    /// If there is no such break.
    pub fn broken(name: &str, broken: &str) -> Self {
        let variant = format!("{name}_broken");
        let picks = hdl::catalogue::picks_of(&variant);
        let index = picks.iter().position(|pick| pick == broken);
        let index = index.unwrap_or_else(|| panic!("no break of {name} is called {broken}"));
        let mut bench = Self::open(&variant);
        bench.set(hdl::verilog::PICK, index as u64 + 1);
        bench.model.eval();
        bench
    }

    /// Reads a pin.
    pub fn get(&self, name: &str) -> u64 {
        self.pins.get(&self.model, name)
    }

    /// Whether a pin is high.
    pub fn is(&self, name: &str) -> bool {
        self.get(name) != 0
    }

    /// Drives a pin.
    pub fn set(&mut self, name: &str, value: impl Into<u64>) {
        self.pins.set(&mut self.model, name, value.into());
    }

    /// Drives a wide pin from 64-bit words, lowest first.
    pub fn set_wide(&mut self, name: &str, words: &[u64]) {
        let halves: Vec<u32> = words
            .iter()
            .flat_map(|w| [*w as u32, (*w >> 32) as u32])
            .collect();
        self.pins.set_wide(&mut self.model, name, &halves);
    }

    /// Reads a wide pin as `N` words of 64 bits, lowest first.
    pub fn get_wide<const N: usize>(&self, name: &str) -> [u64; N] {
        let mut halves = vec![0; 2 * N];
        self.pins.get_wide(&self.model, name, &mut halves);
        std::array::from_fn(|k| u64::from(halves[2 * k]) | u64::from(halves[2 * k + 1]) << 32)
    }

    /// A wide pin's value, in words of 32 bits.
    pub fn get_words<const N: usize>(&self, name: &str) -> [u32; N] {
        let mut words = [0; N];
        self.pins.get_wide(&self.model, name, &mut words);
        words
    }

    /// Lets outputs follow the inputs that were set.
    pub fn eval(&mut self) {
        self.model.eval();
    }

    /// Lets outputs follow the clocks that were set, where a test drives them itself. Panics if a check has failed.
    pub fn settle(&mut self) {
        broken::burn();
        self.model.eval();
        self.model
            .got_error()
            .unwrap_or_else(|error| panic!("{error}"));
    }

    /// One rising edge. Panics if a check has failed.
    pub fn step(&mut self) {
        broken::burn();
        self.model.step();
        self.model
            .got_error()
            .unwrap_or_else(|error| panic!("{error}"));
    }
}

/// Runs `test` for some seeds, or for that in `POSTHORN_SEED` alone, and prints the one that fails.
pub fn for_seeds(count: u64, test: impl Fn(&mut ChaCha8Rng)) {
    struct Report(u64);
    impl Drop for Report {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("repeat with POSTHORN_SEED={}", self.0);
            }
        }
    }
    let seeds = match env::var("POSTHORN_SEED") {
        Ok(text) => vec![text.parse().expect("POSTHORN_SEED is a number")],
        Err(_) => (1..=count).collect(),
    };
    for seed in seeds {
        let report = Report(seed);
        test(&mut ChaCha8Rng::seed_from_u64(seed));
        drop(report);
    }
}

/// A block at one of the card's sizes.
pub struct Size {
    /// The size.
    pub config: &'static Config,
    /// The block's model at this size.
    pub model: String,
    /// The pairs that a test talks about: all of a small card's; of a large one's the first, the last and
    /// some between, so that enough happens to each of them.
    pub pairs: Vec<usize>,
}

/// Pairs that a test talks about at most.
const PAIRS: usize = 8;

impl Size {
    /// A block at the size that `config` gives it.
    pub fn new(config: &'static Config, block: &str, rng: &mut impl Rng) -> Self {
        let mut pairs: Vec<usize> = (0..config.pairs).collect();
        while pairs.len() > PAIRS {
            pairs.remove(rng.random_range(1..pairs.len() - 1));
        }
        Size {
            config,
            model: format!("{block}_{}", config.name),
            pairs,
        }
    }

    /// One of the pairs, or at times the first number that is no pair.
    pub fn pair_or_none(&self, rng: &mut impl Rng) -> usize {
        match rng.random_range(0..self.pairs.len() + 1) {
            0 => self.config.pairs,
            n => self.pairs[n - 1],
        }
    }

    /// One of the pairs.
    pub fn pair(&self, rng: &mut impl Rng) -> usize {
        self.pairs[rng.random_range(0..self.pairs.len())]
    }
}

/// Runs `test` for some seeds on a block of the size that `config` gives it.
pub fn for_size(
    config: &'static Config,
    block: &str,
    seeds: u64,
    test: impl Fn(&Size, &mut ChaCha8Rng),
) {
    for_seeds(seeds, |rng| test(&Size::new(config, block, rng), rng));
}

/// Runs `test` for some seeds at each of the card's sizes.
pub fn for_sizes(block: &str, seeds: u64, test: impl Fn(&Size, &mut ChaCha8Rng)) {
    for config in config::ALL {
        println!("{block} of {}", config.name);
        for_size(config, block, seeds, &test);
    }
}

/// Whether `test`, which breaks a contract of the model `name`, fails for some of the seeds.
pub fn is_caught(name: &str, seeds: u64, test: impl Fn(&mut ChaCha8Rng)) -> bool {
    // A model that isn't there fails as well.
    drop(Bench::open(name));
    (1..=seeds).any(|seed| {
        let run = || test(&mut ChaCha8Rng::seed_from_u64(seed));
        catch_unwind(AssertUnwindSafe(run)).is_err()
    })
}

/// How often something happens: idle and back-pressure of one seed differ from those of the next.
pub fn rate(rng: &mut impl Rng) -> f64 {
    [0.05, 0.3, 0.5, 0.9, 1.0][rng.random_range(0..5)]
}
