//! Places where a variant of the design is another: what a mutant or a break does if it is picked.

use super::Lowering;
use crate::verilog::ir::{Expr, Node, Part, SignalId};
use crate::verilog::sites::Kind;
use crate::verilog::types::Type;
use rust_hdl::prelude::ast::VerilogExpression as Ast;

impl Lowering<'_> {
    /// The value of a place where a mutant can be, which `place` is a part of the tree of.
    pub(super) fn choose(
        &mut self,
        place: &Ast,
        kind: Kind,
        what: &str,
        other: Expr,
        sound: Expr,
    ) -> Expr {
        if self.quiet {
            return sound;
        }
        let focus = self.focus.clone().unwrap_or_default();
        let ordinal = self.sites.names.len();
        let place = std::ptr::from_ref(place) as usize;
        let name = || format!("{focus}: {what} ({ordinal})");
        let site = self.sites.number(place, kind, name);
        match (self.module.pick, self.module.mutants.get(&site)) {
            (Some(pick), Some(number)) => {
                let ty = sound.ty;
                let test = self.picked(pick, *number);
                let other = other.unchosen();
                let [test, other, sound] = [test, other, sound].map(Box::new);
                Expr::new(Node::Choose(test, other, sound), ty)
            }
            _ => sound,
        }
    }

    /// Whether the break or mutant of this number is picked.
    pub(super) fn picked(&self, pick: SignalId, number: usize) -> Expr {
        let ty = self.module.signals[pick].ty;
        let pick = Expr::new(Node::Signal(pick), ty);
        let number = Expr::literal(number, ty);
        Expr::new(
            Node::Compare("==", Box::new(pick), Box::new(number)),
            Type::BIT,
        )
    }

    /// The value that an assignment under a condition makes; a mutant keeps what was.
    pub(super) fn enabled(
        &mut self,
        place: &Ast,
        id: SignalId,
        part: Option<Part>,
        value: Expr,
    ) -> Expr {
        if self.quiet || self.depth == 0 {
            return value;
        }
        let Some(v) = self.current.get(&id).filter(|v| self.assigned.contains(v)) else {
            return value;
        };
        let whole = Expr::new(Node::Variable(*v), self.module.signals[id].ty);
        let old = match part {
            Some(part) => Expr::new(Node::Slice(Box::new(whole), part.offset), value.ty),
            None => whole,
        };
        self.choose(place, Kind::Enable, "isn't assigned", old, value)
    }
}
