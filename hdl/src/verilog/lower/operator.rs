//! Operators of two operands, whose types have to agree.

use super::{Lowered, Lowering};
use crate::verilog::error::Reason;
use crate::verilog::ir::{Expr, Node};
use crate::verilog::types::Type;
use rust_hdl::prelude::ast::{VerilogExpression as Ast, VerilogOp as Op};

impl Lowering<'_> {
    pub(super) fn binary(
        &mut self,
        a: &Ast,
        op: &Op,
        b: &Ast,
        want: Option<Type>,
    ) -> Lowered<Expr> {
        let symbol = symbol(op);
        let same = |left: &Expr, right: &Expr| {
            if left.ty == right.ty {
                Ok(())
            } else {
                Err(Reason::OperandMismatch {
                    operator: symbol,
                    left: left.ty.to_string().into(),
                    right: right.ty.to_string().into(),
                })
            }
        };
        match op {
            Op::Shl | Op::Shr => {
                let left = match self.constant(a) {
                    Some(_) => self.expression(a, Some(Type::unsigned(64)))?,
                    None => self.expression(a, want)?,
                };
                if left.ty.signed {
                    return Err(Reason::SignedShift);
                }
                let right = match self.constant(b) {
                    Some(amount) if usize::try_from(&amount).is_ok_and(|n| n <= 1 << 20) => {
                        Expr::literal(amount, Type::unsigned(32))
                    }
                    Some(amount) => {
                        return Err(Reason::BitOutOfRange {
                            index: amount.to_string(),
                            width: left.ty.width,
                        });
                    }
                    None => self.expression(b, None)?,
                };
                if right.ty.signed {
                    return Err(Reason::SignedShift);
                }
                let ty = left.ty;
                let (left, right) = (Box::new(left), Box::new(right));
                let node = match op {
                    Op::Shr => Node::ShiftRight(left, right),
                    _ => Node::Binary(symbol, left, right),
                };
                Ok(Expr::new(node, ty))
            }
            Op::Eq
            | Op::Ne
            | Op::Lt
            | Op::Le
            | Op::Gt
            | Op::Ge
            | Op::LogicalAnd
            | Op::LogicalOr => {
                let whole = Ast::Binary(Box::new(a.clone()), op.clone(), Box::new(b.clone()));
                if let Some(truth) = self.constant_condition(&whole) {
                    return Ok(Expr::literal(u8::from(truth), Type::BIT));
                }
                let ordering = matches!(op, Op::Lt | Op::Le | Op::Gt | Op::Ge);
                if ordering && (self.is_struct(a) || self.is_struct(b)) {
                    return Err(Reason::StructOrdering);
                }
                self.comparison_stands_alone(a, symbol)?;
                self.comparison_stands_alone(b, symbol)?;
                let known = self.either(a, b)?;
                let (left, right) = (self.expression(a, known)?, self.expression(b, known)?);
                same(&left, &right)?;
                Ok(Expr::new(
                    Node::Compare(symbol, Box::new(left), Box::new(right)),
                    Type::BIT,
                ))
            }
            Op::Mul => {
                let known = self.either(a, b)?;
                let (left, right) = (self.expression(a, known)?, self.expression(b, known)?);
                same(&left, &right)?;
                let ty = Type {
                    width: 2 * left.ty.width,
                    ..left.ty
                };
                Ok(Expr::new(
                    Node::Multiply(Box::new(left), Box::new(right)),
                    ty,
                ))
            }
            Op::Add | Op::Sub | Op::BitAnd | Op::BitOr | Op::BitXor => {
                let ty = self.either(a, b)?.or(want);
                let (left, mut right) = (self.expression(a, ty)?, self.expression(b, ty)?);
                if matches!(op, Op::Add) && right.ty == Type::BIT {
                    right = right.resize(left.ty.width, left.ty.signed); // Bits<N> + bool
                }
                same(&left, &right)?;
                let ty = left.ty;
                Ok(Expr::new(
                    Node::Binary(symbol, Box::new(left), Box::new(right)),
                    ty,
                ))
            }
        }
    }

    /// Refuses `a & b == c` where `a` is a bit and `b` isn't: the operand of the comparison is `a & b`.
    fn comparison_stands_alone(&self, operand: &Ast, comparison: &'static str) -> Lowered<()> {
        let Ast::Binary(a, op @ (Op::BitAnd | Op::BitOr | Op::BitXor), b) = operand else {
            return Ok(());
        };
        match (self.type_of(a)?, self.type_of(b)?) {
            (Some(a), Some(b)) if a != b && (a == Type::BIT || b == Type::BIT) => {
                Err(Reason::ComparisonBeside {
                    operator: symbol(op),
                    comparison,
                })
            }
            _ => Ok(()),
        }
    }
}

fn symbol(op: &Op) -> &'static str {
    match op {
        Op::Add => "+",
        Op::Sub => "-",
        Op::Mul => "*",
        Op::LogicalAnd => "&&",
        Op::LogicalOr => "||",
        Op::BitXor => "^",
        Op::BitAnd => "&",
        Op::BitOr => "|",
        Op::Shl => "<<",
        Op::Shr => ">>",
        Op::Eq => "==",
        Op::Lt => "<",
        Op::Le => "<=",
        Op::Ne => "!=",
        Op::Ge => ">=",
        Op::Gt => ">",
    }
}
