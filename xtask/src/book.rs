//! `cargo xtask book`: the book as web pages, under `docs/book/`.

use std::collections::BTreeMap;
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
    check_links()?;
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

/// Whether each link of a page leads to a file that is there and, if it names a heading, to one that the page has.
///
/// # Errors
/// Names the links that lead nowhere.
pub fn check_links() -> Result<()> {
    let root = paths::workspace().join("docs/src");
    let mut broken = Vec::new();
    for page in pages()? {
        let path = root.join(&page);
        for link in links(&fs::read_to_string(&path)?) {
            if !leads_somewhere(&path, &link) {
                broken.push(format!("{page}: {link}"));
            }
        }
    }
    if !broken.is_empty() {
        bail!("links of the book lead nowhere: {}", broken.join(", "));
    }
    Ok(())
}

fn leads_somewhere(page: &Path, link: &str) -> bool {
    let (file, heading) = link.split_once('#').unwrap_or((link, ""));
    let mut target = page.to_owned();
    if !file.is_empty() {
        target.pop();
    }
    // By names, as a reader's browser goes: `decisions` is a link to another folder.
    for part in file.split('/').filter(|part| !part.is_empty()) {
        match part {
            ".." => drop(target.pop()),
            _ => target.push(part),
        }
    }
    let Ok(bytes) = fs::read(target) else {
        return false;
    };
    heading.is_empty() || headings(&String::from_utf8_lossy(&bytes)).contains(&heading.to_owned())
}

/// Lines of a page outside of its examples.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    page.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        !inside && !fence
    })
}

/// What a page links to within the book.
fn links(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in prose(page) {
        // Without what is in backticks.
        let line: String = line.split('`').step_by(2).collect();
        let targets = line
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next());
        found.extend(
            targets
                .filter(|link| !link.contains("://"))
                .map(str::to_owned),
        );
    }
    found
}

/// Names of a page's headings, as mdbook makes them.
fn headings(page: &str) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let lines = prose(page).filter(|line| line.starts_with('#'));
    let names = lines.map(|heading| {
        let text = heading.trim_start_matches('#').trim();
        let name: String = text
            .chars()
            .filter_map(|c| match c {
                c if c.is_whitespace() => Some('-'),
                '-' | '_' => Some(c),
                c => c.is_alphanumeric().then(|| c.to_ascii_lowercase()),
            })
            .collect();
        let before = seen.entry(name.clone()).or_default();
        *before += 1;
        match *before {
            1 => name,
            times => format!("{name}-{}", times - 1),
        }
    });
    names.collect()
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
        let progress = Progress::spinner("Compiling mdbook, once, for some minutes");
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
    use super::{headings, links, unlisted};

    #[test]
    fn a_page_that_the_contents_leave_out_is_named() {
        let pages = ["SUMMARY.md", "a.md", "blocks/b.md"].map(String::from);
        assert_eq!(
            unlisted("- [A](a.md)\n- [B](b.md)\n", &pages),
            ["blocks/b.md"]
        );
    }

    #[test]
    fn every_link_of_the_book_leads_somewhere() {
        super::check_links().unwrap();
    }

    #[test]
    fn links_and_headings_are_found() {
        let page = "# A page\n[a](b.md#c-d) `[no](x)`\n```\n[no](y)\n```\n[w](https://z)\n\
                    ## When it's `done`\n## Same\n## Same\n";
        assert_eq!(links(page), ["b.md#c-d"]);
        assert_eq!(
            headings(page),
            ["a-page", "when-its-done", "same", "same-1"]
        );
    }

    #[test]
    fn a_link_that_leads_nowhere_is_noticed() {
        let folder = std::env::temp_dir().join(format!("posthorn-links-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let page = folder.join("page.md");
        std::fs::write(&page, "# Here\n").unwrap();
        let leads = |link| super::leads_somewhere(&page, link);
        assert!(leads("page.md") && leads("#here") && leads("page.md#here"));
        assert!(!leads("other.md") && !leads("#there") && !leads("page.md#there"));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
