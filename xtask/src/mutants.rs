//! `cargo xtask mutants`: how many of a block's mutants its tests notice, on the block's page.
//!
//! ```text
//!   tests called …mutants…, POSTHORN_MUTANTS=target/mutants ─► target/mutants/MODEL.txt ─► <!-- mutants: MODEL … -->
//! ```
//!
//! A test of a block runs on each of its mutants (`hdl/tests/src/broken.rs`), and writes its score and the names of those
//! that it doesn't notice. A survivor is a hint, not an error: some differ from the block in nothing that anybody sees. Beside the
//! scores of a page is a hash of the text that each is of, which `cargo xtask check` compares with the text as it is now.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::models::Class;
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

/// Runs the tests of mutants, which are among those that take long, or of those of some models, and writes what they say on the pages of the
/// blocks; with `kept` only what they said last, by `cargo xtask test --long` for one. Only the program `test` of `hdl/tests` is built and run, if it is named.
///
/// # Errors
/// If a model can't be built, a test fails, or no test counts the mutants of a model that is named.
pub fn run(kept: bool, models: &[String], test: Option<&str>, jobs: usize) -> Result<()> {
    let folder = paths::target().join("mutants");
    fs::create_dir_all(&folder)?;
    if kept {
        return pages().map(drop);
    }
    let said = |model: &str| folder.join(format!("{model}.txt"));
    for model in models {
        // What was said before is no answer.
        match fs::remove_file(said(model)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    let variants: Vec<String> = match models {
        [] => variants()?,
        named => named.iter().map(|name| variant(name)).collect(),
    };
    models::run(&setup::run()?, &variants, false, jobs)?;
    let mut cargo = setup::cargo();
    cargo.env("POSTHORN_MUTANTS", &folder);
    cargo.env("POSTHORN_MUTANTS_OF", models.join(" "));
    cargo.args(["test", "--package", "hdl-tests"]);
    match test {
        Some(test) => cargo.args(["--test", test]),
        None => cargo.arg("--tests"),
    };
    // They take long, so each is marked as ignored.
    cargo.args(["--", "--include-ignored", "mutants"]);
    let status = cargo.status().with_context(|| run::shown(&cargo))?;
    if !status.success() {
        bail!("the tests of mutants failed");
    }
    if let Some(model) = models.iter().find(|model| !said(model).is_file()) {
        let within = test.map_or("hdl/tests/tests".into(), |test| {
            format!("hdl/tests/tests/{test}.rs")
        });
        bail!(
            "no test in {within} counts the mutants of {model}: its name has to have `mutants` in it, and it calls \
             `support::broken::mutants(\"{model}\", …)`"
        );
    }
    let scores = pages()?;
    for (model, score) in &scores {
        if models.is_empty() || models.contains(model) {
            println!("{}", told(model, score));
        }
    }
    Ok(())
}

/// The score of a model, and the survivors a line each.
fn told(model: &str, score: &Score) -> String {
    let Score { noticed, tried, .. } = score;
    let mut text = format!("{model}: {noticed} of {tried} mutants are noticed");
    for survivor in &score.survivors {
        let _ = write!(text, "\n  {survivor}");
    }
    text
}

/// All variants with mutants.
///
/// # Errors
/// If the gates can't be printed.
pub fn variants() -> Result<Vec<String>> {
    let tops = models::tops(&paths::target().join("tops"), &[])?;
    let variants = tops.into_iter().filter(|top| top.class == Class::Mutants);
    Ok(variants.map(|top| top.name).collect())
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

/// Writes the scores that are there on the pages that ask for them, and returns them.
fn pages() -> Result<BTreeMap<String, Score>> {
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
    Ok(scores)
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

/// The page with the scores that are there. What wasn't measured stays as it is, each model for itself.
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
        let texts = texts(&old.join("\n"));
        let rows = names.iter().map(|name| match scores.get(*name) {
            Some(score) => Some((score.text.clone(), row(name, score))),
            None => {
                let known = old
                    .iter()
                    .find(|line| line.starts_with(&format!("| `{name}` |")))?;
                let text = texts.get(*name).cloned().unwrap_or_default();
                Some((text, (*known).to_string()))
            }
        });
        match rows.collect::<Option<Vec<_>>>() {
            Some(rows) => text.push_str(&list(&names, &rows)),
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

/// The table of these models, each with the hash of the text that its score is of, and its row.
fn list(names: &[&str], rows: &[(String, String)]) -> String {
    let texts = names.iter().zip(rows);
    let texts: Vec<_> = texts
        .map(|(name, (text, _))| format!("{name}={text}"))
        .collect();
    let mut table = format!("{TEXTS} {} {END}\n", texts.join(" "));
    table.push_str("\n| | mutants | noticed | not noticed |\n|---|--:|--:|---|\n");
    for (_, row) in rows {
        let _ = writeln!(table, "{row}");
    }
    table.push('\n');
    table
}

fn row(name: &str, score: &Score) -> String {
    let survivors = score.survivors.iter();
    let survivors: Vec<_> = survivors
        .map(|name| format!("`{}`", name.replace('|', "or")))
        .collect();
    format!(
        "| `{name}` | {} | {} | {} |",
        match score.tried == score.all {
            true => score.all.to_string(),
            false => format!("{} of {}", score.tried, score.all),
        },
        score.noticed,
        survivors.join(", ")
    )
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
        assert!(row("b", &sampled).contains("| `b` | 4 of 90 | 3 |"));
    }

    #[test]
    fn a_score_that_was_not_counted_now_stays_beside_one_that_was() {
        let of =
            |text: &str, said| BTreeMap::from([("a".into(), score(said, text.into()).unwrap())]);
        let both = "<!-- mutants: a b -->\n<!-- texts: a=1 b=2 -->\n| `a` | 9 | 8 | `A.x` |\n| `b` | 7 | 7 |  |\n<!-- /mutants -->\n";
        let filled = filled(both, &of("3", "4 4 4\n"));
        assert!(filled.contains("<!-- texts: a=3 b=2 -->"), "{filled}");
        assert!(
            filled.contains("| `a` | 4 | 4 |  |\n| `b` | 7 | 7 |  |\n"),
            "{filled}"
        );
    }

    #[test]
    fn a_score_is_told_with_its_survivors() {
        let score = score("3 4 4\nA.x: + is - (2)\n", String::new()).unwrap();
        let expected = "a: 3 of 4 mutants are noticed\n  A.x: + is - (2)";
        assert_eq!(told("a", &score), expected);
    }
}
