//! The netlist of a block: every module under it with its signals, children and kernel.
//!
//! A [`Probe`] walks the blocks as rust-hdl's own tools do. Each module ends with the list of its
//! own signals and, after them, the ports of its children under the child's name, because a kernel
//! speaks of both in the same way.

use super::constant::{CONSTANT, Constant};
use super::ir::SignalId;
use super::known::{Known, recognise};
use super::names;
use super::types::{Type, literal, parse_literal};
use num_bigint::BigInt;
use rust_hdl::prelude::ast::VerilogStatement;
use rust_hdl::prelude::{Atom, AtomKind, Block, Probe, TypeDescriptor, Verilog};
use std::collections::{BTreeMap, HashMap};
use std::panic::Location;

/// What a signal is to the module that holds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    Input,
    Output,
    InOut,
    Local,
    Constant,
    ChildInput,
    ChildOutput,
    ChildInOut,
}

#[derive(Clone, Debug)]
pub(crate) struct Signal {
    /// Name in the kernel, parts joined by `$`: `bus$valid`, `entry$3$hit`, `memory$write$enable`.
    pub(crate) kernel: String,
    /// Name for breaks and mutants: the same, but `memory$write_enable`.
    pub(crate) path: String,
    /// The path by which it is printed: another one if it belongs to a stream.
    pub(crate) port: String,
    /// Name in the printed module.
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) ty: Type,
    pub(crate) descriptor: TypeDescriptor,
    /// Of a child whose Verilog its author wrote: its ports are vectors.
    pub(crate) foreign: bool,
    /// Value at the time of printing: that of a constant.
    pub(crate) value: BigInt,
}

impl Signal {
    /// rust-hdl gives its `Clock` type this name and no other type has it.
    pub(crate) fn is_clock(&self) -> bool {
        self.descriptor.name == "clock"
    }

    pub(crate) fn is_port(&self) -> bool {
        matches!(self.role, Role::Input | Role::Output | Role::InOut)
    }
}

pub(crate) struct Child {
    /// Name in the kernel.
    pub(crate) path: String,
    /// Name of the instance in the printed module.
    pub(crate) name: String,
    /// Index of its module in the netlist.
    pub(crate) module: usize,
    /// It is a check, or a duty.
    pub(crate) check: bool,
    /// Number of the mutant that resets it to another value.
    pub(crate) reset_mutant: Option<usize>,
}

pub(crate) struct Module {
    /// Path from the top, parts joined by `$`.
    pub(crate) path: String,
    /// Name that the source gives, with its parameters.
    pub(crate) title: Option<String>,
    pub(crate) signals: Vec<Signal>,
    pub(crate) children: Vec<Child>,
    pub(crate) code: Verilog,
    /// Set if the module is a leaf that is printed in its parent.
    pub(crate) known: Option<Known>,
    /// In a variant that can be broken, where something in here or below can: the input that picks.
    pub(crate) pick: Option<SignalId>,
    /// The same input of its children.
    pub(crate) picking: Vec<SignalId>,
    /// What breaks force here.
    pub(crate) forces: Vec<Forced>,
    /// Sites of mutants are counted here.
    pub(crate) mutable: bool,
    /// Numbers of mutants, by site.
    pub(crate) mutants: HashMap<usize, usize>,
    /// Constants of the source that the kernel names, by the name there.
    pub(crate) constants: BTreeMap<String, Constant>,
}

impl Module {
    /// The path as people read it.
    pub(crate) fn display_path(&self) -> String {
        self.path.replace('$', ".")
    }
}

/// A decision of one module.
#[derive(Clone, Debug)]
pub(crate) struct Forced {
    pub(crate) number: usize,
    pub(crate) signal: String,
    pub(crate) value: String,
    pub(crate) when: Option<String>,
    /// Name of the break, and where it is said.
    pub(crate) broken: &'static str,
    pub(crate) at: &'static Location<'static>,
}

impl Forced {
    /// Whether the signal, or a field of the signal, of this path is forced.
    pub(crate) fn is_of(&self, path: &str) -> bool {
        let own = self.signal.replace(['.', '['], "$").replace(']', "");
        let rest = own.strip_prefix(path);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('$'))
    }
}

/// Modules in an order in which children come before their parents; the top is the last.
pub(crate) fn collect(top: &dyn Block, name: &str) -> Vec<Module> {
    let mut collector = Collector::default();
    top.accept(name, &mut collector);
    collector.done
}

#[derive(Default)]
struct Collector {
    open: Vec<Module>,
    namespace: Vec<String>,
    /// The bundle is a stream.
    in_stream: bool,
    /// The bundle is the write port of a memory.
    in_write: bool,
    done: Vec<Module>,
}

