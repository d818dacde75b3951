//! Rules for rust-hdl kernels that leave no trace in rust-hdl's syntax tree.
//!
//! `#[hdl_gen]` turns a kernel into a tree and drops some of what it says on the way. A printer
//! that starts from the tree can't tell `a.index() + b.index() > 200`, which is `usize` in Rust,
//! from a sum of eight bits; it never sees that a match arm had a guard. So these are found in the
//! source. The attributes `#[block]` and `#[module]` apply the rules when a block is compiled, and
//! [`check_file`] to a file as it stands.
//!
//! Refused in a kernel:
//! - `.index()` anywhere but as a plain bit index or as what a `match` looks at;
//! - guards of match arms, `..=` in loops, attributes on statements: the tree forgets them;
//! - calls of functions and methods that the tree takes for others by the start of their names;
//! - names that are neither signals (`self.…`), loop variables nor constants;
//! - `let`, `as`, `+=` and the like, and an `if` or a `match` that gives a value: the tree has none of them;
//! - a section that is called twice, or by anything but `update` itself.

mod keywords;

pub use keywords::is_keyword;

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Expr, Ident, Pat, Stmt};

/// A rule that is broken, and where.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The place in the source.
    pub span: Span,
    /// What is wrong, and what to write instead.
    pub message: String,
}

/// Looks at the body of one kernel, which may call its sections.
pub fn check_kernel(body: &syn::Block) -> Vec<Finding> {
    let mut kernel = Kernel::begin(body);
    let mut called: Vec<&Ident> = vec![];
    for statement in &body.stmts {
        let Some(section) = section_call(statement) else {
            kernel.visit_stmt(statement);
            continue;
        };
        if called.contains(&section) {
            let message = format!("the kernel has called its section `{section}` before");
            kernel.find(statement, message);
        }
        called.push(section);
    }
    kernel.findings
}

/// Looks at the body of one section of a kernel.
pub fn check_section(body: &syn::Block) -> Vec<Finding> {
    let mut section = Kernel::begin(body);
    section.visit_block(body);
    section.findings
}

/// The section that a statement of a kernel calls: `self.decide();`.
pub fn section_call(statement: &Stmt) -> Option<&Ident> {
    match statement {
        Stmt::Expr(Expr::MethodCall(call), Some(_)) => section_of(call),
        _ => None,
    }
}

fn section_of(call: &syn::ExprMethodCall) -> Option<&Ident> {
    let of_self = matches!(&*call.receiver, Expr::Path(path) if path.path.is_ident("self"));
    (of_self && call.args.is_empty() && call.turbofish.is_none()).then_some(&call.method)
}

#[derive(Default)]
struct Attributes(Vec<Finding>);

impl<'ast> Visit<'ast> for Attributes {
    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        self.0.push(Finding {
            span: attribute.span(),
            message: "an attribute in a kernel is lost on the way to Verilog".to_string(),
        });
    }
}

/// Looks at every kernel in the text of a file: functions with `#[hdl_gen]`, and under `#[block]` `update` and sections. Returns a
/// `line:column: message` for each finding.
pub fn check_file(text: &str) -> syn::Result<Vec<String>> {
    #[derive(Default)]
    struct File(Vec<Finding>);
    impl<'ast> Visit<'ast> for File {
        fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
            let functions = || {
                item.items.iter().filter_map(|member| match member {
                    syn::ImplItem::Fn(function) => Some(function),
                    _ => None,
                })
            };
            let in_block = item.attrs.iter().any(|a| a.path().is_ident("block"))
                && !functions().any(|f| f.sig.ident == "hdl");
            for f in functions() {
                if in_block && item.trait_.is_none() {
                    self.0.extend(check_section(&f.block));
                } else if is_kernel(&f.attrs) || in_block && f.sig.ident == "update" {
                    self.0.extend(check_kernel(&f.block));
                }
            }
        }
    }
    let mut file = File::default();
    file.visit_file(&syn::parse_file(text)?);
    Ok(file
        .0
        .iter()
        .map(|finding| {
            let at = finding.span.start();
            format!("{}:{}: {}", at.line, at.column + 1, finding.message)
        })
        .collect())
}

