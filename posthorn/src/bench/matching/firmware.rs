//! The other opponent: a linear list that the card's own processor walks, on the simulated processor.

use std::path::Path;

use abi::list_bench::{
    ANSWER_WORDS, ANY_SOURCE, CYCLES, DEPTH, FOUND, IGNORE, LONGEST, MAX_DEPTH, OWN_MASKS, SAMPLES,
    SEED, UNEXPECTED,
};
use abi::register::MAILBOX_WORDS;
use anyhow::{Context, Result, ensure};
use model::{Model, Port, Rate};
use sim::Firmware;

use host_matching::workload::{Kind, Structure, TAG_BITS};

/// Cycles in which the program surely starts.
const STARTED: u64 = 1_000_000;
/// Cycles in which the memory surely takes a word.
const LOADED: u64 = 1000;
/// Cycles that a search of one entry surely doesn't exceed.
const PER_ENTRY: u64 = 200;

/// What the processor took.
#[derive(Clone, Copy, Debug)]
pub struct Walk {
    /// Cycles of a search, on the average over the places that were looked for.
    pub mean: f64,
    /// Cycles of the longest.
    pub max: f64,
}

/// The management subsystem with the program in it.
pub struct Processor {
    model: Model,
    mailbox_address: Port,
    mailbox_read_data: Port,
    mailbox_answer: Port,
    request: u64,
}

impl Processor {
    /// Loads the program and waits until it says that it is up.
    ///
    /// # Errors
    /// If there is no such program, no model of the processor, or it doesn't start.
    pub fn start(elf: &Path) -> Result<Self> {
        let image = std::fs::read(elf).with_context(|| {
            format!(
                "reading {}; `cargo xtask firmware` builds it",
                elf.display()
            )
        })?;
        let program = Firmware::parse(image).with_context(|| elf.display().to_string())?;
        let mut model = Model::open("mgmt_subsystem")?;
        // What it takes is in cycles of its own.
        let processor_clock = model.port("processor_clock")?;
        model.second_clock(processor_clock, Rate::Times(1));
        let reset = model.port("reset")?;
        model.set(reset, 1);
        model.steps(2);
        model.set(reset, 0);
        let (valid, ready, loader) = (
            model.port("loader_valid")?,
            model.port("loader_ready")?,
            model.port("loader")?,
        );
        model.set(valid, 1);
        for segment in program.segments() {
            for (bytes, at) in segment.bytes.chunks(4).zip((segment.address..).step_by(4)) {
                let mut word = [0; 4];
                word[..bytes.len()].copy_from_slice(bytes);
                model.set(
                    loader,
                    u64::from(at) | u64::from(u32::from_le_bytes(word)) << 32,
                );
                for waited in 0.. {
                    ensure!(waited < LOADED, "the memory takes no word");
                    model.eval();
                    let taken = model.get(ready) != 0;
                    model.step();
                    if taken {
                        break;
                    }
                }
            }
        }
        model.set(valid, 0);
        let (run, start) = (model.port("run")?, model.port("firmware_start")?);
        model.set(run, 1);
        for _ in 0..STARTED {
            if model.get(start) != 0 {
                break;
            }
            model.step();
        }
        ensure!(model.get(start) != 0, "the program doesn't start");
        Ok(Self {
            mailbox_address: model.port("mailbox_address")?,
            mailbox_read_data: model.port("mailbox_read_data")?,
            mailbox_answer: model.port("mailbox_answer")?,
            request: 0,
            model,
        })
    }

    /// Searches a list of `depth` entries `samples` times, each time for another place.
    ///
    /// # Errors
    /// If the list is too deep, or the program doesn't find what it should.
    pub fn measure(
        &mut self,
        structure: Structure,
        kind: Kind,
        depth: usize,
        samples: u32,
        seed: u32,
    ) -> Result<Walk> {
        ensure!(depth <= MAX_DEPTH, "{depth} entries don't fit");
        let mut command = [0; MAILBOX_WORDS];
        command[UNEXPECTED] = u32::from(structure == Structure::Unexpected);
        command[IGNORE] = match kind {
            Kind::AnyTag | Kind::Any => TAG_BITS as u32,
            Kind::Exact | Kind::AnySource | Kind::Mask => 0,
        };
        command[ANY_SOURCE] = u32::from(matches!(kind, Kind::AnySource | Kind::Any));
        command[OWN_MASKS] = u32::from(kind == Kind::Mask);
        command[DEPTH] = depth as u32;
        command[SAMPLES] = samples;
        command[SEED] = seed;
        let (write, data) = (
            self.model.port("mailbox_write")?,
            self.model.port("mailbox_write_data")?,
        );
        for (address, word) in command.into_iter().enumerate() {
            self.model.set(self.mailbox_address, address as u64);
            self.model.set(data, word.into());
            self.model.set(write, 1);
            self.model.step();
        }
        self.model.set(write, 0);
        self.request += 1;
        let request = self.model.port("mailbox_request")?;
        self.model.set(request, self.request);
        // It builds the list, and then walks it.
        let patience = PER_ENTRY * (1 + u64::from(samples)) * (depth as u64 + 10);
        for _ in 0..patience {
            if self.model.get(self.mailbox_answer) == self.request {
                break;
            }
            self.model.step();
        }
        self.model.got_error()?;
        ensure!(
            self.model.get(self.mailbox_answer) == self.request,
            "the processor doesn't answer"
        );
        let answer: Vec<u64> = (0..ANSWER_WORDS).map(|k| self.answer(k)).collect();
        ensure!(
            answer[FOUND] == u64::from(samples),
            "the processor found {} of {samples}",
            answer[FOUND]
        );
        Ok(Walk {
            mean: answer[CYCLES] as f64 / f64::from(samples),
            max: answer[LONGEST] as f64,
        })
    }

    fn answer(&mut self, word: usize) -> u64 {
        let address = MAILBOX_WORDS + word;
        self.model.set(self.mailbox_address, address as u64);
        self.model.step();
        self.model.get(self.mailbox_read_data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_takes_as_long_as_the_list_is() {
        let built = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../target/firmware/bench_list.elf"
        );
        let mut processor = Processor::start(Path::new(built)).unwrap();
        for structure in Structure::ALL {
            for kind in Kind::ALL {
                let mut walk = |depth| {
                    processor
                        .measure(structure, kind, depth, 64, 0x9e37_79b9)
                        .unwrap()
                };
                let (short, long) = (walk(8), walk(128));
                println!("{structure:?} {kind:?} {short:?} {long:?}");
                assert!(short.max < long.max && 3.0 * short.mean < long.mean);
                assert!(long.mean < long.max);
            }
        }
    }
}
