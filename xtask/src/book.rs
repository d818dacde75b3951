//! `cargo xtask book`: the book as web pages, under `docs/book/`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::progress::Progress;
use crate::{figures, paths, registers, run, setup};

/// The release of mdbook that is installed if there is none.
const MDBOOK: &str = "0.5.4";

/// Writes the generated pages and then the book.
///
/// # Errors
/// If a page isn't in the table of contents, or mdbook can't be installed or refuses a page.
pub fn run() -> Result<()> {
    registers::run(&paths::workspace(), false)?;
    figures::pages(&figures::read()?, false)?;
    check_contents()?;
    let mdbook = mdbook()?;
    let docs = paths::workspace().join("docs");
    run::output(Command::new(mdbook).arg("build").arg(&docs))?;
    eprintln!("The book is {}.", docs.join("book/index.html").display());
    Ok(())
}

/// Whether the table of contents, `SUMMARY.md`, names every page: the book leaves out the others
/// without a word.
///
/// # Errors
/// Names those that are missing.
pub fn check_contents() -> Result<()> {
    let pages = paths::workspace().join("docs/src");
    let contents = fs::read_to_string(pages.join("SUMMARY.md")).context("docs/src/SUMMARY.md")?;
    let missing = unlisted(&contents, &self::pages()?);
    if !missing.is_empty() {
        bail!("docs/src/SUMMARY.md doesn't list {}", missing.join(", "));
    }
    Ok(())
}

/// All pages, relative to `docs/src`.
///
/// # Errors
/// If a folder can't be read.
pub fn pages() -> Result<Vec<String>> {
    let root = paths::workspace().join("docs/src");
    found(&root, &root)
}

/// All pages under `dir`, relative to `root`.
fn found(root: &Path, dir: &Path) -> Result<Vec<String>> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            pages.extend(found(root, &path)?);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path.strip_prefix(root)?.display().to_string());
        }
    }
    pages.sort();
    Ok(pages)
}

fn unlisted(contents: &str, pages: &[String]) -> Vec<String> {
    let listed = |page: &&String| contents.contains(&format!("({page})"));
    pages
        .iter()
        .filter(|page| *page != "SUMMARY.md" && !listed(page))
        .cloned()
        .collect()
}

/// The mdbook of the machine, or else one in the tools folder, which is installed when first asked
/// for: only those who build the book pay for it.
fn mdbook() -> Result<PathBuf> {
    if run::output(Command::new("mdbook").arg("--version")).is_ok() {
        return Ok("mdbook".into());
    }
    let own = paths::tools().join("bin/mdbook");
    if !own.is_file() {
        let progress = Progress::spinner("Installing mdbook");
        let mut cargo = setup::cargo();
        cargo.args([
            "install",
            "mdbook",
            "--locked",
            "--version",
            MDBOOK,
            "--root",
        ]);
        run::watched(cargo.arg(paths::tools()), |line| {
            progress.doing(line.trim())
        })?;
    }
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::unlisted;

    #[test]
    fn a_page_that_the_contents_leave_out_is_named() {
        let pages = ["SUMMARY.md", "a.md", "blocks/b.md"].map(String::from);
        assert_eq!(
            unlisted("- [A](a.md)\n- [B](b.md)\n", &pages),
            ["blocks/b.md"]
        );
    }
}
