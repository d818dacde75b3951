//! From rust-hdl's syntax tree of a kernel to the typed program.
//!
//! Rust has typed the kernel, and the tree has forgotten most of it. The types are inferred again,
//! by rust-hdl's own rules: operands of an operator have one type, an integer takes the other
//! operand's, `Mul` doubles the width, `bit_cast` states its own. Where the tree has kept too
//! little to be certain (`.index()`, `.to_bits()` and `.into()` leave no trace at all) the kernel
//! is refused. So is what Verilog would run in another way than Rust: latches, reads before
//! assignment, a child's input read back.

use super::breaks;
use super::collect::{Module, Role};
use super::error::{PLACE, PrintError, Reason};
use super::ir::{
    Expr, Kernel, Name, Node, Part, SignalId, Stmt, Variable, VariableId, each_expression,
};
use super::path::{Loops, Meaning, Names, constant_path, integer, loop_value};
use super::sites::{self, Kind, Sites};
use super::types::{Type, field_at, literal};
use num_bigint::BigInt;
use rust_hdl::prelude::TypeKind;
use rust_hdl::prelude::ast::{
    Verilog, VerilogBlockOrConditional as Otherwise, VerilogExpression as Ast, VerilogLink,
    VerilogOp as Op, VerilogOpUnary as UnaryOp, VerilogStatement as AstStmt,
};
use std::collections::{HashMap, HashSet};

type Lowered<T> = Result<T, Reason>;

/// Lowers the module's kernel and checks that it leaves nothing unassigned.
pub(crate) fn lower(module: &Module) -> Result<Kernel, PrintError> {
    let mut lowering = Lowering::new(module);
    let fail = |place: Option<&String>, signal: Option<String>, reason| PrintError {
        block: module.display_path(),
        place: place.map(|place| place.as_str().into()),
        signal: signal.map(String::into),
        reason,
    };
    let body = match &module.code {
        Verilog::Combinatorial(code) => lowering.block(code),
        _ => Ok(vec![]),
    };
    let mut body =
        body.map_err(|reason| fail(lowering.place.as_ref(), lowering.focus.clone(), reason))?;
    let forced = lowering.pick_and_force(&mut body);
    forced.map_err(|reason| fail(None, lowering.focus.clone(), reason))?;
    let kernel = lowering.finish(body);
    for (id, signal) in module.signals.iter().enumerate() {
        let place = lowering.places.get(&id).or(lowering.start.as_ref());
        let complain = |reason| Err(fail(place, Some(signal.path.replace('$', ".")), reason));
        match (kernel.last.get(&id), signal.role) {
            (Some(v), _) if !lowering.assigned.contains(v) => return complain(Reason::Latch),
            (None, Role::Output | Role::ChildInput) => {
                return complain(if matches!(module.code, Verilog::Combinatorial(_)) {
                    Reason::NeverAssigned
                } else {
                    Reason::NoKernel
                });
            }
            _ => {}
        }
    }
    Ok(kernel)
}

struct Lowering<'a> {
    module: &'a Module,
    names: Names<'a>,
    loops: Loops,
    variables: Vec<Variable>,
    versions: HashMap<SignalId, usize>,
    /// The version of each signal that holds here.
    current: HashMap<SignalId, VariableId>,
    /// Variables that every path to here has assigned.
    assigned: HashSet<VariableId>,
    nets: Vec<(SignalId, SignalId)>,
    /// How many conditions are around.
    depth: usize,
    /// Number of the statement.
    at: usize,
    /// The signal that an error is about.
    focus: Option<String>,
    /// Where in the source the kernel begins, and the statement stands, if the kernel says so.
    start: Option<String>,
    place: Option<String>,
    /// The first statement that assigns each signal.
    places: HashMap<SignalId, String>,
    /// Variables that hold forced values.
    forced: Vec<VariableId>,
    /// Where mutants can be.
    sites: Sites,
    /// No mutant can be here.
    quiet: bool,
}

impl<'a> Lowering<'a> {
    fn new(module: &'a Module) -> Self {
        Lowering {
            module,
            names: Names::new(module),
            loops: vec![],
            variables: vec![],
            versions: HashMap::new(),
            current: HashMap::new(),
            assigned: HashSet::new(),
            nets: vec![],
            depth: 0,
            at: 0,
            focus: None,
            start: None,
            place: None,
            places: HashMap::new(),
            forced: vec![],
            sites: Sites::default(),
            quiet: !module.mutable,
        }
    }

    fn finish(&mut self, body: Vec<Stmt>) -> Kernel {
        Kernel {
            body,
            variables: std::mem::take(&mut self.variables),
            last: self.current.drain().collect(),
            nets: std::mem::take(&mut self.nets),
            forced: std::mem::take(&mut self.forced),
            sites: std::mem::take(&mut self.sites.names),
        }
    }

    fn resolve(&self, name: &str) -> Lowered<Meaning> {
        self.names.resolve(name, &self.loops)
    }

    /// Makes `name` the signal that errors are about.
    fn look_at(&mut self, name: &str) {
        self.focus = Some(self.names.display(name, &self.loops));
    }

    /// Makes the first signal of `expression` the one that errors are about.
    fn look_into(&mut self, expression: &Ast) {
        if let Some(name) = first_signal(expression) {
            self.look_at(name);
        }
    }

