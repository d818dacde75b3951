//! Runs printed kernels in Verilator, many in one model, and counts where they differ from
//! rust-hdl's simulation.
//!
//! ```text
//!   kernels' text ─┐
//!   module batch  ─┴► verilator ─► C++ ─┐
//!                          main.cpp ────┴► g++ ─► program ◄─ vectors on its standard input
//!                                                    └─► mismatches of each kernel
//! ```
//!
//! A model is kept under the hash of its text and of the tool, so that only what changed is built
//! again. This drives Verilator itself and needs nothing of the rest of the workspace: the printer
//! and its proof are to stand alone.

use crate::kernel::{Case, Vector};
use num_bigint::BigUint;
use std::collections::hash_map::DefaultHasher;
use std::fmt::Write as _;
use std::hash::{Hash, Hasher};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

/// A Verilator and where models are kept.
pub struct Verilator {
    root: PathBuf,
    cache: PathBuf,
    version: String,
}

/// What a model said about one kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Name of the kernel.
    pub kernel: &'static str,
    /// How many inputs were tried.
    pub tried: u64,
    /// How many outputs differed.
    pub mismatches: u64,
    /// Number of the first input whose output differed.
    pub first: Option<u64>,
}

impl Verilator {
    /// The pinned Verilator, among the [`tools`].
    ///
    /// # Panics
    /// If it isn't there.
    pub fn find() -> Self {
        let tools = tools();
        let root = find_package(&tools).unwrap_or_else(|| {
            panic!(
                "no Verilator under {}; run `cargo xtask setup`",
                tools.display()
            )
        });
        let version = std::fs::read_to_string(root.join("include/verilated_config.h"))
            .expect("the package has its headers");
        let cache = folder("CARGO_TARGET_DIR", "target").join("kernels");
        std::fs::create_dir_all(&cache).expect("the target folder can be written");
        Verilator {
            root,
            cache,
            version,
        }
    }

