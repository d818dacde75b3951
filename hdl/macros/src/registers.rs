//! Expansion of `registers!` and `clocked!` inside a kernel.

use proc_macro2::TokenStream as Tokens;
use quote::{format_ident, quote};
use syn::parse::{Parse, ParseStream};
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
            let hold = match call.mac.path.get_ident() {
                Some(name) if name == "registers" => true,
                Some(name) if name == "clocked" => false,
                _ => {
                    block.stmts.push(statement);
                    continue;
                }
            };
            match call
                .mac
                .parse_body::<Call>()
                .and_then(|c| c.statements(hold))
            {
                Ok(statements) => block.stmts.extend(statements),
                Err(error) => self.error = Some(error),
            }
        }
    }
}

/// `self, clock, reset, a, b[0..4]`
struct Call {
    this: Ident,
    clock: Expr,
    reset: Expr,
    targets: Vec<Expr>,
}

impl Parse for Call {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let this = Ident::from(input.parse::<Token![self]>()?);
        input.parse::<Token![,]>()?;
        let clock = input.parse()?;
        input.parse::<Token![,]>()?;
        let reset = input.parse()?;
        input.parse::<Token![,]>()?;
        let targets = input.parse_terminated(Expr::parse, Token![,])?;
        Ok(Call {
            this,
            clock,
            reset,
            targets: targets.into_iter().collect(),
        })
    }
}

impl Call {
    fn statements(&self, hold: bool) -> syn::Result<Vec<Stmt>> {
        let clock = self.own(&self.clock, &mut vec![])?;
        let reset = self.own(&self.reset, &mut vec![])?;
        let mut all = vec![];
        for target in &self.targets {
            let mut loops = vec![];
            let x = self.own(target, &mut loops)?;
            let hold = hold.then(|| quote!(#x.d.next = #x.q.val();));
            let mut body = quote! {
                #x.clock.next = #clock.val();
                #x.reset.next = #reset.val();
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
