//! Expressions and statements as SystemVerilog text.
//!
//! Four rules keep the text's meaning equal to the program's. The self-determined width of every
//! printed expression is the width of its type, so no context can widen it. Every operator is in
//! parentheses. Every printed expression is unsigned: a sign is put on with `$signed` where it
//! decides something, and taken off again. Extension is written out.
//!
//! A cast is in parentheses too, though `~8'(x)` is right: yosys takes it for `(~8)'(x)`.

use super::collect::{Module, Role};
use super::ir::{Expr, Kernel, Name, Node, Part, SignalId, Stmt, VariableId};
use super::package::Package;
use super::process::Plan;
use super::types::clog2;
use num_bigint::{BigInt, Sign};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

/// Where the constants of a kernel are declared.
pub(crate) struct Constants<'a> {
    pub(crate) package: &'a Package,
    /// Names of those that are the module's own, by their path in the kernel.
    pub(crate) own: BTreeMap<String, String>,
}

pub(crate) struct Printer<'a> {
    module: &'a Module,
    kernel: &'a Kernel,
    copies: &'a HashMap<VariableId, Expr>,
    names: HashMap<VariableId, String>,
    constants: Constants<'a>,
    /// Bits of each printed name that some text reads.
    read: RefCell<HashMap<String, Vec<bool>>>,
}

/// ` [7:0]`, or nothing for one bit.
pub(crate) fn range(width: usize) -> String {
    if width == 1 {
        String::new()
    } else {
        format!(" [{}:0]", width - 1)
    }
}

/// A sized constant; a negative one as its two's complement.
pub(crate) fn number(value: &BigInt, width: usize) -> String {
    let value = if value.sign() == Sign::Minus {
        value + (BigInt::from(1) << width)
    } else {
        value.clone()
    };
    if width <= 16 {
        format!("{width}'d{value}")
    } else {
        format!("{width}'h{value:x}")
    }
}

impl<'a> Printer<'a> {
    /// `names` holds those of intermediate versions; final ones have their signal's.
    pub(crate) fn new(
        module: &'a Module,
        kernel: &'a Kernel,
        plan: &'a Plan,
        names: HashMap<VariableId, String>,
        constants: Constants<'a>,
    ) -> Self {
        Printer {
            module,
            kernel,
            copies: &plan.copies,
            names,
            constants,
            read: RefCell::default(),
        }
    }

    fn note(&self, name: &str, total: usize, offset: usize, width: usize) {
        let mut read = self.read.borrow_mut();
        let bits = read
            .entry(name.to_string())
            .or_insert_with(|| vec![false; total]);
        bits[offset..offset + width].fill(true);
    }

    /// Whether the text printed so far reads every bit of `name`.
    pub(crate) fn is_read(&self, name: &str) -> bool {
        self.read
            .borrow()
            .get(name)
            .is_some_and(|bits| bits.iter().all(|b| *b))
    }

    /// Whether the text printed so far reads some of `name`.
    pub(crate) fn is_mentioned(&self, name: &str) -> bool {
        self.read.borrow().contains_key(name)
    }

    pub(crate) fn variable(&self, v: VariableId) -> String {
        match self.names.get(&v) {
            Some(name) => name.clone(),
            None => self.module.signals[self.kernel.variables[v].signal]
                .name
                .clone(),
        }
    }

    /// Text of a signal as others connect to it.
    pub(crate) fn signal(&self, id: SignalId) -> String {
        let ty = self.module.signals[id].ty;
        let node = match self.kernel.last.get(&id) {
            Some(v) => Node::Variable(*v),
            None => Node::Signal(id),
        };
        self.expression(&Expr::new(node, ty))
    }

    pub(crate) fn expression(&self, x: &Expr) -> String {
        let width = x.ty.width;
        match &x.node {
            Node::Signal(id) => {
                let name = &self.module.signals[*id].name;
                self.note(name, width, 0, width);
                name.clone()
            }
            Node::Variable(v) => match self.copies.get(v) {
                Some(copy) => self.expression(copy),
                None => {
                    let name = self.variable(*v);
                    self.note(&name, width, 0, width);
                    name
                }
            },
            Node::Literal(value, None) => number(value, width),
            Node::Literal(_, Some(Name::Constant(path))) => self.constant(path, width),
            Node::Extend(a) if a.ty.signed => {
                format!("$unsigned({width}'($signed({})))", self.expression(a))
            }
            Node::Extend(a) => format!(
                "{{{}, {}}}",
                number(&BigInt::from(0), width - a.ty.width),
                self.expression(a)
            ),
            Node::Truncate(a) => self.part(a, 0, width),
            Node::Slice(a, offset) => self.part(a, *offset, width),
            Node::ShiftRight(a, by) => {
                format!("({} >> {})", self.expression(a), self.amount(by))
            }
            Node::Select(a, index) => self.select(a, index),
            Node::Binary("<<", a, by) => {
                format!("({} << {})", self.expression(a), self.amount(by))
            }
            Node::Binary(op, a, b) => {
                format!("({} {op} {})", self.expression(a), self.expression(b))
            }
            Node::Compare(op, a, b) if a.ty.signed && op.starts_with(['<', '>']) => format!(
                "($signed({}) {op} $signed({}))",
                self.expression(a),
                self.expression(b)
            ),
            Node::Compare(op, a, b) => {
                format!("({} {op} {})", self.expression(a), self.expression(b))
            }
            Node::Multiply(a, b) => {
                let wide = |a: &Expr| self.expression(&a.clone().resize(width, a.ty.signed));
                format!("({} * {})", wide(a), wide(b))
            }
            Node::Unary(op, a) => format!("({op}{})", self.expression(a)),
            Node::Choose(test, a, b) => format!(
                "({} ? {} : {})",
                self.expression(test),
                self.expression(a),
                self.expression(b)
            ),
            Node::ReplaceBit(a, index, value) => {
                let index = self.amount(index);
                format!(
                    "(({} & (~({} << {index}))) | ({} << {index}))",
                    self.expression(a),
                    number(&BigInt::from(1), width),
                    self.expression(&(**value).clone().resize(width, false))
                )
            }
        }
    }

