//! Writes the Verilog of the tops: `hdl-verilog --out DIR [NAME...]`.
//!
//! Makes `DIR/NAME.sv` of each, and `DIR/tops.json`, the list that `cargo xtask models` builds
//! from. A program of its own, so that xtask needn't wait for rust-hdl to compile.

use std::collections::HashSet;
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::{env, fs};

use hdl::tops::{self, Top};

fn main() -> ExitCode {
    match run(env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hdl-verilog: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(mut arguments: impl Iterator<Item = String>) -> Result<(), Box<dyn Error>> {
    let mut out = None;
    let mut names = Vec::new();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--out" => out = arguments.next().map(PathBuf::from),
            name if !name.starts_with('-') => names.push(argument),
            other => return Err(format!("unknown option {other}").into()),
        }
    }
    let out = out.ok_or("usage: hdl-verilog --out DIR [NAME...]")?;
    let all = tops::all();
    let mut seen = HashSet::new();
    for top in &all {
        if !seen.insert(top.name) {
            return Err(format!("two tops are called {}", top.name).into());
        }
    }
    if let Some(unknown) = names.iter().find(|name| !seen.contains(name.as_str())) {
        let known: Vec<_> = all.iter().map(|top| top.name).collect();
        return Err(format!(
            "no top is called {unknown}; there are: {}",
            known.join(", ")
        )
        .into());
    }
    fs::create_dir_all(&out)?;
    let mut list = Vec::new();
    for top in &all {
        if names.is_empty() || names.iter().any(|name| name == top.name) {
            println!("{}", top.name);
            let text = (top.text)().map_err(|error| format!("{}: {error}", top.name))?;
            fs::write(out.join(format!("{}.sv", top.name)), text)?;
            list.push(entry(top));
        }
    }
    fs::write(out.join("tops.json"), format!("[{}]\n", list.join(",\n ")))?;
    Ok(())
}

/// One element of the list. Names hold nothing that JSON would want escaped.
fn entry(top: &Top) -> String {
    format!(
        r#"{{"name": "{}", "module": "{}", "class": "{:?}", "sources": {:?}}}"#,
        top.name, top.module, top.class, top.sources
    )
}
