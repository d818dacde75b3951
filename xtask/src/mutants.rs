//! `cargo xtask mutants`: how many of a block's mutants its tests notice, on the block's page.
//!
//! ```text
//!   tests called …mutants…, POSTHORN_MUTANTS=target/mutants ─► target/mutants/MODEL.txt ─► <!-- mutants: MODEL … -->
//! ```
//!
//! A test of a block runs on each of its mutants (`hdl/tests/support/broken.rs`), and writes its score and the names of those
//! that it doesn't notice. A survivor is a hint, not an error: some differ from the block in nothing that anybody sees. Beside the
//! scores of a page is a hash of the text that each is of, which `cargo xtask check` compares with the text as it is now.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::{book, models, paths, run, setup};

/// The line before a score on a page, with the models that it is of.
const OPEN: &str = "<!-- mutants:";
const CLOSE: &str = "<!-- /mutants -->";
/// The line behind it, with the hash of the text of each of these models' mutants.
const TEXTS: &str = "<!-- texts:";
/// The end of both.
const END: &str = "-->";

/// What a test says of the mutants of a model.
struct Score {
    noticed: usize,
    /// Those that it ran on.
    tried: usize,
    all: usize,
    survivors: Vec<String>,
    /// Hash of the text that it is of.
    text: String,
}

/// First digits of the SHA-256 of a text.
fn hash(text: &[u8]) -> String {
    let digest = Sha256::digest(text);
    digest.iter().take(8).map(|b| format!("{b:02x}")).collect()
}

/// Runs the tests of mutants, or of those of some models, and writes what they say on the pages of the blocks; with `kept` only what
/// they said last, by `cargo xtask test --long` for one.
///
/// # Errors
/// If a model can't be built, or a test fails.
pub fn run(kept: bool, models: &[String], jobs: usize) -> Result<()> {
    let folder = paths::target().join("mutants");
    fs::create_dir_all(&folder)?;
    if kept {
        return pages();
    }
    let variants: Vec<String> = match models {
        [] => {
            let tops = models::tops(&paths::target().join("tops"), &[])?;
            let names = tops.into_iter().map(|top| top.name);
            names.filter(|name| name.ends_with("_mutants")).collect()
        }
        named => named.iter().map(|name| variant(name)).collect(),
    };
    models::run(&setup::run()?, &variants, false, jobs)?;
    let mut cargo = setup::cargo();
    cargo.env("POSTHORN_MUTANTS", &folder);
    cargo.env("POSTHORN_MUTANTS_OF", models.join(" "));
    cargo.args(["test", "--package", "hdl", "--tests", "--", "mutants"]);
    let status = cargo.status().with_context(|| run::shown(&cargo))?;
    if !status.success() {
        bail!("the tests of mutants failed");
    }
    pages()
}

/// The variant of a model that has its mutants.
fn variant(model: &str) -> String {
    format!("{model}_mutants")
}

/// Tells which scores on the pages are of blocks that have changed since. That is no failure: to count takes hours.
///
/// # Errors
/// If a page has a score of a model without mutants.
pub fn check() -> Result<()> {
    let root = paths::workspace().join("docs/src");
    let mut kept = BTreeMap::new();
    for page in book::pages()? {
        kept.extend(texts(&fs::read_to_string(root.join(page))?));
    }
    let folder = paths::target().join("tops");
    let variants: Vec<String> = kept.keys().map(|model| variant(model)).collect();
    models::tops(&folder, &variants)?;
    let mut old = Vec::new();
    for (model, text) in &kept {
        let now = fs::read(folder.join(format!("{}.sv", variant(model))))?;
        if *text != hash(&now) {
            old.push(model.as_str());
        }
    }
    if !old.is_empty() {
        let old = old.join(" ");
        eprintln!(
            "These blocks have changed since their mutants were counted. To count again:\n  cargo xtask mutants {old}"
        );
        if std::env::var_os("GITHUB_ACTIONS").is_some() {
            println!("::notice title=Old scores of mutants::{old}");
        }
    }
    Ok(())
}

/// The models that have a score on a page, each with the hash of the text that it is of; empty if the page doesn't say.
fn texts(page: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for line in page.lines() {
        let within = |open| line.strip_prefix(open)?.strip_suffix(END);
        for name in within(OPEN).into_iter().flat_map(str::split_whitespace) {
            found.entry(name.to_string()).or_insert(String::new());
        }
        for pair in within(TEXTS).into_iter().flat_map(str::split_whitespace) {
            if let Some((name, hash)) = pair.split_once('=') {
                found.insert(name.to_string(), hash.to_string());
            }
        }
    }
    found
}

