//! g++: its flags, and how much it is to do.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex};

use anyhow::Result;

use crate::scratch::Scratch;
use crate::setup::Tools;
use crate::{paths, run};

/// Flags of everything that is linked with the models' runtime.
pub const FLAGS: &[&str] = &[
    "-std=gnu++17",
    "-fPIC",
    "-w",
    "-DVM_SC=0",
    "-DVM_COVERAGE=0",
];

/// How much g++ is to do for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// It runs once.
    Once,
    /// It runs for a moment.
    Little,
    /// It runs for long, and nobody knows which way its branches go.
    Much,
    /// As [`Effort::Trained`], and counts which way its branches go.
    Counting,
    /// It runs for long, and the counts of its run as [`Effort::Counting`] lie beside its object: what is seldom done stands apart from what
    /// each cycle does. A model is more code than the processor's caches hold, so that this makes it some 40 % faster, where
    /// [`Effort::Much`] takes g++ longer and makes it hardly faster.
    Trained,
}

impl Effort {
    /// Its flags.
    pub const fn flags(self) -> &'static [&'static str] {
        match self {
            Effort::Once => &["-O0"],
            Effort::Little => &["-O1"],
            Effort::Much => &["-O2"],
            Effort::Counting => &["-O1", "-fprofile-generate"],
            Effort::Trained => &["-O1", "-fprofile-use", "-fprofile-partial-training"],
        }
    }
}

/// Whether this g++ knows what training needs: GCC from version 10 on does, and clang, which is called g++ on some machines, doesn't.
pub fn can_train() -> bool {
    static CAN: LazyLock<bool> = LazyLock::new(|| {
        let mut command = Command::new("g++");
        command.args(Effort::Trained.flags());
        command.args(["-fsyntax-only", "-x", "c++", "/dev/null"]);
        run::output(&mut command).is_ok()
    });
    *CAN
}

/// g++ with all flags but those that name files.
fn gxx(tools: &Tools, effort: Effort, traced: bool) -> Command {
    let root = tools.verilator_root().join("include");
    let trace = u8::from(traced);
    let mut command = Command::new("g++");
    command
        .args(FLAGS)
        .args(effort.flags())
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
///
/// # Errors
/// With the words of g++.
pub fn compile(
    tools: &Tools,
    source: &Path,
    object: &Path,
    include: (&[&Path], Option<&Path>),
    effort: Effort,
    traced: bool,
) -> Result<()> {
    let mut command = gxx(tools, effort, traced);
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

/// Links `objects` into `program`, which keeps the counts of what was compiled as [`Effort::Counting`].
///
/// # Errors
/// With the words of g++.
pub fn link(objects: &[PathBuf], program: &Path) -> Result<()> {
    let mut command = Command::new("g++");
    command.args(Effort::Counting.flags()).args(objects);
    command.arg("-pthread").arg("-o").arg(program);
    run::output(&mut command).map(drop)
}

/// Packs `objects` into `library`.
///
/// # Errors
/// With the words of `ar`.
pub fn archive(objects: &[PathBuf], library: &Path) -> Result<()> {
    run::output(Command::new("ar").arg("rcs").arg(library).args(objects)).map(drop)
}

/// Verilator's headers as g++ keeps them when it has read them once: a file then takes a quarter of a second for them, not a whole one.
pub struct Headers<'a> {
    tools: &'a Tools,
    scratch: Scratch,
    /// Efforts for which there is one, and its file without `.gch`.
    kept: Mutex<Vec<(Effort, PathBuf)>>,
}

impl<'a> Headers<'a> {
    /// None yet.
    ///
    /// # Errors
    /// If there is no folder for them.
    pub fn new(tools: &'a Tools) -> Result<Self> {
        Ok(Self {
            tools,
            scratch: Scratch::new(&paths::model_cache().join("headers"))?,
            kept: Mutex::default(),
        })
    }

    /// What a file is to include first, as models without waveforms see it. g++ takes it only where all flags are the same, so there is one for
    /// each effort.
    ///
    /// # Errors
    /// With the words of g++.
    pub fn at(&self, effort: Effort) -> Result<PathBuf> {
        let mut kept = self.kept.lock().expect("no holder panics");
        if let Some((_, file)) = kept.iter().find(|(of, _)| *of == effort) {
            return Ok(file.clone());
        }
        let file = self.scratch.path.join(format!("headers{}.h", kept.len()));
        fs::write(&file, "#include \"verilated.h\"\n")?;
        let mut command = gxx(self.tools, effort, false);
        command.args(["-x", "c++-header"]).arg(&file);
        command.arg("-o").arg(file.with_extension("h.gch"));
        run::output(&mut command)?;
        kept.push((effort, file.clone()));
        Ok(file)
    }
}
