//! Set-up, Verilog generation, models, checks: everything that takes more than one cargo command.
//!
//! Light on purpose: it is what a fresh clone compiles first.

mod book;
mod builds;
mod checks;
mod driver;
mod figures;
mod firmware;
mod gxx;
mod manifest;
mod models;
mod mutants;
mod paths;
mod prerequisites;
mod progress;
mod prove;
mod registers;
mod run;
mod scratch;
mod setup;
mod shim;
mod synth;
mod testing;
mod training;
mod verilate;

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, thread};

use anyhow::{Context, Result};
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use progress::Progress;
use replay_options::ReplayOptions;
use setup::Tools;

/// Work on Posthorn: set-up, models, firmware, tests, the demonstration.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Fetch the tools at their pinned versions (into .tools, or $POSTHORN_TOOLS_DIR)
    Setup,
    /// Write the SystemVerilog of the tops
    Verilog {
        /// Folder for the texts and their list, tops.json
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// Tops to write; all if none is named
        names: Vec<String>,
    },
    /// Write the book's pages of registers, layouts, commands and codes
    Registers {
        /// Only see whether the pages are current
        #[arg(long)]
        check: bool,
    },
    /// Measure cells, block RAMs and Fmax of tops on ECP5
    Synth {
        /// Place and route as well, for Fmax
        #[arg(long)]
        place: bool,
        /// Print the `synth` suite as JSON
        #[arg(long)]
        json: bool,
        /// Minutes that placing and routing may take, for each top
        #[arg(long, value_name = "N", default_value_t = synth::MINUTES, requires = "place")]
        minutes: u64,
        /// Seed of the placer, in place of that of the kept figures: another gives a few per cent more or less
        #[arg(long, value_name = "N", requires = "place")]
        seed: Option<u32>,
        /// Keep the figures in hdl/figures.json, and show them on the pages of the blocks
        #[arg(long)]
        write: bool,
        /// Only see whether a kept figure has jumped; measures what has changed
        #[arg(long, conflicts_with_all = ["write", "place", "json", "names"])]
        check: bool,
        /// Tops to measure, or `matching` for the matching engine in both sizes
        names: Vec<String>,
    },
    /// Prove with a solver what holds of blocks, and that broken ones are found out
    Prove {
        /// Prove only; leave the broken ones out
        #[arg(long)]
        sound: bool,
        /// Print the names of all, and prove none
        #[arg(long, conflicts_with_all = ["sound", "names"])]
        list: bool,
        /// Proofs to make; all if none is named
        names: Vec<String>,
    },
    /// Count the mutants of blocks that their tests notice, and write the scores on the blocks' pages
    Mutants {
        /// Run nothing; write what was said last
        #[arg(long)]
        kept: bool,
        /// Program of hdl/tests that counts them, as `prim`: no other is built
        #[arg(long, value_name = "NAME")]
        test: Option<String>,
        /// Blocks to count, by the model that their test opens, as `prim_fifo`; all if none is named
        names: Vec<String>,
    },
    /// Build the Verilated models that changed
    Models {
        /// Build the variants that can write waveforms
        #[arg(long)]
        trace: bool,
        /// Print the names of all, those too that are built only if they are named, and build none
        #[arg(long, conflicts_with_all = ["trace", "jobs", "names"])]
        list: bool,
        /// Programs to run at a time [default: one per core]
        #[arg(long, short, value_name = "N")]
        jobs: Option<usize>,
        /// Models to build; all if none is named
        names: Vec<String>,
    },
    /// Build the card's firmware, and the list that is measured beside it, into target/firmware
    Firmware,
    /// Run the driver that was written from the book, in Python, against the gates
    Driver,
    /// Run every test, after building what they need
    Test {
        /// Also the tests that take long
        #[arg(long)]
        long: bool,
        /// For the test programs: a part of the names of the tests to run, options
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
    /// Replay a real application's messages through simulated cards, after building what they need
    Demo {
        /// Recorded trace (.csv.zst) [default: LULESH on 8 ranks]
        trace: Option<PathBuf>,
        #[command(flatten)]
        options: ReplayOptions,
    },
    /// Check formatting, lints and generated pages, and say which blocks have jumped in size
    Check,
    /// Write the book as web pages into docs/book
    Book,
}

