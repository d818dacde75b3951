//! Writes the Verilog of the tops: `hdl-verilog --out DIR [NAME...]`.
//!
//! Makes `DIR/NAME.sv` of each, and `DIR/tops.json`, the list that `cargo xtask models` builds
//! from. A program of its own, so that xtask needn't wait for rust-hdl to compile. With `--proofs` the same
//! for the proofs, with `DIR/proofs.json`, for `cargo xtask prove`. With `--list` in place of `--out DIR` it prints all names, and writes nothing.

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

/// Names that are suggested for one that there isn't, at most.
const SUGGESTED: usize = 5;
/// How similar they are to it at least, from 0 to 1.
const SIMILAR: f64 = 0.75;

/// The names that are most similar to one that there isn't, in words.
fn nearest(unknown: &str, known: impl Iterator<Item = &'static str>) -> String {
    let similar = known.map(|name| (strsim::jaro_winkler(unknown, name), name));
    let mut similar: Vec<_> = similar.filter(|(score, _)| *score >= SIMILAR).collect();
    // The sort is stable: of names that are as similar the first of the catalogue goes first.
    similar.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let names: Vec<_> = similar
        .iter()
        .map(|(_, name)| *name)
        .take(SUGGESTED)
        .collect();
    match names[..] {
        [] => String::new(),
        [name] => format!("; the nearest is {name}"),
        _ => format!("; the nearest are {}", names.join(", ")),
    }
}

fn run(mut arguments: impl Iterator<Item = String>) -> Result<(), Box<dyn Error>> {
    let mut out = None;
    let (mut proofs, mut lists) = (false, false);
    let mut names = Vec::new();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--out" => out = arguments.next().map(PathBuf::from),
            "--proofs" => proofs = true,
            "--list" => lists = true,
            name if !name.starts_with('-') => names.push(argument),
            other => return Err(format!("unknown option {other}").into()),
        }
    }
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
    if lists {
        all.iter().for_each(|item| println!("{}", item.name));
        return Ok(());
    }
    if let Some(unknown) = names.iter().find(|name| !seen.contains(name.as_str())) {
        let task = if proofs { "prove" } else { "models" };
        return Err(format!(
            "no {kind} is called {unknown}{}; `cargo xtask {task} --list` prints all",
            nearest(unknown, all.iter().map(|item| item.name))
        )
        .into());
    }
    let out = out.ok_or("usage: hdl-verilog (--out DIR | --list) [--proofs] [NAME...]")?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_names_of_one_that_there_is_not_are_suggested_and_a_few_only() {
        const KNOWN: [&str; 9] = [
            "prim_fifo",
            "nic_tiny",
            "nic_ecp5",
            "receive_tiny",
            "receive_tiny_broken",
            "receive_tiny_mutants",
            "receive_ecp5",
            "receive_ecp5_broken",
            "receive_many",
        ];
        let suggested = |unknown| nearest(unknown, KNOWN.into_iter());
        assert_eq!(suggested("nic_tyni"), "; the nearest is nic_tiny");
        let part = suggested("receive");
        assert_eq!(part.matches("receive_").count(), SUGGESTED, "{part}");
        assert_eq!(suggested("prim_fif"), "; the nearest is prim_fifo");
        assert_eq!(suggested("zzz"), "");
    }

    #[test]
    fn a_name_that_there_is_not_is_refused_with_how_to_list_all() {
        let refused = |arguments: &[&str]| {
            let refused = run(arguments.iter().map(ToString::to_string));
            refused.expect_err("there is none").to_string()
        };
        let said = refused(&["--out", "none", "nic_tyni"]);
        assert!(
            said.starts_with("no top is called nic_tyni; the nearest is nic_tiny; "),
            "{said}"
        );
        assert!(
            said.ends_with("; `cargo xtask models --list` prints all"),
            "{said}"
        );
        assert!(said.len() < 200, "{said}");
        let said = refused(&["--proofs", "nic_tyni"]);
        assert!(
            said.ends_with("`cargo xtask prove --list` prints all"),
            "{said}"
        );
    }
}