/// Writes the scores that are there on the pages that ask for them.
fn pages() -> Result<()> {
    let mut scores = BTreeMap::new();
    for entry in fs::read_dir(paths::target().join("mutants"))? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "txt") {
            continue;
        }
        let name = path.file_stem().and_then(|stem| stem.to_str());
        let name = name.context("a model's name is text")?.to_string();
        let text = fs::read(path.with_extension("sv")).map(|text| hash(&text));
        let score = score(&fs::read_to_string(&path)?, text.unwrap_or_default());
        scores.insert(name, score.with_context(|| path.display().to_string())?);
    }
    let root = paths::workspace().join("docs/src");
    for page in book::pages()? {
        let path = root.join(&page);
        let text = fs::read_to_string(&path).with_context(|| format!("reading {page}"))?;
        let current = filled(&text, &scores);
        if text != current {
            fs::write(&path, current).with_context(|| format!("writing {page}"))?;
        }
    }
    Ok(())
}

/// What a test has written: how many it noticed, of how many that it tried, of how many there are; then a survivor a line.
fn score(said: &str, text: String) -> Option<Score> {
    let mut lines = said.lines();
    let mut counts = lines.next()?.split(' ').map(str::parse);
    let mut count = || counts.next()?.ok();
    Some(Score {
        noticed: count()?,
        tried: count()?,
        all: count()?,
        survivors: lines.map(String::from).collect(),
        text,
    })
}

/// The page with the scores that are there. What wasn't measured stays as it is.
fn filled(page: &str, scores: &BTreeMap<String, Score>) -> String {
    let mut text = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        text.push_str(line);
        text.push('\n');
        let asked = line.strip_prefix(OPEN);
        let Some(names) = asked.and_then(|rest| rest.strip_suffix(END)) else {
            continue;
        };
        let names: Vec<&str> = names.split_whitespace().collect();
        let old: Vec<&str> = lines.by_ref().take_while(|line| *line != CLOSE).collect();
        let known: Option<Vec<_>> = names.iter().map(|name| scores.get(*name)).collect();
        match known {
            Some(known) => text.push_str(&list(&names, &known)),
            None => old.iter().for_each(|line| {
                text.push_str(line);
                text.push('\n');
            }),
        }
        text.push_str(CLOSE);
        text.push('\n');
    }
    text
}

fn list(names: &[&str], scores: &[&Score]) -> String {
    let texts = names.iter().zip(scores);
    let texts: Vec<_> = texts
        .map(|(name, score)| format!("{name}={}", score.text))
        .collect();
    let mut text = format!("{TEXTS} {} {END}\n", texts.join(" "));
    text.push_str("\n| | mutants | noticed | not noticed |\n|---|--:|--:|---|\n");
    for (name, score) in names.iter().zip(scores) {
        let survivors: Vec<String> = score
            .survivors
            .iter()
            .map(|name| format!("`{}`", name.replace('|', "or")))
            .collect();
        let _ = writeln!(
            text,
            "| `{name}` | {} | {} | {} |",
            match score.tried == score.all {
                true => score.all.to_string(),
                false => format!("{} of {}", score.tried, score.all),
            },
            score.noticed,
            survivors.join(", ")
        );
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_is_written_between_its_markers_and_what_was_not_measured_stays() {
        let page = "# A\n<!-- mutants: a -->\nold\n<!-- /mutants -->\n<!-- mutants: b -->\nkept\n<!-- /mutants -->\n";
        let a = score("3 4 4\nA.x: | is & (2)\n", "12ef".into()).unwrap();
        let filled = filled(page, &BTreeMap::from([("a".to_string(), a)]));
        assert!(
            filled.contains("| `a` | 4 | 3 | `A.x: or is & (2)` |\n"),
            "{filled}"
        );
        assert!(filled.contains("kept\n") && !filled.contains("old\n"));
        let known = [("a", "12ef"), ("b", "")].map(|(a, b)| (a.to_string(), b.to_string()));
        assert_eq!(texts(&filled), BTreeMap::from(known));
        let score = |said| score(said, String::new());
        assert!(score("many\n").is_none() && score("3 4\n").is_none());
        let sampled = score("3 4 90\n").unwrap();
        assert!(list(&["b"], &[&sampled]).contains("| `b` | 4 of 90 | 3 |"));
    }
}