/// Looks for hand-written Verilog in the text of a file. Returns a `line:column: message` for each
/// place. For the rule that only a primitive has any, with a Rust model beside it.
pub fn find_hand_written(text: &str) -> syn::Result<Vec<String>> {
    #[derive(Default)]
    struct File(Vec<Span>);
    impl<'ast> Visit<'ast> for File {
        fn visit_path(&mut self, path: &'ast syn::Path) {
            let names: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let hand_written = matches!(
                names[..],
                [.., "Verilog", "Custom" | "Wrapper" | "Blackbox"] | [.., "Wrapper" | "BlackBox"]
            );
            if hand_written {
                self.0.push(path.span());
            }
            visit::visit_path(self, path);
        }
    }
    let mut file = File::default();
    file.visit_file(&syn::parse_file(text)?);
    let places = file.0.iter().map(|span| span.start());
    Ok(places
        .map(|at| format!("{}:{}: hand-written Verilog", at.line, at.column + 1))
        .collect())
}

/// Whether the attributes make a function a kernel.
pub fn is_kernel(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|a| {
        let last = a.path().segments.last();
        last.is_some_and(|s| s.ident == "hdl_gen")
    })
}

/// Whether an expression of a kernel is computed by Rust before there is a circuit: of literals only
/// (`false`), or with a constant of the source in it (`true`): `LIMIT`, `Status::Truncated`,
/// `u64::from(wire::VERSION)`, `Row::default()`. `loops` are the variables of the loops around it.
pub fn constant(x: &Expr, loops: &[String]) -> Option<bool> {
    match x {
        Expr::Lit(_) => Some(false),
        Expr::Path(path) => {
            let Some(name) = path.path.get_ident().map(ToString::to_string) else {
                return Some(true);
            };
            let shouts = !name.contains(|c: char| c.is_lowercase());
            (shouts && !loops.contains(&name)).then_some(true)
        }
        Expr::Paren(x) => constant(&x.expr, loops),
        Expr::Group(x) => constant(&x.expr, loops),
        Expr::Unary(x) => constant(&x.expr, loops),
        Expr::Cast(x) => constant(&x.expr, loops),
        Expr::Field(x) => constant(&x.base, loops).filter(|named| *named),
        Expr::Index(x) => {
            constant(&x.index, loops)?;
            constant(&x.expr, loops).filter(|named| *named)
        }
        Expr::Binary(x) => Some(constant(&x.left, loops)? | constant(&x.right, loops)?),
        Expr::Call(call) => {
            let Expr::Path(function) = &*call.func else {
                return None;
            };
            let names: Vec<String> = function
                .path
                .segments
                .iter()
                .map(|s| s.ident.to_string())
                .collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            match names[..] {
                [.., "Bits", "from"] | [.., "link" | "join"] => return None,
                [one] if FUNCTIONS.contains(&one) => return None,
                _ => {}
            }
            let mut arguments = call.args.iter();
            arguments
                .all(|x| constant(x, loops).is_some())
                .then_some(true)
        }
        Expr::MethodCall(call) => {
            if METHODS.contains(&call.method.to_string().as_str()) {
                return None;
            }
            let mut arguments = call.args.iter();
            let known = arguments.all(|x| constant(x, loops).is_some());
            constant(&call.receiver, loops).filter(|named| *named && known)
        }
        _ => None,
    }
}

/// Methods that rust-hdl's tree knows by their whole name.
const METHODS: [&str; 11] = [
    "val",
    "into",
    "index",
    "to_bits",
    "get_bit",
    "get_bits",
    "replace_bit",
    "all",
    "any",
    "xor",
    "to_signed_bits",
];

/// Functions likewise, by the last part of their path.
const FUNCTIONS: [&str; 5] = [
    "bit_cast",
    "bits",
    "unsigned_cast",
    "signed_bit_cast",
    "signed_cast",
];

/// Macros whose meaning the tree keeps, or that mean nothing to the circuit. Those from `registers` on are this
/// language's.
const MACROS: [&str; 10] = [
    "dff_setup",
    "clock",
    "println",
    "comment",
    "registers",
    "clocked",
    "join",
    "send",
    "store",
    "set",
];

