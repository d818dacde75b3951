//! Writes the Verilog of the tops: `hdl-verilog --out DIR [NAME...]`.
//!
//! Makes `DIR/NAME.sv` of each, and `DIR/tops.json`, the list that `cargo xtask models` builds
//! from. A program of its own, so that xtask needn't wait for rust-hdl to compile. With `--proofs` the same
//! for the proofs, with `DIR/proofs.json`, for `cargo xtask prove`.

use std::collections::HashSet;
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use std::{env, fs};

use hdl::catalogue;
use hdl::proofs::{Method, Proof};
use hdl::tops::{Text, Top, refusal};

fn main() -> ExitCode {
    match run(env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hdl-verilog: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What is written for one name.
struct Item {
    name: &'static str,
    text: Box<dyn Fn() -> Text>,
    /// The variant that can be broken, if it has a text of its own.
    broken: Option<Box<dyn Fn() -> Text>>,
    /// Its element of the list. Names hold nothing that JSON would want escaped.
    entry: String,
}

impl From<Top> for Item {
    fn from(top: Top) -> Self {
        Item {
            name: top.name,
            entry: format!(
                r#"{{"name": "{}", "module": "{}", "class": "{:?}", "sources": {:?}}}"#,
                top.name, top.module, top.class, top.sources
            ),
            text: top.text,
            broken: None,
        }
    }
}

impl From<Proof> for Item {
    fn from(proof: Proof) -> Self {
        let (method, cycles) = match proof.method {
            Method::Bounded(cycles) => ("Bounded", cycles),
            Method::Induction(cycles) => ("Induction", cycles),
            Method::Unrolled(cycles) => ("Unrolled", cycles),
        };
        let proof = Rc::new(proof);
        let names: Vec<_> = proof.breaks.iter().map(|b| b.name).collect();
        let printed = Rc::clone(&proof);
        let broken: Box<dyn Fn() -> Text> = Box::new(move || (printed.text)(&printed.breaks));
        Item {
            name: proof.name,
            entry: format!(
                r#"{{"name": "{}", "method": "{method}", "cycles": {cycles}, "assumed": {:?}, "free_memories": {}, "breaks": {:?}, "cases": {:?}}}"#,
                proof.name, proof.assumed, proof.free_memories, names, proof.cases
            ),
            broken: (!proof.breaks.is_empty()).then_some(broken),
            text: Box::new(move || (proof.text)(&[])),
        }
    }
}

fn run(mut arguments: impl Iterator<Item = String>) -> Result<(), Box<dyn Error>> {
    let mut out = None;
    let mut proofs = false;
    let mut names = Vec::new();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--out" => out = arguments.next().map(PathBuf::from),
            "--proofs" => proofs = true,
            name if !name.starts_with('-') => names.push(argument),
            other => return Err(format!("unknown option {other}").into()),
        }
    }
    let out = out.ok_or("usage: hdl-verilog --out DIR [--proofs] [NAME...]")?;
    let (kind, all): (_, Vec<Item>) = if proofs {
        (
            "proof",
            catalogue::proofs().into_iter().map(Item::from).collect(),
        )
    } else {
        (
            "top",
            catalogue::tops().into_iter().map(Item::from).collect(),
        )
    };
    let mut seen = HashSet::new();
    for item in &all {
        if !seen.insert(item.name) {
            return Err(format!("two {kind}s are called {}", item.name).into());
        }
    }
    if let Some(unknown) = names.iter().find(|name| !seen.contains(name.as_str())) {
        let known: Vec<_> = all.iter().map(|item| item.name).collect();
        return Err(format!(
            "no {kind} is called {unknown}; there are: {}",
            known.join(", ")
        )
        .into());
    }
    fs::create_dir_all(&out)?;
    let mut list = Vec::new();
    for item in &all {
        if names.is_empty() || names.iter().any(|name| name == item.name) {
            println!("{}", item.name);
            let text = (item.text)().map_err(|error| refusal(item.name, &*error))?;
            fs::write(out.join(format!("{}.sv", item.name)), text)?;
            if let Some(broken) = &item.broken {
                let text = broken().map_err(|error| format!("{}, broken: {error}", item.name))?;
                fs::write(out.join(format!("{}_broken.sv", item.name)), text)?;
            }
            list.push(item.entry.clone());
        }
    }
    fs::write(
        out.join(format!("{kind}s.json")),
        format!("[{}]\n", list.join(",\n ")),
    )?;
    Ok(())
}
