//! `#[block]` and `#[module]`: the attributes for rust-hdl blocks. Their documentation is where users find
//! it, in `hdl::prelude`.

mod block;
mod kernel;
mod section;
mod shorthand;

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use quote::{format_ident, quote};
use syn::parse::{Parse, ParseStream};
use syn::{Expr, Ident, ImplItem, Item, ItemImpl, Token};

/// Declares a block: on its struct, and again on its `impl Logic`.
///
/// ```ignore
/// /// Counts up to `limit`.
/// #[block(limit: u64)]
/// pub struct Counter<const W: usize> {
///     pub clock: Signal<In, Clock>,
///     pub reset: Signal<In, Bit>,
///     pub enable: Signal<In, Bit>,
///     pub value: Signal<Out, Bits<W>>,
///     count: Reg<Bits<W>>,
///     #[is(constant(limit))]
///     limit: Constant<Bits<W>>,
///     stays_in_bounds: Check,
/// }
///
/// #[block]
/// impl<const W: usize> Logic for Counter<W> {
///     fn update(&mut self) {
///         if self.enable.val() & (self.count.q.val() != self.limit.val()) {
///             self.count.d.next = self.count.q.val() + 1;
///         }
///         self.value.next = self.count.q.val();
///         self.stays_in_bounds.ok.next = self.count.q.val() <= self.limit.val();
///     }
/// }
/// ```
///
/// On the struct:
///
/// - **The constructor.** Without arguments it is `Default`; with `#[block(depth: usize)]` it is a private
///   `Self::build(depth)`, for a `new` that checks what it is given. A field starts from its `Default`, from
///   the value of `#[is(value)]`, or, a `Vec`, from `#[each(count)]` or `#[each(count, value)]`; the
///   arguments are in scope there. A `Check`, `Duty` or `Stable` is called as its field is.
/// - **Clock, reset and hold.** Every block in a field is connected to `clock` and `reset` before the kernel
///   begins, and every register holds: `d = q`. The kernel may override each.
///
/// On the `impl`:
///
/// - **The kernel** is `update`. It may say constants of the source where it means them (`Status::Truncated`,
///   `limits::EAGER_MAX / 8`, `Row::default()`); the printer refuses those that are too wide. A struct can be
///   assigned as a literal.
/// - **`join!(self.a.output => self.b.input)`** connects two streams or two pulses.
/// - **`send!(self.output, valid, data)`** drives both of a stream or a pulse.
/// - **`store!(self.memory.write, enable, address, data)`** drives the write port of a memory.
/// - **`set!(self.child, write = x, age = y)`** drives several signals of a child or a port, and
///   `set!(self.key.d.next, pair = x, age = y)` several fields of a struct.
/// - What `#[module]` says of the module's name and of the rules. With a hand-written `hdl` the block is a
///   leaf, and `update` its model.
///
/// On an `impl` of the block's own methods, in this file or another of its module:
///
/// - **Each method is a section of the kernel**, `fn admit(&mut self)`, private or `pub(super)`. The kernel
///   calls it once, by `self.admit();`, and its statements stand there. A section that isn't called is an error.
#[proc_macro_attribute]
pub fn block(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let expanded = match syn::parse_macro_input!(item as Item) {
        Item::Struct(item) => {
            let arguments = syn::parse_macro_input!(arguments as block::Arguments);
            block::expand(&arguments, item)
        }
        Item::Impl(item) if item.trait_.is_none() => {
            let _ = syn::parse_macro_input!(arguments as syn::parse::Nothing);
            section::expand(item)
        }
        Item::Impl(item) => {
            let parameters = syn::parse_macro_input!(arguments as Parameters);
            let stub = stub(&item);
            expand(&parameters, item, Style::Block).or_else(|error| {
                let errors = error.to_compile_error();
                Ok(quote!(#errors #stub))
            })
        }
        other => Err(syn::Error::new_spanned(
            other,
            "#[block] goes on a struct, on its `impl Logic`, and on an `impl` of sections of the kernel",
        )),
    };
    expanded
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}

/// Makes a block's `impl Logic` ready for the printer where the struct isn't declared by `#[block]`. It
/// goes outside `#[hdl_gen]`:
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
    let expanded = expand(&parameters, item, Style::Module);
    expanded
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}

/// Which attribute it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    /// The struct has said what is in the block.
    Block,
    /// The kernel says it.
    Module,
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

/// The `impl` with an empty kernel: what is wrong with a kernel is then all that the compiler complains of.
fn stub(item: &ItemImpl) -> Option<Tokens> {
    let (generics, _, conditions) = item.generics.split_for_impl();
    let (_, logic, _) = item.trait_.as_ref()?;
    let this = &item.self_ty;
    Some(quote!(impl #generics #logic for #this #conditions { fn update(&mut self) {} }))
}

fn expand(parameters: &Parameters, mut item: ItemImpl, style: Style) -> syn::Result<Tokens> {
    let by_hand = item
        .items
        .iter()
        .any(|member| matches!(member, ImplItem::Fn(function) if function.sig.ident == "hdl"));
    let mut errors: Option<syn::Error> = None;
    let mut complain = |error: syn::Error| match &mut errors {
        Some(all) => all.combine(error),
        None => errors = Some(error),
    };
    let mut compiled = None;
    let mut this = <Token![self]>::default();
    for member in &mut item.items {
        let ImplItem::Fn(function) = member else {
            continue;
        };
        if function.sig.ident == "timing" {
            complain(syn::Error::new_spanned(
                &function.sig,
                "the attribute writes this method, to name the module",
            ));
        }
        let is_kernel = match style {
            Style::Block => function.sig.ident == "update" && !by_hand,
            Style::Module => kernel_lint::is_kernel(&function.attrs),
        };
        if is_kernel {
            let findings = kernel_lint::check_kernel(&function.block);
            if findings.is_empty() {
                function
                    .attrs
                    .retain(|a| !kernel_lint::is_kernel(std::slice::from_ref(a)));
                let block = &mut function.block;
                match shorthand::expand(block).and_then(|()| kernel::compile(block)) {
                    Ok(kernel) => compiled = Some(kernel),
                    Err(error) => complain(error),
                }
                // `self` is known where it was written only.
                this = function
                    .sig
                    .receiver()
                    .map_or(this, |receiver| receiver.self_token);
                if style == Style::Block {
                    let begin = syn::parse_quote!(::hdl::language::Within::begin(#this););
                    function.block.stmts.insert(0, begin);
                }
            }
            for finding in findings {
                complain(syn::Error::new(finding.span, finding.message));
            }
        }
    }
    if let Some(error) = errors {
        return Err(error);
    }
    if let Some(kernel::Compiled { tree, connect }) = compiled {
        let (begin_tree, begin_connect) = match style {
            Style::Block => (
                quote!(::hdl::language::Within::begin_tree(#this, tree);),
                quote!(::hdl::language::Within::begin_connect(#this);),
            ),
            Style::Module => (quote!(), quote!()),
        };
        item.items.push(syn::parse_quote! {
            fn hdl(&#this) -> ::hdl::prelude::Verilog {
                #[allow(unused_imports, reason = "a kernel may name no constant")]
                use ::hdl::language::{Coded as _, State as _};
                let mut whole = ::hdl::language::Tree::default();
                let tree = &mut whole;
                #begin_tree
                #tree
                whole.finish()
            }
        });
        item.items.push(syn::parse_quote! {
            fn connect(&mut #this) { #begin_connect #connect }
        });
    }
    let entries = parameters.0.iter().map(|(name, value)| {
        let name = format_ident!("{name}").to_string();
        quote!((#name, &(#value) as &dyn ::core::fmt::Display))
    });
    item.items.push(syn::parse_quote! {
        fn timing(&self) -> ::std::vec::Vec<::hdl::prelude::TimingInfo> {
            ::hdl::verilog::describe::<Self>(&[#(#entries),*])
        }
    });
    allow(&mut item);
    Ok(quote!(#item))
}

/// Allows what clippy would have otherwise: kernels have no match guards, and a `match` of an enum may have a
/// default.
fn allow(item: &mut ItemImpl) {
    item.attrs
        .push(syn::parse_quote!(#[allow(clippy::collapsible_match, clippy::useless_conversion, unreachable_patterns, reason = "what a kernel needs is more than Rust does")]));
}
