//! The list of built models: written by `cargo xtask models`, read by the build script of crate
//! `model`, which includes this file.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Generation of the shim's C functions: models of another one can't be linked. Change it with them.
pub const SHIM: u32 = 3;

/// All that crate `model` links.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Manifest {
    /// [`SHIM`] when the models were built.
    pub shim: u32,
    /// What runtime the models need beside the one in the `verilated` crate.
    pub runtime: Option<Runtime>,
    /// The models, sorted by name, the untraced one first.
    pub models: Vec<Entry>,
}

/// The part of Verilator's runtime that the `verilated` crate doesn't compile.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Runtime {
    /// Folder of the library.
    pub dir: PathBuf,
    /// Library name, without `lib` and `.a`.
    pub library: String,
    /// `VERILATOR_VERSION` of the headers that all models were compiled against.
    pub version: String,
}

/// One model as a static library.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// Name in the registry of tops.
    pub name: String,
    /// Whether it can write a waveform.
    pub traced: bool,
    /// Hash of the Verilog: the same for a model and its traced twin.
    pub verilog: String,
    /// Hash of how it was built: the same for all models of one version of xtask and its tools.
    pub recipe: String,
    /// Folder of the library.
    pub dir: PathBuf,
    /// Library name, without `lib` and `.a`; also the prefix of its C functions.
    pub library: String,
    /// The pins, in the order in which the shim gives their addresses.
    pub ports: Vec<Port>,
}

/// One pin of a top.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    /// Name in the Verilog.
    pub name: String,
    /// Name of the C++ member.
    pub member: String,
    /// Bits.
    pub width: u32,
    /// Driven from outside.
    pub input: bool,
}

impl Manifest {
    /// The manifest in `text`, without models if they can't be used: none was written yet, or it is
    /// another generation's.
    pub fn parse(text: &[u8]) -> Self {
        match serde_json::from_slice::<Self>(text) {
            Ok(manifest) if manifest.shim == SHIM => manifest,
            _ => Self::default(),
        }
    }
}
