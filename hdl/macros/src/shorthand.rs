//! What a kernel says in short, written out: `send!`, `store!`, `set!`, `registers!`, `clocked!` and rust-hdl's
//! `clock!` and `dff_setup!`.

use proc_macro2::TokenStream as Tokens;
use quote::{format_ident, quote};
use syn::parse::ParseStream;
use syn::punctuated::Punctuated;
use syn::visit_mut::{self, VisitMut};
use syn::{Expr, Ident, Stmt, Token};

/// Replaces each call in the block by the statements that it stands for.
pub fn expand(block: &mut syn::Block) -> syn::Result<()> {
    let mut expander = Expander { error: None };
    expander.visit_block_mut(block);
    match expander.error {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

struct Expander {
    error: Option<syn::Error>,
}

impl VisitMut for Expander {
    fn visit_block_mut(&mut self, block: &mut syn::Block) {
        visit_mut::visit_block_mut(self, block);
        for statement in std::mem::take(&mut block.stmts) {
            let Stmt::Macro(call) = &statement else {
                block.stmts.push(statement);
                continue;
            };
            let written_out = match call.mac.path.get_ident() {
                Some(name) if name == "send" => Some(call.mac.parse_body_with(send)),
                Some(name) if name == "store" => Some(call.mac.parse_body_with(store)),
                Some(name) if name == "set" => Some(call.mac.parse_body_with(set)),
                _ => None,
            };
            match written_out {
                Some(Ok(statements)) => {
                    block.stmts.extend(statements);
                    continue;
                }
                Some(Err(error)) => {
                    self.error = Some(error);
                    continue;
                }
                None => {}
            }
            let kind = match call
                .mac
                .path
                .get_ident()
                .map(ToString::to_string)
                .as_deref()
            {
                Some("registers") => Kind::Registers,
                Some("clocked") => Kind::Clocked,
                Some("clock") => Kind::Clock,
                Some("dff_setup") => Kind::FlipFlops,
                _ => {
                    block.stmts.push(statement);
                    continue;
                }
            };
            let parse = |input: ParseStream| Call::parse(kind, input);
            match call.mac.parse_body_with(parse).and_then(|c| c.statements()) {
                Ok(statements) => block.stmts.extend(statements),
                Err(error) => self.error = Some(error),
            }
        }
    }
}

/// `self.output, valid, data`
fn send(input: ParseStream) -> syn::Result<Vec<Stmt>> {
    let parsed = Punctuated::<Expr, Token![,]>::parse_terminated(input)?;
    let [stream, valid, data] = &parsed.into_iter().collect::<Vec<_>>()[..] else {
        return Err(input.error("expected `send!(self.output, valid, data)`"));
    };
    Ok(vec![
        syn::parse_quote!(#stream.valid.next = #valid;),
        syn::parse_quote!(#stream.data.next = #data;),
    ])
}

/// `self.memory.write, enable, address, data`
fn store(input: ParseStream) -> syn::Result<Vec<Stmt>> {
    let parsed = Punctuated::<Expr, Token![,]>::parse_terminated(input)?;
    let [write, enable, address, data] = &parsed.into_iter().collect::<Vec<_>>()[..] else {
        return Err(input.error("expected `store!(self.memory.write, enable, address, data)`"));
    };
    Ok(vec![
        syn::parse_quote!(#write.enable.next = #enable;),
        syn::parse_quote!(#write.address.next = #address;),
        syn::parse_quote!(#write.data.next = #data;),
    ])
}

/// `self.child, write = x, age = y` or `self.key.d.next, pair = x`
fn set(input: ParseStream) -> syn::Result<Vec<Stmt>> {
    let parsed = Punctuated::<Expr, Token![,]>::parse_terminated(input)?;
    let mut parsed = parsed.into_iter();
    let base = parsed.next().ok_or_else(|| input.error("set what?"))?;
    let fields = matches!(&base, Expr::Field(f) if matches!(&f.member, syn::Member::Named(n) if n == "next"));
    let next = (!fields).then(|| quote!(.next));
    let assign = |part: Expr| {
        let Expr::Assign(a) = &part else {
            return Err(syn::Error::new_spanned(part, "expected `name = value`"));
        };
        let (target, value) = (&a.left, &a.right);
        Ok(syn::parse_quote!(#base.#target #next = #value;))
    };
    parsed.map(assign).collect()
}

/// What is connected, and whether the value is held.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Clock and reset, and held.
    Registers,
    /// Clock and reset.
    Clocked,
    /// Clock.
    Clock,
    /// Clock, and held.
    FlipFlops,
}

/// `self, clock, reset, a, b[0..4]`
struct Call {
    kind: Kind,
    this: Ident,
    clock: Expr,
    reset: Option<Expr>,
    targets: Vec<Expr>,
}

impl Call {
    fn parse(kind: Kind, input: ParseStream) -> syn::Result<Self> {
        let this = Ident::from(input.parse::<Token![self]>()?);
        input.parse::<Token![,]>()?;
        let clock = input.parse()?;
        input.parse::<Token![,]>()?;
        let mut reset = None;
        if matches!(kind, Kind::Registers | Kind::Clocked) {
            reset = Some(input.parse()?);
            input.parse::<Token![,]>()?;
        }
        let targets = input.parse_terminated(<Expr as syn::parse::Parse>::parse, Token![,])?;
        Ok(Call {
            kind,
            this,
            clock,
            reset,
            targets: targets.into_iter().collect(),
        })
    }

    fn statements(&self) -> syn::Result<Vec<Stmt>> {
        let clock = self.own(&self.clock, &mut vec![])?;
        let reset = match &self.reset {
            Some(reset) => Some(self.own(reset, &mut vec![])?),
            None => None,
        };
        let mut all = vec![];
        for target in &self.targets {
            let mut loops = vec![];
            let x = self.own(target, &mut loops)?;
            let reset = reset
                .as_ref()
                .map(|reset| quote!(#x.reset.next = #reset.val();));
            let held = matches!(self.kind, Kind::Registers | Kind::FlipFlops);
            let hold = held.then(|| quote!(#x.d.next = #x.q.val();));
            let mut body = quote! {
                #x.clock.next = #clock.val();
                #reset
                #hold
            };
            for (variable, range) in loops.into_iter().rev() {
                body = quote!(for #variable in #range { #body });
            }
            let block: syn::Block = syn::parse_quote!({ #body });
            all.extend(block.stmts);
        }
        Ok(all)
    }

    /// `a[0..4].b` as `self.a[i].b`, with `i in 0..4` added to the loops.
    fn own(&self, x: &Expr, loops: &mut Vec<(Ident, Tokens)>) -> syn::Result<Tokens> {
        let this = &self.this;
        match x {
            Expr::Path(p) if p.path.get_ident().is_some() => Ok(quote!(#this.#p)),
            Expr::Field(f) => {
                let (base, member) = (self.own(&f.base, loops)?, &f.member);
                Ok(quote!(#base.#member))
            }
            Expr::Index(i) => {
                let base = self.own(&i.expr, loops)?;
                match &*i.index {
                    Expr::Range(range) => {
                        let variable = format_ident!("register_{}", loops.len());
                        loops.push((variable.clone(), quote!(#range)));
                        Ok(quote!(#base[#variable]))
                    }
                    index => Ok(quote!(#base[#index])),
                }
            }
            _ => Err(syn::Error::new_spanned(
                x,
                "expected a field of self, as `count`, `lane[0..4]` or `group.count`",
            )),
        }
    }
}
