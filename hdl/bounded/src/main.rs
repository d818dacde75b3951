//! Makes a bounded proof: `bounded NAME.aig NAME.map --cycles N --first reset --held port=number`.
//!
//! Prints `proved`, or the inputs that make a check fail, a line a cycle, and then `fails: ` and the check. The status is that
//! of a program that has done its work in both cases.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use bounded::circuit::{Circuit, Names};
use bounded::search::{Held, Verdict, search, told};
use clap::Parser;

/// A bounded proof of a circuit.
#[derive(Parser)]
struct Arguments {
    /// The circuit, of `write_aiger -zinit`.
    circuit: PathBuf,
    /// Its names, of `-ywmap`.
    names: PathBuf,
    /// Cycles in which no check may fail.
    #[arg(long)]
    cycles: usize,
    /// A port that is set in the first cycle and then never.
    #[arg(long)]
    first: Vec<String>,
    /// A port that is constant, or a bit of it: `PORT=NUMBER`, `PORT[BIT]=NUMBER`.
    #[arg(long)]
    held: Vec<String>,
    /// Say which cycle has been proved.
    #[arg(long)]
    progress: bool,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let read = |path: &PathBuf| fs::read(path).with_context(|| path.display().to_string());
    let circuit = Circuit::read(&read(&arguments.circuit)?)?;
    let names = Names::read(&read(&arguments.names)?)?;
    let bits = |port: &str| {
        let bits = names.ports.get(port);
        bits.with_context(|| format!("no input is called {port}"))
    };
    let mut held = BTreeMap::new();
    for port in &arguments.first {
        held.extend(bits(port)?.iter().map(|&(_, input)| (input, Held::First)));
    }
    for text in &arguments.held {
        let (port, value) = text.split_once('=').context("PORT=NUMBER")?;
        let value: u64 = value.parse().context("the number of a held port")?;
        let (port, only) = match port.split_once('[') {
            Some((port, bit)) => (port, Some(bit.trim_end_matches(']').parse::<usize>()?)),
            None => (port, None),
        };
        for &(offset, input) in bits(port)? {
            let (shift, chosen) = match only {
                Some(bit) => (0, offset == bit),
                None => (offset, true),
            };
            if chosen {
                let bit = shift < 64 && value >> shift & 1 == 1;
                held.insert(input, Held::At(bit));
            }
        }
    }
    let verdict = search(&circuit, &held, arguments.cycles, |cycle| {
        if arguments.progress {
            eprintln!("{cycle}");
        }
    });
    match verdict {
        Verdict::Proved => println!("proved"),
        Verdict::Failed { checks, inputs } => print!("{}", told(&names, &checks, &inputs)),
    }
    Ok(())
}
