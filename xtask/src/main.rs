//! Set-up, Verilog generation, models, checks: everything that takes more than one cargo command.
//!
//! Light on purpose: it is what a fresh clone compiles first.

mod book;
mod checks;
mod figures;
mod firmware;
mod manifest;
mod models;
mod paths;
mod prerequisites;
mod progress;
mod prove;
mod registers;
mod run;
mod setup;
mod shim;
mod synth;
mod testing;
mod verilate;

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
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
    /// Write the book's page of registers, layouts and codes
    Registers {
        /// Only see whether the page is current
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
        /// Keep the figures in hdl/figures.json, and show them on the pages of the blocks
        #[arg(long)]
        write: bool,
        /// Only see whether a kept figure has jumped; measures what has changed
        #[arg(long, conflicts_with_all = ["write", "place", "json", "names"])]
        check: bool,
        /// Tops to measure
        names: Vec<String>,
    },
    /// Prove with a solver what holds of blocks, and that broken ones are found out
    Prove {
        /// Prove only; leave the broken ones out
        #[arg(long)]
        sound: bool,
        /// Proofs to make; all if none is named
        names: Vec<String>,
    },
    /// Build the Verilated models that changed
    Models {
        /// Build the variants that can write waveforms
        #[arg(long)]
        trace: bool,
        /// Programs to run at a time [default: one per core]
        #[arg(long, short, value_name = "N")]
        jobs: Option<usize>,
        /// Models to build; all if none is named
        names: Vec<String>,
    },
    /// Build the card's firmware, and the list that is measured beside it, into target/firmware
    Firmware,
    /// Run every test, after building what they need
    Test {
        /// Also the tests that take long
        #[arg(long)]
        long: bool,
        /// For the test programs: a part of the names of the tests to run, options
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
    /// Replay a real application's messages through simulated cards
    Demo {
        /// For `posthorn replay`: see its --help
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
    /// Check formatting, lints, generated pages, and that no block has jumped in size
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

/// The configuration of its cards, unless another one is asked for.
const DEMO_CONFIG: &str = "ecp5";

/// What a test wants a waveform of.
const TRACED_IN_TESTS: [&str; 2] = ["fixture_counter", "nic_tiny"];

/// The configuration that arguments of `posthorn replay` ask for.
fn configuration(arguments: &[String]) -> &str {
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if argument == "--config" {
            return arguments.next().map_or(DEMO_CONFIG, String::as_str);
        }
        if let Some(name) = argument.strip_prefix("--config=") {
            return name;
        }
    }
    DEMO_CONFIG
}

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

fn task(task: Task) -> Result<()> {
    match task {
        Task::Setup => setup::run().map(drop),
        Task::Verilog { out, names } => models::verilog(&std::path::absolute(out)?, &names),
        Task::Registers { check } => registers::run(&paths::workspace(), check),
        Task::Synth { check: true, .. } => figures::check(),
        Task::Synth {
            place,
            minutes,
            json,
            write,
            names,
            ..
        } => synth::run(&names, place.then_some(minutes), json, write),
        Task::Prove { sound, names } => prove::run(&names, !sound, cores()),
        Task::Models { trace, jobs, names } => {
            models::run(&setup::run()?, &names, trace, jobs.unwrap_or_else(cores))
        }
        Task::Firmware => {
            setup::run()?;
            firmware::build().map(drop)
        }
        Task::Test { long, rest } => {
            let tools = prepare(&[])?;
            if long {
                prove::run(&[], true, cores())?;
            }
            let traced = TRACED_IN_TESTS.map(String::from);
            models::run(&tools, &traced, true, cores())?;
            testing::run(long, &rest)
        }
        Task::Demo { rest } => {
            let card = [format!("nic_{}", configuration(&rest))];
            let tools = prepare(&card)?;
            if rest.iter().any(|argument| argument.starts_with("--waves")) {
                models::run(&tools, &card, true, cores())?;
            }
            let mut replay = setup::cargo();
            replay.args([
                "run",
                "--quiet",
                "--package",
                "posthorn",
                "--",
                "replay",
                DEMO_TRACE,
            ]);
            // In place of this process, so that Ctrl-C reaches the command alone.
            Err(replay.args(rest).exec()).context("can't start cargo")
        }
        Task::Check => checks::run(),
        Task::Book => book::run(),
    }
}
