//! A kernel, from its source to the text of its tree.
//!
//! rust-hdl's own attribute writes code that builds the tree node by node, which is most of what rustc
//! has to compile of a block. This one writes one string, in prefix order, which `hdl::language::tree`
//! reads back when the block is printed. What only Rust knows (sizes, constants) is in a list beside it.
//!
//! ```text
//!   self.o.next = self.a.val() + LIMIT;   ►   "@12:9 = .o$next + .a ? LIMIT #0", [LIMIT]
//! ```
//!
//! In the kernel that Rust runs, a constant becomes the number that it stands for.

use kernel_lint::constant;
use proc_macro2::{TokenStream as Tokens, TokenTree};
use quote::{ToTokens, format_ident, quote};
use std::fmt::{Display, Write};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{BinOp, Expr, Ident, Lit, Member, Pat, Stmt, Token, UnOp};

/// What a kernel, or a section of one, becomes beside its own text.
pub struct Compiled {
    /// Adds it to `tree`, a `&mut Tree`.
    pub tree: Tokens,
    /// Body of `Logic::connect`.
    pub connect: Tokens,
}

/// Compiles a kernel whose macros have been expanded, and puts numbers in place of its constants.
pub fn compile(kernel: &mut syn::Block) -> syn::Result<Compiled> {
    let mut connect = connects(kernel);
    let mut encoder = Encoder::default();
    encoder.place(kernel);
    let mut tree = Tokens::new();
    for statement in &mut kernel.stmts {
        if let Some(section) = kernel_lint::section_call(statement) {
            let Stmt::Expr(Expr::MethodCall(call), _) = &*statement else {
                unreachable!("a call of a section is one of a method");
            };
            let this = &call.receiver;
            let (of_tree, of_connect) = beside(section);
            tree.extend(encoder.written());
            tree.extend(quote!(#this.#of_tree(tree);));
            connect.extend(quote!(#this.#of_connect();));
        } else {
            encoder.any_statement(statement)?;
        }
    }
    tree.extend(encoder.written());
    if encoder.rewritten {
        kernel.stmts.insert(
            0,
            syn::parse_quote!(
                #[allow(unused_imports, reason = "there may be only states, or none")]
                use ::hdl::language::{Coded as _, State as _};
            ),
        );
    }
    Ok(Compiled { tree, connect })
}

/// The methods that stand beside a section: for the printer, and for rust-hdl's list of what is driven.
pub fn beside(section: &Ident) -> (Ident, Ident) {
    (
        format_ident!("{}_tree", section),
        format_ident!("{}_connect", section),
    )
}

/// Marks every target of the kernel as driven, each once in its loop.
fn connects(block: &syn::Block) -> Tokens {
    fn base(target: &Expr) -> Option<&Expr> {
        match target {
            Expr::Field(f) => match &f.member {
                Member::Named(name) if name == "next" => Some(&f.base),
                _ => base(&f.base),
            },
            _ => None,
        }
    }
    fn mentions(tokens: &Tokens, name: &str) -> bool {
        tokens.clone().into_iter().any(|tree| match tree {
            TokenTree::Ident(ident) => ident == name,
            TokenTree::Group(group) => mentions(&group.stream(), name),
            _ => false,
        })
    }
    fn add(new: Tokens, out: &mut Vec<(String, Tokens)>) {
        let text = new.to_string();
        if !out.iter().any(|(known, _)| *known == text) {
            out.push((text, new));
        }
    }
    fn expression(x: &Expr, out: &mut Vec<(String, Tokens)>) {
        match x {
            Expr::Assign(a) => {
                if let Some(base) = base(&a.left) {
                    add(quote!(::hdl::prelude::Logic::connect(&mut #base);), out);
                }
            }
            Expr::If(x) => {
                statements(&x.then_branch, out);
                if let Some((_, otherwise)) = &x.else_branch {
                    expression(otherwise, out);
                }
            }
            Expr::Match(m) => m.arms.iter().for_each(|arm| expression(&arm.body, out)),
            Expr::Block(b) => statements(&b.block, out),
            Expr::ForLoop(f) => {
                let mut body = vec![];
                statements(&f.body, &mut body);
                let index = f.pat.to_token_stream();
                let (inside, outside): (Vec<_>, Vec<_>) = body
                    .into_iter()
                    .partition(|(_, tokens)| mentions(tokens, &index.to_string()));
                outside.into_iter().for_each(|(_, tokens)| add(tokens, out));
                if !inside.is_empty() {
                    let (range, inside) = (&f.expr, inside.iter().map(|(_, tokens)| tokens));
                    add(quote!(for #index in #range { #(#inside)* }), out);
                }
            }
            Expr::Call(call) => {
                let (Expr::Path(function), Some(a), Some(b)) =
                    (&*call.func, call.args.get(0), call.args.get(1))
                else {
                    return;
                };
                match function.path.segments.last() {
                    Some(last) if last.ident == "link" => {
                        add(
                            quote!(::hdl::prelude::logic::logic_connect_link_fn(#a, #b);),
                            out,
                        );
                    }
                    Some(last) if last.ident == "join" => {
                        add(
                            quote!(::hdl::prelude::logic::logic_connect_join_fn(#a, #b);),
                            out,
                        );
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
    fn statements(block: &syn::Block, out: &mut Vec<(String, Tokens)>) {
        for statement in &block.stmts {
            match statement {
                Stmt::Expr(x, _) => expression(x, out),
                Stmt::Macro(m) if m.mac.path.is_ident("join") => {
                    if let Ok(Join { from, to }) = m.mac.parse_body() {
                        add(quote!(#to.connect_sink();), out);
                        add(quote!(#from.connect_source();), out);
                    }
                }
                _ => {}
            }
        }
    }
    let mut out = vec![];
    statements(block, &mut out);
    out.into_iter().map(|(_, tokens)| tokens).collect()
}

/// `self.a.output => self.b.input`
struct Join {
    from: Expr,
    to: Expr,
}

impl Parse for Join {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let from = input.parse()?;
        input.parse::<Token![=>]>()?;
        let to = input.parse()?;
        let _: Option<Token![,]> = input.parse()?;
        Ok(Join { from, to })
    }
}

/// The same with `this` in place of `self`.
fn of(x: &Expr) -> Tokens {
    let replace = |tree| match tree {
        TokenTree::Ident(name) if name == "self" => format_ident!("this").into(),
        other => other,
    };
    x.to_token_stream().into_iter().map(replace).collect()
}

#[derive(Default)]
struct Encoder {
    text: String,
    /// What only Rust knows, by its text.
    values: Vec<(String, Tokens)>,
    links: Vec<Tokens>,
    loops: Vec<String>,
    /// Rust computes with `usize` here, and constants stay as they are.
    in_index: bool,
    /// A constant of the kernel has been replaced.
    rewritten: bool,
}

fn refuse<T>(at: &impl ToTokens, message: impl Display) -> syn::Result<T> {
    Err(syn::Error::new_spanned(at, message))
}

impl Encoder {
    fn word(&mut self, word: impl Display) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        write!(self.text, "{word}").expect("strings take everything");
    }

    fn place(&mut self, at: &impl Spanned) {
        let start = at.span().start();
        self.word(format_args!("@{}:{}", start.line, start.column + 1));
    }

    /// The name of a value in the text.
    fn value(&mut self, value: Tokens) -> String {
        let text = value.to_string();
        let known = self.values.iter().position(|(other, _)| *other == text);
        let at = known.unwrap_or_else(|| {
            self.values.push((text, value));
            self.values.len() - 1
        });
        format!("#{at}")
    }

    fn size(&mut self, size: &impl ToTokens) -> String {
        self.value(quote!(::hdl::language::Value::Number((#size) as u64)))
    }

    /// Adds to a `tree` what was encoded since the last time.
    fn written(&mut self) -> Tokens {
        let text = std::mem::take(&mut self.text);
        let values = std::mem::take(&mut self.values);
        let values = values.iter().map(|(_, value)| value);
        let links = std::mem::take(&mut self.links);
        quote!(tree.kernel(::core::file!(), #text, &[#(#values),*], &[#(#links),*]);)
    }

    // ---- statements

    fn block(&mut self, block: &mut syn::Block) -> syn::Result<()> {
        self.word("{");
        self.statements(block)?;
        self.word("}");
        Ok(())
    }

    fn statements(&mut self, block: &mut syn::Block) -> syn::Result<()> {
        block
            .stmts
            .iter_mut()
            .try_for_each(|statement| self.any_statement(statement))
    }

    fn any_statement(&mut self, statement: &mut Stmt) -> syn::Result<()> {
        match statement {
            Stmt::Expr(x, _) => self.statement(x)?,
            Stmt::Macro(m) if m.mac.path.is_ident("join") => {
                self.place(m);
                let join: Join = m.mac.parse_body()?;
                *statement = self.join(&join)?;
            }
            Stmt::Macro(m) if m.mac.path.is_ident("println") => {}
            Stmt::Macro(m) if m.mac.path.is_ident("comment") => {}
            other => return refuse(other, "this statement does not translate"),
        }
        Ok(())
    }

    fn statement(&mut self, x: &mut Expr) -> syn::Result<()> {
        self.place(x);
        match x {
            Expr::Assign(a) => self.assignment(a),
            Expr::If(x) => self.condition(x),
            Expr::Match(m) => self.choice(m),
            Expr::ForLoop(f) => {
                let (Pat::Ident(index), Expr::Range(range)) = (&*f.pat, &*f.expr) else {
                    return refuse(f, "a loop in a kernel is `for i in a..b`");
                };
                let (Some(from), Some(to)) = (&range.start, &range.end) else {
                    return refuse(f, "a loop in a kernel is `for i in a..b`");
                };
                let (from, to) = (self.size(from), self.size(to));
                self.word("for");
                self.word(&index.ident);
                self.word(from);
                self.word(to);
                self.loops.push(index.ident.to_string());
                self.block(&mut f.body)?;
                self.loops.pop();
                Ok(())
            }
            Expr::Call(call) => {
                let Expr::Path(function) = &*call.func else {
                    return refuse(call, "this call does not translate");
                };
                let mut path = function.path.clone();
                let last = path.segments.last_mut().expect("paths have a segment");
                if call.args.len() != 2 || !(last.ident == "link" || last.ident == "join") {
                    return refuse(call, "this call does not translate");
                }
                last.ident = format_ident!("{}_hdl", last.ident);
                let (a, b) = (self.path(&call.args[0])?, self.path(&call.args[1])?);
                self.word(format_args!("link #{}", self.links.len()));
                self.links.push(quote!(#path("", #a, #b)));
                Ok(())
            }
            other => refuse(other, "this statement does not translate"),
        }
    }

    fn join(&mut self, join: &Join) -> syn::Result<Stmt> {
        let Join { from, to } = join;
        let (a, b) = (self.path(from)?, self.path(to)?);
        self.word(format_args!("link #{}", self.links.len()));
        // Only the types are wanted, for which the loops' variables may be anything.
        let loops = self.loops.iter().map(|name| format_ident!("{name}"));
        let (x, y) = (of(from), of(to));
        self.links.push(quote!(
            #[allow(unused_variables, reason = "a join may use no loop's variable")]
            ::hdl::language::joined(|this: &Self, [#(#loops),*]| (&#x, &#y), #a, #b)
        ));
        Ok(syn::parse_quote!({
            let passing = ::hdl::language::Joins::passing(&#from, &#to);
            #to.take(passing);
            #from.answer(passing);
        }))
    }

    fn assignment(&mut self, a: &mut syn::ExprAssign) -> syn::Result<()> {
        if !matches!(&*a.left, Expr::Field(_)) {
            return refuse(&a.left, "only `.next` and its fields can be assigned");
        }
        let target = self.path(&a.left)?;
        let Expr::Struct(literal) = &mut *a.right else {
            self.word(format_args!("= .{target}"));
            return self.assigned(&mut a.right);
        };
        // The whole first, then its fields: all of them, where nothing else is said.
        if literal.rest.is_none() {
            self.word("blank");
        }
        self.word(format_args!("= .{target}"));
        match &mut literal.rest {
            Some(rest) => self.expression(rest)?,
            None => self.word(0),
        }
        let signal = target.split("$next").next().unwrap_or(&target).to_string();
        for field in &mut literal.fields {
            let Member::Named(name) = &field.member else {
                return refuse(field, "a field of a struct has a name");
            };
            self.word(format_args!(
                "@{}:{}",
                { field.span().start().line },
                field.span().start().column + 1
            ));
            self.word(format_args!("= .{target}${name}"));
            let before = self.text.len();
            self.assigned(&mut field.expr)?;
            let reads_itself = self.text[before..].split(' ').any(|word| {
                word.strip_prefix('.').is_some_and(|path| {
                    path == signal
                        || path
                            .strip_prefix(&signal)
                            .is_some_and(|p| p.starts_with('$'))
                })
            });
            if reads_itself {
                return refuse(
                    field,
                    "a field is set from the signal itself: set the fields singly",
                );
            }
        }
        Ok(())
    }

    /// What is assigned: a constant becomes what its target is made of.
    fn assigned(&mut self, x: &mut Expr) -> syn::Result<()> {
        let converts = constant(x, &self.loops) == Some(true);
        self.expression(x)?;
        if converts {
            *x = syn::parse_quote!(#x.into());
        }
        Ok(())
    }

    fn condition(&mut self, x: &mut syn::ExprIf) -> syn::Result<()> {
        self.word("if");
        self.expression(&mut x.cond)?;
        self.block(&mut x.then_branch)?;
        match &mut x.else_branch {
            None => self.word("end"),
            Some((_, otherwise)) => match &mut **otherwise {
                Expr::Block(b) => {
                    self.word("else");
                    self.block(&mut b.block)?;
                }
                Expr::If(inner) => self.condition(inner)?,
                other => return refuse(other, "this branch does not translate"),
            },
        }
        Ok(())
    }

    fn choice(&mut self, m: &mut syn::ExprMatch) -> syn::Result<()> {
        self.word("match");
        self.expression(&mut m.expr)?;
        self.word(m.arms.len());
        for arm in &mut m.arms {
            self.pattern(&arm.pat)?;
            match &mut *arm.body {
                Expr::Block(b) => self.block(&mut b.block)?,
                single => {
                    self.word("{");
                    self.statement(single)?;
                    self.word("}");
                }
            }
        }
        Ok(())
    }

    fn pattern(&mut self, pattern: &Pat) -> syn::Result<()> {
        match pattern {
            Pat::Wild(_) => self.word("default"),
            Pat::Lit(lit) => self.word(quote!(#lit).to_string().replace(' ', "")),
            Pat::Path(path) => {
                let value = self.term_value(path);
                self.word(format_args!("? {} {value}", name(&path.path)));
            }
            Pat::Ident(x) => {
                let ident = &x.ident;
                let value = self.term_value(ident);
                self.word(format_args!("? {ident} {value}"));
            }
            other => return refuse(other, "this pattern does not translate"),
        }
        Ok(())
    }

    // ---- expressions

    fn term_value(&mut self, constant: &impl ToTokens) -> String {
        self.value(quote!((&::hdl::language::Term(#constant)).value()))
    }

    fn expression(&mut self, x: &mut Expr) -> syn::Result<()> {
        if constant(x, &self.loops) == Some(true) {
            if self.in_index {
                let size = self.size(x);
                self.word(size);
                return Ok(());
            }
            while let Expr::Paren(syn::ExprParen { expr, .. }) = x {
                *x = (**expr).clone();
            }
            let value = self.term_value(x);
            let name = match &*x {
                Expr::Path(path) => name(&path.path),
                _ => "-".to_string(),
            };
            self.word(format_args!("? {name} {value}"));
            *x = syn::parse_quote!((&::hdl::language::Term(#x)).term());
            self.rewritten = true;
            return Ok(());
        }
        match x {
            Expr::Paren(p) => {
                self.word("(");
                self.expression(&mut p.expr)
            }
            Expr::Group(g) => self.expression(&mut g.expr),
            Expr::Lit(l) => match &l.lit {
                Lit::Bool(b) => {
                    self.word(b.value);
                    Ok(())
                }
                Lit::Int(i) => {
                    self.word(i.base10_parse::<u128>()?);
                    Ok(())
                }
                other => refuse(other, "this literal does not translate"),
            },
            Expr::Path(_) | Expr::Field(_) | Expr::Index(_) => {
                let path = self.path(x)?;
                self.word(format_args!(".{path}"));
                Ok(())
            }
            Expr::Unary(u) => {
                match u.op {
                    UnOp::Not(_) => self.word("!"),
                    UnOp::Neg(_) => self.word("neg"),
                    _ => return refuse(u, "this operator does not translate"),
                }
                self.expression(&mut u.expr)
            }
            Expr::Binary(b) => {
                let op = match &b.op {
                    BinOp::Add(_)
                    | BinOp::Sub(_)
                    | BinOp::Mul(_)
                    | BinOp::And(_)
                    | BinOp::Or(_)
                    | BinOp::BitXor(_)
                    | BinOp::BitAnd(_)
                    | BinOp::BitOr(_)
                    | BinOp::Shl(_)
                    | BinOp::Shr(_)
                    | BinOp::Eq(_)
                    | BinOp::Lt(_)
                    | BinOp::Le(_)
                    | BinOp::Ne(_)
                    | BinOp::Ge(_)
                    | BinOp::Gt(_) => b.op.to_token_stream().to_string().replace(' ', ""),
                    other => return refuse(other, "this operator does not translate"),
                };
                self.word(op);
                self.expression(&mut b.left)?;
                self.expression(&mut b.right)
            }
            Expr::Call(call) => self.call(call),
            Expr::MethodCall(method) => self.method(method),
            other => refuse(other, "this expression does not translate"),
        }
    }

    fn call(&mut self, call: &mut syn::ExprCall) -> syn::Result<()> {
        let whole = call.clone();
        let Expr::Path(function) = &*call.func else {
            return refuse(call, "this call does not translate");
        };
        let segments = &function.path.segments;
        let last = segments.last().expect("paths have a segment");
        let typed = match segments.len() {
            1 => last,
            n => &segments[n - 2],
        };
        let what = typed.ident.to_string();
        let Some(argument) = call.args.first_mut() else {
            return refuse(&whole, "this call does not translate");
        };
        match what.as_str() {
            "bit_cast" | "bits" | "Bits" => {
                let width = match &typed.arguments {
                    syn::PathArguments::AngleBracketed(a) => match a.args.first() {
                        Some(width) => quote!(#width),
                        None => quote!((#whole).bits()),
                    },
                    _ => quote!((#whole).bits()),
                };
                let width = self.size(&width);
                self.word(format_args!("cast {width}"));
            }
            "unsigned_cast" => self.word("unsigned"),
            "signed_bit_cast" | "signed_cast" => self.word("signed"),
            _ => return refuse(&whole, "this call does not translate"),
        }
        self.expression(argument)
    }

    fn method(&mut self, m: &mut syn::ExprMethodCall) -> syn::Result<()> {
        let whole = m.clone();
        match m.method.to_string().as_str() {
            "val" => {
                let path = self.path(&m.receiver)?;
                self.word(format_args!(".{path}"));
                Ok(())
            }
            "into" | "index" => self.expression(&mut m.receiver),
            "to_bits" => self.index(&mut m.receiver),
            "to_signed_bits" => {
                self.word("signed");
                self.expression(&mut m.receiver)
            }
            reduction @ ("all" | "any" | "xor") => {
                self.word(reduction);
                self.expression(&mut m.receiver)
            }
            "get_bit" if m.args.len() == 1 => {
                self.word("bit");
                self.expression(&mut m.receiver)?;
                self.index(&mut m.args[0])
            }
            "get_bits" if m.args.len() == 1 => {
                let width = m.turbofish.as_ref().and_then(|t| t.args.first());
                let Some(width) = width else {
                    return refuse(&whole, "say how many bits: `get_bits::<8>(0)`");
                };
                let width = self.size(width);
                self.word(format_args!("slice {width}"));
                self.expression(&mut m.receiver)?;
                self.index(&mut m.args[0])
            }
            "replace_bit" if m.args.len() == 2 => {
                self.word("put");
                self.expression(&mut m.receiver)?;
                self.index(&mut m.args[0])?;
                self.expression(&mut m.args[1])
            }
            _ => refuse(&whole, "this method does not translate"),
        }
    }

    fn index(&mut self, x: &mut Expr) -> syn::Result<()> {
        let before = std::mem::replace(&mut self.in_index, true);
        let result = self.expression(x);
        self.in_index = before;
        result
    }

    /// `self.a[i].b.val().c` as `a[i]$b$val()$c`.
    fn path(&mut self, x: &Expr) -> syn::Result<String> {
        let full = self.full_path(x)?;
        Ok(full.trim_start_matches('$').to_string())
    }

    fn full_path(&mut self, x: &Expr) -> syn::Result<String> {
        match x {
            Expr::Path(p) if p.path.is_ident("self") => Ok(String::new()),
            Expr::Path(p) => Ok(name(&p.path)),
            Expr::Group(g) => self.full_path(&g.expr),
            Expr::Reference(r) => self.full_path(&r.expr),
            Expr::Field(f) => {
                let base = self.full_path(&f.base)?;
                match &f.member {
                    Member::Named(name) => Ok(format!("{base}${name}")),
                    Member::Unnamed(_) => refuse(f, "a field has a name"),
                }
            }
            Expr::Index(i) => {
                let base = self.full_path(&i.expr)?;
                let index = match constant(&i.index, &self.loops) {
                    Some(true) => self.size(&i.index),
                    _ => i.index.to_token_stream().to_string().replace(' ', ""),
                };
                Ok(format!("{base}[{index}]"))
            }
            Expr::MethodCall(m) if m.method == "val" => {
                Ok(format!("{}$val()", self.full_path(&m.receiver)?))
            }
            other => refuse(other, "this is no signal"),
        }
    }
}

/// `Enum::Variant` as `Enum$Variant`.
fn name(path: &syn::Path) -> String {
    let parts: Vec<_> = path.segments.iter().map(|s| s.ident.to_string()).collect();
    parts.join("$")
}
