//! Files import in one direction: prim ← rooms ← datapath ← nic; configuration and types know no room. Read from the source.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use petgraph::algo::kosaraju_scc;
use petgraph::graphmap::DiGraphMap;
use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

use hdl_tests::sources;

/// Names of modules from the root of the crate, and their syntax. `matching::order` is `hdl/src/matching/order.rs`.
type Files = BTreeMap<String, syn::File>;

/// What stands before a file in the order of imports, by the first part of its name.
fn rank(module: &str) -> u8 {
    match module.split("::").next().unwrap_or_default() {
        "verilog" => 0,
        "config" | "language" | "prelude" | "prim" | "proofs" | "tops" | "types" => 1,
        "datapath" => 3,
        "nic" => 4,
        "catalogue" => 5,
        _ => 2,
    }
}

/// The module of a file, by the file's path from `src`; none of a program's and of the root's.
fn module(path: &Path) -> Option<String> {
    let path = path.with_extension("");
    let mut parts: Vec<&str> = path
        .iter()
        .map(|part| part.to_str().expect("a name"))
        .collect();
    if parts.last() == Some(&"mod") {
        parts.pop();
    }
    (parts[0] != "bin" && parts != ["lib"]).then(|| parts.join("::"))
}

/// Paths that a file names, outside its tests.
#[derive(Default)]
struct Paths(Vec<Vec<String>>);

impl Paths {
    fn tree(&mut self, before: &[String], tree: &syn::UseTree) {
        let with = |ident: &syn::Ident| [before, &[ident.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.tree(&with(&path.ident), &path.tree),
            syn::UseTree::Name(name) => self.0.push(with(&name.ident)),
            syn::UseTree::Rename(rename) => self.0.push(with(&rename.ident)),
            syn::UseTree::Glob(_) => self.0.push(before.to_vec()),
            syn::UseTree::Group(group) => group.items.iter().for_each(|t| self.tree(before, t)),
        }
    }
}

impl Paths {
    /// Names joined by `::` among tokens: two at least, since one alone may be anything.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = vec![];
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.joined(std::mem::take(&mut path));
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    self.tokens(group.stream());
                    colons = 0;
                }
                _ => colons = 0,
            }
        }
        self.joined(path);
    }

    fn joined(&mut self, path: Vec<String>) {
        if path.len() > 1 {
            self.0.push(path);
        }
    }
}

impl<'a> Visit<'a> for Paths {
    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        self.tree(&[], &item.tree);
    }

    fn visit_item_mod(&mut self, item: &'a syn::ItemMod) {
        if item.ident != "tests" {
            visit::visit_item_mod(self, item);
        }
    }

    // Who may see an item is no import.
    fn visit_vis_restricted(&mut self, _: &'a syn::VisRestricted) {}

    // What the attributes of this house and macros are given is read as paths too.
    fn visit_attribute(&mut self, attribute: &'a syn::Attribute) {
        if let syn::Meta::List(list) = &attribute.meta {
            self.tokens(list.tokens.clone());
        }
    }

    fn visit_macro(&mut self, mac: &'a syn::Macro) {
        self.tokens(mac.tokens.clone());
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        let segments = path.segments.iter().map(|s| s.ident.to_string());
        self.0.push(segments.collect());
        visit::visit_path(self, path);
    }
}

/// The file that a path from `from` leads to, if it is one of the crate.
fn target(files: &Files, from: &str, path: &[String]) -> Option<String> {
    let mut at: Vec<&str> = from.split("::").collect();
    let mut rest = path;
    match rest.first()?.as_str() {
        "crate" | "hdl" => {
            at.clear();
            rest = &rest[1..];
        }
        "super" => {
            while rest.first().is_some_and(|part| part == "super") {
                at.pop();
                rest = &rest[1..];
            }
        }
        "self" => rest = &rest[1..],
        first if files.contains_key(&format!("{from}::{first}")) => {}
        _ => return None,
    }
    for part in rest {
        let longer = [&at[..], &[part.as_str()]].concat();
        if !files.contains_key(&longer.join("::")) {
            break;
        }
        at.push(part);
    }
    Some(at.join("::")).filter(|to| files.contains_key(to) && to != from)
}

fn imports(files: &Files) -> BTreeMap<&str, BTreeSet<String>> {
    let of = |(name, file): (&'_ String, &syn::File)| {
        let mut paths = Paths::default();
        paths.visit_file(file);
        let targets = paths.0.iter().filter_map(|path| target(files, name, path));
        targets.collect::<BTreeSet<String>>()
    };
    let each = files.iter().map(|entry| (entry.0.as_str(), of(entry)));
    each.collect()
}

/// What is wrong with the imports: files in a circle, and imports against the order.
fn complaints(files: &Files) -> Vec<String> {
    let imports = imports(files);
    let mut graph = DiGraphMap::new();
    let mut complaints = vec![];
    for (from, targets) in &imports {
        for to in targets {
            graph.add_edge(*from, to.as_str(), ());
            if rank(to) > rank(from) {
                complaints.push(format!("{from} imports {to}"));
            }
        }
    }
    let circles = kosaraju_scc(&graph).into_iter();
    complaints.extend(circles.filter(|circle| circle.len() > 1).map(|circle| {
        let within = |from: &str| {
            let targets = imports[from].iter();
            let targets = targets.filter(|to| circle.contains(&to.as_str()));
            let targets: Vec<_> = targets.map(String::as_str).collect();
            format!("\n  {from} imports {}", targets.join(", "))
        };
        let lines: String = circle.iter().map(|from| within(from)).collect();
        format!("a circle:{lines}")
    }));
    complaints
}

fn sources() -> Files {
    let files = sources::below("hdl/src").into_iter();
    let files = files.filter_map(|(path, text)| Some((module(&path)?, text)));
    let parsed = files.map(|(name, text)| (name, syn::parse_file(&text).expect("it compiles")));
    let files: Files = parsed.collect();
    assert!(files.len() > 80 && files.contains_key("matching::lists"));
    files
}

#[test]
fn imports_go_one_way() {
    let complaints = complaints(&sources());
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn a_room_in_the_configuration_and_a_circle_are_noticed() {
    let mut files = sources();
    let with = |text: &str| syn::parse_str(text).expect("it is Rust");
    files.insert("config".into(), with("use crate::matching::MAX_EXACT;"));
    files.insert(
        "host::ring".into(),
        with("fn f() { super::dma_read::f(); }"),
    );
    files.insert("host::dma_read".into(), with("use super::ring::Ring;"));
    // By an attribute, by a macro, by `self`: each names a part that names the whole.
    for (whole, text) in [
        ("protect", "struct A { #[is(New::of(part::DEPTH))] a: u8 }"),
        ("link", "fn f() { vec![Top::of(part::breaks)] }"),
        ("envelope", "use self::part::B;"),
    ] {
        files.insert(whole.into(), with(text));
        files.insert(format!("{whole}::part"), with("use super::A;"));
    }
    let complaints = complaints(&files);
    for whole in ["protect", "link", "envelope"] {
        let part = format!("{whole}::part");
        assert!(complaints.iter().any(|c| c.contains(&part)), "{whole}");
    }
    assert!(complaints.contains(&"config imports matching".to_string()));
    let circle = complaints.iter().find(|c| c.contains("host::ring"));
    assert!(
        circle.is_some_and(|c| c.contains("host::dma_read")),
        "{complaints:?}"
    );
}