/// `+=` and the like.
fn assigns(op: &syn::BinOp) -> bool {
    use syn::BinOp::*;
    matches!(
        op,
        AddAssign(_)
            | SubAssign(_)
            | MulAssign(_)
            | DivAssign(_)
            | RemAssign(_)
            | BitXorAssign(_)
            | BitAndAssign(_)
            | BitOrAssign(_)
            | ShlAssign(_)
            | ShrAssign(_)
    )
}

struct Kernel {
    findings: Vec<Finding>,
    loops: Vec<String>,
}

impl Kernel {
    /// What is found in all of the body at once.
    fn begin(body: &syn::Block) -> Self {
        let mut attributes = Attributes::default();
        attributes.visit_block(body);
        Kernel {
            findings: attributes.0,
            loops: vec![],
        }
    }

    fn find(&mut self, at: &impl Spanned, message: impl Into<String>) {
        self.findings.push(Finding {
            span: at.span(),
            message: message.into(),
        });
    }

    /// Visits an expression in a place where `.index()` is allowed.
    fn visit_index(&mut self, x: &Expr) {
        match x {
            Expr::Paren(p) => self.visit_index(&p.expr),
            Expr::MethodCall(m) if m.method == "index" => self.visit_expr(&m.receiver),
            _ => self.visit_expr(x),
        }
    }

    fn path(&mut self, path: &syn::ExprPath) {
        if path.path.is_ident("self") {
            return;
        }
        let name = path.path.segments[0].ident.to_string();
        if !self.loops.contains(&name) {
            self.find(
                path,
                format!("`{name}` is neither a signal, a loop variable nor a constant"),
            );
        }
    }

    fn call(&mut self, call: &syn::ExprCall) {
        let Expr::Path(function) = &*call.func else {
            self.find(call, "this call does not translate");
            return;
        };
        let segments = &function.path.segments;
        let name = segments
            .last()
            .expect("paths have a segment")
            .ident
            .to_string();
        let known = match segments.len() {
            1 => FUNCTIONS.contains(&name.as_str()),
            _ => match name.as_str() {
                "link" | "join" => true,
                "from" => segments[segments.len() - 2].ident == "Bits",
                _ => false,
            },
        };
        if !known {
            self.find(
                &call.func,
                format!("`{name}` is no function that rust-hdl translates as what it is"),
            );
        }
    }

    fn pattern(&mut self, pattern: &Pat) {
        match pattern {
            Pat::Lit(_) | Pat::Wild(_) => {}
            Pat::Path(path) if path.path.segments.len() > 1 => {}
            Pat::Ident(x) if !x.ident.to_string().contains(|c: char| c.is_lowercase()) => {}
            _ => self.find(
                pattern,
                "a pattern in a kernel is an integer, an Enum::Variant, a constant, or `_`",
            ),
        }
    }
}

impl<'ast> Visit<'ast> for Kernel {
    fn visit_macro(&mut self, m: &'ast syn::Macro) {
        let name = m.path.segments.last().expect("paths have a segment");
        if name.ident == "assert" {
            self.find(
                m,
                "assert! in a kernel becomes a comment; use a Check block",
            );
        } else if !MACROS.iter().any(|known| name.ident == known) {
            self.find(m, "this macro does not translate");
        }
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        self.find(
            local,
            "a kernel has no `let`: a field `Signal<Local, T>` names a value within the cycle",
        );
    }

