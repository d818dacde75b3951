//! Expressions, with a type for each.

use super::{Lowered, Lowering};
use crate::verilog::collect::Role;
use crate::verilog::error::Reason;
use crate::verilog::ir::{Expr, Name, Node, SignalId};
use crate::verilog::path::{Meaning, constant_path};
use crate::verilog::sites::{self, Kind};
use crate::verilog::types::{Type, literal};
use rust_hdl::prelude::ast::{
    VerilogExpression as Ast, VerilogOp as Op, VerilogOpUnary as UnaryOp,
};

impl Lowering<'_> {
    /// Lowers `x`; `want` is the type that an integer takes here.
    pub(super) fn expression(&mut self, x: &Ast, want: Option<Type>) -> Lowered<Expr> {
        let sound = self.sound(x, want)?;
        if self.quiet {
            return Ok(sound);
        }
        Ok(match sites::alternative(x, &sound, self.module) {
            Some((what, other)) => self.choose(x, Kind::Value, &what, other, sound),
            None => sound,
        })
    }

    /// Lowers `x` as it is.
    fn sound(&mut self, x: &Ast, want: Option<Type>) -> Lowered<Expr> {
        if let Some(value) = self.constant(x) {
            let ty = want.ok_or(Reason::UnknownWidth("a constant here"))?;
            if !ty.holds(&value) {
                return Err(Reason::ConstantTooWide {
                    value: value.to_string(),
                    width: ty.width,
                });
            }
            return Ok(Expr::new(Node::Literal(value, name_of(x)), ty));
        }
        match x {
            Ast::Literal(l) => Ok(Expr::literal(literal(l).0, Type::BIT)),
            Ast::Signal(name) => match self.resolve(name)? {
                Meaning::Signal(id) => self.read(id),
                Meaning::Variant(value, width, of) => Ok(Expr::new(
                    Node::Literal(value, Some(Name::Variant(of))),
                    Type::unsigned(width),
                )),
                Meaning::Field(id, offset, ty) => {
                    let base = self.read(id)?;
                    Ok(Expr::new(Node::Slice(Box::new(base), offset), ty))
                }
            },
            Ast::Paren(a) => self.expression(a, want),
            Ast::Cast(a, width) => {
                if self.type_of(a)?.is_none() && self.constant(a).is_none() {
                    return Err(Reason::UnknownWidth("a signed_bit_cast inside bit_cast"));
                }
                let value = self.expression(a, Some(Type::unsigned(*width)))?;
                if value.ty.signed {
                    return Err(Reason::SignedBitCast);
                }
                Ok(value.resize(*width, false))
            }
            Ast::Signed(a) => match self.type_of(a)? {
                // signed_bit_cast: the width is the target's.
                Some(ty) if ty.signed => {
                    let width = want.ok_or(Reason::UnknownWidth("signed_bit_cast"))?.width;
                    Ok(self.expression(a, None)?.resize(width, true))
                }
                Some(_) => Ok(self.expression(a, None)?.with_sign(true)),
                None if self.constant(a).is_some() => {
                    self.expression(a, want.map(|t| Type::signed(t.width)))
                }
                None => Err(Reason::UnknownWidth("a signed_bit_cast inside a cast")),
            },
            Ast::Unsigned(a) => {
                if self.type_of(a)?.is_none() {
                    return Err(Reason::UnknownWidth("the operand of unsigned_cast"));
                }
                Ok(self.expression(a, None)?.with_sign(false))
            }
            Ast::Binary(a, op, b) => self.binary(a, op, b, want),
            Ast::Unary(op, a) => {
                let (symbol, reduces) = match op {
                    UnaryOp::Not => ("~", false),
                    UnaryOp::Neg => ("-", false),
                    UnaryOp::All => ("&", true),
                    UnaryOp::Any => ("|", true),
                    UnaryOp::Xor => ("^", true),
                };
                if let Some(truth) = self.constant_condition(x) {
                    return Ok(Expr::literal(u8::from(truth), Type::BIT));
                }
                if self.constant(a).is_some() {
                    return Err(Reason::ComplementOfInteger);
                }
                let value = self.expression(a, if reduces { None } else { want })?;
                let ty = if reduces { Type::BIT } else { value.ty };
                Ok(Expr::new(Node::Unary(symbol, Box::new(value)), ty))
            }
            Ast::Index(a, index) => {
                let base = self.expression(a, None)?;
                let index = self.index(index)?;
                select(base, index, Type::BIT)
            }
            Ast::Slice(a, width, offset) => {
                let field = self.field_type(a, offset, *width);
                let base = self.expression(a, None)?;
                let offset = self.index(offset)?;
                let signed = base.ty.signed;
                let ty = field.unwrap_or(Type {
                    width: *width,
                    signed,
                });
                select(base, offset, ty)
            }
            Ast::IndexReplace(a, index, value) => {
                let base = self.expression(a, want)?;
                let index = self.index(index)?;
                let value = self.expression(value, Some(Type::BIT))?;
                let ty = base.ty;
                if value.ty.width != 1 {
                    return Err(Reason::AssignmentMismatch {
                        target: 1,
                        value: value.ty.width,
                    });
                }
                if let Node::Literal(i, _) = &index.node
                    && !usize::try_from(i).is_ok_and(|i| i < ty.width)
                {
                    return Err(Reason::BitOutOfRange {
                        index: i.to_string(),
                        width: ty.width,
                    });
                }
                Ok(Expr::new(
                    Node::ReplaceBit(Box::new(base), Box::new(index), Box::new(value)),
                    ty,
                ))
            }
        }
    }

    fn read(&mut self, id: SignalId) -> Lowered<Expr> {
        let signal = &self.module.signals[id];
        let name = || signal.path.replace('$', ".");
        match signal.role {
            Role::Input | Role::ChildOutput | Role::Constant | Role::InOut => {
                Ok(Expr::new(Node::Signal(id), signal.ty))
            }
            Role::ChildInput | Role::ChildInOut => Err(Reason::ReadsChildInput(name())),
            Role::Local | Role::Output => match self.current.get(&id) {
                Some(v) if self.assigned.contains(v) => {
                    Ok(Expr::new(Node::Variable(*v), signal.ty))
                }
                _ => Err(Reason::ReadBeforeAssigned(name())),
            },
        }
    }

    /// A bit index or offset: a constant, or a value that is used as it is.
    fn index(&mut self, x: &Ast) -> Lowered<Expr> {
        fn arithmetic(x: &Ast) -> bool {
            match x {
                Ast::Paren(a) => arithmetic(a),
                Ast::Unary(UnaryOp::Not | UnaryOp::Neg, _) => true,
                Ast::Binary(_, Op::Add | Op::Sub | Op::Mul | Op::Shl, _) => true,
                Ast::Binary(a, _, b) => arithmetic(a) || arithmetic(b),
                _ => false,
            }
        }
        if let Some(value) = self.constant(x) {
            return Ok(Expr::literal(value, Type::unsigned(32)));
        }
        if arithmetic(x) {
            return Err(Reason::IndexArithmetic);
        }
        self.expression(x, None)
    }
}

