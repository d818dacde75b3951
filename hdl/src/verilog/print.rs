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
use super::package::{Package, Shape, TypeId};
use super::process::Plan;
use super::text::{line, number, range};
use super::types::clog2;
use num_bigint::BigInt;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

/// What a module's signals and constants are called, and where that is declared.
pub(crate) struct Names<'a> {
    pub(crate) package: &'a Package,
    /// Type of each signal that is printed with one; the others are vectors.
    pub(crate) types: Vec<Option<TypeId>>,
    /// Names of variables that are intermediate versions; final ones have their signal's.
    pub(crate) versions: HashMap<VariableId, String>,
    /// Names of constants that are the module's own, by their path in the kernel.
    pub(crate) constants: BTreeMap<String, String>,
}

/// Bits of something that has a name.
struct Place {
    name: String,
    /// Width and type of the whole.
    width: usize,
    ty: Option<TypeId>,
    part: Part,
}

impl Place {
    /// `width` bits from `offset` on, if there are as many.
    fn narrowed(mut self, offset: usize, width: usize) -> Option<Place> {
        let within = offset + width <= self.part.width;
        self.part.offset += offset;
        self.part.width = width;
        within.then_some(self)
    }
}

pub(crate) struct Printer<'a> {
    module: &'a Module,
    kernel: &'a Kernel,
    copies: &'a HashMap<VariableId, Expr>,
    names: Names<'a>,
    /// Bits of each printed name that some text reads.
    read: RefCell<HashMap<String, Vec<bool>>>,
}

