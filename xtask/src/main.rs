//! Set-up, Verilog generation, models, checks: everything that takes more than one cargo command.
//!
//! Light on purpose: it is what a fresh clone compiles first.

mod manifest;
mod models;
mod paths;
mod prerequisites;
mod progress;
mod registers;
mod run;
mod setup;
mod shim;
mod verilate;

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;

use anyhow::Result;
use clap::{Parser, Subcommand};

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

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

fn task(task: Task) -> Result<()> {
    match task {
        Task::Setup => setup::run().map(drop),
        Task::Verilog { out, names } => models::verilog(&std::path::absolute(out)?, &names),
        Task::Registers { check } => registers::run(&paths::workspace(), check),
        Task::Models { trace, jobs, names } => {
            models::run(&setup::run()?, &names, trace, jobs.unwrap_or_else(cores))
        }
    }
}