impl Probe for Collector {
    fn visit_start_scope(&mut self, name: &str, node: &dyn Block) {
        let path = match self.open.last() {
            Some(parent) => format!("{}${name}", parent.path),
            None => name.to_string(),
        };
        self.namespace.clear();
        let code = node.hdl();
        self.open.push(Module {
            path,
            title: names::title(node),
            signals: vec![],
            children: vec![],
            constants: constants(&code),
            code,
            known: None,
            pick: None,
            picking: vec![],
            forces: vec![],
            mutable: false,
            mutants: HashMap::new(),
        });
    }

    fn visit_start_namespace(&mut self, name: &str, bundle: &dyn Block) {
        self.namespace.push(name.to_string());
        self.in_stream = names::is_stream(bundle);
        self.in_write = names::is_write(bundle);
    }

    fn visit_end_namespace(&mut self, _: &str, _: &dyn Block) {
        self.namespace.pop();
        self.in_stream = false;
        self.in_write = false;
    }

    fn visit_atom(&mut self, name: &str, atom: &dyn Atom) {
        let role = match atom.kind() {
            AtomKind::InputParameter => Role::Input,
            AtomKind::OutputParameter | AtomKind::OutputPassthrough => Role::Output,
            AtomKind::InOutParameter => Role::InOut,
            AtomKind::Constant => Role::Constant,
            _ => Role::Local,
        };
        let mut parts: Vec<&str> = self.namespace.iter().map(String::as_str).collect();
        parts.push(name);
        let kernel = parts.join("$");
        let path = match self.in_write {
            true => parts.join("_"),
            false => kernel.clone(),
        };
        let port = match self.namespace.split_last() {
            Some((stream, around)) if self.in_stream => {
                let own = names::stream_port(stream, name);
                let mut parts: Vec<&str> = around.iter().map(String::as_str).collect();
                parts.push(&own);
                parts.join("$")
            }
            _ => path.clone(),
        };
        let descriptor = atom.descriptor();
        let module = self.open.last_mut().expect("signals are inside a block");
        module.signals.push(Signal {
            kernel,
            path,
            port,
            name: String::new(),
            role,
            ty: Type::of(&descriptor),
            value: literal(&atom.verilog()).0,
            descriptor,
            foreign: false,
        });
    }

    fn visit_end_scope(&mut self, name: &str, _: &dyn Block) {
        let mut module = self.open.pop().expect("scopes are balanced");
        if module.children.is_empty() {
            let ports: Vec<&str> = module.signals.iter().map(|s| s.path.as_str()).collect();
            module.known = recognise(&module.code, &ports);
        }
        name_signals(&mut module);
        let index = self.done.len();
        if let Some(parent) = self.open.last_mut() {
            for signal in &module.signals {
                let role = match signal.role {
                    Role::Input => Role::ChildInput,
                    Role::Output => Role::ChildOutput,
                    Role::InOut => Role::ChildInOut,
                    _ => continue,
                };
                parent.signals.push(Signal {
                    kernel: format!("{name}${}", signal.kernel),
                    path: format!("{name}${}", signal.path),
                    port: format!("{name}${}", signal.port),
                    role,
                    foreign: module.known.is_none() && is_verbatim(&module.code),
                    ..signal.clone()
                });
            }
            parent.children.push(Child {
                path: name.to_string(),
                name: String::new(),
                module: index,
                check: matches!(module.known, Some(Known::Check { .. })),
                reset_mutant: None,
            });
        }
        self.done.push(module);
    }
}

/// What the comments of a kernel say of its constants.
fn constants(code: &Verilog) -> BTreeMap<String, Constant> {
    let Verilog::Combinatorial(block) = code else {
        return BTreeMap::new();
    };
    let constants = block.iter().filter_map(|statement| {
        let VerilogStatement::Comment(text) = statement else {
            return None;
        };
        let (name, value) = text.strip_prefix(CONSTANT)?.split_once(' ')?;
        let (value, width) = parse_literal(value)?;
        Some((name.to_string(), Constant { value, width }))
    });
    constants.collect()
}

/// Whether the text is the author's.
pub(crate) fn is_verbatim(code: &Verilog) -> bool {
    !matches!(code, Verilog::Combinatorial(_) | Verilog::Empty)
}

/// Gives each signal and instance its printed name. Hand-written Verilog speaks of its ports by
/// their paths, so those stay as they are.
fn name_signals(module: &mut Module) {
    let verbatim = is_verbatim(&module.code);
    let mut taken = HashMap::new();
    for signal in &mut module.signals {
        signal.name = if verbatim {
            signal.port.clone()
        } else {
            names::unique(&signal.port.replace('$', "_"), &mut taken)
        };
    }
    for child in &mut module.children {
        child.name = names::unique(&child.path.replace('$', "_"), &mut taken);
    }
}
