//! Integers, which Rust computes before there is a circuit: literals, constants of the source, loop variables.

use super::Lowering;
use crate::verilog::path::{constant_path, integer, loop_value};
use crate::verilog::types::literal;
use num_bigint::BigInt;
use rust_hdl::prelude::ast::{
    VerilogExpression as Ast, VerilogOp as Op, VerilogOpUnary as UnaryOp,
};

impl Lowering<'_> {
    /// Value of an expression of integers and loop variables.
    pub(super) fn constant(&self, x: &Ast) -> Option<BigInt> {
        Some(match x {
            Ast::Literal(l) => match literal(l) {
                (_, 1) => return None, // a bool
                (value, _) => value,
            },
            Ast::Signal(name) => match constant_path(name) {
                Some(path) => self.module.constants.get(path)?.value.clone(),
                None => loop_value(&self.loops, name)?.clone(),
            },
            Ast::Paren(a) => self.constant(a)?,
            Ast::Unary(UnaryOp::Neg, a) => -self.constant(a)?,
            Ast::Binary(a, op, b) => {
                let (a, b) = (self.constant(a)?, self.constant(b)?);
                let amount = || usize::try_from(&b).ok().filter(|n| *n < 4096);
                match op {
                    Op::Add => a + b,
                    Op::Sub => a - b,
                    Op::Mul => a * b,
                    Op::BitAnd => a & b,
                    Op::BitOr => a | b,
                    Op::BitXor => a ^ b,
                    Op::Shl => a << amount()?,
                    Op::Shr => a >> amount()?,
                    _ => return None,
                }
            }
            _ => return None,
        })
    }

    /// Truth of a condition on integers and loop variables.
    pub(super) fn constant_condition(&self, x: &Ast) -> Option<bool> {
        match x {
            Ast::Paren(a) => self.constant_condition(a),
            Ast::Unary(UnaryOp::Not, a) => self.constant_condition(a).map(|v| !v),
            Ast::Binary(a, Op::LogicalAnd | Op::BitAnd, b) => {
                Some(self.constant_condition(a)? & self.constant_condition(b)?)
            }
            Ast::Binary(a, Op::LogicalOr | Op::BitOr, b) => {
                Some(self.constant_condition(a)? | self.constant_condition(b)?)
            }
            Ast::Binary(a, op, b) => {
                let (a, b) = (self.constant(a)?, self.constant(b)?);
                Some(match op {
                    Op::Eq => a == b,
                    Op::Ne => a != b,
                    Op::Lt => a < b,
                    Op::Le => a <= b,
                    Op::Gt => a > b,
                    Op::Ge => a >= b,
                    _ => return None,
                })
            }
            _ => None,
        }
    }

    /// Value of a pattern that is an integer or a constant of the source.
    pub(super) fn number(&self, text: &str) -> Option<BigInt> {
        match constant_path(text) {
            Some(path) => Some(self.module.constants.get(path)?.value.clone()),
            None => integer(text),
        }
    }
}
