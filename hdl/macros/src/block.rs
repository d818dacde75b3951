//! `#[block]` on a struct: what follows from its fields.

use proc_macro2::{Span, TokenStream as Tokens};
use quote::{ToTokens, quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Expr, Field, FnArg, Ident, ItemStruct, Token, Type};

/// `depth: usize, lanes: usize`: what the constructor takes.
pub struct Arguments(Punctuated<FnArg, Token![,]>);

impl Parse for Arguments {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        Ok(Arguments(input.parse_terminated(FnArg::parse, Token![,])?))
    }
}

/// The struct with its constructor, and with what connects it and what is in it.
pub fn expand(arguments: &Arguments, mut item: ItemStruct) -> syn::Result<Tokens> {
    let syn::Fields::Named(fields) = &mut item.fields else {
        return Err(syn::Error::new_spanned(
            &item,
            "a block has fields with names",
        ));
    };
    let mut values = vec![];
    let mut parts = vec![];
    let (mut clock, mut reset) = (false, false);
    for field in &mut fields.named {
        let value = value(field)?;
        let name = field.ident.as_ref().expect("the fields are named");
        if kernel_lint::is_keyword(&name.to_string()) && is_printed(name, &field.ty) {
            let message = format!("`{name}` is a keyword of SystemVerilog; rename the field");
            return Err(syn::Error::new_spanned(name, message));
        }
        values.push(quote!(#name: #value));
        clock |= name == "clock";
        reset |= name == "reset";
        if !name.to_string().starts_with('_') && !is_wire(&field.ty) {
            parts.push(name.clone());
        }
    }
    if !clock {
        parts.clear();
    } else if !reset && !parts.is_empty() {
        return Err(syn::Error::new_spanned(
            &item.ident,
            "a block with a clock and with blocks in it has a reset as well",
        ));
    }
    let name = &item.ident;
    let (generics, types, bounds) = item.generics.split_for_impl();
    let constructor = match &arguments.0 {
        none if none.is_empty() => quote! {
            impl #generics ::core::default::Default for #name #types #bounds {
                fn default() -> Self {
                    Self { #(#values),* }
                }
            }
        },
        some => quote! {
            impl #generics #name #types #bounds {
                fn build(#some) -> Self {
                    Self { #(#values),* }
                }
            }
        },
    };
    let texts = parts.iter().map(ToString::to_string);
    let within = (!parts.is_empty()).then(|| {
        quote! {
            fn begin(&mut self) {
                let (clock, reset) = (self.clock.val(), self.reset.val());
                #(::hdl::language::Part::clocked(&mut self.#parts, clock, reset);)*
            }

            fn begin_tree(&self, out: &mut ::hdl::language::Tree) {
                #(::hdl::language::Part::clocked_tree(&self.#parts, #texts, out);)*
            }

            fn begin_connect(&mut self) {
                #(::hdl::language::Part::clocked_connect(&mut self.#parts);)*
            }
        }
    });
    let ports: Vec<_> = [(clock, "clock"), (reset, "reset")]
        .into_iter()
        .filter_map(|(there, name)| there.then_some(name))
        .collect();
    let idents = ports.iter().map(|name| quote::format_ident!("{name}"));
    let idents: Vec<_> = idents.collect();
    let outside = clock.then(|| {
        quote! {
            fn clocked(&mut self, clock: ::hdl::prelude::Clock, reset: ::hdl::prelude::Bit) {
                let _ = reset;
                #(self.#idents.next = #idents;)*
            }

            fn clocked_tree(&self, path: &str, out: &mut ::hdl::language::Tree) {
                #(out.connect(path, #ports);)*
            }

            fn clocked_connect(&mut self) {
                #(::hdl::prelude::Logic::connect(&mut self.#idents);)*
            }
        }
    });
    Ok(quote! {
        #[derive(LogicBlock)]
        #item
        #constructor
        impl #generics ::hdl::language::Within for #name #types #bounds { #within }
        impl #generics ::hdl::language::Part for #name #types #bounds { #outside }
    })
}

/// What a field starts from; takes the attributes that say so off it.
fn value(field: &mut Field) -> syn::Result<Tokens> {
    let mut value = None;
    for attribute in std::mem::take(&mut field.attrs) {
        let path = attribute.path();
        if path.is_ident("is") {
            let given: Expr = attribute.parse_args()?;
            value = Some(given.into_token_stream());
        } else if path.is_ident("each") {
            let parse = Punctuated::<Expr, Token![,]>::parse_terminated;
            let given: Vec<Expr> = attribute.parse_args_with(parse)?.into_iter().collect();
            value = Some(match &given[..] {
                [count] => {
                    quote!((0..#count).map(|_| ::core::default::Default::default()).collect())
                }
                [count, each] => quote!((0..#count).map(|_| #each).collect()),
                _ => {
                    return Err(syn::Error::new_spanned(
                        attribute,
                        "`each(count)` or `each(count, value)`",
                    ));
                }
            });
        } else {
            field.attrs.push(attribute);
        }
    }
    let (name, ty) = (&field.ident, &field.ty);
    Ok(value.unwrap_or_else(|| match last(ty).as_deref() {
        // A claim is called as its field is, if it isn't given a name.
        Some("Check" | "Duty" | "Stable") => {
            let name = name.as_ref().expect("the fields are named").to_string();
            quote!(<#ty>::new(#name))
        }
        // Where it has no default, rustc is to show the field.
        _ => {
            let here = Span::call_site().located_at(ty.span());
            quote_spanned!(here=> <#ty as ::core::default::Default>::default())
        }
    }))
}

/// Whether the name of a field is a name of the printed text as it stands.
fn is_printed(name: &Ident, ty: &Type) -> bool {
    match last(ty).as_deref() {
        // `name_q` and `name_d`, `name_enable`, `name_0`.
        Some("Reg" | "Write" | "Vec") | None => false,
        // `in_valid`, `out_valid`.
        Some("Stream" | "Pulse") => name != "input" && name != "output",
        _ => true,
    }
}

/// Whether a type is one of signals and constants, or a list of them: nothing in it has a clock.
fn is_wire(ty: &Type) -> bool {
    match ty {
        Type::Array(array) => is_wire(&array.elem),
        Type::Path(path) => match last(ty).as_deref() {
            Some("Signal" | "Constant" | "Stream" | "Pulse" | "Write") => true,
            Some("Vec") => {
                let last = path.path.segments.last().expect("paths have a segment");
                match &last.arguments {
                    syn::PathArguments::AngleBracketed(of) => of
                        .args
                        .iter()
                        .any(|a| matches!(a, syn::GenericArgument::Type(inner) if is_wire(inner))),
                    _ => false,
                }
            }
            _ => false,
        },
        _ => false,
    }
}

/// The last name of a type's path.
fn last(ty: &Type) -> Option<String> {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|s| s.ident.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(field: &str) -> syn::Result<Tokens> {
        let item = syn::parse_str(&format!("struct Limiter {{ {field} }}"))?;
        expand(&Arguments(Punctuated::new()), item)
    }

    #[test]
    fn a_field_that_would_be_printed_as_a_keyword_is_refused() {
        for field in [
            "table: Table<Bits<8>>",
            "pub small: Signal<In, Bit>",
            "wait: Pulse<In, Bit>",
        ] {
            let refused = expanded(field).expect_err(field).to_string();
            assert!(
                refused.contains("is a keyword of SystemVerilog"),
                "{refused}"
            );
        }
        for field in [
            "table: Reg<Bits<8>>",
            "pub input: Stream<In, Bit>",
            "table: [Fifo<Bit>; 2]",
        ] {
            assert!(expanded(field).is_ok(), "{field}");
        }
    }
}