    /// A constant of the source, in `width` bits.
    fn constant(&self, path: &str, width: usize) -> String {
        let own = self.module.constants[path].width;
        let name = match self.constants.own.get(path) {
            Some(name) => {
                self.note(name, own, 0, own);
                name.clone()
            }
            None => self.constants.package.constant(path),
        };
        if own == width {
            name
        } else {
            format!("({width}'({name}))")
        }
    }

    /// A shift amount, which is self-determined and may be unsized.
    fn amount(&self, by: &Expr) -> String {
        match &by.node {
            Node::Literal(value, _) => value.to_string(),
            _ => self.expression(by),
        }
    }

    fn select(&self, a: &Expr, index: &Expr) -> String {
        if a.ty.width == 1 {
            return self.expression(a);
        }
        match self.selectable(a) {
            Some((name, total)) => {
                self.note(&name, total, 0, total);
                let index = index.clone().resize(clog2(a.ty.width), false);
                format!("{name}[{}]", self.expression(&index))
            }
            None => format!("(1'({} >> {}))", self.expression(a), self.amount(index)),
        }
    }

    /// Name and width of an expression that Verilog can select from.
    fn selectable(&self, a: &Expr) -> Option<(String, usize)> {
        match &a.node {
            Node::Signal(id) if self.module.signals[*id].role != Role::Constant => {
                Some((self.module.signals[*id].name.clone(), a.ty.width))
            }
            Node::Variable(v) => match self.copies.get(v) {
                Some(copy) => self.selectable(copy),
                None => Some((self.variable(*v), a.ty.width)),
            },
            _ => None,
        }
    }

    fn part(&self, a: &Expr, offset: usize, width: usize) -> String {
        if a.ty.width == width {
            return self.expression(a);
        }
        if let Node::Slice(inner, more) = &a.node {
            return self.part(inner, offset + more, width);
        }
        match self.selectable(a) {
            Some((name, total)) => {
                self.note(&name, total, offset, width);
                format!("{name}{}", bits(Part { offset, width }))
            }
            None if offset == 0 => format!("({width}'({}))", self.expression(a)),
            None => format!("({width}'({} >> {offset}))", self.expression(a)),
        }
    }

    /// Prints the statements that assign a variable which `keep` accepts.
    pub(crate) fn statements(
        &self,
        body: &[Stmt],
        keep: &dyn Fn(VariableId) -> bool,
        indent: usize,
        out: &mut String,
    ) {
        let pad = "  ".repeat(indent);
        let inner = |body: &[Stmt], out: &mut String| self.statements(body, keep, indent + 1, out);
        for statement in body.iter().filter(|s| s.assigns(keep)) {
            match statement {
                Stmt::Assign {
                    variable,
                    part,
                    value,
                    ..
                } => {
                    let target = self.variable(*variable);
                    let part = part.map(bits).unwrap_or_default();
                    line(
                        out,
                        format_args!("{pad}{target}{part} = {};", self.expression(value)),
                    );
                }
                Stmt::If {
                    test,
                    then,
                    otherwise,
                    ..
                } => {
                    let test = self.expression(test);
                    let has_then = then.iter().any(|s| s.assigns(keep));
                    let has_otherwise = otherwise.iter().any(|s| s.assigns(keep));
                    if has_then {
                        line(out, format_args!("{pad}if ({test}) begin"));
                        inner(then, out);
                        if has_otherwise {
                            line(out, format_args!("{pad}end else begin"));
                        }
                    } else {
                        line(out, format_args!("{pad}if (~{test}) begin"));
                    }
                    inner(otherwise, out);
                    line(out, format_args!("{pad}end"));
                }
                Stmt::Case { test, arms, .. } => {
                    self.case(test, arms, keep, indent, out);
                }
            }
        }
    }

    /// The last arm is the default: Rust has checked that the arms are complete, and a `case`
    /// without a default would be a latch.
    fn case(
        &self,
        test: &Expr,
        arms: &[(Option<Expr>, Vec<Stmt>)],
        keep: &dyn Fn(VariableId) -> bool,
        indent: usize,
        out: &mut String,
    ) {
        let pad = "  ".repeat(indent);
        line(out, format_args!("{pad}case ({})", self.expression(test)));
        for (i, (value, body)) in arms.iter().enumerate() {
            let label = match value {
                Some(value) if i + 1 < arms.len() => self.expression(value),
                _ => "default".to_string(),
            };
            if body.iter().any(|s| s.assigns(keep)) {
                line(out, format_args!("{pad}  {label}: begin"));
                self.statements(body, keep, indent + 2, out);
                line(out, format_args!("{pad}  end"));
            } else {
                line(out, format_args!("{pad}  {label}: ;"));
            }
        }
        line(out, format_args!("{pad}endcase"));
    }
}

fn bits(part: Part) -> String {
    if part.width == 1 {
        format!("[{}]", part.offset)
    } else {
        format!("[{}:{}]", part.offset + part.width - 1, part.offset)
    }
}

/// Appends a line. Writing to a `String` can't fail.
pub(crate) fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a String takes every write");
    out.push('\n');
}
