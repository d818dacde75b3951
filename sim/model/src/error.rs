//! What can go wrong with a model.

use std::io;

use thiserror::Error;

/// Why a model can't be opened, or not used like this.
#[derive(Debug, Error)]
pub enum ModelError {
    /// No such model is linked.
    #[error(
        "no model `{name}` is linked in; `cargo xtask models {name}` builds it (linked are: {known})"
    )]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// The model is linked, but not the variant of it that can write waveforms.
    #[error(
        "model `{name}` can't write waveforms as built; `cargo xtask models --trace {name}` builds one that can"
    )]
    NotTraced {
        /// What was asked for.
        name: String,
    },
    /// The models and the `verilated` crate were compiled against different releases of Verilator.
    #[error(
        "the models were built by Verilator {models} and its runtime is {runtime}; \
         `cargo clean -p verilated` and build again"
    )]
    Runtime {
        /// Version in the models.
        models: String,
        /// Version in the runtime.
        runtime: String,
    },
    /// The model has no such pin.
    #[error("model `{model}` has no pin `{port}`")]
    NoPort {
        /// Name of the model.
        model: String,
        /// What was asked for.
        port: String,
    },
    /// The model has no such memory that can be written from outside.
    #[error("model `{model}` has no memory `{memory}`, or Verilator wasn't told to keep it")]
    NoMemory {
        /// Name of the model.
        model: String,
        /// What was asked for.
        memory: String,
    },
    /// The waveform can't be written.
    #[error("can't write the waveform: {0}")]
    Waveform(#[from] io::Error),
}

/// An assertion in the gates has failed. The message was printed when it did.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("an assertion failed in model `{model}` by cycle {cycle} (seed {seed}); its text is above")]
pub struct AssertionFailed {
    /// Name of the model.
    pub model: &'static str,
    /// Cycles stepped when the failure was looked for.
    pub cycle: u64,
    /// Seed that the model was opened with.
    pub seed: u64,
}
