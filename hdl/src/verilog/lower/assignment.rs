//! Assignments. One of a whole signal outside conditions begins a new version of it.

use super::{Lowered, Lowering, fits};
use crate::verilog::collect::Role;
use crate::verilog::error::Reason;
use crate::verilog::ir::{Expr, Node, Part, SignalId, Stmt, Variable};
use crate::verilog::path::Meaning;
use rust_hdl::prelude::ast::VerilogExpression as Ast;

impl Lowering<'_> {
    pub(super) fn assign_to(&mut self, target: &Ast, value: &Ast) -> Lowered<Stmt> {
        let Ast::Signal(name) = target else {
            return Err(Reason::Unsupported("this target".to_string()));
        };
        self.look_at(name);
        match self.resolve(name)? {
            Meaning::Variant(..) => Err(Reason::NotAssignable(name.replace('$', "::"))),
            Meaning::Field(id, offset, ty) => {
                let lowered = self.expression(value, Some(ty))?;
                fits(ty.width, &lowered)?;
                let width = ty.width;
                let part = Some(Part { offset, width });
                let value = self.enabled(value, id, part, lowered);
                self.assign(id, part, value)
            }
            Meaning::Signal(id) => {
                let signal = &self.module.signals[id];
                let checks = self.quiet || self.is_of_a_check(id);
                let quiet = std::mem::replace(&mut self.quiet, checks);
                let lowered = self.expression(value, Some(signal.ty));
                self.quiet = quiet;
                let lowered = lowered?;
                fits(signal.ty.width, &lowered)?;
                if signal.is_clock() && !self.is_clock(&lowered) {
                    return Err(Reason::DerivedClock);
                }
                let value = match signal.is_clock() || checks {
                    true => lowered,
                    false => self.enabled(value, id, None, lowered),
                };
                // x = x.replace_bit(i, v) assigns one bit.
                if let Node::ReplaceBit(base, index, bit) = &value.node
                    && let (Node::Variable(v), Node::Literal(i, _)) = (&base.node, &index.node)
                    && self.current.get(&id) == Some(v)
                {
                    let offset = usize::try_from(i).expect("checked against the width");
                    let part = Part { offset, width: 1 };
                    return self.assign(id, Some(part), (**bit).clone());
                }
                self.assign(id, None, value)
            }
        }
    }

    pub(super) fn assign(
        &mut self,
        id: SignalId,
        part: Option<Part>,
        value: Expr,
    ) -> Lowered<Stmt> {
        let signal = &self.module.signals[id];
        let whole = Part {
            offset: 0,
            width: signal.ty.width,
        };
        let part = part.filter(|p| *p != whole);
        if !matches!(signal.role, Role::Output | Role::Local | Role::ChildInput) {
            return Err(Reason::NotAssignable(signal.path.replace('$', ".")));
        }
        if self.depth > 0 && signal.is_clock() {
            return Err(Reason::DerivedClock);
        }
        let fresh = part.is_none() && self.depth == 0;
        let variable = match self.current.get(&id) {
            Some(v) if !fresh => *v,
            _ => {
                let version = self.versions.entry(id).or_default();
                *version += 1;
                self.variables.push(Variable {
                    signal: id,
                    version: *version,
                    last: 0,
                    assignments: 0,
                });
                self.current.insert(id, self.variables.len() - 1);
                self.variables.len() - 1
            }
        };
        if part.is_some() && !self.assigned.contains(&variable) {
            return Err(Reason::PartBeforeWhole);
        }
        self.assigned.insert(variable);
        if let Some(place) = &self.place {
            self.places.entry(id).or_insert_with(|| place.clone());
        }
        self.at += 1;
        self.variables[variable].last = self.at;
        self.variables[variable].assignments += 1;
        Ok(Stmt::Assign {
            variable,
            part,
            value,
            at: self.at,
        })
    }

    /// Whether a signal is an input of a check.
    fn is_of_a_check(&self, id: SignalId) -> bool {
        let path = &self.module.signals[id].path;
        let owner = path.rsplit_once('$').map_or("", |(owner, _)| owner);
        let mut checks = self.module.children.iter().filter(|child| child.check);
        checks.any(|child| child.path == owner)
    }

    /// Whether a value is a clock as it stands.
    fn is_clock(&self, value: &Expr) -> bool {
        match value.node {
            Node::Signal(id) => self.module.signals[id].is_clock(),
            Node::Variable(v) => self.module.signals[self.variables[v].signal].is_clock(),
            _ => false,
        }
    }
}
