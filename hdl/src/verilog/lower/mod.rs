//! From rust-hdl's syntax tree of a kernel to the typed program.
//!
//! Rust has typed the kernel, and the tree has forgotten most of it. The types are inferred again,
//! by rust-hdl's own rules: operands of an operator have one type, an integer takes the other
//! operand's, `Mul` doubles the width, `bit_cast` states its own. Where the tree has kept too
//! little to be certain (`.index()`, `.to_bits()` and `.into()` leave no trace at all) the kernel
//! is refused. So is what Verilog would run in another way than Rust: latches, reads before
//! assignment, a child's input read back.
//!
//! | file | idea |
//! |---|---|
//! | `integers` | what Rust computes before there is a circuit |
//! | `typing` | the type that an expression has of itself |
//! | `expression`, `operator` | expressions with types |
//! | `assignment` | assignments, and versions of signals |
//! | `statement` | statements, and what every path has assigned |
//! | `choice` | what a mutant or a break does if it is picked |
//! | `force` | forced signals |

mod assignment;
mod choice;
mod expression;
mod force;
mod integers;
mod operator;
mod statement;
mod typing;

use super::collect::{Module, Role};
use super::error::{PrintError, Reason};
use super::ir::{Expr, Kernel, SignalId, Stmt, Variable, VariableId};
use super::path::{Loops, Meaning, Names, constant_path};
use super::sites::Sites;
use rust_hdl::prelude::ast::{Verilog, VerilogExpression as Ast};
use std::collections::{HashMap, HashSet};

type Lowered<T> = Result<T, Reason>;

/// Lowers the module's kernel and checks that it leaves nothing unassigned.
pub(crate) fn lower(module: &Module) -> Result<Kernel, PrintError> {
    let mut lowering = Lowering::new(module);
    let fail = |place: Option<&String>, signal: Option<String>, reason| PrintError {
        block: module.display_path().into(),
        place: place.map(|place| place.as_str().into()),
        broken: None,
        signal: signal.map(String::into),
        reason,
    };
    let body = match &module.code {
        Verilog::Combinatorial(code) => lowering.block(code),
        _ => Ok(vec![]),
    };
    let mut body =
        body.map_err(|reason| fail(lowering.place.as_ref(), lowering.focus.clone(), reason))?;
    let forced = lowering.pick_and_force(&mut body);
    forced.map_err(|reason| {
        let error = fail(None, lowering.focus.clone(), reason);
        match lowering.forcing {
            Some(n) => error.of(&module.forces[n]),
            None => error,
        }
    })?;
    let kernel = lowering.finish(body);
    for (id, signal) in module.signals.iter().enumerate() {
        let place = lowering.places.get(&id).or(lowering.start.as_ref());
        let complain = |reason| Err(fail(place, Some(signal.path.replace('$', ".")), reason));
        match (kernel.last.get(&id), signal.role) {
            (Some(v), _) if !lowering.assigned.contains(v) => return complain(Reason::Latch),
            (None, Role::Output | Role::ChildInput) => {
                return complain(if matches!(module.code, Verilog::Combinatorial(_)) {
                    Reason::NeverAssigned
                } else {
                    Reason::NoKernel
                });
            }
            _ => {}
        }
    }
    Ok(kernel)
}

struct Lowering<'a> {
    module: &'a Module,
    names: Names<'a>,
    loops: Loops,
    variables: Vec<Variable>,
    versions: HashMap<SignalId, usize>,
    /// The version of each signal that holds here.
    current: HashMap<SignalId, VariableId>,
    /// Variables that every path to here has assigned.
    assigned: HashSet<VariableId>,
    nets: Vec<(SignalId, SignalId)>,
    /// How many conditions are around.
    depth: usize,
    /// Number of the statement.
    at: usize,
    /// The signal that an error is about.
    focus: Option<String>,
    /// Where in the source the kernel begins, and the statement stands, if the kernel says so.
    start: Option<String>,
    place: Option<String>,
    /// The first statement that assigns each signal.
    places: HashMap<SignalId, String>,
    /// Variables that hold forced values.
    forced: Vec<VariableId>,
    /// Where mutants can be.
    sites: Sites,
    /// No mutant can be here.
    quiet: bool,
    /// The next assignment is overwritten.
    blank: bool,
    /// The break whose signal or value is looked at, by its place among those of the module.
    forcing: Option<usize>,
}

impl<'a> Lowering<'a> {
    fn new(module: &'a Module) -> Self {
        Lowering {
            module,
            names: Names::new(module),
            loops: vec![],
            variables: vec![],
            versions: HashMap::new(),
            current: HashMap::new(),
            assigned: HashSet::new(),
            nets: vec![],
            depth: 0,
            at: 0,
            focus: None,
            start: None,
            place: None,
            places: HashMap::new(),
            forced: vec![],
            sites: Sites::default(),
            quiet: !module.mutable,
            blank: false,
            forcing: None,
        }
    }

    fn finish(&mut self, body: Vec<Stmt>) -> Kernel {
        Kernel {
            body,
            variables: std::mem::take(&mut self.variables),
            last: self.current.drain().collect(),
            nets: std::mem::take(&mut self.nets),
            forced: std::mem::take(&mut self.forced),
            sites: std::mem::take(&mut self.sites.names),
        }
    }

    fn resolve(&self, name: &str) -> Lowered<Meaning> {
        self.names.resolve(name, &self.loops)
    }

    /// Makes `name` the signal that errors are about.
    fn look_at(&mut self, name: &str) {
        self.focus = Some(self.names.display(name, &self.loops));
    }

    /// Makes the first signal of `x` the one that errors are about.
    fn look_into(&mut self, x: &Ast) {
        if let Some(name) = first_signal(x) {
            self.look_at(name);
        }
    }
}

/// Whether a value has as many bits as its target.
fn fits(target: usize, value: &Expr) -> Lowered<()> {
    if target == value.ty.width {
        Ok(())
    } else {
        Err(Reason::AssignmentMismatch {
            target,
            value: value.ty.width,
        })
    }
}

/// The first signal in an expression.
fn first_signal(x: &Ast) -> Option<&str> {
    match x {
        Ast::Signal(name) if constant_path(name).is_some() => None,
        Ast::Signal(name) => Some(name),
        Ast::Literal(_) => None,
        Ast::Cast(a, _)
        | Ast::Signed(a)
        | Ast::Unsigned(a)
        | Ast::Paren(a)
        | Ast::Unary(_, a)
        | Ast::Index(a, _)
        | Ast::Slice(a, _, _)
        | Ast::IndexReplace(a, _, _) => first_signal(a),
        Ast::Binary(a, _, b) => first_signal(a).or_else(|| first_signal(b)),
    }
}
