//! From the Verilog of models to their libraries: Verilator and g++, several at a time.
//!
//! ```text
//!  Verilate ─► Compile ... ─────────────────────────────────────────► archive
//!                 └─ of what is simulated for long ─► Train ─► Compile ... ┘
//! ```

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex};
use std::thread;

use anyhow::{Context, Result, anyhow, bail};
use sha2::{Digest, Sha256};

use crate::gxx::{self, Effort, Headers};
use crate::manifest::Entry;
use crate::models::{Input, RUNTIME, Top, hex};
use crate::progress::Progress;
use crate::scratch::Scratch;
use crate::setup::Tools;
use crate::{paths, shim, training, verilate};

/// The parts of the runtime that crate `verilated` compiles; the rest is ours to compile.
const IN_VERILATED_CRATE: &[&str] = &[
    "verilated",
    "verilated_cov",
    "verilated_dpi",
    "verilated_save",
    "verilated_vcd_c",
    "verilated_vpi",
];

/// C++ up to this size goes through one g++: reading Verilator's headers costs a second each time.
pub const BATCH_BYTES: u64 = 400_000;

/// From so many models on it pays to read Verilator's headers beforehand, which takes g++ some two seconds for each effort.
const MANY: usize = 16;

/// One model to build.
pub struct Build {
    top: Top,
    verilog: PathBuf,
    /// The entry as it will be; pins are known after Verilator.
    entry: Entry,
}

