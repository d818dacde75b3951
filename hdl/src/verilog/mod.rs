//! SystemVerilog from rust-hdl blocks, soundly.
//!
//! rust-hdl's own printer hands operators on as text, and Verilog's rules on precedence and width
//! are not Rust's: `(a + 1) == b` is widened, `a & b == b` binds the other way. This one infers the
//! type of every expression by rust-hdl's rules and prints text whose self-determined widths are
//! those types. What it can't print soundly it refuses, with the block, the signal and the reason.
//!
//! ```text
//!   dyn Block ──► collect ──► lower ──► process ──► print, module ──► Design
//!                 netlist     typed     grouping    text              one text,
//!                             program                                 one module a body
//! ```
//!
//! Nothing here knows the rest of this crate. Two kinds of leaf are recognised by their text and
//! printed in their parent: registers ([`register`]) and checks ([`check`]). Every other leaf with
//! hand-written Verilog becomes a module, with its ports under their own names.
//!
//! ```
//! use hdl::prelude::*;
//! use hdl::verilog::{Options, generate};
//!
//! #[derive(LogicBlock, Default)]
//! struct Inverter {
//!     pub a: Signal<In, Bits<8>>,
//!     pub y: Signal<Out, Bits<8>>,
//! }
//!
//! #[module]
//! impl Logic for Inverter {
//!     #[hdl_gen]
//!     fn update(&mut self) {
//!         self.y.next = !self.a.val();
//!     }
//! }
//!
//! let design = generate(&Inverter::default(), &Options::new("inverter"))?;
//! assert!(design.text.contains("assign y = (~a);"));
//! # Ok::<(), hdl::verilog::PrintError>(())
//! ```

mod breaks;
mod collect;
mod constant;
mod error;
mod ir;
mod known;
mod lower;
mod module;
mod mutants;
mod names;
mod package;
mod path;
mod print;
mod process;
mod sites;
mod text;
mod types;
mod waive;

pub use breaks::{Break, PICK, picks};
pub use constant::CONSTANT;
pub use error::{PLACE, PrintError, Reason};
pub use known::{check, duty, register};
pub use module::Target;
pub use names::{describe, stream, write};
pub use process::Grouping;
pub use sites::BLANK;
pub use waive::{WAIVERS, Waiver};

#[cfg(test)]
pub(crate) use types::width_of;

use collect::{Module, Role};
use package::Package;
use rust_hdl::prelude::{Block, Verilog};
use std::collections::{BTreeMap, HashMap};

/// How to print a design.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Name of the top module.
    pub top: String,
    /// What the text is for.
    pub target: Target,
    /// How targets are grouped into processes.
    pub grouping: Grouping,
    /// Grouping of single modules, by their printed name.
    pub grouping_of: BTreeMap<String, Grouping>,
    /// What an input of the top can break.
    pub breaks: Vec<Break>,
    /// Whether an input of the top picks a mutant. Not with `breaks`.
    pub mutants: bool,
    /// Types of the blocks that have mutants, without their parameters; all if there is none.
    pub mutants_of: Vec<String>,
}

impl Options {
    /// For simulation, one process a target.
    pub fn new(top: &str) -> Self {
        Options {
            top: top.to_string(),
            ..Options::default()
        }
    }

    /// The same for another target.
    pub fn target(self, target: Target) -> Self {
        Options { target, ..self }
    }

    /// The same with an input that picks one of these breaks.
    pub fn broken(self, breaks: Vec<Break>) -> Self {
        Options { breaks, ..self }
    }

    /// The same with an input that picks one of all mutants.
    pub fn mutants(self) -> Self {
        Options {
            mutants: true,
            ..self
        }
    }

    /// The same with an input that picks one of the mutants of blocks of type `B`, or of those that were named before.
    pub fn mutants_of<B: ?Sized>(mut self) -> Self {
        self.mutants_of.push(names::type_of::<B>());
        self.mutants()
    }

    /// The same with another grouping.
    pub fn grouping(self, grouping: Grouping) -> Self {
        Options { grouping, ..self }
    }
}

/// Which way a port goes, seen from the module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Into the module.
    Input,
    /// Out of the module.
    Output,
    /// Both ways.
    InOut,
}

/// A port of the top module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Port {
    /// Name in the text: the parts of a bundle are joined by `_`.
    pub name: String,
    /// Its direction.
    pub direction: Direction,
    /// Width in bits.
    pub width: usize,
    /// Whether its Rust type is signed. The printed port is a plain vector.
    pub signed: bool,
}

/// A printed design.
#[derive(Clone, Debug)]
pub struct Design {
    /// Name of the top module.
    pub top: String,
    /// The whole text.
    pub text: String,
    /// Names of the modules in it, children before parents, without foreign cores.
    pub modules: Vec<String>,
    /// Ports of the top module, in order.
    pub ports: Vec<Port>,
}