    // ---- integers, which Rust computes before there is a circuit

    /// Value of an expression of integers and loop variables.
    fn constant(&self, x: &Ast) -> Option<BigInt> {
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
    fn constant_condition(&self, x: &Ast) -> Option<bool> {
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

    // ---- types

    /// Type of the field that a slice stands for, if its base is a struct.
    fn field_type(&self, base: &Ast, offset: &Ast, width: usize) -> Option<Type> {
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
    fn type_of(&self, x: &Ast) -> Lowered<Option<Type>> {
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

    fn either(&self, a: &Ast, b: &Ast) -> Lowered<Option<Type>> {
        Ok(match self.type_of(a)? {
            Some(ty) => Some(ty),
            None => self.type_of(b)?,
        })
    }

    fn is_struct(&self, x: &Ast) -> bool {
        let Ast::Signal(name) = x else { return false };
        match self.resolve(name) {
            Ok(Meaning::Signal(id)) => matches!(
                self.module.signals[id].descriptor.kind,
                TypeKind::Composite(_)
            ),
            _ => false,
        }
    }

    // ---- expressions

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

    /// Lowers `x`; `want` is the type that an integer takes here.
    fn expression(&mut self, x: &Ast, want: Option<Type>) -> Lowered<Expr> {
        let sound = self.sound(x, want)?;
        if self.quiet {
            return Ok(sound);
        }
        Ok(match sites::alternative(x, &sound, self.module) {
            Some((what, other)) => self.choose(x, Kind::Value, &what, other, sound),
            None => sound,
        })
    }

    /// The value of a place where a mutant can be, which `place` is a part of the tree of.
    fn choose(&mut self, place: &Ast, kind: Kind, what: &str, other: Expr, sound: Expr) -> Expr {
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
    fn picked(&self, pick: SignalId, number: usize) -> Expr {
        let ty = self.module.signals[pick].ty;
        let pick = Expr::new(Node::Signal(pick), ty);
        let number = Expr::literal(number, ty);
        Expr::new(
            Node::Compare("==", Box::new(pick), Box::new(number)),
            Type::BIT,
        )
    }

    /// The value that an assignment under a condition makes; a mutant keeps what was.
    fn enabled(&mut self, place: &Ast, id: SignalId, part: Option<Part>, value: Expr) -> Expr {
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

    fn binary(&mut self, a: &Ast, op: &Op, b: &Ast, want: Option<Type>) -> Lowered<Expr> {
        let symbol = symbol(op);
        let same = |left: &Expr, right: &Expr| {
            if left.ty == right.ty {
                Ok(())
            } else {
                Err(Reason::OperandMismatch {
                    operator: symbol,
                    left: left.ty.to_string(),
                    right: right.ty.to_string(),
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

    // ---- statements

    fn assign(&mut self, id: SignalId, part: Option<Part>, value: Expr) -> Lowered<Stmt> {
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

    fn assign_to(&mut self, target: &Ast, value: &Ast) -> Lowered<Stmt> {
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

    fn block(&mut self, body: &[AstStmt]) -> Lowered<Vec<Stmt>> {
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
            AstStmt::Comment(text) => {
                if let Some(place) = text.strip_prefix(PLACE) {
                    self.start.get_or_insert_with(|| place.to_string());
                    self.place = Some(place.to_string());
                }
            }
            AstStmt::Macro(body) => out.extend(self.block(body)?),
            AstStmt::Assignment(target, value) => out.push(self.assign_to(target, value)?),
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

    /// Connects the input that picks to the children that have it, and forces what breaks force.
    fn pick_and_force(&mut self, body: &mut Vec<Stmt>) -> Lowered<()> {
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
        let mut targets: Vec<(SignalId, Vec<Stmt>)> = vec![];
        for forced in &module.forces {
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
                Some((_, statements)) => statements.push(statement),
                None => targets.push((id, vec![statement])),
            }
        }
        let mut forced = vec![];
        for (id, statements) in targets {
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

    /// Value of a pattern that is an integer or a constant of the source.
    fn number(&self, text: &str) -> Option<BigInt> {
        match constant_path(text) {
            Some(path) => Some(self.module.constants.get(path)?.value.clone()),
            None => integer(text),
        }
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

fn fits(target: usize, value: &Expr) -> Lowered<()> {
    if target == value.ty.width {
        Ok(())
    } else {
        Err(Reason::AssignmentMismatch {
            target,
            value: value.ty.width,
        })
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

/// The name of a constant that stands alone.
fn name_of(x: &Ast) -> Option<Name> {
    match x {
        Ast::Paren(a) => name_of(a),
        Ast::Signal(name) => Some(Name::Constant(constant_path(name)?.into())),
        _ => None,
    }
}

fn first_signal(x: &Ast) -> Option<&str> {
    match x {
        Ast::Signal(name) if constant_path(name).is_some() => None,
        Ast::Signal(name) => Some(name),
        Ast::Literal(_) => None,
        Ast::Cast(a, _)
        | Ast::Signed(a)
        | Ast::Unsigned(a)
        | Ast::Paren(a)
        | Ast::Unary(_, a)
        | Ast::Index(a, _)
        | Ast::Slice(a, _, _)
        | Ast::IndexReplace(a, _, _) => first_signal(a),
        Ast::Binary(a, _, b) => first_signal(a).or_else(|| first_signal(b)),
    }
}
