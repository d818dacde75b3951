//! Links the models that `cargo xtask models` has built and writes the table of them.
//!
//! Compiles nothing: a model is built once for all crates and profiles, outside cargo. Without a
//! manifest the table is empty and the crate still builds.

#[path = "../../xtask/src/manifest.rs"]
mod manifest;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

use manifest::{Entry, Manifest, Runtime};

fn main() {
    println!("cargo::rerun-if-env-changed=POSTHORN_MODELS");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let file = match env::var_os("POSTHORN_MODELS") {
        Some(file) if !file.is_empty() => root.join(file),
        _ => root.join("target/models/manifest.json"),
    };
    println!("cargo::rerun-if-changed={}", file.display());
    let manifest = Manifest::parse(&fs::read(&file).unwrap_or_default());
    // A library that was cleaned away is as good as never built.
    let models: Vec<&Entry> = manifest
        .models
        .iter()
        .filter(|entry| link(&entry.dir, &entry.library, "-bundle"))
        .collect();
    if let (Some(Runtime { dir, library, .. }), false) = (&manifest.runtime, models.is_empty()) {
        // Whole: its users, in the `verilated` crate, come later on the linker's command line.
        assert!(
            link(dir, library, "-bundle,+whole-archive"),
            "{} is missing; run `cargo xtask models`",
            dir.display()
        );
    }
    let version = manifest
        .runtime
        .as_ref()
        .map_or("", |runtime| &runtime.version);
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("table.rs"), table(&models, version)).expect("OUT_DIR can be written");
}

/// Tells the linker, if the library is there.
fn link(dir: &Path, library: &str, modifiers: &str) -> bool {
    let file = dir.join(format!("lib{library}.a"));
    println!("cargo::rerun-if-changed={}", file.display());
    if !file.is_file() {
        return false;
    }
    println!("cargo::rustc-link-search=native={}", dir.display());
    println!("cargo::rustc-link-lib=static:{modifiers}={library}");
    true
}

/// The C functions of each model, and a table of `Entry` (see `src/table.rs`).
fn table(models: &[&Entry], version: &str) -> String {
    let mut functions = String::new();
    let mut rows = String::new();
    for Entry {
        name,
        traced,
        library,
        dir,
        ports,
        ..
    } in models
    {
        let trace = if *traced {
            writeln!(
                functions,
                "    fn {library}_trace(m: *mut Raw, vcd: *mut VcdC);"
            )
            .unwrap();
            format!("Some({library}_trace)")
        } else {
            "None".into()
        };
        let text = dir.join(format!("{name}.sv"));
        let ports: String = ports
            .iter()
            .map(|port| {
                let direction = if port.input { "Input" } else { "Output" };
                format!(
                    "PortInfo {{ name: {:?}, width: {}, direction: crate::Direction::{direction} }},\n",
                    port.name, port.width
                )
            })
            .collect();
        write!(
            functions,
            "    fn {library}_new(seed: u32) -> *mut Raw;
    fn {library}_delete(m: *mut Raw);
    fn {library}_enter(m: *mut Raw);
    fn {library}_pins(m: *mut Raw, pins: *mut *mut u8);
    fn {library}_eval(m: *mut Raw);
    fn {library}_edges(m: *mut Raw);
    fn {library}_clock(m: *mut Raw, level: u8, changed: bool);
    fn {library}_step(m: *mut Raw, n: u64);
    fn {library}_memory(m: *mut Raw, scope: *const c_char, name: *const c_char, words: *mut u64) -> *mut u32;
    fn {library}_error(m: *mut Raw) -> c_int;
    fn {library}_clear_error(m: *mut Raw);
"
        )
        .unwrap();
        write!(
            rows,
            "    Entry {{ name: {name:?}, traced: {traced}, text: {text:?}, ports: &[{ports}],
        new: {library}_new, delete: {library}_delete, enter: {library}_enter, pins: {library}_pins,
        eval: {library}_eval, edges: {library}_edges, clock: {library}_clock, step: {library}_step, memory: {library}_memory,
        error: {library}_error, clear_error: {library}_clear_error, trace: {trace} }},
"
        )
        .unwrap();
    }
    let functions = if functions.is_empty() {
        functions
    } else {
        // No model has been entered through these but through `Model`, which upholds their rules.
        format!("unsafe extern \"C\" {{\n{functions}}}\n")
    };
    format!(
        "{functions}
/// Verilator's version, as the headers say that the models were compiled against.
pub(crate) const VERSION: &str = {version:?};
pub(crate) static ENTRIES: &[Entry] = &[
{rows}];
"
    )
}