/// `ty.width` bits of `base` from `index` on.
fn select(base: Expr, index: Expr, ty: Type) -> Lowered<Expr> {
    if ty.width == 0 {
        return Err(Reason::ZeroWidth);
    }
    if let Node::Literal(i, _) = &index.node {
        let width = base.ty.width;
        match usize::try_from(i) {
            Ok(i) if i + ty.width <= width => {
                return Ok(Expr::new(Node::Slice(Box::new(base), i), ty));
            }
            Ok(i) if i < width => {} // reads zeros beyond the top, as rust-hdl does
            _ => {
                return Err(Reason::BitOutOfRange {
                    index: i.to_string(),
                    width,
                });
            }
        }
    }
    if ty.width == 1 && matches!(base.node, Node::Signal(_) | Node::Variable(_)) {
        return Ok(Expr::new(Node::Select(Box::new(base), Box::new(index)), ty));
    }
    let whole = Type::unsigned(base.ty.width);
    let shifted = Expr::new(Node::ShiftRight(Box::new(base), Box::new(index)), whole);
    Ok(shifted.resize(ty.width, ty.signed))
}

/// The name of a constant that stands alone.
fn name_of(x: &Ast) -> Option<Name> {
    match x {
        Ast::Paren(a) => name_of(a),
        Ast::Signal(name) => Some(Name::Constant(constant_path(name)?.into())),
        _ => None,
    }
}
