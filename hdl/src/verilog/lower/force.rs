//! [Breaks](crate::verilog::Break) force signals: whatever reads one reads another variable, which has what is forced.

use super::{Lowered, Lowering, fits};
use crate::verilog::breaks;
use crate::verilog::collect::Role;
use crate::verilog::error::Reason;
use crate::verilog::ir::{Expr, Node, Part, SignalId, Stmt, Variable, each_expression};
use crate::verilog::path::Meaning;
use crate::verilog::types::Type;
use rust_hdl::prelude::ast::VerilogExpression as Ast;

impl Lowering<'_> {
    /// Connects the input that picks to the children that have it, and forces what breaks force.
    pub(super) fn pick_and_force(&mut self, body: &mut Vec<Stmt>) -> Lowered<()> {
        let module = self.module;
        let Some(pick) = module.pick else {
            return Ok(());
        };
        self.quiet = true;
        for child in &module.picking {
            let value = Expr::new(Node::Signal(pick), module.signals[pick].ty);
            let statement = self.assign(*child, None, value)?;
            body.push(statement);
        }
        // All values are of the sound signals, so that one break may force two that depend on each other.
        let mut targets: Vec<(SignalId, usize, Vec<Stmt>)> = vec![];
        for (n, forced) in module.forces.iter().enumerate() {
            self.forcing = Some(n);
            self.focus = Some(forced.signal.clone());
            let value = breaks::parse(&forced.value)?;
            let Ast::Signal(name) = self.dotted(breaks::parse(&forced.signal)?) else {
                return Err(Reason::UnknownName(forced.signal.clone()));
            };
            let (id, part, ty) = match self.resolve(&name)? {
                Meaning::Signal(id) => (id, None, module.signals[id].ty),
                Meaning::Field(id, offset, ty) => {
                    let width = ty.width;
                    (id, Some(Part { offset, width }), ty)
                }
                Meaning::Variant(..) => return Err(Reason::UnknownName(forced.signal.clone())),
            };
            let value = self.expression(&self.dotted(value), Some(ty))?;
            fits(ty.width, &value)?;
            // The variable is filled in below. No order among statements: see `module::body`.
            let assign = Stmt::Assign {
                variable: usize::MAX,
                part,
                value,
                at: usize::MAX,
            };
            let mut test = self.picked(pick, forced.number);
            if let Some(when) = &forced.when {
                let when = self.dotted(breaks::parse(when)?);
                let when = self.expression(&when, Some(Type::BIT))?;
                fits(1, &when)?;
                test = Expr::new(
                    Node::Compare("&&", Box::new(test), Box::new(when)),
                    Type::BIT,
                );
            }
            let statement = Stmt::If {
                test,
                then: vec![assign],
                otherwise: vec![],
                at: usize::MAX,
            };
            match targets.iter_mut().find(|target| target.0 == id) {
                Some((.., statements)) => statements.push(statement),
                None => targets.push((id, n, vec![statement])),
            }
        }
        let mut forced = vec![];
        for (id, first, statements) in targets {
            self.forcing = Some(first);
            self.focus = Some(module.signals[id].path.replace('$', "."));
            forced.extend(self.force(body, id, statements)?);
        }
        body.extend(forced);
        Ok(())
    }

    /// Makes all that read the signal read another variable, and returns the statements that assign it: what the
    /// signal has, and then what each of `statements` forces.
    fn force(
        &mut self,
        body: &mut [Stmt],
        id: SignalId,
        statements: Vec<Stmt>,
    ) -> Lowered<Vec<Stmt>> {
        let ty = self.module.signals[id].ty;
        let sound = match self.module.signals[id].role {
            Role::Local | Role::Output | Role::ChildInput => {
                let current = self.current.get(&id).copied();
                let current = current.filter(|v| self.assigned.contains(v));
                Node::Variable(current.ok_or(Reason::NeverAssigned)?)
            }
            _ => Node::Signal(id),
        };
        let version = self.versions.entry(id).or_default();
        *version += 1;
        let forced = self.variables.len();
        self.variables.push(Variable {
            signal: id,
            version: *version,
            last: 0,
            assignments: 1 + statements.len(),
        });
        let mut early = false;
        let variables = &self.variables;
        each_expression(body, &mut |x, at, target| match (&x.node, &sound) {
            (Node::Signal(read), Node::Signal(_)) if *read == id => {
                x.node = Node::Variable(forced);
            }
            (Node::Variable(read), Node::Variable(v)) if variables[*read].signal == id => {
                if read == v && at > variables[*v].last {
                    x.node = Node::Variable(forced);
                } else {
                    // It may build on itself.
                    early |= target.is_none_or(|target| variables[target].signal != id);
                }
            }
            _ => {}
        });
        if early {
            return Err(Reason::ForcedEarly);
        }
        if let Node::Variable(_) = sound {
            self.current.insert(id, forced);
        }
        self.assigned.insert(forced);
        self.forced.push(forced);
        let mut all = vec![Stmt::Assign {
            variable: forced,
            part: None,
            value: Expr::new(sound, ty),
            at: usize::MAX,
        }];
        all.extend(statements.into_iter().map(|mut statement| {
            if let Stmt::If { then, .. } = &mut statement
                && let [Stmt::Assign { variable, .. }] = &mut then[..]
            {
                *variable = forced;
            }
            statement
        }));
        Ok(all)
    }

    /// The expression with `val()` between signals and their fields: the longest beginning of a name that is a signal is
    /// one, and the rest are fields.
    fn dotted(&self, x: Ast) -> Ast {
        let inner = |a: Box<Ast>| Box::new(self.dotted(*a));
        match x {
            Ast::Signal(name) => {
                let mut at = name.len();
                while self.names.signal(&name[..at]).is_none() {
                    match name[..at].rfind('$') {
                        Some(shorter) => at = shorter,
                        None => return Ast::Signal(name),
                    }
                }
                Ast::Signal(match name.get(at + 1..) {
                    None => name,
                    Some(fields) => format!("{}$val()${fields}", &name[..at]),
                })
            }
            Ast::Paren(a) => Ast::Paren(inner(a)),
            Ast::Cast(a, width) => Ast::Cast(inner(a), width),
            Ast::Unary(op, a) => Ast::Unary(op, inner(a)),
            Ast::Binary(a, op, b) => Ast::Binary(inner(a), op, inner(b)),
            Ast::Index(a, at) => Ast::Index(inner(a), inner(at)),
            Ast::Slice(a, width, at) => Ast::Slice(inner(a), width, inner(at)),
            Ast::IndexReplace(a, at, bit) => Ast::IndexReplace(inner(a), inner(at), inner(bit)),
            other => other,
        }
    }
}