    /// The folder in which models and answers are kept.
    pub fn cache(&self) -> &Path {
        &self.cache
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.root.join("bin/verilator_bin"));
        command.env("VERILATOR_ROOT", &self.root);
        command
    }

    /// What Verilator has to say about a text under all warnings; empty if nothing. It writes C++
    /// for that: circles, for one, are found only then.
    pub fn lint(&self, text: &str, top: &str) -> String {
        let (_, said) = self.check(
            text,
            Some(top),
            &["--cc", "-Wall", "-Wno-fatal", "--assert"],
        );
        said
    }

    /// What Verilator has to say about each of these texts, as [`Verilator::lint`], with its top; those of which it says nothing are left out. No module may stand
    /// in two of them: it reads all at once, which takes it little longer than one, and each alone only if it says something.
    pub fn lint_all(&self, texts: &[(String, &str)]) -> Vec<String> {
        let all: String = texts.iter().map(|(text, _)| text.as_str()).collect();
        // Each text has a top.
        let flags = ["--cc", "-Wall", "-Wno-fatal", "-Wno-MULTITOP", "--assert"];
        let (legal, said) = self.check(&all, None, &flags);
        if legal && said.is_empty() {
            return Vec::new();
        }
        let alone = texts.iter().map(|(text, top)| self.lint(text, top));
        let said_alone: Vec<String> = alone.filter(|said| !said.is_empty()).collect();
        match said_alone.is_empty() {
            true => vec![said],
            false => said_alone,
        }
    }

    /// Whether a text is legal at all.
    pub fn is_legal(&self, text: &str, top: &str) -> bool {
        let quiet = ["--lint-only", "-Wno-fatal", "-Wno-lint", "-Wno-style"];
        let (legal, _) = self.check(text, Some(top), &quiet);
        legal
    }

    /// Whether Verilator takes a text, and what it says. Both are kept for the next time.
    fn check(&self, text: &str, top: Option<&str>, flags: &[&str]) -> (bool, String) {
        let hash = self.hash(&[text, top.unwrap_or_default(), &flags.join(" ")]);
        let answer = self.cache.join(format!("answer-{hash}"));
        if let Ok(known) = std::fs::read_to_string(&answer) {
            let (legal, said) = known.split_once('\n').expect("written so below");
            return (legal == "legal", said.to_string());
        }
        let folder = self.scratch(&answer);
        std::fs::write(folder.join("text.sv"), text).expect("it is ours");
        let output = self
            .command()
            .current_dir(&folder)
            .args(["--no-timing", "--Mdir", "."])
            .args(top.map(|top| ["--top-module", top]).into_iter().flatten())
            .args(flags)
            .arg("text.sv")
            .output()
            .expect("Verilator runs");
        let _ = std::fs::remove_dir_all(&folder);
        let errors = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<&str> = errors.lines().filter(|l| !l.starts_with("- ")).collect();
        let (legal, said) = (output.status.success(), lines.join("\n"));
        let word = if legal { "legal" } else { "illegal" };
        std::fs::write(answer, format!("{word}\n{said}")).expect("it is ours");
        (legal, said)
    }

    /// A new folder beside `target`, which nobody else has.
    fn scratch(&self, target: &Path) -> PathBuf {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = target.with_extension(format!("{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("the target folder can be written");
        folder
    }

    /// Runs kernels on vectors. `text` holds a module of each kernel under its name.
    ///
    /// # Panics
    /// If Verilator or g++ refuse the text, with their words.
    pub fn run(&self, name: &str, text: &str, kernels: &[(&Case, &[Vector])]) -> Vec<Outcome> {
        let cases: Vec<&Case> = kernels.iter().map(|(case, _)| *case).collect();
        let output = run_program(&self.build(name, text, &cases), encode(kernels));
        assert!(output.status.success(), "model {name}: {}", output.status);
        let text = String::from_utf8(output.stdout).expect("the model prints numbers");
        let lines = text.lines().zip(kernels);
        let outcomes: Vec<Outcome> = lines
            .map(|(line, (case, vectors))| {
                let numbers: Vec<u64> = line.split(' ').filter_map(|n| n.parse().ok()).collect();
                assert_eq!(
                    numbers[0],
                    vectors.len() as u64,
                    "{} lost inputs",
                    case.name
                );
                Outcome {
                    kernel: case.name,
                    tried: numbers[0],
                    mismatches: numbers[1],
                    first: (numbers[1] > 0).then_some(numbers[2]),
                }
            })
            .collect();
        assert_eq!(outcomes.len(), kernels.len(), "model {name} lost kernels");
        outcomes
    }

    /// What a model says when kernels run on vectors, and then ends by an error.
    ///
    /// # Panics
    /// If it ends well.
    pub fn complaint(&self, name: &str, text: &str, kernels: &[(&Case, &[Vector])]) -> String {
        let cases: Vec<&Case> = kernels.iter().map(|(case, _)| *case).collect();
        let output = run_program(&self.build(name, text, &cases), encode(kernels));
        assert!(!output.status.success(), "model {name} has no complaint");
        let said = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&said).into_owned()
    }

    fn build(&self, name: &str, text: &str, cases: &[&Case]) -> PathBuf {
        let text = format!("{text}\n{}", batch(cases));
        let main = main_cpp(cases);
        let folder = self
            .cache
            .join(format!("{name}-{}", self.hash(&[&text, &main])));
        let program = folder.join("batch");
        if program.exists() {
            return program;
        }
        let scratch = self.scratch(&folder);
        std::fs::write(scratch.join("batch.sv"), text).expect("it is ours");
        std::fs::write(scratch.join("main.cpp"), main).expect("it is ours");
        self.verilate(&scratch);
        let runtime = self.runtime();
        let mut compiler = self.compiler();
        compiler
            .current_dir(&scratch)
            .args(["-O0", "all.cpp", "main.cpp"])
            .args(&runtime)
            .args(["-o", "batch", "-pthread", "-latomic"]);
        expect_success("g++", &mut compiler);
        // Somebody else may have been faster; theirs is the same.
        if std::fs::rename(&scratch, &folder).is_err() {
            let _ = std::fs::remove_dir_all(&scratch);
        }
        program
    }

    fn verilate(&self, folder: &Path) {
        let mut verilator = self.command();
        verilator
            .current_dir(folder)
            .args(["--cc", "--prefix", "Vbatch", "--top-module", "batch"])
            .args(["--Mdir", ".", "--assert", "--no-timing", "--quiet-stats"])
            // Warnings have a test of their own; stock text is full of them.
            .args(["-Wno-fatal", "-Wno-lint", "-Wno-style", "batch.sv"]);
        expect_success("verilator", &mut verilator);
        // One compilation: reading Verilator's headers costs a second each time.
        let sources = std::fs::read_dir(folder).expect("it was written just now");
        let mut names: Vec<String> = sources
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name.starts_with("Vbatch") && name.ends_with(".cpp"))
            .collect();
        names.sort();
        let all: String = names
            .iter()
            .map(|n| format!("#include \"{n}\"\n"))
            .collect();
        std::fs::write(folder.join("all.cpp"), all).expect("it is ours");
    }

    /// Object files of Verilator's runtime.
    fn runtime(&self) -> Vec<PathBuf> {
        let include = self.root.join("include");
        let objects = ["verilated", "verilated_threads"].map(|name| {
            let object = self.cache.join(format!("{name}-{}.o", self.hash(&[])));
            if !object.exists() {
                let scratch = self.scratch(&object).join("object.o");
                let mut compiler = self.compiler();
                compiler
                    .args(["-O1", "-c", "-o"])
                    .arg(&scratch)
                    .arg(include.join(format!("{name}.cpp")));
                expect_success("g++", &mut compiler);
                std::fs::rename(&scratch, &object).expect("it was made just now");
                let _ = std::fs::remove_dir(scratch.parent().expect("it is in a folder"));
            }
            object
        });
        objects.to_vec()
    }

    fn compiler(&self) -> Command {
        let include = self.root.join("include");
        let mut compiler = Command::new("g++");
        compiler
            .args(["-std=gnu++17", "-w", "-I."])
            .arg("-I")
            .arg(&include)
            .arg("-I")
            .arg(include.join("vltstd"));
        compiler
    }

    fn hash(&self, texts: &[&str]) -> String {
        let mut hasher = DefaultHasher::new();
        // This file is the recipe.
        include_str!("verilator.rs").hash(&mut hasher);
        self.version.hash(&mut hasher);
        texts.hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    }
}