/// Prints a block and everything under it. The block needn't be connected: the printer checks for
/// itself that everything is driven.
pub fn generate(top: &dyn Block, options: &Options) -> Result<Design, PrintError> {
    let mut modules = collect::collect(top, &options.top);
    breaks::place(&mut modules, &options.breaks)?;
    let mut picks: Vec<String> = options.breaks.iter().map(|b| b.name.to_string()).collect();
    if options.mutants {
        assert!(picks.is_empty(), "either breaks or mutants");
        picks = mutants::place(&mut modules, &options.mutants_of)?;
    }
    breaks::thread(&mut modules)?;
    let last = modules.len() - 1;
    let package = Package::new(&modules);
    let mut writer = Writer {
        modules: &modules,
        package: &package,
        options,
        names: HashMap::new(),
        by_body: HashMap::new(),
        taken: HashMap::new(),
        text: String::new(),
        printed: vec![],
        cores: vec![],
    };
    // The top has the name that was asked for, whatever is below it.
    writer.taken.insert(options.top.clone(), 1);
    for (id, module) in modules.iter().enumerate() {
        if id == last || module.known.is_none() {
            writer.module(id, module, id == last)?;
        }
    }
    let top = &modules[last];
    let waivers = waive::EVERYWHERE.iter();
    let head = waivers
        .map(|waiver| waiver.begin() + "\n")
        .collect::<String>()
        + &breaks::comments(picks.iter().map(String::as_str))
        + &package.print();
    Ok(Design {
        top: options.top.clone(),
        ports: top.signals.iter().filter_map(port).collect(),
        modules: writer.printed,
        text: writer.cores.iter().fold(head + &writer.text, |text, core| {
            format!("{text}\n{}\n", core.trim_matches('\n'))
        }),
    })
}

fn port(signal: &collect::Signal) -> Option<Port> {
    Some(Port {
        name: signal.name.clone(),
        direction: match signal.role {
            Role::Input => Direction::Input,
            Role::Output => Direction::Output,
            Role::InOut => Direction::InOut,
            _ => return None,
        },
        width: signal.ty.width,
        signed: signal.ty.signed,
    })
}

struct Writer<'a> {
    modules: &'a [Module],
    package: &'a Package,
    options: &'a Options,
    /// Printed name of each module.
    names: HashMap<usize, String>,
    by_body: HashMap<String, String>,
    taken: HashMap<String, usize>,
    text: String,
    printed: Vec<String>,
    /// Declarations of foreign cores, each once.
    cores: Vec<String>,
}

impl Writer<'_> {
    fn module(&mut self, id: usize, module: &Module, is_top: bool) -> Result<(), PrintError> {
        let fail = |signal: Option<&str>, reason| PrintError {
            block: module.display_path().into(),
            place: None,
            broken: None,
            signal: signal.map(|s| s.replace('$', ".").into()),
            reason,
        };
        if collect::is_verbatim(&module.code) && !module.children.is_empty() {
            return Err(fail(None, Reason::CustomWithChildren));
        }
        for s in &module.signals {
            if names::is_keyword(&s.name) {
                return Err(fail(Some(&s.path), Reason::Keyword(s.name.clone())));
            }
            if s.ty.width == 0 {
                return Err(fail(Some(&s.path), Reason::ZeroWidth));
            }
        }
        for child in &module.children {
            // Of a register only `name_q` and `name_d` are printed.
            let known = &self.modules[child.module].known;
            let is_register = matches!(known, Some(known::Known::Register { .. }));
            if names::is_keyword(&child.name) && !is_register {
                return Err(fail(None, Reason::Keyword(child.name.clone())));
            }
        }
        let wanted = match &module.title {
            Some(title) => title.clone(),
            None => from_path(&module.path),
        };
        let body = match &module.code {
            Verilog::Blackbox(core) => {
                self.core(&core.code);
                self.names.insert(id, core.name.clone());
                return Ok(());
            }
            Verilog::Custom(text) => module::custom_body(module, text),
            Verilog::Wrapper(wrapper) => {
                self.core(&wrapper.cores);
                module::custom_body(module, &wrapper.code)
            }
            Verilog::Combinatorial(_) | Verilog::Empty => {
                let kernel = lower::lower(module)?;
                let context = module::Context {
                    modules: self.modules,
                    package: self.package,
                    names: &self.names,
                    target: self.options.target,
                    is_top,
                };
                let by_name = self.options.grouping_of.get(&wanted);
                let grouping = *by_name.unwrap_or(&self.options.grouping);
                module::body(&context, module, &kernel, grouping).map_err(|(id, reason)| {
                    let path = &module.signals[id].path;
                    let forced = module.forces.iter().find(|forced| forced.is_of(path));
                    let forced = forced.filter(|_| reason == Reason::ForcedAlone);
                    let error = fail(Some(path), reason);
                    match forced {
                        Some(forced) => error.of(forced),
                        None => error,
                    }
                })?
            }
        };
        if is_top {
            self.write(&self.options.top.clone(), &body);
            return Ok(());
        }
        if let Some(name) = self.by_body.get(&body) {
            self.names.insert(id, name.clone());
            return Ok(());
        }
        let name = names::unique(&wanted, &mut self.taken);
        self.write(&name, &body);
        self.names.insert(id, name.clone());
        self.by_body.insert(body, name);
        Ok(())
    }

    fn write(&mut self, name: &str, body: &str) {
        self.text += &format!("\nmodule {name}{body}");
        self.printed.push(name.to_string());
    }

    fn core(&mut self, text: &str) {
        if !text.trim().is_empty() && !self.cores.iter().any(|c| c == text) {
            self.cores.push(text.to_string());
        }
    }
}

/// A module name from a place in the design, without the indices of arrays.
fn from_path(path: &str) -> String {
    let parts: Vec<&str> = path
        .split('$')
        .filter(|part| part.parse::<usize>().is_err())
        .collect();
    parts.join("_")
}
