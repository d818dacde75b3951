//! Statements, and which variables every path through them has assigned.

use super::{Lowered, Lowering, fits};
use crate::verilog::error::{PLACE, Reason};
use crate::verilog::ir::{Expr, Name, Node, Part, Stmt, VariableId};
use crate::verilog::path::{Meaning, constant_path};
use crate::verilog::sites::{BLANK, Kind};
use crate::verilog::types::Type;
use rust_hdl::prelude::ast::{
    VerilogBlockOrConditional as Otherwise, VerilogExpression as Ast, VerilogLink,
    VerilogStatement as AstStmt,
};
use std::collections::HashSet;

impl Lowering<'_> {
    pub(super) fn block(&mut self, body: &[AstStmt]) -> Lowered<Vec<Stmt>> {
        let mut out = vec![];
        for statement in body {
            self.statement(statement, &mut out)?;
        }
        Ok(out)
    }

    fn statement(&mut self, statement: &AstStmt, out: &mut Vec<Stmt>) -> Lowered<()> {
        match statement {
            AstStmt::Comment(text) if text.starts_with("assert") => {
                self.focus = None;
                return Err(Reason::AssertInKernel);
            }
            AstStmt::Comment(text) if text == BLANK => self.blank = true,
            AstStmt::Comment(text) => {
                if let Some(place) = text.strip_prefix(PLACE) {
                    self.start.get_or_insert_with(|| place.to_string());
                    self.place = Some(place.to_string());
                }
            }
            AstStmt::Macro(body) => out.extend(self.block(body)?),
            AstStmt::Assignment(target, value) => {
                let quiet = self.quiet;
                self.quiet |= std::mem::take(&mut self.blank);
                out.push(self.assign_to(target, value)?);
                self.quiet = quiet;
            }
            AstStmt::SliceAssignment {
                base,
                width,
                offset,
                replacement,
            } => {
                let (Ast::Signal(name), Some(at)) = (base, self.constant(offset)) else {
                    return Err(Reason::Unsupported("this field".to_string()));
                };
                self.look_at(name);
                let Meaning::Signal(id) = self.resolve(name)? else {
                    return Err(Reason::Unsupported("this field".to_string()));
                };
                let ty = self
                    .field_type(base, offset, *width)
                    .unwrap_or(Type::unsigned(*width));
                let value = self.expression(replacement, Some(ty))?;
                fits(*width, &value)?;
                let part = Part {
                    offset: usize::try_from(&at).expect("rust-hdl computed it as a usize"),
                    width: *width,
                };
                let value = self.enabled(replacement, id, Some(part), value);
                out.push(self.assign(id, Some(part), value)?);
            }
            AstStmt::Loop(l) => {
                if self.names.signal(&l.index).is_some() {
                    self.focus = Some(l.index.clone());
                    return Err(Reason::LoopShadowsSignal(l.index.clone()));
                }
                for i in l.from.as_usize()..l.to.as_usize() {
                    self.loops.push((l.index.clone(), i.into()));
                    let body = self.block(&l.block)?;
                    out.extend(body);
                    self.loops.pop();
                }
            }
            AstStmt::If(c) => {
                let otherwise: &[AstStmt] = match &c.otherwise {
                    Otherwise::Block(body) => body,
                    Otherwise::Conditional(inner) => std::slice::from_ref(inner),
                    Otherwise::None => &[],
                };
                if let Some(truth) = self.constant_condition(&c.test) {
                    out.extend(self.block(if truth { &c.then } else { otherwise })?);
                    return Ok(());
                }
                self.look_into(&c.test);
                let test = self.expression(&c.test, Some(Type::BIT))?;
                fits(1, &test)?;
                let constant = |truth: u8| Expr::literal(truth, Type::BIT);
                let test = self.choose(&c.test, Kind::Never, "never", constant(0), test);
                let test = self.choose(&c.test, Kind::Always, "always", constant(1), test);
                self.at += 1;
                let at = self.at;
                let before = self.assigned.clone();
                let (then, a) = self.branch(&c.then, &before)?;
                let (otherwise, b) = self.branch(otherwise, &before)?;
                self.assigned = a.intersection(&b).copied().collect();
                out.push(Stmt::If {
                    test,
                    then,
                    otherwise,
                    at,
                });
            }
            AstStmt::Match(m) => {
                if let Some(value) = self.constant(&m.test) {
                    let arm = m.cases.iter().find(|case| {
                        case.condition == "default"
                            || self.number(&case.condition).is_some_and(|p| p == value)
                    });
                    if let Some(arm) = arm {
                        out.extend(self.block(&arm.block)?);
                    }
                    return Ok(());
                }
                self.look_into(&m.test);
                let test = self.expression(&m.test, None)?;
                self.at += 1;
                let at = self.at;
                let before = self.assigned.clone();
                let mut arms = vec![];
                let mut after: Option<HashSet<VariableId>> = None;
                for case in &m.cases {
                    let pattern = self.pattern(&case.condition, test.ty)?;
                    let last = pattern.is_none();
                    let (body, assigned) = self.branch(&case.block, &before)?;
                    after = Some(match after {
                        Some(so_far) => so_far.intersection(&assigned).copied().collect(),
                        None => assigned,
                    });
                    arms.push((pattern, body));
                    if last {
                        break;
                    }
                }
                self.assigned = after.unwrap_or(before);
                out.push(Stmt::Case { test, arms, at });
            }
            AstStmt::Link(links) => {
                // Its expressions are made here, and have no place in the tree.
                let quiet = std::mem::replace(&mut self.quiet, true);
                for link in links {
                    self.link(link, out)?;
                }
                self.quiet = quiet;
            }
        }
        Ok(())
    }

    fn branch(
        &mut self,
        body: &[AstStmt],
        before: &HashSet<VariableId>,
    ) -> Lowered<(Vec<Stmt>, HashSet<VariableId>)> {
        self.assigned.clone_from(before);
        self.depth += 1;
        let body = self.block(body)?;
        self.depth -= 1;
        Ok((body, std::mem::take(&mut self.assigned)))
    }

    /// Value of a pattern; `None` for the default.
    fn pattern(&self, text: &str, ty: Type) -> Lowered<Option<Expr>> {
        let mut name = None;
        let value = match text {
            "default" => return Ok(None),
            "true" => 1.into(),
            "false" => 0.into(),
            _ => match self.number(text) {
                Some(value) => {
                    name = constant_path(text).map(|path| Name::Constant(path.into()));
                    value
                }
                None => match self.resolve(text) {
                    Ok(Meaning::Variant(value, width, of)) if width == ty.width => {
                        name = Some(Name::Variant(of));
                        value
                    }
                    Err(Reason::AmbiguousVariant(name)) => {
                        return Err(Reason::AmbiguousVariant(name));
                    }
                    _ => return Err(Reason::Pattern(text.replace('$', "::"))),
                },
            },
        };
        if ty.holds(&value) {
            Ok(Some(Expr::new(Node::Literal(value, name), ty)))
        } else {
            Err(Reason::ConstantTooWide {
                value: value.to_string(),
                width: ty.width,
            })
        }
    }

    fn link(&mut self, link: &VerilogLink, out: &mut Vec<Stmt>) -> Lowered<()> {
        let details = match link {
            VerilogLink::Forward(d) | VerilogLink::Backward(d) | VerilogLink::Bidirectional(d) => d,
        };
        let full = |owner: &str| {
            let inner = details.my_name.trim_start_matches('.');
            Ast::Signal(if inner.is_empty() {
                owner.to_string()
            } else {
                format!("{owner}${inner}")
            })
        };
        let (own, other) = (full(&details.owner_name), full(&details.other_name));
        if self.depth > 0 {
            self.look_into(&own);
            return Err(Reason::ConditionalLink);
        }
        match link {
            VerilogLink::Forward(_) => out.push(self.assign_to(&other, &own)?),
            VerilogLink::Backward(_) => out.push(self.assign_to(&own, &other)?),
            VerilogLink::Bidirectional(_) => {
                let (Ast::Signal(a), Ast::Signal(b)) = (&own, &other) else {
                    unreachable!("both were built as signals above");
                };
                self.look_at(a);
                match (self.resolve(a)?, self.resolve(b)?) {
                    (Meaning::Signal(a), Meaning::Signal(b)) => self.nets.push((a, b)),
                    _ => return Err(Reason::Unsupported("a link of a field".to_string())),
                }
            }
        }
        Ok(())
    }
}
