//! `cargo xtask check`: what must hold of the source before it is tested.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{book, figures, firmware, mutants, paths, registers, run, setup};

/// Formatting, lints and generated pages, of the workspace and of the firmware, and the size of the gates.
///
/// # Errors
/// Names all that don't hold; each has printed why.
pub fn run() -> Result<()> {
    let mut failed = Vec::new();
    let mut check = |what: &'static str, command: &mut Command| -> Result<()> {
        eprintln!("$ {}", run::shown(command));
        let status = command.status().with_context(|| run::shown(command))?;
        if !status.success() {
            failed.push(what);
        }
        Ok(())
    };
    check(
        "formatting",
        setup::cargo().args(["fmt", "--all", "--check"]),
    )?;
    let lints = ["--", "-D", "warnings"];
    let mut clippy = setup::cargo();
    check(
        "lints",
        clippy
            .args(["clippy", "--workspace", "--all-targets"])
            .args(lints),
    )?;
    if let Some(folder) = firmware::folder() {
        let mut clippy = firmware::cargo(&folder);
        clippy.arg("clippy").args(firmware::FLAGS).args(lints);
        check("lints of the firmware", &mut clippy)?;
    }
    if let Err(error) = registers::run(&paths::workspace(), true) {
        eprintln!("{error:#}");
        failed.push("the pages that are made from abi");
    }
    if let Err(error) = book::check_contents() {
        eprintln!("{error:#}");
        failed.push("the book's table of contents");
    }
    if let Err(error) = book::check_links() {
        eprintln!("{error:#}");
        failed.push("the book's links");
    }
    if let Err(error) = figures::check() {
        eprintln!("{error:#}");
        failed.push("the figures of the gates");
    }
    if let Err(error) = mutants::check() {
        eprintln!("{error:#}");
        failed.push("the scores of mutants");
    }
    if !failed.is_empty() {
        bail!("these don't hold: {}", failed.join(", "));
    }
    Ok(())
}
