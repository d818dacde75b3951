//! The type that an expression has of itself, by rust-hdl's rules.

use super::{Lowered, Lowering};
use crate::verilog::path::Meaning;
use crate::verilog::types::{Type, field_at};
use rust_hdl::prelude::TypeKind;
use rust_hdl::prelude::ast::{
    VerilogExpression as Ast, VerilogOp as Op, VerilogOpUnary as UnaryOp,
};

impl Lowering<'_> {
    /// Type of the field that a slice stands for, if its base is a struct.
    pub(super) fn field_type(&self, base: &Ast, offset: &Ast, width: usize) -> Option<Type> {
        let (Ast::Signal(name), Some(offset)) = (base, self.constant(offset)) else {
            return None;
        };
        let Ok(Meaning::Signal(id)) = self.resolve(name) else {
            return None;
        };
        field_at(&self.module.signals[id].descriptor, &offset, width)
    }

    /// Type that the expression has of itself. `None` for those that take it from around them:
    /// integers, and `signed_bit_cast`, whose width the tree doesn't keep.
    pub(super) fn type_of(&self, x: &Ast) -> Lowered<Option<Type>> {
        if self.constant(x).is_some() {
            return Ok(None);
        }
        Ok(match x {
            Ast::Literal(_) => Some(Type::BIT),
            Ast::Signal(name) => Some(match self.resolve(name)? {
                Meaning::Signal(id) => self.module.signals[id].ty,
                Meaning::Field(_, _, ty) => ty,
                Meaning::Variant(_, width, _) => Type::unsigned(width),
            }),
            Ast::Paren(a) => self.type_of(a)?,
            Ast::Cast(_, width) => Some(Type::unsigned(*width)),
            Ast::Signed(a) => self
                .type_of(a)?
                .filter(|t| !t.signed)
                .map(|t| Type::signed(t.width)),
            Ast::Unsigned(a) => self.type_of(a)?.map(|t| Type::unsigned(t.width)),
            Ast::Binary(a, op, b) => match op {
                Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge => Some(Type::BIT),
                Op::LogicalAnd | Op::LogicalOr => Some(Type::BIT),
                // An integer shifted by a signal is a Bits<64>.
                Op::Shl | Op::Shr => match self.type_of(a)? {
                    None if self.constant(a).is_some() => Some(Type::unsigned(64)),
                    other => other,
                },
                Op::Mul => self.either(a, b)?.map(|t| Type {
                    width: 2 * t.width,
                    ..t
                }),
                _ => self.either(a, b)?,
            },
            Ast::Unary(UnaryOp::Not | UnaryOp::Neg, a) => self.type_of(a)?,
            Ast::Unary(..) | Ast::Index(..) => Some(Type::BIT),
            Ast::Slice(a, width, offset) => match self.field_type(a, offset, *width) {
                Some(ty) => Some(ty),
                None => Some(Type {
                    width: *width,
                    signed: self.type_of(a)?.is_some_and(|t| t.signed),
                }),
            },
            Ast::IndexReplace(a, _, _) => self.type_of(a)?,
        })
    }

    pub(super) fn either(&self, a: &Ast, b: &Ast) -> Lowered<Option<Type>> {
        Ok(match self.type_of(a)? {
            Some(ty) => Some(ty),
            None => self.type_of(b)?,
        })
    }

    pub(super) fn is_struct(&self, x: &Ast) -> bool {
        let Ast::Signal(name) = x else { return false };
        match self.resolve(name) {
            Ok(Meaning::Signal(id)) => matches!(
                self.module.signals[id].descriptor.kind,
                TypeKind::Composite(_)
            ),
            _ => false,
        }
    }
}
