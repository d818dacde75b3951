//! Mutants: a design that is wrong in one place at a time, made from its own tree, to measure what its tests notice.
//!
//! A variant of a top with all mutants has the input [`PICK`](super::breaks::PICK); its value is the mutant's number, 0 is the
//! design as it is. A place of the source is one mutant, however many turns its loop has and however many
//! instances its block:
//!
//! ```text
//!   operator    a & b ► a | b      a + b ► a - b      a == b ► a != b      a < b ► a <= b      !a ► a
//!   constant    its lowest bit is the other
//!   condition   never, always
//!   enable      an assignment under a condition isn't made
//!   reset       the lowest bit of a register's reset value is the other
//! ```
//!
//! What only a check reads isn't touched: a check that is weaker isn't a wrong design.

use super::collect::{Module, Role};
use super::error::PrintError;
use super::ir::{Expr, Node};
use super::known::Known;
use super::lower;
use num_bigint::BigInt;
use rust_hdl::prelude::Verilog;
use rust_hdl::prelude::ast::VerilogExpression as Ast;
use std::collections::{BTreeMap, HashMap};

/// What a mutant does at a place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Kind {
    /// The value is computed in another way.
    Value,
    /// The condition never holds.
    Never,
    /// The condition always holds.
    Always,
    /// The assignment isn't made.
    Enable,
}

/// The places of a kernel. A place is where its tree lies in memory, so that the turns of a loop share one.
#[derive(Default)]
pub(crate) struct Sites {
    seen: HashMap<(usize, Kind), usize>,
    pub(crate) names: Vec<String>,
}

impl Sites {
    /// Number of the site within its kernel.
    pub(crate) fn number(
        &mut self,
        place: usize,
        kind: Kind,
        name: impl FnOnce() -> String,
    ) -> usize {
        let next = self.names.len();
        let number = *self.seen.entry((place, kind)).or_insert(next);
        if number == next {
            self.names.push(name());
        }
        number
    }
}

/// Another value for the expression that `x` was lowered to, and what was changed.
pub(crate) fn alternative(x: &Ast, sound: &Expr, module: &Module) -> Option<(String, Expr)> {
    if matches!(x, Ast::Paren(_)) && !matches!(sound.node, Node::Literal(_)) {
        return None; // What is in the parentheses has been asked.
    }
    let flipped = |value: &BigInt| {
        let other = value ^ BigInt::from(1);
        let what = format!("{value} is {other}");
        (what, Node::Literal(other))
    };
    let is_integer = !matches!(x, Ast::Signal(_) | Ast::Cast(..) | Ast::Slice(..));
    let (what, node) = match &sound.node {
        Node::Literal(value) if is_integer => flipped(value),
        Node::Signal(id) if matches!(x, Ast::Signal(_)) => {
            let signal = &module.signals[*id];
            if signal.role != Role::Constant || signal.ty.signed {
                return None;
            }
            let (_, node) = flipped(&signal.value);
            (
                format!("{} is another", signal.path.replace('$', ".")),
                node,
            )
        }
        Node::Binary(op, a, b) if matches!(x, Ast::Binary(..)) => {
            let other = match *op {
                "+" => "-",
                "-" => "+",
                "&" => "|",
                "|" | "^" => "&",
                _ => return None,
            };
            let node = Node::Binary(other, a.clone(), b.clone());
            (format!("{op} is {other}"), node)
        }
        Node::Compare(op, a, b) if matches!(x, Ast::Binary(..)) => {
            let other = match *op {
                "==" => "!=",
                "!=" => "==",
                "<" => "<=",
                "<=" => "<",
                ">" => ">=",
                ">=" => ">",
                "&&" => "||",
                "||" => "&&",
                _ => return None,
            };
            let node = Node::Compare(other, a.clone(), b.clone());
            (format!("{op} is {other}"), node)
        }
        Node::Unary("~", a) if matches!(x, Ast::Unary(..)) => {
            ("~ is missing".to_string(), a.node.clone())
        }
        Node::Unary(op, a) if matches!(x, Ast::Unary(..)) => {
            let other = match *op {
                "&" => "|",
                "|" | "^" => "&",
                _ => return None,
            };
            let name = |op| match op {
                "&" => "all",
                "|" => "any",
                _ => "xor",
            };
            let node = Node::Unary(other, a.clone());
            (format!("{} is {}", name(op), name(other)), node)
        }
        _ => return None,
    };
    Some((what, Expr::new(node, sound.ty)))
}

/// Finds the places in all modules, numbers them, and notes the numbers in the modules. Returns the names, the first is
/// that of number 1.
pub(crate) fn place(modules: &mut [Module]) -> Result<Vec<String>, PrintError> {
    let mut names: Vec<String> = vec![];
    let mut known: HashMap<(String, Vec<String>), usize> = HashMap::new();
    for id in 0..modules.len() {
        let module = &mut modules[id];
        if module.known.is_some() || !matches!(module.code, Verilog::Combinatorial(_)) {
            continue;
        }
        module.mutable = true;
        let mut sites = lower::lower(module)?.sites;
        let resets = resets(modules, id);
        sites.extend(
            resets
                .keys()
                .map(|name| format!("{name}: reset is another")),
        );
        let module = &mut modules[id];
        let title = module.title.as_deref().unwrap_or(&module.path);
        let title = super::names::base(title).to_string();
        // Blocks of one type are wrong in the same way at the same time.
        let first = *known
            .entry((title.clone(), sites.clone()))
            .or_insert_with(|| {
                let first = names.len() + 1;
                names.extend(sites.iter().map(|site| format!("{title}.{site}")));
                first
            });
        module.mutants = (0..sites.len()).map(|site| (site, first + site)).collect();
        let after_kernel = sites.len() - resets.len();
        for (n, children) in resets.into_values().enumerate() {
            for child in children {
                let number = first + after_kernel + n;
                module.children[child].reset_mutant = Some(number);
            }
        }
    }
    Ok(names)
}

/// Registers with a reset, by name without the indices of arrays.
fn resets(modules: &[Module], id: usize) -> BTreeMap<String, Vec<usize>> {
    let mut resets: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (n, child) in modules[id].children.iter().enumerate() {
        let known = &modules[child.module].known;
        if matches!(known, Some(Known::Register { reset: true, .. })) {
            let parts = child.path.split('$');
            let parts: Vec<&str> = parts.filter(|p| p.parse::<usize>().is_err()).collect();
            resets.entry(parts.join(".")).or_default().push(n);
        }
    }
    resets
}