fn main() -> ExitCode {
    match task(Arguments::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The recording that the demonstration replays: LULESH on 8 ranks.
const DEMO_TRACE: &str = "traces/lulesh-8.csv.zst";

/// Models that only the tests that take long want, beside the variants with mutants.
const MODELS_OF_LONG_TESTS: [&str; 2] = ["lists_many", "lists_wide"];

/// What a test wants a waveform of.
const TRACED_IN_TESTS: [&str; 2] = ["fixture_counter", "nic_tiny"];

/// All that the workspace's programs need to run: the models named, or all, and the firmware.
fn prepare(names: &[String]) -> Result<Tools> {
    let tools = setup::run()?;
    models::run(&tools, names, false, cores())?;
    firmware::build()?;
    Ok(tools)
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Builds `posthorn`: minutes of compiling, the first time.
fn compile_replay() -> Result<()> {
    let progress = Progress::spinner("Compiling the replay");
    let mut cargo = setup::cargo();
    cargo.args(["build", "--package", "posthorn"]);
    run::watched(&mut cargo, |line| progress.doing(line.trim()))
}

/// Replays `trace`, or [`DEMO_TRACE`], with the options as they were given: what is wrong with them or with the files that
/// they name is said before anything is built.
fn demo(trace: Option<&Path>, options: &ReplayOptions) -> Result<()> {
    if let Err(reason) = options.cycles() {
        let mut all = Arguments::command();
        all.build();
        let demo = all.find_subcommand_mut("demo").expect("one of them");
        demo.error(ErrorKind::ValueValidation, reason).exit();
    }
    options.check_files(trace).map_err(anyhow::Error::msg)?;
    let card = [format!("nic_{}", options.config)];
    let tools = prepare(&card)?;
    if options.waves.is_some() {
        models::run(&tools, &card, true, cores())?;
    }
    compile_replay()?;
    let mut replay = setup::cargo();
    // Files are named as seen from here.
    replay.current_dir(env::current_dir()?);
    replay.args(["run", "--quiet", "--package", "posthorn", "--", "replay"]);
    if trace.is_none() {
        replay.arg(paths::workspace().join(DEMO_TRACE));
    }
    let given = env::args_os().skip_while(|word| word != "demo").skip(1);
    // In place of this process, so that Ctrl-C reaches the command alone.
    Err(replay.args(given).exec()).context("can't start cargo")
}

fn task(task: Task) -> Result<()> {
    match task {
        Task::Setup => setup::run().map(drop),
        Task::Verilog { out, names } => models::verilog(&std::path::absolute(out)?, &names),
        Task::Registers { check } => registers::run(&paths::workspace(), check),
        Task::Synth { check: true, .. } => figures::check(),
        Task::Synth {
            place,
            minutes,
            seed,
            json,
            write,
            names,
            ..
        } => synth::run(
            &names,
            place.then_some(synth::Attempt { minutes, seed }),
            json,
            write,
        ),
        Task::Mutants { kept, test, names } => mutants::run(kept, &names, test.as_deref(), cores()),
        Task::Prove { list: true, .. } => models::list(true),
        Task::Prove { sound, names, .. } => prove::run(&names, !sound, cores()),
        Task::Models { list: true, .. } => models::list(false),
        Task::Models {
            trace, jobs, names, ..
        } => models::run(&setup::run()?, &names, trace, jobs.unwrap_or_else(cores)),
        Task::Firmware => {
            setup::run()?;
            firmware::build().map(drop)
        }
        Task::Driver => {
            let count = driver::run(&setup::run()?, cores())?;
            println!("{} passed, {} failed", count.passed, count.failed);
            anyhow::ensure!(count.failed == 0, "the driver's tests failed");
            Ok(())
        }
        Task::Test { long, rest } => {
            testing::check(&rest)?;
            let tools = prepare(&[])?;
            let mut before = driver::Count::default();
            if long {
                before = driver::run(&tools, cores())?;
                prove::run(&[], true, cores())?;
                let mut long = mutants::variants()?;
                long.extend(MODELS_OF_LONG_TESTS.map(String::from));
                models::run(&tools, &long, false, cores())?;
            }
            let traced = TRACED_IN_TESTS.map(String::from);
            models::run(&tools, &traced, true, cores())?;
            testing::run(long, &rest, before)
        }
        Task::Demo { trace, options } => demo(trace.as_deref(), &options),
        Task::Check => checks::run(),
        Task::Book => book::run(),
    }
}
