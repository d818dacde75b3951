//! Breaks: a design in which a named decision is forced, so that a test can show that it notices.
//!
//! The product's text knows nothing of them. The variant of a top has one more input, [`PICK`]. While it has the number
//! of a break, each decision that the break names has another value; 0 breaks nothing.
//!
//! ```text
//!   kernel ──► eligible_v1 ──┐
//!              hits ─────────┴► broken == 3 ? hits : eligible_v1 ──► eligible ──► whoever reads it
//! ```
//!
//! A decision is a signal of the kernel: a local one, an output, a child's input (so `count.d` of a register), or one that is
//! only read: an input, a child's output. Whoever reads it after the kernel's last assignment reads the forced value; a
//! kernel that reads it earlier is refused. The forced value is an expression as a kernel writes it, without `self.` and
//! `.val()`, of the values that the sound kernel computes; `1` and `true` are expressions too.
//!
//! ```
//! use hdl::prelude::*;
//! use hdl::verilog::{Break, Options, generate};
//!
//! #[derive(LogicBlock, Default)]
//! struct Gate {
//!     pub ask: Signal<In, Bit>,
//!     pub free: Signal<In, Bit>,
//!     pub grant: Signal<Out, Bit>,
//!     may: Signal<Local, Bit>,
//! }
//!
//! #[module]
//! impl Logic for Gate {
//!     #[hdl_gen]
//!     fn update(&mut self) {
//!         self.may.next = self.ask.val() & self.free.val();
//!         self.grant.next = self.may.val();
//!     }
//! }
//!
//! let breaks = vec![Break::new("grants_what_is_taken").force::<Gate>("may", "ask")];
//! let options = Options::new("gate_broken").broken(breaks);
//! let design = generate(&Gate::default(), &options)?;
//! assert_eq!(hdl::verilog::picks(&design.text), ["grants_what_is_taken"]);
//! # Ok::<(), hdl::verilog::PrintError>(())
//! ```

use super::collect::{Forced, Module, Role, Signal};
use super::error::{PrintError, Reason};
use super::names;
use super::types::Type;
use num_bigint::BigInt;
use rust_hdl::prelude::ast::{
    VerilogExpression as Ast, VerilogOp as Op, VerilogOpUnary as UnaryOp,
};
use rust_hdl::prelude::{Bits, Synth, Verilog};
use std::panic::Location;

/// Input of a variant that picks the break or the mutant; 16 bits, 0 for none.
pub const PICK: &str = "broken";
const WIDTH: usize = 16;
/// Start of the lines that say what can be picked, in the order of the numbers from 1 on.
const COMMENT: &str = "// broken: ";

/// A way to break a design. Its number is its place in the list of the variant, from 1 on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Break {
    /// What the broken design does wrong.
    pub name: &'static str,
    forces: Vec<Force>,
}

/// A decision and the value that it gets.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Force {
    /// Type of the block, without its parameters.
    block: String,
    signal: String,
    value: String,
    when: Option<String>,
    /// Where it is said.
    at: &'static Location<'static>,
}

impl Break {
    /// A break that forces nothing yet.
    pub fn new(name: &'static str) -> Self {
        Break {
            name,
            forces: vec![],
        }
    }

    /// The same with `signal` forced to `value` in every block of type `B`, whatever `B`'s parameters.
    #[track_caller]
    pub fn force<B: ?Sized>(self, signal: &str, value: &str) -> Self {
        self.add::<B>(signal, value, None)
    }

    /// The same with `signal` forced while `when` holds.
    #[track_caller]
    pub fn force_if<B: ?Sized>(self, signal: &str, value: &str, when: &str) -> Self {
        self.add::<B>(signal, value, Some(when.to_string()))
    }

    #[track_caller]
    fn add<B: ?Sized>(mut self, signal: &str, value: &str, when: Option<String>) -> Self {
        self.forces.push(Force {
            block: names::type_of::<B>(),
            signal: signal.to_string(),
            value: value.to_string(),
            when,
            at: Location::caller(),
        });
        self
    }

    /// Those of `breaks` that have these names.
    ///
    /// # Panics
    /// If there is no break of a name.
    pub fn named(breaks: &[Break], names: &[&str]) -> Vec<Break> {
        let named = |name: &&str| {
            let found = breaks.iter().find(|broken| broken.name == *name);
            found.unwrap_or_else(|| panic!("no break is called {name}"))
        };
        names.iter().map(named).cloned().collect()
    }
}

