//! `cargo xtask book`: the book as web pages, under `docs/book/`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::progress::Progress;
use crate::{paths, registers, run, setup};

/// The release of mdbook that is installed if there is none.
const MDBOOK: &str = "0.5.4";

/// Writes the generated pages and then the book.
///
/// # Errors
/// If mdbook can't be installed, or refuses a page.
pub fn run() -> Result<()> {
    registers::run(&paths::workspace(), false)?;
    let mdbook = mdbook()?;
    let docs = paths::workspace().join("docs");
    run::output(Command::new(mdbook).arg("build").arg(&docs))?;
    eprintln!("The book is {}.", docs.join("book/index.html").display());
    Ok(())
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
