//! The engine's pins.

use std::collections::VecDeque;

use model::{Model, ModelError, Port};

use abi::monitor::place_unit;
use card_model::matching::{Command, Operation, Reply, Units};

/// What the engine's pins show in a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outputs {
    /// The command that is offered is taken with this cycle's edge.
    pub ready: bool,
    /// A reply.
    pub reply: Option<Reply>,
    /// A bin had no room.
    pub overflow: bool,
    /// Live posted receives.
    pub posted_depth: usize,
    /// Waiting messages.
    pub unexpected_depth: usize,
}

/// Something with the pins of the engine.
pub trait Block {
    /// One cycle: drives the command's pins, looks at the others, and lets the edge come.
    ///
    /// # Errors
    /// If a check in the gates has failed.
    fn cycle(&mut self, offer: Option<&Command>) -> Result<Outputs, String>;
}

/// Cycles in which a memory of the largest engine is surely cleared.
const CLEARED: u64 = 1 << 17;

/// The engine, Verilated.
pub struct Verilated {
    model: Model,
    command_valid: Port,
    command: Port,
    command_ready: Port,
    reply_valid: Port,
    reply: Port,
    overflows: Port,
    posted_depth: Port,
    unexpected_depth: Port,
    unit_valid: Port,
    unit: Port,
    offered: Option<Command>,
    /// Pairs, each of which has a unit of places: the last one the first.
    pairs: usize,
    units: Units,
    /// What is to be answered.
    under_way: VecDeque<Operation>,
}

impl Verilated {
    /// Opens the model `name`, resets it, waits until its memories are cleared, and gives each of `pairs` a unit of places. `seed` is that of its hash.
    ///
    /// # Errors
    /// If there is no such model, or it lacks a pin.
    ///
    /// # Panics
    /// If it never says that it is ready for use.
    pub fn open(name: &str, pairs: usize, seed: u128) -> Result<Self, ModelError> {
        Self::of(Model::open(name)?, pairs, seed)
    }

    /// The same with the variant `name` whose pin `broken` picks what is wrong.
    ///
    /// # Errors
    /// If there is no such model, or it lacks a pin.
    ///
    /// # Panics
    /// If it never says that it is ready for use.
    pub fn open_broken(
        name: &str,
        broken: u64,
        pairs: usize,
        seed: u128,
    ) -> Result<Self, ModelError> {
        let mut model = Model::open(name)?;
        let port = model.port("broken")?;
        model.set(port, broken);
        Self::of(model, pairs, seed)
    }

    /// The model that it runs.
    pub fn model(&self) -> &Model {
        &self.model
    }

    fn of(model: Model, pairs: usize, seed: u128) -> Result<Self, ModelError> {
        let mut block = Verilated {
            command_valid: model.port("command_valid")?,
            command: model.port("command")?,
            command_ready: model.port("command_ready")?,
            reply_valid: model.port("reply_valid")?,
            reply: model.port("reply")?,
            overflows: model.port("count_overflows")?,
            posted_depth: model.port("posted_depth")?,
            unexpected_depth: model.port("unexpected_depth")?,
            unit_valid: model.port("unit_valid")?,
            unit: model.port("unit")?,
            offered: None,
            pairs,
            units: Units::default(),
            under_way: VecDeque::new(),
            model,
        };
        block.reset(seed)?;
        Ok(block)
    }

    /// Empties both lists, and gives the hash another seed.
    ///
    /// # Errors
    /// If a pin isn't there.
    ///
    /// # Panics
    /// If the engine never says that it is ready for use.
    pub fn reset(&mut self, seed: u128) -> Result<(), ModelError> {
        self.seed(seed)?;
        let model = &mut self.model;
        let (reset, initialized) = (model.port("reset")?, model.port("initialized")?);
        model.set(self.command_valid, 0);
        model.set(reset, 1);
        model.steps(2);
        model.set(reset, 0);
        self.under_way.clear();
        self.units = Units::default();
        for _ in 0..CLEARED {
            model.step();
            if model.get(initialized) != 0 {
                for pair in 0..self.pairs as u16 {
                    let unit = self.pairs as u16 - 1 - pair;
                    let told = self.units.tell(pair, 1, unit);
                    told.unwrap_or_else(|what| panic!("{what}"));
                    model.set(self.unit, place_unit(pair, 1, unit));
                    model.set(self.unit_valid, 1);
                    model.step();
                }
                model.set(self.unit_valid, 0);
                return Ok(());
            }
        }
        panic!("{} isn't initialized after {CLEARED} cycles", model.name());
    }

    /// Gives the hash another seed, which only an engine bears in which no receive is posted.
    ///
    /// # Errors
    /// If a pin isn't there.
    pub fn seed(&mut self, seed: u128) -> Result<(), ModelError> {
        let words: [u32; 4] = std::array::from_fn(|k| (seed >> (32 * k)) as u32);
        let port = self.model.port("seed")?;
        self.model.set_wide(port, &words);
        Ok(())
    }

    /// Cycles simulated so far.
    pub fn cycles(&self) -> u64 {
        self.model.cycle()
    }
}

impl Block for Verilated {
    fn cycle(&mut self, offer: Option<&Command>) -> Result<Outputs, String> {
        let model = &mut self.model;
        if self.offered.as_ref() != offer {
            // Without an offer the last one stays on the pins: it must not be taken again.
            if let Some(command) = offer {
                model.set_wide(self.command, &command.words());
            }
            model.set(self.command_valid, offer.is_some().into());
            self.offered = offer.copied();
        }
        model.fall();
        let reply =
            (model.get(self.reply_valid) != 0).then(|| Reply::from_bits(model.get(self.reply)));
        let ready = model.get(self.command_ready) != 0;
        let reply = match (reply, reply.and_then(|_| self.under_way.pop_front())) {
            (Some(reply), Some(operation)) => Some(self.units.named(operation, reply)?),
            (reply, _) => reply,
        };
        self.under_way
            .extend(offer.filter(|_| ready).map(|command| command.operation));
        let model = &mut self.model;
        let outputs = Outputs {
            ready,
            reply,
            overflow: model.get(self.overflows) != 0,
            posted_depth: model.get(self.posted_depth) as usize,
            unexpected_depth: model.get(self.unexpected_depth) as usize,
        };
        model.rise();
        model.got_error().map_err(|error| error.to_string())?;
        Ok(outputs)
    }
}