/// Names of what a variant's text can pick, in the order of their numbers from 1 on.
pub fn picks(text: &str) -> Vec<String> {
    let names = text.lines().filter_map(|line| line.strip_prefix(COMMENT));
    names.map(String::from).collect()
}

/// The lines that [`picks`] reads.
pub(crate) fn comments<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let lines = names.into_iter().map(|name| format!("{COMMENT}{name}\n"));
    lines.collect()
}

/// Notes in each module what is forced there.
pub(crate) fn place(modules: &mut [Module], breaks: &[Break]) -> Result<(), PrintError> {
    for (index, broken) in breaks.iter().enumerate() {
        for force in &broken.forces {
            let refused = |block: String, signal: Option<&str>, reason| PrintError {
                block: block.into(),
                place: Some(force.at.to_string().into()),
                broken: Some(broken.name.into()),
                signal: signal.map(Into::into),
                reason,
            };
            let mut found = false;
            for module in modules.iter_mut() {
                let title = module.title.as_deref().map(names::base);
                if title != Some(&force.block) {
                    continue;
                }
                found = true;
                if !matches!(module.code, Verilog::Combinatorial(_)) {
                    let block = module.display_path();
                    return Err(refused(block, Some(&force.signal), Reason::NoKernel));
                }
                module.forces.push(Forced {
                    number: index + 1,
                    signal: force.signal.clone(),
                    value: force.value.clone(),
                    when: force.when.clone(),
                    broken: broken.name,
                    at: force.at,
                });
            }
            if !found {
                let top = modules.last().map(Module::display_path).unwrap_or_default();
                return Err(refused(top, None, Reason::NoSuchBlock(force.block.clone())));
            }
        }
    }
    Ok(())
}

/// Gives [`PICK`] to each module in which something can be picked, and to all above.
pub(crate) fn thread(modules: &mut [Module]) -> Result<(), PrintError> {
    let signal = |path: String, role| Signal {
        name: path.replace('$', "_"),
        kernel: path.clone(),
        port: path.clone(),
        path,
        role,
        ty: Type::unsigned(WIDTH),
        descriptor: Bits::<WIDTH>::descriptor(),
        value: BigInt::from(0),
        foreign: false,
    };
    for id in 0..modules.len() {
        let (below, rest) = modules.split_at_mut(id);
        let module = &mut rest[0];
        let children = module.children.iter();
        let picking = children.filter(|child| below[child.module].pick.is_some());
        let ports: Vec<String> = picking.map(|c| format!("{}${PICK}", c.path)).collect();
        if ports.is_empty() && module.forces.is_empty() && module.mutants.is_empty() {
            continue;
        }
        let added = ports
            .into_iter()
            .map(|path| signal(path, Role::ChildInput))
            .chain([signal(PICK.to_string(), Role::Input)]);
        for signal in added {
            if let Some(other) = module.signals.iter().find(|s| s.name == signal.name) {
                return Err(PrintError {
                    block: module.display_path().into(),
                    place: None,
                    broken: None,
                    signal: Some(other.path.replace('$', ".").into()),
                    reason: Reason::NameOfThePick,
                });
            }
            if signal.role == Role::ChildInput {
                module.picking.push(module.signals.len());
            } else {
                module.pick = Some(module.signals.len());
            }
            module.signals.push(signal);
        }
    }
    Ok(())
}

/// The expression that `text` says.
pub(crate) fn parse(text: &str) -> Result<Ast, Reason> {
    let bad = || Reason::ForcedValue(text.to_string());
    let parsed: syn::Expr = syn::parse_str(text).map_err(|_| bad())?;
    convert(&parsed).ok_or_else(bad)
}

