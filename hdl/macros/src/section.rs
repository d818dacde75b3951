//! `#[block]` on an `impl` of the block's own methods: sections of its kernel.
//!
//! ```text
//!   fn update(&mut self) {                 fn admit(&mut self) { … }           one of the block's files
//!       self.admit();        ────────►     fn admit_tree(&self, …)             what is printed of it
//!       self.decide();                     fn admit_connect(&mut self)         what it drives
//!   }
//! ```
//!
//! Rust says where a section is called that there isn't, and where there is one that isn't called. Twice, under a
//! condition or by another section is refused by the kernel's rules.

use crate::{allow, kernel, shorthand};
use proc_macro2::TokenStream as Tokens;
use quote::quote;
use syn::{ImplItem, ImplItemFn, ItemImpl, Visibility};

/// The sections with what stands beside each.
pub fn expand(mut item: ItemImpl) -> syn::Result<Tokens> {
    let mut errors: Option<syn::Error> = None;
    let mut beside = vec![];
    for member in &mut item.items {
        let compiled = match member {
            ImplItem::Fn(function) => section(function),
            other => Err(refusal(other)),
        };
        match (compiled, &mut errors) {
            (Ok(methods), _) => beside.extend(methods),
            (Err(error), Some(all)) => all.combine(error),
            (Err(error), none) => *none = Some(error),
        }
    }
    if let Some(error) = errors {
        return Err(error);
    }
    item.items.extend(beside);
    allow(&mut item);
    Ok(quote!(#item))
}

/// What stands beside a section.
fn section(function: &mut ImplItemFn) -> syn::Result<[ImplItem; 2]> {
    let signature = &function.sig;
    let is_section = signature.inputs.len() == 1
        && signature
            .receiver()
            .is_some_and(|this| this.reference.is_some() && this.mutability.is_some())
        && matches!(signature.output, syn::ReturnType::Default)
        && signature.generics.params.is_empty()
        && !matches!(function.vis, Visibility::Public(_));
    if !is_section {
        return Err(refusal(signature));
    }
    let findings = kernel_lint::check_section(&function.block).into_iter();
    let findings = findings.map(|finding| syn::Error::new(finding.span, finding.message));
    if let Some(error) = findings.reduce(|mut all, error| {
        all.combine(error);
        all
    }) {
        return Err(error);
    }
    shorthand::expand(&mut function.block)?;
    let kernel::Compiled { tree, connect } = kernel::compile(&mut function.block)?;
    let receiver = function.sig.receiver().expect("it was looked at");
    let (this, seen) = (receiver.self_token, &function.vis);
    let (of_tree, of_connect) = kernel::beside(&function.sig.ident);
    function.attrs.push(syn::parse_quote!(#[deny(dead_code)]));
    Ok([
        syn::parse_quote! {
            #[allow(dead_code, reason = "of the section that nobody calls, rustc says it")]
            #seen fn #of_tree(&#this, tree: &mut ::hdl::language::Tree) {
                #[allow(unused_imports, reason = "a section may name no constant")]
                use ::hdl::language::{Coded as _, State as _};
                #tree
            }
        },
        syn::parse_quote! {
            #[allow(dead_code, reason = "of the section that nobody calls, rustc says it")]
            #seen fn #of_connect(&mut #this) { #connect }
        },
    ])
}

fn refusal(at: &impl quote::ToTokens) -> syn::Error {
    syn::Error::new_spanned(
        at,
        "a section of a kernel is `fn name(&mut self)`, private or `pub(super)`; what else the block has \
         goes into an `impl` without #[block]",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        let item = syn::parse_str(text).expect("the test's text parses");
        match expand(item) {
            Ok(_) => String::new(),
            Err(error) => error.into_iter().map(|e| e.to_string() + "\n").collect(),
        }
    }

    #[test]
    fn a_section_takes_nothing_gives_nothing_and_is_not_public() {
        assert_eq!(refused("impl X { pub(super) fn admit(&mut self) {} }"), "");
        for text in [
            "impl X { fn admit(&self) {} }",
            "impl X { fn admit(&mut self, twice: bool) {} }",
            "impl X { fn admit(&mut self) -> bool { true } }",
            "impl X { fn admit<const N: usize>(&mut self) {} }",
            "impl X { pub fn admit(&mut self) {} }",
            "impl X { const LIMIT: u64 = 3; }",
        ] {
            assert!(refused(text).contains("`fn name(&mut self)`"), "{text}");
        }
    }

    #[test]
    fn the_rules_of_a_kernel_hold_in_each_section() {
        let found = refused(
            "impl X { fn admit(&mut self) { let x = 1; } fn decide(&mut self) { self.admit(); } }",
        );
        assert!(found.contains("no `let`"), "{found}");
        assert!(found.contains("only `update` itself"), "{found}");
    }
}