    fn visit_expr(&mut self, x: &'ast Expr) {
        if constant(x, &self.loops).is_some() {
            return;
        }
        match x {
            Expr::Path(path) => self.path(path),
            Expr::Cast(cast) => self.find(
                cast,
                "a kernel has no `as`: a loop variable becomes bits by `i.to_bits()`, a number gets \
                 another width by `bit_cast::<24, 16>(x)`",
            ),
            Expr::Assign(a) if matches!(*a.right, Expr::If(_) | Expr::Match(_) | Expr::Block(_)) => {
                self.find(
                    &a.right,
                    "an `if` or a `match` gives no value in a kernel: assign in each branch",
                );
            }
            Expr::Binary(b) if assigns(&b.op) => self.find(
                b,
                "a kernel assigns by `=` only: `self.sum.d.next = self.sum.q.val() + 1`",
            ),
            Expr::Call(call) => {
                self.call(call);
                call.args.iter().for_each(|a| self.visit_expr(a));
            }
            Expr::Reference(r) => self.visit_expr(&r.expr),
            Expr::MethodCall(m) if section_of(m).is_some() => self.find(
                m,
                "only `update` itself calls a section of its kernel, as a statement outside conditions and loops",
            ),
            Expr::MethodCall(m) => {
                let name = m.method.to_string();
                self.visit_expr(&m.receiver);
                if name == "index" {
                    self.find(
                        m,
                        "`.index()` is a usize in Rust and as wide as its operand in Verilog: use \
                         it as a plain bit index or as what a match looks at, nowhere else; a number \
                         is compared with a loop variable by `x.val() == i.to_bits()`",
                    );
                } else if !METHODS.contains(&name.as_str()) {
                    self.find(&m.method, format!("`.{name}()` does not translate"));
                }
                let takes_index = ["get_bit", "get_bits", "replace_bit"].contains(&name.as_str());
                for (i, argument) in m.args.iter().enumerate() {
                    if i == 0 && takes_index {
                        self.visit_index(argument);
                    } else {
                        self.visit_expr(argument);
                    }
                }
            }
            Expr::Match(m) => {
                self.visit_index(&m.expr);
                for arm in &m.arms {
                    self.pattern(&arm.pat);
                    if let Some((_, guard)) = &arm.guard {
                        self.find(
                            &**guard,
                            "a guard is lost on the way to Verilog; use an if inside the arm",
                        );
                    }
                    self.visit_expr(&arm.body);
                }
            }
            Expr::ForLoop(f) => {
                let name = match &*f.pat {
                    Pat::Ident(i) => i.ident.to_string(),
                    _ => String::new(),
                };
                // Bounds are ordinary Rust: rust-hdl evaluates them.
                if let Expr::Range(range) = &*f.expr
                    && let syn::RangeLimits::Closed(limits) = range.limits
                {
                    self.find(&limits, "`..=` is read as `..` on the way to Verilog");
                }
                self.loops.push(name);
                self.visit_block(&f.body);
                self.loops.pop();
            }
            _ => visit::visit_expr(self, x),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(body: &str) -> Vec<String> {
        let file = format!(
            "impl Logic for X {{ #[hdl_gen]\nfn update(&mut self) {{\n{body}\n}} }}\n\
             fn free() {{ let x = a.index() + 1; }}"
        );
        check_file(&file).expect("the test's text parses")
    }

    #[test]
    fn sound_kernels_pass() {
        for body in [
            "self.o.next = self.a.val().get_bit(self.i.val().index());",
            "self.o.next = self.a.val().replace_bit((self.i.val().index()), true);",
            "match self.i.val().index() { 0 => {} _ => { self.o.next = 1.into(); } }",
            "match self.e.val() { Ab::A => {} _ => {} }",
            "for i in 0..(N - 1) { self.x[i + 1].next = (i * 2).to_bits(); }",
            "self.o.next = bit_cast::<N, 8>(self.a.val() + bits::<8>(3));",
            "Bus::link(&mut self.bus, &mut self.dev.bus);",
            "dff_setup!(self, clock, a); registers!(self, clock, reset, b[0..self._n]);",
            "self.o.next = Bits::<8>::from(self.x.val());",
            "self.o.next = self.a.val() + LIMIT * 2;",
            "self.row.next = Row::default();",
            "match self.a.val().index() { LIMIT => {} _ => {} }",
            "self.admit(); self.o.next = self.a.val(); self.decide();",
        ] {
            assert_eq!(findings(body), Vec::<String>::new(), "{body}");
        }
    }

    #[test]
    fn each_lost_construct_is_found_once() {
        for (body, what) in [
            (
                "if self.a.val().index() + self.b.val().index() > 200 {}",
                "usize",
            ),
            ("self.o.next = self.a.val().index().to_bits();", "usize"),
            (
                "self.o.next = self.a.val().get_bit(self.i.val().index() + 1);",
                "usize",
            ),
            ("match self.a.val().index() + 1 { _ => {} }", "usize"),
            (
                "match self.e.val() { Ab::A if self.x.val() => {} _ => {} }",
                "guard",
            ),
            ("match self.e.val() { other => {} }", "pattern"),
            ("for i in 0..=3 { self.x[i].next = true; }", "`..=`"),
            ("#[cfg(any())] { self.o.next = 1.into(); }", "attribute"),
            ("#[cfg(any())] self.o.next = 1.into();", "attribute"),
            ("#[cfg(any())] comment!(\"x\");", "attribute"),
            ("self.o.next = bits_of(self.a.val());", "`bits_of`"),
            ("self.o.next = Bits::<8>::one(self.a.val());", "`one`"),
            (
                "self.o.next = self.a.val().get_value_x();",
                "`.get_value_x()`",
            ),
            ("self.o.next = self.a.val() + k;", "`k`"),
            (
                "self.o.next = self.a.val() + limit(self.b.val());",
                "`limit`",
            ),
            ("let x = self.a.val() + 1;", "Signal<Local, T>"),
            (
                "for i in 0..4 { self.o.next = self.a.val() == i as u64; }",
                "to_bits",
            ),
            ("self.sum.d.next += self.a.val();", "by `=` only"),
            (
                "self.o.next = if self.x.val() { self.a.val() } else { self.b.val() };",
                "each branch",
            ),
            ("assert!(self.x.val());", "Check"),
            ("other!(self);", "macro"),
            ("self.admit(); self.admit();", "before"),
            ("if self.x.val() { self.admit(); }", "only `update` itself"),
            ("for i in 0..2 { self.admit(); }", "only `update` itself"),
            ("self.o.next = self.admit();", "only `update` itself"),
            ("self.a.admit();", "`.admit()`"),
            ("self.admit(true);", "`.admit()`"),
        ] {
            let found = findings(body);
            assert!(!found.is_empty(), "nothing found in {body}");
            assert!(found.iter().any(|f| f.contains(what)), "{body}: {found:?}");
        }
    }

    #[test]
    fn hand_written_verilog_is_found() {
        let found = |text| {
            find_hand_written(text)
                .expect("the test's text parses")
                .len()
        };
        assert_eq!(found("fn hdl() -> Verilog { Verilog::Custom(x) }"), 1);
        assert_eq!(found("fn hdl() -> Verilog { ast::Verilog::Wrapper(w) }"), 1);
        assert_eq!(found("fn w() { let w = Wrapper { code, cores }; }"), 1);
        assert_eq!(found("fn hdl() -> Verilog { register(&value) }"), 0);
    }

    #[test]
    fn a_kernel_under_block_is_looked_at_and_a_model_is_not() {
        let file = |more: &str| {
            format!(
                "#[block]\nimpl Logic for X {{ fn update(&mut self) {{ y(self.a.val()); }} {more} }}"
            )
        };
        let findings = |more| check_file(&file(more)).expect("the test's text parses");
        assert_eq!(findings("").len(), 1, "{:?}", findings(""));
        assert!(findings("fn hdl(&self) -> Verilog { text() }").is_empty());
    }

    #[test]
    fn sections_are_looked_at_and_call_nothing() {
        let section = |body: &str| {
            let file = format!("#[block]\nimpl X {{\nfn admit(&mut self) {{ {body} }} }}");
            check_file(&file).expect("the test's text parses")
        };
        assert_eq!(section("self.o.next = self.a.val();"), Vec::<String>::new());
        assert!(section("self.o.next = y(self.a.val());")[0].contains("`y`"));
        assert!(section("self.decide();")[0].starts_with("3:23: only `update`"));
    }

    #[test]
    fn a_finding_says_where() {
        let found = findings("self.o.next =\n  self.a.val() + k;");
        assert!(found[0].starts_with("4:18: "), "{found:?}");
    }
}