impl<'a> Printer<'a> {
    pub(crate) fn new(
        module: &'a Module,
        kernel: &'a Kernel,
        plan: &'a Plan,
        names: Names<'a>,
    ) -> Self {
        Printer {
            module,
            kernel,
            copies: &plan.copies,
            names,
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
        match self.names.versions.get(&v) {
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
        self.typed(&Expr::new(node, ty), self.names.types[id])
    }

    /// Type of a signal or a port in a declaration.
    pub(crate) fn declared(&self, id: SignalId) -> String {
        match self.names.types[id] {
            Some(ty) => self.names.package.ty(ty),
            None => format!("logic{}", range(self.module.signals[id].ty.width)),
        }
    }

    /// The same of an input, which is a net.
    pub(crate) fn declared_net(&self, id: SignalId) -> String {
        match self.names.types[id] {
            Some(ty) => format!("wire {}", self.names.package.ty(ty)),
            None => format!("wire{}", range(self.module.signals[id].ty.width)),
        }
    }

    /// A constant that the signal takes.
    pub(crate) fn value(&self, id: SignalId, value: &BigInt) -> String {
        let ty = self.module.signals[id].ty;
        self.typed(&Expr::literal(value.clone(), ty), self.names.types[id])
    }

    fn is_enum(&self, ty: TypeId) -> bool {
        matches!(self.names.package.shape(ty), Shape::Enum(_))
    }

    /// Text of `x` where something of type `ty` is expected: only an enum takes nothing else.
    fn typed(&self, x: &Expr, ty: Option<TypeId>) -> String {
        let Some(ty) = ty else {
            return self.expression(x);
        };
        let zero = BigInt::from(0);
        match &x.node {
            Node::Variable(v) if self.copies.contains_key(v) => {
                self.typed(&self.copies[v], Some(ty))
            }
            Node::Literal(value, _) if self.is_enum(ty) => {
                let variant = self.names.package.variant(ty, value);
                variant.unwrap_or_else(|| self.cast(ty, &number(value, x.ty.width)))
            }
            Node::Literal(value, None) if *value == zero => "'0".to_string(),
            _ if self.is_enum(ty) && self.enum_of(x) != Some(ty) => {
                self.cast(ty, &self.expression(x))
            }
            _ => self.expression(x),
        }
    }

    fn cast(&self, ty: TypeId, text: &str) -> String {
        format!("{}'({text})", self.names.package.ty(ty))
    }

    /// The enum that the text of `x` has for its type.
    fn enum_of(&self, x: &Expr) -> Option<TypeId> {
        let ty = match &x.node {
            Node::Literal(value, Some(Name::Variant(of))) => {
                let id = self.names.package.id(of)?;
                self.names.package.variant(id, value)?;
                id
            }
            Node::Choose(_, a, b) => {
                let ty = self.enum_of(a)?;
                (self.enum_of(b)? == ty).then_some(ty)?
            }
            _ => {
                let place = self.place(x)?;
                self.selection(&place)?.1?
            }
        };
        self.is_enum(ty).then_some(ty)
    }

    /// Where the bits of `x` are, if they are some of a signal.
    fn place(&self, x: &Expr) -> Option<Place> {
        let width = x.ty.width;
        let whole = |name: String, id: SignalId| Place {
            name,
            width,
            ty: self.names.types[id],
            part: Part { offset: 0, width },
        };
        match &x.node {
            Node::Signal(id) if self.module.signals[*id].role != Role::Constant => {
                Some(whole(self.module.signals[*id].name.clone(), *id))
            }
            Node::Variable(v) => match self.copies.get(v) {
                Some(copy) => self.place(copy),
                None => Some(whole(self.variable(*v), self.kernel.variables[*v].signal)),
            },
            Node::Slice(a, offset) => self.place(a)?.narrowed(*offset, width),
            Node::Truncate(a) => self.place(a)?.narrowed(0, width),
            _ => None,
        }
    }

    /// What is behind the name for a part of something, and the part's type. A part of several fields is one of the
    /// vector that the struct is; of an enum there are no parts.
    fn selection(&self, place: &Place) -> Option<(String, Option<TypeId>)> {
        let mut path = String::new();
        let (mut ty, mut width, mut part) = (place.ty, place.width, place.part);
        while part.width < width {
            match ty.map(|ty| self.names.package.shape(ty)) {
                Some(Shape::Struct(fields)) => {
                    let Some(field) = fields.iter().find(|field| field.part.holds(part)) else {
                        return Some((bits(place.part), None));
                    };
                    path += &format!(".{}", field.name);
                    ty = field.ty;
                    width = field.part.width;
                    part.offset -= field.part.offset;
                }
                Some(Shape::Enum(_)) if path.is_empty() => return None,
                Some(Shape::Enum(_)) => return Some((bits(place.part), None)),
                None => return Some((path + &bits(part), None)),
            }
        }
        Some((path, ty))
    }

    /// Name, selection and type of what an assignment changes.
    pub(crate) fn target(&self, v: VariableId, part: Option<Part>) -> (String, Option<TypeId>) {
        let id = self.kernel.variables[v].signal;
        let width = self.module.signals[id].ty.width;
        let place = Place {
            name: self.variable(v),
            width,
            ty: self.names.types[id],
            part: part.unwrap_or(Part { offset: 0, width }),
        };
        let (selection, ty) = self
            .selection(&place)
            .expect("an enum is assigned as a whole");
        (place.name + &selection, ty)
    }

    /// An assignment without its `;`.
    pub(crate) fn assignment(&self, v: VariableId, part: Option<Part>, value: &Expr) -> String {
        let (target, ty) = self.target(v, part);
        format!("{target} = {}", self.typed(value, ty))
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
            Node::Literal(value, Some(Name::Variant(of))) => {
                let package = self.names.package;
                let variant = package.id(of).and_then(|id| package.variant(id, value));
                variant.unwrap_or_else(|| number(value, width))
            }
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
        let name = match self.names.constants.get(path) {
            Some(name) => {
                self.note(name, own, 0, own);
                name.clone()
            }
            None => self.names.package.constant(path),
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
        match self.place(a) {
            Some(Place {
                name,
                width,
                ty: None,
                part,
            }) if part.width == width => {
                self.note(&name, width, 0, width);
                let index = index.clone().resize(clog2(width), false);
                format!("{name}[{}]", self.expression(&index))
            }
            _ => format!("(1'({} >> {}))", self.expression(a), self.amount(index)),
        }
    }

    fn part(&self, a: &Expr, offset: usize, width: usize) -> String {
        if a.ty.width == width {
            return self.expression(a);
        }
        if let Node::Slice(inner, more) = &a.node {
            return self.part(inner, offset + more, width);
        }
        let place = self.place(a).and_then(|a| a.narrowed(offset, width));
        match place.and_then(|place| Some((self.selection(&place)?.0, place))) {
            Some((
                selection,
                Place {
                    name, width, part, ..
                },
            )) => {
                self.note(&name, width, part.offset, part.width);
                name + &selection
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
                    let assignment = self.assignment(*variable, *part, value);
                    line(out, format_args!("{pad}{assignment};"));
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
            let value = value.as_ref().map(|value| self.expression(value));
            let (label, says) = match value {
                Some(value) if i + 1 < arms.len() => (value, String::new()),
                Some(value) => ("default".to_string(), format!(" // {value}")),
                None => ("default".to_string(), String::new()),
            };
            if body.iter().any(|s| s.assigns(keep)) {
                line(out, format_args!("{pad}  {label}: begin{says}"));
                self.statements(body, keep, indent + 2, out);
                line(out, format_args!("{pad}  end"));
            } else {
                line(out, format_args!("{pad}  {label}: ;{says}"));
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