impl Build {
    /// The model of `input`, which `recipe` makes, in a folder of `cache`.
    pub fn new(input: &Input, traced: bool, recipe: &str, cache: &Path) -> Self {
        let name = &input.top.name;
        let mut hash = Sha256::new();
        hash.update(recipe);
        hash.update(&input.text_hash);
        hash.update(format!(
            "{name} {traced} {:?} {:?}",
            input.top.class, input.top.module
        ));
        let effort = effort(&input.top, traced);
        if effort == Effort::Trained {
            hash.update(training::recipe());
        }
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
    pub fn known(&self) -> Option<Entry> {
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

/// What g++ does for what each evaluation of a model runs. Waveforms are for looking at, and writing one takes longer than the gates; and not each g++ can
/// train.
fn effort(top: &Top, traced: bool) -> Effort {
    match top.class.effort() {
        _ if traced => Effort::Once,
        Effort::Trained if !gxx::can_train() => Effort::Much,
        effort => effort,
    }
}

/// One run of g++.
struct Unit {
    source: PathBuf,
    effort: Effort,
}

impl Unit {
    fn object(&self) -> PathBuf {
        self.source.with_extension("o")
    }
}

/// A model on its way.
struct Progressing {
    build: Build,
    scratch: Scratch,
    units: Vec<Unit>,
    /// Units of this round of compiling that aren't done.
    missing: usize,
}

enum Job {
    Verilate(Box<Build>),
    /// Model and unit, by index.
    Compile(usize, usize),
    /// The model of this index, whose units count which way their branches go.
    Train(usize),
}

/// What the workers share.
struct Floor {
    jobs: VecDeque<Job>,
    models: Vec<Progressing>,
    running: usize,
    finished: Vec<Entry>,
    failure: Option<anyhow::Error>,
}

impl Floor {
    /// Has the units of a model compiled that `which` names.
    fn compile_all(&mut self, model: usize, which: impl Fn(&Unit) -> bool, progress: &Progress) {
        let progressing = &mut self.models[model];
        let units = (0..progressing.units.len()).rev();
        let wanted: Vec<usize> = units
            .filter(|unit| which(&progressing.units[*unit]))
            .collect();
        progressing.missing = wanted.len();
        progress.lengthen(wanted.len() as u64);
        for unit in wanted {
            // In front: what is begun gets finished first.
            self.jobs.push_front(Job::Compile(model, unit));
        }
    }
}

/// Builds `builds` with `workers` programs at a time.
///
/// # Errors
/// If Verilator or g++ refuses one.
pub fn build_all(tools: &Tools, builds: Vec<Build>, workers: usize) -> Result<Vec<Entry>> {
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
            Job::Train(model) => trained(tools, model, floor, progress),
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

    let effort = effort(&build.top, build.entry.traced);
    let units = units(&obj, &classes.fast, &classes.slow, effort)?;
    progress.advance();
    let mut guard = floor.lock().expect("no holder panics");
    let model = guard.models.len();
    guard.models.push(Progressing {
        build,
        scratch,
        missing: 0,
        units,
    });
    guard.compile_all(model, |_| true, progress);
    Ok(())
}

/// Groups the classes into files for g++.
fn units(obj: &Path, fast: &[String], slow: &[String], effort: Effort) -> Result<Vec<Unit>> {
    let first = match effort {
        Effort::Trained => Effort::Counting,
        effort => effort,
    };
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
    // What C++ could call of the gates' own, where Verilator keeps something accessible: nothing, so no evaluation runs it.
    slow.extend(fast.extract_if(.., |(file, _)| file.ends_with("__Dpi.cpp")));
    if fast.iter().chain(&slow).map(|(_, size)| size).sum::<u64>() <= BATCH_BYTES {
        fast.append(&mut slow);
    }
    let mut units = Vec::new();
    for (list, effort) in [(fast, first), (slow, Effort::Once)] {
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
            units.push(Unit { source, effort });
        }
    }
    Ok(units)
}

/// Compiles one unit; behind the last one of a model it is trained, or its library is packed.
fn compiled(
    tools: &Tools,
    headers: Option<&Headers<'_>>,
    model: usize,
    unit: usize,
    floor: &Mutex<Floor>,
    progress: &Progress,
) -> Result<()> {
    let (name, source, object, effort, traced) = {
        let guard = floor.lock().expect("no holder panics");
        let progressing = &guard.models[model];
        let unit = &progressing.units[unit];
        let entry = &progressing.build.entry;
        (
            entry.name.clone(),
            unit.source.clone(),
            unit.object(),
            unit.effort,
            entry.traced,
        )
    };
    progress.doing(&format!("{name}: g++ {}", effort.flags().join(" ")));
    let obj = source.parent().expect("a file lies in a folder");
    let fits = !traced && matches!(effort, Effort::Once | Effort::Little);
    let first = headers.filter(|_| fits);
    let first = first.map(|kept| kept.at(effort)).transpose()?;
    gxx::compile(
        tools,
        &source,
        &object,
        (&[obj], first.as_deref()),
        effort,
        traced,
    )
    .with_context(|| format!("{name}: g++ refuses what Verilator wrote"))?;
    progress.advance();

    let mut guard = floor.lock().expect("no holder panics");
    let progressing = &mut guard.models[model];
    progressing.missing -= 1;
    if progressing.missing > 0 {
        return Ok(());
    }
    let counting = |unit: &Unit| unit.effort == Effort::Counting;
    if progressing.units.iter().any(counting) {
        progress.lengthen(1);
        guard.jobs.push_front(Job::Train(model));
        return Ok(());
    }
    let objects: Vec<PathBuf> = progressing.units.iter().map(Unit::object).collect();
    let entry = progressing.build.entry.clone();
    let path = progressing.scratch.path.clone();
    let library = path.join(format!("lib{}.a", entry.library));
    gxx::archive(&objects, &library)?;
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

/// Runs a model that counts which way its branches go, and has the units that counted compiled by that.
fn trained(tools: &Tools, model: usize, floor: &Mutex<Floor>, progress: &Progress) -> Result<()> {
    let (entry, objects, obj) = {
        let guard = floor.lock().expect("no holder panics");
        let progressing = &guard.models[model];
        let objects: Vec<PathBuf> = progressing.units.iter().map(Unit::object).collect();
        let obj = progressing.scratch.path.join("cpp");
        (progressing.build.entry.clone(), objects, obj)
    };
    progress.doing(&format!("{}: training", entry.name));
    training::run(tools, &entry, objects, &obj)
        .with_context(|| format!("{}: the model doesn't run", entry.name))?;
    progress.advance();
    let mut guard = floor.lock().expect("no holder panics");
    for unit in &mut guard.models[model].units {
        if unit.effort == Effort::Counting {
            let counts = unit.source.with_extension("gcda");
            if !counts.is_file() {
                bail!("{}: no counts in {}", entry.name, counts.display());
            }
            unit.effort = Effort::Trained;
        }
    }
    guard.compile_all(model, |unit| unit.effort == Effort::Trained, progress);
    Ok(())
}