fn convert(x: &syn::Expr) -> Option<Ast> {
    let inner = |x: &syn::Expr| convert(x).map(Box::new);
    Some(match x {
        syn::Expr::Lit(lit) => Ast::Literal(match &lit.lit {
            syn::Lit::Int(value) => value.base10_parse::<u128>().ok()?.into(),
            syn::Lit::Bool(value) => value.value.into(),
            _ => return None,
        }),
        syn::Expr::Path(_) | syn::Expr::Field(_) | syn::Expr::Index(_) => Ast::Signal(path(x)?),
        syn::Expr::Paren(a) => Ast::Paren(inner(&a.expr)?),
        syn::Expr::Unary(a) => {
            let op = match a.op {
                syn::UnOp::Not(_) => UnaryOp::Not,
                syn::UnOp::Neg(_) => UnaryOp::Neg,
                _ => return None,
            };
            Ast::Unary(op, inner(&a.expr)?)
        }
        syn::Expr::Binary(a) => Ast::Binary(inner(&a.left)?, operator(&a.op)?, inner(&a.right)?),
        syn::Expr::MethodCall(call) => {
            let base = inner(&call.receiver)?;
            let arguments: Vec<&syn::Expr> = call.args.iter().collect();
            match (call.method.to_string().as_str(), &arguments[..]) {
                ("val", []) => *base,
                ("any", []) => Ast::Unary(UnaryOp::Any, base),
                ("all", []) => Ast::Unary(UnaryOp::All, base),
                ("xor", []) => Ast::Unary(UnaryOp::Xor, base),
                ("get_bit", [at]) => Ast::Index(base, inner(at)?),
                ("get_bits", [at]) => {
                    let width = width(call.turbofish.as_ref()?, 0)?;
                    Ast::Slice(base, width, inner(at)?)
                }
                ("replace_bit", [at, bit]) => Ast::IndexReplace(base, inner(at)?, inner(bit)?),
                _ => return None,
            }
        }
        syn::Expr::Call(call) => {
            let syn::Expr::Path(function) = &*call.func else {
                return None;
            };
            let segment = function.path.segments.last()?;
            let syn::PathArguments::AngleBracketed(generics) = &segment.arguments else {
                return None;
            };
            match (segment.ident.to_string().as_str(), call.args.first()) {
                ("bit_cast", Some(value)) => Ast::Cast(inner(value)?, width(generics, 0)?),
                _ => return None,
            }
        }
        _ => return None,
    })
}

fn width(generics: &syn::AngleBracketedGenericArguments, index: usize) -> Option<usize> {
    match generics.args.get(index)? {
        syn::GenericArgument::Const(syn::Expr::Lit(syn::ExprLit {
            lit: syn::Lit::Int(width),
            ..
        })) => width.base10_parse().ok(),
        _ => None,
    }
}

/// `Type::Variant`, `self.a.b[3].c`, with `$` between the parts as rust-hdl has it.
fn path(x: &syn::Expr) -> Option<String> {
    Some(match x {
        syn::Expr::Path(path) => {
            let parts = path.path.segments.iter().map(|s| s.ident.to_string());
            parts.collect::<Vec<_>>().join("$")
        }
        syn::Expr::Field(field) => {
            let syn::Member::Named(member) = &field.member else {
                return None;
            };
            match path(&field.base)?.as_str() {
                "self" => member.to_string(),
                base => format!("{base}${member}"),
            }
        }
        syn::Expr::MethodCall(call) if call.method == "val" => path(&call.receiver)?,
        syn::Expr::Index(index) => {
            let syn::Expr::Lit(syn::ExprLit {
                lit: syn::Lit::Int(at),
                ..
            }) = &*index.index
            else {
                return None;
            };
            format!("{}${}", path(&index.expr)?, at.base10_digits())
        }
        _ => return None,
    })
}

fn operator(op: &syn::BinOp) -> Option<Op> {
    Some(match op {
        syn::BinOp::Add(_) => Op::Add,
        syn::BinOp::Sub(_) => Op::Sub,
        syn::BinOp::BitAnd(_) => Op::BitAnd,
        syn::BinOp::BitOr(_) => Op::BitOr,
        syn::BinOp::BitXor(_) => Op::BitXor,
        syn::BinOp::And(_) => Op::LogicalAnd,
        syn::BinOp::Or(_) => Op::LogicalOr,
        syn::BinOp::Shl(_) => Op::Shl,
        syn::BinOp::Shr(_) => Op::Shr,
        syn::BinOp::Eq(_) => Op::Eq,
        syn::BinOp::Ne(_) => Op::Ne,
        syn::BinOp::Lt(_) => Op::Lt,
        syn::BinOp::Le(_) => Op::Le,
        syn::BinOp::Gt(_) => Op::Gt,
        syn::BinOp::Ge(_) => Op::Ge,
        _ => return None,
    })
}