/// Where the tools are: `$POSTHORN_TOOLS_DIR`, or `.tools` at the root of the workspace.
pub fn tools() -> PathBuf {
    folder("POSTHORN_TOOLS_DIR", ".tools")
}

/// The folder that a variable names, or `default` at the root of the workspace.
fn folder(variable: &str, default: &str) -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("hdl/kernels lies in the workspace");
    match std::env::var_os(variable) {
        Some(dir) if !dir.is_empty() => workspace.join(dir),
        _ => workspace.join(default),
    }
}

fn find_package(tools: &Path) -> Option<PathBuf> {
    let versions = std::fs::read_dir(tools.join("venv/lib")).ok()?;
    versions
        .filter_map(|entry| Some(entry.ok()?.path().join("site-packages/verilator")))
        .find(|root| root.join("bin/verilator_bin").exists())
}

/// Runs a model with `input`, which it may leave unread when it fails.
fn run_program(program: &Path, input: Vec<u8>) -> Output {
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the model runs");
    let mut stdin = child.stdin.take().expect("it was asked for");
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().expect("the model ends");
    let written = writer.join().expect("the writer doesn't panic");
    assert!(
        written.is_ok() || !output.status.success(),
        "the model didn't read all of its input"
    );
    output
}

fn expect_success(what: &str, command: &mut Command) {
    let output = command.output().unwrap_or_else(|e| panic!("{what}: {e}"));
    assert!(
        output.status.success(),
        "{what} failed: {command:?}\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Ports wider than 64 bits are arrays of words in C++, whatever their width; so all are made that
/// wide, and one loop serves every kernel.
fn port_width(width: usize) -> usize {
    (width.div_ceil(32) * 32).max(96)
}

fn input_width(case: &Case) -> usize {
    case.inputs.iter().map(|(_, width)| width).sum()
}

/// The module `batch`, with an instance of each kernel between plain vectors.
fn batch(cases: &[&Case]) -> String {
    let mut ports = vec!["input wire clock".to_string()];
    let mut body = String::new();
    for (k, case) in cases.iter().enumerate() {
        let (input, output) = (input_width(case), case.output_width);
        ports.push(format!("input wire [{}:0] in_{k}", port_width(input) - 1));
        ports.push(format!(
            "output wire [{}:0] out_{k}",
            port_width(output) - 1
        ));
        let mut connections = vec![format!(".o(out_{k}[{}:0])", output - 1)];
        if case.clocked {
            connections.push(".clock(clock)".to_string());
        }
        let mut at = 0;
        for (name, width) in &case.inputs {
            connections.push(format!(".{name}(in_{k}[{}:{at}])", at + width - 1));
            at += width;
        }
        writeln!(body, "  {} k{k} ({});", case.name, connections.join(", ")).unwrap();
        let top = port_width(output);
        if top > output {
            writeln!(body, "  assign out_{k}[{}:{output}] = 0;", top - 1).unwrap();
        }
    }
    format!(
        "module batch (\n  {}\n);\n{body}endmodule\n",
        ports.join(",\n  ")
    )
}

/// Reads, for each kernel, how many vectors it has; then the vectors, one of each kernel in turn.
fn main_cpp(cases: &[&Case]) -> String {
    let mut table = String::new();
    for (k, case) in cases.iter().enumerate() {
        let input = port_width(input_width(case)) / 32;
        let output = port_width(case.output_width) / 32;
        writeln!(
            table,
            "    {{&t->in_{k}[0], {input}, &t->out_{k}[0], {output}}},"
        )
        .unwrap();
    }
    format!(
        r#"#include "Vbatch.h"
#include <cstdio>
#include <cstring>
#include <unistd.h>
#include <vector>

struct Kernel {{
    EData* in;
    int in_words;
    EData* out;
    int out_words;
    uint64_t vectors = 0, mismatches = 0, first = 0;
}};

static void get(void* to, size_t bytes) {{
    if (fread(to, 1, bytes, stdin) != bytes) exit(2);
}}

int main() {{
    VerilatedContext context;
    Vbatch* t = new Vbatch(&context);
    std::vector<Kernel> kernels = {{
{table}    }};
    uint64_t longest = 0;
    for (Kernel& k : kernels) {{
        get(&k.vectors, 8);
        if (k.vectors > longest) longest = k.vectors;
    }}
    std::vector<std::vector<EData>> expected(kernels.size());
    for (uint64_t i = 0; i < longest; i++) {{
        for (size_t j = 0; j < kernels.size(); j++) {{
            Kernel& k = kernels[j];
            if (i >= k.vectors) continue;
            get(k.in, 4 * k.in_words);
            expected[j].resize(k.out_words);
            get(expected[j].data(), 4 * k.out_words);
        }}
        t->clock = 0;
        t->eval();
        t->clock = 1;
        t->eval();
        for (size_t j = 0; j < kernels.size(); j++) {{
            Kernel& k = kernels[j];
            if (i >= k.vectors || !memcmp(k.out, expected[j].data(), 4 * k.out_words)) continue;
            if (!k.mismatches++) k.first = i;
        }}
    }}
    for (Kernel& k : kernels) {{
        printf("%llu %llu %llu\n", (unsigned long long)k.vectors,
               (unsigned long long)k.mismatches, (unsigned long long)k.first);
    }}
    fflush(stdout);
    _exit(context.gotError() ? 3 : 0);
}}
"#
    )
}

/// The vectors as the model reads them.
fn encode(kernels: &[(&Case, &[Vector])]) -> Vec<u8> {
    let mut bytes = vec![];
    for (_, vectors) in kernels {
        bytes.extend((vectors.len() as u64).to_le_bytes());
    }
    let longest = kernels.iter().map(|(_, v)| v.len()).max().unwrap_or(0);
    for i in 0..longest {
        for (case, vectors) in kernels {
            let Some(vector) = vectors.get(i) else {
                continue;
            };
            put(&mut bytes, &vector.input, port_width(input_width(case)));
            put(&mut bytes, &vector.output, port_width(case.output_width));
        }
    }
    bytes
}

fn put(bytes: &mut Vec<u8>, value: &BigUint, width: usize) {
    let mut padded = value.to_bytes_le();
    padded.resize(width / 8, 0);
    bytes.extend(padded);
}
