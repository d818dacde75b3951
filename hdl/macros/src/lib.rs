//! `#[module]`: the attribute for rust-hdl blocks. Its documentation is where users find it, in
//! `hdl::prelude`.

mod registers;

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use quote::{format_ident, quote};
use syn::parse::{Parse, ParseStream};
use syn::{Expr, Ident, ImplItem, ItemImpl, Token};

/// Makes a block's `impl Logic` ready for the printer. It goes outside `#[hdl_gen]`:
///
/// ```ignore
/// #[module]
/// impl<const W: usize> Logic for Counter<W> {
///     #[hdl_gen]
///     fn update(&mut self) {
///         registers!(self, clock, reset, count);
///         if self.enable.val() {
///             self.count.d.next = self.count.q.val() + 1;
///         }
///         self.value.next = self.count.q.val();
///     }
/// }
/// ```
///
/// - **The module's name.** It is the type's, with its parameters: `Counter_8`. A size that is
///   chosen at run time is added by name: `#[module(depth = self._depth)]`.
/// - **`registers!(self, clock, reset, a, b[0..self._n], c.d[i])`** in the kernel connects the
///   clock and reset of the named registers (`Reg`) to signals of this block and makes each hold
///   its value, `d = q`, for what follows to override. A range of an array becomes a loop.
/// - **`clocked!(self, clock, reset, fifo, lane[0..4])`** connects only clock and reset: for
///   children that are no registers.
/// - **The rules** of `kernel-lint` are checked: what rust-hdl would lose without a word is a
///   compile error.
///
/// rust-hdl reads a kernel before macros in it are expanded and knows only its own, so these two
/// are expanded by the attribute, which comes first.
#[proc_macro_attribute]
pub fn module(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let parameters = syn::parse_macro_input!(arguments as Parameters);
    let item = syn::parse_macro_input!(item as ItemImpl);
    match expand(&parameters, item) {
        Ok(tokens) => tokens.into(),
        Err(error) => error.to_compile_error().into(),
    }
}

/// `depth = self._depth, lanes = 4`
struct Parameters(Vec<(Ident, Expr)>);

impl Parse for Parameters {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let parse = |input: ParseStream| {
            let name = input.parse()?;
            input.parse::<Token![=]>()?;
            Ok((name, input.parse()?))
        };
        let list = input.parse_terminated(parse, Token![,])?;
        Ok(Parameters(list.into_iter().collect()))
    }
}

fn expand(parameters: &Parameters, mut item: ItemImpl) -> syn::Result<Tokens> {
    let mut errors: Option<syn::Error> = None;
    let mut complain = |error: syn::Error| match &mut errors {
        Some(all) => all.combine(error),
        None => errors = Some(error),
    };
    for member in &mut item.items {
        let ImplItem::Fn(function) = member else {
            continue;
        };
        if function.sig.ident == "timing" {
            complain(syn::Error::new_spanned(
                &function.sig,
                "#[module] writes this method, to name the module",
            ));
        }
        if kernel_lint::is_kernel(&function.attrs) {
            for finding in kernel_lint::check_kernel(&function.block) {
                complain(syn::Error::new(finding.span, finding.message));
            }
            if let Err(error) = registers::expand(&mut function.block) {
                complain(error);
            }
        }
    }
    if let Some(error) = errors {
        return Err(error);
    }
    let entries = parameters.0.iter().map(|(name, value)| {
        let name = format_ident!("{name}").to_string();
        quote!((#name, &#value as &dyn ::core::fmt::Display))
    });
    item.items.push(syn::parse_quote! {
        fn timing(&self) -> ::std::vec::Vec<::hdl::prelude::TimingInfo> {
            ::hdl::verilog::describe::<Self>(&[#(#entries),*])
        }
    });
    // Kernels have no match guards, which is what clippy would have instead.
    item.attrs
        .push(syn::parse_quote!(#[allow(clippy::collapsible_match)]));
    Ok(quote!(#item))
}
