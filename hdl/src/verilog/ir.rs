//! The typed program that a kernel is lowered to, and printed from.
//!
//! Every expression carries its type, every assignment names a variable. A variable is one version
//! of a signal: each assignment of the whole signal outside a condition starts a new one, so that
//! what was read before keeps its meaning wherever it is printed. Statements are numbered in the
//! order of the source; the number says whether a read came before or after an assignment.

use super::types::Type;
use num_bigint::BigInt;
use rust_hdl::prelude::TypeDescriptor;
use std::rc::Rc;

/// Index of a signal in its module.
pub(crate) type SignalId = usize;
/// Index of a variable in its kernel.
pub(crate) type VariableId = usize;

/// What the source calls a constant.
#[derive(Clone, Debug)]
pub(crate) enum Name {
    /// A constant of the kernel, by its path there.
    Constant(Rc<str>),
    /// A variant of this enum.
    Variant(Rc<TypeDescriptor>),
}

#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub(crate) node: Node,
    pub(crate) ty: Type,
}

#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// An input, a constant or a child's output.
    Signal(SignalId),
    Variable(VariableId),
    /// A constant, and the name that the source has for it.
    Literal(BigInt, Option<Name>),
    /// Widens, with the sign if the operand has one.
    Extend(Box<Expr>),
    /// Keeps the low bits.
    Truncate(Box<Expr>),
    /// Keeps bits from a constant offset.
    Slice(Box<Expr>, usize),
    /// Logical shift right by an amount.
    ShiftRight(Box<Expr>, Box<Expr>),
    /// One bit at an index that varies.
    Select(Box<Expr>, Box<Expr>),
    /// `+ - & | ^ <<`: operands and result of one type (the shift's amount excepted).
    Binary(&'static str, Box<Expr>, Box<Expr>),
    /// Comparison or `&& ||`, to one bit.
    Compare(&'static str, Box<Expr>, Box<Expr>),
    /// To twice the width.
    Multiply(Box<Expr>, Box<Expr>),
    /// `~ -`, or the reductions `& | ^` to one bit.
    Unary(&'static str, Box<Expr>),
    /// The first with the bit at the second replaced by the third.
    ReplaceBit(Box<Expr>, Box<Expr>, Box<Expr>),
    /// The second if the first bit is set, else the third: of mutants.
    Choose(Box<Expr>, Box<Expr>, Box<Expr>),
}

impl Expr {
    pub(crate) fn new(node: Node, ty: Type) -> Expr {
        Expr { node, ty }
    }

    pub(crate) fn literal(value: impl Into<BigInt>, ty: Type) -> Expr {
        Expr::new(Node::Literal(value.into(), None), ty)
    }

    /// The same bits under another sign.
    pub(crate) fn with_sign(self, signed: bool) -> Expr {
        let ty = Type { signed, ..self.ty };
        if ty == self.ty {
            return self;
        }
        if let Node::Literal(..) = self.node {
            return self.resize_literal(ty);
        }
        // A full slice, so that what extends the value later sees the new sign and what is inside
        // keeps its own.
        Expr::new(Node::Slice(Box::new(self), 0), ty)
    }

    /// Widened by its own sign or truncated to `width`, and then of sign `signed`.
    pub(crate) fn resize(self, width: usize, signed: bool) -> Expr {
        let ty = Type { width, signed };
        if let Node::Literal(..) = self.node {
            return self.resize_literal(ty);
        }
        match width.cmp(&self.ty.width) {
            std::cmp::Ordering::Equal => self.with_sign(signed),
            std::cmp::Ordering::Less => Expr::new(Node::Truncate(Box::new(self)), ty),
            std::cmp::Ordering::Greater => Expr::new(Node::Extend(Box::new(self)), ty),
        }
    }

    /// The bits of a literal under another type, extended by the old type's sign.
    fn resize_literal(self, ty: Type) -> Expr {
        let Node::Literal(mut value, _) = self.node else {
            unreachable!("callers have looked");
        };
        let full = |width: usize| BigInt::from(1) << width;
        if self.ty.signed && value >= full(self.ty.width - 1) {
            value -= full(self.ty.width);
        }
        let modulus = full(ty.width);
        let bits = ((value % &modulus) + &modulus) % &modulus;
        Expr::literal(bits, ty)
    }

    /// The expression without mutants in it: where one is picked, no other is.
    pub(crate) fn unchosen(mut self) -> Expr {
        self.each(&mut |x| {
            while let Node::Choose(_, _, sound) = &mut x.node {
                *x = (**sound).clone();
            }
        });
        self
    }

    /// Calls `f` with the expression and each part of it.
    fn each(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        f(self);
        match &mut self.node {
            Node::Signal(_) | Node::Variable(_) | Node::Literal(..) => {}
            Node::Extend(a) | Node::Truncate(a) | Node::Slice(a, _) | Node::Unary(_, a) => {
                a.each(f);
            }
            Node::ShiftRight(a, b)
            | Node::Select(a, b)
            | Node::Binary(_, a, b)
            | Node::Compare(_, a, b)
            | Node::Multiply(a, b) => {
                a.each(f);
                b.each(f);
            }
            Node::ReplaceBit(a, b, c) | Node::Choose(a, b, c) => {
                a.each(f);
                b.each(f);
                c.each(f);
            }
        }
    }

    /// Calls `f` with each variable that the expression reads.
    pub(crate) fn variables(&self, f: &mut impl FnMut(VariableId)) {
        match &self.node {
            Node::Variable(v) => f(*v),
            Node::Signal(_) | Node::Literal(..) => {}
            Node::Extend(a) | Node::Truncate(a) | Node::Slice(a, _) | Node::Unary(_, a) => {
                a.variables(f);
            }
            Node::ShiftRight(a, b)
            | Node::Select(a, b)
            | Node::Binary(_, a, b)
            | Node::Compare(_, a, b)
            | Node::Multiply(a, b) => {
                a.variables(f);
                b.variables(f);
            }
            Node::ReplaceBit(a, b, c) | Node::Choose(a, b, c) => {
                a.variables(f);
                b.variables(f);
                c.variables(f);
            }
        }
    }
}

/// Calls `f` with each expression of the statements, parts of others included, with the number of its statement and the
/// variable that the statement assigns, if it is an assignment.
pub(crate) fn each_expression(
    body: &mut [Stmt],
    f: &mut dyn FnMut(&mut Expr, usize, Option<VariableId>),
) {
    for statement in body {
        match statement {
            Stmt::Assign {
                variable,
                value,
                at,
                ..
            } => value.each(&mut |x| f(x, *at, Some(*variable))),
            Stmt::If {
                test,
                then,
                otherwise,
                at,
            } => {
                test.each(&mut |x| f(x, *at, None));
                each_expression(then, f);
                each_expression(otherwise, f);
            }
            Stmt::Case { test, arms, at } => {
                test.each(&mut |x| f(x, *at, None));
                for (_, body) in arms {
                    each_expression(body, f);
                }
            }
        }
    }
}

/// Bits `offset..offset + width` of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) offset: usize,
    pub(crate) width: usize,
}

impl Part {
    /// Whether all of `other` is in it.
    pub(crate) fn holds(self, other: Part) -> bool {
        self.offset <= other.offset && other.offset + other.width <= self.offset + self.width
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Stmt {
    Assign {
        variable: VariableId,
        part: Option<Part>,
        value: Expr,
        at: usize,
    },
    If {
        test: Expr,
        then: Vec<Stmt>,
        otherwise: Vec<Stmt>,
        at: usize,
    },
    /// Arms in order; `None` is the default.
    Case {
        test: Expr,
        arms: Vec<(Option<Expr>, Vec<Stmt>)>,
        at: usize,
    },
}

impl Stmt {
    /// Whether the statement assigns a variable that `keep` accepts.
    pub(crate) fn assigns(&self, keep: &dyn Fn(VariableId) -> bool) -> bool {
        match self {
            Stmt::Assign { variable, .. } => keep(*variable),
            Stmt::If {
                then, otherwise, ..
            } => then.iter().chain(otherwise).any(|s| s.assigns(keep)),
            Stmt::Case { arms, .. } => arms
                .iter()
                .any(|(_, body)| body.iter().any(|s| s.assigns(keep))),
        }
    }
}

/// One version of a signal.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub(crate) signal: SignalId,
    pub(crate) version: usize,
    /// Number of the last statement that assigns it.
    pub(crate) last: usize,
    /// How many statements assign it.
    pub(crate) assignments: usize,
}

/// A lowered kernel.
#[derive(Debug, Default)]
pub(crate) struct Kernel {
    pub(crate) body: Vec<Stmt>,
    pub(crate) variables: Vec<Variable>,
    /// The version of each assigned signal that holds at the end.
    pub(crate) last: std::collections::BTreeMap<SignalId, VariableId>,
    /// Pairs of bidirectional signals that are one net.
    pub(crate) nets: Vec<(SignalId, SignalId)>,
    /// Variables that hold forced values.
    pub(crate) forced: Vec<VariableId>,
    /// Names of the places where a mutant can be, by site.
    pub(crate) sites: Vec<String>,
}
