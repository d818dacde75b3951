//! The places of a kernel where a [mutant](super::mutants) can be, and what it does there.

use super::collect::{Module, Role};
use super::ir::{Expr, Node};
use super::path::constant_path;
use num_bigint::BigInt;
use rust_hdl::prelude::ast::VerilogExpression as Ast;
use std::collections::HashMap;

/// A comment in a kernel's tree: those behind the next assignment overwrite all of it, so that no mutant of it would be seen.
pub const BLANK: &str = "blank";

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
    if matches!(x, Ast::Paren(_)) && !matches!(sound.node, Node::Literal(..)) {
        return None; // What is in the parentheses has been asked.
    }
    let flipped = |value: &BigInt| {
        let other = value ^ BigInt::from(1);
        let what = format!("{value} is {other}");
        (what, Node::Literal(other, None))
    };
    let is_integer = match x {
        Ast::Signal(name) => constant_path(name).is_some(),
        _ => !matches!(x, Ast::Cast(..) | Ast::Slice(..)),
    };
    let (what, node) = match &sound.node {
        Node::Literal(value, _) if is_integer => flipped(value),
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
